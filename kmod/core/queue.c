// SPDX-License-Identifier: GPL-2.0-only
/*
 * Queues of the CPU: rings, doorbells, interrupts.
 *
 * A ring of n entries holds n - 1 commands; the CPU's tag sets are sized so
 * that a submission ring never overflows.  Whoever stops a queue first makes
 * sure that nobody is about to submit to it (see nvmep_ctrl_stop()).
 */
#include <linux/dma-mapping.h>
#include <linux/interrupt.h>
#include <linux/slab.h>

#include "ctrl.h"
#include "queue.h"
#include "trace.h"

/* --- doorbells ----------------------------------------------------------- */

/**
 * nvmep_doorbell_offset() - where a doorbell register lies
 * @ctrl: controller
 * @qid: queue identifier
 * @cq: head doorbell of the completion queue rather than tail doorbell of the
 *	submission queue
 *
 * Return: byte offset in BAR0; NVMe over PCIe transport 3.1.2.
 */
resource_size_t nvmep_doorbell_offset(const struct nvmep_ctrl *ctrl, u16 qid,
				      bool cq)
{
	return NVME_REG_DOORBELLS +
	       (2 * (resource_size_t)qid + cq) * ctrl->doorbell_stride;
}

/**
 * nvmep_doorbell_writes() - how often the CPU wrote a queue pair's doorbells
 * @ctrl: controller
 * @qid: queue identifier
 *
 * Counts from nvmep_qid_alloc() on.  0 for ever where a peer rings itself.
 *
 * Return: writes to both doorbells.
 */
u64 nvmep_doorbell_writes(const struct nvmep_ctrl *ctrl, u16 qid)
{
	const struct nvmep_doorbell_count *count = &ctrl->qids.doorbells[qid];

	return READ_ONCE(count->sq) + READ_ONCE(count->cq);
}

/* The only write to doorbells in the whole driver. */
static void nvmep_ring_doorbell(void __iomem *doorbell, u16 value, u64 *count)
{
	WRITE_ONCE(*count, *count + 1);
	writel(value, doorbell);
}

/* The queue has an identifier, or another one. */
static void nvmep_queue_find_doorbells(struct nvmep_queue *queue)
{
	struct nvmep_ctrl *ctrl = queue->ctrl;

	queue->sq_doorbell = ctrl->bar +
			     nvmep_doorbell_offset(ctrl, queue->qid, false);
	queue->cq_doorbell = ctrl->bar +
			     nvmep_doorbell_offset(ctrl, queue->qid, true);
	queue->doorbells = &ctrl->qids.doorbells[queue->qid];
}

/* --- submission ---------------------------------------------------------- */

/*
 * What a command costs here: one locked instruction and one plain store for the lock,
 * 64 bytes written to the ring, the tail.  What a batch costs once: the doorbell, which
 * is one MMIO write, and the store fence that writel() brings.
 */

static void nvmep_queue_ring_locked(struct nvmep_queue *queue)
{
	lockdep_assert_held(&queue->sq_lock);

	if (queue->sq_tail == queue->sq_rung)
		return;
	nvmep_ring_doorbell(queue->sq_doorbell, queue->sq_tail,
			    &queue->doorbells->sq);
	queue->sq_rung = queue->sq_tail;
}

static u16 nvmep_queue_next(const struct nvmep_queue *queue, u16 index)
{
	return index + 1 == queue->entries ? 0 : index + 1;
}

/**
 * nvmep_queue_fill_begin() - put commands into the submission ring, one after another
 * @queue: queue that the controller serves: who stops it waits for us first
 *
 * Until nvmep_queue_fill_end() nobody else can.
 */
void nvmep_queue_fill_begin(struct nvmep_queue *queue)
	__acquires(&queue->sq_lock)
{
	spin_lock(&queue->sq_lock);
	WARN_ON_ONCE(!nvmep_queue_enabled(queue));
}

/**
 * nvmep_queue_fill() - put a command into the submission ring
 * @queue: queue between nvmep_queue_fill_begin() and nvmep_queue_fill_end()
 * @sqe: complete command
 */
void nvmep_queue_fill(struct nvmep_queue *queue, const struct nvme_sqe *sqe)
{
	lockdep_assert_held(&queue->sq_lock);

	queue->sq[queue->sq_tail] = *sqe;
	queue->sq_tail = nvmep_queue_next(queue, queue->sq_tail);
	/* One more and the tail would look as if nothing was new. */
	if (unlikely(nvmep_queue_next(queue, queue->sq_tail) == queue->sq_rung))
		nvmep_queue_ring_locked(queue);
}

/**
 * nvmep_queue_fill_end() - tell the controller, and undo nvmep_queue_fill_begin()
 * @queue: queue
 */
void nvmep_queue_fill_end(struct nvmep_queue *queue)
	__releases(&queue->sq_lock)
{
	nvmep_queue_ring_locked(queue);
	spin_unlock(&queue->sq_lock);
}

/**
 * nvmep_queue_submit() - put a command into the submission ring
 * @queue: queue
 * @sqe: complete command
 * @ring: tell the controller now; else nvmep_queue_ring() has to follow
 *
 * Return: false if the controller does not serve the queue; nothing was done.
 */
