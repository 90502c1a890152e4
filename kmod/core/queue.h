/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * A queue pair of the CPU, admin or I/O: its rings, its doorbells, its
 * interrupt.
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
 * Per-queue completion callback, called with cq_lock held.  It may add the
 * request to the batch, which is completed after the lock was dropped.
 */
typedef void nvmep_complete_fn(struct nvmep_queue *queue,
			       const struct nvme_completion *cqe,
			       struct io_comp_batch *batch);

/* nvmep_queue.flags */
#define NVMEP_QUEUE_ENABLED	0	/* changes under sq_lock */

/**
 * struct nvmep_queue - a queue pair that the CPU uses: admin (qid 0) or I/O
 * @ctrl: const
 * @complete: const: callback for each completion entry
 * @number: const: 0: admin; else 1 and the index in ctrl->queues
 * @uses: by tag: use count, part of the next CID; owned by the holder of the
 *	tag
 * @requests: by tag: the request in flight, or NULL.  Its dispatch sets it, and
 *	its completion or cancellation clears it under @cq_lock
 * @own_uses: as @uses, for nvmep_queue_execute()
 * @qid: changes while the queue is disabled; 0 for an I/O queue without a queue
 *	ID
 * @entries: const: of each ring
 * @polled: const: IEN = 0, completions raise no interrupt
 * @vector: const after the first use: index of the interrupt vector, -1 for a
 *	polled queue
 * @irq_requested: interrupt handler is registered: of an I/O queue, from its
 *	allocation until unbind; a stop reads it with READ_ONCE()
 * @flags: NVMEP_QUEUE_* bits, atomic
 * @sq: const: submission ring; entries are written under @sq_lock
 * @cq: const: completion ring; entries are consumed under @cq_lock
 * @sq_dma: const: DMA address of @sq
 * @cq_dma: const: DMA address of @cq
 * @sq_doorbell: tail doorbell; written under @sq_lock, changes with @qid
 * @cq_doorbell: head doorbell; written under @cq_lock, changes with @qid
 * @doorbells: counts of doorbell writes; changes with @qid
 * @sq_lock: guards submission: @sq_tail and @last_sq_tail
 * @sq_tail: next entry to write
 * @last_sq_tail: last tail written to the doorbell
 * @cq_lock: guards completion: the members below but @name
 * @cq_head: next entry to consume; read without the lock by READ_ONCE()
 * @cq_phase: phase tag of a new entry at @cq_head; as @cq_head
 * @own_cid: CID of the command of nvmep_queue_execute(), or %NVMEP_CID_NONE
 * @own_status: NVMe status of the last one
 * @completions: entries consumed
 * @lost_interrupts: completions found by polling a queue that has an interrupt:
 *	by the timeout handler or during a stop
 * @name: const: name of the interrupt
 */
struct nvmep_queue {
	struct nvmep_ctrl *ctrl;
	nvmep_complete_fn *complete;
	unsigned int number;
	u8 *uses;
	struct request **requests;
	u8 own_uses;
	u16 qid;
	u16 entries;
	bool polled;
	int vector;
	bool irq_requested;
	unsigned long flags;

	struct nvme_command *sq;
	struct nvme_completion *cq;
	dma_addr_t sq_dma;
	dma_addr_t cq_dma;
	void __iomem *sq_doorbell;
	void __iomem *cq_doorbell;
	struct nvmep_doorbell_count *doorbells;

	spinlock_t sq_lock ____cacheline_aligned_in_smp;
	u16 sq_tail;
	u16 last_sq_tail;

	spinlock_t cq_lock ____cacheline_aligned_in_smp;
	u16 cq_head;
	u8 cq_phase;
	u16 own_cid;
	u16 own_status;
	u64 completions;
	u64 lost_interrupts;

	char name[24];
};

/* Doorbells, also those of peers' queue pairs. */
resource_size_t nvmep_doorbell_offset(const struct nvmep_ctrl *ctrl, u16 qid,
				      bool cq);
void nvmep_relay_allow(struct nvmep_ctrl *ctrl, bool allow);
void nvmep_relay_doorbell(struct nvmep_ctrl *ctrl, u16 qid, bool cq, u16 value);
u64 nvmep_doorbell_writes(const struct nvmep_ctrl *ctrl, u16 qid);

struct nvmep_queue *nvmep_queue_alloc(struct nvmep_ctrl *ctrl, u16 entries,
				      nvmep_complete_fn *complete,
				      unsigned int number);
void nvmep_queue_free(struct nvmep_queue *queue);
int nvmep_queue_request_irq(struct nvmep_queue *queue, unsigned int vector);
void nvmep_queue_free_irq(struct nvmep_queue *queue);
void nvmep_queue_reset(struct nvmep_queue *queue);
void nvmep_queue_enable(struct nvmep_queue *queue);
void nvmep_queue_disable(struct nvmep_queue *queue);
bool nvmep_queue_submit_bound(struct nvmep_queue *queue,
			      const struct nvme_command *sqe, u32 generation);
bool nvmep_queue_submit(struct nvmep_queue *queue,
			const struct nvme_command *sqe, bool ring);
void nvmep_queue_fill_begin(struct nvmep_queue *queue);
void nvmep_queue_fill(struct nvmep_queue *queue,
		      const struct nvme_command *sqe);
void nvmep_queue_fill_end(struct nvmep_queue *queue);
void nvmep_queue_write_doorbell(struct nvmep_queue *queue);
unsigned int nvmep_queue_poll(struct nvmep_queue *queue);
void nvmep_poll_polled_queues(struct nvmep_ctrl *ctrl);
unsigned int nvmep_queue_poll_batch(struct nvmep_queue *queue,
				    struct io_comp_batch *batch);

static inline bool nvmep_queue_enabled(const struct nvmep_queue *queue)
{
	return test_bit(NVMEP_QUEUE_ENABLED, &queue->flags);
}

#endif /* _NVMEP_QUEUE_H */
