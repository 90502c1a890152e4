/* SPDX-License-Identifier: MIT OR GPL-2.0 */
/*
 * A served queue pair: serve.c makes it, serve_command.c checks an entry, serve_run.c
 * executes commands.
 *
 * Peers may write all of the memory of the rings at any time.  The server reads entries,
 * doorbells and the quiesce word there, each once, and keeps all other state outside.  PRP
 * lists and SGL segments in buffers are read once, too.  It never reads or writes data.
 */
#ifndef NVMEPEER_LIB_SERVE_H
#define NVMEPEER_LIB_SERVE_H

#include <liburing.h>
#include <stdatomic.h>
#include <sys/uio.h>

#include <nvmepeer_serve.h>

#include "internal.h"
#include "nvme.h"

enum {
	SERVE_PAGE = 4096,
	SERVE_STRIDE = 64,	/* from the tail to the head doorbell */
	SERVE_ENTRY = 64,
	SERVE_COMPLETION = 16,
	SERVE_PARTS = NVME_PEER_EXPORT_CONTROL + 1,
};

/**
 * struct serve_namespace - a descriptor
 * @fd: duplicate of the caller's
 * @blocks: when it was added
 * @shift: log2 of the bytes of a block
 * @alignment: of addresses and lengths in memory, a power of two
 * @punches: Write Zeroes makes holes, as the file cannot zero ranges
 */
struct serve_namespace {
	int fd;
	uint64_t blocks;
	uint32_t shift;
	uint32_t alignment;
	bool punches;
};

/** struct serve_buffer - data memory; its handle is its number, from 1 on */
struct serve_buffer {
	uint8_t *address;
	uint64_t length;
};

/**
 * struct serve_command - a command that has been copied and checked
 * @namespace: its namespace
 * @offset: byte offset in the descriptor of what is left to be transferred
 * @bytes: what is left
 * @pieces: the memory of all data; room for nvmepeer_serve.most_pieces
 * @piece: first piece that is left
 * @count: pieces
 * @retries: submissions that the kernel answered with EAGAIN or EINTR
 * @cid: command identifier
 * @opcode: enum nvmepeer_opcode
 * @durable: Force Unit Access
 * @punches: Write Zeroes was submitted as a hole
 */
struct serve_command {
	struct serve_namespace *namespace;
	uint64_t offset;
	uint64_t bytes;
	struct iovec *pieces;
	uint32_t piece;
	uint32_t count;
	uint32_t retries;
	uint16_t cid;
	uint8_t opcode;
	bool durable;
	bool punches;
};

/** struct serve_part - a part of the memory that peers map */
struct serve_part {
	uint64_t offset;
	uint64_t length;
};

/**
 * struct nvmepeer_serve - a served queue pair
 * @entries: of each ring
 * @depth: most commands that the kernel has
 * @max_transfer: most bytes of a command
 * @most_pieces: most pieces of a command
 * @memory_fd: memfd of the parts; its size is sealed
 * @kick_fd: eventfd that wakes the thread
 * @memory: mapping of @memory_fd
 * @memory_bytes: its size
 * @parts: by enum nvme_peer_export
 * @ring: io_uring
 * @namespaces: of @namespace_count
 * @buffers: of @buffer_count
 * @commands: @depth of them
 * @pieces: of all commands
 * @idle: commands that are not in use, @idle_count of them
 * @state: enum nvme_peer_qp_state
 * @losses: how often it stopped being LIVE
 * @fetched: entries taken from the submission ring
 * @posted: completion entries written
 * @consumed: those that the head doorbell has returned
 * @active_ns: when there was something to do
 * @asleep: the status page says that the thread sleeps
 * @running: a thread is in nvmepeer_serve_run(), which owns the fields from @idle on
 * @stop: it shall return
 */
struct nvmepeer_serve {
	uint32_t entries;
	uint32_t depth;
	uint32_t max_transfer;
	uint32_t most_pieces;
	int memory_fd;
	int kick_fd;
	uint8_t *memory;
	size_t memory_bytes;
	struct serve_part parts[SERVE_PARTS];
	struct io_uring ring;
	struct serve_namespace namespaces[NVMEPEER_SERVE_NAMESPACES];
	struct serve_buffer buffers[NVMEPEER_SERVE_BUFFERS];
	uint32_t namespace_count;
	uint32_t buffer_count;
	struct serve_command *commands;
	struct iovec *pieces;
	struct serve_command **idle;
	uint32_t idle_count;
	atomic_uint state;
	atomic_uint losses;
	uint32_t fetched;
	uint32_t posted;
	uint32_t consumed;
	uint64_t active_ns;
	bool asleep;
	atomic_bool running;
	atomic_bool stop;
};

/** serve_memory() - address of a part */
static inline void *serve_memory(const struct nvmepeer_serve *serve, enum nvme_peer_export part)
{
	return serve->memory + serve->parts[part].offset;
}

/**
 * serve_set_state() - report a state in the status page
 * @serve: the queue pair
 * @state: enum nvme_peer_qp_state
 * @reason: enum nvme_peer_qp_reason
 */
void serve_set_state(struct nvmepeer_serve *serve, uint32_t state, uint32_t reason);

/**
 * serve_check() - check an entry that has been copied
 * @serve: the queue pair
 * @entry: the copy
 * @command: all fields but @pieces are set
 *
 * Returns 0, or the NVMe status with which the command completes.
 */
uint32_t serve_check(struct nvmepeer_serve *serve, const uint32_t entry[16],
		     struct serve_command *command);

/**
 * serve_status() - the NVMe status for an errno
 * @opcode: of the command
 * @error: negative errno
 */
uint32_t serve_status(uint8_t opcode, int error);

#endif /* NVMEPEER_LIB_SERVE_H */
