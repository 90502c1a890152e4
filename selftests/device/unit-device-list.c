// SPDX-License-Identifier: GPL-2.0-only
/*
 * unit-device-list.c: lists of transfers by a thread, by the lanes of a warp and by
 * blocks of two warps, scheduled at random, in one step and in two: items in any
 * order and in two memories, some of which continue each other or have padding;
 * every byte, every status and the number of commands are checked.
 */
#define NVMEPEER_PLATFORM_HEADER "fibre_platform.h"
#include <nvmepeer_device.h>

#include "rig.h"
#include "../lib/ktap.h"

enum {
	LANES = NVMEPEER_LANES, ITEMS = 80, BLOCK = CONTROLLER_BLOCK, DISK = 16384,
	BYTES = 1 << 20, MOST = 8, SLOT = 24, PAGE = CONTROLLER_PAGE,
};

enum way { BY_THREAD, BY_WARP, BY_BLOCK, BY_UNEQUAL, THREAD_TWICE, WARP_TWICE, WARP_POLLS, BLOCK_TWICE };

static uint8_t *bytes[2], *scratch_bytes;
static struct nvmepeer_memory memories[2], scratch_place;
static struct nvmepeer_scratch scratch;
static struct nvmepeer_list_item items[ITEMS];
static struct nvmepeer_list list;
static struct nvmepeer_token tokens[ITEMS];
static struct nvmepeer_batch batch;
static uint32_t shared, at_once;
static bool refuses;
static enum way by;

/*
 * Completes nothing until @at_once commands are in flight, and refuses the first one, and
 * those that are in flight then, if @refuses.
 */
static void controller_main(void *argument)
{
	(void)argument;
	while (lanes_left) {
		bench->controller.refusal = refuses && !bench->controller.completed ? 0x80 : 0;
		if (at_once) {
			bench->controller.mute = bench->controller.held_count < at_once;
			at_once = bench->controller.mute ? at_once : 0;
		}
		controller_step(&bench->controller);
		machine_rest();
	}
}

static void expect(bool good, const char *what)
{
	if (!good && !bad++)
		printf("# %s\n", what);
}

static bool in_two_steps(void)
{
	return by >= THREAD_TWICE;
}

static uint32_t blocks_of(uint32_t index)
{
	return (items[index].bytes + BLOCK - 1) / BLOCK;
}

/* A command stays inside MOST blocks from a multiple of MOST on. */
static bool joins(uint32_t index)
{
	const struct nvmepeer_list_item *item = &items[index], *before = item - 1;

	return index && item->memory == before->memory && !(before->bytes % BLOCK) &&
	       item->lba == before->lba + before->bytes / BLOCK &&
	       item->offset == before->offset + before->bytes &&
	       (item->lba + blocks_of(index) - 1) / MOST == before->lba / MOST;
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
		items[i].memory = random / 64 % 2;
		items[i].lba = random / 128 % (DISK - 2 * SLOT);
		items[i].offset = (uint64_t)i * SLOT * BLOCK;
		if (fits && kind < 8) {
			items[i].memory = items[i - 1].memory ^ (kind == 7);
			items[i].offset = items[i - 1].offset + items[i - 1].bytes;
		} else {
			used = 0;
		}
		if (i && kind != 6 && kind != 9)
			items[i].lba = items[i - 1].lba + items[i - 1].bytes / BLOCK;
		/* Behind a gap of one block. */
		if (i && kind == 6)
			items[i].lba = items[i - 1].lba + blocks_of(i - 1) + 1;
		if (items[i].lba > DISK - 2 * SLOT)
			items[i].lba = i;
		if (fits && kind == 8)
			items[i].memory = items[i - 1].memory;
		used += blocks_of(i);
		if (random / 1024 % 4 == 0)
			items[i].bytes -= 4 * (random / 4096 % 127 + 1);
		items[i].status = -99;
	}
	/* Larger than a command. */
	items[ITEMS - 1] = (struct nvmepeer_list_item){
		7, (uint64_t)(ITEMS - 1) * SLOT * BLOCK, 1, (2 * MOST + 3) * BLOCK, -99, 0,
	};
	if (in_two_steps())
		items[ITEMS - 1].bytes = MOST * BLOCK;
	list = (struct nvmepeer_list){
		.memories = memories, .items = items, .scratch = &scratch, .memory_count = 2,
		.count = ITEMS, .opcode = NVMEPEER_OP_READ,
	};
}

