// SPDX-License-Identifier: GPL-2.0-only
/*
 * The pool of queue identifiers, from which the CPU and peers allocate.  Peers
 * have a limit.
 *
 * Quarantine.  A peer may store to the doorbell of its queue pair after the
 * queue pair was released.  The controller cannot distinguish such a stale
 * store from one of the identifier's next owner, whose queue it would corrupt.
 * So a released identifier is reused only when
 *
 *  - no dma-buf of its doorbells is open: VMAs and importers hold a reference
 *    to the dma-buf; and
 *  - every process that has mapped its doorbells has exited, or is the caller.
 *    A GPU driver that found the page through a VMA (cuMemHostRegister() with
 *    IOMEMORY) keeps its mapping without the VMA; the files of the process
 *    release it.  A stale store then affects only the process that made it.
 *
 * Choice.  A peer gets an identifier that the calling process has mapped as the
 * same user, if one is free, and else one of the rest.  A process that creates and deletes
 * queue pairs again and again so keeps from others as many identifiers as it had
 * queue pairs at once, not all.  That admits no store that the second rule does
 * not admit: it hits the process that made it, only sooner, so a process has to
 * end the stores of its GPU before it creates the next queue pair.
 *
 * A process is the thread group that called mmap().  The kernel cannot see a
 * mapping that outlives it because another process has inherited the file of
 * the GPU driver, or because another thread group shares its address space
 * (CLONE_VM without CLONE_THREAD) and had the page registered.  While the
 * process lives, such a store hits its own next queue pair, and no other
 * process: it has shared its files or memory.  After it has exited, its
 * identifiers are those of the rest.  Of these, as of its own, a peer gets the
 * one that was released the longest time ago, which costs nothing and gives a
 * hidden mapping time to end.
 *
 * Within one binding, the CPU never uses an identifier that was a peer's.  Queue
 * pairs that the kernel shares among mediated ones prefer others, then take the
 * one that was released the longest time ago and that no process can reach.
 * Neither a reset nor unbinding ends the quarantine: a mapping of BAR0 outlives
 * both.  A late store hits an address, so the quarantine belongs to the physical
 * range of BAR0.  It lives as long as the module; one that has become empty is
 * freed when its last controller or a later one goes or comes.  Only the module
 * can keep it: another driver of the controller is not protected.
 */
#include <linux/bitmap.h>
#include <linux/cred.h>
#include <linux/list.h>
#include <linux/mutex.h>
#include <linux/pci.h>
#include <linux/pid.h>
#include <linux/rcupdate.h>
#include <linux/sched/signal.h>
#include <linux/seq_file.h>
#include <linux/slab.h>
#include <linux/uidgid.h>

#include "ctrl.h"
#include "qids.h"

/* Maximum number of processes that may store to the doorbells of one queue. */
#define NVMEP_MAX_MAPPERS	64

/**
 * struct nvmep_qid_mapper - a process that has mapped a queue pair's doorbells
 * @next: next one, or NULL
 * @process: its thread group; holds a reference
 * @uid: its effective user when it last did: the program that had that user may
 *	have executed a set-user-ID one, and kept what stores to the doorbells
 *
 * Guarded by &nvmep_quarantine.lock.
 */
struct nvmep_qid_mapper {
	struct nvmep_qid_mapper *next;
	struct pid *process;
	kuid_t uid;
};

/**
 * struct nvmep_quarantine - processes and importers that may store to the
 *	doorbells of a BAR0
 * @node: nvmep_quarantines_lock: in nvmep_quarantines
 * @users: nvmep_quarantines_lock: controllers with this BAR0, with those that
 *	were unbound and have open files or dma-bufs
 * @start: const: physical address of BAR0
 * @length: const: bytes of BAR0
 * @stride: const: of the doorbells, bytes
 * @lock: guards @freed, @qids and the pools of @users
 * @freed: number of releases so far, orders &nvmep_qid.freed
 * @capacity: const: entries of @qids
 * @qids: by queue identifier
 */
