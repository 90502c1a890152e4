// SPDX-License-Identifier: GPL-2.0-only
/*
 * Lifetime of a namespace: allocation, disk, link in the list, removal.
 *
 * Namespaces are linked and unlinked under scan_lock.  The list may be walked
 * - under scan_lock;
 * - under namespaces_lock, by code that must not wait for a scan; or
 * - under namespaces_srcu, by I/O submission and polling.  Removal waits for
 *   such readers after it has unlinked the namespace.
 */
#include <linux/blk-mq.h>
#include <linux/rculist.h>
#include <linux/slab.h>

#include "compat.h"
#include "core/ctrl.h"
#include "core/data.h"
#include "core/reset.h"
#include "cpu.h"
#include "identify.h"
#include "module.h"
#include "namespace.h"
#include "node.h"
#include "scan.h"
#include "sysfs.h"

/* Jiffies between reads of the blocks in use, as in the in-tree driver. */
#define NVMEP_NUSE_INTERVAL	(5 * HZ)

/* Jiffies for which a command that changes namespaces waits for their disks. */
#define NVMEP_REMOVAL_WAIT	(5 * HZ)

/* --- update -------------------------------------------------------------- */

static bool nvmep_ns_unchanged(const struct nvmep_ns *ns,
			       const struct nvme_id_ns *id,
			       const struct nvmep_limits *limits)
{
	return ns->format != NVMEP_NS_FORMAT_UNKNOWN &&
	       nvmep_ns_has_format(ns, id) &&
	       !memcmp(limits, &ns->limits, sizeof(*limits));
}

/*
 * Freezes the queue: no command may be in flight while format and limits
 * change.
 */
static int nvmep_ns_apply(struct nvmep_ns *ns, const struct nvme_id_ns *id,
			  const struct nvmep_limits *limits)
{
	struct nvmep_limits_update update;
	int ret;

	nvmep_limits_begin(&update, ns->queue);
	nvmep_freeze_wait(ns->ctrl, ns->queue);
	ret = nvmep_limits_commit(&update, ns->queue, limits);
	if (!ret)
		ns->limits = *limits;
	nvmep_ns_set_format(ns, id);
	nvmep_limits_end(&update, ns->queue);
	return ret;
}

/**
 * nvmep_ns_update() - apply Identify Namespace data
 * @ns: namespace; scan_lock is held, or it is not linked yet
 * @id: Identify Namespace data, all 0 for a command set without blocks
 *
 * Freezes the request queue if the format or the limits differ.  The format is
 * applied even if the block layer rejects the limits: requests that do not fit
 * it fail one by one, whereas commands built for the old format would move the
 * wrong amount of data.
 *
 * Return: 0, or a negative error code if the old limits stay.
 */
int nvmep_ns_update(struct nvmep_ns *ns, const struct nvme_id_ns *id)
{
	struct nvmep_limits limits;
	int ret = 0;

	nvmep_ns_limits(&limits, ns->ctrl, id);
	if (!nvmep_ns_unchanged(ns, id, &limits))
		ret = nvmep_ns_apply(ns, id, &limits);
	/*
	 * Not while the queue is frozen: the uevent allocates memory, and
	 * reclaim may issue I/O to this disk.  Until then the controller
	 * rejects I/O beyond its new end.
	 */
	set_capacity_and_notify(ns->disk,
				ns->ids.csi ? 0 : nvmep_ns_sectors(id));
	WRITE_ONCE(ns->nuse, le64_to_cpu(id->nuse));
	set_disk_ro(ns->disk, id->nsattr & NVME_NS_ATTR_RO);
	return ret;
}

/* --- identity ------------------------------------------------------------ */

/*
 * Namespaces with a disk that is not being removed, of all controllers.  Links
 * in /dev/disk/by-id, device mapper and file systems take disks of the same
 * identity for one disk, so duplicates are handled as in-tree.  The lock nests
 * in scan_lock.
 */
