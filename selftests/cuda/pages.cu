// SPDX-License-Identifier: GPL-2.0-only
/*
 * pages.cu: what it costs that the pages which sparse attention chooses are not in GPU memory.
 *
 * The model: one rank of a 70B model at 8-way tensor parallelism, a decode step of LAYERS layers with
 * one KV head.  A page has 16 tokens, 8 KiB; of a context of 8,192 pages each sequence and layer has
 * 512 in GPU memory and wants 128 a step.  A layer is three kernels: one that chooses the pages and
 * gets their blocks, attention, which reads them and compares each word with the disk, and one that
 * reads as many bytes as the layer's weights have.  A step is a CUDA graph, but for S.
 *
 *	R	all wanted pages are in GPU memory
 *	G	the kernel resolves and reads the pages, the page table is in GPU memory
 *	Gh	the same; the rings are in host memory as those of C are
 *	C1, C4	the kernel asks one or four spinning host threads, which resolve and read
 *	S	the host synchronizes with each layer, resolves and reads
 *	H	the kernel resolves, and loads pages from pinned memory
 *
 * The disk is pinned memory, and kernels serve the queue pairs, after a latency (serve.cuh).
 * Second: 64 searches of 60 hops, each of which reads the 4 KiB that the one before named.
 *
 * Figures are medians of ROUNDS.
 *
 * usage: pages [warps=N] [deciding] [resolve] [latencies in us, default: 1 10 70]
 *	warps=N		that move data for each queue pair, default 12; with many of them polls of host memory
 *			wait behind the data on the link
 *	deciding	only the case that decides: batch 32, 5 % misses, 10 us
 *	resolve		only how long it takes to resolve pages, without reads
 */
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>
#include <thread>
#include <vector>

#include <cuda_runtime.h>
#include <nvmepeer_device.h>

#include "check.cuh"
#include "pages_host.h"
#include "serve.cuh"

enum {
	LAYERS = 80, BATCH = 32, CONTEXT = 8192, HOT = 512, TOP = PAGES_TOP, PAGE = 8192,
	SPLITS = 8, TABLES = LAYERS * BATCH,
	SEARCHES = 64, HOPS = 60, NODE = 4096, NODE_SLOTS = 16,
	QUEUES = 16, ENTRIES = 256, STEPS = 12, WARM = 3, ROUNDS = 3,
};
static const uint64_t MEDIUM = 2ull << 30;
/* Of a layer: 8192 x (1024 + 2 x 128 + 1024 + 3 x 3584) numbers of 16 bits. */
static const uint64_t WEIGHTS = 8192ull * (1024 + 256 + 1024 + 3 * 3584) * 2;

enum place { ON_GPU, ON_HOST };
enum mode { READ, LOAD, ASK, TELL, ONLY };

/* What kernels are told without a new graph; in GPU memory. */
struct control {
	uint64_t rate;		/* misses of a step and layer, in 1/65536 */
	uint32_t bad;		/* wrong words, failed requests */
	uint32_t stop;		/* the movers */
};

/* Page tables of GPU or host, their cache, and the queue pairs. */
struct family {
	nvmepeer_pages *tables;		/* in GPU memory; of the host: NULL */
	const nvmepeer_queue *queues;
	uint64_t *positions;		/* of each table, in 1/65536 pages */
	uint8_t *cache;
	uint32_t *wanted, *blocks;
	const uint8_t *medium;
	control *state;
	pages_ask *asks;
	pages_answer *answers;
	uint32_t *numbers;		/* of asks */
};

/* Word @index of the medium. */
__host__ __device__ static inline uint32_t word_of(uint32_t index)
{
	return index * 2654435769u + (index >> 13);
}

/* Place of a page, of @pages on the medium, a power of two. */
__host__ __device__ static inline uint32_t place_of(uint32_t table, uint32_t page, uint32_t pages)
{
	return ((table * CONTEXT + page) * 2654435769u >> 11) & (pages - 1);
}

/* A window of the context slides by as many pages as a step misses, which are scattered. */
__host__ __device__ static inline uint32_t page_at(uint64_t position, uint32_t index)
{
	return (uint32_t)((position >> 16) + index) * 2749u % CONTEXT;
}

/* Ask the host for @count pages and wait for their blocks.  By a block. */
static __device__ void ask_host(const family &own, uint32_t table, const uint32_t *wanted,
				uint32_t *blocks, uint32_t count)
{
	volatile pages_ask *ask = &own.asks[blockIdx.x];
	volatile uint32_t *answer = own.answers[blockIdx.x].blocks;
	uint32_t number = own.numbers[blockIdx.x] + 1, word = 0, tries = 0;

	if (threadIdx.x < count)
		ask->wanted[threadIdx.x] = pages_tag(wanted[threadIdx.x], number);
	if (!threadIdx.x) {
		ask->table = pages_tag(table, number);
		/* One word, or polls would take much of the link. */
		while (answer[count - 1] >> PAGES_TAG != (number & 255) && ++tries < 4000000)
			;
		if (tries == 4000000)
			own.state->bad = 1u << 30;
	}
	__syncthreads();
	if (!threadIdx.x)
		own.numbers[blockIdx.x] = number;
	if (threadIdx.x < count) {
		do
			word = answer[threadIdx.x];
		while (word >> PAGES_TAG != (number & 255) && ++tries < 4000000);
		blocks[threadIdx.x] = pages_tag(word, 0);
	}
	/* The data was written before the answer. */
	nvp_fence_consume();
	__syncthreads();
}

