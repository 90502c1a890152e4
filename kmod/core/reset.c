// SPDX-License-Identifier: GPL-2.0-only
/*
 * Reset of a controller, from top to bottom; also its start, its shutdown and
 * its failure, which are parts of the same sequence.
 *
 * Reset work (nvmep_ctrl_reset_work()) runs once for each change to RESETTING:
 *
 *  1. stop: end DMA, increment the generation, cancel commands	stop.c
 *  2. call peer_ops->stopped(): queue pairs become QUIESCED
 *  3. start: enable, identify, create the CPU's queues, configure events
 *  4. if that failed: reset the PCI function, start once more
 *  5. set LIVE, resume I/O, send an AER command, queue a scan
 *  6. when a scan has succeeded: allow owners to re-arm
 *     (nvmep_ctrl_allow_rearm(), called by the cpu layer)
 *
 * Reset work does 1 to 5, each bounded; the start is repeated at most once.  So
 * a reset ends: the controller is LIVE, it fails (nvmep_ctrl_fail()), or a hold
 * interrupts the reset (holds.c), whose end queues the work again.
 */
#include <linux/delay.h>
#include <linux/jiffies.h>
#include <linux/pci.h>
#include <linux/sched/mm.h>

#include "async_event.h"
#include "ctrl.h"
#include "holds.h"
#include "module.h"
#include "qids.h"
#include "queue.h"
#include "queue_pair.h"
#include "registers.h"
#include "reset.h"
#include "trace.h"

/* How long to wait for other holders of the device lock, milliseconds. */
#define NVMEP_FUNCTION_LOCK_MS	60000
#define NVMEP_FUNCTION_RETRY_MS	10

/* --- shutdown and failure ------------------------------------------------ */

/*
 * Deletes all SQs or all CQs: the specification requires that every SQ is
 * deleted before the first CQ.  Returns at the first error: the controller is
 * stopped next, which deletes the remaining queues.  An NVMe status is no error
 * for a peer's identifier: its queue may not exist.
 */
static void nvmep_delete_all(struct nvmep_ctrl *ctrl, u8 opcode)
{
	u32 generation = nvmep_ctrl_generation(ctrl);
	unsigned int i;
	u16 qid = 0;

	while ((qid = nvmep_qid_next_peer(ctrl, qid)))
		if (nvmep_delete_queue(ctrl, opcode, qid, generation) < 0)
			return;
	while ((qid = nvmep_qid_next_shared(ctrl, qid)))
		if (nvmep_delete_queue(ctrl, opcode, qid, generation) < 0)
			return;
	for (i = 0; i < ctrl->cpu_queues_live; i++)
		if (nvmep_delete_queue(ctrl, opcode, ctrl->queues[i]->qid,
				       generation))
			return;
}

/**
 * nvmep_ctrl_shutdown() - drain I/O, delete all queues, shut down
 * @ctrl: controller in state DELETING or DEAD, or RESETTING for suspend
 *
 * Removal has stopped the peers' queue pairs before.  Suspend (owners that
 * allowed it) and power off have not: they are deleted here; after suspend they
 * may be re-armed.
 *
 * Each wait is bounded: a deletion that is not answered is ended by its
 * timeout, which stops the controller.  A stopped controller flushes its
 * caches, too.
 */
void nvmep_ctrl_shutdown(struct nvmep_ctrl *ctrl)
{
	if (test_bit(NVMEP_CTRL_ENABLED, &ctrl->flags) &&
	    !nvmep_ctrl_gone(ctrl)) {
		ctrl->cpu_ops->drain(ctrl);
		/* A doorbell of a deleted queue is an error. */
		mutex_lock(&ctrl->enable_lock);
		nvmep_relay_allow(ctrl, false);
		mutex_unlock(&ctrl->enable_lock);
		nvmep_delete_all(ctrl, nvme_admin_delete_sq);
		nvmep_delete_all(ctrl, nvme_admin_delete_cq);
	}
	nvmep_ctrl_stop(ctrl, true);
	nvmep_ctrl_notify_stopped(ctrl);
	if (nvmep_ctrl_state(ctrl) == NVMEP_CTRL_DELETING)
		ctrl->peer_ops->ctrl_failed(ctrl);
}

