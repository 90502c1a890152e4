/* SPDX-License-Identifier: GPL-2.0-only */
/* Namespaces, Namespace Management and Namespace Attachment. */
#ifndef BADCTRL_NAMESPACES_H
#define BADCTRL_NAMESPACES_H

#include "controller.h"

/* Returns whether it is attached. */
bool bad_namespace_active(struct bad *ctrl, uint32_t nsid);
/* Returns whether it exists, attached or not. */
bool bad_namespace_allocated(struct bad *ctrl, uint32_t nsid);
/* Fill a list page with the NSIDs above @after, of allocated or of active namespaces. */
void bad_namespace_list(struct bad *ctrl, uint32_t after, bool allocated, uint32_t *list);
/* Set the fields of a namespace that the host has created in its Identify data. */
void bad_namespace_own(struct bad *ctrl, uint32_t nsid, bool descriptors, uint8_t *page);

/* Namespace Management, if the Identify data has it. Returns the status. */
uint16_t bad_namespace_manage(struct bad *ctrl, const struct bad_command *command,
			      uint32_t *result);
/* Namespace Attachment. Returns the status. */
uint16_t bad_namespace_attach(struct bad *ctrl, const struct bad_command *command);

#endif /* BADCTRL_NAMESPACES_H */
