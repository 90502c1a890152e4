// SPDX-License-Identifier: GPL-2.0-only
/*
 * Transfers: reads and writes of the CPU whose data lies in an imported buffer.
 *
 * NVME_PEER_URING_CMD_IO has a buffer handle where passthrough has a user
 * address.  The peer layer resolves it to DMA addresses that were mapped at
 * import, and takes a reference that keeps them mapped until the request has
 * ended: see struct nvmep_dma_range.  So nothing is pinned, mapped or copied
 * here.
 * Rights, requests and queues are those of passthrough.
 *
 * NVME_PEER_URING_CMD_IO_VEC has a list of ranges, each of which becomes one
 * request.  It completes once, after its last request.  All ranges are checked
 * before the first request is issued:
 * - If io_uring must not sleep, all requests are allocated and prepared, then
 *   issued.
 * - Otherwise all ranges are checked with one request, then each request is
 *   issued before the next is allocated.  Sleeping for a tag while holding
 *   requests that are not issued would deadlock with a blk-mq freeze, which
 *   waits for those requests.
 */
#include <linux/atomic.h>
#include <linux/blk-mq.h>
#include <linux/nvme_peer.h>
#include <linux/percpu-refcount.h>
#include <linux/preempt.h>
#include <linux/uaccess.h>

#include "block.h"
#include "buffer_io.h"
#include "compat.h"
#include "core/ctrl.h"
#include "core/data.h"
#include "core/queue.h"
#include "core/request.h"
#include "cpu.h"
#include "namespace.h"
#include "passthru.h"
#include "uring.h"
#include "user_command.h"

/* They fill the command area of a 128-byte SQE, so each byte is checked. */
static_assert(sizeof(struct nvme_peer_uring_io) == 80);
static_assert(sizeof(struct nvme_peer_uring_io_vec) == 80);

/**
 * struct nvmep_transfer - driver data of an io_uring command
 * @status: as nvmep_request_status(); of a list, that of the first request to
 *	fail, set by cmpxchg() as requests end concurrently
 * @nsid: const: namespace identifier
 * @left: of a list: number of requests that have not ended, plus one for the
 *	submitter until it has issued all
 * @polled: const: as nvmep_uring_polled_queue()
 */
struct nvmep_transfer {
	s32 status;
	u32 nsid;
	atomic_t left;
	u16 polled;
};

static_assert(sizeof(struct nvmep_transfer) <=
	      sizeof_field(struct io_uring_cmd, pdu));

static struct nvmep_transfer *nvmep_transfer(struct io_uring_cmd *ioucmd)
{
	return (struct nvmep_transfer *)ioucmd->pdu;
}

/* Checks that do not depend on the namespace or the buffer. */
static bool nvmep_transfer_valid(const struct nvme_peer_uring_io *io)
{
	if (io->flags & ~NVME_PEER_IO_FUA ||
	    (io->opcode != NVME_PEER_IO_READ &&
	     io->opcode != NVME_PEER_IO_WRITE))
		return false;
	return !(io->offset & NVMEP_DATA_ALIGNMENT) && io->blocks;
}

/* True if a reserved word is not 0.  Reads memory shared with user space. */
static bool nvmep_transfer_any_set(const __u32 *words, size_t count)
{
	u32 seen = 0;
	size_t i;

	for (i = 0; i < count; i++)
		seen |= READ_ONCE(words[i]);
	return seen;
}

/* -EOPNOTSUPP without IORING_SETUP_SQE128; -EINVAL for a registered buffer. */
static int nvmep_transfer_check_issue(const struct io_uring_cmd *ioucmd,
				      unsigned int issue_flags)
{
	if (!(issue_flags & IO_URING_F_SQE128))
		return -EOPNOTSUPP;
	return ioucmd->flags & IORING_URING_CMD_FIXED ? -EINVAL : 0;
}

/* --- completion of a transfer ------------------------------------------- */

static void nvmep_transfer_finish(struct io_uring_cmd *ioucmd,
				  unsigned int issue_flags)
{
	nvmep_uring_done(ioucmd, nvmep_transfer(ioucmd)->status, 0,
			 issue_flags);
}

