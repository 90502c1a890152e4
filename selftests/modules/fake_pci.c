// SPDX-License-Identifier: GPL-2.0-only
/*
 * Fake PCI hardware that QEMU lacks: a PCI domain that is in no firmware table,
 * like those of Intel's VMD; host bridges and root ports of other vendors;
 * ports that redirect requests; MSI-X structures beside doorbells. Only what
 * drivers read is changed, the hardware is not.
 */
#include <linux/list.h>
#include <linux/pci.h>
#include <linux/slab.h>

#include "test.h"

#define TEST_CONFIG_BYTES	256U
#define TEST_CONFIG_EXPRESS	0x40U

/* Bytes of config space that are replaced: two adjacent dwords. */
#define TEST_FAKE_BYTES	8U

/* An ACS capability of version 1, alone in the extended space. */
#define TEST_ACS_AT		PCI_CFG_SPACE_SIZE
#define TEST_ACS_CAPABLE	(PCI_ACS_RR | PCI_ACS_CR | PCI_ACS_EC)

/**
 * struct test_fake - one change of what drivers see
 * @node: in file->fakes, under file->lock
 * @undo: reverts it
 * @pdev: const: the function, referenced; NULL for a domain
 * @vendor: const: real vendor ID of @pdev
 * @device: const: real device ID of @pdev; of a domain: devfn of its function
 * @acs_cap: const: real value in @pdev
 * @ats_enabled: const: real value in @pdev
 * @cfg_size: const: real value in @pdev
 * @ops: const: config accesses of @pdev's bus, with test_fake_config_read()
 * @real_ops: const: those without it
 * @bytes: const: what is read in place of config space
 * @config_at: const: offset of @bytes in config space
 * @sysdata: const: of the domain
 * @bus: const: of the domain
 * @config: const: config space of the function in the domain
 */
struct test_fake {
	struct list_head node;
	void (*undo)(struct test_fake *fake);
	struct pci_dev *pdev;
	u16 vendor;
	u16 device;
	u16 acs_cap;
	bool ats_enabled;
	int cfg_size;
	struct pci_ops ops;
	struct pci_ops *real_ops;
	u8 bytes[TEST_FAKE_BYTES];
	int config_at;
	struct pci_sysdata sysdata;
	struct pci_bus *bus;
	u8 config[TEST_CONFIG_BYTES];
};

static struct test_fake *
test_fake_begin(const struct nvmep_test_fake_pci *what,
		void (*undo)(struct test_fake *fake))
{
	struct test_fake *fake = kzalloc(sizeof(*fake), GFP_KERNEL);

	if (!fake)
		return ERR_PTR(-ENOMEM);
	fake->undo = undo;
	fake->pdev = test_find_function(&what->pci_address);
	if (fake->pdev)
		return fake;
	kfree(fake);
	return ERR_PTR(-ENODEV);
}

/* In reverse order, because a function's IDs may have been changed twice. */
void test_fake_end(struct test_file *file)
{
	struct test_fake *fake, *next;

	lockdep_assert_held(&file->lock);
	list_for_each_entry_safe_reverse(fake, next, &file->fakes, node) {
		list_del(&fake->node);
		fake->undo(fake);
		pci_dev_put(fake->pdev);
		kfree(fake);
	}
}

/* --- IDs ----------------------------------------------------------------- */

static void test_rename_undo(struct test_fake *fake)
{
	fake->pdev->vendor = fake->vendor;
	fake->pdev->device = fake->device;
}

/* Has this file changed @pdev's IDs already? */
static bool test_is_renamed(struct test_file *file, const struct pci_dev *pdev)
{
	struct test_fake *fake;

	list_for_each_entry(fake, &file->fakes, node)
		if (fake->pdev == pdev && fake->undo == test_rename_undo)
			return true;
	return false;
}

