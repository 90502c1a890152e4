/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * What a command does besides moving data; base specification 5.1.12.1.6.
 */
#ifndef _NVMEP_EFFECTS_H
#define _NVMEP_EFFECTS_H

#include <linux/types.h>

struct nvmep_ctrl;

u32 nvmep_command_effects(const struct nvmep_ctrl *ctrl, u8 opcode,
			  bool admin);
bool nvmep_effects_exclusive(u32 effects);
bool nvmep_effects_change(u32 effects);
bool nvmep_effects_disturb(u32 effects);
void nvmep_effects_begin(struct nvmep_ctrl *ctrl, u32 effects);
void nvmep_effects_end(struct nvmep_ctrl *ctrl, u32 effects);

#endif /* _NVMEP_EFFECTS_H */
