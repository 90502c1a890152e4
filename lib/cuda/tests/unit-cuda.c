// SPDX-License-Identifier: GPL-2.0-only
/*
 * unit-cuda.c: the CUDA glue against a libcuda without a GPU: every refusal has
 * its own errno and a message that says what to do, and leaves nothing behind.
 */
#include <dlfcn.h>
#include <errno.h>
#include <libgen.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../nvmepeer_cuda.h"
#include "../../../selftests/device/ktap.h"

static void *fake;

static int fake_count(const char *name)
{
	return *(int *)dlsym(fake, name);
}

/* The next call of libcuda's @call fails with @error. */
static void refuse(const char *call, int error)
{
	char text[80];

	snprintf(text, sizeof(text), "%s=%d", call, error);
	setenv("FAKE_CUDA_FAIL", text, 1);
}

static bool says(int got, int expected, const char *message)
{
	unsetenv("FAKE_CUDA_FAIL");
	if (got == expected && strstr(nvmepeer_cuda_why(), message))
		return true;
	printf("# got %d, expected %d: %s\n", got, expected, nvmepeer_cuda_why());
	return false;
}

static bool opening(const char *library, const char *old)
{
	struct nvmepeer_cuda *cuda;
	bool good;

	setenv("NVMEPEER_LIBCUDA", "/nonexistent/libcuda.so.1", 1);
	good = says(nvmepeer_cuda_open(0, &cuda), -ENOENT, "Install NVIDIA's driver");
	setenv("NVMEPEER_LIBCUDA", old, 1);
	good = says(nvmepeer_cuda_open(0, &cuda), -ENOSYS, "cuMemGetHandleForAddressRange") && good;
	setenv("NVMEPEER_LIBCUDA", library, 1);
	refuse("cuInit", 100);
	good = says(nvmepeer_cuda_open(0, &cuda), -ENODEV, "cuInit") && good;
	return says(nvmepeer_cuda_open(3, &cuda), -ENODEV, "no CUDA device 3") && good;
}

static bool memory(struct nvmepeer_cuda *cuda)
{
	uint64_t address;
	int fd = -1;
	bool good;

	refuse("cuMemAlloc_v2", 2);
	good = says(nvmepeer_cuda_alloc(cuda, 1, &address), -ENOMEM, "cuMemAlloc");
	refuse("cuMemsetD8_v2", 719);
	good = says(nvmepeer_cuda_alloc(cuda, 1, &address), -EIO, "cuMemsetD8") && good;
	good = good && !fake_count("fake_allocations") && !nvmepeer_cuda_alloc(cuda, 1, &address);
	good = good && !nvmepeer_cuda_export(cuda, address, 2 << 20, &fd) && fd == 77;
	refuse("cuMemGetHandleForAddressRange", 801);
	good = says(nvmepeer_cuda_export(cuda, address, 2 << 20, &fd), -EOPNOTSUPP, "nvidia-open") &&
	       good;
	nvmepeer_cuda_free(cuda, address);
	return good && !fake_count("fake_allocations");
}

static bool registering(struct nvmepeer_cuda *cuda)
{
	static const struct {
		int cuda, result;
		const char *message;
	} cases[] = {
		{ 800, -EPERM, "CAP_SYS_ADMIN" },
		{ 1, -EFAULT, "570.133.07" },
		{ 304, -EFAULT, "dma_map_resource" },
		{ 801, -EOPNOTSUPP, "virtual machine" },
		{ 999, -EIO, "CUDA_ERROR_999" },
	};
	static char page[4096];
	uint64_t address;
	bool good = true;

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		refuse("cuMemHostRegister_v2", cases[i].cuda);
		good = says(nvmepeer_cuda_register(cuda, NVMEPEER_CUDA_REGISTERS, page, 4096,
						   &address),
			    cases[i].result, cases[i].message) && good;
	}
	refuse("cuMemHostRegister_v2", 712);
	good = says(nvmepeer_cuda_register(cuda, NVMEPEER_CUDA_PAGES, page, 4096, &address),
		    -EEXIST, "before") && good;
	refuse("cuMemHostGetDevicePointer_v2", 1);
	good = says(nvmepeer_cuda_register(cuda, NVMEPEER_CUDA_PAGES, page, 4096, &address), -EIO,
		    "cuMemHostGetDevicePointer") && good;
	return good && !fake_count("fake_registrations");
}

static bool flags(struct nvmepeer_cuda *cuda)
{
	static const int expected[] = { 3, 3 | 8, 3 | 4 };
	static char page[4096];
	uint64_t address;
	bool good = true;

	for (int kind = NVMEPEER_CUDA_PAGES; kind <= NVMEPEER_CUDA_REGISTERS; kind++) {
		good = good && !nvmepeer_cuda_register(cuda, (enum nvmepeer_cuda_memory)kind, page,
						       4096, &address) &&
		       address == (uintptr_t)page &&
		       fake_count("fake_register_flags") == expected[kind];
		nvmepeer_cuda_unregister(cuda, page);
	}
	return good && !fake_count("fake_registrations") && !fake_count("fake_contexts");
}

int main(int argc, char **argv)
{
	struct nvmepeer_cuda *cuda;
	char library[4096], old[4096];
	const char *here;

	(void)argc;
	here = dirname(argv[0]);	/* cuts it short in place */
	snprintf(library, sizeof(library), "%s/../lib/fake-libcuda.so", here);
	snprintf(old, sizeof(old), "%s/../lib/fake-libcuda-old.so", here);
	ktap_start();
	ktap_check(opening(library, old), "open: no library, old library, no driver, no GPU");
	if (nvmepeer_cuda_open(0, &cuda)) {
		ktap_check(false, "open");
		return ktap_end();
	}
	fake = dlopen(library, RTLD_NOW);
	ktap_check(memory(cuda), "memory: refusals leave nothing allocated");
	ktap_check(registering(cuda), "register: every refusal explained, nothing left");
	ktap_check(flags(cuda), "register: pages, read-only pages, registers");
	nvmepeer_cuda_close(cuda);
	return ktap_end();
}
