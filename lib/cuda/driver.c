// SPDX-License-Identifier: MIT OR GPL-2.0
/*
 * driver.c: libcuda, loaded at run time, and the calls of it that a peer needs.
 * Types and numbers are those of the CUDA driver ABI, which is stable.
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
	CUDA_NO_BINARY_FOR_GPU = 209,
	CUDA_FILE_NOT_FOUND = 301,
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
	STREAM_NON_BLOCKING = 1,
	CAPTURE_MODE_RELAXED = 2,
};

/* Entry points of libcuda; each returns a CUresult. */
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
	int (*cuStreamCreate)(void **stream, unsigned int flags);
	int (*cuStreamDestroy)(void *stream);
	int (*cuStreamSynchronize)(void *stream);
	int (*cuThreadExchangeStreamCaptureMode)(int *mode);
	int (*cuMemsetD8Async)(uint64_t address, unsigned char value, size_t bytes, void *stream);
	int (*cuMemcpyHtoDAsync)(uint64_t to, const void *from, size_t bytes, void *stream);
	int (*cuMemcpyDtoHAsync)(void *to, uint64_t from, size_t bytes, void *stream);
	int (*cuMemHostRegister)(void *start, size_t bytes, unsigned int flags);
	int (*cuMemHostUnregister)(void *start);
	int (*cuMemHostGetDevicePointer)(uint64_t *address, void *start, unsigned int flags);
	int (*cuPointerSetAttribute)(const void *value, int attribute, uint64_t address);
	int (*cuPointerGetAttribute)(void *value, int attribute, uint64_t address);
	int (*cuMemGetHandleForAddressRange)(void *handle, uint64_t address, size_t bytes,
					     int type, unsigned long long flags);
	int (*cuModuleLoad)(void **module, const char *path);
	int (*cuModuleUnload)(void *module);
	int (*cuModuleGetFunction)(void **function, void *module, const char *name);
	int (*cuLaunchKernel)(void *function, unsigned int grid_x, unsigned int grid_y,
			      unsigned int grid_z, unsigned int block_x, unsigned int block_y,
			      unsigned int block_z, unsigned int shared_bytes, void *stream,
			      void **arguments, void **extra);
	int (*cuGetErrorName)(int error, const char **name);
};

/* GPU memory of a failed call, for a later allocation. */
struct kept {
	struct kept *next;
	uint64_t address;
	size_t bytes;
};

/**
 * struct nvmepeer_cuda - one GPU
 * @library: libcuda
 * @driver: its entry points
 * @number: the caller's device number
 * @device: CUdevice
 * @context: primary context of the device
 * @stream: non-blocking stream of all copies and memsets.  The legacy stream
 *	would wait for the kernels of all blocking streams, so that a persistent
 *	kernel blocks it for good, and other non-blocking streams do not wait
 *	for it
 *
 * @lock: guards @kept
 * @kept: memory of failed calls.  They do not free it, since cuMemFree waits for
 *	all kernels, for a persistent one for ever
 *
 * nvmepeer_cuda_open() sets all fields but @kept and nothing changes them.  Calls
 * push and pop the context on their own thread, so no other lock is needed.
 */
