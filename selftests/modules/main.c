// SPDX-License-Identifier: GPL-2.0-only
/*
 * nvmep_test_pin: does to the objects of nvme-peer what GPU drivers do.
 *
 * A guest has no GPU driver that pins, walks or imports as NVIDIA's open driver
 * and amdgpu do. This module makes those kernel calls, one at a time, on
 * request of a test, and reports the results. For tests only.
 */
#include <linux/fs.h>
#include <linux/miscdevice.h>
#include <linux/module.h>
#include <linux/slab.h>
#include <linux/uaccess.h>

#include "test.h"

/* Large enough for the argument of any call. */
union test_argument {
	struct nvmep_test_range range;
	struct nvmep_test_poke poke;
	struct nvmep_test_walk walk;
	struct nvmep_test_attach attach;
	struct nvmep_test_importer importer;
	struct nvmep_test_export export;
	struct nvmep_test_move move;
	struct nvmep_test_distance distance;
	struct nvmep_test_fake_pci fake;
	struct nvmep_test_watchpoint watchpoint;
	struct nvmep_test_stores stores;
	struct nvmep_test_error error;
	struct nvmep_test_stall stall;
	struct nvmep_test_hold hold;
	struct nvmep_test_unique_id unique_id;
	struct nvmep_test_maps maps;
	struct nvmep_test_occupy occupy;
	struct nvme_peer_pci_address pci_address;
	u32 ms;
};

static int test_open(struct inode *inode, struct file *filp)
{
	struct test_file *file = kzalloc(sizeof(*file), GFP_KERNEL);

	if (!file)
		return -ENOMEM;
	mutex_init(&file->lock);
	INIT_LIST_HEAD(&file->fakes);
	filp->private_data = file;
	return nonseekable_open(inode, filp);
}

static int test_release(struct inode *inode, struct file *filp)
{
	struct test_file *file = filp->private_data;

	mutex_lock(&file->lock);
	test_detach(file);
	test_unpin(file);
	test_fake_end(file);
	test_watchpoint_end(file);
	test_stall_end(file);
	test_slow_map_end(file);
	test_queue_map_end(file);
	test_occupy_end(file);
	test_sleep_end(file);
	mutex_unlock(&file->lock);
	mutex_destroy(&file->lock);
	kfree(file);
	return 0;
}

static int test_dispatch(struct test_file *file, unsigned int cmd,
			 union test_argument *argument)
{
	switch (cmd) {
	case NVMEP_TEST_PIN:
		return test_pin(file, &argument->range);
	case NVMEP_TEST_UNPIN:
		test_unpin(file);
		return 0;
	case NVMEP_TEST_POKE:
		return test_poke(file, &argument->poke);
	case NVMEP_TEST_WALK:
		return test_walk(&argument->walk);
	case NVMEP_TEST_ATTACH:
		return test_attach(file, &argument->attach);
	case NVMEP_TEST_MAP:
		return test_map(file, &argument->attach);
	case NVMEP_TEST_DETACH:
		test_detach(file);
		return 0;
	case NVMEP_TEST_IMPORTER:
		return test_importer_state(file, &argument->importer);
	case NVMEP_TEST_EXPORT:
		return test_export(&argument->export);
	case NVMEP_TEST_MOVE:
	case NVMEP_TEST_MAPS:
		return test_move(&argument->move, cmd == NVMEP_TEST_MOVE);
	case NVMEP_TEST_LET_GO:
		return test_let_go(&argument->move);
	case NVMEP_TEST_DISTANCE:
		return test_distance(&argument->distance);
	case NVMEP_TEST_UNIQUE_ID:
		return test_unique_id(&argument->unique_id);
	case NVMEP_TEST_SHUTDOWN:
		return test_shutdown(&argument->pci_address);
	case NVMEP_TEST_ERROR:
		return test_error(&argument->error);
	case NVMEP_TEST_SLEEP:
		return test_sleep(file, &argument->pci_address);
	case NVMEP_TEST_DOMAIN:
		return test_domain(file, &argument->fake);
	case NVMEP_TEST_RENAME:
		return test_rename(file, &argument->fake);
	case NVMEP_TEST_ACS:
		return test_acs(file, &argument->fake);
	case NVMEP_TEST_MSIX:
		return test_msix(file, &argument->fake);
	case NVMEP_TEST_WATCHPOINT:
		return test_watchpoint(file, &argument->watchpoint);
	case NVMEP_TEST_SEEN:
		return test_stores(file, &argument->stores);
	case NVMEP_TEST_STALL:
		return test_stall(file, &argument->stall);
	case NVMEP_TEST_STALLED:
		return test_stalled(file);
	case NVMEP_TEST_GO:
		test_stall_end(file);
		return 0;
	case NVMEP_TEST_SLOW_MAP:
		return test_slow_map(file, argument->ms);
	case NVMEP_TEST_QUEUE_MAP:
		return test_queue_map(file);
	case NVMEP_TEST_QUEUE_MAPS:
		return test_queue_map_read(file, &argument->maps);
	case NVMEP_TEST_OCCUPY:
		return test_occupy(file, &argument->occupy);
	case NVMEP_TEST_HOLD:
		return test_hold(&argument->hold);
	case NVMEP_TEST_HELD:
		return test_held();
	default:
		return -ENOTTY;
	}
}

static long test_ioctl(struct file *filp, unsigned int cmd, unsigned long arg)
{
	struct test_file *file = filp->private_data;
	void __user *user = (void __user *)arg;
	union test_argument argument = {};
	int ret;

	if (_IOC_SIZE(cmd) > sizeof(argument))
		return -ENOTTY;
	if (_IOC_DIR(cmd) & _IOC_WRITE &&
	    copy_from_user(&argument, user, _IOC_SIZE(cmd)))
		return -EFAULT;
	mutex_lock(&file->lock);
	ret = test_dispatch(file, cmd, &argument);
	mutex_unlock(&file->lock);
	if (!ret && _IOC_DIR(cmd) & _IOC_READ &&
	    copy_to_user(user, &argument, _IOC_SIZE(cmd)))
		return -EFAULT;
	return ret;
}

static const struct file_operations test_fops = {
	.owner = THIS_MODULE,
	.open = test_open,
	.release = test_release,
	.unlocked_ioctl = test_ioctl,
};

static struct miscdevice test_device = {
	.minor = MISC_DYNAMIC_MINOR,
	.name = "nvmep_test",
	.fops = &test_fops,
	.mode = 0600,
};

module_misc_device(test_device);
NVMEP_IMPORT_NS_DMA_BUF();
MODULE_DESCRIPTION("Acts as a GPU driver towards nvme-peer, for tests");
MODULE_LICENSE("GPL");
