// SPDX-License-Identifier: GPL-2.0-only
/*
 * Data pointers: turns the pages of a request into PRP entries, or one piece of many
 * pages into an SGL descriptor.
 *
 * The first entry may start anywhere in a page, every other one is a page
 * (base specification 4.1.1); the queues' virtual boundary makes the block
 * layer build requests that fit.  With two entries the second lies in the
 * command; with more, the command points to a list, and the last entry of a
 * full list page points to the next page.  Most lists are short, and come from a
 * pool of their own.
 */
#include <linux/dma-mapping.h>
#include <linux/dmapool.h>

#include "compat.h"
#include "ctrl.h"
#include "data.h"
#include "request.h"

/**
 * nvmep_data_init() - make room for PRP lists
 * @ctrl: controller
 *
 * Return: 0 or -ENOMEM.
 */
int nvmep_data_init(struct nvmep_ctrl *ctrl)
{
	size_t small = NVMEP_PRPS_PER_SMALL_LIST * sizeof(__le64);

	ctrl->dma_attributes = DMA_ATTR_NO_WARN;
	/* Without an IOMMU the direct mapping of the kernel says where things are. */
	if (dma_get_merge_boundary(ctrl->dev))
		ctrl->dma_attributes |= NVMEP_DMA_IN_PLACE;
	ctrl->prp_pool = dma_pool_create("nvmep prp", ctrl->dev,
					 NVMEP_PRPS_PER_LIST * sizeof(__le64),
					 ctrl->page_size, 0);
	ctrl->prp_small_pool = dma_pool_create("nvmep prp small", ctrl->dev,
					       small, small, 0);
	if (ctrl->prp_pool && ctrl->prp_small_pool)
		return 0;
	nvmep_data_exit(ctrl);
	return -ENOMEM;
}

/**
 * nvmep_data_exit() - undo nvmep_data_init()
 * @ctrl: controller without requests
 */
void nvmep_data_exit(struct nvmep_ctrl *ctrl)
{
	dma_pool_destroy(ctrl->prp_small_pool);
	dma_pool_destroy(ctrl->prp_pool);
}

/**
 * nvmep_transfer_limit() - most bytes of one command, whatever the controller takes
 * @ctrl: controller, its DMA mask is set
 *
 * Bounce buffers (swiotlb=force, confidential guests) are shorter than what PRP
 * lists describe; a longer request could never be mapped.
 *
 * Return: bytes.
 */
u32 nvmep_transfer_limit(const struct nvmep_ctrl *ctrl)
{
	return min_t(size_t, NVMEP_MAX_TRANSFER,
		     dma_max_mapping_size(ctrl->dev));
}

/*
 * A place in what was mapped: in a scatter list, in an array of segments, or in a piece
 * of its own, which has neither.
 */
struct nvmep_cursor {
	struct scatterlist *sg;
	const struct nvmep_segment *segment;
	dma_addr_t address;
	unsigned int left;
};

static void nvmep_cursor_init(struct nvmep_cursor *cursor,
			      struct scatterlist *sg)
{
	*cursor = (struct nvmep_cursor){
		.sg = sg,
		.address = sg_dma_address(sg),
		.left = sg_dma_len(sg),
	};
}

/* At byte @skip of a segment, of which no command needs more than it can move. */
static void nvmep_cursor_enter(struct nvmep_cursor *cursor,
			       const struct nvmep_segment *segment, u64 skip)
{
	*cursor = (struct nvmep_cursor){
		.segment = segment,
		.address = segment->dma + skip,
		.left = min_t(u64, segment->length - skip, NVMEP_MAX_TRANSFER),
	};
}

/* False where nothing follows.  Segments follow as far as the command reaches. */
static bool nvmep_cursor_next(struct nvmep_cursor *cursor)
{
	if (cursor->segment) {
		nvmep_cursor_enter(cursor, cursor->segment + 1, 0);
		return true;
	}
	if (cursor->sg)
		cursor->sg = sg_next(cursor->sg);
	if (!cursor->sg)
		return false;
	nvmep_cursor_init(cursor, cursor->sg);
	return true;
}

