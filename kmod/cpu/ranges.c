// SPDX-License-Identifier: GPL-2.0-only
/*
 * Lists of transfers: many reads, or many writes, in one io_uring command.
 *
 * NVME_PEER_URING_CMD_IO_VEC names ranges, each of which becomes a request as transfer.c
 * makes them.  Who sends the command is told once, by whatever ends last.
 *
 * Nothing is sent before everything is known to be right.  As long as requests can be had
 * without waiting, all are taken and prepared, and then all are sent.  To wait for one while
 * others are held would stop whoever freezes the queue, who waits for those; so who has to
 * wait tries all ranges on one request first, and then sends each before he takes the next.
 */
#include <linux/blk-mq.h>
#include <linux/nvme_peer.h>
#include <linux/percpu-refcount.h>
#include <linux/preempt.h>
#include <linux/uaccess.h>

#include "command.h"
#include "compat.h"
#include "core/ctrl.h"
#include "core/data.h"
#include "core/request.h"
#include "cpu.h"
#include "namespace.h"
#include "passthru.h"
#include "permission.h"
#include "ranges.h"
#include "transfer.h"
#include "uring.h"

/* All of an SQE's command is ours: nobody puts into it what we do not see. */
static_assert(sizeof(struct nvme_peer_uring_io_vec) == 80);

/**
 * struct nvmep_ranges - a list on its way in
 * @to: the node and the namespace
 * @peer: what the peers' floor knows that node by
 * @ioucmd: io_uring command
 * @command: what the commands of all ranges say
 * @flags: NVME_PEER_IO_*, likewise
 * @opcode: as it came
 * @count: of @list
 * @list: the ranges, read once
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

/* --- the end --------------------------------------------------------------- */

/* Whatever ends last tells; of those that failed, the first to end says how. */
static enum rq_end_io_ret nvmep_ranges_end_io(NVMEP_END_IO_PARAMS)
{
	struct io_uring_cmd *ioucmd = rq->end_io_data;
	struct nvmep_transfer *transfer = nvmep_transfer(ioucmd);
	int status = nvmep_request_status(rq, error);

	if (status)
		cmpxchg(&transfer->status, 0, status);
	percpu_ref_put(nvmep_request(rq)->data.span.users);
	if (atomic_dec_and_test(&transfer->left))
		nvmep_transfer_end(ioucmd, NVMEP_END_IO_BATCH);
	return RQ_END_IO_FREE;
}

/* --- what it says ---------------------------------------------------------- */

/* What range number @index says, as a transfer of its own. */
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

/* The list takes most of what a frame may: what is done with it has frames of its own. */
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
		.sqe.opcode = ranges->opcode,
		.sqe.nsid = cpu_to_le32(READ_ONCE(user->nsid)),
	};
	if (!ranges->count ||
	    nvmep_transfer_reserved(user->reserved, ARRAY_SIZE(user->reserved)))
		return -EINVAL;
	if (ranges->count > NVME_PEER_IO_RANGES)
		return -E2BIG;
	return nvmep_ranges_copy(ranges, READ_ONCE(user->ranges));
}

/* --- the way in ------------------------------------------------------------ */

static int nvmep_ranges_prepare(const struct nvmep_ranges *ranges, u32 index,
				struct request *rq)
{
	struct nvme_peer_uring_io io = nvmep_range(ranges, index);

	return nvmep_transfer_prepare(ranges->to.ns, &io, ranges->peer, rq);
}

/* The request of one range; @polled as nvmep_user_request(). */
static struct request *nvmep_ranges_take(const struct nvmep_ranges *ranges,
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

static void nvmep_ranges_give_back(struct request *rq)
{
	percpu_ref_put(nvmep_request(rq)->data.span.users);
	blk_mq_free_request(rq);
}

/* Before the first is sent.  Who sends them counts as one. */
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
	rq->end_io = nvmep_ranges_end_io;
	blk_execute_rq_nowait(rq, false);
}

/* No more will be sent. */
static int nvmep_ranges_sent(const struct nvmep_ranges *ranges,
			     unsigned int issue_flags)
{
	struct nvmep_transfer *transfer = nvmep_transfer(ranges->ioucmd);

	if (atomic_dec_and_test(&transfer->left))
		nvmep_uring_done(ranges->ioucmd, transfer->status, 0,
				 issue_flags);
	return -EIOCBQUEUED;
}

/* --- without waiting ------------------------------------------------------- */

