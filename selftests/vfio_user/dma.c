// SPDX-License-Identifier: GPL-2.0-only
/*
 * DMA of a vfio-user device: the map of what the client shared, direct access
 * to it, and messages for everything else.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#include "server.h"

/* Data of one message; the protocol's default limit is 1 MiB. */
#define MESSAGE_DATA	(64U << 10)

/* Posted writes until one waits for its answer. */
#define POSTED_BURST	64

/* The client is a virtual machine: it may be slow, but not this slow. */
#define ANSWER_SECONDS	10

/* --- The map ------------------------------------------------------------- */

static uint64_t range_end(const struct vfu_range *range)
{
	return range->address + range->size;
}

/* Index of the first range that ends behind @address; map_lock is held. */
static size_t map_find(const struct vfu *vfu, uint64_t address)
{
	size_t low = 0, high = vfu->range_count;

	while (low < high) {
		size_t middle = (low + high) / 2;

		if (range_end(&vfu->ranges[middle]) <= address)
			low = middle + 1;
		else
			high = middle;
	}
	return low;
}

/* Make room for an entry at @index; map_lock is held for writing. */
static int map_make_room(struct vfu *vfu, size_t index)
{
	if (vfu->range_count == vfu->range_room) {
		size_t room = vfu->range_room ? 2 * vfu->range_room : 64;
		struct vfu_range *ranges = realloc(vfu->ranges,
						   room * sizeof(*ranges));

		if (!ranges)
			return ENOMEM;
		vfu->ranges = ranges;
		vfu->range_room = room;
	}
	memmove(&vfu->ranges[index + 1], &vfu->ranges[index],
		(vfu->range_count - index) * sizeof(*vfu->ranges));
	vfu->range_count++;
	return 0;
}

static int map_insert(struct vfu *vfu, const struct vfu_range *range)
{
	size_t index = map_find(vfu, range->address);
	int ret;

	if (index < vfu->range_count &&
	    vfu->ranges[index].address < range_end(range))
		return EEXIST;
	ret = map_make_room(vfu, index);
	if (!ret)
		vfu->ranges[index] = *range;
	return ret;
}

/* Memory that cannot be mapped is no error: messages reach it too. */
static char *map_memory(const struct vfu_range *range, int fd, uint64_t offset)
{
	int protection = (range->flags & VFU_MAP_READ ? PROT_READ : 0) |
			 (range->flags & VFU_MAP_WRITE ? PROT_WRITE : 0);
	void *memory;

	if (fd < 0)
		return NULL;
	memory = mmap(NULL, range->size, protection, MAP_SHARED, fd,
		      (off_t)offset);
	return memory == MAP_FAILED ? NULL : memory;
}

int vfu_map_add(struct vfu *vfu, const struct vfu_range *range, int fd,
		uint64_t offset)
{
	struct vfu_range added = *range;
	int ret = EINVAL;

	if (range->size && range_end(range) >= range->size) {
		added.memory = map_memory(range, fd, offset);
		pthread_rwlock_wrlock(&vfu->map_lock);
		ret = map_insert(vfu, &added);
		pthread_rwlock_unlock(&vfu->map_lock);
		if (ret && added.memory)
			munmap(added.memory, added.size);
	}
	if (fd >= 0)
		close(fd);
	return ret;
}

/* Split the range at @index, so that one begins at @address. */
static int map_split(struct vfu *vfu, size_t index, uint64_t address)
{
	uint64_t left = address - vfu->ranges[index].address;
	int ret = map_make_room(vfu, index);

	if (ret)
		return ret;
	vfu->ranges[index].size = left;
	vfu->ranges[index + 1].address += left;
	vfu->ranges[index + 1].size -= left;
	if (vfu->ranges[index + 1].memory)
		vfu->ranges[index + 1].memory += left;
	return 0;
}

/* Let the ranges begin and end where a removal does; map_lock is held. */
static int map_split_around(struct vfu *vfu, uint64_t address, uint64_t end)
{
	uint64_t cuts[] = { address, end };
	size_t i;

	for (i = 0; i < 2; i++) {
		size_t index = map_find(vfu, cuts[i]);
		int ret;

		if (index == vfu->range_count ||
		    vfu->ranges[index].address >= cuts[i])
			continue;
		ret = map_split(vfu, index, cuts[i]);
		if (ret)
			return ret;
	}
	return 0;
}

static void map_drop(struct vfu *vfu, size_t first, size_t last)
{
	size_t i;

	if (first == last)
		return;
	for (i = first; i < last; i++)
		if (vfu->ranges[i].memory)
			munmap(vfu->ranges[i].memory, vfu->ranges[i].size);
	memmove(&vfu->ranges[first], &vfu->ranges[last],
		(vfu->range_count - last) * sizeof(*vfu->ranges));
	vfu->range_count -= last - first;
}

