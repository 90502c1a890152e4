// SPDX-License-Identifier: GPL-2.0-only
/*
 * disk.c: a libcuda for programs without a controller (disk.py): a kernel serves the
 * queue pairs of the fake kernel (lib/tests/fake.c).  So the DMA address of a buffer is
 * its GPU address, and doorbells are GPU memory, as a load from host memory would wait
 * for the data on the link.  All other functions are those of the real library, which
 * this one is linked with.
 */
#include <dlfcn.h>
#include <stddef.h>
#include <stdint.h>

#include "../../lib/tests/fake.h"

enum { REGISTER_IOMEMORY = 4, MAX_DOORBELLS = 64 };

/* Doorbell pages: mappings of the library, and the GPU memory in their place. */
static struct doorbells {
	void *mapping;
	uint64_t memory;
} doorbells[MAX_DOORBELLS];

int cuMemGetHandleForAddressRange(void *handle, uint64_t address, size_t bytes, int type,
				  unsigned long long flags);
int cuMemHostRegister_v2(void *memory, size_t bytes, unsigned int flags);
int cuMemHostUnregister(void *memory);
int cuMemHostGetDevicePointer_v2(uint64_t *address, void *memory, unsigned int flags);
/* Of the real library. */
int cuMemAlloc_v2(uint64_t *address, size_t bytes);
int cuMemFree_v2(uint64_t address);
int cuMemsetD8_v2(uint64_t address, unsigned char value, size_t bytes);

/* The file is real, too: only what CUDA exports can be imported. */
int cuMemGetHandleForAddressRange(void *handle, uint64_t address, size_t bytes, int type,
				  unsigned long long flags)
{
	int (*export)(void *, uint64_t, size_t, int, unsigned long long) =
		(int (*)(void *, uint64_t, size_t, int, unsigned long long))
		dlsym(RTLD_NEXT, "cuMemGetHandleForAddressRange");
	int error = export(handle, address, bytes, type, flags);

	if (!error)
		fake.address = address;
	return error;
}

/* The entry of a mapping; of NULL, a free one.  NULL if there is none. */
static struct doorbells *find(void *mapping)
{
	for (int i = 0; i < MAX_DOORBELLS; i++)
		if (doorbells[i].mapping == mapping)
			return &doorbells[i];
	return NULL;
}

int cuMemHostRegister_v2(void *memory, size_t bytes, unsigned int flags)
{
	int (*enroll)(void *, size_t, unsigned int) =
		(int (*)(void *, size_t, unsigned int))dlsym(RTLD_NEXT, "cuMemHostRegister_v2");
	struct doorbells *page = find(NULL);
	int error;

	if (!(flags & REGISTER_IOMEMORY) || !page)
		return enroll(memory, bytes, flags & ~REGISTER_IOMEMORY);
	error = cuMemAlloc_v2(&page->memory, bytes);
	if (!error)
		error = cuMemsetD8_v2(page->memory, 0, bytes);
	if (!error)
		page->mapping = memory;
	return error;
}

int cuMemHostUnregister(void *memory)
{
	int (*real)(void *) = (int (*)(void *))dlsym(RTLD_NEXT, "cuMemHostUnregister");
	struct doorbells *page = find(memory);

	if (!page)
		return real(memory);
	page->mapping = NULL;
	return cuMemFree_v2(page->memory);
}

int cuMemHostGetDevicePointer_v2(uint64_t *address, void *memory, unsigned int flags)
{
	int (*real)(uint64_t *, void *, unsigned int) =
		(int (*)(uint64_t *, void *, unsigned int))
		dlsym(RTLD_NEXT, "cuMemHostGetDevicePointer_v2");
	struct doorbells *page = find(memory);

	if (!page)
		return real(address, memory, flags);
	*address = page->memory;
	return 0;
}
