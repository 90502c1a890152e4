/* SPDX-License-Identifier: MIT OR GPL-2.0 */
/*
 * nvmepeer_device/exclusive.h: a queue pair that one group of lanes owns
 * exclusively.
 *
 * If a thread or a warp has a queue pair for itself, no state needs to be
 * shared: the counters are in registers, and a command costs no atomic: a
 * fence, a tail doorbell, one poll of the completion ring, a head doorbell.
 * This is the shortest path from a GPU thread to a controller and back.
 *
 * All lanes that were active at nvmepeer_exclusive_open() make every later call
 * together; each may submit a command of its own, or none.  Between open and
 * close other threads that submit find the queue pair full, and other threads
 * that poll find no completions.
 */
#ifndef NVMEPEER_DEVICE_EXCLUSIVE_H
#define NVMEPEER_DEVICE_EXCLUSIVE_H

#include "command.h"
#include "compiler.h"
#include "complete.h"
#include "nvme.h"
#include "opcodes.h"
#include "platform.h"
#include "queue.h"
#include "send.h"
#include "submit.h"
#include "wait.h"

/**
 * struct nvmepeer_exclusive - a queue pair with one owner; keep it in registers
 * @queue: the queue pair
 * @group: the lanes that own it
 * @tail: submission slots used so far
 * @head: completion entries consumed so far
 * @generation: losses of the queue pair at open; only the leader has it
 * @broken: a status that every later call returns
 *
 * A re-arm makes it invalid: calls on it after that, except a close, are errors of
 * the caller.
 */
struct nvmepeer_exclusive {
	const struct nvmepeer_queue *queue;
	struct nvmepeer_group group;
	uint32_t tail;
	uint32_t head;
	uint32_t generation;
	int broken;
};

/* Return all credits, ordered after everything else.  One lane. */
NVP_FN void nvp_exclusive_end(const struct nvmepeer_queue *queue)
{
	nvp_fence_device();		/* M */
	nvp_post_add32(&queue->state->credits,
		       nvp_max_in_flight(queue) - (uint32_t)NVP_EXCLUSIVE_CREDITS);
}

/*
 * Take all credits of an idle queue pair.  It is idle if all credits are there,
 * as many completions as slots were used, and no group owns the doorbells.
 *
 * The head is marked, since other groups may still poll, for commands whose
 * completions a third group has reaped: they would reap those of this group.
 * Atomics read both words and so see the last value; the values last rung are
 * acquired before the first doorbell.  A head doorbell then reports everything
 * consumed so far to the controller, since this group may wait for as many
 * completions as it has room for. One lane.
 */
NVP_FN int nvp_exclusive_begin(const struct nvmepeer_queue *queue,
			       struct nvmepeer_exclusive *exclusive)
{
	struct nvmepeer_state *state = queue->state;
	uint32_t all = nvp_max_in_flight(queue);
	uint64_t tail;

	if (nvmepeer_queue_check_layout(queue))
		return NVMEPEER_E_LAYOUT;
	if (nvp_known_lost(queue))
		return NVMEPEER_E_LOST;
	if (nvp_compare_exchange32(&state->credits, all,
				   (uint32_t)NVP_EXCLUSIVE_CREDITS) != all)
		return NVMEPEER_E_BUSY;
	exclusive->generation = nvp_load32(&state->generation);
	exclusive->head = nvp_or32(&state->head, NVP_HEAD_EXCLUSIVE);
	tail = nvp_add64(&state->tail, 0);
	exclusive->tail = (uint32_t)(tail >> NVP_TICKET_SHIFT);
	if (!(uint32_t)tail && !((exclusive->head ^ exclusive->tail) & NVP_HEAD_MASK)) {
		nvp_fence_device_acquire();	/* D */
		nvp_ring_head(queue, exclusive->head & NVP_HEAD_MASK,
			      nvp_load32(&state->head_rung));
		return NVMEPEER_OK;
	}
	nvp_store32(&state->head, exclusive->head);
	nvp_exclusive_end(queue);
	return NVMEPEER_E_BUSY;
}

/**
 * nvmepeer_exclusive_open - take an idle queue pair exclusively
 *
 * Collective.  All later calls return NVMEPEER_E_BUSY if another thread has a
 * command in flight, abandoned ones included, or the queue pair is exclusive
 * already; NVMEPEER_E_LOST if it is lost, or NVMEPEER_E_BUSY if the loss is found
 * during this call; NVMEPEER_E_LAYOUT if code of another version made it.
 */