/* Commands that the list needs: neighbours share one. */
static uint32_t commands_needed(void)
{
	uint32_t count = 0;

	for (uint32_t i = 0; i < list.count; i++)
		if (!joins(i))
			count += (blocks_of(i) + MOST - 1) / MOST;
	return count;
}

static bool holds(uint32_t index)
{
	const struct nvmepeer_list_item *item = &items[index];
	const uint8_t *memory = bytes[item->memory];

	return !memcmp(memory + item->offset, bench->controller.disk + item->lba * BLOCK,
		       item->bytes);
}

static int in_flight(int status)
{
	expect(!status, "submission");
	for (uint32_t i = 0; i < list.count; i++)
		expect(items[i].status == NVMEPEER_AGAIN, "status in flight");
	/* All lanes have looked before the first status changes. */
	if (by == BLOCK_TWICE)
		nvp_block_sync();
	else
		nvp_group_sync(nvmepeer_group_full());
	return status;
}

static int poll_until_done(struct nvmepeer_group group)
{
	int status;

	do
		status = nvmepeer_warp_list_poll(&bench->queue, group, &list, &batch);
	while (status == NVMEPEER_AGAIN);
	return status;
}

static int execute(void)
{
	const struct nvmepeer_queue *queue = &bench->queue;
	struct nvmepeer_queue queues[2] = { bench->queue, bench->queue };
	struct nvmepeer_group group = nvmepeer_group_full();

	switch (by) {
	case BY_THREAD:
		return nvmepeer_list_transfer(queue, &list);
	case BY_WARP:
		return nvmepeer_warp_list_transfer(queue, group, &list);
	case BY_UNEQUAL:
		queues[0].max_transfer /= 4;
		return nvmepeer_block_list_transfer(queues, 2, &list, &shared);
	case BY_BLOCK:
		return nvmepeer_block_list_transfer(queues, 2, &list, &shared);
	case WARP_TWICE:
		in_flight(nvmepeer_warp_list_submit(queue, group, &list, &batch));
		return nvmepeer_warp_list_wait(queue, group, &list, &batch, RIG_LONG);
	case WARP_POLLS:
		in_flight(nvmepeer_warp_list_submit(queue, group, &list, &batch));
		return poll_until_done(group);
	default:
		in_flight(nvmepeer_block_list_submit(queue, &list, &batch));
		return nvmepeer_block_list_wait(queue, &list, &batch, RIG_LONG);
	}
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
		uint64_t word = 0;

		expect(!item->status, "status of an item");
		/* A command begins here: the lane sees what the controller stored. */
		if (joins(i) || item->bytes % BLOCK)
			continue;
		word = lane_load((const uint64_t *)(bytes[item->memory] + item->offset));
		expect(!memcmp(&word, bench->controller.disk + item->lba * BLOCK, 8),
		       "data that a lane sees");
	}
	finish_lane();
}

static void lane_fails(void *argument)
{
	static const int expected[] = { 0x4080, NVMEPEER_E_ALIGN, NVMEPEER_E_RANGE, 0,
					NVMEPEER_E_TOO_LARGE, 0, 0 };
	struct nvmepeer_group group = by == THREAD_TWICE ? nvmepeer_group_self() :
							   nvmepeer_group_full();
	int status;

	(void)argument;
	if (in_two_steps())
		expect(nvmepeer_warp_list_submit(&bench->queue, group, &list, &batch) ==
		       NVMEPEER_E_RANGE, "worst status of the submission");
	if (by == WARP_POLLS)
		status = poll_until_done(group);
	else if (in_two_steps())
		status = nvmepeer_warp_list_wait(&bench->queue, group, &list, &batch, RIG_LONG);
	else
		status = execute();
	expect(status == NVMEPEER_E_RANGE, "worst status");
	for (uint32_t i = 0; i < list.count; i++)
		expect(items[i].status == expected[i], "status of an item that fails");
	expect(items[7].status == -99, "status of an item behind the list");
	finish_lane();
}

