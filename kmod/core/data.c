// SPDX-License-Identifier: GPL-2.0-only
/*
 * DMA mapping of the data of requests.
 *
 * A single segment, the common case, is mapped by itself.  Several segments are
 * linked into one contiguous IOVA range where an IOMMU and the kernel allow it;
 * else they are mapped as a scatter list.  Ranges of imported buffers are
 * mapped already.  prp_sgl.c then builds the command's data pointers.
 */
#include <linux/dma-mapping.h>

#include "compat.h"
#include "ctrl.h"
#include "data.h"
#include "prp_sgl.h"
#include "request.h"

/**
 * nvmep_data_init() - choose DMA attributes and create the pools of PRP lists
 * @ctrl: controller
 *
 * Return: 0 or -ENOMEM.
 */
int nvmep_data_init(struct nvmep_ctrl *ctrl)
{
	ctrl->dma_attributes = DMA_ATTR_NO_WARN;
	/* With an IOMMU only: the direct mapping needs no such attribute. */
	if (dma_get_merge_boundary(ctrl->dev))
		ctrl->dma_attributes |= NVMEP_DMA_IN_PLACE;
	return nvmep_prp_pools_create(ctrl);
}

/**
 * nvmep_data_exit() - undo nvmep_data_init()
 * @ctrl: controller without requests
 */
void nvmep_data_exit(struct nvmep_ctrl *ctrl)
{
	nvmep_prp_pools_destroy(ctrl);
}

/**
 * nvmep_transfer_limit() - the host's limit on the data of one command
 * @ctrl: controller, its DMA mask is set
 *
 * Bounce buffers (swiotlb=force, confidential guests) may be shorter than what
 * PRP lists can describe; a longer request could never be mapped.
 *
 * Return: bytes.
 */
u32 nvmep_transfer_limit(const struct nvmep_ctrl *ctrl)
{
	return min_t(size_t, NVMEP_MAX_TRANSFER,
		     dma_max_mapping_size(ctrl->dev));
}

static void nvmep_unmap_sg_table(struct nvmep_ctrl *ctrl, struct request *rq)
{
	struct nvmep_data *data = &nvmep_request(rq)->data;

	if (nvmep_dma_need_unmap(ctrl->dev))
		dma_unmap_sg(ctrl->dev, data->table.sgl, data->entries,
			     rq_dma_dir(rq));
	sg_free_table_chained(&data->table, NVMEP_INLINE_SEGMENTS);
	data->entries = 0;
}

/*
 * NVMEP_DMA_IN_PLACE is set only behind an IOMMU, whose mappings must always be
 * undone.
 */
static void nvmep_unmap_segment(struct nvmep_ctrl *ctrl, struct request *rq)
{
	struct nvmep_data *data = &nvmep_request(rq)->data;

	if ((data->attributes & NVMEP_DMA_IN_PLACE) ||
	    nvmep_dma_need_unmap(ctrl->dev))
		dma_unmap_page_attrs(ctrl->dev, data->address, data->length,
				     rq_dma_dir(rq), data->attributes);
	data->length = 0;
}

static void nvmep_unmap_pages(struct nvmep_ctrl *ctrl, struct request *rq)
{
	struct nvmep_data *data = &nvmep_request(rq)->data;

	if (data->list_count)
		nvmep_prp_lists_free(ctrl, data);
	if (data->length) {
		nvmep_unmap_segment(ctrl, rq);
	} else if (data->linked) {
		nvmep_iova_free(ctrl->dev, &data->iova, data->linked,
				rq_dma_dir(rq));
		data->linked = 0;
	} else if (data->entries) {
		nvmep_unmap_sg_table(ctrl, rq);
	}
}

/**
 * struct nvmep_filler - collects segments, into an IOVA range or a scatter list
 * @ctrl: controller
 * @direction: of the DMA
 * @iova: IOVA range that segments are linked into, or NULL for a scatter list
 * @linked: bytes linked into @iova so far
 * @start: physical address of the run that will be linked next
 * @last: scatter list entry that was filled last, NULL for none
 * @next: scatter list entry to fill, NULL at the end
 * @end: physical address after the pending run, or after @last; 0 for none
 * @entries: scatter list entries filled
 */
struct nvmep_filler {
	struct nvmep_ctrl *ctrl;
	enum dma_data_direction direction;
	struct dma_iova_state *iova;
	unsigned int linked;
	phys_addr_t start;
	struct scatterlist *last;
	struct scatterlist *next;
	phys_addr_t end;
	unsigned int entries;
};

static blk_status_t nvmep_link_pending(struct nvmep_filler *filler)
{
	unsigned int length = filler->end - filler->start;

	if (nvmep_iova_link(filler->ctrl->dev, filler->iova, filler->start,
			    filler->linked, length, filler->direction))
		return BLK_STS_RESOURCE;
	filler->linked += length;
	return BLK_STS_OK;
}

