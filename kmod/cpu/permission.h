/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Who may send which command of user space.
 */
#ifndef _NVMEP_PERMISSION_H
#define _NVMEP_PERMISSION_H

struct nvmep_passthru;
struct nvmep_user_command;

int nvmep_command_check(const struct nvmep_passthru *from,
			struct nvmep_user_command *command);

#endif /* _NVMEP_PERMISSION_H */
