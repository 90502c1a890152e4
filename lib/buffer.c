// SPDX-License-Identifier: MIT OR GPL-2.0
/*
 * Buffers: dma-bufs that the controller reads and writes, and host memory as a dma-buf.
 */
#include <fcntl.h>
#include <linux/dma-heap.h>
#include <linux/udmabuf.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "internal.h"

/*
 * The most frequent cause is the route to the memory.  Query it now: later the caller
 * may have closed the dma-buf.
 */
static int import_failed(struct nvmepeer *ctrl, int result,
			 const struct nvme_peer_buf_import *request, size_t size)
{
	struct failure failure;

	failure_init(&failure, CALL_BUF_IMPORT, result, ctrl->node);
	struct_copy(&failure.request.import, sizeof(failure.request.import), request, size);
	if (peer_info(ctrl->fd, &failure.info) < 0)
		failure.info.size = 0;
	failure.route.size = sizeof(failure.route);
	failure.route.dmabuf_fd = request->dmabuf_fd;
	if (peer_ioctl(ctrl->fd, NVME_PEER_ROUTE, &failure.route) < 0)
		failure.route.size = 0;
	return failure_record(&failure);
}

enum { IMPORT_LEAST = SIZE_THROUGH(struct nvme_peer_buf_import, reserved) };

int nvmepeer_buf_import_part(struct nvmepeer *ctrl,
			     struct nvme_peer_buf_import *buffer, size_t size)
{
	int result = struct_size_in(CALL_BUF_IMPORT, ctrl->node, buffer, size, IMPORT_LEAST);

	if (result)
		return result;
	result = peer_ioctl(ctrl->fd, NVME_PEER_BUF_IMPORT, buffer);
	return result < 0 ? import_failed(ctrl, result, buffer, size) : 0;
}

int nvmepeer_buf_import(struct nvmepeer *ctrl, int dmabuf_fd, uint32_t flags,
			struct nvme_peer_buf_import *buffer, size_t size)
{
	int result = struct_size_out(CALL_BUF_IMPORT, ctrl->node, buffer, size, IMPORT_LEAST);

	if (result)
		return result;
	buffer->flags = flags;
	buffer->dmabuf_fd = dmabuf_fd;
	return nvmepeer_buf_import_part(ctrl, buffer, size);
}

int nvmepeer_buf_release(struct nvmepeer *ctrl, uint32_t handle)
{
	struct nvme_peer_buf_release request = {
		.size = sizeof(request),
		.handle = handle,
	};
	int result = peer_ioctl(ctrl->fd, NVME_PEER_BUF_RELEASE, &request);
	struct failure failure;

	if (result >= 0)
		return result;
	failure_init(&failure, CALL_BUF_RELEASE, result, ctrl->node);
	failure.request.release = request;
	return failure_record(&failure);
}

static int table_failed(struct nvmepeer *ctrl, int result, uint32_t handle,
			uint64_t offset)
{
	struct failure failure;

	failure_init(&failure, CALL_BUF_TABLE, result, ctrl->node);
	failure.request.table.handle = handle;
	failure.request.table.offset = offset;
	if (peer_info(ctrl->fd, &failure.info) < 0)
		failure.info.size = 0;
	return failure_record(&failure);
}

/* Ranges that one call of the kernel reports. */
enum { RANGES_BATCH = 64 };

/* Returns the number of ranges from @offset on, or a negative errno. */
static int read_ranges(struct nvmepeer *ctrl, uint32_t handle, uint64_t offset,
		       struct nvme_peer_buf_range ranges[RANGES_BATCH])
{
	struct nvme_peer_buf_table request = {
		.size = sizeof(request),
		.handle = handle,
		.count = RANGES_BATCH,
		.offset = offset,
		.ranges = (uintptr_t)ranges,
	};
	int result = peer_ioctl(ctrl->fd, NVME_PEER_BUF_TABLE, &request);

	return result < 0 ? result : (int)request.count;
}

/* Writes the address of each page of a range, at most @count; returns how many. */
static uint32_t list_pages(const struct nvme_peer_buf_range *range, uint32_t page,
			   uint64_t *addresses, uint32_t count)
{
	uint32_t pages = 0;

	while (pages < count && (uint64_t)pages * page < range->length) {
		addresses[pages] = range->address + (uint64_t)pages * page;
		pages++;
	}
	return pages;
}

int nvmepeer_buf_table(struct nvmepeer *ctrl, uint32_t handle, uint64_t offset,
		       uint64_t *addresses, uint32_t count)
{
	struct nvme_peer_buf_range ranges[RANGES_BATCH];
	struct nvme_peer_info info;
	uint32_t done = 0;
	uint64_t at;
	int got, i;

	got = nvmepeer_info(ctrl, &info, sizeof(info));
	if (got < 0)
		return got;
	do {
		at = offset + (uint64_t)done * info.page_size;
		got = read_ranges(ctrl, handle, at, ranges);
		/* The last call may have ended with the buffer. */
		if (done && got == -ERANGE)
			break;
		if (got < 0)
			return table_failed(ctrl, got, handle, at);
		for (i = 0; i < got; i++)
			done += list_pages(&ranges[i], info.page_size, addresses + done,
					   count - done);
	} while (done < count && got == RANGES_BATCH);
	return (int)done;
}