NVMEP_URING_TW_FN(nvmep_transfer_finish);

static __always_inline void nvmep_transfer_end(struct io_uring_cmd *ioucmd,
					       const struct io_comp_batch *batch)
{
	/* Polling also finds completions of other rings: not finished here. */
	if (nvmep_uring_polls(ioucmd, batch))
		nvmep_transfer_finish(ioucmd, 0);
	else
		nvmep_uring_complete_in_task(ioucmd, nvmep_transfer_finish_fn);
}

/* The controller no longer accesses the buffer: drop its reference. */
static enum rq_end_io_ret
nvmep_transfer_end_io(struct request *rq, blk_status_t error,
		      const struct io_comp_batch *batch)
{
	struct io_uring_cmd *ioucmd = rq->end_io_data;

	nvmep_transfer(ioucmd)->status = nvmep_request_status(rq, error);
	percpu_ref_put(nvmep_request(rq)->data.range.users);
	nvmep_transfer_end(ioucmd, batch);
	return RQ_END_IO_FREE;
}

NVMEP_END_IO_FN(nvmep_transfer_end_io);

/* --- submission of a transfer ------------------------------------------- */

/* The command may lie in shared memory: each field is read once. */
static int nvmep_transfer_parse(struct nvme_peer_uring_io *io,
				const struct nvme_peer_uring_io *user)
{
	*io = (struct nvme_peer_uring_io){
		.flags = READ_ONCE(user->flags),
		.opcode = READ_ONCE(user->opcode),
		.nsid = READ_ONCE(user->nsid),
		.handle = READ_ONCE(user->handle),
		.offset = READ_ONCE(user->offset),
		.lba = READ_ONCE(user->lba),
		.blocks = READ_ONCE(user->blocks),
	};
	if (nvmep_transfer_any_set(user->reserved, ARRAY_SIZE(user->reserved)))
		return -EINVAL;
	return nvmep_transfer_valid(io) ? 0 : -EINVAL;
}

/*
 * Completes the command.  The caller holds the request, so the format cannot
 * change.  This and the next function are inline because they are on the fast
 * path of each transfer.
 */
static __always_inline int
nvmep_transfer_build(const struct nvmep_ns *ns,
		     const struct nvme_peer_uring_io *io,
		     struct nvme_command *sqe)
{
	u16 control = nvmep_rw_protect(sqe, ns, io->lba);

	/* Opcodes differ between command sets. */
	if (ns->ids.csi)
		return -EOPNOTSUPP;
	if ((u64)io->blocks << ns->block_shift > ns->ctrl->max_transfer)
		return -EMSGSIZE;
	if (io->flags & NVME_PEER_IO_FUA)
		control |= NVME_RW_FUA;
	nvmep_rw_range(sqe, io->lba, io->blocks, control);
	return nvmep_rw_metadata(ns, sqe) ? -EMEDIUMTYPE : 0;
}

/*
 * On success the request holds a reference to the mapping, which its end_io
 * drops.
 */
static __always_inline int
nvmep_transfer_prepare(const struct nvmep_ns *ns,
		       const struct nvme_peer_uring_io *io, void *peer,
		       struct request *rq)
{
	struct nvmep_request *req = nvmep_request(rq);
	int ret;

	ret = nvmep_transfer_build(ns, io, &req->sqe);
	if (ret)
		return ret;
	req->flags |= NVMEP_REQUEST_DMA_RANGE;
	return ns->ctrl->peer_ops->range(peer, io->handle, io->offset,
					 io->blocks << ns->block_shift,
					 rq_dma_dir(rq), &req->data.range);
}

