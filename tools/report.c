// SPDX-License-Identifier: MIT OR GPL-2.0
/*
 * Text and JSON from the same calls; see report.h.
 */
#include <inttypes.h>
#include <nvmepeer.h>
#include <string.h>

#include "report.h"
#include "units.h"

static void write_string(FILE *out, const char *text)
{
	fputc('"', out);
	for (; *text; text++) {
		if (*text == '"' || *text == '\\')
			fprintf(out, "\\%c", *text);
		else if ((unsigned char)*text < 0x20)
			fprintf(out, "\\u%04x", (unsigned int)*text);
		else
			fputc(*text, out);
	}
	fputc('"', out);
}

/* Separator, indentation and name of a value. */
static void begin_value(struct report *report, const char *name)
{
	if (report->json && !report->empty)
		fputc(',', report->out);
	if (report->json && report->depth)
		fputc('\n', report->out);
	fprintf(report->out, "%*s", 2 * report->depth, "");
	report->empty = false;
	if (!name)
		return;
	if (report->json)
		write_string(report->out, name);
	else
		fputs(name, report->out);
	fputs(": ", report->out);
}

static void end_value(struct report *report)
{
	if (!report->json)
		fputc('\n', report->out);
}

static void open_group(struct report *report, const char *name, char bracket)
{
	if (report->json) {
		begin_value(report, name);
		fputc(bracket, report->out);
	} else if (name) {
		fprintf(report->out, "%*s%s:\n", 2 * report->depth, "", name);
	}
	report->depth++;
	report->empty = true;
}

static void close_group(struct report *report, char bracket)
{
	report->depth--;
	if (report->json)
		fprintf(report->out, "\n%*s%c", 2 * report->depth, "", bracket);
	report->empty = false;
}

/* Text has no outermost object: members start at the left margin. */
void report_begin(struct report *report, FILE *out, bool json)
{
	report->out = out;
	report->json = json;
	report->depth = 0;
	report->empty = true;
	if (json)
		open_group(report, NULL, '{');
}

void report_end(struct report *report)
{
	if (!report->json)
		return;
	close_group(report, '}');
	fputc('\n', report->out);
}

void report_object(struct report *report, const char *name)
{
	/* A blank line separates the members of a list. */
	if (!report->json && !name && !report->empty)
		fputc('\n', report->out);
	open_group(report, name, '{');
}

void report_object_end(struct report *report)
{
	close_group(report, '}');
}

void report_list(struct report *report, const char *name)
{
	open_group(report, name, '[');
}

void report_list_end(struct report *report)
{
	if (!report->json && report->empty)
		fprintf(report->out, "%*snone\n", 2 * report->depth, "");
	close_group(report, ']');
}

void report_number(struct report *report, const char *name, uint64_t value,
		   const char *unit)
{
	begin_value(report, name);
	fprintf(report->out, "%" PRIu64, value);
	if (unit && !report->json)
		fprintf(report->out, " %s", unit);
	end_value(report);
}

void report_rounded(struct report *report, const char *name, uint64_t value, const char *unit,
		    const char *label, const char *text)
{
	if (report->json) {
		report_number(report, name, value, NULL);
		return;
	}
	begin_value(report, label ? label : name);
	fputs(text, report->out);
	if (report->verbose)
		fprintf(report->out, " (%" PRIu64 "%s%s)", value, *unit ? " " : "", unit);
	end_value(report);
}

void report_bytes(struct report *report, const char *name, uint64_t value)
{
	char text[UNITS_TEXT];

	report_rounded(report, name, value, "bytes", NULL, units_memory(value, text));
}

void report_duration(struct report *report, const char *name, const char *label, uint64_t ns)
{
	char text[UNITS_TEXT];

	report_rounded(report, name, ns, "ns", label, units_time(ns, text));
}

void report_microseconds(struct report *report, const char *name, const char *label, uint64_t ns)
{
	char text[32];

	snprintf(text, sizeof(text), "%.1f us", (double)ns / 1000);
	report_rounded(report, name, ns, "ns", label, text);
}

void report_count(struct report *report, const char *name, uint64_t value)
{
	char text[UNITS_TEXT];

	report_rounded(report, name, value, "", NULL, units_count(value, text));
}

void report_real(struct report *report, const char *name, double value)
{
	begin_value(report, name);
	fprintf(report->out, report->json ? "%f" : "%.2f", value);
	end_value(report);
}

void report_text(struct report *report, const char *name, const char *value)
{
	begin_value(report, name);
	if (report->json)
		write_string(report->out, value);
	else
		fputs(value, report->out);
	end_value(report);
}

void report_bool(struct report *report, const char *name, bool value)
{
	begin_value(report, name);
	if (report->json)
		fputs(value ? "true" : "false", report->out);
	else
		fputs(value ? "yes" : "no", report->out);
	end_value(report);
}

static void failure_text(const struct nvmepeer_explanation *explanation)
{
	fprintf(stderr, "nvme-peer: %s\n", explanation->what);
	if (explanation->limit[0])
		fprintf(stderr, "  limit: %s\n", explanation->limit);
	if (explanation->help[0])
		fprintf(stderr, "  help:  %s\n", explanation->help);
}

void report_failure(struct report *report)
{
	struct nvmepeer_explanation explanation;

	nvmepeer_explain(&explanation, sizeof(explanation));
	if (!report->json) {
		failure_text(&explanation);
		return;
	}
	report_object(report, "refused");
	report_text(report, "call", explanation.call);
	report_number(report, "errno", (uint64_t)explanation.error, NULL);
	report_number(report, "status", (uint64_t)explanation.status, NULL);
	report_text(report, "what", explanation.what);
	report_text(report, "limit", explanation.limit);
	report_text(report, "help", explanation.help);
	report_object_end(report);
}
