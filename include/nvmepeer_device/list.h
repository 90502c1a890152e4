/* SPDX-License-Identifier: MIT OR GPL-2.0 */
/*
 * nvmepeer_device/list.h: a list of transfers in any order by a thread or by the
 * lanes of a warp, each between blocks and a place in any buffer: for instance
 * the pages of a cache that a kernel has missed.  Each item has a status.  Items
 * that continue the one before, on the disk and in memory, share commands.
 */
#ifndef NVMEPEER_DEVICE_LIST_H
#define NVMEPEER_DEVICE_LIST_H

#include "block.h"
#include "command.h"
#include "nvme.h"
#include "platform.h"
#include "queue.h"
#include "wait.h"

/**
 * struct nvmepeer_list_item - one transfer of a list
 * @lba: first logical block
 * @buffer: data memory; items may have different ones
 * @offset: byte offset in @buffer
 * @bytes: length, a multiple of the logical block: a command transfers whole
 *	blocks, and a rest would overwrite what follows in memory
 * @status: out: the worst status of its commands.  Items that share a command share
 *	its status: one that cannot be transferred fails the others of the command,
 *	which may be repeated by themselves
 */
struct nvmepeer_list_item {
	uint64_t lba;
	const struct nvmepeer_buffer *buffer;
	uint64_t offset;
	uint32_t bytes;
	int status;
};

/**
 * struct nvmepeer_list - transfers in any order
 * @items: the items; overlapping ones are undefined if one of them is written
 * @count: number of items
 * @opcode: NVMEPEER_OP_READ or NVMEPEER_OP_WRITE, for all
 * @control: NVMEPEER_CONTROL_*, for all
 */
struct nvmepeer_list {
	struct nvmepeer_list_item *items;
	uint32_t count;
	uint32_t opcode;
	uint32_t control;
};

/* Logical blocks of an item, 0 if it is empty or has a part of one. */
NVP_FN uint32_t nvp_list_blocks(const struct nvmepeer_queue *queue,
				const struct nvmepeer_list_item *item)
{
	uint32_t part = item->bytes & (((uint32_t)1 << queue->lba_shift) - 1);

	return part ? 0 : item->bytes >> queue->lba_shift;
}

/* Does item @index continue the one before, on the disk and in memory? */
NVP_FN bool nvp_list_continues(const struct nvmepeer_queue *queue,
			       const struct nvmepeer_list *list, uint32_t index)
{
	const struct nvmepeer_list_item *item = &list->items[index], *before = item - 1;
	uint32_t blocks;

	if (!index || index >= list->count || item->buffer != before->buffer)
		return false;
	blocks = nvp_list_blocks(queue, before);
	return blocks && nvp_list_blocks(queue, item) && item->lba == before->lba + blocks &&
	       item->offset == before->offset + before->bytes;
}

/* Transfer the @blocks blocks from item @first on, which are consecutive. */
NVP_FN int nvp_list_transfer(const struct nvmepeer_queue *queue,
			     const struct nvmepeer_list *list, uint32_t first, uint64_t blocks)
{
	const struct nvmepeer_list_item *item = &list->items[first];
	struct nvmepeer_transfer transfer = { list->opcode, list->control, item->lba, blocks,
					      item->buffer, item->offset };

	if (!blocks)
		return item->bytes ? NVMEPEER_E_ALIGN : NVMEPEER_E_TOO_LARGE;
	return nvp_transfer_strided(queue, &transfer, 0, 1);
}

/*
 * Transfer item @first and those that continue it and fit the same command.
 * Nothing is submitted after @last, an earlier status of this thread, if that ends
 * submission: each command would wait for another timeout.  Returns the index
 * behind them; @last is their status then.
 */
NVP_FN uint32_t nvp_list_command(const struct nvmepeer_queue *queue,
				 const struct nvmepeer_list *list, uint32_t first, int *last)
{
	uint64_t most = nvp_max_blocks(queue, list->items[first].buffer);
	uint64_t blocks = nvp_list_blocks(queue, &list->items[first]);
	uint32_t end = first + 1;

	for (; nvp_list_continues(queue, list, end); end++) {
		uint32_t more = nvp_list_blocks(queue, &list->items[end]);

		if (blocks + more > most)
			break;
		blocks += more;
	}
	if (!nvp_ends(*last))
		*last = nvp_list_transfer(queue, list, first, blocks);
	else if (*last == NVMEPEER_E_TIMEOUT)
		*last = NVMEPEER_E_FULL;
	for (uint32_t i = first; i < end; i++)
		list->items[i].status = *last;
	return end;
}

/*
 * Execute the items that continue no other, every @step-th from number @index on,
 * each with those that continue it.  Returns the worst status.
 */
NVP_FN int nvp_list_strided(const struct nvmepeer_queue *queue,
			    const struct nvmepeer_list *list, uint32_t index, uint32_t step)
{
	int worst = NVMEPEER_OK, last = NVMEPEER_OK;

	for (uint64_t i = index; i < list->count; i += step) {
		uint32_t at = (uint32_t)i;

		if (nvp_list_continues(queue, list, at))
			continue;
		do {
			at = nvp_list_command(queue, list, at, &last);
			worst = nvp_worse(worst, last);
		} while (nvp_list_continues(queue, list, at));
	}
	return worst;
}

/**
 * nvmepeer_list_transfer - execute a list of transfers by one thread
 * @queue: the queue pair
 * @list: the list
 *
 * Any thread.  Waits for all of them, nvmepeer_geometry.timeout_ns at most for
 * each command.  Sets the status of each item and returns the worst.  After an
 * item with NVMEPEER_E_TIMEOUT or _E_FULL the thread submits no more: the others
 * get NVMEPEER_E_FULL, after a loss NVMEPEER_E_LOST.  NVMEPEER_E_ALIGN: an item
 * has a part of a logical block; _E_TOO_LARGE: it is empty.
 */
NVP_FN int nvmepeer_list_transfer(const struct nvmepeer_queue *queue,
				  const struct nvmepeer_list *list)
{
	return nvp_list_strided(queue, list, 0, 1);
}

/**
 * nvmepeer_warp_list_transfer - nvmepeer_list_transfer() by a warp
 * @queue: the queue pair
 * @group: the lanes that call together
 * @list: the same for every lane
 *
 * The lanes share the items: those that continue each other are transferred by
 * one lane, one command after the other.  After the return each lane may use all
 * statuses, and the data of each item whose status is 0.
 */
NVP_FN int nvmepeer_warp_list_transfer(const struct nvmepeer_queue *queue,
				       struct nvmepeer_group group,
				       const struct nvmepeer_list *list)
{
	int status;

	nvp_group_sync(group);
	status = nvp_list_strided(queue, list, nvp_rank(group.mask, group.lane),
				  nvp_mask_count(group.mask));
	return nvp_group_status(group, status);
}

#endif /* NVMEPEER_DEVICE_LIST_H */
