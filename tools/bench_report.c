// SPDX-License-Identifier: MIT OR GPL-2.0
/*
 * Output of nvme-peer bench: text, JSON, JSON with the names of fio(1), and a plot; see bench.h.
 */
#include <nvmepeer.h>
#include <time.h>

#include "bench.h"
#include "plot.h"
#include "table.h"
#include "units.h"

static uint64_t transfers(const struct bench_result *result, const struct bench_run *run)
{
	return run->latency.total * result->ranges;
}

static uint64_t by_second(const struct bench_run *run, uint64_t amount)
{
	return (uint64_t)((double)amount * 1e9 / (double)run->took);
}

static uint64_t transfer_rate(const struct bench_result *result, const struct bench_run *run)
{
	return by_second(run, transfers(result, run));
}

/* ---- Text and JSON ------------------------------------------------------- */

static void report_latency(struct report *report, const struct latency *latency)
{
	static const struct {
		const char *name;
		uint32_t millionths;
	} parts[] = {
		{ "p50", 500000 }, { "p90", 900000 }, { "p99", 990000 }, { "p999", 999000 },
		{ "max", 1000000 },
	};
	size_t i;

	report_object(report, "latency");
	report_microseconds(report, "mean", NULL, latency_mean(latency));
	for (i = 0; i < sizeof(parts) / sizeof(parts[0]); i++)
		report_microseconds(report, parts[i].name, NULL,
				    latency_percentile(latency, parts[i].millionths));
	report_object_end(report);
}

static void report_byte_rate(struct report *report, uint64_t bytes)
{
	char amount[UNITS_TEXT], text[UNITS_TEXT + 2];

	snprintf(text, sizeof(text), "%s/s", units_disk(bytes, amount));
	report_rounded(report, "bytes_per_second", bytes, "bytes/s", NULL, text);
}

static void report_run(struct report *report, const struct bench_result *result,
		       const struct bench_run *run)
{
	uint64_t count = transfers(result, run);

	report_number(report, "entries", run->depth, "in flight");
	report_duration(report, "nanoseconds", "duration", run->took);
	report_count(report, result->writes ? "writes" : "reads", count);
	report_count(report, result->writes ? "writes_per_second" : "reads_per_second",
		     transfer_rate(result, run));
	report_byte_rate(report, by_second(run, count * result->size));
	report_latency(report, &run->latency);
}

static void report_setting(struct report *report, const struct bench_result *result)
{
	report_text(report, "memory", result->verdict ? "imported" : "own");
	if (result->verdict)
		report_text(report, "verdict", result->verdict);
	report_bytes(report, "size", result->size);
	if (result->ranges > 1)
		report_number(report, "ranges", result->ranges, "per command");
}

static void report_runs(struct report *report, const struct bench_result *result)
{
	size_t i;

	report_list(report, "depths");
	for (i = 0; i < result->count; i++) {
		report_object(report, NULL);
		report_run(report, result, &result->runs[i]);
		report_object_end(report);
	}
	report_list_end(report);
}

static double microseconds(const struct bench_run *run, uint32_t millionths)
{
	return (double)latency_percentile(&run->latency, millionths) / 1000;
}

static void print_runs(FILE *out, const struct bench_result *result)
{
	static const char *const headings[] = {
		"depth", "rate", "p50 us", "p90 us", "p99 us", "p99.9 us",
	};
	struct table table = { .columns = sizeof(headings) / sizeof(headings[0]) + 1 };
	char amount[UNITS_TEXT];
	size_t i;

	for (i = 0; i + 1 < table.columns; i++)
		table_cell(&table, "%s", i == 1 ? (result->writes ? "writes/s" : "reads/s") : headings[i]);
	table_cell(&table, "data");
	for (i = 0; i < result->count; i++) {
		const struct bench_run *run = &result->runs[i];
		uint64_t rate = transfer_rate(result, run);

		table_cell(&table, "%u", run->depth);
		table_cell(&table, "%s", units_count(rate, amount));
		table_cell(&table, "%.1f", microseconds(run, 500000));
		table_cell(&table, "%.1f", microseconds(run, 900000));
		table_cell(&table, "%.1f", microseconds(run, 990000));
		table_cell(&table, "%.1f", microseconds(run, 999000));
		table_cell(&table, "%s/s", units_disk(rate * result->size, amount));
	}
	table_print(&table, out);
}

/* ---- JSON of fio ---------------------------------------------------------- */

static void report_fio_latency(struct report *report, const char *name, const struct latency *latency,
			       bool percentiles)
{
	static const uint32_t parts[] = {
		10000, 50000, 100000, 200000, 300000, 400000, 500000, 600000, 700000, 800000, 900000,
		950000, 990000, 995000, 999000, 999500, 999900,
	};
	char text[16];
	size_t i;

	report_object(report, name);
	report_number(report, "min", latency->min, NULL);
	report_number(report, "max", latency->max, NULL);
	report_real(report, "mean", (double)latency_mean(latency));
	report_real(report, "stddev", latency_deviation(latency));
	report_number(report, "N", latency->total, NULL);
	if (percentiles) {
		report_object(report, "percentile");
		for (i = 0; i < sizeof(parts) / sizeof(parts[0]); i++) {
			snprintf(text, sizeof(text), "%u.%06u", parts[i] / 10000, parts[i] % 10000 * 100);
			report_number(report, text, latency_percentile(latency, parts[i]), NULL);
		}
		report_object_end(report);
	}
	report_object_end(report);
}