struct nvmep_quarantine {
	struct list_head node;
	unsigned int users;
	phys_addr_t start;
	resource_size_t length;
	u32 stride;
	spinlock_t lock;	/* innermost; see ctrl.h */
	u64 freed;
	unsigned int capacity;
	struct nvmep_qid qids[];
};

static DEFINE_MUTEX(nvmep_quarantines_lock);	/* outer of quarantine->lock */
static LIST_HEAD(nvmep_quarantines);

static void nvmep_qid_mapper_free(struct nvmep_qid_mapper **link)
{
	struct nvmep_qid_mapper *mapper = *link;

	*link = mapper->next;
	put_pid(mapper->process);
	kfree(mapper);
}

/* Has its last thread exited and closed its files?  It may be a zombie. */
static bool nvmep_process_exited(struct pid *process)
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

/*
 * Number of processes that may store to its doorbells; if @others, without the
 * calling process.  Frees the entries of those that have exited.
 */
static unsigned int nvmep_qid_count_mappers(struct nvmep_qid *entry,
					    bool others)
{
	struct nvmep_qid_mapper **link = &entry->mappers;
	unsigned int count = 0;

	while (*link) {
		if (nvmep_process_exited((*link)->process)) {
			nvmep_qid_mapper_free(link);
			continue;
		}
		count += !others || (*link)->process != task_tgid(current);
		link = &(*link)->next;
	}
	return count;
}

/* --- quarantines by BAR0 ------------------------------------------------- */

/*
 * May an importer or a process store to its doorbells; if @others, a process
 * other than the caller?
 */
static bool nvmep_qid_reachable(struct nvmep_qid *entry, bool others)
{
	return entry->exports || nvmep_qid_count_mappers(entry, others);
}

/* Number of identifiers whose doorbells a peer may store to. */
static unsigned int nvmep_quarantine_count(struct nvmep_quarantine *quarantine)
{
	unsigned int qid, count = 0;

	spin_lock(&quarantine->lock);
	for (qid = 0; qid < quarantine->capacity; qid++)
		count += nvmep_qid_reachable(&quarantine->qids[qid], false);
	spin_unlock(&quarantine->lock);
	return count;
}

/*
 * In a new binding the CPU may use each identifier again whose doorbells no
 * peer may store to.
 */
static void nvmep_quarantine_rebind(struct nvmep_quarantine *quarantine)
{
	unsigned int qid;

	spin_lock(&quarantine->lock);
	for (qid = 0; qid < quarantine->capacity; qid++)
		if (!nvmep_qid_reachable(&quarantine->qids[qid], false))
			quarantine->qids[qid].freed = 0;
	spin_unlock(&quarantine->lock);
}

static void nvmep_quarantine_free(struct nvmep_quarantine *quarantine)
{
	unsigned int qid;

	list_del(&quarantine->node);
	for (qid = 0; qid < quarantine->capacity; qid++)
		while (quarantine->qids[qid].mappers)
			nvmep_qid_mapper_free(&quarantine->qids[qid].mappers);
	kvfree(quarantine);
}

static bool nvmep_quarantine_overlaps(const struct nvmep_quarantine *a,
				      const struct nvmep_quarantine *b)
{
	return a->start < b->start + b->length &&
	       b->start < a->start + a->length;
}

static bool nvmep_quarantine_same(const struct nvmep_quarantine *a,
				  const struct nvmep_quarantine *b)
{
	return a->start == b->start && a->length == b->length &&
	       a->stride == b->stride && a->capacity == b->capacity;
}

/*
 * The quarantine of an earlier binding, or @fresh.  -EBUSY if BAR0 overlaps one
 * in which the same address belongs to another identifier.
 */
