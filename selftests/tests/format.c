// SPDX-License-Identifier: GPL-2.0-only
/*
 * Commands that change a namespace: Format with I/O in flight, by ioctl and by io_uring;
 * detach and attach; and commands that the controller does not support. All act on np1
 * and are undone.
 *
 * kernels: 6.1 6.12 7
 * long-kernels: 6.1 6.12 7 debug kcsan
 * iommu: on
 */
#include <errno.h>
#include <fcntl.h>
#include <liburing.h>
#include <linux/fs.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/sysinfo.h>
#include <unistd.h>

#include "nptest.h"
#include "kselftest_harness.h"

#define ENTRIES		16U
#define NOBODY		65534
#define BYTES		4096U
#define THREADS		40
#define WHERE		NP_AREA(2)
/* Of one page each: 32 MiB of pages, more than other processes free meanwhile. */
#define DISCARDS	8192
#define PATH		96

#define NS_ATTACH	0
#define NS_DETACH	1
#define METADATA_NSID	2

/* Indices of QEMU's eight LBA formats. */
#define FORMAT_512	0
#define FORMAT_512_META	1
#define FORMAT_4096	4
/* Format NVM, dword 10 (base specification 5.1.10). */
#define FORMAT_EXTENDED	(1U << 4)
#define FORMAT_PROTECTION_SHIFT	5
/* Read, dword 12: the controller strips the protection information. */
#define PRACT		(1U << 29)

FIXTURE(format)
{
	struct np_ctrl ctrl;
	char before[NP_OBJECTS];
	struct nvme_peer_info info;
	int disk;
	int generic;
	uint8_t *bytes;
};

static int format(const struct np_ctrl *ctrl, uint32_t nsid, uint32_t lba_format)
{
	struct nvme_admin_cmd cmd = {
		.opcode = NVME_ADMIN_FORMAT,
		.nsid = nsid,
		.cdw10 = lba_format,
	};

	return np_admin(ctrl->fd, &cmd);
}

FIXTURE_SETUP(format)
{
	ASSERT_EQ(0, np_ctrl_open(&self->ctrl, np_spare_or("np1")));
	np_needs_qemu(&self->ctrl, "its eight formats");
	ASSERT_EQ(0, np_objects(&self->ctrl, self->before));
	ASSERT_EQ(0, np_info(self->ctrl.fd, &self->info));
	self->disk = np_open_node(&self->ctrl, "/dev/nvmep%dn1", O_RDWR | O_DIRECT);
	ASSERT_LE(0, self->disk);
	self->generic = np_open_node(&self->ctrl, "/dev/ngp%dn1", O_RDWR);
	ASSERT_LE(0, self->generic);
	ASSERT_EQ(0, posix_memalign((void **)&self->bytes, NP_PAGE, BYTES));
}

FIXTURE_TEARDOWN(format)
{
	struct nvme_peer_info now;

	EXPECT_EQ(0, format(&self->ctrl, 1, FORMAT_512));
	/* No reset was needed. */
	EXPECT_EQ(0, np_info(self->ctrl.fd, &now));
	EXPECT_EQ(self->info.generation, now.generation);
	close(self->disk);
	close(self->generic);
	free(self->bytes);
	EXPECT_EQ(0, np_objects_wait(&self->ctrl, self->before, NP_TIMEOUT_MS));
	np_ctrl_close(&self->ctrl);
}

static int block_size(int disk)
{
	int size = -1;

	return ioctl(disk, BLKSSZGET, &size) ? -errno : size;
}

static uint64_t disk_bytes(int disk)
{
	uint64_t bytes = ~0ULL;

	ioctl(disk, BLKGETSIZE64, &bytes);
	return bytes;
}

/* A passthrough read of one block, whose length the driver checks against the format. */
static int read_block(int generic, void *bytes, uint32_t length)
{
	struct nvme_passthru_cmd cmd = {
		.opcode = NVMEPEER_OP_READ,
		.nsid = 1,
		.addr = (uintptr_t)bytes,
		.data_len = length,
	};

	return np_ioctl(generic, NVME_IOCTL_IO_CMD, &cmd);
}

