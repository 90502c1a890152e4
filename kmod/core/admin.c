// SPDX-License-Identifier: GPL-2.0-only
/*
 * The admin queue: commands of the driver's own, queue pairs, async events.
 *
 * The queue is a blk-mq queue with one hardware context, which brings tags,
 * timeouts and the mapping of user pages for passthrough.  While the
 * controller is stopped, everything that is sent fails at once: nobody who
 * holds a lock may be left waiting for a controller that comes back only after
 * that lock was free.
 */
#include <linux/blk-mq.h>
#include <linux/slab.h>

#include "admin.h"
#include "compat.h"
#include "ctrl.h"
#include "cpu/namespace.h"
#include "queue.h"
#include "request.h"

/* --- the queue ----------------------------------------------------------- */

/* May this command be sent now? */
static bool nvmep_admin_allowed(struct nvmep_ctrl *ctrl,
				const struct nvmep_request *req)
{
	if (!nvmep_queue_enabled(ctrl->admin))
		return false;
	if (req->flags & NVMEP_REQUEST_BOUND &&
	    req->generation != nvmep_ctrl_generation(ctrl))
		return false;
	if (req->flags & NVMEP_REQUEST_USER)
		return nvmep_ctrl_state(ctrl) == NVMEP_CTRL_LIVE;
	return true;
}

static blk_status_t nvmep_admin_queue_rq(struct blk_mq_hw_ctx *hctx,
					 const struct blk_mq_queue_data *bd)
{
	struct nvmep_queue *queue = hctx->driver_data;
	struct nvmep_request *req = nvmep_request(bd->rq);

	if (!nvmep_admin_allowed(queue->ctrl, req)) {
		req->status = NVME_SC_HOST_PATH_ERROR;
		if (!(req->flags & NVMEP_REQUEST_USER))
			req->flags |= NVMEP_REQUEST_CANCELLED;
		return BLK_STS_IOERR;
	}
	return nvmep_request_issue(queue, bd->rq, true);
}

static int nvmep_admin_init_hctx(struct blk_mq_hw_ctx *hctx, void *data,
				 unsigned int index)
{
	struct nvmep_ctrl *ctrl = data;

	hctx->driver_data = ctrl->admin;
	return 0;
}

static const struct blk_mq_ops nvmep_admin_mq_ops = {
	.queue_rq = nvmep_admin_queue_rq,
	.complete = nvmep_request_complete,
	.init_hctx = nvmep_admin_init_hctx,
	.timeout = nvmep_timeout,
};

/**
 * nvmep_admin_init() - allocate the admin queue
 * @ctrl: controller, mapped
 *
 * Return: 0 or a negative error code.
 */
int nvmep_admin_init(struct nvmep_ctrl *ctrl)
{
	struct nvmep_limits limits = {
		.block_size = SECTOR_SIZE,
		.physical_block_size = SECTOR_SIZE,
		.io_min = SECTOR_SIZE,
		.max_transfer = nvmep_transfer_limit(ctrl),
		.max_segments = USHRT_MAX,
	};
	struct blk_mq_tag_set *tags = &ctrl->admin_tags;
	int ret;

	ctrl->admin = nvmep_queue_alloc(ctrl, 0, NVMEP_ADMIN_ENTRIES, tags, 0);
	if (!ctrl->admin)
		return -ENOMEM;
	tags->ops = &nvmep_admin_mq_ops;
	tags->nr_hw_queues = 1;
	tags->queue_depth = NVMEP_ADMIN_TAGS;
	tags->numa_node = dev_to_node(ctrl->dev);
	tags->cmd_size = sizeof(struct nvmep_request);
	tags->timeout = nvmep_admin_timeout * HZ;
	tags->driver_data = ctrl;
	ret = blk_mq_alloc_tag_set(tags);
	if (ret)
		goto err_queue;
	ctrl->admin_requests = nvmep_alloc_queue(tags, &limits, ctrl);
	if (IS_ERR(ctrl->admin_requests)) {
		ret = PTR_ERR(ctrl->admin_requests);
		goto err_tags;
	}
	return 0;

err_tags:
	ctrl->admin_requests = NULL;
	blk_mq_free_tag_set(tags);
err_queue:
	nvmep_queue_free(ctrl->admin);
	ctrl->admin = NULL;
	return ret;
}

