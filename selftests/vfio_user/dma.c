// SPDX-License-Identifier: GPL-2.0-only
/*
 * DMA of a vfio-user device: direct access to memory that the client has shared, and messages
 * for everything else, with a thread that waits for the reply, or posted.
 */
#include <errno.h>
#include <string.h>
#include <sys/param.h>
#include <time.h>

#include "vfu.h"

/* One of so many posted writes waits for its reply. */
#define POSTED_BURST	64

/* Timeout of a reply. The client is a virtual machine and may be slow. */
#define ANSWER_SECONDS	10

/* An access and its progress. */
struct dma {
	uint64_t address;		/* next one on the bus */
	char *data;			/* next byte in this process */
	size_t length;			/* remaining bytes */
	bool write;			/* to the bus */
};

/* A request that waits for its reply, on the waiter's stack. */
struct vfu_pending {
	LIST_ENTRY(vfu_pending) link;
	pthread_cond_t answered;	/* signalled when @result is set */
	void *data;			/* destination of a read, NULL for a write */
	size_t length;
	int result;			/* WAITING while on the list, then 0 or a negative errno */
	uint16_t id;
};

#define WAITING		1

void vfu_dma_enable(struct vfu *vfu, bool enable)
{
	vfu_map_write_lock(vfu);
	pthread_mutex_lock(&vfu->send_lock);
	vfu->dma_enabled = enable;
	pthread_mutex_unlock(&vfu->send_lock);
	vfu_map_write_unlock(vfu);
}

/* --- Requests ------------------------------------------------------------- */

/* Called with send_lock held, so an ID is not used twice at a time. */
static void pending_add(struct vfu *vfu, struct vfu_pending *pending)
{
	pending->id = vfu->next_id++ & (VFU_POSTED_ID - 1);
	pthread_mutex_lock(&vfu->pending_lock);
	LIST_INSERT_HEAD(&vfu->pending, pending, link);
	pthread_mutex_unlock(&vfu->pending_lock);
}

/* Remove it from the list and wake its owner; called with pending_lock held. */
static void pending_finish(struct vfu_pending *pending, int result)
{
	LIST_REMOVE(pending, link);
	pending->result = result;
	pthread_cond_signal(&pending->answered);
}

static int pending_wait(struct vfu *vfu, struct vfu_pending *pending)
{
	struct timespec until;

	clock_gettime(CLOCK_MONOTONIC, &until);
	until.tv_sec += ANSWER_SECONDS;
	pthread_mutex_lock(&vfu->pending_lock);
	while (pending->result == WAITING)
		if (pthread_cond_clockwait(&pending->answered, &vfu->pending_lock,
					   CLOCK_MONOTONIC, &until) &&
		    pending->result == WAITING)
			pending_finish(pending, -ETIMEDOUT);
	pthread_mutex_unlock(&vfu->pending_lock);
	pthread_cond_destroy(&pending->answered);
	return pending->result;
}

void vfu_pending_cancel(struct vfu *vfu, int result)
{
	pthread_mutex_lock(&vfu->pending_lock);
	while (!LIST_EMPTY(&vfu->pending))
		pending_finish(LIST_FIRST(&vfu->pending), result);
	pthread_mutex_unlock(&vfu->pending_lock);
}

/* The result of a request from its reply; copies the data of a read. */
static int answer_result(struct vfu_pending *pending, const struct vfu_message *reply)
{
	if (reply->header.flags & VFU_FLAG_ERROR)
		return -EFAULT;
	if (!pending->data)
		return 0;
	if (reply->header.size < sizeof(reply->header) + sizeof(reply->dma) + pending->length)
		return -EPROTO;
	memcpy(pending->data, reply->payload + sizeof(reply->dma), pending->length);
	return 0;
}

/* A reply may have no waiter: that of a failed posted write, or a late one. */
void vfu_pending_answer(struct vfu *vfu, const struct vfu_message *reply)
{
	struct vfu_pending *pending;

	if (reply->header.id & VFU_POSTED_ID) {
		if (reply->header.flags & VFU_FLAG_ERROR)
			vfu_count(vfu, VFU_POSTED_FAILED, 1);
		return;
	}
	pthread_mutex_lock(&vfu->pending_lock);
	for (pending = LIST_FIRST(&vfu->pending); pending; pending = LIST_NEXT(pending, link))
		if (pending->id == reply->header.id)
			break;
	if (pending)
		pending_finish(pending, answer_result(pending, reply));
	pthread_mutex_unlock(&vfu->pending_lock);
}

/* An error if no request may be sent now; called with send_lock held. */
static int request_check(const struct vfu *vfu)
{
	if (vfu->socket < 0)
		return -ENOTCONN;
	return vfu->dma_enabled ? 0 : -EACCES;
}

/* Called with send_lock held. */
static int request_send(struct vfu *vfu, uint16_t id, uint32_t flags, const struct dma *dma)
{
	struct vfu_message *request = &vfu->request;
	size_t data = dma->write ? dma->length : 0;

	request->header = (struct vfu_header){
		.id = id,
		.command = dma->write ? VFU_DMA_WRITE : VFU_DMA_READ,
		.size = (uint32_t)(sizeof(request->header) + sizeof(request->dma) + data),
		.flags = flags,
	};
	request->dma = (struct vfu_dma_access){ dma->address, dma->length };
	memcpy(request->payload + sizeof(request->dma), dma->data, data);
	return vfu_send(vfu->socket, &request->header, NULL, 0);
}

