// SPDX-License-Identifier: GPL-2.0-only
/*
 * unit-device-split.c: asynchronous transfers, completion flags, prefetch and
 * page lists on warps of lanes that are scheduled at random: submitted by one
 * warp and waited for by another, completed in any order; every byte is
 * checked.
 */
#define NVMEPEER_PLATFORM_HEADER "fibre_platform.h"
#include <nvmepeer_device.h>

#include "rig.h"
#include "../lib/ktap.h"

/* One copy of each call of the library is enough and compiles faster. */
#define ONCE static __attribute__((noinline))

enum {
	LANES = NVMEPEER_LANES, WARPS = 3, BATCHES = 4, MOST = 24, BLOCK = CONTROLLER_BLOCK,
	UNITS = 14, WINDOW = 3, UNIT_BLOCKS = 5, PARTS = 6, LIMIT = 1000000000,
};

/*
 * All warps of a run.  The test's own state needs no atomics: one thread runs
 * all fibres.
 */
static struct nvmepeer_token tokens[BATCHES][MOST];
static struct nvmepeer_batch batches[BATCHES];
static struct nvmepeer_flag flags[BATCHES];
static struct nvmepeer_counter counter;
static uint32_t counter_begin;
static struct nvmepeer_buffer memory;
static uint8_t *bytes;
static uint32_t handed[BATCHES], most_in_flight;
static uint64_t command_bytes;		/* bytes of the longest command */

static void controller_main(void *argument)
{
	(void)argument;
	while (lanes_left) {
		uint32_t held = bench->controller.held_count;

		most_in_flight = held > most_in_flight ? held : most_in_flight;
		controller_step(&bench->controller);
		machine_rest();
	}
}

static void expect(bool good, const char *what)
{
	if (!good && !bad++)
		printf("# %s\n", what);
}

/*
 * The first word of each segment that the controller stores at once, as this
 * lane reads it; the rest as it is.  Segments end with a command and with a
 * page.
 */
static bool holds(uint64_t offset, uint64_t lba, uint32_t blocks)
{
	const uint8_t *disk = bench->controller.disk + lba * BLOCK;
	uint64_t word, end = (uint64_t)blocks * BLOCK;

	for (uint64_t at = 0; at < end; ) {
		uint64_t command = command_bytes - at % command_bytes;
		uint64_t page = CONTROLLER_PAGE - (offset + at) % CONTROLLER_PAGE;

		word = lane_load((const uint64_t *)(bytes + offset + at));
		if (memcmp(&word, disk + at, 8))
			return false;
		at += command < page ? command : page;
	}
	return !memcmp(bytes + offset, disk, end);
}

/* The group of all lanes of the warp, made at the beginning. */
static struct nvmepeer_group whole_warp(void)
{
	return nvmepeer_group_full();
}

ONCE int submit(struct nvmepeer_group warp, const struct nvmepeer_transfer *transfer,
		struct nvmepeer_batch *batch)
{
	return nvmepeer_warp_submit(&bench->queue, warp, transfer, batch);
}

ONCE int wait_for(struct nvmepeer_group warp, struct nvmepeer_batch *batch)
{
	return nvmepeer_warp_wait(&bench->queue, warp, batch, LIMIT);
}

ONCE int deliver(struct nvmepeer_group warp, const struct nvmepeer_delivery *deliveries,
		 uint32_t count, uint64_t timeout_ns)
{
	return nvmepeer_warp_deliver(&bench->queue, warp, deliveries, count, timeout_ns);
}

ONCE int read_blocks(const struct nvmepeer_buffer *buffer, uint64_t offset, uint64_t lba,
		     uint32_t blocks)
{
	return nvmepeer_read(&bench->queue, buffer, offset, lba, blocks);
}

ONCE int next_unit(struct nvmepeer_prefetch *ahead, uint64_t *offset)
{
	return nvmepeer_prefetch_next(ahead, offset, LIMIT);
}

