// SPDX-License-Identifier: GPL-2.0-only
/*
 * libcuda, loaded at run time, and the calls of it that softgpu makes.  Types and
 * numbers are those of the CUDA driver ABI, which is stable.
 */
#include <dlfcn.h>
#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cuda.h"
#include "kernel.h"

enum {
	CUDA_NOT_READY = 600,
	REGISTER_PORTABLE = 1,
	REGISTER_DEVICEMAP = 2,
	STREAM_NON_BLOCKING = 1,
	COPY_STREAMS = 8,
};

/* The entry points of libcuda; all return a CUresult. */
struct driver {
	int (*cuInit)(unsigned int flags);
	int (*cuDeviceGet)(int *device, int number);
	int (*cuDevicePrimaryCtxRetain)(void **context, int device);
	int (*cuCtxSetCurrent)(void *context);
	int (*cuModuleLoad)(void **module, const char *path);
	int (*cuModuleGetFunction)(void **function, void *module, const char *name);
	int (*cuStreamCreate)(void **stream, unsigned int flags);
	int (*cuStreamQuery)(void *stream);
	int (*cuStreamSynchronize)(void *stream);
	int (*cuMemAlloc)(uint64_t *address, size_t bytes);
	int (*cuMemsetD8)(uint64_t address, unsigned char value, size_t bytes);
	int (*cuMemcpyHtoDAsync)(uint64_t to, const void *from, size_t bytes, void *stream);
	int (*cuMemcpyDtoHAsync)(void *to, uint64_t from, size_t bytes, void *stream);
	int (*cuMemHostRegister)(void *start, size_t bytes, unsigned int flags);
	int (*cuMemHostGetDevicePointer)(uint64_t *address, void *start, unsigned int flags);
	int (*cuLaunchKernel)(void *function, unsigned int grid_x, unsigned int grid_y,
			      unsigned int grid_z, unsigned int block_x, unsigned int block_y,
			      unsigned int block_z, unsigned int shared_bytes, void *stream,
			      void **parameters, void **extra);
	int (*cuGetErrorName)(int error, const char **name);
};

/**
 * struct cuda - a GPU and the kernel on it; constant once it is open
 * @driver: libcuda
 * @context: context of the GPU
 * @kernel: all programs but those on lists
 * @list: programs on lists
 * @mover: the kernel that moves data
 * @streams: one for the kernel of each job, one for @mover, and those for concurrent copies, which
 *	jobs share: streams beyond the hardware queues would wait for kernels of others
 * @stream_count: number of jobs
 */
struct cuda {
	struct driver driver;
	void *context;
	void *kernel;
	void *list;
	void *mover;
	void **streams;
	unsigned int stream_count;
};

static const struct {
	const char *name;
	size_t offset;
} entry_points[] = {
#define ENTRY(name, member) { name, offsetof(struct driver, member) }
	ENTRY("cuInit", cuInit),
	ENTRY("cuDeviceGet", cuDeviceGet),
	ENTRY("cuDevicePrimaryCtxRetain", cuDevicePrimaryCtxRetain),
	ENTRY("cuCtxSetCurrent", cuCtxSetCurrent),
	ENTRY("cuModuleLoad", cuModuleLoad),
	ENTRY("cuModuleGetFunction", cuModuleGetFunction),
	ENTRY("cuStreamCreate", cuStreamCreate),
	ENTRY("cuStreamQuery", cuStreamQuery),
	ENTRY("cuStreamSynchronize", cuStreamSynchronize),
	ENTRY("cuMemAlloc_v2", cuMemAlloc),
	ENTRY("cuMemsetD8_v2", cuMemsetD8),
	ENTRY("cuMemcpyHtoDAsync_v2", cuMemcpyHtoDAsync),
	ENTRY("cuMemcpyDtoHAsync_v2", cuMemcpyDtoHAsync),
	ENTRY("cuMemHostRegister_v2", cuMemHostRegister),
	ENTRY("cuMemHostGetDevicePointer_v2", cuMemHostGetDevicePointer),
	ENTRY("cuLaunchKernel", cuLaunchKernel),
	ENTRY("cuGetErrorName", cuGetErrorName),
};

