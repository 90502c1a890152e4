/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * A command of user space on its way in: through what it came, and what it says.
 */
#ifndef _NVMEP_COMMAND_H
#define _NVMEP_COMMAND_H

#include <linux/types.h>

#include "nvme.h"

struct nvmep_ctrl;
struct nvmep_ns;

/**
 * struct nvmep_passthru - through what a command comes in
 * @ctrl: controller
 * @ns: namespace of the node, NULL for the controller's node
 * @write: the node is open for writing
 * @partition: the node is a partition of the namespace
 */
struct nvmep_passthru {
	struct nvmep_ctrl *ctrl;
	struct nvmep_ns *ns;
	bool write;
	bool partition;
};

/**
 * struct nvmep_user_command - a command of user space, of whatever ABI form
 * @sqe: the command itself, without CID and data pointers
 * @address: user address of the data, or of the vector
 * @length: bytes of data, or entries of the vector
 * @metadata: user address of the metadata
 * @metadata_length: bytes of it
 * @timeout_ms: 0 for the default
 * @effects: what it does besides moving data, since nvmep_command_check()
 * @vector: @address is a struct iovec array
 * @admin: for the admin queue
 */
struct nvmep_user_command {
	struct nvme_sqe sqe;
	u64 address;
	u32 length;
	u64 metadata;
	u32 metadata_length;
	u32 timeout_ms;
	u32 effects;
	bool vector;
	bool admin;
};

#endif /* _NVMEP_COMMAND_H */
