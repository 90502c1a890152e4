// SPDX-License-Identifier: GPL-2.0-only
/*
 * unit-device-block.c: the calls of blocks on a machine of fibres: two blocks
 * of two warps share queue pairs, make synchronous and asynchronous transfers,
 * gather, and do the same with a set of two controllers; every byte is checked.
 *
 * Usage: unit-device-block [CASE [SEED]]; all cases and seeds, or one.
 */
#define NVMEPEER_GATHER_SLOTS 16
#define NVMEPEER_PLATFORM_HEADER "fibre_platform.h"
#include <nvmepeer_device.h>

#include "rig.h"
#include "../lib/ktap.h"

enum {
	LANES = NVMEPEER_LANES, BLOCKS = 2, BLOCK_WARPS = 2, THREADS = BLOCK_WARPS * LANES,
	CONTROLLERS = 2, EACH = 2, QUEUES = CONTROLLERS * EACH, SECTOR = CONTROLLER_BLOCK,
	MEMORY = 1 << 20, MOST = 16, PIECES = 40, PIECE = 1024, UNIT_SHIFT = 12, STRIPE_SHIFT = 3,
	DISK = 2048, IOVA = 1 << 30,
};

/* Shared memory of a block; plain accesses. */
struct block {
	struct nvmepeer_gather_table table;
	struct nvmepeer_batch batches[2];
	struct nvmepeer_token tokens[2][MOST];
	struct nvmepeer_gather_range pieces[PIECES];
	struct nvmepeer_set_batch set_batch;
	uint32_t set_queues[MOST];
	int set_statuses[MOST];
	uint32_t word;
};

/* bench, of rig.h, is the first of them. */
static struct bench *benches[QUEUES];
static struct nvmepeer_queue queues[QUEUES];
static struct nvmepeer_buffer buffers[CONTROLLERS];
static struct nvmepeer_set set;
static struct block blocks[BLOCKS];
static uint8_t *memory;			/* one half for each block */
static uint8_t got[BLOCKS][PIECES * PIECE] __attribute__((aligned(64)));

static void controllers_main(void *argument)
{
	(void)argument;
	while (lanes_left) {
		for (int i = 0; i < QUEUES; i++)
			controller_step(&benches[i]->controller);
		machine_rest();
	}
}

static void expect(bool good, const char *what)
{
	if (!good && !bad++)
		printf("# %s\n", what);
}

static uint32_t my_block(void)
{
	return fibre_current()->block;
}

static uint64_t my_offset(void)
{
	return (uint64_t)my_block() * (MEMORY / BLOCKS);
}

/* Block @lba of the set, or of its first controller only. */
static const uint8_t *on_disk(bool of_set, uint64_t lba)
{
	struct nvp_location place = { 0, lba, 0 };

	if (of_set)
		place = nvp_set_locate(&set, lba);
	return benches[place.controller * EACH]->controller.disk + place.lba * SECTOR;
}

static bool holds(bool of_set, uint64_t offset, uint64_t lba, uint32_t count)
{
	for (uint32_t i = 0; i < count; i++)
		if (memcmp(memory + offset + i * SECTOR, on_disk(of_set, lba + i), SECTOR))
			return false;
	return true;
}

/* A barrier: no thread of the block continues before all have checked. */
static void checked(void)
{
	done++;
	nvp_block_sync();
}

static void thread_transfers(void)
{
	struct nvmepeer_transfer transfer = {
		NVMEPEER_OP_READ, 0, 3 + 500 * my_block(), 130, buffers, my_offset() + SECTOR,
	};
	struct block *block = &blocks[my_block()];

	expect(!nvmepeer_block_transfer(&queues[0], &transfer, &block->word), "transfer");
	expect(holds(false, transfer.offset, transfer.lba, 130), "data of a transfer");
	checked();
	transfer.lba = DISK - 20;
	expect(nvmepeer_block_transfer(&queues[0], &transfer, &block->word) == 0x4080,
	       "one of a transfer's commands fails");
	checked();
}

