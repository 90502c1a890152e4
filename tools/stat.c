// SPDX-License-Identifier: MIT OR GPL-2.0
/*
 * nvme-peer stat, top: what the kernel counts of a controller's queues and disks, as it
 * stands or over some seconds.
 *
 * What peers do is not among it: they write their doorbells and read their completions
 * without the kernel.  Of their queue pairs only what the CPU did is counted.
 */
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "nvme-peer.h"
#include "sysfs.h"
#include "table.h"

#define CLASS "/sys/class/nvme-peer"
#define DEBUG "/sys/kernel/debug/nvme-peer"

/* Rows that anybody has, and numbers of a row. */
enum { ROWS = 512, NUMBERS = 4, NAME = 40 };

static const char *const queue_numbers[NUMBERS] = {
	"cpu_sq_doorbells", "cpu_cq_doorbells", "completions", "lost_interrupts",
};

static const char *const disk_numbers[NUMBERS] = { "reads", "sectors_read", "writes", "sectors_written" };

/**
 * struct row - a queue or a disk
 * @name: its queue identifier, or nvmep0n1
 * @owner: admin, io or peer; empty for a disk
 * @numbers: as named above
 * @known: bits of those that the kernel counts
 */
struct row {
	char name[NAME];
	char owner[8];
	uint64_t numbers[NUMBERS];
	unsigned int known;
};

/**
 * struct sample - the counts of one moment
 * @time: nanoseconds of CLOCK_MONOTONIC
 * @queues: how many of @rows are queues, which come first
 * @count: of @rows
 * @rows: one after the other
 */
struct sample {
	uint64_t time;
	size_t queues;
	size_t count;
	struct row rows[ROWS];
};

/* ---- Reading ------------------------------------------------------------- */

/* "-" is what the kernel does not count. */
static void take_number(struct row *row, unsigned int number, const char *text)
{
	if (!strcmp(text, "-"))
		return;
	row->numbers[number] = strtoull(text, NULL, 10);
	row->known |= 1u << number;
}

/* qid owner entries vector and the numbers; the first line says so. */
static void read_queues(struct sample *sample, const char *node)
{
	char line[256], text[NUMBERS][24];
	FILE *file = sysfs_open(DEBUG "/%s/queues", node);
	unsigned int i;

	while (file && fgets(line, sizeof(line), file) && sample->count < ROWS) {
		struct row row = { 0 };

		if (sscanf(line, "%39[0-9] %7s %*s %*s %23s %23s %23s %23s", row.name, row.owner,
			   text[0], text[1], text[2], text[3]) != 2 + NUMBERS)
			continue;
		for (i = 0; i < NUMBERS; i++)
			take_number(&row, i, text[i]);
		sample->rows[sample->count++] = row;
	}
	if (file)
		fclose(file);
	sample->queues = sample->count;
}

/* Documentation/block/stat.rst: requests and sectors of 512 bytes, reads before writes. */
static void read_disk(struct sample *sample, const char *node, const char *name)
{
	struct row row = { .known = (1u << NUMBERS) - 1 };
	unsigned long long number[NUMBERS];
	char text[SYSFS_TEXT];
	unsigned int i;

	if (!sysfs_read(text, CLASS "/%s/%s/stat", node, name) ||
	    sscanf(text, "%llu %*u %llu %*u %llu %*u %llu", &number[0], &number[1], &number[2],
		   &number[3]) != NUMBERS)
		return;
	snprintf(row.name, sizeof(row.name), "%.*s", NAME - 1, name);
	for (i = 0; i < NUMBERS; i++)
		row.numbers[i] = number[i];
	sample->rows[sample->count++] = row;
}

static uint64_t now(void)
{
	struct timespec time;

	clock_gettime(CLOCK_MONOTONIC, &time);
	return (uint64_t)time.tv_sec * 1000000000u + (uint64_t)time.tv_nsec;
}

static void read_sample(struct sample *sample, const char *node)
{
	struct dirent **names;
	int count, i;

	sample->count = 0;
	sample->time = now();
	read_queues(sample, node);
	count = sysfs_list(&names, CLASS "/%s", node);
	for (i = 0; i < count && sample->count < ROWS; i++)
		if (!strncmp(names[i]->d_name, node, strlen(node)))
			read_disk(sample, node, names[i]->d_name);
	sysfs_list_free(names, count);
}

/* @later becomes what happened since @earlier; what is new counts from 0. */
static void subtract(struct sample *later, const struct sample *earlier)
{
	size_t i, j;
	unsigned int number;

	later->time -= earlier->time;
	for (i = 0; i < later->count; i++)
		for (j = 0; j < earlier->count; j++) {
			if (strcmp(later->rows[i].name, earlier->rows[j].name) != 0)
				continue;
			/* A queue made anew counts from 0, too. */
			for (number = 0; number < NUMBERS; number++)
				if (later->rows[i].numbers[number] >= earlier->rows[j].numbers[number])
					later->rows[i].numbers[number] -= earlier->rows[j].numbers[number];
		}
}

/* ---- Telling ------------------------------------------------------------- */

