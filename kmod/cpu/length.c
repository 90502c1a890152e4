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

static u32 nvmep_rw_blocks(const struct nvme_sqe *sqe)
{
	return (le32_to_cpu(sqe->cdw12) & 0xffff) + 1;
}

/**
 * nvmep_rw_metadata() - metadata that a read, write or compare moves
 * @ns: namespace
 * @sqe: command
 *
 * Return: bytes, behind each block's data or in a buffer of their own.
 */
u64 nvmep_rw_metadata(const struct nvmep_ns *ns, const struct nvme_sqe *sqe)
{
	if (nvmep_metadata_hidden(ns, sqe))
		return 0;
	return (u64)nvmep_rw_blocks(sqe) * ns->metadata_size;
}

/* Bytes of the buffer for metadata that came with a command. */
static u32 nvmep_metadata_offered(const struct nvmep_user_command *command)
{
	return command->metadata ? command->metadata_length : 0;
}

/* Most metadata of a command in a buffer of its own. */
static u64 nvmep_metadata_most(const struct nvmep_passthru *from,
			       const struct nvmep_user_command *command)
{
	const struct nvmep_ns *ns = from->ns;

	if (command->admin || ns->extended)
		return 0;
	switch (command->sqe.opcode) {
	case NVME_CMD_READ:
	case NVME_CMD_WRITE:
	case NVME_CMD_COMPARE:
		return nvmep_rw_metadata(ns, &command->sqe);
	case NVME_CMD_FLUSH:
	case NVME_CMD_DATASET_MANAGEMENT:
	case NVME_CMD_WRITE_ZEROES:
	case NVME_CMD_VERIFY:
		return 0;
	default:
		/* What we cannot tell is as many blocks as commands can name. */
		return (u64)NVME_RW_MAX_BLOCKS * ns->metadata_size;
	}
}

/**
 * nvmep_command_metadata() - metadata of a command in a buffer of its own
 * @from: where it came in; its queue is held, so the format stays
 * @command: the command
 *
 * Return: bytes, no more than the command moves and the buffer holds.
 */
u32 nvmep_command_metadata(const struct nvmep_passthru *from,
			   const struct nvmep_user_command *command)
{
	return min_t(u64, nvmep_metadata_offered(command),
		     nvmep_metadata_most(from, command));
}

static int nvmep_check_rw(const struct nvmep_ns *ns,
			  const struct nvmep_user_command *command, u64 length)
{
	u64 data = (u64)nvmep_rw_blocks(&command->sqe) << ns->block_shift;
	u64 metadata = nvmep_rw_metadata(ns, &command->sqe);

	if (ns->extended)
		data += metadata;
	else if (nvmep_metadata_offered(command) < metadata)
		return -EINVAL;
	return length < data ? -EINVAL : 0;
}

/* We cannot tell; the administrator may know. */
static int nvmep_check_unknown(void)
{
	return capable(CAP_SYS_ADMIN) ? 0 : -EACCES;
}

static int nvmep_check_io(const struct nvmep_ns *ns,
			  const struct nvmep_user_command *command, u64 length)
{
	u32 ranges = (le32_to_cpu(command->sqe.cdw10) & 0xff) + 1;

	/* The same opcodes are other commands in other command sets. */
	if (ns->ids.csi)
		return nvmep_check_unknown();
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
		return nvmep_check_unknown();
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
 * Return: 0; -EINVAL if the controller would access memory behind the buffer,
 * or for metadata of a command that has none; -EACCES for users without
 * CAP_SYS_ADMIN if that is unknown.
 */
int nvmep_command_check_length(const struct nvmep_passthru *from,
			       const struct nvmep_user_command *command,
			       u64 length)
{
	if (nvmep_metadata_offered(command) &&
	    !nvmep_command_metadata(from, command))
		return -EINVAL;
	if (command->admin)
		return nvmep_check_admin(&command->sqe, length);
	return nvmep_check_io(from->ns, command, length);
}
