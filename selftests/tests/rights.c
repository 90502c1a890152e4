// SPDX-License-Identifier: GPL-2.0-only
/*
 * Who may send which command: what belongs to the driver is nobody else's, and users
 * without capabilities get what reads and what their file is open for.  The commands at
 * the edges of what permit.h says are asked for by ioctl and by io_uring, which must not
 * know different rules.
 */
#include <errno.h>
#include <fcntl.h>
#include <liburing.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "nptest.h"
#include "permit.h"
#include "kselftest_harness.h"

#define FEATURE_SAVE		(1U << 31)

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
 * struct plea - a command that somebody asks for
 * @name: for the report
 * @node: through which
 * @opcode: of it
 * @dword10: command dword 10
 */
struct plea {
	const char *name;
	enum node node;
	uint8_t opcode;
	uint32_t dword10;
};

static const struct plea of_nobody[] = {
	{ "delete SQ", CONTROLLER, NP_ADMIN_DELETE_SQ, 63 },
	{ "create SQ", CONTROLLER, NP_ADMIN_CREATE_SQ, 63 },
	{ "delete CQ", CONTROLLER, NP_ADMIN_DELETE_CQ, 63 },
	{ "create CQ", CONTROLLER, NP_ADMIN_CREATE_CQ, 63 },
	{ "event request", CONTROLLER, NP_ADMIN_ASYNC_EVENT, 0 },
	/* They would cover the peers' queues, too. */
	{ "shadow doorbells", CONTROLLER, NP_ADMIN_DOORBELL_BUFFER, 0 },
	{ "number of queues", CONTROLLER, NP_ADMIN_SET_FEATURES, 0x07 },
	{ "the same, saved", CONTROLLER, NP_ADMIN_SET_FEATURES, FEATURE_SAVE | 0x07 },
	{ "power states", CONTROLLER, NP_ADMIN_SET_FEATURES, 0x0c },
	{ "host memory buffer", CONTROLLER, NP_ADMIN_SET_FEATURES, 0x0d },
	{ "keep alive", CONTROLLER, NP_ADMIN_SET_FEATURES, 0x0f },
	{ "host behaviour", CONTROLLER, NP_ADMIN_SET_FEATURES, 0x16 },
	{ "write cache", CONTROLLER, NP_ADMIN_SET_FEATURES, 0x06 },
	{ "get features", CONTROLLER, NP_ADMIN_GET_FEATURES, 0x07 },
	{ "log page", CONTROLLER, NP_ADMIN_GET_LOG, 127U << 16 | 2 },
	{ "read a partition's disk", PARTITION, NP_CMD_READ, 0 },
};

