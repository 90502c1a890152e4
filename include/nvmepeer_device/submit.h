/* SPDX-License-Identifier: MIT OR GPL-2.0 */
/*
 * nvmepeer_device/submit.h: the submission path, from the commands of a group
 * of lanes to entries in the submission ring and one doorbell write.
 *
 * The steps of a group (the lanes of a warp that call together for one queue
 * pair).  One lane performs the atomics, in brackets, for the whole group:
 *
 *	reserve	credits [add] and CIDs [exchange of a word of 32], both at
 *		once; if that does not give all of them, check first and
 *		reserve for as many lanes as possible
 *	encode	each lane encodes its entry, and its PRP list if it needs one
 *	slots	[add] tickets and unwritten += n: n consecutive slots
 *	write	each lane stores its entry, 4 x 16 bytes
 *	fence	one nvp_fence_publish(): data and entries before the doorbell
 *	publish	[add] unwritten -= n, waiting += 1
 *	ring	only if waiting was 0: tail doorbell if no slot is unwritten,
 *		head doorbell if it moved and the group is not uncontended,
 *		then [add] waiting -= the groups served; repeat while more
 *		groups arrive, for a limited time: see nvp_offer_doorbell()
 *
 * Submission is non-blocking between threads: a group waits for room before it
 * takes a slot, and every group that waits reaps completion entries, its own
 * and others'.  Documentation/device-library.rst lists what a thread holds if
 * it is never scheduled again.
 *
 * The fences of the library, each with the fence it pairs with.  A release
 * without its acquire orders nothing, and an acquire without its release
 * neither:
 *
 *	A  nvp_publish_entries, nvp_fence_device if other groups were active
 *	   when it took its slots, else nvp_fence_publish: this group's data,
 *	   PRP lists and entries before its add to the tail.  Pairs with B of
 *	   the doorbell owner; an nvp_fence_publish also orders before the
 *	   group's own doorbell, for the controller.
 *	B  nvp_ring_once, nvp_fence_publish: entries of other groups, published
 *	   by an add to the tail, before the doorbell that makes the controller
 *	   fetch them.  Acquire of A, C and E, release at system scope.
 *	C  nvp_ring_once, nvp_fence_device: doorbells, tail_rung and head_rung
 *	   before the add that gives up ownership.  Pairs with B or D of the
 *	   next owner.
 *	D  nvp_ring_once, nvp_fence_device_acquire: B, where no entry or only
 *	   this group's own needs the doorbell; nvp_exclusive_begin: before
 *	   head_rung is read.  Acquire of C, E and M.
 *	E  nvp_ring_head_due, nvp_fence_device: the exchange of the head before
 *	   the add to the tail.  Pairs with B or D of the doorbell owner, whose
 *	   add then observes this one.
 *	F  nvp_offer_doorbell, nvp_fence_device: the tail's bit, doorbells and
 *	   tail_rung before doorbell_offer.  Pairs with G.
 *	G  nvp_doorbell_acquired, nvp_fence_device_acquire: doorbell_offer before
 *	   tail_rung, the tail and the doorbells.  Acquire of F.
 *	H  nvp_send_reserved, nvp_fence_device_acquire: the exchange that gave a
 *	   CID before the result word and the PRP list of that CID.  Acquire of
 *	   A, K, L and M.
 *	I  nvp_acquire_completion, nvp_fence_consume: a completion entry (or the
 *	   word read back) before the data.  Pairs with the controller.
 *	J  nvp_publish_results, nvp_fence_device: the arrival of the data (I)
 *	   before the result word of another group.  Pairs with K.
 *	K  nvp_retire, nvp_fence_device: the read of a result word that another
 *	   group wrote before the data, and before its CID is free.  Acquire of
 *	   J, and pairs with H.
 *	L  nvp_reclaim, nvp_fence_device: the same for abandoned CIDs.  Pairs
 *	   with H.
 *	M  nvp_exclusive_end, nvp_fence_device: head, tail, tail_rung and
 *	   head_rung before the credits are returned.  Pairs with H and D.
 *	N  nvp_abandon, nvp_fence_device: the result word that this use of the
 *	   CID has cleared, and the count of abandoned commands, before the
 *	   CID's bit among them.  Pairs with O.
 *	O  nvp_reclaim, nvp_fence_device_acquire: the exchange that took
 *	   abandoned CIDs before their result words and the subtraction from
 *	   their count.  Acquire of N.
 *	P  nvp_exclusive_send and nvp_exclusive_execute_single,
 *	   nvp_fence_publish: data, PRP lists and entries of the owner before
 *	   its tail doorbell.  Pairs with the controller.
 *	Q  nvp_state_begin, nvp_fence_device: the initial state before its first
 *	   use.  Pairs with the acquire by which the caller orders other threads
 *	   after the initialisation.
 *	R  nvmepeer_counter_add, nvp_fence_device: the arrival of the data (I) and
 *	   the status before the count.  Pairs with S.
 *	S  nvmepeer_counter_test, nvp_fence_device_acquire: the count before the
 *	   status and the data.  Acquire of R.
 */
