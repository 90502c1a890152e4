// SPDX-License-Identifier: GPL-2.0-only
/*
 * Queue pairs of the CPU: rings, doorbells, interrupts.
 *
 * A ring of n entries holds n - 1 commands; the tag sets are sized so that a
 * submission ring never overflows.  Dispatch must be quiesced before a queue is
 * disabled (see nvmep_ctrl_stop_locked()).
 */
#include <linux/dma-mapping.h>
#include <linux/interrupt.h>
#include <linux/slab.h>

#include "ctrl.h"
#include "queue.h"
#include "trace.h"

/* --- doorbells ----------------------------------------------------------- */

/**
 * nvmep_doorbell_offset() - offset of a doorbell register in BAR0
 * @ctrl: controller
 * @qid: queue identifier
 * @cq: true: CQ head doorbell; false: SQ tail doorbell
 *
 * Return: bytes; NVMe over PCIe transport 3.1.2.
 */
resource_size_t nvmep_doorbell_offset(const struct nvmep_ctrl *ctrl, u16 qid,
				      bool cq)
{
	return NVME_REG_DBS +
	       (2 * (resource_size_t)qid + cq) * ctrl->doorbell_stride;
}

/**
 * nvmep_doorbell_writes() - number of doorbell writes by the CPU
 * @ctrl: controller
 * @qid: queue identifier
 *
 * Tests read it to prove that the CPU did not write a peer's doorbells.
 *
 * Return: writes to both doorbells since nvmep_qid_alloc().
 */
u64 nvmep_doorbell_writes(const struct nvmep_ctrl *ctrl, u16 qid)
{
	const struct nvmep_doorbell_count *count = &ctrl->qids.doorbells[qid];

	return READ_ONCE(count->sq) + READ_ONCE(count->cq);
}

/* The only function of the driver that writes doorbells. */
static void nvmep_write_doorbell(void __iomem *doorbell, u16 value, u64 *count)
{
	WRITE_ONCE(*count, *count + 1);
	writel(value, doorbell);
}

/**
 * nvmep_relay_allow() - allow or forbid writes of peers' doorbells
 * @ctrl: controller; enable_lock is held
 * @allow: the controller is enabled, and no stop has begun
 *
 * After it has forbidden them no thread writes one.
 */
void nvmep_relay_allow(struct nvmep_ctrl *ctrl, bool allow)
{
	lockdep_assert_held(&ctrl->enable_lock);

	spin_lock(&ctrl->relay_lock);
	ctrl->relay_open = allow;
	spin_unlock(&ctrl->relay_lock);
}

/**
 * nvmep_relay_doorbell() - write a doorbell for a peer
 * @ctrl: controller with relay_open; relay_lock is held
 * @qid: queue pair of a peer
 * @cq: true: CQ head doorbell; false: SQ tail doorbell
 * @value: less than the entries of the ring
 */
void nvmep_relay_doorbell(struct nvmep_ctrl *ctrl, u16 qid, bool cq, u16 value)
{
	struct nvmep_doorbell_count *count = &ctrl->qids.doorbells[qid];

	lockdep_assert_held(&ctrl->relay_lock);

	nvmep_write_doorbell(ctrl->bar + nvmep_doorbell_offset(ctrl, qid, cq),
			     value, cq ? &count->cq : &count->sq);
}

/* Called after @qid has changed. */
static void nvmep_queue_set_doorbells(struct nvmep_queue *queue)
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
 * Cost of a command: one locked instruction and one plain store for the lock,
 * 64 bytes written to the ring, the tail.  Cost of a batch: one doorbell write
 * (MMIO) with the store fence of writel().
 */

static void nvmep_queue_write_doorbell_locked(struct nvmep_queue *queue)
{
	lockdep_assert_held(&queue->sq_lock);

	if (queue->sq_tail == queue->last_sq_tail)
		return;
	nvmep_write_doorbell(queue->sq_doorbell, queue->sq_tail,
			     &queue->doorbells->sq);
	queue->last_sq_tail = queue->sq_tail;
}

