// SPDX-License-Identifier: GPL-2.0-only
/*
 * Transfers: reads and writes that the CPU starts, and whose data lies in memory that was
 * imported for peers.
 *
 * NVME_PEER_URING_CMD_IO names a buffer where passthrough has a user address.  The peers'
 * floor turns the name into addresses that the controller has already, and keeps them
 * valid for the command: see struct nvmep_span.  So nothing is pinned, mapped or copied
 * here.  All else is the way of passthrough: its rights, its requests, its queues.
 */
#include <linux/blk-mq.h>
#include <linux/nvme_peer.h>
#include <linux/percpu-refcount.h>

#include "command.h"
#include "compat.h"
#include "core/ctrl.h"
#include "core/data.h"
#include "core/queue.h"
#include "core/request.h"
#include "cpu.h"
#include "length.h"
#include "namespace.h"
#include "passthru.h"
#include "permission.h"
#include "rw.h"
#include "transfer.h"
#include "uring.h"

/* All of an SQE's command is ours: nobody puts into it what we do not see. */
static_assert(sizeof(struct nvme_peer_uring_io) == 80);

/* --- the end --------------------------------------------------------------- */

static void nvmep_transfer_finish(struct io_uring_cmd *ioucmd,
				  unsigned int issue_flags)
{
	nvmep_uring_done(ioucmd, nvmep_transfer(ioucmd)->status, 0,
			 issue_flags);
}

static void nvmep_transfer_task_work(NVMEP_URING_TW_PARAMS)
{
	nvmep_transfer_finish(NVMEP_URING_TW_CMD, NVMEP_URING_TW_FLAGS);
}

static __always_inline void nvmep_transfer_tell(struct io_uring_cmd *ioucmd,
						const struct io_comp_batch *batch)
{
	/* Whoever polls finds commands of other rings too. */
	if (nvmep_uring_polls(ioucmd, batch))
		nvmep_transfer_finish(ioucmd, 0);
	else
		nvmep_uring_complete_in_task(ioucmd, nvmep_transfer_task_work);
}

/**
 * nvmep_transfer_end() - tell the task, or whoever polls, that a transfer has ended
 * @ioucmd: command, with its status
 * @batch: of completions that it was found in, or NULL
 */
void nvmep_transfer_end(struct io_uring_cmd *ioucmd,
			const struct io_comp_batch *batch)
{
	nvmep_transfer_tell(ioucmd, batch);
}

/* The controller is done with the memory: it has completed the command, or stopped. */
static enum rq_end_io_ret nvmep_transfer_end_io(NVMEP_END_IO_PARAMS)
{
	struct io_uring_cmd *ioucmd = rq->end_io_data;

	nvmep_transfer(ioucmd)->status = nvmep_request_status(rq, error);
	percpu_ref_put(nvmep_request(rq)->data.span.users);
	nvmep_transfer_tell(ioucmd, NVMEP_END_IO_BATCH);
	return RQ_END_IO_FREE;
}

/* --- the beginning --------------------------------------------------------- */

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
	if (nvmep_transfer_reserved(user->reserved, ARRAY_SIZE(user->reserved)))
		return -EINVAL;
	return nvmep_transfer_valid(io) ? 0 : -EINVAL;
}

/*
 * Completes the command: the namespace's format stays while the request is there.  In line,
 * as what follows: the way of every transfer leads through it.
 */
static __always_inline int
nvmep_transfer_build(const struct nvmep_ns *ns,
		     const struct nvme_peer_uring_io *io, struct nvme_sqe *sqe)
{
	u16 control = nvmep_rw_protect(sqe, ns, io->lba);

	/* The same opcodes are other commands in other command sets. */
	if (ns->ids.csi)
		return -EOPNOTSUPP;
	if ((u64)io->blocks << ns->block_shift > ns->ctrl->max_transfer)
		return -EMSGSIZE;
	if (io->flags & NVME_PEER_IO_FUA)
		control |= NVME_RW_FUA;
	nvmep_rw_range(sqe, io->lba, io->blocks, control);
	return nvmep_rw_metadata(ns, sqe) ? -EMEDIUMTYPE : 0;
}

