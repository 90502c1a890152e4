/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * disk.cuh: controllers as a kernel, with a medium in memory that the GPU can access. They move
 * data described by PRPs and SGLs, bit buckets included. Latency and rate are adjustable.
 *
 * A group of warps serves a queue pair: the first polls the doorbell, each of the others executes a
 * command at a time. So commands complete out of order.
 */
#ifndef SELFTESTS_CUDA_DISK_CUH
#define SELFTESTS_CUDA_DISK_CUH

#include <nvmepeer_device.h>

#include "controller.cuh"
#include "mover.cuh"

/**
 * struct disk_setup - parameters of disk_serve()
 * @queues: the queue pairs, in memory of the GPU; each block serves @per_block of them
 * @medium: where the logical blocks are
 * @blocks: number of logical blocks
 * @stop: the kernel ends when it is not 0
 * @clocks: by controller: the time of nvmepeer_now_ns() until which its rate is used up
 * @places: by queue pair: entries fetched and posted, from one launch to the next
 * @per_block: queue pairs of a block
 * @each: queue pairs of a controller
 * @latency_ns: least time of a command
 * @ns_per_mib: least time of a MiB of a controller; 0: no limit
 * @null: data is not moved
 * @on_gpu: completions are in memory of the GPU, whose threads alone wait for them: fences of its
 *	scope are enough. A fence of the system takes as long as what the link has under way
 */
struct disk_setup {
	const nvmepeer_queue *queues;
	uint64_t medium;
	uint64_t blocks;
	const volatile uint32_t *stop;
	unsigned long long *clocks;
	uint2 *places;
	uint32_t per_block;
	uint32_t each;
	uint32_t latency_ns;
	uint32_t ns_per_mib;
	uint32_t null;
	uint32_t on_gpu;
};

enum { DISK_MOST_PER_BLOCK = 8, DISK_OUT_OF_RANGE = 0x80, DISK_BAD_SGL = 0x0f };

/* A command, in all lanes. @word: of the entry, in lanes 0 to 15. */
struct disk_command {
	uint32_t word;
	uint64_t medium;
	uint32_t bytes;
	bool reads;
};

static __device__ __forceinline__ uint32_t disk_word(const disk_command &command, uint32_t index)
{
	return __shfl_sync(~0u, command.word, index);
}

static __device__ __forceinline__ uint64_t disk_long(const disk_command &command, uint32_t index)
{
	return disk_word(command, index) | (uint64_t)disk_word(command, index + 1) << 32;
}

static __device__ void disk_move(const disk_command &command, uint64_t memory, uint32_t at, uint32_t bytes,
				 uint32_t lane)
{
	uint64_t medium = command.medium + at;

	mover_move(command.reads ? memory : medium, command.reads ? medium : memory, bytes, lane);
}

static __device__ void disk_move_prps(const disk_command &command, uint32_t lane)
{
	uint64_t prp1 = disk_long(command, 6), prp2 = disk_long(command, 8), entry = 0;
	uint32_t bytes = command.bytes, first = min(bytes, 4096 - (uint32_t)(prp1 & 4095));
	bool listed = bytes - first > 4096;

	disk_move(command, prp1, 0, first, lane);
	for (uint32_t done = first, number = 0; done < bytes; number++) {
		uint32_t part = min(bytes - done, 4096u);

		/* 32 entries of the list at once. */
		if (listed && number % 32 == 0 && (number + lane) * 4096ull < bytes - first)
			entry = ((const volatile uint64_t *)prp2)[number + lane];
		disk_move(command, listed ? __shfl_sync(~0u, entry, number % 32) : prp2, done, part, lane);
		done += part;
	}
}

/* Types of SGL descriptors, in the upper half of the last word. */
enum { DISK_SGL_DATA = 0, DISK_SGL_BUCKET = 1, DISK_SGL_LAST_SEGMENT = 3 };

/* One descriptor; false if it is unknown or too long. */
static __device__ bool disk_move_descriptor(const disk_command &command, uint64_t address, uint32_t bytes,
					    uint32_t type, uint32_t *done, uint32_t lane)
{
	if (bytes > command.bytes - *done || (type != DISK_SGL_DATA && type != DISK_SGL_BUCKET))
		return false;
	if (type == DISK_SGL_DATA)
		disk_move(command, address, *done, bytes, lane);
	*done += bytes;
	return true;
}

/* Data at one address, or a segment of descriptors. */
static __device__ bool disk_move_sgl(const disk_command &command, uint32_t lane)
{
	uint64_t address = disk_long(command, 6);
	uint32_t bytes = disk_word(command, 8), type = disk_word(command, 9) >> 28, done = 0;
	bool good = true;

	if (type != DISK_SGL_LAST_SEGMENT)
		good = disk_move_descriptor(command, address, bytes, type, &done, lane);
	for (uint32_t at = 0; type == DISK_SGL_LAST_SEGMENT && at < bytes && good; at += 16) {
		uint4 one = load16(address + at);

		good = disk_move_descriptor(command, one.x | (uint64_t)one.y << 32, one.z, one.w >> 28,
					    &done, lane);
	}
	return good && done == command.bytes;
}

/* When the data of a command, which begins now, has passed at the rate of its controller. */
static __device__ uint64_t disk_passed(const disk_setup &setup, unsigned long long *clock, uint64_t now,
				       uint32_t bytes)
{
	unsigned long long cost = ((uint64_t)bytes * setup.ns_per_mib) >> 20, seen, end;

	if (!setup.ns_per_mib)
		return now;
	seen = *(volatile unsigned long long *)clock;
	for (;;) {
		unsigned long long found;

		end = (seen > now ? seen : now) + cost;
		found = atomicCAS(clock, seen, end);
		if (found == seen)
			return end;
		seen = found;
	}
}

