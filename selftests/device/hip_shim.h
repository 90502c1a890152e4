/* SPDX-License-Identifier: GPL-2.0-only */
/* hip_shim.h: the attributes of HIP where its headers are not installed. */
#ifndef SELFTESTS_DEVICE_HIP_SHIM_H
#define SELFTESTS_DEVICE_HIP_SHIM_H

#define __device__ __attribute__((device))
#define __host__ __attribute__((host))
#define __global__ __attribute__((global))

#endif /* SELFTESTS_DEVICE_HIP_SHIM_H */