static int nvmep_transfer_submit(const struct nvmep_passthru *to,
				 const struct nvme_peer_uring_io *io,
				 void *peer, struct io_uring_cmd *ioucmd,
				 unsigned int issue_flags)
{
	struct nvmep_user_command command = {
		.sqe.common.opcode = io->opcode,
		.sqe.common.nsid = cpu_to_le32(io->nsid),
	};
	struct request *rq;
	int ret;

	ret = nvmep_command_check(to, &command);
	if (ret)
		return ret;
	rq = nvmep_user_request(to, &command,
				nvmep_uring_polled(to, issue_flags),
				issue_flags & IO_URING_F_NONBLOCK ?
				BLK_MQ_REQ_NOWAIT : 0);
	if (IS_ERR(rq))
		return PTR_ERR(rq);
	ret = nvmep_transfer_prepare(to->ns, io, peer, rq);
	if (ret) {
		blk_mq_free_request(rq);
		return ret;
	}
	*nvmep_transfer(ioucmd) = (struct nvmep_transfer){
		.nsid = io->nsid,
		.polled = nvmep_uring_polled_queue(rq),
	};
	rq->end_io_data = ioucmd;
	rq->end_io = nvmep_transfer_end_io_fn;
	nvmep_uring_send(rq);
	return -EIOCBQUEUED;
}

/*
 * Under namespaces_srcu.  NULL also if its disk is being added or was deleted.
 */
static struct nvmep_ns *nvmep_transfer_namespace(struct nvmep_ctrl *ctrl,
						 u32 nsid)
{
	struct nvmep_ns *ns = nvmep_ns_find(ctrl, nsid);

	return ns && disk_live(ns->disk) ? ns : NULL;
}

/**
 * nvmep_transfer_cmd() - submit NVME_PEER_URING_CMD_IO
 * @from: the controller's device node
 * @peer: what peer_ops->open() returned for the file
 * @ioucmd: io_uring command
 * @issue_flags: IO_URING_F_*
 *
 * io_uring calls it again for the same command after -EAGAIN.
 *
 * Return: -EIOCBQUEUED or another negative error code, see struct
 * nvme_peer_uring_io.
 */
int nvmep_transfer_cmd(const struct nvmep_passthru *from, void *peer,
		       struct io_uring_cmd *ioucmd, unsigned int issue_flags)
{
	struct nvmep_cpu *cpu = from->ctrl->cpu;
	struct nvmep_passthru to = *from;
	struct nvme_peer_uring_io io;
	int index, ret;

	ret = nvmep_transfer_check_issue(ioucmd, issue_flags);
	if (!ret)
		ret = nvmep_transfer_parse(&io, nvmep_uring_payload(ioucmd));
	if (ret)
		return ret;
	index = srcu_read_lock(&cpu->namespaces_srcu);
	to.ns = nvmep_transfer_namespace(to.ctrl, io.nsid);
	ret = to.ns ? nvmep_transfer_submit(&to, &io, peer, ioucmd,
					    issue_flags) : -ENODEV;
	srcu_read_unlock(&cpu->namespaces_srcu, index);
	return ret;
}

/**
 * nvmep_transfer_iopoll() - poll for completions on the queue of a command
 * @ctrl: controller
 * @ioucmd: command issued by nvmep_transfer_cmd() or nvmep_ranges_cmd()
 * @batch: completion batch
 *
 * Races with the completion of the command and with removal of its namespace.
 * If it is still linked, its removal, and so the freeing of the queues, waits
 * for this SRCU reader.
 *
 * Return: number of completions found, of any ring; 0 if the command is not
 * polled.
 */
int nvmep_transfer_iopoll(struct nvmep_ctrl *ctrl, struct io_uring_cmd *ioucmd,
			  struct io_comp_batch *batch)
{
	const struct nvmep_transfer *transfer = nvmep_transfer(ioucmd);
	unsigned int found = 0;
	int index;

	if (transfer->polled == NVMEP_URING_NOT_POLLED)
		return 0;
	index = srcu_read_lock(&ctrl->cpu->namespaces_srcu);
	if (nvmep_ns_find(ctrl, transfer->nsid))
		found = nvmep_queue_poll_batch(ctrl->queues[transfer->polled],
					       batch);
	srcu_read_unlock(&ctrl->cpu->namespaces_srcu, index);
	return found;
}

