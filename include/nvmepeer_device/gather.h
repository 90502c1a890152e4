/* SPDX-License-Identifier: MIT OR GPL-2.0 */
/*
 * nvmepeer_device/gather.h: many small reads by a block of threads.  Ranges in
 * the same unit (a few logical blocks, usually 4 KiB) share one read: the
 * threads enter the units they need into a table in shared memory, the thread
 * that enters a unit first reads it, and then all threads copy.
 */
#ifndef NVMEPEER_DEVICE_GATHER_H
#define NVMEPEER_DEVICE_GATHER_H

#include "calls.h"
#include "compiler.h"
#include "nvme.h"
#include "platform.h"
#include "queue.h"
#include "set.h"

/* Units in flight in one round; a power of two. */
#ifndef NVMEPEER_GATHER_SLOTS
#define NVMEPEER_GATHER_SLOTS 256
#endif

/*
 * Maximum units of one range, and probes for a free slot of the table: a range
 * by itself always fits.
 */
#define NVMEPEER_GATHER_UNITS 16

/**
 * struct nvmepeer_gather_range - a small read
 * @from: byte offset in the namespace
 * @to: destination, in the peer's address space
 * @bytes: length; @from, @to and @bytes are multiples of 16, and the range
 *	covers at most NVMEPEER_GATHER_UNITS units
 */
struct nvmepeer_gather_range {
	uint64_t from;
	uint64_t to;
	uint32_t bytes;
	uint32_t reserved;
};

/**
 * struct nvmepeer_staging - memory that units are read into
 * @buffer: NVMEPEER_GATHER_SLOTS units
 * @address: the same memory in the peer's address space
 * @unit_shift: log2 of the bytes of a unit: at least a logical block; above two
 *	controller pages the queue pair needs list memory
 * @blocks: logical blocks of the namespace, so that its last unit may be partial;
 *	0: all units are whole
 *
 * One per block of threads.
 */
struct nvmepeer_staging {
	const struct nvmepeer_buffer *buffer;
	uint64_t address;
	uint32_t unit_shift;
	uint64_t blocks;
};

/*
 * Shared memory of the block: units in the table (number + 1, 0 for none),
 * worst status.
 */
struct nvmepeer_gather_table {
	uint64_t unit[NVMEPEER_GATHER_SLOTS];
	uint32_t status;
	uint32_t left;
};

/*
 * The source of units: a queue pair (@set is NULL), or a set whose buffers hold
 * the staging memory at byte @offset.
 */
struct nvp_gather_source {
	const struct nvmepeer_queue *queue;
	const struct nvmepeer_set *set;
	uint64_t offset;
};

/*
 * Find @unit in the table or insert it.  Returns its slot, plus
 * NVMEPEER_GATHER_SLOTS if it is new, or -1 if no slot near it is free.
 */
NVP_FN int nvp_gather_slot(struct nvmepeer_gather_table *table, uint64_t unit)
{
	uint32_t slot = (uint32_t)(unit * 0x9e3779b97f4a7c15u >> 40);

	for (uint32_t tries = 0; tries < NVMEPEER_GATHER_UNITS; tries++, slot++) {
		uint64_t found;

		slot &= NVMEPEER_GATHER_SLOTS - 1;
		found = nvp_block_cas(&table->unit[slot], 0, unit + 1);
		if (!found)
			return (int)(slot + NVMEPEER_GATHER_SLOTS);
		if (found == unit + 1)
			return (int)slot;
	}
	return -1;
}

/*
 * Enter @unit into the table, and read it if it is new.  Returns false if the
 * table is full.
 */
NVP_FN bool nvp_gather_unit(struct nvp_gather_source source,
			    struct nvmepeer_gather_table *table,
			    const struct nvmepeer_staging *staging, uint64_t unit)
{
	uint32_t blocks = 1u << (staging->unit_shift - source.queue->lba_shift);
	uint64_t lba = unit * blocks, offset;
	int slot = nvp_gather_slot(table, unit);
	int status;

	if (slot < NVMEPEER_GATHER_SLOTS)
		return slot >= 0;
	slot -= NVMEPEER_GATHER_SLOTS;
	offset = source.offset + ((uint64_t)slot << staging->unit_shift);
	/* The controller refuses a unit that begins behind the end. */
	if (lba < staging->blocks && staging->blocks - lba < blocks)
		blocks = (uint32_t)(staging->blocks - lba);
	if (source.set)
		status = nvmepeer_set_read(source.set, offset, lba, blocks);
	else
		status = nvmepeer_read(source.queue, staging->buffer, offset, lba, blocks);
	nvp_block_max(&table->status, (uint32_t)status);
	return true;
}

