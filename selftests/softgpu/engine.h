/* SPDX-License-Identifier: GPL-2.0-only */
/* Jobs of softgpu and the threads that run them. */
#ifndef SOFTGPU_ENGINE_H
#define SOFTGPU_ENGINE_H

#include "gpu.h"

/*
 * Start and end the engine threads; 0 or a negative errno.  @find_program: as
 * in struct gpu.
 */
int engines_start(struct gpu *gpu,
		  const struct program *(*find_program)(uint32_t number));
void engines_exit(struct gpu *gpu);

/* SOFTGPU_CONTROL_*; unknown values do nothing. */
void slot_control(struct slot *slot, uint32_t control);
bool slot_busy(struct slot *slot);

/* Abort all jobs and wait for their end, at most one second. */
void engines_abort(struct gpu *gpu);

#endif /* SOFTGPU_ENGINE_H */
