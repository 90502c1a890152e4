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
	uint32_t bytes;
	int bad;		/* why it is not to be sent, or 0 */
};

NVMEPEER_FN struct nvmepeer_request nvmepeer_request_of(const struct nvmepeer_queue *queue,
							const struct nvmepeer_command *command)
{
	struct nvmepeer_request request = { *command, NULL, 0, 0 };

	request.bad = nvmepeer_command_check(queue, command, &request.bytes);
	return request;
}

/*
 * An entry that has no cid yet.  It begins as zero also where a lane may not make one: for
 * a compiler what nobody has set may be what it was in the round before, and is kept from
 * one to the next, around calls in memory: on an H200, with 64 registers, by 12 stores and
 * 5 loads each time that a warp sends.
 */
struct nvmepeer_unnamed {
	struct nvmepeer_sqe entry;
	bool list;		/* it needs a PRP list */
};

NVMEPEER_FN struct nvmepeer_unnamed nvmepeer_no_entry(void)
{
	struct nvmepeer_unnamed none = { { { 0 } }, false };

	return none;
}

NVMEPEER_FN void nvmepeer_make_entry(const struct nvmepeer_queue *queue,
				     const struct nvmepeer_request *request,
				     struct nvmepeer_unnamed *unnamed)
{
	if (!request->entry) {
		unnamed->list = nvmepeer_encode(queue, &request->command, request->bytes,
						&unnamed->entry);
		return;
	}
	unnamed->entry = *request->entry;
	unnamed->entry.dword[0] &= 0xffff;
	unnamed->list = false;
}

NVMEPEER_FN void nvmepeer_name_entry(const struct nvmepeer_queue *queue, uint32_t cid,
				     const struct nvmepeer_request *request,
				     struct nvmepeer_unnamed *unnamed)
{
	nvmepeer_name(queue, cid, &request->command, request->bytes, unnamed->list,
		      &unnamed->entry);
}

/*
 * What became of sending, by value for the same reason as requests.  @head: where the
 * completion ring was then, as the leader saw it.  @room_until: of NVMEPEER_AGAIN, until
 * when by nvmepeer_now_ns() this lane may wait for room.
 */
struct nvmepeer_sent {
	int status;
	uint32_t head;
	struct nvmepeer_token token;
	uint64_t room_until;
};

/*
 * Sends the first @count of the @pending lanes, which have their cids.  @unnamed: the
 * entry of a lane alone, which it has made while its cid was on its way.
 * Collective.  All that can take long, PRP lists and look-ups of DMA addresses,
 * is done before slots are taken, as the doorbell waits for whoever has some.
 * False, with nothing sent, if the queue pair is lost: the cids and credits are
 * gone then too, until nvmepeer_queue_rearm().
 */
NVMEPEER_FN bool nvmepeer_send_reserved(const struct nvmepeer_queue *queue,
					struct nvmepeer_group group,
					nvmepeer_mask pending, uint32_t count,
					const struct nvmepeer_request *request,
					struct nvmepeer_unnamed *unnamed,
					struct nvmepeer_sent *sent)
{
	struct nvmepeer_token *token = &sent->token;
	uint32_t rank = nvmepeer_rank(pending, group.lane);
	bool sends = (pending >> group.lane & 1) && rank < count;
	struct nvmepeer_slots slots;

	nvmepeer_fence_claimed();		/* H */
	/* The leader claimed, every lane writes. */
	nvmepeer_group_sync(group);
	if (sends) {
		if (!group.single)
			nvmepeer_make_entry(queue, request, unnamed);
		nvmepeer_name_entry(queue, token->cid, request, unnamed);
		nvmepeer_store64(&queue->results[token->cid], 0);
	}
	slots = nvmepeer_take_slots(queue, group, count);
	if (slots.before & NVMEPEER_TAIL_LOST) {
		nvmepeer_leave_slots(queue, group, count);
		return false;
	}
	token->ticket = slots.first + rank;
	if (!group.single && NVMEPEER_LANES >= 4 && count == NVMEPEER_LANES &&
	    (queue->flags & NVMEPEER_SQ_REMOTE))
		nvmepeer_write_turned(queue, group.mask, group.lane, token->ticket,
				      &unnamed->entry);
	else if (sends)
		nvmepeer_write_entry(queue, token->ticket, &unnamed->entry);
	sent->head = nvmepeer_publish(queue, group, slots, count);
	return true;
}

/* The group's guess of the head of the completion ring, from what the leader saw.  Collective. */
NVMEPEER_FN uint32_t nvmepeer_same_head(struct nvmepeer_group group, uint32_t seen)
{
	return nvmepeer_group_copy32(group, seen, group.leader) & NVMEPEER_HEAD_MASK;
}

/* The head of the completion ring, as the group's first guess.  Collective. */
NVMEPEER_FN uint32_t nvmepeer_guess_head(const struct nvmepeer_queue *queue,
					 struct nvmepeer_group group)
{
	return nvmepeer_same_head(group, nvmepeer_load32(&queue->state->head));
}

/* Credits left, as the leader sees them.  Collective. */
NVMEPEER_FN int32_t nvmepeer_credits_left(const struct nvmepeer_queue *queue,
					  struct nvmepeer_group group)
{
	return (int32_t)nvmepeer_group_copy32(group, nvmepeer_load32(&queue->state->credits),
					      group.leader);
}

/*
 * The queue is full: waits until there is room, or the time of one of the
 * @pending lanes is over, and takes completions, which makes room, with every
 * fourth look.  Collective.  Returns what ended this lane's wait, or 0.
 */