/* All blocks are zero afterwards. */
static void check_format(struct __test_metadata *_metadata, FIXTURE_DATA(format) *self,
			 int (*with)(const struct np_ctrl *, uint32_t, uint32_t))
{
	struct np_command flush = { .opcode = NVMEPEER_OP_FLUSH, .nsid = 1 };
	static const uint8_t zeroes[BYTES];
	uint64_t size = disk_bytes(self->disk);
	struct np_reader reader;
	struct np_qp qp;

	EXPECT_EQ(512, block_size(self->disk));
	np_pattern(self->bytes, BYTES, WHERE, 3);
	ASSERT_EQ(0, np_disk_write(self->disk, self->bytes, BYTES, WHERE));
	ASSERT_EQ(0, np_qp_open(&qp, self->ctrl.fd, ENTRIES));
	ASSERT_EQ(0, np_reader_start(&reader, &self->ctrl));
	/* Peers computed lengths and lists for the present block size. */
	EXPECT_EQ(-EBUSY, with(&self->ctrl, 1, FORMAT_4096));
	EXPECT_EQ(512, block_size(self->disk));
	EXPECT_EQ(0, np_qp_run(&qp, &flush, NP_TIMEOUT_MS));
	np_qp_close(&qp);
	EXPECT_EQ(0, with(&self->ctrl, 1, FORMAT_4096));
	/* When the command returns, the block device has the new block size. */
	EXPECT_EQ(4096, block_size(self->disk));
	EXPECT_EQ(size, disk_bytes(self->disk));
	EXPECT_EQ(0, np_disk_read(self->disk, self->bytes, BYTES, WHERE));
	EXPECT_EQ(0, memcmp(self->bytes, zeroes, BYTES));
	EXPECT_EQ(-EINVAL, np_disk_read(self->disk, self->bytes, 512, WHERE));
	EXPECT_EQ(-EINVAL, read_block(self->generic, self->bytes, 512));
	EXPECT_EQ(0, read_block(self->generic, self->bytes, 4096));
	/* Readers waited during the Format. */
	EXPECT_EQ(0, np_reader_stop(&reader));
	EXPECT_EQ(0, with(&self->ctrl, 1, FORMAT_512));
	EXPECT_EQ(512, block_size(self->disk));
	EXPECT_EQ(size, disk_bytes(self->disk));
	EXPECT_EQ(0, np_disk_read(self->disk, self->bytes, 512, WHERE));
	EXPECT_EQ(0, read_block(self->generic, self->bytes, 512));
}

TEST_F_TIMEOUT(format, format_by_ioctl, 120)
{
	check_format(_metadata, self, format);
}

static int uring_admin(const struct np_ctrl *ctrl, const struct nvme_uring_cmd *cmd,
		       uint32_t flags)
{
	/*
	 * Old kernels refuse file-backed memory, such as this program's, as a fixed
	 * buffer.
	 */
	struct iovec fixed = { aligned_alloc(NP_PAGE, BYTES), BYTES };
	struct io_uring_sqe *sqe;
	struct io_uring_cqe *cqe;
	struct io_uring ring;
	int ret;

	ret = io_uring_queue_init(4, &ring, IORING_SETUP_SQE128 | IORING_SETUP_CQE32);
	if (ret)
		goto out;
	if (flags & IORING_URING_CMD_FIXED)
		io_uring_register_buffers(&ring, &fixed, 1);
	sqe = io_uring_get_sqe(&ring);
	/* The ring has room for one entry. */
	if (!sqe)
		abort();
	memset(sqe, 0, 2 * sizeof(*sqe));
	sqe->opcode = IORING_OP_URING_CMD;
	sqe->fd = ctrl->fd;
	sqe->cmd_op = NVME_URING_CMD_ADMIN;
	sqe->uring_cmd_flags = flags;
	memcpy(sqe->cmd, cmd, sizeof(*cmd));
	ret = io_uring_submit(&ring);
	if (ret > 0)
		ret = io_uring_wait_cqe(&ring, &cqe);
	if (!ret)
		ret = cqe->res;
	io_uring_queue_exit(&ring);
out:
	free(fixed.iov_base);
	return ret;
}

static int format_by_uring(const struct np_ctrl *ctrl, uint32_t nsid, uint32_t lba_format)
{
	struct nvme_uring_cmd cmd = {
		.opcode = NVME_ADMIN_FORMAT,
		.nsid = nsid,
		.cdw10 = lba_format,
	};

	return uring_admin(ctrl, &cmd, 0);
}

TEST_F_TIMEOUT(format, format_by_io_uring, 120)
{
	check_format(_metadata, self, format_by_uring);
}