/**
 * nvmep_admin_exit() - free the admin queue
 * @ctrl: stopped controller without open sysfs or debugfs files
 *
 * The request queue itself stays until the last open file has let go.
 */
void nvmep_admin_exit(struct nvmep_ctrl *ctrl)
{
	blk_mq_destroy_queue(ctrl->admin_requests);
	blk_mq_free_tag_set(&ctrl->admin_tags);
	nvmep_queue_free_irq(ctrl->admin);
	nvmep_queue_free(ctrl->admin);
	ctrl->admin = NULL;
}

/* --- commands ------------------------------------------------------------ */

/**
 * nvmep_admin_execute() - send an admin command and wait
 * @ctrl: controller
 * @command: the command; its result is filled on success
 *
 * Return: 0; the NVMe status, positive; -EINTR if the controller was stopped
 * meanwhile; another negative error code.
 */
int nvmep_admin_execute(struct nvmep_ctrl *ctrl,
			struct nvmep_admin_command *command)
{
	struct nvmep_request *req;
	struct request *rq;
	int ret;

	rq = nvmep_request_alloc(ctrl->admin_requests, &command->sqe, 0);
	if (IS_ERR(rq))
		return PTR_ERR(rq);
	rq->timeout = nvmep_admin_timeout * HZ;
	req = nvmep_request(rq);
	if (command->bound) {
		req->flags |= NVMEP_REQUEST_BOUND;
		req->generation = command->generation;
	}
	if (command->buffer) {
		ret = nvmep_rq_map_kern(rq, command->buffer, command->length);
		if (ret)
			goto out;
	}
	ret = nvmep_request_status(rq, blk_execute_rq(rq, false));
	command->result = req->result;
out:
	blk_mq_free_request(rq);
	return ret;
}

/**
 * nvmep_identify() - Identify command
 * @ctrl: controller
 * @cns: what to identify
 * @nsid: namespace, 0 where it does not matter
 * @buffer: NVME_IDENTIFY_SIZE bytes
 *
 * Return: as nvmep_admin_execute().
 */
int nvmep_identify(struct nvmep_ctrl *ctrl, u8 cns, u32 nsid, void *buffer)
{
	struct nvmep_admin_command command = {
		.sqe.opcode = NVME_ADMIN_IDENTIFY,
		.sqe.nsid = cpu_to_le32(nsid),
		.sqe.cdw10 = cpu_to_le32(cns),
		.buffer = buffer,
		.length = NVME_IDENTIFY_SIZE,
	};

	return nvmep_admin_execute(ctrl, &command);
}

/**
 * nvmep_get_log() - Get Log Page command, from the start of a page
 * @ctrl: controller
 * @page: log page identifier
 * @buffer: for the page
 * @length: bytes of it, a multiple of 4
 *
 * Return: as nvmep_admin_execute().
 */
int nvmep_get_log(struct nvmep_ctrl *ctrl, u8 page, void *buffer,
		  unsigned int length)
{
	u32 dwords = length / sizeof(u32) - 1;
	struct nvmep_admin_command command = {
		.sqe.opcode = NVME_ADMIN_GET_LOG_PAGE,
		.sqe.nsid = cpu_to_le32(NVME_NSID_ALL),
		.sqe.cdw10 = cpu_to_le32(page | (dwords & 0xffff) << 16),
		.sqe.cdw11 = cpu_to_le32(dwords >> 16),
		.buffer = buffer,
		.length = length,
	};

	return nvmep_admin_execute(ctrl, &command);
}

/**
 * nvmep_set_feature() - Set Features command without data
 * @ctrl: controller
 * @feature: feature identifier
 * @dword11: its value
 * @result: dword 0 of the completion, or NULL
 *
 * Return: as nvmep_admin_execute().
 */
int nvmep_set_feature(struct nvmep_ctrl *ctrl, u8 feature, u32 dword11,
		      u32 *result)
{
	struct nvmep_admin_command command = {
		.sqe.opcode = NVME_ADMIN_SET_FEATURES,
		.sqe.cdw10 = cpu_to_le32(feature),
		.sqe.cdw11 = cpu_to_le32(dword11),
	};
	int ret = nvmep_admin_execute(ctrl, &command);

	if (!ret && result)
		*result = command.result;
	return ret;
}

