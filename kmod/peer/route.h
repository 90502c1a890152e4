/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * How two PCI functions reach each other's memory, and why not.
 */
#ifndef _NVMEP_ROUTE_H
#define _NVMEP_ROUTE_H

#include <linux/pci.h>
#include <linux/types.h>

#include <linux/nvme_peer.h>

void nvmep_route_find(struct pci_dev *initiator, struct pci_dev *target,
		      struct nvme_peer_path *path);
void nvmep_route_through_host(struct pci_dev *initiator, struct pci_dev *target,
			      struct nvme_peer_path *path);
void nvmep_route_without_device(struct nvme_peer_path *path,
				enum nvme_peer_route_reason reason);
bool nvmep_route_translated(struct device *dev);
int nvmep_route_kernel_distance(struct pci_dev *provider, struct device *client);
const char *nvmep_route_reason_text(enum nvme_peer_route_reason reason);
struct nvme_peer_pci_address nvmep_pci_address(const struct pci_dev *pdev);
struct pci_dev *nvmep_pci_get(const struct nvme_peer_pci_address *address);

#endif /* _NVMEP_ROUTE_H */
