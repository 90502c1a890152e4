/* SPDX-License-Identifier: GPL-2.0-only */
/* Requests of the server to the client: DMA by message. */
#ifndef VFIO_USER_REQUEST_H
#define VFIO_USER_REQUEST_H

#include "protocol.h"
#include "vfu.h"

/**
 * struct vfu_dma - an access and its progress
 * @address: next bus address
 * @data: next byte in this process
 * @length: remaining bytes
 * @write: a write to the bus
 */
struct vfu_dma {
	uint64_t address;
	char *data;
	size_t length;
	bool write;
};

/* Send one message and wait for the reply; the data has to fit. */
int vfu_request(struct vfu *vfu, const struct vfu_dma *dma);

/* Fail all requests that wait for a reply. */
void vfu_pending_cancel(struct vfu *vfu, int result);

/* Handle the reply to a request of the server. */
void vfu_pending_answer(struct vfu *vfu, const struct vfu_header *header,
			const void *payload, size_t length);

#endif /* VFIO_USER_REQUEST_H */
