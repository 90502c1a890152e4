/* SPDX-License-Identifier: MIT OR GPL-2.0 */
/*
 * nvmepeer_device/solo.h: a queue pair that one group of lanes has for itself.
 *
 * Where a thread or a warp owns its queue pair, nothing has to be shared: the
 * counts live in registers, and a command costs no atomic at all: a fence, a
 * tail doorbell, one look at the completion ring, a head doorbell.  This is
 * the shortest way from a GPU thread to a controller and back.
 *
 * All lanes that were active at nvmepeer_solo_open() make every later call
 * together; each may send its own command, or none.  Between open and close
 * others who want to send find the queue pair full, and who looks for completions
 * finds none.
 */
#ifndef NVMEPEER_DEVICE_SOLO_H
#define NVMEPEER_DEVICE_SOLO_H

/**
 * struct nvmepeer_solo - a queue pair of one's own; keep it in registers
 * @queue: the queue pair
 * @group: the lanes that own it
 * @tail: submission slots used so far
 * @head: completion entries taken so far
 * @broken: a status that every later call returns
 */
struct nvmepeer_solo {
	const struct nvmepeer_queue *queue;
	struct nvmepeer_group group;
	uint32_t tail;
	uint32_t head;
	int broken;
};

/* Gives all credits back, behind all else.  One lane. */
NVMEPEER_FN void nvmepeer_solo_end(const struct nvmepeer_queue *queue)
{
	nvmepeer_fence_device();		/* M */
	nvmepeer_post_add32(&queue->state->credits,
			    nvmepeer_most_in_flight(queue) - (uint32_t)NVMEPEER_SOLO_CREDITS);
}

/*
 * Takes all credits of an idle queue pair: it is idle if they are all there, as
 * many completions were taken as slots, and nobody rings any more.  The head is
 * marked, as some may still look for completions, of commands that others have
 * taken for them: they would take those of this group.  Both words are read by
 * atomics, which see the last value; what was rung is acquired before the first
 * doorbell.  That tells the controller of all that was taken, as this group may
 * wait for as many completions as it has room for.  One lane.
 */
NVMEPEER_FN int nvmepeer_solo_begin(const struct nvmepeer_queue *queue, struct nvmepeer_solo *solo)
{
	struct nvmepeer_state *state = queue->state;
	uint32_t all = nvmepeer_most_in_flight(queue);
	uint64_t tail;

	if (nvmepeer_known_lost(queue))
		return NVMEPEER_E_LOST;
	if (nvmepeer_compare_exchange32(&state->credits, all,
					(uint32_t)NVMEPEER_SOLO_CREDITS) != all)
		return NVMEPEER_E_BUSY;
	solo->head = nvmepeer_or32(&state->head, NVMEPEER_HEAD_SOLO);
	tail = nvmepeer_add64(&state->tail, 0);
	solo->tail = (uint32_t)(tail >> NVMEPEER_TICKET_SHIFT);
	if (!(uint32_t)tail && !((solo->head ^ solo->tail) & NVMEPEER_HEAD_MASK)) {
		nvmepeer_fence_claimed();	/* D */
		nvmepeer_ring_head(queue, solo->head & NVMEPEER_HEAD_MASK,
				   nvmepeer_load32(&state->head_rung));
		return NVMEPEER_OK;
	}
	nvmepeer_store32(&state->head, solo->head);
	nvmepeer_solo_end(queue);
	return NVMEPEER_E_BUSY;
}

/**
 * nvmepeer_solo_open - take over an idle queue pair
 *
 * Collective.  All later calls return NVMEPEER_E_BUSY if a command of somebody
 * else is in flight, abandoned ones included, or the queue pair is solo already.
 */
