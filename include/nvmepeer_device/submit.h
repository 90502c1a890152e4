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
 *	encode	each lane makes its entry, and its PRP list if it needs one
 *	slots	[add] tickets and inside += n: n slots in a row
 *	write	each lane stores its entry, 4 x 16 bytes
 *	fence	one fence_publish: data and entries before the doorbell
 *	publish	[add] inside -= n, waiting += 1
 *	ring	only if waiting was 0: tail doorbell if nobody is inside, head
 *		doorbell if it moved and this group is not alone, then [add]
 *		waiting -= those served; again while others came, but not for
 *		ever: see nvmepeer_offer_bell()
 *
 * Nobody waits for anybody here: a full queue is waited for before a slot is
 * taken, and every waiter takes completion entries, its own or not.
 * Documentation/device-library.rst names what a thread holds that never runs
 * again.
 *
 * The fences of the library, each with what it pairs with.  A release does
 * nothing without the acquire, and the other way round:
 *
 *	A  nvmepeer_publish, fence_device if others were there when it took its
 *	   slots, else fence_publish: this group's data, lists and entries before
 *	   its add to the tail.  With B at who rings for it, itself or another; a
 *	   fence_publish also before its own doorbell, with the controller.
 *	B  nvmepeer_ring_once, fence_publish: the entries of other groups, seen
 *	   published by an add to the tail, before the doorbell that tells the
 *	   controller of them.  Acquire of A and C, release at system scope.
 *	C  nvmepeer_ring_once, fence_device: doorbells, bell_rung and head_rung
 *	   before the add that lets go of the bell.  With B or D at who takes it next.
 *	D  nvmepeer_ring_once, fence_claimed: B, where no entry or no entry but
 *	   this group's own waits for the doorbell; nvmepeer_solo_begin: before
 *	   what was rung.  Acquire of C and E.
 *	E  nvmepeer_head_due, fence_device: the head's exchange before the add to
 *	   the tail.  With B at who has the bell, whose add then shows this one.
 *	F  nvmepeer_offer_bell, fence_device: the tail's bit, doorbells and
 *	   bell_rung before bell.  With G.
 *	G  nvmepeer_got_bell, fence_claimed: bell before bell_rung, the tail and
 *	   the doorbells.  Acquire of F.
 *	H  nvmepeer_send_reserved, fence_claimed: the exchange that gave a cid
 *	   before the result word and the list of that cid.  Acquire of A, L, M and N.
 *	I  nvmepeer_believe, fence_consume: a completion entry (or the word read
 *	   back) before the data.  With the controller.
 *	J  nvmepeer_hand_out, fence_device: that the data is there (I) before the
 *	   result word of another group.  With K.
 *	K  nvmepeer_retire, fence_device: reading a result word that another group
 *	   wrote before the data, and before its cid is free.  Acquire of J, and
 *	   with H.
 *	L  nvmepeer_sweep, fence_device: the same, for abandoned cids.  With H.
 *	M  nvmepeer_solo_end, fence_device: head, tail and what was rung before the
 *	   credits are given back.  With H.
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
 * Cids in one go: bits of a word of free ones and, where groups have more than
 * 32 lanes, of its neighbour.  None: @bits is 0.
 */
struct nvmepeer_reserved {
	uint32_t word;
	uint32_t bits;
	uint32_t more;		/* bits of word ^ 1 */
};

NVMEPEER_FN void nvmepeer_give_cids(const struct nvmepeer_queue *queue, uint32_t word,
				    uint32_t bits)
{
	if (bits)
		nvmepeer_post_or32(&queue->free_cids[word], bits);
}

/* What lies in @word and, if @pair, in its neighbour; taken. */
NVMEPEER_FN struct nvmepeer_reserved nvmepeer_take_word(const struct nvmepeer_queue *queue,
							uint32_t word, bool pair)
{
	struct nvmepeer_reserved taken = { word, 0, 0 };

	taken.bits = nvmepeer_exchange32(&queue->free_cids[word], 0);
	if (pair)
		taken.more = nvmepeer_exchange32(&queue->free_cids[word ^ 1], 0);
	return taken;
}

