// SPDX-License-Identifier: GPL-2.0-only
/*
 * Create and delete queue pairs by admin commands.
 *
 * When a deletion returns, the caller may free the rings: if the controller did
 * not delete the queues, it was stopped.
 */
#include "admin.h"
#include "ctrl.h"
#include "queue_pair.h"
#include "reset.h"

static int nvmep_create_cq(struct nvmep_ctrl *ctrl,
			   const struct nvmep_queue_pair_params *params,
			   u32 generation)
{
	u32 flags = (params->cq_contiguous ? NVME_QUEUE_PHYS_CONTIG : 0) |
		    (params->vector >= 0 ? NVME_CQ_IRQ_ENABLED : 0);
	u32 vector = max(params->vector, 0);
	struct nvmep_admin_command command = {
		.sqe.common.opcode = nvme_admin_create_cq,
		.sqe.common.dptr.prp1 = cpu_to_le64(params->cq_dma),
		.sqe.common.cdw10 = cpu_to_le32((params->cq_entries - 1) << 16 |
						params->qid),
		.sqe.common.cdw11 = cpu_to_le32(vector << 16 | flags),
		.bound = true,
		.generation = generation,
	};

	return nvmep_admin_execute(ctrl, &command);
}

static int nvmep_create_sq(struct nvmep_ctrl *ctrl,
			   const struct nvmep_queue_pair_params *params,
			   u32 generation)
{
	u32 flags = params->sq_contiguous ? NVME_QUEUE_PHYS_CONTIG : 0;
	struct nvmep_admin_command command = {
		.sqe.common.opcode = nvme_admin_create_sq,
		.sqe.common.dptr.prp1 = cpu_to_le64(params->sq_dma),
		.sqe.common.cdw10 = cpu_to_le32((params->sq_entries - 1) << 16 |
						params->qid),
		.sqe.common.cdw11 = cpu_to_le32((u32)params->qid << 16 | flags),
		.bound = true,
		.generation = generation,
	};

	return nvmep_admin_execute(ctrl, &command);
}

/**
 * nvmep_delete_queue() - Delete I/O Submission or Completion Queue
 * @ctrl: controller
 * @opcode: nvme_admin_delete_sq first, then nvme_admin_delete_cq
 * @qid: queue identifier
 * @generation: generation that the queue was created in
 *
 * Return: as nvmep_admin_execute().
 */
int nvmep_delete_queue(struct nvmep_ctrl *ctrl, u8 opcode, u16 qid,
		       u32 generation)
{
	struct nvmep_admin_command command = {
		.sqe.common.opcode = opcode,
		.sqe.common.cdw10 = cpu_to_le32(qid),
		.bound = true,
		.generation = generation,
	};

	return nvmep_admin_execute(ctrl, &command);
}

/* Logs an NVMe status of a creation and returns -EIO for it. */
static int nvmep_log_create_status(struct nvmep_ctrl *ctrl, const char *what,
				   u16 qid, int ret)
{
	if (ret <= 0)
		return ret;
	dev_warn_ratelimited(ctrl->dev,
			     "creation of %s %u failed, status %#x\n",
			     what, qid, ret);
	return -EIO;
}

/**
 * nvmep_queue_pair_create_bound() - create a queue pair in a given generation
 * @ctrl: controller
 * @params: the queue pair; the CQ ring must be zeroed
 * @generation: generation that the controller must be in
 *
 * For a start, which runs before the controller is LIVE; other callers use
 * nvmep_queue_pair_create().
 *
 * Return: 0; -EIO if the controller refused, logged; -EINTR if it was stopped
 * meanwhile; another negative error code.
 */
int nvmep_queue_pair_create_bound(struct nvmep_ctrl *ctrl,
				  const struct nvmep_queue_pair_params *params,
				  u32 generation)
{
	int ret;

	ret = nvmep_create_cq(ctrl, params, generation);
	if (ret)
		return nvmep_log_create_status(ctrl, "completion queue",
					       params->qid, ret);
	ret = nvmep_create_sq(ctrl, params, generation);
	if (!ret)
		return 0;
	if (nvmep_delete_queue(ctrl, nvme_admin_delete_cq, params->qid,
			       generation))
		nvmep_ctrl_ensure_stopped(ctrl, generation);
	return nvmep_log_create_status(ctrl, "submission queue", params->qid,
				       ret);
}

/* Maps the error of a peer's creation, by the state of the controller. */
static int nvmep_peer_create_error(struct nvmep_ctrl *ctrl, int ret)
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
 * @params: the queue pair; the CQ ring must be zeroed
 * @generation: generation that the controller must be in
 *
 * On failure neither queue is left on the controller; if its deletion fails,
 * the controller is reset.  May sleep for the admin timeout.  A stop may follow
 * at once: the caller compares the generation under the lock by which it learns
 * of stops.
 *
 * Return: 0; -EAGAIN in another generation or while the controller is being
 * reset; -ESHUTDOWN if it is being removed or has failed; -EIO if it refused,
 * logged; -ENOMEM.
 */
int nvmep_queue_pair_create(struct nvmep_ctrl *ctrl,
			    const struct nvmep_queue_pair_params *params,
			    u32 generation)
{
	int ret;

	switch (nvmep_ctrl_state(ctrl)) {
	case NVMEP_CTRL_LIVE:
		ret = nvmep_queue_pair_create_bound(ctrl, params, generation);
		return ret ? nvmep_peer_create_error(ctrl, ret) : 0;
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
 * @generation: generation that the queue pair was created in
 *
 * On return the controller does no more DMA to the rings, even on error: if it
 * does not delete the queues, it is stopped and reset.  May sleep for the admin
 * timeout plus the time of a stop.  Calling it under a reservation lock or
 * mmap_lock is a deadlock.
 *
 * Return: 0 if the queues were deleted, now or by an earlier stop; -EIO if the
 * controller was stopped.  For the log only.
 */
int nvmep_queue_pair_delete(struct nvmep_ctrl *ctrl, u16 qid, u32 generation)
{
	int ret;

	ret = nvmep_delete_queue(ctrl, nvme_admin_delete_sq, qid, generation);
	if (!ret)
		ret = nvmep_delete_queue(ctrl, nvme_admin_delete_cq, qid,
					 generation);
	if (!ret || nvmep_ctrl_generation(ctrl) != generation)
		return 0;
	dev_warn(ctrl->dev,
		 "queue pair %u: deletion failed (%d), resetting the controller\n",
		 qid, ret);
	nvmep_ctrl_ensure_stopped(ctrl, generation);
	return -EIO;
}
