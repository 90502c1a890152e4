// SPDX-License-Identifier: GPL-2.0-only
/*
 * unit-device-limits.c: the device library when something does not happen:
 * lanes with different timeouts, threads that are never scheduled again, a
 * queue pair that is lost while commands are abandoned and reclaimed, and one
 * that is quiesced.
 *
 * Usage: unit-device-limits [CASE [SEED]]; all cases and seeds, or one.
 */
#define NVMEPEER_PLATFORM_HEADER "fibre_platform.h"
#include <nvmepeer_device.h>

#include "rig.h"
#include "../lib/ktap.h"

enum {
	LANES = NVMEPEER_LANES,
	PATIENCE = 40000,	/* timeout in ns of the machine's clock */
	SILENCE = 40 * PATIENCE,
	SLACK = 30 * PATIENCE,	/* a wait may be longer by this: the clock is read rarely */
};

static uint32_t only_seed;
static uint32_t filled;		/* slots in use */
static uint64_t silent_until;	/* the controller completes nothing before this */
static uint64_t longest;	/* the longest call, beyond its timeout */

/* The time by which a call that began at @began exceeded @patience. */
static void clock_call(uint64_t began, uint64_t patience)
{
	uint64_t took = machine.now_ns - began;

	if (took > patience && took - patience > longest)
		longest = took - patience;
}

static void slow_controller(void *argument)
{
	struct bench *mine = argument;

	while (lanes_left) {
		mine->controller.mute = machine.now_ns < silent_until;
		controller_step(&mine->controller);
		machine_rest();
	}
}

/*
 * The timeout of half of the lanes expires before the controller completes,
 * that of the others does not.
 */
static uint64_t patience_of(uint32_t number)
{
	return number % 2 ? RIG_LONG : PATIENCE;
}

static void judge(uint32_t number, int status)
{
	if (status != (number % 2 ? NVMEPEER_OK : NVMEPEER_E_TIMEOUT))
		bad++;
}

/* A lane must reap late completions. */
static void reap_late(uint32_t number)
{
	if (number != 1)
		return;
	while (lanes_left > 1)
		machine_rest();
	while (rig_abandoned())
		if (nvmepeer_flush(&bench->queue))
			bad++;
}

static void lane_waits_as_long(void *argument)
{
	uint32_t number = (uint32_t)(uintptr_t)argument;
	struct nvmepeer_sqe entry;
	struct nvmepeer_token token;

	rig_entry(&entry, number, 0);
	if (nvmepeer_submit_raw(&bench->queue, &entry, &token, RIG_LONG))
		bad++;
	judge(number, nvmepeer_wait(&bench->queue, token, NULL, patience_of(number)));
	done++;
	reap_late(number);
	lanes_left--;
}

static void lane_executes_as_long(void *argument)
{
	uint32_t number = (uint32_t)(uintptr_t)argument;
	struct nvmepeer_command flush = { NVMEPEER_OP_FLUSH, 0, 0, NULL, 0, 0 };

	judge(number, nvmepeer_execute(&bench->queue, &flush, NULL, patience_of(number)));
	done++;
	reap_late(number);
	lanes_left--;
}

/* One lane fills the queue with commands that complete much later. */
static void lane_submits_as_long(void *argument)
{
	uint32_t number = (uint32_t)(uintptr_t)argument;
	struct nvmepeer_command flush = { NVMEPEER_OP_FLUSH, 0, 0, NULL, 0, 0 };
	struct nvmepeer_token token[LANES];

	for (uint32_t i = 1; i < LANES && !number; i++, filled++)
		if (nvmepeer_submit(&bench->queue, &flush, &token[i], RIG_LONG))
			bad++;
	while (filled < LANES - 1)
		machine_rest();
	if (nvmepeer_submit(&bench->queue, &flush, &token[0], patience_of(number)) !=
	    (number % 2 ? NVMEPEER_OK : NVMEPEER_E_FULL))
		bad++;
	done++;
	if (number % 2 && nvmepeer_wait(&bench->queue, token[0], NULL, RIG_LONG))
		bad++;
	for (uint32_t i = 1; i < LANES && !number; i++)
		if (nvmepeer_wait(&bench->queue, token[i], NULL, RIG_LONG))
			bad++;
	lanes_left--;
}

