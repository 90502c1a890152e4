/* SPDX-License-Identifier: GPL-2.0-only */
/* The life of a device, and the use of its hardware. */
#ifndef _SOFTGPU_DEVICE_H
#define _SOFTGPU_DEVICE_H

#include "softgpu.h"

/**
 * softgpu_new() - a device that nothing was asked of yet
 * @pdev: its PCI function; referenced
 * @fops: of its node, which the caller registers
 *
 * Return: the device with one reference, or an ERR_PTR(): -ENOMEM, -ENOSPC.
 */
struct softgpu *softgpu_new(struct pci_dev *pdev,
			    const struct file_operations *fops);
void softgpu_put(struct softgpu *gpu);

/**
 * softgpu_hw_enter() - begin to use the hardware
 * @gpu: device
 *
 * Return: true, to be ended by softgpu_hw_leave(); false if it is gone.
 */
bool softgpu_hw_enter(struct softgpu *gpu);
void softgpu_hw_leave(struct softgpu *gpu);

#endif /* _SOFTGPU_DEVICE_H */
