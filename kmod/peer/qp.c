// SPDX-License-Identifier: GPL-2.0-only
/*
 * Peer queue pairs: states, creation and the five ways down.
 *
 *  quiesce: LIVE to QUIESCED.  The controller was reset and has lost the
 *	queues, or they are deleted because a peer requested recovery.  Entries
 *	in flight are lost.  The owner may re-arm the queue pair (recover.c).
 *  fail: re-arm is not possible any more.
 *  stop: for good.  Refuse new dma-bufs and new users of them; Delete SQ, then
 *	Delete CQ, unless the controller has already stopped; report GONE; unmap
 *	the rings.
 *  revoke: stop, then drop windows and buffers of mediated mode, and take the
 *	doorbells from the peers: zap PTEs, invalidate importers, wait for their
 *	fences and mappings with a timeout, free the queue ID.
 *  release: revoke, then drop the reference of the file.
 *
 * Three events revoke a queue pair: its file is closed, the exporter of a
 * buffer that it may access invalidates that buffer, or the driver is unbound.
 *
 * A queue pair that is quiesced or failed keeps its queue ID until it is
 * revoked, so that a late doorbell write cannot reach another queue pair.
 *
 * The status page reports why: enum nvme_peer_qp_reason.
 */
#include <linux/ktime.h>
#include <linux/mm.h>
#include <linux/moduleparam.h>
#include <linux/slab.h>
#include <linux/user_namespace.h>
#include <linux/wait.h>
#include <linux/wait_bit.h>

#include "core/ctrl.h"
#include "core/qids.h"
#include "core/queue.h"
#include "core/queue_pair.h"
#include "host_buffer.h"
#include "host_pages.h"
#include "import.h"
#include "mediated.h"
#include "module.h"
#include "peer.h"
#include "peer_file.h"
#include "qp.h"
#include "route.h"
#include "trace.h"

#define NVMEP_SQ_ENTRY_SIZE	64
#define NVMEP_CQ_ENTRY_SIZE	16

/* Timeout for importers to unmap the doorbells. */
#define NVMEP_REVOKE_TIMEOUT	(5 * HZ)

/* The same in a reset, which I/O waits for. */
#define NVMEP_WITHDRAW_TIMEOUT	(HZ / 10)

/* --- state --------------------------------------------------------------- */

static const enum nvme_peer_qp_state nvmep_qp_user_states[] = {
	[NVMEP_QP_NEW] = NVME_PEER_QP_QUIESCED,
	[NVMEP_QP_LIVE] = NVME_PEER_QP_LIVE,
	[NVMEP_QP_QUIESCED] = NVME_PEER_QP_QUIESCED,
	[NVMEP_QP_REARMING] = NVME_PEER_QP_QUIESCED,
	[NVMEP_QP_FAILED] = NVME_PEER_QP_FAILED,
	[NVMEP_QP_STOPPED] = NVME_PEER_QP_GONE,
	[NVMEP_QP_REVOKED] = NVME_PEER_QP_GONE,
};

/**
 * nvmep_qp_user_state() - state as reported to user space
 * @qp: the queue pair
 *
 * Return: the state; it may change at any time.
 */
enum nvme_peer_qp_state nvmep_qp_user_state(const struct nvmep_qp *qp)
{
	return nvmep_qp_user_states[READ_ONCE(qp->state)];
}

/**
 * nvmep_qp_usable() - is it LIVE, or may it become LIVE?
 * @qp: the queue pair
 *
 * Return: false once it has failed or was stopped.
 */
bool nvmep_qp_usable(const struct nvmep_qp *qp)
{
	return READ_ONCE(qp->state) < NVMEP_QP_FAILED;
}

/**
 * nvmep_qp_rearmable() - is it off the controller, and may it become LIVE?
 * @qp: the queue pair
 *
 * Return: true if it is QUIESCED or a re-arm is in progress.
 */
bool nvmep_qp_rearmable(const struct nvmep_qp *qp)
{
	enum nvmep_qp_state state = READ_ONCE(qp->state);

	return state == NVMEP_QP_QUIESCED || state == NVMEP_QP_REARMING;
}

/**
 * nvmep_qp_status() - the status page
 * @qp: the queue pair
 *
 * Return: the page, which peers may read at any time.
 */
struct nvme_peer_status *nvmep_qp_status(struct nvmep_qp *qp)
{
	return page_address(qp->status_page->pages[0]);
}

/**
 * nvmep_qp_control() - the control page
 * @qp: the queue pair
 *
 * Return: the page, which peers may write at any time.
 */
struct nvme_peer_control *nvmep_qp_control(const struct nvmep_qp *qp)
{
	return page_address(qp->control_page->pages[0]);
}

