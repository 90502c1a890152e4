/* SPDX-License-Identifier: MIT OR GPL-2.0 */
/*
 * nvmepeer_device/send.h: submits the commands of a group of lanes, in rounds
 * if the queue is full.
 */
#ifndef NVMEPEER_DEVICE_SEND_H
#define NVMEPEER_DEVICE_SEND_H

#include "command.h"
#include "compiler.h"
#include "complete.h"
#include "nvme.h"
#include "platform.h"
#include "queue.h"
#include "submit.h"
#include "wait.h"

/*
 * What a lane submits: a command to encode, or a prepared entry.  Passed by
 * value, so that compilers keep it in registers.
 */
struct nvp_submission {
	struct nvmepeer_command command;
	const struct nvmepeer_sqe *entry;
	uint32_t bytes;
	int bad;		/* why it is not submitted, or 0 */
};

NVP_FN struct nvp_submission nvp_submission_of(const struct nvmepeer_queue *queue,
					       const struct nvmepeer_command *command)
{
	struct nvp_submission submission = { *command, NULL, 0, 0 };

	submission.bad = nvp_command_check(queue, command, &submission.bytes);
	return submission;
}

/*
 * An encoded entry without its CID.  It is initialised to zero also where the
 * lane may not encode one: a compiler that sees an uninitialised value carries
 * it from one round to the next, around calls in memory. On an H200, with 64
 * registers, that costs 12 stores and 5 loads each time that a warp submits.
 */
struct nvp_encoded {
	struct nvmepeer_sqe entry;
	bool list;		/* the command needs a PRP list */
};

NVP_FN struct nvp_encoded nvp_empty_entry(void)
{
	struct nvp_encoded none = { { { 0 } }, false };

	return none;
}

NVP_FN void nvp_encode_entry(const struct nvmepeer_queue *queue,
			     const struct nvp_submission *submission,
			     struct nvp_encoded *encoded)
{
	if (!submission->entry) {
		encoded->list = nvp_encode(queue, &submission->command, submission->bytes,
					   &encoded->entry);
		return;
	}
	encoded->entry = *submission->entry;
	encoded->entry.dword[0] &= 0xffff;
	encoded->list = false;
}

NVP_FN void nvp_assign_entry_cid(const struct nvmepeer_queue *queue, uint32_t cid,
				 const struct nvp_submission *submission,
				 struct nvp_encoded *encoded)
{
	nvp_assign_cid(queue, cid, &submission->command, submission->bytes, encoded->list,
		       &encoded->entry);
}

/*
 * The result of a submission, by value for the same reason.  @head: the head of
 * the completion ring as the leader saw it.  @room_until: with NVMEPEER_AGAIN,
 * the time of nvmepeer_now_ns() until which this lane may wait for room.
 */
struct nvp_sent {
	int status;
	uint32_t head;
	struct nvmepeer_token token;
	uint64_t room_until;
};

/*
 * Submit the first @count of the @pending lanes, which have their CIDs.
 * @encoded: the entry of a single lane, encoded while its CID was being
 * reserved.  Collective.  Everything that can take long, PRP lists and look-ups
 * of DMA addresses, is done before slots are taken, since the doorbell waits
 * for slots that are unwritten.  Returns false, with nothing submitted, if the
 * queue pair is lost: the CIDs and credits are then lost too, until
 * nvmepeer_queue_rearm().
 */
NVP_FN bool nvp_send_reserved(const struct nvmepeer_queue *queue,
			      struct nvmepeer_group group,
			      nvmepeer_mask pending, uint32_t count,
			      const struct nvp_submission *submission,
			      struct nvp_encoded *encoded,
			      struct nvp_sent *sent)
{
	struct nvmepeer_token *token = &sent->token;
	uint32_t rank = nvp_rank(pending, group.lane);
	bool sends = (pending >> group.lane & 1) && rank < count;
	struct nvp_slots slots;

