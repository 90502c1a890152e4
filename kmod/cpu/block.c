// SPDX-License-Identifier: GPL-2.0-only
/*
 * Block I/O: requests as commands of the NVM command set, and the blk-mq
 * callbacks.
 */
#include <linux/blk-mq.h>
#include <linux/cpumask.h>
#include <linux/mempool.h>
#include <linux/preempt.h>
#include <linux/sched/mm.h>

#include "block.h"
#include "compat.h"
#include "core/ctrl.h"
#include "core/data.h"
#include "core/queue.h"
#include "core/request.h"
#include "core/reset.h"
#include "cpu.h"
#include "module.h"
#include "namespace.h"
#include "queue_map.h"

/* --- commands ------------------------------------------------------------ */

static u64 nvmep_first_block(const struct nvmep_ns *ns, sector_t sector)
{
	return sector >> (ns->block_shift - SECTOR_SHIFT);
}

static u32 nvmep_blocks(const struct nvmep_ns *ns, const struct request *rq)
{
	return blk_rq_bytes(rq) >> ns->block_shift;
}

static blk_status_t nvmep_build_rw(const struct nvmep_ns *ns,
				   struct request *rq, u8 opcode)
{
	u64 first = nvmep_first_block(ns, blk_rq_pos(rq));
	struct nvme_command *sqe = &nvmep_request(rq)->sqe;
	u16 control;

	sqe->common.opcode = opcode;
	control = nvmep_rw_protect(sqe, ns, first);
	if (rq->cmd_flags & REQ_FUA)
		control |= NVME_RW_FUA;
	if (rq->cmd_flags & (REQ_FAILFAST_DEV | REQ_RAHEAD))
		control |= NVME_RW_LR;
	if (rq->cmd_flags & REQ_RAHEAD)
		sqe->common.cdw13 = cpu_to_le32(NVME_RW_DSM_FREQ_PREFETCH);
	nvmep_rw_range(sqe, first, nvmep_blocks(ns, rq), control);
	return BLK_STS_OK;
}

static blk_status_t nvmep_build_write_zeroes(const struct nvmep_ns *ns,
					     struct request *rq)
{
	u64 first = nvmep_first_block(ns, blk_rq_pos(rq));
	struct nvme_command *sqe = &nvmep_request(rq)->sqe;
	u16 control;

	sqe->common.opcode = nvme_cmd_write_zeroes;
	/* The controller has no protection information to check, only to make. */
	control = nvmep_rw_protect(sqe, ns, first) & NVME_RW_PRINFO_PRACT;
	if (ns->zeroes_deallocate && !(rq->cmd_flags & REQ_NOUNMAP))
		control |= NVME_WZ_DEAC;
	nvmep_rw_range(sqe, first, nvmep_blocks(ns, rq), control);
	return BLK_STS_OK;
}

static void nvmep_fill_range(struct nvme_dsm_range *range,
			     const struct nvmep_ns *ns, sector_t sector,
			     unsigned int bytes)
{
	range->cattr = 0;
	range->nlb = cpu_to_le32(bytes >> ns->block_shift);
	range->slba = cpu_to_le64(nvmep_first_block(ns, sector));
}

/* One range for each bio.  Returns their number, or 0 for too many. */
static unsigned int nvmep_fill_ranges(struct nvme_dsm_range *ranges,
				      const struct nvmep_ns *ns,
				      struct request *rq)
{
	unsigned int count = 0;
	struct bio *bio;

	if (queue_max_discard_segments(rq->q) == 1) {
		nvmep_fill_range(ranges, ns, blk_rq_pos(rq), blk_rq_bytes(rq));
		return 1;
	}
	__rq_for_each_bio(bio, rq) {
		if (count == NVME_DSM_MAX_RANGES)
			return 0;
		nvmep_fill_range(&ranges[count], ns, bio->bi_iter.bi_sector,
				 bio->bi_iter.bi_size);
		count++;
	}
	return count;
}

