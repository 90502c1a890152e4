// SPDX-License-Identifier: MIT OR GPL-2.0
/*
 * Bytes in a unit that leaves three digits or so; see units.h.
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
