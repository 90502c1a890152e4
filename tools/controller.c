// SPDX-License-Identifier: MIT OR GPL-2.0
/*
 * nvme-peer list, info, route, import-check: questions to a controller.
 */
#include <dirent.h>
#include <nvmepeer.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

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
	report_number(report, "namespaces", info->namespaces, NULL);
}

static void report_limits(struct report *report, const struct nvme_peer_info *info)
{
	report_number(report, "max_entries", info->max_entries, "entries a ring");
	report_bool(report, "contiguous_rings", info->contiguous_rings);
	report_number(report, "max_transfer", info->max_transfer, "bytes a command");
	report_number(report, "page_size", info->page_size, "bytes");
	report_number(report, "doorbell_stride", info->doorbell_stride, "bytes");
	report_bool(report, "sgl", info->sgls & 3);
	report_number(report, "cmb_size", info->cmb_size, "bytes");
	report_number(report, "qids_total", info->qids_total, "I/O queue pairs granted");
	report_number(report, "qids_cpu", info->qids_cpu, "used by the CPU");
	report_number(report, "qids_peer_max", info->qids_peer_max, "for peers at most");
	report_number(report, "qids_peer_free", info->qids_peer_free, "of them free now");
	report_number(report, "qids_quarantined", info->qids_quarantined,
		      "kept: their doorbells are still open or mapped elsewhere");
}

static int report_node(struct report *report, const char *node)
{
	struct nvme_peer_info info;
	struct nvmepeer *ctrl;
	int result;

	if (nvmepeer_open(node, &ctrl))
		return refused(report);
	result = nvmepeer_info(ctrl, &info);
	if (!result) {
		report_text(report, "node", nvmepeer_node(ctrl));
		report_controller(report, &info);
		report_limits(report, &info);
	}
	nvmepeer_close(ctrl);
	return result ? refused(report) : 0;
}

int command_info(struct report *report, int argc, char **argv)
{
	if (argc != 1)
		return usage_error("info takes one controller node", NULL);
	return report_node(report, argv[0]);
}

/* ---- list --------------------------------------------------------------- */

/* Controller nodes only: "nvmep" and a number, without a namespace. */
static int is_controller(const struct dirent *entry)
{
	const char *number = entry->d_name + 5;

	return !strncmp(entry->d_name, "nvmep", 5) && *number &&
	       strspn(number, "0123456789") == strlen(number);
}

int command_list(struct report *report, int argc, char **argv)
{
	struct dirent **entries;
	int count, i, status = 0;

	if (argc)
		return usage_error("list takes no argument", argv[0]);
	count = scandir("/dev", &entries, is_controller, versionsort);
	if (count < 0) {
		perror("nvme-peer: /dev");
		return EXIT_REFUSED;
	}
	report_list(report, "controllers");
	for (i = 0; i < count; i++) {
		report_object(report, NULL);
		status |= report_node(report, entries[i]->d_name);
		report_object_end(report);
		free(entries[i]);
	}
	report_list_end(report);
	free(entries);
	return status;
}

/* ---- route -------------------------------------------------------------- */

