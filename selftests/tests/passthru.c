// SPDX-License-Identifier: GPL-2.0-only
/*
 * The NVMe ioctls on the controller, generic and block nodes: what nvme-cli and libnvme
 * use, and the errors of invalid calls.
 */
#include <errno.h>
#include <fcntl.h>
#include <liburing.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <sys/uio.h>
#include <time.h>
#include <unistd.h>

#include "nptest.h"
#include "kselftest_harness.h"

/* Origin of the Timestamp feature; Host Behavior Support and its LBA format bit. */
#define ORIGIN_HOST		1
#define HOST_BYTES		512
#define HOST_FORMATS		2

/* Identify Controller: bytes, and bits in them. */
#define ID_OAES			92
#define OAES_NAMESPACES		(8 - 8)
#define OAES_FIRMWARE		(9 - 8)
#define ID_CTRATT		96
#define CTRATT_FORMATS		(15 - 8)
#define ID_LPA			261
#define LPA_EFFECTS		1
#define ID_ONCS			520
#define ONCS_DSM		2
#define ONCS_TIMESTAMP		6

/* Status code and type, without More and Do Not Retry. */
#define STATUS(ret)		((ret) & NVME_STATUS_MASK)

#define BYTES	(16 * NP_PAGE)

FIXTURE(passthru)
{
	struct np_ctrl ctrl;
	char before[NP_OBJECTS];
	int generic;
	int block;
	uint8_t *bytes;
	uint8_t *back;
};

FIXTURE_SETUP(passthru)
{
	ASSERT_EQ(0, np_ctrl_open(&self->ctrl, "np0"));
	self->generic = np_open_node(&self->ctrl, "/dev/ngp%dn1", O_RDWR);
	ASSERT_LE(0, self->generic);
	self->block = np_open_node(&self->ctrl, "/dev/nvmep%dn1", O_RDWR | O_DIRECT);
	ASSERT_LE(0, self->block);
	ASSERT_EQ(0, np_objects(&self->ctrl, self->before));
	ASSERT_EQ(0, posix_memalign((void **)&self->bytes, NP_PAGE, BYTES));
	ASSERT_EQ(0, posix_memalign((void **)&self->back, NP_PAGE, BYTES));
	np_pattern(self->bytes, BYTES, NP_AREA(6), 6);
	memset(self->back, 0, BYTES);
}

FIXTURE_TEARDOWN(passthru)
{
	EXPECT_EQ(0, np_objects_wait(&self->ctrl, self->before, NP_TIMEOUT_MS));
	free(self->bytes);
	free(self->back);
	close(self->generic);
	close(self->block);
	np_ctrl_close(&self->ctrl);
}

static struct nvme_passthru_cmd rw(uint8_t opcode, void *bytes, uint32_t length)
{
	return (struct nvme_passthru_cmd){
		.opcode = opcode,
		.nsid = 1,
		.addr = (uintptr_t)bytes,
		.data_len = length,
		.cdw10 = NP_AREA(6) / NP_BLOCK,
		.cdw12 = length / NP_BLOCK - 1,
	};
}

static struct nvme_passthru_cmd64 rw64(uint8_t opcode, const void *bytes, uint32_t length)
{
	return (struct nvme_passthru_cmd64){
		.opcode = opcode,
		.nsid = 1,
		.addr = (uintptr_t)bytes,
		.data_len = length,
		.cdw10 = NP_AREA(6) / NP_BLOCK,
		.cdw12 = length / NP_BLOCK - 1,
	};
}

TEST_F(passthru, ioctl_id_returns_nsid)
{
	EXPECT_EQ(1, np_ioctl(self->generic, NVME_IOCTL_ID, NULL));
	EXPECT_EQ(1, np_ioctl(self->block, NVME_IOCTL_ID, NULL));
}

/*
 * I/O through the controller node may leave the namespace ID out if there is only one
 * namespace.
 */
TEST_F(passthru, controller_node_io_to_only_namespace)
{
	struct nvme_passthru_cmd write = rw(NVMEPEER_OP_WRITE, self->bytes, NP_PAGE);
	struct nvme_passthru_cmd read = rw(NVMEPEER_OP_READ, self->back, NP_PAGE);
	struct nvme_passthru_cmd64 read64 = rw64(NVMEPEER_OP_READ, self->back, NP_PAGE);

	np_spare_needs(self->ctrl.info.namespaces == 1, "a controller with one namespace");
	ASSERT_EQ(0, np_ioctl(self->generic, NVME_IOCTL_IO_CMD, &write));
	EXPECT_EQ(0, np_ioctl(self->ctrl.fd, NVME_IOCTL_IO_CMD, &read));
	EXPECT_EQ(0, memcmp(self->bytes, self->back, NP_PAGE));
	read.nsid = 2;
	EXPECT_EQ(-EINVAL, np_ioctl(self->ctrl.fd, NVME_IOCTL_IO_CMD, &read));
	EXPECT_EQ(-ENOTTY, np_ioctl(self->ctrl.fd, NVME_IOCTL_IO64_CMD, &read64));
}

