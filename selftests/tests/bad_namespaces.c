// SPDX-License-Identifier: GPL-2.0-only
/*
 * Namespaces that change. Commands that change them are refused while peers have queue
 * pairs, because peers compute lengths and lists for the block size that they were given.
 * If a namespace changes without such a command, peer queue pairs are stopped; a
 * namespace with other identifiers is a new disk.
 *
 * kernels: 6.1 7
 * long-kernels: 6.1 6.12 7 debug
 * iommu: on
 * timeout: 300
 */
#include <errno.h>
#include <fcntl.h>
#include <liburing.h>
#include <linux/fs.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "npbad.h"
#include "kselftest_harness.h"

#define ENTRIES		16U


/* Byte offsets in Identify Namespace. */
#define NS_BLOCKS	0
#define NS_FEATURES	24
#define FEATURE_OPTIMAL_IO	(1U << 4)
#define NS_FORMATTED	26
#define EXTENDED_METADATA	(1U << 4)
#define NS_PROTECTION	29
#define NS_NOWS		72
#define NS_NGUID	104
#define NS_EUI64	120
#define NS_FORMAT	128
/* Byte offset in the descriptor list: the UUID of its first descriptor. */
#define DESCRIPTORS_UUID	4
#define BLOCK_SHIFT	9U

FIXTURE(bad_namespaces)
{
	struct np_bad bad;
	uint8_t *bytes;
	int generation;
};

FIXTURE_SETUP(bad_namespaces)
{
	if (np_bad_open(&self->bad) == -ENOENT)
		SKIP(return, "no badctrl in this guest");
	ASSERT_EQ(0, posix_memalign((void **)&self->bytes, NP_PAGE, NP_PAGE));
	ASSERT_EQ(0, np_bad_bind(&self->bad, 1));
	self->generation = np_bad_generation(&self->bad);
}

FIXTURE_TEARDOWN(bad_namespaces)
{
	if (!self->bad.address[0])
		return;
	EXPECT_EQ(0, np_bad_close(&self->bad));
	free(self->bytes);
}

/* --- changed by a command -------------------------------------------------------- */

static int admin(struct np_bad *bad, uint8_t opcode)
{
	struct nvme_admin_cmd cmd = { .opcode = opcode, .nsid = 1 };

	return np_admin(bad->ctrl.fd, &cmd);
}

static int admin_by_uring(struct np_bad *bad, uint8_t opcode)
{
	struct nvme_uring_cmd cmd = { .opcode = opcode, .nsid = 1 };
	struct io_uring_cqe *cqe;
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
	sqe->fd = bad->ctrl.fd;
	sqe->cmd_op = NVME_URING_CMD_ADMIN;
	memcpy(sqe->cmd, &cmd, sizeof(cmd));
	ret = io_uring_submit(&ring);
	if (ret > 0)
		ret = io_uring_wait_cqe(&ring, &cqe);
	if (!ret)
		ret = cqe->res;
	io_uring_queue_exit(&ring);
	return ret;
}

TEST_F(bad_namespaces, change_refused_with_peers)
{
	static const uint8_t opcodes[] = {
		NVME_ADMIN_FORMAT, NVME_ADMIN_SANITIZE,
		NVME_ADMIN_NAMESPACE_MANAGE, NVME_ADMIN_NAMESPACE_ATTACH,
	};
	int log = np_log_open();
	struct np_qp qp;
	uint32_t i;

	ASSERT_LE(0, log);
	ASSERT_EQ(0, np_qp_open(&qp, self->bad.ctrl.fd, ENTRIES));
	for (i = 0; i < sizeof(opcodes); i++) {
		ASSERT_EQ(0, np_bad_rule(&self->bad, i, opcodes[i], BADCTRL_LIE, 0, BADCTRL_EVERY));
		EXPECT_EQ(-EBUSY, admin(&self->bad, opcodes[i]));
		EXPECT_EQ(-EBUSY, admin_by_uring(&self->bad, opcodes[i]));
		EXPECT_EQ(0, np_bad_hits(&self->bad, i));
	}
	/* The log names the fix. */
	EXPECT_EQ(0, np_log_wait(log, "close all peer queue pairs", NP_TIMEOUT_MS));
	close(log);
	EXPECT_EQ(0, np_bad_identify_ctrl(&self->bad, 0));
	np_qp_close(&qp);
	for (i = 0; i < sizeof(opcodes); i++) {
		EXPECT_EQ(0, admin(&self->bad, opcodes[i]));
		EXPECT_EQ(0, admin_by_uring(&self->bad, opcodes[i]));
		EXPECT_EQ(2, np_bad_hits(&self->bad, i));
	}
	EXPECT_EQ(self->generation, np_bad_generation(&self->bad));
}

static void *format(void *argument)
{
	return (void *)(intptr_t)admin(argument, NVME_ADMIN_FORMAT);
}

/* The reverse: queue pair creation is refused while such a command is in flight. */
TEST_F(bad_namespaces, peers_refused_during_change)
{
	struct nvme_peer_qp_create create;
	pthread_t thread;
	void *result;

	ASSERT_EQ(0, np_bad_rule(&self->bad, 0, NVME_ADMIN_FORMAT, BADCTRL_HOLD, 0, 1));
	ASSERT_EQ(0, pthread_create(&thread, NULL, format, &self->bad));
	ASSERT_EQ(0, np_bad_wait_word(&self->bad, BADCTRL_HELD, 1));
	EXPECT_EQ(-EBUSY, np_qp_create(self->bad.ctrl.fd, ENTRIES, &create));
	EXPECT_EQ(0, np_bad_set(&self->bad, BADCTRL_RELEASE, 1));
	pthread_join(thread, &result);
	EXPECT_EQ(NULL, result);
	EXPECT_EQ(0, np_qp_check(self->bad.ctrl.fd, NP_TIMEOUT_MS));
}

/*
 * A submission by io_uring waits neither for a command that sleeps nor, with I/O frozen, for
 * a request: the kernel's worker does.
 */