static const char *run_patience(uint32_t seed, void (*main)(void *))
{
	bool good;

	lanes_left = 0;
	filled = 0;
	good = rig_begin(seed, 1000);
	machine.whole_warps = true;
	silent_until = SILENCE;
	rig_add_warps(1, LANES, main);
	machine_add_outside(slow_controller, bench);
	good = machine_run() && good && done == LANES;
	return rig_end(good);
}

static const char *patient_waits(uint32_t seed)
{
	return run_patience(seed, lane_waits_as_long);
}

static const char *patient_executes(uint32_t seed)
{
	return run_patience(seed, lane_executes_as_long);
}

static const char *patient_submits(uint32_t seed)
{
	return run_patience(seed, lane_submits_as_long);
}

/* --- more lanes than cids --- */

enum { MANY_WARPS = 16, CROWD_ROUNDS = 3 };

/* Each command has a result of its own. */
static void lane_of_many(void *argument)
{
	uint32_t number = (uint32_t)(uintptr_t)argument;

	for (uint32_t round = 0; round < CROWD_ROUNDS; round++, done++) {
		struct nvp_submission request = { { 0, 0, 0, NULL, 0, 0 }, NULL, 0, 0 };
		struct nvp_outcome outcome;
		struct nvmepeer_sqe entry;

		rig_entry(&entry, number, round);
		request.entry = &entry;
		outcome = NVP_BY_GROUP(nvmepeer_group_join(&bench->queue),
				       nvp_execute_group, nvp_execute_partial,
				       &bench->queue, request, RIG_LONG);
		if (outcome.status || outcome.result != entry.dword[13])
			bad++;
	}
	lanes_left--;
}

static const char *many_lanes(uint32_t seed)
{
	bool good;

	lanes_left = 0;
	bench->geometry.cids = 32;
	good = rig_begin(seed, 1000);
	rig_add_warps(MANY_WARPS, LANES, lane_of_many);
	machine_add_outside(rig_controller, bench);
	good = machine_run() && good && done == MANY_WARPS * LANES * CROWD_ROUNDS;
	return rig_end(good);
}

/* Every third lane's command is refused; it waits for nothing. */
static void lane_among_refused(void *argument)
{
	uint32_t number = (uint32_t)(uintptr_t)argument;
	struct nvmepeer_buffer none = { 0, 0, 0 };
	int expected = number % 3 ? NVMEPEER_OK : NVMEPEER_E_RANGE;
	struct nvmepeer_command command = { number % 3 ? NVMEPEER_OP_FLUSH : NVMEPEER_OP_READ,
					    number % 3 ? 0 : 1, 0, &none, 0, 0 };

	if (nvmepeer_execute(&bench->queue, &command, NULL, RIG_LONG) != expected)
		bad++;
	done++;
	lanes_left--;
}

/* Fewer lanes than a warp has: a partial group. */
static const char *refused(uint32_t seed)
{
	uint32_t lanes = seed % 2 ? LANES : LANES - 3;
	bool good;

	lanes_left = 0;
	good = rig_begin(seed, 1000);
	machine.whole_warps = true;
	rig_add_warps(1, lanes, lane_among_refused);
	machine_add_outside(rig_controller, bench);
	good = machine_run() && good && done == lanes;
	return rig_end(good);
}

static uint64_t answer_ns;		/* time of the controller for each command after the first */
static uint32_t executed, timed_out;	/* lanes */

static void one_by_one(void *argument)
{
	struct bench *mine = argument;

	while (lanes_left) {
		uint64_t completed = mine->controller.completed;

		mine->controller.mute = machine.now_ns < silent_until;
		controller_step(&mine->controller);
		if (mine->controller.completed != completed)
			silent_until = machine.now_ns + answer_ns;
		machine_rest();
	}
}

