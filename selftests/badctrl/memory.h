/* SPDX-License-Identifier: GPL-2.0-only */
/* Access to the guest's memory. All functions return 0 or a status. */
#ifndef BADCTRL_MEMORY_H
#define BADCTRL_MEMORY_H

#include "controller.h"

uint16_t bad_read(struct bad *ctrl, uint64_t address, void *data, size_t length);
uint16_t bad_write(struct bad *ctrl, uint64_t address, const void *data, size_t length);

/* Write to an unmapped address. */
uint16_t bad_stray(struct bad *ctrl);

/* Read @count addresses of a PRP list, and add the number of its pages to @lists. */
uint16_t bad_prp_list(struct bad *ctrl, uint64_t list, uint64_t *pages, uint32_t count,
		      uint32_t *lists);

/*
 * Transfer the data of a command. Only bad_transfer(), whose @data is on the disk, may use the
 * window of a GPU: the transfer ends with @moves.
 */
uint16_t bad_transfer(struct bad *ctrl, const struct bad_command *command, uint8_t *data,
		      size_t length, bool to_host, struct bad_moves *moves);
uint16_t bad_from_host(struct bad *ctrl, const struct bad_command *command, void *data,
		       size_t length);
uint16_t bad_to_host(struct bad *ctrl, const struct bad_command *command, const void *data,
		     size_t length);

#endif /* BADCTRL_MEMORY_H */