static enum rq_end_io_ret nvmep_abort_done(NVMEP_END_IO_PARAMS)
{
	struct nvmep_ctrl *ctrl = rq->end_io_data;

	dev_warn(ctrl->dev, "abort status %#x, result %#llx\n",
		 nvmep_request(rq)->status, nvmep_request(rq)->result);
	atomic_inc(&ctrl->aborts);
	blk_mq_free_request(rq);
	return RQ_END_IO_NONE;
}

/**
 * nvmep_abort() - ask the controller to give up a command, and do not wait
 * @victim: request that timed out, under way
 *
 * Does nothing where the controller's limit of Abort commands is reached.
 */
void nvmep_abort(struct request *victim)
{
	struct nvmep_queue *queue = victim->mq_hctx->driver_data;
	struct nvmep_ctrl *ctrl = queue->ctrl;
	u32 cid = le16_to_cpu(nvmep_request(victim)->sqe.cid);
	struct nvme_sqe sqe = {
		.opcode = NVME_ADMIN_ABORT,
		.cdw10 = cpu_to_le32(cid << 16 | queue->qid),
	};
	struct request *rq;

	if (atomic_dec_return(&ctrl->aborts) < 0)
		goto err;
	rq = nvmep_request_alloc(ctrl->admin_requests, &sqe,
				 BLK_MQ_REQ_NOWAIT);
	if (IS_ERR(rq))
		goto err;
	rq->timeout = nvmep_admin_timeout * HZ;
	rq->end_io = nvmep_abort_done;
	rq->end_io_data = ctrl;
	blk_execute_rq_nowait(rq, false);
	return;
err:
	atomic_inc(&ctrl->aborts);
}

/* --- queue pairs --------------------------------------------------------- */

static int nvmep_create_cq(struct nvmep_ctrl *ctrl,
			   const struct nvmep_queue_pair_params *params,
			   u32 generation)
{
	u32 flags = (params->cq_contiguous ? NVME_QUEUE_CONTIGUOUS : 0) |
		    (params->vector >= 0 ? NVME_CQ_INTERRUPT : 0);
	u32 vector = params->vector >= 0 ? params->vector : 0;
	struct nvmep_admin_command command = {
		.sqe.opcode = NVME_ADMIN_CREATE_CQ,
		.sqe.prp1 = cpu_to_le64(params->cq_dma),
		.sqe.cdw10 = cpu_to_le32((params->cq_entries - 1) << 16 |
					 params->qid),
		.sqe.cdw11 = cpu_to_le32(vector << 16 | flags),
		.bound = true,
		.generation = generation,
	};

	return nvmep_admin_execute(ctrl, &command);
}

static int nvmep_create_sq(struct nvmep_ctrl *ctrl,
			   const struct nvmep_queue_pair_params *params,
			   u32 generation)
{
	u32 flags = params->sq_contiguous ? NVME_QUEUE_CONTIGUOUS : 0;
	struct nvmep_admin_command command = {
		.sqe.opcode = NVME_ADMIN_CREATE_SQ,
		.sqe.prp1 = cpu_to_le64(params->sq_dma),
		.sqe.cdw10 = cpu_to_le32((params->sq_entries - 1) << 16 |
					 params->qid),
		.sqe.cdw11 = cpu_to_le32((u32)params->qid << 16 | flags),
		.bound = true,
		.generation = generation,
	};

	return nvmep_admin_execute(ctrl, &command);
}

/**
 * nvmep_delete_queue() - Delete I/O Submission or Completion Queue
 * @ctrl: controller
 * @opcode: NVME_ADMIN_DELETE_SQ, or NVME_ADMIN_DELETE_CQ after it
 * @qid: queue identifier
 * @generation: the queue was created in
 *
 * Return: as nvmep_admin_execute().
 */
int nvmep_delete_queue(struct nvmep_ctrl *ctrl, u8 opcode, u16 qid,
		       u32 generation)
{
	struct nvmep_admin_command command = {
		.sqe.opcode = opcode,
		.sqe.cdw10 = cpu_to_le32(qid),
		.bound = true,
		.generation = generation,
	};

	return nvmep_admin_execute(ctrl, &command);
}

/* The queue could not be created: an NVMe status becomes an error code. */
static int nvmep_create_failed(struct nvmep_ctrl *ctrl, const char *what,
			       u16 qid, int ret)
{
	if (ret <= 0)
		return ret;
	dev_warn_ratelimited(ctrl->dev,
			     "controller refused to create %s %u: status %#x\n",
			     what, qid, ret);
	return -EIO;
}

