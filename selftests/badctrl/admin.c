// SPDX-License-Identifier: GPL-2.0-only
/* badctrl's admin commands and asynchronous events. */
#include <string.h>

#include "admin.h"
#include "held.h"
#include "memory.h"
#include "namespaces.h"
#include "queue.h"
#include "registers.h"

#define LOG_MAX		(64U << 10)

/* The page of words, with the fields of a namespace that the host has created. */
static void identify_kept(struct bad *ctrl, uint32_t cns, uint32_t nsid, uint8_t *page)
{
	pthread_mutex_lock(&ctrl->lock);
	memcpy(page, ctrl->identify[cns], BAD_PAGE);
	pthread_mutex_unlock(&ctrl->lock);
	if (cns == NVME_CNS_NAMESPACE || cns == NVME_CNS_DESCRIPTORS)
		bad_namespace_own(ctrl, nsid, cns == NVME_CNS_DESCRIPTORS, page);
}

/* Zeroes for an unallocated namespace, and with NVME_CNS_NAMESPACE for an inactive one. */
static bool identify_page(struct bad *ctrl, uint32_t cns, uint32_t nsid, uint8_t *page)
{
	switch (cns) {
	case NVME_CNS_ACTIVE_NAMESPACES:
	case NVME_CNS_ALLOCATED_NAMESPACES:
		bad_namespace_list(ctrl, nsid, cns == NVME_CNS_ALLOCATED_NAMESPACES,
				   (uint32_t *)page);
		return true;
	case NVME_CNS_NAMESPACE:
		if (bad_namespace_active(ctrl, nsid))
			identify_kept(ctrl, NVME_CNS_NAMESPACE, nsid, page);
		return true;
	case NVME_CNS_ALLOCATED_NAMESPACE:
		if (bad_namespace_allocated(ctrl, nsid))
			identify_kept(ctrl, NVME_CNS_NAMESPACE, nsid, page);
		return true;
	case NVME_CNS_ATTACHED_CONTROLLERS:
	case NVME_CNS_CONTROLLERS:
		/* One controller, with ID 0. */
		page[0] = 1;
		return true;
	case NVME_CNS_NVM_SETS:
		return false;
	default:
		if (cns >= sizeof(ctrl->identify) / sizeof(ctrl->identify[0]))
			return false;
		identify_kept(ctrl, cns, nsid, page);
		return true;
	}
}

static uint16_t identify(struct bad *ctrl, const struct bad_command *command)
{
	uint32_t cns = command->cdw10 & 0xff;
	uint8_t page[BAD_PAGE] = { 0 };

	if ((cns < 32 && bad_word(ctrl, BADCTRL_REFUSED) & 1U << cns) ||
	    !identify_page(ctrl, cns, command->nsid, page))
		return NVME_STATUS_DNR | NVME_SC_INVALID_FIELD;
	return bad_to_host(ctrl, command, page, sizeof(page));
}

/* Error Information, base 5.1.12.1.2: one error of one queue, without a command. */
static void log_error(struct bad *ctrl, uint8_t *log)
{
	uint64_t count = 1;
	uint16_t sqid = (uint16_t)bad_word(ctrl, BADCTRL_ERROR_QUEUE), no_command = 0xffff;

	memcpy(log, &count, sizeof(count));
	memcpy(log + 8, &sqid, sizeof(sqid));
	memcpy(log + 10, &no_command, sizeof(no_command));
}

/* SMART / Health, base 5.16.1.3: Host Read Commands, Host Write Commands. */
static void log_health(struct bad *ctrl, uint8_t *log)
{
	uint64_t reads = atomic_load(&ctrl->reads), writes = atomic_load(&ctrl->writes);

	pthread_mutex_lock(&ctrl->lock);
	memcpy(log, ctrl->health, sizeof(ctrl->health));
	pthread_mutex_unlock(&ctrl->lock);
	memcpy(log + 64, &reads, sizeof(reads));
	memcpy(log + 80, &writes, sizeof(writes));
}

/* Commands Supported and Effects, base 5.16.1.6: admin commands are first. */
static void log_effects(struct bad *ctrl, uint8_t *log)
{
	memcpy(log, ctrl->admin_effects, sizeof(ctrl->admin_effects));
	memcpy(log + sizeof(ctrl->effects), ctrl->effects, sizeof(ctrl->effects));
}

