// SPDX-License-Identifier: GPL-2.0-only
/*
 * NVMe passthrough by ioctl.
 *
 * The numbers, structures and return values are those of linux/nvme_ioctl.h: 0,
 * a negative error code, or the command's NVMe status as a positive number.
 */
#include <linux/blk-mq.h>
#include <linux/capability.h>
#include <linux/nvme_ioctl.h>
#include <linux/uaccess.h>

#include "command.h"
#include "compat.h"
#include "core/ctrl.h"
#include "core/qids.h"
#include "core/registers.h"
#include "core/request.h"
#include "core/reset.h"
#include "cpu.h"
#include "effects.h"
#include "length.h"
#include "metadata.h"
#include "namespace.h"
#include "params.h"
#include "passthru.h"
#include "permission.h"
#include "scan.h"

/* --- one command --------------------------------------------------------- */

/*
 * How long a command may take, jiffies.  One that takes longer is aborted, or has the
 * controller reset under everybody: users cannot make that come early.
 */
static unsigned int nvmep_user_timeout(const struct request_queue *queue,
				       const struct nvmep_user_command *command)
{
	unsigned int ours = command->admin ? nvmep_admin_timeout * HZ :
					     READ_ONCE(queue->rq_timeout);
	unsigned int wanted;

	if (!command->timeout_ms)
		return ours;
	wanted = max(msecs_to_jiffies(command->timeout_ms), 1UL);
	return wanted >= ours || capable(CAP_SYS_ADMIN) ? wanted : ours;
}

/**
 * nvmep_user_request() - a request for a command of user space, without data
 * @from: where it came in
 * @command: the command, checked
 * @more: as in nvmep_request_alloc()
 * @flags: for blk_mq_alloc_request()
 *
 * Return: the request or an error pointer.
 */
struct request *nvmep_user_request(const struct nvmep_passthru *from,
				   const struct nvmep_user_command *command,
				   blk_opf_t more, blk_mq_req_flags_t flags)
{
	struct request_queue *queue = command->admin ?
		from->ctrl->admin_requests : from->ns->queue;
	struct request *rq = nvmep_request_alloc(queue, &command->sqe, more,
						 flags);

	if (IS_ERR(rq))
		return rq;
	nvmep_request(rq)->flags |= NVMEP_REQUEST_USER;
	rq->timeout = nvmep_user_timeout(queue, command);
	return rq;
}

/**
 * nvmep_user_mapped() - check that a command keeps to the data that was mapped
 * @from: node
 * @command: command
 * @rq: its request, with the data mapped
 *
 * Return: 0, or as nvmep_command_check_length(); the data is unmapped then.
 */
int nvmep_user_mapped(const struct nvmep_passthru *from,
		      const struct nvmep_user_command *command,
		      struct request *rq)
{
	int ret = nvmep_command_check_length(from, command,
					     blk_rq_payload_bytes(rq));

	if (ret)
		blk_rq_unmap_user(rq->bio);
	return ret;
}

/**
 * nvmep_user_map() - map a command's data from the caller's memory
 * @from: node
 * @command: command
 * @rq: its request
 *
 * Return: 0 or a negative error code; nothing is mapped then.
 */
int nvmep_user_map(const struct nvmep_passthru *from,
		   const struct nvmep_user_command *command,
		   struct request *rq)
{
	int ret = 0;

	if (command->address && command->length)
		ret = blk_rq_map_user_io(rq, NULL,
					 u64_to_user_ptr(command->address),
					 command->length, GFP_KERNEL,
					 command->vector, 0, false,
					 rq_data_dir(rq));
	return ret ? ret : nvmep_user_mapped(from, command, rq);
}

/*
 * Sends a request, and frees it as soon as it ended.  A reset waits until ended requests
 * are freed, so whoever has one must not wait for what comes after the reset: neither
 * for a look at namespaces nor for memory of the caller's, which may be on this disk.
 */