NVP_FN struct nvmepeer_exclusive nvmepeer_exclusive_open(const struct nvmepeer_queue *queue)
{
	struct nvmepeer_exclusive exclusive;
	uint32_t error = 0;

	exclusive.queue = queue;
	exclusive.group = nvmepeer_group_join(queue);
	exclusive.tail = 0;
	exclusive.head = 0;
	exclusive.generation = 0;
	if (exclusive.group.lane == exclusive.group.leader)
		error = (uint32_t)nvp_exclusive_begin(queue, &exclusive);
	exclusive.broken = (int)nvp_group_copy32(exclusive.group, error, exclusive.group.leader);
	exclusive.tail = nvp_group_copy32(exclusive.group, exclusive.tail, exclusive.group.leader);
	exclusive.head = nvp_group_copy32(exclusive.group, exclusive.head, exclusive.group.leader);
	return exclusive;
}

/*
 * nvmepeer_exclusive_close - make the queue pair shared again.  Collective.
 * After a timeout or a loss it marks the queue pair lost instead, since
 * commands may be in flight: request nvmepeer_queue_quiesce() and re-arm it.
 * Without a close the queue pair stays exclusive until a re-arm by the host
 * library.  Does nothing after a re-arm, or a second time: all calls with a closed
 * handle return NVMEPEER_E_BUSY, or the status that ended its use.  A copy of the handle must not be used after that.
 */
NVP_FN void nvmepeer_exclusive_close(struct nvmepeer_exclusive *exclusive)
{
	const struct nvmepeer_queue *queue = exclusive->queue;
	struct nvmepeer_state *state = queue->state;
	uint32_t ticket, head = exclusive->head & NVP_HEAD_MASK;
	int broken = exclusive->broken;

	if (!broken)
		exclusive->broken = NVMEPEER_E_BUSY;
	if (exclusive->group.lane != exclusive->group.leader ||
	    broken == NVMEPEER_E_BUSY || broken == NVMEPEER_E_LAYOUT)
		return;
	/* Only its owner may change the state: a re-arm gave it to others. */
	if (!(nvp_load32(&state->head) & NVP_HEAD_EXCLUSIVE) ||
	    nvp_load32(&state->generation) != exclusive->generation)
		return;
	if (broken) {
		nvp_mark_lost(queue);
		return;
	}
	/* An addition preserves NVP_TAIL_LOST, which another thread may set. */
	ticket = (uint32_t)(nvp_load64(&state->tail) >> NVP_TICKET_SHIFT);
	nvp_add64(&state->tail, (uint64_t)(exclusive->tail - ticket) << NVP_TICKET_SHIFT);
	nvp_store32(&state->tail_rung, exclusive->tail);
	nvp_store32(&state->head_rung, head);
	nvp_store32(&state->head, head);
	nvp_exclusive_end(queue);
}

/*
 * Store the entries of the @count lanes with @sends set, in the order of their
 * @rank, and ring.  Collective.
 */
NVP_FN void nvp_exclusive_send(struct nvmepeer_exclusive *exclusive, bool sends, uint32_t rank,
			       uint32_t count, const struct nvp_submission *submission)
{
	const struct nvmepeer_queue *queue = exclusive->queue;
	struct nvp_encoded encoded = nvp_empty_entry();

	if (sends) {
		nvp_encode_entry(queue, submission, &encoded);
		nvp_assign_entry_cid(queue, rank, submission, &encoded);
	}
	if (!exclusive->group.single && NVMEPEER_LANES >= 4 && count == NVMEPEER_LANES &&
	    (queue->flags & NVMEPEER_SQ_REMOTE))
		nvp_write_transposed(queue, exclusive->group.mask, exclusive->group.lane,
				     exclusive->tail + rank, &encoded.entry);
	else if (sends)
		nvp_write_entry(queue, exclusive->tail + rank, &encoded.entry);
	exclusive->tail += count;
	nvp_group_sync(exclusive->group);
	if (exclusive->group.lane != exclusive->group.leader)
		return;
	nvp_fence_publish();		/* P */
	nvp_doorbell_store(queue->sq_doorbell, exclusive->tail & queue->sq_mask);
}

/* Does the status page report that the queue pair is lost?  Collective. */
NVP_FN bool nvp_exclusive_lost(const struct nvmepeer_queue *queue, struct nvmepeer_group group)
{
	uint32_t lost = 0;

	if (group.lane == group.leader) {
		lost = nvp_known_lost(queue);
		if (!lost && nvp_status_lost(queue)) {
			nvp_mark_lost(queue);
			lost = 1;
		}
	}
	return nvp_group_copy32(group, lost, group.leader);
}

/*
 * Wait until @count completion entries are at the head.  Collective.  Each lane
 * whose rank is below @count reads its own into @entry.  @end_ns: when the
 * timeout expires, or 0 while the clock has not been read.
 *
 * Calls no function: around calls compilers keep values in local memory, and
 * after a fence, which invalidates the L1 cache, those must be loaded from L2.
 */
