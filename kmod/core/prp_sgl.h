/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Data pointers of commands: PRP entries, PRP lists, SGL descriptors.
 */
#ifndef _NVMEP_PRP_SGL_H
#define _NVMEP_PRP_SGL_H

#include "ctrl.h"
#include "data.h"
#include "request.h"

/**
 * struct nvmep_dma_iter - a position in memory that is mapped for DMA
 * @sg: current entry, if the memory is a mapped scatter list
 * @segment: current segment, if the memory is an array of segments
 * @address: DMA address of the position
 * @left: bytes from the position to the end of the entry or segment
 *
 * Both pointers are NULL for a single contiguous range.
 */
struct nvmep_dma_iter {
	struct scatterlist *sg;
	const struct nvmep_segment *segment;
	dma_addr_t address;
	unsigned int left;
};

void nvmep_dma_iter_sg(struct nvmep_dma_iter *iter, struct scatterlist *sg);
void nvmep_dma_iter_segment(struct nvmep_dma_iter *iter,
			    const struct nvmep_segment *segment, u64 skip);

int nvmep_prp_pools_create(struct nvmep_ctrl *ctrl);
void nvmep_prp_pools_destroy(struct nvmep_ctrl *ctrl);

void nvmep_prp_lists_free(struct nvmep_ctrl *ctrl, struct nvmep_data *data);
blk_status_t nvmep_build_pointers(struct nvmep_ctrl *ctrl, struct request *rq,
				  struct nvmep_dma_iter *iter,
				  unsigned int bytes);

/* A PRP list in one contiguous allocation, for rings of queues. */
size_t nvmep_prp_list_bytes(const struct nvmep_ctrl *ctrl, u32 pages);
void nvmep_prp_list_fill(const struct nvmep_ctrl *ctrl, __le64 *list,
			 dma_addr_t list_dma,
			 const struct nvmep_segment *segment, u64 offset,
			 u32 pages);

/*
 * Sets PRP1 and PRP2 for a contiguous range of at most two pages; returns false
 * for a longer one.  Inline: most requests need no more than this.
 */
static inline bool nvmep_set_prps(const struct nvmep_ctrl *ctrl,
				  struct nvmep_request *req,
				  dma_addr_t address, unsigned int bytes)
{
	unsigned int first = ctrl->page_size -
			     (address & (ctrl->page_size - 1));

	if (bytes > first + ctrl->page_size)
		return false;
	req->sqe.common.flags = 0;
	req->sqe.common.dptr.prp1 = cpu_to_le64(address);
	req->sqe.common.dptr.prp2 =
		bytes > first ? cpu_to_le64(address + first) : 0;
	return true;
}

#endif /* _NVMEP_PRP_SGL_H */
