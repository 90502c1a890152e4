// SPDX-License-Identifier: GPL-2.0-only
/*
 * Block layer requests become commands of the NVM command set.
 */
#include <linux/blk-mq.h>
#include <linux/mempool.h>
#include <linux/sched/mm.h>

#include "block.h"
#include "compat.h"
#include "core/ctrl.h"
#include "core/data.h"
#include "core/queue.h"
#include "core/request.h"
#include "core/timeout.h"
#include "cpu.h"
#include "moved.h"
#include "namespace.h"
#include "params.h"
#include "rw.h"

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
	struct nvme_sqe *sqe = &nvmep_request(rq)->sqe;
	u16 control;

	sqe->opcode = opcode;
	control = nvmep_rw_protect(sqe, ns, first);
	if (rq->cmd_flags & REQ_FUA)
		control |= NVME_RW_FUA;
	if (rq->cmd_flags & (REQ_FAILFAST_DEV | REQ_RAHEAD))
		control |= NVME_RW_LIMITED_RETRY;
	if (rq->cmd_flags & REQ_RAHEAD)
		sqe->cdw13 = cpu_to_le32(NVME_RW_DSM_PREFETCH);
	nvmep_rw_range(sqe, first, nvmep_blocks(ns, rq), control);
	return BLK_STS_OK;
}

static blk_status_t nvmep_build_write_zeroes(const struct nvmep_ns *ns,
					     struct request *rq)
{
	u64 first = nvmep_first_block(ns, blk_rq_pos(rq));
	struct nvme_sqe *sqe = &nvmep_request(rq)->sqe;
	u16 control;

	sqe->opcode = NVME_CMD_WRITE_ZEROES;
	control = nvmep_rw_protect(sqe, ns, first);
	if (ns->zeroes_deallocate && !(rq->cmd_flags & REQ_NOUNMAP))
		control |= NVME_WRITE_ZEROES_DEALLOCATE;
	nvmep_rw_range(sqe, first, nvmep_blocks(ns, rq), control);
	return BLK_STS_OK;
}

static void nvmep_fill_range(struct nvme_dsm_range *range,
			     const struct nvmep_ns *ns, sector_t sector,
			     unsigned int bytes)
{
	range->attributes = 0;
	range->blocks = cpu_to_le32(bytes >> ns->block_shift);
	range->slba = cpu_to_le64(nvmep_first_block(ns, sector));
}

/* One range for each bio; returns how many were needed. */
static unsigned int nvmep_fill_ranges(struct nvme_dsm_range *ranges,
				      const struct nvmep_ns *ns,
				      struct request *rq, unsigned int limit)
{
	unsigned int count = 0;
	struct bio *bio;

	if (queue_max_discard_segments(rq->q) == 1) {
		nvmep_fill_range(ranges, ns, blk_rq_pos(rq), blk_rq_bytes(rq));
		return 1;
	}
	__rq_for_each_bio(bio, rq) {
		if (count < limit)
			nvmep_fill_range(&ranges[count], ns,
					 bio->bi_iter.bi_sector,
					 bio->bi_iter.bi_size);
		count++;
	}
	return count;
}

static blk_status_t nvmep_build_discard(const struct nvmep_ns *ns,
					struct request *rq)
{
	unsigned int segments = blk_rq_nr_discard_segments(rq);
	struct nvme_sqe *sqe = &nvmep_request(rq)->sqe;
	struct page *page;

	page = mempool_alloc(ns->ctrl->cpu->range_pool, GFP_ATOMIC);
	if (!page)
		return BLK_STS_RESOURCE;
	if (WARN_ON_ONCE(segments > NVME_DSM_MAX_RANGES ||
			 nvmep_fill_ranges(page_address(page), ns, rq,
					   segments) != segments)) {
		mempool_free(page, ns->ctrl->cpu->range_pool);
		return BLK_STS_IOERR;
	}
	sqe->opcode = NVME_CMD_DATASET_MANAGEMENT;
	sqe->cdw10 = cpu_to_le32(segments - 1);
	sqe->cdw11 = cpu_to_le32(NVME_DSM_DEALLOCATE);
	rq->special_vec.bv_page = page;
	rq->special_vec.bv_offset = 0;
	rq->special_vec.bv_len = segments * sizeof(struct nvme_dsm_range);
	rq->rq_flags |= RQF_SPECIAL_PAYLOAD;
	return BLK_STS_OK;
}

/* Frees what building a command allocated. */
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
		nvmep_request_first(rq);
	req->flags = 0;
	req->status = 0;
	req->sqe = (struct nvme_sqe){ .nsid = cpu_to_le32(ns->nsid) };
}

/*
 * Requests that were made before the format changed, and waited meanwhile, come
 * after it.  A part of a block cannot be moved.
 */
