// SPDX-License-Identifier: GPL-2.0-only
/*
 * Commands of the CPU: submission, completion or cancellation, retry, end.
 * Their callers build them.
 */
#include <linux/blk-mq.h>
#include <linux/module.h>

#include "compat.h"
#include "ctrl.h"
#include "data.h"
#include "error_log.h"
#include "queue.h"
#include "request.h"
#include "reset.h"
#include "trace.h"

/* Limit of the delay of a retry while the controller is to stop. */
#define NVMEP_STOP_RETRY_MS	1000U

static unsigned char max_retries = 5;
module_param(max_retries, byte, 0644);
MODULE_PARM_DESC(max_retries,
		 "retries of a command of the block layer that failed with a status that permits them");

/* The next CID of a tag, whose @uses are counted; the caller holds the tag. */
static u16 nvmep_next_cid(u8 *uses, unsigned int tag)
{
	u8 use = (*uses)++;

	return (u16)(use << NVMEP_CID_TAG_BITS) | tag;
}

/**
 * nvmep_request_alloc() - allocate a passthrough request for a command
 * @queue: request queue of the admin queue or of a namespace
 * @sqe: command without CID and data pointers
 * @more: REQ_POLLED if the caller polls for the completion, or 0
 * @flags: for blk_mq_alloc_request()
 *
 * The command is never retried.
 *
 * Return: the request or an error pointer.
 */
struct request *nvmep_request_alloc(struct request_queue *queue,
				    const struct nvme_command *sqe,
				    blk_opf_t more, blk_mq_req_flags_t flags)
{
	blk_opf_t op = sqe->common.opcode & NVMEP_OPCODE_TO_CTRL ?
		       REQ_OP_DRV_OUT : REQ_OP_DRV_IN;
	struct nvmep_request *req;
	struct request *rq;

	rq = blk_mq_alloc_request(queue, op | REQ_FAILFAST_DRIVER | more,
				  flags);
	if (IS_ERR(rq))
		return rq;
	req = nvmep_request(rq);
	req->sqe = *sqe;
	req->result = 0;
	req->status = 0;
	req->flags = 0;
	req->aborted = false;
	nvmep_request_init(rq);
	return rq;
}

/* Most bytes of a buffer that a bio can describe. */
#define NVMEP_BIO_BYTES		(BIO_MAX_VECS * PAGE_SIZE)

/**
 * nvmep_request_map_buffer() - attach kernel memory to a request as its data
 * @rq: request, without data
 * @buffer: memory of kmalloc() or vmalloc(), at a dword; at a page if one bio
 *	cannot describe it
 * @length: bytes, a multiple of 4
 *
 * Return: 0, and the request has to be executed, which frees the bios; or a
 * negative error code.
 */
int nvmep_request_map_buffer(struct request *rq, void *buffer,
			     unsigned int length)
{
	/* Without I/O: a freeze may wait for the request, I/O for the freeze. */
	gfp_t flags = GFP_NOIO;
	struct bio *bio;
	unsigned int bytes;
	int ret = 0;

	for (; length && !ret; buffer += bytes, length -= bytes) {
		bytes = min_t(unsigned int, length, NVMEP_BIO_BYTES);
		ret = nvmep_rq_map_kern(rq, buffer, bytes, flags);
		/* The reserve has the first bio: only its end refills it. */
		flags = GFP_NOWAIT | __GFP_NOWARN;
	}
	while (ret && (bio = rq->bio)) {
		rq->bio = bio->bi_next;
		bio_endio(bio);
	}
	return ret;
}

/*
 * The data could not be mapped for DMA.  BLK_STS_RESOURCE makes blk-mq retry,
 * which helps if other requests will unmap theirs.  It would retry forever for
 * memory that cannot be mapped at all, so give up after the time that a command
 * may take.
 */
static noinline blk_status_t nvmep_request_map_failed(struct nvmep_queue *queue,
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
			    req->sqe.common.opcode);
	return BLK_STS_IOERR;
}

