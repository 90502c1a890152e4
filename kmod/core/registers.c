// SPDX-License-Identifier: GPL-2.0-only
/*
 * The controller's registers: what it says of itself, how it is enabled and how it is
 * made to stop.
 */
#include <linux/delay.h>
#include <linux/dma-mapping.h>
#include <linux/io-64-nonatomic-lo-hi.h>
#include <linux/pci.h>

#include "ctrl.h"
#include "qids.h"
#include "queue.h"
#include "quirks.h"
#include "registers.h"

/* Queue identifiers we keep books of; more than any disk offers. */
#define NVMEP_MAX_QIDS		4096
/* The admin queue and one for I/O: nothing works with less. */
#define NVMEP_MIN_QIDS		2
/* What a controller gets that claims to need no time, milliseconds. */
#define NVMEP_MIN_READY_MS	500
/* NVMEP_QUIRK_DELAY_BEFORE_READY, milliseconds. */
#define NVMEP_READY_DELAY_MS	2300
/* RTD3 Entry Latency is believed within these bounds, milliseconds. */
#define NVMEP_SHUTDOWN_MIN_MS	5000
#define NVMEP_SHUTDOWN_MAX_MS	60000

/* --- what it says of itself ---------------------------------------------- */

/**
 * nvmep_ctrl_gone() - has the function left the bus?
 * @ctrl: controller, mapped
 *
 * Return: true if nobody answers at its address.
 */
bool nvmep_ctrl_gone(const struct nvmep_ctrl *ctrl)
{
	return pci_dev_is_disconnected(ctrl->pdev) ||
	       readl(ctrl->bar + NVME_REG_CSTS) == NVME_CSTS_GONE;
}

/**
 * nvmep_ctrl_failed() - is a controller that should work beyond work?
 * @ctrl: controller, mapped, in state LIVE
 *
 * Costs one read of a register.
 *
 * Return: true if CSTS.CFS is set or CSTS.RDY is not, as after a reset that nobody
 * told us of, or if nobody answers.
 */
bool nvmep_ctrl_failed(const struct nvmep_ctrl *ctrl)
{
	u32 status = readl(ctrl->bar + NVME_REG_CSTS);

	return status == NVME_CSTS_GONE || status & NVME_CSTS_FATAL ||
	       !(status & NVME_CSTS_READY);
}

static unsigned int nvmep_doorbell_capacity(const struct nvmep_ctrl *ctrl)
{
	resource_size_t pair = 2 * (resource_size_t)ctrl->doorbell_stride;
	resource_size_t room = (ctrl->bar_len - NVME_REG_DOORBELLS) / pair;

	return min_t(resource_size_t, room, NVMEP_MAX_QIDS);
}

/* Bytes of controller memory buffer; base specification 3.1.4.12. */
static u64 nvmep_read_cmb_size(struct nvmep_ctrl *ctrl)
{
	u32 size;

	/* From version 1.4 on the registers read 0 until they are enabled. */
	if (NVME_CAP_CMBS(ctrl->cap))
		lo_hi_writeq(NVME_CMBMSC_CRE, ctrl->bar + NVME_REG_CMBMSC);
	size = readl(ctrl->bar + NVME_REG_CMBSZ);
	if (NVME_CAP_CMBS(ctrl->cap))
		lo_hi_writeq(0, ctrl->bar + NVME_REG_CMBMSC);
	/* Size in units of 4 KiB << 4n. */
	return (u64)(size >> 12) << (12 + 4 * ((size >> 8) & 0xf));
}

static int nvmep_read_capabilities(struct nvmep_ctrl *ctrl)
{
	ctrl->cap = lo_hi_readq(ctrl->bar + NVME_REG_CAP);
	ctrl->vs = readl(ctrl->bar + NVME_REG_VS);
	ctrl->doorbell_stride = 4 << NVME_CAP_STRIDE(ctrl->cap);
	ctrl->max_entries = NVME_CAP_MQES(ctrl->cap) + 1;
	ctrl->page_size = SZ_4K;
	if (ctrl->quirks & NVMEP_QUIRK_SMALL_QUEUES && ctrl->max_entries < 64)
		ctrl->max_entries = 64;
	if (NVME_CAP_MPSMIN(ctrl->cap)) {
		dev_err(ctrl->dev,
			"controller pages are at least %u KiB; only 4 KiB are supported\n",
			4 << NVME_CAP_MPSMIN(ctrl->cap));
		return -ENODEV;
	}
	if (ctrl->max_entries < 2) {
		dev_err(ctrl->dev, "controller claims queues of one entry\n");
		return -ENODEV;
	}
	if (nvmep_doorbell_capacity(ctrl) < NVMEP_MIN_QIDS) {
		dev_err(ctrl->dev,
			"BAR0 of %pa bytes is too short for doorbells that are %u bytes apart\n",
			&ctrl->bar_len, ctrl->doorbell_stride);
		return -ENODEV;
	}
	ctrl->cmb_size = nvmep_read_cmb_size(ctrl);
	return 0;
}

