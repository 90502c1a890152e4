// SPDX-License-Identifier: MIT OR GPL-2.0
// worker.cu: threads of a GPU read blocks through a queue pair that broker.c has created.  The
// process opens no node of the controller and needs no capability for it: memory of the GPU goes
// to the broker as a dma-buf, and the parts of the queue pair come back as descriptors.  Writes
// the first pages of the namespace to standard output.
// nvcc -arch=sm_90 $(pkg-config --cflags --libs libnvmepeer_cuda) worker.cu -o worker
// ./worker /run/nvmepeer-broker
#include <cstdio>
#include <sys/un.h>
#include <unistd.h>

#include "broker.h"

// Offsets in the memory of the GPU.
enum { ENTRIES = 64, SQ = 0, CQ = 64 << 10, TABLE = 128 << 10, DATA = 1 << 20, BYTES = 2 << 20 };

__global__ void read_pages(nvmepeer_queue queue, nvmepeer_buffer data, int *statuses)
{
	uint32_t page = threadIdx.x, blocks = 1u << (queue.page_shift - queue.lba_shift);

	statuses[page] = nvmepeer_read(&queue, &data, (uint64_t)page << queue.page_shift,
				       (uint64_t)page * blocks, blocks);
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
	request.pages = BROKER_PAGES;
	request.sq = SQ;
	request.cq = CQ;
	request.data = DATA;
	memset(&address, 0, sizeof(address));
	address.sun_family = AF_UNIX;
	snprintf(address.sun_path, sizeof(address.sun_path), "%s", path);
	// The broker keeps the memory for the controller until this process closes the socket.
	if (connect(broker, (sockaddr *)&address, sizeof(address)) ||
	    !broker_send(broker, &request, sizeof(request), &memory, 1) ||
	    !broker_receive(broker, offer, sizeof(*offer), fds, &count) ||
	    offer->error || count != offer->count)
		return false;
	for (uint32_t i = 0; i < count; i++)
		offer->files[i].fd = fds[i];
	return true;
}

// The descriptors of the broker, and the rings, which are in memory of this process.
static int attach(nvmepeer_cuda *cuda, const broker_offer *offer, char *memory,
		  nvmepeer_cuda_queues **queues)
{
	nvmepeer_cuda_file files[BROKER_PARTS + 2];

	memcpy(files, offer->files, sizeof(offer->files));
	files[offer->count] = { NVMEPEER_CUDA_GPU_MEMORY, NVMEPEER_CUDA_SQ,
				(uintptr_t)memory + SQ, 64 * ENTRIES };
	files[offer->count + 1] = { NVMEPEER_CUDA_GPU_MEMORY, NVMEPEER_CUDA_CQ,
				    (uintptr_t)memory + CQ, 16 * ENTRIES };
	return nvmepeer_cuda_queues_from_fds(cuda, NVMEPEER_LAYOUT, files, offer->count + 2,
					     &offer->geometry, sizeof(offer->geometry), queues);
}

int main(int argc, char **argv)
{
	static char bytes[BROKER_PAGES << 16];
	nvmepeer_cuda_queues *queues;
	nvmepeer_buffer data;
	nvmepeer_cuda *cuda;
	broker_offer offer;
	char *memory;
	int *statuses, dmabuf, bad = 0;

	if (argc != 2)
		return fprintf(stderr, "usage: %s SOCKET\n", argv[0]), 2;
	if (cudaMalloc((void **)&memory, BYTES) || cudaMemset(memory, 0, BYTES) ||
	    cudaDeviceSynchronize() || cudaMallocManaged(&statuses, BROKER_PAGES * sizeof(int)))
		return fprintf(stderr, "cannot allocate GPU memory\n"), 1;
	if (nvmepeer_cuda_open(0, &cuda) || nvmepeer_cuda_dmabuf(cuda, memory, BYTES, &dmabuf))
		return fail();
	if (!ask(argv[1], dmabuf, &offer))
		return fprintf(stderr, "the broker gives no queue pair\n"), 1;
	close(dmabuf);
	if (attach(cuda, &offer, memory, &queues))
		return fail();
	for (uint32_t i = 0; i < offer.count; i++)
		close(offer.files[i].fd);
	if (offer.geometry.page_shift > 16)
		return fprintf(stderr, "controller pages of more than 64 KiB\n"), 1;
	data.length = (uint64_t)BROKER_PAGES << offer.geometry.page_shift;
	data.dma = 0;
	data.pages = (uintptr_t)memory + TABLE;
	if (cudaMemcpy(memory + TABLE, offer.table, sizeof(offer.table), cudaMemcpyHostToDevice))
		return fprintf(stderr, "cannot copy to the GPU\n"), 1;
	read_pages<<<1, BROKER_PAGES>>>(*nvmepeer_cuda_queues_host(queues), data, statuses);
	if (cudaGetLastError() || cudaDeviceSynchronize() ||
	    cudaMemcpy(bytes, memory + DATA, data.length, cudaMemcpyDeviceToHost))
		return fprintf(stderr, "the kernel failed\n"), 1;
	for (int i = 0; i < BROKER_PAGES; i++)
		bad += statuses[i] != 0;
	fprintf(stderr, "%d of %d reads succeeded\n", BROKER_PAGES - bad, BROKER_PAGES);
	fwrite(bytes, 1, data.length, stdout);
	nvmepeer_cuda_queues_close(queues);
	cudaFree(memory);
	nvmepeer_cuda_close(cuda);
	return bad != 0;
}
