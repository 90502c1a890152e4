// SPDX-License-Identifier: GPL-2.0-only
/*
 * Nodes: the character devices of controllers and namespaces, and what can be asked
 * of a namespace's block device.
 *
 * An open file keeps the object behind its node alive, not the device: after
 * the driver was unbound, every operation finds the request queue dying or the
 * state changed and says so.
 */
#include <linux/blkdev.h>
#include <linux/cdev.h>
#include <linux/fs.h>
#include <linux/idr.h>
#include <linux/nvme_peer.h>

#include "command.h"
#include "compat.h"
#include "core/ctrl.h"
#include "ctrl_sysfs.h"
#include "namespace.h"
#include "node.h"
#include "passthru.h"
#include "ranges.h"
#include "transfer.h"
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

	/* Probe makes the node before the last steps that cannot fail. */
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

/* Admin commands are announced by interrupts. */
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

static const struct file_operations nvmep_ctrl_fops = {
	.owner = THIS_MODULE,
	.open = nvmep_ctrl_open,
	.release = nvmep_ctrl_file_release,
	.unlocked_ioctl = nvmep_ctrl_ioctl,
	.compat_ioctl = compat_ptr_ioctl,
	.uring_cmd = nvmep_ctrl_uring_cmd,
	.uring_cmd_iopoll = nvmep_ctrl_uring_cmd_iopoll,
};

/**
 * nvmep_node_add_ctrl() - make /dev/nvmepX
 * @ctrl: controller
 *
 * Return: 0 or a negative error code.
 */
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

/**
 * nvmep_node_remove_ctrl() - take /dev/nvmepX away; open files stay
 * @ctrl: controller without namespaces
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
	/* May free @ns: see struct nvmep_ns. */
	put_device(disk_to_dev(ns->disk));
}

/* Makes /dev/ngpXnY. */
static int nvmep_node_add_ns(struct nvmep_ns *ns)
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

/* Takes /dev/ngpXnY away, if there is one; open files stay. */
static void nvmep_node_remove_ns(struct nvmep_ns *ns)
{
	if (!ns->has_node)
		return;
	ns->has_node = false;
	cdev_device_del(&ns->cdev, &ns->device);
	put_device(&ns->device);
}

/* --- the disk of a namespace --------------------------------------------- */

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
	.free_disk = nvmep_ns_free_disk,
};

const struct nvmep_ns_ops nvmep_node_ns_ops = {
	.fops = &nvmep_block_ops,
	.add_node = nvmep_node_add_ns,
	.remove_node = nvmep_node_remove_ns,
};

/* --- module -------------------------------------------------------------- */

/* What the kernel's own driver says of a controller on PCI Express. */
static int nvmep_ctrl_uevent(nvmep_uevent_device *dev,
			     struct kobj_uevent_env *env)
{
	return add_uevent_var(env, "NVME_TRTYPE=pcie");
}

/**
 * nvmep_nodes_init() - register the classes and device numbers
 *
 * Return: 0 or a negative error code.
 */
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

/**
 * nvmep_nodes_exit() - undo nvmep_nodes_init()
 */
void nvmep_nodes_exit(void)
{
	class_destroy(nvmep_ns_class);
	class_destroy(nvmep_ctrl_class);
	unregister_chrdev_region(nvmep_ns_devt, NVMEP_MINORS);
	unregister_chrdev_region(nvmep_ctrl_devt, NVMEP_MINORS);
}
