// SPDX-License-Identifier: GPL-2.0-only
/*
 * Scanning: which namespaces the controller has, and what became of those that were
 * known.
 */
#include <linux/slab.h>

#include "core/admin.h"
#include "core/ctrl.h"
#include "core/qids.h"
#include "core/stop.h"
#include "block.h"
#include "cpu.h"
#include "format.h"
#include "moved.h"
#include "namespace.h"
#include "scan.h"
#include "workqueue.h"

/* Is this an error that says nothing about the namespace, only about now? */
static bool nvmep_status_transient(int ret)
{
	return ret > 0 && !(ret & NVME_STATUS_DNR) &&
	       (ret & NVME_STATUS_MASK) != NVME_SC_INVALID_NAMESPACE;
}

/*
 * Peers' lengths and lists are made for the namespaces that were there: with other
 * blocks their DMA goes anywhere, with another namespace it is not theirs.
 */
static void nvmep_scan_stop_peers(struct nvmep_ctrl *ctrl, u32 nsid,
				  const char *what)
{
	/* First: pairs of a later start are none that we saw. */
	u32 generation = nvmep_ctrl_generation(ctrl);

	if (!nvmep_qid_next_peer(ctrl, 0))
		return;
	ctrl->peer_ops->outdated(ctrl);
	dev_warn(ctrl->dev,
		 "namespace %u %s: resetting, which stops the peers' queue pairs\n",
		 nsid, what);
	nvmep_ctrl_fence(ctrl, generation);
}

static void nvmep_scan_lost(struct nvmep_ns *ns, const char *what)
{
	nvmep_scan_stop_peers(ns->ctrl, ns->nsid, what);
	nvmep_ns_lose(ns);
}

static void nvmep_scan_known(struct nvmep_ns *ns, const struct nvme_id_ns *id)
{
	if (!nvmep_ns_has_format(ns, id))
		nvmep_scan_stop_peers(ns->ctrl, ns->nsid, "has other blocks");
	if (nvmep_ns_update(ns, id))
		dev_warn(ns->ctrl->dev, "namespace %u keeps its old limits\n",
			 ns->nsid);
}

/* A namespace is there, @ns if it was known. */
static void nvmep_scan_found(struct nvmep_ctrl *ctrl, u32 nsid, u64 scan,
			     struct nvmep_ns *ns, const struct nvme_id_ns *id,
			     const struct nvmep_identifiers *ids)
{
	if (ns && !nvmep_identifiers_equal(&ns->ids, ids)) {
		dev_warn(ctrl->dev, "namespace %u is another one now\n", nsid);
		nvmep_scan_lost(ns, "was replaced");
		ns = NULL;
	}
	if (!ns) {
		nvmep_ns_add(ctrl, nsid, scan, id, ids);
		return;
	}
	ns->scan = scan;
	nvmep_scan_known(ns, id);
}

/* Gone since the list was made, or nonsense. */
static bool nvmep_scan_served(struct nvmep_ctrl *ctrl, u32 nsid,
			      const struct nvme_id_ns *id,
			      const struct nvmep_identifiers *ids)
{
	if (ids->csi)
		return true;
	if (!id->ncap)
		return false;
	if (nvmep_format_possible(id))
		return true;
	dev_warn_ratelimited(ctrl->dev,
			     "namespace %u: blocks of more than 2 GiB: not served\n",
			     nsid);
	return false;
}

/*
 * Asks a namespace who and what it is.  Of one of another command set than NVM, which need
 * not have blocks, @id stays as it is.  Returns as nvmep_identify().
 */
static int nvmep_scan_ask(struct nvmep_ctrl *ctrl, u32 nsid,
			  struct nvme_id_ns *id, struct nvmep_identifiers *ids)
{
	int ret = nvmep_identifiers_read(ids, ctrl, nsid);

	if (ret || ids->csi)
		return ret;
	ret = nvmep_identify(ctrl, NVME_IDENTIFY_NAMESPACE, nsid, id);
	if (!ret)
		nvmep_identifiers_add(ids, ctrl, id);
	return ret;
}

/* Adds or updates one namespace.  Returns 0 or why the scan must end. */
static int nvmep_scan_one(struct nvmep_ctrl *ctrl, u32 nsid, u64 scan)
{
	struct nvmep_ns *ns = nvmep_ns_find(ctrl, nsid);
	struct nvmep_identifiers ids;
	struct nvme_id_ns *id;
	int ret;

	id = kzalloc(NVME_IDENTIFY_SIZE, GFP_KERNEL);
	if (!id)
		return -ENOMEM;
	ret = nvmep_scan_ask(ctrl, nsid, id, &ids);
	/* What cannot be asked now counts as it was; the next scan tries again. */
	if (ns && nvmep_status_transient(ret))
		ns->scan = scan;
	if (!ret && nvmep_scan_served(ctrl, nsid, id, &ids))
		nvmep_scan_found(ctrl, nsid, scan, ns, id, &ids);
	kfree(id);
	return min(ret, 0);
}

