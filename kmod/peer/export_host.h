/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * dma-bufs of host pages: rings and the status page.
 */
#ifndef _NVMEP_EXPORT_HOST_H
#define _NVMEP_EXPORT_HOST_H

struct dma_buf;
struct nvmep_exports;
struct nvmep_host_pages;

struct dma_buf *nvmep_export_ring(struct nvmep_exports *exports,
				  struct nvmep_host_pages *pages);
struct dma_buf *nvmep_export_status(struct nvmep_exports *exports,
				    struct nvmep_host_pages *pages);

#endif /* _NVMEP_EXPORT_HOST_H */
