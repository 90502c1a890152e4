// SPDX-License-Identifier: GPL-2.0-only
/*
 * unit-device-windows.c: moments that hardly ever come by themselves.  What has
 * to be there for one is set up by hand, and then many seeds go through it.
 *
 * Usage: unit-device-windows [CASE [SEED]]; all cases and seeds, or one.
 */
#define NVMEPEER_PLATFORM_HEADER "fibre_platform.h"
#include <nvmepeer_device.h>

#include "rig.h"
#include "ktap.h"

enum { SENDERS = 28, FEW = 5, ROUNDS = 12, OPENED = 3 };

/* The machine stands still: shared state may be written by hand. */
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

/* --- a bell that is taken by somebody who saw it offered long ago --- */

/*
 * Before a run: lane 0 has the bell, rang for nobody yet, and had offered the
 * bell once.  Lane 1 saw that when it published, and then slept.
 */
static bool rings;
static uint32_t sent;		/* commands of each sender */
static uint32_t taken;		/* times that it woke while the bell lay there */

static void lane_has_bell(void *argument)
{
	(void)argument;
	nvmepeer_ring_on(&bench->queue, nvmepeer_load64(&bench->queue.state->tail), 0);
	rings = false;
	lanes_left--;
}

/* It is no load of the lane's that tells when to wake, so it learns nothing by it. */
static void lane_wakes_late(void *argument)
{
	const volatile uint32_t *bell = &bench->queue.state->bell;

	(void)argument;
	while (rings && !*bell)
		machine_step();
	taken += *bell;
	nvmepeer_take_bell(&bench->queue);
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

/* The entries of lanes 0 and 1, written and published; both wait for the doorbell. */
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
	state->tail = (uint64_t)2 << NVMEPEER_TICKET_SHIFT | 2;
	state->credits -= 2;
}

/* Lane 1 is @beside. */
static const char *run_bell(uint32_t seed, void (*beside)(void *))
{
	uint32_t all = 2 + SENDERS * sent;

	if (!begin_still(seed, 0))
		return "init";
	bench->controller.checked_entries = false;
	two_published();
	begin_running(seed, 1000);
	machine_add(lane_has_bell, NULL, 0, 0);
	machine_add(beside, NULL, 1, 0);
	for (uint32_t warp = 2; warp < 2 + SENDERS; warp++)
		machine_add(lane_sends, (void *)(uintptr_t)warp, warp, 0);
	rings = true;
	lanes_left = 2 + SENDERS;
	machine_add_outside(rig_controller, bench);
	if (!machine_run())
		return "somebody waits for ever";
	/* What was rung has arrived by now. */
	machine.random = false;
	controller_look(&bench->controller);
	if (bench->controller.errors)
		return bench->controller.error;
	if (bad || done != SENDERS * sent)
		return "a command was not sent";
	if ((uint32_t)bench->queue.state->tail)
		return "somebody is inside or waits for the bell";
	return bench->controller.last_tail == all ? NULL : "an entry was not rung for";
}

static const char *late_taker(uint32_t seed)
{
	sent = 2;
	return run_bell(seed, lane_wakes_late);
}

/* --- a bell that comes back to who offered it, but from somebody else --- */

static void lane_idle(void *argument)
{
	(void)argument;
	lanes_left--;
}

/*
 * So many commands that the bell is taken, and offered by who took it, before the
 * first who offered it looks again: what lies there then is not that one's offer.
 */
static const char *late_offerer(uint32_t seed)
{
	sent = 6;
	return run_bell(seed, lane_idle);
}

/* --- a cid that is used again at once --- */

/* So few cids are free that each is the next command's as soon as it is given back. */
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

/* Some do not wait: what they leave behind is swept up by others, and used again. */
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
		return "somebody waits for ever";
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

/* --- a queue pair that is one's own, and everybody's again --- */

static void lane_solo(void *argument)
{
	struct nvmepeer_command flush = { NVMEPEER_OP_FLUSH, 0, 0, NULL, 0, 0 };

	(void)argument;
	for (uint32_t opened = 0; opened < OPENED; ) {
		struct nvmepeer_solo solo = nvmepeer_solo_open(&bench->queue);

		for (uint32_t i = 0; i < 5 && solo.broken != NVMEPEER_E_BUSY; i++) {
			if (nvmepeer_solo_execute(&solo, &flush, NULL, RIG_LONG))
				bad++;
			done++;
		}
		opened += solo.broken != NVMEPEER_E_BUSY;
		nvmepeer_solo_close(&solo);
		machine_rest();
	}
	lanes_left--;
}

/* Finds the queue pair full while it is somebody's own, and takes nothing that is not its. */
static void lane_beside_solo(void *argument)
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

/* One lane, if any, is held up for long before its @at-th access. */
static const char *run_solo(uint32_t seed, uint32_t delayed, uint64_t at, bool *whole)
{
	if (!begin_still(seed, 0))
		return "init";
	bench->controller.checked_entries = false;
	begin_running(seed, 4000);
	machine.whole_warps = seed % 2;
	rig_add_warps(2, 2, lane_solo);
	for (uint32_t warp = 2; warp < 5; warp++, lanes_left++)
		machine_add(lane_beside_solo, (void *)(uintptr_t)warp, warp, 0);
	machine.fibres[delayed].delay_at = at;
	machine.fibres[delayed].delay = 300;
	machine_add_outside(rig_controller, bench);
	*whole = !machine_run();
	if (*whole || done != 4 * OPENED * 5)
		return "somebody waits for ever";
	*whole = machine.fibres[delayed].steps < at;
	return rig_end(true);
}

static const char *solo_shared(uint32_t seed)
{
	bool whole;

	return run_solo(seed, 0, 0, &whole);
}

/* A lane of each kind, before each of its accesses in turn. */
static const char *solo_delayed(uint32_t seed)
{
	const char *wrong = NULL;

	for (uint32_t delayed = 0; !wrong && delayed < 5; delayed += 4) {
		bool whole = false;

		for (uint64_t at = 1; !wrong && !whole; at++) {
			wrong = run_solo(seed, delayed, at, &whole);
			if (wrong)
				printf("# lane %u before access %llu\n", delayed,
				       (unsigned long long)at);
			controller_again(&bench->controller);
			bench->controller.seed = seed;
		}
	}
	return wrong;
}

/* --- somebody who is slow, on small rings --- */

static const char *ring_delayed(uint32_t seed)
{
	const char *wrong = NULL;

	/* Two or three commands of the lane, and more than one stop where it rings for others. */
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
	{ "late-taker", "a bell taken by who saw it offered long ago", late_taker, 64, 600 },
	{ "late-offerer", "a bell that was taken and offered again meanwhile", late_offerer, 256,
	  400 },
	{ "few-cids", "cids that are used again at once", few_cids, 16, 150 },
	{ "few-abandoned", "abandoned cids that are used again at once", few_abandoned, 16, 180 },
	{ "solo-shared", "a queue pair that is one's own and everybody's in turns", solo_shared,
	  4, 60 },
	{ "solo-delayed", "the same where one lane is held up anywhere", solo_delayed, 4, 2 },
	{ "ring-delayed", "one lane of three held up anywhere, on small rings", ring_delayed,
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
		printf("# the bell lay there %u times\n", taken);
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
