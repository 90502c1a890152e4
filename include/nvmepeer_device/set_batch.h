/* SPDX-License-Identifier: MIT OR GPL-2.0 */
/*
 * nvmepeer_device/set_batch.h: asynchronous commands and transfers of a set.  A token
 * carries its queue pair.  A member that is lost, full or does not complete fails its
 * own commands only.
 */
#ifndef NVMEPEER_DEVICE_SET_BATCH_H
#define NVMEPEER_DEVICE_SET_BATCH_H

#include "batch.h"
#include "block.h"
#include "calls.h"
#include "command.h"
#include "nvme.h"
#include "platform.h"
#include "queue.h"
#include "set.h"

/**
 * struct nvmepeer_set_token - a command in flight
 * @token: of the queue pair
 * @queue: index in nvmepeer_set.queues
 */
struct nvmepeer_set_token {
	struct nvmepeer_token token;
	uint32_t queue;
};

/**
 * nvmepeer_set_submit - nvmepeer_submit() to the member that has the blocks
 * @set: the set
 * @command: @lba is a block of the set, and @offset in every buffer of the set;
 *	@buffer is not used
 * @token: out: identifies the command
 * @timeout_ns: how long to wait for room in the queue
 *
 * Also returns NVMEPEER_E_TOO_LARGE if the blocks cross a stripe, NVMEPEER_E_RANGE
 * if they are outside of the member, and NVMEPEER_E_OPCODE for a flush: call
 * nvmepeer_flush() with a queue pair of each controller.
 */
NVP_FN int nvmepeer_set_submit(const struct nvmepeer_set *set,
			       const struct nvmepeer_command *command,
			       struct nvmepeer_set_token *token, uint64_t timeout_ns)
{
	struct nvp_location location = nvp_set_locate(set, command->lba);
	uint64_t stripe = (uint64_t)1 << set->stripe_shift;
	struct nvmepeer_command located = *command;

	token->token.cid = NVMEPEER_NO_CID;
	token->token.ticket = 0;
	token->queue = nvp_set_queue_of(set, location.controller);
	if (command->opcode == NVMEPEER_OP_FLUSH)
		return NVMEPEER_E_OPCODE;
	if (command->blocks > stripe - (command->lba & (stripe - 1)))
		return NVMEPEER_E_TOO_LARGE;
	if (command->blocks > location.left)
		return NVMEPEER_E_RANGE;
	located.lba = location.lba;
	located.buffer = &set->buffers[location.controller];
	return nvmepeer_submit(&set->queues[token->queue], &located, &token->token, timeout_ns);
}

/* nvmepeer_set_poll - nvmepeer_poll() of a command of a set */
NVP_FN int nvmepeer_set_poll(const struct nvmepeer_set *set, struct nvmepeer_set_token token,
			     uint32_t *result)
{
	if (token.queue >= set->controllers * set->queues_each)
		return NVMEPEER_E_TOKEN;
	return nvmepeer_poll(&set->queues[token.queue], token.token, result);
}

/* nvmepeer_set_wait - nvmepeer_wait() for a command of a set */
NVP_FN int nvmepeer_set_wait(const struct nvmepeer_set *set, struct nvmepeer_set_token token,
			     uint32_t *result, uint64_t timeout_ns)
{
	if (token.queue >= set->controllers * set->queues_each)
		return NVMEPEER_E_TOKEN;
	return nvmepeer_wait(&set->queues[token.queue], token.token, result, timeout_ns);
}

/**
 * struct nvmepeer_set_batch - commands of a set that are waited for together
 * @commands: as a batch of a queue pair
 * @queues: array of as many indices of queue pairs, one for each token
 * @statuses: out: array of as many statuses, one for each command, NVMEPEER_AGAIN while
 *	it is in flight; or NULL.  Command i is piece i of the transfer, see
 *	nvmepeer_set_batch_piece()
 *
 * The caller sets the arrays and @most of @commands.
 */
struct nvmepeer_set_batch {
	struct nvmepeer_batch commands;
	uint32_t *queues;
	int *statuses;
};

/*
 * Blocks of a command of a transfer: a power of two, up to a stripe, that each member
 * can execute.
 */
NVP_FN uint64_t nvp_set_chunk(const struct nvmepeer_set *set)
{
	uint64_t chunk = (uint64_t)1 << set->stripe_shift;

	for (uint32_t i = 0; i < set->controllers; i++)
		while (chunk > nvp_max_blocks(&set->queues[i * set->queues_each], &set->buffers[i]))
			chunk >>= 1;
	return chunk;
}

/* The pieces of a transfer end at multiples of @chunk. */
NVP_FN uint64_t nvp_set_pieces(const struct nvmepeer_transfer *transfer, uint64_t chunk)
{
	uint64_t skipped = transfer->lba & (chunk - 1);

	return transfer->blocks ? (skipped + transfer->blocks - 1) / chunk + 1 : 0;
}