/**
 * nvmep_request_prepare() - map a request's data and start it
 * @queue: enabled hardware queue
 * @rq: request whose command is complete except for CID and data pointers
 *
 * On success the request counts as in flight: the caller must submit its
 * command before dispatch ends.
 *
 * Return: BLK_STS_OK, or an error of nvmep_data_map(); BLK_STS_IOERR if its
 * data could not be mapped within the timeout of a command.
 */
blk_status_t nvmep_request_prepare(struct nvmep_queue *queue,
				   struct request *rq)
{
	struct nvmep_request *req = nvmep_request(rq);
	blk_status_t status;

	status = nvmep_data_map(queue->ctrl, rq);
	if (unlikely(status))
		return nvmep_request_map_failed(queue, rq, status);
	WRITE_ONCE(req->cid, nvmep_next_cid(&queue->uses[rq->tag], rq->tag));
	req->sqe.common.command_id = nvmep_command_id(req->cid);
	/* A stop waits for dispatch, so the generation does not change here. */
	WRITE_ONCE(req->generation, queue->ctrl->generation);
	blk_mq_start_request(rq);
	/* Pairs with smp_load_acquire() in nvmep_request_of_cid(). */
	smp_store_release(&queue->requests[rq->tag], rq);
	trace_nvmep_submit(queue->ctrl->instance, queue->qid, &req->sqe);
	return BLK_STS_OK;
}

/**
 * nvmep_request_submit_list() - submit a batch of prepared requests
 * @queue: hardware queue of all of them
 * @list: the requests; empty on return
 *
 * Takes the lock once and writes the doorbell once.
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
 * nvmep_request_submit() - map, start and submit one request
 * @queue: enabled hardware queue
 * @rq: request whose command is complete except for CID and data pointers
 * @ring: write the doorbell; else nvmep_queue_write_doorbell() must follow
 *
 * Return: as nvmep_request_prepare().
 */
blk_status_t nvmep_request_submit(struct nvmep_queue *queue, struct request *rq,
				  bool ring)
{
	blk_status_t status = nvmep_request_prepare(queue, rq);

	if (status)
		return status;
	/*
	 * The queue is enabled: a stop waits for dispatch before it disables
	 * it.
	 */
	WARN_ON_ONCE(!nvmep_queue_submit(queue, &nvmep_request(rq)->sqe, ring));
	return BLK_STS_OK;
}

/* --- failed commands ----------------------------------------------------- */

/*
 * Failed block I/O is counted and logged.  Passthrough of user space is only
 * while log_passthru is set; the driver's own commands never are.
 */

static void nvmep_count_retry(struct nvmep_failures *failures)
{
	atomic_long_inc(&failures->retries);
}

/*
 * The driver's own admin commands do not count: it uses some to probe for
 * support.
 */
static bool nvmep_error_counts(const struct nvmep_failures *failures,
			       struct request *rq)
{
	if (!blk_rq_is_passthrough(rq))
		return true;
	return nvmep_request(rq)->flags & NVMEP_REQUEST_USER &&
	       READ_ONCE(failures->log_passthru);
}

static void nvmep_count_error(struct nvmep_failures *failures,
			      struct request *rq)
{
	if (likely(!nvmep_request(rq)->status) ||
	    !nvmep_error_counts(failures, rq))
		return;
	atomic_long_inc(&failures->errors);
	nvmep_error_log(rq);
}

/* --- completion ---------------------------------------------------------- */

/* The controller's status of a command, or that of an injected fault. */
static u16 nvmep_request_fault(const struct nvmep_queue *queue,
			       struct request *rq, u16 status)
{
#ifdef CONFIG_FAULT_INJECTION_DEBUG_FS
	u8 opcode = nvmep_request(rq)->sqe.common.opcode;
	struct nvmep_ctrl *ctrl = queue->ctrl;
	struct nvmep_failures *failures = queue->number ?
		ctrl->cpu_ops->failures(rq->q) : &ctrl->failures;

	if (!queue->number && nvmep_fault_exempt(opcode))
		return status;
	return nvmep_fault_inject_status(&failures->fault, opcode, status);
#else
	return status;
#endif
}