/*
 * Segments of merged requests may be adjacent in mid-page.  They are linked as
 * one run, because runs may meet at page boundaries only.
 */
static blk_status_t nvmep_link_segment(struct nvmep_filler *filler,
				       phys_addr_t address, unsigned int length)
{
	blk_status_t status = BLK_STS_OK;

	if (address != filler->end) {
		if (filler->end)
			status = nvmep_link_pending(filler);
		filler->start = address;
	}
	filler->end = address + length;
	return status;
}

/*
 * A segment adjacent to the previous entry is merged into it, but not across a
 * multiple of 4 GiB, the device's segment boundary: nor at 0, the end of none.
 */
static blk_status_t nvmep_add_segment(struct nvmep_filler *filler,
				      phys_addr_t address,
				      const struct bio_vec *segment)
{
	if (address == filler->end && lower_32_bits(address)) {
		filler->last->length += segment->bv_len;
	} else {
		if (WARN_ON_ONCE(!filler->next))
			return BLK_STS_IOERR;
		filler->last = filler->next;
		sg_set_page(filler->last, segment->bv_page, segment->bv_len,
			    segment->bv_offset);
		filler->next = sg_next(filler->last);
		filler->entries++;
	}
	filler->end = address + segment->bv_len;
	return BLK_STS_OK;
}

static phys_addr_t nvmep_segment_address(const struct bio_vec *segment)
{
	return page_to_phys(segment->bv_page) + segment->bv_offset;
}

static blk_status_t nvmep_fill_segment(struct nvmep_filler *filler,
				       const struct bio_vec *segment)
{
	phys_addr_t address = nvmep_segment_address(segment);

	return filler->iova ?
	       nvmep_link_segment(filler, address, segment->bv_len) :
	       nvmep_add_segment(filler, address, segment);
}

/* Segment @i of a command, clamped to the @left bytes that remain. */
static struct bio_vec nvmep_bvec_at(const struct nvmep_bvecs *bvecs,
				    unsigned int i, unsigned int left)
{
	struct bio_vec bvec = bvecs->vec[i];

	if (!i) {
		bvec.bv_offset += bvecs->skip;
		bvec.bv_len -= bvecs->skip;
	}
	bvec.bv_len = min(bvec.bv_len, left);
	return bvec;
}

static blk_status_t nvmep_fill_bvecs(struct nvmep_filler *filler,
				     const struct nvmep_bvecs *bvecs)
{
	unsigned int i, left = bvecs->length;
	blk_status_t status = BLK_STS_OK;
	struct bio_vec bvec;

	for (i = 0; i < bvecs->count && !status; i++) {
		bvec = nvmep_bvec_at(bvecs, i, left);
		status = nvmep_fill_segment(filler, &bvec);
		left -= bvec.bv_len;
	}
	return status;
}

static blk_status_t nvmep_fill_bios(struct nvmep_filler *filler,
				    struct request *rq)
{
	struct req_iterator iterator;
	struct bio_vec segment;
	blk_status_t status;

	rq_for_each_bvec(segment, rq, iterator) {
		status = nvmep_fill_segment(filler, &segment);
		if (status)
			return status;
	}
	return BLK_STS_OK;
}

static blk_status_t nvmep_fill(struct nvmep_filler *filler, struct request *rq)
{
	struct nvmep_request *req = nvmep_request(rq);

	if (req->flags & NVMEP_REQUEST_BVECS)
		return nvmep_fill_bvecs(filler, &req->data.bvecs);
	return nvmep_fill_bios(filler, rq);
}

/* Links all segments into one IOVA range. */
static blk_status_t nvmep_map_linked(struct nvmep_ctrl *ctrl,
				     struct request *rq, unsigned int bytes,
				     struct nvmep_dma_iter *iter)
{
	struct nvmep_data *data = &nvmep_request(rq)->data;
	struct nvmep_filler filler = {
		.ctrl = ctrl,
		.direction = rq_dma_dir(rq),
		.iova = &data->iova,
	};
	blk_status_t status = nvmep_fill(&filler, rq);

	if (!status)
		status = nvmep_link_pending(&filler);
	if (!status && nvmep_iova_sync(ctrl->dev, &data->iova, bytes))
		status = BLK_STS_RESOURCE;
	if (status) {
		nvmep_iova_free(ctrl->dev, &data->iova, filler.linked,
				filler.direction);
		return status;
	}
	data->linked = bytes;
	*iter = (struct nvmep_dma_iter){
		.address = data->iova.addr,
		.left = bytes,
	};
	return BLK_STS_OK;
}

