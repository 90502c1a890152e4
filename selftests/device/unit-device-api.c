// SPDX-License-Identifier: GPL-2.0-only
/*
 * unit-device-api.c: each call of the device library by one thread: sizes,
 * PRP lists and SGLs, limits and bad input, timeouts, a lost queue pair.
 */
#include <pthread.h>
#include <sched.h>

#define NVMEPEER_GATHER_SLOTS 64
#include <nvmepeer_device.h>
#include "../../include/uapi/linux/nvme_peer.h"

#include "bench.h"
#include "ktap.h"

_Static_assert(NVMEPEER_STATUS_STATE == offsetof(struct nvme_peer_status, state), "status page");
_Static_assert(NVMEPEER_STATUS_GENERATION == offsetof(struct nvme_peer_status, generation),
	       "status page");
_Static_assert(NVMEPEER_STATE_LIVE == (int)NVME_PEER_QP_LIVE, "status page");

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

/* The scattered buffer's pages lie in memory in reverse order. */
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

/* Writes and reads back @bytes that start @offset into the buffers. */
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
	struct nvmepeer_queue queue = rig->bench->queue;
	uint64_t served = rig->bench->controller.completed;
	bool good;

	good = nvmepeer_read(&queue, &rig->in, BYTES, 0, 16) == NVMEPEER_E_RANGE &&
	       nvmepeer_read(&queue, &rig->in, 2, 0, 1) == NVMEPEER_E_ALIGN &&
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
	       geometry_says(rig, 16, 16, 48, 0) == NVMEPEER_E_CIDS &&
	       geometry_says(rig, 16, 16, 0, 8) == NVMEPEER_E_ADDRESS &&
	       geometry_says(rig, 32768, 65536, 65536, 0) == NVMEPEER_OK;
}

/* Of all cids that there can be, 0xffff is nobody's. */
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

/* A transfer above the limit of one command, cut by warp and by block. */
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

/* Small pieces, many in the same unit and some across two: no more reads than units. */
static bool gather(struct rig *rig)
{
	const struct nvmepeer_queue *queue = &rig->bench->queue;
	static struct nvmepeer_gather_table table;
	struct nvmepeer_staging staging = { &rig->in, (uintptr_t)rig->in_memory, 12 };
	struct nvmepeer_piece pieces[300];
	uint8_t *got = bench_memory(64, 300 * 512);
	uint64_t served;
	bool good;

	fill(rig->out_memory, BYTES, 123);
	good = !nvmepeer_write(queue, &rig->out, 0, 0, 8000);
	for (uint32_t i = 0; i < 300; i++)
		pieces[i] = (struct nvmepeer_piece){
			(i * 7919ull % 5000) * 16, (uintptr_t)got + i * 512, 256 + i % 16 * 16, 0
		};
	served = rig->bench->controller.completed;
	good = good && !nvmepeer_block_gather(queue, &table, &staging, pieces, 300);
	for (uint32_t i = 0; good && i < 300; i++)
		good = !memcmp(got + i * 512, rig->out_memory + pieces[i].from, pieces[i].bytes);
	served = rig->bench->controller.completed - served;
	printf("# 300 pieces in 20 units: %llu reads\n", (unsigned long long)served);
	free(got);
	return good && served == 20;
}

/* Blocks of a set go where they should, and nowhere twice. */
static bool sets(struct rig *rig)
{
	struct nvmepeer_set set = { &rig->bench->queue, &rig->in, 3, 1, 3, NVMEPEER_SET_HASH };
	static uint8_t seen[3][1024];
	struct nvmepeer_set one = { &rig->bench->queue, &rig->out, 1, 1, 3, 0 };
	bool good = true;

	memset(seen, 0, sizeof(seen));
	for (uint64_t lba = 0; lba < 3 * 1024; lba++) {
		struct nvmepeer_place place = nvmepeer_set_place(&set, lba);

		good = good && place.controller < 3 && place.lba < 1024 &&
		       !seen[place.controller][place.lba]++;
	}
	fill(rig->out_memory, 64 * 512, 3);
	good = good && !nvmepeer_set_write(&one, 0, 5, 64);
	memset(rig->in_memory, 0, 64 * 512);
	return good && !nvmepeer_read(&rig->bench->queue, &rig->in, 0, 5, 64) &&
	       !memcmp(rig->in_memory, rig->out_memory, 64 * 512);
}

/* The SGL descriptor replaces the list. */
static bool sgl(struct rig *rig)
{
	struct nvmepeer_queue queue = rig->bench->queue;
	struct nvmepeer_command command = { NVMEPEER_OP_READ, 256, 7, &rig->in, 512, 0 };
	struct nvmepeer_sqe entry;

	queue.flags |= NVMEPEER_SGL;
	queue.list_area = 0;
	nvmepeer_name(&queue, 5, &command, 131072,
		      nvmepeer_encode(&queue, &command, 131072, &entry), &entry);
	return entry.dword[0] == (NVMEPEER_OP_READ | 1 << 14 | 5 << 16) &&
	       (entry.dword[6] | (uint64_t)entry.dword[7] << 32) == rig->in.dma + 512 &&
	       entry.dword[8] == 131072 && entry.dword[9] == 0 &&
	       nvmepeer_most_blocks(&queue, &rig->in) == (4 << 20) / 512;
}

/* Nobody answers: the wait ends, the queue fills, and the late answers are swept up. */
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

/* The kernel reset the controller: everybody is told, then it goes on. */
static bool lost(struct rig *rig)
{
	const struct nvmepeer_queue *queue = &rig->bench->queue;
	struct nvmepeer_command flush = { NVMEPEER_OP_FLUSH, 0, 0, NULL, 0, 0 };
	struct nvmepeer_token token;
	bool good;

	__atomic_store_n(&rig->bench->controller.mute, true, __ATOMIC_SEQ_CST);
	good = !nvmepeer_submit(queue, &flush, &token, 1000000000u);
	__atomic_store_n(&rig->status->generation, 1, __ATOMIC_SEQ_CST);
	return good && nvmepeer_wait(queue, token, NULL, 20000000000u) == NVMEPEER_E_LOST &&
	       nvmepeer_check(queue) == NVMEPEER_E_LOST;
}

int main(void)
{
	struct rig *rig = rig_new();

	ktap_start();
	ktap_check(sizes(rig), "sizes and offsets, PRP lists of one and more pages");
	ktap_check(scattered(rig), "buffer in pages, by its table");
	ktap_check(limits(rig), "limits: refused before anything is sent");
	ktap_check(statuses(rig), "statuses of the controller");
	ktap_check(geometries(rig), "bad geometries, each with its own error");
	ktap_check(last_cid(rig), "cid 0xffff is not used");
	ktap_check(transfers(rig), "long transfers by warp and by block");
	ktap_check(gather(rig), "gather: pieces of one unit share a read");
	ktap_check(sets(rig), "set: striping by hash is a permutation");
	ktap_check(sgl(rig), "SGL descriptor");
	ktap_check(timeouts(rig), "timeouts, full queue, late completions");
	ktap_check(!rig->bench->controller.errors, "the controller saw no fault");
	ktap_check(lost(rig), "generation moved: lost");
	rig_free(rig);
	return ktap_end();
}
