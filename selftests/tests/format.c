// SPDX-License-Identifier: GPL-2.0-only
/*
 * Commands that change what a namespace is: Format with I/O under way, by ioctl and
 * by io_uring; detaching and attaching; and what the controller does not have.
 * All is on np1, and put back.
 *
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
#include <unistd.h>

#include "nptest.h"
#include "kselftest_harness.h"

#define ENTRIES		16U
#define NOBODY		65534
#define BYTES		4096U
#define THREADS		40
#define WHERE		NP_AREA(2)

#define ADMIN_FORMAT	0x80
#define ADMIN_SANITIZE	0x84
#define ADMIN_NS_MANAGE	0x0d
#define ADMIN_NS_ATTACH	0x15
#define NS_ATTACH	0
#define NS_DETACH	1
#define METADATA_NSID	2

/* Status field of a completion: code type and code, base specification 4.2.3. */
#define STATUS_MASK	0x7ff
#define INVALID_OPCODE	0x001
#define INVALID_FORMAT	0x10a

/* Of QEMU's eight formats. */
#define FORMAT_512	0
#define FORMAT_512_META	1
#define FORMAT_4096	4
/* Format NVM, dword 10 (base specification 5.1.10). */
#define FORMAT_EXTENDED	(1U << 4)
#define FORMAT_PROTECTION_SHIFT	5
/* Read, dword 12: the controller takes the protection information away. */
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
		.opcode = ADMIN_FORMAT,
		.nsid = nsid,
		.cdw10 = lba_format,
	};

	return np_admin(ctrl->fd, &cmd);
}

FIXTURE_SETUP(format)
{
	ASSERT_EQ(0, np_ctrl_open(&self->ctrl, "np1"));
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
	/* Nothing of this needs a reset. */
	EXPECT_EQ(0, np_info(self->ctrl.fd, &now));
	EXPECT_EQ(self->info.generation, now.generation);
	close(self->disk);
	close(self->generic);
	free(self->bytes);
	EXPECT_EQ(0, np_objects_settle(&self->ctrl, self->before, NP_TIMEOUT_MS));
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

/* A read of one block by passthrough, which the kernel holds against the format. */
static int read_block(int generic, void *bytes, uint32_t length)
{
	struct nvme_passthru_cmd cmd = {
		.opcode = NP_CMD_READ,
		.nsid = 1,
		.addr = (uintptr_t)bytes,
		.data_len = length,
	};

	return np_ioctl(generic, NVME_IOCTL_IO_CMD, &cmd);
}

/* Every block is one kind of zero afterwards, so @disk forgets what it held. */
static void check_format(struct __test_metadata *_metadata, FIXTURE_DATA(format) *self,
			 int (*with)(const struct np_ctrl *, uint32_t, uint32_t))
{
	struct np_command flush = { .opcode = NP_CMD_FLUSH, .nsid = 1 };
	static const uint8_t zeroes[BYTES];
	uint64_t size = disk_bytes(self->disk);
	struct np_reader reader;
	struct np_qp qp;

	EXPECT_EQ(512, block_size(self->disk));
	np_pattern(self->bytes, BYTES, WHERE, 3);
	ASSERT_EQ(0, np_disk_write(self->disk, self->bytes, BYTES, WHERE));
	ASSERT_EQ(0, np_qp_open(&qp, self->ctrl.fd, ENTRIES));
	ASSERT_EQ(0, np_reader_start(&reader, &self->ctrl));
	/* Lengths and lists of peers are made for the blocks there are. */
	EXPECT_EQ(-EBUSY, with(&self->ctrl, 1, FORMAT_4096));
	EXPECT_EQ(512, block_size(self->disk));
	EXPECT_EQ(0, np_qp_run(&qp, &flush, NP_TIMEOUT_MS));
	np_qp_close(&qp);
	EXPECT_EQ(0, with(&self->ctrl, 1, FORMAT_4096));
	/* When the command returns, the disk has its new shape. */
	EXPECT_EQ(4096, block_size(self->disk));
	EXPECT_EQ(size, disk_bytes(self->disk));
	EXPECT_EQ(0, np_disk_read(self->disk, self->bytes, BYTES, WHERE));
	EXPECT_EQ(0, memcmp(self->bytes, zeroes, BYTES));
	EXPECT_EQ(-EINVAL, np_disk_read(self->disk, self->bytes, 512, WHERE));
	EXPECT_EQ(-EINVAL, read_block(self->generic, self->bytes, 512));
	EXPECT_EQ(0, read_block(self->generic, self->bytes, 4096));
	/* Readers waited. */
	EXPECT_EQ(0, np_reader_stop(&reader));
	EXPECT_EQ(0, with(&self->ctrl, 1, FORMAT_512));
	EXPECT_EQ(512, block_size(self->disk));
	EXPECT_EQ(size, disk_bytes(self->disk));
	EXPECT_EQ(0, np_disk_read(self->disk, self->bytes, 512, WHERE));
	EXPECT_EQ(0, read_block(self->generic, self->bytes, 512));
}

TEST_F_TIMEOUT(format, changes_the_blocks_by_ioctl, 120)
{
	check_format(_metadata, self, format);
}

static int uring_admin(const struct np_ctrl *ctrl, const struct nvme_uring_cmd *cmd,
		       uint32_t flags)
{
	/* Old kernels take no memory of a file, which this program's own is. */
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
	/* A ring of four has room for one. */
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
		.opcode = ADMIN_FORMAT,
		.nsid = nsid,
		.cdw10 = lba_format,
	};

	return uring_admin(ctrl, &cmd, 0);
}

