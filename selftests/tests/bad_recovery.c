// SPDX-License-Identifier: GPL-2.0-only
/*
 * Fault detection for a controller that only peers use, peers that request recovery, and
 * what happens if recovery fails.
 *
 * kernels: 7
 * long-kernels: 6.1 6.12 7 debug kcsan
 * iommu: on
 * timeout: 180
 */
#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "npbad.h"
#include "kselftest_harness.h"

#define ENTRIES		16U
#define CAP_LOW		BADCTRL_REGISTERS
#define CAP_HIGH	(BADCTRL_REGISTERS + 4)
#define CSTS		(BADCTRL_REGISTERS + 0x1c)

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
		SKIP(return, "no badctrl in this guest");
	ASSERT_EQ(0, np_bad_short_io_timeout());
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

static struct np_command flush = { .opcode = NVMEPEER_OP_FLUSH, .nsid = 1 };

/* A command of the peer that matches rule 0. */
static int strike(FIXTURE_DATA(bad_recovery) *self, uint32_t action)
{
	int ret = np_bad_rule(&self->bad, 0, BADCTRL_ON_IO | NVMEPEER_OP_FLUSH, action, 0, 1);

	if (ret)
		return ret;
	np_qp_put(&self->qp, &flush);
	return np_qp_ring_doorbell(&self->qp);
}

/* --- health poll ----------------------------------------------------------------- */

/* No CPU command is in flight that could time out. */
TEST_F(bad_recovery, failed_controller_is_detected_and_reset)
{
	int i;

	for (i = 1; i <= 3; i++) {
		ASSERT_EQ(0, strike(self, BADCTRL_CRASH));
		EXPECT_EQ(0, np_qp_wait_state(&self->qp, NVME_PEER_QP_QUIESCED, NP_TIMEOUT_MS));
		EXPECT_EQ(NVME_PEER_QP_REASON_RESET, self->status->reason);
		EXPECT_EQ(self->generation + i,
			  np_bad_wait_state(&self->bad, NVME_PEER_CTRL_LIVE));
		ASSERT_EQ(0, np_qp_rearm(&self->qp, NP_TIMEOUT_MS));
		EXPECT_EQ(0, np_qp_run(&self->qp, &flush, NP_TIMEOUT_MS));
	}
}

/* CSTS.RDY is clear, as after a reset that the driver was not notified of. */
TEST_F(bad_recovery, controller_that_is_not_ready_is_reset)
{
	ASSERT_EQ(0, np_bad_set(&self->bad, CSTS, 0));
	EXPECT_EQ(0, np_qp_wait_state(&self->qp, NVME_PEER_QP_QUIESCED, NP_TIMEOUT_MS));
	EXPECT_EQ(NVME_PEER_QP_REASON_RESET, self->status->reason);
	EXPECT_EQ(self->generation + 1, np_bad_wait_state(&self->bad, NVME_PEER_CTRL_LIVE));
}

TEST_F(bad_recovery, vanished_controller_is_detected)
{
	ASSERT_EQ(0, strike(self, BADCTRL_VANISH));
	EXPECT_EQ(0, np_qp_wait_state(&self->qp, NVME_PEER_QP_FAILED, NP_TIMEOUT_MS));
	EXPECT_EQ(NVME_PEER_QP_REASON_CTRL, self->status->reason);
	EXPECT_EQ(-ESHUTDOWN, np_qp_rearm(&self->qp, NP_TIMEOUT_MS));
	np_qp_close(&self->qp);
	EXPECT_EQ(0, np_bad_set(&self->bad, BADCTRL_MODE, BADCTRL_WORKS));
}

/* Waits for @count more health polls, each of which reads CSTS. */
static int wait_polls(struct np_bad *bad, uint32_t count)
{
	return np_bad_wait_word(bad, BADCTRL_LOOKS, np_bad_get(bad, BADCTRL_LOOKS) + count);
}

/* Waits until there is none in a time of six; the last ones may be late. */
static int wait_no_poll(struct np_bad *bad)
{
	int64_t end = np_now_ms() + NP_TIMEOUT_MS;
	uint32_t looks;

	do {
		if (np_now_ms() > end)
			return -ETIMEDOUT;
		looks = np_bad_get(bad, BADCTRL_LOOKS);
		np_sleep_ms(300);
	} while (np_bad_get(bad, BADCTRL_LOOKS) != looks);
	return 0;
}

/* It runs only while a queue pair exists. */
TEST_F(bad_recovery, health_poll_stops_without_queue_pairs)
{
	EXPECT_EQ(0, wait_polls(&self->bad, 3));
	np_qp_close(&self->qp);
	EXPECT_EQ(0, wait_no_poll(&self->bad));
	ASSERT_EQ(0, np_qp_open(&self->qp, self->bad.ctrl.fd, ENTRIES));
	EXPECT_EQ(0, wait_polls(&self->bad, 1));
}

/* --- a peer requests recovery ---------------------------------------------------- */

/* Request recovery; 0 when the driver has handled the request. */
static int ask(struct np_qp *qp)
{
	volatile struct nvme_peer_control *request;
	struct np_export page;
	int64_t end;
	int ret;

	ret = np_export_open(&page, qp->fd, NVME_PEER_EXPORT_CONTROL, 0);
	if (ret)
		return ret;
	request = page.at;
	end = np_now_ms() + NP_TIMEOUT_MS;
	request->seq = request->ack + 7;
	ret = np_store(&request->quiesce, 1);
	while (!ret && (request->quiesce || request->ack != request->seq)) {
		if (np_now_ms() > end)
			ret = -ETIMEDOUT;
		np_sleep_ms(1);
	}
	if (!ret && request->version != 1)
		ret = -EPROTO;
	np_export_close(&page);
	return ret;
}

/* The controller is not reset, and other queue pairs keep running. */
TEST_F(bad_recovery, peer_timeout_affects_only_its_queue_pair)
{
	struct np_qp other;

	ASSERT_EQ(0, np_qp_open(&other, self->bad.ctrl.fd, ENTRIES));
	ASSERT_EQ(0, strike(self, BADCTRL_HOLD));
	EXPECT_EQ(0, np_bad_wait_word(&self->bad, BADCTRL_HELD, 1));
	EXPECT_EQ(0, ask(&self->qp));
	EXPECT_EQ(0, np_qp_wait_state(&self->qp, NVME_PEER_QP_QUIESCED, NP_TIMEOUT_MS));
	EXPECT_EQ(NVME_PEER_QP_REASON_REQUEST, self->status->reason);
	EXPECT_EQ(0, np_bad_get(&self->bad, BADCTRL_HELD));
	EXPECT_EQ(0, np_qp_run(&other, &flush, NP_TIMEOUT_MS));
	ASSERT_EQ(0, np_qp_rearm(&self->qp, NP_TIMEOUT_MS));
	EXPECT_EQ(0, np_qp_run(&self->qp, &flush, NP_TIMEOUT_MS));
	EXPECT_EQ(0, np_qp_run(&other, &flush, NP_TIMEOUT_MS));
	EXPECT_EQ(self->generation, np_bad_generation(&self->bad));
	np_qp_close(&other);
}

