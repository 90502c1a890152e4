/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * serve.cuh: a kernel in place of a controller, which moves data between a medium and the memory
 * of commands, for disk.py and pages.cu.
 */
#ifndef SELFTESTS_CUDA_SERVE_CUH
#define SELFTESTS_CUDA_SERVE_CUH

#include <nvmepeer_device.h>

#include "mover.cuh"

static __device__ void part_move(uint64_t memory, uint64_t medium, uint32_t bytes, bool read, uint32_t lane)
{
	mover_move(read ? memory : medium, read ? medium : memory, bytes, lane);
}

static __device__ uint32_t entry_word(uint64_t sq, uint32_t at, uint32_t index)
{
	return ((const volatile uint32_t *)(sq + at * 64ull))[index];
}

/* Data of the command in lanes 0 to 15 of @word: PRP entries. */
static __device__ void transfer(uint32_t word, uint64_t medium, uint32_t bytes, uint32_t lane)
{
	uint64_t low = __shfl_sync(~0u, word, 6), prp1 = low | (uint64_t)__shfl_sync(~0u, word, 7) << 32;
	uint64_t prp2 = __shfl_sync(~0u, word, 8) | (uint64_t)__shfl_sync(~0u, word, 9) << 32;
	uint32_t first = min(bytes, 4096 - (uint32_t)(prp1 & 4095)), done = first, number = 0;
	bool read = (__shfl_sync(~0u, word, 0) & 255) == 2, listed = bytes - first > 4096;
	uint64_t entry = 0;

	part_move(prp1, medium, first, read, lane);
	for (; done < bytes; number++) {
		uint32_t part = min(bytes - done, 4096u);

		/* 32 entries of the list at once. */
		if (listed && number % 32 == 0 && (number + lane) * 4096ull < bytes - first)
			entry = ((const volatile uint64_t *)prp2)[number + lane];
		part_move(listed ? __shfl_sync(~0u, entry, number % 32) : prp2, medium + done, part, read, lane);
		done += part;
	}
}

/*
 * A block serves a queue pair: a warp polls the doorbell, each of the others serves a command.
 * @latency: cycles from a doorbell to the begin of a transfer; with it, rings have MOVER_ENTRIES at
 * most.
 */
extern "C" __global__ void __launch_bounds__(1024) serve(const nvmepeer_queue *queues, unsigned char *disk, uint64_t blocks,
				 const volatile uint32_t *stop, uint32_t latency)
{
	const nvmepeer_queue &queue = queues[blockIdx.x];
	const volatile uint32_t *doorbell = (const volatile uint32_t *)queue.sq_doorbell;
	__shared__ struct mover_block block;
	__shared__ uint32_t posted;
	uint32_t lane = threadIdx.x % 32;

	if (!threadIdx.x)
		block.tail = block.end = block.fetched = posted = 0, block.latency = latency;
	__syncthreads();
	while (!block.end) {
		uint32_t at, word;
		uint64_t lba;
		uint32_t count;
		bool bad;

		if (!mover_claim(&block, doorbell, stop, queue.sq_mask, &at, threadIdx.x))
			continue;
		word = lane < 16 ? entry_word(queue.sq, at, lane) : 0;
		lba = __shfl_sync(~0u, word, 10) | (uint64_t)__shfl_sync(~0u, word, 11) << 32;
		count = (__shfl_sync(~0u, word, 12) & 0xffff) + 1;
		bad = lba + count > blocks;
		mover_delay(&block, at);
		if (!bad)
			transfer(word, (uint64_t)disk + (lba << queue.lba_shift),
				 count << queue.lba_shift, lane);
		__threadfence_system();
		__syncwarp();
		if (!lane) {
			uint32_t slot = atomicAdd(&posted, 1);
			volatile uint32_t *cqe = (volatile uint32_t *)
				(queue.cq + (slot & queue.cq_mask) * 16ull);
			uint32_t phase = !(slot / (queue.cq_mask + 1) & 1);

			cqe[0] = cqe[1] = 0;
			cqe[2] = *(volatile uint32_t *)&block.fetched | queue.qid << 16;
			__threadfence_system();
			cqe[3] = word >> 16 | phase << 16 | (bad ? 0x80u << 17 : 0);
		}
	}
}

#endif /* SELFTESTS_CUDA_SERVE_CUH */
