/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * on_cpu.h: as much of the CUDA runtime as examples/read_file.cu and worker.cu use, in C++
 * for the CPU: their kernels run one thread after the other, and device memory is that of the software
 * libcuda (NVMEPEER_LIBCUDA), which can become a dma-buf.  Launches are written as calls
 * of on_cpu(): examples/Makefile has them so.
 */
#ifndef CUDA_ON_CPU_H
#define CUDA_ON_CPU_H

#include <dlfcn.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#define __global__ static
#define __host__
#define __device__

struct uint3 {
	unsigned int x, y, z;
};

static uint3 gridDim, blockDim, blockIdx, threadIdx;

typedef int cudaError_t;

enum { cudaSuccess = 0, cudaErrorMemoryAllocation = 2 };

static inline const char *cudaGetErrorString(cudaError_t error)
{
	return error == cudaErrorMemoryAllocation ? "out of memory" : "an error";
}

static inline void *on_cpu_driver(const char *call)
{
	static void *library = dlopen(getenv("NVMEPEER_LIBCUDA"), RTLD_NOW);

	return library ? dlsym(library, call) : NULL;
}

static inline cudaError_t cudaMalloc(void **memory, size_t bytes)
{
	int (*alloc)(uint64_t *, size_t) =
		reinterpret_cast<int (*)(uint64_t *, size_t)>(on_cpu_driver("cuMemAlloc_v2"));
	uint64_t address = 0;

	if (!alloc || alloc(&address, bytes))
		return cudaErrorMemoryAllocation;
	*memory = reinterpret_cast<void *>(address);
	return cudaSuccess;
}

template <typename T> static inline cudaError_t cudaMallocManaged(T **memory, size_t bytes)
{
	*memory = static_cast<T *>(calloc(1, bytes));
	return *memory ? cudaSuccess : cudaErrorMemoryAllocation;
}

/* The process is about to end. */
static inline cudaError_t cudaFree(void *)
{
	return cudaSuccess;
}

static inline cudaError_t cudaMemset(void *memory, int value, size_t bytes)
{
	memset(memory, value, bytes);
	return cudaSuccess;
}

enum cudaMemcpyKind { cudaMemcpyHostToDevice = 1, cudaMemcpyDeviceToHost = 2 };

static inline cudaError_t cudaMemcpy(void *to, const void *from, size_t bytes, cudaMemcpyKind)
{
	memcpy(to, from, bytes);
	return cudaSuccess;
}

static inline cudaError_t cudaDeviceSynchronize(void)
{
	return cudaSuccess;
}

static inline cudaError_t cudaGetLastError(void)
{
	return cudaSuccess;
}

static inline void atomicAdd(unsigned long long *sum, unsigned long long value)
{
	*sum += value;
}

template <typename... Parameters, typename... Arguments>
static void on_cpu(void (*kernel)(Parameters...), unsigned int blocks, unsigned int threads,
		   Arguments... arguments)
{
	gridDim.x = blocks;
	blockDim.x = threads;
	for (blockIdx.x = 0; blockIdx.x < blocks; blockIdx.x++)
		for (threadIdx.x = 0; threadIdx.x < threads; threadIdx.x++)
			kernel(arguments...);
}

#endif /* CUDA_ON_CPU_H */
