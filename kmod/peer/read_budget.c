// SPDX-License-Identifier: GPL-2.0-only
/*
 * Limits of slow reads of device memory, of a user and of all users of a polling
 * thread.
 *
 * Those of other queue pairs do not end the buffers of one that reads fast.  The
 * first slow read of a user counts nothing, nor do short ones up to a sum:
 * interrupts may have come between.
 */
#include <linux/math64.h>
#include <linux/minmax.h>
#include <linux/time64.h>

#include "read_budget.h"

/* How long a slow read matters. */
#define NVMEP_SLOW_MEMORY_NS	(10 * (u64)NSEC_PER_SEC)

/* Slow reads of a user that are not counted meanwhile, beside the first one. */
#define NVMEP_SPARED_NS		(2 * (u64)NSEC_PER_MSEC)

/* All users of a thread together have the time of so many. */
#define NVMEP_READING_USERS	3

/**
 * nvmep_reads_allowed() - may a queue pair read memory of a device?
 * @user: its user's reads
 * @all_until: as @user->until, of all users
 * @slow_until: of the queue pair: 0, or what nvmep_reads_add() returned
 * @ms: milliseconds of a second that one user has
 * @now: nanoseconds
 *
 * Return: whether it may.
 */
bool nvmep_reads_allowed(const struct nvmep_user_reads *user, u64 all_until,
			 u64 slow_until, unsigned int ms, u64 now)
{
	return ms && (slow_until <= now ||
		      max(user->until, all_until) < now + NSEC_PER_SEC);
}

static u64 nvmep_reads_scaled(u64 took, u64 ms)
{
	return div64_u64(took * MSEC_PER_SEC, ms);
}

/**
 * nvmep_reads_add() - count a slow read
 * @user: reads of the user of its queue pair
 * @all_until: as @user->until, of all users
 * @slow_until: of the queue pair: 0, or what the last call returned
 * @ms: milliseconds of a second that one user has
 * @began: nanoseconds
 * @took: nanoseconds
 *
 * Return: when the queue pair counts as one that reads fast again: not before
 * the limits that it has a part in allow it.
 */
u64 nvmep_reads_add(struct nvmep_user_reads *user, u64 *all_until,
		    u64 slow_until, unsigned int ms, u64 began, u64 took)
{
	u64 until = began + took + NVMEP_SLOW_MEMORY_NS;

	if (user->spared_until <= began) {
		user->spared_until = until;
		user->spared = 0;
		return slow_until;
	}
	if (took <= NVMEP_SPARED_NS - user->spared) {
		user->spared += took;
		return slow_until;
	}
	if (ms) {
		user->until = max(user->until, began) +
			      nvmep_reads_scaled(took, ms);
		*all_until = max(*all_until, began) +
			     nvmep_reads_scaled(took,
						(u64)ms * NVMEP_READING_USERS);
	}
	user->slow_until = max(until, max(user->until, *all_until));
	return user->slow_until;
}

/**
 * nvmep_reads_matter() - must the reads of a user be kept?
 * @user: the reads
 * @now: nanoseconds
 *
 * Return: whether they make a difference for a later read.
 */
bool nvmep_reads_matter(const struct nvmep_user_reads *user, u64 now)
{
	return max(user->spared_until, user->slow_until) > now;
}