/* Gives back all but @keep of what was taken, the lowest of @bits first. */
NVMEPEER_FN struct nvmepeer_reserved nvmepeer_keep(const struct nvmepeer_queue *queue,
						   struct nvmepeer_reserved taken, uint32_t keep)
{
	uint32_t found = nvmepeer_count_bits(taken.bits), bits = taken.bits, more = 0;

	if (found > keep)
		bits = nvmepeer_lowest_bits(bits, keep);
	else if (taken.more && keep > found)
		more = found + nvmepeer_count_bits(taken.more) > keep ?
		       nvmepeer_lowest_bits(taken.more, keep - found) : taken.more;
	nvmepeer_give_cids(queue, taken.word, taken.bits & ~bits);
	if (taken.more)
		nvmepeer_give_cids(queue, taken.word ^ 1, taken.more & ~more);
	taken.bits = bits;
	taken.more = more;
	return taken;
}

/* What was asked for, on its way. */
struct nvmepeer_asked {
	struct nvmepeer_reserved taken;
	uint32_t credits;	/* before what was taken */
	bool pair;
};

/* Takes credits for @want and a word of cids, or a pair, before either was looked at.  One lane. */
NVMEPEER_FN struct nvmepeer_asked nvmepeer_ask(const struct nvmepeer_queue *queue, uint32_t want)
{
	struct nvmepeer_asked asked;

	asked.pair = NVMEPEER_LANES > 32 && want > 32 && queue->cid_words_mask;
	asked.taken = nvmepeer_take_word(queue, nvmepeer_first_word(queue), asked.pair);
	asked.credits = nvmepeer_add32(&queue->state->credits, 0 - want);
	return asked;
}

/*
 * The usual case: credits for all of @want and cids for all of them in one of
 * a few words, or pairs of words.  One lane.  If it does not succeed, nothing is taken.
 */
NVMEPEER_FN struct nvmepeer_reserved nvmepeer_reserve_all(const struct nvmepeer_queue *queue,
							  uint32_t want,
							  struct nvmepeer_asked asked)
{
	struct nvmepeer_reserved taken = asked.taken;
	uint32_t have = asked.credits;
	bool pair = asked.pair;

	for (uint32_t tries = 0; (int32_t)have >= (int32_t)want; tries++) {
		if (nvmepeer_count_bits(taken.bits) + nvmepeer_count_bits(taken.more) >= want)
			return nvmepeer_keep(queue, taken, want);
		taken = nvmepeer_keep(queue, taken, 0);
		if (tries == 4)
			break;
		taken = nvmepeer_take_word(queue, (taken.word + (pair ? 2 : 1)) &
					   queue->cid_words_mask, pair);
	}
	nvmepeer_post_add32(&queue->state->credits, want);
	return nvmepeer_keep(queue, taken, 0);
}

/* The cid of the lane with @rank among those that send. */
NVMEPEER_FN uint32_t nvmepeer_reserved_cid(struct nvmepeer_reserved taken, uint32_t rank)
{
	uint32_t found = NVMEPEER_LANES > 32 ? nvmepeer_count_bits(taken.bits) : 32;

	if (rank < found)
		return 32 * taken.word + nvmepeer_select_bit(taken.bits, rank);
	return 32 * (taken.word ^ 1) + nvmepeer_select_bit(taken.more, rank - found);
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
 * cid in @cid.  Returns how many lanes, lowest first, got one; @short_of_cids if
 * there were credits for more.
 */
NVMEPEER_FN uint32_t nvmepeer_reserve_some(const struct nvmepeer_queue *queue,
					   struct nvmepeer_group group, nvmepeer_mask pending,
					   uint32_t *cid, bool *short_of_cids)
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
			nvmepeer_post_or32(&queue->free_cids[word],
					   bits & ~nvmepeer_lowest_bits(bits, take));
		have += take;
		word = (word + 1) & queue->cid_words_mask;
	}
	*short_of_cids = have < limit;
	if (leads && *short_of_cids)
		nvmepeer_post_add32(&queue->state->credits, limit - have);
	return have;
}

