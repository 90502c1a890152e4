// SPDX-License-Identifier: GPL-2.0-only
/*
 * The order in which a controller goes through a reset, is shut down and is given up:
 *
 * reset	stop, tell the peers, start, go LIVE, let I/O flow; if it does not start,
 *		reset the function and try once more
 *
 * Reset work runs once for each change to RESETTING.
 */
#include <linux/sched/mm.h>

#include "ctrl.h"
#include "events.h"
#include "function_reset.h"
#include "pair.h"
#include "qids.h"
#include "queue.h"
#include "registers.h"
#include "reset.h"
#include "start.h"
#include "stop.h"
#include "workqueue.h"

/* --- the end ------------------------------------------------------------- */

/*
 * Deletes queues in the specification's order: every submission queue before
 * the first completion queue.  The first failure ends it: what follows is a
 * stop of the controller, which takes the rest.
 */
static void nvmep_delete_all(struct nvmep_ctrl *ctrl, u8 opcode)
{
	u32 generation = nvmep_ctrl_generation(ctrl);
	unsigned int i;
	u16 qid = 0;

	while ((qid = nvmep_qid_next_peer(ctrl, qid)))
		if (nvmep_delete_queue(ctrl, opcode, qid, generation) < 0)
			return;
	for (i = 0; i < ctrl->cpu_queues_live; i++)
		if (nvmep_delete_queue(ctrl, opcode, ctrl->queues[i]->qid,
				       generation))
			return;
}

/**
 * nvmep_ctrl_shutdown() - stop for good, in good order
 * @ctrl: controller in state DELETING, or RESETTING for suspend
 *
 * Peers' queue pairs are normally gone by now; those that are not go first, and
 * come back after a suspend only.
 */
void nvmep_ctrl_shutdown(struct nvmep_ctrl *ctrl)
{
	if (test_bit(NVMEP_CTRL_ENABLED, &ctrl->flags) &&
	    !nvmep_ctrl_gone(ctrl)) {
		ctrl->cpu_ops->drain(ctrl);
		nvmep_delete_all(ctrl, NVME_ADMIN_DELETE_SQ);
		nvmep_delete_all(ctrl, NVME_ADMIN_DELETE_CQ);
	}
	nvmep_ctrl_stop(ctrl, true);
	nvmep_ctrl_tell_stopped(ctrl);
	if (nvmep_ctrl_state(ctrl) == NVMEP_CTRL_DELETING)
		ctrl->peer_ops->given_up(ctrl);
}

/**
 * nvmep_ctrl_give_up() - the controller will not come back
 * @ctrl: controller
 * @why: in words, for the log
 * @ret: negative error code, likewise
 *
 * What is under way and what comes fails from now on; only removal is left.
 */
void nvmep_ctrl_give_up(struct nvmep_ctrl *ctrl, const char *why, int ret)
{
	dev_err(ctrl->dev, "giving up: %s (%d)\n", why, ret);
	nvmep_ctrl_set_state(ctrl, NVMEP_CTRL_DEAD);
	nvmep_ctrl_stop(ctrl, false);
	nvmep_ctrl_tell_stopped(ctrl);
	ctrl->peer_ops->given_up(ctrl);
	ctrl->cpu_ops->fail(ctrl);
}

/* --- reset --------------------------------------------------------------- */

/*
 * Whoever sees it LIVE may stop it again, and takes enable_lock for that: without
 * it, the dispatch that such a stop held up would be let loose on its queues.  Who
 * resets the link stops it before, so what is saved here is not that of a link that
 * is being reset.
 */
static bool nvmep_ctrl_open_up(struct nvmep_ctrl *ctrl)
{
	bool live;

	mutex_lock(&ctrl->enable_lock);
	live = test_bit(NVMEP_CTRL_ENABLED, &ctrl->flags) &&
	       nvmep_ctrl_set_state(ctrl, NVMEP_CTRL_LIVE);
	if (live) {
		/* For a reset of the link; many kernels restore it once only. */
		pci_save_state(ctrl->pdev);
		ctrl->cpu_ops->unquiesce(ctrl);
	}
	mutex_unlock(&ctrl->enable_lock);
	return live;
}

/**
 * nvmep_ctrl_go_live() - the controller has started: let everybody use it
 * @ctrl: controller after nvmep_ctrl_start()
 *
 * Return: 0, or -ENODEV if it is being removed or was stopped again.
 */