/*
 * A group with one CID: a lane that waits for room does not exceed its timeout.
 */
static void lane_of_one_cid(void *argument)
{
	uint32_t number = (uint32_t)(uintptr_t)argument;
	struct nvmepeer_command flush = { NVMEPEER_OP_FLUSH, 0, 0, NULL, 0, 0 };
	uint64_t began = machine.now_ns;
	int status = nvmepeer_execute(&bench->queue, &flush, NULL, SILENCE);

	clock_call(began, SILENCE / 5 * 6);
	executed += !status;
	timed_out += status == NVMEPEER_E_TIMEOUT;
	if (status && status != NVMEPEER_E_TIMEOUT && status != NVMEPEER_E_FULL)
		bad++;
	reap_late(number);
	lanes_left--;
}

static const char *run_one_cid(uint32_t seed, uint64_t answer, uint32_t succeed, uint32_t fail)
{
	bool good;

	lanes_left = executed = timed_out = 0;
	longest = 0;
	good = rig_begin(seed, 1000);
	machine.whole_warps = true;
	silent_until = answer;
	answer_ns = succeed ? answer : 0;
	bench->queue.free_cids[0] = 1;
	bench->queue.free_cids[1] = 0;
	rig_add_warps(1, LANES, lane_of_one_cid);
	machine_add_outside(one_by_one, bench);
	good = machine_run() && good;
	bench->queue.free_cids[0] |= ~1u;
	bench->queue.free_cids[1] = ~0u;
	if (longest > SLACK)
		return "a call exceeded its timeout";
	if (executed != succeed || timed_out != fail)
		return "wrong number of executed commands";
	return rig_end(good);
}

/* The first completes in time, and the second is submitted in time. */
static const char *one_cid(uint32_t seed)
{
	return run_one_cid(seed, SILENCE / 5 * 3, 2, 0);
}

static const char *one_cid_timeout(uint32_t seed)
{
	return run_one_cid(seed, 3 * SILENCE, 0, 1);
}

/* --- threads that are never scheduled again --- */

static uint32_t harmed;		/* calls of other threads that failed */

/* Another thread: its calls end, without effects on the rest. */
static void lane_goes_on(void *argument)
{
	uint32_t number = (uint32_t)(uintptr_t)argument;

	for (uint32_t round = 0; round < 4; round++, done++) {
		struct nvmepeer_sqe entry;
		struct nvmepeer_token token;
		uint64_t began = machine.now_ns;
		uint32_t result = 0;
		int status;

		rig_entry(&entry, number, round);
		status = nvmepeer_submit_raw(&bench->queue, &entry, &token, PATIENCE);
		if (!status)
			status = nvmepeer_wait(&bench->queue, token, &result, PATIENCE);
		clock_call(began, 2 * PATIENCE);
		harmed += status != 0;
		if (status ? status != NVMEPEER_E_TIMEOUT && status != NVMEPEER_E_FULL :
			     result != entry.dword[13])
			bad++;
	}
	lanes_left--;
}

/* The thread that stops has used every part of the library before. */
static void lane_stops(void *argument)
{
	uint32_t number = (uint32_t)(uintptr_t)argument;

	for (uint32_t round = 0; round < 3; round++) {
		struct nvmepeer_sqe entry;
		struct nvmepeer_token token;

		rig_entry(&entry, number, round);
		if (!nvmepeer_submit_raw(&bench->queue, &entry, &token, PATIENCE))
			nvmepeer_wait(&bench->queue, token, NULL, round == 1 ? 0 : PATIENCE);
		nvmepeer_abandoned(&bench->queue);
	}
}

