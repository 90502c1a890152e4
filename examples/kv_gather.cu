// SPDX-License-Identifier: MIT OR GPL-2.0
/*
 * kv_gather.cu: read pages of a key-value cache from an NVMe namespace into a
 * paged cache that the program already has, while the GPU computes on the pages
 * read before.
 *
 * A sequence's pages are on the disk in the order of writing, PAGE bytes each;
 * a page table has the place of each in the cache.  In every block of threads
 * one warp does the I/O: one command reads GROUP pages directly into their
 * places (scatter), several groups ahead (batches), and the warp raises a flag
 * in shared memory for each group that has arrived.  The other warps compute
 * and poll flags only.
 *
 *	kv_gather [CONTROLLER NAMESPACE]	default: nvmep0 ngp0n1
 *	nvcc -arch=sm_90 $(pkg-config --cflags --libs libnvmepeer_cuda) kv_gather.cu
 *
 * Overwrites the first pages of the namespace.  Prints pages per second and the
 * number of wrong words.
 */
#include <cstdio>
#include <cstdlib>
#include <utility>
#include <vector>

#include <nvmepeer_cuda.h>

enum {
	PAGE_SHIFT = 14, PAGE = 1 << PAGE_SHIFT,	/* bytes of a page of the cache */
	PAGES = 1 << 14,
	GROUP = 4,					/* pages of a command */
	AHEAD = 8,					/* commands in flight of a block */
	BLOCKS = 64, THREADS = 256, QUEUES = 8,
	CONTROLLER_PAGES = GROUP * (PAGE / 4096),
};

/* Arguments of the kernel, passed by value. */
struct job {
	const nvmepeer_queue *queues;
	nvmepeer_buffer cache;
	const uint32_t *words;		/* the cache as the GPU sees it */
	const uint32_t *page_table;
	unsigned long long *wrong;
	uint64_t timeout_ns;
};

/* Shared memory of a block. */
struct shared {
	nvmepeer_batch batches[AHEAD];
	nvmepeer_token tokens[AHEAD];
	nvmepeer_flag flags[AHEAD];
	uint64_t table[CONTROLLER_PAGES];
};

/* One command for GROUP pages.  All lanes of the warp. */
static __device__ int send_group(const job &job, const nvmepeer_queue *queue, shared *shared,
				 uint32_t group, uint32_t slot)
{
	nvmepeer_group warp = nvmepeer_group_full();
	nvmepeer_page_list list = { &job.cache, job.page_table + group * GROUP, GROUP, PAGE_SHIFT };
	nvmepeer_transfer transfer = { NVMEPEER_OP_READ, 0, 0, 0, NULL, 0 };
	nvmepeer_buffer pages;
	int status = nvmepeer_warp_scatter(queue, warp, &list, shared->table, &pages);

	transfer.lba = (uint64_t)group * GROUP * PAGE >> queue->lba_shift;
	transfer.blocks = GROUP * PAGE >> queue->lba_shift;
	transfer.buffer = &pages;
	if (!status)
		status = nvmepeer_warp_submit(queue, warp, &transfer, &shared->batches[slot]);
	return status;
}

/* The warps that compute: here they check every word of the pages. */
static __device__ uint32_t use_group(const job &job, uint32_t group)
{
	uint32_t wrong = 0;

	for (uint32_t i = threadIdx.x - 32; i < GROUP * PAGE / 4; i += blockDim.x - 32) {
		uint32_t page = group * GROUP + i / (PAGE / 4);
		uint64_t at = (uint64_t)job.page_table[page] * (PAGE / 4) + i % (PAGE / 4);

		wrong += job.words[at] != page;
	}
	return wrong;
}

/*
 * Rounds of AHEAD groups: the I/O warp submits them all and raises the flag of
 * each when it has arrived. A barrier ends the round; its flags and batches can
 * then be reused.
 */
__global__ void __launch_bounds__(THREADS) gather(const __grid_constant__ job job)
{
	__shared__ shared shared;
	const nvmepeer_queue *queue = &job.queues[blockIdx.x % QUEUES];
	uint32_t wrong = 0, each = PAGES / GROUP / gridDim.x, first = blockIdx.x * each;

	if (threadIdx.x < AHEAD)
		shared.batches[threadIdx.x] = { &shared.tokens[threadIdx.x], 1, 0, 0 };
	for (uint32_t round = 0; round < each; round += AHEAD) {
		if (threadIdx.x < AHEAD)
			nvmepeer_flag_clear(&shared.flags[threadIdx.x]);
		__syncthreads();
		if (threadIdx.x < 32) {
			nvmepeer_delivery deliveries[AHEAD];

			for (uint32_t i = 0; i < AHEAD; i++) {
				int status = send_group(job, queue, &shared, first + round + i, i);

				deliveries[i] = { &shared.batches[i], &shared.flags[i] };
				/* The batch's only command was not submitted. */
				if (status && threadIdx.x == 0)
					nvmepeer_flag_raise(&shared.flags[i], status);
			}
			nvmepeer_warp_deliver(queue, nvmepeer_group_full(), deliveries, AHEAD,
					      job.timeout_ns);
		} else {
			for (uint32_t i = 0; i < AHEAD; i++) {
				if (nvmepeer_flag_wait(&shared.flags[i], job.timeout_ns))
					wrong++;
				else
					wrong += use_group(job, first + round + i);
			}
		}
		__syncthreads();
	}
	if (wrong)
		atomicAdd(job.wrong, (unsigned long long)wrong);
}

