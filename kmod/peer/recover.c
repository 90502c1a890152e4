// SPDX-License-Identifier: GPL-2.0-only
/*
 * Recovery: a stop of the controller loses all queue pairs; owners re-arm them.
 *
 * Re-arm is a request of the owner and never automatic.  A peer that has not
 * noticed the stop continues from its old tail.  If the queues were recreated
 * without its knowledge, the controller would execute stale entries of the
 * ring, writes among them, with addresses that may have been reused since.  A
 * queue pair therefore stays QUIESCED until its owner guarantees that no peer
 * uses the old entries:
 *
 *	LIVE		the controller stops, or a peer requests recovery
 *	QUIESCED	queue ID, rings, addresses and dma-bufs stay; revoked
 *			doorbells stay revoked
 *	LIVE		NVME_PEER_QP_REARM: restore doorbells, clear rings in
 *			host memory, create the queues
 *	FAILED		re-arm is not possible: fewer queues are granted, the
 *			controller has failed, or a namespace changed
 *
 * Re-arm is refused until a scan of the restarted controller has ended: peers
 * address blocks of the namespaces of before.
 */
#include <linux/kobject.h>
#include <linux/mm.h>
#include <linux/pci.h>

#include "core/ctrl.h"
#include "core/qids.h"
#include "core/queue_pair.h"
#include "core/registers.h"
#include "core/reset.h"
#include "host_pages.h"
#include "mediated.h"
#include "module.h"
#include "peer.h"
#include "qp.h"
#include "ring.h"

/* How long the creation of a queue pair waits for a scan, in jiffies. */
#define NVMEP_SCAN_WAIT		(5 * HZ)

/* --- uevents ------------------------------------------------------------- */

/*
 * Queues a uevent of the controller node; `nvme-peer events` prints it.  It is
 * sent from work: sending allocates memory, which may wait for I/O that waits
 * for the caller's reset.
 */
static void nvmep_recover_uevent(struct nvmep_ctrl *ctrl, const char *event,
				 unsigned int queue_pairs)
{
	struct nvmep_peers *peers = ctrl->peers;

	lockdep_assert_held(&peers->lock);

	if (!queue_pairs)
		return;
	if (peers->uevent_next - peers->uevent_first == NVMEP_MAX_UEVENTS)
		peers->uevent_first++;
	peers->uevents[peers->uevent_next++ % NVMEP_MAX_UEVENTS] =
		(struct nvmep_uevent) {
			.event = event,
			.generation = nvmep_ctrl_generation(ctrl),
			.queue_pairs = queue_pairs,
		};
	queue_work(peers->invalidate_wq, &peers->uevent_work);
}

static bool nvmep_recover_next_uevent(struct nvmep_peers *peers,
				      struct nvmep_uevent *uevent)
{
	bool found;

	mutex_lock(&peers->lock);
	found = peers->uevent_first != peers->uevent_next;
	if (found)
		*uevent = peers->uevents[peers->uevent_first++ %
					 NVMEP_MAX_UEVENTS];
	mutex_unlock(&peers->lock);
	return found;
}

static void nvmep_recover_send_uevent(struct nvmep_ctrl *ctrl,
				      const struct nvmep_uevent *uevent)
{
	char event[40], generation[40], count[40];
	char *environment[4] = { event, generation, count, NULL };

	snprintf(event, sizeof(event), "NVME_PEER_EVENT=%s", uevent->event);
	snprintf(generation, sizeof(generation), "NVME_PEER_GENERATION=%u",
		 uevent->generation);
	snprintf(count, sizeof(count), "NVME_PEER_QUEUE_PAIRS=%u",
		 uevent->queue_pairs);
	kobject_uevent_env(&ctrl->device.kobj, KOBJ_CHANGE, environment);
}

static void nvmep_recover_uevent_work(struct work_struct *work)
{
	struct nvmep_peers *peers = container_of(work, struct nvmep_peers,
						 uevent_work);
	struct nvmep_uevent uevent;

	while (nvmep_recover_next_uevent(peers, &uevent))
		nvmep_recover_send_uevent(peers->ctrl, &uevent);
}

/* --- stop of the controller ---------------------------------------------- */

