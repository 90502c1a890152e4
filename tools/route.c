// SPDX-License-Identifier: MIT OR GPL-2.0
/*
 * Routes between functions; see route.h.
 *
 * Only the module has the list of host bridges that forward between their root ports.
 * Without its verdict, a route that leaves the switch is unknown.
 */
#include <linux/pci_regs.h>
#include <stdio.h>
#include <string.h>

#include "node.h"
#include "route.h"

/* The ACS bits that the module checks: request and completion redirect, egress control. */
enum { ACS_REDIRECT = PCI_ACS_RR | PCI_ACS_CR | PCI_ACS_EC };

/* ---- Estimate from sysfs ------------------------------------------------- */

static const struct pci_function *common_upstream(const struct pci_function *a,
						  const struct pci_function *b)
{
	const struct pci_function *above;

	for (; a; a = a->upstream)
		for (above = b; above; above = above->upstream)
			if (above == a)
				return a;
	return NULL;
}

static void add_blocker(struct route *route, const struct pci_function *port, uint16_t acs)
{
	struct nvme_peer_path *path = &route->path.data;
	struct nvme_peer_route_blocker *blocker;

	if (path->blocker_count < NVME_PEER_ROUTE_BLOCKERS) {
		blocker = &path->blockers[path->blocker_count];
		nvmepeer_pci_parse(port->address, &blocker->address);
		blocker->acs = acs;
	}
	path->blocker_count++;
}

/* Ports from @function up to @end, exclusive. */
static void find_redirects(struct route *route, const struct pci_function *function,
			   const struct pci_function *end)
{
	for (; function && function != end; function = function->upstream) {
		route->acs_hidden |= !function->sees_acs;
		if (function->acs & ACS_REDIRECT)
			add_blocker(route, function, function->acs & ACS_REDIRECT);
	}
}

static void evaluate_acs(struct route *route)
{
	const struct pci_function *common = common_upstream(route->controller, route->peer);
	struct nvme_peer_path *path = &route->path.data;

	path->reason = NVME_PEER_REASON_SAME_FUNCTION;
	if (route->controller == route->peer)
		return;
	path->reason = NVME_PEER_REASON_NONE;
	if (common) {
		/* The ACS bits of the bridge above both count as well. */
		find_redirects(route, route->controller, common->upstream);
		find_redirects(route, route->peer, common);
		if (!path->blocker_count && !route->acs_hidden) {
			path->verdict = NVME_PEER_ROUTE_BUS_ADDR;
			path->reason = NVME_PEER_REASON_COMMON_SWITCH;
		}
	}
	route->path.doorbell = *path;
}

/* ---- Verdict of the module, or the estimate ------------------------------ */

static bool query_module(struct route *route)
{
	struct nvme_peer_pci_address address;
	struct nvmepeer *ctrl;

	if (strcmp(route->controller->driver, "nvme-peer") != 0 ||
	    nvmepeer_pci_parse(route->peer->address, &address) ||
	    node_ctrl_open(route->controller->node, &ctrl))
		return false;
	route->from_module = !nvmepeer_route_pci(ctrl, address, &route->path, sizeof(route->path));
	nvmepeer_close(ctrl);
	return route->from_module;
}

void route_find(struct route *route, const struct pci_function *peer,
		const struct pci_function *controller)
{
	*route = (struct route){ .peer = peer, .controller = controller };
	if (!query_module(route))
		evaluate_acs(route);
}

bool route_is_open(const struct route *route)
{
	return route->path.data.verdict != NVME_PEER_ROUTE_NONE;
}

/* Not known to the module, and no common switch. */
static bool is_unknown(const struct route *route)
{
	return !route->from_module && route->path.data.reason == NVME_PEER_REASON_NONE;
}

const char *route_verdict(const struct route *route, char text[ROUTE_VERDICT])
{
	const struct nvme_peer_route *path = &route->path;

	if (is_unknown(route))
		snprintf(text, ROUTE_VERDICT, "host-bridge?");
	else if (path->data.verdict == path->doorbell.verdict)
		snprintf(text, ROUTE_VERDICT, "%s", nvmepeer_verdict_name(path->data.verdict));
	else
		snprintf(text, ROUTE_VERDICT, "%s, doorbells %s",
			 nvmepeer_verdict_name(path->data.verdict),
			 nvmepeer_verdict_name(path->doorbell.verdict));
	return text;
}

