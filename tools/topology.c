// SPDX-License-Identifier: MIT OR GPL-2.0
/*
 * nvme-peer topo: the bridges between peers and controllers, a matrix of the routes
 * between them, and the commands that remove what blocks a route.
 *
 * Peers are all GPUs and the functions that are given by address.
 */
#include <linux/pci_regs.h>
#include <stdlib.h>
#include <string.h>

#include "nvme-peer.h"
#include "table.h"
#include "topology.h"

/* ---- Selection ----------------------------------------------------------- */

static size_t index_of(const struct topology *topology, const struct pci_function *function)
{
	return (size_t)(function - topology->pci.functions);
}

static void mark_upwards(struct topology *topology, const struct pci_function *function)
{
	for (; function; function = function->upstream)
		topology->is_shown[index_of(topology, function)] = true;
}

static void select_functions(struct topology *topology)
{
	const struct pci_function *function;
	size_t i;

	for (i = 0; i < topology->pci.count; i++) {
		function = &topology->pci.functions[i];
		topology->is_peer[i] |= function->kind == PCI_GPU;
		if (topology->is_peer[i] || function->kind == PCI_CONTROLLER)
			mark_upwards(topology, function);
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

/**
 * struct tree - the tree as text
 * @out: stream
 * @root: last root bus
 */
struct tree {
	FILE *out;
	const char *root;
};

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

static void walk_below(const struct topology *topology, const struct pci_function *upstream,
		       const char *root, int depth, topology_visit *visit, void *context)
{
	const struct pci_function *function;
	size_t i;

	for (i = 0; i < topology->pci.count; i++) {
		function = &topology->pci.functions[i];
		if (!topology->is_shown[i] || function->upstream != upstream ||
		    strcmp(function->root, root) != 0)
			continue;
		visit(function, depth, context);
		walk_below(topology, function, root, depth + 1, visit, context);
	}
}

/* Functions are sorted by address, so each root bus appears once. */
void topology_walk(const struct topology *topology, topology_visit *visit, void *context)
{
	const char *root = "";
	size_t i;

	for (i = 0; i < topology->pci.count; i++) {
		if (!topology->is_shown[i] || topology->pci.functions[i].upstream ||
		    !strcmp(topology->pci.functions[i].root, root))
			continue;
		root = topology->pci.functions[i].root;
		walk_below(topology, NULL, root, 0, visit, context);
	}
}

static void print_node(const struct pci_function *function, int depth, void *context)
{
	struct tree *tree = context;

	if (strcmp(function->root, tree->root) != 0)
		fprintf(tree->out, "%s\n", function->root);
	tree->root = function->root;
	print_function(function, depth + 1, tree->out);
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
	char verdict[ROUTE_VERDICT];
	struct route route;
	size_t i;

	table_cell(table, "%s", peer->address);
	for (i = 0; i < topology->pci.count; i++) {
		if (topology->pci.functions[i].kind != PCI_CONTROLLER)
			continue;
		route_find(&route, peer, &topology->pci.functions[i]);
		table_cell(table, "%s", route_verdict(&route, verdict));
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

/* ---- Fixes --------------------------------------------------------------- */

static void print_fix(const char *line, void *context)
{
	fprintf(context, "    %s\n", line);
}

static void print_route(const struct route *route, void *context)
{
	char verdict[ROUTE_VERDICT];
	FILE *out = context;

	if (route->path.data.verdict == NVME_PEER_ROUTE_BUS_ADDR)
		return;
	fprintf(out, "\n%s and %s: %s, %s\n", route->peer->address, short_name(route->controller),
		route_verdict(route, verdict), route_reason(route));
	route_fixes(route, print_fix, out);
}

static void report_fix(const char *line, void *context)
{
	report_text(context, NULL, line);
}

static void report_route(const struct route *route, void *context)
{
	struct report *report = context;
	char verdict[ROUTE_VERDICT];

	report_object(report, NULL);
	report_text(report, "peer", route->peer->address);
	report_text(report, "controller", route->controller->address);
	report_text(report, "verdict", route_verdict(route, verdict));
	report_text(report, "reason", route_reason(route));
	report_bool(report, "module_asked", route->from_module);
	report_list(report, "cures");
	route_fixes(route, report_fix, report);
	report_list_end(report);
	report_object_end(report);
}

void topology_each_route(const struct topology *topology,
			 void (*show)(const struct route *route, void *context), void *context)
{
	const struct pci *pci = &topology->pci;
	struct route route;
	size_t i, j;

	for (i = 0; i < pci->count; i++) {
		for (j = 0; topology->is_peer[i] && j < pci->count; j++) {
			if (pci->functions[j].kind != PCI_CONTROLLER)
				continue;
			route_find(&route, &pci->functions[i], &pci->functions[j]);
			show(&route, context);
		}
	}
}

/* ---- Pictures, for dot(1) and as SVG --------------------------------------- */

enum { INDENT = 36, ROW = 44, BOX = 330, BOX_HEIGHT = 34, MARGIN = 16, TITLE = 24, ARC = 46, END_GAP = 5 };

/* What is written for a function, in two lines. */
static void describe(const struct pci_function *function, char text[2][128])
{
	char acs[PCI_NAME];

	snprintf(text[0], sizeof(text[0]), "%s %s", function->address, pci_describe(function));
	if (function->kind == PCI_BRIDGE)
		snprintf(text[1], sizeof(text[1]), "%s", pci_acs_text(function, acs));
	else
		snprintf(text[1], sizeof(text[1]), "%04x:%04x %s %s", function->vendor, function->device,
			 function->driver[0] ? function->driver : "no driver", function->node);
}

static const char *fill(const struct pci_function *function)
{
	switch (function->kind) {
	case PCI_GPU:
		return "#d9ead3";
	case PCI_CONTROLLER:
		return "#cfe2f3";
	default:
		return "#f3f3f3";
	}
}

/* Green: inside a switch; blue: open; orange: not known; red: none. */
static const char *colour(const struct route *route)
{
	if (!route->from_module && route->path.data.verdict != NVME_PEER_ROUTE_BUS_ADDR)
		return "#ff7f0e";
	if (!route_is_open(route))
		return "#d62728";
	return route->path.data.verdict == NVME_PEER_ROUTE_BUS_ADDR ? "#2ca02c" : "#1f77b4";
}

/* ---- dot ------------------------------------------------------------------- */

static void dot_route(const struct route *route, void *context)
{
	char verdict[ROUTE_VERDICT];

	fprintf(context, "\t\"%s\" -> \"%s\" [dir=both, style=dashed, constraint=false, color=\"%s\", fontcolor=\"%s\", label=\"%s\"];\n",
		route->peer->address, route->controller->address, colour(route), colour(route),
		route_verdict(route, verdict));
}

static void topology_dot(const struct topology *topology, FILE *out)
{
	const struct pci_function *function;
	char text[2][128];
	size_t i;

	fputs("digraph topology {\n\tnode [shape=box, style=filled, fontname=\"sans-serif\"];\n"
	      "\tedge [fontname=\"sans-serif\"];\n", out);
	for (i = 0; i < topology->pci.count; i++) {
		if (!topology->is_shown[i])
			continue;
		function = &topology->pci.functions[i];
		describe(function, text);
		fprintf(out, "\t\"%s\" [label=\"%s\\n%s\", fillcolor=\"%s\"];\n", function->address, text[0],
			text[1], fill(function));
		fprintf(out, "\t\"%s\" -> \"%s\" [dir=none, label=\"%s%s%s\"];\n",
			function->upstream ? function->upstream->address : function->root,
			function->address, function->speed, function->speed[0] ? " x" : "", function->width);
	}
	topology_each_route(topology, dot_route, out);
	fputs("}\n", out);
}

/* ---- SVG ------------------------------------------------------------------- */

/**
 * struct place - place of a function in the picture
 * @depth: bridges above it
 * @row: its row
 * @routes: number of its routes that were drawn so far
 */
struct place {
	int depth;
	int row;
	int routes;
};

/**
 * struct picture - an SVG in progress
 * @topology: what is drawn
 * @out: stream
 * @places: by function
 * @rows: number of rows
 * @deepest: highest depth
 * @routes: number of routes, or those drawn so far
 */
struct picture {
	const struct topology *topology;
	FILE *out;
	struct place *places;
	int rows;
	int deepest;
	int routes;
};

static void place(const struct pci_function *function, int depth, void *context)
{
	struct picture *picture = context;

	picture->places[function - picture->topology->pci.functions] =
		(struct place){ .depth = depth, .row = picture->rows++ };
	if (depth > picture->deepest)
		picture->deepest = depth;
}

static void count_route(const struct route *route, void *context)
{
	struct picture *picture = context;

	(void)route;
	picture->routes++;
}

static int left_of(const struct picture *picture, const struct pci_function *function)
{
	return MARGIN + INDENT * picture->places[function - picture->topology->pci.functions].depth;
}

static int middle_of(const struct picture *picture, const struct pci_function *function)
{
	return TITLE + MARGIN + BOX_HEIGHT / 2 +
	       ROW * picture->places[function - picture->topology->pci.functions].row;
}

static void draw_function(const struct pci_function *function, int depth, void *context)
{
	const struct picture *picture = context;
	int left = left_of(picture, function), middle = middle_of(picture, function);
	char text[2][128];

	describe(function, text);
	if (depth)
		fprintf(picture->out, "<path d=\"M%d %dV%dH%d\" fill=\"none\" stroke=\"#888\"/>\n",
			left_of(picture, function->upstream) + 12,
			middle_of(picture, function->upstream) + BOX_HEIGHT / 2, middle, left);
	fprintf(picture->out,
		"<rect x=\"%d\" y=\"%d\" width=\"%d\" height=\"%d\" rx=\"4\" fill=\"%s\" stroke=\"#888\"/>\n"
		"<text x=\"%d\" y=\"%d\">%s</text><text x=\"%d\" y=\"%d\" fill=\"#555\">%s</text>\n",
		left, middle - BOX_HEIGHT / 2, BOX, BOX_HEIGHT, fill(function), left + 6, middle - 3, text[0],
		left + 6, middle + 12, text[1]);
}

/* Where the next route of a function ends: in its middle, then above and below. */
static int next_end(const struct picture *picture, const struct pci_function *function)
{
	int number = picture->places[function - picture->topology->pci.functions].routes++;
	int away = (number + 1) / 2 * END_GAP;

	if (away > BOX_HEIGHT / 2)
		away = BOX_HEIGHT / 2;
	return middle_of(picture, function) + (number % 2 ? -away : away);
}

/* Arcs to the right of the boxes, each further out than the last. */
static void draw_route(const struct route *route, void *context)
{
	struct picture *picture = context;
	int from = next_end(picture, route->peer), to = next_end(picture, route->controller);
	int out = MARGIN + INDENT * picture->deepest + BOX + ARC * ++picture->routes;
	char verdict[ROUTE_VERDICT];

	fprintf(picture->out,
		"<path d=\"M%d %dH%dV%dH%d\" fill=\"none\" stroke-width=\"2\" stroke=\"%s\"/>\n"
		"<text transform=\"translate(%d %d) rotate(90)\" text-anchor=\"middle\" fill=\"%s\">%s</text>\n",
		left_of(picture, route->peer) + BOX, from, out, to, left_of(picture, route->controller) + BOX,
		colour(route), out + 6, (from + to) / 2, colour(route), route_verdict(route, verdict));
}

static void topology_svg(const struct topology *topology, FILE *out)
{
	struct picture picture = { .topology = topology, .out = out };

	picture.places = calloc(topology->pci.count + 1, sizeof(*picture.places));
	if (!picture.places)
		return;
	topology_walk(topology, place, &picture);
	topology_each_route(topology, count_route, &picture);
	fprintf(out,
		"<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"%d\" height=\"%d\" font-family=\"sans-serif\" font-size=\"12\">\n"
		"<rect width=\"100%%\" height=\"100%%\" fill=\"white\"/>\n"
		"<text x=\"%d\" y=\"20\" font-size=\"14\">Routes between peers and NVMe controllers</text>\n",
		2 * MARGIN + INDENT * picture.deepest + BOX + ARC * picture.routes,
		TITLE + 2 * MARGIN + ROW * picture.rows, MARGIN);
	picture.routes = 0;
	topology_walk(topology, draw_function, &picture);
	topology_each_route(topology, draw_route, &picture);
	fputs("</svg>\n", out);
	free(picture.places);
}

/* ---- The command --------------------------------------------------------- */

static void show(struct report *report, const struct options *options, const struct topology *topology)
{
	struct tree tree = { .out = report->out, .root = "" };

	if (options->format == FORMAT_DOT) {
		topology_dot(topology, report->out);
		return;
	}
	if (options->format == FORMAT_SVG) {
		topology_svg(topology, report->out);
		return;
	}
	if (report->json) {
		report_functions(report, topology);
		report_list(report, "ways");
		topology_each_route(topology, report_route, report);
		report_list_end(report);
		return;
	}
	topology_walk(topology, print_node, &tree);
	fputc('\n', report->out);
	print_matrix(topology, report->out);
	topology_each_route(topology, print_route, report->out);
}

int command_topo(struct report *report, const struct options *options, int argc, char **argv)
{
	struct topology topology;
	int status = EXIT_REFUSED;

	pci_scan(&topology.pci);
	topology.is_peer = calloc(topology.pci.count + 1, sizeof(bool));
	topology.is_shown = calloc(topology.pci.count + 1, sizeof(bool));
	if (topology.is_peer && topology.is_shown) {
		status = add_given(&topology, argc, argv);
		select_functions(&topology);
		if (!status)
			show(report, options, &topology);
	}
	free(topology.is_peer);
	free(topology.is_shown);
	pci_free(&topology.pci);
	return status;
}
