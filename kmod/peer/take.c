// SPDX-License-Identifier: GPL-2.0-only
/*
 * Taking something off a list that others change.
 *
 * Work that must not be done under a list's lock (admin commands, calls into
 * other drivers) goes through the list like this: take the first entry that
 * still needs it, with a reference; let go of the lock; do the work; begin
 * again from the front.
 */
#include "take.h"

/**
 * nvmep_take_first() - the first entry of a list that somebody wants
 * @lock: guards the list and what @take looks at
 * @list: the list
 * @take: called under @lock with each entry, until it returns what the caller
 *	wants of that one, with a reference; NULL passes over it
 * @context: for @take
 *
 * Return: what @take returned, or NULL if it passed over all.
 */
void *nvmep_take_first(struct mutex *lock, struct list_head *list,
		       void *(*take)(struct list_head *node,
				     const void *context),
		       const void *context)
{
	struct list_head *node;
	void *taken = NULL;

	mutex_lock(lock);
	list_for_each(node, list) {
		taken = take(node, context);
		if (taken)
			break;
	}
	mutex_unlock(lock);
	return taken;
}
