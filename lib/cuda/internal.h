/* SPDX-License-Identifier: MIT OR GPL-2.0 */
/* internal.h: what the rooms of the CUDA glue share. */
#ifndef NVMEPEER_CUDA_INTERNAL_H
#define NVMEPEER_CUDA_INTERNAL_H

#include "nvmepeer_cuda.h"

/* Keeps the message for nvmepeer_cuda_why() and returns @error. */
int cuda_fail(int error, const char *format, ...) __attribute__((format(printf, 2, 3)));

#endif /* NVMEPEER_CUDA_INTERNAL_H */
