// SPDX-License-Identifier: GPL-2.0-only
/*
 * DMA of a vfio-user device: direct access to memory that the client has shared, and messages
 * for everything else.
 */
#include <errno.h>
#include <string.h>
#include <sys/types.h>

#include "dma.h"
#include "map.h"
#include "request.h"

/* Data of one message; the protocol's default limit is 1 MiB. */
#define MESSAGE_DATA	(64U << 10)

void vfu_dma_enable(struct vfu *vfu, bool enable)
{
	vfu_map_write_lock(vfu);
	pthread_mutex_lock(&vfu->send_lock);
	vfu->dma_enabled = enable;
	pthread_mutex_unlock(&vfu->send_lock);
	vfu_map_write_unlock(vfu);
}

/* --- Direct access ------------------------------------------------------- */

void vfu_copy_whole(void *to, const void *from, size_t length)
{
	uintptr_t misaligned = ((uintptr_t)to | (uintptr_t)from | length) &
			       (length - 1);

	if (length == 8 && !misaligned)
		__atomic_store_n((uint64_t *)to,
				 __atomic_load_n((const uint64_t *)from,
						 __ATOMIC_ACQUIRE),
				 __ATOMIC_RELEASE);
	else if (length == 4 && !misaligned)
		__atomic_store_n((uint32_t *)to,
				 __atomic_load_n((const uint32_t *)from,
						 __ATOMIC_ACQUIRE),
				 __ATOMIC_RELEASE);
	else
		memcpy(to, from, length);
}

static void dma_advance(struct vfu_dma *dma, size_t length)
{
	dma->address += length;
	dma->data += length;
	dma->length -= length;
}

/*
 * Execute the first part of @dma if its memory is mapped; called with the map locked. Returns 0
 * if a part was executed, otherwise the number of bytes that need a message, or -EACCES.
 */
static ssize_t dma_direct(struct vfu *vfu, struct vfu_dma *dma, bool by_message)
{
	size_t index = vfu_map_find(vfu, dma->address), length;
	const struct vfu_range *range;
	uint64_t gap;
	char *memory;

	if (!vfu->dma_enabled)
		return -EACCES;
	if (index == vfu->range_count)
		return (ssize_t)dma->length;
	range = &vfu->ranges[index];
	if (range->address > dma->address) {
		gap = range->address - dma->address;
		return (ssize_t)(gap < dma->length ? gap : dma->length);
	}
	length = vfu_range_end(range) - dma->address;
	if (length > dma->length)
		length = dma->length;
	if (!(range->flags & (dma->write ? VFU_MAP_WRITE : VFU_MAP_READ)))
		return -EACCES;
	if (by_message || !range->memory)
		return (ssize_t)length;
	memory = range->memory + (dma->address - range->address);
	if (dma->write)
		vfu_copy_whole(memory, dma->data, length);
	else
		vfu_copy_whole(dma->data, memory, length);
	vfu_count(vfu, dma->write ? VFU_MAPPED_WRITES : VFU_MAPPED_READS, 1);
	dma_advance(dma, length);
	return 0;
}

/* --- By message ---------------------------------------------------------- */

/* Execute the next @length bytes of @dma by message. */
static int dma_message(struct vfu *vfu, struct vfu_dma *dma, size_t length)
{
	struct vfu_dma part = *dma;
	int ret;

	part.length = length < MESSAGE_DATA ? length : MESSAGE_DATA;
	ret = vfu_request(vfu, &part);
	if (!ret)
		dma_advance(dma, part.length);
	return ret;
}

static int dma_all(struct vfu *vfu, struct vfu_dma *dma, unsigned int flags)
{
	ssize_t ret;

	while (dma->length) {
		vfu_map_read_lock(vfu);
		ret = dma_direct(vfu, dma, flags & VFU_DMA_MESSAGE);
		vfu_map_read_unlock(vfu);
		if (ret > 0)
			ret = dma_message(vfu, dma, (size_t)ret);
		if (ret == -EACCES)
			vfu_count(vfu, VFU_REFUSED, 1);
		if (ret)
			return (int)ret;
	}
	return 0;
}

int vfu_dma_read(struct vfu *vfu, uint64_t address, void *data, size_t length,
		 unsigned int flags)
{
	struct vfu_dma dma = { address, data, length, false };
	int ret = dma_all(vfu, &dma, flags);

	vfu_count(vfu, VFU_BYTES_READ, length - dma.length);
	return ret;
}

int vfu_dma_write(struct vfu *vfu, uint64_t address, const void *data,
		  size_t length, unsigned int flags)
{
	struct vfu_dma dma = { address, (char *)data, length, true };
	int ret = dma_all(vfu, &dma, flags);

	vfu_count(vfu, VFU_BYTES_WRITTEN, length - dma.length);
	return ret;
}
