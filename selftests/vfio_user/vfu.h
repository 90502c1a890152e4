/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The state of a vfio-user server. Its source files, each with a header and using only those
 * below it:
 *
 *	server.c	requests of the client, lifetime of a server
 *	config.c	config space
 *	dma.c		access to the guest's memory, direct where it is mapped
 *	request.c	requests of the server, and waiting for their replies
 *	map.c		the DMA map
 *	socket.c	messages to and from the client
 */
#ifndef VFIO_USER_VFU_H
#define VFIO_USER_VFU_H

#include <pthread.h>
#include <stdatomic.h>

#include "vfio_user.h"

/**
 * struct vfu_range - an entry of the DMA map
 * @address: first bus address
 * @size: bytes
 * @flags: VFU_MAP_READ, VFU_MAP_WRITE
 * @memory: the guest's memory, NULL if the client gave no file for it
 * @file: index in struct vfu.files
 * @offset: offset of @memory in the file
 * @neighbour: memory of the neighbour
 */
struct vfu_range {
	uint64_t address;
	uint64_t size;
	uint32_t flags;
	char *memory;
	unsigned int file;
	uint64_t offset;
	bool neighbour;
};

/* A file with memory of the client, kept open for vfu_locate(). */
struct vfu_file {
	int fd;
	uint64_t device;
	uint64_t inode;
};

#define VFU_FILES	8

/**
 * struct vfu_pending - a request of the server that waits for its reply
 * @next: list, newest first
 * @answered: signalled when @done is set
 * @data: destination of a read, NULL for a write
 * @length: bytes of @data
 * @result: 0 or negative errno
 * @id: ID of the message
 * @done: @result is valid, and the request is no longer on the list
 *
 * On the waiter's stack; vfu->pending_lock protects all fields while it is on the list.
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

#define VFU_SHARDS	16U

/**
 * struct vfu_shard - a lock of the map, and counters, for a part of the threads
 * @map_lock: held for reading by threads of this shard that use memory of a range, for writing
 *	in all shards to change the map
 * @counters: counters of the shard's threads
 *
 * Threads are assigned to shards in turn. A shard has separate cache lines, as a device that
 * polls with several threads accesses memory millions of times a second.
 */
struct vfu_shard {
	_Alignas(64) pthread_rwlock_t map_lock;
	_Atomic uint64_t counters[VFU_COUNTERS];
};

/**
 * struct vfu - the server
 * @device: constant
 * @context: constant
 * @config: config space; only the serving thread
 * @writable: bits of @config that the guest may write; constant
 * @power_on: @config after a reset; constant
 * @send_lock: serializes messages on @socket; protects @socket, @next_id, @next_posted_id,
 *	@unanswered
 * @socket: connection to the client, -1 for none
 * @next_id: next ID of requests with a reply
 * @next_posted_id: next ID of posted writes
 * @unanswered: posted writes since the last one that waited for its reply
 * @ranges: the DMA map, sorted by address, without overlaps; see struct vfu_shard
 * @range_count: entries of @ranges
 * @range_room: allocated entries of @ranges
 * @files: files of the ranges' memory; protected by the map's locks as well
 * @file_count: entries of @files
 * @neighbour: memory of the neighbour device, -1 for none; constant while serving
 * @neighbour_bytes: size of that memory
 * @dma_enabled: bus mastering is enabled. Changed with the map's locks (write) and @send_lock
 *	held, so either one suffices to read it
 * @pending_lock: protects @pending
 * @pending: requests that wait for a reply
 * @vector_lock: protects @vector_fds
 * @vector_fds: an eventfd for each MSI vector, -1 for none
 * @shards: see struct vfu_shard
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
	struct vfu_range *ranges;
	size_t range_count;
	size_t range_room;
	struct vfu_file files[VFU_FILES];
	unsigned int file_count;
	int neighbour;
	uint64_t neighbour_bytes;
	bool dma_enabled;
	pthread_mutex_t pending_lock;
	struct vfu_pending *pending;
	pthread_mutex_t vector_lock;
	int vector_fds[VFU_MAX_VECTORS];
	struct vfu_shard shards[VFU_SHARDS];
};

/* The shard of the calling thread. */
struct vfu_shard *vfu_shard(struct vfu *vfu);

static inline void vfu_count(struct vfu *vfu, enum vfu_counter counter,
			     uint64_t by)
{
	atomic_fetch_add_explicit(&vfu_shard(vfu)->counters[counter], by,
				  memory_order_relaxed);
}

#endif /* VFIO_USER_VFU_H */