static void nvmep_store_le32(__le32 *field, u32 value)
{
	WRITE_ONCE(*field, cpu_to_le32(value));
}

/**
 * nvmep_qp_write_status() - update the status page
 * @qp: the queue pair; the caller holds peers->lock
 *
 * Peers may read the page at any time: write the state last.
 */
void nvmep_qp_write_status(struct nvmep_qp *qp)
{
	struct nvme_peer_status *status = nvmep_qp_status(qp);

	lockdep_assert_held(&qp->ctrl->peers->lock);

	nvmep_store_le32(&status->generation, nvmep_ctrl_generation(qp->ctrl));
	nvmep_store_le32(&status->reason, qp->reason);
	nvmep_store_le32(&status->losses, qp->losses);
	dma_wmb();
	nvmep_store_le32(&status->state, nvmep_qp_user_state(qp));
}

static void nvmep_qp_init_status(struct nvmep_qp *qp)
{
	struct nvme_peer_status *status = nvmep_qp_status(qp);
	struct nvme_peer_control *control = nvmep_qp_control(qp);

	nvmep_store_le32(&control->version, 1);
	nvmep_store_le32(&status->magic, NVME_PEER_STATUS_MAGIC);
	nvmep_store_le32(&status->version, 1);
	nvmep_store_le32(&status->qid, qp->qid);
	nvmep_store_le32(&status->size, PAGE_SIZE);
}

static void nvmep_qp_events_init(struct nvmep_qp_events *events)
{
	mutex_init(&events->reader);
	spin_lock_init(&events->lock);
}

/* Adds an event and overwrites the oldest one if the ring is full. */
static void nvmep_qp_events_add(struct nvmep_qp_events *events,
				const struct nvme_peer_event *event)
{
	spin_lock(&events->lock);
	if (events->next - events->first == NVMEP_MAX_EVENTS) {
		events->first++;
		events->lost++;
	}
	events->ring[events->next++ % NVMEP_MAX_EVENTS] = *event;
	events->ended = event->state == NVME_PEER_QP_GONE;
	spin_unlock(&events->lock);
}

/**
 * nvmep_qp_add_event() - add an event with the current state
 * @qp: the queue pair; the caller holds peers->lock and wakes the waiters
 * @type: type of the event
 * @object: what it is about, by @type
 */
void nvmep_qp_add_event(struct nvmep_qp *qp, enum nvme_peer_event_type type,
			u64 object)
{
	const struct nvme_peer_event event = {
		.size = sizeof(event),
		.type = type,
		.time = ktime_get_ns(),
		.generation = nvmep_ctrl_generation(qp->ctrl),
		.state = nvmep_qp_user_state(qp),
		.reason = qp->reason,
		.object = object,
	};

	lockdep_assert_held(&qp->ctrl->peers->lock);
	nvmep_qp_events_add(&qp->events, &event);
}

/*
 * Within 100 ms a failed controller is detected, and a request for recovery is
 * seen; the deletion of the queues begins as soon as no other thread holds the
 * lock of the queue pair.  Poll twice in that time.
 */
#define NVMEP_HEALTH_POLL_MS	50

/**
 * nvmep_health_poll_start() - schedule the next health poll
 * @peers: of the controller
 */
void nvmep_health_poll_start(struct nvmep_peers *peers)
{
	queue_delayed_work(nvmep_health_wq, &peers->health_poll,
			   msecs_to_jiffies(NVMEP_HEALTH_POLL_MS));
}

/*
 * The work requeues itself while there are live queue pairs.  A 0 to 1
 * transition after its check queues it again, so no poll is lost.
 */
static void nvmep_health_poll_count(struct nvmep_peers *peers, int change)
{
	bool first = !peers->live;

	lockdep_assert_held(&peers->lock);

	WRITE_ONCE(peers->live, peers->live + change);
	if (first)
		nvmep_health_poll_start(peers);
}

/* For each state, those that may follow it. */
static const u8 nvmep_qp_next_states[] = {
	[NVMEP_QP_NEW] = BIT(NVMEP_QP_LIVE) | BIT(NVMEP_QP_STOPPED),
	[NVMEP_QP_LIVE] = BIT(NVMEP_QP_QUIESCED) | BIT(NVMEP_QP_FAILED) |
			  BIT(NVMEP_QP_STOPPED),
	[NVMEP_QP_QUIESCED] = BIT(NVMEP_QP_REARMING) | BIT(NVMEP_QP_FAILED) |
			      BIT(NVMEP_QP_STOPPED),
	[NVMEP_QP_REARMING] = BIT(NVMEP_QP_LIVE) | BIT(NVMEP_QP_QUIESCED) |
			      BIT(NVMEP_QP_FAILED) | BIT(NVMEP_QP_STOPPED),
	[NVMEP_QP_FAILED] = BIT(NVMEP_QP_STOPPED),
	[NVMEP_QP_STOPPED] = BIT(NVMEP_QP_REVOKED),
	[NVMEP_QP_REVOKED] = 0,
};