/* Load the missing pages from pinned memory.  By a block. */
static __device__ void load_misses(const family &own, const nvmepeer_pages &table,
				   const nvmepeer_page_request &request, uint32_t bytes)
{
	for (uint32_t i = threadIdx.x / 32; i < request.missing; i += blockDim.x / 32) {
		uint32_t slot = request.misses[i].slot;

		mover_move((uint64_t)own.cache + (uint64_t)(table.first + slot) * bytes,
			   (uint64_t)own.medium + (uint64_t)table.slots[slot].place * bytes, bytes,
			   threadIdx.x % 32);
	}
	__syncthreads();
}

/* Get the blocks of @count pages.  By a block. */
template <int MODE>
static __device__ void get_blocks(const family &own, uint32_t table, const uint32_t *wanted,
				  uint32_t *blocks, uint32_t count, uint32_t bytes)
{
	__shared__ nvmepeer_page_miss misses[TOP];
	__shared__ nvmepeer_page_request request;
	nvmepeer_pages *pages = &own.tables[table];
	int status = 0;

	if (MODE == ASK) {
		ask_host(own, table, wanted, blocks, count);
		return;
	}
	if (!threadIdx.x)
		request = { wanted, blocks, NULL, misses, count, 0, 0 };
	__syncthreads();
	if (MODE == READ) {
		status = nvmepeer_block_pages_read(&own.queues[blockIdx.x % QUEUES], pages, &request);
	} else {
		status = nvmepeer_block_pages_resolve(pages, &request);
		if (MODE == LOAD)
			load_misses(own, *pages, request, bytes);
	}
	if (status && !threadIdx.x)
		atomicAdd(&own.state->bad, 1);
}

/* A block chooses the pages of a sequence and gets their blocks. */
template <int MODE> __global__ void __launch_bounds__(512) choose(const __grid_constant__ family own, uint32_t layer)
{
	uint32_t table = layer * BATCH + blockIdx.x, *wanted = own.wanted + blockIdx.x * TOP;
	uint64_t position = own.positions[table] + own.state->rate;

	if (threadIdx.x < TOP)
		wanted[threadIdx.x] = page_at(position, threadIdx.x);
	__syncthreads();
	if (!threadIdx.x)
		own.positions[table] = position;
	if (MODE == TELL) {
		/* The host copies them and knows the table. */
		if (!threadIdx.x)
			own.numbers[blockIdx.x]++;
		return;
	}
	get_blocks<MODE>(own, table, wanted, own.blocks + blockIdx.x * TOP, TOP, PAGE);
}

/* Wrong words of a page, by the lanes of a warp. */
static __device__ uint32_t wrong_words(const uint8_t *page, uint32_t place, uint32_t bytes)
{
	uint32_t wrong = 0, first = place * (bytes / 4), lane = threadIdx.x % 32;

#pragma unroll 8
	for (uint32_t i = lane; i < bytes / 16; i += 32) {
		uint4 words = __ldcg((const uint4 *)page + i);
		uint32_t index = first + 4 * i;

		wrong += (words.x != word_of(index)) + (words.y != word_of(index + 1)) +
			 (words.z != word_of(index + 2)) + (words.w != word_of(index + 3));
	}
	return wrong;
}

/* Stands for attention: reads all pages; y blocks share a sequence. */
__global__ void attend(const __grid_constant__ family own, uint32_t layer)
{
	uint32_t table = layer * BATCH + blockIdx.x, wrong = 0;

	for (uint32_t i = blockIdx.y * (TOP / SPLITS) + threadIdx.x / 32;
	     i < (blockIdx.y + 1) * (TOP / SPLITS); i += blockDim.x / 32) {
		uint32_t block = own.blocks[blockIdx.x * TOP + i];
		uint32_t place = place_of(table, own.wanted[blockIdx.x * TOP + i], MEDIUM / PAGE);

		if (block >= TABLES * HOT)
			wrong++;
		else
			wrong += wrong_words(own.cache + (uint64_t)block * PAGE, place, PAGE);
	}
	if (wrong)
		atomicAdd(&own.state->bad, wrong);
}

/* Stands for the matrix products of a layer, which are bound by reading the weights. */
__global__ void __launch_bounds__(512) multiply(const uint4 *weights, uint64_t count, uint32_t *out)
{
	uint32_t sum = 0;

#pragma unroll 8
	for (uint64_t i = blockIdx.x * 512ull + threadIdx.x; i < count; i += gridDim.x * 512ull) {
		uint4 words = __ldcs(weights + i);

		sum ^= words.x ^ words.y ^ words.z ^ words.w;
	}
	if (sum == 0x12345678)
		*out = sum;
}

/* The next node of a search: named by the one that was read. */
static __device__ uint32_t next_node(uint32_t word, uint32_t hop)
{
	return (word * 2246822519u + hop * 40503u >> 7) % CONTEXT;
}

/*
 * A block is a search.  @resident: the nodes are in GPU memory; with TELL: one hop, whose
 * block the host has found.
 */
