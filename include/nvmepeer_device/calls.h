/* SPDX-License-Identifier: MIT OR GPL-2.0 */
/*
 * nvmepeer_device/calls.h: the calls at thread scope.  Any thread may make any
 * call at any time; lanes of a warp that happen to call together share one
 * trip to the queue.
 */
#ifndef NVMEPEER_DEVICE_CALLS_H
#define NVMEPEER_DEVICE_CALLS_H

/* What became of a lane's command, by value for the same reason as requests. */
struct nvmepeer_outcome {
	int status;
	uint32_t result;
	struct nvmepeer_token token;
};

/*
 * Sends the lanes' requests that are not bad, and lets their tokens name them.
 * Collective.
 */
NVMEPEER_FN struct nvmepeer_outcome nvmepeer_submit_group(struct nvmepeer_group group,
							  const struct nvmepeer_queue *queue,
							  struct nvmepeer_request request,
							  uint64_t timeout_ns)
{
	struct nvmepeer_sent sent = nvmepeer_send_group(queue, group, !request.bad, &request,
							timeout_ns);
	struct nvmepeer_outcome outcome = { sent.status, 0, sent.token };

	if (request.bad)
		outcome.status = request.bad;
	if (outcome.status)
		outcome.token.cid = NVMEPEER_NO_CID;
	else
		nvmepeer_store32(&queue->owners[sent.token.cid],
				 sent.token.ticket | NVMEPEER_OWNED);
	return outcome;
}

NVMEPEER_SLOW_FN struct nvmepeer_outcome nvmepeer_submit_some(struct nvmepeer_group group,
							      const struct nvmepeer_queue *queue,
							      struct nvmepeer_request request,
							      uint64_t timeout_ns)
{
	return nvmepeer_submit_group(group, queue, request, timeout_ns);
}

/* Sends a request and names it. */
NVMEPEER_FN int nvmepeer_submit_request(const struct nvmepeer_queue *queue,
					struct nvmepeer_request request,
					struct nvmepeer_token *token, uint64_t timeout_ns)
{
	struct nvmepeer_group group = nvmepeer_group_join(queue);
	struct nvmepeer_outcome outcome;

	outcome = NVMEPEER_BY_GROUP(group, nvmepeer_submit_group, nvmepeer_submit_some, queue,
				    request, timeout_ns);
	*token = outcome.token;
	return outcome.status;
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
 * nvmepeer_geometry.cids commands.  Lanes that call together return together.
 */
NVMEPEER_FN int nvmepeer_submit(const struct nvmepeer_queue *queue,
				const struct nvmepeer_command *command,
				struct nvmepeer_token *token, uint64_t timeout_ns)
{
	return nvmepeer_submit_request(queue, nvmepeer_request_of(queue, command), token,
				       timeout_ns);
}

/* nvmepeer_submit_raw - as nvmepeer_submit(), with an entry made by the caller; its cid is set. */
NVMEPEER_FN int nvmepeer_submit_raw(const struct nvmepeer_queue *queue,
				    const struct nvmepeer_sqe *entry,
				    struct nvmepeer_token *token, uint64_t timeout_ns)
{
	struct nvmepeer_request request = { { 0, 0, 0, NULL, 0, 0 }, entry, 0, 0 };

