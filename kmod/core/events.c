// SPDX-License-Identifier: GPL-2.0-only
/*
 * Asynchronous events: one request for them is always with the controller; what it
 * reports is handled by work, which then asks again.
 */
#include <linux/log2.h>
#include <linux/slab.h>

#include "admin.h"
#include "ctrl.h"
#include "events.h"
#include "firmware.h"
#include "queue.h"
#include "request.h"
#include "workqueue.h"

/* How long an event about an error waits until it is handled, and the next asked for. */
#define NVMEP_ERROR_DELAY	HZ

static void nvmep_event_request(struct nvmep_ctrl *ctrl)
{
	struct nvme_sqe sqe = {
		.opcode = NVME_ADMIN_ASYNC_EVENT,
		.cid = cpu_to_le16(NVMEP_EVENT_CID),
	};

	/* One at a time: there is one identifier for it. */
	if (test_and_set_bit(NVMEP_CTRL_EVENT_REQUESTED, &ctrl->flags))
		return;
	if (!nvmep_queue_submit(ctrl->admin, &sqe, true))
		clear_bit(NVMEP_CTRL_EVENT_REQUESTED, &ctrl->flags);
}

static void nvmep_event_notice(struct nvmep_ctrl *ctrl, u32 event)
{
	switch (NVME_EVENT_INFO(event)) {
	case NVME_EVENT_NOTICE_NAMESPACES:
		ctrl->cpu_ops->scan(ctrl);
		break;
	case NVME_EVENT_NOTICE_FIRMWARE:
		/* Was the first thing to be done. */
		break;
	default:
		dev_info(ctrl->dev, "notice %#x\n", event);
	}
}

/*
 * Somebody stores nonsense to a doorbell, perhaps without end: said the first time,
 * and then each time that it has happened twice as often.
 */
static void nvmep_event_doorbell(struct nvmep_ctrl *ctrl, u32 event,
				 const struct nvme_error_entry *entry)
{
	u16 sqid = entry->count ? le16_to_cpu(entry->sqid) : NVME_ERROR_NO_QUEUE;

	if (!is_power_of_2(++ctrl->doorbell_errors))
		return;
	if (sqid == NVME_ERROR_NO_QUEUE)
		dev_warn(ctrl->dev,
			 "invalid write to a doorbell, event %#x, %u so far\n",
			 event, ctrl->doorbell_errors);
	else
		dev_warn(ctrl->dev,
			 "invalid write to a doorbell of queue %u, event %#x, %u so far\n",
			 sqid, event, ctrl->doorbell_errors);
}

static void nvmep_event_error(struct nvmep_ctrl *ctrl, u32 event,
			      const struct nvme_error_entry *entry)
{
	switch (NVME_EVENT_INFO(event)) {
	case NVME_EVENT_ERROR_DOORBELL:
	case NVME_EVENT_ERROR_DOORBELL_VALUE:
		nvmep_event_doorbell(ctrl, event, entry);
		break;
	case NVME_EVENT_ERROR_PERSISTENT:
		dev_err(ctrl->dev, "persistent internal error: resetting\n");
		nvmep_ctrl_reset(ctrl);
		break;
	default:
		dev_warn(ctrl->dev, "asynchronous event %#x\n", event);
	}
}

/* @log: its log page, or zeros */
static void nvmep_event_handle(struct nvmep_ctrl *ctrl, u32 event,
			       const void *log)
{
	switch (NVME_EVENT_TYPE(event)) {
	case NVME_EVENT_TYPE_NOTICE:
		nvmep_event_notice(ctrl, event);
		break;
	case NVME_EVENT_TYPE_ERROR:
		nvmep_event_error(ctrl, event, log);
		break;
	default:
		dev_warn(ctrl->dev, "asynchronous event %#x\n", event);
	}
}

