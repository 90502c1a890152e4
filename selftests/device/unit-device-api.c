// SPDX-License-Identifier: GPL-2.0-only
/*
 * unit-device-api.c: each call of the device library by one thread: sizes, PRP
 * lists and SGLs, limits and invalid arguments, timeouts, a lost queue pair.
 */
#include <pthread.h>
#include <sched.h>

#define NVMEPEER_GATHER_SLOTS 64
#include <nvmepeer_device.h>
#include "../../include/uapi/linux/nvme_peer.h"

#include "bench.h"
#include "../lib/ktap.h"

_Static_assert(NVP_STATUS_STATE == offsetof(struct nvme_peer_status, state), "status page");
_Static_assert(NVP_STATUS_LOSSES == offsetof(struct nvme_peer_status, losses),
	       "status page");
_Static_assert(NVP_STATE_LIVE == (int)NVME_PEER_QP_LIVE, "status page");

enum { BYTES = 4 << 20 };

struct rig {
	struct bench *bench;
	struct nvmepeer_buffer out, in, scattered;
	uint8_t *out_memory, *in_memory, *scattered_memory;
	uint64_t *pages;
	struct nvme_peer_status *status;
	pthread_t thread;
	bool stop;
};

static void *controller_main(void *argument)
{
	struct rig *rig = argument;

	while (!__atomic_load_n(&rig->stop, __ATOMIC_ACQUIRE))
		if (!controller_step(&rig->bench->controller))
			sched_yield();
	return NULL;
}

/* The pages of the scattered buffer are in memory in reverse order. */
static void rig_buffers(struct rig *rig)
{
	rig->out_memory = bench_memory(4096, BYTES + 4096);
	rig->in_memory = bench_memory(4096, BYTES + 4096);
	rig->scattered_memory = bench_memory(4096, BYTES);
	rig->pages = bench_memory(64, BYTES / 4096 * 8);
	for (uint32_t i = 0; i < BYTES / 4096; i++)
		rig->pages[i] = (uintptr_t)rig->scattered_memory + BYTES - 4096 * (i + 1);
	rig->out = (struct nvmepeer_buffer){ BYTES + 4096, (uintptr_t)rig->out_memory, 0 };
	rig->in = (struct nvmepeer_buffer){ BYTES + 4096, (uintptr_t)rig->in_memory, 0 };
	rig->scattered = (struct nvmepeer_buffer){ BYTES, 0, (uintptr_t)rig->pages };
}

static struct rig *rig_new(void)
{
	struct rig *rig = calloc(1, sizeof(*rig));

	if (!rig)
		abort();
	rig->bench = bench_new(16, 16);
	rig->bench->geometry.timeout_ns = 20000000000u;
	rig->status = bench_memory(4096, 4096);
	memset(rig->status, 0, 4096);
	rig->status->state = NVME_PEER_QP_LIVE;
	rig->bench->geometry.status = (uintptr_t)rig->status;
	rig_buffers(rig);
	if (nvmepeer_queue_init(&rig->bench->queue, &rig->bench->geometry))
		abort();
	pthread_create(&rig->thread, NULL, controller_main, rig);
	return rig;
}

static void rig_free(struct rig *rig)
{
	__atomic_store_n(&rig->stop, true, __ATOMIC_RELEASE);
	pthread_join(rig->thread, NULL);
	free(rig->out_memory);
	free(rig->in_memory);
	free(rig->scattered_memory);
	free(rig->pages);
	free(rig->status);
	bench_free(rig->bench);
	free(rig);
}

static void fill(uint8_t *memory, uint64_t bytes, uint32_t seed)
{
	for (uint64_t i = 0; i < bytes; i += 4) {
		seed = seed * 1664525u + 1013904223u;
		memcpy(memory + i, &seed, 4);
	}
}

/* Write and read back @bytes at @offset of the buffers. */
static bool round_trip(struct rig *rig, uint64_t offset, uint32_t bytes)
{
	const struct nvmepeer_queue *queue = &rig->bench->queue;

	fill(rig->out_memory + offset, bytes, bytes + (uint32_t)offset);
	memset(rig->in_memory, 0x5a, BYTES + 4096);
	return !nvmepeer_write(queue, &rig->out, offset, 3, bytes / 512) &&
	       !nvmepeer_read(queue, &rig->in, offset, 3, bytes / 512) &&
	       !memcmp(rig->in_memory + offset, rig->out_memory + offset, bytes) &&
	       rig->in_memory[offset + bytes] == 0x5a &&
	       !nvmepeer_compare(queue, &rig->out, offset, 3, bytes / 512);
}

static bool sizes(struct rig *rig)
{
	static const uint32_t bytes[] = { 512, 1024, 4096, 4608, 8192, 8704, 12288, 131072,
					  1 << 20, (2 << 20) + 512, (4 << 20) - 4096 };
	bool good = true;

	for (size_t i = 0; i < sizeof(bytes) / sizeof(bytes[0]); i++)
		for (uint64_t offset = 0; offset < 4096; offset += 1364)
			if (!round_trip(rig, offset, bytes[i])) {
				printf("# %u bytes at %llu\n", bytes[i],
				       (unsigned long long)offset);
				good = false;
			}
	return good;
}

