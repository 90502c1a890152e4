// SPDX-License-Identifier: GPL-2.0-only
/*
 * Permissions of commands. Commands that the driver owns are refused to everyone;
 * unprivileged users may send what reads, and what their file's mode allows. The commands
 * at the limits of permit.h are sent by ioctl, by io_uring, and with an imported buffer:
 * all paths must apply the same rules.
 *
 * iommu: on
 * long-iommu: on off pt
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

/* Submission paths. */
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
 * struct ctx - files and buffers for the commands
 * @nodes: open nodes
 * @importers: controller files that imported the buffer, beside those of the namespace
 * @handles: of a buffer that was imported through them
 * @bytes: a page for data
 */
struct ctx {
	int nodes[NODES];
	int importers[NODES];
	uint32_t handles[NODES];
	uint8_t *bytes;
};

/**
 * struct attempt - a command to be tried
 * @name: for the report
 * @node: file that it is sent through
 * @opcode: of the command
 * @dword10: command dword 10
 */
struct attempt {
	const char *name;
	enum node node;
	uint8_t opcode;
	uint32_t dword10;
};

static const struct attempt driver_owned[] = {
	{ "delete SQ", CONTROLLER, NVME_ADMIN_DELETE_SQ, 63 },
	{ "create SQ", CONTROLLER, NVME_ADMIN_CREATE_SQ, 63 },
	{ "delete CQ", CONTROLLER, NVME_ADMIN_DELETE_CQ, 63 },
	{ "create CQ", CONTROLLER, NVME_ADMIN_CREATE_CQ, 63 },
	{ "event request", CONTROLLER, NVME_ADMIN_ASYNC_EVENT, 0 },
	/* They would cover the peers' queues too. */
	{ "shadow doorbells", CONTROLLER, NVME_ADMIN_DOORBELL_BUFFER, 0 },
	{ "number of queues", CONTROLLER, NVME_ADMIN_SET_FEATURES, NVME_FEATURE_QUEUES },
	{ "the same, saved", CONTROLLER, NVME_ADMIN_SET_FEATURES, FEATURE_SAVE |
	  NVME_FEATURE_QUEUES },
	{ "power states", CONTROLLER, NVME_ADMIN_SET_FEATURES, NVME_FEATURE_POWER_TRANSITION },
	{ "host memory buffer", CONTROLLER, NVME_ADMIN_SET_FEATURES, NVME_FEATURE_HOST_MEMORY },
	{ "keep alive", CONTROLLER, NVME_ADMIN_SET_FEATURES, NVME_FEATURE_KEEP_ALIVE },
	{ "host behaviour", CONTROLLER, NVME_ADMIN_SET_FEATURES, NVME_FEATURE_HOST_BEHAVIOR },
	{ "write cache", CONTROLLER, NVME_ADMIN_SET_FEATURES, NVME_FEATURE_WRITE_CACHE },
	{ "get features", CONTROLLER, NVME_ADMIN_GET_FEATURES, NVME_FEATURE_QUEUES },
	{ "log page", CONTROLLER, NVME_ADMIN_GET_LOG_PAGE, 127U << 16 | NVME_LOG_HEALTH },
	{ "read a partition's disk", PARTITION, NVMEPEER_OP_READ, 0 },
};

