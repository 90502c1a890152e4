/* SPDX-License-Identifier: GPL-2.0-only */
/* BAR0 of softgpu, and resets. */
#ifndef SOFTGPU_REGISTERS_H
#define SOFTGPU_REGISTERS_H

#include "gpu.h"

/* Fill the description for vfu_create(). */
void gpu_describe(const struct gpu *gpu, struct vfu_device *device);

#endif /* SOFTGPU_REGISTERS_H */