static void nvmep_ctrl_end(struct nvmep_ctrl *ctrl, const char *why, int ret)
{
	dev_err(ctrl->dev,
		"%s (%d): controller failed, unbind or replace it\n", why, ret);
	nvmep_ctrl_stop(ctrl, false);
	nvmep_ctrl_notify_stopped(ctrl);
	ctrl->peer_ops->ctrl_failed(ctrl);
	ctrl->cpu_ops->fail(ctrl);
}

/**
 * nvmep_ctrl_fail() - fail the controller: it will not come back
 * @ctrl: controller
 * @why: reason, for the log
 * @ret: negative error code, for the log
 *
 * Commands in flight and later ones fail; only removal is possible after this.
 * Does nothing if it has failed already.
 */
void nvmep_ctrl_fail(struct nvmep_ctrl *ctrl, const char *why, int ret)
{
	if (nvmep_ctrl_set_state(ctrl, NVMEP_CTRL_DEAD))
		nvmep_ctrl_end(ctrl, why, ret);
}

/**
 * nvmep_ctrl_fail_link() - fail the controller: its link is down for good
 * @ctrl: controller
 *
 * As nvmep_ctrl_fail(), and revokes the doorbells.
 */
void nvmep_ctrl_fail_link(struct nvmep_ctrl *ctrl)
{
	bool failed;

	/* Reset work may run: from here on it does not start the controller. */
	nvmep_ctrl_hold(ctrl, NVMEP_HOLD_LINK);
	/* First: a re-arm restores doorbells, but only in state LIVE. */
	failed = nvmep_ctrl_set_state(ctrl, NVMEP_CTRL_DEAD);
	ctrl->peer_ops->revoke_doorbells(ctrl);
	if (failed)
		nvmep_ctrl_end(ctrl, "permanent failure of the link", -EIO);
}

/* --- start --------------------------------------------------------------- */

/**
 * nvmep_ctrl_start() - enable a stopped controller and create the CPU's queues
 * @ctrl: controller in state NEW or RESETTING
 *
 * Return: 0, and the caller has to set the state to LIVE; or a negative error
 * code, with the controller stopped and the reason logged.  If a hold
 * interrupts it, nvmep_ctrl_held_since() is true.
 */
int nvmep_ctrl_start(struct nvmep_ctrl *ctrl)
{
	u32 generation;
	int ret;

	mutex_lock(&ctrl->enable_lock);
	/*
	 * No race: the owner of a hold takes it first, then stops the
	 * controller under this lock.
	 */
	ret = nvmep_ctrl_held(ctrl) ? -EINTR : nvmep_ctrl_enable(ctrl);
	if (ret)
		nvmep_ctrl_stop_locked(ctrl, false);
	generation = ctrl->generation;
	mutex_unlock(&ctrl->enable_lock);
	if (!ret)
		ret = nvmep_ctrl_identify(ctrl);
	if (!ret)
		ret = nvmep_set_host_features(ctrl);
	if (!ret)
		ret = nvmep_start_queues(ctrl, generation);
	if (!ret)
		ret = nvmep_async_event_configure(ctrl);
	if (ret)
		nvmep_ctrl_stop(ctrl, false);
	/*
	 * -EINTR: stopped during the start, by the timeout handler or for a
	 * hold.  Not a signal: return another code.
	 */
	return ret == -EINTR ? -ETIMEDOUT : ret;
}

/* --- reset of the function ----------------------------------------------- */

/*
 * A method may reset the bus: no other thread may use the bridge meanwhile.  A
 * function that shares the bus has no such method, and must not wait for the
 * resets of the others.
 */
static struct pci_dev *nvmep_function_bridge(struct pci_dev *pdev)
{
	return pdev->is_virtfn || pdev->multifunction ?
	       NULL : pci_upstream_bridge(pdev);
}

static bool nvmep_function_trylock_once(struct pci_dev *pdev)
{
	struct pci_dev *bridge = nvmep_function_bridge(pdev);

	if (bridge && !pci_dev_trylock(bridge))
		return false;
	if (pci_dev_trylock(pdev))
		return true;
	if (bridge)
		pci_dev_unlock(bridge);
	return false;
}

