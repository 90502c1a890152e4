// SPDX-License-Identifier: GPL-2.0-only
/*
 * NVMe passthrough by io_uring.
 *
 * The submission entry lies in memory shared with user space, so each field is
 * read once.  A completion is finished as task work of the submitter, which can
 * write to its user memory.  If that task has exited, a kernel worker finishes
 * it and copies nothing.  Commands of a ring with IORING_SETUP_IOPOLL go to a
 * polled queue if there is one; otherwise they complete by interrupt.
 */
#include <linux/blk-mq.h>
#include <linux/nvme_ioctl.h>
#include <linux/uio.h>

#include "compat.h"
#include "core/ctrl.h"
#include "core/data.h"
#include "core/queue.h"
#include "core/request.h"
#include "namespace.h"
#include "passthru.h"
#include "scan.h"
#include "uring.h"
#include "user_command.h"
#include "user_data.h"

/**
 * struct nvmep_uring - driver data of an io_uring command
 * @bio: registered buffer mapped by the block layer, or NULL
 * @held: other data and metadata, or NULL
 * @pages: user pages of nvmep_user_pin(); then @bio and @held are not used
 * @result: dwords 0 and 1 of the completion
 * @status: as nvmep_request_status()
 * @polled: index of the polled queue, or %NVMEP_URING_NOT_POLLED
 * @pinned: number of pages in @pages
 * @reads: data goes to user space
 * @scan: the command may have changed namespaces
 *
 * Owned by the submitter until the request is issued, then by its completion.
 * A polling task reads @polled meanwhile, which is written before.
 */
struct nvmep_uring {
	union {
		struct {
			struct bio *bio;
			struct nvmep_user_held *held;
		};
		union nvmep_user_pages pages;
	};
	u64 result;
	s32 status;
	u16 polled;
	u8 pinned;
	u8 reads : 1;
	u8 scan : 1;
};

static_assert(NVMEP_MAX_PINNED_PAGES <= U8_MAX);
static_assert(sizeof(struct nvmep_uring) <=
	      sizeof_field(struct io_uring_cmd, pdu));

static struct nvmep_uring *nvmep_uring(struct io_uring_cmd *ioucmd)
{
	return (struct nvmep_uring *)ioucmd->pdu;
}

/* Unpins or unmaps the data and copies what was copied back. */
static int nvmep_uring_unmap(struct nvmep_uring *uring, bool success)
{
	int ret = 0;

	if (uring->pinned) {
		nvmep_user_unpin(&uring->pages, uring->pinned, uring->reads);
		return 0;
	}
	if (uring->bio)
		ret = blk_rq_unmap_user(uring->bio);
	if (uring->held)
		return nvmep_user_release(uring->held, uring->reads,
					  success && !ret) ?: ret;
	return ret;
}

/*
 * Returning data to user memory may wait for I/O: for a page fault, or for the
 * lock of a page that is written to this disk.
 */
static bool nvmep_uring_finish_sleeps(const struct nvmep_uring *uring)
{
	if (uring->pinned)
		return uring->reads &&
		       nvmep_user_unpin_sleeps(&uring->pages, uring->pinned);
	return uring->bio || uring->held;
}

/* Runs in the submitting task, or in a kernel worker if it has exited. */
static void nvmep_uring_finish(struct io_uring_cmd *ioucmd,
			       unsigned int issue_flags)
{
	struct nvmep_uring *uring = nvmep_uring(ioucmd);
	int err = nvmep_uring_unmap(uring, !uring->status);

	nvmep_uring_done(ioucmd, uring->status ?: err, uring->result,
			 issue_flags);
}

NVMEP_URING_TW_FN(nvmep_uring_finish);

static enum rq_end_io_ret
nvmep_uring_end_io(struct request *rq, blk_status_t error,
		   const struct io_comp_batch *batch)
{
	struct io_uring_cmd *ioucmd = rq->end_io_data;
	struct nvmep_queue *queue = rq->mq_hctx->driver_data;
	struct nvmep_uring *uring = nvmep_uring(ioucmd);

	uring->status = nvmep_request_status(rq, error);
	uring->result = nvmep_request(rq)->result;
	if (uring->scan)
		nvmep_scan(queue->ctrl);
	/*
	 * Polling also finds completions of other rings: not finished here.
	 * Nor is one that sleeps: this request and those after it in the batch
	 * are not freed yet, which a reset waits for.
	 */
	if (nvmep_uring_polls(ioucmd, batch) &&
	    !nvmep_uring_finish_sleeps(uring))
		nvmep_uring_finish(ioucmd, 0);
	else
		nvmep_uring_complete_in_task(ioucmd, nvmep_uring_finish_fn);
	return RQ_END_IO_FREE;
}

