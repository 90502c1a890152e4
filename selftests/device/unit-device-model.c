// SPDX-License-Identifier: GPL-2.0-only
/*
 * unit-device-model.c: every schedule of a few lanes and a controller on small
 * rings, up to a number of preemptions: no command is lost, duplicated or torn,
 * and no lane deadlocks.  The code checked is the library itself, not a model
 * of it.
 *
 * A schedule determines where a running lane is preempted and by which fibre,
 * which fibre runs when one blocks, which loads read the oldest permitted
 * store, and which stores are inserted before others.  Few such deviations find
 * nearly all ordering bugs; unit-device-simt covers longer runs with more of
 * them.
 */
#define NVMEPEER_LANES 2
#define NVMEPEER_PLATFORM_HEADER "fibre_platform.h"
#include <nvmepeer_device.h>

#include "bench.h"
#include "../lib/ktap.h"

static struct bench *bench;
static uint32_t rounds, bad, lanes_left;

static void controller_main(void *argument)
{
	(void)argument;
	while (lanes_left) {
		machine_step();
		controller_step(&bench->controller);
		machine_rest();
	}
}

static void lane_main(void *argument)
{
	uint32_t number = (uint32_t)(uintptr_t)argument;

	for (uint32_t round = 0; round < rounds; round++) {
		struct nvmepeer_sqe entry = { { 0 } };
		struct nvmepeer_token token;
		uint32_t result = 0;

		entry.dword[13] = number << 16 | round;
		entry.dword[15] = controller_checksum(entry.dword);
		if (nvmepeer_submit_raw(&bench->queue, &entry, &token, 1000000000u) ||
		    nvmepeer_wait(&bench->queue, token, &result, 1000000000u) ||
		    result != entry.dword[13])
			bad++;
	}
	lanes_left--;
}

/* A model: @warps of @lanes, each lane @rounds commands. */
struct model {
	const char *name;
	uint32_t entries, warps, lanes, rounds, deviations;
	uint64_t schedules;		/* limit */
};

static bool run_schedule(const struct model *model)
{
	const struct controller *controller = &bench->controller;

	controller_again(&bench->controller);
	machine_reset();
	weak_reset(0, 1);
	nvmepeer_queue_reset(&bench->queue);
	machine_reset();
	weak_reset(~0u >> 1, 1);
	machine.whole_warps = true;
	machine.step_limit = 20000;
	lanes_left = model->warps * model->lanes;
	rounds = model->rounds;
	bad = 0;
	for (uint32_t warp = 0; warp < model->warps; warp++)
		for (uint32_t lane = 0; lane < model->lanes; lane++)
			machine_add(lane_main, (void *)(uintptr_t)(warp * 8 + lane), warp, lane);
	machine_add_outside(controller_main, NULL);
	machine.deviations = model->deviations;
	return machine_run() && !bad && !controller->errors &&
	       controller->completed == (uint64_t)model->warps * model->lanes * rounds;
}

/* Run all schedules.  Returns their number, or 0 if one failed. */
static uint64_t explore(const struct model *model, bool *complete)
{
	uint64_t count = 0;
	bool good = true;

	machine.choice_count = 0;
	bench = bench_new(model->entries, model->entries);
	bench->controller.checked_entries = true;
	if (nvmepeer_queue_open(&bench->queue, &bench->geometry))
		abort();
	*complete = false;
	while (good && count < model->schedules) {
		good = run_schedule(model);
		count++;
		if (!good)
			break;
		if (!machine_next_schedule()) {
			*complete = true;
			break;
		}
	}
	if (!good)
		printf("# %s: schedule %llu: bad %u, stuck %d, %s\n", model->name,
		       (unsigned long long)count, bad, machine.stuck,
		       bench->controller.error ? bench->controller.error : "no fault seen");
	bench_free(bench);
	return good ? count : 0;
}

static const struct model models[] = {
	{ "2 single lanes, 2 entries, 2 commands each", 2, 2, 1, 2, 2, 2000000 },
	{ "3 single lanes, 4 entries, 1 command each", 4, 3, 1, 1, 2, 2000000 },
	{ "2 warps of 2 lanes, 4 entries, 1 command each", 4, 2, 2, 1, 2, 2000000 },
	{ "2 warps of 2 lanes, 2 entries, 1 command each", 2, 2, 2, 1, 1, 2000000 },
};

int main(int argc, char **argv)
{
	ktap_start();
	for (size_t i = 0; i < sizeof(models) / sizeof(models[0]); i++) {
		bool complete;
		uint64_t count;

		if (!ktap_wants(argc, argv, models[i].name))
			continue;
		count = explore(&models[i], &complete);
		printf("# %s: %llu schedules, %u deviations\n", models[i].name,
		       (unsigned long long)count, models[i].deviations);
		ktap_check(count && complete, models[i].name);
	}
	return ktap_end();
}
