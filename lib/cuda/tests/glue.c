// SPDX-License-Identifier: GPL-2.0-only
/*
 * glue: what NVIDIA's driver grants and refuses of the operations that the CUDA
 * glue (lib/cuda) requests: GPU memory as dma-bufs, and pages of a queue pair
 * for kernels of the GPU.  Needs no NVMe controller: other mappings replace the
 * module's exports, as far as the machine has them.  Each error must come with
 * its explanation.
 *
 *	glue
 *
 * Prints KTAP, and a line "# glue: {...}" for each request.  Without
 * /dev/nvidiactl libcuda is a fake (NVMEPEER_LIBCUDA), which refuses little.
 */
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <glob.h>
#include <linux/capability.h>
#include <linux/io_uring.h>
#include <linux/pci.h>
#include <linux/udmabuf.h>
#include <stdlib.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "../internal.h"
#include "../../../selftests/lib/ktap.h"

#define PAGE		4096U
#define BYTES		(4U << 20)
#define FILL		0x5a

/* Results besides 0 and a negative errno. */
#define ABSENT		1	/* the machine has no such mapping */
#define UNKNOWN		2	/* expected: any result of the driver */

enum attribute {
	GPU_DIRECT_RDMA = 116,
	FLUSH_OPTIONS = 117,
	WRITES_ORDERING = 118,
	DMA_BUF = 124,
	HOST_REGISTER = 99,
	READ_ONLY_REGISTER = 113,
};

/* CUDA driver ABI: CUmemAllocationProp. */
struct allocation {
	int type;
	int handle_types;
	int location_type;
	int location_id;
	void *windows;
	unsigned char compression;
	unsigned char rdma_capable;
	unsigned short usage;
	unsigned char reserved[4];
};

/* CUmemAccessDesc. */
struct access {
	int location_type;
	int location_id;
	int flags;
};

static struct nvmepeer_cuda *cuda;
static uint64_t memory;		/* GPU memory, BYTES long */

/* --- Results ------------------------------------------------------------------ */

static bool is_real(void)
{
	return !access("/dev/nvidiactl", F_OK);
}

static const char *name_of(int result)
{
	return result == ABSENT ? "absent" : result ? strerrorname_np(-result) : "granted";
}

static void print_text(const char *name, const char *text)
{
	printf(", \"%s\": \"", name);
	for (; *text; text++)
		printf(*text == '"' ? "\\%c" : "%c", *text);
	printf("\"");
}

/*
 * An error is printed with the explanation of the glue; an error without one
 * fails the test.
 */
static void check(const char *name, int result, int expected, const char *word)
{
	struct nvmepeer_explanation why = { .what = "", .limit = "", .help = "" };
	bool good = result == expected || result == ABSENT || expected == UNKNOWN;

	if (result < 0) {
		nvmepeer_explain(&why, sizeof(why));
		good = good && why.error == -result && (!word || strstr(why.limit, word) ||
							strstr(why.help, word));
	}
	printf("# glue: {\"what\": \"%s\", \"answer\": \"%s\"", name, name_of(result));
	print_text("limit", why.limit);
	print_text("help", why.help);
	printf("}\n");
	ktap_check(good, name);
}

/* Entry points of libcuda that the glue does not use; all return a CUresult. */
static struct {
	int (*cuDriverGetVersion)(int *version);
	int (*cuDeviceGetAttribute)(int *value, int attribute, int device);
	int (*cuMemAllocManaged)(uint64_t *address, size_t bytes, unsigned int flags);
	int (*cuMemCreate)(unsigned long long *handle, size_t bytes, const struct allocation *how,
			   unsigned long long flags);
	int (*cuMemAddressReserve)(uint64_t *address, size_t bytes, size_t alignment,
				   uint64_t wanted, unsigned long long flags);
	int (*cuMemMap)(uint64_t address, size_t bytes, size_t offset, unsigned long long handle,
			unsigned long long flags);
	int (*cuMemSetAccess)(uint64_t address, size_t bytes, const struct access *access,
			      size_t count);
	int (*cuCtxSetCurrent)(void *context);
	int (*cuDevicePrimaryCtxRetain)(void **context, int device);
} driver;

static void find(void *library, const char *name, void *where)
{
	void *symbol = dlsym(library, name);

	memcpy(where, &symbol, sizeof(symbol));
}

