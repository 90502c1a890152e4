// SPDX-License-Identifier: MIT OR GPL-2.0
/* Files for windows: what prevents a window, and its fix; add a window, or get the extents. */
#include <fcntl.h>
#include <linux/fs.h>
#include <linux/magic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "file.h"

enum { EXTENTS = 128 /* of one call */ };

#define SERVE "serve it: nvmepeer_serve_create(3), nvme-peer serve check PATH"
#define PREPARE "write zeros there: nvme-peer file prepare PATH SIZE"

/* In the order of the bits.  @inode_flags of FS_IOC_GETFLAGS, @extent_flags of FIEMAP. */
static const struct {
	const char *name;
	uint32_t inode_flags;
	uint32_t extent_flags;
	const char *limit;
	const char *help;
} obstacles[] = {
	{ "not-regular", 0, 0, "it is no regular file",
	  "pass a regular file; nvmepeer_window_add() takes a block device" },
	{ "no-disk", 0, 0, "the file system is not on a block device of its own", SERVE },
	{ "other-disk", 0, 0, "the disk is no namespace of nvme-peer and no partition of one", SERVE },
	{ "file-system", 0, 0, "the file system is neither ext4 nor XFS", SERVE },
	{ "read-only", 0, 0, "the file is not open for reading and writing",
	  "open it with O_RDWR, which takes write permission and a file system that is mounted for writing" },
	{ "not-owner", 0, 0, "the caller neither owns the file nor has CAP_LEASE",
	  "run as the owner of the file, or with CAP_LEASE" },
	{ "immutable", FS_IMMUTABLE_FL, 0, "the file is immutable", "chattr -i PATH" },
	{ "append-only", FS_APPEND_FL, 0, "the file is append-only", "chattr -a PATH" },
	{ "encrypted", FS_ENCRYPT_FL, FIEMAP_EXTENT_DATA_ENCRYPTED,
	  "the file is encrypted: its blocks are not its data", SERVE },
	{ "compressed", FS_COMPR_FL, FIEMAP_EXTENT_ENCODED,
	  "the file is compressed: its blocks are not its data", SERVE },
	{ "verity", FS_VERITY_FL, 0, "the file is protected by fs-verity", SERVE },
	{ "dax", FS_DAX_FL, 0, "the file is accessed by DAX",
	  "mount the file system with dax=never, or " SERVE },
	{ "journalled", FS_JOURNAL_DATA_FL, 0, "data is written to the journal first",
	  "chattr -j PATH, or mount the file system without data=journal" },
	{ "inline", FS_INLINE_DATA_FL, FIEMAP_EXTENT_DATA_INLINE, "the data is in the inode, not in blocks",
	  "make the file longer than a block: nvme-peer file prepare PATH SIZE" },
	{ "shared", 0, FIEMAP_EXTENT_SHARED | FIEMAP_EXTENT_DATA_TAIL,
	  "the file shares blocks with another file", "copy it: cp --reflink=never" },
	{ "unplaced", 0, FIEMAP_EXTENT_UNKNOWN | FIEMAP_EXTENT_DELALLOC | FIEMAP_EXTENT_NOT_ALIGNED,
	  "data has no known location on the disk, or one that is not aligned to blocks",
	  "fsync() the file and check again, or " SERVE },
	{ "empty", 0, 0, "the file has no whole block of the file system", PREPARE },
	{ "holes", 0, 0, "a part of the file has no blocks", PREPARE },
	{ "unwritten", 0, FIEMAP_EXTENT_UNWRITTEN, "a part of the file has blocks that were never written",
	  PREPARE },
};

static const struct {
	uint64_t magic;
	const char *name;
} file_systems[] = {
	{ EXT4_SUPER_MAGIC, "ext4" }, { XFS_SUPER_MAGIC, "xfs" }, { BTRFS_SUPER_MAGIC, "btrfs" },
	{ TMPFS_MAGIC, "tmpfs" }, { OVERLAYFS_SUPER_MAGIC, "overlay" }, { NFS_SUPER_MAGIC, "nfs" },
	{ F2FS_SUPER_MAGIC, "f2fs" }, { FUSE_SUPER_MAGIC, "fuse" }, { RAMFS_MAGIC, "ramfs" },
};

