// SPDX-License-Identifier: MIT OR GPL-2.0
/*
 * nvme-peer metrics: state and counters of controllers as OpenMetrics text, which is also what the
 * textfile collector of Prometheus' node exporter reads.
 *
 * The format wants all samples of one name together.
 */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "node.h"
#include "nvme-peer.h"
#include "smart.h"
#include "stat.h"
#include "sysfs.h"

#define CLASS "/sys/class/nvme-peer"

enum { SECTOR = 512 };

enum type { GAUGE, COUNTER };

/**
 * struct source - what is read of one controller
 * @node: its name
 * @pairs: queue pairs of peers
 * @has_smart: @smart could be read
 * @smart: SMART / Health Information
 * @sample: counters of queues and disks
 */
struct source {
	char node[STAT_NAME];
	struct node_pairs pairs;
	bool has_smart;
	uint8_t smart[SMART_BYTES];
	struct stat_sample sample;
};

/**
 * struct sources - all controllers that were asked for
 * @out: stream
 * @count: number of @sources
 * @sources: their data; owned
 * @name: the current metric
 * @type: its type
 * @help: its text; NULL once it was printed, with the first sample
 */
struct sources {
	FILE *out;
	size_t count;
	struct source *sources;
	const char *name;
	enum type type;
	const char *help;
};

/* ---- Format ---------------------------------------------------------------- */

static void begin_family(struct sources *all, const char *name, enum type type, const char *help)
{
	all->name = name;
	all->type = type;
	all->help = help;
}

static void print_label(FILE *out, const char *name, const char *value)
{
	fprintf(out, ",%s=\"", name);
	for (; *value; value++) {
		if (*value == '"' || *value == '\\')
			fputc('\\', out);
		fputc(*value, out);
	}
	fputc('"', out);
}

/* Begin the labels of a sample of the current metric. */
static void begin_sample(struct sources *all, const struct source *source)
{
	static const char *const types[] = { "gauge", "counter" };
	static const char *const suffixes[] = { "", "_total" };

	if (all->help)
		fprintf(all->out, "# TYPE nvme_peer_%s %s\n# HELP nvme_peer_%s %s\n", all->name,
			types[all->type], all->name, all->help);
	all->help = NULL;
	fprintf(all->out, "nvme_peer_%s%s{controller=\"%s\"", all->name, suffixes[all->type],
		source->node);
}

static void end_sample(FILE *out, uint64_t value)
{
	fprintf(out, "} %" PRIu64 "\n", value);
}

/* ---- Controllers ------------------------------------------------------------ */

static void print_information(struct sources *all)
{
	static const char *const attributes[][2] = {
		{ "address", "address" }, { "model", "model" }, { "serial", "serial" },
		{ "firmware", "firmware_rev" },
	};
	char text[SYSFS_TEXT];
	size_t i, j;

	/* The node exporter refuses type info. */
	begin_family(all, "controller_info", GAUGE, "Identity of a controller.");
	for (i = 0; i < all->count; i++) {
		begin_sample(all, &all->sources[i]);
		for (j = 0; j < sizeof(attributes) / sizeof(attributes[0]); j++) {
			sysfs_read(text, CLASS "/%s/%s", all->sources[i].node, attributes[j][1]);
			print_label(all->out, attributes[j][0], text);
		}
		end_sample(all->out, 1);
	}
}

static void print_live(struct sources *all)
{
	char text[SYSFS_TEXT];
	size_t i;

	begin_family(all, "live", GAUGE, "1 if the controller is in state live.");
	for (i = 0; i < all->count; i++) {
		sysfs_read(text, CLASS "/%s/state", all->sources[i].node);
		begin_sample(all, &all->sources[i]);
		end_sample(all->out, !strcmp(text, "live"));
	}
}

