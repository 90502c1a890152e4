/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The standard NVMe passthrough ABI of linux/nvme_ioctl.h, by ioctl, and the steps of a
 * command that io_uring takes too.
 */
#ifndef _NVMEP_PASSTHRU_H
#define _NVMEP_PASSTHRU_H

#include <linux/blk-mq.h>
#include <linux/types.h>

struct nvmep_passthru;
struct nvmep_user_command;
struct request;

int nvmep_passthru_ioctl(const struct nvmep_passthru *from, unsigned int cmd,
			 void __user *arg);
struct request *nvmep_user_request(const struct nvmep_passthru *from,
				   const struct nvmep_user_command *command,
				   blk_opf_t more, blk_mq_req_flags_t flags);
int nvmep_user_execute(const struct nvmep_passthru *from,
		       struct nvmep_user_command *command, u64 *result);
int nvmep_user_map(const struct nvmep_passthru *from,
		   const struct nvmep_user_command *command,
		   struct request *rq);
int nvmep_user_mapped(const struct nvmep_passthru *from,
		      const struct nvmep_user_command *command,
		      struct request *rq);

#endif /* _NVMEP_PASSTHRU_H */
