/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * An SQ/CQ pair on the controller, the CPU's and the peers' alike: its queue
 * identifier, its creation and deletion, its doorbells.
 */
#ifndef _NVMEP_QUEUE_H
#define _NVMEP_QUEUE_H

#include <linux/blk-mq.h>
#include <linux/spinlock.h>
#include <linux/types.h>

#include "nvme.h"

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
 * struct nvmep_doorbell_count - writes of the CPU to a queue pair's doorbells
 * @sq: to the tail doorbell; changes under the lock of the submitting queue
 * @cq: to the head doorbell; likewise
 */
struct nvmep_doorbell_count {
	u64 sq;
	u64 cq;
};

/**
 * struct nvmep_qids - the pool of queue identifiers of one controller
 * @lock: guards all of this but @doorbells
 * @used: bit n: identifier n is taken; bit 0, the admin queue, always is
 * @peer: bit n: it is taken for a peer
 * @doorbells: one for every identifier, see struct nvmep_doorbell_count
 * @total: identifiers 1 to @total may be given out
 * @capacity: const: bits in @used and @peer; @total never exceeds it
 * @cpu: identifiers that the kernel has
 * @peer_count: identifiers that peers have
 * @peer_max: most that they may have
 */
struct nvmep_qids {
	spinlock_t lock;	/* see above */
	unsigned long *used;
	unsigned long *peer;
	struct nvmep_doorbell_count *doorbells;
	unsigned int total;
	unsigned int capacity;
	unsigned int cpu;
	unsigned int peer_count;
	unsigned int peer_max;
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

/* nvmep_queue.flags */
#define NVMEP_QUEUE_ENABLED	0	/* the controller serves it */

/**
 * struct nvmep_queue - a queue pair that the CPU uses: admin (qid 0) or I/O
 * @ctrl: const
 * @tag_set: const: where the tags of its commands are
 * @tag_index: const: which of its tags
 * @qid: const
 * @entries: const: of either ring
 * @vector: const: index of the interrupt vector
 * @irq_requested: the interrupt handler is registered; probe and remove only
 * @flags: NVMEP_QUEUE_* bits
 * @sq: submission ring
 * @cq: completion ring
 * @sq_dma: const: address of @sq
 * @cq_dma: const: address of @cq
 * @sq_lock: guards @sq, @sq_tail and @sq_rung
 * @sq_tail: next entry to fill
 * @sq_rung: tail that the controller was told
 * @cq_lock: guards everything below
 * @cq_head: next entry to consume
 * @cq_phase: phase tag of a new entry at @cq_head
 * @completions: entries consumed so far
 * @lost_interrupts: completions that only a timeout found
 * @name: const: of the interrupt
 */
struct nvmep_queue {
	struct nvmep_ctrl *ctrl;
	struct blk_mq_tag_set *tag_set;
	unsigned int tag_index;
	u16 qid;
	u16 entries;
	unsigned int vector;
	bool irq_requested;
	unsigned long flags;

	struct nvme_sqe *sq;
	struct nvme_cqe *cq;
	dma_addr_t sq_dma;
	dma_addr_t cq_dma;

	spinlock_t sq_lock ____cacheline_aligned_in_smp;
	u16 sq_tail;
	u16 sq_rung;

	spinlock_t cq_lock ____cacheline_aligned_in_smp;
	u16 cq_head;
	u8 cq_phase;
	u64 completions;
	u64 lost_interrupts;

	char name[24];
};

/* The pool of queue identifiers. */
int nvmep_qids_init(struct nvmep_ctrl *ctrl, unsigned int capacity);
void nvmep_qids_exit(struct nvmep_ctrl *ctrl);
void nvmep_qids_grant(struct nvmep_ctrl *ctrl, unsigned int granted,
		      unsigned int peer_max);
int nvmep_qid_alloc(struct nvmep_ctrl *ctrl, enum nvmep_qid_owner owner);
void nvmep_qid_free(struct nvmep_ctrl *ctrl, u16 qid);
void nvmep_qid_usage(struct nvmep_ctrl *ctrl, struct nvmep_qid_usage *usage);
u16 nvmep_qid_next_peer(struct nvmep_ctrl *ctrl, u16 qid);

/* Any queue pair, by admin command. */
int nvmep_queue_pair_create(struct nvmep_ctrl *ctrl,
			    const struct nvmep_queue_pair_params *params,
			    u32 *generation);
int nvmep_queue_pair_create_in(struct nvmep_ctrl *ctrl,
			       const struct nvmep_queue_pair_params *params,
			       u32 generation);
int nvmep_queue_pair_delete(struct nvmep_ctrl *ctrl, u16 qid, u32 generation);

/* Byte offset in BAR0 of a tail (or, with @cq, head) doorbell; base spec 3.1.4. */
resource_size_t nvmep_doorbell_offset(const struct nvmep_ctrl *ctrl, u16 qid,
				      bool cq);
/* Writes of the CPU to both doorbells of @qid since it was allocated. */
u64 nvmep_doorbell_writes(const struct nvmep_ctrl *ctrl, u16 qid);

/* Queue pairs of the CPU. */
struct nvmep_queue *nvmep_queue_alloc(struct nvmep_ctrl *ctrl, u16 qid,
				      u16 entries,
				      struct blk_mq_tag_set *tag_set,
				      unsigned int tag_index);
void nvmep_queue_free(struct nvmep_queue *queue);
int nvmep_queue_request_irq(struct nvmep_queue *queue, unsigned int vector);
void nvmep_queue_free_irq(struct nvmep_queue *queue);
void nvmep_queue_reset(struct nvmep_queue *queue);
void nvmep_queue_enable(struct nvmep_queue *queue);
void nvmep_queue_disable(struct nvmep_queue *queue);
bool nvmep_queue_submit(struct nvmep_queue *queue, const struct nvme_sqe *sqe,
			bool ring);
void nvmep_queue_ring(struct nvmep_queue *queue);
unsigned int nvmep_queue_poll(struct nvmep_queue *queue);

static inline bool nvmep_queue_enabled(const struct nvmep_queue *queue)
{
	return test_bit(NVMEP_QUEUE_ENABLED, &queue->flags);
}

#endif /* _NVMEP_QUEUE_H */
