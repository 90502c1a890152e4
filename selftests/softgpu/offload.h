/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Jobs on an NVIDIA GPU: the addresses of a job are translated when it begins to memory that
 * the GPU accesses directly, without the CPU.
 */
#ifndef SOFTGPU_OFFLOAD_H
#define SOFTGPU_OFFLOAD_H

#include "gpu.h"

/**
 * offload_start() - have jobs on blocks run by CUDA
 * @gpu: has its HBM, and no running job
 * @kernel: file of the kernel
 *
 * Returns 0 or a negative errno.
 */
int offload_start(struct gpu *gpu, const char *kernel);

/**
 * offload_run() - run a job that the engine has checked
 * @slot: its slot
 * @status: receives its status
 *
 * Returns false if CUDA does not run such jobs.
 */
bool offload_run(struct slot *slot, enum softgpu_status *status);

/* For struct vfu_device.unmapped: ends jobs that use these bus addresses. */
void offload_unmapped(struct gpu *gpu, uint64_t address, uint64_t size);

#endif /* SOFTGPU_OFFLOAD_H */
