// SPDX-License-Identifier: GPL-2.0-only
/*
 * beside.cu: the slowdown of computation when one warp of every SM does I/O.
 * 31 warps of each SM compute and one reads; rings and doorbells are in host
 * memory, host threads are the controllers.  Runs with and without I/O
 * alternate; the result is the ratio of the medians of their times.
 *
 * usage: beside [repeat=N] [ctrlthreads=N]
 *
 * Prints one line of JSON for each kind of work (fma: bound by arithmetic, two
 * dependency chains a thread; fma8: eight chains, whose warps never stall and
 * leave few issue slots to others; stream: bound by the bandwidth of HBM) and
 * of I/O (exclusive and shared: 4 KiB reads that transfer no data; data: 64 KiB
 * reads that a copy engine transfers into HBM, each checked; copies: the copy
 * engine moves as many bytes a second, and no warp reads).
 */
#include <algorithm>
#include <atomic>
#include <chrono>
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

enum { MAX_QUEUES = 160, DEPTH = 256, THREADS = 1024, LANES = 32, DATA_BYTES = 64 << 10 };
enum work { WORK_FMA, WORK_FMA8, WORK_STREAM, WORKS };
enum io { IO_NONE, IO_EXCLUSIVE, IO_SHARED, IO_DATA, IO_COPIES };

/* In device memory; zero before each run. */
struct run_state {
	uint32_t ready, bad;
	unsigned long long start_ns, end_ns, commands;
	float sink;
};

struct run_setup {
	uint64_t iterations;		/* of a computing thread */
	const uint4 *stream;
	uint64_t pieces;		/* segments of 16 bytes in @stream */
	nvmepeer_buffer buffer;
};

__constant__ nvmepeer_queue const_queues[MAX_QUEUES];

template <int CHAINS>
static __device__ float compute_fma(uint64_t iterations)
{
	float a[CHAINS], x = 1.0f + threadIdx.x * 1e-6f, sum = 0;

	for (int i = 0; i < CHAINS; i++)
		a[i] = i;
	for (uint64_t i = 0; i < iterations; i++)
#pragma unroll
		for (int j = 0; j < 64; j++)
			a[j % CHAINS] = fmaf(a[j % CHAINS], x, 0.5f);
	for (int i = 0; i < CHAINS; i++)
		sum += a[i];
	return sum;
}

static __device__ float compute_stream(const run_setup &setup)
{
	uint64_t step = (uint64_t)gridDim.x * (THREADS - 32);
	uint64_t at = (uint64_t)blockIdx.x * (THREADS - 32) + threadIdx.x - 32;
	uint32_t sum = 0;

	for (uint64_t i = 0; i < setup.iterations; i++) {
		uint4 got[4];

#pragma unroll
		for (int j = 0; j < 4; j++) {
			got[j] = __ldcs(&setup.stream[at]);
			at += step;
			at = at < setup.pieces ? at : at - setup.pieces;
		}
#pragma unroll
		for (int j = 0; j < 4; j++)
			sum += got[j].x ^ got[j].y ^ got[j].z ^ got[j].w;
	}
	return __uint_as_float(sum);
}

/*
 * What the I/O warp counts is in shared memory: with 64 registers a thread the compiler
 * would spill it around the call, and computation that streams evicts spills from the
 * caches.
 */
struct io_lane {
	uint32_t seed, count, bad;
};

/* Read until the computation of this SM has finished. */
template <int IO>
static __device__ void do_io(const run_setup &setup, const volatile uint32_t *computing,
			     volatile io_lane *lane)
{
	const nvmepeer_queue *queue = &const_queues[blockIdx.x];
	const uint32_t thread = blockIdx.x * LANES + threadIdx.x;
	const uint32_t bytes = IO == IO_DATA ? DATA_BYTES : 4096, blocks = bytes >> 9;
	nvmepeer_exclusive exclusive;

	lane->seed = thread * 2654435761u + 1;
	lane->count = lane->bad = 0;
	if (IO != IO_SHARED)
		exclusive = nvmepeer_exclusive_open(queue);
	do {
		uint64_t offset = (uint64_t)thread * bytes, lba;

		lane->seed = lane->seed * 1664525u + 1013904223u;
		lba = lane->seed >> 8 << 3;
		if (IO == IO_SHARED)
			lane->bad += nvmepeer_read(queue, &setup.buffer, offset, lba, blocks) != 0;
		else
			lane->bad += nvmepeer_exclusive_read(&exclusive, &setup.buffer, offset, lba,
							     blocks) != 0;
		if (IO == IO_DATA)
			lane->bad += *(const volatile uint64_t *)(setup.buffer.dma + offset) != lba;
		lane->count++;
		__syncwarp();
	} while (*computing);
	if (IO != IO_SHARED)
		nvmepeer_exclusive_close(&exclusive);
}

