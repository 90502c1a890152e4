// SPDX-License-Identifier: GPL-2.0-only
/*
 * Mediated queue pairs on a controller with faults: commands that do not end are aborted, or end with
 * the one shared queue pair that they are on; statuses; and losses of the controller.
 *
 * kernels: debug
 * long-kernels: 6.1 6.12 7 debug kcsan
 * iommu: on
 * timeout: 300
 */
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "npbad.h"
#include "tenant.h"
#include "kselftest_harness.h"

#define ENTRIES		16U
#define TIMEOUT_MS	2000U
#define ABORTED_SQ	0x008
/* In less than this the driver, which waits 1 s for commands after their Abort, has not deleted a queue. */
#define RECOVERY_MS	900
/* Rounds of a test that had to be as fast and was not. */
#define ROUNDS		3U

/* Abort of the next command that hangs is refused. */
static int hold_without_abort(struct np_bad *bad)
{
	return np_bad_rule(bad, 0, NP_IO_READ, BADCTRL_HOLD, 0, 1) ?:
	       np_bad_rule(bad, 1, NVME_ADMIN_ABORT, BADCTRL_STATUS, NVME_SC_INTERNAL, 1);
}

FIXTURE(bad_mediated)
{
	struct np_bad bad;
	struct np_memory memory;
	struct np_qp qp;
	uint32_t window;
	int generation;
};

static int open_qp(struct np_qp *qp, struct np_bad *bad, struct np_memory *memory, uint32_t *window)
{
	np_qp_set_timeout(TIMEOUT_MS);
	return np_qp_open(qp, bad->ctrl.fd, ENTRIES) ?: np_buf_add(qp, memory->fd, 0, &memory->slot) ?:
	       np_window_add(qp, bad->disk, 0, 0, window);
}

FIXTURE_SETUP(bad_mediated)
{
	self->qp.fd = -1;
	np_qp_set_mode(NVME_PEER_MODE_MEDIATED);
	if (np_bad_open(&self->bad) == -ENOENT)
		SKIP(return, "no badctrl in this guest");
	ASSERT_EQ(0, np_bad_short_io_timeout());
	ASSERT_EQ(0, np_bad_bind(&self->bad, 1));
	ASSERT_EQ(0, np_memory_alloc(&self->memory, self->bad.ctrl.fd));
	ASSERT_EQ(0, open_qp(&self->qp, &self->bad, &self->memory, &self->window));
	self->generation = np_bad_generation(&self->bad);
}

FIXTURE_TEARDOWN(bad_mediated)
{
	if (!self->bad.address[0])
		return;
	np_qp_close(&self->qp);
	np_memory_free(&self->memory);
	/* The other controller is checked in direct mode. */
	np_qp_set_mode(NVME_PEER_MODE_DIRECT);
	EXPECT_EQ(0, np_bad_close(&self->bad));
}

static struct np_command read_one(FIXTURE_DATA(bad_mediated) *self)
{
	return np_window_command(NVMEPEER_OP_READ, self->window, 0, 8, self->memory.slot, 0);
}

static int run(FIXTURE_DATA(bad_mediated) *self, uint8_t opcode)
{
	struct np_command command = np_window_command(opcode, self->window, 0, 8, self->memory.slot, 0);

	return np_qp_run(&self->qp, &command, NP_TIMEOUT_MS);
}

static uint32_t state_of(const struct np_qp *qp)
{
	return ((const volatile struct nvme_peer_status *)qp->status.at)->state;
}

TEST_F(bad_mediated, status_of_the_controller)
{
	struct nvme_peer_qp_stats stats;

	ASSERT_EQ(0, np_bad_rule(&self->bad, 0, NP_IO_READ, BADCTRL_STATUS, 0x281, 1));
	EXPECT_EQ(0x281, run(self, NVMEPEER_OP_READ));
	/* A code of its vendor is not taken for one of the driver. */
	ASSERT_EQ(0, np_bad_rule(&self->bad, 0, NP_IO_READ, BADCTRL_STATUS, 0x7c1, 1));
	EXPECT_EQ(NVME_SC_INTERNAL, run(self, NVMEPEER_OP_READ));
	EXPECT_EQ(0, run(self, NVMEPEER_OP_READ));
	ASSERT_EQ(0, np_qp_stats(&self->qp, &stats));
	EXPECT_EQ(2, stats.failed);
	EXPECT_EQ(3, stats.reads);
}

TEST_F(bad_mediated, command_that_hangs_is_aborted)
{
	ASSERT_EQ(0, np_bad_rule(&self->bad, 0, NP_IO_READ, BADCTRL_HOLD, 0, 1));
	ASSERT_EQ(0, np_bad_rule(&self->bad, 1, NVME_ADMIN_ABORT, BADCTRL_COUNT, 0, BADCTRL_EVERY));
	EXPECT_EQ(NVME_SC_ABORTED, run(self, NVMEPEER_OP_READ));
	EXPECT_EQ(1, np_bad_hits(&self->bad, 1));
	EXPECT_EQ(0, run(self, NVMEPEER_OP_READ));
	EXPECT_EQ(self->generation, np_bad_generation(&self->bad));
	EXPECT_EQ(NVME_PEER_QP_LIVE, state_of(&self->qp));
}

static int put_some(struct np_qp *qp, const struct np_command *command, uint32_t count)
{
	while (count--)
		np_qp_put(qp, command);
	return np_qp_ring_doorbell(qp);
}

static int put_reads(FIXTURE_DATA(bad_mediated) *self, uint32_t count)
{
	struct np_command command = read_one(self);

	return np_bad_rule(&self->bad, 0, NP_IO_READ, BADCTRL_HOLD, 0, count) ?:
	       put_some(&self->qp, &command, count) ?: np_bad_wait_hits(&self->bad, 0, count);
}

/* ACL allows one Abort at a time: each one that has ended makes room for the next, and none is sent twice. */
TEST_F(bad_mediated, each_command_that_hangs_is_aborted_once)
{
	uint32_t i, round;

	ASSERT_EQ(0, np_bad_identify(&self->bad, NVME_CNS_CONTROLLER, CTRL_ACL, 0));
	ASSERT_EQ(0, np_ioctl(self->bad.ctrl.fd, NVME_IOCTL_RESET, NULL));
	ASSERT_EQ(self->generation + 1, np_bad_wait_state(&self->bad, NVME_PEER_CTRL_LIVE));
	ASSERT_EQ(0, np_qp_rearm(&self->qp, NP_TIMEOUT_MS));
	for (round = 0; round < 2; round++) {
		ASSERT_EQ(0, np_bad_rule(&self->bad, 1, NVME_ADMIN_ABORT, BADCTRL_COUNT, 0, BADCTRL_EVERY));
		ASSERT_EQ(0, put_reads(self, 3));
		for (i = 0; i < 3; i++)
			EXPECT_EQ(NVME_SC_ABORTED, np_qp_reap(&self->qp, NULL, NP_TIMEOUT_MS));
		EXPECT_EQ(3, np_bad_hits(&self->bad, 1));
	}
	EXPECT_EQ(self->generation + 1, np_bad_generation(&self->bad));
}

/*
 * Waits for the first Abort, by rule 1. Returns the last time at which it had not been sent: 0 if that is not
 * known; or -ETIMEDOUT.
 */
static int64_t wait_abort(struct np_bad *bad)
{
	int64_t before = 0, now = np_now_ms(), end = now + NP_TIMEOUT_MS;

	while (!np_bad_hits(bad, 1)) {
		before = now;
		if (now > end)
			return -ETIMEDOUT;
		np_sleep_ms(1);
		now = np_now_ms();
	}
	return before;
}