	nvp_fence_device_acquire();		/* H */
	/* The leader reserved the CIDs, every lane writes its result word. */
	nvp_group_sync(group);
	if (sends) {
		if (!group.single)
			nvp_encode_entry(queue, submission, encoded);
		nvp_assign_entry_cid(queue, token->cid, submission, encoded);
		nvp_store64(&queue->results[token->cid], 0);
	}
	slots = nvp_take_slots(queue, group, count);
	if (slots.before & NVP_TAIL_LOST) {
		nvp_drop_slots(queue, group, count);
		return false;
	}
	/* Other lanes may have been sent in an earlier round. */
	if (sends)
		token->ticket = slots.first + rank;
	if (!group.single && NVMEPEER_LANES >= 4 && count == NVMEPEER_LANES &&
	    (queue->flags & NVMEPEER_SQ_REMOTE))
		nvp_write_transposed(queue, group.mask, group.lane, token->ticket,
				     &encoded->entry);
	else if (sends)
		nvp_write_entry(queue, token->ticket, &encoded->entry);
	sent->head = nvp_publish_entries(queue, group, slots, count);
	return true;
}

/*
 * Broadcast the head of the completion ring that the leader saw, as the group's
 * guess.  Collective.
 */
NVP_FN uint32_t nvp_broadcast_head(struct nvmepeer_group group, uint32_t seen)
{
	return nvp_group_copy32(group, seen, group.leader) & NVP_HEAD_MASK;
}

/*
 * Load the head of the completion ring, as the group's first guess.
 * Collective.
 */
NVP_FN uint32_t nvp_load_head(const struct nvmepeer_queue *queue,
			      struct nvmepeer_group group)
{
	return nvp_broadcast_head(group, nvp_load32(&queue->state->head));
}

/* Has a lane that @sends a command that is not in the background? */
NVP_FN bool nvp_demands(bool sends, const struct nvp_submission *submission)
{
	return sends && !(submission->command.control & NVMEPEER_CONTROL_BACKGROUND);
}

/*
 * Slots that the group leaves free: none, unless all that it submits is in the
 * background.  Its lanes submit together: two groups of a warp could each wait for slots
 * or CIDs that the other holds, and one of them may not run while the other waits.
 * Collective.
 */
NVP_FN uint32_t nvp_spare(const struct nvmepeer_queue *queue, struct nvmepeer_group group,
			  bool sends, const struct nvp_submission *submission)
{
	return nvp_group_ballot(group, nvp_demands(sends, submission)) ? 0 : queue->reserve;
}

/* Credits left beside @spare, as the leader sees them.  Collective. */
NVP_FN int32_t nvp_credits_left(const struct nvmepeer_queue *queue,
				struct nvmepeer_group group, uint32_t spare)
{
	return (int32_t)nvp_group_copy32(group, nvp_load32(&queue->state->credits) - spare,
					 group.leader);
}

/*
 * The queue is full: wait until there is room beside @spare or the timeout of one of the
 * @pending lanes has expired. Every fourth poll reaps completions, which makes
 * room.  Collective.  Returns the error that ended this lane's wait, or 0.
 */
NVP_FN int nvp_wait_for_room(const struct nvmepeer_queue *queue,
			     struct nvmepeer_group group, nvmepeer_mask pending,
			     uint32_t spare, struct nvp_deadline *deadline)
{
	uint32_t head = nvp_load_head(queue, group), taken;
	uint64_t none = 0;
	int32_t credits;
	int error;

	do {
		taken = 0;
		if (deadline->polls % 4 == 0)
			taken = nvp_reap(queue, group, false, NVMEPEER_NO_CID, &none, &head);
		error = nvp_deadline_check(queue, group, deadline, !taken,
					   NVP_PAUSE_LIMIT);
		credits = nvp_credits_left(queue, group, spare);
	} while (credits <= 0 && !(nvp_group_ballot(group, error != 0) & pending));
	return error;
}

/*
 * Submit the commands of the @pending lanes in rounds.  Collective.  If CIDs
 * run out, a group that @executes must not wait for more while its own commands
 * hold some: if all groups did, they would deadlock.  It returns instead, the
 * lanes left over have status NVMEPEER_AGAIN, and the caller submits those
 * after it has waited for the others.
 */
