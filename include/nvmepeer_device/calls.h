/* SPDX-License-Identifier: MIT OR GPL-2.0 */
/*
 * nvmepeer_device/calls.h: the calls of one thread.  Any thread may make any
 * call at any time.  Lanes of a warp that happen to call together are combined
 * into one submission and one wait.
 */
#ifndef NVMEPEER_DEVICE_CALLS_H
#define NVMEPEER_DEVICE_CALLS_H

#include "command.h"
#include "compiler.h"
#include "complete.h"
#include "nvme.h"
#include "opcodes.h"
#include "platform.h"
#include "queue.h"
#include "send.h"
#include "wait.h"

/*
 * The outcome of a lane's command, by value for the same reason as struct
 * nvp_submission.
 */
struct nvp_outcome {
	int status;
	uint32_t result;
	struct nvmepeer_token token;
};

/*
 * Submit the lanes' commands that passed the checks, and register their tokens
 * as owners of the CIDs. Collective.
 */
NVP_FN struct nvp_outcome nvp_submit_group(struct nvmepeer_group group,
					   const struct nvmepeer_queue *queue,
					   struct nvp_submission submission,
					   uint64_t timeout_ns)
{
	struct nvp_sent sent = nvp_send_group(queue, group, !submission.bad, &submission,
					      timeout_ns);
	struct nvp_outcome outcome = { sent.status, 0, sent.token };

	if (submission.bad)
		outcome.status = submission.bad;
	if (outcome.status)
		outcome.token.cid = NVMEPEER_NO_CID;
	else
		nvp_store32(&queue->owners[sent.token.cid],
			    sent.token.ticket | NVP_OWNED);
	return outcome;
}

NVP_NOINLINE_FN struct nvp_outcome nvp_submit_partial(struct nvmepeer_group group,
						      const struct nvmepeer_queue *queue,
						      struct nvp_submission submission,
						      uint64_t timeout_ns)
{
	return nvp_submit_group(group, queue, submission, timeout_ns);
}

/* Submit one command of the calling thread. */
NVP_FN int nvp_submit_one(const struct nvmepeer_queue *queue,
			  struct nvp_submission submission,
			  struct nvmepeer_token *token, uint64_t timeout_ns)
{
	struct nvmepeer_group group = nvmepeer_group_join(queue);
	struct nvp_outcome outcome;

	outcome = NVP_BY_GROUP(group, nvp_submit_group, nvp_submit_partial, queue,
			       submission, timeout_ns);
	*token = outcome.token;
	return outcome.status;
}

/**
 * nvmepeer_submit - submit a command without waiting for its completion
 * @queue: the queue pair
 * @command: the command.  The command, its struct nvmepeer_buffer and a table of
 *	DMA addresses are read before the return; the data memory belongs to the
 *	controller until the result has been taken
 * @token: out: identifies the command
 * @timeout_ns: how long to wait for room in the queue
 *
 * The doorbell has been rung, or another group is going to ring it, when the
 * call returns: no flush is needed.  Returns 0, NVMEPEER_E_FULL, _E_LOST,
 * _E_RANGE, _E_TOO_LARGE, _E_ALIGN, _E_NO_LIST or _E_OPCODE.  Every token must be passed
 * to nvmepeer_wait(), or to nvmepeer_poll() until that returns anything but
 * NVMEPEER_AGAIN: results are kept for nvmepeer_geometry.cids commands.  Lanes
 * that call together return together.
 */
NVP_FN int nvmepeer_submit(const struct nvmepeer_queue *queue,
			   const struct nvmepeer_command *command,
			   struct nvmepeer_token *token, uint64_t timeout_ns)
{
	return nvp_submit_one(queue, nvp_submission_of(queue, command), token,
			      timeout_ns);
}

/*
 * nvmepeer_submit_raw - nvmepeer_submit() with an entry of the caller; the
 * library sets its CID.
 */
NVP_FN int nvmepeer_submit_raw(const struct nvmepeer_queue *queue,
			       const struct nvmepeer_sqe *entry,
			       struct nvmepeer_token *token, uint64_t timeout_ns)
{
	struct nvp_submission submission = { { 0, 0, 0, NULL, 0, 0 }, entry, 0, 0 };

	return nvp_submit_one(queue, submission, token, timeout_ns);
}

