// SPDX-License-Identifier: GPL-2.0-only
/*
 * Character device nodes of controllers and namespaces, and the ioctls of block
 * devices.
 *
 * An open file holds a reference to the controller or namespace structure, but
 * does not keep the driver bound.  After unbind each operation fails, because
 * the request queue is dying or the controller is DELETING or DEAD.
 */
#include <linux/blkdev.h>
#include <linux/cdev.h>
#include <linux/fs.h>
#include <linux/hdreg.h>
#include <linux/idr.h>
#include <linux/nvme_peer.h>
#include <linux/poll.h>
#include <linux/sed-opal.h>
#include <linux/string.h>

#include "buffer_io.h"
#include "compat.h"
#include "core/ctrl.h"
#include "namespace.h"
#include "node.h"
#include "opal.h"
#include "passthru.h"
#include "reservation.h"
#include "sysfs.h"
#include "uring.h"

#define NVMEP_MINORS	BIT(MINORBITS)

static dev_t nvmep_ctrl_devt;
static dev_t nvmep_ns_devt;
static struct class *nvmep_ctrl_class;
static struct class *nvmep_ns_class;
static DEFINE_IDA(nvmep_ns_minors);

/* --- controllers --------------------------------------------------------- */

static struct nvmep_ctrl *nvmep_file_ctrl(struct file *file)
{
	return container_of(file_inode(file)->i_cdev, struct nvmep_ctrl, cdev);
}

static int nvmep_ctrl_open(struct inode *inode, struct file *file)
{
	struct nvmep_ctrl *ctrl = container_of(inode->i_cdev,
					       struct nvmep_ctrl, cdev);
	void *peer;
	int ret;

	/* Probe adds the node before its last steps, which cannot fail. */
	ret = wait_event_interruptible(ctrl->state_wait,
				       nvmep_ctrl_state(ctrl) != NVMEP_CTRL_NEW);
	if (ret)
		return ret;
	if (nvmep_ctrl_state(ctrl) >= NVMEP_CTRL_DELETING)
		return -ENODEV;
	peer = ctrl->peer_ops->open(ctrl);
	if (IS_ERR(peer))
		return PTR_ERR(peer);
	file->private_data = peer;
	return 0;
}

static int nvmep_ctrl_file_release(struct inode *inode, struct file *file)
{
	nvmep_file_ctrl(file)->peer_ops->release(file->private_data);
	return 0;
}

static long nvmep_ctrl_ioctl(struct file *file, unsigned int cmd,
			     unsigned long arg)
{
	struct nvmep_passthru from = {
		.ctrl = nvmep_file_ctrl(file),
		.write = file->f_mode & FMODE_WRITE,
	};

	if (_IOC_TYPE(cmd) == NVME_PEER_TYPE)
		return from.ctrl->peer_ops->ioctl(file->private_data, cmd,
						  (void __user *)arg);
	return nvmep_passthru_ioctl(&from, cmd, (void __user *)arg);
}

static int nvmep_ctrl_uring_cmd(struct io_uring_cmd *ioucmd,
				unsigned int issue_flags)
{
	struct nvmep_passthru from = {
		.ctrl = nvmep_file_ctrl(ioucmd->file),
		.write = ioucmd->file->f_mode & FMODE_WRITE,
	};

	if (ioucmd->cmd_op == NVME_PEER_URING_CMD_IO)
		return nvmep_transfer_cmd(&from, ioucmd->file->private_data,
					  ioucmd, issue_flags);
	if (ioucmd->cmd_op == NVME_PEER_URING_CMD_IO_VEC)
		return nvmep_ranges_cmd(&from, ioucmd->file->private_data,
					ioucmd, issue_flags);
	return nvmep_uring_cmd(&from, ioucmd, issue_flags);
}

/* Only I/O commands can be polled; admin commands complete by interrupt. */
static int nvmep_ctrl_uring_cmd_iopoll(struct io_uring_cmd *ioucmd,
				       struct io_comp_batch *batch,
				       unsigned int flags)
{
	if (ioucmd->cmd_op != NVME_PEER_URING_CMD_IO &&
	    ioucmd->cmd_op != NVME_PEER_URING_CMD_IO_VEC)
		return 0;
	return nvmep_transfer_iopoll(nvmep_file_ctrl(ioucmd->file), ioucmd,
				     batch);
}

/* For a caller that got EAGAIN while the controller was being reset. */
static __poll_t nvmep_ctrl_poll(struct file *file, poll_table *wait)
{
	struct nvmep_ctrl *ctrl = nvmep_file_ctrl(file);
	enum nvmep_ctrl_state state;

	poll_wait(file, &ctrl->state_wait, wait);
	state = nvmep_ctrl_state(ctrl);
	if (state >= NVMEP_CTRL_DELETING)
		return EPOLLHUP;
	return state == NVMEP_CTRL_LIVE ? EPOLLIN | EPOLLRDNORM : 0;
}