static u16 nvmep_queue_next(const struct nvmep_queue *queue, u16 index)
{
	return index + 1 == queue->entries ? 0 : index + 1;
}

/**
 * nvmep_queue_fill_begin() - begin to write a batch of commands to the SQ
 * @queue: enabled queue; it stays enabled, as a stop waits for dispatch first
 *
 * Returns with sq_lock held; nvmep_queue_fill_end() drops it.
 */
void nvmep_queue_fill_begin(struct nvmep_queue *queue)
	__acquires(&queue->sq_lock)
{
	spin_lock(&queue->sq_lock);
	WARN_ON_ONCE(!nvmep_queue_enabled(queue));
}

/**
 * nvmep_queue_fill() - write one command to the SQ
 * @queue: queue; sq_lock is held
 * @sqe: complete command
 */
void nvmep_queue_fill(struct nvmep_queue *queue, const struct nvme_command *sqe)
{
	lockdep_assert_held(&queue->sq_lock);

	queue->sq[queue->sq_tail] = *sqe;
	queue->sq_tail = nvmep_queue_next(queue, queue->sq_tail);
	/* One more entry, and a full ring would look empty. */
	if (unlikely(nvmep_queue_next(queue, queue->sq_tail) ==
		     queue->last_sq_tail))
		nvmep_queue_write_doorbell_locked(queue);
}

/**
 * nvmep_queue_fill_end() - write the SQ doorbell and drop sq_lock
 * @queue: queue after nvmep_queue_fill_begin()
 */
void nvmep_queue_fill_end(struct nvmep_queue *queue)
	__releases(&queue->sq_lock)
{
	nvmep_queue_write_doorbell_locked(queue);
	spin_unlock(&queue->sq_lock);
}

/**
 * nvmep_queue_submit() - submit one command
 * @queue: queue
 * @sqe: complete command
 * @ring: write the doorbell now; else nvmep_queue_write_doorbell() must follow
 *
 * Return: false if the queue is disabled; nothing was done.
 */
bool nvmep_queue_submit(struct nvmep_queue *queue,
			const struct nvme_command *sqe, bool ring)
{
	bool enabled;

	spin_lock(&queue->sq_lock);
	enabled = nvmep_queue_enabled(queue);
	if (enabled) {
		nvmep_queue_fill(queue, sqe);
		if (ring)
			nvmep_queue_write_doorbell_locked(queue);
	}
	spin_unlock(&queue->sq_lock);
	return enabled;
}

/**
 * nvmep_queue_submit_bound() - submit one command in a given generation
 * @queue: queue
 * @sqe: complete command
 * @generation: generation that the controller must be in
 *
 * A stop does not wait for this caller as it does for dispatch.
 *
 * Return: false if the queue is disabled, or the controller was stopped
 * meanwhile; nothing was done.
 */
bool nvmep_queue_submit_bound(struct nvmep_queue *queue,
			      const struct nvme_command *sqe, u32 generation)
{
	bool valid;

	spin_lock(&queue->sq_lock);
	/*
	 * A stop disables the queue, under this lock, before it increments the
	 * generation, so the generation of an enabled queue does not change.
	 */
	valid = nvmep_queue_enabled(queue) &&
		nvmep_ctrl_generation(queue->ctrl) == generation;
	if (valid) {
		nvmep_queue_fill(queue, sqe);
		nvmep_queue_write_doorbell_locked(queue);
	}
	spin_unlock(&queue->sq_lock);
	return valid;
}

/**
 * nvmep_queue_write_doorbell() - write the SQ doorbell
 * @queue: queue
 *
 * For commands that were submitted without it.
 */
void nvmep_queue_write_doorbell(struct nvmep_queue *queue)
{
	spin_lock(&queue->sq_lock);
	if (nvmep_queue_enabled(queue))
		nvmep_queue_write_doorbell_locked(queue);
	spin_unlock(&queue->sq_lock);
}

/* --- completion ---------------------------------------------------------- */