static const struct attempt unprivileged[] = {
	{ "identify namespace", CONTROLLER, NVME_ADMIN_IDENTIFY, NVME_CNS_NAMESPACE },
	{ "identify controller", CONTROLLER, NVME_ADMIN_IDENTIFY, NVME_CNS_CONTROLLER },
	{ "list of namespaces", CONTROLLER, NVME_ADMIN_IDENTIFY, NVME_CNS_ACTIVE_NAMESPACES },
	{ "descriptors", CONTROLLER, NVME_ADMIN_IDENTIFY, NVME_CNS_DESCRIPTORS },
	{ "namespace of a command set", CONTROLLER, NVME_ADMIN_IDENTIFY,
	  NVME_CNS_NAMESPACE_OF_SET },
	{ "controller of a command set", CONTROLLER, NVME_ADMIN_IDENTIFY,
	  NVME_CNS_CONTROLLER_OF_SET },
	{ "namespace of any", CONTROLLER, NVME_ADMIN_IDENTIFY, NVME_CNS_NAMESPACE_OF_ANY_SET },
	{ "allocated namespaces", CONTROLLER, NVME_ADMIN_IDENTIFY, NVME_CNS_ALLOCATED_NAMESPACES },
	{ "log page", CONTROLLER, NVME_ADMIN_GET_LOG_PAGE, 127U << 16 | NVME_LOG_HEALTH },
	{ "get features", CONTROLLER, NVME_ADMIN_GET_FEATURES, NVME_FEATURE_QUEUES },
	{ "write cache", CONTROLLER, NVME_ADMIN_SET_FEATURES, NVME_FEATURE_WRITE_CACHE },
	{ "abort", CONTROLLER, NVME_ADMIN_ABORT, 0 },
	{ "format", CONTROLLER, NVME_ADMIN_FORMAT, 0 },
	{ "vendor's admin command", CONTROLLER, NVME_ADMIN_VENDOR, 0 },
	{ "read", GENERIC, NVMEPEER_OP_READ, 0 },
	{ "write", GENERIC, NVMEPEER_OP_WRITE, 0 },
	{ "flush", GENERIC, NVMEPEER_OP_FLUSH, 0 },
	{ "compare", GENERIC, NVMEPEER_OP_COMPARE, 0 },
	{ "verify", GENERIC, NVME_IO_VERIFY, 0 },
	{ "vendor's command", GENERIC, NVME_IO_VENDOR, 0 },
	{ "last vendor specific command", GENERIC, 0xff, 0 },
	{ "fabrics", GENERIC, NVME_IO_FABRICS, 0 },
	{ "not listed in the effects log", GENERIC, 0x61, 0 },
	{ "of unknown data length", GENERIC, NVME_IO_COPY, 0 },
	{ "read only: read", GENERIC_READ_ONLY, NVMEPEER_OP_READ, 0 },
	{ "read only: write", GENERIC_READ_ONLY, NVMEPEER_OP_WRITE, 0 },
	{ "read only: flush", GENERIC_READ_ONLY, NVMEPEER_OP_FLUSH, 0 },
	{ "read only: zeroes", GENERIC_READ_ONLY, NVMEPEER_OP_WRITE_ZEROES, 0 },
	{ "read only: discard", GENERIC_READ_ONLY, NVMEPEER_OP_DATASET_MANAGEMENT, 0 },
	{ "disk: read", DISK, NVMEPEER_OP_READ, 0 },
	{ "disk: vendor specific command", DISK, NVME_IO_VENDOR, 0 },
	/* Commands address the blocks of the whole disk. */
	{ "partition: read", PARTITION, NVMEPEER_OP_READ, 0 },
	{ "partition: write", PARTITION, NVMEPEER_OP_WRITE, 0 },
};

FIXTURE(rights)
{
	struct np_ctrl ctrl;
	struct ctx ctx;
	int *answers;
	uint32_t effects[NP_OPCODES];
};

static int open_importers(struct ctx *ctx, const struct np_ctrl *ctrl)
{
	static const int flags[NODES] = { [GENERIC] = O_RDWR, [GENERIC_READ_ONLY] = O_RDONLY };
	int dmabuf = np_test_export(1, 0), ret = dmabuf < 0 ? dmabuf : 0, i;
	struct nvme_peer_buf_import import;

	for (i = GENERIC; i <= GENERIC_READ_ONLY && !ret; i++) {
		ctx->importers[i] = np_open_node(ctrl, "/dev/nvmep%d", flags[i]);
		ret = np_import(ctx->importers[i], dmabuf, 0, &import);
		ctx->handles[i] = import.handle;
	}
	close(dmabuf);
	return ret;
}

