/* SPDX-License-Identifier: MIT OR GPL-2.0 */
/*
 * nvmepeer_device/send.h: a group of lanes with requests on its way through
 * the submission side, in rounds if the queue is full.
 */
#ifndef NVMEPEER_DEVICE_SEND_H
#define NVMEPEER_DEVICE_SEND_H

/*
 * What a lane wants to send: a command to encode, or an entry as it is.  Passed
 * by value, so that compilers keep it in registers.
 */
struct nvmepeer_request {
	struct nvmepeer_command command;
	const struct nvmepeer_sqe *entry;
	uint64_t bytes;
	int bad;		/* why it is not to be sent, or 0 */
};

NVMEPEER_FN struct nvmepeer_request nvmepeer_request_of(const struct nvmepeer_queue *queue,
							const struct nvmepeer_command *command)
{
	struct nvmepeer_request request = { *command, NULL, 0, 0 };

	request.bad = nvmepeer_command_check(queue, command, &request.bytes);
	return request;
}

NVMEPEER_FN void nvmepeer_make_entry(const struct nvmepeer_queue *queue, uint32_t cid,
				     const struct nvmepeer_request *request,
				     struct nvmepeer_sqe *entry)
{
	if (!request->entry) {
		nvmepeer_encode(queue, cid, &request->command, request->bytes, entry);
		return;
	}
	*entry = *request->entry;
	entry->dword[0] = (entry->dword[0] & 0xffff) | cid << 16;
}

/*
 * Sends the first @count of the @pending lanes, which have their cids.
 * Collective.  Returns the lanes that are still pending.
 */
NVMEPEER_FN nvmepeer_mask nvmepeer_send_reserved(const struct nvmepeer_queue *queue,
						 struct nvmepeer_group group,
						 nvmepeer_mask pending, uint32_t count,
						 const struct nvmepeer_request *request,
						 struct nvmepeer_token *token)
{
	uint32_t rank = nvmepeer_rank(pending, group.lane);
	bool sends = (pending >> group.lane & 1) && rank < count;
	uint32_t ticket = nvmepeer_take_slots(queue, group, count) + rank;
	struct nvmepeer_sqe entry;

	if (sends) {
		token->ticket = ticket;
		nvmepeer_make_entry(queue, token->cid, request, &entry);
		nvmepeer_fence_claimed();
		nvmepeer_store64(&queue->results[token->cid], 0);
	}
	if (!group.single && NVMEPEER_LANES >= 4 && count == NVMEPEER_LANES &&
	    (queue->flags & NVMEPEER_SQ_REMOTE))
		nvmepeer_write_turned(queue, group.mask, group.lane, ticket, &entry);
	else if (sends)
		nvmepeer_write_entry(queue, ticket, &entry);
	nvmepeer_publish(queue, group, count);
	return nvmepeer_group_ballot(group, (pending >> group.lane & 1) && !sends);
}

/* The head of the completion ring, as the group's first guess.  Collective. */
NVMEPEER_FN uint32_t nvmepeer_guess_head(const struct nvmepeer_queue *queue,
					 struct nvmepeer_group group)
{
	return nvmepeer_group_copy32(group, nvmepeer_load32(&queue->state->head), group.leader);
}

/*
 * The queue is full: waits until there is room, and takes completions, which
 * makes room, with every fourth look.
 */
NVMEPEER_FN int nvmepeer_wait_for_room(const struct nvmepeer_queue *queue,
				       struct nvmepeer_group group,
				       struct nvmepeer_deadline *deadline)
{
	uint32_t head = nvmepeer_guess_head(queue, group), looks = 0;
	uint64_t none = 0;
	int error = 0;

	do {
		if (looks++ % 4 ||
		    !nvmepeer_take(queue, group, false, NVMEPEER_NO_CID, &none, &head))
			error = nvmepeer_group_deadline(queue, group, deadline,
							NVMEPEER_PAUSE_LIMIT);
	} while (!error && nvmepeer_group_copy32(group, (int32_t)
				nvmepeer_load32(&queue->state->credits) <= 0, group.leader));
	return error;
}

/* What became of sending, by value for the same reason as requests. */
struct nvmepeer_sent {
	int status;
	struct nvmepeer_token token;
};

/* Sends the commands of the @pending lanes in rounds.  Collective. */
NVMEPEER_SLOW_FN struct nvmepeer_sent nvmepeer_send_rounds(const struct nvmepeer_queue *queue,
							   struct nvmepeer_group group,
							   nvmepeer_mask pending,
							   struct nvmepeer_request request,
							   uint64_t timeout_ns)
{
	struct nvmepeer_deadline deadline = nvmepeer_deadline_after(timeout_ns);
	struct nvmepeer_sent sent = { 0, { NVMEPEER_NO_CID, 0 } };
	int error = 0;

	while (pending && !error) {
		uint32_t count = nvmepeer_reserve_some(queue, group, pending, &sent.token.cid);

		if (count)
			pending = nvmepeer_send_reserved(queue, group, pending, count, &request,
							 &sent.token);
		if (pending)
			error = nvmepeer_wait_for_room(queue, group, &deadline);
	}
	if (pending >> group.lane & 1)
		sent.status = error == NVMEPEER_E_TIMEOUT ? NVMEPEER_E_FULL : error;
	return sent;
}

/*
 * Sends the commands of the lanes that @sends.  Collective.  Returns each
 * lane's own status.
 */
NVMEPEER_FN struct nvmepeer_sent nvmepeer_send_group(const struct nvmepeer_queue *queue,
						     struct nvmepeer_group group, bool sends,
						     const struct nvmepeer_request *request,
						     uint64_t timeout_ns)
{
	nvmepeer_mask pending = nvmepeer_group_ballot(group, sends);
	struct nvmepeer_sent sent = { 0, { NVMEPEER_NO_CID, 0 } };
	uint32_t count = nvmepeer_mask_count(pending), bits = 0, word = 0;

	if (!count)
		return sent;
	if (group.lane == group.leader)
		bits = nvmepeer_reserve_all(queue, count, &word);
	bits = nvmepeer_group_copy32(group, bits, group.leader);
	if (!bits)
		return nvmepeer_send_rounds(queue, group, pending, *request, timeout_ns);
	word = nvmepeer_group_copy32(group, word, group.leader);
	if (sends)
		sent.token.cid = 32 * word +
			nvmepeer_select_bit(bits, nvmepeer_rank(pending, group.lane));
	nvmepeer_send_reserved(queue, group, pending, count, request, &sent.token);
	return sent;
}

#endif /* NVMEPEER_DEVICE_SEND_H */