static bool scattered(struct rig *rig)
{
	const struct nvmepeer_queue *queue = &rig->bench->queue;
	bool good;

	fill(rig->out_memory, 1 << 20, 77);
	good = !nvmepeer_write(queue, &rig->out, 0, 0, 2048) &&
	       !nvmepeer_read(queue, &rig->scattered, 1024, 0, 2048);
	for (uint64_t at = 0; good && at < 1 << 20; at += 512) {
		uint64_t in = at + 1024;

		good = !memcmp((uint8_t *)(uintptr_t)(rig->pages[in / 4096] + in % 4096),
			       rig->out_memory + at, 512);
	}
	return good;
}

static bool limits(struct rig *rig)
{
	struct nvmepeer_command discard = {
		NVMEPEER_OP_DATASET_MANAGEMENT, 1, 0, &rig->in, 0, 0,
	};
	struct nvmepeer_queue queue = rig->bench->queue;
	uint64_t served = rig->bench->controller.completed;
	bool good;

	good = nvmepeer_execute(&queue, &discard, NULL, 1000000000u) == NVMEPEER_E_OPCODE &&
	       nvmepeer_read(&queue, &rig->in, BYTES, 0, 16) == NVMEPEER_E_RANGE;
	good = good && nvmepeer_read(&queue, &rig->in, 2, 0, 1) == NVMEPEER_E_ALIGN &&
	       nvmepeer_read(&queue, &rig->in, 0, 0, 0) == NVMEPEER_E_TOO_LARGE &&
	       nvmepeer_read(&queue, &rig->in, 0, 0, 8193) == NVMEPEER_E_TOO_LARGE;
	queue.max_transfer = 8 * 512;
	good = good && nvmepeer_read(&queue, &rig->in, 0, 0, 9) == NVMEPEER_E_TOO_LARGE;
	queue.max_transfer = rig->bench->queue.max_transfer;
	queue.list_area = 0;
	good = good && nvmepeer_read(&queue, &rig->in, 512, 0, 16) == NVMEPEER_E_NO_LIST &&
	       !nvmepeer_read(&queue, &rig->in, 0, 0, 16);
	return good && rig->bench->controller.completed == served + 1 &&
	       nvmepeer_wait(&queue, (struct nvmepeer_token){ NVMEPEER_NO_CID, 0 }, NULL, 1) ==
	       NVMEPEER_E_TOKEN;
}

static bool statuses(struct rig *rig)
{
	const struct nvmepeer_queue *queue = &rig->bench->queue;
	struct nvmepeer_sqe bad = { { 0x99 } };
	struct nvmepeer_token token;

	fill(rig->out_memory, 512, 5);
	fill(rig->in_memory, 512, 6);
	return nvmepeer_read(queue, &rig->in, 0, 16384, 1) == 0x4080 &&
	       !nvmepeer_submit_raw(queue, &bad, &token, 1000000000u) &&
	       nvmepeer_wait(queue, token, NULL, 1000000000u) == 0x4001 &&
	       !nvmepeer_write(queue, &rig->out, 0, 9, 1) &&
	       nvmepeer_compare(queue, &rig->in, 0, 9, 1) == 0x285 && !nvmepeer_flush(queue) &&
	       !nvmepeer_write_zeroes(queue, 9, 1, NVMEPEER_CONTROL_DEALLOCATE) &&
	       !nvmepeer_read(queue, &rig->in, 0, 9, 1) && !rig->in_memory[0] &&
	       !rig->in_memory[511];
}

/* Directive and hints of a command, and of every command of a transfer. */
static bool directives(struct rig *rig)
{
	const uint64_t control = NVMEPEER_CONTROL_PLACEMENT(0x8003) | NVMEPEER_CONTROL_FORCE_UNIT_ACCESS |
				 NVMEPEER_CONTROL_HINTS(NVMEPEER_HINT_SEQUENTIAL | NVMEPEER_HINT_READ_ONCE);
	struct nvmepeer_command command = { NVMEPEER_OP_WRITE, 3, 20, &rig->out, 512, control };
	struct nvmepeer_transfer transfer = { NVMEPEER_OP_WRITE, control, 1, 300, &rig->out, 0 };
	struct nvmepeer_queue queue = rig->bench->queue;
	const uint32_t *last = rig->bench->controller.last;
	uint32_t dword13 = 0;
	bool good;

	good = !nvmepeer_execute(&queue, &command, &dword13, 1000000000u) && dword13 == 0x80030046 &&
	       last[12] == (2u | 2u << 20 | 1u << 30) && !last[14] && !last[15];
	/* Nothing of it stays. */
	command.control = 0;
	good = good && !nvmepeer_execute(&queue, &command, &dword13, 1000000000u) && !dword13 &&
	       last[12] == 2;
	queue.max_transfer = 65536;
	good = good && !nvmepeer_warp_transfer(&queue, &transfer) &&
	       last[12] == (43u | 2u << 20 | 1u << 30) && last[13] == 0x80030046;
	return good && NVMEPEER_CONTROL_DIRECTIVE(17, 0x10001) == ((uint64_t)1 << 48 | 1 << 20);
}