template <int WORK, int IO>
__global__ void __launch_bounds__(THREADS, 1)
run(const __grid_constant__ run_setup setup, run_state *state)
{
	__shared__ uint32_t computing;
	__shared__ io_lane lanes[LANES];
	float result;

	if (!threadIdx.x) {
		computing = THREADS / 32 - 1;
		atomicAdd(&state->ready, 1);
		while (*(volatile uint32_t *)&state->ready < gridDim.x)
			;
		atomicMin(&state->start_ns, (unsigned long long)nvmepeer_now_ns());
	}
	__syncthreads();
	if (threadIdx.x < 32) {
		if (IO == IO_NONE)
			return;
		do_io<IO>(setup, &computing, &lanes[threadIdx.x]);
		atomicAdd(&state->commands, lanes[threadIdx.x].count);
		if (lanes[threadIdx.x].bad)
			atomicAdd(&state->bad, lanes[threadIdx.x].bad);
		return;
	}
	if (WORK == WORK_STREAM)
		result = compute_stream(setup);
	else
		result = compute_fma<WORK == WORK_FMA ? 2 : 8>(setup.iterations);
	if (result == 1.2345f)
		state->sink = result;
	__syncwarp();
	if (threadIdx.x % 32 == 0) {
		atomicMax(&state->end_ns, (unsigned long long)nvmepeer_now_ns());
		atomicSub(&computing, 1);
	}
}

__global__ void reset_queues(uint32_t count)
{
	if (threadIdx.x < count)
		nvmepeer_queue_reset(&const_queues[threadIdx.x]);
}

using run_kernel = void (*)(run_setup, run_state *);

static const run_kernel kernels[WORKS][4] = {
	{ run<WORK_FMA, IO_NONE>, run<WORK_FMA, IO_EXCLUSIVE>, run<WORK_FMA, IO_SHARED>,
	  run<WORK_FMA, IO_DATA> },
	{ run<WORK_FMA8, IO_NONE>, run<WORK_FMA8, IO_EXCLUSIVE>, run<WORK_FMA8, IO_SHARED>,
	  run<WORK_FMA8, IO_DATA> },
	{ run<WORK_STREAM, IO_NONE>, run<WORK_STREAM, IO_EXCLUSIVE>, run<WORK_STREAM, IO_SHARED>,
	  run<WORK_STREAM, IO_DATA> },
};

static const char *const work_names[] = { "fma", "fma8", "stream" };
static const char *const io_names[] = { "none", "exclusive", "shared", "data", "copies" };

struct rig {
	uint32_t sms, threads, repeat;
	uint8_t *rings, *source;	/* host memory */
	std::vector<null_queue> nulls;
	run_setup setup;
	run_state *state;
	uint64_t iterations[WORKS];
	double copies;			/* GB/s of IO_COPIES */
	std::atomic<uint64_t> copied;

	void build();
	double once(int work, int io, uint64_t *commands);
};