FIXTURE_SETUP(rights)
{
	struct ctx *ctx = &self->ctx;
	int i;

	ASSERT_EQ(0, np_ctrl_open(&self->ctrl, "np0"));
	ASSERT_EQ(0, np_read_effects(self->ctrl.fd, self->effects));
	ctx->nodes[CONTROLLER] = self->ctrl.fd;
	ctx->nodes[GENERIC] = np_open_node(&self->ctrl, "/dev/ngp%dn1", O_RDWR);
	ctx->nodes[GENERIC_READ_ONLY] = np_open_node(&self->ctrl, "/dev/ngp%dn1", O_RDONLY);
	ctx->nodes[DISK] = np_open_node(&self->ctrl, "/dev/nvmep%dn1", O_RDWR);
	ASSERT_LE(0, ctx->nodes[DISK]);
	ASSERT_EQ(0, open_importers(ctx, &self->ctrl));
	ASSERT_EQ(0, np_partition_add(ctx->nodes[DISK]));
	ctx->nodes[PARTITION] = np_open_node(&self->ctrl, "/dev/nvmep%dn1p1", O_RDWR);
	for (i = 0; i < NODES; i++)
		ASSERT_LE(0, ctx->nodes[i]);
	ASSERT_EQ(0, posix_memalign((void **)&ctx->bytes, NP_PAGE, NP_PAGE));
	self->answers = mmap(NULL, NP_PAGE, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS,
			     -1, 0);
	ASSERT_NE(MAP_FAILED, self->answers);
}

FIXTURE_TEARDOWN(rights)
{
	struct ctx *ctx = &self->ctx;
	int i;

	close(ctx->nodes[PARTITION]);
	EXPECT_EQ(0, np_partition_remove(ctx->nodes[DISK]));
	for (i = GENERIC; i <= GENERIC_READ_ONLY; i++)
		close(ctx->importers[i]);
	for (i = GENERIC; i < PARTITION; i++)
		close(ctx->nodes[i]);
	munmap(self->answers, NP_PAGE);
	free(ctx->bytes);
	np_ctrl_close(&self->ctrl);
}

/* The data length with which a command can only fail for missing permissions. */
static uint32_t data_of(const struct attempt *attempt)
{
	if (attempt->node == CONTROLLER)
		return attempt->opcode == NVME_ADMIN_IDENTIFY ? NP_PAGE :
		       attempt->opcode == NVME_ADMIN_GET_LOG_PAGE ? 512 : 0;
	switch (attempt->opcode) {
	case NVMEPEER_OP_READ:
	case NVMEPEER_OP_WRITE:
	case NVMEPEER_OP_COMPARE:
		return NP_BLOCK;
	case NVMEPEER_OP_DATASET_MANAGEMENT:
		return NP_PAGE;
	default:
		return 0;
	}
}

static int by_ioctl(const struct attempt *attempt, const struct ctx *ctx)
{
	struct nvme_passthru_cmd cmd = {
		.opcode = attempt->opcode,
		.nsid = attempt->node == CONTROLLER ? attempt->opcode == NVME_ADMIN_IDENTIFY : 1,
		.addr = (uintptr_t)ctx->bytes,
		.data_len = data_of(attempt),
		.cdw10 = attempt->dword10,
	};

	return np_ioctl(ctx->nodes[attempt->node],
			attempt->node == CONTROLLER ? NVME_IOCTL_ADMIN_CMD : NVME_IOCTL_IO_CMD, &cmd);
}

/* The result of one command. */
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

static int by_uring(const struct attempt *attempt, const struct ctx *ctx)
{
	struct nvme_uring_cmd cmd = {
		.opcode = attempt->opcode,
		.nsid = attempt->node == CONTROLLER ? attempt->opcode == NVME_ADMIN_IDENTIFY : 1,
		.addr = (uintptr_t)ctx->bytes,
		.data_len = data_of(attempt),
		.cdw10 = attempt->dword10,
	};

	return through_ring(ctx->nodes[attempt->node],
			    attempt->node == CONTROLLER ? NVME_URING_CMD_ADMIN : NVME_URING_CMD_IO,
			    &cmd, sizeof(cmd));
}

static int by_buffer(const struct attempt *attempt, const struct ctx *ctx)
{
	struct nvme_peer_uring_io io = {
		.opcode = attempt->opcode,
		.nsid = 1,
		.handle = ctx->handles[attempt->node],
		.blocks = 1,
	};

	return through_ring(ctx->importers[attempt->node], NVME_PEER_URING_CMD_IO, &io, sizeof(io));
}

static int by_list(const struct attempt *attempt, const struct ctx *ctx)
{
	struct nvme_peer_io_range range = { .handle = ctx->handles[attempt->node], .blocks = 1 };
	struct nvme_peer_uring_io_vec vec = {
		.opcode = attempt->opcode,
		.nsid = 1,
		.count = 1,
		.ranges = (uintptr_t)&range,
	};

	return through_ring(ctx->importers[attempt->node], NVME_PEER_URING_CMD_IO_VEC, &vec,
			    sizeof(vec));
}

