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
#include "core/queue.h"
#include "core/request.h"
#include "effects.h"
#include "metadata.h"
#include "namespace.h"
#include "passthru.h"
#include "permission.h"
#include "scan.h"
#include "uring.h"

/**
 * struct nvmep_uring - what we keep in an io_uring command
 * @bio: user pages of the command
 * @metadata: its metadata, or NULL
 * @result: dwords 0 and 1 of the completion
 * @status: as nvmep_request_status()
 * @polled: index of the polled queue it is on, or %NVMEP_URING_NOT_POLLED
 * @reads: data goes to user space
 * @scan: the command may have changed what namespaces there are
 */
struct nvmep_uring {
	struct bio *bio;
	struct nvmep_user_metadata *metadata;
	u64 result;
	s32 status;
	u16 polled;
	bool reads;
	bool scan;
};

static_assert(sizeof(struct nvmep_uring) <=
	      sizeof_field(struct io_uring_cmd, pdu));

static struct nvmep_uring *nvmep_uring(struct io_uring_cmd *ioucmd)
{
	return (struct nvmep_uring *)ioucmd->pdu;
}

/* In the task whose memory it is. */
static void nvmep_uring_finish(struct io_uring_cmd *ioucmd,
			       unsigned int issue_flags)
{
	struct nvmep_uring *uring = nvmep_uring(ioucmd);
	int ret = uring->status, err;

	err = blk_rq_unmap_user(uring->bio);
	ret = ret ?: err;
	err = nvmep_user_metadata_finish(uring->metadata,
					 uring->reads && !ret);
	ret = ret ?: err;
	nvmep_uring_done(ioucmd, ret, uring->result, issue_flags);
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

static int nvmep_uring_map_fixed(const struct nvmep_user_command *command,
				 struct request *rq,
				 struct io_uring_cmd *ioucmd,
				 unsigned int issue_flags)
{
	int direction = rq_data_dir(rq), ret;
	struct iov_iter iter;

	if (command->vector)
		ret = nvmep_uring_import_fixed_vec(command->address,
						   command->length, direction,
						   &iter, ioucmd, issue_flags);
	else
		ret = nvmep_uring_import_fixed(command->address,
					       command->length, direction,
					       &iter, ioucmd, issue_flags);
	if (ret < 0)
		return ret;
	return blk_rq_map_user_iov(rq->q, rq, NULL, &iter, GFP_KERNEL);
}

static int nvmep_uring_map(const struct nvmep_passthru *from,
			   const struct nvmep_user_command *command,
			   struct request *rq, struct io_uring_cmd *ioucmd,
			   unsigned int issue_flags)
{
	int ret;

	if (!(ioucmd->flags & IORING_URING_CMD_FIXED) || !command->address ||
	    !command->length)
		return nvmep_user_map(from, command, rq);
	ret = nvmep_uring_map_fixed(command, rq, ioucmd, issue_flags);
	return ret ? ret : nvmep_user_mapped(from, command, rq);
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

static int nvmep_uring_submit(const struct nvmep_passthru *from,
			      const struct nvmep_user_command *command,
			      u32 effects, struct io_uring_cmd *ioucmd,
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
	if (ret)
		goto err_request;
	uring->metadata = nvmep_user_metadata_add(from, rq, command);
	if (IS_ERR(uring->metadata)) {
		ret = PTR_ERR(uring->metadata);
		goto err_map;
	}
	uring->bio = rq->bio;
	uring->polled = nvmep_uring_queue(rq);
	uring->reads = rq_data_dir(rq) == READ;
	uring->scan = nvmep_effects_change(effects);
	rq->end_io_data = ioucmd;
	rq->end_io = nvmep_uring_end_io;
	blk_execute_rq_nowait(rq, false);
	return -EIOCBQUEUED;

err_map:
	blk_rq_unmap_user(rq->bio);
err_request:
	blk_mq_free_request(rq);
	return ret;
}

/* A command that has to be alone runs in a worker, and waits there. */
static int nvmep_uring_alone(const struct nvmep_passthru *from,
			     const struct nvmep_user_command *command,
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
	u32 effects;
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
	effects = nvmep_command_effects(from->ctrl, command.sqe.opcode,
					command.admin);
	if (command.admin && nvmep_effects_disturb(effects))
		return nvmep_uring_alone(from, &command, ioucmd, issue_flags);
	return nvmep_uring_submit(from, &command, effects, ioucmd, issue_flags);
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
