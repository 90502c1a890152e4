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
#include "../lib/ktap.h"

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
				     NVMEPEER_SET_HASH, NVMEPEER_LAYOUT, 0, NULL };
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

enum { SET_TOKENS = 64, WINDOW = 3 };

static struct nvmepeer_token set_tokens[WINDOW][SET_TOKENS];
static uint32_t set_queues[WINDOW][SET_TOKENS];
static int set_statuses[SET_TOKENS];

static struct nvmepeer_set_batch set_batch_of(int slot, int *statuses)
{
	return (struct nvmepeer_set_batch){ { set_tokens[slot], SET_TOKENS, 0, 0 },
					    set_queues[slot], statuses };
}

/* Does the memory from @offset on have the blocks of the set from @lba on? */
static bool has_blocks(uint64_t offset, uint64_t lba, uint32_t blocks)
{
	for (uint64_t at = 0; at < (uint64_t)blocks * CONTROLLER_BLOCK; at++)
		if (memory[offset + at] != pattern(lba * CONTROLLER_BLOCK + at))
			return false;
	return true;
}

/* A token of a queue pair behind those of the set. */
static bool refuses_queue_of_others(void)
{
	struct nvmepeer_command command = { .opcode = NVMEPEER_OP_READ, .blocks = 8 };
	struct nvmepeer_set first = set;
	struct nvmepeer_set_token token;
	bool good = true;

	first.controllers = 1;
	do {
		good = good && !nvmepeer_set_submit(&set, &command, &token, LIMIT_NS);
		if (token.queue < EACH)
			good = good && !nvmepeer_set_wait(&set, token, NULL, LIMIT_NS);
		command.lba += 8;
	} while (good && token.queue < EACH);
	return good && nvmepeer_set_poll(&first, token, NULL) == NVMEPEER_E_TOKEN &&
	       nvmepeer_set_wait(&first, token, NULL, 1) == NVMEPEER_E_TOKEN &&
	       !nvmepeer_set_wait(&set, token, NULL, LIMIT_NS);
}

/* Commands of both controllers in flight, each with a token that has its queue pair. */
static bool set_commands(void)
{
	struct nvmepeer_command command = { NVMEPEER_OP_READ, 3, 2, NULL, 0, 0 };
	struct nvmepeer_set_token tokens[8], none;
	uint64_t before[CONTROLLERS] = { completed(0), completed(1) };
	uint32_t used = 0;
	bool good = true;

	memset(memory, 0, BYTES);
	for (uint32_t i = 0; i < 8; i++, command.lba += 8, command.offset += 4096) {
		good = good && !nvmepeer_set_submit(&set, &command, &tokens[i], LIMIT_NS);
		used |= 1u << tokens[i].queue / EACH;
	}
	for (uint32_t i = 8; i-- > 0;) {
		int status = NVMEPEER_AGAIN;

		if (i % 2)
			status = nvmepeer_set_wait(&set, tokens[i], NULL, LIMIT_NS);
		while (status == NVMEPEER_AGAIN)
			status = nvmepeer_set_poll(&set, tokens[i], NULL);
		good = good && !status && has_blocks(4096 * i, 2 + 8 * i, 3) &&
		       nvmepeer_set_poll(&set, tokens[i], NULL) == NVMEPEER_E_TOKEN;
	}
	good = good && used == 3 && completed(0) > before[0] && completed(1) > before[1];
	command.lba = 6;
	good = good && nvmepeer_set_submit(&set, &command, &none, LIMIT_NS) == NVMEPEER_E_TOO_LARGE;
	/* It would be the flush of one member. */
	command.opcode = NVMEPEER_OP_FLUSH;
	command.blocks = 0;
	good = good && nvmepeer_set_submit(&set, &command, &none, LIMIT_NS) == NVMEPEER_E_OPCODE;
	return good && refuses_queue_of_others();
}

/* Members that begin anywhere and have an end. */
static bool set_members(void)
{
	const struct nvmepeer_set_member members[CONTROLLERS] = { { 100, 32 }, { 4000, 16 } };
	struct nvmepeer_command command = { NVMEPEER_OP_READ, 8, 0, NULL, 0, 0 };
	struct nvmepeer_set mine = set;
	struct nvmepeer_set_token token;
	uint64_t before;
	bool good = true;

	mine.members = members;
	mine.flags = 0;		/* stripes in turn */
	for (uint32_t i = 0; good && i < 4; i++) {
		const uint8_t *disk = benches[i % 2][0]->controller.disk;
		uint64_t lba = members[i % 2].base + i / 2 * 8;

		command.lba = 8 * i;
		good = !nvmepeer_set_submit(&mine, &command, &token, LIMIT_NS) &&
		       !nvmepeer_set_wait(&mine, token, NULL, LIMIT_NS) &&
		       !memcmp(memory, disk + lba * CONTROLLER_BLOCK, 8 * CONTROLLER_BLOCK) &&
		       !nvmepeer_set_read(&mine, 65536, 8 * i, 8) &&
		       !memcmp(memory + 65536, disk + lba * CONTROLLER_BLOCK, 8 * CONTROLLER_BLOCK);
	}
	/* Rows 2 and 3 are on the first member only, and row 4 on none. */
	before = completed(0) + completed(1);
	command.lba = 8 * 5;
	good = good && nvmepeer_set_submit(&mine, &command, &token, LIMIT_NS) == NVMEPEER_E_RANGE &&
	       nvmepeer_set_read(&mine, 0, 8 * 5 + 7, 1) == NVMEPEER_E_RANGE &&
	       nvmepeer_set_read(&mine, 0, 8 * 8, 1) == NVMEPEER_E_RANGE &&
	       completed(0) + completed(1) == before;
	return good && !nvmepeer_set_read(&mine, 0, 8 * 6 + 7, 1);
}