/* An Abort ends before its command does, which has some time: its queue pair is not deleted. */
TEST_F_TIMEOUT(bad_mediated, command_ends_after_its_abort, 60)
{
	int64_t aborted;
	uint32_t i = 0;
	int status;

	do {
		ASSERT_EQ(0, np_bad_rule(&self->bad, 1, NVME_ADMIN_ABORT, BADCTRL_STATUS, 0, BADCTRL_EVERY));
		ASSERT_EQ(0, np_bad_rule(&self->bad, 2, NVME_ADMIN_DELETE_SQ, BADCTRL_COUNT, 0,
					 BADCTRL_EVERY));
		ASSERT_EQ(0, put_reads(self, 1));
		aborted = wait_abort(&self->bad);
		ASSERT_LE(0, aborted);
		np_sleep_ms(100);
		ASSERT_EQ(0, np_bad_set(&self->bad, BADCTRL_RELEASE, 1));
		status = np_qp_reap(&self->qp, NULL, NP_TIMEOUT_MS);
	} while (np_now_ms() - aborted >= RECOVERY_MS && ++i < ROUNDS);
	EXPECT_EQ(0, status);
	EXPECT_EQ(0, run(self, NVMEPEER_OP_READ));
	EXPECT_EQ(0, np_bad_hits(&self->bad, 2));
	EXPECT_EQ(self->generation, np_bad_generation(&self->bad));
}

/* A tenant chooses a short timeout: commands of all are aborted as late as those of the CPU. */
TEST_F(bad_mediated, short_timeout_of_a_tenant)
{
	struct nvme_peer_qp_limits limits = { .size = sizeof(limits) };

	np_qp_close(&self->qp);
	np_qp_set_timeout(100);
	ASSERT_EQ(0, np_qp_open(&self->qp, self->bad.ctrl.fd, ENTRIES));
	ASSERT_EQ(0, np_buf_add(&self->qp, self->memory.fd, 0, &self->memory.slot));
	ASSERT_EQ(0, np_window_add(&self->qp, self->bad.disk, 0, 0, &self->window));
	ASSERT_EQ(0, np_ioctl(self->qp.fd, NVME_PEER_QP_LIMITS, &limits));
	EXPECT_EQ(2000, limits.timeout_ms);
	/* The later of both counts. */
	ASSERT_EQ(0, np_bad_long_io_timeout(&self->bad));
	ASSERT_EQ(0, np_bad_rule(&self->bad, 1, NVME_ADMIN_ABORT, BADCTRL_COUNT, 0, BADCTRL_EVERY));
	ASSERT_EQ(0, put_reads(self, 1));
	np_sleep_ms(500);
	ASSERT_EQ(0, np_bad_set(&self->bad, BADCTRL_RELEASE, 1));
	EXPECT_EQ(0, np_qp_reap(&self->qp, NULL, NP_TIMEOUT_MS));
	EXPECT_EQ(0, np_bad_hits(&self->bad, 1));
}

/* A Flush is that of others, too: it has the time of the CPU's commands, whatever its tenant chooses. */
TEST_F(bad_mediated, long_timeout_is_not_that_of_a_flush)
{
	struct np_command command, flush = { .opcode = NVMEPEER_OP_FLUSH };

	np_qp_close(&self->qp);
	np_qp_set_timeout(60000);
	ASSERT_EQ(0, np_qp_open(&self->qp, self->bad.ctrl.fd, ENTRIES));
	ASSERT_EQ(0, np_buf_add(&self->qp, self->memory.fd, 0, &self->memory.slot));
	ASSERT_EQ(0, np_window_add(&self->qp, self->bad.disk, 0, 0, &self->window));
	ASSERT_EQ(0, np_bad_rule(&self->bad, 0, NP_IO_READ, BADCTRL_HOLD, 0, 1));
	ASSERT_EQ(0, np_bad_rule(&self->bad, 1, NP_IO_FLUSH, BADCTRL_HOLD, 0, 1));
	ASSERT_EQ(0, np_bad_rule(&self->bad, 2, NVME_ADMIN_ABORT, BADCTRL_COUNT, 0, BADCTRL_EVERY));
	command = read_one(self);
	flush.nsid = self->window;
	np_qp_put(&self->qp, &command);
	np_qp_put(&self->qp, &flush);
	ASSERT_EQ(0, np_qp_ring_doorbell(&self->qp));
	EXPECT_EQ(NVME_SC_ABORTED, np_qp_reap(&self->qp, NULL, NP_TIMEOUT_MS));
	EXPECT_EQ(1, np_bad_hits(&self->bad, 2));
	ASSERT_EQ(0, np_bad_set(&self->bad, BADCTRL_RELEASE, 1));
	EXPECT_EQ(0, np_qp_reap(&self->qp, NULL, NP_TIMEOUT_MS));
}

/* Other commands of a tenant do not wait for its Write Zeroes, as the next one does. */
TEST_F(bad_mediated, one_write_zeroes_at_a_time)
{
	struct np_command command = np_window_command(NVMEPEER_OP_WRITE_ZEROES, self->window, 0, 8, 0, 0);

	ASSERT_EQ(0, np_bad_long_io_timeout(&self->bad));
	ASSERT_EQ(0, np_bad_rule(&self->bad, 0, NP_IO_WRITE_ZEROES, BADCTRL_HOLD, 0, BADCTRL_EVERY));
	ASSERT_EQ(0, put_some(&self->qp, &command, 1));
	EXPECT_EQ(0, np_bad_wait_word(&self->bad, BADCTRL_HELD, 1));
	EXPECT_EQ(0, run(self, NVMEPEER_OP_READ));
	ASSERT_EQ(0, put_some(&self->qp, &command, 1));
	np_sleep_ms(20);
	EXPECT_EQ(1, np_bad_get(&self->bad, BADCTRL_HELD));
	ASSERT_EQ(0, np_bad_set(&self->bad, BADCTRL_RELEASE, 1));
	EXPECT_EQ(0, np_qp_reap(&self->qp, NULL, NP_TIMEOUT_MS));
	EXPECT_EQ(0, np_bad_wait_word(&self->bad, BADCTRL_HELD, 1));
	ASSERT_EQ(0, np_bad_set(&self->bad, BADCTRL_RELEASE, 1));
	EXPECT_EQ(0, np_qp_reap(&self->qp, NULL, NP_TIMEOUT_MS));
}

/**
 * struct opener - a thread that opens a queue pair
 */
struct opener {
	int ctrl_fd;
	struct np_qp qp;
	int ret;
	pthread_t thread;
};

static void *open_one(void *argument)
{
	struct opener *opener = argument;

	opener->ret = np_qp_open(&opener->qp, opener->ctrl_fd, ENTRIES);
	return NULL;
}

/* A write, as the kernel reads new disks, that the controller holds and does not abort. */
static int hang_one(FIXTURE_DATA(bad_mediated) *self)
{
	struct np_command command = read_one(self);

	command.opcode = NVMEPEER_OP_WRITE;
	np_qp_put(&self->qp, &command);
	return np_bad_rule(&self->bad, 0, NP_IO_WRITE, BADCTRL_HOLD, 0, 1) ?:
	       np_qp_ring_doorbell(&self->qp) ?: np_bad_wait_hits(&self->bad, 0, 1);
}

static int add_namespace(struct np_bad *bad)
{
	int64_t end = np_now_ms() + NP_TIMEOUT_MS;
	char node[64];
	int ret;

	snprintf(node, sizeof(node), "/dev/nvmep%dn2", bad->ctrl.instance);
	ret = np_bad_set(bad, BADCTRL_ACTIVE, 3) ?: np_bad_set(bad, BADCTRL_EVENT, EVENT_NAMESPACES);
	while (!ret && access(node, F_OK)) {
		np_sleep_ms(1);
		if (np_now_ms() > end)
			ret = -ETIMEDOUT;
	}
	return ret;
}

/* Its queues exist before a scan has ended that has found a change: not LIVE even once. */
TEST_F(bad_mediated, opened_before_the_end_of_a_scan)
{
	struct nvmep_test_stall scan = {
		.function = "nvmep_recover_allow_rearm",
		.after = "nvmep_recover_namespaces_changed",
		.any_thread = 1,
	};
	struct opener opener = { .ctrl_fd = self->bad.ctrl.fd };
	int stall;

	ASSERT_EQ(0, add_namespace(&self->bad));
	np_qp_close(&self->qp);
	ASSERT_EQ(0, np_works_on(1) ?: np_run_on(0));
	ASSERT_EQ(0, np_bad_rule(&self->bad, 0, NVME_ADMIN_CREATE_SQ, BADCTRL_HOLD, 0, 1));
	stall = np_stall(&scan);
	ASSERT_LE(0, stall);
	ASSERT_EQ(0, pthread_create(&opener.thread, NULL, open_one, &opener));
	EXPECT_EQ(0, np_bad_wait_word(&self->bad, BADCTRL_HELD, 1));
	EXPECT_EQ(0, np_bad_set(&self->bad, BADCTRL_ACTIVE, 1));
	EXPECT_EQ(0, np_bad_set(&self->bad, BADCTRL_EVENT, EVENT_NAMESPACES));
	EXPECT_EQ(0, np_wait_stalled(stall));
	EXPECT_EQ(0, np_bad_set(&self->bad, BADCTRL_RELEASE, 1));
	ASSERT_EQ(0, pthread_join(opener.thread, NULL));
	EXPECT_EQ(-EAGAIN, opener.ret);
	EXPECT_EQ(0, np_ioctl(stall, NVMEP_TEST_STALLED, NULL));
	close(stall);
	EXPECT_EQ(0, np_works_anywhere());
	ASSERT_EQ(0, open_qp(&self->qp, &self->bad, &self->memory, &self->window));
	EXPECT_EQ(0, run(self, NVMEPEER_OP_READ));
}

