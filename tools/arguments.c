// SPDX-License-Identifier: MIT OR GPL-2.0
/*
 * The command line of nvme-peer: numbers, and complaints; see arguments.h.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#include "arguments.h"

bool parse_number(const char *text, uint64_t most, uint64_t *value)
{
	char *end;

	errno = 0;
	*value = strtoull(text, &end, 0);
	return !errno && end != text && !*end && text[0] != '-' && *value <= most;
}

int usage_error(const char *what, const char *argument)
{
	fprintf(stderr, "nvme-peer: %s%s%s; see nvme-peer --help\n", what,
		argument ? ": " : "", argument ? argument : "");
	return EXIT_USAGE;
}
