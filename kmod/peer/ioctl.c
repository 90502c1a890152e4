// SPDX-License-Identifier: GPL-2.0-only
/*
 * Ioctls whose structures begin with their size.
 *
 * One table for each kind of file maps an ioctl to its structure's size and its
 * handler.  A handler gets a kernel copy of the structure, checks flags and
 * reserved fields first, and does its work.  The answer is copied out as the last
 * step that can fail: what was made becomes reachable for user space after it,
 * or is undone if it fails, so a failed call changes nothing.
 *
 * The work runs under the read side of peers->gate.  Unbinding takes the write
 * side once: after that nothing is in progress and nothing new begins, and
 * whatever is on the lists can be taken down.  So what a handler leaves for its
 * answer is on the lists by then.  User memory is touched and exporters are called
 * without the gate: a page may come late or never, as may an exporter's answer, and
 * nobody else shall wait for that.
 */
#include <linux/file.h>
#include <linux/minmax.h>
#include <linux/uaccess.h>

#include <linux/nvme_peer.h>

#include "ioctl.h"
#include "peers.h"

/**
 * nvmep_ucmd_respond() - copy the structure back
 * @ucmd: the ioctl in progress
 *
 * Return: 0 or EFAULT.
 */
int nvmep_ucmd_respond(struct nvmep_ucmd *ucmd)
{
	if (copy_to_user(ucmd->user, ucmd->cmd,
			 min(ucmd->user_size, ucmd->cmd_size)))
		return -EFAULT;
	return 0;
}

/**
 * nvmep_ucmd_respond_file() - copy the structure back, then install a file
 * @ucmd: the ioctl in progress
 * @fd: from get_unused_fd_flags(); named in the structure
 * @filp: goes to @fd, or is closed together with it if the copy fails
 *
 * Return: 0 or EFAULT.
 */
int nvmep_ucmd_respond_file(struct nvmep_ucmd *ucmd, int fd, struct file *filp)
{
	int err = nvmep_ucmd_respond(ucmd);

	if (!err) {
		fd_install(fd, filp);
		return 0;
	}
	put_unused_fd(fd);
	fput(filp);
	return err;
}

static const struct nvmep_ioctl *nvmep_ioctl_find(const struct nvmep_ioctl *table,
						  size_t count,
						  unsigned int number)
{
	size_t i;

	for (i = 0; i < count; i++)
		if (table[i].number == number)
			return &table[i];
	return NULL;
}

/**
 * nvmep_gate_enter() - begin something that unbinding waits for
 * @peers: of the controller
 *
 * Return: 0, and nvmep_gate_leave() has to follow; or ESHUTDOWN.
 */
int nvmep_gate_enter(struct nvmep_peers *peers)
{
	/* Nobody queues behind unbinding, the only writer, while that waits. */
	if (down_read_trylock(&peers->gate)) {
		if (!peers->removed)
			return 0;
		up_read(&peers->gate);
	}
	return -ESHUTDOWN;
}

/**
 * nvmep_gate_leave() - end it
 * @peers: of the controller
 */
void nvmep_gate_leave(struct nvmep_peers *peers)
{
	up_read(&peers->gate);
}

static int nvmep_ioctl_execute(struct nvmep_peers *peers,
			       const struct nvmep_ioctl *ioctl,
			       struct nvmep_ucmd *ucmd)
{
	int err;

	if (ioctl->ungated)
		return ioctl->execute(ucmd);
	err = nvmep_gate_enter(peers);
	if (err)
		return err;
	err = ioctl->execute(ucmd);
	nvmep_gate_leave(peers);
	return err;
}

/**
 * nvmep_ioctl_dispatch() - find an ioctl, fetch its structure, do it
 * @peers: of the controller
 * @table: the ioctls of this kind of file
 * @count: of them
 * @number: the ioctl
 * @user: its structure
 * @context: for the handler
 *
 * Return: 0 or an error: ENOTTY for an unknown one, EINVAL for a structure that
 * is too short, E2BIG for one with something behind what we know, ESHUTDOWN while
 * the driver is being unbound and after that.
 */
long nvmep_ioctl_dispatch(struct nvmep_peers *peers,
			  const struct nvmep_ioctl *table, size_t count,
			  unsigned int number, void __user *user, void *context)
{
	const struct nvmep_ioctl *ioctl = nvmep_ioctl_find(table, count, number);
	union {
		struct nvme_peer_info info;
		struct nvme_peer_route route;
		struct nvme_peer_buf_import buf_import;
		struct nvme_peer_buf_release buf_release;
		struct nvme_peer_buf_table buf_table;
		struct nvme_peer_qp_create qp_create;
		struct nvme_peer_qp_export qp_export;
		struct nvme_peer_qp_info qp_info;
		struct nvme_peer_qp_rearm qp_rearm;
	} cmd;
	struct nvmep_ucmd ucmd = {
		.user = user,
		.cmd = &cmd,
		.context = context,
	};
	int err;

	if (!ioctl)
		return -ENOTTY;
	if (get_user(ucmd.user_size, (u32 __user *)user))
		return -EFAULT;
	if (ucmd.user_size < ioctl->min_size)
		return -EINVAL;
	if (ucmd.user_size > PAGE_SIZE)
		return -E2BIG;

	ucmd.cmd_size = ioctl->size;
	err = copy_struct_from_user(&cmd, ioctl->size, user, ucmd.user_size);
	if (err)
		return err;
	err = nvmep_ioctl_execute(peers, ioctl, &ucmd);
	if (err || !ioctl->answer)
		return err;
	return ioctl->answer(&ucmd);
}