/**
 * struct nvmep_ranges - a list during its submission, on the submitter's stack
 * @to: device node and namespace
 * @peer: what peer_ops->open() returned for the file
 * @ioucmd: io_uring command
 * @command: command of all ranges
 * @flags: NVME_PEER_IO_* of all ranges
 * @opcode: opcode of all ranges, 32 bits as passed by user space
 * @count: number of ranges
 * @list: copy of the ranges, checked and used
 */
struct nvmep_ranges {
	struct nvmep_passthru to;
	void *peer;
	struct io_uring_cmd *ioucmd;
	struct nvmep_user_command command;
	u32 flags;
	u32 opcode;
	u32 count;
	struct nvme_peer_io_range list[NVME_PEER_IO_RANGES];
};

/* --- completion of a list ----------------------------------------------- */

/* The last request to end completes the io_uring command. */
static enum rq_end_io_ret
nvmep_ranges_end_io(struct request *rq, blk_status_t error,
		    const struct io_comp_batch *batch)
{
	struct io_uring_cmd *ioucmd = rq->end_io_data;
	struct nvmep_transfer *transfer = nvmep_transfer(ioucmd);
	int status = nvmep_request_status(rq, error);

	if (status)
		cmpxchg(&transfer->status, 0, status);
	percpu_ref_put(nvmep_request(rq)->data.range.users);
	if (atomic_dec_and_test(&transfer->left))
		nvmep_transfer_end(ioucmd, batch);
	return RQ_END_IO_FREE;
}

NVMEP_END_IO_FN(nvmep_ranges_end_io);

/* --- parsing of a list -------------------------------------------------- */

/* Range number @index as a single transfer. */
static struct nvme_peer_uring_io nvmep_range(const struct nvmep_ranges *ranges,
					     u32 index)
{
	const struct nvme_peer_io_range *range = &ranges->list[index];

	return (struct nvme_peer_uring_io){
		.flags = ranges->flags,
		.opcode = ranges->opcode,
		.handle = range->handle,
		.offset = range->offset,
		.lba = range->lba,
		.blocks = range->blocks,
	};
}

/* Not inlined: the list takes most of the caller's stack frame. */
static noinline_for_stack int nvmep_ranges_copy(struct nvmep_ranges *ranges,
						u64 address)
{
	struct nvme_peer_uring_io io;
	u32 i;

	if (copy_from_user(ranges->list, u64_to_user_ptr(address),
			   ranges->count * sizeof(*ranges->list)))
		return -EFAULT;
	for (i = 0; i < ranges->count; i++) {
		io = nvmep_range(ranges, i);
		if (!nvmep_transfer_valid(&io))
			return -EINVAL;
	}
	return 0;
}

/* The command may lie in shared memory: each field is read once. */
static int nvmep_ranges_parse(struct nvmep_ranges *ranges,
			      const struct nvme_peer_uring_io_vec *user)
{
	ranges->flags = READ_ONCE(user->flags);
	ranges->opcode = READ_ONCE(user->opcode);
	ranges->count = READ_ONCE(user->count);
	ranges->command = (struct nvmep_user_command){
		.sqe.common.opcode = ranges->opcode,
		.sqe.common.nsid = cpu_to_le32(READ_ONCE(user->nsid)),
	};
	if (!ranges->count ||
	    nvmep_transfer_any_set(user->reserved, ARRAY_SIZE(user->reserved)))
		return -EINVAL;
	if (ranges->count > NVME_PEER_IO_RANGES)
		return -E2BIG;
	return nvmep_ranges_copy(ranges, READ_ONCE(user->ranges));
}

/* --- requests of a list ------------------------------------------------- */

static int nvmep_ranges_prepare(const struct nvmep_ranges *ranges, u32 index,
				struct request *rq)
{
	struct nvme_peer_uring_io io = nvmep_range(ranges, index);

	return nvmep_transfer_prepare(ranges->to.ns, &io, ranges->peer, rq);
}