int test_rename(struct test_file *file, const struct nvmep_test_fake_pci *what)
{
	struct pci_dev *pdev = test_find_function(&what->pci_address);
	struct test_fake *fake;

	lockdep_assert_held(&file->lock);
	if (!pdev)
		return -ENODEV;
	if (!test_is_renamed(file, pdev)) {
		fake = test_fake_begin(what, test_rename_undo);
		if (IS_ERR(fake)) {
			pci_dev_put(pdev);
			return PTR_ERR(fake);
		}
		fake->vendor = pdev->vendor;
		fake->device = pdev->device;
		list_add_tail(&fake->node, &file->fakes);
	}
	pdev->vendor = what->vendor;
	pdev->device = what->device;
	pci_dev_put(pdev);
	return 0;
}

/* --- config space --------------------------------------------------------- */

static int test_fake_config_read(struct pci_bus *bus, unsigned int devfn, int where,
				 int size, u32 *value);

static bool test_fake_covers(const struct test_fake *fake, unsigned int devfn,
			     int where, int size)
{
	return fake->pdev->devfn == devfn && where >= fake->config_at &&
	       where + size <= fake->config_at + TEST_FAKE_BYTES;
}

/* @bus has our ops. Each change points to the ops that it replaced. */
static const struct test_fake *
test_fake_config_find(struct pci_bus *bus, unsigned int devfn, int where, int size,
		      struct pci_ops **real_ops)
{
	const struct test_fake *fake, *found = NULL;
	struct pci_ops *ops = bus->ops;

	do {
		fake = container_of(ops, struct test_fake, ops);
		if (!found && test_fake_covers(fake, devfn, where, size))
			found = fake;
		ops = fake->real_ops;
	} while (ops->read == test_fake_config_read);
	*real_ops = ops;
	return found;
}

/* Called with the PCI config lock held. */
static int test_fake_config_read(struct pci_bus *bus, unsigned int devfn, int where,
				 int size, u32 *value)
{
	struct pci_ops *real_ops;
	const struct test_fake *fake =
		test_fake_config_find(bus, devfn, where, size, &real_ops);

	if (!fake)
		return real_ops->read(bus, devfn, where, size, value);
	*value = 0;
	memcpy(value, fake->bytes + where - fake->config_at, size);
	return PCIBIOS_SUCCESSFUL;
}

/* From here on @fake->bytes is read in place of config space at @at. */
static void test_fake_config_begin(struct test_file *file,
				   struct test_fake *fake, int at)
{
	struct pci_bus *bus = fake->pdev->bus;

	fake->config_at = at;
	fake->real_ops = bus->ops;
	fake->ops = *fake->real_ops;
	fake->ops.read = test_fake_config_read;
	pci_bus_set_ops(bus, &fake->ops);
	list_add_tail(&fake->node, &file->fakes);
}

static void test_fake_config_undo(struct test_fake *fake)
{
	pci_bus_set_ops(fake->pdev->bus, fake->real_ops);
}

static void test_acs_undo(struct test_fake *fake)
{
	test_fake_config_undo(fake);
	fake->pdev->ats_enabled = fake->ats_enabled;
	fake->pdev->acs_cap = fake->acs_cap;
	fake->pdev->cfg_size = fake->cfg_size;
}

int test_acs(struct test_file *file, const struct nvmep_test_fake_pci *what)
{
	struct test_fake *fake = test_fake_begin(what, test_acs_undo);
	u32 header = PCI_EXT_CAP_ID_ACS | 1 << 16;
	u16 able = TEST_ACS_CAPABLE;
	struct pci_dev *pdev;

	lockdep_assert_held(&file->lock);
	if (IS_ERR(fake))
		return PTR_ERR(fake);
	memcpy(fake->bytes, &header, sizeof(header));
	memcpy(fake->bytes + PCI_ACS_CAP, &able, sizeof(able));
	memcpy(fake->bytes + PCI_ACS_CTRL, &what->acs, sizeof(what->acs));
	if (what->acs == U16_MAX)
		memset(fake->bytes, 0xff, sizeof(fake->bytes));
	pdev = fake->pdev;
	fake->acs_cap = pdev->acs_cap;
	fake->cfg_size = pdev->cfg_size;
	fake->ats_enabled = pdev->ats_enabled;
	if (what->ats)
		pdev->ats_enabled = 1;
	pdev->acs_cap = TEST_ACS_AT;
	pdev->cfg_size = PCI_CFG_SPACE_EXP_SIZE;
	test_fake_config_begin(file, fake, TEST_ACS_AT);
	return 0;
}

