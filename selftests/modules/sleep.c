// SPDX-License-Identifier: GPL-2.0-only
/*
 * A suspended guest has no access to its file systems, because the drivers of
 * its virtual disks cannot suspend. So all PCI functions but one are left out
 * of the suspend.
 */
#include <linux/device.h>
#include <linux/pci.h>

#include "test.h"

/* Is @port @pdev or a port above it? */
static bool test_is_above(const struct pci_dev *port, struct pci_dev *pdev)
{
	while (pdev && pdev != port)
		pdev = pci_upstream_bridge(pdev);
	return pdev;
}

/* With all devices below it. */
static int test_leave_out(struct device *dev, void *out)
{
	dev_pm_syscore_device(dev, *(const bool *)out);
	return device_for_each_child(dev, out, test_leave_out);
}

static void test_leave_out_others(const struct test_file *file, bool out)
{
	struct pci_dev *pdev = NULL;

	for_each_pci_dev(pdev)
		if (!test_is_above(pdev, file->sleeper))
			test_leave_out(&pdev->dev, &out);
}

int test_sleep(struct test_file *file,
	       const struct nvme_peer_pci_address *pci_address)
{
	lockdep_assert_held(&file->lock);
	if (!IS_ENABLED(CONFIG_PM_SLEEP))
		return -EOPNOTSUPP;
	if (file->sleeper)
		return -EBUSY;
	file->sleeper = test_find_function(pci_address);
	if (!file->sleeper)
		return -ENODEV;
	test_leave_out_others(file, true);
	return 0;
}

void test_sleep_end(struct test_file *file)
{
	lockdep_assert_held(&file->lock);
	if (!file->sleeper)
		return;
	test_leave_out_others(file, false);
	pci_dev_put(file->sleeper);
	file->sleeper = NULL;
}
