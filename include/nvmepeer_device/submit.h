/* SPDX-License-Identifier: MIT OR GPL-2.0 */
/*
 * nvmepeer_device/submit.h: from a group of lanes with commands to entries in
 * the submission ring and one doorbell.
 *
 * The way of a group (the lanes of a warp that call together for one queue
 * pair), atomics in brackets, each done once for the group by one lane:
 *
 *	reserve	credits [add] and cids [exchange of a word of 32], both at once;
 *		if that does not give all, by looking first, for as many lanes
 *		as possible
 *	slots	[add] tickets and inside += n: n slots in a row
 *	write	each lane stores its entry, 4 x 16 bytes
 *	fence	one fence_publish: data and entries before the doorbell
 *	publish	[add] inside -= n, waiting += 1
 *	ring	only if waiting was 0: tail doorbell if nobody is inside, head
 *		doorbell if it moved, then [add] waiting -= those served; again
 *		while others came
 *
 * What can block: a group that stops for good between "slots" and "publish",
 * or as ringer between "publish" and its last add, keeps the queue pair's
 * doorbell from being rung.  Both are straight lines without a wait for
 * anybody, so only a thread that is never scheduled again does that; the others
 * get NVMEPEER_E_TIMEOUT or _E_FULL.  Nobody else is waited for anywhere: a
 * full queue is waited for before a slot is taken, and every waiter takes
 * completion entries, its own or not.
 */
#ifndef NVMEPEER_DEVICE_SUBMIT_H
#define NVMEPEER_DEVICE_SUBMIT_H

/* Position of the set bit of @bits that has @rank set bits below it. */
NVMEPEER_FN uint32_t nvmepeer_select_bit(uint32_t bits, uint32_t rank)
{
	if (bits == 0xffffffffu)
		return rank;
	for (; rank; rank--)
		bits &= bits - 1;
	return nvmepeer_first_bit(bits);
}

/* The lowest @count set bits of @bits, which has more than that. */
NVMEPEER_FN uint32_t nvmepeer_lowest_bits(uint32_t bits, uint32_t count)
{
	return bits & (((uint32_t)1 << nvmepeer_select_bit(bits, count)) - 1);
}

/* Which word of free cids a group tries first: groups of one queue pair differ. */
NVMEPEER_FN uint32_t nvmepeer_first_word(const struct nvmepeer_queue *queue)
{
	return (nvmepeer_home() * 2654435769u >> 16) & queue->cid_words_mask;
}

/*
 * The usual case: credits for all of @want and cids for all of them in one of
 * a few words.  One lane.  Both are taken first and looked at then.  Returns
 * the cids as bits of @word, or 0 with nothing taken.
 */
NVMEPEER_FN uint32_t nvmepeer_reserve_all(const struct nvmepeer_queue *queue, uint32_t want,
					  uint32_t *word)
{
	uint32_t bits, have;

	*word = nvmepeer_first_word(queue);
	bits = nvmepeer_exchange32(&queue->free_cids[*word], 0);
	have = nvmepeer_add32(&queue->state->credits, 0 - want);
	for (uint32_t tries = 0; (int32_t)have >= (int32_t)want; tries++) {
		uint32_t found = nvmepeer_count_bits(bits), take = bits;

		if (found > want)
			take = nvmepeer_lowest_bits(bits, want);
		if (found >= want && take == bits)
			return take;
		if (bits)
			nvmepeer_or32(&queue->free_cids[*word],
				      found >= want ? bits & ~take : bits);
		if (found >= want)
			return take;
		if (tries == 4)
			break;
		*word = (*word + 1) & queue->cid_words_mask;
		bits = nvmepeer_exchange32(&queue->free_cids[*word], 0);
	}
	if ((int32_t)have < (int32_t)want && bits)
		nvmepeer_or32(&queue->free_cids[*word], bits);
	nvmepeer_add32(&queue->state->credits, want);
	return 0;
}

/*
 * One lane takes credits for up to @want commands, looking first, so that
 * crowds do not hide credits from each other.  Returns for how many.
 */