/**
 * nvmep_qp_set_state() - change state and reason; the only writer of both
 * @qp: the queue pair; the caller holds peers->lock
 * @state: the new state.  A transition that the table does not allow is
 *	refused with a warning
 * @reason: why it is not LIVE
 */
void nvmep_qp_set_state(struct nvmep_qp *qp, enum nvmep_qp_state state,
			enum nvme_peer_qp_reason reason)
{
	struct nvmep_peers *peers = qp->ctrl->peers;
	int live = (state == NVMEP_QP_LIVE) - (qp->state == NVMEP_QP_LIVE);
	bool changed = nvmep_qp_user_states[state] != nvmep_qp_user_state(qp);
	/* The creating ioctl reports the first change itself. */
	bool report = changed && qp->state != NVMEP_QP_NEW;

	lockdep_assert_held(&peers->lock);

	if (WARN_ON_ONCE(!(nvmep_qp_next_states[qp->state] & BIT(state))))
		return;
	if (live)
		nvmep_health_poll_count(peers, live);
	if (live < 0) {
		qp->losses++;
		nvmep_relay_close(qp);
	}
	WRITE_ONCE(qp->state, state);
	qp->reason = reason;
	/* NULL if creation failed before its allocation. */
	if (changed && qp->status_page)
		nvmep_qp_write_status(qp);
	if (changed)
		trace_nvmep_qp_state(qp->ctrl->instance, qp->qid,
				     nvmep_qp_user_state(qp), reason);
	if (report)
		nvmep_qp_add_event(qp, NVME_PEER_EVENT_STATE, 0);
}

/**
 * nvmep_qp_wake() - wake pollers and readers after a change of state
 * @qp: the queue pair
 */
void nvmep_qp_wake(struct nvmep_qp *qp)
{
	/* Without a mask: io_uring would report that one instead of polling. */
	wake_up_interruptible(&qp->waiters);
}

/* --- memory -------------------------------------------------------------- */

/**
 * nvmep_qp_count_doorbells() - number of doorbell writes by the CPU
 * @qp: the queue pair, not revoked
 *
 * Return: the number; 0 in mediated mode, which has no doorbells of its own.
 */
u64 nvmep_qp_count_doorbells(const struct nvmep_qp *qp)
{
	return nvmep_qp_mediated(qp) ?
	       0 : nvmep_doorbell_writes(qp->ctrl, qp->qid);
}

/* No peer had the doorbells of a queue pair that was never LIVE. */
static void nvmep_qp_release_qid(struct nvmep_qp *qp)
{
	if (qp->qid_held)
		nvmep_qid_free(qp->ctrl, qp->qid, qp->losses);
	qp->qid_held = false;
}

/* Rings in host memory, and the pages of status, control and doorbells. */
static unsigned long nvmep_qp_locked_pages(const struct nvmep_qp *qp)
{
	return PFN_UP(qp->sq.bytes) + PFN_UP(qp->cq.bytes) + 3;
}

static void nvmep_qp_free(struct kref *ref)
{
	struct nvmep_qp *qp = container_of(ref, struct nvmep_qp, ref);
	struct nvmep_ctrl *ctrl = qp->ctrl;

	nvmep_host_pages_free(qp->sq.host);
	nvmep_host_pages_free(qp->cq.host);
	nvmep_host_pages_free(qp->status_page);
	nvmep_host_pages_free(qp->control_page);
	nvmep_host_pages_free(qp->relay.page);
	nvmep_tenant_free(qp->tenant);
	nvmep_locked_uncharge(qp->user, nvmep_qp_locked_pages(qp));
	nvmep_leak_count(&ctrl->peers->leak_counters, NVMEP_OBJECT_QPS, -1);
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
	INIT_LIST_HEAD(&qp->revoke_node);
	INIT_LIST_HEAD(&qp->relay.node);
	qp->mode = cmd->mode;
	qp->allow_sleep = cmd->flags & NVME_PEER_QP_ALLOW_SLEEP;
	qp->no_static = cmd->flags & NVME_PEER_QP_NO_STATIC;
	qp->sq_entries = cmd->sq_entries;
	qp->cq_entries = cmd->cq_entries;
	qp->sq.bytes = (size_t)cmd->sq_entries * NVMEP_SQ_ENTRY_SIZE;
	qp->sq.offset = cmd->sq_offset;
	qp->cq.bytes = (size_t)cmd->cq_entries * NVMEP_CQ_ENTRY_SIZE;
	qp->cq.offset = cmd->cq_offset;
	mutex_init(&qp->lock);
	init_waitqueue_head(&qp->waiters);
	nvmep_qp_events_init(&qp->events);
	nvmep_recover_init(qp);
	nvmep_exports_init(&qp->exports, qp->ctrl, &qp->ref, nvmep_qp_free);
	nvmep_leak_count(&qp->ctrl->peers->leak_counters, NVMEP_OBJECT_QPS, 1);
	return qp;
}