static blk_status_t nvmep_build_discard(const struct nvmep_ns *ns,
					struct request *rq)
{
	unsigned int segments = blk_rq_nr_discard_segments(rq);
	struct nvme_command *sqe = &nvmep_request(rq)->sqe;
	struct page *page;

	page = mempool_alloc(ns->ctrl->cpu->range_pool, GFP_ATOMIC);
	if (!page)
		return BLK_STS_RESOURCE;
	if (WARN_ON_ONCE(nvmep_fill_ranges(page_address(page), ns, rq) !=
			 segments)) {
		mempool_free(page, ns->ctrl->cpu->range_pool);
		return BLK_STS_IOERR;
	}
	sqe->common.opcode = nvme_cmd_dsm;
	sqe->common.cdw10 = cpu_to_le32(segments - 1);
	sqe->common.cdw11 = cpu_to_le32(NVME_DSMGMT_AD);
	rq->special_vec.bv_page = page;
	rq->special_vec.bv_offset = 0;
	rq->special_vec.bv_len = segments * sizeof(struct nvme_dsm_range);
	rq->rq_flags |= RQF_SPECIAL_PAYLOAD;
	return BLK_STS_OK;
}

/* Frees the page of ranges, if the command has one. */
static void nvmep_command_cleanup(struct nvmep_ctrl *ctrl, struct request *rq)
{
	if (!(rq->rq_flags & RQF_SPECIAL_PAYLOAD))
		return;
	mempool_free(rq->special_vec.bv_page, ctrl->cpu->range_pool);
	rq->rq_flags &= ~RQF_SPECIAL_PAYLOAD;
}

static void nvmep_command_init(const struct nvmep_ns *ns, struct request *rq)
{
	struct nvmep_request *req = nvmep_request(rq);

	if (!(rq->rq_flags & RQF_DONTPREP))
		nvmep_request_init(rq);
	req->flags = 0;
	req->aborted = false;
	req->status = 0;
	req->sqe = (struct nvme_command){
		.common.nsid = cpu_to_le32(ns->nsid),
	};
}

/*
 * A request may have been queued before the format changed.  It fails unless it
 * consists of whole blocks of the new format.
 */
static bool nvmep_command_fits(const struct nvmep_ns *ns, struct request *rq)
{
	unsigned int mask = (1U << ns->block_shift) - 1;

	if (ns->format != NVMEP_NS_FORMAT_BLOCKS)
		return false;
	/* A flush has no range. */
	if (!blk_rq_bytes(rq))
		return true;
	return !((blk_rq_pos(rq) << SECTOR_SHIFT | blk_rq_bytes(rq)) & mask);
}

/* Not inlined: reads and writes would have to save more registers. */
static noinline blk_status_t nvmep_build_other(const struct nvmep_ns *ns,
					       struct request *rq)
{
	switch (req_op(rq)) {
	case REQ_OP_FLUSH:
		nvmep_request(rq)->sqe.common.opcode = nvme_cmd_flush;
		return BLK_STS_OK;
	case REQ_OP_DISCARD:
		return nvmep_build_discard(ns, rq);
	case REQ_OP_WRITE_ZEROES:
		return nvmep_build_write_zeroes(ns, rq);
	default:
		return BLK_STS_NOTSUPP;
	}
}

static blk_status_t nvmep_command_build(const struct nvmep_ns *ns,
					struct request *rq)
{
	/* A passthrough request already has its command, which was checked. */
	if (blk_rq_is_passthrough(rq))
		return ns->format == NVMEP_NS_FORMAT_UNKNOWN ? BLK_STS_IOERR :
							       BLK_STS_OK;
	nvmep_command_init(ns, rq);
	if (unlikely(!nvmep_command_fits(ns, rq)))
		return BLK_STS_IOERR;
	switch (req_op(rq)) {
	case REQ_OP_READ:
		return nvmep_build_rw(ns, rq, nvme_cmd_read);
	case REQ_OP_WRITE:
		return nvmep_build_rw(ns, rq, nvme_cmd_write);
	default:
		return nvmep_build_other(ns, rq);
	}
}

/* --- requeue list ------------------------------------------------------- */