TEST_F_TIMEOUT(format, changes_the_blocks_by_io_uring, 120)
{
	check_format(_metadata, self, format_by_uring);
}

/* It runs where fixed buffers cannot be had; it needs none. */
TEST_F(format, refuses_fixed_buffers)
{
	struct nvme_uring_cmd cmd = { .opcode = ADMIN_FORMAT, .nsid = 1, .cdw10 = FORMAT_4096 };

	EXPECT_EQ(-EINVAL, uring_admin(&self->ctrl, &cmd, IORING_URING_CMD_FIXED));
	EXPECT_EQ(512, block_size(self->disk));
}

TEST_F(format, with_metadata_leaves_passthrough_only)
{
	uint64_t size = disk_bytes(self->disk);

	ASSERT_EQ(0, format(&self->ctrl, 1, FORMAT_512_META));
	EXPECT_EQ(0, disk_bytes(self->disk));
	EXPECT_NE(0, np_disk_read(self->disk, self->bytes, BYTES, 0));
	/* 8 bytes of metadata that nobody gave room for. */
	EXPECT_EQ(-EINVAL, read_block(self->generic, self->bytes, 512));
	ASSERT_EQ(0, format(&self->ctrl, 1, FORMAT_512));
	EXPECT_EQ(size, disk_bytes(self->disk));
	EXPECT_EQ(0, np_disk_read(self->disk, self->bytes, BYTES, 0));
}

/*
 * Protection information that the controller makes and checks: the disk is as before,
 * and passthrough has to ask for the same, or bring the metadata.
 */
