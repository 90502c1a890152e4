// SPDX-License-Identifier: GPL-2.0-only
/*
 * Paths of requests between PCI functions, and the placement of mapped memory.
 *
 * A path has one verdict with a reason, and lists every port that blocks a
 * shorter path.
 *
 * The kernel answers a similar question (pci_p2pdma_distance_many()), but not
 * without CONFIG_PCI_P2PDMA, and it never reports which ports block.  This file
 * therefore walks upstream from both functions to the first bridge that they
 * share, on every kernel, and checks the ACS control bits that redirect or
 * block requests (PCIe base specification 6.12).  A debugfs file of the
 * controller lists both answers for comparison.
 *
 *  - Below a common bridge without a redirecting port, requests that carry a
 *    PCI bus address are routed inside the switch.
 *  - Otherwise they pass the root complex, which must forward between its
 *    ports.  The configuration space does not report that: there is a list of
 *    known host bridges, and a module parameter.  Some forward writes only.
 *
 * The walk takes no lock: a reference to a function keeps the bridges above it.
 */
#include <linux/iommu.h>
#include <linux/ioport.h>
#include <linux/mm.h>
#include <linux/module.h>
#include <linux/pci-p2pdma.h>
#include <linux/pci.h>

#include "compat.h"
#include "core/ctrl.h"
#include "import.h"
#include "peer.h"
#include "route.h"

#ifdef CONFIG_X86
#include <asm/processor.h>
#endif

/*
 * Request redirect, completion redirect, egress control: as in the kernel, each
 * makes requests leave the switch.
 */
#define NVMEP_ACS_REDIRECT	(PCI_ACS_RR | PCI_ACS_CR | PCI_ACS_EC)

#define NVMEP_AMD_FAMILY_ZEN	0x17
#define NVMEP_VENDOR_GOOGLE	0x1ae0

/**
 * enum nvmep_trust - which host bridges forward, by module parameter
 * @NVMEP_TRUST_NONE: only known ones
 * @NVMEP_TRUST_ALL: all forward between their root ports
 * @NVMEP_TRUST_WRITES: all forward writes between their root ports, not reads
 */
enum nvmep_trust {
	NVMEP_TRUST_NONE,
	NVMEP_TRUST_ALL,
	NVMEP_TRUST_WRITES,
};

static enum nvmep_trust nvmep_trust;

static int nvmep_trust_set(const char *value, const struct kernel_param *kp)
{
	bool all;
	int err;

	if (sysfs_streq(value, "writes")) {
		WRITE_ONCE(nvmep_trust, NVMEP_TRUST_WRITES);
		return 0;
	}
	err = kstrtobool(value, &all);
	if (!err)
		WRITE_ONCE(nvmep_trust, all ? NVMEP_TRUST_ALL : NVMEP_TRUST_NONE);
	return err;
}

static int nvmep_trust_get(char *buffer, const struct kernel_param *kp)
{
	static const char * const names[] = {
		[NVMEP_TRUST_NONE] = "N",
		[NVMEP_TRUST_ALL] = "Y",
		[NVMEP_TRUST_WRITES] = "writes",
	};

	return sysfs_emit(buffer, "%s\n", names[READ_ONCE(nvmep_trust)]);
}

static const struct kernel_param_ops nvmep_trust_ops = {
	.set = nvmep_trust_set,
	.get = nvmep_trust_get,
};

module_param_cb(allow_host_bridge, &nvmep_trust_ops, NULL, 0644);
__MODULE_PARM_TYPE(allow_host_bridge, "bool or 'writes'");
MODULE_PARM_DESC(allow_host_bridge,
		 "Trust all host bridges to forward requests between their root ports (default: only known ones); 'writes': to forward writes only");

/*
 * Host bridges that forward between root ports, by the first function of the
 * root bus.  Kernels with CONFIG_PCI_P2PDMA have the same list, and selftests
 * compare the two.
 */
