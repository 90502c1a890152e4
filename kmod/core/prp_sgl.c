// SPDX-License-Identifier: GPL-2.0-only
/*
 * Data pointers of commands: PRP entries, PRP lists, SGL descriptors.
 *
 * The first PRP entry may point anywhere into a page; every other one points to
 * the start of a page (base specification 4.3.1).  The queues' virtual boundary
 * makes the block layer build requests that fit.  A second entry is part of the
 * command; for more pages the command points to a PRP list, and the last entry
 * of a full list page points to the next page of the list.  Most lists are
 * short and come from a DMA pool of their own.
 *
 * A long contiguous range is described by one SGL descriptor, if the controller
 * supports them.
 */
#include <linux/dmapool.h>

#include "ctrl.h"
#include "data.h"
#include "prp_sgl.h"
#include "quirks.h"
#include "request.h"

/* --- position in mapped memory ------------------------------------------- */

/**
 * nvmep_dma_iter_sg() - position at the start of a scatter list entry
 * @iter: position
 * @sg: mapped entry
 */
void nvmep_dma_iter_sg(struct nvmep_dma_iter *iter, struct scatterlist *sg)
{
	*iter = (struct nvmep_dma_iter){
		.sg = sg,
		.address = sg_dma_address(sg),
		.left = sg_dma_len(sg),
	};
}

/**
 * nvmep_dma_iter_segment() - position in an array of segments
 * @iter: position
 * @segment: segment; more follow in the array as the command needs them
 * @skip: offset in @segment, bytes
 */
void nvmep_dma_iter_segment(struct nvmep_dma_iter *iter,
			    const struct nvmep_segment *segment, u64 skip)
{
	*iter = (struct nvmep_dma_iter){
		.segment = segment,
		.address = segment->dma + skip,
		.left = min_t(u64, segment->length - skip, NVMEP_MAX_TRANSFER),
	};
}

/*
 * Returns false at the end of a scatter list.  An array of segments covers all
 * the bytes of the command, so its end is not checked.
 */
static bool nvmep_dma_iter_next(struct nvmep_dma_iter *iter)
{
	if (iter->segment) {
		nvmep_dma_iter_segment(iter, iter->segment + 1, 0);
		return true;
	}
	if (iter->sg)
		iter->sg = sg_next(iter->sg);
	if (!iter->sg)
		return false;
	nvmep_dma_iter_sg(iter, iter->sg);
	return true;
}

/*
 * Returns false at the end of the memory, or if an entry or segment starts or
 * ends in mid-page, which PRP entries cannot describe.
 */
static bool nvmep_dma_iter_advance(struct nvmep_dma_iter *iter,
				   unsigned int bytes, u32 page_size)
{
	if (bytes > iter->left)
		return false;
	if (bytes < iter->left) {
		iter->address += bytes;
		iter->left -= bytes;
	} else if (!nvmep_dma_iter_next(iter)) {
		return false;
	}
	return IS_ALIGNED(iter->address, page_size);
}

/* --- PRP lists of commands ----------------------------------------------- */

/**
 * nvmep_prp_pools_create() - create the DMA pools of PRP lists
 * @ctrl: controller
 *
 * Return: 0 or -ENOMEM.
 */
int nvmep_prp_pools_create(struct nvmep_ctrl *ctrl)
{
	size_t small = NVMEP_PRPS_PER_SMALL_LIST * sizeof(__le64);
	size_t align = ctrl->quirks & NVMEP_QUIRK_LISTS_ALIGN_512 ? 512 : small;

	ctrl->prp_pool = dma_pool_create("nvmep prp", ctrl->dev,
					 NVMEP_PRPS_PER_LIST * sizeof(__le64),
					 ctrl->page_size, 0);
	ctrl->prp_small_pool = dma_pool_create("nvmep prp small", ctrl->dev,
					       small, align, 0);
	if (ctrl->prp_pool && ctrl->prp_small_pool)
		return 0;
	nvmep_prp_pools_destroy(ctrl);
	return -ENOMEM;
}

/**
 * nvmep_prp_pools_destroy() - destroy the DMA pools of PRP lists
 * @ctrl: controller without requests in flight
 */
