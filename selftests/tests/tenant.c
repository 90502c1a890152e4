// SPDX-License-Identifier: GPL-2.0-only
/* Calls of mediated queue pairs, for tests. */
#include <errno.h>
#include <fcntl.h>
#include <linux/fiemap.h>
#include <linux/fs.h>
#include <stdlib.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <unistd.h>

#include "tenant.h"

int np_window_add(const struct np_qp *qp, int fd, uint64_t first, uint64_t blocks, uint32_t *id)
{
	struct nvme_peer_window_add add = { .size = sizeof(add), .fd = fd, .first = first, .blocks = blocks };
	int ret = np_ioctl(qp->fd, NVME_PEER_WINDOW_ADD, &add);

	if (!ret && id)
		*id = add.id;
	return ret;
}

int np_window_remove(const struct np_qp *qp, uint32_t id)
{
	struct nvme_peer_window_remove remove = { .size = sizeof(remove), .id = id };

	return np_ioctl(qp->fd, NVME_PEER_WINDOW_REMOVE, &remove);
}

int np_window_info(const struct np_qp *qp, uint32_t id, struct nvme_peer_window_info *info)
{
	*info = (struct nvme_peer_window_info){ .size = sizeof(*info), .id = id };
	return np_ioctl(qp->fd, NVME_PEER_WINDOW_INFO, info);
}

int np_buf_add(const struct np_qp *qp, int dmabuf, uint32_t access, uint32_t *slot)
{
	struct nvme_peer_buf_add add = { .size = sizeof(add), .dmabuf_fd = dmabuf, .access = access };
	int ret = np_ioctl(qp->fd, NVME_PEER_BUF_ADD, &add);

	if (!ret)
		*slot = add.slot;
	return ret;
}

int np_buf_remove(const struct np_qp *qp, uint32_t slot)
{
	struct nvme_peer_buf_remove remove = { .size = sizeof(remove), .slot = slot };

	return np_ioctl(qp->fd, NVME_PEER_BUF_REMOVE, &remove);
}

int np_qp_stats(const struct np_qp *qp, struct nvme_peer_qp_stats *stats)
{
	*stats = (struct nvme_peer_qp_stats){ .size = sizeof(*stats) };
	return np_ioctl(qp->fd, NVME_PEER_QP_STATS, stats);
}

int np_qp_seal(const struct np_qp *qp)
{
	struct nvme_peer_qp_seal seal = { .size = sizeof(seal) };

	return np_ioctl(qp->fd, NVME_PEER_QP_SEAL, &seal);
}

int np_memory_alloc(struct np_memory *memory, int ctrl_fd)
{
	struct nvme_peer_buf_alloc alloc = { .size = sizeof(alloc), .length = NP_MEMORY_BYTES };
	int ret = np_ioctl(ctrl_fd, NVME_PEER_BUF_ALLOC, &alloc);

	if (ret)
		return ret;
	memory->fd = alloc.fd;
	memory->bytes = mmap(NULL, NP_MEMORY_BYTES, PROT_READ | PROT_WRITE, MAP_SHARED, alloc.fd, 0);
	return memory->bytes == MAP_FAILED ? -errno : 0;
}

void np_memory_free(struct np_memory *memory)
{
	munmap(memory->bytes, NP_MEMORY_BYTES);
	close(memory->fd);
}

struct np_command np_window_command(uint8_t opcode, uint32_t window, uint64_t lba, uint32_t blocks,
				    uint32_t slot, uint64_t offset)
{
	return (struct np_command){
		.opcode = opcode,
		.nsid = window,
		.prp1 = NVME_PEER_HANDLE_ADDRESS(slot, offset),
		/* Ignored, as are metadata pointer and PSDT. */
		.prp2 = 0xdead000,
		.cdw10 = { (uint32_t)lba, (uint32_t)(lba >> 32), blocks - 1 },
	};
}

/* --- tests that know nothing of mediated mode ------------------------------ */

#define NAMES	4096U

/* The dma-buf of each name, by number; 0 is none. Names are reused after many. */
static int named[NAMES];

uint64_t np_tenant_name(int dmabuf)
{
	static atomic_uint last;
	uint32_t number = 1 + atomic_fetch_add(&last, 1) % (NAMES - 1);

	named[number] = dmabuf;
	return NVME_PEER_HANDLE_ADDRESS(number, 0);
}

