// SPDX-License-Identifier: GPL-2.0-only
/* What becomes of a command of badctrl's, and commands that are held. */
#include <string.h>

#include "controller.h"

/* --- rules ---------------------------------------------------------------- */

static bool rule_matches(const uint32_t *rule, uint16_t sqid, uint8_t opcode)
{
	uint32_t match = rule[BADCTRL_RULE_MATCH];

	if (!rule[BADCTRL_RULE_TIMES] || !!sqid != !!(match & BADCTRL_ON_IO))
		return false;
	return match & BADCTRL_ANY || (match & 0xff) == opcode;
}

/* The first rule that applies, used up by one. */
static enum badctrl_action rule_find(struct bad *ctrl, uint16_t sqid, uint8_t opcode,
				     uint16_t *argument)
{
	enum badctrl_action action = BADCTRL_COUNT;
	uint32_t *rule = &ctrl->words[BADCTRL_RULE / 4];
	unsigned int i;

	pthread_mutex_lock(&ctrl->lock);
	for (i = 0; i < BADCTRL_RULES; i++, rule += 4) {
		if (!rule_matches(rule, sqid, opcode))
			continue;
		if (rule[BADCTRL_RULE_TIMES] != BADCTRL_EVERY)
			rule[BADCTRL_RULE_TIMES]--;
		rule[BADCTRL_RULE_HITS]++;
		action = (enum badctrl_action)(rule[BADCTRL_RULE_ACTION] & 0xffff);
		*argument = (uint16_t)(rule[BADCTRL_RULE_ACTION] >> 16);
		break;
	}
	pthread_mutex_unlock(&ctrl->lock);
	return action;
}

/* --- commands that are held ------------------------------------------------ */

static void held_count_changed(struct bad *ctrl)
{
	pthread_mutex_lock(&ctrl->lock);
	ctrl->words[BADCTRL_HELD / 4] = ctrl->held_count;
	pthread_mutex_unlock(&ctrl->lock);
}

static void held_add(struct bad *ctrl, uint16_t sqid, const struct bad_command *command)
{
	if (ctrl->held_count == BAD_HELD_MAX)
		return;
	ctrl->held[ctrl->held_count++] = (struct bad_held){ sqid, *command };
	held_count_changed(ctrl);
}

static void held_remove(struct bad *ctrl, unsigned int index)
{
	ctrl->held_count--;
	memmove(&ctrl->held[index], &ctrl->held[index + 1],
		(ctrl->held_count - index) * sizeof(ctrl->held[0]));
	held_count_changed(ctrl);
}

static uint16_t command_do(struct bad *ctrl, uint16_t sqid, const struct bad_command *command,
			   uint32_t *result)
{
	*result = 0;
	return sqid ? bad_io(ctrl, command) : bad_admin(ctrl, command, result);
}

static void command_finish(struct bad *ctrl, uint16_t sqid, const struct bad_command *command,
			   bool quiet)
{
	uint32_t result;
	uint16_t status = command_do(ctrl, sqid, command, &result);

	if (status != BAD_PENDING)
		bad_queue_complete(ctrl, sqid, command->cid, status, result, quiet);
}

void bad_held_release(struct bad *ctrl)
{
	while (ctrl->held_count) {
		struct bad_held held = ctrl->held[0];

		held_remove(ctrl, 0);
		command_finish(ctrl, held.sqid, &held.command, false);
	}
}

/*
 * As a controller may: whatever it was told to do reaches memory until it has
 * said that it stopped.  Admin commands are not begun so late.
 */
void bad_held_finish(struct bad *ctrl, int sqid, bool complete, uint16_t status)
{
	unsigned int i = 0;

	while (i < ctrl->held_count) {
		struct bad_held held = ctrl->held[i];

		if (sqid >= 0 && held.sqid != sqid) {
			i++;
			continue;
		}
		held_remove(ctrl, i);
		if (held.sqid)
			bad_io(ctrl, &held.command);
		if (complete)
			bad_queue_complete(ctrl, held.sqid, held.command.cid, status, 0, false);
	}
}

/* Carries out what is held, and keeps it. */
void bad_held_repeat(struct bad *ctrl)
{
	unsigned int i;

	for (i = 0; i < ctrl->held_count; i++)
		if (ctrl->held[i].sqid)
			bad_io(ctrl, &ctrl->held[i].command);
}

bool bad_held_abort(struct bad *ctrl, uint16_t sqid, uint16_t cid)
{
	unsigned int i;

	for (i = 0; i < ctrl->held_count; i++) {
		if (ctrl->held[i].sqid != sqid || ctrl->held[i].command.cid != cid)
			continue;
		held_remove(ctrl, i);
		bad_queue_complete(ctrl, sqid, cid, STATUS_ABORTED, 0, false);
		return true;
	}
	return false;
}

/* --- all together ---------------------------------------------------------- */

static void crash(struct bad *ctrl, bool vanish)
{
	pthread_mutex_lock(&ctrl->lock);
	ctrl->serving = false;
	if (vanish)
		ctrl->words[BADCTRL_MODE / 4] = BADCTRL_GONE;
	else
		bad_store32(ctrl, REG_CSTS, bad_load32(ctrl, REG_CSTS) | CSTS_FATAL);
	pthread_mutex_unlock(&ctrl->lock);
}

void bad_command_handle(struct bad *ctrl, uint16_t sqid, const struct bad_command *command)
{
	uint16_t argument = 0;

	switch (rule_find(ctrl, sqid, command->opcode, &argument)) {
	case BADCTRL_COUNT:
		command_finish(ctrl, sqid, command, false);
		break;
	case BADCTRL_HOLD:
		held_add(ctrl, sqid, command);
		break;
	case BADCTRL_STATUS:
		bad_queue_complete(ctrl, sqid, command->cid, argument, 0, false);
		break;
	case BADCTRL_WRONG_ID:
		held_add(ctrl, sqid, command);
		bad_queue_complete(ctrl, sqid, command->cid ^ argument, 0, 0, false);
		break;
	case BADCTRL_TWICE:
		command_finish(ctrl, sqid, command, true);
		bad_queue_complete(ctrl, sqid, command->cid, 0, 0, false);
		break;
	case BADCTRL_QUIET:
		command_finish(ctrl, sqid, command, true);
		break;
	case BADCTRL_CRASH:
		crash(ctrl, false);
		break;
	case BADCTRL_VANISH:
		crash(ctrl, true);
		break;
	case BADCTRL_LIE:
		bad_queue_complete(ctrl, sqid, command->cid, 0, 0, false);
		break;
	}
}
