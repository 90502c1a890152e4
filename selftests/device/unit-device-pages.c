// SPDX-License-Identifier: GPL-2.0-only
/*
 * unit-device-pages.c: lists of pages as inference engines lay them out, and items
 * at odd places, by one thread: read and written through PRP lists, without lists,
 * through SGLs and with bit buckets, in contiguous and in scattered memory, with
 * logical blocks of 512 and 4096 bytes.  All of the memory and all of the disk are
 * compared with what they must have.
 *
 * Usage: unit-device-pages [LAYOUT|refused]
 */
#define _GNU_SOURCE
#include <pthread.h>
#include <sched.h>
#include <sys/mman.h>
#include <unistd.h>

#include <nvmepeer_device.h>

#include "bench.h"
#include "../lib/ktap.h"

enum {
	DISK = 8 << 20, BYTES = 10 << 20, PAGE = CONTROLLER_PAGE, ITEMS = 256, START = 12,
	SCRATCH = (2 + ITEMS) * PAGE, MOST = 256 << 10,
};

/*
 * Memory of the test, in two views: @linear for the peer, and @mixed, whose pages
 * are in another order, for DMA addresses.
 */
static uint8_t *linear, *mixed, *scratch_memory, *disk_before, *expected;
static uint64_t mixed_pages[BYTES / PAGE];
static struct bench *bench;
static bool stop;

static struct nvmepeer_memory memories[2];
static struct nvmepeer_memory scratch_place;
static struct nvmepeer_scratch scratch;
static struct nvmepeer_list_item items[ITEMS];
static struct nvmepeer_list_tensor tensors[64];
static struct nvmepeer_list_page pages[4];
static int statuses[ITEMS];
static struct nvmepeer_list list;
static struct nvmepeer_token tokens[ITEMS];
static struct nvmepeer_batch batch = { tokens, ITEMS, 0, 0 };

static void *controller_main(void *argument)
{
	(void)argument;
	while (!__atomic_load_n(&stop, __ATOMIC_ACQUIRE))
		if (!controller_step(&bench->controller))
			sched_yield();
	return NULL;
}