/* Sets the outcome of a request in flight. */
static void nvmep_request_set_result(struct request *rq, u16 status, u64 result)
{
	struct nvmep_request *req = nvmep_request(rq);

	req->status = status;
	req->result = result;
	/*
	 * A duplicate of the completion entry matches no request from here on.
	 */
	WRITE_ONCE(req->cid, NVMEP_CID_NONE);
}

/* Ends a batch of successful requests of one hardware queue. */
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
 * Completes a request: on another CPU, in a batch, or at once.  A request that
 * failed may be retried, and one with a special payload must free it, so
 * neither goes into a batch.
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

/*
 * The request in flight with this CID, or NULL.  Not from blk-mq's tags, which
 * change with the number of hardware queues.
 */
static struct request *nvmep_request_of_cid(struct nvmep_queue *queue, u16 cid)
{
	unsigned int tag = cid & NVMEP_CID_TAG_MASK;
	struct request *rq;

	lockdep_assert_held(&queue->cq_lock);

	if (tag >= queue->entries)
		return NULL;
	/* Pairs with smp_store_release() in nvmep_request_prepare(). */
	rq = smp_load_acquire(&queue->requests[tag]);
	if (!rq || READ_ONCE(nvmep_request(rq)->cid) != cid)
		return NULL;
	return rq;
}

/* Is it the command of nvmep_queue_execute()? */
static bool nvmep_execute_handle_cqe(struct nvmep_queue *queue, u16 cid,
				     const struct nvme_completion *cqe)
{
	lockdep_assert_held(&queue->cq_lock);

	if (cid == NVMEP_CID_NONE || cid != queue->own_cid)
		return false;
	queue->own_status = le16_to_cpu(cqe->status) >> 1;
	WRITE_ONCE(queue->own_cid, NVMEP_CID_NONE);
	wake_up_all(&queue->ctrl->state_wait);
	return true;
}

/**
 * nvmep_request_handle_cqe() - complete the request of a completion entry
 * @queue: queue of the entry; this is its &nvmep_queue.complete; cq_lock is
 *	held
 * @cqe: the entry
 * @batch: the request may be added; the caller completes the batch after it has
 *	dropped the lock
 */
void nvmep_request_handle_cqe(struct nvmep_queue *queue,
			      const struct nvme_completion *cqe,
			      struct io_comp_batch *batch)
{
	u16 cid = nvmep_cid(READ_ONCE(cqe->command_id));
	struct request *rq = nvmep_request_of_cid(queue, cid);
	u16 status;

	if (unlikely(!rq)) {
		if (nvmep_execute_handle_cqe(queue, cid, cqe))
			return;
		dev_warn_ratelimited(queue->ctrl->dev,
				     "queue %u: completion of CID %#x, which is not in flight: ignored\n",
				     queue->qid, cid);
		return;
	}
	/* Fault injection (io-timeout-fail) drops the completion. */
	if (unlikely(blk_should_fake_timeout(rq->q)))
		return;
	WRITE_ONCE(queue->requests[cid & NVMEP_CID_TAG_MASK], NULL);
	status = nvmep_request_fault(queue, rq, le16_to_cpu(cqe->status) >> 1);
	nvmep_request_set_result(rq, status, le64_to_cpu(cqe->result.u64));
	nvmep_request_complete(rq, batch);
}

static bool nvmep_execute_pending(struct nvmep_queue *queue, u16 cid,
				  u32 generation)
{
	return READ_ONCE(queue->own_cid) == cid &&
	       nvmep_ctrl_generation(queue->ctrl) == generation;
}

/* Returns when the controller no longer executes the command. */
static void nvmep_execute_wait(struct nvmep_queue *queue, u16 cid,
			       u32 generation, unsigned long timeout)
{
	struct nvmep_ctrl *ctrl = queue->ctrl;

	do {
		wait_event_timeout(ctrl->state_wait,
				   !nvmep_execute_pending(queue, cid,
							  generation),
				   timeout);
	} while (nvmep_execute_pending(queue, cid, generation) &&
	       nvmep_timeout_deferred(ctrl));
	/* Its interrupt may have been lost. */
	if (READ_ONCE(queue->own_cid) == cid)
		nvmep_queue_poll(queue);
	if (READ_ONCE(queue->own_cid) != cid)
		return;
	if (nvmep_ctrl_generation(ctrl) == generation)
		dev_warn(ctrl->dev,
			 "queue %u: timeout of an internal command, resetting the controller\n",
			 queue->qid);
	nvmep_ctrl_ensure_stopped(ctrl, generation);
}

