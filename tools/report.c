// SPDX-License-Identifier: MIT OR GPL-2.0
/*
 * Text and JSON from the same calls; see report.h.
 */
#include <inttypes.h>
#include <nvmepeer.h>
#include <string.h>

#include "report.h"

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

/* What stands before every value: separator, indentation, name. */
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

/* Text has no outermost object: its members start at the left margin. */
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
	/* A blank line keeps the members of a list apart. */
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
