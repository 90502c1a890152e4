/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The standard NVMe passthrough ABI by io_uring.
 */
#ifndef _NVMEP_URING_H
#define _NVMEP_URING_H

struct io_comp_batch;
struct io_uring_cmd;
struct nvmep_passthru;

int nvmep_uring_cmd(const struct nvmep_passthru *from,
		    struct io_uring_cmd *ioucmd, unsigned int issue_flags);
int nvmep_uring_cmd_iopoll(const struct nvmep_passthru *from,
			   struct io_uring_cmd *ioucmd,
			   struct io_comp_batch *batch);

#endif /* _NVMEP_URING_H */
