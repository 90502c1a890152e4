/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Programs of one command at a time, which note how long each took: as everybody reads,
 * as who has the queue pair for itself does, and by hand, which is what a GPU's thread and
 * a controller need to meet.  Beside programs_blocks.h, and for the same two compilers.
 */
#ifndef SOFTGPU_PROGRAMS_ALONE_H
#define SOFTGPU_PROGRAMS_ALONE_H

#include "programs_blocks.h"

PROGRAM_FN void take_sample(struct lane *lane, uint64_t ns)
{
	const struct softgpu_io *io = parameters(lane);
	uint64_t n;

	lane_took(lane, ns);
	lane_add(lane, commands, 1);
	count_command(lane, false, (uint64_t)io->blocks << lane->slot->queue.lba_shift);
	n = lane_reads(lane) - 1;
	if (io->samples && n < io->sample_count)
		((uint64_t *)(uintptr_t)io->samples)[n] = ns;
}

/* Nothing but the call lies between the two looks at the clock. */
PROGRAM_FN enum softgpu_status run_latency(struct lane *lane)
{
	const struct nvmepeer_queue *queue = &lane->slot->queue;
	uint64_t random = random_start(lane), start;
	struct unit unit = { 0, 0 };
	int error = 0;

	lanes_begin(lane);
	while (lanes_meet(lane, !error && !finished(lane))) {
		unit = random_unit(lane, &random);
		start = now_ns();
		error = nvmepeer_read(queue, &parameters(lane)->data, data_offset(lane), unit.lba,
				      unit.blocks);
		if (!error)
			take_sample(lane, now_ns() - start);
	}
	return error ? command_failed(lane, error, unit.lba) : SOFTGPU_OK;
}

/*
 * A read's entry, a doorbell, looks at the completion ring until it is there, a doorbell:
 * 0, or E_TIMEOUT.  Counts are those of a queue pair that is solo.
 */
PROGRAM_FN int exchange(struct lane *lane, struct nvmepeer_solo *solo, uint64_t lba,
			uint64_t start)
{
	const struct nvmepeer_queue *queue = &lane->slot->queue;
	uint32_t slot = solo->tail & queue->sq_mask, place = solo->head & queue->cq_mask, i;
	uint32_t phase = nvmepeer_phase_at(queue, solo->head), seen[4] = { 0 };
	uint64_t dma = parameters(lane)->data.dma + data_offset(lane);
	const uint32_t entry[4][4] = {
		{ NVMEPEER_OP_READ, queue->nsid }, { 0, 0, (uint32_t)dma, (uint32_t)(dma >> 32) },
		{ 0, 0, (uint32_t)lba, (uint32_t)(lba >> 32) }, { parameters(lane)->blocks - 1 },
	};

	for (i = 0; i < 4; i++)
		nvmepeer_sq_store(queue->sq + 64ULL * slot + 16ULL * i, entry[i]);
	nvmepeer_fence_publish();
	nvmepeer_doorbell_store(queue->sq_doorbell, ++solo->tail & queue->sq_mask);
	do {
		nvmepeer_cq_load(queue->cq + 16ULL * place, seen);
		if (nvmepeer_cqe_phase(seen) == phase) {
			nvmepeer_doorbell_store(queue->cq_doorbell, ++solo->head & queue->cq_mask);
			return (int)nvmepeer_cqe_status(seen);
		}
	} while (now_ns() - start < queue->timeout_ns);
	return NVMEPEER_E_TIMEOUT;
}

PROGRAM_FN enum softgpu_status run_alone(struct lane *lane, bool by_hand)
{
	const struct softgpu_io *io = parameters(lane);
	struct nvmepeer_solo solo = nvmepeer_solo_open(&lane->slot->queue);
	uint64_t random = random_start(lane), start;
	struct unit unit = { 0, 0 };
	int error = solo.broken;

	while (!error && !finished(lane)) {
		unit = random_unit(lane, &random);
		start = now_ns();
		error = by_hand ? exchange(lane, &solo, unit.lba, start) :
				  nvmepeer_solo_read(&solo, &io->data, data_offset(lane), unit.lba,
						     unit.blocks);
		if (!error)
			take_sample(lane, now_ns() - start);
	}
	if (error)
		solo.broken = error;
	nvmepeer_solo_close(&solo);
	return error ? command_failed(lane, error, unit.lba) : SOFTGPU_OK;
}

PROGRAM_FN enum softgpu_status run_solo(struct lane *lane)
{
	return run_alone(lane, false);
}

PROGRAM_FN enum softgpu_status run_exchange(struct lane *lane)
{
	return run_alone(lane, true);
}

#endif /* SOFTGPU_PROGRAMS_ALONE_H */
