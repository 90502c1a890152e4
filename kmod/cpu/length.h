/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * How much memory a command of user space moves.
 */
#ifndef _NVMEP_LENGTH_H
#define _NVMEP_LENGTH_H

#include <linux/types.h>

struct nvme_sqe;
struct nvmep_ns;
struct nvmep_passthru;
struct nvmep_user_command;

u64 nvmep_rw_metadata(const struct nvmep_ns *ns, const struct nvme_sqe *sqe);
u32 nvmep_command_metadata(const struct nvmep_passthru *from,
			   const struct nvmep_user_command *command);
int nvmep_command_check_length(const struct nvmep_passthru *from,
			       const struct nvmep_user_command *command,
			       u64 length);

#endif /* _NVMEP_LENGTH_H */