static int nvmep_scan_sequential(struct nvmep_ctrl *ctrl, u64 scan)
{
	u32 nsid, count = le32_to_cpu(ctrl->id->nn);
	int ret = 0;

	for (nsid = 1; nsid <= count && !ret; nsid++)
		ret = nvmep_scan_one(ctrl, nsid, scan);
	return ret;
}

/* Active Namespace ID list, base specification 5.1.13.2.2. */
static int nvmep_scan_list(struct nvmep_ctrl *ctrl, __le32 *list, u64 scan)
{
	u32 last = 0;
	int ret, i;

	for (;;) {
		ret = nvmep_identify(ctrl, NVME_IDENTIFY_NAMESPACE_LIST, last,
				     list);
		if (ret)
			return ret;
		for (i = 0; i < NVME_NAMESPACE_LIST_LENGTH; i++) {
			u32 nsid = le32_to_cpu(list[i]);

			if (!nsid)
				return 0;
			/* One that does not ascend need not end either. */
			if (nsid <= last)
				return -EPROTO;
			last = nsid;
			ret = nvmep_scan_one(ctrl, nsid, scan);
			if (ret)
				return ret;
		}
	}
}

static void nvmep_scan_sweep(struct nvmep_ctrl *ctrl, u64 scan)
{
	struct nvmep_ns *ns, *next;

	list_for_each_entry_safe(ns, next, &ctrl->cpu->namespaces, entry)
		if (ns->scan != scan)
			nvmep_scan_lost(ns, "has gone");
}

static int nvmep_scan_all(struct nvmep_ctrl *ctrl, __le32 *list)
{
	u64 scan = ++ctrl->cpu->scans;
	int ret;

	ret = nvmep_scan_list(ctrl, list, scan);
	if (ret > 0)
		ret = nvmep_scan_sequential(ctrl, scan);
	/* What an interrupted scan did not see may still be there. */
	if (!ret)
		nvmep_scan_sweep(ctrl, scan);
	return ret;
}

/**
 * nvmep_scan() - look for namespaces, do not wait
 * @ctrl: controller; nothing happens unless it is LIVE
 */
void nvmep_scan(struct nvmep_ctrl *ctrl)
{
	unsigned long flags;

	/* Under the lock, so that nothing is queued behind a removal. */
	spin_lock_irqsave(&ctrl->state_lock, flags);
	if (ctrl->state == NVMEP_CTRL_LIVE)
		queue_work(nvmep_wq, &ctrl->cpu->scan_work);
	spin_unlock_irqrestore(&ctrl->state_lock, flags);
}

/**
 * nvmep_scan_work() - the work behind nvmep_scan()
 * @work: scan_work of the CPU's floor
 */
void nvmep_scan_work(struct work_struct *work)
{
	struct nvmep_cpu *cpu = container_of(work, struct nvmep_cpu, scan_work);
	struct nvmep_ctrl *ctrl = cpu->ctrl;
	u32 generation = nvmep_ctrl_generation(ctrl);
	__le32 *list;
	int ret;

	/* In this order: a stop after the question moves the generation. */
	smp_rmb();
	if (nvmep_ctrl_state(ctrl) != NVMEP_CTRL_LIVE)
		return;
	list = kmalloc(NVME_IDENTIFY_SIZE, GFP_KERNEL);
	if (!list)
		return;
	mutex_lock(&cpu->scan_lock);
	if (!nvmep_block_adapt(ctrl))
		nvmep_scan(ctrl);
	nvmep_moved_submit(ctrl);
	ret = nvmep_scan_all(ctrl, list);
	mutex_unlock(&cpu->scan_lock);
	/* A stop in between ends in another scan or in removal. */
	if (ret && ret != -EINTR)
		dev_err(ctrl->dev, "scan for namespaces failed: %d\n", ret);
	/* What could not be asked counts as it was. */
	ctrl->peer_ops->restarted(ctrl, generation);
	kfree(list);
}

/**
 * nvmep_namespaces_remove() - take all namespaces away
 * @ctrl: controller in a state that no scan starts in
 *
 * I/O that can still be done is done, if the controller runs.
 */
void nvmep_namespaces_remove(struct nvmep_ctrl *ctrl)
{
	struct nvmep_ns *ns, *next;

	cancel_work_sync(&ctrl->cpu->scan_work);
	nvmep_moved_submit(ctrl);
	mutex_lock(&ctrl->cpu->scan_lock);
	list_for_each_entry_safe(ns, next, &ctrl->cpu->namespaces, entry)
		nvmep_ns_remove(ns);
	mutex_unlock(&ctrl->cpu->scan_lock);
}
