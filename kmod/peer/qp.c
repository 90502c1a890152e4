// SPDX-License-Identifier: GPL-2.0-only
/*
 * Peer queue pairs: how one begins, and the several ways in which it ends.
 *
 * A queue pair ends when its file is closed, when the exporter of a buffer
 * that it may access wants the memory back, and when the controller is
 * unbound.  All three go the same way, by two verbs, each of which happens
 * once:
 *
 *  stop: it leaves the controller.  No new dma-bufs or users of them; Delete
 *	SQ, Delete CQ (or the controller is known to have stopped); the status
 *	page says GONE; rings unmapped.
 *  revoke: the peers leave it.  It is stopped if it was not; then they lose the
 *	doorbells: PTEs zapped, importers told, their fences and mappings waited
 *	for.
 *
 * A controller reset is different: the controller has already lost the queues,
 * nobody can be waited for, and the file is still its owner's.  The queue pair
 * becomes QUIESCED or FAILED (recover.c) and keeps its identifier until it is
 * closed, so that no other queue pair can be hit by a late doorbell.
 *
 * Reasons in the status page: EIO, the controller was reset; ETIMEDOUT, a peer
 * waited in vain; ENOSPC, the controller grants fewer queues than before; ESTALE,
 * an exporter took memory back or a namespace is another one; ENODEV, the
 * controller is gone; ESHUTDOWN, the file was closed.
 */
#include <linux/ktime.h>
#include <linux/mm.h>
#include <linux/poll.h>
#include <linux/slab.h>

#include "core/ctrl.h"
#include "core/pair.h"
#include "core/qids.h"
#include "hostmem.h"
#include "import.h"
#include "peer_file.h"
#include "peers.h"
#include "qp.h"
#include "take.h"
#include "trace.h"

#define NVMEP_SQ_ENTRY_SIZE	64
#define NVMEP_CQ_ENTRY_SIZE	16

/* How long the users of doorbells may take to let go of them. */
#define NVMEP_REVOKE_TIMEOUT	(5 * HZ)

/* --- state --------------------------------------------------------------- */

static const enum nvme_peer_qp_state nvmep_qp_user_states[] = {
	[NVMEP_QP_NEW] = NVME_PEER_QP_QUIESCED,
	[NVMEP_QP_LIVE] = NVME_PEER_QP_LIVE,
	[NVMEP_QP_QUIESCED] = NVME_PEER_QP_QUIESCED,
	[NVMEP_QP_FAILED] = NVME_PEER_QP_FAILED,
	[NVMEP_QP_STOPPED] = NVME_PEER_QP_GONE,
	[NVMEP_QP_REVOKED] = NVME_PEER_QP_GONE,
};

/**
 * nvmep_qp_user_state() - what user space calls its state
 * @qp: the queue pair
 *
 * Return: the state; it may have changed when the caller looks at it.
 */
enum nvme_peer_qp_state nvmep_qp_user_state(const struct nvmep_qp *qp)
{
	return nvmep_qp_user_states[READ_ONCE(qp->state)];
}

/**
 * nvmep_qp_usable() - tell whether it works or may work again
 * @qp: the queue pair
 *
 * Return: false once it has failed or was stopped.
 */
bool nvmep_qp_usable(const struct nvmep_qp *qp)
{
	return READ_ONCE(qp->state) <= NVMEP_QP_QUIESCED;
}

static struct nvme_peer_status *nvmep_qp_status(struct nvmep_qp *qp)
{
	return page_address(qp->status_page->pages[0]);
}

static void nvmep_store_le32(__u32 *field, u32 value)
{
	WRITE_ONCE(*field, (__force __u32)cpu_to_le32(value));
}

/**
 * nvmep_qp_write_status() - tell the peers
 * @qp: the queue pair; peers->lock is held
 *
 * Peers read the page at any time: the state is written last.
 */
void nvmep_qp_write_status(struct nvmep_qp *qp)
{
	struct nvme_peer_status *status = nvmep_qp_status(qp);

	lockdep_assert_held(&qp->ctrl->peers->lock);

	nvmep_store_le32(&status->generation, nvmep_ctrl_generation(qp->ctrl));
	nvmep_store_le32(&status->reason, qp->reason);
	dma_wmb();
	nvmep_store_le32(&status->state, nvmep_qp_user_state(qp));
}

