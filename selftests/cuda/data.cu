// SPDX-License-Identifier: GPL-2.0-only
/*
 * data.cu: data integrity.  GPU threads read and write blocks of software
 * controllers on host threads, which complete out of order; every word of every
 * block contains its address and the round that wrote it.  One controller stops
 * completing commands: its queue pair is quiesced, lost and re-armed.  Rings,
 * doorbells and data are in host memory, which host threads can access.
 *
 * Usage: data [NVMEPEER_LIST.FATBIN]: also execute a list by the kernel in that file.
 *
 * Prints KTAP.
 */
#include <cstdio>
#include <cstdlib>
#include <chrono>
#include <cstring>
#include <vector>

#include <cuda_runtime.h>
#include <linux/nvme_peer.h>
#include <nvmepeer_device.h>

#include "../../lib/cuda/list.cu"
#include "../lib/ktap.h"
#include "check.cuh"
#include "data_host.h"

enum {
	QUEUES = 8, ENTRIES = 256, BLOCKS = 1 << 17, BLOCK_BYTES = 512,
	THREADS = 4096, PER_BLOCK = 256, LONG_BYTES = 128 << 10,
	LIST_BYTES = 256, CIDS = 4 * ENTRIES,
};

/* Value of word @index of logical block @lba after @round. */
__host__ __device__ static inline uint64_t pattern(uint64_t lba, uint32_t index, uint32_t round)
{
	uint64_t x = lba * 0x9e3779b97f4a7c15ull + index + ((uint64_t)round << 40);

	x ^= x >> 29;
	return x * 0xbf58476d1ce4e5b9ull;
}

struct rig {
	nvmepeer_queue *queues;
	nvmepeer_buffer buffer;
	uint8_t *memory;		/* of the buffer, for the GPU and the host */
	uint32_t *bad;
};

/* Count words of @blocks blocks that differ from those of @lba. */
static __device__ uint32_t wrong_words(const uint8_t *memory, uint64_t lba, uint32_t blocks,
				       uint32_t round)
{
	const volatile uint64_t *word = (const volatile uint64_t *)memory;
	uint32_t wrong = 0;

	for (uint32_t i = 0; i < blocks * 64; i++)
		wrong += word[i] != pattern(lba + i / 64, i % 64, round);
	return wrong;
}

static __device__ void write_words(uint8_t *memory, uint64_t lba, uint32_t blocks, uint32_t round)
{
	volatile uint64_t *word = (volatile uint64_t *)memory;

	for (uint32_t i = 0; i < blocks * 64; i++)
		word[i] = pattern(lba + i / 64, i % 64, round);
}

/* Random 4 KiB reads of a disk that the host filled. */
__global__ void read_random(rig rig, uint32_t rounds)
{
	uint32_t thread = blockIdx.x * blockDim.x + threadIdx.x, seed = thread + 1, bad = 0;
	const nvmepeer_queue *queue = &rig.queues[thread / 32 % QUEUES];
	uint64_t offset = (uint64_t)thread * 4096;

	for (uint32_t i = 0; i < rounds; i++) {
		uint64_t lba;

		seed = seed * 1664525u + 1013904223u;
		lba = (seed >> 8) % (BLOCKS / 8) * 8;
		bad += nvmepeer_read(queue, &rig.buffer, offset, lba, 8) != 0;
		bad += wrong_words(rig.memory + offset, lba, 8, 0);
	}
	if (bad)
		atomicAdd(rig.bad, bad);
}

/* Each thread writes blocks of its own and reads them back, 1 to 8 blocks long. */
__global__ void write_and_read(rig rig, uint32_t rounds)
{
	uint32_t thread = blockIdx.x * blockDim.x + threadIdx.x, bad = 0;
	const nvmepeer_queue *queue = &rig.queues[thread / 32 % QUEUES];
	uint64_t offset = (uint64_t)thread * 4096, lba = (uint64_t)thread * 8;

	for (uint32_t round = 1; round <= rounds; round++) {
		uint32_t blocks = 1 + (thread + round) % 8;

		write_words(rig.memory + offset, lba, blocks, round);
		bad += nvmepeer_write(queue, &rig.buffer, offset, lba, blocks) != 0;
		write_words(rig.memory + offset, lba, blocks, 77777);
		bad += nvmepeer_read(queue, &rig.buffer, offset, lba, blocks) != 0;
		bad += wrong_words(rig.memory + offset, lba, blocks, round);
	}
	if (bad)
		atomicAdd(rig.bad, bad);
}