/* Send one message and wait for the reply; at most VFU_DATA_MAX bytes. */
static int request(struct vfu *vfu, const struct dma *dma)
{
	struct vfu_pending pending = {
		.answered = PTHREAD_COND_INITIALIZER,
		.data = dma->write ? NULL : dma->data,
		.length = dma->length,
		.result = WAITING,
	};
	int ret;

	pthread_mutex_lock(&vfu->send_lock);
	ret = request_check(vfu);
	if (ret) {
		pthread_mutex_unlock(&vfu->send_lock);
		return ret;
	}
	pending_add(vfu, &pending);
	ret = request_send(vfu, pending.id, 0, dma);
	pthread_mutex_unlock(&vfu->send_lock);
	/* After a failed send there is no reply: the connection is broken. */
	if (ret)
		vfu_pending_cancel(vfu, ret);
	vfu_count(vfu, dma->write ? VFU_MESSAGE_WRITES : VFU_MESSAGE_READS, 1);
	return pending_wait(vfu, &pending);
}

/* --- Posted writes ------------------------------------------------------- */

int vfu_dma_post(struct vfu *vfu, uint64_t address, const void *data, size_t length)
{
	struct dma dma = { address, (char *)data, length, true };
	bool wait;
	int ret;

	pthread_mutex_lock(&vfu->send_lock);
	wait = ++vfu->posted % POSTED_BURST == 0;
	ret = request_check(vfu);
	if (!ret && !wait)
		ret = request_send(vfu, VFU_POSTED_ID | vfu->posted, VFU_FLAG_NO_REPLY, &dma);
	pthread_mutex_unlock(&vfu->send_lock);
	if (ret)
		return ret;
	if (wait && request(vfu, &dma))
		vfu_count(vfu, VFU_POSTED_FAILED, 1);
	vfu_count(vfu, VFU_POSTED_WRITES, 1);
	vfu_count(vfu, VFU_BYTES_WRITTEN, length);
	return 0;
}

/* --- Reads and writes ------------------------------------------------------- */

void vfu_copy_whole(void *to, const void *from, size_t length)
{
	uintptr_t misaligned = ((uintptr_t)to | (uintptr_t)from | length) & (length - 1);

	if (length == 8 && !misaligned)
		__atomic_store_n((uint64_t *)to,
				 __atomic_load_n((const uint64_t *)from, __ATOMIC_ACQUIRE),
				 __ATOMIC_RELEASE);
	else if (length == 4 && !misaligned)
		__atomic_store_n((uint32_t *)to,
				 __atomic_load_n((const uint32_t *)from, __ATOMIC_ACQUIRE),
				 __ATOMIC_RELEASE);
	else
		memcpy(to, from, length);
}

static void dma_advance(struct dma *dma, size_t length)
{
	dma->address += length;
	dma->data += length;
	dma->length -= length;
}

/*
 * Execute the first part of @dma if its memory is mapped; called with the map locked. Returns 0
 * if a part was executed, otherwise the number of bytes that need a message, or -EACCES.
 */
static ssize_t dma_direct(struct vfu *vfu, struct dma *dma, bool by_message)
{
	size_t index = vfu_map_find(vfu, dma->address), length;
	const struct vfu_range *range;
	char *memory;

	if (!vfu->dma_enabled)
		return -EACCES;
	if (index == vfu->range_count)
		return (ssize_t)dma->length;
	range = &vfu->ranges[index];
	if (range->address > dma->address)
		return (ssize_t)MIN(range->address - dma->address, dma->length);
	length = MIN(vfu_range_end(range) - dma->address, dma->length);
	if (!vfu_range_allows(range, dma->write))
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

/* Execute the next @length bytes of @dma by message, or as many as fit. */
static int dma_message(struct vfu *vfu, struct dma *dma, size_t length)
{
	struct dma part = *dma;
	int ret;

	part.length = MIN(VFU_DATA_MAX, length);
	ret = request(vfu, &part);
	if (!ret)
		dma_advance(dma, part.length);
	return ret;
}

static int dma_all(struct vfu *vfu, struct dma *dma, unsigned int flags)
{
	ssize_t ret = 0;

	while (dma->length && !ret) {
		vfu_map_read_lock(vfu);
		ret = dma_direct(vfu, dma, flags & VFU_DMA_MESSAGE);
		vfu_map_read_unlock(vfu);
		if (ret > 0)
			ret = dma_message(vfu, dma, (size_t)ret);
	}
	return (int)ret;
}

int vfu_dma_read(struct vfu *vfu, uint64_t address, void *data, size_t length, unsigned int flags)
{
	struct dma dma = { address, data, length, false };

	return dma_all(vfu, &dma, flags);
}

int vfu_dma_write(struct vfu *vfu, uint64_t address, const void *data, size_t length,
		  unsigned int flags)
{
	struct dma dma = { address, (char *)data, length, true };
	int ret = dma_all(vfu, &dma, flags);

	vfu_count(vfu, VFU_BYTES_WRITTEN, length - dma.length);
	return ret;
}