static void nvmep_qp_init_status(struct nvmep_qp *qp)
{
	struct nvme_peer_status *status = nvmep_qp_status(qp);

	nvmep_store_le32(&status->magic, NVME_PEER_STATUS_MAGIC);
	nvmep_store_le32(&status->version, 1);
	nvmep_store_le32(&status->qid, qp->qid);
	nvmep_store_le32(&status->size, PAGE_SIZE);
}

/**
 * nvmep_qp_record() - keep for its owner what happened
 * @qp: the queue pair, its state as it is then; peers->lock is held
 * @type: what
 */
void nvmep_qp_record(struct nvmep_qp *qp, enum nvme_peer_event_type type)
{
	const struct nvme_peer_event event = {
		.size = sizeof(event),
		.type = type,
		.time = ktime_get_ns(),
		.generation = nvmep_ctrl_generation(qp->ctrl),
		.state = nvmep_qp_user_state(qp),
		.reason = qp->reason,
	};

	lockdep_assert_held(&qp->ctrl->peers->lock);
	nvmep_records_add(&qp->records, &event);
}

/**
 * nvmep_qp_set_state() - the only writer of the state and its reason
 * @qp: the queue pair; peers->lock is held
 * @state: the new state
 * @reason: why it is not LIVE, a positive errno, else 0
 */
void nvmep_qp_set_state(struct nvmep_qp *qp, enum nvmep_qp_state state,
			u32 reason)
{
	struct nvmep_peers *peers = qp->ctrl->peers;
	int live = (state == NVMEP_QP_LIVE) - (qp->state == NVMEP_QP_LIVE);
	/* Creation is no news to who asked for it. */
	bool news = qp->state != NVMEP_QP_NEW &&
		    nvmep_qp_user_states[state] != nvmep_qp_user_state(qp);

	lockdep_assert_held(&peers->lock);

	if (live)
		nvmep_watch_count(&peers->watch, live);
	if (live < 0)
		qp->losses++;
	WRITE_ONCE(qp->state, state);
	qp->reason = reason;
	if (state >= NVMEP_QP_FAILED)
		list_del_init(&qp->life.node);
	/* One that failed early has none. */
	if (qp->status_page)
		nvmep_qp_write_status(qp);
	trace_nvmep_qp_state(qp->ctrl->instance, qp->qid,
			     nvmep_qp_user_state(qp), reason);
	if (news)
		nvmep_qp_record(qp, NVME_PEER_EVENT_STATE);
}

/**
 * nvmep_qp_wake() - its state has changed: wake who waits for that
 * @qp: the queue pair
 */
void nvmep_qp_wake(struct nvmep_qp *qp)
{
	wake_up_interruptible_poll(&qp->waiters, EPOLLPRI | EPOLLHUP);
}

/* --- memory -------------------------------------------------------------- */

static void nvmep_qp_release_qid(struct nvmep_qp *qp)
{
	if (qp->qid_held)
		nvmep_qid_free(qp->ctrl, qp->qid);
	qp->qid_held = false;
}

static void nvmep_qp_free(struct kref *ref)
{
	struct nvmep_qp *qp = container_of(ref, struct nvmep_qp, ref);
	struct nvmep_ctrl *ctrl = qp->ctrl;

	nvmep_qp_release_qid(qp);
	nvmep_host_pages_free(qp->sq.host);
	nvmep_host_pages_free(qp->cq.host);
	nvmep_host_pages_free(qp->status_page);
	nvmep_host_pages_free(qp->request_page);
	nvmep_objects_add(&ctrl->peers->objects, NVMEP_OBJECT_QPS, -1);
	kfree(qp);
	nvmep_ctrl_put(ctrl);
}

/**
 * nvmep_qp_put() - drop a reference
 * @qp: the queue pair
 */
void nvmep_qp_put(struct nvmep_qp *qp)
{
	kref_put(&qp->ref, nvmep_qp_free);
}