/* Removing what is not there is no error: QEMU does it for foreign BARs. */
int vfu_map_remove(struct vfu *vfu, uint64_t address, uint64_t size)
{
	uint64_t end = address + size < address ? UINT64_MAX : address + size;
	size_t first, last;
	int ret;

	pthread_rwlock_wrlock(&vfu->map_lock);
	ret = map_split_around(vfu, address, end);
	first = map_find(vfu, address);
	for (last = first; last < vfu->range_count; last++)
		if (vfu->ranges[last].address >= end)
			break;
	if (!ret)
		map_drop(vfu, first, last);
	pthread_rwlock_unlock(&vfu->map_lock);
	return ret;
}

void vfu_map_clear(struct vfu *vfu)
{
	pthread_rwlock_wrlock(&vfu->map_lock);
	map_drop(vfu, 0, vfu->range_count);
	pthread_rwlock_unlock(&vfu->map_lock);
}

void vfu_dma_enable(struct vfu *vfu, bool enable)
{
	pthread_rwlock_wrlock(&vfu->map_lock);
	pthread_mutex_lock(&vfu->send_lock);
	vfu->dma_enabled = enable;
	pthread_mutex_unlock(&vfu->send_lock);
	pthread_rwlock_unlock(&vfu->map_lock);
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

/**
 * struct dma - one access and how much of it is done
 * @address: next bus address
 * @data: next byte here
 * @length: bytes left
 * @write: to the bus
 */
struct dma {
	uint64_t address;
	char *data;
	size_t length;
	bool write;
};

static void dma_advance(struct dma *dma, size_t length)
{
	dma->address += length;
	dma->data += length;
	dma->length -= length;
}

/*
 * Do the part of @dma at its start that memory is mapped for; map_lock is held.
 * Returns 0 when something was done, the number of bytes that need a message
 * when not, -EACCES.
 */
static ssize_t dma_direct(struct vfu *vfu, struct dma *dma, bool by_message)
{
	size_t index = map_find(vfu, dma->address), length;
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
	length = range_end(range) - dma->address;
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

/* --- Requests ------------------------------------------------------------ */

/* send_lock is held, so an id is not used twice at once. */
static void pending_add(struct vfu *vfu, struct vfu_pending *pending)
{
	pthread_condattr_t attributes;

	pending->id = vfu->next_id++ & (VFU_POSTED_ID - 1);
	pthread_condattr_init(&attributes);
	pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC);
	pthread_cond_init(&pending->answered, &attributes);
	pthread_condattr_destroy(&attributes);
	pthread_mutex_lock(&vfu->pending_lock);
	pending->next = vfu->pending;
	vfu->pending = pending;
	pthread_mutex_unlock(&vfu->pending_lock);
}

/* Take it off the list and let its owner go on; pending_lock is held. */
static void pending_finish(struct vfu *vfu, struct vfu_pending *pending,
			   int result)
{
	struct vfu_pending **link = &vfu->pending;

	while (*link != pending)
		link = &(*link)->next;
	*link = pending->next;
	pending->result = result;
	pending->done = true;
	pthread_cond_signal(&pending->answered);
}

static int pending_wait(struct vfu *vfu, struct vfu_pending *pending)
{
	struct timespec until;

	clock_gettime(CLOCK_MONOTONIC, &until);
	until.tv_sec += ANSWER_SECONDS;
	pthread_mutex_lock(&vfu->pending_lock);
	while (!pending->done)
		if (pthread_cond_timedwait(&pending->answered,
					   &vfu->pending_lock, &until) &&
		    !pending->done)
			pending_finish(vfu, pending, -ETIMEDOUT);
	pthread_mutex_unlock(&vfu->pending_lock);
	pthread_cond_destroy(&pending->answered);
	return pending->result;
}

void vfu_pending_cancel(struct vfu *vfu, int result)
{
	pthread_mutex_lock(&vfu->pending_lock);
	while (vfu->pending)
		pending_finish(vfu, vfu->pending, result);
	pthread_mutex_unlock(&vfu->pending_lock);
}

/* What an answer says of a request; copies a read's data. */
static int answer_result(struct vfu_pending *pending,
			 const struct vfu_header *header, const char *payload,
			 size_t length)
{
	if (header->flags & VFU_FLAG_ERROR)
		return -EFAULT;
	if (!pending->data)
		return 0;
	if (length < sizeof(struct vfu_dma_access) + pending->length)
		return -EPROTO;
	memcpy(pending->data, payload + sizeof(struct vfu_dma_access),
	       pending->length);
	return 0;
}

/* Answers that nobody waits for are legal: failed posted writes, late ones. */
void vfu_pending_answer(struct vfu *vfu, const struct vfu_header *header,
			const void *payload, size_t length)
{
	struct vfu_pending *pending;

	if (header->id & VFU_POSTED_ID) {
		if (header->flags & VFU_FLAG_ERROR)
			vfu_count(vfu, VFU_POSTED_FAILED, 1);
		return;
	}
	pthread_mutex_lock(&vfu->pending_lock);
	for (pending = vfu->pending; pending; pending = pending->next)
		if (pending->id == header->id)
			break;
	if (pending)
		pending_finish(vfu, pending,
			       answer_result(pending, header, payload, length));
	pthread_mutex_unlock(&vfu->pending_lock);
}

/* Why no request may be sent now; send_lock is held. */
static int request_check(const struct vfu *vfu)
{
	if (vfu->socket < 0)
		return -ENOTCONN;
	return vfu->dma_enabled ? 0 : -EACCES;
}

static int request_send(struct vfu *vfu, uint16_t id, uint32_t flags,
			const struct dma *dma)
{
	struct vfu_dma_access access = { dma->address, dma->length };
	size_t data = dma->write ? dma->length : 0;
	struct vfu_header header = {
		.id = id,
		.command = dma->write ? VFU_DMA_WRITE : VFU_DMA_READ,
		.size = (uint32_t)(sizeof(header) + sizeof(access) + data),
		.flags = flags,
	};

	return vfu_send(vfu, &header, &access, sizeof(access), dma->data, data,
			-1);
}

/* One request that is waited for. */
static int request(struct vfu *vfu, const struct dma *dma)
{
	struct vfu_pending pending = {
		.data = dma->write ? NULL : dma->data,
		.length = dma->length,
	};
	int ret;

	pthread_mutex_lock(&vfu->send_lock);
	ret = request_check(vfu);
	if (!ret) {
		pending_add(vfu, &pending);
		ret = request_send(vfu, pending.id, 0, dma);
	}
	pthread_mutex_unlock(&vfu->send_lock);
	if (ret == -EACCES || ret == -ENOTCONN)
		return ret;
	/* A send that failed has no answer; the connection is broken then. */
	if (ret)
		vfu_pending_cancel(vfu, ret);
	vfu_count(vfu, dma->write ? VFU_MESSAGE_WRITES : VFU_MESSAGE_READS, 1);
	ret = pending_wait(vfu, &pending);
	if (ret)
		vfu_count(vfu, VFU_FAILED, 1);
	return ret;
}

/* The next @length bytes of @dma by message. */
static int dma_message(struct vfu *vfu, struct dma *dma, size_t length)
{
	struct dma part = *dma;
	int ret;

	part.length = length < MESSAGE_DATA ? length : MESSAGE_DATA;
	ret = request(vfu, &part);
	if (!ret)
		dma_advance(dma, part.length);
	return ret;
}

static int dma_all(struct vfu *vfu, struct dma *dma, unsigned int flags)
{
	ssize_t ret;

	while (dma->length) {
		pthread_rwlock_rdlock(&vfu->map_lock);
		ret = dma_direct(vfu, dma, flags & VFU_DMA_MESSAGE);
		pthread_rwlock_unlock(&vfu->map_lock);
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
	struct dma dma = { address, data, length, false };
	int ret = dma_all(vfu, &dma, flags);

	vfu_count(vfu, VFU_BYTES_READ, length - dma.length);
	return ret;
}

int vfu_dma_write(struct vfu *vfu, uint64_t address, const void *data,
		  size_t length, unsigned int flags)
{
	struct dma dma = { address, (char *)data, length, true };
	int ret = dma_all(vfu, &dma, flags);

	vfu_count(vfu, VFU_BYTES_WRITTEN, length - dma.length);
	return ret;
}

/* Whether the next posted write should wait; send_lock is held. */
static bool post_should_wait(struct vfu *vfu)
{
	if (++vfu->unanswered < POSTED_BURST)
		return false;
	vfu->unanswered = 0;
	return true;
}

int vfu_dma_post(struct vfu *vfu, uint64_t address, const void *data,
		 size_t length)
{
	struct dma dma = { address, (char *)data, length, true };
	uint16_t id;
	bool wait;
	int ret;

	pthread_mutex_lock(&vfu->send_lock);
	wait = post_should_wait(vfu);
	ret = request_check(vfu);
	if (!ret && !wait) {
		id = VFU_POSTED_ID | vfu->next_posted_id++;
		ret = request_send(vfu, id, VFU_FLAG_NO_REPLY, &dma);
	}
	pthread_mutex_unlock(&vfu->send_lock);
	if (!ret && wait && request(vfu, &dma))
		vfu_count(vfu, VFU_POSTED_FAILED, 1);
	if (ret == -EACCES)
		vfu_count(vfu, VFU_REFUSED, 1);
	if (ret)
		return ret;
	vfu_count(vfu, VFU_POSTED_WRITES, 1);
	vfu_count(vfu, VFU_BYTES_WRITTEN, length);
	return 0;
}

int vfu_dma_flush(struct vfu *vfu, uint64_t address)
{
	uint32_t word;
	struct dma dma = { address, (char *)&word, sizeof(word), false };

	return request(vfu, &dma);
}
