/* SPDX-License-Identifier: GPL-2.0-only */
/* badctrl's I/O commands. */
#ifndef BADCTRL_IO_H
#define BADCTRL_IO_H

#include "controller.h"

/* Does a command; its status. */
uint16_t bad_io(struct bad *ctrl, const struct bad_command *command);
/* The same, but of what is written the second half stays as it was. */
void bad_io_torn(struct bad *ctrl, const struct bad_command *command);

#endif /* BADCTRL_IO_H */
