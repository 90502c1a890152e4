// SPDX-License-Identifier: GPL-2.0-only
/*
 * Rings: the memory of a submission or completion queue, mapped for the
 * controller.
 *
 * The controller and the peer access a ring in host memory at the same time
 * without DMA sync, so a mapping that bounces is refused.  A ring in a buffer
 * uses the DMA addresses of the buffer; it is not mapped again.
 *
 * The queue pair unmaps its rings after the controller has deleted the queues.
 * Host pages stay for their dma-bufs, which hold the queue pair.
 */
#include <linux/dma-mapping.h>
#include <linux/mm.h>

#include "core/ctrl.h"
#include "core/prp_sgl.h"
#include "export.h"
#include "host_pages.h"
#include "import.h"
#include "ring.h"

/**
 * nvmep_ring_init_host() - allocate and map a ring in host memory
 * @ring: @bytes is set, the rest is zero
 * @ctrl: the controller
 *
 * Return: 0, -ENOMEM, or -EOPNOTSUPP if DMA would bounce.
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
		return nvmep_dma_bounces(ctrl->dev) ? -EOPNOTSUPP : -ENOMEM;
	ring->mapped = true;
	if (nvmep_dma_needs_sync(ctrl->dev, ring->dma, host->pages[0]))
		return -EOPNOTSUPP;
	return 0;
}

static bool nvmep_ring_contiguous(const struct nvmep_ring *ring,
				  const struct nvmep_segment *segment)
{
	return ring->offset + ring->bytes <= segment->offset + segment->length;
}

/**
 * nvmep_ring_init_buf() - place a ring in an imported buffer
 * @ring: @bytes and @offset are set, the rest is zero
 * @ctrl: the controller
 * @buf: the buffer, claimed for this ring by nvmep_buf_claim()
 *
 * nvmep_ring_make_list() must follow.
 *
 * Return: 0; -EEXIST if the memory belongs to another queue pair; -EINVAL if
 * the offset is not aligned to a controller page; -ERANGE if the ring exceeds
 * the buffer; -EMSGSIZE if it is not contiguous and the controller requires
 * that (CAP.CQR).
 */
int nvmep_ring_init_buf(struct nvmep_ring *ring, struct nvmep_ctrl *ctrl,
			struct nvmep_buf *buf)
{
	const struct nvmep_segment *segment;
	u64 end;

	/* A ring of its queue pair would not be found: it is not in a buffer. */
	if (nvmep_is_qp_export(buf->dmabuf))
		return -EEXIST;
	if (!IS_ALIGNED(ring->offset, ctrl->page_size))
		return -EINVAL;
	if (check_add_overflow(ring->offset, (u64)ring->bytes, &end) ||
	    end > buf->segments.length)
		return -ERANGE;

	segment = nvmep_segments_find(&buf->segments, ring->offset);
	if (NVMEP_CAP_CQR(ctrl->cap) && !nvmep_ring_contiguous(ring, segment))
		return -EMSGSIZE;

	ring->dma = segment->dma + (ring->offset - segment->offset);
	ring->buf = buf;
	ring->owner = buf->placement.owner;
	return 0;
}

/**
 * nvmep_ring_make_list() - allocate the PRP list of a ring that needs one
 * @ring: the ring; nothing is done if it is contiguous
 * @ctrl: the controller
 *
 * Return: 0 or -ENOMEM.
 */
int nvmep_ring_make_list(struct nvmep_ring *ring, struct nvmep_ctrl *ctrl)
{
	u32 pages = DIV_ROUND_UP(ring->bytes, ctrl->page_size);
	const struct nvmep_segment *segment;

	if (!ring->buf)
		return 0;
	segment = nvmep_segments_find(&ring->buf->segments, ring->offset);
	if (nvmep_ring_contiguous(ring, segment))
		return 0;

	ring->list_bytes = nvmep_prp_list_bytes(ctrl, pages);
	ring->list = dma_alloc_coherent(ctrl->dev, ring->list_bytes, &ring->dma,
					GFP_KERNEL);
	if (!ring->list)
		return -ENOMEM;
	nvmep_prp_list_fill(ctrl, ring->list, ring->dma, segment, ring->offset,
			    pages);
	return 0;
}

/**
 * nvmep_ring_clear() - zero a ring in host memory
 * @ring: the ring of a queue that is not on the controller
 *
 * Does nothing for a ring in a buffer: its owner clears it.
 */
void nvmep_ring_clear(const struct nvmep_ring *ring)
{
	if (ring->host)
		memset(page_address(ring->host->pages[0]), 0, ring->bytes);
}

/**
 * nvmep_ring_unmap() - unmap a ring from the controller
 * @ring: the ring; may be empty or partly set up
 * @ctrl: the controller, which has deleted the queue or was stopped
 *
 * Host pages stay until nvmep_host_pages_free(); the caller unclaims a buffer.
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
 * nvmep_rings_overlap() - do two rings share memory?
 * @a: a ring
 * @b: another ring
 *
 * Compares dma-bufs and not handles: one dma-buf may be imported twice.
 *
 * Return: true if they do.
 */
bool nvmep_rings_overlap(const struct nvmep_ring *a,
			 const struct nvmep_ring *b)
{
	u64 a_start, b_start;

	if (!a->buf || !b->buf || a->buf->dmabuf != b->buf->dmabuf)
		return false;
	a_start = a->buf->offset + a->offset;
	b_start = b->buf->offset + b->offset;
	return a_start < b_start + b->bytes && b_start < a_start + a->bytes;
}