/* Is a block of the disk zero, and the next one not? */
static bool is_deallocated(const struct rig *rig, uint64_t last)
{
	const uint8_t *disk = rig->bench->controller.disk;

	return !disk[512 * last] && !disk[512 * last + 511] && disk[512 * (last + 1)] == 0xff;
}

/* Ranges anywhere in data memory, up to the limits. */
static bool deallocation(struct rig *rig)
{
	struct nvmepeer_queue queue = rig->bench->queue;
	uint8_t *disk = rig->bench->controller.disk;
	struct nvmepeer_range range = { 0, 2, 10 };
	uint64_t served, offset = 4096 * 3 - 1028;	/* ends in the next page */
	const uint32_t *last = rig->bench->controller.last;
	struct nvmepeer_token token;
	bool good;

	memset(disk, 0xff, 512 * 4096);
	for (uint32_t i = 0; i < 256; i++) {
		memcpy(rig->out_memory + offset + 16 * i, &range, sizeof(range));
		range.lba += 5;
	}
	good = !nvmepeer_deallocate(&queue, &rig->out, offset, 1) && is_deallocated(rig, 11) &&
	       disk[512 * 10] == 0 && disk[512 * 9] == 0xff && disk[512 * 15] == 0xff &&
	       last[10] == 0 && last[11] == 4 && last[1] == queue.nsid && !last[12] && !last[13];
	good = good && !nvmepeer_submit_deallocate(&queue, &rig->out, offset, 256, &token, 1000000000u) &&
	       !nvmepeer_wait(&queue, token, NULL, 1000000000u) && is_deallocated(rig, 16) &&
	       is_deallocated(rig, 10 + 5 * 255 + 1) && last[10] == 255;
	served = rig->bench->controller.completed;
	good = good && nvmepeer_deallocate(&queue, &rig->out, offset, 0) == NVMEPEER_E_TOO_LARGE &&
	       nvmepeer_deallocate(&queue, &rig->out, offset, 257) == NVMEPEER_E_TOO_LARGE &&
	       nvmepeer_deallocate(&queue, &rig->out, ~0ull - 31, 1) == NVMEPEER_E_RANGE &&
	       nvmepeer_deallocate(&queue, &rig->out, BYTES + 4096 - 16, 2) == NVMEPEER_E_RANGE &&
	       nvmepeer_deallocate(&queue, &rig->out, offset + 2, 1) == NVMEPEER_E_ALIGN;
	queue.max_transfer = 512;
	good = good && nvmepeer_deallocate(&queue, &rig->out, offset, 33) == NVMEPEER_E_TOO_LARGE &&
	       rig->bench->controller.completed == served &&
	       !nvmepeer_deallocate(&queue, &rig->out, offset, 32);
	range.lba = rig->bench->controller.disk_blocks - 1;
	memcpy(rig->out_memory, &range, sizeof(range));
	return good && nvmepeer_deallocate(&queue, &rig->out, 0, 1) == 0x4080;
}

static int geometry_says(const struct rig *rig, uint32_t entries, uint32_t cq_entries,
			 uint32_t cids, uint64_t sq_shift)
{
	struct nvmepeer_geometry geometry = rig->bench->geometry;
	struct nvmepeer_queue queue;

	geometry.sq_entries = entries;
	geometry.cq_entries = cq_entries;
	geometry.cids = cids;
	geometry.sq += sq_shift;
	geometry.list_area = 0;
	return nvmepeer_queue_open(&queue, &geometry);
}

static bool geometries(struct rig *rig)
{
	return geometry_says(rig, 1, 16, 0, 0) == NVMEPEER_E_ENTRIES &&
	       geometry_says(rig, 12, 16, 0, 0) == NVMEPEER_E_ENTRIES &&
	       geometry_says(rig, 16, 8, 0, 0) == NVMEPEER_E_ENTRIES &&
	       geometry_says(rig, 65536, 65536, 0, 0) == NVMEPEER_E_ENTRIES &&
	       geometry_says(rig, 64, 64, 32, 0) == NVMEPEER_E_CIDS &&
	       geometry_says(rig, 64, 64, 131072, 0) == NVMEPEER_E_CIDS &&
	       geometry_says(rig, 16, 16, 48, 0) == NVMEPEER_E_CIDS &&
	       geometry_says(rig, 16, 16, 0, 8) == NVMEPEER_E_ADDRESS &&
	       geometry_says(rig, 32768, 65536, 65536, 0) == NVMEPEER_OK;
}

/* Of all possible CIDs, 0xffff is never used. */
static bool last_cid(struct rig *rig)
{
	struct nvmepeer_geometry geometry = rig->bench->geometry;
	struct nvmepeer_queue queue;
	bool good;

	geometry.cids = 65536;
	geometry.list_area = 0;
	geometry.state = (uintptr_t)bench_memory(128, nvmepeer_state_bytes(&geometry));
	good = !nvmepeer_queue_init(&queue, &geometry) && queue.free_cids[2046] == 0xffffffff &&
	       queue.free_cids[2047] == 0x7fffffff;
	free((void *)(uintptr_t)geometry.state);
	return good;
}