/*
 * Long reads by PRP list, not page aligned, several in flight, waited for as
 * they complete.
 */
__global__ void read_long(rig rig, uint32_t rounds)
{
	uint32_t thread = blockIdx.x * blockDim.x + threadIdx.x, seed = thread + 1, bad = 0;
	const nvmepeer_queue *queue = &rig.queues[thread % QUEUES];
	const uint32_t blocks = 96 << 10 >> 9;

	for (uint32_t i = 0; i < rounds; i++) {
		uint64_t lba[2], offset[2];
		nvmepeer_token token[2];
		uint32_t which = 0;

		for (int j = 0; j < 2; j++) {
			nvmepeer_command command = { NVMEPEER_OP_READ, blocks, 0, &rig.buffer, 0, 0 };

			seed = seed * 1664525u + 1013904223u;
			command.lba = lba[j] = (seed >> 8) % (BLOCKS - blocks);
			command.offset = offset[j] = (2 * thread + j) * (uint64_t)LONG_BYTES + 512;
			bad += nvmepeer_submit(queue, &command, &token[j], 5000000000ull) != 0;
		}
		for (int j = 0; j < 2; j++) {
			bad += nvmepeer_wait_any(queue, token, 2, &which, NULL, 5000000000ull) != 0;
			bad += wrong_words(rig.memory + offset[which], lba[which], blocks, 0);
		}
	}
	if (bad)
		atomicAdd(rig.bad, bad);
}

/* A block of threads reads 4 MiB, and gathers ranges of 256 bytes. */
__global__ void __launch_bounds__(512) read_together(rig rig, const nvmepeer_gather_range *pieces, uint32_t count)
{
	__shared__ nvmepeer_gather_table table;
	__shared__ uint32_t shared;
	const nvmepeer_queue *queue = &rig.queues[blockIdx.x % QUEUES];
	nvmepeer_transfer transfer = { NVMEPEER_OP_READ, 0, 24, 8192, &rig.buffer, 0 };
	nvmepeer_staging staging = { &rig.buffer, (uint64_t)(uintptr_t)rig.memory, 12 };
	uint32_t bad = 0;

	bad += nvmepeer_block_transfer(queue, &transfer, &shared) != 0;
	for (uint32_t i = threadIdx.x; i < 8192; i += blockDim.x)
		bad += wrong_words(rig.memory + i * 512, 24 + i, 1, 0);
	bad += nvmepeer_block_gather(queue, &table, &staging, pieces, count) != 0;
	for (uint32_t i = threadIdx.x; i < count * 32; i += blockDim.x) {
		uint64_t from = pieces[i / 32].from + i % 32 * 8;

		bad += *(const uint64_t *)(uintptr_t)(pieces[i / 32].to + i % 32 * 8) !=
		       pattern(from / 512, from % 512 / 8, 0);
	}
	if (bad)
		atomicAdd(rig.bad, bad);
}

enum { HALVES = 6, HALF_BLOCKS = 300, MOST = 4 };

/* Shared memory of the warps of a block in read_halves(). */
struct halves {
	nvmepeer_token tokens[HALVES][MOST];
	nvmepeer_batch batches[HALVES];
	nvmepeer_flag flags[HALVES];
	uint64_t table[HALF_BLOCKS];
	alignas(16) uint8_t landing[4096];
	uint64_t barrier;
};

/* A bulk copy (TMA) of 4 KiB into shared memory by one thread, which waits for it. */
static __device__ void bulk_copy(halves *shared, const uint8_t *from)
{
#if __CUDA_ARCH__ >= 900
	uint32_t barrier = (uint32_t)__cvta_generic_to_shared(&shared->barrier), done = 0;
	uint32_t to = (uint32_t)__cvta_generic_to_shared(shared->landing);

	asm volatile("mbarrier.init.shared.b64 [%0], 1;" : : "r"(barrier) : "memory");
	asm volatile("fence.proxy.async.shared::cta;" : : : "memory");
	asm volatile("mbarrier.arrive.expect_tx.shared.b64 _, [%0], 4096;" : : "r"(barrier) : "memory");
	asm volatile("cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1], 4096, [%2];"
		     : : "r"(to), "l"(from), "r"(barrier) : "memory");
	while (!done)
		asm volatile("{\n\t.reg .pred p;\n\t"
			     "mbarrier.try_wait.parity.shared.b64 p, [%1], 0;\n\t"
			     "selp.u32 %0, 1, 0, p;\n\t}" : "=r"(done) : "r"(barrier) : "memory");
	asm volatile("mbarrier.inval.shared.b64 [%0];" : : "r"(barrier) : "memory");
#else
	memcpy(shared->landing, from, 4096);
#endif
}