/*
 * Number of units that a range covers, 0 if it is empty; the first of them in
 * @first.
 */
NVP_FN uint64_t nvp_range_units(const struct nvmepeer_staging *staging,
				const struct nvmepeer_gather_range *range, uint64_t *first)
{
	*first = range->from >> staging->unit_shift;
	if (!range->bytes)
		return 0;
	return ((range->from + range->bytes - 1) >> staging->unit_shift) - *first + 1;
}

/* Check the alignment, the size and the end of a range. */
NVP_FN int nvp_range_check(const struct nvmepeer_queue *queue,
			   const struct nvmepeer_staging *staging,
			   const struct nvmepeer_gather_range *range)
{
	uint64_t first, end = staging->blocks << queue->lba_shift;

	if ((range->from | range->to | range->bytes) & 15)
		return NVMEPEER_E_ALIGN;
	if (nvp_range_units(staging, range, &first) > NVMEPEER_GATHER_UNITS)
		return NVMEPEER_E_TOO_LARGE;
	if (end && (range->from > end || range->bytes > end - range->from))
		return NVMEPEER_E_RANGE;
	return NVMEPEER_OK;
}

/* Enter all units of a range into the table.  Returns false if it is full. */
NVP_FN bool nvp_gather_enter(struct nvp_gather_source source,
			     struct nvmepeer_gather_table *table,
			     const struct nvmepeer_staging *staging,
			     const struct nvmepeer_gather_range *range)
{
	uint64_t first, units = nvp_range_units(staging, range, &first);

	for (uint64_t i = 0; i < units; i++)
		if (!nvp_gather_unit(source, table, staging, first + i))
			return false;
	return true;
}

/*
 * Copy 16 bytes of a range, at byte @at of the namespace; their unit is in the
 * table.
 */
NVP_FN void nvp_gather_copy(struct nvmepeer_gather_table *table,
			    const struct nvmepeer_staging *staging,
			    const struct nvmepeer_gather_range *range, uint64_t at)
{
	uint64_t unit = at >> staging->unit_shift;
	uint64_t slot = (uint64_t)nvp_gather_slot(table, unit);
	uint64_t in_unit = at & (((uint64_t)1 << staging->unit_shift) - 1);
	const uint64_t *from = (const uint64_t *)(uintptr_t)
		(staging->address + (slot << staging->unit_shift) + in_unit);
	uint64_t *to = (uint64_t *)(uintptr_t)(range->to + (at - range->from));

	to[0] = from[0];
	to[1] = from[1];
}

/* Copy ranges, 16 bytes a lane; NVMEPEER_LANES threads share a range. */
NVP_FN void nvp_gather_copy_all(struct nvmepeer_gather_table *table,
				const struct nvmepeer_staging *staging,
				const struct nvmepeer_gather_range *ranges, uint32_t count)
{
	uint32_t team = nvp_block_thread() / NVMEPEER_LANES;
	uint32_t teams = (nvp_block_threads() + NVMEPEER_LANES - 1) / NVMEPEER_LANES;
	uint32_t lane = nvp_block_thread() % NVMEPEER_LANES;
	uint32_t lanes = nvp_block_threads() - team * NVMEPEER_LANES;

	lanes = lanes < NVMEPEER_LANES ? lanes : NVMEPEER_LANES;
	for (uint32_t i = team; i < count; i += teams)
		for (uint32_t at = 16 * lane; at < ranges[i].bytes; at += 16 * lanes)
			nvp_gather_copy(table, staging, &ranges[i], ranges[i].from + at);
}

