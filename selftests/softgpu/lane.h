/* SPDX-License-Identifier: GPL-2.0-only */
/* Escape, wait and counters of a thread of a job. */
#ifndef SOFTGPU_LANE_H
#define SOFTGPU_LANE_H

#include "gpu.h"

/* The lane that runs in this thread. */
extern _Thread_local struct lane *current_lane;

/* Leave the program at once with @status. */
_Noreturn void lane_escape(struct lane *lane, enum softgpu_status status);

/* Leave the program if it was aborted. */
void lane_check(struct lane *lane);

/* Yield or sleep, longer with each call. */
void backoff_wait(struct backoff *backoff);

uint64_t now_ns(void);

/* Add to a field of the job's result. */
#define lane_add(lane, field, by)					\
	__atomic_fetch_add(&(lane)->slot->job->result.field,		\
			   (uint64_t)(by), __ATOMIC_RELAXED)

/* Record the first error, mismatch or fault. */
void lane_note(struct lane *lane, int error, uint64_t where, uint64_t value);

#endif /* SOFTGPU_LANE_H */
