// SPDX-License-Identifier: GPL-2.0-only
/*
 * Reservations, base 7 and 8.19: one state for all namespaces. There are two hosts, the one that
 * sends commands, and another one, whose key and reservation a test sets by words.
 */
#include <string.h>

#include "memory.h"
#include "registers.h"
#include "reservations.h"

#define ACTION(command)	((command)->cdw10 & 7)
#define TYPE(command)	((command)->cdw10 >> 8 & 0xff)
#define IGNORE_KEY	(1U << 3)
#define PERSIST		(3U << 30)
#define EXTENDED	1U
#define REPORT_MAX	4096U
#define HOLDS		1U

/* Both are 64 bytes or 24 bytes, as the registrants that follow. */
struct registrant {
	uint16_t cntlid;
	uint8_t status;
	uint8_t reserved[5];
	uint64_t first;
	uint64_t second;
};

static uint64_t other_key(const struct bad *ctrl)
{
	return ctrl->words[BADCTRL_OTHER_KEY / 4];
}

static bool other_holds(const struct bad *ctrl)
{
	return ctrl->words[BADCTRL_OTHER_TYPE / 4];
}

static void forget_other(struct bad *ctrl)
{
	ctrl->words[BADCTRL_OTHER_KEY / 4] = 0;
	ctrl->words[BADCTRL_OTHER_TYPE / 4] = 0;
}

static uint16_t register_key(struct bad *ctrl, const struct bad_command *command,
			     const uint64_t keys[2])
{
	struct bad_reservation *own = &ctrl->own;
	bool match = command->cdw10 & IGNORE_KEY || keys[0] == own->key;

	if ((command->cdw10 & PERSIST) != PERSIST)
		return NVME_STATUS_DNR | NVME_SC_INVALID_FIELD;
	if (ACTION(command) == 0)
		match = !own->key || own->key == keys[1];
	if (!match)
		return NVME_SC_RESERVATION;
	own->key = ACTION(command) == 1 ? 0 : keys[1];
	if (!own->key)
		own->type = 0;
	own->generation++;
	return 0;
}

static uint16_t acquire(struct bad *ctrl, const struct bad_command *command,
			const uint64_t keys[2])
{
	struct bad_reservation *own = &ctrl->own;

	if (!own->key || (!(command->cdw10 & IGNORE_KEY) && keys[0] != own->key))
		return NVME_SC_RESERVATION;
	if (ACTION(command)) {
		if (keys[1] != other_key(ctrl))
			return NVME_SC_RESERVATION;
		if (other_holds(ctrl))
			own->type = TYPE(command);
		forget_other(ctrl);
		own->generation++;
		ctrl->words[BADCTRL_PREEMPTED / 4] = ACTION(command);
		return 0;
	}
	if (other_holds(ctrl) || (own->type && own->type != TYPE(command)))
		return NVME_SC_RESERVATION;
	own->type = TYPE(command);
	return 0;
}

static uint16_t release(struct bad *ctrl, const struct bad_command *command, uint64_t key)
{
	struct bad_reservation *own = &ctrl->own;

	if (!own->key || (!(command->cdw10 & IGNORE_KEY) && key != own->key))
		return NVME_SC_RESERVATION;
	if (ACTION(command)) {
		own->key = 0;
		own->generation++;
		forget_other(ctrl);
	} else if (own->type && own->type != TYPE(command)) {
		return NVME_STATUS_DNR | NVME_SC_INVALID_FIELD;
	}
	own->type = 0;
	return 0;
}

static void add_registrant(uint8_t *report, bool extended, uint64_t key, bool holds)
{
	struct registrant host = { .status = holds ? HOLDS : 0, };
	uint16_t count;

	memcpy(&count, report + 5, sizeof(count));
	/* The Host Identifier is behind the key if it is long, else before it. */
	host.first = extended ? key : 0x77;
	host.second = extended ? 0x77 : key;
	memcpy(report + (count + 1) * (extended ? 64U : 24U), &host, sizeof(host));
	count++;
	memcpy(report + 5, &count, sizeof(count));
}

static uint16_t report(struct bad *ctrl, const struct bad_command *command)
{
	size_t length = ((size_t)command->cdw10 + 1) * 4;
	bool extended = command->cdw11 & EXTENDED;
	uint8_t data[REPORT_MAX] = { 0 };
	uint32_t i;

	pthread_mutex_lock(&ctrl->lock);
	if (!!ctrl->words[BADCTRL_SHORT_HOST / 4] == extended) {
		pthread_mutex_unlock(&ctrl->lock);
		return NVME_STATUS_DNR | NVME_SC_HOST_IDENTIFIER;
	}
	memcpy(data, &ctrl->own.generation, sizeof(uint32_t));
	data[4] = (uint8_t)(other_holds(ctrl) ? ctrl->words[BADCTRL_OTHER_TYPE / 4] :
						ctrl->own.type);
	for (i = 0; i < ctrl->words[BADCTRL_MORE_HOSTS / 4]; i++)
		add_registrant(data, extended, 0x1000 + i, false);
	if (other_key(ctrl))
		add_registrant(data, extended, other_key(ctrl), other_holds(ctrl));
	if (ctrl->own.key)
		add_registrant(data, extended, ctrl->own.key, ctrl->own.type);
	pthread_mutex_unlock(&ctrl->lock);
	return bad_to_host(ctrl, command, data, length < sizeof(data) ? length : sizeof(data));
}

static uint16_t change(struct bad *ctrl, const struct bad_command *command,
		       const uint64_t keys[2])
{
	switch (command->opcode) {
	case NVME_IO_RESERVATION_REGISTER:
		return register_key(ctrl, command, keys);
	case NVME_IO_RESERVATION_ACQUIRE:
		return acquire(ctrl, command, keys);
	default:
		return release(ctrl, command, keys[0]);
	}
}

uint16_t bad_reservation(struct bad *ctrl, const struct bad_command *command)
{
	uint64_t keys[2] = { 0 };
	uint16_t status;

	if (command->opcode == NVME_IO_RESERVATION_REPORT)
		return report(ctrl, command);
	status = bad_from_host(ctrl, command, keys,
			       command->opcode == NVME_IO_RESERVATION_RELEASE ? 8 : 16);
	if (status)
		return status;
	pthread_mutex_lock(&ctrl->lock);
	status = change(ctrl, command, keys);
	pthread_mutex_unlock(&ctrl->lock);
	return status;
}

bool bad_reservation_forbids_writes(struct bad *ctrl)
{
	bool forbids;

	pthread_mutex_lock(&ctrl->lock);
	/* Types 1 and 2 are for the holder alone, the others for all registrants. */
	forbids = other_holds(ctrl) && (!ctrl->own.key || ctrl->words[BADCTRL_OTHER_TYPE / 4] <= 2);
	pthread_mutex_unlock(&ctrl->lock);
	return forbids;
}
