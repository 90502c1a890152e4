// SPDX-License-Identifier: MIT OR GPL-2.0
/*
 * buffer.c: describe GPU memory for commands: the caller's memory as data, the
 * glue's for PRP lists.
 */
#include <errno.h>
#include <stdlib.h>
#include <unistd.h>

#include "internal.h"

static const char opening[] = "nvmepeer_cuda_buffer_open";
static const char receiving[] = "nvmepeer_cuda_buffer_from_addresses";

/* The DMA addresses of @count controller pages, for memory of more than one segment. */
static int read_table(struct nvmepeer *ctrl, uint32_t handle, uint64_t offset, uint32_t count,
		      uint64_t **addresses)
{
	int result;

	*addresses = calloc(count + 1ul, sizeof(**addresses));
	if (!*addresses)
		return cuda_fail(opening, -ENOMEM, "out of memory", "", "the host has no free memory");
	result = nvmepeer_buf_table(ctrl, handle, offset, *addresses, count);
	if (result == (int)count)
		return 0;
	free(*addresses);
	if (result < 0)
		return result;
	cuda_fail(opening, -ERANGE, "the table of DMA addresses is too short", "",
		  "the driver returned %d of %u DMA addresses", result, count);
	return -ERANGE;
}

/* All segments end at multiples of an entry, counted so that the first one does. */
uint32_t cuda_shorten_table(uint64_t *addresses, uint32_t count, uint32_t page, uint64_t *dma)
{
	uint32_t first = 0, between = 0, shift = 31 - (uint32_t)__builtin_ctz(page), before, entries;

	for (uint32_t i = 1; i < count; i++) {
		if (addresses[i] == addresses[i - 1] + page)
			continue;
		first = first ? first : i;
		between |= i - first;
	}
	if (between && (uint32_t)__builtin_ctz(between) < shift)
		shift = (uint32_t)__builtin_ctz(between);
	/* An entry need not cover more pages than there are. */
	while (shift && 1u << (shift - 1) >= count)
		shift--;
	before = (0 - first) & ((1u << shift) - 1);
	entries = (uint32_t)(((uint64_t)before + count + (1u << shift) - 1) >> shift);
	addresses[0] -= (uint64_t)before * page;
	for (uint32_t i = 1; i < entries; i++)
		addresses[i] = addresses[((size_t)i << shift) - before];
	*dma = (uint64_t)before * page | shift << 2;
	return entries;
}

int cuda_describe(struct nvmepeer_cuda *cuda, struct nvmepeer *ctrl, uint32_t handle,
		  uint64_t offset, uint64_t bytes, uint64_t table, struct nvmepeer_buffer *buffer)
{
	struct nvme_peer_info info;
	uint64_t *addresses;
	uint32_t count;
	int error;

	buffer->length = bytes;
	buffer->pages = 0;
	error = nvmepeer_buf_contiguous(ctrl, handle, offset, bytes, &buffer->dma);
	if (error != -EMSGSIZE)
		return error;
	error = nvmepeer_info(ctrl, &info, sizeof(info));
	if (error)
		return error;
	count = (uint32_t)(cuda_table_bytes(bytes, info.page_size) / 8);
	error = read_table(ctrl, handle, offset, count, &addresses);
	if (error)
		return error;
	buffer->dma = 0;
	buffer->pages = table;
	error = cuda_upload(cuda, table, addresses, 8 * (size_t)count);
	free(addresses);
	return error;
}

/* The host pages that the caller's memory touches. */
struct page_range {
	uint64_t start, bytes, in_first;
	uint32_t page;
};

static int find_pages(struct nvmepeer *ctrl, uint64_t address, size_t bytes, struct page_range *range)
{
	uint64_t page = (uint64_t)sysconf(_SC_PAGESIZE);
	struct nvme_peer_info info;
	int error = nvmepeer_info(ctrl, &info, sizeof(info));

	if (error)
		return error;
	if (!bytes || address % 4 || bytes > UINT64_MAX - address - page)
		return cuda_fail(opening, -EINVAL, "invalid range of memory",
				 "pass an address that is a multiple of 4, and the length of its memory, above 0",
				 "%zu bytes at %#llx", bytes, (unsigned long long)address);
	page = page < info.page_size ? info.page_size : page;
	range->page = info.page_size;
	range->start = address / page * page;
	range->bytes = cuda_round_up(address + bytes, page) - range->start;
	range->in_first = address - range->start;
	return 0;
}

