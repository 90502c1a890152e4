// SPDX-License-Identifier: GPL-2.0-only
/*
 * Namespaces come and go under scan_lock: scan work adds and removes them, the
 * removal of the controller takes the rest.  Who holds scan_lock may walk the
 * list; who must not wait for a scan takes namespaces_lock, which guards each
 * single change of the list and is held for short times only.
 */
#include <linux/blk-mq.h>
#include <linux/slab.h>

#include "core/admin.h"
#include "compat.h"
#include "core/ctrl.h"
#include "namespace.h"
#include "node.h"
#include "passthru.h"

/* How long a shutdown waits for I/O under way, jiffies. */
#define NVMEP_DRAIN_TIMEOUT	(5 * HZ)

/* --- what the controller says -------------------------------------------- */

static const struct nvme_lba_format *nvmep_format(const struct nvme_id_ns *id)
{
	/* The upper two bits of the index came later. */
	return &id->lbaf[(id->flbas & 0xf) | (id->flbas & 0x60) >> 1];
}

/* Can the block layer use a namespace of this format? */
static bool nvmep_format_usable(const struct nvme_id_ns *id)
{
	const struct nvme_lba_format *format = nvmep_format(id);

	if (format->data_shift < SECTOR_SHIFT ||
	    format->data_shift > PAGE_SHIFT)
		return false;
	if (!format->metadata_size)
		return true;
	/* PRACT hides exactly 8 bytes of protection information. */
	return id->dps & NVME_NS_DPS_PI_MASK &&
	       le16_to_cpu(format->metadata_size) == 8;
}

/* Preferred sizes; NVM command set 5.2.3. */
static void nvmep_optimal_limits(struct nvmep_limits *limits,
				 const struct nvme_id_ns *id)
{
	unsigned int unit = limits->block_size;

	if (id->nsfeat & NVME_NS_FEAT_ATOMICS && id->nawupf)
		limits->physical_block_size =
			rounddown_pow_of_two(unit *
					     (le16_to_cpu(id->nawupf) + 1));
	if (!(id->nsfeat & NVME_NS_FEAT_OPTIMAL_IO))
		return;
	limits->io_min = unit * (le16_to_cpu(id->npwg) + 1);
	limits->io_opt = unit * (le16_to_cpu(id->nows) + 1);
	limits->discard_granularity = unit * (le16_to_cpu(id->npdg) + 1);
	/* What is written whole is not larger than what should be. */
	limits->physical_block_size =
		min(limits->physical_block_size,
		    (unsigned int)rounddown_pow_of_two(limits->io_min));
}

static unsigned int nvmep_chunk(const struct nvmep_ctrl *ctrl,
				const struct nvme_id_ns *id, unsigned int unit)
{
	unsigned int boundary = le16_to_cpu(id->noiob) * unit;

	if (!boundary && ctrl->quirks & NVMEP_QUIRK_STRIPE)
		boundary = SZ_128K;
	/* The block layer splits at powers of two only on some kernels. */
	return is_power_of_2(boundary) ? boundary : 0;
}

static void nvmep_ns_limits(struct nvmep_limits *limits,
			    const struct nvmep_ctrl *ctrl,
			    const struct nvme_id_ns *id)
{
	unsigned int unit = SECTOR_SIZE;

	if (nvmep_format_usable(id))
		unit = 1U << nvmep_format(id)->data_shift;
	*limits = (struct nvmep_limits){
		.block_size = unit,
		.physical_block_size = unit,
		.io_min = unit,
		.max_transfer = ctrl->max_transfer,
		.max_segments = min_t(u32, USHRT_MAX,
				      ctrl->max_transfer / ctrl->page_size + 1),
		.chunk = nvmep_chunk(ctrl, id, unit),
		.max_discard = (u64)ctrl->max_discard * unit,
		.discard_granularity = unit,
		.max_discard_ranges = ctrl->max_discard_ranges,
		.max_write_zeroes = ctrl->max_write_zeroes,
		.write_cache = ctrl->id->vwc & NVME_CTRL_VWC_PRESENT,
	};
	nvmep_optimal_limits(limits, id);
}