static const struct nvmep_host_bridge {
	u16 vendor;
	u16 first;
	u16 last;
	bool same_bridge_only;	/* not from one host bridge to another */
} nvmep_host_bridges[] = {
	/* Xeon E5, Core i7 (Sandy Bridge-E) */
	{ PCI_VENDOR_ID_INTEL, 0x3c00, 0x3c01, true },
	/* Xeon E5/E7 v3 (Haswell-E) */
	{ PCI_VENDOR_ID_INTEL, 0x2f00, 0x2f01, true },
	/* Xeon Scalable, Skylake to Cascade Lake: the DMI port, the root ports */
	{ PCI_VENDOR_ID_INTEL, 0x2020, 0x2020, false },
	{ PCI_VENDOR_ID_INTEL, 0x2030, 0x2033, false },
	/* Xeon Scalable, Ice Lake and later */
	{ PCI_VENDOR_ID_INTEL, 0x09a2, 0x09a2, false },
	/* The same, root buses of their accelerators: DSA and IAX */
	{ PCI_VENDOR_ID_INTEL, 0x0b25, 0x0b25, false },
	{ PCI_VENDOR_ID_INTEL, 0x0cfe, 0x0cfe, false },
	{ PCI_VENDOR_ID_INTEL, 0x11fb, 0x11fb, false },
	{ PCI_VENDOR_ID_INTEL, 0x1212, 0x1212, false },
	{ PCI_VENDOR_ID_INTEL, 0x1216, 0x1216, false },
	/* QAT: 4xxx, 401xx, 402xx, 420xx, 6xxx */
	{ PCI_VENDOR_ID_INTEL, 0x4940, 0x4940, false },
	{ PCI_VENDOR_ID_INTEL, 0x4942, 0x4942, false },
	{ PCI_VENDOR_ID_INTEL, 0x4944, 0x4944, false },
	{ PCI_VENDOR_ID_INTEL, 0x4946, 0x4946, false },
	{ PCI_VENDOR_ID_INTEL, 0x4948, 0x4948, false },
	/* All processors of Google */
	{ NVMEP_VENDOR_GOOGLE, 0x0000, 0xffff, false },
	/* Processors of NVIDIA: the root ports */
	{ PCI_VENDOR_ID_NVIDIA, 0x2f95, 0x2f98, false },
};

/**
 * nvmep_pci_address() - address of a function for user space
 * @pdev: the function
 *
 * Return: the address, valid.
 */
struct nvme_peer_pci_address nvmep_pci_address(const struct pci_dev *pdev)
{
	return (struct nvme_peer_pci_address) {
		.domain = pci_domain_nr(pdev->bus),
		.function = PCI_DEVID(pdev->bus->number, pdev->devfn),
		.valid = 1,
	};
}

/**
 * nvmep_pci_get() - find the function at an address
 * @address: the address
 *
 * Return: the function with a reference, NULL if there is none.
 */
struct pci_dev *nvmep_pci_get(const struct nvme_peer_pci_address *address)
{
	if (!address->valid)
		return NULL;
	return pci_get_domain_bus_and_slot(address->domain,
					   PCI_BUS_NUM(address->function),
					   address->function & 0xff);
}

/**
 * nvmep_route_without_device() - path to memory that is in no PCI function
 * @path: out
 * @reason: why; host memory is reached by every device
 */
void nvmep_route_without_device(struct nvme_peer_path *path,
				enum nvme_peer_route_reason reason)
{
	*path = (struct nvme_peer_path) {
		.verdict = reason == NVME_PEER_REASON_HOST_MEMORY ?
			   NVME_PEER_ROUTE_SYSTEM : NVME_PEER_ROUTE_NONE,
		.reason = reason,
	};
}

/**
 * nvmep_route_kernel_distance() - the kernel's own verdict on a path
 * @provider: function whose memory or registers are accessed
 * @client: initiator
 *
 * The kernel caches the answer and uses it for later mappings.
 *
 * Return: number of hops; negative if there is no path, and always without
 * CONFIG_PCI_P2PDMA.
 */
int nvmep_route_kernel_distance(struct pci_dev *provider, struct device *client)
{
	return pci_p2pdma_distance_many(provider, &client, 1, false);
}

/*
 * Type of the device's IOMMU domain; an administrator may change it any time.
 * The domain lives as long as the binding of the device's driver, so the caller
 * is this driver, for its controller, or the driver maps memory now.
 */
