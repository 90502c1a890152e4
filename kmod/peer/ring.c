// SPDX-License-Identifier: GPL-2.0-only
/*
 * Ring memory.
 *
 * Host rings are real pages, because CUDA pins them with pin_user_pages(), and
 * unmovable, because such a pin is for ever.  They are used by the controller
 * and the peer at once and nobody calls a sync function in between, so a
 * mapping that would bounce is refused.
 *
 * The queue pair takes the controller's mapping away when the controller has
 * deleted the queues; the pages stay for the dma-bufs made of them, which hold
 * the queue pair.  A process that has mapped a page, or a driver that has
 * pinned it, holds the page itself.
 */
#define pr_fmt(fmt) KBUILD_MODNAME ": " fmt

#include <linux/dma-mapping.h>
#include <linux/gfp.h>
#include <linux/iommu.h>
#include <linux/mm.h>
#include <linux/slab.h>

#include "core/ctrl.h"
#include "import.h"
#include "peer.h"
#include "ring.h"
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

	host->peers = ctrl->peers;
	host->count = count;
	for (i = 0; i < count; i++)
		host->pages[i] = first + i;
	nvmep_count(host->peers, NVMEP_OBJECT_PAGES, count);
	return host;
}

/**
 * nvmep_host_pages_free() - let go of host pages
 * @host: the pages; NULL is allowed.  The controller behind host->peers must
 *	still be held
 *
 * A page that a process has mapped or a driver has pinned lives on.
 */
