/* SPDX-License-Identifier: MIT OR GPL-2.0 */
/*
 * file_blocks.h: the extents of a file on its namespace, for programs that read them
 * without the file system (read_file.c, read_file.cu); in C and in C++.  If the extents
 * cannot be used, the program prints the reason and exits.
 *
 * The file system does not track such reads and may reuse a block for another file: until
 * they complete, the file must not be written, truncated, removed or defragmented.
 */
#ifndef FILE_BLOCKS_H
#define FILE_BLOCKS_H

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/fiemap.h>
#include <linux/fs.h>
#include <linux/magic.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <sys/vfs.h>
#include <unistd.h>

enum {
	EXTENTS = 128,		/* of one FIEMAP call */
	SECTOR = 512,		/* unit of partition offsets in sysfs */
};

/**
 * struct file - a file and the location of its file system
 * @fd: open for reading
 * @device: device number of the file system
 * @length: bytes
 * @start: byte of the namespace where the file system begins
 * @controller: name of the controller's node
 * @node: name of the namespace's node
 */
struct file {
	int fd;
	dev_t device;
	uint64_t length;
	uint64_t start;
	char controller[32];
	char node[32];
};

__attribute__((format(printf, 1, 2), noreturn))
static void refuse(const char *format, ...)
{
	va_list arguments;

	va_start(arguments, format);
	fprintf(stderr, "%s: ", program_invocation_short_name);
	vfprintf(stderr, format, arguments);
	fputs("\n", stderr);
	va_end(arguments);
	exit(1);
}

__attribute__((noreturn))
static void refuse_errno(const char *what)
{
	refuse("%s: %s", what, strerror(errno));
}

static uint64_t smaller(uint64_t a, uint64_t b)
{
	return a < b ? a : b;
}

static uint64_t larger(uint64_t a, uint64_t b)
{
	return a > b ? a : b;
}

/* ---- Find the namespace, check the file system and the file -------------- */

/* Shortens the sysfs path of a partition to that of its disk; returns its first byte. */
static uint64_t leave_partition(char *folder)
{
	unsigned long long sectors = 0;
	char path[PATH_MAX + 8];
	FILE *start;

	snprintf(path, sizeof(path), "%s/start", folder);
	start = fopen(path, "re");
	if (!start)
		return 0;
	if (fscanf(start, "%llu", &sectors) != 1)
		refuse("%s is not a number", path);
	fclose(start);
	*strrchr(folder, '/') = '\0';
	return sectors * SECTOR;
}

/* Refuses logical volumes, loop devices and arrays: their blocks are not those of the namespace. */
static void find_namespace(struct file *file)
{
	unsigned int controller, number;
	char link[64], folder[PATH_MAX] = "none";
	const char *disk;
	int end = 0;

	snprintf(link, sizeof(link), "/sys/dev/block/%u:%u", major(file->device),
		 minor(file->device));
	if (realpath(link, folder))
		file->start = leave_partition(folder);
	disk = strrchr(folder, '/') ? strrchr(folder, '/') + 1 : folder;
	if (sscanf(disk, "nvmep%un%u%n", &controller, &number, &end) != 2 || disk[end])
		refuse("the file system is not directly on a namespace of nvme-peer (disk: %s): "
		       "bind a controller (nvme-peer bind) and put the file on its disk", disk);
	snprintf(file->controller, sizeof(file->controller), "nvmep%u", controller);
	snprintf(file->node, sizeof(file->node), "ngp%un%u", controller, number);
}

/* Other file systems return logical addresses from FIEMAP, or use several disks. */
static void check_file_system(const struct file *file)
{
	struct statfs fs;

	if (fstatfs(file->fd, &fs))
		refuse_errno("fstatfs");
	if (fs.f_type != EXT4_SUPER_MAGIC && fs.f_type != XFS_SUPER_MAGIC)
		refuse("the file system is neither ext4 nor XFS: the addresses of its blocks need not be the disk's");
}

/* The newest data of a file may be in the journal only, not in the extents of FIEMAP. */
static void check_journal(const struct file *file)
{
	char *line = NULL, device[32];
	FILE *mounts = fopen("/proc/self/mountinfo", "re");
	size_t size = 0;

	if (!mounts)
		refuse_errno("/proc/self/mountinfo");
	snprintf(device, sizeof(device), " %u:%u ", major(file->device), minor(file->device));
	while (getline(&line, &size, mounts) >= 0)
		if (strstr(line, device) && strstr(line, "data=journal"))
			refuse("the file system has data in its journal: mount it without data=journal");
	free(line);
	fclose(mounts);
}

static const struct {
	unsigned int flag;
	const char *why;
} file_flags[] = {
	{ FS_ENCRYPT_FL, "is encrypted: its blocks are not its data" },
	{ FS_COMPR_FL, "is compressed: its blocks are not its data" },
	{ FS_JOURNAL_DATA_FL, "has data in the journal: chattr -j" },
};