/* One warp, while the other does the same elsewhere. */
static void thread_transfers_by_warp(void)
{
	uint32_t warp = nvp_block_thread() / LANES;
	struct nvmepeer_transfer transfer = {
		NVMEPEER_OP_READ, 0, 9 + 300 * (2 * my_block() + warp), 70, buffers,
		my_offset() + warp * (MEMORY / 4),
	};
	struct nvmepeer_buffer small = { 4096, buffers[0].dma, 0 };

	expect(!nvmepeer_warp_transfer(&queues[0], &transfer), "transfer by a warp");
	nvp_lanes_sync(NVP_FULL_MASK);
	expect(holds(false, transfer.offset, transfer.lba, 70), "data of a warp");
	checked();
	/* The first commands cannot be read, those of later lanes do not fit the buffer. */
	transfer.buffer = &small;
	transfer.lba = DISK;
	transfer.offset = 0;
	nvp_lanes_sync(NVP_FULL_MASK);
	expect(nvmepeer_warp_transfer(&queues[0], &transfer) == NVMEPEER_E_RANGE,
	       "worst status of a warp");
	checked();
}

static void thread_halves(void)
{
	struct block *block = &blocks[my_block()];
	struct nvmepeer_transfer first = {
		NVMEPEER_OP_READ, 0, 1 + 400 * my_block(), 60, buffers, my_offset(),
	};
	struct nvmepeer_transfer second = first;

	second.lba += 200;
	second.offset += MEMORY / 4;
	expect(!nvmepeer_block_submit(&queues[0], &first, &block->batches[0]), "first half");
	expect(!nvmepeer_block_submit(&queues[0], &second, &block->batches[1]), "another");
	expect(!nvmepeer_block_wait(&queues[0], &block->batches[1], RIG_LONG), "the other's end");
	expect(holds(false, second.offset, second.lba, 60), "data of the other");
	expect(!nvmepeer_block_wait(&queues[0], &block->batches[0], RIG_LONG), "second half");
	expect(holds(false, first.offset, first.lba, 60), "data of the first");
	checked();
	first.lba = DISK - 5;
	expect(!nvmepeer_block_submit(&queues[0], &first, &block->batches[0]), "outside");
	expect(nvmepeer_block_wait(&queues[0], &block->batches[0], RIG_LONG) == 0x4080,
	       "bad status of a half");
	first.blocks = MOST * 8 + 1;
	expect(nvmepeer_block_submit(&queues[0], &first, &block->batches[0]) ==
	       NVMEPEER_E_TOO_LARGE, "more commands than the batch has tokens");
	expect(nvmepeer_block_wait(&queues[0], &block->batches[0], RIG_LONG) ==
	       NVMEPEER_E_TOO_LARGE, "none was sent");
	checked();
}

/*
 * Ranges of all lengths, some in the same unit and some across two: more than
 * one round.
 */
static void make_pieces(struct block *block, uint32_t number)
{
	for (uint32_t i = 0; i < PIECES; i++) {
		uint64_t from = (i * 7919ull + number * 31) % 6000 * 16 * (1 + i % 8);

		block->pieces[i] = (struct nvmepeer_gather_range){
			from, (uintptr_t)&got[number][i * PIECE], 16 + i % 60 * 16, 0
		};
	}
	memset(got[number], 0x5a, sizeof(got[number]));
}

static bool piece_is_right(bool of_set, const struct nvmepeer_gather_range *piece)
{
	const uint8_t *to = (const uint8_t *)(uintptr_t)piece->to;

	for (uint32_t i = 0; i < piece->bytes; i++) {
		uint64_t at = piece->from + i;

		if (to[i] != on_disk(of_set, at / SECTOR)[at % SECTOR])
			return false;
	}
	return piece->bytes == PIECE || to[piece->bytes] == 0x5a;
}

static int gather(bool of_set, struct block *block, uint32_t count)
{
	struct nvmepeer_staging staging = { buffers, (uintptr_t)memory, UNIT_SHIFT, 0 };
	struct nvmepeer_set_staging of_all = { my_offset(), (uintptr_t)memory + my_offset(),
					       UNIT_SHIFT, 0 };
	struct nvmepeer_buffer mine = { MEMORY / BLOCKS, buffers[0].dma + my_offset(), 0 };

	if (of_set)
		return nvmepeer_block_set_gather(&set, &block->table, &of_all, block->pieces,
						 count);
	staging.buffer = &mine;
	staging.address += my_offset();
	return nvmepeer_block_gather(&queues[0], &block->table, &staging, block->pieces, count);
}