void rig::build()
{
	const size_t ring = DEPTH * 80 + 4096;
	std::vector<nvmepeer_queue> queues;
	nvmepeer_geometry geometry = {};
	uint8_t *memory;

	geometry.sq_entries = geometry.cq_entries = DEPTH;
	const size_t state_bytes = (nvmepeer_state_bytes(&geometry) + 127) / 128 * 128;

	CHECK(cudaHostAlloc(&rings, sms * ring, cudaHostAllocMapped | cudaHostAllocPortable));
	CHECK(cudaHostAlloc(&source, (size_t)sms * LANES * DATA_BYTES, cudaHostAllocPortable));
	CHECK(cudaMalloc(&memory, sms * state_bytes));
	CHECK(cudaMalloc(&state, sizeof(*state)));
	setup = {};
	setup.buffer.length = (uint64_t)sms * LANES * DATA_BYTES;
	setup.pieces = 1ull << 28;	/* 4 GiB, 70 times the L2 cache */
	CHECK(cudaMalloc((void **)&setup.buffer.dma, setup.buffer.length));
	CHECK(cudaMalloc((void **)&setup.stream, setup.pieces * 16));
	CHECK(cudaMemset((void *)setup.stream, 0x5a, setup.pieces * 16));
	for (uint32_t i = 0; i < sms; i++) {
		nvmepeer_queue queue;

		geometry.version = NVMEPEER_GEOMETRY_VERSION;
		geometry.flags = NVMEPEER_SQ_REMOTE | NVMEPEER_CQ_REMOTE | NVMEPEER_SGL;
		geometry.sq = (uint64_t)(rings + i * ring);
		geometry.cq = geometry.sq + DEPTH * 64;
		geometry.sq_doorbell = geometry.cq + DEPTH * 16;
		geometry.cq_doorbell = geometry.sq_doorbell + 4;
		geometry.nsid = 1;
		geometry.lba_shift = 9;
		geometry.page_shift = 12;
		geometry.max_transfer = DATA_BYTES;
		geometry.timeout_ns = 5000000000u;
		geometry.state = (uint64_t)(memory + i * state_bytes);
		if (nvmepeer_queue_open(&queue, &geometry)) {
			fprintf(stderr, "geometry refused\n");
			exit(2);
		}
		queues.push_back(queue);
		nulls.push_back({ geometry.sq, geometry.cq, geometry.sq_doorbell, DEPTH, 0 });
	}
	CHECK(cudaMemcpyToSymbol(const_queues, queues.data(), sms * sizeof(nvmepeer_queue)));
}

/*
 * A controller that transfers data: it copies the data of all commands that it
 * finds at the same time and completes them when it has arrived.
 */
