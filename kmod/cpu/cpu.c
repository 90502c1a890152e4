// SPDX-License-Identifier: GPL-2.0-only
/*
 * Per-controller state of this layer, and operations on all namespaces at once.
 *
 * Quiesced: nothing is dispatched and new I/O waits in its request queue,
 * because the controller is being stopped or reset.
 * Frozen (blk-mq): no I/O is in flight and none can start, because an exclusive
 * command (CSE) is executed, or for suspend.
 */
#include <linux/blk-mq.h>
#include <linux/sched/mm.h>
#include <linux/sed-opal.h>
#include <linux/slab.h>

#include "block.h"
#include "compat.h"
#include "core/admin.h"
#include "core/ctrl.h"
#include "core/holds.h"
#include "core/queue.h"
#include "cpu.h"
#include "identify.h"
#include "module.h"
#include "namespace.h"
#include "opal.h"
#include "queue_map.h"
#include "scan.h"

/* How long shutdown and suspend wait for I/O in flight, in jiffies. */
#define NVMEP_DRAIN_TIMEOUT	(5 * HZ)

/* How often waits for I/O in flight poll for completions, in jiffies. */
#define NVMEP_POLL_INTERVAL	(HZ / 10)

/* Limit of resets that may interrupt the read of one format. */
#define NVMEP_REREAD_TRIES	3

/* --- waits for I/O -------------------------------------------------------- */

/**
 * nvmep_freeze_wait_slice() - wait a little for the requests of a frozen queue
 * @ctrl: controller
 * @queue: request queue of a namespace, after blk_freeze_queue_start()
 *
 * Polls: the task that submitted to a polled queue may have stopped polling.
 *
 * Return: false if it has requests.
 */
bool nvmep_freeze_wait_slice(struct nvmep_ctrl *ctrl,
			     struct request_queue *queue)
{
	if (blk_mq_freeze_queue_wait_timeout(queue, NVMEP_POLL_INTERVAL))
		return true;
	nvmep_poll_polled_queues(ctrl);
	return false;
}

/**
 * nvmep_freeze_wait() - wait until a frozen queue has no requests
 * @ctrl: controller
 * @queue: request queue of a namespace, after blk_freeze_queue_start()
 */
void nvmep_freeze_wait(struct nvmep_ctrl *ctrl, struct request_queue *queue)
{
	/* Ends the delay of a retry, at the cost of one of its retries. */
	blk_mq_kick_requeue_list(queue);
	while (!nvmep_freeze_wait_slice(ctrl, queue))
		;
}

static void nvmep_poll_work(struct work_struct *work)
{
	struct nvmep_cpu *cpu = container_of(to_delayed_work(work),
					     struct nvmep_cpu, poll_work);

	nvmep_poll_polled_queues(cpu->ctrl);
	queue_delayed_work(nvmep_health_wq, &cpu->poll_work,
			   NVMEP_POLL_INTERVAL);
}

/**
 * nvmep_poll_work_start() - poll polled queues until nvmep_poll_work_stop()
 * @ctrl: controller, bound; scan_lock is held until nvmep_poll_work_stop()
 *
 * For waits inside the block layer, see nvmep_freeze_wait_slice().
 */
void nvmep_poll_work_start(struct nvmep_ctrl *ctrl)
{
	lockdep_assert_held(&ctrl->cpu->scan_lock);

	queue_delayed_work(nvmep_health_wq, &ctrl->cpu->poll_work,
			   NVMEP_POLL_INTERVAL);
}

void nvmep_poll_work_stop(struct nvmep_ctrl *ctrl)
{
	cancel_delayed_work_sync(&ctrl->cpu->poll_work);
}

/* --- quiesce -------------------------------------------------------------- */

static void nvmep_namespaces_quiesce_locked(struct nvmep_ctrl *ctrl)
{
	struct nvmep_ns *ns;

	lockdep_assert_held(&ctrl->cpu->namespaces_lock);

	if (!ctrl->cpu->quiesced)
		list_for_each_entry(ns, &ctrl->cpu->namespaces, entry)
			blk_mq_quiesce_queue_nowait(ns->queue);
	ctrl->cpu->quiesced = true;
}

/* Also applies to namespaces that are added later. */
static void nvmep_namespaces_quiesce(struct nvmep_ctrl *ctrl)
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

