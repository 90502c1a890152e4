// SPDX-License-Identifier: GPL-2.0-only
/*
 * unit-device-counts.c: the cost of a command: atomics, fences and doorbells of
 * a warp of 32 lanes that each submit one command and wait, on an idle queue
 * pair.  Documentation/device-library.rst has the same figures; a change that
 * costs more must change both.
 */
#define NVMEPEER_LANES 32
#define NVMEPEER_PLATFORM_HEADER "fibre_platform.h"
#include <nvmepeer_device.h>

#include "bench.h"
#include "../lib/ktap.h"

static struct bench *bench;
static struct nvmepeer_buffer buffer;
static uint32_t lanes_left, bad;
static struct machine_counts before, cost;

static void controller_main(void *argument)
{
	(void)argument;
	while (lanes_left) {
		controller_step(&bench->controller);
		machine_rest();
	}
}

/* The first command warms up; the second is counted. */
static void count_second(uint32_t round)
{
	if (round == 0)
		before = machine.counts;
}

static void lane_shared(void *argument)
{
	uint32_t lane = (uint32_t)(uintptr_t)argument;

	for (uint32_t round = 0; round < 2; round++) {
		bad += nvmepeer_read(&bench->queue, &buffer, lane * 4096, lane * 8, 8) != 0;
		count_second(round);
	}
	lanes_left--;
}

static void lane_exclusive(void *argument)
{
	uint32_t lane = (uint32_t)(uintptr_t)argument;
	struct nvmepeer_exclusive exclusive = nvmepeer_exclusive_open(&bench->queue);

	for (uint32_t round = 0; round < 2; round++) {
		bad += nvmepeer_exclusive_read(&exclusive, &buffer, lane * 4096, lane * 8, 8) != 0;
		count_second(round);
	}
	lanes_left--;
}

/* A list of 32 items: apart, or continuing each other, eight a command. */
static struct nvmepeer_list_item items[32];
static struct nvmepeer_memory memory;
static bool apart;

static void lane_list(void *argument)
{
	struct nvmepeer_list list = { .memories = &memory, .items = items, .memory_count = 1,
				      .count = 32, .opcode = NVMEPEER_OP_READ };
	uint32_t lane = (uint32_t)(uintptr_t)argument;

	memory.buffer = buffer;
	items[lane] = (struct nvmepeer_list_item){ (apart ? 9 : 1) * lane, 512 * lane, 0, 512, -1, 0 };
	for (uint32_t round = 0; round < 2; round++) {
		struct nvmepeer_queue small = bench->queue;

		small.max_transfer = 4096;
		bad += nvmepeer_warp_list_transfer(&small, nvmepeer_group_full(), &list) != 0;
		count_second(round);
	}
	bad += items[lane].status != 0;
	lanes_left--;
}

/* Atomics of a poll of eight commands that have not completed. */
static uint64_t poll_atomics;

static void lane_polls(void *argument)
{
	struct nvmepeer_group self = nvmepeer_group_self();
	struct nvmepeer_transfer transfer = { NVMEPEER_OP_READ, 0, 0, 8, &buffer, 0 };
	struct nvmepeer_queue small = bench->queue;
	struct nvmepeer_token tokens[8];
	struct nvmepeer_batch batch = { tokens, 8, 0, 0 };

	(void)argument;
	small.max_transfer = 512;
	bench->controller.mute = true;
	bad += nvmepeer_warp_submit(&small, self, &transfer, &batch) != 0 || batch.count != 8;
	before = machine.counts;
	bad += nvmepeer_warp_poll(&small, self, &batch) != NVMEPEER_AGAIN;
	poll_atomics = machine.counts.atomics - before.atomics;
	bench->controller.mute = false;
	bad += nvmepeer_warp_wait(&small, self, &batch, 1000000000u) != 0;
	lanes_left--;
}

/*
 * Run @lanes lanes of one warp on rings of @entries; @cost is the cost of their
 * second command.
 */
static bool measure(void (*main)(void *), uint32_t lanes, uint32_t entries)
{
	bool good;

	bench = bench_new(entries, entries);
	bench->controller.order = CONTROLLER_IN_ORDER;
	buffer.length = 32 * 4096;
	buffer.dma = (uintptr_t)bench_memory(4096, buffer.length);
	bad = 0;
	lanes_left = lanes;
	machine_reset();
	weak_reset(0, 1);
	if (nvmepeer_queue_init(&bench->queue, &bench->geometry))
		abort();
	machine_reset();
	machine.whole_warps = true;
	for (uint32_t lane = 0; lane < lanes; lane++)
		machine_add(main, (void *)(uintptr_t)lane, 0, lane);
	machine_add_outside(controller_main, NULL);
	good = machine_run() && !bad && !bench->controller.errors;
	if (!good)
		printf("# stuck %d bad %u %s\n", machine.stuck, bad,
		       bench->controller.error ? bench->controller.error : "");
	cost = machine.counts;
	cost.atomics -= before.atomics;
	cost.doorbells -= before.doorbells;
	cost.fences_publish -= before.fences_publish;
	cost.fences_device -= before.fences_device;
	cost.entry_stores -= before.entry_stores;
	free((void *)(uintptr_t)buffer.dma);
	bench_free(bench);
	return good;
}

static bool measure_list(bool is_apart)
{
	apart = is_apart;
	return measure(lane_list, 32, 1024);
}

static bool costs(uint64_t atomics, uint64_t publish, uint64_t device, uint64_t doorbells,
		  uint64_t entry_stores)
{
	bool same = cost.atomics == atomics && cost.fences_publish == publish &&
		    cost.fences_device == device && cost.doorbells == doorbells &&
		    cost.entry_stores == entry_stores;

	printf("# atomics %llu, fences %llu system, %llu device, doorbells %llu, "
	       "16-byte stores %llu\n", (unsigned long long)cost.atomics,
	       (unsigned long long)cost.fences_publish, (unsigned long long)cost.fences_device,
	       (unsigned long long)cost.doorbells, (unsigned long long)cost.entry_stores);
	return same;
}

int main(void)
{
	ktap_start();
	ktap_check(measure(lane_shared, 32, 1024) && costs(8, 1, 1, 1, 128),
		   "32 lanes: 8 atomics, 1 doorbell for 32 commands");
	ktap_check(measure(lane_shared, 1, 1024) && costs(9, 1, 1, 1, 4),
		   "1 lane: 9 atomics, 1 doorbell");
	ktap_check(measure(lane_shared, 32, 16) && costs(34, 3, 105, 6, 128),
		   "32 lanes and 15 slots: reserving for all is tried once");
	ktap_check(measure(lane_exclusive, 32, 1024) && costs(0, 1, 0, 2, 128),
		   "32 lanes exclusive: no atomic, 2 doorbells");
	ktap_check(measure(lane_exclusive, 1, 1024) && costs(0, 1, 0, 2, 4),
		   "1 lane exclusive: no atomic, 2 doorbells");
	ktap_check(measure_list(true) && costs(8, 1, 1, 1, 128),
		   "a list of 32 items by 32 lanes: as 32 commands");
	ktap_check(measure_list(false) && costs(9, 1, 1, 1, 16),
		   "a list of 32 neighbours, eight a command: as 4 commands");
	ktap_check(measure(lane_polls, 1, 1024) && poll_atomics == 2,
		   "poll of 8 commands in flight: 2 atomics");
	return ktap_end();
}
