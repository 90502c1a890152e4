/* SPDX-License-Identifier: MIT OR GPL-2.0 */
/*
 * nvmepeer_device/command.h: the calls.  Each may be made by any thread at any
 * time; lanes of a warp that happen to call together share one trip to the
 * queue.
 */
#ifndef NVMEPEER_DEVICE_COMMAND_H
#define NVMEPEER_DEVICE_COMMAND_H

/**
 * struct nvmepeer_command - one command on logical blocks
 * @opcode: NVMEPEER_OP_*
 * @blocks: logical blocks, 1 to 65536; 0 for flush
 * @lba: first logical block
 * @buffer: memory of the data; not used by flush and write zeroes
 * @offset: byte offset of the data in @buffer
 * @control: NVMEPEER_CONTROL_*
 */
struct nvmepeer_command {
	uint32_t opcode;
	uint32_t blocks;
	uint64_t lba;
	const struct nvmepeer_buffer *buffer;
	uint64_t offset;
	uint32_t control;
};

#define NVMEPEER_NO_CID 0xffffffffu

/* Names a command in flight until its result is taken. */
struct nvmepeer_token {
	uint32_t cid;
	uint32_t ticket;
};

/* DMA address of byte @offset. */
NVMEPEER_FN uint64_t nvmepeer_dma(const struct nvmepeer_queue *queue,
				  const struct nvmepeer_buffer *buffer, uint64_t offset)
{
	const uint64_t *pages = (const uint64_t *)(uintptr_t)buffer->pages;
	uint64_t in_page = offset & (((uint64_t)1 << queue->page_shift) - 1);

	return pages ? pages[offset >> queue->page_shift] + in_page : buffer->dma + offset;
}

/* Most bytes of data whose PRP list fits into the list of a cid. */
NVMEPEER_FN bool nvmepeer_list_fits(const struct nvmepeer_queue *queue, uint32_t pages)
{
	uint32_t per_page = (1u << queue->page_shift) / 8;

	if (queue->list_bytes <= per_page * 8)
		return pages <= queue->list_bytes / 8;
	/* All list pages but the last give one entry to the next list page. */
	return pages <= (queue->list_bytes >> queue->page_shift) * (per_page - 1) + 1;
}

/* Is there a PRP list for the command, if it needs one, and is it long enough? */
NVMEPEER_FN int nvmepeer_list_check(const struct nvmepeer_queue *queue,
				    const struct nvmepeer_command *command, uint64_t bytes)
{
	uint64_t page = (uint64_t)1 << queue->page_shift;
	uint64_t first = nvmepeer_dma(queue, command->buffer, command->offset) & (page - 1);
	uint64_t pages = (first + bytes + page - 1) >> queue->page_shift;

	if (pages <= 2)
		return NVMEPEER_OK;
	if (!queue->list_area)
		return NVMEPEER_E_NO_LIST;
	return nvmepeer_list_fits(queue, (uint32_t)pages - 1) ? NVMEPEER_OK : NVMEPEER_E_TOO_LARGE;
}

/* Checks a command against limits.  Bytes of data in @bytes. */
NVMEPEER_FN int nvmepeer_command_check(const struct nvmepeer_queue *queue,
				       const struct nvmepeer_command *command, uint64_t *bytes)
{
	*bytes = 0;
	if (command->opcode == NVMEPEER_OP_FLUSH)
		return NVMEPEER_OK;
	if (!command->blocks || command->blocks > 65536)
		return NVMEPEER_E_TOO_LARGE;
	if (command->opcode == NVMEPEER_OP_WRITE_ZEROES)
		return NVMEPEER_OK;
	*bytes = (uint64_t)command->blocks << queue->lba_shift;
	if (*bytes > queue->max_transfer)
		return NVMEPEER_E_TOO_LARGE;
	if (*bytes > command->buffer->length || command->offset > command->buffer->length - *bytes)
		return NVMEPEER_E_RANGE;
	if ((command->offset | command->buffer->dma) & 3)
		return NVMEPEER_E_ALIGN;
	if (*bytes <= (uint64_t)1 << queue->page_shift)
		return NVMEPEER_OK;
	return nvmepeer_list_check(queue, command, *bytes);
}

