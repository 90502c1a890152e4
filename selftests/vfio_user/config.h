/* SPDX-License-Identifier: GPL-2.0-only */
/* Config space: construction, reset and access. */
#ifndef VFIO_USER_CONFIG_H
#define VFIO_USER_CONFIG_H

#include "vfu.h"

int vfu_config_init(struct vfu *vfu);
void vfu_config_reset(struct vfu *vfu);
void vfu_config_read(struct vfu *vfu, uint64_t offset, void *data,
		     uint32_t count);

/* Returns whether the caller has to perform a function level reset. */
bool vfu_config_write(struct vfu *vfu, uint64_t offset, const void *data,
		      uint32_t count);

/* Returns whether command register and power state allow bus mastering. */
bool vfu_config_allows_dma(const struct vfu *vfu);

#endif /* VFIO_USER_CONFIG_H */