/**
 * nvmep_queue_pair_create_in() - create a queue pair in a given generation
 * @ctrl: controller
 * @params: the queue pair; the completion ring's memory must be zero
 * @generation: what the controller's generation has to be
 *
 * For ctrl's own start, which runs before the controller is LIVE; others call
 * nvmep_queue_pair_create().
 *
 * Return: 0; -EIO if the controller refused, which is logged; -EINTR if it was
 * stopped meanwhile; another negative error code.
 */
int nvmep_queue_pair_create_in(struct nvmep_ctrl *ctrl,
			       const struct nvmep_queue_pair_params *params,
			       u32 generation)
{
	int ret;

	ret = nvmep_create_cq(ctrl, params, generation);
	if (ret)
		return nvmep_create_failed(ctrl, "completion queue",
					   params->qid, ret);
	ret = nvmep_create_sq(ctrl, params, generation);
	if (!ret)
		return 0;
	if (nvmep_delete_queue(ctrl, NVME_ADMIN_DELETE_CQ, params->qid,
			       generation))
		nvmep_ctrl_fence(ctrl, generation);
	return nvmep_create_failed(ctrl, "submission queue", params->qid, ret);
}

/* Why the queue pair of a peer was not created, by what becomes of the controller. */
static int nvmep_create_error(struct nvmep_ctrl *ctrl, int ret)
{
	if (ret == -EIO || ret == -ENOMEM)
		return ret;
	if (nvmep_ctrl_state(ctrl) < NVMEP_CTRL_DELETING)
		return -EAGAIN;
	return -ESHUTDOWN;
}

/**
 * nvmep_queue_pair_create() - Create I/O Completion, then Submission Queue
 * @ctrl: controller
 * @params: the queue pair; the completion ring's memory must be zero
 * @generation: generation that the queue pair belongs to, on success
 *
 * On failure nothing of it is left on the controller, if need be by resetting
 * it.  May sleep as long as the admin timeout.
 *
 * Return: 0; -EAGAIN while the controller is being reset; -ESHUTDOWN when it
 * goes away; -EIO if it refused, which is logged; -ENOMEM.
 */
int nvmep_queue_pair_create(struct nvmep_ctrl *ctrl,
			    const struct nvmep_queue_pair_params *params,
			    u32 *generation)
{
	int ret;

	*generation = nvmep_ctrl_generation(ctrl);
	/* In this order: a stop after the question moves the generation. */
	smp_rmb();
	switch (nvmep_ctrl_state(ctrl)) {
	case NVMEP_CTRL_LIVE:
		ret = nvmep_queue_pair_create_in(ctrl, params, *generation);
		if (ret)
			return nvmep_create_error(ctrl, ret);
		return nvmep_ctrl_generation(ctrl) == *generation ? 0 : -EAGAIN;
	case NVMEP_CTRL_NEW:
	case NVMEP_CTRL_RESETTING:
		return -EAGAIN;
	default:
		return -ESHUTDOWN;
	}
}

/**
 * nvmep_queue_pair_delete() - Delete I/O Submission, then Completion Queue
 * @ctrl: controller
 * @qid: queue identifier
 * @generation: the queue pair was created in
 *
 * On return the controller does not touch the rings any more, whatever
 * happened: if it does not obey, it is stopped and reset.  May sleep as long
 * as the admin timeout and a controller's stop take; never call it under a
 * reservation lock or mmap_lock.
 *
 * Return: 0 if the queues were deleted or had gone with an earlier stop, -EIO
 * if the controller had to be stopped.  For the log only.
 */
int nvmep_queue_pair_delete(struct nvmep_ctrl *ctrl, u16 qid, u32 generation)
{
	int ret;

	ret = nvmep_delete_queue(ctrl, NVME_ADMIN_DELETE_SQ, qid, generation);
	if (!ret)
		ret = nvmep_delete_queue(ctrl, NVME_ADMIN_DELETE_CQ, qid,
					 generation);
	if (!ret || nvmep_ctrl_generation(ctrl) != generation)
		return 0;
	dev_warn(ctrl->dev,
		 "queue pair %u could not be deleted (%d): resetting the controller\n",
		 qid, ret);
	nvmep_ctrl_fence(ctrl, generation);
	return -EIO;
}