/*
 * A controller may grant fewer queues after a reset, while the block layer
 * still has requests for the queues that are gone.  Until nvmep_queues_update()
 * has removed these queues, requeue work submits their bios again, on a CPU
 * that a live queue serves.  It does not wait for the scan, which may itself
 * wait for one of them: to read the partition table of a new disk.  If no such
 * CPU is online, bios wait for the next scan, and fail while one runs.
 *
 * A flush that the block layer has made of several has no bio.  Flush work
 * sends a Flush of its own and ends the request with that status.
 *
 * Passthrough requests fail, and the submitter decides about a retry.
 */

/* How often a Flush is tried while the controller is reset, milliseconds. */
#define NVMEP_FLUSH_RETRY_MS	50UL

static blk_status_t nvmep_requeue_fail(struct request *rq)
{
	nvmep_request(rq)->status = NVME_SC_HOST_PATH_ERROR;
	return BLK_STS_IOERR;
}

/*
 * Polled queues are the first that are dropped: a moved bio is not polled.  Its
 * submitter no longer waits for it here, so it may sleep.  An interrupt frees it,
 * which older kernels such as 6.1 do not expect of a bio from a cache.
 */
static void nvmep_requeue_prepare_bio(struct bio *bio)
{
	bio->bi_opf &= ~(REQ_POLLED | REQ_NOWAIT | REQ_ALLOC_CACHE);
	/* io_uring must not poll a hardware context that is gone. */
	WRITE_ONCE(bio->bi_cookie, BLK_QC_T_NONE);
}

/*
 * Returns false, and the bios are still those of @rq, if they have to fail:
 * without a live queue they wait for a scan, and the list is emptied for the
 * last time after the change to DELETING.
 */
static bool nvmep_requeue_steal_bios(struct nvmep_ctrl *ctrl,
				     struct request *rq, int live)
{
	struct nvmep_cpu *cpu = ctrl->cpu;
	unsigned long flags;
	bool wait;

	spin_lock_irqsave(&cpu->requeue_lock, flags);
	wait = live >= 0 || (!cpu->requeue_scans &&
			     nvmep_ctrl_state(ctrl) < NVMEP_CTRL_DELETING);
	if (wait)
		blk_steal_bios(&cpu->requeue_list, rq);
	spin_unlock_irqrestore(&cpu->requeue_lock, flags);
	return wait;
}

/*
 * With a delay: a work that is queued while it runs, perhaps by its own
 * submission, runs on the same CPU again, whose queue may be gone meanwhile.
 * The timer of an offline CPU would not expire, and with preemption disabled no
 * CPU goes offline.
 */
static void nvmep_requeue_queue(struct nvmep_cpu *cpu, int live)
{
	preempt_disable();
	queue_delayed_work_on(live, nvmep_requeue_wq, &cpu->requeue_work,
			      cpu_online(live));
	preempt_enable();
}

static blk_status_t nvmep_requeue_add_bios(struct nvmep_ctrl *ctrl,
					   struct request *rq)
{
	struct nvmep_cpu *cpu = ctrl->cpu;
	int live = nvmep_queues_live_cpu(ctrl);
	struct bio *bio;

	blk_mq_start_request(rq);
	__rq_for_each_bio(bio, rq)
		nvmep_requeue_prepare_bio(bio);
	if (!nvmep_requeue_steal_bios(ctrl, rq, live))
		return nvmep_requeue_fail(rq);
	blk_mq_end_request(rq, BLK_STS_OK);
	if (live >= 0)
		nvmep_requeue_queue(cpu, live);
	return BLK_STS_OK;
}

/* Not started: neither a timeout nor a stop of the controller ends it. */
static void nvmep_requeue_add_flush(struct nvmep_ctrl *ctrl, struct request *rq)
{
	struct nvmep_cpu *cpu = ctrl->cpu;
	unsigned long flags;

	if (!(rq->rq_flags & RQF_DONTPREP))
		nvmep_request_init(rq);
	spin_lock_irqsave(&cpu->requeue_lock, flags);
	list_add_tail(&rq->queuelist, &cpu->requeue_flushes);
	spin_unlock_irqrestore(&cpu->requeue_lock, flags);
	queue_delayed_work(nvmep_flush_wq, &cpu->flush_work, 0);
}

