// SPDX-License-Identifier: GPL-2.0-only
/*
 * Asynchronous events of the controller.
 *
 * At most one Asynchronous Event Request (AER) is outstanding.  Its completion
 * queues event work, which handles the event and then sends the next AER.
 */
#include <linux/jiffies.h>
#include <linux/kobject.h>
#include <linux/log2.h>
#include <linux/sched/mm.h>
#include <linux/slab.h>

#include "admin.h"
#include "async_event.h"
#include "compat.h"
#include "ctrl.h"
#include "module.h"
#include "queue.h"
#include "registers.h"
#include "request.h"
#include "reset.h"

/* Delay of the work for events that may recur: limits their rate. */
#define NVMEP_EVENT_DELAY	HZ

/* Interval of polling CSTS.PP, milliseconds. */
#define NVMEP_PAUSE_POLL_MS	20

/* --- firmware activation ------------------------------------------------- */

/*
 * A controller that activates firmware without a reset reports that by an event
 * and then pauses processing of commands (base specification 3.11).  Until it
 * resumes, dispatch of the CPU's I/O is quiesced and the timeout handler
 * ignores commands in flight.  Peers are not notified: their commands wait in
 * the controller.
 */

/* Maximum Time for Firmware Activation (MTFA), else the admin timeout. */
static unsigned int nvmep_activation_limit_ms(const struct nvmep_ctrl *ctrl)
{
	unsigned int units = le16_to_cpu(ctrl->id->mtfa);

	return units ? units * 100 : nvmep_admin_timeout * MSEC_PER_SEC;
}

static bool nvmep_still_live(struct nvmep_ctrl *ctrl, u32 generation)
{
	return nvmep_ctrl_state(ctrl) == NVMEP_CTRL_LIVE &&
	       nvmep_ctrl_generation(ctrl) == generation;
}

static bool nvmep_pause_io(struct nvmep_ctrl *ctrl, u32 generation)
{
	bool live;

	mutex_lock(&ctrl->enable_lock);
	live = nvmep_still_live(ctrl, generation);
	if (live) {
		set_bit(NVMEP_CTRL_PAUSED, &ctrl->flags);
		ctrl->cpu_ops->quiesce(ctrl);
		nvmep_wait_quiesce_done(ctrl->admin_q);
	}
	mutex_unlock(&ctrl->enable_lock);
	return live;
}

/*
 * No effect after a stop, and while the controller is RESETTING: a path that
 * holds it may have drained I/O, and the reset resumes dispatch.
 */
static void nvmep_resume_io(struct nvmep_ctrl *ctrl, u32 generation)
{
	mutex_lock(&ctrl->enable_lock);
	if (nvmep_ctrl_generation(ctrl) == generation)
		ctrl->cpu_ops->unquiesce(ctrl);
	mutex_unlock(&ctrl->enable_lock);
}

/*
 * Returns true if the activation is done or the controller was stopped or
 * removed.
 */
static bool nvmep_wait_activated(struct nvmep_ctrl *ctrl, u32 generation,
				 unsigned int limit_ms)
{
	unsigned long deadline = jiffies + msecs_to_jiffies(limit_ms);

	while (nvmep_still_live(ctrl, generation) && nvmep_ctrl_paused(ctrl)) {
		if (time_after(jiffies, deadline))
			return false;
		wait_event_timeout(ctrl->state_wait,
				   !nvmep_still_live(ctrl, generation),
				   msecs_to_jiffies(NVMEP_PAUSE_POLL_MS));
	}
	return true;
}

/*
 * The controller has started to activate firmware.  Holds up the CPU's I/O
 * until CSTS.PP is clear, and resets the controller if that exceeds the limit.
 *
 * Returns false if the controller left LIVE meanwhile: removal waits for event
 * work, and a paused controller answers no command.
 */
