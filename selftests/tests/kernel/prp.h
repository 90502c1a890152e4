/* SPDX-License-Identifier: GPL-2.0-only */
/* What kmod/core/prp_sgl.c needs of the kernel and of the module, for unit-prp. */
#ifndef SELFTESTS_PRP_H
#define SELFTESTS_PRP_H

#include "kernel.h"

typedef u8 blk_status_t;

#define BLK_STS_OK		0
#define BLK_STS_RESOURCE	9
#define BLK_STS_IOERR		10
#define SZ_4K			0x1000
#define SZ_8M			0x800000

struct bio_vec {
	void *page;
};

struct percpu_ref;

/* The last entry has no @next. */
struct scatterlist {
	dma_addr_t address;
	unsigned int length;
	struct scatterlist *next;
};

struct sg_table {
	struct scatterlist *sgl;
};

#define sg_dma_address(sg)	((sg)->address)
#define sg_dma_len(sg)		((sg)->length)
#define sg_next(sg)		((sg)->next)

struct dma_pool;
struct dma_pool *dma_pool_create(const char *name, void *dev, size_t size, size_t align, size_t boundary);
void dma_pool_destroy(struct dma_pool *pool);
void *dma_pool_alloc(struct dma_pool *pool, int flags, dma_addr_t *dma);
void dma_pool_free(struct dma_pool *pool, void *memory, dma_addr_t dma);

/* kmod/compat.h */
#define _NVMEP_COMPAT_H
struct dma_iova_state {
	u64 address;
};

/* kmod/nvme.h, kmod/core/ctrl.h, quirks.h, request.h */
#define _NVMEP_CTRL_H
#define _NVMEP_QUIRKS_H
#define _NVMEP_REQUEST_H
#define NVME_CTRL_SGLS_BYTE_ALIGNED	1
#define NVME_CTRL_SGLS_DWORD_ALIGNED	2
#define NVME_CMD_SGL_METABUF		0x40
#define NVMEP_QUIRK_LISTS_ALIGN_512	1

struct nvme_command {
	struct {
		u8 flags;
		struct {
			__le64 prp1;
			__le64 prp2;
		} dptr;
	} common;
};

struct request_queue;

struct request {
	struct request_queue *q;
	struct nvmep_request *req;
};

struct nvmep_ctrl {
	void *dev;
	u32 page_size;
	u32 sgls;
	unsigned long quirks;
	struct request_queue *admin_q;
	struct dma_pool *prp_pool;
	struct dma_pool *prp_small_pool;
};

#include "../../../kmod/core/data.h"

struct nvmep_request {
	struct nvme_command sqe;
	struct nvmep_data data;
};

static inline struct nvmep_request *nvmep_request(struct request *rq)
{
	return rq->req;
}

#endif /* SELFTESTS_PRP_H */