static void make_views(void)
{
	int file = memfd_create("pages", 0);

	if (file < 0 || ftruncate(file, BYTES))
		abort();
	linear = mmap(NULL, BYTES, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
	mixed = mmap(NULL, BYTES, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (linear == MAP_FAILED || mixed == MAP_FAILED)
		abort();
	for (uint32_t i = 0; i < BYTES / PAGE; i++) {
		uint32_t place = (i * 7 + 3) % (BYTES / PAGE);
		void *page = mixed + (size_t)place * PAGE;

		mixed_pages[i] = (uintptr_t)page;
		if (mmap(page, PAGE, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED, file,
			 (off_t)i * PAGE) != page)
			abort();
	}
	close(file);
}

static void fill(uint8_t *memory, uint64_t bytes, uint32_t seed)
{
	for (uint64_t i = 0; i < bytes; i += 4) {
		seed = seed * 1664525u + 1013904223u;
		memcpy(memory + i, &seed, 4);
	}
}

/* --- The layouts ------------------------------------------------------------ */

static uint32_t block_shift;

static uint32_t blocks_of(uint32_t bytes)
{
	return (bytes + (1u << block_shift) - 1) >> block_shift;
}

/* Pages @numbers of all tensors; on the disk in another order. */
static void use_pages(uint32_t tensor_count, const uint32_t *numbers, uint32_t count)
{
	static const uint32_t places[] = { 2, 0, 1, 3 };
	uint32_t blocks = nvmepeer_list_lay_out(block_shift, tensors, tensor_count);

	list = (struct nvmepeer_list){ .tensors = tensors, .pages = pages, .statuses = statuses,
				       .tensor_count = tensor_count, .count = count };
	for (uint32_t i = 0; i < count; i++)
		pages[i] = (struct nvmepeer_list_page){ (uint64_t)places[i] * blocks, numbers[i], 0 };
}

/* By layer 2 x blocks x 8 heads x 16 tokens x 128 of 16 bits: 64 pieces of 32 KiB. */
static void vllm(void)
{
	static const uint32_t numbers[] = { 3, 0, 2 };

	for (uint32_t i = 0; i < 64; i++)
		tensors[i] = (struct nvmepeer_list_tensor){ (uint64_t)i * 4 * 32768, 32768, 0, 32768, 0, 0 };
	use_pages(64, numbers, 3);
}

/* 64 tokens of a latent of 576 numbers of 16 bits. */
static void mla_bf16(void)
{
	static const uint32_t numbers[] = { 5, 1, 6 };

	for (uint32_t i = 0; i < 8; i++)
		tensors[i] = (struct nvmepeer_list_tensor){ (uint64_t)i * 8 * 73728, 73728, 0, 73728, 0, 0 };
	use_pages(8, numbers, 3);
}

/*
 * 64 tokens of 656 bytes, and of the indexer 132 bytes: no multiples of 4096, so
 * that the pages begin anywhere in the controller's.
 */
static void mla_fp8(void)
{
	static const uint32_t numbers[] = { 1, 2, 0, 7 };

	for (uint32_t i = 0; i < 8; i++) {
		tensors[2 * i] = (struct nvmepeer_list_tensor){
			(uint64_t)i * 8 * 41984, 41984, 0, 41984, 0, 0,
		};
		tensors[2 * i + 1] = (struct nvmepeer_list_tensor){
			4 << 20 | (uint64_t)i * 8 * 8448, 8448, 1, 8448, 0, 0,
		};
	}
	use_pages(16, numbers, 4);
}

/* All layers of a page are one piece of memory. */
static void page_first(void)
{
	static const uint32_t numbers[] = { 4, 5, 1 };

	for (uint32_t i = 0; i < 16; i++)
		tensors[i] = (struct nvmepeer_list_tensor){ (uint64_t)i * 8192, 16 * 8192, 0, 8192, 0, 0 };
	use_pages(16, numbers, 3);
}

/* Items of any length at any place, with 4 bytes between them. */
static void odd_items(void)
{
	static const uint32_t lengths[] = { 4, 8, 12, 508, 512, 516, 2048, 4092, 4096, 4100, 8188,
					    8196, 12288, 36868, 131072, 131076, 135164, 262144,
					    262148, 400004 };
	uint64_t offset = 4, lba = 3;
	uint32_t count = 0;

	for (uint32_t i = 0; i < sizeof(lengths) / sizeof(lengths[0]); i++)
		for (uint32_t k = 0; k < 2; k++) {
			items[count++] = (struct nvmepeer_list_item){ lba, offset, k, lengths[i], -99, 0 };
			lba += blocks_of(lengths[i]) + k;
			offset += lengths[i] + 4 + 1364 * k;
		}
	list = (struct nvmepeer_list){ .items = items, .count = count };
}

/* An item that continues others on the disk and in memory, and has padding. */
static void padded_run(void)
{
	for (uint32_t i = 0; i < 4; i++)
		items[i] = (struct nvmepeer_list_item){ 8 + i * (4096u >> block_shift), 4000 + i * 4096,
							0, i < 3 ? 4096 : 1000, -99, 0 };
	list = (struct nvmepeer_list){ .items = items, .count = 4 };
}

/* Neighbours that need more than 32 controller pages, of which the last has padding. */
static void long_run(void)
{
	for (uint32_t i = 0; i < 3; i++)
		items[i] = (struct nvmepeer_list_item){ i * (65536u >> block_shift), 4096 + i * 65536,
							0, i < 2 ? 65536 : 65532, -99, 0 };
	list = (struct nvmepeer_list){ .items = items, .count = 3 };
}

static const struct layout {
	const char *word, *name;
	void (*make)(void);
	bool items_fit;		/* each a command: in two steps, too */
	uint32_t commands;	/* 0: not checked */
} layouts[] = {
	{ "vllm", "vLLM's paged cache, 64 pieces of a block", vllm, true, 192 },
	{ "bf16", "MLA in bf16", mla_bf16, true, 24 },
	{ "fp8", "MLA in fp8 and its indexer", mla_fp8, true, 64 },
	{ "first", "SGLang's page first", page_first, true, 3 },
	{ "odd", "items of any length at any place", odd_items, false, 0 },
	{ "run", "neighbours of which the last has padding", padded_run, true, 1 },
	{ "long", "neighbours beyond 32 pages, of which the last has padding", long_run, true, 1 },
};

/* --- The controller's properties -------------------------------------------- */

static const struct way {
	const char *name;
	uint32_t flags;
	bool lists;
} ways[] = {
	{ "PRP lists", 0, true },
	{ "no lists", 0, false },
	{ "SGLs", NVMEPEER_SGL, false },
	{ "SGLs and bit buckets", NVMEPEER_SGL | NVMEPEER_SGL_BIT_BUCKET, true },
	{ "one range", NVMEPEER_SGL | NVMEPEER_ONE_RANGE, false },
};

static void set_up(const struct way *way, bool scattered)
{
	for (int i = 0; i < 2; i++) {
		memories[i].buffer = (struct nvmepeer_buffer){ BYTES - START, (uintptr_t)linear + START, 0 };
		memories[i].address = (uintptr_t)linear + START;
		if (scattered) {
			memories[i].buffer = (struct nvmepeer_buffer){ BYTES, 0, (uintptr_t)mixed_pages };
			memories[i].address = (uintptr_t)linear;
		}
	}
	bench = bench_new(64, 64);
	bench->controller.block = 1u << block_shift;
	bench->controller.buckets = way->flags & NVMEPEER_SGL_BIT_BUCKET;
	bench->controller.one_range = way->flags & NVMEPEER_ONE_RANGE;
	bench->controller.disk_blocks = DISK >> block_shift;
	bench->geometry.lba_shift = block_shift;
	bench->geometry.flags = way->flags;
	bench->geometry.max_transfer = MOST;
	bench->geometry.timeout_ns = 20000000000u;
	if (nvmepeer_queue_init(&bench->queue, &bench->geometry))
		abort();
	if (!way->lists)
		bench->queue.list_area = 0;
	scratch_place = (struct nvmepeer_memory){ { SCRATCH, (uintptr_t)scratch_memory, 0 },
						  (uintptr_t)scratch_memory };
	scratch = (struct nvmepeer_scratch){ &scratch_place, 0, 0, ITEMS };
	memset(scratch_memory, 0, SCRATCH);
}

static void adopt(uint32_t opcode)
{
	list.memories = memories;
	list.memory_count = 2;
	list.scratch = &scratch;
	list.opcode = opcode;
	for (uint32_t i = 0; i < ITEMS; i++)
		statuses[i] = items[i].status = -99;
}

/* --- What must be where ----------------------------------------------------- */

struct place {
	uint64_t disk, memory;
	uint32_t bytes;
	int status;
};

static struct place place_of(uint32_t index)
{
	struct place place;

	if (list.items) {
		place = (struct place){ items[index].lba << block_shift, items[index].offset,
					items[index].bytes, items[index].status };
	} else {
		const struct nvmepeer_list_tensor *tensor = &tensors[index % list.tensor_count];
		const struct nvmepeer_list_page *page = &pages[index / list.tensor_count];

		place = (struct place){ page->lba << block_shift,
					tensor->offset + tensor->stride * page->page,
					tensor->bytes, statuses[index] };
		for (uint32_t i = 0; i < index % list.tensor_count; i++)
			place.disk += (uint64_t)blocks_of(tensors[i].bytes) << block_shift;
	}
	place.memory += memories[0].address - (uintptr_t)linear;
	return place;
}

static uint32_t count_items(void)
{
	return list.items ? list.count : list.count * list.tensor_count;
}

static bool statuses_are(int status)
{
	bool good = true;

	for (uint32_t i = 0; i < count_items(); i++)
		good = good && place_of(i).status == status;
	return good;
}

static bool read_is_right(void)
{
	static const uint8_t zeros[PAGE];

	memset(expected, 0x5a, BYTES);
	for (uint32_t i = 0; i < count_items(); i++) {
		struct place place = place_of(i);

		memcpy(expected + place.memory, disk_before + place.disk, place.bytes);
	}
	return !memcmp(expected, linear, BYTES) && !memcmp(disk_before, bench->controller.disk, DISK) &&
	       !memcmp(scratch_memory + PAGE, zeros, PAGE);
}

static bool write_is_right(void)
{
	memset(expected, 0x77, DISK);
	for (uint32_t i = 0; i < count_items(); i++) {
		struct place place = place_of(i);

		memset(expected + place.disk, 0, (uint64_t)blocks_of(place.bytes) << block_shift);
		memcpy(expected + place.disk, linear + place.memory, place.bytes);
	}
	return !memcmp(expected, bench->controller.disk, DISK);
}

/* --- The calls --------------------------------------------------------------- */

static int in_one_step(void)
{
	return nvmepeer_list_transfer(&bench->queue, &list);
}

static int in_two_steps(void)
{
	struct nvmepeer_group self = nvmepeer_group_self();
	int status = nvmepeer_warp_list_submit(&bench->queue, self, &list, &batch);
	int waited = nvmepeer_warp_list_wait(&bench->queue, self, &list, &batch, 20000000000u);

	return status ? status : waited;
}

static int by_polls(void)
{
	struct nvmepeer_group self = nvmepeer_group_self();
	int status = nvmepeer_warp_list_submit(&bench->queue, self, &list, &batch);

	while (!status && (status = nvmepeer_warp_list_poll(&bench->queue, self, &list, &batch)) ==
	       NVMEPEER_AGAIN)
		status = 0;
	return status;
}

/* Each unit as soon as it is there; writes cannot be read ahead. */
static int ahead(void)
{
	static struct nvmepeer_token unit_tokens[3][64];
	struct nvmepeer_batch batches[3] = { { unit_tokens[0], 64, 0, 0 }, { unit_tokens[1], 64, 0, 0 },
					     { unit_tokens[2], 64, 0, 0 } };
	struct nvmepeer_prefetch prefetch = {
		.queue = &bench->queue, .group = nvmepeer_group_self(), .batches = batches,
		.units = list.count, .window = 3, .list = &list,
	};
	uint32_t each = count_items() / list.count;
	uint64_t offset = 0;
	int status = 0;

	if (list.opcode == NVMEPEER_OP_WRITE)
		return in_one_step();
	nvmepeer_prefetch_start(&prefetch);
	for (uint32_t unit = 0; unit < list.count && !status; unit++) {
		struct place place = place_of(unit * each);

		status = nvmepeer_prefetch_next(&prefetch, &offset, 20000000000u);
		if (offset + memories[0].address - (uintptr_t)linear != place.memory ||
		    memcmp(linear + place.memory, disk_before + place.disk, place.bytes))
			status = 1;
		nvmepeer_prefetch_release(&prefetch);
	}
	return status ? status : nvmepeer_prefetch_stop(&prefetch, 20000000000u);
}

static const struct call {
	const char *name;
	int (*transfer)(void);
	bool two_steps, shares;
} calls[] = {
	{ "in one step", in_one_step, false, true },
	{ "in two steps", in_two_steps, true, true },
	{ "by polls", by_polls, true, true },
	{ "ahead", ahead, true, false },
};

/* By PRPs an item with padding has a command of its own. */
static uint32_t commands_of(const struct layout *layout, const struct way *way, bool scattered)
{
	bool last_padded = layout->make == padded_run || layout->make == long_run;

	return layout->commands + (last_padded && (!way->flags || scattered));
}

static bool has_padding(const struct layout *layout)
{
	layout->make();
	for (uint32_t i = 0; i < count_items(); i++)
		if (place_of(i).bytes % (1u << block_shift))
			return true;
	return false;
}

/* Is the number of commands the one of the layout? */
static bool is_counted(const struct layout *layout, const struct way *way, const struct call *call,
		       bool scattered)
{
	if (!layout->commands || !call->shares)
		return false;
	if (way->flags & NVMEPEER_ONE_RANGE)
		return !has_padding(layout);
	return way->lists || (way->flags && !scattered);
}

static bool transfers(const struct layout *layout, const struct way *way, const struct call *call,
		      bool scattered)
{
	uint64_t commands;
	bool good;

	layout->make();
	adopt(NVMEPEER_OP_READ);
	fill(disk_before, DISK, 7);
	memcpy(bench->controller.disk, disk_before, DISK);
	memset(linear, 0x5a, BYTES);
	commands = __atomic_load_n(&bench->controller.completed, __ATOMIC_ACQUIRE);
	good = !call->transfer() && statuses_are(0) && read_is_right();
	commands = __atomic_load_n(&bench->controller.completed, __ATOMIC_ACQUIRE) - commands;
	if (good && is_counted(layout, way, call, scattered) &&
	    commands != commands_of(layout, way, scattered)) {
		printf("# %llu commands instead of %u\n", (unsigned long long)commands,
		       commands_of(layout, way, scattered));
		good = false;
	}
	adopt(NVMEPEER_OP_WRITE);
	memset(bench->controller.disk, 0x77, DISK);
	fill(linear, BYTES, 11);
	if (good && (call->transfer() || !statuses_are(0) || !write_is_right())) {
		printf("# write\n");
		good = false;
	}
	if (!good || bench->controller.errors)
		printf("# %s, %s, %s, blocks of %u: %s\n", way->name, call->name,
		       scattered ? "scattered" : "contiguous", 1u << block_shift,
		       bench->controller.errors ? bench->controller.error : "wrong");
	return good && !bench->controller.errors;
}

/*
 * Without a list of PRPs a command has at most two pages: fewer items fit one.  Of one
 * range, the last block of an item with padding has a command of its own.
 */
static bool fits(const struct layout *layout, const struct way *way, const struct call *call,
		 bool scattered)
{
	if (way->flags & NVMEPEER_ONE_RANGE)
		return !scattered && (!call->two_steps || (layout->items_fit && !has_padding(layout)));
	if (!call->two_steps)
		return true;
	return layout->items_fit && (way->lists || (way->flags && !scattered));
}

static bool all_ways(const struct layout *layout)
{
	bool good = true;

	for (uint32_t i = 0; i < 2 * 2 * sizeof(ways) / sizeof(ways[0]); i++) {
		const struct way *way = &ways[i / 4];
		bool scattered = i & 1;
		pthread_t thread;

		block_shift = i & 2 ? 12 : 9;
		stop = false;
		set_up(way, scattered);
		pthread_create(&thread, NULL, controller_main, NULL);
		for (uint32_t k = 0; k < sizeof(calls) / sizeof(calls[0]); k++)
			if (fits(layout, way, &calls[k], scattered))
				good = transfers(layout, way, &calls[k], scattered) && good;
		__atomic_store_n(&stop, true, __ATOMIC_RELEASE);
		pthread_join(thread, NULL);
		bench_free(bench);
	}
	return good;
}

/* --- What is refused ---------------------------------------------------------- */

/* One item of 100 bytes, which needs scratch memory. */
static int one_item(uint32_t bytes, uint64_t offset, uint32_t memory)
{
	items[0] = (struct nvmepeer_list_item){ 5, offset, memory, bytes, -99, 0 };
	list = (struct nvmepeer_list){ .items = items, .count = 1, .memories = memories, .memory_count = 2,
				       .scratch = &scratch, .opcode = NVMEPEER_OP_READ };
	return nvmepeer_list_transfer(&bench->queue, &list);
}

/* Two items that continue each other, in a memory that does not exist. */
static int neighbours_in(uint32_t memory)
{
	one_item(512, 0, memory);
	items[1] = (struct nvmepeer_list_item){ 6, 512, memory, 512, -99, 0 };
	list.count = 2;
	return nvmepeer_list_transfer(&bench->queue, &list);
}

static bool refused(uint32_t flags)
{
	struct way way = { "", flags, true };
	bool good;

	block_shift = 9;
	set_up(&way, false);
	good = one_item(102, 0, 0) == NVMEPEER_E_ALIGN && one_item(100, 2, 0) == NVMEPEER_E_ALIGN &&
	       one_item(0, 0, 0) == NVMEPEER_E_TOO_LARGE && one_item(100, 0, 2) == NVMEPEER_E_RANGE &&
	       one_item(100, BYTES - START - 96, 0) == NVMEPEER_E_RANGE &&
	       items[0].status == NVMEPEER_E_RANGE && one_item(BYTES + 4, 0, 0) == NVMEPEER_E_RANGE &&
	       neighbours_in(1u << 28) == NVMEPEER_E_RANGE;
	scratch.slots = 0;
	good = good && one_item(100, 0, 0) == NVMEPEER_E_ADDRESS;
	scratch.slots = ITEMS;
	scratch.first = ITEMS;
	good = good && one_item(100, 0, 0) == NVMEPEER_E_RANGE;
	scratch.first = 0;
	scratch.offset = 512;
	good = good && one_item(100, 0, 0) == NVMEPEER_E_ALIGN;
	scratch.offset = 0;
	scratch_place.address = 0;
	good = good && one_item(100, 0, 0) == NVMEPEER_E_ADDRESS;
	scratch_place.address = (uintptr_t)scratch_memory;
	memories[0].address = 0;
	bench->queue.timeout_ns = 1000;
	/* An SGL needs no address of the data memory. */
	good = good && one_item(100, 0, 0) ==
		       (flags == NVMEPEER_SGL ? NVMEPEER_E_TIMEOUT : NVMEPEER_E_ADDRESS);
	bench_free(bench);
	return good;
}

/*
 * In scattered memory items that continue each other share no command over the end of a page,
 * and a transfer of two pages has two commands.
 */
static bool neighbours_over_pages(void)
{
	struct nvmepeer_transfer transfer = { NVMEPEER_OP_READ, 0, 0, 2 * PAGE / 512,
					      &memories[0].buffer, 0 };
	bool good;

	adopt(NVMEPEER_OP_READ);
	/* Two in page 1, one in page 2. */
	for (uint32_t i = 0; i < 3; i++)
		items[i] = (struct nvmepeer_list_item){ 8 + i, 2 * PAGE - 1024 + 512 * i, 0, 512, -99, 0 };
	list.items = items;
	list.count = 3;
	good = !nvmepeer_warp_list_submit(&bench->queue, nvmepeer_group_self(), &list, &batch) &&
	       statuses_are(NVMEPEER_AGAIN) && tokens[0].cid != NVMEPEER_NO_CID &&
	       tokens[1].cid == NVMEPEER_NO_CID && tokens[2].cid != NVMEPEER_NO_CID;
	return good && nvmepeer_batch_commands(&bench->queue, &transfer) == 2;
}

/* Of one range: scattered memory, SGLs missing, and a block that no scratch page holds. */
static bool refused_of_one_range(void)
{
	static const struct way way = { "", NVMEPEER_SGL | NVMEPEER_ONE_RANGE, true };
	struct nvmepeer_command read = { NVMEPEER_OP_READ, 1, 5, &memories[0].buffer, 3584, 0 };
	struct nvmepeer_token token;
	bool good;

	block_shift = 9;
	set_up(&way, true);
	good = !nvmepeer_submit(&bench->queue, &read, &token, 0);
	read.offset += 4;
	good = good && nvmepeer_submit(&bench->queue, &read, &token, 0) == NVMEPEER_E_NO_LIST;
	read.blocks = 9;
	good = good && nvmepeer_submit(&bench->queue, &read, &token, 0) == NVMEPEER_E_NO_LIST;
	good = good && neighbours_over_pages();
	bench->geometry.flags = NVMEPEER_ONE_RANGE;
	good = good && nvmepeer_geometry_check(&bench->geometry) == NVMEPEER_E_GEOMETRY;
	/* A later flag of which a command may depend. */
	bench->geometry.flags = NVMEPEER_SGL | NVMEPEER_ONE_RANGE;
	good = good && !nvmepeer_geometry_check(&bench->geometry);
	bench->geometry.flags |= NVMEPEER_ONE_RANGE << 1;
	good = good && nvmepeer_geometry_check(&bench->geometry) == NVMEPEER_E_GEOMETRY;
	bench_free(bench);
	block_shift = 13;
	set_up(&way, false);
	good = good && one_item(100, 0, 0) == NVMEPEER_E_ADDRESS;
	bench_free(bench);
	return good;
}

/* In two steps an item is one command, and the batch has a token for each item. */
static bool refused_in_two_steps(void)
{
	static const struct way way = { "", 0, true };
	struct nvmepeer_batch small = { tokens, 3, 0, 0 };
	struct nvmepeer_group self = nvmepeer_group_self();
	bool good;

	block_shift = 9;
	set_up(&way, false);
	padded_run();
	adopt(NVMEPEER_OP_READ);
	good = nvmepeer_warp_list_submit(&bench->queue, self, &list, &small) == NVMEPEER_E_TOO_LARGE &&
	       statuses_are(NVMEPEER_E_TOO_LARGE) &&
	       nvmepeer_warp_list_wait(&bench->queue, self, &list, &small, 1000) == NVMEPEER_E_TOO_LARGE;
	items[0].bytes = MOST + 512;
	list.count = 1;
	good = good &&
	       nvmepeer_warp_list_submit(&bench->queue, self, &list, &batch) == NVMEPEER_E_TOO_LARGE &&
	       items[0].status == NVMEPEER_E_TOO_LARGE &&
	       nvmepeer_warp_list_wait(&bench->queue, self, &list, &batch, 1000) ==
		       NVMEPEER_E_TOO_LARGE;
	bench_free(bench);
	return good;
}

/* A whole block, padding, a whole block. */
static int three_items(void)
{
	int status;

	one_item(0, 0, 0);
	items[0] = (struct nvmepeer_list_item){ 5, 0, 0, 512, -99, 0 };
	items[1] = (struct nvmepeer_list_item){ 9, 8192, 0, 100, -99, 0 };
	items[2] = (struct nvmepeer_list_item){ 20, 16384, 0, 512, -99, 0 };
	list.count = 3;
	status = nvmepeer_list_transfer(&bench->queue, &list);
	return status;
}

/*
 * A command with padding has timed out: it may still access its scratch page, which
 * no other command gets before the re-arm.
 */
static bool refused_after_timeout(uint32_t flags)
{
	const struct way way = { "", flags, true };
	pthread_t thread;
	bool good;

	block_shift = 9;
	stop = false;
	set_up(&way, false);
	bench->queue.timeout_ns = 1000;
	good = one_item(100, 0, 0) == NVMEPEER_E_TIMEOUT;
	bench->controller.mute = true;
	controller_step(&bench->controller);
	bench->controller.mute = false;
	bench->controller.held_count = 0;
	bench->queue.timeout_ns = 20000000000u;
	pthread_create(&thread, NULL, controller_main, NULL);
	good = one_item(512, 0, 0) == 0 && good;
	good = one_item(100, 0, 0) == NVMEPEER_E_BUSY && items[0].status == NVMEPEER_E_BUSY && good;
	good = three_items() == NVMEPEER_E_BUSY && items[1].status == NVMEPEER_E_BUSY &&
	       !items[0].status && !items[2].status && good;
	__atomic_store_n(&stop, true, __ATOMIC_RELEASE);
	pthread_join(thread, NULL);
	controller_again(&bench->controller);
	nvmepeer_queue_rearm(&bench->queue, 1);
	stop = false;
	pthread_create(&thread, NULL, controller_main, NULL);
	good = one_item(100, 0, 0) == 0 && three_items() == 0 && good;
	__atomic_store_n(&stop, true, __ATOMIC_RELEASE);
	pthread_join(thread, NULL);
	good = good && !bench->controller.errors;
	bench_free(bench);
	return good;
}

/* Does the test run, if @word names it? */
static bool is_wanted(const char *wanted, const char *word)
{
	return !wanted || !strcmp(wanted, word);
}

int main(int argc, char **argv)
{
	const char *wanted = argc > 1 ? argv[1] : NULL;

	make_views();
	scratch_memory = bench_memory(PAGE, SCRATCH);
	disk_before = bench_memory(PAGE, DISK);
	expected = bench_memory(PAGE, DISK > BYTES ? DISK : BYTES);
	ktap_start();
	for (size_t i = 0; i < sizeof(layouts) / sizeof(layouts[0]); i++)
		if (is_wanted(wanted, layouts[i].word))
			ktap_check(all_ways(&layouts[i]), layouts[i].name);
	if (!is_wanted(wanted, "refused"))
		return ktap_end();
	ktap_check(refused(0), "invalid items and scratch memory, by PRPs");
	ktap_check(refused(NVMEPEER_SGL), "invalid items and scratch memory, by SGLs");
	ktap_check(refused(NVMEPEER_SGL | NVMEPEER_ONE_RANGE), "invalid items and scratch memory, of one range");
	ktap_check(refused_of_one_range(), "scattered memory and large blocks, of one range");
	ktap_check(refused_after_timeout(0), "padding after a timeout, by PRPs");
	ktap_check(refused_after_timeout(NVMEPEER_SGL), "padding after a timeout, by SGLs");
	ktap_check(refused_in_two_steps(), "too long for two steps");
	return ktap_end();
}
