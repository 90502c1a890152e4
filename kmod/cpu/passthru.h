/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The standard NVMe passthrough ABI of linux/nvme_ioctl.h: commands that user
 * space built, by ioctl (passthru.c) and by io_uring (uring.c), and which of
 * them are let through (effects.c).
 */
#ifndef _NVMEP_PASSTHRU_H
#define _NVMEP_PASSTHRU_H

#include <linux/blk_types.h>
#include <linux/compiler_types.h>
#include <linux/types.h>

#include "nvme.h"

struct io_comp_batch;
struct io_uring_cmd;
struct nvmep_ctrl;
struct nvmep_ns;
struct request;
struct request_queue;

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
	bool vector;
	bool admin;
};

/**
 * struct nvmep_user_metadata - a kernel copy of a command's metadata
 * @user: where it comes from or goes to
 * @length: bytes
 * @buffer: the copy, DMA-able
 */
struct nvmep_user_metadata {
	void __user *user;
	u32 length;
	void *buffer;
};

/* passthru.c */
int nvmep_passthru_ioctl(const struct nvmep_passthru *from, unsigned int cmd,
			 void __user *arg);
struct request *nvmep_user_request(const struct nvmep_passthru *from,
				   const struct nvmep_user_command *command,
				   blk_mq_req_flags_t flags);
int nvmep_user_execute(const struct nvmep_passthru *from,
		       const struct nvmep_user_command *command, u64 *result);
int nvmep_user_map(const struct nvmep_passthru *from,
		   const struct nvmep_user_command *command,
		   struct request *rq);
int nvmep_user_mapped(const struct nvmep_passthru *from,
		      const struct nvmep_user_command *command,
		      struct request *rq);
struct nvmep_user_metadata *
nvmep_user_metadata_add(struct request *rq,
			const struct nvmep_user_command *command);
int nvmep_user_metadata_finish(struct nvmep_user_metadata *metadata,
			       bool to_user);

/* uring.c */
int nvmep_uring_cmd(const struct nvmep_passthru *from,
		    struct io_uring_cmd *ioucmd, unsigned int issue_flags);
int nvmep_uring_cmd_iopoll(struct io_uring_cmd *ioucmd,
			   struct io_comp_batch *iob, unsigned int flags);

/* effects.c */
int nvmep_command_check(const struct nvmep_passthru *from,
			const struct nvmep_user_command *command);
int nvmep_command_check_length(const struct nvmep_passthru *from,
			       const struct nvmep_user_command *command,
			       u64 length);
u32 nvmep_command_effects(const struct nvmep_ctrl *ctrl, u8 opcode,
			  bool admin);
bool nvmep_effects_exclusive(u32 effects);
bool nvmep_effects_change(u32 effects);
void nvmep_effects_begin(struct nvmep_ctrl *ctrl, u32 effects);
void nvmep_effects_end(struct nvmep_ctrl *ctrl, u32 effects, bool wait);

#endif /* _NVMEP_PASSTHRU_H */