static void nvmep_function_unlock(struct pci_dev *pdev)
{
	struct pci_dev *bridge = nvmep_function_bridge(pdev);

	pci_dev_unlock(pdev);
	if (bridge)
		pci_dev_unlock(bridge);
}

static bool nvmep_function_trylock(struct nvmep_ctrl *ctrl)
{
	unsigned long deadline = jiffies +
				 msecs_to_jiffies(NVMEP_FUNCTION_LOCK_MS);

	while (nvmep_ctrl_state(ctrl) == NVMEP_CTRL_RESETTING &&
	       !nvmep_ctrl_held(ctrl)) {
		if (nvmep_function_trylock_once(ctrl->pdev))
			return true;
		if (time_after(jiffies, deadline))
			return false;
		msleep(NVMEP_FUNCTION_RETRY_MS);
	}
	return false;
}

/*
 * Waiting for the device lock would be a deadlock with a holder that waits for
 * reset work.  A holder that needs the controller stopped has taken a hold,
 * which ends the attempt at once; reset_done() ends its wait at the first
 * attempt.  The time limit is for a holder outside the driver whose memory
 * allocation waits for I/O to this controller.
 */
static bool nvmep_function_lock(struct nvmep_ctrl *ctrl)
{
	bool locked;

	set_bit(NVMEP_CTRL_LOCK_WANTED, &ctrl->flags);
	wake_up_all(&ctrl->state_wait);
	locked = nvmep_function_trylock(ctrl);
	clear_bit(NVMEP_CTRL_LOCK_WANTED, &ctrl->flags);
	return locked;
}

/**
 * nvmep_ctrl_save_config() - save config space, for later resets to restore
 * @ctrl: controller; the device lock is held, config space was just restored
 *
 * Many kernels restore a saved state only once, so it is saved again after each
 * restore, and only then: at another time the link may have failed, and config
 * space reads all ones.
 *
 * Return: false if the function does not respond: the previous copy is kept.
 */
bool nvmep_ctrl_save_config(struct nvmep_ctrl *ctrl)
{
	bool present = pci_device_is_present(ctrl->pdev);

	if (present) {
		pci_save_state(ctrl->pdev);
		/* Queued DMA of a former generation must not go on. */
		ctrl->pdev->saved_config_space[PCI_COMMAND / 4] &=
			~PCI_COMMAND_MASTER;
	} else {
		ctrl->pdev->state_saved = true;	/* the previous copy */
	}
	return present;
}

/**
 * nvmep_ctrl_restore_config() - restore config space after a reset
 * @ctrl: controller; the device lock is held
 *
 * Return: as nvmep_ctrl_save_config().
 */
bool nvmep_ctrl_restore_config(struct nvmep_ctrl *ctrl)
{
	/*
	 * The copy is valid since probe.  Kernels before 6.19 mark it invalid
	 * before they call suspend(), which may refuse, and after a thaw, and
	 * restore nothing then.
	 */
	ctrl->pdev->state_saved = true;
	pci_restore_state(ctrl->pdev);
	return nvmep_ctrl_save_config(ctrl);
}

/*
 * Resets the PCI function of a stopped controller by the kernel's methods for
 * it, in the order of reset_method in sysfs; only reset work calls it.
 *
 * pci_try_reset_function() would be a deadlock: it calls reset_prepare(), which
 * waits for the reset that is calling.  So this function does the same without
 * the callbacks.  It takes 0.1 s; the PCI core waits up to a minute for the
 * function to respond.  Doorbells are revoked first, as memory decoding goes
 * off.  Bus mastering stays off: nvmep_ctrl_enable() sets it after the
 * controller has stopped.
 *
 * Returns 0, and the controller may be started; -ENOTTY if the function
 * supports no method or the administrator disabled all of them (empty
 * reset_method in sysfs); -EBUSY if the device lock is contended; -ENODEV if the
 * function does not respond or there is a hold; else the error of the PCI core,
 * which has logged it.
 */
