/* SPDX-License-Identifier: MIT OR GPL-2.0 */
/*
 * nvmepeer_device/gather.h: many small reads by a block of threads.  Pieces
 * that lie in the same unit (a few logical blocks, 4 KiB as a rule) cost one
 * read together: the threads put the units they need into a table in shared
 * memory, whoever puts a unit in first reads it, and then all copy.
 */
#ifndef NVMEPEER_DEVICE_GATHER_H
#define NVMEPEER_DEVICE_GATHER_H

/* Units in flight in one round; a power of two. */
#ifndef NVMEPEER_GATHER_SLOTS
#define NVMEPEER_GATHER_SLOTS 256
#endif

/*
 * Units of one piece, and places where a unit looks for room in the table: a
 * piece alone always finds room.
 */
#define NVMEPEER_GATHER_UNITS 16

/**
 * struct nvmepeer_piece - a small read
 * @from: byte offset in the namespace
 * @to: where the bytes go, in the peer's address space
 * @bytes: how many; @from, @to and @bytes are multiples of 16, and the piece lies
 *	in NVMEPEER_GATHER_UNITS units at most
 */
struct nvmepeer_piece {
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
 *
 * One per block of threads.
 */
struct nvmepeer_staging {
	const struct nvmepeer_buffer *buffer;
	uint64_t address;
	uint32_t unit_shift;
};

/* Shared memory of the block: units in the table (number + 1, 0 for none), worst status. */
struct nvmepeer_gather_table {
	uint64_t unit[NVMEPEER_GATHER_SLOTS];
	uint32_t status;
	uint32_t left;
};

/*
 * Where units come from: a queue pair (@set is NULL), or a set, whose buffers hold
 * the staging memory at byte @offset.
 */
struct nvmepeer_gather_source {
	const struct nvmepeer_queue *queue;
	const struct nvmepeer_set *set;
	uint64_t offset;
};

/*
 * Finds @unit in the table or puts it there.  Returns its slot, with
 * NVMEPEER_GATHER_SLOTS added if it is new, or -1 if the table is full near it.
 */
NVMEPEER_FN int nvmepeer_gather_slot(struct nvmepeer_gather_table *table, uint64_t unit)
{
	uint32_t slot = (uint32_t)(unit * 0x9e3779b97f4a7c15u >> 40);

	for (uint32_t tries = 0; tries < NVMEPEER_GATHER_UNITS; tries++, slot++) {
		uint64_t found;

		slot &= NVMEPEER_GATHER_SLOTS - 1;
		found = nvmepeer_block_claim(&table->unit[slot], 0, unit + 1);
		if (!found)
			return (int)(slot + NVMEPEER_GATHER_SLOTS);
		if (found == unit + 1)
			return (int)slot;
	}
	return -1;
}

/* Makes sure that @unit is in the table, reading it if it is new.  False if full. */
NVMEPEER_FN bool nvmepeer_gather_unit(struct nvmepeer_gather_source source,
				      struct nvmepeer_gather_table *table,
				      const struct nvmepeer_staging *staging, uint64_t unit)
{
	uint32_t blocks = 1u << (staging->unit_shift - source.queue->lba_shift);
	int slot = nvmepeer_gather_slot(table, unit);
	uint64_t offset;
	int status;

	if (slot < NVMEPEER_GATHER_SLOTS)
		return slot >= 0;
	slot -= NVMEPEER_GATHER_SLOTS;
	offset = source.offset + ((uint64_t)slot << staging->unit_shift);
	if (source.set)
		status = nvmepeer_set_read(source.set, offset, unit * blocks, blocks);
	else
		status = nvmepeer_read(source.queue, staging->buffer, offset, unit * blocks,
				       blocks);
	nvmepeer_block_max(&table->status, (uint32_t)status);
	return true;
}

/* Units that a piece lies in, the first of them in @first.  0: it is empty. */
NVMEPEER_FN uint64_t nvmepeer_gather_units(const struct nvmepeer_staging *staging,
					   const struct nvmepeer_piece *piece, uint64_t *first)
{
	*first = piece->from >> staging->unit_shift;
	if (!piece->bytes)
		return 0;
	return ((piece->from + piece->bytes - 1) >> staging->unit_shift) - *first + 1;
}

/* May the piece be read? */
NVMEPEER_FN int nvmepeer_piece_check(const struct nvmepeer_staging *staging,
				     const struct nvmepeer_piece *piece)
{
	uint64_t first;

	if ((piece->from | piece->to | piece->bytes) & 15)
		return NVMEPEER_E_ALIGN;
	if (nvmepeer_gather_units(staging, piece, &first) > NVMEPEER_GATHER_UNITS)
		return NVMEPEER_E_TOO_LARGE;
	return NVMEPEER_OK;
}

/* Puts all units of a piece into the table.  False if it is full. */
NVMEPEER_FN bool nvmepeer_gather_piece(struct nvmepeer_gather_source source,
				       struct nvmepeer_gather_table *table,
				       const struct nvmepeer_staging *staging,
				       const struct nvmepeer_piece *piece)
{
	uint64_t first, units = nvmepeer_gather_units(staging, piece, &first);

	for (uint64_t i = 0; i < units; i++)
		if (!nvmepeer_gather_unit(source, table, staging, first + i))
			return false;
	return true;
}

/* Copies 16 bytes of a piece, at byte @at of the namespace; their unit is in the table. */
NVMEPEER_FN void nvmepeer_gather_copy(struct nvmepeer_gather_table *table,
				      const struct nvmepeer_staging *staging,
				      const struct nvmepeer_piece *piece, uint64_t at)
{
	uint64_t unit = at >> staging->unit_shift;
	uint64_t slot = (uint64_t)nvmepeer_gather_slot(table, unit);
	uint64_t in_unit = at & (((uint64_t)1 << staging->unit_shift) - 1);
	const uint64_t *from = (const uint64_t *)(uintptr_t)
		(staging->address + (slot << staging->unit_shift) + in_unit);
	uint64_t *to = (uint64_t *)(uintptr_t)(piece->to + (at - piece->from));

	to[0] = from[0];
	to[1] = from[1];
}

/* Copies pieces, 16 bytes a lane; each NVMEPEER_LANES threads take a piece. */
NVMEPEER_FN void nvmepeer_gather_spread(struct nvmepeer_gather_table *table,
					const struct nvmepeer_staging *staging,
					const struct nvmepeer_piece *pieces, uint32_t count)
{
	uint32_t team = nvmepeer_block_thread() / NVMEPEER_LANES;
	uint32_t teams = (nvmepeer_block_threads() + NVMEPEER_LANES - 1) / NVMEPEER_LANES;
	uint32_t lane = nvmepeer_block_thread() % NVMEPEER_LANES;
	uint32_t lanes = nvmepeer_block_threads() - team * NVMEPEER_LANES;

	lanes = lanes < NVMEPEER_LANES ? lanes : NVMEPEER_LANES;
	for (uint32_t i = team; i < count; i += teams)
		for (uint32_t at = 16 * lane; at < pieces[i].bytes; at += 16 * lanes)
			nvmepeer_gather_copy(table, staging, &pieces[i], pieces[i].from + at);
}

/*
 * One round: puts the units of @count pieces into the table, which is emptied
 * first if it was full.  @table->left is how many pieces, from the first that
 * found no room on, must wait for the next round.
 */
NVMEPEER_FN void nvmepeer_gather_round(struct nvmepeer_gather_source source,
				       struct nvmepeer_gather_table *table,
				       const struct nvmepeer_staging *staging,
				       const struct nvmepeer_piece *pieces, uint32_t count)
{
	uint32_t thread = nvmepeer_block_thread(), threads = nvmepeer_block_threads();

	if (table->left)
		for (uint32_t i = thread; i < NVMEPEER_GATHER_SLOTS; i += threads)
			table->unit[i] = 0;
	nvmepeer_block_sync();
	if (!thread)
		table->left = 0;
	nvmepeer_block_sync();
	for (uint32_t i = thread; i < count; i += threads)
		if (!nvmepeer_gather_piece(source, table, staging, &pieces[i]))
			nvmepeer_block_max(&table->left, count - i);
	nvmepeer_block_sync();
}

/* Does this thread find anything wrong with its share of the pieces? */
NVMEPEER_FN int nvmepeer_gather_check(const struct nvmepeer_queue *queue,
				      const struct nvmepeer_staging *staging,
				      const struct nvmepeer_piece *pieces, uint32_t count)
{
	int status = NVMEPEER_OK;

	if (staging->unit_shift < queue->lba_shift || staging->unit_shift > 27)
		return NVMEPEER_E_GEOMETRY;
	for (uint32_t i = nvmepeer_block_thread(); i < count && !status;
	     i += nvmepeer_block_threads())
		status = nvmepeer_piece_check(staging, &pieces[i]);
	return status;
}

/* nvmepeer_block_gather() from whatever source. */
NVMEPEER_FN int nvmepeer_gather_from(struct nvmepeer_gather_source source,
				     struct nvmepeer_gather_table *table,
				     const struct nvmepeer_staging *staging,
				     const struct nvmepeer_piece *pieces, uint32_t count)
{
	uint32_t round = NVMEPEER_GATHER_SLOTS / 4, status;

	if (!nvmepeer_block_thread()) {
		table->status = 0;
		table->left = 1;
	}
	nvmepeer_block_sync();
	status = (uint32_t)nvmepeer_gather_check(source.queue, staging, pieces, count);
	if (status)
		nvmepeer_block_max(&table->status, status);
	nvmepeer_block_sync();
	if (table->status)
		count = 0;
	for (uint32_t done = 0; done < count; ) {
		uint32_t here = count - done < round ? count - done : round;

		nvmepeer_gather_round(source, table, staging, pieces + done, here);
		here -= table->left;
		nvmepeer_gather_spread(table, staging, pieces + done, here);
		done += here;
		/* A piece alone always finds room. */
		round = here ? NVMEPEER_GATHER_SLOTS / 4 : 1;
		nvmepeer_block_sync();
	}
	nvmepeer_block_sync();
	status = table->status;
	nvmepeer_block_sync();
	return (int)status;
}

/**
 * nvmepeer_block_gather - read many small pieces by a block of threads
 * @queue: the queue pair
 * @table: in memory that the block shares
 * @staging: this block's
 * @pieces: the same array for every thread
 * @count: how many
 *
 * All threads of the block call together; each may use all the data when it
 * returns.  Returns to all of them 0, the status of a read that failed, when
 * what arrived is not defined, or with nothing read NVMEPEER_E_ALIGN or
 * _E_TOO_LARGE for a piece that may not be, and NVMEPEER_E_GEOMETRY for units
 * that no staging can have.
 */
NVMEPEER_FN int nvmepeer_block_gather(const struct nvmepeer_queue *queue,
				      struct nvmepeer_gather_table *table,
				      const struct nvmepeer_staging *staging,
				      const struct nvmepeer_piece *pieces, uint32_t count)
{
	struct nvmepeer_gather_source source = { queue, NULL, 0 };

	return nvmepeer_gather_from(source, table, staging, pieces, count);
}

#endif /* NVMEPEER_DEVICE_GATHER_H */
