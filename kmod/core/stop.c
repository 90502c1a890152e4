// SPDX-License-Identifier: GPL-2.0-only
/*
 * Stopping a controller: no dispatch, no queues, no DMA; then the generation moves and
 * what was under way is cancelled.
 *
 * A stop may come from anywhere: reset work, a timeout, an error on the bus, a queue
 * that could not be deleted; enable_lock makes it happen once.
 */
#include <linux/blk-mq.h>

#include "ctrl.h"
#include "queue.h"
#include "registers.h"
#include "request.h"
#include "stop.h"

static void nvmep_queues_disable(struct nvmep_ctrl *ctrl)
{
	unsigned int i;

	nvmep_queue_disable(ctrl->admin);
	for (i = 0; i < ctrl->cpu_queues; i++)
		nvmep_queue_disable(ctrl->queues[i]);
}

static void nvmep_queues_poll(struct nvmep_ctrl *ctrl)
{
	unsigned int i;

	nvmep_queue_poll(ctrl->admin);
	for (i = 0; i < ctrl->cpu_queues; i++)
		nvmep_queue_poll(ctrl->queues[i]);
}

/**
 * nvmep_ctrl_stop_locked() - stop the controller and end what it was doing
 * @ctrl: controller; enable_lock is held
 * @shutdown: have it flush its caches first
 *
 * Does nothing if it is stopped already.  Dispatch is held up before the queues
 * are disabled, so nobody submits to a queue that has gone; the generation
 * moves when the controller has stopped and before anything is cancelled, so a
 * command that fails for this reason finds the new generation.  Namespaces stay
 * quiesced, unless nobody will ever start the controller again; the admin queue
 * does not, it refuses instead.
 */
void nvmep_ctrl_stop_locked(struct nvmep_ctrl *ctrl, bool shutdown)
{
	lockdep_assert_held(&ctrl->enable_lock);

	if (!test_bit(NVMEP_CTRL_ENABLED, &ctrl->flags))
		return;
	ctrl->cpu_ops->quiesce(ctrl);
	blk_mq_quiesce_queue(ctrl->admin_requests);
	nvmep_queues_disable(ctrl);

	nvmep_ctrl_quench(ctrl, shutdown);
	clear_bit(NVMEP_CTRL_ENABLED, &ctrl->flags);
	clear_bit(NVMEP_CTRL_EVENT_REQUESTED, &ctrl->flags);
	/* Pairs with nvmep_ctrl_generation(): DMA has ended for who sees it. */
	smp_store_release(&ctrl->generation, ctrl->generation + 1);
	wake_up_all(&ctrl->state_wait);

	nvmep_queues_poll(ctrl);
	nvmep_request_cancel_all(&ctrl->admin_tags);
	nvmep_request_cancel_all(&ctrl->io_tags);
	blk_mq_unquiesce_queue(ctrl->admin_requests);
	if (nvmep_ctrl_state(ctrl) >= NVMEP_CTRL_DELETING)
		ctrl->cpu_ops->unquiesce(ctrl);
}

/**
 * nvmep_ctrl_stop() - stop the controller now
 * @ctrl: controller
 * @shutdown: have it flush its caches first
 */
void nvmep_ctrl_stop(struct nvmep_ctrl *ctrl, bool shutdown)
{
	mutex_lock(&ctrl->enable_lock);
	nvmep_ctrl_stop_locked(ctrl, shutdown);
	mutex_unlock(&ctrl->enable_lock);
}

/**
 * nvmep_ctrl_fence() - make sure that a generation is over
 * @ctrl: controller
 * @generation: the generation
 *
 * On return the controller does not touch memory of that generation's queues.
 * If it had to be stopped for it, it is being reset.  The caller may hold locks
 * of the peer rooms: their callbacks run from reset work.
 */
void nvmep_ctrl_fence(struct nvmep_ctrl *ctrl, u32 generation)
{
	mutex_lock(&ctrl->enable_lock);
	if (ctrl->generation == generation) {
		nvmep_ctrl_begin_reset(ctrl);
		nvmep_ctrl_stop_locked(ctrl, false);
	}
	mutex_unlock(&ctrl->enable_lock);
}

/**
 * nvmep_ctrl_tell_stopped() - tell the peer rooms about a stop, once
 * @ctrl: controller
 */
void nvmep_ctrl_tell_stopped(struct nvmep_ctrl *ctrl)
{
	u32 generation = nvmep_ctrl_generation(ctrl);

	mutex_lock(&ctrl->tell_lock);
	if (ctrl->told_generation != generation) {
		ctrl->told_generation = generation;
		ctrl->peer_ops->stopped(ctrl);
	}
	mutex_unlock(&ctrl->tell_lock);
}
