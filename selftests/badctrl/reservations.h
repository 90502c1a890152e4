/* SPDX-License-Identifier: GPL-2.0-only */
/* badctrl's reservation commands. */
#ifndef BADCTRL_RESERVATIONS_H
#define BADCTRL_RESERVATIONS_H

#include "controller.h"

/* Execute a reservation command. Returns its status. */
uint16_t bad_reservation(struct bad *ctrl, const struct bad_command *command);
/* Does the reservation of another host forbid this host to write? */
bool bad_reservation_forbids_writes(struct bad *ctrl);

#endif /* BADCTRL_RESERVATIONS_H */
