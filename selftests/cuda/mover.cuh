/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * mover.cuh: how a kernel in place of a controller moves data: a block serves a ring, a warp
 * of it follows the tail, and each of the others performs one transfer at a time.
 */
#ifndef SELFTESTS_CUDA_MOVER_CUH
#define SELFTESTS_CUDA_MOVER_CUH

/* @bytes from @from to @to, 8 words of each lane in flight. */
template <typename word>
static __device__ void mover_copy(uint64_t to, uint64_t from, uint32_t bytes, uint32_t lane)
{
	for (uint32_t at = lane * sizeof(word); at < bytes; at += 8 * 32 * sizeof(word)) {
		word words[8];

#pragma unroll
		for (uint32_t i = 0; i < 8; i++)
			if (at + i * 32 * sizeof(word) < bytes)
				words[i] = __ldcv((const word *)(from + at + i * 32 * sizeof(word)));
#pragma unroll
		for (uint32_t i = 0; i < 8; i++)
			if (at + i * 32 * sizeof(word) < bytes)
				*(word *)(to + at + i * 32 * sizeof(word)) = words[i];
	}
}

/* By a warp; a multiple of 4 bytes. */
static __device__ void mover_move(uint64_t to, uint64_t from, uint32_t bytes, uint32_t lane)
{
	if (((to | from | bytes) & 15) == 0)
		mover_copy<uint4>(to, from, bytes, lane);
	else
		mover_copy<uint32_t>(to, from, bytes, lane);
}

enum { MOVER_ENTRIES = 1024 };

/*
 * State of a block, in shared memory.  @latency, in cycles: how long each entry is kept; @arrived:
 * when it was found.  It does not depend on the number of warps how many are kept at once.
 */
struct mover_block {
	volatile uint32_t tail;
	volatile uint32_t end;
	uint32_t fetched;
	uint32_t latency;
	volatile uint32_t arrived[MOVER_ENTRIES];
};

/* The first thread has found entries up to @tail. */
static __device__ void mover_arrive(struct mover_block *block, uint32_t tail, uint32_t mask)
{
	uint32_t now = (uint32_t)clock();

	for (uint32_t at = block->tail; block->latency && at != tail; at = (at + 1) & mask)
		block->arrived[at] = now;
	__threadfence_block();
	block->tail = tail;
}

/* By a warp that has claimed entry @at: wait for the rest of its latency. */
static __device__ void mover_delay(struct mover_block *block, uint32_t at)
{
	while (block->latency && (uint32_t)clock() - block->arrived[at] < block->latency)
		;
	__syncwarp();
}

/*
 * Returns whether this warp has to serve entry *@at. The first warp never has: it polls @tail and
 * @stop. @mask: of the numbers of entries. @thread: number among those that serve the ring.
 */
static __device__ bool mover_claim(struct mover_block *block, const volatile uint32_t *tail,
				   const volatile uint32_t *stop, uint32_t mask, uint32_t *at,
				   uint32_t thread)
{
	uint32_t seen = 0, found = 0;

	if (thread % 32 == 0) {
		seen = *(volatile uint32_t *)&block->fetched;
		if (!thread) {
			mover_arrive(block, *tail, mask);
			block->end = *stop;
		} else if (seen == block->tail) {
			__nanosleep(100);
		} else {
			found = atomicCAS(&block->fetched, seen, (seen + 1) & mask) == seen;
		}
	}
	found = __shfl_sync(~0u, found, 0);
	*at = __shfl_sync(~0u, seen, 0);
	if (found)
		__threadfence_system();
	return found;
}

#endif /* SELFTESTS_CUDA_MOVER_CUH */
