// SPDX-License-Identifier: GPL-2.0-only
/*
 * Hardware that QEMU has not: a PCI domain that no firmware knows, as Intel's VMD
 * makes them; host bridges and root ports of other makers; ports that redirect
 * requests; interrupt structures beside doorbells.  Drivers are deceived, the hardware
 * is what it was.
 */
#include <linux/list.h>
#include <linux/pci.h>
#include <linux/slab.h>

#include "test.h"

#define TEST_CONFIG_BYTES	256U
#define TEST_CONFIG_EXPRESS	0x40U

/* What seems to be in config space: two words in a row. */
#define TEST_SEEMING_BYTES	8U

/* An ACS capability of version 1, alone in the extended space. */
#define TEST_ACS_AT		PCI_CFG_SPACE_SIZE
#define TEST_ACS_CAPABLE	(PCI_ACS_RR | PCI_ACS_CR | PCI_ACS_EC)

/**
 * struct test_pretend - one deceit
 * @node: in file->pretended, under file->lock
 * @undo: takes it back
 * @pdev: const: whom it is about, referenced; NULL for a domain
 * @vendor: const: what @pdev was
 * @device: const: as well; of a domain: device and function number of its one
 * @acs_cap: const: as well
 * @cfg_size: const: as well
 * @ops: const: config accesses of @pdev's bus, with ours to read
 * @true_ops: const: without
 * @seeming: const: what is read in place of config space
 * @seeming_at: const: from where on
 * @sysdata: const: of the domain
 * @bus: const: of the domain
 * @config: const: of the function in it
 */
struct test_pretend {
	struct list_head node;
	void (*undo)(struct test_pretend *pretend);
	struct pci_dev *pdev;
	u16 vendor;
	u16 device;
	u16 acs_cap;
	int cfg_size;
	struct pci_ops ops;
	struct pci_ops *true_ops;
	u8 seeming[TEST_SEEMING_BYTES];
	int seeming_at;
	struct pci_sysdata sysdata;
	struct pci_bus *bus;
	u8 config[TEST_CONFIG_BYTES];
};

static struct test_pretend *
test_pretend_begin(const struct nvmep_test_pretend *what,
		   void (*undo)(struct test_pretend *pretend))
{
	struct test_pretend *pretend = kzalloc(sizeof(*pretend), GFP_KERNEL);

	if (!pretend)
		return ERR_PTR(-ENOMEM);
	pretend->undo = undo;
	pretend->pdev = test_find_function(&what->pci_address);
	if (pretend->pdev)
		return pretend;
	kfree(pretend);
	return ERR_PTR(-ENODEV);
}

/* Backwards: the same function may have been renamed twice. */
void test_pretend_end(struct test_file *file)
{
	struct test_pretend *pretend, *next;

	lockdep_assert_held(&file->lock);
	list_for_each_entry_safe_reverse(pretend, next, &file->pretended, node) {
		list_del(&pretend->node);
		pretend->undo(pretend);
		pci_dev_put(pretend->pdev);
		kfree(pretend);
	}
}

/* --- IDs ----------------------------------------------------------------- */

static void test_rename_undo(struct test_pretend *pretend)
{
	pretend->pdev->vendor = pretend->vendor;
	pretend->pdev->device = pretend->device;
}

/* The file's deceit about @pdev's name, if there is one already. */
static bool test_is_renamed(struct test_file *file, const struct pci_dev *pdev)
{
	struct test_pretend *pretend;

	list_for_each_entry(pretend, &file->pretended, node)
		if (pretend->pdev == pdev && pretend->undo == test_rename_undo)
			return true;
	return false;
}

int test_rename(struct test_file *file, const struct nvmep_test_pretend *what)
{
	struct pci_dev *pdev = test_find_function(&what->pci_address);
	struct test_pretend *pretend;

	lockdep_assert_held(&file->lock);
	if (!pdev)
		return -ENODEV;
	if (!test_is_renamed(file, pdev)) {
		pretend = test_pretend_begin(what, test_rename_undo);
		if (IS_ERR(pretend)) {
			pci_dev_put(pdev);
			return PTR_ERR(pretend);
		}
		pretend->vendor = pdev->vendor;
		pretend->device = pdev->device;
		list_add_tail(&pretend->node, &file->pretended);
	}
	pdev->vendor = what->vendor;
	pdev->device = what->device;
	pci_dev_put(pdev);
	return 0;
}