/* All other logs are empty. The result is the Log Specific Identifier, which real controllers do not say. */
static uint16_t get_log_page(struct bad *ctrl, const struct bad_command *command, uint32_t *result)
{
	uint64_t dwords = (command->cdw10 >> 16 | (uint64_t)(command->cdw11 & 0xffff) << 16) + 1;
	static uint8_t log[LOG_MAX];

	if (dwords * 4 > LOG_MAX)
		return NVME_STATUS_DNR | NVME_SC_INVALID_FIELD;
	*result = command->cdw11 >> 16;
	memset(log, 0, sizeof(log));
	if ((command->cdw10 & 0xff) == NVME_LOG_HEALTH)
		log_health(ctrl, log);
	if ((command->cdw10 & 0xff) == NVME_LOG_ERRORS)
		log_error(ctrl, log);
	if ((command->cdw10 & 0xff) == NVME_LOG_EFFECTS &&
	    command->cdw14 >> 24 == bad_word(ctrl, BADCTRL_EFFECTS_SET))
		log_effects(ctrl, log);
	return bad_to_host(ctrl, command, log, dwords * 4);
}

static uint16_t set_host_behavior(struct bad *ctrl, const struct bad_command *command)
{
	uint8_t data[512];
	uint16_t status = bad_from_host(ctrl, command, data, sizeof(data));

	pthread_mutex_lock(&ctrl->lock);
	memcpy(&ctrl->words[BADCTRL_BEHAVIOR / 4], data, sizeof(uint32_t));
	pthread_mutex_unlock(&ctrl->lock);
	return status;
}

/* Temperature Threshold, base 5.1.25.1.3. */
static uint16_t threshold(struct bad *ctrl, const struct bad_command *command, uint32_t *result)
{
	uint32_t *kelvin = &ctrl->thresholds[command->cdw11 >> 16 & (BADCTRL_THRESHOLDS - 1)];

	pthread_mutex_lock(&ctrl->lock);
	if (command->opcode == NVME_ADMIN_SET_FEATURES)
		*kelvin = command->cdw11 & 0xffff;
	else
		*result = *kelvin;
	pthread_mutex_unlock(&ctrl->lock);
	return 0;
}

static uint16_t features(struct bad *ctrl, const struct bad_command *command, uint32_t *result)
{
	if (command->opcode == NVME_ADMIN_SET_FEATURES &&
	    (command->cdw10 & 0xff) == NVME_FEATURE_HOST_BEHAVIOR)
		return set_host_behavior(ctrl, command);
	switch (command->cdw10 & 0xff) {
	case NVME_FEATURE_QUEUES:
		*result = (bad_granted(ctrl, true) - 1) << 16 | (bad_granted(ctrl, false) - 1);
		return 0;
	case NVME_FEATURE_EVENTS:
		if (command->opcode == NVME_ADMIN_SET_FEATURES)
			ctrl->event_config = command->cdw11;
		*result = ctrl->event_config;
		return 0;
	case NVME_FEATURE_TEMPERATURE:
		return threshold(ctrl, command, result);
	default:
		return NVME_STATUS_DNR | NVME_SC_INVALID_FIELD;
	}
}

/* Also completes the commands of the queue. */
static uint16_t delete_sq(struct bad *ctrl, uint16_t qid)
{
	if (bad_queue_exists(ctrl, qid))
		bad_held_finish(ctrl, qid, true, NVME_SC_SQ_DELETED);
	return bad_delete_sq(ctrl, qid);
}

static uint16_t abort_command(struct bad *ctrl, const struct bad_command *command, uint32_t *result)
{
	uint16_t sqid = (uint16_t)command->cdw10, cid = (uint16_t)(command->cdw10 >> 16);

	/* Bit 0: not aborted. */
	*result = !bad_held_abort(ctrl, sqid, cid);
	return 0;
}

static uint16_t event_request(struct bad *ctrl, const struct bad_command *command)
{
	if (ctrl->request_count == BAD_REQUESTS_MAX)
		return NVME_STATUS_DNR | NVME_SC_EVENT_LIMIT;
	ctrl->requests[ctrl->request_count++] = command->cid;
	return BAD_PENDING;
}

