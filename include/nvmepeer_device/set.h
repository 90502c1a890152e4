/* SPDX-License-Identifier: MIT OR GPL-2.0 */
/*
 * nvmepeer_device/set.h: several queue pairs and several controllers behind one
 * handle.  Blocks are striped over the controllers; the threads of a warp share
 * a queue pair of each controller, warps are spread over them.
 */
#ifndef NVMEPEER_DEVICE_SET_H
#define NVMEPEER_DEVICE_SET_H

enum {
	/* Turn each row of stripes by a hash, against access in regular strides. */
	NVMEPEER_SET_HASH = 1u << 0,
};

/**
 * struct nvmepeer_set - queue pairs as one
 * @queues: @queues_each queue pairs of the first controller, then of the next
 * @buffers: the data memory as each controller sees it, one per controller
 * @controllers: how many controllers
 * @queues_each: how many queue pairs of each
 * @stripe_shift: log2 of the logical blocks of a stripe
 * @flags: NVMEPEER_SET_HASH
 */
struct nvmepeer_set {
	const struct nvmepeer_queue *queues;
	const struct nvmepeer_buffer *buffers;
	uint32_t controllers;
	uint32_t queues_each;
	uint32_t stripe_shift;
	uint32_t flags;
};

/* Where a block of the set lies. */
struct nvmepeer_place {
	uint32_t controller;
	uint64_t lba;
};

NVMEPEER_FN struct nvmepeer_place nvmepeer_set_place(const struct nvmepeer_set *set, uint64_t lba)
{
	uint64_t stripe = lba >> set->stripe_shift;
	uint64_t row = stripe / set->controllers;
	uint64_t column = stripe % set->controllers;
	struct nvmepeer_place place;

	if (set->flags & NVMEPEER_SET_HASH)
		column = (column + (row * 0x9e3779b97f4a7c15u >> 33)) % set->controllers;
	place.controller = (uint32_t)column;
	place.lba = row << set->stripe_shift | (lba & (((uint64_t)1 << set->stripe_shift) - 1));
	return place;
}

NVMEPEER_FN const struct nvmepeer_queue *nvmepeer_set_queue(const struct nvmepeer_set *set,
							    uint32_t controller)
{
	return &set->queues[controller * set->queues_each + nvmepeer_home() % set->queues_each];
}

/* One command after the other where blocks cross stripes; the first bad status ends it. */
NVMEPEER_FN int nvmepeer_set_execute(const struct nvmepeer_set *set, uint32_t opcode,
				     uint64_t offset, uint64_t lba, uint32_t blocks)
{
	uint64_t stripe = (uint64_t)1 << set->stripe_shift;
	int status = NVMEPEER_OK;

	while (blocks && !status) {
		struct nvmepeer_place place = nvmepeer_set_place(set, lba);
		const struct nvmepeer_queue *queue = nvmepeer_set_queue(set, place.controller);
		uint64_t left = stripe - (lba & (stripe - 1));
		uint32_t here = blocks < left ? blocks : (uint32_t)left;
		struct nvmepeer_command command = { opcode, here, place.lba,
						    &set->buffers[place.controller], offset, 0 };

		status = nvmepeer_execute(queue, &command, NULL, queue->timeout_ns);
		lba += here;
		blocks -= here;
		offset += (uint64_t)here << queue->lba_shift;
	}
	return status;
}

/* nvmepeer_set_read - nvmepeer_read() on a set; @offset is in every buffer of the set. */
NVMEPEER_FN int nvmepeer_set_read(const struct nvmepeer_set *set, uint64_t offset, uint64_t lba,
				  uint32_t blocks)
{
	return nvmepeer_set_execute(set, NVMEPEER_OP_READ, offset, lba, blocks);
}

/* nvmepeer_set_write - nvmepeer_write() on a set. */
NVMEPEER_FN int nvmepeer_set_write(const struct nvmepeer_set *set, uint64_t offset, uint64_t lba,
				   uint32_t blocks)
{
	return nvmepeer_set_execute(set, NVMEPEER_OP_WRITE, offset, lba, blocks);
}

#endif /* NVMEPEER_DEVICE_SET_H */
