// SPDX-License-Identifier: GPL-2.0-only
/*
 * fake_libcuda.c: a libcuda without a GPU, for unit-cuda.  FAKE_CUDA_FAIL has a
 * call and the error that it returns: "cuMemHostRegister_v2=800".  With
 * FAKE_CUDA_UDMABUF its memory becomes real dma-bufs, of host pages, for tests
 * in a guest.
 */
#include <fcntl.h>
#include <linux/udmabuf.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <unistd.h>

/* State left by the calls, for the test to check. */
unsigned int fake_register_flags;
int fake_registers;	/* registrations of registers */
int fake_contexts, fake_allocations, fake_registrations, fake_frees;
uint64_t fake_exported;

/*
 * Calls on the legacy stream, and calls that invalidate the capture of another
 * stream (@fake_capturing).
 */
int fake_legacy, fake_capturing, fake_capture_broken, fake_streams;

/* cuThreadExchangeStreamCaptureMode(): 0 global, 1 thread-local, 2 relaxed. */
static _Thread_local int capture_mode;

/*
 * Attributes: writes are ordered for the GPU itself, memory belongs to device
 * 0.
 */
int fake_ordering = 100, fake_memory_type = 2, fake_managed, fake_owner, fake_capable = 1;

static int result_of(const char *call)
{
	const char *fail = getenv("FAKE_CUDA_FAIL");
	size_t length = strlen(call);

	if (!fail || strncmp(fail, call, length) || fail[length] != '=')
		return 0;
	return atoi(fail + length + 1);
}

/*
 * A call that libcuda refuses in the global mode while any stream is captured;
 * the capture is invalid afterwards.
 */
static int unsafe(const char *call)
{
	if (fake_capturing && capture_mode != 2) {
		fake_capture_broken++;
		return 900;
	}
	return result_of(call);
}

/*
 * Copies and memsets of a stream are executed when the stream is synchronized.
 * The source of a copy to the GPU is read at the call, as libcuda does for
 * pageable memory.
 */
enum { MOST_OPERATIONS = 64 };

static struct operation {
	void *to;
	const void *from;	/* NULL: memset */
	void *staged;
	unsigned char value;
	size_t bytes;
} operations[MOST_OPERATIONS];
static int operations_count;

static int enqueue(struct operation operation)
{
	if (operations_count == MOST_OPERATIONS)
		return 999;
	operations[operations_count++] = operation;
	return 0;
}

static void execute(const struct operation *operation)
{
	if (operation->from)
		memcpy(operation->to, operation->from, operation->bytes);
	else
		memset(operation->to, operation->value, operation->bytes);
	free(operation->staged);
}

#define FAKE(name, ...) int name(__VA_ARGS__); int name(__VA_ARGS__)

FAKE(cuInit, unsigned int flags)
{
	(void)flags;
	return result_of("cuInit");
}

FAKE(cuDeviceGet, int *device, int number)
{
	*device = number;
	return number > 1 ? 101 : 0;
}

FAKE(cuDeviceGetAttribute, int *value, int attribute, int device)
{
	(void)device;
	*value = attribute == 118 ? fake_ordering :
		 attribute == 124 && result_of("cuMemGetHandleForAddressRange") != 801;
	return result_of("cuDeviceGetAttribute");
}

FAKE(cuDevicePrimaryCtxRetain, void **context, int device)
{
	(void)device;
	*context = &fake_contexts;
	return result_of("cuDevicePrimaryCtxRetain");
}

FAKE(cuDevicePrimaryCtxRelease_v2, int device)
{
	return device;
}

FAKE(cuCtxPushCurrent_v2, void *context)
{
	(void)context;
	fake_contexts++;
	return 0;
}

FAKE(cuCtxPopCurrent_v2, void **context)
{
	*context = NULL;
	fake_contexts--;
	return 0;
}

/*
 * The one allocation that can become dma-bufs: the first.
 */
static struct {
	int fd;
	char *start;
	size_t bytes;
} exportable;

/* Memory of a file that udmabuf requires to be sealed against shrinking. */
static int alloc_exportable(uint64_t *address, size_t bytes)
{
	exportable.fd = memfd_create("fake-cuda", MFD_CLOEXEC | MFD_ALLOW_SEALING);
	exportable.bytes = bytes;
	if (exportable.fd < 0 || ftruncate(exportable.fd, (off_t)bytes) ||
	    fcntl(exportable.fd, F_ADD_SEALS, F_SEAL_SHRINK))
		return 2;
	exportable.start = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, exportable.fd, 0);
	if (exportable.start == MAP_FAILED)
		return 2;
	*address = (uintptr_t)exportable.start;
	return 0;
}