static DEFINE_MUTEX(nvmep_identity_lock);
static LIST_HEAD(nvmep_identities);

/* Does it claim that other controllers of its subsystem may access it? */
static bool nvmep_ns_is_shared(const struct nvmep_ctrl *ctrl,
			       const struct nvme_id_ns *id)
{
	return ctrl->id->cmic & NVME_CTRL_CMIC_MULTI_CTRL &&
	       id->nmic & NVME_NS_NMIC_SHARED;
}

static bool nvmep_same_subsystem(const struct nvmep_ctrl *a,
				 const struct nvmep_ctrl *b)
{
	return a->id->subnqn[0] &&
	       !memcmp(a->id->subnqn, b->id->subnqn, sizeof(a->id->subnqn));
}

/*
 * Two paths to a shared namespace are two disks, as there is no multipath.  A
 * duplicate in one controller is refused, and one that claims to be shared.  If
 * another disk merely has the same identifiers, this one is used without.
 */
static int nvmep_ns_handle_duplicate(struct nvmep_ns *ns,
				     const struct nvmep_ns *other, bool shared)
{
	bool same = ns->ctrl == other->ctrl;

	if (!same && shared && nvmep_same_subsystem(ns->ctrl, other->ctrl)) {
		dev_warn(ns->ctrl->dev,
			 "namespace %u: shared with %s, multipath is not supported\n",
			 ns->nsid, other->disk->disk_name);
		return 0;
	}
	if (same || shared) {
		dev_err_ratelimited(ns->ctrl->dev,
				    "namespace %u: same identifiers as %s, ignoring the namespace\n",
				    ns->nsid, other->disk->disk_name);
		return -EEXIST;
	}
	dev_err(ns->ctrl->dev,
		"namespace %u: same identifiers as %s, ignoring the identifiers\n",
		ns->nsid, other->disk->disk_name);
	ns->ids = (struct nvmep_identifiers){ .csi = ns->ids.csi };
	return 0;
}

/* A namespace of another controller too, which stays while it is listed. */
static int nvmep_ns_claim_identity(struct nvmep_ns *ns, bool shared)
{
	struct nvmep_ns *other;
	int ret = 0;

	mutex_lock(&nvmep_identity_lock);
	list_for_each_entry(other, &nvmep_identities, identity) {
		if (!nvmep_identifiers_clash(&ns->ids, &other->ids))
			continue;
		ret = nvmep_ns_handle_duplicate(ns, other, shared);
		if (ret)
			break;
	}
	if (!ret)
		list_add_tail(&ns->identity, &nvmep_identities);
	mutex_unlock(&nvmep_identity_lock);
	return ret;
}

static void nvmep_ns_release_identity(struct nvmep_ns *ns)
{
	mutex_lock(&nvmep_identity_lock);
	list_del(&ns->identity);
	mutex_unlock(&nvmep_identity_lock);
}

/* --- lifetime ----------------------------------------------------------- */

static void nvmep_ns_free(struct nvmep_ns *ns)
{
	nvmep_ctrl_put(ns->ctrl);
	kfree(ns->effects);
	kfree(ns);
}

/* free_disk() of nvmep_bdev_ops: the last reference to the disk was dropped. */
void nvmep_ns_free_disk(struct gendisk *disk)
{
	nvmep_ns_free(disk->private_data);
}

static void nvmep_ns_remove_work(struct work_struct *work);

static struct nvmep_ns *nvmep_ns_alloc(struct nvmep_ctrl *ctrl, u32 nsid)
{
	struct nvmep_ns *ns = kzalloc(sizeof(*ns), GFP_KERNEL);
	struct gendisk *disk;