/* Lock held. */
static bool next_event(struct bad *ctrl, uint32_t *event)
{
	*event = ctrl->words[BADCTRL_STORM / 4];
	if (!ctrl->event_count)
		return *event;
	*event = ctrl->events[0];
	memmove(ctrl->events, ctrl->events + 1, --ctrl->event_count * sizeof(*event));
	return true;
}

void bad_events_send(struct bad *ctrl)
{
	uint32_t event;
	bool waiting;

	while (ctrl->request_count && bad_queue_room(ctrl, 0)) {
		pthread_mutex_lock(&ctrl->lock);
		waiting = next_event(ctrl, &event);
		pthread_mutex_unlock(&ctrl->lock);
		if (!waiting)
			return;
		bad_queue_complete(ctrl, 0, ctrl->requests[--ctrl->request_count], 0, event, false);
	}
}

void bad_events_drop(struct bad *ctrl)
{
	ctrl->request_count = 0;
}

static uint16_t format(struct bad *ctrl)
{
	memset(ctrl->disk, 0, bad_disk_bytes(ctrl));
	return 0;
}

/*
 * Level 0 Discovery of TCG Storage, of an Opal 2.0 disk that is locked; the other protocols
 * answer zeroes. All numbers are big-endian.
 */
static uint16_t security_receive(struct bad *ctrl, const struct bad_command *command)
{
	static const uint8_t discovery[] = {
		[3] = 48 + 16 + 16 + 20 - 4,			/* bytes that follow */
		[48] = 0x00, 0x01, 0x10, 12, 0x01,		/* TPer: synchronous */
		[64] = 0x00, 0x02, 0x10, 12, 0x07,		/* Locking: enabled, locked */
		[80] = 0x02, 0x03, 0x10, 16, 0x10, 0x00, 0x00, 0x01,	/* Opal 2.0, first ComID */
		[99] = 0,
	};
	uint8_t data[BAD_PAGE] = { 0 };
	size_t length = command->cdw11 < sizeof(data) ? command->cdw11 : sizeof(data);

	if (command->cdw10 == (1U << 24 | 1U << 8))
		memcpy(data, discovery, sizeof(discovery));
	return bad_to_host(ctrl, command, data, length);
}

uint16_t bad_admin(struct bad *ctrl, const struct bad_command *command, uint32_t *result)
{
	switch (command->opcode) {
	case NVME_ADMIN_DELETE_SQ:
		return delete_sq(ctrl, (uint16_t)command->cdw10);
	case NVME_ADMIN_CREATE_SQ:
		return bad_create_sq(ctrl, command);
	case NVME_ADMIN_GET_LOG_PAGE:
		return get_log_page(ctrl, command, result);
	case NVME_ADMIN_DELETE_CQ:
		return bad_delete_cq(ctrl, (uint16_t)command->cdw10);
	case NVME_ADMIN_CREATE_CQ:
		return bad_create_cq(ctrl, command);
	case NVME_ADMIN_IDENTIFY:
		return identify(ctrl, command);
	case NVME_ADMIN_ABORT:
		return abort_command(ctrl, command, result);
	case NVME_ADMIN_SET_FEATURES:
	case NVME_ADMIN_GET_FEATURES:
		return features(ctrl, command, result);
	case NVME_ADMIN_ASYNC_EVENT:
		return event_request(ctrl, command);
	case NVME_ADMIN_NAMESPACE_MANAGE:
		return bad_namespace_manage(ctrl, command, result);
	case NVME_ADMIN_NAMESPACE_ATTACH:
		return bad_namespace_attach(ctrl, command);
	case NVME_ADMIN_SECURITY_RECEIVE:
		return security_receive(ctrl, command);
	case NVME_ADMIN_SECURITY_SEND:
	/* A test activates the image by BADCTRL_PAUSED and BADCTRL_EVENT. */
	case NVME_ADMIN_FIRMWARE_DOWNLOAD:
	case NVME_ADMIN_FIRMWARE_COMMIT:
		return 0;
	case NVME_ADMIN_FORMAT:
	case NVME_ADMIN_SANITIZE:
		return format(ctrl);
	default:
		return NVME_STATUS_DNR | NVME_SC_INVALID_OPCODE;
	}
}
