/* SPDX-License-Identifier: MIT OR GPL-2.0 */
/*
 * nvmepeer_device/wait.h: groups of lanes, timeouts of waits, and commands that
 * were abandoned after a timeout.
 */
#ifndef NVMEPEER_DEVICE_WAIT_H
#define NVMEPEER_DEVICE_WAIT_H

#include "nvme.h"
#include "platform.h"
#include "queue.h"

/*
 * Lanes that execute a collective call: each passes the same group.  @single:
 * the group has one lane, and nothing needs to be exchanged.
 */
struct nvmepeer_group {
	nvmepeer_mask mask;
	uint32_t lane;
	uint32_t leader;
	bool single;
};

/* All lanes. */
#define NVP_FULL_MASK (~(nvmepeer_mask)0 >> (8 * sizeof(nvmepeer_mask) - NVMEPEER_LANES))

/* The active lanes that use the same queue pair. */
NVP_FN struct nvmepeer_group nvmepeer_group_join(const struct nvmepeer_queue *queue)
{
	struct nvmepeer_group group;

	group.mask = nvp_lanes_active();
	if (group.mask & (group.mask - 1))
		group.mask = nvp_lanes_match(group.mask, (uint64_t)(uintptr_t)queue->state);
	group.lane = nvp_lane();
	group.leader = nvp_mask_first(group.mask);
	group.single = !(group.mask & (group.mask - 1));
	return group;
}

/*
 * nvmepeer_group_full - all lanes of a warp.  All of them must make the calls
 * that take the group; in a block whose last warp is partial use
 * nvmepeer_group_join().
 *
 * This group and nvp_group_single() get code of their own, because compilers
 * optimise well for a constant mask.
 */
NVP_FN struct nvmepeer_group nvmepeer_group_full(void)
{
	struct nvmepeer_group group = { NVP_FULL_MASK, nvp_lane(), 0, NVMEPEER_LANES == 1 };

	return group;
}

/* A single lane has number 0 here, so that ranks and counts are constants. */
NVP_FN struct nvmepeer_group nvp_group_single(void)
{
	struct nvmepeer_group group = { 1, 0, 0, true };

	return group;
}

/*
 * Calls call(group, ...) with a constant mask where @group has all lanes or
 * one.  other(group, ...), an NVP_NOINLINE_FN, handles the partial groups.
 */
#define NVP_BY_GROUP(group, call, other, ...)					\
	(NVMEPEER_LANES > 1 && (group).mask == NVP_FULL_MASK ?			\
	 call(nvmepeer_group_full(), __VA_ARGS__) :					\
	 (group).single ? call(nvp_group_single(), __VA_ARGS__) :		\
	 other(group, __VA_ARGS__))

/* Exchanges within a group; see platform.h.  Collective. */
NVP_FN nvmepeer_mask nvp_group_ballot(struct nvmepeer_group group, int predicate)
{
	if (group.single)
		return predicate ? group.mask : 0;
	return nvp_lanes_ballot(group.mask, predicate);
}

NVP_FN uint32_t nvp_group_copy32(struct nvmepeer_group group, uint32_t value,
				 uint32_t lane)
{
	return group.single ? value : nvp_lanes_copy32(group.mask, value, lane);
}

NVP_FN uint32_t nvp_group_or32(struct nvmepeer_group group, uint32_t value)
{
	return group.single ? value : nvp_lanes_or32(group.mask, value);
}

/* A group of the calling lane alone, whatever other lanes do. */
NVP_FN struct nvmepeer_group nvmepeer_group_self(void)
{
	return nvp_group_single();
}

NVP_FN void nvp_group_sync(struct nvmepeer_group group)
{
	if (!group.single)
		nvp_lanes_sync(group.mask);
}

/*
 * The worst status of the lanes of a group, or 0.  Collective; orders memory.
 */
NVP_FN int nvp_group_status(struct nvmepeer_group group, int status)
{
	int worst = NVMEPEER_OK;
	nvmepeer_mask worse;

	nvp_group_sync(group);
	for (;;) {
		worse = nvp_group_ballot(group, nvp_worse(worst, status) != worst);
		if (!worse)
			return worst;
		worst = (int)nvp_group_copy32(group, (uint32_t)status, nvp_mask_first(worse));
	}
}