	if (!ns)
		return NULL;
	ns->ctrl = ctrl;
	ns->nsid = nsid;
	ns->block_shift = SECTOR_SHIFT;
	INIT_WORK(&ns->remove_work, nvmep_ns_remove_work);
	ratelimit_state_init(&ns->nuse_limit, NVMEP_NUSE_INTERVAL, 1);
	ratelimit_set_flags(&ns->nuse_limit, RATELIMIT_MSG_ON_RELEASE);
	disk = nvmep_alloc_disk(&ctrl->io_tags, NVMEP_DATA_BOUNDARY, ns);
	if (IS_ERR(disk)) {
		kfree(ns);
		return NULL;
	}
	disk->fops = &nvmep_bdev_ops;
	disk->private_data = ns;
	snprintf(disk->disk_name, sizeof(disk->disk_name), "nvmep%dn%u",
		 ctrl->instance, nsid);
	ns->disk = disk;
	ns->queue = disk->queue;
	nvmep_ctrl_get(ctrl);
	return ns;
}

/* Frees a namespace whose disk was never added. */
static void nvmep_ns_free_unadded(struct nvmep_ns *ns)
{
	put_disk(ns->disk);
	nvmep_ns_free(ns);
}

/*
 * From here on a stop of the controller quiesces the namespace.  During suspend
 * its partitions are read after resume.
 */
static int nvmep_ns_link(struct nvmep_ns *ns)
{
	struct nvmep_ctrl *ctrl = ns->ctrl;
	int ret = xa_insert(&ctrl->cpu->by_nsid, ns->nsid, ns, GFP_KERNEL);

	if (ret)
		return ret;
	mutex_lock(&ctrl->cpu->namespaces_lock);
	if (ctrl->cpu->quiesced)
		blk_mq_quiesce_queue(ns->queue);
	if (ctrl->cpu->asleep)
		nvmep_freeze_queue_start_non_owner(ns->queue);
	list_add_tail_rcu(&ns->entry, &ctrl->cpu->namespaces);
	WRITE_ONCE(ctrl->namespace_count, ctrl->namespace_count + 1);
	mutex_unlock(&ctrl->cpu->namespaces_lock);
	return 0;
}

static void nvmep_ns_unlink(struct nvmep_ns *ns)
{
	struct nvmep_ctrl *ctrl = ns->ctrl;

	xa_erase(&ctrl->cpu->by_nsid, ns->nsid);
	mutex_lock(&ctrl->cpu->namespaces_lock);
	list_del_rcu(&ns->entry);
	WRITE_ONCE(ctrl->namespace_count, ctrl->namespace_count - 1);
	if (ctrl->cpu->quiesced)
		blk_mq_unquiesce_queue(ns->queue);
	if (ctrl->cpu->asleep)
		nvmep_unfreeze_queue_non_owner(ns->queue);
	mutex_unlock(&ctrl->cpu->namespaces_lock);
}

/* Logs why the disk has no capacity. */
static void nvmep_ns_log_passthrough_only(struct nvmep_ns *ns,
					  const struct nvme_id_ns *id)
{
	if (ns->ids.csi)
		dev_info(ns->ctrl->dev,
			 "namespace %u: command set %u, passthrough only\n",
			 ns->nsid, ns->ids.csi);
	else if (!nvmep_format_usable(id))
		dev_warn(ns->ctrl->dev,
			 "namespace %u: unsupported LBA format %u+%u, passthrough only\n",
			 ns->nsid, 1U << ns->block_shift, ns->metadata_size);
	else if (id->nsze && !nvmep_ns_sectors(id))
		dev_warn(ns->ctrl->dev,
			 "namespace %u: %llu blocks are more than a disk may have, passthrough only\n",
			 ns->nsid, le64_to_cpu(id->nsze));
}

/*
 * After the grace period none finds the namespace; one that did may have kicked
 * its requeue list after del_gendisk() had cancelled that work.
 */
static void nvmep_ns_synchronize(struct nvmep_ns *ns)
{
	synchronize_srcu(&ns->ctrl->cpu->namespaces_srcu);
	cancel_delayed_work_sync(&ns->queue->requeue_work);
}

