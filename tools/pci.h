/* SPDX-License-Identifier: MIT OR GPL-2.0 */
/*
 * The PCI functions of the machine, from sysfs and configuration space.
 */
#ifndef PCI_H
#define PCI_H

#include <nvmepeer.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { PCI_NAME = 40 };

/**
 * enum pci_kind - kinds of functions
 * @PCI_OTHER: none of these
 * @PCI_BRIDGE: bridge
 * @PCI_GPU: display or 3D controller, or processing accelerator
 * @PCI_CONTROLLER: NVMe controller
 */
enum pci_kind { PCI_OTHER, PCI_BRIDGE, PCI_GPU, PCI_CONTROLLER };

/**
 * struct pci_function - one function
 * @address: 0000:01:00.0
 * @root: directory of its root bus, pci0000:00
 * @upstream: bridge above it; NULL on a root bus
 * @kind: kind
 * @vendor: vendor ID
 * @device: device ID
 * @type: PCI_EXP_TYPE_*, or -1 if it is not a PCIe function or not readable
 * @has_acs: it has Access Control Services
 * @sees_acs: its extended configuration space could be read, which requires root
 * @acs: ACS control register, 0 without one
 * @driver: bound driver, or ""
 * @node: node of a controller, or ""
 * @group: IOMMU group, or -1
 * @domain: type of the group's domain, DMA-FQ, identity, ... or ""
 * @speed: link speed, or ""
 * @width: link width, or ""
 */
struct pci_function {
	char address[NVMEPEER_PCI_TEXT];
	char root[NVMEPEER_PCI_TEXT];
	const struct pci_function *upstream;
	enum pci_kind kind;
	uint16_t vendor;
	uint16_t device;
	int type;
	bool has_acs;
	bool sees_acs;
	uint16_t acs;
	char driver[PCI_NAME];
	char node[PCI_NAME];
	int group;
	char domain[PCI_NAME];
	char speed[PCI_NAME];
	char width[PCI_NAME];
};

/**
 * struct pci - all functions
 * @functions: sorted by address; owned
 * @count: number of functions
 */
struct pci {
	struct pci_function *functions;
	size_t count;
};

/* pci_scan() - read all functions, to be freed with pci_free(). */
void pci_scan(struct pci *pci);
void pci_free(struct pci *pci);

/* pci_find() - find by address (also 01:00.0) or by controller node. Returns NULL if none. */
const struct pci_function *pci_find(const struct pci *pci, const char *name);

/* pci_describe() - the kind of a function in a word or two. */
const char *pci_describe(const struct pci_function *function);

/* pci_acs_text() - "RR CR", "none on", "no ACS" or "?"; returns @text. */
const char *pci_acs_text(const struct pci_function *function, char text[PCI_NAME]);

/* pci_largest_bar() - size of the largest memory BAR of a function. */
uint64_t pci_largest_bar(const struct pci_function *function);

#endif /* PCI_H */
