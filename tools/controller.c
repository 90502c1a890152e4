// SPDX-License-Identifier: MIT OR GPL-2.0
/*
 * nvme-peer info, route, import-check: queries of a controller.
 */
#include <nvmepeer.h>

#include "arguments.h"
#include "nvme-peer.h"

static int refused(struct report *report)
{
	report_failure(report);
	return EXIT_REFUSED;
}

/* ---- info --------------------------------------------------------------- */

static const struct {
	uint64_t bit;
	const char *name;
} features[] = {
	{ NVME_PEER_FEATURE_DIRECT, "direct mode" },
	{ NVME_PEER_FEATURE_BUF_RINGS, "rings in imported buffers" },
	{ NVME_PEER_FEATURE_BUF_IO, "I/O of the CPU with imported buffers" },
	{ NVME_PEER_FEATURE_BUF_IO_VEC, "I/O of the CPU with lists of ranges" },
	{ NVME_PEER_FEATURE_BUF_ALLOC, "allocation of host memory" },
	{ NVME_PEER_FEATURE_RELAY, "relay mode" },
	{ NVME_PEER_FEATURE_KICK, "kick of the poller" },
	{ NVME_PEER_FEATURE_MEDIATED, "mediated mode" },
	{ NVME_PEER_FEATURE_WINDOW, "windows" },
};

static void report_features(struct report *report, uint64_t set)
{
	size_t i;

	report_list(report, "features");
	for (i = 0; i < sizeof(features) / sizeof(features[0]); i++)
		if (set & features[i].bit)
			report_text(report, NULL, features[i].name);
	report_list_end(report);
}

static void report_version(struct report *report, uint32_t version)
{
	char text[32];

	snprintf(text, sizeof(text), "%u.%u.%u", version >> 16,
		 version >> 8 & 0xff, version & 0xff);
	report_text(report, "nvme_version", text);
}

static void report_pci(struct report *report, const char *name,
		       struct nvme_peer_pci_address address)
{
	char text[NVMEPEER_PCI_TEXT];

	report_text(report, name, nvmepeer_pci_format(address, text));
}

static void report_controller(struct report *report, const struct nvme_peer_info *info)
{
	report_pci(report, "pci_address", info->pci_address);
	report_text(report, "state", nvmepeer_state_name(info->state));
	report_number(report, "generation", info->generation, "resets so far");
	report_version(report, info->version);
	report_features(report, info->features);
	report_text(report, "dma_domain", nvmepeer_domain_name(info->domain));
	report_bool(report, "msi_isolated", info->domain_flags & NVME_PEER_DOMAIN_ISOLATED_MSI);
	report_number(report, "namespaces", info->namespaces, NULL);
}

static void report_limits(struct report *report, const struct nvme_peer_info *info)
{
	report_number(report, "max_entries", info->max_entries, "entries per ring");
	report_bool(report, "contiguous_rings", info->contiguous_rings);
	report_bytes(report, "max_transfer", info->max_transfer);
	report_bytes(report, "page_size", info->page_size);
	report_number(report, "doorbell_stride", info->doorbell_stride, "bytes");
	report_bool(report, "sgl", info->sgls & 3);
	report_bytes(report, "cmb_size", info->cmb_size);
	report_number(report, "qids_total", info->qids_total, "I/O queue pairs granted");
	report_number(report, "qids_cpu", info->qids_cpu, "used by the CPU");
	report_number(report, "qids_peer_max", info->qids_peer_max, "limit for peers");
	report_number(report, "qids_peer_free", info->qids_peer_free, "free for peers");
	report_number(report, "qids_quarantined", info->qids_quarantined,
		      "quarantined: their doorbells are open or mapped by another process");
}

static int report_node(struct report *report, const char *node)
{
	struct nvme_peer_info info;
	struct nvmepeer *ctrl;
	int result;

	if (nvmepeer_open(node, &ctrl))
		return refused(report);
	result = nvmepeer_info(ctrl, &info, sizeof(info));
	if (!result) {
		report_text(report, "node", nvmepeer_node(ctrl));
		report_controller(report, &info);
		report_limits(report, &info);
	}
	nvmepeer_close(ctrl);
	return result ? refused(report) : 0;
}

int command_info(struct report *report, const struct options *options, int argc, char **argv)
{
	(void)options;
	if (argc != 1)
		return usage_error("info takes one controller node", NULL);
	return report_node(report, argv[0]);
}

/* ---- route -------------------------------------------------------------- */