/* The controller is reset, and the queue pair can still be re-armed. */
TEST_F(bad_recovery, undeletable_queue_resets_controller)
{
	ASSERT_EQ(0, strike(self, BADCTRL_HOLD));
	EXPECT_EQ(0, np_bad_wait_word(&self->bad, BADCTRL_HELD, 1));
	ASSERT_EQ(0, np_bad_rule(&self->bad, 1, NVME_ADMIN_DELETE_SQ, BADCTRL_STATUS,
				 NVME_SC_INTERNAL, 1));
	EXPECT_EQ(0, ask(&self->qp));
	EXPECT_EQ(0, np_qp_wait_state(&self->qp, NVME_PEER_QP_QUIESCED, NP_TIMEOUT_MS));
	EXPECT_EQ(self->generation + 1, np_bad_wait_state(&self->bad, NVME_PEER_CTRL_LIVE));
	ASSERT_EQ(0, np_qp_rearm(&self->qp, NP_TIMEOUT_MS));
	EXPECT_EQ(0, np_qp_run(&self->qp, &flush, NP_TIMEOUT_MS));
}

/* The deletion for one queue pair is not answered: the request of another is served. */
TEST_F(bad_recovery, slow_deletion_delays_no_other_request)
{
	struct np_qp other;

	ASSERT_EQ(0, np_qp_open(&other, self->bad.ctrl.fd, ENTRIES));
	ASSERT_EQ(0, np_bad_rule(&self->bad, 0, NVME_ADMIN_DELETE_SQ, BADCTRL_HOLD, 0, 1));
	EXPECT_EQ(0, ask(&self->qp));
	EXPECT_EQ(0, np_bad_wait_word(&self->bad, BADCTRL_HELD, 1));
	EXPECT_EQ(0, ask(&other));
	EXPECT_EQ(0, np_qp_wait_state(&other, NVME_PEER_QP_QUIESCED, NP_TIMEOUT_MS));
	EXPECT_EQ(NVME_PEER_QP_REASON_REQUEST, ((struct nvme_peer_status *)other.status.at)->reason);
	EXPECT_EQ(1, np_bad_get(&self->bad, BADCTRL_HELD));
	EXPECT_EQ(0, np_bad_set(&self->bad, BADCTRL_RELEASE, 1));
	EXPECT_EQ(0, np_qp_wait_state(&self->qp, NVME_PEER_QP_QUIESCED, NP_TIMEOUT_MS));
	EXPECT_EQ(NVME_PEER_QP_REASON_REQUEST, self->status->reason);
	EXPECT_EQ(self->generation, np_bad_generation(&self->bad));
	np_qp_close(&other);
}

/* A second request is seen while the queues are deleted for the first: the loss has answered both. */
TEST_F(bad_recovery, request_from_before_loss_has_no_effect)
{
	volatile struct nvme_peer_control *request;
	struct np_export page;

	ASSERT_EQ(0, np_export_open(&page, self->qp.fd, NVME_PEER_EXPORT_CONTROL, 0));
	request = page.at;
	ASSERT_EQ(0, np_bad_rule(&self->bad, 0, NVME_ADMIN_DELETE_SQ, BADCTRL_HOLD, 0, 1));
	EXPECT_EQ(0, ask(&self->qp));
	EXPECT_EQ(0, np_bad_wait_word(&self->bad, BADCTRL_HELD, 1));
	request->seq++;
	EXPECT_EQ(0, np_store(&request->quiesce, 1));
	/* Several health polls. */
	np_sleep_ms(200);
	EXPECT_EQ(0, np_bad_set(&self->bad, BADCTRL_RELEASE, 1));
	EXPECT_EQ(0, np_qp_wait_state(&self->qp, NVME_PEER_QP_QUIESCED, NP_TIMEOUT_MS));
	np_sleep_ms(20);
	EXPECT_EQ(1, request->quiesce);
	EXPECT_NE(request->seq, request->ack);
	np_export_close(&page);
}

/* Its queues are off the controller, which would refuse another deletion. */
TEST_F(bad_recovery, deleted_queues_are_not_deleted_again)
{
	EXPECT_EQ(0, ask(&self->qp));
	EXPECT_EQ(0, np_qp_wait_state(&self->qp, NVME_PEER_QP_QUIESCED, NP_TIMEOUT_MS));
	ASSERT_EQ(0, np_bad_rule(&self->bad, 0, NVME_ADMIN_DELETE_SQ, BADCTRL_COUNT, 0, 1));
	np_qp_close(&self->qp);
	EXPECT_EQ(0, np_bad_hits(&self->bad, 0));
	EXPECT_EQ(self->generation, np_bad_generation(&self->bad));
}

/* The first of the two queues is deleted, so that a value stored now must reach no register. */
TEST_F(bad_recovery, deletion_closes_relay_first)
{
	struct nvme_peer_qp_info before, after;
	struct np_qp qp;
	uint32_t tail;

	np_qp_set_mode(NVME_PEER_MODE_RELAY);
	ASSERT_EQ(0, np_qp_open(&qp, self->bad.ctrl.fd, ENTRIES));
	np_qp_set_mode(NVME_PEER_MODE_DIRECT);
	ASSERT_EQ(0, np_qp_run(&qp, &flush, NP_TIMEOUT_MS));
	/* Tail and head, which is stored last. */
	do {
		np_sleep_ms(1);
		ASSERT_EQ(0, np_qp_info(qp.fd, &before));
	} while (before.cpu_doorbell_writes < 2);
	ASSERT_EQ(0, np_bad_rule(&self->bad, 0, NVME_ADMIN_DELETE_CQ, BADCTRL_HOLD, 0, 1));
	EXPECT_EQ(0, ask(&qp));
	EXPECT_EQ(0, np_bad_wait_word(&self->bad, BADCTRL_HELD, 1));
	for (tail = 2; tail < ENTRIES; tail++) {
		np_store(qp.tail_doorbell, tail);
		np_sleep_ms(10);
	}
	EXPECT_EQ(1, np_bad_get(&self->bad, BADCTRL_HELD));
	EXPECT_EQ(0, np_bad_set(&self->bad, BADCTRL_RELEASE, 1));
	EXPECT_EQ(0, np_qp_wait_state(&qp, NVME_PEER_QP_QUIESCED, NP_TIMEOUT_MS));
	ASSERT_EQ(0, np_qp_info(qp.fd, &after));
	EXPECT_EQ(before.cpu_doorbell_writes, after.cpu_doorbell_writes);
	np_qp_close(&qp);
}

