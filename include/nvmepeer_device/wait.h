/* SPDX-License-Identifier: MIT OR GPL-2.0 */
/*
 * nvmepeer_device/wait.h: groups of lanes, limits of waits, and the commands
 * that were waited for in vain.
 */
#ifndef NVMEPEER_DEVICE_WAIT_H
#define NVMEPEER_DEVICE_WAIT_H

/*
 * Lanes that act as one: all of them call with the same group.  @single: there
 * is only one, so that nothing needs to be exchanged.
 */
struct nvmepeer_group {
	nvmepeer_mask mask;
	uint32_t lane;
	uint32_t leader;
	bool single;
};

/* All lanes that there can be. */
#define NVMEPEER_FULL_MASK (~(nvmepeer_mask)0 >> (8 * sizeof(nvmepeer_mask) - NVMEPEER_LANES))

/* The lanes that run this call now and use the same queue pair. */
NVMEPEER_FN struct nvmepeer_group nvmepeer_group_join(const struct nvmepeer_queue *queue)
{
	struct nvmepeer_group group;

	group.mask = nvmepeer_lanes_active();
	if (group.mask & (group.mask - 1))
		group.mask = nvmepeer_lanes_match(group.mask, (uint64_t)(uintptr_t)queue->state);
	group.lane = nvmepeer_lane();
	group.leader = nvmepeer_mask_first(group.mask);
	group.single = !(group.mask & (group.mask - 1));
	return group;
}

/*
 * The two groups that are worth code of their own, because compilers make much
 * of a mask they know: all lanes, and one.
 */
NVMEPEER_FN struct nvmepeer_group nvmepeer_group_full(void)
{
	struct nvmepeer_group group = { NVMEPEER_FULL_MASK, nvmepeer_lane(), 0, NVMEPEER_LANES == 1 };

	return group;
}

/* Its number does not matter then, and ranks and counts are constants. */
NVMEPEER_FN struct nvmepeer_group nvmepeer_group_single(void)
{
	struct nvmepeer_group group = { 1, 0, 0, true };

	return group;
}

/*
 * Runs call(group, ...) with what is known about @group.  NVMEPEER_SLOW_FN
 * other(group, ...) takes the groups between one and all lanes.
 */
#define NVMEPEER_BY_GROUP(group, call, other, ...)					\
	(NVMEPEER_LANES > 1 && (group).mask == NVMEPEER_FULL_MASK ?			\
	 call(nvmepeer_group_full(), __VA_ARGS__) :					\
	 (group).single ? call(nvmepeer_group_single(), __VA_ARGS__) :		\
	 other(group, __VA_ARGS__))

/* Exchanges within a group; see platform.h.  Collective. */
NVMEPEER_FN nvmepeer_mask nvmepeer_group_ballot(struct nvmepeer_group group, int predicate)
{
	if (group.single)
		return predicate ? group.mask : 0;
	return nvmepeer_lanes_ballot(group.mask, predicate);
}

NVMEPEER_FN uint32_t nvmepeer_group_copy32(struct nvmepeer_group group, uint32_t value,
					   uint32_t lane)
{
	return group.single ? value : nvmepeer_lanes_copy32(group.mask, value, lane);
}

NVMEPEER_FN uint32_t nvmepeer_group_or32(struct nvmepeer_group group, uint32_t value)
{
	return group.single ? value : nvmepeer_lanes_or32(group.mask, value);
}

/* A lane by itself, whatever others do. */
NVMEPEER_FN struct nvmepeer_group nvmepeer_group_self(void)
{
	return nvmepeer_group_single();
}

NVMEPEER_FN void nvmepeer_group_sync(struct nvmepeer_group group)
{
	if (!group.single)
		nvmepeer_lanes_sync(group.mask);
}

/* How many lanes of @lanes come before @lane. */
NVMEPEER_FN uint32_t nvmepeer_rank(nvmepeer_mask lanes, uint32_t lane)
{
	return nvmepeer_mask_count(lanes & (((nvmepeer_mask)1 << lane) - 1));
}

/*
 * Frees the cids of abandoned commands that have completed since.  Any thread,
 * any time: the exchange makes each bit one thread's for the moment.
 */
NVMEPEER_SLOW_FN void nvmepeer_sweep(const struct nvmepeer_queue *queue)
{
	for (uint32_t word = 0; word <= queue->cid_words_mask; word++) {
		uint32_t bits = nvmepeer_load32(&queue->abandoned_cids[word]);
		uint32_t done = 0;

		if (!bits)
			continue;
		bits = nvmepeer_exchange32(&queue->abandoned_cids[word], 0);
		/* Pairs with nvmepeer_abandon(): not the result of an earlier use. */
		nvmepeer_fence_claimed();
		for (uint32_t bit = 0; bit < 32; bit++)
			if (bits >> bit & 1 && (nvmepeer_load64(&queue->results[32 * word + bit]) &
						NVMEPEER_RESULT_DONE))
				done |= (uint32_t)1 << bit;
		if (bits & ~done)
			nvmepeer_post_or32(&queue->abandoned_cids[word], bits & ~done);
		if (!done)
			continue;
		nvmepeer_fence_device();	/* L */
		nvmepeer_post_add32(&queue->state->abandoned, 0 - nvmepeer_count_bits(done));
		nvmepeer_post_or32(&queue->free_cids[word], done);
	}
}