/* Piece @index of a transfer as a command, without its buffer. */
NVP_FN struct nvmepeer_command nvp_set_piece(const struct nvmepeer_set *set,
					     const struct nvmepeer_transfer *transfer,
					     uint64_t chunk, uint32_t index)
{
	uint64_t first = transfer->lba & ~(chunk - 1), end = transfer->lba + transfer->blocks;
	uint64_t from = index ? first + index * chunk : transfer->lba;
	uint64_t to = first + (index + (uint64_t)1) * chunk;
	struct nvmepeer_command command = {
		transfer->opcode, (uint32_t)((to < end ? to : end) - from), from, NULL,
		transfer->offset + ((from - transfer->lba) << set->queues[0].lba_shift),
		transfer->control,
	};

	return command;
}

/*
 * nvmepeer_set_batch_commands - number of commands that a transfer is split into;
 * 0xffffffff if there are that many or more
 */
NVP_FN uint32_t nvmepeer_set_batch_commands(const struct nvmepeer_set *set,
					    const struct nvmepeer_transfer *transfer)
{
	uint64_t count = nvp_set_pieces(transfer, nvp_set_chunk(set));

	return count < 0xffffffffu ? (uint32_t)count : 0xffffffffu;
}

/*
 * nvmepeer_set_batch_piece - the part of a transfer that command @index executes:
 * blocks of the set, and the offset in the buffers
 */
NVP_FN struct nvmepeer_command nvmepeer_set_batch_piece(const struct nvmepeer_set *set,
							const struct nvmepeer_transfer *transfer,
							uint32_t index)
{
	return nvp_set_piece(set, transfer, nvp_set_chunk(set), index);
}

/* Record the status of a command.  Returns the worst of it and @worst. */
NVP_FN int nvp_set_record(const struct nvmepeer_set_batch *batch, uint32_t index, int status,
			  int worst)
{
	if (batch->statuses)
		batch->statuses[index] = status;
	return nvp_worse(worst, status);
}

/*
 * Submit every @step-th command of a transfer, starting with number @index.  A member
 * that is full gets no more of them, so that it costs each lane one timeout; one that is lost
 * refuses them at once.  Returns the worst status.
 */
NVP_FN int nvp_set_batch_send(const struct nvmepeer_set *set,
			      const struct nvmepeer_transfer *transfer,
			      const struct nvmepeer_set_batch *batch, uint32_t count,
			      uint32_t index, uint32_t step)
{
	uint64_t chunk = nvp_set_chunk(set), ended = 0;
	int worst = NVMEPEER_OK;

	for (uint32_t i = index; i < count; i += step) {
		struct nvmepeer_command command = nvp_set_piece(set, transfer, chunk, i);
		uint32_t controller = nvp_set_locate(set, command.lba).controller;
		uint64_t bit = controller < 64 ? (uint64_t)1 << controller : 0;
		struct nvmepeer_set_token token = { { NVMEPEER_NO_CID, 0 }, 0 };
		int status = NVMEPEER_E_FULL;

		if (!(ended & bit))
			status = nvmepeer_set_submit(set, &command, &token,
						     set->queues[0].timeout_ns);
		if (status == NVMEPEER_E_FULL)
			ended |= bit;
		if (status)
			token.token.cid = NVMEPEER_NO_CID;
		batch->commands.tokens[i] = token.token;
		batch->queues[i] = token.queue;
		worst = nvp_worse(worst, status);
		nvp_set_record(batch, i, status ? status : (int)NVMEPEER_AGAIN, worst);
	}
	return worst;
}

/*
 * Poll every @step-th command of a batch once, starting with number @index.  Of
 * consecutive commands of a queue pair only the first that has not completed is polled
 * in full.  Returns NVMEPEER_AGAIN if one has not completed.
 */
NVP_FN int nvp_set_batch_poll(const struct nvmepeer_set *set,
			      const struct nvmepeer_set_batch *batch, uint32_t index,
			      uint32_t step, int *worst)
{
	uint32_t pending = 0xffffffffu;
	int again = NVMEPEER_OK;

	for (uint32_t i = index; i < batch->commands.count; i += step) {
		uint32_t queue = batch->queues[i];
		int here = queue == pending ? NVMEPEER_AGAIN : NVMEPEER_OK, status;

		if (nvp_batch_poll_one(&set->queues[queue], &batch->commands, i, &here, &status)) {
			*worst = nvp_set_record(batch, i, status, *worst);
		} else if (here) {
			pending = queue;
			again = NVMEPEER_AGAIN;
		}
	}
	return again;
}

/*
 * Wait for every @step-th command of a batch.  Polls all of them until the limit: a
 * member that does not complete takes no time from the others.  Returns the worst status.
 */
