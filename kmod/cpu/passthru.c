// SPDX-License-Identifier: GPL-2.0-only
/*
 * NVMe passthrough by ioctl, with the ABI of linux/nvme_ioctl.h: an ioctl
 * returns 0, a negative error code, or the NVMe status of the command as a
 * positive number.
 */
#include <linux/blk-mq.h>
#include <linux/capability.h>
#include <linux/nvme_ioctl.h>
#include <linux/uaccess.h>

#include "compat.h"
#include "core/ctrl.h"
#include "core/qids.h"
#include "core/registers.h"
#include "core/request.h"
#include "core/reset.h"
#include "cpu.h"
#include "module.h"
#include "namespace.h"
#include "passthru.h"
#include "scan.h"
#include "user_command.h"
#include "user_data.h"

/* --- one command --------------------------------------------------------- */

/*
 * Timeout of a command in jiffies.  A command that times out is aborted, and
 * the controller may be reset, which affects all users; until then scans,
 * Format and unbind wait for it.  So without CAP_SYS_ADMIN it is the default.
 */
static unsigned int nvmep_user_timeout(const struct request_queue *queue,
				       const struct nvmep_user_command *command)
{
	unsigned int usual = command->admin ? nvmep_admin_timeout * HZ :
					      READ_ONCE(queue->rq_timeout);
	unsigned int wanted;

	if (!command->timeout_ms)
		return usual;
	wanted = max(msecs_to_jiffies(command->timeout_ms), 1UL);
	return wanted == usual || capable(CAP_SYS_ADMIN) ? wanted : usual;
}

/**
 * nvmep_user_request() - allocate a request without data for a command
 * @from: device node
 * @command: command that passed nvmep_command_check()
 * @more: as in nvmep_request_alloc()
 * @flags: for blk_mq_alloc_request()
 *
 * Return: the request or an error pointer.
 */
struct request *nvmep_user_request(const struct nvmep_passthru *from,
				   const struct nvmep_user_command *command,
				   blk_opf_t more, blk_mq_req_flags_t flags)
{
	struct request_queue *queue = nvmep_user_queue(from, command);
	struct request *rq = nvmep_request_alloc(queue, &command->sqe, more,
						 flags);

	if (IS_ERR(rq))
		return rq;
	nvmep_request(rq)->flags |= NVMEP_REQUEST_USER;
	rq->timeout = nvmep_user_timeout(queue, command);
	return rq;
}

/**
 * struct nvmep_user_memory - user memory of a command
 * @pages: pages of nvmep_user_pin()
 * @pinned: number of @pages; 0: see @held
 * @held: other data and metadata, or NULL
 * @sent: the command was sent: the pages or @held may have its data
 */
struct nvmep_user_memory {
	union nvmep_user_pages pages;
	unsigned int pinned;
	struct nvmep_user_held *held;
	bool sent;
};

/* Accesses user memory: no request is allocated yet, see user_data.c. */
static int nvmep_user_hold_memory(const struct nvmep_passthru *from,
				  const struct nvmep_user_command *command,
				  struct nvmep_user_memory *memory)
{
	memory->held = NULL;
	memory->sent = false;
	memory->pinned = nvmep_user_pin(from, command, &memory->pages);
	if (!memory->pinned)
		memory->held = nvmep_user_hold(from, command, false);
	return PTR_ERR_OR_ZERO(memory->held);
}

static int nvmep_user_attach_memory(const struct nvmep_passthru *from,
				    const struct nvmep_user_command *command,
				    struct request *rq,
				    struct nvmep_user_memory *memory)
{
	if (!memory->pinned)
		return nvmep_user_attach_held(from, command, rq, memory->held);
	nvmep_user_attach(command, rq, &memory->pages, memory->pinned);
	return nvmep_command_check_length(from, command, command->length);
}

/* After the request was freed.  @success: as nvmep_user_release(). */
static int nvmep_user_release_memory(const struct nvmep_user_command *command,
				     struct nvmep_user_memory *memory,
				     bool success)
{
	bool reads = memory->sent && nvmep_command_reads(command);

	if (!memory->pinned)
		return nvmep_user_release(memory->held, reads, success);
	nvmep_user_unpin(&memory->pages, memory->pinned, reads);
	return 0;
}