/* --- re-arm ---------------------------------------------------------------------- */

static int reset(struct np_bad *bad)
{
	int ret = np_ioctl(bad->ctrl.fd, NVME_IOCTL_RESET, NULL);

	return ret ?: np_bad_wait_state(bad, NVME_PEER_CTRL_LIVE);
}

TEST_F(bad_recovery, refused_rearm_can_be_retried)
{
	ASSERT_LT(0, reset(&self->bad));
	ASSERT_EQ(0, np_bad_rule(&self->bad, 0, NVME_ADMIN_CREATE_CQ, BADCTRL_STATUS,
				 NVME_SC_INTERNAL, 1));
	EXPECT_EQ(-EIO, np_qp_rearm(&self->qp, NP_TIMEOUT_MS));
	EXPECT_EQ(NVME_PEER_QP_QUIESCED, self->status->state);
	ASSERT_EQ(0, np_bad_rule(&self->bad, 0, NVME_ADMIN_CREATE_SQ, BADCTRL_STATUS,
				 NVME_SC_INTERNAL, 1));
	EXPECT_EQ(-EIO, np_qp_rearm(&self->qp, NP_TIMEOUT_MS));
	EXPECT_EQ(NVME_PEER_QP_QUIESCED, self->status->state);
	ASSERT_EQ(0, np_qp_rearm(&self->qp, NP_TIMEOUT_MS));
	EXPECT_EQ(0, np_qp_run(&self->qp, &flush, NP_TIMEOUT_MS));
}

/*
 * The creation gets no completion: its timeout resets the controller, and the next
 * attempt succeeds.
 */
TEST_F(bad_recovery, rearm_retried_after_reset)
{
	int generation = reset(&self->bad);

	ASSERT_LT(0, generation);
	ASSERT_EQ(0, np_bad_rule(&self->bad, 0, NVME_ADMIN_CREATE_SQ, BADCTRL_HOLD, 0, 1));
	ASSERT_EQ(0, np_bad_let_expire(&self->bad, 0));
	ASSERT_EQ(0, np_qp_rearm(&self->qp, NP_TIMEOUT_MS));
	EXPECT_EQ(generation + 1, np_bad_generation(&self->bad));
	EXPECT_EQ(1, np_bad_hits(&self->bad, 0));
	EXPECT_EQ(0, np_qp_run(&self->qp, &flush, NP_TIMEOUT_MS));
}

static void *release_later(void *bad)
{
	np_sleep_ms(100);
	return (void *)(intptr_t)np_bad_set(bad, BADCTRL_RELEASE, 1);
}

/* Re-arming waits until the namespaces were scanned, which wakes who waits for it. */
TEST_F(bad_recovery, rearm_waits_for_namespace_scan)
{
	struct nvme_peer_qp_info info;
	struct nvme_peer_event event;
	pthread_t thread;
	void *ret;

	/* Two commands of the start, then the namespace list. */
	ASSERT_EQ(0, np_bad_rule(&self->bad, 0, NVME_ADMIN_IDENTIFY, BADCTRL_COUNT, 0, 2));
	ASSERT_EQ(0, np_bad_rule(&self->bad, 1, NVME_ADMIN_IDENTIFY, BADCTRL_HOLD, 0, 1));
	ASSERT_LT(0, reset(&self->bad));
	EXPECT_EQ(0, np_bad_wait_word(&self->bad, BADCTRL_HELD, 1));
	ASSERT_EQ(0, np_qp_info(self->qp.fd, &info));
	EXPECT_EQ(-EAGAIN, np_qp_rearm_loss(&self->qp, info.losses));
	EXPECT_EQ(sizeof(event), read(self->qp.fd, &event, sizeof(event)));
	EXPECT_EQ(0, np_poll(self->qp.fd, POLLIN, 0));
	ASSERT_EQ(0, pthread_create(&thread, NULL, release_later, &self->bad));
	EXPECT_EQ(POLLIN, np_poll(self->qp.fd, POLLIN, NP_TIMEOUT_MS));
	pthread_join(thread, &ret);
	EXPECT_EQ(0, (intptr_t)ret);
	EXPECT_EQ(0, np_qp_rearm(&self->qp, NP_TIMEOUT_MS));
}

TEST_F(bad_recovery, rearm_fails_if_queue_not_granted)
{
	ASSERT_EQ(0, np_bad_set(&self->bad, BADCTRL_GRANT, 1));
	ASSERT_LT(0, reset(&self->bad));
	EXPECT_EQ(0, np_qp_wait_state(&self->qp, NVME_PEER_QP_FAILED, NP_TIMEOUT_MS));
	EXPECT_EQ(NVME_PEER_QP_REASON_NO_QUEUE, self->status->reason);
	EXPECT_EQ(-ESHUTDOWN, np_qp_rearm(&self->qp, NP_TIMEOUT_MS));
	EXPECT_EQ(MAP_FAILED, mmap(NULL, NP_PAGE, PROT_WRITE, MAP_SHARED, self->qp.doorbell.fd, 0));
	EXPECT_EQ(ENODEV, errno);
}

/*
 * A subsystem reset may remove the function from the bus, so doorbells are revoked first.
 */
TEST_F(bad_recovery, subsystem_reset_keeps_queue_pairs)
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

/* --- another event during an operation -------------------------------------------- */

/* The first namespace disappears. */
static int remove_namespace(struct np_bad *bad)
{
	return np_bad_set(bad, BADCTRL_ACTIVE, 2) ?:
	       np_bad_set(bad, BADCTRL_EVENT, EVENT_NAMESPACES);
}

/* Its owner would re-arm it and continue on another namespace. */
TEST_F(bad_recovery, quiesced_queue_pair_fails_if_namespace_changes)
{
	EXPECT_EQ(0, ask(&self->qp));
	EXPECT_EQ(0, np_qp_wait_state(&self->qp, NVME_PEER_QP_QUIESCED, NP_TIMEOUT_MS));
	ASSERT_EQ(0, np_qp_wait_ready(&self->qp));
	ASSERT_EQ(0, remove_namespace(&self->bad));
	/* The scan takes a while. */
	EXPECT_EQ(POLLIN, np_poll(self->qp.fd, POLLIN, NP_TIMEOUT_MS));
	EXPECT_EQ(0, np_qp_wait_state(&self->qp, NVME_PEER_QP_FAILED, NP_TIMEOUT_MS));
	EXPECT_EQ(NVME_PEER_QP_REASON_NAMESPACE, self->status->reason);
	EXPECT_EQ(-ESHUTDOWN, np_qp_rearm(&self->qp, NP_TIMEOUT_MS));
	np_qp_close(&self->qp);
}

