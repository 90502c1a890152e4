/* SPDX-License-Identifier: MIT OR GPL-2.0 */
/*
 * Output of the nvme-peer command, as text or as JSON from the same calls.
 */
#ifndef REPORT_H
#define REPORT_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

/**
 * struct report - output in progress
 * @out: stream
 * @json: JSON, else indented text
 * @verbose: text has exact numbers beside rounded ones
 * @depth: number of open objects and lists
 * @empty: the innermost one has no members yet
 */
struct report {
	FILE *out;
	bool json;
	bool verbose;
	int depth;
	bool empty;
};

void report_begin(struct report *report, FILE *out, bool json);
void report_end(struct report *report);

/* @name is NULL for a member of a list. */
void report_object(struct report *report, const char *name);
void report_object_end(struct report *report);
void report_list(struct report *report, const char *name);
void report_list_end(struct report *report);

/* @unit is omitted in JSON and may be NULL. */
void report_number(struct report *report, const char *name, uint64_t value,
		   const char *unit);

/*
 * Rounded in text, exact in JSON. @label is the name in text, NULL for @name; @unit is that of
 * @value, for verbose text.
 */
void report_rounded(struct report *report, const char *name, uint64_t value, const char *unit,
		    const char *label, const char *text);

/* "512 KiB", "5.00 s", "81.2 us", "812k". */
void report_bytes(struct report *report, const char *name, uint64_t value);
void report_duration(struct report *report, const char *name, const char *label, uint64_t ns);
void report_microseconds(struct report *report, const char *name, const char *label, uint64_t ns);
void report_count(struct report *report, const char *name, uint64_t value);

/* JSON only. */
void report_real(struct report *report, const char *name, double value);

void report_text(struct report *report, const char *name, const char *value);
void report_bool(struct report *report, const char *name, bool value);

/* report_failure() - report the explanation of the last failed call of the library. */
void report_failure(struct report *report);

#endif /* REPORT_H */
