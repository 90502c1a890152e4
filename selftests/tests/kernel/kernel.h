/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * What kmod/core/prp_sgl.c and kmod/peer/mediate.c need of the kernel and of the module, for unit-prp,
 * unit-mediate and fuzz_mediate: the stand-ins of the module's types have the members that they use.
 */
#ifndef SELFTESTS_KERNEL_H
#define SELFTESTS_KERNEL_H

#include <endian.h>
#include <errno.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <linux/types.h>

typedef uint8_t u8;
typedef uint16_t u16;
typedef uint32_t u32;
typedef uint64_t u64;
typedef u64 dma_addr_t;
typedef u8 blk_status_t;

#define BLK_STS_OK		0
#define BLK_STS_RESOURCE	9
#define BLK_STS_IOERR		10
#define GFP_ATOMIC		0

#define cpu_to_le64(x)		htole64(x)
#define le64_to_cpu(x)		le64toh(x)
#define cpu_to_le32(x)		htole32(x)
#define le32_to_cpu(x)		le32toh(x)
#define lower_32_bits(x)	((u32)(x))
#define upper_32_bits(x)	((u32)((x) >> 32))
#define fallthrough		__attribute__((__fallthrough__))
#define min(a, b)		((a) < (b) ? (a) : (b))
#define min_t(type, a, b)	min((type)(a), (type)(b))
#define IS_ALIGNED(x, a)	(((x) & ((typeof(x))(a) - 1)) == 0)
#define DIV_ROUND_UP(n, d)	(((n) + (d) - 1) / (d))
#define WARN_ON_ONCE(condition)	(kernel_warned |= (condition))

/* A warning fails the test. */
extern bool kernel_warned;

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

enum nvme_opcode {
	nvme_cmd_flush = 0x00,
	nvme_cmd_write = 0x01,
	nvme_cmd_read = 0x02,
	nvme_cmd_write_zeroes = 0x08,
};

enum {
	NVME_RW_LR = 1 << 15,
	NVME_RW_FUA = 1 << 14,
	NVME_SC_INVALID_OPCODE = 0x001,
	NVME_SC_INVALID_FIELD = 0x002,
	NVME_SC_DATA_XFER_ERROR = 0x004,
	NVME_SC_INTERNAL = 0x006,
	NVME_SC_INVALID_NS = 0x00b,
	NVME_SC_PRP_INVALID_OFFSET = 0x013,
	NVME_SC_LBA_RANGE = 0x080,
	NVME_SC_READ_ONLY = 0x182,
	NVME_SC_ACCESS_DENIED = 0x286,
	NVME_STATUS_DNR = 0x4000,
};

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

#endif /* SELFTESTS_KERNEL_H */
