/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Reads and writes of the CPU whose data lies in an imported buffer.
 */
#ifndef _NVMEP_BUFFER_IO_H
#define _NVMEP_BUFFER_IO_H

struct io_comp_batch;
struct io_uring_cmd;
struct nvmep_ctrl;
struct nvmep_passthru;

int nvmep_transfer_cmd(const struct nvmep_passthru *from, void *peer,
		       struct io_uring_cmd *ioucmd, unsigned int issue_flags);
int nvmep_ranges_cmd(const struct nvmep_passthru *from, void *peer,
		     struct io_uring_cmd *ioucmd, unsigned int issue_flags);
int nvmep_transfer_iopoll(struct nvmep_ctrl *ctrl, struct io_uring_cmd *ioucmd,
			  struct io_comp_batch *batch);

#endif /* _NVMEP_BUFFER_IO_H */
