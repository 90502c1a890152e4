// SPDX-License-Identifier: MIT OR GPL-2.0
/* Latencies, counted in ranges: see latency.h. */
#include "latency.h"

/* Below the first power of two that has so many steps each number is a range. */
static unsigned int range_of(uint64_t value)
{
	unsigned int shift = 0;

	while (value >> shift >= 2 * LATENCY_STEPS)
		shift++;
	return shift * LATENCY_STEPS + (unsigned int)(value >> shift);
}

/* The largest number of a range. */
static uint64_t end_of(unsigned int range)
{
	unsigned int shift;

	if (range < 2 * LATENCY_STEPS)
		return range;
	shift = range / LATENCY_STEPS - 1;
	return ((uint64_t)(range % LATENCY_STEPS + LATENCY_STEPS + 1) << shift) - 1;
}

void latency_add(struct latency *latency, uint64_t nanoseconds)
{
	latency->counts[range_of(nanoseconds)]++;
	latency->total++;
	latency->sum += nanoseconds;
}

uint64_t latency_percentile(const struct latency *latency, uint32_t millionths)
{
	/* Rounded up: of one operation any part is that one. */
	uint64_t wanted = (latency->total * millionths + 999999) / 1000000, seen = 0;
	unsigned int range;

	for (range = 0; range < LATENCY_RANGES; range++) {
		seen += latency->counts[range];
		if (seen && seen >= wanted)
			return end_of(range);
	}
	return 0;
}

uint64_t latency_mean(const struct latency *latency)
{
	return latency->total ? latency->sum / latency->total : 0;
}