/* Block devices have no io_uring passthrough; buffer I/O has reads and writes only. */
static bool has_way(const struct attempt *attempt, enum way way)
{
	if (way == BUFFER || way == LIST)
		return attempt->node >= GENERIC && attempt->node <= GENERIC_READ_ONLY &&
		       (attempt->opcode == NVMEPEER_OP_READ ||
			attempt->opcode == NVMEPEER_OP_WRITE);
	return way == IOCTL || attempt->node < DISK;
}

/* The results by each path that exists for the command. */
static void ask(const struct attempt *attempts, size_t count, const struct ctx *ctx, int *answers)
{
	static int (*const by[WAYS])(const struct attempt *attempt, const struct ctx *ctx) = {
		by_ioctl, by_uring, by_buffer, by_list,
	};
	size_t i, way;

	for (i = 0; i < count; i++)
		for (way = 0; way < WAYS; way++) {
			memset(ctx->bytes, 0, NP_PAGE);
			if (has_way(&attempts[i], way))
				answers[WAYS * i + way] = by[way](&attempts[i], ctx);
		}
}

static struct np_permit permit_of(const struct attempt *attempt, const struct np_caller *caller,
				  const uint32_t *effects)
{
	struct np_sending sending = {
		.partition = attempt->node == PARTITION,
		.writable = attempt->node != GENERIC_READ_ONLY,
		.admin = attempt->node == CONTROLLER,
		.opcode = attempt->opcode,
		.dword10 = attempt->dword10,
		.effects = effects[attempt->opcode],
	};

	return np_permit_command(caller, &sending);
}

static void judge(struct __test_metadata *_metadata, const struct attempt *attempts, size_t count,
		  const int *answers, const struct np_caller *caller, const uint32_t *effects)
{
	struct np_permit permit;
	size_t i, way;

	ASSERT_GE(CASES_MOST, count);
	for (i = 0; i < count; i++)
		for (way = 0; way < WAYS; way++) {
			int answer = answers[WAYS * i + way];

			if (!has_way(&attempts[i], way))
				continue;
			permit = permit_of(&attempts[i], caller, effects);
			EXPECT_TRUE(permit.allowed ? answer >= 0 : answer == -permit.refusal) {
				TH_LOG("%s, by %s: %d, is to be %s", attempts[i].name,
				       ways[way], answer,
				       permit.allowed ? "sent" : "refused");
			}
		}
}

TEST_F(rights, driver_owned_commands_refused_to_root)
{
	const struct np_caller root = { .admin = true, .rawio = true, .root = true };
	size_t count = sizeof(driver_owned) / sizeof(driver_owned[0]);

	ask(driver_owned, count, &self->ctx, self->answers);
	judge(_metadata, driver_owned, count, self->answers, &root, self->effects);
}

TEST_F(rights, unprivileged_users_send_safe_commands_only)
{
	const struct np_caller user = { 0 };
	size_t count = sizeof(unprivileged) / sizeof(unprivileged[0]);
	pid_t child = fork();
	int status;

	ASSERT_LE(0, child);
	if (!child) {
		if (np_drop_capabilities())
			_exit(1);
		ask(unprivileged, count, &self->ctx, self->answers);
		_exit(np_ioctl(self->ctrl.fd, NVME_IOCTL_RESET, NULL) == -EACCES ? 0 : 2);
	}
	ASSERT_EQ(child, waitpid(child, &status, 0));
	ASSERT_EQ(0, status);
	judge(_metadata, unprivileged, count, self->answers, &user, self->effects);
}

/* A node accepts its own namespace ID only, also from root. */
TEST_F(rights, other_namespace_is_einval)
{
	struct nvme_passthru_cmd cmd = {
		.opcode = NVMEPEER_OP_READ,
		.nsid = 2,
		.addr = (uintptr_t)self->ctx.bytes,
		.data_len = NP_BLOCK,
	};

	EXPECT_EQ(-EINVAL, np_ioctl(self->ctx.nodes[GENERIC], NVME_IOCTL_IO_CMD, &cmd));
	EXPECT_EQ(-EINVAL, np_ioctl(self->ctx.nodes[DISK], NVME_IOCTL_IO_CMD, &cmd));
}

TEST_HARNESS_MAIN