#ifndef NVMEPEER_DEVICE_SUBMIT_H
#define NVMEPEER_DEVICE_SUBMIT_H

#include "nvme.h"
#include "platform.h"
#include "queue.h"
#include "wait.h"

/* Position of the set bit of @bits that has @rank set bits below it. */
NVP_FN uint32_t nvp_select_bit(uint32_t bits, uint32_t rank)
{
	if (bits == 0xffffffffu)
		return rank;
	for (; rank; rank--)
		bits &= bits - 1;
	return nvp_first_bit(bits);
}

/* The lowest @count set bits of @bits, which has more than that. */
NVP_FN uint32_t nvp_lowest_bits(uint32_t bits, uint32_t count)
{
	return bits & (((uint32_t)1 << nvp_select_bit(bits, count)) - 1);
}

/*
 * The word of free CIDs that a group tries first; groups of one queue pair
 * start at different words.
 */
NVP_FN uint32_t nvp_first_cid_word(const struct nvmepeer_queue *queue)
{
	return (nvp_start_hash() * 2654435769u >> 16) & queue->cid_words_mask;
}

/*
 * CIDs that were taken together: bits of a word of free CIDs and, where groups
 * have more than 32 lanes, of the neighbouring word.  None: @bits is 0.
 */
struct nvp_cid_bits {
	uint32_t word;
	uint32_t bits;
	uint32_t more;		/* bits of word ^ 1 */
};

NVP_FN void nvp_return_cids(const struct nvmepeer_queue *queue, uint32_t word,
			    uint32_t bits)
{
	if (bits)
		nvp_post_or32(&queue->free_cids[word], bits);
}

/* Take all free CIDs of @word and, if @pair, of its neighbour. */
NVP_FN struct nvp_cid_bits nvp_take_cid_word(const struct nvmepeer_queue *queue,
					     uint32_t word, bool pair)
{
	struct nvp_cid_bits taken = { word, 0, 0 };

	taken.bits = nvp_exchange32(&queue->free_cids[word], 0);
	if (pair)
		taken.more = nvp_exchange32(&queue->free_cids[word ^ 1], 0);
	return taken;
}

/* Return all but @keep of the CIDs taken; keeps the lowest of @bits first. */
NVP_FN struct nvp_cid_bits nvp_keep_cids(const struct nvmepeer_queue *queue,
					 struct nvp_cid_bits taken, uint32_t keep)
{
	uint32_t found = nvp_count_bits(taken.bits), bits = taken.bits, more = 0;

	if (found > keep)
		bits = nvp_lowest_bits(bits, keep);
	else if (taken.more && keep > found)
		more = found + nvp_count_bits(taken.more) > keep ?
		       nvp_lowest_bits(taken.more, keep - found) : taken.more;
	nvp_return_cids(queue, taken.word, taken.bits & ~bits);
	if (taken.more)
		nvp_return_cids(queue, taken.word ^ 1, taken.more & ~more);
	taken.bits = bits;
	taken.more = more;
	return taken;
}

/* A reservation whose atomics have been issued. */
struct nvp_reservation {
	struct nvp_cid_bits taken;
	uint32_t credits;	/* the value before the subtraction */
	bool pair;
};

/*
 * Take credits for @needed and a word of CIDs, or a pair of words, without
 * checking either first, so that both atomics are in flight together.  One
 * lane.
 */