static void report_name(struct report *report, const struct row *row)
{
	if (!row->owner[0]) {
		report_text(report, "name", row->name);
		return;
	}
	report_number(report, "qid", strtoull(row->name, NULL, 10), NULL);
	report_text(report, "owner", row->owner);
}

static void report_rows(struct report *report, const struct sample *sample, size_t from, size_t to,
			const char *const names[NUMBERS])
{
	unsigned int number;
	size_t i;

	for (i = from; i < to; i++) {
		const struct row *row = &sample->rows[i];

		report_object(report, NULL);
		report_name(report, row);
		for (number = 0; number < NUMBERS; number++)
			if (row->known & 1u << number)
				report_number(report, names[number], row->numbers[number], NULL);
		report_object_end(report);
	}
}

static void report_sample(struct report *report, const struct sample *sample, bool is_interval)
{
	if (is_interval)
		report_number(report, "nanoseconds", sample->time, NULL);
	report_list(report, "queues");
	report_rows(report, sample, 0, sample->queues, queue_numbers);
	report_list_end(report);
	report_list(report, "disks");
	report_rows(report, sample, sample->queues, sample->count, disk_numbers);
	report_list_end(report);
}

/* As counted, or by the second. */
static void number_cell(struct table *table, const struct sample *sample, const struct row *row,
			unsigned int number, bool is_interval)
{
	uint64_t value = row->numbers[number];

	if (!(row->known & 1u << number))
		table_cell(table, "-");
	else if (!is_interval)
		table_cell(table, "%llu", (unsigned long long)value);
	else
		table_cell(table, "%.1f", (double)value * 1e9 / (double)sample->time);
}

static void print_rows(FILE *out, const struct sample *sample, size_t from, size_t to,
		       const char *const names[NUMBERS], bool is_interval)
{
	bool is_queue = from < sample->queues;
	struct table table = { .columns = NUMBERS + (is_queue ? 2 : 1) };
	unsigned int number;
	size_t i;

	if (from == to)
		return;
	table_cell(&table, is_queue ? "queue" : "disk");
	if (is_queue)
		table_cell(&table, "owner");
	for (number = 0; number < NUMBERS; number++)
		table_cell(&table, "%s%s", names[number], is_interval ? "/s" : "");
	for (i = from; i < to; i++) {
		table_cell(&table, "%s", sample->rows[i].name);
		if (is_queue)
			table_cell(&table, "%s", sample->rows[i].owner);
		for (number = 0; number < NUMBERS; number++)
			number_cell(&table, sample, &sample->rows[i], number, is_interval);
	}
	table_print(&table, out);
}

static void print_sample(FILE *out, const struct sample *sample, bool is_interval)
{
	print_rows(out, sample, 0, sample->queues, queue_numbers, is_interval);
	if (!sample->queues)
		fputs("queues: not to be read: " DEBUG " is root's, and has to be mounted\n", out);
	print_rows(out, sample, sample->queues, sample->count, disk_numbers, is_interval);
	fputs("Peers' commands: not counted by the kernel; nvme-peer smart has them among all.\n", out);
}

static void tell(struct report *report, const struct sample *sample, bool is_interval)
{
	if (report->json)
		report_sample(report, sample, is_interval);
	else
		print_sample(report->out, sample, is_interval);
}

/* ---- Commands ------------------------------------------------------------ */

/* The name of a node without its folder, if there is such a controller. */
static const char *controller(const char *argument)
{
	const char *slash = strrchr(argument, '/'), *name = slash ? slash + 1 : argument;

	if (name[0] && sysfs_exists(CLASS "/%s/state", name))
		return name;
	fprintf(stderr, "nvme-peer: %s: no controller of nvme-peer's\n", argument);
	return NULL;
}

int command_stat(struct report *report, const struct options *options, int argc, char **argv)
{
	static struct sample earlier, later;
	uint64_t seconds = 0;
	const char *node;

	(void)options;
	if (argc < 1 || argc > 2 || (argc == 2 && (!parse_number(argv[1], 3600, &seconds) || !seconds)))
		return usage_error("stat takes a controller node, and how many seconds to count", NULL);
	node = controller(argv[0]);
	if (!node)
		return EXIT_REFUSED;
	read_sample(&later, node);
	if (seconds) {
		earlier = later;
		sleep((unsigned int)seconds);
		read_sample(&later, node);
		subtract(&later, &earlier);
	}
	tell(report, &later, seconds);
	return 0;
}

/* Clears the screen before each look, if there is one. */
int command_top(struct report *report, const struct options *options, int argc, char **argv)
{
	static struct sample earlier, later, difference;
	const char *node;
	uint64_t looks;

	if (argc != 1 || report->json)
		return usage_error("top takes a controller node and shows a table; stat -o json is for programs",
				   NULL);
	node = controller(argv[0]);
	if (!node)
		return EXIT_REFUSED;
	read_sample(&earlier, node);
	for (looks = 0; looks < options->count; looks++) {
		sleep(1);
		read_sample(&later, node);
		difference = later;
		subtract(&difference, &earlier);
		if (isatty(STDOUT_FILENO))
			fputs("\033[H\033[2J", report->out);
		print_sample(report->out, &difference, true);
		fflush(report->out);
		earlier = later;
	}
	return 0;
}
