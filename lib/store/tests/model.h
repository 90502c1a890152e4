/* SPDX-License-Identifier: MIT OR GPL-2.0 */
/*
 * A model of disks, in place of io.c: with a volatile cache, power cuts that lose a random
 * subset of unflushed blocks and tear writes at logical blocks, processes that are killed,
 * and I/O errors.  A command is executed when it is submitted, at any time later, or at
 * the latest when it is waited for, in any order.
 */
#ifndef NVMEPEER_STORE_MODEL_H
#define NVMEPEER_STORE_MODEL_H

#include <stdbool.h>
#include <stdint.h>

#include "../io.h"

enum { MODEL_DISKS = 4, MODEL_BLOCK = 512, MODEL_BYTES = 1 << 20 };

/* Where the disks begin on their namespaces, of which they are partitions. */
enum { MODEL_OFFSET = 8192 };

enum model_end {
	MODEL_CUT,		/* power: what is not durable may be lost */
	MODEL_KILL,		/* the process: commands in flight may be executed in part */
};

/**
 * model_reset() - disks of zeros
 * @seed: of the random numbers
 */
void model_reset(uint64_t seed);

/** model_random() - a number below @range. */
uint32_t model_random(uint32_t range);

/** model_arm() - after so many @commands of all disks, end those of the set @disks. */
void model_arm(enum model_end end, uint32_t commands, uint32_t disks);

/** model_end() - end these disks now. */
void model_end(enum model_end end, uint32_t disks);

/** model_ended() - the disks that have ended, by bit. */
uint32_t model_ended(void);

/** model_start() - all disks work again, with what they have kept. */
void model_start(void);

/**
 * model_fail() - the command number @after of this kind on this disk fails, and the next ones
 *
 * It has been executed or not; a Flush has lost what was not durable.
 */
void model_fail(uint32_t disk, enum io_kind kind, uint32_t after, uint32_t commands);

/** model_block() - the logical block of a disk, default MODEL_BLOCK. */
void model_block(uint32_t disk, uint32_t bytes);

/** model_bytes() - the length of a disk, default MODEL_BYTES. */
void model_bytes(uint32_t disk, uint64_t bytes);

/** model_hide() - io_open() of a disk fails with @error; 0: no more. */
void model_hide(uint32_t disk, int error);

/** model_namespace() - the namespace of a disk, default 1; 0: it is none. */
void model_namespace(uint32_t disk, uint32_t nsid);

/** model_no_queues() - io_queue_open() fails with @error; 0: no more. */
void model_no_queues(int error);

/** model_hook() - call @hook before each io_wait(); NULL: no more. */
void model_hook(void (*hook)(void *argument), void *argument);

/** model_commands() - commands of a kind that were executed. */
uint64_t model_commands(enum io_kind kind);

/** model_peer_write() - what a peer does to a disk. */
void model_peer_write(uint32_t disk, uint64_t offset, const void *data, uint64_t bytes);

/** model_peer_read() - as the controller returns it. */
void model_peer_read(uint32_t disk, uint64_t offset, void *data, uint64_t bytes);

#endif /* NVMEPEER_STORE_MODEL_H */
