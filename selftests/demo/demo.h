/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The demonstration: three initiators on one controller at once, fio through io_uring
 * passthrough, ext4 on the block device, and the software GPU through a queue pair of its
 * own.
 *
 * Each initiator has a thread, a part of the disk and a tally; main samples the tallies
 * every second. Source files, each with a header of its own; a file calls only files
 * below it:
 *
 *	demo.c		all at once, rates, table, verdict
 *	fio.c filesystem.c gpu.c	the initiators
 *	cpu.c		the GPU's counterpart
 *	report.c	error reports
 */
#ifndef DEMO_H
#define DEMO_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#define SECTOR 512	/* unit of /sys/class/block/.../{start,size,stat} */

/**
 * struct tally - progress of an initiator
 * @ios: commands completed
 * @bytes: transferred by them
 * @verified: bytes that were compared and right
 * @errors: failed commands and comparisons
 * @ended: the thread has ended
 *
 * Written by the initiator's thread, read by main at any time.
 */
struct tally {
	_Atomic uint64_t ios;
	_Atomic uint64_t bytes;
	_Atomic uint64_t verified;
	_Atomic uint64_t errors;
	_Atomic bool ended;
};

/** struct region - a partition, in logical blocks of the namespace */
struct region {
	uint64_t first;
	uint64_t blocks;
};

/**
 * struct demo - shared by all initiators; constant while they run, except for @stop
 * @controller: node, "nvmep0"
 * @namespace_node: "ngp0n1"
 * @fio_partition: "nvmep0n1p1" and so on
 * @stop_file: created when @stop is set, for initiators that are other programs
 * @seconds: how long all three run together at least
 * @tree: directory that is copied into the file system
 * @block_size: bytes of a logical block
 * @fio_region: of the disk, as is @gpu_region
 * @stop: set when the time is over
 */
struct demo {
	const char *controller;
	const char *namespace_node;
	const char *fio_partition;
	const char *ext4_partition;
	const char *gpu_partition;
	const char *tree;
	const char *stop_file;
	unsigned int seconds;
	uint32_t block_size;
	struct region fio_region;
	struct region gpu_region;
	_Atomic bool stop;
};

/**
 * struct rate - a measurement
 * @commands: reads completed
 * @nanoseconds: from start to end
 */
struct rate {
	uint64_t commands;
	uint64_t nanoseconds;
};

#endif /* DEMO_H */
