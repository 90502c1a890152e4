// SPDX-License-Identifier: MIT OR GPL-2.0
// minimal.cu: a GPU reads 64 blocks of an NVMe namespace by itself.
// nvcc -arch=sm_90 -Iinclude -Iinclude/uapi -Ilib/cuda examples/minimal.cu -lnvmepeer_cuda -lnvmepeer -luring -ldl
#include <cstdio>
#include <nvmepeer_cuda.h>

__global__ void read_blocks(nvmepeer_queue queue, nvmepeer_buffer data, int *status)
{
	status[threadIdx.x] = nvmepeer_read(&queue, &data, threadIdx.x * 4096, threadIdx.x, 1);
}

int main(void)
{
	nvmepeer *ctrl;
	nvmepeer_ns *ns;
	nvmepeer_cuda *cuda;
	nvmepeer_cuda_peer peer;
	int *status, bad = 0;

	if (nvmepeer_open("nvmep0", &ctrl) || nvmepeer_ns_open("ngp0n1", &ns)) {
		nvmepeer_explanation why;
		nvmepeer_explain(&why);
		return fprintf(stderr, "%s. %s\n", why.what, why.help), 1;
	}
	if (nvmepeer_cuda_open(0, &cuda) || nvmepeer_cuda_peer_open(ctrl,
	    nvmepeer_ns_info(ns), cuda, 256, 64 * 4096, &peer))
		return fprintf(stderr, "%s\n", nvmepeer_cuda_why()), 1;
	cudaMallocManaged(&status, 64 * sizeof(int));
	read_blocks<<<1, 64>>>(peer.queue, peer.data, status);
	cudaDeviceSynchronize();
	for (int i = 0; i < 64; i++)
		bad += status[i] != 0;
	printf("%d of 64 reads went well\n", 64 - bad);
	nvmepeer_cuda_peer_close(&peer);
	return bad != 0;
}