TEST_F(passthru, controller_node_io_with_several_namespaces)
{
	struct nvme_passthru_cmd read = rw(NVMEPEER_OP_READ, self->back, NP_PAGE);
	struct np_ctrl several;
	int log = np_log_open();

	ASSERT_LE(0, log);
	ASSERT_EQ(0, np_ctrl_open(&several, np_spare_or("np1")));
	np_spare_needs(several.info.namespaces > 1, "a controller with several namespaces");
	EXPECT_EQ(-EINVAL, np_ioctl(several.fd, NVME_IOCTL_IO_CMD, &read));
	EXPECT_EQ(0, np_log_wait(log, "the controller has several namespaces", NP_TIMEOUT_MS));
	np_ctrl_close(&several);
	close(log);
}

/* A controller is reset through its own node only. */
TEST_F(passthru, namespace_node_refuses_reset)
{
	static const unsigned int requests[] = {
		NVME_IOCTL_RESET, NVME_IOCTL_SUBSYS_RESET, NVME_IOCTL_RESCAN,
	};
	size_t i;

	for (i = 0; i < sizeof(requests) / sizeof(requests[0]); i++) {
		EXPECT_EQ(-ENOTTY, np_ioctl(self->generic, requests[i], NULL));
		EXPECT_EQ(-ENOTTY, np_ioctl(self->block, requests[i], NULL));
	}
}

TEST_F(passthru, dsm_range_list_fits_buffer)
{
	struct nvme_passthru_cmd cmd = {
		.opcode = NVMEPEER_OP_DATASET_MANAGEMENT,
		.nsid = 1,
		.addr = (uintptr_t)self->bytes,
		.data_len = 16,
		.cdw10 = 1,
	};

	np_spare_needs(np_identifies(self->ctrl.fd, ID_ONCS, ONCS_DSM), "Dataset Management");
	memset(self->bytes, 0, 32);
	EXPECT_EQ(-EINVAL, np_ioctl(self->generic, NVME_IOCTL_IO_CMD, &cmd));
	cmd.data_len = 32;
	EXPECT_EQ(0, np_ioctl(self->generic, NVME_IOCTL_IO_CMD, &cmd));
}

/* One block more than the caller's buffer. */
TEST_F(passthru, transfer_length_fits_buffer)
{
	static const uint8_t opcodes[] = { NVMEPEER_OP_READ, NVMEPEER_OP_WRITE };
	struct nvme_passthru_cmd64 cmd64;
	struct nvme_passthru_cmd cmd;
	size_t i;

	for (i = 0; i < sizeof(opcodes); i++) {
		cmd = rw(opcodes[i], self->bytes, NP_PAGE);
		cmd.cdw12++;
		EXPECT_EQ(-EINVAL, np_ioctl(self->generic, NVME_IOCTL_IO_CMD, &cmd));
		cmd64 = rw64(opcodes[i], self->bytes, NP_PAGE);
		cmd64.cdw12++;
		cmd64.result = 7;
		EXPECT_EQ(-EINVAL, np_ioctl(self->block, NVME_IOCTL_IO64_CMD, &cmd64));
		EXPECT_EQ(7, cmd64.result);
	}
	/* Data that has to be copied: nothing was read. */
	memset(self->back, 0xee, NP_PAGE + 2);
	cmd = rw(NVMEPEER_OP_READ, self->back + 1, NP_PAGE);
	cmd.cdw12++;
	cmd.result = 7;
	EXPECT_EQ(-EINVAL, np_ioctl(self->generic, NVME_IOCTL_IO_CMD, &cmd));
	EXPECT_EQ(7, cmd.result);
	EXPECT_EQ(0xee, self->back[1]);
}

/*
 * The controller writes the length that the command asks for, whatever the caller's
 * buffer size.
 */
TEST_F(passthru, admin_data_fits_buffer)
{
	struct nvme_admin_cmd cmd = {
		.opcode = NVME_ADMIN_IDENTIFY,
		.addr = (uintptr_t)self->back,
		.data_len = NP_PAGE - NP_BLOCK,
		.cdw10 = 1,
	};

	EXPECT_EQ(-EINVAL, np_admin(self->ctrl.fd, &cmd));
	cmd.data_len = NP_PAGE;
	EXPECT_EQ(0, np_admin(self->ctrl.fd, &cmd));
	cmd = (struct nvme_admin_cmd){
		.opcode = NVME_ADMIN_GET_LOG_PAGE,
		.nsid = NVME_ALL_NAMESPACES,
		.addr = (uintptr_t)self->back,
		.data_len = 512,
		.cdw10 = 128U << 16 | NVME_LOG_HEALTH,
	};
	cmd.data_len = 0;
	EXPECT_EQ(-EINVAL, np_admin(self->ctrl.fd, &cmd));
}