/* The command runs in a context without registered buffers, and needs none. */
TEST_F(format, refuses_fixed_buffers)
{
	struct nvme_uring_cmd cmd = {
		.opcode = NVME_ADMIN_FORMAT,
		.nsid = 1,
		.cdw10 = FORMAT_4096,
	};

	EXPECT_EQ(-EINVAL, uring_admin(&self->ctrl, &cmd, IORING_URING_CMD_FIXED));
	EXPECT_EQ(512, block_size(self->disk));
}

TEST_F(format, metadata_format_is_passthrough_only)
{
	uint64_t size = disk_bytes(self->disk);

	ASSERT_EQ(0, format(&self->ctrl, 1, FORMAT_512_META));
	EXPECT_EQ(0, disk_bytes(self->disk));
	EXPECT_NE(0, np_disk_read(self->disk, self->bytes, BYTES, 0));
	/* The caller's buffer has no room for the 8 bytes of metadata. */
	EXPECT_EQ(-EINVAL, read_block(self->generic, self->bytes, 512));
	ASSERT_EQ(0, format(&self->ctrl, 1, FORMAT_512));
	EXPECT_EQ(size, disk_bytes(self->disk));
	EXPECT_EQ(0, np_disk_read(self->disk, self->bytes, BYTES, 0));
}

/* Failed block I/O of the first namespace. */
static long failures(FIXTURE_DATA(format) *self)
{
	char path[128], text[32];

	snprintf(path, sizeof(path), "/sys/block/nvmep%dn1/diag/command_error_count",
		 self->ctrl.instance);
	return np_read_file(path, text, sizeof(text)) ? -1 : strtol(text, NULL, 10);
}

/*
 * Protection information that the controller generates and checks: the block device is
 * unchanged, and passthrough has to set PRACT or supply the metadata.
 */
static void check_protection(struct __test_metadata *_metadata, FIXTURE_DATA(format) *self,
			     uint32_t type)
{
	struct nvme_passthru_cmd read = {
		.opcode = NVMEPEER_OP_READ,
		.nsid = 1,
		.addr = (uintptr_t)self->bytes,
		.data_len = 512,
	};
	uint64_t size = disk_bytes(self->disk), range[2] = { WHERE, BYTES };
	static const uint8_t zeroes[BYTES];
	uint8_t *back = self->bytes;
	uint8_t pattern[BYTES];
	long failed = failures(self);

	ASSERT_EQ(0, format(&self->ctrl, 1, FORMAT_512_META | type << FORMAT_PROTECTION_SHIFT));
	/* The protection information reduces the capacity. */
	EXPECT_EQ(size / 520 * 512, disk_bytes(self->disk));
	np_pattern(pattern, BYTES, WHERE, type);
	memcpy(self->bytes, pattern, BYTES);
	EXPECT_EQ(0, np_disk_write(self->disk, self->bytes, BYTES, WHERE));
	memset(back, 0, BYTES);
	EXPECT_EQ(0, np_disk_read(self->disk, back, BYTES, WHERE));
	EXPECT_EQ(0, memcmp(pattern, back, BYTES));
	/* The block layer would write zeroes by other commands, if this one failed. */
	EXPECT_EQ(0, np_ioctl(self->disk, BLKZEROOUT, range));
	/* Where udev runs, it reads the last blocks that the disk had before. */
	if (!np_spare())
		EXPECT_EQ(failed, failures(self));
	EXPECT_EQ(0, np_disk_read(self->disk, back, BYTES, WHERE));
	EXPECT_EQ(0, memcmp(zeroes, back, BYTES));
	EXPECT_EQ(0, np_disk_write(self->disk, memcpy(back, pattern, BYTES), BYTES, WHERE));
	EXPECT_EQ(-EINVAL, np_ioctl(self->generic, NVME_IOCTL_IO_CMD, &read));
	read.cdw10 = WHERE / NP_BLOCK;
	read.cdw12 = PRACT;
	memset(back, 0, BYTES);
	EXPECT_EQ(0, np_ioctl(self->generic, NVME_IOCTL_IO_CMD, &read));
	EXPECT_EQ(0, memcmp(pattern, back, 512));
	ASSERT_EQ(0, format(&self->ctrl, 1, FORMAT_512));
	EXPECT_EQ(size, disk_bytes(self->disk));
}

TEST_F(format, pi_format_keeps_block_device)
{
	check_protection(_metadata, self, 1);
	check_protection(_metadata, self, 3);
}

