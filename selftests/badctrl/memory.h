/* SPDX-License-Identifier: GPL-2.0-only */
/* The guest's memory as badctrl reaches it; all return 0 or a status. */
#ifndef BADCTRL_MEMORY_H
#define BADCTRL_MEMORY_H

#include "controller.h"

uint16_t bad_read(struct bad *ctrl, uint64_t address, void *data, size_t length);
uint16_t bad_write(struct bad *ctrl, uint64_t address, const void *data, size_t length);

/* Writes where nobody gave it memory. */
uint16_t bad_stray(struct bad *ctrl);

/* The @count addresses of a PRP list; adds the list's pages to @lists. */
uint16_t bad_prp_list(struct bad *ctrl, uint64_t list, uint64_t *pages, uint32_t count,
		      uint32_t *lists);

/* Data of a command, by its PRPs. */
uint16_t bad_from_host(struct bad *ctrl, const struct bad_command *command, void *data,
		       size_t length);
uint16_t bad_to_host(struct bad *ctrl, const struct bad_command *command, const void *data,
		     size_t length);

#endif /* BADCTRL_MEMORY_H */