/**
 * nvmep_ctrl_map() - map BAR0 and read what never changes
 * @ctrl: controller, whose memory decode is on
 *
 * Return: 0 or a negative error code, logged; nothing is mapped then.
 */
int nvmep_ctrl_map(struct nvmep_ctrl *ctrl)
{
	unsigned int bits = ctrl->quirks & NVMEP_QUIRK_DMA_48 ? 48 : 64;
	int ret;

	ctrl->bar_len = pci_resource_len(ctrl->pdev, 0);
	if (ctrl->bar_len < NVME_REG_DOORBELLS + SZ_4K) {
		dev_err(ctrl->dev, "BAR0 is too short: %pa bytes\n",
			&ctrl->bar_len);
		return -ENODEV;
	}
	ctrl->bar = ioremap(pci_resource_start(ctrl->pdev, 0), ctrl->bar_len);
	if (!ctrl->bar)
		return -ENOMEM;
	ret = -ENODEV;
	if (nvmep_ctrl_gone(ctrl)) {
		dev_err(ctrl->dev, "CSTS reads all ones: no controller there\n");
		goto err;
	}
	ret = nvmep_read_capabilities(ctrl);
	if (!ret)
		ret = nvmep_qids_init(ctrl, nvmep_doorbell_capacity(ctrl));
	if (!ret)
		ret = dma_set_mask_and_coherent(ctrl->dev, DMA_BIT_MASK(bits));
	if (ret)
		goto err;
	dma_set_min_align_mask(ctrl->dev, ctrl->page_size - 1);
	dma_set_max_seg_size(ctrl->dev, UINT_MAX);
	return 0;

err:
	nvmep_ctrl_unmap(ctrl);
	return ret;
}

/**
 * nvmep_ctrl_unmap() - undo nvmep_ctrl_map()
 * @ctrl: stopped controller
 *
 * Memory decode of the BAR stays on: peers may still hold its address.
 */
void nvmep_ctrl_unmap(struct nvmep_ctrl *ctrl)
{
	iounmap(ctrl->bar);
	ctrl->bar = NULL;
}

/**
 * nvmep_ctrl_paused() - does it not process commands for now?
 * @ctrl: controller, mapped
 *
 * Return: CSTS.PP, base specification 3.1.4.6; false if nobody answers.
 */
bool nvmep_ctrl_paused(const struct nvmep_ctrl *ctrl)
{
	u32 status = readl(ctrl->bar + NVME_REG_CSTS);

	return status != NVME_CSTS_GONE && status & NVME_CSTS_PAUSED;
}

/* --- enabled or not ------------------------------------------------------ */

/* Longest time to become ready or to stop, milliseconds; base 3.1.4.1, 3.1.4.20. */
static unsigned int nvmep_ready_timeout_ms(struct nvmep_ctrl *ctrl)
{
	u32 units = NVME_CAP_TIMEOUT(ctrl->cap);

	if (NVME_CAP_CRMS_WITH_MEDIA(ctrl->cap))
		units = max(units, readl(ctrl->bar + NVME_REG_CRTO) & 0xffff);
	return max(units * 500, NVMEP_MIN_READY_MS);
}

/* Waits until the bits @mask of CSTS are @value. */
static int nvmep_wait_status(struct nvmep_ctrl *ctrl, u32 mask, u32 value,
			     unsigned int timeout_ms, const char *what)
{
	unsigned long deadline = jiffies + msecs_to_jiffies(timeout_ms);
	bool expired;
	u32 status;

	do {
		expired = time_after(jiffies, deadline);
		status = readl(ctrl->bar + NVME_REG_CSTS);
		if (status == NVME_CSTS_GONE) {
			dev_err(ctrl->dev, "controller is gone (waiting for %s)\n",
				what);
			return -ENODEV;
		}
		if ((status & mask) == value)
			return 0;
		if (value == NVME_CSTS_READY && status & NVME_CSTS_FATAL) {
			dev_err(ctrl->dev,
				"controller reports a fatal status, CSTS %#x (waiting for %s)\n",
				status, what);
			return -EIO;
		}
		usleep_range(1000, 2000);
	} while (!expired);

	dev_err(ctrl->dev, "no %s within %u ms, CSTS %#x\n", what, timeout_ms,
		status);
	return -ETIMEDOUT;
}

static u32 nvmep_read_config(struct nvmep_ctrl *ctrl)
{
	return readl(ctrl->bar + NVME_REG_CC);
}

/* CC.EN = 0, then CSTS.RDY = 0: the controller has stopped all DMA. */
static int nvmep_disable(struct nvmep_ctrl *ctrl)
{
	u32 config = nvmep_read_config(ctrl);

	config &= ~(NVME_CC_ENABLE | NVME_CC_SHN_MASK);
	writel(config, ctrl->bar + NVME_REG_CC);
	if (ctrl->quirks & NVMEP_QUIRK_DELAY_BEFORE_READY)
		msleep(NVMEP_READY_DELAY_MS);
	return nvmep_wait_status(ctrl, NVME_CSTS_READY, 0,
				 nvmep_ready_timeout_ms(ctrl), "stop");
}