/*
 * Two writes hang, the second on the other shared queue pair: it is sent while the driver waits for the first,
 * after its Abort. Returns 0, -EAGAIN if this was not in time, or an error.
 */
static int hang_both(FIXTURE_DATA(bad_mediated) *self)
{
	int ret = np_bad_rule(&self->bad, 1, NVME_ADMIN_ABORT, BADCTRL_STATUS, NVME_SC_INTERNAL, 2) ?:
		  hang_one(self);
	int64_t aborted;

	if (ret)
		return ret;
	aborted = wait_abort(&self->bad);
	ret = aborted < 0 ? -ETIMEDOUT : hang_one(self);
	if (ret || np_now_ms() - aborted < RECOVERY_MS)
		return ret;
	return np_qp_reap(&self->qp, NULL, NP_TIMEOUT_MS) == ABORTED_SQ &&
	       np_qp_reap(&self->qp, NULL, NP_TIMEOUT_MS) == ABORTED_SQ ? -EAGAIN : -EIO;
}

/*
 * A queue pair is opened while recovery of a stuck one, the second, holds the mediator, and meanwhile a
 * scan finds that a namespace is gone and does not succeed: the first one, which others use, goes on.
 */
TEST_F_TIMEOUT(bad_mediated, opened_while_namespaces_change, 120)
{
	struct opener opener = { .ctrl_fd = self->bad.ctrl.fd };
	uint32_t i;
	int ret;

	ASSERT_EQ(0, add_namespace(&self->bad));
	for (i = 0, ret = -EAGAIN; i < ROUNDS && ret == -EAGAIN; i++)
		ret = hang_both(self);
	ASSERT_EQ(0, ret);
	EXPECT_EQ(ABORTED_SQ, np_qp_reap(&self->qp, NULL, NP_TIMEOUT_MS));
	/* The ring of the first one is beyond its first entries. */
	for (i = 0; i < 5; i++)
		EXPECT_EQ(0, run(self, NVMEPEER_OP_READ));
	ASSERT_EQ(0, np_bad_wait_hits(&self->bad, 1, 2));
	ASSERT_EQ(0, pthread_create(&opener.thread, NULL, open_one, &opener));
	np_sleep_ms(100);
	/* After the namespace list no Identify succeeds. */
	ASSERT_EQ(0, np_bad_rule(&self->bad, 2, NVME_ADMIN_IDENTIFY, BADCTRL_COUNT, 0, 1));
	ASSERT_EQ(0, np_bad_rule(&self->bad, 3, NVME_ADMIN_IDENTIFY, BADCTRL_STATUS, NVME_SC_INTERNAL,
				 BADCTRL_EVERY));
	ASSERT_EQ(0, np_bad_set(&self->bad, BADCTRL_ACTIVE, 1));
	ASSERT_EQ(0, np_bad_set(&self->bad, BADCTRL_EVENT, EVENT_NAMESPACES));
	ASSERT_EQ(0, pthread_join(opener.thread, NULL));
	TH_LOG("the opener got %d", opener.ret);
	EXPECT_TRUE(opener.ret == -EAGAIN || !opener.ret);
	EXPECT_EQ(ABORTED_SQ, np_qp_reap(&self->qp, NULL, NP_TIMEOUT_MS));
	for (i = 0; i < 5; i++)
		EXPECT_EQ(0, run(self, NVMEPEER_OP_READ));
	EXPECT_EQ(self->generation, np_bad_generation(&self->bad));
	if (!opener.ret)
		np_qp_close(&opener.qp);
}

/* Abort does not help: the shared queue pair is deleted, and no neighbour is lost. */
TEST_F(bad_mediated, stuck_queue_pair_is_replaced)
{
	struct np_memory other_memory;
	struct np_command command = read_one(self);
	struct np_qp other;
	uint32_t window, i;

	ASSERT_EQ(0, np_memory_alloc(&other_memory, self->bad.ctrl.fd));
	ASSERT_EQ(0, open_qp(&other, &self->bad, &other_memory, &window));
	for (i = 0; i < 3; i++) {
		ASSERT_EQ(0, hold_without_abort(&self->bad));
		np_qp_put(&self->qp, &command);
		ASSERT_EQ(0, np_qp_ring_doorbell(&self->qp));
		ASSERT_EQ(0, np_bad_wait_hits(&self->bad, 0, 1));
		/* The other tenant goes on meanwhile, also by the other queue pair. */
		while (np_qp_reap(&self->qp, NULL, 0) == -ETIMEDOUT) {
			struct np_command beside = np_window_command(NVMEPEER_OP_READ, window, 0, 8,
								     other_memory.slot, 0);

			EXPECT_EQ(0, np_qp_run(&other, &beside, NP_TIMEOUT_MS));
		}
		EXPECT_EQ(0, run(self, NVMEPEER_OP_READ));
	}
	EXPECT_EQ(self->generation, np_bad_generation(&self->bad));
	EXPECT_EQ(NVME_PEER_QP_LIVE, state_of(&self->qp));
	EXPECT_EQ(NVME_PEER_QP_LIVE, state_of(&other));
	np_qp_close(&other);
	np_memory_free(&other_memory);
}

TEST_F(bad_mediated, commands_of_a_deleted_queue_pair_are_aborted)
{
	ASSERT_EQ(0, hold_without_abort(&self->bad));
	EXPECT_EQ(ABORTED_SQ, run(self, NVMEPEER_OP_READ));
	EXPECT_EQ(0, run(self, NVMEPEER_OP_READ));
	EXPECT_EQ(self->generation, np_bad_generation(&self->bad));
}

/* Shutdown deletes the queues of the CPU and all shared ones. */
TEST_F(bad_mediated, shutdown_deletes_each_queue)
{
	static const uint8_t opcodes[] = {
		NVME_ADMIN_CREATE_SQ, NVME_ADMIN_DELETE_SQ, NVME_ADMIN_DELETE_CQ,
	};
	struct nvme_peer_info info;
	unsigned int i;

	np_qp_close(&self->qp);
	np_memory_free(&self->memory);
	ASSERT_EQ(0, np_bad_unbind(&self->bad));
	for (i = 0; i < 3; i++)
		ASSERT_EQ(0, np_bad_rule(&self->bad, i, opcodes[i], BADCTRL_COUNT, 0, BADCTRL_EVERY));
	ASSERT_EQ(0, np_bad_bind(&self->bad, 1));
	ASSERT_EQ(0, np_memory_alloc(&self->memory, self->bad.ctrl.fd));
	ASSERT_EQ(0, open_qp(&self->qp, &self->bad, &self->memory, &self->window));
	ASSERT_EQ(0, np_info(self->bad.ctrl.fd, &info));
	EXPECT_EQ(0, np_bad_shut_down(&self->bad));
	EXPECT_LT(info.qids_cpu + 1, np_bad_hits(&self->bad, 0));
	for (i = 1; i < 3; i++)
		EXPECT_EQ(np_bad_hits(&self->bad, 0), np_bad_hits(&self->bad, i));
}

/* The controller does not complete it with its queue either. */
TEST_F(bad_mediated, dropped_command_ends_with_its_queue_pair)
{
	ASSERT_EQ(0, np_bad_rule(&self->bad, 0, NP_IO_READ, BADCTRL_DROP, 0, 1));
	EXPECT_EQ(ABORTED_SQ, run(self, NVMEPEER_OP_READ));
	EXPECT_EQ(0, run(self, NVMEPEER_OP_READ));
	EXPECT_EQ(self->generation, np_bad_generation(&self->bad));
}

