/* SPDX-License-Identifier: MIT OR GPL-2.0 */
/*
 * How long each of many operations took, counted in ranges: what is read out is at most a
 * sixteenth more than what was.
 */
#ifndef LATENCY_H
#define LATENCY_H

#include <stdint.h>

/* Ranges between a power of two and the next, and all of them. */
enum { LATENCY_STEPS = 16, LATENCY_RANGES = 64 * LATENCY_STEPS };

/**
 * struct latency - of many operations; all zero is none
 * @counts: how many fell into each range
 * @total: how many there were
 * @sum: of all, nanoseconds
 */
struct latency {
	uint64_t counts[LATENCY_RANGES];
	uint64_t total;
	uint64_t sum;
};

void latency_add(struct latency *latency, uint64_t nanoseconds);

/* Nanoseconds that @millionths of a million operations did not exceed; 0 of none. */
uint64_t latency_percentile(const struct latency *latency, uint32_t millionths);

/* Nanoseconds of one on average; 0 of none. */
uint64_t latency_mean(const struct latency *latency);

#endif /* LATENCY_H */
