/* SPDX-License-Identifier: GPL-2.0-only */
/* Export of GPU memory as dma-bufs. */
#ifndef _SOFTGPU_BUFFER_H
#define _SOFTGPU_BUFFER_H

#include "softgpu.h"

int softgpu_alloc(struct softgpu_file *file, struct softgpu_alloc *alloc);
int softgpu_move(struct softgpu_file *file, struct softgpu_move *move);

/* Returns whether it was exported by @gpu. */
bool softgpu_owns(const struct softgpu *gpu, const struct dma_buf *dmabuf);

/**
 * softgpu_buffers_revoke() - revoke the memory of all dma-bufs
 * @gpu: removed device
 *
 * On return it is unmapped, except by importers that did not unmap it in time, which is logged.
 */
void softgpu_buffers_revoke(struct softgpu *gpu);

#endif /* _SOFTGPU_BUFFER_H */