static void check(cudaError_t error)
{
	if (error == cudaSuccess)
		return;
	fprintf(stderr, "%s\n", cudaGetErrorString(error));
	exit(1);
}

/* Page @i of the disk is filled with words that contain @i. */
static bool write_pages(nvmepeer_ns *ns)
{
	uint32_t block_size = nvmepeer_ns_info(ns)->block_size;
	std::vector<uint32_t> words(PAGE / 4);

	for (uint32_t page = 0; page < PAGES; page++) {
		for (uint32_t &word : words)
			word = page;
		if (nvmepeer_ns_write(ns, (uint64_t)page * PAGE / block_size, PAGE / block_size,
				      words.data()))
			return false;
	}
	return nvmepeer_ns_flush(ns) == 0;
}

static int run(const nvmepeer_cuda_queues *queues, const nvmepeer_cuda_buffer *cache, void *memory)
{
	std::vector<uint32_t> order(PAGES);
	unsigned long long *wrong, result;
	uint32_t *page_table;
	cudaEvent_t start, end;
	float ms;

	for (uint32_t i = 0; i < PAGES; i++)
		order[i] = i;
	for (uint32_t i = PAGES - 1; i; i--)
		std::swap(order[i], order[rand() % (i + 1)]);
	check(cudaMalloc(&page_table, PAGES * sizeof(uint32_t)));
	check(cudaMalloc(&wrong, sizeof(*wrong)));
	check(cudaMemset(wrong, 0, sizeof(*wrong)));
	check(cudaMemcpy(page_table, order.data(), PAGES * sizeof(uint32_t), cudaMemcpyHostToDevice));
	job job = { nvmepeer_cuda_queues_device(queues), *nvmepeer_cuda_buffer_host(cache),
		    (const uint32_t *)memory, page_table, wrong, 10000000000ull };
	check(cudaEventCreate(&start));
	check(cudaEventCreate(&end));
	check(cudaEventRecord(start));
	gather<<<BLOCKS, THREADS>>>(job);
	check(cudaGetLastError());
	check(cudaEventRecord(end));
	check(cudaDeviceSynchronize());
	check(cudaEventElapsedTime(&ms, start, end));
	check(cudaMemcpy(&result, wrong, sizeof(result), cudaMemcpyDeviceToHost));
	printf("%d pages of %d bytes in %.2f ms, %.2f GB/s, %llu words wrong\n", PAGES, PAGE, ms,
	       (double)PAGES * PAGE / ms / 1e6, result);
	return result != 0;
}

static void explain(void)
{
	nvmepeer_explanation why;

	nvmepeer_explain(&why, sizeof(why));
	fprintf(stderr, "%s: %s. %s. %s.\n", why.call, why.what, why.limit, why.help);
}

int main(int argc, char **argv)
{
	nvmepeer_cuda_queues *queues;
	nvmepeer_cuda_buffer *cache;
	nvmepeer_cuda *cuda;
	nvmepeer *ctrl;
	nvmepeer_ns *ns;
	void *memory;
	int result;

	check(cudaMalloc(&memory, (size_t)PAGES * PAGE));
	if (nvmepeer_open(argc > 2 ? argv[1] : "nvmep0", &ctrl) ||
	    nvmepeer_ns_open(argc > 2 ? argv[2] : "ngp0n1", &ns) || !write_pages(ns) ||
	    nvmepeer_cuda_open(0, &cuda) ||
	    nvmepeer_cuda_queues_open(ctrl, nvmepeer_ns_info(ns), cuda, 1024, QUEUES, &queues) ||
	    nvmepeer_cuda_buffer_open(ctrl, cuda, memory, (size_t)PAGES * PAGE, &cache)) {
		explain();
		return 1;
	}
	result = run(queues, cache, memory);
	/* The queue pairs first: an active one could access the memory. */
	if (nvmepeer_cuda_queues_close(queues) || nvmepeer_cuda_buffer_close(cache)) {
		explain();
		return 1;
	}
	nvmepeer_cuda_close(cuda);
	nvmepeer_ns_close(ns);
	nvmepeer_close(ctrl);
	return result;
}
