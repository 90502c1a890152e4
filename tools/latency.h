/* SPDX-License-Identifier: MIT OR GPL-2.0 */
/*
 * A histogram of latencies.  A percentile is at most one sixteenth above the exact value.
 */
#ifndef LATENCY_H
#define LATENCY_H

#include <stdint.h>

/* Ranges per power of two, and in total. */
enum { LATENCY_STEPS = 16, LATENCY_RANGES = 64 * LATENCY_STEPS };

/**
 * struct latency - histogram; empty if zeroed
 * @counts: operations per range
 * @total: number of operations
 * @sum: sum of all latencies, nanoseconds
 * @squares: sum of their squares
 * @min: lowest one
 * @max: highest one
 */
struct latency {
	uint64_t counts[LATENCY_RANGES];
	uint64_t total;
	uint64_t sum;
	double squares;
	uint64_t min;
	uint64_t max;
};

void latency_add(struct latency *latency, uint64_t nanoseconds);

/* Latency that @millionths of all operations did not exceed, nanoseconds; 0 if empty. */
uint64_t latency_percentile(const struct latency *latency, uint32_t millionths);

/* Mean latency in nanoseconds; 0 if empty. */
uint64_t latency_mean(const struct latency *latency);

/* Standard deviation in nanoseconds; 0 if empty. */
double latency_deviation(const struct latency *latency);

#endif /* LATENCY_H */