bool nvmep_queue_submit(struct nvmep_queue *queue, const struct nvme_sqe *sqe,
			bool ring)
{
	bool enabled;

	spin_lock(&queue->sq_lock);
	enabled = nvmep_queue_enabled(queue);
	if (enabled) {
		nvmep_queue_fill(queue, sqe);
		if (ring)
			nvmep_queue_ring_locked(queue);
	}
	spin_unlock(&queue->sq_lock);
	return enabled;
}

/**
 * nvmep_queue_ring() - tell the controller about commands that it was not told
 * @queue: queue
 */
void nvmep_queue_ring(struct nvmep_queue *queue)
{
	spin_lock(&queue->sq_lock);
	if (nvmep_queue_enabled(queue))
		nvmep_queue_ring_locked(queue);
	spin_unlock(&queue->sq_lock);
}

/* --- completion ---------------------------------------------------------- */

/* A guess, unless cq_lock is held. */
static bool nvmep_queue_pending(struct nvmep_queue *queue)
{
	u16 head = READ_ONCE(queue->cq_head);
	u16 status = le16_to_cpu(READ_ONCE(queue->cq[head].status));

	return (status & 1) == READ_ONCE(queue->cq_phase);
}

/*
 * Consumes what has arrived and returns how many entries that was.  An entry costs two
 * loads of the ring with a load fence between them; all of them together one MMIO write.
 */
static unsigned int nvmep_queue_reap(struct nvmep_queue *queue,
				     struct io_comp_batch *batch)
{
	const struct nvme_cqe *cqe;
	unsigned int found = 0;

	lockdep_assert_held(&queue->cq_lock);

	while (nvmep_queue_pending(queue)) {
		/* The rest of the entry may be read only after its phase tag. */
		dma_rmb();
		cqe = &queue->cq[queue->cq_head];
		trace_nvmep_complete(queue->ctrl->instance, queue->qid, cqe);
		queue->complete(queue, cqe, batch);
		WRITE_ONCE(queue->cq_head,
			   nvmep_queue_next(queue, queue->cq_head));
		if (!queue->cq_head)
			WRITE_ONCE(queue->cq_phase, queue->cq_phase ^ 1);
		found++;
	}
	queue->completions += found;
	if (found && nvmep_queue_enabled(queue))
		nvmep_ring_doorbell(queue->cq_doorbell, queue->cq_head,
				    &queue->doorbells->cq);
	return found;
}

/* What reaping left for when no lock is held. */
static void nvmep_batch_end(struct io_comp_batch *batch)
{
	if (batch->complete)
		batch->complete(batch);
}

/**
 * nvmep_queue_poll() - look for completions that no interrupt announced
 * @queue: queue
 *
 * Return: how many there were.
 */
unsigned int nvmep_queue_poll(struct nvmep_queue *queue)
{
	DEFINE_IO_COMP_BATCH(batch);
	unsigned long flags;
	unsigned int found;

	spin_lock_irqsave(&queue->cq_lock, flags);
	found = nvmep_queue_reap(queue, &batch);
	queue->lost_interrupts += queue->polled ? 0 : found;
	spin_unlock_irqrestore(&queue->cq_lock, flags);
	nvmep_batch_end(&batch);
	return found;
}

/**
 * nvmep_queues_poll_unannounced() - look for completions for those who should
 * @ctrl: controller, bound
 *
 * Who polls a queue may never do so again.  Who waits for what is on it calls this.
 */
void nvmep_queues_poll_unannounced(struct nvmep_ctrl *ctrl)
{
	unsigned int i;

	for (i = ctrl->cpu_queues - ctrl->polled_queues; i < ctrl->cpu_queues; i++)
		nvmep_queue_poll(ctrl->queues[i]);
}

/**
 * nvmep_queue_look() - look for completions of a polled queue
 * @queue: polled queue, perhaps disabled
 * @batch: what ended, for the caller to end holding no lock
 *
 * Where there is nothing it costs a load.
 *
 * Return: how many there were.
 */
unsigned int nvmep_queue_look(struct nvmep_queue *queue,
			      struct io_comp_batch *batch)
{
	unsigned long flags;
	unsigned int found;

	if (!nvmep_queue_pending(queue))
		return 0;
	spin_lock_irqsave(&queue->cq_lock, flags);
	found = nvmep_queue_reap(queue, batch);
	spin_unlock_irqrestore(&queue->cq_lock, flags);
	return found;
}

static irqreturn_t nvmep_queue_interrupt(int irq, void *data)
{
	struct nvmep_queue *queue = data;
	DEFINE_IO_COMP_BATCH(batch);
	unsigned int found;

	spin_lock(&queue->cq_lock);
	found = nvmep_queue_reap(queue, &batch);
	spin_unlock(&queue->cq_lock);
	/* nvmep_queue_disable() waits for this too: it is over when that returns. */
	nvmep_batch_end(&batch);
	/* The line may be shared: with another queue or another device. */
	return found ? IRQ_HANDLED : IRQ_NONE;
}

/* --- life of a queue ----------------------------------------------------- */