/* It would complete in the ring of after the re-arm. */
TEST_F(bad_mediated, recovery_waits_for_commands_in_flight)
{
	struct np_export control;

	ASSERT_EQ(0, np_bad_long_io_timeout(&self->bad));
	ASSERT_EQ(0, np_export_open(&control, self->qp.fd, NVME_PEER_EXPORT_CONTROL, 0));
	ASSERT_EQ(0, hang_one(self));
	((volatile struct nvme_peer_control *)control.at)->quiesce = 1;
	EXPECT_EQ(-ETIMEDOUT, np_qp_wait_state(&self->qp, NVME_PEER_QP_QUIESCED, 700));
	ASSERT_EQ(0, np_bad_set(&self->bad, BADCTRL_RELEASE, 1));
	ASSERT_EQ(0, np_qp_wait_state(&self->qp, NVME_PEER_QP_QUIESCED, NP_TIMEOUT_MS));
	ASSERT_EQ(0, np_qp_rearm(&self->qp, NP_TIMEOUT_MS));
	EXPECT_EQ(0, run(self, NVMEPEER_OP_READ));
	np_export_close(&control);
}

/**
 * struct freeze - a thread that chooses another scheduler, for which the I/O of the disk is frozen
 */
struct freeze {
	char path[64];
	int ret;
	pthread_t thread;
};

static void *choose_scheduler(void *argument)
{
	struct freeze *freeze = argument;

	freeze->ret = np_run_on(1) ?: np_write_file(freeze->path, "mq-deadline");
	return NULL;
}

/* Until the write that hangs has ended, no command begins. The thread is stalled once it has frozen the I/O. */
static int freeze_begin(struct freeze *freeze, FIXTURE_DATA(bad_mediated) *self)
{
	const struct nvmep_test_stall frozen = { .function = "blk_mq_freeze_queue_wait" };
	int ret = np_works_on(0) ?: np_run_on(0) ?: np_bad_long_io_timeout(&self->bad) ?: hang_one(self);
	int stall;

	snprintf(freeze->path, sizeof(freeze->path), "/sys/block/nvmep%dn1/queue/scheduler",
		 self->bad.ctrl.instance);
	if (ret)
		return ret;
	stall = np_stall(&frozen);
	if (stall < 0)
		return stall;
	ret = -pthread_create(&freeze->thread, NULL, choose_scheduler, freeze) ?: np_wait_stalled(stall);
	close(stall);
	return ret ?: np_works_anywhere();
}

static int freeze_end(struct freeze *freeze)
{
	pthread_join(freeze->thread, NULL);
	return freeze->ret ?: np_write_file(freeze->path, "none");
}

TEST_F(bad_mediated, commands_wait_while_io_is_frozen)
{
	struct np_command command = read_one(self);
	struct freeze freeze;

	ASSERT_EQ(0, freeze_begin(&freeze, self));
	np_qp_put(&self->qp, &command);
	ASSERT_EQ(0, np_qp_ring_doorbell(&self->qp));
	EXPECT_EQ(-ETIMEDOUT, np_qp_reap(&self->qp, NULL, 300));
	ASSERT_EQ(0, np_bad_set(&self->bad, BADCTRL_RELEASE, 1));
	EXPECT_EQ(0, np_qp_reap(&self->qp, NULL, NP_TIMEOUT_MS));
	EXPECT_EQ(0, np_qp_reap(&self->qp, NULL, NP_TIMEOUT_MS));
	EXPECT_EQ(0, freeze_end(&freeze));
}

/* Neither new commands are sent, nor a Flush for which one waits that was sent before. */
TEST_F(bad_mediated, commands_wait_for_firmware_activation)
{
	const struct np_command flush = { .opcode = NVMEPEER_OP_FLUSH, .nsid = self->window };
	struct np_command command = read_one(self);
	int log = np_log_open();

	ASSERT_LE(0, log);
	ASSERT_EQ(0, np_bad_long_io_timeout(&self->bad));
	ASSERT_EQ(0, np_bad_rule(&self->bad, 0, NP_IO_FLUSH, BADCTRL_HOLD, 0, 1));
	ASSERT_EQ(0, put_some(&self->qp, &flush, 1));
	ASSERT_EQ(0, np_bad_wait_word(&self->bad, BADCTRL_HELD, 1));
	/* With the read it has been fetched, and waits for the first one. */
	np_qp_put(&self->qp, &flush);
	EXPECT_EQ(0, put_some(&self->qp, &command, 1) ?: np_qp_reap(&self->qp, NULL, NP_TIMEOUT_MS));
	ASSERT_EQ(0, np_bad_set(&self->bad, BADCTRL_PAUSED, 1));
	ASSERT_EQ(0, np_bad_set(&self->bad, BADCTRL_EVENT, EVENT_FIRMWARE));
	EXPECT_EQ(0, np_log_wait(log, "firmware", NP_TIMEOUT_MS));
	ASSERT_EQ(0, np_bad_set(&self->bad, BADCTRL_RELEASE, 1));
	EXPECT_EQ(0, np_qp_reap(&self->qp, NULL, NP_TIMEOUT_MS));
	ASSERT_EQ(0, put_some(&self->qp, &command, 1));
	np_sleep_ms(50);
	EXPECT_EQ(0, np_bad_get(&self->bad, BADCTRL_RUNG));
	ASSERT_EQ(0, np_bad_set(&self->bad, BADCTRL_PAUSED, 0));
	EXPECT_EQ(0, np_qp_reap(&self->qp, NULL, NP_TIMEOUT_MS));
	EXPECT_EQ(0, np_qp_reap(&self->qp, NULL, NP_TIMEOUT_MS));
	EXPECT_EQ(self->generation, np_bad_generation(&self->bad));
	close(log);
}

/* A command hangs, and an admin command of the recovery of its shared queue pair fails. */
static void check_failed_recovery(struct __test_metadata *_metadata, FIXTURE_DATA(bad_mediated) *self,
				  uint8_t opcode)
{
	struct np_command command = read_one(self);

	ASSERT_EQ(0, hold_without_abort(&self->bad));
	ASSERT_EQ(0, np_bad_rule(&self->bad, 2, opcode, BADCTRL_STATUS, NVME_SC_INTERNAL, 1));
	np_qp_put(&self->qp, &command);
	ASSERT_EQ(0, np_qp_ring_doorbell(&self->qp));
	ASSERT_EQ(0, np_qp_wait_state(&self->qp, NVME_PEER_QP_QUIESCED, NP_TIMEOUT_MS));
	EXPECT_EQ(self->generation + 1, np_bad_wait_state(&self->bad, NVME_PEER_CTRL_LIVE));
	ASSERT_EQ(0, np_qp_rearm(&self->qp, NP_TIMEOUT_MS));
	EXPECT_EQ(0, run(self, NVMEPEER_OP_READ));
}

TEST_F(bad_mediated, deletion_that_fails_resets)
{
	check_failed_recovery(_metadata, self, NVME_ADMIN_DELETE_SQ);
}

/* A new queue pair in the place of the stuck one is refused: the other one serves until a reset. */
TEST_F(bad_mediated, replacement_that_fails_resets)
{
	check_failed_recovery(_metadata, self, NVME_ADMIN_CREATE_CQ);
}

/* A reset grants too few queues for the kernel's own queue pairs; the next one grants enough. */
TEST_F(bad_mediated, fewer_queues_after_a_reset)
{
	ASSERT_EQ(0, np_bad_set(&self->bad, BADCTRL_GRANT, 1));
	ASSERT_EQ(0, np_ioctl(self->bad.ctrl.fd, NVME_IOCTL_RESET, NULL));
	ASSERT_EQ(self->generation + 1, np_bad_wait_state(&self->bad, NVME_PEER_CTRL_LIVE));
	EXPECT_EQ(-ENOSPC, np_qp_rearm(&self->qp, NP_TIMEOUT_MS));
	ASSERT_EQ(0, np_bad_set(&self->bad, BADCTRL_GRANT, 32));
	ASSERT_EQ(0, np_ioctl(self->bad.ctrl.fd, NVME_IOCTL_RESET, NULL));
	ASSERT_EQ(self->generation + 2, np_bad_wait_state(&self->bad, NVME_PEER_CTRL_LIVE));
	ASSERT_EQ(0, np_qp_rearm(&self->qp, NP_TIMEOUT_MS));
	EXPECT_EQ(0, run(self, NVMEPEER_OP_READ));
}

