// SPDX-License-Identifier: MIT OR GPL-2.0
/*
 * driver.c: libcuda, loaded at run time, and the few calls of it that a peer
 * needs.  Types and numbers are those of the CUDA driver ABI, which is stable.
 */
#include <dlfcn.h>
#include <errno.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "internal.h"

enum {
	CUDA_OK = 0,
	CUDA_INVALID_VALUE = 1,
	CUDA_OUT_OF_MEMORY = 2,
	CUDA_OPERATING_SYSTEM = 304,
	CUDA_ALREADY_REGISTERED = 712,
	CUDA_NOT_PERMITTED = 800,
	CUDA_NOT_SUPPORTED = 801,
	REGISTER_PORTABLE = 1,
	REGISTER_DEVICEMAP = 2,
	REGISTER_IOMEMORY = 4,
	REGISTER_READ_ONLY = 8,
	ATTRIBUTE_DMA_BUF_SUPPORTED = 124,
	POINTER_SYNC_MEMOPS = 6,
	RANGE_DMA_BUF_FD = 1,
	ALLOCATION_UNIT = 2 << 20,
};

/* One entry point of libcuda; all return a CUresult. */
struct driver {
	int (*cuInit)(unsigned int flags);
	int (*cuDeviceGet)(int *device, int number);
	int (*cuDeviceGetAttribute)(int *value, int attribute, int device);
	int (*cuDevicePrimaryCtxRetain)(void **context, int device);
	int (*cuDevicePrimaryCtxRelease)(int device);
	int (*cuCtxPushCurrent)(void *context);
	int (*cuCtxPopCurrent)(void **context);
	int (*cuMemAlloc)(uint64_t *address, size_t bytes);
	int (*cuMemFree)(uint64_t address);
	int (*cuMemsetD8)(uint64_t address, unsigned char value, size_t bytes);
	int (*cuMemcpyHtoD)(uint64_t to, const void *from, size_t bytes);
	int (*cuMemHostRegister)(void *start, size_t bytes, unsigned int flags);
	int (*cuMemHostUnregister)(void *start);
	int (*cuMemHostGetDevicePointer)(uint64_t *address, void *start, unsigned int flags);
	int (*cuPointerSetAttribute)(const void *value, int attribute, uint64_t address);
	int (*cuMemGetHandleForAddressRange)(void *handle, uint64_t address, size_t bytes,
					     int type, unsigned long long flags);
	int (*cuGetErrorName)(int error, const char **name);
};

/*
 * @library to @context are set by open and never changed; calls push and pop
 * the context on their own thread, so no lock is needed.
 */
struct nvmepeer_cuda {
	void *library;
	struct driver driver;
	int device;
	void *context;
};

static __thread char why[1200] = "no call has failed";

int cuda_fail(int error, const char *format, ...)
{
	va_list arguments;

	va_start(arguments, format);
	vsnprintf(why, sizeof(why), format, arguments);
	va_end(arguments);
	return error;
}

const char *nvmepeer_cuda_why(void)
{
	return why;
}

static const char *name_of(const struct nvmepeer_cuda *cuda, int error)
{
	const char *name = NULL;

	if (cuda->driver.cuGetErrorName(error, &name) || !name)
		return "an unknown error";
	return name;
}

static const struct {
	const char *name;
	size_t offset;
} entry_points[] = {
#define ENTRY(name, member) { name, offsetof(struct driver, member) }
	ENTRY("cuInit", cuInit),
	ENTRY("cuDeviceGet", cuDeviceGet),
	ENTRY("cuDeviceGetAttribute", cuDeviceGetAttribute),
	ENTRY("cuDevicePrimaryCtxRetain", cuDevicePrimaryCtxRetain),
	ENTRY("cuDevicePrimaryCtxRelease_v2", cuDevicePrimaryCtxRelease),
	ENTRY("cuCtxPushCurrent_v2", cuCtxPushCurrent),
	ENTRY("cuCtxPopCurrent_v2", cuCtxPopCurrent),
	ENTRY("cuMemAlloc_v2", cuMemAlloc),
	ENTRY("cuMemFree_v2", cuMemFree),
	ENTRY("cuMemsetD8_v2", cuMemsetD8),
	ENTRY("cuMemcpyHtoD_v2", cuMemcpyHtoD),
	ENTRY("cuMemHostRegister_v2", cuMemHostRegister),
	ENTRY("cuMemHostUnregister", cuMemHostUnregister),
	ENTRY("cuMemHostGetDevicePointer_v2", cuMemHostGetDevicePointer),
	ENTRY("cuPointerSetAttribute", cuPointerSetAttribute),
	ENTRY("cuMemGetHandleForAddressRange", cuMemGetHandleForAddressRange),
	ENTRY("cuGetErrorName", cuGetErrorName),
};