	return nvmepeer_submit_request(queue, request, token, timeout_ns);
}

/*
 * Is @token that of a command in flight?  Then it is this thread's, and names
 * nothing any more, until nvmepeer_unclaim() gives it back.
 */
NVMEPEER_FN bool nvmepeer_claim(const struct nvmepeer_queue *queue, struct nvmepeer_token token)
{
	uint32_t owner = token.ticket | NVMEPEER_OWNED;

	return token.cid / 32 <= queue->cid_words_mask &&
	       nvmepeer_compare_exchange32(&queue->owners[token.cid], owner, 0) == owner;
}

NVMEPEER_FN void nvmepeer_unclaim(const struct nvmepeer_queue *queue, struct nvmepeer_token token)
{
	nvmepeer_store32(&queue->owners[token.cid], token.ticket | NVMEPEER_OWNED);
}

/* Waits for the lanes' tokens.  Collective. */
NVMEPEER_FN struct nvmepeer_outcome nvmepeer_wait_token(struct nvmepeer_group group,
							const struct nvmepeer_queue *queue,
							struct nvmepeer_token token,
							uint64_t timeout_ns)
{
	struct nvmepeer_deadline deadline = nvmepeer_deadline_after(group, timeout_ns);
	bool good = nvmepeer_claim(queue, token);
	struct nvmepeer_waiting waiting = { good, false, token.cid, token.ticket, 0 };
	struct nvmepeer_outcome outcome = { 0, 0, token };

	outcome.status = nvmepeer_wait_group(queue, group, &waiting,
					     nvmepeer_guess_head(queue, group), &deadline);
	outcome.result = (uint32_t)(waiting.result >> 32);
	if (!good)
		outcome.status = NVMEPEER_E_TOKEN;
	return outcome;
}

NVMEPEER_SLOW_FN struct nvmepeer_outcome nvmepeer_wait_some(struct nvmepeer_group group,
							    const struct nvmepeer_queue *queue,
							    struct nvmepeer_token token,
							    uint64_t timeout_ns)
{
	return nvmepeer_wait_token(group, queue, token, timeout_ns);
}

/**
 * nvmepeer_wait - wait for a command
 * @queue: the queue pair that it was sent to
 * @token: from nvmepeer_submit(); spent when the call returns, and one
 *	thread's at a time
 * @result: out: dword 0 of the completion entry; may be NULL
 * @timeout_ns: how long to wait
 *
 * Returns 0, the NVMe status, NVMEPEER_E_TIMEOUT, _E_LOST or _E_TOKEN.  Data
 * read by the command may be read by the calling thread when it returns 0.
 * Lanes that call together each have their own limit and status, and return
 * together: after the last one's.  A token that is spent, or from before a
 * reset, ends with NVMEPEER_E_TOKEN and changes nothing.
 */
NVMEPEER_FN int nvmepeer_wait(const struct nvmepeer_queue *queue, struct nvmepeer_token token,
			      uint32_t *result, uint64_t timeout_ns)
{
	struct nvmepeer_group group = nvmepeer_group_join(queue);
	struct nvmepeer_outcome outcome;

	outcome = NVMEPEER_BY_GROUP(group, nvmepeer_wait_token, nvmepeer_wait_some, queue, token,
				    timeout_ns);
	if (result)
		*result = outcome.result;
	return nvmepeer_returned(outcome.status);
}

/*
 * A poll of the group has found nothing.  Collective.  Polls add up in the queue pair,
 * however few each caller makes, and one of so many looks after it, as a wait does.
 * Is the queue pair lost?
 */
NVMEPEER_FN bool nvmepeer_count_poll(const struct nvmepeer_queue *queue,
				     struct nvmepeer_group group)
{
	uint32_t seen, lost = 0;

	if (group.lane == group.leader) {
		seen = nvmepeer_add32(&queue->state->lost, NVMEPEER_ONE_POLL);
		lost = seen & NVMEPEER_LOST;
		if ((seen / NVMEPEER_ONE_POLL + 1) % NVMEPEER_LOOKS_A_CLOCK == 0)
			lost = nvmepeer_look_after(queue);
	}
	return nvmepeer_group_copy32(group, lost, group.leader);
}

/* Looks once for the lanes' tokens.  Collective. */
NVMEPEER_SLOW_FN struct nvmepeer_outcome nvmepeer_poll_token(struct nvmepeer_group group,
							     const struct nvmepeer_queue *queue,
							     struct nvmepeer_token token)
{
	bool good = nvmepeer_claim(queue, token);
	struct nvmepeer_waiting waiting = { good, false, token.cid, token.ticket, 0 };
	struct nvmepeer_outcome outcome = { 0, 0, token };
	uint32_t head = nvmepeer_guess_head(queue, group);
	bool lost = false;

	if (nvmepeer_group_ballot(group, good))
		nvmepeer_look(queue, group, &waiting, &head);
	nvmepeer_retire(queue, group, &waiting, good && !waiting.waits);
	if (nvmepeer_group_ballot(group, waiting.waits))
		lost = nvmepeer_count_poll(queue, group);
	outcome.result = (uint32_t)(waiting.result >> 32);
	outcome.status = (int)(waiting.result & 0x7fff);
	if (!good) {
		outcome.status = NVMEPEER_E_TOKEN;
	} else if (waiting.waits) {
		nvmepeer_unclaim(queue, token);
		outcome.status = lost ? NVMEPEER_E_LOST : NVMEPEER_AGAIN;
	}
	return outcome;
}

/* nvmepeer_poll(), with the status as the controller wrote it. */
NVMEPEER_FN int nvmepeer_poll_status(const struct nvmepeer_queue *queue,
				     struct nvmepeer_token token, uint32_t *result)
{
	struct nvmepeer_outcome outcome = nvmepeer_poll_token(nvmepeer_group_join(queue), queue,
							      token);

