/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Metadata of passthrough commands.
 */
#ifndef _NVMEP_METADATA_H
#define _NVMEP_METADATA_H

#include <linux/compiler_types.h>
#include <linux/types.h>

struct mm_struct;
struct nvmep_passthru;
struct nvmep_user_command;
struct request;

/**
 * struct nvmep_user_metadata - a kernel copy of a command's metadata
 * @mm: the caller's memory, whose structure is kept
 * @user: where in it the metadata comes from or goes to
 * @length: bytes
 * @buffer: the copy, DMA-able
 */
struct nvmep_user_metadata {
	struct mm_struct *mm;
	void __user *user;
	u32 length;
	void *buffer;
};

struct nvmep_user_metadata *
nvmep_user_metadata_add(const struct nvmep_passthru *from, struct request *rq,
			const struct nvmep_user_command *command);
int nvmep_user_metadata_finish(struct nvmep_user_metadata *metadata,
			       bool to_user);

#endif /* _NVMEP_METADATA_H */
