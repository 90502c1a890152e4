/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * What the CUDA engine of softgpu (offload.c) and its kernel (kernel.cu) agree on.  The
 * kernel is one function for all programs, so that a job never waits for the memory that
 * a larger one would need.
 */
#ifndef SOFTGPU_KERNEL_H
#define SOFTGPU_KERNEL_H

#include "softgpu_programs.h"

#define KERNEL_NAME	"softgpu_kernel"
#define KERNEL_BLOCK	128U	/* threads of a block */

/**
 * struct kernel_control - what the engine tells a job that runs, in the CPU's memory
 * @stop: come to the end
 * @revoked: the queue pair is lost, whatever its status page says
 *
 * A copy into the GPU's memory may wait for the kernel that it is meant for.
 */
struct kernel_control {
	uint32_t stop;
	uint32_t revoked;
};

/**
 * struct kernel_state - what the threads of a job share, in the GPU's own memory
 * @control: in the CPU's memory; constant
 * @result: as the guest will see it, but for latency_min_ns: all ones before the first
 * @start_ns: when the first thread began, by the GPU's clock
 * @issued: commands that were begun, where their number is limited
 * @status: enum softgpu_status: the first bad end of a thread
 */
struct kernel_state {
	const struct kernel_control *control;
	struct softgpu_result result;
	uint64_t start_ns;
	uint64_t issued;
	uint32_t status;
	uint32_t reserved;
};

/**
 * struct kernel_job - argument of the kernel, and of several queue pairs that of each
 * @parameters: as the guest gave them
 * @queue: with addresses as the GPU reaches them
 * @state: in the GPU's memory
 * @program: enum softgpu_program
 * @threads: that run it, on this queue pair or, in the argument, on all
 * @pairs: argument: in the GPU's memory, of each queue pair; NULL: there is but this one
 */
struct kernel_job {
	struct {
		struct softgpu_io io;
	} parameters;
	struct nvmepeer_queue queue;
	struct kernel_state *state;
	uint32_t program;
	uint32_t threads;
	const struct kernel_job *pairs;
};

#endif /* SOFTGPU_KERNEL_H */
