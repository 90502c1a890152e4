// SPDX-License-Identifier: GPL-2.0-only
/*
 * Who may send which command of user space.
 *
 * Some admin commands would take the ground from under the driver and are
 * refused to everybody: they create or delete queues behind the back of the
 * one who owns them, or turn on shadow doorbells, after which the controller
 * would no longer see what a peer writes into the real ones.
 */
#include <linux/capability.h>

#include "command.h"
#include "effects.h"
#include "namespace.h"
#include "permission.h"

static bool nvmep_feature_refused(u32 dword10)
{
	switch (dword10 & 0xff) {
	case NVME_FEATURE_NUM_QUEUES:
	case NVME_FEATURE_APST:
	case NVME_FEATURE_HOST_MEMORY:
	case NVME_FEATURE_KEEP_ALIVE:
	case NVME_FEATURE_HOST_BEHAVIOR:
		return true;
	default:
		return false;
	}
}

static bool nvmep_admin_refused(const struct nvme_sqe *sqe)
{
	switch (sqe->opcode) {
	case NVME_ADMIN_CREATE_SQ:
	case NVME_ADMIN_CREATE_CQ:
	case NVME_ADMIN_DELETE_SQ:
	case NVME_ADMIN_DELETE_CQ:
	case NVME_ADMIN_ASYNC_EVENT:
	case NVME_ADMIN_DOORBELL_CONFIG:
		return true;
	case NVME_ADMIN_SET_FEATURES:
		return nvmep_feature_refused(le32_to_cpu(sqe->cdw10));
	default:
		return false;
	}
}

/* What anybody may identify: the facts that I/O commands are built from. */
static bool nvmep_identify_public(const struct nvme_sqe *sqe)
{
	if (sqe->opcode != NVME_ADMIN_IDENTIFY)
		return false;
	switch (le32_to_cpu(sqe->cdw10) & 0xff) {
	case NVME_IDENTIFY_NAMESPACE:
	case NVME_IDENTIFY_CTRL:
	case NVME_IDENTIFY_CS_NAMESPACE:
	case NVME_IDENTIFY_CS_CTRL:
	case NVME_IDENTIFY_CS_INDEPENDENT:
		return true;
	default:
		return false;
	}
}

/* I/O commands of users without CAP_SYS_ADMIN. */
static bool nvmep_io_public(const struct nvmep_passthru *from,
			    const struct nvme_sqe *sqe, u32 effects)
{
	u32 harmless = NVME_EFFECT_SUPPORTED | NVME_EFFECT_CONTENT |
		       NVME_EFFECT_UUID_SELECT | NVME_EFFECT_SCOPE_MASK;

	/*
	 * Only what the controller declares, and declares to be harmless.  A vendor's
	 * command is not sent even so: nobody can tell how long its data are.
	 */
	if (!(effects & NVME_EFFECT_SUPPORTED) || effects & ~harmless)
		return false;
	if (sqe->opcode & NVME_OPCODE_TO_CTRL || effects & NVME_EFFECT_CONTENT)
		return from->write;
	return true;
}

/* What needs no right but the node's. */
static bool nvmep_command_public(const struct nvmep_passthru *from,
				 const struct nvmep_user_command *command)
{
	if (from->partition)
		return false;
	if (command->admin)
		return nvmep_identify_public(&command->sqe);
	return nvmep_io_public(from, &command->sqe, command->effects);
}

/**
 * nvmep_command_check() - may this command be sent?
 * @from: where it came in
 * @command: the command; filled with its effects
 *
 * Return: 0; -EINVAL for a namespace that is not the node's; -EACCES.
 */
int nvmep_command_check(const struct nvmep_passthru *from,
			struct nvmep_user_command *command)
{
	command->effects = nvmep_command_effects(from->ctrl,
						 command->sqe.opcode,
						 command->admin);
	if (from->ns && !command->admin &&
	    le32_to_cpu(command->sqe.nsid) != from->ns->nsid)
		return -EINVAL;
	if (command->admin && nvmep_admin_refused(&command->sqe))
		return -EACCES;
	/* Who lacks the right is asked for it, which is logged, only where it matters. */
	return nvmep_command_public(from, command) ||
	       capable(CAP_SYS_ADMIN) ? 0 : -EACCES;
}
