// SPDX-License-Identifier: GPL-2.0-only
/*
 * Somebody looks after a controller that only peers use, and after a peer that
 * waits in vain; what cannot come back says so.
 *
 * kernels: 6.1 debug
 * long-kernels: 6.1 6.12 7 debug kcsan
 * iommu: on
 * timeout: 180
 */
#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "badknob.h"
#include "kselftest_harness.h"

#define ENTRIES		16U
/* The kernel promises 100 ms; a guest on a busy machine may stand still for longer. */
#define NOTICE_MS	1000

FIXTURE(bad_recovery)
{
	struct np_bad bad;
	struct np_qp qp;
	const volatile struct nvme_peer_status *status;
	int generation;
};

FIXTURE_SETUP(bad_recovery)
{
	self->qp.fd = -1;
	if (np_bad_open(&self->bad) == -ENOENT)
		SKIP(return, "no misbehaving controller in this guest");
	ASSERT_EQ(0, np_bad_hurry());
	ASSERT_EQ(0, np_bad_bind(&self->bad, 1));
	ASSERT_EQ(0, np_qp_open(&self->qp, self->bad.ctrl.fd, ENTRIES));
	self->status = self->qp.status.at;
	self->generation = np_bad_generation(&self->bad);
}

FIXTURE_TEARDOWN(bad_recovery)
{
	if (!self->bad.address[0])
		return;
	if (self->qp.fd >= 0)
		np_qp_close(&self->qp);
	EXPECT_EQ(0, np_bad_close(&self->bad));
}

static struct np_command flush = { .opcode = NP_CMD_FLUSH, .nsid = 1 };

/* A command of the peer's own that meets rule 0. */
static int strike(FIXTURE_DATA(bad_recovery) *self, uint32_t action)
{
	int ret = np_bad_rule(&self->bad, 0, BADCTRL_ON_IO | NP_CMD_FLUSH, action, 0, 1);

	if (ret)
		return ret;
	np_qp_put(&self->qp, &flush);
	return np_qp_ring(&self->qp);
}

/* --- the watch --------------------------------------------------------------- */

/* No command of the CPU's is under way that could time out. */
TEST_F(bad_recovery, a_failed_controller_is_noticed_and_comes_back)
{
	int i;

	for (i = 1; i <= 3; i++) {
		ASSERT_EQ(0, strike(self, BADCTRL_CRASH));
		EXPECT_EQ(0, np_qp_wait_state(&self->qp, NVME_PEER_QP_QUIESCED, NOTICE_MS));
		EXPECT_EQ(EIO, self->status->reason);
		EXPECT_EQ(self->generation + i,
			  np_bad_wait_state(&self->bad, NVME_PEER_CTRL_LIVE));
		ASSERT_EQ(0, np_qp_rearm(&self->qp, NP_TIMEOUT_MS));
		EXPECT_EQ(0, np_qp_run(&self->qp, &flush, NP_TIMEOUT_MS));
	}
}

TEST_F(bad_recovery, a_vanished_controller_is_noticed)
{
	ASSERT_EQ(0, strike(self, BADCTRL_VANISH));
	EXPECT_EQ(0, np_qp_wait_state(&self->qp, NVME_PEER_QP_FAILED, NP_TIMEOUT_MS));
	EXPECT_EQ(ENODEV, self->status->reason);
	EXPECT_EQ(-ESHUTDOWN, np_qp_rearm(&self->qp, NP_TIMEOUT_MS));
	np_qp_close(&self->qp);
	EXPECT_EQ(0, np_bad_set(&self->bad, BADCTRL_MODE, BADCTRL_WORKS));
}

/* It reads CSTS, and only while there is a queue pair to watch for. */
TEST_F(bad_recovery, nobody_looks_without_queue_pairs)
{
	uint32_t looks = np_bad_get(&self->bad, BADCTRL_LOOKS);

	/* Again and again: it is ten times, where the machine is not busy. */
	np_sleep_ms(500);
	EXPECT_LE(looks + 3, np_bad_get(&self->bad, BADCTRL_LOOKS));
	np_qp_close(&self->qp);
	np_sleep_ms(200);
	looks = np_bad_get(&self->bad, BADCTRL_LOOKS);
	np_sleep_ms(500);
	EXPECT_EQ(looks, np_bad_get(&self->bad, BADCTRL_LOOKS));
	ASSERT_EQ(0, np_qp_open(&self->qp, self->bad.ctrl.fd, ENTRIES));
	np_sleep_ms(500);
	EXPECT_LT(looks, np_bad_get(&self->bad, BADCTRL_LOOKS));
}

