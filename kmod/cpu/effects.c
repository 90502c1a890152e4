// SPDX-License-Identifier: GPL-2.0-only
/*
 * What a command does besides moving data, and the room that is made for it.
 */
#include "core/ctrl.h"
#include "cpu.h"
#include "effects.h"
#include "freeze.h"
#include "scan.h"

/* What is known of commands whether the controller declares it or not. */
static u32 nvmep_known_effects(u8 opcode)
{
	switch (opcode) {
	case NVME_ADMIN_FORMAT:
		return NVME_EFFECT_CONTENT | NVME_EFFECT_NS_CAPABILITY |
		       NVME_EFFECT_EXCLUSIVE_MASK;
	case NVME_ADMIN_SANITIZE:
		return NVME_EFFECT_CONTENT | NVME_EFFECT_EXCLUSIVE_MASK;
	case NVME_ADMIN_NAMESPACE_MANAGEMENT:
	case NVME_ADMIN_NAMESPACE_ATTACHMENT:
		return NVME_EFFECT_NS_INVENTORY;
	default:
		return 0;
	}
}

/**
 * nvmep_command_effects() - what a command does besides moving data
 * @ctrl: controller
 * @opcode: command
 * @admin: of the admin command set
 *
 * An I/O command holds its own queue, so it is never made exclusive: it would
 * wait for itself.
 *
 * Return: bits of the Commands Supported and Effects log page.
 */
u32 nvmep_command_effects(const struct nvmep_ctrl *ctrl, u8 opcode, bool admin)
{
	u32 declared = 0;

	if (ctrl->effects)
		declared = le32_to_cpu(admin ? ctrl->effects->admin[opcode] :
					       ctrl->effects->io[opcode]);
	if (admin)
		return declared | nvmep_known_effects(opcode);
	return declared & ~NVME_EFFECT_EXCLUSIVE_MASK;
}

/**
 * nvmep_effects_begin() - make room for a command
 * @ctrl: controller
 * @effects: of the command
 *
 * An exclusive command waits for all of the CPU's I/O.  Peers have none then.
 */
void nvmep_effects_begin(struct nvmep_ctrl *ctrl, u32 effects)
{
	if (!nvmep_effects_exclusive(effects))
		return;
	mutex_lock(&ctrl->cpu->scan_lock);
	nvmep_namespaces_freeze(ctrl);
}

/**
 * nvmep_effects_end() - the command is done: look what it changed
 * @ctrl: controller
 * @effects: of the command
 *
 * Returns when namespaces show what it changed.  The look waits for their commands, and
 * a reset does for all that ended: the caller's is freed.
 */
void nvmep_effects_end(struct nvmep_ctrl *ctrl, u32 effects)
{
	bool changed = nvmep_effects_change(effects);

	if (nvmep_effects_exclusive(effects)) {
		/* Who waited must not build commands for blocks of the past. */
		if (changed)
			nvmep_namespaces_reread(ctrl);
		nvmep_namespaces_unfreeze(ctrl);
		mutex_unlock(&ctrl->cpu->scan_lock);
	}
	if (!changed)
		return;
	nvmep_scan(ctrl);
	flush_work(&ctrl->cpu->scan_work);
}