/* The caller of @cid stops waiting.  The cid is freed once it completes. */
NVMEPEER_SLOW_FN void nvmepeer_abandon(const struct nvmepeer_queue *queue, uint32_t cid)
{
	/* Who sweeps has to see the result cleared by this use. */
	nvmepeer_fence_device();
	nvmepeer_post_add32(&queue->state->abandoned, 1);
	nvmepeer_post_or32(&queue->abandoned_cids[cid / 32], (uint32_t)1 << cid % 32);
}

/*
 * Limit of a wait, one for each lane, and how it ended.  The clock is slow on a
 * GPU: it is read once in so many looks, which are counted whatever they bring.
 * The first reading starts it, so that a wait lasts up to twice as many looks
 * longer than its limit.
 */
struct nvmepeer_deadline {
	uint64_t timeout_ns;
	uint64_t end_ns;
	uint32_t looks;
	uint32_t between;	/* clock readings, looks; a power of two minus 1 */
	int error;
};

#define NVMEPEER_LOOKS_A_CLOCK 256

/* With so many commands ahead a crowd waits, and rests longer; beyond the limit not more. */
#define NVMEPEER_CROWD 256
#define NVMEPEER_PAUSE_LIMIT 512

/* Who has so many commands ahead leaves the completion ring to others, mostly. */
#define NVMEPEER_FAR 32

/* It takes completions itself with one of so many looks. */
#define NVMEPEER_FAR_LOOKS 16

/* How long to rest after a look that brought nothing, in nanoseconds. */
NVMEPEER_FN uint32_t nvmepeer_rest(uint32_t ahead)
{
	if (ahead < NVMEPEER_CROWD)
		return ahead;
	return 4 * (ahead < NVMEPEER_PAUSE_LIMIT ? ahead : NVMEPEER_PAUSE_LIMIT);
}

/* Collective: where one lane is not to wait at all, each look reads the clock. */
NVMEPEER_FN struct nvmepeer_deadline nvmepeer_deadline_after(struct nvmepeer_group group,
							     uint64_t timeout_ns)
{
	struct nvmepeer_deadline deadline = { timeout_ns, 0, 0, NVMEPEER_LOOKS_A_CLOCK - 1,
					      NVMEPEER_OK };

	if (nvmepeer_group_ballot(group, !timeout_ns))
		deadline.between = 0;
	return deadline;
}

/* Does the status page say that the queue pair's entries are lost? */
NVMEPEER_FN bool nvmepeer_status_lost(const struct nvmepeer_queue *queue)
{
	return queue->status &&
	       (nvmepeer_status_load(queue->status + NVMEPEER_STATUS_STATE) !=
		NVMEPEER_STATE_LIVE ||
		nvmepeer_status_load(queue->status + NVMEPEER_STATUS_GENERATION) !=
		nvmepeer_load32(&queue->state->generation));
}

/**
 * nvmepeer_queue_give_up - have the kernel take a queue pair off the controller
 * @queue: one whose commands do not end
 *
 * For who has waited long enough, by one thread: within 100 ms all calls on the
 * queue pair end with NVMEPEER_E_LOST, and its owner may re-arm it.  No other queue
 * pair of the controller is touched, unless the controller does not obey.  Costs
 * one store.  Returns 0, or NVMEPEER_E_ADDRESS if the geometry has no request page.
 */
NVMEPEER_FN int nvmepeer_queue_give_up(const struct nvmepeer_queue *queue)
{
	if (!queue->request)
		return NVMEPEER_E_ADDRESS;
	nvmepeer_doorbell_store(queue->request, 1);
	return NVMEPEER_OK;
}

/* Looks after the queue pair, by one lane now and then.  Is it lost? */
NVMEPEER_FN bool nvmepeer_look_after(const struct nvmepeer_queue *queue)
{
	if (!nvmepeer_known_lost(queue) && nvmepeer_status_lost(queue))
		nvmepeer_mark_lost(queue);
	if (nvmepeer_load32(&queue->state->abandoned))
		nvmepeer_sweep(queue);
	return nvmepeer_known_lost(queue);
}

/*
 * The slow side of a wait: sees the queue pair lost, or this lane's time over.
 * Collective.  By value, so that the fast side needs no memory of its own.
 */
NVMEPEER_SLOW_FN struct nvmepeer_deadline
nvmepeer_deadline_look(const struct nvmepeer_queue *queue, struct nvmepeer_group group,
		       struct nvmepeer_deadline deadline)
{
	uint64_t now = nvmepeer_now_ns();
	uint32_t lost = 0;

	if (group.lane == group.leader)
		lost = nvmepeer_look_after(queue);
	lost = nvmepeer_group_copy32(group, lost, group.leader);
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
 * After a look: reads the clock, or rests a while if the look was @idle.
 * Collective.  @ahead is how many completions come before the one waited for:
 * those who are next look often, the others leave the ring to them.  Returns
 * what ended this lane's wait, or 0.
 */
NVMEPEER_FN int nvmepeer_deadline_check(const struct nvmepeer_queue *queue,
					struct nvmepeer_group group,
					struct nvmepeer_deadline *deadline, bool idle,
					uint32_t ahead)
{
	if (!(++deadline->looks & deadline->between))
		*deadline = nvmepeer_deadline_look(queue, group, *deadline);
	else if (idle)
		nvmepeer_pause(nvmepeer_rest(ahead));
	return deadline->error;
}

/*
 * Commands that timed out and whose completion has not been seen: as long as
 * it is not 0, the controller may still use their data memory.
 */
NVMEPEER_FN uint32_t nvmepeer_abandoned(const struct nvmepeer_queue *queue)
{
	nvmepeer_sweep(queue);
	return nvmepeer_load32(&queue->state->abandoned);
}

#endif /* NVMEPEER_DEVICE_WAIT_H */
