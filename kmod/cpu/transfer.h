/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Reads and writes of the CPU whose data lies in a buffer that a peer lends.
 */
#ifndef _NVMEP_TRANSFER_H
#define _NVMEP_TRANSFER_H

#include <linux/atomic.h>
#include <linux/nvme_peer.h>

#include "compat.h"
#include "core/data.h"

struct io_comp_batch;
struct nvmep_ctrl;
struct nvmep_ns;
struct nvmep_passthru;
struct request;

/**
 * struct nvmep_transfer - what we keep in an io_uring command
 * @status: as nvmep_request_status()
 * @nsid: namespace that it goes to
 * @left: of a list: requests that have not ended, and one for who submits them
 * @polled: as nvmep_uring_queue()
 */
struct nvmep_transfer {
	s32 status;
	u32 nsid;
	atomic_t left;
	u16 polled;
};

static_assert(sizeof(struct nvmep_transfer) <=
	      sizeof_field(struct io_uring_cmd, pdu));

static inline struct nvmep_transfer *nvmep_transfer(struct io_uring_cmd *ioucmd)
{
	return (struct nvmep_transfer *)ioucmd->pdu;
}

/**
 * nvmep_transfer_valid() - does it say something, whatever there is?
 * @io: what a command says
 *
 * Return: false if it does not.
 */
static inline bool
nvmep_transfer_valid(const struct nvme_peer_uring_io *io)
{
	if (io->flags & ~NVME_PEER_IO_FUA ||
	    (io->opcode != NVME_PEER_IO_READ &&
	     io->opcode != NVME_PEER_IO_WRITE))
		return false;
	return !(io->offset & NVMEP_DATA_ALIGNMENT) && io->blocks;
}

/**
 * nvmep_transfer_reserved() - are some words not 0 that have to be?
 * @words: of a command, which may lie in shared memory
 * @count: how many
 *
 * Return: true if one is not.
 */
static inline bool nvmep_transfer_reserved(const __u32 *words, size_t count)
{
	u32 seen = 0;
	size_t i;

	for (i = 0; i < count; i++)
		seen |= READ_ONCE(words[i]);
	return seen;
}

/**
 * nvmep_transfer_form() - can a command of this form be a transfer?
 * @ioucmd: io_uring command
 * @issue_flags: how it is issued
 *
 * Return: 0; -EOPNOTSUPP in a ring with small entries; -EINVAL for one that names
 * memory of the ring's.
 */
static inline int
nvmep_transfer_form(const struct io_uring_cmd *ioucmd, unsigned int issue_flags)
{
	if (!(issue_flags & IO_URING_F_SQE128))
		return -EOPNOTSUPP;
	return ioucmd->flags & IORING_URING_CMD_FIXED ? -EINVAL : 0;
}

struct nvmep_ns *nvmep_transfer_namespace(struct nvmep_ctrl *ctrl, u32 nsid);
int nvmep_transfer_prepare(const struct nvmep_ns *ns,
			   const struct nvme_peer_uring_io *io, void *peer,
			   struct request *rq);
void nvmep_transfer_end(struct io_uring_cmd *ioucmd,
			const struct io_comp_batch *batch);
int nvmep_transfer_cmd(const struct nvmep_passthru *from, void *peer,
		       struct io_uring_cmd *ioucmd, unsigned int issue_flags);
int nvmep_transfer_iopoll(struct nvmep_ctrl *ctrl, struct io_uring_cmd *ioucmd,
			  struct io_comp_batch *batch);

#endif /* _NVMEP_TRANSFER_H */