const char *route_reason(const struct route *route)
{
	if (!is_unknown(route))
		return nvmepeer_reason_name(route->path.data.reason);
	if (route->acs_hidden)
		return "ACS bits cannot be read";
	return route->path.data.blocker_count ? "ports redirect to the host bridge" : "no common switch";
}

/* ---- Fixes --------------------------------------------------------------- */

/**
 * struct fixes - receiver of the lines for one route
 * @show: called with each line
 * @context: argument of @show
 */
struct fixes {
	void (*show)(const char *line, void *context);
	void *context;
};

static void fix_port(const struct fixes *fixes, const struct nvme_peer_route_blocker *blocker)
{
	char line[ROUTE_FIX], port[NVMEPEER_PCI_TEXT];

	snprintf(line, sizeof(line), "setpci -s %s ECAP_ACS+6.w=0:%x",
		 nvmepeer_pci_format(blocker->address, port), blocker->acs & ACS_REDIRECT);
	fixes->show(line, fixes->context);
}

/*
 * The kernel sets ACS Translation Blocking where it does not trust devices: it is not to be cleared, but
 * without ATS there is nothing that it discards.
 */
static void fix_translation(const struct fixes *fixes, const struct nvme_peer_path *path)
{
	char line[ROUTE_FIX], port[NVMEPEER_PCI_TEXT];
	uint32_t i;

	for (i = 0; i < path->blocker_count && i < NVME_PEER_ROUTE_BLOCKERS; i++) {
		if (!(path->blockers[i].acs & PCI_ACS_TB))
			continue;
		snprintf(line, sizeof(line), "kernel command line: pci=noats    (%s discards what devices have translated)",
			 nvmepeer_pci_format(path->blockers[i].address, port));
		fixes->show(line, fixes->context);
		return;
	}
}

/* Ports that redirect: a command for each, and one kernel parameter for all. */
static void fix_ports(const struct fixes *fixes, const struct nvme_peer_path *path)
{
	char line[ROUTE_FIX] = "kernel command line: pci=disable_acs_redir=", port[NVMEPEER_PCI_TEXT];
	uint32_t i, ports = 0;
	size_t length;

	for (i = 0; i < path->blocker_count && i < NVME_PEER_ROUTE_BLOCKERS; i++) {
		if (!(path->blockers[i].acs & ACS_REDIRECT))
			continue;
		fix_port(fixes, &path->blockers[i]);
		length = strlen(line);
		snprintf(line + length, sizeof(line) - length, "%s%s", ports++ ? ";" : "",
			 nvmepeer_pci_format(path->blockers[i].address, port));
	}
	if (!ports)
		return;
	length = strlen(line);
	snprintf(line + length, sizeof(line) - length, "    (instead, at each boot)");
	fixes->show(line, fixes->context);
}

static void fix_host_bridge(const struct fixes *fixes)
{
	fixes->show("put both below one switch; or, if the host bridge forwards between root ports:",
		    fixes->context);
	fixes->show("echo 1 > /sys/module/nvme_peer/parameters/allow_host_bridge", fixes->context);
	fixes->show("echo options nvme_peer allow_host_bridge=1 > /etc/modprobe.d/nvme-peer.conf    (instead, at each boot)",
		    fixes->context);
}

static void fix_unknown(const struct fixes *fixes, const struct route *route)
{
	char line[ROUTE_FIX];

	if (!strcmp(route->controller->driver, "nvme-peer")) {
		fixes->show("run as root: no permission for the node of the controller", fixes->context);
		return;
	}
	if (route->acs_hidden)
		fixes->show("run as root: only root may read ACS bits", fixes->context);
	snprintf(line, sizeof(line), "nvme-peer bind %s    (the module has a list of host bridges)",
		 route->controller->address);
	fixes->show(line, fixes->context);
}

void route_fixes(const struct route *route, void (*show)(const char *line, void *context),
		 void *context)
{
	const struct fixes fixes = { .show = show, .context = context };
	uint32_t reason = route->path.data.reason;

	if (route->path.data.verdict == NVME_PEER_ROUTE_BUS_ADDR)
		return;
	fix_translation(&fixes, &route->path.data);
	fix_ports(&fixes, &route->path.data);
	if (reason == NVME_PEER_REASON_HOST_BRIDGE_UNKNOWN ||
	    reason == NVME_PEER_REASON_DIFFERENT_DOMAINS)
		fix_host_bridge(&fixes);
	if (is_unknown(route))
		fix_unknown(&fixes, route);
}
