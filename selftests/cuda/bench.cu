// SPDX-License-Identifier: GPL-2.0-only
/*
 * bench.cu: the cost of the device library.  Client threads on some SMs submit
 * 4 KiB reads one after another and wait for each; null controllers complete
 * them, on other SMs or on host threads.  One process runs one case several
 * times and prints one line of JSON.
 *
 * usage: bench [name=value ...]
 *	name=TEXT sms=N threads=N per SM queues=N depth=N place=hbm|host
 *	ctrl=gpu|host ctrlsms=N ctrlthreads=N ms=N repeat=N total=COMMANDS
 *	mode=shared|call|checked|latency|exclusive|raw|doorbell
 */
#include <algorithm>
#include <cinttypes>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>
#include <thread>
#include <vector>

#include <cuda_runtime.h>
#include <nvmepeer_device.h>

#include "check.cuh"
#include "controller.cuh"
#include "host_controller.h"

/*
 * Histogram of the cycles of calls, with buckets 3 % wide: 32 for each power of
 * two from 64 on.
 */
enum { MAX_QUEUES = 128, BLOCK = BENCH_BLOCK, BUCKETS = 26 * 32 };

struct options {
	std::string name = "case";
	uint32_t sms = 1, threads = 1024, queues = 32, depth = 1024;
	uint32_t ctrlsms = 64, ctrlthreads = 8, repeat = 5, ms = 20;
	bool host_rings = false, host_controller = false;
	std::string mode = "shared";
	uint64_t total = 0;
};

/* Shared by all blocks of a run; in device memory. */
struct run_state {
	uint32_t sm_blocks[256];
	uint32_t stop;
	uint32_t clients_done;
	uint32_t ready;
	uint32_t bad;
	unsigned long long start_ns;
	unsigned long long end_ns;
	unsigned long long commands;
	unsigned long long cycles, cycles_ns;	/* of one thread, for the clock rate */
	uint32_t longest;			/* longest call, in cycles */
	uint32_t calls[BUCKETS];
};

struct run_setup {
	uint32_t sms, threads, queues, ctrlsms, clients;
	uint32_t iterations;
	uint32_t gpu_controller;
	nvmepeer_buffer buffer;
	nvmepeer_queue first;		/* for clients with one queue pair */
};

__constant__ nvmepeer_queue const_queues[MAX_QUEUES];

static __device__ __forceinline__ uint32_t smid(void)
{
	uint32_t id;

	asm volatile("mov.u32 %0, %%smid;" : "=r"(id));
	return id;
}

/*
 * A barrier at the start and at the end of all blocks: a block that ended early
 * would make room for another on its own SM, and an SM would stay without one.
 * Returns the index of this block on its SM.
 */
static __device__ uint32_t start_line(run_state *state)
{
	__shared__ uint32_t place;

	if (!threadIdx.x) {
		place = atomicAdd(&state->sm_blocks[smid()], 1);
		atomicAdd(&state->ready, 1);
		while (*(volatile uint32_t *)&state->ready < gridDim.x)
			;
		atomicMin(&state->start_ns, (unsigned long long)nvmepeer_now_ns());
	}
	__syncthreads();
	return place;
}

/* Calls of a client's threads. */
enum mode {
	MODE_SHARED,		/* nvmepeer_read() */
	MODE_CALL,		/* nvmepeer_call_read(), which is not inlined */
	MODE_CHECKED,		/* nvmepeer_execute(), the result is the LBA */
	MODE_LATENCY,		/* nvmepeer_read(), each call's cycles are counted */
	MODE_EXCLUSIVE,		/* nvmepeer_exclusive_read() */
	MODE_RAW,		/* entry, fence, doorbell, poll, doorbell; no library; one thread */
	MODE_DOORBELL,		/* doorbell and poll only: the controller's share; one thread */
};

template <int MODE>
static __device__ __forceinline__ uint32_t raw_exchange(const nvmepeer_queue *queue, uint32_t i,
							uint32_t lba)
{
	const uint4 pieces[4] = { make_uint4(2 | i << 16, 1, 0, 0), make_uint4(0, 0, 0, 256),
				  make_uint4(0, 0, lba, 0), make_uint4(7, 0, 0, 0) };
	const uint64_t slot = queue->sq + (i & queue->sq_mask) * 64ull;
	const uint32_t phase = (i >> queue->cq_shift & 1) ^ 1;
	uint4 entry;

	if (MODE == MODE_RAW || i <= queue->sq_mask) {
		for (int j = 0; j < 4; j++)
			store16(slot + 16 * j, pieces[j]);
		asm volatile("fence.acq_rel.sys;" : : : "memory");
	}
	nvp_doorbell_store(queue->sq_doorbell, (i + 1) & queue->sq_mask);
	do {
		entry = load16(queue->cq + (i & queue->cq_mask) * 16ull);
	} while ((entry.w >> 16 & 1) != phase);
	nvp_doorbell_store(queue->cq_doorbell, (i + 1) & queue->cq_mask);
	return entry.w >> 17;
}