/*
 * One warp submits and raises flags, the others poll flags and check the data.
 */
static __device__ uint32_t halves_by_flags(const rig &rig, const nvmepeer_queue *queue,
					   halves *shared, uint64_t base, uint32_t round)
{
	uint32_t wrong = 0;

	if (threadIdx.x < 32) {
		nvmepeer_delivery deliveries[HALVES];

		for (uint32_t i = 0; i < HALVES; i++) {
			nvmepeer_transfer transfer = { NVMEPEER_OP_READ, 0,
				blockIdx.x * 4000 + round * 7 + i * 500, HALF_BLOCKS, &rig.buffer,
				base + i * 262144ull };

			deliveries[i] = { &shared->batches[i], &shared->flags[i] };
			wrong += nvmepeer_warp_submit(queue, nvmepeer_group_full(), &transfer,
						      &shared->batches[i]) != 0;
		}
		wrong += nvmepeer_warp_deliver(queue, nvmepeer_group_full(), deliveries, HALVES,
					       5000000000ull) != 0;
		return wrong;
	}
	for (uint32_t i = 0; i < HALVES; i++) {
		uint64_t lba = blockIdx.x * 4000 + round * 7 + i * 500;

		wrong += nvmepeer_flag_wait(&shared->flags[i], 5000000000ull) != 0;
		for (uint32_t block = threadIdx.x - 32; block < HALF_BLOCKS; block += blockDim.x - 32)
			wrong += wrong_words(rig.memory + base + i * 262144ull + block * 512,
					     lba + block, 1, 0);
	}
	return wrong;
}

/*
 * A block submits one transfer over pages in reverse order and waits for it;
 * one segment by TMA.
 */
static __device__ uint32_t halves_by_pages(const rig &rig, const nvmepeer_queue *queue,
					   halves *shared, uint64_t base, uint32_t round)
{
	uint32_t numbers[16], wrong = 0;
	nvmepeer_buffer scattered;
	nvmepeer_page_list parts = { &rig.buffer, numbers, 16, 12 };
	nvmepeer_transfer transfer = { NVMEPEER_OP_READ, 0, blockIdx.x * 4000 + round * 8ull, 128,
				       &scattered, 0 };
	uint64_t *table = shared->table;

	for (uint32_t i = 0; i < 16; i++)
		numbers[i] = (uint32_t)(base >> 12) + 15 - i;
	if (!threadIdx.x)
		wrong += nvmepeer_scatter(queue, &parts, table, &scattered) != 0;
	scattered = { 65536, 0, (uint64_t)(uintptr_t)table };
	__syncthreads();
	wrong += nvmepeer_block_submit(queue, &transfer, &shared->batches[0]) != 0;
	wrong += nvmepeer_block_wait(queue, &shared->batches[0], 5000000000ull) != 0;
	for (uint32_t i = threadIdx.x; i < 128; i += blockDim.x)
		wrong += wrong_words(rig.memory + base + (15 - i / 8) * 4096 + i % 8 * 512,
				     transfer.lba + i, 1, 0);
	if (!threadIdx.x) {
		nvmepeer_fence_bulk();
		bulk_copy(shared, rig.memory + base);
		for (uint32_t i = 0; i < 512; i++)
			wrong += ((uint64_t *)shared->landing)[i] !=
				 pattern(transfer.lba + 120 + i / 64, i % 64, 0);
	}
	__syncthreads();
	return wrong;
}

