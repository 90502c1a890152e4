/* SPDX-License-Identifier: MIT OR GPL-2.0 */
/*
 * nvmepeer_device/complete.h: from entries in the completion ring to results.
 *
 * Whoever waits takes: a group reads the next entries of the ring side by
 * side, one a lane, and moves the head over those that are there by one
 * compare-and-exchange.  Who wins owns the entries it has read; the others
 * look again.  A thread that stops before the exchange holds nothing; one that
 * stops after it keeps back only the results it took.  An entry whose command
 * belongs to a lane of the group goes to it directly, the others go to the
 * result words, which every waiter also reads.
 */
#ifndef NVMEPEER_DEVICE_COMPLETE_H
#define NVMEPEER_DEVICE_COMPLETE_H

/* A phase tag starts as 1 and turns with every round of the ring. */
NVMEPEER_FN uint32_t nvmepeer_phase_at(const struct nvmepeer_queue *queue, uint32_t index)
{
	return (index >> queue->cq_shift & 1) ^ 1;
}

NVMEPEER_FN uint64_t nvmepeer_result(const uint32_t entry[4])
{
	return (uint64_t)entry[0] << 32 | NVMEPEER_RESULT_DONE | nvmepeer_cqe_status(entry);
}

/* Lanes at the front of @lanes that are also in @valid, without a gap. */
NVMEPEER_FN uint32_t nvmepeer_run(nvmepeer_mask lanes, nvmepeer_mask valid)
{
	nvmepeer_mask missing = lanes & ~valid;

	if (!missing)
		return nvmepeer_mask_count(lanes);
	return nvmepeer_rank(lanes, nvmepeer_mask_first(missing));
}

/*
 * Gives each waiting lane its entry if one of the first @run lanes holds it.
 * Collective.  Returns the lanes that got one.  A controller that completes in
 * order gives each lane its own, which needs no exchange.
 */
NVMEPEER_FN nvmepeer_mask nvmepeer_hand_over(struct nvmepeer_group group, uint32_t run,
					     const uint32_t entry[4], bool holds, bool waits,
					     uint32_t cid, uint64_t *result)
{
	bool found = holds && waits && nvmepeer_cqe_cid(entry) == cid;
	nvmepeer_mask left = group.mask, straight = nvmepeer_group_ballot(group, found);
	uint32_t status = nvmepeer_cqe_status(entry), from = group.lane;

	if (group.single || nvmepeer_mask_count(straight) == run) {
		if (found)
			*result = nvmepeer_result(entry);
		return straight;
	}
	found = false;
	for (; run; run--, left &= left - 1) {
		uint32_t holder = nvmepeer_mask_first(left);
		uint32_t word = nvmepeer_group_copy32(group, entry[3], holder);

		if (waits && (word & 0xffff) == cid) {
			found = true;
			status = word >> 17;
			from = holder;
		}
	}
	from = nvmepeer_group_copy32(group, entry[0], from);
	if (found)
		*result = (uint64_t)from << 32 | NVMEPEER_RESULT_DONE | status;
	return nvmepeer_group_ballot(group, found);
}

/*
 * Puts the entries that no lane of the group waits for where their owners
 * look.  Collective; @got are the lanes that were handed theirs.
 */
NVMEPEER_FN void nvmepeer_hand_out(const struct nvmepeer_queue *queue,
				   struct nvmepeer_group group, bool holds, nvmepeer_mask got,
				   const uint32_t entry[4], uint32_t cid)
{
	for (; got; got &= got - 1) {
		uint32_t taken = nvmepeer_group_copy32(group, cid, nvmepeer_mask_first(got));

		if (nvmepeer_cqe_cid(entry) == taken)
			holds = false;
	}
	nvmepeer_fence_device();		/* J */
	if (!holds)
		return;
	if (nvmepeer_cqe_cid(entry) / 32 > queue->cid_words_mask)
		nvmepeer_post_add32(&queue->state->protocol_errors, 1);
	else
		nvmepeer_store64(&queue->results[nvmepeer_cqe_cid(entry)],
				 nvmepeer_result(entry));
}

/*
 * Does nothing lie at the head, as one narrow look by one lane tells?  Over a
 * bus the wide look of a whole group that finds nothing costs too much of it.
 * Collective.
 */
NVMEPEER_FN bool nvmepeer_nothing_yet(const struct nvmepeer_queue *queue,
				      struct nvmepeer_group group, uint32_t head)
{
	uint32_t entry[4], phase = 0;

