// SPDX-License-Identifier: MIT OR GPL-2.0
/* memory.c: allocate GPU memory and export it as a dma-buf. */
#include <errno.h>
#include <unistd.h>

#include "internal.h"

int nvmepeer_cuda_alloc(struct nvmepeer_cuda *cuda, size_t bytes, void **pointer)
{
	uint64_t address;
	int error;

	if (!bytes)
		return cuda_fail("nvmepeer_cuda_alloc", -EINVAL, "invalid length", "pass a length above 0", "0 bytes");
	error = cuda_alloc(cuda, cuda_round_up(bytes, CUDA_ALLOCATION_UNIT), &address);
	if (!error)
		*pointer = (void *)(uintptr_t)address;
	return error;
}

void nvmepeer_cuda_free(struct nvmepeer_cuda *cuda, void *pointer)
{
	if (pointer)
		cuda_free(cuda, (uintptr_t)pointer);
}

int nvmepeer_cuda_dmabuf(struct nvmepeer_cuda *cuda, void *pointer, size_t bytes, int *fd)
{
	size_t page = (size_t)sysconf(_SC_PAGESIZE);
	uint64_t address = (uintptr_t)pointer;

	if (!bytes || address % page || bytes % page)
		return cuda_fail("nvmepeer_cuda_dmabuf", -EINVAL, "the range has partial pages",
				 "pass an address and a length that are multiples of the host's page size",
				 "%zu bytes at %#llx; the page size is %zu", bytes,
				 (unsigned long long)address, page);
	return cuda_export(cuda, address, bytes, fd);
}
