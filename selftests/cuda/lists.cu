// SPDX-License-Identifier: GPL-2.0-only
/*
 * lists.cu: lists of pages over the link into memory of the GPU, and what limits them. The disk is in
 * pinned memory of the host, its controllers are a kernel (disk.cuh) on DISK_BLOCKS SMs. Every byte
 * of each kind of transfer is compared.
 *
 * usage: lists [repeat=N] [page=BYTES] [pages=N] [gib=N] [sweep=1] [soak=SECONDS]
 *	gib: size of the disk, and of the memory of the GPU
 *	sweep: also the list and its moves by other numbers of blocks and threads of the controllers
 *	soak: also lists of items of any length at any place, of which some fail, as long as that
 *
 * Prints one line of JSON for each case: bytes over time, and the ratio of the medians to the kernel
 * that gathers the same pages, in turns.
 */
#include <algorithm>
#include <chrono>
#include <cinttypes>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <numeric>
#include <random>
#include <string>
#include <vector>

#include <cuda_runtime.h>

#include "../../lib/cuda/list.cu"
#include "check.cuh"
#include "disk.cuh"
#include "lists_host.h"

enum {
	QUEUES = 16, ENTRIES = 256, CIDS = 1024, LIST_BYTES = 4096, BLOCK_BYTES = 512, MAX_TRANSFER = 131072,
	DISK_BLOCKS = 16, FEW_BLOCKS = 8, DISK_THREADS = 1024, SET = 4, SET_THREADS = 512,
};

/* Of the disk and of the memory of the GPU. */
static uint64_t medium_bytes = 1ull << 30, cache_bytes = 1ull << 30;
static uint32_t repeat = 5, page_bytes = 16384, pages = 4096, sweep, soak;
static int failed;

/* Word @index of the medium. */
__host__ __device__ static inline uint32_t pattern(uint64_t index)
{
	uint64_t x = index * 0x9e3779b97f4a7c15ull;

	return (uint32_t)(x >> 32 ^ x);
}

__global__ void fill(uint32_t *medium, uint64_t words)
{
	for (uint64_t i = blockIdx.x * (uint64_t)blockDim.x + threadIdx.x; i < words; i += gridDim.x * blockDim.x)
		medium[i] = pattern(i);
}

__global__ void __launch_bounds__(1024, 1) serve(const __grid_constant__ disk_setup setup)
{
	disk_serve(setup);
}

__global__ void __launch_bounds__(1024, 1) only_move(uint64_t memory, uint64_t medium, const long long *places,
						     uint32_t count, uint32_t bytes, uint32_t *next,
						     const volatile uint32_t *stop)
{
	disk_only_move(memory, medium, places, count, bytes, count, next, stop);
}

__global__ void gather(uint4 *to, const uint4 *from, const long long *places, uint32_t count, uint32_t bytes)
{
	for (uint32_t page = blockIdx.x; page < count; page += gridDim.x) {
		const uint4 *source = from + places[2 * page] / 16;
		uint4 *target = to + places[2 * page + 1] / 16;

		for (uint32_t at = threadIdx.x; at < bytes / 16; at += blockDim.x)
			target[at] = __ldcv(source + at);
	}
}

/* Pages of the set, in any order, by threads. */
__global__ void __launch_bounds__(SET_THREADS) read_set(nvmepeer_set set, const long long *places, uint32_t count,
							uint32_t bytes, uint32_t *bad)
{
	uint32_t wrong = 0;

	for (uint32_t i = blockIdx.x * blockDim.x + threadIdx.x; i < count; i += gridDim.x * blockDim.x)
		wrong += nvmepeer_set_read(&set, places[2 * i + 1], places[2 * i] / BLOCK_BYTES,
					   bytes / BLOCK_BYTES) != 0;
	if (wrong)
		atomicAdd(bad, wrong);
}

/* Count the words that are not those of the page, and clear them. */
__global__ void compare(uint32_t *memory, const long long *places, uint32_t count, uint32_t bytes,
			uint32_t *bad)
{
	uint32_t wrong = 0;

	for (uint32_t page = blockIdx.x; page < count; page += gridDim.x)
		for (uint32_t at = threadIdx.x; at < bytes / 4; at += blockDim.x) {
			uint32_t *word = memory + places[2 * page + 1] / 4 + at;

			wrong += *word != pattern(places[2 * page] / 4 + at);
			*word = 0;
		}
	if (wrong)
		atomicAdd(bad, wrong);
}