/* Is there a new entry?  Racy unless cq_lock is held. */
static bool nvmep_queue_has_cqe(struct nvmep_queue *queue)
{
	u16 head = READ_ONCE(queue->cq_head);
	u16 status = le16_to_cpu(READ_ONCE(queue->cq[head].status));

	return (status & 1) == READ_ONCE(queue->cq_phase);
}

/*
 * Consumes all new entries and returns their number.  Cost of an entry: two
 * loads from the ring and a load fence between them.  Cost of a batch: one MMIO
 * write.
 */
static unsigned int nvmep_queue_reap(struct nvmep_queue *queue,
				     struct io_comp_batch *batch)
{
	const struct nvme_completion *cqe;
	unsigned int found = 0;

	lockdep_assert_held(&queue->cq_lock);

	while (nvmep_queue_has_cqe(queue)) {
		/* Read the phase tag before the rest of the entry. */
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
		nvmep_write_doorbell(queue->cq_doorbell, queue->cq_head,
				     &queue->doorbells->cq);
	return found;
}

/* Completes the batch that reaping filled; no lock is held. */
static void nvmep_batch_end(struct io_comp_batch *batch)
{
	if (batch->complete)
		batch->complete(batch);
}

/**
 * nvmep_queue_poll() - reap completions without waiting for an interrupt
 * @queue: queue, perhaps disabled
 *
 * Return: number of completions.
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
 * nvmep_poll_polled_queues() - reap all polled queues
 * @ctrl: controller, bound
 *
 * The task that submitted to a polled queue may have stopped polling, and in
 * suspend the threads that poll for peers are frozen.  A caller that waits for
 * their commands calls this repeatedly, or it waits forever.
 */
void nvmep_poll_polled_queues(struct nvmep_ctrl *ctrl)
{
	unsigned int i;

	for (i = ctrl->max_cpu_queues - ctrl->polled_queues;
	     i < nvmep_ctrl_cpu_queues(ctrl); i++)
		nvmep_queue_poll(ctrl->queues[i]);
	ctrl->peer_ops->poll(ctrl);
}

/**
 * nvmep_queue_poll_batch() - poll a polled queue on behalf of blk-mq
 * @queue: polled queue, perhaps disabled
 * @batch: completed requests are added; the caller completes them, holding no
 *	lock
 *
 * Costs one load if there is no completion.
 *
 * Return: number of completions.
 */
unsigned int nvmep_queue_poll_batch(struct nvmep_queue *queue,
				    struct io_comp_batch *batch)
{
	unsigned long flags;
	unsigned int found;

