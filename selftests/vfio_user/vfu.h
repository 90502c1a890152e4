/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The state of a vfio-user server. Its source files, each using only those below it:
 *
 *	server.c	requests of the client, lifetime of a server
 *	config.c	config space
 *	dma.c		access to the guest's memory, direct where it is mapped, else by message
 *	map.c		the DMA map
 *	message.c	messages to and from the client
 */
#ifndef VFIO_USER_VFU_H
#define VFIO_USER_VFU_H

#include <pthread.h>
#include <stdatomic.h>
#include <sys/queue.h>

#include "protocol.h"
#include "vfio_user.h"

/* An entry of the DMA map. */
struct vfu_range {
	uint64_t address;
	uint64_t size;
	uint32_t flags;			/* VFIO_DMA_MAP_FLAG_READ, VFIO_DMA_MAP_FLAG_WRITE */
	char *memory;			/* of the guest, NULL if the client gave no file for it */
	unsigned int file;		/* index in struct vfu.files, VFU_FILES for none */
	uint64_t offset;		/* in the file */
};

#define VFU_FILES	8
#define VFU_SHARDS	16U

/*
 * A lock of the map, and counters, for a part of the threads, which are assigned to shards in
 * turn. A shard has separate cache lines, as a device that polls with several threads accesses
 * memory millions of times a second.
 */
struct vfu_shard {
	/* For reading to use memory of a range, in all shards for writing to change the map. */
	_Alignas(64) pthread_rwlock_t map_lock;
	_Atomic uint64_t counters[VFU_COUNTERS];
};

struct vfu {
	const struct vfu_device *device;
	void *context;

	/* Of the serving thread. Config space is in dwords. */
	uint32_t config[1024];
	uint32_t writable[1024];	/* bits that the guest may write; constant */
	uint32_t power_on[1024];	/* @config after a reset; constant */
	struct vfu_message message;	/* of the client */

	/* Serializes messages on @socket, and protects what follows. */
	pthread_mutex_t send_lock;
	int socket;			/* -1 without a client */
	struct vfu_message request;	/* of the server */
	uint16_t next_id;
	uint16_t posted;		/* posted writes, modulo 2^16 */

	/* The DMA map, sorted by address, without overlaps; protected by locks of shards. */
	struct vfu_range *ranges;
	size_t range_count;
	size_t range_room;
	struct vfu_place files[VFU_FILES];	/* open, @offset unused */
	unsigned int file_count;
	int neighbour;			/* -1 for none; constant */
	uint64_t neighbour_bytes;
	/* Changed with these locks and @send_lock held, so either one suffices to read it. */
	bool dma_enabled;
	struct vfu_shard shards[VFU_SHARDS];

	pthread_mutex_t pending_lock;	/* protects @pending and its entries */
	LIST_HEAD(vfu_requests, vfu_pending) pending;

	pthread_mutex_t vector_lock;	/* protects @vector_fds */
	int vector_fds[VFU_MAX_VECTORS];	/* eventfds, -1 for none */
};

/* --- config.c --------------------------------------------------------------- */

void vfu_config_init(struct vfu *vfu);
void vfu_config_reset(struct vfu *vfu);
void vfu_config_read(struct vfu *vfu, uint64_t offset, void *data, uint32_t count);
/* Returns whether the caller has to perform a function level reset. */
bool vfu_config_write(struct vfu *vfu, uint64_t offset, const void *data, uint32_t count);
/* Returns whether command register and power state allow bus mastering. */
bool vfu_config_allows_dma(const struct vfu *vfu);

/* --- dma.c ------------------------------------------------------------------ */

/*
 * After vfu_dma_enable(false) has returned, no request is sent and no guest memory is accessed.
 * Replies to earlier requests may still arrive.
 */
void vfu_dma_enable(struct vfu *vfu, bool enable);
/* Fail all requests that wait for a reply. */
void vfu_pending_cancel(struct vfu *vfu, int result);
/* Handle the reply to a request of the server. */
void vfu_pending_answer(struct vfu *vfu, const struct vfu_message *reply);

/* --- map.c ------------------------------------------------------------------ */

/* Positive errnos, as in replies. */
int vfu_map_add(struct vfu *vfu, const struct vfu_map *map, int fd);
int vfu_map_remove(struct vfu *vfu, uint64_t address, uint64_t size);
void vfu_map_clear(struct vfu *vfu);

/* The map's locks, struct vfu_shard. */
void vfu_map_read_lock(struct vfu *vfu);
void vfu_map_read_unlock(struct vfu *vfu);
void vfu_map_write_lock(struct vfu *vfu);
void vfu_map_write_unlock(struct vfu *vfu);

/* Index of the first range that ends after @address; called with the map locked. */
size_t vfu_map_find(const struct vfu *vfu, uint64_t address);

static inline uint64_t vfu_range_end(const struct vfu_range *range)
{
	return range->address + range->size;
}

static inline bool vfu_range_allows(const struct vfu_range *range, bool write)
{
	return range->flags & (write ? VFIO_DMA_MAP_FLAG_WRITE : VFIO_DMA_MAP_FLAG_READ);
}

/* Count for the calling thread. */
void vfu_count(struct vfu *vfu, enum vfu_counter counter, uint64_t by);

#endif /* VFIO_USER_VFU_H */
