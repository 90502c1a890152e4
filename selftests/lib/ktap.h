/* SPDX-License-Identifier: GPL-2.0-only */
/* ktap.h: results of a test program in KTAP, without a framework. */
#ifndef SELFTESTS_LIB_KTAP_H
#define SELFTESTS_LIB_KTAP_H

#include <stdbool.h>
#include <stdio.h>
#include <string.h>

static unsigned int ktap_count, ktap_failures;

static inline void ktap_start(void)
{
	setvbuf(stdout, NULL, _IOLBF, 0);
	printf("TAP version 13\n");
}

static inline void ktap_check(bool good, const char *name)
{
	printf("%s %u %s\n", good ? "ok" : "not ok", ++ktap_count, name);
	if (!good)
		ktap_failures++;
}

/*
 * Is the case selected?  The first argument of a program, if any, selects a
 * single case.
 */
static inline bool ktap_wants(int argc, char **argv, const char *name)
{
	return argc < 2 || !strcmp(argv[1], name);
}

/* Print the plan and return the exit status.  A run without a check fails. */
static inline int ktap_end(void)
{
	printf("1..%u\n", ktap_count);
	return ktap_failures || !ktap_count ? 1 : 0;
}

#endif /* SELFTESTS_LIB_KTAP_H */
