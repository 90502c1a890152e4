/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * A peer queue pair.
 */
#ifndef _NVMEP_QP_H
#define _NVMEP_QP_H

#include <linux/kref.h>
#include <linux/list.h>
#include <linux/mutex.h>
#include <linux/spinlock.h>
#include <linux/types.h>
#include <linux/wait.h>
#include <linux/workqueue.h>

#include <linux/nvme_peer.h>

#include "export.h"
#include "peer.h"
#include "relay.h"
#include "ring.h"

struct file;
struct nvmep_buf;
struct nvmep_ctrl;
struct nvmep_host_pages;
struct nvmep_peer_file;
struct nvmep_tenant;

/* Unread events of a queue pair; a new one overwrites the oldest. */
#define NVMEP_MAX_EVENTS	16

/**
 * struct nvmep_qp_events - the latest events of one queue pair
 * @reader: serializes readers.  Held over the copy to user space, so that an
 *	event goes to one reader and a failed copy loses none
 * @lock: guards the members below; nests inside @reader
 * @first: number of the oldest unread event, counted from creation
 * @next: number of the next event
 * @lost: events that were overwritten since the last read
 * @ended: the queue pair is GONE: no event follows
 * @ring: event n is in entry n modulo NVMEP_MAX_EVENTS
 */
struct nvmep_qp_events {
	struct mutex reader;	/* one reader at a time */
	spinlock_t lock;	/* the members below */
	u32 first;
	u32 next;
	u32 lost;
	bool ended;
	struct nvme_peer_event ring[NVMEP_MAX_EVENTS];
};

/**
 * enum nvmep_qp_state - life cycle of a queue pair
 * @NVMEP_QP_NEW: being created.  Reported as QUIESCED
 * @NVMEP_QP_LIVE: the controller processes its commands, or was stopped and
 *	nvmep_recover_stopped() did not run yet.  Reported as LIVE
 * @NVMEP_QP_QUIESCED: the controller has lost or deleted the queues; the owner
 *	may re-arm them.  Reported as QUIESCED
 * @NVMEP_QP_REARMING: a re-arm is in progress.  Reported as QUIESCED
 * @NVMEP_QP_FAILED: as QUIESCED, but re-arm is not possible.  Reported as
 *	FAILED
 * @NVMEP_QP_STOPPED: stopped for good: the controller accesses neither the
 *	rings nor the data of commands.  Reported as GONE
 * @NVMEP_QP_REVOKED: and the doorbells are revoked.  Reported as GONE
 *
 * nvmep_qp_set_state() has the table of transitions.
 */
enum nvmep_qp_state {
	NVMEP_QP_NEW,
	NVMEP_QP_LIVE,
	NVMEP_QP_QUIESCED,
	NVMEP_QP_REARMING,
	NVMEP_QP_FAILED,
	NVMEP_QP_STOPPED,
	NVMEP_QP_REVOKED,
};

/**
 * struct nvmep_qp - a peer queue pair
 * @ref: one for its file, one for each of its dma-bufs
 * @ctrl: const, reference
 * @owner: const, reference until the file is released: the open controller node
 *	whose buffers its commands may use.  It keeps them
 * @node: peers->lock: in peers->qps from before the queues are created until
 *	the file is released
 * @mode: const
 * @allow_sleep: const: system suspend may quiesce it
 * @no_static: const: doorbells are not exported to static importers
 * @sq_entries: const
 * @cq_entries: const
 * @qid: const after creation; %NVMEP_QID_NONE in mediated mode
 * @generation: written under peers->lock and @lock, read under either: of the
 *	controller when the queue pair became LIVE
 * @doorbell: const after creation: position of its doorbells in BAR0, or in
 *	the page of @relay
 * @sq: submission ring, see struct nvmep_ring
 * @cq: completion ring
 * @status_page: const: one host page, struct nvme_peer_status.  The kernel
 *	writes it under peers->lock, poller_asleep under that of the poller
 * @control_page: const: one host page, struct nvme_peer_control.  Peers write
 *	it
 * @relay: doorbells in relay and mediated mode, see struct nvmep_relay; zero in
 *	direct mode
 * @tenant: const after creation: in mediated mode, else NULL
 * @uid: const after creation: in mediated mode: the user that created it
 * @user: const after creation: in mediated mode: charged for its pages, reference;
 *	NULL if nothing is charged
 * @lock: serializes creation, re-arm and the end.  Held over admin commands and
 *	over the wait for importers: the reset work must not take it
 * @qid_held: @lock: @qid belongs to this queue pair, until it is revoked
 * @on_controller: @lock: the controller may access the rings: from before
 *	Create CQ until the queues are deleted or are known to be lost in a stop.
 *	In mediated mode it may access data of commands.  Memory is unmapped only
 *	if this is clear
 * @created: @lock: with @on_controller: generation in which the queues exist
 * @state: written under peers->lock, and under @lock as well except for changes
 *	to QUIESCED and FAILED.  READ_ONCE() without peers->lock
 * @reason: peers->lock: why it is not LIVE
 * @losses: peers->lock: how often it stopped being LIVE
 * @fail_on_stop: peers->lock: it must not be re-armed after the next stop of
 *	the controller.  One that is QUIESCED fails at once instead
 * @doorbells_revoked: peers->lock: set with nvmep_exports_revoke(), cleared
 *	with nvmep_exports_restore_doorbells()
 * @revoke_node: peers->lock: in the list of the invalidation that has taken it
 * @revoke_deadline: written under @lock, READ_ONCE() without it: jiffies until
 *	which importers may unmap the doorbells; 0 before its revocation begins
 * @doorbell_writes: peers->lock: by the CPU, when @state became REVOKED: the
 *	next owner of @qid continues the count
 * @request_work: handles a peer's request for recovery, with a reference
 * @request_losses: peers->lock: @losses when @request_work was queued.  A
 *	request from before a later loss has no effect
 * @waiters: pollers and readers of the file
 * @events: events for the owner, see struct nvmep_qp_events
 * @exports: its dma-bufs
 */