static int rearm_now(struct np_qp *qp)
{
	struct nvme_peer_qp_info info;

	return np_qp_info(qp->fd, &info) ?: np_qp_rearm_loss(qp, info.losses);
}

static void *rearm_thread(void *argument)
{
	return (void *)(intptr_t)rearm_now(argument);
}

/* The reset is held between the stop of the controller and its next start. */
TEST_F(bad_recovery, lost_queues_are_not_deleted)
{
	pthread_t thread;

	ASSERT_EQ(0, np_bad_rule(&self->bad, 0, NVME_ADMIN_DELETE_SQ, BADCTRL_COUNT, 0, 1));
	ASSERT_EQ(0, np_bad_rule(&self->bad, 1, NVME_ADMIN_IDENTIFY, BADCTRL_HOLD, 0, 1));
	ASSERT_EQ(0, pthread_create(&thread, NULL, np_bad_reset_thread, &self->bad));
	EXPECT_EQ(0, np_bad_wait_word(&self->bad, BADCTRL_HELD, 1));
	np_qp_close(&self->qp);
	EXPECT_EQ(1, np_bad_get(&self->bad, BADCTRL_HELD));
	EXPECT_EQ(0, np_bad_set(&self->bad, BADCTRL_RELEASE, 1));
	pthread_join(thread, NULL);
	EXPECT_EQ(0, np_bad_hits(&self->bad, 0));
}

/*
 * A re-arm creates the queues when a scan finds that a namespace changed. The scan is
 * stalled before it stops the controller.
 */
TEST_F(bad_recovery, failed_queue_pair_does_not_become_live)
{
	struct nvmep_test_stall scan = {
		.function = "nvmep_ctrl_ensure_stopped",
		.after = "nvmep_recover_namespaces_changed",
		.any_thread = 1,
	};
	struct nvme_peer_qp_export export;
	pthread_t thread;
	void *result;
	int stall;

	ASSERT_LT(0, reset(&self->bad));
	ASSERT_EQ(0, np_qp_wait_ready(&self->qp));
	ASSERT_EQ(0, np_works_on(1) ?: np_run_on(0));
	ASSERT_EQ(0, np_bad_rule(&self->bad, 0, NVME_ADMIN_CREATE_SQ, BADCTRL_HOLD, 0, 1));
	ASSERT_EQ(0, np_bad_rule(&self->bad, 1, NVME_ADMIN_DELETE_SQ, BADCTRL_COUNT, 0, 1));
	stall = np_stall(&scan);
	ASSERT_LE(0, stall);
	ASSERT_EQ(0, pthread_create(&thread, NULL, rearm_thread, &self->qp));
	EXPECT_EQ(0, np_bad_wait_word(&self->bad, BADCTRL_HELD, 1));
	/* It is not LIVE yet. */
	EXPECT_EQ(-EAGAIN, np_export_fd(self->qp.fd, NVME_PEER_EXPORT_STATUS, 0, &export));
	ASSERT_EQ(0, remove_namespace(&self->bad));
	EXPECT_EQ(0, np_wait_stalled(stall));
	EXPECT_EQ(0, np_bad_set(&self->bad, BADCTRL_RELEASE, 1));
	pthread_join(thread, &result);
	EXPECT_EQ(-ESHUTDOWN, (int)(intptr_t)result);
	EXPECT_EQ(NVME_PEER_QP_FAILED, self->status->state);
	/* Before the stop. */
	EXPECT_EQ(1, np_bad_hits(&self->bad, 1));
	EXPECT_EQ(0, np_ioctl(stall, NVMEP_TEST_STALLED, NULL));
	close(stall);
	EXPECT_EQ(0, np_works_anywhere());
	EXPECT_EQ(self->generation + 2, np_bad_wait_state(&self->bad, NVME_PEER_CTRL_LIVE));
	EXPECT_EQ(NVME_PEER_QP_FAILED, self->status->state);
	EXPECT_EQ(NVME_PEER_QP_REASON_NAMESPACE, self->status->reason);
	np_qp_close(&self->qp);
}

/* Stalled after the doorbells were withdrawn and before the stop, on CPU 1. */
static void *freeze_link(void *argument)
{
	const struct np_bad *bad = argument;

	return (void *)(intptr_t)(np_run_on(1) ?: np_pci_error(bad->address, NVMEP_TEST_ERROR_FROZEN));
}

static int freeze_link_begin(struct np_bad *bad, pthread_t *thread)
{
	const struct nvmep_test_stall stop = { .function = "nvmep_ctrl_stop" };
	int ret = np_works_on(0) ?: np_run_on(0), stall;

	if (ret)
		return ret;
	stall = np_stall(&stop);
	if (stall < 0)
		return stall;
	return -pthread_create(thread, NULL, freeze_link, bad) ?: np_wait_stalled(stall) ?: stall;
}

/* Fails if the thread was stalled for too long. */
static int freeze_link_end(struct np_bad *bad, pthread_t thread, int stall)
{
	int ret = np_ioctl(stall, NVMEP_TEST_STALLED, NULL);
	void *frozen;

	close(stall);
	pthread_join(thread, &frozen);
	ret = ret ?: (int)(intptr_t)frozen;
	ret = ret ?: np_pci_error(bad->address, NVMEP_TEST_ERROR_SLOT_RESET);
	ret = ret ?: np_pci_error(bad->address, NVMEP_TEST_ERROR_RESUME);
	ret = np_works_anywhere() ?: ret;
	return ret ?: np_bad_wait_state(bad, NVME_PEER_CTRL_LIVE);
}

/* The queues exist when the doorbells are withdrawn: it would be LIVE without. */
TEST_F(bad_recovery, withdrawn_doorbells_end_rearm)
{
	pthread_t rearm, link;
	void *ret;
	int stall;

	ASSERT_LT(0, reset(&self->bad));
	ASSERT_EQ(0, np_qp_wait_ready(&self->qp));
	ASSERT_EQ(0, np_bad_rule(&self->bad, 0, NVME_ADMIN_CREATE_SQ, BADCTRL_HOLD, 0, 1));
	ASSERT_EQ(0, pthread_create(&rearm, NULL, rearm_thread, &self->qp));
	EXPECT_EQ(0, np_bad_wait_word(&self->bad, BADCTRL_HELD, 1));
	stall = freeze_link_begin(&self->bad, &link);
	ASSERT_LE(0, stall);
	EXPECT_EQ(0, np_bad_set(&self->bad, BADCTRL_RELEASE, 1));
	pthread_join(rearm, &ret);
	EXPECT_EQ(-EAGAIN, (int)(intptr_t)ret);
	EXPECT_EQ(NVME_PEER_QP_QUIESCED, self->status->state);
	EXPECT_LT(self->generation, freeze_link_end(&self->bad, link, stall));
	ASSERT_EQ(0, np_qp_rearm(&self->qp, NP_TIMEOUT_MS));
	EXPECT_EQ(0, np_qp_run(&self->qp, &flush, NP_TIMEOUT_MS));
}