TEST_F(bad_namespaces, submission_does_not_wait)
{
	struct nvme_uring_cmd cmds[2] = {
		{ .opcode = NVME_ADMIN_FORMAT, .nsid = 1 },
		{ .opcode = NVMEPEER_OP_FLUSH, .nsid = 1 },
	};
	struct io_uring_cqe *cqe;
	struct io_uring_sqe *sqe;
	struct io_uring ring;
	int i;

	ASSERT_EQ(0, io_uring_queue_init(4, &ring, IORING_SETUP_SQE128 | IORING_SETUP_CQE32));
	ASSERT_EQ(0, np_bad_rule(&self->bad, 0, NVME_ADMIN_FORMAT, BADCTRL_HOLD, 0, 1));
	for (i = 0; i < 2; i++) {
		sqe = io_uring_get_sqe(&ring);
		ASSERT_NE(NULL, sqe);
		memset(sqe, 0, 2 * sizeof(*sqe));
		sqe->opcode = IORING_OP_URING_CMD;
		sqe->fd = i ? self->bad.generic : self->bad.ctrl.fd;
		sqe->cmd_op = i ? NVME_URING_CMD_IO : NVME_URING_CMD_ADMIN;
		memcpy(sqe->cmd, &cmds[i], sizeof(cmds[i]));
		EXPECT_EQ(1, io_uring_submit(&ring));
		ASSERT_EQ(0, np_bad_wait_word(&self->bad, BADCTRL_HELD, 1));
		EXPECT_EQ(-EAGAIN, io_uring_peek_cqe(&ring, &cqe));
	}
	ASSERT_EQ(0, np_bad_set(&self->bad, BADCTRL_RELEASE, 1));
	for (i = 0; i < 2; i++) {
		ASSERT_EQ(0, io_uring_wait_cqe(&ring, &cqe));
		EXPECT_EQ(0, cqe->res);
		io_uring_cqe_seen(&ring, cqe);
	}
	io_uring_queue_exit(&ring);
}

/*
 * The scan after a command meets a reset. The reset cancels the Identify in flight; the
 * Identify of the next namespace waits for the reset and succeeds.
 */
TEST_F_TIMEOUT(bad_namespaces, rescan_during_reset, 60)
{
	pthread_t thread;
	void *result;

	ASSERT_EQ(0, np_bad_set(&self->bad, BADCTRL_ACTIVE, 3));
	ASSERT_EQ(0, np_bad_set(&self->bad, BADCTRL_EVENT, EVENT_NAMESPACES));
	ASSERT_EQ(0, np_bad_wait_namespaces(&self->bad, 2));
	ASSERT_EQ(0, np_bad_rule(&self->bad, 0, NVME_ADMIN_FORMAT, BADCTRL_LIE, 0, 1));
	ASSERT_EQ(0, np_bad_rule(&self->bad, 1, NVME_ADMIN_IDENTIFY, BADCTRL_HOLD, 0, 1));
	ASSERT_EQ(0, pthread_create(&thread, NULL, format, &self->bad));
	ASSERT_EQ(0, np_bad_wait_word(&self->bad, BADCTRL_HELD, 1));
	EXPECT_EQ(0, np_ioctl(self->bad.ctrl.fd, NVME_IOCTL_RESET, NULL));
	pthread_join(thread, &result);
	EXPECT_EQ(NULL, result);
	EXPECT_EQ(self->generation + 1, np_bad_generation(&self->bad));
	EXPECT_EQ(0, np_bad_identify_ctrl(&self->bad, 0));
}

/**
 * struct steady - a thread that reads the first page of a namespace
 * @disk: block device
 * @stop: ends the thread
 * @reads: so far
 * @ret: its first error, or 0
 */
struct steady {
	int disk;
	atomic_bool stop;
	atomic_uint reads;
	int ret;
	pthread_t thread;
};

static void *read_steadily(void *argument)
{
	struct steady *reader = argument;
	void *bytes;

	if (posix_memalign(&bytes, NP_PAGE, NP_PAGE))
		abort();
	while (!atomic_load(&reader->stop) && !reader->ret) {
		reader->ret = np_disk_read(reader->disk, bytes, NP_PAGE, 0);
		reader->reads++;
	}
	free(bytes);
	return NULL;
}

/* A reset interrupts Format of one namespace: I/O to both waits and fails on neither. */
TEST_F_TIMEOUT(bad_namespaces, reset_during_format_fails_no_io, 60)
{
	struct steady readers[2] = { };
	pthread_t thread;
	void *result;
	int i;

	ASSERT_EQ(0, np_bad_set(&self->bad, BADCTRL_ACTIVE, 3));
	ASSERT_EQ(0, np_bad_set(&self->bad, BADCTRL_EVENT, EVENT_NAMESPACES));
	ASSERT_EQ(0, np_bad_wait_namespaces(&self->bad, 2));
	ASSERT_EQ(0, np_bad_rule(&self->bad, 0, NVME_ADMIN_FORMAT, BADCTRL_HOLD, 0, 1));
	for (i = 0; i < 2; i++) {
		readers[i].disk = np_open_node(&self->bad.ctrl, i ? "/dev/nvmep%dn2" : "/dev/nvmep%dn1",
					       O_RDONLY | O_DIRECT);
		ASSERT_LE(0, readers[i].disk);
		ASSERT_EQ(0, pthread_create(&readers[i].thread, NULL, read_steadily, &readers[i]));
	}
	while (!readers[0].reads || !readers[1].reads)
		np_sleep_ms(1);
	ASSERT_EQ(0, pthread_create(&thread, NULL, format, &self->bad));
	ASSERT_EQ(0, np_bad_wait_word(&self->bad, BADCTRL_HELD, 1));
	EXPECT_EQ(0, np_ioctl(self->bad.ctrl.fd, NVME_IOCTL_RESET, NULL));
	pthread_join(thread, &result);
	np_sleep_ms(500);
	for (i = 0; i < 2; i++) {
		atomic_store(&readers[i].stop, true);
		pthread_join(readers[i].thread, NULL);
		EXPECT_EQ(0, readers[i].ret) {
			TH_LOG("namespace %d", i + 1);
		}
		close(readers[i].disk);
	}
	EXPECT_EQ(self->generation + 1, np_bad_generation(&self->bad));
}

/* --- changed from outside -------------------------------------------------------- */

static int set_bytes(struct np_bad *bad, uint32_t offset, uint64_t value, unsigned int size)
{
	int ret = 0;

	for (; size-- && !ret; value >>= 8)
		ret = np_bad_identify(bad, NVME_CNS_NAMESPACE, offset++, (uint8_t)value);
	return ret;
}

/* Send a namespace event and return when the driver has begun to scan. */
static int send_event(struct np_bad *bad)
{
	int ret = np_bad_rule(bad, 7, NVME_ADMIN_ASYNC_EVENT, BADCTRL_COUNT, 0, BADCTRL_EVERY);

	ret = ret ?: np_bad_set(bad, BADCTRL_EVENT, EVENT_NAMESPACES);
	/* The driver requests the next event after it has begun the scan. */
	return ret ?: np_bad_wait_hits(bad, 7, 1);
}