	if (!nvmep_queue_has_cqe(queue))
		return 0;
	spin_lock_irqsave(&queue->cq_lock, flags);
	found = nvmep_queue_reap(queue, batch);
	spin_unlock_irqrestore(&queue->cq_lock, flags);
	return found;
}

static irqreturn_t nvmep_queue_irq(int irq, void *data)
{
	struct nvmep_queue *queue = data;
	DEFINE_IO_COMP_BATCH(batch);
	unsigned int found;

	spin_lock(&queue->cq_lock);
	found = nvmep_queue_reap(queue, &batch);
	spin_unlock(&queue->cq_lock);
	/*
	 * synchronize_irq() in nvmep_queue_disable() waits for the batch too.
	 */
	nvmep_batch_end(&batch);
	/* The interrupt may be shared with another queue or another device. */
	return found ? IRQ_HANDLED : IRQ_NONE;
}

/* --- lifetime ------------------------------------------------------------ */

/**
 * nvmep_queue_alloc() - allocate the rings of a CPU queue
 * @ctrl: controller
 * @entries: of each ring
 * @complete: callback for each completion entry; under cq_lock, interrupts off
 * @number: 0 for the admin queue, else 1 and its index in ctrl->queues
 *
 * Return: the queue, disabled and without a queue ID, or NULL.
 */
struct nvmep_queue *nvmep_queue_alloc(struct nvmep_ctrl *ctrl, u16 entries,
				      nvmep_complete_fn *complete,
				      unsigned int number)
{
	struct nvmep_queue *queue = kzalloc(sizeof(*queue), GFP_KERNEL);

	if (!queue)
		return NULL;
	queue->ctrl = ctrl;
	queue->complete = complete;
	queue->number = number;
	queue->vector = -1;
	queue->own_cid = NVMEP_CID_NONE;
	queue->entries = entries;
	/*
	 * Zeroed entries are not new, even to a poll before
	 * nvmep_queue_reset().
	 */
	queue->cq_phase = 1;
	spin_lock_init(&queue->sq_lock);
	spin_lock_init(&queue->cq_lock);
	snprintf(queue->name, sizeof(queue->name), "nvmep%dq%u", ctrl->instance,
		 number);
	queue->uses = kcalloc(entries, sizeof(*queue->uses), GFP_KERNEL);
	queue->requests = kcalloc(entries, sizeof(*queue->requests),
				  GFP_KERNEL);
	queue->sq = dma_alloc_coherent(ctrl->dev, entries * sizeof(*queue->sq),
				       &queue->sq_dma, GFP_KERNEL);
	queue->cq = dma_alloc_coherent(ctrl->dev, entries * sizeof(*queue->cq),
				       &queue->cq_dma, GFP_KERNEL);
	if (!queue->uses || !queue->requests || !queue->sq || !queue->cq) {
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
	kfree(queue->requests);
	kfree(queue->uses);
	kfree(queue);
}

/**
 * nvmep_queue_reset() - clear the rings before the queue is created
 * @queue: disabled queue that does not exist on the controller
 *
 * Entries of an older generation could carry a valid phase tag, so the
 * completion ring must be zero before the controller gets its address.
 */
void nvmep_queue_reset(struct nvmep_queue *queue)
{
	unsigned long flags;

	nvmep_queue_set_doorbells(queue);
	spin_lock_irqsave(&queue->cq_lock, flags);
	memset(queue->cq, 0, queue->entries * sizeof(*queue->cq));
	WRITE_ONCE(queue->cq_head, 0);
	WRITE_ONCE(queue->cq_phase, 1);
	spin_unlock_irqrestore(&queue->cq_lock, flags);

	spin_lock(&queue->sq_lock);
	queue->sq_tail = 0;
	queue->last_sq_tail = 0;
	spin_unlock(&queue->sq_lock);
}

/**
 * nvmep_queue_enable() - allow submission to a queue
 * @queue: queue that was created on the controller
 */
void nvmep_queue_enable(struct nvmep_queue *queue)
{
	spin_lock(&queue->sq_lock);
	set_bit(NVMEP_QUEUE_ENABLED, &queue->flags);
	spin_unlock(&queue->sq_lock);
}

/**
 * nvmep_queue_disable() - refuse submission to a queue
 * @queue: queue
 *
 * On return no command can be submitted, and its interrupt handler has
 * finished.
 */
void nvmep_queue_disable(struct nvmep_queue *queue)
{
	spin_lock(&queue->sq_lock);
	clear_bit(NVMEP_QUEUE_ENABLED, &queue->flags);
	spin_unlock(&queue->sq_lock);
	if (READ_ONCE(queue->irq_requested))
		synchronize_irq(pci_irq_vector(queue->ctrl->pdev,
					       queue->vector));
}

/**
 * nvmep_queue_request_irq() - register the interrupt handler of a queue
 * @queue: disabled queue
 * @vector: index of the interrupt vector; 0 may be shared by queues or devices
 *
 * Return: 0 or a negative error code.
 */
int nvmep_queue_request_irq(struct nvmep_queue *queue, unsigned int vector)
{
	/* The driver itself balances the vectors of I/O queues. */
	unsigned long flags = IRQF_SHARED | (vector ? IRQF_NOBALANCING : 0);
	int ret;

	queue->vector = vector;
	ret = request_irq(pci_irq_vector(queue->ctrl->pdev, vector),
			  nvmep_queue_irq, flags, queue->name, queue);
	WRITE_ONCE(queue->irq_requested, !ret);
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
	free_irq(pci_irq_vector(queue->ctrl->pdev, queue->vector), queue);
	WRITE_ONCE(queue->irq_requested, false);
}
