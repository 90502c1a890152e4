/* SPDX-License-Identifier: MIT OR GPL-2.0 */
/*
 * nvmepeer_device/complete.h: the completion path, from entries in the
 * completion ring to results.
 *
 * Every waiting group reaps: its lanes read the next entries of the ring side
 * by side, one a lane, and the leader advances the head past the valid ones by
 * one compare-and-exchange.  The winner owns the entries it has read; the
 * others poll again.  A thread that stops before the exchange holds nothing;
 * one that stops after it delays only the results of the entries it consumed.
 * An entry whose command belongs to a lane of the group goes to that lane
 * directly.  The other entries go to the result words, which every waiting lane
 * also reads.
 */
#ifndef NVMEPEER_DEVICE_COMPLETE_H
#define NVMEPEER_DEVICE_COMPLETE_H

#include "nvme.h"
#include "platform.h"
#include "queue.h"
#include "submit.h"
#include "wait.h"

/* The phase tag starts as 1 and is inverted on every pass of the ring. */
NVP_FN uint32_t nvp_phase_at(const struct nvmepeer_queue *queue, uint32_t index)
{
	return (index >> queue->cq_shift & 1) ^ 1;
}

NVP_FN uint64_t nvp_result_word(const uint32_t entry[4])
{
	return (uint64_t)entry[0] << 32 | NVP_RESULT_DONE | nvp_cqe_status(entry);
}

/*
 * Number of lanes at the front of @lanes that are also in @valid, without a
 * gap.
 */
NVP_FN uint32_t nvp_valid_run(nvmepeer_mask lanes, nvmepeer_mask valid)
{
	nvmepeer_mask missing = lanes & ~valid;

	if (!missing)
		return nvp_mask_count(lanes);
	return nvp_rank(lanes, nvp_mask_first(missing));
}

/*
 * Give each waiting lane its entry if one of the first @run lanes holds it.
 * Collective.  Returns the lanes that got one.  If the controller completes in
 * order each lane holds its own, which needs no exchange.
 */
NVP_FN nvmepeer_mask nvp_match_entries(struct nvmepeer_group group, uint32_t run,
				       const uint32_t entry[4], bool holds, bool waits,
				       uint32_t cid, uint64_t *result)
{
	bool found = holds && waits && nvp_cqe_cid(entry) == cid;
	nvmepeer_mask left = group.mask, straight = nvp_group_ballot(group, found);
	uint32_t status = nvp_cqe_status(entry), from = group.lane;

	if (group.single || nvp_mask_count(straight) == run) {
		if (found)
			*result = nvp_result_word(entry);
		return straight;
	}
	found = false;
	for (; run; run--, left &= left - 1) {
		uint32_t holder = nvp_mask_first(left);
		uint32_t word = nvp_group_copy32(group, entry[3], holder);

		if (waits && (word & 0xffff) == cid) {
			found = true;
			status = word >> 17;
			from = holder;
		}
	}
	from = nvp_group_copy32(group, entry[0], from);
	if (found)
		*result = (uint64_t)from << 32 | NVP_RESULT_DONE | status;
	return nvp_group_ballot(group, found);
}

/*
 * Store the entries that no lane of the group waits for into the result words.
 * Collective.  @got: the lanes that got their own entry.
 */
NVP_FN void nvp_publish_results(const struct nvmepeer_queue *queue,
				struct nvmepeer_group group, bool holds, nvmepeer_mask got,
				const uint32_t entry[4], uint32_t cid)
{
	for (; got; got &= got - 1) {
		uint32_t taken = nvp_group_copy32(group, cid, nvp_mask_first(got));

		if (nvp_cqe_cid(entry) == taken)
			holds = false;
	}
	nvp_fence_device();		/* J */
	if (!holds)
		return;
	if (nvp_cqe_cid(entry) / 32 > queue->cid_words_mask)
		nvp_post_add32(&queue->state->protocol_errors, 1);
	else
		nvp_store64(&queue->results[nvp_cqe_cid(entry)],
			    nvp_result_word(entry));
}

/*
 * Is the completion ring empty?  One lane reads one entry: over a bus a full
 * read by the whole group that finds nothing takes too much of the bandwidth.
 * Collective.
 */
NVP_FN bool nvp_cq_empty(const struct nvmepeer_queue *queue,
			 struct nvmepeer_group group, uint32_t head)
{
	uint32_t entry[4], phase = 0;

