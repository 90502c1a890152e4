// SPDX-License-Identifier: GPL-2.0-only
/*
 * A worker of examples/broker.c, for broker.sh: the CPU is the peer, and a memfd the memory of a
 * device.  usage: broker_client SOCKET STEP, where STEP is
 *
 *	files	has the descriptors of the offer and no other one, and none takes an ioctl that gives more
 *	read	writes the file to standard output
 *	write	writes SEED's pattern over the file, and a Flush
 *	beyond	no command reaches other blocks, other windows or other memory
 *	sealed	no window and no buffer is added
 *
 * Exits with 0, or with 1 and a line that says what was wrong.
 */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/udmabuf.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/un.h>
#include <unistd.h>

#include <linux/nvme_ioctl.h>
#include <nvmepeer_peer.h>

#include "../../examples/broker.h"
#include "nptest.h"
#include "tenant.h"

#define ENTRIES	16U
#define BYTES	(1U << 20)
#define SEED	31U

struct client {
	struct broker_offer offer;
	struct nvmepeer_queue queue;
	struct nvmepeer_buffer data;
	uint8_t *bytes;
	int memory;
	int socket;
	int qp;
};

static void require(bool good, const char *what)
{
	if (good)
		return;
	printf("%s: %s\n", what, strerror(errno));
	exit(1);
}

/* A dma-buf of this process's memory. */
static int make_memory(struct client *client)
{
	struct udmabuf_create create = { .flags = UDMABUF_FLAGS_CLOEXEC, .size = BYTES };
	int device = open("/dev/udmabuf", O_RDWR | O_CLOEXEC), dmabuf;

	create.memfd = memfd_create("memory", MFD_CLOEXEC | MFD_ALLOW_SEALING);
	require(device >= 0 && !ftruncate(create.memfd, BYTES) &&
		!fcntl(create.memfd, F_ADD_SEALS, F_SEAL_SHRINK), "memory");
	client->bytes = mmap(NULL, BYTES, PROT_READ | PROT_WRITE, MAP_SHARED, create.memfd, 0);
	dmabuf = ioctl(device, UDMABUF_CREATE, &create);
	require(dmabuf >= 0 && client->bytes != MAP_FAILED, "a dma-buf of the memory");
	close(create.memfd);
	close(device);
	return dmabuf;
}

static void ask(struct client *client, const char *path)
{
	const struct broker_request request = { .entries = ENTRIES };
	struct sockaddr_un address = { .sun_family = AF_UNIX };
	int fds[BROKER_PARTS];
	uint32_t count;

	client->memory = make_memory(client);
	client->socket = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
	snprintf(address.sun_path, sizeof(address.sun_path), "%s", path);
	require(!connect(client->socket, (struct sockaddr *)&address, sizeof(address)) &&
		broker_send(client->socket, &request, sizeof(request), &client->memory, 1) &&
		broker_receive(client->socket, &client->offer, sizeof(client->offer), fds, &count) &&
		!client->offer.error && count == client->offer.count, "the broker gives no queue pair");
	for (uint32_t i = 0; i < count; i++) {
		client->offer.files[i].fd = fds[i];
		if (client->offer.files[i].role == NVMEPEER_CUDA_QUEUE_PAIR)
			client->qp = fds[i];
	}
}

static uint64_t map_part(const struct client *client, enum nvmepeer_cuda_role role)
{
	const struct nvmepeer_cuda_file *file = client->offer.files;
	int rights = role == NVMEPEER_CUDA_STATUS ? PROT_READ : PROT_READ | PROT_WRITE;
	uint64_t start;
	char *base;

	while (file->role != (uint32_t)role)
		file++;
	start = file->offset / NP_PAGE * NP_PAGE;
	base = mmap(NULL, file->offset - start + file->bytes, rights, MAP_SHARED, file->fd, (off_t)start);
	require(base != MAP_FAILED, "a part of the queue pair is not mapped");
	return (uintptr_t)base + file->offset - start;
}

static void open_queue(struct client *client)
{
	struct nvmepeer_geometry *geometry = &client->offer.geometry;
	uint64_t doorbells = map_part(client, NVMEPEER_CUDA_DOORBELL_MEMORY);
	size_t state = (nvmepeer_state_bytes(geometry) + 127) / 128 * 128;

	geometry->sq = map_part(client, NVMEPEER_CUDA_SQ);
	geometry->cq = map_part(client, NVMEPEER_CUDA_CQ);
	geometry->status = map_part(client, NVMEPEER_CUDA_STATUS);
	geometry->control = map_part(client, NVMEPEER_CUDA_CONTROL);
	geometry->sq_doorbell += doorbells;
	geometry->cq_doorbell += doorbells;
	geometry->state = (uintptr_t)aligned_alloc(128, state);
	memset((void *)(uintptr_t)geometry->state, 0, state);
	require(!nvmepeer_queue_init(&client->queue, geometry), "the queue pair cannot be used");
	client->data = (struct nvmepeer_buffer){ .length = BYTES, .dma = client->offer.memory };
}