/* --- a peer that waits in vain ------------------------------------------------- */

/* Asks for help; 0 when the kernel has taken note. */
static int ask(struct np_qp *qp)
{
	struct nvme_peer_request *request;
	struct np_export page;
	int64_t end;
	int ret;

	ret = np_export_open(&page, qp->fd, NVME_PEER_EXPORT_REQUEST, 0);
	if (ret)
		return ret;
	request = page.at;
	end = np_now_ms() + NP_TIMEOUT_MS;
	ret = np_store(&request->quiesce, 1);
	while (!ret && *(volatile uint32_t *)&request->quiesce) {
		if (np_now_ms() > end)
			ret = -ETIMEDOUT;
		np_sleep_ms(1);
	}
	np_export_close(&page);
	return ret;
}

/* The controller stays as it is, and so does everybody else on it. */
TEST_F(bad_recovery, a_peer_that_waits_in_vain_costs_nobody_else)
{
	struct np_qp other;

	ASSERT_EQ(0, np_qp_open(&other, self->bad.ctrl.fd, ENTRIES));
	ASSERT_EQ(0, strike(self, BADCTRL_HOLD));
	EXPECT_EQ(0, np_bad_wait_word(&self->bad, BADCTRL_HELD, 1));
	EXPECT_EQ(0, ask(&self->qp));
	EXPECT_EQ(0, np_qp_wait_state(&self->qp, NVME_PEER_QP_QUIESCED, NOTICE_MS));
	EXPECT_EQ(ETIMEDOUT, self->status->reason);
	EXPECT_EQ(0, np_bad_get(&self->bad, BADCTRL_HELD));
	EXPECT_EQ(0, np_qp_run(&other, &flush, NP_TIMEOUT_MS));
	ASSERT_EQ(0, np_qp_rearm(&self->qp, NP_TIMEOUT_MS));
	EXPECT_EQ(0, np_qp_run(&self->qp, &flush, NP_TIMEOUT_MS));
	EXPECT_EQ(0, np_qp_run(&other, &flush, NP_TIMEOUT_MS));
	EXPECT_EQ(self->generation, np_bad_generation(&self->bad));
	np_qp_close(&other);
}

/* Then the controller is reset, and the queue pair comes back all the same. */
TEST_F(bad_recovery, a_queue_that_cannot_be_deleted_costs_a_reset)
{
	ASSERT_EQ(0, strike(self, BADCTRL_HOLD));
	EXPECT_EQ(0, np_bad_wait_word(&self->bad, BADCTRL_HELD, 1));
	ASSERT_EQ(0, np_bad_rule(&self->bad, 1, NP_ADMIN_DELETE_SQ, BADCTRL_STATUS,
				 NP_STATUS_INTERNAL, 1));
	EXPECT_EQ(0, ask(&self->qp));
	EXPECT_EQ(0, np_qp_wait_state(&self->qp, NVME_PEER_QP_QUIESCED, NP_TIMEOUT_MS));
	EXPECT_EQ(self->generation + 1, np_bad_wait_state(&self->bad, NVME_PEER_CTRL_LIVE));
	ASSERT_EQ(0, np_qp_rearm(&self->qp, NP_TIMEOUT_MS));
	EXPECT_EQ(0, np_qp_run(&self->qp, &flush, NP_TIMEOUT_MS));
}

/* --- the way back -------------------------------------------------------------- */

static int reset(struct np_bad *bad)
{
	int ret = np_ioctl(bad->ctrl.fd, NVME_IOCTL_RESET, NULL);

	return ret ?: np_bad_wait_state(bad, NVME_PEER_CTRL_LIVE);
}

TEST_F(bad_recovery, a_refusal_on_the_way_back_is_not_the_end)
{
	ASSERT_LT(0, reset(&self->bad));
	ASSERT_EQ(0, np_bad_rule(&self->bad, 0, NP_ADMIN_CREATE_CQ, BADCTRL_STATUS,
				 NP_STATUS_INTERNAL, 1));
	EXPECT_EQ(-EIO, np_qp_rearm(&self->qp, NP_TIMEOUT_MS));
	EXPECT_EQ(NVME_PEER_QP_QUIESCED, self->status->state);
	ASSERT_EQ(0, np_bad_rule(&self->bad, 0, NP_ADMIN_CREATE_SQ, BADCTRL_STATUS,
				 NP_STATUS_INTERNAL, 1));
	EXPECT_EQ(-EIO, np_qp_rearm(&self->qp, NP_TIMEOUT_MS));
	EXPECT_EQ(NVME_PEER_QP_QUIESCED, self->status->state);
	ASSERT_EQ(0, np_qp_rearm(&self->qp, NP_TIMEOUT_MS));
	EXPECT_EQ(0, np_qp_run(&self->qp, &flush, NP_TIMEOUT_MS));
}

