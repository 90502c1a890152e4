// SPDX-License-Identifier: GPL-2.0-only
/*
 * A guest that powers off cannot report what the driver did, so this calls the
 * driver's shutdown method for one function, as the kernel does for all.
 *
 * Also the driver's error handlers, in orders that QEMU's errors do not cause.
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

static void test_call_handler(struct pci_dev *pdev,
			      const struct pci_error_handlers *handlers,
			      u32 step)
{
	switch (step) {
	case NVMEP_TEST_ERROR_FROZEN:
		handlers->error_detected(pdev, pci_channel_io_frozen);
		break;
	case NVMEP_TEST_ERROR_PERMANENT:
		handlers->error_detected(pdev, pci_channel_io_perm_failure);
		break;
	case NVMEP_TEST_ERROR_SLOT_RESET:
		handlers->slot_reset(pdev);
		break;
	case NVMEP_TEST_ERROR_RESUME:
		handlers->resume(pdev);
		break;
	case NVMEP_TEST_CHANNEL_FROZEN:
		pdev->error_state = pci_channel_io_frozen;
		break;
	case NVMEP_TEST_CHANNEL_NORMAL:
		pdev->error_state = pci_channel_io_normal;
		break;
	}
}

int test_error(const struct nvmep_test_error *what)
{
	struct pci_dev *pdev = test_find_function(&what->pci_address);

	if (!pdev)
		return -ENODEV;
	device_lock(&pdev->dev);
	if (pdev->driver && pdev->driver->err_handler)
		test_call_handler(pdev, pdev->driver->err_handler, what->step);
	device_unlock(&pdev->dev);
	pci_dev_put(pdev);
	return 0;
}
