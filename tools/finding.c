// SPDX-License-Identifier: MIT OR GPL-2.0
/*
 * A finding of nvme-peer doctor as text or JSON; see doctor.h.
 */
#include <stdarg.h>

#include "doctor.h"

static const char *const levels[] = {
	[DOCTOR_OK] = "ok", [DOCTOR_WARN] = "warn", [DOCTOR_FAIL] = "FAIL",
};

void doctor_say(struct doctor *doctor, enum doctor_level level, const char *check,
		const char *cure, const char *format, ...)
{
	struct report *report = doctor->report;
	va_list arguments;
	char text[512];

	va_start(arguments, format);
	vsnprintf(text, sizeof(text), format, arguments);
	va_end(arguments);
	if (level > doctor->worst)
		doctor->worst = level;
	if (!report->json) {
		fprintf(report->out, "%-4s  %-10s  %s\n", levels[level], check, text);
		if (cure)
			fprintf(report->out, "%18s%s: %s\n", "", level == DOCTOR_OK ? "next" : "cure", cure);
		return;
	}
	report_object(report, NULL);
	report_text(report, "level", levels[level]);
	report_text(report, "check", check);
	report_text(report, "finding", text);
	report_text(report, "cure", cure ? cure : "");
	report_object_end(report);
}
