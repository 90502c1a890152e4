// SPDX-License-Identifier: GPL-2.0-only
/*
 * Commands that failed: they are counted, and those of user space told of in the log, if
 * somebody asked for that.  Who sent them knows; who looks after the machine does not.
 */
#include <linux/blk-mq.h>

#include "ctrl.h"
#include "failure.h"
#include "queue.h"
#include "request.h"

/**
 * nvmep_failure_retried() - a command is sent again
 * @failures: of its request queue
 */
void nvmep_failure_retried(struct nvmep_failures *failures)
{
	atomic_long_inc(&failures->retries);
}

static void nvmep_failure_log(struct request *rq)
{
	const struct nvmep_queue *queue = rq->mq_hctx->driver_data;
	const struct nvmep_request *req = nvmep_request(rq);
	const struct nvme_sqe *sqe = &req->sqe;

	dev_err_ratelimited(queue->ctrl->dev,
			    "%s: passthrough opcode %#x failed, status %#x (sct %#x / sc %#x)%s cdw10=%#x cdw11=%#x cdw12=%#x cdw13=%#x cdw14=%#x cdw15=%#x\n",
			    rq->q->disk ? rq->q->disk->disk_name :
					  dev_name(&queue->ctrl->device),
			    sqe->opcode, req->status,
			    NVME_STATUS_TYPE(req->status),
			    NVME_STATUS_CODE(req->status),
			    req->status & NVME_STATUS_DNR ? " DNR" : "",
			    le32_to_cpu(sqe->cdw10), le32_to_cpu(sqe->cdw11),
			    le32_to_cpu(sqe->cdw12), le32_to_cpu(sqe->cdw13),
			    le32_to_cpu(sqe->cdw14), le32_to_cpu(sqe->cdw15));
}

/* Commands of the driver's own are asked, not ordered: a refusal is an answer. */
static bool nvmep_failure_counts(const struct nvmep_failures *failures,
				 struct request *rq)
{
	if (!blk_rq_is_passthrough(rq))
		return true;
	return nvmep_request(rq)->flags & NVMEP_REQUEST_USER &&
	       READ_ONCE(failures->log_passthru);
}

/**
 * nvmep_failure_ended() - a command has ended, perhaps with an error
 * @failures: of its request queue
 * @rq: its request, which is about to end
 *
 * Any context.
 */
void nvmep_failure_ended(struct nvmep_failures *failures, struct request *rq)
{
	if (likely(!nvmep_request(rq)->status) ||
	    !nvmep_failure_counts(failures, rq))
		return;
	atomic_long_inc(&failures->errors);
	if (blk_rq_is_passthrough(rq))
		nvmep_failure_log(rq);
}