static void nvmep_ns_set_format(struct nvmep_ns *ns,
				const struct nvme_id_ns *id)
{
	const struct nvme_lba_format *format = nvmep_format(id);
	u8 zeroes = NVME_NS_DLFEAT_DEALLOCATE | 1;

	ns->format = nvmep_format_usable(id) ? NVMEP_NS_FORMAT_BLOCKS :
					       NVMEP_NS_FORMAT_PASSTHROUGH;
	ns->block_shift = format->data_shift;
	ns->metadata_size = le16_to_cpu(format->metadata_size);
	ns->extended = id->flbas & NVME_NS_FLBAS_EXTENDED;
	ns->protection = ns->metadata_size == 8 ?
			 id->dps & NVME_NS_DPS_PI_MASK : 0;
	ns->zeroes_deallocate = (id->dlfeat & (NVME_NS_DLFEAT_DEALLOCATE | 7)) ==
				zeroes;
}

static sector_t nvmep_ns_sectors(const struct nvme_id_ns *id)
{
	if (!nvmep_format_usable(id))
		return 0;
	return le64_to_cpu(id->nsze) <<
	       (nvmep_format(id)->data_shift - SECTOR_SHIFT);
}

/*
 * Takes over what Identify Namespace says, with no command under way.  Limits
 * that cannot be changed leave requests that do not fit, which are refused one
 * by one; commands built for another format would move the wrong amount of data.
 */
static int nvmep_ns_update(struct nvmep_ns *ns, const struct nvme_id_ns *id)
{
	struct nvmep_limits_update update;
	struct nvmep_limits limits;
	int ret;

	nvmep_ns_limits(&limits, ns->ctrl, id);
	nvmep_limits_begin(&update, ns->queue);
	ret = nvmep_limits_commit(&update, ns->queue, &limits);
	nvmep_ns_set_format(ns, id);
	set_capacity_and_notify(ns->disk, nvmep_ns_sectors(id));
	set_disk_ro(ns->disk, id->nsattr & NVME_NS_ATTR_READ_ONLY);
	nvmep_limits_end(&update, ns->queue);
	return ret;
}

static void nvmep_read_uuid(struct nvmep_ns *ns, void *buffer)
{
	const struct nvme_ns_descriptor *descriptor = buffer;
	unsigned int offset = 0;

	if (ns->ctrl->vs < NVME_VERSION(1, 3) ||
	    nvmep_identify(ns->ctrl, NVME_IDENTIFY_DESCRIPTORS, ns->nsid,
			   buffer))
		return;
	while (offset + sizeof(*descriptor) + sizeof(ns->uuid) <=
	       NVME_IDENTIFY_SIZE) {
		descriptor = buffer + offset;
		if (!descriptor->length)
			return;
		if (descriptor->type == NVME_NS_DESCRIPTOR_UUID)
			import_uuid(&ns->uuid, (const u8 *)(descriptor + 1));
		offset += sizeof(*descriptor) + descriptor->length;
	}
}

/* --- one namespace ------------------------------------------------------- */

static void nvmep_free_disk(struct gendisk *disk)
{
	struct nvmep_ns *ns = disk->private_data;

	nvmep_ctrl_put(ns->ctrl);
	kfree(ns);
}

static int nvmep_block_ioctl(struct block_device *bdev, nvmep_blk_mode_t mode,
			     unsigned int cmd, unsigned long arg)
{
	struct nvmep_passthru from = {
		.ns = bdev->bd_disk->private_data,
		.write = mode & NVMEP_BLK_OPEN_WRITE,
		.partition = bdev_is_partition(bdev),
	};

	from.ctrl = from.ns->ctrl;
	return nvmep_passthru_ioctl(&from, cmd, (void __user *)arg);
}

static const struct block_device_operations nvmep_block_ops = {
	.owner = THIS_MODULE,
	.ioctl = nvmep_block_ioctl,
	.compat_ioctl = blkdev_compat_ptr_ioctl,
	.free_disk = nvmep_free_disk,
};

