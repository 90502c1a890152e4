/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Memory of users that passthrough moves without a bio.
 */
#ifndef _NVMEP_USERMEM_H
#define _NVMEP_USERMEM_H

#include <linux/types.h>

struct iov_iter;
struct nvmep_passthru;
struct nvmep_user_command;
struct page;
struct request;

bool nvmep_user_registered(const struct nvmep_passthru *from,
			   struct request *rq, const struct iov_iter *iter);
unsigned int nvmep_user_hold(const struct nvmep_user_command *command,
			     struct request *rq, struct page **pages);
void nvmep_user_unhold(struct page **pages, unsigned int count,
		       bool written);

#endif /* _NVMEP_USERMEM_H */
