/* SPDX-License-Identifier: GPL-2.0-only */
/* Messages to and from the client, with their file descriptors. */
#ifndef VFIO_USER_SOCKET_H
#define VFIO_USER_SOCKET_H

#include "protocol.h"
#include "vfu.h"

/* Maximum payload of a message: 1 MiB of data and its description. */
#define VFU_PAYLOAD_MAX		((1U << 20) + 4096)
#define VFU_MESSAGE_FDS		8

/**
 * struct vfu_message - a received message, and then its reply
 * @header: as received
 * @length: bytes of @payload
 * @fds: received files, -1 when taken
 * @fd_count: entries of @fds
 * @reply_length: bytes of @payload in the reply
 * @reply_fd: file to send with the reply, -1 for none; owned by the server
 * @payload: received, then overwritten by the reply
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

/* Send a whole message, with @fd unless it is -1; called with send_lock held. */
int vfu_send(struct vfu *vfu, const struct vfu_header *header,
	     const void *payload, size_t length, const void *data,
	     size_t data_length, int fd);

/* Receive a message. Returns 1, 0 at the end of the stream, or a negative errno. */
int vfu_receive(struct vfu *vfu, struct vfu_message *message);

/* Reply to @message with an errno, or with its payload and file. */
int vfu_reply(struct vfu *vfu, struct vfu_message *message, int error);

/* Close the received files that were not taken. */
void vfu_message_close(struct vfu_message *message);

#endif /* VFIO_USER_SOCKET_H */