struct nvmep_qp {
	struct kref ref;
	struct nvmep_ctrl *ctrl;
	struct nvmep_peer_file *owner;
	struct list_head node;

	enum nvme_peer_mode mode;
	bool allow_sleep;
	bool no_static;
	u32 sq_entries;
	u32 cq_entries;
	u16 qid;
	u32 generation;
	struct nvmep_doorbell doorbell;
	struct nvmep_ring sq;
	struct nvmep_ring cq;
	struct nvmep_host_pages *status_page;
	struct nvmep_host_pages *control_page;
	struct nvmep_relay relay;
	struct nvmep_tenant *tenant;
	kuid_t uid;
	struct user_struct *user;

	struct mutex lock;	/* creation, re-arm and end */
	bool qid_held;
	bool on_controller;
	u32 created;

	enum nvmep_qp_state state;
	enum nvme_peer_qp_reason reason;
	u32 losses;
	bool fail_on_stop;
	bool doorbells_revoked;
	struct list_head revoke_node;
	unsigned long revoke_deadline;
	u64 doorbell_writes;
	struct work_struct request_work;
	u32 request_losses;
	wait_queue_head_t waiters;
	struct nvmep_qp_events events;

	struct nvmep_exports exports;
};

struct nvmep_qp *nvmep_qp_create(struct nvmep_peer_file *owner,
				 const struct nvme_peer_qp_create *cmd);
void nvmep_qp_release(struct nvmep_qp *qp);
bool nvmep_qp_node_active(const struct nvmep_peer_file *file);
void nvmep_qp_buf_invalidated(struct nvmep_buf *buf);
void nvmep_qp_revoke_all(struct nvmep_ctrl *ctrl);
void nvmep_qp_revoke_doorbells(struct nvmep_ctrl *ctrl);
enum nvme_peer_qp_state nvmep_qp_user_state(const struct nvmep_qp *qp);
bool nvmep_qp_usable(const struct nvmep_qp *qp);
bool nvmep_qp_rearmable(const struct nvmep_qp *qp);

/* For recover.c and qp_file.c. */
void nvmep_qp_set_state(struct nvmep_qp *qp, enum nvmep_qp_state state,
			enum nvme_peer_qp_reason reason);
void nvmep_qp_add_event(struct nvmep_qp *qp, enum nvme_peer_event_type type,
			u64 object);
struct nvme_peer_status *nvmep_qp_status(struct nvmep_qp *qp);
u64 nvmep_qp_count_doorbells(const struct nvmep_qp *qp);
void nvmep_qp_write_status(struct nvmep_qp *qp);
void nvmep_qp_wake(struct nvmep_qp *qp);
int nvmep_qp_start(struct nvmep_qp *qp);
void nvmep_qp_delete_queues(struct nvmep_qp *qp);
void nvmep_qp_fail(struct nvmep_qp *qp, enum nvme_peer_qp_reason reason);
struct nvme_peer_control *nvmep_qp_control(const struct nvmep_qp *qp);
void nvmep_qp_put(struct nvmep_qp *qp);

void nvmep_health_poll_start(struct nvmep_peers *peers);

static inline bool nvmep_qp_mediated(const struct nvmep_qp *qp)
{
	return qp->mode == NVME_PEER_MODE_MEDIATED;
}

/* recover.c */
void nvmep_recover_stopped(struct nvmep_ctrl *ctrl);
bool nvmep_recover_namespaces_changed(struct nvmep_ctrl *ctrl);
void nvmep_recover_allow_rearm(struct nvmep_ctrl *ctrl, u32 generation);
void nvmep_recover_ctrl_failed(struct nvmep_ctrl *ctrl);
int nvmep_recover_wait_scanned(struct nvmep_ctrl *ctrl);
void nvmep_recover_doorbells_revoked(struct nvmep_exports *exports);
void nvmep_recover_init(struct nvmep_qp *qp);
int nvmep_recover_go_live(struct nvmep_qp *qp);
int nvmep_recover_rearm(struct nvmep_qp *qp, u32 losses);
void nvmep_recover_uevents_init(struct nvmep_peers *peers);
void nvmep_health_poll_init(struct nvmep_peers *peers);
void nvmep_health_poll_stop(struct nvmep_peers *peers);

/* qp_file.c */
struct file *nvmep_qp_file(struct nvmep_qp *qp);

#endif /* _NVMEP_QP_H */