static uint64_t file_bytes(const struct client *client)
{
	return client->offer.blocks << client->offer.geometry.lba_shift;
}

static void read_file(struct client *client)
{
	require(file_bytes(client) <= BYTES, "the file is too long for the test");
	require(!nvmepeer_read(&client->queue, &client->data, 0, 0, (uint32_t)client->offer.blocks), "a read");
	require(fwrite(client->bytes, 1, file_bytes(client), stdout) == file_bytes(client), "standard output");
}

static void write_file(struct client *client)
{
	np_pattern(client->bytes, (uint32_t)file_bytes(client), 0, SEED);
	require(!nvmepeer_write(&client->queue, &client->data, 0, 0, (uint32_t)client->offer.blocks) &&
		!nvmepeer_flush(&client->queue), "a write");
	require(fwrite(client->bytes, 1, file_bytes(client), stdout) == file_bytes(client), "standard output");
}

/* Descriptors of this process behind the standard three, without that of the folder itself. */
static uint32_t count_descriptors(void)
{
	DIR *folder = opendir("/proc/self/fd");
	struct dirent *entry;
	uint32_t count = 0;

	require(folder, "/proc/self/fd");
	while ((entry = readdir(folder)))
		count += entry->d_name[0] != '.' && atoi(entry->d_name) > 2 &&
			 atoi(entry->d_name) != dirfd(folder);
	closedir(folder);
	return count;
}

/* Ioctls of a controller's node, and read() and write() of what could be a disk. */
static void check_files(struct client *client)
{
	struct nvme_peer_qp_create create = { .size = sizeof(create), .sq_entries = 2, .cq_entries = 2 };
	struct nvme_passthru_cmd identify = { .opcode = 0x06, .cdw10 = 1 };
	char byte;

	require(count_descriptors() == client->offer.count + 2, "it has other descriptors");
	for (uint32_t i = 0; i < client->offer.count; i++) {
		int fd = client->offer.files[i].fd;

		require(np_ioctl(fd, NVME_PEER_QP_CREATE, &create) == -ENOTTY &&
			np_ioctl(fd, NVME_IOCTL_ADMIN_CMD, &identify) == -ENOTTY, "a descriptor takes other ioctls");
		require(pread(fd, &byte, 1, 0) < 0 && pwrite(fd, &byte, 1, 0) < 0, "a descriptor is a file");
	}
}

static void check_read(struct client *client, uint64_t lba, uint64_t offset, int status, const char *what)
{
	uint32_t blocks = NP_PAGE >> client->queue.lba_shift;
	int result = nvmepeer_read(&client->queue, &client->data, offset, lba, blocks);

	errno = 0;
	if (result != status)
		printf("status %#x, expected %#x: ", result, status);
	require(result == status, what);
}

static void check_beyond(struct client *client)
{
	uint32_t window = client->queue.nsid;

	check_read(client, client->offer.blocks, 0, LBA_RANGE, "a read behind the file");
	check_read(client, client->offer.blocks - 1, 0, LBA_RANGE, "a read across the end of the file");
	check_read(client, ~0ULL - 1, 0, LBA_RANGE, "a read whose end wraps");
	for (uint32_t other = 1; other < 256; other++) {
		if (other == window)
			continue;
		client->queue.nsid = other;
		check_read(client, 0, 0, INVALID_NS, "a read of another window");
	}
	client->queue.nsid = window;
	client->data.dma = client->offer.memory + BYTES;
	check_read(client, 0, 0, DATA_TRANSFER, "a read into memory behind the buffer");
	client->data.dma = NVME_PEER_HANDLE_ADDRESS(7, 0);
	check_read(client, 0, 0, DATA_TRANSFER, "a read into another buffer");
	/* An address of the machine. */
	client->data.dma = 0x100000;
	check_read(client, 0, 0, DATA_TRANSFER, "a read to an address of memory");
	client->data.dma = client->offer.memory;
	check_read(client, 0, 0, 0, "a read of the file");
}

static void check_sealed(struct client *client)
{
	struct np_qp qp = { .fd = client->qp };
	uint32_t slot;

	require(np_buf_add(&qp, client->memory, 0, &slot) == -EPERM, "a buffer is added");
	require(np_window_add(&qp, client->memory, 0, 0, NULL) == -EPERM, "a window is added");
	check_read(client, 0, 0, 0, "a read of the file");
}

int main(int argc, char **argv)
{
	static const struct {
		const char *name;
		void (*run)(struct client *client);
	} steps[] = {
		{ "files", check_files },
		{ "read", read_file },
		{ "write", write_file },
		{ "beyond", check_beyond },
		{ "sealed", check_sealed },
	};
	struct client client = { 0 };

	require(argc == 3, "usage: broker_client SOCKET STEP");
	ask(&client, argv[1]);
	open_queue(&client);
	for (size_t i = 0; i < sizeof(steps) / sizeof(steps[0]); i++) {
		if (strcmp(argv[2], steps[i].name))
			continue;
		steps[i].run(&client);
		return 0;
	}
	require(false, "no such step");
}
