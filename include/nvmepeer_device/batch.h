/* SPDX-License-Identifier: MIT OR GPL-2.0 */
/*
 * nvmepeer_device/batch.h: transfers in two halves.  A warp or a block sends the
 * commands of a transfer and goes on; the same or another warp waits for all of
 * them later, by the one batch that names them.
 *
 * Lanes of a warp part ways without being asked to, so which of them act
 * together is not left to the moment: the calls of a warp are told, by a group
 * made once where all are together: nvmepeer_group_full() for all lanes of a
 * warp, nvmepeer_group_join() for those that are active.
 */
#ifndef NVMEPEER_DEVICE_BATCH_H
#define NVMEPEER_DEVICE_BATCH_H

/**
 * struct nvmepeer_batch - commands that are waited for together
 * @tokens: room for @most tokens
 * @most: how many commands the batch can name; nvmepeer_batch_commands() says
 *	how many a transfer needs
 * @count: how many it names now
 * @status: the first bad status seen so far
 *
 * The caller sets @tokens and @most; both the batch and its tokens lie in memory
 * that senders and waiters share: of the block, or of the device.  A batch is
 * its senders' from the beginning of a submit to its end, then its waiters'
 * until it is waited for or polled to the end; whoever hands it from one to the
 * other puts a barrier, or a release and an acquire, between.
 */
struct nvmepeer_batch {
	struct nvmepeer_token *tokens;
	uint32_t most;
	uint32_t count;
	int status;
};

/* How many commands a transfer is cut into; 0xffffffff if they are that many or more. */
NVMEPEER_FN uint32_t nvmepeer_batch_commands(const struct nvmepeer_queue *queue,
					     const struct nvmepeer_transfer *transfer)
{
	uint64_t most = nvmepeer_most_blocks(queue, transfer->buffer);
	uint64_t count = (transfer->blocks + most - 1) / most;

	return count < 0xffffffffu ? (uint32_t)count : 0xffffffffu;
}

/* Sends every @step-th command of a transfer, from the @index-th on.  First bad status. */
NVMEPEER_FN int nvmepeer_batch_send(const struct nvmepeer_queue *queue,
				    const struct nvmepeer_transfer *transfer,
				    const struct nvmepeer_batch *batch, uint32_t count,
				    uint32_t index, uint32_t step)
{
	uint32_t most = nvmepeer_most_blocks(queue, transfer->buffer);
	int first = NVMEPEER_OK;

	for (uint32_t i = index; i < count; i += step) {
		uint64_t at = (uint64_t)i * most, left = transfer->blocks - at;
		struct nvmepeer_command command = {
			transfer->opcode, (uint32_t)(left < most ? left : most),
			transfer->lba + at, transfer->buffer,
			transfer->offset + (at << queue->lba_shift), transfer->control,
		};
		struct nvmepeer_token token;
		int status = nvmepeer_submit(queue, &command, &token, queue->timeout_ns);

		if (status)
			token.cid = NVMEPEER_NO_CID;
		batch->tokens[i] = token;
		first = first ? first : status;
	}
	return first;
}

/* What is left of a limit that began at @start. */
NVMEPEER_FN uint64_t nvmepeer_time_left(uint64_t start, uint64_t timeout_ns)
{
	uint64_t gone = nvmepeer_now_ns() - start;

	return gone < timeout_ns ? timeout_ns - gone : 0;
}

/* Waits for every @step-th command of a batch, from the @index-th on.  First bad status. */
NVMEPEER_FN int nvmepeer_batch_take(const struct nvmepeer_queue *queue,
				    const struct nvmepeer_batch *batch, uint32_t index,
				    uint32_t step, uint64_t timeout_ns)
{
	uint64_t start = nvmepeer_now_ns();
	int first = NVMEPEER_OK;

	for (uint32_t i = index; i < batch->count; i += step) {
		int status;

		if (batch->tokens[i].cid == NVMEPEER_NO_CID)
			continue;
		status = nvmepeer_wait(queue, batch->tokens[i], NULL,
				       nvmepeer_time_left(start, timeout_ns));
		batch->tokens[i].cid = NVMEPEER_NO_CID;
		first = first ? first : status;
	}
	return first;
}