NVP_FN struct nvp_reservation nvp_reserve_start(const struct nvmepeer_queue *queue, uint32_t needed)
{
	struct nvp_reservation reservation;

	reservation.pair = NVMEPEER_LANES > 32 && needed > 32 && queue->cid_words_mask;
	reservation.taken = nvp_take_cid_word(queue, nvp_first_cid_word(queue), reservation.pair);
	reservation.credits = nvp_add32(&queue->state->credits, 0 - needed);
	return reservation;
}

/*
 * The common case: credits for all of @needed, and their CIDs in one of a few
 * words or pairs of words.  One lane.  On failure nothing stays taken.
 */
NVP_FN struct nvp_cid_bits nvp_reserve_all(const struct nvmepeer_queue *queue,
					   uint32_t needed,
					   struct nvp_reservation reservation)
{
	struct nvp_cid_bits taken = reservation.taken;
	uint32_t have = reservation.credits;
	bool pair = reservation.pair;

	for (uint32_t tries = 0; (int32_t)have >= (int32_t)needed; tries++) {
		if (nvp_count_bits(taken.bits) + nvp_count_bits(taken.more) >= needed)
			return nvp_keep_cids(queue, taken, needed);
		taken = nvp_keep_cids(queue, taken, 0);
		if (tries == 4)
			break;
		taken = nvp_take_cid_word(queue, (taken.word + (pair ? 2 : 1)) &
					  queue->cid_words_mask, pair);
	}
	nvp_post_add32(&queue->state->credits, needed);
	return nvp_keep_cids(queue, taken, 0);
}

/* The CID of the lane with @rank among those that submit. */
NVP_FN uint32_t nvp_cid_of_rank(struct nvp_cid_bits taken, uint32_t rank)
{
	uint32_t found = NVMEPEER_LANES > 32 ? nvp_count_bits(taken.bits) : 32;

	if (rank < found)
		return 32 * taken.word + nvp_select_bit(taken.bits, rank);
	return 32 * (taken.word ^ 1) + nvp_select_bit(taken.more, rank - found);
}

/*
 * Take credits for up to @needed commands, by one lane, and leave @spare.  Checks
 * first: otherwise many groups at once would make the credits look negative to each
 * other, and commands in the background would take reserved slots for a moment.
 * Returns the number of credits taken.
 */
NVP_FN uint32_t nvp_take_credits(const struct nvmepeer_queue *queue, uint32_t needed,
				 uint32_t spare)
{
	uint32_t *credits = &queue->state->credits;
	uint32_t have = nvp_load32(credits), seen, room, take;

	for (;;) {
		room = have - spare;
		take = (int32_t)room <= 0 ? 0 : room < needed ? room : needed;
		if (!take)
			return 0;
		seen = nvp_compare_exchange32(credits, have, have - take);
		if (seen == have)
			return take;
		have = seen;
	}
}

/*
 * The slow case: reserve for as many of the @pending lanes as there are
 * credits beside @spare, with CIDs from any word.  Collective.  Lanes get CIDs in
 * ascending order; a lane that got one has it in @cid.  Returns the number of lanes
 * that got one.  @short_of_cids: there were credits for more.
 */
NVP_FN uint32_t nvp_reserve_some(const struct nvmepeer_queue *queue,
				 struct nvmepeer_group group, nvmepeer_mask pending,
				 uint32_t spare, uint32_t *cid, bool *short_of_cids)
{
	uint32_t rank = nvp_rank(pending, group.lane);
	uint32_t word = nvp_first_cid_word(queue), limit = 0, have = 0;
	bool leads = group.lane == group.leader, submits = pending >> group.lane & 1;

	if (leads)
		limit = nvp_take_credits(queue, nvp_mask_count(pending), spare);
	limit = nvp_group_copy32(group, limit, group.leader);
	for (uint32_t tries = 0; have < limit && tries <= queue->cid_words_mask; tries++) {
		uint32_t bits = 0, found, take;

		if (leads)
			bits = nvp_exchange32(&queue->free_cids[word], 0);
		bits = nvp_group_copy32(group, bits, group.leader);
		found = nvp_count_bits(bits);
		take = found < limit - have ? found : limit - have;
		if (submits && rank >= have && rank < have + take)
			*cid = 32 * word + nvp_select_bit(bits, rank - have);
		if (leads && take < found)
			nvp_post_or32(&queue->free_cids[word],
				      bits & ~nvp_lowest_bits(bits, take));
		have += take;
		word = (word + 1) & queue->cid_words_mask;
	}
	*short_of_cids = have < limit;
	if (leads && *short_of_cids)
		nvp_post_add32(&queue->state->credits, limit - have);
	return have;
}

