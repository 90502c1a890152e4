/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The calls of CUDA's driver that softgpu needs, loaded at run time. Callable from any thread.
 * They return 0 or a negative errno and print CUDA's message to stderr.
 */
#ifndef SOFTGPU_CUDA_H
#define SOFTGPU_CUDA_H

#include <stddef.h>
#include <stdint.h>

struct cuda;
struct kernel_job;

/**
 * cuda_open() - load libcuda and the kernel, on the first GPU
 * @kernel: file that CUDA's compiler has made from kernel.cu
 * @streams: concurrent jobs
 *
 * NVMEPEER_LIBCUDA in the environment names another libcuda. Returns NULL after a message.
 */
struct cuda *cuda_open(const char *kernel, unsigned int streams);

/* Make this memory accessible to the GPU at the same addresses. */
int cuda_register(struct cuda *cuda, void *memory, size_t bytes);

/* Allocate zeroed memory of the GPU. */
int cuda_alloc(struct cuda *cuda, size_t bytes, uint64_t *address);

/* Copy, also while a kernel runs; @stream is that of the job. */
int cuda_upload(struct cuda *cuda, unsigned int stream, uint64_t to, const void *from,
		size_t bytes);
int cuda_download(struct cuda *cuda, unsigned int stream, void *to, uint64_t from,
		  size_t bytes);

int cuda_launch(struct cuda *cuda, unsigned int stream, const struct kernel_job *job);
int cuda_launch_list(struct cuda *cuda, unsigned int stream, const struct kernel_job *job);

/* The kernel that moves data ends when it is told so. */
int cuda_launch_mover(struct cuda *cuda, const struct kernel_job *job);
int cuda_wait_for_mover(struct cuda *cuda);

/* Returns 1 while the kernel of @stream runs, 0 afterwards. */
int cuda_running(struct cuda *cuda, unsigned int stream);

#endif /* SOFTGPU_CUDA_H */