	if (!(queue->flags & NVMEPEER_CQ_REMOTE) || !(group.mask & (group.mask - 1)))
		return false;
	if (group.lane == group.leader) {
		nvmepeer_cq_load(queue->cq + (uint64_t)(head & queue->cq_mask) * 16, entry);
		phase = nvmepeer_cqe_phase(entry);
	}
	return nvmepeer_group_copy32(group, phase, group.leader) !=
	       nvmepeer_phase_at(queue, head);
}

/* Completion entries were seen: nothing read from now on is older than they are. */
NVMEPEER_FN void nvmepeer_believe(const struct nvmepeer_queue *queue)
{
	if (queue->flags & NVMEPEER_CQ_APART_FROM_DATA)
		nvmepeer_status_load(queue->readback);
	nvmepeer_fence_consume();		/* I */
}

/*
 * Takes what lies at the head of the completion ring.  Collective.  @waits and
 * @cid are each lane's own wish, @result is set where it comes true.  @head is
 * the group's guess of the head and is corrected.  Returns entries taken: none
 * while somebody has the queue pair for itself, as no guess has its mark.  Credits
 * go back last: when all are back, nobody is about to ring for what it took.
 */
NVMEPEER_FN uint32_t nvmepeer_take(const struct nvmepeer_queue *queue,
				   struct nvmepeer_group group, bool waits, uint32_t cid,
				   uint64_t *result, uint32_t *head)
{
	uint32_t first = *head, rank = nvmepeer_rank(group.mask, group.lane);
	uint32_t seen = nvmepeer_load32(&queue->state->head);
	uint32_t entry[4], run;
	nvmepeer_mask got;

	if (nvmepeer_nothing_yet(queue, group, first)) {
		*head = nvmepeer_group_copy32(group, seen, group.leader) & NVMEPEER_HEAD_MASK;
		return 0;
	}
	nvmepeer_cq_load(queue->cq + (uint64_t)((first + rank) & queue->cq_mask) * 16, entry);
	run = nvmepeer_run(group.mask,
			   nvmepeer_group_ballot(group, nvmepeer_cqe_phase(entry) ==
						 nvmepeer_phase_at(queue, first + rank)));
	if (run && group.lane == group.leader && seen == first)
		seen = nvmepeer_compare_exchange32(&queue->state->head, first,
						   (first + run) & NVMEPEER_HEAD_MASK);
	seen = nvmepeer_group_copy32(group, seen, group.leader);
	if (!run || seen != first) {
		*head = seen & NVMEPEER_HEAD_MASK;
		return 0;
	}
	nvmepeer_believe(queue);
	got = nvmepeer_hand_over(group, run, entry, rank < run, waits, cid, result);
	if (nvmepeer_mask_count(got) != run)
		nvmepeer_hand_out(queue, group, rank < run, got, entry, cid);
	*head = (first + run) & NVMEPEER_HEAD_MASK;
	if (group.lane == group.leader) {
		if (queue->cq_shift < 2 || (first ^ *head) >> (queue->cq_shift - 2))
			nvmepeer_head_due(queue);
		nvmepeer_post_add32(&queue->state->credits, run);
	}
	return run;
}

/* Gives the cids of the lanes that @gives back.  Collective. */
NVMEPEER_FN void nvmepeer_free_cids(const struct nvmepeer_queue *queue,
				    struct nvmepeer_group group, bool gives, uint32_t cid)
{
	nvmepeer_mask left = nvmepeer_group_ballot(group, gives);

	if (group.single && gives)
		nvmepeer_post_or32(&queue->free_cids[cid / 32], (uint32_t)1 << cid % 32);
	while (!group.single && left) {
		uint32_t first = nvmepeer_mask_first(left);
		uint32_t word = nvmepeer_group_copy32(group, cid / 32, first);
		bool same = gives && cid / 32 == word;
		uint32_t bits = nvmepeer_group_or32(group,
						    same ? (uint32_t)1 << cid % 32 : 0);

		if (group.lane == first)
			nvmepeer_post_or32(&queue->free_cids[word], bits);
		left &= ~nvmepeer_group_ballot(group, same);
	}
}

/* The end of a wait in vain: abandon, and look whether it came just now. */
NVMEPEER_SLOW_FN void nvmepeer_give_up(const struct nvmepeer_queue *queue, uint32_t cid)
{
	nvmepeer_abandon(queue, cid);
	nvmepeer_sweep(queue);
}

/* What a lane waits for and what came of it. */
struct nvmepeer_waiting {
	bool waits;		/* no longer, once the result is there or the time is over */
	bool passed_on;		/* by another group, through the result word */
	uint32_t cid;
	uint32_t ticket;
	uint64_t result;
};

