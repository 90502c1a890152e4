/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * A queue pair on the controller, the CPU's and the peers' alike: its creation and its
 * deletion by admin command.
 */
#ifndef _NVMEP_PAIR_H
#define _NVMEP_PAIR_H

#include <linux/types.h>

struct nvmep_ctrl;

/**
 * struct nvmep_queue_pair_params - Create I/O Completion and Submission Queue
 * @qid: from nvmep_qid_alloc(); the SQ and its CQ share it
 * @sq_entries: 2 to ctrl->max_entries
 * @cq_entries: likewise
 * @sq_dma: address of the submission ring, or of its PRP list if !@contiguous
 * @cq_dma: likewise for the completion ring
 * @sq_contiguous: PC bit of the submission queue
 * @cq_contiguous: PC bit of the completion queue
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
			    u32 *generation);
int nvmep_queue_pair_create_in(struct nvmep_ctrl *ctrl,
			       const struct nvmep_queue_pair_params *params,
			       u32 generation);
int nvmep_queue_pair_delete(struct nvmep_ctrl *ctrl, u16 qid, u32 generation);

/* The parts of a deletion, for shutdown. */
int nvmep_delete_queue(struct nvmep_ctrl *ctrl, u8 opcode, u16 qid,
		       u32 generation);

#endif /* _NVMEP_PAIR_H */