/* Such memory is allocated in the primary context, which the glue uses too. */
static void find_driver(void)
{
	const char *name = getenv("NVMEPEER_LIBCUDA");
	void *library = dlopen(name ? name : "libcuda.so.1", RTLD_NOW | RTLD_LOCAL);
	void *context;

	find(library, "cuDriverGetVersion", &driver.cuDriverGetVersion);
	find(library, "cuDeviceGetAttribute", &driver.cuDeviceGetAttribute);
	find(library, "cuMemAllocManaged", &driver.cuMemAllocManaged);
	find(library, "cuMemCreate", &driver.cuMemCreate);
	find(library, "cuMemAddressReserve", &driver.cuMemAddressReserve);
	find(library, "cuMemMap", &driver.cuMemMap);
	find(library, "cuMemSetAccess", &driver.cuMemSetAccess);
	find(library, "cuCtxSetCurrent", &driver.cuCtxSetCurrent);
	find(library, "cuDevicePrimaryCtxRetain", &driver.cuDevicePrimaryCtxRetain);
	if (driver.cuCtxSetCurrent && !driver.cuDevicePrimaryCtxRetain(&context, 0))
		driver.cuCtxSetCurrent(context);
}

static void print_attribute(const char *name, enum attribute attribute)
{
	int value = 0;

	if (!driver.cuDeviceGetAttribute(&value, (int)attribute, 0))
		printf("# glue: {\"attribute\": \"%s\", \"value\": %d}\n", name, value);
}

static void print_machine(void)
{
	int version = 0;

	if (driver.cuDriverGetVersion && !driver.cuDriverGetVersion(&version))
		printf("# glue: {\"attribute\": \"CUDA driver version\", \"value\": %d}\n", version);
	print_attribute("GPU_DIRECT_RDMA_SUPPORTED", GPU_DIRECT_RDMA);
	print_attribute("GPU_DIRECT_RDMA_FLUSH_WRITES_OPTIONS", FLUSH_OPTIONS);
	print_attribute("GPU_DIRECT_RDMA_WRITES_ORDERING", WRITES_ORDERING);
	print_attribute("DMA_BUF_SUPPORTED", DMA_BUF);
	print_attribute("HOST_REGISTER_SUPPORTED", HOST_REGISTER);
	print_attribute("READ_ONLY_HOST_REGISTER_SUPPORTED", READ_ONLY_REGISTER);
}

/* --- Memory of the GPU as a dma-buf --------------------------------------------- */

/* The dma-buf must have the requested length. */
static int export(uint64_t address, size_t bytes)
{
	int fd = -1, error = cuda_export(cuda, address, bytes, &fd);
	off_t size;

	if (error)
		return error;
	size = lseek(fd, 0, SEEK_END);
	close(fd);
	return !is_real() || size == (off_t)bytes ? 0 : -EBADMSG;
}

static int export_managed(void)
{
	uint64_t address = 0;

	if (!driver.cuMemAllocManaged || driver.cuMemAllocManaged(&address, BYTES, 1))
		return ABSENT;
	return export(address, BYTES);
}

/* Memory of CUDA's virtual memory management. */
static int export_virtual(bool capable)
{
	struct allocation how = { .type = 1, .location_type = 1, .rdma_capable = capable };
	struct access access = { 1, 0, 3 };
	unsigned long long handle;
	uint64_t address = 0;

	if (!driver.cuMemSetAccess || driver.cuMemCreate(&handle, BYTES, &how, 0) ||
	    driver.cuMemAddressReserve(&address, BYTES, 0, 0, 0) ||
	    driver.cuMemMap(address, BYTES, 0, handle, 0) ||
	    driver.cuMemSetAccess(address, BYTES, &access, 1))
		return ABSENT;
	return export(address, BYTES);
}

static void try_exports(void)
{
	static char host[BYTES] __attribute__((aligned(1 << 16)));

	check("export of cudaMalloc's memory", export(memory, BYTES), 0, NULL);
	check("export of 64 KiB inside", export(memory + (1 << 16), 1 << 16), 0, NULL);
	check("export of a page inside", export(memory + PAGE, PAGE), 0, NULL);
	check("export from inside a page", export(memory + 512, PAGE), is_real() ? -EINVAL : 0,
	      "whole host pages");
	check("export beyond the end", export(memory, 64 * (size_t)BYTES), is_real() ? -EINVAL : 0,
	      "allocated from end to end");
	check("export of host memory", export((uintptr_t)host, BYTES), is_real() ? -EINVAL : 0,
	      "not CUDA device memory");
	check("export of managed memory", export_managed(), -EINVAL, "managed");
	check("export of virtual memory for RDMA", export_virtual(true), 0, NULL);
	check("export of virtual memory not for RDMA", export_virtual(false), UNKNOWN, NULL);
}

/* --- Pages for kernels ----------------------------------------------------------- */