/* A thread that owns the queue pair exclusively, once it is idle. */
static void lane_stops_exclusive(void *argument)
{
	struct nvmepeer_command flush = { NVMEPEER_OP_FLUSH, 0, 0, NULL, 0, 0 };

	(void)argument;
	for (uint32_t round = 0; round < 2; round++) {
		struct nvmepeer_exclusive exclusive = nvmepeer_exclusive_open(&bench->queue);

		for (uint32_t i = 0; i < 2; i++)
			nvmepeer_exclusive_execute(&exclusive, &flush, NULL, PATIENCE);
		nvmepeer_exclusive_close(&exclusive);
	}
}

/*
 * What the stopped thread holds: the windows of
 * Documentation/device-library.rst.
 */
enum window { HOLDS_OWN, HOLDS_RESERVED, HOLDS_SLOTS, HOLDS_BELL, HOLDS_TAKEN, HOLDS_SWEPT,
	      HOLDS_QUEUE, WINDOWS };

static const char *const window_names[WINDOWS] = {
	"its own", "credits and CIDs", "slots", "the doorbells", "results", "abandoned CIDs",
	"the queue pair",
};

static enum window what_is_held(void)
{
	const struct nvmepeer_state *state = bench->queue.state;
	uint32_t on_their_way = ((uint32_t)(state->tail >> NVP_TICKET_SHIFT) -
				 state->head) & NVP_HEAD_MASK;
	uint32_t marked = 0;

	for (uint32_t word = 0; word <= bench->queue.cid_words_mask; word++)
		marked += (uint32_t)__builtin_popcount(bench->queue.abandoned_cids[word]);
	if (state->tail >> NVP_UNWRITTEN_SHIFT & NVP_UNWRITTEN_MASK)
		return HOLDS_SLOTS;
	if (state->tail & NVP_WAITING_MASK)
		return HOLDS_BELL;
	if ((int32_t)state->credits < NVP_EXCLUSIVE_CREDITS / 2)
		return HOLDS_QUEUE;
	if (harmed)
		return HOLDS_TAKEN;
	if (marked != state->abandoned)
		return HOLDS_SWEPT;
	return state->credits + on_their_way < bench->queue.sq_mask ? HOLDS_RESERVED : HOLDS_OWN;
}

/*
 * Number of calls of other threads that may fail after a group of @lanes
 * stopped.
 */
static uint32_t harm_allowed(enum window held, uint32_t lanes)
{
	if (held == HOLDS_SLOTS || held == HOLDS_BELL || held == HOLDS_QUEUE)
		return 8;
	return held == HOLDS_TAKEN ? lanes : 0;
}

struct victim {
	const char *name;
	void (*main)(void *);
	uint32_t lanes;
	uint32_t step;			/* stops before every @step-th access of its first lane */
};

static const struct victim victims[] = {
	{ "a lane", lane_stops, 1, 1 },
	{ "a warp", lane_stops, LANES, 2 },
	{ "an exclusive lane", lane_stops_exclusive, 1, 1 },
};

/*
 * Stop the first warp before its @at-th access.  @whole: it ended before that.
 */
static const char *run_stopped(const struct victim *victim, uint32_t seed, uint64_t at,
			       bool *whole)
{
	bool good;

	lanes_left = 0;
	longest = 0;
	harmed = 0;
	good = rig_begin(seed, 1000);
	machine.whole_warps = true;
	rig_add_warps(1, victim->lanes, victim->main);
	machine.fibres[0].stop_at = at;
	for (uint32_t warp = 1; warp < 3; warp++)
		machine_add(lane_goes_on, (void *)(uintptr_t)(warp * LANES), warp, 0);
	/*
	 * The controller stops with the other threads, not with the stopped
	 * one.
	 */
	lanes_left = 2;
	silent_until = 0;
	machine_add_outside(rig_controller, bench);
	good = machine_run() && good && done == 8;
	*whole = machine.fibres[0].state == FIBRE_ENDED;
	if (!good)
		return "deadlock";
	if (bad || bench->controller.errors)
		return bad ? "a result is wrong" : bench->controller.error;
	if (longest > SLACK)
		return "a call exceeded its timeout";
	return NULL;
}