template <int MODE> __global__ void __launch_bounds__(128)
search(const __grid_constant__ family own, const uint8_t *resident, uint32_t hops, uint32_t first)
{
	__shared__ uint32_t node, block;

	if (!threadIdx.x && MODE == TELL)
		node = own.wanted[blockIdx.x * TOP], block = own.blocks[blockIdx.x * TOP];
	else if (!threadIdx.x)
		node = next_node(blockIdx.x, 0);
	__syncthreads();
	for (uint32_t hop = first; hop < first + hops; hop++) {
		uint32_t place = place_of(blockIdx.x, node, MEDIUM / NODE), next, wrong;
		const uint8_t *data = resident + (uint64_t)place * NODE;

		if (MODE != TELL && !resident)
			get_blocks<MODE>(own, blockIdx.x, &node, &block, 1, NODE);
		if (!resident)
			data = own.cache + (uint64_t)block * NODE;
		wrong = threadIdx.x < 32 ? wrong_words(data, place, NODE) : 0;
		if (wrong)
			atomicAdd(&own.state->bad, wrong);
		next = next_node(__ldcg((const uint32_t *)data), hop + 1);
		__syncthreads();
		if (!threadIdx.x)
			node = next;
		if (!threadIdx.x && MODE == TELL)
			own.wanted[blockIdx.x * TOP] = next;
		__syncthreads();
	}
}

__global__ void fill(uint32_t *words, uint64_t count)
{
	for (uint64_t i = blockIdx.x * 512ull + threadIdx.x; i < count; i += gridDim.x * 512ull)
		words[i] = word_of((uint32_t)i);
}

/* A block initialises a table of the GPU. */
__global__ void make_tables(const __grid_constant__ family own, const __grid_constant__ nvmepeer_pages first,
			    uint32_t places)
{
	uint32_t table = blockIdx.x;
	nvmepeer_pages *pages = &own.tables[table];

	if (!threadIdx.x) {
		*pages = first;
		pages->entries += (uint64_t)table * first.count;
		pages->slots += (uint64_t)table * first.slot_count;
		pages->first += table * first.slot_count;
	}
	__syncthreads();
	for (uint32_t i = threadIdx.x; i < pages->count; i += blockDim.x)
		pages->entries[i] = place_of(table, i, places);
	nvmepeer_block_pages_reset(pages);
}

__global__ void reset_queues(const nvmepeer_queue *queues)
{
	nvmepeer_queue_reset(&queues[threadIdx.x]);
}

/* @count pages of table 0, all of which are in slots, by one block. */
__global__ void __launch_bounds__(1024) resolve_all(nvmepeer_pages *table, uint32_t *wanted, uint32_t *blocks,
						    nvmepeer_page_miss *misses, control *state, uint32_t count)
{
	__shared__ nvmepeer_page_request request;

	if (!threadIdx.x)
		request = { wanted, blocks, NULL, misses, count, 0, 0 };
	__syncthreads();
	if (nvmepeer_block_pages_resolve(table, &request) || request.missing)
		atomicAdd(&state->bad, 1);
}

/*
 * The scattered accesses of that alone: the entry of each page, and with MARKS the word of its slot
 * that says when it was used.
 */
template <bool MARKS>
__global__ void __launch_bounds__(1024) touch_all(nvmepeer_pages *table, uint32_t *wanted, uint32_t *blocks,
						  nvmepeer_page_miss *, control *, uint32_t count)
{
	enum { AHEAD = 8 };

	for (uint32_t first = threadIdx.x; first < count; first += AHEAD * blockDim.x) {
		uint32_t slots[AHEAD];

#pragma unroll
		for (uint32_t i = 0; i < AHEAD; i++)
			slots[i] = nvp_load32(&table->entries[wanted[first + i * blockDim.x]]) & ~NVMEPEER_PAGE_RESIDENT;
#pragma unroll
		for (uint32_t i = 0; i < AHEAD; i++) {
			if (MARKS)
				nvp_store32(&table->slots[slots[i]].used, 3);
			blocks[first + i * blockDim.x] = slots[i];
		}
	}
}

/* Cycles of an SM in a microsecond. */
__global__ void count_cycles(double *out)
{
	uint64_t ns = nvmepeer_now_ns(), end = ns + 2000000;
	long long cycles = clock64();

	while (nvmepeer_now_ns() < end)
		;
	*out = (double)(clock64() - cycles) * 1000 / (nvmepeer_now_ns() - ns);
}

template <typename type> static type *gpu_memory(uint64_t count)
{
	void *memory;

	CHECK(cudaMalloc(&memory, count * sizeof(type)));
	CHECK(cudaMemset(memory, 0, count * sizeof(type)));
	return (type *)memory;
}

template <typename type> static type *host_memory(uint64_t count)
{
	void *memory;

	CHECK(cudaHostAlloc(&memory, count * sizeof(type), cudaHostAllocDefault));
	memset(memory, 0, count * sizeof(type));
	return (type *)memory;
}

/* Queue pairs with rings and state on either side. */
struct queue_set {
	nvmepeer_queue *host = host_memory<nvmepeer_queue>(QUEUES), *gpu = gpu_memory<nvmepeer_queue>(QUEUES);
	uint8_t *rings, *state;
	bool host_rings, host_state;
	enum { RING = ENTRIES * 80 + 4096, STATE = 65536 };

