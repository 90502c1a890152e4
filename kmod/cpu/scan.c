// SPDX-License-Identifier: GPL-2.0-only
/*
 * Namespace scanning: add new namespaces, update known ones, remove those that
 * are gone.
 */
#include <linux/jiffies.h>
#include <linux/log2.h>
#include <linux/sched/mm.h>
#include <linux/slab.h>
#include <linux/xarray.h>

#include "block.h"
#include "core/admin.h"
#include "core/ctrl.h"
#include "core/reset.h"
#include "cpu.h"
#include "hwmon.h"
#include "identify.h"
#include "module.h"
#include "namespace.h"
#include "opal.h"
#include "queue_map.h"
#include "scan.h"

/* A failed scan is retried after this delay, which doubles up to the limit. */
#define NVMEP_SCAN_RETRY_DELAY	HZ
#define NVMEP_SCAN_MAX_DOUBLINGS	6U

/*
 * Peers sized their buffers and PRP lists for the old namespace.  With another
 * block size their commands would move data beyond the buffers; in another
 * namespace they would access data that is not theirs.  So existing queue pairs
 * are marked as not to be re-armed, and a reset stops them.
 */
static void nvmep_scan_stop_peers(struct nvmep_ctrl *ctrl, u32 nsid,
				  const char *what)
{
	lockdep_assert_held(&ctrl->cpu->scan_lock);

	if (!ctrl->peer_ops->namespaces_changed(ctrl))
		return;
	dev_warn(ctrl->dev,
		 "namespace %u: %s, resetting the controller to fail its peer queue pairs\n",
		 nsid, what);
	/*
	 * One stop for all changes that a scan finds.  No queue pair becomes
	 * LIVE in a later generation before a scan of that generation, and
	 * another stop would make the restart fail.
	 */
	nvmep_ctrl_ensure_stopped(ctrl, ctrl->cpu->scan_generation);
}

/*
 * Marks an entry of cpu->ignored that the current scan has found.  Peers may
 * use such a namespace, too: they need no disk.
 */
#define NVMEP_IGNORED_FOUND	XA_MARK_0

/**
 * struct nvmep_ignored - entry of cpu->ignored
 * @ids: identifiers
 * @format: nvmep_format_key()
 */
struct nvmep_ignored {
	struct nvmep_identifiers ids;
	u32 format;
};

/* A namespace without a disk, or that had none so far. */
static void nvmep_scan_ignored(struct nvmep_ctrl *ctrl, u32 nsid,
			       const struct nvme_id_ns *id,
			       const struct nvmep_identifiers *ids)
{
	struct nvmep_cpu *cpu = ctrl->cpu;
	struct nvmep_ignored *now = kzalloc(sizeof(*now), GFP_KERNEL);
	struct nvmep_ignored *before = ERR_PTR(-ENOMEM);

	if (now) {
		now->ids = *ids;
		now->format = nvmep_format_key(id);
		before = xa_store(&cpu->ignored, nsid, now, GFP_KERNEL);
	}
	if (!now || xa_is_err(before)) {
		kfree(now);
		cpu->scan_again = true;
		return;
	}
	xa_set_mark(&cpu->ignored, nsid, NVMEP_IGNORED_FOUND);
	if (before && (before->format != now->format ||
		       memcmp(&before->ids, &now->ids, sizeof(now->ids))))
		nvmep_scan_stop_peers(ctrl, nsid,
				      "identifiers or format changed");
	kfree(before);
}

/* nvmep_scan_exit() - free what scans have remembered: no scan runs any more */
void nvmep_scan_exit(struct nvmep_cpu *cpu)
{
	struct nvmep_ignored *entry;
	unsigned long nsid;

	xa_for_each(&cpu->ignored, nsid, entry)
		kfree(entry);
	xa_destroy(&cpu->ignored);
}

static void nvmep_scan_ignored_begin(struct nvmep_ctrl *ctrl)
{
	struct xarray *ignored = &ctrl->cpu->ignored;
	struct nvmep_ignored *entry;
	unsigned long nsid;

	xa_for_each(ignored, nsid, entry)
		xa_clear_mark(ignored, nsid, NVMEP_IGNORED_FOUND);
}

