// SPDX-License-Identifier: GPL-2.0-only
/*
 * A guest that powers off cannot tell what the driver did then: do to one function what
 * the kernel does to all.
 */
#include <linux/device.h>
#include <linux/pci.h>

#include "test.h"

int test_shutdown(const struct nvme_peer_pci_address *pci_address)
{
	struct pci_dev *pdev = test_find_function(pci_address);

	if (!pdev)
		return -ENODEV;
	device_lock(&pdev->dev);
	pci_bus_type.shutdown(&pdev->dev);
	device_unlock(&pdev->dev);
	pci_dev_put(pdev);
	return 0;
}
