// SPDX-License-Identifier: MIT OR GPL-2.0
/*
 * nvme-peer list: the controllers bound to nvme-peer and their namespaces.
 *
 * Read from sysfs, which needs no rights; only the number of queue pairs of peers comes
 * from the controller node.
 */
#include <string.h>

#include "node.h"
#include "nvme-peer.h"
#include "sysfs.h"
#include "table.h"
#include "units.h"

#define CLASS "/sys/class/nvme-peer"

enum { NAME = 40, SECTOR = 512 };

/* ---- Namespaces ---------------------------------------------------------- */

/**
 * struct disk - the disk of a namespace
 * @name: nvmep0n1
 * @nsid: namespace identifier
 * @bytes: size of the namespace
 * @block_size: bytes of a logical block
 */
struct disk {
	char name[NAME];
	uint64_t nsid;
	uint64_t bytes;
	uint64_t block_size;
};

static void read_disk(struct disk *disk, const char *node, const char *name)
{
	snprintf(disk->name, sizeof(disk->name), "%.*s", NAME - 1, name);
	disk->nsid = sysfs_number(0, CLASS "/%s/%s/nsid", node, name);
	disk->bytes = sysfs_number(0, CLASS "/%s/%s/size", node, name) * SECTOR;
	disk->block_size = sysfs_number(0, CLASS "/%s/%s/queue/logical_block_size", node, name);
}

/* Disks are the children of a controller whose names begin with its name. */
static void each_disk(const char *node, void (*show)(const struct disk *disk, void *context),
		      void *context)
{
	struct dirent **names;
	struct disk disk;
	int count, i;

	count = sysfs_list(&names, CLASS "/%s", node);
	for (i = 0; i < count; i++) {
		if (strncmp(names[i]->d_name, node, strlen(node)) != 0)
			continue;
		read_disk(&disk, node, names[i]->d_name);
		show(&disk, context);
	}
	sysfs_list_free(names, count);
}

static void report_disk(const struct disk *disk, void *context)
{
	struct report *report = context;

	report_object(report, NULL);
	report_text(report, "name", disk->name);
	report_number(report, "nsid", disk->nsid, NULL);
	report_number(report, "bytes", disk->bytes, NULL);
	report_number(report, "block_size", disk->block_size, NULL);
	report_object_end(report);
}

/* Append "n1 1.92 TB". */
static void append_disk(const struct disk *disk, void *context)
{
	char *text = context, size[UNITS_TEXT];
	size_t length = strlen(text);

	snprintf(text + length, SYSFS_TEXT - length, "%s%s %s", length ? ", " : "",
		 disk->name + strcspn(disk->name + 5, "n") + 5, units_disk(disk->bytes, size));
}

/* ---- Controllers --------------------------------------------------------- */

static const struct {
	const char *attribute;
	const char *name;
	const char *heading;
} attributes[] = {
	{ "address", "pci_address", "Address" },
	{ "serial", "serial", "Serial" },
	{ "model", "model", "Model" },
	{ "firmware_rev", "firmware", "Firmware" },
	{ "state", "state", "State" },
};

#define ATTRIBUTES (sizeof(attributes) / sizeof(attributes[0]))

static void report_controller(struct report *report, const char *node, const struct node_pairs *pairs)
{
	char text[SYSFS_TEXT];
	size_t i;

	report_object(report, NULL);
	report_text(report, "node", node);
	for (i = 0; i < ATTRIBUTES; i++) {
		sysfs_read(text, CLASS "/%s/%s", node, attributes[i].attribute);
		report_text(report, attributes[i].name, text);
	}
	if (pairs->known) {
		report_number(report, "peer_pairs", pairs->used, NULL);
		report_number(report, "peer_pairs_max", pairs->most, NULL);
	}
	report_list(report, "namespaces");
	each_disk(node, report_disk, report);
	report_list_end(report);
	report_object_end(report);
}

static void add_row(struct table *table, const char *node, const struct node_pairs *pairs)
{
	char text[SYSFS_TEXT];
	size_t i;

	table_cell(table, "%s", node);
	for (i = 0; i < ATTRIBUTES; i++) {
		sysfs_read(text, CLASS "/%s/%s", node, attributes[i].attribute);
		table_cell(table, "%s", text);
	}
	if (pairs->known)
		table_cell(table, "%u of %u", pairs->used, pairs->most);
	else
		table_cell(table, "?");
	text[0] = 0;
	each_disk(node, append_disk, text);
	table_cell(table, "%s", text);
}

static void add_heading(struct table *table)
{
	size_t i;

	table_cell(table, "Node");
	for (i = 0; i < ATTRIBUTES; i++)
		table_cell(table, "%s", attributes[i].heading);
	table_cell(table, "Peer pairs");
	table_cell(table, "Namespaces");
}

int command_list(struct report *report, const struct options *options, int argc, char **argv)
{
	struct table table = { .columns = ATTRIBUTES + 3 };
	struct dirent **names;
	struct node_pairs pairs;
	int count, i;

	(void)options;
	if (argc)
		return usage_error("list takes no argument", argv[0]);
	count = sysfs_list(&names, CLASS);
	if (report->json)
		report_list(report, "controllers");
	else
		add_heading(&table);
	for (i = 0; i < count; i++) {
		node_pairs(names[i]->d_name, &pairs);
		if (report->json)
			report_controller(report, names[i]->d_name, &pairs);
		else
			add_row(&table, names[i]->d_name, &pairs);
	}
	if (report->json)
		report_list_end(report);
	else
		table_print(&table, report->out);
	sysfs_list_free(names, count);
	return 0;
}
