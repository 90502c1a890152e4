// SPDX-License-Identifier: GPL-2.0-only
/*
 * The pool of queue identifiers.  The CPU and the peers take theirs from the same
 * pool, the peers no more than their share.
 *
 * Quarantine: a peer that was late stores a tail to the doorbell of a queue pair
 * that has ended.  Nothing in the PCI function tells whose store it is, so that
 * doorbell must not be somebody else's by then.  An identifier whose queue pair has
 * ended is handed out again only when
 *
 *  - no dma-buf of its doorbells is open: VMAs and importers hold the dma-buf; and
 *  - every process that mapped them is gone, or is the one that asks.  A GPU driver
 *    that looked the page up in a VMA (cuMemHostRegister() of IOMEMORY) goes on
 *    without the VMA, and tells nobody; what it holds goes with the files of the
 *    process.  A store that is late hits the one who made it, then.
 *
 * What the kernel cannot see is a registration that outlives the process because
 * another one has inherited the GPU driver's file.  Against that, and as nothing is
 * lost by it, peers get the identifier that has been free for the longest time.
 *
 * The CPU never takes an identifier that was a peer's.  Resets change nothing of all
 * this: a mapping of BAR0 outlives them.
 */
#include <linux/bitmap.h>
#include <linux/pid.h>
#include <linux/rcupdate.h>
#include <linux/sched/signal.h>
#include <linux/seq_file.h>
#include <linux/slab.h>

#include "ctrl.h"
#include "qids.h"

/**
 * struct nvmep_qid_writer - a process that has mapped the doorbells of a queue pair
 * @next: another one
 * @process: its thread group, referenced
 *
 * Guarded by nvmep_qids.lock.
 */
struct nvmep_qid_writer {
	struct nvmep_qid_writer *next;
	struct pid *process;
};

/* --- the pool ------------------------------------------------------------ */

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
	qids->qids = kvcalloc(capacity, sizeof(*qids->qids), GFP_KERNEL);
	qids->doorbells = kvcalloc(capacity, sizeof(*qids->doorbells),
				   GFP_KERNEL);
	if (!qids->used || !qids->peer || !qids->qids || !qids->doorbells) {
		nvmep_qids_exit(ctrl);
		return -ENOMEM;
	}
	__set_bit(0, qids->used);
	return 0;
}

static void nvmep_qid_writer_free(struct nvmep_qid_writer **link)
{
	struct nvmep_qid_writer *writer = *link;

	*link = writer->next;
	put_pid(writer->process);
	kfree(writer);
}

static void nvmep_qids_free_writers(struct nvmep_qids *qids)
{
	unsigned int qid;

	for (qid = 0; qids->qids && qid < qids->capacity; qid++)
		while (qids->qids[qid].writers)
			nvmep_qid_writer_free(&qids->qids[qid].writers);
}

/**
 * nvmep_qids_exit() - free the pool
 * @ctrl: controller, whose last reference goes
 */