static __always_inline int
nvmep_transfer_fill(const struct nvmep_ns *ns,
		    const struct nvme_peer_uring_io *io, void *peer,
		    struct request *rq)
{
	struct nvmep_request *req = nvmep_request(rq);
	int ret;

	ret = nvmep_transfer_build(ns, io, &req->sqe);
	if (ret)
		return ret;
	req->flags |= NVMEP_REQUEST_SPAN;
	return ns->ctrl->peer_ops->span(peer, io->handle, io->offset,
					io->blocks << ns->block_shift,
					rq_dma_dir(rq), &req->data.span);
}

/**
 * nvmep_transfer_prepare() - complete a request of nvmep_user_request()
 * @ns: namespace
 * @io: what it is to do
 * @peer: what the peers' floor knows the controller's node by
 * @rq: request
 *
 * On success the request holds its data, until it ends: see struct nvmep_span.
 *
 * Return: 0 or a negative error code, see struct nvme_peer_uring_io.
 */
int nvmep_transfer_prepare(const struct nvmep_ns *ns,
			   const struct nvme_peer_uring_io *io, void *peer,
			   struct request *rq)
{
	return nvmep_transfer_fill(ns, io, peer, rq);
}

static int nvmep_transfer_submit(const struct nvmep_passthru *to,
				 const struct nvme_peer_uring_io *io,
				 void *peer, struct io_uring_cmd *ioucmd,
				 unsigned int issue_flags)
{
	struct nvmep_user_command command = {
		.sqe.opcode = io->opcode,
		.sqe.nsid = cpu_to_le32(io->nsid),
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
	ret = nvmep_transfer_fill(to->ns, io, peer, rq);
	if (ret) {
		blk_mq_free_request(rq);
		return ret;
	}
	*nvmep_transfer(ioucmd) = (struct nvmep_transfer){
		.nsid = io->nsid,
		.polled = nvmep_uring_queue(rq),
	};
	rq->end_io_data = ioucmd;
	rq->end_io = nvmep_transfer_end_io;
	nvmep_uring_send(rq);
	return -EIOCBQUEUED;
}

/**
 * nvmep_transfer_namespace() - find a namespace to move data of
 * @ctrl: controller
 * @nsid: namespace identifier
 *
 * Under namespaces_srcu.
 *
 * Return: it, or NULL: one that is still being added, or is being removed, is none.
 */
struct nvmep_ns *nvmep_transfer_namespace(struct nvmep_ctrl *ctrl, u32 nsid)
{
	struct nvmep_ns *ns = nvmep_ns_find(ctrl, nsid);

	return ns && disk_live(ns->disk) ? ns : NULL;
}

/**
 * nvmep_transfer_cmd() - NVME_PEER_URING_CMD_IO
 * @from: the controller's node
 * @peer: what the peers' floor knows that node by
 * @ioucmd: io_uring command
 * @issue_flags: how it is issued
 *
 * May be called again for the same command after -EAGAIN.
 *
 * Return: -EIOCBQUEUED or another negative error code, see struct nvme_peer_uring_io.
 */
int nvmep_transfer_cmd(const struct nvmep_passthru *from, void *peer,
		       struct io_uring_cmd *ioucmd, unsigned int issue_flags)
{
	struct nvmep_cpu *cpu = from->ctrl->cpu;
	struct nvmep_passthru to = *from;
	struct nvme_peer_uring_io io;
	int index, ret;

	ret = nvmep_transfer_form(ioucmd, issue_flags);
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
 * nvmep_transfer_iopoll() - a polling ring asks for completions
 * @ctrl: controller
 * @ioucmd: command that was queued by nvmep_transfer_cmd() or nvmep_ranges_cmd()
 * @batch: of completions
 *
 * The request may have ended, and its namespace gone, since the ring looked.  While the
 * namespace is on the list, the controller's queues are there.
 *
 * Return: how many were found, of whatever ring; 0 where an interrupt will tell.
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
		found = nvmep_queue_look(ctrl->queues[transfer->polled], batch);
	srcu_read_unlock(&ctrl->cpu->namespaces_srcu, index);
	return found;
}
