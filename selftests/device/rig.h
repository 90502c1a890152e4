/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * rig.h: a controller and a queue pair on the machine of fibres.h, for tests
 * that run lanes on them under many seeds.
 */
#ifndef SELFTESTS_DEVICE_RIG_H
#define SELFTESTS_DEVICE_RIG_H

#include "bench.h"

/* Long enough to be never over in a test that expects no timeout. */
#define RIG_LONG 1000000000u

static struct bench *bench;
static uint32_t lanes_left;	/* that have not ended */
static uint32_t bad, done;	/* results that were wrong; commands */

/* Steps the controller as long as anybody may want something. */
static inline void rig_controller(void *argument)
{
	struct bench *mine = argument;

	while (lanes_left) {
		controller_step(&mine->controller);
		machine_rest();
	}
}

/* An entry that tells torn from whole, and whose result is its own. */
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
 * Makes the shared state while the machine stands still; then fibres are added.
 * Stores may stay unseen for @late steps; @seed decides everything else.
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

/* Cids that are free. */
static inline uint32_t rig_free_cids(void)
{
	uint32_t count = 0;

	for (uint32_t word = 0; word <= bench->queue.cid_words_mask; word++)
		count += (uint32_t)__builtin_popcount(bench->queue.free_cids[word]);
	return count;
}

/* Abandoned commands, as nobody on the device may see it: without delay. */
static inline uint32_t rig_abandoned(void)
{
	nvmepeer_abandoned(&bench->queue);
	return bench->queue.state->abandoned;
}

/* Nobody uses the queue pair: everything that was taken has been given back. */
static inline const char *rig_books(void)
{
	const struct nvmepeer_state *state = bench->queue.state;

	if ((uint32_t)state->tail)
		return "somebody is inside or waits for the bell";
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

/* How a run ended: NULL, or what is wrong. */
static inline const char *rig_end(bool whole)
{
	if (!whole)
		return "somebody waits for ever";
	if (bench->controller.errors)
		return bench->controller.error;
	if (bad)
		return "a result is wrong";
	return rig_books();
}

#endif /* SELFTESTS_DEVICE_RIG_H */
