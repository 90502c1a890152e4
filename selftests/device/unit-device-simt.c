// SPDX-License-Identifier: GPL-2.0-only
/*
 * unit-device-simt.c: the device library on warps of lanes that are scheduled
 * at random and converge in any combination, on memory that is as weak as the
 * models allow.
 *
 * Usage: unit-device-simt [CASE [SEED [COUNT]]]; all cases, or one from a seed
 * on.
 *
 * Built several times: with 8 lanes and the accesses of CUDA, with 64 lanes and
 * those of platform_hip.h (FIBRE_HIP), and with those of platform_c11.h
 * (FIBRE_C11), which loads entries word by word.
 */
#define NVMEPEER_PLATFORM_HEADER "fibre_platform.h"
#include <nvmepeer_device.h>

#include "rig.h"
#include "../lib/ktap.h"

/* Large waves, and accesses that are releases each, need fewer rounds. */
#if NVMEPEER_LANES > 32
enum { ROUNDS_LESS = 3, SEEDS_LESS = 5 };
#elif defined(FIBRE_C11)
enum { ROUNDS_LESS = 2, SEEDS_LESS = 2 };
#else
enum { ROUNDS_LESS = 1, SEEDS_LESS = 1 };
#endif

enum {
	LANES = NVMEPEER_LANES,
	WARPS = LANES > 8 ? 2 : 4,
	BLOCK_WORDS = CONTROLLER_BLOCK / 8,
	BURST = 6,
};

static uint32_t rounds;
static uint64_t most_rings;	/* maximum number of doorbells rung by one call */
static struct nvmepeer_buffer buffer;
static uint64_t *data;		/* a block for each lane */

