/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Programs on a list of items over all queue pairs of a job: by the kernel of
 * nvmepeer_cuda_read_list(), and by a kernel that loads the same bytes from the disk's memory, as a
 * comparison. Memory @n of an item is the data memory of queue pair @n. The result's
 * latency_max_ns is the time from the start of the first thread to the end of the last one.
 */
#ifndef SOFTGPU_PROGRAMS_LIST_H
#define SOFTGPU_PROGRAMS_LIST_H

#include "../../lib/cuda/list_kernel.h"

#ifndef __cplusplus
_Static_assert(KERNEL_LIST_BLOCK == LIST_THREADS, "the list has the threads of one on a stream");
#endif

/* Queue pairs of a list, in the block's shared memory. */
#define LIST_PAIRS	16U

PROGRAM_FN uint32_t list_pairs(const struct kernel_job *job)
{
	return job->threads / job->pairs->threads;
}

PROGRAM_FN struct nvmepeer_list_item *list_items(const struct kernel_job *job)
{
	return (struct nvmepeer_list_item *)(uintptr_t)job->parameters.io.page_table;
}

/* Returns the worst status. By one block. */
PROGRAM_FN int list_transfer(const struct kernel_job *job)
{
	static BLOCK_SHARED struct nvmepeer_queue queues[LIST_PAIRS];
	static BLOCK_SHARED struct nvmepeer_memory memories[LIST_PAIRS];
	static BLOCK_SHARED struct nvmepeer_list_done done;
	static BLOCK_SHARED uint32_t worst;
	struct list_parameters parameters = {
		.queues = queues,
		.queue_count = list_pairs(job),
		.layout = NVMEPEER_LAYOUT,
		.done = &done,
		.list = {
			.memories = memories,
			.items = list_items(job),
			.memory_count = list_pairs(job),
			.count = (uint32_t)job->parameters.io.commands,
			.opcode = NVMEPEER_OP_READ,
		},
	};
	uint32_t i;

	for (i = nvp_block_thread(); i < list_pairs(job); i += nvp_block_threads()) {
		queues[i] = job->pairs[i].queue;
		memories[i].buffer = job->pairs[i].parameters.io.data;
		memories[i].address = job->pairs[i].parameters.io.data_address;
	}
	nvp_block_sync();
	list_run(&parameters, &worst);
	nvp_block_sync();
	return done.status;
}

/* Words that differ from the pattern; they are overwritten. By WARP_LANES lanes. */
PROGRAM_FN uint32_t list_item_wrong(const struct kernel_job *job,
				    const struct nvmepeer_list_item *item, uint64_t to,
				    uint32_t lane)
{
	uint64_t *words = (uint64_t *)(uintptr_t)to;
	uint32_t shift = job->pairs->queue.lba_shift - 3, at, wrong = 0;

	for (at = lane; at < item->bytes / 8; at += WARP_LANES) {
		wrong += words[at] != softgpu_pattern(job->parameters.io.seed,
						      item->lba + (at >> shift),
						      at & ((1U << shift) - 1));
		words[at] = POISON;
	}
	return wrong;
}

PROGRAM_FN enum softgpu_status run_list(const struct kernel_job *job)
{
	int error = 0;

	if (thread_index() < nvp_block_threads())
		error = list_transfer(job);
	if (error && claim(&job->state->result.where, ~(uint64_t)0, 0))
		job->state->result.error = error;
	return error ? SOFTGPU_FAILED : SOFTGPU_OK;
}

/* Items are assigned to the warps in turn. */
PROGRAM_FN enum softgpu_status run_list_items(const struct kernel_job *job)
{
	uint32_t lane = thread_index() % WARP_LANES, i = thread_index() / WARP_LANES;
	const struct softgpu_io *io = &job->parameters.io;
	uint32_t wrong = 0;

	for (; i < io->commands; i += job->threads / WARP_LANES) {
		const struct nvmepeer_list_item *item = &list_items(job)[i];
		uint64_t to = job->pairs[item->memory].parameters.io.data_address + item->offset;

		if (job->program == SOFTGPU_LIST_CHECK)
			wrong += list_item_wrong(job, item, to, lane);
		else
			mover_move(to, job->mover.disk + (item->lba << job->pairs->queue.lba_shift),
				   item->bytes, lane);
	}
	nvp_fence_publish();
	if (wrong)
		nvp_add64((uint64_t *)&job->state->result.mismatches, wrong);
	return wrong ? SOFTGPU_FAILED : SOFTGPU_OK;
}

#endif /* SOFTGPU_PROGRAMS_LIST_H */