static struct nvmep_qp *nvmep_qp_alloc(struct nvmep_peer_file *owner,
				       const struct nvme_peer_qp_create *cmd)
{
	struct nvmep_qp *qp = kzalloc(sizeof(*qp), GFP_KERNEL_ACCOUNT);

	if (!qp)
		return NULL;

	kref_init(&qp->ref);
	qp->owner = nvmep_peer_file_get(owner);
	qp->ctrl = nvmep_ctrl_get(owner->ctrl);
	INIT_LIST_HEAD(&qp->node);
	INIT_LIST_HEAD(&qp->life.node);
	qp->mode = cmd->mode;
	qp->allow_sleep = cmd->flags & NVME_PEER_QP_ALLOW_SLEEP;
	qp->sq_entries = cmd->sq_entries;
	qp->cq_entries = cmd->cq_entries;
	qp->sq.bytes = (size_t)cmd->sq_entries * NVMEP_SQ_ENTRY_SIZE;
	qp->sq.offset = cmd->sq_offset;
	qp->cq.bytes = (size_t)cmd->cq_entries * NVMEP_CQ_ENTRY_SIZE;
	qp->cq.offset = cmd->cq_offset;
	mutex_init(&qp->lock);
	init_waitqueue_head(&qp->waiters);
	nvmep_records_init(&qp->records);
	nvmep_exports_init(&qp->exports, qp->ctrl, &qp->ref, nvmep_qp_free);
	nvmep_objects_add(&qp->ctrl->peers->objects, NVMEP_OBJECT_QPS, 1);
	return qp;
}

/* --- the end ------------------------------------------------------------- */

static void nvmep_qp_unclaim(struct nvmep_ring *ring)
{
	if (ring->buf)
		nvmep_buf_unclaim(ring->buf);
	ring->buf = NULL;
}

static void nvmep_qp_set_stopped(struct nvmep_qp *qp, int reason)
{
	struct nvmep_peers *peers = qp->ctrl->peers;

	mutex_lock(&peers->lock);
	nvmep_qp_set_state(qp, NVMEP_QP_STOPPED, reason);
	nvmep_qp_unclaim(&qp->sq);
	nvmep_qp_unclaim(&qp->cq);
	mutex_unlock(&peers->lock);
	nvmep_qp_wake(qp);
}

/*
 * nvmep_queue_pair_delete() comes back only when the controller cannot touch
 * the rings or any data of theirs, so everything below it is safe.  One that
 * is not LIVE never was on the controller, or went with an earlier stop of it.
 */
static void nvmep_qp_stop_locked(struct nvmep_qp *qp, int reason)
{
	enum nvmep_qp_state state = READ_ONCE(qp->state);

	lockdep_assert_held(&qp->lock);

	if (state >= NVMEP_QP_STOPPED)
		return;
	nvmep_exports_close(&qp->exports);
	if (state == NVMEP_QP_LIVE)
		nvmep_queue_pair_delete(qp->ctrl, qp->qid, qp->generation);
	nvmep_qp_set_stopped(qp, reason);
	nvmep_ring_unmap(&qp->sq, qp->ctrl);
	nvmep_ring_unmap(&qp->cq, qp->ctrl);
}

static void nvmep_qp_stop(struct nvmep_qp *qp, int reason)
{
	mutex_lock(&qp->lock);
	nvmep_qp_stop_locked(qp, reason);
	mutex_unlock(&qp->lock);
}

/* It leaves the controller, and the peers are told to leave it. */
static void nvmep_qp_tell(struct nvmep_qp *qp, int reason)
{
	mutex_lock(&qp->lock);
	nvmep_qp_stop_locked(qp, reason);
	nvmep_exports_revoke(&qp->exports);
	mutex_unlock(&qp->lock);
}

static void nvmep_qp_revoke_locked(struct nvmep_qp *qp, unsigned long deadline)
{
	struct nvmep_peers *peers = qp->ctrl->peers;

	lockdep_assert_held(&qp->lock);

	if (READ_ONCE(qp->state) == NVMEP_QP_REVOKED)
		return;
	nvmep_exports_revoke(&qp->exports);
	nvmep_exports_settle(&qp->exports, deadline);
	nvmep_qp_release_qid(qp);

	mutex_lock(&peers->lock);
	nvmep_qp_set_state(qp, NVMEP_QP_REVOKED, qp->reason);
	mutex_unlock(&peers->lock);
}