/* ---- The obstacles -------------------------------------------------------- */

static void name_file_system(uint64_t magic, char name[16])
{
	size_t i;

	for (i = 0; i < ARRAY_SIZE(file_systems); i++)
		if (file_systems[i].magic == magic) {
			snprintf(name, 16, "%s", file_systems[i].name);
			return;
		}
	snprintf(name, 16, "0x%x", (uint32_t)magic);
}

/* ".../nvmep0/nvmep0n1/nvmep0n1p1": the controller, the namespace, a partition. */
static void name_disk(const char *folder, struct nvmepeer_file_info *info)
{
	const char *name = strrchr(folder, '/'), *at = folder;
	unsigned int number;
	int end;

	snprintf(info->disk, sizeof(info->disk), "%s", name ? name + 1 : "");
	while ((at = strstr(at, "/nvmep"))) {
		end = 0;
		if (sscanf(at, "/nvmep%u%n", &number, &end) == 1 && at[end] == '/')
			snprintf(info->controller, sizeof(info->controller), "nvmep%u", number);
		at++;
	}
}

void file_judge(const struct file_facts *facts, struct nvmepeer_file_info *info)
{
	uint32_t found = 0;
	size_t i;

	info->bytes = facts->bytes;
	name_file_system(facts->magic, info->file_system);
	name_disk(facts->disk, info);
	/* All others are those of regular files. */
	info->obstacles = NVMEPEER_FILE_NOT_REGULAR;
	if (!S_ISREG(facts->mode))
		return;
	for (i = 0; i < ARRAY_SIZE(obstacles); i++)
		if (facts->inode_flags & obstacles[i].inode_flags)
			found |= 1u << i;
	if (!info->disk[0])
		found |= NVMEPEER_FILE_NO_DISK;
	else if (!info->controller[0])
		found |= NVMEPEER_FILE_OTHER_DISK;
	if (facts->magic != EXT4_SUPER_MAGIC && facts->magic != XFS_SUPER_MAGIC)
		found |= NVMEPEER_FILE_SYSTEM;
	if ((facts->open_flags & O_ACCMODE) != O_RDWR)
		found |= NVMEPEER_FILE_READ_ONLY;
	if (facts->not_owner)
		found |= NVMEPEER_FILE_NOT_OWNER;
	if (facts->dax)
		found |= NVMEPEER_FILE_DAX;
	if (facts->data_journal)
		found |= NVMEPEER_FILE_JOURNALLED;
	if (facts->bytes < facts->block)
		found |= NVMEPEER_FILE_EMPTY;
	info->obstacles = found;
}

static uint64_t smaller(uint64_t a, uint64_t b)
{
	return a < b ? a : b;
}

/* What lies beyond the end of the file is no part of a window. */
void file_add_extent(struct nvmepeer_file_info *info, uint64_t *at, const struct fiemap_extent *extent)
{
	uint64_t begin = smaller(extent->fe_logical, info->bytes);
	uint64_t end = smaller(extent->fe_logical + extent->fe_length, info->bytes);
	size_t i;

	if (begin > *at)
		info->holes += begin - *at;
	*at = end;
	if (begin == end)
		return;
	info->extents++;
	if (extent->fe_flags & FIEMAP_EXTENT_UNWRITTEN)
		info->unwritten += end - begin;
	for (i = 0; i < ARRAY_SIZE(obstacles); i++)
		if (extent->fe_flags & obstacles[i].extent_flags)
			info->obstacles |= 1u << i;
}

void file_judge_extents(struct nvmepeer_file_info *info, uint64_t at)
{
	if (at < info->bytes)
		info->holes += info->bytes - at;
	if (info->holes)
		info->obstacles |= NVMEPEER_FILE_HOLES;
}