/* Slots in a row. */
struct nvmepeer_slots {
	uint32_t first;		/* ticket */
	uint32_t before;	/* lower half of the tail word that they were taken from */
};

/* Hands out @count slots.  Collective.  They do not count if the queue pair is lost. */
NVMEPEER_FN struct nvmepeer_slots nvmepeer_take_slots(const struct nvmepeer_queue *queue,
						      struct nvmepeer_group group, uint32_t count)
{
	uint64_t add = (uint64_t)count << NVMEPEER_TICKET_SHIFT |
		       (uint64_t)count << NVMEPEER_INSIDE_SHIFT;
	struct nvmepeer_slots slots;
	uint64_t old = 0;

	if (group.lane == group.leader)
		old = nvmepeer_add64(&queue->state->tail, add);
	slots.first = nvmepeer_group_copy32(group, (uint32_t)(old >> NVMEPEER_TICKET_SHIFT),
					    group.leader);
	slots.before = nvmepeer_group_copy32(group, (uint32_t)old, group.leader);
	return slots;
}

/* The queue pair was lost: the slots will not be written.  Collective. */
NVMEPEER_FN void nvmepeer_leave_slots(const struct nvmepeer_queue *queue,
				      struct nvmepeer_group group, uint32_t count)
{
	if (group.lane == group.leader)
		nvmepeer_add64(&queue->state->tail, 0 - ((uint64_t)count << NVMEPEER_INSIDE_SHIFT));
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

/*
 * Trades 16 bytes with the lane @distance away: the lower one gives @high, the upper @low.
 * By bits, as compilers make branches of conditions, in which the lanes part.
 */
NVMEPEER_FN void nvmepeer_trade(nvmepeer_mask mask, uint32_t lane, uint32_t distance,
				uint32_t *low, uint32_t *high)
{
	uint32_t upper = lane & distance ? 0xffffffffu : 0;

	for (int i = 0; i < 4; i++) {
		uint32_t swap = (low[i] ^ high[i]) & upper;
		uint32_t keep = low[i] ^ swap;
		uint32_t got = nvmepeer_lanes_copy32(mask, high[i] ^ swap, lane ^ distance);

		swap = (keep ^ got) & upper;
		low[i] = keep ^ swap;
		high[i] = got ^ swap;
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

/*
 * Head doorbell, by who has the bell: tells the controller which entries were taken,
 * up to @head, if that is not what it was told last.
 */
NVMEPEER_FN void nvmepeer_ring_head(const struct nvmepeer_queue *queue, uint32_t head,
				    uint32_t rung)
{
	if (head == rung)
		return;
	nvmepeer_doorbell_store(queue->cq_doorbell, head & queue->cq_mask);
	nvmepeer_store32(&queue->state->head_rung, head);
}

/*
 * For whom a group rings first.  In a crowd others may wait for either doorbell.  Who is
 * alone leaves the head to whoever takes the last of a quarter of the completion ring,
 * see nvmepeer_head_due(): two loads and a posted store less, which it would wait for.
 */
enum nvmepeer_ringing {
	NVMEPEER_RING_ALONE,	/* tail doorbell, for its own entries only */
	NVMEPEER_RING_HEAD,	/* head doorbell; no entries wait */
	NVMEPEER_RING_CROWD,	/* both, for whoever waits */
};

/*
 * Rings once, by who has the bell: for all that @tail, the word as it was seen
 * last, counts as waiting.  @rung is the last ticket whose doorbell is known to
 * be rung; a doorbell value is never stored twice (base specification 5.2.2: an
 * error) and never goes back.  Returns the tail word after it, or 0 if the queue
 * pair is lost: then nothing was stored.
 */
NVMEPEER_FN uint64_t nvmepeer_ring_once(const struct nvmepeer_queue *queue, uint64_t tail,
					uint32_t *rung, enum nvmepeer_ringing ringing)
{
	uint32_t ticket = (uint32_t)(tail >> NVMEPEER_TICKET_SHIFT);
	uint64_t served = tail & (NVMEPEER_WAITING_MASK | NVMEPEER_TAIL_OFFERED);
	bool due = !(tail >> NVMEPEER_INSIDE_SHIFT & NVMEPEER_INSIDE_MASK) && ticket != *rung;
	bool heads = ringing != NVMEPEER_RING_ALONE;
	uint32_t head = 0, head_rung = 0;

	if (tail & NVMEPEER_TAIL_LOST)
		return 0;
	if (ringing != NVMEPEER_RING_CROWD || !due)
		nvmepeer_fence_claimed();	/* D */
	else
		nvmepeer_fence_publish();	/* B */
	/* On their way while the other doorbell is stored. */
	if (heads) {
		head = nvmepeer_load32(&queue->state->head);
		head_rung = nvmepeer_load32(&queue->state->head_rung);
	}
	if (due) {
		nvmepeer_doorbell_store(queue->sq_doorbell, ticket & queue->sq_mask);
		nvmepeer_store32(&queue->state->bell_rung, ticket);
		*rung = ticket;
	}
	if (heads)
		nvmepeer_ring_head(queue, head, head_rung);
	nvmepeer_fence_device();		/* C */
	return nvmepeer_add64(&queue->state->tail, 0 - served) - served;
}

/* So many times in a row one group rings before it offers the bell to others. */
#define NVMEPEER_RINGS_IN_A_ROW 4

/* Longest that the bell lies free, in nanoseconds. */
#define NVMEPEER_OFFER_LIMIT 12800

/*
 * Offers the bell: from here on the next group that publishes takes it.  Where
 * none comes the offer ends, as commands are waiting that somebody must ring
 * for; it lasts twice as long each time.  So a group goes on ringing for others
 * only while some come every time it rings, but none while it does not.
 * Returns false if the bell was taken.  Nothing is held meanwhile: who never
 * runs again here is not missed.
 */
NVMEPEER_FN bool nvmepeer_offer_bell(const struct nvmepeer_queue *queue, uint32_t offers)
{
	uint32_t rest = offers < 7 ? 100u << offers : NVMEPEER_OFFER_LIMIT;

	nvmepeer_add64(&queue->state->tail, NVMEPEER_TAIL_OFFERED);
	nvmepeer_fence_device();		/* F */
	nvmepeer_store32(&queue->state->bell, 1);
	nvmepeer_pause(rest);
	return nvmepeer_exchange32(&queue->state->bell, 0);
}

/* For who has just got the bell, from whomever: the tail and, in @rung, what was rung. */
NVMEPEER_FN uint64_t nvmepeer_got_bell(const struct nvmepeer_queue *queue, uint32_t *rung)
{
	nvmepeer_fence_claimed();		/* G */
	*rung = nvmepeer_load32(&queue->state->bell_rung);
	return nvmepeer_load64(&queue->state->tail);
}

/* Rings for those who came while this group rang. */
NVMEPEER_SLOW_FN void nvmepeer_ring_on(const struct nvmepeer_queue *queue, uint64_t tail,
				       uint32_t rung)
{
	for (uint32_t rounds = 1; tail & NVMEPEER_WAITING_MASK; rounds++) {
		if (rounds % NVMEPEER_RINGS_IN_A_ROW == 0) {
			if (!nvmepeer_offer_bell(queue, rounds / NVMEPEER_RINGS_IN_A_ROW))
				return;
			/* Perhaps another's offer, who took this group's and rang. */
			tail = nvmepeer_got_bell(queue, &rung);
		}
		tail = nvmepeer_ring_once(queue, tail, &rung, NVMEPEER_RING_CROWD);
	}
}

/* The bell was seen to be on offer: takes it if nobody else does, and rings. */
NVMEPEER_SLOW_FN void nvmepeer_take_bell(const struct nvmepeer_queue *queue)
{
	uint64_t tail;
	uint32_t rung;

	if (!nvmepeer_exchange32(&queue->state->bell, 0))
		return;
	tail = nvmepeer_got_bell(queue, &rung);
	nvmepeer_ring_on(queue, tail, rung);
}

/*
 * This group has just added 1 to waiting: @tail is the word after that.  One
 * lane.
 */
NVMEPEER_FN void nvmepeer_ring(const struct nvmepeer_queue *queue, uint64_t tail, uint32_t rung,
			       enum nvmepeer_ringing ringing)
{
	if ((tail & NVMEPEER_WAITING_MASK) != 1) {
		if (tail & NVMEPEER_TAIL_OFFERED)
			nvmepeer_take_bell(queue);
		return;
	}
	tail = nvmepeer_ring_once(queue, tail, &rung, ringing);
	if (tail & NVMEPEER_WAITING_MASK)
		nvmepeer_ring_on(queue, tail, rung);
}

/*
 * The entries of @count slots are written: let the controller see them.  If nobody
 * was there when the slots were taken, all slots before them had been rung for; if
 * nobody took one after them either, the group is alone.  In a crowd somebody rings
 * for several, and releases their entries to the system; that they reach who rings is
 * enough then, and costs a third.  Returns, to the leader, the head of the completion
 * ring, whose load costs nothing beside the addition.
 */
NVMEPEER_FN uint32_t nvmepeer_publish(const struct nvmepeer_queue *queue,
				      struct nvmepeer_group group, struct nvmepeer_slots slots,
				      uint32_t count)
{
	uint64_t add = 1 - ((uint64_t)count << NVMEPEER_INSIDE_SHIFT);
	uint64_t alone = (uint64_t)(slots.first + count) << NVMEPEER_TICKET_SHIFT | 1;
	bool crowd = slots.before;
	uint32_t head;
	uint64_t tail;

	nvmepeer_group_sync(group);
	if (group.lane != group.leader)
		return 0;
	if (crowd)
		nvmepeer_fence_device();	/* A */
	else
		nvmepeer_fence_publish();	/* A */
	head = nvmepeer_load32(&queue->state->head);
	tail = nvmepeer_add64(&queue->state->tail, add) + add;
	nvmepeer_ring(queue, tail, (uint32_t)(tail >> NVMEPEER_TICKET_SHIFT) ^ 0x80000000u,
		      !crowd && tail == alone ? NVMEPEER_RING_ALONE : NVMEPEER_RING_CROWD);
	/* Others have taken entries meanwhile. */
	return crowd ? nvmepeer_load32(&queue->state->head) : head;
}

/*
 * Rings the head doorbell although nobody sends, or only who is alone: a quarter of the
 * completion ring was taken since it was last due.  Tail doorbells are up to date unless
 * somebody is inside, who will come and ring or leave it to us.
 */
NVMEPEER_SLOW_FN void nvmepeer_head_due(const struct nvmepeer_queue *queue)
{
	uint32_t ticket;
	uint64_t tail;

	nvmepeer_fence_device();		/* E */
	tail = nvmepeer_add64(&queue->state->tail, 1) + 1;
	ticket = (uint32_t)(tail >> NVMEPEER_TICKET_SHIFT);
	if (tail >> NVMEPEER_INSIDE_SHIFT & NVMEPEER_INSIDE_MASK)
		ticket ^= 0x80000000u;
	nvmepeer_ring(queue, tail, ticket, NVMEPEER_RING_HEAD);
}

#endif /* NVMEPEER_DEVICE_SUBMIT_H */