/* Metadata is interleaved with the data, so transfer lengths include both. */
TEST_F(format, extended_lba_length_is_checked)
{
	struct nvme_user_io submit = {
		.opcode = NVMEPEER_OP_WRITE,
		.addr = (uintptr_t)self->bytes,
		.slba = 5,
		.nblocks = 1,
	};
	uint8_t pattern[2 * 520];

	ASSERT_EQ(0, format(&self->ctrl, 1, FORMAT_512_META | FORMAT_EXTENDED));
	EXPECT_EQ(0, disk_bytes(self->disk));
	EXPECT_EQ(-EINVAL, read_block(self->generic, self->bytes, 512));
	EXPECT_EQ(0, read_block(self->generic, self->bytes, 520));
	/* NVME_IOCTL_SUBMIT_IO computes the length itself. */
	np_pattern(pattern, sizeof(pattern), WHERE, 7);
	memcpy(self->bytes, pattern, sizeof(pattern));
	EXPECT_EQ(0, np_ioctl(self->generic, NVME_IOCTL_SUBMIT_IO, &submit));
	memset(self->bytes, 0x55, BYTES);
	submit.opcode = NVMEPEER_OP_READ;
	EXPECT_EQ(0, np_ioctl(self->generic, NVME_IOCTL_SUBMIT_IO, &submit));
	EXPECT_EQ(0, memcmp(pattern, self->bytes, sizeof(pattern)));
	EXPECT_EQ(0x55, self->bytes[sizeof(pattern)]);
}

TEST_F(format, invalid_format_changes_nothing)
{
	struct np_reader reader;

	np_pattern(self->bytes, BYTES, WHERE, 4);
	ASSERT_EQ(0, np_disk_write(self->disk, self->bytes, BYTES, WHERE));
	ASSERT_EQ(0, np_reader_start(&reader, &self->ctrl));
	EXPECT_EQ(NVME_SC_INVALID_FORMAT, format(&self->ctrl, 1, 15) & NVME_STATUS_MASK);
	EXPECT_EQ(NVME_SC_INVALID_FORMAT, format_by_uring(&self->ctrl, 1, 15) & NVME_STATUS_MASK);
	EXPECT_EQ(512, block_size(self->disk));
	EXPECT_EQ(0, np_reader_stop(&reader));
	memset(self->bytes, 0, BYTES);
	EXPECT_EQ(0, np_disk_read(self->disk, self->bytes, BYTES, WHERE));
	EXPECT_NE(0, self->bytes[0] | self->bytes[1] | self->bytes[2]);
}

/* Returns NULL on success. */
static void *format_badly(void *argument)
{
	int status = format(argument, 1, 15) & NVME_STATUS_MASK;

	return (void *)(intptr_t)(status != NVME_SC_INVALID_FORMAT);
}

/*
 * The driver identifies the namespaces after each Format, which needs an admin queue
 * entry.
 */
TEST_F_TIMEOUT(format, parallel_formats_exceed_admin_queue, 120)
{
	pthread_t threads[THREADS];
	void *wrong;
	int i;

	for (i = 0; i < THREADS; i++)
		ASSERT_EQ(0, pthread_create(&threads[i], NULL, format_badly, &self->ctrl));
	for (i = 0; i < THREADS; i++) {
		pthread_join(threads[i], &wrong);
		EXPECT_EQ(NULL, wrong);
	}
}

/* Reads of 512 bytes, submitted before the Format to larger blocks. */
static void *read_small(void *argument)
{
	struct np_reader *reader = argument;
	void *bytes;

	if (posix_memalign(&bytes, NP_PAGE, NP_PAGE))
		return NULL;
	while (!atomic_load(&reader->stop) && !reader->error) {
		reader->error = np_disk_read(reader->disk, bytes, NP_BLOCK, NP_BLOCK);
		reader->reads++;
	}
	free(bytes);
	return NULL;
}

TEST_F_TIMEOUT(format, waiting_io_fails_if_block_size_grew, 120)
{
	struct np_reader readers[4] = {};
	int i;

	for (i = 0; i < 4; i++) {
		readers[i].disk = self->disk;
		ASSERT_EQ(0, pthread_create(&readers[i].thread, NULL, read_small, &readers[i]));
	}
	while (!readers[0].reads || !readers[3].reads)
		np_sleep_ms(1);
	EXPECT_EQ(0, format(&self->ctrl, 1, FORMAT_4096));
	for (i = 0; i < 4; i++) {
		pthread_join(readers[i].thread, NULL);
		/*
		 * Refused by the driver if the read had waited, later by the block layer.
		 */
		EXPECT_TRUE(readers[i].error == -EIO || readers[i].error == -EINVAL) {
			TH_LOG("reader %d: %d", i, readers[i].error);
		}
	}
}

