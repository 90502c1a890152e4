// SPDX-License-Identifier: GPL-2.0-only
/*
 * unit-device-list.c: lists of transfers by a thread and by warps of lanes that
 * are scheduled at random: items in any order and in two buffers, some of which
 * continue each other; every byte, every status and the number of commands are
 * checked.
 */
#define NVMEPEER_PLATFORM_HEADER "fibre_platform.h"
#include <nvmepeer_device.h>

#include "rig.h"
#include "ktap.h"

enum {
	LANES = NVMEPEER_LANES, ITEMS = 80, BLOCK = CONTROLLER_BLOCK, DISK = 16384,
	BYTES = 1 << 20, MOST = 8, SLOT = 24,
};

static uint8_t *bytes[2];
static struct nvmepeer_buffer buffers[2];
static struct nvmepeer_list_item items[ITEMS];
static struct nvmepeer_list list;
static bool by_warp;

static void controller_main(void *argument)
{
	(void)argument;
	while (lanes_left) {
		controller_step(&bench->controller);
		machine_rest();
	}
}

static void expect(bool good, const char *what)
{
	if (!good && !bad++)
		printf("# %s\n", what);
}

static uint32_t blocks_of(uint32_t index)
{
	return items[index].bytes / BLOCK;
}

static bool joins(uint32_t index)
{
	const struct nvmepeer_list_item *item = &items[index], *before = item - 1;

	return index && item->buffer == before->buffer &&
	       item->lba == before->lba + before->bytes / BLOCK &&
	       item->offset == before->offset + before->bytes;
}

/*
 * Places do not overlap: each item has SLOT blocks of its own in its buffer, or
 * continues the one before in that item's.
 */
static void make_list(uint32_t seed)
{
	uint32_t used = 0;

	for (uint32_t i = 0; i < ITEMS; i++) {
		uint32_t random = (seed * 2654435761u + i) * 2246822519u >> 8;
		uint32_t kind = random % 10;
		bool fits = i && used + random / 16 % 4 + 1 <= SLOT;

		items[i].bytes = (random / 16 % 4 + 1) * BLOCK;
		/* Most continue the one before; some do so in all but one respect. */
		items[i].buffer = &buffers[random / 64 % 2];
		items[i].lba = random / 128 % (DISK - 2 * SLOT);
		items[i].offset = (uint64_t)i * SLOT * BLOCK;
		if (fits && kind < 8) {
			items[i].buffer = &buffers[(items[i - 1].buffer - buffers) ^ (kind == 7)];
			items[i].offset = items[i - 1].offset + items[i - 1].bytes;
		} else {
			used = 0;
		}
		if (i && kind != 6 && kind != 9)
			items[i].lba = items[i - 1].lba + items[i - 1].bytes / BLOCK;
		if (items[i].lba > DISK - 2 * SLOT)
			items[i].lba = i;
		if (fits && kind == 8)
			items[i].buffer = items[i - 1].buffer;
		used += blocks_of(i);
		items[i].status = -99;
	}
	/* Larger than a command. */
	items[ITEMS - 1] = (struct nvmepeer_list_item){
		7, &buffers[1], (uint64_t)(ITEMS - 1) * SLOT * BLOCK, (2 * MOST + 3) * BLOCK, -99,
	};
	list = (struct nvmepeer_list){ items, ITEMS, NVMEPEER_OP_READ, 0 };
}

/* Commands that the list needs: neighbours share one, up to MOST blocks. */
static uint32_t commands_needed(void)
{
	uint32_t count = 0, blocks = 0;

	for (uint32_t i = 0; i < ITEMS; i++) {
		if (joins(i) && blocks + blocks_of(i) <= MOST) {
			blocks += blocks_of(i);
			continue;
		}
		blocks = blocks_of(i);
		count += (blocks + MOST - 1) / MOST;
	}
	return count;
}

static bool holds(uint32_t index)
{
	const struct nvmepeer_list_item *item = &items[index];
	const uint8_t *memory = bytes[item->buffer - buffers];

	return !memcmp(memory + item->offset, bench->controller.disk + item->lba * BLOCK,
		       item->bytes);
}

static int execute(void)
{
	if (by_warp)
		return nvmepeer_warp_list_transfer(&bench->queue, nvmepeer_group_full(), &list);
	return nvmepeer_list_transfer(&bench->queue, &list);
}

static void finish_lane(void)
{
	done++;
	lanes_left--;
}

static void lane_reads(void *argument)
{
	(void)argument;
	expect(!execute(), "status");
	for (uint32_t i = 0; i < list.count; i++) {
		const struct nvmepeer_list_item *item = &items[i];
		uint64_t word = lane_load((const uint64_t *)(bytes[item->buffer - buffers] +
							     item->offset));

		expect(!item->status, "status of an item");
		/* A command begins here: the lane sees what the controller stored. */
		if (!joins(i))
			expect(!memcmp(&word, bench->controller.disk + item->lba * BLOCK, 8),
			       "data that a lane sees");
	}
	finish_lane();
}

static void lane_fails(void *argument)
{
	static const int expected[] = { 0x4080, NVMEPEER_E_RANGE, NVMEPEER_E_ALIGN, 0,
					NVMEPEER_E_TOO_LARGE, 0, 0 };

	(void)argument;
	expect(execute() == NVMEPEER_E_RANGE, "worst status");
	for (uint32_t i = 0; i < list.count; i++)
		expect(items[i].status == expected[i], "status of an item that fails");
	finish_lane();
}

