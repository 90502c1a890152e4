/* SPDX-License-Identifier: MIT OR GPL-2.0 */
/*
 * nvmepeer_device/wait.h: groups of lanes, limits of waits, and the commands
 * that were waited for in vain.
 */
#ifndef NVMEPEER_DEVICE_WAIT_H
#define NVMEPEER_DEVICE_WAIT_H

/* Lanes that act as one: all of them call with the same group. */
struct nvmepeer_group {
	nvmepeer_mask mask;
	uint32_t lane;
	uint32_t leader;
};

/* The lanes that run this call now and use the same queue pair. */
NVMEPEER_FN struct nvmepeer_group nvmepeer_group_join(const struct nvmepeer_queue *queue)
{
	struct nvmepeer_group group;

	group.mask = nvmepeer_lanes_active();
	if (group.mask & (group.mask - 1))
		group.mask = nvmepeer_lanes_match(group.mask, (uint64_t)(uintptr_t)queue->state);
	group.lane = nvmepeer_lane();
	group.leader = nvmepeer_mask_first(group.mask);
	return group;
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
		for (uint32_t bit = 0; bit < 32; bit++)
			if (bits >> bit & 1 && (nvmepeer_load64(&queue->results[32 * word + bit]) &
						NVMEPEER_RESULT_DONE))
				done |= (uint32_t)1 << bit;
		if (bits & ~done)
			nvmepeer_or32(&queue->abandoned_cids[word], bits & ~done);
		if (!done)
			continue;
		nvmepeer_fence_device();
		nvmepeer_add32(&queue->state->abandoned, 0 - nvmepeer_count_bits(done));
		nvmepeer_or32(&queue->free_cids[word], done);
	}
}

/* The caller of @cid stops waiting.  The cid is freed once it completes. */
NVMEPEER_SLOW_FN void nvmepeer_abandon(const struct nvmepeer_queue *queue, uint32_t cid)
{
	nvmepeer_add32(&queue->state->abandoned, 1);
	nvmepeer_or32(&queue->abandoned_cids[cid / 32], (uint32_t)1 << cid % 32);
}

/* Limit of a wait.  The clock is read rarely: it is slow on a GPU. */
struct nvmepeer_deadline {
	uint64_t timeout_ns;
	uint64_t end_ns;
	uint32_t polls;
};

#define NVMEPEER_POLLS_PER_LOOK 256
/* Longest rest between two looks: 4 ns for each of so many commands ahead. */
#define NVMEPEER_PAUSE_LIMIT 512

/* Who has so many commands ahead leaves the completion ring to others, mostly. */
#define NVMEPEER_FAR 64

NVMEPEER_FN struct nvmepeer_deadline nvmepeer_deadline_after(uint64_t timeout_ns)
{
	struct nvmepeer_deadline deadline = { timeout_ns, 0, 0 };

	return deadline;
}

/*
 * The slow side of a wait: sees the queue pair lost, or the time over.  The
 * first look only starts the clock.  Returns 0 to go on waiting.
 */
NVMEPEER_SLOW_FN int nvmepeer_deadline_look(const struct nvmepeer_queue *queue,
					    struct nvmepeer_deadline *deadline)
{
	uint64_t now = nvmepeer_now_ns();

	if (nvmepeer_load32(&queue->state->lost))
		return NVMEPEER_E_LOST;
	if (queue->status &&
	    (nvmepeer_status_load(queue->status + NVMEPEER_STATUS_STATE) != NVMEPEER_STATE_LIVE ||
	     nvmepeer_status_load(queue->status + NVMEPEER_STATUS_GENERATION) !=
	     nvmepeer_load32(&queue->state->generation))) {
		nvmepeer_store32(&queue->state->lost, 1);
		return NVMEPEER_E_LOST;
	}
	if (nvmepeer_load32(&queue->state->abandoned))
		nvmepeer_sweep(queue);
	if (!deadline->end_ns)
		deadline->end_ns = now + deadline->timeout_ns;
	return now >= deadline->end_ns ? NVMEPEER_E_TIMEOUT : NVMEPEER_OK;
}

/*
 * One look that brought nothing: rests a while, and sometimes looks at the
 * clock.  @ahead is how many completions come before the one waited for: those
 * who are next look often, the others leave the ring to them.
 */
NVMEPEER_FN int nvmepeer_deadline_check(const struct nvmepeer_queue *queue,
					struct nvmepeer_deadline *deadline, uint32_t ahead)
{
	if (++deadline->polls % NVMEPEER_POLLS_PER_LOOK == 0 || !deadline->timeout_ns)
		return nvmepeer_deadline_look(queue, deadline);
	nvmepeer_pause(4 * (ahead < NVMEPEER_PAUSE_LIMIT ? ahead : NVMEPEER_PAUSE_LIMIT));
	return NVMEPEER_OK;
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
