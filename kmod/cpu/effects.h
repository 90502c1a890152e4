/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * What a command does besides moving data; base specification 5.1.12.1.6.
 */
#ifndef _NVMEP_EFFECTS_H
#define _NVMEP_EFFECTS_H

#include <linux/types.h>

#include "nvme.h"

struct nvmep_ctrl;

/**
 * nvmep_effects_exclusive() - does a command want no I/O beside it?
 * @effects: from nvmep_command_effects()
 *
 * Return: true if nvmep_effects_begin() may wait for I/O.
 */
static inline bool nvmep_effects_exclusive(u32 effects)
{
	return effects & NVME_EFFECT_EXCLUSIVE_MASK;
}

/**
 * nvmep_effects_change() - may a command change what namespaces are?
 * @effects: from nvmep_command_effects()
 *
 * Return: true if nvmep_effects_end() looks at them.
 */
static inline bool nvmep_effects_change(u32 effects)
{
	return effects & (NVME_EFFECT_NS_CAPABILITY | NVME_EFFECT_NS_INVENTORY);
}

/**
 * nvmep_effects_disturb() - is a command a danger to others' commands?
 * @effects: from nvmep_command_effects(), of an admin command
 *
 * The CPU's wait for it, and are built anew afterwards.  Nobody can tell a peer to do
 * either, so such a command is sent only while there are none.
 *
 * Return: true if it is to be sent by nvmep_user_execute().
 */
static inline bool nvmep_effects_disturb(u32 effects)
{
	return nvmep_effects_exclusive(effects) || nvmep_effects_change(effects);
}

u32 nvmep_command_effects(const struct nvmep_ctrl *ctrl, u8 opcode,
			  bool admin);
void nvmep_effects_begin(struct nvmep_ctrl *ctrl, u32 effects);
void nvmep_effects_end(struct nvmep_ctrl *ctrl, u32 effects);

#endif /* _NVMEP_EFFECTS_H */
