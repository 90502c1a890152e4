// SPDX-License-Identifier: GPL-2.0-only
/*
 * unit-device-set.c: a set of two controllers with two queue pairs each:
 * gathers and asynchronous transfers of a block, by C threads; every byte is
 * checked.
 */
#include <pthread.h>
#include <sched.h>

#define NVMEPEER_GATHER_SLOTS 64
#include <nvmepeer_device.h>

#include "bench.h"
#include "ktap.h"

enum {
	CONTROLLERS = 2, EACH = 2, STRIPE_SHIFT = 3, BYTES = 1 << 20, UNIT_SHIFT = 12,
	PIECES = 300, PIECE = 512,
};

static struct bench *benches[CONTROLLERS][EACH];
static struct nvmepeer_queue queues[CONTROLLERS * EACH];
static struct nvmepeer_buffer buffers[CONTROLLERS];
static struct nvmepeer_set set;
static uint8_t *memory;
static bool stop;

static void *controllers_main(void *argument)
{
	(void)argument;
	while (!__atomic_load_n(&stop, __ATOMIC_ACQUIRE)) {
		for (int i = 0; i < CONTROLLERS * EACH; i++)
			controller_step(&benches[i / EACH][i % EACH]->controller);
		sched_yield();
	}
	return NULL;
}

/* Expected value of byte @at of the set. */
static uint8_t pattern(uint64_t at)
{
	return (uint8_t)(at * 2654435761u >> 13);
}

/* Store each block of the set where the set maps it. */
static void fill_disks(void)
{
	for (uint64_t lba = 0; lba < 8192; lba++) {
		struct nvp_location place = nvp_set_locate(&set, lba);

		for (int i = 0; i < EACH; i++) {
			uint8_t *block = benches[place.controller][i]->controller.disk +
					 place.lba * CONTROLLER_BLOCK;

			for (uint32_t at = 0; at < CONTROLLER_BLOCK; at++)
				block[at] = pattern(lba * CONTROLLER_BLOCK + at);
		}
	}
}

static void make_set(void)
{
	memory = bench_memory(4096, BYTES);
	for (int i = 0; i < CONTROLLERS * EACH; i++) {
		struct bench *bench = bench_new(16, 16);

		benches[i / EACH][i % EACH] = bench;
		bench->geometry.timeout_ns = 20000000000u;
		if (nvmepeer_queue_init(&queues[i], &bench->geometry))
			abort();
	}
	for (int i = 0; i < CONTROLLERS; i++)
		buffers[i] = (struct nvmepeer_buffer){ BYTES, (uintptr_t)memory, 0 };
	set = (struct nvmepeer_set){ queues, buffers, CONTROLLERS, EACH, STRIPE_SHIFT,
				     NVMEPEER_SET_HASH, NVMEPEER_LAYOUT, 0 };
	fill_disks();
}

static uint64_t completed(int controller)
{
	return benches[controller][0]->controller.completed +
	       benches[controller][1]->controller.completed;
}

/* Ranges from both controllers, some across units; a unit is read once. */
static bool gathers(void)
{
	static struct nvmepeer_gather_table table;
	struct nvmepeer_set_staging staging = { 65536, (uintptr_t)memory + 65536, UNIT_SHIFT, 0 };
	struct nvmepeer_gather_range pieces[PIECES];
	uint8_t *got = bench_memory(64, PIECES * PIECE);
	uint64_t before = completed(0) + completed(1);
	bool good;

	for (uint32_t i = 0; i < PIECES; i++)
		pieces[i] = (struct nvmepeer_gather_range){
			(i * 7919ull % 6000) * 16, (uintptr_t)got + i * PIECE, 256 + i % 16 * 16, 0
		};
	good = !nvmepeer_block_set_gather(&set, &table, &staging, pieces, PIECES);
	for (uint32_t i = 0; good && i < PIECES; i++)
		for (uint32_t at = 0; good && at < pieces[i].bytes; at++)
			good = got[i * PIECE + at] == pattern(pieces[i].from + at);
	printf("# %llu reads, %llu and %llu per controller\n",
	       (unsigned long long)(completed(0) + completed(1) - before),
	       (unsigned long long)completed(0), (unsigned long long)completed(1));
	free(got);
	return good && completed(0) + completed(1) - before == 24 && completed(0) && completed(1);
}

