/* SPDX-License-Identifier: MIT OR GPL-2.0 */
/*
 * nvmepeer_device/batch.h: asynchronous transfers.  A warp or a block submits
 * the commands of a transfer and continues; the same or another warp waits for
 * all of them later, by their batch.
 *
 * Lanes of a warp may diverge at any time, so the calls of a warp do not depend
 * on which lanes happen to be active: they take a group that was made once,
 * where the lanes were together.  nvmepeer_group_full() is all lanes of a warp,
 * nvmepeer_group_join() the active ones.
 */
#ifndef NVMEPEER_DEVICE_BATCH_H
#define NVMEPEER_DEVICE_BATCH_H

#include "block.h"
#include "calls.h"
#include "command.h"
#include "compiler.h"
#include "nvme.h"
#include "platform.h"
#include "queue.h"
#include "wait.h"

/**
 * struct nvmepeer_batch - commands that are waited for together
 * @tokens: array of @most tokens
 * @most: maximum number of commands; nvmepeer_batch_commands() returns how many
 *	a transfer needs
 * @count: number of commands now
 * @status: the worst status so far
 *
 * The caller sets @tokens and @most.  The batch and its tokens lie in memory
 * that submitters and waiters share: of the block, or of the device.  The
 * submitters own a batch from the beginning of a submit to its end; then the
 * waiters own it until they have waited for it or polled it to the end.  A
 * transfer of ownership needs a barrier, or a release and an acquire.
 */
struct nvmepeer_batch {
	struct nvmepeer_token *tokens;
	uint32_t most;
	uint32_t count;
	int status;
};

/*
 * Number of commands that a transfer is split into; 0xffffffff if there are
 * that many or more.
 */
NVP_FN uint32_t nvmepeer_batch_commands(const struct nvmepeer_queue *queue,
					const struct nvmepeer_transfer *transfer)
{
	uint64_t most = nvp_max_blocks(queue, transfer->buffer);
	uint64_t count = (transfer->blocks + most - 1) / most;

	return count < 0xffffffffu ? (uint32_t)count : 0xffffffffu;
}

/*
 * Submit every @step-th command of a transfer, starting with number @index.
 * Ends when the queue stays full or is lost.  Returns the worst status.
 */
NVP_FN int nvp_batch_send(const struct nvmepeer_queue *queue,
			  const struct nvmepeer_transfer *transfer,
			  const struct nvmepeer_batch *batch, uint32_t count,
			  uint32_t index, uint32_t step)
{
	uint32_t most = nvp_max_blocks(queue, transfer->buffer);
	int worst = NVMEPEER_OK, status = NVMEPEER_OK;

	for (uint32_t i = index; i < count; i += step) {
		uint64_t at = (uint64_t)i * most, left = transfer->blocks - at;
		struct nvmepeer_command command = {
			transfer->opcode, (uint32_t)(left < most ? left : most),
			transfer->lba + at, transfer->buffer,
			transfer->offset + (at << queue->lba_shift), transfer->control,
		};
		struct nvmepeer_token token = { NVMEPEER_NO_CID, 0 };

		if (!nvp_ends(status))
			status = nvmepeer_submit(queue, &command, &token, queue->timeout_ns);
		if (status)
			token.cid = NVMEPEER_NO_CID;
		batch->tokens[i] = token;
		worst = nvp_worse(worst, status);
	}
	return worst;
}

/* Time left of a timeout that began at @start. */
NVP_FN uint64_t nvp_time_left(uint64_t start, uint64_t timeout_ns)
{
	uint64_t gone = nvmepeer_now_ns() - start;

	return gone < timeout_ns ? timeout_ns - gone : 0;
}

/*
 * Pause for @ns after poll number @polls of a word in memory.  True if the timeout, which
 * began at @start, has expired: one more poll is the last.
 */
NVP_FN bool nvp_word_expired(uint64_t start, uint64_t timeout_ns, uint32_t polls, uint32_t ns)
{
	bool expired = polls % 64 == 0 && !nvp_time_left(start, timeout_ns);

	if (!expired)
		nvp_pause(ns);
	return expired;
}

/*
 * Wait for every @step-th command of a batch, starting with number @index.
 * Returns the worst status.
 */
NVP_FN int nvp_batch_wait(const struct nvmepeer_queue *queue,
			  const struct nvmepeer_batch *batch, uint32_t index,
			  uint32_t step, uint64_t timeout_ns)
{
	uint64_t start = nvmepeer_now_ns();
	int worst = NVMEPEER_OK;

	for (uint32_t i = index; i < batch->count; i += step) {
		int status;

		if (batch->tokens[i].cid == NVMEPEER_NO_CID)
			continue;
		status = nvmepeer_wait(queue, batch->tokens[i], NULL,
				       nvp_time_left(start, timeout_ns));
		batch->tokens[i].cid = NVMEPEER_NO_CID;
		worst = nvp_worse(worst, status);
	}
	return worst;
}