/* Attributes that are counters; of kernels and modules without one there is no sample. */
static void print_attributes(struct sources *all)
{
	static const char *const attributes[][3] = {
		{ "stops", "generation", "Stops of the controller, after which queue pairs are re-armed." },
		{ "resets", "diag/reset_count", "Resets of the controller." },
		{ "admin_errors", "diag/command_error_count", "Admin commands that failed." },
	};
	size_t i, j;

	for (j = 0; j < sizeof(attributes) / sizeof(attributes[0]); j++) {
		begin_family(all, attributes[j][0], COUNTER, attributes[j][2]);
		for (i = 0; i < all->count; i++) {
			if (!sysfs_exists(CLASS "/%s/%s", all->sources[i].node, attributes[j][1]))
				continue;
			begin_sample(all, &all->sources[i]);
			end_sample(all->out,
				   sysfs_number(0, CLASS "/%s/%s", all->sources[i].node, attributes[j][1]));
		}
	}
}

static void print_pairs(struct sources *all, const char *name, size_t offset, const char *help)
{
	const struct node_pairs *pairs;
	size_t i;

	begin_family(all, name, GAUGE, help);
	for (i = 0; i < all->count; i++) {
		pairs = &all->sources[i].pairs;
		if (!pairs->known)
			continue;
		begin_sample(all, &all->sources[i]);
		end_sample(all->out, *(const uint32_t *)((const char *)pairs + offset));
	}
}

static void print_all_pairs(struct sources *all)
{
	print_pairs(all, "queue_pairs", offsetof(struct node_pairs, used), "Queue pairs of peers.");
	print_pairs(all, "queue_pairs_limit", offsetof(struct node_pairs, most),
		    "Queue pairs that peers may have.");
	print_pairs(all, "quarantined_queue_ids", offsetof(struct node_pairs, quarantined),
		    "Queue IDs that are not reused, as a process or device may store to their doorbells.");
}

/**
 * struct health - a metric from SMART / Health Information
 * @name: of the metric
 * @type: of the metric
 * @operation: value of a label, or NULL
 * @field: see smart_number()
 * @scale: factor from the field to the metric
 * @zero: value of the field that is 0
 * @help: text
 */
struct health {
	const char *name;
	enum type type;
	const char *operation;
	const char *field;
	unsigned int scale;
	int zero;
	const char *help;
};

static void print_health(struct sources *all)
{
	static const struct health metrics[] = {
		{ "critical_warning", GAUGE, NULL, "critical_warning", 1, 0, "Bits of warnings, 0 is good." },
		{ "temperature_celsius", GAUGE, NULL, "temperature", 1, 273, "Composite temperature." },
		{ "spare_percent", GAUGE, NULL, "avail_spare", 1, 0, "Spare capacity that is left." },
		{ "used_percent", GAUGE, NULL, "percent_used", 1, 0, "Endurance used; may exceed 100." },
		{ "commands", COUNTER, "read", "host_read_commands", 1, 0,
		  "Commands of peers and the CPU, as counted by the controller." },
		{ "commands", COUNTER, "write", "host_write_commands", 1, 0, NULL },
		{ "data_bytes", COUNTER, "read", "data_units_read", 512000, 0,
		  "Data of peers and the CPU, as counted by the controller." },
		{ "data_bytes", COUNTER, "write", "data_units_written", 512000, 0, NULL },
		{ "media_errors", COUNTER, NULL, "media_errors", 1, 0, "Unrecovered errors of the medium." },
		{ "unsafe_shutdowns", COUNTER, NULL, "unsafe_shutdowns", 1, 0,
		  "Losses of power without a shutdown." },
	};
	const struct health *metric;
	size_t i, j;

	for (j = 0; j < sizeof(metrics) / sizeof(metrics[0]); j++) {
		metric = &metrics[j];
		if (metric->help)
			begin_family(all, metric->name, metric->type, metric->help);
		for (i = 0; i < all->count; i++) {
			if (!all->sources[i].has_smart)
				continue;
			begin_sample(all, &all->sources[i]);
			if (metric->operation)
				print_label(all->out, "operation", metric->operation);
			fprintf(all->out, "} %" PRId64 "\n",
				((int64_t)smart_number(all->sources[i].smart, metric->field) - metric->zero) *
				metric->scale);
		}
	}
}

/* ---- Queues and disks -------------------------------------------------------- */

/**
 * struct counted - a metric from the rows of stat
 * @name: of the metric
 * @label: label and value that distinguish the numbers of one metric, or NULL
 * @number: of the row
 * @scale: factor
 * @help: text; NULL for a further number of the same metric
 */
