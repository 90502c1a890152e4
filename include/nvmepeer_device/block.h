/* SPDX-License-Identifier: MIT OR GPL-2.0 */
/*
 * nvmepeer_device/block.h: transfers of any length by the lanes of a warp or
 * the threads of a block, split into commands of the maximum size.
 */
#ifndef NVMEPEER_DEVICE_BLOCK_H
#define NVMEPEER_DEVICE_BLOCK_H

#include "calls.h"
#include "command.h"
#include "compiler.h"
#include "nvme.h"
#include "platform.h"
#include "queue.h"
#include "wait.h"

/*
 * A transfer of any length; fields as in struct nvmepeer_command.  A flush is none
 * (NVMEPEER_E_OPCODE): call nvmepeer_flush(), once for each controller of a set.
 */
struct nvmepeer_transfer {
	uint32_t opcode;
	uint64_t control;
	uint64_t lba;
	uint64_t blocks;
	const struct nvmepeer_buffer *buffer;
	uint64_t offset;
};

/*
 * Maximum blocks of a command that may start anywhere in a page: max_transfer,
 * or the pages that a PRP list can describe, in whole pages, so that all
 * commands of a transfer have the same offset in a page as the first.  Scattered
 * data is a range only within a page (NVMEPEER_ONE_RANGE).  At least
 * one block; nvp_command_check() decides whether that can be submitted.
 */
NVP_FN uint32_t nvp_max_blocks(const struct nvmepeer_queue *queue,
			       const struct nvmepeer_buffer *buffer)
{
	uint64_t page = nvp_page_bytes(queue);
	uint64_t listed = (uint64_t)nvp_list_entries(queue) << queue->page_shift;
	uint64_t bytes = queue->max_transfer, blocks;

	/* Write zeroes has no data memory. */
	if (buffer && !nvp_use_sgl(queue, buffer) && bytes > listed)
		bytes = listed;
	if (bytes > page)
		bytes &= ~(page - 1);
	blocks = bytes >> queue->lba_shift;
	if (blocks > 65536)
		return 65536;
	return blocks ? (uint32_t)blocks : 1;
}

/* 0, or the error of a transfer of @count commands, at most @most, or of a flush. */
NVP_FN int nvp_transfer_check(const struct nvmepeer_transfer *transfer, uint32_t count,
			      uint32_t most)
{
	if (transfer->opcode == NVMEPEER_OP_FLUSH)
		return NVMEPEER_E_OPCODE;
	return count <= most ? NVMEPEER_OK : NVMEPEER_E_TOO_LARGE;
}

/*
 * Execute every @step-th command of a transfer, starting with number @index;
 * stops after a command that could not be submitted or did not complete.
 * Returns the worst status.
 */
NVP_FN int nvp_transfer_strided(const struct nvmepeer_queue *queue,
				const struct nvmepeer_transfer *transfer,
				uint32_t index, uint32_t step)
{
	uint32_t most = nvp_max_blocks(queue, transfer->buffer);
	int worst = nvp_transfer_check(transfer, 0, 0);

	for (uint64_t at = (uint64_t)index * most; at < transfer->blocks && worst >= 0;
	     at += (uint64_t)step * most) {
		uint64_t left = transfer->blocks - at;
		struct nvmepeer_command command = {
			transfer->opcode, (uint32_t)(left < most ? left : most),
			transfer->lba + at, transfer->buffer,
			transfer->offset + (at << queue->lba_shift), transfer->control,
		};
		int status = nvmepeer_execute(queue, &command, NULL, queue->timeout_ns);

		worst = nvp_worse(worst, status);
	}
	return worst;
}

/**
 * nvmepeer_warp_transfer - read or write any number of blocks by a warp
 * @queue: the queue pair
 * @transfer: the same for every lane
 *
 * All active lanes call together, so pass __syncwarp() or the like first: lanes that
 * come apart execute the transfer twice, and the second one transfers data after the
 * first lanes have returned.  nvmepeer_warp_submit() takes the group instead.
 * Returns to all of them 0, or the worst status of a command.
 */
NVP_FN int nvmepeer_warp_transfer(const struct nvmepeer_queue *queue,
				  const struct nvmepeer_transfer *transfer)
{
	struct nvmepeer_group group = nvmepeer_group_join(queue);
	int status = nvp_transfer_strided(queue, transfer,
					  nvp_rank(group.mask, group.lane),
					  nvp_mask_count(group.mask));

	return nvp_group_status(group, status);
}

/*
 * The worst status of a block's threads, by way of @shared, which was 0 before a
 * barrier.  Collective; a barrier.
 */
NVP_FN int nvp_block_worst(uint32_t *shared, int status)
{
	if (status)
		nvp_block_max(shared, (uint32_t)status);
	nvp_block_sync();
	status = (int)*shared;
	nvp_block_sync();
	return status;
}

/**
 * nvmepeer_block_transfer - read or write any number of blocks by a block
 * @queue: the queue pair
 * @transfer: the same for every thread
 * @shared: a word in shared memory of the block
 *
 * All threads of the block call together.  Returns to all of them 0, or the
 * worst status of a command.  After the return each thread may use all
 * the data.
 */
NVP_FN int nvmepeer_block_transfer(const struct nvmepeer_queue *queue,
				   const struct nvmepeer_transfer *transfer,
				   uint32_t *shared)
{
	int status;

	if (!nvp_block_thread())
		*shared = 0;
	nvp_block_sync();
	status = nvp_transfer_strided(queue, transfer, nvp_block_thread(),
				      nvp_block_threads());
	return nvp_block_worst(shared, status);
}

#endif /* NVMEPEER_DEVICE_BLOCK_H */