static const struct file_operations nvmep_ctrl_fops = {
	.owner = THIS_MODULE,
	.open = nvmep_ctrl_open,
	.release = nvmep_ctrl_file_release,
	.unlocked_ioctl = nvmep_ctrl_ioctl,
	.poll = nvmep_ctrl_poll,
	.compat_ioctl = compat_ptr_ioctl,
	.uring_cmd = nvmep_ctrl_uring_cmd,
	.uring_cmd_iopoll = nvmep_ctrl_uring_cmd_iopoll,
};

/* Adds /dev/nvmepX. */
int nvmep_node_add_ctrl(struct nvmep_ctrl *ctrl)
{
	int ret;

	ctrl->device.class = nvmep_ctrl_class;
	ctrl->device.groups = nvmep_ctrl_groups;
	ctrl->device.devt = MKDEV(MAJOR(nvmep_ctrl_devt), ctrl->instance);
	ret = dev_set_name(&ctrl->device, "nvmep%d", ctrl->instance);
	if (ret)
		return ret;
	cdev_init(&ctrl->cdev, &nvmep_ctrl_fops);
	ctrl->cdev.owner = THIS_MODULE;
	return cdev_device_add(&ctrl->cdev, &ctrl->device);
}

/*
 * Removes /dev/nvmepX; open files stay valid.  All namespaces are removed
 * before.
 */
void nvmep_node_remove_ctrl(struct nvmep_ctrl *ctrl)
{
	cdev_device_del(&ctrl->cdev, &ctrl->device);
}

/* --- namespaces ---------------------------------------------------------- */

static struct nvmep_passthru nvmep_ns_passthru(struct file *file)
{
	struct nvmep_ns *ns = container_of(file_inode(file)->i_cdev,
					   struct nvmep_ns, cdev);

	return (struct nvmep_passthru){
		.ctrl = ns->ctrl,
		.ns = ns,
		.write = file->f_mode & FMODE_WRITE,
	};
}

static int nvmep_ns_open(struct inode *inode, struct file *file)
{
	struct nvmep_ns *ns = container_of(inode->i_cdev, struct nvmep_ns,
					   cdev);

	return nvmep_ctrl_state(ns->ctrl) >= NVMEP_CTRL_DELETING ? -ENODEV : 0;
}

static long nvmep_ns_ioctl(struct file *file, unsigned int cmd,
			   unsigned long arg)
{
	struct nvmep_passthru from = nvmep_ns_passthru(file);

	return nvmep_passthru_ioctl(&from, cmd, (void __user *)arg);
}

static int nvmep_ns_uring_cmd(struct io_uring_cmd *ioucmd,
			      unsigned int issue_flags)
{
	struct nvmep_passthru from = nvmep_ns_passthru(ioucmd->file);

	return nvmep_uring_cmd(&from, ioucmd, issue_flags);
}

static int nvmep_ns_uring_cmd_iopoll(struct io_uring_cmd *ioucmd,
				     struct io_comp_batch *batch,
				     unsigned int flags)
{
	struct nvmep_passthru from = nvmep_ns_passthru(ioucmd->file);

	return nvmep_uring_cmd_iopoll(&from, ioucmd, batch);
}

static const struct file_operations nvmep_ns_fops = {
	.owner = THIS_MODULE,
	.open = nvmep_ns_open,
	.unlocked_ioctl = nvmep_ns_ioctl,
	.compat_ioctl = compat_ptr_ioctl,
	.uring_cmd = nvmep_ns_uring_cmd,
	.uring_cmd_iopoll = nvmep_ns_uring_cmd_iopoll,
};

static void nvmep_ns_device_release(struct device *device)
{
	struct nvmep_ns *ns = container_of(device, struct nvmep_ns, device);

	ida_free(&nvmep_ns_minors, MINOR(device->devt));
	/* May free @ns, with the last reference to its disk. */
	put_device(disk_to_dev(ns->disk));
}

/* Adds /dev/ngpXnY, under scan_lock. */
int nvmep_node_add_ns(struct nvmep_ns *ns)
{
	int minor, ret;

	minor = ida_alloc_max(&nvmep_ns_minors, NVMEP_MINORS - 1, GFP_KERNEL);
	if (minor < 0)
		return minor;
	device_initialize(&ns->device);
	get_device(disk_to_dev(ns->disk));
	ns->device.parent = &ns->ctrl->device;
	ns->device.class = nvmep_ns_class;
	ns->device.devt = MKDEV(MAJOR(nvmep_ns_devt), minor);
	ns->device.release = nvmep_ns_device_release;
	cdev_init(&ns->cdev, &nvmep_ns_fops);
	ns->cdev.owner = THIS_MODULE;
	ret = dev_set_name(&ns->device, "ngp%dn%u", ns->ctrl->instance,
			   ns->nsid);
	if (!ret)
		ret = cdev_device_add(&ns->cdev, &ns->device);
	if (ret)
		put_device(&ns->device);
	ns->has_node = !ret;
	return ret;
}

