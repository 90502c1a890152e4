/* SPDX-License-Identifier: GPL-2.0-only */
/* check.cuh: end a program when a call of the CUDA runtime fails. */
#ifndef SELFTESTS_CUDA_CHECK_CUH
#define SELFTESTS_CUDA_CHECK_CUH

#include <cstdio>
#include <cstdlib>

#include <cuda_runtime.h>

#define CHECK(call)								\
	do {									\
		cudaError_t error_ = (call);					\
		if (error_ != cudaSuccess) {					\
			fprintf(stderr, "%s:%d: %s: %s\n", __FILE__, __LINE__,	\
				#call, cudaGetErrorString(error_));		\
			exit(2);						\
		}								\
	} while (0)

#endif /* SELFTESTS_CUDA_CHECK_CUH */