NVP_NOINLINE_FN struct nvp_sent nvp_send_rounds(const struct nvmepeer_queue *queue,
						struct nvmepeer_group group,
						nvmepeer_mask pending,
						struct nvp_submission submission,
						uint64_t timeout_ns, bool executes)
{
	struct nvp_deadline deadline = nvp_deadline_start(group, timeout_ns);
	struct nvp_sent sent = { NVMEPEER_E_LOST, 0, { NVMEPEER_NO_CID, 0 }, 0 };
	bool mine = pending >> group.lane & 1, sends = false, short_of_cids;
	uint32_t spare = nvp_spare(queue, group, mine, &submission);
	struct nvp_encoded encoded = nvp_empty_entry();

	while (!nvp_group_copy32(group, nvp_known_lost(queue), group.leader)) {
		uint32_t count = nvp_reserve_some(queue, group, pending, spare,
						  &sent.token.cid, &short_of_cids);
		int error;

		if (group.single)
			nvp_encode_entry(queue, &submission, &encoded);
		if (count && !nvp_send_reserved(queue, group, pending, count, &submission,
						&encoded, &sent))
			break;
		if (mine && nvp_rank(pending, group.lane) < count) {
			sent.status = NVMEPEER_OK;
			sends = true;
			mine = false;
		}
		pending = nvp_group_ballot(group, mine);
		if (!pending)
			break;
		if (executes && short_of_cids && nvp_group_ballot(group, sends)) {
			deadline = nvp_deadline_slow(queue, group, deadline);
			sent.room_until = deadline.end_ns;
			if (mine)
				sent.status = NVMEPEER_AGAIN;
			break;
		}
		error = nvp_wait_for_room(queue, group, pending, spare, &deadline);
		if (mine && error) {
			sent.status = error == NVMEPEER_E_TIMEOUT ? NVMEPEER_E_FULL : error;
			mine = false;
		}
		pending = nvp_group_ballot(group, mine);
		if (!pending)
			break;
	}
	return sent;
}

/*
 * Submit the commands of all lanes that @sends together.  Collective.  Each
 * lane gets its own status in @sent.  Returns false, with nothing submitted, if
 * there is no room for all of them, or if the leader's command, which it may not send, is
 * in the background.
 */
NVP_FN bool nvp_send_all(const struct nvmepeer_queue *queue,
			 struct nvmepeer_group group, bool sends,
			 const struct nvp_submission *submission,
			 struct nvp_sent *sent)
{
	nvmepeer_mask pending = nvp_group_ballot(group, sends);
	struct nvp_reservation reservation = { { 0, 0, 0 }, 0, false };
	struct nvp_cid_bits taken = { 0, 0, 0 };
	struct nvp_encoded encoded = nvp_empty_entry();
	uint32_t count;
	bool leads;

	sent->status = NVMEPEER_OK;
	sent->head = 0;
	sent->token.cid = NVMEPEER_NO_CID;
	sent->token.ticket = 0;
	sent->room_until = 0;
	if (!pending)
		return true;
	/* Credits are taken without a check, so not for the background. */
	leads = group.lane == group.leader &&
		!(submission->command.control & NVMEPEER_CONTROL_BACKGROUND);
	count = group.single ? 1 : nvp_mask_count(pending);
	if (leads)
		reservation = nvp_reserve_start(queue, count);
	/*
	 * With many lanes the registers that this takes cost more than it
	 * saves.
	 */
	if (group.single)
		nvp_encode_entry(queue, submission, &encoded);
	if (leads)
		taken = nvp_reserve_all(queue, count, reservation);
	taken.bits = nvp_group_copy32(group, taken.bits, group.leader);
	if (!taken.bits)
		return false;
	taken.word = nvp_group_copy32(group, taken.word, group.leader);
	if (NVMEPEER_LANES > 32)
		taken.more = nvp_group_copy32(group, taken.more, group.leader);
	if (sends)
		sent->token.cid = nvp_cid_of_rank(taken, nvp_rank(pending, group.lane));
	if (!nvp_send_reserved(queue, group, pending, count, submission, &encoded, sent))
		sent->status = NVMEPEER_E_LOST;
	return true;
}

/* The same for a group that submits, in rounds if necessary. */
NVP_FN struct nvp_sent nvp_send_group(const struct nvmepeer_queue *queue,
				      struct nvmepeer_group group, bool sends,
				      const struct nvp_submission *submission,
				      uint64_t timeout_ns)
{
	struct nvp_sent sent;

	if (!nvp_send_all(queue, group, sends, submission, &sent))
		sent = nvp_send_rounds(queue, group, nvp_group_ballot(group, sends),
				       *submission, timeout_ns, false);
	return sent;
}

#endif /* NVMEPEER_DEVICE_SEND_H */