__global__ void reset_queues(const nvmepeer_queue *queues, uint32_t count)
{
	if (threadIdx.x < count)
		nvmepeer_queue_reset(&queues[threadIdx.x]);
}

static void *on_gpu(size_t bytes)
{
	void *memory;

	CHECK(cudaMalloc(&memory, bytes));
	CHECK(cudaMemset(memory, 0, bytes));
	return memory;
}

static void *on_host(size_t bytes)
{
	void *memory;

	CHECK(cudaHostAlloc(&memory, bytes, cudaHostAllocMapped | cudaHostAllocPortable));
	memset(memory, 0, bytes);
	return memory;
}

/* Queue pairs whose rings, doorbells and state are in one place each. */
struct pairs {
	std::vector<nvmepeer_queue> queues;
	nvmepeer_queue *device;
	uint8_t *rings;
	size_t bytes;
	bool host_rings, host_state;
	uint2 *places;
	unsigned long long *clocks;

	pairs(uint32_t flags, bool host_rings, bool host_state);
	void restart();
};

pairs::pairs(uint32_t flags, bool host_rings_, bool host_state_) : host_rings(host_rings_), host_state(host_state_)
{
	const size_t lists = (size_t)CIDS * LIST_BYTES, ring = ENTRIES * 80 + 4096;
	nvmepeer_geometry geometry = {};
	uint8_t *area = (uint8_t *)(host_rings ? on_host(QUEUES * lists) : on_gpu(QUEUES * lists));

	bytes = QUEUES * ring;
	rings = (uint8_t *)(host_rings ? on_host(bytes) : on_gpu(bytes));
	places = (uint2 *)on_gpu(QUEUES * sizeof(*places));
	clocks = (unsigned long long *)on_gpu(QUEUES * sizeof(*clocks));
	geometry.version = NVMEPEER_GEOMETRY_VERSION;
	geometry.flags = flags | (host_rings ? NVMEPEER_SQ_REMOTE | NVMEPEER_CQ_REMOTE : 0);
	geometry.sq_entries = geometry.cq_entries = ENTRIES;
	geometry.cids = CIDS;
	geometry.nsid = 1;
	geometry.lba_shift = 9;
	geometry.page_shift = 12;
	geometry.max_transfer = MAX_TRANSFER;
	geometry.timeout_ns = 5000000000u;
	geometry.list_bytes = LIST_BYTES;
	geometry.list_memory.length = lists;
	for (uint32_t i = 0; i < QUEUES; i++) {
		size_t state = nvmepeer_state_bytes(&geometry);
		nvmepeer_queue queue;

		geometry.sq = (uintptr_t)(rings + i * ring);
		geometry.cq = geometry.sq + ENTRIES * 64;
		geometry.sq_doorbell = geometry.cq + ENTRIES * 16;
		geometry.cq_doorbell = geometry.sq_doorbell + 4;
		geometry.list_area = geometry.list_memory.dma = (uintptr_t)(area + i * lists);
		geometry.state = (uintptr_t)(host_state ? on_host(state) : on_gpu(state));
		geometry.qid = i + 1;
		if (nvmepeer_queue_open(&queue, &geometry)) {
			fprintf(stderr, "geometry refused\n");
			exit(2);
		}
		queues.push_back(queue);
	}
	device = (nvmepeer_queue *)on_gpu(QUEUES * sizeof(nvmepeer_queue));
	CHECK(cudaMemcpy(device, queues.data(), QUEUES * sizeof(nvmepeer_queue), cudaMemcpyHostToDevice));
	restart();
}

/* From the first entry of all rings. */
void pairs::restart()
{
	CHECK(cudaMemset(places, 0, QUEUES * sizeof(*places)));
	if (host_rings)
		memset(rings, 0, bytes);
	else
		CHECK(cudaMemset(rings, 0, bytes));
	if (host_state)
		lists_host_reset(queues.data(), QUEUES);
	else
		reset_queues<<<1, QUEUES>>>(device, QUEUES);
	CHECK(cudaDeviceSynchronize());
}

