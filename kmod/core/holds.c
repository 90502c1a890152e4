// SPDX-License-Identifier: GPL-2.0-only
/*
 * Holds: reasons for which a stopped controller must not be started now.
 *
 * A controller that leaves LIVE is RESETTING until reset work has started it.
 * Code that needs it stopped, or in a state of its own, takes a hold: suspend,
 * a reset of the function by the PCI core, a failed link, removal.  It does not
 * wait for a reset under way: it takes its hold, and stops the controller,
 * which ends each command that a start waits for.  Reset work checks the holds
 * before it enables the controller, while it waits for CSTS.RDY, and at the
 * change to LIVE; it returns if there is one.  The end of the last hold queues
 * it again.
 *
 * While there is a hold, the state is not LIVE.
 */
#include <linux/jiffies.h>
#include <linux/module.h>
#include <linux/pci.h>

#include "ctrl.h"
#include "holds.h"
#include "module.h"
#include "registers.h"
#include "reset.h"

/* Interval of checks for a function that does not respond, milliseconds. */
#define NVMEP_LINK_POLL_MS	100

static unsigned int recovery_timeout = 60;
module_param(recovery_timeout, uint, 0644);
MODULE_PARM_DESC(recovery_timeout,
		 "seconds after a link error until the controller fails, if the link does not recover");

static unsigned long nvmep_link_delay(void)
{
	return msecs_to_jiffies(min_t(unsigned long, NVMEP_LINK_POLL_MS,
				      recovery_timeout * MSEC_PER_SEC));
}

/*
 * The limit applies to the whole of a recovery.  Removal changes the state
 * first, under the same lock, so it does not miss the work when it cancels it.
 */
static void nvmep_link_watch(struct nvmep_ctrl *ctrl)
{
	lockdep_assert_held(&ctrl->state_lock);

	if (!(ctrl->holds & NVMEP_HOLDS_OF_LINK))
		WRITE_ONCE(ctrl->link_deadline,
			   jiffies + (unsigned long)recovery_timeout * HZ);
	queue_delayed_work(nvmep_health_wq, &ctrl->link_work,
			   nvmep_link_delay());
}

static void nvmep_ctrl_add_hold(struct nvmep_ctrl *ctrl, unsigned int hold)
{
	lockdep_assert_held(&ctrl->state_lock);

	nvmep_ctrl_set_state_locked(ctrl, hold == NVMEP_HOLD_GOING ?
				    NVMEP_CTRL_DELETING : NVMEP_CTRL_RESETTING);
	if (hold & NVMEP_HOLDS_OF_LINK)
		nvmep_link_watch(ctrl);
	WRITE_ONCE(ctrl->holds, ctrl->holds | hold);
	WRITE_ONCE(ctrl->holds_taken, ctrl->holds_taken + 1);
	wake_up_all(&ctrl->state_wait);
}

/**
 * nvmep_ctrl_hold() - keep the controller from being started
 * @ctrl: controller
 * @hold: one of NVMEP_HOLD_*
 *
 * LIVE becomes RESETTING, or DELETING for %NVMEP_HOLD_GOING.  No reset can set
 * the controller LIVE from here on.  One may still be starting it: the caller
 * stops the controller, and then waits for reset work if it has to.
 *
 * Return: the state before.  If it was DELETING or DEAD, no hold was taken,
 * except %NVMEP_HOLD_GOING.
 */
enum nvmep_ctrl_state nvmep_ctrl_hold(struct nvmep_ctrl *ctrl,
				      unsigned int hold)
{
	enum nvmep_ctrl_state before;
	unsigned long flags;

	spin_lock_irqsave(&ctrl->state_lock, flags);
	before = ctrl->state;
	if (before < NVMEP_CTRL_DELETING || hold == NVMEP_HOLD_GOING)
		nvmep_ctrl_add_hold(ctrl, hold);
	spin_unlock_irqrestore(&ctrl->state_lock, flags);
	return before;
}

/* Returns false while the controller may become LIVE; sets @held if it was. */
static bool nvmep_ctrl_try_hold_live(struct nvmep_ctrl *ctrl,
				     unsigned int hold, bool *held)
{
	unsigned long flags;
	bool ended;

	spin_lock_irqsave(&ctrl->state_lock, flags);
	*held = ctrl->state == NVMEP_CTRL_LIVE;
	if (*held)
		nvmep_ctrl_add_hold(ctrl, hold);
	ended = *held || ctrl->state >= NVMEP_CTRL_DELETING;
	spin_unlock_irqrestore(&ctrl->state_lock, flags);
	return ended;
}