TEST_F(bad_mediated, wrong_and_duplicate_completions)
{
	ASSERT_EQ(0, np_bad_rule(&self->bad, 0, NP_IO_READ, BADCTRL_TWICE, 0, 3));
	for (int i = 0; i < 6; i++)
		EXPECT_EQ(0, run(self, NVMEPEER_OP_READ));
	ASSERT_EQ(0, np_bad_rule(&self->bad, 0, NP_IO_READ, BADCTRL_WRONG_ID, 0x100, 1));
	EXPECT_EQ(NVME_SC_ABORTED, run(self, NVMEPEER_OP_READ));
	ASSERT_EQ(0, np_bad_rule(&self->bad, 0, NP_IO_READ, BADCTRL_WRONG_ID, 0xff, 1));
	EXPECT_EQ(NVME_SC_ABORTED, run(self, NVMEPEER_OP_READ));
	EXPECT_EQ(0, run(self, NVMEPEER_OP_READ));
	EXPECT_EQ(self->generation, np_bad_generation(&self->bad));
}

static bool become_in_flight(const struct np_qp *qp, uint32_t count)
{
	int64_t end = np_now_ms() + NP_TIMEOUT_MS;
	struct nvme_peer_qp_stats stats = { };

	while (!np_qp_stats(qp, &stats) && stats.in_flight < count && np_now_ms() < end)
		np_sleep_ms(1);
	return stats.in_flight == count;
}

/* A flush that hangs takes those that wait for it along. */
TEST_F(bad_mediated, flushes_share_one_command)
{
	struct np_command command = { .opcode = NVMEPEER_OP_FLUSH };
	uint32_t again, i;

	/* Windows on one namespace. */
	ASSERT_EQ(0, np_window_add(&self->qp, self->bad.disk, 0, 0, &again));
	ASSERT_EQ(0, np_bad_long_io_timeout(&self->bad));
	ASSERT_EQ(0, np_bad_rule(&self->bad, 0, NP_IO_FLUSH, BADCTRL_HOLD, 0, 1));
	ASSERT_EQ(0, np_bad_rule(&self->bad, 1, NP_IO_FLUSH, BADCTRL_COUNT, 0, BADCTRL_EVERY));
	for (i = 0; i < 8; i++) {
		command.nsid = i % 2 ? again : self->window;
		np_qp_put(&self->qp, &command);
	}
	ASSERT_EQ(0, np_qp_ring_doorbell(&self->qp));
	EXPECT_EQ(0, np_bad_wait_hits(&self->bad, 0, 1));
	EXPECT_TRUE(become_in_flight(&self->qp, 8));
	ASSERT_EQ(0, np_bad_set(&self->bad, BADCTRL_RELEASE, 1));
	for (i = 0; i < 8; i++)
		EXPECT_EQ(0, np_qp_reap(&self->qp, NULL, NP_TIMEOUT_MS));
	/* The other seven, and the first of them if it was taken before the rest. */
	EXPECT_GE(2, np_bad_hits(&self->bad, 1));
	EXPECT_LE(1, np_bad_hits(&self->bad, 1));
}

TEST_F(bad_mediated, crash_loses_commands_in_flight)
{
	struct np_command command = read_one(self);

	ASSERT_EQ(0, np_bad_rule(&self->bad, 0, NP_IO_READ, BADCTRL_CRASH, 0, 1));
	np_qp_put(&self->qp, &command);
	ASSERT_EQ(0, np_qp_ring_doorbell(&self->qp));
	ASSERT_EQ(0, np_qp_wait_state(&self->qp, NVME_PEER_QP_QUIESCED, NP_TIMEOUT_MS));
	EXPECT_EQ(self->generation + 1, np_bad_wait_state(&self->bad, NVME_PEER_CTRL_LIVE));
	ASSERT_EQ(0, np_qp_rearm(&self->qp, NP_TIMEOUT_MS));
	EXPECT_EQ(0, run(self, NVMEPEER_OP_READ));
	EXPECT_EQ(0, run(self, NVMEPEER_OP_FLUSH));
}

/* What closes, removes or unbinds waits for the controller, until the timeout at most. */
TEST_F(bad_mediated, ends_with_a_command_in_flight)
{
	struct np_command command = read_one(self);

	ASSERT_EQ(0, np_bad_rule(&self->bad, 0, NP_IO_READ, BADCTRL_HOLD, 0, 3));
	np_qp_put(&self->qp, &command);
	ASSERT_EQ(0, np_qp_ring_doorbell(&self->qp));
	ASSERT_EQ(0, np_bad_wait_hits(&self->bad, 0, 1));
	EXPECT_EQ(0, np_window_remove(&self->qp, self->window));
	EXPECT_EQ(NVME_SC_ABORTED, np_qp_reap(&self->qp, NULL, NP_TIMEOUT_MS));
	ASSERT_EQ(0, np_window_add(&self->qp, self->bad.disk, 0, 0, &self->window));
	command.nsid = self->window;
	np_qp_put(&self->qp, &command);
	ASSERT_EQ(0, np_qp_ring_doorbell(&self->qp));
	ASSERT_EQ(0, np_bad_wait_hits(&self->bad, 0, 2));
	EXPECT_EQ(0, np_buf_remove(&self->qp, self->memory.slot));
	EXPECT_EQ(NVME_SC_ABORTED, np_qp_reap(&self->qp, NULL, NP_TIMEOUT_MS));
	ASSERT_EQ(0, np_buf_add(&self->qp, self->memory.fd, 0, &self->memory.slot));
	command = read_one(self);
	np_qp_put(&self->qp, &command);
	ASSERT_EQ(0, np_qp_ring_doorbell(&self->qp));
	ASSERT_EQ(0, np_bad_wait_hits(&self->bad, 0, 3));
	np_qp_close(&self->qp);
	self->qp.fd = -1;
	ASSERT_EQ(0, open_qp(&self->qp, &self->bad, &self->memory, &self->window));
	EXPECT_EQ(0, run(self, NVMEPEER_OP_READ));
}

/**
 * struct remover - a thread that removes a buffer
 */
struct remover {
	const struct np_qp *qp;
	uint32_t slot;
	int ret;
	atomic_bool done;
	pthread_t thread;
};

static void *remove_buffer(void *argument)
{
	struct remover *remover = argument;

	remover->ret = np_buf_remove(remover->qp, remover->slot);
	atomic_store(&remover->done, true);
	return NULL;
}

/* While a removal waits for the controller, the buffer is in its slot, but no other call removes it. */
TEST_F(bad_mediated, buffer_is_removed_once)
{
	struct remover remover = { .qp = &self->qp, .slot = self->memory.slot };
	struct nvme_peer_window_info info;
	struct nvme_peer_qp_stats stats;
	int64_t end = np_now_ms() + NP_TIMEOUT_MS;
	int status;

	ASSERT_EQ(0, np_bad_long_io_timeout(&self->bad));
	ASSERT_EQ(0, put_reads(self, 1));
	ASSERT_EQ(0, np_qp_stats(&self->qp, &stats));
	EXPECT_EQ(1, stats.in_flight);
	ASSERT_EQ(0, np_window_info(&self->qp, self->window, &info));
	EXPECT_EQ(1, info.in_flight);
	ASSERT_EQ(0, pthread_create(&remover.thread, NULL, remove_buffer, &remover));
	do
		status = run(self, NVMEPEER_OP_READ);
	while (!status && np_now_ms() < end);
	EXPECT_EQ(DATA_TRANSFER, status);
	EXPECT_EQ(-ENOENT, np_buf_remove(&self->qp, self->memory.slot));
	np_sleep_ms(10);
	EXPECT_FALSE(atomic_load(&remover.done));
	ASSERT_EQ(0, np_bad_set(&self->bad, BADCTRL_RELEASE, 1));
	EXPECT_EQ(0, np_qp_reap(&self->qp, NULL, NP_TIMEOUT_MS));
	pthread_join(remover.thread, NULL);
	EXPECT_EQ(0, remover.ret);
	ASSERT_EQ(0, np_buf_add(&self->qp, self->memory.fd, 0, &self->memory.slot));
	EXPECT_EQ(0, run(self, NVMEPEER_OP_READ));
}

