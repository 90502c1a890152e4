// SPDX-License-Identifier: GPL-2.0-only
/*
 * unit-device-simt.c: the device library on warps of lanes that stop and go at
 * random, whose lanes come together in any combination, and whose stores to the
 * controller arrive late and out of order.
 */
#define NVMEPEER_FN static inline __attribute__((always_inline, unused))
#define NVMEPEER_PLATFORM_HEADER "../../selftests/device/fibre_platform.h"
#include <nvmepeer_device.h>

#include "bench.h"
#include "ktap.h"

enum { WARPS = 4, LANES = NVMEPEER_LANES };

static struct bench *bench;
static uint32_t rounds, bad, done, lanes_left;

static void controller_main(void *argument)
{
	(void)argument;
	while (lanes_left) {
		controller_step(&bench->controller);
		machine_rest();
	}
}

static void make_entry(struct nvmepeer_sqe *entry, uint32_t number, uint32_t round)
{
	memset(entry, 0, sizeof(*entry));
	entry->dword[2] = number;
	entry->dword[13] = number << 16 | round;
	entry->dword[15] = controller_checksum(entry->dword);
}

/* One command after the other; the result must be its own. */
static void lane_waits(void *argument)
{
	uint32_t number = (uint32_t)(uintptr_t)argument;

	for (uint32_t round = 0; round < rounds; round++) {
		struct nvmepeer_sqe entry;
		struct nvmepeer_token token;
		uint32_t result = 0;

		make_entry(&entry, number, round);
		if (nvmepeer_submit_raw(&bench->queue, &entry, &token, 1000000000u) ||
		    nvmepeer_wait(&bench->queue, token, &result, 1000000000u) ||
		    result != entry.dword[13])
			bad++;
		done++;
	}
	lanes_left--;
}

/* Several in flight, taken as they come. */
static void lane_splits(void *argument)
{
	uint32_t number = (uint32_t)(uintptr_t)argument;

	for (uint32_t round = 0; round < rounds; round++) {
		struct nvmepeer_sqe entry[2];
		struct nvmepeer_token token[2];
		uint32_t which = 0, result = 0;

		for (int i = 0; i < 2; i++) {
			make_entry(&entry[i], number, 2 * round + (uint32_t)i);
			if (nvmepeer_submit_raw(&bench->queue, &entry[i], &token[i], 1000000000u))
				bad++;
		}
		for (int i = 0; i < 2; i++)
			if (nvmepeer_wait_any(&bench->queue, token, 2, &which, &result,
					      1000000000u) || result != entry[which].dword[13])
				bad++;
		done += 2;
	}
	lanes_left--;
}

/* Warp 0 has the queue for itself. */
static void lane_solo(void *argument)
{
	uint32_t number = (uint32_t)(uintptr_t)argument;
	struct nvmepeer_buffer buffer = { 1 << 20, (uintptr_t)bench->controller.disk, 0 };
	struct nvmepeer_solo solo = nvmepeer_solo_open(&bench->queue);

	for (uint32_t round = 0; round < rounds; round++) {
		struct nvmepeer_command flush = { NVMEPEER_OP_FLUSH, 0, 0, &buffer, 0, 0 };
		bool sends = (number + round) % 3;

		if (nvmepeer_solo_execute(&solo, sends ? &flush : NULL, NULL, 1000000000u))
			bad++;
		done++;
	}
	nvmepeer_solo_close(&solo);
	lanes_left--;
}

struct shape {
	const char *name;
	void (*main)(void *);
	uint32_t entries, cq_entries, flags, warps, seeds;
	enum controller_order order;
};

static bool run_once(const struct shape *shape, uint32_t seed, bool quiet)
{
	bool good;

	bench = bench_new(shape->entries, shape->cq_entries);
	bench->controller.order = shape->order;
	bench->controller.seed = seed;
	bench->controller.checked_entries = shape->main != lane_solo;
	bench->geometry.flags = shape->flags;
	bench->geometry.cids = 512;
	bad = done = 0;
	rounds = 12;
	lanes_left = shape->warps * LANES;
	machine_reset(LANES);
	machine.random = true;
	machine.whole_warps = seed % 2 || shape->main == lane_solo;
	machine.seed = seed * 2654435761u + 1;
	for (uint32_t warp = 0; warp < shape->warps; warp++)
		for (uint32_t lane = 0; lane < LANES; lane++)
			machine_add(shape->main, (void *)(uintptr_t)(warp * LANES + lane), warp,
				    lane);
	machine_add(controller_main, NULL, WARPS, 0);
	/* The state is made while the machine stands still. */
	machine.preemptions = 0;
	machine.random = false;
	good = !nvmepeer_queue_init(&bench->queue, &bench->geometry);
	machine.preemptions = 1;
	machine.random = true;
	good = machine_run() && good && !bad && !bench->controller.errors && done;
	if (!good && !quiet)
		printf("# %s seed %u: bad %u, stuck %d, errors %llu %s\n", shape->name, seed, bad,
		       machine.stuck, (unsigned long long)bench->controller.errors,
		       bench->controller.error ? bench->controller.error : "");
	bench_free(bench);
	return good;
}

static const struct shape shapes[] = {
	{ "2 entries", lane_waits, 2, 2, 0, WARPS, 6, CONTROLLER_IN_ORDER },
	{ "8 entries, shuffled", lane_waits, 8, 8, 0, WARPS, 10, CONTROLLER_SHUFFLED },
	{ "16 entries, behind a bus", lane_waits, 16, 16,
	  NVMEPEER_SQ_REMOTE | NVMEPEER_CQ_REMOTE, WARPS, 10, CONTROLLER_SHUFFLED },
	{ "64 entries, in order", lane_waits, 64, 128, 0, WARPS, 10, CONTROLLER_IN_ORDER },
	{ "split calls, 8 entries", lane_splits, 8, 16, 0, WARPS, 10, CONTROLLER_SHUFFLED },
	{ "split calls, 128 entries", lane_splits, 128, 128, 0, WARPS, 10, CONTROLLER_SHUFFLED },
	{ "solo, 4 entries", lane_solo, 4, 4, 0, 1, 40, CONTROLLER_SHUFFLED },
	{ "solo, 64 entries, behind a bus", lane_solo, 64, 64,
	  NVMEPEER_SQ_REMOTE | NVMEPEER_CQ_REMOTE, 1, 40, CONTROLLER_SHUFFLED },
};

/* Takes something away; the test must notice within a few seeds. */
static bool notices(enum machine_broken broken, const struct shape *shape)
{
	bool good = true;

	machine.broken = broken;
	for (uint32_t seed = 1; good && seed <= 50; seed++)
		good = run_once(shape, seed, true);
	machine.broken = BREAK_NOTHING;
	return !good;
}

int main(void)
{
	ktap_start();
	for (size_t i = 0; i < sizeof(shapes) / sizeof(shapes[0]); i++) {
		bool good = true;

		for (uint32_t seed = 1; good && seed <= shapes[i].seeds; seed++)
			good = run_once(&shapes[i], seed, false);
		ktap_check(good, shapes[i].name);
	}
	ktap_check(notices(BREAK_PUBLISH_FENCE, &shapes[3]), "no fence before the doorbell: noticed");
	ktap_check(notices(BREAK_RING_FENCE, &shapes[3]), "no fence between doorbells: noticed");
	ktap_check(notices(BREAK_ATOMICS, &shapes[3]), "atomics torn apart: noticed");
	return ktap_end();
}