/* A transfer across stripes and controllers, from the middle of a stripe to another. */
static bool set_batches(void)
{
	struct nvmepeer_set_batch batch = set_batch_of(0, set_statuses);
	struct nvmepeer_transfer transfer = { NVMEPEER_OP_READ, 0, 5, 100, NULL, 512 };
	struct nvmepeer_group group = nvmepeer_group_join(&queues[0]);
	struct nvmepeer_command piece = nvmepeer_set_batch_piece(&set, &transfer, 1);
	int status;
	bool good;

	memset(memory, 0x5a, BYTES);
	good = nvmepeer_set_batch_commands(&set, &transfer) == 14 && piece.lba == 8 &&
	       piece.blocks == 8 && piece.offset == 512 + 3 * 512 &&
	       nvmepeer_set_batch_piece(&set, &transfer, 13).blocks == 1;
	memset(set_statuses, 0x77, sizeof(set_statuses));
	good = good && !nvmepeer_warp_set_submit(&set, group, &transfer, &batch) &&
	       batch.commands.count == 14 && !nvmepeer_warp_set_wait(&set, group, &batch, LIMIT_NS) &&
	       has_blocks(512, 5, 100) && memory[511] == 0x5a && memory[512 + 100 * 512] == 0x5a &&
	       !batch.commands.count;
	for (int i = 0; i < 14; i++)
		good = good && !set_statuses[i];
	/* Each member can execute the commands: the second one of four blocks. */
	queues[EACH].max_transfer = 7 * 512;
	good = good && nvmepeer_set_batch_commands(&set, &transfer) == 26 &&
	       !nvmepeer_warp_set_submit(&set, group, &transfer, &batch) &&
	       !nvmepeer_warp_set_wait(&set, group, &batch, LIMIT_NS) && has_blocks(512, 5, 100);
	queues[EACH].max_transfer = queues[0].max_transfer;
	/* Without statuses, by polls, and one block of it outside of a controller. */
	batch.statuses = NULL;
	transfer.lba = 2 * 16384 - 3;
	transfer.blocks = 4;
	good = good && !nvmepeer_warp_set_submit(&set, group, &transfer, &batch);
	do
		status = nvmepeer_warp_set_poll(&set, group, &batch);
	while (status == NVMEPEER_AGAIN);
	good = good && status == 0x4080;
	transfer.blocks = 8 * SET_TOKENS + 8;
	return good && nvmepeer_warp_set_submit(&set, group, &transfer, &batch) == NVMEPEER_E_TOO_LARGE &&
	       !batch.commands.count;
}

/* Units of a set are read ahead, in the order of use. */
static bool set_prefetch(void)
{
	struct nvmepeer_set_batch batches[WINDOW] = { set_batch_of(0, NULL), set_batch_of(1, NULL),
						      set_batch_of(2, NULL) };
	struct nvmepeer_prefetch ahead = {
		.group = nvmepeer_group_join(&queues[0]), .first = 3, .units = 11, .unit_blocks = 20,
		.window = WINDOW, .set = &set, .set_batches = batches,
	};
	uint64_t offset;
	bool good = true;

	memset(memory, 0, BYTES);
	nvmepeer_prefetch_start(&ahead);
	good = ahead.sent == WINDOW;
	for (uint64_t unit = 0; unit < 11; unit++) {
		good = good && !nvmepeer_prefetch_next(&ahead, &offset, LIMIT_NS) &&
		       offset == unit % WINDOW * 20 * 512 && has_blocks(offset, 3 + 20 * unit, 20);
		nvmepeer_prefetch_release(&ahead);
	}
	return good && nvmepeer_prefetch_next(&ahead, &offset, LIMIT_NS) == NVMEPEER_E_TOKEN;
}

static void mute(int controller, bool muted)
{
	for (int i = 0; i < EACH; i++)
		__atomic_store_n(&benches[controller][i]->controller.mute, muted, __ATOMIC_SEQ_CST);
}