struct nvmepeer_cuda {
	void *library;
	struct driver driver;
	int number;
	int device;
	void *context;
	void *stream;
	pthread_mutex_t lock;
	struct kept *kept;
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

int cuda_number(const struct nvmepeer_cuda *cuda)
{
	return cuda->number;
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
	ENTRY("cuStreamCreate", cuStreamCreate),
	ENTRY("cuStreamDestroy_v2", cuStreamDestroy),
	ENTRY("cuStreamSynchronize", cuStreamSynchronize),
	ENTRY("cuThreadExchangeStreamCaptureMode", cuThreadExchangeStreamCaptureMode),
	ENTRY("cuMemsetD8Async", cuMemsetD8Async),
	ENTRY("cuMemcpyHtoDAsync_v2", cuMemcpyHtoDAsync),
	ENTRY("cuMemcpyDtoHAsync_v2", cuMemcpyDtoHAsync),
	ENTRY("cuMemHostRegister_v2", cuMemHostRegister),
	ENTRY("cuMemHostUnregister", cuMemHostUnregister),
	ENTRY("cuMemHostGetDevicePointer_v2", cuMemHostGetDevicePointer),
	ENTRY("cuPointerSetAttribute", cuPointerSetAttribute),
	ENTRY("cuPointerGetAttribute", cuPointerGetAttribute),
	ENTRY("cuMemGetHandleForAddressRange", cuMemGetHandleForAddressRange),
	ENTRY("cuModuleLoad", cuModuleLoad),
	ENTRY("cuModuleUnload", cuModuleUnload),
	ENTRY("cuModuleGetFunction", cuModuleGetFunction),
	ENTRY("cuLaunchKernel", cuLaunchKernel),
	ENTRY("cuGetErrorName", cuGetErrorName),
};

static int load(struct nvmepeer_cuda *cuda)
{
	/* A privileged program must not load what its user names. */
	const char *name = secure_getenv("NVMEPEER_LIBCUDA");

	name = name ? name : "libcuda.so.1";
	cuda->library = dlopen(name, RTLD_NOW | RTLD_LOCAL);
	if (!cuda->library)
		return cuda_fail(opening, -ENOENT, "cannot load libcuda",
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
		return cuda_fail(opening, -ENODEV, "cannot initialise CUDA",
				 "load NVIDIA's driver, and check that /dev/nvidia* is accessible",
				 "cuInit: %s", name_of(cuda, error));
	error = cuda->driver.cuDeviceGet(&cuda->device, cuda->number);
	if (error)
		return cuda_fail(opening, -ENODEV, "no such GPU",
				 "nvidia-smi -L lists them; CUDA_VISIBLE_DEVICES hides some",
				 "no CUDA device %d: %s", cuda->number,
				 name_of(cuda, error));
	error = cuda->driver.cuDevicePrimaryCtxRetain(&cuda->context, cuda->device);
	if (error)
		return cuda_fail(opening, -ENODEV, "cannot retain the GPU's primary context",
				 "check whether the GPU is in exclusive mode and used by another process",
				 "cuDevicePrimaryCtxRetain of device %d: %s", cuda->number,
				 name_of(cuda, error));
	return 0;
}

/*
 * The context and the stream capture mode of a thread, to be restored by
 * leave().
 */
struct entered {
	int capture_mode;
};

static void leave(struct nvmepeer_cuda *cuda, struct entered *entered)
{
	void *context;

	cuda->driver.cuThreadExchangeStreamCaptureMode(&entered->capture_mode);
	cuda->driver.cuCtxPopCurrent(&context);
}

/*
 * Make the GPU's context current on this thread until leave().  No call of the
 * glue takes part in a stream capture, so none may invalidate one: in the
 * relaxed mode libcuda permits allocations while any thread captures.
 */
static int enter(struct nvmepeer_cuda *cuda, struct entered *entered)
{
	int error = cuda->driver.cuCtxPushCurrent(cuda->context);

	if (error)
		return cuda_fail(allocating, -EIO, "cannot make the GPU's context current", "",
				 "cuCtxPushCurrent: %s", name_of(cuda, error));
	entered->capture_mode = CAPTURE_MODE_RELAXED;
	cuda->driver.cuThreadExchangeStreamCaptureMode(&entered->capture_mode);
	return 0;
}

static int make_stream(struct nvmepeer_cuda *cuda)
{
	struct entered entered;
	int error = enter(cuda, &entered);

	if (error)
		return error;
	error = cuda->driver.cuStreamCreate(&cuda->stream, STREAM_NON_BLOCKING);
	leave(cuda, &entered);
	if (!error)
		return 0;
	cuda->stream = NULL;
	return cuda_fail(opening, -EIO, "cannot create a stream", "", "cuStreamCreate: %s",
			 name_of(cuda, error));
}

int nvmepeer_cuda_open(int device, struct nvmepeer_cuda **opened)
{
	struct nvmepeer_cuda *cuda = calloc(1, sizeof(*cuda));
	int error;

	if (!cuda)
		return cuda_fail(opening, -ENOMEM, "out of memory", "", "the host has no free memory");
	cuda->number = device;
	pthread_mutex_init(&cuda->lock, NULL);
	error = load(cuda);
	if (!error)
		error = take_device(cuda);
	if (!error)
		error = make_stream(cuda);
	if (error) {
		nvmepeer_cuda_close(cuda);
		return error;
	}
	*opened = cuda;
	return 0;
}

void nvmepeer_cuda_close(struct nvmepeer_cuda *cuda)
{
	struct entered entered;
	struct kept *kept;

	if (!cuda)
		return;
	while ((kept = cuda->kept)) {
		cuda->kept = kept->next;
		cuda_free(cuda, kept->address);
		free(kept);
	}
	if (cuda->stream && !enter(cuda, &entered)) {
		cuda->driver.cuStreamDestroy(cuda->stream);
		leave(cuda, &entered);
	}
	if (cuda->context)
		cuda->driver.cuDevicePrimaryCtxRelease(cuda->device);
	if (cuda->library)
		dlclose(cuda->library);
	pthread_mutex_destroy(&cuda->lock);
	free(cuda);
}

/* Wait for what @refused == 0 says has been added to the stream. */
static int finish(struct nvmepeer_cuda *cuda, int refused)
{
	return refused ? refused : cuda->driver.cuStreamSynchronize(cuda->stream);
}

static int clear(struct nvmepeer_cuda *cuda, uint64_t address, size_t bytes)
{
	return finish(cuda, cuda->driver.cuMemsetD8Async(address, 0, bytes, cuda->stream));
}

void cuda_keep(struct nvmepeer_cuda *cuda, uint64_t address, size_t bytes)
{
	struct kept *kept = malloc(sizeof(*kept));

	if (!kept) {
		cuda_free(cuda, address);
		return;
	}
	kept->address = address;
	kept->bytes = bytes;
	pthread_mutex_lock(&cuda->lock);
	kept->next = cuda->kept;
	cuda->kept = kept;
	pthread_mutex_unlock(&cuda->lock);
}

/* Memory of a failed call that suffices and would not waste more than half, or 0. */
static uint64_t take_kept(struct nvmepeer_cuda *cuda, size_t bytes)
{
	struct kept **at = &cuda->kept, *kept;
	uint64_t address = 0;

	pthread_mutex_lock(&cuda->lock);
	while (*at && ((*at)->bytes < bytes || (*at)->bytes / 2 > bytes))
		at = &(*at)->next;
	kept = *at;
	if (kept) {
		*at = kept->next;
		address = kept->address;
	}
	pthread_mutex_unlock(&cuda->lock);
	free(kept);
	return address;
}

int cuda_alloc(struct nvmepeer_cuda *cuda, size_t bytes, uint64_t *address)
{
	struct entered entered;
	int error = enter(cuda, &entered);
	uint64_t memory;

	if (error)
		return error;
	memory = take_kept(cuda, bytes);
	error = memory ? 0 : cuda->driver.cuMemAlloc(&memory, bytes);
	if (error) {
		error = cuda_fail(allocating, -ENOMEM, "cannot allocate GPU memory",
				  "use fewer entries or queue pairs", "cuMemAlloc of %zu bytes: %s",
				  bytes, name_of(cuda, error));
		goto out;
	}
	error = clear(cuda, memory, bytes);
	if (error) {
		cuda->driver.cuMemFree(memory);
		error = cuda_fail(allocating, -EIO, "cannot clear GPU memory", "",
				  "cuMemsetD8Async: %s", name_of(cuda, error));
		goto out;
	}
	*address = memory;
out:
	leave(cuda, &entered);
	return error;
}

void cuda_free(struct nvmepeer_cuda *cuda, uint64_t address)
{
	struct entered entered;

	if (enter(cuda, &entered))
		return;
	cuda->driver.cuMemFree(address);
	leave(cuda, &entered);
}

/*
 * A pointer attribute of the memory at @address, or @otherwise if CUDA has no
 * such memory.
 */
static int pointer_attribute(struct nvmepeer_cuda *cuda, int attribute, uint64_t address, int otherwise)
{
	int value = 0;

	return cuda->driver.cuPointerGetAttribute(&value, attribute, address) ? otherwise : value;
}

/*
 * Refuse memory that cannot be exported, with its kind as the reason.  Called
 * with the context current.
 */
static int check_memory(struct nvmepeer_cuda *cuda, uint64_t address)
{
	static const char what[] = "the memory cannot be exported to the controller";
	int owner = pointer_attribute(cuda, POINTER_DEVICE_ORDINAL, address, cuda->number);

	if (pointer_attribute(cuda, POINTER_MEMORY_TYPE, address, 0) != MEMORY_TYPE_DEVICE)
		return cuda_fail(exporting, -EINVAL, what,
				 "pass memory from cudaMalloc() or cuMemCreate(); for host memory see nvmepeer_hostmem_alloc()",
				 "%#llx is not CUDA device memory", (unsigned long long)address);
	if (pointer_attribute(cuda, POINTER_IS_MANAGED, address, 0) & 1)
		return cuda_fail(exporting, -EINVAL, what, "pass memory from cudaMalloc() or cuMemCreate()",
				 "%#llx is managed memory, which moves between host and GPU",
				 (unsigned long long)address);
	if (owner != cuda->number)
		return cuda_fail(exporting, -EINVAL, what,
				 "open that GPU and queue pairs for it: a completion in another GPU's memory may overtake the data",
				 "%#llx is memory of CUDA device %d, but device %d was opened",
				 (unsigned long long)address, owner, cuda->number);
	return 0;
}

int cuda_check_memory(struct nvmepeer_cuda *cuda, uint64_t address, uint64_t bytes)
{
	struct entered entered;
	int error = enter(cuda, &entered);

	if (error)
		return error;
	error = check_memory(cuda, address);
	if (!error)
		error = check_memory(cuda, address + bytes - 1);
	leave(cuda, &entered);
	return error;
}

static int export_refused(struct nvmepeer_cuda *cuda, int error, uint64_t address, size_t bytes)
{
	int supported = 0;

	cuda->driver.cuDeviceGetAttribute(&supported, ATTRIBUTE_DMA_BUF_SUPPORTED, cuda->device);
	if (!supported)
		return cuda_fail(exporting, -EOPNOTSUPP, "cannot export GPU memory as a dma-buf",
				 "use NVIDIA's open kernel module (nvidia-open), Linux 5.12 or newer, and a data-centre GPU or one of Turing or newer",
				 "cuMemGetHandleForAddressRange: %s", name_of(cuda, error));
	if (!(pointer_attribute(cuda, POINTER_RDMA_CAPABLE, address, 1) & 1))
		return cuda_fail(exporting, -EOPNOTSUPP, "cannot export this GPU memory as a dma-buf",
				 "allocate it with CUmemAllocationProp.allocFlags.gpuDirectRDMACapable = 1",
				 "%#llx was not allocated for access by other devices",
				 (unsigned long long)address);
	return cuda_fail(exporting, -EINVAL, "cannot export this GPU memory as a dma-buf",
			 "pass a range of whole host pages that is allocated from end to end",
			 "cuMemGetHandleForAddressRange of %zu bytes at %#llx: %s", bytes,
			 (unsigned long long)address, name_of(cuda, error));
}

int cuda_export(struct nvmepeer_cuda *cuda, uint64_t address, size_t bytes, int *fd)
{
	unsigned int synchronous = 1;
	struct entered entered;
	int refused, error = enter(cuda, &entered);

	if (error)
		return error;
	error = check_memory(cuda, address);
	if (error)
		goto out;
	/* Copies and controller writes of one range must be ordered. */
	cuda->driver.cuPointerSetAttribute(&synchronous, POINTER_SYNC_MEMOPS, address);
	refused = cuda->driver.cuMemGetHandleForAddressRange(fd, address, bytes, RANGE_DMA_BUF_FD, 0);
	if (refused)
		error = export_refused(cuda, refused, address, bytes);
out:
	leave(cuda, &entered);
	return error;
}

int cuda_import(struct nvmepeer_cuda *cuda, struct nvmepeer *ctrl, uint64_t address,
		size_t bytes, uint32_t *handle, uint32_t *segments)
{
	struct nvme_peer_buf_import buffer;
	int fd, error;

	error = cuda_export(cuda, address, bytes, &fd);
	if (error)
		return error;
	error = nvmepeer_buf_import(ctrl, fd, NVME_PEER_BUF_REQUIRE_DEVICE, &buffer,
				    sizeof(buffer));
	close(fd);
	if (error)
		return error;
	*handle = buffer.handle;
	*segments = buffer.segments;
	return 0;
}

int cuda_release(struct nvmepeer *ctrl, uint32_t *handle)
{
	int error = *handle ? nvmepeer_buf_release(ctrl, *handle) : 0;

	/* -ENOENT: the controller has no such buffer any more. */
	if (error && error != -ENOENT)
		return error;
	*handle = 0;
	return 0;
}

int cuda_keeps_order(struct nvmepeer_cuda *cuda)
{
	int ordering = 0;
	int error = cuda->driver.cuDeviceGetAttribute(&ordering, ATTRIBUTE_RDMA_WRITES_ORDERING,
						      cuda->device);

	if (!error && ordering >= WRITES_ORDERING_OWNER)
		return 0;
	/*
	 * Only a call of the host could flush the writes, and a kernel cannot
	 * make one.
	 */
	return cuda_fail(opening_queues, -EOPNOTSUPP, "completions could overtake their data",
			 "use a GPU and platform that report at least OWNER (100), as data-centre GPUs behind PCIe do",
			 "CU_DEVICE_ATTRIBUTE_GPU_DIRECT_RDMA_WRITES_ORDERING of device %d is %s%d: kernels may see the controller's writes in another order",
			 cuda->number, error ? "unknown: error " : "", error ? error : ordering);
}

/*
 * Effective capabilities from /proc/self/status; all of them if it cannot be
 * read.
 */
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

/* Does the nvidia module list its parameters, without PeerMappingOverride=1? */
static bool override_is_off(void)
{
	const char *path = secure_getenv("NVMEPEER_NVIDIA_PARAMS");
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
	return cuda_fail(opening_queues, -EPERM, "the process may not map doorbells into the GPU",
			 registers_help,
			 "NVIDIA's driver maps registers of other devices for CAP_SYS_ADMIN only, which this process lacks");
}

/*
 * The driver gives no reason when it refuses doorbell pages: derive it from the
 * error.
 */
static int registers_refused(const struct nvmepeer_cuda *cuda, int error)
{
	static const char what[] = "cannot map the doorbells into the GPU";
	const char *name = name_of(cuda, error);

	switch (error) {
	case CUDA_NOT_PERMITTED:
		return cuda_fail(opening_queues, -EPERM, what, registers_help,
				 "cuMemHostRegister(IOMEMORY): %s", name);
	case CUDA_INVALID_VALUE:
		return cuda_fail(opening_queues, -EFAULT, what,
				 "use NVIDIA's open kernel module, driver 570.133.07 or newer: Linux 6.12 and newer only export follow_pfnmap_start(), to GPL modules",
				 "cuMemHostRegister(IOMEMORY): %s: the driver cannot resolve the mapping to registers",
				 name);
	case CUDA_OPERATING_SYSTEM:
		return cuda_fail(opening_queues, -EFAULT, what,
				 "check the kernel log; NVreg_DmaRemapPeerMmio=0 is only for machines without a translating IOMMU",
				 "cuMemHostRegister(IOMEMORY): %s: dma_map_resource() refused the doorbells for the GPU",
				 name);
	case CUDA_NOT_SUPPORTED:
		return cuda_fail(opening_queues, -EOPNOTSUPP, what,
				 "in a virtual machine, pass both devices through",
				 "cuMemHostRegister(IOMEMORY): %s: this kernel or GPU cannot map registers of other devices",
				 name);
	default:
		return cuda_fail(opening_queues, -EIO, what, "", "cuMemHostRegister(IOMEMORY): %s",
				 name);
	}
}

static int pages_refused(const struct nvmepeer_cuda *cuda, int error, size_t bytes)
{
	return cuda_fail(opening_queues, -EFAULT, "cannot map a page of the queue pair into the GPU",
			 error == CUDA_ALREADY_REGISTERED ?
			 "unregister it first: this process has registered the page already" :
			 "check the messages of the nvidia module in the kernel log",
			 "cuMemHostRegister of %zu bytes: %s: the driver cannot pin the page", bytes,
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
	struct entered entered;
	int refused, error = enter(cuda, &entered);

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
		error = cuda_fail(opening_queues, -EIO, "cannot get the GPU address of mapped pages", "",
				  "cuMemHostGetDevicePointer: %s", name_of(cuda, refused));
	}
out:
	leave(cuda, &entered);
	return error;
}

void cuda_unregister(struct nvmepeer_cuda *cuda, void *start)
{
	struct entered entered;

	if (enter(cuda, &entered))
		return;
	cuda->driver.cuMemHostUnregister(start);
	leave(cuda, &entered);
}

int cuda_upload(struct nvmepeer_cuda *cuda, uint64_t address, const void *from, size_t bytes)
{
	struct entered entered;
	int refused, error = enter(cuda, &entered);

	if (error)
		return error;
	refused = finish(cuda, cuda->driver.cuMemcpyHtoDAsync(address, from, bytes, cuda->stream));
	leave(cuda, &entered);
	return refused ? cuda_fail(allocating, -EIO, "a copy to the GPU failed", "",
				   "cuMemcpyHtoDAsync of %zu bytes: %s", bytes, name_of(cuda, refused)) : 0;
}

int cuda_download(struct nvmepeer_cuda *cuda, void *to, uint64_t address, size_t bytes)
{
	struct entered entered;
	int refused, error = enter(cuda, &entered);

	if (error)
		return error;
	refused = finish(cuda, cuda->driver.cuMemcpyDtoHAsync(to, address, bytes, cuda->stream));
	leave(cuda, &entered);
	return refused ? cuda_fail(allocating, -EIO, "a copy from the GPU failed", "",
				   "cuMemcpyDtoHAsync of %zu bytes: %s", bytes, name_of(cuda, refused)) : 0;
}

int cuda_clear(struct nvmepeer_cuda *cuda, uint64_t address, size_t bytes)
{
	struct entered entered;
	int refused, error = enter(cuda, &entered);

	if (error)
		return error;
	refused = clear(cuda, address, bytes);
	leave(cuda, &entered);
	return refused ? cuda_fail(allocating, -EIO, "cannot clear GPU memory", "",
				   "cuMemsetD8Async of %zu bytes: %s", bytes, name_of(cuda, refused)) : 0;
}

static int load_refused(struct nvmepeer_cuda *cuda, const char *call, int refused, const char *path)
{
	const char *name = name_of(cuda, refused);

	if (refused == CUDA_FILE_NOT_FOUND)
		return cuda_fail(call, -ENOENT, "cannot find the kernels of the library",
				 "install the library with CUDA's compiler in PATH, or set NVMEPEER_LIST_KERNEL",
				 "cuModuleLoad of %s: %s", path, name);
	return cuda_fail(call, -EIO, "cannot load the kernels of the library",
			 refused == CUDA_NO_BINARY_FOR_GPU ?
			 "use a GPU of compute capability 8.0 or newer" :
			 "install the library and its kernels of the same version",
			 "cuModuleLoad of %s: %s", path, name);
}

/*
 * The file with the kernels, unless the environment names it: beside the library, or
 * where it is installed if the program is linked with the static library.  Never
 * relative to the current directory, since they run with the rights of the
 * program.
 */
static void find_kernel(char *path, size_t bytes)
{
	static const char file[] = "nvmepeer/nvmepeer_list.fatbin";
	const char *named = secure_getenv("NVMEPEER_LIST_KERNEL");
	Dl_info library = { 0 };
	char *object, *end;

	if (named) {
		snprintf(path, bytes, "%s", named);
		return;
	}
	dladdr(file, &library);
	/* Of the program itself it is argv[0], which its caller chose. */
	if (library.dli_fname && !strcmp(library.dli_fname, program_invocation_name))
		library.dli_fname = "/proc/self/exe";
	object = library.dli_fname ? realpath(library.dli_fname, NULL) : NULL;
	end = object ? strrchr(object, '/') : NULL;
	if (end)
		snprintf(path, bytes, "%.*s/%s", (int)(end - object), object, file);
	if (!end || access(path, R_OK))
		snprintf(path, bytes, "%s/%s", NVMEPEER_LIBDIR, file);
	free(object);
}

int cuda_load(struct nvmepeer_cuda *cuda, const char *call, const char *name, void **module,
	      void **kernel)
{
	struct entered entered;
	int refused, error = enter(cuda, &entered);
	char path[4096];

	if (error)
		return error;
	find_kernel(path, sizeof(path));
	refused = cuda->driver.cuModuleLoad(module, path);
	if (refused)
		*module = NULL;
	else
		refused = cuda->driver.cuModuleGetFunction(kernel, *module, name);
	leave(cuda, &entered);
	return refused ? load_refused(cuda, call, refused, path) : 0;
}

void cuda_unload(struct nvmepeer_cuda *cuda, void *module)
{
	struct entered entered;

	if (enter(cuda, &entered))
		return;
	cuda->driver.cuModuleUnload(module);
	leave(cuda, &entered);
}

int cuda_launch(struct nvmepeer_cuda *cuda, const char *call, void *kernel, unsigned int blocks,
		unsigned int threads, void *stream, void **arguments)
{
	struct entered entered;
	int refused, error = enter(cuda, &entered);

	if (error)
		return error;
	refused = cuda->driver.cuLaunchKernel(kernel, blocks, 1, 1, threads, 1, 1, 0, stream,
					      arguments, NULL);
	leave(cuda, &entered);
	return refused ? cuda_fail(call, -EIO, "the kernel was not added to the stream",
				   "check that the stream belongs to the GPU that was opened, and that no earlier kernel has failed",
				   "cuLaunchKernel: %s", name_of(cuda, refused)) : 0;
}
