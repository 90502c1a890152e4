/* SPDX-License-Identifier: MIT OR GPL-2.0 */
/*
 * nvmepeer_device/block.h: transfers of any length by the lanes of a warp or
 * the threads of a block together, cut into commands of the largest size.
 */
#ifndef NVMEPEER_DEVICE_BLOCK_H
#define NVMEPEER_DEVICE_BLOCK_H

/* A transfer of any length; fields as in struct nvmepeer_command. */
struct nvmepeer_transfer {
	uint32_t opcode;
	uint32_t control;
	uint64_t lba;
	uint64_t blocks;
	const struct nvmepeer_buffer *buffer;
	uint64_t offset;
};

/*
 * Most blocks of one command that may start anywhere in a page: the limit, or
 * the pages that the list can name, in whole pages, so that all commands of a
 * transfer start where the first one does.  At least one block: whether that
 * can be sent is nvmepeer_command_check()'s to say.
 */
NVMEPEER_FN uint32_t nvmepeer_most_blocks(const struct nvmepeer_queue *queue,
					  const struct nvmepeer_buffer *buffer)
{
	uint64_t page = nvmepeer_page(queue);
	uint64_t listed = (uint64_t)nvmepeer_list_entries(queue) << queue->page_shift;
	uint64_t bytes = queue->max_transfer, blocks;

	if (!nvmepeer_takes_sgl(queue, buffer) && bytes > listed)
		bytes = listed;
	if (bytes > page)
		bytes &= ~(page - 1);
	blocks = bytes >> queue->lba_shift;
	if (blocks > 65536)
		return 65536;
	return blocks ? (uint32_t)blocks : 1;
}

/*
 * Does every @step-th command of a transfer, from the @index-th on; ends at one
 * that could not be sent or did not complete.  Returns its status, or else the
 * first that is not 0.
 */
NVMEPEER_FN int nvmepeer_transfer_share(const struct nvmepeer_queue *queue,
					const struct nvmepeer_transfer *transfer,
					uint32_t index, uint32_t step)
{
	uint32_t most = nvmepeer_most_blocks(queue, transfer->buffer);
	int first = NVMEPEER_OK;

	for (uint64_t at = (uint64_t)index * most; at < transfer->blocks && first >= 0;
	     at += (uint64_t)step * most) {
		uint64_t left = transfer->blocks - at;
		struct nvmepeer_command command = {
			transfer->opcode, (uint32_t)(left < most ? left : most),
			transfer->lba + at, transfer->buffer,
			transfer->offset + (at << queue->lba_shift), transfer->control,
		};
		int status = nvmepeer_execute(queue, &command, NULL, queue->timeout_ns);

		if (!first || status < 0)
			first = status;
	}
	return first;
}

/**
 * nvmepeer_warp_transfer - read or write any number of blocks by a warp
 * @queue: the queue pair
 * @transfer: the same for every lane
 *
 * All lanes that are active call together.  Returns to all of them 0, or the
 * status of a command that failed.
 */
NVMEPEER_FN int nvmepeer_warp_transfer(const struct nvmepeer_queue *queue,
				       const struct nvmepeer_transfer *transfer)
{
	struct nvmepeer_group group = nvmepeer_group_join(queue);
	int status = nvmepeer_transfer_share(queue, transfer,
					     nvmepeer_rank(group.mask, group.lane),
					     nvmepeer_mask_count(group.mask));
	nvmepeer_mask bad;

	nvmepeer_group_sync(group);
	bad = nvmepeer_group_ballot(group, status != NVMEPEER_OK);
	if (!bad)
		return NVMEPEER_OK;
	return (int)nvmepeer_group_copy32(group, (uint32_t)status, nvmepeer_mask_first(bad));
}

/**
 * nvmepeer_block_transfer - read or write any number of blocks by a block
 * @queue: the queue pair
 * @transfer: the same for every thread
 * @shared: a word in memory that the block shares
 *
 * All threads of the block call together.  Returns to all of them 0, or the
 * status of a command that failed.  On return each thread may use all the data.
 */
NVMEPEER_FN int nvmepeer_block_transfer(const struct nvmepeer_queue *queue,
					const struct nvmepeer_transfer *transfer,
					uint32_t *shared)
{
	int status;

	if (!nvmepeer_block_thread())
		*shared = 0;
	nvmepeer_block_sync();
	status = nvmepeer_transfer_share(queue, transfer, nvmepeer_block_thread(),
					 nvmepeer_block_threads());
	if (status)
		nvmepeer_block_max(shared, (uint32_t)status);
	nvmepeer_block_sync();
	status = (int)*shared;
	nvmepeer_block_sync();
	return status;
}

#endif /* NVMEPEER_DEVICE_BLOCK_H */
