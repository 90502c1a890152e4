/* SPDX-License-Identifier: GPL-2.0-only */
/* Messages of vfio-user, protocol version 0.0; all numbers are little endian. */
#ifndef VFIO_USER_PROTOCOL_H
#define VFIO_USER_PROTOCOL_H

#include <stdint.h>

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

struct vfu_dma_access {
	uint64_t address;
	uint64_t count;
};

/* IDs with this bit are posted writes, which are replied to only if they failed. */
#define VFU_POSTED_ID		0x8000U

/* DMA_MAP flags. */
#define VFU_MAP_READ		0x1U
#define VFU_MAP_WRITE		0x2U

#endif /* VFIO_USER_PROTOCOL_H */
