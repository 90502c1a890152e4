/* SPDX-License-Identifier: MIT OR GPL-2.0 */
/*
 * nvmepeer_device/prefetch.h: reading ahead by a warp: units of blocks arrive in
 * the order in which they are wanted, and never more than a window of them is
 * in flight or in memory.
 */
#ifndef NVMEPEER_DEVICE_PREFETCH_H
#define NVMEPEER_DEVICE_PREFETCH_H

/**
 * struct nvmepeer_prefetch - a warp that reads ahead
 * @queue: the queue pair
 * @group: the lanes that make every call together
 * @buffer: memory for @window units
 * @batches: @window of them, each with room for the commands of a unit
 * @lbas: first logical block of each unit, in the order wanted; NULL if each
 *	follows the one before
 * @first: of the first unit, if @lbas is NULL
 * @units: how many in all
 * @unit_blocks: logical blocks of each
 * @window: most units in memory
 * @sent: units sent so far
 * @taken: units taken so far
 * @released: units given back so far
 *
 * The caller sets all but the last three; each lane has a copy of its own, all
 * with the same values.
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
};

/* Sends units as long as the window has room.  Collective; a bad status stays in the batch. */
NVMEPEER_FN void nvmepeer_prefetch_send(struct nvmepeer_prefetch *ahead)
{
	for (; ahead->sent < ahead->units && ahead->sent - ahead->released < ahead->window;
	     ahead->sent++) {
		uint32_t slot = (uint32_t)(ahead->sent % ahead->window);
		struct nvmepeer_transfer transfer = {
			NVMEPEER_OP_READ, 0,
			ahead->lbas ? ahead->lbas[ahead->sent] :
				      ahead->first + ahead->sent * ahead->unit_blocks,
			ahead->unit_blocks, ahead->buffer,
			(uint64_t)slot * ahead->unit_blocks << ahead->queue->lba_shift,
		};

		nvmepeer_warp_submit(ahead->queue, ahead->group, &transfer, &ahead->batches[slot]);
	}
}

/* nvmepeer_prefetch_start - send the first window of reads.  Collective. */
NVMEPEER_FN void nvmepeer_prefetch_start(struct nvmepeer_prefetch *ahead)
{
	ahead->sent = 0;
	ahead->taken = 0;
	ahead->released = 0;
	nvmepeer_prefetch_send(ahead);
}

/**
 * nvmepeer_prefetch_next - take the next unit
 * @ahead: from nvmepeer_prefetch_start()
 * @offset: out: where it lies in the buffer; stays there until its release
 * @timeout_ns: how long to wait for it
 *
 * Collective.  Returns 0, the first bad status of its commands, or
 * NVMEPEER_E_TOKEN if no unit is in flight: all were taken, or the window is
 * full of units that were not released.
 */
NVMEPEER_FN int nvmepeer_prefetch_next(struct nvmepeer_prefetch *ahead, uint64_t *offset,
				       uint64_t timeout_ns)
{
	uint32_t slot = (uint32_t)(ahead->taken % ahead->window);

	if (ahead->taken == ahead->sent)
		return NVMEPEER_E_TOKEN;
	ahead->taken++;
	*offset = (uint64_t)slot * ahead->unit_blocks << ahead->queue->lba_shift;
	return nvmepeer_warp_wait(ahead->queue, ahead->group, &ahead->batches[slot], timeout_ns);
}

/*
 * nvmepeer_prefetch_release - the oldest unit taken is used up: read into its
 * memory.  Collective.  Who else used the unit has met this warp at a barrier.
 */
NVMEPEER_FN void nvmepeer_prefetch_release(struct nvmepeer_prefetch *ahead)
{
	if (ahead->released < ahead->taken)
		ahead->released++;
	nvmepeer_prefetch_send(ahead);
}

/*
 * nvmepeer_prefetch_stop - wait until nothing is in flight.  Collective.  What
 * was sent and not taken is lost.  First bad status.
 */
NVMEPEER_FN int nvmepeer_prefetch_stop(struct nvmepeer_prefetch *ahead, uint64_t timeout_ns)
{
	uint64_t start = nvmepeer_now_ns(), offset;
	int first = NVMEPEER_OK;

	while (ahead->taken < ahead->sent) {
		int status = nvmepeer_prefetch_next(ahead, &offset,
						    nvmepeer_time_left(start, timeout_ns));

		first = first ? first : status;
	}
	return first;
}

#endif /* NVMEPEER_DEVICE_PREFETCH_H */