/* A prepared request for one range; @polled is REQ_POLLED or 0. */
static struct request *nvmep_ranges_alloc(const struct nvmep_ranges *ranges,
					  u32 index, blk_opf_t polled,
					  blk_mq_req_flags_t flags)
{
	struct request *rq = nvmep_user_request(&ranges->to, &ranges->command,
						polled, flags);
	int ret;

	if (IS_ERR(rq))
		return rq;
	ret = nvmep_ranges_prepare(ranges, index, rq);
	if (!ret)
		return rq;
	blk_mq_free_request(rq);
	return ERR_PTR(ret);
}

static void nvmep_ranges_free(struct request *rq)
{
	percpu_ref_put(nvmep_request(rq)->data.range.users);
	blk_mq_free_request(rq);
}

/*
 * The submitter holds one count, so the command cannot end while it issues
 * requests.
 */
static void nvmep_ranges_begin(const struct nvmep_ranges *ranges, u16 polled)
{
	struct nvmep_transfer *transfer = nvmep_transfer(ranges->ioucmd);

	transfer->status = 0;
	transfer->nsid = ranges->to.ns->nsid;
	transfer->polled = polled;
	atomic_set(&transfer->left, 1);
}

static void nvmep_ranges_send(const struct nvmep_ranges *ranges,
			      struct request *rq)
{
	atomic_inc(&nvmep_transfer(ranges->ioucmd)->left);
	rq->end_io_data = ranges->ioucmd;
	rq->end_io = nvmep_ranges_end_io_fn;
	blk_execute_rq_nowait(rq, false);
}

/* Drops the submitter's count. */
static int nvmep_ranges_submitted(const struct nvmep_ranges *ranges,
				  unsigned int issue_flags)
{
	struct nvmep_transfer *transfer = nvmep_transfer(ranges->ioucmd);

	if (atomic_dec_and_test(&transfer->left))
		nvmep_uring_done(ranges->ioucmd, transfer->status, 0,
				 issue_flags);
	return -EIOCBQUEUED;
}

/* --- submission of a list without sleeping ------------------------------ */

/*
 * io_uring polls for a command on the hardware queue of its first request only.
 * On one CPU all requests get the same, but the block layer may have set some
 * aside for this task before it migrated.  After -EAGAIN io_uring tries again
 * where it may sleep, without polling.
 */
static int nvmep_ranges_check_queue(const struct request *first,
				    const struct request *rq, blk_opf_t polled)
{
	return polled && rq->mq_hctx != first->mq_hctx ? -EAGAIN : 0;
}

/* Allocates and prepares all requests or none. */
static int nvmep_ranges_alloc_all(const struct nvmep_ranges *ranges,
				  blk_opf_t polled,
				  struct rq_list *allocated)
{
	struct request *rq;
	int ret = 0;
	u32 i;

	migrate_disable();
	for (i = 0; i < ranges->count && !ret; i++) {
		rq = nvmep_ranges_alloc(ranges, i, polled, BLK_MQ_REQ_NOWAIT);
		ret = PTR_ERR_OR_ZERO(rq);
		if (!ret) {
			nvmep_rq_list_add(allocated, rq);
			ret = nvmep_ranges_check_queue(allocated->head, rq,
						       polled);
		}
	}
	migrate_enable();
	if (!ret)
		return 0;
	while ((rq = nvmep_rq_list_pop(allocated)))
		nvmep_ranges_free(rq);
	return ret;
}

static int nvmep_ranges_submit(const struct nvmep_ranges *ranges,
			       unsigned int issue_flags)
{
	blk_opf_t polled = nvmep_uring_polled(&ranges->to, issue_flags);
	struct rq_list allocated = { };
	struct blk_plug plug;
	struct request *rq;
	int ret;

	ret = nvmep_ranges_alloc_all(ranges, polled, &allocated);
	if (ret)
		return ret;
	rq = nvmep_rq_list_pop(&allocated);
	nvmep_ranges_begin(ranges, nvmep_uring_polled_queue(rq));
	blk_start_plug(&plug);
	do
		nvmep_ranges_send(ranges, rq);
	while ((rq = nvmep_rq_list_pop(&allocated)));
	blk_finish_plug(&plug);
	return nvmep_ranges_submitted(ranges, issue_flags);
}

/* --- submission of a list that may sleep -------------------------------- */