static ssize_t nsid_show(struct device *dev, struct device_attribute *attr,
			 char *buf)
{
	struct nvmep_ns *ns = dev_to_disk(dev)->private_data;

	return sysfs_emit(buf, "%u\n", ns->nsid);
}
static DEVICE_ATTR_RO(nsid);

/* Identify's strings are padded with spaces, by some with zeroes. */
static int nvmep_trimmed(const char *string, int length)
{
	while (length && (string[length - 1] == ' ' || !string[length - 1]))
		length--;
	return length;
}

/* As the kernel's own driver has it: names of links survive a change of driver. */
static ssize_t wwid_show(struct device *dev, struct device_attribute *attr,
			 char *buf)
{
	struct nvmep_ns *ns = dev_to_disk(dev)->private_data;
	const struct nvme_id_ctrl *id = ns->ctrl->id;

	if (!uuid_is_null(&ns->uuid))
		return sysfs_emit(buf, "uuid.%pU\n", &ns->uuid);
	if (memchr_inv(ns->nguid, 0, sizeof(ns->nguid)))
		return sysfs_emit(buf, "eui.%16phN\n", ns->nguid);
	if (memchr_inv(ns->eui64, 0, sizeof(ns->eui64)))
		return sysfs_emit(buf, "eui.%8phN\n", ns->eui64);
	return sysfs_emit(buf, "nvme.%04x-%*phN-%*phN-%08x\n",
			  le16_to_cpu(id->vid),
			  nvmep_trimmed(id->serial, sizeof(id->serial)),
			  id->serial,
			  nvmep_trimmed(id->model, sizeof(id->model)),
			  id->model, ns->nsid);
}
static DEVICE_ATTR_RO(wwid);

static struct attribute *nvmep_ns_attrs[] = {
	&dev_attr_nsid.attr,
	&dev_attr_wwid.attr,
	NULL
};
ATTRIBUTE_GROUPS(nvmep_ns);

static struct nvmep_ns *nvmep_ns_alloc(struct nvmep_ctrl *ctrl, u32 nsid)
{
	struct nvmep_ns *ns = kzalloc(sizeof(*ns), GFP_KERNEL);
	struct gendisk *disk;

	if (!ns)
		return NULL;
	ns->ctrl = ctrl;
	ns->nsid = nsid;
	ns->block_shift = SECTOR_SHIFT;
	disk = nvmep_alloc_disk(&ctrl->io_tags, ns);
	if (IS_ERR(disk)) {
		kfree(ns);
		return NULL;
	}
	disk->fops = &nvmep_block_ops;
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

	mutex_lock(&ctrl->namespaces_lock);
	if (ctrl->quiesced)
		blk_mq_quiesce_queue(ns->queue);
	list_add_tail(&ns->entry, &ctrl->namespaces);
	WRITE_ONCE(ctrl->namespace_count, ctrl->namespace_count + 1);
	mutex_unlock(&ctrl->namespaces_lock);
}

static void nvmep_ns_unlink(struct nvmep_ns *ns)
{
	struct nvmep_ctrl *ctrl = ns->ctrl;

	mutex_lock(&ctrl->namespaces_lock);
	list_del(&ns->entry);
	WRITE_ONCE(ctrl->namespace_count, ctrl->namespace_count - 1);
	if (ctrl->quiesced)
		blk_mq_unquiesce_queue(ns->queue);
	mutex_unlock(&ctrl->namespaces_lock);
}

static void nvmep_ns_add(struct nvmep_ctrl *ctrl, u32 nsid, u64 scan,
			 struct nvme_id_ns *id)
{
	struct nvmep_ns *ns = nvmep_ns_alloc(ctrl, nsid);

