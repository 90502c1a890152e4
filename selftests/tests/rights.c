// SPDX-License-Identifier: GPL-2.0-only
/*
 * Who may send which command: what belongs to the driver is nobody else's, and users
 * without capabilities get what reads and what their file is open for.  Asked by ioctl
 * and by io_uring, which must not know different rules.
 */
#include <errno.h>
#include <fcntl.h>
#include <liburing.h>
#include <linux/blkpg.h>
#include <linux/capability.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "nptest.h"
#include "kselftest_harness.h"

#define ADMIN_DELETE_SQ		0x00
#define ADMIN_CREATE_SQ		0x01
#define ADMIN_GET_LOG		0x02
#define ADMIN_DELETE_CQ		0x04
#define ADMIN_CREATE_CQ		0x05
#define ADMIN_IDENTIFY		0x06
#define ADMIN_ABORT		0x08
#define ADMIN_SET_FEATURES	0x09
#define ADMIN_GET_FEATURES	0x0a
#define ADMIN_ASYNC_EVENT	0x0c
#define ADMIN_DOORBELL_BUFFER	0x7c
#define ADMIN_FORMAT		0x80
#define ADMIN_VENDOR		0xc0
#define CMD_COMPARE		0x05
#define CMD_WRITE_ZEROES	0x08
#define CMD_DATASET		0x09
#define CMD_VERIFY		0x0c
#define CMD_FABRICS		0x7f
#define CMD_VENDOR		0x80
#define FEATURE_SAVE		(1U << 31)

#define PARTITION_START		(1U << 20)
#define PARTITION_BYTES		(1U << 20)
#define CASES_MOST		40U

enum node {
	CONTROLLER,
	GENERIC,
	GENERIC_READ_ONLY,
	DISK,
	PARTITION,
	NODES,
};

/**
 * struct right - a command, and whether it may be sent
 * @name: for the report
 * @node: through which
 * @opcode: of it
 * @dword10: command dword 10
 * @allowed: it reaches the controller, whatever that says of it
 */
struct right {
	const char *name;
	enum node node;
	uint8_t opcode;
	uint32_t dword10;
	bool allowed;
};

static const struct right of_nobody[] = {
	{ "delete SQ", CONTROLLER, ADMIN_DELETE_SQ, 63, false },
	{ "create SQ", CONTROLLER, ADMIN_CREATE_SQ, 63, false },
	{ "delete CQ", CONTROLLER, ADMIN_DELETE_CQ, 63, false },
	{ "create CQ", CONTROLLER, ADMIN_CREATE_CQ, 63, false },
	{ "event request", CONTROLLER, ADMIN_ASYNC_EVENT, 0, false },
	/* They would cover the peers' queues, too. */
	{ "shadow doorbells", CONTROLLER, ADMIN_DOORBELL_BUFFER, 0, false },
	{ "number of queues", CONTROLLER, ADMIN_SET_FEATURES, 0x07, false },
	{ "the same, saved", CONTROLLER, ADMIN_SET_FEATURES, FEATURE_SAVE | 0x07, false },
	{ "power states", CONTROLLER, ADMIN_SET_FEATURES, 0x0c, false },
	{ "host memory buffer", CONTROLLER, ADMIN_SET_FEATURES, 0x0d, false },
	{ "keep alive", CONTROLLER, ADMIN_SET_FEATURES, 0x0f, false },
	{ "host behaviour", CONTROLLER, ADMIN_SET_FEATURES, 0x16, false },
	{ "write cache", CONTROLLER, ADMIN_SET_FEATURES, 0x06, true },
	{ "get features", CONTROLLER, ADMIN_GET_FEATURES, 0x07, true },
	{ "log page", CONTROLLER, ADMIN_GET_LOG, 127U << 16 | 2, true },
	{ "read a partition's disk", PARTITION, NP_CMD_READ, 0, true },
};