/* A log page is read as far as it fits. */
TEST_F(passthru, long_log_page_is_cut)
{
	struct nvme_admin_cmd cmd = {
		.opcode = NVME_ADMIN_GET_LOG_PAGE,
		.nsid = NVME_ALL_NAMESPACES,
		.addr = (uintptr_t)self->back,
		.data_len = NP_PAGE,
		.cdw10 = (NP_PAGE / 4 - 1) << 16 | NVME_LOG_EFFECTS,
	};

	np_spare_needs(np_identifies(self->ctrl.fd, ID_LPA, LPA_EFFECTS), "the log of commands and effects");
	ASSERT_EQ(0, np_admin(self->ctrl.fd, &cmd));
	ASSERT_TRUE(memcmp(self->back, self->back + 4, NP_PAGE - 4));
	memset(self->bytes, 0xee, NP_PAGE);
	cmd.addr = (uintptr_t)self->bytes;
	cmd.data_len = 1024;
	ASSERT_EQ(0, np_admin(self->ctrl.fd, &cmd));
	EXPECT_EQ(0, memcmp(self->bytes, self->back, 1024));
	memset(self->back, 0xee, NP_PAGE);
	EXPECT_EQ(0, memcmp(self->bytes + 1024, self->back, NP_PAGE - 1024));
	/* A dword less than fits: the last one is not asked for. */
	cmd.cdw10 = (1024 / 4 - 2) << 16 | NVME_LOG_EFFECTS;
	memset(self->bytes, 0xee, NP_PAGE);
	ASSERT_EQ(0, np_admin(self->ctrl.fd, &cmd));
	EXPECT_EQ(0, memcmp(self->bytes + 1020, self->back, NP_PAGE - 1020));
}

