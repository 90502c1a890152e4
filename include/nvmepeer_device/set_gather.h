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

/**
 * nvmepeer_set_gather - nvmepeer_block_gather() from a set
 * @set: the set; @from of a piece is a byte offset in it
 * @table: in memory that the block shares
 * @staging: this block's
 * @pieces: the same array for every thread
 * @count: how many
 *
 * All threads of the block call together; all else is as there.
 */
NVMEPEER_FN int nvmepeer_set_gather(const struct nvmepeer_set *set,
				    struct nvmepeer_gather_table *table,
				    const struct nvmepeer_set_staging *staging,
				    const struct nvmepeer_piece *pieces, uint32_t count)
{
	struct nvmepeer_gather_source source = { set->queues, set, staging->offset };
	struct nvmepeer_staging memory = { NULL, staging->address, staging->unit_shift };

	return nvmepeer_gather_from(source, table, &memory, pieces, count);
}

#endif /* NVMEPEER_DEVICE_SET_GATHER_H */
