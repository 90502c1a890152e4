/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Lists of reads or writes of the CPU, in one io_uring command.
 */
#ifndef _NVMEP_RANGES_H
#define _NVMEP_RANGES_H

struct io_uring_cmd;
struct nvmep_passthru;

int nvmep_ranges_cmd(const struct nvmep_passthru *from, void *peer,
		     struct io_uring_cmd *ioucmd, unsigned int issue_flags);

#endif /* _NVMEP_RANGES_H */