NVP_FN int nvp_exclusive_wait(const struct nvmepeer_exclusive *exclusive, uint32_t rank,
			      uint32_t count, uint32_t entry[4], uint64_t timeout_ns,
			      uint64_t *end_ns)
{
	const struct nvmepeer_queue *queue = exclusive->queue;
	uint32_t index = exclusive->head + (rank < count ? rank : 0), polls = NVP_POLLS_PER_CLOCK;
	uint64_t slot = queue->cq + (uint64_t)(index & queue->cq_mask) * 16;
	uint32_t phase = nvp_phase_at(queue, index);

	/* If one lane must not wait at all, the first poll reads the clock. */
	if (nvp_group_ballot(exclusive->group, !timeout_ns))
		polls = 1;
	nvp_cq_load(slot, entry);
	for (;;) {
		bool missing = nvp_cqe_phase(entry) != phase;

		if (!nvp_group_ballot(exclusive->group, missing))
			return NVMEPEER_OK;
		if (!--polls) {
			uint64_t now = nvmepeer_now_ns();

			if (!*end_ns)
				*end_ns = now + timeout_ns < now ? ~(uint64_t)0 : now + timeout_ns;
			if (nvp_exclusive_lost(queue, exclusive->group))
				return NVMEPEER_E_LOST;
			/*
			 * The lanes wait together, until the last one's timeout
			 * expires.
			 */
			if (!nvp_group_ballot(exclusive->group, now < *end_ns)) {
				/*
				 * The thread may have been stopped before it
				 * read the clock.
				 */
				if (missing)
					nvp_cq_load(slot, entry);
				missing = nvp_cqe_phase(entry) != phase;
				return nvp_group_ballot(exclusive->group, missing) ?
				       (int)NVMEPEER_E_TIMEOUT : (int)NVMEPEER_OK;
			}
			polls = NVP_POLLS_PER_CLOCK;
		}
		nvp_pause(0);
		/*
		 * Over a bus each poll costs bandwidth: lanes that have their
		 * entry do not poll again.
		 */
		if (missing)
			nvp_cq_load(slot, entry);
	}
}

/*
 * One round: the first lanes of @pending that the ring has room for.
 * Collective.
 */
NVP_FN int nvp_exclusive_round(struct nvmepeer_exclusive *exclusive, nvmepeer_mask pending,
			       const struct nvp_submission *submission,
			       uint64_t timeout_ns, uint64_t *end_ns, uint64_t *result)
{
	const struct nvmepeer_queue *queue = exclusive->queue;
	uint32_t rank = nvp_rank(pending, exclusive->group.lane);
	uint32_t position = nvp_rank(exclusive->group.mask, exclusive->group.lane);
	uint32_t count = nvp_mask_count(pending), entry[4];
	bool sends;
	int error;

	count = count < queue->sq_mask ? count : queue->sq_mask;
	sends = (pending >> exclusive->group.lane & 1) && rank < count;
	nvp_exclusive_send(exclusive, sends, rank, count, submission);
	error = nvp_exclusive_wait(exclusive, position, count, entry, timeout_ns, end_ns);
	if (error)
		return error;
	nvp_acquire_completion(queue);
	/* Another lane may have read the entry that announces a lane's data. */
	nvp_group_sync(exclusive->group);
	nvp_match_entries(exclusive->group, count, entry, position < count, sends, rank, result);
	exclusive->head += count;
	if (exclusive->group.lane == exclusive->group.leader)
		nvp_doorbell_store(queue->cq_doorbell, exclusive->head & queue->cq_mask);
	return NVMEPEER_OK;
}

/*
 * nvmepeer_exclusive_execute() for a group of lanes.  Collective.  One copy of
 * the code serves groups of any size: two copies and a function for the other
 * groups cost registers and, in a kernel that has 64, half a microsecond of
 * loads of spilled values.
 */
NVP_FN int nvp_exclusive_execute_group(struct nvmepeer_exclusive *exclusive,
				       const struct nvmepeer_command *command, uint32_t *result,
				       uint64_t timeout_ns)
{
	struct nvp_submission submission = { { 0, 0, 0, NULL, 0, 0 }, NULL, 0, 0 };
	uint64_t word = 0, end_ns = 0;
	nvmepeer_mask pending;

	if (command)
		submission = nvp_submission_of(exclusive->queue, command);
	else
		timeout_ns = 1;
	pending = nvp_group_ballot(exclusive->group, command && !submission.bad);
	while (pending && !exclusive->broken) {
		exclusive->broken = nvp_exclusive_round(exclusive, pending, &submission,
							timeout_ns, &end_ns, &word);
		pending &= ~nvp_group_ballot(exclusive->group, (word & NVP_RESULT_DONE) != 0);
	}
	if (result)
		*result = (uint32_t)(word >> 32);
	if (word & NVP_RESULT_DONE)
		return (int)(word & 0x7fff);
	return submission.bad ? submission.bad : command ? exclusive->broken : NVMEPEER_OK;
}

