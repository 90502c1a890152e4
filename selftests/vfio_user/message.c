// SPDX-License-Identifier: GPL-2.0-only
/* Send and receive whole messages over the socket, with their file descriptors. */
#include <errno.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "protocol.h"

#define CONTROL_BYTES	CMSG_SPACE(VFU_MESSAGE_FDS * sizeof(int))

static void attach_fds(struct msghdr *message, const int *fds, unsigned int fd_count)
{
	size_t bytes = fd_count * sizeof(*fds);
	struct cmsghdr *part;

	message->msg_controllen = CMSG_SPACE(bytes);
	part = CMSG_FIRSTHDR(message);
	part->cmsg_level = SOL_SOCKET;
	part->cmsg_type = SCM_RIGHTS;
	part->cmsg_len = CMSG_LEN(bytes);
	memcpy(CMSG_DATA(part), fds, bytes);
}

int vfu_send(int socket, const struct vfu_header *header, const int *fds, unsigned int fd_count)
{
	_Alignas(struct cmsghdr) char control[CONTROL_BYTES] = { 0 };
	ssize_t sent;
	size_t done;

	for (done = 0; done < header->size; done += (size_t)sent) {
		struct iovec part = { (char *)header + done, header->size - done };
		struct msghdr message = { .msg_iov = &part, .msg_iovlen = 1, .msg_control = control };

		if (fd_count && !done)
			attach_fds(&message, fds, fd_count);
		sent = TEMP_FAILURE_RETRY(sendmsg(socket, &message, MSG_NOSIGNAL));
		if (sent < 0)
			return -errno;
	}
	return 0;
}

/* Keep the files of a part of a message, and close those above the maximum. */
static void take_fds(struct vfu_message *message, struct msghdr *received)
{
	struct cmsghdr *part = CMSG_FIRSTHDR(received);
	size_t count, i;
	int fd;

	if (!part || part->cmsg_level != SOL_SOCKET || part->cmsg_type != SCM_RIGHTS)
		return;
	count = (part->cmsg_len - CMSG_LEN(0)) / sizeof(fd);
	for (i = 0; i < count; i++) {
		memcpy(&fd, CMSG_DATA(part) + i * sizeof(fd), sizeof(fd));
		if (message->fd_count < VFU_MESSAGE_FDS)
			message->fds[message->fd_count++] = fd;
		else
			close(fd);
	}
}

void vfu_message_close(struct vfu_message *message)
{
	while (message->fd_count)
		if (message->fds[--message->fd_count] >= 0)
			close(message->fds[message->fd_count]);
}

/* Returns as vfu_receive() does. */
static int receive_bytes(int socket, struct vfu_message *message, void *data, size_t length)
{
	_Alignas(struct cmsghdr) char control[CONTROL_BYTES];
	size_t done;
	ssize_t got;

	for (done = 0; done < length; done += (size_t)got) {
		struct iovec part = { (char *)data + done, length - done };
		struct msghdr received = {
			.msg_iov = &part,
			.msg_iovlen = 1,
			.msg_control = control,
			.msg_controllen = sizeof(control),
		};

		got = TEMP_FAILURE_RETRY(recvmsg(socket, &received, MSG_CMSG_CLOEXEC));
		if (got < 0)
			return -errno;
		if (!got)
			return done ? -EPROTO : 0;
		take_fds(message, &received);
	}
	return 1;
}

int vfu_receive(int socket, struct vfu_message *message)
{
	struct vfu_header *header = &message->header;
	int ret;

	message->fd_count = 0;
	ret = receive_bytes(socket, message, header, sizeof(*header));
	if (ret <= 0)
		return ret;
	if (header->size < sizeof(*header) ||
	    header->size - sizeof(*header) > sizeof(message->payload))
		return -EPROTO;
	ret = receive_bytes(socket, message, message->payload, header->size - sizeof(*header));
	return ret ? ret : -EPROTO;
}