	queue_set(bool host_rings, bool host_state) : host_rings(host_rings), host_state(host_state)
	{
		rings = host_rings ? host_memory<uint8_t>(QUEUES * RING) : gpu_memory<uint8_t>(QUEUES * RING);
		state = host_state ? host_memory<uint8_t>(QUEUES * STATE) : gpu_memory<uint8_t>(QUEUES * STATE);
		for (uint32_t i = 0; i < QUEUES; i++) {
			nvmepeer_geometry geometry = {};

			geometry.version = NVMEPEER_GEOMETRY_VERSION;
			if (host_rings && !host_state)
				geometry.flags = NVMEPEER_SQ_REMOTE | NVMEPEER_CQ_REMOTE;
			geometry.sq = (uint64_t)rings + i * RING;
			geometry.cq = geometry.sq + ENTRIES * 64;
			geometry.sq_doorbell = geometry.cq + ENTRIES * 16;
			geometry.cq_doorbell = geometry.sq_doorbell + 128;
			geometry.sq_entries = geometry.cq_entries = ENTRIES;
			geometry.nsid = 1;
			geometry.lba_shift = 9;
			geometry.page_shift = 12;
			geometry.max_transfer = 131072;
			geometry.timeout_ns = 3000000000u;
			geometry.state = (uint64_t)state + i * STATE;
			if (nvmepeer_state_bytes(&geometry) > STATE || nvmepeer_queue_open(&host[i], &geometry))
				exit(3);
		}
		CHECK(cudaMemcpy(gpu, host, QUEUES * sizeof(*host), cudaMemcpyHostToDevice));
	}
};

struct gate {
	control *state = gpu_memory<control>(1);
	uint8_t *medium = host_memory<uint8_t>(MEDIUM);
	uint8_t *weights = gpu_memory<uint8_t>(WEIGHTS), *nodes = gpu_memory<uint8_t>(MEDIUM);
	queue_set sets[3] = { { false, false }, { true, false }, { true, true } };
	family pages[2], graph[2];		/* of pages and of nodes; by place */
	nvmepeer_buffer *buffers = host_memory<nvmepeer_buffer>(4);
	pages_host *hosts[2];			/* of pages, of nodes */
	pages_ask *asks = host_memory<pages_ask>(PAGES_SEQUENCES);
	pages_answer *answers = host_memory<pages_answer>(PAGES_SEQUENCES);
	uint32_t *host_wanted = host_memory<uint32_t>(PAGES_SEQUENCES * TOP);
	uint32_t *host_blocks = host_memory<uint32_t>(PAGES_SEQUENCES * TOP);
	cudaStream_t stream, mover, side;
	cudaEvent_t start, end;
	cudaGraphExec_t steps[4][BATCH + 1] = {};	/* by row, and batch */
	double cycles;
	uint32_t warps = 12;		/* of a queue pair that move data */

	gate();
	void make_family(family *own, enum place place, uint32_t tables, uint32_t slots, uint32_t bytes,
			 uint32_t buffer, uint32_t wanted, pages_host **host);
	void set_rate(double misses);
	void enqueue(int row, uint32_t batch, uint32_t layer);
	void capture(int row, uint32_t batch);
	void start_mover(int set, double latency_us);
	void stop_mover();
	template <typename work> double with_threads(pages_host *host, uint32_t threads, uint32_t sequences, work run);
	double run_steps(int row, uint32_t batch, uint32_t count);
	double run_synchronized(uint32_t batch, uint32_t count);
	double search_all(const std::string &row);
	void check(const std::string &what);
	void measure(const std::string &row, uint32_t batch, double percent, double latency, double resident);
	void measure_searches(double latency);
	void measure_resolve();
	double latest = 0;
};

enum { ROW_G, ROW_GH, ROW_H, ROW_C };

void gate::make_family(family *own, enum place place, uint32_t tables, uint32_t slots, uint32_t bytes,
		       uint32_t buffer, uint32_t wanted, pages_host **host)
{
	uint64_t cache = (uint64_t)tables * slots * bytes;

	*own = {};
	own->queues = sets[0].gpu;
	own->positions = gpu_memory<uint64_t>(tables);
	own->cache = gpu_memory<uint8_t>(cache);
	own->wanted = gpu_memory<uint32_t>(PAGES_SEQUENCES * TOP);
	own->blocks = gpu_memory<uint32_t>(PAGES_SEQUENCES * TOP);
	own->medium = medium;
	own->state = state;
	own->asks = asks;
	own->answers = answers;
	own->numbers = gpu_memory<uint32_t>(PAGES_SEQUENCES);
	buffers[buffer] = { cache, (uint64_t)own->cache, 0 };

	/* A step of the first rate that is set begins at 0, with another fraction in each. */
	std::vector<uint64_t> positions(tables);
	for (uint32_t i = 0; i < tables; i++)
		positions[i] = (i * 40503u & 0xffff) - ((uint64_t)TOP << 16);
	CHECK(cudaMemcpy(own->positions, positions.data(), tables * 8, cudaMemcpyHostToDevice));
	if (place == ON_HOST) {
		std::vector<uint32_t> places(CONTEXT);

		*host = pages_host_new(tables);
		for (uint32_t i = 0; i < tables; i++) {
			for (uint32_t page = 0; page < CONTEXT; page++)
				places[page] = place_of(i, page, MEDIUM / bytes);
			pages_host_add(*host, i, &buffers[buffer], places.data(), CONTEXT, slots, i * slots,
				       bytes / 512);
		}
		(*host)->wanted = wanted;
		(*host)->queues = sets[2].host;
		(*host)->queue_count = QUEUES;
		(*host)->asks = asks;
		(*host)->answers = answers;
		return;
	}
	nvmepeer_pages first = {};
	first.entries = gpu_memory<uint32_t>((uint64_t)tables * CONTEXT);
	first.slots = gpu_memory<nvmepeer_page_slot>((uint64_t)tables * slots);
	first.buffer = gpu_memory<nvmepeer_buffer>(1);
	CHECK(cudaMemcpy((void *)first.buffer, &buffers[buffer], sizeof(nvmepeer_buffer), cudaMemcpyHostToDevice));
	first.count = CONTEXT;
	first.slot_count = slots;
	first.blocks = bytes / 512;
	own->tables = gpu_memory<nvmepeer_pages>(tables);
	make_tables<<<tables, 256>>>(*own, first, (uint32_t)(MEDIUM / bytes));
	CHECK(cudaGetLastError());
}

