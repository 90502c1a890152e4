// SPDX-License-Identifier: GPL-2.0-only
/*
 * Recovery: a controller that stops loses every queue pair, and a queue pair that
 * can come back does.
 *
 * It comes back when its owner says so, not by itself.  A peer that has not looked
 * yet goes on from the tail it had: the controller would execute what the ring
 * still holds from before, writes among it, into memory that may serve something
 * else by now.  So the queue pair is QUIESCED, off the controller, until its owner
 * has seen every peer let go of the old entries, and re-arms it:
 *
 *	LIVE		the controller stops, or a peer asks for it
 *	QUIESCED	same identifier, rings, addresses and dma-bufs; doorbells
 *			that were withdrawn stay away
 *	LIVE		NVME_PEER_QP_REARM: rings in host memory are cleared,
 *			doorbells admitted again, the queues created
 *	FAILED		it cannot come back: fewer queues are granted now, the
 *			controller was given up, or a namespace is another one
 *
 * Nothing is re-armed before the namespaces of the restarted controller were
 * looked at: a queue pair knows the blocks of those it had.
 */
#include <linux/kobject.h>
#include <linux/mm.h>
#include <linux/pci.h>

#include "core/ctrl.h"
#include "core/pair.h"
#include "core/qids.h"
#include "core/registers.h"
#include "core/stop.h"
#include "hostmem.h"
#include "peers.h"
#include "qp.h"
#include "recover.h"
#include "ring.h"
#include "take.h"

/* --- the administrator is told ------------------------------------------- */

/* A uevent of the controller's node; `nvme-peer events` shows it. */
static void nvmep_recover_tell(struct nvmep_ctrl *ctrl, const char *event,
			       unsigned int queue_pairs)
{
	char event_text[40], generation[40], count[40];
	char *environment[4] = { event_text, generation, count, NULL };

	if (!queue_pairs)
		return;
	snprintf(event_text, sizeof(event_text), "NVME_PEER_EVENT=%s", event);
	snprintf(generation, sizeof(generation), "NVME_PEER_GENERATION=%u",
		 nvmep_ctrl_generation(ctrl));
	snprintf(count, sizeof(count), "NVME_PEER_QUEUE_PAIRS=%u", queue_pairs);
	kobject_uevent_env(&ctrl->device.kobj, KOBJ_CHANGE, environment);
}

/* --- the controller stops ------------------------------------------------ */

/* Returns whether it was live. */
static bool nvmep_recover_lose(struct nvmep_qp *qp)
{
	bool live = qp->state == NVMEP_QP_LIVE;

	if (live)
		nvmep_qp_set_state(qp, qp->outdated ? NVMEP_QP_FAILED :
						      NVMEP_QP_QUIESCED,
				   qp->outdated ? ESTALE : EIO);
	else
		nvmep_qp_write_status(qp);
	nvmep_qp_wake(qp);
	return live;
}

/**
 * nvmep_recover_stopped() - the controller has stopped and lost every queue
 * @ctrl: the controller; its generation has moved
 *
 * Called by the reset work: no admin command, no waiting for peers.  Every
 * status page learns the new generation, also that of a queue pair which ended
 * before.
 */
void nvmep_recover_stopped(struct nvmep_ctrl *ctrl)
{
	struct nvmep_peers *peers = ctrl->peers;
	unsigned int lost = 0;
	struct nvmep_qp *qp;

	mutex_lock(&peers->lock);
	list_for_each_entry(qp, &peers->qps, node)
		lost += nvmep_recover_lose(qp);
	mutex_unlock(&peers->lock);
	nvmep_recover_tell(ctrl, "stopped", lost);
}

static void nvmep_recover_fail(struct nvmep_qp *qp, u32 reason)
{
	nvmep_qp_set_state(qp, NVMEP_QP_FAILED, reason);
	nvmep_qp_wake(qp);
}

/**
 * nvmep_recover_outdated() - a namespace is not what it was when pairs were made
 * @ctrl: the controller, which the caller stops next
 *
 * None of them comes back.
 */
