// SPDX-License-Identifier: GPL-2.0-only
/*
 * Host memory that the controller and peers use at once.
 *
 * Real pages, because CUDA pins them with pin_user_pages(), and unmovable,
 * because such a pin is for ever.  A process that has mapped a page, or a
 * driver that has pinned it, holds the page itself.
 */
#include <linux/dma-mapping.h>
#include <linux/gfp.h>
#include <linux/iommu.h>
#include <linux/mm.h>
#include <linux/slab.h>

#include "core/ctrl.h"
#include "hostmem.h"
#include "peers.h"
#include "route.h"

/* Contiguous pages, each with its own reference count, freed one by one. */
static struct page *nvmep_alloc_contiguous(int node, unsigned int count)
{
	const gfp_t gfp = GFP_KERNEL_ACCOUNT | __GFP_ZERO | __GFP_NOWARN;
	unsigned int order = order_base_2(count);
	struct page *first;
	unsigned int i;

	first = alloc_pages_node(node, gfp, order);
	if (!first)
		return NULL;
	split_page(first, order);
	for (i = count; i < 1U << order; i++)
		__free_page(first + i);
	return first;
}

/**
 * nvmep_host_pages_alloc() - get zeroed memory that peers may map
 * @ctrl: the controller that it is for
 * @bytes: rounded up to whole pages
 *
 * Return: the pages, or an ERR_PTR.
 */
struct nvmep_host_pages *nvmep_host_pages_alloc(struct nvmep_ctrl *ctrl,
						size_t bytes)
{
	unsigned int count = PAGE_ALIGN(bytes) >> PAGE_SHIFT;
	struct nvmep_host_pages *host;
	struct page *first;
	unsigned int i;

	host = kvzalloc(struct_size(host, pages, count), GFP_KERNEL_ACCOUNT);
	if (!host)
		return ERR_PTR(-ENOMEM);

	first = nvmep_alloc_contiguous(dev_to_node(ctrl->dev), count);
	if (!first) {
		kvfree(host);
		return ERR_PTR(-ENOMEM);
	}

	host->objects = &ctrl->peers->objects;
	host->count = count;
	for (i = 0; i < count; i++)
		host->pages[i] = first + i;
	nvmep_objects_add(host->objects, NVMEP_OBJECT_PAGES, count);
	return host;
}

/**
 * nvmep_host_pages_free() - let go of host pages
 * @host: the pages; NULL is allowed.  Their controller must still be held
 *
 * A page that a process has mapped or a driver has pinned lives on.
 */
void nvmep_host_pages_free(struct nvmep_host_pages *host)
{
	unsigned int i;

	if (!host)
		return;
	nvmep_objects_add(host->objects, NVMEP_OBJECT_PAGES, -(int)host->count);
	for (i = 0; i < host->count; i++)
		put_page(host->pages[i]);
	kvfree(host);
}

/**
 * nvmep_dma_bounces() - tell whether a device sees a copy of a page
 * @dev: the device
 * @dma: where the page was mapped for it
 * @page: the page
 *
 * dma_need_sync() alone does not do behind an IOMMU: older kernels say yes for
 * every mapping there.
 *
 * Return: true if @dma leads to a bounce buffer.
 */
bool nvmep_dma_bounces(struct device *dev, dma_addr_t dma, struct page *page)
{
	if (nvmep_route_translated(dev))
		return iommu_iova_to_phys(iommu_get_domain_for_dev(dev), dma) !=
		       page_to_phys(page);
	return dma_need_sync(dev, dma);
}
