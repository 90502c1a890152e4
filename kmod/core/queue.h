/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * A queue of the CPU's, admin or I/O: its rings, its doorbells, its interrupt.
 */
#ifndef _NVMEP_QUEUE_H
#define _NVMEP_QUEUE_H

#include <linux/blk-mq.h>
#include <linux/spinlock.h>
#include <linux/types.h>

#include "nvme.h"

struct nvmep_ctrl;

struct nvmep_queue;

/*
 * What becomes of an entry is for whoever made the queue to say.  What can wait until
 * no lock is held goes into the batch.
 */
typedef void nvmep_complete_fn(struct nvmep_queue *queue,
			       const struct nvme_cqe *cqe,
			       struct io_comp_batch *batch);

/* nvmep_queue.flags */
#define NVMEP_QUEUE_ENABLED	0	/* the controller serves it */

/**
 * struct nvmep_queue - a queue pair that the CPU uses: admin (qid 0) or I/O
 * @ctrl: const
 * @complete: const: takes an entry that has arrived; @cq_lock is held
 * @tag_set: const: where the tags of its commands are, for @complete
 * @tag_index: const: which of its tags
 * @uses: by tag: the count in its next CID; whoever has the tag
 * @qid: changes while the controller does not know the queue; 0 for an I/O queue
 *	that no identifier is left for
 * @entries: const: of either ring
 * @polled: const: nothing announces completions
 * @vector: const: index of the interrupt vector, -1 for a polled queue
 * @irq_requested: the interrupt handler is registered; probe and remove only
 * @flags: NVMEP_QUEUE_* bits
 * @sq: const: submission ring
 * @cq: const: completion ring
 * @sq_dma: const: address of @sq
 * @cq_dma: const: address of @cq
 * @sq_doorbell: register of @sq; changes with @qid, as the next two do
 * @cq_doorbell: register of @cq
 * @doorbells: counts what is written to them
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
	nvmep_complete_fn *complete;
	struct blk_mq_tag_set *tag_set;
	unsigned int tag_index;
	u8 *uses;
	u16 qid;
	u16 entries;
	bool polled;
	int vector;
	bool irq_requested;
	unsigned long flags;

	struct nvme_sqe *sq;
	struct nvme_cqe *cq;
	dma_addr_t sq_dma;
	dma_addr_t cq_dma;
	void __iomem *sq_doorbell;
	void __iomem *cq_doorbell;
	struct nvmep_doorbell_count *doorbells;

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

/* Doorbells, of peers' queue pairs too. */
resource_size_t nvmep_doorbell_offset(const struct nvmep_ctrl *ctrl, u16 qid,
				      bool cq);
u64 nvmep_doorbell_writes(const struct nvmep_ctrl *ctrl, u16 qid);

struct nvmep_queue *nvmep_queue_alloc(struct nvmep_ctrl *ctrl, u16 qid,
				      u16 entries, nvmep_complete_fn *complete,
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
void nvmep_queue_fill_begin(struct nvmep_queue *queue);
void nvmep_queue_fill(struct nvmep_queue *queue, const struct nvme_sqe *sqe);
void nvmep_queue_fill_end(struct nvmep_queue *queue);
void nvmep_queue_ring(struct nvmep_queue *queue);
unsigned int nvmep_queue_poll(struct nvmep_queue *queue);
void nvmep_queues_poll_unannounced(struct nvmep_ctrl *ctrl);
unsigned int nvmep_queue_look(struct nvmep_queue *queue,
			      struct io_comp_batch *batch);

static inline bool nvmep_queue_enabled(const struct nvmep_queue *queue)
{
	return test_bit(NVMEP_QUEUE_ENABLED, &queue->flags);
}

#endif /* _NVMEP_QUEUE_H */
