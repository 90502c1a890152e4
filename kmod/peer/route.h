/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Paths between PCI functions, and where mapped memory lies.
 */
#ifndef _NVMEP_ROUTE_H
#define _NVMEP_ROUTE_H

#include <linux/pci.h>
#include <linux/types.h>

#include <linux/nvme_peer.h>

struct nvmep_buf;

void nvmep_route_find(struct pci_dev *initiator, struct pci_dev *target,
		      struct nvme_peer_path *path);
void nvmep_route_through_host(struct pci_dev *initiator, struct pci_dev *target,
			      struct nvme_peer_path *path);
void nvmep_route_without_device(struct nvme_peer_path *path,
				enum nvme_peer_route_reason reason);
bool nvmep_route_translated(struct device *dev);
bool nvmep_route_strict(struct device *dev);
enum nvme_peer_domain nvmep_route_domain(struct device *dev);
int nvmep_route_kernel_distance(struct pci_dev *provider, struct device *client);
const char *nvmep_route_reason_text(enum nvme_peer_route_reason reason);
struct nvme_peer_pci_address nvmep_pci_address(const struct pci_dev *pdev);
struct pci_dev *nvmep_pci_get(const struct nvme_peer_pci_address *address);

/**
 * struct nvmep_placement - where memory lies and how the controller reaches it
 * @owner: PCI function that holds the memory, invalid if none does
 * @path: path from the controller to the memory
 */
struct nvmep_placement {
	struct nvme_peer_pci_address owner;
	struct nvme_peer_path path;
};

phys_addr_t nvmep_buf_phys(struct nvmep_buf *buf);
int nvmep_placement_find(struct nvmep_placement *placement,
			 struct nvmep_buf *buf);

#endif /* _NVMEP_ROUTE_H */