static unsigned int nvmep_domain_type(struct device *dev)
{
	struct iommu_domain *domain = iommu_get_domain_for_dev(dev);

	return domain ? READ_ONCE(domain->type) : IOMMU_DOMAIN_IDENTITY;
}

/**
 * nvmep_route_translated() - does an IOMMU translate the device's addresses?
 * @dev: the device; its driver stays bound
 *
 * Only a domain of the DMA API translates for a bound driver.  Other types map
 * all memory or none, or are managed by an architecture.
 *
 * Return: false if its DMA addresses are physical or PCI bus addresses.
 */
bool nvmep_route_translated(struct device *dev)
{
	return nvmep_domain_type(dev) & __IOMMU_DOMAIN_DMA_API;
}

/**
 * nvmep_route_strict() - does an unmapped DMA address of the device fault?
 * @dev: the device; its driver stays bound
 *
 * Return: false if its addresses are not translated, or if they may work for a
 * while after unmapping (a lazy IOTLB flush).
 */
bool nvmep_route_strict(struct device *dev)
{
	return nvmep_domain_type(dev) == IOMMU_DOMAIN_DMA;
}

/**
 * nvmep_route_domain() - kind of the device's DMA addresses now
 * @dev: the device; its driver stays bound
 *
 * An administrator may turn a strict domain into a lazy one at any time.
 *
 * Return: the kind.
 */
enum nvme_peer_domain nvmep_route_domain(struct device *dev)
{
	if (!nvmep_route_translated(dev))
		return NVME_PEER_DOMAIN_PHYSICAL;
	return nvmep_route_strict(dev) ? NVME_PEER_DOMAIN_STRICT :
					 NVME_PEER_DOMAIN_LAZY;
}

/*
 * All ones, so all bits are set, if config space does not respond, as in
 * D3cold.  The offset is known from the enumeration of the bus.
 */
static u16 nvmep_acs_control(struct pci_dev *pdev)
{
	u16 control = 0;

	if (pdev->acs_cap)
		pci_read_config_word(pdev, pdev->acs_cap + PCI_ACS_CTRL,
				     &control);
	return control;
}

/*
 * Translation blocking: of root ports and downstream ports only.  It discards
 * all requests of an initiator that asks for translations (ATS), but those with
 * untranslated addresses.  An initiator that may use ATS need not: one that is
 * refused might have worked.
 */
static u16 nvmep_acs_translation_block(struct pci_dev *port,
				       struct pci_dev *initiator)
{
	int type = pci_pcie_type(port);

	if (!nvmep_ats_enabled(initiator) ||
	    (type != PCI_EXP_TYPE_ROOT_PORT && type != PCI_EXP_TYPE_DOWNSTREAM))
		return 0;
	return nvmep_acs_control(port) & PCI_ACS_TB;
}

/*
 * Egress control discards what it does not redirect; its vector may exempt the
 * target, but the kernel does not evaluate it either.  It applies to addresses
 * of other ports only: not to those that an IOMMU translates on the way, but to
 * those that the initiator has translated, unless the port exempts them (DT).
 */
static u16 nvmep_acs_egress_block(struct pci_dev *port, struct pci_dev *initiator)
{
	u16 control = nvmep_acs_control(port);

	if (control & PCI_ACS_RR)
		return 0;
	if (nvmep_uses_iommu(&initiator->dev) &&
	    (!nvmep_ats_enabled(initiator) || control & PCI_ACS_DT))
		return 0;
	return control & PCI_ACS_EC;
}

/*
 * Bits by which @port discards requests of @initiator, which may be any
 * function, also one whose driver comes or goes now.
 */
static u16 nvmep_acs_block(struct pci_dev *port, struct pci_dev *initiator)
{
	return nvmep_acs_translation_block(port, initiator) |
	       nvmep_acs_egress_block(port, initiator);
}

/* First bridge upstream of both, or one of them if it is above the other. */
static struct pci_dev *nvmep_common_upstream(struct pci_dev *a,
					     struct pci_dev *b)
{
	struct pci_dev *above_a;
	struct pci_dev *above_b;

