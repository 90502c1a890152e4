// SPDX-License-Identifier: GPL-2.0-only
/*
 * Segments: what came of mapping somebody's memory for the controller.
 *
 * A scatter list is read once, into as few contiguous ranges of DMA addresses
 * as there are, which can be searched.
 */
#include <linux/dma-mapping.h>
#include <linux/mm.h>
#include <linux/scatterlist.h>
#include <linux/slab.h>

#include "core/ctrl.h"
#include "route.h"
#include "segments.h"

/*
 * Coalesces the DMA addresses of the mapping.  Called twice: first without
 * room, to count.
 */
static u32 nvmep_segments_fill(struct sg_table *sgt, struct nvmep_segment *list)
{
	struct nvmep_segment now = { };
	struct scatterlist *sg;
	u32 count = 0;
	int i;

	for_each_sgtable_dma_sg(sgt, sg, i) {
		if (now.length && sg_dma_address(sg) == now.dma + now.length) {
			now.length += sg_dma_len(sg);
		} else {
			now.offset += now.length;
			now.dma = sg_dma_address(sg);
			now.length = sg_dma_len(sg);
			count++;
		}
		if (list)
			list[count - 1] = now;
	}
	return count;
}

/* The unit of everything is the controller page, so segments must keep to it. */
static bool nvmep_segments_aligned(const struct nvmep_segments *segments,
				   u32 page_size)
{
	u32 i;

	for (i = 0; i < segments->count; i++)
		if (!IS_ALIGNED(segments->list[i].dma, page_size) ||
		    !IS_ALIGNED(segments->list[i].length, page_size))
			return false;
	return true;
}

/*
 * Nobody syncs between two commands of a peer, so the controller has to see the
 * memory itself.  Behind an IOMMU whole pages never bounce.
 */
static bool nvmep_segments_bounce(const struct nvmep_segments *segments,
				  struct device *dev)
{
	u32 i;

	if (nvmep_route_translated(dev))
		return false;
	for (i = 0; i < segments->count; i++)
		if (dma_need_sync(dev, segments->list[i].dma))
			return true;
	return false;
}

/**
 * nvmep_segments_read() - read a mapping
 * @segments: out; nvmep_segments_free() it, also after an error
 * @ctrl: the controller that it was mapped for
 * @sgt: the mapping, which stays while this runs
 *
 * Return: 0; EINVAL if it is empty or not of whole controller pages;
 * EOPNOTSUPP if the controller's DMA to it bounces; ENOMEM.
 */
int nvmep_segments_read(struct nvmep_segments *segments,
			const struct nvmep_ctrl *ctrl, struct sg_table *sgt)
{
	const struct nvmep_segment *last;

	segments->count = nvmep_segments_fill(sgt, NULL);
	if (!segments->count)
		return -EINVAL;
	segments->list = kvcalloc(segments->count, sizeof(*segments->list),
				  GFP_KERNEL);
	if (!segments->list)
		return -ENOMEM;
	nvmep_segments_fill(sgt, segments->list);

	last = &segments->list[segments->count - 1];
	segments->length = last->offset + last->length;
	if (!nvmep_segments_aligned(segments, ctrl->page_size))
		return -EINVAL;
	return nvmep_segments_bounce(segments, ctrl->dev) ? -EOPNOTSUPP : 0;
}

/**
 * nvmep_segments_free() - forget a mapping
 * @segments: the segments, may be empty
 */
void nvmep_segments_free(struct nvmep_segments *segments)
{
	kvfree(segments->list);
}

/**
 * nvmep_segments_find() - find the segment that holds a byte
 * @segments: the segments
 * @offset: of the byte, less than the mapping's length
 *
 * Return: the segment.
 */
const struct nvmep_segment *
nvmep_segments_find(const struct nvmep_segments *segments, u64 offset)
{
	u32 low = 0;
	u32 high = segments->count;

	while (high - low > 1) {
		u32 middle = low + (high - low) / 2;

		if (segments->list[middle].offset <= offset)
			low = middle;
		else
			high = middle;
	}
	return &segments->list[low];
}