/* Takes and prepares all, or none.  One processor's are of one queue: who polls asks that. */
static int nvmep_ranges_take_all(const struct nvmep_ranges *ranges,
				 blk_opf_t polled, struct rq_list *taken)
{
	struct request *rq;
	int ret = 0;
	u32 i;

	migrate_disable();
	for (i = 0; i < ranges->count && !ret; i++) {
		rq = nvmep_ranges_take(ranges, i, polled, BLK_MQ_REQ_NOWAIT);
		ret = PTR_ERR_OR_ZERO(rq);
		if (!ret)
			nvmep_rq_list_add(taken, rq);
	}
	migrate_enable();
	if (!ret)
		return 0;
	while ((rq = nvmep_rq_list_pop(taken)))
		nvmep_ranges_give_back(rq);
	return ret;
}

static int nvmep_ranges_submit(const struct nvmep_ranges *ranges,
			       unsigned int issue_flags)
{
	blk_opf_t polled = nvmep_uring_polled(&ranges->to, issue_flags);
	struct rq_list taken = { };
	struct blk_plug plug;
	struct request *rq;
	int ret;

	ret = nvmep_ranges_take_all(ranges, polled, &taken);
	if (ret)
		return ret;
	rq = nvmep_rq_list_pop(&taken);
	nvmep_ranges_begin(ranges, nvmep_uring_queue(rq));
	blk_start_plug(&plug);
	do
		nvmep_ranges_send(ranges, rq);
	while ((rq = nvmep_rq_list_pop(&taken)));
	blk_finish_plug(&plug);
	return nvmep_ranges_sent(ranges, issue_flags);
}

/* --- waiting --------------------------------------------------------------- */

/*
 * All on one request, to see whether they are right: the first remains.  As long as the
 * request is there, the namespace's format stays.
 */
static int nvmep_ranges_try(const struct nvmep_ranges *ranges,
			    struct request *rq)
{
	u32 i;
	int ret;

	for (i = ranges->count - 1; i; i--) {
		ret = nvmep_ranges_prepare(ranges, i, rq);
		if (ret)
			return ret;
		percpu_ref_put(nvmep_request(rq)->data.span.users);
	}
	return nvmep_ranges_prepare(ranges, 0, rq);
}

/* What was right and no longer is ends the list. */
static void nvmep_ranges_send_rest(const struct nvmep_ranges *ranges)
{
	struct request *rq;
	u32 i;

	for (i = 1; i < ranges->count; i++) {
		rq = nvmep_ranges_take(ranges, i, 0, 0);
		if (IS_ERR(rq)) {
			cmpxchg(&nvmep_transfer(ranges->ioucmd)->status, 0,
				PTR_ERR(rq));
			return;
		}
		nvmep_ranges_send(ranges, rq);
	}
}

/* Announced by interrupts: nobody polls yet, and what is sent here may be waited for here. */
static int nvmep_ranges_submit_waiting(const struct nvmep_ranges *ranges,
				       unsigned int issue_flags)
{
	struct request *rq = nvmep_user_request(&ranges->to, &ranges->command,
						0, 0);
	int ret;

	if (IS_ERR(rq))
		return PTR_ERR(rq);
	ret = nvmep_ranges_try(ranges, rq);
	if (ret) {
		blk_mq_free_request(rq);
		return ret;
	}
	nvmep_ranges_begin(ranges, NVMEP_URING_NOT_POLLED);
	nvmep_ranges_send(ranges, rq);
	nvmep_ranges_send_rest(ranges);
	return nvmep_ranges_sent(ranges, issue_flags);
}

/* --- which way ------------------------------------------------------------- */

static noinline_for_stack int
nvmep_ranges_to_namespace(struct nvmep_ranges *ranges, unsigned int issue_flags)
{
	u32 nsid = le32_to_cpu(ranges->command.sqe.nsid);
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
 * nvmep_ranges_cmd() - NVME_PEER_URING_CMD_IO_VEC
 * @from: the controller's node
 * @peer: what the peers' floor knows that node by
 * @ioucmd: io_uring command
 * @issue_flags: how it is issued
 *
 * May be called again for the same command after -EAGAIN.
 *
 * Return: -EIOCBQUEUED or another negative error code, see struct nvme_peer_uring_io_vec.
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
	ret = nvmep_transfer_form(ioucmd, issue_flags);
	if (!ret)
		ret = nvmep_ranges_parse(&ranges, nvmep_uring_payload(ioucmd));
	if (ret)
		return ret;
	index = srcu_read_lock(&cpu->namespaces_srcu);
	ret = nvmep_ranges_to_namespace(&ranges, issue_flags);
	srcu_read_unlock(&cpu->namespaces_srcu, index);
	return ret;
}