ONCE int stop(struct nvmepeer_prefetch *ahead)
{
	return nvmepeer_prefetch_stop(ahead, LIMIT);
}

static struct nvmepeer_transfer read_of(uint32_t number)
{
	struct nvmepeer_transfer transfer = {
		NVMEPEER_OP_READ, 0, 3 + 100 * number, 20 + number * 3, &memory,
		(uint64_t)number * 64 * BLOCK,
	};

	return transfer;
}

/*
 * A batch passes from its submitters to its waiters by a release and an
 * acquire.
 */
static void hand(uint32_t which)
{
	nvp_fence_device();
	nvp_add32(&handed[which], 1);
}

static void receive(uint32_t which)
{
	while (nvp_load32(&handed[which]) < LANES)
		machine_rest();
	nvp_fence_device_acquire();
}

/* Warp 0 submits; it waits for the last batch itself. */
static void lane_sends(void *argument)
{
	struct nvmepeer_group warp = whole_warp();

	(void)argument;
	for (uint32_t i = 0; i < BATCHES; i++) {
		struct nvmepeer_transfer transfer = read_of(i);

		expect(!submit(warp, &transfer, &batches[i]), "submit");
		hand(i);
	}
	expect(!wait_for(warp, &batches[BATCHES - 1]), "own wait");
	expect(holds(read_of(BATCHES - 1).offset, read_of(BATCHES - 1).lba, 20 + 3 * (BATCHES - 1)),
	       "data of the own wait");
	expect(!batches[BATCHES - 1].count, "batch is empty");
	done++;
	lanes_left--;
}

/* Another warp waits for the batches that were passed to it. */
static void lane_waits(void *argument)
{
	uint32_t which = (uint32_t)(uintptr_t)argument;
	struct nvmepeer_group warp = whole_warp();
	struct nvmepeer_transfer transfer = read_of(which);

	receive(which);
	expect(!wait_for(warp, &batches[which]), "other's wait");
	expect(holds(transfer.offset, transfer.lba, (uint32_t)transfer.blocks), "data");
	done++;
	lanes_left--;
}

/* Another warp polls. */
static void lane_polls(void *argument)
{
	uint32_t which = (uint32_t)(uintptr_t)argument;
	struct nvmepeer_group warp = whole_warp();
	struct nvmepeer_transfer transfer = read_of(which);
	int status;

	receive(which);
	do {
		status = nvmepeer_warp_poll(&bench->queue, warp, &batches[which]);
		if (status == NVMEPEER_AGAIN)
			machine_rest();
	} while (status == NVMEPEER_AGAIN);
	expect(!status, "poll");
	expect(holds(transfer.offset, transfer.lba, (uint32_t)transfer.blocks), "polled data");
	done++;
	lanes_left--;
}

/* Warp 0 submits all batches and delivers; the other warps poll flags only. */
static void lane_delivers(void *argument)
{
	struct nvmepeer_group warp = whole_warp();
	struct nvmepeer_delivery deliveries[BATCHES];

	(void)argument;
	for (uint32_t i = 0; i < BATCHES; i++) {
		struct nvmepeer_transfer transfer = read_of(i);

		expect(!submit(warp, &transfer, &batches[i]), "submit");
		deliveries[i].batch = &batches[i];
		deliveries[i].flag = &flags[i];
	}
	expect(!deliver(warp, deliveries, BATCHES, LIMIT), "deliver");
	done++;
	lanes_left--;
}

static void lane_computes(void *argument)
{
	(void)argument;
	for (uint32_t i = 0; i < BATCHES; i++) {
		struct nvmepeer_transfer transfer = read_of(i);

		expect(!nvmepeer_flag_wait(&flags[i], LIMIT), "flag");
		expect(holds(transfer.offset, transfer.lba, (uint32_t)transfer.blocks),
		       "data behind a flag");
	}
	done++;
	lanes_left--;
}

