// SPDX-License-Identifier: GPL-2.0-only
/*
 * The identifier that a disk gives to users in the kernel, such as the pNFS
 * server, by get_unique_id().
 */
#include <linux/blkdev.h>
#include <linux/file.h>
#include <linux/fs.h>

#include "test.h"

static int test_disk_id(struct gendisk *disk, struct nvmep_test_unique_id *id)
{
	if (!disk->fops->get_unique_id)
		return -EOPNOTSUPP;
	return disk->fops->get_unique_id(disk, id->id, id->type);
}

int test_unique_id(struct nvmep_test_unique_id *id)
{
	struct file *file = fget(id->fd);
	struct inode *inode;

	if (!file)
		return -EBADF;
	inode = file->f_mapping->host;
	id->length = S_ISBLK(inode->i_mode) ?
		     test_disk_id(I_BDEV(inode)->bd_disk, id) : -ENOTBLK;
	fput(file);
	return 0;
}