/* The first bad status among the lanes of a group, or 0.  Collective; orders memory. */
NVMEPEER_FN int nvmepeer_group_status(struct nvmepeer_group group, int status)
{
	nvmepeer_mask bad;

	nvmepeer_group_sync(group);
	bad = nvmepeer_group_ballot(group, status != NVMEPEER_OK);
	if (!bad)
		return NVMEPEER_OK;
	return (int)nvmepeer_group_copy32(group, (uint32_t)status, nvmepeer_mask_first(bad));
}

/* The batch has been waited for: its status, and it may be sent again.  Collective. */
NVMEPEER_FN int nvmepeer_batch_finish(struct nvmepeer_group group, struct nvmepeer_batch *batch,
				      int status)
{
	if (batch->status)
		status = batch->status;
	nvmepeer_group_sync(group);
	if (group.lane == group.leader) {
		batch->count = 0;
		batch->status = NVMEPEER_OK;
	}
	nvmepeer_group_sync(group);
	return status;
}

/**
 * nvmepeer_warp_submit - send the commands of a transfer by a warp
 * @queue: the queue pair
 * @group: the lanes that call together
 * @transfer: the same for every lane; its buffer must stay as it is until the
 *	batch has been waited for
 * @batch: the same for every lane, with nothing in flight
 *
 * Waits for room in the queue, but for no completion.  Returns to all lanes 0,
 * NVMEPEER_E_TOO_LARGE if the batch cannot name so many commands (then none was
 * sent), or the status of a command that was not sent.  Others may have been
 * sent: the batch is waited for in any case.  Results are kept for
 * nvmepeer_geometry.cids commands of a queue pair.
 */
NVMEPEER_FN int nvmepeer_warp_submit(const struct nvmepeer_queue *queue,
				     struct nvmepeer_group group,
				     const struct nvmepeer_transfer *transfer,
				     struct nvmepeer_batch *batch)
{
	uint32_t count = nvmepeer_batch_commands(queue, transfer);
	bool fits = count <= batch->most;
	int status = NVMEPEER_E_TOO_LARGE;

	nvmepeer_group_sync(group);
	if (fits)
		status = nvmepeer_batch_send(queue, transfer, batch, count,
					     nvmepeer_rank(group.mask, group.lane),
					     nvmepeer_mask_count(group.mask));
	status = nvmepeer_group_status(group, status);
	if (group.lane == group.leader) {
		batch->count = fits ? count : 0;
		batch->status = status;
	}
	nvmepeer_group_sync(group);
	return status;
}

/**
 * nvmepeer_warp_wait - wait for a batch by a warp
 * @queue: the queue pair that it was sent to
 * @group: the lanes that call together
 * @batch: the same for every lane, sent by whomever
 * @timeout_ns: how long to wait for all of it
 *
 * Returns to all lanes 0 or the first bad status, of sending or of a command.
 * When it returns 0 each of them may use all the data, and so may whoever they
 * meet at a barrier.
 */
NVMEPEER_FN int nvmepeer_warp_wait(const struct nvmepeer_queue *queue,
				   struct nvmepeer_group group, struct nvmepeer_batch *batch,
				   uint64_t timeout_ns)
{
	int status;

	nvmepeer_group_sync(group);
	status = nvmepeer_batch_take(queue, batch, nvmepeer_rank(group.mask, group.lane),
				     nvmepeer_mask_count(group.mask), timeout_ns);
	return nvmepeer_batch_finish(group, batch, nvmepeer_group_status(group, status));
}