/* Pages of a kernel file, like the status and control pages of the module. */
static void *kernel_pages(int protection)
{
	struct io_uring_params parameters = { 0 };
	int fd = (int)syscall(SYS_io_uring_setup, 64, &parameters);
	void *pages;

	if (fd < 0)
		return NULL;
	pages = mmap(NULL, PAGE, protection, MAP_SHARED | MAP_POPULATE, fd, IORING_OFF_SQES);
	close(fd);
	return pages == MAP_FAILED ? NULL : pages;
}

static void *shared_pages(int protection)
{
	int fd = memfd_create("glue", MFD_CLOEXEC | MFD_ALLOW_SEALING);
	void *pages = MAP_FAILED;

	if (fd >= 0 && !ftruncate(fd, PAGE))
		pages = mmap(NULL, PAGE, protection, MAP_SHARED, fd, 0);
	close(fd);
	return pages == MAP_FAILED ? NULL : pages;
}

/* A dma-buf of host memory, mapped. */
static void *dmabuf_pages(int protection)
{
	struct udmabuf_create create = { .flags = UDMABUF_FLAGS_CLOEXEC, .size = PAGE };
	int device = open("/dev/udmabuf", O_RDWR | O_CLOEXEC), fd;
	void *pages = MAP_FAILED;

	create.memfd = (unsigned int)memfd_create("glue", MFD_CLOEXEC | MFD_ALLOW_SEALING);
	if (device < 0 || ftruncate((int)create.memfd, PAGE) ||
	    fcntl((int)create.memfd, F_ADD_SEALS, F_SEAL_SHRINK))
		return NULL;
	fd = ioctl(device, UDMABUF_CREATE, &create);
	if (fd >= 0)
		pages = mmap(NULL, PAGE, protection, MAP_SHARED, fd, 0);
	return pages == MAP_FAILED ? NULL : pages;
}

/*
 * The first page of a memory BAR of @path, a PCI function's file below
 * /proc/bus/pci.
 */
static void *function_registers(const char *path, const char *resource)
{
	FILE *file = fopen(resource, "re");
	unsigned long long start = 0, end = 0, flags = 0;
	int fd = open(path, O_RDWR | O_CLOEXEC);
	void *pages = MAP_FAILED;
	char line[128];

	while (file && fgets(line, sizeof(line), file) && !(flags & 0x200))
		if (sscanf(line, "%llx %llx %llx", &start, &end, &flags) != 3 || !start)
			flags = 0;
	if (file)
		fclose(file);
	if (fd >= 0 && flags & 0x200 && !ioctl(fd, PCIIOC_MMAP_IS_MEM))
		pages = mmap(NULL, PAGE, PROT_READ | PROT_WRITE, MAP_SHARED, fd, (off_t)start);
	if (fd >= 0)
		close(fd);
	return pages == MAP_FAILED ? NULL : pages;
}

/* Registers of any PCI function that can be mapped; they are never accessed. */
static void *registers(void)
{
	char path[64], resource[64];
	void *found = NULL;
	glob_t functions;
	size_t i;
	unsigned int bus, slot, number;

	if (glob("/sys/bus/pci/devices/0000:*", 0, NULL, &functions))
		return NULL;
	for (i = 0; i < functions.gl_pathc && !found; i++) {
		const char *name = strrchr(functions.gl_pathv[i], '/') + 1;

		if (sscanf(name, "%*x:%x:%x.%x", &bus, &slot, &number) != 3)
			continue;
		snprintf(path, sizeof(path), "/proc/bus/pci/%02x/%02x.%x", bus, slot, number);
		snprintf(resource, sizeof(resource), "/sys/bus/pci/devices/%s/resource", name);
		found = function_registers(path, resource);
	}
	globfree(&functions);
	return found;
}

static int give(enum cuda_memory kind, void *pages, uint64_t *address)
{
	return pages ? cuda_register(cuda, kind, pages, PAGE, address) : ABSENT;
}

/* The GPU clears the page, and the CPU must see that. */
static int give_and_write(void *pages)
{
	uint64_t address;
	int error;

	if (pages)
		memset(pages, FILL, PAGE);
	error = give(CUDA_MEMORY_READ_WRITE, pages, &address);
	if (error)
		return error;
	error = cuda_clear(cuda, address, PAGE) ?: *(char *)pages ? -EBADMSG : 0;
	cuda_unregister(cuda, pages);
	return error;
}

/*
 * The GPU reads what the CPU wrote through another mapping; its own writes must
 * not arrive.
 */
