/* SPDX-License-Identifier: MIT OR GPL-2.0 */
/*
 * Answers of the nvme-peer command, once as text for people and once as JSON
 * for programs, from the same calls.
 */
#ifndef REPORT_H
#define REPORT_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

/**
 * struct report - an answer being written
 * @out: where to
 * @json: JSON, else indented text
 * @depth: objects and lists that are open
 * @empty: nothing has been written into the innermost one yet
 */
struct report {
	FILE *out;
	bool json;
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

/* @unit is for people only and may be NULL. */
void report_number(struct report *report, const char *name, uint64_t value,
		   const char *unit);
void report_text(struct report *report, const char *name, const char *value);
void report_bool(struct report *report, const char *name, bool value);

/* report_failure() - the library's explanation of the call that just failed. */
void report_failure(struct report *report);

#endif /* REPORT_H */