/**
 * nvmep_queue_execute() - execute a command without data and without a request
 * @queue: I/O queue; callers are serialised
 * @sqe: complete command except for the CID
 * @timeout: jiffies; after it the controller is reset
 *
 * For a command that blk-mq gives no tag: its request queue may be frozen.  The
 * tag set leaves room for it in the SQ, but not in one of two entries.
 *
 * Return: NVMe status, 0 for success; -EINTR if the controller was stopped.
 */
int nvmep_queue_execute(struct nvmep_queue *queue, struct nvme_command *sqe,
			unsigned long timeout)
{
	u32 generation = nvmep_ctrl_generation(queue->ctrl);
	u16 cid = nvmep_next_cid(&queue->own_uses, NVMEP_CID_OWN_TAG);
	int ret = -EINTR;

	if (queue->entries < 3)
		return NVME_SC_HOST_PATH_ERROR | NVME_STATUS_DNR;
	sqe->common.command_id = nvmep_command_id(cid);
	spin_lock_irq(&queue->cq_lock);
	WRITE_ONCE(queue->own_cid, cid);
	spin_unlock_irq(&queue->cq_lock);
	if (nvmep_queue_submit_bound(queue, sqe, generation))
		nvmep_execute_wait(queue, cid, generation, timeout);
	spin_lock_irq(&queue->cq_lock);
	if (queue->own_cid == NVMEP_CID_NONE)
		ret = queue->own_status;
	WRITE_ONCE(queue->own_cid, NVMEP_CID_NONE);
	spin_unlock_irq(&queue->cq_lock);
	return ret;
}