	if (!ns)
		return;
	ns->scan = scan;
	memcpy(ns->nguid, id->nguid, sizeof(ns->nguid));
	memcpy(ns->eui64, id->eui64, sizeof(ns->eui64));
	if (nvmep_ns_update(ns, id))
		goto err_abort;
	if (!nvmep_format_usable(id))
		dev_warn(ctrl->dev,
			 "namespace %u: blocks of %u+%u bytes: passthrough only\n",
			 nsid, 1U << ns->block_shift, ns->metadata_size);
	nvmep_read_uuid(ns, id);
	nvmep_ns_link(ns);
	if (device_add_disk(&ctrl->device, ns->disk, nvmep_ns_groups))
		goto err_unlink;
	if (nvmep_node_add_ns(ns))
		dev_warn(ctrl->dev, "namespace %u has no character device\n",
			 nsid);
	return;

err_unlink:
	nvmep_ns_unlink(ns);
err_abort:
	dev_err(ctrl->dev, "namespace %u could not be added\n", nsid);
	nvmep_ns_abort(ns);
}

/*
 * It stays on the list until its disk is gone: if the controller stops while
 * del_gendisk() waits for I/O, that I/O has to be started again or failed with
 * all the other namespaces'.
 */
static void nvmep_ns_remove(struct nvmep_ns *ns)
{
	nvmep_node_remove_ns(ns);
	del_gendisk(ns->disk);
	nvmep_ns_unlink(ns);
	put_disk(ns->disk);
}

/* --- scanning ------------------------------------------------------------ */

static struct nvmep_ns *nvmep_ns_find(struct nvmep_ctrl *ctrl, u32 nsid)
{
	struct nvmep_ns *ns;

	lockdep_assert_held(&ctrl->scan_lock);

	list_for_each_entry(ns, &ctrl->namespaces, entry)
		if (ns->nsid == nsid)
			return ns;
	return NULL;
}

/* Is this an error that says nothing about the namespace, only about now? */
static bool nvmep_status_transient(int ret)
{
	return ret > 0 && !(ret & NVME_STATUS_DNR) &&
	       (ret & NVME_STATUS_MASK) != NVME_SC_INVALID_NAMESPACE;
}

/* Adds or updates one namespace.  Returns 0 or why the scan must end. */
static int nvmep_scan_one(struct nvmep_ctrl *ctrl, u32 nsid, u64 scan)
{
	struct nvmep_ns *ns = nvmep_ns_find(ctrl, nsid);
	struct nvme_id_ns *id;
	int ret;

	id = kmalloc(NVME_IDENTIFY_SIZE, GFP_KERNEL);
	if (!id)
		return -ENOMEM;
	ret = nvmep_identify(ctrl, NVME_IDENTIFY_NAMESPACE, nsid, id);
	if (ns && nvmep_status_transient(ret))
		ns->scan = scan;
	/* Gone since the list was made, or of a command set we do not speak. */
	if (ret || !id->ncap)
		goto out;
	if (ns) {
		ns->scan = scan;
		if (nvmep_ns_update(ns, id))
			dev_warn(ctrl->dev, "namespace %u keeps its old limits\n",
				 nsid);
	} else {
		nvmep_ns_add(ctrl, nsid, scan, id);
	}
out:
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

	list_for_each_entry_safe(ns, next, &ctrl->namespaces, entry)
		if (ns->scan != scan)
			nvmep_ns_remove(ns);
}

