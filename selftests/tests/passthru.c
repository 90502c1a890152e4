// SPDX-License-Identifier: GPL-2.0-only
/*
 * The standard NVMe ioctls on the controller, generic and block nodes: what
 * nvme-cli and libnvme rely on, and what they get for a wrong call.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/uio.h>
#include <time.h>
#include <unistd.h>

#include "nptest.h"
#include "kselftest_harness.h"

#define ADMIN_IDENTIFY		0x06
#define ADMIN_GET_FEATURES	0x0a
#define FEATURE_QUEUES		0x07
#define FEATURE_TIMESTAMP	0x0e
#define FEATURE_HOST		0x16
/* Who set a controller's clock; what it knows of its host, and whether that knows all formats. */
#define ORIGIN_HOST		1
#define HOST_BYTES		512
#define HOST_FORMATS		2
#define DATASET_MANAGEMENT	0x09
#define LOG_HEALTH	0x02

/* Status code and its type, without More and Do Not Retry. */
#define STATUS(ret)		((ret) & 0x7ff)
#define STATUS_BAD_OPCODE	0x001
#define STATUS_BAD_FIELD	0x002
#define STATUS_LBA_RANGE	0x080

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
	EXPECT_EQ(0, np_objects_settle(&self->ctrl, self->before, 2000));
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

TEST_F(passthru, id_is_the_namespace)
{
	EXPECT_EQ(1, np_ioctl(self->generic, NVME_IOCTL_ID, NULL));
	EXPECT_EQ(1, np_ioctl(self->block, NVME_IOCTL_ID, NULL));
}

/* By the controller's node, whose namespace need not be named if it is the only one. */
TEST_F(passthru, the_controllers_node_takes_io_for_its_only_namespace)
{
	struct nvme_passthru_cmd write = rw(NP_CMD_WRITE, self->bytes, NP_PAGE);
	struct nvme_passthru_cmd read = rw(NP_CMD_READ, self->back, NP_PAGE);
	struct nvme_passthru_cmd64 read64 = rw64(NP_CMD_READ, self->back, NP_PAGE);
	int log = np_log_open();
	struct np_ctrl several;

	ASSERT_LE(0, log);
	ASSERT_EQ(0, np_ioctl(self->generic, NVME_IOCTL_IO_CMD, &write));
	EXPECT_EQ(0, np_ioctl(self->ctrl.fd, NVME_IOCTL_IO_CMD, &read));
	EXPECT_EQ(0, memcmp(self->bytes, self->back, NP_PAGE));
	read.nsid = 2;
	EXPECT_EQ(-EINVAL, np_ioctl(self->ctrl.fd, NVME_IOCTL_IO_CMD, &read));
	EXPECT_EQ(-ENOTTY, np_ioctl(self->ctrl.fd, NVME_IOCTL_IO64_CMD, &read64));
	ASSERT_EQ(0, np_ctrl_open(&several, "np1"));
	read.nsid = 1;
	EXPECT_EQ(-EINVAL, np_ioctl(several.fd, NVME_IOCTL_IO_CMD, &read));
	EXPECT_EQ(0, np_log_wait(log, "there are several namespaces", NP_TIMEOUT_MS));
	np_ctrl_close(&several);
	close(log);
}

/* What is done to a controller is done by its own node. */
TEST_F(passthru, the_node_of_a_namespace_resets_nothing)
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

TEST_F(passthru, a_list_of_ranges_ends_with_its_buffer)
{
	struct nvme_passthru_cmd cmd = {
		.opcode = DATASET_MANAGEMENT,
		.nsid = 1,
		.addr = (uintptr_t)self->bytes,
		.data_len = 16,
		.cdw10 = 1,
	};

	memset(self->bytes, 0, 32);
	EXPECT_EQ(-EINVAL, np_ioctl(self->generic, NVME_IOCTL_IO_CMD, &cmd));
	cmd.data_len = 32;
	EXPECT_EQ(0, np_ioctl(self->generic, NVME_IOCTL_IO_CMD, &cmd));
}

/* A block more than the caller has room for. */
TEST_F(passthru, blocks_end_with_their_buffer)
{
	static const uint8_t opcodes[] = { NP_CMD_READ, NP_CMD_WRITE };
	struct nvme_passthru_cmd64 cmd64;
	struct nvme_passthru_cmd cmd;
	size_t i;

	for (i = 0; i < sizeof(opcodes); i++) {
		cmd = rw(opcodes[i], self->bytes, NP_PAGE);
		cmd.cdw12++;
		EXPECT_EQ(-EINVAL, np_ioctl(self->generic, NVME_IOCTL_IO_CMD, &cmd));
		cmd64 = rw64(opcodes[i], self->bytes, NP_PAGE);
		cmd64.cdw12++;
		EXPECT_EQ(-EINVAL, np_ioctl(self->block, NVME_IOCTL_IO64_CMD, &cmd64));
	}
}