/*
 * Memory of several segments has a table of pages, which begins with a whole one.
 * Checked before the addresses are read: those expose the buffer, and while it is
 * exposed a failed open could not end its import.
 */
static int check_start(const struct page_range *range, uint32_t segments)
{
	if (segments == 1 || range->in_first % range->page == 0)
		return 0;
	return cuda_fail(opening, -EINVAL, "the memory starts inside a controller page",
			 "pass memory that starts at a multiple of the controller page, or that is contiguous",
			 "it starts %llu bytes into a page of %u and has %u segments of DMA addresses",
			 (unsigned long long)(range->in_first % range->page), range->page, segments);
}

/*
 * The buffer starts at the caller's address, which may be inside a page.  What is behind
 * its end or before its start in the table is never accessed.
 */
static void cut_front(struct nvmepeer_buffer *buffer, const struct page_range *range, size_t bytes)
{
	buffer->length = bytes;
	buffer->dma += range->in_first;
}

/* GPU memory for a table of @entries and for the buffer. */
static int alloc_own(struct nvmepeer_cuda_buffer *opened, uint32_t entries)
{
	opened->bytes = 8 * (uint64_t)entries + sizeof(struct nvmepeer_buffer);
	return cuda_alloc(opened->cuda, opened->bytes, &opened->memory);
}

/* Memory of several segments; its table is allocated when its length is known. */
static int describe_table(struct nvmepeer_cuda_buffer *opened, const struct page_range *range)
{
	uint32_t count = (uint32_t)(range->bytes / range->page), entries;
	uint64_t *addresses;
	int error = read_table(opened->ctrl, opened->handle, 0, count, &addresses);

	if (error)
		return error;
	entries = cuda_shorten_table(addresses, count, range->page, &opened->buffer.dma);
	error = alloc_own(opened, entries);
	opened->buffer.pages = opened->memory;
	if (!error)
		error = cuda_upload(opened->cuda, opened->memory, addresses, 8 * (size_t)entries);
	free(addresses);
	return error;
}

static int describe_range(struct nvmepeer_cuda_buffer *opened, const struct page_range *range)
{
	int error = alloc_own(opened, 0);

	return error ? error : nvmepeer_buf_contiguous(opened->ctrl, opened->handle, 0, range->bytes,
						       &opened->buffer.dma);
}

/* The buffer lies behind its table. */
static int upload_buffer(struct nvmepeer_cuda_buffer *opened)
{
	uint64_t device = opened->memory + opened->bytes - sizeof(opened->buffer);

	opened->device = (const struct nvmepeer_buffer *)(uintptr_t)device;
	return cuda_upload(opened->cuda, device, &opened->buffer, sizeof(opened->buffer));
}

static int open_parts(struct nvmepeer_cuda_buffer *opened, const struct page_range *range, size_t bytes)
{
	uint32_t segments;
	int error = cuda_import(opened->cuda, opened->ctrl, range->start, range->bytes,
				&opened->handle, &segments);

	if (!error)
		error = check_start(range, segments);
	if (!error)
		error = segments == 1 ? describe_range(opened, range) :
					describe_table(opened, range);
	if (error)
		return error;
	cut_front(&opened->buffer, range, bytes);
	return upload_buffer(opened);
}

/*
 * Undo a failed open and keep its explanation; waits for no kernel.  The import
 * of a buffer that has been exposed may stay until the controller's node is
 * closed: only the allocation of a table, and copies to the GPU come after that.  The
 * caller's memory stays the caller's, and the glue's own is never imported.
 */
static void undo(struct nvmepeer_cuda_buffer *opened)
{
	struct nvmepeer_explanation why;

	nvmepeer_explain(&why, sizeof(why));
	cuda_release(opened->ctrl, &opened->handle);
	if (opened->memory)
		cuda_keep(opened->cuda, opened->memory, opened->bytes);
	free(opened);
	nvmepeer_fail(&why, sizeof(why));
}

