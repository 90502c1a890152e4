/* SPDX-License-Identifier: GPL-2.0-only */
/* Whether the device may master the bus; accesses are in vfio_user.h. */
#ifndef VFIO_USER_DMA_H
#define VFIO_USER_DMA_H

#include "vfu.h"

/*
 * After vfu_dma_enable(false) no request is sent any more and no guest memory is
 * accessed.  Requests that were sent before may still be answered.
 */
void vfu_dma_enable(struct vfu *vfu, bool enable);

#endif /* VFIO_USER_DMA_H */
