/* SPDX-License-Identifier: MIT OR GPL-2.0 */
/*
 * broker.h: messages between broker.c and worker.cu, over a SOCK_SEQPACKET socket.
 */
#ifndef EXAMPLES_BROKER_H
#define EXAMPLES_BROKER_H

#include <stdbool.h>
#include <string.h>
#include <sys/socket.h>

#include <nvmepeer_cuda.h>

enum { BROKER_PARTS = 6 };

/**
 * struct broker_request - from the worker, with the dma-buf of its memory
 * @entries: of each ring
 * @reserved: 0
 */
struct broker_request {
	uint32_t entries;
	uint32_t reserved;
};

/**
 * struct broker_offer - from the broker, with the descriptors of @files
 * @error: negative errno, or 0; after an error the rest is 0
 * @count: number of @files
 * @blocks: of the file, from block 0 on; bytes behind the last whole block of the file
 *	system are not among them
 * @memory: what commands have as the address of the worker's memory
 * @geometry: of the queue pair, without addresses
 * @files: its parts; @fd is set by the receiver
 */
struct broker_offer {
	int32_t error;
	uint32_t count;
	uint64_t blocks;
	uint64_t memory;
	struct nvmepeer_geometry geometry;
	struct nvmepeer_cuda_file files[BROKER_PARTS];
};

union broker_control {
	struct cmsghdr header;
	char bytes[CMSG_SPACE(BROKER_PARTS * sizeof(int))];
};

/* Send a message with @count descriptors.  Returns false after an error. */
static inline bool broker_send(int socket, const void *message, size_t bytes, const int *fds,
			       uint32_t count)
{
	struct iovec part;
	struct msghdr header;
	union broker_control control;
	struct cmsghdr *rights;

	memset(&header, 0, sizeof(header));
	memset(&control, 0, sizeof(control));
	part.iov_base = (void *)(uintptr_t)message;
	part.iov_len = bytes;
	header.msg_iov = &part;
	header.msg_iovlen = 1;
	if (count) {
		header.msg_control = control.bytes;
		header.msg_controllen = CMSG_SPACE(count * sizeof(int));
		rights = CMSG_FIRSTHDR(&header);
		rights->cmsg_level = SOL_SOCKET;
		rights->cmsg_type = SCM_RIGHTS;
		rights->cmsg_len = CMSG_LEN(count * sizeof(int));
		memcpy(CMSG_DATA(rights), fds, count * sizeof(int));
	}
	return sendmsg(socket, &header, MSG_NOSIGNAL) == (ssize_t)bytes;
}

/*
 * Receive a message of @bytes bytes and up to BROKER_PARTS descriptors, of which the caller
 * closes @count.  Returns false after an error or at the end.
 */
static inline bool broker_receive(int socket, void *message, size_t bytes, int *fds,
				  uint32_t *count)
{
	struct iovec part;
	struct msghdr header;
	union broker_control control;
	struct cmsghdr *rights;
	ssize_t got;

	memset(&header, 0, sizeof(header));
	memset(&control, 0, sizeof(control));
	part.iov_base = message;
	part.iov_len = bytes;
	header.msg_iov = &part;
	header.msg_iovlen = 1;
	header.msg_control = control.bytes;
	header.msg_controllen = sizeof(control.bytes);
	*count = 0;
	got = recvmsg(socket, &header, MSG_CMSG_CLOEXEC);
	rights = got < 0 ? NULL : CMSG_FIRSTHDR(&header);
	if (rights && rights->cmsg_level == SOL_SOCKET && rights->cmsg_type == SCM_RIGHTS) {
		*count = (uint32_t)((rights->cmsg_len - CMSG_LEN(0)) / sizeof(int));
		memcpy(fds, CMSG_DATA(rights), *count * sizeof(int));
	}
	return got == (ssize_t)bytes && !(header.msg_flags & (MSG_TRUNC | MSG_CTRUNC));
}

#endif /* EXAMPLES_BROKER_H */