int nvmep_ctrl_go_live(struct nvmep_ctrl *ctrl)
{
	if (!nvmep_ctrl_open_up(ctrl))
		return -ENODEV;
	nvmep_events_enable(ctrl);
	ctrl->cpu_ops->scan(ctrl);
	return 0;
}

/*
 * The bus reported an error, and then nothing.  Some kernels do not say when
 * their error recovery has failed.
 */
static void nvmep_ctrl_recovery_work(struct work_struct *work)
{
	struct nvmep_ctrl *ctrl = container_of(to_delayed_work(work),
					       struct nvmep_ctrl,
					       recovery_work);

	if (nvmep_ctrl_state(ctrl) == NVMEP_CTRL_RESETTING &&
	    pci_channel_offline(ctrl->pdev))
		nvmep_ctrl_give_up(ctrl, "link did not recover", -EIO);
}

/* Has the link failed since @freezes?  Then nvmep_ctrl_thaw() begins again. */
static bool nvmep_ctrl_interrupted(const struct nvmep_ctrl *ctrl, u32 freezes)
{
	return freezes & 1 || READ_ONCE(ctrl->freezes) != freezes;
}

/* What reset work is for; bounded at each step, and no step is taken twice. */
static int nvmep_ctrl_restart(struct nvmep_ctrl *ctrl, u32 freezes)
{
	int ret = nvmep_ctrl_start(ctrl);

	/* A reset of the function gives no memory, nor a link. */
	if (!ret || ret == -ENOMEM || nvmep_ctrl_interrupted(ctrl, freezes) ||
	    nvmep_ctrl_reset_function(ctrl))
		return ret;
	dev_warn(ctrl->dev,
		 "did not start (%d): function was reset, starting it again\n",
		 ret);
	nvmep_ctrl_tell_stopped(ctrl);
	return nvmep_ctrl_start(ctrl);
}

/* The work behind a change to RESETTING. */
static void nvmep_ctrl_reset_work(struct work_struct *work)
{
	struct nvmep_ctrl *ctrl = container_of(work, struct nvmep_ctrl,
					       reset_work);
	u32 freezes = READ_ONCE(ctrl->freezes);
	unsigned int memflags;
	int ret;

	if (nvmep_ctrl_state(ctrl) != NVMEP_CTRL_RESETTING ||
	    nvmep_ctrl_interrupted(ctrl, freezes))
		return;
	/* I/O waits for us, so our allocations must not wait for I/O. */
	memflags = memalloc_noio_save();
	nvmep_ctrl_stop(ctrl, false);
	nvmep_ctrl_tell_stopped(ctrl);
	ret = nvmep_ctrl_restart(ctrl, freezes);
	if (!ret)
		ret = nvmep_ctrl_go_live(ctrl);
	memalloc_noio_restore(memflags);
	if (ret && nvmep_ctrl_interrupted(ctrl, freezes))
		return;
	if (ret) {
		nvmep_ctrl_give_up(ctrl, "reset failed", ret);
		return;
	}
	dev_info(ctrl->dev, "reset done, generation %u\n",
		 nvmep_ctrl_generation(ctrl));
}

/* 0 if it came back: RESETTING would be the next one, somebody else's. */
static int nvmep_ctrl_wait_reset(struct nvmep_ctrl *ctrl)
{
	flush_work(&ctrl->reset_work);
	return nvmep_ctrl_state(ctrl) < NVMEP_CTRL_DELETING ? 0 : -EIO;
}

/**
 * nvmep_ctrl_reset_sync() - reset the controller and wait
 * @ctrl: controller; no lock that a peer_ops callback takes is held
 *
 * Return: 0 if it came back; -EIO if it did not; else as
 * nvmep_ctrl_reset().
 */
int nvmep_ctrl_reset_sync(struct nvmep_ctrl *ctrl)
{
	int ret = nvmep_ctrl_reset(ctrl);

	return ret ?: nvmep_ctrl_wait_reset(ctrl);
}

/**
 * nvmep_ctrl_hold() - move to RESETTING, without reset work
 * @ctrl: controller
 *
 * Waits for a reset that is under way.  The caller does what is not ours to do, and
 * then nvmep_ctrl_resume_reset().
 *
 * Return: false if the controller is being removed or is dead.
 */
