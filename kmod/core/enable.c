// SPDX-License-Identifier: GPL-2.0-only
/*
 * The CC.EN / CSTS.RDY handshake: enable and disable a controller, shut it
 * down, reset its NVM subsystem.
 */
#include <linux/delay.h>
#include <linux/io-64-nonatomic-lo-hi.h>
#include <linux/pci.h>

#include "ctrl.h"
#include "holds.h"
#include "queue.h"
#include "quirks.h"
#include "registers.h"

/* Minimum timeout, for controllers with CAP.TO = 0, milliseconds. */
#define NVMEP_MIN_READY_MS	500
/* Delay of NVMEP_QUIRK_DELAY_BEFORE_READY, milliseconds. */
#define NVMEP_READY_DELAY_MS	2300
/* RTD3 Entry Latency is clamped to these bounds, milliseconds. */
#define NVMEP_SHUTDOWN_MIN_MS	5000
#define NVMEP_SHUTDOWN_MAX_MS	60000

/* Timeout of CSTS.RDY = 0, milliseconds; base specification 3.1.4.1. */
static unsigned int nvmep_stop_timeout_ms(struct nvmep_ctrl *ctrl)
{
	return max(NVME_CAP_TIMEOUT(ctrl->cap) * 500, NVMEP_MIN_READY_MS);
}

/*
 * Timeout of CSTS.RDY = 1, milliseconds; base specification 3.1.4.20.  It may
 * be hours, so only the wait that a hold ends uses it.
 */
static unsigned int nvmep_ready_timeout_ms(struct nvmep_ctrl *ctrl)
{
	unsigned int timeout_ms = nvmep_stop_timeout_ms(ctrl);

	if (ctrl->cap & NVME_CAP_CRMS_CRWMS)
		timeout_ms = max(timeout_ms,
				 (readl(ctrl->bar + NVME_REG_CRTO) & 0xffff) *
				 500);
	return timeout_ms;
}

/*
 * Reads CAP, which may depend on CC.CSS.  Keeps the last value if the
 * controller does not respond.
 */
static int nvmep_read_cap(struct nvmep_ctrl *ctrl)
{
	u64 cap = lo_hi_readq(ctrl->bar + NVME_REG_CAP);

	if (cap == U64_MAX)
		return -ENODEV;
	ctrl->cap = cap;
	return 0;
}

/*
 * Waits until CSTS & @mask is @value; logs a failure.  The wait for CSTS.RDY to
 * be set ends when a hold is taken: its owner may wait for enable_lock.
 */
static int nvmep_wait_status(struct nvmep_ctrl *ctrl, u32 mask, u32 value,
			     unsigned int timeout_ms, const char *what)
{
	unsigned long deadline = jiffies + msecs_to_jiffies(timeout_ms);
	bool expired;
	u32 status;

	do {
		expired = time_after(jiffies, deadline);
		status = readl(ctrl->bar + NVME_REG_CSTS);
		if (status == NVMEP_CSTS_GONE) {
			dev_err(ctrl->dev,
				"CSTS reads all ones while waiting for %s\n",
				what);
			return -ENODEV;
		}
		if ((status & mask) == value)
			return 0;
		if (value == NVME_CSTS_RDY && status & NVME_CSTS_CFS) {
			dev_err(ctrl->dev,
				"fatal status, CSTS %#x, while waiting for %s\n",
				status, what);
			return -EIO;
		}
		if (value == NVME_CSTS_RDY && nvmep_ctrl_held(ctrl))
			return -EINTR;
		usleep_range(1000, 2000);
	} while (!expired);

	dev_err(ctrl->dev, "timeout: no %s within %u ms, CSTS %#x\n", what,
		timeout_ms, status);
	return -ETIMEDOUT;
}

static u32 nvmep_read_config(struct nvmep_ctrl *ctrl)
{
	return readl(ctrl->bar + NVME_REG_CC);
}

/*
 * Clears CC.EN and waits for CSTS.RDY = 0: the controller has stopped all DMA.
 */