static void gathers(bool of_set)
{
	struct block *block = &blocks[my_block()];
	struct nvmepeer_gather_range *piece = &block->pieces[PIECES / 2];

	expect(!gather(of_set, block, PIECES), "gather");
	for (uint32_t i = nvp_block_thread(); i < PIECES; i++)
		expect(piece_is_right(of_set, &block->pieces[i]), "a piece");
	checked();
	if (!nvp_block_thread())
		piece->bytes = 24;
	nvp_block_sync();
	expect(gather(of_set, block, PIECES) == NVMEPEER_E_ALIGN, "a piece that is odd");
	checked();
	if (!nvp_block_thread()) {
		piece->bytes = 16;
		piece->from = (uint64_t)CONTROLLERS * DISK * SECTOR;
	}
	nvp_block_sync();
	expect(gather(of_set, block, PIECES) == 0x4080, "a range that cannot be read");
	checked();
}

static void thread_gathers(void)
{
	gathers(false);
}

static void thread_gathers_from_set(void)
{
	gathers(true);
}

/* Each thread for itself, across stripes. */
static void thread_reads_set(void)
{
	uint32_t number = my_block() * THREADS + nvp_block_thread();
	uint64_t offset = (uint64_t)number * 16384, lba = 5 + 37 * (uint64_t)number;

	expect(!nvmepeer_set_read(&set, offset, lba, 20), "read of a set");
	expect(holds(true, offset, lba, 20), "data of a set");
	memset(memory + offset, (int)number + 1, 12 * SECTOR);
	expect(!nvmepeer_set_write(&set, offset, lba + 4, 12), "write to a set");
	for (uint32_t i = 0; i < 12; i++)
		expect(on_disk(true, lba + 4 + i)[SECTOR - 1] == number + 1, "what was written");
	checked();
}

/* A transfer of a block to all controllers, two of whose commands fail. */
static void thread_halves_of_set(void)
{
	struct block *block = &blocks[my_block()];
	struct nvmepeer_set_batch *batch = &block->set_batch;
	struct nvmepeer_transfer transfer = {
		NVMEPEER_OP_READ, 0, 5 + 400 * my_block(), 100, NULL, my_offset(),
	};

	if (!nvp_block_thread())
		*batch = (struct nvmepeer_set_batch){ { block->tokens[0], MOST, 0, 0 },
						      block->set_queues, block->set_statuses };
	nvp_block_sync();
	expect(!nvmepeer_block_set_submit(&set, &transfer, batch), "first half on a set");
	expect(batch->commands.count == 14, "number of commands");
	expect(!nvmepeer_block_set_wait(&set, batch, RIG_LONG), "second half on a set");
	expect(holds(true, transfer.offset, transfer.lba, 100), "data of a set");
	for (int i = 0; i < 14; i++)
		expect(!block->set_statuses[i], "status of a command");
	checked();
	transfer.lba = CONTROLLERS * DISK - 50;
	expect(!nvmepeer_block_set_submit(&set, &transfer, batch), "outside, on a set");
	expect(nvmepeer_block_set_wait(&set, batch, RIG_LONG) == 0x4080, "worst status of a set");
	expect(holds(true, transfer.offset, transfer.lba, 50), "data before the end of a set");
	checked();
	transfer.blocks = MOST * 8 + 1;
	expect(nvmepeer_block_set_submit(&set, &transfer, batch) == NVMEPEER_E_TOO_LARGE,
	       "more commands than the batch of a set has tokens");
	expect(nvmepeer_block_set_wait(&set, batch, RIG_LONG) == NVMEPEER_E_TOO_LARGE,
	       "none was sent to a set");
	checked();
}

static void thread_main(void *argument)
{
	((void (*)(void))argument)();
	lanes_left--;
}