/* Count in @seen what is held, for every access. */
static const char *stop_everywhere(const struct victim *victim, uint32_t seed,
				   uint32_t seen[WINDOWS])
{
	bool whole = false;

	/* An exclusive owner submits commands, not raw entries. */
	bench->controller.checked_entries = victim->main == lane_stops;
	for (uint64_t at = 1; !whole; at += victim->step) {
		const char *wrong;
		enum window held;

		bench->controller.seed = seed;
		wrong = run_stopped(victim, seed, at, &whole);
		held = what_is_held();
		if (!wrong && !whole && harmed > harm_allowed(held, victim->lanes))
			wrong = "too many failed calls of other threads";
		if (wrong) {
			printf("# %s stopped before access %llu holds %s: %u failed calls\n", victim->name,
			       (unsigned long long)at, window_names[held], harmed);
			return wrong;
		}
		if (!whole)
			seen[held]++;
		controller_again(&bench->controller);
	}
	return NULL;
}

static uint32_t stops_at[WINDOWS];	/* accesses to stop at, by what is held there */

static const char *stopped(uint32_t seed)
{
	const char *wrong = NULL;

	for (size_t i = 0; !wrong && i < sizeof(victims) / sizeof(victims[0]); i++)
		wrong = stop_everywhere(&victims[i], seed, stops_at);
	return wrong;
}

/* Was there a stop in every window? */
static bool all_windows(void)
{
	bool all = true;

	for (enum window held = HOLDS_OWN; held < WINDOWS; held++) {
		printf("# at %u accesses it holds %s\n", stops_at[held], window_names[held]);
		all = all && stops_at[held];
	}
	return all;
}

/* --- a queue pair that is lost --- */

static uint32_t *status_page;
static uint32_t lanes_lost;	/* lanes that have detected the loss */
static uint64_t rung;		/* doorbells until all lanes had detected the loss */

/* The kernel: reports at some time that the queue pair is not LIVE. */
static void kernel_main(void *argument)
{
	uint32_t generation = (uint32_t)(uintptr_t)argument;

	for (uint32_t wait = machine_random() % 64; wait; wait--)
		machine_rest();
	if (generation)
		fibre_store(&status_page[NVP_STATUS_LOSSES / 4], 4, generation,
			    __ATOMIC_RELEASE, WEAK_SYSTEM);
	else
		fibre_store(&status_page[NVP_STATUS_STATE / 4], 4, NVP_STATE_LIVE + 1,
			    __ATOMIC_RELEASE, WEAK_SYSTEM);
}

/*
 * Commands until the loss; warps have different timeouts, some reclaim in
 * between.
 */
static int one_command(uint32_t number, uint32_t round, uint64_t patience)
{
	struct nvmepeer_sqe entry;
	struct nvmepeer_token token;
	uint32_t result = 0;
	int status;

	rig_entry(&entry, number, round);
	status = nvmepeer_submit_raw(&bench->queue, &entry, &token, RIG_LONG);
	if (!status)
		status = nvmepeer_wait(&bench->queue, token, &result, patience);
	if (!status && result != entry.dword[13])
		bad++;
	if (status && status != NVMEPEER_E_LOST && (status != NVMEPEER_E_TIMEOUT || patience))
		bad++;
	done++;
	return status;
}

static void lane_loses(void *argument)
{
	uint32_t number = (uint32_t)(uintptr_t)argument, warp = number / LANES;
	struct nvmepeer_sqe entry;
	struct nvmepeer_token token;

	for (uint32_t round = 0; ; round++) {
		int status = one_command(number, round, warp % 2 ? 0 : RIG_LONG);

		if (warp % 2)
			nvmepeer_abandoned(&bench->queue);
		if (status == NVMEPEER_E_LOST || nvmepeer_check(&bench->queue) == NVMEPEER_E_LOST)
			break;
	}
	lanes_lost++;
	while (lanes_lost < 4 * LANES)
		machine_rest();
	/* Lanes that detected the loss first may have continued already. */
	if (rung > machine.counts.doorbells)
		rung = machine.counts.doorbells;
	rig_entry(&entry, number, 0xffff);
	if (nvmepeer_submit_raw(&bench->queue, &entry, &token, PATIENCE) != NVMEPEER_E_LOST)
		bad++;
	lanes_left--;
}

