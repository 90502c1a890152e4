/* SPDX-License-Identifier: MIT OR GPL-2.0 */
/*
 * nvmepeer_device/prefetch.h: read ahead by a warp.  Units of blocks, or items of
 * a list, become available in the order of use, and never more than a window of
 * them is in flight or in memory.
 */
#ifndef NVMEPEER_DEVICE_PREFETCH_H
#define NVMEPEER_DEVICE_PREFETCH_H

#include "batch.h"
#include "block.h"
#include "list.h"
#include "nvme.h"
#include "opcodes.h"
#include "platform.h"
#include "queue.h"
#include "set.h"
#include "set_batch.h"
#include "wait.h"

/**
 * struct nvmepeer_prefetch - state of a warp that reads ahead
 * @queue: the queue pair
 * @group: the lanes that make every call together
 * @buffer: memory for @window units
 * @batches: @window batches, each with tokens for the commands of a unit
 * @lbas: first logical block of each unit, in the order of use; NULL if each
 *	unit follows the one before
 * @first: first logical block of the first unit, if @lbas is NULL
 * @units: number of units in all; after a unit that timed out, was lost or found
 *	no room in the queue, of those submitted
 * @unit_blocks: logical blocks of each
 * @window: maximum number of units in memory
 * @sent: units submitted so far
 * @taken: units taken so far
 * @released: units released so far
 * @list: if each unit has a place of its own: unit u is item u of this list, or page
 *	u of its tensors, and @count of the list is not used.  @buffer, @lbas, @first
 *	and @unit_blocks are not used then, each batch has a token for each item of a
 *	unit, and the scratch memory has @window times as many slots.  Else NULL
 * @set: if the units are blocks of a set; @queue, @buffer, @batches and @list are not
 *	used then, and the window is at the beginning of every buffer of the set.  Else NULL
 * @set_batches: then @window batches, each for the commands of a unit
 * @control: NVMEPEER_CONTROL_*, for all reads but those of a list, which has its own:
 *	with NVMEPEER_CONTROL_BACKGROUND reads that other threads wait for come first,
 *	and nvmepeer_prefetch_start() and _release() may wait for room: without it until
 *	their timeout the prefetch ends
 *
 * The window times the commands of a unit, summed over the warps that share the
 * queue pair, must stay below nvmepeer_geometry.cids and, so that submissions do
 * not wait, below the entries of the submission ring; in the background below those
 * that nvmepeer_geometry.reserve leaves.
 *
 * The caller sets all but @sent, @taken and @released.  Each lane has its own copy with the
 * same values.
 */
struct nvmepeer_prefetch {
	const struct nvmepeer_queue *queue;
	struct nvmepeer_group group;
	const struct nvmepeer_buffer *buffer;
	struct nvmepeer_batch *batches;
	const uint64_t *lbas;
	uint64_t first;
	uint64_t units;
	uint32_t unit_blocks;
	uint32_t window;
	uint64_t sent;
	uint64_t taken;
	uint64_t released;
	const struct nvmepeer_list *list;
	const struct nvmepeer_set *set;
	struct nvmepeer_set_batch *set_batches;
	uint64_t control;
};

/* Byte offset of a slot of the window. */
NVP_FN uint64_t nvp_prefetch_offset(const struct nvmepeer_prefetch *ahead, uint32_t slot)
{
	const struct nvmepeer_queue *queue = ahead->set ? ahead->set->queues : ahead->queue;

	return (uint64_t)slot * ahead->unit_blocks << queue->lba_shift;
}

/* Unit @unit of a list as a list, with slots of the scratch memory of its own. */
NVP_FN struct nvmepeer_list nvp_prefetch_unit(const struct nvmepeer_prefetch *ahead, uint64_t unit,
					      struct nvmepeer_scratch *scratch)
{
	struct nvmepeer_list list = *ahead->list;
	uint32_t items;

	list.count = 1;
	items = (uint32_t)nvmepeer_list_items(&list);
	if (list.items)
		list.items += unit;
	else
		list.pages += unit;
	if (list.statuses)
		list.statuses += unit * items;
	if (list.scratch) {
		uint32_t skipped = (uint32_t)(unit % ahead->window) * items;

		*scratch = *list.scratch;
		scratch->first += skipped;
		scratch->slots = skipped < scratch->slots ? scratch->slots - skipped : 0;
		list.scratch = scratch;
	}
	return list;
}

