/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Host pages that the controller and peers access: rings, status page, control
 * page, host buffers.
 */
#ifndef _NVMEP_HOST_PAGES_H
#define _NVMEP_HOST_PAGES_H

#include <linux/types.h>

struct device;
struct dma_buf;
struct nvmep_ctrl;
struct nvmep_exports;
struct nvmep_leak_counters;
struct page;

/**
 * struct nvmep_host_pages - zeroed, unmovable pages
 * @leak_counters: const: counters of the controller
 * @count: const once they are allocated
 * @pages: const once they are allocated; contiguous, unless allocated by
 *	nvmep_host_pages_alloc_pieces().  Each page has its own reference
 *	count: a page that a process has mapped or a GPU driver has pinned
 *	outlives this structure
 */
struct nvmep_host_pages {
	struct nvmep_leak_counters *leak_counters;
	unsigned int count;
	struct page *pages[];
};

struct nvmep_host_pages *nvmep_host_pages_alloc(struct nvmep_ctrl *ctrl,
						size_t bytes);
struct nvmep_host_pages *
nvmep_host_pages_alloc_pieces(struct nvmep_ctrl *ctrl, size_t bytes);
void nvmep_host_pages_free(struct nvmep_host_pages *host);
bool nvmep_dma_bounces(struct device *dev);
bool nvmep_dma_needs_sync(struct device *dev, dma_addr_t dma, struct page *page);

struct dma_buf *nvmep_export_host_buffer(struct nvmep_exports *exports,
					 struct nvmep_host_pages *pages);
struct dma_buf *nvmep_export_ring(struct nvmep_exports *exports,
				  struct nvmep_host_pages *pages);
struct dma_buf *nvmep_export_status(struct nvmep_exports *exports,
				    struct nvmep_host_pages *pages);

#endif /* _NVMEP_HOST_PAGES_H */
