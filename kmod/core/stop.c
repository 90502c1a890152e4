// SPDX-License-Identifier: GPL-2.0-only
/*
 * Stop a controller: quiesce dispatch, disable the queues, end all DMA,
 * increment the generation, cancel the commands in flight.  Process context,
 * sleeps.
 *
 * Reset work, the timeout handler, an error of the link and a queue that could
 * not be deleted may race to stop the controller.  enable_lock serialises them,
 * and NVMEP_CTRL_ENABLED makes all but the first do nothing.
 */
#include <linux/blk-mq.h>

#include "compat.h"
#include "ctrl.h"
#include "queue.h"
#include "registers.h"
#include "request.h"
#include "reset.h"

static void nvmep_queues_disable(struct nvmep_ctrl *ctrl)
{
	unsigned int i;

	nvmep_queue_disable(ctrl->admin);
	for (i = 0; i < nvmep_ctrl_cpu_queues(ctrl); i++)
		nvmep_queue_disable(ctrl->queues[i]);
}

static void nvmep_queues_poll(struct nvmep_ctrl *ctrl)
{
	unsigned int i;

	nvmep_queue_poll(ctrl->admin);
	for (i = 0; i < nvmep_ctrl_cpu_queues(ctrl); i++)
		nvmep_queue_poll(ctrl->queues[i]);
}

/* The admin queue has one tag set: on return its commands have ended. */
static void nvmep_queues_cancel(struct nvmep_ctrl *ctrl)
{
	unsigned int i;

	nvmep_queue_cancel(ctrl->admin);
	blk_mq_tagset_wait_completed_request(&ctrl->admin_tags);
	for (i = 0; i < nvmep_ctrl_cpu_queues(ctrl); i++)
		nvmep_queue_cancel(ctrl->queues[i]);
}

/* A controller that will never be started again fails its I/O. */
static void nvmep_unquiesce_ended(struct nvmep_ctrl *ctrl)
{
	if (nvmep_ctrl_state(ctrl) >= NVMEP_CTRL_DELETING)
		ctrl->cpu_ops->unquiesce(ctrl);
}

/**
 * nvmep_ctrl_stop_locked() - stop the controller and cancel its commands
 * @ctrl: controller; enable_lock is held
 * @shutdown: flush the controller's caches first (CC.SHN)
 *
 * Does nothing if the controller is stopped already.
 *
 * Ordering: dispatch is quiesced before the queues are disabled, so no thread
 * submits to a queue that the controller has lost.  The generation is
 * incremented after DMA has ended and before commands are cancelled, so the
 * sender of a cancelled command finds the new generation.
 *
 * I/O queues stay quiesced, unless the controller will never be started again.
 * The admin queue is unquiesced and fails every command until the next start.
 */
void nvmep_ctrl_stop_locked(struct nvmep_ctrl *ctrl, bool shutdown)
{
	lockdep_assert_held(&ctrl->enable_lock);

	if (!test_bit(NVMEP_CTRL_ENABLED, &ctrl->flags))
		return;
	ctrl->cpu_ops->quiesce(ctrl);
	blk_mq_quiesce_queue_nowait(ctrl->admin_q);
	nvmep_wait_quiesce_done(ctrl->admin_q);
	nvmep_ctrl_mask_intx(ctrl, true);
	nvmep_queues_disable(ctrl);
	nvmep_relay_allow(ctrl, false);

	nvmep_ctrl_disable(ctrl, shutdown);
	clear_bit(NVMEP_CTRL_ENABLED, &ctrl->flags);
	clear_bit(NVMEP_CTRL_EVENT_REQUESTED, &ctrl->flags);
	/*
	 * Pairs with smp_load_acquire() in nvmep_ctrl_generation(): a reader of
	 * the new generation may free memory that the controller had access to.
	 */
	smp_store_release(&ctrl->generation, ctrl->generation + 1);
	wake_up_all(&ctrl->state_wait);

	nvmep_queues_poll(ctrl);
	nvmep_queues_cancel(ctrl);
	blk_mq_unquiesce_queue(ctrl->admin_q);
	nvmep_unquiesce_ended(ctrl);
}

/**
 * nvmep_ctrl_stop() - stop the controller now
 * @ctrl: controller
 * @shutdown: flush the controller's caches (CC.SHN), even if it was stopped
 *	before, unless it has failed
 *
 * I/O of a controller that will never be started again fails from here on, also
 * if an earlier stop or a drain has left it quiesced.
 */
void nvmep_ctrl_stop(struct nvmep_ctrl *ctrl, bool shutdown)
{
	mutex_lock(&ctrl->enable_lock);
	if (test_bit(NVMEP_CTRL_ENABLED, &ctrl->flags))
		nvmep_ctrl_stop_locked(ctrl, shutdown);
	else if (shutdown && nvmep_ctrl_state(ctrl) != NVMEP_CTRL_DEAD)
		nvmep_ctrl_flush(ctrl);
	nvmep_unquiesce_ended(ctrl);
	mutex_unlock(&ctrl->enable_lock);
}

/**
 * nvmep_ctrl_ensure_stopped() - stop the controller if it is in @generation
 * @ctrl: controller
 * @generation: generation of the caller's queue or command
 *
 * On return the controller does no more DMA to memory of queues of @generation.
 * If the controller was LIVE, a reset is queued; otherwise the path that
 * changed the state continues.  The caller may hold locks of the peer layer:
 * peer_ops callbacks are called from reset work, not from here.
 */
void nvmep_ctrl_ensure_stopped(struct nvmep_ctrl *ctrl, u32 generation)
{
	mutex_lock(&ctrl->enable_lock);
	if (ctrl->generation == generation) {
		nvmep_ctrl_begin_reset(ctrl);
		nvmep_ctrl_stop_locked(ctrl, false);
	}
	mutex_unlock(&ctrl->enable_lock);
}

/**
 * nvmep_ctrl_notify_stopped() - call peer_ops->stopped(), once per generation
 * @ctrl: controller that was stopped
 */
void nvmep_ctrl_notify_stopped(struct nvmep_ctrl *ctrl)
{
	u32 generation;

	mutex_lock(&ctrl->notify_lock);
	generation = nvmep_ctrl_generation(ctrl);
	if (ctrl->notified_generation != generation) {
		ctrl->notified_generation = generation;
		ctrl->peer_ops->stopped(ctrl);
	}
	mutex_unlock(&ctrl->notify_lock);
}
