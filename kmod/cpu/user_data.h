/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Data and metadata of passthrough commands.
 */
#ifndef _NVMEP_USER_DATA_H
#define _NVMEP_USER_DATA_H

#include <linux/compiler_types.h>
#include <linux/types.h>
#include <linux/uio.h>

#include "core/data.h"

struct bio_vec;
struct mm_struct;
struct nvmep_passthru;
struct nvmep_user_command;
struct page;
struct request;

/* Most pages pinned for a command: 512 KiB, at any offset in the first page. */
#define NVMEP_MAX_PINNED_PAGES		129

/**
 * union nvmep_user_pages - user pages pinned for a command
 * @few: the pages, if at most %NVMEP_INLINE_BVECS
 * @many: otherwise an array of their segments, allocated
 * @segments: number of segments in @many
 */
union nvmep_user_pages {
	struct page *few[NVMEP_INLINE_BVECS];
	struct {
		struct bio_vec *many;
		unsigned int segments;
	};
};

/**
 * struct nvmep_user_held - data and metadata of a command
 * @mm: mm of the submitter, only compared; holds an mmgrab() reference
 * @user: user memory of the data
 * @few: its ranges, if they are few
 * @many: otherwise its ranges, allocated
 * @count: number of ranges
 * @length: bytes of data
 * @copy: kernel copy of the data, or NULL
 * @segments: pages of the copy, unless it is mapped by a bio, or pinned pages
 * @segment_count: number of @segments
 * @pages: number of pinned pages in @segments
 * @user_metadata: address of the metadata in @mm
 * @metadata_length: bytes of metadata
 * @metadata: kernel copy of the metadata
 */
struct nvmep_user_held {
	struct mm_struct *mm;
	struct iov_iter user;
	struct iovec few[2];
	struct iovec *many;
	unsigned int count;
	unsigned int length;
	void *copy;
	struct bio_vec *segments;
	unsigned int segment_count;
	unsigned int pages;
	void __user *user_metadata;
	u32 metadata_length;
	void *metadata;
};

bool nvmep_user_map_registered(const struct nvmep_passthru *from,
			       struct request *rq, const struct iov_iter *iter);
unsigned int nvmep_user_pin(const struct nvmep_passthru *from,
			    const struct nvmep_user_command *command,
			    union nvmep_user_pages *pages);
void nvmep_user_attach(const struct nvmep_user_command *command,
		       struct request *rq, union nvmep_user_pages *pages,
		       unsigned int count);
bool nvmep_user_unpin_sleeps(const union nvmep_user_pages *pages,
			     unsigned int count);
void nvmep_user_unpin(union nvmep_user_pages *pages, unsigned int count,
		      bool written);

struct nvmep_user_held *
nvmep_user_hold(const struct nvmep_passthru *from,
		const struct nvmep_user_command *command, bool registered);
void nvmep_user_attach_metadata(struct request *rq,
				const struct nvmep_user_held *held);
int nvmep_user_attach_held(const struct nvmep_passthru *from,
			   const struct nvmep_user_command *command,
			   struct request *rq,
			   const struct nvmep_user_held *held);
int nvmep_user_release(struct nvmep_user_held *held, bool reads, bool success);

#endif /* _NVMEP_USER_DATA_H */
