/* SPDX-License-Identifier: GPL-2.0-only */
/* Commands of badctrl that were fetched and are not completed yet. */
#ifndef BADCTRL_HELD_H
#define BADCTRL_HELD_H

#include "controller.h"

void bad_held_add(struct bad *ctrl, uint16_t sqid, const struct bad_command *command);

/* Takes the oldest off the list; false if there is none. */
bool bad_held_take(struct bad *ctrl, struct bad_held *held);

/* Carries out what is held; @sqid: of this queue only, or -1. */
void bad_held_finish(struct bad *ctrl, int sqid, bool complete, uint16_t status);
/* Carries out what is held, and keeps it. */
void bad_held_repeat(struct bad *ctrl);
bool bad_held_abort(struct bad *ctrl, uint16_t sqid, uint16_t cid);

/* Lock held: forgets them all. */
void bad_held_drop(struct bad *ctrl);

#endif /* BADCTRL_HELD_H */
