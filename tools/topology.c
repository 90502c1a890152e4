// SPDX-License-Identifier: MIT OR GPL-2.0
/*
 * nvme-peer topo: the bridges between peers and controllers, a matrix of the
 * ways between them, and what to type to change what is in the way.
 *
 * Peers are all GPUs, and what was given by its address.
 */
#include <linux/pci_regs.h>
#include <stdlib.h>
#include <string.h>

#include "nvme-peer.h"
#include "pci.h"
#include "table.h"
#include "way.h"

/**
 * struct topology - what is shown
 * @pci: all functions
 * @is_peer: of each function, by its index
 * @is_shown: likewise: a peer, a controller, or above one
 */
struct topology {
	struct pci pci;
	bool *is_peer;
	bool *is_shown;
};

/* ---- What is shown ------------------------------------------------------- */

static size_t index_of(const struct topology *topology, const struct pci_function *function)
{
	return (size_t)(function - topology->pci.functions);
}

static void show_upwards(struct topology *topology, const struct pci_function *function)
{
	for (; function; function = function->upstream)
		topology->is_shown[index_of(topology, function)] = true;
}

static void choose(struct topology *topology)
{
	const struct pci_function *function;
	size_t i;

	for (i = 0; i < topology->pci.count; i++) {
		function = &topology->pci.functions[i];
		topology->is_peer[i] |= function->kind == PCI_GPU;
		if (topology->is_peer[i] || function->kind == PCI_CONTROLLER)
			show_upwards(topology, function);
	}
}

static int add_given(struct topology *topology, int count, char **names)
{
	const struct pci_function *function;
	int i;

	for (i = 0; i < count; i++) {
		function = pci_find(&topology->pci, names[i]);
		if (!function) {
			fprintf(stderr, "nvme-peer: %s: no PCI function has this address\n", names[i]);
			return EXIT_REFUSED;
		}
		topology->is_peer[index_of(topology, function)] = true;
	}
	return 0;
}

/* ---- The tree ------------------------------------------------------------ */

static void print_function(const struct pci_function *function, int depth, FILE *out)
{
	char acs[PCI_NAME];

	fprintf(out, "%*s%s %s", 2 * depth, "", function->address, pci_describe(function));
	if (function->kind != PCI_BRIDGE)
		fprintf(out, " %04x:%04x, %s%s%s", function->vendor, function->device,
			function->driver[0] ? function->driver : "no driver",
			function->node[0] ? " " : "", function->node);
	if (function->speed[0])
		fprintf(out, ", %s x%s", function->speed, function->width);
	if (function->kind == PCI_BRIDGE || function->has_acs)
		fprintf(out, ", %s", pci_acs_text(function, acs));
	if (function->group >= 0)
		fprintf(out, ", IOMMU group %d %s", function->group, function->domain);
	fputc('\n', out);
}

static void print_below(const struct topology *topology, const struct pci_function *upstream,
			const char *root, int depth, FILE *out)
{
	const struct pci_function *function;
	size_t i;

	for (i = 0; i < topology->pci.count; i++) {
		function = &topology->pci.functions[i];
		if (!topology->is_shown[i] || function->upstream != upstream ||
		    strcmp(function->root, root) != 0)
			continue;
		print_function(function, depth, out);
		print_below(topology, function, root, depth + 1, out);
	}
}

/* Functions are in the order of their addresses, so a root bus comes once. */
static void print_tree(const struct topology *topology, FILE *out)
{
	const char *root = "";
	size_t i;

	for (i = 0; i < topology->pci.count; i++) {
		if (!topology->is_shown[i] || topology->pci.functions[i].upstream ||
		    !strcmp(topology->pci.functions[i].root, root))
			continue;
		root = topology->pci.functions[i].root;
		fprintf(out, "%s\n", root);
		print_below(topology, NULL, root, 1, out);
	}
}

static void report_function(struct report *report, const struct pci_function *function)
{
	char identifier[16], acs[PCI_NAME];

	snprintf(identifier, sizeof(identifier), "%04x:%04x", function->vendor, function->device);
	report_object(report, NULL);
	report_text(report, "address", function->address);
	report_text(report, "root", function->root);
	report_text(report, "upstream", function->upstream ? function->upstream->address : "");
	report_text(report, "what", pci_describe(function));
	report_text(report, "id", identifier);
	report_text(report, "driver", function->driver);
	report_text(report, "node", function->node);
	report_text(report, "link_speed", function->speed);
	report_text(report, "link_width", function->width);
	report_text(report, "acs", pci_acs_text(function, acs));
	if (function->group >= 0) {
		report_number(report, "iommu_group", (uint64_t)function->group, NULL);
		report_text(report, "iommu_domain", function->domain);
	}
	report_object_end(report);
}