static struct nvmep_quarantine *
nvmep_quarantine_find(struct nvmep_quarantine *fresh)
{
	struct nvmep_quarantine *old, *next;

	lockdep_assert_held(&nvmep_quarantines_lock);

	list_for_each_entry_safe(old, next, &nvmep_quarantines, node) {
		unsigned int held = nvmep_quarantine_count(old);

		if (nvmep_quarantine_same(old, fresh)) {
			nvmep_quarantine_rebind(old);
			return old;
		}
		if (!held && !old->users)
			nvmep_quarantine_free(old);
		else if (held && nvmep_quarantine_overlaps(old, fresh))
			return ERR_PTR(-EBUSY);
	}
	list_add(&fresh->node, &nvmep_quarantines);
	return fresh;
}

static struct nvmep_quarantine *
nvmep_quarantine_get(const struct nvmep_ctrl *ctrl, unsigned int capacity)
{
	struct nvmep_quarantine *fresh, *found;

	fresh = kvzalloc(struct_size(fresh, qids, capacity), GFP_KERNEL);
	if (!fresh)
		return ERR_PTR(-ENOMEM);
	spin_lock_init(&fresh->lock);
	fresh->start = pci_resource_start(ctrl->pdev, 0);
	fresh->length = ctrl->bar_len;
	fresh->stride = ctrl->doorbell_stride;
	fresh->capacity = capacity;

	mutex_lock(&nvmep_quarantines_lock);
	found = nvmep_quarantine_find(fresh);
	if (!IS_ERR(found))
		found->users++;
	mutex_unlock(&nvmep_quarantines_lock);
	if (found != fresh)
		kvfree(fresh);
	return found;
}

/* One that is not empty stays for the next binding. */
static void nvmep_quarantine_put(struct nvmep_quarantine *quarantine)
{
	mutex_lock(&nvmep_quarantines_lock);
	if (!--quarantine->users && !nvmep_quarantine_count(quarantine))
		nvmep_quarantine_free(quarantine);
	mutex_unlock(&nvmep_quarantines_lock);
}

/**
 * nvmep_quarantines_exit() - free all quarantines: the module is unloaded
 */
void nvmep_quarantines_exit(void)
{
	struct nvmep_quarantine *quarantine, *next;

	list_for_each_entry_safe(quarantine, next, &nvmep_quarantines, node)
		nvmep_quarantine_free(quarantine);
}

/* --- the pool ------------------------------------------------------------ */

/**
 * nvmep_qids_init() - initialise an empty pool
 * @ctrl: controller
 * @capacity: queue pairs, with the admin queue, whose doorbells fit into BAR0
 *
 * Allocations fail until nvmep_qids_grant() is called.
 *
 * Return: 0; -ENOMEM; -EBUSY, logged, if a peer may store to the doorbells of
 * another controller that had an overlapping BAR0.
 */
int nvmep_qids_init(struct nvmep_ctrl *ctrl, unsigned int capacity)
{
	struct nvmep_qids *qids = &ctrl->qids;
	struct nvmep_quarantine *quarantine;

	qids->capacity = capacity;
	qids->used = bitmap_zalloc(capacity, GFP_KERNEL);
	qids->peer = bitmap_zalloc(capacity, GFP_KERNEL);
	qids->shared = bitmap_zalloc(capacity, GFP_KERNEL);
	qids->doorbells = kvcalloc(capacity, sizeof(*qids->doorbells),
				   GFP_KERNEL);
	if (!qids->used || !qids->peer || !qids->shared || !qids->doorbells) {
		nvmep_qids_exit(ctrl);
		return -ENOMEM;
	}
	quarantine = nvmep_quarantine_get(ctrl, capacity);
	if (IS_ERR(quarantine)) {
		nvmep_qids_exit(ctrl);
		if (PTR_ERR(quarantine) == -EBUSY)
			dev_err(ctrl->dev,
				"a peer may store to BAR0 as to that of a controller that was here before: end the processes that mapped doorbells\n");
		return PTR_ERR(quarantine);
	}
	qids->quarantine = quarantine;
	__set_bit(0, qids->used);
	return 0;
}

