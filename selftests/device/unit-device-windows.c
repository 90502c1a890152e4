// SPDX-License-Identifier: GPL-2.0-only
/*
 * unit-device-windows.c: races that hardly ever occur by themselves.  The
 * preconditions of each are set up by hand, and then many seeds run through it.
 *
 * Usage: unit-device-windows [CASE [SEED]]; all cases and seeds, or one.
 */
#define NVMEPEER_PLATFORM_HEADER "fibre_platform.h"
#include <nvmepeer_device.h>

#include "rig.h"
#include "../lib/ktap.h"

enum { SENDERS = 28, FEW = 5, ROUNDS = 12, OPENED = 3 };

/* The machine does not run: shared state may be written directly. */
static bool begin_still(uint32_t seed, uint32_t late)
{
	bool good = rig_begin(seed, late);

	machine.random = false;
	return good;
}

static void begin_running(uint32_t seed, uint32_t late)
{
	machine_reset();
	weak_reset(late, 1 + seed % 3);
	machine.random = true;
	machine.seed = seed * 2654435761u + 1;
	machine.step_limit = 400 * 1000;
	lanes_left = 0;
}

/* --- doorbell ownership taken long after its offer was seen --- */

/*
 * Before a run: lane 0 owns the doorbells, has not rung for any group yet, and
 * had offered ownership once. Lane 1 saw that when it published, and was then
 * delayed.
 */
static bool rings;
static uint32_t sent;		/* commands of each lane */
static uint32_t taken;		/* times that it resumed during an offer */

static void lane_owns_doorbell(void *argument)
{
	(void)argument;
	nvp_ring_more(&bench->queue, nvp_load64(&bench->queue.state->tail), 0);
	rings = false;
	lanes_left--;
}

/* The wake-up is no load of the lane and acquires nothing. */
static void lane_wakes_late(void *argument)
{
	const volatile uint32_t *offer = &bench->queue.state->doorbell_offer;

	(void)argument;
	while (rings && !*offer)
		machine_step();
	taken += *offer;
	nvp_take_doorbell(&bench->queue);
	lanes_left--;
}

static void lane_sends(void *argument)
{
	uint32_t number = (uint32_t)(uintptr_t)argument;

	for (uint32_t i = 0; i < sent; i++, done++) {
		struct nvmepeer_sqe entry;
		struct nvmepeer_token token;

		rig_entry(&entry, number, i);
		if (nvmepeer_submit_raw(&bench->queue, &entry, &token, RIG_LONG))
			bad++;
	}
	lanes_left--;
}

/*
 * The entries of lanes 0 and 1, written and published; both wait for the
 * doorbell.
 */
static void two_published(void)
{
	struct nvmepeer_state *state = bench->queue.state;

	for (uint32_t cid = 0; cid < 2; cid++) {
		struct nvmepeer_sqe entry;

		rig_entry(&entry, 100 + cid, 0);
		entry.dword[0] |= cid << 16;
		memcpy(bench->controller.sq + 64 * cid, &entry, 64);
	}
	bench->queue.free_cids[0] &= ~3u;
	state->tail = (uint64_t)2 << NVP_TICKET_SHIFT | 2;
	state->credits -= 2;
}

/* Lane 1 runs @beside. */
static const char *run_offer(uint32_t seed, void (*beside)(void *))
{
	uint32_t all = 2 + SENDERS * sent;

	if (!begin_still(seed, 0))
		return "init";
	bench->controller.checked_entries = false;
	two_published();
	begin_running(seed, 1000);
	machine_add(lane_owns_doorbell, NULL, 0, 0);
	machine_add(beside, NULL, 1, 0);
	for (uint32_t warp = 2; warp < 2 + SENDERS; warp++)
		machine_add(lane_sends, (void *)(uintptr_t)warp, warp, 0);
	rings = true;
	lanes_left = 2 + SENDERS;
	machine_add_outside(rig_controller, bench);
	if (!machine_run())
		return "deadlock";
	/* All doorbells have arrived by now. */
	machine.random = false;
	controller_look(&bench->controller);
	if (bench->controller.errors)
		return bench->controller.error;
	if (bad || done != SENDERS * sent)
		return "a command was not sent";
	if ((uint32_t)bench->queue.state->tail)
		return "a slot is unwritten or a group waits for the doorbells";
	return bench->controller.last_tail == all ? NULL : "the doorbell misses an entry";
}

static const char *late_taker(uint32_t seed)
{
	sent = 2;
	return run_offer(seed, lane_wakes_late);
}

/* --- an offer of another group in place of one's own --- */

static void lane_idle(void *argument)
{
	(void)argument;
	lanes_left--;
}