/*
 * The batch has been submitted, its first @count tokens, with @status in this lane:
 * returns the worst of all lanes.  Collective.
 */
NVP_FN int nvp_batch_submitted(struct nvmepeer_group group, struct nvmepeer_batch *batch,
			       uint32_t count, int status)
{
	status = nvp_group_status(group, status);
	if (group.lane == group.leader) {
		batch->count = count;
		batch->status = status;
	}
	nvp_group_sync(group);
	return status;
}

/*
 * The batch has completed: returns its status and makes it reusable.
 * Collective.
 */
NVP_FN int nvp_batch_finish(struct nvmepeer_group group, struct nvmepeer_batch *batch,
			    int status)
{
	status = nvp_worse(batch->status, status);
	nvp_group_sync(group);
	if (group.lane == group.leader) {
		batch->count = 0;
		batch->status = NVMEPEER_OK;
	}
	nvp_group_sync(group);
	return status;
}

/**
 * nvmepeer_warp_submit - submit the commands of a transfer by a warp
 * @queue: the queue pair
 * @group: the lanes that call together
 * @transfer: the same for every lane.  Its struct nvmepeer_buffer and a table of
 *	DMA addresses are read before the return; the data memory belongs to the
 *	controller until the batch has been waited for
 * @batch: the same for every lane, with nothing in flight
 *
 * Waits for room in the queue, at most nvmepeer_geometry.timeout_ns for each
 * command that then is submitted, but for no completion; after
 * NVMEPEER_E_FULL the rest is not submitted.  Returns to all lanes 0,
 * NVMEPEER_E_TOO_LARGE if the batch has too few tokens, NVMEPEER_E_OPCODE for a flush
 * (nothing is submitted then), or the worst status of a command that was not submitted. Other commands may
 * have been submitted, so the batch must be waited for in any case.  Results
 * are kept for nvmepeer_geometry.cids commands of a queue pair.
 */
NVP_FN int nvmepeer_warp_submit(const struct nvmepeer_queue *queue,
				struct nvmepeer_group group,
				const struct nvmepeer_transfer *transfer,
				struct nvmepeer_batch *batch)
{
	uint32_t count = nvmepeer_batch_commands(queue, transfer);
	int status = nvp_transfer_check(transfer, count, batch->most);
	bool fits = !status;

	nvp_group_sync(group);
	if (fits)
		status = nvp_batch_send(queue, transfer, batch, count,
					nvp_rank(group.mask, group.lane),
					nvp_mask_count(group.mask));
	return nvp_batch_submitted(group, batch, fits ? count : 0, status);
}

/**
 * nvmepeer_warp_wait - wait for a batch by a warp
 * @queue: the queue pair that it was submitted to
 * @group: the lanes that call together
 * @batch: the same for every lane; any threads may have submitted it.  Not of a
 *	list: nvmepeer_warp_list_wait()
 * @timeout_ns: how long to wait for all of it
 *
 * Returns to all lanes 0 or the worst status, of a submission or of a command.
 * After a return of 0 each lane may use all the data, and so may threads that pass
 * a barrier with them.
 */
NVP_FN int nvmepeer_warp_wait(const struct nvmepeer_queue *queue,
			      struct nvmepeer_group group, struct nvmepeer_batch *batch,
			      uint64_t timeout_ns)
{
	int status;

	nvp_group_sync(group);
	status = nvp_batch_wait(queue, batch, nvp_rank(group.mask, group.lane),
				nvp_mask_count(group.mask), timeout_ns);
	return nvp_batch_finish(group, batch, nvp_group_status(group, status));
}

/* Has the result of a command been delivered?  Costs a load, reaps nothing. */
NVP_FN bool nvp_token_done(const struct nvmepeer_queue *queue, struct nvmepeer_token token)
{
	return token.cid / 32 > queue->cid_words_mask ||
	       (nvp_load64(&queue->results[token.cid]) & NVP_RESULT_DONE);
}

/*
 * Poll a command of a batch once.  True if it ends now, with its @status; else
 * @again becomes NVMEPEER_AGAIN if it has not completed.  The first of a lane
 * that has not is polled in full, which reaps; of the ones behind it only the
 * result word is read, since a full poll costs three atomics.  A token that is
 * invalid gets its full poll when it is the first.
 */