/*
 * False where the list ends, or where a piece ends or starts in mid-page: PRP
 * entries cannot say that.
 */
static bool nvmep_cursor_advance(struct nvmep_cursor *cursor,
				 unsigned int bytes, u32 page_size)
{
	if (bytes > cursor->left)
		return false;
	if (bytes < cursor->left) {
		cursor->address += bytes;
		cursor->left -= bytes;
	} else if (!nvmep_cursor_next(cursor)) {
		return false;
	}
	return IS_ALIGNED(cursor->address, page_size);
}

static struct dma_pool *nvmep_list_pool(struct nvmep_ctrl *ctrl,
					const struct nvmep_data *data)
{
	return data->list_small ? ctrl->prp_small_pool : ctrl->prp_pool;
}

static __le64 *nvmep_list_add(struct nvmep_ctrl *ctrl, struct nvmep_data *data,
			      dma_addr_t *dma)
{
	__le64 *list;

	if (WARN_ON_ONCE(data->list_count == NVMEP_MAX_LISTS))
		return NULL;
	list = dma_pool_alloc(nvmep_list_pool(ctrl, data), GFP_ATOMIC, dma);
	if (list)
		data->lists[data->list_count++] = list;
	return list;
}

static void nvmep_lists_free(struct nvmep_ctrl *ctrl, struct nvmep_data *data)
{
	struct dma_pool *pool = nvmep_list_pool(ctrl, data);
	dma_addr_t dma = data->list_dma, next = 0;
	unsigned int i;

	for (i = 0; i < data->list_count; i++) {
		/* A small list is alone, and has no such entry. */
		if (i + 1 < data->list_count)
			next = le64_to_cpu(data->lists[i][NVMEP_PRPS_PER_LIST - 1]);
		dma_pool_free(pool, data->lists[i], dma);
		dma = next;
	}
	data->list_count = 0;
}

/* Describes the @bytes from @cursor on, a page each. */
static blk_status_t nvmep_build_lists(struct nvmep_ctrl *ctrl,
				      struct nvmep_data *data,
				      struct nvmep_cursor *cursor,
				      unsigned int bytes)
{
	unsigned int entry = 0, step;
	__le64 *list, *full;
	dma_addr_t dma;

	data->list_small = bytes <= NVMEP_PRPS_PER_SMALL_LIST * ctrl->page_size;
	list = nvmep_list_add(ctrl, data, &data->list_dma);
	if (!list)
		return BLK_STS_RESOURCE;
	for (;;) {
		if (entry == NVMEP_PRPS_PER_LIST) {
			full = list;
			list = nvmep_list_add(ctrl, data, &dma);
			if (!list)
				return BLK_STS_RESOURCE;
			list[0] = full[NVMEP_PRPS_PER_LIST - 1];
			full[NVMEP_PRPS_PER_LIST - 1] = cpu_to_le64(dma);
			entry = 1;
		}
		list[entry++] = cpu_to_le64(cursor->address);
		step = min(bytes, ctrl->page_size);
		bytes -= step;
		if (!bytes)
			return BLK_STS_OK;
		if (!nvmep_cursor_advance(cursor, step, ctrl->page_size))
			return BLK_STS_IOERR;
	}
}

/* Two PRP entries, or one, say where a piece is that no more pages have a part of. */
static bool nvmep_build_piece(const struct nvmep_ctrl *ctrl,
			      struct nvmep_request *req, dma_addr_t address,
			      unsigned int bytes)
{
	unsigned int first = ctrl->page_size - (address & (ctrl->page_size - 1));

	if (bytes > first + ctrl->page_size)
		return false;
	req->sqe.flags = 0;
	req->sqe.prp1 = cpu_to_le64(address);
	req->sqe.prp2 = bytes > first ? cpu_to_le64(address + first) : 0;
	return true;
}

/*
 * One piece that a PRP list would be needed for: a data block descriptor (base
 * specification 4.1.2.1) says it in the command itself.  The length is in the low half
 * of where the second PRP entry would be, and the type, 0, in its upmost byte.
 */
