/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * rig.h: a controller and a queue pair on the machine of fibres.h, for tests
 * that run lanes on them under many seeds.
 */
#ifndef SELFTESTS_DEVICE_RIG_H
#define SELFTESTS_DEVICE_RIG_H

#include "bench.h"

/* Long enough never to expire in a test that expects no timeout. */
#define RIG_LONG 1000000000u

static struct bench *bench;
static uint32_t lanes_left;	/* lanes that have not ended */
static uint32_t bad, done;	/* wrong results; commands */

/* Step the controller while lanes may submit. */
static inline void rig_controller(void *argument)
{
	struct bench *mine = argument;

	while (lanes_left) {
		controller_step(&mine->controller);
		machine_rest();
	}
}

/* An entry with a checksum that detects tearing, and a result of its own. */
static inline void rig_entry(struct nvmepeer_sqe *entry, uint32_t number, uint32_t round)
{
	memset(entry, 0, sizeof(*entry));
	entry->dword[2] = number;
	entry->dword[6] = round * 2654435761u;
	entry->dword[9] = number ^ round;
	entry->dword[13] = number << 16 | round;
	entry->dword[15] = controller_checksum(entry->dword);
}

/*
 * Initialise the shared state before the machine runs; fibres are added after
 * that.  Stores may stay invisible for @late steps; @seed determines everything
 * else.
 */
static inline bool rig_begin(uint32_t seed, uint32_t late)
{
	bool good;

	bad = done = 0;
	machine_reset();
	weak_reset(0, 1);
	good = !nvmepeer_queue_init(&bench->queue, &bench->geometry);
	machine_reset();
	weak_reset(late, 2 + seed % 5);
	machine.random = true;
	machine.whole_warps = seed % 2;
	machine.seed = seed * 2654435761u + 1;
	machine.step_limit = NVMEPEER_LANES > 32 ? 4000 * 1000 : 400 * 1000;
	return good;
}

static inline void rig_add_warps(uint32_t warps, uint32_t lanes, void (*main)(void *))
{
	for (uint32_t warp = 0; warp < warps; warp++)
		for (uint32_t lane = 0; lane < lanes; lane++)
			machine_add(main, (void *)(uintptr_t)(warp * lanes + lane), warp, lane);
	lanes_left += warps * lanes;
}

/* Free CIDs. */
static inline uint32_t rig_free_cids(void)
{
	uint32_t count = 0;

	for (uint32_t word = 0; word <= bench->queue.cid_words_mask; word++)
		count += (uint32_t)__builtin_popcount(bench->queue.free_cids[word]);
	return count;
}

/* Abandoned commands in the newest state, which fibres may not see yet. */
static inline uint32_t rig_abandoned(void)
{
	nvmepeer_abandoned(&bench->queue);
	return bench->queue.state->abandoned;
}

/*
 * The queue pair is idle: all credits, CIDs and ownership have been returned.
 */
static inline const char *rig_books(void)
{
	const struct nvmepeer_state *state = bench->queue.state;

	if ((uint32_t)state->tail)
		return "a slot is unwritten or a group waits for the doorbells";
	if (state->credits != bench->queue.sq_mask)
		return "credits are missing";
	if (state->abandoned)
		return "commands stay abandoned";
	if (rig_free_cids() != nvmepeer_cids(&bench->geometry))
		return "cids are missing";
	if (state->protocol_errors)
		return "entries of unknown cids";
	return NULL;
}

/* The result of a run: NULL, or the defect. */
static inline const char *rig_end(bool whole)
{
	if (!whole)
		return "deadlock";
	if (bench->controller.errors)
		return bench->controller.error;
	if (bad)
		return "a result is wrong";
	return rig_books();
}

#endif /* SELFTESTS_DEVICE_RIG_H */