/* Its queues are off the controller: it may be re-armed unless outdated. */
static void nvmep_recover_set_lost(struct nvmep_qp *qp,
				   enum nvme_peer_qp_reason reason)
{
	if (qp->fail_on_stop)
		nvmep_qp_fail(qp, NVME_PEER_QP_REASON_NAMESPACE);
	else
		nvmep_qp_set_state(qp, NVMEP_QP_QUIESCED, reason);
}

/* Returns whether it was LIVE. */
static bool nvmep_recover_mark_lost(struct nvmep_qp *qp)
{
	bool live = qp->state == NVMEP_QP_LIVE;

	if (live)
		nvmep_recover_set_lost(qp, NVME_PEER_QP_REASON_RESET);
	else
		nvmep_qp_write_status(qp);
	nvmep_qp_wake(qp);
	return live;
}

/**
 * nvmep_recover_stopped() - the controller has stopped and lost all queues
 * @ctrl: the controller, with its new generation
 *
 * Called by the reset work: sends no admin command and does not wait for peers.
 * All status pages get the new generation, those of stopped queue pairs as
 * well.
 */
void nvmep_recover_stopped(struct nvmep_ctrl *ctrl)
{
	struct nvmep_peers *peers = ctrl->peers;
	unsigned int lost = 0;
	struct nvmep_qp *qp;

	mutex_lock(&peers->lock);
	list_for_each_entry(qp, &peers->qps, node)
		lost += nvmep_recover_mark_lost(qp);
	nvmep_recover_uevent(ctrl, "stopped", lost);
	mutex_unlock(&peers->lock);
	nvmep_mediator_stopped(peers);
}

/* May its queues be on the controller, or be created without a new scan? */
static bool nvmep_recover_needs_stop(const struct nvmep_qp *qp)
{
	return qp->state == NVMEP_QP_NEW || qp->state == NVMEP_QP_LIVE ||
	       qp->state == NVMEP_QP_REARMING;
}

/**
 * nvmep_recover_namespaces_changed() - refuse re-arm: a namespace changed
 * @ctrl: the controller
 *
 * No queue pair becomes LIVE before a scan has succeeded.  One that is not on
 * the list yet reads @ready later, after it has held peers->lock: its creation
 * fails, or sees the end of the scan.
 *
 * A re-arm in progress fails the queue pair itself, when its queues are off the
 * controller.
 *
 * Return: true if the caller has to stop the controller: it may have queues of
 * a peer.
 */
bool nvmep_recover_namespaces_changed(struct nvmep_ctrl *ctrl)
{
	struct nvmep_peers *peers = ctrl->peers;
	bool stop = false;
	struct nvmep_qp *qp;

	mutex_lock(&peers->lock);
	WRITE_ONCE(peers->ready, NVMEP_NEVER_READY);
	list_for_each_entry(qp, &peers->qps, node) {
		/* Its windows end with their namespace and its format. */
		if (nvmep_qp_mediated(qp))
			continue;
		qp->fail_on_stop = true;
		stop |= nvmep_recover_needs_stop(qp);
		if (qp->state == NVMEP_QP_QUIESCED)
			nvmep_qp_fail(qp, NVME_PEER_QP_REASON_NAMESPACE);
	}
	mutex_unlock(&peers->lock);
	return stop;
}

/**
 * nvmep_recover_ctrl_failed() - the controller has failed and will not restart
 * @ctrl: the controller; nvmep_recover_stopped() was called
 */
void nvmep_recover_ctrl_failed(struct nvmep_ctrl *ctrl)
{
	struct nvmep_peers *peers = ctrl->peers;
	unsigned int failed = 0;
	struct nvmep_qp *qp;

	mutex_lock(&peers->lock);
	list_for_each_entry(qp, &peers->qps, node) {
		if (!nvmep_qp_rearmable(qp))
			continue;
		nvmep_qp_fail(qp, NVME_PEER_QP_REASON_CTRL);
		failed++;
	}
	nvmep_recover_uevent(ctrl, "given-up", failed);
	mutex_unlock(&peers->lock);
}

/* --- re-arm -------------------------------------------------------------- */

