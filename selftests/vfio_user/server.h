/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * What the three files of the vfio-user server share: vfio_user.c (messages),
 * vfio_user_dma.c (DMA map and requests), vfio_user_config.c (config space).
 */
#ifndef VFIO_USER_INTERNAL_H
#define VFIO_USER_INTERNAL_H

#include <pthread.h>
#include <stdatomic.h>

#include "vfio_user.h"

/* Messages, vfio-user protocol version 0.0; all numbers are little endian. */
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

/* A posted write's reply is expected only if it failed; ids tell them apart. */
#define VFU_POSTED_ID		0x8000U

/* DMA_MAP flags. */
#define VFU_MAP_READ		0x1U
#define VFU_MAP_WRITE		0x2U

/**
 * struct vfu_range - an entry of the DMA map
 * @address: first bus address
 * @size: bytes
 * @flags: VFU_MAP_READ, VFU_MAP_WRITE
 * @memory: the guest's memory, NULL if the client gave no file for it
 */
struct vfu_range {
	uint64_t address;
	uint64_t size;
	uint32_t flags;
	char *memory;
};

/**
 * struct vfu_pending - a request of ours that waits for its answer
 * @next: list, newest first
 * @answered: signalled when @done is set
 * @data: where a read's bytes go, NULL for a write
 * @length: of @data
 * @result: 0 or negative errno
 * @id: of the message
 * @done: @result is valid, and the request is no longer on the list
 *
 * On the waiter's stack; all fields under vfu->pending_lock once on the list.
 */
struct vfu_pending {
	struct vfu_pending *next;
	pthread_cond_t answered;
	void *data;
	size_t length;
	int result;
	uint16_t id;
	bool done;
};

/* Counters in the order of struct vfu_statistics, @ranges excepted. */
enum vfu_counter {
	VFU_MAPPED_READS,
	VFU_MAPPED_WRITES,
	VFU_MESSAGE_READS,
	VFU_MESSAGE_WRITES,
	VFU_POSTED_WRITES,
	VFU_POSTED_FAILED,
	VFU_REFUSED,
	VFU_FAILED,
	VFU_BYTES_READ,
	VFU_BYTES_WRITTEN,
	VFU_INTERRUPTS,
	VFU_COUNTERS,
};

/**
 * struct vfu - the server
 * @device: constant
 * @context: constant
 * @config: config space; only the serving thread
 * @writable: bits of @config that the guest may write; constant
 * @power_on: @config after a reset; constant
 * @send_lock: one message at a time on @socket; guards @socket, @next_id,
 *	@next_posted_id, @unanswered
 * @socket: the client, -1 for none
 * @next_id: of requests that are answered
 * @next_posted_id: of posted writes
 * @unanswered: posted writes since the last one that was waited for
 * @map_lock: read: use a range's memory; write: change @ranges
 * @ranges: the DMA map, sorted by address, without overlaps
 * @range_count: entries of @ranges
 * @range_room: entries that @ranges has room for
 * @dma_enabled: the guest lets us master the bus.  Changed under @map_lock
 *	(write) and @send_lock, so either one makes it stable
 * @pending_lock: guards @pending
 * @pending: requests that wait for an answer
 * @vector_lock: guards @vector_fds
 * @vector_fds: an eventfd per MSI vector, -1 for none
 * @counters: any thread
 */
struct vfu {
	const struct vfu_device *device;
	void *context;
	uint8_t config[4096];
	uint8_t writable[4096];
	uint8_t power_on[4096];
	pthread_mutex_t send_lock;
	int socket;
	uint16_t next_id;
	uint16_t next_posted_id;
	unsigned int unanswered;
	pthread_rwlock_t map_lock;
	struct vfu_range *ranges;
	size_t range_count;
	size_t range_room;
	bool dma_enabled;
	pthread_mutex_t pending_lock;
	struct vfu_pending *pending;
	pthread_mutex_t vector_lock;
	int vector_fds[VFU_MAX_VECTORS];
	_Atomic uint64_t counters[VFU_COUNTERS];
};

static inline void vfu_count(struct vfu *vfu, enum vfu_counter counter,
			     uint64_t by)
{
	atomic_fetch_add_explicit(&vfu->counters[counter], by,
				  memory_order_relaxed);
}

/* Send a whole message; send_lock is held.  @fd rides along unless -1. */
int vfu_send(struct vfu *vfu, const struct vfu_header *header,
	     const void *payload, size_t length, const void *data,
	     size_t data_length, int fd);

/* The DMA map; @fd is closed.  Positive errno, as replies carry it. */
int vfu_map_add(struct vfu *vfu, const struct vfu_range *range, int fd,
		uint64_t offset);
int vfu_map_remove(struct vfu *vfu, uint64_t address, uint64_t size);
void vfu_map_clear(struct vfu *vfu);

/*
 * After vfu_dma_enable(false) no request is sent any more and no guest memory is
 * accessed.  Requests that were sent before may still be answered.
 */
void vfu_dma_enable(struct vfu *vfu, bool enable);

/* Fail everything that waits for an answer. */
void vfu_pending_cancel(struct vfu *vfu, int result);

/* An answer to a request of ours. */
void vfu_pending_answer(struct vfu *vfu, const struct vfu_header *header,
			const void *payload, size_t length);

/* Config space: build it, bring it back to power-on, access it. */
int vfu_config_init(struct vfu *vfu);
void vfu_config_reset(struct vfu *vfu);
void vfu_config_read(struct vfu *vfu, uint64_t offset, void *data,
		     uint32_t count);
void vfu_config_write(struct vfu *vfu, uint64_t offset, const void *data,
		      uint32_t count);

/* DMA off, waiters failed, config space and the device back to power-on. */
void vfu_reset(struct vfu *vfu, enum vfu_reset why);

#endif /* VFIO_USER_INTERNAL_H */
