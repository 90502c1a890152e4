// SPDX-License-Identifier: MIT OR GPL-2.0
// worker.cu: threads of a GPU read a file through a queue pair that broker.c has created.  The
// process opens neither the controller nor the file: memory of the GPU goes to the broker as a
// dma-buf, and the parts of the queue pair come back as descriptors.  Writes the beginning of the
// file to standard output.
// nvcc -arch=sm_90 $(pkg-config --cflags --libs libnvmepeer_cuda) worker.cu -o worker
// ./worker /run/nvmepeer-broker
#include <cstdio>
#include <sys/un.h>
#include <unistd.h>

#include "broker.h"

// A command reads PART bytes, a multiple of the block, to the same offset in the memory of the GPU.
enum { ENTRIES = 64, PART = 4096, PARTS = 16, BYTES = 2 << 20 };

__global__ void read_parts(nvmepeer_queue queue, nvmepeer_buffer data, int *statuses)
{
	uint32_t part = threadIdx.x, blocks = PART >> queue.lba_shift;

	statuses[part] = nvmepeer_read(&queue, &data, (uint64_t)part * PART, (uint64_t)part * blocks, blocks);
}

static int fail(void)
{
	nvmepeer_explanation why;

	nvmepeer_explain(&why, sizeof(why));
	fprintf(stderr, "%s: %s. %s. %s.\n", why.call, why.what, why.limit, why.help);
	return 1;
}

// Exchanges the memory for the parts of a queue pair.
static bool ask(const char *path, int memory, broker_offer *offer)
{
	int broker = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0), fds[BROKER_PARTS];
	broker_request request;
	sockaddr_un address;
	uint32_t count;

	memset(&request, 0, sizeof(request));
	request.entries = ENTRIES;
	memset(&address, 0, sizeof(address));
	address.sun_family = AF_UNIX;
	snprintf(address.sun_path, sizeof(address.sun_path), "%s", path);
	if (connect(broker, (sockaddr *)&address, sizeof(address)) ||
	    !broker_send(broker, &request, sizeof(request), &memory, 1) ||
	    !broker_receive(broker, offer, sizeof(*offer), fds, &count) ||
	    offer->error || count != offer->count)
		return false;
	for (uint32_t i = 0; i < count; i++)
		offer->files[i].fd = fds[i];
	return true;
}

int main(int argc, char **argv)
{
	static char bytes[PARTS * PART];
	nvmepeer_cuda_queues *queues;
	nvmepeer_buffer data;
	nvmepeer_cuda *cuda;
	broker_offer offer;
	char *memory;
	int *statuses, dmabuf, parts, bad = 0;

	if (argc != 2)
		return fprintf(stderr, "usage: %s SOCKET\n", argv[0]), 2;
	if (cudaMalloc((void **)&memory, BYTES) || cudaMemset(memory, 0, BYTES) ||
	    cudaDeviceSynchronize() || cudaMallocManaged(&statuses, PARTS * sizeof(int)))
		return fprintf(stderr, "cannot allocate GPU memory\n"), 1;
	if (nvmepeer_cuda_open(0, &cuda) || nvmepeer_cuda_dmabuf(cuda, memory, BYTES, &dmabuf))
		return fail();
	if (!ask(argv[1], dmabuf, &offer))
		return fprintf(stderr, "the broker gives no queue pair\n"), 1;
	close(dmabuf);
	if (nvmepeer_cuda_queues_from_fds(cuda, NVMEPEER_LAYOUT, offer.files, offer.count, &offer.geometry,
					  sizeof(offer.geometry), &queues))
		return fail();
	for (uint32_t i = 0; i < offer.count; i++)
		close(offer.files[i].fd);
	data.length = BYTES;
	data.dma = offer.memory;
	data.pages = 0;
	parts = (int)((offer.blocks << offer.geometry.lba_shift) / PART);
	parts = parts < PARTS ? parts : PARTS;
	read_parts<<<1, parts>>>(*nvmepeer_cuda_queues_host(queues), data, statuses);
	if (cudaGetLastError() || cudaDeviceSynchronize() ||
	    cudaMemcpy(bytes, memory, sizeof(bytes), cudaMemcpyDeviceToHost))
		return fprintf(stderr, "the kernel failed\n"), 1;
	for (int i = 0; i < parts; i++)
		bad += statuses[i] != 0;
	fprintf(stderr, "%d of %d reads succeeded\n", parts - bad, parts);
	fwrite(bytes, PART, (size_t)parts, stdout);
	nvmepeer_cuda_queues_close(queues);
	cudaFree(memory);
	nvmepeer_cuda_close(cuda);
	return bad != 0;
}