/* Looks once for this lane's share of a batch.  NVMEPEER_AGAIN if some is missing. */
NVMEPEER_FN int nvmepeer_batch_look(const struct nvmepeer_queue *queue,
				    struct nvmepeer_group group,
				    const struct nvmepeer_batch *batch, int *first)
{
	uint32_t step = nvmepeer_mask_count(group.mask);
	int again = NVMEPEER_OK;

	for (uint32_t i = nvmepeer_rank(group.mask, group.lane); i < batch->count; i += step) {
		int status;

		if (batch->tokens[i].cid == NVMEPEER_NO_CID)
			continue;
		status = nvmepeer_poll(queue, batch->tokens[i], NULL);
		if (status == NVMEPEER_AGAIN) {
			again = status;
			continue;
		}
		batch->tokens[i].cid = NVMEPEER_NO_CID;
		*first = *first ? *first : status;
	}
	return again;
}

/**
 * nvmepeer_warp_poll - look once whether a batch has completed
 *
 * As nvmepeer_warp_wait(), but returns NVMEPEER_AGAIN at once if any of it has
 * not; then the batch stays good.  Does not look at the status page: see
 * nvmepeer_check().
 */
NVMEPEER_FN int nvmepeer_warp_poll(const struct nvmepeer_queue *queue,
				   struct nvmepeer_group group, struct nvmepeer_batch *batch)
{
	int again, first = NVMEPEER_OK;

	nvmepeer_group_sync(group);
	again = nvmepeer_batch_look(queue, group, batch, &first);
	again = nvmepeer_group_status(group, again);
	first = nvmepeer_group_status(group, first);
	if (!again)
		return nvmepeer_batch_finish(group, batch, first);
	if (group.lane == group.leader && first && !batch->status)
		batch->status = first;
	nvmepeer_group_sync(group);
	return again;
}

/* The worst status of a block's threads, through the batch.  Collective; a barrier. */
NVMEPEER_FN int nvmepeer_block_status(struct nvmepeer_batch *batch, int status)
{
	nvmepeer_block_sync();
	if (status)
		nvmepeer_block_max((uint32_t *)&batch->status, (uint32_t)status);
	nvmepeer_block_sync();
	status = batch->status;
	nvmepeer_block_sync();
	return status;
}

/**
 * nvmepeer_block_submit - nvmepeer_warp_submit() by a block
 *
 * All threads of the block call together.
 */
NVMEPEER_FN int nvmepeer_block_submit(const struct nvmepeer_queue *queue,
				      const struct nvmepeer_transfer *transfer,
				      struct nvmepeer_batch *batch)
{
	uint32_t count = nvmepeer_batch_commands(queue, transfer);
	bool fits = count <= batch->most;
	int status = NVMEPEER_E_TOO_LARGE;

	if (!nvmepeer_block_thread()) {
		batch->count = fits ? count : 0;
		batch->status = NVMEPEER_OK;
	}
	if (fits)
		status = nvmepeer_batch_send(queue, transfer, batch, count,
					     nvmepeer_block_thread(), nvmepeer_block_threads());
	return nvmepeer_block_status(batch, status);
}

/**
 * nvmepeer_block_wait - nvmepeer_warp_wait() by a block
 *
 * All threads of the block call together; on return each may use all the data.
 */
NVMEPEER_FN int nvmepeer_block_wait(const struct nvmepeer_queue *queue,
				    struct nvmepeer_batch *batch, uint64_t timeout_ns)
{
	int status = nvmepeer_batch_take(queue, batch, nvmepeer_block_thread(),
					 nvmepeer_block_threads(), timeout_ns);

	status = nvmepeer_block_status(batch, status);
	if (!nvmepeer_block_thread()) {
		batch->count = 0;
		batch->status = NVMEPEER_OK;
	}
	nvmepeer_block_sync();
	return status;
}

#endif /* NVMEPEER_DEVICE_BATCH_H */