TEST_F(format, format_needs_cap_sys_admin)
{
	int by_ioctl, by_uring;

	ASSERT_EQ(0, seteuid(NOBODY));
	by_ioctl = format(&self->ctrl, 1, FORMAT_4096);
	by_uring = format_by_uring(&self->ctrl, 1, FORMAT_4096);
	ASSERT_EQ(0, seteuid(0));
	EXPECT_EQ(-EACCES, by_ioctl);
	EXPECT_EQ(-EACCES, by_uring);
	EXPECT_EQ(512, block_size(self->disk));
}

/* Commands that QEMU does not support; I/O that waited for them continues. */
TEST_F(format, unsupported_admin_commands_fail)
{
	struct nvme_admin_cmd sanitize = { .opcode = NVME_ADMIN_SANITIZE, .cdw10 = 2 };
	struct nvme_admin_cmd manage = {
		.opcode = NVME_ADMIN_NAMESPACE_MANAGE,
		.nsid = 1,
		.addr = (uintptr_t)self->bytes,
		.data_len = BYTES,
		/* SEL 1: delete. */
		.cdw10 = 1,
	};
	struct np_reader reader;

	ASSERT_EQ(0, np_reader_start(&reader, &self->ctrl));
	EXPECT_EQ(NVME_SC_INVALID_OPCODE, np_admin(self->ctrl.fd, &sanitize) & NVME_STATUS_MASK);
	EXPECT_EQ(NVME_SC_INVALID_OPCODE, np_admin(self->ctrl.fd, &manage) & NVME_STATUS_MASK);
	EXPECT_EQ(0, np_reader_stop(&reader));
}

/* A controller list with this controller as its only entry. */
static int attachment(const struct np_ctrl *ctrl, uint8_t *list, uint32_t select, bool uring)
{
	struct nvme_uring_cmd cmd = {
		.opcode = NVME_ADMIN_NAMESPACE_ATTACH,
		.nsid = METADATA_NSID,
		.addr = (uintptr_t)list,
		.data_len = BYTES,
		.cdw10 = select,
	};
	struct nvme_admin_cmd admin = {
		.opcode = NVME_ADMIN_NAMESPACE_ATTACH,
		.nsid = METADATA_NSID,
		.addr = (uintptr_t)list,
		.data_len = BYTES,
		.cdw10 = select,
	};

	memset(list, 0, BYTES);
	list[0] = 1;
	return uring ? uring_admin(ctrl, &cmd, 0) : np_admin(ctrl->fd, &admin);
}

static int wait_namespaces(int fd, uint32_t count)
{
	int64_t end = np_now_ms() + NP_TIMEOUT_MS;
	struct nvme_peer_info now;
	int ret;

	do {
		ret = np_info(fd, &now);
		if (ret || now.namespaces == count)
			return ret;
		np_sleep_ms(10);
	} while (np_now_ms() < end);
	return -ETIMEDOUT;
}

/* The namespace's nodes are removed although one is open, and return with the attach. */
static void check_attachment(struct __test_metadata *_metadata, FIXTURE_DATA(format) *self,
			     bool uring)
{
	struct nvme_passthru_cmd read = { .opcode = NVMEPEER_OP_READ, .nsid = METADATA_NSID };
	struct nvme_peer_info now;
	char path[64];
	int generic;

	np_spare_needs(self->info.namespaces == 2, "a controller with two namespaces");
	generic = np_open_node(&self->ctrl, "/dev/ngp%dn2", O_RDWR);
	ASSERT_LE(0, generic);
	EXPECT_EQ(2, self->info.namespaces);
	ASSERT_EQ(0, attachment(&self->ctrl, self->bytes, NS_DETACH, uring));
	/* By ioctl, the namespace is gone when the command returns. */
	if (uring)
		EXPECT_EQ(0, wait_namespaces(self->ctrl.fd, 1));
	ASSERT_EQ(0, np_info(self->ctrl.fd, &now));
	EXPECT_EQ(1, now.namespaces);
	snprintf(path, sizeof(path), "/dev/ngp%dn2", self->ctrl.instance);
	EXPECT_NE(0, access(path, F_OK));
	snprintf(path, sizeof(path), "/dev/nvmep%dn2", self->ctrl.instance);
	EXPECT_NE(0, access(path, F_OK));
	EXPECT_EQ(-ENODEV, np_ioctl(generic, NVME_IOCTL_IO_CMD, &read));
	close(generic);
	ASSERT_EQ(0, attachment(&self->ctrl, self->bytes, NS_ATTACH, uring));
	EXPECT_EQ(0, wait_namespaces(self->ctrl.fd, 2));
	generic = np_open_node(&self->ctrl, "/dev/ngp%dn2", O_RDWR);
	EXPECT_LE(0, generic);
	close(generic);
}