static blk_status_t nvmep_map_sg_table(struct nvmep_ctrl *ctrl,
				       struct request *rq)
{
	struct nvmep_data *data = &nvmep_request(rq)->data;
	struct nvmep_filler filler = { .next = data->table.sgl };
	blk_status_t status = nvmep_fill(&filler, rq);

	if (status)
		return status;
	sg_mark_end(filler.last);
	if (!dma_map_sg_attrs(ctrl->dev, data->table.sgl, filler.entries,
			      rq_dma_dir(rq), DMA_ATTR_NO_WARN))
		return BLK_STS_RESOURCE;
	data->entries = filler.entries;
	return BLK_STS_OK;
}

static blk_status_t nvmep_map_sg(struct nvmep_ctrl *ctrl,
				 struct request *rq, unsigned int segments,
				 struct nvmep_dma_iter *iter)
{
	struct nvmep_data *data = &nvmep_request(rq)->data;
	blk_status_t status;

	data->table.sgl = data->inline_segments;
	if (sg_alloc_table_chained(&data->table, segments,
				   data->inline_segments,
				   NVMEP_INLINE_SEGMENTS))
		return BLK_STS_RESOURCE;
	status = nvmep_map_sg_table(ctrl, rq);
	if (status)
		sg_free_table_chained(&data->table, NVMEP_INLINE_SEGMENTS);
	else
		nvmep_dma_iter_sg(iter, data->table.sgl);
	return status;
}

/* Sets the command's data pointers; on error the data is unmapped again. */
static blk_status_t nvmep_describe(struct nvmep_ctrl *ctrl, struct request *rq,
				   struct nvmep_dma_iter *iter,
				   unsigned int bytes)
{
	blk_status_t status = nvmep_build_pointers(ctrl, rq, iter, bytes);

	if (status)
		nvmep_unmap_pages(ctrl, rq);
	return status;
}

/* A single segment of more than two pages. */
static noinline blk_status_t nvmep_describe_long(struct nvmep_ctrl *ctrl,
						 struct request *rq)
{
	const struct nvmep_data *data = &nvmep_request(rq)->data;
	struct nvmep_dma_iter iter = {
		.address = data->address,
		.left = data->length,
	};

	return nvmep_describe(ctrl, rq, &iter, data->length);
}

static __always_inline bool nvmep_map_segment_by(struct nvmep_ctrl *ctrl,
						 struct request *rq,
						 const struct bio_vec *segment,
						 unsigned int attributes)
{
	struct nvmep_data *data = &nvmep_request(rq)->data;

	data->attributes = attributes;
	data->address = dma_map_bvec(ctrl->dev, segment, rq_dma_dir(rq),
				     attributes);
	return !dma_mapping_error(ctrl->dev, data->address);
}

/*
 * NVMEP_DMA_IN_PLACE fails if the segment needs a bounce buffer (an untrusted
 * device must not reach the rest of a page) or the device is not coherent: map
 * without it.
 */
static noinline bool nvmep_map_segment_bounced(struct nvmep_ctrl *ctrl,
					       struct request *rq,
					       const struct bio_vec *segment)
{
	return ctrl->dma_attributes & NVMEP_DMA_IN_PLACE &&
	       nvmep_map_segment_by(ctrl, rq, segment, DMA_ATTR_NO_WARN);
}

/* The common case: a single segment, and if it is short, no PRP list. */
static blk_status_t nvmep_map_segment(struct nvmep_ctrl *ctrl,
				      struct request *rq,
				      const struct bio_vec *segment)
{
	struct nvmep_request *req = nvmep_request(rq);
	struct nvmep_data *data = &req->data;

	if (!nvmep_map_segment_by(ctrl, rq, segment, ctrl->dma_attributes) &&
	    !nvmep_map_segment_bounced(ctrl, rq, segment))
		return BLK_STS_RESOURCE;
	data->length = segment->bv_len;
	if (nvmep_set_prps(ctrl, req, data->address, data->length))
		return BLK_STS_OK;
	return nvmep_describe_long(ctrl, rq);
}

/* Several segments, @bytes in all; noinline: keep the common case short. */
static noinline blk_status_t nvmep_map_segments(struct nvmep_ctrl *ctrl,
						struct request *rq,
						unsigned int segments,
						const struct bio_vec *first,
						unsigned int bytes)
{
	struct nvmep_data *data = &nvmep_request(rq)->data;
	struct nvmep_dma_iter iter;
	blk_status_t status;

	if (nvmep_iova_alloc(ctrl->dev, &data->iova,
			     nvmep_segment_address(first), bytes))
		status = nvmep_map_linked(ctrl, rq, bytes, &iter);
	else
		status = nvmep_map_sg(ctrl, rq, segments, &iter);
	if (status)
		return status;
	return nvmep_describe(ctrl, rq, &iter, bytes);
}