/* FIEMAP_FLAG_SYNC: dirty data is written back first, so that it has blocks. */
static int find_extents(int fd, struct nvmepeer_file_info *info)
{
	struct fiemap *map = malloc(sizeof(*map) + EXTENTS * sizeof(struct fiemap_extent));
	uint64_t at = 0;
	uint32_t i;
	int result = map ? 0 : -ENOMEM;

	while (!result && at < info->bytes) {
		*map = (struct fiemap){ .fm_start = at, .fm_length = info->bytes - at,
					.fm_flags = FIEMAP_FLAG_SYNC, .fm_extent_count = EXTENTS };
		if (ioctl(fd, FS_IOC_FIEMAP, map))
			result = -errno;
		if (result || !map->fm_mapped_extents)
			break;
		for (i = 0; i < map->fm_mapped_extents; i++)
			file_add_extent(info, &at, &map->fm_extents[i]);
	}
	free(map);
	file_judge_extents(info, at);
	return result;
}

static int check(int fd, struct nvmepeer_file_info *info)
{
	struct file_facts facts;
	int result = file_find_facts(fd, &facts);

	memset(info, 0, sizeof(*info));
	info->size = sizeof(*info);
	if (result)
		return result;
	file_judge(&facts, info);
	if (info->obstacles & (NVMEPEER_FILE_NOT_REGULAR | NVMEPEER_FILE_SYSTEM))
		return 0;
	return find_extents(fd, info);
}

int nvmepeer_file_check(int fd, struct nvmepeer_file_info *info, size_t size)
{
	struct nvmepeer_file_info found;
	int result = struct_size_out(CALL_FILE_CHECK, "", info, size,
				     SIZE_THROUGH(struct nvmepeer_file_info, controller));

	if (result)
		return result;
	result = check(fd, &found);
	if (result)
		return failure_set(CALL_FILE_CHECK, result, "");
	struct_copy(info, size, &found, sizeof(found));
	info->size = (uint32_t)size;
	return 0;
}

/* ---- Texts ------------------------------------------------------------------ */

/* Its place in the table, or that of no obstacle. */
static size_t find_obstacle(enum nvmepeer_file_obstacle obstacle)
{
	size_t i;

	for (i = 0; i < ARRAY_SIZE(obstacles) && (uint32_t)obstacle != 1u << i; i++)
		;
	return i;
}

const char *nvmepeer_file_obstacle_name(enum nvmepeer_file_obstacle obstacle)
{
	size_t i = find_obstacle(obstacle);

	return i < ARRAY_SIZE(obstacles) ? obstacles[i].name : "unknown";
}

/* The limit with the numbers and names of the file. */
static void refine(const struct nvmepeer_file_info *info, enum nvmepeer_file_obstacle obstacle,
		   struct nvmepeer_explanation *explanation)
{
	size_t length = strlen(explanation->limit), room = sizeof(explanation->limit) - length;
	char *end = explanation->limit + length;

	if (obstacle == NVMEPEER_FILE_HOLES)
		snprintf(end, room, ": %llu bytes", (unsigned long long)info->holes);
	else if (obstacle == NVMEPEER_FILE_UNWRITTEN)
		snprintf(end, room, ": %llu bytes", (unsigned long long)info->unwritten);
	else if (obstacle == NVMEPEER_FILE_SYSTEM || obstacle == NVMEPEER_FILE_NO_DISK)
		snprintf(end, room, ": %s", info->file_system);
	else if (obstacle == NVMEPEER_FILE_OTHER_DISK)
		snprintf(end, room, ": %s", info->disk);
	/* The kernel's nvme driver: nvme0n1p1. */
	if (obstacle == NVMEPEER_FILE_OTHER_DISK && !strncmp(info->disk, "nvme", 4))
		snprintf(explanation->help, sizeof(explanation->help),
			 "unmount it and bind its controller to nvme-peer: nvme-peer bind, or " SERVE);
}

int nvmepeer_file_explain(const struct nvmepeer_file_info *info,
			  enum nvmepeer_file_obstacle obstacle,
			  struct nvmepeer_explanation *explanation, size_t size)
{
	struct nvmepeer_explanation made = { .call = "nvmepeer_file_check", .error = EOPNOTSUPP };
	size_t i = find_obstacle(obstacle);