static int nvmep_ctrl_reset_function(struct nvmep_ctrl *ctrl)
{
	struct pci_dev *pdev = ctrl->pdev;
	int ret;

	if (!nvmep_function_lock(ctrl))
		return -EBUSY;
	/* Error recovery, or removal of the function, may have been first. */
	if (nvmep_ctrl_held(ctrl) || !nvmep_ctrl_present(ctrl)) {
		nvmep_function_unlock(pdev);
		return -ENODEV;
	}
	ctrl->peer_ops->revoke_doorbells(ctrl);
	ret = __pci_reset_function_locked(pdev);
	/* Also after an error: a method may have failed halfway. */
	if (!nvmep_ctrl_restore_config(ctrl))
		ret = -ENODEV;
	pci_clear_master(pdev);
	nvmep_function_unlock(pdev);
	trace_nvmep_function_reset(ctrl->instance, nvmep_ctrl_generation(ctrl),
				   ret);
	return ret;
}

/* --- reset --------------------------------------------------------------- */

/*
 * enable_lock is held across the change to LIVE and the resumption of I/O.  As
 * soon as the controller is LIVE another thread may stop it; without the lock,
 * unquiesce() could race with that stop and dispatch to queues that are gone.
 */
static bool nvmep_ctrl_set_live_state(struct nvmep_ctrl *ctrl)
{
	bool live;

	mutex_lock(&ctrl->enable_lock);
	live = test_bit(NVMEP_CTRL_ENABLED, &ctrl->flags) &&
	       nvmep_ctrl_set_state(ctrl, NVMEP_CTRL_LIVE);
	if (live)
		ctrl->cpu_ops->unquiesce(ctrl);
	mutex_unlock(&ctrl->enable_lock);
	return live;
}

/**
 * nvmep_ctrl_set_live() - put a started controller into service
 * @ctrl: controller after nvmep_ctrl_start()
 *
 * Owners of queue pairs may re-arm only when the scan that this queues, or a
 * retry of it, has succeeded: nvmep_ctrl_allow_rearm().
 *
 * Waits for no command: see nvmep_recovery_expected().
 *
 * Return: 0; or -ENODEV, and it is stopped, if it is being removed, was stopped
 * again, or there is a hold.
 */
int nvmep_ctrl_set_live(struct nvmep_ctrl *ctrl)
{
	if (!nvmep_ctrl_set_live_state(ctrl)) {
		nvmep_ctrl_stop(ctrl, false);
		return -ENODEV;
	}
	nvmep_async_event_submit(ctrl);
	ctrl->cpu_ops->scan(ctrl);
	return 0;
}

/**
 * nvmep_ctrl_allow_rearm() - owners may re-arm: a scan has succeeded
 * @ctrl: controller
 * @generation: generation of the controller when the scan began
 *
 * A scan that began in LIVE state in @generation has succeeded.  No effect if
 * the generation has changed.  Called at the end of every such scan.
 */
void nvmep_ctrl_allow_rearm(struct nvmep_ctrl *ctrl, u32 generation)
{
	ctrl->peer_ops->allow_rearm(ctrl, generation);
}

/*
 * The function does not respond in config space, or its channel is frozen: the
 * link is down, and error recovery of the PCI core may follow, or the function
 * is in an NVM subsystem reset.  Waits for it without giving up, unless it was
 * unplugged.  As memory decoding is off, the doorbells are revoked.
 *
 * Returns false, and takes no hold, if the function responds or was unplugged.
 */
static bool nvmep_ctrl_hold_absent(struct nvmep_ctrl *ctrl)
{
	if (nvmep_ctrl_present(ctrl) || pci_dev_is_disconnected(ctrl->pdev))
		return false;
	if (nvmep_ctrl_hold(ctrl, NVMEP_HOLD_ABSENT) < NVMEP_CTRL_DELETING)
		dev_warn(ctrl->dev,
			 "function does not respond: waiting for it\n");
	ctrl->peer_ops->revoke_doorbells(ctrl);
	return true;
}

/*
 * Starts the controller; if that fails, resets the function and tries once
 * more.
 */
static int nvmep_ctrl_restart(struct nvmep_ctrl *ctrl, u32 holds_taken)
{
	int ret = nvmep_ctrl_start(ctrl);

	/* A function reset does not help against lack of memory or a hold. */
	if (!ret || ret == -ENOMEM ||
	    nvmep_ctrl_held_since(ctrl, holds_taken) ||
	    nvmep_ctrl_hold_absent(ctrl))
		return ret;
	if (nvmep_ctrl_reset_function(ctrl)) {
		/* The link may have failed meanwhile. */
		nvmep_ctrl_hold_absent(ctrl);
		return ret;
	}
	dev_warn(ctrl->dev,
		 "start failed (%d): function was reset, starting once more\n",
		 ret);
	nvmep_ctrl_notify_stopped(ctrl);
	ret = nvmep_ctrl_start(ctrl);
	if (ret)
		nvmep_ctrl_hold_absent(ctrl);
	return ret;
}