static bool nvmep_firmware_activation(struct nvmep_ctrl *ctrl)
{
	unsigned int limit_ms = nvmep_activation_limit_ms(ctrl);
	u32 generation = nvmep_ctrl_generation(ctrl);
	bool done;

	if (!nvmep_pause_io(ctrl, generation))
		return false;
	dev_warn(ctrl->dev, "firmware activation: I/O is held up for %u ms at most\n",
		 limit_ms);
	done = nvmep_wait_activated(ctrl, generation, limit_ms);
	clear_bit(NVMEP_CTRL_PAUSED, &ctrl->flags);
	if (!done) {
		dev_err(ctrl->dev,
			"firmware activation exceeds %u ms, resetting\n",
			limit_ms);
		/* The reset resumes I/O; removal may have been first. */
		nvmep_ctrl_reset(ctrl);
	}
	nvmep_resume_io(ctrl, generation);
	if (!nvmep_still_live(ctrl, generation))
		return false;
	nvmep_ctrl_reread_firmware(ctrl);
	return true;
}

/* --- events -------------------------------------------------------------- */

/**
 * nvmep_async_event_submit() - send an AER, unless one is outstanding
 * @ctrl: controller, LIVE and configured; no effect if it was stopped
 */
void nvmep_async_event_submit(struct nvmep_ctrl *ctrl)
{
	struct nvme_command sqe = {
		.common.opcode = nvme_admin_async_event,
		.common.command_id = nvmep_command_id(NVMEP_EVENT_CID),
	};

	/* One AER at a time: only one CID is reserved for it. */
	if (test_and_set_bit(NVMEP_CTRL_EVENT_REQUESTED, &ctrl->flags))
		return;
	if (!nvmep_queue_submit(ctrl->admin, &sqe, true))
		clear_bit(NVMEP_CTRL_EVENT_REQUESTED, &ctrl->flags);
}

/*
 * An event that needs no action, such as a warning that may persist: log the
 * first one, and then whenever their number has doubled.
 */
static void nvmep_async_event_other(struct nvmep_ctrl *ctrl, u32 event)
{
	if (is_power_of_2(++ctrl->other_events))
		dev_warn(ctrl->dev,
			 "AEN: event %#x, see log page %#x, %u so far\n",
			 event, NVMEP_EVENT_LOG(event), ctrl->other_events);
}

static void nvmep_async_event_notice(struct nvmep_ctrl *ctrl, u32 event)
{
	switch (NVMEP_EVENT_INFO(event)) {
	case NVME_AER_NOTICE_NS_CHANGED:
		ctrl->cpu_ops->scan(ctrl);
		break;
	case NVME_AER_NOTICE_FW_ACT_STARTING:
		/* nvmep_async_event_next() has handled it already. */
		break;
	default:
		nvmep_async_event_other(ctrl, event);
	}
}

/*
 * Invalid doorbell writes may arrive at any rate: log the first event, and then
 * whenever their number has doubled.
 */
static void nvmep_async_event_doorbell(struct nvmep_ctrl *ctrl, u32 event,
				       const struct nvme_error_slot *entry)
{
	u16 sqid = entry->error_count ? le16_to_cpu(entry->sqid) :
					NVMEP_ERROR_NO_QUEUE;

	if (!is_power_of_2(++ctrl->doorbell_errors))
		return;
	if (sqid == NVMEP_ERROR_NO_QUEUE)
		dev_warn(ctrl->dev,
			 "AEN: invalid doorbell write, event %#x, %u so far\n",
			 event, ctrl->doorbell_errors);
	else
		dev_warn(ctrl->dev,
			 "AEN: queue %u: invalid doorbell write, event %#x, %u so far\n",
			 sqid, event, ctrl->doorbell_errors);
}

static void nvmep_async_event_error(struct nvmep_ctrl *ctrl, u32 event,
				    const struct nvme_error_slot *entry)
{
	switch (NVMEP_EVENT_INFO(event)) {
	case NVMEP_EVENT_ERROR_DOORBELL:
	case NVMEP_EVENT_ERROR_DOORBELL_VALUE:
		nvmep_async_event_doorbell(ctrl, event, entry);
		break;
	case NVME_AER_ERROR_PERSIST_INT_ERR:
		dev_err(ctrl->dev,
			"AEN: persistent internal error, resetting\n");
		nvmep_ctrl_reset(ctrl);
		break;
	default:
		nvmep_async_event_other(ctrl, event);
	}
}

