// SPDX-License-Identifier: GPL-2.0-only
/*
 * Where memory lies that an exporter has mapped for the controller.
 *
 * Some exporters pin into host RAM without saying so.  So what came back is
 * looked at: each DMA address is turned into a physical one and that into the
 * PCI function whose BAR it lies in, or into RAM.
 */
#include <linux/iommu.h>
#include <linux/ioport.h>
#include <linux/mm.h>
#include <linux/pci.h>

#include "core/ctrl.h"
#include "place.h"
#include "segments.h"

static bool nvmep_is_ram(phys_addr_t address)
{
	return region_intersects(address, 1, IORESOURCE_SYSTEM_RAM,
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
 * struct nvmep_extent - where a piece of memory really lies
 * @owner: function in whose BAR it lies, with a reference; NULL for none
 * @ram: it is host RAM
 * @translated: the DMA address goes through the controller's IOMMU domain
 * @first: physical address from which on all this is true
 * @last: last physical address for which all this is true
 */
struct nvmep_extent {
	struct pci_dev *owner;
	bool ram;
	bool translated;
	phys_addr_t first;
	phys_addr_t last;
};

/*
 * The physical address behind a DMA address.  One that the domain does not
 * know is a bus address: exporters use those below a common switch, and the
 * IOVA allocator keeps clear of PCI's windows.
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

/* The function with a memory BAR that holds @phys, with a reference. */
static void nvmep_extent_bar(struct nvmep_extent *extent, phys_addr_t phys)
{
	struct pci_dev *pdev = NULL;
	int bar;

	for_each_pci_dev(pdev) {
		for (bar = 0; bar < PCI_STD_NUM_BARS; bar++) {
			if (!(pci_resource_flags(pdev, bar) & IORESOURCE_MEM) ||
			    phys < pci_resource_start(pdev, bar) ||
			    phys > pci_resource_end(pdev, bar))
				continue;
			extent->owner = pdev;
			extent->first = pci_resource_start(pdev, bar);
			extent->last = pci_resource_end(pdev, bar);
			return;
		}
	}
}

static void nvmep_extent_find(struct nvmep_extent *extent, phys_addr_t phys,
			      bool translated)
{
	memset(extent, 0, sizeof(*extent));
	extent->translated = translated;
	extent->first = ALIGN_DOWN(phys, PAGE_SIZE);
	extent->last = extent->first + PAGE_SIZE - 1;
	extent->ram = nvmep_is_ram(phys);
	if (!extent->ram)
		nvmep_extent_bar(extent, phys);
}

/*
 * Does the page at @phys lie where @extent says?  Leaves @extent with the
 * bounds of what was looked at last.
 */
static bool nvmep_extent_holds(struct nvmep_extent *extent, phys_addr_t phys,
			       bool translated)
{
	struct nvmep_extent here;
	bool same;

	if (translated != extent->translated)
		return false;
	if (phys >= extent->first && phys <= extent->last)
		return true;

	nvmep_extent_find(&here, phys, translated);
	same = here.owner == extent->owner && here.ram == extent->ram;
	extent->first = here.first;
	extent->last = here.last;
	pci_dev_put(here.owner);
	return same;
}

/*
 * Walks a segment: behind an IOMMU page by page, because it makes scattered
 * memory look contiguous; else by what is contiguous physically.  1 if all of it lies
 * where @extent says, 0 if not, or EINTR.
 */
static int nvmep_segment_holds(const struct nvmep_ctrl *ctrl,
			       const struct nvmep_segment *segment,
			       struct nvmep_extent *extent)
{
	phys_addr_t phys;
	bool translated;
	u64 done = 0;
	int err;

	while (done < segment->length) {
		phys = nvmep_dma_to_phys(ctrl, segment->dma + done,
					 &translated);
		if (!nvmep_extent_holds(extent, phys, translated))
			return 0;
		done += translated ? PAGE_SIZE : extent->last - phys + 1;
		err = nvmep_walk_pause();
		if (err)
			return err;
	}
	return 1;
}

/*
 * The best route between the two functions is not the one that is taken: the
 * exporter chose it when it mapped the memory.  An address that the IOMMU
 * translates passes the root complex; one that it does not know must turn
 * around before.
 */
static void nvmep_place_device(struct nvmep_place *place,
			       const struct nvmep_ctrl *ctrl,
			       const struct nvmep_extent *extent)
{
	struct nvme_peer_path *path = &place->path;

	place->owner = nvmep_pci_address(extent->owner);
	nvmep_route_find(ctrl->pdev, extent->owner, path);

	if (extent->translated && extent->owner != ctrl->pdev)
		nvmep_route_through_host(ctrl->pdev, extent->owner, path);
	else if (nvmep_route_translated(ctrl->dev) &&
		 path->verdict != NVME_PEER_ROUTE_BUS_ADDR)
		path->verdict = NVME_PEER_ROUTE_NONE;
}

/**
 * nvmep_place_find() - where does a mapping lie, and how does the controller
 *	reach it?
 * @place: out
 * @ctrl: the controller that it was mapped for
 * @segments: the mapping, not empty
 *
 * Return: 0, or EINTR for a process that was killed.
 */
int nvmep_place_find(struct nvmep_place *place, const struct nvmep_ctrl *ctrl,
		     const struct nvmep_segments *segments)
{
	struct nvmep_extent extent;
	phys_addr_t phys;
	bool translated;
	int holds = 1;
	u32 i;

	phys = nvmep_dma_to_phys(ctrl, segments->list[0].dma, &translated);
	nvmep_extent_find(&extent, phys, translated);

	*place = (struct nvmep_place) { };
	if (extent.owner)
		nvmep_place_device(place, ctrl, &extent);
	else
		nvmep_route_without_device(&place->path, extent.ram ?
					   NVME_PEER_REASON_HOST_MEMORY :
					   NVME_PEER_REASON_UNKNOWN_MEMORY);

	for (i = 0; i < segments->count && holds > 0; i++)
		holds = nvmep_segment_holds(ctrl, &segments->list[i], &extent);
	pci_dev_put(extent.owner);
	if (holds)
		return min(holds, 0);
	/* Parts of it lie elsewhere: no one answer is true. */
	*place = (struct nvmep_place) { };
	nvmep_route_without_device(&place->path,
				   NVME_PEER_REASON_UNKNOWN_MEMORY);
	return 0;
}