/* After a scan that has seen all namespaces. */
static void nvmep_scan_ignored_end(struct nvmep_ctrl *ctrl)
{
	struct xarray *ignored = &ctrl->cpu->ignored;
	struct nvmep_ignored *entry;
	unsigned long nsid;

	xa_for_each(ignored, nsid, entry) {
		if (xa_get_mark(ignored, nsid, NVMEP_IGNORED_FOUND))
			continue;
		kfree(xa_erase(ignored, nsid));
		nvmep_scan_stop_peers(ctrl, nsid, "no longer reported");
	}
}

/*
 * The end of the removal queues a scan, which adds a namespace with the same
 * NSID.  One with the same identity is free now; this scan may have met it.
 */
static void nvmep_scan_remove(struct nvmep_ns *ns, const char *what)
{
	struct nvmep_cpu *cpu = ns->ctrl->cpu;

	nvmep_scan_stop_peers(ns->ctrl, ns->nsid, what);
	nvmep_ns_begin_removal(ns);
	cpu->scan_again |= !xa_empty(&cpu->ignored);
}

static void nvmep_scan_update(struct nvmep_ns *ns, const struct nvme_id_ns *id)
{
	if (!nvmep_ns_has_format(ns, id))
		nvmep_scan_stop_peers(ns->ctrl, ns->nsid, "format changed");
	if (nvmep_ns_update(ns, id))
		dev_warn(ns->ctrl->dev,
			 "namespace %u: new queue limits rejected, keeping the old ones\n",
			 ns->nsid);
}

static void nvmep_scan_add(struct nvmep_ctrl *ctrl, u32 nsid, u64 scan,
			   const struct nvme_id_ns *id,
			   const struct nvmep_identifiers *ids)
{
	int ret;

	nvmep_scan_ignored(ctrl, nsid, id, ids);
	/* The disk of a namespace that is being removed has the same name. */
	if (nvmep_ns_find(ctrl, nsid))
		return;
	ret = nvmep_ns_add(ctrl, nsid, scan, id, ids);
	if (!ret)
		kfree(xa_erase(&ctrl->cpu->ignored, nsid));
	ctrl->cpu->scan_again |= ret == -ENOMEM;
}

/* @ns: the namespace with this identifier before the scan, or NULL. */
static void nvmep_scan_found(struct nvmep_ctrl *ctrl, u32 nsid, u64 scan,
			     struct nvmep_ns *ns, const struct nvme_id_ns *id,
			     const struct nvmep_identifiers *ids)
{
	if (ns && !nvmep_identifiers_equal(&ns->reported, ids)) {
		dev_warn(ctrl->dev,
			 "namespace %u: identifiers changed, replacing its disk\n",
			 nsid);
		nvmep_scan_remove(ns, "identifiers changed");
		ns = NULL;
	}
	if (!ns) {
		nvmep_scan_add(ctrl, nsid, scan, id, ids);
		return;
	}
	ns->scan = scan;
	nvmep_scan_update(ns, id);
}

/* False if it was deleted after the list was read, or its format is invalid. */
static bool nvmep_scan_supported(struct nvmep_ctrl *ctrl, u32 nsid,
				 const struct nvme_id_ns *id,
				 const struct nvmep_identifiers *ids)
{
	if (!nvmep_has_blocks(ids))
		return true;
	if (!id->ncap)
		return false;
	if (nvmep_format_valid(id))
		return true;
	dev_warn_ratelimited(ctrl->dev,
			     "namespace %u: block size below 512 bytes or above 2 GiB, ignoring it\n",
			     nsid);
	nvmep_scan_ignored(ctrl, nsid, id, ids);
	return false;
}

/*
 * Reads the identifiers and the Identify Namespace data.  @id is not written
 * for a command set without blocks.  @ns: as in nvmep_scan_found().
 * Returns as nvmep_identify().
 */