	for (above_a = a; above_a; above_a = pci_upstream_bridge(above_a))
		for (above_b = b; above_b; above_b = pci_upstream_bridge(above_b))
			if (above_a == above_b)
				return above_a;
	return NULL;
}

/* Adds a blocking port.  All are counted, the first are listed. */
static void nvmep_path_block(struct nvme_peer_path *path, struct pci_dev *port,
			     u16 acs)
{
	if (path->blocker_count < NVME_PEER_ROUTE_BLOCKERS)
		path->blockers[path->blocker_count] =
			(struct nvme_peer_route_blocker) {
				.address = nvmep_pci_address(port),
				.acs = acs,
			};
	path->blocker_count++;
}

/* Adds the redirecting functions from @pdev up to, but excluding, @end. */
static void nvmep_path_find_redirects(struct nvme_peer_path *path,
				      struct pci_dev *pdev, struct pci_dev *end)
{
	u16 acs;

	for (; pdev != end; pdev = pci_upstream_bridge(pdev)) {
		acs = nvmep_acs_control(pdev) & NVMEP_ACS_REDIRECT;
		if (acs)
			nvmep_path_block(path, pdev, acs);
	}
}

/* Does a port from @initiator up to @common, or to the root, discard requests? */
static bool nvmep_path_is_blocked(struct nvme_peer_path *path,
				  struct pci_dev *initiator,
				  struct pci_dev *common,
				  u16 (*block)(struct pci_dev *port,
					       struct pci_dev *initiator))
{
	struct pci_dev *end = common ? pci_upstream_bridge(common) : NULL;
	struct pci_dev *port;
	u16 acs;

	for (port = initiator; port != end; port = pci_upstream_bridge(port)) {
		acs = block(port, initiator);
		if (acs)
			nvmep_path_block(path, port, acs);
	}
	return path->blocker_count;
}

/* All AMD processors since Zen forward between their root ports. */
static bool nvmep_cpu_forwards(void)
{
#ifdef CONFIG_X86
	return boot_cpu_data.x86_vendor == X86_VENDOR_AMD &&
	       boot_cpu_data.x86 >= NVMEP_AMD_FAMILY_ZEN;
#else
	return false;
#endif
}

/* NULL if @first, the first function of a root bus, is in no entry. */
static const struct nvmep_host_bridge *
nvmep_match_host_bridge(const struct pci_dev *first)
{
	size_t i;

	/* Without a host bridge at 00.0, the first root port identifies it. */
	if (first->devfn != PCI_DEVFN(0, 0) &&
	    pci_pcie_type(first) != PCI_EXP_TYPE_ROOT_PORT)
		return NULL;
	for (i = 0; i < ARRAY_SIZE(nvmep_host_bridges); i++)
		if (first->vendor == nvmep_host_bridges[i].vendor &&
		    first->device >= nvmep_host_bridges[i].first &&
		    first->device <= nvmep_host_bridges[i].last)
			return &nvmep_host_bridges[i];
	return NULL;
}

/*
 * Without pci_bus_sem, and so not by pci_walk_bus(): AER holds it while it waits
 * for the device lock, with which the driver is unbound, and unbinding waits for
 * callers.
 */
static const struct nvmep_host_bridge *
nvmep_host_bridge_lookup(struct pci_dev *pdev)
{
	const struct pci_bus *root = pci_find_host_bridge(pdev->bus)->bus;
	const struct nvmep_host_bridge *found;
	struct pci_dev *first = NULL;

	for_each_pci_dev(first)
		if (first->bus == root)
			break;
	found = first ? nvmep_match_host_bridge(first) : NULL;
	pci_dev_put(first);
	return found;
}

static bool nvmep_host_known(struct pci_dev *a, struct pci_dev *b)
{
	const struct nvmep_host_bridge *bridge_a;
	const struct nvmep_host_bridge *bridge_b;

	if (nvmep_cpu_forwards())
		return true;
	bridge_a = nvmep_host_bridge_lookup(a);
	bridge_b = nvmep_host_bridge_lookup(b);
	if (!bridge_a || !bridge_b)
		return false;
	if (pci_find_host_bridge(a->bus) == pci_find_host_bridge(b->bus))
		return true;
	return !bridge_a->same_bridge_only && !bridge_b->same_bridge_only;
}