/*
 * On return the controller and the peers are off it.  @reason, a positive
 * errno, is for the status page; the first one counts.  @deadline, in jiffies, is
 * for those who have to let go.
 */
static void nvmep_qp_revoke(struct nvmep_qp *qp, int reason,
			    unsigned long deadline)
{
	mutex_lock(&qp->lock);
	nvmep_qp_stop_locked(qp, reason);
	nvmep_qp_revoke_locked(qp, deadline);
	mutex_unlock(&qp->lock);
}

/**
 * nvmep_qp_release() - revoke a queue pair and give up its file's reference
 * @qp: the queue pair
 */
void nvmep_qp_release(struct nvmep_qp *qp)
{
	struct nvmep_peers *peers = qp->ctrl->peers;
	struct nvmep_peer_file *owner = qp->owner;

	nvmep_qp_tell(qp, ESHUTDOWN);
	nvmep_qp_revoke(qp, ESHUTDOWN, jiffies + NVMEP_REVOKE_TIMEOUT);

	mutex_lock(&peers->lock);
	list_del_init(&qp->node);
	mutex_unlock(&peers->lock);

	/* Its commands are over: now the buffers may go. */
	nvmep_peer_file_put(owner);
	nvmep_bufs_release_kept(peers);
	nvmep_qp_put(qp);
}

static bool nvmep_qp_uses(const struct nvmep_qp *qp, const struct nvmep_buf *buf)
{
	if (qp->sq.buf == buf || qp->cq.buf == buf)
		return true;
	return buf->exposed;
}

static void *nvmep_qp_take_user(struct list_head *node, const void *buf)
{
	struct nvmep_qp *qp = list_entry(node, struct nvmep_qp, node);

	if (qp->state >= NVMEP_QP_STOPPED || !nvmep_qp_uses(qp, buf))
		return NULL;
	kref_get(&qp->ref);
	return qp;
}

/**
 * nvmep_qp_stop_users() - take the controller away from a buffer
 * @buf: the buffer, marked invalid
 *
 * On return no command of a queue pair that may know the buffer is on the
 * controller.  The queue pairs still have to be revoked.
 */
void nvmep_qp_stop_users(const struct nvmep_buf *buf)
{
	struct nvmep_peers *peers = buf->ctrl->peers;
	struct nvmep_qp *qp;

	while ((qp = nvmep_take_first(&peers->lock, &peers->qps,
				      nvmep_qp_take_user, buf))) {
		nvmep_qp_stop(qp, ESTALE);
		nvmep_qp_put(qp);
	}
}

/* One that has come as far as *@from, but was not revoked. */
static void *nvmep_qp_take_from(struct list_head *node, const void *from)
{
	struct nvmep_qp *qp = list_entry(node, struct nvmep_qp, node);

	if (qp->state < *(const enum nvmep_qp_state *)from ||
	    qp->state == NVMEP_QP_REVOKED)
		return NULL;
	kref_get(&qp->ref);
	return qp;
}

static void *nvmep_qp_take_untold(struct list_head *node, const void *from)
{
	struct nvmep_qp *qp = list_entry(node, struct nvmep_qp, node);

	if (qp->exports.told)
		return NULL;
	qp->exports.told = nvmep_qp_take_from(node, from);
	return qp->exports.told ? qp : NULL;
}

/*
 * The peers of all are told before those of one are waited for: one deadline, and
 * who never lets go of one queue pair does not keep another from being revoked.
 */
static void nvmep_qp_revoke_from(struct nvmep_ctrl *ctrl,
				 enum nvmep_qp_state from, int reason)
{
	struct nvmep_peers *peers = ctrl->peers;
	unsigned long deadline;
	struct nvmep_qp *qp;

	while ((qp = nvmep_take_first(&peers->lock, &peers->qps,
				      nvmep_qp_take_untold, &from))) {
		nvmep_qp_tell(qp, reason);
		nvmep_qp_put(qp);
	}
	deadline = jiffies + NVMEP_REVOKE_TIMEOUT;
	while ((qp = nvmep_take_first(&peers->lock, &peers->qps,
				      nvmep_qp_take_from, &from))) {
		nvmep_qp_revoke(qp, reason, deadline);
		nvmep_qp_put(qp);
	}
}