/**
 * nvmep_qids_exit() - free the pool
 * @ctrl: controller without references
 */
void nvmep_qids_exit(struct nvmep_ctrl *ctrl)
{
	struct nvmep_qids *qids = &ctrl->qids;

	if (qids->quarantine)
		nvmep_quarantine_put(qids->quarantine);
	bitmap_free(qids->used);
	bitmap_free(qids->peer);
	bitmap_free(qids->shared);
	kvfree(qids->doorbells);
	qids->used = NULL;
	qids->peer = NULL;
	qids->shared = NULL;
	qids->quarantine = NULL;
	qids->doorbells = NULL;
}

/**
 * nvmep_qids_grant() - set the number of queues that the controller grants
 * @ctrl: controller
 * @granted: queue pairs, without the admin queue
 * @peer_max: limit of peers
 *
 * Identifiers above @granted that are in use stay in use.
 */
void nvmep_qids_grant(struct nvmep_ctrl *ctrl, unsigned int granted,
		      unsigned int peer_max)
{
	struct nvmep_qids *qids = &ctrl->qids;

	spin_lock(&qids->quarantine->lock);
	WRITE_ONCE(qids->total, min(granted, qids->capacity - 1));
	qids->peer_max = min(peer_max, qids->total);
	spin_unlock(&qids->quarantine->lock);
}

/* --- quarantine ---------------------------------------------------------- */

/*
 * Not in use, but a process other than the caller may store to its doorbells.
 */
static bool nvmep_qid_quarantined(struct nvmep_qids *qids, unsigned int qid)
{
	lockdep_assert_held(&qids->quarantine->lock);

	return !test_bit(qid, qids->used) &&
	       nvmep_qid_reachable(&qids->quarantine->qids[qid], true);
}

static unsigned int nvmep_qids_count_quarantined(struct nvmep_qids *qids,
						 unsigned int limit)
{
	unsigned int qid, count = 0;

	for (qid = 1; qid < limit; qid++)
		count += nvmep_qid_quarantined(qids, qid);
	return count;
}

/**
 * nvmep_qid_export() - count a new dma-buf of an identifier's doorbells
 * @ctrl: controller
 * @qid: in use, or with an open dma-buf already
 */
void nvmep_qid_export(struct nvmep_ctrl *ctrl, u16 qid)
{
	struct nvmep_qids *qids = &ctrl->qids;

	spin_lock(&qids->quarantine->lock);
	qids->quarantine->qids[qid].exports++;
	spin_unlock(&qids->quarantine->lock);
}

/**
 * nvmep_qid_unexport() - undo nvmep_qid_export() when the dma-buf is released
 * @ctrl: controller
 * @qid: queue identifier
 */
void nvmep_qid_unexport(struct nvmep_ctrl *ctrl, u16 qid)
{
	struct nvmep_qids *qids = &ctrl->qids;

	spin_lock(&qids->quarantine->lock);
	WARN_ON_ONCE(!qids->quarantine->qids[qid].exports--);
	qids->quarantine->qids[qid].freed = ++qids->quarantine->freed;
	spin_unlock(&qids->quarantine->lock);
}

static struct nvmep_qid_mapper *
nvmep_qid_find_mapper(const struct nvmep_qid *entry, const struct pid *process)
{
	struct nvmep_qid_mapper *mapper = entry->mappers;

	while (mapper && mapper->process != process)
		mapper = mapper->next;
	return mapper;
}

/**
 * nvmep_qid_add_mapper() - record that the calling process maps the doorbells
 * @ctrl: controller
 * @qid: queue identifier; a dma-buf of its doorbells is open
 *
 * Must be called before the mapping exists.
 *
 * Return: 0; -ENOMEM; -ENOSPC if too many processes have mapped them.
 */
