// SPDX-License-Identifier: GPL-2.0-only
/*
 * BAR0: map it, read the controller's capabilities and status.
 */
#include <linux/dma-mapping.h>
#include <linux/io-64-nonatomic-lo-hi.h>
#include <linux/pci.h>

#include "ctrl.h"
#include "qids.h"
#include "quirks.h"
#include "registers.h"

/* Limit of queue IDs of the pool; more than any known disk supports. */
#define NVMEP_MAX_QIDS		4096
/* The admin queue and one I/O queue. */
#define NVMEP_MIN_QIDS		2

/**
 * nvmep_ctrl_gone() - was the function removed from the bus?
 * @ctrl: controller, mapped
 *
 * Return: true if it was unplugged or CSTS reads all ones.
 */
bool nvmep_ctrl_gone(const struct nvmep_ctrl *ctrl)
{
	return pci_dev_is_disconnected(ctrl->pdev) ||
	       readl(ctrl->bar + NVME_REG_CSTS) == NVMEP_CSTS_GONE;
}

/**
 * nvmep_ctrl_present() - can config space and registers be accessed?
 * @ctrl: controller
 *
 * Return: false if the function does not respond in config space, or error
 * recovery of the PCI core has frozen its channel.
 */
bool nvmep_ctrl_present(const struct nvmep_ctrl *ctrl)
{
	return !pci_channel_offline(ctrl->pdev) &&
	       pci_device_is_present(ctrl->pdev);
}

/**
 * nvmep_ctrl_csts_failed() - does CSTS of a LIVE controller report a failure?
 * @ctrl: controller, mapped, in state LIVE
 *
 * Costs one register read.
 *
 * Return: true if CSTS reads all ones, CSTS.CFS is set, or CSTS.RDY is clear,
 * as after a reset that the driver was not notified of.
 */
bool nvmep_ctrl_csts_failed(const struct nvmep_ctrl *ctrl)
{
	u32 status = readl(ctrl->bar + NVME_REG_CSTS);

	/* If it reads all ones, CFS is one of them. */
	return status & NVME_CSTS_CFS || !(status & NVME_CSTS_RDY);
}

static unsigned int nvmep_doorbell_capacity(const struct nvmep_ctrl *ctrl)
{
	resource_size_t pair = 2 * (resource_size_t)ctrl->doorbell_stride;
	resource_size_t pairs = (ctrl->bar_len - NVME_REG_DBS) / pair;

	return min_t(resource_size_t, pairs, NVMEP_MAX_QIDS);
}

/* Bytes of controller memory buffer; base specification 3.1.4.12. */
static u64 nvmep_read_cmb_size(struct nvmep_ctrl *ctrl)
{
	u32 size, unit;

	/* From version 1.4 on CMBSZ reads 0 while CMBMSC.CRE is 0. */
	if (NVME_CAP_CMBS(ctrl->cap))
		lo_hi_writeq(NVME_CMBMSC_CRE, ctrl->bar + NVME_REG_CMBMSC);
	size = readl(ctrl->bar + NVME_REG_CMBSZ);
	if (NVME_CAP_CMBS(ctrl->cap))
		lo_hi_writeq(0, ctrl->bar + NVME_REG_CMBMSC);
	/* Size in units of 4 KiB << 4n, at most 64 GiB. */
	unit = size >> 8 & 0xf;
	return unit > NVMEP_CMBSZ_MAX_UNIT ? 0 : (u64)(size >> 12) <<
						 (12 + 4 * unit);
}

static int nvmep_read_capabilities(struct nvmep_ctrl *ctrl)
{
	ctrl->cap = lo_hi_readq(ctrl->bar + NVME_REG_CAP);
	ctrl->vs = readl(ctrl->bar + NVME_REG_VS);
	ctrl->doorbell_stride = 4 << NVME_CAP_STRIDE(ctrl->cap);
	ctrl->max_entries = NVME_CAP_MQES(ctrl->cap) + 1;
	ctrl->page_size = SZ_4K;
	if (ctrl->quirks & NVMEP_QUIRK_SMALL_QUEUES)
		ctrl->max_entries = max(ctrl->max_entries, 64U);
	if (NVME_CAP_MPSMIN(ctrl->cap)) {
		dev_err(ctrl->dev,
			"CAP.MPSMIN: pages of %u KiB or more, the driver supports 4 KiB only\n",
			4 << NVME_CAP_MPSMIN(ctrl->cap));
		return -ENODEV;
	}
	if (ctrl->max_entries < 2) {
		dev_err(ctrl->dev,
			"CAP.MQES: queues of one entry, 2 are required\n");
		return -ENODEV;
	}
	if (nvmep_doorbell_capacity(ctrl) < NVMEP_MIN_QIDS) {
		dev_err(ctrl->dev,
			"BAR0 of %pa bytes is too short for two queue pairs, doorbell stride %u bytes\n",
			&ctrl->bar_len, ctrl->doorbell_stride);
		return -ENODEV;
	}
	ctrl->cmb_size = nvmep_read_cmb_size(ctrl);
	return 0;
}

/**
 * nvmep_ctrl_map() - map BAR0, read the capabilities, set the DMA masks
 * @ctrl: controller, memory decoding is on
 *
 * Return: 0; or a negative error code, logged, with BAR0 not mapped.
 */
int nvmep_ctrl_map(struct nvmep_ctrl *ctrl)
{
	unsigned int bits = ctrl->quirks & NVMEP_QUIRK_DMA_48 ? 48 : 64;
	int ret;

	ctrl->bar_len = pci_resource_len(ctrl->pdev, 0);
	if (ctrl->bar_len < NVME_REG_DBS + SZ_4K) {
		dev_err(ctrl->dev,
			"BAR0 of %pa bytes is too short for the registers\n",
			&ctrl->bar_len);
		return -ENODEV;
	}
	ctrl->bar = ioremap(pci_resource_start(ctrl->pdev, 0), ctrl->bar_len);
	if (!ctrl->bar)
		return -ENOMEM;
	ret = -ENODEV;
	if (nvmep_ctrl_gone(ctrl)) {
		dev_err(ctrl->dev,
			"CSTS reads all ones: the controller does not respond\n");
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
 * nvmep_ctrl_unmap() - unmap BAR0
 * @ctrl: stopped controller
 *
 * Memory decoding stays on: a peer may still hold addresses of doorbells, and
 * its stores must not cause bus errors.  Without a driver, decoding also
 * depends on runtime power management of the bridges above: see "quarantine" in
 * the administration guide.
 */
void nvmep_ctrl_unmap(struct nvmep_ctrl *ctrl)
{
	iounmap(ctrl->bar);
	ctrl->bar = NULL;
}

/**
 * nvmep_ctrl_paused() - has the controller paused processing of commands?
 * @ctrl: controller, mapped
 *
 * Return: CSTS.PP, base specification 3.1.4.6; false if CSTS reads all ones.
 */
bool nvmep_ctrl_paused(const struct nvmep_ctrl *ctrl)
{
	u32 status = readl(ctrl->bar + NVME_REG_CSTS);

	return status != NVMEP_CSTS_GONE && status & NVME_CSTS_PP;
}
