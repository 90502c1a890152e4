/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * DMA mapping of the data of commands.
 */
#ifndef _NVMEP_DATA_H
#define _NVMEP_DATA_H

#include <linux/blk_types.h>
#include <linux/scatterlist.h>
#include <linux/sizes.h>

#include "compat.h"

struct nvmep_ctrl;
struct percpu_ref;
struct request;

/* Limit of one command: NVMEP_MAX_LISTS pages of PRP lists must describe it. */
#define NVMEP_MAX_TRANSFER		SZ_8M
#define NVMEP_PRPS_PER_LIST		512
#define NVMEP_PRPS_PER_SMALL_LIST	32
#define NVMEP_MAX_LISTS			5
#define NVMEP_INLINE_SEGMENTS		2
#define NVMEP_INLINE_BVECS		2

/*
 * Limits of PRP entries: segments meet at page boundaries and start at dwords.
 */
#define NVMEP_DATA_BOUNDARY		(SZ_4K - 1)
#define NVMEP_DATA_ALIGNMENT		3

/**
 * struct nvmep_segment - one contiguous run of an imported buffer's addresses
 * @offset: of its first byte in the buffer
 * @length: bytes
 * @dma: DMA address of its first byte, in the controller's domain
 */
struct nvmep_segment {
	u64 offset;
	u64 length;
	dma_addr_t dma;
};

/**
 * struct nvmep_dma_range - range of an imported buffer, the data of one command
 * @segment: segment of its first byte; those that follow in the array cover the
 *	rest.  Each consists of whole controller pages
 * @offset: of its first byte in the buffer
 * @length: bytes
 * @users: keeps the buffer mapped; the command holds a reference until it has
 *	completed or was cancelled
 */
struct nvmep_dma_range {
	const struct nvmep_segment *segment;
	u64 offset;
	u32 length;
	struct percpu_ref *users;
};

/**
 * struct nvmep_bvecs - pinned pages, the data of one command without a bio
 * @vec: first segment; each but the first starts and each but the last ends at
 *	a page boundary
 * @skip: offset of the data in the first segment, bytes
 * @length: bytes
 * @count: segments
 * @own: storage for @vec of a caller whose own array is freed before the
 *	command has ended
 *
 * The caller keeps the pages pinned until the command has ended.
 */
struct nvmep_bvecs {
	const struct bio_vec *vec;
	u32 skip;
	u32 length;
	u32 count;
	struct bio_vec own[NVMEP_INLINE_BVECS];
};

/**
 * struct nvmep_data - the data of a command and how it was mapped
 * @length: bytes of the single segment that was mapped, 0 for none
 * @attributes: DMA attributes of that mapping
 * @linked: bytes of the segments that were linked into @iova, 0 for none
 * @entries: entries of @table that were mapped, 0 for none
 * @address: DMA address of the single segment
 * @iova: one contiguous IOVA range for several segments
 * @table: scatter list of several segments where @iova is not available
 * @lists: PRP lists, each linked to the next by its last entry
 * @list_dma: DMA address of the first of @lists
 * @list_count: number of @lists
 * @list_small: the only list is from the pool of small lists
 * @metadata: kernel buffer of the metadata; passthrough commands only
 * @metadata_length: bytes, 0 for none
 * @metadata_dma: DMA address of @metadata while the command is in flight
 * @inline_segments: first chunk of @table, enough for small commands
 * @range: with %NVMEP_REQUEST_DMA_RANGE; of the members above only PRP lists
 *	are in use
 * @bvecs: with %NVMEP_REQUEST_BVECS
 *
 * At most one of @length, @linked and @entries is not 0: it selects how to
 * unmap.  Part of struct nvmep_request and owned as that is.
 */
struct nvmep_data {
	unsigned int length;
	unsigned int attributes;
	unsigned int linked;
	unsigned int entries;
	dma_addr_t address;
	struct dma_iova_state iova;
	struct sg_table table;
	__le64 *lists[NVMEP_MAX_LISTS];
	dma_addr_t list_dma;
	unsigned int list_count;
	bool list_small;
	void *metadata;
	unsigned int metadata_length;
	dma_addr_t metadata_dma;
	struct scatterlist inline_segments[NVMEP_INLINE_SEGMENTS];
	union {
		struct nvmep_dma_range range;
		struct nvmep_bvecs bvecs;
	};
};

int nvmep_data_init(struct nvmep_ctrl *ctrl);
void nvmep_data_exit(struct nvmep_ctrl *ctrl);
u32 nvmep_transfer_limit(const struct nvmep_ctrl *ctrl);
blk_status_t nvmep_data_map(struct nvmep_ctrl *ctrl, struct request *rq);
void nvmep_data_unmap(struct nvmep_ctrl *ctrl, struct request *rq);

#endif /* _NVMEP_DATA_H */