/*
 * Executes a request and frees it as soon as it has ended.  A reset waits until
 * ended requests are freed, so waiting with one for a namespace scan, which
 * needs the reset, would deadlock.
 */
static int nvmep_user_run(const struct nvmep_passthru *from, struct request *rq,
			  u32 effects, u64 *result)
{
	int ret;

	nvmep_effects_begin(from->ctrl, effects);
	ret = nvmep_request_status(rq, blk_execute_rq(rq, false));
	*result = nvmep_request(rq)->result;
	blk_mq_free_request(rq);
	nvmep_effects_end(from->ctrl, effects);
	return ret;
}

static int nvmep_user_execute_one(const struct nvmep_passthru *from,
				  const struct nvmep_user_command *command,
				  struct nvmep_user_memory *memory,
				  u64 *result)
{
	struct request *rq;
	int ret;

	rq = nvmep_user_request(from, command, 0, 0);
	if (IS_ERR(rq))
		return PTR_ERR(rq);
	ret = nvmep_user_attach_memory(from, command, rq, memory);
	if (ret) {
		blk_mq_free_request(rq);
		return ret;
	}
	memory->sent = true;
	return nvmep_user_run(from, rq, command->effects, result);
}

/*
 * For the effects of nvmep_effects_need_peers_blocked().  One command at a
 * time: nvmep_effects_begin() waits with the command's tag for a scan, which
 * issues admin commands.  Several could hold all admin tags and deadlock.
 */
static int
nvmep_user_execute_peers_blocked(const struct nvmep_passthru *from,
				 const struct nvmep_user_command *command,
				 struct nvmep_user_memory *memory,
				 u64 *result)
{
	struct nvmep_ctrl *ctrl = from->ctrl;
	int ret;

	if (mutex_lock_killable(&ctrl->cpu->effects_lock))
		return -EINTR;
	ret = nvmep_qids_block_peers(ctrl);
	if (ret) {
		dev_warn_ratelimited(ctrl->dev,
				     "admin opcode %#x refused, it may change namespaces that peers use: close all peer queue pairs first\n",
				     command->sqe.common.opcode);
	} else {
		ret = nvmep_user_execute_one(from, command, memory, result);
		nvmep_qids_unblock_peers(ctrl);
	}
	mutex_unlock(&ctrl->cpu->effects_lock);
	return ret;
}

/**
 * nvmep_user_execute() - check and execute a passthrough command
 * @from: device node
 * @command: command; filled with its effects
 * @result: dwords 0 and 1 of the completion
 *
 * Sleeps until the command has ended.
 *
 * Return: 0; the NVMe status, positive; -EBUSY for a command that may change
 * namespaces while peers have queue pairs; another negative error code.
 */
int nvmep_user_execute(const struct nvmep_passthru *from,
		       struct nvmep_user_command *command, u64 *result)
{
	struct nvmep_user_memory memory;
	int ret, err;

	ret = nvmep_command_check(from, command);
	if (ret)
		return ret;
	if (command->admin)
		nvmep_command_fit(command);
	ret = nvmep_user_hold_memory(from, command, &memory);
	if (ret)
		return ret;
	if (command->admin &&
	    nvmep_effects_need_peers_blocked(command->effects))
		ret = nvmep_user_execute_peers_blocked(from, command, &memory,
						       result);
	else
		ret = nvmep_user_execute_one(from, command, &memory, result);
	err = nvmep_user_release_memory(command, &memory, !ret);
	return ret ?: err;
}

/* --- ioctls --------------------------------------------------------------- */

/* The structures with a 32-bit and a 64-bit result differ only in it. */
#define NVMEP_COMMON_SIZE	offsetof(struct nvme_passthru_cmd, result)

static_assert(offsetof(struct nvme_passthru_cmd, timeout_ms) ==
	      offsetof(struct nvme_passthru_cmd64, timeout_ms));
static_assert(NVMEP_COMMON_SIZE ==
	      offsetofend(struct nvme_passthru_cmd64, timeout_ms));