static int wait_stopped(const struct nvme_peer_status *status)
{
	int64_t end = np_now_ms() + NP_TIMEOUT_MS;

	while (status->state != NVME_PEER_QP_FAILED) {
		if (np_now_ms() > end)
			return -ETIMEDOUT;
		np_sleep_ms(10);
	}
	return 0;
}

/* Queue pairs were stopped once, and new ones work with the present format. */
static void expect_stopped(struct __test_metadata *_metadata, FIXTURE_DATA(bad_namespaces) *self,
			   struct np_qp *qp)
{
	EXPECT_EQ(0, wait_stopped(qp->status.at));
	np_qp_close(qp);
	EXPECT_EQ(self->generation + 1, np_bad_wait_state(&self->bad, NVME_PEER_CTRL_LIVE));
	EXPECT_EQ(0, np_qp_check(self->bad.ctrl.fd, NP_TIMEOUT_MS));
	np_sleep_ms(500);
	EXPECT_EQ(self->generation + 1, np_bad_generation(&self->bad));
}

TEST_F(bad_namespaces, block_size_change_stops_peers)
{
	struct np_qp qp;
	int size;

	ASSERT_EQ(0, np_qp_open(&qp, self->bad.ctrl.fd, ENTRIES));
	ASSERT_EQ(0, set_bytes(&self->bad, NS_FORMAT, 12 << 16, 4));
	ASSERT_EQ(0, set_bytes(&self->bad, NS_BLOCKS, BADCTRL_NAMESPACE_BYTES >> 12, 8));
	ASSERT_EQ(0, send_event(&self->bad));
	expect_stopped(_metadata, self, &qp);
	ASSERT_EQ(0, ioctl(self->bad.disk, BLKSSZGET, &size));
	EXPECT_EQ(4096, size);
	EXPECT_EQ(0, np_bad_read_disk(&self->bad, self->bytes));
}

/* Returns when the namespaces have been scanned; Format would also read their formats. */
static int scan(struct np_bad *bad)
{
	return np_bad_rule(bad, 6, NVME_ADMIN_NAMESPACE_ATTACH, BADCTRL_LIE, 0, BADCTRL_EVERY) ?:
	       admin(bad, NVME_ADMIN_NAMESPACE_ATTACH);
}

static int set_format(struct np_bad *bad, unsigned int shift, unsigned int metadata,
		      unsigned int protection)
{
	return set_bytes(bad, NS_FORMAT, shift << 16 | metadata, 4) ?:
	       set_bytes(bad, NS_PROTECTION, protection, 1) ?: scan(bad);
}

/* Writes a block of 512 bytes with metadata. */
static int write_with_metadata(struct np_bad *bad, uint8_t *bytes, uint32_t metadata)
{
	struct nvme_passthru_cmd cmd = {
		.opcode = NVMEPEER_OP_WRITE,
		.nsid = 1,
		.addr = (uintptr_t)bytes,
		.data_len = NP_BLOCK,
		.metadata = (uintptr_t)bytes,
		.metadata_len = metadata,
	};

	return np_ioctl(bad->generic, NVME_IOCTL_IO_CMD, &cmd);
}

/* Lengths of passthrough commands are those of the present format, whose limits are the same. */
TEST_F(bad_namespaces, passthrough_follows_format)
{
	struct nvme_user_io io = { .opcode = NVMEPEER_OP_WRITE, .addr = (uintptr_t)self->bytes };

	ASSERT_EQ(0, set_format(&self->bad, 9, 64, 0));
	EXPECT_EQ(0, write_with_metadata(&self->bad, self->bytes, 64));
	EXPECT_EQ(-EINVAL, np_ioctl(self->bad.generic, NVME_IOCTL_SUBMIT_IO, &io));
	/* Metadata at the end of each block of data has no buffer of its own. */
	ASSERT_EQ(0, set_bytes(&self->bad, NS_FORMATTED, EXTENDED_METADATA, 1));
	ASSERT_EQ(0, scan(&self->bad));
	EXPECT_EQ(0, np_ioctl(self->bad.generic, NVME_IOCTL_SUBMIT_IO, &io));
	ASSERT_EQ(0, set_bytes(&self->bad, NS_FORMATTED, 0, 1));
	ASSERT_EQ(0, set_format(&self->bad, 9, 128, 0));
	EXPECT_EQ(0, write_with_metadata(&self->bad, self->bytes, 128));
	ASSERT_EQ(0, set_format(&self->bad, 12, 128, 0));
	EXPECT_EQ(-EINVAL, write_with_metadata(&self->bad, self->bytes, 128));
}

/* The controller checks the reference tags of type 1, and refuses to check those of type 3. */
TEST_F(bad_namespaces, protection_type_is_followed)
{
	ASSERT_EQ(0, set_format(&self->bad, 9, 8, 1));
	EXPECT_EQ(0, np_bad_read_disk(&self->bad, self->bytes));
	ASSERT_EQ(0, set_format(&self->bad, 9, 8, 3));
	EXPECT_EQ(0, np_bad_read_disk(&self->bad, self->bytes));
}

/* A peer has requested recovery: its queues are off the controller, which is not stopped. */
TEST_F(bad_namespaces, change_ends_quiesced_pair_without_reset)
{
	struct nvme_peer_control *control;
	struct nvme_peer_status *status;
	struct np_export page;
	struct np_qp qp;

	ASSERT_EQ(0, np_qp_open(&qp, self->bad.ctrl.fd, ENTRIES));
	status = qp.status.at;
	ASSERT_EQ(0, np_export_open(&page, qp.fd, NVME_PEER_EXPORT_CONTROL, 0));
	control = page.at;
	ASSERT_EQ(0, np_store(&control->quiesce, 1));
	ASSERT_EQ(0, np_qp_wait_state(&qp, NVME_PEER_QP_QUIESCED, NP_TIMEOUT_MS));
	ASSERT_EQ(0, set_bytes(&self->bad, NS_FORMAT, 12 << 16, 4));
	ASSERT_EQ(0, set_bytes(&self->bad, NS_BLOCKS, BADCTRL_NAMESPACE_BYTES >> 12, 8));
	ASSERT_EQ(0, send_event(&self->bad));
	EXPECT_EQ(0, wait_stopped(status));
	EXPECT_EQ(NVME_PEER_QP_REASON_NAMESPACE, status->reason);
	EXPECT_EQ(0, np_qp_check(self->bad.ctrl.fd, NP_TIMEOUT_MS));
	EXPECT_EQ(self->generation, np_bad_generation(&self->bad));
	np_export_close(&page);
	np_qp_close(&qp);
}