/* Returns BLK_STS_OK, and the request has ended or will, or BLK_STS_IOERR. */
static blk_status_t nvmep_requeue_add(struct nvmep_ctrl *ctrl,
				      struct request *rq)
{
	if (blk_rq_is_passthrough(rq))
		return nvmep_requeue_fail(rq);
	if (rq->bio)
		return nvmep_requeue_add_bios(ctrl, rq);
	nvmep_requeue_add_flush(ctrl, rq);
	return BLK_STS_OK;
}

static void nvmep_requeue_take(struct nvmep_cpu *cpu, struct bio_list *list)
{
	spin_lock_irq(&cpu->requeue_lock);
	*list = cpu->requeue_list;
	bio_list_init(&cpu->requeue_list);
	spin_unlock_irq(&cpu->requeue_lock);
}

/**
 * nvmep_requeue_submit() - submit the bios of the requeue list again
 * @ctrl: controller whose hardware queues were updated, or whose I/O fails
 *
 * Sleeps until tags are free.
 */
void nvmep_requeue_submit(struct nvmep_ctrl *ctrl)
{
	struct bio_list list;
	struct bio *bio;

	nvmep_requeue_take(ctrl->cpu, &list);
	while ((bio = bio_list_pop(&list)))
		submit_bio_noacct(bio);
}

/**
 * nvmep_requeue_scan_begin() - let no bio wait for the end of a scan
 * @ctrl: controller; scan_lock is held until nvmep_requeue_scan_end()
 *
 * The scan may wait for one of them.  Those that no live queue can serve fail.
 */
void nvmep_requeue_scan_begin(struct nvmep_ctrl *ctrl)
{
	struct nvmep_cpu *cpu = ctrl->cpu;
	struct bio_list list;
	struct bio *bio;

	lockdep_assert_held(&cpu->scan_lock);

	spin_lock_irq(&cpu->requeue_lock);
	cpu->requeue_scans = true;
	spin_unlock_irq(&cpu->requeue_lock);
	if (nvmep_queues_live_cpu(ctrl) >= 0) {
		nvmep_requeue_submit(ctrl);
		return;
	}
	nvmep_requeue_take(cpu, &list);
	while ((bio = bio_list_pop(&list)))
		bio_io_error(bio);
}

void nvmep_requeue_scan_end(struct nvmep_ctrl *ctrl)
{
	struct nvmep_cpu *cpu = ctrl->cpu;

	lockdep_assert_held(&cpu->scan_lock);

	spin_lock_irq(&cpu->requeue_lock);
	cpu->requeue_scans = false;
	spin_unlock_irq(&cpu->requeue_lock);
}

/* Runs with a rescuer: memory reclaim may wait for these bios. */
void nvmep_requeue_work(struct work_struct *work)
{
	struct nvmep_cpu *cpu = container_of(to_delayed_work(work),
					     struct nvmep_cpu, requeue_work);

	nvmep_requeue_submit(cpu->ctrl);
}

/*
 * Returns as nvmep_queue_execute(), with a status instead of -EINTR if the
 * controller will not come back.  The first queue is always live.
 */
static int nvmep_flush_send(struct nvmep_ctrl *ctrl,
			    const struct request *flush)
{
	const struct nvmep_ns *ns = flush->q->queuedata;
	struct nvme_command sqe = {
		.common.opcode = nvme_cmd_flush,
		.common.nsid = cpu_to_le32(ns->nsid),
	};
	int ret;

	ret = nvmep_queue_execute(ctrl->queues[0], &sqe,
				  ctrl->io_tags.timeout);
	if (ret == -EINTR && nvmep_ctrl_state(ctrl) >= NVMEP_CTRL_DELETING)
		return NVME_SC_HOST_ABORTED_CMD | NVME_STATUS_DNR;
	return ret;
}

