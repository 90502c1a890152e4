/* SPDX-License-Identifier: MIT OR GPL-2.0 */
/*
 * nvmepeer_device/set_gather.h: many small reads by a block of threads, as in
 * gather.h, from a set of queue pairs and controllers.  Each unit is read
 * through a queue pair of its controller; different warps use different queue
 * pairs.
 */
#ifndef NVMEPEER_DEVICE_SET_GATHER_H
#define NVMEPEER_DEVICE_SET_GATHER_H

#include "compiler.h"
#include "gather.h"
#include "platform.h"
#include "set.h"

/**
 * struct nvmepeer_set_staging - memory of a set that units are read into
 * @offset: byte offset in every buffer of the set; NVMEPEER_GATHER_SLOTS units
 * @address: the same memory in the peer's address space
 * @unit_shift: log2 of the bytes of a unit: at least a logical block
 * @blocks: logical blocks of the set, so that its last unit may be partial; 0:
 *	all units are whole
 *
 * One per block of threads.
 */
struct nvmepeer_set_staging {
	uint64_t offset;
	uint64_t address;
	uint32_t unit_shift;
	uint64_t blocks;
};

/**
 * nvmepeer_block_set_gather - nvmepeer_block_gather() from a set
 * @set: the set; @from of a range is a byte offset in it
 * @table: in shared memory of the block
 * @staging: this block's
 * @ranges: the same array for every thread
 * @count: number of ranges
 *
 * Otherwise like nvmepeer_block_gather(); NVMEPEER_E_RANGE from a member that ends before
 * the unit is the status of a read.
 */
NVP_FN int nvmepeer_block_set_gather(const struct nvmepeer_set *set,
				     struct nvmepeer_gather_table *table,
				     const struct nvmepeer_set_staging *staging,
				     const struct nvmepeer_gather_range *ranges, uint32_t count)
{
	struct nvp_gather_source source = { set->queues, set, staging->offset };
	struct nvmepeer_staging memory = { NULL, staging->address, staging->unit_shift,
					   staging->blocks };

	return nvp_gather_from(source, table, &memory, ranges, count);
}

#endif /* NVMEPEER_DEVICE_SET_GATHER_H */