static void nvmep_ctrl_reset_work(struct work_struct *work)
{
	struct nvmep_ctrl *ctrl = container_of(work, struct nvmep_ctrl,
					       reset_work);
	unsigned int memflags;
	u32 holds_taken;
	int ret;

	if (!nvmep_ctrl_may_start(ctrl, &holds_taken))
		return;
	/*
	 * I/O waits for this work: an allocation that waits for I/O is a
	 * deadlock.
	 */
	memflags = memalloc_noio_save();
	nvmep_ctrl_stop(ctrl, false);
	nvmep_ctrl_notify_stopped(ctrl);
	ret = nvmep_ctrl_restart(ctrl, holds_taken);
	if (!ret && test_bit(NVMEP_CTRL_SLEPT, &ctrl->flags))
		ctrl->cpu_ops->unlock(ctrl);
	if (!ret)
		ret = nvmep_ctrl_set_live(ctrl);
	if (!ret)
		clear_bit(NVMEP_CTRL_SLEPT, &ctrl->flags);
	memalloc_noio_restore(memflags);
	if (ret && nvmep_ctrl_held_since(ctrl, holds_taken))
		return;
	if (ret) {
		nvmep_ctrl_fail(ctrl, "reset failed", ret);
		return;
	}
	dev_info(ctrl->dev, "reset done, generation %u\n",
		 nvmep_ctrl_generation(ctrl));
}

/**
 * nvmep_ctrl_wait_restart() - wait for the end of a reset, holding device lock
 * @ctrl: controller
 *
 * Returns early, and the reset goes on, if it needs the device lock or there is
 * a hold.
 */
void nvmep_ctrl_wait_restart(struct nvmep_ctrl *ctrl)
{
	wait_event(ctrl->state_wait,
		   nvmep_ctrl_state(ctrl) != NVMEP_CTRL_RESETTING ||
		   nvmep_ctrl_held(ctrl) ||
		   test_bit(NVMEP_CTRL_LOCK_WANTED, &ctrl->flags));
}

/* Returns false while a reset is due; sets @back if the controller is back. */
static bool nvmep_ctrl_reset_ended(const struct nvmep_ctrl *ctrl,
				   u32 generation, bool *back)
{
	enum nvmep_ctrl_state state = nvmep_ctrl_state(ctrl);

	*back = state == NVMEP_CTRL_LIVE &&
		nvmep_ctrl_generation(ctrl) != generation;
	return *back || state >= NVMEP_CTRL_DELETING;
}

/*
 * Waits until the controller is LIVE in another generation than @generation, in
 * which it was when its reset was requested.  A hold may prolong this wait;
 * each hold ends.
 */
static int nvmep_ctrl_wait_live(struct nvmep_ctrl *ctrl, u32 generation)
{
	bool back = false;
	int ret;

	ret = wait_event_killable(ctrl->state_wait,
				  nvmep_ctrl_reset_ended(ctrl, generation,
							 &back));
	return !ret && !back ? -EIO : ret;
}

/* As nvmep_ctrl_wait_live(), and then waits for the end of reset work. */
static int nvmep_ctrl_wait_reset(struct nvmep_ctrl *ctrl, u32 generation)
{
	int ret = nvmep_ctrl_wait_live(ctrl, generation);

	/*
	 * Its last steps follow the change to LIVE.  Not after a fatal signal:
	 * a start may take hours.
	 */
	if (ret != -ERESTARTSYS)
		flush_work(&ctrl->reset_work);
	return ret;
}

/**
 * nvmep_ctrl_reset_sync() - reset the controller and wait
 * @ctrl: controller; the caller holds no lock that a peer_ops callback takes
 *
 * Return: 0 if the controller came back; -EIO if it failed; -ERESTARTSYS after
 * a fatal signal; else as nvmep_ctrl_reset().
 */
