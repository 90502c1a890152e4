// SPDX-License-Identifier: GPL-2.0-only
/*
 * The life of a namespace: its disk, its place on the list, its end.
 *
 * Namespaces come and go under scan_lock.  Who holds scan_lock may walk the
 * list; who must not wait for a scan takes namespaces_lock, which guards each
 * single change of the list and is held for short times only.  Who must not wait at
 * all reads the list under namespaces_srcu, for which an end of a namespace waits.
 */
#include <linux/blk-mq.h>
#include <linux/rculist.h>
#include <linux/slab.h>

#include "compat.h"
#include "core/ctrl.h"
#include "core/data.h"
#include "cpu.h"
#include "format.h"
#include "limits.h"
#include "namespace.h"
#include "ns_sysfs.h"

/* --- what Identify says -------------------------------------------------- */

static bool nvmep_ns_is_as_before(const struct nvmep_ns *ns,
				  const struct nvme_id_ns *id,
				  const struct nvmep_limits *limits)
{
	return ns->format != NVMEP_NS_FORMAT_UNKNOWN &&
	       nvmep_ns_has_format(ns, id) &&
	       !memcmp(limits, &ns->limits, sizeof(*limits));
}

/* Waits for commands under way, and new ones wait for those. */
static int nvmep_ns_change(struct nvmep_ns *ns, const struct nvme_id_ns *id,
			   const struct nvmep_limits *limits)
{
	struct nvmep_limits_update update;
	int ret;

	nvmep_limits_begin(&update, ns->queue);
	ret = nvmep_limits_commit(&update, ns->queue, limits);
	if (!ret)
		ns->limits = *limits;
	nvmep_ns_set_format(ns, id);
	nvmep_limits_end(&update, ns->queue);
	return ret;
}

/**
 * nvmep_ns_update() - take over what Identify Namespace says
 * @ns: namespace; scan_lock is held, or nobody knows it yet
 * @id: Identify Namespace, all 0 for another command set than NVM
 *
 * No command is under way while format and limits change; where neither does,
 * nobody waits.  Limits that cannot be changed leave requests that do not fit,
 * which are refused one by one; commands built for another format would move the
 * wrong amount of data.
 *
 * Return: 0, or a negative error code if the old limits stay.
 */
int nvmep_ns_update(struct nvmep_ns *ns, const struct nvme_id_ns *id)
{
	struct nvmep_limits limits;
	int ret = 0;

	nvmep_ns_limits(&limits, ns->ctrl, id);
	if (!nvmep_ns_is_as_before(ns, id, &limits))
		ret = nvmep_ns_change(ns, id, &limits);
	/*
	 * Uevents wait for memory, which may wait for this disk: not while it is
	 * frozen.  What is sent past the new end meanwhile the controller refuses.
	 */
	set_capacity_and_notify(ns->disk, nvmep_ns_sectors(id));
	set_disk_ro(ns->disk, id->nsattr & NVME_NS_ATTR_READ_ONLY);
	return ret;
}

/* --- its life ------------------------------------------------------------ */

/**
 * nvmep_ns_free_disk() - the last reference to a namespace's disk is gone
 * @disk: the disk; free_disk of @fops in struct nvmep_ns_ops
 */
void nvmep_ns_free_disk(struct gendisk *disk)
{
	struct nvmep_ns *ns = disk->private_data;

	nvmep_ctrl_put(ns->ctrl);
	kfree(ns);
}

static struct nvmep_ns *nvmep_ns_alloc(struct nvmep_ctrl *ctrl, u32 nsid)
{
	struct nvmep_ns *ns = kzalloc(sizeof(*ns), GFP_KERNEL);
	struct gendisk *disk;

	if (!ns)
		return NULL;
	ns->ctrl = ctrl;
	ns->nsid = nsid;
	ns->block_shift = SECTOR_SHIFT;
	disk = nvmep_alloc_disk(&ctrl->io_tags, NVMEP_DATA_BOUNDARY, ns);
	if (IS_ERR(disk)) {
		kfree(ns);
		return NULL;
	}
	disk->fops = ctrl->cpu->ns_ops->fops;
	disk->private_data = ns;
	snprintf(disk->disk_name, sizeof(disk->disk_name), "nvmep%dn%u",
		 ctrl->instance, nsid);
	ns->disk = disk;
	ns->queue = disk->queue;
	nvmep_ctrl_get(ctrl);
	return ns;
}

/* Frees a namespace whose disk was never added. */
static void nvmep_ns_abort(struct nvmep_ns *ns)
{
	put_disk(ns->disk);
	nvmep_ctrl_put(ns->ctrl);
	kfree(ns);
}

/* From here on a stop of the controller quiesces it with the others. */
static void nvmep_ns_link(struct nvmep_ns *ns)
{
	struct nvmep_ctrl *ctrl = ns->ctrl;

	mutex_lock(&ctrl->cpu->namespaces_lock);
	if (ctrl->cpu->quiesced)
		blk_mq_quiesce_queue(ns->queue);
	list_add_tail_rcu(&ns->entry, &ctrl->cpu->namespaces);
	WRITE_ONCE(ctrl->namespace_count, ctrl->namespace_count + 1);
	mutex_unlock(&ctrl->cpu->namespaces_lock);
}

static void nvmep_ns_unlink(struct nvmep_ns *ns)
{
	struct nvmep_ctrl *ctrl = ns->ctrl;

	mutex_lock(&ctrl->cpu->namespaces_lock);
	list_del_rcu(&ns->entry);
	WRITE_ONCE(ctrl->namespace_count, ctrl->namespace_count - 1);
	if (ctrl->cpu->quiesced)
		blk_mq_unquiesce_queue(ns->queue);
	mutex_unlock(&ctrl->cpu->namespaces_lock);
	synchronize_srcu(&ctrl->cpu->namespaces_srcu);
}

