// SPDX-License-Identifier: MIT OR GPL-2.0
/*
 * PCI functions from /sys/bus/pci; see pci.h.
 */
#include <inttypes.h>
#include <linux/pci_regs.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "pci.h"
#include "sysfs.h"

#define FUNCTIONS "/sys/bus/pci/devices"

enum {
	CLASS_DISPLAY = 0x03,
	CLASS_BRIDGE_PCI = 0x0604,
	CLASS_ACCELERATOR = 0x1200,
	CLASS_NVME = 0x010802,
	LEAST_EXTENDED = PCI_CFG_SPACE_SIZE + 4,
};

/* ---- Configuration space (PCI 3.0 6.7, PCIe base specification 7.5.3, 7.7.11) -- */

/**
 * struct config - a copy of a configuration space
 * @bytes: little endian
 * @length: bytes that this process may read
 */
struct config {
	uint8_t bytes[PCI_CFG_SPACE_EXP_SIZE];
	size_t length;
};

static uint16_t word_at(const struct config *config, size_t at)
{
	return at + 2 > config->length ? 0 :
	       (uint16_t)(config->bytes[at] | config->bytes[at + 1] << 8);
}

static void read_type(struct pci_function *function, const struct config *config)
{
	size_t at = word_at(config, PCI_CAPABILITY_LIST) & 0xfc;
	int steps;

	/* Limit the steps: a damaged list may have a cycle. */
	for (steps = 0; at && steps < 48; steps++) {
		if ((word_at(config, at) & 0xff) == PCI_CAP_ID_EXP) {
			function->type = (word_at(config, at + PCI_EXP_FLAGS) & PCI_EXP_FLAGS_TYPE) >> 4;
			return;
		}
		at = word_at(config, at) >> 8 & 0xfc;
	}
}

static void read_acs(struct pci_function *function, const struct config *config)
{
	size_t at = PCI_CFG_SPACE_SIZE;
	int steps;

	function->sees_acs = config->length >= LEAST_EXTENDED;
	for (steps = 0; at >= PCI_CFG_SPACE_SIZE && steps < 480; steps++) {
		if (word_at(config, at) == PCI_EXT_CAP_ID_ACS) {
			function->has_acs = true;
			function->acs = word_at(config, at + PCI_ACS_CTRL);
			return;
		}
		at = word_at(config, at + 2) >> 4 & 0xffc;
	}
}

static void read_config(struct pci_function *function)
{
	struct config config;

	config.length = sysfs_bytes(config.bytes, sizeof(config.bytes), FUNCTIONS "/%s/config",
				    function->address);
	function->type = -1;
	read_type(function, &config);
	read_acs(function, &config);
}

/* ---- Attributes ---------------------------------------------------------- */

static enum pci_kind kind_of(uint32_t class)
{
	if (class >> 16 == CLASS_DISPLAY || class >> 8 == CLASS_ACCELERATOR)
		return PCI_GPU;
	if (class >> 8 == CLASS_BRIDGE_PCI)
		return PCI_BRIDGE;
	return class == CLASS_NVME ? PCI_CONTROLLER : PCI_OTHER;
}

static void read_text(char text[PCI_NAME], const char *address, const char *attribute)
{
	char line[SYSFS_TEXT];

	sysfs_read(line, FUNCTIONS "/%s/%s", address, attribute);
	snprintf(text, PCI_NAME, "%.*s", PCI_NAME - 1, line);
}

static void read_driver(struct pci_function *function)
{
	char name[SYSFS_TEXT];

	sysfs_link(name, FUNCTIONS "/%s/driver", function->address);
	snprintf(function->driver, PCI_NAME, "%.*s", PCI_NAME - 1, name);
}

static void read_group(struct pci_function *function)
{
	char group[SYSFS_TEXT], type[SYSFS_TEXT];

	function->group = -1;
	if (!sysfs_link(group, FUNCTIONS "/%s/iommu_group", function->address))
		return;
	function->group = atoi(group);
	sysfs_read(type, "/sys/kernel/iommu_groups/%s/type", group);
	snprintf(function->domain, PCI_NAME, "%.*s", PCI_NAME - 1, type);
}

/* The node of a controller is a child of its function, in the class of the driver. */
static void read_node(struct pci_function *function)
{
	static const char *const classes[] = { "nvme-peer", "nvme" };
	struct dirent **names;
	int count;
	size_t i;

	for (i = 0; i < sizeof(classes) / sizeof(classes[0]); i++) {
		count = sysfs_list(&names, FUNCTIONS "/%s/%s", function->address, classes[i]);
		if (count)
			snprintf(function->node, PCI_NAME, "%.*s", PCI_NAME - 1, names[0]->d_name);
		sysfs_list_free(names, count);
	}
}