int nvmep_ctrl_reset_sync(struct nvmep_ctrl *ctrl)
{
	u32 generation = nvmep_ctrl_generation(ctrl);
	int ret = nvmep_ctrl_reset(ctrl);

	return ret ?: nvmep_ctrl_wait_reset(ctrl, generation);
}

/**
 * nvmep_ctrl_prepare() - stop a controller: memory decoding is about to go off
 * @ctrl: controller with a hold of the caller, or one that has failed
 *
 * Doorbells are revoked first.  On return no start is under way that could
 * succeed; reset work may still run.
 */
void nvmep_ctrl_prepare(struct nvmep_ctrl *ctrl)
{
	ctrl->peer_ops->revoke_doorbells(ctrl);
	nvmep_ctrl_stop(ctrl, false);
	nvmep_ctrl_notify_stopped(ctrl);
}

/*
 * Takes the hold of a planned reset of a LIVE controller.  @generation is the
 * one that the reset ends.  It is read before the hold: from then on a timeout
 * may stop the controller.  Returns as nvmep_ctrl_hold_live().
 */
static int nvmep_ctrl_begin_plan(struct nvmep_ctrl *ctrl, u32 *generation)
{
	*generation = nvmep_ctrl_generation(ctrl);
	return nvmep_ctrl_hold_live(ctrl, NVMEP_HOLD_PLAN);
}

/**
 * nvmep_ctrl_reset_subsystem() - reset a controller's NVM subsystem and wait
 * @ctrl: controller with CAP.NSSRS; the caller holds no lock that a peer_ops
 *	callback takes
 *
 * Doorbells are revoked first: the reset may take the function off the bus.
 * The next start follows when the function responds.
 *
 * Return: 0 if the controller came back; -EIO if it failed; -ENODEV if it is
 * being removed; -ERESTARTSYS after a fatal signal.
 */
int nvmep_ctrl_reset_subsystem(struct nvmep_ctrl *ctrl)
{
	u32 generation;
	int ret;

	ret = nvmep_ctrl_begin_plan(ctrl, &generation);
	if (ret)
		return ret;
	ctrl->peer_ops->revoke_doorbells(ctrl);
	nvmep_ctrl_reset_by_nssr(ctrl);
	nvmep_ctrl_hold(ctrl, NVMEP_HOLD_ABSENT);
	nvmep_ctrl_stop(ctrl, false);
	nvmep_ctrl_notify_stopped(ctrl);
	nvmep_ctrl_unhold(ctrl, NVMEP_HOLD_PLAN);
	return nvmep_ctrl_wait_reset(ctrl, generation);
}

/**
 * nvmep_ctrl_set_queue_split() - set the number of queue IDs of the CPU, wait
 * @ctrl: controller; no peer has a queue pair (nvmep_qids_block_peers()), and
 *	the caller holds no lock that a peer_ops callback takes
 * @count: queue IDs for the CPU, 1 or more; the others are for peers
 *
 * Resets the controller, as queues are created and deleted only by a start.
 * The caller has frozen all request queues.
 *
 * Return: 0 if the controller came back; -EIO if it failed; -ENODEV if it is
 * being removed; -ERESTARTSYS after a fatal signal.
 */
int nvmep_ctrl_set_queue_split(struct nvmep_ctrl *ctrl, unsigned int count)
{
	u32 generation;
	int ret;

	ret = nvmep_ctrl_begin_plan(ctrl, &generation);
	if (ret)
		return ret;
	WRITE_ONCE(ctrl->cpu_qids, count);
	nvmep_ctrl_unhold(ctrl, NVMEP_HOLD_PLAN);
	/*
	 * Reset work may go on.  Waiting for its end would be a deadlock: if
	 * the controller fails, it submits I/O, which the caller has frozen.
	 */
	return nvmep_ctrl_wait_live(ctrl, generation);
}

/**
 * nvmep_reset_init() - initialise the works of a reset
 * @ctrl: controller
 *
 * Called before the first reset can be requested.
 */
void nvmep_reset_init(struct nvmep_ctrl *ctrl)
{
	INIT_WORK(&ctrl->reset_work, nvmep_ctrl_reset_work);
	nvmep_holds_init(ctrl);
}