void nvmep_prp_pools_destroy(struct nvmep_ctrl *ctrl)
{
	dma_pool_destroy(ctrl->prp_small_pool);
	dma_pool_destroy(ctrl->prp_pool);
}

static struct dma_pool *nvmep_prp_list_pool(struct nvmep_ctrl *ctrl,
					    const struct nvmep_data *data)
{
	return data->list_small ? ctrl->prp_small_pool : ctrl->prp_pool;
}

static __le64 *nvmep_prp_list_add(struct nvmep_ctrl *ctrl,
				  struct nvmep_data *data, dma_addr_t *dma)
{
	__le64 *list;

	if (WARN_ON_ONCE(data->list_count == NVMEP_MAX_LISTS))
		return NULL;
	list = dma_pool_alloc(nvmep_prp_list_pool(ctrl, data), GFP_ATOMIC, dma);
	if (list)
		data->lists[data->list_count++] = list;
	return list;
}

/**
 * nvmep_prp_lists_free() - free the PRP lists of a command
 * @ctrl: controller
 * @data: the command's data
 */
void nvmep_prp_lists_free(struct nvmep_ctrl *ctrl, struct nvmep_data *data)
{
	struct dma_pool *pool = nvmep_prp_list_pool(ctrl, data);
	dma_addr_t dma = data->list_dma, next = 0;
	unsigned int i;

	for (i = 0; i < data->list_count; i++) {
		/*
		 * A small list is the only one and is shorter than this index.
		 */
		if (i + 1 < data->list_count)
			next = le64_to_cpu(data->lists[i][NVMEP_PRPS_PER_LIST - 1]);
		dma_pool_free(pool, data->lists[i], dma);
		dma = next;
	}
	data->list_count = 0;
}

/* Describes the @bytes from @iter on, one entry a page. */
static blk_status_t nvmep_build_prp_lists(struct nvmep_ctrl *ctrl,
					  struct nvmep_data *data,
					  struct nvmep_dma_iter *iter,
					  unsigned int bytes)
{
	unsigned int entry = 0, step;
	__le64 *list, *full;
	dma_addr_t dma;

	data->list_small = bytes <= NVMEP_PRPS_PER_SMALL_LIST * ctrl->page_size;
	list = nvmep_prp_list_add(ctrl, data, &data->list_dma);
	if (!list)
		return BLK_STS_RESOURCE;
	for (;;) {
		if (entry == NVMEP_PRPS_PER_LIST) {
			full = list;
			list = nvmep_prp_list_add(ctrl, data, &dma);
			if (!list)
				return BLK_STS_RESOURCE;
			list[0] = full[NVMEP_PRPS_PER_LIST - 1];
			full[NVMEP_PRPS_PER_LIST - 1] = cpu_to_le64(dma);
			entry = 1;
		}
		list[entry++] = cpu_to_le64(iter->address);
		step = min(bytes, ctrl->page_size);
		bytes -= step;
		if (!bytes)
			return BLK_STS_OK;
		if (!nvmep_dma_iter_advance(iter, step, ctrl->page_size))
			return BLK_STS_IOERR;
	}
}

/*
 * Describes the @bytes from @iter on by PRP1, PRP2 and, if need be, PRP lists.
 */
static blk_status_t nvmep_build_prps(struct nvmep_ctrl *ctrl,
				     struct nvmep_request *req,
				     struct nvmep_dma_iter *iter,
				     unsigned int bytes)
{
	struct nvmep_data *data = &req->data;
	blk_status_t status;
	unsigned int first;

	req->sqe.common.flags = 0;
	req->sqe.common.dptr.prp1 = cpu_to_le64(iter->address);
	req->sqe.common.dptr.prp2 = 0;
	first = ctrl->page_size - (iter->address & (ctrl->page_size - 1));
	if (bytes <= first)
		return BLK_STS_OK;

	bytes -= first;
	if (!nvmep_dma_iter_advance(iter, first, ctrl->page_size))
		return BLK_STS_IOERR;
	if (bytes <= ctrl->page_size) {
		req->sqe.common.dptr.prp2 = cpu_to_le64(iter->address);
		return BLK_STS_OK;
	}
	status = nvmep_build_prp_lists(ctrl, data, iter, bytes);
	req->sqe.common.dptr.prp2 = cpu_to_le64(data->list_dma);
	return status;
}