/* Returns false if it has to be sent again; may increase the delay before. */
static bool nvmep_flush_done(struct nvmep_ctrl *ctrl, struct request *flush,
			     unsigned long *delay)
{
	struct nvmep_ns *ns = flush->q->queuedata;
	int ret = nvmep_flush_send(ctrl, flush);

	return ret != -EINTR &&
	       nvmep_request_end_executed(flush, ret, &ns->failures, delay);
}

/*
 * Not part of requeue work, which waits while a request queue is frozen: the
 * freeze waits for these requests.
 */
void nvmep_flush_work(struct work_struct *work)
{
	struct nvmep_cpu *cpu = container_of(to_delayed_work(work),
					     struct nvmep_cpu, flush_work);
	struct request *flush;
	unsigned long delay = NVMEP_FLUSH_RETRY_MS;
	LIST_HEAD(flushes);
	LIST_HEAD(left);

	spin_lock_irq(&cpu->requeue_lock);
	list_splice_init(&cpu->requeue_flushes, &flushes);
	spin_unlock_irq(&cpu->requeue_lock);
	while ((flush = list_first_entry_or_null(&flushes, struct request,
						 queuelist))) {
		list_del_init(&flush->queuelist);
		if (!nvmep_flush_done(cpu->ctrl, flush, &delay))
			list_add_tail(&flush->queuelist, &left);
	}
	if (list_empty(&left))
		return;
	spin_lock_irq(&cpu->requeue_lock);
	list_splice(&left, &cpu->requeue_flushes);
	spin_unlock_irq(&cpu->requeue_lock);
	queue_delayed_work(nvmep_flush_wq, &cpu->flush_work,
			   msecs_to_jiffies(delay));
}

/* --- blk-mq callbacks ---------------------------------------------------- */

/*
 * A reset quiesces all request queues before it disables the hardware queues.
 * So a request is dispatched to a disabled queue only if the controller no
 * longer grants that queue after a reset, or was stopped in state DELETING or
 * DEAD.  The removal of a disk writes its data back, by the queues that are
 * left.
 */
static blk_status_t nvmep_handle_disabled_queue(struct nvmep_ctrl *ctrl,
						struct request *rq)
{
	if (nvmep_ctrl_state(ctrl) < NVMEP_CTRL_DELETING ||
	    (test_bit(NVMEP_CTRL_ENABLED, &ctrl->flags) &&
	     nvmep_queues_live_cpu(ctrl) >= 0))
		return nvmep_requeue_add(ctrl, rq);
	return nvmep_requeue_fail(rq);
}

static blk_status_t nvmep_queue_rq(struct blk_mq_hw_ctx *hctx,
				   const struct blk_mq_queue_data *bd)
{
	struct nvmep_queue *queue = hctx->driver_data;
	struct nvmep_ns *ns = hctx->queue->queuedata;
	struct request *rq = bd->rq;
	blk_status_t status;

	if (unlikely(!nvmep_queue_enabled(queue)))
		return nvmep_handle_disabled_queue(queue->ctrl, rq);
	status = nvmep_command_build(ns, rq);
	if (unlikely(status))
		return status;
	status = nvmep_request_submit(queue, rq, bd->last);
	if (unlikely(status))
		nvmep_command_cleanup(queue->ctrl, rq);
	return status;
}

/*
 * Prepares a request of a list.  On failure the block layer dispatches it
 * alone, with nvmep_queue_rq(), which can return an error.
 */
static bool nvmep_queue_prepare(struct nvmep_queue *queue, struct request *rq)
{
	if (unlikely(!nvmep_queue_enabled(queue)))
		return false;
	/* blk-mq sets this for requests that it dispatches alone. */
	rq->mq_hctx->tags->rqs[rq->tag] = rq;
	if (unlikely(nvmep_command_build(rq->q->queuedata, rq)))
		return false;
	if (likely(!nvmep_request_prepare(queue, rq)))
		return true;
	nvmep_command_cleanup(queue->ctrl, rq);
	return false;
}

