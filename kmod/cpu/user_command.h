/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Rights, effects and lengths of passthrough commands.
 */
#ifndef _NVMEP_USER_COMMAND_H
#define _NVMEP_USER_COMMAND_H

#include <linux/types.h>

#include "nvme.h"

struct nvmep_ctrl;
struct nvmep_ns;
struct nvmep_passthru;
struct nvmep_user_command;

int nvmep_command_check(const struct nvmep_passthru *from,
			struct nvmep_user_command *command);

void nvmep_command_fit(struct nvmep_user_command *command);

/* CSE: no other I/O may be in flight, so nvmep_effects_begin() waits for it. */
static inline bool nvmep_effects_exclusive(u32 effects)
{
	return effects & NVME_CMD_EFFECTS_CSE_MASK;
}

/* NCC, NIC: namespaces may change, so nvmep_effects_end() scans them. */
static inline bool nvmep_effects_change_ns(u32 effects)
{
	return effects & (NVME_CMD_EFFECTS_NCC | NVME_CMD_EFFECTS_NIC);
}

/**
 * nvmep_effects_need_peers_blocked() - must peers be blocked for a command?
 * @effects: of an admin command, filled in by nvmep_command_check()
 *
 * The driver freezes the CPU's I/O for an exclusive command and scans after one
 * that may change namespaces.  It cannot make a peer do either, so both kinds
 * are executed only while there are no peer queue pairs.
 *
 * Return: true if they must; nvmep_user_execute() does it.
 */
static inline bool nvmep_effects_need_peers_blocked(u32 effects)
{
	return nvmep_effects_exclusive(effects) ||
	       nvmep_effects_change_ns(effects);
}

void nvmep_effects_begin(struct nvmep_ctrl *ctrl, u32 effects);
void nvmep_effects_end(struct nvmep_ctrl *ctrl, u32 effects);

u64 nvmep_rw_metadata(const struct nvmep_ns *ns,
		      const struct nvme_command *sqe);
u32 nvmep_command_metadata(const struct nvmep_user_command *command);
int nvmep_command_check_length(const struct nvmep_passthru *from,
			       const struct nvmep_user_command *command,
			       u64 length);

#endif /* _NVMEP_USER_COMMAND_H */