static int load(struct nvmepeer_cuda *cuda)
{
	const char *name = getenv("NVMEPEER_LIBCUDA");

	name = name ? name : "libcuda.so.1";
	cuda->library = dlopen(name, RTLD_NOW | RTLD_LOCAL);
	if (!cuda->library)
		return cuda_fail(-ENOENT, "cannot load %s: %s. Install NVIDIA's driver, or set NVMEPEER_LIBCUDA.",
				 name, dlerror());
	for (size_t i = 0; i < sizeof(entry_points) / sizeof(entry_points[0]); i++) {
		void *symbol = dlsym(cuda->library, entry_points[i].name);

		if (!symbol)
			return cuda_fail(-ENOSYS, "%s has no %s: it is older than CUDA 11.7. Update NVIDIA's driver.",
					 name, entry_points[i].name);
		memcpy((char *)&cuda->driver + entry_points[i].offset, &symbol, sizeof(symbol));
	}
	return 0;
}

static int take_device(struct nvmepeer_cuda *cuda, int number)
{
	int error = cuda->driver.cuInit(0);

	if (error)
		return cuda_fail(-ENODEV, "cuInit: %s. Is the NVIDIA driver loaded and /dev/nvidia* accessible?",
				 name_of(cuda, error));
	error = cuda->driver.cuDeviceGet(&cuda->device, number);
	if (error)
		return cuda_fail(-ENODEV, "there is no CUDA device %d: %s", number,
				 name_of(cuda, error));
	error = cuda->driver.cuDevicePrimaryCtxRetain(&cuda->context, cuda->device);
	if (error)
		return cuda_fail(-ENODEV, "CUDA device %d gives no context: %s", number,
				 name_of(cuda, error));
	return 0;
}

int nvmepeer_cuda_open(int device, struct nvmepeer_cuda **opened)
{
	struct nvmepeer_cuda *cuda = calloc(1, sizeof(*cuda));
	int error;

	if (!cuda)
		return cuda_fail(-ENOMEM, "out of memory");
	error = load(cuda);
	if (!error)
		error = take_device(cuda, device);
	if (error) {
		nvmepeer_cuda_close(cuda);
		return error;
	}
	*opened = cuda;
	return 0;
}

void nvmepeer_cuda_close(struct nvmepeer_cuda *cuda)
{
	if (!cuda)
		return;
	if (cuda->context)
		cuda->driver.cuDevicePrimaryCtxRelease(cuda->device);
	if (cuda->library)
		dlclose(cuda->library);
	free(cuda);
}

static void leave(struct nvmepeer_cuda *cuda)
{
	void *context;

	cuda->driver.cuCtxPopCurrent(&context);
}

/* Makes the GPU's context this thread's until leave(). */
static int enter(struct nvmepeer_cuda *cuda)
{
	int error = cuda->driver.cuCtxPushCurrent(cuda->context);

	return error ? cuda_fail(-EIO, "cuCtxPushCurrent: %s", name_of(cuda, error)) : 0;
}

int nvmepeer_cuda_alloc(struct nvmepeer_cuda *cuda, size_t bytes, uint64_t *address)
{
	unsigned int synchronous = 1;
	int error = enter(cuda);

	if (error)
		return error;
	bytes = (bytes + ALLOCATION_UNIT - 1) / ALLOCATION_UNIT * ALLOCATION_UNIT;
	error = cuda->driver.cuMemAlloc(address, bytes);
	if (error) {
		error = cuda_fail(-ENOMEM, "cuMemAlloc of %zu bytes: %s", bytes,
				  name_of(cuda, error));
		goto out;
	}
	/* Copies and controller writes of one range must not overtake each other. */
	cuda->driver.cuPointerSetAttribute(&synchronous, POINTER_SYNC_MEMOPS, *address);
	error = cuda->driver.cuMemsetD8(*address, 0, bytes);
	if (error) {
		cuda->driver.cuMemFree(*address);
		error = cuda_fail(-EIO, "cuMemsetD8: %s", name_of(cuda, error));
	}
out:
	leave(cuda);
	return error;
}

void nvmepeer_cuda_free(struct nvmepeer_cuda *cuda, uint64_t address)
{
	if (enter(cuda))
		return;
	cuda->driver.cuMemFree(address);
	leave(cuda);
}

int nvmepeer_cuda_export(struct nvmepeer_cuda *cuda, uint64_t address, size_t bytes, int *fd)
{
	int supported = 0, error = enter(cuda);

	if (error)
		return error;
	cuda->driver.cuDeviceGetAttribute(&supported, ATTRIBUTE_DMA_BUF_SUPPORTED, cuda->device);
	error = cuda->driver.cuMemGetHandleForAddressRange(fd, address, bytes, RANGE_DMA_BUF_FD, 0);
	leave(cuda);
	if (!error)
		return 0;
	if (!supported)
		return cuda_fail(-EOPNOTSUPP, "GPU memory cannot become a dma-buf: %s. This needs NVIDIA's open kernel module (nvidia-open), a kernel from 5.12 on and a data-centre or Turing or newer GPU.",
				 name_of(cuda, error));
	return cuda_fail(-EINVAL, "cuMemGetHandleForAddressRange of %zu bytes at %#llx: %s. Address and length must be multiples of the host's page size and lie in one allocation.",
			 bytes, (unsigned long long)address, name_of(cuda, error));
}