/**
 * nvmep_qp_revoke_stopped() - finish what nvmep_qp_stop_users() began
 * @ctrl: the controller
 */
void nvmep_qp_revoke_stopped(struct nvmep_ctrl *ctrl)
{
	nvmep_qp_revoke_from(ctrl, NVMEP_QP_STOPPED, ESTALE);
}

/**
 * nvmep_qp_revoke_all() - revoke every queue pair of a controller
 * @ctrl: the controller; no new ones can come
 * @reason: for the status page
 */
void nvmep_qp_revoke_all(struct nvmep_ctrl *ctrl, int reason)
{
	nvmep_qp_revoke_from(ctrl, NVMEP_QP_NEW, reason);
}

static void *nvmep_qp_take_withdrawn(struct list_head *node, const void *unused)
{
	struct nvmep_qp *qp = list_entry(node, struct nvmep_qp, node);

	if (qp->exports.withdrawn)
		return NULL;
	qp->exports.withdrawn = true;
	kref_get(&qp->ref);
	return qp;
}

/**
 * nvmep_qp_withdraw_all() - take the doorbells from everybody, without waiting
 * @ctrl: the controller, which is about to be stopped; no new ones can come
 */
void nvmep_qp_withdraw_all(struct nvmep_ctrl *ctrl)
{
	struct nvmep_peers *peers = ctrl->peers;
	struct nvmep_qp *qp;

	while ((qp = nvmep_take_first(&peers->lock, &peers->qps,
				      nvmep_qp_take_withdrawn, NULL))) {
		nvmep_exports_withdraw(&qp->exports);
		nvmep_qp_put(qp);
	}
}

/* --- the beginning ------------------------------------------------------- */

static int nvmep_qp_alloc_host(struct nvmep_qp *qp,
			       const struct nvme_peer_qp_create *cmd)
{
	struct nvmep_host_pages *page;
	int err;

	page = nvmep_host_pages_alloc(qp->ctrl, PAGE_SIZE);
	if (IS_ERR(page))
		return PTR_ERR(page);
	qp->status_page = page;
	page = nvmep_host_pages_alloc(qp->ctrl, PAGE_SIZE);
	if (IS_ERR(page))
		return PTR_ERR(page);
	qp->request_page = page;

	if (!cmd->sq_handle) {
		err = nvmep_ring_init_host(&qp->sq, qp->ctrl);
		if (err)
			return err;
	}
	if (!cmd->cq_handle)
		return nvmep_ring_init_host(&qp->cq, qp->ctrl);
	return 0;
}

static int nvmep_qp_place_ring(struct nvmep_qp *qp, struct nvmep_ring *ring,
			       u32 handle)
{
	struct nvmep_buf *buf;
	int err;

	if (!handle)
		return 0;
	buf = nvmep_buf_claim(qp->owner, handle, ring == &qp->sq ?
			      DMA_TO_DEVICE : DMA_FROM_DEVICE);
	if (IS_ERR(buf))
		return PTR_ERR(buf);

	err = nvmep_ring_init_buf(ring, qp->ctrl, buf);
	if (err)
		nvmep_buf_unclaim(buf);
	return err;
}

static bool nvmep_qp_overlaps(const struct nvmep_qp *a, const struct nvmep_qp *b)
{
	return nvmep_rings_overlap(&a->sq, &b->sq) ||
	       nvmep_rings_overlap(&a->sq, &b->cq) ||
	       nvmep_rings_overlap(&a->cq, &b->sq) ||
	       nvmep_rings_overlap(&a->cq, &b->cq);
}

/*
 * Places the rings that lie in buffers and puts the queue pair on the list,
 * both in one go: an exporter that takes a buffer back either is seen here, or
 * finds the queue pair on the list.
 */
static int nvmep_qp_place(struct nvmep_qp *qp,
			  const struct nvme_peer_qp_create *cmd)
{
	struct nvmep_peers *peers = qp->ctrl->peers;
	struct nvmep_qp *other;
	int err;

	lockdep_assert_held(&peers->lock);

	err = nvmep_qp_place_ring(qp, &qp->sq, cmd->sq_handle);
	if (err)
		return err;
	err = nvmep_qp_place_ring(qp, &qp->cq, cmd->cq_handle);
	if (err)
		return err;

	if (nvmep_rings_overlap(&qp->sq, &qp->cq))
		return -EEXIST;
	list_for_each_entry(other, &peers->qps, node)
		if (nvmep_qp_overlaps(qp, other))
			return -EEXIST;
	list_add_tail(&qp->node, &peers->qps);
	qp->life.birth = peers->births++;
	list_add_tail(&qp->life.node, &peers->alive);
	return 0;
}

