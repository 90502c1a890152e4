// SPDX-License-Identifier: MIT OR GPL-2.0
/* Histogram of latencies; see latency.h. */
#include <math.h>

#include "latency.h"

/* Values below 2 * LATENCY_STEPS have a range each. */
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
	if (!latency->total || nanoseconds < latency->min)
		latency->min = nanoseconds;
	if (nanoseconds > latency->max)
		latency->max = nanoseconds;
	latency->total++;
	latency->sum += nanoseconds;
	latency->squares += (double)nanoseconds * (double)nanoseconds;
}

uint64_t latency_percentile(const struct latency *latency, uint32_t millionths)
{
	/* Round up, so that any percentile of one operation is that operation. */
	uint64_t target = (latency->total * millionths + 999999) / 1000000, seen = 0;
	unsigned int range;

	for (range = 0; range < LATENCY_RANGES; range++) {
		seen += latency->counts[range];
		if (seen && seen >= target)
			return end_of(range);
	}
	return 0;
}

uint64_t latency_mean(const struct latency *latency)
{
	return latency->total ? latency->sum / latency->total : 0;
}

double latency_deviation(const struct latency *latency)
{
	double count = (double)latency->total, mean = count ? (double)latency->sum / count : 0;

	return count ? sqrt(fmax(0, latency->squares / count - mean * mean)) : 0;
}