static blk_status_t nvmep_blk_status(u16 status)
{
	switch (status & NVME_SCT_SC_MASK) {
	case NVME_SC_SUCCESS:
		return BLK_STS_OK;
	case NVME_SC_CAP_EXCEEDED:
		return BLK_STS_NOSPC;
	case NVME_SC_LBA_RANGE:
	case NVME_SC_CMD_INTERRUPTED:
	case NVME_SC_NS_NOT_READY:
		return BLK_STS_TARGET;
	case NVME_SC_BAD_ATTRIBUTES:
	case NVME_SC_INVALID_OPCODE:
	case NVME_SC_INVALID_FIELD:
	case NVME_SC_INVALID_NS:
		return BLK_STS_NOTSUPP;
	case NVME_SC_WRITE_FAULT:
	case NVME_SC_READ_ERROR:
	case NVME_SC_COMPARE_FAILED:
	case NVME_SC_UNWRITTEN_BLOCK:
	case NVME_SC_ACCESS_DENIED:
	case NVME_SC_READ_ONLY:
		return BLK_STS_MEDIUM;
	case NVME_SC_GUARD_CHECK:
	case NVME_SC_APPTAG_CHECK:
	case NVME_SC_REFTAG_CHECK:
	case NVME_SC_INVALID_PI:
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
	       !blk_noretry_request(rq) && !blk_queue_dying(rq->q) &&
	       req->retries < READ_ONCE(max_retries);
}

/*
 * The delay that the controller asks for (CRD), in milliseconds, no longer than
 * the timeout of I/O.  Before a stop, which waits for it, it is shorter: without
 * any delay all retries would fail.
 */
static unsigned long nvmep_retry_delay(struct request *rq)
{
	const struct nvmep_queue *queue = rq->mq_hctx->driver_data;
	const struct nvme_id_ctrl *id = queue->ctrl->id;
	/* Of each value of CRD, in 100 ms; base specification 5.1.13.2.1. */
	const __le16 delays[] = { 0, id->crdt1, id->crdt2, id->crdt3 };
	u16 status = nvmep_request(rq)->status;
	unsigned int limit = jiffies_to_msecs(READ_ONCE(rq->q->rq_timeout));
	unsigned int delay;

	delay = le16_to_cpu(delays[(status & NVME_STATUS_CRD) >> 11]) * 100;
	if (nvmep_ctrl_state(queue->ctrl) != NVMEP_CTRL_LIVE)
		limit = min(limit, NVMEP_STOP_RETRY_MS);
	return min(delay, limit);
}

/**
 * nvmep_request_end() - retry a command, or end its request
 * @rq: completed request, its data unmapped
 * @failures: counters of its request queue
 */
void nvmep_request_end(struct request *rq, struct nvmep_failures *failures)
{
	struct nvmep_request *req = nvmep_request(rq);
	unsigned long delay;

	if (nvmep_request_retryable(rq)) {
		delay = nvmep_retry_delay(rq);
		req->retries++;
		req->unmapped = 0;
		nvmep_count_retry(failures);
		blk_mq_requeue_request(rq, false);
		blk_mq_delay_kick_requeue_list(rq->q, delay);
		return;
	}
	/*
	 * Count first: the end of the last request may free the queue and
	 * @failures.
	 */
	nvmep_count_error(failures, rq);
	blk_mq_end_request(rq, nvmep_blk_status(req->status));
}

/**
 * nvmep_request_end_executed() - end a request by another command's status
 * @rq: request that was not dispatched; nvmep_queue_execute() has executed its
 *	command
 * @status: NVMe status
 * @failures: counters of its request queue
 * @delay: raised to the delay of a retry, in milliseconds, one second at most:
 *	a freeze may wait for @rq
 *
 * Return: false, and it has not ended, if the command has to be tried again.
 */
bool nvmep_request_end_executed(struct request *rq, u16 status,
				struct nvmep_failures *failures,
				unsigned long *delay)
{
	struct nvmep_request *req = nvmep_request(rq);

	req->status = status;
	if (nvmep_request_retryable(rq)) {
		req->retries++;
		nvmep_count_retry(failures);
		*delay = max(*delay, min_t(unsigned long, nvmep_retry_delay(rq),
					   NVMEP_STOP_RETRY_MS));
		return false;
	}
	nvmep_count_error(failures, rq);
	blk_mq_end_request(rq, nvmep_blk_status(status));
	return true;
}

/* @rq was taken from its queue, so no completion entry matches it any more. */
static void nvmep_request_cancel(struct request *rq)
{
	nvmep_request(rq)->flags |= NVMEP_REQUEST_CANCELLED;
	nvmep_request_set_result(rq, NVME_SC_HOST_ABORTED_CMD, 0);
	blk_mq_complete_request(rq);
}

/**
 * nvmep_queue_cancel() - cancel every command in flight of a queue
 * @queue: disabled queue of a stopped controller: else the controller could
 *	still access their memory
 *
 * Retryable requests are requeued, the others fail, perhaps on another CPU
 * after this has returned.  Until then a request keeps its tag, so no command
 * of the next generation gets it, and a reference to its memory.  Queues are
 * freed after the removal of the disks, which waits for their requests.
 *
 * Does not iterate over blk-mq's tags: their number may be changing, and that
 * change may wait for these commands.  Reads without the lock first: no command
 * is added to a disabled queue.
 */
void nvmep_queue_cancel(struct nvmep_queue *queue)
{
	struct request *rq;
	unsigned int tag;

	for (tag = 0; tag < queue->entries; tag++) {
		if (!READ_ONCE(queue->requests[tag]))
			continue;
		spin_lock_irq(&queue->cq_lock);
		rq = queue->requests[tag];
		WRITE_ONCE(queue->requests[tag], NULL);
		spin_unlock_irq(&queue->cq_lock);
		if (rq)
			nvmep_request_cancel(rq);
	}
}

/**
 * nvmep_request_status() - outcome of a passthrough command
 * @rq: request that has ended
 * @status: the block layer's status of it
 *
 * Return: 0; a positive NVMe status; -EINTR if the controller was stopped, or
 * refused a command of the driver because it is stopped or in another
 * generation; another negative code if it was not submitted for other reasons.
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