/*
 * Prepares the request for each range in turn, to check them; it is left
 * prepared for the first range.  The caller holds the request, so the format
 * cannot change.
 */
static int nvmep_ranges_check(const struct nvmep_ranges *ranges,
			      struct request *rq)
{
	u32 i;
	int ret;

	for (i = ranges->count - 1; i; i--) {
		ret = nvmep_ranges_prepare(ranges, i, rq);
		if (ret)
			return ret;
		percpu_ref_put(nvmep_request(rq)->data.range.users);
	}
	return nvmep_ranges_prepare(ranges, 0, rq);
}

/* A range that became invalid since the check ends the list with its error. */
static void nvmep_ranges_send_rest(const struct nvmep_ranges *ranges)
{
	struct request *rq;
	u32 i;

	for (i = 1; i < ranges->count; i++) {
		rq = nvmep_ranges_alloc(ranges, i, 0, 0);
		if (IS_ERR(rq)) {
			cmpxchg(&nvmep_transfer(ranges->ioucmd)->status, 0,
				PTR_ERR(rq));
			return;
		}
		nvmep_ranges_send(ranges, rq);
	}
}

/*
 * Not polled: io_uring polls only after submission, but allocation may sleep
 * here until a request that was issued here has ended.
 */
static int nvmep_ranges_submit_waiting(const struct nvmep_ranges *ranges,
				       unsigned int issue_flags)
{
	struct request *rq = nvmep_user_request(&ranges->to, &ranges->command,
						0, 0);
	int ret;

	if (IS_ERR(rq))
		return PTR_ERR(rq);
	ret = nvmep_ranges_check(ranges, rq);
	if (ret) {
		blk_mq_free_request(rq);
		return ret;
	}
	nvmep_ranges_begin(ranges, NVMEP_URING_NOT_POLLED);
	nvmep_ranges_send(ranges, rq);
	nvmep_ranges_send_rest(ranges);
	return nvmep_ranges_submitted(ranges, issue_flags);
}

/* --- NVME_PEER_URING_CMD_IO_VEC ----------------------------------------- */

static noinline_for_stack int
nvmep_ranges_to_namespace(struct nvmep_ranges *ranges, unsigned int issue_flags)
{
	u32 nsid = le32_to_cpu(ranges->command.sqe.common.nsid);
	int ret;

	ranges->to.ns = nvmep_transfer_namespace(ranges->to.ctrl, nsid);
	if (!ranges->to.ns)
		return -ENODEV;
	ret = nvmep_command_check(&ranges->to, &ranges->command);
	if (ret)
		return ret;
	return issue_flags & IO_URING_F_NONBLOCK ?
	       nvmep_ranges_submit(ranges, issue_flags) :
	       nvmep_ranges_submit_waiting(ranges, issue_flags);
}

/**
 * nvmep_ranges_cmd() - submit NVME_PEER_URING_CMD_IO_VEC
 * @from: the controller's device node
 * @peer: what peer_ops->open() returned for the file
 * @ioucmd: io_uring command
 * @issue_flags: IO_URING_F_*
 *
 * io_uring calls it again for the same command after -EAGAIN.
 *
 * Return: -EIOCBQUEUED or another negative error code, see struct
 * nvme_peer_uring_io_vec.
 */
int nvmep_ranges_cmd(const struct nvmep_passthru *from, void *peer,
		     struct io_uring_cmd *ioucmd, unsigned int issue_flags)
{
	struct nvmep_cpu *cpu = from->ctrl->cpu;
	struct nvmep_ranges ranges;
	int index, ret;

	ranges.to = *from;
	ranges.peer = peer;
	ranges.ioucmd = ioucmd;
	ret = nvmep_transfer_check_issue(ioucmd, issue_flags);
	if (!ret)
		ret = nvmep_ranges_parse(&ranges, nvmep_uring_payload(ioucmd));
	if (ret)
		return ret;
	index = srcu_read_lock(&cpu->namespaces_srcu);
	ret = nvmep_ranges_to_namespace(&ranges, issue_flags);
	srcu_read_unlock(&cpu->namespaces_srcu, index);
	return ret;
}