static void nvmep_build_sgl(struct nvmep_request *req, dma_addr_t address,
			    unsigned int bytes)
{
	req->sqe.flags = NVME_SQE_SGL;
	req->sqe.prp1 = cpu_to_le64(address);
	req->sqe.prp2 = cpu_to_le64(bytes);
}

/* Admin commands have PRP entries only. */
static bool nvmep_sgl_better(const struct nvmep_ctrl *ctrl,
			     const struct request *rq,
			     const struct nvmep_cursor *cursor,
			     unsigned int bytes)
{
	return bytes > 2 * ctrl->page_size && cursor->left >= bytes &&
	       ctrl->sgls & NVME_CTRL_SGLS_MASK &&
	       rq->q != ctrl->admin_requests;
}

/* Describes the @bytes from @cursor on in the command, and in lists. */
static blk_status_t nvmep_build_prps(struct nvmep_ctrl *ctrl,
				     struct nvmep_request *req,
				     struct nvmep_cursor *cursor,
				     unsigned int bytes)
{
	struct nvmep_data *data = &req->data;
	blk_status_t status;
	unsigned int first;

	req->sqe.flags = 0;
	req->sqe.prp1 = cpu_to_le64(cursor->address);
	req->sqe.prp2 = 0;
	first = ctrl->page_size - (cursor->address & (ctrl->page_size - 1));
	if (bytes <= first)
		return BLK_STS_OK;

	bytes -= first;
	if (!nvmep_cursor_advance(cursor, first, ctrl->page_size))
		return BLK_STS_IOERR;
	if (bytes <= ctrl->page_size) {
		req->sqe.prp2 = cpu_to_le64(cursor->address);
		return BLK_STS_OK;
	}
	status = nvmep_build_lists(ctrl, data, cursor, bytes);
	req->sqe.prp2 = cpu_to_le64(data->list_dma);
	return status;
}

static void nvmep_unmap_table(struct nvmep_ctrl *ctrl, struct request *rq)
{
	struct nvmep_data *data = &nvmep_request(rq)->data;

	if (nvmep_dma_need_unmap(ctrl->dev))
		dma_unmap_sg(ctrl->dev, data->table.sgl, data->entries,
			     rq_dma_dir(rq));
	sg_free_table_chained(&data->table, NVMEP_INLINE_SEGMENTS);
	data->entries = 0;
}

/* What an IOMMU mapped is always given back. */
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
		nvmep_lists_free(ctrl, data);
	if (data->length) {
		nvmep_unmap_segment(ctrl, rq);
	} else if (data->linked) {
		nvmep_iova_free(ctrl->dev, &data->iova, data->linked,
				rq_dma_dir(rq));
		data->linked = 0;
	} else if (data->entries) {
		nvmep_unmap_table(ctrl, rq);
	}
}

/**
 * struct nvmep_filler - several segments, on their way to where they are mapped from
 * @ctrl: controller
 * @direction: of the DMA
 * @iova: what they are linked into, or NULL
 * @linked: bytes that were
 * @start: physical address of what is to be linked next
 * @last: without @iova, entry of the scatter list that was filled last, NULL for none
 * @next: entry to fill, NULL where the list ends
 * @end: physical address behind that, or behind @last
 * @entries: that were filled
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
 * Segments may continue each other in mid-page, as those of merged requests do, and are
 * linked as one then: what is linked meets at pages.
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
 * What continues the entry before becomes part of it, but not over a multiple of 4 GiB, a
 * device's segment boundary.
 */