/* --- config space --------------------------------------------------------- */

static int test_seeming_read(struct pci_bus *bus, unsigned int devfn, int where,
			     int size, u32 *value);

static bool test_seems(const struct test_pretend *pretend, unsigned int devfn,
		       int where, int size)
{
	return pretend->pdev->devfn == devfn && where >= pretend->seeming_at &&
	       where + size <= pretend->seeming_at + TEST_SEEMING_BYTES;
}

/* @bus has our ops. Each deceit about it stands before the one that came before it. */
static const struct test_pretend *
test_seeming_of(struct pci_bus *bus, unsigned int devfn, int where, int size,
		struct pci_ops **true_ops)
{
	const struct test_pretend *pretend, *found = NULL;
	struct pci_ops *ops = bus->ops;

	do {
		pretend = container_of(ops, struct test_pretend, ops);
		if (!found && test_seems(pretend, devfn, where, size))
			found = pretend;
		ops = pretend->true_ops;
	} while (ops->read == test_seeming_read);
	*true_ops = ops;
	return found;
}

/* Called with the lock of all config accesses held. */
static int test_seeming_read(struct pci_bus *bus, unsigned int devfn, int where,
			     int size, u32 *value)
{
	struct pci_ops *true_ops;
	const struct test_pretend *pretend =
		test_seeming_of(bus, devfn, where, size, &true_ops);

	if (!pretend)
		return true_ops->read(bus, devfn, where, size, value);
	*value = 0;
	memcpy(value, pretend->seeming + where - pretend->seeming_at, size);
	return PCIBIOS_SUCCESSFUL;
}

/* From here on @pretend->seeming is read in place of what is @at. */
static void test_seeming_begin(struct test_file *file,
			       struct test_pretend *pretend, int at)
{
	struct pci_bus *bus = pretend->pdev->bus;

	pretend->seeming_at = at;
	pretend->true_ops = bus->ops;
	pretend->ops = *pretend->true_ops;
	pretend->ops.read = test_seeming_read;
	pci_bus_set_ops(bus, &pretend->ops);
	list_add_tail(&pretend->node, &file->pretended);
}

static void test_seeming_undo(struct test_pretend *pretend)
{
	pci_bus_set_ops(pretend->pdev->bus, pretend->true_ops);
}

static void test_acs_undo(struct test_pretend *pretend)
{
	test_seeming_undo(pretend);
	pretend->pdev->acs_cap = pretend->acs_cap;
	pretend->pdev->cfg_size = pretend->cfg_size;
}

int test_acs(struct test_file *file, const struct nvmep_test_pretend *what)
{
	struct test_pretend *pretend = test_pretend_begin(what, test_acs_undo);
	u32 header = PCI_EXT_CAP_ID_ACS | 1 << 16;
	u16 able = TEST_ACS_CAPABLE;
	struct pci_dev *pdev;

	lockdep_assert_held(&file->lock);
	if (IS_ERR(pretend))
		return PTR_ERR(pretend);
	memcpy(pretend->seeming, &header, sizeof(header));
	memcpy(pretend->seeming + PCI_ACS_CAP, &able, sizeof(able));
	memcpy(pretend->seeming + PCI_ACS_CTRL, &what->acs, sizeof(what->acs));
	pdev = pretend->pdev;
	pretend->acs_cap = pdev->acs_cap;
	pretend->cfg_size = pdev->cfg_size;
	pdev->acs_cap = TEST_ACS_AT;
	pdev->cfg_size = PCI_CFG_SPACE_EXP_SIZE;
	test_seeming_begin(file, pretend, TEST_ACS_AT);
	return 0;
}

