/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Jobs on a GPU of NVIDIA's: the addresses that a job names are resolved when it begins,
 * to memory that the GPU reaches by itself, and from then on no CPU is on the way.
 */
#ifndef SOFTGPU_OFFLOAD_H
#define SOFTGPU_OFFLOAD_H

#include "gpu.h"

/**
 * offload_start() - have jobs on blocks run by CUDA
 * @gpu: HBM is there, nothing runs yet
 * @kernel: file of the kernel
 * @share: directory with what the controller shares, see badctrl.h; NULL: there is none
 *
 * Returns 0 or a negative errno.
 */
int offload_start(struct gpu *gpu, const char *kernel, const char *share);

/**
 * offload_run() - run a job that the engine has checked
 * @slot: its place
 * @status: receives how it ended
 *
 * Returns false if it is none for CUDA.
 */
bool offload_run(struct slot *slot, enum softgpu_status *status);

/* As struct vfu_device.unmapped: jobs that use these bus addresses end first. */
void offload_unmapped(struct gpu *gpu, uint64_t address, uint64_t size);

#endif /* SOFTGPU_OFFLOAD_H */
