/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Commands of the CPU: the driver's part of a blk-mq request, for admin and I/O
 * queues.
 */
#ifndef _NVMEP_REQUEST_H
#define _NVMEP_REQUEST_H

#include <linux/blk-mq.h>

#include "compat.h"
#include "data.h"
#include "fault_inject.h"
#include "nvme.h"

struct nvmep_queue;

/*
 * A command identifier (CID) is the tag and, in the upper bits, a count that
 * changes with each use of the tag: a completion entry that arrives twice or
 * too late matches no request.  The count belongs to the tag and not to the
 * request, because an I/O scheduler assigns requests to tags in any order.
 */
#define NVMEP_CID_TAG_BITS		12
#define NVMEP_CID_TAG_MASK		(BIT(NVMEP_CID_TAG_BITS) - 1)
#define NVMEP_CID_NONE			0xffff	/* matches no tag */
/* The tag of nvmep_queue_execute(), above those of blk-mq. */
#define NVMEP_CID_OWN_TAG		(NVMEP_CID_TAG_MASK - 1)

/* nvmep_request.flags */
#define NVMEP_REQUEST_USER	BIT(0)	/* of user space; admin: needs LIVE */
#define NVMEP_REQUEST_BOUND	BIT(1)	/* admin: needs @generation */
#define NVMEP_REQUEST_CANCELLED	BIT(2)	/* the controller was stopped */
#define NVMEP_REQUEST_DMA_RANGE	BIT(3)	/* its data is @data.range */
#define NVMEP_REQUEST_BVECS	BIT(4)	/* its data is @data.bvecs */

/**
 * struct nvmep_request - blk_mq_rq_to_pdu() of every request
 * @sqe: the command; CID and data pointers are set when it is dispatched
 * @result: dwords 0 and 1 of the completion
 * @status: NVMe status, 0 for success
 * @flags: NVMEP_REQUEST_*
 * @retries: number of retries so far
 * @cid: CID while in flight, else NVMEP_CID_NONE; read racily by the completion
 *	handler, so accessed with READ_ONCE() and WRITE_ONCE()
 * @aborted: an Abort command was sent for it; not in @flags, which a stop may
 *	change at the same time
 * @generation: generation of the controller that the command was sent in; before
 *	that, see %NVMEP_REQUEST_BOUND.  Read racily by the timeout handler
 * @unmapped: jiffies of the first failure to map the data, 0 for none
 * @data: where the data is and how it was mapped
 *
 * Owned by the context that has the request: dispatch, then the completion or
 * cancellation of it, which blk-mq serialises.
 */
struct nvmep_request {
	struct nvme_command sqe;
	u64 result;
	u16 status;
	u8 flags;
	u8 retries;
	u16 cid;
	bool aborted;
	u32 generation;
	unsigned long unmapped;
	struct nvmep_data data;
};

/**
 * struct nvmep_failures - failed commands of one request queue
 * @errors: commands that ended with an error; passthrough commands of user
 *	space count only while @log_passthru is set
 * @retries: retries of commands
 * @log_passthru: log each failed passthrough command; READ_ONCE()
 * @fault: commands that are to fail; debugfs has its files
 *
 * sysfs attributes read and set the first three.
 */
struct nvmep_failures {
	atomic_long_t errors;
	atomic_long_t retries;
	bool log_passthru;
	struct nvmep_fault_inject fault;
};

static inline struct nvmep_request *nvmep_request(struct request *rq)
{
	return blk_mq_rq_to_pdu(rq);
}

/* Called before the first dispatch: state that lasts over retries. */
static inline void nvmep_request_init(struct request *rq)
{
	struct nvmep_request *req = nvmep_request(rq);

	req->retries = 0;
	req->unmapped = 0;
	req->data.metadata_length = 0;
	rq->rq_flags |= RQF_DONTPREP;
}

struct request *nvmep_request_alloc(struct request_queue *queue,
				    const struct nvme_command *sqe,
				    blk_opf_t more, blk_mq_req_flags_t flags);
int nvmep_request_map_buffer(struct request *rq, void *buffer,
			     unsigned int length);
blk_status_t nvmep_request_prepare(struct nvmep_queue *queue,
				   struct request *rq);
void nvmep_request_submit_list(struct nvmep_queue *queue, struct rq_list *list);
blk_status_t nvmep_request_submit(struct nvmep_queue *queue, struct request *rq,
				  bool ring);
void nvmep_request_handle_cqe(struct nvmep_queue *queue,
			      const struct nvme_completion *cqe,
			      struct io_comp_batch *batch);
int nvmep_queue_execute(struct nvmep_queue *queue, struct nvme_command *sqe,
			unsigned long timeout);
void nvmep_request_end(struct request *rq, struct nvmep_failures *failures);
bool nvmep_request_end_executed(struct request *rq, u16 status,
				struct nvmep_failures *failures,
				unsigned long *delay);
void nvmep_queue_cancel(struct nvmep_queue *queue);
int nvmep_request_status(struct request *rq, blk_status_t status);

#endif /* _NVMEP_REQUEST_H */