bool nvmep_ctrl_hold(struct nvmep_ctrl *ctrl)
{
	wait_event(ctrl->state_wait,
		   nvmep_ctrl_set_state(ctrl, NVMEP_CTRL_RESETTING) ||
		   nvmep_ctrl_state(ctrl) >= NVMEP_CTRL_DELETING);
	return nvmep_ctrl_state(ctrl) == NVMEP_CTRL_RESETTING;
}

/**
 * nvmep_ctrl_resume_reset() - the reset work that nvmep_ctrl_hold() held up
 * @ctrl: controller in state RESETTING
 */
void nvmep_ctrl_resume_reset(struct nvmep_ctrl *ctrl)
{
	queue_work(nvmep_reset_wq, &ctrl->reset_work);
}

/**
 * nvmep_ctrl_freeze() - the link failed and is going to be reset
 * @ctrl: controller
 *
 * Stops it, and nobody starts it before nvmep_ctrl_thaw(), which begins a reset in
 * the place of one that this has interrupted.  The PCI core calls for both under the
 * device's lock.
 *
 * Return: false if the controller is being removed or is dead.
 */
bool nvmep_ctrl_freeze(struct nvmep_ctrl *ctrl)
{
	WRITE_ONCE(ctrl->freezes, ctrl->freezes | 1);
	nvmep_ctrl_set_state(ctrl, NVMEP_CTRL_RESETTING);
	ctrl->peer_ops->prepare(ctrl);
	nvmep_ctrl_stop(ctrl, false);
	/* A reset that was at its end may have made it LIVE before the stop. */
	nvmep_ctrl_set_state(ctrl, NVMEP_CTRL_RESETTING);
	nvmep_ctrl_tell_stopped(ctrl);
	return nvmep_ctrl_state(ctrl) == NVMEP_CTRL_RESETTING;
}

/**
 * nvmep_ctrl_thaw() - the link was reset after nvmep_ctrl_freeze()
 * @ctrl: controller
 */
void nvmep_ctrl_thaw(struct nvmep_ctrl *ctrl)
{
	pci_restore_state(ctrl->pdev);
	WRITE_ONCE(ctrl->freezes, (ctrl->freezes | 1) + 1);
	nvmep_ctrl_resume_reset(ctrl);
}

/**
 * nvmep_ctrl_reset_subsystem() - reset the NVM subsystem of a controller, and wait
 * @ctrl: controller with CAP.NSSRS; no lock that a peer_ops callback takes is held
 *
 * Doorbells are taken away first, as before any reset that may take the function off
 * the bus.
 *
 * Return: 0 if it came back; -EIO if it did not; -ENODEV if it is being removed.
 */
int nvmep_ctrl_reset_subsystem(struct nvmep_ctrl *ctrl)
{
	if (!nvmep_ctrl_hold(ctrl))
		return -ENODEV;
	ctrl->peer_ops->prepare(ctrl);
	nvmep_ctrl_reset_by_nssr(ctrl);
	nvmep_ctrl_resume_reset(ctrl);
	return nvmep_ctrl_wait_reset(ctrl);
}

/**
 * nvmep_ctrl_share() - the CPU keeps so many identifiers of queues, peers get the others
 * @ctrl: controller; peers are barred, and no lock that a peer_ops callback takes is held
 * @count: 1 or more
 *
 * The controller starts anew for that, as queues come and go when it starts only.  Before
 * it stops, what is under way is finished, within some seconds.
 *
 * Return: 0 if it came back; -EIO if it did not; -ENODEV if it is being removed.
 */
int nvmep_ctrl_share(struct nvmep_ctrl *ctrl, unsigned int count)
{
	if (!nvmep_ctrl_hold(ctrl))
		return -ENODEV;
	ctrl->cpu_ops->drain(ctrl);
	WRITE_ONCE(ctrl->cpu_share, count);
	nvmep_ctrl_resume_reset(ctrl);
	return nvmep_ctrl_wait_reset(ctrl);
}

/**
 * nvmep_reset_init() - before the first reset can come
 * @ctrl: controller
 */
void nvmep_reset_init(struct nvmep_ctrl *ctrl)
{
	INIT_WORK(&ctrl->reset_work, nvmep_ctrl_reset_work);
	INIT_DELAYED_WORK(&ctrl->recovery_work, nvmep_ctrl_recovery_work);
}