/* It never answers: its timeout resets the controller, and the next try works. */
TEST_F(bad_recovery, a_reset_on_the_way_back_is_not_the_end)
{
	int generation = reset(&self->bad);

	ASSERT_LT(0, generation);
	ASSERT_EQ(0, np_bad_rule(&self->bad, 0, NP_ADMIN_CREATE_SQ, BADCTRL_HOLD, 0, 1));
	ASSERT_EQ(0, np_qp_rearm(&self->qp, NP_TIMEOUT_MS));
	EXPECT_EQ(generation + 1, np_bad_generation(&self->bad));
	EXPECT_EQ(1, np_bad_hits(&self->bad, 0));
	EXPECT_EQ(0, np_qp_run(&self->qp, &flush, NP_TIMEOUT_MS));
}

/* Not before the controller's namespaces were looked at. */
TEST_F(bad_recovery, the_way_back_leads_past_the_namespaces)
{
	struct nvme_peer_qp_info info;

	ASSERT_EQ(0, np_bad_rule(&self->bad, 0, NP_ADMIN_IDENTIFY, BADCTRL_COUNT, 0, 1));
	ASSERT_EQ(0, np_bad_rule(&self->bad, 1, NP_ADMIN_IDENTIFY, BADCTRL_HOLD, 0, 1));
	ASSERT_LT(0, reset(&self->bad));
	EXPECT_EQ(0, np_bad_wait_word(&self->bad, BADCTRL_HELD, 1));
	ASSERT_EQ(0, np_qp_info(self->qp.fd, &info));
	EXPECT_EQ(-EAGAIN, np_qp_rearm_loss(&self->qp, info.losses));
	EXPECT_EQ(0, np_bad_set(&self->bad, BADCTRL_RELEASE, 1));
	EXPECT_EQ(0, np_qp_rearm(&self->qp, NP_TIMEOUT_MS));
}

TEST_F(bad_recovery, a_queue_that_is_not_granted_any_more_cannot_come_back)
{
	ASSERT_EQ(0, np_bad_set(&self->bad, BADCTRL_GRANT, 1));
	ASSERT_LT(0, reset(&self->bad));
	EXPECT_EQ(0, np_qp_wait_state(&self->qp, NVME_PEER_QP_FAILED, NP_TIMEOUT_MS));
	EXPECT_EQ(ENOSPC, self->status->reason);
	EXPECT_EQ(-ESHUTDOWN, np_qp_rearm(&self->qp, NP_TIMEOUT_MS));
}

/* Who asks for it has the function vanish from the bus, maybe: doorbells go first. */
TEST_F(bad_recovery, a_reset_of_the_subsystem_costs_no_queue_pair)
{
	int i;

	for (i = 1; i <= 2; i++) {
		ASSERT_EQ(0, np_ioctl(self->bad.ctrl.fd, NVME_IOCTL_SUBSYS_RESET, NULL));
		EXPECT_EQ(i, np_bad_get(&self->bad, BADCTRL_SUBSYSTEM_RESETS));
		EXPECT_EQ(self->generation + i,
			  np_bad_wait_state(&self->bad, NVME_PEER_CTRL_LIVE));
		EXPECT_EQ(NVME_PEER_QP_QUIESCED, self->status->state);
		EXPECT_EQ(-EFAULT, np_store(self->qp.tail_doorbell, 0));
		ASSERT_EQ(0, np_qp_rearm(&self->qp, NP_TIMEOUT_MS));
		EXPECT_EQ(0, np_qp_run(&self->qp, &flush, NP_TIMEOUT_MS));
	}
}

/* --- a controller that does not start ------------------------------------------ */

/* The next reset of the controller fails as @mode does. */
static int fail_to_start(struct np_bad *bad, uint32_t mode, uint32_t cured)
{
	return np_bad_set(bad, BADCTRL_CURED, cured) ?:
	       np_bad_set(bad, BADCTRL_MODE, mode) ?:
	       np_ioctl(bad->ctrl.fd, NVME_IOCTL_RESET, NULL);
}