static void report_blockers(struct report *report, const struct nvme_peer_path *path)
{
	uint32_t i;

	report_number(report, "blocker_count", path->blocker_count, "blocking ports");
	report_list(report, "blockers");
	for (i = 0; i < path->blocker_count && i < NVME_PEER_ROUTE_BLOCKERS; i++) {
		report_object(report, NULL);
		report_pci(report, "port", path->blockers[i].address);
		report_number(report, "acs", path->blockers[i].acs, NULL);
		report_object_end(report);
	}
	report_list_end(report);
}

/* One direction of a route. */
static void report_path(struct report *report, const char *name,
			const struct nvme_peer_route *route, const struct nvme_peer_path *path)
{
	char text[640];

	report_object(report, name);
	report_text(report, "verdict", nvmepeer_verdict_name(path->verdict));
	report_text(report, "reason", nvmepeer_reason_name(path->reason));
	report_blockers(report, path);
	nvmepeer_route_describe(route, path, text, sizeof(text));
	report_text(report, "explanation", text);
	report_object_end(report);
}

static void report_route(struct report *report, const struct nvme_peer_route *route)
{
	report_pci(report, "pci_address", route->pci_address);
	report_path(report, "data", route, &route->data);
	report_path(report, "doorbell", route, &route->doorbell);
}

/* The other end is a PCI function or a dma-buf. */
static int get_route(struct nvmepeer *ctrl, const struct options *options, const char *argument,
		     struct nvme_peer_route *route)
{
	struct nvme_peer_pci_address address;

	if (options->given & OPTION_FD)
		return nvmepeer_route_dmabuf(ctrl, options->fd, route, sizeof(*route));
	if (nvmepeer_pci_parse(argument, &address))
		return usage_error("route takes a node and a PCI address, 0000:01:00.0", argument);
	return nvmepeer_route_pci(ctrl, address, route, sizeof(*route));
}

int command_route(struct report *report, const struct options *options, int argc, char **argv)
{
	struct nvme_peer_route route = { 0 };
	struct nvmepeer *ctrl;
	int result;

	if (argc != (options->given & OPTION_FD ? 1 : 2))
		return usage_error("route takes a node and a PCI address, or --fd N", NULL);
	if (nvmepeer_open(argv[0], &ctrl))
		return refused(report);
	result = get_route(ctrl, options, argv[1], &route);
	nvmepeer_close(ctrl);
	if (result == EXIT_USAGE)
		return result;
	if (result)
		return refused(report);
	report_route(report, &route);
	return route.data.verdict == NVME_PEER_ROUTE_NONE ? EXIT_REFUSED : 0;
}

/* ---- import-check ------------------------------------------------------- */

static void report_buffer(struct report *report, const struct nvme_peer_buf_import *buffer)
{
	report_bytes(report, "length", buffer->length);
	report_number(report, "segments", buffer->segments, "ranges of DMA addresses");
	report_text(report, "verdict", nvmepeer_verdict_name(buffer->verdict));
	report_text(report, "reason", nvmepeer_reason_name(buffer->reason));
	report_pci(report, "pci_address", buffer->pci_address);
}

static int import_once(struct report *report, struct nvmepeer *ctrl, int fd, uint32_t flags)
{
	struct nvme_peer_buf_import buffer;

	if (nvmepeer_buf_import(ctrl, fd, flags, &buffer, sizeof(buffer)))
		return refused(report);
	report_buffer(report, &buffer);
	return nvmepeer_buf_release(ctrl, buffer.handle) ? refused(report) : 0;
}

static int import_host(struct report *report, struct nvmepeer *ctrl, uint64_t bytes,
		       uint32_t flags)
{
	struct nvmepeer_hostmem *memory;
	int status;

	if (nvmepeer_buf_alloc(ctrl, bytes, &memory))
		return refused(report);
	status = import_once(report, ctrl, nvmepeer_hostmem_fd(memory), flags);
	nvmepeer_hostmem_free(memory);
	return status;
}

int command_import_check(struct report *report, const struct options *options, int argc, char **argv)
{
	uint32_t flags = options->given & OPTION_REQUIRE_DEVICE ? NVME_PEER_BUF_REQUIRE_DEVICE : 0;
	struct nvmepeer *ctrl;
	int status;

	if (argc != 1)
		return usage_error("import-check takes a node", NULL);
	if (!(options->given & OPTION_FD) == !(options->given & OPTION_HOST))
		return usage_error("import-check takes either --fd N or --host BYTES", NULL);
	if (nvmepeer_open(argv[0], &ctrl))
		return refused(report);
	if (options->given & OPTION_FD)
		status = import_once(report, ctrl, options->fd, flags);
	else
		status = import_host(report, ctrl, options->host_bytes, flags);
	nvmepeer_close(ctrl);
	return status;
}