/* Unbinding waits for a command that hangs, and the CPU's data still reaches the controller. */
TEST_F(bad_mediated, unbound_while_a_command_hangs)
{
	char node[64], page[NP_PAGE] = "data";
	int fd;

	snprintf(node, sizeof(node), "/dev/nvmep%dn1", self->bad.ctrl.instance);
	fd = open(node, O_RDWR | O_CLOEXEC);
	ASSERT_LE(0, fd);
	ASSERT_EQ(0, np_bad_rule(&self->bad, 1, NVME_ADMIN_ABORT, BADCTRL_STATUS, NVME_SC_INTERNAL, 1));
	ASSERT_EQ(0, hang_one(self));
	ASSERT_EQ(0, np_bad_rule(&self->bad, 2, NP_IO_WRITE, BADCTRL_COUNT, 0, BADCTRL_EVERY));
	ASSERT_EQ((ssize_t)sizeof(page), pwrite(fd, page, sizeof(page), NP_PAGE));
	ASSERT_EQ(0, np_bad_unbind(&self->bad));
	EXPECT_LE(1, np_bad_hits(&self->bad, 2));
	close(fd);
	np_qp_close(&self->qp);
	self->qp.fd = -1;
}

#define MANY		256U
#define DEPTH		64U

static int open_many(struct np_qp *qp, struct np_bad *bad, struct np_memory *memory,
		     struct np_command *command)
{
	uint32_t window;
	int ret = np_qp_open(qp, bad->ctrl.fd, MANY) ?: np_buf_add(qp, memory->fd, 0, &memory->slot) ?:
		  np_window_add(qp, bad->disk, 0, 0, &window);

	if (!ret)
		*command = np_window_command(NVMEPEER_OP_READ, window, 0, 8, memory->slot, 0);
	return ret;
}

static int put_many(struct np_qp *qp, struct np_bad *bad, struct np_memory *memory, uint32_t count)
{
	struct np_command command;

	return open_many(qp, bad, memory, &command) ?: put_some(qp, &command, count);
}

/* The first queue pair takes half of the commands, and its user three quarters. */
TEST_F(bad_mediated, others_find_room)
{
	struct np_qp first, second;
	uint32_t i;

	np_qp_set_timeout(60000);
	np_qp_set_shares(DEPTH, 0);
	ASSERT_EQ(0, np_bad_rule(&self->bad, 0, NP_IO_READ, BADCTRL_HOLD, 0, BADCTRL_EVERY));
	ASSERT_EQ(0, put_many(&first, &self->bad, &self->memory, DEPTH));
	EXPECT_EQ(0, np_bad_wait_word(&self->bad, BADCTRL_HELD, 64));
	ASSERT_EQ(0, put_many(&second, &self->bad, &self->memory, DEPTH));
	EXPECT_EQ(0, np_bad_wait_word(&self->bad, BADCTRL_HELD, 96));
	np_sleep_ms(50);
	EXPECT_EQ(96, np_bad_get(&self->bad, BADCTRL_HELD));
	ASSERT_EQ(0, np_bad_rule(&self->bad, 0, NP_IO_READ, BADCTRL_COUNT, 0, BADCTRL_EVERY));
	ASSERT_EQ(0, np_bad_set(&self->bad, BADCTRL_RELEASE, 1));
	for (i = 0; i < DEPTH; i++) {
		EXPECT_EQ(0, np_qp_reap(&first, NULL, NP_TIMEOUT_MS));
		EXPECT_EQ(0, np_qp_reap(&second, NULL, NP_TIMEOUT_MS));
	}
	np_qp_set_shares(0, 0);
	np_qp_close(&first);
	np_qp_close(&second);
}

#define CAP_LOW		BADCTRL_REGISTERS
#define FEW		8U

/* CAP.MQES: of nine entries one stays empty. The first queue pair takes exactly half of the others. */
TEST_F(bad_mediated, others_find_room_in_few_entries)
{
	uint32_t cap = np_bad_get(&self->bad, CAP_LOW), i;
	struct np_command command;

	np_qp_close(&self->qp);
	np_memory_free(&self->memory);
	ASSERT_EQ(0, np_bad_unbind(&self->bad));
	ASSERT_EQ(0, np_bad_set(&self->bad, CAP_LOW, (cap & ~0xffffU) | FEW));
	ASSERT_EQ(0, np_bad_bind(&self->bad, 1));
	ASSERT_EQ(0, np_memory_alloc(&self->memory, self->bad.ctrl.fd));
	np_qp_set_timeout(60000);
	ASSERT_EQ(0, np_qp_open(&self->qp, self->bad.ctrl.fd, FEW));
	ASSERT_EQ(0, np_buf_add(&self->qp, self->memory.fd, 0, &self->memory.slot));
	ASSERT_EQ(0, np_window_add(&self->qp, self->bad.disk, 0, 0, &self->window));
	ASSERT_EQ(0, np_bad_rule(&self->bad, 0, NP_IO_READ, BADCTRL_HOLD, 0, BADCTRL_EVERY));
	command = read_one(self);
	ASSERT_EQ(0, put_some(&self->qp, &command, FEW - 2));
	EXPECT_EQ(0, np_bad_wait_word(&self->bad, BADCTRL_HELD, FEW / 2));
	np_sleep_ms(20);
	EXPECT_EQ(FEW / 2, np_bad_get(&self->bad, BADCTRL_HELD));
	ASSERT_EQ(0, np_bad_rule(&self->bad, 0, NP_IO_READ, BADCTRL_COUNT, 0, BADCTRL_EVERY));
	ASSERT_EQ(0, np_bad_set(&self->bad, BADCTRL_RELEASE, 1));
	for (i = 0; i < FEW - 2; i++)
		EXPECT_EQ(0, np_qp_reap(&self->qp, NULL, NP_TIMEOUT_MS));
}

/* Polls that have found something since @before: @expected within the time limit, and more in 50 ms. */
static unsigned long long active_since(const struct np_pollers *before, unsigned long long expected)
{
	int64_t end = np_now_ms() + NP_TIMEOUT_MS;
	struct np_pollers now;

	do {
		np_sleep_ms(50);
		if (np_pollers_read(&now))
			return 0;
	} while (now.active - before->active < expected && np_now_ms() < end);
	return now.active - before->active;
}

/* Reads of 4 KiB are held, of which a turn has eight. */
#define TURN		8U
#define TWO_TURNS	(2 * TURN)
/* Those of a tenant that is alone in one poll. */
#define FOUR_TURNS	(4 * TURN)

static void release_reads(struct __test_metadata *_metadata, FIXTURE_DATA(bad_mediated) *self,
			  struct np_qp *qp, uint32_t count)
{
	uint32_t i;

	ASSERT_EQ(0, np_bad_rule(&self->bad, 1, NP_IO_READ, BADCTRL_COUNT, 0, BADCTRL_EVERY));
	ASSERT_EQ(0, np_bad_set(&self->bad, BADCTRL_RELEASE, 1));
	for (i = 0; i < count; i++)
		EXPECT_EQ(0, np_qp_reap(qp, NULL, NP_TIMEOUT_MS));
	np_qp_close(qp);
}

/* What is beyond them is for the next poll. */
TEST_F(bad_mediated, alone_it_has_several_turns_a_poll)
{
	static const uint32_t counts[] = { TWO_TURNS, FOUR_TURNS, FOUR_TURNS + TURN };
	struct np_pollers before;
	uint32_t expected, i;
	struct np_qp qp;

	np_qp_set_timeout(60000);
	np_qp_set_shares(DEPTH, 0);
	for (i = 0; i < ARRAY_SIZE(counts); i++) {
		ASSERT_EQ(0, np_bad_rule(&self->bad, 1, NP_IO_READ, BADCTRL_HOLD, 0, BADCTRL_EVERY));
		ASSERT_EQ(0, np_pollers_read(&before));
		ASSERT_EQ(0, put_many(&qp, &self->bad, &self->memory, counts[i]));
		EXPECT_EQ(0, np_bad_wait_word(&self->bad, BADCTRL_HELD, counts[i]));
		expected = counts[i] > FOUR_TURNS ? 2 : 1;
		EXPECT_EQ(expected, active_since(&before, expected));
		release_reads(_metadata, self, &qp, counts[i]);
	}
	np_qp_set_shares(0, 0);
}

