// SPDX-License-Identifier: GPL-2.0-only
/*
 * NVMe passthrough by io_uring.
 *
 * The command lies in shared memory until it is copied: each field is read
 * once.  Completions are handed to the task, where its memory can be written; where
 * that is gone, to a worker of the kernel, which writes nothing.
 * A ring that polls has its commands on a polled queue where there is one; else they are
 * announced by interrupts, which it does not mind.
 */
#include <linux/blk-mq.h>
#include <linux/nvme_ioctl.h>
#include <linux/uio.h>

#include "command.h"
#include "compat.h"
#include "core/ctrl.h"
#include "core/data.h"
#include "core/queue.h"
#include "core/request.h"
#include "effects.h"
#include "length.h"
#include "metadata.h"
#include "namespace.h"
#include "passthru.h"
#include "permission.h"
#include "scan.h"
#include "uring.h"
#include "usermem.h"

/**
 * struct nvmep_uring - what we keep in an io_uring command
 * @bio: user pages of the command, where the block layer holds them
 * @metadata: its metadata, or NULL
 * @pages: user pages that we hold; a command that has such has none of the above
 * @result: dwords 0 and 1 of the completion
 * @status: as nvmep_request_status()
 * @polled: index of the polled queue it is on, or %NVMEP_URING_NOT_POLLED
 * @held: how many there are in @pages
 * @reads: data goes to user space
 * @scan: the command may have changed what namespaces there are
 */
struct nvmep_uring {
	union {
		struct {
			struct bio *bio;
			struct nvmep_user_metadata *metadata;
		};
		union nvmep_user_pages pages;
	};
	u64 result;
	s32 status;
	u16 polled;
	u8 held;
	u8 reads : 1;
	u8 scan : 1;
};

static_assert(NVMEP_MOST_HELD <= U8_MAX);
static_assert(sizeof(struct nvmep_uring) <=
	      sizeof_field(struct io_uring_cmd, pdu));

static struct nvmep_uring *nvmep_uring(struct io_uring_cmd *ioucmd)
{
	return (struct nvmep_uring *)ioucmd->pdu;
}

/* Gives back what held the memory of a command; the outcome is that of its metadata. */
static int nvmep_uring_unmap(struct nvmep_uring *uring, bool to_user)
{
	int ret = 0;

	if (uring->held) {
		nvmep_user_unhold(&uring->pages, uring->held, uring->reads);
		return 0;
	}
	if (uring->bio)
		ret = blk_rq_unmap_user(uring->bio);
	if (uring->metadata)
		return nvmep_user_metadata_finish(uring->metadata,
						  to_user && !ret) ?: ret;
	return ret;
}

/* In the task whose memory it is. */
static void nvmep_uring_finish(struct io_uring_cmd *ioucmd,
			       unsigned int issue_flags)
{
	struct nvmep_uring *uring = nvmep_uring(ioucmd);
	int err = nvmep_uring_unmap(uring, uring->reads && !uring->status);

	nvmep_uring_done(ioucmd, uring->status ?: err, uring->result,
			 issue_flags);
}

static void nvmep_uring_task_work(NVMEP_URING_TW_PARAMS)
{
	nvmep_uring_finish(NVMEP_URING_TW_CMD, NVMEP_URING_TW_FLAGS);
}

static enum rq_end_io_ret nvmep_uring_end_io(NVMEP_END_IO_PARAMS)
{
	struct io_uring_cmd *ioucmd = rq->end_io_data;
	struct nvmep_queue *queue = rq->mq_hctx->driver_data;
	struct nvmep_uring *uring = nvmep_uring(ioucmd);

	uring->status = nvmep_request_status(rq, error);
	uring->result = nvmep_request(rq)->result;
	if (uring->scan)
		nvmep_scan(queue->ctrl);
	/* Whoever polls finds commands of other rings too. */
	if (nvmep_uring_polls(ioucmd, NVMEP_END_IO_BATCH))
		nvmep_uring_finish(ioucmd, 0);
	else
		nvmep_uring_complete_in_task(ioucmd, nvmep_uring_task_work);
	return RQ_END_IO_FREE;
}