void gate::set_rate(double misses)
{
	uint64_t rate = (uint64_t)(misses * 65536);

	CHECK(cudaMemcpyAsync(&state->rate, &rate, 8, cudaMemcpyHostToDevice, stream));
	CHECK(cudaStreamSynchronize(stream));
}

/* A layer of a step. */
void gate::enqueue(int row, uint32_t batch, uint32_t layer)
{
	family own = pages[row == ROW_C ? ON_HOST : ON_GPU];

	if (row == ROW_GH)
		own.queues = sets[1].gpu;
	if (row == ROW_C)
		choose<ASK><<<batch, TOP, 0, stream>>>(own, layer);
	else if (row == ROW_H)
		choose<LOAD><<<batch, 512, 0, stream>>>(own, layer);
	else
		choose<READ><<<batch, TOP, 0, stream>>>(own, layer);
	attend<<<dim3(batch, SPLITS), 256, 0, stream>>>(own, layer);
	multiply<<<264, 512, 0, stream>>>((const uint4 *)weights, WEIGHTS / 16, &state->bad);
}

void gate::capture(int row, uint32_t batch)
{
	cudaGraph_t graph;

	CHECK(cudaStreamBeginCapture(stream, cudaStreamCaptureModeThreadLocal));
	for (uint32_t layer = 0; layer < LAYERS; layer++)
		enqueue(row, batch, layer);
	CHECK(cudaStreamEndCapture(stream, &graph));
	CHECK(cudaGraphInstantiate(&steps[row][batch], graph, 0));
	CHECK(cudaGraphUpload(steps[row][batch], stream));
	CHECK(cudaGraphDestroy(graph));
}

void gate::start_mover(int set, double latency_us)
{
	queue_set &queues = sets[set];
	uint32_t zero = 0;

	/* The last one has ended. */
	if (queues.host_rings)
		memset(queues.rings, 0, QUEUES * queue_set::RING);
	else
		CHECK(cudaMemsetAsync(queues.rings, 0, QUEUES * queue_set::RING, stream));
	if (queues.host_state)
		for (pages_host *host : hosts)
			pages_host_reset_queues(host);
	else
		reset_queues<<<1, QUEUES, 0, stream>>>(queues.gpu);
	CHECK(cudaMemcpyAsync(&state->stop, &zero, 4, cudaMemcpyHostToDevice, stream));
	CHECK(cudaStreamSynchronize(stream));
	serve<<<QUEUES, 32 * (1 + warps), 0, mover>>>(queues.gpu, medium, MEDIUM / 512, &state->stop,
						  (uint32_t)(latency_us * cycles));
	CHECK(cudaGetLastError());
}

void gate::stop_mover()
{
	uint32_t one = 1;

	CHECK(cudaMemcpyAsync(&state->stop, &one, 4, cudaMemcpyHostToDevice, side));
	CHECK(cudaStreamSynchronize(mover));
}

void gate::check(const std::string &what)
{
	uint32_t bad = 0, zero = 0;

	CHECK(cudaMemcpyAsync(&bad, &state->bad, 4, cudaMemcpyDeviceToHost, stream));
	CHECK(cudaMemcpyAsync(&state->bad, &zero, 4, cudaMemcpyHostToDevice, stream));
	CHECK(cudaStreamSynchronize(stream));
	for (pages_host *host : hosts) {
		bad += host->bad;
		host->bad = 0;
	}
	if (bad) {
		printf("FAILED: %s: %u wrong words or requests\n", what.c_str(), bad);
		exit(1);
	}
}

template <typename work> double gate::with_threads(pages_host *host, uint32_t threads, uint32_t sequences, work run)
{
	std::vector<std::thread> list;
	double result;

	host->threads = threads;
	host->sequences = sequences;
	host->stop = 0;
	/* A thread begins at the number of the last ask. */
	for (uint32_t i = 0; i < PAGES_SEQUENCES; i++)
		memset(&asks[i], 0, sizeof(asks[i]));
	for (int i = 0; i < 2; i++)
		for (family *own : { &pages[i], &graph[i] })
			CHECK(cudaMemsetAsync(own->numbers, 0, PAGES_SEQUENCES * 4, stream));
	for (uint32_t i = 0; i < PAGES_SEQUENCES; i++)
		memset(&answers[i], 0, sizeof(answers[i]));
	CHECK(cudaStreamSynchronize(stream));
	for (uint32_t i = 0; i < threads; i++)
		list.emplace_back(pages_host_serve, host, i);
	result = run();
	__atomic_store_n(&host->stop, 1, __ATOMIC_RELAXED);
	for (auto &thread : list)
		thread.join();
	return result;
}

/* Microseconds of a step. */
double gate::run_steps(int row, uint32_t batch, uint32_t count)
{
	float ms;

	for (uint32_t i = 0; i < WARM; i++)
		CHECK(cudaGraphLaunch(steps[row][batch], stream));
	CHECK(cudaEventRecord(start, stream));
	for (uint32_t i = 0; i < count; i++)
		CHECK(cudaGraphLaunch(steps[row][batch], stream));
	CHECK(cudaEventRecord(end, stream));
	CHECK(cudaStreamSynchronize(stream));
	CHECK(cudaEventElapsedTime(&ms, start, end));
	return ms * 1000 / count;
}

