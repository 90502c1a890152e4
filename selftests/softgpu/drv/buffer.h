/* SPDX-License-Identifier: GPL-2.0-only */
/* Memory of the GPU as dma-bufs. */
#ifndef _SOFTGPU_BUFFER_H
#define _SOFTGPU_BUFFER_H

#include "softgpu.h"

int softgpu_alloc(struct softgpu_file *file, struct softgpu_alloc *alloc);
int softgpu_move(struct softgpu_file *file, struct softgpu_move *move);

/* Is it one of @gpu's own? */
bool softgpu_owns(const struct softgpu *gpu, const struct dma_buf *dmabuf);

/**
 * softgpu_buffers_revoke() - take the memory away from all dma-bufs
 * @gpu: device that is gone
 *
 * On return nobody has it mapped but importers that did not let go in time,
 * which is logged.
 */
void softgpu_buffers_revoke(struct softgpu *gpu);

#endif /* _SOFTGPU_BUFFER_H */
