// SPDX-License-Identifier: GPL-2.0-only
/*
 * Requests of a vfio-user server to its client: bus reads and writes by message, with a thread
 * that waits for the reply or posted.
 */
#include <errno.h>
#include <string.h>
#include <time.h>

#include "request.h"
#include "socket.h"

/* Number of posted writes before one waits for its reply. */
#define POSTED_BURST	64

/* Timeout of a reply. The client is a virtual machine and may be slow. */
#define ANSWER_SECONDS	10

/* --- Requests that wait -------------------------------------------------- */

/* Called with send_lock held, so an ID is not used twice at a time. */
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

/* Remove it from the list and wake its owner; called with pending_lock held. */
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

/* The result of a request from its reply; copies the data of a read. */
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

/* A reply may have no waiter: that of a failed posted write, or a late one. */
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

/* An error if no request may be sent now; called with send_lock held. */
static int request_check(const struct vfu *vfu)
{
	if (vfu->socket < 0)
		return -ENOTCONN;
	return vfu->dma_enabled ? 0 : -EACCES;
}

static int request_send(struct vfu *vfu, uint16_t id, uint32_t flags,
			const struct vfu_dma *dma)
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

int vfu_request(struct vfu *vfu, const struct vfu_dma *dma)
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
	/* After a failed send there is no reply: the connection is broken. */
	if (ret)
		vfu_pending_cancel(vfu, ret);
	vfu_count(vfu, dma->write ? VFU_MESSAGE_WRITES : VFU_MESSAGE_READS, 1);
	ret = pending_wait(vfu, &pending);
	if (ret)
		vfu_count(vfu, VFU_FAILED, 1);
	return ret;
}

/* --- Posted writes ------------------------------------------------------- */

/* Returns whether the next posted write has to wait; called with send_lock held. */
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
	struct vfu_dma dma = { address, (char *)data, length, true };
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
	if (!ret && wait && vfu_request(vfu, &dma))
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
	struct vfu_dma dma = { address, (char *)&word, sizeof(word), false };

	return vfu_request(vfu, &dma);
}
