// SPDX-License-Identifier: GPL-2.0-only
/*
 * unit-device-background.c: commands in the background leave slots free, so that a
 * command that a thread waits for finds room: on warps of 32 lanes under many
 * schedules, and how much earlier a read completes beside prefetches.
 *
 * Usage: unit-device-background [CASE]
 */
#define NVMEPEER_LANES 32
#define NVMEPEER_PLATFORM_HEADER "fibre_platform.h"
#include <nvmepeer_device.h>

#include "rig.h"
#include "../lib/ktap.h"

enum { LANES = 32, SEEDS = 16 };

static uint32_t submitted[2];	/* commands of the demand, and in the background */
static bool full;		/* the background has found no room */
static uint32_t pauses;		/* of warps in the background between their accesses */

static int try_submit(uint64_t control, struct nvmepeer_token *token, uint64_t timeout_ns)
{
	struct nvmepeer_command command = { NVMEPEER_OP_WRITE_ZEROES, 1, 3, NULL, 0,
					    control | NVMEPEER_CONTROL_LIMITED_RETRY };
	int status = nvmepeer_submit(&bench->queue, &command, token, timeout_ns);

	if (!status)
		submitted[control & 1]++;
	return status;
}

static uint32_t submit_all(uint64_t control)
{
	struct nvmepeer_token token;
	uint32_t count = 0;

	while (!try_submit(control, &token, 0))
		count++;
	return count;
}

/* The default is never 0 where there are two slots. */
static bool reserves_by_default(void)
{
	static const uint32_t defaults[][2] = { { 1, 0 }, { 3, 1 }, { 7, 1 }, { 15, 3 } };
	struct nvmepeer_queue queue = bench->queue;
	bool good = true;

	for (size_t i = 0; i < sizeof(defaults) / sizeof(defaults[0]); i++) {
		queue.sq_mask = defaults[i][0];
		good = good && nvp_reserve(&queue, 0) == defaults[i][1];
	}
	return good;
}

/* A reserve of every size, and after a re-arm. */
static bool leaves_slots(void)
{
	static const uint32_t reserves[][2] = { { 0, 3 }, { 1, 1 }, { 6, 6 }, { 14, 14 }, { 15, 14 },
						{ 0xffffffff, 14 } };

	for (size_t i = 0; i < sizeof(reserves) / sizeof(reserves[0]); i++) {
		uint32_t reserve = reserves[i][1];

		controller_again(&bench->controller);
		bench->controller.mute = true;
		bench->geometry.reserve = reserves[i][0];
		if (nvmepeer_queue_init(&bench->queue, &bench->geometry))
			return false;
		if (submit_all(NVMEPEER_CONTROL_BACKGROUND) != 15 - reserve ||
		    submit_all(0) != reserve)
			return false;
		/* The controller must not find entries of this turn in the next one. */
		while (bench->controller.held_count < 15)
			machine_rest();
	}
	return reserves_by_default();
}

static void lane_slots(void *argument)
{
	(void)argument;
	bad += !leaves_slots();
	lanes_left--;
}

/* Lanes of a warp, as many as slots: the last seven wait, the others are in the background. */
static void lane_mixed(void *argument)
{
	uint32_t lane = (uint32_t)(uintptr_t)argument;
	struct nvmepeer_token token;
	bool demand = lane >= 31 - 7;
	int status = try_submit(demand ? 0 : NVMEPEER_CONTROL_BACKGROUND, &token, 2000);

	if (demand && status)
		bad++;
	lanes_left--;
}

/* Warps that submit in the background; the controller completes nothing. */
static void lane_background(void *argument)
{
	struct nvmepeer_token token;

	(void)argument;
	try_submit(NVMEPEER_CONTROL_BACKGROUND, &token, 2000);
	lanes_left--;
}

/* A warp in the background but for two lanes whose command is refused, as that of the first is. */
static void lane_refused(void *argument)
{
	uint32_t lane = (uint32_t)(uintptr_t)argument % LANES;
	bool refused = lane < 3;
	struct nvmepeer_command command = { NVMEPEER_OP_WRITE_ZEROES, refused ? 0 : 1, 3, NULL, 0,
					    refused && lane ? 0 : NVMEPEER_CONTROL_BACKGROUND };
	struct nvmepeer_token token;
	int status = nvmepeer_submit(&bench->queue, &command, &token, 2000);

	submitted[1] += !status;
	bad += refused && status != NVMEPEER_E_TOO_LARGE;
	lanes_left--;
}

/* Lanes that try again and again without room, until the demand has submitted. */
static void lane_retries(void *argument)
{
	struct nvmepeer_token token;

	(void)argument;
	while (submitted[0] < bench->queue.reserve && !bad)
		if (try_submit(NVMEPEER_CONTROL_BACKGROUND, &token, 0))
			full = true;
	lanes_left--;
}