/* The controller writes what a command asks for, however little the caller has room for. */
TEST_F(passthru, an_admin_answer_fits_its_buffer)
{
	struct nvme_admin_cmd cmd = {
		.opcode = ADMIN_IDENTIFY,
		.addr = (uintptr_t)self->back,
		.data_len = NP_PAGE - NP_BLOCK,
		.cdw10 = 1,
	};

	EXPECT_EQ(-EINVAL, np_admin(self->ctrl.fd, &cmd));
	cmd.data_len = NP_PAGE;
	EXPECT_EQ(0, np_admin(self->ctrl.fd, &cmd));
	/* 128 dwords of the health log, and one more. */
	cmd = (struct nvme_admin_cmd){
		.opcode = NP_ADMIN_GET_LOG,
		.nsid = 0xffffffff,
		.addr = (uintptr_t)self->back,
		.data_len = 512,
		.cdw10 = 128U << 16 | LOG_HEALTH,
	};
	EXPECT_EQ(-EINVAL, np_admin(self->ctrl.fd, &cmd));
	cmd.cdw10 = 127U << 16 | LOG_HEALTH;
	EXPECT_EQ(0, np_admin(self->ctrl.fd, &cmd));
	/* The number's upper half is in the next dword. */
	cmd.cdw11 = 1;
	EXPECT_EQ(-EINVAL, np_admin(self->ctrl.fd, &cmd));
}

/* A command in memory that may only be read has no place for its answer. */
TEST_F(passthru, an_answer_needs_its_place)
{
	struct nvme_passthru_cmd *cmd = mmap(NULL, NP_PAGE, PROT_READ | PROT_WRITE,
					     MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	ASSERT_NE(MAP_FAILED, cmd);
	*cmd = (struct nvme_passthru_cmd){ .opcode = NP_CMD_FLUSH, .nsid = 1 };
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
		cmd = rw(NP_CMD_WRITE, self->bytes, sizes[i]);
		ASSERT_EQ(0, np_ioctl(self->generic, NVME_IOCTL_IO_CMD, &cmd));
		cmd = rw(NP_CMD_READ, self->back, sizes[i]);
		ASSERT_EQ(0, np_ioctl(self->block, NVME_IOCTL_IO_CMD, &cmd));
		EXPECT_EQ(0, memcmp(self->bytes, self->back, sizes[i]));
	}
}

/* Data that starts within a page, as libnvme callers may pass it. */
TEST_F(passthru, io_cmd_takes_an_unaligned_buffer)
{
	struct nvme_passthru_cmd cmd = rw(NP_CMD_WRITE, self->bytes + 512, 3 * NP_PAGE);

	ASSERT_EQ(0, np_ioctl(self->generic, NVME_IOCTL_IO_CMD, &cmd));
	cmd = rw(NP_CMD_READ, self->back + 4, 3 * NP_PAGE);
	ASSERT_EQ(0, np_ioctl(self->generic, NVME_IOCTL_IO_CMD, &cmd));
	EXPECT_EQ(0, memcmp(self->bytes + 512, self->back + 4, 3 * NP_PAGE));
}

TEST_F(passthru, io64_cmd_and_its_vectored_form)
{
	struct iovec parts[3] = {
		{ self->back, NP_PAGE },
		{ self->back + 3 * NP_PAGE, NP_PAGE },
		{ self->back + NP_PAGE, NP_PAGE },
	};
	struct nvme_passthru_cmd64 cmd = rw64(NP_CMD_WRITE, self->bytes, 3 * NP_PAGE);

	ASSERT_EQ(0, np_ioctl(self->generic, NVME_IOCTL_IO64_CMD, &cmd));
	cmd = rw64(NP_CMD_READ, parts, 3 * NP_PAGE);
	cmd.vec_cnt = 3;
	ASSERT_EQ(0, np_ioctl(self->generic, NVME_IOCTL_IO64_CMD_VEC, &cmd));
	EXPECT_EQ(0, memcmp(self->bytes, self->back, NP_PAGE));
	EXPECT_EQ(0, memcmp(self->bytes + NP_PAGE, self->back + 3 * NP_PAGE, NP_PAGE));
	EXPECT_EQ(0, memcmp(self->bytes + 2 * NP_PAGE, self->back + NP_PAGE, NP_PAGE));
}

TEST_F(passthru, submit_io_on_the_block_device)
{
	struct nvme_user_io io = {
		.opcode = NP_CMD_WRITE,
		.nblocks = 7,
		.addr = (uintptr_t)self->bytes,
		.slba = NP_AREA(6) / NP_BLOCK,
	};

	ASSERT_EQ(0, np_ioctl(self->block, NVME_IOCTL_SUBMIT_IO, &io));
	io.opcode = NP_CMD_READ;
	io.addr = (uintptr_t)self->back;
	ASSERT_EQ(0, np_ioctl(self->block, NVME_IOCTL_SUBMIT_IO, &io));
	EXPECT_EQ(0, memcmp(self->bytes, self->back, 8 * NP_BLOCK));
}