void nvmep_qids_exit(struct nvmep_ctrl *ctrl)
{
	struct nvmep_qids *qids = &ctrl->qids;

	nvmep_qids_free_writers(qids);
	bitmap_free(qids->used);
	bitmap_free(qids->peer);
	kvfree(qids->qids);
	kvfree(qids->doorbells);
	qids->used = NULL;
	qids->peer = NULL;
	qids->qids = NULL;
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

/* --- quarantine ---------------------------------------------------------- */

/* Its last thread has exited, files and all; maybe nobody has waited for it. */
static bool nvmep_process_gone(struct pid *process)
{
	struct task_struct *task;
	bool gone;

	rcu_read_lock();
	task = pid_task(process, PIDTYPE_TGID);
	gone = !task ||
	       (READ_ONCE(task->exit_state) && thread_group_empty(task));
	rcu_read_unlock();
	return gone;
}

/* Processes that may store to its doorbells; others than the caller, if @others. */
static unsigned int nvmep_qid_writers(struct nvmep_qid *entry, bool others)
{
	struct nvmep_qid_writer **link = &entry->writers;
	unsigned int count = 0;

	while (*link) {
		if (nvmep_process_gone((*link)->process)) {
			nvmep_qid_writer_free(link);
			continue;
		}
		count += !others || (*link)->process != task_tgid(current);
		link = &(*link)->next;
	}
	return count;
}

/* Nobody's, but somebody other than the caller may still store to its doorbells. */
static bool nvmep_qid_quarantined(struct nvmep_qids *qids, unsigned int qid)
{
	struct nvmep_qid *entry = &qids->qids[qid];

	lockdep_assert_held(&qids->lock);

	return !test_bit(qid, qids->used) &&
	       (entry->exports || nvmep_qid_writers(entry, true));
}

static unsigned int nvmep_qids_count_quarantined(struct nvmep_qids *qids)
{
	unsigned int qid, count = 0;

	for (qid = 1; qid <= qids->total; qid++)
		count += nvmep_qid_quarantined(qids, qid);
	return count;
}

/**
 * nvmep_qid_export() - a dma-buf of its doorbells is made
 * @ctrl: controller
 * @qid: of a queue pair that has not ended, or of which there is another dma-buf
 */
void nvmep_qid_export(struct nvmep_ctrl *ctrl, u16 qid)
{
	struct nvmep_qids *qids = &ctrl->qids;

	spin_lock(&qids->lock);
	qids->qids[qid].exports++;
	spin_unlock(&qids->lock);
}

/**
 * nvmep_qid_unexport() - undo nvmep_qid_export(): the dma-buf is released
 * @ctrl: controller
 * @qid: whose doorbells
 */
void nvmep_qid_unexport(struct nvmep_ctrl *ctrl, u16 qid)
{
	struct nvmep_qids *qids = &ctrl->qids;

	spin_lock(&qids->lock);
	WARN_ON_ONCE(!qids->qids[qid].exports--);
	qids->qids[qid].freed = ++qids->freed;
	spin_unlock(&qids->lock);
}

static bool nvmep_qid_has_writer(const struct nvmep_qid *entry,
				 const struct pid *process)
{
	const struct nvmep_qid_writer *writer = entry->writers;

	while (writer && writer->process != process)
		writer = writer->next;
	return writer;
}

/**
 * nvmep_qid_add_writer() - the calling process is about to map its doorbells
 * @ctrl: controller
 * @qid: whose doorbells; a dma-buf of them is open
 *
 * Return: 0 or -ENOMEM.
 */
int nvmep_qid_add_writer(struct nvmep_ctrl *ctrl, u16 qid)
{
	struct nvmep_qid_writer *writer = kmalloc(sizeof(*writer), GFP_KERNEL);
	struct nvmep_qids *qids = &ctrl->qids;
	struct nvmep_qid *entry = &qids->qids[qid];

	if (!writer)
		return -ENOMEM;
	spin_lock(&qids->lock);
	if (!nvmep_qid_has_writer(entry, task_tgid(current))) {
		writer->process = get_pid(task_tgid(current));
		writer->next = entry->writers;
		entry->writers = writer;
		writer = NULL;
	}
	spin_unlock(&qids->lock);
	kfree(writer);
	return 0;
}

static void nvmep_show_quarantined(struct seq_file *seq, unsigned int qid,
				   const struct nvmep_qid *entry)
{
	const struct nvmep_qid_writer *writer;

	seq_printf(seq, "%u %u", qid, entry->exports);
	for (writer = entry->writers; writer; writer = writer->next)
		seq_printf(seq, " %d", pid_vnr(writer->process));
	seq_putc(seq, '\n');
}

/**
 * nvmep_qids_show_quarantine() - who keeps which identifiers
 * @ctrl: controller
 * @seq: where to: a line for each identifier, with the dma-bufs of its doorbells
 *	that are open and the processes that mapped them
 */
void nvmep_qids_show_quarantine(struct nvmep_ctrl *ctrl, struct seq_file *seq)
{
	struct nvmep_qids *qids = &ctrl->qids;
	unsigned int qid;

	spin_lock(&qids->lock);
	for (qid = 1; qid < qids->capacity; qid++)
		if (!test_bit(qid, qids->used) &&
		    (qids->qids[qid].exports ||
		     nvmep_qid_writers(&qids->qids[qid], false)))
			nvmep_show_quarantined(seq, qid, &qids->qids[qid]);
	spin_unlock(&qids->lock);
}

/* --- taking and giving back ---------------------------------------------- */

/* Free, and never was a peer's. */
static bool nvmep_qid_untouched(struct nvmep_qids *qids, unsigned int qid)
{
	return !test_bit(qid, qids->used) && !qids->qids[qid].freed &&
	       !nvmep_qid_quarantined(qids, qid);
}

/* The lowest that never was a peer's, or 0. */
static unsigned int nvmep_qid_find_cpu(struct nvmep_qids *qids)
{
	unsigned int qid;

	for (qid = 1; qid <= qids->total; qid++)
		if (nvmep_qid_untouched(qids, qid))
			return qid;
	return 0;
}

/* Should a peer rather have @a than @b? */
static bool nvmep_qid_better(struct nvmep_qids *qids, unsigned int a,
			     unsigned int b)
{
	/* One that is the caller's own by a mapping of his comes last. */
	bool own_a = qids->qids[a].writers, own_b = qids->qids[b].writers;

	if (own_a != own_b)
		return own_b;
	return qids->qids[a].freed < qids->qids[b].freed;
}

/* The one that has been free for the longest time, or 0. */
static unsigned int nvmep_qid_find_peer(struct nvmep_qids *qids)
{
	unsigned int qid, found = 0;

	for_each_clear_bit(qid, qids->used, qids->total + 1)
		if (!nvmep_qid_quarantined(qids, qid) &&
		    (!found || nvmep_qid_better(qids, qid, found)))
			found = qid;
	return found;
}

static int nvmep_qid_find(struct nvmep_qids *qids, enum nvmep_qid_owner owner)
{
	unsigned int qid;

	lockdep_assert_held(&qids->lock);

	if (owner == NVMEP_QID_PEER && qids->peers_barred)
		return -EBUSY;
	if (owner == NVMEP_QID_PEER && qids->peer_count >= qids->peer_max)
		return -ENOSPC;
	qid = owner == NVMEP_QID_PEER ? nvmep_qid_find_peer(qids) :
					nvmep_qid_find_cpu(qids);
	return qid ? qid : -ENOSPC;
}

/**
 * nvmep_qid_alloc() - take a free queue identifier
 * @ctrl: controller
 * @owner: who wants it; for a peer, it is the calling process's
 *
 * Return: the identifier; -ENOSPC if none is free, or only such are as somebody
 * may still store to, or the peers' share is used up; -EBUSY while peers are barred.
 */
int nvmep_qid_alloc(struct nvmep_ctrl *ctrl, enum nvmep_qid_owner owner)
{
	struct nvmep_qids *qids = &ctrl->qids;
	int qid;

	spin_lock(&qids->lock);
	qid = nvmep_qid_find(qids, owner);
	if (qid > 0) {
		__set_bit(qid, qids->used);
		qids->doorbells[qid] = (struct nvmep_doorbell_count){ };
	}
	if (qid > 0 && owner == NVMEP_QID_PEER) {
		__set_bit(qid, qids->peer);
		qids->peer_count++;
	}
	spin_unlock(&qids->lock);
	return qid;
}

/**
 * nvmep_qid_free() - give a queue identifier back
 * @ctrl: controller
 * @qid: from nvmep_qid_alloc(); no queue of that name is left on the controller.
 *	Who may still store to its doorbells keeps it from others
 */
void nvmep_qid_free(struct nvmep_ctrl *ctrl, u16 qid)
{
	struct nvmep_qids *qids = &ctrl->qids;

	spin_lock(&qids->lock);
	WARN_ON_ONCE(!__test_and_clear_bit(qid, qids->used));
	if (__test_and_clear_bit(qid, qids->peer)) {
		qids->peer_count--;
		qids->qids[qid].freed = ++qids->freed;
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
 * nvmep_qids_for_cpu() - how many could be the CPU's
 * @ctrl: controller
 *
 * Return: those that it has, and those that no peer ever had.
 */
unsigned int nvmep_qids_for_cpu(struct nvmep_ctrl *ctrl)
{
	struct nvmep_qids *qids = &ctrl->qids;
	unsigned int qid, count = 0;

	spin_lock(&qids->lock);
	for (qid = 1; qid <= qids->total; qid++)
		count += nvmep_qid_untouched(qids, qid) ||
			 (test_bit(qid, qids->used) &&
			  !test_bit(qid, qids->peer));
	spin_unlock(&qids->lock);
	return count;
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
	usage->quarantined = nvmep_qids_count_quarantined(qids);
	free = qids->total + 1 - usage->quarantined -
	       bitmap_weight(qids->used, qids->total + 1);
	share = qids->peer_max - min(qids->peer_max, qids->peer_count);
	usage->total = qids->total;
	usage->cpu = bitmap_weight(qids->used, qids->capacity) - 1 -
		     qids->peer_count;
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