/* --- end: quiesce, fail, stop, revoke, release --------------------------- */

static void nvmep_qp_unclaim_ring(struct nvmep_ring *ring)
{
	if (ring->buf)
		nvmep_buf_unclaim(ring->buf);
	ring->buf = NULL;
}

/**
 * nvmep_qp_delete_queues() - end the controller's access to the rings
 * @qp: the queue pair
 *
 * nvmep_queue_pair_delete() returns only when the controller cannot access the
 * rings or the data of commands.  In mediated mode its commands end, each by its
 * timeout at the latest.  The generation changes after a stop, which
 * has the same effect: nothing is sent for queues of an earlier one.
 */
void nvmep_qp_delete_queues(struct nvmep_qp *qp)
{
	lockdep_assert_held(&qp->lock);

	nvmep_relay_close(qp);
	if (qp->tenant)
		nvmep_tenant_quiesce(qp->tenant);
	else if (qp->on_controller &&
		 nvmep_ctrl_generation(qp->ctrl) == qp->created)
		nvmep_queue_pair_delete(qp->ctrl, qp->qid, qp->created);
	qp->on_controller = false;
}

/**
 * nvmep_qp_fail() - end a queue pair that is not LIVE: no re-arm, no dma-bufs
 * @qp: the queue pair; the caller holds peers->lock
 * @reason: for the status page
 */
void nvmep_qp_fail(struct nvmep_qp *qp, enum nvme_peer_qp_reason reason)
{
	nvmep_qp_set_state(qp, NVMEP_QP_FAILED, reason);
	nvmep_exports_close(&qp->exports);
	nvmep_qp_wake(qp);
}

static void nvmep_qp_set_stopped(struct nvmep_qp *qp,
				 enum nvme_peer_qp_reason reason)
{
	struct nvmep_peers *peers = qp->ctrl->peers;

	mutex_lock(&peers->lock);
	nvmep_qp_set_state(qp, NVMEP_QP_STOPPED, reason);
	nvmep_qp_unclaim_ring(&qp->sq);
	nvmep_qp_unclaim_ring(&qp->cq);
	mutex_unlock(&peers->lock);
	nvmep_qp_wake(qp);
}

/* Unmapping is safe after the deletion, whatever the state is. */
static void nvmep_qp_stop_locked(struct nvmep_qp *qp,
				 enum nvme_peer_qp_reason reason)
{
	lockdep_assert_held(&qp->lock);

	if (READ_ONCE(qp->state) >= NVMEP_QP_STOPPED)
		return;
	nvmep_exports_close(&qp->exports);
	nvmep_qp_delete_queues(qp);
	nvmep_poller_remove(qp);
	nvmep_qp_set_stopped(qp, reason);
	nvmep_ring_unmap(&qp->sq, qp->ctrl);
	nvmep_ring_unmap(&qp->cq, qp->ctrl);
}

static void nvmep_qp_stop(struct nvmep_qp *qp, enum nvme_peer_qp_reason reason)
{
	mutex_lock(&qp->lock);
	nvmep_qp_stop_locked(qp, reason);
	mutex_unlock(&qp->lock);
}

/* The deadline of the importers counts from the first call. */
static void nvmep_qp_revoke_start_locked(struct nvmep_qp *qp,
					 enum nvme_peer_qp_reason reason)
{
	lockdep_assert_held(&qp->lock);

	nvmep_qp_stop_locked(qp, reason);
	if (!qp->revoke_deadline)
		WRITE_ONCE(qp->revoke_deadline,
			   (jiffies + NVMEP_REVOKE_TIMEOUT) ?: 1);
	nvmep_exports_revoke(&qp->exports);
}

/* Stops a queue pair and starts to revoke its doorbells, without waiting. */
static void nvmep_qp_revoke_start(struct nvmep_qp *qp,
				  enum nvme_peer_qp_reason reason)
{
	mutex_lock(&qp->lock);
	nvmep_qp_revoke_start_locked(qp, reason);
	mutex_unlock(&qp->lock);
}

/* The queue ID is the next owner's as soon as it is released. */
static void nvmep_qp_set_revoked(struct nvmep_qp *qp)
{
	struct nvmep_peers *peers = qp->ctrl->peers;

	mutex_lock(&peers->lock);
	qp->doorbell_writes = nvmep_qp_count_doorbells(qp);
	nvmep_qp_set_state(qp, NVMEP_QP_REVOKED, qp->reason);
	mutex_unlock(&peers->lock);
	nvmep_qp_release_qid(qp);
}