/**
 * nvmep_ns_add() - add a namespace
 * @ctrl: controller; scan_lock is held
 * @nsid: namespace identifier
 * @scan: number of the scan that found it
 * @id: Identify Namespace data, all 0 for a command set without blocks
 * @ids: globally unique identifiers and command set
 *
 * Return: 0; or a negative error code, logged: the next scan tries again.
 */
int nvmep_ns_add(struct nvmep_ctrl *ctrl, u32 nsid, u64 scan,
		 const struct nvme_id_ns *id,
		 const struct nvmep_identifiers *ids)
{
	struct nvmep_ns *ns = nvmep_ns_alloc(ctrl, nsid);
	int ret = -ENOMEM;

	if (!ns)
		goto err;
	ns->scan = scan;
	ns->ids = *ids;
	ns->reported = *ids;
	/* Of the NVM command set: ctrl->effects. */
	ret = ids->csi == NVME_CSI_ZNS ?
	      nvmep_read_effects(ctrl, ids->csi, &ns->effects) : 0;
	if (!ret)
		ret = nvmep_ns_update(ns, id);
	if (ret)
		goto err_free;
	nvmep_ns_log_passthrough_only(ns, id);
	ret = nvmep_ns_claim_identity(ns, nvmep_ns_is_shared(ctrl, id));
	if (ret)
		goto err_free;
	ret = nvmep_ns_link(ns);
	if (ret)
		goto err_release;
	ret = device_add_disk(&ctrl->device, ns->disk, nvmep_ns_groups);
	if (ret)
		goto err_unlink;
	nvmep_fault_inject_add(&ns->failures.fault, ns->disk->disk_name);
	if (nvmep_node_add_ns(ns))
		dev_warn(ctrl->dev,
			 "namespace %u: no character device, block device only\n",
			 nsid);
	return 0;

err_unlink:
	nvmep_ns_unlink(ns);
	nvmep_ns_synchronize(ns);
err_release:
	nvmep_ns_release_identity(ns);
err_free:
	nvmep_ns_free_unadded(ns);
err:
	dev_err_ratelimited(ctrl->dev,
			    "namespace %u: not added (%d), the next scan retries\n",
			    nsid, ret);
	return ret;
}

/*
 * The namespace stays linked until its disk is deleted.  del_gendisk() waits
 * for I/O, and if the controller stops meanwhile, only linked namespaces are
 * unquiesced or failed: unlinking first would deadlock.
 */
static void nvmep_ns_delete_disk(struct nvmep_ns *ns)
{
	nvmep_node_remove_ns(ns);
	nvmep_fault_inject_remove(&ns->failures.fault);
	/* Do not wait for the delay of a retry. */
	blk_mq_kick_requeue_list(ns->queue);
	del_gendisk(ns->disk);
}

/**
 * nvmep_ns_remove() - remove a namespace of a controller that is unbound
 * @ns: namespace that is not being removed; scan_lock is held
 */
void nvmep_ns_remove(struct nvmep_ns *ns)
{
	nvmep_ns_delete_disk(ns);
	nvmep_ns_release_identity(ns);
	nvmep_ns_unlink(ns);
	nvmep_ns_synchronize(ns);
	put_disk(ns->disk);
}

/**
 * nvmep_ns_mark_dead() - fail new I/O to a namespace
 * @ns: namespace
 *
 * Notifies the holders of the disk and sets its capacity to 0, so that no new
 * page cache gets dirty that could not be written back.  Kernels before 6.2
 * leave the capacity to the driver.
 */
void nvmep_ns_mark_dead(struct nvmep_ns *ns)
{
	/* The holders are waited for, and they may wait for a retry. */
	blk_mq_kick_requeue_list(ns->queue);
	nvmep_mark_disk_dead(ns->disk);
	set_capacity(ns->disk, 0);
}

