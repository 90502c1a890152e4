/* SPDX-License-Identifier: MIT OR GPL-2.0 */
/*
 * nvmepeer_device/prefetch.h: read ahead by a warp.  Units of blocks become
 * available in the order of use, and never more than a window of them is in
 * flight or in memory.
 */
#ifndef NVMEPEER_DEVICE_PREFETCH_H
#define NVMEPEER_DEVICE_PREFETCH_H

#include "batch.h"
#include "block.h"
#include "nvme.h"
#include "opcodes.h"
#include "platform.h"
#include "queue.h"
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
 *
 * The window times the commands of a unit, summed over the warps that share the
 * queue pair, must stay below nvmepeer_geometry.cids and, so that submissions do
 * not wait, below the entries of the submission ring.
 *
 * The caller sets all but the last three.  Each lane has its own copy with the
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
};

/*
 * Submit units while the window has room.  Collective.  A bad status stays in
 * the batch; without room in the queue, or if it is lost, that unit is the last.
 */
NVP_FN void nvp_prefetch_submit(struct nvmepeer_prefetch *ahead)
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

		if (nvp_ends(nvmepeer_warp_submit(ahead->queue, ahead->group, &transfer,
						  &ahead->batches[slot])))
			ahead->units = ahead->sent + 1;
	}
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
 * @offset: out: where the unit is in the buffer, until its release
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
	uint32_t slot = (uint32_t)(ahead->taken % ahead->window);
	int status;

	if (ahead->taken == ahead->sent)
		return NVMEPEER_E_TOKEN;
	ahead->taken++;
	*offset = (uint64_t)slot * ahead->unit_blocks << ahead->queue->lba_shift;
	status = nvmepeer_warp_wait(ahead->queue, ahead->group, &ahead->batches[slot], timeout_ns);
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
