/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Admin queue and the driver's own admin commands.
 */
#ifndef _NVMEP_ADMIN_H
#define _NVMEP_ADMIN_H

#include "nvme.h"
#include "queue.h"

struct nvmep_ctrl;

/*
 * The admin queue holds 31 commands: 30 tags of blk-mq, and one CID outside of
 * the tags for the AER, which has no timeout.
 *
 * Some tags are reserved for the driver's own commands: users may have as many
 * commands in flight as there are tags, each for as long as its timeout.
 */
#define NVMEP_ADMIN_ENTRIES	32
#define NVMEP_ADMIN_TAGS	30
#define NVMEP_ADMIN_RESERVED	6
#define NVMEP_EVENT_CID		NVMEP_ADMIN_TAGS

/**
 * struct nvmep_admin_command - an admin command of the driver's own
 * @sqe: in: the command, without CID and data pointers
 * @buffer: in: kmalloc() memory for its data, or NULL
 * @length: in: bytes of @buffer
 * @bound: in: fail the command unless the controller is in @generation
 * @generation: in: see @bound
 * @result: out: dwords 0 and 1 of the completion
 */
struct nvmep_admin_command {
	struct nvme_command sqe;
	void *buffer;
	unsigned int length;
	bool bound;
	u32 generation;
	u64 result;
};

int nvmep_admin_init(struct nvmep_ctrl *ctrl, nvmep_complete_fn *complete);
void nvmep_admin_exit(struct nvmep_ctrl *ctrl);

int nvmep_admin_execute(struct nvmep_ctrl *ctrl,
			struct nvmep_admin_command *command);
int nvmep_identify(struct nvmep_ctrl *ctrl, u8 cns, u32 nsid, void *buffer);
int nvmep_get_log(struct nvmep_ctrl *ctrl, u8 page, u8 csi, void *buffer,
		  unsigned int length);
int nvmep_set_feature(struct nvmep_ctrl *ctrl, u8 feature, u32 dword11,
		      u32 *result);

/* The result of an admin command as an error of a read or write in sysfs. */
static inline int nvmep_admin_errno(int ret)
{
	/* Stopped meanwhile: a reset. */
	if (ret == -EINTR)
		return -EAGAIN;
	return ret > 0 ? -EIO : ret;
}

#endif /* _NVMEP_ADMIN_H */
