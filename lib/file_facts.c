// SPDX-License-Identifier: MIT OR GPL-2.0
/* What the kernel says about a file; see file.h. */
#include <fcntl.h>
#include <limits.h>
#include <linux/fs.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <sys/vfs.h>

#include "file.h"

/* Of the block device with this number. */
static void find_disk(uint32_t device_major, uint32_t device_minor, char disk[4096])
{
	char link[64], folder[PATH_MAX];

	_Static_assert(PATH_MAX <= 4096, "PATH_MAX");
	disk[0] = '\0';
	snprintf(link, sizeof(link), "/sys/dev/block/%u:%u", device_major, device_minor);
	if (realpath(link, folder))
		snprintf(disk, 4096, "%s", folder);
}

/* proc_pid_mountinfo(5): the file system's own options are the last word of a line. */
static bool has_data_journal(uint32_t device_major, uint32_t device_minor)
{
	FILE *mounts = fopen("/proc/self/mountinfo", "re");
	char *line = NULL, number[32];
	bool found = false;
	size_t size = 0;

	snprintf(number, sizeof(number), " %u:%u ", device_major, device_minor);
	while (mounts && !found && getline(&line, &size, mounts) >= 0)
		found = strstr(line, number) && strstr(line, "data=journal");
	free(line);
	if (mounts)
		fclose(mounts);
	return found;
}

/*
 * Removing a lease that does not exist fails, but is permitted to the owner only.  One that
 * the caller has on this descriptor stays.
 */
static bool may_not_lease(int fd)
{
	return fcntl(fd, F_GETLEASE) == F_UNLCK && fcntl(fd, F_SETLEASE, F_UNLCK) < 0 && errno == EACCES;
}

int file_find_facts(int fd, struct file_facts *facts)
{
	struct statfs system;
	struct statx file;
	int flags = 0;

	memset(facts, 0, sizeof(*facts));
	facts->open_flags = fcntl(fd, F_GETFL);
	if (facts->open_flags < 0 || fstatfs(fd, &system) ||
	    statx(fd, "", AT_EMPTY_PATH, STATX_BASIC_STATS, &file))
		return -errno;
	facts->mode = file.stx_mode;
	facts->bytes = file.stx_size;
	facts->dax = file.stx_attributes & STATX_ATTR_DAX;
	facts->block = (uint64_t)system.f_bsize;
	facts->magic = (uint64_t)system.f_type & UINT32_MAX;
	/* Not every file system has flags. */
	if (!ioctl(fd, FS_IOC_GETFLAGS, &flags))
		facts->inode_flags = (uint32_t)flags;
	facts->data_journal = has_data_journal(file.stx_dev_major, file.stx_dev_minor);
	facts->not_owner = may_not_lease(fd);
	find_disk(file.stx_dev_major, file.stx_dev_minor, facts->disk);
	return 0;
}
