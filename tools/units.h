/* SPDX-License-Identifier: MIT OR GPL-2.0 */
/*
 * Numbers with units. Sizes: disks in powers of 1000, memory in powers of 1024.
 */
#ifndef UNITS_H
#define UNITS_H

#include <stdint.h>

enum { UNITS_TEXT = 16 };

/* units_disk() - "1.92 TB"; returns @text. */
const char *units_disk(uint64_t bytes, char text[UNITS_TEXT]);

/* units_memory() - "32 GiB"; returns @text. */
const char *units_memory(uint64_t bytes, char text[UNITS_TEXT]);

/* units_count() - "812", "812k"; returns @text. */
const char *units_count(uint64_t count, char text[UNITS_TEXT]);

/* units_time() - "81.2 us", "5.00 s"; returns @text. */
const char *units_time(uint64_t nanoseconds, char text[UNITS_TEXT]);

#endif /* UNITS_H */