int nvmepeer_cuda_buffer_open(struct nvmepeer *ctrl, struct nvmepeer_cuda *cuda, void *pointer,
			      size_t bytes, struct nvmepeer_cuda_buffer **buffer)
{
	struct nvmepeer_cuda_buffer *opened = calloc(1, sizeof(*opened));
	struct page_range range = { .page = 4096 };	/* minimum controller page */
	int error;

	if (!opened)
		return cuda_fail(opening, -ENOMEM, "out of memory", "", "the host has no free memory");
	opened->ctrl = ctrl;
	opened->cuda = cuda;
	opened->address = (uintptr_t)pointer;
	error = find_pages(ctrl, (uintptr_t)pointer, bytes, &range);
	if (!error)
		error = open_parts(opened, &range, bytes);
	if (!error)
		*buffer = opened;
	else
		undo(opened);
	return error;
}

/* ---- Memory that another process has imported ---- */

static int check_addresses(uint64_t start, size_t bytes, uint32_t page, const uint64_t *addresses,
			   uint32_t count)
{
	static const char what[] = "invalid DMA addresses of the memory";

	if (!bytes || start % 4 || bytes > UINT64_MAX - start - page)
		return cuda_fail(receiving, -EINVAL, "invalid range of memory",
				 "pass an address that is a multiple of 4, and a length above 0",
				 "%zu bytes at %#llx", bytes, (unsigned long long)start);
	if (page < 4096 || page & (page - 1))
		return cuda_fail(receiving, -EINVAL, what, "pass the page size of the controller",
				 "pages of %u bytes", page);
	if (count != 1 && (start % page || count != cuda_table_bytes(bytes, page) / 8))
		return cuda_fail(receiving, -EINVAL, what,
				 "pass one address of contiguous memory, or that of each page from the start of a page on",
				 "%u addresses of %zu bytes at %#llx, in pages of %u", count, bytes,
				 (unsigned long long)start, page);
	for (uint32_t i = 0; i < count; i++)
		if (addresses[i] % (count == 1 ? 4 : page))
			return cuda_fail(receiving, -EINVAL, what, "pass what nvmepeer_buf_table() returned",
					 "address %u is %#llx", i, (unsigned long long)addresses[i]);
	return 0;
}

int nvmepeer_cuda_buffer_from_addresses(struct nvmepeer_cuda *cuda, void *pointer, size_t bytes,
					uint32_t page_size, const uint64_t *addresses, uint32_t count,
					struct nvmepeer_cuda_buffer **buffer)
{
	uint64_t start = (uintptr_t)pointer;
	struct nvmepeer_cuda_buffer *opened;
	int error = check_addresses(start, bytes, page_size, addresses, count);

	if (error)
		return error;
	opened = calloc(1, sizeof(*opened));
	if (!opened)
		return cuda_fail(receiving, -ENOMEM, "out of memory", "", "the host has no free memory");
	opened->cuda = cuda;
	opened->address = start;
	opened->buffer.length = bytes;
	error = alloc_own(opened, count == 1 ? 0 : count);
	if (count == 1) {
		opened->buffer.dma = addresses[0];
	} else if (!error) {
		opened->page = page_size;
		opened->buffer.pages = opened->memory;
		error = cuda_upload(cuda, opened->memory, addresses, 8 * (size_t)count);
	}
	if (!error)
		error = upload_buffer(opened);
	if (!error)
		*buffer = opened;
	else
		undo(opened);
	return error;
}

/*
 * The controller may access the memory until its import is released, so an
 * import that cannot be released stays open.
 */
int nvmepeer_cuda_buffer_close(struct nvmepeer_cuda_buffer *buffer)
{
	int error;

	if (!buffer)
		return 0;
	error = cuda_release(buffer->ctrl, &buffer->handle);
	if (error)
		return error;
	if (buffer->memory)
		cuda_free(buffer->cuda, buffer->memory);
	free(buffer);
	return 0;
}

const struct nvmepeer_buffer *nvmepeer_cuda_buffer_host(const struct nvmepeer_cuda_buffer *buffer)
{
	return &buffer->buffer;
}

const struct nvmepeer_buffer *nvmepeer_cuda_buffer_device(const struct nvmepeer_cuda_buffer *buffer)
{
	return buffer->device;
}