NVMEPEER_FN uint32_t nvmepeer_take_credits(const struct nvmepeer_queue *queue, uint32_t want)
{
	uint32_t *credits = &queue->state->credits;
	uint32_t have = nvmepeer_load32(credits);
	uint32_t take = (int32_t)have <= 0 ? 0 : have < want ? have : want;

	if (take && nvmepeer_compare_exchange32(credits, have, have - take) != have)
		return 0;
	return take;
}

/*
 * The slow case: as many of the @pending lanes as there are credits for, with
 * cids from wherever they are free.  Collective.  A lane that got one has its
 * cid in @cid.  Returns how many lanes, lowest first, got one.
 */
NVMEPEER_FN uint32_t nvmepeer_reserve_some(const struct nvmepeer_queue *queue,
					   struct nvmepeer_group group, nvmepeer_mask pending,
					   uint32_t *cid)
{
	uint32_t rank = nvmepeer_rank(pending, group.lane);
	uint32_t word = nvmepeer_first_word(queue), limit = 0, have = 0;
	bool leads = group.lane == group.leader, wants = pending >> group.lane & 1;

	if (leads)
		limit = nvmepeer_take_credits(queue, nvmepeer_mask_count(pending));
	limit = nvmepeer_group_copy32(group, limit, group.leader);
	for (uint32_t tries = 0; have < limit && tries <= queue->cid_words_mask; tries++) {
		uint32_t bits = 0, found, take;

		if (leads)
			bits = nvmepeer_exchange32(&queue->free_cids[word], 0);
		bits = nvmepeer_group_copy32(group, bits, group.leader);
		found = nvmepeer_count_bits(bits);
		take = found < limit - have ? found : limit - have;
		if (wants && rank >= have && rank < have + take)
			*cid = 32 * word + nvmepeer_select_bit(bits, rank - have);
		if (leads && take < found)
			nvmepeer_or32(&queue->free_cids[word],
				      bits & ~nvmepeer_lowest_bits(bits, take));
		have += take;
		word = (word + 1) & queue->cid_words_mask;
	}
	if (leads && have < limit)
		nvmepeer_add32(&queue->state->credits, limit - have);
	return have;
}

/* Hands out @count slots in a row.  Collective; returns the first ticket. */
NVMEPEER_FN uint32_t nvmepeer_take_slots(const struct nvmepeer_queue *queue,
					 struct nvmepeer_group group, uint32_t count)
{
	uint64_t add = (uint64_t)count << NVMEPEER_TICKET_SHIFT |
		       (uint64_t)count << NVMEPEER_INSIDE_SHIFT;
	uint64_t old = 0;

	if (group.lane == group.leader)
		old = nvmepeer_add64(&queue->state->tail, add);
	return nvmepeer_group_copy32(group, (uint32_t)(old >> NVMEPEER_TICKET_SHIFT),
				     group.leader);
}

/* Stores an entry into its slot. */
NVMEPEER_FN void nvmepeer_write_entry(const struct nvmepeer_queue *queue, uint32_t ticket,
				      const struct nvmepeer_sqe *entry)
{
	uint64_t slot = queue->sq + (uint64_t)(ticket & queue->sq_mask) * 64;

	nvmepeer_sq_store(slot, &entry->dword[0]);
	nvmepeer_sq_store(slot + 16, &entry->dword[4]);
	nvmepeer_sq_store(slot + 32, &entry->dword[8]);
	nvmepeer_sq_store(slot + 48, &entry->dword[12]);
}

/* Trades 16 bytes with the lane @distance away: the lower one gives @high, the upper @low. */
NVMEPEER_FN void nvmepeer_trade(nvmepeer_mask mask, uint32_t lane, uint32_t distance,
				uint32_t *low, uint32_t *high)
{
	bool upper = lane & distance;

	for (int i = 0; i < 4; i++) {
		uint32_t got = nvmepeer_lanes_copy32(mask, upper ? low[i] : high[i],
						     lane ^ distance);

		if (upper)
			low[i] = got;
		else
			high[i] = got;
	}
}

/*
 * Stores the entries of lanes that all send, four lanes to one entry at a
 * time: they turn a square of 4 x 4 pieces of 16 bytes, so that each store
 * covers 64 bytes in a row.  Over a bus that is 3.5 times faster than lanes
 * that store their own.  Every lane has its own @ticket, in a row.
 */