/* S: the host gets the wanted pages of a layer, reads them and returns their blocks. */
double gate::run_synchronized(uint32_t batch, uint32_t count)
{
	family own = pages[ON_HOST];
	pages_host *host = hosts[0];
	std::chrono::steady_clock::time_point began;

	host->sequences = batch;
	for (uint32_t step = 0; step < count + WARM; step++) {
		if (step == WARM)
			began = std::chrono::steady_clock::now();
		for (uint32_t layer = 0; layer < LAYERS; layer++) {
			choose<TELL><<<batch, TOP, 0, stream>>>(own, layer);
			CHECK(cudaMemcpyAsync(host_wanted, own.wanted, batch * TOP * 4, cudaMemcpyDeviceToHost,
					      stream));
			CHECK(cudaStreamSynchronize(stream));
			for (uint32_t i = 0; i < batch; i++) {
				asks[i].table = layer * BATCH + i;
				memcpy(asks[i].wanted, host_wanted + i * TOP, TOP * 4);
			}
			pages_host_read(host);
			for (uint32_t i = 0; i < batch * TOP; i++)
				host_blocks[i] = answers[i / TOP].blocks[i % TOP];
			CHECK(cudaMemcpyAsync(own.blocks, host_blocks, batch * TOP * 4, cudaMemcpyHostToDevice,
					      stream));
			attend<<<dim3(batch, SPLITS), 256, 0, stream>>>(own, layer);
			multiply<<<264, 512, 0, stream>>>((const uint4 *)weights, WEIGHTS / 16, &state->bad);
		}
	}
	CHECK(cudaStreamSynchronize(stream));
	return std::chrono::duration<double, std::micro>(std::chrono::steady_clock::now() - began).count() / count;
}