/* Each item fails or succeeds by itself, and none touches its neighbour. */
static void make_bad_list(void)
{
	make_list(1);
	list.count = 7;
	for (uint32_t i = 0; i < list.count; i++)
		items[i] = (struct nvmepeer_list_item){
			i, (uint64_t)i * BLOCK, 0, BLOCK, -99, 0,
		};
	/* Behind the list: it would continue the last item. */
	items[7] = (struct nvmepeer_list_item){ 7, 7 * BLOCK, 0, BLOCK, -99, 0 };
	items[0].lba = DISK;
	items[1].bytes = BLOCK - 2;
	items[2].offset = BYTES;
	items[4].bytes = 0;
	/* Where the empty item is. */
	items[5].lba = items[4].lba;
	items[5].offset = items[4].offset;
}

/*
 * The worst status of several commands, not the first or the last: that of the disk's
 * end, an invalid token, a good one.
 */
static void lane_waits_worst(void *argument)
{
	struct nvmepeer_group self = nvmepeer_group_self();

	(void)argument;
	list.count = 3;
	expect(!nvmepeer_warp_list_submit(&bench->queue, self, &list, &batch), "submission");
	tokens[1].ticket++;
	expect(nvmepeer_warp_list_wait(&bench->queue, self, &list, &batch, RIG_LONG) ==
	       NVMEPEER_E_TOKEN, "worst of a wait");
	expect(!nvmepeer_warp_list_submit(&bench->queue, self, &list, &batch), "submission");
	while (bench->controller.completed < 6)
		nvp_pause(0);
	expect(poll_until_done(self) == 0x4080, "worst of a poll");
	expect(items[0].status == 0x4080 && !items[1].status && !items[2].status, "status");
	finish_lane();
}

/* One timeout, of up to two commands, after which nothing more is submitted. */
static void lane_times_out(void *argument)
{
	uint64_t began = machine.now_ns;

	(void)argument;
	expect(nvmepeer_list_transfer(&bench->queue, &list) == NVMEPEER_E_TIMEOUT, "timeout");
	expect(machine.now_ns - began < 5 * bench->queue.timeout_ns / 2, "one timeout");
	for (uint32_t i = 0, command = 0; i < list.count; i++) {
		command += !joins(i);
		expect(items[i].status == NVMEPEER_E_FULL ||
		       (command <= 2 && items[i].status == NVMEPEER_E_TIMEOUT), "status after a timeout");
	}
	expect(items[0].status == NVMEPEER_E_TIMEOUT, "status of the first");
	expect(bench->queue.state->tail >> NVP_TICKET_SHIFT <= 2, "nothing more was submitted");
	finish_lane();
}

/* A command that waits for the room of the first is not submitted when that has timed out. */
static void lane_times_out_full(void *argument)
{
	uint64_t began = machine.now_ns;

	(void)argument;
	expect(nvmepeer_list_transfer(&bench->queue, &list) == NVMEPEER_E_TIMEOUT, "timeout");
	expect(machine.now_ns - began < 2 * bench->queue.timeout_ns, "one timeout");
	expect(items[0].status == NVMEPEER_E_TIMEOUT && items[1].status == NVMEPEER_E_FULL &&
	       items[2].status == NVMEPEER_E_FULL, "statuses after a timeout");
	expect(bench->queue.state->tail >> NVP_TICKET_SHIFT == 1, "nothing more was submitted");
	finish_lane();
}

/* Two commands of each lane are in flight at once. */
static void lane_overlaps(void *argument)
{
	(void)argument;
	expect(!execute(), "status");
	finish_lane();
}

/* The first lane has one command only, of two items that continue each other. */
static void lane_overlaps_unequal(void *argument)
{
	lane_overlaps(argument);
}

