/* SPDX-License-Identifier: MIT OR GPL-2.0 */
/*
 * I/O on the members of a store.  io.c has it by io_uring; the tests replace it by a model
 * of disks that lose power (tests/model.c).
 */
#ifndef NVMEPEER_STORE_IO_H
#define NVMEPEER_STORE_IO_H

#include <stdbool.h>
#include <stdint.h>

/**
 * struct io_disk - an open member
 * @bytes: length
 * @start: its first byte on the namespace; 0 if it is no partition
 * @block: logical block
 * @nsid: the NVMe namespace; 0: it is none, and no partition of one
 * @fd: descriptor
 */
struct io_disk {
	uint64_t bytes;
	uint64_t start;
	uint32_t block;
	uint32_t nsid;
	int fd;
};

/**
 * io_open() - open a block device or regular file, which no other store may have open
 * @path: path
 * @read_only: nothing will be written
 * @disk: receives the disk; released by io_close()
 *
 * Returns 0 or a negative errno: -EBUSY if it is in use, -ENOTBLK if it is neither,
 * -EOPNOTSUPP if its file system has no direct I/O.
 */
int io_open(const char *path, bool read_only, struct io_disk *disk);

void io_close(struct io_disk *disk);

enum io_kind {
	IO_READ,
	IO_WRITE,		/* durable after a Flush that began after its completion */
	IO_WRITE_FUA,		/* durable when it completes */
	IO_FLUSH,
};

/**
 * struct io - one command
 * @disk: where
 * @data: memory, aligned to the logical block
 * @offset: whole logical blocks, as @bytes
 * @bytes: length
 * @kind: what
 * @result: out: 0 or a negative errno
 */
struct io {
	const struct io_disk *disk;
	void *data;
	uint64_t offset;
	uint64_t bytes;
	enum io_kind kind;
	int result;
};

/** struct io_queue - commands of one thread at a time */
struct io_queue;

/** io_queue_open() - returns 0 or a negative errno. */
int io_queue_open(struct io_queue **queue);

void io_queue_close(struct io_queue *queue);

/** io_submit() - start a command; @io and its data stay until io_wait() returns. */
void io_submit(struct io_queue *queue, struct io *io);

/** io_wait() - wait for all commands of a queue. */
void io_wait(struct io_queue *queue);

#endif /* NVMEPEER_STORE_IO_H */