/* --- asynchronous events ------------------------------------------------- */

static void nvmep_event_request(struct nvmep_ctrl *ctrl)
{
	struct nvme_sqe sqe = {
		.opcode = NVME_ADMIN_ASYNC_EVENT,
		.cid = cpu_to_le16(NVMEP_EVENT_CID),
	};

	/* One at a time: there is one identifier for it. */
	if (test_and_set_bit(NVMEP_CTRL_EVENT_REQUESTED, &ctrl->flags))
		return;
	if (!nvmep_queue_submit(ctrl->admin, &sqe, true))
		clear_bit(NVMEP_CTRL_EVENT_REQUESTED, &ctrl->flags);
}

static void nvmep_event_notice(struct nvmep_ctrl *ctrl, u32 event)
{
	switch (NVME_EVENT_INFO(event)) {
	case NVME_EVENT_NOTICE_NAMESPACES:
		nvmep_scan(ctrl);
		break;
	case NVME_EVENT_NOTICE_FIRMWARE:
		dev_warn(ctrl->dev, "firmware activation begins\n");
		break;
	default:
		dev_info(ctrl->dev, "notice %#x\n", event);
	}
}

static void nvmep_event_handle(struct nvmep_ctrl *ctrl, u32 event)
{
	u8 type = NVME_EVENT_TYPE(event);

	if (type == NVME_EVENT_TYPE_NOTICE) {
		nvmep_event_notice(ctrl, event);
	} else if (type == NVME_EVENT_TYPE_ERROR &&
		   NVME_EVENT_INFO(event) == NVME_EVENT_ERROR_PERSISTENT) {
		dev_err(ctrl->dev, "persistent internal error: resetting\n");
		nvmep_ctrl_reset(ctrl);
	} else {
		dev_warn(ctrl->dev, "asynchronous event %#x\n", event);
	}
}

/**
 * nvmep_event_work() - handle an asynchronous event
 * @work: event_work of a controller
 *
 * An event stays masked until its log page was read; only then is the next
 * request sent (base specification 5.1.2).
 */
void nvmep_event_work(struct work_struct *work)
{
	struct nvmep_ctrl *ctrl = container_of(work, struct nvmep_ctrl,
					       event_work);
	u32 event = READ_ONCE(ctrl->event);
	void *log;

	if (nvmep_ctrl_state(ctrl) != NVMEP_CTRL_LIVE)
		return;
	log = kmalloc(NVME_IDENTIFY_SIZE, GFP_KERNEL);
	if (log)
		nvmep_get_log(ctrl, NVME_EVENT_LOG(event), log,
			      NVME_EVENT_LOG(event) == NVME_LOG_CHANGED_NAMESPACES ?
			      NVME_IDENTIFY_SIZE : 512);
	kfree(log);
	nvmep_event_handle(ctrl, event);
	nvmep_event_request(ctrl);
}

/**
 * nvmep_event_received() - the event request was completed; interrupt context
 * @ctrl: controller
 * @status: NVMe status
 * @result: dword 0 of the completion: the event
 */
void nvmep_event_received(struct nvmep_ctrl *ctrl, u16 status, u64 result)
{
	clear_bit(NVMEP_CTRL_EVENT_REQUESTED, &ctrl->flags);
	/* A controller that refuses the request is not asked again. */
	if (status)
		return;
	WRITE_ONCE(ctrl->event, result);
	queue_work(nvmep_wq, &ctrl->event_work);
}

/**
 * nvmep_events_enable() - ask for events
 * @ctrl: controller that has just become LIVE
 */
void nvmep_events_enable(struct nvmep_ctrl *ctrl)
{
	u32 wanted = NVME_EVENT_CONFIG_NAMESPACES | NVME_EVENT_CONFIG_FIRMWARE;
	u32 config = le32_to_cpu(ctrl->id->oaes) & wanted;
	int ret;

	ret = nvmep_set_feature(ctrl, NVME_FEATURE_ASYNC_EVENT,
				config | NVME_EVENT_CONFIG_CRITICAL, NULL);
	if (ret > 0)
		dev_info(ctrl->dev,
			 "events cannot be configured: status %#x\n", ret);
	nvmep_event_request(ctrl);
}
