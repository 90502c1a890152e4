/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * How much memory a command of user space moves.
 */
#ifndef _NVMEP_LENGTH_H
#define _NVMEP_LENGTH_H

#include <linux/types.h>

struct nvmep_passthru;
struct nvmep_user_command;

int nvmep_command_check_length(const struct nvmep_passthru *from,
			       const struct nvmep_user_command *command,
			       u64 length);

#endif /* _NVMEP_LENGTH_H */