static void lane_begins_again(void *argument)
{
	uint32_t number = (uint32_t)(uintptr_t)argument;

	for (uint32_t round = 0; round < 3; round++)
		if (one_command(number, round, RIG_LONG))
			bad++;
	lanes_left--;
}

/* The kernel has created the queue pair again. */
static const char *run_again(uint32_t seed)
{
	controller_again(&bench->controller);
	bench->controller.seed = seed;
	bad = done = 0;
	lanes_left = 0;
	machine_reset();
	weak_reset(0, 1);
	status_page[NVP_STATUS_STATE / 4] = NVP_STATE_LIVE;
	status_page[NVP_STATUS_LOSSES / 4] = 7;
	nvmepeer_queue_rearm(&bench->queue, 7);
	machine_reset();
	weak_reset(1000, 3);
	machine.random = true;
	rig_add_warps(4, LANES, lane_begins_again);
	machine_add_outside(rig_controller, bench);
	return rig_end(machine_run());
}

static const char *lost(uint32_t seed)
{
	static uint32_t page[8];
	bool good;

	memset(page, 0, sizeof(page));
	status_page = page;
	page[NVP_STATUS_STATE / 4] = NVP_STATE_LIVE;
	bench->geometry.status = (uintptr_t)page;
	lanes_left = lanes_lost = 0;
	rung = ~(uint64_t)0;
	good = rig_begin(seed, 1000);
	rig_add_warps(4, LANES, lane_loses);
	machine_add_outside(rig_controller, bench);
	machine_add_outside(kernel_main, (void *)(uintptr_t)(seed % 2 ? 0 : 5));
	good = machine_run() && good;
	bench->geometry.status = 0;
	if (!good)
		return "deadlock";
	if (bad)
		return "a status is wrong";
	if (machine.counts.doorbells != rung)
		return "a doorbell was rung after all lanes had detected the loss";
	if (bench->controller.errors)
		return bench->controller.error;
	return run_again(seed);
}

/* --- a queue pair that is quiesced --- */

static uint32_t control_page[8] __attribute__((aligned(8)));
static uint32_t request_number;

/* The kernel: waits for the request, deletes the queue pair, reports that. */
static void kernel_listens(void *argument)
{
	uint64_t request;

	(void)argument;
	do {
		machine_rest();
		request = fibre_load(&control_page[2], 8, __ATOMIC_ACQUIRE, WEAK_SYSTEM);
	} while (!(uint32_t)request);
	request_number = (uint32_t)(request >> 32);
	fibre_store(&control_page[2], 8, 0, __ATOMIC_RELAXED, WEAK_SYSTEM);
	fibre_store(&status_page[NVP_STATUS_STATE / 4], 4, NVP_STATE_LIVE + 1,
		    __ATOMIC_RELEASE, WEAK_SYSTEM);
}

/*
 * A command that never completes; the status of the wait for it, or for room.
 */
static int one_in_vain(uint32_t number, uint64_t patience)
{
	struct nvmepeer_sqe entry;
	struct nvmepeer_token token;
	int status;

	rig_entry(&entry, number, 0);
	status = nvmepeer_submit_raw(&bench->queue, &entry, &token, patience);
	return status ? status : nvmepeer_wait(&bench->queue, token, NULL, patience);
}

/*
 * One warp has a shorter timeout than the others, and one of its lanes requests
 * recovery.
 */
static void lane_gives_up(void *argument)
{
	uint32_t number = (uint32_t)(uintptr_t)argument;

	if (number / LANES == 1) {
		bool quiesces = number % LANES == 0;
		int status = one_in_vain(number, PATIENCE);

		/* Other lanes may still wait when it is done. */
		if (status != NVMEPEER_E_TIMEOUT && status != NVMEPEER_E_FULL &&
		    (quiesces || status != NVMEPEER_E_LOST))
			bad++;
		if (quiesces && nvmepeer_queue_quiesce(&bench->queue))
			bad++;
	}
	if (one_in_vain(number, RIG_LONG) != NVMEPEER_E_LOST)
		bad++;
	lanes_left--;
}