static void nvmep_namespaces_wake_locked(struct nvmep_ctrl *ctrl)
{
	struct nvmep_ns *ns;

	lockdep_assert_held(&ctrl->cpu->namespaces_lock);

	if (ctrl->cpu->asleep)
		list_for_each_entry(ns, &ctrl->cpu->namespaces, entry)
			nvmep_unfreeze_queue_non_owner(ns->queue);
	ctrl->cpu->asleep = false;
}

/*
 * A drain follows a change of the state and holds the lock, so it is not undone
 * by a caller that found the controller LIVE before.
 *
 * A controller that will not come back ends the freeze of suspend as well: its
 * I/O fails, and work that its failure and its removal wait for may submit I/O.
 */
static void nvmep_namespaces_unquiesce(struct nvmep_ctrl *ctrl)
{
	mutex_lock(&ctrl->cpu->namespaces_lock);
	if (nvmep_ctrl_state(ctrl) != NVMEP_CTRL_RESETTING)
		nvmep_namespaces_unquiesce_locked(ctrl);
	if (nvmep_ctrl_state(ctrl) >= NVMEP_CTRL_DELETING)
		nvmep_namespaces_wake_locked(ctrl);
	mutex_unlock(&ctrl->cpu->namespaces_lock);
}

/*
 * Error recovery of the PCI core waits for the lock that a drain holds, and
 * without a link no I/O completes.
 */
static bool nvmep_drain_ends(const struct nvmep_ctrl *ctrl,
			     unsigned long deadline)
{
	return READ_ONCE(ctrl->holds) & NVMEP_HOLDS_OF_LINK ||
	       time_after_eq(jiffies, deadline);
}

/*
 * Completes I/O in flight before a shutdown.  Waits up to NVMEP_DRAIN_TIMEOUT
 * for all namespaces together, and leaves them quiesced.
 */
static void nvmep_namespaces_drain(struct nvmep_ctrl *ctrl)
{
	unsigned long deadline = jiffies + NVMEP_DRAIN_TIMEOUT;
	struct list_head *namespaces = &ctrl->cpu->namespaces;
	struct nvmep_ns *ns;

	mutex_lock(&ctrl->cpu->namespaces_lock);
	list_for_each_entry(ns, namespaces, entry) {
		blk_freeze_queue_start(ns->queue);
		blk_mq_kick_requeue_list(ns->queue);
	}
	list_for_each_entry(ns, namespaces, entry)
		while (!nvmep_drain_ends(ctrl, deadline) &&
		       !nvmep_freeze_wait_slice(ctrl, ns->queue))
			;
	nvmep_namespaces_quiesce_locked(ctrl);
	nvmep_wait_quiesce_done(ctrl->admin_q);
	list_for_each_entry(ns, namespaces, entry)
		nvmep_unfreeze_queue(ns->queue);
	mutex_unlock(&ctrl->cpu->namespaces_lock);
}

/*
 * Marking a disk dead notifies its holders, and waits for them: a file system
 * may wait for I/O to another controller, whose recovery may wait for a caller
 * of nvmep_namespaces_fail().  So it is work, and takes no lock of a stop.  Its
 * workqueue has no rescuer, which scans of the other controller might need.
 */
static void nvmep_dead_work(struct work_struct *work)
{
	struct nvmep_cpu *cpu = container_of(work, struct nvmep_cpu, dead_work);
	struct nvmep_ns *ns;
	int index;

	index = srcu_read_lock(&cpu->namespaces_srcu);
	list_for_each_entry_srcu(ns, &cpu->namespaces, entry,
				 srcu_read_lock_held(&cpu->namespaces_srcu))
		nvmep_ns_mark_dead(ns);
	srcu_read_unlock(&cpu->namespaces_srcu, index);
}

/*
 * The controller is DELETING or DEAD and will not come back.  Unquiesced,
 * queued and new I/O fails at once.  Bios of the requeue list are submitted
 * before @dead_work waits for them: they fail, as no other queue will appear.
 */
static void nvmep_namespaces_fail(struct nvmep_ctrl *ctrl)
{
	nvmep_namespaces_unquiesce(ctrl);
	nvmep_requeue_submit(ctrl);
	queue_work(nvmep_disk_wq, &ctrl->cpu->dead_work);
}

/* --- freeze --------------------------------------------------------------- */

/**
 * nvmep_namespaces_freeze() - freeze the request queues of all namespaces
 * @ctrl: controller; scan_lock is held until nvmep_namespaces_unfreeze()
 *
 * Does not hold namespaces_lock while it waits.  This would deadlock: the
 * timeout handler of a hung command takes that lock to stop the controller.
 */