NVMEPEER_FN struct nvmepeer_solo nvmepeer_solo_open(const struct nvmepeer_queue *queue)
{
	struct nvmepeer_solo solo;
	uint32_t error = 0;

	solo.queue = queue;
	solo.group = nvmepeer_group_join(queue);
	solo.tail = 0;
	solo.head = 0;
	if (solo.group.lane == solo.group.leader)
		error = (uint32_t)nvmepeer_solo_begin(queue, &solo);
	solo.broken = (int)nvmepeer_group_copy32(solo.group, error, solo.group.leader);
	solo.tail = nvmepeer_group_copy32(solo.group, solo.tail, solo.group.leader);
	solo.head = nvmepeer_group_copy32(solo.group, solo.head, solo.group.leader);
	return solo;
}

/* nvmepeer_solo_close - give it back for everybody's use.  Collective. */
NVMEPEER_FN void nvmepeer_solo_close(const struct nvmepeer_solo *solo)
{
	const struct nvmepeer_queue *queue = solo->queue;
	struct nvmepeer_state *state = queue->state;
	uint32_t ticket, head = solo->head & NVMEPEER_HEAD_MASK;

	if (solo->group.lane != solo->group.leader || solo->broken == NVMEPEER_E_BUSY)
		return;
	if (solo->broken) {
		nvmepeer_mark_lost(queue);
		return;
	}
	/* As an addition, which a loss that somebody else has marked survives. */
	ticket = (uint32_t)(nvmepeer_load64(&state->tail) >> NVMEPEER_TICKET_SHIFT);
	nvmepeer_add64(&state->tail, (uint64_t)(solo->tail - ticket) << NVMEPEER_TICKET_SHIFT);
	nvmepeer_store32(&state->bell_rung, solo->tail);
	nvmepeer_store32(&state->head_rung, head);
	nvmepeer_store32(&state->head, head);
	nvmepeer_solo_end(queue);
}

/* Stores the entries of the first @count of the @pending lanes and rings.  Collective. */
NVMEPEER_FN void nvmepeer_solo_send(struct nvmepeer_solo *solo, bool sends, uint32_t rank,
				    uint32_t count, const struct nvmepeer_request *request)
{
	const struct nvmepeer_queue *queue = solo->queue;
	struct nvmepeer_unnamed unnamed = nvmepeer_no_entry();

	if (sends) {
		nvmepeer_make_entry(queue, request, &unnamed);
		nvmepeer_name_entry(queue, rank, request, &unnamed);
	}
	if (!solo->group.single && NVMEPEER_LANES >= 4 && count == NVMEPEER_LANES &&
	    (queue->flags & NVMEPEER_SQ_REMOTE))
		nvmepeer_write_turned(queue, solo->group.mask, solo->group.lane,
				      solo->tail + rank, &unnamed.entry);
	else if (sends)
		nvmepeer_write_entry(queue, solo->tail + rank, &unnamed.entry);
	solo->tail += count;
	nvmepeer_group_sync(solo->group);
	if (solo->group.lane != solo->group.leader)
		return;
	nvmepeer_fence_publish();
	nvmepeer_doorbell_store(queue->sq_doorbell, solo->tail & queue->sq_mask);
}

/* Is the queue pair lost, by the status page?  Collective. */
NVMEPEER_FN bool nvmepeer_solo_lost(const struct nvmepeer_queue *queue, struct nvmepeer_group group)
{
	uint32_t lost = 0;

	if (group.lane == group.leader) {
		lost = nvmepeer_known_lost(queue);
		if (!lost && nvmepeer_status_lost(queue)) {
			nvmepeer_mark_lost(queue);
			lost = 1;
		}
	}
	return nvmepeer_group_copy32(group, lost, group.leader);
}

/*
 * Waits until @count completion entries lie at the head.  Collective.  Each
 * lane whose rank is below @count reads its own into @entry.  @end_ns: when the time is
 * over, or 0 while the clock was not read.  No function is called: around calls compilers
 * keep in memory what is needed later, and behind a fence, which empties the cache, that
 * is loaded from afar.
 */
