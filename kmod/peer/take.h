/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Taking something off a list that others change.
 */
#ifndef _NVMEP_TAKE_H
#define _NVMEP_TAKE_H

#include <linux/list.h>
#include <linux/mutex.h>

void *nvmep_take_first(struct mutex *lock, struct list_head *list,
		       void *(*take)(struct list_head *node,
				     const void *context),
		       const void *context);

#endif /* _NVMEP_TAKE_H */