static const struct plea of_users[] = {
	{ "identify namespace", CONTROLLER, NP_ADMIN_IDENTIFY, 0 },
	{ "identify controller", CONTROLLER, NP_ADMIN_IDENTIFY, 1 },
	{ "list of namespaces", CONTROLLER, NP_ADMIN_IDENTIFY, 2 },
	{ "descriptors", CONTROLLER, NP_ADMIN_IDENTIFY, 3 },
	{ "namespace of a command set", CONTROLLER, NP_ADMIN_IDENTIFY, 5 },
	{ "controller of a command set", CONTROLLER, NP_ADMIN_IDENTIFY, 6 },
	{ "namespace of any", CONTROLLER, NP_ADMIN_IDENTIFY, 8 },
	{ "allocated namespaces", CONTROLLER, NP_ADMIN_IDENTIFY, 0x10 },
	{ "log page", CONTROLLER, NP_ADMIN_GET_LOG, 127U << 16 | 2 },
	{ "get features", CONTROLLER, NP_ADMIN_GET_FEATURES, 0x07 },
	{ "write cache", CONTROLLER, NP_ADMIN_SET_FEATURES, 0x06 },
	{ "abort", CONTROLLER, NP_ADMIN_ABORT, 0 },
	{ "format", CONTROLLER, NP_ADMIN_FORMAT, 0 },
	{ "vendor's admin command", CONTROLLER, NP_ADMIN_VENDOR, 0 },
	{ "read", GENERIC, NP_CMD_READ, 0 },
	{ "write", GENERIC, NP_CMD_WRITE, 0 },
	{ "flush", GENERIC, NP_CMD_FLUSH, 0 },
	{ "compare", GENERIC, NP_CMD_COMPARE, 0 },
	{ "verify", GENERIC, NP_CMD_VERIFY, 0 },
	{ "vendor's command", GENERIC, NP_CMD_VENDOR, 0 },
	{ "last vendor's command", GENERIC, 0xff, 0 },
	{ "fabrics", GENERIC, NP_CMD_FABRICS, 0 },
	{ "what the controller does not know", GENERIC, 0x61, 0 },
	{ "of a length that nobody can tell", GENERIC, NP_CMD_COPY, 0 },
	{ "read only: read", GENERIC_READ_ONLY, NP_CMD_READ, 0 },
	{ "read only: write", GENERIC_READ_ONLY, NP_CMD_WRITE, 0 },
	{ "read only: flush", GENERIC_READ_ONLY, NP_CMD_FLUSH, 0 },
	{ "read only: zeroes", GENERIC_READ_ONLY, NP_CMD_WRITE_ZEROES, 0 },
	{ "read only: discard", GENERIC_READ_ONLY, NP_CMD_DATASET, 0 },
	{ "disk: read", DISK, NP_CMD_READ, 0 },
	{ "disk: vendor's command", DISK, NP_CMD_VENDOR, 0 },
	/* Commands name blocks of the whole disk. */
	{ "partition: read", PARTITION, NP_CMD_READ, 0 },
	{ "partition: write", PARTITION, NP_CMD_WRITE, 0 },
};

FIXTURE(rights)
{
	struct np_ctrl ctrl;
	int nodes[NODES];
	uint8_t *bytes;
	int *answers;
	uint32_t effects[NP_OPCODES];
};

FIXTURE_SETUP(rights)
{
	int i;

	ASSERT_EQ(0, np_ctrl_open(&self->ctrl, "np0"));
	ASSERT_EQ(0, np_read_effects(self->ctrl.fd, self->effects));
	self->nodes[CONTROLLER] = self->ctrl.fd;
	self->nodes[GENERIC] = np_open_node(&self->ctrl, "/dev/ngp%dn1", O_RDWR);
	self->nodes[GENERIC_READ_ONLY] = np_open_node(&self->ctrl, "/dev/ngp%dn1", O_RDONLY);
	self->nodes[DISK] = np_open_node(&self->ctrl, "/dev/nvmep%dn1", O_RDWR);
	ASSERT_LE(0, self->nodes[DISK]);
	ASSERT_EQ(0, np_partition_add(self->nodes[DISK]));
	self->nodes[PARTITION] = np_open_node(&self->ctrl, "/dev/nvmep%dn1p1", O_RDWR);
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
	EXPECT_EQ(0, np_partition_remove(self->nodes[DISK]));
	for (i = GENERIC; i < PARTITION; i++)
		close(self->nodes[i]);
	munmap(self->answers, NP_PAGE);
	free(self->bytes);
	np_ctrl_close(&self->ctrl);
}

/* What a command needs of data so that nothing but rights can be in its way. */
static uint32_t data_of(const struct plea *plea)
{
	if (plea->node == CONTROLLER)
		return plea->opcode == NP_ADMIN_IDENTIFY ? NP_PAGE :
		       plea->opcode == NP_ADMIN_GET_LOG ? 512 : 0;
	switch (plea->opcode) {
	case NP_CMD_READ:
	case NP_CMD_WRITE:
	case NP_CMD_COMPARE:
		return NP_BLOCK;
	case NP_CMD_DATASET:
		return NP_PAGE;
	default:
		return 0;
	}
}

