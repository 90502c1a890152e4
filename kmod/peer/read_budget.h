/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Limits of slow reads of device memory, by which a polling thread orders
 * completions behind data: all that it serves waits for such a read.
 *
 * No kernel state: selftests compile read_budget.c for user space.
 */
#ifndef _NVMEP_READ_BUDGET_H
#define _NVMEP_READ_BUDGET_H

#include <linux/types.h>

/**
 * struct nvmep_user_reads - slow reads of one user by one thread
 * @until: nanoseconds: the time that they took, scaled so that what a second
 *	allows is a second, after the time of the first one
 * @spared_until: nanoseconds: a slow read was not counted; until then the others
 *	are, but for @spared
 * @spared: nanoseconds of further reads that were not counted
 * @slow_until: nanoseconds: as that of its queue pair that read slowly last
 */
struct nvmep_user_reads {
	u64 until;
	u64 spared_until;
	u64 spared;
	u64 slow_until;
};

bool nvmep_reads_allowed(const struct nvmep_user_reads *user, u64 all_until,
			 u64 slow_until, unsigned int ms, u64 now);
u64 nvmep_reads_add(struct nvmep_user_reads *user, u64 *all_until,
		    u64 slow_until, unsigned int ms, u64 began, u64 took);
bool nvmep_reads_matter(const struct nvmep_user_reads *user, u64 now);

#endif /* _NVMEP_READ_BUDGET_H */
