// SPDX-License-Identifier: GPL-2.0-only
/* Execution of commands, with the faults that the rules of tests inject. */
#include "admin.h"
#include "held.h"
#include "io.h"
#include "key_value.h"
#include "memory.h"
#include "queue.h"
#include "registers.h"
#include "rule.h"

/* --- rules ---------------------------------------------------------------- */

static bool on_queue(uint32_t match, uint16_t sqid)
{
	if (!!sqid != !!(match & BADCTRL_ON_IO))
		return false;
	return !(match >> 16) || match >> 16 == sqid || (match & BADCTRL_AND_ABOVE && match >> 16 < sqid);
}

static bool in_place(const uint32_t place[2], const struct bad_command *command)
{
	uint64_t lba = (uint64_t)command->cdw11 << 32 | command->cdw10;

	return !place[1] || lba - place[0] < place[1];
}

static bool rule_matches(const uint32_t *rule, const uint32_t place[2], uint16_t sqid,
			 const struct bad_command *command)
{
	uint32_t match = rule[BADCTRL_RULE_MATCH];

	if (!rule[BADCTRL_RULE_TIMES] || !on_queue(match, sqid) || !in_place(place, command))
		return false;
	return match & BADCTRL_ANY || (match & 0xff) == command->opcode;
}

/* Find the first matching rule, and decrement its TIMES. */
static enum badctrl_action rule_find(struct bad *ctrl, uint16_t sqid,
				     const struct bad_command *command, uint16_t *argument)
{
	enum badctrl_action action = BADCTRL_COUNT;
	uint32_t *rule = &ctrl->words[BADCTRL_RULE / 4];
	unsigned int i;

	pthread_mutex_lock(&ctrl->lock);
	for (i = 0; i < BADCTRL_RULES; i++, rule += 4) {
		if (!rule_matches(rule, &ctrl->places[2 * i], sqid, command))
			continue;
		if (rule[BADCTRL_RULE_TIMES] != BADCTRL_EVERY)
			rule[BADCTRL_RULE_TIMES]--;
		rule[BADCTRL_RULE_HITS]++;
		bad_settle(ctrl);
		action = (enum badctrl_action)(rule[BADCTRL_RULE_ACTION] & 0xffff);
		*argument = (uint16_t)(rule[BADCTRL_RULE_ACTION] >> 16);
		break;
	}
	pthread_mutex_unlock(&ctrl->lock);
	return action;
}

/* --- execution ------------------------------------------------------------ */

static uint16_t command_do(struct bad *ctrl, uint16_t sqid, const struct bad_command *command,
			   uint32_t *result)
{
	*result = 0;
	if (sqid && ctrl->words[BADCTRL_KEY_VALUE / 4])
		return bad_key_value(ctrl, command, result);
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

void bad_command_release(struct bad *ctrl)
{
	struct bad_held held;

	while (bad_held_take(ctrl, &held))
		command_finish(ctrl, held.sqid, &held.command, false);
}

/* --- faults ---------------------------------------------------------------- */

static void crash(struct bad *ctrl, bool vanish)
{
	pthread_mutex_lock(&ctrl->lock);
	ctrl->serving = false;
	if (vanish)
		ctrl->words[BADCTRL_MODE / 4] = BADCTRL_GONE;
	else
		bad_store32(ctrl, REG_CSTS, bad_load32(ctrl, REG_CSTS) | CSTS_FATAL);
	bad_settle(ctrl);
	pthread_mutex_unlock(&ctrl->lock);
}

/* Complete a command, executed or not, with a faulty completion entry. */
static void complete_wrongly(struct bad *ctrl, uint16_t sqid, const struct bad_command *command,
			     enum badctrl_action action, uint16_t argument)
{
	uint16_t cid = command->cid;

	switch (action) {
	case BADCTRL_WRONG_ID:
		bad_held_add(ctrl, sqid, command);
		bad_queue_complete(ctrl, sqid, cid ^ argument, 0, 0, false);
		break;
	case BADCTRL_STALE:
		bad_held_add(ctrl, sqid, command);
		bad_queue_complete(ctrl, sqid, ctrl->sqs[sqid].completed, argument, 0, false);
		break;
	case BADCTRL_TWICE:
		command_finish(ctrl, sqid, command, true);
		bad_queue_complete(ctrl, sqid, cid, 0, 0, false);
		break;
	case BADCTRL_PIECES:
		bad_queue_complete_slowly(ctrl, sqid, cid, bad_io(ctrl, command));
		break;
	case BADCTRL_TORN:
		bad_queue_complete_torn(ctrl, sqid, cid, cid ^ argument, bad_io(ctrl, command));
		break;
	default:
		break;
	}
}

void bad_command_handle(struct bad *ctrl, uint16_t sqid, const struct bad_command *command)
{
	uint16_t argument = 0;
	enum badctrl_action action = rule_find(ctrl, sqid, command, &argument);

	switch (action) {
	case BADCTRL_COUNT:
		command_finish(ctrl, sqid, command, false);
		break;
	case BADCTRL_HOLD:
		bad_held_add(ctrl, sqid, command);
		break;
	case BADCTRL_DROP:
		break;
	case BADCTRL_STATUS:
		bad_queue_complete(ctrl, sqid, command->cid, argument, 0, false);
		break;
	case BADCTRL_WRONG_ID:
	case BADCTRL_STALE:
	case BADCTRL_TWICE:
	case BADCTRL_PIECES:
	case BADCTRL_TORN:
		complete_wrongly(ctrl, sqid, command, action, argument);
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
	case BADCTRL_TEAR:
		bad_io_torn(ctrl, command);
		bad_queue_complete(ctrl, sqid, command->cid, 0, 0, false);
		break;
	case BADCTRL_LIE:
		bad_queue_complete(ctrl, sqid, command->cid, 0, 0, false);
		break;
	case BADCTRL_STRAY:
		bad_queue_complete(ctrl, sqid, command->cid, bad_stray(ctrl), 0, false);
		break;
	case BADCTRL_CUT:
		bad_queue_complete(ctrl, sqid, command->cid, bad_io_cut(ctrl, command, argument), 0,
				   false);
		break;
	}
}