/* It costs more than a turn, and waits for the next poll, also where another turn follows in the same one. */
TEST_F(bad_mediated, flush_takes_two_polls)
{
	struct np_command command, flush = { .opcode = NVMEPEER_OP_FLUSH };
	struct np_pollers before;
	uint32_t reads, i;
	struct np_qp qp;

	ASSERT_EQ(0, np_bad_long_io_timeout(&self->bad));
	ASSERT_EQ(0, np_bad_rule(&self->bad, 2, NP_IO_FLUSH, BADCTRL_HOLD, 0, BADCTRL_EVERY));
	for (reads = 0; reads <= TURN; reads += TURN) {
		ASSERT_EQ(0, np_bad_rule(&self->bad, 1, NP_IO_READ, BADCTRL_HOLD, 0, BADCTRL_EVERY));
		ASSERT_EQ(0, open_many(&qp, &self->bad, &self->memory, &command));
		flush.nsid = command.nsid;
		ASSERT_EQ(0, np_pollers_read(&before));
		for (i = 0; i < reads; i++)
			np_qp_put(&qp, &command);
		ASSERT_EQ(0, put_some(&qp, &flush, 1));
		EXPECT_EQ(0, np_bad_wait_word(&self->bad, BADCTRL_HELD, reads + 1));
		EXPECT_EQ(2, active_since(&before, 2));
		release_reads(_metadata, self, &qp, reads + 1);
	}
}

/* A freeze keeps the commands of both in their rings. */
TEST_F(bad_mediated, others_end_its_turns)
{
	struct np_command command, other;
	struct np_pollers before;
	struct np_qp qp, first;
	struct freeze freeze;

	ASSERT_EQ(0, open_many(&first, &self->bad, &self->memory, &other));
	ASSERT_EQ(0, open_many(&qp, &self->bad, &self->memory, &command));
	ASSERT_EQ(0, freeze_begin(&freeze, self));
	ASSERT_EQ(0, np_bad_rule(&self->bad, 1, NP_IO_READ, BADCTRL_HOLD, 0, BADCTRL_EVERY));
	ASSERT_EQ(0, np_pollers_read(&before));
	ASSERT_EQ(0, put_some(&first, &other, 1));
	ASSERT_EQ(0, put_some(&qp, &command, TWO_TURNS));
	ASSERT_EQ(0, np_bad_set(&self->bad, BADCTRL_RELEASE, 1));
	EXPECT_EQ(0, np_bad_wait_word(&self->bad, BADCTRL_HELD, TWO_TURNS + 1));
	/* The end of the write, and two turns. */
	EXPECT_EQ(3, active_since(&before, 3));
	release_reads(_metadata, self, &qp, TWO_TURNS);
	EXPECT_EQ(0, np_qp_reap(&first, NULL, NP_TIMEOUT_MS));
	EXPECT_EQ(0, np_qp_reap(&self->qp, NULL, NP_TIMEOUT_MS));
	np_qp_close(&first);
	EXPECT_EQ(0, freeze_end(&freeze));
}

/* Three quarters of the commands of the controller. */
#define SHARE		96U

/* Waits until rule 0 has held @reads, or for the command of @qp. Returns its status, or -ETIMEDOUT. */
static int reap_or_hold(struct np_qp *qp, struct np_bad *bad, uint32_t reads)
{
	int64_t end = np_now_ms() + NP_TIMEOUT_MS;
	bool held;
	int status;

	do {
		/* What has ended before them is seen after them. */
		held = np_bad_hits(bad, 0) >= reads;
		status = np_qp_reap(qp, NULL, 10);
	} while (status == -ETIMEDOUT && !held && np_now_ms() < end);
	return status;
}

/*
 * Three queue pairs of a user have its share and, by their weight, take at once what they give back, for
 * their other commands.  The fourth one comes before them, also with a Flush, which costs more than a turn.
 */
TEST_F(bad_mediated, queue_pairs_of_a_user_take_turns)
{
	const struct np_command command = { .opcode = NVMEPEER_OP_FLUSH, .nsid = self->window };
	const uint32_t count = MANY - 6;
	int status = -ETIMEDOUT;
	struct np_qp busy[3];
	uint32_t i, n;

	np_qp_set_timeout(60000);
	np_qp_set_shares(DEPTH, 8);
	ASSERT_EQ(0, np_bad_rule(&self->bad, 0, NP_IO_READ, BADCTRL_HOLD, 0, BADCTRL_EVERY));
	for (n = 0; n < ARRAY_SIZE(busy); n++)
		ASSERT_EQ(0, put_many(&busy[n], &self->bad, &self->memory, count));
	EXPECT_EQ(0, np_bad_wait_word(&self->bad, BADCTRL_HELD, SHARE));
	np_qp_put(&self->qp, &command);
	EXPECT_EQ(0, np_qp_ring_doorbell(&self->qp));
	EXPECT_EQ(-ETIMEDOUT, np_qp_reap(&self->qp, NULL, 20));
	for (i = 0; i < 3 && status == -ETIMEDOUT; i++) {
		EXPECT_EQ(0, np_bad_set(&self->bad, BADCTRL_RELEASE, 1));
		status = reap_or_hold(&self->qp, &self->bad, (i + 2) * SHARE);
	}
	EXPECT_EQ(0, status);
	EXPECT_EQ(0, np_bad_rule(&self->bad, 0, NP_IO_READ, BADCTRL_COUNT, 0, BADCTRL_EVERY));
	EXPECT_EQ(0, np_bad_set(&self->bad, BADCTRL_RELEASE, 1));
	for (n = 0; n < ARRAY_SIZE(busy); n++) {
		for (i = 0; i < count; i++)
			EXPECT_EQ(0, np_qp_reap(&busy[n], NULL, NP_TIMEOUT_MS));
		np_qp_close(&busy[n]);
	}
	np_qp_set_shares(0, 0);
}

/* --- many tenants, one of them hostile ------------------------------------------- */

#define TENANTS		64U
#define RING		1024U
#define SECONDS		6

/**
 * struct hostile - a thread that does what it can to the other tenants
 * @rounds: number of rounds so far
 */
struct hostile {
	struct np_qp qp;
	const struct np_memory *memory;
	uint32_t window;
	unsigned int rounds;
	atomic_bool stop;
	pthread_t thread;
};

/* Queue pairs of different users. */
static int open_as(struct np_qp *qp, FIXTURE_DATA(bad_mediated) *self, uid_t uid, uint32_t *slot,
		   uint32_t *window)
{
	int ret = setreuid(uid, (uid_t)-1) ? -errno : 0;

	ret = ret ?: np_qp_open(qp, self->bad.ctrl.fd, RING);
	ret = ret ?: np_buf_add(qp, self->memory.fd, 0, slot);
	ret = ret ?: np_window_add(qp, self->bad.disk, 0, 0, window);
	return setreuid(0, (uid_t)-1) ? -errno : ret;
}

/* It rewrites its entries, floods, and pretends to reap; it removes the buffer that they name. */
static void *be_hostile(void *argument)
{
	static const uint8_t opcodes[] = {
		NVMEPEER_OP_READ, NVMEPEER_OP_FLUSH, NVMEPEER_OP_WRITE_ZEROES, 0x7f, NVMEPEER_OP_READ,
	};
	struct hostile *hostile = argument;
	struct np_command *ring = hostile->qp.sq.at;
	uint32_t slot = 1, i;

	for (; !atomic_load(&hostile->stop); hostile->rounds++) {
		for (i = 0; i < RING; i++)
			ring[i] = np_window_command(opcodes[(i + hostile->rounds) % ARRAY_SIZE(opcodes)],
						    hostile->window, i % 16 * 8, i % 3 ? 8 : 64, slot, 0);
		for (i = hostile->rounds; i < hostile->rounds + 8; i++) {
			np_store(hostile->qp.head_doorbell, i * 128 % RING);
			np_store(hostile->qp.tail_doorbell, (i * 128 + RING - 1) % RING);
			sched_yield();
		}
		if (hostile->rounds % 4)
			continue;
		np_buf_remove(&hostile->qp, slot);
		np_buf_add(&hostile->qp, hostile->memory->fd, 0, &slot);
	}
	return NULL;
}