/* What has no block device worth the name says why. */
static void nvmep_ns_tell_use(struct nvmep_ns *ns, const struct nvme_id_ns *id)
{
	if (ns->ids.csi)
		dev_info(ns->ctrl->dev,
			 "namespace %u: command set %u: passthrough only\n",
			 ns->nsid, ns->ids.csi);
	else if (!nvmep_format_usable(id))
		dev_warn(ns->ctrl->dev,
			 "namespace %u: blocks of %u+%u bytes: passthrough only\n",
			 ns->nsid, 1U << ns->block_shift, ns->metadata_size);
}

/**
 * nvmep_ns_add() - a namespace has come
 * @ctrl: controller; scan_lock is held
 * @nsid: its identifier
 * @scan: number of the scan that found it
 * @id: Identify Namespace, all 0 for another command set than NVM
 * @ids: who it is
 *
 * A failure is logged; the next scan tries again.
 */
void nvmep_ns_add(struct nvmep_ctrl *ctrl, u32 nsid, u64 scan,
		  const struct nvme_id_ns *id,
		  const struct nvmep_identifiers *ids)
{
	struct nvmep_ns *ns = nvmep_ns_alloc(ctrl, nsid);

	if (!ns)
		return;
	ns->scan = scan;
	ns->ids = *ids;
	if (nvmep_ns_update(ns, id))
		goto err_abort;
	nvmep_ns_tell_use(ns, id);
	nvmep_ns_link(ns);
	if (device_add_disk(&ctrl->device, ns->disk, nvmep_ns_groups))
		goto err_unlink;
	if (ctrl->cpu->ns_ops->add_node(ns))
		dev_warn(ctrl->dev, "namespace %u has no character device\n",
			 nsid);
	return;

err_unlink:
	nvmep_ns_unlink(ns);
err_abort:
	dev_err(ctrl->dev, "namespace %u could not be added\n", nsid);
	nvmep_ns_abort(ns);
}

/**
 * nvmep_ns_remove() - a namespace has gone
 * @ns: namespace; scan_lock is held
 *
 * It stays on the list until its disk is gone: if the controller stops while
 * del_gendisk() waits for I/O, that I/O has to be started again or failed with
 * all the other namespaces'.
 */
void nvmep_ns_remove(struct nvmep_ns *ns)
{
	ns->ctrl->cpu->ns_ops->remove_node(ns);
	del_gendisk(ns->disk);
	nvmep_ns_unlink(ns);
	put_disk(ns->disk);
}

/**
 * nvmep_ns_mark_dead() - nothing is read or written any more
 * @ns: namespace
 *
 * Who holds the disk is told, and it has no bytes: nobody begins to write what cannot be
 * written out.  Kernels before 6.2 leave the latter to the driver.
 */
void nvmep_ns_mark_dead(struct nvmep_ns *ns)
{
	blk_mark_disk_dead(ns->disk);
	set_capacity(ns->disk, 0);
}

/**
 * nvmep_ns_lose() - a namespace is not there any more, or is another one now
 * @ns: namespace; scan_lock is held
 *
 * What was meant for it goes nowhere: neither what waits in its queue nor what
 * the page cache still holds.
 */
void nvmep_ns_lose(struct nvmep_ns *ns)
{
	blk_mq_quiesce_queue(ns->queue);
	ns->format = NVMEP_NS_FORMAT_UNKNOWN;
	blk_mq_unquiesce_queue(ns->queue);
	nvmep_ns_mark_dead(ns);
	nvmep_ns_remove(ns);
}

/**
 * nvmep_ns_find() - a namespace by its identifier
 * @ctrl: controller; scan_lock is held, or namespaces_srcu
 * @nsid: identifier
 *
 * Return: the namespace, or NULL.
 */
struct nvmep_ns *nvmep_ns_find(struct nvmep_ctrl *ctrl, u32 nsid)
{
	struct nvmep_cpu *cpu = ctrl->cpu;
	struct nvmep_ns *ns;

	list_for_each_entry_srcu(ns, &cpu->namespaces, entry,
				 srcu_read_lock_held(&cpu->namespaces_srcu) ||
				 lockdep_is_held(&cpu->scan_lock))
		if (ns->nsid == nsid)
			return ns;
	return NULL;
}

/**
 * nvmep_ns_get_only() - the namespace of a controller that has one
 * @ctrl: controller; scan_lock is not held
 *
 * Return: the namespace, to be given to nvmep_ns_put(), though it may go meanwhile; or an
 * error pointer: -ENOTTY if there is none, -EINVAL if there are several, -EINTR.
 */
struct nvmep_ns *nvmep_ns_get_only(struct nvmep_ctrl *ctrl)
{
	struct list_head *namespaces = &ctrl->cpu->namespaces;
	struct nvmep_ns *ns;

	if (mutex_lock_killable(&ctrl->cpu->scan_lock))
		return ERR_PTR(-EINTR);
	if (list_empty(namespaces)) {
		ns = ERR_PTR(-ENOTTY);
	} else if (!list_is_singular(namespaces)) {
		ns = ERR_PTR(-EINVAL);
	} else {
		ns = list_first_entry(namespaces, struct nvmep_ns, entry);
		get_device(disk_to_dev(ns->disk));
	}
	mutex_unlock(&ctrl->cpu->scan_lock);
	return ns;
}

/**
 * nvmep_ns_put() - undo nvmep_ns_get_only()
 * @ns: namespace, freed if it has gone
 */
void nvmep_ns_put(struct nvmep_ns *ns)
{
	put_device(disk_to_dev(ns->disk));
}
