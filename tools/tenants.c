// SPDX-License-Identifier: MIT OR GPL-2.0
/*
 * The tenants of a controller; see tenants.h.
 */
#include <string.h>

#include "qp_files.h"
#include "report.h"
#include "table.h"
#include "tenants.h"
#include "units.h"

static const char *const numbers[TENANT_NUMBERS] = {
	"reads", "bytes_read", "writes", "bytes_written", "refused", "failed",
};

static const char *const headings[TENANT_NUMBERS] = {
	"reads", "read", "writes", "written", "refused", "failed",
};

/* ---- Reading ------------------------------------------------------------- */

static void add_mediated(struct tenant *tenant, const struct qp_file *file)
{
	const uint64_t values[TENANT_NUMBERS] = {
		file->stats.reads, file->stats.read_bytes, file->stats.writes, file->stats.written_bytes,
		file->stats.refused, file->stats.failed,
	};

	tenant->mediated++;
	tenant->windows += file->limits.windows;
	for (unsigned int i = 0; i < TENANT_NUMBERS; i++)
		tenant->numbers[i] += values[i];
}

static void add_queue(struct tenant *tenant, uint32_t qid)
{
	size_t length = strlen(tenant->queues);

	snprintf(tenant->queues + length, sizeof(tenant->queues) - length, "%s%u", length ? " " : "", qid);
}

/* Descriptors of one process come together. */
static void add_pair(int pid, int fd, void *context)
{
	struct tenants *all = context;
	struct tenant *tenant;
	struct qp_file file;

	if (qp_file_read(pid, fd, &file) || strcmp(file.controller, all->node) != 0)
		return;
	if (!all->count || all->tenants[all->count - 1].pid != pid) {
		if (all->count == TENANTS)
			return;
		all->tenants[all->count++] = (struct tenant){ .pid = pid };
	}
	tenant = &all->tenants[all->count - 1];
	memcpy(tenant->command, file.command, sizeof(tenant->command));
	tenant->pairs++;
	tenant->live += file.info.state == NVME_PEER_QP_LIVE;
	tenant->losses += file.info.losses;
	if (file.info.mode == NVME_PEER_MODE_MEDIATED)
		add_mediated(tenant, &file);
	else
		add_queue(tenant, file.info.qid);
}

void tenants_read(struct tenants *all, const char *node)
{
	all->node = node;
	all->count = 0;
	qp_files_each(add_pair, all);
}

/* A number below the earlier one: a queue pair was closed. */
void tenants_subtract(struct tenants *later, const struct tenants *earlier)
{
	for (size_t i = 0; i < later->count; i++)
		for (size_t j = 0; j < earlier->count; j++) {
			if (later->tenants[i].pid != earlier->tenants[j].pid)
				continue;
			for (unsigned int k = 0; k < TENANT_NUMBERS; k++)
				if (later->tenants[i].numbers[k] >= earlier->tenants[j].numbers[k])
					later->tenants[i].numbers[k] -= earlier->tenants[j].numbers[k];
		}
}

/* ---- Output -------------------------------------------------------------- */

/* The second and the fourth are data. */
static bool is_data(unsigned int number)
{
	return number == 1 || number == 3;
}

static void number_cell(struct table *table, const struct tenant *tenant, unsigned int number,
			double seconds)
{
	double value = (double)tenant->numbers[number] / (seconds ? seconds : 1);
	char amount[UNITS_TEXT];

	if (!tenant->mediated)
		table_cell(table, "-");
	else if (is_data(number))
		table_cell(table, "%s%s", units_disk((uint64_t)value, amount), seconds ? "/s" : "");
	else
		table_cell(table, seconds ? "%.1f" : "%.0f", value);
}

void tenants_print(FILE *out, const struct tenants *all, uint64_t nanoseconds)
{
	static const char *const first[] = {
		"tenant", "command", "pairs", "live", "losses", "queues", "windows",
	};
	enum { FIRST = sizeof(first) / sizeof(first[0]) };
	struct table table = { .columns = FIRST + TENANT_NUMBERS };
	double seconds = (double)nanoseconds / 1e9;

	if (!all->count)
		return;
	for (size_t i = 0; i < FIRST; i++)
		table_cell(&table, "%s", first[i]);
	for (unsigned int i = 0; i < TENANT_NUMBERS; i++)
		table_cell(&table, "%s%s", headings[i], nanoseconds && !is_data(i) ? "/s" : "");
	for (size_t i = 0; i < all->count; i++) {
		const struct tenant *tenant = &all->tenants[i];

		table_cell(&table, "%d", tenant->pid);
		table_cell(&table, "%s", tenant->command);
		table_cell(&table, "%u", tenant->pairs);
		table_cell(&table, "%u", tenant->live);
		table_cell(&table, "%llu", (unsigned long long)tenant->losses);
		table_cell(&table, "%s", tenant->queues[0] ? tenant->queues : "mediated");
		table_cell(&table, "%u", tenant->windows);
		for (unsigned int number = 0; number < TENANT_NUMBERS; number++)
			number_cell(&table, tenant, number, seconds);
	}
	table_print(&table, out);
}

void tenants_report(struct report *report, const struct tenants *all)
{
	report_list(report, "tenants");
	for (size_t i = 0; i < all->count; i++) {
		const struct tenant *tenant = &all->tenants[i];

		report_object(report, NULL);
		report_number(report, "pid", (uint64_t)tenant->pid, NULL);
		report_text(report, "command", tenant->command);
		report_number(report, "pairs", tenant->pairs, NULL);
		report_number(report, "live", tenant->live, NULL);
		report_number(report, "losses", tenant->losses, NULL);
		report_number(report, "mediated", tenant->mediated, NULL);
		report_number(report, "windows", tenant->windows, NULL);
		for (unsigned int number = 0; tenant->mediated && number < TENANT_NUMBERS; number++)
			report_number(report, numbers[number], tenant->numbers[number], NULL);
		report_object_end(report);
	}
	report_list_end(report);
}
