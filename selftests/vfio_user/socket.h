/* SPDX-License-Identifier: GPL-2.0-only */
/* Messages to and from the client, with the files that travel along. */
#ifndef VFIO_USER_SOCKET_H
#define VFIO_USER_SOCKET_H

#include "protocol.h"
#include "vfu.h"

/* Payload of one message: 1 MiB of data and its description. */
#define VFU_PAYLOAD_MAX		((1U << 20) + 4096)
#define VFU_MESSAGE_FDS		8

/**
 * struct vfu_message - a message that was received, and then its answer
 * @header: as received
 * @length: bytes of @payload
 * @fds: files that came with it, -1 when taken
 * @fd_count: entries of @fds
 * @reply_length: bytes of @payload that go back
 * @reply_fd: a file that goes along, -1 for none; stays the server's
 * @payload: received, then overwritten by the answer
 */
struct vfu_message {
	struct vfu_header header;
	size_t length;
	int fds[VFU_MESSAGE_FDS];
	unsigned int fd_count;
	size_t reply_length;
	int reply_fd;
	char payload[VFU_PAYLOAD_MAX];
};

/* Send a whole message; send_lock is held.  @fd rides along unless -1. */
int vfu_send(struct vfu *vfu, const struct vfu_header *header,
	     const void *payload, size_t length, const void *data,
	     size_t data_length, int fd);

/* Next message; 1, 0 at the end of the stream, or a negative errno. */
int vfu_receive(struct vfu *vfu, struct vfu_message *message);

/* Answer @message: an errno, or what its reply_length and reply_fd say. */
int vfu_reply(struct vfu *vfu, struct vfu_message *message, int error);

/* Close the files that came with it and were not taken. */
void vfu_message_close(struct vfu_message *message);

#endif /* VFIO_USER_SOCKET_H */
