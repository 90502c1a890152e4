/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * hip/hip_runtime.h: of HIP's header what the examples use, for machines that have not the
 * toolkit but clang. The real one is looked for first.
 */
#ifndef SELFTESTS_TOOLKITS_HIP_RUNTIME_H
#define SELFTESTS_TOOLKITS_HIP_RUNTIME_H

#include <stddef.h>

#define __device__ __attribute__((device))
#define __host__ __attribute__((host))
#define __global__ __attribute__((global))

struct dim3 {
	unsigned int x, y, z;

	__host__ __device__ dim3(unsigned int x = 1, unsigned int y = 1, unsigned int z = 1)
		: x(x), y(y), z(z) {}
};

typedef enum { hipSuccess = 0 } hipError_t;
typedef struct ihipStream_t *hipStream_t;
typedef enum { hipMemcpyDeviceToHost = 2 } hipMemcpyKind;
enum { hipDeviceMallocFinegrained = 1 };
enum { hipHostRegisterMapped = 2, hipHostRegisterIoMemory = 4 };

extern const __device__ __attribute__((weak)) dim3 threadIdx;

extern "C" {
hipError_t hipExtMallocWithFlags(void **ptr, size_t sizeBytes, unsigned int flags);
hipError_t hipMemset(void *dst, int value, size_t sizeBytes);
hipError_t hipMemcpy(void *dst, const void *src, size_t sizeBytes, hipMemcpyKind kind);
hipError_t hipDeviceSynchronize(void);
hipError_t hipGetLastError(void);
hipError_t hipHostRegister(void *hostPtr, size_t sizeBytes, unsigned int flags);
hipError_t hipHostGetDevicePointer(void **devPtr, void *hstPtr, unsigned int flags);
/* What <<<>>> becomes. */
hipError_t __hipPushCallConfiguration(dim3 grid, dim3 block, size_t shared = 0, void *stream = 0);
hipError_t __hipPopCallConfiguration(dim3 *gridDim, dim3 *blockDim, size_t *shared,
				     hipStream_t *stream);
hipError_t hipLaunchKernel(const void *function, dim3 numBlocks, dim3 dimBlocks, void **args,
			   size_t sharedMem, hipStream_t stream);
}

#endif /* SELFTESTS_TOOLKITS_HIP_RUNTIME_H */