/* A table much smaller than the units: rounds. */
static bool gathers_in_rounds(void)
{
	static struct nvmepeer_gather_table table;
	struct nvmepeer_set_staging staging = { 0, (uintptr_t)memory, UNIT_SHIFT, 0 };
	struct nvmepeer_gather_range pieces[PIECES];
	uint8_t *got = bench_memory(64, PIECES * PIECE);
	bool good;

	for (uint32_t i = 0; i < PIECES; i++)
		pieces[i] = (struct nvmepeer_gather_range){ i * 4096ull * 3, (uintptr_t)got + i * PIECE,
						     PIECE, 0 };
	good = !nvmepeer_block_set_gather(&set, &table, &staging, pieces, PIECES);
	for (uint32_t i = 0; good && i < PIECES; i++)
		for (uint32_t at = 0; good && at < PIECE; at++)
			good = got[i * PIECE + at] == pattern(pieces[i].from + at);
	free(got);
	return good;
}

/* A range of several units, which are on both controllers. */
static bool gathers_long(void)
{
	static struct nvmepeer_gather_table table;
	struct nvmepeer_set_staging staging = { 0, (uintptr_t)memory, UNIT_SHIFT, 0 };
	struct nvmepeer_gather_range piece = { 4000, 0, 5 << UNIT_SHIFT, 0 };
	uint8_t *got = bench_memory(64, 6 << UNIT_SHIFT);
	bool good;

	piece.to = (uintptr_t)got;
	got[piece.bytes] = 0x5a;
	good = !nvmepeer_block_set_gather(&set, &table, &staging, &piece, 1) &&
	       got[piece.bytes] == 0x5a;
	for (uint32_t at = 0; good && at < piece.bytes; at++)
		good = got[at] == pattern(piece.from + at);
	free(got);
	return good;
}

static bool gather_refuses(void)
{
	static struct nvmepeer_gather_table table;
	struct nvmepeer_set_staging staging = { 0, (uintptr_t)memory, UNIT_SHIFT, 0 };
	struct nvmepeer_gather_range piece = { 8, (uintptr_t)memory, 16, 0 };
	uint64_t before = completed(0) + completed(1);
	bool good;

	good = nvmepeer_block_set_gather(&set, &table, &staging, &piece, 1) == NVMEPEER_E_ALIGN;
	piece.from = 0;
	piece.bytes = (NVMEPEER_GATHER_UNITS << UNIT_SHIFT) + 16;
	good = good &&
	       nvmepeer_block_set_gather(&set, &table, &staging, &piece, 1) == NVMEPEER_E_TOO_LARGE;
	good = completed(0) + completed(1) == before && good;
	piece.from = (uint64_t)2 * 16384 * 512;
	piece.bytes = 16;
	return nvmepeer_block_set_gather(&set, &table, &staging, &piece, 1) == 0x4080 && good;
}

