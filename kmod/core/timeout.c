// SPDX-License-Identifier: GPL-2.0-only
/*
 * A command of the CPU's took too long.
 *
 * First its completion is looked for without an interrupt.  An I/O command is
 * then aborted once; when that does not help, or for an admin command, the
 * controller is stopped and reset.  Nothing here waits for an admin command.
 */
#include <linux/blk-mq.h>

#include "compat.h"
#include "ctrl.h"
#include "params.h"
#include "queue.h"
#include "registers.h"
#include "request.h"
#include "stop.h"
#include "timeout.h"

/* Did the command complete without our being told? */
static bool nvmep_found_by_poll(struct nvmep_queue *queue, struct request *rq)
{
	nvmep_queue_poll(queue);
	if (blk_mq_request_started(rq) && !blk_mq_request_completed(rq))
		return false;
	if (!queue->polled)
		dev_warn_ratelimited(queue->ctrl->dev,
				     "queue %u: completion without an interrupt\n",
				     queue->qid);
	return true;
}

/* Stops the controller, which ends @rq too, and has it started again. */
static enum blk_eh_timer_return nvmep_timeout_reset(struct nvmep_ctrl *ctrl)
{
	nvmep_ctrl_fence(ctrl, nvmep_ctrl_generation(ctrl));
	return BLK_EH_DONE;
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

/*
 * Asks the controller to give up a command, and does not wait.  Nothing happens
 * where its limit of Abort commands is reached.
 */
static void nvmep_abort(struct request *victim)
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
	rq = nvmep_request_alloc(ctrl->admin_requests, &sqe, 0,
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

static enum blk_eh_timer_return nvmep_timeout_live(struct nvmep_queue *queue,
						   struct request *rq)
{
	struct nvmep_request *req = nvmep_request(rq);
	struct nvmep_ctrl *ctrl = queue->ctrl;

	if (nvmep_ctrl_failed(ctrl)) {
		dev_err(ctrl->dev, "controller failed, CSTS %#x: resetting\n",
			readl(ctrl->bar + NVME_REG_CSTS));
		return nvmep_timeout_reset(ctrl);
	}
	if (!queue->qid || req->flags & NVMEP_REQUEST_ABORTED) {
		dev_err(ctrl->dev,
			"command %#x, opcode %#x, of queue %u timed out: resetting\n",
			le16_to_cpu(req->sqe.cid), req->sqe.opcode, queue->qid);
		return nvmep_timeout_reset(ctrl);
	}
	dev_warn(ctrl->dev,
		 "command %#x, opcode %#x, of queue %u timed out: aborting\n",
		 le16_to_cpu(req->sqe.cid), req->sqe.opcode, queue->qid);
	req->flags |= NVMEP_REQUEST_ABORTED;
	nvmep_abort(rq);
	return BLK_EH_RESET_TIMER;
}

/**
 * nvmep_timeout() - blk-mq's timeout callback, for all queues
 * @rq: request, under way
 *
 * Return: BLK_EH_DONE if the request has completed or was cancelled,
 * BLK_EH_RESET_TIMER to be asked again.
 */
enum blk_eh_timer_return nvmep_timeout(struct request *rq)
{
	struct nvmep_queue *queue = rq->mq_hctx->driver_data;
	struct nvmep_ctrl *ctrl = queue->ctrl;

	/*
	 * Error recovery is under way; MMIO would only fail.  That ends, unless
	 * the function has gone: then its removal may be what waits for us.
	 */
	if (pci_channel_offline(ctrl->pdev) &&
	    !pci_dev_is_disconnected(ctrl->pdev))
		return BLK_EH_RESET_TIMER;
	if (nvmep_found_by_poll(queue, rq))
		return BLK_EH_DONE;
	/* It said that it would take its time; see nvmep_firmware_activation(). */
	if (test_bit(NVMEP_CTRL_PAUSED, &ctrl->flags))
		return BLK_EH_RESET_TIMER;

	switch (nvmep_ctrl_state(ctrl)) {
	case NVMEP_CTRL_LIVE:
		return nvmep_timeout_live(queue, rq);
	case NVMEP_CTRL_NEW:
	case NVMEP_CTRL_RESETTING:
		/* Whoever resets has not got to stopping it yet. */
		if (!test_bit(NVMEP_CTRL_STARTING, &ctrl->flags))
			return BLK_EH_RESET_TIMER;
		break;
	default:
		break;
	}
	dev_err(ctrl->dev, "opcode %#x on queue %u timed out: stopping\n",
		nvmep_request(rq)->sqe.opcode, queue->qid);
	nvmep_ctrl_stop(ctrl, false);
	return BLK_EH_DONE;
}