static int nvmep_scan_identify(struct nvmep_ctrl *ctrl, u32 nsid,
			       const struct nvmep_ns *ns, struct nvme_id_ns *id,
			       struct nvmep_identifiers *ids)
{
	const struct nvmep_ignored *ignored = xa_load(&ctrl->cpu->ignored, nsid);
	const struct nvmep_identifiers *known = ns ? &ns->reported :
						ignored ? &ignored->ids : NULL;
	/* Not for ever: the controller may not have the list any more. */
	bool trust = ctrl->cpu->scan_failures < NVMEP_SCAN_MAX_DOUBLINGS;
	int ret = nvmep_identifiers_read(ids, ctrl, nsid, trust ? known : NULL);

	if (ret || !nvmep_has_blocks(ids))
		return ret;
	ret = nvmep_identify(ctrl, NVME_ID_CNS_NS, nsid, id);
	if (!ret)
		nvmep_identifiers_add(ids, ctrl, id);
	return ret;
}

/*
 * Identify has failed with an NVMe status.  Without Do Not Retry it may succeed
 * later: a known namespace is kept as it is, and the scan is retried.
 */
static void nvmep_scan_unidentified(struct nvmep_ctrl *ctrl, u32 nsid, u64 scan,
				    struct nvmep_ns *ns, int status)
{
	struct nvmep_cpu *cpu = ctrl->cpu;

	/* It was deleted after the list was read. */
	if ((status & NVME_SCT_SC_MASK) == NVME_SC_INVALID_NS)
		return;
	dev_warn_ratelimited(ctrl->dev,
			     "namespace %u: Identify failed, status %#x, %s\n",
			     nsid, status, status & NVME_STATUS_DNR ?
			     "ignoring the namespace" : "trying again");
	if (status & NVME_STATUS_DNR)
		return;
	cpu->scan_again = true;
	if (!ns && !xa_load(&cpu->ignored, nsid))
		return;
	if (ns)
		ns->scan = scan;
	xa_set_mark(&cpu->ignored, nsid, NVMEP_IGNORED_FOUND);
	cpu->scan_unverified = true;
}

/* Adds or updates one namespace.  A negative error code aborts the scan. */
static int nvmep_scan_one(struct nvmep_ctrl *ctrl, u32 nsid, u64 scan)
{
	struct nvmep_ns *ns = nvmep_ns_find(ctrl, nsid);
	struct nvmep_identifiers ids;
	struct nvme_id_ns *id;
	int ret;

	/* The wait of removal must not take as long as all of them. */
	if (nvmep_ctrl_state(ctrl) >= NVMEP_CTRL_DELETING)
		return -EINTR;
	/* Its identifier belongs to another namespace now, or to none. */
	if (ns && ns->removed)
		ns = NULL;
	id = kzalloc(NVME_IDENTIFY_DATA_SIZE, GFP_KERNEL);
	if (!id)
		return -ENOMEM;
	ret = nvmep_scan_identify(ctrl, nsid, ns, id, &ids);
	if (ret > 0)
		nvmep_scan_unidentified(ctrl, nsid, scan, ns, ret);
	if (!ret && nvmep_scan_supported(ctrl, nsid, id, &ids))
		nvmep_scan_found(ctrl, nsid, scan, ns, id, &ids);
	kfree(id);
	return min(ret, 0);
}

static int nvmep_scan_sequential(struct nvmep_ctrl *ctrl, u64 scan)
{
	u32 nsid, count = le32_to_cpu(ctrl->id->nn);
	int ret = 0;

	/* All ones is no identifier of a namespace, but may be the count. */
	count = min(count, NVME_NSID_ALL - 1);
	for (nsid = 1; nsid <= count && !ret; nsid++)
		ret = nvmep_scan_one(ctrl, nsid, scan);
	return ret;
}