/*
 * Enough commands that another group takes ownership and offers it again before
 * the first owner checks: the offer that it then finds is not its own.
 */
static const char *late_offerer(uint32_t seed)
{
	sent = 6;
	return run_offer(seed, lane_idle);
}

/* --- a CID that is reused at once --- */

/* So few CIDs are free that each is reused as soon as it is returned. */
static void lane_waits(void *argument)
{
	uint32_t number = (uint32_t)(uintptr_t)argument;

	for (uint32_t round = 0; round < ROUNDS; round++, done++) {
		struct nvmepeer_sqe entry;
		struct nvmepeer_token token;
		uint32_t result = 0;

		rig_entry(&entry, number, round);
		if (nvmepeer_submit_raw(&bench->queue, &entry, &token, RIG_LONG) ||
		    nvmepeer_wait(&bench->queue, token, &result, RIG_LONG) ||
		    result != entry.dword[13])
			bad++;
	}
	lanes_left--;
}

/*
 * Some lanes do not wait: other lanes reclaim their abandoned CIDs and reuse
 * them.
 */
static void lane_leaves(void *argument)
{
	uint32_t number = (uint32_t)(uintptr_t)argument;

	for (uint32_t round = 0; round < ROUNDS; round++, done++) {
		bool leaves = (number + round) % 3 != 0;
		struct nvmepeer_sqe entry;
		struct nvmepeer_token token;
		uint32_t result = 0;
		int status;

		rig_entry(&entry, number, round);
		status = nvmepeer_submit_raw(&bench->queue, &entry, &token, RIG_LONG);
		if (!status)
			status = nvmepeer_wait(&bench->queue, token, &result,
					       leaves ? 0 : RIG_LONG);
		if (status ? !leaves || status != NVMEPEER_E_TIMEOUT : result != entry.dword[13])
			bad++;
	}
	lanes_left--;
}

static const char *run_few(uint32_t seed, void (*main)(void *))
{
	if (!begin_still(seed, 0))
		return "init";
	for (uint32_t word = 0; word <= bench->queue.cid_words_mask; word++)
		bench->queue.free_cids[word] = word ? 0 : (1u << (FEW + seed % 2)) - 1;
	begin_running(seed, 4000);
	machine.whole_warps = true;
	rig_add_warps(4, 2, main);
	machine_add_outside(rig_controller, bench);
	if (!machine_run())
		return "deadlock";
	if (bench->controller.errors)
		return bench->controller.error;
	return bad || done != 8 * ROUNDS ? "a result is wrong" : NULL;
}

static const char *few_cids(uint32_t seed)
{
	return run_few(seed, lane_waits);
}

static const char *few_abandoned(uint32_t seed)
{
	return run_few(seed, lane_leaves);
}

/* --- a queue pair that is exclusive and shared in turns --- */

static void lane_exclusive(void *argument)
{
	struct nvmepeer_command flush = { NVMEPEER_OP_FLUSH, 0, 0, NULL, 0, 0 };

	(void)argument;
	for (uint32_t opened = 0; opened < OPENED; ) {
		struct nvmepeer_exclusive exclusive = nvmepeer_exclusive_open(&bench->queue);

		for (uint32_t i = 0; i < 5 && exclusive.broken != NVMEPEER_E_BUSY; i++) {
			if (nvmepeer_exclusive_execute(&exclusive, &flush, NULL, RIG_LONG))
				bad++;
			done++;
		}
		opened += exclusive.broken != NVMEPEER_E_BUSY;
		nvmepeer_exclusive_close(&exclusive);
		machine_rest();
	}
	lanes_left--;
}

/*
 * Finds the queue pair full during exclusive use, and reaps no entry of the
 * owner.
 */
static void lane_beside_exclusive(void *argument)
{
	uint32_t number = (uint32_t)(uintptr_t)argument;

	for (uint32_t round = 0; round < ROUNDS; round++) {
		struct nvmepeer_sqe entry;
		struct nvmepeer_token token;
		uint32_t result = 0;
		int status;

		rig_entry(&entry, number, round);
		status = nvmepeer_submit_raw(&bench->queue, &entry, &token, 4000);
		if (status == NVMEPEER_E_FULL)
			continue;
		if (status || nvmepeer_wait(&bench->queue, token, &result, RIG_LONG) ||
		    result != entry.dword[13])
			bad++;
		for (uint32_t rest = machine_random() % 8; rest; rest--)
			machine_rest();
	}
	lanes_left--;
}

