/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * dma-bufs of doorbells.
 */
#ifndef _NVMEP_EXPORT_DOORBELL_H
#define _NVMEP_EXPORT_DOORBELL_H

#include <linux/types.h>

struct dma_buf;
struct nvmep_doorbell;
struct nvmep_exports;

struct dma_buf *nvmep_export_doorbell(struct nvmep_exports *exports,
				      const struct nvmep_doorbell *doorbell,
				      bool allow_static);

#endif /* _NVMEP_EXPORT_DOORBELL_H */