/**
 * struct creation - a thread that creates a queue pair
 * @ctrl_fd: controller
 * @create: the queue pair
 * @ret: result
 */
struct creation {
	int ctrl_fd;
	struct nvme_peer_qp_create create;
	int ret;
	pthread_t thread;
};

static void *create_pair(void *argument)
{
	struct creation *creation = argument;

	creation->ret = np_qp_create(creation->ctrl_fd, ENTRIES, &creation->create);
	return NULL;
}

static void *create_pair_on_cpu_1(void *argument)
{
	/* A stall blocks the CPU. */
	return np_run_on(1) ? argument : create_pair(argument);
}

/* A creation whose queues exist when a scan finds the change: it is not LIVE even once. */
TEST_F_TIMEOUT(bad_namespaces, changed_format_ends_creation, 60)
{
	struct nvmep_test_stall live = { .function = "nvmep_recover_go_live" };
	struct creation creation = { .ctrl_fd = self->bad.ctrl.fd };
	int log = np_log_open(), stall = np_stall(&live);
	void *failed;

	ASSERT_LE(0, log);
	ASSERT_LE(0, stall);
	ASSERT_EQ(0, np_run_on(0));
	ASSERT_EQ(0, set_bytes(&self->bad, NS_FORMAT, 12 << 16, 4));
	ASSERT_EQ(0, set_bytes(&self->bad, NS_BLOCKS, BADCTRL_NAMESPACE_BYTES >> 12, 8));
	ASSERT_EQ(0, pthread_create(&creation.thread, NULL, create_pair_on_cpu_1, &creation));
	EXPECT_EQ(0, np_wait_stalled(stall));
	EXPECT_EQ(0, np_bad_set(&self->bad, BADCTRL_EVENT, EVENT_NAMESPACES));
	EXPECT_EQ(0, np_log_wait(log, "format changed", NP_TIMEOUT_MS));
	EXPECT_EQ(0, np_ioctl(stall, NVMEP_TEST_STALLED, NULL));
	EXPECT_EQ(0, np_ioctl(stall, NVMEP_TEST_GO, NULL));
	pthread_join(creation.thread, &failed);
	EXPECT_EQ(NULL, failed);
	EXPECT_EQ(-EAGAIN, creation.ret);
	close(stall);
	close(log);
	EXPECT_EQ(self->generation + 1, np_bad_wait_state(&self->bad, NVME_PEER_CTRL_LIVE));
	EXPECT_EQ(0, np_qp_check(self->bad.ctrl.fd, NP_TIMEOUT_MS));
}

/*
 * A scan has found another block size and goes on with the next namespace. A creation that
 * begins now waits for its end; no queue pair existed, so there is no reset.
 */
TEST_F(bad_namespaces, changed_format_delays_new_peers)
{
	struct creation creation = { .ctrl_fd = self->bad.ctrl.fd };
	int64_t end;
	int size = 0;

	ASSERT_EQ(0, np_bad_set(&self->bad, BADCTRL_ACTIVE, 3));
	ASSERT_EQ(0, scan(&self->bad));
	ASSERT_EQ(0, np_bad_wait_namespaces(&self->bad, 2));
	ASSERT_EQ(0, set_bytes(&self->bad, NS_FORMAT, 12 << 16, 4));
	ASSERT_EQ(0, set_bytes(&self->bad, NS_BLOCKS, BADCTRL_NAMESPACE_BYTES >> 12, 8));
	/* The list, and the descriptors and the data of namespace 1. */
	ASSERT_EQ(0, np_bad_rule(&self->bad, 0, NVME_ADMIN_IDENTIFY, BADCTRL_COUNT, 0, 3));
	ASSERT_EQ(0, np_bad_rule(&self->bad, 1, NVME_ADMIN_IDENTIFY, BADCTRL_HOLD, 0, 1));
	ASSERT_EQ(0, np_bad_set(&self->bad, BADCTRL_EVENT, EVENT_NAMESPACES));
	ASSERT_EQ(0, np_bad_wait_word(&self->bad, BADCTRL_HELD, 1));
	for (end = np_now_ms() + NP_TIMEOUT_MS; size != 4096 && np_now_ms() < end; np_sleep_ms(1))
		ASSERT_EQ(0, ioctl(self->bad.disk, BLKSSZGET, &size));
	ASSERT_EQ(4096, size);

	ASSERT_EQ(0, pthread_create(&creation.thread, NULL, create_pair, &creation));
	np_sleep_ms(300);
	EXPECT_EQ(EBUSY, pthread_tryjoin_np(creation.thread, NULL));
	EXPECT_EQ(0, np_bad_set(&self->bad, BADCTRL_RELEASE, 1));
	pthread_join(creation.thread, NULL);
	EXPECT_EQ(0, creation.ret);
	close(creation.create.qp_fd);
	EXPECT_EQ(self->generation, np_bad_generation(&self->bad));
}

/*
 * The data size of a block is unchanged, but commands were built for another metadata
 * size.
 */
TEST_F(bad_namespaces, metadata_change_stops_peers)
{
	static const struct {
		const char *what;
		uint32_t offset;
		uint64_t value;
		unsigned int size;
	} changes[] = {
		{ "metadata size changed", NS_FORMAT, BLOCK_SHIFT << 16 | 8, 4 },
		{ "metadata is interleaved", NS_FORMATTED, 0x10, 1 },
		{ "protection information enabled", NS_PROTECTION, 1, 1 },
	};
	struct np_qp qp;
	size_t i;

	for (i = 0; i < sizeof(changes) / sizeof(changes[0]); i++) {
		TH_LOG("%s", changes[i].what);
		ASSERT_EQ(0, np_qp_open(&qp, self->bad.ctrl.fd, ENTRIES));
		ASSERT_EQ(0, set_bytes(&self->bad, changes[i].offset, changes[i].value,
				       changes[i].size));
		ASSERT_EQ(0, send_event(&self->bad));
		expect_stopped(_metadata, self, &qp);
		self->generation++;
	}
}