static int nvmep_user_run(const struct nvmep_passthru *from, struct request *rq,
			  u32 effects, u64 *result)
{
	struct bio *bio = rq->bio;
	int ret, unmapped;

	nvmep_effects_begin(from->ctrl, effects);
	ret = nvmep_request_status(rq, blk_execute_rq(rq, false));
	*result = nvmep_request(rq)->result;
	blk_mq_free_request(rq);
	nvmep_effects_end(from->ctrl, effects);
	unmapped = blk_rq_unmap_user(bio);
	return ret ?: unmapped;
}

static int nvmep_user_execute_one(const struct nvmep_passthru *from,
				  const struct nvmep_user_command *command,
				  u64 *result)
{
	struct nvmep_user_metadata *metadata;
	struct request *rq;
	bool reads;
	int ret, err;

	rq = nvmep_user_request(from, command, 0, 0);
	if (IS_ERR(rq))
		return PTR_ERR(rq);
	reads = rq_data_dir(rq) == READ;
	ret = nvmep_user_map(from, command, rq);
	if (ret)
		goto err_request;
	metadata = nvmep_user_metadata_add(from, rq, command);
	if (IS_ERR(metadata)) {
		ret = PTR_ERR(metadata);
		goto err_map;
	}
	ret = nvmep_user_run(from, rq, command->effects, result);
	err = nvmep_user_metadata_finish(metadata, reads && !ret);
	return ret ?: err;

err_map:
	blk_rq_unmap_user(rq->bio);
err_request:
	blk_mq_free_request(rq);
	return ret;
}

/*
 * A command that others' commands are sent for, while it has its tag, goes one
 * at a time: many of them would take all tags and wait for each other.
 */
static int nvmep_user_execute_alone(const struct nvmep_passthru *from,
				    const struct nvmep_user_command *command,
				    u64 *result)
{
	struct nvmep_ctrl *ctrl = from->ctrl;
	int ret;

	if (mutex_lock_killable(&ctrl->cpu->effects_lock))
		return -EINTR;
	ret = nvmep_qids_bar_peers(ctrl);
	if (ret) {
		dev_warn_ratelimited(ctrl->dev,
				     "opcode %#x refused, it may change what peers use: close the peers' queue pairs first\n",
				     command->sqe.opcode);
	} else {
		ret = nvmep_user_execute_one(from, command, result);
		nvmep_qids_admit_peers(ctrl);
	}
	mutex_unlock(&ctrl->cpu->effects_lock);
	return ret;
}

/**
 * nvmep_user_execute() - send a command of user space and wait
 * @from: where it came in
 * @command: the command; filled with its effects
 * @result: dwords 0 and 1 of the completion
 *
 * Return: 0; the NVMe status, positive; -EBUSY for a command that may change
 * namespaces while peers have queue pairs; another negative error code.
 */
int nvmep_user_execute(const struct nvmep_passthru *from,
		       struct nvmep_user_command *command, u64 *result)
{
	int ret;

	ret = nvmep_command_check(from, command);
	if (ret)
		return ret;
	if (command->admin && nvmep_effects_disturb(command->effects))
		return nvmep_user_execute_alone(from, command, result);
	return nvmep_user_execute_one(from, command, result);
}

/* --- the structures of the ABI ------------------------------------------- */

/*
 * The structures with a 32-bit and a 64-bit result are the same up to the
 * result.
 */
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
		.sqe.opcode = user.opcode,
		.sqe.nsid = cpu_to_le32(user.nsid),
		.sqe.cdw2 = cpu_to_le32(user.cdw2),
		.sqe.cdw3 = cpu_to_le32(user.cdw3),
		.sqe.cdw10 = cpu_to_le32(user.cdw10),
		.sqe.cdw11 = cpu_to_le32(user.cdw11),
		.sqe.cdw12 = cpu_to_le32(user.cdw12),
		.sqe.cdw13 = cpu_to_le32(user.cdw13),
		.sqe.cdw14 = cpu_to_le32(user.cdw14),
		.sqe.cdw15 = cpu_to_le32(user.cdw15),
		.address = user.addr,
		.length = user.data_len,
		.metadata = user.metadata,
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
 * The lengths that the oldest form does not say.  Protection information that the
 * controller makes and strips has no place to come from or go to.
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