static bool nvmep_command_fits(const struct nvmep_ns *ns, struct request *rq)
{
	unsigned int mask = (1U << ns->block_shift) - 1;

	if (ns->format != NVMEP_NS_FORMAT_BLOCKS)
		return false;
	/* A flush has no place. */
	if (!blk_rq_bytes(rq))
		return true;
	return !((blk_rq_pos(rq) << SECTOR_SHIFT | blk_rq_bytes(rq)) & mask);
}

/* Rare ones, apart: they would cost the others registers. */
static noinline blk_status_t nvmep_build_other(const struct nvmep_ns *ns,
					       struct request *rq)
{
	switch (req_op(rq)) {
	case REQ_OP_FLUSH:
		nvmep_request(rq)->sqe.opcode = NVME_CMD_FLUSH;
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
	/* Passthrough comes with its command, whose length was checked. */
	if (blk_rq_is_passthrough(rq))
		return ns->format == NVMEP_NS_FORMAT_UNKNOWN ? BLK_STS_IOERR :
							       BLK_STS_OK;
	nvmep_command_init(ns, rq);
	if (unlikely(!nvmep_command_fits(ns, rq)))
		return BLK_STS_IOERR;
	switch (req_op(rq)) {
	case REQ_OP_READ:
		return nvmep_build_rw(ns, rq, NVME_CMD_READ);
	case REQ_OP_WRITE:
		return nvmep_build_rw(ns, rq, NVME_CMD_WRITE);
	default:
		return nvmep_build_other(ns, rq);
	}
}

/* --- blk-mq callbacks ---------------------------------------------------- */

/*
 * The queue is not enabled.  While a controller is reset nothing is dispatched, so this
 * one has gone: see nvmep_block_adapt(); or all have, with the controller.
 */
static blk_status_t nvmep_not_ready(struct nvmep_ctrl *ctrl,
				    struct request *rq)
{
	if (nvmep_ctrl_state(ctrl) < NVMEP_CTRL_DELETING)
		return nvmep_moved_add(ctrl, rq);
	nvmep_request(rq)->status = NVME_SC_HOST_PATH_ERROR;
	return BLK_STS_IOERR;
}

static blk_status_t nvmep_queue_rq(struct blk_mq_hw_ctx *hctx,
				   const struct blk_mq_queue_data *bd)
{
	struct nvmep_queue *queue = hctx->driver_data;
	struct nvmep_ns *ns = hctx->queue->queuedata;
	struct request *rq = bd->rq;
	blk_status_t status;

	if (unlikely(!nvmep_queue_enabled(queue)))
		return nvmep_not_ready(queue->ctrl, rq);
	status = nvmep_command_build(ns, rq);
	if (unlikely(status))
		return status;
	status = nvmep_request_issue(queue, rq, bd->last);
	if (unlikely(status))
		nvmep_command_cleanup(queue->ctrl, rq);
	return status;
}

/*
 * Makes a request of a list ready.  What is not goes the way of single ones, which tells
 * the block layer why.
 */
static bool nvmep_queue_prepare(struct nvmep_queue *queue, struct request *rq)
{
	if (unlikely(!nvmep_queue_enabled(queue)))
		return false;
	/* The block layer does this for single ones. */
	rq->mq_hctx->tags->rqs[rq->tag] = rq;
	if (unlikely(nvmep_command_build(rq->q->queuedata, rq)))
		return false;
	if (likely(!nvmep_request_prepare(queue, rq)))
		return true;
	nvmep_command_cleanup(queue->ctrl, rq);
	return false;
}

/* Requests of one disk, perhaps for several queues; those left in the list come singly. */
static void nvmep_queue_rqs(NVMEP_RQ_LIST_PARAM)
{
	struct rq_list list = nvmep_rq_list_take(rqs), ready = { }, left = { };
	struct nvmep_queue *queue = NULL, *next;
	struct request *rq;

	while ((rq = nvmep_rq_list_pop(&list))) {
		next = rq->mq_hctx->driver_data;
		if (queue && next != queue && ready.head)
			nvmep_request_submit_list(queue, &ready);
		queue = next;
		nvmep_rq_list_add(nvmep_queue_prepare(queue, rq) ? &ready : &left,
				  rq);
	}
	if (ready.head)
		nvmep_request_submit_list(queue, &ready);
	*rqs = nvmep_rq_list_give(left);
}

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
	nvmep_queue_ring(hctx->driver_data);
}

static int nvmep_poll(struct blk_mq_hw_ctx *hctx, struct io_comp_batch *batch)
{
	return nvmep_queue_look(hctx->driver_data, batch);
}

static int nvmep_init_hctx(struct blk_mq_hw_ctx *hctx, void *data,
			   unsigned int index)
{
	struct nvmep_ctrl *ctrl = data;

	hctx->driver_data = ctrl->queues[index];
	return 0;
}

/* Gives polled queues, the last ones, to requests that are polled for. */
static unsigned int nvmep_map_polled(const struct nvmep_ctrl *ctrl,
				     struct blk_mq_tag_set *tags)
{
	unsigned int others = ctrl->cpu_queues - ctrl->polled_queues, polled;
	struct blk_mq_queue_map *map = &tags->map[HCTX_TYPE_POLL];

