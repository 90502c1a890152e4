// SPDX-License-Identifier: GPL-2.0-only
/*
 * Rings: the memory of a submission or completion queue, as the controller is
 * told of it.
 *
 * A ring in host memory is used by the controller and the peer at once and
 * nobody calls a sync function in between, so a mapping that would bounce is
 * refused.  One in a buffer is described by the buffer's segments; nothing of
 * it is mapped again.
 *
 * The queue pair takes the controller's mapping away when the controller has
 * deleted the queues; host pages stay for the dma-bufs made of them, which hold
 * the queue pair.
 */
#include <linux/dma-mapping.h>
#include <linux/mm.h>

#include "core/ctrl.h"
#include "hostmem.h"
#include "import.h"
#include "ring.h"

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
 * ERANGE if the ring does not fit; EMSGSIZE if it is not contiguous and the
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
	    end > buf->segments.length)
		return -ERANGE;

	segment = nvmep_segments_find(&buf->segments, ring->offset);
	if (NVME_CAP_CQR(ctrl->cap) && !nvmep_ring_contiguous(ring, segment))
		return -EMSGSIZE;

	ring->dma = segment->dma + (ring->offset - segment->offset);
	ring->buf = buf;
	ring->owner = buf->place.owner;
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
		segment = nvmep_segments_find(&ring->buf->segments, offset);
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
	const struct nvmep_segment *segment;
	u32 lists;

	if (!ring->buf)
		return 0;
	segment = nvmep_segments_find(&ring->buf->segments, ring->offset);
	if (nvmep_ring_contiguous(ring, segment))
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
 * nvmep_ring_clear() - forget the entries of a ring in host memory
 * @ring: the ring, of a queue that is not on the controller
 *
 * Nothing happens to one in a buffer, whose owner clears it.
 */
void nvmep_ring_clear(const struct nvmep_ring *ring)
{
	if (ring->host)
		memset(page_address(ring->host->pages[0]), 0, ring->bytes);
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
 * Two imports of one dma-buf may be the same memory, so the place in the dma-buf
 * counts, not the handle.
 *
 * Return: true if they do.
 */
bool nvmep_rings_overlap(const struct nvmep_ring *a, const struct nvmep_ring *b)
{
	u64 a_start, b_start;

	if (!a->buf || !b->buf || a->buf->dmabuf != b->buf->dmabuf)
		return false;
	a_start = a->buf->offset + a->offset;
	b_start = b->buf->offset + b->offset;
	return a_start < b_start + b->bytes && b_start < a_start + a->bytes;
}