static int give_and_read(void *pages)
{
	char seen[PAGE];
	uint64_t address;
	int error = give(CUDA_MEMORY_READ_ONLY, pages, &address);

	if (error)
		return error;
	error = cuda_download(cuda, seen, address, PAGE) ?: memcmp(seen, pages, PAGE) ? -EBADMSG : 0;
	cuda_unregister(cuda, pages);
	return error;
}

static int give_twice(void)
{
	void *pages = shared_pages(PROT_READ | PROT_WRITE);
	uint64_t address;
	int error = give(CUDA_MEMORY_READ_WRITE, pages, &address);

	return error ? error : give(CUDA_MEMORY_READ_WRITE, pages, &address);
}

static int give_registers(void *pages)
{
	uint64_t address;
	int error = give(CUDA_MEMORY_REGISTERS, pages, &address);

	if (!error)
		cuda_unregister(cuda, pages);
	return error;
}

static void try_pages(void)
{
	check("page of the kernel's, read and written",
	      give_and_write(kernel_pages(PROT_READ | PROT_WRITE)), 0, NULL);
	check("page of the kernel's, read", give_and_read(kernel_pages(PROT_READ)), 0, NULL);
	check("page of a memfd, read and written",
	      give_and_write(shared_pages(PROT_READ | PROT_WRITE)), 0, NULL);
	check("page of a memfd, read", give_and_read(shared_pages(PROT_READ)), 0, NULL);
	check("page of a dma-buf, read and written",
	      give_and_write(dmabuf_pages(PROT_READ | PROT_WRITE)), 0, NULL);
	check("page of a dma-buf, read", give_and_read(dmabuf_pages(PROT_READ)), 0, NULL);
	check("page given twice", give_twice(), is_real() ? -EFAULT : 0, "unregister it first");
	check("registers of a PCI function", give_registers(registers()), UNKNOWN, NULL);
	check("ordinary memory as registers",
	      give_registers(shared_pages(PROT_READ | PROT_WRITE)), UNKNOWN, NULL);
}

/* --- What a process may do -------------------------------------------------------- */

static void drop(int capability)
{
	struct __user_cap_header_struct header = { .version = _LINUX_CAPABILITY_VERSION_3 };
	struct __user_cap_data_struct data[2];

	if (syscall(SYS_capget, &header, data))
		return;
	data[capability / 32].effective &= ~(1U << capability % 32);
	data[capability / 32].permitted &= ~(1U << capability % 32);
	syscall(SYS_capset, &header, data);
}

static void try_without_admin(void)
{
	drop(CAP_SYS_ADMIN);
	check("registers without CAP_SYS_ADMIN, before they are asked for", cuda_may_register(),
	      -EPERM, "CAP_SYS_ADMIN");
	check("registers without CAP_SYS_ADMIN", give_registers(registers()), UNKNOWN, NULL);
}

/* No page may be locked. */
static void try_without_memlock(void)
{
	const struct rlimit none = { 0, 0 };

	setrlimit(RLIMIT_MEMLOCK, &none);
	drop(CAP_IPC_LOCK);
	check("page of a memfd without memory to lock",
	      give_and_write(shared_pages(PROT_READ | PROT_WRITE)), UNKNOWN, NULL);
}

static int open_gpu(void)
{
	int error = nvmepeer_cuda_open(0, &cuda);

	return error ? error : cuda_alloc(cuda, BYTES, &memory);
}

/*
 * Runs in a child before the parent initialises CUDA, which does not survive
 * fork().  The parent continues the count of results.
 */
static void alone(void (*run)(void))
{
	unsigned int before = ktap_count;
	int status = 0;
	pid_t child = fork();

	if (!child) {
		ktap_failures = 0;
		if (open_gpu())
			_exit(255);
		run();
		fflush(stdout);
		_exit((int)((ktap_count - before) << 4 | ktap_failures));
	}
	if (child < 0 || waitpid(child, &status, 0) < 0 || !WIFEXITED(status) ||
	    WEXITSTATUS(status) == 255) {
		ktap_check(false, "a process of its own");
		return;
	}
	ktap_count += (unsigned int)WEXITSTATUS(status) >> 4;
	ktap_failures += WEXITSTATUS(status) & 15;
}

int main(void)
{
	ktap_start();
	alone(try_without_admin);
	alone(try_without_memlock);
	check("GPU", open_gpu(), 0, NULL);
	if (!cuda)
		return ktap_end();
	find_driver();
	print_machine();
	check("order of writes", cuda_keeps_order(cuda), 0, NULL);
	check("registers, before they are asked for", cuda_may_register(), 0, NULL);
	try_exports();
	try_pages();
	cuda_free(cuda, memory);
	nvmepeer_cuda_close(cuda);
	return ktap_end();
}