/* Each command of the transfer on controller @failed has the status, and the others 0. */
static bool only_fails(const struct nvmepeer_transfer *transfer, uint32_t failed, int status)
{
	uint32_t count = nvmepeer_set_batch_commands(&set, transfer), seen = 0;

	for (uint32_t i = 0; i < count; i++) {
		struct nvmepeer_command piece = nvmepeer_set_batch_piece(&set, transfer, i);
		bool fails = nvp_set_locate(&set, piece.lba).controller == failed;

		seen |= 1u << fails;
		if (set_statuses[i] != (fails ? status : 0) ||
		    (!fails && !has_blocks(piece.offset, piece.lba, piece.blocks)))
			return false;
	}
	return seen == 3;
}

/* While controller 1 is muted, polls complete the commands of the other one. */
static bool polls_pass(struct nvmepeer_set_batch *batch, const struct nvmepeer_transfer *transfer)
{
	struct nvmepeer_group group = nvmepeer_group_join(&queues[0]);
	uint64_t start = nvmepeer_now_ns();

	while (nvmepeer_now_ns() - start < 10 * LIMIT_NS) {
		if (nvmepeer_warp_set_poll(&set, group, batch) != NVMEPEER_AGAIN)
			return false;
		if (only_fails(transfer, 1, NVMEPEER_AGAIN))
			return true;
		sched_yield();
	}
	return false;
}

/*
 * One controller stops, is lost with commands in flight, and stays lost: the commands of
 * the other one succeed.
 */
static bool set_member_fails(void)
{
	struct nvmepeer_set_batch batch = set_batch_of(0, set_statuses);
	struct nvmepeer_transfer transfer = { NVMEPEER_OP_READ, 0, 5, 60, NULL, 512 };
	struct nvmepeer_group group = nvmepeer_group_join(&queues[0]);
	uint64_t start;
	bool good;

	mute(1, true);
	memset(memory, 0, BYTES);
	good = !nvmepeer_warp_set_submit(&set, group, &transfer, &batch) &&
	       set_statuses[0] == NVMEPEER_AGAIN && polls_pass(&batch, &transfer) &&
	       nvmepeer_warp_set_wait(&set, group, &batch, LIMIT_NS / 10) == NVMEPEER_E_TIMEOUT &&
	       only_fails(&transfer, 1, NVMEPEER_E_TIMEOUT);
	memset(memory, 0, BYTES);
	good = good && !nvmepeer_warp_set_submit(&set, group, &transfer, &batch);
	for (int i = 0; i < EACH; i++)
		nvp_mark_lost(&queues[EACH + i]);
	start = nvmepeer_now_ns();
	good = good && nvmepeer_warp_set_wait(&set, group, &batch, 20 * LIMIT_NS) == NVMEPEER_E_LOST &&
	       nvmepeer_now_ns() - start < 10 * LIMIT_NS && only_fails(&transfer, 1, NVMEPEER_E_LOST);
	memset(memory, 0, BYTES);
	good = good && nvmepeer_warp_set_submit(&set, group, &transfer, &batch) == NVMEPEER_E_LOST &&
	       nvmepeer_warp_set_wait(&set, group, &batch, LIMIT_NS) == NVMEPEER_E_LOST &&
	       only_fails(&transfer, 1, NVMEPEER_E_LOST);
	return good;
}

/* A full member costs one timeout, not one for each of its commands. */
static bool set_member_full(void)
{
	struct nvmepeer_set_batch batch = set_batch_of(0, set_statuses);
	struct nvmepeer_transfer transfer = { NVMEPEER_OP_READ, 0, 0, 8 * 48, NULL, 0 };
	struct nvmepeer_group group = nvmepeer_group_join(&queues[0]);
	uint64_t start = nvmepeer_now_ns();
	int status;

	mute(0, true);
	for (int i = 0; i < CONTROLLERS * EACH; i++)
		queues[i].timeout_ns = LIMIT_NS / 5;
	status = nvmepeer_warp_set_submit(&set, group, &transfer, &batch);
	mute(0, false);
	return (status == NVMEPEER_E_FULL || status == NVMEPEER_E_LOST) &&
	       nvmepeer_now_ns() - start < LIMIT_NS &&
	       nvmepeer_warp_set_wait(&set, group, &batch, LIMIT_NS) == status;
}

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
	ktap_check(set_commands(), "set: tokens of commands in flight carry their queue pair");
	ktap_check(set_members(), "set: members begin anywhere and have an end");
	ktap_check(set_batches(), "set: a transfer in flight across controllers");
	ktap_check(set_prefetch(), "set: units are read ahead");
	ktap_check(limits_hold(), "batch: one timeout for all its commands");
	__atomic_store_n(&benches[0][0]->controller.mute, false, __ATOMIC_SEQ_CST);
	ktap_check(set_member_fails(), "set: a member that stops or is lost fails its own commands only");
	ktap_check(set_member_full(), "set: a full member costs one timeout");
	__atomic_store_n(&stop, true, __ATOMIC_RELEASE);
	pthread_join(thread, NULL);
	return ktap_end();
}
