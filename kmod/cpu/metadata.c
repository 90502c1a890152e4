// SPDX-License-Identifier: GPL-2.0-only
/*
 * Metadata of passthrough commands travels through a kernel copy: it has to be one range
 * for the controller, which user memory rarely is.
 *
 * The copy goes back to who asked, in that process.  The kernel's own way, mapping the
 * user's pages as integrity data of a bio, wants a disk with an integrity profile, which
 * would make the block layer handle metadata of all its I/O too.
 */
#include <linux/blk-mq.h>
#include <linux/sched/mm.h>
#include <linux/sizes.h>
#include <linux/slab.h>
#include <linux/uaccess.h>

#include "command.h"
#include "core/request.h"
#include "length.h"
#include "metadata.h"

#define NVMEP_MAX_METADATA	SZ_1M

static void nvmep_user_metadata_free(struct nvmep_user_metadata *metadata)
{
	mmdrop(metadata->mm);
	kfree(metadata->buffer);
	kfree(metadata);
}

static struct nvmep_user_metadata *
nvmep_user_metadata_alloc(const struct nvmep_user_command *command, u32 length)
{
	struct nvmep_user_metadata *metadata;

	metadata = kzalloc(sizeof(*metadata), GFP_KERNEL_ACCOUNT);
	if (!metadata)
		return NULL;
	metadata->buffer = kzalloc(length, GFP_KERNEL_ACCOUNT);
	if (!metadata->buffer) {
		kfree(metadata);
		return NULL;
	}
	metadata->mm = current->mm;
	mmgrab(metadata->mm);
	metadata->user = u64_to_user_ptr(command->metadata);
	metadata->length = length;
	return metadata;
}

/**
 * nvmep_user_metadata_add() - give a command its metadata
 * @from: where it came in; the caller's process
 * @rq: request of the command
 * @command: the command as user space sent it, its lengths checked
 *
 * Return: the copy; NULL if the command has no metadata; an error pointer.
 */
struct nvmep_user_metadata *
nvmep_user_metadata_add(const struct nvmep_passthru *from, struct request *rq,
			const struct nvmep_user_command *command)
{
	u32 length = nvmep_command_metadata(from, command);
	struct nvmep_user_metadata *metadata;

	if (!length)
		return NULL;
	if (length > NVMEP_MAX_METADATA)
		return ERR_PTR(-EINVAL);
	metadata = nvmep_user_metadata_alloc(command, length);
	if (!metadata)
		return ERR_PTR(-ENOMEM);
	if (rq_data_dir(rq) == WRITE &&
	    copy_from_user(metadata->buffer, metadata->user,
			   metadata->length)) {
		nvmep_user_metadata_free(metadata);
		return ERR_PTR(-EFAULT);
	}
	nvmep_request(rq)->data.metadata = metadata->buffer;
	nvmep_request(rq)->data.metadata_length = metadata->length;
	return metadata;
}

/*
 * A worker of the kernel finishes what a process left behind.  It runs on page
 * tables of whoever was there before, and an address means nothing to it.
 */
static int nvmep_user_metadata_return(const struct nvmep_user_metadata *metadata)
{
	if (current->mm != metadata->mm)
		return -EINTR;
	return copy_to_user(metadata->user, metadata->buffer,
			    metadata->length) ? -EFAULT : 0;
}

/**
 * nvmep_user_metadata_finish() - free the copy, after handing it back
 * @metadata: from nvmep_user_metadata_add(), NULL for none
 * @to_user: hand it back: the command succeeded and read
 *
 * Return: 0, -EFAULT, or -EINTR where this is not the caller's process.
 */
int nvmep_user_metadata_finish(struct nvmep_user_metadata *metadata,
			       bool to_user)
{
	int ret = 0;

	if (!metadata)
		return 0;
	if (to_user)
		ret = nvmep_user_metadata_return(metadata);
	nvmep_user_metadata_free(metadata);
	return ret;
}