/*
 * On return neither the controller nor the peers use the queue pair, or the
 * deadline has passed for an importer.  The reason of the first stop counts.
 */
static void nvmep_qp_revoke(struct nvmep_qp *qp,
			    enum nvme_peer_qp_reason reason)
{
	mutex_lock(&qp->lock);
	if (READ_ONCE(qp->state) != NVMEP_QP_REVOKED) {
		nvmep_qp_revoke_start_locked(qp, reason);
		/* After all stops: exporters of its buffers may block. */
		if (qp->tenant)
			nvmep_tenant_end(qp->tenant);
		nvmep_exports_wait(&qp->exports, qp->revoke_deadline);
		nvmep_qp_set_revoked(qp);
	}
	mutex_unlock(&qp->lock);
}

/**
 * nvmep_qp_release() - revoke a queue pair and drop the reference of its file
 * @qp: the queue pair
 */
void nvmep_qp_release(struct nvmep_qp *qp)
{
	struct nvmep_peers *peers = qp->ctrl->peers;
	struct nvmep_peer_file *owner = qp->owner;

	nvmep_qp_revoke(qp, NVME_PEER_QP_REASON_CLOSED);

	mutex_lock(&peers->lock);
	list_del_init(&qp->node);
	mutex_unlock(&peers->lock);

	/* No command is in flight any more: the buffers may be unmapped. */
	nvmep_peer_file_put(owner);
	nvmep_qp_put(qp);
}

/**
 * nvmep_qp_node_active() - may a queue pair of an open node access its buffers?
 * @file: the open node; the caller holds peers->lock
 *
 * Return: true if one is being created, LIVE or QUIESCED.
 */
bool nvmep_qp_node_active(const struct nvmep_peer_file *file)
{
	struct nvmep_peers *peers = file->ctrl->peers;
	struct nvmep_qp *qp;

	lockdep_assert_held(&peers->lock);

	list_for_each_entry(qp, &peers->qps, node)
		if (qp->owner == file && nvmep_qp_usable(qp) &&
		    !nvmep_qp_mediated(qp))
			return true;
	return false;
}

/*
 * Commands may carry the addresses of all exposed buffers of the queue pair's
 * node.  An address of another node's buffer is a fault of the peer, which
 * strict translation catches after the unmapping.  Without it, and by a bus
 * address, which is not translated, the access would reach memory.
 */
static bool nvmep_qp_uses(const struct nvmep_qp *qp,
			  const struct nvmep_buf *buf)
{
	/* Their commands carry no addresses: see nvmep_tenant_buf_add(). */
	if (nvmep_qp_mediated(qp))
		return false;
	if (qp->sq.buf == buf || qp->cq.buf == buf)
		return true;
	return buf->exposed &&
	       (qp->owner == buf->file ||
		!nvmep_route_strict(qp->ctrl->dev) ||
		buf->placement.path.verdict == NVME_PEER_ROUTE_BUS_ADDR);
}

/*
 * Takes a queue pair, with a reference, into a list that nvmep_qp_revoke_taken()
 * revokes, unless another thread has taken it.
 */
static void nvmep_qp_take(struct nvmep_qp *qp, struct list_head *taken)
{
	lockdep_assert_held(&qp->ctrl->peers->lock);

	if (!list_empty(&qp->revoke_node))
		return;
	kref_get(&qp->ref);
	list_add_tail(&qp->revoke_node, taken);
}

static void nvmep_qp_untake(struct nvmep_qp *qp)
{
	struct nvmep_peers *peers = qp->ctrl->peers;

	mutex_lock(&peers->lock);
	list_del_init(&qp->revoke_node);
	mutex_unlock(&peers->lock);
	nvmep_qp_put(qp);
}

/*
 * Starts all revocations before it waits for the first, so that an importer
 * that does not unmap delays the revocation of no other queue pair.  Does not
 * wait for queue pairs that other threads revoke.
 */
static void nvmep_qp_revoke_taken(struct list_head *taken)
{
	struct nvmep_qp *qp;

	list_for_each_entry(qp, taken, revoke_node)
		nvmep_qp_revoke_start(qp, NVME_PEER_QP_REASON_BUFFER);
	while (!list_empty(taken)) {
		qp = list_first_entry(taken, struct nvmep_qp, revoke_node);
		nvmep_qp_revoke(qp, NVME_PEER_QP_REASON_BUFFER);
		nvmep_qp_untake(qp);
	}
}

