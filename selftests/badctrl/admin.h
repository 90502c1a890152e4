/* SPDX-License-Identifier: GPL-2.0-only */
/* badctrl's admin commands and asynchronous events. */
#ifndef BADCTRL_ADMIN_H
#define BADCTRL_ADMIN_H

#include "controller.h"

/* Execute a command. Returns the status or BAD_PENDING. */
uint16_t bad_admin(struct bad *ctrl, const struct bad_command *command, uint32_t *result);

/* Complete requests as long as there are requests and events. */
void bad_events_send(struct bad *ctrl);
/* Discard the requests. */
void bad_events_drop(struct bad *ctrl);

#endif /* BADCTRL_ADMIN_H */