/* @log: log page of the event, or zeros */
static void nvmep_async_event_handle(struct nvmep_ctrl *ctrl, u32 event,
				     const void *log)
{
	switch (NVMEP_EVENT_TYPE(event)) {
	case NVME_AER_NOTICE:
		nvmep_async_event_notice(ctrl, event);
		break;
	case NVME_AER_ERROR:
		nvmep_async_event_error(ctrl, event, log);
		break;
	default:
		nvmep_async_event_other(ctrl, event);
	}
}

static bool nvmep_async_event_is_firmware(u32 event)
{
	return NVMEP_EVENT_TYPE(event) == NVME_AER_NOTICE &&
	       NVMEP_EVENT_INFO(event) == NVME_AER_NOTICE_FW_ACT_STARTING;
}

static bool nvmep_async_event_is_persistent_error(u32 event)
{
	return NVMEP_EVENT_TYPE(event) == NVME_AER_ERROR &&
	       NVMEP_EVENT_INFO(event) == NVME_AER_ERROR_PERSIST_INT_ERR;
}

/* An event that may recur at any rate and needs no action of the driver. */
static bool nvmep_async_event_deferrable(u32 event)
{
	return NVMEP_EVENT_TYPE(event) != NVME_AER_NOTICE &&
	       !nvmep_async_event_is_persistent_error(event);
}

/*
 * Only the kernel receives events, so user space gets a uevent for those that
 * the driver does not handle itself, as in-tree.
 */
static void nvmep_async_event_uevent(struct nvmep_ctrl *ctrl, u32 event)
{
	char text[sizeof("NVME_AEN=0x00000000")];
	char *environment[2] = { text, NULL };

	switch (NVMEP_EVENT_TYPE(event)) {
	case NVME_AER_ERROR:
		if (nvmep_async_event_is_persistent_error(event))
			return;
		break;
	case NVME_AER_SMART:
	case NVME_AER_CSS:
	case NVME_AER_VS:
		break;
	default:
		return;
	}
	snprintf(text, sizeof(text), "NVME_AEN=%#08x", event);
	kobject_uevent_env(&ctrl->device.kobj, KOBJ_CHANGE, environment);
}

/*
 * The log page of an error event has the queue; that of a notice has to be read
 * before the controller sends the next one.  The others are left to user space:
 * the controller masks such an event until its page is read, so that a warning
 * that persists is not reported at any rate.
 */
static bool nvmep_async_event_reads_log(u32 event)
{
	return NVMEP_EVENT_TYPE(event) == NVME_AER_NOTICE ||
	       NVMEP_EVENT_TYPE(event) == NVME_AER_ERROR;
}

/* Returns the log page of an event, to be freed, or NULL. */
static void *nvmep_async_event_read_log(struct nvmep_ctrl *ctrl, u32 event)
{
	u8 page = NVMEP_EVENT_LOG(event);
	void *log;

	if (!nvmep_async_event_reads_log(event))
		return NULL;
	log = kzalloc(NVME_IDENTIFY_DATA_SIZE, GFP_KERNEL);
	if (log)
		nvmep_get_log(ctrl, page, NVME_CSI_NVM, log,
			      page == NVME_LOG_CHANGED_NS ?
			      NVME_IDENTIFY_DATA_SIZE : 512);
	return log;
}

/*
 * The controller masks an event type until its log page was read, so the page
 * is read before the next AER is sent (base specification 5.1.2).
 */
static void nvmep_async_event_next(struct nvmep_ctrl *ctrl)
{
	static const struct nvme_error_slot no_log;
	u32 generation = nvmep_ctrl_generation(ctrl);
	u32 event;
	void *log;

	if (nvmep_ctrl_state(ctrl) != NVMEP_CTRL_LIVE)
		return;
	/*
	 * A start has sent another AER, whose event must not be lost.  Pairs
	 * with smp_store_release() in nvmep_async_event_received(): the event
	 * is not older than its generation.  A newer one is handled twice.
	 */
	if (smp_load_acquire(&ctrl->event_generation) != generation)
		return;
	event = READ_ONCE(ctrl->event);
	/* First: a command would time out while processing is paused. */
	if (nvmep_async_event_is_firmware(event) &&
	    !nvmep_firmware_activation(ctrl))
		return;
	log = nvmep_async_event_read_log(ctrl, event);
	nvmep_async_event_handle(ctrl, event, log ?: &no_log);
	kfree(log);
	nvmep_async_event_uevent(ctrl, event);
	if (nvmep_ctrl_generation(ctrl) == generation)
		nvmep_async_event_submit(ctrl);
}