NVP_FN bool nvp_batch_poll_one(const struct nvmepeer_queue *queue,
			       const struct nvmepeer_batch *batch, uint32_t index,
			       int *again, int *status)
{
	if (batch->tokens[index].cid == NVMEPEER_NO_CID ||
	    (*again && !nvp_token_done(queue, batch->tokens[index])))
		return false;
	*status = nvmepeer_poll(queue, batch->tokens[index], NULL);
	if (*status == NVMEPEER_AGAIN) {
		*again = NVMEPEER_AGAIN;
		return false;
	}
	batch->tokens[index].cid = NVMEPEER_NO_CID;
	return true;
}

/*
 * Poll this lane's commands of a batch once.  Returns NVMEPEER_AGAIN if one has
 * not completed.
 */
NVP_FN int nvp_batch_poll(const struct nvmepeer_queue *queue,
			  struct nvmepeer_group group,
			  const struct nvmepeer_batch *batch, int *worst)
{
	uint32_t step = nvp_mask_count(group.mask);
	int again = NVMEPEER_OK;

	for (uint32_t i = nvp_rank(group.mask, group.lane); i < batch->count; i += step) {
		int status;

		if (!nvp_batch_poll_one(queue, batch, i, &again, &status))
			continue;
		*worst = nvp_worse(*worst, status);
	}
	return again;
}

/*
 * After a poll of a batch by each lane: returns NVMEPEER_AGAIN, or the status of the
 * batch, which has ended then.  Collective.
 */
NVP_FN int nvp_batch_polled(struct nvmepeer_group group, struct nvmepeer_batch *batch, int again,
			    int worst)
{
	again = nvp_group_status(group, again);
	worst = nvp_group_status(group, worst);
	if (!again)
		return nvp_batch_finish(group, batch, worst);
	if (group.lane == group.leader && worst)
		batch->status = nvp_worse(batch->status, worst);
	nvp_group_sync(group);
	return again;
}

/**
 * nvmepeer_warp_poll - check once whether a batch has completed
 *
 * Like nvmepeer_warp_wait(), but returns NVMEPEER_AGAIN at once if a command
 * has not completed; the batch then stays valid.  Of all polls of a queue pair
 * that find nothing, every 256th checks the status page; nvmepeer_check()
 * always does.
 */
NVP_FN int nvmepeer_warp_poll(const struct nvmepeer_queue *queue,
			      struct nvmepeer_group group, struct nvmepeer_batch *batch)
{
	int again, worst = NVMEPEER_OK;

	nvp_group_sync(group);
	again = nvp_batch_poll(queue, group, batch, &worst);
	return nvp_batch_polled(group, batch, again, worst);
}

/*
 * The worst status of a block's threads, by way of the batch.  Collective; a
 * barrier.
 */
NVP_FN int nvp_block_status(struct nvmepeer_batch *batch, int status)
{
	nvp_block_sync();
	return nvp_block_worst((uint32_t *)&batch->status, status);
}

/* The batch of a block has @count commands from now on. */
NVP_FN void nvp_block_begin(struct nvmepeer_batch *batch, uint32_t count)
{
	if (nvp_block_thread())
		return;
	batch->count = count;
	batch->status = NVMEPEER_OK;
}

/* All of a block's commands have been waited for: the batch may be used again. */
NVP_FN int nvp_block_finish(struct nvmepeer_batch *batch, int status)
{
	status = nvp_block_status(batch, status);
	nvp_block_begin(batch, 0);
	nvp_block_sync();
	return status;
}

/**
 * nvmepeer_block_submit - nvmepeer_warp_submit() by a block
 *
 * All threads of the block call together.  Has no barrier before it submits:
 * before a write, the threads that stored the data must pass a barrier.
 * Returns the worst status of the threads.
 */
NVP_FN int nvmepeer_block_submit(const struct nvmepeer_queue *queue,
				 const struct nvmepeer_transfer *transfer,
				 struct nvmepeer_batch *batch)
{
	uint32_t count = nvmepeer_batch_commands(queue, transfer);
	int status = nvp_transfer_check(transfer, count, batch->most);
	bool fits = !status;

	nvp_block_begin(batch, fits ? count : 0);
	if (fits)
		status = nvp_batch_send(queue, transfer, batch, count,
					nvp_block_thread(), nvp_block_threads());
	return nvp_block_status(batch, status);
}

/**
 * nvmepeer_block_wait - nvmepeer_warp_wait() by a block
 *
 * All threads of the block call together; on return each may use all the data.
 * Returns 0 or the worst status, of a submission or of a command.
 */
NVP_FN int nvmepeer_block_wait(const struct nvmepeer_queue *queue,
			       struct nvmepeer_batch *batch, uint64_t timeout_ns)
{
	int status = nvp_batch_wait(queue, batch, nvp_block_thread(),
				    nvp_block_threads(), timeout_ns);

	return nvp_block_finish(batch, status);
}

#endif /* NVMEPEER_DEVICE_BATCH_H */
