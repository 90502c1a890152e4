/* SPDX-License-Identifier: GPL-2.0-only */
/* Enable and disable bus mastering; accesses are in vfio_user.h. */
#ifndef VFIO_USER_DMA_H
#define VFIO_USER_DMA_H

#include "vfu.h"

/*
 * After vfu_dma_enable(false) has returned, no request is sent and no guest memory is accessed.
 * Replies to earlier requests may still arrive.
 */
void vfu_dma_enable(struct vfu *vfu, bool enable);

#endif /* VFIO_USER_DMA_H */
