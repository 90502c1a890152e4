/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * A command on its way: the part of a blk-mq request that is ours, for I/O and
 * admin queues alike, and the memory its data lies in.
 */
#ifndef _NVMEP_REQUEST_H
#define _NVMEP_REQUEST_H

#include <linux/blk-mq.h>
#include <linux/scatterlist.h>

#include "nvme.h"

struct nvmep_ctrl;
struct nvmep_queue;

/* Most bytes of one command: what PRP lists of this many pages describe. */
#define NVMEP_MAX_TRANSFER		SZ_8M
#define NVMEP_PRPS_PER_LIST		512
#define NVMEP_MAX_LISTS			5
#define NVMEP_INLINE_SEGMENTS		2

/*
 * A command identifier is the tag, with a count in the upper bits that moves
 * with each use: an entry that arrives twice or too late names no request.
 */
#define NVMEP_CID_TAG_BITS		12
#define NVMEP_CID_TAG_MASK		(BIT(NVMEP_CID_TAG_BITS) - 1)

/**
 * struct nvmep_data - where the data of a command lies, as the controller sees
 * @table: scatter list, chained behind @inline_segments
 * @entries: of it that were mapped, 0 for none
 * @lists: PRP lists, each chained to the next by its last entry
 * @list_dma: address of the first
 * @list_count: how many
 * @metadata: kernel buffer of the metadata, of passthrough commands only
 * @metadata_length: bytes, 0 for none
 * @metadata_dma: address of @metadata while the command is under way
 * @inline_segments: enough for most small commands
 */
struct nvmep_data {
	struct sg_table table;
	unsigned int entries;
	__le64 *lists[NVMEP_MAX_LISTS];
	dma_addr_t list_dma;
	unsigned int list_count;
	void *metadata;
	unsigned int metadata_length;
	dma_addr_t metadata_dma;
	struct scatterlist inline_segments[NVMEP_INLINE_SEGMENTS];
};

/* nvmep_request.flags */
#define NVMEP_REQUEST_USER	BIT(0)	/* admin: only while the controller is LIVE */
#define NVMEP_REQUEST_BOUND	BIT(1)	/* admin: only in @generation */
#define NVMEP_REQUEST_CANCELLED	BIT(2)	/* the controller was stopped under it */
#define NVMEP_REQUEST_ABORTED	BIT(3)	/* an Abort command was sent for it */

/**
 * struct nvmep_request - blk_mq_rq_to_pdu() of every request
 * @sqe: the command; the CID and data pointers are filled when it is queued
 * @result: dwords 0 and 1 of the completion
 * @status: NVMe status, 0 for success, as of now
 * @flags: NVMEP_REQUEST_*
 * @retries: times the command was sent again
 * @uses: the count in the CID; survives the request
 * @generation: see %NVMEP_REQUEST_BOUND
 * @data: the data
 */
struct nvmep_request {
	struct nvme_sqe sqe;
	u64 result;
	u16 status;
	u8 flags;
	u8 retries;
	u8 uses;
	u32 generation;
	struct nvmep_data data;
};

static inline struct nvmep_request *nvmep_request(struct request *rq)
{
	return blk_mq_rq_to_pdu(rq);
}

/* data.c */
u32 nvmep_transfer_limit(const struct nvmep_ctrl *ctrl);
blk_status_t nvmep_data_map(struct nvmep_ctrl *ctrl, struct request *rq);
void nvmep_data_unmap(struct nvmep_ctrl *ctrl, struct request *rq);

/* request.c */
struct request *nvmep_request_alloc(struct request_queue *queue,
				    const struct nvme_sqe *sqe,
				    blk_mq_req_flags_t flags);
struct request *nvmep_request_find(struct blk_mq_tags *tags, u16 cid);
blk_status_t nvmep_request_issue(struct nvmep_queue *queue, struct request *rq,
				 bool ring);
void nvmep_request_finish(struct request *rq, u16 status, u64 result);
void nvmep_request_complete(struct request *rq);
void nvmep_request_cancel_all(struct blk_mq_tag_set *tags);
int nvmep_request_status(struct request *rq, blk_status_t status);

/* timeout.c */
enum blk_eh_timer_return nvmep_timeout(struct request *rq);

#endif /* _NVMEP_REQUEST_H */
