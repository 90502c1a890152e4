// SPDX-License-Identifier: GPL-2.0-only
/*
 * Which commands of user space are let through, and what else they need.
 *
 * Some admin commands would take the ground from under the driver and are
 * refused to everybody: they create or delete queues behind the back of the
 * one who owns them, or turn on shadow doorbells, after which the controller
 * would no longer see what a peer writes into the real ones.
 *
 * The controller trusts the pointers and lengths of a command.  Where the
 * command says how much data it moves, the buffer has to be as long.
 */
#include <linux/capability.h>

#include "core/admin.h"
#include "core/ctrl.h"
#include "namespace.h"
#include "passthru.h"

/* --- permission ---------------------------------------------------------- */

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
			    const struct nvme_sqe *sqe)
{
	u32 harmless = NVME_EFFECT_SUPPORTED | NVME_EFFECT_CONTENT |
		       NVME_EFFECT_UUID_SELECT | NVME_EFFECT_SCOPE_MASK;
	u32 effects = nvmep_command_effects(from->ctrl, sqe->opcode, false);

	if (sqe->opcode >= NVME_CMD_VENDOR_FIRST ||
	    sqe->opcode == NVME_CMD_FABRICS)
		return false;
	/* Only what the controller declares, and declares to be harmless. */
	if (!(effects & NVME_EFFECT_SUPPORTED) || effects & ~harmless)
		return false;
	if (sqe->opcode & NVME_OPCODE_TO_CTRL || effects & NVME_EFFECT_CONTENT)
		return from->write;
	return true;
}

static bool nvmep_command_permitted(const struct nvmep_passthru *from,
				    const struct nvmep_user_command *command)
{
	if (capable(CAP_SYS_ADMIN))
		return true;
	if (from->partition)
		return false;
	if (command->admin)
		return nvmep_identify_public(&command->sqe);
	return nvmep_io_public(from, &command->sqe);
}

/**
 * nvmep_command_check() - may this command be sent?
 * @from: where it came in
 * @command: the command
 *
 * Return: 0; -EINVAL for a namespace that is not the node's; -EACCES.
 */
int nvmep_command_check(const struct nvmep_passthru *from,
			const struct nvmep_user_command *command)
{
	if (from->ns && !command->admin &&
	    le32_to_cpu(command->sqe.nsid) != from->ns->nsid)
		return -EINVAL;
	if (command->admin && nvmep_admin_refused(&command->sqe))
		return -EACCES;
	return nvmep_command_permitted(from, command) ? 0 : -EACCES;
}

/* --- lengths ------------------------------------------------------------- */

/* Does the controller make up and strip all of the metadata? */
static bool nvmep_metadata_hidden(const struct nvmep_ns *ns,
				  const struct nvme_sqe *sqe)
{
	return ns->protection && ns->metadata_size == 8 &&
	       le32_to_cpu(sqe->cdw12) & NVME_RW_PRACT << 16;
}

static int nvmep_check_rw(const struct nvmep_ns *ns,
			  const struct nvmep_user_command *command, u64 length)
{
	u32 blocks = (le32_to_cpu(command->sqe.cdw12) & 0xffff) + 1;
	u64 data = (u64)blocks << ns->block_shift, metadata = 0;

	if (!nvmep_metadata_hidden(ns, &command->sqe))
		metadata = (u64)blocks * ns->metadata_size;
	if (ns->extended) {
		data += metadata;
		metadata = 0;
	}
	if (length < data)
		return -EINVAL;
	if (metadata && (!command->metadata ||
			 command->metadata_length < metadata))
		return -EINVAL;
	return 0;
}