/* A transfer above the limit of one command, split by warp and by block. */
static bool transfers(struct rig *rig)
{
	struct nvmepeer_queue queue = rig->bench->queue;
	struct nvmepeer_transfer transfer = { NVMEPEER_OP_WRITE, 0, 1, 4000, &rig->out, 512 };
	uint32_t shared;
	bool good;

	queue.max_transfer = 65536;
	fill(rig->out_memory, BYTES, 99);
	good = !nvmepeer_warp_transfer(&queue, &transfer);
	transfer.opcode = NVMEPEER_OP_READ;
	transfer.buffer = &rig->in;
	good = good && !nvmepeer_block_transfer(&queue, &transfer, &shared) &&
	       !memcmp(rig->in_memory + 512, rig->out_memory + 512, 4000 * 512);
	transfer.lba = 16384 - 100;
	return good && nvmepeer_block_transfer(&queue, &transfer, &shared) == 0x4080;
}

/*
 * Small ranges, many in the same unit and some across two: no more reads than
 * units.
 */
static bool gather(struct rig *rig)
{
	const struct nvmepeer_queue *queue = &rig->bench->queue;
	static struct nvmepeer_gather_table table;
	struct nvmepeer_staging staging = { &rig->in, (uintptr_t)rig->in_memory, 12, 0 };
	struct nvmepeer_gather_range pieces[300];
	uint8_t *got = bench_memory(64, 300 * 512);
	uint64_t served;
	bool good;

	fill(rig->out_memory, BYTES, 123);
	good = !nvmepeer_write(queue, &rig->out, 0, 0, 8000);
	for (uint32_t i = 0; i < 300; i++)
		pieces[i] = (struct nvmepeer_gather_range){
			(i * 7919ull % 5000) * 16, (uintptr_t)got + i * 512, 256 + i % 16 * 16, 0
		};
	served = rig->bench->controller.completed;
	good = good && !nvmepeer_block_gather(queue, &table, &staging, pieces, 300);
	for (uint32_t i = 0; good && i < 300; i++)
		good = !memcmp(got + i * 512, rig->out_memory + pieces[i].from, pieces[i].bytes);
	served = rig->bench->controller.completed - served;
	printf("# 300 ranges in 20 units: %llu reads\n", (unsigned long long)served);
	free(got);
	return good && served == 20;
}

/* The namespace ends inside a unit, and the last range is there. */
static bool gather_end(struct rig *rig)
{
	static struct nvmepeer_gather_table table;
	struct nvmepeer_staging staging = { &rig->in, (uintptr_t)rig->in_memory, 12, 0 };
	struct controller *controller = &rig->bench->controller;
	uint8_t *got = bench_memory(64, 512);
	struct nvmepeer_gather_range range = { 0, (uintptr_t)got, 512, 0 };
	uint64_t all = controller->disk_blocks;
	bool good;

	fill(rig->out_memory, 8 * 512, 321);
	good = !nvmepeer_write(&rig->bench->queue, &rig->out, 0, all - 8, 8);
	__atomic_store_n(&controller->disk_blocks, all - 5, __ATOMIC_SEQ_CST);
	range.from = (all - 6) * 512;
	good = good && nvmepeer_block_gather(&rig->bench->queue, &table, &staging, &range, 1) == 0x4080;
	staging.blocks = all - 5;
	good = good && !nvmepeer_block_gather(&rig->bench->queue, &table, &staging, &range, 1) &&
	       !memcmp(got, rig->out_memory + 2 * 512, 512);
	range.from = (all - 5) * 512;
	good = good && nvmepeer_block_gather(&rig->bench->queue, &table, &staging, &range, 1) ==
		       NVMEPEER_E_RANGE;
	__atomic_store_n(&controller->disk_blocks, all, __ATOMIC_SEQ_CST);
	free(got);
	return good;
}

/* Blocks of a set map to the right controller, each to a place of its own. */
static bool sets(struct rig *rig)
{
	struct nvmepeer_set set = { &rig->bench->queue, &rig->in, 3, 1, 3, NVMEPEER_SET_HASH,
				    NVMEPEER_LAYOUT, 0, NULL };
	static uint8_t seen[3][1024];
	struct nvmepeer_set one = { &rig->bench->queue, &rig->out, 1, 1, 3, 0, NVMEPEER_LAYOUT, 0, NULL };
	bool good = true;

	memset(seen, 0, sizeof(seen));
	for (uint64_t lba = 0; lba < 3 * 1024; lba++) {
		struct nvp_location place = nvp_set_locate(&set, lba);

		good = good && place.controller < 3 && place.lba < 1024 &&
		       !seen[place.controller][place.lba]++;
	}
	fill(rig->out_memory, 64 * 512, 3);
	good = good && !nvmepeer_set_write(&one, 0, 5, 64);
	memset(rig->in_memory, 0, 64 * 512);
	return good && !nvmepeer_read(&rig->bench->queue, &rig->in, 0, 5, 64) &&
	       !memcmp(rig->in_memory, rig->out_memory, 64 * 512);
}

