// SPDX-License-Identifier: GPL-2.0-only
/*
 * Who may send which command: what belongs to the driver is nobody else's, and users
 * without capabilities get what reads and what their file is open for.  The commands at
 * the edges of what permit.h says are asked for by ioctl, by io_uring, and with an imported
 * buffer instead of an address: they must not know different rules.
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

/* Ways to ask. */
enum way {
	IOCTL,
	URING,
	BUFFER,
	LIST,
	WAYS,
};

static const char *const ways[WAYS] = { "ioctl", "io_uring", "imported buffer", "list" };

enum node {
	CONTROLLER,
	GENERIC,
	GENERIC_READ_ONLY,
	DISK,
	PARTITION,
	NODES,
};

/**
 * struct desk - where is asked
 * @nodes: open nodes
 * @importers: beside those of the namespace: the controller's node, open for the same
 * @handles: of a buffer that was imported through those
 * @bytes: a page for data
 */
struct desk {
	int nodes[NODES];
	int importers[NODES];
	uint32_t handles[NODES];
	uint8_t *bytes;
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
	struct desk desk;
	int *answers;
	uint32_t effects[NP_OPCODES];
};

static int open_importers(struct desk *desk, const struct np_ctrl *ctrl)
{
	static const int flags[NODES] = { [GENERIC] = O_RDWR, [GENERIC_READ_ONLY] = O_RDONLY };
	int dmabuf = np_test_export(1, 0), ret = dmabuf < 0 ? dmabuf : 0, i;
	struct nvme_peer_buf_import import;

	for (i = GENERIC; i <= GENERIC_READ_ONLY && !ret; i++) {
		desk->importers[i] = np_open_node(ctrl, "/dev/nvmep%d", flags[i]);
		ret = np_import(desk->importers[i], dmabuf, 0, &import);
		desk->handles[i] = import.handle;
	}
	close(dmabuf);
	return ret;
}

FIXTURE_SETUP(rights)
{
	struct desk *desk = &self->desk;
	int i;

	ASSERT_EQ(0, np_ctrl_open(&self->ctrl, "np0"));
	ASSERT_EQ(0, np_read_effects(self->ctrl.fd, self->effects));
	desk->nodes[CONTROLLER] = self->ctrl.fd;
	desk->nodes[GENERIC] = np_open_node(&self->ctrl, "/dev/ngp%dn1", O_RDWR);
	desk->nodes[GENERIC_READ_ONLY] = np_open_node(&self->ctrl, "/dev/ngp%dn1", O_RDONLY);
	desk->nodes[DISK] = np_open_node(&self->ctrl, "/dev/nvmep%dn1", O_RDWR);
	ASSERT_LE(0, desk->nodes[DISK]);
	ASSERT_EQ(0, np_partition_add(desk->nodes[DISK]));
	desk->nodes[PARTITION] = np_open_node(&self->ctrl, "/dev/nvmep%dn1p1", O_RDWR);
	for (i = 0; i < NODES; i++)
		ASSERT_LE(0, desk->nodes[i]);
	ASSERT_EQ(0, open_importers(desk, &self->ctrl));
	ASSERT_EQ(0, posix_memalign((void **)&desk->bytes, NP_PAGE, NP_PAGE));
	self->answers = mmap(NULL, NP_PAGE, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS,
			     -1, 0);
	ASSERT_NE(MAP_FAILED, self->answers);
}