/* Writes the PRP list of @cid; returns its DMA address. */
NVMEPEER_SLOW_FN uint64_t nvmepeer_build_list(const struct nvmepeer_queue *queue, uint32_t cid,
					      const struct nvmepeer_buffer *buffer,
					      uint64_t offset, uint64_t end)
{
	uint64_t page = (uint64_t)1 << queue->page_shift;
	uint64_t start = (uint64_t)cid * queue->list_bytes, at = start;

	for (; offset < end; offset += page, at += 8) {
		if ((at & (page - 1)) == page - 8 && end - offset > page) {
			nvmepeer_list_store(queue->list_area + at,
					    nvmepeer_dma(queue, &queue->list_memory, at + 8));
			at += 8;
		}
		nvmepeer_list_store(queue->list_area + at, nvmepeer_dma(queue, buffer, offset));
	}
	return nvmepeer_dma(queue, &queue->list_memory, start);
}

/* Data pointer of a command (base specification 4.1.1: PRP entries). */
NVMEPEER_FN void nvmepeer_set_prps(const struct nvmepeer_queue *queue, uint32_t cid,
				   const struct nvmepeer_command *command, uint64_t bytes,
				   struct nvmepeer_sqe *entry)
{
	uint64_t page = (uint64_t)1 << queue->page_shift;
	uint64_t first = nvmepeer_dma(queue, command->buffer, command->offset), second = 0;
	uint64_t in_first = page - (first & (page - 1));

	if (bytes > in_first + page)
		second = nvmepeer_build_list(queue, cid, command->buffer,
					     command->offset + in_first, command->offset + bytes);
	else if (bytes > in_first)
		second = nvmepeer_dma(queue, command->buffer, command->offset + in_first);
	entry->dword[6] = (uint32_t)first;
	entry->dword[7] = (uint32_t)(first >> 32);
	entry->dword[8] = (uint32_t)second;
	entry->dword[9] = (uint32_t)(second >> 32);
}

NVMEPEER_FN void nvmepeer_encode(const struct nvmepeer_queue *queue, uint32_t cid,
				 const struct nvmepeer_command *command, uint64_t bytes,
				 struct nvmepeer_sqe *entry)
{
	for (int i = 0; i < 16; i++)
		entry->dword[i] = 0;
	entry->dword[0] = command->opcode | cid << 16;
	entry->dword[1] = queue->nsid;
	if (bytes)
		nvmepeer_set_prps(queue, cid, command, bytes, entry);
	if (!command->blocks)
		return;
	entry->dword[10] = (uint32_t)command->lba;
	entry->dword[11] = (uint32_t)(command->lba >> 32);
	entry->dword[12] = (command->blocks - 1) | command->control;
}

/* What a lane wants to send: a command to encode, or an entry as it is. */
struct nvmepeer_request {
	const struct nvmepeer_command *command;
	const struct nvmepeer_sqe *entry;
	uint64_t bytes;
};

NVMEPEER_FN void nvmepeer_make_entry(const struct nvmepeer_queue *queue, uint32_t cid,
				     const struct nvmepeer_request *request,
				     struct nvmepeer_sqe *entry)
{
	if (!request->entry) {
		nvmepeer_encode(queue, cid, request->command, request->bytes, entry);
		return;
	}
	*entry = *request->entry;
	entry->dword[0] = (entry->dword[0] & 0xffff) | cid << 16;
}

/*
 * One round of sending: as many of the @pending lanes as there is room for,
 * lowest first.  Collective.  Returns the lanes that are still pending.
 */
