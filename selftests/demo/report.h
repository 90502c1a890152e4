/* SPDX-License-Identifier: GPL-2.0-only */
/* Error reports, one line each. */
#ifndef DEMO_REPORT_H
#define DEMO_REPORT_H

#include <stdbool.h>

/*
 * report_error() - print one line to stdout, with the library's explanation if @explain.
 */
__attribute__((format(printf, 2, 3)))
void report_error(bool explain, const char *format, ...);

#endif /* DEMO_REPORT_H */
