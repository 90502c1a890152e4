// SPDX-License-Identifier: GPL-2.0-only
/*
 * How much memory a command of user space moves.
 *
 * The controller trusts the pointers and lengths of a command.  Where the
 * command says how much data it moves, the buffer has to be as long.
 */
#include <linux/capability.h>

#include "command.h"
#include "length.h"
#include "namespace.h"

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