/* The rest of the capability, with the number of vectors, stays real. */
int test_msix(struct test_file *file, const struct nvmep_test_fake_pci *what)
{
	struct test_fake *fake = test_fake_begin(what, test_fake_config_undo);

	lockdep_assert_held(&file->lock);
	if (IS_ERR(fake))
		return PTR_ERR(fake);
	memcpy(fake->bytes, &what->msix_table, sizeof(what->msix_table));
	memcpy(fake->bytes + PCI_MSIX_PBA - PCI_MSIX_TABLE, &what->msix_pba,
	       sizeof(what->msix_pba));
	test_fake_config_begin(file, fake,
			       fake->pdev->msix_cap + PCI_MSIX_TABLE);
	return 0;
}

/* --- a domain ------------------------------------------------------------ */

static int test_domain_read(struct pci_bus *bus, unsigned int devfn, int where,
			    int size, u32 *value)
{
	struct test_fake *fake =
		container_of(bus->sysdata, struct test_fake, sysdata);

	*value = ~0U;
	if (devfn != fake->device || where + size > TEST_CONFIG_BYTES)
		return PCIBIOS_DEVICE_NOT_FOUND;
	*value = 0;
	memcpy(value, fake->config + where, size);
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

static void test_domain_undo(struct test_fake *fake)
{
	struct pci_host_bridge *bridge = pci_find_host_bridge(fake->bus);

	pci_lock_rescan_remove();
	pci_stop_root_bus(fake->bus);
	pci_remove_root_bus(fake->bus);
	pci_unlock_rescan_remove();
	/* The creator owns the bridge: it was unregistered, but not freed. */
	pci_free_host_bridge(bridge);
}

/* A header without BARs and class, and a PCI Express capability. */
static void test_domain_config(struct test_fake *fake,
			       const struct nvmep_test_fake_pci *what)
{
	u16 port = 2 | PCI_EXP_TYPE_ROOT_PORT << 4;
	u8 *config = fake->config;

	memcpy(config + PCI_VENDOR_ID, &what->vendor, sizeof(what->vendor));
	memcpy(config + PCI_DEVICE_ID, &what->device, sizeof(what->device));
	config[PCI_STATUS] = PCI_STATUS_CAP_LIST;
	config[PCI_CLASS_DEVICE + 1] = 0xff;
	config[PCI_CAPABILITY_LIST] = TEST_CONFIG_EXPRESS;
	config[TEST_CONFIG_EXPRESS] = PCI_CAP_ID_EXP;
	memcpy(config + TEST_CONFIG_EXPRESS + PCI_EXP_FLAGS, &port, sizeof(port));
}

int test_domain(struct test_file *file, const struct nvmep_test_fake_pci *what)
{
	struct test_fake *fake = kzalloc(sizeof(*fake), GFP_KERNEL);
	LIST_HEAD(resources);

	lockdep_assert_held(&file->lock);
	if (!fake)
		return -ENOMEM;
	fake->undo = test_domain_undo;
	fake->device = what->pci_address.function & 0xff;
	fake->sysdata.domain = what->pci_address.domain;
	fake->sysdata.node = NUMA_NO_NODE;
	test_domain_config(fake, what);

	pci_lock_rescan_remove();
	fake->bus = pci_scan_root_bus(NULL,
				      PCI_BUS_NUM(what->pci_address.function),
				      &test_domain_ops, &fake->sysdata,
				      &resources);
	if (fake->bus)
		pci_bus_add_devices(fake->bus);
	pci_unlock_rescan_remove();
	if (!fake->bus) {
		kfree(fake);
		return -EBUSY;
	}
	list_add_tail(&fake->node, &file->fakes);
	return 0;
}
