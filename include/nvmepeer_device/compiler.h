/* SPDX-License-Identifier: MIT OR GPL-2.0 */
/*
 * nvmepeer_device/compiler.h: requirements on the compiler: the standard types,
 * which NVRTC does not provide, and for CUDA the first toolkit and architecture
 * with the instructions of platform_cuda.h.
 */
#ifndef NVMEPEER_DEVICE_COMPILER_H
#define NVMEPEER_DEVICE_COMPILER_H

#if defined(__CUDACC_RTC__)
/*
 * The same types as libcu++ declares for NVRTC, so that both may be included.
 */
typedef signed char int8_t;
typedef unsigned char uint8_t;
typedef short int16_t;
typedef unsigned short uint16_t;
typedef int int32_t;
typedef unsigned int uint32_t;
typedef long long int64_t;
typedef unsigned long long uint64_t;
typedef unsigned long uintptr_t;
#ifndef NULL
#define NULL 0
#endif
#elif defined(__cplusplus)
#include <cstddef>
#include <cstdint>
#else
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#endif

/*
 * 128-bit accesses need PTX ISA 8.3, acquire-only fences PTX ISA 8.6.  CUDA
 * 12.8 is the first toolkit with both.
 */
#if defined(__CUDACC_VER_MAJOR__) && \
	(__CUDACC_VER_MAJOR__ < 12 || (__CUDACC_VER_MAJOR__ == 12 && __CUDACC_VER_MINOR__ < 8))
#error "nvmepeer_device.h needs CUDA 12.8 or newer"
#endif
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ < 700
#error "nvmepeer_device.h needs a GPU of compute capability 7.0 or newer: -arch=sm_70"
#endif

#endif /* NVMEPEER_DEVICE_COMPILER_H */