	if (!(queue->flags & NVMEPEER_CQ_REMOTE) || !(group.mask & (group.mask - 1)))
		return false;
	if (group.lane == group.leader) {
		nvp_cq_load(queue->cq + (uint64_t)(head & queue->cq_mask) * 16, entry);
		phase = nvp_cqe_phase(entry);
	}
	return nvp_group_copy32(group, phase, group.leader) !=
	       nvp_phase_at(queue, head);
}

/*
 * Acquire the completion: after completion entries were read, nothing that is
 * read later may be older than they are.
 */
NVP_FN void nvp_acquire_completion(const struct nvmepeer_queue *queue)
{
	if (queue->flags & NVMEPEER_CQ_APART_FROM_DATA)
		nvp_status_load(queue->readback);
	nvp_fence_consume();		/* I */
}

/*
 * Reap the valid entries at the head of the completion ring.  Collective.
 * @waits and @cid say which command each lane waits for; @result is set if it
 * completed.  @head is the group's guess of the head and is corrected.  Returns
 * the number of entries consumed: none while another group owns the queue pair
 * exclusively, as a guess never has the exclusive mark.
 *
 * Credits are returned last: once all are back, no group is about to ring for
 * entries that it consumed.
 */
NVP_FN uint32_t nvp_reap(const struct nvmepeer_queue *queue,
			 struct nvmepeer_group group, bool waits, uint32_t cid,
			 uint64_t *result, uint32_t *head)
{
	uint32_t first = *head, rank = nvp_rank(group.mask, group.lane);
	uint32_t seen = nvp_load32(&queue->state->head);
	uint32_t entry[4], run;
	nvmepeer_mask got;

	if (nvp_cq_empty(queue, group, first)) {
		*head = nvp_group_copy32(group, seen, group.leader) & NVP_HEAD_MASK;
		return 0;
	}
	nvp_cq_load(queue->cq + (uint64_t)((first + rank) & queue->cq_mask) * 16, entry);
	run = nvp_valid_run(group.mask,
			    nvp_group_ballot(group, nvp_cqe_phase(entry) ==
					     nvp_phase_at(queue, first + rank)));
	if (run && group.lane == group.leader && seen == first)
		seen = nvp_compare_exchange32(&queue->state->head, first,
					      (first + run) & NVP_HEAD_MASK);
	seen = nvp_group_copy32(group, seen, group.leader);
	if (!run || seen != first) {
		*head = seen & NVP_HEAD_MASK;
		return 0;
	}
	nvp_acquire_completion(queue);
	got = nvp_match_entries(group, run, entry, rank < run, waits, cid, result);
	if (nvp_mask_count(got) != run)
		nvp_publish_results(queue, group, rank < run, got, entry, cid);
	*head = (first + run) & NVP_HEAD_MASK;
	if (group.lane == group.leader) {
		if (queue->cq_shift < 2 || (first ^ *head) >> (queue->cq_shift - 2))
			nvp_ring_head_due(queue);
		nvp_post_add32(&queue->state->credits, run);
	}
	return run;
}

/* Free the CIDs of the lanes that @gives.  Collective. */
NVP_FN void nvp_free_cids(const struct nvmepeer_queue *queue,
			  struct nvmepeer_group group, bool gives, uint32_t cid)
{
	nvmepeer_mask left = nvp_group_ballot(group, gives);

	if (group.single && gives)
		nvp_post_or32(&queue->free_cids[cid / 32], (uint32_t)1 << cid % 32);
	while (!group.single && left) {
		uint32_t first = nvp_mask_first(left);
		uint32_t word = nvp_group_copy32(group, cid / 32, first);
		bool same = gives && cid / 32 == word;
		uint32_t bits = nvp_group_or32(group,
					       same ? (uint32_t)1 << cid % 32 : 0);

		if (group.lane == first)
			nvp_post_or32(&queue->free_cids[word], bits);
		left &= ~nvp_group_ballot(group, same);
	}
}

/*
 * After a timeout: abandon the command, and reclaim it at once if it has just
 * completed.
 */
NVP_NOINLINE_FN void nvp_abandon_and_reclaim(const struct nvmepeer_queue *queue, uint32_t cid)
{
	nvp_abandon(queue, cid);
	nvp_reclaim(queue);
}

/* What a lane waits for, and the result. */
struct nvp_waiter {
	bool waits;		/* until the result has arrived or the timeout expires */
	bool passed_on;		/* the result came through the result word */
	uint32_t cid;
	uint32_t ticket;
	uint64_t result;
};

/*
 * Check for a result that another group delivered.  @found is the result word.
 */