/* Consecutive slots. */
struct nvp_slots {
	uint32_t first;		/* ticket */
	uint32_t before;	/* lower half of the tail word that they were taken from */
};

/*
 * Take @count slots.  Collective.  The slots are not valid if the queue pair is
 * lost.
 */
NVP_FN struct nvp_slots nvp_take_slots(const struct nvmepeer_queue *queue,
				       struct nvmepeer_group group, uint32_t count)
{
	uint64_t add = (uint64_t)count << NVP_TICKET_SHIFT |
		       (uint64_t)count << NVP_UNWRITTEN_SHIFT;
	struct nvp_slots slots;
	uint64_t old = 0;

	if (group.lane == group.leader)
		old = nvp_add64(&queue->state->tail, add);
	slots.first = nvp_group_copy32(group, (uint32_t)(old >> NVP_TICKET_SHIFT),
				       group.leader);
	slots.before = nvp_group_copy32(group, (uint32_t)old, group.leader);
	return slots;
}

/*
 * The queue pair is lost: give up slots that will not be written.  Collective.
 */
NVP_FN void nvp_drop_slots(const struct nvmepeer_queue *queue,
			   struct nvmepeer_group group, uint32_t count)
{
	if (group.lane == group.leader)
		nvp_add64(&queue->state->tail, 0 - ((uint64_t)count << NVP_UNWRITTEN_SHIFT));
}

/* Store an entry into its slot. */
NVP_FN void nvp_write_entry(const struct nvmepeer_queue *queue, uint32_t ticket,
			    const struct nvmepeer_sqe *entry)
{
	uint64_t slot = queue->sq + (uint64_t)(ticket & queue->sq_mask) * 64;

	nvp_sq_store(slot, &entry->dword[0]);
	nvp_sq_store(slot + 16, &entry->dword[4]);
	nvp_sq_store(slot + 32, &entry->dword[8]);
	nvp_sq_store(slot + 48, &entry->dword[12]);
}

/*
 * Exchange 16 bytes with the lane @distance away: the lower lane gives @high,
 * the upper @low.  Selects by bit operations: compilers turn conditions into
 * branches, in which the lanes diverge.
 */
NVP_FN void nvp_exchange_halves(nvmepeer_mask mask, uint32_t lane, uint32_t distance,
				uint32_t *low, uint32_t *high)
{
	uint32_t upper = lane & distance ? 0xffffffffu : 0;

	for (int i = 0; i < 4; i++) {
		uint32_t swap = (low[i] ^ high[i]) & upper;
		uint32_t keep = low[i] ^ swap;
		uint32_t got = nvp_lanes_copy32(mask, high[i] ^ swap, lane ^ distance);

		swap = (keep ^ got) & upper;
		low[i] = keep ^ swap;
		high[i] = got ^ swap;
	}
}

/*
 * Store the entries of a full group, four lanes to one entry at a time: the
 * lanes transpose a square of 4 x 4 segments of 16 bytes, so that each store
 * covers 64 consecutive bytes.  Over a bus that is 3.5 times faster than lanes
 * that store their own entries.  @ticket is each lane's own; they are
 * consecutive.
 */
NVP_FN void nvp_write_transposed(const struct nvmepeer_queue *queue, nvmepeer_mask mask,
				 uint32_t lane, uint32_t ticket, struct nvmepeer_sqe *entry)
{
	nvp_exchange_halves(mask, lane, 1, &entry->dword[0], &entry->dword[4]);
	nvp_exchange_halves(mask, lane, 1, &entry->dword[8], &entry->dword[12]);
	nvp_exchange_halves(mask, lane, 2, &entry->dword[0], &entry->dword[8]);
	nvp_exchange_halves(mask, lane, 2, &entry->dword[4], &entry->dword[12]);
	ticket -= lane & 3;
	for (uint32_t i = 0; i < 4; i++)
		nvp_sq_store(queue->sq + (uint64_t)((ticket + i) & queue->sq_mask) * 64 +
			     (lane & 3) * 16, &entry->dword[4 * i]);
}

/*
 * Ring the head doorbell, by the doorbell owner: report the entries consumed up
 * to @head to the controller unless it has that value already.
 */