static void nvmep_uring_parse(struct nvmep_user_command *command,
			      const struct nvme_uring_cmd *user)
{
	*command = (struct nvmep_user_command){
		.sqe.opcode = READ_ONCE(user->opcode),
		.sqe.nsid = cpu_to_le32(READ_ONCE(user->nsid)),
		.sqe.cdw2 = cpu_to_le32(READ_ONCE(user->cdw2)),
		.sqe.cdw3 = cpu_to_le32(READ_ONCE(user->cdw3)),
		.sqe.cdw10 = cpu_to_le32(READ_ONCE(user->cdw10)),
		.sqe.cdw11 = cpu_to_le32(READ_ONCE(user->cdw11)),
		.sqe.cdw12 = cpu_to_le32(READ_ONCE(user->cdw12)),
		.sqe.cdw13 = cpu_to_le32(READ_ONCE(user->cdw13)),
		.sqe.cdw14 = cpu_to_le32(READ_ONCE(user->cdw14)),
		.sqe.cdw15 = cpu_to_le32(READ_ONCE(user->cdw15)),
		.address = READ_ONCE(user->addr),
		.length = READ_ONCE(user->data_len),
		.metadata = READ_ONCE(user->metadata),
		.metadata_length = READ_ONCE(user->metadata_len),
		.timeout_ms = READ_ONCE(user->timeout_ms),
	};
}

static int nvmep_uring_import(const struct nvmep_user_command *command,
			      int direction, struct iov_iter *iter,
			      struct io_uring_cmd *ioucmd,
			      unsigned int issue_flags)
{
	if (command->vector)
		return nvmep_uring_import_fixed_vec(command->address,
						    command->length, direction,
						    iter, ioucmd, issue_flags);
	return nvmep_uring_import_fixed(command->address, command->length,
					direction, iter, ioucmd, issue_flags);
}

static int nvmep_uring_map_fixed(const struct nvmep_passthru *from,
				 const struct nvmep_user_command *command,
				 struct request *rq,
				 struct io_uring_cmd *ioucmd,
				 unsigned int issue_flags)
{
	struct iov_iter iter;
	int ret = nvmep_uring_import(command, rq_data_dir(rq), &iter, ioucmd,
				     issue_flags);

	if (ret < 0)
		return ret;
	if (nvmep_user_registered(from, rq, &iter))
		return nvmep_command_check_length(from, command, iter.count);
	ret = blk_rq_map_user_iov(rq->q, rq, NULL, &iter, GFP_KERNEL);
	return ret ? ret : nvmep_user_mapped(from, command, rq);
}

static int nvmep_uring_map_user(const struct nvmep_passthru *from,
				const struct nvmep_user_command *command,
				struct request *rq, struct nvmep_uring *uring)
{
	int ret;

	uring->held = nvmep_user_hold(from, command, rq, &uring->pages);
	if (!uring->held)
		return nvmep_user_map(from, command, rq);
	ret = nvmep_command_check_length(from, command, command->length);
	if (ret)
		nvmep_user_unhold(&uring->pages, uring->held, false);
	return ret;
}

static int nvmep_uring_map_metadata(const struct nvmep_passthru *from,
				    const struct nvmep_user_command *command,
				    struct request *rq,
				    struct nvmep_uring *uring)
{
	struct nvmep_user_metadata *metadata;

	uring->metadata = NULL;
	if (!command->metadata)
		return 0;
	metadata = nvmep_user_metadata_add(from, rq, command);
	if (IS_ERR(metadata)) {
		blk_rq_unmap_user(rq->bio);
		return PTR_ERR(metadata);
	}
	uring->metadata = metadata;
	return 0;
}

/* Memory for the command: on success nvmep_uring_unmap() is to follow. */
static int nvmep_uring_map(const struct nvmep_passthru *from,
			   const struct nvmep_user_command *command,
			   struct request *rq, struct io_uring_cmd *ioucmd,
			   unsigned int issue_flags)
{
	struct nvmep_uring *uring = nvmep_uring(ioucmd);
	int ret;

	uring->held = 0;
	uring->reads = rq_data_dir(rq) == READ;
	if (!command->address || !command->length)
		ret = nvmep_user_mapped(from, command, rq);
	else if (ioucmd->flags & IORING_URING_CMD_FIXED)
		ret = nvmep_uring_map_fixed(from, command, rq, ioucmd,
					    issue_flags);
	else
		ret = nvmep_uring_map_user(from, command, rq, uring);
	if (ret || uring->held)
		return ret;
	uring->bio = rq->bio;
	return nvmep_uring_map_metadata(from, command, rq, uring);
}

