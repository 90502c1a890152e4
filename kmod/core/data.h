/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Where the data of a command lies, as the controller sees it.
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

/* Most bytes of one command: what PRP lists of this many pages describe. */
#define NVMEP_MAX_TRANSFER		SZ_8M
#define NVMEP_PRPS_PER_LIST		512
#define NVMEP_PRPS_PER_SMALL_LIST	32
#define NVMEP_MAX_LISTS			5
#define NVMEP_INLINE_SEGMENTS		2
#define NVMEP_OWN_PIECES		2

/* What PRP entries can describe: pieces that meet at pages and start at dwords. */
#define NVMEP_DATA_BOUNDARY		(SZ_4K - 1)
#define NVMEP_DATA_ALIGNMENT		3

/**
 * struct nvmep_segment - a contiguous range of DMA addresses
 * @offset: of its first byte in what it is a segment of
 * @length: bytes
 * @dma: address of its first byte in the controller's domain
 */
struct nvmep_segment {
	u64 offset;
	u64 length;
	dma_addr_t dma;
};

/**
 * struct nvmep_span - memory of a peer's that one command moves, mapped already
 * @segment: the one that it begins in; more follow in the array as far as it reaches.
 *	Whole controller pages each
 * @offset: of its first byte, counted as @segment->offset is
 * @length: bytes
 * @users: keeps all of it mapped: a reference of it is the command's, until the
 *	controller is done with it
 */
struct nvmep_span {
	const struct nvmep_segment *segment;
	u64 offset;
	u32 length;
	struct percpu_ref *users;
};

/**
 * struct nvmep_pieces - memory that one command moves, described without a bio
 * @vec: the piece that it begins in; more follow in the array as far as it reaches.
 *	Each but the first begins at a page, each but the last ends at one
 * @skip: bytes of that piece before it
 * @length: bytes
 * @count: pieces
 * @own: room for @vec, for who has no array that lives as long as the command
 *
 * Who made the request keeps the memory in place until the command has ended.
 */
struct nvmep_pieces {
	const struct bio_vec *vec;
	u32 skip;
	u32 length;
	u32 count;
	struct bio_vec own[NVMEP_OWN_PIECES];
};

/**
 * struct nvmep_data - where the data of a command lies, as the controller sees
 * @length: bytes of a single segment that was mapped, 0 for none
 * @attributes: that the single segment was mapped with
 * @linked: bytes of several segments that were mapped into @iova, 0 for none
 * @entries: of @table that were mapped, 0 for none
 * @address: of the single segment
 * @iova: one range of addresses for several segments
 * @table: else a scatter list of them, chained behind @inline_segments
 * @lists: PRP lists, each chained to the next by its last entry
 * @list_dma: address of the first
 * @list_count: how many
 * @list_small: the only one is of the pool of small lists
 * @metadata: kernel buffer of the metadata, of passthrough commands only
 * @metadata_length: bytes, 0 for none
 * @metadata_dma: address of @metadata while the command is under way
 * @inline_segments: enough for most small commands
 * @span: the data of a command with %NVMEP_REQUEST_SPAN, which has none of the above
 *	but lists
 * @pieces: the data of a command with %NVMEP_REQUEST_PIECES
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
		struct nvmep_span span;
		struct nvmep_pieces pieces;
	};
};

int nvmep_data_init(struct nvmep_ctrl *ctrl);
void nvmep_data_exit(struct nvmep_ctrl *ctrl);
u32 nvmep_transfer_limit(const struct nvmep_ctrl *ctrl);
blk_status_t nvmep_data_map(struct nvmep_ctrl *ctrl, struct request *rq);
void nvmep_data_unmap(struct nvmep_ctrl *ctrl, struct request *rq);

#endif /* _NVMEP_DATA_H */
