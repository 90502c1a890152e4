/* SPDX-License-Identifier: GPL-2.0-only */
/* What kmod/peer/route.c needs of the kernel and of the module, for unit-route. */
#ifndef SELFTESTS_ROUTE_H
#define SELFTESTS_ROUTE_H

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <linux/pci_regs.h>

#include "kernel.h"

typedef u64 phys_addr_t;

#define CONFIG_X86
#define ARRAY_SIZE(array)	(sizeof(array) / sizeof((array)[0]))
#define ALIGN_DOWN(x, a)	((x) & ~((typeof(x))(a) - 1))
#define max(a, b)		((a) > (b) ? (a) : (b))
#define PAGE_SIZE		4096ULL
#define PMD_SIZE		0x200000ULL
#define SZ_4K			0x1000
#define SZ_8M			0x800000

/* Parameters. */
struct kernel_param;
struct kernel_param_ops {
	int (*set)(const char *value, const struct kernel_param *parameter);
	int (*get)(char *buffer, const struct kernel_param *parameter);
};

struct unit_param {
	const struct kernel_param_ops *ops;
	void *data;
	unsigned int mode;
};

#define module_param_cb(name, ops, data, mode) \
	static const struct unit_param unit_param_##name = { ops, data, mode }
#define __MODULE_PARM_TYPE(name, type)		static_assert(sizeof(type) > 1, #name)
#define MODULE_PARM_DESC(name, text)		static_assert(sizeof(text) > 1, #name)
#define sysfs_streq(a, b)			(strcmp(a, b) == 0)
#define sysfs_emit(buffer, ...)			sprintf(buffer, __VA_ARGS__)

static inline int kstrtobool(const char *value, bool *result)
{
	*result = strchr("1yY", *value);
	return *value && strchr("01yYnN", *value) ? 0 : -EINVAL;
}

/* The processor. */
#define X86_VENDOR_INTEL	0
#define X86_VENDOR_AMD		2
extern struct unit_processor {
	u8 x86_vendor;
	u8 x86;
} boot_cpu_data;

/* The IOMMU: domains translate by unit_translate(). */
#define __IOMMU_DOMAIN_DMA_API	2
#define IOMMU_DOMAIN_IDENTITY	4
#define IOMMU_DOMAIN_DMA	3
#define IOMMU_DOMAIN_DMA_FQ	11

struct iommu_domain {
	unsigned int type;
};

struct device {
	struct iommu_domain *domain;
	bool uses_iommu;
};

phys_addr_t unit_translate(dma_addr_t address);
#define iommu_get_domain_for_dev(device)	((device)->domain)
#define iommu_iova_to_phys(domain, address)	((domain) ? unit_translate(address) : 0)

/* PCI. */
#define PCI_VENDOR_ID_INTEL	0x8086
#define PCI_VENDOR_ID_NVIDIA	0x10de
#define PCI_STD_NUM_BARS	6
#define PCI_DEVFN(slot, function)	((slot) << 3 | (function))
#define PCI_DEVID(bus, devfn)	((bus) << 8 | (devfn))
#define PCI_BUS_NUM(id)		((id) >> 8 & 0xff)
#define IORESOURCE_MEM		0x200
#define IORESOURCE_SYSTEM_RAM	0x1000000
#define IORES_DESC_NONE		0
#define REGION_INTERSECTS	0
#define REGION_DISJOINT		1
#define REGION_MIXED		2

struct resource {
	u64 start;
	u64 end;
	unsigned long flags;
};

struct pci_bus_region {
	dma_addr_t start;
	dma_addr_t end;
};

struct pci_host_bridge;
struct pci_bus {
	struct pci_dev *self;	/* bridge above it; NULL for a root bus */
	struct pci_host_bridge *host;
	u32 domain;
	u8 number;
};

/* Bus addresses are physical addresses minus @offset. */
struct pci_host_bridge {
	struct pci_bus *bus;
	u64 offset;
};

struct pci_dev {
	struct device dev;
	struct pci_bus *bus;
	unsigned int devfn;
	u16 vendor;
	u16 device;
	u16 acs_cap;
	u16 acs_control;	/* what a read of the register returns */
	unsigned int type;
	bool ats_enabled;
	int references;
	struct resource resource[PCI_STD_NUM_BARS + 1];
};

/* All functions, in the order of enumeration; the last is followed by NULL. */
extern struct pci_dev *unit_functions[];
struct pci_dev *unit_next_function(struct pci_dev *from);
struct pci_dev *pci_get_domain_bus_and_slot(u32 domain, unsigned int bus, unsigned int devfn);
int region_intersects(phys_addr_t start, u64 length, unsigned long flags, unsigned long description);

#define for_each_pci_dev(function)		while (((function) = unit_next_function(function)))
#define pci_dev_put(function)			((function) ? (void)(function)->references-- : (void)0)
#define pci_upstream_bridge(function)		((function)->bus->self)
#define pci_find_host_bridge(bus)		((bus)->host)
#define pci_domain_nr(bus)			((bus)->domain)
#define pci_pcie_type(function)			((function)->type)
#define pci_resource_start(function, bar)	((function)->resource[bar].start)
#define pci_resource_end(function, bar)		((function)->resource[bar].end)
#define pci_resource_flags(function, bar)	((function)->resource[bar].flags)
#define pci_p2pdma_distance_many(provider, clients, count, verbose) \
	((void)(provider), (void)(clients), (void)(count), (void)(verbose), -1)

static inline int pci_read_config_word(struct pci_dev *function, int where, u16 *value)
{
	*value = where == function->acs_cap + PCI_ACS_CTRL ? function->acs_control : 0;
	return 0;
}

static inline void pcibios_bus_to_resource(struct pci_bus *bus, struct resource *resource,
					   struct pci_bus_region *region)
{
	resource->start = region->start + bus->host->offset;
	resource->end = region->end + bus->host->offset;
}

/* kmod/compat.h, core/ctrl.h, peer/peer.h, peer/import.h */
#define _NVMEP_COMPAT_H
#define _NVMEP_CTRL_H
#define _NVMEP_PEER_H
#define _NVMEP_IMPORT_H
#define nvmep_uses_iommu(device)	((device)->uses_iommu)
#define nvmep_ats_enabled(function)	((function)->ats_enabled)

struct nvmep_peers {
	bool removed;
};

struct nvmep_ctrl {
	struct pci_dev *pdev;
	struct device *dev;
	struct nvmep_peers *peers;
};

struct nvmep_segment {
	u64 offset;
	u64 length;
	dma_addr_t dma;
};

struct nvmep_segments {
	struct nvmep_segment *list;
	u32 count;
};

struct nvmep_buf {
	struct nvmep_ctrl *ctrl;
	struct nvmep_segments segments;
	struct unit_lock lock;
	void *attach;
	bool invalid;
};

#define nvmep_buf_invalid(buf)	((buf)->invalid)
int nvmep_walk_resched(void);

#endif /* SELFTESTS_ROUTE_H */
