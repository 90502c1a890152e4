/* SPDX-License-Identifier: GPL-2.0-only */
/* Jobs in the slots of the device. */
#ifndef _SOFTGPU_JOB_H
#define _SOFTGPU_JOB_H

#include "softgpu.h"

int softgpu_start(struct softgpu_file *file, struct softgpu_start *start);
int softgpu_wait(struct softgpu_file *file, struct softgpu_wait *wait);
int softgpu_progress(struct softgpu_file *file, struct softgpu_wait *wait);
int softgpu_stop(struct softgpu_file *file, const struct softgpu_stop *stop);
void softgpu_jobs_close(struct softgpu_file *file);

/* After a reset all jobs are lost; called with hw_lock held for writing. */
void softgpu_jobs_lost(struct softgpu *gpu);

/* From the interrupt handler: jobs in these slots have ended. */
void softgpu_jobs_done(struct softgpu *gpu, u32 slots);

#endif /* _SOFTGPU_JOB_H */
