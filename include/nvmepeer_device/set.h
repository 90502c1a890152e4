/* SPDX-License-Identifier: MIT OR GPL-2.0 */
/*
 * nvmepeer_device/set.h: several queue pairs of several controllers as one.
 * Blocks are striped over the controllers.  The threads of a warp share a queue
 * pair of each controller; warps are distributed over the queue pairs.
 */
#ifndef NVMEPEER_DEVICE_SET_H
#define NVMEPEER_DEVICE_SET_H

#include "calls.h"
#include "command.h"
#include "compiler.h"
#include "nvme.h"
#include "opcodes.h"
#include "platform.h"
#include "queue.h"

enum {
	/*
	 * Rotate each row of stripes by a hash, against hot spots of accesses
	 * with regular strides.
	 */
	NVMEPEER_SET_HASH = 1u << 0,
};

/**
 * struct nvmepeer_set_member - the blocks of one controller that belong to a set
 * @base: first logical block
 * @blocks: number of logical blocks
 */
struct nvmepeer_set_member {
	uint64_t base;
	uint64_t blocks;
};

/**
 * struct nvmepeer_set - queue pairs of several controllers as one
 * @queues: @queues_each queue pairs of the first controller, then of the next
 * @buffers: the data memory as each controller sees it, one per controller
 * @controllers: number of controllers
 * @queues_each: number of queue pairs of each
 * @stripe_shift: log2 of the logical blocks of a stripe
 * @flags: NVMEPEER_SET_HASH
 * @layout: NVMEPEER_LAYOUT, for nvmepeer_set_check()
 * @reserved: 0
 * @members: one per controller, in memory of the peer; or NULL: all blocks of each
 */
struct nvmepeer_set {
	const struct nvmepeer_queue *queues;
	const struct nvmepeer_buffer *buffers;
	uint32_t controllers;
	uint32_t queues_each;
	uint32_t stripe_shift;
	uint32_t flags;
	uint32_t layout;
	uint32_t reserved;
	const struct nvmepeer_set_member *members;
};

/* Location of a block of the set.  @left: blocks of the member from there on. */
struct nvp_location {
	uint32_t controller;
	uint64_t lba;
	uint64_t left;
};

NVP_FN struct nvp_location nvp_set_locate(const struct nvmepeer_set *set, uint64_t lba)
{
	uint64_t stripe = lba >> set->stripe_shift;
	uint64_t row = stripe / set->controllers;
	uint64_t column = stripe % set->controllers;
	struct nvp_location location;

	if (set->flags & NVMEPEER_SET_HASH)
		column = (column + (row * 0x9e3779b97f4a7c15u >> 33)) % set->controllers;
	location.controller = (uint32_t)column;
	location.lba = row << set->stripe_shift | (lba & (((uint64_t)1 << set->stripe_shift) - 1));
	location.left = ~(uint64_t)0;
	if (set->members) {
		const struct nvmepeer_set_member *member = &set->members[location.controller];

		location.left = member->blocks > location.lba ? member->blocks - location.lba : 0;
		location.lba += member->base;
	}
	return location;
}

/*
 * The queue pair of a warp, by @start, which is the number of the processor times
 * 64 plus that of the warp on it.  The product's upper bits spread the I/O warps of
 * many processors evenly, which often have the same number.
 */
NVP_FN uint32_t nvp_set_index(uint32_t start, uint32_t queues_each)
{
	return (uint32_t)((uint64_t)(start * 2654435769u) * queues_each >> 32);
}

/* Index of this warp's queue pair of a controller. */
NVP_FN uint32_t nvp_set_queue_of(const struct nvmepeer_set *set, uint32_t controller)
{
	return controller * set->queues_each + nvp_set_index(nvp_start_hash(), set->queues_each);
}

NVP_FN const struct nvmepeer_queue *nvp_set_queue(const struct nvmepeer_set *set,
						  uint32_t controller)
{
	return &set->queues[nvp_set_queue_of(set, controller)];
}

/*
 * Execute one command after the other where blocks cross stripes; stops at the
 * first bad status.
 */
NVP_FN int nvp_set_execute(const struct nvmepeer_set *set, uint32_t opcode,
			   uint64_t offset, uint64_t lba, uint32_t blocks)
{
	uint64_t stripe = (uint64_t)1 << set->stripe_shift;
	int status = NVMEPEER_OK;

	while (blocks && !status) {
		struct nvp_location location = nvp_set_locate(set, lba);
		const struct nvmepeer_queue *queue = nvp_set_queue(set, location.controller);
		uint64_t left = stripe - (lba & (stripe - 1));
		uint32_t here = blocks < left ? blocks : (uint32_t)left;
		struct nvmepeer_command command = { opcode, here, location.lba,
						    &set->buffers[location.controller], offset, 0 };

		status = here > location.left ? (int)NVMEPEER_E_RANGE :
			 nvmepeer_execute(queue, &command, NULL, queue->timeout_ns);
		lba += here;
		blocks -= here;
		offset += (uint64_t)here << queue->lba_shift;
	}
	return status;
}

/*
 * nvmepeer_set_check - nvmepeer_check() for a set and all its queue pairs: 0,
 * NVMEPEER_E_LAYOUT or NVMEPEER_E_LOST.  Not part of the path of commands: a
 * kernel that was compiled separately from the host program calls it once.
 */
NVP_FN int nvmepeer_set_check(const struct nvmepeer_set *set)
{
	int error = NVMEPEER_OK;

	if (set->layout != NVMEPEER_LAYOUT)
		return NVMEPEER_E_LAYOUT;
	for (uint32_t i = 0; i < set->controllers * set->queues_each && !error; i++)
		error = nvmepeer_check(&set->queues[i]);
	return error;
}

/* nvmepeer_set_read - nvmepeer_read() on a set; @offset is in every buffer of the set. */
NVP_FN int nvmepeer_set_read(const struct nvmepeer_set *set, uint64_t offset, uint64_t lba,
			     uint32_t blocks)
{
	return nvp_set_execute(set, NVMEPEER_OP_READ, offset, lba, blocks);
}

/* nvmepeer_set_write - nvmepeer_write() on a set. */
NVP_FN int nvmepeer_set_write(const struct nvmepeer_set *set, uint64_t offset, uint64_t lba,
			      uint32_t blocks)
{
	return nvp_set_execute(set, NVMEPEER_OP_WRITE, offset, lba, blocks);
}

#endif /* NVMEPEER_DEVICE_SET_H */