static int nvmep_copy_command(struct nvmep_user_command *command,
			      const void __user *arg)
{
	struct nvme_passthru_cmd64 user;

	if (copy_from_user(&user, arg, NVMEP_COMMON_SIZE))
		return -EFAULT;
	if (user.flags)
		return -EINVAL;
	*command = (struct nvmep_user_command){
		.sqe.common.opcode = user.opcode,
		.sqe.common.nsid = cpu_to_le32(user.nsid),
		.sqe.common.cdw2[0] = cpu_to_le32(user.cdw2),
		.sqe.common.cdw2[1] = cpu_to_le32(user.cdw3),
		.sqe.common.cdw10 = cpu_to_le32(user.cdw10),
		.sqe.common.cdw11 = cpu_to_le32(user.cdw11),
		.sqe.common.cdw12 = cpu_to_le32(user.cdw12),
		.sqe.common.cdw13 = cpu_to_le32(user.cdw13),
		.sqe.common.cdw14 = cpu_to_le32(user.cdw14),
		.sqe.common.cdw15 = cpu_to_le32(user.cdw15),
		.address = nvmep_user_address(user.addr),
		.length = user.data_len,
		.metadata = nvmep_user_address(user.metadata),
		.metadata_length = user.metadata_len,
		.timeout_ms = user.timeout_ms,
	};
	return 0;
}

static int nvmep_ioctl_command(const struct nvmep_passthru *from, bool admin,
			       struct nvme_passthru_cmd __user *arg)
{
	struct nvmep_user_command command;
	u64 result = 0;
	int ret;

	ret = nvmep_copy_command(&command, arg);
	if (ret)
		return ret;
	command.admin = admin;
	ret = nvmep_user_execute(from, &command, &result);
	if (ret >= 0 && put_user((u32)result, &arg->result))
		return -EFAULT;
	return ret;
}

static int nvmep_ioctl_command64(const struct nvmep_passthru *from, bool admin,
				 bool vector,
				 struct nvme_passthru_cmd64 __user *arg)
{
	struct nvmep_user_command command;
	u64 result = 0;
	int ret;

	ret = nvmep_copy_command(&command, arg);
	if (ret)
		return ret;
	command.admin = admin;
	command.vector = vector;
	ret = nvmep_user_execute(from, &command, &result);
	if (ret >= 0 && put_user(result, &arg->result))
		return -EFAULT;
	return ret;
}

/*
 * NVME_IOCTL_SUBMIT_IO has no lengths: derive them from the format.  With PRACT
 * there is no metadata to transfer.  The format may change until a request is
 * allocated, so nvmep_command_check_length() checks the lengths again.
 */
static int nvmep_submit_lengths(const struct nvmep_ns *ns,
				const struct nvme_user_io *user,
				struct nvmep_user_command *command)
{
	u32 metadata = nvmep_rw_metadata(ns, &command->sqe);

	command->length = (user->nblocks + 1U) << ns->block_shift;
	if (ns->extended) {
		command->length += metadata;
		return 0;
	}
	if (!ns->metadata_size)
		return 0;
	if (!metadata != !user->metadata || user->metadata & 3)
		return -EINVAL;
	command->metadata = user->metadata;
	command->metadata_length = metadata;
	return 0;
}

/*
 * NVME_IOCTL_SUBMIT_IO of a 32-bit program: on some architectures the structure
 * ends without the padding, which is not read.
 */
#define NVMEP_USER_IO_SIZE	offsetofend(struct nvme_user_io, appmask)
#define NVMEP_IOCTL_SUBMIT_IO32	_IOC(_IOC_WRITE, 'N', 0x42, NVMEP_USER_IO_SIZE)

/* NVME_IOCTL_SUBMIT_IO: Read, Write or Compare of blocks. */
static int nvmep_ioctl_submit(const struct nvmep_passthru *from,
			      struct nvme_user_io __user *arg)
{
	struct nvmep_user_command command = { };
	struct nvme_user_io user;
	u64 result;
	int ret;

