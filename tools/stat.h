/* SPDX-License-Identifier: MIT OR GPL-2.0 */
/*
 * Counters of the kernel for the queues and disks of a controller.
 */
#ifndef STAT_H
#define STAT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

/* Most rows, and numbers of a row. */
enum { STAT_ROWS = 512, STAT_NUMBERS = 4, STAT_NAME = 40 };

/**
 * struct stat_row - a queue or a disk
 * @name: its queue identifier, or nvmep0n1
 * @owner: admin, io or peer; empty for a disk
 * @numbers: of a queue: submission and completion doorbell writes of the CPU, completions, lost
 *	interrupts; of a disk: reads, sectors of 512 bytes read, writes, sectors written
 * @known: bits of those that the kernel maintains
 */
struct stat_row {
	char name[STAT_NAME];
	char owner[8];
	uint64_t numbers[STAT_NUMBERS];
	unsigned int known;
};

/**
 * struct stat_sample - all counters at one time
 * @time: nanoseconds of CLOCK_MONOTONIC
 * @queues: number of @rows that are queues; they come first
 * @count: number of @rows
 * @rows: queues, then disks
 */
struct stat_sample {
	uint64_t time;
	size_t queues;
	size_t count;
	struct stat_row rows[STAT_ROWS];
};

/* stat_read() - read the counters of a controller; without queues if debugfs is not readable. */
void stat_read(struct stat_sample *sample, const char *node);

/* stat_subtract() - subtract @earlier from @later. */
void stat_subtract(struct stat_sample *later, const struct stat_sample *earlier);

/* stat_print() - tables of totals, or of rates over an interval. */
void stat_print(FILE *out, const struct stat_sample *sample, bool is_interval);

/* stat_node() - the name of a controller's node without its directory; NULL after an error message. */
const char *stat_node(const char *argument);

#endif /* STAT_H */