static int by_ioctl(const struct plea *plea, const int *nodes, uint8_t *bytes)
{
	struct nvme_passthru_cmd cmd = {
		.opcode = plea->opcode,
		.nsid = plea->node == CONTROLLER ? plea->opcode == NP_ADMIN_IDENTIFY : 1,
		.addr = (uintptr_t)bytes,
		.data_len = data_of(plea),
		.cdw10 = plea->dword10,
	};

	return np_ioctl(nodes[plea->node],
			plea->node == CONTROLLER ? NVME_IOCTL_ADMIN_CMD : NVME_IOCTL_IO_CMD, &cmd);
}

static int by_uring(const struct plea *plea, const int *nodes, uint8_t *bytes)
{
	struct nvme_uring_cmd cmd = {
		.opcode = plea->opcode,
		.nsid = plea->node == CONTROLLER ? plea->opcode == NP_ADMIN_IDENTIFY : 1,
		.addr = (uintptr_t)bytes,
		.data_len = data_of(plea),
		.cdw10 = plea->dword10,
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
	sqe->fd = nodes[plea->node];
	sqe->cmd_op = plea->node == CONTROLLER ? NVME_URING_CMD_ADMIN : NVME_URING_CMD_IO;
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
static bool has_uring(const struct plea *plea)
{
	return plea->node != DISK && plea->node != PARTITION;
}

static void ask(const struct plea *pleas, size_t count, const int *nodes, uint8_t *bytes,
		int *answers)
{
	size_t i;

	for (i = 0; i < count; i++) {
		memset(bytes, 0, NP_PAGE);
		answers[2 * i] = by_ioctl(&pleas[i], nodes, bytes);
		answers[2 * i + 1] = has_uring(&pleas[i]) ? by_uring(&pleas[i], nodes, bytes) :
							     answers[2 * i];
	}
}

static struct np_permit permit_of(const struct plea *plea, const struct np_caller *caller,
				  const uint32_t *effects)
{
	struct np_sending sending = {
		.partition = plea->node == PARTITION,
		.writable = plea->node != GENERIC_READ_ONLY,
		.admin = plea->node == CONTROLLER,
		.opcode = plea->opcode,
		.dword10 = plea->dword10,
		.effects = effects[plea->opcode],
	};

	return np_permit_command(caller, &sending);
}

static void judge(struct __test_metadata *_metadata, const struct plea *pleas, size_t count,
		  const int *answers, const struct np_caller *caller, const uint32_t *effects)
{
	struct np_permit permit;
	size_t i;
	int way;

	ASSERT_GE(CASES_MOST, count);
	for (i = 0; i < count; i++)
		for (way = 0; way < 2; way++) {
			int answer = answers[2 * i + way];

			permit = permit_of(&pleas[i], caller, effects);
			EXPECT_TRUE(permit.allowed ? answer >= 0 : answer == -permit.refusal) {
				TH_LOG("%s, by %s: %d, is to be %s", pleas[i].name,
				       way ? "io_uring" : "ioctl", answer,
				       permit.allowed ? "sent" : "refused");
			}
		}
}

TEST_F(rights, of_nobody)
{
	const struct np_caller root = { .admin = true, .rawio = true, .root = true };
	size_t count = sizeof(of_nobody) / sizeof(of_nobody[0]);

	ask(of_nobody, count, self->nodes, self->bytes, self->answers);
	judge(_metadata, of_nobody, count, self->answers, &root, self->effects);
}

TEST_F(rights, of_users)
{
	const struct np_caller user = { 0 };
	size_t count = sizeof(of_users) / sizeof(of_users[0]);
	pid_t child = fork();
	int status;

	ASSERT_LE(0, child);
	if (!child) {
		if (np_drop_capabilities())
			_exit(1);
		ask(of_users, count, self->nodes, self->bytes, self->answers);
		_exit(np_ioctl(self->ctrl.fd, NVME_IOCTL_RESET, NULL) == -EACCES ? 0 : 2);
	}
	ASSERT_EQ(child, waitpid(child, &status, 0));
	ASSERT_EQ(0, status);
	judge(_metadata, of_users, count, self->answers, &user, self->effects);
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
