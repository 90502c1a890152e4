// SPDX-License-Identifier: GPL-2.0-only
/*
 * NVME_PEER_EXTENTS: where the blocks of a file are, for peers with queue pairs in
 * direct or relay mode, and the pin that keeps them there: window_file.c.
 *
 * The kernel does not see the commands of these peers.  What began before the pin
 * may change blocks later: each read() of the extents compares them, so that a
 * program finds out after its commands.
 */
#include <linux/anon_inodes.h>
#include <linux/fcntl.h>
#include <linux/file.h>
#include <linux/fs.h>
#include <linux/module.h>
#include <linux/mutex.h>
#include <linux/slab.h>
#include <linux/uaccess.h>

#include <linux/nvme_peer.h>

#include "core/ctrl.h"
#include "ioctl.h"
#include "mediated.h"

/**
 * struct nvmep_extents - an open file of NVME_PEER_EXTENTS
 * @lock: guards the version and the comparison of @file
 * @stale: lock: the blocks have changed
 * @file: const: pinned
 */
struct nvmep_extents {
	struct mutex lock;	/* comparison of @file */
	bool stale;
	struct nvmep_file *file;
};

static int nvmep_extents_release(struct inode *inode, struct file *filp)
{
	struct nvmep_extents *extents = filp->private_data;

	/* Does not wait: others may wait for this thread. */
	nvmep_file_put(extents->file);
	kfree(extents);
	return 0;
}

/* The last one is behind the range. */
static u32 nvmep_extents_count(const struct nvmep_extents *extents)
{
	return extents->file->extent_count - 1;
}

/* Within the range, which need not be whole blocks of the file system. */
static int nvmep_extents_copy(const struct nvmep_extents *extents, u32 index,
			      struct nvme_peer_extent __user *user)
{
	const struct nvmep_file *file = extents->file;
	const struct nvmep_extent *from = &file->extents[index];
	u64 first = max(from[0].first, file->first);
	struct nvme_peer_extent extent = {
		.first = first,
		.lba = from[0].lba + (first - from[0].first),
		.blocks = min(from[1].first, file->first + file->count) - first,
	};

	return copy_to_user(user, &extent, sizeof(extent)) ? -EFAULT : 0;
}

/* For good: a peer may have read from blocks that are those of the file again. */
static int nvmep_extents_check(struct nvmep_extents *extents)
{
	int err = mutex_lock_killable(&extents->lock);

	if (err)
		return err;
	if (extents->stale)
		err = -ESTALE;
	else
		err = nvmep_file_check_extents(extents->file);
	extents->stale = err == -ESTALE;
	mutex_unlock(&extents->lock);
	return err;
}

/* Whole structures, from a multiple of their size on. */
static ssize_t nvmep_extents_read(struct file *filp, char __user *user,
				  size_t length, loff_t *position)
{
	struct nvmep_extents *extents = filp->private_data;
	struct nvme_peer_extent __user *to = (void __user *)user;
	u64 index = *position / sizeof(*to);
	u64 end = min_t(u64, nvmep_extents_count(extents),
			index + length / sizeof(*to));
	u32 count = 0;
	int err;

	if (*position % sizeof(*to) || length < sizeof(*to))
		return -EINVAL;
	err = nvmep_extents_check(extents);
	for (; !err && index < end; count++, index++) {
		err = nvmep_extents_copy(extents, index, &to[count]);
		cond_resched();
	}
	if (err)
		return err;
	*position += count * sizeof(*to);
	return count * sizeof(*to);
}

static loff_t nvmep_extents_llseek(struct file *filp, loff_t offset, int whence)
{
	const struct nvmep_extents *extents = filp->private_data;
	loff_t size = (loff_t)nvmep_extents_count(extents) *
		      sizeof(struct nvme_peer_extent);

	return fixed_size_llseek(filp, offset, whence, size);
}

static const struct file_operations nvmep_extents_fops = {
	.owner = THIS_MODULE,
	.read = nvmep_extents_read,
	.release = nvmep_extents_release,
	.llseek = nvmep_extents_llseek,
};

/* By subtraction: the caller chose the values. */
static int nvmep_extents_range(const struct nvmep_file *file,
			       struct nvme_peer_extents *cmd)
{
	if (cmd->first > file->blocks || cmd->blocks > file->blocks - cmd->first)
		return -ERANGE;
	if (!cmd->blocks)
		cmd->blocks = file->blocks - cmd->first;
	return cmd->blocks ? 0 : -EINVAL;
}

static struct nvmep_file *nvmep_extents_open(struct nvmep_ctrl *ctrl,
					     struct nvme_peer_extents *cmd)
{
	struct file *filp = fget(cmd->fd);
	struct nvmep_blocks blocks;
	struct nvmep_file *file;
	int err;

	if (!filp)
		return ERR_PTR(-EBADF);
	file = nvmep_file_open(ctrl, filp, false, &blocks);
	fput(filp);
	if (IS_ERR(file))
		return file;
	err = nvmep_extents_range(file, cmd);
	if (!err)
		err = nvmep_file_read_extents(file, cmd->first, cmd->blocks);
	if (err) {
		nvmep_file_put_removed(file);
		return ERR_PTR(err);
	}
	cmd->nsid = blocks.nsid;
	cmd->block_size = 1U << blocks.shift;
	cmd->count = file->extent_count - 1;
	return file;
}

static struct file *nvmep_extents_file(struct nvmep_extents *extents)
{
	struct file *filp = anon_inode_getfile("[nvme-peer-extents]",
					       &nvmep_extents_fops, extents,
					       O_RDONLY);

	if (!IS_ERR(filp))
		filp->f_mode |= FMODE_LSEEK | FMODE_PREAD;
	return filp;
}

/**
 * nvmep_extents_create() - pin a file and find its extents
 * @ctrl: controller of its disk
 * @cmd: with @fd, @first and @blocks; out: all but @pin_fd
 *
 * Waits for the inode and for I/O: called without a lock.
 *
 * Return: the file for @pin_fd, or an ERR_PTR, see struct nvme_peer_extents.
 */
struct file *nvmep_extents_create(struct nvmep_ctrl *ctrl,
				  struct nvme_peer_extents *cmd)
{
	struct nvmep_extents *extents = kzalloc(sizeof(*extents),
						GFP_KERNEL_ACCOUNT);
	struct nvmep_file *file;
	struct file *filp;

	if (!extents)
		return ERR_PTR(-ENOMEM);
	mutex_init(&extents->lock);
	file = nvmep_extents_open(ctrl, cmd);
	if (IS_ERR(file)) {
		kfree(extents);
		return ERR_CAST(file);
	}
	extents->file = file;
	filp = nvmep_extents_file(extents);
	if (IS_ERR(filp)) {
		nvmep_file_put_removed(file);
		kfree(extents);
	}
	return filp;
}