/* Returns 0, or -EIO after a message about @what. */
static int judge(const struct cuda *cuda, int error, const char *what)
{
	const char *name = NULL;

	if (!error)
		return 0;
	if (cuda->driver.cuGetErrorName(error, &name) || !name)
		name = "an unknown error";
	fprintf(stderr, "softgpu: %s: %s (%d)\n", what, name, error);
	return -EIO;
}

static int load(struct driver *driver)
{
	const char *name = getenv("NVMEPEER_LIBCUDA");
	void *library, *symbol;
	size_t i;

	/* Load kernels early, so that a running kernel does not wait for the load of another. */
	setenv("CUDA_MODULE_LOADING", "EAGER", 1);
	/* Separate hardware queues, so that it does not wait for another kernel's. */
	setenv("CUDA_DEVICE_MAX_CONNECTIONS", "32", 1);
	library = dlopen(name ? name : "libcuda.so.1", RTLD_NOW | RTLD_LOCAL);
	if (!library) {
		fprintf(stderr, "softgpu: %s\n", dlerror());
		return -ENOENT;
	}
	for (i = 0; i < sizeof(entry_points) / sizeof(entry_points[0]); i++) {
		symbol = dlsym(library, entry_points[i].name);
		if (!symbol) {
			fprintf(stderr, "softgpu: libcuda has no %s\n", entry_points[i].name);
			return -ENOSYS;
		}
		memcpy((char *)driver + entry_points[i].offset, &symbol, sizeof(symbol));
	}
	return 0;
}

static int enter(struct cuda *cuda)
{
	return judge(cuda, cuda->driver.cuCtxSetCurrent(cuda->context), "no context");
}

static int take_device(struct cuda *cuda, const char *kernel)
{
	const struct driver *driver = &cuda->driver;
	void *module;
	int device;

	return judge(cuda, driver->cuInit(0), "cuInit") ?:
	       judge(cuda, driver->cuDeviceGet(&device, 0), "no GPU") ?:
	       judge(cuda, driver->cuDevicePrimaryCtxRetain(&cuda->context, device),
		     "no context") ?:
	       enter(cuda) ?: judge(cuda, driver->cuModuleLoad(&module, kernel), kernel) ?:
	       judge(cuda, driver->cuModuleGetFunction(&cuda->kernel, module, KERNEL_NAME),
		     KERNEL_NAME) ?:
	       judge(cuda, driver->cuModuleGetFunction(&cuda->list, module, KERNEL_LIST),
		     KERNEL_LIST) ?:
	       judge(cuda, driver->cuModuleGetFunction(&cuda->mover, module, KERNEL_MOVER),
		     KERNEL_MOVER);
}

static int make_streams(struct cuda *cuda, unsigned int count)
{
	unsigned int i;
	int ret = 0;

	cuda->stream_count = count;
	cuda->streams = calloc(count + 1 + COPY_STREAMS, sizeof(*cuda->streams));
	if (!cuda->streams)
		return -ENOMEM;
	for (i = 0; i < count + 1 + COPY_STREAMS && !ret; i++)
		ret = judge(cuda, cuda->driver.cuStreamCreate(&cuda->streams[i],
							      STREAM_NON_BLOCKING),
			    "no stream");
	return ret;
}

/* The first launch allocates memory, which waits for running kernels, so do it first. */
static int warm_up(struct cuda *cuda)
{
	struct kernel_job nothing = { .threads = 0 };

	return cuda_launch(cuda, 0, &nothing) ?:
	       judge(cuda, cuda->driver.cuStreamSynchronize(cuda->streams[0]), KERNEL_NAME) ?:
	       cuda_launch_list(cuda, 0, &nothing) ?:
	       judge(cuda, cuda->driver.cuStreamSynchronize(cuda->streams[0]), KERNEL_LIST);
}

struct cuda *cuda_open(const char *kernel, unsigned int streams)
{
	struct cuda *cuda = calloc(1, sizeof(*cuda));

