/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * A mapping as the controller sees it: contiguous ranges of DMA addresses.
 */
#ifndef _NVMEP_SEGMENTS_H
#define _NVMEP_SEGMENTS_H

#include <linux/types.h>

#include "core/data.h"

struct nvmep_ctrl;
struct sg_table;

/**
 * struct nvmep_segments - a part of a mapping, in order of offsets
 * @list: the segments; whole controller pages each
 * @count: of them
 * @length: bytes that are mapped
 *
 * Const once read.
 */
struct nvmep_segments {
	struct nvmep_segment *list;
	u32 count;
	u64 length;
};

int nvmep_walk_pause(void);
int nvmep_segments_read(struct nvmep_segments *segments,
			const struct nvmep_ctrl *ctrl, struct sg_table *sgt,
			u64 offset, u64 length);
void nvmep_segments_free(struct nvmep_segments *segments);
const struct nvmep_segment *
nvmep_segments_find(const struct nvmep_segments *segments, u64 offset);

#endif /* _NVMEP_SEGMENTS_H */
