// SPDX-License-Identifier: GPL-2.0-only
/*
 * A controller that activates new firmware without a reset says so by an event, and
 * processes no commands until that is done: meanwhile it gets none from the CPU, and
 * those under way are not taken for lost.  Base specification 3.11.
 *
 * Peers cannot be told: what they submit waits in the controller.
 */
#include <linux/jiffies.h>

#include "ctrl.h"
#include "firmware.h"
#include "params.h"
#include "registers.h"

/* How often CSTS.PP is looked at, milliseconds. */
#define NVMEP_PAUSE_POLL_MS	20

/* Maximum Time for Firmware Activation; a controller need not say. */
static unsigned int nvmep_activation_limit_ms(const struct nvmep_ctrl *ctrl)
{
	unsigned int units = le16_to_cpu(ctrl->id->mtfa);

	return units ? units * 100 : nvmep_admin_timeout * MSEC_PER_SEC;
}

static bool nvmep_same_life(struct nvmep_ctrl *ctrl, u32 generation)
{
	return nvmep_ctrl_state(ctrl) == NVMEP_CTRL_LIVE &&
	       nvmep_ctrl_generation(ctrl) == generation;
}

static bool nvmep_pause_io(struct nvmep_ctrl *ctrl, u32 generation)
{
	bool live;

	mutex_lock(&ctrl->enable_lock);
	live = nvmep_same_life(ctrl, generation);
	if (live) {
		set_bit(NVMEP_CTRL_PAUSED, &ctrl->flags);
		ctrl->cpu_ops->quiesce(ctrl);
	}
	mutex_unlock(&ctrl->enable_lock);
	return live;
}

/* Unless it was stopped: then dispatch is not ours to allow. */
static void nvmep_resume_io(struct nvmep_ctrl *ctrl, u32 generation)
{
	mutex_lock(&ctrl->enable_lock);
	if (nvmep_ctrl_generation(ctrl) == generation)
		ctrl->cpu_ops->unquiesce(ctrl);
	mutex_unlock(&ctrl->enable_lock);
}

/* True if it is done, or if somebody stops or removes the controller. */
static bool nvmep_wait_activated(struct nvmep_ctrl *ctrl, u32 generation,
				 unsigned int limit_ms)
{
	unsigned long deadline = jiffies + msecs_to_jiffies(limit_ms);

	while (nvmep_same_life(ctrl, generation) && nvmep_ctrl_paused(ctrl)) {
		if (time_after(jiffies, deadline))
			return false;
		wait_event_timeout(ctrl->state_wait,
				   !nvmep_same_life(ctrl, generation),
				   msecs_to_jiffies(NVMEP_PAUSE_POLL_MS));
	}
	return true;
}

/**
 * nvmep_firmware_activation() - the controller has begun to activate firmware
 * @ctrl: controller, which said so by an event; event work calls this
 *
 * I/O of the CPU waits until CSTS.PP is clear.  If that takes longer than the
 * controller said it would, it is reset.
 */
void nvmep_firmware_activation(struct nvmep_ctrl *ctrl)
{
	unsigned int limit_ms = nvmep_activation_limit_ms(ctrl);
	u32 generation = nvmep_ctrl_generation(ctrl);
	bool done;

	if (!nvmep_pause_io(ctrl, generation))
		return;
	dev_warn(ctrl->dev, "activates firmware: I/O waits, up to %u ms\n",
		 limit_ms);
	done = nvmep_wait_activated(ctrl, generation, limit_ms);
	clear_bit(NVMEP_CTRL_PAUSED, &ctrl->flags);
	if (!done) {
		dev_err(ctrl->dev,
			"firmware is not active after %u ms: resetting\n",
			limit_ms);
		/* The reset lets I/O go on. */
		if (!nvmep_ctrl_reset(ctrl))
			return;
	}
	nvmep_resume_io(ctrl, generation);
}