static int nvmep_check_io(const struct nvmep_ns *ns,
			  const struct nvmep_user_command *command, u64 length)
{
	u32 ranges = (le32_to_cpu(command->sqe.cdw10) & 0xff) + 1;

	switch (command->sqe.opcode) {
	case NVME_CMD_READ:
	case NVME_CMD_WRITE:
	case NVME_CMD_COMPARE:
		return nvmep_check_rw(ns, command, length);
	case NVME_CMD_DATASET_MANAGEMENT:
		return length < ranges * sizeof(struct nvme_dsm_range) ?
		       -EINVAL : 0;
	case NVME_CMD_FLUSH:
	case NVME_CMD_WRITE_ZEROES:
	case NVME_CMD_VERIFY:
		return 0;
	default:
		/* We cannot tell; the administrator may know. */
		return capable(CAP_SYS_ADMIN) ? 0 : -EACCES;
	}
}

static int nvmep_check_admin(const struct nvme_sqe *sqe, u64 length)
{
	u64 dwords = (le32_to_cpu(sqe->cdw10) >> 16) +
		     ((u64)(le32_to_cpu(sqe->cdw11) & 0xffff) << 16) + 1;

	switch (sqe->opcode) {
	case NVME_ADMIN_IDENTIFY:
		return length < NVME_IDENTIFY_SIZE ? -EINVAL : 0;
	case NVME_ADMIN_GET_LOG_PAGE:
		return length < dwords * sizeof(u32) ? -EINVAL : 0;
	default:
		return 0;
	}
}

/**
 * nvmep_command_check_length() - is the buffer as long as the command's data?
 * @from: where it came in; its queue is held, so the format stays
 * @command: the command
 * @length: bytes of the buffer
 *
 * Return: 0; -EINVAL if the controller would access memory behind the buffer;
 * -EACCES for users without CAP_SYS_ADMIN if that is unknown.
 */
int nvmep_command_check_length(const struct nvmep_passthru *from,
			       const struct nvmep_user_command *command,
			       u64 length)
{
	if (command->admin)
		return nvmep_check_admin(&command->sqe, length);
	return nvmep_check_io(from->ns, command, length);
}

/* --- effects ------------------------------------------------------------- */

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
 * nvmep_effects_exclusive() - does a command want no I/O beside it?
 * @effects: from nvmep_command_effects()
 *
 * Return: true if nvmep_effects_begin() may wait for I/O.
 */
bool nvmep_effects_exclusive(u32 effects)
{
	return effects & NVME_EFFECT_EXCLUSIVE_MASK;
}

/**
 * nvmep_effects_change() - may a command change what namespaces are?
 * @effects: from nvmep_command_effects()
 *
 * Return: true if nvmep_effects_end() looks at them.
 */
bool nvmep_effects_change(u32 effects)
{
	return effects & (NVME_EFFECT_NS_CAPABILITY | NVME_EFFECT_NS_INVENTORY);
}

/**
 * nvmep_effects_begin() - make room for a command
 * @ctrl: controller
 * @effects: of the command
 *
 * An exclusive command waits for all of the CPU's I/O.  Peers' I/O is theirs.
 */
void nvmep_effects_begin(struct nvmep_ctrl *ctrl, u32 effects)
{
	if (!nvmep_effects_exclusive(effects))
		return;
	mutex_lock(&ctrl->scan_lock);
	nvmep_namespaces_freeze(ctrl);
}

/**
 * nvmep_effects_end() - the command is done: look what it changed
 * @ctrl: controller
 * @effects: of the command
 * @wait: return when namespaces show what it changed
 */
void nvmep_effects_end(struct nvmep_ctrl *ctrl, u32 effects, bool wait)
{
	bool changed = nvmep_effects_change(effects);

	if (nvmep_effects_exclusive(effects)) {
		/* Who waited must not build commands for blocks of the past. */
		if (changed)
			nvmep_namespaces_reread(ctrl);
		nvmep_namespaces_unfreeze(ctrl);
		mutex_unlock(&ctrl->scan_lock);
	}
	if (!changed)
		return;
	nvmep_scan(ctrl);
	if (wait)
		flush_work(&ctrl->scan_work);
}
