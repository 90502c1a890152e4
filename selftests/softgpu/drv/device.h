/* SPDX-License-Identifier: GPL-2.0-only */
/* Lifetime of a device, and access to its hardware. */
#ifndef _SOFTGPU_DEVICE_H
#define _SOFTGPU_DEVICE_H

#include "softgpu.h"

/**
 * softgpu_new() - allocate a device
 * @pdev: its PCI function; referenced
 * @fops: operations of its node, which the caller registers
 *
 * Return: the device with one reference, or an ERR_PTR(): -ENOMEM, -ENOSPC.
 */
struct softgpu *softgpu_new(struct pci_dev *pdev,
			    const struct file_operations *fops);
void softgpu_put(struct softgpu *gpu);

/**
 * softgpu_hw_enter() - begin an access to the hardware
 * @gpu: device
 *
 * Return: true, and softgpu_hw_leave() must follow; false if the device was removed.
 */
bool softgpu_hw_enter(struct softgpu *gpu);
void softgpu_hw_leave(struct softgpu *gpu);

#endif /* _SOFTGPU_DEVICE_H */