	if (result && outcome.status >= 0)
		*result = outcome.result;
	return outcome.status;
}

/**
 * nvmepeer_poll - look once whether a command has completed
 *
 * As nvmepeer_wait(), but returns NVMEPEER_AGAIN at once if it has not; then
 * the token stays good.  Of all polls of a queue pair that find nothing every
 * 256th looks at the status page; nvmepeer_check() does at once.
 */
NVMEPEER_FN int nvmepeer_poll(const struct nvmepeer_queue *queue, struct nvmepeer_token token,
			      uint32_t *result)
{
	return nvmepeer_returned(nvmepeer_poll_status(queue, token, result));
}

/* Waits for the lanes' commands that were @sent.  Collective. */
NVMEPEER_FN struct nvmepeer_outcome nvmepeer_wait_sent(struct nvmepeer_group group,
						       const struct nvmepeer_queue *queue,
						       struct nvmepeer_sent sent,
						       uint64_t timeout_ns)
{
	struct nvmepeer_deadline deadline = nvmepeer_deadline_after(group, timeout_ns);
	struct nvmepeer_waiting waiting = { !sent.status, false, sent.token.cid,
					    sent.token.ticket, 0 };
	struct nvmepeer_outcome outcome = { 0, 0, sent.token };

	outcome.status = nvmepeer_wait_group(queue, group, &waiting,
					     nvmepeer_same_head(group, sent.head), &deadline);
	outcome.result = (uint32_t)(waiting.result >> 32);
	if (sent.status)
		outcome.status = sent.status;
	return outcome;
}

/*
 * Sends the lanes' commands and waits for them; where there are too few cids in turns,
 * each of which ends what it has sent.  @tried: just now there was no room for all of
 * them at once.  Collective.
 */
NVMEPEER_SLOW_FN struct nvmepeer_outcome nvmepeer_execute_turns(struct nvmepeer_group group,
								const struct nvmepeer_queue *queue,
								struct nvmepeer_request request,
								uint64_t timeout_ns, bool tried)
{
	struct nvmepeer_outcome outcome = { request.bad ? request.bad : NVMEPEER_AGAIN, 0,
					    { NVMEPEER_NO_CID, 0 } };
	uint64_t room_ns = timeout_ns;
	nvmepeer_mask again;

	do {
		bool mine = outcome.status == NVMEPEER_AGAIN;
		struct nvmepeer_outcome turn;
		struct nvmepeer_sent sent;

		if (tried || !nvmepeer_send_at_once(queue, group, mine, &request, &sent))
			sent = nvmepeer_send_rounds(queue, group, nvmepeer_group_ballot(group, mine),
						    request, room_ns, true);
		if (!mine)
			sent.status = NVMEPEER_AGAIN;
		again = nvmepeer_group_ballot(group, mine && sent.status == NVMEPEER_AGAIN);
		turn = nvmepeer_wait_sent(group, queue, sent, timeout_ns);
		if (mine)
			outcome = turn;
		if (outcome.status == NVMEPEER_AGAIN) {
			uint64_t now = nvmepeer_now_ns();

			room_ns = sent.room_until > now ? sent.room_until - now : 0;
			if (!room_ns)
				outcome.status = NVMEPEER_E_FULL;
		}
	} while (again);
	return outcome;
}

/* The same for groups between one and all lanes.  Collective. */
NVMEPEER_FN struct nvmepeer_outcome nvmepeer_execute_some(struct nvmepeer_group group,
							  const struct nvmepeer_queue *queue,
							  struct nvmepeer_request request,
							  uint64_t timeout_ns)
{
	return nvmepeer_execute_turns(group, queue, request, timeout_ns, false);
}

/* The same in the usual case, in which there is room for all lanes at once.  Collective. */
NVMEPEER_FN struct nvmepeer_outcome nvmepeer_execute_group(struct nvmepeer_group group,
							   const struct nvmepeer_queue *queue,
							   struct nvmepeer_request request,
							   uint64_t timeout_ns)
{
	struct nvmepeer_sent sent;

	if (!nvmepeer_send_at_once(queue, group, !request.bad, &request, &sent))
		return nvmepeer_execute_turns(group, queue, request, timeout_ns, true);
	if (request.bad)
		sent.status = request.bad;
	return nvmepeer_wait_sent(group, queue, sent, timeout_ns);
}

/**
 * nvmepeer_execute - send a command and wait for it
 *
 * nvmepeer_submit() and nvmepeer_wait() in one; each waits @timeout_ns at most.  Where
 * there are fewer cids than threads in calls, lanes that call together take turns.
 */
NVMEPEER_FN int nvmepeer_execute(const struct nvmepeer_queue *queue,
				 const struct nvmepeer_command *command,
				 uint32_t *result, uint64_t timeout_ns)
{
	struct nvmepeer_request request = nvmepeer_request_of(queue, command);
	struct nvmepeer_group group = nvmepeer_group_join(queue);
	struct nvmepeer_outcome outcome;

	outcome = NVMEPEER_BY_GROUP(group, nvmepeer_execute_group, nvmepeer_execute_some, queue,
				    request, timeout_ns);
	if (result)
		*result = outcome.result;
	return nvmepeer_returned(outcome.status);
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

/**
 * nvmepeer_zone_append - append blocks to a zone
 * @zone: first logical block of the zone
 * @written: out: where the controller put the data, blocks from @zone on; the
 *	zone must have fewer than 2^32 blocks
 */
NVMEPEER_FN int nvmepeer_zone_append(const struct nvmepeer_queue *queue,
				     const struct nvmepeer_buffer *buffer, uint64_t offset,
				     uint64_t zone, uint32_t blocks, uint32_t *written)
{
	struct nvmepeer_command command = { NVMEPEER_OP_ZONE_APPEND, blocks, zone, buffer,
					    offset, 0 };
	uint32_t result = 0;
	int status = nvmepeer_execute(queue, &command, &result, queue->timeout_ns);

	*written = result - (uint32_t)zone;
	return status;
}

/**
 * nvmepeer_wait_any - wait for one of several commands
 * @tokens: tokens of this queue pair; the one found is spent and marked so,
 *	spent ones are passed over
 * @count: how many
 * @which: out: index of the one found
 * @result: out: dword 0 of its completion entry; may be NULL
 * @timeout_ns: how long to wait
 *
 * Returns the status of the one found (NVMEPEER_E_LOST, if that says that the queue was
 * deleted), or NVMEPEER_E_TIMEOUT or _E_LOST with no token spent, or NVMEPEER_E_TOKEN if
 * all are or the one at @which is none.
 */
NVMEPEER_FN int nvmepeer_wait_any(const struct nvmepeer_queue *queue,
				  struct nvmepeer_token *tokens, uint32_t count,
				  uint32_t *which, uint32_t *result, uint64_t timeout_ns)
{
	struct nvmepeer_group self = nvmepeer_group_self();
	struct nvmepeer_deadline deadline = nvmepeer_deadline_after(self, timeout_ns);

	do {
		uint32_t alive = 0;

		for (uint32_t i = 0; i < count; i++) {
			int status;

			if (tokens[i].cid == NVMEPEER_NO_CID)
				continue;
			alive++;
			/* Lost without an entry of its own: others may have one. */
			status = nvmepeer_poll_status(queue, tokens[i], result);
			if (status == NVMEPEER_AGAIN || status == NVMEPEER_E_LOST)
				continue;
			tokens[i].cid = NVMEPEER_NO_CID;
			*which = i;
			return nvmepeer_returned(status);
		}
		if (!alive)
			return NVMEPEER_E_TOKEN;
	} while (!nvmepeer_deadline_check(queue, self, &deadline, true, 1));
	return deadline.error;
}

/**
 * nvmepeer_serve - take completions for others until told to stop
 * @queue: the queue pair
 * @stop: in the device's memory; not 0 ends the service
 *
 * For warps with nothing else to do: the waiters then find their results
 * waiting.  Never needed for progress.  A loss of the queue pair ends it, too.
 */
NVMEPEER_FN void nvmepeer_serve(const struct nvmepeer_queue *queue, const uint32_t *stop)
{
	struct nvmepeer_group group = nvmepeer_group_join(queue);
	struct nvmepeer_deadline deadline = nvmepeer_deadline_after(group, ~(uint64_t)0);
	uint32_t head = nvmepeer_guess_head(queue, group), taken = 0;
	uint64_t none = 0;

	while (!nvmepeer_group_copy32(group, nvmepeer_load32(stop), group.leader) &&
	       !nvmepeer_deadline_check(queue, group, &deadline, !taken, 100))
		taken = nvmepeer_take(queue, group, false, NVMEPEER_NO_CID, &none, &head);
}

/* Looks once whether the queue pair is still there: 0 or NVMEPEER_E_LOST. */
NVMEPEER_FN int nvmepeer_check(const struct nvmepeer_queue *queue)
{
	return nvmepeer_look_after(queue) ? NVMEPEER_E_LOST : NVMEPEER_OK;
}

#endif /* NVMEPEER_DEVICE_CALLS_H */
