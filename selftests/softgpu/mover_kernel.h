/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The kernel that performs the moves of badctrl (mover_ring.h), in the process whose GPU memory is
 * the window. In C for a fake libcuda. Needs mover.cuh before it for CUDA.
 */
#ifndef SOFTGPU_MOVER_KERNEL_H
#define SOFTGPU_MOVER_KERNEL_H

#include <mover_ring.h>

/**
 * struct kernel_mover - what the kernel that moves data uses
 * @shared: rings and flags
 * @disk: address of the disk
 * @memory: address for offset 0 of the GPU's memory BAR
 */
struct kernel_mover {
	struct mover_shared *shared;
	uint64_t disk;
	uint64_t memory;
};

#ifdef __CUDACC__
/* A lane for each word of the move. */
static __device__ void mover_perform(const struct kernel_mover *mover, struct mover_ring *ring,
				     uint32_t at, uint32_t lane)
{
	const volatile uint32_t *words =
		(const volatile uint32_t *)&ring->moves[at % MOVER_MOVES];
	uint32_t word = lane < 6 ? words[lane] : 0;
	uint64_t disk = mover->disk + (__shfl_sync(~0U, word, 0) |
				       (uint64_t)__shfl_sync(~0U, word, 1) << 32);
	uint64_t memory = mover->memory + (__shfl_sync(~0U, word, 2) |
					   (uint64_t)__shfl_sync(~0U, word, 3) << 32);
	uint32_t bytes = __shfl_sync(~0U, word, 4);
	bool to_disk = __shfl_sync(~0U, word, 5);

	mover_move(to_disk ? disk : memory, to_disk ? memory : disk, bytes, lane);
	__threadfence_system();
	__syncwarp();
	if (!lane)
		*(volatile uint32_t *)&ring->done[at % MOVER_MOVES] = at + 1;
}

/* A kernel of MOVER_RINGS blocks of MOVER_THREADS threads, until mover_shared.stop. */
static __device__ void mover_serve(const struct kernel_mover *mover)
{
	struct mover_ring *ring = &mover->shared->rings[blockIdx.x];
	__shared__ struct mover_block block;
	uint32_t at;

	if (!threadIdx.x) {
		block.tail = block.fetched = ring->fetched;
		block.end = block.latency = 0;
		asm("mov.u32 %0, %%smid;" : "=r"(ring->sm));
	}
	__syncthreads();
	while (!block.end)
		if (mover_claim(&block, &ring->tail, &mover->shared->stop, ~0U, &at, threadIdx.x))
			mover_perform(mover, ring, at, threadIdx.x % 32);
	__syncthreads();
	if (!threadIdx.x)
		ring->fetched = block.fetched;
}
#else
#include <stdbool.h>
#include <string.h>
#include <time.h>

#define MOVER_IDLE_MOST_NS	1000000

static inline void mover_move(uint64_t to, uint64_t from, uint32_t bytes, uint32_t lane)
{
	(void)lane;
	memcpy((void *)(uintptr_t)to, (const void *)(uintptr_t)from, bytes);
}

static inline bool mover_perform_next(const struct kernel_mover *mover, struct mover_ring *ring)
{
	const struct mover_move *move = &ring->moves[ring->fetched % MOVER_MOVES];
	uint64_t disk, memory;

	if (__atomic_load_n(&ring->tail, __ATOMIC_ACQUIRE) == ring->fetched)
		return false;
	disk = mover->disk + move->disk;
	memory = mover->memory + move->window;
	mover_move(move->to_disk ? disk : memory, move->to_disk ? memory : disk, move->bytes, 0);
	ring->fetched++;
	__atomic_store_n(&ring->done[(ring->fetched - 1) % MOVER_MOVES], ring->fetched,
			 __ATOMIC_RELEASE);
	return true;
}

/* By one thread for each ring, until mover_shared.stop. */
static inline void mover_serve(const struct kernel_mover *mover, uint32_t number)
{
	struct mover_ring *ring = &mover->shared->rings[number];
	struct timespec idle = { .tv_nsec = 0 };

	while (!__atomic_load_n(&mover->shared->stop, __ATOMIC_ACQUIRE)) {
		if (mover_perform_next(mover, ring))
			idle.tv_nsec = 0;
		else if (idle.tv_nsec < MOVER_IDLE_MOST_NS)
			idle.tv_nsec += 1000;
		if (idle.tv_nsec)
			nanosleep(&idle, NULL);
	}
}
#endif

#endif /* SOFTGPU_MOVER_KERNEL_H */