/* Prefetch by a warp. */
static __device__ uint32_t halves_ahead(const rig &rig, const nvmepeer_queue *queue,
					halves *shared, uint64_t base)
{
	nvmepeer_buffer window = { 4 * 40 * 512, rig.buffer.dma + base, 0 };
	nvmepeer_prefetch ahead = { queue, nvmepeer_group_full(), &window, shared->batches, NULL,
				    blockIdx.x * 1000, 50, 40, 4, 0, 0, 0, NULL };
	uint32_t wrong = 0;

	nvmepeer_prefetch_start(&ahead);
	for (uint32_t unit = 0; unit < 50; unit++) {
		uint64_t offset = 0;

		wrong += nvmepeer_prefetch_next(&ahead, &offset, 5000000000ull) != 0;
		for (uint32_t i = threadIdx.x; i < 40; i += 32)
			wrong += wrong_words(rig.memory + base + offset + i * 512,
					     blockIdx.x * 1000 + unit * 40 + i, 1, 0);
		__syncwarp();
		nvmepeer_prefetch_release(&ahead);
	}
	return wrong + (nvmepeer_prefetch_stop(&ahead, 5000000000ull) != 0);
}

/* Asynchronous transfers, flags in shared memory, page lists, prefetch. */
__global__ void __launch_bounds__(128) read_halves(rig rig, uint32_t rounds)
{
	__shared__ halves shared;
	const nvmepeer_queue *queue = &rig.queues[blockIdx.x % QUEUES];
	uint64_t base = blockIdx.x * (2ull << 20);
	uint32_t wrong = 0;

	for (uint32_t round = 0; round < rounds; round++) {
		if (threadIdx.x < HALVES) {
			shared.batches[threadIdx.x] = { shared.tokens[threadIdx.x], MOST, 0, 0 };
			nvmepeer_flag_clear(&shared.flags[threadIdx.x]);
		}
		__syncthreads();
		wrong += halves_by_flags(rig, queue, &shared, base, round);
		__syncthreads();
		wrong += halves_by_pages(rig, queue, &shared, base, round);
		if (threadIdx.x < 32)
			wrong += halves_ahead(rig, queue, &shared, base);
		__syncthreads();
	}
	if (wrong)
		atomicAdd(rig.bad, wrong);
}

/*
 * Reads of a queue pair that completes none: one thread quiesces it, all reads
 * are lost.
 */
__global__ void lose(rig rig)
{
	const nvmepeer_queue *queue = &rig.queues[0];
	nvmepeer_command command = { NVMEPEER_OP_READ, 8, 0, &rig.buffer, threadIdx.x * 4096ull, 0 };
	nvmepeer_token token;
	uint32_t bad = 0;

	bad += nvmepeer_submit(queue, &command, &token, 5000000000ull) != 0;
	if (threadIdx.x) {
		bad += nvmepeer_wait(queue, token, NULL, 5000000000ull) != NVMEPEER_E_LOST;
	} else {
		bad += nvmepeer_wait(queue, token, NULL, 100000000) != NVMEPEER_E_TIMEOUT;
		bad += nvmepeer_queue_quiesce(queue) != 0;
		while (nvmepeer_read(queue, &rig.buffer, 0, 0, 8) != NVMEPEER_E_LOST)
			;
	}
	/* A lost queue pair accepts no commands. */
	bad += nvmepeer_read(queue, &rig.buffer, threadIdx.x * 4096ull, 0, 8) != NVMEPEER_E_LOST;
	if (bad)
		atomicAdd(rig.bad, bad);
}

__global__ void rearm(rig rig, uint32_t losses)
{
	nvmepeer_queue_rearm(&rig.queues[0], losses);
}

__global__ void init(nvmepeer_queue *queues, const nvmepeer_geometry *geometries, uint32_t *bad)
{
	if (nvmepeer_queue_init(&queues[threadIdx.x], &geometries[threadIdx.x]))
		atomicAdd(bad, 1);
}

static std::vector<data_controller *> controllers;
/* What was on the disks at first. */
static const uint8_t *first_disk;
/* Status and control page of the first queue pair. */
static volatile nvme_peer_status *status;
static volatile nvme_peer_control *control_page;

static void *host_memory(size_t bytes)
{
	void *memory;

	CHECK(cudaHostAlloc(&memory, bytes, cudaHostAllocMapped | cudaHostAllocPortable));
	memset(memory, 0, bytes);
	return memory;
}

