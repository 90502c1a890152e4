// SPDX-License-Identifier: GPL-2.0-only
/*
 * The admin queue, and the driver's own admin commands.
 *
 * It is a blk-mq queue with one hardware context, for its tags, timeouts and
 * the mapping of user pages for passthrough.  While the controller is stopped,
 * every command fails at once.  Holding them up would be a deadlock: a sender
 * may hold a lock that the reset needs.
 */
#include <linux/blk-mq.h>
#include <linux/slab.h>

#include "admin.h"
#include "compat.h"
#include "ctrl.h"
#include "data.h"
#include "module.h"
#include "queue.h"
#include "request.h"
#include "reset.h"

/* --- the queue ----------------------------------------------------------- */

/* Is the command allowed in the present state and generation? */
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
	return nvmep_request_submit(queue, bd->rq, true);
}

static void nvmep_admin_complete(struct request *rq)
{
	struct nvmep_queue *queue = rq->mq_hctx->driver_data;

	nvmep_data_unmap(queue->ctrl, rq);
	nvmep_request_end(rq, &queue->ctrl->failures);
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
	.complete = nvmep_admin_complete,
	.init_hctx = nvmep_admin_init_hctx,
	.timeout = nvmep_timeout,
};

/**
 * nvmep_admin_init() - allocate the admin queue
 * @ctrl: controller, mapped
 * @complete: callback for each completion entry
 *
 * Return: 0 or a negative error code.
 */
int nvmep_admin_init(struct nvmep_ctrl *ctrl, nvmep_complete_fn *complete)
{
	struct nvmep_limits limits = {
		.block_size = SECTOR_SIZE,
		.physical_block_size = SECTOR_SIZE,
		.io_min = SECTOR_SIZE,
		.max_transfer = nvmep_transfer_limit(ctrl),
		.max_segments = USHRT_MAX,
		.virt_boundary = NVMEP_DATA_BOUNDARY,
		.dma_alignment = NVMEP_DATA_ALIGNMENT,
	};
	struct blk_mq_tag_set *tags = &ctrl->admin_tags;
	int ret;

	ctrl->admin = nvmep_queue_alloc(ctrl, NVMEP_ADMIN_ENTRIES, complete,
					0);
	if (!ctrl->admin)
		return -ENOMEM;
	tags->ops = &nvmep_admin_mq_ops;
	tags->nr_hw_queues = 1;
	tags->queue_depth = NVMEP_ADMIN_TAGS;
	tags->reserved_tags = NVMEP_ADMIN_RESERVED;
	tags->numa_node = dev_to_node(ctrl->dev);
	tags->cmd_size = sizeof(struct nvmep_request);
	tags->timeout = nvmep_admin_timeout * HZ;
	tags->driver_data = ctrl;
	ret = blk_mq_alloc_tag_set(tags);
	if (ret)
		goto err_queue;
	ctrl->admin_q = nvmep_alloc_queue(tags, &limits, ctrl);
	if (IS_ERR(ctrl->admin_q)) {
		ret = PTR_ERR(ctrl->admin_q);
		goto err_tags;
	}
	return 0;

err_tags:
	ctrl->admin_q = NULL;
	blk_mq_free_tag_set(tags);
err_queue:
	nvmep_queue_free(ctrl->admin);
	ctrl->admin = NULL;
	return ret;
}

/**
 * nvmep_admin_exit() - free the admin queue
 * @ctrl: stopped controller, its sysfs and debugfs files are removed
 *
 * Open files may still hold references to the request queue, which is freed
 * with the controller object.
 */
void nvmep_admin_exit(struct nvmep_ctrl *ctrl)
{
	nvmep_destroy_queue(ctrl->admin_q);
	blk_mq_free_tag_set(&ctrl->admin_tags);
	nvmep_queue_free_irq(ctrl->admin);
	nvmep_queue_free(ctrl->admin);
	ctrl->admin = NULL;
}

/* --- commands ------------------------------------------------------------ */

/**
 * nvmep_admin_execute() - submit an admin command and wait
 * @ctrl: controller; enable_lock is not held
 * @command: the command; its result is set on success
 *
 * Return: 0; a positive NVMe status; -EINTR if the controller was stopped
 * meanwhile; another negative error code.
 */
int nvmep_admin_execute(struct nvmep_ctrl *ctrl,
			struct nvmep_admin_command *command)
{
	struct nvmep_request *req;
	struct request *rq;
	int ret;

	rq = nvmep_request_alloc(ctrl->admin_q, &command->sqe, 0,
				 BLK_MQ_REQ_RESERVED);
	if (IS_ERR(rq))
		return PTR_ERR(rq);
	rq->timeout = nvmep_admin_timeout * HZ;
	req = nvmep_request(rq);
	if (command->bound) {
		req->flags |= NVMEP_REQUEST_BOUND;
		req->generation = command->generation;
	}
	if (command->buffer) {
		ret = nvmep_request_map_buffer(rq, command->buffer,
					       command->length);
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
 * @cns: CNS, the data structure to return
 * @nsid: namespace, 0 if @cns needs none
 * @buffer: NVME_IDENTIFY_DATA_SIZE bytes
 *
 * Return: as nvmep_admin_execute().
 */
int nvmep_identify(struct nvmep_ctrl *ctrl, u8 cns, u32 nsid, void *buffer)
{
	struct nvmep_admin_command command = {
		.sqe.common.opcode = nvme_admin_identify,
		.sqe.common.nsid = cpu_to_le32(nsid),
		.sqe.common.cdw10 = cpu_to_le32(cns),
		.buffer = buffer,
		.length = NVME_IDENTIFY_DATA_SIZE,
	};

	return nvmep_admin_execute(ctrl, &command);
}

/**
 * nvmep_get_log() - Get Log Page command, from offset 0
 * @ctrl: controller
 * @page: log page identifier
 * @csi: command set, for a page that each has
 * @buffer: for the page
 * @length: bytes to read, a multiple of 4, at most 256 KiB
 *
 * Return: as nvmep_admin_execute().
 */
int nvmep_get_log(struct nvmep_ctrl *ctrl, u8 page, u8 csi, void *buffer,
		  unsigned int length)
{
	u32 dwords = length / sizeof(u32) - 1;
	struct nvmep_admin_command command = {
		.sqe.common.opcode = nvme_admin_get_log_page,
		.sqe.common.nsid = cpu_to_le32(NVME_NSID_ALL),
		.sqe.common.cdw10 = cpu_to_le32(page | dwords << 16),
		.sqe.common.cdw14 = cpu_to_le32((u32)csi << 24),
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
 * @result: dword 0 of the completion, valid on success, or NULL
 *
 * Return: as nvmep_admin_execute().
 */
int nvmep_set_feature(struct nvmep_ctrl *ctrl, u8 feature, u32 dword11,
		      u32 *result)
{
	struct nvmep_admin_command command = {
		.sqe.common.opcode = nvme_admin_set_features,
		.sqe.common.cdw10 = cpu_to_le32(feature),
		.sqe.common.cdw11 = cpu_to_le32(dword11),
	};
	int ret = nvmep_admin_execute(ctrl, &command);

	if (result)
		*result = command.result;
	return ret;
}
