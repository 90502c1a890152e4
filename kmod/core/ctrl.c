// SPDX-License-Identifier: GPL-2.0-only
/*
 * The controller object, its state, and its registers.
 */
#include <linux/delay.h>
#include <linux/dma-mapping.h>
#include <linux/idr.h>
#include <linux/io-64-nonatomic-lo-hi.h>
#include <linux/slab.h>

#include "admin.h"
#include "compat.h"
#include "ctrl.h"
#include "cpu/namespace.h"
#include "cpu/node.h"
#include "queue.h"
#include "request.h"

/* Queue identifiers we keep books of; more than any disk offers. */
#define NVMEP_MAX_QIDS		4096
/* What a controller gets that claims to need no time, milliseconds. */
#define NVMEP_MIN_READY_MS	500
/* NVMEP_QUIRK_DELAY_BEFORE_READY, milliseconds. */
#define NVMEP_READY_DELAY_MS	2300
/* RTD3 Entry Latency is believed within these bounds, milliseconds. */
#define NVMEP_SHUTDOWN_MIN_MS	5000
#define NVMEP_SHUTDOWN_MAX_MS	60000

static DEFINE_IDA(nvmep_instances);

/*
 * Disks that need other treatment than the specification says.  The list is
 * short on purpose: what is here was reported for datacenter disks against
 * other drivers and would stop ours from working.
 */
static const struct pci_device_id nvmep_quirks[] = {
	/* HGST and Memblaze lose CSTS reads that come too soon after CC.EN. */
	{ PCI_DEVICE(0x1c58, 0x0003),
	  .driver_data = NVMEP_QUIRK_DELAY_BEFORE_READY },
	{ PCI_DEVICE(0x1c58, 0x0023),
	  .driver_data = NVMEP_QUIRK_DELAY_BEFORE_READY },
	{ PCI_DEVICE(0x1c5f, 0x0540),
	  .driver_data = NVMEP_QUIRK_DELAY_BEFORE_READY },
	/* Samsung PM1725 and PM1725a; the first says MQES = 0. */
	{ PCI_DEVICE(0x144d, 0xa821),
	  .driver_data = NVMEP_QUIRK_DELAY_BEFORE_READY |
			 NVMEP_QUIRK_SMALL_QUEUES },
	{ PCI_DEVICE(0x144d, 0xa822),
	  .driver_data = NVMEP_QUIRK_DELAY_BEFORE_READY |
			 NVMEP_QUIRK_NO_WRITE_ZEROES },
	/* Seagate Nytro. */
	{ PCI_DEVICE(0x1bb1, 0x0100),
	  .driver_data = NVMEP_QUIRK_DELAY_BEFORE_READY },
	/* Intel P3x00 and P4x00 split commands at 128 KiB internally. */
	{ PCI_VDEVICE(INTEL, 0x0953), .driver_data = NVMEP_QUIRK_STRIPE },
	{ PCI_VDEVICE(INTEL, 0x0a53), .driver_data = NVMEP_QUIRK_STRIPE },
	{ PCI_VDEVICE(INTEL, 0x0a54), .driver_data = NVMEP_QUIRK_STRIPE },
	{ PCI_VDEVICE(INTEL, 0x0a55), .driver_data = NVMEP_QUIRK_STRIPE },
	/* Amazon's controllers drop the upper 16 bits of an address. */
	{ PCI_DEVICE(0x1d0f, 0x0061), .driver_data = NVMEP_QUIRK_DMA_48 },
	{ PCI_DEVICE(0x1d0f, 0x0065), .driver_data = NVMEP_QUIRK_DMA_48 },
	{ PCI_DEVICE(0x1d0f, 0x8061), .driver_data = NVMEP_QUIRK_DMA_48 },
	{ PCI_DEVICE(0x1d0f, 0xcd00), .driver_data = NVMEP_QUIRK_DMA_48 },
	{ PCI_DEVICE(0x1d0f, 0xcd01), .driver_data = NVMEP_QUIRK_DMA_48 },
	{ PCI_DEVICE(0x1d0f, 0xcd02), .driver_data = NVMEP_QUIRK_DMA_48 },
	{ }
};

/* --- the object ---------------------------------------------------------- */

static void nvmep_ctrl_release(struct device *device)
{
	struct nvmep_ctrl *ctrl = container_of(device, struct nvmep_ctrl,
					       device);

	ctrl->peer_ops->exit(ctrl);
	nvmep_qids_exit(ctrl);
	if (ctrl->admin_requests)
		blk_put_queue(ctrl->admin_requests);
	kfree(ctrl->effects);
	kfree(ctrl->id);
	ida_free(&nvmep_instances, ctrl->instance);
	pci_dev_put(ctrl->pdev);
	kfree(ctrl);
}

/**
 * nvmep_ctrl_alloc() - make a controller object
 * @pdev: its PCI function
 * @peer_ops: who wants to be told about stops
 *
 * Return: the object with one reference, in state NEW, or an error pointer.
 */