/* --- SGL ----------------------------------------------------------------- */

/*
 * One SGL data block descriptor (base specification 4.3.2), in the place of
 * both PRP entries: the length is the low half of PRP2, the type, 0, its top
 * byte.
 */
static void nvmep_set_sgl(struct nvmep_request *req, dma_addr_t address,
			  unsigned int bytes)
{
	req->sqe.common.flags = NVME_CMD_SGL_METABUF;
	req->sqe.common.dptr.prp1 = cpu_to_le64(address);
	req->sqe.common.dptr.prp2 = cpu_to_le64(bytes);
}

/*
 * For a contiguous range that needs a PRP list otherwise; admin commands use
 * PRPs only.
 */
static bool nvmep_use_sgl(const struct nvmep_ctrl *ctrl,
			  const struct request *rq,
			  const struct nvmep_dma_iter *iter,
			  unsigned int bytes)
{
	return bytes > 2 * ctrl->page_size && iter->left >= bytes &&
	       ctrl->sgls & (NVME_CTRL_SGLS_BYTE_ALIGNED |
			     NVME_CTRL_SGLS_DWORD_ALIGNED) &&
	       rq->q != ctrl->admin_q;
}

/**
 * nvmep_build_pointers() - set a command's data pointers, by SGL or PRPs
 * @ctrl: controller
 * @rq: the command's request
 * @iter: start of the mapped data; it is advanced
 * @bytes: length of the data
 *
 * Return: BLK_STS_OK; BLK_STS_RESOURCE without memory for PRP lists;
 * BLK_STS_IOERR for data that PRP entries cannot describe.  On error the caller
 * unmaps the data and frees the PRP lists.
 */
blk_status_t nvmep_build_pointers(struct nvmep_ctrl *ctrl, struct request *rq,
				  struct nvmep_dma_iter *iter,
				  unsigned int bytes)
{
	struct nvmep_request *req = nvmep_request(rq);

	if (nvmep_use_sgl(ctrl, rq, iter, bytes)) {
		nvmep_set_sgl(req, iter->address, bytes);
		return BLK_STS_OK;
	}
	return nvmep_build_prps(ctrl, req, iter, bytes);
}

/* --- PRP lists of rings -------------------------------------------------- */

/**
 * nvmep_prp_list_bytes() - size of a PRP list in one contiguous allocation
 * @ctrl: controller
 * @pages: controller pages that it describes, 2 or more
 *
 * Return: bytes, a multiple of the page size.
 */
size_t nvmep_prp_list_bytes(const struct nvmep_ctrl *ctrl, u32 pages)
{
	u32 per_page = ctrl->page_size / sizeof(__le64);

	/* The last entry of each list page but the last is a pointer. */
	return (size_t)DIV_ROUND_UP(pages - 1, per_page - 1) * ctrl->page_size;
}

/**
 * nvmep_prp_list_fill() - fill a PRP list that is one contiguous allocation
 * @ctrl: controller
 * @list: nvmep_prp_list_bytes() of coherent memory
 * @list_dma: DMA address of @list
 * @segment: segment of the first page; with those that follow in the array it
 *	covers all @pages
 * @offset: offset of the first page in the buffer (not in @segment)
 * @pages: controller pages; segments consist of whole pages
 */
void nvmep_prp_list_fill(const struct nvmep_ctrl *ctrl, __le64 *list,
			 dma_addr_t list_dma,
			 const struct nvmep_segment *segment, u64 offset,
			 u32 pages)
{
	u32 per_page = ctrl->page_size / sizeof(__le64);
	u32 slot = 0;

	for (; pages; pages--, slot++, offset += ctrl->page_size) {
		if (slot % per_page == per_page - 1 && pages > 1) {
			list[slot] = cpu_to_le64(list_dma + (slot + 1) *
						 sizeof(*list));
			slot++;
		}
		while (offset - segment->offset >= segment->length)
			segment++;
		list[slot] = cpu_to_le64(segment->dma +
					 (offset - segment->offset));
	}
}