/* Did another group pass the result on?  @found is the result word. */
NVMEPEER_FN void nvmepeer_see_result(struct nvmepeer_waiting *waiting, uint64_t found)
{
	if (waiting->waits && (found & NVMEPEER_RESULT_DONE)) {
		waiting->result = found;
		waiting->passed_on = true;
	}
	if (waiting->result & NVMEPEER_RESULT_DONE)
		waiting->waits = false;
}

/* One look for results.  Collective.  Returns completion entries taken. */
NVMEPEER_FN uint32_t nvmepeer_look(const struct nvmepeer_queue *queue,
				   struct nvmepeer_group group,
				   struct nvmepeer_waiting *waiting, uint32_t *head)
{
	uint64_t found = waiting->waits ? nvmepeer_load64(&queue->results[waiting->cid]) : 0;
	uint32_t taken = nvmepeer_take(queue, group, waiting->waits, waiting->cid,
				       &waiting->result, head);

	nvmepeer_see_result(waiting, found);
	return taken;
}

/* A look at the result only, by a group whose turn is far.  Collective. */
NVMEPEER_FN void nvmepeer_look_far(const struct nvmepeer_queue *queue,
				   struct nvmepeer_group group,
				   struct nvmepeer_waiting *waiting, uint32_t *head)
{
	uint64_t found = waiting->waits ? nvmepeer_load64(&queue->results[waiting->cid]) : 0;
	uint32_t seen = nvmepeer_load32(&queue->state->head);

	*head = nvmepeer_group_copy32(group, seen, group.leader) & NVMEPEER_HEAD_MASK;
	nvmepeer_see_result(waiting, found);
}

/*
 * Makes the data of completed commands readable and their cids free.
 * Collective; @done are the lanes whose commands completed.  A result that
 * another group wrote must be read before the data, and before the next owner of
 * the cid clears it; one handed over directly was never written, and believed by
 * all lanes.
 */
NVMEPEER_FN void nvmepeer_retire(const struct nvmepeer_queue *queue, struct nvmepeer_group group,
				 const struct nvmepeer_waiting *waiting, bool done)
{
	/* One lane frees what the others have read. */
	nvmepeer_group_sync(group);
	if (nvmepeer_group_ballot(group, waiting->passed_on))
		nvmepeer_fence_device();	/* K */
	nvmepeer_free_cids(queue, group, done, waiting->cid);
}

/*
 * How many completions come before the group's first, if they come in order.
 * Collective.
 */
NVMEPEER_FN uint32_t nvmepeer_ahead(struct nvmepeer_group group, uint32_t ticket, uint32_t head)
{
	uint32_t ahead = (nvmepeer_group_copy32(group, ticket, group.leader) - head) &
			 NVMEPEER_HEAD_MASK;

	return ahead > NVMEPEER_HEAD_MASK / 2 ? 0 : ahead;
}

/*
 * Waits for the commands of the lanes that are @waiting, each at most until its
 * own deadline, and returns when all have stopped.  Collective.  The cids are
 * free afterwards, or abandoned.  Returns each lane's own status.  @head is a
 * guess of the head of the completion ring.  A group that is far from its turn
 * still takes completions with some looks, so that it depends on nobody.
 */
NVMEPEER_FN int nvmepeer_wait_group(const struct nvmepeer_queue *queue,
				    struct nvmepeer_group group,
				    struct nvmepeer_waiting *waiting, uint32_t head,
				    struct nvmepeer_deadline *deadline)
{
	bool had = waiting->waits, done;

	while (nvmepeer_group_ballot(group, waiting->waits)) {
		uint32_t ahead = nvmepeer_ahead(group, waiting->ticket, head), taken = 0;

		if (ahead >= NVMEPEER_FAR && (deadline->looks + 1) % NVMEPEER_FAR_LOOKS)
			nvmepeer_look_far(queue, group, waiting, &head);
		else
			taken = nvmepeer_look(queue, group, waiting, &head);
		if (nvmepeer_deadline_check(queue, group, deadline, !taken, ahead))
			waiting->waits = false;
	}
	done = had && (waiting->result & NVMEPEER_RESULT_DONE);
	nvmepeer_retire(queue, group, waiting, done);
	if (had && !done) {
		nvmepeer_give_up(queue, waiting->cid);
		return deadline->error;
	}
	return (int)(waiting->result & 0x7fff);
}

#endif /* NVMEPEER_DEVICE_COMPLETE_H */