struct nvmep_ctrl *nvmep_ctrl_alloc(struct pci_dev *pdev,
				    const struct nvmep_peer_ops *peer_ops)
{
	const struct pci_device_id *quirk = pci_match_id(nvmep_quirks, pdev);
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
	ctrl->quirks = quirk ? quirk->driver_data : 0;
	ctrl->peer_ops = peer_ops;
	spin_lock_init(&ctrl->state_lock);
	init_waitqueue_head(&ctrl->state_wait);
	mutex_init(&ctrl->enable_lock);
	mutex_init(&ctrl->tell_lock);
	mutex_init(&ctrl->namespaces_lock);
	mutex_init(&ctrl->effects_lock);
	mutex_init(&ctrl->scan_lock);
	INIT_LIST_HEAD(&ctrl->namespaces);
	INIT_WORK(&ctrl->reset_work, nvmep_ctrl_reset_work);
	INIT_DELAYED_WORK(&ctrl->recovery_work, nvmep_ctrl_recovery_work);
	INIT_WORK(&ctrl->scan_work, nvmep_scan_work);
	INIT_WORK(&ctrl->event_work, nvmep_event_work);
	device_initialize(&ctrl->device);
	ctrl->device.parent = ctrl->dev;
	ctrl->device.release = nvmep_ctrl_release;
	ctrl->device.groups = nvmep_ctrl_groups;
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

/* --- its state ----------------------------------------------------------- */

static const char *const nvmep_state_names[] = {
	[NVMEP_CTRL_NEW] = "new",
	[NVMEP_CTRL_LIVE] = "live",
	[NVMEP_CTRL_RESETTING] = "resetting",
	[NVMEP_CTRL_DELETING] = "deleting",
	[NVMEP_CTRL_DEAD] = "dead",
};

/* Bit n of entry s: state s may be entered from state n. */
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
 * nvmep_ctrl_state() - the state now
 * @ctrl: controller
 *
 * Return: the state; it may have changed when the caller looks at it.
 */
enum nvmep_ctrl_state nvmep_ctrl_state(const struct nvmep_ctrl *ctrl)
{
	return READ_ONCE(ctrl->state);
}

/**
 * nvmep_ctrl_state_name() - a state in words
 * @state: state
 *
 * Return: its name in lower case.
 */
const char *nvmep_ctrl_state_name(enum nvmep_ctrl_state state)
{
	return nvmep_state_names[state];
}

static bool nvmep_ctrl_set_state_locked(struct nvmep_ctrl *ctrl,
					enum nvmep_ctrl_state state)
{
	lockdep_assert_held(&ctrl->state_lock);

	if (!(nvmep_state_from[state] & BIT(ctrl->state)))
		return false;
	WRITE_ONCE(ctrl->state, state);
	wake_up_all(&ctrl->state_wait);
	return true;
}

/**
 * nvmep_ctrl_set_state() - change the state
 * @ctrl: controller
 * @state: new state
 *
 * Return: false if @state cannot be entered from the present one.  True makes
 * the caller responsible for what has to follow.
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
 * nvmep_ctrl_begin_reset() - change the state to RESETTING and start reset work
 * @ctrl: controller
 *
 * Both under one lock, so that removal, which changes the state first, can wait
 * for all reset work there will ever be.
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
 * nvmep_ctrl_generation() - how often the controller has stopped
 * @ctrl: controller
 *
 * Return: the generation.  If it differs from the one that a queue was created
 * in, the controller does not touch that queue's memory any more.
 */
u32 nvmep_ctrl_generation(const struct nvmep_ctrl *ctrl)
{
	/* Pairs with the release in nvmep_ctrl_stop_locked(). */
	return smp_load_acquire(&ctrl->generation);
}

/**
 * nvmep_ctrl_namespaces() - count namespaces
 * @ctrl: controller
 *
 * Return: namespaces that have nodes.
 */
unsigned int nvmep_ctrl_namespaces(struct nvmep_ctrl *ctrl)
{
	return READ_ONCE(ctrl->namespace_count);
}

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

/* --- registers ----------------------------------------------------------- */

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
 * Return: 0 or a negative error code; the reason is logged and the controller
 * disabled then.
 */
int nvmep_ctrl_enable(struct nvmep_ctrl *ctrl)
{
	u32 config = NVME_CC_IOSQES_64 | NVME_CC_IOCQES_16;
	struct nvmep_queue *admin = ctrl->admin;
	u32 depth = NVMEP_ADMIN_ENTRIES - 1;
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
	if (ret)
		nvmep_ctrl_stop_locked(ctrl, false);
	else
		nvmep_queue_enable(admin);
	return ret;
}

/* Stops all DMA of the controller, by force if it does not obey. */
static void nvmep_ctrl_quench(struct nvmep_ctrl *ctrl, bool shutdown)
{
	if (!pci_channel_offline(ctrl->pdev) && !nvmep_ctrl_gone(ctrl)) {
		if (shutdown)
			nvmep_shutdown(ctrl);
		if (!nvmep_disable(ctrl))
			return;
	}
	dev_warn(ctrl->dev, "controller cannot be told to stop: bus mastering off\n");
	pci_clear_master(ctrl->pdev);
}

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
	nvmep_namespaces_quiesce(ctrl);
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
		nvmep_namespaces_unquiesce(ctrl);
}