FIXTURE_TEARDOWN(rights)
{
	struct desk *desk = &self->desk;
	int i;

	close(desk->nodes[PARTITION]);
	EXPECT_EQ(0, np_partition_remove(desk->nodes[DISK]));
	for (i = GENERIC; i <= GENERIC_READ_ONLY; i++)
		close(desk->importers[i]);
	for (i = GENERIC; i < PARTITION; i++)
		close(desk->nodes[i]);
	munmap(self->answers, NP_PAGE);
	free(desk->bytes);
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

static int by_ioctl(const struct plea *plea, const struct desk *desk)
{
	struct nvme_passthru_cmd cmd = {
		.opcode = plea->opcode,
		.nsid = plea->node == CONTROLLER ? plea->opcode == NP_ADMIN_IDENTIFY : 1,
		.addr = (uintptr_t)desk->bytes,
		.data_len = data_of(plea),
		.cdw10 = plea->dword10,
	};

	return np_ioctl(desk->nodes[plea->node],
			plea->node == CONTROLLER ? NVME_IOCTL_ADMIN_CMD : NVME_IOCTL_IO_CMD, &cmd);
}

/* The answer to one command. */
static int through_ring(int fd, uint32_t operation, const void *command, size_t size)
{
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
	sqe->fd = fd;
	sqe->cmd_op = operation;
	memcpy(sqe->cmd, command, size);
	ret = io_uring_submit(&ring);
	if (ret == 1)
		ret = io_uring_wait_cqe(&ring, &cqe);
	if (cqe)
		ret = cqe->res;
	io_uring_queue_exit(&ring);
	return ret;
}

static int by_uring(const struct plea *plea, const struct desk *desk)
{
	struct nvme_uring_cmd cmd = {
		.opcode = plea->opcode,
		.nsid = plea->node == CONTROLLER ? plea->opcode == NP_ADMIN_IDENTIFY : 1,
		.addr = (uintptr_t)desk->bytes,
		.data_len = data_of(plea),
		.cdw10 = plea->dword10,
	};

	return through_ring(desk->nodes[plea->node],
			    plea->node == CONTROLLER ? NVME_URING_CMD_ADMIN : NVME_URING_CMD_IO,
			    &cmd, sizeof(cmd));
}

static int by_buffer(const struct plea *plea, const struct desk *desk)
{
	struct nvme_peer_uring_io io = {
		.opcode = plea->opcode,
		.nsid = 1,
		.handle = desk->handles[plea->node],
		.blocks = 1,
	};

	return through_ring(desk->importers[plea->node], NVME_PEER_URING_CMD_IO, &io, sizeof(io));
}

static int by_list(const struct plea *plea, const struct desk *desk)
{
	struct nvme_peer_io_range range = { .handle = desk->handles[plea->node], .blocks = 1 };
	struct nvme_peer_uring_io_vec vec = {
		.opcode = plea->opcode,
		.nsid = 1,
		.count = 1,
		.ranges = (uintptr_t)&range,
	};

	return through_ring(desk->importers[plea->node], NVME_PEER_URING_CMD_IO_VEC, &vec,
			    sizeof(vec));
}

/* Disks take no commands by io_uring here; buffers are read and written only. */
static bool has_way(const struct plea *plea, enum way way)
{
	if (way == BUFFER || way == LIST)
		return plea->node >= GENERIC && plea->node <= GENERIC_READ_ONLY &&
		       (plea->opcode == NP_CMD_READ || plea->opcode == NP_CMD_WRITE);
	return way == IOCTL || plea->node < DISK;
}

/* What is answered by each way that there is. */
static void ask(const struct plea *pleas, size_t count, const struct desk *desk, int *answers)
{
	static int (*const by[WAYS])(const struct plea *plea, const struct desk *desk) = {
		by_ioctl, by_uring, by_buffer, by_list,
	};
	size_t i, way;

	for (i = 0; i < count; i++)
		for (way = 0; way < WAYS; way++) {
			memset(desk->bytes, 0, NP_PAGE);
			if (has_way(&pleas[i], way))
				answers[WAYS * i + way] = by[way](&pleas[i], desk);
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
	size_t i, way;

	ASSERT_GE(CASES_MOST, count);
	for (i = 0; i < count; i++)
		for (way = 0; way < WAYS; way++) {
			int answer = answers[WAYS * i + way];

			if (!has_way(&pleas[i], way))
				continue;
			permit = permit_of(&pleas[i], caller, effects);
			EXPECT_TRUE(permit.allowed ? answer >= 0 : answer == -permit.refusal) {
				TH_LOG("%s, by %s: %d, is to be %s", pleas[i].name,
				       ways[way], answer,
				       permit.allowed ? "sent" : "refused");
			}
		}
}

TEST_F(rights, of_nobody)
{
	const struct np_caller root = { .admin = true, .rawio = true, .root = true };
	size_t count = sizeof(of_nobody) / sizeof(of_nobody[0]);

	ask(of_nobody, count, &self->desk, self->answers);
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
		ask(of_users, count, &self->desk, self->answers);
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
		.addr = (uintptr_t)self->desk.bytes,
		.data_len = NP_BLOCK,
	};

	EXPECT_EQ(-EINVAL, np_ioctl(self->desk.nodes[GENERIC], NVME_IOCTL_IO_CMD, &cmd));
	EXPECT_EQ(-EINVAL, np_ioctl(self->desk.nodes[DISK], NVME_IOCTL_IO_CMD, &cmd));
}

TEST_HARNESS_MAIN