/* Active Namespace ID list, base specification 5.1.13.2.2. */
static int nvmep_scan_list(struct nvmep_ctrl *ctrl, __le32 *list, u64 scan)
{
	const __le32 *entry, *end = list + NVMEP_NAMESPACE_LIST_LENGTH;
	u32 last = 0;
	int ret;

	for (;;) {
		ret = nvmep_identify(ctrl, NVME_ID_CNS_NS_ACTIVE_LIST, last,
				     list);
		if (ret)
			return ret;
		for (entry = list; entry != end; entry++) {
			u32 nsid = le32_to_cpu(*entry);

			if (!nsid)
				return 0;
			/* A list that does not ascend might never end. */
			if (nsid <= last)
				return -EPROTO;
			last = nsid;
			ret = nvmep_scan_one(ctrl, nsid, scan);
			if (ret)
				return ret;
		}
	}
}

static void nvmep_scan_remove_missing(struct nvmep_ctrl *ctrl, u64 scan)
{
	struct nvmep_ns *ns;

	list_for_each_entry(ns, &ctrl->cpu->namespaces, entry)
		if (!ns->removed && ns->scan != scan)
			nvmep_scan_remove(ns, "no longer reported");
}

static int nvmep_scan_all(struct nvmep_ctrl *ctrl, __le32 *list)
{
	u64 scan = ++ctrl->cpu->scans;
	int ret = NVME_STATUS_DNR;

	nvmep_scan_ignored_begin(ctrl);
	/* Controllers of version 1.0 have no list. */
	if (nvmep_cns_allowed(ctrl, NVME_ID_CNS_NS_ACTIVE_LIST))
		ret = nvmep_scan_list(ctrl, list, scan);
	/* There are many numbers: not after an error that may not last. */
	if (ret > 0 && ret & NVME_STATUS_DNR)
		ret = nvmep_scan_sequential(ctrl, scan);
	/* A scan that failed did not see all namespaces: remove none. */
	if (!ret) {
		nvmep_scan_remove_missing(ctrl, scan);
		nvmep_scan_ignored_end(ctrl);
	}
	return ret;
}

/* Under the lock: removal changes the state, then cancels the work. */
static bool nvmep_scan_allowed(struct nvmep_ctrl *ctrl)
{
	lockdep_assert_held(&ctrl->state_lock);

	return ctrl->state == NVMEP_CTRL_LIVE;
}

/**
 * nvmep_scan() - queue a scan for namespaces
 * @ctrl: controller; no scan is queued unless it is LIVE
 *
 * Does not sleep.
 */
void nvmep_scan(struct nvmep_ctrl *ctrl)
{
	unsigned long flags;

	spin_lock_irqsave(&ctrl->state_lock, flags);
	if (nvmep_scan_allowed(ctrl))
		queue_work(nvmep_wq, &ctrl->cpu->scan_work);
	spin_unlock_irqrestore(&ctrl->state_lock, flags);
}

void nvmep_scan_retry_work(struct work_struct *work)
{
	struct nvmep_cpu *cpu = container_of(to_delayed_work(work),
					     struct nvmep_cpu, scan_retry_work);

	nvmep_scan(cpu->ctrl);
}

static void nvmep_scan_later(struct nvmep_ctrl *ctrl, unsigned int doublings)
{
	spin_lock_irq(&ctrl->state_lock);
	if (nvmep_scan_allowed(ctrl))
		queue_delayed_work(nvmep_wq, &ctrl->cpu->scan_retry_work,
				   NVMEP_SCAN_RETRY_DELAY << doublings);
	spin_unlock_irq(&ctrl->state_lock);
}

/* Logs a failed scan and queues a retry. */
static void nvmep_scan_retry(struct nvmep_ctrl *ctrl, int ret)
{
	struct nvmep_cpu *cpu = ctrl->cpu;
	unsigned int doublings;

	lockdep_assert_held(&cpu->scan_lock);

	doublings = min(cpu->scan_failures, NVMEP_SCAN_MAX_DOUBLINGS);
	cpu->scan_failures++;
	if (ret && is_power_of_2(cpu->scan_failures))
		dev_err(ctrl->dev,
			"namespace scan failed: %d, keeping the known namespaces, trying again\n",
			ret);
	nvmep_scan_later(ctrl, doublings);
}

