// SPDX-License-Identifier: GPL-2.0-only
/* One line about an error, with the library's explanation. */
#include <stdarg.h>
#include <stdio.h>

#include <nvmepeer.h>

#include "report.h"

void report_error(bool explain, const char *format, ...)
{
	struct nvmepeer_explanation explanation;
	va_list arguments;

	flockfile(stdout);
	fputs("demo: ", stdout);
	va_start(arguments, format);
	vprintf(format, arguments);
	va_end(arguments);
	if (explain && nvmepeer_explain(&explanation, sizeof(explanation)))
		printf(": %s; %s; %s", explanation.what, explanation.limit,
		       explanation.help);
	putchar('\n');
	fflush(stdout);
	funlockfile(stdout);
}
