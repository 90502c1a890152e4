// SPDX-License-Identifier: GPL-2.0-only
/*
 * The programs on blocks as a CUDA kernel, over the unchanged device library. Without CUDA's
 * compiler it is plain C for the fake libcuda (tests/fake_libcuda.c).
 *
 * A queue pair is lost if its status page or the engine reports it, as the guest unmaps memory of
 * a GPU and not of a queue pair. So this file replaces loads of the status page, and stores of
 * doorbells to count them; all other platform functions are those of the library.
 */
#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#define nvp_status_load bus_status_load
#define nvp_doorbell_store bus_doorbell_store
#include <nvmepeer_device/platform.h>
#undef nvp_status_load
#undef nvp_doorbell_store

struct kernel_state;

#ifdef __CUDACC__
#define KERNEL extern "C" __global__
#define ARGUMENT const __grid_constant__
#define PROGRAM_FN static __device__
#define BLOCK_SHARED __shared__
#define WARP_LANES 32U
#else
#define KERNEL
#define ARGUMENT const
#define PROGRAM_FN static
#define BLOCK_SHARED _Thread_local
#define WARP_LANES 1U
#endif

/* One for each block. */
NVP_FN struct kernel_state **current_state(void)
{
	static BLOCK_SHARED struct kernel_state *state;

	return &state;
}

NVP_FN uint32_t nvp_status_load(uint64_t address);
NVP_FN void nvp_doorbell_store(uint64_t address, uint32_t value);

#ifdef __CUDACC__
#include <mover.cuh>
#endif

#include "kernel.h"

/* 0 is not the state of a live queue pair. */
NVP_FN uint32_t nvp_status_load(uint64_t address)
{
	if (bus_status_load((uintptr_t)&(*current_state())->control->revoked))
		return 0;
	return bus_status_load(address);
}

NVP_FN void nvp_doorbell_store(uint64_t address, uint32_t value)
{
	bus_doorbell_store(address, value);
	nvp_add64((uint64_t *)&(*current_state())->result.doorbells, 1);
}

/* --- Functions for the programs ---------------------------------------------- */

/* A thread reads the engine's flags once in so many commands, as the access is slow. */
#define ASK_EVERY	64U

/*
 * @all: lanes of the warp that run the program; @together: lanes in the current round of the
 * loop, see programs_lanes.h
 */
struct lane {
	const struct kernel_job *slot;
	uint32_t index;
	uint32_t asked;
	uint32_t all;
	uint32_t together;
};

#define lane_add(lane, field, by)						\
	nvp_add64((uint64_t *)&(lane)->slot->state->result.field, by)

PROGRAM_FN uint64_t now_ns(void)
{
	return nvmepeer_now_ns();
}

/* An abort marks the queue pair as lost, which ends every call. */
PROGRAM_FN void lane_check(struct lane *lane)
{
	(void)lane;
}

/*
 * While the controller keeps completing commands, waits are too short to reach a read of the
 * status page: the lane that detects the loss marks the queue pair for all lanes.
 */
PROGRAM_FN bool lane_stopped(struct lane *lane)
{
	const struct kernel_control *control = lane->slot->state->control;

	if (lane->asked++ % ASK_EVERY)
		return false;
	if (bus_status_load((uintptr_t)&control->revoked))
		nvp_mark_lost(&lane->slot->queue);
	if (!bus_status_load((uintptr_t)&control->stop))
		return false;
	/* The next check of the flags has to see it as well. */
	lane->asked = 0;
	return true;
}

PROGRAM_FN uint64_t lane_reads(const struct lane *lane)
{
	return nvp_load64((const uint64_t *)&lane->slot->state->result.reads);
}

PROGRAM_FN uint64_t lane_age_ns(const struct lane *lane)
{
	return now_ns() - nvp_load64(&lane->slot->state->start_ns);
}

PROGRAM_FN uint64_t lane_issue(struct lane *lane)
{
	return nvp_add64(&lane->slot->state->issued, 1);
}

#ifdef __CUDACC__
typedef unsigned long long word;

PROGRAM_FN void note_took(struct softgpu_result *result, uint64_t ns)
{
	atomicMax((word *)&result->latency_max_ns, (word)ns);
	atomicMin((word *)&result->latency_min_ns, (word)ns);
}

PROGRAM_FN bool claim(void *where, uint64_t old, uint64_t value)
{
	return atomicCAS((word *)where, (word)old, (word)value) == old;
}

/* The lanes of this warp that are threads of the job. */
PROGRAM_FN uint32_t warp_mask(const struct kernel_job *job)
{
	uint32_t warp = threadIdx.x & ~31U, before = blockIdx.x * blockDim.x + warp, lanes;

	if (before >= job->threads)
		return 0;
	lanes = min(job->threads - before, blockDim.x - warp);
	return lanes < 32 ? (1U << lanes) - 1 : 0xffffffffU;
}

PROGRAM_FN uint32_t thread_index(void)
{
	return blockIdx.x * blockDim.x + threadIdx.x;
}
#else
/* Set by the code that runs the kernel. */
extern uint32_t (*softgpu_thread_index)(void);
uint32_t (*softgpu_thread_index)(void);

PROGRAM_FN uint32_t thread_index(void)
{
	return softgpu_thread_index();
}

PROGRAM_FN uint32_t warp_mask(const struct kernel_job *job)
{
	(void)job;
	return 1;
}

PROGRAM_FN bool claim(void *where, uint64_t old, uint64_t value)
{
	return __atomic_compare_exchange_n((uint64_t *)where, &old, value, false,
					   __ATOMIC_RELAXED, __ATOMIC_RELAXED);
}

