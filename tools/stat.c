// SPDX-License-Identifier: MIT OR GPL-2.0
/*
 * nvme-peer stat: counters of the kernel for the queues and disks of a controller,
 * in total or over some seconds.
 *
 * The commands of peers are not included, because peers write doorbells and read
 * completions without the kernel.  For their queue pairs only accesses of the CPU are
 * counted.  Commands of mediated queue pairs are: by tenant.
 */
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "clock.h"
#include "nvme-peer.h"
#include "stat.h"
#include "sysfs.h"
#include "table.h"
#include "tenants.h"
#include "units.h"

#define CLASS "/sys/class/nvme-peer"
#define DEBUG "/sys/kernel/debug/nvme-peer"

enum { SECTOR = 512 };

static const char *const queue_numbers[STAT_NUMBERS] = {
	"cpu_sq_doorbells", "cpu_cq_doorbells", "completions", "lost_interrupts",
};

static const char *const disk_numbers[STAT_NUMBERS] = {
	"reads", "sectors_read", "writes", "sectors_written",
};

static const char *const disk_headings[STAT_NUMBERS] = { "reads", "read", "writes", "written" };

/* ---- Reading ------------------------------------------------------------- */

/* "-" stands for a counter that the kernel does not maintain. */
static void parse_counter(struct stat_row *row, unsigned int number, const char *text)
{
	if (!strcmp(text, "-"))
		return;
	row->numbers[number] = strtoull(text, NULL, 10);
	row->known |= 1u << number;
}

/* Columns: qid owner entries vector and the numbers; the first line is the heading. */
static void read_queues(struct stat_sample *sample, const char *node)
{
	char line[256], text[STAT_NUMBERS][24];
	FILE *file = sysfs_open(DEBUG "/%s/queues", node);
	unsigned int i;

	while (file && fgets(line, sizeof(line), file) && sample->count < STAT_ROWS) {
		struct stat_row row = { 0 };

		if (sscanf(line, "%39[0-9] %7s %*s %*s %23s %23s %23s %23s", row.name, row.owner,
			   text[0], text[1], text[2], text[3]) != 2 + STAT_NUMBERS)
			continue;
		for (i = 0; i < STAT_NUMBERS; i++)
			parse_counter(&row, i, text[i]);
		sample->rows[sample->count++] = row;
	}
	if (file)
		fclose(file);
	sample->queues = sample->count;
}

/* Documentation/block/stat.rst: requests and sectors of 512 bytes, reads before writes. */
static void read_disk(struct stat_sample *sample, const char *node, const char *name)
{
	struct stat_row row = { .known = (1u << STAT_NUMBERS) - 1 };
	unsigned long long number[STAT_NUMBERS];
	char text[SYSFS_TEXT];
	unsigned int i;

	if (!sysfs_read(text, CLASS "/%s/%s/stat", node, name) ||
	    sscanf(text, "%llu %*u %llu %*u %llu %*u %llu", &number[0], &number[1], &number[2],
		   &number[3]) != STAT_NUMBERS)
		return;
	snprintf(row.name, sizeof(row.name), "%.*s", STAT_NAME - 1, name);
	for (i = 0; i < STAT_NUMBERS; i++)
		row.numbers[i] = number[i];
	sample->rows[sample->count++] = row;
}

void stat_read(struct stat_sample *sample, const char *node)
{
	struct dirent **names;
	int count, i;

	sample->count = 0;
	sample->time = now_ns();
	read_queues(sample, node);
	count = sysfs_list(&names, CLASS "/%s", node);
	for (i = 0; i < count && sample->count < STAT_ROWS; i++)
		if (!strncmp(names[i]->d_name, node, strlen(node)))
			read_disk(sample, node, names[i]->d_name);
	sysfs_list_free(names, count);
}

/* New rows count from 0. */
void stat_subtract(struct stat_sample *later, const struct stat_sample *earlier)
{
	size_t i, j;
	unsigned int number;

	later->time -= earlier->time;
	for (i = 0; i < later->count; i++)
		for (j = 0; j < earlier->count; j++) {
			if (strcmp(later->rows[i].name, earlier->rows[j].name) != 0)
				continue;
			/* A queue that was created again counts from 0, too. */
			for (number = 0; number < STAT_NUMBERS; number++)
				if (later->rows[i].numbers[number] >= earlier->rows[j].numbers[number])
					later->rows[i].numbers[number] -= earlier->rows[j].numbers[number];
		}
}

/* ---- Output -------------------------------------------------------------- */

static void report_name(struct report *report, const struct stat_row *row)
{
	if (!row->owner[0]) {
		report_text(report, "name", row->name);
		return;
	}
	report_number(report, "qid", strtoull(row->name, NULL, 10), NULL);
	report_text(report, "owner", row->owner);
}