/* Number of lanes of @lanes below @lane. */
NVP_FN uint32_t nvp_rank(nvmepeer_mask lanes, uint32_t lane)
{
	return nvp_mask_count(lanes & (((nvmepeer_mask)1 << lane) - 1));
}

/*
 * Free the CIDs of abandoned commands that have completed since.  May run in
 * any thread at any time: the exchange gives each bit to one thread.
 */
NVP_NOINLINE_FN void nvp_reclaim(const struct nvmepeer_queue *queue)
{
	for (uint32_t word = 0; word <= queue->cid_words_mask; word++) {
		uint32_t bits = nvp_load32(&queue->abandoned_cids[word]);
		uint32_t done = 0;

		if (!bits)
			continue;
		bits = nvp_exchange32(&queue->abandoned_cids[word], 0);
		/* Do not read the result of an earlier use of the CID. */
		nvp_fence_device_acquire();	/* O */
		for (uint32_t bit = 0; bit < 32; bit++)
			if (bits >> bit & 1 && (nvp_load64(&queue->results[32 * word + bit]) &
						NVP_RESULT_DONE))
				done |= (uint32_t)1 << bit;
		if (bits & ~done)
			nvp_post_or32(&queue->abandoned_cids[word], bits & ~done);
		if (!done)
			continue;
		nvp_fence_device();	/* L */
		nvp_post_add32(&queue->state->abandoned, 0 - nvp_count_bits(done));
		nvp_post_or32(&queue->free_cids[word], done);
	}
}

/*
 * The owner of @cid stops waiting.  The CID is freed when the command
 * completes.
 */
NVP_NOINLINE_FN void nvp_abandon(const struct nvmepeer_queue *queue, uint32_t cid)
{
	/*
	 * nvp_reclaim() must see the result that this use of the CID has
	 * cleared, and subtract from a count that includes the command: the count
	 * must not be 0 while another one is in flight.
	 */
	nvp_post_add32(&queue->state->abandoned, 1);
	nvp_fence_device();		/* N */
	nvp_post_or32(&queue->abandoned_cids[cid / 32], (uint32_t)1 << cid % 32);
}

/*
 * Timeout of a wait, one for each lane, and how the wait ended.  Reading the
 * clock is slow on a GPU, so it is read once in @between + 1 polls, whatever
 * the polls find.  The first read starts the timeout: a wait may last up to
 * twice that number of polls longer.
 */
struct nvp_deadline {
	uint64_t timeout_ns;
	uint64_t end_ns;
	uint32_t polls;
	uint32_t between;	/* one poll in this + 1 reads the clock; a power of two minus 1 */
	int error;
};

#define NVP_POLLS_PER_CLOCK 256

/*
 * From this number of commands ahead on, pauses are longer; from the limit on
 * they are constant.
 */
#define NVP_CONTENDED_AHEAD 256
#define NVP_PAUSE_LIMIT 512

/*
 * A group with this many commands ahead of its own mostly leaves the completion
 * ring to others.
 */
#define NVP_FAR 32

/* It still reaps completions in one of this many polls. */
#define NVP_FAR_POLLS 16

/* Length of the pause after a poll that found nothing, in nanoseconds. */
NVP_FN uint32_t nvp_pause_length(uint32_t ahead)
{
	if (ahead < NVP_CONTENDED_AHEAD)
		return ahead;
	return 4 * (ahead < NVP_PAUSE_LIMIT ? ahead : NVP_PAUSE_LIMIT);
}

/*
 * Start a timeout.  Collective.  If one lane must not wait at all, each poll
 * reads the clock.
 */
NVP_FN struct nvp_deadline nvp_deadline_start(struct nvmepeer_group group,
					      uint64_t timeout_ns)
{
	struct nvp_deadline deadline = { timeout_ns, 0, 0, NVP_POLLS_PER_CLOCK - 1,
					      NVMEPEER_OK };

	if (nvp_group_ballot(group, !timeout_ns))
		deadline.between = 0;
	return deadline;
}