static nvmepeer_geometry make_geometry(const data_rings &rings)
{
	nvmepeer_geometry geometry = {};
	void *state;

	CHECK(cudaHostRegister(rings.sq, ENTRIES * 64, cudaHostRegisterMapped));
	CHECK(cudaHostRegister(rings.cq, ENTRIES * 16, cudaHostRegisterMapped));
	CHECK(cudaHostRegister(rings.doorbells, 4096, cudaHostRegisterMapped));
	geometry.version = NVMEPEER_GEOMETRY_VERSION;
	geometry.flags = NVMEPEER_SQ_REMOTE | NVMEPEER_CQ_REMOTE;
	geometry.sq = (uintptr_t)rings.sq;
	geometry.cq = (uintptr_t)rings.cq;
	geometry.sq_doorbell = (uintptr_t)rings.doorbells;
	geometry.cq_doorbell = geometry.sq_doorbell + 4;
	geometry.sq_entries = geometry.cq_entries = ENTRIES;
	geometry.cids = CIDS;
	geometry.nsid = 1;
	geometry.lba_shift = 9;
	geometry.page_shift = 12;
	geometry.max_transfer = LONG_BYTES;
	geometry.timeout_ns = 10000000000u;
	geometry.list_bytes = LIST_BYTES;
	geometry.list_area = (uintptr_t)host_memory(CIDS * LIST_BYTES);
	geometry.list_memory.length = CIDS * LIST_BYTES;
	geometry.list_memory.dma = geometry.list_area;
	CHECK(cudaMalloc(&state, nvmepeer_state_bytes(&geometry)));
	geometry.state = (uintptr_t)state;
	return geometry;
}

static void add_pages(nvmepeer_geometry *geometry)
{
	status = (nvme_peer_status *)host_memory(4096);
	control_page = (nvme_peer_control *)host_memory(4096);
	status->state = NVME_PEER_QP_LIVE;
	geometry->status = (uintptr_t)status;
	geometry->control = (uintptr_t)control_page;
}

static rig make_rig(void)
{
	std::vector<nvmepeer_geometry> geometries;
	nvmepeer_geometry *device_geometries;
	rig rig = {};
	uint8_t *disk = nullptr;

	for (uint32_t i = 0; i < QUEUES; i++) {
		data_rings rings;

		controllers.push_back(data_controller_new(&rings, ENTRIES, BLOCKS));
		geometries.push_back(make_geometry(rings));
		if (!i)
			add_pages(&geometries[0]);
		if (disk)
			memcpy(rings.disk, disk, (size_t)BLOCKS * BLOCK_BYTES);
		else
			for (uint64_t word = 0; word < (uint64_t)BLOCKS * 64; word++)
				((uint64_t *)rings.disk)[word] = pattern(word / 64, word % 64, 0);
		disk = (uint8_t *)rings.disk;
		first_disk = disk;
		data_controller_start(controllers.back());
	}
	rig.buffer.length = 256 << 20;
	rig.memory = (uint8_t *)host_memory(rig.buffer.length);
	rig.buffer.dma = (uintptr_t)rig.memory;
	CHECK(cudaMalloc(&rig.queues, QUEUES * sizeof(nvmepeer_queue)));
	CHECK(cudaMalloc(&rig.bad, 4));
	CHECK(cudaMemset(rig.bad, 0, 4));
	CHECK(cudaMalloc(&device_geometries, QUEUES * sizeof(nvmepeer_geometry)));
	CHECK(cudaMemcpy(device_geometries, geometries.data(), QUEUES * sizeof(nvmepeer_geometry),
			 cudaMemcpyHostToDevice));
	init<<<1, QUEUES>>>(rig.queues, device_geometries, rig.bad);
	CHECK(cudaDeviceSynchronize());
	return rig;
}

/* Did everything since the last call succeed? */
static bool succeeded(const rig &rig)
{
	uint32_t bad;

	CHECK(cudaGetLastError());
	CHECK(cudaDeviceSynchronize());
	CHECK(cudaMemcpy(&bad, rig.bad, 4, cudaMemcpyDeviceToHost));
	CHECK(cudaMemset(rig.bad, 0, 4));
	if (bad)
		printf("# %u bad\n", bad);
	return !bad;
}

static nvmepeer_gather_range *make_pieces(uint32_t count)
{
	nvmepeer_gather_range *pieces = (nvmepeer_gather_range *)host_memory(count * sizeof(*pieces));
	uint8_t *to = (uint8_t *)host_memory(count * 256);
	uint32_t seed = 1;

	for (uint32_t i = 0; i < count; i++) {
		seed = seed * 1664525u + 1013904223u;
		pieces[i] = { (seed >> 8) % (BLOCKS * 2ull - 1) * 256, (uintptr_t)to + i * 256ull, 256,
			      0 };
	}
	return pieces;
}