void nvmep_host_pages_free(struct nvmep_host_pages *host)
{
	unsigned int i;

	if (!host)
		return;
	nvmep_count(host->peers, NVMEP_OBJECT_PAGES, -(int)host->count);
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

/**
 * nvmep_ring_init_host() - make a ring of host memory
 * @ring: its @bytes are set, the rest is zero
 * @ctrl: the controller that it is mapped for
 *
 * Return: 0, ENOMEM, or EOPNOTSUPP where the controller's DMA would bounce.
 */
int nvmep_ring_init_host(struct nvmep_ring *ring, struct nvmep_ctrl *ctrl)
{
	struct nvmep_host_pages *host;

	host = nvmep_host_pages_alloc(ctrl, ring->bytes);
	if (IS_ERR(host))
		return PTR_ERR(host);

	ring->host = host;
	ring->dma = dma_map_page(ctrl->dev, host->pages[0], 0,
				 (size_t)host->count << PAGE_SHIFT,
				 DMA_BIDIRECTIONAL);
	if (dma_mapping_error(ctrl->dev, ring->dma))
		return -ENOMEM;
	ring->mapped = true;
	if (nvmep_dma_bounces(ctrl->dev, ring->dma, host->pages[0]))
		return -EOPNOTSUPP;
	return 0;
}

static bool nvmep_ring_contiguous(const struct nvmep_ring *ring,
				  const struct nvmep_segment *segment)
{
	return ring->offset + ring->bytes <= segment->offset + segment->length;
}

/**
 * nvmep_ring_init_buf() - make a ring of a range of an imported buffer
 * @ring: its @bytes and @offset are set, the rest is zero
 * @ctrl: the controller
 * @buf: the buffer; nvmep_buf_claim() was called for this ring
 *
 * nvmep_ring_make_list() has to follow.
 *
 * Return: 0; EINVAL for an offset that is not aligned to a controller page;
 * EMSGSIZE if the ring does not fit; ENOTUNIQ if it is not contiguous and the
 * controller wants it so (CAP.CQR).
 */
int nvmep_ring_init_buf(struct nvmep_ring *ring, struct nvmep_ctrl *ctrl,
			struct nvmep_buf *buf)
{
	const struct nvmep_segment *segment;
	u64 end;

	if (!IS_ALIGNED(ring->offset, ctrl->page_size))
		return -EINVAL;
	if (check_add_overflow(ring->offset, (u64)ring->bytes, &end) ||
	    end > buf->length)
		return -EMSGSIZE;

	segment = nvmep_buf_segment(buf, ring->offset);
	if (NVME_CAP_CQR(ctrl->cap) && !nvmep_ring_contiguous(ring, segment))
		return -ENOTUNIQ;

	ring->dma = segment->dma + (ring->offset - segment->offset);
	ring->buf = buf;
	return 0;
}

/*
 * Fills a PRP list (NVMe base specification 4.3.1): an address for every
 * controller page, but the last entry of a page of the list points to the next
 * one if more than one address is left.
 */
static void nvmep_ring_fill_list(struct nvmep_ring *ring,
				 const struct nvmep_ctrl *ctrl, u32 pages)
{
	const struct nvmep_segment *segment;
	u32 per_page = ctrl->page_size / sizeof(*ring->list);
	u64 offset = ring->offset;
	u32 slot = 0;

	for (; pages; pages--, slot++, offset += ctrl->page_size) {
		if (slot % per_page == per_page - 1 && pages > 1) {
			ring->list[slot] = cpu_to_le64(ring->dma + (slot + 1) *
						       sizeof(*ring->list));
			slot++;
		}
		segment = nvmep_buf_segment(ring->buf, offset);
		ring->list[slot] = cpu_to_le64(segment->dma +
					       (offset - segment->offset));
	}
}

/**
 * nvmep_ring_make_list() - describe a ring that lies in several segments
 * @ring: placed; nothing is done to one that is contiguous
 * @ctrl: the controller
 *
 * Return: 0 or ENOMEM.
 */
int nvmep_ring_make_list(struct nvmep_ring *ring, struct nvmep_ctrl *ctrl)
{
	u32 per_page = ctrl->page_size / sizeof(*ring->list);
	u32 pages = DIV_ROUND_UP(ring->bytes, ctrl->page_size);
	u32 lists;

	if (!ring->buf ||
	    nvmep_ring_contiguous(ring, nvmep_buf_segment(ring->buf,
							  ring->offset)))
		return 0;

	/* Each list page but the last gives one entry to the chain. */
	lists = DIV_ROUND_UP(pages - 1, per_page - 1);
	ring->list_bytes = (size_t)lists * ctrl->page_size;
	ring->list = dma_alloc_coherent(ctrl->dev, ring->list_bytes, &ring->dma,
					GFP_KERNEL);
	if (!ring->list)
		return -ENOMEM;
	nvmep_ring_fill_list(ring, ctrl, pages);
	return 0;
}

/**
 * nvmep_ring_unmap() - take a ring away from the controller
 * @ring: the ring; may be empty or half made
 * @ctrl: the controller, which has deleted the queue or has been stopped
 *
 * Host pages stay until nvmep_host_pages_free(); a buffer is the caller's to
 * unclaim.
 */
void nvmep_ring_unmap(struct nvmep_ring *ring, struct nvmep_ctrl *ctrl)
{
	if (ring->mapped)
		dma_unmap_page(ctrl->dev, ring->dma,
			       (size_t)ring->host->count << PAGE_SHIFT,
			       DMA_BIDIRECTIONAL);
	ring->mapped = false;

	if (ring->list)
		dma_free_coherent(ctrl->dev, ring->list_bytes, ring->list,
				  ring->dma);
	ring->list = NULL;
}

/**
 * nvmep_rings_overlap() - tell whether two rings share memory
 * @a: one ring
 * @b: another; both are placed
 *
 * Two imports of one dma-buf are the same memory, so the dma-buf counts, not
 * the handle.
 *
 * Return: true if they do.
 */
bool nvmep_rings_overlap(const struct nvmep_ring *a, const struct nvmep_ring *b)
{
	if (!a->buf || !b->buf || a->buf->dmabuf != b->buf->dmabuf)
		return false;
	return a->offset < b->offset + b->bytes &&
	       b->offset < a->offset + a->bytes;
}

/**
 * nvmep_ring_on_device() - tell whether a ring lies in device memory
 * @ring: the ring
 *
 * Return: true if it does.
 */
bool nvmep_ring_on_device(const struct nvmep_ring *ring)
{
	return ring->buf && ring->buf->route.verdict != NVME_PEER_ROUTE_SYSTEM;
}