/* The first item is in flight, the second needs several commands: a timeout ends both. */
static void lane_times_out_long(void *argument)
{
	(void)argument;
	expect(nvmepeer_list_transfer(&bench->queue, &list) == NVMEPEER_E_TIMEOUT, "timeout");
	expect(items[0].status == NVMEPEER_E_TIMEOUT && items[1].status == NVMEPEER_E_TIMEOUT &&
	       items[2].status == NVMEPEER_E_FULL, "statuses after a timeout");
	finish_lane();
}

/* The first or the last of three commands of an item fails. */
static void fail_long(int expected)
{
	expect(nvmepeer_list_transfer(&bench->queue, &list) == expected, "worst status");
	expect(items[0].status == expected, "status of an item");
	expect(bench->controller.completed == 3, "number of commands");
	finish_lane();
}

static void lane_fails_first(void *argument)
{
	(void)argument;
	fail_long(0x80);
}

static void lane_fails_last(void *argument)
{
	(void)argument;
	fail_long(0x4080);
}

/* Items of which none continues another. */
static void make_apart(uint32_t count)
{
	make_list(1);
	list.count = count;
	for (uint32_t i = 0; i < count; i++)
		items[i] = (struct nvmepeer_list_item){
			2 * i, (uint64_t)i * SLOT * BLOCK, 0, BLOCK, -99, 0,
		};
}

/* The queue is full: one item waits for room, the rest are not tried. */
static void lane_has_no_room(void *argument)
{
	struct nvmepeer_group self = nvmepeer_group_self();
	uint64_t began = machine.now_ns;

	(void)argument;
	expect(nvmepeer_warp_list_submit(&bench->queue, self, &list, &batch) == NVMEPEER_E_FULL,
	       "no room");
	expect(machine.now_ns - began < 3 * bench->queue.timeout_ns, "one timeout");
	expect(items[0].status == NVMEPEER_AGAIN && items[ITEMS - 1].status == NVMEPEER_E_FULL,
	       "status without room");
	expect(nvmepeer_warp_list_wait(&bench->queue, self, &list, &batch, 1000) == NVMEPEER_E_TIMEOUT,
	       "timeout");
	expect(items[0].status == NVMEPEER_E_TIMEOUT, "status of a timeout");
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

static void prepare(uint32_t seed, uint32_t entries)
{
	bench = bench_new(entries, 64);
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
		memories[i] = (struct nvmepeer_memory){ { BYTES, (uintptr_t)bytes[i], 0 },
							(uintptr_t)bytes[i] };
	}
	scratch_bytes = bench_memory(PAGE, (2 + ITEMS) * PAGE);
	memset(scratch_bytes, 0, (2 + ITEMS) * PAGE);
	scratch_place = (struct nvmepeer_memory){ { (2 + ITEMS) * PAGE, (uintptr_t)scratch_bytes, 0 },
						  (uintptr_t)scratch_bytes };
	scratch = (struct nvmepeer_scratch){ &scratch_place, 0, 0, in_two_steps() ? ITEMS : 2 * LANES };
	batch = (struct nvmepeer_batch){ tokens, ITEMS, 0, 0 };
	bench->controller.buckets = true;
	bench->geometry.flags = seed % 2 ? NVMEPEER_SGL | NVMEPEER_SGL_BIT_BUCKET : 0;
	bad = done = lanes_left = 0;
}

struct shape {
	const char *name;
	void (*lane)(void *);
	enum way by;
	bool reads, mute;
};