static __device__ __forceinline__ uint32_t bucket_of(uint32_t cycles)
{
	uint32_t power = 31 - __clz(cycles | 64);

	return (power - 6) * 32 + (cycles >> (power - 5) & 31);
}

/* The lower limit of @bucket in cycles. */
static double bucket_cycles(uint32_t bucket)
{
	return (33.0 + bucket % 32) / 32 * (double)(64ull << bucket / 32);
}

/* A call with its duration recorded. */
static __device__ __forceinline__ uint32_t timed_read(const run_setup &setup, run_state *state,
						      const nvmepeer_queue *queue,
						      uint32_t thread, uint32_t lba)
{
	long long start = clock64();
	int status = nvmepeer_read(queue, &setup.buffer, (uint64_t)thread * 4096, lba, 8);
	uint32_t cycles = (uint32_t)(clock64() - start);

	atomicAdd(&state->calls[bucket_of(cycles)], 1);
	atomicMax(&state->longest, cycles);
	return status != 0;
}

template <int MODE>
static __device__ __forceinline__ uint32_t client_loop(const run_setup &setup,
						       run_state *state,
						       const nvmepeer_queue *queue,
						       uint32_t thread)
{
	uint32_t seed = thread * 2654435761u + 1, bad = 0;
	nvmepeer_exclusive exclusive;

	if (MODE == MODE_EXCLUSIVE)
		exclusive = nvmepeer_exclusive_open(queue);
	for (uint32_t i = 0; i < setup.iterations; i++) {
		uint32_t lba, result;

		seed = seed * 1664525u + 1013904223u;
		lba = seed >> 8 << 3;
		if (MODE == MODE_SHARED) {
			bad += nvmepeer_read(queue, &setup.buffer, (uint64_t)thread * 4096, lba,
					     8) != 0;
		} else if (MODE == MODE_CALL) {
			bad += nvmepeer_call_read(queue, &setup.buffer, (uint64_t)thread * 4096,
						  lba, 8) != 0;
		} else if (MODE == MODE_LATENCY) {
			bad += timed_read(setup, state, queue, thread, lba);
		} else if (MODE == MODE_CHECKED) {
			nvmepeer_command command = { NVMEPEER_OP_READ, 8, lba, &setup.buffer,
						     (uint64_t)thread * 4096, 0 };

			bad += nvmepeer_execute(queue, &command, &result, queue->timeout_ns) != 0;
			bad += result != lba;
		} else if (MODE == MODE_EXCLUSIVE) {
			bad += nvmepeer_exclusive_read(&exclusive, &setup.buffer, (uint64_t)thread * 4096,
						       lba, 8) != 0;
		} else {
			bad += raw_exchange<MODE>(queue, i, lba) != 0;
		}
	}
	return bad;
}

template <int MODE>
static __device__ void client(const run_setup &setup, run_state *state, uint32_t first_thread)
{
	uint32_t thread = first_thread + threadIdx.x, bad = 0;
	unsigned long long ns = nvmepeer_now_ns();
	long long cycles = clock64();
#if BENCH_BLOCK < 1024
	/* Built for a single thread: its device queue is a kernel parameter. */
	const nvmepeer_queue *queue = &setup.first;
#else
	const nvmepeer_queue *queue = &const_queues[thread / 32 % setup.queues];
#endif

	if (threadIdx.x < setup.threads || setup.threads >= BLOCK)
		bad = client_loop<MODE>(setup, state, queue, thread);
	if (bad)
		atomicAdd(&state->bad, bad);
	__syncthreads();
	if (threadIdx.x)
		return;
	state->cycles = clock64() - cycles;
	state->cycles_ns = nvmepeer_now_ns() - ns;
	atomicMax(&state->end_ns, (unsigned long long)nvmepeer_now_ns());
	if (atomicAdd(&state->clients_done, 1) + 1 == setup.clients) {
		__threadfence_system();
		*(volatile uint32_t *)&state->stop = 1;
	}
}