static int nvmep_scan_all(struct nvmep_ctrl *ctrl, __le32 *list)
{
	u64 scan = ++ctrl->scans;
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
 * nvmep_scan_work() - the work behind nvmep_scan()
 * @work: scan_work of a controller
 */
void nvmep_scan_work(struct work_struct *work)
{
	struct nvmep_ctrl *ctrl = container_of(work, struct nvmep_ctrl,
					       scan_work);
	__le32 *list;
	int ret;

	if (nvmep_ctrl_state(ctrl) != NVMEP_CTRL_LIVE)
		return;
	list = kmalloc(NVME_IDENTIFY_SIZE, GFP_KERNEL);
	if (!list)
		return;
	mutex_lock(&ctrl->scan_lock);
	ret = nvmep_scan_all(ctrl, list);
	mutex_unlock(&ctrl->scan_lock);
	/* A stop in between ends in another scan or in removal. */
	if (ret && ret != -EINTR)
		dev_err(ctrl->dev, "scan for namespaces failed: %d\n", ret);
	kfree(list);
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
		queue_work(nvmep_wq, &ctrl->scan_work);
	spin_unlock_irqrestore(&ctrl->state_lock, flags);
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

	cancel_work_sync(&ctrl->scan_work);
	mutex_lock(&ctrl->scan_lock);
	list_for_each_entry_safe(ns, next, &ctrl->namespaces, entry)
		nvmep_ns_remove(ns);
	mutex_unlock(&ctrl->scan_lock);
}

/* --- all namespaces at once ---------------------------------------------- */

/**
 * nvmep_namespaces_quiesce() - no I/O is dispatched after this
 * @ctrl: controller
 *
 * Waits for whoever is dispatching.  Holds for namespaces yet to come.
 */
void nvmep_namespaces_quiesce(struct nvmep_ctrl *ctrl)
{
	struct nvmep_ns *ns;

	mutex_lock(&ctrl->namespaces_lock);
	if (!ctrl->quiesced)
		list_for_each_entry(ns, &ctrl->namespaces, entry)
			blk_mq_quiesce_queue(ns->queue);
	ctrl->quiesced = true;
	mutex_unlock(&ctrl->namespaces_lock);
}

static void nvmep_namespaces_unquiesce_locked(struct nvmep_ctrl *ctrl)
{
	struct nvmep_ns *ns;

	lockdep_assert_held(&ctrl->namespaces_lock);

	if (ctrl->quiesced)
		list_for_each_entry(ns, &ctrl->namespaces, entry)
			blk_mq_unquiesce_queue(ns->queue);
	ctrl->quiesced = false;
}

/**
 * nvmep_namespaces_unquiesce() - undo nvmep_namespaces_quiesce()
 * @ctrl: controller
 */
void nvmep_namespaces_unquiesce(struct nvmep_ctrl *ctrl)
{
	mutex_lock(&ctrl->namespaces_lock);
	nvmep_namespaces_unquiesce_locked(ctrl);
	mutex_unlock(&ctrl->namespaces_lock);
}

/**
 * nvmep_namespaces_drain() - let I/O under way finish, and start no more
 * @ctrl: running controller that is to be shut down
 *
 * Waits some seconds at most.  Leaves the namespaces quiesced.
 */
void nvmep_namespaces_drain(struct nvmep_ctrl *ctrl)
{
	struct nvmep_ns *ns;

	mutex_lock(&ctrl->namespaces_lock);
	list_for_each_entry(ns, &ctrl->namespaces, entry) {
		blk_freeze_queue_start(ns->queue);
		blk_mq_freeze_queue_wait_timeout(ns->queue,
						 NVMEP_DRAIN_TIMEOUT);
		if (!ctrl->quiesced)
			blk_mq_quiesce_queue(ns->queue);
		nvmep_unfreeze_queue(ns->queue);
	}
	ctrl->quiesced = true;
	mutex_unlock(&ctrl->namespaces_lock);
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

	mutex_lock(&ctrl->namespaces_lock);
	nvmep_namespaces_unquiesce_locked(ctrl);
	list_for_each_entry(ns, &ctrl->namespaces, entry)
		blk_mark_disk_dead(ns->disk);
	mutex_unlock(&ctrl->namespaces_lock);
}

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

	lockdep_assert_held(&ctrl->scan_lock);

	list_for_each_entry(ns, &ctrl->namespaces, entry)
		blk_freeze_queue_start(ns->queue);
	list_for_each_entry(ns, &ctrl->namespaces, entry)
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

	lockdep_assert_held(&ctrl->scan_lock);

	/* Memory must not wait for I/O that waits for us. */
	memflags = memalloc_noio_save();
	id = kmalloc(NVME_IDENTIFY_SIZE, GFP_KERNEL);
	list_for_each_entry(ns, &ctrl->namespaces, entry) {
		ns->format = NVMEP_NS_FORMAT_UNKNOWN;
		if (id && !nvmep_identify(ctrl, NVME_IDENTIFY_NAMESPACE,
					  ns->nsid, id))
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

	lockdep_assert_held(&ctrl->scan_lock);

	list_for_each_entry(ns, &ctrl->namespaces, entry)
		nvmep_unfreeze_queue(ns->queue);
}
