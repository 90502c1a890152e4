/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * host_controller.h: a null controller on host threads.  Thread @index of
 * @threads serves every @threads-th queue pair.  Loads and stores of 16 bytes
 * are single SSE accesses.
 */
#ifndef SELFTESTS_CUDA_HOST_CONTROLLER_H
#define SELFTESTS_CUDA_HOST_CONTROLLER_H

#include <emmintrin.h>
#include <vector>

#include "controller.cuh"

struct host_queue {
	uint32_t fetch, posted, acknowledged, last_head, shift;
};

/* Complete the entries that are ready; returns their number. */
static inline uint32_t host_step(const null_queue &queue, host_queue &now, null_count &count)
{
	const uint32_t mask = queue.entries - 1;
	uint64_t doorbells = __atomic_load_n((uint64_t *)(uintptr_t)queue.doorbells,
					     __ATOMIC_ACQUIRE);
	uint32_t head = (uint32_t)(doorbells >> 32);
	uint32_t ready = ((uint32_t)doorbells - now.fetch) & mask, room;

	if (head != now.last_head) {
		now.acknowledged += (head - now.last_head) & mask;
		now.last_head = head;
		count.head_doorbells++;
	}
	room = mask - (now.posted - now.acknowledged);
	ready = ready < room ? ready : room;
	for (uint32_t i = 0; i < ready; i++) {
		const uint32_t *entry = (const uint32_t *)(uintptr_t)
			(queue.sq + ((now.fetch + i) & mask) * 64ull);
		uint32_t index = now.posted + i;
		uint32_t phase = (index >> now.shift & 1) ^ 1;

		count.bad_entries += (entry[0] & 0xff) != 2 || entry[1] != 1;
		_mm_store_si128((__m128i *)(uintptr_t)(queue.cq + (index & mask) * 16ull),
				_mm_set_epi32((int)(entry[0] >> 16 | phase << 16),
					      (int)((now.fetch + ready) & mask), 0,
					      (int)entry[10]));
	}
	now.fetch += ready;
	now.posted += ready;
	count.commands += ready;
	count.batches += ready != 0;
	return ready;
}

static inline void host_serve(const null_queue *queues, null_count *counts, uint32_t queue_count,
			      uint32_t index, uint32_t threads, volatile uint32_t *stop)
{
	std::vector<host_queue> state;
	std::vector<null_count> seen;

	for (uint32_t i = index; i < queue_count; i += threads) {
		state.push_back({ 0, 0, 0, 0, (uint32_t)__builtin_ctz(queues[i].entries) });
		seen.push_back({});
	}
	while (!*stop)
		for (size_t i = 0; i < state.size(); i++)
			host_step(queues[index + i * threads], state[i], seen[i]);
	for (size_t i = 0; i < state.size(); i++)
		counts[index + i * threads] = seen[i];
}

#endif /* SELFTESTS_CUDA_HOST_CONTROLLER_H */