/* Statuses of three lanes. */
static int status_of(uint32_t lane)
{
	return lane == 1 ? 0x4080 : lane == 2 ? (int)NVMEPEER_E_LOST :
	       lane == LANES - 1 ? (int)NVMEPEER_E_FULL : (int)NVMEPEER_OK;
}

/* Warp 0 waits for all batches, the last of which fails, and counts them. */
static void lane_counts(void *argument)
{
	struct nvmepeer_group warp = whole_warp();
	uint32_t lane = nvp_lane();

	(void)argument;
	for (uint32_t i = 0; i < BATCHES; i++) {
		struct nvmepeer_transfer transfer = read_of(i);

		if (i == BATCHES - 1)
			transfer.lba = 16384 - 4;
		expect(!submit(warp, &transfer, &batches[i]), "submit");
	}
	for (uint32_t i = 0; i < BATCHES; i++) {
		int status = wait_for(warp, &batches[i]);

		expect(status == (i == BATCHES - 1 ? 0x4080 : 0), "status of a batch");
		/* A worse status that came before is kept. */
		if (lane == 0)
			nvmepeer_counter_add(&counter, i ? status : 0x4081);
	}
	done++;
	lanes_left--;
}

/* Other warps, which may be of other blocks, wait for arrivals. */
static void lane_awaits(void *argument)
{
	uint32_t first = counter_begin;

	(void)argument;
	for (uint32_t i = 0; i < BATCHES - 1; i++) {
		struct nvmepeer_transfer transfer = read_of(i);

		expect(nvmepeer_counter_wait(&counter, first + i + 1, LIMIT) == 0x4081, "arrivals");
		expect(holds(transfer.offset, transfer.lba, (uint32_t)transfer.blocks),
		       "data behind a counter");
	}
	expect(nvmepeer_counter_wait(&counter, first + BATCHES, LIMIT) == 0x4081, "worst status");
	expect(nvmepeer_counter_test(&counter, first + BATCHES + 1) == NVMEPEER_AGAIN, "no arrival");
	expect(nvmepeer_counter_wait(&counter, first + BATCHES + 1, 20000) == NVMEPEER_E_TIMEOUT,
	       "no arrival in time");
	done++;
	lanes_left--;
}

/* Lanes that add at once: no arrival and no status gets lost. */
static void lane_adds(void *argument)
{
	uint32_t lane = (uint32_t)(uintptr_t)argument;

	nvmepeer_counter_add(&counter, status_of(lane));
	expect(nvmepeer_counter_wait(&counter, counter_begin + LANES, LIMIT) == NVMEPEER_E_LOST,
	       "worst status of all");
	done++;
	lanes_left--;
}

/* A stream of units through a window, in a given order or consecutive. */
ONCE void read_stream(const uint64_t *lbas)
{
	struct nvmepeer_prefetch ahead = {
		&bench->queue, whole_warp(), &memory, batches, lbas, 40, UNITS, UNIT_BLOCKS, WINDOW,
		0, 0, 0, NULL, NULL, NULL, 0,
	};
	uint64_t offset = 0;

	nvmepeer_prefetch_start(&ahead);
	for (uint32_t unit = 0; unit < UNITS; unit++) {
		uint64_t lba = lbas ? lbas[unit] : 40 + unit * UNIT_BLOCKS;

		expect(!next_unit(&ahead, &offset), "next unit");
		expect(holds(offset, lba, UNIT_BLOCKS), "data of a unit");
		expect(ahead.sent - ahead.released <= WINDOW, "window");
		nvp_group_sync(ahead.group);
		if (unit == 3)
			continue;	/* keeps one unit: the window is smaller for a while */
		if (unit == 4)
			nvmepeer_prefetch_release(&ahead);
		nvmepeer_prefetch_release(&ahead);
	}
	expect(next_unit(&ahead, &offset) == NVMEPEER_E_TOKEN, "the end");
	expect(!stop(&ahead), "stop");
}