/* May a QUIESCED queue pair be re-armed now? */
static bool nvmep_recover_ready(const struct nvmep_ctrl *ctrl)
{
	lockdep_assert_held(&ctrl->peers->lock);

	return nvmep_ctrl_state(ctrl) == NVMEP_CTRL_LIVE &&
	       ctrl->peers->ready == nvmep_ctrl_generation(ctrl);
}

/* The works that revoke its doorbells would take restored ones as well. */
static bool nvmep_recover_qp_ready(const struct nvmep_qp *qp)
{
	return nvmep_recover_ready(qp->ctrl) &&
	       !atomic_read(&qp->exports.works);
}

/**
 * nvmep_recover_doorbells_revoked() - the last work of a revocation ends
 * @exports: the dma-bufs of the queue pair; the caller holds peers->lock
 *
 * Reports READY if the scan ended earlier.
 */
void nvmep_recover_doorbells_revoked(struct nvmep_exports *exports)
{
	struct nvmep_qp *qp = container_of(exports, struct nvmep_qp, exports);

	if (!nvmep_qp_rearmable(qp) || !nvmep_recover_qp_ready(qp))
		return;
	nvmep_qp_add_event(qp, NVME_PEER_EVENT_READY, 0);
	nvmep_qp_wake(qp);
	nvmep_recover_uevent(qp->ctrl, "ready", 1);
}

/* Returns the number of queue pairs that can be re-armed now. */
static unsigned int nvmep_recover_allow_rearm_locked(struct nvmep_ctrl *ctrl,
						     u32 generation)
{
	struct nvmep_peers *peers = ctrl->peers;
	unsigned int waiting = 0;
	struct nvmep_qp *qp;

	lockdep_assert_held(&peers->lock);

	if (nvmep_ctrl_generation(ctrl) != generation ||
	    peers->ready == generation)
		return 0;
	WRITE_ONCE(peers->ready, generation);
	list_for_each_entry(qp, &peers->qps, node) {
		if (!nvmep_qp_rearmable(qp))
			continue;
		if (!nvmep_qp_mediated(qp) &&
		    !nvmep_qid_granted(ctrl, qp->qid)) {
			nvmep_qp_fail(qp, NVME_PEER_QP_REASON_NO_QUEUE);
		} else if (nvmep_recover_qp_ready(qp)) {
			nvmep_qp_add_event(qp, NVME_PEER_EVENT_READY, 0);
			nvmep_qp_wake(qp);
			waiting++;
		}
	}
	return waiting;
}

/**
 * nvmep_recover_allow_rearm() - allow owners to re-arm: a scan has succeeded
 * @ctrl: the controller
 * @generation: generation in which the scan began, with the controller LIVE
 *
 * No effect if the generation has changed, or after an earlier scan in it.
 */
void nvmep_recover_allow_rearm(struct nvmep_ctrl *ctrl, u32 generation)
{
	struct nvmep_peers *peers = ctrl->peers;
	unsigned int waiting;

	mutex_lock(&peers->lock);
	waiting = nvmep_recover_allow_rearm_locked(ctrl, generation);
	nvmep_recover_uevent(ctrl, "ready", waiting);
	mutex_unlock(&peers->lock);
	wake_up_all(&ctrl->state_wait);
	if (waiting)
		dev_info(ctrl->dev,
			 "%u peer queue pairs wait for re-arm by their owners\n",
			 waiting);
}

/* Have the namespaces been scanned, or is there no reason to wait for it? */
static bool nvmep_recover_scanned(const struct nvmep_ctrl *ctrl)
{
	return READ_ONCE(ctrl->peers->ready) == nvmep_ctrl_generation(ctrl) ||
	       nvmep_ctrl_state(ctrl) != NVMEP_CTRL_LIVE;
}

/**
 * nvmep_recover_wait_scanned() - wait for the scan that follows each start
 * @ctrl: the controller
 *
 * Bounded, as the caller holds ioctl_rwsem, for which unbinding waits.
 *
 * Return: 0; -EAGAIN if the namespaces have not been scanned yet; -ERESTARTSYS
 * for a fatal signal.
 */