void nvmep_recover_outdated(struct nvmep_ctrl *ctrl)
{
	struct nvmep_peers *peers = ctrl->peers;
	struct nvmep_qp *qp;

	mutex_lock(&peers->lock);
	list_for_each_entry(qp, &peers->qps, node) {
		qp->outdated = true;
		if (qp->state == NVMEP_QP_QUIESCED)
			nvmep_recover_fail(qp, ESTALE);
	}
	mutex_unlock(&peers->lock);
}

/**
 * nvmep_recover_given_up() - the controller will not come back
 * @ctrl: the controller, stopped; nvmep_recover_stopped() knows
 */
void nvmep_recover_given_up(struct nvmep_ctrl *ctrl)
{
	struct nvmep_peers *peers = ctrl->peers;
	unsigned int failed = 0;
	struct nvmep_qp *qp;

	mutex_lock(&peers->lock);
	list_for_each_entry(qp, &peers->qps, node) {
		if (qp->state != NVMEP_QP_QUIESCED)
			continue;
		nvmep_recover_fail(qp, ENODEV);
		failed++;
	}
	mutex_unlock(&peers->lock);
	nvmep_recover_tell(ctrl, "given-up", failed);
}

/* --- and is back --------------------------------------------------------- */

/* Returns how many owners may re-arm now. */
static unsigned int nvmep_recover_admit_all(struct nvmep_ctrl *ctrl,
					    u32 generation)
{
	struct nvmep_peers *peers = ctrl->peers;
	unsigned int waiting = 0;
	struct nvmep_qp *qp;

	lockdep_assert_held(&peers->lock);

	if (nvmep_ctrl_generation(ctrl) != generation ||
	    peers->ready == generation)
		return 0;
	peers->ready = generation;
	list_for_each_entry(qp, &peers->qps, node) {
		if (qp->state != NVMEP_QP_QUIESCED)
			continue;
		if (nvmep_qid_granted(ctrl, qp->qid)) {
			nvmep_qp_record(qp, NVME_PEER_EVENT_READY);
			nvmep_qp_wake(qp);
			waiting++;
		} else {
			nvmep_recover_fail(qp, ENOSPC);
		}
	}
	return waiting;
}

/**
 * nvmep_recover_restarted() - the controller works again, its namespaces are known
 * @ctrl: the controller
 * @generation: in which they were looked at
 */
void nvmep_recover_restarted(struct nvmep_ctrl *ctrl, u32 generation)
{
	struct nvmep_peers *peers = ctrl->peers;
	unsigned int waiting;

	mutex_lock(&peers->lock);
	waiting = nvmep_recover_admit_all(ctrl, generation);
	mutex_unlock(&peers->lock);
	if (waiting)
		dev_info(ctrl->dev,
			 "%u queue pairs of peers wait for their owners to re-arm them\n",
			 waiting);
	nvmep_recover_tell(ctrl, "ready", waiting);
}

/*
 * Doorbells are given back before the queues exist, and only to a controller that
 * is LIVE: whoever turns memory decoding off changes that first and then looks,
 * under this lock, whom to take them from.
 */
static int nvmep_recover_admit(struct nvmep_qp *qp, u32 losses)
{
	struct nvmep_ctrl *ctrl = qp->ctrl;
	struct nvmep_peers *peers = ctrl->peers;

	lockdep_assert_held(&peers->lock);

	if (qp->state != NVMEP_QP_QUIESCED)
		return qp->state < NVMEP_QP_QUIESCED ? -EALREADY : -ESHUTDOWN;
	if (losses != qp->losses)
		return -ESTALE;
	if (nvmep_ctrl_state(ctrl) != NVMEP_CTRL_LIVE ||
	    peers->ready != nvmep_ctrl_generation(ctrl))
		return -EAGAIN;
	if (qp->exports.withdrawn)
		nvmep_exports_reopen(&qp->exports);
	qp->exports.withdrawn = false;
	return 0;
}

static struct nvme_peer_request *nvmep_qp_request(const struct nvmep_qp *qp)
{
	return page_address(qp->request_page->pages[0]);
}

