/* SPDX-License-Identifier: GPL-2.0-only */
/* Requests of ours to the client: DMA by message. */
#ifndef VFIO_USER_REQUEST_H
#define VFIO_USER_REQUEST_H

#include "protocol.h"
#include "vfu.h"

/**
 * struct vfu_dma - one access and how much of it is done
 * @address: next bus address
 * @data: next byte here
 * @length: bytes left
 * @write: to the bus
 */
struct vfu_dma {
	uint64_t address;
	char *data;
	size_t length;
	bool write;
};

/* One message that is waited for; data fits into one. */
int vfu_request(struct vfu *vfu, const struct vfu_dma *dma);

/* Fail everything that waits for an answer. */
void vfu_pending_cancel(struct vfu *vfu, int result);

/* An answer to a request of ours. */
void vfu_pending_answer(struct vfu *vfu, const struct vfu_header *header,
			const void *payload, size_t length);

#endif /* VFIO_USER_REQUEST_H */
