/* SPDX-License-Identifier: GPL-2.0-only */
/* badctrl's I/O commands. */
#ifndef BADCTRL_IO_H
#define BADCTRL_IO_H

#include "controller.h"

/* Execute a command. Returns its status. */
uint16_t bad_io(struct bad *ctrl, const struct bad_command *command);
/* Bytes of data on the disk, of a read or write. */
uint64_t bad_io_bytes(struct bad *ctrl, const struct bad_command *command);
/* The same by a poller: the command has this status when @moves are done. */
uint16_t bad_io_begin(struct bad *ctrl, const struct bad_command *command, struct bad_moves *moves);
/* Execute a command, but write only the first half of its data. */
void bad_io_torn(struct bad *ctrl, const struct bad_command *command);

/* A power cut during the command; @argument of BADCTRL_CUT.  Returns its status. */
uint16_t bad_io_cut(struct bad *ctrl, const struct bad_command *command, uint16_t argument);
/* Cut the power of these namespaces, by bit. */
void bad_io_cut_power(struct bad *ctrl, uint32_t namespaces);

#endif /* BADCTRL_IO_H */
