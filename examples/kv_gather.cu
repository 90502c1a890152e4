// SPDX-License-Identifier: MIT OR GPL-2.0
/*
 * kv_gather.cu: blocks of a key-value cache from an NVMe namespace into the
 * order that attention wants.
 *
 * A sequence's keys and values lie on the disk as entries of ENTRY bytes, in
 * the order they were written, not the order they are used.  A table tells for
 * each place in the attention order which entry belongs there.  Each block of
 * threads takes a part of the order and gathers it: entries that share a 4 KiB
 * unit cost one read.
 *
 *	kv_gather [CONTROLLER NAMESPACE]	default: nvmep0 ngp0n1
 *
 * The first run of entries on the disk is overwritten.  Prints entries per
 * second and how many were wrong.
 */
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <vector>

#include <nvmepeer_cuda.h>

enum {
	ENTRY = 512,			/* bytes of one key or value */
	ENTRIES = 1 << 16,
	BLOCKS = 8,			/* blocks of threads, and of staging */
	THREADS = 256,
	UNIT_SHIFT = 12,
	STAGING = NVMEPEER_GATHER_SLOTS << UNIT_SHIFT,
};

/* What a kernel needs; by value. */
struct gather_job {
	nvmepeer_queue queue;
	nvmepeer_buffer data;
	uint64_t data_address;
	const nvmepeer_piece *pieces;
	uint32_t count;
	int *status;
};

__global__ void __launch_bounds__(THREADS) gather(const __grid_constant__ gather_job job)
{
	__shared__ nvmepeer_gather_table table;
	/* Each block stages in its own part of the data memory. */
	nvmepeer_buffer part = job.data;
	uint64_t offset = (uint64_t)blockIdx.x * STAGING;
	uint32_t each = job.count / gridDim.x, first = each * blockIdx.x;

	if (part.pages)
		part.pages += (offset >> job.queue.page_shift) * 8;
	part.dma += part.pages ? 0 : offset;
	part.length = STAGING;
	nvmepeer_staging staging = { &part, job.data_address + offset, UNIT_SHIFT };
	int status = nvmepeer_block_gather(&job.queue, &table, &staging, job.pieces + first, each);

	if (!threadIdx.x)
		job.status[blockIdx.x] = status;
}

static void check(cudaError_t error)
{
	if (error == cudaSuccess)
		return;
	fprintf(stderr, "%s\n", cudaGetErrorString(error));
	exit(1);
}

/* Entry @i is full of words that tell @i. */
static bool write_entries(nvmepeer_ns *ns, uint32_t block_size)
{
	std::vector<uint32_t> words(ENTRY / 4 * 256);
	uint32_t blocks = (uint32_t)(words.size() * 4 / block_size);

	for (uint32_t entry = 0; entry < ENTRIES; entry += 256) {
		for (uint32_t i = 0; i < words.size(); i++)
			words[i] = entry + i / (ENTRY / 4);
		if (nvmepeer_ns_write(ns, (uint64_t)entry * ENTRY / block_size, blocks, words.data()))
			return false;
	}
	return nvmepeer_ns_flush(ns) == 0;
}

/* The attention order: a random permutation of the entries. */
static void make_order(std::vector<uint32_t> &order)
{
	for (uint32_t i = 0; i < order.size(); i++)
		order[i] = i;
	for (uint32_t i = (uint32_t)order.size() - 1; i; i--)
		std::swap(order[i], order[rand() % (i + 1)]);
}

static int run(nvmepeer_cuda_peer &peer, const std::vector<uint32_t> &order)
{
	std::vector<nvmepeer_piece> pieces(order.size());
	std::vector<uint32_t> got(order.size() * ENTRY / 4);
	nvmepeer_piece *device_pieces;
	uint8_t *attention;
	int status[BLOCKS], *device_status, wrong = 0;
	cudaEvent_t start, end;
	float ms;

	check(cudaMalloc(&attention, order.size() * ENTRY));
	check(cudaMalloc(&device_pieces, pieces.size() * sizeof(nvmepeer_piece)));
	check(cudaMalloc(&device_status, sizeof(status)));
	for (size_t i = 0; i < order.size(); i++)
		pieces[i] = { (uint64_t)order[i] * ENTRY, (uint64_t)(uintptr_t)attention + i * ENTRY,
			      ENTRY, 0 };
	check(cudaMemcpy(device_pieces, pieces.data(), pieces.size() * sizeof(nvmepeer_piece),
			 cudaMemcpyHostToDevice));
	gather_job job = { peer.queue, peer.data, peer.data_address, device_pieces,
			   (uint32_t)pieces.size(), device_status };
	check(cudaEventCreate(&start));
	check(cudaEventCreate(&end));
	check(cudaEventRecord(start));
	gather<<<BLOCKS, THREADS>>>(job);
	check(cudaEventRecord(end));
	check(cudaDeviceSynchronize());
	check(cudaEventElapsedTime(&ms, start, end));
	check(cudaMemcpy(status, device_status, sizeof(status), cudaMemcpyDeviceToHost));
	check(cudaMemcpy(got.data(), attention, got.size() * 4, cudaMemcpyDeviceToHost));
	for (size_t i = 0; i < got.size(); i++)
		wrong += got[i] != order[i / (ENTRY / 4)];
	for (int i = 0; i < BLOCKS; i++)
		if (status[i])
			fprintf(stderr, "block %d: status %#x\n", i, status[i]);
	printf("%zu entries in %.2f ms, %.2f million a second, %d words wrong\n", order.size(), ms,
	       order.size() / ms / 1000, wrong);
	return wrong != 0;
}

int main(int argc, char **argv)
{
	std::vector<uint32_t> order(ENTRIES);
	nvmepeer_cuda_peer peer;
	nvmepeer_explanation why;
	nvmepeer *ctrl;
	nvmepeer_ns *ns;
	nvmepeer_cuda *cuda;
	int result;

	if (nvmepeer_open(argc > 2 ? argv[1] : "nvmep0", &ctrl) ||
	    nvmepeer_ns_open(argc > 2 ? argv[2] : "ngp0n1", &ns) ||
	    !write_entries(ns, nvmepeer_ns_info(ns)->block_size)) {
		nvmepeer_explain(&why);
		fprintf(stderr, "%s: %s. %s %s\n", why.call, why.what, why.limit, why.help);
		return 1;
	}
	if (nvmepeer_cuda_open(0, &cuda) ||
	    nvmepeer_cuda_peer_open(ctrl, nvmepeer_ns_info(ns), cuda, 1024,
				    (size_t)BLOCKS * STAGING, &peer)) {
		fprintf(stderr, "%s\n", nvmepeer_cuda_why());
		return 1;
	}
	make_order(order);
	result = run(peer, order);
	nvmepeer_cuda_peer_close(&peer);
	nvmepeer_cuda_close(cuda);
	nvmepeer_ns_close(ns);
	nvmepeer_close(ctrl);
	return result;
}
