// SPDX-License-Identifier: GPL-2.0-only
/*
 * All namespaces at once: whether their I/O flows.
 *
 * Quiesced, nothing is dispatched and what comes waits in its queue: the
 * controller stops or is being reset.  Frozen, nothing is under way and nothing
 * new begins: a command wants to be alone.
 */
#include <linux/blk-mq.h>
#include <linux/sched/mm.h>
#include <linux/slab.h>

#include "compat.h"
#include "core/admin.h"
#include "core/ctrl.h"
#include "cpu.h"
#include "format.h"
#include "freeze.h"
#include "moved.h"
#include "namespace.h"

/* How long a shutdown waits for I/O under way, jiffies. */
#define NVMEP_DRAIN_TIMEOUT	(5 * HZ)

/* --- quiesced ------------------------------------------------------------ */

/* One wait for all of them. */
static void nvmep_namespaces_quiesce_locked(struct nvmep_ctrl *ctrl)
{
	struct list_head *namespaces = &ctrl->cpu->namespaces;
	struct nvmep_ns *ns;

	lockdep_assert_held(&ctrl->cpu->namespaces_lock);

	if (!ctrl->cpu->quiesced && !list_empty(namespaces)) {
		list_for_each_entry(ns, namespaces, entry)
			blk_mq_quiesce_queue_nowait(ns->queue);
		ns = list_first_entry(namespaces, struct nvmep_ns, entry);
		nvmep_wait_quiesce_done(ns->queue);
	}
	ctrl->cpu->quiesced = true;
}

/**
 * nvmep_namespaces_quiesce() - no I/O is dispatched after this
 * @ctrl: controller
 *
 * Waits for whoever is dispatching.  Holds for namespaces yet to come.
 */
void nvmep_namespaces_quiesce(struct nvmep_ctrl *ctrl)
{
	mutex_lock(&ctrl->cpu->namespaces_lock);
	nvmep_namespaces_quiesce_locked(ctrl);
	mutex_unlock(&ctrl->cpu->namespaces_lock);
}

static void nvmep_namespaces_unquiesce_locked(struct nvmep_ctrl *ctrl)
{
	struct nvmep_ns *ns;

	lockdep_assert_held(&ctrl->cpu->namespaces_lock);

	if (ctrl->cpu->quiesced)
		list_for_each_entry(ns, &ctrl->cpu->namespaces, entry)
			blk_mq_unquiesce_queue(ns->queue);
	ctrl->cpu->quiesced = false;
}

/**
 * nvmep_namespaces_unquiesce() - undo nvmep_namespaces_quiesce()
 * @ctrl: controller
 */
void nvmep_namespaces_unquiesce(struct nvmep_ctrl *ctrl)
{
	mutex_lock(&ctrl->cpu->namespaces_lock);
	nvmep_namespaces_unquiesce_locked(ctrl);
	mutex_unlock(&ctrl->cpu->namespaces_lock);
}

/* Jiffies until @deadline, 0 if it has passed. */
static unsigned long nvmep_time_left(unsigned long deadline)
{
	return time_before(jiffies, deadline) ? deadline - jiffies : 0;
}

/**
 * nvmep_namespaces_drain() - let I/O under way finish, and start no more
 * @ctrl: running controller that is to be shut down
 *
 * Waits some seconds at most, for all together.  Leaves the namespaces quiesced.
 */
void nvmep_namespaces_drain(struct nvmep_ctrl *ctrl)
{
	unsigned long deadline = jiffies + NVMEP_DRAIN_TIMEOUT;
	struct list_head *namespaces = &ctrl->cpu->namespaces;
	struct nvmep_ns *ns;

	mutex_lock(&ctrl->cpu->namespaces_lock);
	list_for_each_entry(ns, namespaces, entry)
		blk_freeze_queue_start(ns->queue);
	list_for_each_entry(ns, namespaces, entry)
		blk_mq_freeze_queue_wait_timeout(ns->queue,
						 nvmep_time_left(deadline));
	nvmep_namespaces_quiesce_locked(ctrl);
	list_for_each_entry(ns, namespaces, entry)
		nvmep_unfreeze_queue(ns->queue);
	mutex_unlock(&ctrl->cpu->namespaces_lock);
}

/**
 * nvmep_namespaces_fail() - the controller will not come back
 * @ctrl: stopped controller in state DELETING or DEAD
 *
 * I/O fails at once from now on, and the disks' holders are told.
 */
void nvmep_namespaces_fail(struct nvmep_ctrl *ctrl)
{
	struct nvmep_ns *ns;

	mutex_lock(&ctrl->cpu->namespaces_lock);
	nvmep_namespaces_unquiesce_locked(ctrl);
	list_for_each_entry(ns, &ctrl->cpu->namespaces, entry)
		nvmep_ns_mark_dead(ns);
	mutex_unlock(&ctrl->cpu->namespaces_lock);
	/* Those that wait for another queue, too: none will come. */
	nvmep_moved_submit(ctrl);
}

/* --- frozen -------------------------------------------------------------- */

/**
 * nvmep_namespaces_freeze() - wait until no I/O is under way, admit no more
 * @ctrl: controller; scan_lock is held until nvmep_namespaces_unfreeze()
 *
 * namespaces_lock is not held while waiting: if a command hangs, its timeout
 * needs that lock to stop the controller.
 */
void nvmep_namespaces_freeze(struct nvmep_ctrl *ctrl)
{
	struct nvmep_ns *ns;

	lockdep_assert_held(&ctrl->cpu->scan_lock);

	list_for_each_entry(ns, &ctrl->cpu->namespaces, entry)
		blk_freeze_queue_start(ns->queue);
	list_for_each_entry(ns, &ctrl->cpu->namespaces, entry)
		blk_mq_freeze_queue_wait(ns->queue);
}

/**
 * nvmep_namespaces_reread() - look at every namespace's format again
 * @ctrl: controller with frozen namespaces
 *
 * Limits and capacity follow with the next scan, which the caller starts: they
 * only keep away what would fail, while commands are built from the format.
 */
void nvmep_namespaces_reread(struct nvmep_ctrl *ctrl)
{
	unsigned int memflags;
	struct nvme_id_ns *id;
	struct nvmep_ns *ns;

	lockdep_assert_held(&ctrl->cpu->scan_lock);

	/* Memory must not wait for I/O that waits for us. */
	memflags = memalloc_noio_save();
	id = kmalloc(NVME_IDENTIFY_SIZE, GFP_KERNEL);
	list_for_each_entry(ns, &ctrl->cpu->namespaces, entry) {
		/* No command of ours is built for the others. */
		if (ns->ids.csi)
			continue;
		ns->format = NVMEP_NS_FORMAT_UNKNOWN;
		if (id && !nvmep_identify(ctrl, NVME_IDENTIFY_NAMESPACE,
					  ns->nsid, id) &&
		    nvmep_format_possible(id))
			nvmep_ns_set_format(ns, id);
	}
	kfree(id);
	memalloc_noio_restore(memflags);
}

/**
 * nvmep_namespaces_unfreeze() - undo nvmep_namespaces_freeze()
 * @ctrl: controller
 */
void nvmep_namespaces_unfreeze(struct nvmep_ctrl *ctrl)
{
	struct nvmep_ns *ns;

	lockdep_assert_held(&ctrl->cpu->scan_lock);

	list_for_each_entry(ns, &ctrl->cpu->namespaces, entry)
		nvmep_unfreeze_queue(ns->queue);
}
