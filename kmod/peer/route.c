// SPDX-License-Identifier: GPL-2.0-only
/*
 * How requests get from one PCI function to another: one verdict with its reason,
 * and every port that is in the way.
 *
 * The kernel knows this too (pci_p2pdma_distance_many()), but a kernel built
 * without CONFIG_PCI_P2PDMA answers "no" to everything, and none says which
 * ports are in the way.  So the walk is done here, on every kernel: upstream
 * from both functions to the first bridge that they share, looking at the ACS
 * control bits that redirect requests (PCIe base specification 6.12).  A
 * debugfs file of the controller puts both answers side by side.
 *
 *  - Below a shared switch with no redirecting port in between, requests that
 *    carry a PCI bus address turn around inside the switch.
 *  - Otherwise they pass the root complex, which must be known to forward
 *    between its ports: nothing in the configuration space tells, so this is a
 *    list, and the administrator's word.  Some forward writes only.
 *
 * The walk takes no lock: a function that somebody holds a reference to keeps
 * the bridges above it.
 */
#include <linux/iommu.h>
#include <linux/module.h>
#include <linux/pci.h>
#include <linux/pci-p2pdma.h>

#include "route.h"

#ifdef CONFIG_X86
#include <asm/processor.h>
#endif

/* Request redirect, completion redirect, egress control. */
#define NVMEP_ACS_REDIRECT	(PCI_ACS_RR | PCI_ACS_CR | PCI_ACS_EC)

#define NVMEP_AMD_FAMILY_ZEN	0x17
#define NVMEP_VENDOR_GOOGLE	0x1ae0

/**
 * enum nvmep_trust - what the administrator says of host bridges
 * @NVMEP_TRUST_NONE: nothing
 * @NVMEP_TRUST_ALL: they forward between their root ports
 * @NVMEP_TRUST_WRITES: they do so with writes, but not with reads
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
		 "Trust every host bridge to forward requests between its root ports (default: only known ones); 'writes': to forward writes, but not reads");

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
	/* Every processor of Google's */
	{ NVMEP_VENDOR_GOOGLE, 0x0000, 0xffff, false },
	/* Processors of NVIDIA's: the root ports */
	{ PCI_VENDOR_ID_NVIDIA, 0x2f95, 0x2f98, false },
};

/**
 * nvmep_pci_address() - a function's address as user space sees it
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
 * nvmep_pci_get() - the function at an address
 * @address: as nvmep_pci_address() gives it
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
 * nvmep_route_without_device() - the route to what lies in no PCI function
 * @path: set to it
 * @reason: what is known instead; host memory is reached by every device
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
 * nvmep_route_kernel_distance() - what the kernel's own code says of a route
 * @provider: its memory or registers are meant
 * @client: sends the requests
 *
 * The kernel notes the answer and maps by it until it is asked again.
 *
 * Return: hops; negative for no route, and always without CONFIG_PCI_P2PDMA.
 */
int nvmep_route_kernel_distance(struct pci_dev *provider, struct device *client)
{
	return pci_p2pdma_distance_many(provider, &client, 1, false);
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

/* One more port in the way; all are counted, the first are named. */
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

/*
 * Looks at every function from @pdev up to, but without, @common: requests
 * pass the ports below @common on their way, its own upstream side they do
 * not.
 */
static void nvmep_path_redirects(struct nvme_peer_path *path,
				 struct pci_dev *pdev, struct pci_dev *common)
{
	u16 acs;

	for (; pdev != common; pdev = pci_upstream_bridge(pdev)) {
		acs = nvmep_acs_redirect(pdev);
		if (acs)
			nvmep_path_block(path, pdev, acs);
	}
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

/* Takes the first function only; the walk holds the lock of the list. */
static int nvmep_note_first(struct pci_dev *first, void *noted)
{
	u16 vendor = first->vendor;
	u16 device = first->device;
	size_t i;

	/* Where there is no host bridge at 00.0, a root port says what it is. */
	if (first->devfn != PCI_DEVFN(0, 0) &&
	    pci_pcie_type(first) != PCI_EXP_TYPE_ROOT_PORT)
		return 1;
	for (i = 0; i < ARRAY_SIZE(nvmep_host_bridges); i++)
		if (vendor == nvmep_host_bridges[i].vendor &&
		    device >= nvmep_host_bridges[i].first &&
		    device <= nvmep_host_bridges[i].last)
			*(const struct nvmep_host_bridge **)noted =
				&nvmep_host_bridges[i];
	return 1;
}

static const struct nvmep_host_bridge *nvmep_host_bridge_lookup(struct pci_dev *pdev)
{
	const struct nvmep_host_bridge *found = NULL;

	pci_walk_bus(pci_find_host_bridge(pdev->bus)->bus, nvmep_note_first,
		     &found);
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
static struct pci_dev *nvmep_root_port(struct pci_dev *pdev)
{
	while (pci_upstream_bridge(pdev))
		pdev = pci_upstream_bridge(pdev);
	return pdev;
}

/* Nobody vouches for what lies between the two root ports. */
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

/* Verdict and reason for the way through the root complex. */
static void nvmep_path_through_host(struct nvme_peer_path *path,
				    struct pci_dev *initiator,
				    struct pci_dev *target)
{
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
 * nvmep_route_through_host() - the route if requests pass the root complex
 * @initiator: sends the requests
 * @target: its memory is meant
 * @path: out
 *
 * For a DMA address that an IOMMU translates: a switch does not know such an
 * address as its own and sends the request up, whatever its ACS bits say.
 */
void nvmep_route_through_host(struct pci_dev *initiator, struct pci_dev *target,
			      struct nvme_peer_path *path)
{
	*path = (struct nvme_peer_path) { };
	nvmep_path_through_host(path, initiator, target);
}

/**
 * nvmep_route_find() - the best route from one function to another
 * @initiator: sends the requests
 * @target: its memory is meant
 * @path: out
 *
 * A port that redirects requests counts whichever way they go, as it does for
 * the kernel: what the bits of the receiver's ports redirect are the answers.
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
	if (common) {
		nvmep_path_redirects(path, initiator, common);
		nvmep_path_redirects(path, target, common);
		if (!path->blocker_count) {
			path->verdict = NVME_PEER_ROUTE_BUS_ADDR;
			path->reason = NVME_PEER_REASON_COMMON_SWITCH;
			return;
		}
	}
	nvmep_path_through_host(path, initiator, target);
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
		[NVME_PEER_REASON_NONE] = "no device to ask for",
		[NVME_PEER_REASON_COMMON_SWITCH] = "common switch",
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
		[NVME_PEER_REASON_EXPORTER_REFUSED] =
			"the exporter does not let the controller have it",
	};

	static_assert(ARRAY_SIZE(texts) == NVME_PEER_REASON_EXPORTER_REFUSED + 1);

	if (reason >= ARRAY_SIZE(texts))
		return "unknown";
	return texts[reason];
}