/*
 * Blocks on every SM.  A block's SM determines its role: the first SMs are
 * clients, the next ones run one block of controllers each, the rest ends at
 * once.
 */
template <int MODE>
__global__ void __launch_bounds__(BLOCK, BENCH_BLOCKS_PER_SM)
run(const __grid_constant__ run_setup setup, run_state *state, const null_queue *null_queues,
    null_count *counts)
{
	uint32_t sm = smid(), place = start_line(state);
	uint32_t blocks = (setup.threads + BLOCK - 1) / BLOCK;

	if (sm < setup.sms) {
		if (place >= blocks)
			return;
		client<MODE>(setup, state, (sm * blocks + place) * BLOCK);
	} else if (setup.gpu_controller && sm < setup.sms + setup.ctrlsms && !place) {
		uint32_t queue = sm - setup.sms + threadIdx.x / 32 * setup.ctrlsms;

		if (queue < setup.queues)
			null_serve(null_queues[queue], &counts[queue], &state->stop);
	}
}

__global__ void reset_queues(const nvmepeer_queue *queues, uint32_t count)
{
	if (threadIdx.x < count)
		nvmepeer_queue_reset(&queues[threadIdx.x]);
}

struct arena {
	char *base = nullptr;
	size_t used = 0, size = 0;
	bool host = false;

	void make(size_t bytes, bool on_host)
	{
		host = on_host;
		size = bytes;
		if (host)
			CHECK(cudaHostAlloc(&base, bytes, cudaHostAllocMapped | cudaHostAllocPortable));
		else
			CHECK(cudaMalloc(&base, bytes));
	}
	uint64_t take(size_t bytes)
	{
		uint64_t at = (uint64_t)(uintptr_t)base + used;

		used += (bytes + 4095) / 4096 * 4096;
		if (used > size) {
			fprintf(stderr, "arena too small\n");
			exit(2);
		}
		return at;
	}
	void clear()
	{
		if (host)
			memset(base, 0, size);
		else
			CHECK(cudaMemset(base, 0, size));
	}
};

using run_kernel = void (*)(run_setup, run_state *, const null_queue *, null_count *);

static run_kernel kernel_of(const std::string &mode)
{
	if (mode == "shared") return run<MODE_SHARED>;
	if (mode == "call") return run<MODE_CALL>;
	if (mode == "checked") return run<MODE_CHECKED>;
	if (mode == "latency") return run<MODE_LATENCY>;
	if (mode == "exclusive") return run<MODE_EXCLUSIVE>;
	if (mode == "raw") return run<MODE_RAW>;
	if (mode == "doorbell") return run<MODE_DOORBELL>;
	fprintf(stderr, "unknown mode %s\n", mode.c_str());
	exit(2);
}

struct bench {
	options option;
	run_kernel kernel;
	run_setup setup = {};
	arena rings, state;
	std::vector<nvmepeer_queue> queues;
	std::vector<null_queue> null_queues;
	nvmepeer_queue *device_queues;
	null_queue *device_null_queues;
	null_count *counts;
	run_state *run;
	uint32_t blocks;
	std::vector<double> medians, rare, longest;	/* of each run's calls, microseconds */

	void build();
	void sort_calls(const run_state &after);
	double once(uint32_t iterations, uint64_t *commands, std::vector<null_count> *seen);
};

