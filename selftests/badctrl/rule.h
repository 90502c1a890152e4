/* SPDX-License-Identifier: GPL-2.0-only */
/* Execution of commands, with the faults that rules inject. */
#ifndef BADCTRL_RULE_H
#define BADCTRL_RULE_H

#include "controller.h"

void bad_command_handle(struct bad *ctrl, uint16_t sqid, const struct bad_command *command);

/* Complete the held commands normally. */
void bad_command_release(struct bad *ctrl);

#endif /* BADCTRL_RULE_H */