/* The root port above @pdev: it represents the host bridge. */
static struct pci_dev *nvmep_root_port(struct pci_dev *pdev)
{
	while (pci_upstream_bridge(pdev))
		pdev = pci_upstream_bridge(pdev);
	return pdev;
}

/* Forwarding between the two root ports is not known to work. */
static void nvmep_path_block_host(struct nvme_peer_path *path,
				  struct pci_dev *initiator,
				  struct pci_dev *target)
{
	struct pci_dev *out = nvmep_root_port(initiator);
	struct pci_dev *in = nvmep_root_port(target);

	path->verdict = NVME_PEER_ROUTE_NONE;
	path->reason = pci_domain_nr(out->bus) == pci_domain_nr(in->bus) ?
		       NVME_PEER_REASON_HOST_BRIDGE_UNKNOWN :
		       NVME_PEER_REASON_DIFFERENT_DOMAINS;
	nvmep_path_block(path, out, 0);
	if (in != out)
		nvmep_path_block(path, in, 0);
}

/*
 * Sets verdict and reason of a path through the root complex.  @path lists the
 * ports that redirect; those that discard replace them.
 */
static void nvmep_path_through_host(struct nvme_peer_path *path,
				    struct pci_dev *initiator,
				    struct pci_dev *target)
{
	struct nvme_peer_path blocked = {
		.verdict = NVME_PEER_ROUTE_NONE,
		.reason = NVME_PEER_REASON_ACS_BLOCKED,
	};

	/* Also above a common bridge, where no egress is another port's. */
	if (nvmep_path_is_blocked(&blocked, initiator, NULL,
				  nvmep_acs_translation_block)) {
		*path = blocked;
		return;
	}
	path->verdict = NVME_PEER_ROUTE_HOST_BRIDGE;
	if (nvmep_host_known(initiator, target)) {
		path->reason = NVME_PEER_REASON_HOST_BRIDGE_KNOWN;
		return;
	}
	path->reason = NVME_PEER_REASON_HOST_BRIDGE_ALLOWED;
	switch (READ_ONCE(nvmep_trust)) {
	case NVMEP_TRUST_ALL:
		break;
	case NVMEP_TRUST_WRITES:
		path->verdict = NVME_PEER_ROUTE_HOST_BRIDGE_WRITES;
		break;
	case NVMEP_TRUST_NONE:
		nvmep_path_block_host(path, initiator, target);
		break;
	}
}

/**
 * nvmep_route_through_host() - the path if requests pass the root complex
 * @initiator: function that sends the requests
 * @target: function that is accessed
 * @path: out
 *
 * For a DMA address that an IOMMU translates.  A switch does not decode such an
 * address and routes the request upstream, whatever redirects others.
 */
void nvmep_route_through_host(struct pci_dev *initiator, struct pci_dev *target,
			      struct nvme_peer_path *path)
{
	*path = (struct nvme_peer_path) { };
	nvmep_path_through_host(path, initiator, target);
}

/**
 * nvmep_route_find() - the best path from one function to another
 * @initiator: function that sends the requests
 * @target: function that is accessed
 * @path: out
 *
 * Redirecting ports of both sides block, as in the kernel: the ports above the
 * target redirect completions.  So does the common bridge itself, which may be
 * the root port above both functions.
 */
void nvmep_route_find(struct pci_dev *initiator, struct pci_dev *target,
		      struct nvme_peer_path *path)
{
	struct pci_dev *common;

	*path = (struct nvme_peer_path) {
		.verdict = NVME_PEER_ROUTE_NONE,
		.reason = NVME_PEER_REASON_SAME_FUNCTION,
	};
	if (initiator == target)
		return;