/* CC.SHN, then CSTS.SHST: caches are flushed; base specification 3.6.1. */
static void nvmep_shutdown(struct nvmep_ctrl *ctrl)
{
	unsigned int latency_ms = le32_to_cpu(ctrl->id->rtd3e) / 1000;
	u32 config = nvmep_read_config(ctrl);

	config &= ~NVME_CC_SHN_MASK;
	writel(config | NVME_CC_SHN_NORMAL, ctrl->bar + NVME_REG_CC);
	nvmep_wait_status(ctrl, NVME_CSTS_SHST_MASK, NVME_CSTS_SHST_COMPLETE,
			  clamp(latency_ms, NVMEP_SHUTDOWN_MIN_MS,
				NVMEP_SHUTDOWN_MAX_MS),
			  "shutdown");
}

/**
 * nvmep_ctrl_enable() - configure and enable a controller
 * @ctrl: controller; enable_lock is held and the admin queue allocated
 *
 * A controller that somebody left enabled is stopped first.
 *
 * Return: 0 or a negative error code; the reason is logged, and the caller has
 * to stop what may have been enabled.
 */
int nvmep_ctrl_enable(struct nvmep_ctrl *ctrl)
{
	u32 config = NVME_CC_IOSQES_64 | NVME_CC_IOCQES_16;
	struct nvmep_queue *admin = ctrl->admin;
	u32 depth = admin->entries - 1;
	int ret;

	lockdep_assert_held(&ctrl->enable_lock);

	ret = nvmep_disable(ctrl);
	if (ret) {
		pci_clear_master(ctrl->pdev);
		return ret;
	}
	/* Not sooner: one that only force has stopped still has its old work. */
	pci_set_master(ctrl->pdev);
	/* Set by an NVM subsystem reset, cleared by writing 1. */
	writel(readl(ctrl->bar + NVME_REG_CSTS) & NVME_CSTS_NSSRO,
	       ctrl->bar + NVME_REG_CSTS);
	if (NVME_CAP_CSS_ALL(ctrl->cap))
		config |= NVME_CC_CSS_ALL;
	nvmep_queue_reset(admin);
	writel(depth << 16 | depth, ctrl->bar + NVME_REG_AQA);
	lo_hi_writeq(admin->sq_dma, ctrl->bar + NVME_REG_ASQ);
	lo_hi_writeq(admin->cq_dma, ctrl->bar + NVME_REG_ACQ);
	writel(config, ctrl->bar + NVME_REG_CC);
	/* CAP may depend on the command set that was just chosen. */
	ctrl->cap = lo_hi_readq(ctrl->bar + NVME_REG_CAP);
	writel(config | NVME_CC_ENABLE, ctrl->bar + NVME_REG_CC);
	if (ctrl->quirks & NVMEP_QUIRK_DELAY_BEFORE_READY)
		msleep(NVMEP_READY_DELAY_MS);
	set_bit(NVMEP_CTRL_ENABLED, &ctrl->flags);
	ret = nvmep_wait_status(ctrl, NVME_CSTS_READY, NVME_CSTS_READY,
				nvmep_ready_timeout_ms(ctrl), "ready status");
	if (!ret)
		nvmep_queue_enable(admin);
	return ret;
}

/**
 * nvmep_ctrl_quench() - stop all DMA, by force if the controller does not obey
 * @ctrl: controller; enable_lock is held
 * @shutdown: have it flush its caches first
 */
void nvmep_ctrl_quench(struct nvmep_ctrl *ctrl, bool shutdown)
{
	lockdep_assert_held(&ctrl->enable_lock);

	if (!pci_channel_offline(ctrl->pdev) && !nvmep_ctrl_gone(ctrl)) {
		if (shutdown)
			nvmep_shutdown(ctrl);
		if (!nvmep_disable(ctrl))
			return;
	}
	dev_warn(ctrl->dev, "controller cannot be told to stop: bus mastering off\n");
	pci_clear_master(ctrl->pdev);
}

/**
 * nvmep_ctrl_reset_by_nssr() - NVM subsystem reset; base specification 3.7.1
 * @ctrl: controller with CAP.NSSRS; nothing happens if it is not enabled
 *
 * It stops without being told to, and its memory may be gone from the bus for a while.
 */
void nvmep_ctrl_reset_by_nssr(struct nvmep_ctrl *ctrl)
{
	/* The lock keeps the registers mapped while it is enabled. */
	mutex_lock(&ctrl->enable_lock);
	if (test_bit(NVMEP_CTRL_ENABLED, &ctrl->flags))
		writel(NVME_NSSR_RESET, ctrl->bar + NVME_REG_NSSR);
	mutex_unlock(&ctrl->enable_lock);
}
