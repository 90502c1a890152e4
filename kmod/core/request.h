/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * A command on its way: the part of a blk-mq request that is ours, for I/O and
 * admin queues alike.
 */
#ifndef _NVMEP_REQUEST_H
#define _NVMEP_REQUEST_H

#include <linux/blk-mq.h>

#include "compat.h"
#include "data.h"
#include "nvme.h"

struct nvmep_failures;
struct nvmep_queue;

/*
 * A command identifier is the tag, with a count in the upper bits that moves
 * with each use: an entry that arrives twice or too late names no request.  The
 * count is the tag's and not the request's, since below an I/O scheduler any
 * request may have any tag.
 */
#define NVMEP_CID_TAG_BITS		12
#define NVMEP_CID_TAG_MASK		(BIT(NVMEP_CID_TAG_BITS) - 1)
#define NVMEP_CID_NONE			0xffff	/* of no tag */

/* nvmep_request.flags */
#define NVMEP_REQUEST_USER	BIT(0)	/* admin: only while the controller is LIVE */
#define NVMEP_REQUEST_BOUND	BIT(1)	/* admin: only in @generation */
#define NVMEP_REQUEST_CANCELLED	BIT(2)	/* the controller was stopped under it */
#define NVMEP_REQUEST_ABORTED	BIT(3)	/* an Abort command was sent for it */
#define NVMEP_REQUEST_SPAN	BIT(4)	/* its data is @data.span */
#define NVMEP_REQUEST_PIECES	BIT(5)	/* its data is @data.pieces */

/**
 * struct nvmep_request - blk_mq_rq_to_pdu() of every request
 * @sqe: the command; the CID and data pointers are filled when it is queued
 * @result: dwords 0 and 1 of the completion
 * @status: NVMe status, 0 for success, as of now
 * @flags: NVMEP_REQUEST_*
 * @retries: times the command was sent again
 * @cid: under way, NVMEP_CID_NONE when its end is known
 * @generation: see %NVMEP_REQUEST_BOUND
 * @unmapped: jiffies since which it was tried in vain to map the data; 0: it was not
 * @data: the data
 */
struct nvmep_request {
	struct nvme_sqe sqe;
	u64 result;
	u16 status;
	u8 flags;
	u8 retries;
	u16 cid;
	u32 generation;
	unsigned long unmapped;
	struct nvmep_data data;
};

static inline struct nvmep_request *nvmep_request(struct request *rq)
{
	return blk_mq_rq_to_pdu(rq);
}

/* Before the first attempt: what counts over several of them. */
static inline void nvmep_request_first(struct request *rq)
{
	struct nvmep_request *req = nvmep_request(rq);

	req->retries = 0;
	req->unmapped = 0;
	req->data.metadata_length = 0;
	rq->rq_flags |= RQF_DONTPREP;
}

struct request *nvmep_request_alloc(struct request_queue *queue,
				    const struct nvme_sqe *sqe,
				    blk_opf_t more, blk_mq_req_flags_t flags);
blk_status_t nvmep_request_prepare(struct nvmep_queue *queue,
				   struct request *rq);
void nvmep_request_submit_list(struct nvmep_queue *queue, struct rq_list *list);
blk_status_t nvmep_request_issue(struct nvmep_queue *queue, struct request *rq,
				 bool ring);
void nvmep_request_entry(struct nvmep_queue *queue, const struct nvme_cqe *cqe,
			 struct io_comp_batch *batch);
void nvmep_request_end(struct request *rq, struct nvmep_failures *failures);
void nvmep_request_cancel_all(struct blk_mq_tag_set *tags);
int nvmep_request_status(struct request *rq, blk_status_t status);

#endif /* _NVMEP_REQUEST_H */