static const char *given_up(uint32_t seed)
{
	static uint32_t page[8];
	bool good;

	memset(page, 0, sizeof(page));
	memset(control_page, 0, sizeof(control_page));
	status_page = page;
	page[NVP_STATUS_STATE / 4] = NVP_STATE_LIVE;
	page[NVP_STATUS_LOSSES / 4] = bench->geometry.generation = 6;
	bench->geometry.status = (uintptr_t)page;
	bench->geometry.control = (uintptr_t)&control_page[2];
	bench->controller.mute = true;
	lanes_left = 0;
	good = rig_begin(seed, 1000);
	rig_add_warps(4, LANES, lane_gives_up);
	machine_add_outside(rig_controller, bench);
	machine_add_outside(kernel_listens, NULL);
	good = machine_run() && good;
	bench->geometry.status = bench->geometry.control = 0;
	if (!good)
		return "deadlock";
	if (bad)
		return "a status is wrong";
	if (request_number != 7)
		return "the request has the number of another loss";
	for (uint32_t i = 0; i < 8; i++)
		if (control_page[i])
			return "wrong store to the control page";
	if (bench->controller.errors)
		return bench->controller.error;
	return run_again(seed);
}

struct limit_case {
	const char *name, *what;
	const char *(*run)(uint32_t seed);
	uint32_t entries, seeds;
	bool checked;		/* raw entries with a checksum, which detects tearing */
};

static const struct limit_case cases[] = {
	{ "patience-wait", "lanes of a warp keep their own timeouts in wait", patient_waits, 16,
	  8, false },
	{ "patience-execute", "lanes of a warp keep their own timeouts in execute", patient_executes, 16, 8,
	  false },
	{ "patience-submit", "lanes of a warp keep their own timeouts in submit",
	  patient_submits, LANES, 8, false },
	{ "contended", "more lanes in calls than CIDs", many_lanes, 8, 8, true },
	{ "refused", "lanes with refused commands among others", refused, 64, 4, false },
	{ "one-cid", "lanes that wait for each other's CID", one_cid, 16, 8,
	  false },
	{ "one-cid-timeout", "lanes that wait for a CID without completions", one_cid_timeout, 16, 8, false },
	{ "stopped", "a thread that is never scheduled again, at any access", stopped, 16, 5, true },
	{ "lost", "loss, abandoned commands, reclaim and re-arm", lost, 16,
	  12, true },
	{ "quiesce", "one lane quiesces the queue pair: all waits end, and re-arm",
	  given_up, 16, 8, true },
};

static bool run_case(const struct limit_case *limit)
{
	uint32_t first = only_seed ? only_seed : 1, count = only_seed ? 1 : limit->seeds;

	for (uint32_t seed = first; seed < first + count; seed++) {
		const char *wrong;

		bench = bench_new(limit->entries, limit->entries);
		bench->controller.order = CONTROLLER_SHUFFLED;
		bench->controller.seed = seed;
		bench->controller.checked_entries = limit->checked;
		bench->geometry.cids = 64;
		wrong = limit->run(seed);
		if (wrong)
			printf("# %s %u: %s (%u wrong)\n", limit->name, seed, wrong, bad);
		bench_free(bench);
		if (wrong)
			return false;
	}
	return limit->run != stopped || only_seed || all_windows();
}

int main(int argc, char **argv)
{
	only_seed = argc > 2 ? (uint32_t)strtoul(argv[2], NULL, 0) : 0;
	ktap_start();
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++)
		if (ktap_wants(argc, argv, cases[i].name))
			ktap_check(run_case(&cases[i]), cases[i].what);
	return ktap_end();
}