static const struct right of_users[] = {
	{ "identify namespace", CONTROLLER, ADMIN_IDENTIFY, 0, true },
	{ "identify controller", CONTROLLER, ADMIN_IDENTIFY, 1, true },
	{ "list of namespaces", CONTROLLER, ADMIN_IDENTIFY, 2, false },
	{ "descriptors", CONTROLLER, ADMIN_IDENTIFY, 3, false },
	{ "namespace of a command set", CONTROLLER, ADMIN_IDENTIFY, 5, true },
	{ "controller of a command set", CONTROLLER, ADMIN_IDENTIFY, 6, true },
	{ "namespace of any", CONTROLLER, ADMIN_IDENTIFY, 8, true },
	{ "allocated namespaces", CONTROLLER, ADMIN_IDENTIFY, 0x10, false },
	{ "log page", CONTROLLER, ADMIN_GET_LOG, 127U << 16 | 2, false },
	{ "get features", CONTROLLER, ADMIN_GET_FEATURES, 0x07, false },
	{ "write cache", CONTROLLER, ADMIN_SET_FEATURES, 0x06, false },
	{ "abort", CONTROLLER, ADMIN_ABORT, 0, false },
	{ "format", CONTROLLER, ADMIN_FORMAT, 0, false },
	{ "vendor's admin command", CONTROLLER, ADMIN_VENDOR, 0, false },
	{ "read", GENERIC, NP_CMD_READ, 0, true },
	{ "write", GENERIC, NP_CMD_WRITE, 0, true },
	{ "flush", GENERIC, NP_CMD_FLUSH, 0, true },
	{ "compare", GENERIC, CMD_COMPARE, 0, true },
	{ "verify", GENERIC, CMD_VERIFY, 0, true },
	{ "vendor's command", GENERIC, CMD_VENDOR, 0, false },
	{ "last vendor's command", GENERIC, 0xff, 0, false },
	{ "fabrics", GENERIC, CMD_FABRICS, 0, false },
	{ "what the controller does not know", GENERIC, 0x61, 0, false },
	{ "read only: read", GENERIC_READ_ONLY, NP_CMD_READ, 0, true },
	{ "read only: write", GENERIC_READ_ONLY, NP_CMD_WRITE, 0, false },
	{ "read only: flush", GENERIC_READ_ONLY, NP_CMD_FLUSH, 0, false },
	{ "read only: zeroes", GENERIC_READ_ONLY, CMD_WRITE_ZEROES, 0, false },
	{ "read only: discard", GENERIC_READ_ONLY, CMD_DATASET, 0, false },
	{ "disk: read", DISK, NP_CMD_READ, 0, true },
	{ "disk: vendor's command", DISK, CMD_VENDOR, 0, false },
	/* Commands name blocks of the whole disk. */
	{ "partition: read", PARTITION, NP_CMD_READ, 0, false },
	{ "partition: write", PARTITION, NP_CMD_WRITE, 0, false },
};

FIXTURE(rights)
{
	struct np_ctrl ctrl;
	int nodes[NODES];
	uint8_t *bytes;
	int *answers;
};

/* Adds a partition to the disk, or takes it away. */
static int change_partition(int disk, int operation)
{
	struct blkpg_partition partition = {
		.start = PARTITION_START,
		.length = PARTITION_BYTES,
		.pno = 1,
	};
	struct blkpg_ioctl_arg argument = {
		.op = operation,
		.datalen = sizeof(partition),
		.data = &partition,
	};

	return np_ioctl(disk, BLKPG, &argument);
}

static int open_partition(const struct np_ctrl *ctrl)
{
	int64_t end = np_now_ms() + NP_TIMEOUT_MS;
	int fd;

	do {
		fd = np_open_node(ctrl, "/dev/nvmep%dn1p1", O_RDWR);
		if (fd < 0)
			np_sleep_ms(10);
	} while (fd < 0 && np_now_ms() < end);
	return fd;
}

FIXTURE_SETUP(rights)
{
	int i;

	ASSERT_EQ(0, np_ctrl_open(&self->ctrl, "np0"));
	self->nodes[CONTROLLER] = self->ctrl.fd;
	self->nodes[GENERIC] = np_open_node(&self->ctrl, "/dev/ngp%dn1", O_RDWR);
	self->nodes[GENERIC_READ_ONLY] = np_open_node(&self->ctrl, "/dev/ngp%dn1", O_RDONLY);
	self->nodes[DISK] = np_open_node(&self->ctrl, "/dev/nvmep%dn1", O_RDWR);
	ASSERT_LE(0, self->nodes[DISK]);
	ASSERT_EQ(0, change_partition(self->nodes[DISK], BLKPG_ADD_PARTITION));
	self->nodes[PARTITION] = open_partition(&self->ctrl);
	for (i = 0; i < NODES; i++)
		ASSERT_LE(0, self->nodes[i]);
	ASSERT_EQ(0, posix_memalign((void **)&self->bytes, NP_PAGE, NP_PAGE));
	self->answers = mmap(NULL, NP_PAGE, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS,
			     -1, 0);
	ASSERT_NE(MAP_FAILED, self->answers);
}

FIXTURE_TEARDOWN(rights)
{
	int i;

	close(self->nodes[PARTITION]);
	EXPECT_EQ(0, change_partition(self->nodes[DISK], BLKPG_DEL_PARTITION));
	for (i = GENERIC; i < PARTITION; i++)
		close(self->nodes[i]);
	munmap(self->answers, NP_PAGE);
	free(self->bytes);
	np_ctrl_close(&self->ctrl);
}

/* What a command needs of data so that nothing but rights can be in its way. */
static uint32_t data_of(const struct right *right)
{
	if (right->node == CONTROLLER)
		return right->opcode == ADMIN_IDENTIFY ? NP_PAGE :
		       right->opcode == ADMIN_GET_LOG ? 512 : 0;
	switch (right->opcode) {
	case NP_CMD_READ:
	case NP_CMD_WRITE:
	case CMD_COMPARE:
		return NP_BLOCK;
	case CMD_DATASET:
		return NP_PAGE;
	default:
		return 0;
	}
}