static void check_flags(const struct file *file)
{
	struct fsxattr more;
	int flags = 0;
	size_t i;

	memset(&more, 0, sizeof(more));
	if (ioctl(file->fd, FS_IOC_GETFLAGS, &flags) || ioctl(file->fd, FS_IOC_FSGETXATTR, &more))
		refuse_errno("the file's flags");
	for (i = 0; i < sizeof(file_flags) / sizeof(*file_flags); i++)
		if ((unsigned int)flags & file_flags[i].flag)
			refuse("the file %s", file_flags[i].why);
	if (more.fsx_xflags & FS_XFLAG_REALTIME)
		refuse("the file is on the file system's second, realtime disk");
}

static void file_open(struct file *file, const char *path)
{
	struct stat stat;

	memset(file, 0, sizeof(*file));
	file->fd = open(path, O_RDONLY | O_CLOEXEC);
	if (file->fd < 0 || fstat(file->fd, &stat))
		refuse_errno(path);
	if (!S_ISREG(stat.st_mode))
		refuse("%s is not a file with data", path);
	file->device = stat.st_dev;
	file->length = (uint64_t)stat.st_size;
	find_namespace(file);
	check_file_system(file);
	check_journal(file);
	check_flags(file);
}

/* ---- Extents -------------------------------------------------------------- */

static const struct {
	uint32_t flag;
	const char *why;
} extent_flags[] = {
	{ FIEMAP_EXTENT_DATA_ENCRYPTED, "is encrypted" },
	{ FIEMAP_EXTENT_DATA_INLINE, "is in the inode (inline data), not in blocks" },
	{ FIEMAP_EXTENT_DATA_TAIL, "shares its block with other files" },
	{ FIEMAP_EXTENT_ENCODED, "is compressed, or encoded otherwise" },
	{ FIEMAP_EXTENT_DELALLOC, "has no blocks on the disk yet (delayed allocation)" },
	{ FIEMAP_EXTENT_UNKNOWN, "has an unknown location on the disk" },
	{ FIEMAP_EXTENT_NOT_ALIGNED, "is not aligned to blocks" },
};

static void check_extent(const struct file *file, uint32_t block,
			 const struct fiemap_extent *extent)
{
	uint64_t edges = extent->fe_logical | extent->fe_length | (file->start + extent->fe_physical);
	size_t i;

	for (i = 0; i < sizeof(extent_flags) / sizeof(*extent_flags); i++)
		if (extent->fe_flags & extent_flags[i].flag)
			refuse("the data at byte %llu %s", (unsigned long long)extent->fe_logical,
			       extent_flags[i].why);
	if (edges % block)
		refuse("the data at byte %llu is not aligned to the namespace's blocks of %u bytes",
		       (unsigned long long)extent->fe_logical, block);
}

/* Fills @map with the first extents between @at and @end; returns their number. */
static uint32_t find_extents(struct fiemap *map, const struct file *file, uint64_t at,
			     uint64_t end)
{
	memset(map, 0, sizeof(*map));
	map->fm_start = at;
	map->fm_length = end - at;
	/* Write dirty data back first, so that it has blocks. */
	map->fm_flags = FIEMAP_FLAG_SYNC;
	map->fm_extent_count = EXTENTS;
	if (ioctl(file->fd, FS_IOC_FIEMAP, map))
		refuse_errno("FIEMAP");
	return map->fm_mapped_extents;
}

/** typedef file_data - called for @length bytes at @at in the file, at byte @byte of the namespace */
typedef void (*file_data)(void *context, uint64_t at, uint64_t byte, uint64_t length);

/* Report the part of @extent between @begin and @end of the file. */
static void report_extent(const struct file *file, uint32_t block,
			  const struct fiemap_extent *extent, uint64_t begin, uint64_t end,
			  file_data report, void *context)
{
	uint64_t at = larger(begin, extent->fe_logical);
	uint64_t stop = smaller(end, extent->fe_logical + extent->fe_length);

	check_extent(file, block, extent);
	/* An unwritten extent has blocks, but reads as zeros. */
	if (at < stop && !(extent->fe_flags & FIEMAP_EXTENT_UNWRITTEN))
		report(context, at, file->start + extent->fe_physical + (at - extent->fe_logical),
		       stop - at);
}

/*
 * Report the data of a file from @begin to @end, in multiples of @block bytes.  Ranges that
 * are not reported are zero.
 */
static void file_extents(const struct file *file, uint32_t block, uint64_t begin, uint64_t end,
			 file_data report, void *context)
{
	struct fiemap *map = (struct fiemap *)malloc(sizeof(*map) +
						     EXTENTS * sizeof(struct fiemap_extent));
	uint64_t at = begin;
	uint32_t count, i;

	if (!map)
		refuse_errno("memory");
	while (at < end && (count = find_extents(map, file, at, end))) {
		for (i = 0; i < count; i++)
			report_extent(file, block, &map->fm_extents[i], begin, end, report,
				      context);
		at = map->fm_extents[count - 1].fe_logical + map->fm_extents[count - 1].fe_length;
	}
	free(map);
}

#endif /* FILE_BLOCKS_H */