TEST_F(bad_namespaces, removal_stops_peers)
{
	struct np_qp qp;

	ASSERT_EQ(0, np_qp_open(&qp, self->bad.ctrl.fd, ENTRIES));
	ASSERT_EQ(0, np_bad_set(&self->bad, BADCTRL_ACTIVE, 2));
	ASSERT_EQ(0, np_bad_set(&self->bad, BADCTRL_EVENT, EVENT_NAMESPACES));
	EXPECT_EQ(0, wait_stopped(qp.status.at));
	np_qp_close(&qp);
	EXPECT_EQ(self->generation + 1, np_bad_wait_state(&self->bad, NVME_PEER_CTRL_LIVE));
	EXPECT_EQ(0, np_bad_wait_namespaces(&self->bad, 1));
}

/* The restart after the first stop is not interrupted by another one. */
TEST_F(bad_namespaces, two_removals_stop_controller_once)
{
	struct np_qp qp;

	ASSERT_EQ(0, np_bad_set(&self->bad, BADCTRL_ACTIVE, 3));
	ASSERT_EQ(0, scan(&self->bad));
	ASSERT_EQ(0, np_bad_wait_namespaces(&self->bad, 2));
	ASSERT_EQ(0, np_qp_open(&qp, self->bad.ctrl.fd, ENTRIES));
	ASSERT_EQ(0, np_bad_set(&self->bad, BADCTRL_ACTIVE, 0));
	ASSERT_EQ(0, np_bad_set(&self->bad, BADCTRL_EVENT, EVENT_NAMESPACES));
	EXPECT_EQ(0, np_bad_wait_namespaces(&self->bad, 0));
	EXPECT_EQ(0, wait_stopped(qp.status.at));
	np_qp_close(&qp);
	EXPECT_EQ(self->generation + 1, np_bad_wait_state(&self->bad, NVME_PEER_CTRL_LIVE));
	np_sleep_ms(500);
	EXPECT_EQ(self->generation + 1, np_bad_generation(&self->bad));
}

/* The block format is unchanged. */
TEST_F(bad_namespaces, limit_change_is_applied)
{
	int64_t end = np_now_ms() + NP_TIMEOUT_MS;
	unsigned int size;

	ASSERT_EQ(0, ioctl(self->bad.disk, BLKIOOPT, &size));
	EXPECT_EQ(0, size);
	ASSERT_EQ(0, np_bad_identify(&self->bad, NVME_CNS_NAMESPACE, NS_FEATURES,
				     FEATURE_OPTIMAL_IO));
	ASSERT_EQ(0, np_bad_identify(&self->bad, NVME_CNS_NAMESPACE, NS_NOWS, 15));
	ASSERT_EQ(0, send_event(&self->bad));
	do {
		np_sleep_ms(10);
		ASSERT_EQ(0, ioctl(self->bad.disk, BLKIOOPT, &size));
	} while (!size && np_now_ms() < end);
	EXPECT_EQ(16U << BLOCK_SHIFT, size);
}

static void *read_block(void *argument)
{
	static uint8_t bytes[NP_PAGE] __attribute__((aligned(NP_PAGE)));

	return (void *)(intptr_t)np_bad_read(argument, bytes, 0);
}

/* A command may take long, and the scan must not wait for it. */
TEST_F(bad_namespaces, rescan_does_not_block_commands)
{
	pthread_t thread;
	void *result;

	ASSERT_EQ(0, np_bad_rule(&self->bad, 0, NP_IO_READ, BADCTRL_HOLD, 0, 1));
	ASSERT_EQ(0, np_bad_rule(&self->bad, 1, NVME_ADMIN_NAMESPACE_ATTACH, BADCTRL_LIE, 0, 1));
	ASSERT_EQ(0, pthread_create(&thread, NULL, read_block, &self->bad));
	ASSERT_EQ(0, np_bad_wait_word(&self->bad, BADCTRL_HELD, 1));
	/* Returns when the namespaces have been scanned. */
	EXPECT_EQ(0, admin(&self->bad, NVME_ADMIN_NAMESPACE_ATTACH));
	EXPECT_EQ(0, np_bad_read(&self->bad, self->bytes, 0));
	EXPECT_EQ(1, np_bad_get(&self->bad, BADCTRL_HELD));
	EXPECT_EQ(0, np_bad_set(&self->bad, BADCTRL_RELEASE, 1));
	pthread_join(thread, &result);
	EXPECT_EQ(NULL, result);
}

TEST_F(bad_namespaces, unchanged_or_new_namespace_keeps_peers)
{
	struct np_command flush = { .opcode = NVMEPEER_OP_FLUSH, .nsid = 1 };
	struct np_qp qp;

	ASSERT_EQ(0, np_qp_open(&qp, self->bad.ctrl.fd, ENTRIES));
	ASSERT_EQ(0, np_bad_rule(&self->bad, 0, NVME_ADMIN_IDENTIFY, BADCTRL_COUNT, 0, BADCTRL_EVERY));
	ASSERT_EQ(0, send_event(&self->bad));
	/* The list, and the descriptors and the data of namespace 1. */
	EXPECT_EQ(0, np_bad_wait_hits(&self->bad, 0, 3));
	ASSERT_EQ(0, np_bad_set(&self->bad, BADCTRL_ACTIVE, 3));
	ASSERT_EQ(0, send_event(&self->bad));
	EXPECT_EQ(0, np_bad_wait_namespaces(&self->bad, 2));
	EXPECT_EQ(0, np_qp_run(&qp, &flush, NP_TIMEOUT_MS));
	np_qp_close(&qp);
	EXPECT_EQ(self->generation, np_bad_generation(&self->bad));
}

/* --- another namespace with the same ID ------------------------------------------- */

static unsigned long long sequence(struct np_bad *bad)
{
	char path[128], text[64];

	snprintf(path, sizeof(path), "/sys/block/nvmep%dn1/diskseq", bad->ctrl.instance);
	return np_read_file(path, text, sizeof(text)) ? 0 : strtoull(text, NULL, 10);
}

static unsigned long long wait_new_disk(struct np_bad *bad, unsigned long long old)
{
	int64_t end = np_now_ms() + NP_TIMEOUT_MS;
	unsigned long long now;

	do {
		np_sleep_ms(20);
		now = sequence(bad);
	} while ((now == old || !now) && np_now_ms() < end);
	return now;
}

