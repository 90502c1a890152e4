/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * A peer queue pair.
 */
#ifndef _NVMEP_QP_H
#define _NVMEP_QP_H

#include <linux/kref.h>
#include <linux/list.h>
#include <linux/mutex.h>
#include <linux/types.h>
#include <linux/wait.h>

#include <linux/nvme_peer.h>

#include "doorbell.h"
#include "export.h"
#include "peers.h"
#include "record.h"
#include "ring.h"

struct nvmep_buf;
struct nvmep_ctrl;
struct nvmep_host_pages;
struct nvmep_peer_file;

/**
 * enum nvmep_qp_state - a queue pair from its beginning to its end
 * @NVMEP_QP_NEW: being made.  User space: QUIESCED
 * @NVMEP_QP_LIVE: the controller serves it, or was stopped a moment ago.  User
 *	space: LIVE
 * @NVMEP_QP_QUIESCED: the controller was stopped and has lost it, or had it
 *	taken away; it can come back.  User space: QUIESCED
 * @NVMEP_QP_FAILED: likewise, and it cannot come back.  User space: FAILED
 * @NVMEP_QP_STOPPED: deleted: the controller does not know it any more and does
 *	not touch its rings or the data of its commands.  User space: GONE
 * @NVMEP_QP_REVOKED: the peers were cut off from its doorbells, too.  User
 *	space: GONE
 *
 * It only grows, but for the change from QUIESCED to LIVE.
 */
enum nvmep_qp_state {
	NVMEP_QP_NEW,
	NVMEP_QP_LIVE,
	NVMEP_QP_QUIESCED,
	NVMEP_QP_FAILED,
	NVMEP_QP_STOPPED,
	NVMEP_QP_REVOKED,
};

/**
 * struct nvmep_qp - a peer queue pair
 * @ref: one for its file, one for each dma-buf made of it
 * @ctrl: const, reference
 * @owner: const, reference until the file is released: the open controller
 *	node whose buffers its commands may use
 * @node: peers->lock: in peers->qps from before the controller knows of it
 *	until its file is released
 * @life: peers->lock: whether the controller may act for it
 * @mode: const
 * @allow_sleep: const: sleep may cost it what a reset does
 * @sq_entries: const
 * @cq_entries: const
 * @qid: const after creation
 * @generation: peers->lock and @lock: of the controller when it became LIVE; only
 *	one of them is needed to read it
 * @doorbell: const after creation: where in BAR0 its doorbells are
 * @sq: submission ring, see struct nvmep_ring
 * @cq: completion ring
 * @status_page: const: one host page, struct nvme_peer_status, which is written
 *	under peers->lock
 * @request_page: const: one host page, struct nvme_peer_request, which peers write
 * @lock: serialises creation, return and the end of the queue pair; held over admin
 *	commands and over the wait for importers, so the reset work must never
 *	take it
 * @qid_held: @lock: @qid belongs to it, until it is revoked
 * @state: written under peers->lock, and but for changes to QUIESCED and FAILED
 *	under @lock, too.  Read with READ_ONCE() without peers->lock
 * @reason: peers->lock: why it is not live, a positive errno
 * @losses: peers->lock: how often it stopped being LIVE
 * @outdated: peers->lock: it must not come back after the stop that follows
 * @waiters: pollers and readers of the file
 * @records: what happened to it, see struct nvmep_records
 * @exports: its dma-bufs
 */
struct nvmep_qp {
	struct kref ref;
	struct nvmep_ctrl *ctrl;
	struct nvmep_peer_file *owner;
	struct list_head node;
	struct nvmep_life life;

	enum nvme_peer_mode mode;
	bool allow_sleep;
	u32 sq_entries;
	u32 cq_entries;
	u16 qid;
	u32 generation;
	struct nvmep_doorbell doorbell;
	struct nvmep_ring sq;
	struct nvmep_ring cq;
	struct nvmep_host_pages *status_page;
	struct nvmep_host_pages *request_page;

	struct mutex lock;	/* beginning, return and end */
	bool qid_held;

	enum nvmep_qp_state state;
	u32 reason;
	u32 losses;
	bool outdated;
	wait_queue_head_t waiters;
	struct nvmep_records records;

	struct nvmep_exports exports;
};

struct nvmep_qp *nvmep_qp_create(struct nvmep_peer_file *owner,
				 const struct nvme_peer_qp_create *cmd);
void nvmep_qp_release(struct nvmep_qp *qp);
void nvmep_qp_stop_users(const struct nvmep_buf *buf);
void nvmep_qp_revoke_stopped(struct nvmep_ctrl *ctrl);
void nvmep_qp_revoke_all(struct nvmep_ctrl *ctrl, int reason);
void nvmep_qp_withdraw_all(struct nvmep_ctrl *ctrl);
enum nvme_peer_qp_state nvmep_qp_user_state(const struct nvmep_qp *qp);
bool nvmep_qp_usable(const struct nvmep_qp *qp);

/* For recovery. */
void nvmep_qp_set_state(struct nvmep_qp *qp, enum nvmep_qp_state state,
			u32 reason);
void nvmep_qp_record(struct nvmep_qp *qp, enum nvme_peer_event_type type);
void nvmep_qp_write_status(struct nvmep_qp *qp);
void nvmep_qp_wake(struct nvmep_qp *qp);
int nvmep_qp_start(struct nvmep_qp *qp);
void nvmep_qp_put(struct nvmep_qp *qp);

#endif /* _NVMEP_QP_H */
