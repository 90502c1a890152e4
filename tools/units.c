// SPDX-License-Identifier: MIT OR GPL-2.0
/*
 * Numbers in a unit that leaves about three digits; see units.h.
 */
#include <stdio.h>

#include "units.h"

static const char *in_units(uint64_t bytes, unsigned int step, const char *infix,
			    char text[UNITS_TEXT])
{
	static const char prefixes[] = "kMGTPE";
	double value = (double)bytes;
	int prefix = -1;

	while (value >= step && prefixes[prefix + 1]) {
		value /= step;
		prefix++;
	}
	if (prefix < 0)
		snprintf(text, UNITS_TEXT, "%u B", (unsigned int)bytes);
	else
		snprintf(text, UNITS_TEXT, "%.*f %c%sB", value < 10 && step == 1000 ? 2 : 0, value,
			 step == 1024 && !prefix ? 'K' : prefixes[prefix], infix);
	return text;
}

const char *units_disk(uint64_t bytes, char text[UNITS_TEXT])
{
	return in_units(bytes, 1000, "", text);
}

const char *units_memory(uint64_t bytes, char text[UNITS_TEXT])
{
	return in_units(bytes, 1024, "i", text);
}

const char *units_count(uint64_t count, char text[UNITS_TEXT])
{
	static const char prefixes[] = "kMGTPE";
	double value = (double)count;
	size_t i;

	for (i = 0; value >= 1000 && prefixes[i]; i++)
		value /= 1000;
	if (i)
		snprintf(text, UNITS_TEXT, "%.*f%c", value < 10 ? 2 : value < 100, value, prefixes[i - 1]);
	else
		snprintf(text, UNITS_TEXT, "%u", (unsigned int)count);
	return text;
}

const char *units_time(uint64_t nanoseconds, char text[UNITS_TEXT])
{
	double value = (double)nanoseconds;

	if (nanoseconds < 1000)
		snprintf(text, UNITS_TEXT, "%u ns", (unsigned int)nanoseconds);
	else if (nanoseconds < 1000000)
		snprintf(text, UNITS_TEXT, "%.1f us", value / 1e3);
	else if (nanoseconds < 1000000000)
		snprintf(text, UNITS_TEXT, "%.1f ms", value / 1e6);
	else
		snprintf(text, UNITS_TEXT, "%.2f s", value / 1e9);
	return text;
}
