// SPDX-License-Identifier: MIT OR GPL-2.0
// read_list.cu: read pages of a file of pages that begins at block 0 of an NVMe namespace into
// memory from cudaMalloc(), by one list on a CUDA stream. The program has no device code.
// nvcc -arch=sm_90 $(pkg-config --cflags --libs libnvmepeer_cuda) read_list.cu
#include <cstdio>
#include <nvmepeer_cuda.h>

enum { PAGES = 3, BYTES = 41984 };	// a multiple of 4; the last block of a page may be padded

// The GPU reads and writes it: pinned host memory.
struct shared_list {
	nvmepeer_list_item items[PAGES];
	nvmepeer_list_done done;
};

static int fail(void)
{
	nvmepeer_explanation why;

	nvmepeer_explain(&why, sizeof(why));
	fprintf(stderr, "%s: %s. %s. %s.\n", why.call, why.what, why.limit, why.help);
	return 1;
}

// Page numbers[i] of the disk into page i of the memory.
static void fill(shared_list *shared, const uint32_t *numbers, uint32_t block_size)
{
	uint32_t blocks = (BYTES + block_size - 1) / block_size;

	for (uint32_t i = 0; i < PAGES; i++) {
		shared->items[i].lba = (uint64_t)numbers[i] * blocks;	// logical blocks
		shared->items[i].offset = (uint64_t)i * BYTES;		// bytes
		shared->items[i].memory = 0;				// number of the buffer
		shared->items[i].bytes = BYTES;
	}
	shared->done.count = 0;
}

int main(int argc, char **argv)
{
	static const uint32_t numbers[PAGES] = { 7, 3, 12 };
	nvmepeer *ctrl;
	nvmepeer_ns *ns;
	nvmepeer_cuda *cuda;
	nvmepeer_cuda_queues *queues;
	nvmepeer_cuda_buffer *data;
	nvmepeer_cuda_lists *lists;
	nvmepeer_cuda_list list = {};
	cudaStream_t stream;
	shared_list *shared;
	void *memory;
	int bad = 0;

	if (cudaMalloc(&memory, 2 << 20) || cudaMallocHost(&shared, sizeof(*shared)) ||
	    cudaStreamCreate(&stream))
		return fprintf(stderr, "cannot allocate memory\n"), 1;
	if (nvmepeer_open(argc > 2 ? argv[1] : "nvmep0", &ctrl) ||
	    nvmepeer_ns_open(argc > 2 ? argv[2] : "ngp0n1", &ns) || nvmepeer_cuda_open(0, &cuda) ||
	    nvmepeer_cuda_queues_open(ctrl, nvmepeer_ns_info(ns), cuda, 256, 1, &queues) ||
	    nvmepeer_cuda_buffer_open(ctrl, cuda, memory, 2 << 20, &data) ||
	    nvmepeer_cuda_lists_open(queues, &data, 1, &lists))
		return fail();
	fill(shared, numbers, nvmepeer_ns_info(ns)->block_size);
	list.size = sizeof(list);
	list.count = PAGES;
	list.items = shared->items;
	list.done = &shared->done;
	if (nvmepeer_cuda_read_list(lists, &list, stream))
		return fail();
	// Kernels that are launched on the stream here see the data.
	if (cudaStreamSynchronize(stream))
		return fprintf(stderr, "the list's kernel failed\n"), 1;
	for (const nvmepeer_list_item &item : shared->items)
		bad += item.status != 0;
	printf("%d of %d pages were read\n", PAGES - bad, PAGES);
	// The queue pairs first: while one is active, the controller keeps its access to the memory.
	if (nvmepeer_cuda_queues_close(queues) || nvmepeer_cuda_lists_close(lists) ||
	    nvmepeer_cuda_buffer_close(data))
		return fail();
	return bad != 0;
}