/* Its doorbells went before decoding did, and came back with it. */
static void check_cure(struct __test_metadata *_metadata, FIXTURE_DATA(bad_recovery) *self,
		       uint32_t mode)
{
	int log = np_log_open(), i;

	ASSERT_LE(0, log);
	for (i = 1; i <= 2; i++) {
		ASSERT_EQ(0, fail_to_start(&self->bad, mode, 1));
		EXPECT_LT(self->generation, np_bad_wait_state(&self->bad, NVME_PEER_CTRL_LIVE));
		EXPECT_EQ(i, np_bad_get(&self->bad, BADCTRL_RESETS));
		EXPECT_EQ(0, np_log_wait(log, "function was reset", NP_TIMEOUT_MS));
		EXPECT_EQ(NVME_PEER_QP_QUIESCED, self->status->state);
		EXPECT_EQ(-EFAULT, np_store(self->qp.tail_doorbell, 0));
		ASSERT_EQ(0, np_qp_rearm(&self->qp, NP_TIMEOUT_MS));
		EXPECT_EQ(0, np_qp_run(&self->qp, &flush, NP_TIMEOUT_MS));
	}
	close(log);
}

TEST_F(bad_recovery, a_controller_that_does_not_become_ready_is_reset_by_its_function)
{
	check_cure(_metadata, self, BADCTRL_NEVER_READY);
}

TEST_F(bad_recovery, a_controller_that_fails_as_it_starts_is_reset_by_its_function)
{
	check_cure(_metadata, self, BADCTRL_FATAL);
}

TEST_F(bad_recovery, a_controller_that_answers_no_command_is_reset_by_its_function)
{
	check_cure(_metadata, self, BADCTRL_SILENT);
}

TEST_F(bad_recovery, a_controller_that_does_not_stop_is_reset_by_its_function)
{
	check_cure(_metadata, self, BADCTRL_NEVER_STOPS);
}

TEST_F(bad_recovery, a_controller_that_cannot_be_reached_is_reset_by_its_function)
{
	check_cure(_metadata, self, BADCTRL_GONE);
}

/* Once, and then it is given up. */
TEST_F(bad_recovery, a_reset_of_the_function_is_tried_once)
{
	EXPECT_EQ(-EIO, fail_to_start(&self->bad, BADCTRL_NEVER_READY, 0));
	EXPECT_EQ(0, np_qp_wait_state(&self->qp, NVME_PEER_QP_FAILED, NP_TIMEOUT_MS));
	EXPECT_EQ(ENODEV, self->status->reason);
	EXPECT_EQ(1, np_bad_get(&self->bad, BADCTRL_RESETS));
	np_qp_close(&self->qp);
	EXPECT_EQ(0, np_bad_set(&self->bad, BADCTRL_MODE, BADCTRL_WORKS));
}

/* It would have helped, but an empty reset_method is the administrator's no. */
TEST_F(bad_recovery, a_function_that_nobody_may_reset_is_not_reset)
{
	ASSERT_EQ(0, np_pci_write(self->bad.address, "reset_method", "\n"));
	EXPECT_EQ(-EIO, fail_to_start(&self->bad, BADCTRL_NEVER_READY, 1));
	EXPECT_EQ(0, np_qp_wait_state(&self->qp, NVME_PEER_QP_FAILED, NP_TIMEOUT_MS));
	EXPECT_EQ(0, np_bad_get(&self->bad, BADCTRL_RESETS));
	EXPECT_EQ(0, np_pci_write(self->bad.address, "reset_method", "default"));
	np_qp_close(&self->qp);
	EXPECT_EQ(0, np_bad_set(&self->bad, BADCTRL_MODE, BADCTRL_WORKS));
}

/* Who has hold of the function waits for the end of this reset, and the other way round. */
TEST_F(bad_recovery, a_function_that_somebody_has_hold_of_is_not_waited_for)
{
	pthread_t thread;

	ASSERT_EQ(0, np_bad_rule(&self->bad, 0, NP_ADMIN_IDENTIFY, BADCTRL_HOLD, 0, 1));
	ASSERT_EQ(0, pthread_create(&thread, NULL, np_bad_reset_thread, &self->bad));
	EXPECT_EQ(0, np_bad_wait_word(&self->bad, BADCTRL_HELD, 1));
	EXPECT_EQ(0, np_pci_write(self->bad.address, "reset", "1"));
	pthread_join(thread, NULL);
	EXPECT_EQ(0, np_qp_wait_state(&self->qp, NVME_PEER_QP_FAILED, NP_TIMEOUT_MS));
	EXPECT_EQ(1, np_bad_get(&self->bad, BADCTRL_RESETS));
	np_qp_close(&self->qp);
}

TEST_HARNESS_MAIN