	common = nvmep_common_upstream(initiator, target);
	if (nvmep_path_is_blocked(path, initiator, common, nvmep_acs_block)) {
		path->reason = NVME_PEER_REASON_ACS_BLOCKED;
		return;
	}
	if (common) {
		nvmep_path_find_redirects(path, initiator,
					  pci_upstream_bridge(common));
		nvmep_path_find_redirects(path, target, common);
		if (!path->blocker_count) {
			path->verdict = NVME_PEER_ROUTE_BUS_ADDR;
			path->reason = NVME_PEER_REASON_COMMON_SWITCH;
			return;
		}
	}
	nvmep_path_through_host(path, initiator, target);
}

/**
 * nvmep_route_reason_text() - text of a reason, for log messages
 * @reason: the reason
 *
 * Return: a phrase.
 */
const char *nvmep_route_reason_text(enum nvme_peer_route_reason reason)
{
	static const char * const texts[] = {
		[NVME_PEER_REASON_NONE] = "peer device unknown",
		[NVME_PEER_REASON_COMMON_SWITCH] = "common switch",
		[NVME_PEER_REASON_HOST_BRIDGE_KNOWN] = "known host bridge",
		[NVME_PEER_REASON_HOST_BRIDGE_ALLOWED] =
			"host bridge allowed by the administrator",
		[NVME_PEER_REASON_HOST_BRIDGE_UNKNOWN] =
			"host bridge not known to forward (allow_host_bridge=1 trusts it)",
		[NVME_PEER_REASON_DIFFERENT_DOMAINS] = "different PCI domains",
		[NVME_PEER_REASON_SAME_FUNCTION] = "both ends are the same function",
		[NVME_PEER_REASON_HOST_MEMORY] = "host memory",
		[NVME_PEER_REASON_UNKNOWN_MEMORY] =
			"the memory is in no BAR and not in RAM",
		[NVME_PEER_REASON_EXPORTER_REFUSED] =
			"the exporter does not map it for the controller",
		[NVME_PEER_REASON_ACS_BLOCKED] =
			"a port discards the requests (ACS control bits)",
	};

	static_assert(ARRAY_SIZE(texts) == NVME_PEER_REASON_ACS_BLOCKED + 1);

	if (reason >= ARRAY_SIZE(texts))
		return "unknown";
	return texts[reason];
}

/* --- placement of a mapping ---------------------------------------------- */

/*
 * Some exporters pin to host RAM without reporting it, so the placement is read
 * from the mapping: each DMA address is converted to a physical address and
 * that to the PCI function whose BAR contains it, or to RAM.
 */

static bool nvmep_is_ram(phys_addr_t address, u64 length)
{
	return region_intersects(address, length, IORESOURCE_SYSTEM_RAM,
				 IORES_DESC_NONE) == REGION_INTERSECTS;
}

static phys_addr_t nvmep_bus_to_phys(struct pci_dev *pdev, dma_addr_t address)
{
	struct pci_bus_region region = { .start = address, .end = address };
	struct resource resource = { .flags = IORESOURCE_MEM };

	pcibios_bus_to_resource(pdev->bus, &resource, &region);
	return resource.start;
}

/**
 * struct nvmep_phys_range - a range of physical addresses with one owner
 * @owner: function with the BAR that contains it, with a reference; NULL if
 *	none
 * @ram: the range is host RAM
 * @translated: the DMA address is translated by the controller's IOMMU domain
 * @first: first physical address
 * @last: last physical address
 */
struct nvmep_phys_range {
	struct pci_dev *owner;
	bool ram;
	bool translated;
	phys_addr_t first;
	phys_addr_t last;
};

/*
 * The physical address of a DMA address.  One without a translation in the
 * domain is a PCI bus address: exporters use those below a common switch, and
 * the IOVA allocator reserves the PCI windows.
 */
static phys_addr_t nvmep_dma_to_phys(const struct nvmep_ctrl *ctrl,
				     dma_addr_t address, bool *translated)
{
	phys_addr_t phys = 0;

	if (nvmep_route_translated(ctrl->dev))
		phys = iommu_iova_to_phys(iommu_get_domain_for_dev(ctrl->dev),
					  address);
	*translated = phys != 0;
	return *translated ? phys : nvmep_bus_to_phys(ctrl->pdev, address);
}

/*
 * Finds the function with a memory BAR that contains @phys; takes a reference.
 */