/*
 * nvp_exclusive_execute_group() for one lane, which needs no ranks, no exchange
 * and no rounds: the path in which every instruction adds to the latency of a
 * command.
 */
NVP_FN int nvp_exclusive_execute_single(struct nvmepeer_exclusive *exclusive,
					const struct nvmepeer_command *command, uint32_t *result,
					uint64_t timeout_ns)
{
	const struct nvmepeer_queue *queue = exclusive->queue;
	struct nvmepeer_exclusive single;
	struct nvmepeer_sqe entry;
	uint64_t end_ns = 0;
	uint32_t bytes, done[4];
	int bad;

	if (!command || exclusive->broken)
		return command ? exclusive->broken : NVMEPEER_OK;
	bad = nvp_command_check(queue, command, &bytes);
	if (bad)
		return bad;
	nvp_assign_cid(queue, 0, command, bytes, nvp_encode(queue, command, bytes, &entry),
		       &entry);
	nvp_write_entry(queue, exclusive->tail++, &entry);
	nvp_fence_publish();		/* P */
	nvp_doorbell_store(queue->sq_doorbell, exclusive->tail & queue->sq_mask);
	single = *exclusive;
	single.group = nvp_group_single();
	exclusive->broken = nvp_exclusive_wait(&single, 0, 1, done, timeout_ns, &end_ns);
	if (exclusive->broken)
		return exclusive->broken;
	nvp_acquire_completion(queue);
	exclusive->head++;
	nvp_doorbell_store(queue->cq_doorbell, exclusive->head & queue->cq_mask);
	if (result)
		*result = done[0];
	return (int)nvp_cqe_status(done);
}

/**
 * nvmepeer_exclusive_execute - submit the lanes' commands and wait for all of
 * them
 * @exclusive: from nvmepeer_exclusive_open()
 * @command: this lane's command, or NULL for none
 * @result: out: dword 0 of the completion entry; may be NULL
 * @timeout_ns: how long to wait
 *
 * Collective.  Returns this lane's own status, like nvmepeer_read().  After
 * NVMEPEER_E_TIMEOUT or _E_LOST every later call returns the same: commands may
 * still be in flight.  The lanes wait together, for the longest of their
 * timeouts.
 */
NVP_FN int nvmepeer_exclusive_execute(struct nvmepeer_exclusive *exclusive,
				      const struct nvmepeer_command *command,
				      uint32_t *result, uint64_t timeout_ns)
{
	int status = exclusive->group.single ?
		     nvp_exclusive_execute_single(exclusive, command, result, timeout_ns) :
		     nvp_exclusive_execute_group(exclusive, command, result, timeout_ns);

	/* All lanes: a command of one of them was aborted as the queue was deleted. */
	if (nvp_group_ballot(exclusive->group, nvp_return_status(status) == NVMEPEER_E_LOST))
		exclusive->broken = NVMEPEER_E_LOST;
	return nvp_return_status(status);
}

/*
 * nvmepeer_exclusive_read - nvmepeer_read() on an exclusive queue pair.
 * Collective.
 */
NVP_FN int nvmepeer_exclusive_read(struct nvmepeer_exclusive *exclusive,
				   const struct nvmepeer_buffer *buffer, uint64_t offset,
				   uint64_t lba, uint32_t blocks)
{
	struct nvmepeer_command command = { NVMEPEER_OP_READ, blocks, lba, buffer, offset, 0 };

	return nvmepeer_exclusive_execute(exclusive, &command, NULL, exclusive->queue->timeout_ns);
}

/*
 * nvmepeer_exclusive_write - nvmepeer_write() on an exclusive queue pair.
 * Collective.
 */
NVP_FN int nvmepeer_exclusive_write(struct nvmepeer_exclusive *exclusive,
				    const struct nvmepeer_buffer *buffer, uint64_t offset,
				    uint64_t lba, uint32_t blocks)
{
	struct nvmepeer_command command = { NVMEPEER_OP_WRITE, blocks, lba, buffer, offset, 0 };

	return nvmepeer_exclusive_execute(exclusive, &command, NULL, exclusive->queue->timeout_ns);
}

#endif /* NVMEPEER_DEVICE_EXCLUSIVE_H */
