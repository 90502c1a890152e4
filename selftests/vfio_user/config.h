/* SPDX-License-Identifier: GPL-2.0-only */
/* Config space: built, brought back to power-on, accessed. */
#ifndef VFIO_USER_CONFIG_H
#define VFIO_USER_CONFIG_H

#include "vfu.h"

int vfu_config_init(struct vfu *vfu);
void vfu_config_reset(struct vfu *vfu);
void vfu_config_read(struct vfu *vfu, uint64_t offset, void *data,
		     uint32_t count);

/* Returns whether it initiated a function level reset, which is the caller's. */
bool vfu_config_write(struct vfu *vfu, uint64_t offset, const void *data,
		      uint32_t count);

/* Whether command register and power state let the device master the bus. */
bool vfu_config_allows_dma(const struct vfu *vfu);

#endif /* VFIO_USER_CONFIG_H */