static void make_set(uint32_t entries, uint32_t seed)
{
	memory = bench_memory(4096, MEMORY);
	memset(memory, 0, MEMORY);
	for (int i = 0; i < QUEUES; i++) {
		struct controller *controller;

		benches[i] = bench_new(entries, entries);
		controller = &benches[i]->controller;
		controller->order = CONTROLLER_SHUFFLED;
		controller->seed = seed + (uint32_t)i;
		controller->disk_blocks = DISK;
		/* Each controller has an address space of its own. */
		controller->iova = (uint64_t)(i / EACH) * IOVA;
		benches[i]->geometry.max_transfer = 4096;
		benches[i]->geometry.cids = 64;
		/* Queue pairs of one controller access one disk. */
		if (i % EACH) {
			free(controller->disk);
			controller->disk = benches[i - 1]->controller.disk;
		}
		for (uint32_t at = 0; at < DISK * SECTOR && i % EACH == 0; at += 4) {
			uint32_t word = (at + (uint32_t)i) * 2654435761u;

			memcpy(controller->disk + at, &word, 4);
		}
	}
	for (int i = 0; i < CONTROLLERS; i++)
		buffers[i] = (struct nvmepeer_buffer){
			MEMORY, (uintptr_t)memory + (uint64_t)i * IOVA, 0
		};
	set = (struct nvmepeer_set){ queues, buffers, CONTROLLERS, EACH, STRIPE_SHIFT,
				     NVMEPEER_SET_HASH, NVMEPEER_LAYOUT, 0, NULL };
	bench = benches[0];
}

static void free_set(void)
{
	for (int i = 0; i < QUEUES; i++) {
		if (i % EACH)
			benches[i]->controller.disk = NULL;
		bench_free(benches[i]);
	}
	free(memory);
}

static void add_blocks(void (*thread)(void))
{
	fibre_block_warps = BLOCK_WARPS;
	rig_add_warps(BLOCKS * BLOCK_WARPS, LANES, thread_main);
	for (uint32_t i = 0; i < BLOCKS * THREADS; i++) {
		machine.fibres[i].argument = (void *)thread;
		machine.fibres[i].block = machine.fibres[i].warp / BLOCK_WARPS;
	}
	for (uint32_t i = 0; i < BLOCKS; i++) {
		memset(&blocks[i], 0, sizeof(blocks[i]));
		for (int half = 0; half < 2; half++)
			blocks[i].batches[half] =
				(struct nvmepeer_batch){ blocks[i].tokens[half], MOST, 0, 0 };
		make_pieces(&blocks[i], i);
	}
	machine_add_outside(controllers_main, NULL);
}

static const char *run(void (*thread)(void), uint32_t seed)
{
	const char *wrong = NULL;

	make_set(seed % 2 ? 4 : 16, seed);
	for (int i = 0; i < QUEUES; i++) {
		bench = benches[i];
		lanes_left = 0;
		if (!rig_begin(seed, 0))
			return "init";
		queues[i] = bench->queue;
	}
	bench = benches[0];
	weak_reset(1000, 2 + seed % 5);
	machine.step_limit = 4000 * 1000;
	add_blocks(thread);
	if (!machine_run() || !done || done % (BLOCKS * THREADS))
		wrong = "deadlock";
	for (int i = 0; i < QUEUES && !wrong; i++) {
		bench = benches[i];
		wrong = rig_end(true);
	}
	free_set();
	return wrong;
}

struct block_case {
	const char *name, *what;
	void (*thread)(void);
};

static const struct block_case cases[] = {
	{ "transfer", "transfers by blocks", thread_transfers },
	{ "warps", "transfers by the warps of blocks", thread_transfers_by_warp },
	{ "halves", "asynchronous transfers by blocks, two in flight", thread_halves },
	{ "gather", "gather by blocks, in rounds", thread_gathers },
	{ "set", "threads read and write a set of two controllers", thread_reads_set },
	{ "set-halves", "asynchronous transfers of a set by blocks", thread_halves_of_set },
	{ "set-gather", "gather from a set of two controllers", thread_gathers_from_set },
};

int main(int argc, char **argv)
{
	uint32_t only = argc > 2 ? (uint32_t)strtoul(argv[2], NULL, 0) : 0;

	ktap_start();
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		const char *wrong = NULL;

		if (!ktap_wants(argc, argv, cases[i].name))
			continue;
		for (uint32_t seed = only ? only : 1; !wrong && seed <= (only ? only : 6); seed++) {
			wrong = run(cases[i].thread, seed);
			if (wrong)
				printf("# %s %u: %s (%u wrong)\n", cases[i].name, seed, wrong, bad);
		}
		ktap_check(!wrong, cases[i].what);
	}
	return ktap_end();
}