NVMEPEER_FN nvmepeer_mask nvmepeer_send_round(const struct nvmepeer_queue *queue,
					      struct nvmepeer_group group,
					      nvmepeer_mask pending,
					      const struct nvmepeer_request *request,
					      struct nvmepeer_token *token)
{
	uint32_t count = nvmepeer_reserve(queue, group, pending, &token->cid);
	uint32_t rank = nvmepeer_rank(pending, group.lane);
	bool sends = (pending >> group.lane & 1) && rank < count;
	struct nvmepeer_sqe entry;
	uint32_t ticket;

	if (!count)
		return pending;
	ticket = nvmepeer_take_slots(queue, group, count) + rank;
	if (sends) {
		token->ticket = ticket;
		nvmepeer_make_entry(queue, token->cid, request, &entry);
		nvmepeer_fence_claimed();
		nvmepeer_store64(&queue->results[token->cid], 0);
	}
	if (NVMEPEER_LANES >= 4 && count == NVMEPEER_LANES &&
	    (queue->flags & NVMEPEER_SQ_REMOTE))
		nvmepeer_write_turned(queue, group.mask, group.lane, ticket, &entry);
	else if (sends)
		nvmepeer_write_entry(queue, ticket, &entry);
	nvmepeer_publish(queue, group, count);
	return nvmepeer_lanes_ballot(group.mask, (pending >> group.lane & 1) && !sends);
}

/* The queue is full: takes completions, which makes room, until some is there. */
NVMEPEER_FN int nvmepeer_wait_for_room(const struct nvmepeer_queue *queue,
				       struct nvmepeer_group group, uint32_t *head,
				       struct nvmepeer_deadline *deadline)
{
	uint64_t none = 0;
	int error = 0;

	do {
		if (!nvmepeer_take(queue, group, false, NVMEPEER_NO_CID, &none, head))
			error = nvmepeer_group_deadline(queue, group, deadline,
							queue->sq_mask);
	} while (!error && nvmepeer_lanes_copy32(group.mask, (int32_t)
				nvmepeer_load32(&queue->state->credits) <= 0, group.leader));
	return error;
}

/*
 * Sends the commands of the lanes that @sends.  Collective.  Returns each
 * lane's own status.
 */
NVMEPEER_FN int nvmepeer_send_group(const struct nvmepeer_queue *queue,
				    struct nvmepeer_group group, bool sends,
				    const struct nvmepeer_request *request,
				    struct nvmepeer_token *token, uint32_t *head,
				    struct nvmepeer_deadline *deadline)
{
	nvmepeer_mask pending = nvmepeer_lanes_ballot(group.mask, sends);
	int error = 0;

	token->cid = NVMEPEER_NO_CID;
	token->ticket = 0;
	while (pending && !error) {
		pending = nvmepeer_send_round(queue, group, pending, request, token);
		if (pending)
			error = nvmepeer_wait_for_room(queue, group, head, deadline);
	}
	if (pending >> group.lane & 1)
		return error == NVMEPEER_E_TIMEOUT ? NVMEPEER_E_FULL : error;
	return NVMEPEER_OK;
}

/* The head of the completion ring, as the group's first guess.  Collective. */
NVMEPEER_FN uint32_t nvmepeer_guess_head(const struct nvmepeer_queue *queue,
					 struct nvmepeer_group group)
{
	return nvmepeer_lanes_copy32(group.mask, nvmepeer_load32(&queue->state->head),
				     group.leader);
}

/**
 * nvmepeer_submit - send one command and do not wait for it
 * @queue: the queue pair
 * @command: what to do; its buffer must stay as it is until the result is taken
 * @token: out: names the command
 * @timeout_ns: how long to wait for room in the queue
 *
 * The command is on its way when the call returns: no flush is needed.
 * Returns 0, NVMEPEER_E_FULL, _E_LOST, _E_RANGE, _E_TOO_LARGE, _E_ALIGN or
 * _E_NO_LIST.  A token must be given to nvmepeer_wait(), or to nvmepeer_poll()
 * until that returns something else than NVMEPEER_AGAIN: results are kept for
 * nvmepeer_geometry.cids commands.
 */
