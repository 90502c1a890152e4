// SPDX-License-Identifier: GPL-2.0-only
/*
 * How two PCI functions reach each other: one verdict with its reason.
 *
 * The kernel knows this too (pci_p2pdma_distance_many()), but a kernel built
 * without CONFIG_PCI_P2PDMA answers "no" to everything, and none says which
 * bridge is in the way.  So the walk is done here, on every kernel: upstream
 * from both functions to the first bridge that they share, looking at the ACS
 * control bits that redirect requests (PCIe base specification 6.12).  A
 * debugfs file of the controller puts both answers side by side.
 *
 *  - Below a shared switch with no redirecting port in between, requests that
 *    carry a PCI bus address turn around inside the switch.
 *  - Otherwise they pass the root complex, which must be known to forward
 *    between its ports: nothing in the configuration space tells, so this is a
 *    list, and the administrator's word.
 *
 * The walk takes no lock: a function that somebody holds a reference to keeps
 * the bridges above it.
 */
#include <linux/iommu.h>
#include <linux/module.h>
#include <linux/pci.h>

#include "route.h"

#ifdef CONFIG_X86
#include <asm/processor.h>
#endif

/* Request redirect, completion redirect, egress control. */
#define NVMEP_ACS_REDIRECT	(PCI_ACS_RR | PCI_ACS_CR | PCI_ACS_EC)

#define NVMEP_AMD_FAMILY_ZEN	0x17

static bool allow_host_bridge;
module_param(allow_host_bridge, bool, 0644);
MODULE_PARM_DESC(allow_host_bridge,
		 "Trust every host bridge to forward requests between its root ports (default: only known ones)");

/*
 * Host bridges of Intel servers that forward between root ports, by the
 * device ID of function 00.0 of the root bus.
 */
static const struct nvmep_host_bridge {
	u16 device;
	bool same_bridge_only;	/* not from one host bridge to another */
} nvmep_intel_host_bridges[] = {
	{ 0x3c00, true },	/* Xeon E5, Core i7 (Sandy Bridge-E) */
	{ 0x3c01, true },
	{ 0x2f00, true },	/* Xeon E5/E7 v3 (Haswell-E) */
	{ 0x2f01, true },
	{ 0x2020, false },	/* Xeon Scalable (Skylake to Cascade Lake) */
	{ 0x2030, false },
	{ 0x2031, false },
	{ 0x2032, false },
	{ 0x2033, false },
	{ 0x09a2, false },	/* Xeon Scalable (Ice Lake and later) */
};

/**
 * nvmep_pci_address() - a function's address as user space sees it
 * @pdev: the function
 *
 * Return: domain << 16 | bus << 8 | device << 3 | function.
 */
u32 nvmep_pci_address(const struct pci_dev *pdev)
{
	return (u32)pci_domain_nr(pdev->bus) << 16 | pdev->bus->number << 8 |
	       pdev->devfn;
}

static void nvmep_route_set(struct nvmep_route *route,
			    enum nvme_peer_route_verdict verdict,
			    enum nvme_peer_route_reason reason)
{
	route->verdict = verdict;
	route->reason = reason;
	route->blocker = NVMEP_NO_PCI_ADDRESS;
	route->blocker_acs = 0;
}

/**
 * nvmep_route_host_memory() - the route to host RAM
 * @route: set to it
 */
void nvmep_route_host_memory(struct nvmep_route *route)
{
	nvmep_route_set(route, NVME_PEER_ROUTE_SYSTEM,
			NVME_PEER_REASON_HOST_MEMORY);
}

/**
 * nvmep_route_unknown_memory() - the route to memory that nobody owns
 * @route: set to it
 */
void nvmep_route_unknown_memory(struct nvmep_route *route)
{
	nvmep_route_set(route, NVME_PEER_ROUTE_NONE,
			NVME_PEER_REASON_UNKNOWN_MEMORY);
}

/**
 * nvmep_route_translated() - does an IOMMU translate this device's addresses?
 * @dev: the device
 *
 * Return: false if its DMA addresses are physical or PCI bus addresses.
 */
bool nvmep_route_translated(struct device *dev)
{
	struct iommu_domain *domain = iommu_get_domain_for_dev(dev);

	return domain && domain->type != IOMMU_DOMAIN_IDENTITY;
}

static u16 nvmep_acs_redirect(struct pci_dev *pdev)
{
	int position = pci_find_ext_capability(pdev, PCI_EXT_CAP_ID_ACS);
	u16 control = 0;

	if (position)
		pci_read_config_word(pdev, position + PCI_ACS_CTRL, &control);
	return control & NVMEP_ACS_REDIRECT;
}

/* The first bridge upstream of both, or one of them if it is above the other. */
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

/*
 * Looks at every function from @pdev up to, but without, @common: requests
 * pass the ports below @common on their way, its own upstream side they do
 * not.  Notes the redirecting one that is nearest to @common, which is the one
 * an administrator would change.
 */
static bool nvmep_path_redirects(struct pci_dev *pdev, struct pci_dev *common,
				 struct nvmep_route *route)
{
	bool redirects = false;
	u16 acs;

	for (; pdev != common; pdev = pci_upstream_bridge(pdev)) {
		acs = nvmep_acs_redirect(pdev);
		if (!acs)
			continue;
		route->blocker = nvmep_pci_address(pdev);
		route->blocker_acs = acs;
		redirects = true;
	}
	return redirects;
}