/* How the controllers serve. */
struct serving {
	uint32_t blocks = DISK_BLOCKS, threads = DISK_THREADS, controllers = 1, latency_ns = 0;
	double gbytes = 0;		/* a second of a controller; 0: no limit */
	bool null = false;
};

struct rig {
	uint8_t *medium, *cache;
	std::vector<long long> places;
	long long *device_places;
	uint32_t *bad, *next, *stop, *stop_device;
	nvmepeer_memory *memories;
	nvmepeer_list_item *items;
	cudaStream_t stream, serving_stream;
	cudaEvent_t start, end;

	rig();
	void serve_by(const pairs &pairs, const serving &how);
	void stop_serving();
	list_parameters parameters(const pairs &pairs);
	double milliseconds(const std::function<void()> &work);
	bool arrived();
	double gbytes(double ms) { return (double)pages * page_bytes / ms / 1e6; }
};

rig::rig()
{
	const uint64_t from = medium_bytes / page_bytes, to = cache_bytes / page_bytes;
	std::vector<uint32_t> order(std::max(from, to));
	std::vector<nvmepeer_list_item> made;
	std::mt19937 random(1);
	nvmepeer_memory memory = {};

	medium = (uint8_t *)on_host(medium_bytes);
	cache = (uint8_t *)on_gpu(cache_bytes);
	fill<<<1024, 256>>>((uint32_t *)medium, medium_bytes / 4);
	places.resize(2 * pages);
	for (uint32_t side = 0; side < 2; side++) {
		std::iota(order.begin(), order.end(), 0);
		std::shuffle(order.begin(), order.begin() + (side ? to : from), random);
		for (uint32_t i = 0; i < pages; i++)
			places[2 * i + side] = (long long)order[i] * page_bytes;
	}
	for (uint32_t i = 0; i < pages; i++)
		made.push_back({ (uint64_t)places[2 * i] / BLOCK_BYTES, (uint64_t)places[2 * i + 1], 0, page_bytes,
				 -99, 0 });
	device_places = (long long *)on_gpu(pages * 16);
	items = (nvmepeer_list_item *)on_gpu(pages * sizeof(*items));
	memories = (nvmepeer_memory *)on_gpu(sizeof(*memories));
	memory = { { cache_bytes, (uintptr_t)cache, 0 }, (uintptr_t)cache };
	CHECK(cudaMemcpy(device_places, places.data(), pages * 16, cudaMemcpyHostToDevice));
	CHECK(cudaMemcpy(items, made.data(), pages * sizeof(*items), cudaMemcpyHostToDevice));
	CHECK(cudaMemcpy(memories, &memory, sizeof(memory), cudaMemcpyHostToDevice));
	bad = (uint32_t *)on_gpu(4);
	next = (uint32_t *)on_gpu(4);
	stop = (uint32_t *)on_host(4096);
	CHECK(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
	CHECK(cudaStreamCreateWithFlags(&serving_stream, cudaStreamNonBlocking));
	CHECK(cudaEventCreate(&start));
	CHECK(cudaEventCreate(&end));
	stop_device = (uint32_t *)on_gpu(4);
	CHECK(cudaDeviceSynchronize());
}

void rig::serve_by(const pairs &pairs, const serving &how)
{
	disk_setup setup = { pairs.device, (uintptr_t)medium, medium_bytes / BLOCK_BYTES, stop_device, pairs.clocks,
			     pairs.places, QUEUES / how.blocks, QUEUES / how.controllers, how.latency_ns,
			     how.gbytes ? (uint32_t)(1048576 / how.gbytes) : 0, how.null,
			     !pairs.host_rings };

	CHECK(cudaMemset(stop_device, 0, 4));
	CHECK(cudaDeviceSynchronize());
	serve<<<how.blocks, how.threads, 0, serving_stream>>>(setup);
	CHECK(cudaGetLastError());
}

void rig::stop_serving()
{
	static const uint32_t one = 1;

	CHECK(cudaStreamSynchronize(stream));
	CHECK(cudaMemcpyAsync(stop_device, &one, 4, cudaMemcpyHostToDevice, stream));
	CHECK(cudaStreamSynchronize(serving_stream));
}

list_parameters rig::parameters(const pairs &pairs)
{
	list_parameters parameters = {};

	parameters.queues = pairs.device;
	parameters.queue_count = QUEUES;
	parameters.layout = NVMEPEER_LAYOUT;
	parameters.list.memories = memories;
	parameters.list.items = items;
	parameters.list.memory_count = 1;
	parameters.list.count = pages;
	parameters.list.opcode = NVMEPEER_OP_READ;
	return parameters;
}

double rig::milliseconds(const std::function<void()> &work)
{
	float ms;

	CHECK(cudaStreamSynchronize(stream));
	CHECK(cudaEventRecord(start, stream));
	work();
	CHECK(cudaEventRecord(end, stream));
	CHECK(cudaGetLastError());
	CHECK(cudaEventSynchronize(end));
	CHECK(cudaEventElapsedTime(&ms, start, end));
	return ms;
}

/* Are all pages in their places? They are cleared. */
bool rig::arrived()
{
	uint32_t wrong;

	compare<<<512, 256, 0, stream>>>((uint32_t *)cache, device_places, pages, page_bytes, bad);
	CHECK(cudaMemcpyAsync(&wrong, bad, 4, cudaMemcpyDeviceToHost, stream));
	CHECK(cudaMemsetAsync(bad, 0, 4, stream));
	CHECK(cudaStreamSynchronize(stream));
	if (wrong)
		fprintf(stderr, "%u words are wrong\n", wrong);
	return !wrong;
}

static double median(std::vector<double> values)
{
	std::sort(values.begin(), values.end());
	return values[values.size() / 2];
}

static void print(const std::string &what, const std::vector<double> &gbytes, double ratio, bool good)
{
	printf("{\"list\":\"%s\",\"gbytes\":%.2f,\"min\":%.2f,\"max\":%.2f,\"ratio\":%.3f,\"pages\":%u,\"bytes\":%u,\"good\":%s}\n",
	       what.c_str(), median(gbytes), *std::min_element(gbytes.begin(), gbytes.end()),
	       *std::max_element(gbytes.begin(), gbytes.end()), ratio, pages, page_bytes, good ? "true" : "false");
	fflush(stdout);
	failed |= !good;
}

static void print_number(const char *what, const char *unit, double value)
{
	printf("{\"list\":\"%s\",\"%s\":%.3f}\n", what, unit, value);
	fflush(stdout);
}

/* The same pages by a list and by the kernel that gathers them, in turns. */
static void compare_with_gather(rig &rig, const pairs &pairs, const serving &how, const std::string &name)
{
	list_parameters parameters = rig.parameters(pairs);
	std::vector<double> list, other, ratios;
	bool good = true;

	rig.serve_by(pairs, how);
	for (uint32_t i = 0; i <= repeat; i++) {
		double ms = rig.milliseconds([&] { nvmepeer_list<<<1, LIST_THREADS, 0, rig.stream>>>(parameters); });
		double gather_ms;

		good = rig.arrived() && good;
		gather_ms = rig.milliseconds([&] {
			gather<<<264, 512, 0, rig.stream>>>((uint4 *)rig.cache, (const uint4 *)rig.medium,
							    rig.device_places, pages, page_bytes);
		});
		good = rig.arrived() && good;
		if (!i)
			continue;
		list.push_back(rig.gbytes(ms));
		other.push_back(rig.gbytes(gather_ms));
		ratios.push_back(list.back() / other.back());
	}
	rig.stop_serving();
	print(name, list, median(ratios), good);
	print(name + " gather", other, 1, good);
}

/* Time of a list on queue pairs that are served in one way. */
static std::vector<double> list_ms(rig &rig, const pairs &pairs, const serving &how, uint32_t count)
{
	list_parameters parameters = rig.parameters(pairs);
	std::vector<double> times;

	parameters.list.count = count;
	rig.serve_by(pairs, how);
	for (uint32_t i = 0; i <= repeat; i++) {
		double ms = rig.milliseconds([&] { nvmepeer_list<<<1, LIST_THREADS, 0, rig.stream>>>(parameters); });

		if (i)
			times.push_back(ms);
	}
	rig.stop_serving();
	return times;
}

/* Who limits: the list with controllers that move nothing, and the moves without a list. */
static void separate(rig &rig, const pairs &pairs, const serving &how, const std::string &name)
{
	std::vector<double> moves;
	serving null = how;
	bool good = true;

	null.null = true;
	print_number((name + " null controller").c_str(), "mcmds", pages / median(list_ms(rig, pairs, null, pages)) / 1e3);
	for (uint32_t i = 0; i <= repeat; i++) {
		double ms;

		CHECK(cudaMemset(rig.next, 0, 4));
		CHECK(cudaMemset(rig.stop_device, 0, 4));
		ms = rig.milliseconds([&] {
			only_move<<<how.blocks, how.threads, 0, rig.stream>>>(
				(uintptr_t)rig.cache, (uintptr_t)rig.medium, rig.device_places, pages, page_bytes,
				rig.next, rig.stop_device);
		});
		good = rig.arrived() && good;
		if (i)
			moves.push_back(rig.gbytes(ms));
	}
	print(name + " moves only", moves, 0, good);
}

/* What a program without lists has. */
static void copies(rig &rig)
{
	std::vector<double> one, each, batch, enqueued;
	std::vector<void *> to, from;
	std::vector<size_t> sizes(pages, page_bytes);
	cudaMemcpyAttributes attributes = {};
	size_t first = 0;

	attributes.srcAccessOrder = cudaMemcpySrcAccessOrderStream;
	for (uint32_t i = 0; i < pages; i++) {
		from.push_back(rig.medium + rig.places[2 * i]);
		to.push_back(rig.cache + rig.places[2 * i + 1]);
	}
	for (uint32_t i = 0; i <= repeat; i++) {
		one.push_back(rig.gbytes(rig.milliseconds([&] {
			CHECK(cudaMemcpyAsync(rig.cache, rig.medium, (size_t)pages * page_bytes,
					      cudaMemcpyHostToDevice, rig.stream));
		})));
		each.push_back(rig.gbytes(rig.milliseconds([&] {
			for (uint32_t j = 0; j < pages; j++)
				CHECK(cudaMemcpyAsync(to[j], from[j], page_bytes, cudaMemcpyHostToDevice, rig.stream));
		})));
		batch.push_back(rig.gbytes(rig.milliseconds([&] {
			CHECK(cudaMemcpyBatchAsync(to.data(), from.data(), sizes.data(), pages, &attributes, &first, 1,
						   rig.stream));
		})));
	}
	print("one copy", one, 0, true);
	print("copy for each page", each, 0, true);
	print("batch of copies", batch, 0, rig.arrived());
}

/* The enqueue of a list: a launch of its kernel, as nvmepeer_cuda_read_list() does. */
static void enqueue(rig &rig, const pairs &pairs)
{
	list_parameters parameters = rig.parameters(pairs);
	std::vector<double> times;

	parameters.list.count = 1;
	rig.serve_by(pairs, {});
	for (uint32_t i = 0; i < 200; i++) {
		auto began = std::chrono::steady_clock::now();

		nvmepeer_list<<<1, LIST_THREADS, 0, rig.stream>>>(parameters);
		times.push_back(std::chrono::duration<double>(std::chrono::steady_clock::now() - began).count() * 1e6);
	}
	rig.stop_serving();
	print_number("launch", "us", median(times));
}

/* Controllers with a latency and a rate. */
static void adjust(rig &rig, const pairs &pairs)
{
	for (double gbytes : { 7, 14, 28 }) {
		serving how;

		how.gbytes = gbytes;
		print_number(("rate " + std::to_string((int)gbytes)).c_str(), "gbytes",
			     rig.gbytes(median(list_ms(rig, pairs, how, pages))));
	}
	for (uint32_t us : { 0, 1, 10, 70 }) {
		serving how;

		how.latency_ns = us * 1000;
		print_number(("latency " + std::to_string(us)).c_str(), "us", median(list_ms(rig, pairs, how, 1)) * 1e3);
	}
}

/* A set of SET controllers, each limited to a fifth of the link, over one such controller. */
static void sets(rig &rig, const pairs &pairs, double link)
{
	nvmepeer_buffer buffers[SET], *device_buffers = (nvmepeer_buffer *)on_gpu(sizeof(buffers));
	std::vector<double> rates[2];
	serving how;
	uint32_t wrong;

	for (auto &buffer : buffers)
		buffer = { cache_bytes, (uintptr_t)rig.cache, 0 };
	CHECK(cudaMemcpy(device_buffers, buffers, sizeof(buffers), cudaMemcpyHostToDevice));
	how.controllers = SET;
	how.gbytes = link / 5;
	rig.serve_by(pairs, how);
	for (uint32_t i = 0; i <= repeat; i++)
		for (uint32_t many = 0; many < 2; many++) {
			nvmepeer_set set = { pairs.device, device_buffers, many ? SET : 1u, QUEUES / SET, 0, 0,
					     NVMEPEER_LAYOUT, 0, nullptr };
			double ms;

			while ((uint32_t)BLOCK_BYTES << set.stripe_shift < page_bytes)
				set.stripe_shift++;
			ms = rig.milliseconds([&] {
				read_set<<<4, SET_THREADS, 0, rig.stream>>>(set, rig.device_places, pages, page_bytes,
									    rig.bad);
			});
			if (i)
				rates[many].push_back(rig.gbytes(ms));
		}
	CHECK(cudaMemcpy(&wrong, rig.bad, 4, cudaMemcpyDeviceToHost));
	CHECK(cudaMemset(rig.bad, 0, 4));
	rig.stop_serving();
	print("one controller at a fifth", rates[0], 0, !wrong);
	print("set of 4 at a fifth each", rates[1], median(rates[1]) / median(rates[0]), !wrong);
}

typedef int stream_value(cudaStream_t stream, unsigned long long address, uint32_t value, unsigned int flags);

static stream_value *find(const char *name)
{
	cudaDriverEntryPointQueryResult result;
	void *found = nullptr;

	CHECK(cudaGetDriverEntryPointByVersion(name, &found, 12000, cudaEnableDefault, &result));
	return (stream_value *)found;
}

/* The list by a thread of the host, between two words that the stream stores and waits for. */
static void by_host(rig &rig, pairs &pairs, const char *name)
{
	stream_value *write = find("cuStreamWriteValue32"), *wait = find("cuStreamWaitValue32");
	nvmepeer_list_item *items = (nvmepeer_list_item *)on_host(pages * sizeof(*items));
	nvmepeer_memory *memory = (nvmepeer_memory *)on_host(sizeof(*memory));
	uint32_t *words = (uint32_t *)on_host(4096);
	std::vector<double> rates;
	struct nvmepeer_list list = {};
	lists_host *host;
	bool good = true;

	CHECK(cudaMemcpy(items, rig.items, pages * sizeof(*items), cudaMemcpyDeviceToHost));
	CHECK(cudaMemcpy(memory, rig.memories, sizeof(*memory), cudaMemcpyDeviceToHost));
	list.memories = memory;
	list.items = items;
	list.memory_count = 1;
	list.count = pages;
	list.opcode = NVMEPEER_OP_READ;
	pairs.restart();
	rig.serve_by(pairs, {});
	host = lists_host_start(pairs.queues.data(), QUEUES, ENTRIES - 1, &list, words);
	for (uint32_t i = 0; i <= repeat; i++) {
		double ms = rig.milliseconds([&] {
			write(rig.stream, (uintptr_t)&words[0], i + 1, 0);
			wait(rig.stream, (uintptr_t)&words[1], i + 1, 0);
		});

		good = rig.arrived() && good;
		if (i)
			rates.push_back(rig.gbytes(ms));
	}
	rig.stop_serving();
	good = !lists_host_stop(host) && good;
	print(name, rates, 0, good);
}

/* --- Lists of odd items ------------------------------------------------------------ */

enum { SOAK_LISTS = 4, SOAK_ITEMS = 8192, SOAK_STRIDE = 4096, SOAK_MOST = 3 * BLOCK_BYTES };

/* Item @index of list number @seed: any length up to SOAK_MOST, anywhere; one of 64 fails. */
__host__ __device__ static inline nvmepeer_list_item odd_item(uint32_t seed, uint32_t index, uint64_t blocks)
{
	uint32_t random = (seed * 2654435761u + index) * 2246822519u;
	nvmepeer_list_item item = {};

	random ^= random >> 15;
	random *= 2654435761u;
	random ^= random >> 13;
	item.bytes = 4 * (1 + random % (SOAK_MOST / 4));
	item.lba = (random >> 9) % (blocks - 8);
	if (random % 64 == 7)
		item.lba += blocks;
	item.offset = (uint64_t)index * SOAK_STRIDE + 4 * (random >> 8) % 1024;
	if (item.offset % SOAK_STRIDE + item.bytes > SOAK_STRIDE)
		item.offset = (uint64_t)index * SOAK_STRIDE + SOAK_STRIDE - item.bytes;
	item.status = -99;
	return item;
}

__global__ void make_odd(nvmepeer_list_item *items, uint32_t seed, uint64_t blocks)
{
	for (uint32_t i = blockIdx.x * blockDim.x + threadIdx.x; i < SOAK_ITEMS; i += gridDim.x * blockDim.x)
		items[i] = odd_item(seed, i, blocks);
}

/* Every word of the memory: of the item, or untouched. It is filled for the next list. */
__global__ void check_odd(const nvmepeer_list_item *items, uint32_t *memory, uint32_t seed, uint64_t blocks,
			  uint32_t *bad)
{
	uint32_t wrong = 0;

	for (uint32_t i = blockIdx.x; i < SOAK_ITEMS; i += gridDim.x) {
		nvmepeer_list_item item = odd_item(seed, i, blocks);
		bool fails = item.lba >= blocks;

		if (!threadIdx.x)
			wrong += items[i].status != (fails ? DISK_OUT_OF_RANGE : 0);
		for (uint32_t at = threadIdx.x; at < SOAK_STRIDE / 4; at += blockDim.x) {
			uint64_t place = (uint64_t)i * SOAK_STRIDE + at * 4;
			bool inside = !fails && place >= item.offset && place < item.offset + item.bytes;
			uint32_t expected = inside ? pattern((item.lba * BLOCK_BYTES + place - item.offset) / 4) :
						     0x5a5a5a5a;

			wrong += memory[place / 4] != expected;
			memory[place / 4] = 0x5a5a5a5a;
		}
	}
	if (wrong)
		atomicAdd(bad, wrong);
}

/* Lists on several streams at once, each with its own part of the memory and scratch memory. */
static void soak_lists(rig &rig, const pairs &pairs, const char *name, double seconds)
{
	const uint64_t bytes = (uint64_t)SOAK_ITEMS * SOAK_STRIDE, scratch_bytes = (2 + SOAK_LISTS * LIST_THREADS) * 4096ull;
	uint8_t *scratch = (uint8_t *)on_gpu(scratch_bytes);
	nvmepeer_memory made[2], *memories = (nvmepeer_memory *)on_gpu((SOAK_LISTS + 1) * sizeof(made[0]));
	nvmepeer_list_item *items = (nvmepeer_list_item *)on_gpu(SOAK_LISTS * SOAK_ITEMS * sizeof(*items));
	auto began = std::chrono::steady_clock::now();
	cudaStream_t streams[SOAK_LISTS];
	uint64_t done = 0, commands = 0;
	uint32_t wrong, seed = 0;
	double gone;

	CHECK(cudaMemset(rig.cache, 0x5a, SOAK_LISTS * bytes));
	for (uint32_t i = 0; i <= SOAK_LISTS; i++) {
		uint8_t *at = i < SOAK_LISTS ? rig.cache + i * bytes : scratch;

		made[0] = { { i < SOAK_LISTS ? bytes : scratch_bytes, (uintptr_t)at, 0 }, (uintptr_t)at };
		CHECK(cudaMemcpy(&memories[i], made, sizeof(made[0]), cudaMemcpyHostToDevice));
		if (i < SOAK_LISTS)
			CHECK(cudaStreamCreateWithFlags(&streams[i], cudaStreamNonBlocking));
	}
	rig.serve_by(pairs, {});
	do {
		for (uint32_t round = 0; round < 8; round++)
			for (uint32_t i = 0; i < SOAK_LISTS; i++) {
				list_parameters parameters = rig.parameters(pairs);

				parameters.list.memories = &memories[i];
				parameters.list.items = items + i * SOAK_ITEMS;
				parameters.list.count = SOAK_ITEMS;
				parameters.scratch = { &memories[SOAK_LISTS], 0, i * LIST_THREADS, LIST_THREADS };
				make_odd<<<16, 512, 0, streams[i]>>>(items + i * SOAK_ITEMS, ++seed,
								     medium_bytes / BLOCK_BYTES);
				nvmepeer_list<<<1, LIST_THREADS, 0, streams[i]>>>(parameters);
				check_odd<<<24, 512, 0, streams[i]>>>(items + i * SOAK_ITEMS,
								      (uint32_t *)(rig.cache + i * bytes), seed,
								      medium_bytes / BLOCK_BYTES, rig.bad);
				done += SOAK_ITEMS;
			}
		for (auto stream : streams)
			CHECK(cudaStreamSynchronize(stream));
		gone = std::chrono::duration<double>(std::chrono::steady_clock::now() - began).count();
	} while (gone < seconds);
	rig.stop_serving();
	CHECK(cudaMemcpy(&wrong, rig.bad, 4, cudaMemcpyDeviceToHost));
	CHECK(cudaMemset(rig.bad, 0, 4));
	commands = done;
	printf("{\"list\":\"%s\",\"items\":%" PRIu64 ",\"words\":%" PRIu64 ",\"wrong\":%u,\"seconds\":%.1f}\n", name,
	       commands, done * (SOAK_STRIDE / 4), wrong, gone);
	fflush(stdout);
	failed |= wrong != 0;
	CHECK(cudaMemset(rig.cache, 0, SOAK_LISTS * bytes));
}

static void parse(const char *argument)
{
	std::string text = argument, key = text.substr(0, text.find('='));
	uint32_t value = (uint32_t)atoi(text.substr(text.find('=') + 1).c_str());

	if (key == "repeat") repeat = value;
	else if (key == "page") page_bytes = value;
	else if (key == "pages") pages = value;
	else if (key == "gib") medium_bytes = cache_bytes = (uint64_t)value << 30;
	else if (key == "sweep") sweep = value;
	else if (key == "soak") soak = value;
	else {
		fprintf(stderr, "unknown argument %s\n", argument);
		exit(2);
	}
}

int main(int argc, char **argv)
{
	/* A kernel that waits for another one's first launch would wait for ever. */
	setenv("CUDA_MODULE_LOADING", "EAGER", 1);
	for (int i = 1; i < argc; i++)
		parse(argv[i]);

	rig rig;
	pairs prps(0, false, false), sgls(NVMEPEER_SGL | NVMEPEER_SGL_BIT_BUCKET, false, false);
	serving few;
	pairs far(NVMEPEER_SGL, true, false), hosts(NVMEPEER_SGL, true, true);

	few.blocks = FEW_BLOCKS;
	compare_with_gather(rig, prps, {}, "prp");
	compare_with_gather(rig, sgls, {}, "sgl");
	separate(rig, sgls, {}, "separate");
	compare_with_gather(rig, sgls, few, "few");
	separate(rig, sgls, few, "few");
	if (sweep)
		for (uint32_t blocks : { 4, 8, 16 })
			for (uint32_t threads : { 256, 512, 1024 }) {
				serving how;

				how.blocks = blocks;
				how.threads = threads;
				std::string name = std::to_string(blocks) + " x " + std::to_string(threads);
				compare_with_gather(rig, sgls, how, name);
				separate(rig, sgls, how, name);
			}
	copies(rig);
	enqueue(rig, sgls);
	adjust(rig, sgls);
	sets(rig, sgls, 50);
	compare_with_gather(rig, far, {}, "host rings");
	by_host(rig, hosts, "host thread");
	if (soak) {
		soak_lists(rig, prps, "odd items by PRPs", soak / 2.0);
		soak_lists(rig, sgls, "odd items by SGLs", soak / 2.0);
	}
	return failed;
}