/* The SGL descriptor replaces the PRP list. */
static bool sgl(struct rig *rig)
{
	struct nvmepeer_queue queue = rig->bench->queue;
	struct nvmepeer_command command = { NVMEPEER_OP_READ, 256, 7, &rig->in, 512, 0 };
	struct nvmepeer_sqe entry;

	queue.flags |= NVMEPEER_SGL;
	queue.list_area = 0;
	nvp_assign_cid(&queue, 5, &command, 131072,
		       nvp_encode(&queue, &command, 131072, &entry), &entry);
	return entry.dword[0] == (NVMEPEER_OP_READ | 1 << 14 | 5 << 16) &&
	       (entry.dword[6] | (uint64_t)entry.dword[7] << 32) == rig->in.dma + 512 &&
	       entry.dword[8] == 131072 && entry.dword[9] == 0 &&
	       nvp_max_blocks(&queue, &rig->in) == (4 << 20) / 512;
}

/*
 * Two pages of data that start inside a page touch three: without list memory
 * the command has an SGL, with list memory no list is written.
 */
static bool sgl_inside_page(struct rig *rig)
{
	static uint64_t lists[64];
	struct nvmepeer_queue queue = rig->bench->queue;
	struct nvmepeer_command command = { NVMEPEER_OP_READ, 16, 7, &rig->in, 0, 0 };
	struct nvmepeer_sqe entry;
	bool good = true;

	queue.flags |= NVMEPEER_SGL;
	queue.list_area = (uintptr_t)lists;
	queue.list_bytes = 8;
	queue.list_memory = (struct nvmepeer_buffer){ sizeof(lists), (uintptr_t)lists, 0 };
	for (uint32_t bytes = 512; bytes <= 3 * 4096; bytes += 512)
		for (command.offset = 0; command.offset < 4096; command.offset += 512) {
			bool list, three = command.offset + bytes > 2 * 4096;
			uint32_t checked;

			command.blocks = bytes / 512;
			list = nvp_encode(&queue, &command, bytes, &entry);
			nvp_assign_cid(&queue, 5, &command, bytes, list, &entry);
			if (nvp_command_check(&queue, &command, &checked) || checked != bytes ||
			    list || (entry.dword[0] >> 14 & 1) != three) {
				printf("# %u bytes at %llu: list %d, SGL %u\n", bytes,
				       (unsigned long long)command.offset, list,
				       entry.dword[0] >> 14 & 1);
				good = false;
			}
		}
	for (int i = 0; i < 64; i++)
		good = good && !lists[i];
	return good;
}

/*
 * Without completions the wait times out and the queue fills; late completions
 * are reclaimed.
 */
static bool timeouts(struct rig *rig)
{
	struct nvmepeer_queue queue = rig->bench->queue;
	struct nvmepeer_command flush = { NVMEPEER_OP_FLUSH, 0, 0, NULL, 0, 0 };
	struct nvmepeer_token token;
	int full = 0, timed = 0;

	__atomic_store_n(&rig->bench->controller.mute, true, __ATOMIC_SEQ_CST);
	for (int i = 0; i < 20; i++) {
		int status = nvmepeer_submit(&queue, &flush, &token, 2000000);

		if (!status && nvmepeer_wait(&queue, token, NULL, 2000000) == NVMEPEER_E_TIMEOUT)
			timed++;
		full += status == NVMEPEER_E_FULL;
	}
	if (timed != 15 || full != 5 || nvmepeer_abandoned(&queue) != 15)
		return false;
	__atomic_store_n(&rig->bench->controller.mute, false, __ATOMIC_SEQ_CST);
	for (int i = 0; i < 100; i++)
		if (nvmepeer_flush(&queue))
			return false;
	return nvmepeer_abandoned(&queue) == 0;
}

/*
 * A queue or a state that code with another layout has made: found before
 * anything is stored through it.
 */
static bool layouts(struct rig *rig)
{
	struct nvmepeer_queue queue = rig->bench->queue;
	struct nvmepeer_exclusive exclusive;
	struct nvmepeer_state before = *queue.state;
	bool good = !nvmepeer_check(&queue);

	queue.layout += 8u << 12;	/* a longer queue */
	good = good && nvmepeer_check(&queue) == NVMEPEER_E_LAYOUT;
	exclusive = nvmepeer_exclusive_open(&queue);
	nvmepeer_exclusive_close(&exclusive);
	good = good && exclusive.broken == NVMEPEER_E_LAYOUT;
	queue.layout = rig->bench->queue.layout;
	queue.state->layout -= 1u << 24;	/* an older state */
	/* Whatever lies there: it does not count as the mark of an exclusive owner. */
	queue.state->head |= NVP_HEAD_EXCLUSIVE;
	good = good && nvmepeer_queue_check_layout(&queue) == NVMEPEER_E_LAYOUT;
	exclusive = nvmepeer_exclusive_open(&queue);
	nvmepeer_exclusive_close(&exclusive);
	good = good && exclusive.broken == NVMEPEER_E_LAYOUT;
	queue.state->head &= NVP_HEAD_MASK;
	queue.state->layout = NVMEPEER_LAYOUT;
	return good && !memcmp(&before, queue.state, sizeof(before)) && !nvmepeer_check(&queue);
}

