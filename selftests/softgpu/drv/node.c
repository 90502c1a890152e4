// SPDX-License-Identifier: GPL-2.0-only
/*
 * /dev/softgpuN: open, release, and ioctl dispatch.
 */
#include <linux/fs.h>
#include <linux/io-64-nonatomic-lo-hi.h>
#include <linux/slab.h>
#include <linux/uaccess.h>

#include "buffer.h"
#include "device.h"
#include "import.h"
#include "job.h"
#include "mmu.h"
#include "node.h"

/* Not called after misc_deregister() has returned. */
static int softgpu_open(struct inode *inode, struct file *filp)
{
	struct softgpu *gpu = container_of(filp->private_data, struct softgpu,
					   misc);
	struct softgpu_file *file = kzalloc(sizeof(*file), GFP_KERNEL);

	if (!file)
		return -ENOMEM;
	kref_get(&gpu->ref);
	file->gpu = gpu;
	xa_init_flags(&file->imports, XA_FLAGS_ALLOC);
	filp->private_data = file;
	return nonseekable_open(inode, filp);
}

/* Jobs first, as they may use imports. */
static int softgpu_close(struct inode *inode, struct file *filp)
{
	struct softgpu_file *file = filp->private_data;

	softgpu_jobs_close(file);
	softgpu_imports_close(file);
	softgpu_put(file->gpu);
	kfree(file);
	return 0;
}

static u32 softgpu_pci_address(struct pci_dev *pdev)
{
	return pci_domain_nr(pdev->bus) << 16 | pci_dev_id(pdev);
}

static int softgpu_get_info(struct softgpu_file *file, void *argument)
{
	struct softgpu *gpu = file->gpu;
	struct softgpu_info *info = argument;
	struct list_head *entry;
	unsigned int i;

	info->hbm_bytes = gpu->hbm_bytes;
	info->hbm_va = gpu->hbm_va;
	info->mmu_va = gpu->mmu_va;
	info->pci_address = softgpu_pci_address(gpu->pdev);
	info->invalidations = atomic64_read(&gpu->invalidations);
	info->interrupts = atomic64_read(&gpu->interrupts);
	info->cpu_maps = atomic64_read(&gpu->cpu_maps);
	mutex_lock(&gpu->lock);
	info->hbm_free = softgpu_hbm_available(gpu);
	list_for_each(entry, &gpu->buffers)
		info->buffers++;
	list_for_each(entry, &gpu->imports)
		info->imports++;
	for (i = 0; i < SOFTGPU_MAX_SLOTS; i++)
		info->jobs += !!gpu->slots[i].owner;
	mutex_unlock(&gpu->lock);
	return 0;
}

static int softgpu_get_counters(struct softgpu_file *file, void *argument)
{
	struct softgpu *gpu = file->gpu;
	u64 *values = argument;
	size_t i;

	for (i = 0; i < sizeof(struct softgpu_counters) / sizeof(u64); i++)
		values[i] = readq(gpu->regs + SOFTGPU_REG_COUNTERS +
				  i * sizeof(u64));
	return 0;
}

static int call_alloc(struct softgpu_file *file, void *argument)
{
	return softgpu_alloc(file, argument);
}

static int call_move(struct softgpu_file *file, void *argument)
{
	return softgpu_move(file, argument);
}

static int call_import(struct softgpu_file *file, void *argument)
{
	return softgpu_import(file, argument);
}

static int call_import_info(struct softgpu_file *file, void *argument)
{
	return softgpu_import_info(file, argument);
}

static int call_release(struct softgpu_file *file, void *argument)
{
	return softgpu_release(file, argument);
}

/* Renew imports before a job, like drivers that validate a submission. */
static int call_start(struct softgpu_file *file, void *argument)
{
	int ret;

	softgpu_imports_renew(file);
	if (!softgpu_hw_enter(file->gpu))
		return -ENODEV;
	ret = softgpu_start(file, argument);
	softgpu_hw_leave(file->gpu);
	return ret;
}

static int call_wait(struct softgpu_file *file, void *argument)
{
	return softgpu_wait(file, argument);
}

static int call_progress(struct softgpu_file *file, void *argument)
{
	return softgpu_progress(file, argument);
}

static int call_stop(struct softgpu_file *file, void *argument)
{
	return softgpu_stop(file, argument);
}

union softgpu_argument {
	struct softgpu_info info;
	struct softgpu_alloc alloc;
	struct softgpu_move move;
	struct softgpu_import import;
	struct softgpu_import_info import_info;
	struct softgpu_release release;
	struct softgpu_start start;
	struct softgpu_wait wait;
	struct softgpu_stop stop;
	struct softgpu_counters counters;
};

/* @locks: the function takes hw_lock itself. */
static const struct {
	unsigned int cmd;
	bool locks;
	int (*call)(struct softgpu_file *file, void *argument);
} softgpu_calls[] = {
	{ SOFTGPU_INFO, false, softgpu_get_info },
	{ SOFTGPU_ALLOC, false, call_alloc },
	{ SOFTGPU_MOVE, false, call_move },
	{ SOFTGPU_IMPORT, false, call_import },
	{ SOFTGPU_IMPORT_INFO, false, call_import_info },
	{ SOFTGPU_RELEASE, true, call_release },
	{ SOFTGPU_START, true, call_start },
	{ SOFTGPU_WAIT, true, call_wait },
	{ SOFTGPU_PROGRESS, true, call_progress },
	{ SOFTGPU_STOP, false, call_stop },
	{ SOFTGPU_COUNTERS, false, softgpu_get_counters },
};

static int softgpu_call(struct softgpu_file *file, unsigned int number,
			void *argument)
{
	int ret;

	if (softgpu_calls[number].locks)
		return softgpu_calls[number].call(file, argument);
	if (!softgpu_hw_enter(file->gpu))
		return -ENODEV;
	ret = softgpu_calls[number].call(file, argument);
	softgpu_hw_leave(file->gpu);
	return ret;
}

static long softgpu_ioctl(struct file *filp, unsigned int cmd,
			  unsigned long arg)
{
	union softgpu_argument argument = {};
	void __user *user = (void __user *)arg;
	unsigned int number = _IOC_NR(cmd);
	int ret;

	if (number >= ARRAY_SIZE(softgpu_calls) ||
	    softgpu_calls[number].cmd != cmd)
		return -ENOTTY;
	if (_IOC_DIR(cmd) & _IOC_WRITE &&
	    copy_from_user(&argument, user, _IOC_SIZE(cmd)))
		return -EFAULT;
	ret = softgpu_call(filp->private_data, number, &argument);
	if (!ret && _IOC_DIR(cmd) & _IOC_READ &&
	    copy_to_user(user, &argument, _IOC_SIZE(cmd)))
		return -EFAULT;
	return ret;
}

const struct file_operations softgpu_fops = {
	.owner = THIS_MODULE,
	.open = softgpu_open,
	.release = softgpu_close,
	.unlocked_ioctl = softgpu_ioctl,
	.compat_ioctl = compat_ptr_ioctl,
};
