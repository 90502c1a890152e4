// SPDX-License-Identifier: MIT OR GPL-2.0
/*
 * Ways between functions; see way.h.
 *
 * Which host bridges forward between their root ports is the module's to know.
 * Without its answer a way that does not turn around inside a switch remains a
 * question.
 */
#include <linux/pci_regs.h>
#include <stdio.h>
#include <string.h>

#include "node.h"
#include "way.h"

/* As the module: request redirect, completion redirect, egress control. */
enum { ACS_REDIRECT = PCI_ACS_RR | PCI_ACS_CR | PCI_ACS_EC };

/* ---- What sysfs tells ---------------------------------------------------- */

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

static void block(struct way *way, const struct pci_function *port, uint16_t acs)
{
	struct nvme_peer_path *path = &way->route.data;
	struct nvme_peer_route_blocker *blocker;

	if (path->blocker_count < NVME_PEER_ROUTE_BLOCKERS) {
		blocker = &path->blockers[path->blocker_count];
		nvmepeer_pci_parse(port->address, &blocker->address);
		blocker->acs = acs;
	}
	path->blocker_count++;
}

/* Ports from @function up to, but without, @common. */
static void find_redirects(struct way *way, const struct pci_function *function,
			   const struct pci_function *common)
{
	for (; function && function != common; function = function->upstream) {
		way->blind |= !function->sees_acs;
		if (function->acs & ACS_REDIRECT)
			block(way, function, function->acs & ACS_REDIRECT);
	}
}

static void judge(struct way *way)
{
	const struct pci_function *common = common_upstream(way->controller, way->peer);
	struct nvme_peer_path *path = &way->route.data;

	path->reason = NVME_PEER_REASON_SAME_FUNCTION;
	if (way->controller == way->peer)
		return;
	path->reason = NVME_PEER_REASON_NONE;
	if (common) {
		find_redirects(way, way->controller, common);
		find_redirects(way, way->peer, common);
		if (!path->blocker_count && !way->blind) {
			path->verdict = NVME_PEER_ROUTE_BUS_ADDR;
			path->reason = NVME_PEER_REASON_COMMON_SWITCH;
		}
	}
	way->route.doorbell = *path;
}

/* ---- Both sources -------------------------------------------------------- */

static bool ask_module(struct way *way)
{
	struct nvme_peer_pci_address address;
	struct nvmepeer *ctrl;

	if (strcmp(way->controller->driver, "nvme-peer") != 0 ||
	    nvmepeer_pci_parse(way->peer->address, &address) ||
	    node_ctrl_open(way->controller->node, &ctrl))
		return false;
	way->asked = !nvmepeer_route_pci(ctrl, address, &way->route, sizeof(way->route));
	nvmepeer_close(ctrl);
	return way->asked;
}

void way_find(struct way *way, const struct pci_function *peer,
	      const struct pci_function *controller)
{
	*way = (struct way){ .peer = peer, .controller = controller };
	if (!ask_module(way))
		judge(way);
}

bool way_is_open(const struct way *way)
{
	return way->route.data.verdict != NVME_PEER_ROUTE_NONE;
}

/* Nobody was asked and no switch joins them. */
static bool is_question(const struct way *way)
{
	return !way->asked && way->route.data.reason == NVME_PEER_REASON_NONE;
}

const char *way_verdict(const struct way *way, char text[WAY_VERDICT])
{
	const struct nvme_peer_route *route = &way->route;

	if (is_question(way))
		snprintf(text, WAY_VERDICT, "host-bridge?");
	else if (route->data.verdict == route->doorbell.verdict)
		snprintf(text, WAY_VERDICT, "%s", nvmepeer_verdict_name(route->data.verdict));
	else
		snprintf(text, WAY_VERDICT, "%s, doorbells %s",
			 nvmepeer_verdict_name(route->data.verdict),
			 nvmepeer_verdict_name(route->doorbell.verdict));
	return text;
}

const char *way_reason(const struct way *way)
{
	if (!is_question(way))
		return nvmepeer_reason_name(way->route.data.reason);
	if (way->blind)
		return "ACS bits cannot be read";
	return way->route.data.blocker_count ? "ports redirect to the host bridge" : "no common switch";
}

/* ---- Cures --------------------------------------------------------------- */

/**
 * struct cures - lines being made for one way
 * @say: gets each
 * @where: for @say
 */
struct cures {
	void (*say)(const char *line, void *where);
	void *where;
};

static void cure_port(const struct cures *cures, const struct nvme_peer_route_blocker *blocker)
{
	char line[WAY_CURE], port[NVMEPEER_PCI_TEXT];

	snprintf(line, sizeof(line), "setpci -s %s ECAP_ACS+6.w=0:%x",
		 nvmepeer_pci_format(blocker->address, port), blocker->acs);
	cures->say(line, cures->where);
}

/* Ports that redirect: one line each for now, one for each boot. */
static void cure_ports(const struct cures *cures, const struct nvme_peer_path *path)
{
	char line[WAY_CURE] = "kernel command line: pci=disable_acs_redir=", port[NVMEPEER_PCI_TEXT];
	uint32_t i, ports = 0;
	size_t length;

	for (i = 0; i < path->blocker_count && i < NVME_PEER_ROUTE_BLOCKERS; i++) {
		if (!path->blockers[i].acs)
			continue;
		cure_port(cures, &path->blockers[i]);
		length = strlen(line);
		snprintf(line + length, sizeof(line) - length, "%s%s", ports++ ? ";" : "",
			 nvmepeer_pci_format(path->blockers[i].address, port));
	}
	if (!ports)
		return;
	length = strlen(line);
	snprintf(line + length, sizeof(line) - length, "    (instead, at each boot)");
	cures->say(line, cures->where);
}

static void cure_host_bridge(const struct cures *cures)
{
	cures->say("put both below one switch; or, where the host bridge is known to forward between root ports:",
		   cures->where);
	cures->say("echo 1 > /sys/module/nvme_peer/parameters/allow_host_bridge", cures->where);
	cures->say("echo options nvme_peer allow_host_bridge=1 > /etc/modprobe.d/nvme-peer.conf    (instead, at each boot)",
		   cures->where);
}

static void cure_question(const struct cures *cures, const struct way *way)
{
	char line[WAY_CURE];

	if (!strcmp(way->controller->driver, "nvme-peer")) {
		cures->say("run as root: the controller's node could not be asked", cures->where);
		return;
	}
	if (way->blind)
		cures->say("run as root: ACS bits are not shown to others", cures->where);
	snprintf(line, sizeof(line), "nvme-peer bind %s    (the module knows host bridges)",
		 way->controller->address);
	cures->say(line, cures->where);
}

void way_cures(const struct way *way, void (*say)(const char *line, void *where), void *where)
{
	const struct cures cures = { .say = say, .where = where };
	uint32_t reason = way->route.data.reason;

	if (way->route.data.verdict == NVME_PEER_ROUTE_BUS_ADDR)
		return;
	cure_ports(&cures, &way->route.data);
	if (reason == NVME_PEER_REASON_HOST_BRIDGE_UNKNOWN ||
	    reason == NVME_PEER_REASON_DIFFERENT_DOMAINS)
		cure_host_bridge(&cures);
	if (is_question(way))
		cure_question(&cures, way);
}
