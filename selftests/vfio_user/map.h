/* SPDX-License-Identifier: GPL-2.0-only */
/* The DMA map: bus addresses that the client has shared. */
#ifndef VFIO_USER_MAP_H
#define VFIO_USER_MAP_H

#include "vfu.h"

/* Closes @fd. Returns a positive errno, as in replies. */
int vfu_map_add(struct vfu *vfu, const struct vfu_range *range, int fd,
		uint64_t offset);
int vfu_map_remove(struct vfu *vfu, uint64_t address, uint64_t size);
void vfu_map_clear(struct vfu *vfu);

/* The map's locks, struct vfu_shard. */
void vfu_map_init(struct vfu *vfu);
void vfu_map_destroy(struct vfu *vfu);
void vfu_map_read_lock(struct vfu *vfu);
void vfu_map_read_unlock(struct vfu *vfu);
void vfu_map_write_lock(struct vfu *vfu);
void vfu_map_write_unlock(struct vfu *vfu);

/* Index of the first range that ends after @address; called with the map locked. */
size_t vfu_map_find(const struct vfu *vfu, uint64_t address);

static inline uint64_t vfu_range_end(const struct vfu_range *range)
{
	return range->address + range->size;
}

#endif /* VFIO_USER_MAP_H */
