// SPDX-License-Identifier: GPL-2.0-only
/*
 * Queue pairs are created and deleted by admin commands; who asks for a deletion may
 * free the rings when it returns, whatever the controller did.
 */
#include "admin.h"
#include "ctrl.h"
#include "pair.h"
#include "stop.h"

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
