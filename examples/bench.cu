// SPDX-License-Identifier: MIT OR GPL-2.0
/*
 * bench.cu: measure an access pattern: write it into next(), and get commands
 * and bytes per second and the latency of a call.
 *
 *	bench [CONTROLLER NAMESPACE [BLOCKS-OF-THREADS [SECONDS]]]
 *	nvcc -arch=sm_90 $(pkg-config --cflags --libs libnvmepeer_cuda) bench.cu
 *
 * Reads only.
 */
#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <vector>

#include <nvmepeer_cuda.h>

enum { THREADS = 256, QUEUES = 16, SAMPLES = 64, SLOT = 64 << 10 };

/* One read command. */
struct access {
	uint64_t lba;
	uint32_t blocks;
};

/*
 * The pattern: command @number of thread @thread, on a namespace of @size
 * blocks of 1 << @lba_shift bytes; at most SLOT bytes.  This one reads 4 KiB at
 * random.
 */
static __device__ access next(uint32_t thread, uint32_t number, uint64_t size, uint32_t lba_shift)
{
	uint32_t blocks = (4096u >> lba_shift) + !(4096u >> lba_shift);
	uint64_t random = (thread * 0x9e3779b97f4a7c15ull + number) * 0xbf58476d1ce4e5b9ull;

	return { (random >> 17) % (size / blocks) * blocks, blocks };
}

/* Arguments of the kernel, passed by value. */
struct job {
	const nvmepeer_queue *queues;
	nvmepeer_buffer data;
	uint64_t size, end_ns;
	unsigned long long *commands, *bytes, *bad;
	uint32_t *samples;		/* SAMPLES latencies of each thread, in nanoseconds */
};

__global__ void __launch_bounds__(THREADS) run(const __grid_constant__ job job)
{
	uint32_t thread = blockIdx.x * blockDim.x + threadIdx.x, number = 0, bad = 0;
	const nvmepeer_queue *queue = &job.queues[thread / 32 % QUEUES];
	unsigned long long bytes = 0;
	uint64_t before = nvmepeer_now_ns(), end = before + job.end_ns;

	while (before < end) {
		access access = next(thread, number, job.size, queue->lba_shift);
		uint64_t after;

		bad += nvmepeer_read(queue, &job.data, (uint64_t)thread * SLOT, access.lba,
				     access.blocks) != 0;
		after = nvmepeer_now_ns();
		job.samples[(uint64_t)thread * SAMPLES + number++ % SAMPLES] = (uint32_t)(after - before);
		bytes += (unsigned long long)access.blocks << queue->lba_shift;
		before = after;
	}
	atomicAdd(job.commands, (unsigned long long)number);
	atomicAdd(job.bytes, bytes);
	atomicAdd(job.bad, (unsigned long long)bad);
}

static void check(cudaError_t error)
{
	if (error == cudaSuccess)
		return;
	fprintf(stderr, "%s\n", cudaGetErrorString(error));
	exit(1);
}

static int measure(const nvmepeer_cuda_queues *queues, const nvmepeer_cuda_buffer *data,
		   uint64_t size, uint32_t blocks, double seconds)
{
	std::vector<uint32_t> samples((size_t)blocks * THREADS * SAMPLES);
	unsigned long long *counts, result[3];
	uint32_t *device_samples;

	check(cudaMalloc(&counts, sizeof(result)));
	check(cudaMemset(counts, 0, sizeof(result)));
	check(cudaMalloc(&device_samples, samples.size() * 4));
	check(cudaMemset(device_samples, 0, samples.size() * 4));
	job job = { nvmepeer_cuda_queues_device(queues), *nvmepeer_cuda_buffer_host(data), size,
		    (uint64_t)(seconds * 1e9), counts, counts + 1, counts + 2, device_samples };
	run<<<blocks, THREADS>>>(job);
	check(cudaGetLastError());
	check(cudaMemcpy(result, counts, sizeof(result), cudaMemcpyDeviceToHost));
	check(cudaMemcpy(samples.data(), device_samples, samples.size() * 4, cudaMemcpyDeviceToHost));
	samples.erase(std::remove(samples.begin(), samples.end(), 0u), samples.end());
	std::sort(samples.begin(), samples.end());
	printf("%llu commands, %.3f million/s, %.2f GB/s, %llu failed\n", result[0],
	       result[0] / seconds / 1e6, result[1] / seconds / 1e9, result[2]);
	if (!samples.empty())
		printf("latency: median %.2f us, 99th %.2f us, 99.9th %.2f us, maximum %.2f us\n",
		       samples[samples.size() / 2] / 1e3, samples[samples.size() * 99 / 100] / 1e3,
		       samples[samples.size() * 999 / 1000] / 1e3, samples.back() / 1e3);
	return result[2] != 0;
}

static void explain(void)
{
	nvmepeer_explanation why;

	nvmepeer_explain(&why, sizeof(why));
	fprintf(stderr, "%s: %s. %s. %s.\n", why.call, why.what, why.limit, why.help);
}

int main(int argc, char **argv)
{
	uint32_t blocks = argc > 3 ? (uint32_t)atoi(argv[3]) : 16;
	double seconds = argc > 4 ? atof(argv[4]) : 1;
	size_t bytes = (size_t)blocks * THREADS * SLOT;
	nvmepeer_cuda_queues *queues;
	nvmepeer_cuda_buffer *data;
	nvmepeer_cuda *cuda;
	nvmepeer *ctrl;
	nvmepeer_ns *ns;
	void *memory;
	int result;

	check(cudaMalloc(&memory, bytes));
	if (nvmepeer_open(argc > 2 ? argv[1] : "nvmep0", &ctrl) ||
	    nvmepeer_ns_open(argc > 2 ? argv[2] : "ngp0n1", &ns) || nvmepeer_cuda_open(0, &cuda) ||
	    nvmepeer_cuda_queues_open(ctrl, nvmepeer_ns_info(ns), cuda, 1024, QUEUES, &queues) ||
	    nvmepeer_cuda_buffer_open(ctrl, cuda, memory, bytes, &data)) {
		explain();
		return 1;
	}
	result = measure(queues, data, nvmepeer_ns_info(ns)->blocks, blocks, seconds);
	/* The queue pairs first: an active one could access the memory. */
	if (nvmepeer_cuda_queues_close(queues) || nvmepeer_cuda_buffer_close(data)) {
		explain();
		return 1;
	}
	nvmepeer_cuda_close(cuda);
	nvmepeer_ns_close(ns);
	nvmepeer_close(ctrl);
	return result;
}