static int nvmep_qp_take_qid(struct nvmep_qp *qp)
{
	int qid = nvmep_qid_alloc(qp->ctrl, NVMEP_QID_PEER);

	if (qid < 0)
		return qid;
	qp->qid = qid;
	qp->qid_held = true;
	nvmep_doorbell_init(&qp->doorbell, qp->ctrl, qid);
	nvmep_qp_init_status(qp);
	return 0;
}

/*
 * Makes it live, unless the controller was reset since: the reset moves the
 * generation first and looks for live queue pairs then.
 */
static int nvmep_qp_go_live(struct nvmep_qp *qp, u32 generation)
{
	struct nvmep_peers *peers = qp->ctrl->peers;
	bool live;

	mutex_lock(&peers->lock);
	live = nvmep_ctrl_generation(qp->ctrl) == generation;
	if (live) {
		qp->generation = generation;
		nvmep_qp_set_state(qp, NVMEP_QP_LIVE, 0);
	}
	mutex_unlock(&peers->lock);
	return live ? 0 : -EAGAIN;
}

/**
 * nvmep_qp_start() - create its queues on the controller and make it LIVE
 * @qp: NEW or QUIESCED, its completion ring zero; its lock is held
 *
 * Return: 0, or as nvmep_queue_pair_create(); nothing of it is on the controller
 * then.
 */
int nvmep_qp_start(struct nvmep_qp *qp)
{
	const struct nvmep_queue_pair_params params = {
		.qid = qp->qid,
		.sq_entries = qp->sq_entries,
		.cq_entries = qp->cq_entries,
		.sq_dma = qp->sq.dma,
		.cq_dma = qp->cq.dma,
		.sq_contiguous = !qp->sq.list,
		.cq_contiguous = !qp->cq.list,
		.vector = -1,
	};
	u32 generation;
	int err;

	lockdep_assert_held(&qp->lock);

	err = nvmep_queue_pair_create(qp->ctrl, &params, &generation);
	return err ? err : nvmep_qp_go_live(qp, generation);
}

static int nvmep_qp_begin(struct nvmep_qp *qp,
			  const struct nvme_peer_qp_create *cmd)
{
	struct nvmep_peers *peers = qp->ctrl->peers;
	int err;

	lockdep_assert_held(&qp->lock);

	err = nvmep_qp_alloc_host(qp, cmd);
	if (err)
		return err;
	err = nvmep_qp_take_qid(qp);
	if (err)
		return err;

	mutex_lock(&peers->lock);
	err = nvmep_qp_place(qp, cmd);
	mutex_unlock(&peers->lock);
	if (err)
		return err;
	err = nvmep_ring_make_list(&qp->sq, qp->ctrl);
	if (err)
		return err;
	err = nvmep_ring_make_list(&qp->cq, qp->ctrl);
	if (err)
		return err;
	return nvmep_qp_start(qp);
}

/**
 * nvmep_qp_create() - make a queue pair on the controller
 * @owner: the open controller node
 * @cmd: what user space asked for, already checked
 *
 * Its lock is held all along, so whoever wants to end it waits until it is
 * there.
 *
 * Return: the live queue pair with the reference for its file, or an ERR_PTR
 * as struct nvme_peer_qp_create says.
 */
struct nvmep_qp *nvmep_qp_create(struct nvmep_peer_file *owner,
				 const struct nvme_peer_qp_create *cmd)
{
	struct nvmep_qp *qp = nvmep_qp_alloc(owner, cmd);
	int err;

	if (!qp)
		return ERR_PTR(-ENOMEM);

	mutex_lock(&qp->lock);
	err = nvmep_qp_begin(qp, cmd);
	mutex_unlock(&qp->lock);
	if (!err)
		return qp;

	nvmep_qp_release(qp);
	return ERR_PTR(err);
}