/*
 * The bytes of reads of the longest kind: the first queue pair takes half of them, its user three quarters,
 * and another user the rest.
 */
TEST_F(bad_mediated, others_find_room_for_bytes)
{
	static const struct {
		uid_t uid;
		uint32_t put;
		uint32_t held;
	} steps[] = { { 20000, 33, 32 }, { 20000, 17, 48 }, { 20001, 17, 64 }, { 20002, 1, 64 } };
	struct np_qp qps[ARRAY_SIZE(steps)];
	struct np_command command;
	uint32_t slot, window, i, n;

	np_qp_set_timeout(60000);
	np_qp_set_shares(DEPTH, 0);
	ASSERT_EQ(0, np_bad_rule(&self->bad, 0, NP_IO_READ, BADCTRL_HOLD, 0, BADCTRL_EVERY));
	for (n = 0; n < ARRAY_SIZE(steps); n++) {
		ASSERT_EQ(0, open_as(&qps[n], self, steps[n].uid, &slot, &window));
		command = np_window_command(NVMEPEER_OP_READ, window, 0, NP_MEMORY_BYTES / NP_BLOCK, slot, 0);
		ASSERT_EQ(0, put_some(&qps[n], &command, steps[n].put));
		EXPECT_EQ(0, np_bad_wait_word(&self->bad, BADCTRL_HELD, steps[n].held));
		np_sleep_ms(20);
		EXPECT_EQ(steps[n].held, np_bad_get(&self->bad, BADCTRL_HELD));
	}
	ASSERT_EQ(0, np_bad_rule(&self->bad, 0, NP_IO_READ, BADCTRL_COUNT, 0, BADCTRL_EVERY));
	ASSERT_EQ(0, np_bad_set(&self->bad, BADCTRL_RELEASE, 1));
	for (n = 0; n < ARRAY_SIZE(steps); n++) {
		for (i = 0; i < steps[n].put; i++)
			EXPECT_EQ(0, np_qp_reap(&qps[n], NULL, NP_TIMEOUT_MS));
		np_qp_close(&qps[n]);
	}
	np_qp_set_shares(0, 0);
}

/* A write that hangs, and that the controller does not abort. */
static int start_hostile(struct hostile *hostile, FIXTURE_DATA(bad_mediated) *self)
{
	uint32_t slot;
	struct np_command command;
	int ret;

	ret = open_as(&hostile->qp, self, 20000, &slot, &hostile->window) ?:
	      np_bad_rule(&self->bad, 0, NP_IO_WRITE, BADCTRL_HOLD, 0, 1) ?:
	      np_bad_rule(&self->bad, 1, NVME_ADMIN_ABORT, BADCTRL_STATUS, NVME_SC_INTERNAL, 1);
	if (ret)
		return ret;
	command = np_window_command(NVMEPEER_OP_WRITE, hostile->window, 0, 8, slot, 0);
	np_qp_put(&hostile->qp, &command);
	ret = np_qp_ring_doorbell(&hostile->qp) ?: np_bad_wait_hits(&self->bad, 0, 1);
	hostile->memory = &self->memory;
	return ret ?: -pthread_create(&hostile->thread, NULL, be_hostile, hostile);
}

/**
 * struct neighbour - a tenant that reads
 * @put: commands put so far
 * @reaped: completions so far
 */
struct neighbour {
	struct np_qp qp;
	struct np_command command;
	uint32_t put;
	uint32_t reaped;
};

/* Reaps what there is, and fills the ring. Returns 0, or the first status that is not. */
static int serve_neighbour(struct neighbour *neighbour)
{
	int status;

	while ((status = np_qp_reap(&neighbour->qp, NULL, 0)) == 0)
		neighbour->reaped++;
	while (neighbour->put - neighbour->reaped < RING - 2) {
		np_qp_put(&neighbour->qp, &neighbour->command);
		neighbour->put++;
	}
	return np_qp_ring_doorbell(&neighbour->qp) ?: status == -ETIMEDOUT ? 0 : status;
}

static uint64_t commands_of(const struct np_qp *qp)
{
	struct nvme_peer_qp_stats stats;

	return np_qp_stats(qp, &stats) ? 0 : stats.reads + stats.writes + stats.zeroes + stats.flushes;
}

/* The others have their share of the controller, and none of their commands fails with the stuck one. */
TEST_F_TIMEOUT(bad_mediated, one_hostile_tenant_of_64, 90)
{
	static struct neighbour neighbours[TENANTS - 1];
	struct hostile hostile = { };
	uint64_t total = 0, least = UINT64_MAX, count[TENANTS - 1];
	uint32_t slot, window, i;
	int64_t end;

	np_qp_close(&self->qp);
	np_qp_set_timeout(TIMEOUT_MS);
	for (i = 0; i < TENANTS - 1; i++) {
		ASSERT_EQ(0, open_as(&neighbours[i].qp, self, 20001 + i, &slot, &window));
		neighbours[i].command = np_window_command(NVMEPEER_OP_READ, window, 0, 8, slot, 0);
	}
	ASSERT_EQ(0, start_hostile(&hostile, self));
	for (i = 0; i < TENANTS - 1; i++)
		ASSERT_EQ(0, serve_neighbour(&neighbours[i]));
	for (i = 0; i < TENANTS - 1; i++)
		count[i] = commands_of(&neighbours[i].qp);
	total -= commands_of(&hostile.qp);
	for (end = np_now_ms() + SECONDS * 1000; np_now_ms() < end; )
		for (i = 0; i < TENANTS - 1; i++)
			EXPECT_EQ(0, serve_neighbour(&neighbours[i]));
	for (i = 0; i < TENANTS - 1; i++) {
		count[i] = commands_of(&neighbours[i].qp) - count[i];
		total += count[i];
		least = count[i] < least ? count[i] : least;
	}
	total += commands_of(&hostile.qp);
	atomic_store(&hostile.stop, true);
	pthread_join(hostile.thread, NULL);
	TH_LOG("%llu commands in all, %llu of the slowest neighbour, %u rounds of the hostile tenant",
	       (unsigned long long)total, (unsigned long long)least, hostile.rounds);
	EXPECT_LE(total * 95 / 100, least * TENANTS);
	/* The queue pair that was stuck has been replaced. */
	EXPECT_EQ(1, np_bad_hits(&self->bad, 1));
	EXPECT_EQ(self->generation, np_bad_generation(&self->bad));
	for (i = 0; i < TENANTS - 1; i++) {
		EXPECT_EQ(NVME_PEER_QP_LIVE, state_of(&neighbours[i].qp));
		np_qp_close(&neighbours[i].qp);
	}
	np_qp_close(&hostile.qp);
	ASSERT_EQ(0, open_qp(&self->qp, &self->bad, &self->memory, &self->window));
	EXPECT_EQ(0, run(self, NVMEPEER_OP_READ));
}

TEST_F(bad_mediated, queues_that_are_refused)
{
	struct np_qp other;
	int i;

	np_qp_close(&self->qp);
	/* First completion queue, first submission queue, those of the second pair. */
	for (i = 0; i < 4; i++) {
		ASSERT_EQ(0, np_bad_rule(&self->bad, 0, i % 2 ? NVME_ADMIN_CREATE_SQ : NVME_ADMIN_CREATE_CQ,
					 BADCTRL_COUNT, 0, (uint32_t)i / 2));
		ASSERT_EQ(0, np_bad_rule(&self->bad, 1, i % 2 ? NVME_ADMIN_CREATE_SQ : NVME_ADMIN_CREATE_CQ,
					 BADCTRL_STATUS, NVME_SC_INTERNAL, 1));
		EXPECT_EQ(-EIO, np_qp_open(&other, self->bad.ctrl.fd, ENTRIES));
	}
	ASSERT_EQ(0, open_qp(&self->qp, &self->bad, &self->memory, &self->window));
	EXPECT_EQ(0, run(self, NVMEPEER_OP_READ));
	EXPECT_EQ(self->generation, np_bad_generation(&self->bad));
}

TEST_HARNESS_MAIN