static bool nvmep_event_is_firmware(u32 event)
{
	return NVME_EVENT_TYPE(event) == NVME_EVENT_TYPE_NOTICE &&
	       NVME_EVENT_INFO(event) == NVME_EVENT_NOTICE_FIRMWARE;
}

/* One that may come without end, and of which nobody needs to know at once. */
static bool nvmep_event_can_wait(u32 event)
{
	return NVME_EVENT_TYPE(event) == NVME_EVENT_TYPE_ERROR &&
	       NVME_EVENT_INFO(event) != NVME_EVENT_ERROR_PERSISTENT;
}

/*
 * An event stays masked until its log page was read; only then is the next
 * request sent (base specification 5.1.2).
 */
static void nvmep_event_work(struct work_struct *work)
{
	struct nvmep_ctrl *ctrl = container_of(to_delayed_work(work),
					       struct nvmep_ctrl, event_work);
	static const struct nvme_error_entry no_log;
	u32 event = READ_ONCE(ctrl->event);
	void *log;

	if (nvmep_ctrl_state(ctrl) != NVMEP_CTRL_LIVE)
		return;
	/* Before any command: it would wait for that. */
	if (nvmep_event_is_firmware(event))
		nvmep_firmware_activation(ctrl);
	log = kzalloc(NVME_IDENTIFY_SIZE, GFP_KERNEL);
	if (log)
		nvmep_get_log(ctrl, NVME_EVENT_LOG(event), log,
			      NVME_EVENT_LOG(event) == NVME_LOG_CHANGED_NAMESPACES ?
			      NVME_IDENTIFY_SIZE : 512);
	nvmep_event_handle(ctrl, event, log ?: &no_log);
	kfree(log);
	nvmep_event_request(ctrl);
}

/* The event request was completed; interrupt context. */
static void nvmep_event_received(struct nvmep_ctrl *ctrl, u16 status, u64 result)
{
	clear_bit(NVMEP_CTRL_EVENT_REQUESTED, &ctrl->flags);
	/* A controller that refuses the request is not asked again. */
	if (status)
		return;
	WRITE_ONCE(ctrl->event, result);
	queue_delayed_work(nvmep_wq, &ctrl->event_work,
			   nvmep_event_can_wait(result) ? NVMEP_ERROR_DELAY : 0);
}

/**
 * nvmep_events_entry() - a completion entry of the admin queue
 * @queue: the admin queue; this is its nvmep_queue.complete
 * @cqe: the entry, of the event request or of any other command
 * @batch: as in nvmep_request_entry()
 */
void nvmep_events_entry(struct nvmep_queue *queue, const struct nvme_cqe *cqe,
			struct io_comp_batch *batch)
{
	if (le16_to_cpu(READ_ONCE(cqe->cid)) == NVMEP_EVENT_CID)
		nvmep_event_received(queue->ctrl,
				     le16_to_cpu(cqe->status) >> 1,
				     le64_to_cpu(cqe->result));
	else
		nvmep_request_entry(queue, cqe, batch);
}

/**
 * nvmep_events_enable() - ask for events
 * @ctrl: controller that has just become LIVE
 */
void nvmep_events_enable(struct nvmep_ctrl *ctrl)
{
	u32 wanted = NVME_EVENT_CONFIG_NAMESPACES | NVME_EVENT_CONFIG_FIRMWARE;
	u32 config = le32_to_cpu(ctrl->id->oaes) & wanted;
	int ret;

	ret = nvmep_set_feature(ctrl, NVME_FEATURE_ASYNC_EVENT,
				config | NVME_EVENT_CONFIG_CRITICAL, NULL);
	if (ret > 0)
		dev_info(ctrl->dev,
			 "events cannot be configured: status %#x\n", ret);
	nvmep_event_request(ctrl);
}

/**
 * nvmep_events_init() - before the first event can come
 * @ctrl: controller
 */
void nvmep_events_init(struct nvmep_ctrl *ctrl)
{
	INIT_DELAYED_WORK(&ctrl->event_work, nvmep_event_work);
}
