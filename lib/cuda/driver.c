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
#include <unistd.h>

#include "internal.h"

enum {
	CUDA_INVALID_VALUE = 1,
	CUDA_OPERATING_SYSTEM = 304,
	CUDA_ALREADY_REGISTERED = 712,
	CUDA_NOT_PERMITTED = 800,
	CUDA_NOT_SUPPORTED = 801,
	REGISTER_PORTABLE = 1,
	REGISTER_DEVICEMAP = 2,
	REGISTER_IOMEMORY = 4,
	REGISTER_READ_ONLY = 8,
	ATTRIBUTE_RDMA_WRITES_ORDERING = 118,
	ATTRIBUTE_DMA_BUF_SUPPORTED = 124,
	WRITES_ORDERING_OWNER = 100,
	POINTER_MEMORY_TYPE = 2,
	POINTER_SYNC_MEMOPS = 6,
	POINTER_IS_MANAGED = 8,
	POINTER_DEVICE_ORDINAL = 9,
	POINTER_RDMA_CAPABLE = 15,
	MEMORY_TYPE_DEVICE = 2,
	RANGE_DMA_BUF_FD = 1,
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
	int (*cuMemcpyDtoH)(void *to, uint64_t from, size_t bytes);
	int (*cuMemHostRegister)(void *start, size_t bytes, unsigned int flags);
	int (*cuMemHostUnregister)(void *start);
	int (*cuMemHostGetDevicePointer)(uint64_t *address, void *start, unsigned int flags);
	int (*cuPointerSetAttribute)(const void *value, int attribute, uint64_t address);
	int (*cuPointerGetAttribute)(void *value, int attribute, uint64_t address);
	int (*cuMemGetHandleForAddressRange)(void *handle, uint64_t address, size_t bytes,
					     int type, unsigned long long flags);
	int (*cuGetErrorName)(int error, const char **name);
};

/*
 * All set by open and never changed; calls push and pop the context on their
 * own thread, so no lock is needed.
 */
struct nvmepeer_cuda {
	void *library;
	struct driver driver;
	int number;
	int device;
	void *context;
};

static const char opening[] = "nvmepeer_cuda_open";
static const char opening_queues[] = "nvmepeer_cuda_queues_open";
static const char allocating[] = "nvmepeer_cuda: GPU memory";
static const char exporting[] = "nvmepeer_cuda: GPU memory for the controller";

int cuda_fail(const char *call, int error, const char *what, const char *help,
	      const char *limit, ...)
{
	struct nvmepeer_explanation explanation = { .call = call, .error = -error };
	va_list arguments;

	snprintf(explanation.what, sizeof(explanation.what), "%s", what);
	snprintf(explanation.help, sizeof(explanation.help), "%s", help);
	va_start(arguments, limit);
	vsnprintf(explanation.limit, sizeof(explanation.limit), limit, arguments);
	va_end(arguments);
	return nvmepeer_fail(&explanation, sizeof(explanation));
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
	ENTRY("cuMemcpyDtoH_v2", cuMemcpyDtoH),
	ENTRY("cuMemHostRegister_v2", cuMemHostRegister),
	ENTRY("cuMemHostUnregister", cuMemHostUnregister),
	ENTRY("cuMemHostGetDevicePointer_v2", cuMemHostGetDevicePointer),
	ENTRY("cuPointerSetAttribute", cuPointerSetAttribute),
	ENTRY("cuPointerGetAttribute", cuPointerGetAttribute),
	ENTRY("cuMemGetHandleForAddressRange", cuMemGetHandleForAddressRange),
	ENTRY("cuGetErrorName", cuGetErrorName),
};

static int load(struct nvmepeer_cuda *cuda)
{
	const char *name = getenv("NVMEPEER_LIBCUDA");

	name = name ? name : "libcuda.so.1";
	cuda->library = dlopen(name, RTLD_NOW | RTLD_LOCAL);
	if (!cuda->library)
		return cuda_fail(opening, -ENOENT, "libcuda was not loaded",
				 "install NVIDIA's driver, or set NVMEPEER_LIBCUDA", "%s: %s", name,
				 dlerror());
	for (size_t i = 0; i < sizeof(entry_points) / sizeof(entry_points[0]); i++) {
		void *symbol = dlsym(cuda->library, entry_points[i].name);

		if (!symbol)
			return cuda_fail(opening, -ENOSYS, "libcuda is older than CUDA 11.7",
					 "update NVIDIA's driver", "%s has no %s", name,
					 entry_points[i].name);
		memcpy((char *)&cuda->driver + entry_points[i].offset, &symbol, sizeof(symbol));
	}
	return 0;
}