PROGRAM_FN void note_took(struct softgpu_result *result, uint64_t ns)
{
	uint64_t seen = result->latency_max_ns;

	while (seen < ns && !claim(&result->latency_max_ns, seen, ns))
		seen = nvp_load64((const uint64_t *)&result->latency_max_ns);
	seen = result->latency_min_ns;
	while (seen > ns && !claim(&result->latency_min_ns, seen, ns))
		seen = nvp_load64((const uint64_t *)&result->latency_min_ns);
}
#endif

PROGRAM_FN void lane_took(struct lane *lane, uint64_t ns)
{
	lane_add(lane, latency_ns, ns);
	note_took(&lane->slot->state->result, ns);
}

PROGRAM_FN void lane_note(struct lane *lane, int error, uint64_t where, uint64_t value)
{
	struct softgpu_result *result = &lane->slot->state->result;

	if (!claim(&result->where, ~(uint64_t)0, where))
		return;
	result->error = error;
	result->value = value;
}

/* A fence makes a thread load again what is not in shared memory. */
PROGRAM_FN const struct nvmepeer_queue *lane_queue(const struct lane *lane)
{
	static BLOCK_SHARED struct nvmepeer_queue queue;

	if (thread_index() || lane->slot->threads > 1)
		return &lane->slot->queue;
	queue = lane->slot->queue;
	return &queue;
}

#include "programs_alone.h"
#include "programs_blocks.h"
#include "programs_list.h"

/* --- The kernel --------------------------------------------------------------- */

PROGRAM_FN enum softgpu_status run(struct lane *lane)
{
	switch (lane->slot->program) {
	case SOFTGPU_QUEUE_INIT:
		return run_queue_init(lane);
	case SOFTGPU_QUEUE_REARM:
		return run_queue_rearm(lane);
	case SOFTGPU_WRITE:
		return run_write(lane);
	case SOFTGPU_VERIFY:
		return run_verify(lane);
	case SOFTGPU_MIXED:
		return run_mixed(lane);
	case SOFTGPU_RANDOM:
		return run_random(lane);
	case SOFTGPU_LATENCY:
		return run_latency(lane);
	case SOFTGPU_EXCLUSIVE:
		return run_exclusive(lane);
	case SOFTGPU_EXCHANGE:
		return run_exchange(lane);
	case SOFTGPU_RATE:
		return run_rate(lane);
	case SOFTGPU_COPY:
		return run_copy(lane);
	case SOFTGPU_GATHER:
		return run_gather(lane);
	case SOFTGPU_GATHERED:
		return run_gathered(lane);
	case SOFTGPU_FLUSH:
		return run_flush(lane);
	default:
		return SOFTGPU_INVALID;
	}
}

/*
 * Select one of several queue pairs. Warps are assigned to the pairs in turn, as not all blocks
 * of a large job run at the same time, and each pair needs running ones.
 */
PROGRAM_FN void take_pair(struct lane *lane, const struct kernel_job *job)
{
	uint32_t each = job->pairs->threads, pairs = job->threads / each, warp = lane->index / 32;

	if (each % 32) {
		lane->slot = &job->pairs[lane->index / each];
		lane->index %= each;
	} else {
		lane->slot = &job->pairs[warp % pairs];
		lane->index = warp / pairs * 32 + lane->index % 32;
	}
}

#ifndef __CUDACC__
KERNEL void softgpu_kernel(ARGUMENT struct kernel_job job);
KERNEL void softgpu_list(ARGUMENT struct kernel_job job);
#define __launch_bounds__(threads)
#endif

/* What each thread of a job has to do first. */
PROGRAM_FN void enter(const struct kernel_job *job)
{
	*current_state() = job->state;
	nvp_block_sync();
	if (thread_index() < job->threads && thread_index() % WARP_LANES == 0)
		claim(&job->state->start_ns, 0, now_ns());
}

PROGRAM_FN void leave(const struct kernel_job *job, enum softgpu_status status)
{
	if (status != SOFTGPU_OK)
		nvp_compare_exchange32(&job->state->status, SOFTGPU_RUNNING, status);
}

KERNEL void softgpu_kernel(ARGUMENT struct kernel_job job)
{
	struct lane lane = { &job, thread_index(), 0, 0, 0 };

	enter(&job);
	lane.all = warp_mask(&job);
	if (lane.index >= job.threads)
		return;
	if (job.pairs)
		take_pair(&lane, &job);
	leave(&job, run(&lane));
}

KERNEL void __launch_bounds__(KERNEL_LIST_BLOCK) softgpu_list(ARGUMENT struct kernel_job job)
{
	enum softgpu_status status;

	enter(&job);
	if (thread_index() >= job.threads)
		return;
	if (!job.pairs || list_pairs(&job) > LIST_PAIRS)
		status = SOFTGPU_INVALID;
	else if (job.program == SOFTGPU_LIST)
		status = run_list(&job);
	else
		status = run_list_items(&job);
	if (thread_index() % WARP_LANES == 0)
		note_took(&job.state->result, now_ns() - job.state->start_ns);
	leave(&job, status);
}

/* --- Moves of data ------------------------------------------------------------- */

#ifdef __CUDACC__
KERNEL void __launch_bounds__(1024) softgpu_mover(ARGUMENT struct kernel_job job)
{
	mover_serve(&job.mover);
}
#else
KERNEL void softgpu_mover(ARGUMENT struct kernel_job job);

/* The first thread of a block serves its ring. */
KERNEL void softgpu_mover(ARGUMENT struct kernel_job job)
{
	if (thread_index() % MOVER_THREADS == 0)
		mover_serve(&job.mover, thread_index() / MOVER_THREADS);
}
#endif