/* Open files belong to the removed namespace. */
static void expect_replaced(struct __test_metadata *_metadata, FIXTURE_DATA(bad_namespaces) *self,
			    unsigned int cns, uint32_t offset)
{
	unsigned long long before = sequence(&self->bad);

	ASSERT_NE(0, before);
	EXPECT_EQ(0, np_bad_read_disk(&self->bad, self->bytes));
	ASSERT_EQ(0, scan(&self->bad));
	EXPECT_EQ(before, sequence(&self->bad));
	ASSERT_EQ(0, np_bad_identify(&self->bad, cns, offset, 0x77));
	ASSERT_EQ(0, send_event(&self->bad));
	EXPECT_NE(before, wait_new_disk(&self->bad, before));
	EXPECT_EQ(0, np_bad_wait_namespaces(&self->bad, 1));
	EXPECT_GT(0, np_bad_read_disk(&self->bad, self->bytes));
	EXPECT_GT(0, np_bad_read(&self->bad, self->bytes, 0));
	EXPECT_EQ(self->generation, np_bad_generation(&self->bad));
}

TEST_F(bad_namespaces, other_nguid_is_new_namespace)
{
	expect_replaced(_metadata, self, 0, NS_NGUID + 15);
}

TEST_F(bad_namespaces, other_eui64_is_new_namespace)
{
	expect_replaced(_metadata, self, 0, NS_EUI64);
}

TEST_F(bad_namespaces, other_uuid_is_new_namespace)
{
	expect_replaced(_metadata, self, 3, DESCRIPTORS_UUID);
}

/* Two disks of one identity would be taken for one. */
TEST_F(bad_namespaces, duplicate_identity_is_refused)
{
	char text[96];
	int log = np_log_open();

	ASSERT_LE(0, log);
	ASSERT_EQ(0, np_bad_set(&self->bad, BADCTRL_SAME_UUID, 1));
	ASSERT_EQ(0, np_bad_set(&self->bad, BADCTRL_ACTIVE, 7));
	ASSERT_EQ(0, send_event(&self->bad));
	snprintf(text, sizeof(text), "namespace 3: same identifiers as nvmep%dn1, ignoring",
		 self->bad.ctrl.instance);
	EXPECT_EQ(0, np_log_wait(log, text, NP_TIMEOUT_MS));
	EXPECT_EQ(0, np_bad_wait_namespaces(&self->bad, 1));
	EXPECT_EQ(0, np_bad_read_disk(&self->bad, self->bytes));
	/* Without the duplicates. */
	ASSERT_EQ(0, np_bad_set(&self->bad, BADCTRL_SAME_UUID, 0));
	ASSERT_EQ(0, send_event(&self->bad));
	EXPECT_EQ(0, np_bad_wait_namespaces(&self->bad, 3));
	EXPECT_EQ(0, np_bad_read_disk(&self->bad, self->bytes));
	close(log);
}

/*
 * The controller completes @count Identify commands, then fails one with Internal Error.
 */
static int fail_identify(struct np_bad *bad, uint32_t count)
{
	return np_bad_rule(bad, 0, NVME_ADMIN_IDENTIFY, BADCTRL_COUNT, 0, count) ?:
	       np_bad_rule(bad, 1, NVME_ADMIN_IDENTIFY, BADCTRL_STATUS, NVME_SC_INTERNAL, 1);
}

/* A queue pair while namespace 2 is refused, as @log shows. */
static void open_beside_refused(struct __test_metadata *_metadata,
				FIXTURE_DATA(bad_namespaces) *self, int log, struct np_qp *qp)
{
	ASSERT_LE(0, log);
	ASSERT_EQ(0, np_bad_set(&self->bad, BADCTRL_SAME_UUID, 1));
	ASSERT_EQ(0, np_bad_set(&self->bad, BADCTRL_ACTIVE, 3));
	ASSERT_EQ(0, scan(&self->bad));
	EXPECT_EQ(0, np_log_wait(log, "namespace 2: same identifiers as", NP_TIMEOUT_MS));
	ASSERT_EQ(0, np_qp_open(qp, self->bad.ctrl.fd, ENTRIES));
}

/* Peers need no disk: a namespace that is refused is compared as well. */
TEST_F(bad_namespaces, refused_namespace_stops_peers)
{
	int log = np_log_open();
	struct np_qp qp;

	open_beside_refused(_metadata, self, log, &qp);
	/* Unchanged. */
	ASSERT_EQ(0, send_event(&self->bad));
	EXPECT_EQ(0, np_log_wait(log, "namespace 2: same identifiers as", NP_TIMEOUT_MS));
	np_sleep_ms(500);
	EXPECT_EQ(self->generation, np_bad_generation(&self->bad));
	ASSERT_EQ(0, np_bad_set(&self->bad, BADCTRL_ACTIVE, 1));
	ASSERT_EQ(0, send_event(&self->bad));
	expect_stopped(_metadata, self, &qp);
	close(log);
}

/* A namespace whose blocks are too small for a disk gets others that are. */
TEST_F(bad_namespaces, other_impossible_format_stops_peers)
{
	int log = np_log_open();
	struct np_qp qp;

	ASSERT_LE(0, log);
	ASSERT_EQ(0, set_bytes(&self->bad, NS_FORMAT, 8 << 16, 4));
	ASSERT_EQ(0, scan(&self->bad));
	ASSERT_EQ(0, np_bad_wait_namespaces(&self->bad, 0));
	ASSERT_EQ(0, np_qp_open(&qp, self->bad.ctrl.fd, ENTRIES));
	ASSERT_EQ(0, set_bytes(&self->bad, NS_FORMAT, 7 << 16, 4));
	ASSERT_EQ(0, send_event(&self->bad));
	EXPECT_EQ(0, np_log_wait(log, "identifiers or format changed", NP_TIMEOUT_MS));
	EXPECT_EQ(0, wait_stopped(qp.status.at));
	np_qp_close(&qp);
	EXPECT_EQ(self->generation + 1, np_bad_wait_state(&self->bad, NVME_PEER_CTRL_LIVE));
	close(log);
}

/* A refused namespace that gets a disk may be another one. */
TEST_F(bad_namespaces, accepted_namespace_stops_peers)
{
	int log = np_log_open();
	struct np_qp qp;

	open_beside_refused(_metadata, self, log, &qp);
	ASSERT_EQ(0, np_bad_set(&self->bad, BADCTRL_SAME_UUID, 0));
	ASSERT_EQ(0, send_event(&self->bad));
	expect_stopped(_metadata, self, &qp);
	EXPECT_EQ(0, np_bad_wait_namespaces(&self->bad, 2));
	close(log);
}