static int nvmep_disable_by_cc(struct nvmep_ctrl *ctrl)
{
	u32 config = nvmep_read_config(ctrl);

	config &= ~(NVME_CC_ENABLE | NVME_CC_SHN_MASK);
	writel(config, ctrl->bar + NVME_REG_CC);
	if (ctrl->quirks & NVMEP_QUIRK_DELAY_BEFORE_READY)
		msleep(NVMEP_READY_DELAY_MS);
	return nvmep_wait_status(ctrl, NVME_CSTS_RDY, 0,
				 nvmep_stop_timeout_ms(ctrl), "stop");
}

/* Sets CC.SHN and waits for CSTS.SHST: caches are flushed; base 3.6.1. */
static void nvmep_shutdown_by_cc(struct nvmep_ctrl *ctrl)
{
	unsigned int latency_ms = le32_to_cpu(ctrl->id->rtd3e) / 1000;
	u32 config = nvmep_read_config(ctrl);

	config &= ~NVME_CC_SHN_MASK;
	writel(config | NVME_CC_SHN_NORMAL, ctrl->bar + NVME_REG_CC);
	nvmep_wait_status(ctrl, NVME_CSTS_SHST_MASK, NVME_CSTS_SHST_CMPLT,
			  clamp(latency_ms, NVMEP_SHUTDOWN_MIN_MS,
				NVMEP_SHUTDOWN_MAX_MS),
			  "shutdown");
}

/**
 * nvmep_ctrl_flush() - shut a stopped controller down: flush its caches
 * @ctrl: controller that is not enabled; enable_lock is held
 *
 * A stop without shutdown keeps data in the caches, which power off would lose.
 * Takes RTD3 Entry Latency at most.
 */
void nvmep_ctrl_flush(struct nvmep_ctrl *ctrl)
{
	lockdep_assert_held(&ctrl->enable_lock);

	if (!pci_channel_offline(ctrl->pdev) && !nvmep_ctrl_gone(ctrl))
		nvmep_shutdown_by_cc(ctrl);
}

/**
 * nvmep_ctrl_end_previous() - end DMA that the previous owner left running
 * @ctrl: controller
 *
 * A crash kernel finds the controller enabled, and its IOMMU translates as in
 * the kernel that panicked until the first DMA mapping.  So this comes before.
 *
 * Return: 0 or a negative error code, logged.
 */
int nvmep_ctrl_end_previous(struct nvmep_ctrl *ctrl)
{
	int ret = 0;

	mutex_lock(&ctrl->enable_lock);
	if (nvmep_read_config(ctrl) & NVME_CC_ENABLE ||
	    readl(ctrl->bar + NVME_REG_CSTS) & NVME_CSTS_RDY)
		ret = nvmep_disable_by_cc(ctrl);
	mutex_unlock(&ctrl->enable_lock);
	if (ret)
		pci_clear_master(ctrl->pdev);
	return ret;
}

/**
 * nvmep_ctrl_mask_intx() - mask or unmask the interrupt pin of a controller
 * @ctrl: controller; enable_lock is held
 * @mask: a stop begins; else a start has succeeded
 *
 * A disabled queue consumes completions and writes no CQ head doorbell, so the
 * controller would assert a level until CC.EN = 0, after a shutdown for up to
 * RTD3 Entry Latency, and the kernel would disable the line of other devices
 * that share it.  No effect with MSI or MSI-X; with the latter the registers
 * must not be accessed.
 */
void nvmep_ctrl_mask_intx(struct nvmep_ctrl *ctrl, bool mask)
{
	struct pci_dev *pdev = ctrl->pdev;

	lockdep_assert_held(&ctrl->enable_lock);

	if (pdev->msi_enabled || pdev->msix_enabled ||
	    pci_channel_offline(pdev) || pci_dev_is_disconnected(pdev))
		return;
	writel(~0U, ctrl->bar + (mask ? NVME_REG_INTMS : NVME_REG_INTMC));
}

/**
 * nvmep_ctrl_enable() - configure and enable a controller
 * @ctrl: controller; enable_lock is held and the admin queue is allocated
 *
 * A controller that the previous owner left enabled is disabled first.
 *
 * Return: 0; or a negative error code, logged: the controller may be enabled,
 * so the caller must stop it.  -EINTR, not logged: a hold was taken.
 */