/*
 * The part of the kernel, for one queue pair: handles a request to quiesce; 0
 * if there is none.
 */
static bool take_off(void)
{
	auto end = std::chrono::steady_clock::now() + std::chrono::seconds(10);

	while (!control_page->quiesce)
		if (std::chrono::steady_clock::now() > end)
			return false;
	control_page->quiesce = 0;
	__atomic_thread_fence(__ATOMIC_RELEASE);
	status->state = NVME_PEER_QP_QUIESCED;
	return true;
}

/* Count the errors and the commands that the controller has seen so far. */
static void arm_again(const rig &rig, uint64_t *faults, uint64_t *commands)
{
	uint64_t served;

	*faults += data_controller_stop(controllers[0], &served);
	*commands += served;
	data_controller_again(controllers[0]);
	status->losses = status->losses + 1;
	__atomic_thread_fence(__ATOMIC_RELEASE);
	status->state = NVME_PEER_QP_LIVE;
	data_controller_start(controllers[0]);
	rearm<<<1, 1>>>(rig, status->losses);
}

static bool quiesce_works(const rig &rig)
{
	bool asked;

	data_controller_mute(controllers[0]);
	lose<<<1, 128>>>(rig);
	asked = take_off();
	return succeeded(rig) && asked;
}

/* --- Lists on streams ---------------------------------------------------------- */

enum { LIST_ITEMS = 3000, LIST_STRIDE = 16384 };

/* @items, @count and @seed are in GPU memory, @done in host memory. */
struct stream_list {
	nvmepeer_list_item *items;
	uint32_t *count;
	uint32_t *seed;
	nvmepeer_list_done *done;
	list_parameters parameters;
};

/* Item @index of a list that a kernel makes: any place and length, multiples of 4. */
__host__ __device__ static inline nvmepeer_list_item item_of(uint32_t seed, uint32_t index)
{
	uint32_t random = (seed * 2654435761u + index) * 2246822519u;
	nvmepeer_list_item item = {};

	random ^= random >> 15;
	/* Behind the blocks that write_and_read() writes. */
	item.lba = 8 * THREADS + random % (BLOCKS - 8 * THREADS - 64);
	item.bytes = 4 * (1 + (random >> 8) % 2500);
	item.offset = (uint64_t)index * LIST_STRIDE + 4 * ((random >> 4) % 1000);
	item.status = -99;
	return item;
}

/* As a kernel that chooses the pages to read. */
__global__ void choose_items(stream_list list)
{
	uint32_t seed = *list.seed;

	for (uint32_t i = threadIdx.x; i < LIST_ITEMS; i += blockDim.x)
		list.items[i] = item_of(seed, i);
	if (!threadIdx.x)
		*list.count = LIST_ITEMS - seed;
}

__global__ void set_seed(stream_list list, uint32_t seed)
{
	*list.seed = seed;
}

/* Behind the list on its stream: the first word of each item is there. */
__global__ void use_items(stream_list list, rig rig)
{
	uint32_t bad = 0;

	for (uint32_t i = threadIdx.x; i < *list.count; i += blockDim.x) {
		nvmepeer_list_item item = list.items[i];
		uint32_t word = *(const uint32_t *)(rig.memory + item.offset);

		bad += item.status || word != (uint32_t)pattern(item.lba, 0, 0);
	}
	if (bad)
		atomicAdd(rig.bad, bad);
}

static stream_list make_stream_list(const rig &rig)
{
	const uint64_t scratch_bytes = (2 + LIST_THREADS) * 4096;
	nvmepeer_memory memories[2] = {}, *device_memories;
	uint8_t *scratch = (uint8_t *)host_memory(scratch_bytes);
	stream_list list = {};

	memories[0] = { rig.buffer, (uintptr_t)rig.memory };
	memories[1] = { { scratch_bytes, (uintptr_t)scratch, 0 }, (uintptr_t)scratch };
	CHECK(cudaMalloc(&device_memories, sizeof(memories)));
	CHECK(cudaMemcpy(device_memories, memories, sizeof(memories), cudaMemcpyHostToDevice));
	CHECK(cudaMalloc(&list.items, LIST_ITEMS * sizeof(*list.items)));
	CHECK(cudaMalloc(&list.count, 4));
	CHECK(cudaMalloc(&list.seed, 4));
	list.done = (nvmepeer_list_done *)host_memory(4096);
	list.parameters.queues = rig.queues;
	list.parameters.queue_count = QUEUES;
	list.parameters.layout = NVMEPEER_LAYOUT;
	list.parameters.list.memories = device_memories;
	list.parameters.list.items = list.items;
	list.parameters.list.memory_count = 1;
	list.parameters.list.count = LIST_ITEMS;
	list.parameters.list.opcode = NVMEPEER_OP_READ;
	list.parameters.scratch = { &device_memories[1], 0, 0, LIST_THREADS };
	list.parameters.count = list.count;
	list.parameters.done = list.done;
	return list;
}