NVMEP_END_IO_FN(nvmep_uring_end_io);

static void nvmep_uring_parse(struct nvmep_user_command *command,
			      const struct nvme_uring_cmd *user)
{
	*command = (struct nvmep_user_command){
		.sqe.common.opcode = READ_ONCE(user->opcode),
		.sqe.common.nsid = cpu_to_le32(READ_ONCE(user->nsid)),
		.sqe.common.cdw2[0] = cpu_to_le32(READ_ONCE(user->cdw2)),
		.sqe.common.cdw2[1] = cpu_to_le32(READ_ONCE(user->cdw3)),
		.sqe.common.cdw10 = cpu_to_le32(READ_ONCE(user->cdw10)),
		.sqe.common.cdw11 = cpu_to_le32(READ_ONCE(user->cdw11)),
		.sqe.common.cdw12 = cpu_to_le32(READ_ONCE(user->cdw12)),
		.sqe.common.cdw13 = cpu_to_le32(READ_ONCE(user->cdw13)),
		.sqe.common.cdw14 = cpu_to_le32(READ_ONCE(user->cdw14)),
		.sqe.common.cdw15 = cpu_to_le32(READ_ONCE(user->cdw15)),
		.address = nvmep_user_address(READ_ONCE(user->addr)),
		.length = READ_ONCE(user->data_len),
		.metadata = nvmep_user_address(READ_ONCE(user->metadata)),
		.metadata_length = READ_ONCE(user->metadata_len),
		.timeout_ms = READ_ONCE(user->timeout_ms),
	};
}

/* Of a vector, reads the array of struct iovec. */
static int nvmep_uring_import(const struct nvmep_user_command *command,
			      struct iov_iter *iter,
			      struct io_uring_cmd *ioucmd,
			      unsigned int issue_flags)
{
	int direction = nvmep_command_reads(command) ? READ : WRITE;

	if (command->vector)
		return nvmep_uring_import_fixed_vec(command->address,
						    command->length, direction,
						    iter, ioucmd, issue_flags);
	return nvmep_uring_import_fixed(command->address, command->length,
					direction, iter, ioucmd, issue_flags);
}

/* Is its data a registered buffer? */
static bool nvmep_uring_registered(const struct nvmep_user_command *command,
				   const struct io_uring_cmd *ioucmd)
{
	return ioucmd->flags & IORING_URING_CMD_FIXED && command->address &&
	       command->length;
}

/* Accesses user memory: no request is allocated yet, see user_data.c. */
static int nvmep_uring_hold(const struct nvmep_passthru *from,
			    const struct nvmep_user_command *command,
			    struct iov_iter *iter, struct io_uring_cmd *ioucmd,
			    unsigned int issue_flags)
{
	bool registered = nvmep_uring_registered(command, ioucmd);
	struct nvmep_uring *uring = nvmep_uring(ioucmd);
	struct nvmep_user_held *held = NULL;
	int ret;

	uring->pinned = 0;
	if (!registered) {
		uring->pinned = nvmep_user_pin(from, command, &uring->pages);
		if (uring->pinned)
			return 0;
	}
	if (!registered || command->metadata)
		held = nvmep_user_hold(from, command, registered);
	if (IS_ERR(held))
		return PTR_ERR(held);
	uring->bio = NULL;
	uring->held = held;
	if (!registered)
		return 0;
	ret = nvmep_uring_import(command, iter, ioucmd, issue_flags);
	if (ret < 0)
		nvmep_user_release(held, false, false);
	return min(ret, 0);
}

/* Undoes nvmep_uring_hold() for a command that was not sent. */
static void nvmep_uring_drop(struct nvmep_uring *uring)
{
	if (uring->pinned)
		nvmep_user_unpin(&uring->pages, uring->pinned, false);
	else
		nvmep_user_release(uring->held, false, false);
}

/* A bio, for a registered buffer that PRP entries cannot describe. */
static int nvmep_uring_attach_bio(const struct nvmep_passthru *from,
				  const struct nvmep_user_command *command,
				  struct request *rq,
				  const struct iov_iter *iter,
				  struct nvmep_uring *uring)
{
	int ret;