/*
 * One round: enter the units of @count ranges into the table, which is emptied
 * first if it was full. @table->left is the number of ranges that must wait for
 * the next round, from the first that found no slot on.
 */
NVP_FN void nvp_gather_round(struct nvp_gather_source source,
			     struct nvmepeer_gather_table *table,
			     const struct nvmepeer_staging *staging,
			     const struct nvmepeer_gather_range *ranges, uint32_t count)
{
	uint32_t thread = nvp_block_thread(), threads = nvp_block_threads();

	if (table->left)
		for (uint32_t i = thread; i < NVMEPEER_GATHER_SLOTS; i += threads)
			table->unit[i] = 0;
	nvp_block_sync();
	if (!thread)
		table->left = 0;
	nvp_block_sync();
	for (uint32_t i = thread; i < count; i += threads)
		if (!nvp_gather_enter(source, table, staging, &ranges[i]))
			nvp_block_max(&table->left, count - i);
	nvp_block_sync();
}

/* Check this thread's share of the ranges. */
NVP_FN int nvp_gather_check(const struct nvmepeer_queue *queue,
			    const struct nvmepeer_staging *staging,
			    const struct nvmepeer_gather_range *ranges, uint32_t count)
{
	int status = NVMEPEER_OK;

	if (staging->unit_shift < queue->lba_shift || staging->unit_shift > 27)
		return NVMEPEER_E_GEOMETRY;
	for (uint32_t i = nvp_block_thread(); i < count && !status;
	     i += nvp_block_threads())
		status = nvp_range_check(queue, staging, &ranges[i]);
	return status;
}

/* nvmepeer_block_gather() from any source. */
NVP_FN int nvp_gather_from(struct nvp_gather_source source,
			   struct nvmepeer_gather_table *table,
			   const struct nvmepeer_staging *staging,
			   const struct nvmepeer_gather_range *ranges, uint32_t count)
{
	uint32_t round = NVMEPEER_GATHER_SLOTS / 4, status;

	if (!nvp_block_thread()) {
		table->status = 0;
		table->left = 1;
	}
	nvp_block_sync();
	status = (uint32_t)nvp_gather_check(source.queue, staging, ranges, count);
	if (status)
		nvp_block_max(&table->status, status);
	nvp_block_sync();
	if (table->status)
		count = 0;
	for (uint32_t done = 0; done < count; ) {
		uint32_t here = count - done < round ? count - done : round;

		nvp_gather_round(source, table, staging, ranges + done, here);
		/*
		 * The next round may read into a slot that a command which has
		 * timed out can still write.
		 */
		if (table->status)
			break;
		here -= table->left;
		nvp_gather_copy_all(table, staging, ranges + done, here);
		done += here;
		/* A range by itself always fits. */
		round = here ? NVMEPEER_GATHER_SLOTS / 4 : 1;
		nvp_block_sync();
	}
	nvp_block_sync();
	status = table->status;
	nvp_block_sync();
	return (int)status;
}

/**
 * nvmepeer_block_gather - read many small ranges by a block of threads
 * @queue: the queue pair
 * @table: in shared memory of the block
 * @staging: this block's
 * @ranges: the same array for every thread
 * @count: number of ranges
 *
 * All threads of the block call together; each may use all the data after the
 * return.  Returns to all of them 0, or the worst status of a read; the
 * data is undefined then.  After NVMEPEER_E_TIMEOUT or _E_LOST the controller may
 * still write to the staging memory: use it for nothing, another gather
 * included, until that is known to have ended, see nvmepeer_abandoned().
 * NVMEPEER_E_ALIGN, _E_TOO_LARGE or _E_RANGE for an invalid range and
 * NVMEPEER_E_GEOMETRY for an invalid size of units mean that nothing was read.
 */
NVP_FN int nvmepeer_block_gather(const struct nvmepeer_queue *queue,
				 struct nvmepeer_gather_table *table,
				 const struct nvmepeer_staging *staging,
				 const struct nvmepeer_gather_range *ranges, uint32_t count)
{
	struct nvp_gather_source source = { queue, NULL, 0 };

	return nvp_gather_from(source, table, staging, ranges, count);
}

#endif /* NVMEPEER_DEVICE_GATHER_H */