	if (!cuda)
		return NULL;
	if (!load(&cuda->driver) && !take_device(cuda, kernel) && !make_streams(cuda, streams) &&
	    !warm_up(cuda))
		return cuda;
	free(cuda->streams);
	free(cuda);
	return NULL;
}

int cuda_register(struct cuda *cuda, void *memory, size_t bytes)
{
	uint64_t address = 0;
	int ret;

	ret = enter(cuda) ?:
	      judge(cuda, cuda->driver.cuMemHostRegister(memory, bytes, REGISTER_PORTABLE |
							 REGISTER_DEVICEMAP), "register") ?:
	      judge(cuda, cuda->driver.cuMemHostGetDevicePointer(&address, memory, 0),
		    "device pointer");
	if (!ret && address != (uintptr_t)memory)
		ret = -EOPNOTSUPP;
	return ret;
}

int cuda_alloc(struct cuda *cuda, size_t bytes, uint64_t *address)
{
	return enter(cuda) ?: judge(cuda, cuda->driver.cuMemAlloc(address, bytes), "memory") ?:
	       judge(cuda, cuda->driver.cuMemsetD8(*address, 0, bytes), "clear");
}

static void *copies_of(const struct cuda *cuda, unsigned int stream)
{
	return cuda->streams[cuda->stream_count + 1 + stream % COPY_STREAMS];
}

static int wait_for_copy(struct cuda *cuda, unsigned int stream)
{
	return judge(cuda, cuda->driver.cuStreamSynchronize(copies_of(cuda, stream)), "copy");
}

int cuda_upload(struct cuda *cuda, unsigned int stream, uint64_t to, const void *from,
		size_t bytes)
{
	return enter(cuda) ?:
	       judge(cuda, cuda->driver.cuMemcpyHtoDAsync(to, from, bytes,
							  copies_of(cuda, stream)), "copy") ?:
	       wait_for_copy(cuda, stream);
}

int cuda_download(struct cuda *cuda, unsigned int stream, void *to, uint64_t from,
		  size_t bytes)
{
	return enter(cuda) ?:
	       judge(cuda, cuda->driver.cuMemcpyDtoHAsync(to, from, bytes,
							  copies_of(cuda, stream)), "copy") ?:
	       wait_for_copy(cuda, stream);
}

static int launch(struct cuda *cuda, void *kernel, unsigned int stream,
		  const struct kernel_job *job, unsigned int most)
{
	unsigned int threads = job->threads < most ? job->threads : most;
	unsigned int blocks;
	void *parameters[] = { (void *)job };

	threads = threads ? threads : 1;
	blocks = (job->threads + threads - 1) / threads;
	return enter(cuda) ?:
	       judge(cuda, cuda->driver.cuLaunchKernel(kernel, blocks ? blocks : 1, 1, 1, threads,
						       1, 1, 0, cuda->streams[stream], parameters,
						       NULL), "launch");
}

int cuda_launch(struct cuda *cuda, unsigned int stream, const struct kernel_job *job)
{
	return launch(cuda, cuda->kernel, stream, job, KERNEL_BLOCK);
}

int cuda_launch_list(struct cuda *cuda, unsigned int stream, const struct kernel_job *job)
{
	return launch(cuda, cuda->list, stream, job, KERNEL_LIST_BLOCK);
}

int cuda_launch_mover(struct cuda *cuda, const struct kernel_job *job)
{
	return launch(cuda, cuda->mover, cuda->stream_count, job, MOVER_THREADS);
}

int cuda_wait_for_mover(struct cuda *cuda)
{
	return enter(cuda) ?:
	       judge(cuda, cuda->driver.cuStreamSynchronize(cuda->streams[cuda->stream_count]),
		     "mover");
}

int cuda_running(struct cuda *cuda, unsigned int stream)
{
	int error = enter(cuda);

	if (error)
		return error;
	error = cuda->driver.cuStreamQuery(cuda->streams[stream]);
	return error == CUDA_NOT_READY ? 1 : judge(cuda, error, "kernel");
}