/* Its registers may not respond soon. */
TEST_F(bad_recovery, health_poll_pauses_before_stop)
{
	pthread_t link;
	int stall = freeze_link_begin(&self->bad, &link);

	ASSERT_LE(0, stall);
	EXPECT_EQ(0, wait_no_poll(&self->bad));
	EXPECT_EQ(NVME_PEER_QP_LIVE, self->status->state);
	EXPECT_LT(self->generation, freeze_link_end(&self->bad, link, stall));
}

/* --- a controller that does not start --------------------------------------------- */

/* The next controller reset fails as @mode says. */
static int fail_to_start(struct np_bad *bad, uint32_t mode, uint32_t cured)
{
	return np_bad_set(bad, BADCTRL_CURED, cured) ?:
	       np_bad_set(bad, BADCTRL_MODE, mode) ?:
	       np_ioctl(bad->ctrl.fd, NVME_IOCTL_RESET, NULL);
}

/* Doorbells were revoked before decoding was disabled, and are restored with it. */
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

TEST_F(bad_recovery, not_ready_triggers_function_reset)
{
	check_cure(_metadata, self, BADCTRL_NEVER_READY);
}

TEST_F(bad_recovery, fatal_at_start_triggers_function_reset)
{
	check_cure(_metadata, self, BADCTRL_FATAL);
}

TEST_F(bad_recovery, start_timeout_triggers_function_reset)
{
	ASSERT_EQ(0, np_bad_short_admin_timeout());
	check_cure(_metadata, self, BADCTRL_SILENT);
}

TEST_F(bad_recovery, disable_timeout_triggers_function_reset)
{
	check_cure(_metadata, self, BADCTRL_NEVER_STOPS);
}

TEST_F(bad_recovery, all_ones_triggers_function_reset)
{
	check_cure(_metadata, self, BADCTRL_GONE);
}

/* One function reset is tried, then the controller is failed. */
TEST_F(bad_recovery, function_reset_is_tried_once)
{
	EXPECT_EQ(-EIO, fail_to_start(&self->bad, BADCTRL_NEVER_READY, 0));
	EXPECT_EQ(0, np_qp_wait_state(&self->qp, NVME_PEER_QP_FAILED, NP_TIMEOUT_MS));
	EXPECT_EQ(NVME_PEER_QP_REASON_CTRL, self->status->reason);
	EXPECT_EQ(1, np_bad_get(&self->bad, BADCTRL_RESETS));
	np_qp_close(&self->qp);
	EXPECT_EQ(0, np_bad_set(&self->bad, BADCTRL_MODE, BADCTRL_WORKS));
}

/* The other registers respond, as when the link fails between two reads. */
TEST_F(bad_recovery, capabilities_of_all_ones_are_refused)
{
	ASSERT_EQ(0, np_bad_set(&self->bad, CAP_LOW, ~0U));
	ASSERT_EQ(0, np_bad_set(&self->bad, CAP_HIGH, ~0U));
	EXPECT_EQ(-EIO, np_ioctl(self->bad.ctrl.fd, NVME_IOCTL_RESET, NULL));
	EXPECT_EQ(0, np_qp_wait_state(&self->qp, NVME_PEER_QP_FAILED, NP_TIMEOUT_MS));
	EXPECT_EQ(1, np_bad_get(&self->bad, BADCTRL_RESETS));
	np_qp_close(&self->qp);
	EXPECT_EQ(0, np_bad_set(&self->bad, BADCTRL_DEFAULTS, 1));
	EXPECT_EQ(0, np_bad_set(&self->bad, BADCTRL_MODE, BADCTRL_WORKS));
}

/**
 * struct port - holds the device lock of the port above a function
 * @thread: holds it
 * @hold: for how long at most, and above which function
 * @test: tells whether it is held; another file than that of the thread, which is busy
 */
struct port {
	pthread_t thread;
	struct nvmep_test_hold hold;
	int test;
};

static void *hold_port_thread(void *argument)
{
	struct port *port = argument;
	int test = np_test_open();
	int ret = np_ioctl(test, NVMEP_TEST_HOLD, &port->hold);

	close(test);
	return (void *)(intptr_t)ret;
}

static bool port_is_held(struct port *port)
{
	return !np_ioctl(port->test, NVMEP_TEST_HELD, NULL);
}

/* A driver that waits for the lock gets it in the end, long before it would give up. */
static int hold_port(struct port *port, const char *address, uint32_t siblings)
{
	*port = (struct port){
		.test = np_test_open(),
		.hold = {
			.dmabuf_fd = NVMEP_TEST_HOLD_PORT, .ms = NP_TIMEOUT_MS,
			.siblings = siblings, .pci_address = np_parse_address(address),
		},
	};
	if (pthread_create(&port->thread, NULL, hold_port_thread, port))
		return -EAGAIN;
	return np_wait_held(port->test);
}

/* Returns the result of the hold. */
static int release_port(struct port *port)
{
	void *ret;

	np_interrupt(port->thread);
	pthread_join(port->thread, &ret);
	close(port->test);
	return (int)(intptr_t)ret;
}

/* It may be a bus reset, during which no other thread may use the port. */
TEST_F(bad_recovery, function_reset_waits_for_its_port)
{
	struct port port;
	pthread_t thread;
	void *ret;

	ASSERT_EQ(0, np_bad_set(&self->bad, BADCTRL_CURED, 1));
	ASSERT_EQ(0, np_bad_set(&self->bad, BADCTRL_MODE, BADCTRL_FATAL));
	ASSERT_EQ(0, hold_port(&port, self->bad.address, 0));
	ASSERT_EQ(0, pthread_create(&thread, NULL, np_bad_reset_thread, &self->bad));
	np_sleep_ms(1000);
	EXPECT_EQ(0, np_bad_get(&self->bad, BADCTRL_RESETS));
	EXPECT_TRUE(port_is_held(&port));
	EXPECT_EQ(0, release_port(&port));
	pthread_join(thread, &ret);
	EXPECT_EQ(0, (intptr_t)ret);
	EXPECT_EQ(1, np_bad_get(&self->bad, BADCTRL_RESETS));
	EXPECT_EQ(0, np_qp_rearm(&self->qp, NP_TIMEOUT_MS));
}