	if (copy_from_user(&user, arg, NVMEP_USER_IO_SIZE))
		return -EFAULT;
	if (user.flags)
		return -EINVAL;
	if (!nvmep_has_blocks(&from->ns->ids) ||
	    (user.opcode != nvme_cmd_read && user.opcode != nvme_cmd_write &&
	     user.opcode != nvme_cmd_compare))
		return -EINVAL;
	command.sqe.common.opcode = user.opcode;
	command.sqe.common.nsid = cpu_to_le32(from->ns->nsid);
	command.sqe.common.cdw10 = cpu_to_le32(lower_32_bits(user.slba));
	command.sqe.common.cdw11 = cpu_to_le32(upper_32_bits(user.slba));
	command.sqe.common.cdw12 = cpu_to_le32((u32)user.control << 16 |
					       user.nblocks);
	command.sqe.common.cdw13 = cpu_to_le32(user.dsmgmt);
	command.sqe.common.cdw14 = cpu_to_le32(user.reftag);
	command.sqe.common.cdw15 = cpu_to_le32((u32)user.appmask << 16 |
					       user.apptag);
	user.metadata = nvmep_user_address(user.metadata);
	command.address = nvmep_user_address(user.addr);
	ret = nvmep_submit_lengths(from->ns, &user, &command);
	return ret ?: nvmep_user_execute(from, &command, &result);
}

static int nvmep_ioctl_subsystem_reset(struct nvmep_ctrl *ctrl)
{
	if (!NVME_CAP_NSSRC(ctrl->cap))
		return -ENOTTY;
	return nvmep_ctrl_reset_subsystem(ctrl);
}

/* Ioctls of the controller's device node that need CAP_SYS_ADMIN. */
static int nvmep_ioctl_manage(struct nvmep_ctrl *ctrl, unsigned int cmd)
{
	if (!capable(CAP_SYS_ADMIN))
		return -EACCES;
	switch (cmd) {
	case NVME_IOCTL_RESET:
		dev_warn(ctrl->dev,
			 "resetting the controller, as requested by ioctl\n");
		return nvmep_ctrl_reset_sync(ctrl);
	case NVME_IOCTL_SUBSYS_RESET:
		return nvmep_ioctl_subsystem_reset(ctrl);
	default:
		nvmep_scan(ctrl);
		return 0;
	}
}

/* Deprecated: an I/O command by the controller's device node, as in-tree. */
static int nvmep_ioctl_only_ns(struct nvmep_passthru from,
			       struct nvme_passthru_cmd __user *arg)
{
	int ret;

	from.ns = nvmep_ns_get_only(from.ctrl);
	if (from.ns == ERR_PTR(-EINVAL))
		dev_info_ratelimited(from.ctrl->dev,
				     "I/O command refused, the controller has several namespaces: use the device node of one\n");
	if (IS_ERR(from.ns))
		return PTR_ERR(from.ns);
	ret = nvmep_ioctl_command(&from, false, arg);
	nvmep_ns_put(from.ns);
	return ret;
}

static int nvmep_ns_ioctl_command(const struct nvmep_passthru *from,
				  unsigned int cmd, void __user *arg)
{
	switch (cmd) {
	case NVME_IOCTL_ID:
		return from->ns->nsid;
	case NVME_IOCTL_SUBMIT_IO:
	case NVMEP_IOCTL_SUBMIT_IO32:
		return nvmep_ioctl_submit(from, arg);
	case NVME_IOCTL_IO64_CMD:
		return nvmep_ioctl_command64(from, false, false, arg);
	case NVME_IOCTL_IO64_CMD_VEC:
		return nvmep_ioctl_command64(from, false, true, arg);
	default:
		return -ENOTTY;
	}
}

/* The ioctls of linux/nvme_ioctl.h; -ENOTTY for all others. */
int nvmep_passthru_ioctl(const struct nvmep_passthru *from, unsigned int cmd,
			 void __user *arg)
{
	switch (cmd) {
	case NVME_IOCTL_ADMIN_CMD:
		return nvmep_ioctl_command(from, true, arg);
	case NVME_IOCTL_ADMIN64_CMD:
		return nvmep_ioctl_command64(from, true, false, arg);
	case NVME_IOCTL_RESET:
	case NVME_IOCTL_SUBSYS_RESET:
	case NVME_IOCTL_RESCAN:
		return from->ns ? -ENOTTY : nvmep_ioctl_manage(from->ctrl, cmd);
	case NVME_IOCTL_IO_CMD:
		return from->ns ? nvmep_ioctl_command(from, false, arg) :
				  nvmep_ioctl_only_ns(*from, arg);
	default:
		return from->ns ? nvmep_ns_ioctl_command(from, cmd, arg) :
				  -ENOTTY;
	}
}
