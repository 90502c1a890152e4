// SPDX-License-Identifier: GPL-2.0-only
/*
 * Takes what nvme-peer registers when it is loaded, so that one step of its
 * initialisation after the other fails.
 */
#include <linux/fs.h>
#include <linux/kdev_t.h>
#include <linux/pci.h>
#include <linux/slab.h>

#include "test.h"

/* More than there are majors that the kernel chooses from. */
#define TEST_MAJORS	512

/**
 * struct test_occupied - what is taken
 * @regions: const: one character device of each major
 * @region_count: const: how many
 * @driver: const: a driver with the name of nvme-peer's; no name: not registered
 */
struct test_occupied {
	dev_t regions[TEST_MAJORS];
	unsigned int region_count;
	struct pci_driver driver;
};

static void test_free_regions(struct test_occupied *occupied, unsigned int count)
{
	for (; count && occupied->region_count; count--)
		unregister_chrdev_region(occupied->regions[--occupied->region_count], 1);
}

/* All but @spare. */
static int test_take_majors(struct test_occupied *occupied, unsigned int spare)
{
	int ret = 0;

	while (!ret && occupied->region_count < TEST_MAJORS) {
		ret = alloc_chrdev_region(&occupied->regions[occupied->region_count], 0, 1,
					  "nvmep_test");
		occupied->region_count += !ret;
	}
	if (ret != -EBUSY)
		return ret ?: -ERANGE;
	test_free_regions(occupied, spare);
	return 0;
}

/* Functions whose driver_override has its name match. */
static int test_refuse_probe(struct pci_dev *pdev, const struct pci_device_id *id)
{
	return -ENODEV;
}

static int test_take_driver(struct test_occupied *occupied)
{
	int ret;

	occupied->driver.name = "nvme-peer";
	occupied->driver.probe = test_refuse_probe;
	ret = pci_register_driver(&occupied->driver);
	if (ret)
		occupied->driver.name = NULL;
	return ret;
}

int test_occupy(struct test_file *file, const struct nvmep_test_occupy *what)
{
	struct test_occupied *occupied;
	int ret;

	lockdep_assert_held(&file->lock);
	if (file->occupied)
		return -EBUSY;
	occupied = kzalloc(sizeof(*occupied), GFP_KERNEL);
	if (!occupied)
		return -ENOMEM;
	file->occupied = occupied;
	if (what->driver)
		ret = test_take_driver(occupied);
	else
		ret = test_take_majors(occupied, what->spare_majors);
	if (ret)
		test_occupy_end(file);
	return ret;
}

void test_occupy_end(struct test_file *file)
{
	struct test_occupied *occupied = file->occupied;

	lockdep_assert_held(&file->lock);
	if (!occupied)
		return;
	test_free_regions(occupied, TEST_MAJORS);
	if (occupied->driver.name)
		pci_unregister_driver(&occupied->driver);
	kfree(occupied);
	file->occupied = NULL;
}