void bench::build()
{
	size_t ring = option.depth * 80 + 3 * 4096;

	rings.make(option.queues * (ring + 4096), option.host_rings);
	state.make(option.queues * (size_t)(option.depth * 48 + 16384), false);
	for (uint32_t i = 0; i < option.queues; i++) {
		nvmepeer_geometry geometry = {};
		nvmepeer_queue queue;
		null_queue null;

		geometry.version = NVMEPEER_GEOMETRY_VERSION;
		geometry.flags = option.host_rings ? NVMEPEER_SQ_REMOTE | NVMEPEER_CQ_REMOTE : 0;
		geometry.sq = rings.take(option.depth * 64);
		geometry.cq = rings.take(option.depth * 16);
		geometry.sq_doorbell = rings.take(8);
		geometry.cq_doorbell = geometry.sq_doorbell + 4;
		geometry.sq_entries = geometry.cq_entries = option.depth;
		geometry.nsid = 1;
		geometry.lba_shift = 9;
		geometry.page_shift = 12;
		geometry.max_transfer = 131072;
		geometry.timeout_ns = 5000000000u;
		geometry.state = state.take(nvmepeer_state_bytes(&geometry));
		if (nvmepeer_queue_open(&queue, &geometry)) {
			fprintf(stderr, "geometry refused\n");
			exit(2);
		}
		queues.push_back(queue);
		null = { geometry.sq, geometry.cq, geometry.sq_doorbell, option.depth, 0 };
		null_queues.push_back(null);
	}
	CHECK(cudaMalloc(&device_queues, option.queues * sizeof(nvmepeer_queue)));
	CHECK(cudaMalloc(&device_null_queues, option.queues * sizeof(null_queue)));
	CHECK(cudaMalloc(&counts, option.queues * sizeof(null_count)));
	CHECK(cudaMalloc(&run, sizeof(run_state)));
	CHECK(cudaMemcpy(device_queues, queues.data(), option.queues * sizeof(nvmepeer_queue),
			 cudaMemcpyHostToDevice));
	CHECK(cudaMemcpyToSymbol(const_queues, queues.data(),
				 option.queues * sizeof(nvmepeer_queue)));
	CHECK(cudaMemcpy(device_null_queues, null_queues.data(),
			 option.queues * sizeof(null_queue), cudaMemcpyHostToDevice));
	setup.first = queues[0];
	setup.sms = option.sms;
	setup.threads = option.threads;
	setup.queues = option.queues;
	setup.gpu_controller = !option.host_controller;
	setup.ctrlsms = std::min(option.ctrlsms, option.queues);
	setup.clients = option.sms * ((option.threads + BLOCK - 1) / BLOCK);
	setup.buffer.length = 1ull << 40;
	setup.buffer.dma = 1ull << 40;
}

/* Median, 99.9th percentile and maximum of the calls of one run. */
void bench::sort_calls(const run_state &after)
{
	const double us = 1e-3 * after.cycles_ns / after.cycles;
	uint64_t all = 0, below = 0;
	bool half = false, most = false;

	for (uint32_t count : after.calls)
		all += count;
	for (uint32_t i = 0; i < BUCKETS; i++) {
		below += after.calls[i];
		if (!half && below * 2 >= all) {
			medians.push_back(us * bucket_cycles(i));
			half = true;
		}
		if (!most && below * 1000 >= all * 999) {
			rare.push_back(us * bucket_cycles(i));
			most = true;
		}
	}
	longest.push_back(us * after.longest);
}

/* One run; returns seconds. */
double bench::once(uint32_t iterations, uint64_t *commands, std::vector<null_count> *seen)
{
	run_state zero = {}, after;
	std::vector<std::thread> threads;
	volatile uint32_t stop = 0;

	zero.start_ns = ~0ull;
	rings.clear();
	CHECK(cudaMemcpy(run, &zero, sizeof(zero), cudaMemcpyHostToDevice));
	CHECK(cudaMemset(counts, 0, option.queues * sizeof(null_count)));
	reset_queues<<<1, MAX_QUEUES>>>(device_queues, option.queues);
	CHECK(cudaDeviceSynchronize());
	setup.iterations = iterations;
	seen->assign(option.queues, null_count{});
	if (option.host_controller)
		for (uint32_t i = 0; i < option.ctrlthreads; i++)
			threads.emplace_back(host_serve, null_queues.data(), seen->data(),
					     option.queues, i, option.ctrlthreads, &stop);
	kernel<<<blocks, BLOCK>>>(setup, run, device_null_queues, counts);
	CHECK(cudaGetLastError());
	CHECK(cudaDeviceSynchronize());
	stop = 1;
	for (auto &thread : threads)
		thread.join();
	CHECK(cudaMemcpy(&after, run, sizeof(after), cudaMemcpyDeviceToHost));
	if (!option.host_controller)
		CHECK(cudaMemcpy(seen->data(), counts, option.queues * sizeof(null_count),
				 cudaMemcpyDeviceToHost));
	if (option.mode == "latency" && iterations > 20)
		sort_calls(after);
	*commands = (uint64_t)iterations * option.sms * option.threads;
	if (after.bad)
		fprintf(stderr, "%s: %u calls failed\n", option.name.c_str(), after.bad);
	return after.bad ? 0 : (after.end_ns - after.start_ns) * 1e-9;
}