static void report_rows(struct report *report, const struct stat_sample *sample, size_t from, size_t to,
			const char *const names[STAT_NUMBERS])
{
	unsigned int number;
	size_t i;

	for (i = from; i < to; i++) {
		const struct stat_row *row = &sample->rows[i];

		report_object(report, NULL);
		report_name(report, row);
		for (number = 0; number < STAT_NUMBERS; number++)
			if (row->known & 1u << number)
				report_number(report, names[number], row->numbers[number], NULL);
		report_object_end(report);
	}
}

static void report_sample(struct report *report, const struct stat_sample *sample, bool is_interval)
{
	if (is_interval)
		report_duration(report, "nanoseconds", NULL, sample->time);
	report_list(report, "queues");
	report_rows(report, sample, 0, sample->queues, queue_numbers);
	report_list_end(report);
	report_list(report, "disks");
	report_rows(report, sample, sample->queues, sample->count, disk_numbers);
	report_list_end(report);
}

/* Data of a disk, or a count; in total or per second. */
static void number_cell(struct table *table, const struct stat_sample *sample, const struct stat_row *row,
			unsigned int number, bool is_interval)
{
	double value = (double)row->numbers[number], seconds = (double)sample->time / 1e9;
	bool is_data = !row->owner[0] && number % 2;
	char amount[UNITS_TEXT];

	if (is_interval)
		value /= seconds;
	if (!(row->known & 1u << number))
		table_cell(table, "-");
	else if (is_data)
		table_cell(table, "%s%s", units_disk((uint64_t)(value * SECTOR), amount),
			   is_interval ? "/s" : "");
	else
		table_cell(table, is_interval ? "%.1f" : "%.0f", value);
}

static void print_rows(FILE *out, const struct stat_sample *sample, size_t from, size_t to,
		       const char *const headings[STAT_NUMBERS], bool is_interval)
{
	bool is_queue = from < sample->queues;
	struct table table = { .columns = STAT_NUMBERS + (is_queue ? 2 : 1) };
	unsigned int number;
	size_t i;

	if (from == to)
		return;
	table_cell(&table, is_queue ? "queue" : "disk");
	if (is_queue)
		table_cell(&table, "owner");
	for (number = 0; number < STAT_NUMBERS; number++)
		table_cell(&table, "%s%s", headings[number],
			   is_interval && (is_queue || number % 2 == 0) ? "/s" : "");
	for (i = from; i < to; i++) {
		table_cell(&table, "%s", sample->rows[i].name);
		if (is_queue)
			table_cell(&table, "%s", sample->rows[i].owner);
		for (number = 0; number < STAT_NUMBERS; number++)
			number_cell(&table, sample, &sample->rows[i], number, is_interval);
	}
	table_print(&table, out);
}

void stat_print(FILE *out, const struct stat_sample *sample, bool is_interval)
{
	print_rows(out, sample, 0, sample->queues, queue_numbers, is_interval);
	if (!sample->queues)
		fputs("queues: not readable: " DEBUG " requires root and a mounted debugfs\n", out);
	print_rows(out, sample, sample->queues, sample->count, disk_headings, is_interval);
	fputs("Commands of peers are counted in mediated mode only, by tenant; nvme-peer smart counts all.\n",
	      out);
}

static void show_sample(struct report *report, const struct stat_sample *sample,
			const struct tenants *tenants, bool is_interval)
{
	if (report->json) {
		report_sample(report, sample, is_interval);
		tenants_report(report, tenants);
	} else {
		stat_print(report->out, sample, is_interval);
		tenants_print(report->out, tenants, is_interval ? sample->time : 0);
	}
}

/* ---- Commands ------------------------------------------------------------ */

const char *stat_node(const char *argument)
{
	const char *slash = strrchr(argument, '/'), *name = slash ? slash + 1 : argument;

	if (name[0] && sysfs_exists(CLASS "/%s/state", name))
		return name;
	fprintf(stderr, "nvme-peer: %s: not a controller of nvme-peer\n", argument);
	return NULL;
}

int command_stat(struct report *report, const struct options *options, int argc, char **argv)
{
	static struct stat_sample earlier, later;
	static struct tenants tenants, before;
	uint64_t seconds = 0;
	const char *node;

	(void)options;
	if (argc < 1 || argc > 2 || (argc == 2 && (!parse_number(argv[1], 3600, &seconds) || !seconds)))
		return usage_error("stat takes a controller node and a number of seconds", NULL);
	node = stat_node(argv[0]);
	if (!node)
		return EXIT_REFUSED;
	stat_read(&later, node);
	tenants_read(&tenants, node);
	if (seconds) {
		earlier = later;
		before = tenants;
		sleep((unsigned int)seconds);
		stat_read(&later, node);
		stat_subtract(&later, &earlier);
		tenants_read(&tenants, node);
		tenants_subtract(&tenants, &before);
	}
	show_sample(report, &later, &tenants, seconds);
	return 0;
}