int nvmep_recover_wait_scanned(struct nvmep_ctrl *ctrl)
{
	long ret = wait_event_killable_timeout(ctrl->state_wait,
					       nvmep_recover_scanned(ctrl),
					       NVMEP_SCAN_WAIT);

	if (ret < 0)
		return ret;
	return ret ? 0 : -EAGAIN;
}

/*
 * Restores doorbells before the queues exist, and only if the controller is
 * LIVE.  No race with revocation: code that turns memory decoding off first
 * changes the state of the controller, then marks each queue pair
 * (doorbells_revoked) under this lock, then revokes its doorbells.
 */
static int nvmep_recover_prepare_rearm(struct nvmep_qp *qp, u32 losses)
{
	struct nvmep_ctrl *ctrl = qp->ctrl;
	struct nvmep_peers *peers = ctrl->peers;

	lockdep_assert_held(&peers->lock);

	if (!nvmep_qp_rearmable(qp))
		return nvmep_qp_usable(qp) ? -EALREADY : -ESHUTDOWN;
	if (losses != qp->losses)
		return -ESTALE;
	if (!nvmep_recover_qp_ready(qp))
		return -EAGAIN;
	if (qp->doorbells_revoked)
		nvmep_exports_restore_doorbells(&qp->exports);
	qp->doorbells_revoked = false;
	nvmep_qp_set_state(qp, NVMEP_QP_REARMING, qp->reason);
	return 0;
}

/*
 * May a queue pair whose queues were just created become LIVE?  Not once its
 * doorbells are revoked: the controller is about to be stopped.
 */
static int nvmep_recover_may_go_live(const struct nvmep_qp *qp)
{
	lockdep_assert_held(&qp->ctrl->peers->lock);

	if (!nvmep_qp_usable(qp))
		return -ESHUTDOWN;
	/* A namespace has changed: one that is NEW may be created again. */
	if (qp->fail_on_stop)
		return qp->state == NVMEP_QP_REARMING ? -ESHUTDOWN : -EAGAIN;
	if (qp->doorbells_revoked ||
	    qp->ctrl->peers->ready != qp->created ||
	    nvmep_ctrl_generation(qp->ctrl) != qp->created)
		return -EAGAIN;
	return 0;
}

/**
 * nvmep_recover_go_live() - report a queue pair as LIVE
 * @qp: NEW or REARMING, with queues on the controller; the caller holds its
 *	lock, and deletes the queues after an error
 *
 * A reset changes the generation before it marks LIVE queue pairs under
 * peers->lock.
 *
 * Return: 0; -EAGAIN if the controller was stopped or is about to be, or a
 * namespace changed, since their creation; -ESHUTDOWN if the queue pair has
 * failed, or a namespace changed during a re-arm.
 */
int nvmep_recover_go_live(struct nvmep_qp *qp)
{
	struct nvmep_peers *peers = qp->ctrl->peers;
	int err;

	lockdep_assert_held(&qp->lock);

	mutex_lock(&peers->lock);
	err = nvmep_recover_may_go_live(qp);
	if (!err) {
		qp->generation = qp->created;
		/* Stores from before the peer finds it LIVE have no effect. */
		nvmep_relay_reset(qp);
		if (qp->tenant)
			nvmep_tenant_reset(qp->tenant);
		nvmep_qp_set_state(qp, NVMEP_QP_LIVE,
				   NVME_PEER_QP_REASON_NONE);
		nvmep_relay_open(qp);
	}
	mutex_unlock(&peers->lock);
	return err;
}

/*
 * The re-arm did not succeed and the queues are off the controller.  The queue
 * pair may have failed meanwhile.
 */
static void nvmep_recover_undo_rearm(struct nvmep_qp *qp)
{
	struct nvmep_peers *peers = qp->ctrl->peers;

	mutex_lock(&peers->lock);
	if (qp->state == NVMEP_QP_REARMING)
		nvmep_recover_set_lost(qp, qp->reason);
	mutex_unlock(&peers->lock);
}

/*
 * A peer writes @seq before @quiesce; xchg() orders the reads here.  A request
 * that follows at once may be acknowledged too early: it is consumed next.
 */
static bool nvmep_recover_consume(struct nvme_peer_control *control)
{
	if (!xchg(&control->quiesce, 0))
		return false;
	WRITE_ONCE(control->ack, READ_ONCE(control->seq));
	return true;
}

