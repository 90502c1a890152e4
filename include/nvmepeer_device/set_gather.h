/* SPDX-License-Identifier: MIT OR GPL-2.0 */
/*
 * nvmepeer_device/set_gather.h: many small reads by a block of threads, as in
 * gather.h, from a set of queue pairs and controllers: each unit is read through
 * a queue pair of the controller it lies on, and warps use different ones.
 */
#ifndef NVMEPEER_DEVICE_SET_GATHER_H
#define NVMEPEER_DEVICE_SET_GATHER_H

/**
 * struct nvmepeer_set_staging - memory of a set that units are read into
 * @offset: where it begins in every buffer of the set; NVMEPEER_GATHER_SLOTS units
 * @address: the same memory in the peer's address space
 * @unit_shift: log2 of the bytes of a unit: at least a logical block
 *
 * One per block of threads.
 */
struct nvmepeer_set_staging {
	uint64_t offset;
	uint64_t address;
	uint32_t unit_shift;
};

/* Makes sure that @unit is in the table, reading it if it is new.  False if full. */
NVMEPEER_FN bool nvmepeer_set_gather_unit(const struct nvmepeer_set *set,
					  struct nvmepeer_gather_table *table,
					  const struct nvmepeer_set_staging *staging,
					  uint64_t unit)
{
	uint32_t blocks = 1u << (staging->unit_shift - set->queues->lba_shift);
	int slot = nvmepeer_gather_slot(table, unit);
	int status;

	if (slot < NVMEPEER_GATHER_SLOTS)
		return slot >= 0;
	slot -= NVMEPEER_GATHER_SLOTS;
	status = nvmepeer_set_read(set, staging->offset + ((uint64_t)slot << staging->unit_shift),
				   unit * blocks, blocks);
	if (status)
		nvmepeer_block_max(&table->status, (uint32_t)status);
	return true;
}

/* Puts the units of this thread's share of @count pieces into the table. */
NVMEPEER_FN void nvmepeer_set_gather_round(const struct nvmepeer_set *set,
					   struct nvmepeer_gather_table *table,
					   const struct nvmepeer_set_staging *staging,
					   const struct nvmepeer_piece *pieces, uint32_t count)
{
	for (uint32_t i = nvmepeer_block_thread(); i < count; i += nvmepeer_block_threads()) {
		uint64_t unit = pieces[i].from >> staging->unit_shift;
		uint64_t end = (pieces[i].from + pieces[i].bytes +
				((uint64_t)1 << staging->unit_shift) - 1) >> staging->unit_shift;

		while (unit < end && nvmepeer_set_gather_unit(set, table, staging, unit))
			unit++;
		if (unit < end)
			nvmepeer_block_max(&table->left, count - i);
	}
	nvmepeer_block_sync();
}

/* Empties the table, if the last round filled it, for the next.  Collective; a barrier. */
NVMEPEER_FN void nvmepeer_set_gather_begin(struct nvmepeer_gather_table *table)
{
	if (table->left)
		for (uint32_t i = nvmepeer_block_thread(); i < NVMEPEER_GATHER_SLOTS;
		     i += nvmepeer_block_threads())
			table->unit[i] = 0;
	nvmepeer_block_sync();
	if (!nvmepeer_block_thread())
		table->left = 0;
	nvmepeer_block_sync();
}

/* Is a piece of this thread's share one that may not be read?  Collective; a barrier. */
NVMEPEER_FN void nvmepeer_set_gather_check(struct nvmepeer_gather_table *table,
					   const struct nvmepeer_set_staging *staging,
					   const struct nvmepeer_piece *pieces, uint32_t count)
{
	int status = NVMEPEER_OK;

	if (!nvmepeer_block_thread()) {
		table->status = 0;
		table->left = 1;
	}
	nvmepeer_block_sync();
	for (uint32_t i = nvmepeer_block_thread(); i < count; i += nvmepeer_block_threads()) {
		if ((pieces[i].from | pieces[i].to | pieces[i].bytes) & 15)
			status = NVMEPEER_E_ALIGN;
		else if (pieces[i].bytes > (uint32_t)1 << staging->unit_shift)
			status = NVMEPEER_E_TOO_LARGE;
		if (status)
			nvmepeer_block_max(&table->status, (uint32_t)status);
	}
	nvmepeer_block_sync();
}

/**
 * nvmepeer_set_gather - nvmepeer_block_gather() from a set
 * @set: the set; @from of a piece is a byte offset in it
 * @table: in memory that the block shares
 * @staging: this block's
 * @pieces: the same array for every thread; each of at most one unit's length
 * @count: how many
 *
 * All threads of the block call together; each may use all the data when it
 * returns.  Returns to all of them 0, the status of a read that failed, when
 * what arrived is not defined, or with nothing read NVMEPEER_E_ALIGN or
 * _E_TOO_LARGE for a piece.
 */
NVMEPEER_FN int nvmepeer_set_gather(const struct nvmepeer_set *set,
				    struct nvmepeer_gather_table *table,
				    const struct nvmepeer_set_staging *staging,
				    const struct nvmepeer_piece *pieces, uint32_t count)
{
	struct nvmepeer_staging memory = { NULL, staging->address, staging->unit_shift };
	uint32_t round = NVMEPEER_GATHER_SLOTS / 4;
	int status;

	nvmepeer_set_gather_check(table, staging, pieces, count);
	if (table->status)
		count = 0;
	for (uint32_t done = 0; done < count; ) {
		uint32_t here = count - done < round ? count - done : round;

		nvmepeer_set_gather_begin(table);
		nvmepeer_set_gather_round(set, table, staging, pieces + done, here);
		here -= table->left;
		nvmepeer_gather_spread(table, &memory, pieces + done, here);
		done += here;
		/* A piece alone always finds room. */
		round = here ? NVMEPEER_GATHER_SLOTS / 4 : 1;
		nvmepeer_block_sync();
	}
	nvmepeer_block_sync();
	status = (int)table->status;
	nvmepeer_block_sync();
	return status;
}

#endif /* NVMEPEER_DEVICE_SET_GATHER_H */