void nvmep_namespaces_freeze(struct nvmep_ctrl *ctrl)
{
	struct nvmep_ns *ns;

	lockdep_assert_held(&ctrl->cpu->scan_lock);

	list_for_each_entry(ns, &ctrl->cpu->namespaces, entry)
		blk_freeze_queue_start(ns->queue);
	list_for_each_entry(ns, &ctrl->cpu->namespaces, entry)
		nvmep_freeze_wait(ctrl, ns->queue);
}

/*
 * Identify, sent again after a reset that interrupts it: I/O waits for the
 * format, and would fail without it.  A reset ends, so this wait does too.
 */
static int nvmep_reread_identify(struct nvmep_ctrl *ctrl, u32 nsid,
				 struct nvme_id_ns *id)
{
	int tries = NVMEP_REREAD_TRIES, ret;

	do {
		wait_event(ctrl->state_wait,
			   nvmep_ctrl_state(ctrl) != NVMEP_CTRL_RESETTING);
		ret = nvmep_identify(ctrl, NVME_ID_CNS_NS, nsid, id);
	} while (ret == -EINTR && --tries &&
		 nvmep_ctrl_state(ctrl) < NVMEP_CTRL_DELETING);
	return ret;
}

/**
 * nvmep_namespaces_reread() - read the format of each namespace again
 * @ctrl: controller with frozen namespaces; scan_lock is held
 *
 * Commands are built from the format, so it must be current before I/O
 * continues.  The caller starts a scan, which updates limits and capacity:
 * while those are out of date, the controller rejects I/O beyond them.
 *
 * Waits for a reset under way; the caller holds no lock that a reset takes.
 */
void nvmep_namespaces_reread(struct nvmep_ctrl *ctrl)
{
	unsigned int memflags;
	struct nvme_id_ns *id;
	struct nvmep_ns *ns;

	lockdep_assert_held(&ctrl->cpu->scan_lock);

	/* Reclaim must not issue I/O to a frozen queue: it would deadlock. */
	memflags = memalloc_noio_save();
	id = kmalloc(NVME_IDENTIFY_DATA_SIZE, GFP_KERNEL);
	list_for_each_entry(ns, &ctrl->cpu->namespaces, entry) {
		if (ns->removed || !nvmep_has_blocks(&ns->ids))
			continue;
		ns->format = NVMEP_NS_FORMAT_UNKNOWN;
		WRITE_ONCE(ns->format_number, 0);
		if (id && !nvmep_reread_identify(ctrl, ns->nsid, id) &&
		    nvmep_format_valid(id))
			nvmep_ns_set_format(ns, id);
	}
	kfree(id);
	memalloc_noio_restore(memflags);
}

void nvmep_namespaces_unfreeze(struct nvmep_ctrl *ctrl)
{
	struct nvmep_ns *ns;

	lockdep_assert_held(&ctrl->cpu->scan_lock);

	list_for_each_entry(ns, &ctrl->cpu->namespaces, entry)
		nvmep_unfreeze_queue(ns->queue);
}

/* --- suspend --------------------------------------------------------------- */

/* False if the controller will not come back: its I/O fails, which ends it. */
static bool nvmep_sleep_begin(struct nvmep_ctrl *ctrl)
{
	struct nvmep_cpu *cpu = ctrl->cpu;
	struct nvmep_ns *ns;

	mutex_lock(&cpu->namespaces_lock);
	cpu->asleep = nvmep_ctrl_state(ctrl) < NVMEP_CTRL_DELETING;
	if (cpu->asleep)
		list_for_each_entry(ns, &cpu->namespaces, entry) {
			nvmep_freeze_queue_start_non_owner(ns->queue);
			/* Ends the delay of a retry, at the cost of a retry. */
			blk_mq_kick_requeue_list(ns->queue);
		}
	mutex_unlock(&cpu->namespaces_lock);
	return cpu->asleep;
}

/*
 * Not under namespaces_lock: the stop of a reset, with which I/O in flight may
 * end, takes it.  Nor under scan_lock: a scan may wait for a new disk, which is
 * frozen.
 */
