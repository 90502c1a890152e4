// SPDX-License-Identifier: GPL-2.0-only
/*
 * A libcuda without a GPU: GPU memory is memory of the process, a module is a shared object that
 * a C compiler has made from kernel.cu, and a few CPU threads run all threads of a kernel. The
 * code of softgpu is the same as with a GPU.
 */
#include <dlfcn.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "../kernel.h"

enum { OK = 0, INVALID_VALUE = 1, OUT_OF_MEMORY = 2, NOT_FOUND = 500, NOT_READY = 600 };

#define CPU_THREADS	8U

/**
 * struct launch - a running kernel
 * @job: copy of its argument
 * @next: next thread to run
 * @running: CPU threads that run it
 */
struct launch {
	void (*kernel)(struct kernel_job job);
	struct kernel_job job;
	_Atomic uint32_t next;
	_Atomic uint32_t running;
};

static _Thread_local uint32_t index_now;

static uint32_t thread_index(void)
{
	return index_now;
}

static void *run(void *argument)
{
	struct launch *launch = argument;

	while ((index_now = atomic_fetch_add(&launch->next, 1)) < launch->job.threads)
		launch->kernel(launch->job);
	atomic_fetch_sub(&launch->running, 1);
	return NULL;
}

#define FAKE_CALL(name, ...) int name(__VA_ARGS__); int name(__VA_ARGS__)

FAKE_CALL(cuInit, unsigned int flags)
{
	return flags ? INVALID_VALUE : OK;
}

FAKE_CALL(cuDeviceGet, int *device, int number)
{
	*device = number;
	return OK;
}

FAKE_CALL(cuDevicePrimaryCtxRetain, void **context, int device)
{
	static int contexts[1];

	*context = &contexts[device];
	return OK;
}

FAKE_CALL(cuCtxSetCurrent, void *context)
{
	return context ? OK : INVALID_VALUE;
}

FAKE_CALL(cuModuleLoad, void **module, const char *path)
{
	uint32_t (**index)(void);

	*module = dlopen(path, RTLD_NOW | RTLD_LOCAL);
	index = *module ? dlsym(*module, "softgpu_thread_index") : NULL;
	if (!index)
		return NOT_FOUND;
	*index = thread_index;
	return OK;
}

FAKE_CALL(cuModuleGetFunction, void **function, void *module, const char *name)
{
	*function = dlsym(module, name);
	return *function ? OK : NOT_FOUND;
}

FAKE_CALL(cuStreamCreate, void **stream, unsigned int flags)
{
	(void)flags;
	*stream = calloc(1, sizeof(struct launch));
	return *stream ? OK : OUT_OF_MEMORY;
}

FAKE_CALL(cuStreamQuery, void *stream)
{
	struct launch *launch = stream;

	return atomic_load(&launch->running) ? NOT_READY : OK;
}

FAKE_CALL(cuStreamSynchronize, void *stream)
{
	while (cuStreamQuery(stream) == NOT_READY)
		;
	return OK;
}

FAKE_CALL(cuMemAlloc_v2, uint64_t *address, size_t bytes)
{
	void *memory = mmap(NULL, bytes, PROT_READ | PROT_WRITE,
			    MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);

	*address = (uintptr_t)memory;
	return memory != MAP_FAILED ? OK : OUT_OF_MEMORY;
}

FAKE_CALL(cuMemsetD8_v2, uint64_t address, unsigned char value, size_t bytes)
{
	/* New memory has no pages, and reads as 0. */
	if (!value)
		return madvise((void *)(uintptr_t)address, bytes, MADV_DONTNEED) ? INVALID_VALUE : OK;
	memset((void *)(uintptr_t)address, value, bytes);
	return OK;
}

FAKE_CALL(cuMemcpyHtoDAsync_v2, uint64_t to, const void *from, size_t bytes, void *stream)
{
	(void)stream;
	memcpy((void *)(uintptr_t)to, from, bytes);
	return OK;
}

FAKE_CALL(cuMemcpyDtoHAsync_v2, void *to, uint64_t from, size_t bytes, void *stream)
{
	(void)stream;
	memcpy(to, (const void *)(uintptr_t)from, bytes);
	return OK;
}

FAKE_CALL(cuMemHostRegister_v2, void *start, size_t bytes, unsigned int flags)
{
	return start && bytes && flags == 3 ? OK : INVALID_VALUE;
}

FAKE_CALL(cuMemHostGetDevicePointer_v2, uint64_t *address, void *start, unsigned int flags)
{
	(void)flags;
	*address = (uintptr_t)start;
	return OK;
}

FAKE_CALL(cuLaunchKernel, void *function, unsigned int grid_x, unsigned int grid_y,
	  unsigned int grid_z, unsigned int block_x, unsigned int block_y, unsigned int block_z,
	  unsigned int shared_bytes, void *stream, void **parameters, void **extra)
{
	struct launch *launch = stream;
	pthread_t thread;
	unsigned int i;

	memcpy(&launch->job, parameters[0], sizeof(launch->job));
	if (extra || shared_bytes || grid_y * grid_z * block_y * block_z != 1 ||
	    grid_x * block_x < launch->job.threads)
		return INVALID_VALUE;
	memcpy(&launch->kernel, &function, sizeof(function));
	atomic_store(&launch->next, 0);
	atomic_store(&launch->running, CPU_THREADS);
	for (i = 0; i < CPU_THREADS; i++)
		if (pthread_create(&thread, NULL, run, launch) || pthread_detach(thread))
			return OUT_OF_MEMORY;
	return OK;
}

FAKE_CALL(cuGetErrorName, int error, const char **name)
{
	(void)error;
	*name = "an error of the fake libcuda";
	return OK;
}