static void lane_streams(void *argument)
{
	static const uint64_t lbas[UNITS] = { 9, 200, 30, 31, 5, 77, 1000, 2, 64, 8, 500, 3, 1, 0 };

	read_stream(argument ? lbas : NULL);
	done++;
	lanes_left--;
}

/*
 * Stop a stream early: all commands in flight are waited for, and the queue is
 * idle again.
 */
static void lane_stops(void *argument)
{
	struct nvmepeer_prefetch ahead = {
		&bench->queue, whole_warp(), &memory, batches, NULL, 40, UNITS, UNIT_BLOCKS, WINDOW,
		0, 0, 0, NULL, NULL, NULL, NVMEPEER_CONTROL_FORCE_UNIT_ACCESS,
	};
	uint64_t offset = 99;

	(void)argument;
	nvmepeer_prefetch_start(&ahead);
	expect(!next_unit(&ahead, &offset) && !offset, "first unit");
	expect(!stop(&ahead), "stop");
	expect(ahead.taken == WINDOW && ahead.sent == WINDOW, "nothing in flight");
	expect(bench->controller.last[12] & NVMEPEER_CONTROL_FORCE_UNIT_ACCESS, "control of the reads");
	done++;
	lanes_left--;
}

/* One read into pages in any order, by a warp and by each lane for itself. */
static void lane_scatters(void *argument)
{
	static uint64_t together[PARTS * 2], single[LANES][PARTS * 2];
	static const uint32_t numbers[LANES + 1][PARTS] = {
		{ 20, 3, 9, 4, 0, 11 }, { 40, 32, 34, 44, 46, 41 }, { 48, 49, 50, 60, 59, 58 },
		{ 61, 62, 63, 64, 65, 66 }, { 80, 79, 78, 77, 76, 75 }, { 90, 91, 95, 94, 93, 92 },
		{ 100, 102, 104, 106, 108, 110 }, { 101, 103, 105, 107, 109, 111 },
		{ 126, 125, 124, 123, 122, 121 },
	};
	uint32_t lane = (uint32_t)(uintptr_t)argument;
	struct nvmepeer_page_list parts = { &memory, numbers[lane + 1], PARTS, 13 };
	struct nvmepeer_buffer scattered = { 0, 0, 0 };
	uint32_t blocks = PARTS * 8192 / BLOCK;

	expect(!nvmepeer_scatter(&bench->queue, &parts, single[lane], &scattered), "scatter");
	expect(!read_blocks(&scattered, 0, 64 * lane, blocks), "scattered read");
	for (uint32_t i = 0; i < PARTS; i++)
		expect(holds((uint64_t)numbers[lane + 1][i] << 13, 64 * lane + 16 * i, 16),
		       "scattered data");
	parts.numbers = numbers[0];
	expect(!nvmepeer_warp_scatter(&bench->queue, whole_warp(), &parts, together, &scattered),
	       "scatter by a warp");
	if (!lane)
		expect(!read_blocks(&scattered, 8192, 700, blocks - 16) &&
		       holds(3 << 13, 700, 16) && holds(11 << 13, 700 + 64, 16), "its read");
	parts.numbers = numbers[1];
	parts.page_shift = 11;
	expect(nvmepeer_scatter(&bench->queue, &parts, single[lane], &scattered) == NVMEPEER_E_ALIGN,
	       "parts below a page");
	parts.page_shift = 15;
	expect(nvmepeer_scatter(&bench->queue, &parts, single[lane], &scattered) == NVMEPEER_E_RANGE,
	       "parts outside");
	done++;
	lanes_left--;
}

/*
 * The status of a batch after an error, and that it can be reused afterwards.
 */
