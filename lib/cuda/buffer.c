// SPDX-License-Identifier: MIT OR GPL-2.0
/*
 * buffer.c: GPU memory as commands name it: the caller's own as data, and the
 * glue's for PRP lists.
 */
#include <errno.h>
#include <stdlib.h>
#include <unistd.h>

#include "internal.h"

static const char opening[] = "nvmepeer_cuda_buffer_open";

/* The table of DMA addresses of memory that is not one range, into GPU memory. */
static int upload_table(struct nvmepeer_cuda *cuda, struct nvmepeer *ctrl, uint32_t handle,
			uint64_t offset, uint32_t count, uint64_t table)
{
	uint64_t *addresses = calloc(count, sizeof(*addresses));
	int result;

	if (!addresses)
		return cuda_fail(opening, -ENOMEM, "no memory is left", "", "out of memory");
	result = nvmepeer_buf_table(ctrl, handle, offset, addresses, count);
	if (result == (int)count)
		result = cuda_upload(cuda, table, addresses, 8 * (size_t)count);
	else if (result >= 0)
		result = cuda_fail(opening, -ERANGE, "the buffer ends early", "",
				   "%d of %u DMA addresses were given", result, count);
	free(addresses);
	return result;
}

int cuda_describe(struct nvmepeer_cuda *cuda, struct nvmepeer *ctrl, uint32_t handle,
		  uint64_t offset, uint64_t bytes, uint64_t table, struct nvmepeer_buffer *buffer)
{
	struct nvme_peer_info info;
	int error;

	buffer->length = bytes;
	buffer->pages = 0;
	error = nvmepeer_buf_contiguous(ctrl, handle, offset, bytes, &buffer->dma);
	if (error != -EMSGSIZE)
		return error;
	error = nvmepeer_info(ctrl, &info, sizeof(info));
	if (error)
		return error;
	buffer->dma = 0;
	buffer->pages = table;
	return upload_table(cuda, ctrl, handle, offset,
			    (uint32_t)(cuda_table_bytes(bytes, info.page_size) / 8), table);
}

/* The whole pages that the caller's memory touches. */
struct span {
	uint64_t start, bytes, in_first;
	uint32_t page;
};

static int find_span(struct nvmepeer *ctrl, uint64_t address, size_t bytes, struct span *span)
{
	uint64_t page = (uint64_t)sysconf(_SC_PAGESIZE);
	struct nvme_peer_info info;
	int error = nvmepeer_info(ctrl, &info, sizeof(info));

	if (error)
		return error;
	if (!bytes || address % 4)
		return cuda_fail(opening, -EINVAL, "the memory cannot hold data",
				 "give a multiple of 4 as the address, and some bytes",
				 "%zu bytes at %#llx", bytes, (unsigned long long)address);
	page = page < info.page_size ? info.page_size : page;
	span->page = info.page_size;
	span->start = address / page * page;
	span->bytes = cuda_round_up(address + bytes, page) - span->start;
	span->in_first = address - span->start;
	return 0;
}

/* The buffer begins where the caller's memory does, not where its pages do. */
static int cut_front(struct nvmepeer_buffer *buffer, const struct span *span, size_t bytes)
{
	buffer->length = bytes;
	if (!buffer->pages) {
		buffer->dma += span->in_first;
		return 0;
	}
	if (span->in_first % span->page)
		return cuda_fail(opening, -EINVAL, "the memory starts inside a controller page",
				 "give memory that starts at a multiple of the controller page, or is contiguous",
				 "it starts %llu bytes into a page of %u and is not one range of DMA addresses",
				 (unsigned long long)(span->in_first % span->page), span->page);
	buffer->pages += span->in_first / span->page * 8;
	return 0;
}

static int open_parts(struct nvmepeer_cuda_buffer *opened, const struct span *span, size_t bytes)
{
	uint64_t table = cuda_table_bytes(span->bytes, span->page);
	int error = cuda_import(opened->cuda, opened->ctrl, span->start, span->bytes,
				&opened->handle);

	if (!error)
		error = cuda_alloc(opened->cuda, table + sizeof(opened->buffer), &opened->memory);
	if (!error)
		error = cuda_describe(opened->cuda, opened->ctrl, opened->handle, 0, span->bytes,
				      opened->memory, &opened->buffer);
	if (!error)
		error = cut_front(&opened->buffer, span, bytes);
	if (error)
		return error;
	opened->device = (const struct nvmepeer_buffer *)(uintptr_t)(opened->memory + table);
	return cuda_upload(opened->cuda, opened->memory + table, &opened->buffer,
			   sizeof(opened->buffer));
}

int nvmepeer_cuda_buffer_open(struct nvmepeer *ctrl, struct nvmepeer_cuda *cuda, void *pointer,
			      size_t bytes, struct nvmepeer_cuda_buffer **buffer)
{
	struct nvmepeer_cuda_buffer *opened = calloc(1, sizeof(*opened));
	struct span span = { .page = 4096 };	/* of a controller, at least */
	int error;

	if (!opened)
		return cuda_fail(opening, -ENOMEM, "no memory is left", "", "out of memory");
	opened->ctrl = ctrl;
	opened->cuda = cuda;
	error = find_span(ctrl, (uintptr_t)pointer, bytes, &span);
	if (!error)
		error = open_parts(opened, &span, bytes);
	if (error)
		nvmepeer_cuda_buffer_close(opened);
	else
		*buffer = opened;
	return error;
}

void nvmepeer_cuda_buffer_close(struct nvmepeer_cuda_buffer *buffer)
{
	if (!buffer)
		return;
	if (buffer->handle)
		nvmepeer_buf_release(buffer->ctrl, buffer->handle);
	if (buffer->memory)
		cuda_free(buffer->cuda, buffer->memory);
	free(buffer);
}

const struct nvmepeer_buffer *nvmepeer_cuda_buffer_host(const struct nvmepeer_cuda_buffer *buffer)
{
	return &buffer->buffer;
}

const struct nvmepeer_buffer *nvmepeer_cuda_buffer_device(const struct nvmepeer_cuda_buffer *buffer)
{
	return buffer->device;
}