/* A queue pair that may access @buf and is not stopped, with a reference. */
static struct nvmep_qp *nvmep_qp_next_user(const struct nvmep_buf *buf,
					   struct list_head *taken)
{
	struct nvmep_peers *peers = buf->ctrl->peers;
	struct nvmep_qp *qp, *found = NULL;

	mutex_lock(&peers->lock);
	list_for_each_entry(qp, &peers->qps, node) {
		if (qp->state >= NVMEP_QP_STOPPED || !nvmep_qp_uses(qp, buf))
			continue;
		nvmep_qp_take(qp, taken);
		kref_get(&qp->ref);
		found = qp;
		break;
	}
	mutex_unlock(&peers->lock);
	return found;
}

/*
 * Ends DMA of queue pairs to a buffer that is marked invalid.  On return no
 * queue pair that may access it has a command on the controller.  Those in
 * @taken still have to be revoked.
 */
static void nvmep_qp_stop_users(const struct nvmep_buf *buf,
				struct list_head *taken)
{
	struct nvmep_qp *qp;

	while ((qp = nvmep_qp_next_user(buf, taken))) {
		nvmep_qp_stop(qp, NVME_PEER_QP_REASON_BUFFER);
		nvmep_qp_put(qp);
	}
}

/*
 * A queue pair that is not revoked, with a reference.  Without @started, one
 * whose revocation has not begun.
 */
static struct nvmep_qp *nvmep_qp_next_unrevoked(struct nvmep_peers *peers,
						bool started)
{
	struct nvmep_qp *qp, *found = NULL;

	mutex_lock(&peers->lock);
	list_for_each_entry(qp, &peers->qps, node) {
		if (qp->state == NVMEP_QP_REVOKED ||
		    (!started && READ_ONCE(qp->revoke_deadline)))
			continue;
		kref_get(&qp->ref);
		found = qp;
		break;
	}
	mutex_unlock(&peers->lock);
	return found;
}

/**
 * nvmep_qp_revoke_all() - revoke all queue pairs of a controller
 * @ctrl: the controller; no new queue pair can be created
 *
 * Starts all revocations before it waits for the first, and also waits for
 * those that others have begun.
 */
void nvmep_qp_revoke_all(struct nvmep_ctrl *ctrl)
{
	struct nvmep_qp *qp;

	while ((qp = nvmep_qp_next_unrevoked(ctrl->peers, false))) {
		nvmep_qp_revoke_start(qp, NVME_PEER_QP_REASON_UNBOUND);
		nvmep_qp_put(qp);
	}
	while ((qp = nvmep_qp_next_unrevoked(ctrl->peers, true))) {
		nvmep_qp_revoke(qp, NVME_PEER_QP_REASON_UNBOUND);
		nvmep_qp_put(qp);
	}
}

/**
 * nvmep_qp_buf_invalidated() - end all access to a buffer
 * @buf: the buffer, marked invalid by its exporter
 *
 * Stops the queue pairs with a ring in the buffer.  If user space has the DMA
 * addresses of the buffer, stops all queue pairs of its node, and without
 * strict translation all of the controller: any command in flight may use such
 * an address, and only deleting the queue ends it.
 *
 * Revokes the doorbells after unmapping the buffer.  The reverse order may
 * deadlock: the exporter that waits for its memory may be the importer that has
 * the doorbells mapped.
 */
void nvmep_qp_buf_invalidated(struct nvmep_buf *buf)
{
	LIST_HEAD(taken);

	nvmep_qp_stop_users(buf, &taken);
	nvmep_buf_unmap(buf);
	nvmep_qp_revoke_taken(&taken);
}

/**
 * nvmep_qp_revoke_doorbells() - revoke all doorbells, with a short wait
 * @ctrl: the controller, in a state in which no queue pair becomes LIVE
 *
 * For memory decoding that may go off.  Re-arm restores the doorbells.  Waits
 * for the works only: 5 s at most for a controller that is being removed, else
 * 100 ms, because I/O or the recovery of a bus waits too.  Works that have not
 * ended by then go on.
 */
void nvmep_qp_revoke_doorbells(struct nvmep_ctrl *ctrl)
{
	struct nvmep_peers *peers = ctrl->peers;
	struct nvmep_qp *qp;

	mutex_lock(&peers->lock);
	list_for_each_entry(qp, &peers->qps, node) {
		qp->doorbells_revoked = true;
		nvmep_relay_close(qp);
		nvmep_exports_withdraw(&qp->exports);
		nvmep_exports_revoke(&qp->exports);
	}
	mutex_unlock(&peers->lock);
	wait_var_event_timeout(&peers->works, !atomic_read(&peers->works),
			       nvmep_ctrl_state(ctrl) == NVMEP_CTRL_DELETING ?
			       NVMEP_REVOKE_TIMEOUT : NVMEP_WITHDRAW_TIMEOUT);
}

