/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Messages of vfio-user, protocol version 0.0, with the structures and numbers of VFIO. All numbers
 * are little endian.
 */
#ifndef VFIO_USER_PROTOCOL_H
#define VFIO_USER_PROTOCOL_H

#include <stddef.h>
#include <stdint.h>

#include <linux/vfio.h>

enum vfu_command {
	VFU_VERSION = 1,
	VFU_DMA_MAP = 2,
	VFU_DMA_UNMAP = 3,
	VFU_GET_INFO = 4,
	VFU_GET_REGION_INFO = 5,
	VFU_GET_IRQ_INFO = 7,
	VFU_SET_IRQS = 8,
	VFU_REGION_READ = 9,
	VFU_REGION_WRITE = 10,
	VFU_DMA_READ = 11,
	VFU_DMA_WRITE = 12,
	VFU_RESET = 13,
};

struct vfu_header {
	uint16_t id;
	uint16_t command;
	uint32_t size;			/* of the whole message */
	uint32_t flags;
	uint32_t error;			/* errno, with VFU_FLAG_ERROR */
};

#define VFU_FLAG_TYPE		0xfU
#define VFU_FLAG_REPLY		0x1U
#define VFU_FLAG_NO_REPLY	0x10U
#define VFU_FLAG_ERROR		0x20U

/* IDs with this bit are posted writes, which are replied to only if they failed. */
#define VFU_POSTED_ID		0x8000U

/* Followed by JSON. */
struct vfu_version {
	uint16_t major;
	uint16_t minor;
};

struct vfu_map {
	uint32_t argsz;
	uint32_t flags;			/* VFIO_DMA_MAP_FLAG_READ, VFIO_DMA_MAP_FLAG_WRITE */
	uint64_t offset;		/* in the file */
	uint64_t address;
	uint64_t size;
};

struct vfu_unmap {
	uint32_t argsz;
	uint32_t flags;			/* VFIO_DMA_UNMAP_FLAG_ALL */
	uint64_t address;
	uint64_t size;
};

/* struct vfio_irq_set without its data, which are files here. */
struct vfu_irq_set {
	uint32_t argsz;
	uint32_t flags;
	uint32_t index;
	uint32_t start;
	uint32_t count;
};

/* Both followed by the data. */
struct vfu_region_access {
	uint64_t offset;
	uint32_t region;
	uint32_t count;
};

struct vfu_dma_access {
	uint64_t address;
	uint64_t count;
};

#define VFU_DATA_MAX		(64U << 10)
#define VFU_MESSAGE_FDS		8

/* A received message, and then its reply; vfu_message_close() closes the received files. */
struct vfu_message {
	struct vfu_header header;
	union {
		struct vfu_version version;
		struct vfu_map map;
		struct vfu_unmap unmap;
		struct vfio_device_info info;
		struct vfio_region_info region;
		struct vfio_irq_info irq;
		struct vfu_irq_set irqs;
		struct vfu_region_access access;
		struct vfu_dma_access dma;
		char payload[VFU_DATA_MAX + 4096];
	};
	int fds[VFU_MESSAGE_FDS];	/* -1 when taken */
	unsigned int fd_count;
	size_t reply_length;		/* bytes of @payload in the reply */
	int reply_fd;			/* -1 for none */
};

/* Send the message that begins with @header, with files. Returns 0 or a negative errno. */
int vfu_send(int socket, const struct vfu_header *header, const int *fds, unsigned int fd_count);

/* Returns 1, 0 at the end of the stream, or a negative errno. */
int vfu_receive(int socket, struct vfu_message *message);

void vfu_message_close(struct vfu_message *message);

#endif /* VFIO_USER_PROTOCOL_H */
