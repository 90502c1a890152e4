/* SPDX-License-Identifier: GPL-2.0-only */
/* What the segments of kmod/peer/import.c need of the kernel and of the module, for unit-segments. */
#ifndef SELFTESTS_SEGMENTS_H
#define SELFTESTS_SEGMENTS_H

#include "prp.h"

#define U64_MAX			UINT64_MAX
#define max(a, b)		((a) > (b) ? (a) : (b))
#define for_each_sgtable_dma_sg(table, sg, i) \
	for (i = 0, sg = (table)->sgl; sg; i++, sg = sg_next(sg))

void *kvcalloc(size_t count, size_t size, int flags);
void kvfree(void *memory);

struct device {
	bool coherent;
	bool translated;
	/* Bounces if it is not 0. */
	dma_addr_t bounces;
};

static inline bool dev_is_dma_coherent(const struct device *dev)
{
	return dev->coherent;
}

static inline bool dma_need_sync(const struct device *dev, dma_addr_t address)
{
	return dev->bounces && dev->bounces == address;
}

static inline bool nvmep_route_translated(const struct device *dev)
{
	return dev->translated;
}

/* kmod/peer/import.h */
struct nvmep_segments {
	struct nvmep_segment *list;
	u32 count;
	u64 length;
};

int nvmep_walk_resched(void);
void nvmep_segments_free(struct nvmep_segments *segments);

#endif /* SELFTESTS_SEGMENTS_H */