/* Submit unit @unit. */
NVP_FN int nvp_prefetch_send(const struct nvmepeer_prefetch *ahead, uint64_t unit)
{
	uint32_t slot = (uint32_t)(unit % ahead->window);
	struct nvmepeer_transfer transfer = {
		NVMEPEER_OP_READ, ahead->control,
		ahead->lbas && (ahead->set || !ahead->list) ? ahead->lbas[unit] :
					      ahead->first + unit * ahead->unit_blocks,
		ahead->unit_blocks, ahead->buffer, nvp_prefetch_offset(ahead, slot),
	};
	struct nvmepeer_scratch scratch;
	struct nvmepeer_list list;

	if (ahead->set)
		return nvmepeer_warp_set_submit(ahead->set, ahead->group, &transfer,
						&ahead->set_batches[slot]);
	if (!ahead->list)
		return nvmepeer_warp_submit(ahead->queue, ahead->group, &transfer,
					    &ahead->batches[slot]);
	list = nvp_prefetch_unit(ahead, unit, &scratch);
	return nvmepeer_warp_list_submit(ahead->queue, ahead->group, &list, &ahead->batches[slot]);
}

/* Wait for unit @unit; sets @offset to its place. */
NVP_FN int nvp_prefetch_wait(const struct nvmepeer_prefetch *ahead, uint64_t unit,
			     uint64_t *offset, uint64_t timeout_ns)
{
	uint32_t slot = (uint32_t)(unit % ahead->window);
	struct nvmepeer_scratch scratch;
	struct nvmepeer_list list;

	if (ahead->set || !ahead->list)
		*offset = nvp_prefetch_offset(ahead, slot);
	if (ahead->set)
		return nvmepeer_warp_set_wait(ahead->set, ahead->group, &ahead->set_batches[slot],
					      timeout_ns);
	if (!ahead->list)
		return nvmepeer_warp_wait(ahead->queue, ahead->group, &ahead->batches[slot],
					  timeout_ns);
	list = nvp_prefetch_unit(ahead, unit, &scratch);
	*offset = nvp_list_item_at(&list, 0).offset;
	return nvmepeer_warp_list_wait(ahead->queue, ahead->group, &list, &ahead->batches[slot],
				       timeout_ns);
}

/*
 * Submit units while the window has room.  Collective.  A bad status stays in
 * the batch; without room in the queue, or if it is lost, that unit is the last.
 */
NVP_FN void nvp_prefetch_submit(struct nvmepeer_prefetch *ahead)
{
	for (; ahead->sent < ahead->units && ahead->sent - ahead->released < ahead->window;
	     ahead->sent++)
		if (nvp_ends(nvp_prefetch_send(ahead, ahead->sent)))
			ahead->units = ahead->sent + 1;
}

/* nvmepeer_prefetch_start - submit the first window of reads.  Collective. */
NVP_FN void nvmepeer_prefetch_start(struct nvmepeer_prefetch *ahead)
{
	ahead->sent = 0;
	ahead->taken = 0;
	ahead->released = 0;
	nvp_prefetch_submit(ahead);
}

/**
 * nvmepeer_prefetch_next - take the next unit
 * @ahead: from nvmepeer_prefetch_start()
 * @offset: out: where the unit is in the buffer, until its release; of a list:
 *	the offset of its first item, which stays there
 * @timeout_ns: how long to wait for it
 *
 * Collective.  Returns 0, the worst status of its commands, or NVMEPEER_E_TOKEN
 * if no unit is in flight: all have been taken, or the window is full of units
 * that were not released.  After NVMEPEER_E_TIMEOUT or _E_LOST the controller may
 * still write to the unit: its memory must not be used for anything else until
 * that is known to have ended, see nvmepeer_abandoned().  After these and
 * NVMEPEER_E_FULL no more units are submitted; those in flight can be taken.
 */
NVP_FN int nvmepeer_prefetch_next(struct nvmepeer_prefetch *ahead, uint64_t *offset,
				  uint64_t timeout_ns)
{
	int status;

	if (ahead->taken == ahead->sent)
		return NVMEPEER_E_TOKEN;
	status = nvp_prefetch_wait(ahead, ahead->taken++, offset, timeout_ns);
	if (nvp_ends(status))
		ahead->units = ahead->sent;
	return status;
}

/*
 * nvmepeer_prefetch_release - release the oldest unit taken, so that its memory
 * is read into again.  Collective.  Other threads that used the unit must have
 * passed a barrier with this warp.
 */
NVP_FN void nvmepeer_prefetch_release(struct nvmepeer_prefetch *ahead)
{
	if (ahead->released < ahead->taken)
		ahead->released++;
	nvp_prefetch_submit(ahead);
}

/*
 * nvmepeer_prefetch_stop - wait until nothing is in flight; units that were not
 * taken are dropped. Collective.  Returns the worst status.
 */
NVP_FN int nvmepeer_prefetch_stop(struct nvmepeer_prefetch *ahead, uint64_t timeout_ns)
{
	uint64_t start = nvmepeer_now_ns(), offset;
	int worst = NVMEPEER_OK;

	while (ahead->taken < ahead->sent) {
		int status = nvmepeer_prefetch_next(ahead, &offset,
						    nvp_time_left(start, timeout_ns));

		worst = nvp_worse(worst, status);
	}
	return worst;
}

#endif /* NVMEPEER_DEVICE_PREFETCH_H */