static void parse(options *option, const char *argument)
{
	std::string text = argument, key = text.substr(0, text.find('='));
	std::string value = text.substr(text.find('=') + 1);
	uint32_t number = (uint32_t)atoi(value.c_str());

	if (key == "name") option->name = value;
	else if (key == "sms") option->sms = number;
	else if (key == "threads") option->threads = number;
	else if (key == "queues") option->queues = number;
	else if (key == "depth") option->depth = number;
	else if (key == "ctrlsms") option->ctrlsms = number;
	else if (key == "ctrlthreads") option->ctrlthreads = number;
	else if (key == "repeat") option->repeat = number;
	else if (key == "ms") option->ms = number;
	else if (key == "mode") option->mode = value;
	else if (key == "total") option->total = strtoull(value.c_str(), nullptr, 0);
	else if (key == "place") option->host_rings = value == "host";
	else if (key == "ctrl") option->host_controller = value == "host";
	else {
		fprintf(stderr, "unknown option %s\n", argument);
		exit(2);
	}
}

int main(int argc, char **argv)
{
	bench bench;
	std::vector<double> rates;
	std::vector<null_count> seen;
	uint64_t commands, served = 0, batches = 0, heads = 0, bad = 0;
	int sms, per_sm;

	for (int i = 1; i < argc; i++)
		parse(&bench.option, argv[i]);
	bench.kernel = kernel_of(bench.option.mode);
	CHECK(cudaDeviceGetAttribute(&sms, cudaDevAttrMultiProcessorCount, 0));
	CHECK(cudaOccupancyMaxActiveBlocksPerMultiprocessor(&per_sm, bench.kernel, BLOCK, 0));
	per_sm = std::min(per_sm, BENCH_BLOCKS_PER_SM);
	bench.blocks = (uint32_t)sms * (uint32_t)per_sm;
	if (bench.option.threads > (uint32_t)per_sm * BLOCK) {
		fprintf(stderr, "%s: only %d threads fit on an SM\n", bench.option.name.c_str(),
			per_sm * BLOCK);
		return 2;
	}
	bench.build();
	double seconds = bench.once(20, &commands, &seen);
	uint32_t iterations = (uint32_t)std::max(20.0, 20 * bench.option.ms * 1e-3 /
						 std::max(seconds, 1e-6));
	iterations = std::min(iterations, 2000000u);
	if (bench.option.total)
		iterations = (uint32_t)(bench.option.total / bench.option.sms /
					bench.option.threads) + 1;
	for (uint32_t i = 0; i < bench.option.repeat; i++) {
		seconds = bench.once(iterations, &commands, &seen);
		rates.push_back(seconds > 0 ? commands / seconds * 1e-6 : 0);
	}
	std::sort(rates.begin(), rates.end());
	for (auto &count : seen) {
		served += count.commands;
		batches += count.batches;
		heads += count.head_doorbells;
		bad += count.bad_entries;
	}
	for (auto list : { &bench.medians, &bench.rare, &bench.longest })
		std::sort(list->begin(), list->end());
	auto middle = [](const std::vector<double> &list) {
		return list.empty() ? 0 : list[list.size() / 2];
	};
	double median = rates[rates.size() / 2];
	double threads = (double)bench.option.sms * bench.option.threads;

	cudaFuncAttributes attributes;
	CHECK(cudaFuncGetAttributes(&attributes, bench.kernel));
	printf("{\"name\":\"%s\",\"mode\":\"%s\",\"commands\":%" PRIu64 ",\"sms\":%u,\"threads_per_sm\":%u,\"queues\":%u,\"depth\":%u,"
	       "\"rings\":\"%s\",\"controller\":\"%s\",\"mcmds\":%.3f,\"min\":%.3f,\"max\":%.3f,"
	       "\"us_per_command\":%.3f,\"commands_per_batch\":%.2f,\"served_ok\":%s,"
	       "\"head_doorbells_per_batch\":%.3f,\"bad_entries\":%" PRIu64 ",\"registers\":%d,"
	       "\"p50_us\":%.3f,\"p999_us\":%.3f,\"longest_us\":%.3f,\"longest_of_all_us\":%.3f}\n",
	       bench.option.name.c_str(), bench.option.mode.c_str(), commands, bench.option.sms, bench.option.threads,
	       bench.option.queues, bench.option.depth, bench.option.host_rings ? "host" : "hbm",
	       bench.option.host_controller ? "host" : "gpu", median, rates.front(), rates.back(),
	       threads / median, batches ? (double)served / batches : 0,
	       served == commands ? "true" : "false", batches ? (double)heads / batches : 0, bad,
	       attributes.numRegs, middle(bench.medians), middle(bench.rare),
	       middle(bench.longest), bench.longest.empty() ? 0 : bench.longest.back());
	return rates.front() > 0 && served == commands && !bad ? 0 : 1;
}
