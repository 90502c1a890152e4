// SPDX-License-Identifier: GPL-2.0-only
/*
 * The controller object, its lifetime and its state.  A reset is requested by a
 * change of state.
 */
#include <linux/idr.h>
#include <linux/slab.h>

#include "ctrl.h"
#include "module.h"
#include "qids.h"
#include "quirks.h"
#include "trace.h"

static DEFINE_IDA(nvmep_instances);

/* --- lifetime ------------------------------------------------------------ */

static void nvmep_ctrl_release(struct device *device)
{
	struct nvmep_ctrl *ctrl = container_of(device, struct nvmep_ctrl,
					       device);

	ctrl->peer_ops->exit(ctrl);
	ctrl->cpu_ops->exit(ctrl);
	nvmep_qids_exit(ctrl);
	if (ctrl->admin_q)
		blk_put_queue(ctrl->admin_q);
	kfree(ctrl->effects);
	kfree(ctrl->id);
	ida_free(&nvmep_instances, ctrl->instance);
	pci_dev_put(ctrl->pdev);
	kfree(ctrl);
}

/**
 * nvmep_ctrl_alloc() - allocate a controller object
 * @pdev: its PCI function
 * @cpu_ops: callbacks into the cpu layer
 * @peer_ops: callbacks into the peer layer
 *
 * Return: the object in state NEW with one reference, or an error pointer.
 */
struct nvmep_ctrl *nvmep_ctrl_alloc(struct pci_dev *pdev,
				    const struct nvmep_cpu_ops *cpu_ops,
				    const struct nvmep_peer_ops *peer_ops)
{
	struct nvmep_ctrl *ctrl = kzalloc(sizeof(*ctrl), GFP_KERNEL);
	int ret = -ENOMEM;

	if (!ctrl)
		return ERR_PTR(-ENOMEM);
	ctrl->id = kzalloc(sizeof(*ctrl->id), GFP_KERNEL);
	if (!ctrl->id)
		goto err;
	ctrl->instance = ida_alloc(&nvmep_instances, GFP_KERNEL);
	if (ctrl->instance < 0) {
		ret = ctrl->instance;
		goto err;
	}
	ctrl->pdev = pci_dev_get(pdev);
	ctrl->dev = &pdev->dev;
	ctrl->quirks = nvmep_quirks_find(pdev);
	ctrl->cpu_ops = cpu_ops;
	ctrl->peer_ops = peer_ops;
	spin_lock_init(&ctrl->state_lock);
	init_waitqueue_head(&ctrl->state_wait);
	mutex_init(&ctrl->enable_lock);
	spin_lock_init(&ctrl->relay_lock);
	mutex_init(&ctrl->notify_lock);
	device_initialize(&ctrl->device);
	ctrl->device.parent = ctrl->dev;
	ctrl->device.release = nvmep_ctrl_release;
	dev_set_drvdata(&ctrl->device, ctrl);
	return ctrl;

err:
	kfree(ctrl->id);
	kfree(ctrl);
	return ERR_PTR(ret);
}

/**
 * nvmep_ctrl_get() - take a reference
 * @ctrl: controller
 *
 * Return: @ctrl.
 */
struct nvmep_ctrl *nvmep_ctrl_get(struct nvmep_ctrl *ctrl)
{
	get_device(&ctrl->device);
	return ctrl;
}

/**
 * nvmep_ctrl_put() - drop a reference; the last one frees the object
 * @ctrl: controller
 */
void nvmep_ctrl_put(struct nvmep_ctrl *ctrl)
{
	put_device(&ctrl->device);
}

/* --- state --------------------------------------------------------------- */

static const char *const nvmep_state_names[] = {
	[NVMEP_CTRL_NEW] = "new",
	[NVMEP_CTRL_LIVE] = "live",
	[NVMEP_CTRL_RESETTING] = "resetting",
	[NVMEP_CTRL_DELETING] = "deleting",
	[NVMEP_CTRL_DEAD] = "dead",
};

/* Bit n of entry s: the change from state n to state s is allowed. */
static const u8 nvmep_state_from[] = {
	[NVMEP_CTRL_LIVE] = BIT(NVMEP_CTRL_NEW) | BIT(NVMEP_CTRL_RESETTING),
	[NVMEP_CTRL_RESETTING] = BIT(NVMEP_CTRL_LIVE),
	[NVMEP_CTRL_DELETING] = BIT(NVMEP_CTRL_NEW) | BIT(NVMEP_CTRL_LIVE) |
				BIT(NVMEP_CTRL_RESETTING),
	[NVMEP_CTRL_DEAD] = BIT(NVMEP_CTRL_NEW) | BIT(NVMEP_CTRL_LIVE) |
			    BIT(NVMEP_CTRL_RESETTING) |
			    BIT(NVMEP_CTRL_DELETING),
};

