/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * controller.cuh: null controllers for measurements.  They fetch entries and
 * complete them at once, without a data transfer.  On the GPU a warp serves a
 * queue pair, on SMs without clients; on the host a thread serves several.
 *
 * They follow the protocol: entries are only read up to the tail doorbell, the
 * completion ring never overflows, and each entry is checked (opcode,
 * namespace, CID) before it is completed with status 0 and its LBA as result.
 */
#ifndef SELFTESTS_CUDA_CONTROLLER_CUH
#define SELFTESTS_CUDA_CONTROLLER_CUH

#ifndef __CUDACC_RTC__
#include <cstdint>
#endif

/* One queue pair from the controller's side. */
struct null_queue {
	uint64_t sq;
	uint64_t cq;
	uint64_t doorbells;		/* tail, then head, 4 bytes each */
	uint32_t entries;		/* of both rings */
	uint32_t reserved;
};

/* Counters of a controller; one per queue pair. */
struct null_count {
	uint64_t commands;
	uint64_t batches;		/* tail doorbells with new entries */
	uint64_t head_doorbells;
	uint64_t bad_entries;
};

/* A single 16-byte access. */
static __device__ __forceinline__ uint4 load16(uint64_t address)
{
	uint64_t low, high;

	asm volatile("{\n\t.reg .b128 t;\n\tld.relaxed.sys.global.b128 t, [%2];\n\t"
		     "mov.b128 {%0, %1}, t;\n\t}" : "=l"(low), "=l"(high) : "l"(address) : "memory");
	return make_uint4((uint32_t)low, (uint32_t)(low >> 32), (uint32_t)high,
			  (uint32_t)(high >> 32));
}

static __device__ __forceinline__ void store16(uint64_t address, uint4 value)
{
	uint64_t low = value.x | (uint64_t)value.y << 32, high = value.z | (uint64_t)value.w << 32;

	asm volatile("{\n\t.reg .b128 t;\n\tmov.b128 t, {%1, %2};\n\t"
		     "st.relaxed.sys.global.b128 [%0], t;\n\t}"
		     : : "l"(address), "l"(low), "l"(high) : "memory");
}

static __device__ __forceinline__ uint64_t load_doorbells(uint64_t address)
{
	uint64_t value;

	asm volatile("ld.relaxed.sys.global.u64 %0, [%1];" : "=l"(value) : "l"(address) : "memory");
	return value;
}

/* Complete @count entries from @fetch on, a few a lane at once. */
static __device__ __forceinline__ uint32_t null_complete(const null_queue &queue, uint32_t lane,
							 uint32_t fetch, uint32_t posted,
							 uint32_t shift, uint32_t count)
{
	const uint32_t mask = queue.entries - 1;
	uint32_t bad = 0;

	for (uint32_t at = lane; at < count; at += 128) {
		uint4 head[4], lba[4];

#pragma unroll
		for (uint32_t i = 0; i < 4; i++)
			if (at + 32 * i < count) {
				uint64_t slot = queue.sq + ((fetch + at + 32 * i) & mask) * 64ull;

				head[i] = load16(slot);
				lba[i] = load16(slot + 32);
			}
#pragma unroll
		for (uint32_t i = 0; i < 4; i++)
			if (at + 32 * i < count) {
				uint32_t index = posted + at + 32 * i;
				uint32_t phase = (index >> shift & 1) ^ 1;

				bad += (head[i].x & 0xff) != 2 || head[i].y != 1;
				store16(queue.cq + (index & mask) * 16ull,
					make_uint4(lba[i].z, 0, (fetch + count) & mask,
						   head[i].x >> 16 | phase << 16));
			}
	}
	return bad;
}

/*
 * Serve one queue pair by one warp until @stop is not 0 and the queue pair is
 * idle.
 */
static __device__ void null_serve(const null_queue queue, null_count *total,
				  const volatile uint32_t *stop)
{
	const uint32_t lane = threadIdx.x % 32, mask = queue.entries - 1;
	const uint32_t shift = 31 - __clz(queue.entries);
	uint32_t fetch = 0, posted = 0, acknowledged = 0, last_head = 0, idle = 0, bad = 0;
	null_count count = { 0, 0, 0, 0 };

	for (;;) {
		uint64_t doorbells = __shfl_sync(~0u, load_doorbells(queue.doorbells), 0);
		uint32_t head = (uint32_t)(doorbells >> 32);
		uint32_t ready = ((uint32_t)doorbells - fetch) & mask, room;

		count.head_doorbells += head != last_head;
		acknowledged += (head - last_head) & mask;
		last_head = head;
		room = mask - (posted - acknowledged);
		ready = ready < room ? ready : room;
		if (!ready) {
			if (++idle % 256 == 0 && *stop)
				break;
			continue;
		}
		asm volatile("fence.acquire.sys;" : : : "memory");
		bad += null_complete(queue, lane, fetch, posted, shift, ready);
		fetch += ready;
		posted += ready;
		count.commands += ready;
		count.batches++;
	}
	bad = __reduce_add_sync(~0u, bad);
	count.bad_entries = bad;
	if (!lane)
		*total = count;
}

#endif /* SELFTESTS_CUDA_CONTROLLER_CUH */