static void lane_fails(void *argument)
{
	struct nvmepeer_group warp = whole_warp();
	struct nvmepeer_transfer outside = { NVMEPEER_OP_READ, 0, 16384 - 10, 20, &memory, 0 };
	struct nvmepeer_transfer large = { NVMEPEER_OP_READ, 0, 0, MOST * 4 + 1, &memory, 0 };

	(void)argument;
	expect(!submit(warp, &outside, &batches[0]), "submit");
	expect(wait_for(warp, &batches[0]) == 0x4080, "bad status");
	expect(submit(warp, &large, &batches[0]) ==
	       NVMEPEER_E_TOO_LARGE, "too many commands");
	expect(wait_for(warp, &batches[0]) == NVMEPEER_E_TOO_LARGE,
	       "none was sent");
	/*
	 * The lanes' first commands are out of range; the second ones, from
	 * block 0 on, are not.
	 */
	outside.lba = 0 - (uint64_t)LANES * 4;
	outside.blocks = LANES * 8;
	expect(!submit(warp, &outside, &batches[0]) && wait_for(warp, &batches[0]) == 0x4080,
	       "the first bad status");
	outside.blocks = 20;
	outside.lba = 0;
	outside.offset = memory.length - 8 * BLOCK;
	expect(submit(warp, &outside, &batches[0]) == NVMEPEER_E_RANGE,
	       "outside the buffer");
	expect(wait_for(warp, &batches[0]) == NVMEPEER_E_RANGE,
	       "some were sent");
	outside.offset = 0;
	expect(!submit(warp, &outside, &batches[0]) &&
	       !wait_for(warp, &batches[0]) && holds(0, 0, 20),
	       "good again");
	done++;
	lanes_left--;
}

/*
 * A controller that completes nothing: flags are raised nevertheless, in time.
 */
static void lane_gives_up(void *argument)
{
	struct nvmepeer_group warp = whole_warp();
	struct nvmepeer_transfer transfer = read_of(0);
	struct nvmepeer_delivery delivery = { &batches[0], &flags[0] };

	(void)argument;
	expect(!submit(warp, &transfer, &batches[0]), "submit");
	expect(nvmepeer_flag_test(&flags[0]) == NVMEPEER_AGAIN, "flag is down");
	expect(deliver(warp, &delivery, 1, 300000) ==
	       NVMEPEER_E_TIMEOUT, "deliver times out");
	nvp_group_sync(warp);
	expect(nvmepeer_flag_wait(&flags[0], 1) == NVMEPEER_E_TIMEOUT, "flag has the status");
	expect(nvmepeer_flag_wait(&flags[1], 20000) == NVMEPEER_E_TIMEOUT, "no flag in time");
	done++;
	lanes_left--;
}

/* The worst status of three lanes, of which the first and the last have others. */
static int worst_of_three(uint32_t lane)
{
	return nvp_group_status(whole_warp(), status_of(lane));
}

/* Stores of each lane are visible to all lanes after the barrier. */
static void lane_meets(void *argument)
{
	uint32_t lane = (uint32_t)(uintptr_t)argument;

	for (uint64_t round = 1; round < 20; round++) {
		lane_store((uint64_t *)bytes + lane, round);
		expect(!nvp_group_status(whole_warp(), NVMEPEER_OK), "all are well");
		expect(lane_load((uint64_t *)bytes + (lane + round) % LANES) == round,
		       "what another lane wrote");
		nvp_group_sync(whole_warp());
	}
	expect(worst_of_three(lane) == NVMEPEER_E_LOST, "worst status of the lanes");
	done++;
	lanes_left--;
}

struct shape {
	const char *name;
	void (*warp[WARPS])(void *);
	bool by_lane;		/* the argument is a lane number, not a batch */
	bool mute;
};

