/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * NVMe passthrough: the ABI of linux/nvme_ioctl.h, and what ioctl and io_uring
 * share.
 */
#ifndef _NVMEP_PASSTHRU_H
#define _NVMEP_PASSTHRU_H

#include <linux/blk-mq.h>
#include <linux/compat.h>
#include <linux/types.h>

#include "core/ctrl.h"
#include "namespace.h"
#include "nvme.h"

struct request;

/**
 * struct nvmep_passthru - the device node by which a command was submitted
 * @ctrl: controller
 * @ns: namespace of the device node, NULL for the controller's
 * @write: the file is open for writing
 * @partition: the device node is a partition
 *
 * The open file holds references to @ctrl and @ns.
 */
struct nvmep_passthru {
	struct nvmep_ctrl *ctrl;
	struct nvmep_ns *ns;
	bool write;
	bool partition;
};

/**
 * struct nvmep_user_command - a passthrough command, from ioctl or io_uring
 * @sqe: the command, without CID and data pointers
 * @address: user address of the data, or of the iovec array
 * @length: bytes of data, or entries of the iovec array
 * @metadata: user address of the metadata
 * @metadata_length: bytes of metadata
 * @timeout_ms: 0 for the default
 * @effects: NVME_CMD_EFFECTS_*, filled by nvmep_command_check()
 * @vector: @address is a struct iovec array
 * @admin: for the admin queue
 */
struct nvmep_user_command {
	struct nvme_command sqe;
	u64 address;
	u32 length;
	u64 metadata;
	u32 metadata_length;
	u32 timeout_ms;
	u32 effects;
	bool vector;
	bool admin;
};

/* The request queue of a command. */
static inline struct request_queue *
nvmep_user_queue(const struct nvmep_passthru *from,
		 const struct nvmep_user_command *command)
{
	return command->admin ? from->ctrl->admin_q : from->ns->queue;
}

/* 32-bit programs may extend the sign of an address to 64 bits. */
static inline u64 nvmep_user_address(u64 address)
{
	return in_compat_syscall() ? lower_32_bits(address) : address;
}

/* Does its data go to user space? */
static inline bool nvmep_command_reads(const struct nvmep_user_command *command)
{
	return !(command->sqe.common.opcode & NVMEP_OPCODE_TO_CTRL);
}

int nvmep_passthru_ioctl(const struct nvmep_passthru *from, unsigned int cmd,
			 void __user *arg);
struct request *nvmep_user_request(const struct nvmep_passthru *from,
				   const struct nvmep_user_command *command,
				   blk_opf_t more, blk_mq_req_flags_t flags);
int nvmep_user_execute(const struct nvmep_passthru *from,
		       struct nvmep_user_command *command, u64 *result);

#endif /* _NVMEP_PASSTHRU_H */