NVMEPEER_FN int nvmepeer_wait_for_room(const struct nvmepeer_queue *queue,
				       struct nvmepeer_group group, nvmepeer_mask pending,
				       struct nvmepeer_deadline *deadline)
{
	uint32_t head = nvmepeer_guess_head(queue, group), taken;
	uint64_t none = 0;
	int32_t credits;
	int error;

	do {
		taken = 0;
		if (deadline->looks % 4 == 0)
			taken = nvmepeer_take(queue, group, false, NVMEPEER_NO_CID, &none, &head);
		error = nvmepeer_deadline_check(queue, group, deadline, !taken,
						NVMEPEER_PAUSE_LIMIT);
		credits = nvmepeer_credits_left(queue, group);
	} while (credits <= 0 && !(nvmepeer_group_ballot(group, error != 0) & pending));
	return error;
}

/*
 * Sends the commands of the @pending lanes in rounds.  Collective.  Where there are too
 * few cids a group that @executes does not wait for more while its own commands hold
 * some: where all groups did, none would get any further.  It waits for those first, and
 * sends what is left, whose status is NVMEPEER_AGAIN, then.
 */
NVMEPEER_SLOW_FN struct nvmepeer_sent nvmepeer_send_rounds(const struct nvmepeer_queue *queue,
							   struct nvmepeer_group group,
							   nvmepeer_mask pending,
							   struct nvmepeer_request request,
							   uint64_t timeout_ns, bool executes)
{
	struct nvmepeer_deadline deadline = nvmepeer_deadline_after(group, timeout_ns);
	struct nvmepeer_sent sent = { NVMEPEER_E_LOST, 0, { NVMEPEER_NO_CID, 0 }, 0 };
	bool mine = pending >> group.lane & 1, sends = false, short_of_cids;
	struct nvmepeer_unnamed unnamed = nvmepeer_no_entry();

	while (!nvmepeer_group_copy32(group, nvmepeer_known_lost(queue), group.leader)) {
		uint32_t count = nvmepeer_reserve_some(queue, group, pending, &sent.token.cid,
						       &short_of_cids);
		int error;

		if (group.single)
			nvmepeer_make_entry(queue, &request, &unnamed);
		if (count && !nvmepeer_send_reserved(queue, group, pending, count, &request,
						     &unnamed, &sent))
			break;
		if (mine && nvmepeer_rank(pending, group.lane) < count) {
			sent.status = NVMEPEER_OK;
			sends = true;
			mine = false;
		}
		pending = nvmepeer_group_ballot(group, mine);
		if (!pending)
			break;
		if (executes && short_of_cids && nvmepeer_group_ballot(group, sends)) {
			deadline = nvmepeer_deadline_look(queue, group, deadline);
			sent.room_until = deadline.end_ns;
			if (mine)
				sent.status = NVMEPEER_AGAIN;
			break;
		}
		error = nvmepeer_wait_for_room(queue, group, pending, &deadline);
		if (mine && error) {
			sent.status = error == NVMEPEER_E_TIMEOUT ? NVMEPEER_E_FULL : error;
			mine = false;
		}
		pending = nvmepeer_group_ballot(group, mine);
		if (!pending)
			break;
	}
	return sent;
}

/*
 * Sends the commands of the lanes that @sends at once.  Collective.  Returns each lane's
 * own status.  False, with nothing sent, where there is no room for all of them.
 */
NVMEPEER_FN bool nvmepeer_send_at_once(const struct nvmepeer_queue *queue,
				       struct nvmepeer_group group, bool sends,
				       const struct nvmepeer_request *request,
				       struct nvmepeer_sent *sent)
{
	nvmepeer_mask pending = nvmepeer_group_ballot(group, sends);
	struct nvmepeer_asked asked = { { 0, 0, 0 }, 0, false };
	struct nvmepeer_reserved taken = { 0, 0, 0 };
	struct nvmepeer_unnamed unnamed = nvmepeer_no_entry();
	uint32_t count;

	sent->status = NVMEPEER_OK;
	sent->head = 0;
	sent->token.cid = NVMEPEER_NO_CID;
	sent->token.ticket = 0;
	sent->room_until = 0;
	if (!pending)
		return true;
	count = group.single ? 1 : nvmepeer_mask_count(pending);
	if (group.lane == group.leader)
		asked = nvmepeer_ask(queue, count);
	/* Where many lanes send, the registers that it takes cost more than it saves. */
	if (group.single)
		nvmepeer_make_entry(queue, request, &unnamed);
	if (group.lane == group.leader)
		taken = nvmepeer_reserve_all(queue, count, asked);
	taken.bits = nvmepeer_group_copy32(group, taken.bits, group.leader);
	if (!taken.bits)
		return false;
	taken.word = nvmepeer_group_copy32(group, taken.word, group.leader);
	if (NVMEPEER_LANES > 32)
		taken.more = nvmepeer_group_copy32(group, taken.more, group.leader);
	if (sends)
		sent->token.cid = nvmepeer_reserved_cid(taken, nvmepeer_rank(pending, group.lane));
	if (!nvmepeer_send_reserved(queue, group, pending, count, request, &unnamed, sent))
		sent->status = NVMEPEER_E_LOST;
	return true;
}

/* The same, in rounds if need be, for a group that submits. */
NVMEPEER_FN struct nvmepeer_sent nvmepeer_send_group(const struct nvmepeer_queue *queue,
						     struct nvmepeer_group group, bool sends,
						     const struct nvmepeer_request *request,
						     uint64_t timeout_ns)
{
	struct nvmepeer_sent sent;

	if (!nvmepeer_send_at_once(queue, group, sends, request, &sent))
		sent = nvmepeer_send_rounds(queue, group, nvmepeer_group_ballot(group, sends),
					    *request, timeout_ns, false);
	return sent;
}

#endif /* NVMEPEER_DEVICE_SEND_H */