	if (size < EXPLANATION_LEAST || i == ARRAY_SIZE(obstacles))
		return -EINVAL;
	snprintf(made.what, sizeof(made.what), "the file cannot have a window");
	snprintf(made.limit, sizeof(made.limit), "%s", obstacles[i].limit);
	snprintf(made.help, sizeof(made.help), "%s", obstacles[i].help);
	refine(info, obstacle, &made);
	struct_copy(explanation, size, &made, sizeof(made));
	return 0;
}

/* ---- Windows ------------------------------------------------------------------ */

static int refused(const char *path, struct nvmepeer_explanation *explanation)
{
	explanation->call = "nvmepeer_file_open";
	snprintf(explanation->what, sizeof(explanation->what), "%s: the file cannot have a window", path);
	return nvmepeer_fail(explanation, sizeof(*explanation));
}

static int check_to_open(int fd, const char *path)
{
	struct nvmepeer_explanation made;
	struct nvmepeer_file_info info;
	int result = check(fd, &info);

	if (result)
		return failure_set(CALL_FILE_CHECK, result, path);
	if (!info.obstacles)
		return 0;
	/* The lowest bit: what is hardest to change comes first. */
	nvmepeer_file_explain(&info, (enum nvmepeer_file_obstacle)(info.obstacles & -info.obstacles), &made,
			      sizeof(made));
	return refused(path, &made);
}

/* The kernel refused what nothing above has found: its words, and what is to be done with a file. */
static int refused_by_kernel(const char *path)
{
	struct nvmepeer_explanation made;

	nvmepeer_explain(&made, sizeof(made));
	if (made.error == ENOTBLK) {
		snprintf(made.limit, sizeof(made.limit), "the kernel module takes block devices only");
		snprintf(made.help, sizeof(made.help), "load a newer module, or " SERVE);
	} else if (made.error == EBUSY) {
		snprintf(made.limit, sizeof(made.limit), "a process has mapped the file for shared writes");
		snprintf(made.help, sizeof(made.help), "unmap it: lsof PATH lists processes");
	} else if (made.error == ENODATA) {
		snprintf(made.limit, sizeof(made.limit), "the file has a hole, an unwritten extent or inline data, or on XFS has or had shared blocks");
		snprintf(made.help, sizeof(made.help), PREPARE "; or copy it: cp --reflink=never");
	} else if (made.error == EXDEV) {
		snprintf(made.help, sizeof(made.help),
			 "create the queue pair on the controller of the file: nvme-peer file check PATH");
	} else if (made.error == EOPNOTSUPP) {
		snprintf(made.help, sizeof(made.help),
			 "use a queue pair in NVME_PEER_MODE_MEDIATED, or " SERVE);
	}
	return refused(path, &made);
}

int nvmepeer_file_extents(struct nvmepeer *ctrl, struct nvme_peer_extents *extents, size_t size)
{
	int result = struct_size_in(CALL_EXTENTS, ctrl->node, extents, size,
				    SIZE_THROUGH(struct nvme_peer_extents, reserved));

	if (result)
		return result;
	result = peer_ioctl(ctrl->fd, NVME_PEER_EXTENTS, extents);
	return result < 0 ? failure_set(CALL_EXTENTS, result, ctrl->node) : 0;
}

int nvmepeer_file_open(struct nvmepeer_qp *qp, const char *path,
		       struct nvme_peer_window_add *window, size_t size)
{
	int result = struct_size_check(CALL_FILE_OPEN, path, size,
				       SIZE_THROUGH(struct nvme_peer_window_add, rights));
	int fd;

	if (result)
		return result;
	fd = open(path, O_RDWR | O_CLOEXEC);
	if (fd < 0)
		return failure_set(CALL_FILE_OPEN, -errno, path);
	result = check_to_open(fd, path);
	if (!result) {
		window->fd = fd;
		result = nvmepeer_window_add(qp, window, size) ? refused_by_kernel(path) : 0;
		window->fd = -1;
	}
	close(fd);
	return result;
}