/* Does the status page report that the queue pair's entries are lost? */
NVP_FN bool nvp_status_lost(const struct nvmepeer_queue *queue)
{
	return queue->status &&
	       (nvp_status_load(queue->status + NVP_STATUS_STATE) !=
		NVP_STATE_LIVE ||
		nvp_status_load(queue->status + NVP_STATUS_LOSSES) !=
		nvp_load32(&queue->state->generation));
}

/**
 * nvmepeer_queue_quiesce - request that the kernel quiesces a queue pair
 * @queue: a queue pair whose commands do not complete
 *
 * Called by one thread, for a timeout of the caller's own.  Within 100 ms the
 * kernel deletes the queue pair, all calls on it return NVMEPEER_E_LOST, and
 * its owner may re-arm it.  No other queue pair of the controller is affected
 * unless the controller fails to delete the queues.  Costs a load and a store.
 * Returns 0, or NVMEPEER_E_ADDRESS if the geometry has no control page.
 */
NVP_FN int nvmepeer_queue_quiesce(const struct nvmepeer_queue *queue)
{
	uint32_t number;

	if (!queue->control)
		return NVMEPEER_E_ADDRESS;
	number = nvp_request_number(nvp_load32(&queue->state->generation));
	/* Both words in one store: the kernel reads @seq when it takes the request. */
	nvp_list_store(queue->control, (uint64_t)number << 32 | 1);
	return NVMEPEER_OK;
}

/*
 * Check the status page and reclaim abandoned commands, by one lane now and
 * then.  Is the queue pair lost?
 */
NVP_FN bool nvp_check_status(const struct nvmepeer_queue *queue)
{
	if (!nvp_known_lost(queue) && nvp_status_lost(queue))
		nvp_mark_lost(queue);
	if (nvp_load32(&queue->state->abandoned))
		nvp_reclaim(queue);
	return nvp_known_lost(queue);
}

/*
 * The slow path of a wait: detects that the queue pair is lost or that this
 * lane's timeout has expired. Collective.  Passed by value, so that the fast
 * path keeps the deadline in registers.
 */
NVP_NOINLINE_FN struct nvp_deadline
nvp_deadline_slow(const struct nvmepeer_queue *queue, struct nvmepeer_group group,
		  struct nvp_deadline deadline)
{
	uint64_t now = nvmepeer_now_ns();
	uint32_t lost = 0;

	if (group.lane == group.leader)
		lost = nvp_check_status(queue);
	lost = nvp_group_copy32(group, lost, group.leader);
	if (!deadline.end_ns) {
		deadline.end_ns = now + deadline.timeout_ns;
		if (deadline.end_ns < now)
			deadline.end_ns = ~(uint64_t)0;
	}
	if (lost)
		deadline.error = NVMEPEER_E_LOST;
	else if (now >= deadline.end_ns)
		deadline.error = NVMEPEER_E_TIMEOUT;
	return deadline;
}

/*
 * After a poll: read the clock, or pause if the poll was @idle.  Collective.
 * @ahead is the number of completions before the one waited for: groups that
 * are next poll often, the others leave the ring to them.  Returns the error
 * that ended this lane's wait, or 0.
 */
NVP_FN int nvp_deadline_check(const struct nvmepeer_queue *queue,
			      struct nvmepeer_group group,
			      struct nvp_deadline *deadline, bool idle,
			      uint32_t ahead)
{
	if (!(++deadline->polls & deadline->between))
		*deadline = nvp_deadline_slow(queue, group, *deadline);
	else if (idle)
		nvp_pause(nvp_pause_length(ahead));
	return deadline->error;
}

/*
 * Number of commands that timed out and whose completion has not been seen.
 * While it is not 0 the controller may still access their data memory.
 */
NVP_FN uint32_t nvmepeer_abandoned(const struct nvmepeer_queue *queue)
{
	nvp_reclaim(queue);
	return nvp_load32(&queue->state->abandoned);
}

#endif /* NVMEPEER_DEVICE_WAIT_H */