/*
 * A unit that timed out keeps its memory: the prefetch reads no more, whatever
 * is released.
 */
static bool prefetch_timeout(struct rig *rig)
{
	const struct nvmepeer_queue *queue = &rig->bench->queue;
	struct nvmepeer_token tokens[2][2];
	struct nvmepeer_batch batches[2] = { { tokens[0], 2, 0, 0 }, { tokens[1], 2, 0, 0 } };
	struct nvmepeer_prefetch ahead = {
		queue, nvmepeer_group_full(), &rig->in, batches, NULL, 0, 100, 8, 2, 0, 0, 0, NULL,
		NULL, NULL, 0,
	};
	uint64_t offset, units;
	bool good;

	__atomic_store_n(&rig->bench->controller.mute, true, __ATOMIC_SEQ_CST);
	nvmepeer_prefetch_start(&ahead);
	good = nvmepeer_prefetch_next(&ahead, &offset, 2000000) == NVMEPEER_E_TIMEOUT;
	nvmepeer_prefetch_release(&ahead);
	units = ahead.sent;
	__atomic_store_n(&rig->bench->controller.mute, false, __ATOMIC_SEQ_CST);
	good = good && !nvmepeer_prefetch_next(&ahead, &offset, 20000000000u) &&
	       nvmepeer_prefetch_next(&ahead, &offset, 1) == NVMEPEER_E_TOKEN;
	nvmepeer_prefetch_stop(&ahead, 20000000000u);
	while (nvmepeer_abandoned(queue))
		nvmepeer_flush(queue);
	return good && units == 2;
}

/*
 * A queue that stays full or is lost: the first unit that finds it so is the last, so
 * it costs one timeout, however long that takes on a busy machine.
 */
static bool prefetch_ends(bool lost)
{
	struct bench *bench = bench_new(2, 2);
	struct nvmepeer_token tokens[8];
	struct nvmepeer_batch batches[8];
	struct nvmepeer_buffer buffer = { 8 * 512, 0x10000000, 0 };
	struct nvmepeer_prefetch ahead = {
		&bench->queue, nvmepeer_group_self(), &buffer, batches, NULL, 0, 100, 1, 8, 0, 0, 0,
		NULL, NULL, NULL, 0,
	};
	int expected = lost ? NVMEPEER_E_LOST : NVMEPEER_E_FULL;
	uint64_t offset, sent;
	int status;

	for (uint32_t i = 0; i < 8; i++)
		batches[i] = (struct nvmepeer_batch){ &tokens[i], 1, 0, 0 };
	bench->geometry.timeout_ns = 1000000;
	if (nvmepeer_queue_init(&bench->queue, &bench->geometry))
		return false;
	if (lost)
		nvp_mark_lost(&bench->queue);
	nvmepeer_prefetch_start(&ahead);
	sent = ahead.sent;
	/* The controller completes nothing. */
	status = lost ? NVMEPEER_OK : nvmepeer_prefetch_next(&ahead, &offset, 0);
	nvmepeer_prefetch_release(&ahead);
	printf("# %llu units, then status %d\n", (unsigned long long)sent, status);
	status = nvmepeer_prefetch_next(&ahead, &offset, 0);
	bench_free(bench);
	return status == expected && sent == (lost ? 1 : 2) && ahead.sent == sent &&
	       nvmepeer_prefetch_next(&ahead, &offset, 0) == NVMEPEER_E_TOKEN;
}

/*
 * 64 commands on a queue with room for 15, which nothing completes: one timeout,
 * not one for each command without room.
 */
static bool batch_on_full_queue(void)
{
	struct bench *bench = bench_new(16, 16);
	struct nvmepeer_token tokens[64];
	struct nvmepeer_batch batch = { tokens, 64, 0, 0 };
	struct nvmepeer_buffer buffer = { 64 * 512, 0x10000000, 0 };
	struct nvmepeer_transfer transfer = { NVMEPEER_OP_READ, 0, 0, 64, &buffer, 0 };
	uint32_t sent = 0;
	uint64_t took;
	int status;

	bench->geometry.max_transfer = 512;
	bench->geometry.timeout_ns = 200000000;
	if (nvmepeer_queue_init(&bench->queue, &bench->geometry))
		return false;
	took = nvmepeer_now_ns();
	status = nvmepeer_warp_submit(&bench->queue, nvmepeer_group_full(), &transfer, &batch);
	took = nvmepeer_now_ns() - took;
	for (uint32_t i = 0; i < 64; i++)
		sent += tokens[i].cid != NVMEPEER_NO_CID;
	printf("# status %d, %u commands, %llu ms\n", status, sent,
	       (unsigned long long)took / 1000000);
	bench_free(bench);
	return status == NVMEPEER_E_FULL && batch.count == 64 && sent == 15 && took < 4000000000;
}