/* An error of Identify does not show that a refused namespace is gone. */
TEST_F(bad_namespaces, refused_namespace_is_unidentified)
{
	int log = np_log_open();
	struct np_qp qp;

	open_beside_refused(_metadata, self, log, &qp);
	/* The list, two commands for namespace 1, then the first for namespace 2. */
	ASSERT_EQ(0, fail_identify(&self->bad, 3));
	ASSERT_EQ(0, send_event(&self->bad));
	EXPECT_EQ(0, np_log_wait(log, "namespace 2: Identify failed", NP_TIMEOUT_MS));
	EXPECT_EQ(0, np_log_wait(log, "namespace 2: same identifiers as", NP_TIMEOUT_MS));
	np_sleep_ms(500);
	EXPECT_EQ(self->generation, np_bad_generation(&self->bad));
	np_qp_close(&qp);
	close(log);
}

TEST_F(bad_namespaces, replaced_namespace_stops_peers)
{
	struct np_qp qp;

	ASSERT_EQ(0, np_qp_open(&qp, self->bad.ctrl.fd, ENTRIES));
	ASSERT_EQ(0, np_bad_identify(&self->bad, NVME_CNS_NAMESPACE, NS_NGUID, 0x77));
	ASSERT_EQ(0, send_event(&self->bad));
	expect_stopped(_metadata, self, &qp);
}

/* A Format after which Identify fails: I/O is refused until the next scan. */
TEST_F(bad_namespaces, identify_retried_after_format)
{
	ASSERT_EQ(0, np_bad_rule(&self->bad, 2, NVME_ADMIN_FORMAT, BADCTRL_LIE, 0, 1));
	ASSERT_EQ(0, fail_identify(&self->bad, 0));
	EXPECT_EQ(0, admin(&self->bad, NVME_ADMIN_FORMAT));
	EXPECT_EQ(1, np_bad_hits(&self->bad, 1));
	EXPECT_EQ(0, np_bad_read(&self->bad, self->bytes, 0));
	EXPECT_EQ(0, np_bad_read_disk(&self->bad, self->bytes));
}

/* The descriptors are read after the list. The driver scans again without an event. */
TEST_F(bad_namespaces, transient_error_of_first_scan_is_retried)
{
	int log = np_log_open();

	ASSERT_LE(0, log);
	ASSERT_EQ(0, np_bad_set(&self->bad, BADCTRL_ACTIVE, 0));
	ASSERT_EQ(0, scan(&self->bad));
	ASSERT_EQ(0, np_bad_wait_namespaces(&self->bad, 0));
	ASSERT_EQ(0, np_bad_set(&self->bad, BADCTRL_ACTIVE, 1));
	ASSERT_EQ(0, fail_identify(&self->bad, 1));
	ASSERT_EQ(0, send_event(&self->bad));
	EXPECT_EQ(0, np_bad_wait_hits(&self->bad, 1, 1));
	EXPECT_EQ(0, np_log_wait(log, "namespace 1: Identify failed, status 0x6", NP_TIMEOUT_MS));
	EXPECT_EQ(0, np_bad_wait_namespaces(&self->bad, 1));
	close(log);
}

/* Some controllers refuse the descriptor list without Do Not Retry: it is optional. */
TEST_F(bad_namespaces, refused_descriptor_list_is_tolerated)
{
	char path[128], text[64];

	ASSERT_EQ(0, np_bad_set(&self->bad, BADCTRL_ACTIVE, 0));
	ASSERT_EQ(0, scan(&self->bad));
	ASSERT_EQ(0, np_bad_wait_namespaces(&self->bad, 0));
	ASSERT_EQ(0, np_bad_set(&self->bad, BADCTRL_ACTIVE, 1));
	ASSERT_EQ(0, np_bad_rule(&self->bad, 0, NVME_ADMIN_IDENTIFY, BADCTRL_COUNT, 0, 1));
	ASSERT_EQ(0, np_bad_rule(&self->bad, 1, NVME_ADMIN_IDENTIFY, BADCTRL_STATUS,
				 NVME_SC_INVALID_FIELD, 1));
	ASSERT_EQ(0, send_event(&self->bad));
	EXPECT_EQ(0, np_bad_wait_namespaces(&self->bad, 1));
	/* Found by the first scan, so without the identifier of the list. */
	snprintf(path, sizeof(path), "/sys/block/nvmep%dn1/uuid", self->bad.ctrl.instance);
	EXPECT_EQ(-ENOENT, np_read_file(path, text, sizeof(text)));
}

/* An error of the list is not another identity: the disk stays, and the scan is repeated. */
TEST_F(bad_namespaces, refused_descriptor_list_keeps_disk)
{
	static const uint16_t statuses[] = {
		NVME_SC_INVALID_FIELD, NVME_STATUS_DNR | NVME_SC_INTERNAL,
	};
	unsigned long long before = sequence(&self->bad);
	size_t i;

	ASSERT_NE(0, before);
	for (i = 0; i < sizeof(statuses) / sizeof(statuses[0]); i++) {
		/* The namespace list, then the descriptors. */
		ASSERT_EQ(0, np_bad_rule(&self->bad, 0, NVME_ADMIN_IDENTIFY, BADCTRL_COUNT, 0, 1));
		ASSERT_EQ(0, np_bad_rule(&self->bad, 1, NVME_ADMIN_IDENTIFY, BADCTRL_STATUS,
					 statuses[i], 1));
		ASSERT_EQ(0, np_bad_rule(&self->bad, 2, NVME_ADMIN_IDENTIFY, BADCTRL_COUNT, 0,
					 BADCTRL_EVERY));
		ASSERT_EQ(0, send_event(&self->bad));
		EXPECT_EQ(0, np_bad_wait_hits(&self->bad, 1, 1));
		EXPECT_EQ(0, np_bad_wait_hits(&self->bad, 2, 3));
		/* Returns after the one that is repeated. */
		ASSERT_EQ(0, scan(&self->bad));
		EXPECT_EQ(before, sequence(&self->bad));
		EXPECT_EQ(0, np_bad_read_disk(&self->bad, self->bytes));
	}
}

/* The scan that finds the new NSID still has the disk of the old one. */
TEST_F(bad_namespaces, namespace_with_new_nsid_is_added)
{
	int64_t end = np_now_ms() + NP_TIMEOUT_MS;

	ASSERT_EQ(0, np_bad_set(&self->bad, BADCTRL_SAME_UUID, 1));
	ASSERT_EQ(0, np_bad_set(&self->bad, BADCTRL_ACTIVE, 2));
	ASSERT_EQ(0, send_event(&self->bad));
	while (sequence(&self->bad) && np_now_ms() < end)
		np_sleep_ms(10);
	EXPECT_EQ(0, sequence(&self->bad));
	EXPECT_EQ(0, np_bad_wait_namespaces(&self->bad, 1));
}