/* Every AMD processor since Zen forwards between its root ports. */
static bool nvmep_cpu_forwards(void)
{
#ifdef CONFIG_X86
	return boot_cpu_data.x86_vendor == X86_VENDOR_AMD &&
	       boot_cpu_data.x86 >= NVMEP_AMD_FAMILY_ZEN;
#else
	return false;
#endif
}

static const struct nvmep_host_bridge *nvmep_host_bridge_lookup(struct pci_dev *pdev)
{
	struct pci_host_bridge *host = pci_find_host_bridge(pdev->bus);
	const struct nvmep_host_bridge *found = NULL;
	struct pci_dev *root;
	size_t i;

	root = pci_get_slot(host->bus, PCI_DEVFN(0, 0));
	if (!root)
		return NULL;
	for (i = 0; i < ARRAY_SIZE(nvmep_intel_host_bridges); i++)
		if (root->vendor == PCI_VENDOR_ID_INTEL &&
		    root->device == nvmep_intel_host_bridges[i].device)
			found = &nvmep_intel_host_bridges[i];
	pci_dev_put(root);
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

/* The function that stands for the host bridge above @pdev: its root port. */
static u32 nvmep_root_address(struct pci_dev *pdev)
{
	while (pci_upstream_bridge(pdev))
		pdev = pci_upstream_bridge(pdev);
	return nvmep_pci_address(pdev);
}

/**
 * nvmep_route_through_host() - the route if requests pass the root complex
 * @initiator: sends the requests
 * @target: its memory is meant
 * @route: out
 *
 * For a DMA address that an IOMMU translates: a switch does not know such an
 * address as its own and sends the request up, whatever its ACS bits say.
 */
void nvmep_route_through_host(struct pci_dev *initiator, struct pci_dev *target,
			      struct nvmep_route *route)
{
	nvmep_route_set(route, NVME_PEER_ROUTE_HOST_BRIDGE,
			NVME_PEER_REASON_HOST_BRIDGE_KNOWN);
	if (nvmep_host_known(initiator, target))
		return;
	if (READ_ONCE(allow_host_bridge)) {
		route->reason = NVME_PEER_REASON_HOST_BRIDGE_ALLOWED;
		return;
	}
	route->verdict = NVME_PEER_ROUTE_NONE;
	if (pci_domain_nr(initiator->bus) != pci_domain_nr(target->bus)) {
		route->reason = NVME_PEER_REASON_DIFFERENT_DOMAINS;
		return;
	}
	route->reason = NVME_PEER_REASON_HOST_BRIDGE_UNKNOWN;
	route->blocker = nvmep_root_address(initiator);
}

/**
 * nvmep_route_find() - the best route between two functions
 * @initiator: sends the requests
 * @target: its memory is meant
 * @route: out
 *
 * The answer is the same in both directions.  A redirecting port stays named
 * as the blocker where the way through the host bridge is open: it is what
 * keeps the traffic from the shorter way.
 */
void nvmep_route_find(struct pci_dev *initiator, struct pci_dev *target,
		      struct nvmep_route *route)
{
	struct nvmep_route redirect = { };
	struct pci_dev *common;
	bool redirects;

	if (initiator == target) {
		nvmep_route_set(route, NVME_PEER_ROUTE_NONE,
				NVME_PEER_REASON_SAME_FUNCTION);
		return;
	}

	common = nvmep_common_upstream(initiator, target);
	if (!common) {
		nvmep_route_through_host(initiator, target, route);
		return;
	}

	redirects = nvmep_path_redirects(target, common, &redirect);
	redirects |= nvmep_path_redirects(initiator, common, &redirect);
	if (!redirects) {
		nvmep_route_set(route, NVME_PEER_ROUTE_BUS_ADDR,
				NVME_PEER_REASON_COMMON_SWITCH);
		return;
	}

	nvmep_route_through_host(initiator, target, route);
	route->reason = NVME_PEER_REASON_ACS_REDIRECT;
	route->blocker = redirect.blocker;
	route->blocker_acs = redirect.blocker_acs;
}

/**
 * nvmep_route_reason_text() - a reason in words, for the log
 * @reason: the reason
 *
 * Return: text that follows "no route: " or stands alone.
 */
const char *nvmep_route_reason_text(enum nvme_peer_route_reason reason)
{
	static const char * const texts[] = {
		[NVME_PEER_REASON_COMMON_SWITCH] = "common switch",
		[NVME_PEER_REASON_ACS_REDIRECT] =
			"an ACS bit of a switch port sends requests up to the root complex",
		[NVME_PEER_REASON_HOST_BRIDGE_KNOWN] = "known host bridge",
		[NVME_PEER_REASON_HOST_BRIDGE_ALLOWED] =
			"host bridge allowed by the administrator",
		[NVME_PEER_REASON_HOST_BRIDGE_UNKNOWN] =
			"nobody vouches for the host bridge (allow_host_bridge=1 does)",
		[NVME_PEER_REASON_DIFFERENT_DOMAINS] = "different PCI domains",
		[NVME_PEER_REASON_SAME_FUNCTION] = "both ends are one function",
		[NVME_PEER_REASON_HOST_MEMORY] = "host memory",
		[NVME_PEER_REASON_UNKNOWN_MEMORY] =
			"the memory belongs to no PCI function",
	};

	if (reason >= ARRAY_SIZE(texts))
		return "unknown";
	return texts[reason];
}