/* One direction; @run is NULL for the others. bw is in KiB/s, runtime in milliseconds. */
static void report_fio_direction(struct report *report, const char *name, const struct bench_result *result,
				 const struct bench_run *run)
{
	static const struct bench_run none = { .took = 1 };
	uint64_t count = run ? transfers(result, run) : 0, bytes = count * result->size;

	run = run ? run : &none;
	report_object(report, name);
	report_number(report, "io_bytes", bytes, NULL);
	report_number(report, "io_kbytes", bytes / 1024, NULL);
	report_number(report, "bw_bytes", by_second(run, bytes), NULL);
	report_number(report, "bw", by_second(run, bytes) / 1024, NULL);
	report_real(report, "iops", (double)count * 1e9 / (double)run->took);
	report_number(report, "runtime", run->took / 1000000, NULL);
	report_number(report, "total_ios", count, NULL);
	report_number(report, "short_ios", 0, NULL);
	report_number(report, "drop_ios", 0, NULL);
	report_fio_latency(report, "slat_ns", &none.latency, false);
	report_fio_latency(report, "clat_ns", &run->latency, run != &none);
	report_fio_latency(report, "lat_ns", &run->latency, false);
	report_object_end(report);
}

static void report_fio_options(struct report *report, const struct bench_result *result,
			       const struct bench_run *run)
{
	char text[16];

	report_object(report, "job options");
	report_text(report, "filename", result->name);
	report_text(report, "rw", result->writes ? "randwrite" : "randread");
	snprintf(text, sizeof(text), "%u", result->size);
	report_text(report, "bs", text);
	snprintf(text, sizeof(text), "%u", run->depth);
	report_text(report, "iodepth", text);
	report_text(report, "ioengine", "io_uring_cmd");
	report_text(report, "hipri", result->polled ? "1" : "0");
	report_object_end(report);
}

static void report_fio_job(struct report *report, const struct bench_result *result,
			   const struct bench_run *run)
{
	report_object(report, NULL);
	report_text(report, "jobname", "nvme-peer");
	report_number(report, "groupid", 0, NULL);
	report_number(report, "error", 0, NULL);
	report_number(report, "eta", 0, NULL);
	report_number(report, "elapsed", (run->took + 999999999) / 1000000000, NULL);
	report_fio_options(report, result, run);
	report_fio_direction(report, "read", result, result->writes ? NULL : run);
	report_fio_direction(report, "write", result, result->writes ? run : NULL);
	report_fio_direction(report, "trim", result, NULL);
	report_number(report, "job_runtime", run->took / 1000000, NULL);
	report_real(report, "usr_cpu", (double)run->user * 100 / (double)run->took);
	report_real(report, "sys_cpu", (double)run->system * 100 / (double)run->took);
	report_object_end(report);
}

static void report_fio(struct report *report, const struct bench_result *result)
{
	time_t now = time(NULL);
	char text[40];
	size_t i;

	/* The names are those of fio 3. */
	snprintf(text, sizeof(text), "nvme-peer-%s", nvmepeer_version());
	report_text(report, "fio version", text);
	report_number(report, "timestamp", (uint64_t)now, NULL);
	strftime(text, sizeof(text), "%a %b %e %H:%M:%S %Y", localtime(&now));
	report_text(report, "time", text);
	report_list(report, "jobs");
	for (i = 0; i < result->count; i++)
		report_fio_job(report, result, &result->runs[i]);
	report_list_end(report);
}

/* ---- Plot ------------------------------------------------------------------ */

static void print_plot(FILE *out, const struct bench_result *result)
{
	struct plot rate = { .title = "thousand commands per second", .lines = 1 };
	struct plot latency = { .title = "latency in microseconds", .logarithmic = true, .lines = 3,
				.line = { { .name = "p50" }, { .name = "p99" }, { .name = "p99.9" } } };
	char title[160], size[UNITS_TEXT];
	size_t i;

	rate.axis = latency.axis = "commands in flight";
	rate.count = latency.count = result->count;
	for (i = 0; i < result->count; i++) {
		const struct bench_run *run = &result->runs[i];

		rate.places[i] = latency.places[i] = run->depth;
		rate.line[0].values[i] = (double)by_second(run, run->latency.total) / 1000;
		latency.line[0].values[i] = microseconds(run, 500000);
		latency.line[1].values[i] = microseconds(run, 990000);
		latency.line[2].values[i] = microseconds(run, 999000);
	}
	snprintf(title, sizeof(title), "%.60s: random %s of %s, %s memory%s", result->name,
		 result->writes ? "writes" : "reads", units_memory(result->size, size),
		 result->verdict ? "imported" : "own", result->polled ? ", polled" : "");
	plot_begin(out, 2, title);
	plot_chart(out, 0, &rate);
	plot_chart(out, 1, &latency);
	plot_end(out);
}

void bench_report(struct report *report, const struct options *options,
		  const struct bench_result *result)
{
	if (options->format == FORMAT_FIO) {
		report_fio(report, result);
		return;
	}
	if (options->format == FORMAT_SVG) {
		print_plot(report->out, result);
		return;
	}
	report_setting(report, result);
	if (!(options->given & OPTION_SWEEP))
		report_run(report, result, &result->runs[0]);
	else if (report->json)
		report_runs(report, result);
	else
		print_runs(report->out, result);
}