struct counted {
	const char *name;
	const char *label[2];
	unsigned int number;
	unsigned int scale;
	const char *help;
};

static void print_row(struct sources *all, const struct counted *metric, const struct source *source,
		      const struct stat_row *row)
{
	bool is_queue = row->owner[0];
	FILE *out = all->out;

	if (!(row->known & 1u << metric->number))
		return;
	begin_sample(all, source);
	print_label(out, is_queue ? "queue" : "disk", row->name);
	if (is_queue)
		print_label(out, "owner", row->owner);
	if (metric->label[0])
		print_label(out, metric->label[0], metric->label[1]);
	end_sample(out, row->numbers[metric->number] * metric->scale);
}

static void print_rows(struct sources *all, const struct counted *metrics, size_t count, bool queues)
{
	const struct stat_sample *sample;
	size_t i, j, row, end;

	for (j = 0; j < count; j++) {
		if (metrics[j].help)
			begin_family(all, metrics[j].name, COUNTER, metrics[j].help);
		for (i = 0; i < all->count; i++) {
			sample = &all->sources[i].sample;
			end = queues ? sample->queues : sample->count;
			for (row = queues ? 0 : sample->queues; row < end; row++)
				print_row(all, &metrics[j], &all->sources[i], &sample->rows[row]);
		}
	}
}

static void print_counters(struct sources *all)
{
	static const struct counted queues[] = {
		{ "doorbell_writes", { "ring", "sq" }, 0, 1, "Doorbell writes of the CPU." },
		{ "doorbell_writes", { "ring", "cq" }, 1, 1, NULL },
		{ "completions", { NULL, NULL }, 2, 1, "Completions of queues of the CPU." },
		{ "lost_interrupts", { NULL, NULL }, 3, 1, "Completions found without an interrupt." },
	};
	static const struct counted disks[] = {
		{ "disk_requests", { "operation", "read" }, 0, 1, "Requests of the CPU." },
		{ "disk_requests", { "operation", "write" }, 2, 1, NULL },
		{ "disk_bytes", { "operation", "read" }, 1, SECTOR, "Data of the requests of the CPU." },
		{ "disk_bytes", { "operation", "write" }, 3, SECTOR, NULL },
	};

	print_rows(all, queues, sizeof(queues) / sizeof(queues[0]), true);
	print_rows(all, disks, sizeof(disks) / sizeof(disks[0]), false);
}

/* ---- The command -------------------------------------------------------------- */

static void read_source(struct source *source, const char *node)
{
	struct nvmepeer *ctrl;

	snprintf(source->node, sizeof(source->node), "%.*s", STAT_NAME - 1, node);
	stat_read(&source->sample, node);
	node_pairs(node, &source->pairs);
	if (node_ctrl_open(node, &ctrl))
		return;
	source->has_smart = !smart_read(ctrl, source->smart);
	nvmepeer_close(ctrl);
}

static void print_all(struct sources *all)
{
	print_information(all);
	print_live(all);
	print_attributes(all);
	print_all_pairs(all);
	print_health(all);
	print_counters(all);
	fputs("# EOF\n", all->out);
}

static int read_given(struct sources *all, int count, char **names)
{
	const char *node;
	int i;

	for (i = 0; i < count; i++) {
		node = stat_node(names[i]);
		if (!node)
			return EXIT_REFUSED;
		read_source(&all->sources[all->count++], node);
	}
	return 0;
}

int command_metrics(struct report *report, const struct options *options, int argc, char **argv)
{
	struct sources all = { .out = report->out };
	struct dirent **names;
	int count, i, status;

	(void)options;
	count = sysfs_list(&names, CLASS);
	all.sources = calloc((size_t)count + (size_t)argc + 1, sizeof(*all.sources));
	status = all.sources ? read_given(&all, argc, argv) : EXIT_REFUSED;
	for (i = 0; i < count && !argc && !status; i++)
		read_source(&all.sources[all.count++], names[i]->d_name);
	if (!status)
		print_all(&all);
	sysfs_list_free(names, count);
	free(all.sources);
	return status;
}