static void lane_demands(void *argument)
{
	struct nvmepeer_token token;

	(void)argument;
	while (!full)
		machine_rest();
	while (submitted[0] < bench->queue.reserve && !bad)
		bad += try_submit(0, &token, 0) != 0;
	lanes_left--;
}

static void controller_main(void *argument)
{
	(void)argument;
	while (lanes_left) {
		controller_step(&bench->controller);
		machine_rest();
	}
}

/* Run warps of @width @background lanes, and @lanes more in another; nothing completes. */
static bool run_muted(uint32_t seed, uint32_t warps, uint32_t width, void (*background)(void *),
		      uint32_t lanes, void (*others)(void *))
{
	lanes_left = 0;
	submitted[0] = submitted[1] = 0;
	full = false;
	controller_again(&bench->controller);
	if (!rig_begin(seed, 500))
		return false;
	bench->controller.mute = true;
	rig_add_warps(warps, width, background);
	for (uint32_t i = 0; pauses && i < machine.fibre_count; i++) {
		machine.fibres[i].delay_at = 1 + (seed + i) % 5;
		machine.fibres[i].delay_step = 1 + i % 3;
		machine.fibres[i].delay = pauses;
	}
	for (uint32_t lane = 0; lane < lanes; lane++)
		machine_add(others, (void *)(uintptr_t)lane, warps, lane);
	lanes_left += lanes;
	machine_add_outside(controller_main, NULL);
	return machine_run() && !bad && !bench->controller.errors;
}

/* A call of lanes of which one waits takes slots as if all did. */
static const char *mixed(uint32_t seed)
{
	if (!run_muted(seed, 1, 31, lane_mixed, 0, NULL))
		return "a command of the demand found no room";
	if (submitted[0] != 7 || (machine.whole_warps && submitted[1] != 31 - 7))
		return "wrong number of commands";
	for (uint32_t i = 0; i < bench->controller.held_count; i++)
		if (bench->controller.held[i][12] != NVMEPEER_CONTROL_LIMITED_RETRY)
			return "the flag is in an entry";
	return NULL;
}

static const char *many(uint32_t seed)
{
	if (!run_muted(seed, 3, LANES, lane_background, 0, NULL))
		return "a call failed";
	return submitted[1] == 31 - 7 ? NULL : "the background took another number of slots";
}

static const char *refused(uint32_t seed)
{
	if (!run_muted(2 * seed + 1, 1, LANES, lane_refused, 0, NULL))
		return "a call failed";
	return submitted[1] == 31 - 7 ? NULL : "a refused command takes the others out of the background";
}

static const char *retries(uint32_t seed)
{
	if (!run_muted(seed, 2, LANES, lane_retries, 1, lane_demands))
		return "a command of the demand found no room";
	return submitted[0] == 7 && submitted[1] <= 31 - 7 ? NULL : "wrong number of commands";
}

/* Warps of one lane that take the slots up to the last that is reserved, all at once. */
static void lane_races(void *argument)
{
	struct nvmepeer_token token;

	(void)argument;
	while (!try_submit(NVMEPEER_CONTROL_BACKGROUND, &token, 0))
		;
	lanes_left--;
}

static void lane_last(void *argument)
{
	struct nvmepeer_token token;

	(void)argument;
	while (submitted[1] < 28)
		machine_rest();
	bad += try_submit(0, &token, 0) != 0;
	lanes_left--;
}

static const char *race(uint32_t seed)
{
	bench->geometry.reserve = 1;
	if (!run_muted(seed, 8, 1, lane_races, 1, lane_last))
		return "a command of the demand found no room";
	return submitted[0] == 1 && submitted[1] <= 31 - 1 ? NULL : "wrong number of commands";
}

/* Warps of four lanes, of which the first is in the background.  There is room for all. */
static void lane_beside(void *argument)
{
	uint64_t control = (uintptr_t)argument % 4 ? 0 : NVMEPEER_CONTROL_BACKGROUND;
	struct nvmepeer_token token;

	bad += try_submit(control, &token, 0) != 0;
	lanes_left--;
}

static const char *beside(uint32_t seed)
{
	if (!run_muted(seed, 5, 4, lane_beside, 0, NULL))
		return "a command found no room beside free slots";
	return NULL;
}

/* --- lanes of both kinds together --- */

static uint32_t background_lanes;	/* the last ones of a warp */

static uint64_t kind_of(void *argument)
{
	uint32_t lane = (uint32_t)(uintptr_t)argument % LANES;

	return lane >= LANES - background_lanes ? NVMEPEER_CONTROL_BACKGROUND : 0;
}

