// SPDX-License-Identifier: GPL-2.0-only
/*
 * The life of a command that the CPU sends: built elsewhere, issued, finished
 * by its completion entry or by cancellation, tried again or ended.
 */
#include <linux/blk-mq.h>

#include "compat.h"
#include "ctrl.h"
#include "data.h"
#include "failure.h"
#include "queue.h"
#include "request.h"
#include "trace.h"

#define NVMEP_MAX_RETRIES	5

/* The next command identifier of a tag, which is the caller's. */
static u16 nvmep_request_next_cid(struct nvmep_queue *queue, unsigned int tag)
{
	u8 use = queue->uses[tag]++;

	return (u16)(use << NVMEP_CID_TAG_BITS) | tag;
}

/**
 * nvmep_request_alloc() - a request that carries a ready command
 * @queue: request queue, of the controller's admin queue or of a namespace
 * @sqe: command without CID and data pointers
 * @more: REQ_POLLED, where somebody will poll for it, or 0
 * @flags: for blk_mq_alloc_request()
 *
 * The command is never sent twice.
 *
 * Return: the request or an error pointer.
 */
struct request *nvmep_request_alloc(struct request_queue *queue,
				    const struct nvme_sqe *sqe,
				    blk_opf_t more, blk_mq_req_flags_t flags)
{
	blk_opf_t op = sqe->opcode & NVME_OPCODE_TO_CTRL ? REQ_OP_DRV_OUT :
							   REQ_OP_DRV_IN;
	struct nvmep_request *req;
	struct request *rq;

	rq = blk_mq_alloc_request(queue, op | REQ_FAILFAST_DRIVER | more, flags);
	if (IS_ERR(rq))
		return rq;
	req = nvmep_request(rq);
	req->sqe = *sqe;
	req->result = 0;
	req->status = 0;
	req->flags = 0;
	nvmep_request_first(rq);
	return rq;
}

/*
 * The data could not be mapped.  To try again helps where others give back what they
 * hold; where the device must not reach it, and nothing lies between, nobody does.
 */
static noinline blk_status_t nvmep_request_unmapped(struct nvmep_queue *queue,
						    struct request *rq,
						    blk_status_t status)
{
	struct nvmep_request *req = nvmep_request(rq);
	unsigned int patience = rq->timeout ?: READ_ONCE(rq->q->rq_timeout);

	if (status != BLK_STS_RESOURCE)
		return status;
	if (!req->unmapped)
		req->unmapped = jiffies | 1;
	if (time_before_eq(jiffies, req->unmapped + patience))
		return status;
	dev_err_ratelimited(queue->ctrl->dev,
			    "queue %u: no room to map data for %u ms, command %#x given up; an untrusted device needs bounce buffers (swiotlb=)\n",
			    queue->qid, jiffies_to_msecs(patience),
			    req->sqe.opcode);
	return BLK_STS_IOERR;
}

/**
 * nvmep_request_prepare() - make a built command ready for the submission ring
 * @queue: hardware queue that the controller serves
 * @rq: request with a complete command but for CID and data pointers
 *
 * On success it is under way, and has to be submitted before dispatch ends.
 *
 * Return: BLK_STS_OK, or the errors of nvmep_data_map(); BLK_STS_IOERR where there was
 * no room to map its data for as long as a command may take.
 */
blk_status_t nvmep_request_prepare(struct nvmep_queue *queue,
				   struct request *rq)
{
	struct nvmep_request *req = nvmep_request(rq);
	blk_status_t status;

	status = nvmep_data_map(queue->ctrl, rq);
	if (unlikely(status))
		return nvmep_request_unmapped(queue, rq, status);
	WRITE_ONCE(req->cid, nvmep_request_next_cid(queue, rq->tag));
	req->sqe.cid = cpu_to_le16(req->cid);
	blk_mq_start_request(rq);
	trace_nvmep_submit(queue->ctrl->instance, queue->qid, &req->sqe);
	return BLK_STS_OK;
}

/**
 * nvmep_request_submit_list() - hand prepared commands to the controller, all at once
 * @queue: hardware queue of all of them
 * @list: the requests; empty on return
 *
 * One lock and one doorbell, however many they are.
 */