int nvmep_qid_add_mapper(struct nvmep_ctrl *ctrl, u16 qid)
{
	struct nvmep_qids *qids = &ctrl->qids;
	struct nvmep_qid *entry = &qids->quarantine->qids[qid];
	struct nvmep_qid_mapper *mapper, *fresh;
	int err = 0;

	fresh = kmalloc(sizeof(*fresh), GFP_KERNEL_ACCOUNT);
	if (!fresh)
		return -ENOMEM;
	spin_lock(&qids->quarantine->lock);
	mapper = nvmep_qid_find_mapper(entry, task_tgid(current));
	if (nvmep_qid_count_mappers(entry, true) >= NVMEP_MAX_MAPPERS) {
		err = -ENOSPC;
	} else if (mapper) {
		mapper->uid = current_euid();
	} else {
		fresh->process = get_pid(task_tgid(current));
		fresh->uid = current_euid();
		fresh->next = entry->mappers;
		entry->mappers = fresh;
		fresh = NULL;
	}
	spin_unlock(&qids->quarantine->lock);
	kfree(fresh);
	return err;
}

static void nvmep_show_quarantined(struct seq_file *seq, unsigned int qid,
				   const struct nvmep_qid *entry)
{
	const struct nvmep_qid_mapper *mapper;

	seq_printf(seq, "%u %u", qid, entry->exports);
	for (mapper = entry->mappers; mapper; mapper = mapper->next)
		seq_printf(seq, " %d", pid_vnr(mapper->process));
	seq_putc(seq, '\n');
}

/**
 * nvmep_qids_show_quarantine() - list the identifiers in quarantine
 * @ctrl: controller
 * @seq: output: for each identifier a line with the number of open dma-bufs of
 *	its doorbells and the IDs of the processes that have mapped them
 */
void nvmep_qids_show_quarantine(struct nvmep_ctrl *ctrl, struct seq_file *seq)
{
	struct nvmep_qids *qids = &ctrl->qids;
	unsigned int qid;

	spin_lock(&qids->quarantine->lock);
	for (qid = 1; qid < qids->capacity; qid++)
		if (!test_bit(qid, qids->used) &&
		    nvmep_qid_reachable(&qids->quarantine->qids[qid], false))
			nvmep_show_quarantined(seq, qid, &qids->quarantine->qids[qid]);
	spin_unlock(&qids->quarantine->lock);
}

/**
 * nvmep_quarantines_show() - list the quarantine of all controllers
 * @seq: output: for each identifier a line with the physical address of BAR0,
 *	then as nvmep_qids_show_quarantine()
 *
 * Also of controllers that are not bound.  Identifiers in use are listed too.
 */
void nvmep_quarantines_show(struct seq_file *seq)
{
	struct nvmep_quarantine *quarantine;
	unsigned int qid;

	mutex_lock(&nvmep_quarantines_lock);
	list_for_each_entry(quarantine, &nvmep_quarantines, node) {
		spin_lock(&quarantine->lock);
		for (qid = 1; qid < quarantine->capacity; qid++) {
			if (!nvmep_qid_reachable(&quarantine->qids[qid], false))
				continue;
			seq_printf(seq, "%pa ", &quarantine->start);
			nvmep_show_quarantined(seq, qid, &quarantine->qids[qid]);
		}
		spin_unlock(&quarantine->lock);
	}
	mutex_unlock(&nvmep_quarantines_lock);
}

/**
 * nvmep_qids_warn_quarantine() - warn of late stores to doorbells
 * @ctrl: controller that is being unbound; no peer has a queue pair
 */
void nvmep_qids_warn_quarantine(struct nvmep_ctrl *ctrl)
{
	unsigned int count = nvmep_quarantine_count(ctrl->qids.quarantine);

	if (count)
		dev_warn(ctrl->dev,
			 "unbind: processes or importers may still store to the doorbells of %u queue IDs: end them before another driver is bound (debugfs: nvme-peer/quarantine)\n",
			 count);
}