static void check_protection(struct __test_metadata *_metadata, FIXTURE_DATA(format) *self,
			     uint32_t type)
{
	struct nvme_passthru_cmd read = {
		.opcode = NP_CMD_READ,
		.nsid = 1,
		.addr = (uintptr_t)self->bytes,
		.data_len = 512,
	};
	uint64_t size = disk_bytes(self->disk);
	uint8_t *back = self->bytes;
	uint8_t pattern[BYTES];

	ASSERT_EQ(0, format(&self->ctrl, 1, FORMAT_512_META | type << FORMAT_PROTECTION_SHIFT));
	/* What the protection information takes is gone. */
	EXPECT_EQ(size / 520 * 512, disk_bytes(self->disk));
	np_pattern(pattern, BYTES, WHERE, type);
	memcpy(self->bytes, pattern, BYTES);
	EXPECT_EQ(0, np_disk_write(self->disk, self->bytes, BYTES, WHERE));
	memset(back, 0, BYTES);
	EXPECT_EQ(0, np_disk_read(self->disk, back, BYTES, WHERE));
	EXPECT_EQ(0, memcmp(pattern, back, BYTES));
	EXPECT_EQ(-EINVAL, np_ioctl(self->generic, NVME_IOCTL_IO_CMD, &read));
	read.cdw10 = WHERE / NP_BLOCK;
	read.cdw12 = PRACT;
	memset(back, 0, BYTES);
	EXPECT_EQ(0, np_ioctl(self->generic, NVME_IOCTL_IO_CMD, &read));
	EXPECT_EQ(0, memcmp(pattern, back, 512));
	ASSERT_EQ(0, format(&self->ctrl, 1, FORMAT_512));
	EXPECT_EQ(size, disk_bytes(self->disk));
}

TEST_F(format, with_protection_leaves_the_disk)
{
	check_protection(_metadata, self, 1);
	check_protection(_metadata, self, 3);
}

/* Metadata behind each block's data: lengths are those of both. */
TEST_F(format, with_longer_blocks_counts_them_whole)
{
	struct nvme_user_io submit = {
		.opcode = NP_CMD_WRITE,
		.addr = (uintptr_t)self->bytes,
		.slba = 5,
		.nblocks = 1,
	};
	uint8_t pattern[2 * 520];

	ASSERT_EQ(0, format(&self->ctrl, 1, FORMAT_512_META | FORMAT_EXTENDED));
	EXPECT_EQ(0, disk_bytes(self->disk));
	EXPECT_EQ(-EINVAL, read_block(self->generic, self->bytes, 512));
	EXPECT_EQ(0, read_block(self->generic, self->bytes, 520));
	/* The oldest ioctl finds the length itself. */
	np_pattern(pattern, sizeof(pattern), WHERE, 7);
	memcpy(self->bytes, pattern, sizeof(pattern));
	EXPECT_EQ(0, np_ioctl(self->generic, NVME_IOCTL_SUBMIT_IO, &submit));
	memset(self->bytes, 0x55, BYTES);
	submit.opcode = NP_CMD_READ;
	EXPECT_EQ(0, np_ioctl(self->generic, NVME_IOCTL_SUBMIT_IO, &submit));
	EXPECT_EQ(0, memcmp(pattern, self->bytes, sizeof(pattern)));
	EXPECT_EQ(0x55, self->bytes[sizeof(pattern)]);
}

TEST_F(format, that_does_not_exist_changes_nothing)
{
	struct np_reader reader;

	np_pattern(self->bytes, BYTES, WHERE, 4);
	ASSERT_EQ(0, np_disk_write(self->disk, self->bytes, BYTES, WHERE));
	ASSERT_EQ(0, np_reader_start(&reader, &self->ctrl));
	EXPECT_EQ(INVALID_FORMAT, format(&self->ctrl, 1, 15) & STATUS_MASK);
	EXPECT_EQ(INVALID_FORMAT, format_by_uring(&self->ctrl, 1, 15) & STATUS_MASK);
	EXPECT_EQ(512, block_size(self->disk));
	EXPECT_EQ(0, np_reader_stop(&reader));
	memset(self->bytes, 0, BYTES);
	EXPECT_EQ(0, np_disk_read(self->disk, self->bytes, BYTES, WHERE));
	EXPECT_NE(0, self->bytes[0] | self->bytes[1] | self->bytes[2]);
}

