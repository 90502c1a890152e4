/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Programs that execute one command at a time and record its latency: by the shared API, by the
 * exclusive API, and without the library, as a lower bound for a GPU thread and a controller. Like
 * programs_blocks.h they are compiled twice.
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

/* Only the call is between the two reads of the clock. */
PROGRAM_FN enum softgpu_status run_latency(struct lane *lane)
{
	const struct nvmepeer_queue *queue = lane_queue(lane);
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
 * Write an entry, ring, poll for the completion, ring. Returns 0 or E_TIMEOUT. The indices are
 * those of the exclusive queue pair.
 */
PROGRAM_FN int exchange(struct lane *lane, struct nvmepeer_exclusive *exclusive, uint64_t lba,
			uint64_t start)
{
	const struct nvmepeer_queue *queue = exclusive->queue;
	uint32_t slot = exclusive->tail & queue->sq_mask, place = exclusive->head & queue->cq_mask, i;
	uint32_t phase = nvp_phase_at(queue, exclusive->head), seen[4] = { 0 };
	uint64_t dma = parameters(lane)->data.dma + data_offset(lane);
	const uint32_t entry[4][4] = {
		{ NVMEPEER_OP_READ, queue->nsid }, { 0, 0, (uint32_t)dma, (uint32_t)(dma >> 32) },
		{ 0, 0, (uint32_t)lba, (uint32_t)(lba >> 32) }, { parameters(lane)->blocks - 1 },
	};

	for (i = 0; i < 4; i++)
		nvp_sq_store(queue->sq + 64ULL * slot + 16ULL * i, entry[i]);
	nvp_fence_publish();
	nvp_doorbell_store(queue->sq_doorbell, ++exclusive->tail & queue->sq_mask);
	do {
		nvp_cq_load(queue->cq + 16ULL * place, seen);
		if (nvp_cqe_phase(seen) == phase) {
			nvp_doorbell_store(queue->cq_doorbell, ++exclusive->head & queue->cq_mask);
			return (int)nvp_cqe_status(seen);
		}
	} while (now_ns() - start < queue->timeout_ns);
	return NVMEPEER_E_TIMEOUT;
}

PROGRAM_FN enum softgpu_status run_alone(struct lane *lane, bool by_hand)
{
	const struct softgpu_io *io = parameters(lane);
	struct nvmepeer_exclusive exclusive = nvmepeer_exclusive_open(lane_queue(lane));
	uint64_t random = random_start(lane), start;
	struct unit unit = { 0, 0 };
	int error = exclusive.broken;

	while (!error && !finished(lane)) {
		unit = random_unit(lane, &random);
		start = now_ns();
		error = by_hand ? exchange(lane, &exclusive, unit.lba, start) :
				  nvmepeer_exclusive_read(&exclusive, &io->data, data_offset(lane), unit.lba,
							  unit.blocks);
		if (!error)
			take_sample(lane, now_ns() - start);
	}
	if (error)
		exclusive.broken = error;
	nvmepeer_exclusive_close(&exclusive);
	return error ? command_failed(lane, error, unit.lba) : SOFTGPU_OK;
}

PROGRAM_FN enum softgpu_status run_exclusive(struct lane *lane)
{
	return run_alone(lane, false);
}

PROGRAM_FN enum softgpu_status run_exchange(struct lane *lane)
{
	return run_alone(lane, true);
}

#endif /* SOFTGPU_PROGRAMS_ALONE_H */
