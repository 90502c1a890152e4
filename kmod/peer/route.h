/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * How two PCI functions reach each other's memory, and why not.
 */
#ifndef _NVMEP_ROUTE_H
#define _NVMEP_ROUTE_H

#include <linux/pci.h>
#include <linux/types.h>

#include <linux/nvme_peer.h>

#define NVMEP_NO_PCI_ADDRESS	U32_MAX

/**
 * struct nvmep_route - one verdict with its reason
 * @verdict: how
 * @reason: why
 * @blocker: PCI address of the bridge that @reason names, else
 *	NVMEP_NO_PCI_ADDRESS
 * @blocker_acs: ACS control bits of @blocker that redirect requests
 */
struct nvmep_route {
	enum nvme_peer_route_verdict verdict;
	enum nvme_peer_route_reason reason;
	u32 blocker;
	u16 blocker_acs;
};

void nvmep_route_find(struct pci_dev *initiator, struct pci_dev *target,
		      struct nvmep_route *route);
void nvmep_route_through_host(struct pci_dev *initiator, struct pci_dev *target,
			      struct nvmep_route *route);
void nvmep_route_host_memory(struct nvmep_route *route);
void nvmep_route_unknown_memory(struct nvmep_route *route);
bool nvmep_route_translated(struct device *dev);
const char *nvmep_route_reason_text(enum nvme_peer_route_reason reason);
u32 nvmep_pci_address(const struct pci_dev *pdev);

#endif /* _NVMEP_ROUTE_H */
