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
 * Collective.  Returns the lanes that got one.
 */
NVMEPEER_FN nvmepeer_mask nvmepeer_hand_over(struct nvmepeer_group group, uint32_t run,
					     const uint32_t entry[4], bool waits,
					     uint32_t cid, uint64_t *result)
{
	nvmepeer_mask left = group.mask;
	uint32_t status = 0, from = group.lane;
	bool found = false;

	for (; run; run--, left &= left - 1) {
		uint32_t holder = nvmepeer_mask_first(left);
		uint32_t word = nvmepeer_lanes_copy32(group.mask, entry[3], holder);

		if (waits && (word & 0xffff) == cid) {
			found = true;
			status = word >> 17;
			from = holder;
		}
	}
	from = nvmepeer_lanes_copy32(group.mask, entry[0], from);
	if (found)
		*result = (uint64_t)from << 32 | NVMEPEER_RESULT_DONE | status;
	return nvmepeer_lanes_ballot(group.mask, found);
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
		uint32_t taken = nvmepeer_lanes_copy32(group.mask, cid, nvmepeer_mask_first(got));

		if (nvmepeer_cqe_cid(entry) == taken)
			holds = false;
	}
	if (!holds)
		return;
	if (nvmepeer_cqe_cid(entry) / 32 > queue->cid_words_mask)
		nvmepeer_add32(&queue->state->protocol_errors, 1);
	else
		nvmepeer_store64(&queue->results[nvmepeer_cqe_cid(entry)],
				 nvmepeer_result(entry));
}

/*
 * Takes what lies at the head of the completion ring.  Collective.  @waits and
 * @cid are each lane's own wish, @result is set where it comes true.  @head is
 * the group's guess of the head and is corrected.  Returns entries taken.
 */
NVMEPEER_FN uint32_t nvmepeer_take(const struct nvmepeer_queue *queue,
				   struct nvmepeer_group group, bool waits, uint32_t cid,
				   uint64_t *result, uint32_t *head)
{
	uint32_t first = *head, rank = nvmepeer_rank(group.mask, group.lane);
	uint32_t seen = nvmepeer_load32(&queue->state->head);
	uint32_t entry[4], run;
	nvmepeer_mask got;

	nvmepeer_cq_load(queue->cq + (uint64_t)((first + rank) & queue->cq_mask) * 16, entry);
	run = nvmepeer_run(group.mask, nvmepeer_lanes_ballot(group.mask,
				nvmepeer_cqe_phase(entry) == nvmepeer_phase_at(queue, first + rank)));
	if (run && group.lane == group.leader && seen == first)
		seen = nvmepeer_compare_exchange32(&queue->state->head, first, first + run);
	seen = nvmepeer_lanes_copy32(group.mask, seen, group.leader);
	if (!run || seen != first) {
		*head = seen;
		return 0;
	}
	if (queue->flags & NVMEPEER_CQ_APART_FROM_DATA)
		nvmepeer_status_load(queue->readback);
	nvmepeer_fence_consume();
	got = nvmepeer_hand_over(group, run, entry, waits, cid, result);
	if (nvmepeer_mask_count(got) != run)
		nvmepeer_hand_out(queue, group, rank < run, got, entry, cid);
	*head = first + run;
	if (group.lane == group.leader) {
		nvmepeer_add32(&queue->state->credits, run);
		if (queue->cq_shift < 2 || (first ^ *head) >> (queue->cq_shift - 2))
			nvmepeer_head_due(queue);
	}
	return run;
}

/* Gives the cids of the lanes that @gives back.  Collective. */
NVMEPEER_FN void nvmepeer_free_cids(const struct nvmepeer_queue *queue,
				    struct nvmepeer_group group, bool gives, uint32_t cid)
{
	nvmepeer_mask left = nvmepeer_lanes_ballot(group.mask, gives);

	while (left) {
		uint32_t first = nvmepeer_mask_first(left);
		uint32_t word = nvmepeer_lanes_copy32(group.mask, cid / 32, first);
		bool same = gives && cid / 32 == word;
		uint32_t bits = nvmepeer_lanes_or32(group.mask,
						    same ? (uint32_t)1 << cid % 32 : 0);

		if (group.lane == first)
			nvmepeer_or32(&queue->free_cids[word], bits);
		left &= ~nvmepeer_lanes_ballot(group.mask, same);
	}
}

/* The end of a wait in vain: the result came after all, or it is abandoned. */
NVMEPEER_SLOW_FN void nvmepeer_give_up(const struct nvmepeer_queue *queue, uint32_t cid)
{
	nvmepeer_abandon(queue, cid);
	nvmepeer_sweep(queue);
}

/*
 * Waits for the commands of the lanes that @waits.  Collective.  The result of
 * each goes to @result; its cid is free afterwards or abandoned.  Returns each
 * lane's own status.
 */
NVMEPEER_FN int nvmepeer_wait_group(const struct nvmepeer_queue *queue,
				    struct nvmepeer_group group, bool waits, uint32_t cid,
				    uint64_t *result, struct nvmepeer_deadline *deadline)
{
	uint32_t head = nvmepeer_lanes_copy32(group.mask, nvmepeer_load32(&queue->state->head),
					      group.leader);
	uint64_t mine = 0;
	bool gives = waits;
	int error = 0;

	while (nvmepeer_lanes_ballot(group.mask, waits)) {
		uint64_t found = waits ? nvmepeer_load64(&queue->results[cid]) : 0;
		uint32_t taken = nvmepeer_take(queue, group, waits, cid, &mine, &head);

		if (found & NVMEPEER_RESULT_DONE)
			mine = found;
		if (mine & NVMEPEER_RESULT_DONE)
			waits = false;
		if (taken)
			continue;
		error = nvmepeer_lanes_copy32(group.mask,
					      group.lane == group.leader ?
					      (uint32_t)nvmepeer_deadline_check(queue, deadline) : 0,
					      group.leader);
		if (error)
			break;
	}
	nvmepeer_fence_consume();
	nvmepeer_free_cids(queue, group, gives && !waits, cid);
	if (waits) {
		nvmepeer_give_up(queue, cid);
		return error;
	}
	*result = mine;
	return (int)(mine & 0x7fff);
}

#endif /* NVMEPEER_DEVICE_COMPLETE_H */