static int nvmep_recover_rearm_locked(struct nvmep_qp *qp, u32 losses)
{
	struct nvmep_peers *peers = qp->ctrl->peers;
	int err;

	lockdep_assert_held(&qp->lock);

	mutex_lock(&peers->lock);
	err = nvmep_recover_admit(qp, losses);
	mutex_unlock(&peers->lock);
	if (err)
		return err;
	nvmep_ring_clear(&qp->sq);
	nvmep_ring_clear(&qp->cq);
	/* Asked for before the loss, and not taken: that is done with. */
	WRITE_ONCE(nvmep_qp_request(qp)->quiesce, 0);
	return nvmep_qp_start(qp);
}

/**
 * nvmep_recover_rearm() - make a quiesced queue pair live again
 * @qp: the queue pair, whose peers use none of its entries
 * @losses: which loss of its entries its owner has dealt with
 *
 * Return: 0, or as struct nvme_peer_qp_rearm says; it is QUIESCED still, or has
 * ended.
 */
int nvmep_recover_rearm(struct nvmep_qp *qp, u32 losses)
{
	int err;

	mutex_lock(&qp->lock);
	err = nvmep_recover_rearm_locked(qp, losses);
	mutex_unlock(&qp->lock);
	return err;
}

/* --- the watch ----------------------------------------------------------- */

/* Takes the queues off the controller; it is stopped if it does not obey. */
static void nvmep_recover_quiesce(struct nvmep_qp *qp, u32 reason)
{
	struct nvmep_peers *peers = qp->ctrl->peers;

	mutex_lock(&qp->lock);
	if (READ_ONCE(qp->state) == NVMEP_QP_LIVE)
		nvmep_queue_pair_delete(qp->ctrl, qp->qid, qp->generation);
	mutex_lock(&peers->lock);
	if (qp->state == NVMEP_QP_LIVE)
		nvmep_qp_set_state(qp, NVMEP_QP_QUIESCED, reason);
	mutex_unlock(&peers->lock);
	mutex_unlock(&qp->lock);
	nvmep_qp_wake(qp);
}

/* A live one whose peer asks for help; asked and answered once. */
static void *nvmep_recover_take_asking(struct list_head *node,
				       const void *unused)
{
	struct nvmep_qp *qp = list_entry(node, struct nvmep_qp, node);

	if (qp->state != NVMEP_QP_LIVE || !xchg(&nvmep_qp_request(qp)->quiesce, 0))
		return NULL;
	kref_get(&qp->ref);
	return qp;
}

static void nvmep_recover_answer(struct nvmep_ctrl *ctrl)
{
	struct nvmep_peers *peers = ctrl->peers;
	struct nvmep_qp *qp;

	while ((qp = nvmep_take_first(&peers->lock, &peers->qps,
				      nvmep_recover_take_asking, NULL))) {
		dev_warn_ratelimited(ctrl->dev,
				     "queue pair %u: its peer waits in vain: taking it off the controller\n",
				     qp->qid);
		nvmep_recover_quiesce(qp, ETIMEDOUT);
		nvmep_recover_tell(ctrl, "peer-gave-up", 1);
		nvmep_qp_put(qp);
	}
}

/**
 * nvmep_recover_look() - see whether the controller and its peers are well
 * @watch: of the controller's peers
 *
 * Costs one read of a register and a word of memory for each queue pair.
 */
void nvmep_recover_look(struct nvmep_watch *watch)
{
	struct nvmep_peers *peers = container_of(watch, struct nvmep_peers,
						 watch);
	struct nvmep_ctrl *ctrl = peers->ctrl;
	u32 generation = nvmep_ctrl_generation(ctrl);

	/* In this order: a stop after the question moves the generation. */
	smp_rmb();
	if (nvmep_ctrl_state(ctrl) != NVMEP_CTRL_LIVE ||
	    pci_channel_offline(ctrl->pdev))
		return;
	if (nvmep_ctrl_failed(ctrl)) {
		dev_err(ctrl->dev,
			"controller failed with queue pairs of peers on it: resetting\n");
		nvmep_ctrl_fence(ctrl, generation);
		return;
	}
	nvmep_recover_answer(ctrl);
}