/* Requests of one disk for several queues; blk-mq dispatches the rest alone. */
static void nvmep_queue_rqs(struct rq_list *list)
{
	struct rq_list ready = { }, left = { };
	struct nvmep_queue *queue = NULL, *next;
	struct request *rq;

	while ((rq = nvmep_rq_list_pop(list))) {
		next = rq->mq_hctx->driver_data;
		if (queue && next != queue && ready.head)
			nvmep_request_submit_list(queue, &ready);
		queue = next;
		nvmep_rq_list_add(nvmep_queue_prepare(queue, rq) ? &ready : &left,
				  rq);
	}
	if (ready.head)
		nvmep_request_submit_list(queue, &ready);
	*list = left;
}

NVMEP_QUEUE_RQS_FN(nvmep_queue_rqs);

static void nvmep_complete_rq(struct request *rq)
{
	struct nvmep_queue *queue = rq->mq_hctx->driver_data;
	struct nvmep_ns *ns = rq->q->queuedata;

	nvmep_data_unmap(queue->ctrl, rq);
	nvmep_command_cleanup(queue->ctrl, rq);
	nvmep_request_end(rq, &ns->failures);
}

static void nvmep_commit_rqs(struct blk_mq_hw_ctx *hctx)
{
	nvmep_queue_write_doorbell(hctx->driver_data);
}

/* Some kernels look the context up before they know that it still exists. */
static int nvmep_poll(struct blk_mq_hw_ctx *hctx, struct io_comp_batch *batch)
{
	if (unlikely(!hctx))
		return 0;
	return nvmep_queue_poll_batch(hctx->driver_data, batch);
}

static int nvmep_init_hctx(struct blk_mq_hw_ctx *hctx, void *data,
			   unsigned int index)
{
	struct nvmep_ctrl *ctrl = data;

	hctx->driver_data = ctrl->queues[index];
	/*
	 * Older kernels keep this flag of a context whose CPUs were offline
	 * when it is used again for other CPUs, and these then wait forever.
	 */
	clear_bit(BLK_MQ_S_INACTIVE, &hctx->state);
	return 0;
}

static const struct blk_mq_ops nvmep_mq_ops = {
	.queue_rq = nvmep_queue_rq,
	.queue_rqs = nvmep_queue_rqs_fn,
	.commit_rqs = nvmep_commit_rqs,
	.complete = nvmep_complete_rq,
	.poll = nvmep_poll,
	.init_hctx = nvmep_init_hctx,
	.map_queues = nvmep_map_queues,
	.timeout = nvmep_timeout,
};

/* Allocates the tag set; the controller's CPU queues are allocated before. */
int nvmep_block_init(struct nvmep_ctrl *ctrl)
{
	struct blk_mq_tag_set *tags = &ctrl->io_tags;
	int ret;

	ctrl->cpu->range_pool = mempool_create_page_pool(1, 0);
	if (!ctrl->cpu->range_pool)
		return -ENOMEM;
	tags->ops = &nvmep_mq_ops;
	tags->nr_hw_queues = ctrl->cpu_queues_live;
	tags->nr_maps = ctrl->polled_queues ? HCTX_MAX_TYPES : 1;
	/*
	 * A full ring has one empty entry; one is for nvmep_queue_execute().
	 */
	tags->queue_depth = max(ctrl->queues[0]->entries - 2, 1);
	tags->numa_node = dev_to_node(ctrl->dev);
	tags->cmd_size = sizeof(struct nvmep_request);
	tags->flags = NVMEP_BLK_MQ_F_SHOULD_MERGE;
	tags->timeout = nvmep_io_timeout * HZ;
	tags->driver_data = ctrl;
	ret = blk_mq_alloc_tag_set(tags);
	if (ret) {
		mempool_destroy(ctrl->cpu->range_pool);
		return ret;
	}
	nvmep_queues_set_affinity(ctrl);
	return 0;
}

/* Undoes nvmep_block_init(); all namespaces are removed before. */
void nvmep_block_exit(struct nvmep_ctrl *ctrl)
{
	blk_mq_free_tag_set(&ctrl->io_tags);
	mempool_destroy(ctrl->cpu->range_pool);
}