TEST_F(format, detach_namespace_by_ioctl)
{
	check_attachment(_metadata, self, false);
}

TEST_F(format, detach_namespace_by_io_uring)
{
	check_attachment(_metadata, self, true);
}

/*
 * np0 has one block more than DMRSL. QEMU, a controller of version 1.4, ignores longer ranges and
 * reports success.
 */
TEST_F(format, long_discard_deallocates)
{
	static const uint8_t zeroes[BYTES];
	uint64_t range[2] = { 0, 0 };
	struct np_ctrl other;
	int disk;

	ASSERT_EQ(0, np_ctrl_open(&other, "np0"));
	disk = np_open_node(&other, "/dev/nvmep%dn1", O_RDWR | O_DIRECT);
	ASSERT_LE(0, disk);
	range[1] = disk_bytes(disk);
	np_spare_needs(range[1] == 2ULL << 30, "a disk of 2 GiB");
	EXPECT_EQ(2ULL << 30, range[1]);
	np_pattern(self->bytes, BYTES, WHERE, 5);
	ASSERT_EQ(0, np_disk_write(disk, self->bytes, BYTES, WHERE));
	ASSERT_EQ(0, np_ioctl(disk, BLKDISCARD, range));
	ASSERT_EQ(0, np_disk_read(disk, self->bytes, BYTES, WHERE));
	EXPECT_EQ(0, memcmp(self->bytes, zeroes, BYTES));
	close(disk);
	np_ctrl_close(&other);
}

static int64_t free_pages(void)
{
	struct sysinfo info;

	return sysinfo(&info) ? -errno : (int64_t)(info.freeram * info.mem_unit / NP_PAGE);
}

static void queue_attribute(const struct np_ctrl *ctrl, const char *name, char path[PATH])
{
	snprintf(path, PATH, "/sys/block/nvmep%dn1/queue/%s", ctrl->instance, name);
}

/* Each command has a page for its ranges. */
TEST_F(format, ranges_of_discards_are_freed)
{
	uint64_t range[2] = { 0, (uint64_t)DISCARDS * BYTES };
	char most[PATH], merges[PATH], limit[32];
	int64_t before;

	queue_attribute(&self->ctrl, "discard_max_bytes", most);
	queue_attribute(&self->ctrl, "nomerges", merges);
	ASSERT_LE(range[1], disk_bytes(self->disk));
	ASSERT_EQ(0, np_read_file(most, limit, sizeof(limit)));
	/* Only multiples of the granularity can be written. */
	snprintf(limit, sizeof(limit), "%llu", strtoull(limit, NULL, 10) & ~0xfffffULL);
	ASSERT_EQ(0, np_write_file(merges, "2"));
	EXPECT_EQ(0, np_write_file(most, "4096"));
	ASSERT_EQ(0, np_write_file("/proc/sys/vm/drop_caches", "3"));
	before = free_pages();
	EXPECT_EQ(0, np_ioctl(self->disk, BLKDISCARD, range));
	EXPECT_GT(DISCARDS / 2, before - free_pages());
	EXPECT_EQ(0, np_write_file(most, limit));
	EXPECT_EQ(0, np_write_file(merges, "0"));
}

/* CAP.NSSRS is bit 36; QEMU's controller does not support a subsystem reset. */
TEST_F(format, subsystem_reset_needs_nssr_support)
{
	struct nvme_peer_info now;

	ASSERT_EQ(0, self->info.cap >> 36 & 1);
	EXPECT_EQ(-ENOTTY, np_ioctl(self->ctrl.fd, NVME_IOCTL_SUBSYS_RESET, NULL));
	ASSERT_EQ(0, np_info(self->ctrl.fd, &now));
	EXPECT_EQ(NVME_PEER_CTRL_LIVE, now.state);
}

TEST_HARNESS_MAIN