static void *unbind(void *bad)
{
	return (void *)(intptr_t)np_unbind(((struct np_bad *)bad)->address);
}

/* A scan does not go on with the next namespace when the controller is being removed. */
TEST_F(bad_namespaces, unbind_ends_scan)
{
	int64_t end = np_now_ms() + NP_TIMEOUT_MS;
	struct nvme_peer_info info;
	pthread_t remover;
	void *result;

	ASSERT_EQ(0, np_bad_set(&self->bad, BADCTRL_ACTIVE, 3));
	ASSERT_EQ(0, scan(&self->bad));
	ASSERT_EQ(0, np_bad_wait_namespaces(&self->bad, 2));
	/* The list, the descriptors of namespace 1, and what follows. */
	ASSERT_EQ(0, np_bad_rule(&self->bad, 0, NVME_ADMIN_IDENTIFY, BADCTRL_COUNT, 0, 1));
	ASSERT_EQ(0, np_bad_rule(&self->bad, 1, NVME_ADMIN_IDENTIFY, BADCTRL_HOLD, 0, 1));
	ASSERT_EQ(0, np_bad_rule(&self->bad, 2, NVME_ADMIN_IDENTIFY, BADCTRL_COUNT, 0, BADCTRL_EVERY));
	ASSERT_EQ(0, np_bad_set(&self->bad, BADCTRL_EVENT, EVENT_NAMESPACES));
	ASSERT_EQ(0, np_bad_wait_word(&self->bad, BADCTRL_HELD, 1));
	ASSERT_EQ(0, pthread_create(&remover, NULL, unbind, &self->bad));
	while (np_info(self->bad.ctrl.fd, &info) != -ESHUTDOWN && np_now_ms() < end)
		np_sleep_ms(1);
	EXPECT_LT(np_now_ms(), end);
	EXPECT_EQ(0, np_bad_set(&self->bad, BADCTRL_RELEASE, 1));
	pthread_join(remover, &result);
	EXPECT_EQ(NULL, result);
	/* The rest of namespace 1. */
	EXPECT_EQ(1, np_bad_hits(&self->bad, 2));
}

/* --- peers wait for a scan -------------------------------------------------------- */

/* The controller is reset and its namespace list cannot be read. */
static void reset_and_fail_scan(struct __test_metadata *_metadata,
				FIXTURE_DATA(bad_namespaces) *self)
{
	int log = np_log_open();

	ASSERT_LE(0, log);
	ASSERT_EQ(0, np_bad_set(&self->bad, BADCTRL_ACTIVE, BADCTRL_ACTIVE_ENDLESS | 1));
	ASSERT_EQ(0, np_ioctl(self->bad.ctrl.fd, NVME_IOCTL_RESET, NULL));
	EXPECT_EQ(0, np_log_wait(log, "namespace scan failed", NP_TIMEOUT_MS));
	close(log);
}

/* A failed scan has not compared the namespaces with those that peers were given. */
TEST_F_TIMEOUT(bad_namespaces, failed_scan_holds_peers_back, 60)
{
	struct np_command flush = { .opcode = NVMEPEER_OP_FLUSH, .nsid = 1 };
	struct nvme_peer_qp_create create;
	struct nvme_peer_qp_info info;
	struct np_qp qp;

	ASSERT_EQ(0, np_qp_open(&qp, self->bad.ctrl.fd, ENTRIES));
	reset_and_fail_scan(_metadata, self);
	ASSERT_EQ(0, np_qp_info(qp.fd, &info));
	EXPECT_EQ(-EAGAIN, np_qp_rearm_loss(&qp, info.losses));
	EXPECT_EQ(-EAGAIN, np_qp_create(self->bad.ctrl.fd, ENTRIES, &create));
	/* The scan is retried without an event. */
	ASSERT_EQ(0, np_bad_set(&self->bad, BADCTRL_ACTIVE, 1));
	EXPECT_EQ(0, np_qp_rearm(&qp, NP_TIMEOUT_MS));
	EXPECT_EQ(0, np_qp_run(&qp, &flush, NP_TIMEOUT_MS));
	np_qp_close(&qp);
	EXPECT_EQ(0, np_qp_check(self->bad.ctrl.fd, NP_TIMEOUT_MS));
}

/* A queue pair that waits for re-arm when a scan finds another block size. */
TEST_F_TIMEOUT(bad_namespaces, block_size_change_fails_quiesced_peers, 60)
{
	struct nvme_peer_qp_info info;
	struct np_qp qp;

	ASSERT_EQ(0, np_qp_open(&qp, self->bad.ctrl.fd, ENTRIES));
	reset_and_fail_scan(_metadata, self);
	EXPECT_EQ(0, np_qp_wait_state(&qp, NVME_PEER_QP_QUIESCED, NP_TIMEOUT_MS));
	ASSERT_EQ(0, set_bytes(&self->bad, NS_FORMAT, 12 << 16, 4));
	ASSERT_EQ(0, set_bytes(&self->bad, NS_BLOCKS, BADCTRL_NAMESPACE_BYTES >> 12, 8));
	ASSERT_EQ(0, np_bad_set(&self->bad, BADCTRL_ACTIVE, 1));
	EXPECT_EQ(0, wait_stopped(qp.status.at));
	ASSERT_EQ(0, np_qp_info(qp.fd, &info));
	EXPECT_EQ(NVME_PEER_QP_REASON_NAMESPACE, info.reason);
	EXPECT_EQ(-ESHUTDOWN, np_qp_rearm_loss(&qp, info.losses));
	np_qp_close(&qp);
}

TEST_F(bad_namespaces, identify_error_keeps_namespace)
{
	unsigned long long before = sequence(&self->bad);

	ASSERT_EQ(0, fail_identify(&self->bad, 1));
	ASSERT_EQ(0, send_event(&self->bad));
	EXPECT_EQ(0, np_bad_wait_hits(&self->bad, 1, 1));
	/* Returns after the scan of the event. */
	ASSERT_EQ(0, scan(&self->bad));
	EXPECT_EQ(before, sequence(&self->bad));
	EXPECT_EQ(0, np_bad_read_disk(&self->bad, self->bytes));
}

TEST_HARNESS_MAIN
