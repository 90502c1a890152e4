/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Creation and deletion of queue pairs on the controller, the CPU's and peers'.
 */
#ifndef _NVMEP_QUEUE_PAIR_H
#define _NVMEP_QUEUE_PAIR_H

#include <linux/types.h>

struct nvmep_ctrl;

/**
 * struct nvmep_queue_pair_params - Create I/O Completion and Submission Queue
 * @qid: from nvmep_qid_alloc(), for both SQ and CQ
 * @sq_entries: 2 to ctrl->max_entries
 * @cq_entries: 2 to ctrl->max_entries
 * @sq_dma: DMA address of the SQ ring, or of its PRP list if not @sq_contiguous
 * @cq_dma: DMA address of the CQ ring, or of its PRP list if not @cq_contiguous
 * @sq_contiguous: PC bit of Create I/O Submission Queue
 * @cq_contiguous: PC bit of Create I/O Completion Queue
 * @vector: interrupt vector, -1 for none (IEN = 0)
 */
struct nvmep_queue_pair_params {
	u16 qid;
	u32 sq_entries;
	u32 cq_entries;
	dma_addr_t sq_dma;
	dma_addr_t cq_dma;
	bool sq_contiguous;
	bool cq_contiguous;
	int vector;
};

int nvmep_queue_pair_create(struct nvmep_ctrl *ctrl,
			    const struct nvmep_queue_pair_params *params,
			    u32 generation);
int nvmep_queue_pair_create_bound(struct nvmep_ctrl *ctrl,
				  const struct nvmep_queue_pair_params *params,
				  u32 generation);
int nvmep_queue_pair_delete(struct nvmep_ctrl *ctrl, u16 qid, u32 generation);

/* Deletes one queue only: shutdown deletes all SQs before the first CQ. */
int nvmep_delete_queue(struct nvmep_ctrl *ctrl, u8 opcode, u16 qid,
		       u32 generation);

#endif /* _NVMEP_QUEUE_PAIR_H */
