/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Memory of users that passthrough moves without a bio.
 */
#ifndef _NVMEP_USERMEM_H
#define _NVMEP_USERMEM_H

#include <linux/types.h>

#include "core/data.h"

struct bio_vec;
struct iov_iter;
struct nvmep_passthru;
struct nvmep_user_command;
struct page;
struct request;

/* Most pages of a command that are held without a bio: 512 KiB, wherever they begin. */
#define NVMEP_MOST_HELD		129

/**
 * union nvmep_user_pages - pages that are held for a command
 * @few: up to %NVMEP_OWN_PIECES
 * @many: of more, the pieces that they are to the command
 */
union nvmep_user_pages {
	struct page *few[NVMEP_OWN_PIECES];
	struct bio_vec *many;
};

bool nvmep_user_registered(const struct nvmep_passthru *from,
			   struct request *rq, const struct iov_iter *iter);
unsigned int nvmep_user_hold(const struct nvmep_passthru *from,
			     const struct nvmep_user_command *command,
			     struct request *rq, union nvmep_user_pages *pages);
void nvmep_user_unhold(union nvmep_user_pages *pages, unsigned int count,
		       bool written);

#endif /* _NVMEP_USERMEM_H */