/* The reset of a sibling, which may hang, holds the lock of their port. */
TEST_F(bad_recovery, function_reset_does_not_wait_for_siblings)
{
	struct port port;

	ASSERT_EQ(0, hold_port(&port, self->bad.address, 1));
	EXPECT_EQ(0, fail_to_start(&self->bad, BADCTRL_FATAL, 1));
	EXPECT_EQ(1, np_bad_get(&self->bad, BADCTRL_RESETS));
	EXPECT_TRUE(port_is_held(&port));
	EXPECT_EQ(0, release_port(&port));
	EXPECT_EQ(0, np_qp_rearm(&self->qp, NP_TIMEOUT_MS));
}

/* A function reset would help, but an empty reset_method forbids it. */
TEST_F(bad_recovery, empty_reset_method_forbids_function_reset)
{
	ASSERT_EQ(0, np_pci_write(self->bad.address, "reset_method", "\n"));
	EXPECT_EQ(-EIO, fail_to_start(&self->bad, BADCTRL_NEVER_READY, 1));
	EXPECT_EQ(0, np_qp_wait_state(&self->qp, NVME_PEER_QP_FAILED, NP_TIMEOUT_MS));
	EXPECT_EQ(0, np_bad_get(&self->bad, BADCTRL_RESETS));
	EXPECT_EQ(0, np_pci_write(self->bad.address, "reset_method", "default"));
	np_qp_close(&self->qp);
	EXPECT_EQ(0, np_bad_set(&self->bad, BADCTRL_MODE, BADCTRL_WORKS));
}

/* What poll() of the controller node reports now. */
static int polled(int fd)
{
	return np_poll(fd, POLLIN | POLLRDNORM, 0);
}

/*
 * reset_done() holds the device lock and waits for the start, which fails and needs the lock: it
 * gives way, and the function is reset once more.
 */
TEST_F(bad_recovery, start_that_fails_after_function_reset_is_repeated)
{
	ASSERT_EQ(0, np_bad_rule(&self->bad, 0, NVME_ADMIN_IDENTIFY, BADCTRL_STATUS,
				 NVME_STATUS_DNR | NVME_SC_INTERNAL, 1));
	EXPECT_EQ(0, np_pci_write(self->bad.address, "reset", "1"));
	EXPECT_LT(self->generation, np_bad_wait_state(&self->bad, NVME_PEER_CTRL_LIVE));
	EXPECT_EQ(2, np_bad_get(&self->bad, BADCTRL_RESETS));
	ASSERT_EQ(0, np_qp_rearm(&self->qp, NP_TIMEOUT_MS));
	EXPECT_EQ(0, np_qp_run(&self->qp, &flush, NP_TIMEOUT_MS));
}

TEST_F(bad_recovery, start_that_fails_twice_after_function_reset_fails_controller)
{
	ASSERT_EQ(0, np_bad_set(&self->bad, BADCTRL_MODE, BADCTRL_NEVER_READY));
	EXPECT_EQ(0, np_pci_write(self->bad.address, "reset", "1"));
	EXPECT_EQ(0, np_qp_wait_state(&self->qp, NVME_PEER_QP_FAILED, NP_TIMEOUT_MS));
	EXPECT_EQ(2, np_bad_get(&self->bad, BADCTRL_RESETS));
	EXPECT_EQ(POLLHUP, polled(self->bad.ctrl.fd));
	np_qp_close(&self->qp);
	EXPECT_EQ(0, np_bad_set(&self->bad, BADCTRL_MODE, BADCTRL_WORKS));
}

/*
 * The PCI core's reset does not wait for a command of the driver's: it interrupts that
 * reset, which then starts over.
 */
TEST_F(bad_recovery, function_reset_interrupts_hung_reset)
{
	pthread_t thread;
	void *ret;

	EXPECT_EQ(POLLIN | POLLRDNORM, polled(self->bad.ctrl.fd));
	ASSERT_EQ(0, np_bad_rule(&self->bad, 0, NVME_ADMIN_IDENTIFY, BADCTRL_HOLD, 0, 1));
	ASSERT_EQ(0, pthread_create(&thread, NULL, np_bad_reset_thread, &self->bad));
	EXPECT_EQ(0, np_bad_wait_word(&self->bad, BADCTRL_HELD, 1));
	EXPECT_EQ(0, polled(self->bad.ctrl.fd));
	EXPECT_EQ(0, np_pci_write(self->bad.address, "reset", "1"));
	pthread_join(thread, &ret);
	EXPECT_EQ(0, (intptr_t)ret);
	EXPECT_LT(self->generation, np_bad_wait_state(&self->bad, NVME_PEER_CTRL_LIVE));
	EXPECT_EQ(POLLIN | POLLRDNORM, polled(self->bad.ctrl.fd));
	EXPECT_EQ(1, np_bad_get(&self->bad, BADCTRL_RESETS));
	ASSERT_EQ(0, np_qp_rearm(&self->qp, NP_TIMEOUT_MS));
	EXPECT_EQ(0, np_qp_run(&self->qp, &flush, NP_TIMEOUT_MS));
}

/* A start may take hours. The reset that the killed process has requested goes on. */
TEST_F(bad_recovery, killed_process_does_not_wait_for_reset)
{
	int64_t end = np_now_ms() + NP_TIMEOUT_MS;
	pid_t child, ended;
	int status;

	ASSERT_EQ(0, np_bad_rule(&self->bad, 0, NVME_ADMIN_IDENTIFY, BADCTRL_HOLD, 0, 1));
	child = fork();
	ASSERT_LE(0, child);
	if (!child)
		_exit(!!np_ioctl(self->bad.ctrl.fd, NVME_IOCTL_RESET, NULL));
	EXPECT_EQ(0, np_bad_wait_word(&self->bad, BADCTRL_HELD, 1));
	EXPECT_EQ(0, kill(child, SIGKILL));
	while (!(ended = waitpid(child, &status, WNOHANG)) && np_now_ms() < end)
		np_sleep_ms(10);
	EXPECT_EQ(child, ended);
	EXPECT_EQ(0, polled(self->bad.ctrl.fd));
	EXPECT_EQ(0, np_bad_set(&self->bad, BADCTRL_RELEASE, 1));
	EXPECT_EQ(self->generation + 1, np_bad_wait_state(&self->bad, NVME_PEER_CTRL_LIVE));
}

/* --- a link that fails ------------------------------------------------------------ */

#define RECOVERY_TIMEOUT	"/sys/module/nvme_peer/parameters/recovery_timeout"

