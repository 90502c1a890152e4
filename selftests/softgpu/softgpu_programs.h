/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The programs of softgpu and their parameters. Programs are built into the device; a job names
 * one.
 */
#ifndef SOFTGPU_PROGRAMS_H
#define SOFTGPU_PROGRAMS_H

#include <stdint.h>

#include <nvmepeer_device.h>

#include "softgpu_regs.h"

/**
 * enum softgpu_program - program of a job
 * @SOFTGPU_NOP: nothing
 *
 * On blocks, struct softgpu_io, through the device library:
 * @SOFTGPU_QUEUE_INIT: initialise the queue pair's state, once before all others
 * @SOFTGPU_WRITE: write the pattern to every block of the range
 * @SOFTGPU_VERIFY: read every block of the range and compare with the pattern
 * @SOFTGPU_MIXED: write the range once, then read and write random parts of it
 *	and compare what was read; at the end the range holds the pattern.  A
 *	thread uses at most 1024 times @blocks blocks of the range
 * @SOFTGPU_RANDOM: read random parts of the range, which hold the pattern, and
 *	compare
 * @SOFTGPU_LATENCY: read random parts, one at a time, and record the latency of each
 * @SOFTGPU_EXCLUSIVE: like LATENCY, by one thread with exclusive use of the queue pair
 * @SOFTGPU_EXCHANGE: like EXCLUSIVE, without the library: write an entry, ring, poll for the
 *	completion, ring. @blocks are at most a page, and @data is one range
 * @SOFTGPU_RATE: read random parts, @depth of them in flight for each thread; the data is not
 *	compared
 * @SOFTGPU_COPY: read every block of the range, write it at @target_lba
 * @SOFTGPU_FLUSH: one flush command
 * @SOFTGPU_GATHER: read the range by commands of @blocks, each page to the page of data memory
 *	that @page_table names, like a paged cache
 * @SOFTGPU_GATHERED: compare the pages that GATHER has read with the pattern, and overwrite them
 * @SOFTGPU_LIST: read @commands items, struct nvmepeer_list_item[] at @page_table, by the kernel of
 *	nvmepeer_cuda_read_list(), through all queue pairs; more than one, with CUDA. Memory @n
 *	is that of queue pair @n; all have the same size. One block runs it: 512 threads
 * @SOFTGPU_LIST_COPY: the same items by loads from the disk's memory
 * @SOFTGPU_LIST_CHECK: compare the items with the pattern, and overwrite them
 * @SOFTGPU_QUEUE_REARM: use the queue pair again after a loss; @queue.generation
 *	is the new one
 *
 * On memory, struct softgpu_memory; @address is any GPU address:
 * @SOFTGPU_STORE: store @value
 * @SOFTGPU_LOAD: load into softgpu_result.value
 * @SOFTGPU_FILL: store the pattern of @seed over @length bytes
 * @SOFTGPU_CHECK: compare @length bytes with the pattern of @seed
 * @SOFTGPU_MEMCPY: copy @length bytes from @source
 * @SOFTGPU_POLL: load until (value & @mask) == @value
 * @SOFTGPU_HAMMER: store @value repeatedly
 *
 * @SOFTGPU_MANIFEST: struct softgpu_manifest: describe queue pairs in a file of the shared
 *	directory, for a process that uses them in place of this GPU
 */
enum softgpu_program {
	SOFTGPU_NOP = 0,

	SOFTGPU_LIST = 13,
	SOFTGPU_LIST_COPY = 14,
	SOFTGPU_LIST_CHECK = 15,
	SOFTGPU_QUEUE_INIT = 16,
	SOFTGPU_WRITE = 17,
	SOFTGPU_VERIFY = 18,
	SOFTGPU_MIXED = 19,
	SOFTGPU_RANDOM = 20,
	SOFTGPU_LATENCY = 21,
	SOFTGPU_RATE = 22,
	SOFTGPU_COPY = 23,
	SOFTGPU_FLUSH = 24,
	SOFTGPU_QUEUE_REARM = 25,
	SOFTGPU_GATHER = 26,
	SOFTGPU_EXCLUSIVE = 27,
	SOFTGPU_EXCHANGE = 28,
	SOFTGPU_GATHERED = 29,

	SOFTGPU_STORE = 32,
	SOFTGPU_LOAD = 33,
	SOFTGPU_FILL = 34,
	SOFTGPU_CHECK = 35,
	SOFTGPU_MEMCPY = 36,
	SOFTGPU_POLL = 37,
	SOFTGPU_HAMMER = 38,

	SOFTGPU_MANIFEST = 48,
};