static blk_status_t nvmep_list_segment(struct nvmep_filler *filler,
				       phys_addr_t address,
				       const struct bio_vec *segment)
{
	if (filler->last && address == filler->end && lower_32_bits(address)) {
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
	       nvmep_list_segment(filler, address, segment);
}

/* Piece @i of those of a command, of which @left bytes are still to come. */
static struct bio_vec nvmep_piece(const struct nvmep_pieces *pieces,
				  unsigned int i, unsigned int left)
{
	struct bio_vec piece = pieces->vec[i];

	if (!i) {
		piece.bv_offset += pieces->skip;
		piece.bv_len -= pieces->skip;
	}
	piece.bv_len = min(piece.bv_len, left);
	return piece;
}

static blk_status_t nvmep_fill_pieces(struct nvmep_filler *filler,
				      const struct nvmep_pieces *pieces)
{
	unsigned int i, left = pieces->length;
	blk_status_t status = BLK_STS_OK;
	struct bio_vec piece;

	for (i = 0; i < pieces->count && !status; i++) {
		piece = nvmep_piece(pieces, i, left);
		status = nvmep_fill_segment(filler, &piece);
		left -= piece.bv_len;
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

	if (req->flags & NVMEP_REQUEST_PIECES)
		return nvmep_fill_pieces(filler, &req->data.pieces);
	return nvmep_fill_bios(filler, rq);
}

/* All segments into one range of addresses. */
static blk_status_t nvmep_map_linked(struct nvmep_ctrl *ctrl,
				     struct request *rq, unsigned int bytes,
				     struct nvmep_cursor *cursor)
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
	*cursor = (struct nvmep_cursor){
		.address = data->iova.addr,
		.left = bytes,
	};
	return BLK_STS_OK;
}

static blk_status_t nvmep_map_table(struct nvmep_ctrl *ctrl, struct request *rq)
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

static blk_status_t nvmep_map_listed(struct nvmep_ctrl *ctrl,
				     struct request *rq, unsigned int segments,
				     struct nvmep_cursor *cursor)
{
	struct nvmep_data *data = &nvmep_request(rq)->data;
	blk_status_t status;

	data->table.sgl = data->inline_segments;
	if (sg_alloc_table_chained(&data->table, segments,
				   data->inline_segments,
				   NVMEP_INLINE_SEGMENTS))
		return BLK_STS_RESOURCE;
	status = nvmep_map_table(ctrl, rq);
	if (status)
		sg_free_table_chained(&data->table, NVMEP_INLINE_SEGMENTS);
	else
		nvmep_cursor_init(cursor, data->table.sgl);
	return status;
}

/* Describes what was mapped, the @bytes from @cursor on, in the way that suits it. */
static blk_status_t nvmep_build_pointers(struct nvmep_ctrl *ctrl,
					 struct request *rq,
					 struct nvmep_cursor *cursor,
					 unsigned int bytes)
{
	blk_status_t status;

	if (nvmep_sgl_better(ctrl, rq, cursor, bytes)) {
		nvmep_build_sgl(nvmep_request(rq), cursor->address, bytes);
		return BLK_STS_OK;
	}
	status = nvmep_build_prps(ctrl, nvmep_request(rq), cursor, bytes);
	if (status)
		nvmep_unmap_pages(ctrl, rq);
	return status;
}

/* The single segment that was mapped, and is longer than two pages. */
static noinline blk_status_t nvmep_build_long(struct nvmep_ctrl *ctrl,
					      struct request *rq)
{
	const struct nvmep_data *data = &nvmep_request(rq)->data;
	struct nvmep_cursor cursor = {
		.address = data->address,
		.left = data->length,
	};

	return nvmep_build_pointers(ctrl, rq, &cursor, data->length);
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

/* Not in place where the device must not see the rest of a page, or is not coherent. */
static noinline bool nvmep_map_elsewhere(struct nvmep_ctrl *ctrl,
					 struct request *rq,
					 const struct bio_vec *segment)
{
	return ctrl->dma_attributes & NVMEP_DMA_IN_PLACE &&
	       nvmep_map_segment_by(ctrl, rq, segment, DMA_ATTR_NO_WARN);
}

/* Most requests: a single segment needs no scatter list, and small ones no PRP list. */
static blk_status_t nvmep_map_segment(struct nvmep_ctrl *ctrl,
				      struct request *rq,
				      const struct bio_vec *segment)
{
	struct nvmep_request *req = nvmep_request(rq);
	struct nvmep_data *data = &req->data;

	if (!nvmep_map_segment_by(ctrl, rq, segment, ctrl->dma_attributes) &&
	    !nvmep_map_elsewhere(ctrl, rq, segment))
		return BLK_STS_RESOURCE;
	data->length = segment->bv_len;
	if (nvmep_build_piece(ctrl, req, data->address, data->length))
		return BLK_STS_OK;
	return nvmep_build_long(ctrl, rq);
}

/* So many segments, the @bytes from @first on; apart, as most requests have one. */
static noinline blk_status_t nvmep_map_segments(struct nvmep_ctrl *ctrl,
						struct request *rq,
						unsigned int segments,
						const struct bio_vec *first,
						unsigned int bytes)
{
	struct nvmep_data *data = &nvmep_request(rq)->data;
	struct nvmep_cursor cursor;
	blk_status_t status;

	if (nvmep_iova_alloc(ctrl->dev, &data->iova,
			     nvmep_segment_address(first), bytes))
		status = nvmep_map_linked(ctrl, rq, bytes, &cursor);
	else
		status = nvmep_map_listed(ctrl, rq, segments, &cursor);
	if (status)
		return status;
	return nvmep_build_pointers(ctrl, rq, &cursor, bytes);
}

static blk_status_t nvmep_map_pages(struct nvmep_ctrl *ctrl,
				    struct request *rq, unsigned int segments)
{
	struct bio_vec first = req_bvec(rq);

	if (segments == 1)
		return nvmep_map_segment(ctrl, rq, &first);
	return nvmep_map_segments(ctrl, rq, segments, &first,
				  blk_rq_payload_bytes(rq));
}

static blk_status_t nvmep_map_pieces(struct nvmep_ctrl *ctrl,
				     struct request *rq)
{
	const struct nvmep_pieces *pieces = &nvmep_request(rq)->data.pieces;
	struct bio_vec first = nvmep_piece(pieces, 0, pieces->length);

	if (pieces->count == 1)
		return nvmep_map_segment(ctrl, rq, &first);
	return nvmep_map_segments(ctrl, rq, pieces->count, &first,
				  pieces->length);
}

/* Mapped already, and for longer than this command. */
static blk_status_t nvmep_map_span(struct nvmep_ctrl *ctrl, struct request *rq)
{
	const struct nvmep_span *span = &nvmep_request(rq)->data.span;
	struct nvmep_cursor cursor;

	nvmep_cursor_enter(&cursor, span->segment,
			   span->offset - span->segment->offset);
	return nvmep_build_pointers(ctrl, rq, &cursor, span->length);
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
	req->sqe.mptr = cpu_to_le64(data->metadata_dma);
	return BLK_STS_OK;
}

/**
 * nvmep_data_map() - make a request's data reachable for the controller
 * @ctrl: controller
 * @rq: request; its command gets the data pointers
 *
 * Return: BLK_STS_OK; BLK_STS_RESOURCE where trying again later helps;
 * BLK_STS_IOERR for a request that PRP entries cannot describe.
 */
blk_status_t nvmep_data_map(struct nvmep_ctrl *ctrl, struct request *rq)
{
	unsigned int segments = blk_rq_nr_phys_segments(rq);
	blk_status_t status = BLK_STS_OK;

	if (segments)
		status = nvmep_map_pages(ctrl, rq, segments);
	else if (nvmep_request(rq)->flags & NVMEP_REQUEST_PIECES)
		status = nvmep_map_pieces(ctrl, rq);
	else if (nvmep_request(rq)->flags & NVMEP_REQUEST_SPAN)
		status = nvmep_map_span(ctrl, rq);
	if (status || !nvmep_request(rq)->data.metadata_length)
		return status;
	status = nvmep_map_metadata(ctrl, rq);
	if (status)
		nvmep_unmap_pages(ctrl, rq);
	return status;
}

/**
 * nvmep_data_unmap() - undo nvmep_data_map()
 * @ctrl: controller, which must be done with the request
 * @rq: request
 */
void nvmep_data_unmap(struct nvmep_ctrl *ctrl, struct request *rq)
{
	struct nvmep_data *data = &nvmep_request(rq)->data;

	nvmep_unmap_pages(ctrl, rq);
	if (data->metadata_length)
		dma_unmap_single(ctrl->dev, data->metadata_dma,
				 data->metadata_length, rq_dma_dir(rq));
}
