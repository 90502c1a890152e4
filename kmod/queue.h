/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * An SQ/CQ pair on the controller, the CPU's and the peers' alike: its queue
 * identifier, its creation and deletion, its doorbells.
 */
#ifndef _NVMEP_QUEUE_H
#define _NVMEP_QUEUE_H

#include <linux/types.h>

struct nvmep_ctrl;

/**
 * enum nvmep_qid_owner - who a queue identifier is taken for
 * @NVMEP_QID_CPU: the kernel's own queues
 * @NVMEP_QID_PEER: a peer queue pair; counts against the peers' share
 */
enum nvmep_qid_owner {
	NVMEP_QID_CPU,
	NVMEP_QID_PEER,
};

/**
 * struct nvmep_qid_usage - how the pool of queue identifiers stands
 * @total: granted by the controller
 * @cpu: taken by the kernel
 * @peer_max: most that peers may have
 * @peer_free: of those, free now
 */
struct nvmep_qid_usage {
	unsigned int total;
	unsigned int cpu;
	unsigned int peer_max;
	unsigned int peer_free;
};

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
 * @priority: QPRIO
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
	u8 priority;
};

int nvmep_qid_alloc(struct nvmep_ctrl *ctrl, enum nvmep_qid_owner owner);
void nvmep_qid_free(struct nvmep_ctrl *ctrl, u16 qid);
void nvmep_qid_usage(struct nvmep_ctrl *ctrl, struct nvmep_qid_usage *usage);

int nvmep_queue_pair_create(struct nvmep_ctrl *ctrl,
			    const struct nvmep_queue_pair_params *params);
int nvmep_queue_pair_delete(struct nvmep_ctrl *ctrl, u16 qid, u32 generation);

/* Byte offset in BAR0 of a tail (or, with @cq, head) doorbell; base spec 3.1.4. */
resource_size_t nvmep_doorbell_offset(const struct nvmep_ctrl *ctrl, u16 qid,
				      bool cq);

#endif /* _NVMEP_QUEUE_H */
