// SPDX-License-Identifier: MIT OR GPL-2.0
// minimal.cu: threads of a GPU read 64 blocks of an NVMe namespace into memory from
// cudaMalloc(), without the CPU.
// nvcc -arch=sm_90 $(pkg-config --cflags --libs libnvmepeer_cuda) minimal.cu
#include <cstdio>
#include <nvmepeer_cuda.h>

__global__ void read_blocks(nvmepeer_queue queue, nvmepeer_buffer data, int *status)
{
	status[threadIdx.x] = nvmepeer_read(&queue, &data, threadIdx.x * 4096, threadIdx.x, 1);
}

static int fail(void)
{
	nvmepeer_explanation why;

	nvmepeer_explain(&why, sizeof(why));
	fprintf(stderr, "%s: %s. %s. %s.\n", why.call, why.what, why.limit, why.help);
	return 1;
}

int main(void)
{
	nvmepeer *ctrl;
	nvmepeer_ns *ns;
	nvmepeer_cuda *cuda;
	nvmepeer_cuda_queues *queues;
	nvmepeer_cuda_buffer *data;
	char *memory;
	int *status, bad = 0;

	if (cudaMalloc(&memory, 2 << 20) || cudaMallocManaged(&status, 64 * sizeof(int)))
		return fprintf(stderr, "cannot allocate GPU memory\n"), 1;
	if (nvmepeer_open("nvmep0", &ctrl) || nvmepeer_ns_open("ngp0n1", &ns) ||
	    nvmepeer_cuda_open(0, &cuda) ||
	    nvmepeer_cuda_queues_open(ctrl, nvmepeer_ns_info(ns), cuda, 256, 1, &queues) ||
	    nvmepeer_cuda_buffer_open(ctrl, cuda, memory, 2 << 20, &data))
		return fail();
	read_blocks<<<1, 64>>>(*nvmepeer_cuda_queues_host(queues), *nvmepeer_cuda_buffer_host(data),
			       status);
	if (cudaGetLastError() || cudaDeviceSynchronize())
		return fprintf(stderr, "the kernel failed\n"), 1;
	for (int i = 0; i < 64; i++)
		bad += status[i] != 0;
	printf("%d of 64 reads succeeded\n", 64 - bad);
	// The queue pairs first: while one is active, the controller keeps its access to the memory.
	if (nvmepeer_cuda_queues_close(queues) || nvmepeer_cuda_buffer_close(data))
		return fail();
	return bad != 0;
}
