// SPDX-License-Identifier: GPL-2.0-only
/*
 * A lane is a thread of a job: escape from its program, waiting, and counters.
 */
#include <sched.h>
#include <time.h>

#include "lane.h"

_Thread_local struct lane *current_lane;

uint64_t now_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

void backoff_wait(struct backoff *backoff)
{
	static const struct timespec pause = { .tv_nsec = 20000 };

	backoff->rounds++;
	if (backoff->rounds < 16)
		return;
	if (backoff->rounds < 512)
		sched_yield();
	else
		nanosleep(&pause, NULL);
}

_Noreturn void lane_escape(struct lane *lane, enum softgpu_status status)
{
	lane->escape_status = (int)status;
	siglongjmp(lane->escape, 1);
}

void lane_check(struct lane *lane)
{
	if (atomic_load_explicit(&lane->slot->abort, memory_order_relaxed))
		lane_escape(lane, SOFTGPU_ABORTED);
}

void lane_note(struct lane *lane, int error, uint64_t where, uint64_t value)
{
	struct softgpu_result *result = &lane->slot->job->result;
	uint64_t nowhere = ~0ULL;

	if (!__atomic_compare_exchange_n(&result->where, &nowhere, where, false,
					 __ATOMIC_RELAXED, __ATOMIC_RELAXED))
		return;
	__atomic_store_n(&result->error, error, __ATOMIC_RELAXED);
	__atomic_store_n(&result->value, value, __ATOMIC_RELAXED);
}