/* Wait as long as the command has to last. */
static __device__ void disk_last(const disk_setup &setup, unsigned long long *clock, uint64_t began, uint32_t bytes,
				 uint32_t lane)
{
	uint64_t end, now;

	if (!setup.latency_ns && !setup.ns_per_mib)
		return;
	if (!lane) {
		end = max(began + setup.latency_ns, disk_passed(setup, clock, began, bytes));
		while ((now = nvmepeer_now_ns()) < end)
			__nanosleep(end - now < 1000 ? (uint32_t)(end - now) / 2 : 500);
	}
	__syncwarp();
}

/* Execute the command in entry @at of the ring: returns its status. */
static __device__ uint32_t disk_execute(const disk_setup &setup, const nvmepeer_queue &queue, uint32_t number,
					uint32_t at, uint32_t lane, uint32_t *cid)
{
	uint64_t began = setup.latency_ns || setup.ns_per_mib ? nvmepeer_now_ns() : 0, lba;
	disk_command command;
	uint32_t status = 0;

	command.word = lane < 16 ? ((const volatile uint32_t *)(queue.sq + at * 64ull))[lane] : 0;
	lba = disk_long(command, 10);
	command.bytes = ((disk_word(command, 12) & 0xffff) + 1) << queue.lba_shift;
	command.reads = (disk_word(command, 0) & 255) == 2;
	command.medium = setup.medium + (lba << queue.lba_shift);
	if (lba >= setup.blocks || command.bytes >> queue.lba_shift > setup.blocks - lba)
		status = DISK_OUT_OF_RANGE;
	else if (setup.null)
		status = 0;
	else if (disk_word(command, 0) >> 14 & 3)
		status = disk_move_sgl(command, lane) ? 0 : DISK_BAD_SGL;
	else
		disk_move_prps(command, lane);
	disk_last(setup, &setup.clocks[number / setup.each], began, command.bytes, lane);
	*cid = disk_word(command, 0) >> 16;
	return status;
}

/* What the warps of a queue pair share. */
struct disk_queue {
	mover_block block;
	uint32_t posted;
};

/* Serve a queue pair. @thread: of its own warps. */
static __device__ void disk_serve_queue(const disk_setup &setup, uint32_t number, disk_queue *shared, uint32_t thread)
{
	const nvmepeer_queue queue = setup.queues[number];
	const volatile uint32_t *doorbell = (const volatile uint32_t *)queue.sq_doorbell;
	const uint32_t lane = thread % 32;

	while (!shared->block.end) {
		uint32_t at, status, cid;

		if (!mover_claim(&shared->block, doorbell, setup.stop, queue.sq_mask, &at, thread))
			continue;
		status = disk_execute(setup, queue, number, at, lane, &cid);
		/* The data of all lanes before the completion. */
		if (setup.on_gpu)
			__threadfence();
		else
			__threadfence_system();
		__syncwarp();
		if (!lane) {
			uint32_t slot = atomicAdd(&shared->posted, 1);
			uint32_t phase = !(slot / (queue.cq_mask + 1) & 1);

			store16(queue.cq + (slot & queue.cq_mask) * 16ull,
				make_uint4(0, 0, *(volatile uint32_t *)&shared->block.fetched | queue.qid << 16,
					   cid | phase << 16 | status << 17));
		}
	}
}

static __device__ void disk_serve(const disk_setup &setup)
{
	__shared__ disk_queue shared[DISK_MOST_PER_BLOCK];
	uint32_t threads = blockDim.x / setup.per_block, part = threadIdx.x / threads;
	uint32_t first = blockIdx.x * setup.per_block;

	if (threadIdx.x < setup.per_block) {
		uint2 place = setup.places[first + threadIdx.x];

		shared[threadIdx.x].block.tail = shared[threadIdx.x].block.fetched = place.x;
		shared[threadIdx.x].block.end = shared[threadIdx.x].block.latency = 0;
		shared[threadIdx.x].posted = place.y;
	}
	__syncthreads();
	disk_serve_queue(setup, first + part, &shared[part], threadIdx.x % threads);
	__syncthreads();
	if (threadIdx.x < setup.per_block)
		setup.places[first + threadIdx.x] =
			make_uint2(shared[threadIdx.x].block.fetched, shared[threadIdx.x].posted);
}

/*
 * What the controllers do to the link and to memory, without commands: warps move pages, whose places
 * on the medium and in memory are pairs of @places, until @stop or as many as @count.
 */
static __device__ void disk_only_move(uint64_t memory, uint64_t medium, const long long *places, uint32_t pages,
				      uint32_t bytes, uint32_t count, uint32_t *next, const volatile uint32_t *stop)
{
	const uint32_t lane = threadIdx.x % 32;

	for (;;) {
		uint32_t page = lane ? 0 : atomicAdd(next, 1);

		page = __shfl_sync(~0u, page, 0);
		if (page >= count || *stop)
			break;
		page %= pages;
		for (uint32_t at = 0; at < bytes; at += 4096)
			mover_move(memory + places[2 * page + 1] + at, medium + places[2 * page] + at,
				   min(bytes - at, 4096u), lane);
		__threadfence_system();
	}
}

#endif /* SELFTESTS_CUDA_DISK_CUH */