	/* A freeze may wait for the request, and I/O for the freeze. */
	ret = blk_rq_map_user_iov(rq->q, rq, NULL, iter, GFP_NOIO);
	if (ret)
		return ret;
	ret = nvmep_command_check_length(from, command,
					 blk_rq_payload_bytes(rq));
	if (ret)
		blk_rq_unmap_user(rq->bio);
	else
		uring->bio = rq->bio;
	return ret;
}

static int nvmep_uring_attach_registered(const struct nvmep_passthru *from,
					 const struct nvmep_user_command *command,
					 struct request *rq,
					 const struct iov_iter *iter,
					 struct nvmep_uring *uring)
{
	int ret;

	if (nvmep_user_map_registered(from, rq, iter))
		ret = nvmep_command_check_length(from, command, iter->count);
	else
		ret = nvmep_uring_attach_bio(from, command, rq, iter, uring);
	if (!ret && uring->held)
		nvmep_user_attach_metadata(rq, uring->held);
	return ret;
}

/* Attaches data and metadata, which the completion returns. */
static int nvmep_uring_attach(const struct nvmep_passthru *from,
			      const struct nvmep_user_command *command,
			      struct request *rq, const struct iov_iter *iter,
			      struct io_uring_cmd *ioucmd)
{
	struct nvmep_uring *uring = nvmep_uring(ioucmd);

	uring->reads = nvmep_command_reads(command);
	if (uring->pinned) {
		nvmep_user_attach(command, rq, &uring->pages, uring->pinned);
		return nvmep_command_check_length(from, command,
						  command->length);
	}
	if (nvmep_uring_registered(command, ioucmd))
		return nvmep_uring_attach_registered(from, command, rq, iter,
						     uring);
	return nvmep_user_attach_held(from, command, rq, uring->held);
}

/**
 * nvmep_uring_polled() - check whether a command is to be polled
 * @from: device node and namespace
 * @issue_flags: IO_URING_F_*
 *
 * Return: REQ_POLLED if the ring polls and there are polled queues, else 0; for
 * nvmep_user_request().
 */
blk_opf_t nvmep_uring_polled(const struct nvmep_passthru *from,
			     unsigned int issue_flags)
{
	const struct blk_mq_tag_set *tags = &from->ctrl->io_tags;

	return from->ns && issue_flags & IO_URING_F_IOPOLL &&
	       tags->map[HCTX_TYPE_POLL].nr_queues ? REQ_POLLED : 0;
}

/* Index of the polled queue of a request, or NVMEP_URING_NOT_POLLED. */
u16 nvmep_uring_polled_queue(const struct request *rq)
{
	return rq->mq_hctx->type == HCTX_TYPE_POLL ? rq->mq_hctx->queue_num :
						     NVMEP_URING_NOT_POLLED;
}

/**
 * nvmep_uring_send() - issue a request with an end_io callback
 * @rq: request, complete
 *
 * With a plug, blk-mq passes requests to queue_rqs() directly.  Without one it
 * inserts even a single request into a software queue, which costs more.
 */
void nvmep_uring_send(struct request *rq)
{
	struct blk_plug plug;

	if (current->plug) {
		blk_execute_rq_nowait(rq, false);
		return;
	}
	blk_start_plug(&plug);
	blk_execute_rq_nowait(rq, false);
	blk_finish_plug(&plug);
}

/* A request with the data and metadata of nvmep_uring_hold(). */
static struct request *nvmep_uring_request(const struct nvmep_passthru *from,
					   const struct nvmep_user_command *command,
					   const struct iov_iter *iter,
					   struct io_uring_cmd *ioucmd,
					   unsigned int issue_flags)
{
	blk_mq_req_flags_t flags = 0;
	struct request *rq;
	int ret;

	if (issue_flags & IO_URING_F_NONBLOCK)
		flags = BLK_MQ_REQ_NOWAIT;
	rq = nvmep_user_request(from, command,
				nvmep_uring_polled(from, issue_flags), flags);
	if (IS_ERR(rq))
		return rq;
	ret = nvmep_uring_attach(from, command, rq, iter, ioucmd);
	if (!ret)
		return rq;
	blk_mq_free_request(rq);
	return ERR_PTR(ret);
}