static void lane_submits(void *argument)
{
	struct nvmepeer_token token;

	bad += try_submit(kind_of(argument), &token, 0) != 0;
	lanes_left--;
}

static uint64_t atomics_of(uint32_t seed, uint32_t background)
{
	background_lanes = background;
	return run_muted(2 * seed + 1, 1, LANES, lane_submits, 0, NULL) ? machine.counts.atomics : 0;
}

/*
 * One submission costs as many atomics as one of a single kind.  Two could each wait for
 * what the other holds, where a group of a warp does not run while another one waits.
 */
static const char *together(uint32_t seed)
{
	uint64_t one = atomics_of(seed, 0), both = atomics_of(seed, 8);

	if (!one || !both)
		return "lanes found no room";
	return one == both ? NULL : "lanes of both kinds submit apart";
}

static void lane_executes(void *argument)
{
	struct nvmepeer_command command = { NVMEPEER_OP_WRITE_ZEROES, 1, 3, NULL, 0,
					    kind_of(argument) };

	bad += nvmepeer_execute(&bench->queue, &command, NULL, RIG_LONG) != 0;
	lanes_left--;
}

/* Half of the lanes of two warps are in the background; 7 slots, and half as many CIDs as lanes. */
static const char *turns(uint32_t seed)
{
	background_lanes = LANES / 2;
	bench->geometry.cids = 32;
	lanes_left = 0;
	controller_again(&bench->controller);
	if (!rig_begin(seed, 100))
		return "no queue";
	rig_add_warps(2, LANES, lane_executes);
	machine_add_outside(controller_main, NULL);
	return rig_end(machine_run());
}

/* A list in the background, by a warp in one step: no lane sends to a reserved slot. */
static struct nvmepeer_list_item listed[LANES];

static void lane_lists(void *argument)
{
	uint32_t lane = (uint32_t)(uintptr_t)argument;
	struct nvmepeer_buffer buffer = { LANES * 512, 0x10000, 0 };
	struct nvmepeer_memory memory = { buffer, 0 };
	struct nvmepeer_list list = { .memories = &memory, .items = listed, .memory_count = 1,
				      .count = LANES - 4, .opcode = NVMEPEER_OP_READ,
				      .control = background_lanes ? NVMEPEER_CONTROL_BACKGROUND : 0 };

	/* The item of the first lane is refused. */
	listed[lane] = (struct nvmepeer_list_item){ 9 * lane, 512 * lane, !lane, 512, -1, 0 };
	nvmepeer_warp_list_transfer(&bench->queue, nvmepeer_group_full(), &list);
	lanes_left--;
}

static const char *list_of(uint32_t seed, uint32_t background)
{
	background_lanes = background;
	bench->geometry.timeout_ns = 2000;
	if (!run_muted(seed, 1, LANES, lane_lists, 0, NULL))
		return "the list does not end";
	return bench->controller.held_count == (background ? 31 - 7 : LANES - 5) ?
	       NULL : "wrong number of commands";
}

static const char *list_in_background(uint32_t seed)
{
	const char *wrong = list_of(seed, LANES);

	return wrong ? wrong : list_of(seed, 0);
}

/* --- reads beside prefetches --- */

enum { READS = 12, PERIOD_NS = 400, WARPS = 2 };

static uint64_t flag_of_prefetch;
static uint64_t waited, worst;	/* completions of others during the reads */
static bool reads_done;

static void slow_controller_main(void *argument)
{
	uint64_t next = 0;

	(void)argument;
	while (lanes_left) {
		/* One completion in a period, in order. */
		bench->controller.mute = true;
		controller_step(&bench->controller);
		if (bench->controller.held_count && machine.now_ns >= next &&
		    bench->controller.posted - bench->controller.acknowledged <
		    bench->controller.cq_entries - 1) {
			controller_post_oldest(&bench->controller);
			next = machine.now_ns + PERIOD_NS;
		}
		machine_rest();
	}
}

/* Each lane keeps two commands in flight. */
static void lane_prefetch(void *argument)
{
	struct nvmepeer_token tokens[2];
	uint32_t sent = 0;

	(void)argument;
	for (; !reads_done; sent++) {
		if (sent >= 2)
			bad += nvmepeer_wait(&bench->queue, tokens[sent % 2], NULL, RIG_LONG) != 0;
		bad += try_submit(flag_of_prefetch, &tokens[sent % 2], RIG_LONG) != 0;
	}
	for (uint32_t left = sent < 2 ? sent : 2; left; left--)
		bad += nvmepeer_wait(&bench->queue, tokens[(sent - left) % 2], NULL, RIG_LONG) != 0;
	lanes_left--;
}