void nvmep_request_submit_list(struct nvmep_queue *queue, struct rq_list *list)
{
	struct request *rq;

	nvmep_queue_fill_begin(queue);
	while ((rq = nvmep_rq_list_pop(list)))
		nvmep_queue_fill(queue, &nvmep_request(rq)->sqe);
	nvmep_queue_fill_end(queue);
}

/**
 * nvmep_request_issue() - hand a built command to the controller
 * @queue: hardware queue that the controller serves
 * @rq: request with a complete command but for CID and data pointers
 * @ring: tell the controller at once
 *
 * Return: as nvmep_request_prepare().
 */
blk_status_t nvmep_request_issue(struct nvmep_queue *queue, struct request *rq,
				 bool ring)
{
	blk_status_t status = nvmep_request_prepare(queue, rq);

	if (status)
		return status;
	/* Cannot fail: who stops the queue waits for us first. */
	WARN_ON_ONCE(!nvmep_queue_submit(queue, &nvmep_request(rq)->sqe, ring));
	return BLK_STS_OK;
}

/* --- the end ------------------------------------------------------------- */

/* The outcome is known of a request that was started and is not completed. */
static void nvmep_request_finish(struct request *rq, u16 status, u64 result)
{
	struct nvmep_request *req = nvmep_request(rq);

	req->status = status;
	req->result = result;
	/* From here on the same entry, seen again, names nothing. */
	WRITE_ONCE(req->cid, NVMEP_CID_NONE);
}

/* Requests of one hardware queue that succeeded: their data first, then all at once. */
static void nvmep_request_end_batch(struct io_comp_batch *batch)
{
	struct request *rq;

	rq_list_for_each(&batch->req_list, rq) {
		struct nvmep_queue *queue = rq->mq_hctx->driver_data;

		nvmep_data_unmap(queue->ctrl, rq);
	}
	blk_mq_end_request_batch(batch);
}

/*
 * Ends a request here and now, on another processor, or with its batch.  What failed may
 * be sent again, and what has a payload of ours must give that back: not in a batch.
 */
static void nvmep_request_complete(struct request *rq,
				   struct io_comp_batch *batch)
{
	if (blk_mq_complete_request_remote(rq))
		return;
	if (nvmep_request(rq)->status || rq->rq_flags & RQF_SPECIAL_PAYLOAD ||
	    !blk_mq_add_to_batch(rq, batch, false, nvmep_request_end_batch))
		rq->q->mq_ops->complete(rq);
}

/* The request that a completion entry names, NULL if it is not under way. */
static struct request *nvmep_request_find(struct blk_mq_tags *tags, u16 cid)
{
	struct request *rq;

	/* A queue that the controller does not grant any more has none. */
	if (!tags)
		return NULL;
	rq = blk_mq_tag_to_rq(tags, cid & NVMEP_CID_TAG_MASK);
	if (!rq || !blk_mq_request_started(rq) ||
	    READ_ONCE(nvmep_request(rq)->cid) != cid)
		return NULL;
	return rq;
}

/**
 * nvmep_request_entry() - a completion entry ends the request that it names
 * @queue: where it arrived; nvmep_queue.complete of queues with requests
 * @cqe: the entry
 * @batch: the request may be left in it, with what ends it: for who called, holding no
 *	lock
 */
void nvmep_request_entry(struct nvmep_queue *queue, const struct nvme_cqe *cqe,
			 struct io_comp_batch *batch)
{
	struct blk_mq_tags *tags = queue->tag_set->tags[queue->tag_index];
	u16 cid = le16_to_cpu(READ_ONCE(cqe->cid));
	struct request *rq = nvmep_request_find(tags, cid);

	if (!rq) {
		dev_warn_ratelimited(queue->ctrl->dev,
				     "queue %u completed command %#x, which is not under way\n",
				     queue->qid, cid);
		return;
	}
	/* io-timeout-fail: pretend that the controller never answered. */
	if (unlikely(blk_should_fake_timeout(rq->q)))
		return;
	nvmep_request_finish(rq, le16_to_cpu(cqe->status) >> 1,
			     le64_to_cpu(cqe->result));
	nvmep_request_complete(rq, batch);
}