/* Returns 0 if it compared every known namespace with the controller's. */
static int nvmep_scan_locked(struct nvmep_ctrl *ctrl)
{
	struct nvmep_cpu *cpu = ctrl->cpu;
	bool updated;
	int ret = -ENOMEM;
	__le32 *list;

	lockdep_assert_held(&cpu->scan_lock);

	updated = nvmep_queues_update(ctrl);
	cpu->scan_again = false;
	nvmep_requeue_scan_begin(ctrl);
	cpu->scan_unverified = false;
	list = kmalloc(NVME_IDENTIFY_DATA_SIZE, GFP_KERNEL);
	if (list)
		ret = nvmep_scan_all(ctrl, list);
	kfree(list);
	nvmep_requeue_scan_end(ctrl);
	if (!ret && cpu->scan_unverified)
		ret = -EAGAIN;
	/* -EINTR: the controller was stopped; a restart scans again. */
	if (ret == -EINTR)
		return ret;
	if (ret || cpu->scan_again) {
		nvmep_scan_retry(ctrl, ret);
		return ret;
	}
	cpu->scan_failures = 0;
	if (!updated)
		nvmep_scan_later(ctrl, 0);
	return ret;
}

/*
 * Owners of queue pairs may re-arm them after a scan that succeeded.  That has
 * no effect if the generation has changed.
 */
static void nvmep_scan_live(struct nvmep_cpu *cpu, u32 generation)
{
	struct nvmep_ctrl *ctrl = cpu->ctrl;
	int ret;

	mutex_lock(&cpu->scan_lock);
	cpu->scan_generation = generation;
	ret = nvmep_scan_locked(ctrl);
	mutex_unlock(&cpu->scan_lock);
	if (ret)
		return;
	nvmep_ctrl_allow_rearm(ctrl, generation);
	/* Last: their commands may time out. */
	nvmep_hwmon_add(ctrl);
	nvmep_opal_add(ctrl);
}

/*
 * If memory is short, one rescuer runs the scans of all controllers, and I/O to
 * another one may wait for its scan: an allocation that waits for I/O is a
 * deadlock.
 */
void nvmep_scan_work(struct work_struct *work)
{
	struct nvmep_cpu *cpu = container_of(work, struct nvmep_cpu, scan_work);
	u32 generation = nvmep_ctrl_generation(cpu->ctrl);
	unsigned int memflags;

	/* Read the generation before the state: a later stop increments it. */
	smp_rmb();
	if (nvmep_ctrl_state(cpu->ctrl) != NVMEP_CTRL_LIVE)
		return;
	memflags = memalloc_noio_save();
	nvmep_scan_live(cpu, generation);
	memalloc_noio_restore(memflags);
}

/**
 * nvmep_namespaces_remove() - remove all namespaces
 * @ctrl: controller in a state in which no scan is queued
 *
 * Waits for I/O, which completes if the controller runs and fails otherwise.
 */
void nvmep_namespaces_remove(struct nvmep_ctrl *ctrl)
{
	struct nvmep_ns *ns, *next;

	/* First: the scan may wait for one of these bios. */
	nvmep_requeue_submit(ctrl);
	cancel_delayed_work_sync(&ctrl->cpu->scan_retry_work);
	cancel_work_sync(&ctrl->cpu->scan_work);
	flush_work(&ctrl->cpu->dead_work);
	nvmep_ns_wait_removals(ctrl);
	nvmep_hwmon_remove(ctrl);
	flush_delayed_work(&ctrl->cpu->requeue_work);
	nvmep_requeue_submit(ctrl);
	mutex_lock(&ctrl->cpu->scan_lock);
	nvmep_poll_work_start(ctrl);
	list_for_each_entry_safe(ns, next, &ctrl->cpu->namespaces, entry)
		nvmep_ns_remove(ns);
	nvmep_poll_work_stop(ctrl);
	mutex_unlock(&ctrl->cpu->scan_lock);
	/* Bios of disks that are gone fail here. */
	flush_delayed_work(&ctrl->cpu->requeue_work);
	nvmep_requeue_submit(ctrl);
	flush_delayed_work(&ctrl->cpu->flush_work);
}