static int take_device(struct nvmepeer_cuda *cuda)
{
	int error = cuda->driver.cuInit(0);

	if (error)
		return cuda_fail(opening, -ENODEV, "CUDA does not start",
				 "load NVIDIA's driver, and see that /dev/nvidia* is accessible",
				 "cuInit: %s", name_of(cuda, error));
	error = cuda->driver.cuDeviceGet(&cuda->device, cuda->number);
	if (error)
		return cuda_fail(opening, -ENODEV, "there is no such GPU",
				 "nvidia-smi -L lists them; CUDA_VISIBLE_DEVICES hides some",
				 "there is no CUDA device %d: %s", cuda->number,
				 name_of(cuda, error));
	error = cuda->driver.cuDevicePrimaryCtxRetain(&cuda->context, cuda->device);
	if (error)
		return cuda_fail(opening, -ENODEV, "the GPU gives no context",
				 "see whether another process has it in exclusive mode",
				 "cuDevicePrimaryCtxRetain of device %d: %s", cuda->number,
				 name_of(cuda, error));
	return 0;
}

int nvmepeer_cuda_open(int device, struct nvmepeer_cuda **opened)
{
	struct nvmepeer_cuda *cuda = calloc(1, sizeof(*cuda));
	int error;

	if (!cuda)
		return cuda_fail(opening, -ENOMEM, "no memory is left", "", "out of memory");
	cuda->number = device;
	error = load(cuda);
	if (!error)
		error = take_device(cuda);
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

	return error ? cuda_fail(allocating, -EIO, "the GPU's context is gone", "",
				 "cuCtxPushCurrent: %s", name_of(cuda, error)) : 0;
}

int cuda_alloc(struct nvmepeer_cuda *cuda, size_t bytes, uint64_t *address)
{
	int error = enter(cuda);
	uint64_t memory;

	if (error)
		return error;
	error = cuda->driver.cuMemAlloc(&memory, bytes);
	if (error) {
		error = cuda_fail(allocating, -ENOMEM, "no GPU memory was given",
				  "ask for fewer entries or queue pairs", "cuMemAlloc of %zu bytes: %s",
				  bytes, name_of(cuda, error));
		goto out;
	}
	error = cuda->driver.cuMemsetD8(memory, 0, bytes);
	if (error) {
		cuda->driver.cuMemFree(memory);
		error = cuda_fail(allocating, -EIO, "GPU memory was not cleared", "",
				  "cuMemsetD8: %s", name_of(cuda, error));
		goto out;
	}
	*address = memory;
out:
	leave(cuda);
	return error;
}

void cuda_free(struct nvmepeer_cuda *cuda, uint64_t address)
{
	if (enter(cuda))
		return;
	cuda->driver.cuMemFree(address);
	leave(cuda);
}

/* What CUDA says of the memory at @address; @otherwise if it does not know it. */
static int pointer_says(struct nvmepeer_cuda *cuda, int attribute, uint64_t address, int otherwise)
{
	int value = 0;

	return cuda->driver.cuPointerGetAttribute(&value, attribute, address) ? otherwise : value;
}

/* Memory of another kind than can be exported, by name.  In the context. */
static int check_memory(struct nvmepeer_cuda *cuda, uint64_t address)
{
	static const char what[] = "the memory cannot be the controller's";
	int owner = pointer_says(cuda, POINTER_DEVICE_ORDINAL, address, cuda->number);

	if (pointer_says(cuda, POINTER_MEMORY_TYPE, address, 0) != MEMORY_TYPE_DEVICE)
		return cuda_fail(exporting, -EINVAL, what,
				 "give memory from cudaMalloc() or cuMemCreate(); for host memory see nvmepeer_hostmem_alloc()",
				 "%#llx is no device memory of CUDA", (unsigned long long)address);
	if (pointer_says(cuda, POINTER_IS_MANAGED, address, 0) & 1)
		return cuda_fail(exporting, -EINVAL, what, "give memory from cudaMalloc() or cuMemCreate()",
				 "%#llx is managed memory, which moves between host and GPU",
				 (unsigned long long)address);
	if (owner != cuda->number)
		return cuda_fail(exporting, -EINVAL, what,
				 "open that GPU, and queue pairs for it: data beside another GPU's rings may come after its completion",
				 "%#llx is memory of CUDA device %d, and device %d was opened",
				 (unsigned long long)address, owner, cuda->number);
	return 0;
}