static void nvmep_phys_range_bar(struct nvmep_phys_range *range,
				 phys_addr_t phys)
{
	struct pci_dev *pdev = NULL;
	int bar;

	for_each_pci_dev(pdev) {
		for (bar = 0; bar < PCI_STD_NUM_BARS; bar++) {
			if (!(pci_resource_flags(pdev, bar) & IORESOURCE_MEM) ||
			    phys < pci_resource_start(pdev, bar) ||
			    phys > pci_resource_end(pdev, bar))
				continue;
			range->owner = pdev;
			range->first = pci_resource_start(pdev, bar);
			range->last = pci_resource_end(pdev, bar);
			return;
		}
	}
}

/*
 * Finds the range around @phys.  Host RAM is looked up at once for @length bytes
 * that are known to be contiguous, and by page if only part of them is RAM.
 */
static void nvmep_phys_range_find(struct nvmep_phys_range *range,
				  phys_addr_t phys, u64 length,
				  bool translated)
{
	memset(range, 0, sizeof(*range));
	range->translated = translated;
	range->first = ALIGN_DOWN(phys, PAGE_SIZE);
	range->last = range->first + PAGE_SIZE - 1;
	range->ram = nvmep_is_ram(phys, 1);
	if (!range->ram)
		nvmep_phys_range_bar(range, phys);
	else if (length > PAGE_SIZE && nvmep_is_ram(phys, length))
		range->last = max(range->last, phys + length - 1);
}

/*
 * Does the page at @phys have the same owner as @range?  Updates the bounds of
 * @range to those of the last lookup.
 */
static bool nvmep_phys_range_holds(struct nvmep_phys_range *range,
				   phys_addr_t phys, u64 length,
				   bool translated)
{
	struct nvmep_phys_range here;
	bool same;

	if (translated != range->translated)
		return false;
	if (phys >= range->first && phys <= range->last)
		return true;

	nvmep_phys_range_find(&here, phys, length, translated);
	same = here.owner == range->owner && here.ram == range->ram;
	range->first = here.first;
	range->last = here.last;
	pci_dev_put(here.owner);
	return same;
}

/*
 * Bytes from @dma on that one look-up covers, for an address that an IOMMU
 * translates to @phys.  A large page whose first and last page translate to one
 * aligned range is taken to be contiguous: the kernel maps it by one entry.
 */
static u64 nvmep_translated_step(const struct nvmep_ctrl *ctrl,
				 struct nvmep_phys_range *range,
				 dma_addr_t dma, phys_addr_t phys, u64 left)
{
	const u64 last = PMD_SIZE - PAGE_SIZE;
	bool translated;
	bool large;

	large = left >= PMD_SIZE && IS_ALIGNED(dma | phys, PMD_SIZE) &&
		nvmep_dma_to_phys(ctrl, dma + last, &translated) == phys + last &&
		nvmep_phys_range_holds(range, phys + last, 1, translated);
	return large ? PMD_SIZE : PAGE_SIZE;
}

/*
 * Walks a segment: behind an IOMMU by pages, because translation makes
 * scattered memory look contiguous; else in steps of physically contiguous
 * ranges.  Returns 1 if all of it has the owner of @range, 0 if not, -EINTR,
 * -ESTALE if the exporter invalidated the buffer meanwhile, or -ESHUTDOWN if the
 * driver is being unbound.
 */
static int nvmep_segment_holds(const struct nvmep_buf *buf,
			       const struct nvmep_segment *segment,
			       struct nvmep_phys_range *range)
{
	const struct nvmep_ctrl *ctrl = buf->ctrl;
	u64 done = 0, contiguous;
	phys_addr_t phys;
	bool translated;
	int err;

	while (done < segment->length) {
		phys = nvmep_dma_to_phys(ctrl, segment->dma + done,
					 &translated);
		contiguous = translated ? 1 : segment->length - done;
		if (!nvmep_phys_range_holds(range, phys, contiguous,
					    translated))
			return 0;
		if (translated)
			done += nvmep_translated_step(ctrl, range,
						      segment->dma + done, phys,
						      segment->length - done);
		else
			done += range->last - phys + 1;
		err = nvmep_walk_resched();
		if (err)
			return err;
		if (nvmep_buf_invalid(buf))
			return -ESTALE;
		/* Unbinding waits for this walk. */
		if (READ_ONCE(ctrl->peers->removed))
			return -ESHUTDOWN;
	}
	return 1;
}

