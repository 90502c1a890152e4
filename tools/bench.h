/* SPDX-License-Identifier: MIT OR GPL-2.0 */
/*
 * The results of nvme-peer bench and their output.
 */
#ifndef BENCH_H
#define BENCH_H

#include "arguments.h"
#include "latency.h"
#include "report.h"

/* Depths of --sweep: 1, 2, 4, ... 4096. */
enum { BENCH_RUNS = 13 };

/**
 * struct bench_run - one measurement
 * @depth: commands in flight
 * @took: duration, nanoseconds
 * @user: processor time of the program in user mode, nanoseconds
 * @system: the same in the kernel
 * @latency: of the commands that succeeded
 */
struct bench_run {
	uint32_t depth;
	uint64_t took;
	uint64_t user;
	uint64_t system;
	struct latency latency;
};

/**
 * struct bench_result - measurements of one command line
 * @name: the namespace
 * @writes: they wrote; otherwise they read
 * @polled: on a queue without interrupts
 * @verdict: placement of the imported buffer; NULL for memory of the process
 * @size: bytes of a transfer
 * @ranges: transfers of a command
 * @count: number of @runs
 * @runs: the measurements, by depth
 */
struct bench_result {
	const char *name;
	bool writes;
	bool polled;
	const char *verdict;
	uint32_t size;
	uint32_t ranges;
	size_t count;
	struct bench_run runs[BENCH_RUNS];
};

/* bench_report() - print the results in a format; a sweep is a list. */
void bench_report(struct report *report, const struct options *options,
		  const struct bench_result *result);

#endif /* BENCH_H */
