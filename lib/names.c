// SPDX-License-Identifier: MIT OR GPL-2.0
/*
 * Names of the numbers of the ABI, of NVMe statuses and of PCI addresses, and the
 * description of a route.
 */
#include <assert.h>
#include <ctype.h>
#include <linux/pci_regs.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "internal.h"
#include "nvme.h"

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
	[NVME_PEER_MODE_RELAY] = "relay",
	[NVME_PEER_MODE_MEDIATED] = "mediated",
};

static const char *const domains[] = {
	[NVME_PEER_DOMAIN_PHYSICAL] = "physical",
	[NVME_PEER_DOMAIN_STRICT] = "translated",
	[NVME_PEER_DOMAIN_LAZY] = "translated-lazily",
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
	[NVME_PEER_REASON_ACS_BLOCKED] = "acs-blocked",
};

static_assert(ARRAY_SIZE(reasons) == NVME_PEER_REASON_ACS_BLOCKED + 1,
	      "each reason has a name");

static const char *const exports[] = {
	[NVME_PEER_EXPORT_SQ] = "submission ring",
	[NVME_PEER_EXPORT_CQ] = "completion ring",
	[NVME_PEER_EXPORT_DOORBELL] = "doorbell page",
	[NVME_PEER_EXPORT_STATUS] = "status page",
	[NVME_PEER_EXPORT_CONTROL] = "control page",
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

/* Without a default, so that the compiler reports a status that is missing here. */
static const char *known_status_text(enum nvme_status status)
{
	switch (status) {
	case NVME_SC_SUCCESS:
		return "success";
	case NVME_SC_INVALID_OPCODE:
		return "invalid command opcode";
	case NVME_SC_INVALID_FIELD:
		return "invalid field in command";
	case NVME_SC_DATA_TRANSFER:
		return "data transfer error";
	case NVME_SC_POWER_LOSS:
		return "aborted: power loss";
	case NVME_SC_INTERNAL:
		return "internal error";
	case NVME_SC_ABORTED:
		return "aborted: abort requested";
	case NVME_SC_SQ_DELETED:
		return "aborted: submission queue deleted";
	case NVME_SC_INVALID_NAMESPACE:
		return "invalid namespace or format";
	case NVME_SC_SEQUENCE:
		return "command sequence error";
	case NVME_SC_SGL_LENGTH:
		return "data SGL length invalid";
	case NVME_SC_SGL_TYPE:
		return "SGL descriptor type invalid";
	case NVME_SC_PRP_OFFSET:
		return "invalid PRP offset";
	case NVME_SC_HOST_IDENTIFIER:
		return "host identifier inconsistent format";
	case NVME_SC_INTERRUPTED:
		return "command interrupted";
	case NVME_SC_LBA_RANGE:
		return "LBA out of range";
	case NVME_SC_CAPACITY:
		return "capacity exceeded";
	case NVME_SC_NOT_READY:
		return "namespace not ready";
	case NVME_SC_RESERVATION:
		return "reservation conflict";
	case NVME_SC_FORMAT_IN_PROGRESS:
		return "format in progress";
	case NVME_SC_CQ_INVALID:
		return "completion queue invalid";
	case NVME_SC_QID_INVALID:
		return "invalid queue identifier";
	case NVME_SC_QUEUE_SIZE:
		return "invalid queue size";
	case NVME_SC_EVENT_LIMIT:
		return "asynchronous event request limit exceeded";
	case NVME_SC_VECTOR:
		return "invalid interrupt vector";
	case NVME_SC_INVALID_FORMAT:
		return "invalid format";
	case NVME_SC_QUEUE_DELETION:
		return "invalid queue deletion";
	case NVME_SC_NS_CAPACITY:
		return "namespace insufficient capacity";
	case NVME_SC_NS_IDENTIFIER:
		return "namespace identifier unavailable";
	case NVME_SC_NS_ATTACHED:
		return "namespace already attached";
	case NVME_SC_NS_NOT_ATTACHED:
		return "namespace not attached";
	case NVME_SC_CONTROLLER_LIST:
		return "controller list invalid";
	case NVME_SC_ATTRIBUTES:
		return "conflicting attributes";
	case NVME_SC_PROTECTION:
		return "invalid protection information";
	case NVME_SC_READ_ONLY:
		return "attempted write to read only range";
	case NVME_SC_COMMAND_SIZE:
		return "command size limit exceeded";
	case NVME_SC_WRITE_FAULT:
		return "write fault";
	case NVME_SC_READ_ERROR:
		return "unrecovered read error";
	case NVME_SC_GUARD_CHECK:
		return "end-to-end guard check error";
	case NVME_SC_APPTAG_CHECK:
		return "end-to-end application tag check error";
	case NVME_SC_REFTAG_CHECK:
		return "end-to-end reference tag check error";
	case NVME_SC_COMPARE_FAILED:
		return "compare failure";
	case NVME_SC_ACCESS_DENIED:
		return "access denied";
	case NVME_SC_UNWRITTEN:
		return "deallocated or unwritten logical block";
	case NVME_SC_HOST_PATH:
		return "host path error";
	}
	return NULL;
}

const char *nvmepeer_status_text(int status)
{
	static _Thread_local char unknown[32];
	const char *text = known_status_text((enum nvme_status)(status & NVME_STATUS_MASK));

	if (text)
		return text;
	snprintf(unknown, sizeof(unknown), "status 0x%x", (unsigned int)status);
	return unknown;
}

/* Parses at most @digits hexadecimal digits and @end. Returns the rest, or NULL. */
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

/* Text that is built in a buffer, truncated if the buffer is too small. */
struct text_buffer {
	char *text;
	size_t size;
	int length;
};

__attribute__((format(printf, 2, 3)))
static void append(struct text_buffer *text_buffer, const char *format, ...)
{
	size_t used = (size_t)text_buffer->length;
	va_list arguments;

	va_start(arguments, format);
	text_buffer->length += used < text_buffer->size ?
		vsnprintf(text_buffer->text + used, text_buffer->size - used, format, arguments) :
		vsnprintf(NULL, 0, format, arguments);
	va_end(arguments);
}

static void append_reason(struct text_buffer *text_buffer, uint32_t reason, const char *peer)
{
	switch (reason) {
	case NVME_PEER_REASON_NONE:
		append(text_buffer, "the other device is unknown");
		break;
	case NVME_PEER_REASON_COMMON_SWITCH:
		append(text_buffer, "the controller and %s are below one PCIe switch, and no ACS bit redirects requests between them",
		       peer);
		break;
	case NVME_PEER_REASON_HOST_BRIDGE_KNOWN:
		append(text_buffer, "the route between the controller and %s passes a host bridge that is known to forward between its root ports",
		       peer);
		break;
	case NVME_PEER_REASON_HOST_BRIDGE_ALLOWED:
		append(text_buffer, "the route between the controller and %s passes a host bridge that the administrator allows (allow_host_bridge)",
		       peer);
		break;
	case NVME_PEER_REASON_HOST_BRIDGE_UNKNOWN:
		append(text_buffer, "the route between the controller and %s passes a host bridge that is not known to forward between its root ports",
		       peer);
		break;
	case NVME_PEER_REASON_DIFFERENT_DOMAINS:
		append(text_buffer, "%s is in a PCI domain other than the controller's, and their host bridges are not known to forward to each other",
		       peer);
		break;
	case NVME_PEER_REASON_SAME_FUNCTION:
		append(text_buffer, "%s is the controller itself", peer);
		break;
	case NVME_PEER_REASON_HOST_MEMORY:
		append(text_buffer, "the memory is host RAM");
		break;
	case NVME_PEER_REASON_UNKNOWN_MEMORY:
		append(text_buffer, "the memory belongs to no PCI device and is not host RAM");
		break;
	case NVME_PEER_REASON_EXPORTER_REFUSED:
		append(text_buffer, "the exporter refuses the memory to the controller without a reason");
		break;
	case NVME_PEER_REASON_ACS_BLOCKED:
		append(text_buffer, "a port between the controller and %s discards the requests",
		       peer);
		break;
	default:
		append(text_buffer, "reason %u, unknown to this library", reason);
	}
}

static void append_blocker(struct text_buffer *text_buffer,
			   const struct nvme_peer_route_blocker *blocker)
{
	char address[NVMEPEER_PCI_TEXT];

	append(text_buffer, "%s", nvmepeer_pci_format(blocker->address, address));
	if (blocker->acs)
		append(text_buffer, " (ACS%s%s%s%s)", blocker->acs & PCI_ACS_TB ? " TranslationBlocking" : "",
		       blocker->acs & PCI_ACS_RR ? " RequestRedirect" : "",
		       blocker->acs & PCI_ACS_CR ? " CompletionRedirect" : "",
		       blocker->acs & PCI_ACS_EC ? " EgressControl" : "");
}

static void append_blockers(struct text_buffer *text_buffer, const struct nvme_peer_path *path)
{
	uint32_t i;

	for (i = 0; i < path->blocker_count && i < NVME_PEER_ROUTE_BLOCKERS; i++) {
		append(text_buffer, i ? ", " : "; blocked by ");
		append_blocker(text_buffer, &path->blockers[i]);
	}
	if (path->blocker_count > i)
		append(text_buffer, " and %u more", path->blocker_count - i);
}

int nvmepeer_route_describe(const struct nvme_peer_route *route,
			    const struct nvme_peer_path *path, char *text, size_t length)
{
	struct text_buffer buffer = { .text = text, .size = length };
	char peer[NVMEPEER_PCI_TEXT];

	if (length)
		text[0] = '\0';
	append_reason(&buffer, path->reason, nvmepeer_pci_format(route->pci_address, peer));
	if (path->verdict == NVME_PEER_ROUTE_HOST_BRIDGE_WRITES)
		append(&buffer, ", for writes but not for reads");
	append_blockers(&buffer, path);
	return buffer.length;
}