/* Removes /dev/ngpXnY, if it was added; open files stay valid. */
void nvmep_node_remove_ns(struct nvmep_ns *ns)
{
	if (!ns->has_node)
		return;
	ns->has_node = false;
	cdev_device_del(&ns->cdev, &ns->device);
	put_device(&ns->device);
}

/* --- block devices -------------------------------------------------------- */

static int nvmep_block_ioctl(struct block_device *bdev, nvmep_blk_mode_t mode,
			     unsigned int cmd, unsigned long arg)
{
	struct nvmep_passthru from = {
		.ns = bdev->bd_disk->private_data,
		.write = mode & NVMEP_BLK_OPEN_WRITE,
		.partition = bdev_is_partition(bdev),
	};

	from.ctrl = from.ns->ctrl;
	if (is_sed_ioctl(cmd))
		return nvmep_opal_ioctl(from.ctrl, cmd, (void __user *)arg);
	return nvmep_passthru_ioctl(&from, cmd, (void __user *)arg);
}

/* As in-tree: a geometry for partitioning programs, without meaning. */
static int nvmep_block_getgeo(struct gendisk *disk,
			      struct hd_geometry *geometry)
{
	geometry->heads = 64;
	geometry->sectors = 32;
	geometry->cylinders = get_capacity(disk) / (64 * 32);
	return 0;
}

NVMEP_GETGEO_FN(nvmep_block_getgeo);

/* Returns the length of the identifier: pNFS servers name a disk by it. */
static int nvmep_block_unique_id(struct gendisk *disk, u8 id[16],
				 enum blk_unique_id type)
{
	struct nvmep_ns *ns = disk->private_data;

	if (type != BLK_UID_EUI64)
		return -EINVAL;
	if (memchr_inv(ns->ids.nguid, 0, sizeof(ns->ids.nguid))) {
		memcpy(id, ns->ids.nguid, sizeof(ns->ids.nguid));
		return sizeof(ns->ids.nguid);
	}
	if (memchr_inv(ns->ids.eui64, 0, sizeof(ns->ids.eui64))) {
		memcpy(id, ns->ids.eui64, sizeof(ns->ids.eui64));
		return sizeof(ns->ids.eui64);
	}
	return -EINVAL;
}

const struct block_device_operations nvmep_bdev_ops = {
	.owner = THIS_MODULE,
	.ioctl = nvmep_block_ioctl,
	.compat_ioctl = blkdev_compat_ptr_ioctl,
	.getgeo = nvmep_block_getgeo_fn,
	.get_unique_id = nvmep_block_unique_id,
	.pr_ops = &nvmep_pr_ops,
	.free_disk = nvmep_ns_free_disk,
};

/* --- module -------------------------------------------------------------- */

/* As the in-tree driver reports a controller on PCI Express. */
static int nvmep_ctrl_uevent(nvmep_uevent_device *dev,
			     struct kobj_uevent_env *env)
{
	return add_uevent_var(env, "NVME_TRTYPE=pcie");
}

/* Registers the classes and the device number regions. */
int nvmep_nodes_init(void)
{
	int ret;

	ret = alloc_chrdev_region(&nvmep_ctrl_devt, 0, NVMEP_MINORS,
				  "nvme-peer");
	if (ret)
		return ret;
	ret = alloc_chrdev_region(&nvmep_ns_devt, 0, NVMEP_MINORS,
				  "nvme-peer-generic");
	if (ret)
		goto err_ctrl_devt;
	nvmep_ctrl_class = nvmep_class_create("nvme-peer");
	if (IS_ERR(nvmep_ctrl_class)) {
		ret = PTR_ERR(nvmep_ctrl_class);
		goto err_ns_devt;
	}
	nvmep_ctrl_class->dev_uevent = nvmep_ctrl_uevent;
	nvmep_ns_class = nvmep_class_create("nvme-peer-generic");
	if (IS_ERR(nvmep_ns_class)) {
		ret = PTR_ERR(nvmep_ns_class);
		goto err_ctrl_class;
	}
	return 0;

err_ctrl_class:
	class_destroy(nvmep_ctrl_class);
err_ns_devt:
	unregister_chrdev_region(nvmep_ns_devt, NVMEP_MINORS);
err_ctrl_devt:
	unregister_chrdev_region(nvmep_ctrl_devt, NVMEP_MINORS);
	return ret;
}

void nvmep_nodes_exit(void)
{
	class_destroy(nvmep_ns_class);
	class_destroy(nvmep_ctrl_class);
	unregister_chrdev_region(nvmep_ns_devt, NVMEP_MINORS);
	unregister_chrdev_region(nvmep_ctrl_devt, NVMEP_MINORS);
}
