// SPDX-License-Identifier: MIT OR GPL-2.0
/*
 * Names of the ABI's numbers, PCI addresses, NVMe statuses, and a route in one
 * sentence.
 */
#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "internal.h"

/* ACS control bits that send a request upstream (PCIe base 6.0, 7.7.8.3). */
enum {
	ACS_REQUEST_REDIRECT = 0x04,
	ACS_COMPLETION_REDIRECT = 0x08,
	ACS_EGRESS_CONTROL = 0x20,
};

#define ARRAY_SIZE(array) (sizeof(array) / sizeof((array)[0]))
#define NAME(table, index) \
	((size_t)(index) < ARRAY_SIZE(table) && (table)[index] ? (table)[index] : "unknown")

static const char *const ctrl_states[] = {
	[NVME_PEER_CTRL_NEW] = "new",
	[NVME_PEER_CTRL_LIVE] = "live",
	[NVME_PEER_CTRL_RESETTING] = "resetting",
	[NVME_PEER_CTRL_DELETING] = "deleting",
	[NVME_PEER_CTRL_DEAD] = "dead",
};

static const char *const qp_states[] = {
	[NVME_PEER_QP_LIVE] = "live",
	[NVME_PEER_QP_QUIESCED] = "quiesced",
	[NVME_PEER_QP_FAILED] = "failed",
	[NVME_PEER_QP_GONE] = "gone",
};

static const char *const modes[] = {
	[NVME_PEER_MODE_DIRECT] = "direct",
};

static const char *const domains[] = {
	[NVME_PEER_DOMAIN_PHYSICAL] = "physical",
	[NVME_PEER_DOMAIN_TRANSLATED] = "translated",
};

static const char *const verdicts[] = {
	[NVME_PEER_ROUTE_NONE] = "none",
	[NVME_PEER_ROUTE_BUS_ADDR] = "bus-address",
	[NVME_PEER_ROUTE_HOST_BRIDGE] = "host-bridge",
	[NVME_PEER_ROUTE_SYSTEM] = "host-memory",
};

static const char *const reasons[] = {
	[NVME_PEER_REASON_COMMON_SWITCH] = "common-switch",
	[NVME_PEER_REASON_ACS_REDIRECT] = "acs-redirect",
	[NVME_PEER_REASON_HOST_BRIDGE_KNOWN] = "host-bridge-known",
	[NVME_PEER_REASON_HOST_BRIDGE_ALLOWED] = "host-bridge-allowed",
	[NVME_PEER_REASON_HOST_BRIDGE_UNKNOWN] = "host-bridge-unknown",
	[NVME_PEER_REASON_DIFFERENT_DOMAINS] = "different-domains",
	[NVME_PEER_REASON_SAME_FUNCTION] = "same-function",
	[NVME_PEER_REASON_HOST_MEMORY] = "host-memory",
	[NVME_PEER_REASON_UNKNOWN_MEMORY] = "unknown-memory",
};

static const char *const exports[] = {
	[NVME_PEER_EXPORT_SQ] = "submission ring",
	[NVME_PEER_EXPORT_CQ] = "completion ring",
	[NVME_PEER_EXPORT_DOORBELL] = "doorbell page",
	[NVME_PEER_EXPORT_STATUS] = "status page",
	[NVME_PEER_EXPORT_REQUEST] = "request page",
};

const char *nvmepeer_state_name(enum nvme_peer_ctrl_state state)
{
	return NAME(ctrl_states, state);
}

const char *nvmepeer_qp_state_name(enum nvme_peer_qp_state state)
{
	return NAME(qp_states, state);
}

const char *nvmepeer_mode_name(enum nvme_peer_mode mode)
{
	return NAME(modes, mode);
}

const char *nvmepeer_domain_name(enum nvme_peer_domain domain)
{
	return NAME(domains, domain);
}

const char *nvmepeer_verdict_name(enum nvme_peer_route_verdict verdict)
{
	return NAME(verdicts, verdict);
}

const char *nvmepeer_reason_name(enum nvme_peer_route_reason reason)
{
	return NAME(reasons, reason);
}

const char *nvmepeer_export_name(enum nvme_peer_export what)
{
	return NAME(exports, what);
}

/* Status code type and status code: base specification 2.0, 3.3.3.2.1. */
static const struct {
	int status;
	const char *text;
} statuses[] = {
	{ 0x000, "success" },
	{ 0x001, "invalid command opcode" },
	{ 0x002, "invalid field in command" },
	{ 0x004, "data transfer error" },
	{ 0x005, "aborted: power loss" },
	{ 0x006, "internal error" },
	{ 0x007, "aborted: abort requested" },
	{ 0x008, "aborted: submission queue deleted" },
	{ 0x00b, "invalid namespace or format" },
	{ 0x00c, "command sequence error" },
	{ 0x013, "invalid PRP offset" },
	{ 0x080, "LBA out of range" },
	{ 0x081, "capacity exceeded" },
	{ 0x082, "namespace not ready" },
	{ 0x100, "completion queue invalid" },
	{ 0x101, "invalid queue identifier" },
	{ 0x102, "invalid queue size" },
	{ 0x10c, "invalid queue deletion" },
	{ 0x182, "attempted write to read only range" },
	{ 0x280, "write fault" },
	{ 0x281, "unrecovered read error" },
	{ 0x282, "end-to-end guard check error" },
	{ 0x285, "compare failure" },
	{ 0x286, "access denied" },
};