NVP_FN void nvp_check_result(struct nvp_waiter *waiting, uint64_t found)
{
	if (waiting->waits && (found & NVP_RESULT_DONE)) {
		waiting->result = found;
		waiting->passed_on = true;
	}
	if (waiting->result & NVP_RESULT_DONE)
		waiting->waits = false;
}

/*
 * Poll for results once.  Collective.  Returns the number of completion entries
 * consumed.
 */
NVP_FN uint32_t nvp_poll_group(const struct nvmepeer_queue *queue,
			       struct nvmepeer_group group,
			       struct nvp_waiter *waiting, uint32_t *head)
{
	uint64_t found = waiting->waits ? nvp_load64(&queue->results[waiting->cid]) : 0;
	uint32_t taken = nvp_reap(queue, group, waiting->waits, waiting->cid,
				  &waiting->result, head);

	nvp_check_result(waiting, found);
	return taken;
}

/*
 * Poll the result word only, for a group whose turn is far away.  Collective.
 */
NVP_FN void nvp_poll_result(const struct nvmepeer_queue *queue,
			    struct nvmepeer_group group,
			    struct nvp_waiter *waiting, uint32_t *head)
{
	uint64_t found = waiting->waits ? nvp_load64(&queue->results[waiting->cid]) : 0;
	uint32_t seen = nvp_load32(&queue->state->head);

	*head = nvp_group_copy32(group, seen, group.leader) & NVP_HEAD_MASK;
	nvp_check_result(waiting, found);
}

/*
 * Make the data of completed commands readable and free their CIDs.
 * Collective.  @done: the lanes whose commands completed.  A result word that
 * another group wrote must be read before the data, and before the next owner
 * of the CID clears it.  A result that came directly was never written there,
 * and all lanes have acquired that completion.
 */
NVP_FN void nvp_retire(const struct nvmepeer_queue *queue, struct nvmepeer_group group,
		       const struct nvp_waiter *waiting, bool done)
{
	/* One lane frees CIDs whose result words other lanes have read. */
	nvp_group_sync(group);
	if (nvp_group_ballot(group, waiting->passed_on))
		nvp_fence_device();	/* K */
	nvp_free_cids(queue, group, done, waiting->cid);
}

/*
 * Number of completions before the group's first, if they arrive in order.
 * Collective.
 */
NVP_FN uint32_t nvp_ahead(struct nvmepeer_group group, uint32_t ticket, uint32_t head)
{
	uint32_t ahead = (nvp_group_copy32(group, ticket, group.leader) - head) &
			 NVP_HEAD_MASK;

	return ahead > NVP_HEAD_MASK / 2 ? 0 : ahead;
}

/*
 * Wait for the commands of the lanes that are @waiting, each until its own
 * deadline at most; returns when all have stopped waiting.  Collective.  The
 * CIDs are free afterwards, or abandoned.  Returns each lane's own status.
 * @head is a guess of the head of the completion ring.  A group that is far
 * from its turn still reaps in some of its polls: otherwise its progress would
 * depend on other groups.  A lane whose timeout has expired polls once more: the
 * thread may have been stopped between its last poll and the read of the clock,
 * and the command have completed since.
 */
NVP_FN int nvp_wait_group(const struct nvmepeer_queue *queue,
			  struct nvmepeer_group group,
			  struct nvp_waiter *waiting, uint32_t head,
			  struct nvp_deadline *deadline)
{
	bool had = waiting->waits, done;

	while (nvp_group_ballot(group, waiting->waits)) {
		uint32_t ahead = nvp_ahead(group, waiting->ticket, head), taken = 0;
		bool clock_read = deadline->polls && !(deadline->polls & deadline->between);

		if (ahead >= NVP_FAR && (deadline->polls + 1) % NVP_FAR_POLLS && !clock_read)
			nvp_poll_result(queue, group, waiting, &head);
		else
			taken = nvp_poll_group(queue, group, waiting, &head);
		/* An error from before this poll. */
		if (deadline->error)
			waiting->waits = false;
		nvp_deadline_check(queue, group, deadline, !taken, ahead);
	}
	done = had && (waiting->result & NVP_RESULT_DONE);
	nvp_retire(queue, group, waiting, done);
	if (had && !done) {
		nvp_abandon_and_reclaim(queue, waiting->cid);
		return deadline->error;
	}
	return (int)(waiting->result & 0x7fff);
}

#endif /* NVMEPEER_DEVICE_COMPLETE_H */