/* What a refused registration of doorbell pages can mean (the driver does not say). */
static int registers_refused(const struct nvmepeer_cuda *cuda, int error)
{
	const char *name = name_of(cuda, error);

	switch (error) {
	case CUDA_NOT_PERMITTED:
		return cuda_fail(-EPERM, "cuMemHostRegister(IOMEMORY): %s. The driver wants CAP_SYS_ADMIN for the registers of other devices, or NVreg_RegistryDwords=\"PeerMappingOverride=1\" as a parameter of the nvidia module.",
				 name);
	case CUDA_INVALID_VALUE:
		return cuda_fail(-EFAULT, "cuMemHostRegister(IOMEMORY): %s. The driver found no registers behind the mapping: it looks them up by follow_pfnmap_start(), which needs driver 570.133.07 or newer on kernels that have it, and NVIDIA's open kernel module, because that function is GPL-only. The whole range must lie in one mapping of the doorbell dma-buf.",
				 name);
	case CUDA_OPERATING_SYSTEM:
		return cuda_fail(-EFAULT, "cuMemHostRegister(IOMEMORY): %s. dma_map_resource() refused the doorbells for the GPU: see the kernel log; NVreg_DmaRemapPeerMmio=0 is for machines without a translating IOMMU.",
				 name);
	case CUDA_NOT_SUPPORTED:
		return cuda_fail(-EOPNOTSUPP, "cuMemHostRegister(IOMEMORY): %s. This kernel or GPU cannot map registers of other devices; a virtual machine must pass both devices through.",
				 name);
	default:
		return cuda_fail(-EIO, "cuMemHostRegister(IOMEMORY): %s", name);
	}
}

static int pages_refused(const struct nvmepeer_cuda *cuda, int error, size_t bytes)
{
	const char *name = name_of(cuda, error);

	switch (error) {
	case CUDA_ALREADY_REGISTERED:
		return cuda_fail(-EEXIST, "cuMemHostRegister: %s. The range was registered before.", name);
	case CUDA_OUT_OF_MEMORY:
		return cuda_fail(-ENOMEM, "cuMemHostRegister of %zu bytes: %s. Raise the limit on locked memory (ulimit -l).",
				 bytes, name);
	default:
		return cuda_fail(-EFAULT, "cuMemHostRegister of %zu bytes: %s. The driver pins ordinary pages (pin_user_pages, FOLL_LONGTERM): registers must be given as such, memory mapped for reading only as read-only.",
				 bytes, name);
	}
}

int nvmepeer_cuda_register(struct nvmepeer_cuda *cuda, enum nvmepeer_cuda_memory memory,
			   void *start, size_t bytes, uint64_t *address)
{
	unsigned int flags = REGISTER_PORTABLE | REGISTER_DEVICEMAP;
	int refused, error = enter(cuda);

	if (error)
		return error;
	if (memory == NVMEPEER_CUDA_REGISTERS)
		flags |= REGISTER_IOMEMORY;
	else if (memory == NVMEPEER_CUDA_READ_ONLY)
		flags |= REGISTER_READ_ONLY;
	refused = cuda->driver.cuMemHostRegister(start, bytes, flags);
	if (refused) {
		error = memory == NVMEPEER_CUDA_REGISTERS ? registers_refused(cuda, refused) :
							   pages_refused(cuda, refused, bytes);
		goto out;
	}
	refused = cuda->driver.cuMemHostGetDevicePointer(address, start, 0);
	if (refused) {
		cuda->driver.cuMemHostUnregister(start);
		error = cuda_fail(-EIO, "cuMemHostGetDevicePointer: %s", name_of(cuda, refused));
	}
out:
	leave(cuda);
	return error;
}

void nvmepeer_cuda_unregister(struct nvmepeer_cuda *cuda, void *start)
{
	if (enter(cuda))
		return;
	cuda->driver.cuMemHostUnregister(start);
	leave(cuda);
}

int nvmepeer_cuda_upload(struct nvmepeer_cuda *cuda, uint64_t address, const void *from,
			 size_t bytes)
{
	int error = enter(cuda);

	if (error)
		return error;
	error = cuda->driver.cuMemcpyHtoD(address, from, bytes);
	leave(cuda);
	return error ? cuda_fail(-EIO, "cuMemcpyHtoD: %s", name_of(cuda, error)) : 0;
}