/*
 * As with DPC: registers and config space read all ones before the PCI core reports
 * anything, and the function comes back. A reset that waits for it meanwhile succeeds.
 */
TEST_F_TIMEOUT(bad_recovery, absent_function_is_waited_for, 60)
{
	pthread_t thread;
	void *ret;
	int i;

	for (i = 1; i <= 2; i++) {
		ASSERT_EQ(0, np_bad_set(&self->bad, BADCTRL_MODE, BADCTRL_ABSENT));
		EXPECT_EQ(0, np_qp_wait_state(&self->qp, NVME_PEER_QP_QUIESCED, NP_TIMEOUT_MS));
		np_sleep_ms(500);
		EXPECT_EQ(NVME_PEER_QP_QUIESCED, self->status->state);
		EXPECT_EQ(-EFAULT, np_store(self->qp.tail_doorbell, 0));
		EXPECT_EQ(-EBUSY, np_ioctl(self->bad.ctrl.fd, NVME_IOCTL_RESET, NULL));
		EXPECT_EQ(0, np_bad_set(&self->bad, BADCTRL_MODE, BADCTRL_WORKS));
		EXPECT_LT(self->generation,
			  np_bad_wait_state(&self->bad, NVME_PEER_CTRL_LIVE));
		ASSERT_EQ(0, np_qp_rearm(&self->qp, NP_TIMEOUT_MS));
		EXPECT_EQ(0, np_qp_run(&self->qp, &flush, NP_TIMEOUT_MS));
	}
	np_qp_close(&self->qp);
	self->qp.fd = -1;
	ASSERT_EQ(0, np_bad_set(&self->bad, BADCTRL_MODE, BADCTRL_ABSENT));
	ASSERT_EQ(0, pthread_create(&thread, NULL, np_bad_reset_thread, &self->bad));
	np_sleep_ms(500);
	EXPECT_EQ(0, np_bad_set(&self->bad, BADCTRL_MODE, BADCTRL_WORKS));
	pthread_join(thread, &ret);
	/* Refused if the health poll has found the function absent first. */
	if ((intptr_t)ret != -EBUSY)
		EXPECT_EQ(0, (intptr_t)ret);
	EXPECT_LE(0, np_bad_wait_state(&self->bad, NVME_PEER_CTRL_LIVE));
}

/* The function goes after it was reset, in the start that follows. */
TEST_F(bad_recovery, absent_function_is_waited_for_in_second_start)
{
	int log = np_log_open();
	pthread_t thread;
	void *ret;

	ASSERT_LE(0, log);
	np_qp_close(&self->qp);
	self->qp.fd = -1;
	ASSERT_EQ(0, np_bad_rule(&self->bad, 0, NVME_ADMIN_IDENTIFY, BADCTRL_STATUS,
				 NVME_STATUS_DNR | NVME_SC_INTERNAL, 1));
	ASSERT_EQ(0, np_bad_rule(&self->bad, 1, NVME_ADMIN_IDENTIFY, BADCTRL_HOLD, 0, 1));
	ASSERT_EQ(0, np_bad_let_expire(&self->bad, 1));
	ASSERT_EQ(0, pthread_create(&thread, NULL, np_bad_reset_thread, &self->bad));
	EXPECT_EQ(0, np_bad_wait_word(&self->bad, BADCTRL_HELD, 1));
	EXPECT_EQ(1, np_bad_get(&self->bad, BADCTRL_RESETS));
	EXPECT_EQ(0, np_bad_set(&self->bad, BADCTRL_MODE, BADCTRL_ABSENT));
	EXPECT_EQ(0, np_log_wait(log, "does not respond: waiting for it", NP_TIMEOUT_MS));
	EXPECT_EQ(0, np_bad_set(&self->bad, BADCTRL_MODE, BADCTRL_WORKS));
	pthread_join(thread, &ret);
	EXPECT_EQ(0, (intptr_t)ret);
	EXPECT_LT(self->generation, np_bad_wait_state(&self->bad, NVME_PEER_CTRL_LIVE));
	close(log);
}

/*
 * The PCI core freezes the channel before it calls error_detected(), for which a start that fails
 * meanwhile waits.
 */
TEST_F_TIMEOUT(bad_recovery, frozen_channel_is_waited_for, 60)
{
	pthread_t thread;
	void *ret;

	/* The health poll does not look at what the PCI core is going to recover. */
	ASSERT_EQ(0, np_pci_error(self->bad.address, NVMEP_TEST_CHANNEL_FROZEN));
	EXPECT_EQ(0, wait_no_poll(&self->bad));
	EXPECT_EQ(0, np_pci_error(self->bad.address, NVMEP_TEST_CHANNEL_NORMAL));

	np_qp_close(&self->qp);
	self->qp.fd = -1;
	ASSERT_EQ(0, np_bad_set(&self->bad, BADCTRL_MODE, BADCTRL_NEVER_READY));
	ASSERT_EQ(0, np_pci_error(self->bad.address, NVMEP_TEST_CHANNEL_FROZEN));
	ASSERT_EQ(0, pthread_create(&thread, NULL, np_bad_reset_thread, &self->bad));
	np_sleep_ms(2000);
	EXPECT_EQ(0, np_bad_get(&self->bad, BADCTRL_RESETS));
	EXPECT_EQ(0, np_bad_set(&self->bad, BADCTRL_MODE, BADCTRL_WORKS));
	EXPECT_EQ(0, np_pci_error(self->bad.address, NVMEP_TEST_CHANNEL_NORMAL));
	pthread_join(thread, &ret);
	EXPECT_EQ(0, (intptr_t)ret);
	EXPECT_LT(self->generation, np_bad_wait_state(&self->bad, NVME_PEER_CTRL_LIVE));
}

/* The link fails for good before reset work enables the controller: it stays disabled. */
TEST_F(bad_recovery, permanent_failure_prevents_start)
{
	struct nvmep_test_stall start = { .function = "nvmep_ctrl_start", .any_thread = 1 };
	pthread_t thread;
	void *ret;
	int stall;

	np_qp_close(&self->qp);
	self->qp.fd = -1;
	ASSERT_EQ(0, np_works_on(1) ?: np_run_on(0));
	stall = np_stall(&start);
	ASSERT_LE(0, stall);
	ASSERT_EQ(0, pthread_create(&thread, NULL, np_bad_reset_thread, &self->bad));
	EXPECT_EQ(0, np_wait_stalled(stall));
	ASSERT_EQ(0, np_bad_rule(&self->bad, 0, NVME_ADMIN_IDENTIFY, BADCTRL_COUNT, 0,
				 BADCTRL_EVERY));
	EXPECT_EQ(0, np_pci_error(self->bad.address, NVMEP_TEST_ERROR_PERMANENT));
	EXPECT_EQ(0, np_ioctl(stall, NVMEP_TEST_STALLED, NULL));
	close(stall);
	pthread_join(thread, &ret);
	EXPECT_EQ(-EIO, (intptr_t)ret);
	np_sleep_ms(500);
	EXPECT_EQ(0, np_bad_hits(&self->bad, 0));
}