/* All of the memory is as it must be after the list of @seed, the first @count items. */
static bool items_are_read(const rig &rig, const uint8_t *disk, uint32_t seed)
{
	std::vector<uint8_t> expected((size_t)LIST_ITEMS * LIST_STRIDE, 0x5a);

	for (uint32_t i = 0; i < LIST_ITEMS - seed; i++) {
		nvmepeer_list_item item = item_of(seed, i);

		memcpy(&expected[item.offset], disk + item.lba * BLOCK_BYTES, item.bytes);
	}
	return !memcmp(expected.data(), rig.memory, expected.size());
}

/* A poll of the host that calls nothing of CUDA. */
static bool host_sees(const stream_list &list, uint32_t count)
{
	auto end = std::chrono::steady_clock::now() + std::chrono::seconds(20);

	while (*(volatile uint32_t *)&list.done->count != count)
		if (std::chrono::steady_clock::now() > end)
			return false;
	return !*(volatile int *)&list.done->status;
}

typedef int wait_value(cudaStream_t stream, unsigned long long address, uint32_t value, unsigned int flags);

static wait_value *find_wait_value(void)
{
	cudaDriverEntryPointQueryResult result;
	void *found = nullptr;

	CHECK(cudaGetDriverEntryPointByVersion("cuStreamWaitValue32", &found, 12000, cudaEnableDefault,
					       &result));
	return (wait_value *)found;
}

/* Another stream waits for the word. */
static bool other_stream_sees(const stream_list &list, const rig &rig, cudaStream_t stream)
{
	wait_value *wait = find_wait_value();
	uint32_t before = list.done->count;
	cudaStream_t other;
	bool good;

	CHECK(cudaStreamCreateWithFlags(&other, cudaStreamNonBlocking));
	good = wait && !wait(other, (uintptr_t)&list.done->count, before + 1, 0);
	use_items<<<1, 256, 0, other>>>(list, rig);
	choose_items<<<1, 256, 0, stream>>>(list);
	nvmepeer_list<<<1, LIST_THREADS, 0, stream>>>(list.parameters);
	CHECK(cudaStreamSynchronize(other));
	CHECK(cudaStreamDestroy(other));
	return good;
}

/* choose, read, use: as a graph, whose list is made by each launch. */
static cudaGraphExec_t capture(const stream_list &list, const rig &rig, cudaStream_t stream)
{
	cudaGraphExec_t launched;
	cudaGraph_t graph;

	CHECK(cudaStreamBeginCapture(stream, cudaStreamCaptureModeGlobal));
	choose_items<<<1, 256, 0, stream>>>(list);
	nvmepeer_list<<<1, LIST_THREADS, 0, stream>>>(list.parameters);
	use_items<<<1, 256, 0, stream>>>(list, rig);
	CHECK(cudaStreamEndCapture(stream, &graph));
	CHECK(cudaGraphInstantiate(&launched, graph, 0));
	CHECK(cudaGraphDestroy(graph));
	return launched;
}

/* Launch the graph with lists of other seeds, and check all bytes. */
static bool launches(const stream_list &list, const rig &rig, cudaGraphExec_t graph,
		     cudaStream_t stream, const uint8_t *disk, uint32_t first)
{
	bool good = true;

	for (uint32_t seed = first; seed < first + 3; seed++) {
		uint32_t count = list.done->count;

		memset(rig.memory, 0x5a, (size_t)LIST_ITEMS * LIST_STRIDE);
		set_seed<<<1, 1, 0, stream>>>(list, seed);
		CHECK(cudaGraphLaunch(graph, stream));
		good = host_sees(list, count + 1) && good;
		CHECK(cudaStreamSynchronize(stream));
		good = items_are_read(rig, disk, seed) && good;
	}
	return good && succeeded(rig);
}