NVMEPEER_FN int nvmepeer_submit(const struct nvmepeer_queue *queue,
				const struct nvmepeer_command *command,
				struct nvmepeer_token *token, uint64_t timeout_ns)
{
	struct nvmepeer_group group = nvmepeer_group_join(queue);
	struct nvmepeer_deadline deadline = nvmepeer_deadline_after(timeout_ns);
	struct nvmepeer_request request = { command, NULL, 0 };
	uint32_t head = nvmepeer_guess_head(queue, group);
	int bad = nvmepeer_command_check(queue, command, &request.bytes);
	int status = nvmepeer_send_group(queue, group, !bad, &request, token, &head, &deadline);

	return bad ? bad : status;
}

/* nvmepeer_submit_raw - as nvmepeer_submit(), with an entry made by the caller; its cid is set. */
NVMEPEER_FN int nvmepeer_submit_raw(const struct nvmepeer_queue *queue,
				    const struct nvmepeer_sqe *entry,
				    struct nvmepeer_token *token, uint64_t timeout_ns)
{
	struct nvmepeer_group group = nvmepeer_group_join(queue);
	struct nvmepeer_deadline deadline = nvmepeer_deadline_after(timeout_ns);
	struct nvmepeer_request request = { NULL, entry, 0 };
	uint32_t head = nvmepeer_guess_head(queue, group);

	return nvmepeer_send_group(queue, group, true, &request, token, &head, &deadline);
}

/**
 * nvmepeer_wait - wait for a command
 * @queue: the queue pair that it was sent to
 * @token: from nvmepeer_submit(); spent when the call returns
 * @result: out: dword 0 of the completion entry; may be NULL
 * @timeout_ns: how long to wait
 *
 * Returns 0, the NVMe status, NVMEPEER_E_TIMEOUT, _E_LOST or _E_TOKEN.  Data
 * read by the command may be read by the calling thread when it returns 0.
 */
NVMEPEER_FN int nvmepeer_wait(const struct nvmepeer_queue *queue, struct nvmepeer_token token,
			      uint32_t *result, uint64_t timeout_ns)
{
	struct nvmepeer_group group = nvmepeer_group_join(queue);
	struct nvmepeer_deadline deadline = nvmepeer_deadline_after(timeout_ns);
	bool good = token.cid / 32 <= queue->cid_words_mask;
	struct nvmepeer_waiting waiting = { good, false, token.cid, token.ticket, 0 };
	int status = nvmepeer_wait_group(queue, group, &waiting,
					 nvmepeer_guess_head(queue, group), &deadline);

	if (!good)
		return NVMEPEER_E_TOKEN;
	if (result)
		*result = (uint32_t)(waiting.result >> 32);
	return status;
}

/**
 * nvmepeer_poll - look once whether a command has completed
 *
 * As nvmepeer_wait(), but returns NVMEPEER_AGAIN at once if it has not; then
 * the token stays good.
 */
NVMEPEER_FN int nvmepeer_poll(const struct nvmepeer_queue *queue, struct nvmepeer_token token,
			      uint32_t *result)
{
	struct nvmepeer_group group = nvmepeer_group_join(queue);
	bool good = token.cid / 32 <= queue->cid_words_mask;
	struct nvmepeer_waiting waiting = { good, false, token.cid, token.ticket, 0 };
	uint32_t head = nvmepeer_guess_head(queue, group);

	nvmepeer_look(queue, group, &waiting, &head);
	nvmepeer_retire(queue, group, &waiting, good && !waiting.waits);
	if (!good)
		return NVMEPEER_E_TOKEN;
	if (waiting.waits)
		return nvmepeer_load32(&queue->state->lost) ? NVMEPEER_E_LOST : NVMEPEER_AGAIN;
	if (result)
		*result = (uint32_t)(waiting.result >> 32);
	return (int)(waiting.result & 0x7fff);
}

