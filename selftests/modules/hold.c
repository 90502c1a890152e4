// SPDX-License-Identifier: GPL-2.0-only
/*
 * Holds a lock that nvme-peer needs to revoke doorbells, as a process whose
 * page fault is served by a hung server does, or a driver that moves memory.
 * Or one that it must not need: the recovery from a PCI error holds that of
 * buses, the reset of a sibling that of their port.
 */
#include <linux/atomic.h>
#include <linux/delay.h>
#include <linux/dma-buf.h>
#include <linux/dma-resv.h>
#include <linux/mm.h>
#include <linux/pci.h>
#include <linux/sched.h>

#include "test.h"

/* Threads that hold a lock now. */
static atomic_t test_holders = ATOMIC_INIT(0);

/* The caller holds a lock. A signal ends it early. */
void test_hold_for(u32 ms)
{
	atomic_inc(&test_holders);
	msleep_interruptible(ms);
	atomic_dec(&test_holders);
}

static void test_hold_mmap(u32 ms)
{
	struct mm_struct *mm = current->mm;

	mmap_write_lock(mm);
	test_hold_for(ms);
	mmap_write_unlock(mm);
}

static int test_hold_resv(int fd, u32 ms)
{
	struct dma_buf *dmabuf = dma_buf_get(fd);

	if (IS_ERR(dmabuf))
		return PTR_ERR(dmabuf);
	dma_resv_lock(dmabuf->resv, NULL);
	test_hold_for(ms);
	dma_resv_unlock(dmabuf->resv);
	dma_buf_put(dmabuf);
	return 0;
}

static int test_sleep_at_function(struct pci_dev *pdev, void *ms)
{
	test_hold_for(*(u32 *)ms);
	return 1;
}

static int test_hold_buses(u32 ms)
{
	struct pci_bus *bus = pci_find_next_bus(NULL);

	if (!bus)
		return -ENODEV;
	pci_walk_bus(bus, test_sleep_at_function, &ms);
	return 0;
}

static int test_hold_port(const struct nvmep_test_hold *hold)
{
	struct pci_dev *pdev = test_find_function(&hold->pci_address);
	struct pci_dev *port = pdev ? pci_upstream_bridge(pdev) : NULL;
	unsigned int siblings;

	if (port) {
		device_lock(&port->dev);
		siblings = pdev->multifunction;
		pdev->multifunction = hold->siblings;
		test_hold_for(hold->ms);
		pdev->multifunction = siblings;
		device_unlock(&port->dev);
	}
	pci_dev_put(pdev);
	return port ? 0 : -ENODEV;
}

int test_hold(const struct nvmep_test_hold *hold)
{
	if (hold->dmabuf_fd >= 0)
		return test_hold_resv(hold->dmabuf_fd, hold->ms);
	if (hold->dmabuf_fd == NVMEP_TEST_HOLD_BUSES)
		return test_hold_buses(hold->ms);
	if (hold->dmabuf_fd == NVMEP_TEST_HOLD_PORT)
		return test_hold_port(hold);
	test_hold_mmap(hold->ms);
	return 0;
}

int test_held(void)
{
	return atomic_read(&test_holders) ? 0 : -EAGAIN;
}
