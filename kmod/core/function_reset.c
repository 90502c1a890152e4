// SPDX-License-Identifier: GPL-2.0-only
/*
 * Function level reset of a controller that does not start, by its reset work.
 *
 * pci_try_reset_function() cannot be called from there: it has reset_prepare() wait
 * until no reset is under way, and this one is.  So what that function does is done
 * here, less the callbacks.  Nor may the device's lock be waited for: remove(),
 * reset_prepare() and suspend() are called with it and wait for reset work.
 */
#include <linux/delay.h>
#include <linux/jiffies.h>
#include <linux/pci.h>

#include "ctrl.h"
#include "function_reset.h"
#include "trace.h"

/* Time for others to be done with the device's lock, milliseconds. */
#define NVMEP_FUNCTION_LOCK_MS	1000
#define NVMEP_FUNCTION_RETRY_MS	10

/* A holder that waits for the end of this reset gets it when the time is up. */
static bool nvmep_function_lock(struct nvmep_ctrl *ctrl)
{
	unsigned long deadline = jiffies +
				 msecs_to_jiffies(NVMEP_FUNCTION_LOCK_MS);

	while (nvmep_ctrl_state(ctrl) == NVMEP_CTRL_RESETTING) {
		if (pci_dev_trylock(ctrl->pdev))
			return true;
		if (time_after(jiffies, deadline))
			return false;
		msleep(NVMEP_FUNCTION_RETRY_MS);
	}
	return false;
}

/*
 * Config space becomes what the last good start saved, but for bus mastering: that is
 * for who enables the controller.
 */
static int nvmep_function_reset_locked(struct pci_dev *pdev)
{
	int ret;

	if (!pdev->state_saved)
		pci_save_state(pdev);
	ret = pcie_reset_flr(pdev, PCI_RESET_DO_RESET);
	if (ret)
		return ret;
	pci_restore_state(pdev);
	pci_clear_master(pdev);
	return 0;
}

/**
 * nvmep_ctrl_reset_function() - reset the function of a controller that is stopped
 * @ctrl: controller in state RESETTING, stopped; called by reset work
 *
 * Takes 0.1 s, and as the PCI core waits for a function to answer, a minute at most.
 * Doorbells are taken away from whoever maps them first, as decoding goes off.
 *
 * Return: 0, and the controller may be started; -ENOTTY if the function has no such
 * reset, the administrator wants none (an empty reset_method in sysfs) or nobody
 * answers in config space; -EBUSY if others have hold of the function or it is being
 * removed; else what the PCI core says, logged by it.
 */
int nvmep_ctrl_reset_function(struct nvmep_ctrl *ctrl)
{
	struct pci_dev *pdev = ctrl->pdev;
	int ret;

	if (pci_channel_offline(pdev) || !pci_device_is_present(pdev) ||
	    !pdev->reset_methods[0] || pcie_reset_flr(pdev, PCI_RESET_PROBE))
		return -ENOTTY;
	if (!nvmep_function_lock(ctrl))
		return -EBUSY;
	ctrl->peer_ops->prepare(ctrl);
	ret = nvmep_function_reset_locked(pdev);
	pci_dev_unlock(pdev);
	trace_nvmep_function_reset(ctrl->instance, nvmep_ctrl_generation(ctrl),
				   ret);
	return ret;
}