/* Sends a command and waits for it. */
NVMEPEER_FN int nvmepeer_execute(const struct nvmepeer_queue *queue,
				 const struct nvmepeer_command *command,
				 uint32_t *result, uint64_t timeout_ns)
{
	struct nvmepeer_group group = nvmepeer_group_join(queue);
	struct nvmepeer_deadline deadline = nvmepeer_deadline_after(timeout_ns);
	struct nvmepeer_request request = { command, NULL, 0 };
	struct nvmepeer_waiting waiting = { false, false, 0, 0, 0 };
	uint32_t head = nvmepeer_guess_head(queue, group);
	int bad = nvmepeer_command_check(queue, command, &request.bytes);
	struct nvmepeer_token token;
	int status = nvmepeer_send_group(queue, group, !bad, &request, &token, &head, &deadline);

	bad = bad ? bad : status;
	waiting.waits = !bad;
	waiting.cid = token.cid;
	waiting.ticket = token.ticket;
	status = nvmepeer_wait_group(queue, group, &waiting, head, &deadline);
	if (result)
		*result = (uint32_t)(waiting.result >> 32);
	return bad ? bad : status;
}

/**
 * nvmepeer_read - read logical blocks
 * @queue: the queue pair
 * @buffer: where the data goes
 * @offset: byte offset in @buffer
 * @lba: first logical block
 * @blocks: how many
 *
 * Waits for the completion, at most nvmepeer_geometry.timeout_ns.  Returns 0,
 * the NVMe status or a negative enum nvmepeer_error.
 */
NVMEPEER_FN int nvmepeer_read(const struct nvmepeer_queue *queue,
			      const struct nvmepeer_buffer *buffer, uint64_t offset,
			      uint64_t lba, uint32_t blocks)
{
	struct nvmepeer_command command = { NVMEPEER_OP_READ, blocks, lba, buffer, offset, 0 };

	return nvmepeer_execute(queue, &command, NULL, queue->timeout_ns);
}

/* nvmepeer_write - write logical blocks; as nvmepeer_read(). */
NVMEPEER_FN int nvmepeer_write(const struct nvmepeer_queue *queue,
			       const struct nvmepeer_buffer *buffer, uint64_t offset,
			       uint64_t lba, uint32_t blocks)
{
	struct nvmepeer_command command = { NVMEPEER_OP_WRITE, blocks, lba, buffer, offset, 0 };

	return nvmepeer_execute(queue, &command, NULL, queue->timeout_ns);
}

/* nvmepeer_flush - make what was written durable. */
NVMEPEER_FN int nvmepeer_flush(const struct nvmepeer_queue *queue)
{
	struct nvmepeer_command command = { NVMEPEER_OP_FLUSH, 0, 0, NULL, 0, 0 };

	return nvmepeer_execute(queue, &command, NULL, queue->timeout_ns);
}

/* nvmepeer_compare - compare blocks with @buffer: 0 if equal, status 0x285 if not. */
NVMEPEER_FN int nvmepeer_compare(const struct nvmepeer_queue *queue,
				 const struct nvmepeer_buffer *buffer, uint64_t offset,
				 uint64_t lba, uint32_t blocks)
{
	struct nvmepeer_command command = { NVMEPEER_OP_COMPARE, blocks, lba, buffer, offset, 0 };

	return nvmepeer_execute(queue, &command, NULL, queue->timeout_ns);
}

/* nvmepeer_write_zeroes - @control: 0 or NVMEPEER_CONTROL_DEALLOCATE. */
NVMEPEER_FN int nvmepeer_write_zeroes(const struct nvmepeer_queue *queue, uint64_t lba,
				      uint32_t blocks, uint32_t control)
{
	struct nvmepeer_command command = { NVMEPEER_OP_WRITE_ZEROES, blocks, lba, NULL, 0, control };

	return nvmepeer_execute(queue, &command, NULL, queue->timeout_ns);
}

#endif /* NVMEPEER_DEVICE_COMMAND_H */
