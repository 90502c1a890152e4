// SPDX-License-Identifier: MIT OR GPL-2.0
/*
 * Buffers: dma-bufs that the controller reads and writes, and host memory that
 * can become one.
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
 * An import is refused for the way to the memory more often than for anything
 * else, so the record asks the kernel for that way while the dma-buf is there.
 */
static int import_failed(struct nvmepeer *ctrl, int result,
			 const struct nvme_peer_buf_import *request, size_t size)
{
	struct failure failure;

	failure_init(&failure, CALL_BUF_IMPORT, result, ctrl->node);
	sized_copy(&failure.request.import, sizeof(failure.request.import), request, size);
	if (peer_info(ctrl->fd, &failure.info) < 0)
		failure.info.size = 0;
	failure.route.size = sizeof(failure.route);
	failure.route.dmabuf_fd = request->dmabuf_fd;
	if (peer_ioctl(ctrl->fd, NVME_PEER_ROUTE, &failure.route) < 0)
		failure.route.size = 0;
	return failure_note(&failure);
}

enum { IMPORT_LEAST = BYTES_TO(struct nvme_peer_buf_import, reserved) };

int nvmepeer_buf_import_part(struct nvmepeer *ctrl,
			     struct nvme_peer_buf_import *buffer, size_t size)
{
	int result = sized_request(CALL_BUF_IMPORT, ctrl->node, buffer, size, IMPORT_LEAST);

	if (result)
		return result;
	result = peer_ioctl(ctrl->fd, NVME_PEER_BUF_IMPORT, buffer);
	return result < 0 ? import_failed(ctrl, result, buffer, size) : 0;
}

int nvmepeer_buf_import(struct nvmepeer *ctrl, int dmabuf_fd, uint32_t flags,
			struct nvme_peer_buf_import *buffer, size_t size)
{
	int result = sized_answer(CALL_BUF_IMPORT, ctrl->node, buffer, size, IMPORT_LEAST);

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
	return failure_note(&failure);
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
	return failure_note(&failure);
}

int nvmepeer_buf_table(struct nvmepeer *ctrl, uint32_t handle, uint64_t offset,
		       uint64_t *addresses, uint32_t count)
{
	struct nvme_peer_buf_table request = {
		.size = sizeof(request),
		.handle = handle,
		.count = count,
		.offset = offset,
		.addresses = (uintptr_t)addresses,
	};
	int result;

	result = peer_ioctl(ctrl->fd, NVME_PEER_BUF_TABLE, &request);
	if (result < 0)
		return table_failed(ctrl, result, handle, offset);
	return (int)request.count;
}

/* Addresses asked for at once by nvmepeer_buf_contiguous(). */
enum { TABLE_PIECE = 256 };

int nvmepeer_buf_contiguous(struct nvmepeer *ctrl, uint32_t handle,
			    uint64_t offset, uint64_t length, uint64_t *dma)
{
	uint64_t addresses[TABLE_PIECE], expected = 0, done = 0, page;
	struct nvme_peer_info info;
	int count, i;

	count = nvmepeer_info(ctrl, &info, sizeof(info));
	if (count < 0)
		return count;
	page = info.page_size;
	while (done < length) {
		count = nvmepeer_buf_table(ctrl, handle, offset + done, addresses,
					   TABLE_PIECE);
		if (count <= 0)
			return count ? count : table_failed(ctrl, -ERANGE, handle, offset + done);
		if (!done)
			*dma = expected = addresses[0];
		for (i = 0; i < count && done < length; i++, done += page, expected += page)
			if (addresses[i] != expected)
				return table_failed(ctrl, -EMSGSIZE, handle, offset + done);
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
	/* udmabuf takes only memory that nobody can shrink under it. */
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

/* Returns a dma-buf of @length bytes of the system heap, or a negative errno. */
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
	return failure_tell(CALL_HOSTMEM, result, "host memory");
}

/**
 * struct nvmepeer_hostmem - host memory that is also a dma-buf
 * @address: where it is mapped in this process
 * @length: bytes, whole pages
 * @dmabuf_fd: the dma-buf
 */
struct nvmepeer_hostmem {
	void *address;
	size_t length;
	int dmabuf_fd;
};

static int hostmem_make(size_t length, struct nvmepeer_hostmem *memory)
{
	int fd, result;

	fd = udmabuf_create(length);
	if (fd == -ENOENT)
		fd = heap_create(length);
	if (fd < 0)
		return fd == -ENOENT ? -ENOSYS : fd;
	memory->address = mmap(NULL, length, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	if (memory->address == MAP_FAILED) {
		result = -errno;
		close(fd);
		return result;
	}
	memory->length = length;
	memory->dmabuf_fd = fd;
	return 0;
}

int nvmepeer_hostmem_alloc(size_t length, struct nvmepeer_hostmem **memory)
{
	size_t page = (size_t)sysconf(_SC_PAGESIZE);
	struct nvmepeer_hostmem *made;
	int result;

	if (!length || length > SIZE_MAX - page)
		return hostmem_failed(-EINVAL);
	made = calloc(1, sizeof(*made));
	if (!made)
		return hostmem_failed(-ENOMEM);
	result = hostmem_make((length + page - 1) / page * page, made);
	if (result) {
		free(made);
		return hostmem_failed(result);
	}
	*memory = made;
	return 0;
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