FAKE(cuMemAlloc_v2, uint64_t *address, size_t bytes)
{
	int refused = unsafe("cuMemAlloc_v2");

	if (refused)
		return refused;
	if (getenv("FAKE_CUDA_UDMABUF") && !exportable.start)
		return alloc_exportable(address, bytes);
	*address = (uintptr_t)aligned_alloc(1 << 16, (bytes + 0xffff) >> 16 << 16);
	fake_allocations++;
	return 0;
}

FAKE(cuMemFree_v2, uint64_t address)
{
	fake_frees++;
	if (unsafe("cuMemFree_v2"))
		return 900;
	if (exportable.start == (char *)(uintptr_t)address) {
		munmap(exportable.start, exportable.bytes);
		close(exportable.fd);
		return 0;
	}
	free((void *)(uintptr_t)address);
	fake_allocations--;
	return 0;
}

FAKE(cuThreadExchangeStreamCaptureMode, int *mode)
{
	int before = capture_mode;

	capture_mode = *mode;
	*mode = before;
	return 0;
}

FAKE(cuStreamCreate, void **stream, unsigned int flags)
{
	int refused = unsafe("cuStreamCreate");

	/* A blocking stream waits for the legacy stream. */
	fake_legacy += flags != 1;
	fake_streams += !refused;
	*stream = &fake_streams;
	return refused;
}

FAKE(cuStreamDestroy_v2, void *stream)
{
	fake_streams -= stream == &fake_streams;
	return 0;
}

FAKE(cuStreamSynchronize, void *stream)
{
	int refused = result_of("cuStreamSynchronize");

	fake_legacy += stream != &fake_streams;
	for (int i = 0; i < operations_count; i++) {
		if (refused)
			free(operations[i].staged);
		else
			execute(&operations[i]);
	}
	operations_count = 0;
	return refused;
}

FAKE(cuMemsetD8Async, uint64_t address, unsigned char value, size_t bytes, void *stream)
{
	struct operation operation = { (void *)(uintptr_t)address, NULL, NULL, value, bytes };
	int refused = result_of("cuMemsetD8Async");

	fake_legacy += stream != &fake_streams;
	return refused ? refused : enqueue(operation);
}

FAKE(cuMemcpyHtoDAsync_v2, uint64_t to, const void *from, size_t bytes, void *stream)
{
	int refused = result_of("cuMemcpyHtoDAsync_v2");
	struct operation operation = { (void *)(uintptr_t)to, NULL, NULL, 0, bytes };

	fake_legacy += stream != &fake_streams;
	if (refused)
		return refused;
	operation.staged = malloc(bytes);
	if (!operation.staged)
		return 2;
	memcpy(operation.staged, from, bytes);
	operation.from = operation.staged;
	return enqueue(operation);
}

FAKE(cuMemcpyDtoHAsync_v2, void *to, uint64_t from, size_t bytes, void *stream)
{
	struct operation operation = { to, (const void *)(uintptr_t)from, NULL, 0, bytes };
	int refused = result_of("cuMemcpyDtoHAsync_v2");

	fake_legacy += stream != &fake_streams;
	return refused ? refused : enqueue(operation);
}

/*
 * The synchronous calls use the legacy stream.
 */
FAKE(cuMemsetD8_v2, uint64_t address, unsigned char value, size_t bytes)
{
	int refused = unsafe("cuMemsetD8_v2");

	fake_legacy++;
	if (!refused)
		memset((void *)(uintptr_t)address, value, bytes);
	return refused;
}

FAKE(cuMemcpyHtoD_v2, uint64_t to, const void *from, size_t bytes)
{
	int refused = unsafe("cuMemcpyHtoD_v2");

	fake_legacy++;
	if (!refused)
		memcpy((void *)(uintptr_t)to, from, bytes);
	return refused;
}

FAKE(cuMemcpyDtoH_v2, void *to, uint64_t from, size_t bytes)
{
	int refused = unsafe("cuMemcpyDtoH_v2");

	fake_legacy++;
	if (!refused)
		memcpy(to, (void *)(uintptr_t)from, bytes);
	return refused;
}

FAKE(cuMemHostRegister_v2, void *start, size_t bytes, unsigned int flags)
{
	(void)start;
	(void)bytes;
	fake_register_flags = flags;
	if (!result_of("cuMemHostRegister_v2"))
		fake_registrations++;
	fake_registers += !!(flags & 4);
	return result_of("cuMemHostRegister_v2");
}