gate::gate()
{
	double *out = host_memory<double>(1);

	CHECK(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
	CHECK(cudaStreamCreateWithFlags(&mover, cudaStreamNonBlocking));
	CHECK(cudaStreamCreateWithFlags(&side, cudaStreamNonBlocking));
	CHECK(cudaEventCreate(&start));
	CHECK(cudaEventCreate(&end));
	fill<<<1024, 512>>>((uint32_t *)medium, MEDIUM / 4);
	fill<<<1024, 512>>>((uint32_t *)nodes, MEDIUM / 4);
	make_family(&pages[ON_GPU], ON_GPU, TABLES, HOT, PAGE, 0, TOP, NULL);
	make_family(&pages[ON_HOST], ON_HOST, TABLES, HOT, PAGE, 1, TOP, &hosts[0]);
	make_family(&graph[ON_GPU], ON_GPU, SEARCHES, NODE_SLOTS, NODE, 2, 1, NULL);
	make_family(&graph[ON_HOST], ON_HOST, SEARCHES, NODE_SLOTS, NODE, 3, 1, &hosts[1]);
	CHECK(cudaDeviceSynchronize());
	for (uint32_t batch : { 1, 8, 32 })
		for (int row : { ROW_G, ROW_GH, ROW_H, ROW_C })
			capture(row, batch);
	CHECK(cudaStreamSynchronize(stream));
	/* Four windows fill the slots of all sequences.  All kernels have run then but those that ask. */
	set_rate(TOP);
	for (uint32_t i = 0; i < HOT / TOP; i++)
		CHECK(cudaGraphLaunch(steps[ROW_H][BATCH], stream));
	count_cycles<<<1, 1, 0, stream>>>(out);
	check("the first pages");
	cycles = *out;
	set_rate(0);
	for (uint32_t batch : { 1, 8, 32 })
		for (int row : { ROW_G, ROW_GH, ROW_H })
			run_steps(row, batch, 1);
	choose<TELL><<<BATCH, TOP, 0, stream>>>(pages[ON_HOST], 0);
	search<READ><<<SEARCHES, 128, 0, stream>>>(graph[ON_GPU], NULL, 0, 0);
	search<LOAD><<<SEARCHES, 128, 0, stream>>>(graph[ON_GPU], NULL, 0, 0);
	search<ASK><<<SEARCHES, 128, 0, stream>>>(graph[ON_HOST], NULL, 0, 0);
	search<TELL><<<SEARCHES, 128, 0, stream>>>(graph[ON_HOST], NULL, 0, 0);
	check("all pages resident");
	for (int set = 0; set < 3; set++) {
		start_mover(set, 1);
		stop_mover();
	}
	/* The same of the host's tables. */
	start_mover(2, 0);
	set_rate(TOP);
	with_threads(hosts[0], 4, BATCH, [&] {
		for (uint32_t i = 0; i < HOT / TOP; i++)
			CHECK(cudaGraphLaunch(steps[ROW_C][BATCH], stream));
		CHECK(cudaStreamSynchronize(stream));
		return 0.0;
	});
	stop_mover();
	check("the first pages of the host");
}

/* Print a row. */
void gate::measure(const std::string &row, uint32_t batch, double percent, double latency, double resident)
{
	int set = row == "G" || row == "R" || row == "H" ? 0 : row == "Gh" ? 1 : 2;
	uint32_t cores = row == "C4" ? 4 : row == "C1" || row == "S" ? 1 : 0;
	std::vector<double> list;
	double us;

	set_rate(TOP * percent / 100);
	start_mover(set, latency);
	for (int i = 0; i < ROUNDS; i++) {
		if (row == "S")
			us = run_synchronized(batch, STEPS / 2);
		else if (cores)
			us = with_threads(hosts[0], cores, batch, [&] { return run_steps(ROW_C, batch, STEPS); });
		else
			us = run_steps(row == "Gh" ? ROW_GH : row == "H" ? ROW_H : ROW_G, batch, STEPS);
		list.push_back(us);
	}
	stop_mover();
	check(row);
	std::sort(list.begin(), list.end());
	latest = us = list[ROUNDS / 2];
	printf("%-3s %5u %6.0f %7.0f %9.0f %9.0f %9.1f %5u\n", row.c_str(), batch, percent, latency,
	       batch * 1e6 / us, us, (us - resident) / LAYERS, cores);
	fflush(stdout);
}

/* Microseconds of the hops of all searches. */
double gate::search_all(const std::string &row)
{
	family own = graph[row[0] == 'C' || row == "S" ? ON_HOST : ON_GPU];
	float ms;

	if (row == "Gh")
		own.queues = sets[1].gpu;
	if (row == "S") {
		auto began = std::chrono::steady_clock::now();

		hosts[1]->sequences = SEARCHES;
		for (uint32_t i = 0; i < SEARCHES; i++) {
			uint32_t word = i * 2246822519u;

			host_wanted[i * TOP] = (word >> 7) % CONTEXT;
		}
		CHECK(cudaMemcpyAsync(own.wanted, host_wanted, SEARCHES * TOP * 4, cudaMemcpyHostToDevice, stream));
		for (uint32_t hop = 0; hop < HOPS; hop++) {
			CHECK(cudaMemcpyAsync(host_wanted, own.wanted, SEARCHES * TOP * 4, cudaMemcpyDeviceToHost,
					      stream));
			CHECK(cudaStreamSynchronize(stream));
			for (uint32_t i = 0; i < SEARCHES; i++) {
				asks[i].table = i;
				asks[i].wanted[0] = host_wanted[i * TOP];
			}
			pages_host_read(hosts[1]);
			for (uint32_t i = 0; i < SEARCHES; i++)
				host_blocks[i * TOP] = answers[i].blocks[0];
			CHECK(cudaMemcpyAsync(own.blocks, host_blocks, SEARCHES * TOP * 4, cudaMemcpyHostToDevice,
					      stream));
			search<TELL><<<SEARCHES, 128, 0, stream>>>(own, NULL, 1, hop);
		}
		CHECK(cudaStreamSynchronize(stream));
		return std::chrono::duration<double, std::micro>(std::chrono::steady_clock::now() - began).count();
	}
	CHECK(cudaEventRecord(start, stream));
	if (row == "R")
		search<READ><<<SEARCHES, 128, 0, stream>>>(own, nodes, HOPS, 0);
	else if (row == "H")
		search<LOAD><<<SEARCHES, 128, 0, stream>>>(own, NULL, HOPS, 0);
	else if (row[0] == 'C')
		search<ASK><<<SEARCHES, 128, 0, stream>>>(own, NULL, HOPS, 0);
	else
		search<READ><<<SEARCHES, 128, 0, stream>>>(own, NULL, HOPS, 0);
	CHECK(cudaEventRecord(end, stream));
	CHECK(cudaStreamSynchronize(stream));
	CHECK(cudaEventElapsedTime(&ms, start, end));
	return ms * 1000;
}

void gate::measure_searches(double latency)
{
	double resident = 0;

	for (std::string row : { "R", "G", "Gh", "C1", "C4", "S", "H" }) {
		int set = row == "Gh" ? 1 : row[0] == 'C' || row == "S" ? 2 : 0;
		uint32_t cores = row == "C4" ? 4 : row == "C1" || row == "S" ? 1 : 0;
		std::vector<double> list;

		start_mover(set, latency);
		for (int i = 0; i < 6; i++)
			list.push_back(row[0] == 'C' ? with_threads(hosts[1], cores, SEARCHES,
								    [&] { return search_all(row); }) :
				       search_all(row));
		stop_mover();
		check("searches " + row);
		std::sort(list.begin() + 1, list.end());
		resident = row == "R" ? list[3] : resident;
		printf("%-3s %7.0f %9.0f %9.2f %5u\n", row.c_str(), latency, list[3],
		       (list[3] - resident) / HOPS, cores);
	}
	fflush(stdout);
}

/* How long it takes to resolve 8,192 pages, without reads. */
void gate::measure_resolve()
{
	uint32_t *wanted = gpu_memory<uint32_t>(CONTEXT), *blocks = gpu_memory<uint32_t>(CONTEXT);
	nvmepeer_page_miss *misses = gpu_memory<nvmepeer_page_miss>(CONTEXT);
	std::vector<uint32_t> all(CONTEXT), entries(CONTEXT);
	nvmepeer_pages table = {};
	family twice = pages[ON_GPU];
	const uint32_t runs = 20;
	float ms;

	for (uint32_t i = 0; i < CONTEXT; i++) {
		all[i] = i * 2749 % CONTEXT;
		entries[i] = NVMEPEER_PAGE_RESIDENT | i;
	}
	CHECK(cudaMemcpy(wanted, all.data(), CONTEXT * 4, cudaMemcpyHostToDevice));
	table.entries = gpu_memory<uint32_t>(CONTEXT);
	table.slots = gpu_memory<nvmepeer_page_slot>(CONTEXT);
	table.count = table.slot_count = CONTEXT;
	CHECK(cudaMemcpy(table.entries, entries.data(), CONTEXT * 4, cudaMemcpyHostToDevice));
	nvmepeer_pages *own = gpu_memory<nvmepeer_pages>(1);
	CHECK(cudaMemcpy(own, &table, sizeof(table), cudaMemcpyHostToDevice));

	auto time = [&](auto launch) {
		cudaGraph_t graph;
		cudaGraphExec_t exec;

		CHECK(cudaStreamBeginCapture(stream, cudaStreamCaptureModeThreadLocal));
		for (uint32_t i = 0; i < runs; i++)
			launch(i);
		CHECK(cudaStreamEndCapture(stream, &graph));
		CHECK(cudaGraphInstantiate(&exec, graph, 0));
		for (int i = 0; i < 2; i++) {
			CHECK(cudaEventRecord(start, stream));
			CHECK(cudaGraphLaunch(exec, stream));
			CHECK(cudaEventRecord(end, stream));
			CHECK(cudaStreamSynchronize(stream));
		}
		CHECK(cudaEventElapsedTime(&ms, start, end));
		check("resolve");
		return ms * 1000 / runs;
	};

	/* Tables of 2 layers are consecutive: 64 blocks. */
	for (double percent : { 0.0, 5.0, 20.0 }) {
		set_rate(TOP * percent / 100);
		printf("64 tables, 128 pages each, %.0f %% replaced: %.2f us, launch included\n", percent,
		       time([&](uint32_t i) { choose<ONLY><<<64, TOP, 0, stream>>>(twice, 2 * i); }));
	}
	struct {
		const char *name;
		decltype(&resolve_all) kernel;
	} rows[] = {
		{ "resolved", resolve_all },
		{ "their entries and marks only", touch_all<true> },
		{ "their entries only", touch_all<false> },
	};
	for (const char *order : { "in any order", "ascending" }) {
		for (auto &row : rows)
			printf("8192 pages of one table by a block, all resident, %s, %s: %.2f us, launch included\n",
			       order, row.name, time([&](uint32_t) {
				row.kernel<<<1, 1024, 0, stream>>>(own, wanted, blocks, misses, state, CONTEXT);
			}));
		for (uint32_t i = 0; i < CONTEXT; i++)
			all[i] = i;
		CHECK(cudaMemcpy(wanted, all.data(), CONTEXT * 4, cudaMemcpyHostToDevice));
	}
}

/* Overheads over R of the case that decides. */
struct verdict {
	double g, gh, c1;
};

static void measure_batch(gate &gate, uint32_t batch, double percent, const std::vector<double> &latencies,
			  verdict *verdict)
{
	gate.measure("R", batch, 0, 0, 0);

	double resident = gate.latest;

	/* What it costs to ask the host, without a read. */
	if (percent == 5)
		for (std::string row : { "C1", "C4" })
			gate.measure(row, batch, 0, 0, resident);
	gate.measure("H", batch, percent, 0, resident);
	for (double latency : latencies)
		for (std::string row : { "G", "Gh", "C1", "C4", "S" }) {
			gate.measure(row, batch, percent, latency, resident);
			if (batch != 32 || percent != 5 || latency != 10)
				continue;
			if (row == "G")
				verdict->g = gate.latest - resident;
			else if (row == "Gh")
				verdict->gh = gate.latest - resident;
			else if (row == "C1")
				verdict->c1 = gate.latest - resident;
		}
}

int main(int argc, char **argv)
{
	std::vector<double> latencies, percents = { 1, 5, 20 };
	std::vector<uint32_t> batches = { 1, 8, 32 };
	verdict verdict = {};
	bool only_resolve = false;
	cudaDeviceProp device;

	/* Otherwise a kernel's first launch may wait for the end of the movers. */
	setenv("CUDA_MODULE_LOADING", "EAGER", 1);

	gate gate;

	for (int i = 1; i < argc; i++) {
		if (!strncmp(argv[i], "warps=", 6))
			gate.warps = (uint32_t)atoi(argv[i] + 6);
		else if (!strcmp(argv[i], "resolve"))
			only_resolve = true;
		else if (!strcmp(argv[i], "deciding"))
			percents = { 5 }, batches = { 32 }, latencies = { 10 };
		else
			latencies.push_back(atof(argv[i]));
	}
	if (latencies.empty())
		latencies = { 1, 10, 70 };
	CHECK(cudaGetDeviceProperties(&device, 0));
	printf("%s, %.0f cycles a us; %u warps move data for each of %u queue pairs\n", device.name, gate.cycles,
	       gate.warps, QUEUES);
	if (only_resolve) {
		gate.measure_resolve();
		return 0;
	}
	printf("row batch misses latency  tokens/s   us/step us/layer+ cores\n");
	for (uint32_t batch : batches)
		for (double percent : percents)
			measure_batch(gate, batch, percent, latencies, &verdict);
	printf("\n%u searches of %u hops\nrow latency        us    us/hop+ cores\n", SEARCHES, HOPS);
	for (double latency : latencies)
		gate.measure_searches(latency);
	gate.measure_resolve();
	if (verdict.g > 0)
		printf("overhead of C1 over that of G at 10 us, 5 %%, batch 32: %.2f; over that of Gh: %.2f\n",
		       verdict.c1 / verdict.g, verdict.c1 / verdict.gh);
	return 0;
}