NVP_FN void nvp_ring_head(const struct nvmepeer_queue *queue, uint32_t head,
			  uint32_t rung)
{
	if (head == rung)
		return;
	nvp_doorbell_store(queue->cq_doorbell, head & queue->cq_mask);
	nvp_store32(&queue->state->head_rung, head);
}

/*
 * Which doorbells a group rings first.  Under contention other groups may wait
 * for either doorbell.  An uncontended group leaves the head doorbell to the
 * group that consumes the last entry of a quarter of the completion ring, see
 * nvp_ring_head_due(): that saves two loads and a posted store on its path.
 */
enum nvp_ring_mode {
	NVP_RING_UNCONTENDED,	/* tail doorbell, for its own entries only */
	NVP_RING_HEAD,	/* head doorbell; no entries are waiting */
	NVP_RING_CONTENDED,	/* both, for all waiting groups */
};

/*
 * Ring once, by the doorbell owner, for all groups that @tail, the last value
 * seen, counts as waiting.  @rung is the last ticket whose doorbell is known to
 * be rung: a doorbell value must never be stored twice (base specification
 * 5.2.2: an error) nor go backwards.  Returns the new tail word, or 0 with
 * nothing stored if the queue pair is lost.
 */
NVP_FN uint64_t nvp_ring_once(const struct nvmepeer_queue *queue, uint64_t tail,
			      uint32_t *rung, enum nvp_ring_mode mode)
{
	uint32_t ticket = (uint32_t)(tail >> NVP_TICKET_SHIFT);
	uint64_t served = tail & (NVP_WAITING_MASK | NVP_TAIL_OFFERED);
	bool due = !(tail >> NVP_UNWRITTEN_SHIFT & NVP_UNWRITTEN_MASK) && ticket != *rung;
	bool heads = mode != NVP_RING_UNCONTENDED;
	uint32_t head = 0, head_rung = 0;

	if (tail & NVP_TAIL_LOST)
		return 0;
	if (mode != NVP_RING_CONTENDED || !due)
		nvp_fence_device_acquire();	/* D */
	else
		nvp_fence_publish();	/* B */
	/* These loads are in flight while the other doorbell is stored. */
	if (heads) {
		/* A group that opens exclusively marks it before it sees this owner. */
		head = nvp_load32(&queue->state->head) & NVP_HEAD_MASK;
		head_rung = nvp_load32(&queue->state->head_rung);
	}
	if (due) {
		nvp_doorbell_store(queue->sq_doorbell, ticket & queue->sq_mask);
		nvp_store32(&queue->state->tail_rung, ticket);
		*rung = ticket;
	}
	if (heads)
		nvp_ring_head(queue, head, head_rung);
	nvp_fence_device();		/* C */
	return nvp_add64(&queue->state->tail, 0 - served) - served;
}

/*
 * A group rings this many times in a row before it offers ownership to others.
 */
#define NVP_RINGS_IN_A_ROW 4

/* Maximum time that an offer lasts, in nanoseconds. */
#define NVP_OFFER_LIMIT 12800

/*
 * Offer doorbell ownership: the next group that publishes takes it.  The offer
 * ends if none does, since commands are waiting for a doorbell; each offer
 * lasts twice as long as the one before.  So a group continues to ring for
 * others only while more of them arrive each time it rings, and none during its
 * offers.  Returns false if another group took ownership.  The group holds
 * nothing during an offer: the queue pair makes progress even if this thread is
 * never scheduled again.
 */
NVP_FN bool nvp_offer_doorbell(const struct nvmepeer_queue *queue, uint32_t offers)
{
	uint32_t rest = offers < 7 ? 100u << offers : NVP_OFFER_LIMIT;

	nvp_add64(&queue->state->tail, NVP_TAIL_OFFERED);
	nvp_fence_device();		/* F */
	nvp_store32(&queue->state->doorbell_offer, 1);
	nvp_pause(rest);
	return nvp_exchange32(&queue->state->doorbell_offer, 0);
}

/*
 * After taking doorbell ownership: returns the tail and sets @rung to the last
 * ticket rung.
 */
NVP_FN uint64_t nvp_doorbell_acquired(const struct nvmepeer_queue *queue, uint32_t *rung)
{
	nvp_fence_device_acquire();		/* G */
	*rung = nvp_load32(&queue->state->tail_rung);
	return nvp_load64(&queue->state->tail);
}

