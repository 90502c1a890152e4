/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Data and metadata of passthrough commands.
 */
#ifndef _NVMEP_USER_DATA_H
#define _NVMEP_USER_DATA_H

#include <linux/compiler_types.h>
#include <linux/types.h>

#include "core/data.h"

struct bio_vec;
struct iov_iter;
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
 */
union nvmep_user_pages {
	struct page *few[NVMEP_INLINE_BVECS];
	struct bio_vec *many;
};

bool nvmep_user_map_registered(const struct nvmep_passthru *from,
			       struct request *rq, const struct iov_iter *iter);
unsigned int nvmep_user_pin(const struct nvmep_passthru *from,
			    const struct nvmep_user_command *command,
			    struct request *rq, union nvmep_user_pages *pages);
bool nvmep_user_unpin_sleeps(const union nvmep_user_pages *pages,
			     unsigned int count);
void nvmep_user_unpin(union nvmep_user_pages *pages, unsigned int count,
		      bool written);

/**
 * struct nvmep_user_metadata - kernel copy of the metadata of a command
 * @mm: mm of the submitter, only compared; holds an mmgrab() reference
 * @user: address of the metadata in @mm
 * @length: bytes of metadata
 * @buffer: the copy, mapped for DMA by the core
 */
struct nvmep_user_metadata {
	struct mm_struct *mm;
	void __user *user;
	u32 length;
	void *buffer;
};

struct nvmep_user_metadata *
nvmep_user_metadata_add(struct request *rq,
			const struct nvmep_user_command *command);
int nvmep_user_metadata_finish(struct nvmep_user_metadata *metadata,
			       bool to_user);

#endif /* _NVMEP_USER_DATA_H */