/*
 * Is @token that of a command in flight?  The calling thread then owns it, and
 * no other thread can use it until nvp_release_token() gives it back.
 */
NVP_FN bool nvp_claim_token(const struct nvmepeer_queue *queue, struct nvmepeer_token token)
{
	uint32_t owner = token.ticket | NVP_OWNED;

	return token.cid / 32 <= queue->cid_words_mask &&
	       nvp_compare_exchange32(&queue->owners[token.cid], owner, 0) == owner;
}

NVP_FN void nvp_release_token(const struct nvmepeer_queue *queue, struct nvmepeer_token token)
{
	nvp_store32(&queue->owners[token.cid], token.ticket | NVP_OWNED);
}

/* Wait for the lanes' tokens.  Collective. */
NVP_FN struct nvp_outcome nvp_wait_token(struct nvmepeer_group group,
					 const struct nvmepeer_queue *queue,
					 struct nvmepeer_token token,
					 uint64_t timeout_ns)
{
	struct nvp_deadline deadline = nvp_deadline_start(group, timeout_ns);
	bool good = nvp_claim_token(queue, token);
	struct nvp_waiter waiting = { good, false, token.cid, token.ticket, 0 };
	struct nvp_outcome outcome = { 0, 0, token };

	outcome.status = nvp_wait_group(queue, group, &waiting,
					nvp_load_head(queue, group), &deadline);
	outcome.result = (uint32_t)(waiting.result >> 32);
	if (!good)
		outcome.status = NVMEPEER_E_TOKEN;
	return outcome;
}

NVP_NOINLINE_FN struct nvp_outcome nvp_wait_partial(struct nvmepeer_group group,
						    const struct nvmepeer_queue *queue,
						    struct nvmepeer_token token,
						    uint64_t timeout_ns)
{
	return nvp_wait_token(group, queue, token, timeout_ns);
}

/**
 * nvmepeer_wait - wait for a command
 * @queue: the queue pair that it was submitted to
 * @token: from nvmepeer_submit(); invalid after the call; only one thread may
 *	use it at a time
 * @result: out: dword 0 of the completion entry; may be NULL
 * @timeout_ns: how long to wait
 *
 * Returns 0, the NVMe status, NVMEPEER_E_TIMEOUT, _E_LOST or _E_TOKEN.  After a
 * return of 0 the calling thread may read the data that the command has read.
 * Lanes that call together each have their own timeout and status, and return
 * together, when the last one is done.  A token that was used before, or that
 * predates a re-arm, returns NVMEPEER_E_TOKEN and changes nothing.
 */
NVP_FN int nvmepeer_wait(const struct nvmepeer_queue *queue, struct nvmepeer_token token,
			 uint32_t *result, uint64_t timeout_ns)
{
	struct nvmepeer_group group = nvmepeer_group_join(queue);
	struct nvp_outcome outcome;

	outcome = NVP_BY_GROUP(group, nvp_wait_token, nvp_wait_partial, queue, token,
			       timeout_ns);
	if (result)
		*result = outcome.result;
	return nvp_return_status(outcome.status);
}

/*
 * Count a poll of the group that found nothing.  Collective.  Polls are counted
 * in the queue pair, so that one of NVP_POLLS_PER_CLOCK checks the status page,
 * as in a wait, however few each caller makes.  Returns whether the queue pair
 * is lost.
 */
NVP_FN bool nvp_count_poll(const struct nvmepeer_queue *queue,
			   struct nvmepeer_group group)
{
	uint32_t seen, lost = 0;

	if (group.lane == group.leader) {
		seen = nvp_add32(&queue->state->lost, NVP_ONE_POLL);
		lost = seen & NVP_LOST;
		if ((seen / NVP_ONE_POLL + 1) % NVP_POLLS_PER_CLOCK == 0)
			lost = nvp_check_status(queue);
	}
	return nvp_group_copy32(group, lost, group.leader);
}

/* Poll the lanes' tokens once.  Collective. */
NVP_NOINLINE_FN struct nvp_outcome nvp_poll_token(struct nvmepeer_group group,
						  const struct nvmepeer_queue *queue,
						  struct nvmepeer_token token)
{
	bool good = nvp_claim_token(queue, token);
	struct nvp_waiter waiting = { good, false, token.cid, token.ticket, 0 };
	struct nvp_outcome outcome = { 0, 0, token };
	uint32_t head = nvp_load_head(queue, group);
	bool lost = false;