static void read_function(struct pci_function *function, const char *address)
{
	snprintf(function->address, sizeof(function->address), "%.*s",
		 (int)sizeof(function->address) - 1, address);
	function->kind = kind_of((uint32_t)sysfs_number(0, FUNCTIONS "/%s/class", address));
	function->vendor = (uint16_t)sysfs_number(0, FUNCTIONS "/%s/vendor", address);
	function->device = (uint16_t)sysfs_number(0, FUNCTIONS "/%s/device", address);
	read_config(function);
	read_driver(function);
	read_group(function);
	if (function->kind == PCI_CONTROLLER)
		read_node(function);
	read_text(function->speed, address, "current_link_speed");
	read_text(function->width, address, "current_link_width");
}

/* ---- The tree ------------------------------------------------------------ */

static const struct pci_function *at_address(const struct pci *pci, const char *address)
{
	size_t i;

	for (i = 0; i < pci->count; i++)
		if (!strcmp(pci->functions[i].address, address))
			return &pci->functions[i];
	return NULL;
}

/* The directory of a function is in that of the bridge above it, up to its root bus. */
static void read_upstream(const struct pci *pci, struct pci_function *function)
{
	char directory[SYSFS_PATH], *last;

	if (!sysfs_real(directory, FUNCTIONS "/%s", function->address))
		return;
	last = strrchr(directory, '/');
	*last = 0;
	last = strrchr(directory, '/');
	function->upstream = last ? at_address(pci, last + 1) : NULL;
	while (last && strncmp(last, "/pci", 4) != 0) {
		*last = 0;
		last = strrchr(directory, '/');
	}
	if (last)
		snprintf(function->root, sizeof(function->root), "%.*s",
			 (int)sizeof(function->root) - 1, last + 1);
}

void pci_scan(struct pci *pci)
{
	struct dirent **names;
	int count, i;
	size_t at;

	count = sysfs_list(&names, FUNCTIONS);
	pci->functions = calloc((size_t)count + 1, sizeof(*pci->functions));
	pci->count = pci->functions ? (size_t)count : 0;
	for (i = 0; (size_t)i < pci->count; i++)
		read_function(&pci->functions[i], names[i]->d_name);
	for (at = 0; at < pci->count; at++)
		read_upstream(pci, &pci->functions[at]);
	sysfs_list_free(names, count);
}

void pci_free(struct pci *pci)
{
	free(pci->functions);
	pci->functions = NULL;
	pci->count = 0;
}

const struct pci_function *pci_find(const struct pci *pci, const char *name)
{
	struct nvme_peer_pci_address parsed;
	char address[NVMEPEER_PCI_TEXT];
	size_t i;

	if (!nvmepeer_pci_parse(name, &parsed))
		return at_address(pci, nvmepeer_pci_format(parsed, address));
	if (!strncmp(name, "/dev/", 5))
		name += 5;
	for (i = 0; i < pci->count; i++)
		if (pci->functions[i].node[0] && !strcmp(pci->functions[i].node, name))
			return &pci->functions[i];
	return NULL;
}

/* ---- Text ---------------------------------------------------------------- */

const char *pci_describe(const struct pci_function *function)
{
	if (function->kind == PCI_GPU)
		return "GPU";
	if (function->kind == PCI_CONTROLLER)
		return "NVMe controller";
	switch (function->type) {
	case PCI_EXP_TYPE_ROOT_PORT:
		return "root port";
	case PCI_EXP_TYPE_UPSTREAM:
		return "switch, upstream port";
	case PCI_EXP_TYPE_DOWNSTREAM:
		return "switch, downstream port";
	default:
		return function->kind == PCI_BRIDGE ? "bridge" : "function";
	}
}

const char *pci_acs_text(const struct pci_function *function, char text[PCI_NAME])
{
	static const struct {
		uint16_t bit;
		const char *name;
	} bits[] = {
		{ PCI_ACS_SV, "SV" }, { PCI_ACS_TB, "TB" }, { PCI_ACS_RR, "RR" },
		{ PCI_ACS_CR, "CR" }, { PCI_ACS_UF, "UF" }, { PCI_ACS_EC, "EC" },
		{ PCI_ACS_DT, "DT" },
	};
	size_t i, length = 0;

	if (!function->has_acs) {
		snprintf(text, PCI_NAME, "%s", function->sees_acs ? "no ACS" : "ACS ?");
		return text;
	}
	length = (size_t)snprintf(text, PCI_NAME, "ACS");
	for (i = 0; i < sizeof(bits) / sizeof(bits[0]); i++)
		if (function->acs & bits[i].bit)
			length += (size_t)snprintf(text + length, PCI_NAME - length, " %s", bits[i].name);
	if (length == strlen("ACS"))
		snprintf(text, PCI_NAME, "ACS off");
	return text;
}

uint64_t pci_largest_bar(const struct pci_function *function)
{
	FILE *file = sysfs_open(FUNCTIONS "/%s/resource", function->address);
	uint64_t first, last, largest = 0;
	int region;

	/* The first six regions are BARs; the ROM and the windows of a bridge follow. */
	for (region = 0; file && region < PCI_STD_NUM_BARS; region++) {
		if (fscanf(file, "%" SCNx64 " %" SCNx64 " %*x", &first, &last) != 2)
			break;
		if (first && last - first + 1 > largest)
			largest = last - first + 1;
	}
	if (file)
		fclose(file);
	return largest;
}