NVMEPEER_FN void nvmepeer_write_turned(const struct nvmepeer_queue *queue, nvmepeer_mask mask,
				       uint32_t lane, uint32_t ticket, struct nvmepeer_sqe *entry)
{
	nvmepeer_trade(mask, lane, 1, &entry->dword[0], &entry->dword[4]);
	nvmepeer_trade(mask, lane, 1, &entry->dword[8], &entry->dword[12]);
	nvmepeer_trade(mask, lane, 2, &entry->dword[0], &entry->dword[8]);
	nvmepeer_trade(mask, lane, 2, &entry->dword[4], &entry->dword[12]);
	ticket -= lane & 3;
	for (uint32_t i = 0; i < 4; i++)
		nvmepeer_sq_store(queue->sq + (uint64_t)((ticket + i) & queue->sq_mask) * 64 +
				  (lane & 3) * 16, &entry->dword[4 * i]);
}

/* Head doorbell, by whoever rings: tells the controller which entries were taken. */
NVMEPEER_FN void nvmepeer_ring_head(const struct nvmepeer_queue *queue)
{
	uint32_t head = nvmepeer_load32(&queue->state->head);
	uint32_t rung = nvmepeer_load32(&queue->state->head_rung);

	if (head == rung)
		return;
	nvmepeer_doorbell_store(queue->cq_doorbell, head & queue->cq_mask);
	nvmepeer_store32(&queue->state->head_rung, head);
}

/*
 * Rings for everybody.  One thread; it has just raised waiting from 0, and
 * @tail is the word after that.  @rung is the last ticket whose tail doorbell
 * is known to be rung.  The first fence puts the entries of the other groups
 * before the doorbell.  A doorbell value is never stored twice (base
 * specification 5.2.2: an error) and never goes back, because the
 * second fence puts this thread's doorbells before those of the next to ring.
 */
NVMEPEER_FN void nvmepeer_ring(const struct nvmepeer_queue *queue, uint64_t tail, uint32_t rung)
{
	do {
		uint32_t ticket = (uint32_t)(tail >> NVMEPEER_TICKET_SHIFT);
		uint64_t served = tail & NVMEPEER_WAITING_MASK;

		nvmepeer_fence_claimed();
		if (!(tail >> NVMEPEER_INSIDE_SHIFT & NVMEPEER_INSIDE_MASK) && ticket != rung) {
			nvmepeer_doorbell_store(queue->sq_doorbell, ticket & queue->sq_mask);
			rung = ticket;
		}
		nvmepeer_ring_head(queue);
		nvmepeer_fence_device();
		tail = nvmepeer_add64(&queue->state->tail, 0 - served) - served;
	} while (tail & NVMEPEER_WAITING_MASK);
}

/* The entries of @count slots are written: let the controller see them. */
NVMEPEER_FN void nvmepeer_publish(const struct nvmepeer_queue *queue,
				  struct nvmepeer_group group, uint32_t count)
{
	uint64_t add = 1 - ((uint64_t)count << NVMEPEER_INSIDE_SHIFT);
	uint64_t old;

	nvmepeer_group_sync(group);
	if (group.lane != group.leader)
		return;
	nvmepeer_fence_publish();
	old = nvmepeer_add64(&queue->state->tail, add);
	if (!(old & NVMEPEER_WAITING_MASK))
		nvmepeer_ring(queue, old + add,
			      (uint32_t)(old >> NVMEPEER_TICKET_SHIFT) ^ 0x80000000u);
}

/*
 * Rings the head doorbell although nobody sends: a quarter of the completion
 * ring was taken since it was last due.  Tail doorbells are up to date unless
 * somebody is inside, who will come and ring or leave it to us.
 */
NVMEPEER_SLOW_FN void nvmepeer_head_due(const struct nvmepeer_queue *queue)
{
	uint64_t old = nvmepeer_add64(&queue->state->tail, 1);
	uint32_t ticket = (uint32_t)(old >> NVMEPEER_TICKET_SHIFT);

	if (old & NVMEPEER_WAITING_MASK)
		return;
	if (old >> NVMEPEER_INSIDE_SHIFT & NVMEPEER_INSIDE_MASK)
		ticket ^= 0x80000000u;
	nvmepeer_ring(queue, old + 1, ticket);
}

#endif /* NVMEPEER_DEVICE_SUBMIT_H */