int np_tenant_open(struct np_tenant *tenant, int qp_fd, int ctrl_fd)
{
	const struct np_qp qp = { .fd = qp_fd };
	int disk = np_open_namespace(ctrl_fd), ret;

	if (disk < 0)
		return disk;
	ret = np_window_add(&qp, disk, 0, 0, &tenant->window);
	close(disk);
	return ret;
}

int np_tenant_most(int qp_fd, uint32_t *bytes)
{
	struct nvme_peer_qp_limits limits = { .size = sizeof(limits) };
	int ret = np_ioctl(qp_fd, NVME_PEER_QP_LIMITS, &limits);

	*bytes = limits.max_transfer;
	return ret;
}

/* 0 for no slot: the command then fails. */
static uint32_t slot_of(struct np_tenant *tenant, int qp_fd, uint32_t number)
{
	const struct np_qp qp = { .fd = qp_fd };
	uint32_t i, slot;

	for (i = 0; i < tenant->count; i++)
		if (tenant->buffers[i].number == number)
			return tenant->buffers[i].slot;
	if (i == NP_TENANT_BUFFERS || np_buf_add(&qp, named[number], 0, &slot))
		return 0;
	tenant->buffers[i].number = number;
	tenant->buffers[i].slot = slot;
	tenant->count++;
	return slot;
}

struct np_command np_tenant_command(struct np_tenant *tenant, int qp_fd, const struct np_command *command)
{
	const uint64_t offset = command->prp1 & (NVME_PEER_HANDLE_ADDRESS(1, 0) - 1);
	uint32_t number = (uint32_t)(command->prp1 >> 48);
	struct np_command made = *command;

	if (made.nsid == 1)
		made.nsid = tenant->window;
	if (number && number < NAMES)
		made.prp1 = NVME_PEER_HANDLE_ADDRESS(slot_of(tenant, qp_fd, number), offset);
	return made;
}

/* --- files ------------------------------------------------------------------- */

int np_make_file(const char *path, uint32_t bytes)
{
	int file = open(path, O_RDWR | O_CREAT | O_TRUNC, 0600);
	uint8_t *data = malloc(bytes);
	int ret = -EIO;

	np_pattern(data, bytes, 0, 77);
	if (file >= 0 && write(file, data, bytes) == (ssize_t)bytes && !fsync(file))
		ret = 0;
	free(data);
	if (file >= 0)
		close(file);
	return ret;
}

uint32_t np_count_extents(int file)
{
	struct fiemap map = { .fm_length = ~0ULL, .fm_flags = FIEMAP_FLAG_SYNC };

	return ioctl(file, FS_IOC_FIEMAP, &map) ? 0 : map.fm_mapped_extents;
}

/* One of two blocks is removed: what is left are extents of one block. */
int np_make_scattered(const char *path, uint32_t pieces)
{
	int file, ret = np_make_file(path, 2 * pieces * NP_PAGE);
	uint32_t i;

	file = open(path, O_RDWR);
	for (i = 1; i < pieces && !ret; i++)
		if (fallocate(file, FALLOC_FL_COLLAPSE_RANGE, (uint64_t)i * NP_PAGE, NP_PAGE))
			ret = -errno;
	if (!ret && (ftruncate(file, pieces * NP_PAGE) || fsync(file)))
		ret = -errno;
	if (!ret && np_count_extents(file) != pieces)
		ret = -EIO;
	close(file);
	return ret;
}

int np_unmount(const char *path)
{
	int64_t end = np_now_ms() + NP_TIMEOUT_MS;

	while (umount(path)) {
		if (np_now_ms() > end)
			return -errno;
		np_sleep_ms(20);
	}
	return 0;
}

uint64_t np_mix(uint64_t word)
{
	word = (word ^ word >> 30) * 0xbf58476d1ce4e5b9u;
	word = (word ^ word >> 27) * 0x94d049bb133111ebu;
	return word ^ word >> 31;
}

void np_describe(uint64_t *words, uint32_t bytes, uint64_t owner, uint32_t number, uint32_t version)
{
	uint64_t sum = np_mix(np_mix(owner ^ 0x6e766d6570656572u) ^ (uint64_t)number << 32 ^ version);

	words[0] = owner;
	words[1] = number;
	words[2] = version;
	words[3] = sum;
	for (uint32_t i = 4; i < bytes / sizeof(*words); i++)
		words[i] = sum += 0x9e3779b97f4a7c15u;
}