	if (tags->nr_maps <= HCTX_TYPE_POLL)
		return 0;
	/* The controller may grant fewer now, and these go first. */
	polled = tags->nr_hw_queues - min(tags->nr_hw_queues, others);
	tags->map[HCTX_TYPE_READ].nr_queues = 0;
	map->nr_queues = polled;
	map->queue_offset = tags->nr_hw_queues - polled;
	if (polled)
		blk_mq_map_queues(map);
	return polled;
}

static void nvmep_map_queues(struct blk_mq_tag_set *tags)
{
	struct nvmep_ctrl *ctrl = tags->driver_data;
	struct blk_mq_queue_map *map = &tags->map[HCTX_TYPE_DEFAULT];
	unsigned int polled = nvmep_map_polled(ctrl, tags);

	map->nr_queues = tags->nr_hw_queues - polled;
	/*
	 * Vector 0 is the admin queue's; the others follow the CPUs.  Those of queues that
	 * are not used now have CPUs of their own, which are spread over the others.
	 */
	if (ctrl->vectors == map->nr_queues + 1)
		nvmep_map_hw_queues(map, ctrl->pdev, 1);
	else
		blk_mq_map_queues(map);
}

static const struct blk_mq_ops nvmep_mq_ops = {
	.queue_rq = nvmep_queue_rq,
	.queue_rqs = nvmep_queue_rqs,
	.commit_rqs = nvmep_commit_rqs,
	.complete = nvmep_complete_rq,
	.poll = nvmep_poll,
	.init_hctx = nvmep_init_hctx,
	.map_queues = nvmep_map_queues,
	.timeout = nvmep_timeout,
};

/**
 * nvmep_block_init() - allocate what block I/O needs
 * @ctrl: controller whose CPU queues are allocated
 *
 * Return: 0 or a negative error code.
 */
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
	/* One entry of a ring always stays empty. */
	tags->queue_depth = ctrl->queues[0]->entries - 1;
	tags->numa_node = dev_to_node(ctrl->dev);
	tags->cmd_size = sizeof(struct nvmep_request);
	tags->flags = NVMEP_BLK_MQ_F_SHOULD_MERGE;
	tags->timeout = nvmep_io_timeout * HZ;
	tags->driver_data = ctrl;
	ret = blk_mq_alloc_tag_set(tags);
	if (ret)
		mempool_destroy(ctrl->cpu->range_pool);
	return ret;
}

/*
 * Until no I/O is under way.  The locks of the tag set's update, which follows, are
 * held over I/O only by those who add and remove disks, under scan_lock too.
 */
static void nvmep_block_drain(struct nvmep_ctrl *ctrl)
{
	struct nvmep_ns *ns;

	list_for_each_entry(ns, &ctrl->cpu->namespaces, entry)
		nvmep_freeze_start_unseen(ns->queue);
	list_for_each_entry(ns, &ctrl->cpu->namespaces, entry)
		blk_mq_freeze_queue_wait(ns->queue);
}

static void nvmep_block_refill(struct nvmep_ctrl *ctrl)
{
	struct nvmep_ns *ns;

	list_for_each_entry(ns, &ctrl->cpu->namespaces, entry)
		nvmep_unfreeze_unseen(ns->queue);
}

/**
 * nvmep_block_adapt() - have I/O use the queues that the controller has now
 * @ctrl: controller; scan_lock is held
 *
 * After a reset they may be fewer or more.  Waits for I/O under way; what finds
 * its queue gone comes back with nvmep_moved_submit().
 *
 * Return: false if it has to be tried again, as somebody else was at it.
 */
bool nvmep_block_adapt(struct nvmep_ctrl *ctrl)
{
	struct blk_mq_tag_set *tags = &ctrl->io_tags;
	unsigned int memflags;
	bool alone;

	lockdep_assert_held(&ctrl->cpu->scan_lock);

	if (tags->nr_hw_queues == READ_ONCE(ctrl->cpu_queues_live))
		return true;
	/* Memory must not wait for I/O that waits for us. */
	memflags = memalloc_noio_save();
	nvmep_block_drain(ctrl);
	/* A stop goes through all tags; it is not waited for with queues frozen. */
	alone = mutex_trylock(&ctrl->enable_lock);
	if (alone) {
		blk_mq_update_nr_hw_queues(tags, ctrl->cpu_queues_live);
		mutex_unlock(&ctrl->enable_lock);
	}
	nvmep_block_refill(ctrl);
	memalloc_noio_restore(memflags);
	return alone;
}

/**
 * nvmep_block_exit() - undo nvmep_block_init()
 * @ctrl: controller without namespaces
 */
void nvmep_block_exit(struct nvmep_ctrl *ctrl)
{
	blk_mq_free_tag_set(&ctrl->io_tags);
	mempool_destroy(ctrl->cpu->range_pool);
}