/*
 * Warp 0 of each of 132 processors, and all warps of one: no queue pair of a set
 * gets more than twice its share and one, for any number of queue pairs.
 */
static bool set_spreads(void)
{
	bool good = true;

	for (uint32_t each = 1; each <= 64; each++) {
		uint32_t by_processor[64] = { 0 }, by_warp[64] = { 0 };

		for (uint32_t i = 0; i < 132; i++)
			by_processor[nvp_set_index(i * 64, each)]++;
		for (uint32_t i = 0; i < 64; i++)
			by_warp[nvp_set_index(5 * 64 + i, each)]++;
		for (uint32_t i = 0; i < each; i++)
			good = good && by_processor[i] <= 2 * (132 / each) + 1 &&
			       by_warp[i] <= 2 * (64 / each) + 1;
	}
	return good;
}

/* Sizes of which Documentation/device-library.rst makes its tables. */
static bool memory_as_documented(void)
{
	struct nvmepeer_geometry geometry = { .sq_entries = 1024, .cq_entries = 1024 };

	return nvmepeer_cids(&geometry) == 4096 &&
	       nvmepeer_state_bytes(&geometry) == 384 + 4096 * 49 / 4 &&
	       sizeof(struct nvmepeer_queue) == 192 && sizeof(struct nvmepeer_memory) == 32 &&
	       sizeof(struct nvmepeer_list_item) == 32 && sizeof(struct nvmepeer_list_page) == 16 &&
	       sizeof(struct nvmepeer_list_tensor) == 32 && sizeof(struct nvmepeer_token) == 8;
}

/*
 * Whatever combines statuses returns the worst: one after which the controller
 * may still access data, before other errors, before statuses of the controller.
 */
static bool worst_wins(struct rig *rig)
{
	static const int order[] = { NVMEPEER_E_TIMEOUT, NVMEPEER_E_LOST, NVMEPEER_E_FULL,
				     NVMEPEER_E_RANGE, 0x4080, 2, NVMEPEER_OK };
	struct nvmepeer_group self = nvmepeer_group_self();
	bool good = true;

	(void)rig;
	for (uint32_t i = 0; i < sizeof(order) / sizeof(order[0]); i++) {
		for (uint32_t j = 0; j < sizeof(order) / sizeof(order[0]); j++) {
			int worse = order[i < j ? i : j];
			struct nvmepeer_batch batches[2] = { { NULL, 0, 0, order[i] },
							     { NULL, 0, 0, order[j] } };
			struct nvmepeer_prefetch ahead = {
				&rig->bench->queue, self, &rig->in, batches, NULL, 0, 2, 8, 2, 2, 0, 0,
				NULL, NULL, NULL, 0,
			};
			struct nvmepeer_batch batch = { NULL, 0, 0, order[i] };

			good = good && nvp_batch_finish(self, &batch, order[j]) == worse;
			batch.status = order[i];
			good = good && nvp_block_status(&batch, order[j]) == worse &&
			       nvmepeer_prefetch_stop(&ahead, 1000) == worse;
		}
	}
	return good;
}

/* A command that is refused, before one that cannot be read; and in a poll. */
static bool worst_of_transfer(struct rig *rig)
{
	const struct nvmepeer_queue *queue = &rig->bench->queue;
	uint64_t outside = rig->bench->controller.disk_blocks, most;
	struct nvmepeer_command flush = { NVMEPEER_OP_FLUSH, 0, 0, NULL, 0, 0 };
	struct nvmepeer_buffer buffer = rig->in;
	struct nvmepeer_transfer transfer = { NVMEPEER_OP_READ, 0, outside, 0, &buffer, 0 };
	struct nvmepeer_token tokens[4] = { { 7, 12345 } };
	struct nvmepeer_batch batch = { tokens, 3, 3, 0x4080 };
	int status;
	bool good;

	/* An invalid token, a command that has completed, one that has not. */
	good = !nvmepeer_submit(queue, &flush, &tokens[1], 1000000000u) && !nvmepeer_flush(queue);
	__atomic_store_n(&rig->bench->controller.mute, true, __ATOMIC_SEQ_CST);
	good = good && !nvmepeer_submit(queue, &flush, &tokens[2], 1000000000u) &&
	       nvmepeer_warp_poll(queue, nvmepeer_group_self(), &batch) == NVMEPEER_AGAIN &&
	       batch.status == NVMEPEER_E_TOKEN;
	__atomic_store_n(&rig->bench->controller.mute, false, __ATOMIC_SEQ_CST);
	good = nvmepeer_warp_wait(queue, nvmepeer_group_self(), &batch, 20000000000u) ==
	       NVMEPEER_E_TOKEN && good;
	most = nvp_max_blocks(queue, &buffer);
	transfer.blocks = 2 * most;
	buffer.length = most << queue->lba_shift;
	status = nvmepeer_warp_transfer(queue, &transfer);
	good = good && status == NVMEPEER_E_RANGE;
	/* Of the submission of a batch: one command is too large for the buffer. */
	batch = (struct nvmepeer_batch){ tokens, 4, 0, 0 };
	good = good && nvmepeer_warp_submit(queue, nvmepeer_group_self(), &transfer, &batch) ==
		       NVMEPEER_E_RANGE &&
	       nvmepeer_warp_wait(queue, nvmepeer_group_self(), &batch, 20000000000u) ==
		       NVMEPEER_E_RANGE;
	return good;
}

