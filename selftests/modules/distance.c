// SPDX-License-Identifier: GPL-2.0-only
/*
 * The PCI P2PDMA distance of two functions as Linux computes it, to be compared
 * with nvme-peer's verdict.
 */
#include <linux/pci.h>
#include <linux/pci-p2pdma.h>

#include "test.h"

int test_distance(struct nvmep_test_distance *distance)
{
	struct pci_dev *provider = test_find_function(&distance->provider);
	struct pci_dev *client = test_find_function(&distance->client);
	struct device *clients[1];
	int ret = 0;

	if (!provider || !client) {
		ret = -ENODEV;
	} else if (!IS_ENABLED(CONFIG_PCI_P2PDMA)) {
		ret = -EOPNOTSUPP;
	} else {
		clients[0] = &client->dev;
		distance->distance = pci_p2pdma_distance_many(provider, clients,
							      1, false);
	}
	pci_dev_put(provider);
	pci_dev_put(client);
	return ret;
}
