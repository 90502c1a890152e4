/* SPDX-License-Identifier: GPL-2.0-only */
/* Commands that were fetched and are not completed yet. */
#ifndef BADCTRL_HELD_H
#define BADCTRL_HELD_H

#include "controller.h"

void bad_held_add(struct bad *ctrl, uint16_t sqid, const struct bad_command *command);

/* Remove the oldest from the list; false if there is none. */
bool bad_held_take(struct bad *ctrl, struct bad_held *held);

/* Execute the held commands of queue @sqid, -1 for all queues. */
void bad_held_finish(struct bad *ctrl, int sqid, bool complete, uint16_t status);
/* Execute the held commands and keep them. */
void bad_held_repeat(struct bad *ctrl);
bool bad_held_abort(struct bad *ctrl, uint16_t sqid, uint16_t cid);

/* Discard all; called with the lock held. */
void bad_held_drop(struct bad *ctrl);

#endif /* BADCTRL_HELD_H */