static int export_refused(struct nvmepeer_cuda *cuda, int error, uint64_t address, size_t bytes)
{
	int supported = 0;

	cuda->driver.cuDeviceGetAttribute(&supported, ATTRIBUTE_DMA_BUF_SUPPORTED, cuda->device);
	if (!supported)
		return cuda_fail(exporting, -EOPNOTSUPP, "GPU memory cannot become a dma-buf",
				 "this needs NVIDIA's open kernel module (nvidia-open), a kernel from 5.12 on and a data-centre or Turing or newer GPU",
				 "cuMemGetHandleForAddressRange: %s", name_of(cuda, error));
	if (!(pointer_says(cuda, POINTER_RDMA_CAPABLE, address, 1) & 1))
		return cuda_fail(exporting, -EOPNOTSUPP, "GPU memory did not become a dma-buf",
				 "allocate it with CUmemAllocationProp.allocFlags.gpuDirectRDMACapable = 1",
				 "%#llx was not allocated for access by other devices",
				 (unsigned long long)address);
	return cuda_fail(exporting, -EINVAL, "GPU memory did not become a dma-buf",
			 "give a range of whole pages of the host that is allocated from end to end",
			 "cuMemGetHandleForAddressRange of %zu bytes at %#llx: %s", bytes,
			 (unsigned long long)address, name_of(cuda, error));
}

int cuda_export(struct nvmepeer_cuda *cuda, uint64_t address, size_t bytes, int *fd)
{
	unsigned int synchronous = 1;
	int refused, error = enter(cuda);

	if (error)
		return error;
	error = check_memory(cuda, address);
	if (error)
		goto out;
	/* Copies and controller writes of one range must not overtake each other. */
	cuda->driver.cuPointerSetAttribute(&synchronous, POINTER_SYNC_MEMOPS, address);
	refused = cuda->driver.cuMemGetHandleForAddressRange(fd, address, bytes, RANGE_DMA_BUF_FD, 0);
	if (refused)
		error = export_refused(cuda, refused, address, bytes);
out:
	leave(cuda);
	return error;
}

int cuda_import(struct nvmepeer_cuda *cuda, struct nvmepeer *ctrl, uint64_t address,
		size_t bytes, uint32_t *handle)
{
	struct nvme_peer_buf_import buffer;
	int fd, error;

	error = cuda_export(cuda, address, bytes, &fd);
	if (error)
		return error;
	error = nvmepeer_buf_import(ctrl, fd, NVME_PEER_BUF_REQUIRE_DEVICE, &buffer,
				    sizeof(buffer));
	close(fd);
	if (!error)
		*handle = buffer.handle;
	return error;
}

int cuda_keeps_order(struct nvmepeer_cuda *cuda)
{
	int ordering = 0;
	int error = cuda->driver.cuDeviceGetAttribute(&ordering, ATTRIBUTE_RDMA_WRITES_ORDERING,
						      cuda->device);

	if (!error && ordering >= WRITES_ORDERING_OWNER)
		return 0;
	/* What would flush them is a call of the host, which a kernel cannot make. */
	return cuda_fail(opening_queues, -EOPNOTSUPP, "completions could overtake their data",
			 "use a GPU or platform where it is at least OWNER (100): data-centre GPUs behind PCIe are",
			 "CU_DEVICE_ATTRIBUTE_GPU_DIRECT_RDMA_WRITES_ORDERING of device %d is %s%d: kernels need not see what the controller writes in the order it writes",
			 cuda->number, error ? "not known: error " : "", error ? error : ordering);
}

/* The capabilities that count, from /proc/self/status; all if it cannot be read. */
static unsigned long long effective_capabilities(void)
{
	unsigned long long capabilities = ~0ull;
	FILE *file = fopen("/proc/self/status", "re");
	char line[256];

	if (!file)
		return capabilities;
	while (fgets(line, sizeof(line), file))
		if (!strncmp(line, "CapEff:", 7))
			capabilities = strtoull(line + 7, NULL, 16);
	fclose(file);
	return capabilities;
}

/* Does the nvidia module tell its parameters, and not that one? */
static bool override_is_off(void)
{
	const char *path = getenv("NVMEPEER_NVIDIA_PARAMS");
	FILE *file = fopen(path ? path : "/proc/driver/nvidia/params", "re");
	bool on = false;
	char line[512];

	if (!file)
		return false;
	while (fgets(line, sizeof(line), file))
		on = on || strstr(line, "PeerMappingOverride=1");
	fclose(file);
	return !on;
}

static const char registers_help[] =
	"run with CAP_SYS_ADMIN, or load nvidia with NVreg_RegistryDwords=\"PeerMappingOverride=1\"";

int cuda_may_register(void)
{
	enum { CAP_SYS_ADMIN_BIT = 21 };

	if (effective_capabilities() >> CAP_SYS_ADMIN_BIT & 1 || !override_is_off())
		return 0;
	return cuda_fail(opening_queues, -EPERM, "the GPU may not reach the doorbells", registers_help,
			 "NVIDIA's driver maps registers of other devices only for CAP_SYS_ADMIN, which this process does not have");
}