/* Ends with NULL if all was well. */
static void *format_badly(void *argument)
{
	return (void *)(intptr_t)((format(argument, 1, 15) & STATUS_MASK) != INVALID_FORMAT);
}

/* The controller is asked about its namespaces after each, which needs a place in its queue. */
TEST_F_TIMEOUT(format, more_at_once_than_the_admin_queue_holds, 120)
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

/* Blocks of 512 bytes that were asked for before there were only larger ones. */
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

TEST_F_TIMEOUT(format, what_waited_and_does_not_fit_fails, 120)
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
		/* Refused by the driver if it had waited, by the block layer after that. */
		EXPECT_TRUE(readers[i].error == -EIO || readers[i].error == -EINVAL) {
			TH_LOG("reader %d: %d", i, readers[i].error);
		}
	}
}

TEST_F(format, is_for_the_administrator)
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

/* What QEMU does not have; I/O that had to wait for the answer goes on. */
TEST_F(format, commands_that_the_controller_does_not_know)
{
	struct nvme_admin_cmd sanitize = { .opcode = ADMIN_SANITIZE, .cdw10 = 2 };
	struct nvme_admin_cmd manage = {
		.opcode = ADMIN_NS_MANAGE,
		.nsid = 1,
		.addr = (uintptr_t)self->bytes,
		.data_len = BYTES,
		/* Select 1: delete. */
		.cdw10 = 1,
	};
	struct np_reader reader;

	ASSERT_EQ(0, np_reader_start(&reader, &self->ctrl));
	EXPECT_EQ(INVALID_OPCODE, np_admin(self->ctrl.fd, &sanitize) & STATUS_MASK);
	EXPECT_EQ(INVALID_OPCODE, np_admin(self->ctrl.fd, &manage) & STATUS_MASK);
	EXPECT_EQ(0, np_reader_stop(&reader));
}

/* A controller list of one: this controller. */
static int attachment(const struct np_ctrl *ctrl, uint8_t *list, uint32_t select, bool uring)
{
	struct nvme_uring_cmd cmd = {
		.opcode = ADMIN_NS_ATTACH,
		.nsid = METADATA_NSID,
		.addr = (uintptr_t)list,
		.data_len = BYTES,
		.cdw10 = select,
	};
	struct nvme_admin_cmd admin = {
		.opcode = ADMIN_NS_ATTACH,
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

/* The namespace goes with its nodes, though one is open, and comes back. */
static void check_attachment(struct __test_metadata *_metadata, FIXTURE_DATA(format) *self,
			     bool uring)
{
	struct nvme_passthru_cmd read = { .opcode = NP_CMD_READ, .nsid = METADATA_NSID };
	struct nvme_peer_info now;
	char path[64];
	int generic;

	generic = np_open_node(&self->ctrl, "/dev/ngp%dn2", O_RDWR);
	ASSERT_LE(0, generic);
	EXPECT_EQ(2, self->info.namespaces);
	ASSERT_EQ(0, attachment(&self->ctrl, self->bytes, NS_DETACH, uring));
	/* By ioctl, it is gone when the command returns. */
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

TEST_F(format, namespace_detached_by_ioctl)
{
	check_attachment(_metadata, self, false);
}

TEST_F(format, namespace_detached_by_io_uring)
{
	check_attachment(_metadata, self, true);
}

/* CAP.NSSRS, bit 36: QEMU cannot be told to reset a subsystem. */
TEST_F(format, subsystem_reset_needs_a_controller_that_can)
{
	struct nvme_peer_info now;

	ASSERT_EQ(0, self->info.cap >> 36 & 1);
	EXPECT_EQ(-ENOTTY, np_ioctl(self->ctrl.fd, NVME_IOCTL_SUBSYS_RESET, NULL));
	ASSERT_EQ(0, np_info(self->ctrl.fd, &now));
	EXPECT_EQ(NVME_PEER_CTRL_LIVE, now.state);
}

TEST_HARNESS_MAIN
