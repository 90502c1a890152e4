// SPDX-License-Identifier: GPL-2.0-only
/*
 * Mediated queue pairs on a controller with faults: commands that do not end are aborted, or end with
 * the one shared queue pair that they are on; statuses; and losses of the controller.
 *
 * kernels: 6.1 debug
 * long-kernels: 6.1 6.12 7 debug kcsan
 * iommu: on
 * timeout: 180
 */
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

#include "npbad.h"
#include "tenant.h"
#include "kselftest_harness.h"

#define ENTRIES		16U
#define TIMEOUT_MS	2000U
#define ABORTED_SQ	0x008

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
	ASSERT_EQ(0, np_bad_short_timeouts());
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
		while (!np_bad_get(&self->bad, BADCTRL_HELD))
			np_sleep_ms(1);
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

TEST_F(bad_mediated, deletion_that_fails_resets)
{
	struct np_command command = read_one(self);

	ASSERT_EQ(0, hold_without_abort(&self->bad));
	ASSERT_EQ(0, np_bad_rule(&self->bad, 2, NVME_ADMIN_DELETE_SQ, BADCTRL_STATUS, NVME_SC_INTERNAL, 1));
	np_qp_put(&self->qp, &command);
	ASSERT_EQ(0, np_qp_ring_doorbell(&self->qp));
	ASSERT_EQ(0, np_qp_wait_state(&self->qp, NVME_PEER_QP_QUIESCED, NP_TIMEOUT_MS));
	EXPECT_EQ(self->generation + 1, np_bad_wait_state(&self->bad, NVME_PEER_CTRL_LIVE));
	ASSERT_EQ(0, np_qp_rearm(&self->qp, NP_TIMEOUT_MS));
	EXPECT_EQ(0, run(self, NVMEPEER_OP_READ));
}

/* A new queue pair in the place of the stuck one is refused: the other one serves until a reset. */
TEST_F(bad_mediated, replacement_that_fails_resets)
{
	struct np_command command = read_one(self);

	ASSERT_EQ(0, hold_without_abort(&self->bad));
	ASSERT_EQ(0, np_bad_rule(&self->bad, 2, NVME_ADMIN_CREATE_CQ, BADCTRL_STATUS, NVME_SC_INTERNAL, 1));
	np_qp_put(&self->qp, &command);
	ASSERT_EQ(0, np_qp_ring_doorbell(&self->qp));
	ASSERT_EQ(0, np_qp_wait_state(&self->qp, NVME_PEER_QP_QUIESCED, NP_TIMEOUT_MS));
	EXPECT_EQ(self->generation + 1, np_bad_wait_state(&self->bad, NVME_PEER_CTRL_LIVE));
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

/* A flush that hangs takes those that wait for it along. */
TEST_F(bad_mediated, flushes_share_one_command)
{
	const struct np_command command = { .opcode = NVMEPEER_OP_FLUSH, .nsid = self->window };
	uint32_t i;

	ASSERT_EQ(0, np_bad_rule(&self->bad, 0, NP_IO_FLUSH, BADCTRL_HOLD, 0, 1));
	ASSERT_EQ(0, np_bad_rule(&self->bad, 1, NP_IO_FLUSH, BADCTRL_COUNT, 0, BADCTRL_EVERY));
	for (i = 0; i < 8; i++)
		np_qp_put(&self->qp, &command);
	ASSERT_EQ(0, np_qp_ring_doorbell(&self->qp));
	while (!np_bad_get(&self->bad, BADCTRL_HELD))
		np_sleep_ms(1);
	np_sleep_ms(100);
	ASSERT_EQ(0, np_bad_set(&self->bad, BADCTRL_RELEASE, 1));
	for (i = 0; i < 8; i++)
		EXPECT_EQ(0, np_qp_reap(&self->qp, NULL, NP_TIMEOUT_MS));
	EXPECT_GE(7, np_bad_hits(&self->bad, 1));
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
	while (!np_bad_get(&self->bad, BADCTRL_HELD))
		np_sleep_ms(1);
	EXPECT_EQ(0, np_window_remove(&self->qp, self->window));
	EXPECT_EQ(NVME_SC_ABORTED, np_qp_reap(&self->qp, NULL, NP_TIMEOUT_MS));
	ASSERT_EQ(0, np_window_add(&self->qp, self->bad.disk, 0, 0, &self->window));
	command.nsid = self->window;
	np_qp_put(&self->qp, &command);
	ASSERT_EQ(0, np_qp_ring_doorbell(&self->qp));
	while (!np_bad_get(&self->bad, BADCTRL_HELD))
		np_sleep_ms(1);
	EXPECT_EQ(0, np_buf_remove(&self->qp, self->memory.slot));
	EXPECT_EQ(NVME_SC_ABORTED, np_qp_reap(&self->qp, NULL, NP_TIMEOUT_MS));
	ASSERT_EQ(0, np_buf_add(&self->qp, self->memory.fd, 0, &self->memory.slot));
	command = read_one(self);
	np_qp_put(&self->qp, &command);
	ASSERT_EQ(0, np_qp_ring_doorbell(&self->qp));
	while (!np_bad_get(&self->bad, BADCTRL_HELD))
		np_sleep_ms(1);
	np_qp_close(&self->qp);
	self->qp.fd = -1;
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