/* --- allocation ---------------------------------------------------------- */

/* Is it free, and was it never a peer's? */
static bool nvmep_qid_free_for_cpu(struct nvmep_qids *qids, unsigned int qid)
{
	return !test_bit(qid, qids->used) && !qids->quarantine->qids[qid].freed &&
	       !nvmep_qid_quarantined(qids, qid);
}

/* The lowest free identifier that never was a peer's, or 0. */
static unsigned int nvmep_qid_find_cpu(struct nvmep_qids *qids)
{
	unsigned int qid;

	for (qid = 1; qid <= qids->total; qid++)
		if (nvmep_qid_free_for_cpu(qids, qid))
			return qid;
	return 0;
}

/*
 * Has the caller, as its user, mapped the doorbells?  Of an identifier that is not
 * quarantined no other process is recorded.
 */
static bool nvmep_qid_own(const struct nvmep_qid *entry)
{
	return entry->mappers && uid_eq(entry->mappers->uid, current_euid());
}

/* Is @a a better choice than @b for a peer? */
static bool nvmep_qid_preferred(struct nvmep_qids *qids, unsigned int a,
				unsigned int b)
{
	const struct nvmep_qid *entry = qids->quarantine->qids;
	bool own_a = nvmep_qid_own(&entry[a]), own_b = nvmep_qid_own(&entry[b]);

	if (own_a != own_b)
		return own_a;
	return entry[a].freed < entry[b].freed;
}

/*
 * One that the caller has mapped, else any: of these the identifier that was
 * released the longest time ago, or 0.
 */
static unsigned int nvmep_qid_find_peer(struct nvmep_qids *qids)
{
	unsigned int qid, found = 0;

	for_each_clear_bit(qid, qids->used, qids->total + 1)
		if (!nvmep_qid_quarantined(qids, qid) &&
		    (!found || nvmep_qid_preferred(qids, qid, found)))
			found = qid;
	return found;
}

/*
 * To whose doorbells no process can store: the lowest that never was a peer's,
 * else the one that was released the longest time ago, or 0.
 */
static unsigned int nvmep_qid_find_shared(struct nvmep_qids *qids)
{
	struct nvmep_qid *entry = qids->quarantine->qids;
	unsigned int qid, found = 0;

	for_each_clear_bit(qid, qids->used, qids->total + 1)
		if (!nvmep_qid_reachable(&entry[qid], false) &&
		    (!found || entry[qid].freed < entry[found].freed))
			found = qid;
	return found;
}

static int nvmep_qid_find(struct nvmep_qids *qids, enum nvmep_qid_owner owner)
{
	unsigned int qid;

	lockdep_assert_held(&qids->quarantine->lock);

	if ((owner == NVMEP_QID_PEER && qids->peers_blocked) ||
	    (owner == NVMEP_QID_SHARED && qids->shared_blocked))
		return -EBUSY;
	if (owner == NVMEP_QID_PEER && qids->peer_count >= qids->peer_max)
		return -ENOSPC;
	if (owner == NVMEP_QID_PEER)
		qid = nvmep_qid_find_peer(qids);
	else if (owner == NVMEP_QID_SHARED)
		qid = nvmep_qid_find_shared(qids);
	else
		qid = nvmep_qid_find_cpu(qids);
	return qid ? qid : -ENOSPC;
}

static void nvmep_qid_take(struct nvmep_qids *qids, unsigned int qid,
			   enum nvmep_qid_owner owner)
{
	__set_bit(qid, qids->used);
	qids->doorbells[qid] = (struct nvmep_doorbell_count){ };
	if (owner == NVMEP_QID_PEER) {
		__set_bit(qid, qids->peer);
		qids->peer_count++;
	}
	if (owner == NVMEP_QID_SHARED) {
		__set_bit(qid, qids->shared);
		qids->shared_count++;
	}
}