/**
 * nvmep_uring_polled() - does the ring poll, and has the namespace a queue for that?
 * @from: the node and the namespace
 * @issue_flags: how the command is issued
 *
 * Return: REQ_POLLED or 0, for nvmep_user_request().
 */
blk_opf_t nvmep_uring_polled(const struct nvmep_passthru *from,
			     unsigned int issue_flags)
{
	const struct blk_mq_tag_set *tags = &from->ctrl->io_tags;

	return from->ns && issue_flags & IO_URING_F_IOPOLL &&
	       tags->nr_maps > HCTX_TYPE_POLL &&
	       tags->map[HCTX_TYPE_POLL].nr_queues ? REQ_POLLED : 0;
}

/**
 * nvmep_uring_queue() - what to poll for a command
 * @rq: its request
 *
 * Return: index of the polled queue that it goes to, or %NVMEP_URING_NOT_POLLED.
 */
u16 nvmep_uring_queue(const struct request *rq)
{
	return rq->mq_hctx->type == HCTX_TYPE_POLL ? rq->mq_hctx->queue_num :
						     NVMEP_URING_NOT_POLLED;
}

/**
 * nvmep_uring_send() - send a request whose end will be told
 * @rq: request, complete
 *
 * A request that is alone would be put into a list and looked for there; a plug hands
 * it over directly, as it does many.
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

static int nvmep_uring_submit(const struct nvmep_passthru *from,
			      const struct nvmep_user_command *command,
			      struct io_uring_cmd *ioucmd,
			      unsigned int issue_flags)
{
	struct nvmep_uring *uring = nvmep_uring(ioucmd);
	blk_mq_req_flags_t flags = 0;
	struct request *rq;
	int ret;

	if (issue_flags & IO_URING_F_NONBLOCK)
		flags = BLK_MQ_REQ_NOWAIT;
	rq = nvmep_user_request(from, command,
				nvmep_uring_polled(from, issue_flags), flags);
	if (IS_ERR(rq))
		return PTR_ERR(rq);
	ret = nvmep_uring_map(from, command, rq, ioucmd, issue_flags);
	if (ret) {
		blk_mq_free_request(rq);
		return ret;
	}
	uring->polled = nvmep_uring_queue(rq);
	uring->scan = nvmep_effects_change(command->effects);
	rq->end_io_data = ioucmd;
	rq->end_io = nvmep_uring_end_io;
	nvmep_uring_send(rq);
	return -EIOCBQUEUED;
}

/* A command that has to be alone runs in a worker, and waits there. */
static int nvmep_uring_alone(const struct nvmep_passthru *from,
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

/* Is the operation one of the node's, and in what form? */
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
 * nvmep_uring_cmd() - NVME_URING_CMD_*
 * @from: the node
 * @ioucmd: io_uring command
 * @issue_flags: how it is issued
 *
 * May be called again for the same command after -EAGAIN.
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
	if (command.admin && nvmep_effects_disturb(command.effects))
		return nvmep_uring_alone(from, &command, ioucmd, issue_flags);
	return nvmep_uring_submit(from, &command, ioucmd, issue_flags);
}

/**
 * nvmep_uring_cmd_iopoll() - a polling ring asks for completions
 * @from: the node
 * @ioucmd: io_uring command that was queued
 * @batch: of completions
 *
 * The request may have ended, and its namespace gone, since the ring looked: what is
 * polled is found without it.  While its request queue can be entered, the controller's
 * queues are there.
 *
 * Return: how many were found, of whatever ring; 0 where an interrupt will tell.
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
	found = nvmep_queue_look(from->ctrl->queues[index], batch);
	percpu_ref_put(&from->ns->queue->q_usage_counter);
	return found;
}
