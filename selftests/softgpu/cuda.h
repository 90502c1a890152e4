/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The few calls of CUDA's driver that softgpu needs, loaded at run time.  From any
 * thread; 0 or a negative errno, and what CUDA said on stderr.
 */
#ifndef SOFTGPU_CUDA_H
#define SOFTGPU_CUDA_H

#include <stddef.h>
#include <stdint.h>

struct cuda;
struct kernel_job;

/**
 * cuda_open() - load libcuda and the kernel, on the first GPU
 * @kernel: file that CUDA's compiler made of kernel.cu
 * @streams: jobs at once
 *
 * NVMEPEER_LIBCUDA in the environment names another libcuda.  NULL: it was said why.
 */
struct cuda *cuda_open(const char *kernel, unsigned int streams);

/* The GPU loads and stores this memory from now on, at the addresses it has here. */
int cuda_register(struct cuda *cuda, void *memory, size_t bytes);

/* Zeroed memory of the GPU. */
int cuda_alloc(struct cuda *cuda, size_t bytes, uint64_t *address);

/* Copy, also while a kernel runs; @stream: whose job it is about. */
int cuda_upload(struct cuda *cuda, unsigned int stream, uint64_t to, const void *from,
		size_t bytes);
int cuda_download(struct cuda *cuda, unsigned int stream, void *to, uint64_t from,
		  size_t bytes);

int cuda_launch(struct cuda *cuda, unsigned int stream, const struct kernel_job *job);

/* 1 while the kernel of @stream runs, 0 then. */
int cuda_running(struct cuda *cuda, unsigned int stream);

#endif /* SOFTGPU_CUDA_H */