static const struct shape shapes[] = {
	{ "submitted by one warp, waited for and polled by others",
	  { lane_sends, lane_waits, lane_polls }, false, false },
	{ "flags in shared memory, raised by one warp",
	  { lane_delivers, lane_computes, lane_computes }, false, false },
	{ "counter of arrivals for other warps", { lane_counts, lane_awaits, lane_awaits }, false, false },
	{ "counter of arrivals of all lanes", { lane_adds }, true, false },
	{ "prefetch of consecutive units", { lane_streams }, false, false },
	{ "prefetch by a list", { lane_streams }, true, false },
	{ "prefetch stopped early", { lane_stops }, false, false },
	{ "one read over a list of pages", { lane_scatters }, true, false },
	{ "group status orders memory", { lane_meets }, true, false },
	{ "bad statuses of batches", { lane_fails }, false, false },
	{ "flags without completions", { lane_gives_up }, false, true },
};

static void add_warps(const struct shape *shape)
{
	for (uint32_t warp = 0; warp < WARPS && shape->warp[warp]; warp++)
		for (uint32_t lane = 0; lane < LANES; lane++, lanes_left++) {
			uintptr_t argument = shape->by_lane ? lane : warp;

			/* Any argument but NULL selects a list. */
			if (shape->warp[warp] == lane_streams)
				argument = shape->by_lane;
			machine_add(shape->warp[warp], (void *)argument, warp, lane);
		}
}

static void prepare(uint32_t entries, uint32_t seed)
{
	bench = bench_new(entries, entries);
	bench->controller.order = CONTROLLER_SHUFFLED;
	bench->controller.seed = seed;
	for (uint32_t i = 0; i < 16384 * BLOCK; i += 4) {
		uint32_t word = i * 2654435761u;

		memcpy(bench->controller.disk + i, &word, 4);
	}
	bench->geometry.cids = 512;
	bench->geometry.max_transfer = 65536;
	bytes = bench_memory(4096, 1 << 20);
	memset(bytes, 0, 1 << 20);
	memory = (struct nvmepeer_buffer){ 1 << 20, (uintptr_t)bytes, 0 };
	memset(flags, 0, sizeof(flags));
	/* Counts wrap around in some runs. */
	counter_begin = seed % 2 ? 0 : 0xfffffffe;
	counter = (struct nvmepeer_counter){ counter_begin, 0 };
	memset(handed, 0, sizeof(handed));
	for (uint32_t i = 0; i < BATCHES; i++)
		batches[i] = (struct nvmepeer_batch){ tokens[i], MOST, 0, 0 };
	bad = done = lanes_left = most_in_flight = 0;
}

static bool run_once(const struct shape *shape, uint32_t entries, uint32_t seed)
{
	bool good;

	prepare(entries, seed);
	/* Commands of 4 blocks split transfers; pages need longer ones. */
	command_bytes = shape->warp[0] == lane_scatters ? 65536 : 4 * BLOCK;
	bench->geometry.max_transfer = (uint32_t)command_bytes;
	bench->controller.mute = shape->mute;
	good = rig_begin(seed, 1000);
	machine.step_limit = 4000 * 1000;
	add_warps(shape);
	machine_add_outside(controller_main, NULL);
	good = machine_run() && good && !bad && !bench->controller.errors && done;
	if (shape->warp[0] == lane_streams && most_in_flight > WINDOW * 2)
		good = false;
	if (!good)
		printf("# %s, %u entries, seed %u: bad %u, stuck %d, in flight %u, errors %llu %s\n",
		       shape->name, entries, seed, bad, machine.stuck, most_in_flight,
		       (unsigned long long)bench->controller.errors,
		       bench->controller.error ? bench->controller.error : "");
	free(bytes);
	bench_free(bench);
	return good;
}

int main(void)
{
	static const uint32_t entries[] = { 4, 64 };

	ktap_start();
	for (size_t i = 0; i < sizeof(shapes) / sizeof(shapes[0]); i++) {
		bool good = true;

		for (uint32_t seed = 1; good && seed <= 20; seed++)
			good = run_once(&shapes[i], entries[shapes[i].mute || seed % 3 != 0], seed);
		ktap_check(good, shapes[i].name);
	}
	return ktap_end();
}