/* Two batches of a block in flight, each with a status of its own. */
static bool block_halves(void)
{
	const struct nvmepeer_queue *queue = &queues[0];
	struct nvmepeer_token tokens[2][8];
	struct nvmepeer_batch batch[2] = { { tokens[0], 8, 0, 0 }, { tokens[1], 8, 0, 0 } };
	struct nvmepeer_transfer good = { NVMEPEER_OP_READ, 0, 5, 1000, &buffers[0], 512 };
	struct nvmepeer_transfer outside = { NVMEPEER_OP_READ, 0, 16384, 1, &buffers[0], 0 };
	struct nvmepeer_queue small = *queue;
	const uint8_t *disk = benches[0][0]->controller.disk;

	small.max_transfer = 65536;
	if (nvmepeer_batch_commands(&small, &good) != 8 ||
	    nvmepeer_block_submit(&small, &good, &batch[0]) ||
	    nvmepeer_block_submit(&small, &outside, &batch[1]) || batch[0].count != 8 ||
	    batch[1].count != 1)
		return false;
	if (nvmepeer_block_wait(&small, &batch[1], 20000000000u) != 0x4080 ||
	    nvmepeer_block_wait(&small, &batch[0], 20000000000u) ||
	    memcmp(memory + 512, disk + 5 * 512, 1000 * 512))
		return false;
	good.blocks = 1025;
	return nvmepeer_block_submit(&small, &good, &batch[0]) == NVMEPEER_E_TOO_LARGE &&
	       nvmepeer_block_wait(&small, &batch[0], 1) == NVMEPEER_E_TOO_LARGE &&
	       !nvmepeer_block_wait(&small, &batch[0], 1);
}

/* Long enough for a machine that stalls for a moment. */
#define LIMIT_NS 1000000000ull

/* A stream with timeouts: none is longer than specified. */
static bool limits_hold(void)
{
	const struct nvmepeer_queue *queue = &queues[0];
	struct nvmepeer_token tokens[8];
	struct nvmepeer_batch batch = { tokens, 8, 0, 0 };
	struct nvmepeer_transfer transfer = { NVMEPEER_OP_READ, 0, 0, 64, &buffers[0], 0 };
	struct nvmepeer_queue small = *queue;
	uint64_t start;
	int status;

	small.max_transfer = 4096;
	__atomic_store_n(&benches[0][0]->controller.mute, true, __ATOMIC_SEQ_CST);
	status = nvmepeer_warp_submit(&small, nvmepeer_group_join(&small), &transfer, &batch);
	start = nvmepeer_now_ns();
	if (status || nvmepeer_warp_wait(&small, nvmepeer_group_join(&small), &batch, LIMIT_NS) !=
	    NVMEPEER_E_TIMEOUT)
		return false;
	/* Eight commands share one timeout. */
	return nvmepeer_now_ns() - start < 4 * LIMIT_NS;
}

/* A set that code with another layout has made, or a queue pair of it. */
static bool set_is_checked(void)
{
	struct nvmepeer_set mine = set;
	struct nvmepeer_queue *last = &queues[set.controllers * set.queues_each - 1];
	bool good;

	mine.layout = NVMEPEER_LAYOUT - (8 << 12);
	good = nvmepeer_set_check(&mine) == NVMEPEER_E_LAYOUT;
	mine.layout = NVMEPEER_LAYOUT;
	good = good && !nvmepeer_set_check(&mine) && !nvmepeer_set_check(&set);
	last->layout++;
	good = good && nvmepeer_set_check(&mine) == NVMEPEER_E_LAYOUT;
	last->layout--;
	return good;
}

int main(void)
{
	pthread_t thread;

	ktap_start();
	make_set();
	pthread_create(&thread, NULL, controllers_main, NULL);
	ktap_check(gathers(), "set: gather from two controllers, each unit once");
	ktap_check(gathers_in_rounds(), "set: gather of more units than the table holds");
	ktap_check(gathers_long(), "set: gather of a range of several units");
	ktap_check(gather_refuses(), "set: invalid ranges, and a read that fails");
	ktap_check(block_halves(), "block: two batches in flight, each with its own status");
	ktap_check(set_is_checked(), "set: the layout of the set and of each queue pair is checked");
	ktap_check(limits_hold(), "batch: one timeout for all its commands");
	__atomic_store_n(&stop, true, __ATOMIC_RELEASE);
	pthread_join(thread, NULL);
	return ktap_end();
}