/* --- creation ------------------------------------------------------------ */

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
	qp->control_page = page;
	if (qp->mode != NVME_PEER_MODE_DIRECT) {
		err = nvmep_relay_init(qp);
		if (err)
			return err;
	}

	if (!cmd->sq_handle) {
		err = nvmep_ring_init_host(&qp->sq, qp->ctrl);
		if (err)
			return err;
	}
	if (!cmd->cq_handle)
		return nvmep_ring_init_host(&qp->cq, qp->ctrl);
	return 0;
}

static int nvmep_qp_claim_ring(struct nvmep_qp *qp, struct nvmep_ring *ring,
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

/* Does it share memory of rings with a queue pair of the list? */
static bool nvmep_qp_overlaps(const struct nvmep_qp *qp)
{
	struct nvmep_peers *peers = qp->ctrl->peers;
	const struct nvmep_qp *other;

	lockdep_assert_held(&peers->lock);

	list_for_each_entry(other, &peers->qps, node)
		if (nvmep_rings_overlap(&qp->sq, &other->sq) ||
		    nvmep_rings_overlap(&qp->sq, &other->cq) ||
		    nvmep_rings_overlap(&qp->cq, &other->sq) ||
		    nvmep_rings_overlap(&qp->cq, &other->cq))
			return true;
	return false;
}

static bool allow_mixed_modes;
module_param(allow_mixed_modes, bool, 0644);
MODULE_PARM_DESC(allow_mixed_modes,
		 "create mediated queue pairs beside those of other modes, which can access the data of all");

static unsigned int mediated_max = 64;
module_param(mediated_max, uint, 0644);
MODULE_PARM_DESC(mediated_max,
		 "mediated queue pairs of one user on a controller, which need no capability");

static unsigned int mediated_total = 1024;
module_param(mediated_total, uint, 0644);
MODULE_PARM_DESC(mediated_total,
		 "mediated queue pairs of all users on a controller");

/*
 * Users that exist by a user namespace which a user other than root has created
 * count as that one.
 */
static kuid_t nvmep_current_user(void)
{
	const struct user_namespace *ns = current_user_ns();

	if (ns == &init_user_ns)
		return current_uid();
	while (ns->parent != &init_user_ns)
		ns = ns->parent;
	return uid_eq(ns->owner, GLOBAL_ROOT_UID) ? current_uid() : ns->owner;
}

/* The user that creates them: a process that gets the file creates none. */
static int nvmep_qp_check_user(struct nvmep_qp *qp)
{
	struct nvmep_peers *peers = qp->ctrl->peers;
	unsigned int count = 0, total = 0;
	struct nvmep_qp *other;

	lockdep_assert_held(&peers->lock);

	if (!nvmep_qp_mediated(qp))
		return 0;
	qp->uid = nvmep_current_user();
	list_for_each_entry(other, &peers->qps, node) {
		if (!nvmep_qp_mediated(other))
			continue;
		total++;
		count += uid_eq(other->uid, qp->uid);
	}
	return count < READ_ONCE(mediated_max) &&
	       total < READ_ONCE(mediated_total) ? 0 : -EDQUOT;
}

/*
 * A doorbell page is that of all queues, and commands of other modes are not
 * checked: beside them nothing isolates tenants.  Doorbells that a process can
 * still store to count as a queue pair.
 */
static int nvmep_qp_check_modes(struct nvmep_qp *qp)
{
	bool mediated = nvmep_qp_mediated(qp);
	struct nvmep_peers *peers = qp->ctrl->peers;
	struct nvmep_qp *other;

	lockdep_assert_held(&peers->lock);

	if (READ_ONCE(allow_mixed_modes))
		return 0;
	list_for_each_entry(other, &peers->qps, node)
		if (other->state != NVMEP_QP_REVOKED &&
		    nvmep_qp_mediated(other) != mediated)
			return -EBUSY;
	return mediated && nvmep_qids_reachable(qp->ctrl) ? -EBUSY : 0;
}

/*
 * Checks the exposed buffers of the node, claims the buffers of rings and adds
 * the queue pair to the list under one lock.  So an invalidation either is seen
 * here or finds the queue pair on the list, and stops it once creation or
 * re-arm drops its lock.
 */
static int nvmep_qp_claim_rings(struct nvmep_qp *qp,
				const struct nvme_peer_qp_create *cmd)
{
	struct nvmep_peers *peers = qp->ctrl->peers;
	int err;

	lockdep_assert_held(&peers->lock);

	if (!nvmep_qp_mediated(qp) && nvmep_peer_file_stale(qp->owner))
		return -ESTALE;
	err = nvmep_qp_check_modes(qp);
	if (err)
		return err;
	err = nvmep_qp_check_user(qp);
	if (err)
		return err;
	err = nvmep_qp_claim_ring(qp, &qp->sq, cmd->sq_handle);
	if (err)
		return err;
	err = nvmep_qp_claim_ring(qp, &qp->cq, cmd->cq_handle);
	if (err)
		return err;

	if (nvmep_rings_overlap(&qp->sq, &qp->cq) || nvmep_qp_overlaps(qp))
		return -EEXIST;
	list_add_tail(&qp->node, &peers->qps);
	return 0;
}

static int nvmep_qp_alloc_qid(struct nvmep_qp *qp)
{
	int qid;

	if (nvmep_qp_mediated(qp)) {
		qp->qid = NVMEP_QID_NONE;
		nvmep_qp_init_status(qp);
		return 0;
	}
	qid = nvmep_qid_alloc(qp->ctrl, NVMEP_QID_PEER);
	if (qid < 0)
		return qid;
	qp->qid = qid;
	qp->qid_held = true;
	nvmep_qp_init_status(qp);
	if (qp->relay.page)
		return 0;
	return nvmep_doorbell_init(&qp->doorbell, qp->ctrl, qid);
}

static int nvmep_qp_create_queues(struct nvmep_qp *qp)
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

	lockdep_assert_held(&qp->lock);

	if (qp->tenant)
		return nvmep_mediator_start(qp->tenant->mediator, qp->created);
	return nvmep_queue_pair_create(qp->ctrl, &params, qp->created);
}

