/* SPDX-License-Identifier: MIT OR GPL-2.0 */
/*
 * Files for windows: what the kernel says about a file (file_facts.c), and what of it
 * prevents a window (file.c).
 */
#ifndef NVMEPEER_FILE_H
#define NVMEPEER_FILE_H

#include <linux/fiemap.h>

#include "internal.h"

/**
 * struct file_facts - what the kernel says about a file
 * @mode: st_mode
 * @bytes: size
 * @block: bytes of a block of the file system
 * @open_flags: of F_GETFL
 * @inode_flags: of FS_IOC_GETFLAGS
 * @dax: STATX_ATTR_DAX is set
 * @data_journal: the file system is mounted with data=journal
 * @not_owner: a lease is refused with EACCES
 * @magic: type of the file system
 * @disk: folder of its block device below /sys/devices; empty without one
 */
struct file_facts {
	uint32_t mode;
	uint64_t bytes;
	uint64_t block;
	int open_flags;
	uint32_t inode_flags;
	bool dax;
	bool data_journal;
	bool not_owner;
	uint64_t magic;
	char disk[4096];
};

/** file_find_facts() - all facts but the extents. Returns 0 or -errno. */
int file_find_facts(int fd, struct file_facts *facts);

/** file_add_extent() - count an extent; extents come in order, without gaps but holes. */
void file_add_extent(struct nvmepeer_file_info *info, uint64_t *at, const struct fiemap_extent *extent);

/** file_judge() - name file system, disk and controller, and find all obstacles but those of extents. */
void file_judge(const struct file_facts *facts, struct nvmepeer_file_info *info);

/** file_judge_extents() - find the obstacles of extents; @at: where the last one ended. */
void file_judge_extents(struct nvmepeer_file_info *info, uint64_t at);

#endif /* NVMEPEER_FILE_H */