/* A command in read-only memory cannot receive its result. */
TEST_F(passthru, read_only_result_is_efault)
{
	struct nvme_passthru_cmd *cmd = mmap(NULL, NP_PAGE, PROT_READ | PROT_WRITE,
					     MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	ASSERT_NE(MAP_FAILED, cmd);
	*cmd = (struct nvme_passthru_cmd){ .opcode = NVMEPEER_OP_FLUSH, .nsid = 1 };
	EXPECT_EQ(0, np_ioctl(self->generic, NVME_IOCTL_IO_CMD, cmd));
	ASSERT_EQ(0, mprotect(cmd, NP_PAGE, PROT_READ));
	EXPECT_EQ(-EFAULT, np_ioctl(self->generic, NVME_IOCTL_IO_CMD, cmd));
	munmap(cmd, NP_PAGE);
}

TEST_F(passthru, io_cmd_writes_and_reads)
{
	uint32_t sizes[] = { NP_BLOCK, NP_PAGE, NP_PAGE + NP_BLOCK, BYTES };
	struct nvme_passthru_cmd cmd;
	size_t i;

	for (i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
		self->bytes[0] = (uint8_t)i;
		cmd = rw(NVMEPEER_OP_WRITE, self->bytes, sizes[i]);
		ASSERT_EQ(0, np_ioctl(self->generic, NVME_IOCTL_IO_CMD, &cmd));
		cmd = rw(NVMEPEER_OP_READ, self->back, sizes[i]);
		ASSERT_EQ(0, np_ioctl(self->block, NVME_IOCTL_IO_CMD, &cmd));
		EXPECT_EQ(0, memcmp(self->bytes, self->back, sizes[i]));
	}
}

/* Data at an offset in a page, which libnvme callers may pass. */
TEST_F(passthru, io_cmd_takes_an_unaligned_buffer)
{
	struct nvme_passthru_cmd cmd = rw(NVMEPEER_OP_WRITE, self->bytes + 512, 3 * NP_PAGE);

	ASSERT_EQ(0, np_ioctl(self->generic, NVME_IOCTL_IO_CMD, &cmd));
	cmd = rw(NVMEPEER_OP_READ, self->back + 4, 3 * NP_PAGE);
	ASSERT_EQ(0, np_ioctl(self->generic, NVME_IOCTL_IO_CMD, &cmd));
	EXPECT_EQ(0, memcmp(self->bytes + 512, self->back + 4, 3 * NP_PAGE));
}

TEST_F(passthru, io64_cmd_and_io64_cmd_vec)
{
	struct iovec parts[3] = {
		{ self->back, NP_PAGE },
		{ self->back + 3 * NP_PAGE, NP_PAGE },
		{ self->back + NP_PAGE, NP_PAGE },
	};
	struct nvme_passthru_cmd64 cmd = rw64(NVMEPEER_OP_WRITE, self->bytes, 3 * NP_PAGE);

	ASSERT_EQ(0, np_ioctl(self->generic, NVME_IOCTL_IO64_CMD, &cmd));
	cmd = rw64(NVMEPEER_OP_READ, parts, 3 * NP_PAGE);
	cmd.vec_cnt = 3;
	ASSERT_EQ(0, np_ioctl(self->generic, NVME_IOCTL_IO64_CMD_VEC, &cmd));
	EXPECT_EQ(0, memcmp(self->bytes, self->back, NP_PAGE));
	EXPECT_EQ(0, memcmp(self->bytes + NP_PAGE, self->back + 3 * NP_PAGE, NP_PAGE));
	EXPECT_EQ(0, memcmp(self->bytes + 2 * NP_PAGE, self->back + NP_PAGE, NP_PAGE));
}

/* Ranges that do not meet at pages, and an empty one. */
TEST_F(passthru, vector_with_gaps)
{
	struct iovec parts[3] = {
		{ self->bytes + NP_BLOCK, NP_BLOCK },
		{ self->bytes + 4 * NP_PAGE, NP_PAGE - NP_BLOCK },
		{ self->bytes, 0 },
	};
	struct nvme_passthru_cmd64 cmd = rw64(NVMEPEER_OP_WRITE, parts, NP_PAGE);

	cmd.vec_cnt = 2;
	ASSERT_EQ(0, np_ioctl(self->generic, NVME_IOCTL_IO64_CMD_VEC, &cmd));
	cmd = rw64(NVMEPEER_OP_READ, self->back, NP_PAGE);
	ASSERT_EQ(0, np_ioctl(self->generic, NVME_IOCTL_IO64_CMD, &cmd));
	EXPECT_EQ(0, memcmp(parts[0].iov_base, self->back, NP_BLOCK));
	EXPECT_EQ(0, memcmp(parts[1].iov_base, self->back + NP_BLOCK, NP_PAGE - NP_BLOCK));
	parts[0].iov_base = self->back + 2 * NP_PAGE;
	parts[1].iov_base = self->back + 3 * NP_PAGE + NP_BLOCK;
	cmd = rw64(NVMEPEER_OP_READ, parts, NP_PAGE);
	cmd.vec_cnt = 3;
	ASSERT_EQ(0, np_ioctl(self->generic, NVME_IOCTL_IO64_CMD_VEC, &cmd));
	EXPECT_EQ(0, memcmp(self->back, parts[0].iov_base, NP_BLOCK));
	EXPECT_EQ(0, memcmp(self->back + NP_BLOCK, parts[1].iov_base, NP_PAGE - NP_BLOCK));
}

/* Also for a command without data. */
TEST_F(passthru, vector_without_bytes)
{
	struct iovec empty = { self->bytes, 0 };
	struct nvme_passthru_cmd64 cmd = {
		.opcode = NVMEPEER_OP_FLUSH,
		.nsid = 1,
		.addr = (uintptr_t)&empty,
		.vec_cnt = 1,
	};

	EXPECT_EQ(-EINVAL, np_ioctl(self->generic, NVME_IOCTL_IO64_CMD_VEC, &cmd));
}

TEST_F(passthru, submit_io_on_the_block_device)
{
	struct nvme_user_io io = {
		.opcode = NVMEPEER_OP_WRITE,
		.nblocks = 7,
		.addr = (uintptr_t)self->bytes,
		.slba = NP_AREA(6) / NP_BLOCK,
	};

	ASSERT_EQ(0, np_ioctl(self->block, NVME_IOCTL_SUBMIT_IO, &io));
	io.opcode = NVMEPEER_OP_READ;
	io.addr = (uintptr_t)self->back;
	ASSERT_EQ(0, np_ioctl(self->block, NVME_IOCTL_SUBMIT_IO, &io));
	EXPECT_EQ(0, memcmp(self->bytes, self->back, 8 * NP_BLOCK));
	io.opcode = NVMEPEER_OP_COMPARE;
	EXPECT_EQ(0, np_ioctl(self->block, NVME_IOCTL_SUBMIT_IO, &io));
	io.slba = 1ULL << 40;
	EXPECT_EQ(NVME_SC_LBA_RANGE, STATUS(np_ioctl(self->block, NVME_IOCTL_SUBMIT_IO, &io)));
	io.opcode = NVMEPEER_OP_WRITE_ZEROES;
	EXPECT_EQ(-EINVAL, np_ioctl(self->block, NVME_IOCTL_SUBMIT_IO, &io));
}

/* The structure of 32-bit programs on x86 has no padding at its end. */
TEST_F(passthru, submit_io_of_32_bit_programs)
{
	size_t size = offsetof(struct nvme_user_io, appmask) + sizeof(uint16_t);
	unsigned long request = _IOC(_IOC_WRITE, 'N', 0x42, size);
	struct nvme_user_io io = {
		.opcode = NVMEPEER_OP_READ,
		.addr = (uintptr_t)self->back,
		.slba = NP_AREA(6) / NP_BLOCK,
	};
	void *end = self->back + BYTES - size;

	memcpy(end, &io, size);
	EXPECT_EQ(0, np_ioctl(self->block, request, end));
	EXPECT_EQ(0, np_ioctl(self->generic, request, end));
	io.flags = 1;
	memcpy(end, &io, size);
	EXPECT_EQ(-EINVAL, np_ioctl(self->generic, request, end));
}

/* Completed reads and their sectors, from the statistics of the disk. */
static int count_reads(const struct np_ctrl *ctrl, unsigned long *reads, unsigned long *sectors)
{
	char path[64], text[256];
	int ret;

	snprintf(path, sizeof(path), "/sys/block/nvmep%dn1/stat", ctrl->instance);
	ret = np_read_file(path, text, sizeof(text));
	if (ret)
		return ret;
	return sscanf(text, "%lu %*u %lu", reads, sectors) == 2 ? 0 : -EIO;
}

/* @length bytes, a page at most, read by io_uring, which needs no bio: its result. */
static int read_by_ring(int generic, void *bytes, uint32_t length)
{
	struct nvme_uring_cmd cmd = {
		.opcode = NVMEPEER_OP_READ,
		.nsid = 1,
		.addr = (uintptr_t)bytes,
		.data_len = length,
		.cdw12 = length / NP_BLOCK - 1,
	};
	struct io_uring_cqe *cqe;
	struct io_uring_sqe *sqe;
	struct io_uring ring;
	int ret = io_uring_queue_init(4, &ring, IORING_SETUP_SQE128 | IORING_SETUP_CQE32);

	if (ret)
		return ret;
	sqe = io_uring_get_sqe(&ring);
	ret = -EIO;
	if (sqe) {
		memset(sqe, 0, 2 * sizeof(*sqe));
		sqe->opcode = IORING_OP_URING_CMD;
		sqe->fd = generic;
		sqe->cmd_op = NVME_URING_CMD_IO;
		memcpy(sqe->cmd, &cmd, sizeof(cmd));
		if (io_uring_submit(&ring) == 1)
			ret = io_uring_wait_cqe(&ring, &cqe) ?: cqe->res;
	}
	io_uring_queue_exit(&ring);
	return ret;
}

/* The administrator may choose to have passthrough in the statistics of a disk. */
TEST_F(passthru, commands_are_counted_if_chosen)
{
	unsigned long reads[3], sectors[3];
	char path[64];
	int i;

	snprintf(path, sizeof(path), "/sys/block/nvmep%dn1/queue/iostats_passthrough",
		 self->ctrl.instance);
	if (access(path, F_OK))
		SKIP(return, "this kernel never counts passthrough");
	for (i = 0; i < 3; i++) {
		ASSERT_EQ(0, count_reads(&self->ctrl, &reads[i], &sectors[i]));
		ASSERT_EQ(0, np_write_file(path, i ? "0" : "1"));
		ASSERT_EQ(0, read_by_ring(self->generic, self->back, NP_PAGE));
	}
	EXPECT_EQ(reads[0] + 1, reads[1]);
	EXPECT_EQ(sectors[0] + NP_PAGE / 512, sectors[1]);
	EXPECT_EQ(reads[1], reads[2]);
}

/* Trace events @name of the disk with the text @length. */
static int count_events(const struct np_ctrl *ctrl, const char *name, const char *length)
{
	char path[64], start[64];
	const char *const texts[] = { start, length, NULL };
	struct stat info;

	snprintf(path, sizeof(path), "/dev/nvmep%dn1", ctrl->instance);
	if (stat(path, &info))
		return -errno;
	snprintf(start, sizeof(start), "%s: %u,%u ", name, major(info.st_rdev),
		 minor(info.st_rdev));
	return np_count_trace(NP_TRACE "trace", texts);
}

/* blktrace reads the same events. No other reader of the disk reads seven blocks. */
TEST_F(passthru, block_events_have_its_length)
{
	if (access(NP_TRACE "events/block", F_OK))
		SKIP(return, "kernel without events of block devices");
	ASSERT_EQ(0, np_clear_trace());
	ASSERT_EQ(0, np_write_file(NP_TRACE "events/block/enable", "1"));
	EXPECT_EQ(0, read_by_ring(self->generic, self->back, 7 * NP_BLOCK));
	EXPECT_EQ(0, np_write_file(NP_TRACE "events/block/enable", "0"));
	EXPECT_EQ(1, count_events(&self->ctrl, "block_rq_issue", " 3584 ()"));
	EXPECT_EQ(1, count_events(&self->ctrl, "block_rq_complete", " + 7 "));
}

TEST_F(passthru, admin_identify_and_result)
{
	struct nvme_admin_cmd cmd = {
		.opcode = NVME_ADMIN_IDENTIFY,
		.addr = (uintptr_t)self->back,
		.data_len = NP_PAGE,
		.cdw10 = 1,
	};
	struct nvme_passthru_cmd64 cmd64 = {
		.opcode = NVME_ADMIN_GET_FEATURES,
		.cdw10 = NVME_FEATURE_QUEUES,
	};
	char path[64], serial[32];

	snprintf(path, sizeof(path), "/sys/class/nvme-peer/nvmep%d/serial", self->ctrl.instance);
	ASSERT_EQ(0, np_read_file(path, serial, sizeof(serial)));
	ASSERT_LT(1, strlen(serial));
	ASSERT_EQ(0, np_admin(self->ctrl.fd, &cmd));
	EXPECT_EQ(0, memcmp(serial, self->back + 4, strlen(serial) - 1));
	/* For no namespace, by the node of one. */
	EXPECT_EQ(0, np_admin(self->generic, &cmd));
	ASSERT_EQ(0, np_ioctl(self->ctrl.fd, NVME_IOCTL_ADMIN64_CMD, &cmd64));
	/*
	 * Numbers of queues, 0-based, submission in the low and completion in the high
	 * half.
	 */
	EXPECT_LE(self->ctrl.info.qids_total, (cmd64.result & 0xffff) + 1);
	EXPECT_NE(0, cmd64.result);
}

/* Those that the driver handles, and that the controller has. */
TEST_F(passthru, changes_of_namespaces_are_events)
{
	uint32_t has = (np_identifies(self->ctrl.fd, ID_OAES + 1, OAES_NAMESPACES) ? 0x100U : 0) |
		       (np_identifies(self->ctrl.fd, ID_OAES + 1, OAES_FIRMWARE) ? 0x200U : 0);
	struct nvme_admin_cmd feature = {
		.opcode = NVME_ADMIN_GET_FEATURES,
		.cdw10 = NVME_FEATURE_EVENTS,
	};

	EXPECT_TRUE(np_spare() || has & 0x100U);
	ASSERT_EQ(0, np_admin(self->ctrl.fd, &feature));
	EXPECT_EQ(has, feature.result & ~0xffU);
	/* All critical warnings; others may lack some. */
	if (!np_spare())
		EXPECT_EQ(0x1f, feature.result & 0xffU);
}

/*
 * Data that must be copied, with more pages than a bio has: what the controller does
 * not return is zeros, and nothing is written behind it.
 */
TEST_F(passthru, long_copies)
{
	static const uint32_t lengths[] = { (1 << 20) + 1, (2 << 20) + 2, (5 << 20) + 3 };
	struct nvme_admin_cmd cmd = {
		.opcode = NVME_ADMIN_IDENTIFY,
		.addr = (uintptr_t)self->back,
		.data_len = NP_PAGE,
		.cdw10 = 1,
	};
	uint8_t *bytes = malloc((6 << 20));
	size_t i, at;

	ASSERT_NE(NULL, bytes);
	ASSERT_EQ(0, np_admin(self->ctrl.fd, &cmd));
	for (i = 0; i < ARRAY_SIZE(lengths); i++) {
		memset(bytes, 0x5a, 6 << 20);
		cmd.addr = (uintptr_t)bytes + 1;
		cmd.data_len = lengths[i];
		ASSERT_EQ(0, np_admin(self->ctrl.fd, &cmd)) TH_LOG("%u bytes", lengths[i]);
		EXPECT_EQ(0, memcmp(bytes + 1, self->back, NP_PAGE));
		for (at = 1 + NP_PAGE; at < 1 + lengths[i] && !bytes[at]; at++)
			;
		EXPECT_EQ(1 + lengths[i], at);
		EXPECT_EQ(0x5a, bytes[at]);
		EXPECT_EQ(0x5a, bytes[0]);
	}
	free(bytes);
}

/* Data to write that must be copied; a copy that cannot be made writes nothing. */
TEST_F(passthru, copied_write)
{
	uint8_t *odd = self->bytes + 1, *mapping;
	struct nvme_passthru_cmd cmd = rw(NVMEPEER_OP_WRITE, odd, NP_PAGE);

	ASSERT_EQ(0, np_ioctl(self->generic, NVME_IOCTL_IO_CMD, &cmd));
	mapping = mmap(NULL, 2 * NP_PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	ASSERT_NE(MAP_FAILED, mapping);
	ASSERT_EQ(0, munmap(mapping + NP_PAGE, NP_PAGE));
	cmd = rw(NVMEPEER_OP_WRITE, mapping + 1, NP_PAGE);
	EXPECT_EQ(-EFAULT, np_ioctl(self->generic, NVME_IOCTL_IO_CMD, &cmd));
	cmd = rw(NVMEPEER_OP_READ, self->back, NP_PAGE);
	ASSERT_EQ(0, np_ioctl(self->generic, NVME_IOCTL_IO_CMD, &cmd));
	EXPECT_EQ(0, memcmp(odd, self->back, NP_PAGE));
	/* Nothing is copied back, so the memory may be read-only. */
	ASSERT_EQ(0, mprotect(mapping, NP_PAGE, PROT_READ));
	cmd = rw(NVMEPEER_OP_WRITE, mapping + 1, NP_PAGE - NP_BLOCK);
	EXPECT_EQ(0, np_ioctl(self->generic, NVME_IOCTL_IO_CMD, &cmd));
	munmap(mapping, NP_PAGE);
}

/* Such data by several bios, which the block layer needs to count it. */
TEST_F(passthru, long_copy_is_counted)
{
	uint32_t length = self->ctrl.info.max_transfer;
	unsigned long reads[2], sectors[2];
	uint8_t *bytes = malloc(length + 1);
	struct nvme_passthru_cmd cmd;
	char path[64];

	snprintf(path, sizeof(path), "/sys/block/nvmep%dn1/queue/iostats_passthrough",
		 self->ctrl.instance);
	if (access(path, F_OK))
		SKIP(return, "this kernel never counts passthrough");
	ASSERT_NE(NULL, bytes);
	ASSERT_EQ(0, np_write_file(path, "1"));
	ASSERT_EQ(0, count_reads(&self->ctrl, &reads[0], &sectors[0]));
	cmd = rw(NVMEPEER_OP_READ, bytes + 1, length);
	EXPECT_EQ(0, np_ioctl(self->generic, NVME_IOCTL_IO_CMD, &cmd)) TH_LOG("%u bytes", length);
	EXPECT_EQ(0, count_reads(&self->ctrl, &reads[1], &sectors[1]));
	ASSERT_EQ(0, np_write_file(path, "0"));
	EXPECT_EQ(reads[0] + 1, reads[1]);
	EXPECT_EQ(sectors[0] + length / 512, sectors[1]);
	free(bytes);
}

static int feature(int fd, uint8_t opcode, uint8_t number, void *value, uint32_t length)
{
	struct nvme_admin_cmd cmd = {
		.opcode = opcode,
		.addr = (uintptr_t)value,
		.data_len = length,
		.cdw10 = number,
	};

	return np_admin(fd, &cmd);
}

/* The controller's timestamp in milliseconds since 1970, set by the driver. */
static int64_t time_of(int fd)
{
	uint64_t clock;

	if (feature(fd, NVME_ADMIN_GET_FEATURES, NVME_FEATURE_TIMESTAMP, &clock, sizeof(clock)) ||
	    (clock >> 49 & 7) != ORIGIN_HOST)
		return -1;
	return (int64_t)(clock & ((1ULL << 48) - 1));
}

/* Set again after each reset. */
TEST_F(passthru, host_features_are_set)
{
	uint64_t wrong = 1000;
	struct timespec now;
	int i;

	np_spare_needs(np_identifies(self->ctrl.fd, ID_ONCS, ONCS_TIMESTAMP) &&
		       np_identifies(self->ctrl.fd, ID_CTRATT + 1, CTRATT_FORMATS),
		       "the features Timestamp and Host Behavior Support");
	for (i = 0; i < 2; i++) {
		clock_gettime(CLOCK_REALTIME, &now);
		EXPECT_GT(60000, llabs(time_of(self->ctrl.fd) - (int64_t)now.tv_sec * 1000));
		ASSERT_EQ(0, feature(self->ctrl.fd, NVME_ADMIN_GET_FEATURES,
				     NVME_FEATURE_HOST_BEHAVIOR, self->back, HOST_BYTES));
		EXPECT_EQ(1, self->back[HOST_FORMATS]);
		ASSERT_EQ(0, feature(self->ctrl.fd, NVME_ADMIN_SET_FEATURES, NVME_FEATURE_TIMESTAMP,
				     &wrong, sizeof(wrong)));
		ASSERT_EQ(0, np_ioctl(self->ctrl.fd, NVME_IOCTL_RESET, NULL));
	}
}

/* A command that the controller fails returns its status, not an errno. */
TEST_F(passthru, nvme_status_is_the_return_value)
{
	struct nvme_passthru_cmd cmd = rw(NVMEPEER_OP_READ, self->back, NP_PAGE);
	struct nvme_admin_cmd admin = { .opcode = NVME_ADMIN_GET_FEATURES, .cdw10 = 0x7f };

	cmd.cdw11 = 0x1000;
	EXPECT_EQ(NVME_SC_LBA_RANGE, STATUS(np_ioctl(self->generic, NVME_IOCTL_IO_CMD, &cmd)));
	EXPECT_EQ(NVME_SC_INVALID_FIELD, STATUS(np_admin(self->ctrl.fd, &admin)));
	admin.opcode = 0x7f;
	EXPECT_EQ(NVME_SC_INVALID_OPCODE, STATUS(np_admin(self->ctrl.fd, &admin)));
}

TEST_F(passthru, invalid_calls_return_errno)
{
	struct iovec parts[2] = { { self->back, NP_PAGE }, { (void *)NP_PAGE, NP_PAGE } };
	struct nvme_passthru_cmd cmd = rw(NVMEPEER_OP_READ, self->back, NP_PAGE);
	struct nvme_passthru_cmd64 cmd64;

	EXPECT_EQ(-ENOTTY, np_ioctl(self->generic, _IO('N', 0x7f), &cmd));
	EXPECT_EQ(-ENOTTY, np_ioctl(self->ctrl.fd, _IO('N', 0x7f), &cmd));
	EXPECT_EQ(-EFAULT, np_ioctl(self->generic, NVME_IOCTL_IO_CMD, NULL));

	cmd.flags = 0x40;
	EXPECT_EQ(-EINVAL, np_ioctl(self->generic, NVME_IOCTL_IO_CMD, &cmd));
	cmd = rw(NVMEPEER_OP_READ, self->back, NP_PAGE);
	cmd.nsid = 2;
	EXPECT_EQ(-EINVAL, np_ioctl(self->generic, NVME_IOCTL_IO_CMD, &cmd));
	cmd = rw(NVMEPEER_OP_READ, (void *)8, NP_PAGE);
	EXPECT_EQ(-EFAULT, np_ioctl(self->generic, NVME_IOCTL_IO_CMD, &cmd));
	cmd64 = rw64(NVMEPEER_OP_READ, (void *)8, NP_PAGE);
	cmd64.vec_cnt = 1;
	EXPECT_EQ(-EFAULT, np_ioctl(self->generic, NVME_IOCTL_IO64_CMD_VEC, &cmd64));
	cmd64 = rw64(NVMEPEER_OP_READ, parts, 2 * NP_PAGE);
	cmd64.vec_cnt = 2;
	EXPECT_EQ(-EFAULT, np_ioctl(self->generic, NVME_IOCTL_IO64_CMD_VEC, &cmd64));
	cmd64 = rw64(NVMEPEER_OP_WRITE, (void *)6, NP_PAGE);
	EXPECT_EQ(-EFAULT, np_ioctl(self->generic, NVME_IOCTL_IO64_CMD, &cmd64));
}

TEST_F(passthru, oversized_transfer_is_refused)
{
	struct nvme_passthru_cmd cmd;
	char path[64], text[32];
	uint32_t length;
	uint8_t *bytes;

	snprintf(path, sizeof(path), "/sys/block/nvmep%dn1/queue/max_hw_sectors_kb",
		 self->ctrl.instance);
	ASSERT_EQ(0, np_read_file(path, text, sizeof(text)));
	length = (uint32_t)strtoul(text, NULL, 10) * 1024 + NP_PAGE;
	ASSERT_LE(length, self->ctrl.info.max_transfer + NP_PAGE);
	ASSERT_EQ(0, posix_memalign((void **)&bytes, NP_PAGE, length));
	cmd = rw(NVMEPEER_OP_READ, bytes, length);
	EXPECT_EQ(-EINVAL, np_ioctl(self->generic, NVME_IOCTL_IO_CMD, &cmd));
	cmd = rw(NVMEPEER_OP_READ, bytes, length - NP_PAGE);
	EXPECT_EQ(0, np_ioctl(self->generic, NVME_IOCTL_IO_CMD, &cmd));
	free(bytes);
}

TEST_HARNESS_MAIN