	if (nvp_group_ballot(group, good))
		nvp_poll_group(queue, group, &waiting, &head);
	nvp_retire(queue, group, &waiting, good && !waiting.waits);
	if (nvp_group_ballot(group, waiting.waits))
		lost = nvp_count_poll(queue, group);
	outcome.result = (uint32_t)(waiting.result >> 32);
	outcome.status = (int)(waiting.result & 0x7fff);
	if (!good) {
		outcome.status = NVMEPEER_E_TOKEN;
	} else if (waiting.waits) {
		nvp_release_token(queue, token);
		outcome.status = lost ? NVMEPEER_E_LOST : NVMEPEER_AGAIN;
	}
	return outcome;
}

/* nvmepeer_poll(), with the status as the controller wrote it. */
NVP_FN int nvp_poll_status(const struct nvmepeer_queue *queue,
			   struct nvmepeer_token token, uint32_t *result)
{
	struct nvp_outcome outcome = nvp_poll_token(nvmepeer_group_join(queue), queue,
						    token);

	if (result && outcome.status >= 0)
		*result = outcome.result;
	return outcome.status;
}

/**
 * nvmepeer_poll - check once whether a command has completed
 *
 * Like nvmepeer_wait(), but returns NVMEPEER_AGAIN at once if it has not
 * completed; the token then stays valid.  Of all polls of a queue pair that
 * find nothing, every 256th checks the status page; nvmepeer_check() always
 * does.
 */
NVP_FN int nvmepeer_poll(const struct nvmepeer_queue *queue, struct nvmepeer_token token,
			 uint32_t *result)
{
	return nvp_return_status(nvp_poll_status(queue, token, result));
}

/* Wait for the lanes' commands that were @sent.  Collective. */
NVP_FN struct nvp_outcome nvp_wait_sent(struct nvmepeer_group group,
					const struct nvmepeer_queue *queue,
					struct nvp_sent sent,
					uint64_t timeout_ns)
{
	struct nvp_deadline deadline = nvp_deadline_start(group, timeout_ns);
	struct nvp_waiter waiting = { !sent.status, false, sent.token.cid,
					    sent.token.ticket, 0 };
	struct nvp_outcome outcome = { 0, 0, sent.token };

	outcome.status = nvp_wait_group(queue, group, &waiting,
					nvp_broadcast_head(group, sent.head), &deadline);
	outcome.result = (uint32_t)(waiting.result >> 32);
	if (sent.status)
		outcome.status = sent.status;
	return outcome;
}

/*
 * Submit the lanes' commands and wait for them.  If CIDs run out, do so in
 * rounds; each round completes what it has submitted.  @tried: there was no
 * room for all of them just before.  Collective.
 */
NVP_NOINLINE_FN struct nvp_outcome nvp_execute_rounds(struct nvmepeer_group group,
						      const struct nvmepeer_queue *queue,
						      struct nvp_submission submission,
						      uint64_t timeout_ns, bool tried)
{
	struct nvp_outcome outcome = { submission.bad ? submission.bad : NVMEPEER_AGAIN, 0,
					    { NVMEPEER_NO_CID, 0 } };
	uint64_t room_ns = timeout_ns;
	nvmepeer_mask again;

	do {
		bool mine = outcome.status == NVMEPEER_AGAIN;
		struct nvp_outcome turn;
		struct nvp_sent sent;

		if (tried || !nvp_send_all(queue, group, mine, &submission, &sent))
			sent = nvp_send_rounds(queue, group, nvp_group_ballot(group, mine),
					       submission, room_ns, true);
		if (!mine)
			sent.status = NVMEPEER_AGAIN;
		again = nvp_group_ballot(group, mine && sent.status == NVMEPEER_AGAIN);
		turn = nvp_wait_sent(group, queue, sent, timeout_ns);
		if (mine)
			outcome = turn;
		if (outcome.status == NVMEPEER_AGAIN) {
			uint64_t now = nvmepeer_now_ns();

			room_ns = sent.room_until > now ? sent.room_until - now : 0;
			if (!room_ns)
				outcome.status = NVMEPEER_E_FULL;
		}
	} while (again);
	return outcome;
}

