// SPDX-License-Identifier: GPL-2.0-only
/*
 * Asynchronous events: one request for them is always with the controller; what it
 * reports is handled by work, which then asks again.
 */
#include <linux/slab.h>

#include "admin.h"
#include "ctrl.h"
#include "events.h"
#include "queue.h"
#include "request.h"
#include "workqueue.h"

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
		dev_warn(ctrl->dev, "firmware activation begins\n");
		break;
	default:
		dev_info(ctrl->dev, "notice %#x\n", event);
	}
}

static void nvmep_event_handle(struct nvmep_ctrl *ctrl, u32 event)
{
	u8 type = NVME_EVENT_TYPE(event);

	if (type == NVME_EVENT_TYPE_NOTICE) {
		nvmep_event_notice(ctrl, event);
	} else if (type == NVME_EVENT_TYPE_ERROR &&
		   NVME_EVENT_INFO(event) == NVME_EVENT_ERROR_PERSISTENT) {
		dev_err(ctrl->dev, "persistent internal error: resetting\n");
		nvmep_ctrl_reset(ctrl);
	} else {
		dev_warn(ctrl->dev, "asynchronous event %#x\n", event);
	}
}

/*
 * An event stays masked until its log page was read; only then is the next
 * request sent (base specification 5.1.2).
 */
static void nvmep_event_work(struct work_struct *work)
{
	struct nvmep_ctrl *ctrl = container_of(work, struct nvmep_ctrl,
					       event_work);
	u32 event = READ_ONCE(ctrl->event);
	void *log;

	if (nvmep_ctrl_state(ctrl) != NVMEP_CTRL_LIVE)
		return;
	log = kmalloc(NVME_IDENTIFY_SIZE, GFP_KERNEL);
	if (log)
		nvmep_get_log(ctrl, NVME_EVENT_LOG(event), log,
			      NVME_EVENT_LOG(event) == NVME_LOG_CHANGED_NAMESPACES ?
			      NVME_IDENTIFY_SIZE : 512);
	kfree(log);
	nvmep_event_handle(ctrl, event);
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
	queue_work(nvmep_wq, &ctrl->event_work);
}

/**
 * nvmep_events_entry() - a completion entry of the admin queue
 * @queue: the admin queue; this is its nvmep_queue.complete
 * @cqe: the entry, of the event request or of any other command
 */
void nvmep_events_entry(struct nvmep_queue *queue, const struct nvme_cqe *cqe)
{
	if (le16_to_cpu(READ_ONCE(cqe->cid)) == NVMEP_EVENT_CID)
		nvmep_event_received(queue->ctrl,
				     le16_to_cpu(cqe->status) >> 1,
				     le64_to_cpu(cqe->result));
	else
		nvmep_request_entry(queue, cqe);
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
	INIT_WORK(&ctrl->event_work, nvmep_event_work);
}