/* The kernel of a file, as the library loads it. */
static bool file_works(stream_list list, const rig &rig, const char *path, cudaStream_t stream)
{
	void *arguments[] = { &list.parameters };
	uint32_t count = list.done->count;
	cudaLibrary_t library;
	cudaKernel_t kernel;
	bool good;

	CHECK(cudaLibraryLoadFromFile(&library, path, nullptr, nullptr, 0, nullptr, nullptr, 0));
	CHECK(cudaLibraryGetKernel(&kernel, library, "nvmepeer_list"));
	memset(rig.memory, 0x5a, (size_t)LIST_ITEMS * LIST_STRIDE);
	set_seed<<<1, 1, 0, stream>>>(list, 9);
	choose_items<<<1, 256, 0, stream>>>(list);
	CHECK(cudaLaunchKernel((const void *)kernel, 1, LIST_THREADS, arguments, 0, stream));
	good = host_sees(list, count + 1);
	CHECK(cudaStreamSynchronize(stream));
	CHECK(cudaLibraryUnload(library));
	return items_are_read(rig, first_disk, 9) && good;
}

/* Time of the call, and of a list. */
static void print_times(const stream_list &list, cudaStream_t stream)
{
	auto began = std::chrono::steady_clock::now();
	double enqueue, all;

	for (int i = 0; i < 10; i++)
		nvmepeer_list<<<1, LIST_THREADS, 0, stream>>>(list.parameters);
	enqueue = std::chrono::duration<double>(std::chrono::steady_clock::now() - began).count();
	CHECK(cudaStreamSynchronize(stream));
	all = std::chrono::duration<double>(std::chrono::steady_clock::now() - began).count();
	printf("# list of %d items of 5 KB on average: %.1f us to enqueue, %.0f us to execute\n", LIST_ITEMS,
	       enqueue / 10 * 1e6, all / 10 * 1e6);
}

int main(int argc, char **argv)
{
	uint64_t commands = 0, faults = 0;
	stream_list list;
	cudaGraphExec_t graph;
	cudaStream_t stream;
	rig rig;

	ktap_start();
	rig = make_rig();
	ktap_check(succeeded(rig), "queue pairs initialised on the GPU");
	read_random<<<THREADS / PER_BLOCK, PER_BLOCK>>>(rig, 40);
	ktap_check(succeeded(rig), "4 KiB random reads by 4096 threads");
	read_long<<<8, 64>>>(rig, 8);
	ktap_check(succeeded(rig), "96 KiB reads by PRP list, two in flight per thread");
	read_together<<<1, 512>>>(rig, make_pieces(4000), 4000);
	ktap_check(succeeded(rig), "4 MiB read by a block, and 4000 ranges of 256 bytes gathered");
	read_halves<<<16, 128>>>(rig, 10);
	ktap_check(succeeded(rig), "asynchronous transfers, flags, page lists with TMA, prefetch");
	CHECK(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
	list = make_stream_list(rig);
	graph = capture(list, rig, stream);
	ktap_check(launches(list, rig, graph, stream, first_disk, 1),
		   "a list made on the stream, in a graph, polled by the host; every byte");
	ktap_check(other_stream_sees(list, rig, stream) && succeeded(rig), "a list that another stream waits for");
	print_times(list, stream);
	if (argc > 1)
		ktap_check(file_works(list, rig, argv[1], stream), "a list by the kernel of the library's file");
	write_and_read<<<THREADS / PER_BLOCK, PER_BLOCK>>>(rig, 20);
	ktap_check(succeeded(rig), "writes of 1 to 8 blocks, read back");
	ktap_check(quiesce_works(rig), "quiesced queue pair: every command is lost once");
	arm_again(rig, &faults, &commands);
	CHECK(cudaDeviceSynchronize());
	ktap_check(launches(list, rig, graph, stream, first_disk, 4), "the graph after the re-arm");
	write_and_read<<<THREADS / PER_BLOCK, PER_BLOCK>>>(rig, 20);
	ktap_check(succeeded(rig), "re-armed: writes, read back");
	for (auto controller : controllers) {
		uint64_t served;

		faults += data_controller_stop(controller, &served);
		commands += served;
	}
	printf("# %llu commands\n", (unsigned long long)commands);
	ktap_check(!faults, "the controllers detected no error");
	return ktap_end();
}