/**
 * nvmep_ctrl_state() - current state
 * @ctrl: controller
 *
 * Return: the state, which may change at any time.
 */
enum nvmep_ctrl_state nvmep_ctrl_state(const struct nvmep_ctrl *ctrl)
{
	return READ_ONCE(ctrl->state);
}

/**
 * nvmep_ctrl_state_name() - name of a state
 * @state: state
 *
 * Return: its name in lower case.
 */
const char *nvmep_ctrl_state_name(enum nvmep_ctrl_state state)
{
	return nvmep_state_names[state];
}

/**
 * nvmep_ctrl_set_state_locked() - change the state
 * @ctrl: controller; state_lock is held
 * @state: new state
 *
 * Return: as nvmep_ctrl_set_state().
 */
bool nvmep_ctrl_set_state_locked(struct nvmep_ctrl *ctrl,
				 enum nvmep_ctrl_state state)
{
	lockdep_assert_held(&ctrl->state_lock);

	if (!(nvmep_state_from[state] & BIT(ctrl->state)))
		return false;
	if (state == NVMEP_CTRL_LIVE && ctrl->holds)
		return false;
	WRITE_ONCE(ctrl->state, state);
	if (state == NVMEP_CTRL_RESETTING)
		atomic_long_inc(&ctrl->resets);
	trace_nvmep_ctrl_state(ctrl->instance, state,
			       nvmep_ctrl_generation(ctrl));
	wake_up_all(&ctrl->state_wait);
	return true;
}

/**
 * nvmep_ctrl_set_state() - change the state
 * @ctrl: controller
 * @state: new state
 *
 * Return: true if the state was changed, and the caller must do the work of the
 * new state; false if @state cannot be entered from the present one, or is LIVE
 * and there is a hold.
 */
bool nvmep_ctrl_set_state(struct nvmep_ctrl *ctrl, enum nvmep_ctrl_state state)
{
	unsigned long flags;
	bool changed;

	spin_lock_irqsave(&ctrl->state_lock, flags);
	changed = nvmep_ctrl_set_state_locked(ctrl, state);
	spin_unlock_irqrestore(&ctrl->state_lock, flags);
	return changed;
}

/**
 * nvmep_ctrl_begin_reset() - change the state to RESETTING and queue reset work
 * @ctrl: controller
 *
 * The lock covers both steps: removal changes the state to DELETING first, and
 * after that no reset work can be queued that its flush_work() would miss.
 *
 * Return: false if the controller is not LIVE.
 */
bool nvmep_ctrl_begin_reset(struct nvmep_ctrl *ctrl)
{
	unsigned long flags;
	bool changed;

	spin_lock_irqsave(&ctrl->state_lock, flags);
	changed = nvmep_ctrl_set_state_locked(ctrl, NVMEP_CTRL_RESETTING);
	if (changed)
		queue_work(nvmep_reset_wq, &ctrl->reset_work);
	spin_unlock_irqrestore(&ctrl->state_lock, flags);
	return changed;
}

/**
 * nvmep_ctrl_reset() - reset the controller, do not wait
 * @ctrl: controller
 *
 * Return: 0; -EBUSY if a reset is under way; -ENODEV if the controller is being
 * removed or has failed.
 */
int nvmep_ctrl_reset(struct nvmep_ctrl *ctrl)
{
	if (nvmep_ctrl_begin_reset(ctrl))
		return 0;
	return nvmep_ctrl_state(ctrl) >= NVMEP_CTRL_DELETING ? -ENODEV : -EBUSY;
}

/**
 * nvmep_ctrl_generation() - number of times that the controller was stopped
 * @ctrl: controller
 *
 * Return: the generation.  If it differs from the generation that a queue was
 * created in, the controller does no more DMA to that queue's memory.
 */
u32 nvmep_ctrl_generation(const struct nvmep_ctrl *ctrl)
{
	/* Pairs with smp_store_release() in nvmep_ctrl_stop_locked(). */
	return smp_load_acquire(&ctrl->generation);
}

/**
 * nvmep_ctrl_namespace_count() - number of namespaces in the list
 * @ctrl: controller
 *
 * Return: the number.
 */
unsigned int nvmep_ctrl_namespace_count(struct nvmep_ctrl *ctrl)
{
	return READ_ONCE(ctrl->namespace_count);
}