/**
 * nvmep_qid_alloc() - allocate a queue identifier
 * @ctrl: controller
 * @owner: kind of queue; a peer's belongs to the calling process
 *
 * Return: the identifier; -ENOSPC if none is free, all free ones are in
 * quarantine, or peers have reached their limit; -EBUSY after
 * nvmep_qids_block_peers() or nvmep_qids_block_shared().
 */
int nvmep_qid_alloc(struct nvmep_ctrl *ctrl, enum nvmep_qid_owner owner)
{
	struct nvmep_qids *qids = &ctrl->qids;
	int qid;

	spin_lock(&qids->quarantine->lock);
	qid = nvmep_qid_find(qids, owner);
	if (qid > 0)
		nvmep_qid_take(qids, qid, owner);
	spin_unlock(&qids->quarantine->lock);
	return qid;
}

/**
 * nvmep_qid_free() - release a queue identifier
 * @ctrl: controller
 * @qid: from nvmep_qid_alloc(); the controller has no queue with it any more
 * @exported: a peer may have had its doorbells: it stays in quarantine while a
 *	process may store to them
 */
void nvmep_qid_free(struct nvmep_ctrl *ctrl, u16 qid, bool exported)
{
	struct nvmep_qids *qids = &ctrl->qids;

	spin_lock(&qids->quarantine->lock);
	WARN_ON_ONCE(!__test_and_clear_bit(qid, qids->used));
	if (__test_and_clear_bit(qid, qids->peer))
		qids->peer_count--;
	if (__test_and_clear_bit(qid, qids->shared))
		qids->shared_count--;
	if (exported)
		qids->quarantine->qids[qid].freed = ++qids->quarantine->freed;
	spin_unlock(&qids->quarantine->lock);
}

/**
 * nvmep_qids_block_peers() - refuse identifiers to peers, if they have none
 * @ctrl: controller
 *
 * Callers hold effects_lock of the cpu layer: the flag does not nest.  After
 * success each one calls nvmep_qids_unblock_peers().
 *
 * Return: 0, or -EBUSY if a peer has a queue pair.
 */
int nvmep_qids_block_peers(struct nvmep_ctrl *ctrl)
{
	struct nvmep_qids *qids = &ctrl->qids;
	int ret = -EBUSY;

	spin_lock(&qids->quarantine->lock);
	if (!qids->peer_count) {
		qids->peers_blocked = true;
		ret = 0;
	}
	spin_unlock(&qids->quarantine->lock);
	return ret;
}

/**
 * nvmep_qids_block_shared() - as nvmep_qids_block_peers(), for mediated ones
 * @ctrl: controller, after nvmep_qids_block_peers(); nvmep_qids_unblock_peers()
 *	undoes both
 *
 * Return: 0, or -EBUSY if there is a mediated queue pair.
 */
int nvmep_qids_block_shared(struct nvmep_ctrl *ctrl)
{
	struct nvmep_qids *qids = &ctrl->qids;
	int ret = -EBUSY;

	spin_lock(&qids->quarantine->lock);
	if (!qids->shared_count) {
		qids->shared_blocked = true;
		ret = 0;
	}
	spin_unlock(&qids->quarantine->lock);
	return ret;
}

/**
 * nvmep_qids_unblock_peers() - undo nvmep_qids_block_peers()
 * @ctrl: controller
 */
void nvmep_qids_unblock_peers(struct nvmep_ctrl *ctrl)
{
	struct nvmep_qids *qids = &ctrl->qids;

	spin_lock(&qids->quarantine->lock);
	qids->peers_blocked = false;
	qids->shared_blocked = false;
	spin_unlock(&qids->quarantine->lock);
}

