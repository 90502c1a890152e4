// SPDX-License-Identifier: GPL-2.0-only
/*
 * Lifetime of a device, and access to its hardware until it is removed.
 */
#include <linux/idr.h>
#include <linux/slab.h>

#include "device.h"
#include "mmu.h"

static DEFINE_IDA(softgpu_numbers);

struct softgpu *softgpu_new(struct pci_dev *pdev,
			    const struct file_operations *fops)
{
	struct softgpu *gpu = kzalloc(sizeof(*gpu), GFP_KERNEL);
	int number;

	if (!gpu)
		return ERR_PTR(-ENOMEM);
	number = ida_alloc(&softgpu_numbers, GFP_KERNEL);
	if (number < 0) {
		kfree(gpu);
		return ERR_PTR(number);
	}
	kref_init(&gpu->ref);
	gpu->pdev = pci_dev_get(pdev);
	gpu->number = number;
	snprintf(gpu->name, sizeof(gpu->name), "softgpu%d", number);
	init_rwsem(&gpu->hw_lock);
	mutex_init(&gpu->lock);
	INIT_LIST_HEAD(&gpu->buffers);
	init_waitqueue_head(&gpu->buffers_wait);
	INIT_LIST_HEAD(&gpu->imports);
	init_waitqueue_head(&gpu->job_wait);
	gpu->misc.minor = MISC_DYNAMIC_MINOR;
	gpu->misc.name = gpu->name;
	gpu->misc.fops = fops;
	gpu->misc.parent = &pdev->dev;
	gpu->misc.mode = 0600;
	return gpu;
}

static void softgpu_free(struct kref *ref)
{
	struct softgpu *gpu = container_of(ref, struct softgpu, ref);

	ida_free(&softgpu_numbers, gpu->number);
	softgpu_mmu_exit(gpu);
	pci_dev_put(gpu->pdev);
	mutex_destroy(&gpu->lock);
	kfree(gpu);
}

void softgpu_put(struct softgpu *gpu)
{
	kref_put(&gpu->ref, softgpu_free);
}

bool softgpu_hw_enter(struct softgpu *gpu)
{
	down_read(&gpu->hw_lock);
	if (!gpu->gone)
		return true;
	up_read(&gpu->hw_lock);
	return false;
}

void softgpu_hw_leave(struct softgpu *gpu)
{
	up_read(&gpu->hw_lock);
}