NVMEPEER_FN int nvmepeer_solo_wait(const struct nvmepeer_solo *solo, uint32_t rank,
				   uint32_t count, uint32_t entry[4], uint64_t timeout_ns,
				   uint64_t *end_ns)
{
	const struct nvmepeer_queue *queue = solo->queue;
	uint32_t index = solo->head + (rank < count ? rank : 0), looks = NVMEPEER_LOOKS_A_CLOCK;
	uint64_t slot = queue->cq + (uint64_t)(index & queue->cq_mask) * 16;
	uint32_t phase = nvmepeer_phase_at(queue, index);

	/* Where one lane is not to wait at all, the first look reads the clock. */
	if (nvmepeer_group_ballot(solo->group, !timeout_ns))
		looks = 1;
	nvmepeer_cq_load(slot, entry);
	for (;;) {
		bool missing = nvmepeer_cqe_phase(entry) != phase;

		if (!nvmepeer_group_ballot(solo->group, missing))
			return NVMEPEER_OK;
		if (!--looks) {
			uint64_t now = nvmepeer_now_ns();

			if (!*end_ns)
				*end_ns = now + timeout_ns < now ? ~(uint64_t)0 : now + timeout_ns;
			if (nvmepeer_solo_lost(queue, solo->group))
				return NVMEPEER_E_LOST;
			/* The lanes wait together, until the last one's time is over. */
			if (!nvmepeer_group_ballot(solo->group, now < *end_ns))
				return NVMEPEER_E_TIMEOUT;
			looks = NVMEPEER_LOOKS_A_CLOCK;
		}
		nvmepeer_pause(0);
		/* Over a bus each look costs: lanes that have theirs do not look again. */
		if (missing)
			nvmepeer_cq_load(slot, entry);
	}
}

/* One round: the first lanes of @pending for which the ring has room.  Collective. */
NVMEPEER_FN int nvmepeer_solo_round(struct nvmepeer_solo *solo, nvmepeer_mask pending,
				    const struct nvmepeer_request *request,
				    uint64_t timeout_ns, uint64_t *end_ns, uint64_t *result)
{
	const struct nvmepeer_queue *queue = solo->queue;
	uint32_t rank = nvmepeer_rank(pending, solo->group.lane);
	uint32_t place = nvmepeer_rank(solo->group.mask, solo->group.lane);
	uint32_t count = nvmepeer_mask_count(pending), entry[4];
	bool sends;
	int error;

	count = count < queue->sq_mask ? count : queue->sq_mask;
	sends = (pending >> solo->group.lane & 1) && rank < count;
	nvmepeer_solo_send(solo, sends, rank, count, request);
	error = nvmepeer_solo_wait(solo, place, count, entry, timeout_ns, end_ns);
	if (error)
		return error;
	nvmepeer_believe(queue);
	/* A lane's data may be announced by an entry that another one read. */
	nvmepeer_group_sync(solo->group);
	nvmepeer_hand_over(solo->group, count, entry, place < count, sends, rank, result);
	solo->head += count;
	if (solo->group.lane == solo->group.leader)
		nvmepeer_doorbell_store(queue->cq_doorbell, solo->head & queue->cq_mask);
	return NVMEPEER_OK;
}

/*
 * nvmepeer_solo_execute() for a group of lanes.  Collective.  There is one copy of this
 * for groups of any size: two and a function for the others cost registers and, in a
 * kernel that has 64, half a microsecond of loads of what was spilled.
 */
NVMEPEER_FN int nvmepeer_solo_group(struct nvmepeer_solo *solo,
				    const struct nvmepeer_command *command, uint32_t *result,
				    uint64_t timeout_ns)
{
	struct nvmepeer_request request = { { 0, 0, 0, NULL, 0, 0 }, NULL, 0, 0 };
	uint64_t word = 0, end_ns = 0;
	nvmepeer_mask pending;

	if (command)
		request = nvmepeer_request_of(solo->queue, command);
	else
		timeout_ns = 1;
	pending = nvmepeer_group_ballot(solo->group, command && !request.bad);
	while (pending && !solo->broken) {
		solo->broken = nvmepeer_solo_round(solo, pending, &request, timeout_ns, &end_ns,
						   &word);
		pending &= ~nvmepeer_group_ballot(solo->group, (word & NVMEPEER_RESULT_DONE) != 0);
	}
	if (result)
		*result = (uint32_t)(word >> 32);
	if (word & NVMEPEER_RESULT_DONE)
		return (int)(word & 0x7fff);
	return request.bad ? request.bad : command ? solo->broken : NVMEPEER_OK;
}