/**
 * nvmep_queue_alloc() - allocate the rings of a CPU queue
 * @ctrl: controller
 * @qid: queue identifier
 * @entries: of either ring
 * @complete: takes each completion entry, in interrupt context
 * @tag_set: where the tags of its commands will be
 * @tag_index: which of them
 *
 * Return: the queue, disabled, or NULL.
 */
struct nvmep_queue *nvmep_queue_alloc(struct nvmep_ctrl *ctrl, u16 qid,
				      u16 entries, nvmep_complete_fn *complete,
				      struct blk_mq_tag_set *tag_set,
				      unsigned int tag_index)
{
	struct nvmep_queue *queue = kzalloc(sizeof(*queue), GFP_KERNEL);

	if (!queue)
		return NULL;
	queue->ctrl = ctrl;
	queue->complete = complete;
	queue->tag_set = tag_set;
	queue->tag_index = tag_index;
	queue->qid = qid;
	queue->entries = entries;
	/* Zeros are no completions, for who looks before nvmep_queue_reset(). */
	queue->cq_phase = 1;
	spin_lock_init(&queue->sq_lock);
	spin_lock_init(&queue->cq_lock);
	snprintf(queue->name, sizeof(queue->name), "nvmep%dq%u",
		 ctrl->instance, qid);
	queue->uses = kcalloc(entries, sizeof(*queue->uses), GFP_KERNEL);
	queue->sq = dma_alloc_coherent(ctrl->dev, entries * sizeof(*queue->sq),
				       &queue->sq_dma, GFP_KERNEL);
	queue->cq = dma_alloc_coherent(ctrl->dev, entries * sizeof(*queue->cq),
				       &queue->cq_dma, GFP_KERNEL);
	if (!queue->uses || !queue->sq || !queue->cq) {
		nvmep_queue_free(queue);
		return NULL;
	}
	return queue;
}

/**
 * nvmep_queue_free() - free a CPU queue
 * @queue: disabled queue without interrupt, or NULL
 */
void nvmep_queue_free(struct nvmep_queue *queue)
{
	if (!queue)
		return;
	if (queue->sq)
		dma_free_coherent(queue->ctrl->dev,
				  queue->entries * sizeof(*queue->sq),
				  queue->sq, queue->sq_dma);
	if (queue->cq)
		dma_free_coherent(queue->ctrl->dev,
				  queue->entries * sizeof(*queue->cq),
				  queue->cq, queue->cq_dma);
	kfree(queue->uses);
	kfree(queue);
}

/**
 * nvmep_queue_reset() - start the rings afresh
 * @queue: disabled queue that the controller does not know
 *
 * Completion entries of an earlier life would carry a valid phase tag, so the
 * ring is cleared before the controller learns its address.
 */
void nvmep_queue_reset(struct nvmep_queue *queue)
{
	unsigned long flags;

	nvmep_queue_find_doorbells(queue);
	spin_lock_irqsave(&queue->cq_lock, flags);
	memset(queue->cq, 0, queue->entries * sizeof(*queue->cq));
	WRITE_ONCE(queue->cq_head, 0);
	WRITE_ONCE(queue->cq_phase, 1);
	spin_unlock_irqrestore(&queue->cq_lock, flags);

	spin_lock(&queue->sq_lock);
	queue->sq_tail = 0;
	queue->sq_rung = 0;
	spin_unlock(&queue->sq_lock);
}

/**
 * nvmep_queue_enable() - the controller serves the queue from now on
 * @queue: queue after nvmep_queue_reset()
 */
void nvmep_queue_enable(struct nvmep_queue *queue)
{
	spin_lock(&queue->sq_lock);
	set_bit(NVMEP_QUEUE_ENABLED, &queue->flags);
	spin_unlock(&queue->sq_lock);
}

/**
 * nvmep_queue_disable() - no submission and no doorbell after this
 * @queue: queue
 */
void nvmep_queue_disable(struct nvmep_queue *queue)
{
	spin_lock(&queue->sq_lock);
	clear_bit(NVMEP_QUEUE_ENABLED, &queue->flags);
	spin_unlock(&queue->sq_lock);
	if (queue->irq_requested)
		synchronize_irq(pci_irq_vector(queue->ctrl->pdev,
					       queue->vector));
}

/**
 * nvmep_queue_request_irq() - have completions announced
 * @queue: queue
 * @vector: index of the interrupt vector
 *
 * Return: 0 or a negative error code.
 */
int nvmep_queue_request_irq(struct nvmep_queue *queue, unsigned int vector)
{
	int ret;

	queue->vector = vector;
	ret = pci_request_irq(queue->ctrl->pdev, vector, nvmep_queue_interrupt,
			      NULL, queue, "%s", queue->name);
	queue->irq_requested = !ret;
	return ret;
}

/**
 * nvmep_queue_free_irq() - undo nvmep_queue_request_irq()
 * @queue: queue, with an interrupt or without
 */
void nvmep_queue_free_irq(struct nvmep_queue *queue)
{
	if (!queue->irq_requested)
		return;
	pci_free_irq(queue->ctrl->pdev, queue->vector, queue);
	queue->irq_requested = false;
}