/*
 * Its NSID may be free for another namespace, which a scan adds: queued before
 * the removal has ended, for nvmep_scan_settled().  The grace period may wait
 * for nvmep_dead_work(), thus for s_umount.
 */
static void nvmep_ns_end_removal(struct nvmep_ns *ns)
{
	struct nvmep_ctrl *ctrl = ns->ctrl;
	struct nvmep_cpu *cpu = ctrl->cpu;

	mutex_lock(&cpu->scan_lock);
	nvmep_ns_unlink(ns);
	mutex_unlock(&cpu->scan_lock);
	nvmep_ns_synchronize(ns);

	mutex_lock(&cpu->scan_lock);
	if (!xa_empty(&cpu->ignored))
		nvmep_scan(ctrl);
	WRITE_ONCE(cpu->removals, cpu->removals - 1);
	mutex_unlock(&cpu->scan_lock);
	wake_up_all(&ctrl->state_wait);
}

/*
 * Marking the disk dead and deleting it wait for s_umount of its file system,
 * which a process may hold without a time limit, as umount() of a file system
 * whose FUSE server does not answer.  So this takes scan_lock only afterwards.
 */
static void nvmep_ns_remove_work(struct work_struct *work)
{
	struct nvmep_ns *ns = container_of(work, struct nvmep_ns, remove_work);

	nvmep_ns_mark_dead(ns);
	/* Marking the disk dead has begun to freeze its queue. */
	nvmep_freeze_wait(ns->ctrl, ns->queue);
	nvmep_ns_delete_disk(ns);
	nvmep_ns_end_removal(ns);
	put_disk(ns->disk);
}

/**
 * nvmep_ns_begin_removal() - remove a namespace that the controller no longer
 *	has
 * @ns: namespace that is not being removed; scan_lock is held
 *
 * Its identifier may belong to another namespace by now.  Queued requests, dirty
 * page cache and commands of peers fail rather than reach that one.  Its disk
 * exists until a work has deleted it.
 */
void nvmep_ns_begin_removal(struct nvmep_ns *ns)
{
	struct nvmep_cpu *cpu = ns->ctrl->cpu;

	lockdep_assert_held(&cpu->scan_lock);

	/* First: commands of peers do not wait for the grace period. */
	WRITE_ONCE(ns->format_number, 0);
	blk_mq_quiesce_queue(ns->queue);
	ns->format = NVMEP_NS_FORMAT_UNKNOWN;
	blk_mq_unquiesce_queue(ns->queue);
	ns->removed = true;
	/* It may be attached to another controller by now. */
	nvmep_ns_release_identity(ns);
	WRITE_ONCE(cpu->removals, cpu->removals + 1);
	queue_work(nvmep_disk_wq, &ns->remove_work);
}

/**
 * nvmep_scan_settled() - scan, and give disks of removed namespaces time to go
 * @ctrl: controller; scan_lock is not held
 *
 * So a program that deletes or attaches a namespace finds its disk gone or
 * there, as with the in-tree driver.  A file system may keep a removed disk for
 * any time: then the wait ends after NVMEP_REMOVAL_WAIT, or by a fatal signal.
 */
void nvmep_scan_settled(struct nvmep_ctrl *ctrl)
{
	nvmep_scan(ctrl);
	flush_work(&ctrl->cpu->scan_work);
	if (!READ_ONCE(ctrl->cpu->removals))
		return;
	if (wait_event_killable_timeout(ctrl->state_wait,
					!READ_ONCE(ctrl->cpu->removals),
					NVMEP_REMOVAL_WAIT) > 0)
		flush_work(&ctrl->cpu->scan_work);
}

/**
 * nvmep_ns_wait_removals() - wait until no namespace is being removed
 * @ctrl: controller in a state in which no scan runs; scan_lock is not held
 */
void nvmep_ns_wait_removals(struct nvmep_ctrl *ctrl)
{
	wait_event(ctrl->state_wait, !READ_ONCE(ctrl->cpu->removals));
}