/* What a refused registration of doorbell pages can mean (the driver does not say). */
static int registers_refused(const struct nvmepeer_cuda *cuda, int error)
{
	static const char what[] = "the GPU did not get the doorbells";
	const char *name = name_of(cuda, error);

	switch (error) {
	case CUDA_NOT_PERMITTED:
		return cuda_fail(opening_queues, -EPERM, what, registers_help,
				 "cuMemHostRegister(IOMEMORY): %s", name);
	case CUDA_INVALID_VALUE:
		return cuda_fail(opening_queues, -EFAULT, what,
				 "use NVIDIA's open kernel module, driver 570.133.07 or newer: kernels from 6.12 on have only follow_pfnmap_start(), which is GPL-only",
				 "cuMemHostRegister(IOMEMORY): %s: the driver found no registers behind the mapping",
				 name);
	case CUDA_OPERATING_SYSTEM:
		return cuda_fail(opening_queues, -EFAULT, what,
				 "see the kernel log; NVreg_DmaRemapPeerMmio=0 is for machines without a translating IOMMU",
				 "cuMemHostRegister(IOMEMORY): %s: dma_map_resource() refused the doorbells for the GPU",
				 name);
	case CUDA_NOT_SUPPORTED:
		return cuda_fail(opening_queues, -EOPNOTSUPP, what,
				 "a virtual machine must pass both devices through",
				 "cuMemHostRegister(IOMEMORY): %s: this kernel or GPU cannot map registers of other devices",
				 name);
	default:
		return cuda_fail(opening_queues, -EIO, what, "", "cuMemHostRegister(IOMEMORY): %s",
				 name);
	}
}

static int pages_refused(const struct nvmepeer_cuda *cuda, int error, size_t bytes)
{
	return cuda_fail(opening_queues, -EFAULT, "the GPU did not get a page of the queue pair",
			 error == CUDA_ALREADY_REGISTERED ?
			 "unregister it first: somebody in this process has registered the page" :
			 "see what the nvidia module said in the kernel log",
			 "cuMemHostRegister of %zu bytes: %s: the driver pins ordinary pages", bytes,
			 name_of(cuda, error));
}

int cuda_register(struct nvmepeer_cuda *cuda, enum cuda_memory memory, void *start, size_t bytes,
		  uint64_t *address)
{
	static const unsigned int more[] = {
		[CUDA_MEMORY_READ_ONLY] = REGISTER_READ_ONLY,
		[CUDA_MEMORY_READ_WRITE] = 0,
		[CUDA_MEMORY_REGISTERS] = REGISTER_IOMEMORY,
	};
	int refused, error = enter(cuda);

	if (error)
		return error;
	refused = cuda->driver.cuMemHostRegister(start, bytes, REGISTER_PORTABLE |
						 REGISTER_DEVICEMAP | more[memory]);
	if (refused) {
		error = memory == CUDA_MEMORY_REGISTERS ? registers_refused(cuda, refused) :
							  pages_refused(cuda, refused, bytes);
		goto out;
	}
	refused = cuda->driver.cuMemHostGetDevicePointer(address, start, 0);
	if (refused) {
		cuda->driver.cuMemHostUnregister(start);
		error = cuda_fail(opening_queues, -EIO, "the GPU has no address for mapped pages", "",
				  "cuMemHostGetDevicePointer: %s", name_of(cuda, refused));
	}
out:
	leave(cuda);
	return error;
}

void cuda_unregister(struct nvmepeer_cuda *cuda, void *start)
{
	if (enter(cuda))
		return;
	cuda->driver.cuMemHostUnregister(start);
	leave(cuda);
}

int cuda_upload(struct nvmepeer_cuda *cuda, uint64_t address, const void *from, size_t bytes)
{
	int refused, error = enter(cuda);

	if (error)
		return error;
	refused = cuda->driver.cuMemcpyHtoD(address, from, bytes);
	leave(cuda);
	return refused ? cuda_fail(allocating, -EIO, "a copy to the GPU failed", "",
				   "cuMemcpyHtoD of %zu bytes: %s", bytes, name_of(cuda, refused)) : 0;
}

int cuda_download(struct nvmepeer_cuda *cuda, void *to, uint64_t address, size_t bytes)
{
	int refused, error = enter(cuda);

	if (error)
		return error;
	refused = cuda->driver.cuMemcpyDtoH(to, address, bytes);
	leave(cuda);
	return refused ? cuda_fail(allocating, -EIO, "a copy from the GPU failed", "",
				   "cuMemcpyDtoH of %zu bytes: %s", bytes, name_of(cuda, refused)) : 0;
}

int cuda_clear(struct nvmepeer_cuda *cuda, uint64_t address, size_t bytes)
{
	int refused, error = enter(cuda);

	if (error)
		return error;
	refused = cuda->driver.cuMemsetD8(address, 0, bytes);
	leave(cuda);
	return refused ? cuda_fail(allocating, -EIO, "GPU memory was not cleared", "",
				   "cuMemsetD8 of %zu bytes: %s", bytes, name_of(cuda, refused)) : 0;
}