static blk_status_t nvmep_blk_status(u16 status)
{
	switch (status & NVME_STATUS_MASK) {
	case NVME_SC_SUCCESS:
		return BLK_STS_OK;
	case NVME_SC_CAPACITY_EXCEEDED:
		return BLK_STS_NOSPC;
	case NVME_SC_LBA_RANGE:
	case NVME_SC_NAMESPACE_NOT_READY:
		return BLK_STS_TARGET;
	case NVME_SC_INVALID_OPCODE:
	case NVME_SC_INVALID_FIELD:
	case NVME_SC_INVALID_NAMESPACE:
	case NVME_SC_ONCS_UNSUPPORTED:
		return BLK_STS_NOTSUPP;
	case NVME_SC_WRITE_FAULT:
	case NVME_SC_READ_ERROR:
	case NVME_SC_COMPARE_FAILED:
	case NVME_SC_UNWRITTEN:
	case NVME_SC_READ_ONLY:
		return BLK_STS_MEDIUM;
	case NVME_SC_GUARD_CHECK:
	case NVME_SC_APPTAG_CHECK:
	case NVME_SC_REFTAG_CHECK:
		return BLK_STS_PROTECTION;
	case NVME_SC_RESERVATION_CONFLICT:
		return NVMEP_BLK_STS_RESV_CONFLICT;
	case NVME_SC_HOST_PATH_ERROR:
		return BLK_STS_TRANSPORT;
	default:
		return BLK_STS_IOERR;
	}
}

static bool nvmep_request_retryable(struct request *rq)
{
	struct nvmep_request *req = nvmep_request(rq);

	return req->status && !(req->status & NVME_STATUS_DNR) &&
	       !blk_noretry_request(rq) && req->retries < NVMEP_MAX_RETRIES;
}

/**
 * nvmep_request_end() - try a command again, or end it
 * @rq: request that the controller is done with, its data unmapped
 * @failures: of its request queue
 */
void nvmep_request_end(struct request *rq, struct nvmep_failures *failures)
{
	struct nvmep_request *req = nvmep_request(rq);

	if (nvmep_request_retryable(rq)) {
		req->retries++;
		req->unmapped = 0;
		nvmep_failure_retried(failures);
		blk_mq_requeue_request(rq, false);
		blk_mq_delay_kick_requeue_list(rq->q, 0);
		return;
	}
	/* Before the end: the queue, and what is kept of it, may go with its last request. */
	nvmep_failure_ended(failures, rq);
	blk_mq_end_request(rq, nvmep_blk_status(req->status));
}

static bool nvmep_cancel(struct request *rq, void *unused)
{
	/* Neither one that waits in a queue nor one that completed already. */
	if (!blk_mq_request_started(rq) || blk_mq_request_completed(rq))
		return true;
	nvmep_request(rq)->flags |= NVMEP_REQUEST_CANCELLED;
	nvmep_request_finish(rq, NVME_SC_HOST_ABORTED, 0);
	blk_mq_complete_request(rq);
	return true;
}

/**
 * nvmep_request_cancel_all() - end every command that is under way
 * @tags: of the controller's admin queue or of its I/O queues
 *
 * The controller must have stopped.  Commands that may be repeated go back to
 * their queue, the others fail.
 */
void nvmep_request_cancel_all(struct blk_mq_tag_set *tags)
{
	if (!tags->tags)
		return;
	blk_mq_tagset_busy_iter(tags, nvmep_cancel, NULL);
	blk_mq_tagset_wait_completed_request(tags);
}

/**
 * nvmep_request_status() - the outcome of a command for whoever sent it
 * @rq: request that ended
 * @status: what the block layer says about it
 *
 * Return: 0; the NVMe status, positive; -EINTR if the controller was stopped
 * under it; another negative code if it was never sent.
 */
int nvmep_request_status(struct request *rq, blk_status_t status)
{
	struct nvmep_request *req = nvmep_request(rq);

	if (req->flags & NVMEP_REQUEST_CANCELLED)
		return -EINTR;
	if (req->status)
		return req->status;
	return blk_status_to_errno(status);
}