int nvmep_ctrl_enable(struct nvmep_ctrl *ctrl)
{
	u32 config = NVME_CC_IOSQES | NVME_CC_IOCQES;
	struct nvmep_queue *admin = ctrl->admin;
	u32 depth = admin->entries - 1;
	int ret;

	lockdep_assert_held(&ctrl->enable_lock);

	ret = nvmep_disable_by_cc(ctrl);
	if (ret) {
		pci_clear_master(ctrl->pdev);
		return ret;
	}
	/*
	 * Only after CSTS.RDY = 0: a controller that was stopped by clearing
	 * bus mastering would continue its old DMA.
	 */
	pci_set_master(ctrl->pdev);
	/*
	 * CSTS.NSSRO is set by an NVM subsystem reset and cleared by writing 1.
	 */
	writel(readl(ctrl->bar + NVME_REG_CSTS) & NVME_CSTS_NSSRO,
	       ctrl->bar + NVME_REG_CSTS);
	if (NVME_CAP_CSS(ctrl->cap) & NVME_CAP_CSS_CSI)
		config |= NVME_CC_CSS_CSI;
	nvmep_queue_reset(admin);
	writel(depth << 16 | depth, ctrl->bar + NVME_REG_AQA);
	lo_hi_writeq(admin->sq_dma, ctrl->bar + NVME_REG_ASQ);
	lo_hi_writeq(admin->cq_dma, ctrl->bar + NVME_REG_ACQ);
	writel(config, ctrl->bar + NVME_REG_CC);
	ret = nvmep_read_cap(ctrl);
	if (ret) {
		dev_err(ctrl->dev, "CAP reads all ones before the start\n");
		pci_clear_master(ctrl->pdev);
		return ret;
	}
	writel(config | NVME_CC_ENABLE, ctrl->bar + NVME_REG_CC);
	if (ctrl->quirks & NVMEP_QUIRK_DELAY_BEFORE_READY)
		msleep(NVMEP_READY_DELAY_MS);
	set_bit(NVMEP_CTRL_ENABLED, &ctrl->flags);
	ret = nvmep_wait_status(ctrl, NVME_CSTS_RDY, NVME_CSTS_RDY,
				nvmep_ready_timeout_ms(ctrl), "ready status");
	if (!ret) {
		nvmep_ctrl_mask_intx(ctrl, false);
		nvmep_queue_enable(admin);
		nvmep_relay_allow(ctrl, true);
	}
	return ret;
}

/**
 * nvmep_ctrl_disable() - end all DMA of a controller
 * @ctrl: controller; enable_lock is held
 * @shutdown: flush the controller's caches first (CC.SHN)
 *
 * Clears bus mastering if the controller does not disable itself in time.
 */
void nvmep_ctrl_disable(struct nvmep_ctrl *ctrl, bool shutdown)
{
	lockdep_assert_held(&ctrl->enable_lock);

	if (!pci_channel_offline(ctrl->pdev) && !nvmep_ctrl_gone(ctrl)) {
		if (shutdown)
			nvmep_shutdown_by_cc(ctrl);
		if (!nvmep_disable_by_cc(ctrl))
			return;
	}
	dev_warn(ctrl->dev, "disable failed, clearing bus mastering\n");
	pci_clear_master(ctrl->pdev);
}

/**
 * nvmep_ctrl_reset_by_nssr() - NVM subsystem reset; base specification 3.7.1
 * @ctrl: controller with CAP.NSSRS; nothing is done if it is not enabled
 *
 * The controller stops by itself, and BAR0 may not respond for a while.
 */
void nvmep_ctrl_reset_by_nssr(struct nvmep_ctrl *ctrl)
{
	/*
	 * BAR0 stays mapped while the controller is enabled and the lock is
	 * held.
	 */
	mutex_lock(&ctrl->enable_lock);
	if (test_bit(NVMEP_CTRL_ENABLED, &ctrl->flags))
		writel(NVME_SUBSYS_RESET, ctrl->bar + NVME_REG_NSSR);
	mutex_unlock(&ctrl->enable_lock);
}