/*
 * Finds the owner of all memory of a buffer; @range holds it then.  Returns as
 * nvmep_segment_holds().
 */
static int nvmep_memory_find(const struct nvmep_buf *buf,
			     struct nvmep_phys_range *range)
{
	const struct nvmep_segments *segments = &buf->segments;
	phys_addr_t phys;
	bool translated;
	int holds = 1;
	u32 i;

	/* Unmapping takes this lock: it does not free the IOMMU's tables now. */
	lockdep_assert_held(&buf->lock);

	if (nvmep_buf_invalid(buf))
		return -ESTALE;
	phys = nvmep_dma_to_phys(buf->ctrl, segments->list[0].dma, &translated);
	nvmep_phys_range_find(range, phys, 1, translated);
	for (i = 0; i < segments->count && holds > 0; i++)
		holds = nvmep_segment_holds(buf, &segments->list[i], range);
	if (holds <= 0)
		pci_dev_put(range->owner);
	return holds;
}

/*
 * The exporter chose the path when it mapped the memory; it need not be the
 * best one.  A translated address passes the root complex.  An untranslated one
 * must be routed by a switch below it.
 */
static void nvmep_placement_device(struct nvmep_placement *placement,
				   const struct nvmep_ctrl *ctrl,
				   const struct nvmep_phys_range *range)
{
	struct nvme_peer_path *path = &placement->path;

	placement->owner = nvmep_pci_address(range->owner);
	nvmep_route_find(ctrl->pdev, range->owner, path);
	/* With ATS a switch may route the request. */
	if (path->reason == NVME_PEER_REASON_ACS_BLOCKED)
		return;

	if (range->translated && range->owner != ctrl->pdev)
		nvmep_route_through_host(ctrl->pdev, range->owner, path);
	else if (nvmep_route_translated(ctrl->dev) &&
		 path->verdict != NVME_PEER_ROUTE_BUS_ADDR)
		path->verdict = NVME_PEER_ROUTE_NONE;
}

/**
 * nvmep_buf_phys() - physical address of the first byte of a buffer
 * @buf: the buffer; the caller holds its lock
 *
 * Return: the address, or 0 if the buffer is not mapped any more.
 */
phys_addr_t nvmep_buf_phys(struct nvmep_buf *buf)
{
	bool translated;

	lockdep_assert_held(&buf->lock);

	if (!buf->attach || nvmep_buf_invalid(buf))
		return 0;
	return nvmep_dma_to_phys(buf->ctrl, buf->segments.list[0].dma,
				 &translated);
}

/**
 * nvmep_placement_find() - where does a buffer lie, and is it in reach?
 * @placement: out
 * @buf: the buffer, mapped and not empty
 *
 * An invalidation meanwhile ends the walk; the buffer stays mapped during it.
 *
 * Return: 0; -EINTR after a fatal signal; -ESTALE if the exporter has
 * invalidated the buffer; -ESHUTDOWN if the driver is being unbound.
 */
int nvmep_placement_find(struct nvmep_placement *placement,
			 struct nvmep_buf *buf)
{
	struct nvmep_phys_range range;
	int holds;

	mutex_lock(&buf->lock);
	holds = nvmep_memory_find(buf, &range);
	mutex_unlock(&buf->lock);
	if (holds < 0)
		return holds;

	*placement = (struct nvmep_placement) { };
	/* Segments with several owners have no single answer. */
	if (!holds) {
		nvmep_route_without_device(&placement->path,
					   NVME_PEER_REASON_UNKNOWN_MEMORY);
		return 0;
	}
	if (range.owner)
		nvmep_placement_device(placement, buf->ctrl, &range);
	else
		nvmep_route_without_device(&placement->path, range.ram ?
					   NVME_PEER_REASON_HOST_MEMORY :
					   NVME_PEER_REASON_UNKNOWN_MEMORY);
	pci_dev_put(range.owner);
	return 0;
}