static int by_ioctl(const struct right *right, const int *nodes, uint8_t *bytes)
{
	struct nvme_passthru_cmd cmd = {
		.opcode = right->opcode,
		.nsid = right->node == CONTROLLER ? right->opcode == ADMIN_IDENTIFY : 1,
		.addr = (uintptr_t)bytes,
		.data_len = data_of(right),
		.cdw10 = right->dword10,
	};

	return np_ioctl(nodes[right->node],
			right->node == CONTROLLER ? NVME_IOCTL_ADMIN_CMD : NVME_IOCTL_IO_CMD, &cmd);
}

static int by_uring(const struct right *right, const int *nodes, uint8_t *bytes)
{
	struct nvme_uring_cmd cmd = {
		.opcode = right->opcode,
		.nsid = right->node == CONTROLLER ? right->opcode == ADMIN_IDENTIFY : 1,
		.addr = (uintptr_t)bytes,
		.data_len = data_of(right),
		.cdw10 = right->dword10,
	};
	struct io_uring_cqe *cqe = NULL;
	struct io_uring_sqe *sqe;
	struct io_uring ring;
	int ret;

	ret = io_uring_queue_init(4, &ring, IORING_SETUP_SQE128 | IORING_SETUP_CQE32);
	if (ret)
		return ret;
	sqe = io_uring_get_sqe(&ring);
	if (!sqe)
		abort();
	memset(sqe, 0, 2 * sizeof(*sqe));
	sqe->opcode = IORING_OP_URING_CMD;
	sqe->fd = nodes[right->node];
	sqe->cmd_op = right->node == CONTROLLER ? NVME_URING_CMD_ADMIN : NVME_URING_CMD_IO;
	memcpy(sqe->cmd, &cmd, sizeof(cmd));
	ret = io_uring_submit(&ring);
	if (ret == 1)
		ret = io_uring_wait_cqe(&ring, &cqe);
	if (cqe)
		ret = cqe->res;
	io_uring_queue_exit(&ring);
	return ret;
}

/* Disks take no commands by io_uring here. */
static bool has_uring(const struct right *right)
{
	return right->node != DISK && right->node != PARTITION;
}

static void ask(const struct right *rights, size_t count, const int *nodes, uint8_t *bytes,
		int *answers)
{
	size_t i;

	for (i = 0; i < count; i++) {
		memset(bytes, 0, NP_PAGE);
		answers[2 * i] = by_ioctl(&rights[i], nodes, bytes);
		answers[2 * i + 1] = has_uring(&rights[i]) ? by_uring(&rights[i], nodes, bytes) :
							     answers[2 * i];
	}
}

static void judge(struct __test_metadata *_metadata, const struct right *rights, size_t count,
		  const int *answers)
{
	size_t i;
	int way;

	ASSERT_GE(CASES_MOST, count);
	for (i = 0; i < count; i++)
		for (way = 0; way < 2; way++) {
			int answer = answers[2 * i + way];

			EXPECT_EQ(rights[i].allowed, answer >= 0) {
				TH_LOG("%s, by %s: %d", rights[i].name,
				       way ? "io_uring" : "ioctl", answer);
			}
			EXPECT_TRUE(answer >= 0 || answer == -EACCES) {
				TH_LOG("%s: %d", rights[i].name, answer);
			}
		}
}

TEST_F(rights, of_nobody)
{
	size_t count = sizeof(of_nobody) / sizeof(of_nobody[0]);

	ask(of_nobody, count, self->nodes, self->bytes, self->answers);
	judge(_metadata, of_nobody, count, self->answers);
}

static int drop_capabilities(void)
{
	struct __user_cap_header_struct header = { .version = _LINUX_CAPABILITY_VERSION_3 };
	struct __user_cap_data_struct none[2] = {};

	return syscall(SYS_capset, &header, none) ? -errno : 0;
}

TEST_F(rights, of_users)
{
	size_t count = sizeof(of_users) / sizeof(of_users[0]);
	pid_t child = fork();
	int status;

	ASSERT_LE(0, child);
	if (!child) {
		if (drop_capabilities())
			_exit(1);
		ask(of_users, count, self->nodes, self->bytes, self->answers);
		_exit(np_ioctl(self->ctrl.fd, NVME_IOCTL_RESET, NULL) == -EACCES ? 0 : 2);
	}
	ASSERT_EQ(child, waitpid(child, &status, 0));
	ASSERT_EQ(0, status);
	judge(_metadata, of_users, count, self->answers);
}

/* A node is for its namespace, whoever asks. */
TEST_F(rights, of_another_namespace)
{
	struct nvme_passthru_cmd cmd = {
		.opcode = NP_CMD_READ,
		.nsid = 2,
		.addr = (uintptr_t)self->bytes,
		.data_len = NP_BLOCK,
	};

	EXPECT_EQ(-EINVAL, np_ioctl(self->nodes[GENERIC], NVME_IOCTL_IO_CMD, &cmd));
	EXPECT_EQ(-EINVAL, np_ioctl(self->nodes[DISK], NVME_IOCTL_IO_CMD, &cmd));
}

TEST_HARNESS_MAIN