/* Ring for groups that arrived while this group rang. */
NVP_NOINLINE_FN void nvp_ring_more(const struct nvmepeer_queue *queue, uint64_t tail,
				   uint32_t rung)
{
	for (uint32_t rounds = 1; tail & NVP_WAITING_MASK; rounds++) {
		if (rounds % NVP_RINGS_IN_A_ROW == 0) {
			if (!nvp_offer_doorbell(queue, rounds / NVP_RINGS_IN_A_ROW))
				return;
			/*
			 * This may be the offer of another group that took over
			 * and rang.
			 */
			tail = nvp_doorbell_acquired(queue, &rung);
		}
		tail = nvp_ring_once(queue, tail, &rung, NVP_RING_CONTENDED);
	}
}

/*
 * Doorbell ownership was on offer: take it, unless another group does, and
 * ring.
 */
NVP_NOINLINE_FN void nvp_take_doorbell(const struct nvmepeer_queue *queue)
{
	uint64_t tail;
	uint32_t rung;

	if (!nvp_exchange32(&queue->state->doorbell_offer, 0))
		return;
	tail = nvp_doorbell_acquired(queue, &rung);
	nvp_ring_more(queue, tail, rung);
}

/*
 * Ring after this group has added 1 to waiting.  @tail is the word after that.
 * One lane.
 */
NVP_FN void nvp_ring(const struct nvmepeer_queue *queue, uint64_t tail, uint32_t rung,
		     enum nvp_ring_mode mode)
{
	if ((tail & NVP_WAITING_MASK) != 1) {
		if (tail & NVP_TAIL_OFFERED)
			nvp_take_doorbell(queue);
		return;
	}
	tail = nvp_ring_once(queue, tail, &rung, mode);
	if (tail & NVP_WAITING_MASK)
		nvp_ring_more(queue, tail, rung);
}

/*
 * The entries of @count slots are written: make the controller fetch them.
 *
 * If no other group was active when the slots were taken, all earlier slots had
 * been rung for; if none has taken a slot since, the group is uncontended.
 * Under contention the doorbell owner rings for several groups and releases
 * their entries to the system, so a release to the device is enough here, at a
 * third of the cost.
 *
 * Returns, to the leader, the head of the completion ring; its load overlaps
 * with the addition.
 */
NVP_FN uint32_t nvp_publish_entries(const struct nvmepeer_queue *queue,
				    struct nvmepeer_group group, struct nvp_slots slots,
				    uint32_t count)
{
	uint64_t add = 1 - ((uint64_t)count << NVP_UNWRITTEN_SHIFT);
	uint64_t uncontended = (uint64_t)(slots.first + count) << NVP_TICKET_SHIFT | 1;
	bool contended = slots.before;
	uint32_t head;
	uint64_t tail;

	nvp_group_sync(group);
	if (group.lane != group.leader)
		return 0;
	if (contended)
		nvp_fence_device();	/* A */
	else
		nvp_fence_publish();	/* A */
	head = nvp_load32(&queue->state->head);
	tail = nvp_add64(&queue->state->tail, add) + add;
	nvp_ring(queue, tail, (uint32_t)(tail >> NVP_TICKET_SHIFT) ^ 0x80000000u,
		 !contended && tail == uncontended ? NVP_RING_UNCONTENDED : NVP_RING_CONTENDED);
	/* Other groups have consumed entries since. */
	return contended ? nvp_load32(&queue->state->head) : head;
}

/*
 * Ring the head doorbell although no group submits, or only uncontended ones
 * do: a quarter of the completion ring has been consumed since it was last due.
 * Tail doorbells are up to date unless a slot is unwritten; its group will ring
 * them or leave that to this group.
 */
NVP_NOINLINE_FN void nvp_ring_head_due(const struct nvmepeer_queue *queue)
{
	uint32_t ticket;
	uint64_t tail;

	nvp_fence_device();		/* E */
	tail = nvp_add64(&queue->state->tail, 1) + 1;
	ticket = (uint32_t)(tail >> NVP_TICKET_SHIFT);
	if (tail >> NVP_UNWRITTEN_SHIFT & NVP_UNWRITTEN_MASK)
		ticket ^= 0x80000000u;
	nvp_ring(queue, tail, ticket, NVP_RING_HEAD);
}

#endif /* NVMEPEER_DEVICE_SUBMIT_H */