static void report_functions(struct report *report, const struct topology *topology)
{
	size_t i;

	report_list(report, "functions");
	for (i = 0; i < topology->pci.count; i++)
		if (topology->is_shown[i])
			report_function(report, &topology->pci.functions[i]);
	report_list_end(report);
}

/* ---- The matrix ---------------------------------------------------------- */

static const char *short_name(const struct pci_function *controller)
{
	return controller->node[0] ? controller->node : controller->address;
}

static void add_heading(const struct topology *topology, struct table *table)
{
	size_t i;

	table->columns = 1;
	table_cell(table, "Peer");
	for (i = 0; i < topology->pci.count; i++) {
		if (topology->pci.functions[i].kind != PCI_CONTROLLER)
			continue;
		table_cell(table, "%s", short_name(&topology->pci.functions[i]));
		table->columns++;
	}
}

static void add_row(const struct topology *topology, const struct pci_function *peer,
		    struct table *table)
{
	char verdict[WAY_VERDICT];
	struct way way;
	size_t i;

	table_cell(table, "%s", peer->address);
	for (i = 0; i < topology->pci.count; i++) {
		if (topology->pci.functions[i].kind != PCI_CONTROLLER)
			continue;
		way_find(&way, peer, &topology->pci.functions[i]);
		table_cell(table, "%s", way_verdict(&way, verdict));
	}
}

static void print_matrix(const struct topology *topology, FILE *out)
{
	struct table table = { 0 };
	size_t i;

	add_heading(topology, &table);
	for (i = 0; i < topology->pci.count; i++)
		if (topology->is_peer[i])
			add_row(topology, &topology->pci.functions[i], &table);
	table_print(&table, out);
}

/* ---- What to type -------------------------------------------------------- */

static void print_cure(const char *line, void *where)
{
	fprintf(where, "    %s\n", line);
}

static void print_way(const struct way *way, void *where)
{
	char verdict[WAY_VERDICT];
	FILE *out = where;

	if (way->route.data.verdict == NVME_PEER_ROUTE_BUS_ADDR)
		return;
	fprintf(out, "\n%s and %s: %s, %s\n", way->peer->address, short_name(way->controller),
		way_verdict(way, verdict), way_reason(way));
	way_cures(way, print_cure, out);
}

static void report_cure(const char *line, void *where)
{
	report_text(where, NULL, line);
}

static void report_way(const struct way *way, void *where)
{
	struct report *report = where;
	char verdict[WAY_VERDICT];

	report_object(report, NULL);
	report_text(report, "peer", way->peer->address);
	report_text(report, "controller", way->controller->address);
	report_text(report, "verdict", way_verdict(way, verdict));
	report_text(report, "reason", way_reason(way));
	report_bool(report, "module_asked", way->asked);
	report_list(report, "cures");
	way_cures(way, report_cure, report);
	report_list_end(report);
	report_object_end(report);
}

static void each_way(const struct topology *topology,
		     void (*show)(const struct way *way, void *where), void *where)
{
	const struct pci *pci = &topology->pci;
	struct way way;
	size_t i, j;

	for (i = 0; i < pci->count; i++) {
		for (j = 0; topology->is_peer[i] && j < pci->count; j++) {
			if (pci->functions[j].kind != PCI_CONTROLLER)
				continue;
			way_find(&way, &pci->functions[i], &pci->functions[j]);
			show(&way, where);
		}
	}
}

/* ---- The command --------------------------------------------------------- */

static void show(struct report *report, const struct topology *topology)
{
	if (report->json) {
		report_functions(report, topology);
		report_list(report, "ways");
		each_way(topology, report_way, report);
		report_list_end(report);
		return;
	}
	print_tree(topology, report->out);
	fputc('\n', report->out);
	print_matrix(topology, report->out);
	each_way(topology, print_way, report->out);
}

int command_topo(struct report *report, const struct options *options, int argc, char **argv)
{
	struct topology topology;
	int status = EXIT_REFUSED;

	(void)options;
	pci_scan(&topology.pci);
	topology.is_peer = calloc(topology.pci.count + 1, sizeof(bool));
	topology.is_shown = calloc(topology.pci.count + 1, sizeof(bool));
	if (topology.is_peer && topology.is_shown) {
		status = add_given(&topology, argc, argv);
		choose(&topology);
		if (!status)
			show(report, &topology);
	}
	free(topology.is_peer);
	free(topology.is_shown);
	pci_free(&topology.pci);
	return status;
}