/* Each item fails or succeeds by itself, and none touches its neighbour. */
static void make_bad_list(void)
{
	make_list(1);
	list.count = 7;
	for (uint32_t i = 0; i < list.count; i++)
		items[i] = (struct nvmepeer_list_item){
			i, &buffers[0], (uint64_t)i * BLOCK, BLOCK, -99,
		};
	items[0].lba = DISK;
	items[1].offset = BYTES;
	items[2].bytes = BLOCK + 100;
	/* Would continue the item that is not whole blocks. */
	items[3].offset = items[2].offset + items[2].bytes;
	items[4].bytes = 0;
	items[5].lba = 100;
}

/* One timeout, after which nothing more is submitted. */
static void lane_times_out(void *argument)
{
	uint64_t began = machine.now_ns;

	(void)argument;
	expect(nvmepeer_list_transfer(&bench->queue, &list) == NVMEPEER_E_TIMEOUT, "timeout");
	expect(machine.now_ns - began < 3 * bench->queue.timeout_ns, "one timeout");
	for (uint32_t i = 0, first = 1; i < list.count; i++) {
		first = first && (!i || joins(i));
		expect(items[i].status == NVMEPEER_E_FULL ||
		       (first && items[i].status == NVMEPEER_E_TIMEOUT), "status after a timeout");
	}
	expect(items[0].status == NVMEPEER_E_TIMEOUT, "status of the first");
	finish_lane();
}

static void lane_is_lost(void *argument)
{
	(void)argument;
	nvp_mark_lost(&bench->queue);
	expect(nvmepeer_list_transfer(&bench->queue, &list) == NVMEPEER_E_LOST, "loss");
	for (uint32_t i = 0; i < list.count; i++)
		expect(items[i].status == NVMEPEER_E_LOST, "status after a loss");
	expect(bench->queue.state->tail >> NVP_TICKET_SHIFT <= 1, "nothing more was submitted");
	finish_lane();
}

static void prepare(uint32_t seed)
{
	bench = bench_new(seed % 3 ? 64 : 4, 64);
	bench->controller.order = CONTROLLER_SHUFFLED;
	bench->controller.seed = seed;
	for (uint32_t i = 0; i < DISK * BLOCK; i += 4) {
		uint32_t word = i * 2654435761u;

		memcpy(bench->controller.disk + i, &word, 4);
	}
	bench->geometry.cids = 512;
	bench->geometry.max_transfer = MOST * BLOCK;
	for (int i = 0; i < 2; i++) {
		bytes[i] = bench_memory(4096, BYTES);
		memset(bytes[i], 0x5a, BYTES);
		buffers[i] = (struct nvmepeer_buffer){ BYTES, (uintptr_t)bytes[i], 0 };
	}
	bad = done = lanes_left = 0;
}

struct shape {
	const char *name;
	void (*lane)(void *);
	bool warp, reads, mute;
};

static const struct shape shapes[] = {
	{ "a list by a warp", lane_reads, true, true, false },
	{ "a list by a thread", lane_reads, false, true, false },
	{ "each item has its own status, by a warp", lane_fails, true, false, false },
	{ "each item has its own status, by a thread", lane_fails, false, false, false },
	{ "a timeout ends the list", lane_times_out, false, false, true },
	{ "a loss ends the list", lane_is_lost, false, false, false },
};

/* After the run: all data, nothing beside it, and no more commands than needed. */
static bool list_is_read(void)
{
	uint8_t *copy = bench_memory(4096, BYTES);
	bool good = true;

	for (uint32_t i = 0; i < list.count; i++)
		good = good && holds(i);
	for (int buffer = 0; buffer < 2; buffer++) {
		memset(copy, 0x5a, BYTES);
		for (uint32_t i = 0; i < list.count; i++)
			if (items[i].buffer == &buffers[buffer])
				memcpy(copy + items[i].offset, bytes[buffer] + items[i].offset,
				       items[i].bytes);
		good = good && !memcmp(copy, bytes[buffer], BYTES);
	}
	free(copy);
	return good && bench->controller.completed == commands_needed();
}

static bool run_once(const struct shape *shape, uint32_t seed)
{
	bool good;

	prepare(seed);
	by_warp = shape->warp;
	if (shape->lane == lane_fails)
		make_bad_list();
	else
		make_list(seed);
	bench->controller.mute = shape->mute;
	bench->geometry.timeout_ns = shape->mute ? 100000 : RIG_LONG;
	good = rig_begin(seed, 1000);
	machine.step_limit = 4000 * 1000;
	rig_add_warps(1, shape->warp ? LANES : 1, shape->lane);
	machine_add_outside(controller_main, NULL);
	good = machine_run() && good && !bad && !bench->controller.errors && done;
	if (shape->reads && good && !list_is_read()) {
		printf("# wrong data, or %llu commands instead of %u\n",
		       (unsigned long long)bench->controller.completed, commands_needed());
		good = false;
	}
	if (!good)
		printf("# %s, seed %u: bad %u, stuck %d, errors %llu %s\n", shape->name, seed, bad,
		       machine.stuck, (unsigned long long)bench->controller.errors,
		       bench->controller.error ? bench->controller.error : "");
	free(bytes[0]);
	free(bytes[1]);
	bench_free(bench);
	return good;
}

int main(void)
{
	ktap_start();
	for (size_t i = 0; i < sizeof(shapes) / sizeof(shapes[0]); i++) {
		bool good = true;

		for (uint32_t seed = 1; good && seed <= 8; seed++)
			good = run_once(&shapes[i], seed);
		ktap_check(good, shapes[i].name);
	}
	return ktap_end();
}
