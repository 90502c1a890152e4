/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Reads and writes of the CPU whose data lies in a buffer that a peer lends.
 */
#ifndef _NVMEP_TRANSFER_H
#define _NVMEP_TRANSFER_H

#include <linux/atomic.h>

#include "compat.h"

struct io_comp_batch;
struct nvme_peer_uring_io;
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

int nvmep_transfer_form(const struct io_uring_cmd *ioucmd,
			unsigned int issue_flags);
bool nvmep_transfer_valid(const struct nvme_peer_uring_io *io);
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