NVP_FN int nvp_set_batch_wait(const struct nvmepeer_set *set,
			      const struct nvmepeer_set_batch *batch, uint32_t index,
			      uint32_t step, uint64_t timeout_ns)
{
	uint64_t start = nvmepeer_now_ns();
	int worst = NVMEPEER_OK;

	while (nvp_set_batch_poll(set, batch, index, step, &worst) &&
	       nvp_time_left(start, timeout_ns))
		nvp_pause(100);
	for (uint32_t i = index; i < batch->commands.count; i += step) {
		struct nvmepeer_token *token = &batch->commands.tokens[i];
		int status;

		if (token->cid == NVMEPEER_NO_CID)
			continue;
		status = nvmepeer_wait(&set->queues[batch->queues[i]], *token, NULL, 0);
		token->cid = NVMEPEER_NO_CID;
		worst = nvp_set_record(batch, i, status, worst);
	}
	return worst;
}

/**
 * nvmepeer_warp_set_submit - nvmepeer_warp_submit() to a set
 * @set: the set
 * @group: the lanes that call together
 * @transfer: the same for every lane: blocks of the set, and an offset in every buffer
 *	of the set; @buffer is not used
 * @batch: the same for every lane, with nothing in flight
 *
 * Otherwise like nvmepeer_warp_submit(), for each member: after NVMEPEER_E_FULL or
 * NVMEPEER_E_LOST of one member the commands of the others are submitted.
 */
NVP_FN int nvmepeer_warp_set_submit(const struct nvmepeer_set *set, struct nvmepeer_group group,
				    const struct nvmepeer_transfer *transfer,
				    struct nvmepeer_set_batch *batch)
{
	uint32_t count = nvmepeer_set_batch_commands(set, transfer);
	int status = nvp_transfer_check(transfer, count, batch->commands.most);
	bool fits = !status;

	nvp_group_sync(group);
	if (fits)
		status = nvp_set_batch_send(set, transfer, batch, count,
					    nvp_rank(group.mask, group.lane),
					    nvp_mask_count(group.mask));
	return nvp_batch_submitted(group, &batch->commands, fits ? count : 0, status);
}

/*
 * nvmepeer_warp_set_wait - nvmepeer_warp_wait() for a batch of a set: 0 or the worst
 * status; the status of each command is in the batch
 */
NVP_FN int nvmepeer_warp_set_wait(const struct nvmepeer_set *set, struct nvmepeer_group group,
				  struct nvmepeer_set_batch *batch, uint64_t timeout_ns)
{
	int status;

	nvp_group_sync(group);
	status = nvp_set_batch_wait(set, batch, nvp_rank(group.mask, group.lane),
				    nvp_mask_count(group.mask), timeout_ns);
	return nvp_batch_finish(group, &batch->commands, nvp_group_status(group, status));
}

/* nvmepeer_warp_set_poll - nvmepeer_warp_poll() of a batch of a set */
NVP_FN int nvmepeer_warp_set_poll(const struct nvmepeer_set *set, struct nvmepeer_group group,
				  struct nvmepeer_set_batch *batch)
{
	int again, worst = NVMEPEER_OK;

	nvp_group_sync(group);
	again = nvp_set_batch_poll(set, batch, nvp_rank(group.mask, group.lane),
				   nvp_mask_count(group.mask), &worst);
	return nvp_batch_polled(group, &batch->commands, again, worst);
}

/**
 * nvmepeer_block_set_submit - nvmepeer_warp_set_submit() by a block
 *
 * All threads of the block call together; the warps are distributed over the queue
 * pairs of each member.  Has no barrier before it submits: before a write, the threads
 * that stored the data must pass a barrier.
 */
NVP_FN int nvmepeer_block_set_submit(const struct nvmepeer_set *set,
				     const struct nvmepeer_transfer *transfer,
				     struct nvmepeer_set_batch *batch)
{
	uint32_t count = nvmepeer_set_batch_commands(set, transfer);
	int status = nvp_transfer_check(transfer, count, batch->commands.most);
	bool fits = !status;

	nvp_block_begin(&batch->commands, fits ? count : 0);
	if (fits)
		status = nvp_set_batch_send(set, transfer, batch, count, nvp_block_thread(),
					    nvp_block_threads());
	return nvp_block_status(&batch->commands, status);
}

/**
 * nvmepeer_block_set_wait - nvmepeer_warp_set_wait() by a block
 *
 * All threads of the block call together; on return each may use all statuses and data.
 */
NVP_FN int nvmepeer_block_set_wait(const struct nvmepeer_set *set,
				   struct nvmepeer_set_batch *batch, uint64_t timeout_ns)
{
	int status = nvp_set_batch_wait(set, batch, nvp_block_thread(), nvp_block_threads(),
					timeout_ns);

	return nvp_block_finish(&batch->commands, status);
}

#endif /* NVMEPEER_DEVICE_SET_BATCH_H */