const char *nvmepeer_status_text(int status)
{
	static _Thread_local char unknown[32];
	size_t i;

	for (i = 0; i < ARRAY_SIZE(statuses); i++)
		if (statuses[i].status == (status & 0x7ff))
			return statuses[i].text;
	snprintf(unknown, sizeof(unknown), "status 0x%x", (unsigned int)status);
	return unknown;
}

/* Hexadecimal number of at most @digits digits, then @end; NULL if it is not. */
static const char *parse_part(const char *text, int digits, char end,
			      uint32_t *value)
{
	int used = 0;

	*value = 0;
	while (used < digits && isxdigit((unsigned char)*text)) {
		const char digit[2] = { *text++, 0 };

		*value = *value << 4 | (uint32_t)strtoul(digit, NULL, 16);
		used++;
	}
	return used && *text == end ? text + 1 : NULL;
}

int nvmepeer_pci_parse(const char *text, uint32_t *pci_address)
{
	uint32_t domain = 0, bus, device, function;
	const char *first = strchr(text, ':');

	if (first && strchr(first + 1, ':'))
		text = parse_part(text, 4, ':', &domain);
	if (text)
		text = parse_part(text, 2, ':', &bus);
	if (text)
		text = parse_part(text, 2, '.', &device);
	if (text)
		text = parse_part(text, 1, '\0', &function);
	if (!text || device > 31 || function > 7)
		return -EINVAL;
	*pci_address = domain << 16 | bus << 8 | device << 3 | function;
	return 0;
}

const char *nvmepeer_pci_format(uint32_t pci_address, char text[16])
{
	if (pci_address == NVMEPEER_NO_PCI_ADDRESS)
		snprintf(text, 16, "none");
	else
		snprintf(text, 16, "%04x:%02x:%02x.%x", pci_address >> 16,
			 pci_address >> 8 & 0xff, pci_address >> 3 & 0x1f,
			 pci_address & 7);
	return text;
}

static const char *acs_bits(uint32_t acs, char text[64])
{
	snprintf(text, 64, "%s%s%s",
		 acs & ACS_REQUEST_REDIRECT ? " RequestRedirect" : "",
		 acs & ACS_COMPLETION_REDIRECT ? " CompletionRedirect" : "",
		 acs & ACS_EGRESS_CONTROL ? " EgressControl" : "");
	return text[0] ? text + 1 : "none";
}

int nvmepeer_route_describe(const struct nvme_peer_route *route, char *text,
			    size_t length)
{
	char peer[16], bridge[16], bits[64];

	nvmepeer_pci_format(route->pci_address, peer);
	nvmepeer_pci_format(route->blocker, bridge);
	switch (route->reason) {
	case NVME_PEER_REASON_COMMON_SWITCH:
		return snprintf(text, length,
				"one PCIe switch joins the controller and %s; nothing redirects requests between them",
				peer);
	case NVME_PEER_REASON_ACS_REDIRECT:
		return snprintf(text, length,
				"one PCIe switch joins the controller and %s, but bridge %s sends requests up to the root complex (ACS: %s)",
				peer, bridge, acs_bits(route->blocker_acs, bits));
	case NVME_PEER_REASON_HOST_BRIDGE_KNOWN:
		return snprintf(text, length,
				"the way to %s leads through a host bridge that is known to forward between its root ports",
				peer);
	case NVME_PEER_REASON_HOST_BRIDGE_ALLOWED:
		return snprintf(text, length,
				"the way to %s leads through a host bridge that the administrator vouches for (allow_host_bridge)",
				peer);
	case NVME_PEER_REASON_HOST_BRIDGE_UNKNOWN:
		return snprintf(text, length,
				"the way to %s leads through host bridge %s, of which nobody knows that it forwards between its root ports",
				peer, bridge);
	case NVME_PEER_REASON_DIFFERENT_DOMAINS:
		return snprintf(text, length,
				"%s is in another PCI domain than the controller",
				peer);
	case NVME_PEER_REASON_SAME_FUNCTION:
		return snprintf(text, length, "%s is the controller itself", peer);
	case NVME_PEER_REASON_HOST_MEMORY:
		return snprintf(text, length, "the memory is host RAM");
	case NVME_PEER_REASON_UNKNOWN_MEMORY:
		return snprintf(text, length,
				"the memory belongs to no PCI device and is not host RAM");
	default:
		return snprintf(text, length,
				"reason %u, which this library does not know",
				route->reason);
	}
}