/* The same for partial groups.  Collective. */
NVP_FN struct nvp_outcome nvp_execute_partial(struct nvmepeer_group group,
					      const struct nvmepeer_queue *queue,
					      struct nvp_submission submission,
					      uint64_t timeout_ns)
{
	return nvp_execute_rounds(group, queue, submission, timeout_ns, false);
}

/* The same in the common case, with room for all lanes at once.  Collective. */
NVP_FN struct nvp_outcome nvp_execute_group(struct nvmepeer_group group,
					    const struct nvmepeer_queue *queue,
					    struct nvp_submission submission,
					    uint64_t timeout_ns)
{
	struct nvp_sent sent;

	if (!nvp_send_all(queue, group, !submission.bad, &submission, &sent))
		return nvp_execute_rounds(group, queue, submission, timeout_ns, true);
	if (submission.bad)
		sent.status = submission.bad;
	return nvp_wait_sent(group, queue, sent, timeout_ns);
}

/**
 * nvmepeer_execute - submit a command and wait for it
 *
 * nvmepeer_submit() and nvmepeer_wait() in one; each waits for @timeout_ns at
 * most.  If there are fewer CIDs than threads in calls, lanes that call
 * together take turns.
 */
NVP_FN int nvmepeer_execute(const struct nvmepeer_queue *queue,
			    const struct nvmepeer_command *command,
			    uint32_t *result, uint64_t timeout_ns)
{
	struct nvp_submission submission = nvp_submission_of(queue, command);
	struct nvmepeer_group group = nvmepeer_group_join(queue);
	struct nvp_outcome outcome;

	outcome = NVP_BY_GROUP(group, nvp_execute_group, nvp_execute_partial, queue,
			       submission, timeout_ns);
	if (result)
		*result = outcome.result;
	return nvp_return_status(outcome.status);
}

/**
 * nvmepeer_read - read logical blocks
 * @queue: the queue pair
 * @buffer: memory that receives the data
 * @offset: byte offset in @buffer
 * @lba: first logical block
 * @blocks: number of blocks
 *
 * Waits for the completion, at most nvmepeer_geometry.timeout_ns.  Returns 0,
 * the NVMe status or a negative enum nvmepeer_error.
 */
NVP_FN int nvmepeer_read(const struct nvmepeer_queue *queue,
			 const struct nvmepeer_buffer *buffer, uint64_t offset,
			 uint64_t lba, uint32_t blocks)
{
	struct nvmepeer_command command = { NVMEPEER_OP_READ, blocks, lba, buffer, offset, 0 };

	return nvmepeer_execute(queue, &command, NULL, queue->timeout_ns);
}

/* nvmepeer_write - write logical blocks; like nvmepeer_read(). */
NVP_FN int nvmepeer_write(const struct nvmepeer_queue *queue,
			  const struct nvmepeer_buffer *buffer, uint64_t offset,
			  uint64_t lba, uint32_t blocks)
{
	struct nvmepeer_command command = { NVMEPEER_OP_WRITE, blocks, lba, buffer, offset, 0 };

	return nvmepeer_execute(queue, &command, NULL, queue->timeout_ns);
}

/* nvmepeer_flush - make completed writes durable. */
NVP_FN int nvmepeer_flush(const struct nvmepeer_queue *queue)
{
	struct nvmepeer_command command = { NVMEPEER_OP_FLUSH, 0, 0, NULL, 0, 0 };

	return nvmepeer_execute(queue, &command, NULL, queue->timeout_ns);
}

/* nvmepeer_compare - compare blocks with @buffer: 0 if equal, status 0x285 if not. */
NVP_FN int nvmepeer_compare(const struct nvmepeer_queue *queue,
			    const struct nvmepeer_buffer *buffer, uint64_t offset,
			    uint64_t lba, uint32_t blocks)
{
	struct nvmepeer_command command = { NVMEPEER_OP_COMPARE, blocks, lba, buffer, offset, 0 };

	return nvmepeer_execute(queue, &command, NULL, queue->timeout_ns);
}

/* nvmepeer_write_zeroes - @control: 0 or NVMEPEER_CONTROL_DEALLOCATE. */
NVP_FN int nvmepeer_write_zeroes(const struct nvmepeer_queue *queue, uint64_t lba,
				 uint32_t blocks, uint32_t control)
{
	struct nvmepeer_command command = { NVMEPEER_OP_WRITE_ZEROES, blocks, lba, NULL, 0,
					    control };

	return nvmepeer_execute(queue, &command, NULL, queue->timeout_ns);
}

