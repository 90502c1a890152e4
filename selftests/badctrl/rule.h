/* SPDX-License-Identifier: GPL-2.0-only */
/* What becomes of a command of badctrl. */
#ifndef BADCTRL_RULE_H
#define BADCTRL_RULE_H

#include "controller.h"

void bad_command_handle(struct bad *ctrl, uint16_t sqid, const struct bad_command *command);

/* Commands that are held end as they should. */
void bad_command_release(struct bad *ctrl);

#endif /* BADCTRL_RULE_H */