/*
 * If memory is short, one rescuer runs the event works and the scans of all
 * controllers: as in a scan, an allocation that waits for I/O is a deadlock.
 */
static void nvmep_async_event_work(struct work_struct *work)
{
	struct nvmep_ctrl *ctrl = container_of(to_delayed_work(work),
					       struct nvmep_ctrl,
					       async_event_work);
	unsigned int memflags = memalloc_noio_save();

	nvmep_async_event_next(ctrl);
	memalloc_noio_restore(memflags);
}

/* Under the lock: removal changes the state, then cancels the work. */
static void nvmep_async_event_queue(struct nvmep_ctrl *ctrl,
				    unsigned long delay)
{
	unsigned long flags;

	spin_lock_irqsave(&ctrl->state_lock, flags);
	if (ctrl->state == NVMEP_CTRL_LIVE)
		queue_delayed_work(nvmep_wq, &ctrl->async_event_work, delay);
	spin_unlock_irqrestore(&ctrl->state_lock, flags);
}

/* The AER has completed; interrupt context. */
static void nvmep_async_event_received(struct nvmep_ctrl *ctrl, u16 status,
				       u64 result)
{
	clear_bit(NVMEP_CTRL_EVENT_REQUESTED, &ctrl->flags);
	/*
	 * A controller that fails the AER gets no other one until the next
	 * start.
	 */
	if (status)
		return;
	WRITE_ONCE(ctrl->event, result);
	/* Pairs with smp_load_acquire() in nvmep_async_event_next(). */
	smp_store_release(&ctrl->event_generation, ctrl->generation);
	nvmep_async_event_queue(ctrl, nvmep_async_event_deferrable(result) ?
				NVMEP_EVENT_DELAY : 0);
}

/**
 * nvmep_async_event_handle_cqe() - completion callback of the admin queue
 * @queue: the admin queue; this is its &nvmep_queue.complete
 * @cqe: the entry, of the AER or of another command
 * @batch: as in nvmep_request_handle_cqe()
 */
void nvmep_async_event_handle_cqe(struct nvmep_queue *queue,
				  const struct nvme_completion *cqe,
				  struct io_comp_batch *batch)
{
	if (nvmep_cid(READ_ONCE(cqe->command_id)) == NVMEP_EVENT_CID)
		nvmep_async_event_received(queue->ctrl,
					   le16_to_cpu(cqe->status) >> 1,
					   le64_to_cpu(cqe->result.u64));
	else
		nvmep_request_handle_cqe(queue, cqe, batch);
}

/**
 * nvmep_async_event_configure() - choose the events that the controller sends
 * @ctrl: identified controller in a start
 *
 * Return: 0, also if the controller refuses; or a negative error code as
 * nvmep_admin_execute().
 */
int nvmep_async_event_configure(struct nvmep_ctrl *ctrl)
{
	u32 wanted = NVME_AEN_CFG_NS_ATTR | NVME_AEN_CFG_FW_ACT;
	u32 config = le32_to_cpu(ctrl->id->oaes) & wanted;
	int ret;

	ret = nvmep_set_feature(ctrl, NVME_FEAT_ASYNC_EVENT,
				config | NVMEP_EVENT_CONFIG_CRITICAL, NULL);
	if (ret > 0)
		dev_info(ctrl->dev,
			 "Set Features, Asynchronous Event failed, status %#x: continuing\n", ret);
	return min(ret, 0);
}

/**
 * nvmep_async_event_init() - initialise event work
 * @ctrl: controller
 *
 * Called before the first AER can complete.
 */
void nvmep_async_event_init(struct nvmep_ctrl *ctrl)
{
	INIT_DELAYED_WORK(&ctrl->async_event_work, nvmep_async_event_work);
}
