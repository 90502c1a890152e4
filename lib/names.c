// SPDX-License-Identifier: MIT OR GPL-2.0
/*
 * Names of the ABI's numbers, PCI addresses, NVMe statuses, and a route in one
 * sentence.
 */
#include <assert.h>
#include <ctype.h>
#include <linux/pci_regs.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "internal.h"

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
	[NVME_PEER_ROUTE_HOST_BRIDGE_WRITES] = "host-bridge-writes-only",
};

static_assert(ARRAY_SIZE(verdicts) == NVME_PEER_ROUTE_HOST_BRIDGE_WRITES + 1,
	      "each verdict has a name");

static const char *const reasons[] = {
	[NVME_PEER_REASON_NONE] = "none",
	[NVME_PEER_REASON_COMMON_SWITCH] = "common-switch",
	[NVME_PEER_REASON_HOST_BRIDGE_KNOWN] = "host-bridge-known",
	[NVME_PEER_REASON_HOST_BRIDGE_ALLOWED] = "host-bridge-allowed",
	[NVME_PEER_REASON_HOST_BRIDGE_UNKNOWN] = "host-bridge-unknown",
	[NVME_PEER_REASON_DIFFERENT_DOMAINS] = "different-domains",
	[NVME_PEER_REASON_SAME_FUNCTION] = "same-function",
	[NVME_PEER_REASON_HOST_MEMORY] = "host-memory",
	[NVME_PEER_REASON_UNKNOWN_MEMORY] = "unknown-memory",
	[NVME_PEER_REASON_EXPORTER_REFUSED] = "exporter-refused",
};

static_assert(ARRAY_SIZE(reasons) == NVME_PEER_REASON_EXPORTER_REFUSED + 1,
	      "each reason has a name");

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

int nvmepeer_pci_parse(const char *text, struct nvme_peer_pci_address *pci_address)
{
	uint32_t domain = 0, bus, device, function;
	const char *first = strchr(text, ':');

	if (first && strchr(first + 1, ':'))
		text = parse_part(text, 8, ':', &domain);
	if (text)
		text = parse_part(text, 2, ':', &bus);
	if (text)
		text = parse_part(text, 2, '.', &device);
	if (text)
		text = parse_part(text, 1, '\0', &function);
	if (!text || device > 31 || function > 7)
		return -EINVAL;
	pci_address->domain = domain;
	pci_address->function = (uint16_t)(bus << 8 | device << 3 | function);
	pci_address->valid = 1;
	return 0;
}

const char *nvmepeer_pci_format(struct nvme_peer_pci_address pci_address,
				char text[NVMEPEER_PCI_TEXT])
{
	if (!pci_address.valid)
		snprintf(text, NVMEPEER_PCI_TEXT, "none");
	else
		snprintf(text, NVMEPEER_PCI_TEXT, "%04x:%02x:%02x.%x", pci_address.domain,
			 pci_address.function >> 8, pci_address.function >> 3 & 0x1fu,
			 pci_address.function & 7u);
	return text;
}

/* Text that is put together, in room that may be too small for it. */
struct sentence {
	char *text;
	size_t room;
	int length;
};

__attribute__((format(printf, 2, 3)))
static void say(struct sentence *sentence, const char *format, ...)
{
	size_t used = (size_t)sentence->length;
	va_list arguments;

	va_start(arguments, format);
	sentence->length += used < sentence->room ?
		vsnprintf(sentence->text + used, sentence->room - used, format, arguments) :
		vsnprintf(NULL, 0, format, arguments);
	va_end(arguments);
}

static void say_reason(struct sentence *sentence, uint32_t reason, const char *peer)
{
	switch (reason) {
	case NVME_PEER_REASON_NONE:
		say(sentence, "no device is known at the other end");
		break;
	case NVME_PEER_REASON_COMMON_SWITCH:
		say(sentence, "one PCIe switch joins the controller and %s; nothing redirects requests between them",
		    peer);
		break;
	case NVME_PEER_REASON_HOST_BRIDGE_KNOWN:
		say(sentence, "the way between the controller and %s leads through a host bridge that is known to forward between its root ports",
		    peer);
		break;
	case NVME_PEER_REASON_HOST_BRIDGE_ALLOWED:
		say(sentence, "the way between the controller and %s leads through a host bridge that the administrator vouches for (allow_host_bridge)",
		    peer);
		break;
	case NVME_PEER_REASON_HOST_BRIDGE_UNKNOWN:
		say(sentence, "the way between the controller and %s leads through a host bridge of which nobody knows that it forwards between its root ports",
		    peer);
		break;
	case NVME_PEER_REASON_DIFFERENT_DOMAINS:
		say(sentence, "%s is in another PCI domain than the controller, and nobody knows that their host bridges forward to each other",
		    peer);
		break;
	case NVME_PEER_REASON_SAME_FUNCTION:
		say(sentence, "%s is the controller itself", peer);
		break;
	case NVME_PEER_REASON_HOST_MEMORY:
		say(sentence, "the memory is host RAM");
		break;
	case NVME_PEER_REASON_UNKNOWN_MEMORY:
		say(sentence, "the memory belongs to no PCI device and is not host RAM");
		break;
	case NVME_PEER_REASON_EXPORTER_REFUSED:
		say(sentence, "the exporter does not let the controller have the memory, and does not say why");
		break;
	default:
		say(sentence, "reason %u, which this library does not know", reason);
	}
}

static void say_blocker(struct sentence *sentence, const struct nvme_peer_route_blocker *blocker)
{
	char address[NVMEPEER_PCI_TEXT];

	say(sentence, "%s", nvmepeer_pci_format(blocker->address, address));
	if (blocker->acs)
		say(sentence, " (ACS%s%s%s)", blocker->acs & PCI_ACS_RR ? " RequestRedirect" : "",
		    blocker->acs & PCI_ACS_CR ? " CompletionRedirect" : "",
		    blocker->acs & PCI_ACS_EC ? " EgressControl" : "");
}

static void say_blockers(struct sentence *sentence, const struct nvme_peer_path *path)
{
	uint32_t i;

	for (i = 0; i < path->blocker_count && i < NVME_PEER_ROUTE_BLOCKERS; i++) {
		say(sentence, i ? ", " : "; in the way: ");
		say_blocker(sentence, &path->blockers[i]);
	}
	if (path->blocker_count > i)
		say(sentence, " and %u more", path->blocker_count - i);
}

int nvmepeer_route_describe(const struct nvme_peer_route *route,
			    const struct nvme_peer_path *path, char *text, size_t length)
{
	struct sentence sentence = { .text = text, .room = length };
	char peer[NVMEPEER_PCI_TEXT];

	if (length)
		text[0] = '\0';
	say_reason(&sentence, path->reason, nvmepeer_pci_format(route->pci_address, peer));
	if (path->verdict == NVME_PEER_ROUTE_HOST_BRIDGE_WRITES)
		say(&sentence, ", for writes but not for reads");
	say_blockers(&sentence, path);
	return sentence.length;
}