/* The capability's other word, how many vectors there are, is true. */
int test_msix(struct test_file *file, const struct nvmep_test_pretend *what)
{
	struct test_pretend *pretend = test_pretend_begin(what, test_seeming_undo);

	lockdep_assert_held(&file->lock);
	if (IS_ERR(pretend))
		return PTR_ERR(pretend);
	memcpy(pretend->seeming, &what->msix_table, sizeof(what->msix_table));
	memcpy(pretend->seeming + PCI_MSIX_PBA - PCI_MSIX_TABLE, &what->msix_pba,
	       sizeof(what->msix_pba));
	test_seeming_begin(file, pretend,
			   pretend->pdev->msix_cap + PCI_MSIX_TABLE);
	return 0;
}

/* --- a domain ------------------------------------------------------------ */

static int test_domain_read(struct pci_bus *bus, unsigned int devfn, int where,
			    int size, u32 *value)
{
	struct test_pretend *pretend =
		container_of(bus->sysdata, struct test_pretend, sysdata);

	*value = ~0U;
	if (devfn != pretend->device || where + size > TEST_CONFIG_BYTES)
		return PCIBIOS_DEVICE_NOT_FOUND;
	*value = 0;
	memcpy(value, pretend->config + where, size);
	return PCIBIOS_SUCCESSFUL;
}

static int test_domain_write(struct pci_bus *bus, unsigned int devfn, int where,
			     int size, u32 value)
{
	return PCIBIOS_SUCCESSFUL;
}

static struct pci_ops test_domain_ops = {
	.read = test_domain_read,
	.write = test_domain_write,
};

static void test_domain_undo(struct test_pretend *pretend)
{
	struct pci_host_bridge *bridge = pci_find_host_bridge(pretend->bus);

	pci_lock_rescan_remove();
	pci_stop_root_bus(pretend->bus);
	pci_remove_root_bus(pretend->bus);
	pci_unlock_rescan_remove();
	/* Whoever makes one has it: it was unregistered, and not freed. */
	pci_free_host_bridge(bridge);
}

/* A header without BARs, of no class, and an Express capability. */
static void test_domain_config(struct test_pretend *pretend,
			       const struct nvmep_test_pretend *what)
{
	u16 port = 2 | PCI_EXP_TYPE_ROOT_PORT << 4;
	u8 *config = pretend->config;

	memcpy(config + PCI_VENDOR_ID, &what->vendor, sizeof(what->vendor));
	memcpy(config + PCI_DEVICE_ID, &what->device, sizeof(what->device));
	config[PCI_STATUS] = PCI_STATUS_CAP_LIST;
	config[PCI_CLASS_DEVICE + 1] = 0xff;
	config[PCI_CAPABILITY_LIST] = TEST_CONFIG_EXPRESS;
	config[TEST_CONFIG_EXPRESS] = PCI_CAP_ID_EXP;
	memcpy(config + TEST_CONFIG_EXPRESS + PCI_EXP_FLAGS, &port, sizeof(port));
}

int test_domain(struct test_file *file, const struct nvmep_test_pretend *what)
{
	struct test_pretend *pretend = kzalloc(sizeof(*pretend), GFP_KERNEL);
	LIST_HEAD(resources);

	lockdep_assert_held(&file->lock);
	if (!pretend)
		return -ENOMEM;
	pretend->undo = test_domain_undo;
	pretend->device = what->pci_address.function & 0xff;
	pretend->sysdata.domain = what->pci_address.domain;
	pretend->sysdata.node = NUMA_NO_NODE;
	test_domain_config(pretend, what);

	pci_lock_rescan_remove();
	pretend->bus = pci_scan_root_bus(NULL,
					 PCI_BUS_NUM(what->pci_address.function),
					 &test_domain_ops, &pretend->sysdata,
					 &resources);
	if (pretend->bus)
		pci_bus_add_devices(pretend->bus);
	pci_unlock_rescan_remove();
	if (!pretend->bus) {
		kfree(pretend);
		return -EBUSY;
	}
	list_add_tail(&pretend->node, &file->pretended);
	return 0;
}
