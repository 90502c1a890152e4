/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * NVMe passthrough by io_uring, and what other io_uring commands share with it.
 */
#ifndef _NVMEP_URING_H
#define _NVMEP_URING_H

#include <linux/blk_types.h>
#include <linux/types.h>

struct io_comp_batch;
struct io_uring_cmd;
struct nvmep_passthru;
struct request;

#define NVMEP_URING_NOT_POLLED	U16_MAX

blk_opf_t nvmep_uring_polled(const struct nvmep_passthru *from,
			     unsigned int issue_flags);
u16 nvmep_uring_polled_queue(const struct request *rq);
void nvmep_uring_send(struct request *rq);
int nvmep_uring_cmd(const struct nvmep_passthru *from,
		    struct io_uring_cmd *ioucmd, unsigned int issue_flags);
int nvmep_uring_cmd_iopoll(const struct nvmep_passthru *from,
			   struct io_uring_cmd *ioucmd,
			   struct io_comp_batch *batch);

#endif /* _NVMEP_URING_H */