/* One lane, if any, is delayed for long before its @at-th access. */
static const char *run_exclusive(uint32_t seed, uint32_t delayed, uint64_t at, bool *whole)
{
	if (!begin_still(seed, 0))
		return "init";
	bench->controller.checked_entries = false;
	begin_running(seed, 4000);
	machine.whole_warps = seed % 2;
	rig_add_warps(2, 2, lane_exclusive);
	for (uint32_t warp = 2; warp < 5; warp++, lanes_left++)
		machine_add(lane_beside_exclusive, (void *)(uintptr_t)warp, warp, 0);
	machine.fibres[delayed].delay_at = at;
	machine.fibres[delayed].delay = 300;
	machine_add_outside(rig_controller, bench);
	*whole = !machine_run();
	if (*whole || done != 4 * OPENED * 5)
		return "deadlock";
	*whole = machine.fibres[delayed].steps < at;
	return rig_end(true);
}

static const char *exclusive_shared(uint32_t seed)
{
	bool whole;

	return run_exclusive(seed, 0, 0, &whole);
}

/* A lane of each kind, before each of its accesses in turn. */
static const char *exclusive_delayed(uint32_t seed)
{
	const char *wrong = NULL;

	for (uint32_t delayed = 0; !wrong && delayed < 5; delayed += 4) {
		bool whole = false;

		for (uint64_t at = 1; !wrong && !whole; at++) {
			wrong = run_exclusive(seed, delayed, at, &whole);
			if (wrong)
				printf("# lane %u before access %llu\n", delayed,
				       (unsigned long long)at);
			controller_again(&bench->controller);
			bench->controller.seed = seed;
		}
	}
	return wrong;
}

/* --- a slow lane, on small rings --- */

static const char *ring_delayed(uint32_t seed)
{
	const char *wrong = NULL;

	/*
	 * Two or three commands of the lane, and more than one access at which
	 * it rings for other groups.
	 */
	for (uint64_t at = 1; !wrong && at <= 60; at++) {
		if (!begin_still(seed, 0))
			return "init";
		begin_running(seed, 4000);
		rig_add_warps(3, 1, lane_waits);
		machine.fibres[0].delay_at = at;
		machine.fibres[0].delay = 30;
		machine.fibres[0].delay_step = 4 + seed % 12;
		machine_add_outside(rig_controller, bench);
		wrong = rig_end(machine_run() && done == 3 * ROUNDS);
		if (wrong)
			printf("# before access %llu\n", (unsigned long long)at);
		controller_again(&bench->controller);
		bench->controller.seed = seed;
		bench->controller.checked_entries = true;
	}
	return wrong;
}

struct window {
	const char *name, *what;
	const char *(*run)(uint32_t seed);
	uint32_t entries, seeds;
};

static const struct window windows[] = {
	{ "late-taker", "doorbell ownership taken long after its offer was seen", late_taker, 64, 600 },
	{ "late-offerer", "doorbell ownership taken and offered again meanwhile", late_offerer, 256,
	  400 },
	{ "few-cids", "CIDs that are reused at once", few_cids, 16, 150 },
	{ "few-abandoned", "abandoned CIDs that are reused at once", few_abandoned, 16, 180 },
	{ "exclusive-shared", "a queue pair that is exclusive and shared in turns", exclusive_shared,
	  4, 60 },
	{ "exclusive-delayed", "exclusive and shared in turns, one lane delayed at any access",
	  exclusive_delayed, 4, 2 },
	{ "ring-delayed", "one lane of three delayed at any access, small rings", ring_delayed,
	  2, 24 },
};

static bool run_window(const struct window *window, uint32_t only)
{
	uint32_t first = only ? only : 1, count = only ? 1 : window->seeds;

	for (uint32_t seed = first; seed < first + count; seed++) {
		const char *wrong;

		bench = bench_new(window->entries, window->entries);
		bench->controller.order = CONTROLLER_SHUFFLED;
		bench->controller.seed = seed;
		bench->controller.checked_entries = true;
		wrong = window->run(seed);
		if (wrong)
			printf("# %s %u: %s (%u wrong)\n", window->name, seed, wrong, bad);
		bench_free(bench);
		if (wrong)
			return false;
	}
	if (window->run == late_taker)
		printf("# the offer was open %u times\n", taken);
	return window->run != late_taker || taken || only;
}

int main(int argc, char **argv)
{
	uint32_t only = argc > 2 ? (uint32_t)strtoul(argv[2], NULL, 0) : 0;

	ktap_start();
	for (size_t i = 0; i < sizeof(windows) / sizeof(windows[0]); i++)
		if (ktap_wants(argc, argv, windows[i].name))
			ktap_check(run_window(&windows[i], only), windows[i].what);
	return ktap_end();
}