TEST_F(passthru, admin_identify_and_result)
{
	struct nvme_admin_cmd cmd = {
		.opcode = ADMIN_IDENTIFY,
		.addr = (uintptr_t)self->back,
		.data_len = NP_PAGE,
		.cdw10 = 1,
	};
	struct nvme_passthru_cmd64 cmd64 = {
		.opcode = ADMIN_GET_FEATURES,
		.cdw10 = FEATURE_QUEUES,
	};

	ASSERT_EQ(0, np_admin(self->ctrl.fd, &cmd));
	EXPECT_EQ(0, memcmp("np0 ", self->back + 4, 4));
	ASSERT_EQ(0, np_ioctl(self->ctrl.fd, NVME_IOCTL_ADMIN64_CMD, &cmd64));
	/* Queues, 0-based, submission in the low and completion in the high half. */
	EXPECT_LE(self->ctrl.info.qids_total, (cmd64.result & 0xffff) + 1);
	EXPECT_NE(0, cmd64.result);
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

/* Milliseconds since 1970, by the controller's clock, which the host has set. */
static int64_t time_of(int fd)
{
	uint64_t clock;

	if (feature(fd, ADMIN_GET_FEATURES, FEATURE_TIMESTAMP, &clock, sizeof(clock)) ||
	    (clock >> 49 & 7) != ORIGIN_HOST)
		return -1;
	return (int64_t)(clock & ((1ULL << 48) - 1));
}

/* Again after each reset. */
TEST_F(passthru, the_controller_is_told_of_its_host)
{
	uint64_t wrong = 1000;
	struct timespec now;
	int i;

	for (i = 0; i < 2; i++) {
		clock_gettime(CLOCK_REALTIME, &now);
		EXPECT_GT(60000, llabs(time_of(self->ctrl.fd) - (int64_t)now.tv_sec * 1000));
		ASSERT_EQ(0, feature(self->ctrl.fd, ADMIN_GET_FEATURES, FEATURE_HOST, self->back,
				     HOST_BYTES));
		EXPECT_EQ(1, self->back[HOST_FORMATS]);
		ASSERT_EQ(0, feature(self->ctrl.fd, NP_ADMIN_SET_FEATURES, FEATURE_TIMESTAMP,
				     &wrong, sizeof(wrong)));
		ASSERT_EQ(0, np_ioctl(self->ctrl.fd, NVME_IOCTL_RESET, NULL));
	}
}

/* A command that the controller refuses returns its status, not an errno. */
TEST_F(passthru, nvme_status_is_the_return_value)
{
	struct nvme_passthru_cmd cmd = rw(NP_CMD_READ, self->back, NP_PAGE);
	struct nvme_admin_cmd admin = { .opcode = ADMIN_GET_FEATURES, .cdw10 = 0x7f };

	cmd.cdw11 = 0x1000;
	EXPECT_EQ(STATUS_LBA_RANGE, STATUS(np_ioctl(self->generic, NVME_IOCTL_IO_CMD, &cmd)));
	EXPECT_EQ(STATUS_BAD_FIELD, STATUS(np_admin(self->ctrl.fd, &admin)));
	admin.opcode = 0x7f;
	EXPECT_EQ(STATUS_BAD_OPCODE, STATUS(np_admin(self->ctrl.fd, &admin)));
}

TEST_F(passthru, wrong_calls_have_an_errno)
{
	struct nvme_passthru_cmd cmd = rw(NP_CMD_READ, self->back, NP_PAGE);
	struct nvme_passthru_cmd64 cmd64;

	EXPECT_EQ(-ENOTTY, np_ioctl(self->generic, _IO('N', 0x7f), &cmd));
	EXPECT_EQ(-ENOTTY, np_ioctl(self->ctrl.fd, _IO('N', 0x7f), &cmd));
	EXPECT_EQ(-EFAULT, np_ioctl(self->generic, NVME_IOCTL_IO_CMD, NULL));

	cmd.flags = 0x40;
	EXPECT_EQ(-EINVAL, np_ioctl(self->generic, NVME_IOCTL_IO_CMD, &cmd));
	cmd = rw(NP_CMD_READ, self->back, NP_PAGE);
	cmd.nsid = 2;
	EXPECT_EQ(-EINVAL, np_ioctl(self->generic, NVME_IOCTL_IO_CMD, &cmd));
	cmd = rw(NP_CMD_READ, (void *)8, NP_PAGE);
	EXPECT_EQ(-EFAULT, np_ioctl(self->generic, NVME_IOCTL_IO_CMD, &cmd));
	cmd64 = rw64(NP_CMD_READ, (void *)8, NP_PAGE);
	cmd64.vec_cnt = 1;
	EXPECT_EQ(-EFAULT, np_ioctl(self->generic, NVME_IOCTL_IO64_CMD_VEC, &cmd64));
}

TEST_F(passthru, more_than_a_command_can_carry_is_refused)
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
	cmd = rw(NP_CMD_READ, bytes, length);
	EXPECT_EQ(-EINVAL, np_ioctl(self->generic, NVME_IOCTL_IO_CMD, &cmd));
	cmd = rw(NP_CMD_READ, bytes, length - NP_PAGE);
	EXPECT_EQ(0, np_ioctl(self->generic, NVME_IOCTL_IO_CMD, &cmd));
	free(bytes);
}

TEST_HARNESS_MAIN