/* The oldest form: a read, write or compare of the NVM command set without its lengths. */
static int nvmep_ioctl_submit(const struct nvmep_passthru *from,
			      struct nvme_user_io __user *arg)
{
	struct nvmep_user_command command = { };
	struct nvme_user_io user;
	u64 result;
	int ret;

	if (copy_from_user(&user, arg, sizeof(user)))
		return -EFAULT;
	if (user.flags)
		return -EINVAL;
	if (from->ns->ids.csi ||
	    (user.opcode != NVME_CMD_READ && user.opcode != NVME_CMD_WRITE &&
	     user.opcode != NVME_CMD_COMPARE))
		return -EINVAL;
	command.sqe.opcode = user.opcode;
	command.sqe.nsid = cpu_to_le32(from->ns->nsid);
	command.sqe.cdw10 = cpu_to_le32(lower_32_bits(user.slba));
	command.sqe.cdw11 = cpu_to_le32(upper_32_bits(user.slba));
	command.sqe.cdw12 = cpu_to_le32((u32)user.control << 16 |
					user.nblocks);
	command.sqe.cdw13 = cpu_to_le32(user.dsmgmt);
	command.sqe.cdw14 = cpu_to_le32(user.reftag);
	command.sqe.cdw15 = cpu_to_le32((u32)user.appmask << 16 | user.apptag);
	command.address = user.addr;
	ret = nvmep_submit_lengths(from->ns, &user, &command);
	return ret ?: nvmep_user_execute(from, &command, &result);
}

static int nvmep_ioctl_subsystem_reset(struct nvmep_ctrl *ctrl)
{
	if (!NVME_CAP_NSSRS(ctrl->cap))
		return -ENOTTY;
	return nvmep_ctrl_reset_subsystem(ctrl);
}

/* What only the controller's node and only the administrator can do. */
static int nvmep_ioctl_manage(struct nvmep_ctrl *ctrl, unsigned int cmd)
{
	if (!capable(CAP_SYS_ADMIN))
		return -EACCES;
	switch (cmd) {
	case NVME_IOCTL_RESET:
		dev_warn(ctrl->dev, "resetting on request\n");
		return nvmep_ctrl_reset_sync(ctrl);
	case NVME_IOCTL_SUBSYS_RESET:
		return nvmep_ioctl_subsystem_reset(ctrl);
	default:
		nvmep_scan(ctrl);
		return 0;
	}
}

/* By the controller's node, from the times before namespaces had nodes of their own. */
static int nvmep_ioctl_only_ns(struct nvmep_passthru from,
			       struct nvme_passthru_cmd __user *arg)
{
	int ret;

	from.ns = nvmep_ns_get_only(from.ctrl);
	if (from.ns == ERR_PTR(-EINVAL))
		dev_info_ratelimited(from.ctrl->dev,
				     "I/O command refused, there are several namespaces: send it by one's own node\n");
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
		return nvmep_ioctl_submit(from, arg);
	case NVME_IOCTL_IO64_CMD:
		return nvmep_ioctl_command64(from, false, false, arg);
	case NVME_IOCTL_IO64_CMD_VEC:
		return nvmep_ioctl_command64(from, false, true, arg);
	default:
		return -ENOTTY;
	}
}

/**
 * nvmep_passthru_ioctl() - the ioctls of linux/nvme_ioctl.h
 * @from: the node
 * @cmd: ioctl number
 * @arg: its argument
 *
 * Return: as the ABI has it; -ENOTTY for other numbers.
 */
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