static void report_blockers(struct report *report, const struct nvme_peer_path *path)
{
	uint32_t i;

	report_number(report, "blocker_count", path->blocker_count, "ports in the way");
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

/* The second argument of route is a PCI address or "--fd N". */
static int ask_route(struct nvmepeer *ctrl, int argc, char **argv,
		     struct nvme_peer_route *route)
{
	struct nvme_peer_pci_address address;
	uint64_t fd;

	if (argc == 3 && !strcmp(argv[1], "--fd")) {
		if (!parse_number(argv[2], INT32_MAX, &fd))
			return usage_error("not a file descriptor", argv[2]);
		return nvmepeer_route_dmabuf(ctrl, (int)fd, route);
	}
	if (argc != 2 || nvmepeer_pci_parse(argv[1], &address))
		return usage_error("route takes a node and a PCI address, 0000:01:00.0", NULL);
	return nvmepeer_route_pci(ctrl, address, route);
}

int command_route(struct report *report, int argc, char **argv)
{
	struct nvme_peer_route route = { 0 };
	struct nvmepeer *ctrl;
	int result;

	if (argc < 2)
		return usage_error("route takes a node and a PCI address, or --fd N", NULL);
	if (nvmepeer_open(argv[0], &ctrl))
		return refused(report);
	result = ask_route(ctrl, argc, argv, &route);
	nvmepeer_close(ctrl);
	if (result == EXIT_USAGE)
		return result;
	if (result)
		return refused(report);
	report_route(report, &route);
	return route.data.verdict == NVME_PEER_ROUTE_NONE ? EXIT_REFUSED : 0;
}

/* ---- import-check ------------------------------------------------------- */

/**
 * struct import_options - command line of import-check
 * @node: controller
 * @fd: dma-buf to import, or -1
 * @host_bytes: size of host memory to try instead of @fd
 * @flags: NVME_PEER_BUF_*
 */
struct import_options {
	const char *node;
	int fd;
	uint64_t host_bytes;
	uint32_t flags;
};

static int parse_import(int argc, char **argv, struct import_options *options)
{
	uint64_t fd;
	int i;

	if (!argc)
		return usage_error("import-check takes a node", NULL);
	options->node = argv[0];
	for (i = 1; i < argc; i++) {
		if (!strcmp(argv[i], "--require-device")) {
			options->flags |= NVME_PEER_BUF_REQUIRE_DEVICE;
		} else if (!strcmp(argv[i], "--fd") && i + 1 < argc &&
			   parse_number(argv[i + 1], INT32_MAX, &fd)) {
			options->fd = (int)fd;
			i++;
		} else if (!strcmp(argv[i], "--host") && i + 1 < argc &&
			   parse_number(argv[i + 1], SIZE_MAX / 2, &options->host_bytes)) {
			i++;
		} else {
			return usage_error("import-check does not understand", argv[i]);
		}
	}
	if (options->fd >= 0 ? options->host_bytes : !options->host_bytes)
		return usage_error("import-check takes either --fd N or --host BYTES", NULL);
	return 0;
}

static void report_buffer(struct report *report, const struct nvme_peer_buf_import *buffer)
{
	report_number(report, "length", buffer->length, "bytes");
	report_number(report, "segments", buffer->segments, "ranges of DMA addresses");
	report_text(report, "verdict", nvmepeer_verdict_name(buffer->verdict));
	report_text(report, "reason", nvmepeer_reason_name(buffer->reason));
	report_pci(report, "pci_address", buffer->pci_address);
}

static int import_once(struct report *report, struct nvmepeer *ctrl, int fd, uint32_t flags)
{
	struct nvme_peer_buf_import buffer;

	if (nvmepeer_buf_import(ctrl, fd, flags, &buffer))
		return refused(report);
	report_buffer(report, &buffer);
	return nvmepeer_buf_release(ctrl, buffer.handle) ? refused(report) : 0;
}

static int import_host(struct report *report, struct nvmepeer *ctrl,
		       const struct import_options *options)
{
	struct nvmepeer_hostmem memory;
	int status;

	if (nvmepeer_hostmem_alloc(options->host_bytes, &memory))
		return refused(report);
	status = import_once(report, ctrl, memory.dmabuf_fd, options->flags);
	nvmepeer_hostmem_free(&memory);
	return status;
}

int command_import_check(struct report *report, int argc, char **argv)
{
	struct import_options options = { .fd = -1 };
	struct nvmepeer *ctrl;
	int status;

	status = parse_import(argc, argv, &options);
	if (status)
		return status;
	if (nvmepeer_open(options.node, &ctrl))
		return refused(report);
	if (options.fd >= 0)
		status = import_once(report, ctrl, options.fd, options.flags);
	else
		status = import_host(report, ctrl, &options);
	nvmepeer_close(ctrl);
	return status;
}