static const struct shape shapes[] = {
	{ "a list by a warp", lane_reads, BY_WARP, true, false },
	{ "a list by a thread", lane_reads, BY_THREAD, true, false },
	{ "a list by a block", lane_reads, BY_BLOCK, true, false },
	{ "a list by a block whose queue pairs have different limits", lane_reads, BY_UNEQUAL, true, false },
	{ "two commands in flight, by a warp", lane_overlaps, BY_WARP, true, false },
	{ "two commands in flight, first lane with one", lane_overlaps_unequal, BY_WARP, true, false },
	{ "two commands in flight, by a thread", lane_overlaps, BY_THREAD, true, false },
	{ "a list by a warp in two steps", lane_reads, WARP_TWICE, true, false },
	{ "a list by a warp that polls", lane_reads, WARP_POLLS, true, false },
	{ "a list by a block in two steps", lane_reads, BLOCK_TWICE, true, false },
	{ "each item has its own status, by a warp", lane_fails, BY_WARP, false, false },
	{ "each item has its own status, by a thread", lane_fails, BY_THREAD, false, false },
	{ "each item has its own status, by a block", lane_fails, BY_BLOCK, false, false },
	{ "each item has its own status, in two steps", lane_fails, WARP_TWICE, false, false },
	{ "each item has its own status, by polls", lane_fails, WARP_POLLS, false, false },
	{ "each item has its own status, by a thread in two steps", lane_fails, THREAD_TWICE, false, false },
	{ "the worst status of a list", lane_waits_worst, THREAD_TWICE, false, false },
	{ "a timeout ends the list", lane_times_out, BY_THREAD, false, true },
	{ "a timeout ends a list that waits for room", lane_times_out_full, BY_THREAD, false, true },
	{ "a timeout ends an item of several commands", lane_times_out_long, BY_THREAD, false, true },
	{ "the last command of an item fails", lane_fails_last, BY_THREAD, false, false },
	{ "the first command of an item fails", lane_fails_first, BY_THREAD, false, false },
	{ "a full queue ends the submission", lane_has_no_room, BY_THREAD, false, true },
	{ "a loss ends the list", lane_is_lost, BY_THREAD, false, false },
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
			if (items[i].memory == (uint32_t)buffer)
				memcpy(copy + items[i].offset, bytes[buffer] + items[i].offset,
				       items[i].bytes);
		good = good && !memcmp(copy, bytes[buffer], BYTES);
	}
	free(copy);
	return good && (by == BY_UNEQUAL || bench->controller.completed == commands_needed());
}

static bool run_once(const struct shape *shape, uint32_t seed)
{
	bool few = shape->lane == lane_has_no_room || seed % 3 == 0, good;
	uint32_t lanes = shape->by == BY_THREAD || shape->by == THREAD_TWICE ? 1 : LANES;

	by = shape->by;
	at_once = shape->lane == lane_overlaps || shape->lane == lane_overlaps_unequal ? 2 * lanes : 0;
	prepare(seed, shape->lane == lane_times_out_full ? 2 : few && !at_once ? 4 : 64);
	fibre_block_warps = by == BY_BLOCK || by == BY_UNEQUAL || by == BLOCK_TWICE ? 2 : 1;
	refuses = shape->lane == lane_fails_first;
	if (at_once) {
		make_apart(at_once);
		if (shape->lane == lane_overlaps_unequal) {
			items[1].lba = items[0].lba + 1;
			items[1].offset = items[0].offset + BLOCK;
			at_once--;
		}
	} else if (shape->lane == lane_times_out_full) {
		make_apart(3);
	} else if (shape->lane == lane_times_out_long) {
		make_apart(3);
		items[1].bytes = (2 * MOST + 3) * BLOCK;
	} else if (shape->lane == lane_fails_first || shape->lane == lane_fails_last) {
		make_apart(1);
		items[0].bytes = 3 * MOST * BLOCK;
		items[0].lba = DISK - (refuses ? 3 : 2) * MOST;
	} else if (shape->lane == lane_fails) {
		make_bad_list();
	} else if (shape->lane == lane_waits_worst) {
		make_bad_list();
		items[1].bytes = BLOCK;
		items[2].offset = 20 * BLOCK;
		bench->controller.order = CONTROLLER_IN_ORDER;
	} else {
		make_list(seed);
	}
	bench->controller.mute = shape->mute;
	bench->geometry.timeout_ns = shape->mute ? 100000 : RIG_LONG;
	good = rig_begin(seed, 1000);
	machine.step_limit = 4000 * 1000;
	rig_add_warps(fibre_block_warps, lanes, shape->lane);
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
	free(scratch_bytes);
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