/*
 * Requests that the block layer has merged may be one range of memory, which
 * needs no scatter list.  Sets the length of @first, or returns false at the
 * first gap.
 */
static bool nvmep_join_segments(struct request *rq, struct bio_vec *first)
{
	phys_addr_t start = nvmep_segment_address(first), end = start;
	struct req_iterator iterator;
	struct bio_vec segment;

	rq_for_each_bvec(segment, rq, iterator) {
		if (nvmep_segment_address(&segment) != end)
			return false;
		end += segment.bv_len;
	}
	first->bv_len = end - start;
	return true;
}

static blk_status_t nvmep_map_pages(struct nvmep_ctrl *ctrl,
				    struct request *rq, unsigned int segments)
{
	struct bio_vec first = req_bvec(rq);

	if (segments == 1 || nvmep_join_segments(rq, &first))
		return nvmep_map_segment(ctrl, rq, &first);
	return nvmep_map_segments(ctrl, rq, segments, &first,
				  blk_rq_payload_bytes(rq));
}

/* For trace events of the block layer: the data of the request has no bio. */
static void nvmep_set_traced_length(struct request *rq, unsigned int bytes)
{
	rq->__data_len = bytes;
}

static blk_status_t nvmep_map_bvecs(struct nvmep_ctrl *ctrl,
				    struct request *rq)
{
	const struct nvmep_bvecs *bvecs = &nvmep_request(rq)->data.bvecs;
	struct bio_vec first = nvmep_bvec_at(bvecs, 0, bvecs->length);

	nvmep_set_traced_length(rq, bvecs->length);
	if (bvecs->count == 1)
		return nvmep_map_segment(ctrl, rq, &first);
	return nvmep_map_segments(ctrl, rq, bvecs->count, &first,
				  bvecs->length);
}

/* A range of an imported buffer, which is mapped already. */
static blk_status_t nvmep_map_dma_range(struct nvmep_ctrl *ctrl,
					struct request *rq)
{
	const struct nvmep_dma_range *range = &nvmep_request(rq)->data.range;
	struct nvmep_dma_iter iter;

	nvmep_set_traced_length(rq, range->length);
	nvmep_dma_iter_segment(&iter, range->segment,
			       range->offset - range->segment->offset);
	return nvmep_describe(ctrl, rq, &iter, range->length);
}

static blk_status_t nvmep_map_metadata(struct nvmep_ctrl *ctrl,
				       struct request *rq)
{
	struct nvmep_request *req = nvmep_request(rq);
	struct nvmep_data *data = &req->data;

	data->metadata_dma = dma_map_single(ctrl->dev, data->metadata,
					    data->metadata_length,
					    rq_dma_dir(rq));
	if (dma_mapping_error(ctrl->dev, data->metadata_dma))
		return BLK_STS_RESOURCE;
	req->sqe.common.metadata = cpu_to_le64(data->metadata_dma);
	return BLK_STS_OK;
}

/**
 * nvmep_data_map() - map a request's data and set its command's data pointers
 * @ctrl: controller
 * @rq: request
 *
 * Return: BLK_STS_OK; BLK_STS_RESOURCE if a retry may succeed; BLK_STS_IOERR
 * for data that PRP entries cannot describe.
 */
blk_status_t nvmep_data_map(struct nvmep_ctrl *ctrl, struct request *rq)
{
	unsigned int segments = blk_rq_nr_phys_segments(rq);
	blk_status_t status = BLK_STS_OK;

	if (segments)
		status = nvmep_map_pages(ctrl, rq, segments);
	else if (nvmep_request(rq)->flags & NVMEP_REQUEST_BVECS)
		status = nvmep_map_bvecs(ctrl, rq);
	else if (nvmep_request(rq)->flags & NVMEP_REQUEST_DMA_RANGE)
		status = nvmep_map_dma_range(ctrl, rq);
	if (status || !nvmep_request(rq)->data.metadata_length)
		return status;
	status = nvmep_map_metadata(ctrl, rq);
	if (status)
		nvmep_unmap_pages(ctrl, rq);
	return status;
}

/**
 * nvmep_data_unmap() - undo nvmep_data_map()
 * @ctrl: controller
 * @rq: request that has completed or was cancelled: no DMA to its data is
 *	possible
 */
void nvmep_data_unmap(struct nvmep_ctrl *ctrl, struct request *rq)
{
	struct nvmep_data *data = &nvmep_request(rq)->data;

	nvmep_unmap_pages(ctrl, rq);
	if (data->metadata_length)
		dma_unmap_single(ctrl->dev, data->metadata_dma,
				 data->metadata_length, rq_dma_dir(rq));
}