/*
 * After a read that timed out the gather reads no more units: their slots may
 * be the one that the controller still writes.
 */
static bool gather_timeout(void)
{
	static struct nvmepeer_gather_table table;
	struct bench *bench = bench_new(1024, 1024);
	uint8_t *memory = bench_memory(4096, NVMEPEER_GATHER_SLOTS * 512), *got = bench_memory(16, 16);
	struct nvmepeer_buffer buffer = { NVMEPEER_GATHER_SLOTS * 512, (uintptr_t)memory, 0 };
	struct nvmepeer_staging staging = { &buffer, (uintptr_t)memory, 9, 0 };
	struct nvmepeer_gather_range ranges[2 * NVMEPEER_GATHER_SLOTS];
	uint64_t commands;
	int status;

	bench->geometry.timeout_ns = 1000;
	if (nvmepeer_queue_init(&bench->queue, &bench->geometry))
		return false;
	for (uint32_t i = 0; i < 2 * NVMEPEER_GATHER_SLOTS; i++)
		ranges[i] = (struct nvmepeer_gather_range){ i * 512ull, (uintptr_t)got, 16, 0 };
	/* The controller completes nothing. */
	status = nvmepeer_block_gather(&bench->queue, &table, &staging, ranges,
				       2 * NVMEPEER_GATHER_SLOTS);
	commands = bench->queue.state->tail >> NVP_TICKET_SHIFT;
	printf("# status %d after %llu reads\n", status, (unsigned long long)commands);
	free(memory);
	free(got);
	bench_free(bench);
	return status == NVMEPEER_E_TIMEOUT && commands <= NVMEPEER_GATHER_SLOTS / 4;
}

/*
 * The kernel reset the controller: all calls report the loss; after a re-arm
 * they succeed.
 */
static bool lost(struct rig *rig)
{
	const struct nvmepeer_queue *queue = &rig->bench->queue;
	struct nvmepeer_command flush = { NVMEPEER_OP_FLUSH, 0, 0, NULL, 0, 0 };
	struct nvmepeer_token token;
	bool good;

	__atomic_store_n(&rig->bench->controller.mute, true, __ATOMIC_SEQ_CST);
	good = !nvmepeer_submit(queue, &flush, &token, 1000000000u);
	__atomic_store_n(&rig->status->losses, 1, __ATOMIC_SEQ_CST);
	return good && nvmepeer_wait(queue, token, NULL, 20000000000u) == NVMEPEER_E_LOST &&
	       nvmepeer_check(queue) == NVMEPEER_E_LOST;
}

int main(void)
{
	struct rig *rig = rig_new();

	ktap_start();
	ktap_check(sizes(rig), "sizes and offsets, PRP lists of one and more pages");
	ktap_check(scattered(rig), "buffer of scattered pages");
	ktap_check(limits(rig), "limits: refused before submission");
	ktap_check(statuses(rig), "statuses of the controller");
	ktap_check(directives(rig), "directive and hints of commands and transfers");
	ktap_check(deallocation(rig), "deallocate: ranges up to the limits");
	ktap_check(geometries(rig), "invalid geometries, each with its own error");
	ktap_check(last_cid(rig), "cid 0xffff is not used");
	ktap_check(transfers(rig), "long transfers by warp and by block");
	ktap_check(gather(rig), "gather: ranges in one unit share a read");
	ktap_check(gather_end(rig), "gather: the last, partial unit of a namespace");
	ktap_check(sets(rig), "set: striping by hash is a permutation");
	ktap_check(set_spreads(), "set: the same warp of all processors uses all queue pairs");
	ktap_check(memory_as_documented(), "memory: of a queue pair and of lists as documented");
	ktap_check(sgl(rig), "SGL descriptor");
	ktap_check(sgl_inside_page(rig), "SGL where two pages of data start inside a page");
	ktap_check(timeouts(rig), "timeouts, full queue, late completions");
	ktap_check(layouts(rig), "layout: queues and states of another version are refused");
	ktap_check(prefetch_timeout(rig), "prefetch: memory of a unit that timed out is not reused");
	ktap_check(gather_timeout(), "gather: memory of a read that timed out is not reused");
	ktap_check(batch_on_full_queue(), "batch: a full queue costs one timeout");
	ktap_check(prefetch_ends(false), "prefetch: ends if the queue stays full");
	ktap_check(prefetch_ends(true), "prefetch: ends if the queue pair is lost");
	ktap_check(worst_wins(rig), "the worst status: of a batch, a block, a prefetch");
	ktap_check(worst_of_transfer(rig), "the worst status: of a transfer, a poll, a submission");
	ktap_check(!rig->bench->controller.errors, "the controller detected no error");
	ktap_check(lost(rig), "changed losses: queue pair lost");
	rig_free(rig);
	return ktap_end();
}