/* One command after the other; the result must be its own. */
static void lane_waits(void *argument)
{
	uint32_t number = (uint32_t)(uintptr_t)argument;

	for (uint32_t round = 0; round < rounds; round++, done++) {
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

/* Several in flight, waited for as they complete. */
static void lane_splits(void *argument)
{
	uint32_t number = (uint32_t)(uintptr_t)argument;

	for (uint32_t round = 0; round < rounds; round++, done += 2) {
		struct nvmepeer_sqe entry[2];
		struct nvmepeer_token token[2];
		uint32_t which = 0, result = 0;

		for (int i = 0; i < 2; i++) {
			rig_entry(&entry[i], number, 2 * round + (uint32_t)i);
			if (nvmepeer_submit_raw(&bench->queue, &entry[i], &token[i], RIG_LONG))
				bad++;
		}
		for (int i = 0; i < 2; i++)
			if (nvmepeer_wait_any(&bench->queue, token, 2, &which, &result, RIG_LONG) ||
			    result != entry[which].dword[13])
				bad++;
	}
	lanes_left--;
}

/*
 * Contention: many commands at once, so that the doorbell owner finds other
 * groups waiting.
 */
static void lane_contends(void *argument)
{
	uint32_t number = (uint32_t)(uintptr_t)argument;

	for (uint32_t round = 0; round < rounds; round++, done += BURST) {
		struct nvmepeer_token token[BURST];
		struct nvmepeer_sqe entry[BURST];

		for (uint32_t i = 0; i < BURST; i++) {
			uint64_t rings = fibre_current()->rings;

			rig_entry(&entry[i], number, BURST * round + i);
			if (nvmepeer_submit_raw(&bench->queue, &entry[i], &token[i], RIG_LONG))
				bad++;
			rings = fibre_current()->rings - rings;
			most_rings = rings > most_rings ? rings : most_rings;
		}
		for (uint32_t i = 0; i < BURST; i++) {
			uint32_t result = 0;

			if (nvmepeer_wait(&bench->queue, token[i], &result, RIG_LONG) ||
			    result != entry[i].dword[13])
				bad++;
		}
	}
	lanes_left--;
}

/* Data is written to the disk and read back. */
static void lane_data(void *argument)
{
	uint32_t number = (uint32_t)(uintptr_t)argument;
	uint64_t *word = data + (size_t)number * BLOCK_WORDS;
	uint64_t offset = (uint64_t)number * CONTROLLER_BLOCK;

	for (uint32_t round = 0; round < rounds; round++, done += 2) {
		uint64_t value = (uint64_t)(number + 1) << 32 | round;

		lane_store(word, value);
		if (nvmepeer_write(&bench->queue, &buffer, offset, number, 1))
			bad++;
		lane_store(word, ~value);
		if (nvmepeer_read(&bench->queue, &buffer, offset, number, 1) ||
		    lane_load(word) != value)
			bad++;
	}
	lanes_left--;
}

/*
 * Lanes with short timeouts: their commands are abandoned, complete later and
 * are reclaimed.
 */
static void lane_impatient(void *argument)
{
	uint32_t number = (uint32_t)(uintptr_t)argument;

	for (uint32_t round = 0; round < rounds; round++, done++) {
		struct nvmepeer_sqe entry;
		struct nvmepeer_token token;
		uint32_t result = 0;
		int status;

		rig_entry(&entry, number, round);
		status = nvmepeer_submit_raw(&bench->queue, &entry, &token, RIG_LONG);
		if (!status)
			status = nvmepeer_wait(&bench->queue, token, &result,
					       number % 3 ? 0 : RIG_LONG);
		if (status ? status != NVMEPEER_E_TIMEOUT || number % 3 == 0 :
			     result != entry.dword[13])
			bad++;
	}
	/*
	 * A lane must reap completions that arrive after their owner has left.
	 */
	while (number == 0 && (lanes_left > 1 || rig_abandoned()))
		if (nvmepeer_flush(&bench->queue))
			bad++;
	lanes_left--;
}

/*
 * A warp owns the queue pair exclusively; every third time it releases it in
 * between.
 */
static void lane_exclusive(void *argument)
{
	uint32_t number = (uint32_t)(uintptr_t)argument;
	uint64_t *word = data + (size_t)number * BLOCK_WORDS;
	uint64_t offset = (uint64_t)number * CONTROLLER_BLOCK;
	struct nvmepeer_exclusive exclusive = nvmepeer_exclusive_open(&bench->queue);
	nvmepeer_mask all = exclusive.group.mask;

	for (uint32_t round = 0; round < rounds; round++, done++) {
		struct nvmepeer_command write = { NVMEPEER_OP_WRITE, 1, number, &buffer, offset, 0 };
		struct nvmepeer_command read = { NVMEPEER_OP_READ, 1, number, &buffer, offset, 0 };
		bool sends = (number + round) % 3;

		lane_store(word, round);
		if (nvmepeer_exclusive_execute(&exclusive, sends ? &write : NULL, NULL, RIG_LONG))
			bad++;
		lane_store(word, ~(uint64_t)round);
		if (nvmepeer_exclusive_execute(&exclusive, sends ? &read : NULL, NULL, RIG_LONG) ||
		    lane_load(word) != (sends ? round : ~(uint64_t)round))
			bad++;
		if (round % 3 != 2)
			continue;
		nvmepeer_exclusive_close(&exclusive);
		nvp_lanes_sync(all);
		if (nvmepeer_flush(&bench->queue))
			bad++;
		nvp_lanes_sync(all);
		exclusive = nvmepeer_exclusive_open(&bench->queue);
	}
	nvmepeer_exclusive_close(&exclusive);
	lanes_left--;
}

struct shape {
	const char *name;
	void (*main)(void *);
	uint32_t entries, cq_entries, flags, warps, lanes, rounds, seeds;
	enum controller_order order;
};

static void make_bench(const struct shape *shape, uint32_t seed)
{
	/*
	 * A large wave on a small ring needs more rounds than the timeout
	 * allows.
	 */
	uint32_t least = LANES > 32 ? 4 * LANES : 0;

	bench = bench_new(shape->entries < least ? least : shape->entries,
			  shape->cq_entries < least ? least : shape->cq_entries);
	bench->controller.order = shape->order;
	bench->controller.seed = seed;
	bench->controller.checked_entries = shape->main == lane_waits || shape->main == lane_splits ||
					    shape->main == lane_contends;
	bench->geometry.flags = shape->flags;
	bench->geometry.cids = 32 * (1 + seed % 2);
	while (bench->geometry.cids < bench->geometry.sq_entries ||
	       (shape->main == lane_splits && bench->geometry.cids < 2u * WARPS * LANES))
		bench->geometry.cids *= 2;
	data = bench_memory(4096, (uint64_t)WARPS * LANES * CONTROLLER_BLOCK);
	memset(data, 0, (size_t)WARPS * LANES * CONTROLLER_BLOCK);
	buffer = (struct nvmepeer_buffer){ (uint64_t)WARPS * LANES * CONTROLLER_BLOCK,
					   (uintptr_t)data, 0 };
	fibre_readback = NULL;
	if (shape->flags & NVMEPEER_CQ_APART_FROM_DATA) {
		fibre_readback = &bench->controller.doorbells->beside;
		bench->geometry.readback = (uintptr_t)fibre_readback;
	}
}

static bool run_once(const struct shape *shape, uint32_t seed)
{
	const char *wrong;
	bool good;

	make_bench(shape, seed);
	rounds = shape->rounds / ROUNDS_LESS;
	lanes_left = 0;
	good = rig_begin(seed, seed % 4 ? 1000 : 100);
	/*
	 * Many single lanes that find an owner: ownership is offered and taken.
	 */
	if (shape->main == lane_contends)
		machine.whole_warps = false;
	machine.whole_warps |= shape->main == lane_exclusive || LANES > 32;
	rig_add_warps(shape->warps, shape->lanes, shape->main);
	machine_add_outside(rig_controller, bench);
	good = machine_run() && good && done;
	wrong = rig_end(good);
	if (wrong)
		printf("# %s %u: %s (%u wrong, %llu errors)\n", shape->name, seed, wrong, bad,
		       (unsigned long long)bench->controller.errors);
	free(data);
	bench_free(bench);
	return !wrong;
}

#define APART (NVMEPEER_CQ_APART_FROM_DATA | NVMEPEER_DATA_REMOTE)

static const struct shape shapes[] = {
	{ "two-entries", lane_waits, 2, 2, 0, WARPS, LANES, 6, 10, CONTROLLER_IN_ORDER },
	{ "shuffled", lane_waits, 8, 8, 0, WARPS, LANES, 6, 20, CONTROLLER_SHUFFLED },
	{ "behind-a-bus", lane_waits, 16, 16, NVMEPEER_SQ_REMOTE | NVMEPEER_CQ_REMOTE, WARPS, LANES,
	  6, 20, CONTROLLER_SHUFFLED },
	{ "in-order", lane_waits, 64, 128, 0, WARPS, LANES, 6, 20, CONTROLLER_IN_ORDER },
#if !defined(FIBRE_HIP) && !defined(FIBRE_C11)
	/*
	 * Rings accessed word by word are more words than weak.h has views for.
	 */
	{ "doorbell", lane_contends, 256, 256, 0, WARPS, LANES, 3, 20, CONTROLLER_IN_ORDER },
#endif
	{ "split-small", lane_splits, 8, 16, 0, WARPS, LANES, 3, 20, CONTROLLER_SHUFFLED },
	{ "split", lane_splits, 128, 128, 0, WARPS, LANES, 3, 20, CONTROLLER_SHUFFLED },
	{ "data", lane_data, 16, 16, 0, WARPS, LANES, 4, 20, CONTROLLER_SHUFFLED },
	{ "data-apart", lane_data, 16, 16, APART, WARPS, LANES, 4, 20,
	  CONTROLLER_SHUFFLED },
	{ "impatient", lane_impatient, 8, 8, 0, WARPS, LANES, 6, 20, CONTROLLER_SHUFFLED },
	{ "exclusive-small", lane_exclusive, 4, 4, 0, 1, LANES, 9, 20, CONTROLLER_SHUFFLED },
	{ "exclusive", lane_exclusive, 64, 64, NVMEPEER_SQ_REMOTE | NVMEPEER_CQ_REMOTE, 1, LANES, 9, 20,
	  CONTROLLER_SHUFFLED },
	{ "exclusive-apart", lane_exclusive, 16, 16, APART, 1, LANES, 9, 20,
	  CONTROLLER_SHUFFLED },
	{ "uncontended", lane_exclusive, 4, 4, APART, 1, 1, 20, 20, CONTROLLER_SHUFFLED },
};

int main(int argc, char **argv)
{
	uint32_t first = argc > 2 ? (uint32_t)strtoul(argv[2], NULL, 0) : 1;
	uint32_t count = argc > 3 ? (uint32_t)strtoul(argv[3], NULL, 0) : 0;

	ktap_start();
	for (size_t i = 0; i < sizeof(shapes) / sizeof(shapes[0]); i++) {
		uint32_t seeds = count ? count : shapes[i].seeds / SEEDS_LESS;
		bool good = true;

		if (!ktap_wants(argc, argv, shapes[i].name))
			continue;
		for (uint32_t seed = first; good && seed < first + seeds; seed++)
			good = run_once(&shapes[i], seed);
		ktap_check(good, shapes[i].name);
	}
	return ktap_end();
}