/*
 * nvmepeer_solo_group() for one lane, which needs no ranks, no exchange and no
 * rounds: the path whose every instruction shows in a command's latency.
 */
NVMEPEER_FN int nvmepeer_solo_single(struct nvmepeer_solo *solo,
				     const struct nvmepeer_command *command, uint32_t *result,
				     uint64_t timeout_ns)
{
	const struct nvmepeer_queue *queue = solo->queue;
	struct nvmepeer_solo known;
	struct nvmepeer_sqe entry;
	uint64_t end_ns = 0;
	uint32_t bytes, done[4];
	int bad;

	if (!command || solo->broken)
		return command ? solo->broken : NVMEPEER_OK;
	bad = nvmepeer_command_check(queue, command, &bytes);
	if (bad)
		return bad;
	nvmepeer_name(queue, 0, command, bytes, nvmepeer_encode(queue, command, bytes, &entry),
		      &entry);
	nvmepeer_write_entry(queue, solo->tail++, &entry);
	nvmepeer_fence_publish();
	nvmepeer_doorbell_store(queue->sq_doorbell, solo->tail & queue->sq_mask);
	known = *solo;
	known.group = nvmepeer_group_single();
	solo->broken = nvmepeer_solo_wait(&known, 0, 1, done, timeout_ns, &end_ns);
	if (solo->broken)
		return solo->broken;
	nvmepeer_believe(queue);
	solo->head++;
	nvmepeer_doorbell_store(queue->cq_doorbell, solo->head & queue->cq_mask);
	if (result)
		*result = done[0];
	return (int)nvmepeer_cqe_status(done);
}

/**
 * nvmepeer_solo_execute - send the lanes' commands and wait for all of them
 * @solo: from nvmepeer_solo_open()
 * @command: this lane's command, or NULL for none
 * @result: out: dword 0 of the completion entry; may be NULL
 * @timeout_ns: how long to wait
 *
 * Collective.  Returns this lane's own status, as nvmepeer_read() does.  After
 * NVMEPEER_E_TIMEOUT or _E_LOST every later call returns the same: commands
 * may still be in flight.  The lanes wait together, for as long as the longest of
 * their limits.
 */
NVMEPEER_FN int nvmepeer_solo_execute(struct nvmepeer_solo *solo,
				      const struct nvmepeer_command *command,
				      uint32_t *result, uint64_t timeout_ns)
{
	int status = solo->group.single ?
		     nvmepeer_solo_single(solo, command, result, timeout_ns) :
		     nvmepeer_solo_group(solo, command, result, timeout_ns);

	return nvmepeer_returned(status);
}

/* nvmepeer_solo_read - nvmepeer_read() on a queue pair of one's own.  Collective. */
NVMEPEER_FN int nvmepeer_solo_read(struct nvmepeer_solo *solo,
				   const struct nvmepeer_buffer *buffer, uint64_t offset,
				   uint64_t lba, uint32_t blocks)
{
	struct nvmepeer_command command = { NVMEPEER_OP_READ, blocks, lba, buffer, offset, 0 };

	return nvmepeer_solo_execute(solo, &command, NULL, solo->queue->timeout_ns);
}

/* nvmepeer_solo_write - nvmepeer_write() on a queue pair of one's own.  Collective. */
NVMEPEER_FN int nvmepeer_solo_write(struct nvmepeer_solo *solo,
				    const struct nvmepeer_buffer *buffer, uint64_t offset,
				    uint64_t lba, uint32_t blocks)
{
	struct nvmepeer_command command = { NVMEPEER_OP_WRITE, blocks, lba, buffer, offset, 0 };

	return nvmepeer_solo_execute(solo, &command, NULL, solo->queue->timeout_ns);
}

#endif /* NVMEPEER_DEVICE_SOLO_H */