static int nvmep_recover_rearm_locked(struct nvmep_qp *qp, u32 losses)
{
	struct nvmep_peers *peers = qp->ctrl->peers;
	int err;

	lockdep_assert_held(&qp->lock);

	mutex_lock(&peers->lock);
	err = nvmep_recover_prepare_rearm(qp, losses);
	mutex_unlock(&peers->lock);
	if (err)
		return err;
	nvmep_ring_clear(&qp->sq);
	nvmep_ring_clear(&qp->cq);
	/* The loss has answered a request from before it. */
	nvmep_recover_consume(nvmep_qp_control(qp));
	err = nvmep_qp_start(qp);
	if (err)
		nvmep_recover_undo_rearm(qp);
	else
		nvmep_qp_wake(qp);
	return err;
}

/**
 * nvmep_recover_rearm() - make a quiesced queue pair LIVE again
 * @qp: the queue pair; no peer uses its old entries
 * @losses: number of losses that the owner has handled
 *
 * Return: 0, or an error of struct nvme_peer_qp_rearm.  After an error it is
 * QUIESCED, or has ended.
 */
int nvmep_recover_rearm(struct nvmep_qp *qp, u32 losses)
{
	int err;

	mutex_lock(&qp->lock);
	err = nvmep_recover_rearm_locked(qp, losses);
	mutex_unlock(&qp->lock);
	return err;
}

/* --- health poll --------------------------------------------------------- */

/*
 * Deletes the queues of a queue pair whose peer requested recovery; the owner
 * may re-arm them.  Resets the controller if it does not delete them.
 */
static void nvmep_recover_quiesce(struct nvmep_qp *qp)
{
	struct nvmep_peers *peers = qp->ctrl->peers;

	lockdep_assert_held(&qp->lock);

	nvmep_qp_delete_queues(qp);
	mutex_lock(&peers->lock);
	if (qp->state == NVMEP_QP_LIVE) {
		nvmep_recover_set_lost(qp, NVME_PEER_QP_REASON_REQUEST);
		/* Otherwise the next scan, or the last work, reports it. */
		if (nvmep_qp_rearmable(qp) && nvmep_recover_qp_ready(qp))
			nvmep_qp_add_event(qp, NVME_PEER_EVENT_READY, 0);
		/* A tenant without privileges may repeat it without end. */
		if (!nvmep_qp_mediated(qp))
			nvmep_recover_uevent(qp->ctrl, "peer-gave-up", 1);
	}
	mutex_unlock(&peers->lock);
}

/*
 * Consumes the request, unless the queue pair was lost since it was seen.  It
 * was LIVE then, and with the same number of losses it still is.
 */
static bool nvmep_recover_take_request(struct nvmep_qp *qp)
{
	struct nvmep_peers *peers = qp->ctrl->peers;
	bool take;

	mutex_lock(&peers->lock);
	take = qp->losses == qp->request_losses &&
	       nvmep_recover_consume(nvmep_qp_control(qp));
	mutex_unlock(&peers->lock);
	return take;
}

/* A doorbell had a bad value, which has closed the relay. */
static void nvmep_recover_fail_bad(struct nvmep_qp *qp)
{
	struct nvmep_peers *peers = qp->ctrl->peers;

	lockdep_assert_held(&qp->lock);

	nvmep_qp_delete_queues(qp);
	mutex_lock(&peers->lock);
	if (qp->state == NVMEP_QP_LIVE) {
		dev_warn_ratelimited(qp->ctrl->dev,
				     "queue pair %u: doorbell value %u is not an entry of its ring: failing it\n",
				     qp->qid, READ_ONCE(qp->relay.bad_value));
		nvmep_qp_fail(qp, NVME_PEER_QP_REASON_DOORBELL);
	}
	mutex_unlock(&peers->lock);
}

static void nvmep_recover_handle_request(struct nvmep_qp *qp)
{
	lockdep_assert_held(&qp->lock);

	if (READ_ONCE(qp->relay.bad)) {
		nvmep_recover_fail_bad(qp);
		return;
	}
	if (!nvmep_recover_take_request(qp))
		return;
	dev_warn_ratelimited(qp->ctrl->dev,
			     "queue pair %u: peer requested recovery: deleting its queues\n",
			     qp->qid);
	nvmep_recover_quiesce(qp);
}