static int nvmep_uring_submit(const struct nvmep_passthru *from,
			      const struct nvmep_user_command *command,
			      struct io_uring_cmd *ioucmd,
			      unsigned int issue_flags)
{
	struct nvmep_uring *uring = nvmep_uring(ioucmd);
	struct iov_iter iter;
	struct request *rq;
	int ret;

	ret = nvmep_uring_hold(from, command, &iter, ioucmd, issue_flags);
	if (ret)
		return ret;
	rq = nvmep_uring_request(from, command, &iter, ioucmd, issue_flags);
	if (IS_ERR(rq)) {
		nvmep_uring_drop(uring);
		return PTR_ERR(rq);
	}
	uring->polled = nvmep_uring_polled_queue(rq);
	uring->scan = nvmep_effects_change_ns(command->effects);
	rq->end_io_data = ioucmd;
	rq->end_io = nvmep_uring_end_io_fn;
	nvmep_uring_send(rq);
	return -EIOCBQUEUED;
}

/* Executing a command with peers blocked sleeps: only in an io_uring worker. */
static int nvmep_uring_execute(const struct nvmep_passthru *from,
			       struct nvmep_user_command *command,
			       struct io_uring_cmd *ioucmd,
			       unsigned int issue_flags)
{
	u64 result = 0;
	int ret;

	if (ioucmd->flags & IORING_URING_CMD_FIXED)
		return -EINVAL;
	if (issue_flags & IO_URING_F_NONBLOCK)
		return -EAGAIN;
	ret = nvmep_user_execute(from, command, &result);
	nvmep_uring_done(ioucmd, ret, result, issue_flags);
	return -EIOCBQUEUED;
}

/* False if the device node does not have this operation. */
static bool nvmep_uring_operation(const struct nvmep_passthru *from,
				  u32 operation,
				  struct nvmep_user_command *command)
{
	command->admin = !from->ns;
	switch (operation) {
	case NVME_URING_CMD_IO_VEC:
	case NVME_URING_CMD_ADMIN_VEC:
		command->vector = true;
	}
	switch (operation) {
	case NVME_URING_CMD_IO:
	case NVME_URING_CMD_IO_VEC:
		return from->ns;
	case NVME_URING_CMD_ADMIN:
	case NVME_URING_CMD_ADMIN_VEC:
		return !from->ns;
	default:
		return false;
	}
}

/**
 * nvmep_uring_cmd() - submit NVME_URING_CMD_*
 * @from: device node
 * @ioucmd: io_uring command
 * @issue_flags: IO_URING_F_*
 *
 * io_uring calls it again for the same command after -EAGAIN.
 *
 * Return: -EIOCBQUEUED or another negative error code.
 */
int nvmep_uring_cmd(const struct nvmep_passthru *from,
		    struct io_uring_cmd *ioucmd, unsigned int issue_flags)
{
	const struct nvme_uring_cmd *user = nvmep_uring_payload(ioucmd);
	struct nvmep_user_command command;
	int ret;

	if (!(issue_flags & IO_URING_F_SQE128) ||
	    !(issue_flags & IO_URING_F_CQE32))
		return -EOPNOTSUPP;
	if (READ_ONCE(user->flags))
		return -EINVAL;
	nvmep_uring_parse(&command, user);
	if (!nvmep_uring_operation(from, ioucmd->cmd_op, &command))
		return -ENOTTY;
	ret = nvmep_command_check(from, &command);
	if (ret)
		return ret;
	if (command.admin)
		nvmep_command_fit(&command);
	if (command.admin && nvmep_effects_need_peers_blocked(command.effects))
		return nvmep_uring_execute(from, &command, ioucmd, issue_flags);
	return nvmep_uring_submit(from, &command, ioucmd, issue_flags);
}

/**
 * nvmep_uring_cmd_iopoll() - poll for completions on the queue of a command
 * @from: device node
 * @ioucmd: io_uring command that was issued
 * @batch: completion batch
 *
 * Races with the completion of the command and with removal of the namespace,
 * so it uses neither the request nor its hardware context.  A reference to
 * q_usage_counter keeps the controller's queues allocated.
 *
 * Return: number of completions found, of any ring; 0 if the command is not
 * polled.
 */
int nvmep_uring_cmd_iopoll(const struct nvmep_passthru *from,
			   struct io_uring_cmd *ioucmd,
			   struct io_comp_batch *batch)
{
	u16 index = nvmep_uring(ioucmd)->polled;
	unsigned int found;

	if (index == NVMEP_URING_NOT_POLLED ||
	    !percpu_ref_tryget(&from->ns->queue->q_usage_counter))
		return 0;
	found = nvmep_queue_poll_batch(from->ctrl->queues[index], batch);
	percpu_ref_put(&from->ns->queue->q_usage_counter);
	return found;
}