/**
 * nvmep_qp_start() - create the queues on the controller and make the pair LIVE
 * @qp: NEW or REARMING, with a zeroed completion ring; the caller holds its
 *	lock
 *
 * Return: 0, or an error of nvmep_queue_pair_create() or
 * nvmep_recover_go_live(); the controller then has neither queue.
 */
int nvmep_qp_start(struct nvmep_qp *qp)
{
	int err;

	lockdep_assert_held(&qp->lock);

	/* Not in a later one, whose namespaces may differ. */
	qp->created = READ_ONCE(qp->ctrl->peers->ready);
	qp->on_controller = true;
	err = nvmep_qp_create_queues(qp);
	/* A creation that fails leaves neither queue. */
	if (err) {
		qp->on_controller = false;
		return err;
	}
	err = nvmep_recover_go_live(qp);
	if (err)
		nvmep_qp_delete_queues(qp);
	else
		nvmep_poller_add(qp);
	return err;
}

/* Queue pairs of other modes need CAP_SYS_RAWIO and a queue ID. */
static int nvmep_qp_charge(struct nvmep_qp *qp)
{
	if (!nvmep_qp_mediated(qp))
		return 0;
	return nvmep_locked_charge(&qp->user, nvmep_qp_locked_pages(qp));
}

static int nvmep_qp_setup(struct nvmep_qp *qp,
			  const struct nvme_peer_qp_create *cmd)
{
	struct nvmep_peers *peers = qp->ctrl->peers;
	int err;

	lockdep_assert_held(&qp->lock);

	err = nvmep_qp_charge(qp);
	if (err)
		return err;
	err = nvmep_qp_alloc_host(qp, cmd);
	if (err)
		return err;
	err = nvmep_qp_alloc_qid(qp);
	if (err)
		return err;

	mutex_lock(&peers->lock);
	err = nvmep_qp_claim_rings(qp, cmd);
	mutex_unlock(&peers->lock);
	if (err)
		return err;
	if (nvmep_qp_mediated(qp)) {
		err = nvmep_tenant_create(qp, cmd);
		if (err)
			return err;
	}
	err = nvmep_ring_make_list(&qp->sq, qp->ctrl);
	if (err)
		return err;
	err = nvmep_ring_make_list(&qp->cq, qp->ctrl);
	if (err)
		return err;
	return nvmep_qp_start(qp);
}

/**
 * nvmep_qp_create() - create a queue pair
 * @owner: the open controller node
 * @cmd: parameters, validated
 *
 * Holds the lock of the queue pair throughout, so that an invalidation or an
 * unbind that finds it on the list waits for the end of its creation.
 *
 * Return: the LIVE queue pair with the reference for its file, or an ERR_PTR,
 * see struct nvme_peer_qp_create.
 */
struct nvmep_qp *nvmep_qp_create(struct nvmep_peer_file *owner,
				 const struct nvme_peer_qp_create *cmd)
{
	struct nvmep_qp *qp = nvmep_qp_alloc(owner, cmd);
	int err;

	if (!qp)
		return ERR_PTR(-ENOMEM);

	mutex_lock(&qp->lock);
	err = nvmep_qp_setup(qp, cmd);
	mutex_unlock(&qp->lock);
	if (!err)
		return qp;

	nvmep_qp_release(qp);
	return ERR_PTR(err);
}