/* One work for each queue pair: a slow deletion delays no other one. */
static void nvmep_recover_request_work(struct work_struct *work)
{
	struct nvmep_qp *qp = container_of(work, struct nvmep_qp, request_work);

	mutex_lock(&qp->lock);
	nvmep_recover_handle_request(qp);
	mutex_unlock(&qp->lock);
	nvmep_qp_wake(qp);
	nvmep_qp_put(qp);
}

/**
 * nvmep_recover_init() - prepare the recovery of a queue pair
 * @qp: the queue pair
 */
void nvmep_recover_init(struct nvmep_qp *qp)
{
	INIT_WORK(&qp->request_work, nvmep_recover_request_work);
}

/* The work has a reference.  If it is queued already, it sees this request. */
static void nvmep_recover_queue_request(struct nvmep_qp *qp)
{
	lockdep_assert_held(&qp->ctrl->peers->lock);

	qp->request_losses = qp->losses;
	kref_get(&qp->ref);
	if (!queue_work(qp->tenant ? nvmep_tenant_wq : nvmep_recovery_wq,
			&qp->request_work))
		nvmep_qp_put(qp);
}

static void nvmep_recover_check_requests(struct nvmep_ctrl *ctrl)
{
	struct nvmep_peers *peers = ctrl->peers;
	struct nvmep_qp *qp;

	mutex_lock(&peers->lock);
	list_for_each_entry(qp, &peers->qps, node)
		if (qp->state == NVMEP_QP_LIVE &&
		    (READ_ONCE(nvmep_qp_control(qp)->quiesce) ||
		     READ_ONCE(qp->relay.bad)))
			nvmep_recover_queue_request(qp);
	mutex_unlock(&peers->lock);
}

/*
 * Reads one register, and the control page of each LIVE queue pair.  Waits for
 * no admin command.  Only if the controller has failed, it waits for the stop.
 */
static void nvmep_health_poll(struct nvmep_ctrl *ctrl)
{
	u32 generation = nvmep_ctrl_generation(ctrl);

	/* Read the generation first: a stop after this check changes it. */
	smp_rmb();
	if (nvmep_ctrl_state(ctrl) != NVMEP_CTRL_LIVE ||
	    pci_channel_offline(ctrl->pdev))
		return;
	if (nvmep_ctrl_csts_failed(ctrl)) {
		dev_err(ctrl->dev,
			"controller failed with peer queue pairs on it: resetting\n");
		nvmep_ctrl_ensure_stopped(ctrl, generation);
		return;
	}
	nvmep_recover_check_requests(ctrl);
}

/* A 0 to 1 transition after this check queues the work again. */
static void nvmep_health_poll_work(struct work_struct *work)
{
	struct nvmep_peers *peers = container_of(to_delayed_work(work),
						 struct nvmep_peers,
						 health_poll);

	nvmep_health_poll(peers->ctrl);
	if (READ_ONCE(peers->live))
		nvmep_health_poll_start(peers);
}

/**
 * nvmep_health_poll_init() - prepare the health poll
 * @peers: of the controller, zeroed
 *
 * A controller that only peers use has no command of the CPU that could time
 * out.  The poll detects its failure instead.
 */
void nvmep_health_poll_init(struct nvmep_peers *peers)
{
	INIT_DELAYED_WORK(&peers->health_poll, nvmep_health_poll_work);
}

/**
 * nvmep_recover_uevents_init() - prepare the sending of uevents
 * @peers: of the controller, zeroed
 */
void nvmep_recover_uevents_init(struct nvmep_peers *peers)
{
	INIT_WORK(&peers->uevent_work, nvmep_recover_uevent_work);
}

/**
 * nvmep_health_poll_stop() - cancel the health poll and wait for it
 * @peers: of the controller, without live queue pairs; none can become live
 */
void nvmep_health_poll_stop(struct nvmep_peers *peers)
{
	cancel_delayed_work_sync(&peers->health_poll);
}