static void lane_read(void *argument)
{
	struct nvmepeer_command command = { NVMEPEER_OP_WRITE_ZEROES, 1, 9, NULL, 0, 0 };

	(void)argument;
	while (bench->controller.completed < 64)
		machine_rest();
	for (int i = 0; i < READS; i++) {
		uint64_t before = bench->controller.completed, took;

		bad += nvmepeer_execute(&bench->queue, &command, NULL, RIG_LONG) != 0;
		took = bench->controller.completed - before;
		waited += took;
		worst = took > worst ? took : worst;
	}
	reads_done = true;
	lanes_left--;
}

static bool run_reads(uint32_t seed, uint64_t flag, uint32_t reserve)
{
	flag_of_prefetch = flag;
	reads_done = false;
	waited = worst = 0;
	lanes_left = 0;
	controller_again(&bench->controller);
	bench->geometry.reserve = reserve;
	if (!rig_begin(seed, 100))
		return false;
	machine.step_limit = 40 * 1000 * 1000;
	rig_add_warps(WARPS, LANES, lane_prefetch);
	machine_add(lane_read, NULL, WARPS, 0);
	lanes_left++;
	machine_add_outside(slow_controller_main, NULL);
	return machine_run() && !bad && !bench->controller.errors && !rig_books();
}

/*
 * One lane reads beside 64 lanes that would keep 128 commands in flight, on 31 slots: what
 * completes between the call of a read and its return.
 */
static bool overtakes(void)
{
	static const struct {
		uint64_t flag;
		uint32_t reserve;
		const char *what;
	} runs[] = {
		{ 0, 0, "all the same" },
		{ NVMEPEER_CONTROL_BACKGROUND, 0, "in the background, 7 slots reserved" },
		{ NVMEPEER_CONTROL_BACKGROUND, 24, "in the background, 24 slots reserved" },
	};
	uint64_t mean[3], most[3];

	for (int i = 0; i < 3; i++) {
		if (!run_reads(7, runs[i].flag, runs[i].reserve))
			return false;
		mean[i] = waited / READS;
		most[i] = worst;
		printf("# prefetches %s: a read waits for %llu completions, %llu at most\n",
		       runs[i].what, (unsigned long long)mean[i], (unsigned long long)most[i]);
	}
	/* At most what was in flight before, a few that complete before the return. */
	return most[1] <= 31 + 5 && most[2] <= 31 - 24 + 5 && mean[2] < mean[1] && mean[1] < mean[0];
}

static bool seeds(const char *(*run)(uint32_t))
{
	for (uint32_t seed = 1; seed <= SEEDS; seed++) {
		const char *defect = run(seed);

		if (defect) {
			printf("# seed %u: %s\n", seed, defect);
			return false;
		}
	}
	return true;
}

static bool slots(void)
{
	lanes_left = 0;
	if (!rig_begin(1, 0))
		return false;
	rig_add_warps(1, 1, lane_slots);
	machine_add_outside(controller_main, NULL);
	return machine_run() && !bad && !bench->controller.errors;
}

static bool last_slots(void)
{
	bool good;

	pauses = 20;
	good = seeds(race);
	pauses = 0;
	return good;
}

/* Each runs once by @run, or by @seed under many seeds. */
static const struct {
	const char *name;
	const char *what;
	bool (*run)(void);
	const char *(*seed)(uint32_t seed);
	uint32_t entries;
} cases[] = {
	{ "slots", "commands in the background leave as many slots free as reserved", slots, NULL, 16 },
	{ "mixed", "lanes of a warp: some wait, others are in the background", NULL, mixed, 32 },
	{ "many", "warps in the background take no reserved slot at any time", NULL, many, 32 },
	{ "refused", "a refused command does not take others out of the background", NULL, refused, 32 },
	{ "retries", "who retries in the background takes no credit meanwhile", NULL, retries, 32 },
	{ "race", "a race in the background for the last slots costs a read none", last_slots, NULL, 32 },
	{ "beside", "a race for free slots costs no command without a timeout", NULL, beside, 32 },
	{ "together", "lanes of both kinds that call together make one submission", NULL, together, 64 },
	{ "list", "a list in the background leaves slots free, another one does not", NULL,
	  list_in_background, 32 },
	{ "turns", "lanes of both kinds take turns where there are few slots and CIDs", NULL, turns, 8 },
	{ "reads", "a read overtakes prefetches that wait for room", overtakes, NULL, 32 },
};

int main(int argc, char **argv)
{
	ktap_start();
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		if (!ktap_wants(argc, argv, cases[i].name))
			continue;
		bench = bench_new(cases[i].entries, cases[i].entries);
		bench->geometry.cids = 256;
		ktap_check(cases[i].seed ? seeds(cases[i].seed) : cases[i].run(), cases[i].what);
		bench_free(bench);
	}
	return ktap_end();
}