static bool nvmep_sleep_wait(struct nvmep_ctrl *ctrl)
{
	unsigned long deadline = jiffies + NVMEP_DRAIN_TIMEOUT;
	struct nvmep_cpu *cpu = ctrl->cpu;
	struct nvmep_ns *ns;
	bool drained, all = true;
	int index;

	index = srcu_read_lock(&cpu->namespaces_srcu);
	list_for_each_entry_srcu(ns, &cpu->namespaces, entry,
				 srcu_read_lock_held(&cpu->namespaces_srcu)) {
		do
			drained = nvmep_freeze_wait_slice(ctrl, ns->queue);
		while (!drained && !nvmep_drain_ends(ctrl, deadline));
		all &= drained;
	}
	srcu_read_unlock(&cpu->namespaces_srcu, index);
	return all;
}

static void nvmep_namespaces_wake(struct nvmep_ctrl *ctrl)
{
	mutex_lock(&ctrl->cpu->namespaces_lock);
	nvmep_namespaces_wake_locked(ctrl);
	mutex_unlock(&ctrl->cpu->namespaces_lock);
}

/*
 * The request queues stay frozen, and not only quiesced, until resume.  When a
 * CPU goes offline, the block layer waits without a limit for each request that
 * has entered one of its queues, and nothing is dispatched then.
 */
static int nvmep_namespaces_sleep(struct nvmep_ctrl *ctrl)
{
	if (!nvmep_sleep_begin(ctrl) || nvmep_sleep_wait(ctrl))
		return 0;
	nvmep_namespaces_wake(ctrl);
	dev_warn(ctrl->dev,
		 "suspend refused: I/O in flight has not ended\n");
	return -EBUSY;
}

/* --- operations for the core ---------------------------------------------- */

static int nvmep_cpu_init(struct nvmep_ctrl *ctrl)
{
	struct nvmep_cpu *cpu = kzalloc(sizeof(*cpu), GFP_KERNEL);

	if (!cpu)
		return -ENOMEM;
	if (!zalloc_cpumask_var(&cpu->placed, GFP_KERNEL))
		goto err_cpu;
	if (init_srcu_struct(&cpu->namespaces_srcu))
		goto err_placed;
	cpu->ctrl = ctrl;
	mutex_init(&cpu->namespaces_lock);
	INIT_LIST_HEAD(&cpu->namespaces);
	xa_init(&cpu->by_nsid);
	mutex_init(&cpu->effects_lock);
	mutex_init(&cpu->scan_lock);
	xa_init(&cpu->ignored);
	INIT_WORK(&cpu->dead_work, nvmep_dead_work);
	INIT_WORK(&cpu->scan_work, nvmep_scan_work);
	INIT_DELAYED_WORK(&cpu->scan_retry_work, nvmep_scan_retry_work);
	INIT_DELAYED_WORK(&cpu->poll_work, nvmep_poll_work);
	spin_lock_init(&cpu->requeue_lock);
	bio_list_init(&cpu->requeue_list);
	INIT_LIST_HEAD(&cpu->requeue_flushes);
	INIT_DELAYED_WORK(&cpu->requeue_work, nvmep_requeue_work);
	INIT_DELAYED_WORK(&cpu->flush_work, nvmep_flush_work);
	ctrl->cpu = cpu;
	return 0;

err_placed:
	free_cpumask_var(cpu->placed);
err_cpu:
	kfree(cpu);
	return -ENOMEM;
}

static void nvmep_cpu_exit(struct nvmep_ctrl *ctrl)
{
	if (!ctrl->cpu)
		return;
	free_opal_dev(ctrl->cpu->opal);
	nvmep_scan_exit(ctrl->cpu);
	cleanup_srcu_struct(&ctrl->cpu->namespaces_srcu);
	free_cpumask_var(ctrl->cpu->placed);
	kfree(ctrl->cpu);
}

static struct nvmep_failures *nvmep_ns_failures(struct request_queue *queue)
{
	struct nvmep_ns *ns = queue->queuedata;

	return &ns->failures;
}

const struct nvmep_cpu_ops nvmep_cpu_ops = {
	.init = nvmep_cpu_init,
	.exit = nvmep_cpu_exit,
	.quiesce = nvmep_namespaces_quiesce,
	.unquiesce = nvmep_namespaces_unquiesce,
	.blocks = nvmep_ns_blocks,
	.drain = nvmep_namespaces_drain,
	.fail = nvmep_namespaces_fail,
	.scan = nvmep_scan,
	.unlock = nvmep_opal_unlock,
	.sleep = nvmep_namespaces_sleep,
	.wake = nvmep_namespaces_wake,
	.aim = nvmep_queues_aim,
	.failures = nvmep_ns_failures,
};
