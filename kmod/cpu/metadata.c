// SPDX-License-Identifier: GPL-2.0-only
/*
 * Metadata of passthrough commands travels through a kernel copy: it has to be one range
 * for the controller, which user memory rarely is.
 */
#include <linux/blk-mq.h>
#include <linux/sizes.h>
#include <linux/slab.h>
#include <linux/uaccess.h>

#include "command.h"
#include "core/request.h"
#include "metadata.h"

#define NVMEP_MAX_METADATA	SZ_1M

static void nvmep_user_metadata_free(struct nvmep_user_metadata *metadata)
{
	kfree(metadata->buffer);
	kfree(metadata);
}

/**
 * nvmep_user_metadata_add() - give a command its metadata
 * @rq: request of the command
 * @command: the command as user space sent it
 *
 * Return: the copy; NULL if the command has no metadata; an error pointer.
 */
struct nvmep_user_metadata *
nvmep_user_metadata_add(struct request *rq,
			const struct nvmep_user_command *command)
{
	struct nvmep_user_metadata *metadata;

	if (!command->metadata || !command->metadata_length)
		return NULL;
	if (command->metadata_length > NVMEP_MAX_METADATA)
		return ERR_PTR(-EINVAL);
	metadata = kzalloc(sizeof(*metadata), GFP_KERNEL);
	if (!metadata)
		return ERR_PTR(-ENOMEM);
	metadata->user = u64_to_user_ptr(command->metadata);
	metadata->length = command->metadata_length;
	metadata->buffer = kzalloc(metadata->length, GFP_KERNEL);
	if (!metadata->buffer) {
		kfree(metadata);
		return ERR_PTR(-ENOMEM);
	}
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

/**
 * nvmep_user_metadata_finish() - free the copy, after handing it back
 * @metadata: from nvmep_user_metadata_add(), NULL for none
 * @to_user: hand it back: the command succeeded and read
 *
 * Return: 0 or -EFAULT.
 */
int nvmep_user_metadata_finish(struct nvmep_user_metadata *metadata,
			       bool to_user)
{
	int ret = 0;

	if (!metadata)
		return 0;
	if (to_user && copy_to_user(metadata->user, metadata->buffer,
				    metadata->length))
		ret = -EFAULT;
	nvmep_user_metadata_free(metadata);
	return ret;
}