static void data_serve(const rig *rig, uint32_t index, volatile uint32_t *stop)
{
	std::vector<uint32_t> fetched(rig->sms), tails(rig->sms);
	cudaStream_t stream;

	CHECK(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
	while (!*stop) {
		for (uint32_t q = index; q < rig->sms; q += rig->threads) {
			const null_queue &queue = rig->nulls[q];

			tails[q] = __atomic_load_n((uint32_t *)queue.doorbells, __ATOMIC_ACQUIRE);
			for (uint32_t at = fetched[q], i = 0; at % DEPTH != tails[q]; at++, i++) {
				const uint32_t *entry = (const uint32_t *)(queue.sq + at % DEPTH * 64);
				uint64_t *from = (uint64_t *)(rig->source +
						 ((size_t)q * LANES + i % LANES) * DATA_BYTES);

				*from = entry[10];
				CHECK(cudaMemcpyAsync((void *)(entry[6] | (uint64_t)entry[7] << 32), from,
						      DATA_BYTES, cudaMemcpyHostToDevice, stream));
			}
		}
		CHECK(cudaStreamSynchronize(stream));
		for (uint32_t q = index; q < rig->sms; q += rig->threads)
			for (; fetched[q] % DEPTH != tails[q]; fetched[q]++) {
				const null_queue &queue = rig->nulls[q];
				uint32_t at = fetched[q], phase = (at / DEPTH & 1) ^ 1;
				const uint32_t *entry = (const uint32_t *)(queue.sq + at % DEPTH * 64);

				_mm_store_si128((__m128i *)(queue.cq + at % DEPTH * 16),
						_mm_set_epi32((int)(entry[0] >> 16 | phase << 16),
							      0, 0, (int)entry[10]));
			}
	}
	CHECK(cudaStreamDestroy(stream));
}

/*
 * The same copies without commands, in batches of those of a few warps, at the rate of
 * @rig->copies for all threads.
 */
static void copy_serve(rig *rig, uint32_t index, volatile uint32_t *stop)
{
	using clock = std::chrono::steady_clock;
	const uint32_t batch = 4 * LANES;
	const auto turn = std::chrono::duration<double>((double)batch * DATA_BYTES * rig->threads /
						       (1e9 * rig->copies));
	auto next = clock::now();
	cudaStream_t stream;

	CHECK(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
	for (uint32_t first = index * batch; !*stop; first += rig->threads * batch) {
		for (uint32_t i = 0; i < batch; i++) {
			size_t at = (size_t)((first + i) % (rig->sms * LANES)) * DATA_BYTES;

			CHECK(cudaMemcpyAsync((void *)(rig->setup.buffer.dma + at), rig->source + at,
					      DATA_BYTES, cudaMemcpyHostToDevice, stream));
		}
		CHECK(cudaStreamSynchronize(stream));
		rig->copied += batch;
		next += std::chrono::duration_cast<clock::duration>(turn);
		while (!*stop && clock::now() < next)
			;
	}
	CHECK(cudaStreamDestroy(stream));
}

/* One run; returns seconds of the computation. */
double rig::once(int work, int io, uint64_t *commands)
{
	std::vector<null_count> seen(sms);
	std::vector<std::thread> controllers;
	volatile uint32_t stop = 0;
	run_state now = {};

	now.start_ns = ~0ull;
	memset(rings, 0, sms * (size_t)(DEPTH * 80 + 4096));
	reset_queues<<<1, MAX_QUEUES>>>(sms);
	CHECK(cudaMemcpy(state, &now, sizeof(now), cudaMemcpyHostToDevice));
	CHECK(cudaDeviceSynchronize());
	setup.iterations = iterations[work];
	copied = 0;
	for (uint32_t i = 0; io != IO_NONE && i < threads; i++)
		if (io == IO_DATA)
			controllers.emplace_back(data_serve, this, i, &stop);
		else if (io == IO_COPIES)
			controllers.emplace_back(copy_serve, this, i, &stop);
		else
			controllers.emplace_back(host_serve, nulls.data(), seen.data(), sms, i, threads,
						 &stop);
	kernels[work][io == IO_COPIES ? IO_NONE : io]<<<sms, THREADS>>>(setup, state);
	CHECK(cudaGetLastError());
	CHECK(cudaDeviceSynchronize());
	stop = 1;
	for (auto &controller : controllers)
		controller.join();
	CHECK(cudaMemcpy(&now, state, sizeof(now), cudaMemcpyDeviceToHost));
	if (now.bad) {
		fprintf(stderr, "%s, %s: %u bad\n", work_names[work], io_names[io], now.bad);
		exit(1);
	}
	*commands = io == IO_COPIES ? copied.load() : now.commands;
	return (now.end_ns - now.start_ns) * 1e-9;
}

static double median(std::vector<double> values)
{
	std::sort(values.begin(), values.end());
	return values[values.size() / 2];
}

static void measure(rig &rig, int work, int io)
{
	std::vector<double> without, with, ratios, rates;
	uint64_t commands;

	for (uint32_t i = 0; i < rig.repeat; i++) {
		uint64_t none;

		without.push_back(rig.once(work, IO_NONE, &none));
		with.push_back(rig.once(work, io, &commands));
		ratios.push_back(with.back() / without.back());
		rates.push_back(commands / with.back() * 1e-6);
	}
	double gbytes = median(rates) * 1e6 * DATA_BYTES * 1e-9;

	printf("{\"beside\":\"%s_%s\",\"ratio\":%.4f,\"min\":%.4f,\"max\":%.4f,\"mcmds\":%.3f,"
	       "\"gbytes\":%.2f,\"ms_without\":%.3f}\n", work_names[work], io_names[io],
	       median(with) / median(without), *std::min_element(ratios.begin(), ratios.end()),
	       *std::max_element(ratios.begin(), ratios.end()), median(rates),
	       io >= IO_DATA ? gbytes : 0, 1e3 * median(without));
	fflush(stdout);
	if (io == IO_DATA)
		rig.copies = gbytes;
}

/* The amount of work that takes about 20 ms. */
static void calibrate(rig &rig)
{
	uint64_t none;

	for (int work = 0; work < WORKS; work++) {
		rig.iterations[work] = 1000;
		rig.once(work, IO_NONE, &none);
		double seconds = rig.once(work, IO_NONE, &none);

		rig.iterations[work] = (uint64_t)(1000 * 0.020 / seconds) + 1;
	}
}

int main(int argc, char **argv)
{
	rig rig;
	int sms;

	CHECK(cudaDeviceGetAttribute(&sms, cudaDevAttrMultiProcessorCount, 0));
	rig.sms = std::min(sms, (int)MAX_QUEUES);
	rig.repeat = 7;
	rig.threads = std::max(2u, std::thread::hardware_concurrency() - 2);
	for (int i = 1; i < argc; i++) {
		std::string text = argv[i];
		uint32_t number = (uint32_t)atoi(text.substr(text.find('=') + 1).c_str());

		if (!text.rfind("repeat=", 0)) rig.repeat = number;
		else if (!text.rfind("ctrlthreads=", 0)) rig.threads = number;
		else {
			fprintf(stderr, "unknown option %s\n", argv[i]);
			return 2;
		}
	}
	rig.build();
	calibrate(rig);
	for (int work = 0; work < WORKS; work++)
		for (int io = IO_EXCLUSIVE; io <= IO_COPIES; io++)
			measure(rig, work, io);
	return 0;
}