int nvmepeer_buf_contiguous(struct nvmepeer *ctrl, uint32_t handle,
			    uint64_t offset, uint64_t length, uint64_t *dma)
{
	struct nvme_peer_buf_range ranges[RANGES_BATCH];
	uint64_t done = 0;
	int count, i;

	while (done < length) {
		count = read_ranges(ctrl, handle, offset + done, ranges);
		if (count < 0)
			return table_failed(ctrl, count, handle, offset + done);
		if (!done)
			*dma = ranges[0].address;
		for (i = 0; i < count && done < length; i++) {
			if (ranges[i].address != *dma + done)
				return table_failed(ctrl, -EMSGSIZE, handle, offset + done);
			done += ranges[i].length;
		}
	}
	return 0;
}

/* Returns a dma-buf of @length bytes of shared memory, or a negative errno. */
static int udmabuf_create(size_t length)
{
	struct udmabuf_create request = { .flags = UDMABUF_FLAGS_CLOEXEC, .size = length };
	int device, memory, result;

	device = open("/dev/udmabuf", O_RDWR | O_CLOEXEC);
	if (device < 0)
		return -errno;
	memory = memfd_create("nvmepeer", MFD_CLOEXEC | MFD_ALLOW_SEALING);
	if (memory < 0) {
		result = -errno;
		goto close_device;
	}
	/* udmabuf requires memory that is sealed against shrinking. */
	if (ftruncate(memory, (off_t)length) ||
	    fcntl(memory, F_ADD_SEALS, F_SEAL_SHRINK)) {
		result = -errno;
		goto close_memory;
	}
	request.memfd = (uint32_t)memory;
	result = peer_ioctl(device, UDMABUF_CREATE, &request);

close_memory:
	close(memory);
close_device:
	close(device);
	return result;
}

/* Returns a dma-buf of @length bytes from the system heap, or a negative errno. */
static int heap_create(size_t length)
{
	struct dma_heap_allocation_data request = {
		.len = length,
		.fd_flags = O_RDWR | O_CLOEXEC,
	};
	int device, result;

	device = open("/dev/dma_heap/system", O_RDWR | O_CLOEXEC);
	if (device < 0)
		return -errno;
	result = peer_ioctl(device, DMA_HEAP_IOCTL_ALLOC, &request);
	close(device);
	return result < 0 ? result : (int)request.fd;
}

static int hostmem_failed(int result)
{
	return failure_set(CALL_HOSTMEM, result, "host memory");
}

/**
 * struct nvmepeer_hostmem - host memory that is also a dma-buf
 * @address: mapping in this process
 * @length: bytes, whole pages
 * @dmabuf_fd: the dma-buf
 */
struct nvmepeer_hostmem {
	void *address;
	size_t length;
	int dmabuf_fd;
};

/* Returns a dma-buf of @length bytes, or a negative errno. */
static int hostmem_create(size_t length)
{
	int fd = udmabuf_create(length);

	if (fd == -ENOENT)
		fd = heap_create(length);
	return fd == -ENOENT ? -ENOSYS : fd;
}

/* Maps a dma-buf, which belongs to @memory on success and is closed otherwise. */
static int hostmem_adopt(int fd, size_t length, struct nvmepeer_hostmem **memory)
{
	struct nvmepeer_hostmem *created = calloc(1, sizeof(*created));
	int result = -ENOMEM;

	if (!created)
		goto close;
	created->address = mmap(NULL, length, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	if (created->address == MAP_FAILED) {
		result = -errno;
		goto free;
	}
	created->length = length;
	created->dmabuf_fd = fd;
	*memory = created;
	return 0;

free:
	free(created);
close:
	close(fd);
	return result;
}

int nvmepeer_hostmem_alloc(size_t length, struct nvmepeer_hostmem **memory)
{
	size_t page = (size_t)sysconf(_SC_PAGESIZE);
	int result;

	if (!length || length > SIZE_MAX - page)
		return hostmem_failed(-EINVAL);
	length = (length + page - 1) / page * page;
	result = hostmem_create(length);
	if (result >= 0)
		result = hostmem_adopt(result, length, memory);
	return result ? hostmem_failed(result) : 0;
}

int nvmepeer_buf_alloc(struct nvmepeer *ctrl, size_t length, struct nvmepeer_hostmem **memory)
{
	struct nvme_peer_buf_alloc request = { .size = sizeof(request), .length = length };
	int result = peer_ioctl(ctrl->fd, NVME_PEER_BUF_ALLOC, &request);

	if (result >= 0)
		result = hostmem_adopt(request.fd, (size_t)request.length, memory);
	return result ? failure_set(CALL_BUF_ALLOC, result, ctrl->node) : 0;
}

void nvmepeer_hostmem_free(struct nvmepeer_hostmem *memory)
{
	if (!memory)
		return;
	munmap(memory->address, memory->length);
	close(memory->dmabuf_fd);
	free(memory);
}

void *nvmepeer_hostmem_address(const struct nvmepeer_hostmem *memory)
{
	return memory->address;
}

size_t nvmepeer_hostmem_length(const struct nvmepeer_hostmem *memory)
{
	return memory->length;
}

int nvmepeer_hostmem_fd(const struct nvmepeer_hostmem *memory)
{
	return memory->dmabuf_fd;
}
