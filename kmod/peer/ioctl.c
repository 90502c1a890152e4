// SPDX-License-Identifier: GPL-2.0-only
/*
 * Dispatch of ioctls whose structures begin with their size.
 *
 * A table for each kind of file maps an ioctl to the size of its structure and
 * its handlers.  .execute gets a kernel copy of the structure, validates flags
 * and reserved fields and does the work.  .respond copies the result out.  The
 * copy is the last step that can fail: objects become visible to user space
 * after it, or are undone if it fails.  So a failed call changes nothing, with
 * two exceptions: NVME_PEER_BUF_TABLE may have exposed the buffer and written
 * addresses, and NVME_PEER_QP_REARM may have cleared rings and restored
 * doorbells.
 *
 * .execute runs under the read side of peers->ioctl_rwsem.  Unbinding sets
 * peers->removed and takes the write side once.  After that no handler runs and
 * none starts, so unbinding can release all objects on the lists; an object
 * that .execute leaves to .respond must be on a list by then.
 *
 * User memory is accessed and exporters are called without peers->ioctl_rwsem:
 * a page fault or an exporter may block forever, and unbinding must not wait
 * for it.
 */
#include <linux/file.h>
#include <linux/minmax.h>
#include <linux/uaccess.h>

#include <linux/nvme_peer.h>

#include "ioctl.h"
#include "peer.h"

/**
 * nvmep_ucmd_respond() - copy the structure to user space
 * @ucmd: the ioctl in progress
 *
 * Return: 0 or -EFAULT.
 */
int nvmep_ucmd_respond(struct nvmep_ucmd *ucmd)
{
	if (copy_to_user(ucmd->user, ucmd->cmd,
			 min(ucmd->user_size, ucmd->cmd_size)))
		return -EFAULT;
	return 0;
}

/**
 * nvmep_ucmd_respond_file() - copy the structure out, then install a file
 * @ucmd: the ioctl in progress
 * @fd: from get_unused_fd_flags(); reported in the structure
 * @filp: installed at @fd; if the copy fails, both are released
 *
 * Return: 0 or -EFAULT.
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
	while (count--)
		if (table[count].number == number)
			return &table[count];
	return NULL;
}

/**
 * nvmep_ioctl_begin() - start work that unbinding waits for
 * @peers: of the controller
 *
 * Return: 0, then nvmep_ioctl_end() must follow; or -ESHUTDOWN.
 */
int nvmep_ioctl_begin(struct nvmep_peers *peers)
{
	/* The only writer is unbinding: fail instead of waiting for it. */
	if (down_read_trylock(&peers->ioctl_rwsem)) {
		if (!peers->removed)
			return 0;
		up_read(&peers->ioctl_rwsem);
	}
	return -ESHUTDOWN;
}

/**
 * nvmep_ioctl_end() - end of work that unbinding waits for
 * @peers: of the controller
 */
void nvmep_ioctl_end(struct nvmep_peers *peers)
{
	up_read(&peers->ioctl_rwsem);
}

static int nvmep_ioctl_execute(struct nvmep_peers *peers,
			       const struct nvmep_ioctl *ioctl,
			       struct nvmep_ucmd *ucmd)
{
	int err;

	if (ioctl->no_rwsem)
		return ioctl->execute(ucmd);
	err = nvmep_ioctl_begin(peers);
	if (err)
		return err;
	err = ioctl->execute(ucmd);
	nvmep_ioctl_end(peers);
	return err;
}

/**
 * nvmep_ioctl_dispatch() - run an ioctl
 * @peers: of the controller
 * @table: ioctls of this kind of file
 * @count: entries of @table
 * @number: the ioctl
 * @user: the caller's structure
 * @context: private data of the file, for the handler
 *
 * Return: 0 or an error: -ENOTTY for an unknown ioctl, -EINVAL for a structure
 * that is too short, -E2BIG for an unknown tail that is not zero, -ESHUTDOWN if
 * the driver is being unbound or was unbound.
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
		struct nvme_peer_buf_alloc buf_alloc;
		struct nvme_peer_extents extents;
		struct nvme_peer_qp_create qp_create;
		struct nvme_peer_qp_export qp_export;
		struct nvme_peer_qp_info qp_info;
		struct nvme_peer_qp_rearm qp_rearm;
		struct nvme_peer_window_add window_add;
		struct nvme_peer_window_remove window_remove;
		struct nvme_peer_window_info window_info;
		struct nvme_peer_buf_add buf_add;
		struct nvme_peer_buf_remove buf_remove;
		struct nvme_peer_qp_kick kick;
		struct nvme_peer_qp_limits limits;
		struct nvme_peer_qp_stats stats;
		struct nvme_peer_qp_seal seal;
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
	if (err || !ioctl->respond)
		return err;
	return ioctl->respond(&ucmd);
}
