// SPDX-License-Identifier: GPL-2.0-only
/*
 * Send and receive whole messages over the socket, with their file descriptors.
 */
#include <errno.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "socket.h"

static void attach_fd(struct msghdr *message, char *control, int fd)
{
	struct cmsghdr *part;

	message->msg_control = control;
	message->msg_controllen = CMSG_SPACE(sizeof(fd));
	part = CMSG_FIRSTHDR(message);
	part->cmsg_level = SOL_SOCKET;
	part->cmsg_type = SCM_RIGHTS;
	part->cmsg_len = CMSG_LEN(sizeof(fd));
	memcpy(CMSG_DATA(part), &fd, sizeof(fd));
}

/* Skip @sent bytes of the unsent part of @message. */
static void advance(struct msghdr *message, size_t sent)
{
	while (message->msg_iovlen && sent >= message->msg_iov->iov_len) {
		sent -= message->msg_iov->iov_len;
		message->msg_iov++;
		message->msg_iovlen--;
	}
	if (message->msg_iovlen) {
		message->msg_iov->iov_base =
			(char *)message->msg_iov->iov_base + sent;
		message->msg_iov->iov_len -= sent;
	}
	message->msg_control = NULL;
	message->msg_controllen = 0;
}

int vfu_send(struct vfu *vfu, const struct vfu_header *header,
	     const void *payload, size_t length, const void *data,
	     size_t data_length, int fd)
{
	_Alignas(struct cmsghdr) char control[CMSG_SPACE(sizeof(fd))] = { 0 };
	struct iovec parts[] = {
		{ (void *)header, sizeof(*header) },
		{ (void *)payload, length },
		{ (void *)data, data_length },
	};
	struct msghdr message = { .msg_iov = parts, .msg_iovlen = 3 };
	size_t left = sizeof(*header) + length + data_length;
	ssize_t sent;

	if (fd >= 0)
		attach_fd(&message, control, fd);
	while (left) {
		sent = sendmsg(vfu->socket, &message, MSG_NOSIGNAL);
		if (sent < 0 && errno == EINTR)
			continue;
		if (sent < 0)
			return -errno;
		advance(&message, (size_t)sent);
		left -= (size_t)sent;
	}
	return 0;
}

/* Keep the files of a part of a message, and close those above the maximum. */
static void take_fds(struct vfu_message *message, struct msghdr *received)
{
	struct cmsghdr *part;
	size_t i, count;
	int fd;

	for (part = CMSG_FIRSTHDR(received); part;
	     part = CMSG_NXTHDR(received, part)) {
		if (part->cmsg_level != SOL_SOCKET ||
		    part->cmsg_type != SCM_RIGHTS)
			continue;
		count = (part->cmsg_len - CMSG_LEN(0)) / sizeof(fd);
		for (i = 0; i < count; i++) {
			memcpy(&fd, CMSG_DATA(part) + i * sizeof(fd),
			       sizeof(fd));
			if (message->fd_count < VFU_MESSAGE_FDS)
				message->fds[message->fd_count++] = fd;
			else
				close(fd);
		}
	}
}

void vfu_message_close(struct vfu_message *message)
{
	unsigned int i;

	for (i = 0; i < message->fd_count; i++)
		if (message->fds[i] >= 0)
			close(message->fds[i]);
	message->fd_count = 0;
}

/* Returns 1, 0 at the end of the stream, or a negative errno. */
static int receive_bytes(struct vfu *vfu, struct vfu_message *message, void *data,
			 size_t length)
{
	_Alignas(struct cmsghdr) char control[CMSG_SPACE(VFU_MESSAGE_FDS * sizeof(int))];
	struct iovec part;
	struct msghdr received;
	size_t done = 0;
	ssize_t got;

	while (done < length) {
		part = (struct iovec){ (char *)data + done, length - done };
		received = (struct msghdr){
			.msg_iov = &part,
			.msg_iovlen = 1,
			.msg_control = control,
			.msg_controllen = sizeof(control),
		};
		got = recvmsg(vfu->socket, &received, MSG_CMSG_CLOEXEC);
		if (got < 0 && errno == EINTR)
			continue;
		if (got < 0)
			return -errno;
		if (!got)
			return done ? -EPROTO : 0;
		take_fds(message, &received);
		done += (size_t)got;
	}
	return 1;
}

int vfu_receive(struct vfu *vfu, struct vfu_message *message)
{
	struct vfu_header *header = &message->header;
	int ret;

	message->fd_count = 0;
	message->reply_length = 0;
	message->reply_fd = -1;
	ret = receive_bytes(vfu, message, header, sizeof(*header));
	if (ret <= 0)
		return ret;
	if (header->size < sizeof(*header) ||
	    header->size - sizeof(*header) > VFU_PAYLOAD_MAX)
		return -EPROTO;
	message->length = header->size - sizeof(*header);
	ret = receive_bytes(vfu, message, message->payload, message->length);
	return ret ? ret : -EPROTO;
}

int vfu_reply(struct vfu *vfu, struct vfu_message *message, int error)
{
	struct vfu_header header = message->header;
	size_t length = error ? 0 : message->reply_length;
	int ret;

	header.size = (uint32_t)(sizeof(header) + length);
	header.flags = VFU_FLAG_REPLY | (error ? VFU_FLAG_ERROR : 0);
	header.error = (uint32_t)error;
	pthread_mutex_lock(&vfu->send_lock);
	ret = vfu_send(vfu, &header, message->payload, length, NULL, 0,
		       error ? -1 : message->reply_fd);
	pthread_mutex_unlock(&vfu->send_lock);
	return ret;
}
