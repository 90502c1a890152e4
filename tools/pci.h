/* SPDX-License-Identifier: MIT OR GPL-2.0 */
/*
 * The PCI functions of the machine, as sysfs and their configuration space tell.
 */
#ifndef PCI_H
#define PCI_H

#include <nvmepeer.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { PCI_NAME = 40 };

/**
 * enum pci_kind - what a function is to us
 * @PCI_OTHER: none of these
 * @PCI_BRIDGE: has functions below it
 * @PCI_GPU: display or 3D controller, or processing accelerator
 * @PCI_CONTROLLER: NVMe controller
 */
enum pci_kind { PCI_OTHER, PCI_BRIDGE, PCI_GPU, PCI_CONTROLLER };

/**
 * struct pci_function - one function
 * @address: 0000:01:00.0
 * @root: the folder of its root bus, pci0000:00
 * @upstream: bridge above it; NULL on a root bus
 * @kind: what it is to us
 * @vendor: identifier
 * @device: identifier
 * @type: PCI_EXP_TYPE_*, or -1 if it is no PCIe function or nobody lets us see
 * @has_acs: it has Access Control Services
 * @sees_acs: its extended configuration space could be read: root only
 * @acs: ACS control register, 0 without one
 * @driver: bound to it, or ""
 * @node: name of its node, if it is a controller that has one, or ""
 * @group: IOMMU group, -1 without
 * @domain: type of the group's domain, DMA-FQ, identity, ... or ""
 * @speed: of its link, or ""
 * @width: of its link, or ""
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
 * struct pci - all of them
 * @functions: in the order of their addresses; owned
 * @count: of them
 */
struct pci {
	struct pci_function *functions;
	size_t count;
};

/* pci_scan() - look at all functions; free with pci_free(). */
void pci_scan(struct pci *pci);
void pci_free(struct pci *pci);

/* pci_find() - by address, 01:00.0 for short; or by a controller's node. NULL if none. */
const struct pci_function *pci_find(const struct pci *pci, const char *name);

/* pci_describe() - what it is in a word or two. */
const char *pci_describe(const struct pci_function *function);

/* pci_acs_text() - "RR CR", "none on", "no ACS" or "?"; returns @text. */
const char *pci_acs_text(const struct pci_function *function, char text[PCI_NAME]);

/* pci_largest_bar() - bytes of the largest memory region of a function. */
uint64_t pci_largest_bar(const struct pci_function *function);

#endif /* PCI_H */
