// SPDX-License-Identifier: MIT OR GPL-2.0
/*
 * The results of nvme-peer doctor as text or JSON; see doctor.h.
 */
#include <stdarg.h>

#include "doctor.h"

static const char *const levels[] = {
	[DOCTOR_OK] = "ok", [DOCTOR_WARN] = "warn", [DOCTOR_FAIL] = "FAIL",
};

/* Failures come first, then the proposal to bind a controller, then warnings. */
static void note_next(struct doctor *doctor, enum doctor_level level, const char *help)
{
	static const unsigned int urgencies[] = {
		[DOCTOR_OK] = 2, [DOCTOR_WARN] = 1, [DOCTOR_FAIL] = 3,
	};

	if (!help || urgencies[level] <= doctor->urgency)
		return;
	doctor->urgency = urgencies[level];
	snprintf(doctor->next, sizeof(doctor->next), "%s", help);
}

void doctor_report(struct doctor *doctor, enum doctor_level level, const char *check,
		   const char *help, const char *format, ...)
{
	struct report *report = doctor->report;
	va_list arguments;
	char text[512];

	va_start(arguments, format);
	vsnprintf(text, sizeof(text), format, arguments);
	va_end(arguments);
	doctor->counts[level]++;
	note_next(doctor, level, help);
	if (!report->json) {
		fprintf(report->out, "%-4s  %-10s  %s\n", levels[level], check, text);
		if (help)
			fprintf(report->out, "%18s%s: %s\n", "", level == DOCTOR_OK ? "next" : "help", help);
		return;
	}
	report_object(report, NULL);
	report_text(report, "level", levels[level]);
	report_text(report, "check", check);
	report_text(report, "finding", text);
	report_text(report, "help", help ? help : "");
	report_object_end(report);
}

void doctor_end(struct doctor *doctor)
{
	const char *next = doctor->next[0] ? doctor->next : "nothing, this machine is ready";
	struct report *report = doctor->report;

	if (report->json)
		report_text(report, "next", doctor->next);
	else
		fprintf(report->out, "\nNext: %s    (%u failed, %u warned)\n", next,
			doctor->counts[DOCTOR_FAIL], doctor->counts[DOCTOR_WARN]);
}
