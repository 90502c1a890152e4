// SPDX-License-Identifier: GPL-2.0-only
/*
 * read_list.cu: executes examples/read_list.cu with a disk that is a kernel (disk.cuh), and compares
 * every byte. Usage: disk.sh read_list.cu
 */
#include <cstdint>
#include <cstdlib>

#include <cuda_runtime.h>
#include <nvmepeer_cuda.h>

#include "disk.cuh"
#define _Alignas alignas
#include "../lib/ktap.h"
extern "C" {
#include "../../lib/tests/fake.h"
void fake_reset(void);
}

enum { DISK_BYTES = 1 << 22 };

static uint8_t *medium;
static uint32_t *stop;
static void *data_memory;
static cudaStream_t serving;
static bool good;

__global__ void __launch_bounds__(1024, 1) serve(const __grid_constant__ disk_setup setup)
{
	disk_serve(setup);
}

static void *cleared(size_t bytes)
{
	void *memory = nullptr;

	if (cudaMalloc(&memory, bytes) || cudaMemset(memory, 0, bytes))
		exit(2);
	return memory;
}

/* The disk begins when the last of the library's objects has been opened. */
static int lists_open(nvmepeer_cuda_queues *queues, nvmepeer_cuda_buffer *const *buffers, uint32_t count,
		      nvmepeer_cuda_lists **lists)
{
	int error = nvmepeer_cuda_lists_open(queues, buffers, count, lists);
	disk_setup setup = {};

	setup.queues = nvmepeer_cuda_queues_device(queues);
	setup.medium = (uintptr_t)medium;
	setup.blocks = DISK_BYTES >> 9;
	setup.stop = stop = (uint32_t *)cleared(4);
	setup.clocks = (unsigned long long *)cleared(8);
	setup.places = (uint2 *)cleared(sizeof(uint2));
	setup.per_block = setup.each = 1;
	if (error || cudaStreamCreateWithFlags(&serving, cudaStreamNonBlocking) || cudaDeviceSynchronize())
		return error ? error : -1;
	serve<<<1, 1024, 0, serving>>>(setup);
	return cudaGetLastError() ? -1 : 0;
}

static int buffer_open(nvmepeer *ctrl, nvmepeer_cuda *cuda, void *memory, size_t bytes, nvmepeer_cuda_buffer **buffer)
{
	data_memory = memory;
	return nvmepeer_cuda_buffer_open(ctrl, cuda, memory, bytes, buffer);
}

static bool pages_are_read(void);

static int queues_close(nvmepeer_cuda_queues *queues)
{
	static const uint32_t one = 1;
	cudaStream_t other;

	if (cudaStreamCreateWithFlags(&other, cudaStreamNonBlocking) ||
	    cudaMemcpyAsync(stop, &one, 4, cudaMemcpyHostToDevice, other) || cudaStreamSynchronize(serving))
		return -1;
	good = pages_are_read();
	return nvmepeer_cuda_queues_close(queues);
}

#define nvmepeer_cuda_lists_open lists_open
#define nvmepeer_cuda_buffer_open buffer_open
#define nvmepeer_cuda_queues_close queues_close
#define main example_main
#include "../../examples/read_list.cu"
#undef main

static bool pages_are_read(void)
{
	static const uint32_t expected[PAGES] = { 7, 3, 12 };
	static uint8_t found[PAGES * BYTES];

	if (cudaMemcpy(found, data_memory, sizeof(found), cudaMemcpyDeviceToHost))
		return false;
	for (uint32_t i = 0; i < PAGES; i++)
		if (memcmp(found + i * BYTES, medium + expected[i] * (size_t)BYTES, BYTES))
			return false;
	return true;
}

int main(void)
{
	char name[] = "read_list", *arguments[] = { name, nullptr };
	uint64_t blocks = DISK_BYTES >> 9;

	ktap_start();
	if (cudaHostAlloc(&medium, DISK_BYTES, cudaHostAllocMapped))
		return 2;
	for (uint32_t i = 0; i < DISK_BYTES; i++)
		medium[i] = (uint8_t)(i * 2654435761u >> 24);
	fake_reset();
	for (uint32_t i = 0; i < 8; i++)
		fake.identify[i] = (uint8_t)(blocks >> 8 * i);
	fake.identify[130] = 9;
	fake.qp_info.sq_entries = fake.qp_info.cq_entries = 256;
	fake.qp_info.sq_pci_address.valid = fake.qp_info.cq_pci_address.valid = 1;
	ktap_check(!example_main(1, arguments), "examples/read_list.cu ends well");
	ktap_check(good, "every byte of its pages");
	return ktap_end();
}