FAKE(cuMemHostUnregister, void *start)
{
	(void)start;
	fake_registrations--;
	return 0;
}

FAKE(cuMemHostAlloc, void **memory, size_t bytes, unsigned int flags)
{
	(void)flags;
	*memory = calloc(1, bytes);
	return *memory ? result_of("cuMemHostAlloc") : 2;
}

FAKE(cuMemFreeHost, void *memory)
{
	free(memory);
	return 0;
}

FAKE(cuMemHostGetDevicePointer_v2, uint64_t *address, void *start, unsigned int flags)
{
	(void)flags;
	*address = (uintptr_t)start;
	return result_of("cuMemHostGetDevicePointer_v2");
}

/*
 * Modules and kernels.  A launch is passed to @fake_launched, which the test sets, and
 * the number of blocks is in @fake_blocks; it may be part of a capture, so it is not unsafe() as the others are.
 */
int fake_modules;
unsigned int fake_blocks;
void (*fake_launched)(void *stream, unsigned int threads, void **arguments);

FAKE(cuModuleLoad, void **module, const char *path)
{
	int refused = unsafe("cuModuleLoad");

	(void)path;
	if (refused)
		return refused;
	fake_modules++;
	*module = &fake_modules;
	return 0;
}

FAKE(cuModuleUnload, void *module)
{
	fake_modules -= module == &fake_modules;
	return unsafe("cuModuleUnload");
}

FAKE(cuModuleGetFunction, void **function, void *module, const char *name)
{
	*function = module == &fake_modules && (!strcmp(name, "nvmepeer_list") ||
						 !strcmp(name, "nvmepeer_pages_step")) ? &fake_launched : NULL;
	return *function ? result_of("cuModuleGetFunction") : 500;
}

FAKE(cuLaunchKernel, void *function, unsigned int grid_x, unsigned int grid_y, unsigned int grid_z,
     unsigned int block_x, unsigned int block_y, unsigned int block_z, unsigned int shared_bytes,
     void *stream, void **arguments, void **extra)
{
	int refused = result_of("cuLaunchKernel");

	if (refused)
		return refused;
	if (function != &fake_launched || grid_y * grid_z != 1 || block_y * block_z != 1 ||
	    shared_bytes || extra)
		return 1;
	fake_blocks = grid_x;
	fake_launched(stream, block_x, arguments);
	return 0;
}

/* A function of the host, passed to @fake_called, which the test sets. */
int (*fake_called)(void *stream, void (*function)(void *argument), void *argument);

FAKE(cuLaunchHostFunc, void *stream, void (*function)(void *argument), void *argument)
{
	return fake_called(stream, function, argument);
}

FAKE(cuPointerSetAttribute, const void *value, int attribute, uint64_t address)
{
	(void)value;
	(void)attribute;
	(void)address;
	return 0;
}

FAKE(cuPointerGetAttribute, void *value, int attribute, uint64_t address)
{
	(void)address;
	*(int *)value = attribute == 2 ? fake_memory_type : attribute == 8 ? fake_managed :
			attribute == 9 ? fake_owner : fake_capable;
	return result_of("cuPointerGetAttribute");
}

#ifndef FAKE_OLD
/* A dma-buf of that memory, or -1. */
static int export_for_real(uint64_t address, size_t bytes)
{
	struct udmabuf_create create = {
		.memfd = (uint32_t)exportable.fd,
		.flags = UDMABUF_FLAGS_CLOEXEC,
		.offset = address - (uintptr_t)exportable.start,
		.size = bytes,
	};
	int device = open("/dev/udmabuf", O_RDWR | O_CLOEXEC), fd;

	fd = device < 0 ? -1 : ioctl(device, UDMABUF_CREATE, &create);
	close(device);
	return fd;
}

FAKE(cuMemGetHandleForAddressRange, void *handle, uint64_t address, size_t bytes, int type,
     unsigned long long flags)
{
	(void)type;
	(void)flags;
	fake_exported = address % 4096 || bytes % 4096 ? 0 : address;
	if (exportable.start) {
		*(int *)handle = export_for_real(address, bytes);
		return *(int *)handle < 0;
	}
	*(int *)handle = result_of("cuMemGetHandleForAddressRange") ? -1 : open("/dev/null", O_RDONLY);
	return result_of("cuMemGetHandleForAddressRange");
}
#endif

FAKE(cuGetErrorName, int error, const char **name)
{
	static char text[32];

	snprintf(text, sizeof(text), "CUDA_ERROR_%d", error);
	*name = text;
	return 0;
}