/**
 * struct softgpu_io - parameters of programs on blocks
 * @queue: the queue pair, with GPU addresses. state and list_memory.pages must be contiguous
 *	in HBM, and data.pages as well
 * @data: data memory, with addresses of the controller
 * @data_address: GPU address of the data memory, contiguous in HBM or in its window, or with CUDA in host
 *	memory. Each thread uses an equal part of it
 * @first_lba: first block of the range
 * @lba_count: blocks of the range
 * @target_lba: SOFTGPU_COPY: first block of the copy
 * @seed: seed of the pattern and of random numbers
 * @commands: random programs: commands of all threads together; 0: no limit. SOFTGPU_LIST and
 *	others: number of items
 * @duration_ns: random programs: end after that; 0: no limit
 * @samples: LATENCY, EXCLUSIVE and EXCHANGE: GPU address in HBM of uint64_t[@sample_count] for
 *	the nanoseconds that each command took, or 0
 * @sample_count: see @samples
 * @blocks: blocks of a command; the last one of a range may be shorter
 * @depth: SOFTGPU_RATE: commands in flight for each thread, 1 to 256, by nvmepeer_submit(); the
 *	total must not exceed the CIDs. 0: one, by nvmepeer_execute(), without that limit
 * @read_percent: SOFTGPU_MIXED
 * @most_blocks: SOFTGPU_RANDOM and SOFTGPU_RATE: not 0: commands differ in size, by powers
 *	of two from @blocks to this
 * @more: @pairs > 1: GPU address in HBM of struct softgpu_io[@pairs - 1], one for each further
 *	queue pair
 * @pairs: number of queue pairs, up to SOFTGPU_MOST_PAIRS; the threads are divided equally among
 *	them. 0 is 1; more than one needs CUDA
 * @page_table: SOFTGPU_LIST and others: its items, in HBM. SOFTGPU_GATHER and GATHERED: GPU address in HBM of a uint32_t for each page of the range, the
 *	number of its page in the data memory
 * @page_shift: SOFTGPU_GATHER and GATHERED: log2 of the page size, at least a controller page; a command has
 *	at most SOFTGPU_GATHER_PAGES controller pages
 * @reserved: 0
 * @pace_ns: SOFTGPU_RATE: minimum time between two commands of a thread; 0: none
 *
 * A random program without limits runs until it is stopped.
 */
struct softgpu_io {
	struct nvmepeer_geometry queue;
	struct nvmepeer_buffer data;
	uint64_t data_address;
	uint64_t first_lba;
	uint64_t lba_count;
	uint64_t target_lba;
	uint64_t seed;
	uint64_t commands;
	uint64_t duration_ns;
	uint64_t samples;
	uint64_t sample_count;
	uint32_t blocks;
	uint32_t depth;
	uint32_t read_percent;
	uint32_t most_blocks;
	uint64_t more;
	uint32_t pairs;
	uint32_t pace_ns;
	uint64_t page_table;
	uint32_t page_shift;
	uint32_t reserved;
};

#define SOFTGPU_GATHER_PAGES	32U

#define SOFTGPU_MOST_PAIRS	64U

/* softgpu_memory.flags */
#define SOFTGPU_MEMORY_POSTED	(1U << 0)	/* STORE, HAMMER: as a doorbell, width 4 */
#define SOFTGPU_MEMORY_MESSAGE	(1U << 1)	/* DMA by message even if guest memory is mapped */

/**
 * struct softgpu_memory - parameters of programs on memory
 * @address: GPU address
 * @source: SOFTGPU_MEMCPY: GPU address
 * @length: bytes
 * @value: see the programs
 * @mask: SOFTGPU_POLL
 * @seed: of the pattern
 * @duration_ns: SOFTGPU_POLL: fail after that; SOFTGPU_HAMMER: end after that;
 *	0: no limit
 * @width: STORE, LOAD, POLL, HAMMER: 1, 2, 4 or 8 bytes, and @address aligned to it
 * @flags: SOFTGPU_MEMORY_*
 *
 * The threads share the work of FILL, CHECK and MEMCPY; other programs need one thread.
 */
struct softgpu_memory {
	uint64_t address;
	uint64_t source;
	uint64_t length;
	uint64_t value;
	uint64_t mask;
	uint64_t seed;
	uint64_t duration_ns;
	uint32_t width;
	uint32_t flags;
};

/**
 * struct softgpu_data - data memory of a manifest
 * @address: GPU address, in the window
 * @dma: DMA address for the controller
 * @bytes: length of both, which are contiguous
 */
struct softgpu_data {
	uint64_t address;
	uint64_t dma;
	uint64_t bytes;
};

#define SOFTGPU_MOST_DATA	8U

/**
 * struct softgpu_manifest - parameters of SOFTGPU_MANIFEST
 * @pairs: GPU address in HBM of struct nvmepeer_geometry[@pair_count], without PRP lists
 * @control: GPU address of a page for the two processes
 * @data: data memories
 * @pair_count: up to SOFTGPU_MOST_PAIRS
 * @data_count: up to SOFTGPU_MOST_DATA
 * @generation: of the queue pairs: a number that grows with each re-arm
 * @reserved: 0
 *
 * The file appears as a whole, in place of the one before.
 */
struct softgpu_manifest {
	uint64_t pairs;
	uint64_t control;
	struct softgpu_data data[SOFTGPU_MOST_DATA];
	uint32_t pair_count;
	uint32_t data_count;
	uint32_t generation;
	uint32_t reserved;
};

/**
 * softgpu_pattern() - the expected 8-byte word
 * @seed: seed of the run
 * @block: logical block; for memory, 0
 * @word: index of the 8-byte word in the block or the memory
 *
 * Words of different blocks, indices and seeds differ, so that a block that was not written, or
 * was written with other data, is detected.
 *
 * Return: the word.
 */
NVP_HOST_FN uint64_t softgpu_pattern(uint64_t seed, uint64_t block,
				     uint64_t word)
{
	uint64_t x = seed + block * 0x9e3779b97f4a7c15u +
		     (word + 1) * 0xd1b54a32d192ed03u;

	/* The finaliser of splitmix64. */
	x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9u;
	x = (x ^ (x >> 27)) * 0x94d049bb133111ebu;
	return x ^ (x >> 31);
}

#ifndef __cplusplus
_Static_assert(sizeof(struct softgpu_io) <= SOFTGPU_PARAMETER_BYTES,
	       "parameters fit into a job");
_Static_assert(sizeof(struct softgpu_manifest) <= SOFTGPU_PARAMETER_BYTES,
	       "parameters fit into a job");
#endif

#endif /* SOFTGPU_PROGRAMS_H */