/**
 * nvmep_qids_for_cpu() - number of identifiers that the CPU could use
 * @ctrl: controller
 *
 * Return: those in use by the CPU plus the free ones that never were a peer's.
 */
unsigned int nvmep_qids_for_cpu(struct nvmep_ctrl *ctrl)
{
	struct nvmep_qids *qids = &ctrl->qids;
	unsigned int qid, count = 0;

	spin_lock(&qids->quarantine->lock);
	for (qid = 1; qid <= qids->total; qid++)
		count += nvmep_qid_free_for_cpu(qids, qid) ||
			 (test_bit(qid, qids->used) &&
			  !test_bit(qid, qids->peer) &&
			  !test_bit(qid, qids->shared));
	spin_unlock(&qids->quarantine->lock);
	return count;
}

/**
 * nvmep_qids_reachable() - number of identifiers with reachable doorbells
 * @ctrl: controller
 *
 * Return: those to whose doorbells a process or an importer may store, in use
 * or not: a page of them holds the doorbells of other queues, too.
 */
unsigned int nvmep_qids_reachable(struct nvmep_ctrl *ctrl)
{
	return nvmep_quarantine_count(ctrl->qids.quarantine);
}

/**
 * nvmep_qid_usage() - statistics of the pool
 * @ctrl: controller
 * @usage: filled
 */
void nvmep_qid_usage(struct nvmep_ctrl *ctrl, struct nvmep_qid_usage *usage)
{
	struct nvmep_qids *qids = &ctrl->qids;
	unsigned int free, share;

	spin_lock(&qids->quarantine->lock);
	/* IDs that the controller no longer grants may be quarantined, too. */
	usage->quarantined = nvmep_qids_count_quarantined(qids, qids->capacity);
	free = qids->total + 1 -
	       nvmep_qids_count_quarantined(qids, qids->total + 1) -
	       bitmap_weight(qids->used, qids->total + 1);
	share = qids->peer_max - min(qids->peer_max, qids->peer_count);
	usage->total = qids->total;
	usage->cpu = bitmap_weight(qids->used, qids->capacity) - 1 -
		     qids->peer_count - qids->shared_count;
	usage->peer_max = qids->peer_max;
	usage->peer_free = min(free, share);
	spin_unlock(&qids->quarantine->lock);
}

/**
 * nvmep_qid_granted() - may an I/O queue with this identifier be created?
 * @ctrl: controller
 * @qid: identifier, or 0 for none
 *
 * Return: false without an identifier, or if the controller grants fewer queues
 * now than when @qid was allocated.
 */
bool nvmep_qid_granted(struct nvmep_ctrl *ctrl, u16 qid)
{
	return qid && qid <= READ_ONCE(ctrl->qids.total);
}

static u16 nvmep_qid_next(struct nvmep_qids *qids, const unsigned long *bitmap,
			  u16 qid)
{
	unsigned long next;

	spin_lock(&qids->quarantine->lock);
	next = find_next_bit(bitmap, qids->capacity, qid + 1);
	spin_unlock(&qids->quarantine->lock);
	return next < qids->capacity ? next : 0;
}

/**
 * nvmep_qid_next_peer() - iterate over the identifiers in use by peers
 * @ctrl: controller
 * @qid: 0 to start, else the last one returned
 *
 * Return: the next one, or 0 at the end.
 */
u16 nvmep_qid_next_peer(struct nvmep_ctrl *ctrl, u16 qid)
{
	return nvmep_qid_next(&ctrl->qids, ctrl->qids.peer, qid);
}

/**
 * nvmep_qid_next_shared() - iterate over those in use for mediated queue pairs
 * @ctrl: controller
 * @qid: as for nvmep_qid_next_peer()
 *
 * Return: the next one, or 0 at the end.
 */
u16 nvmep_qid_next_shared(struct nvmep_ctrl *ctrl, u16 qid)
{
	return nvmep_qid_next(&ctrl->qids, ctrl->qids.shared, qid);
}