/**
 * nvmep_ctrl_hold_live() - take a hold on a LIVE controller
 * @ctrl: controller
 * @hold: one of NVMEP_HOLD_*
 *
 * Waits for resets under way and for other holds.
 *
 * Return: 0; -ENODEV if it is being removed or has failed; -ERESTARTSYS after a
 * fatal signal.
 */
int nvmep_ctrl_hold_live(struct nvmep_ctrl *ctrl, unsigned int hold)
{
	bool held = false;
	int ret;

	ret = wait_event_killable(ctrl->state_wait,
				  nvmep_ctrl_try_hold_live(ctrl, hold, &held));
	return ret ?: held ? 0 : -ENODEV;
}

/**
 * nvmep_ctrl_unhold() - end a hold
 * @ctrl: controller
 * @hold: one of NVMEP_HOLD_*; no effect if there is no such hold
 *
 * The end of the last one queues reset work, in RESETTING only: removal changes
 * the state under this lock, then waits for the work, so it cannot miss it.
 */
void nvmep_ctrl_unhold(struct nvmep_ctrl *ctrl, unsigned int hold)
{
	unsigned long flags;

	spin_lock_irqsave(&ctrl->state_lock, flags);
	if (ctrl->holds & hold) {
		WRITE_ONCE(ctrl->holds, ctrl->holds & ~hold);
		if (!ctrl->holds && ctrl->state == NVMEP_CTRL_RESETTING)
			queue_work(nvmep_reset_wq, &ctrl->reset_work);
	}
	spin_unlock_irqrestore(&ctrl->state_lock, flags);
}

/**
 * nvmep_ctrl_held() - is there a hold?
 * @ctrl: controller
 *
 * Return: whether the controller must not be started.
 */
bool nvmep_ctrl_held(const struct nvmep_ctrl *ctrl)
{
	return READ_ONCE(ctrl->holds);
}

/**
 * nvmep_ctrl_may_start() - is the controller RESETTING, without a hold?
 * @ctrl: controller
 * @taken: on success, number of holds taken so far: nvmep_ctrl_held_since()
 *
 * Return: whether reset work may start it.
 */
bool nvmep_ctrl_may_start(struct nvmep_ctrl *ctrl, u32 *taken)
{
	unsigned long flags;
	bool may;

	spin_lock_irqsave(&ctrl->state_lock, flags);
	may = ctrl->state == NVMEP_CTRL_RESETTING && !ctrl->holds;
	*taken = ctrl->holds_taken;
	spin_unlock_irqrestore(&ctrl->state_lock, flags);
	return may;
}

/**
 * nvmep_ctrl_held_since() - was a hold taken since nvmep_ctrl_may_start()?
 * @ctrl: controller
 * @taken: number of holds taken then
 *
 * Return: true, and the end of that hold queues reset work, or has queued it:
 * a start that failed was interrupted and is not the last one.
 */
bool nvmep_ctrl_held_since(const struct nvmep_ctrl *ctrl, u32 taken)
{
	return READ_ONCE(ctrl->holds_taken) != taken;
}

/*
 * Waits for a link.  The PCI core ends its own hold, but some kernels do not
 * report that their error recovery has failed.  A function that did not respond
 * has to respond.
 */
static void nvmep_link_work(struct work_struct *work)
{
	struct nvmep_ctrl *ctrl = container_of(to_delayed_work(work),
					       struct nvmep_ctrl, link_work);

	if (nvmep_ctrl_present(ctrl))
		nvmep_ctrl_unhold(ctrl, NVMEP_HOLD_ABSENT);
	if (nvmep_ctrl_state(ctrl) != NVMEP_CTRL_RESETTING ||
	    !(READ_ONCE(ctrl->holds) & NVMEP_HOLDS_OF_LINK))
		return;
	if (pci_dev_is_disconnected(ctrl->pdev) ||
	    time_after_eq(jiffies, READ_ONCE(ctrl->link_deadline))) {
		nvmep_ctrl_fail(ctrl, "link did not recover", -EIO);
		return;
	}
	queue_delayed_work(nvmep_health_wq, &ctrl->link_work,
			   nvmep_link_delay());
}

/**
 * nvmep_holds_init() - initialise the work of the holds
 * @ctrl: new controller
 */
void nvmep_holds_init(struct nvmep_ctrl *ctrl)
{
	INIT_DELAYED_WORK(&ctrl->link_work, nvmep_link_work);
}
