// SPDX-License-Identifier: GPL-2.0-only
/*
 * blk-mq's timeout handler, for commands of the CPU.
 *
 * It escalates: poll for a completion whose interrupt was lost; send one Abort
 * for an I/O command; stop and reset the controller.  It never waits for an
 * admin command: that command could time out only after this handler returns.
 */
#include <linux/blk-mq.h>

#include "compat.h"
#include "ctrl.h"
#include "module.h"
#include "queue.h"
#include "registers.h"
#include "request.h"
#include "reset.h"

/* Did the command complete, and was only the interrupt lost? */
static bool nvmep_completed_by_poll(struct nvmep_queue *queue,
				    struct request *rq)
{
	nvmep_queue_poll(queue);
	if (blk_mq_request_started(rq) && !blk_mq_request_completed(rq))
		return false;
	if (!queue->polled)
		dev_warn_ratelimited(queue->ctrl->dev,
				     "queue %u: completion found by polling, interrupt lost\n",
				     queue->qid);
	return true;
}

static enum rq_end_io_ret
nvmep_abort_end_io(struct request *rq, blk_status_t error,
		   const struct io_comp_batch *batch)
{
	struct nvmep_ctrl *ctrl = rq->end_io_data;

	dev_warn(ctrl->dev, "Abort completed: status %#x, result %#llx\n",
		 nvmep_request(rq)->status, nvmep_request(rq)->result);
	atomic_inc(&ctrl->aborts);
	blk_mq_free_request(rq);
	return RQ_END_IO_NONE;
}

NVMEP_END_IO_FN(nvmep_abort_end_io);

/*
 * Sends an Abort command and does not wait for it.  Nothing is sent, and the
 * timer fires again, if the limit of outstanding Abort commands (ACL) is
 * reached.  If all admin tags are in use, the next timeout resets.
 */
static void nvmep_abort(struct request *victim)
{
	struct nvmep_queue *queue = victim->mq_hctx->driver_data;
	struct nvmep_ctrl *ctrl = queue->ctrl;
	u32 cid = nvmep_cid(nvmep_request(victim)->sqe.common.command_id);
	struct nvme_command sqe = {
		.common.opcode = nvme_admin_abort_cmd,
		.common.cdw10 = cpu_to_le32(cid << 16 | queue->qid),
	};
	struct request *rq;

	if (atomic_dec_return(&ctrl->aborts) < 0)
		goto err;
	/* Before the Abort, after which the command may end and be sent again. */
	nvmep_request(victim)->aborted = true;
	rq = nvmep_request_alloc(ctrl->admin_q, &sqe, 0,
				 BLK_MQ_REQ_NOWAIT | BLK_MQ_REQ_RESERVED);
	if (IS_ERR(rq))
		goto err;
	rq->timeout = nvmep_admin_timeout * HZ;
	rq->end_io = nvmep_abort_end_io_fn;
	rq->end_io_data = ctrl;
	blk_execute_rq_nowait(rq, false);
	return;
err:
	atomic_inc(&ctrl->aborts);
}

/* Returns false if the controller has to be stopped. */
static bool nvmep_timeout_live(struct nvmep_queue *queue, struct request *rq)
{
	struct nvmep_request *req = nvmep_request(rq);
	struct nvmep_ctrl *ctrl = queue->ctrl;

	if (nvmep_ctrl_csts_failed(ctrl)) {
		dev_err(ctrl->dev, "controller failed, CSTS %#x: resetting\n",
			readl(ctrl->bar + NVME_REG_CSTS));
		return false;
	}
	if (!queue->qid || req->aborted) {
		dev_err(ctrl->dev,
			"queue %u: timeout of CID %#x (opcode %#x), resetting\n",
			queue->qid, nvmep_cid(req->sqe.common.command_id),
			req->sqe.common.opcode);
		return false;
	}
	dev_warn(ctrl->dev,
		 "queue %u: timeout of CID %#x (opcode %#x), aborting\n",
		 queue->qid, nvmep_cid(req->sqe.common.command_id),
		 req->sqe.common.opcode);
	nvmep_abort(rq);
	return true;
}

/*
 * Leave the command to the PCI core's error recovery, which stops the
 * controller: MMIO would fail.  But if the function was unplugged, its removal
 * may wait for this command; and in another state than LIVE, a holder of the
 * device lock may, for which error recovery waits.  Both would be deadlocks.
 *
 * Holders of the device lock are probe, remove, suspend and the PCI callbacks.
 * None of them waits for a command of a LIVE controller without a time limit.
 */
static bool nvmep_recovery_expected(const struct nvmep_ctrl *ctrl)
{
	return pci_channel_offline(ctrl->pdev) &&
	       !pci_dev_is_disconnected(ctrl->pdev) &&
	       nvmep_ctrl_state(ctrl) == NVMEP_CTRL_LIVE;
}

/**
 * nvmep_timeout_deferred() - does the timeout of a command have to wait?
 * @ctrl: controller
 *
 * Firmware activation has its own limit: nvmep_firmware_activation().
 *
 * Return: true if it does: do not stop the controller now.
 */
bool nvmep_timeout_deferred(const struct nvmep_ctrl *ctrl)
{
	return nvmep_recovery_expected(ctrl) ||
	       test_bit(NVMEP_CTRL_PAUSED, &ctrl->flags);
}

/**
 * nvmep_timeout() - blk-mq's timeout callback, for admin and I/O queues
 * @rq: request in flight
 *
 * Stops only the generation that the command was sent in: a reset may run and
 * end at any time during this function, and may send the request again.
 *
 * Return: BLK_EH_DONE if the request has completed or was cancelled,
 * BLK_EH_RESET_TIMER to be called again later.
 */
enum blk_eh_timer_return nvmep_timeout(struct request *rq)
{
	struct nvmep_queue *queue = rq->mq_hctx->driver_data;
	u32 generation = READ_ONCE(nvmep_request(rq)->generation);
	struct nvmep_ctrl *ctrl = queue->ctrl;
	enum nvmep_ctrl_state state;

	if (nvmep_recovery_expected(ctrl))
		return BLK_EH_RESET_TIMER;
	if (nvmep_completed_by_poll(queue, rq))
		return BLK_EH_DONE;
	/* A stop is about to cancel it. */
	if (nvmep_ctrl_generation(ctrl) != generation)
		return BLK_EH_RESET_TIMER;
	if (nvmep_timeout_deferred(ctrl))
		return BLK_EH_RESET_TIMER;

	state = nvmep_ctrl_state(ctrl);
	if (state == NVMEP_CTRL_LIVE) {
		if (nvmep_timeout_live(queue, rq))
			return BLK_EH_RESET_TIMER;
	} else {
		/*
		 * No reset can be relied on to end the command: the code that
		 * has changed the state may wait for it.
		 */
		dev_err(ctrl->dev,
			"queue %u: timeout of opcode %#x in state %s, stopping the controller\n",
			queue->qid, nvmep_request(rq)->sqe.common.opcode,
			nvmep_ctrl_state_name(state));
	}
	/* Cancels the command too, and queues a reset of a LIVE controller. */
	nvmep_ctrl_ensure_stopped(ctrl, generation);
	return BLK_EH_DONE;
}
