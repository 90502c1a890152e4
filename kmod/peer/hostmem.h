/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Host memory that the controller and peers use at once.
 */
#ifndef _NVMEP_HOSTMEM_H
#define _NVMEP_HOSTMEM_H

#include <linux/types.h>

struct device;
struct nvmep_ctrl;
struct nvmep_objects;
struct page;

/**
 * struct nvmep_host_pages - zeroed, physically contiguous, unmovable pages
 * @objects: const: where they are counted
 * @count: const
 * @pages: const: every one has its own reference count, so that a page that
 *	a process or a GPU driver holds outlives this structure
 */
struct nvmep_host_pages {
	struct nvmep_objects *objects;
	unsigned int count;
	struct page *pages[];
};

struct nvmep_host_pages *nvmep_host_pages_alloc(struct nvmep_ctrl *ctrl,
						size_t bytes);
void nvmep_host_pages_free(struct nvmep_host_pages *host);
bool nvmep_dma_bounces(struct device *dev, dma_addr_t dma, struct page *page);

#endif /* _NVMEP_HOSTMEM_H */