/**
 * nvmepeer_zone_append - append blocks to a zone
 * @zone: first logical block of the zone
 * @written: out: where the controller put the data, in blocks from @zone on;
 *	the zone must have fewer than 2^32 blocks; undefined after an error
 */
NVP_FN int nvmepeer_zone_append(const struct nvmepeer_queue *queue,
				const struct nvmepeer_buffer *buffer, uint64_t offset,
				uint64_t zone, uint32_t blocks, uint32_t *written)
{
	struct nvmepeer_command command = { NVMEPEER_OP_ZONE_APPEND, blocks, zone, buffer,
					    offset, 0 };
	uint32_t result = 0;
	int status = nvmepeer_execute(queue, &command, &result, queue->timeout_ns);

	*written = result - (uint32_t)zone;
	return status;
}

/**
 * nvmepeer_wait_any - wait for one of several commands
 * @tokens: tokens of this queue pair; the one that completes is marked as used,
 *	and tokens so marked are skipped
 * @count: number of tokens
 * @which: out: index of the token that completed
 * @result: out: dword 0 of its completion entry; may be NULL
 * @timeout_ns: how long to wait
 *
 * Returns the status of the command that completed (NVMEPEER_E_LOST if it was
 * aborted because its queue was deleted), NVMEPEER_E_TIMEOUT or _E_LOST with no
 * token used, or NVMEPEER_E_TOKEN if all are used or the one at @which is
 * invalid.
 */
NVP_FN int nvmepeer_wait_any(const struct nvmepeer_queue *queue,
			     struct nvmepeer_token *tokens, uint32_t count,
			     uint32_t *which, uint32_t *result, uint64_t timeout_ns)
{
	struct nvmepeer_group self = nvmepeer_group_self();
	struct nvp_deadline deadline = nvp_deadline_start(self, timeout_ns);
	int error;

	do {
		uint32_t alive = 0;

		/* Of an earlier round: this one is the last. */
		error = deadline.error;

		for (uint32_t i = 0; i < count; i++) {
			int status;

			if (tokens[i].cid == NVMEPEER_NO_CID)
				continue;
			alive++;
			/*
			 * Lost without an entry of its own: another token may
			 * have one.
			 */
			status = nvp_poll_status(queue, tokens[i], result);
			if (status == NVMEPEER_AGAIN || status == NVMEPEER_E_LOST)
				continue;
			tokens[i].cid = NVMEPEER_NO_CID;
			*which = i;
			return nvp_return_status(status);
		}
		if (!alive)
			return NVMEPEER_E_TOKEN;
		nvp_deadline_check(queue, self, &deadline, true, 1);
	} while (!error);
	return error;
}

/**
 * nvmepeer_serve - reap completions for other threads
 * @queue: the queue pair
 * @stop: word in the device's memory; the call returns when it is not 0
 *
 * For warps with nothing else to do: other threads then find their results in
 * the result words.  Never needed for progress.  Also returns if the queue pair
 * is lost.
 */
NVP_FN void nvmepeer_serve(const struct nvmepeer_queue *queue, const uint32_t *stop)
{
	struct nvmepeer_group group = nvmepeer_group_join(queue);
	struct nvp_deadline deadline = nvp_deadline_start(group, ~(uint64_t)0);
	uint32_t head = nvp_load_head(queue, group), taken = 0;
	uint64_t none = 0;

	while (!nvp_group_copy32(group, nvp_load32(stop), group.leader) &&
	       !nvp_deadline_check(queue, group, &deadline, !taken, 100))
		taken = nvp_reap(queue, group, false, NVMEPEER_NO_CID, &none, &head);
}

/*
 * Check the layout of the queue and the status page now: 0, NVMEPEER_E_LAYOUT or
 * NVMEPEER_E_LOST.
 */
NVP_FN int nvmepeer_check(const struct nvmepeer_queue *queue)
{
	int error = nvmepeer_queue_check_layout(queue);

	if (error)
		return error;
	return nvp_check_status(queue) ? NVMEPEER_E_LOST : NVMEPEER_OK;
}

#endif /* NVMEPEER_DEVICE_CALLS_H */
