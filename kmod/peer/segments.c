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
#include <linux/sched/signal.h>
#include <linux/slab.h>

#include "core/ctrl.h"
#include "route.h"
#include "segments.h"

/**
 * nvmep_walk_pause() - between two steps of a walk as long as somebody's memory
 *
 * Others get the CPU.  A signal that does not kill has time until the answer: an
 * interrupted import would begin again from the front.
 *
 * Return: 0, or EINTR for a process that was killed.
 */
int nvmep_walk_pause(void)
{
	cond_resched();
	return fatal_signal_pending(current) ? -EINTR : 0;
}

/*
 * Coalesces the DMA addresses of the mapping from byte @first up to @end.  Called
 * twice: first without room, to count.
 */
static int nvmep_segments_fill(struct nvmep_segments *segments,
			       struct sg_table *sgt, u64 first, u64 end)
{
	struct nvmep_segment now = { };
	struct scatterlist *sg;
	u64 begin, stop, at = 0;
	dma_addr_t dma;
	int i, err = 0;

	segments->count = 0;
	for_each_sgtable_dma_sg(sgt, sg, i) {
		err = nvmep_walk_pause();
		if (err)
			break;
		begin = max(at, first);
		dma = sg_dma_address(sg) + (begin - at);
		at += sg_dma_len(sg);
		stop = min(at, end);
		if (begin >= stop)
			continue;
		if (now.length && dma == now.dma + now.length) {
			now.length += stop - begin;
		} else {
			now.offset += now.length;
			now.dma = dma;
			now.length = stop - begin;
			segments->count++;
		}
		if (segments->list)
			segments->list[segments->count - 1] = now;
	}
	segments->length = now.offset + now.length;
	return err;
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
 * nvmep_segments_read() - read a part of a mapping
 * @segments: out; nvmep_segments_free() it, also after an error
 * @ctrl: the controller that it was mapped for
 * @sgt: the mapping, which stays while this runs
 * @offset: byte of the mapping that the part begins with
 * @length: bytes of the part, 0 up to the end of the mapping.  A part that goes
 *	round holds nothing, so it is not as long as it was to be
 *
 * Return: 0; EINVAL if it is empty or not of whole controller pages; ERANGE if the
 * mapping ends before the part does; EOPNOTSUPP if the controller's DMA to it
 * bounces; ENOMEM; EINTR for a process that was killed.
 */
int nvmep_segments_read(struct nvmep_segments *segments,
			const struct nvmep_ctrl *ctrl, struct sg_table *sgt,
			u64 offset, u64 length)
{
	u64 end = length ? offset + length : U64_MAX;
	int err;

	err = nvmep_segments_fill(segments, sgt, offset, end);
	if (err)
		return err;
	if ((offset && !segments->count) ||
	    (length && segments->length != length))
		return -ERANGE;
	if (!segments->count)
		return -EINVAL;
	segments->list = kvcalloc(segments->count, sizeof(*segments->list),
				  GFP_KERNEL);
	if (!segments->list)
		return -ENOMEM;
	err = nvmep_segments_fill(segments, sgt, offset, end);
	if (err)
		return err;
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
