/* SPDX-License-Identifier: GPL-2.0-only */
/* badctrl's commands of the Key Value command set. */
#ifndef BADCTRL_KEY_VALUE_H
#define BADCTRL_KEY_VALUE_H

#include "controller.h"

/* Execute a command. @result: dword 0 of its completion. Returns its status. */
uint16_t bad_key_value(struct bad *ctrl, const struct bad_command *command, uint32_t *result);

#endif /* BADCTRL_KEY_VALUE_H */