TEST_F(bad_recovery, absent_function_fails_after_timeout)
{
	char usual[16];

	ASSERT_EQ(0, np_read_file(RECOVERY_TIMEOUT, usual, sizeof(usual)));
	ASSERT_EQ(0, np_write_file(RECOVERY_TIMEOUT, "1"));
	ASSERT_EQ(0, np_bad_set(&self->bad, BADCTRL_MODE, BADCTRL_ABSENT));
	EXPECT_EQ(0, np_qp_wait_state(&self->qp, NVME_PEER_QP_FAILED, NP_TIMEOUT_MS));
	EXPECT_EQ(NVME_PEER_QP_REASON_CTRL, self->status->reason);
	EXPECT_EQ(0, np_write_file(RECOVERY_TIMEOUT, usual));
	np_qp_close(&self->qp);
	EXPECT_EQ(0, np_bad_set(&self->bad, BADCTRL_MODE, BADCTRL_WORKS));
}

/* --- removal during a planned reset ------------------------------------------------ */

/* The thread that writes an attribute. */
static atomic_int writer_id;

static void *write_1(const struct np_bad *bad, const char *attribute)
{
	char path[128];

	atomic_store(&writer_id, gettid());
	snprintf(path, sizeof(path), "/sys/class/nvme-peer/nvmep%d/%s", bad->ctrl.instance, attribute);
	return (void *)(intptr_t)np_write_file(path, "1");
}

static void *write_cpu_queues(void *bad)
{
	return write_1(bad, "cpu_queues");
}

static void *write_reset(void *bad)
{
	return write_1(bad, "reset_controller");
}

static void *read_disk(void *argument)
{
	static uint8_t page[NP_PAGE] __attribute__((aligned(NP_PAGE)));
	struct np_bad *bad = argument;

	return (void *)(intptr_t)np_bad_read_disk(bad, page);
}

static void *unbind(void *argument)
{
	struct np_bad *bad = argument;

	return (void *)(intptr_t)np_unbind(bad->address);
}

/* Neither the command nor the drain of drain_without_answer() times out before. */
#define UNANSWERED_MS	20000

/* A change of queues that waits for I/O, with a command in flight that is not answered. */
static void drain_without_answer(struct __test_metadata *_metadata,
				 FIXTURE_DATA(bad_recovery) *self, pthread_t *reader,
				 pthread_t *writer)
{
	np_qp_close(&self->qp);
	self->qp.fd = -1;
	ASSERT_EQ(0, np_write_file("/sys/module/nvme_peer/parameters/io_timeout", "60"));
	ASSERT_EQ(0, np_bad_unbind(&self->bad));
	ASSERT_EQ(0, np_bad_bind(&self->bad, 1));
	ASSERT_EQ(0, np_bad_rule(&self->bad, 0, NP_IO_READ, BADCTRL_HOLD, 0, 1));
	ASSERT_EQ(0, pthread_create(reader, NULL, read_disk, &self->bad));
	EXPECT_EQ(0, np_bad_wait_word(&self->bad, BADCTRL_HELD, 1));
	ASSERT_EQ(0, pthread_create(writer, NULL, write_cpu_queues, &self->bad));
	EXPECT_EQ(0, np_wait_sleeps(&writer_id));
}

/* Error recovery of the PCI core does not wait for the end of a drain. */
TEST_F(bad_recovery, link_error_ends_change_of_queues)
{
	pthread_t reader, writer;
	int64_t start;
	void *ret;

	drain_without_answer(_metadata, self, &reader, &writer);
	start = np_now_ms();
	EXPECT_EQ(0, np_pci_error(self->bad.address, NVMEP_TEST_ERROR_FROZEN));
	EXPECT_GT(UNANSWERED_MS, np_now_ms() - start);
	EXPECT_EQ(0, np_pci_error(self->bad.address, NVMEP_TEST_ERROR_SLOT_RESET));
	EXPECT_EQ(0, np_pci_error(self->bad.address, NVMEP_TEST_ERROR_RESUME));
	pthread_join(writer, &ret);
	pthread_join(reader, &ret);
	EXPECT_EQ(0, (intptr_t)ret);
	EXPECT_LE(0, np_bad_wait_state(&self->bad, NVME_PEER_CTRL_LIVE));
}

static void expect_unbound(struct __test_metadata *_metadata, pthread_t remover)
{
	void *ret;

	ASSERT_EQ(0, np_join(remover, &ret, 15000));
	EXPECT_EQ(0, (intptr_t)ret);
}

TEST_F(bad_recovery, unbind_ends_reset_by_attribute)
{
	pthread_t writer, remover;
	void *ret;

	np_qp_close(&self->qp);
	self->qp.fd = -1;
	ASSERT_EQ(0, np_bad_rule(&self->bad, 0, NVME_ADMIN_IDENTIFY, BADCTRL_HOLD, 0, 1));
	ASSERT_EQ(0, pthread_create(&writer, NULL, write_reset, &self->bad));
	EXPECT_EQ(0, np_bad_wait_word(&self->bad, BADCTRL_HELD, 1));
	/* It waits for writers of attributes. */
	ASSERT_EQ(0, pthread_create(&remover, NULL, unbind, &self->bad));
	expect_unbound(_metadata, remover);
	pthread_join(writer, &ret);
	EXPECT_EQ(-EIO, (intptr_t)ret);
}

TEST_F(bad_recovery, unbind_ends_change_of_queues)
{
	pthread_t reader, writer, remover;
	int64_t start;
	void *ret;

	drain_without_answer(_metadata, self, &reader, &writer);
	start = np_now_ms();
	ASSERT_EQ(0, pthread_create(&remover, NULL, unbind, &self->bad));
	pthread_join(writer, &ret);
	EXPECT_EQ(-ENODEV, (intptr_t)ret);
	EXPECT_GT(UNANSWERED_MS, np_now_ms() - start);
	/* The data of the CPU is waited for. */
	EXPECT_EQ(EBUSY, pthread_tryjoin_np(remover, NULL));
	EXPECT_EQ(0, np_bad_set(&self->bad, BADCTRL_RELEASE, 1));
	expect_unbound(_metadata, remover);
	pthread_join(reader, &ret);
	EXPECT_EQ(0, (intptr_t)ret);
}

TEST_HARNESS_MAIN
