// SPDX-License-Identifier: GPL-2.0-only
/* Commands that a rule holds, until they are completed or dropped. */
#include <string.h>

#include "held.h"
#include "io.h"
#include "queue.h"
#include "registers.h"

static void held_count_changed(struct bad *ctrl)
{
	pthread_mutex_lock(&ctrl->lock);
	ctrl->words[BADCTRL_HELD / 4] = ctrl->held_count;
	bad_settle(ctrl);
	pthread_mutex_unlock(&ctrl->lock);
}

void bad_held_add(struct bad *ctrl, uint16_t sqid, const struct bad_command *command)
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

bool bad_held_take(struct bad *ctrl, struct bad_held *held)
{
	if (!ctrl->held_count)
		return false;
	*held = ctrl->held[0];
	held_remove(ctrl, 0);
	return true;
}

/*
 * A controller may access memory for its commands until CSTS.RDY is 0, so held I/O commands
 * are executed when it stops. Admin commands are not.
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
		bad_queue_complete(ctrl, sqid, cid, NVME_SC_ABORTED, 0, false);
		return true;
	}
	return false;
}

void bad_held_drop(struct bad *ctrl)
{
	ctrl->held_count = 0;
	ctrl->words[BADCTRL_HELD / 4] = 0;
	bad_settle(ctrl);
}
