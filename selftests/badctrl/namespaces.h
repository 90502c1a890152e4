/* SPDX-License-Identifier: GPL-2.0-only */
/* Which namespaces badctrl has, and how a host makes and attaches them. */
#ifndef BADCTRL_NAMESPACES_H
#define BADCTRL_NAMESPACES_H

#include "controller.h"

/* Is it attached, so that it has blocks? */
bool bad_namespace_active(struct bad *ctrl, uint32_t nsid);
/* Is it there, attached or not? */
bool bad_namespace_allocated(struct bad *ctrl, uint32_t nsid);
/* Identifiers above @after, in the page of a list: of all that are there, or active. */
void bad_namespace_list(struct bad *ctrl, uint32_t after, bool allocated, uint32_t *list);
/* Puts what is its own, if a host has created it, into its Identify data or descriptors. */
void bad_namespace_own(struct bad *ctrl, uint32_t nsid, bool descriptors, uint8_t *page);

/* Namespace Management, where Identify Controller has it; the status. */
uint16_t bad_namespace_manage(struct bad *ctrl, const struct bad_command *command,
			      uint32_t *result);
/* Namespace Attachment; the status. */
uint16_t bad_namespace_attach(struct bad *ctrl, const struct bad_command *command);

#endif /* BADCTRL_NAMESPACES_H */