/*
 * Under scan_lock or namespaces_srcu.  NULL if there is none; perhaps one that
 * is being removed.
 */
struct nvmep_ns *nvmep_ns_find(struct nvmep_ctrl *ctrl, u32 nsid)
{
	RCU_LOCKDEP_WARN(!srcu_read_lock_held(&ctrl->cpu->namespaces_srcu) &&
			 !lockdep_is_held(&ctrl->cpu->scan_lock),
			 "namespace may be freed");
	return xa_load(&ctrl->cpu->by_nsid, nsid);
}

/* One that is being removed does not count. */
static struct nvmep_ns *nvmep_ns_only(struct nvmep_ctrl *ctrl)
{
	struct nvmep_ns *ns, *only = NULL;

	lockdep_assert_held(&ctrl->cpu->scan_lock);

	list_for_each_entry(ns, &ctrl->cpu->namespaces, entry) {
		if (ns->removed)
			continue;
		if (only)
			return ERR_PTR(-EINVAL);
		only = ns;
	}
	return only ?: ERR_PTR(-ENOTTY);
}

/**
 * nvmep_ns_get_only() - get a reference to the only namespace of a controller
 * @ctrl: controller; scan_lock is not held
 *
 * The reference keeps the structure allocated, but does not prevent removal.
 * Drop it with nvmep_ns_put().
 *
 * Return: the namespace; or an error pointer: -ENOTTY if there is none, -EINVAL
 * if there are several, -EINTR for a fatal signal.
 */
struct nvmep_ns *nvmep_ns_get_only(struct nvmep_ctrl *ctrl)
{
	struct nvmep_ns *ns;

	if (mutex_lock_killable(&ctrl->cpu->scan_lock))
		return ERR_PTR(-EINTR);
	ns = nvmep_ns_only(ctrl);
	if (!IS_ERR(ns))
		get_device(disk_to_dev(ns->disk));
	mutex_unlock(&ctrl->cpu->scan_lock);
	return ns;
}

void nvmep_ns_put(struct nvmep_ns *ns)
{
	put_device(disk_to_dev(ns->disk));
}

/* --- for peers ------------------------------------------------------------ */

/* The format does not change while the caller has a reference to the queue. */
static int nvmep_ns_read_blocks(struct nvmep_ns *ns,
				struct nvmep_blocks *blocks)
{
	if (ns->metadata_size)
		return -EMEDIUMTYPE;
	*blocks = (struct nvmep_blocks){
		.queue = ns->queue,
		.nsid = ns->nsid,
		.shift = ns->block_shift,
		.format = &ns->format_number,
		.expected = ns->format_number,
	};
	if (ns->format_number)
		return 0;
	return ns->format == NVMEP_NS_FORMAT_UNKNOWN ? -EAGAIN : -EMEDIUMTYPE;
}

/**
 * nvmep_ns_blocks() - the namespace of a block device, see struct nvmep_cpu_ops
 * @ctrl: controller
 * @bdev: open block device, perhaps a partition
 * @blocks: out
 *
 * Return: 0, -EXDEV, -EMEDIUMTYPE or -EAGAIN.
 */
int nvmep_ns_blocks(struct nvmep_ctrl *ctrl, struct block_device *bdev,
		    struct nvmep_blocks *blocks)
{
	struct gendisk *disk = bdev->bd_disk;
	struct nvmep_ns *ns;
	int err;

	if (disk->fops != &nvmep_bdev_ops)
		return -EXDEV;
	ns = disk->private_data;
	if (ns->ctrl != ctrl)
		return -EXDEV;
	if (!percpu_ref_tryget_live(&ns->queue->q_usage_counter))
		return -EAGAIN;
	err = nvmep_ns_read_blocks(ns, blocks);
	percpu_ref_put(&ns->queue->q_usage_counter);
	return err;
}
