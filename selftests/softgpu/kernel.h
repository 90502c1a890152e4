/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Interface between the CUDA engine of softgpu (offload.c) and its kernel (kernel.cu). The kernel
 * is one function for all programs but those on lists, so that no job waits for an allocation of local memory for a
 * larger one.
 */
#ifndef SOFTGPU_KERNEL_H
#define SOFTGPU_KERNEL_H

#include "mover_kernel.h"
#include "softgpu_programs.h"

#define KERNEL_NAME	"softgpu_kernel"
#define KERNEL_LIST	"softgpu_list"
#define KERNEL_MOVER	"softgpu_mover"
#define KERNEL_BLOCK	128U	/* threads of a block */
#define KERNEL_LIST_BLOCK 512U	/* of KERNEL_LIST, as many as a list on a stream has */

/**
 * struct kernel_control - flags of the engine for a running job, in host memory
 * @stop: end normally
 * @revoked: the queue pair is lost, regardless of its status page
 *
 * Not in GPU memory, as a copy to it may wait for the end of the kernel.
 */
struct kernel_control {
	uint32_t stop;
	uint32_t revoked;
};

/**
 * struct kernel_state - shared state of the threads of a job, in GPU memory
 * @control: flags in host memory; constant
 * @result: the result of the guest, except for latency_min_ns: all ones before the first
 * @start_ns: start of the first thread, by the GPU's clock
 * @issued: submitted commands, if their number is limited
 * @status: enum softgpu_status: the first failure of a thread
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
 * struct kernel_job - argument of the kernels, or the description of one of several queue pairs
 * @parameters: parameters of the guest
 * @queue: the queue pair, with addresses of the GPU
 * @state: state in GPU memory
 * @program: enum softgpu_program
 * @threads: threads of this queue pair; in the argument, of all queue pairs
 * @mover: of KERNEL_MOVER, which uses nothing else but @threads; of KERNEL_LIST its disk
 * @pairs: in the argument: descriptions of all queue pairs in GPU memory; NULL for a single one
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
	struct kernel_mover mover;
};

#endif /* SOFTGPU_KERNEL_H */
