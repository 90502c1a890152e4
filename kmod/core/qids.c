// SPDX-License-Identifier: GPL-2.0-only
/*
 * The pool of queue identifiers.  The CPU and the peers take theirs from the same
 * pool, the peers no more than their share.
 */
#include <linux/bitmap.h>
#include <linux/slab.h>

#include "ctrl.h"
#include "qids.h"

/**
 * nvmep_qids_init() - make an empty pool
 * @ctrl: controller
 * @capacity: identifiers that its doorbell registers have room for, with 0
 *
 * Nothing can be allocated until nvmep_qids_grant().
 *
 * Return: 0 or -ENOMEM.
 */
int nvmep_qids_init(struct nvmep_ctrl *ctrl, unsigned int capacity)
{
	struct nvmep_qids *qids = &ctrl->qids;

	spin_lock_init(&qids->lock);
	qids->capacity = capacity;
	qids->used = bitmap_zalloc(capacity, GFP_KERNEL);
	qids->peer = bitmap_zalloc(capacity, GFP_KERNEL);
	qids->doorbells = kvcalloc(capacity, sizeof(*qids->doorbells),
				   GFP_KERNEL);
	if (!qids->used || !qids->peer || !qids->doorbells) {
		nvmep_qids_exit(ctrl);
		return -ENOMEM;
	}
	__set_bit(0, qids->used);
	return 0;
}

/**
 * nvmep_qids_exit() - free the pool
 * @ctrl: controller, whose last reference goes
 */
void nvmep_qids_exit(struct nvmep_ctrl *ctrl)
{
	struct nvmep_qids *qids = &ctrl->qids;

	bitmap_free(qids->used);
	bitmap_free(qids->peer);
	kvfree(qids->doorbells);
	qids->used = NULL;
	qids->peer = NULL;
	qids->doorbells = NULL;
}

/**
 * nvmep_qids_grant() - the controller said how many queues it has
 * @ctrl: controller
 * @granted: queue pairs, without the admin queue
 * @peer_max: most that peers may have
 *
 * Identifiers that are in use stay so, whatever the controller says now.
 */
void nvmep_qids_grant(struct nvmep_ctrl *ctrl, unsigned int granted,
		      unsigned int peer_max)
{
	struct nvmep_qids *qids = &ctrl->qids;

	spin_lock(&qids->lock);
	WRITE_ONCE(qids->total, min(granted, qids->capacity - 1));
	qids->peer_max = min(peer_max, qids->total);
	spin_unlock(&qids->lock);
}

/**
 * nvmep_qid_alloc() - take the lowest free queue identifier
 * @ctrl: controller
 * @owner: who wants it
 *
 * Return: the identifier; -ENOSPC if none is free or the peers' share is
 * used up; -EBUSY while peers are barred.
 */
int nvmep_qid_alloc(struct nvmep_ctrl *ctrl, enum nvmep_qid_owner owner)
{
	struct nvmep_qids *qids = &ctrl->qids;
	unsigned long qid;
	int ret = -ENOSPC;

	spin_lock(&qids->lock);
	if (owner == NVMEP_QID_PEER && qids->peers_barred) {
		ret = -EBUSY;
		goto out;
	}
	if (owner == NVMEP_QID_PEER && qids->peer_count >= qids->peer_max)
		goto out;
	qid = find_first_zero_bit(qids->used, qids->total + 1);
	if (qid > qids->total)
		goto out;
	__set_bit(qid, qids->used);
	if (owner == NVMEP_QID_PEER) {
		__set_bit(qid, qids->peer);
		qids->peer_count++;
	} else {
		qids->cpu++;
	}
	qids->doorbells[qid] = (struct nvmep_doorbell_count){ };
	ret = qid;
out:
	spin_unlock(&qids->lock);
	return ret;
}

/**
 * nvmep_qid_free() - give a queue identifier back
 * @ctrl: controller
 * @qid: from nvmep_qid_alloc(); no queue of that name is left on the controller
 */
void nvmep_qid_free(struct nvmep_ctrl *ctrl, u16 qid)
{
	struct nvmep_qids *qids = &ctrl->qids;

	spin_lock(&qids->lock);
	if (!WARN_ON_ONCE(!__test_and_clear_bit(qid, qids->used))) {
		if (__test_and_clear_bit(qid, qids->peer))
			qids->peer_count--;
		else
			qids->cpu--;
	}
	spin_unlock(&qids->lock);
}

/**
 * nvmep_qids_bar_peers() - peers have no queue pair, and get none for a while
 * @ctrl: controller
 *
 * One caller at a time, who ends it with nvmep_qids_admit_peers().
 *
 * Return: 0, or -EBUSY if they have one.
 */
int nvmep_qids_bar_peers(struct nvmep_ctrl *ctrl)
{
	struct nvmep_qids *qids = &ctrl->qids;
	int ret = -EBUSY;

	spin_lock(&qids->lock);
	if (!qids->peer_count) {
		qids->peers_barred = true;
		ret = 0;
	}
	spin_unlock(&qids->lock);
	return ret;
}

/**
 * nvmep_qids_admit_peers() - undo nvmep_qids_bar_peers()
 * @ctrl: controller
 */
void nvmep_qids_admit_peers(struct nvmep_ctrl *ctrl)
{
	struct nvmep_qids *qids = &ctrl->qids;

	spin_lock(&qids->lock);
	qids->peers_barred = false;
	spin_unlock(&qids->lock);
}

/**
 * nvmep_qid_usage() - how the pool stands
 * @ctrl: controller
 * @usage: filled
 */
void nvmep_qid_usage(struct nvmep_ctrl *ctrl, struct nvmep_qid_usage *usage)
{
	struct nvmep_qids *qids = &ctrl->qids;
	unsigned int free, share;

	spin_lock(&qids->lock);
	free = qids->total + 1 -
	       min_t(unsigned int, qids->total + 1,
		     bitmap_weight(qids->used, qids->total + 1));
	share = qids->peer_max - min(qids->peer_max, qids->peer_count);
	usage->total = qids->total;
	usage->cpu = qids->cpu;
	usage->peer_max = qids->peer_max;
	usage->peer_free = min(free, share);
	spin_unlock(&qids->lock);
}

/**
 * nvmep_qid_granted() - may there be a queue of this name on the controller?
 * @ctrl: controller
 * @qid: identifier
 *
 * Return: false if the controller grants fewer queues now than when @qid was
 * taken.
 */
bool nvmep_qid_granted(struct nvmep_ctrl *ctrl, u16 qid)
{
	return qid <= READ_ONCE(ctrl->qids.total);
}

/**
 * nvmep_qid_next_peer() - walk the identifiers that peers have
 * @ctrl: controller
 * @qid: 0 to start, else the last one returned
 *
 * Return: the next one, 0 if there is none.
 */
u16 nvmep_qid_next_peer(struct nvmep_ctrl *ctrl, u16 qid)
{
	struct nvmep_qids *qids = &ctrl->qids;
	unsigned long next;

	spin_lock(&qids->lock);
	next = find_next_bit(qids->peer, qids->capacity, qid + 1);
	spin_unlock(&qids->lock);
	return next < qids->capacity ? next : 0;
}
