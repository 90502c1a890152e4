// SPDX-License-Identifier: MIT OR GPL-2.0
/*
 * Unit tests of served queue pairs, on files in memory: the device library's calls reach
 * them, malformed and changing entries end with a status and touch nothing else, and a
 * queue pair that was lost works again after a re-arm.
 */
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <unistd.h>

#include "../serve.h"

#include "kselftest_harness.h"

enum { ENTRIES = 32, BLOCK = 512, BLOCKS = 8192, PAGE = 4096 };
/* Behind the namespace the file has blocks that no command may reach. */
enum { BEYOND = 64, FILE_BYTES = (BLOCKS + BEYOND) * BLOCK };
/* Before and behind the buffer is memory that no command may reach. */
enum { DATA_BYTES = 2 << 20, GUARD = 4 * PAGE, MEMORY_BYTES = DATA_BYTES + 2 * GUARD };
/* Offsets in the buffer: a list of pages, scratch pages, and what the lists need. */
enum { SCRATCH = 1 << 20, LISTS = (1 << 20) + (256 << 10), LIST_BYTES = 2048, UNTOUCHED = 0xee };

FIXTURE(serve)
{
	struct nvmepeer_serve *serve;
	struct nvmepeer_ns_info ns;
	struct nvmepeer_queue queue;
	struct nvmepeer_buffer buffer;
	pthread_t thread;
	uint8_t *memory;
	uint8_t *data;
	void *state;
	int file;
	int result;
	bool runs;
};

/* Each block has its number in each word, and a pass. */
static void describe(uint8_t *data, uint64_t lba, uint32_t blocks, uint32_t pass)
{
	for (uint64_t i = 0; i < (uint64_t)blocks * BLOCK / 8; i++) {
		uint64_t word = (lba + i * 8 / BLOCK) << 32 | pass << 8 | i % (BLOCK / 8);

		memcpy(data + 8 * i, &word, 8);
	}
}

static bool is_described(const uint8_t *data, uint64_t lba, uint32_t blocks, uint32_t pass)
{
	for (uint64_t i = 0; i < (uint64_t)blocks * BLOCK / 8; i++) {
		uint64_t word = (lba + i * 8 / BLOCK) << 32 | pass << 8 | i % (BLOCK / 8);

		if (memcmp(data + 8 * i, &word, 8))
			return false;
	}
	return true;
}

static void *run(void *argument)
{
	FIXTURE_DATA(serve) *self = argument;

	self->result = nvmepeer_serve_run(self->serve);
	return NULL;
}

static void start(FIXTURE_DATA(serve) *self)
{
	pthread_create(&self->thread, NULL, run, self);
	self->runs = true;
}

/* The result of nvmepeer_serve_run(). */
static int join(FIXTURE_DATA(serve) *self)
{
	pthread_join(self->thread, NULL);
	self->runs = false;
	return self->result;
}

static int stop(FIXTURE_DATA(serve) *self)
{
	nvmepeer_serve_stop(self->serve);
	return join(self);
}

static void ring(FIXTURE_DATA(serve) *self, uint32_t offset, uint32_t value)
{
	uint8_t *doorbells = serve_memory(self->serve, NVME_PEER_EXPORT_DOORBELL);

	__atomic_store_n((uint32_t *)(doorbells + offset), value, __ATOMIC_RELEASE);
}

static int make_file(void)
{
	int file = memfd_create("namespace", MFD_CLOEXEC);
	static uint8_t content[BLOCKS * BLOCK];

	describe(content, 0, BLOCKS, 0);
	if (pwrite(file, content, sizeof(content), 0) < 0)
		abort();
	return file;
}

static struct nvmepeer_geometry geometry_of(FIXTURE_DATA(serve) *self)
{
	struct nvmepeer_geometry geometry = {
		.state = (uintptr_t)self->state,
		.timeout_ns = 5000000000u,
		.list_area = (uintptr_t)self->data + LISTS,
		.list_bytes = LIST_BYTES,
		.list_memory = { .length = DATA_BYTES - LISTS, .dma = self->buffer.dma + LISTS },
	};

	if (nvmepeer_serve_geometry(self->serve, &self->ns, NVMEPEER_VIEW_CPU, &geometry,
				    sizeof(geometry)))
		abort();
	return geometry;
}

FIXTURE_SETUP(serve)
{
	struct nvmepeer_serve_options options = {
		.size = sizeof(options),
		.entries = ENTRIES,
		.depth = 8,
	};
	struct nvmepeer_geometry geometry;

	self->state = aligned_alloc(128, 65536);
	self->memory = mmap(NULL, MEMORY_BYTES, PROT_READ | PROT_WRITE,
			    MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	memset(self->memory, UNTOUCHED, MEMORY_BYTES);
	self->data = self->memory + GUARD;
	self->file = make_file();
	ASSERT_EQ(0, nvmepeer_serve_create(&options, &self->serve));
	ASSERT_EQ(0, nvmepeer_serve_add_fd(self->serve, self->file, 0, &self->ns,
					   sizeof(self->ns)));
	ASSERT_EQ(1, self->ns.nsid);
	ASSERT_EQ(BLOCK, self->ns.block_size);
	ASSERT_EQ(BLOCKS, self->ns.blocks);
	/* Longer only now. */
	ASSERT_EQ(0, ftruncate(self->file, FILE_BYTES));
	ASSERT_EQ(0, nvmepeer_serve_add_buffer(self->serve, self->data, DATA_BYTES, &self->buffer));
	geometry = geometry_of(self);
	ASSERT_GE(65536, nvmepeer_state_bytes(&geometry));
	ASSERT_EQ(0, nvmepeer_queue_init(&self->queue, &geometry));
	start(self);
}

FIXTURE_TEARDOWN(serve)
{
	uint8_t beyond[BEYOND * BLOCK];

	if (self->runs)
		EXPECT_EQ(0, stop(self));
	nvmepeer_serve_destroy(self->serve);
	for (int i = 0; i < GUARD; i++) {
		ASSERT_EQ(UNTOUCHED, self->memory[i]);
		ASSERT_EQ(UNTOUCHED, self->memory[MEMORY_BYTES - 1 - i]);
	}
	EXPECT_EQ((ssize_t)sizeof(beyond),
		  pread(self->file, beyond, sizeof(beyond), (off_t)BLOCKS * BLOCK));
	for (size_t i = 0; i < sizeof(beyond); i++)
		ASSERT_EQ(0, beyond[i]);
	close(self->file);
	munmap(self->memory, MEMORY_BYTES);
	free(self->state);
}

/* ---- The device library's calls ------------------------------------------- */

TEST_F(serve, transfers_of_every_length)
{
	static const uint32_t lengths[] = { 1, 7, 8, 9, 16, 17, 64, 2048 };

	for (uint32_t i = 0; i < ARRAY_SIZE(lengths); i++) {
		uint64_t lba = 1000 + i, offset = (SCRATCH - lengths[i] * BLOCK) & ~0xfffu;

		/* Not at a page, where that leaves two pages or one segment. */
		offset += lengths[i] < 2048 ? 1024 : 0;
		if (offset + lengths[i] * BLOCK > SCRATCH)
			offset -= PAGE;
		ASSERT_EQ(0, nvmepeer_read(&self->queue, &self->buffer, offset, lba, lengths[i]));
		ASSERT_TRUE(is_described(self->data + offset, lba, lengths[i], 0));
		describe(self->data + offset, lba, lengths[i], i + 1);
		ASSERT_EQ(0, nvmepeer_write(&self->queue, &self->buffer, offset, lba, lengths[i]));
		memset(self->data + offset, UNTOUCHED, lengths[i] * BLOCK);
		ASSERT_EQ(0, nvmepeer_read(&self->queue, &self->buffer, offset, lba, lengths[i]));
		ASSERT_TRUE(is_described(self->data + offset, lba, lengths[i], i + 1));
		describe(self->data + offset, lba, lengths[i], 0);
		ASSERT_EQ(0, nvmepeer_write(&self->queue, &self->buffer, offset, lba, lengths[i]));
	}
}

/* The entry of io_uring that was submitted last. */
static const struct io_uring_sqe *last_submitted(FIXTURE_DATA(serve) *self)
{
	const struct io_uring_sq *sq = &self->serve->ring.sq;

	return &sq->sqes[(sq->sqe_tail - 1) & sq->ring_mask];
}

TEST_F(serve, other_commands)
{
	struct nvmepeer_command durable = {
		.opcode = NVMEPEER_OP_WRITE, .blocks = 8, .lba = 16, .buffer = &self->buffer,
		.control = NVMEPEER_CONTROL_FORCE_UNIT_ACCESS,
	};
	struct nvmepeer_command zeroes = {
		.opcode = NVMEPEER_OP_WRITE_ZEROES, .blocks = 8, .lba = 24,
	};

	describe(self->data, 16, 8, 9);
	EXPECT_EQ(0, nvmepeer_execute(&self->queue, &durable, NULL, 1000000000));
	ASSERT_EQ(0, stop(self));
	EXPECT_EQ(RWF_DSYNC, last_submitted(self)->rw_flags);
	start(self);
	EXPECT_EQ(0, nvmepeer_flush(&self->queue));
	EXPECT_EQ(0, nvmepeer_execute(&self->queue, &zeroes, NULL, 1000000000));
	EXPECT_EQ(0, nvmepeer_read(&self->queue, &self->buffer, 0, 16, 24));
	EXPECT_TRUE(is_described(self->data, 16, 8, 9));
	for (int i = 8 * BLOCK; i < 16 * BLOCK; i++)
		ASSERT_EQ(0, self->data[i]);
	EXPECT_TRUE(is_described(self->data + 16 * BLOCK, 32, 8, 0));
	EXPECT_EQ(NVME_SC_INVALID_OPCODE,
		  nvmepeer_deallocate(&self->queue, &self->buffer, 0, 1) & NVME_STATUS_MASK);
}

/* One command whose data is in pages of any order: a PRP list. */
TEST_F(serve, scattered_pages)
{
	static const uint32_t numbers[] = { 9, 2, 17, 3, 4, 30, 1, 0 };
	struct nvmepeer_page_list list = {
		.buffer = &self->buffer, .numbers = numbers, .count = 8, .page_shift = 12,
	};
	struct nvmepeer_buffer scattered;
	uint64_t table[8];

	ASSERT_EQ(0, nvmepeer_scatter(&self->queue, &list, table, &scattered));
	ASSERT_EQ(0, nvmepeer_read(&self->queue, &scattered, 0, 64, 64));
	for (uint32_t i = 0; i < 8; i++)
		EXPECT_TRUE(is_described(self->data + numbers[i] * PAGE, 64 + 8 * i, 8, 0));
}

/* Items with padding: an SGL segment in a scratch page. */
TEST_F(serve, list_with_padding)
{
	struct nvmepeer_memory memory = {
		.buffer = self->buffer, .address = (uintptr_t)self->data,
	};
	struct nvmepeer_scratch scratch = { .memory = &memory, .offset = SCRATCH, .slots = 1 };
	struct nvmepeer_list_item items[] = {
		{ .lba = 80, .offset = 0, .bytes = 3000 },
		{ .lba = 400, .offset = 8192, .bytes = 6004 },
	};
	struct nvmepeer_list list = {
		.memories = &memory, .items = items, .scratch = &scratch, .memory_count = 1,
		.count = 2, .opcode = NVMEPEER_OP_READ,
	};
	uint8_t expected[12 * BLOCK];

	memset(self->data, UNTOUCHED, SCRATCH);
	ASSERT_EQ(0, nvmepeer_list_transfer(&self->queue, &list));
	describe(expected, 80, 6, 0);
	EXPECT_EQ(0, memcmp(expected, self->data, 3000));
	EXPECT_EQ(UNTOUCHED, self->data[3000]);
	describe(expected, 400, 12, 0);
	EXPECT_EQ(0, memcmp(expected, self->data + 8192, 6004));
	EXPECT_EQ(UNTOUCHED, self->data[8192 + 6004]);
}

struct worker {
	FIXTURE_DATA(serve) *self;
	uint32_t number;
	int bad;
};

/* Writes and reads its own blocks. */
static void *work(void *argument)
{
	struct worker *worker = argument;
	FIXTURE_DATA(serve) *self = worker->self;
	uint64_t offset = worker->number * 64u * BLOCK, lba = worker->number * 64u;
	uint32_t seed = worker->number;

	for (uint32_t pass = 1; pass < 400 && !worker->bad; pass++) {
		uint32_t blocks = 1 + (seed = seed * 1664525u + 1013904223u) / 65536 % 64;

		describe(self->data + offset, lba, blocks, pass);
		worker->bad |= nvmepeer_write(&self->queue, &self->buffer, offset, lba, blocks);
		memset(self->data + offset, 0, blocks * BLOCK);
		worker->bad |= nvmepeer_read(&self->queue, &self->buffer, offset, lba, blocks);
		worker->bad |= !is_described(self->data + offset, lba, blocks, pass);
	}
	return NULL;
}

/* More threads than the depth. */
TEST_F(serve, several_threads)
{
	struct worker workers[12];
	pthread_t threads[12];

	for (uint32_t i = 0; i < 12; i++) {
		workers[i] = (struct worker){ .self = self, .number = i };
		pthread_create(&threads[i], NULL, work, &workers[i]);
	}
	for (uint32_t i = 0; i < 12; i++) {
		pthread_join(threads[i], NULL);
		EXPECT_EQ(0, workers[i].bad);
	}
}

TEST_F(serve, smallest_ring)
{
	struct nvmepeer_serve_options options = {
		.size = sizeof(options), .entries = 2, .depth = 1, .max_transfer = PAGE,
	};
	struct nvmepeer_geometry geometry;

	ASSERT_EQ(0, stop(self));
	nvmepeer_serve_destroy(self->serve);
	ASSERT_EQ(0, nvmepeer_serve_create(&options, &self->serve));
	ASSERT_EQ(0, nvmepeer_serve_add_fd(self->serve, self->file, PAGE, &self->ns,
					   sizeof(self->ns)));
	EXPECT_EQ(PAGE, self->ns.block_size);
	self->ns.blocks = BLOCKS / 8;
	ASSERT_EQ(0, nvmepeer_serve_add_buffer(self->serve, self->data, DATA_BYTES, &self->buffer));
	geometry = geometry_of(self);
	ASSERT_EQ(0, nvmepeer_queue_init(&self->queue, &geometry));
	start(self);
	for (uint32_t i = 0; i < 100; i++) {
		ASSERT_EQ(0, nvmepeer_read(&self->queue, &self->buffer, 0, i, 1));
		ASSERT_TRUE(is_described(self->data, 8 * i, 8, 0));
	}
	EXPECT_EQ(NVMEPEER_E_TOO_LARGE, nvmepeer_read(&self->queue, &self->buffer, 0, 0, 2));
}

TEST_F(serve, stops_and_runs_again)
{
	struct nvmepeer_buffer more;
	uint32_t losses;

	/* The thread is running. */
	ASSERT_EQ(0, nvmepeer_read(&self->queue, &self->buffer, 0, 8, 8));
	EXPECT_EQ(-EBUSY, nvmepeer_serve_add_buffer(self->serve, self->data, PAGE, &more));
	EXPECT_EQ(-EBUSY, nvmepeer_serve_add_fd(self->serve, self->file, 0, &self->ns,
						sizeof(self->ns)));
	EXPECT_EQ(-EBUSY, nvmepeer_serve_run(self->serve));
	EXPECT_EQ(-EBUSY, nvmepeer_serve_rearm(self->serve, &losses));
	ASSERT_EQ(0, stop(self));
	EXPECT_EQ(-EALREADY, nvmepeer_serve_rearm(self->serve, &losses));
	EXPECT_EQ(0, nvmepeer_serve_add_buffer(self->serve, self->data, PAGE, &more));
	start(self);
	EXPECT_EQ(0, nvmepeer_read(&self->queue, &self->buffer, 0, 8, 8));
	/* A stop before the call counts. */
	ASSERT_EQ(0, stop(self));
	nvmepeer_serve_stop(self->serve);
	EXPECT_EQ(0, nvmepeer_serve_run(self->serve));
}

/* The thread does not return while the kernel has a command, which may access the data. */
TEST_F(serve, stop_waits_for_commands)
{
	struct nvmepeer_command zeroes = { .opcode = NVMEPEER_OP_WRITE_ZEROES, .blocks = 64 };
	struct nvmepeer_token tokens[8];

	for (int round = 0; round < 50; round++) {
		for (int i = 0; i < 8; i++)
			ASSERT_EQ(0, nvmepeer_submit(&self->queue, &zeroes, &tokens[i], 1000000000));
		usleep(round);
		ASSERT_EQ(0, stop(self));
		ASSERT_EQ(self->serve->depth, self->serve->idle_count);
		start(self);
		for (int i = 0; i < 8; i++)
			ASSERT_EQ(0, nvmepeer_wait(&self->queue, tokens[i], NULL, 5000000000));
	}
}

/* The status page says when the thread sleeps, and a kick ends the sleep. */
TEST_F(serve, sleeps_and_wakes)
{
	const struct nvme_peer_status *status = serve_memory(self->serve, NVME_PEER_EXPORT_STATUS);
	struct timespec begin, end;
	uint64_t used;

	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &begin);
	for (int i = 0; i < 5000 && !__atomic_load_n(&status->poller_asleep, __ATOMIC_ACQUIRE); i++)
		usleep(1000);
	EXPECT_EQ(1, __atomic_load_n(&status->poller_asleep, __ATOMIC_ACQUIRE));
	usleep(200000);
	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &end);
	used = (uint64_t)(end.tv_sec - begin.tv_sec) * 1000000000u + (uint64_t)end.tv_nsec -
	       (uint64_t)begin.tv_nsec;
	EXPECT_GT(100000000u, used);
	nvmepeer_serve_kick(self->serve);
	EXPECT_EQ(0, nvmepeer_read(&self->queue, &self->buffer, 0, 8, 8));
	EXPECT_TRUE(is_described(self->data, 8, 8, 0));
}

/* ---- Malformed commands ---------------------------------------------------- */

#define HANDLE(number)	((uint32_t)(number) << 16)	/* upper dword of an address */
#define BUCKET		0x10000000u			/* dword 3 of an SGL descriptor */
#define SEGMENT		0x30000000u

static const struct refusal {
	const char *name;
	uint32_t status;
	uint32_t entry[16];
} refusals[] = {
	{ "opcode", NVME_SC_INVALID_OPCODE, { 0x7f, 1 } },
	{ "compare", NVME_SC_INVALID_OPCODE, { NVMEPEER_OP_COMPARE, 1, [7] = HANDLE(1) } },
	{ "fused", NVME_SC_INVALID_FIELD, { 0x102, 1, [7] = HANDLE(1) } },
	{ "namespace 0", NVME_SC_INVALID_NAMESPACE, { 2, 0, [7] = HANDLE(1) } },
	{ "namespace 2", NVME_SC_INVALID_NAMESPACE, { 2, 2, [7] = HANDLE(1) } },
	{ "all namespaces", NVME_SC_INVALID_NAMESPACE, { 0, NVME_ALL_NAMESPACES } },
	{ "first block", NVME_SC_LBA_RANGE, { 2, 1, [7] = HANDLE(1), [10] = BLOCKS } },
	{ "last block", NVME_SC_LBA_RANGE, { 2, 1, [7] = HANDLE(1), [10] = BLOCKS - 1, [12] = 1 } },
	{ "sum wraps", NVME_SC_LBA_RANGE, { 2, 1, [7] = HANDLE(1), [10] = ~0u, [11] = ~0u, [12] = 7 } },
	{ "zeroes beyond", NVME_SC_LBA_RANGE, { 8, 1, [10] = BLOCKS } },
	{ "protection", NVME_SC_INVALID_FIELD, { 2, 1, [7] = HANDLE(1), [12] = 1u << 29 } },
	{ "directive", NVME_SC_INVALID_FIELD, { 1, 1, [7] = HANDLE(1), [12] = 2u << 20 } },
	{ "durable zeroes", NVME_SC_INVALID_FIELD, { 8, 1, [12] = 1u << 30 } },
	{ "too long", NVME_SC_INVALID_FIELD, { 0x4002, 1, [7] = HANDLE(1), [12] = 4095 } },
	{ "no buffer", NVME_SC_DATA_TRANSFER, { 2, 1 } },
	{ "another buffer", NVME_SC_DATA_TRANSFER, { 2, 1, [7] = HANDLE(2) } },
	{ "no such handle", NVME_SC_DATA_TRANSFER, { 2, 1, [7] = HANDLE(0xffff) } },
	{ "behind the buffer", NVME_SC_DATA_TRANSFER, { 2, 1, [6] = DATA_BYTES - 256, [7] = HANDLE(1) } },
	{ "end of addresses", NVME_SC_DATA_TRANSFER, { 2, 1, [6] = ~0u, [7] = HANDLE(1) | 0xffff } },
	{ "second page", NVME_SC_DATA_TRANSFER, { 2, 1, [7] = HANDLE(1), [12] = 15 } },
	{ "second offset", NVME_SC_PRP_OFFSET,
	  { 2, 1, [7] = HANDLE(1), [8] = 512, [9] = HANDLE(1), [12] = 15 } },
	{ "list outside", NVME_SC_DATA_TRANSFER, { 2, 1, [7] = HANDLE(1), [9] = HANDLE(9), [12] = 31 } },
	{ "list offset", NVME_SC_PRP_OFFSET,
	  { 2, 1, [7] = HANDLE(1), [8] = 4, [9] = HANDLE(1), [12] = 31 } },
	{ "PSDT 2", NVME_SC_INVALID_FIELD, { 0x8002, 1, [7] = HANDLE(1) } },
	{ "SGL length", NVME_SC_SGL_LENGTH, { 0x4002, 1, [7] = HANDLE(1), [8] = 513 } },
	{ "SGL type", NVME_SC_SGL_TYPE, { 0x4002, 1, [7] = HANDLE(1), [8] = 512, [9] = BUCKET } },
	{ "SGL outside", NVME_SC_DATA_TRANSFER, { 0x4002, 1, [7] = HANDLE(3), [8] = 512 } },
	{ "segment outside", NVME_SC_DATA_TRANSFER,
	  { 0x4002, 1, [6] = DATA_BYTES - 8, [7] = HANDLE(1), [8] = 16, [9] = SEGMENT } },
	{ "segment length", NVME_SC_INVALID_FIELD,
	  { 0x4002, 1, [7] = HANDLE(1), [8] = 15, [9] = SEGMENT } },
	{ "long segment", NVME_SC_INVALID_FIELD,
	  { 0x4002, 1, [7] = HANDLE(1), [8] = 1 << 20, [9] = SEGMENT } },
	{ "empty segment", NVME_SC_SGL_LENGTH, { 0x4002, 1, [7] = HANDLE(1), [9] = SEGMENT } },
	/* The buffer is full of 0xee. */
	{ "descriptors", NVME_SC_SGL_TYPE,
	  { 0x4002, 1, [7] = HANDLE(1), [8] = 32, [9] = SEGMENT } },
	{ "list entries", NVME_SC_PRP_OFFSET, { 2, 1, [7] = HANDLE(1), [9] = HANDLE(1), [12] = 31 } },
};

TEST_F(serve, malformed_commands_complete_with_a_status)
{
	for (size_t i = 0; i < ARRAY_SIZE(refusals); i++) {
		struct nvmepeer_token token;
		struct nvmepeer_sqe entry;

		memset(self->data, UNTOUCHED, DATA_BYTES);
		memcpy(entry.dword, refusals[i].entry, sizeof(entry));
		ASSERT_EQ(0, nvmepeer_submit_raw(&self->queue, &entry, &token, 1000000000));
		EXPECT_EQ(refusals[i].status | NVME_STATUS_DNR,
			  nvmepeer_wait(&self->queue, token, NULL, 1000000000)) {
			TH_LOG("%s", refusals[i].name);
		}
		EXPECT_EQ(UNTOUCHED, self->data[0]);
	}
	EXPECT_EQ(0, nvmepeer_read(&self->queue, &self->buffer, 0, 8, 8));
	EXPECT_TRUE(is_described(self->data, 8, 8, 0));
}

/* A page of a list that leads to itself. */
TEST_F(serve, loop_of_list_pages)
{
	uint64_t *list = (uint64_t *)(self->data + LISTS);
	struct nvmepeer_token token;
	struct nvmepeer_sqe entry = { .dword = {
		2, 1, [7] = HANDLE(1), [8] = LISTS + PAGE - 8, [9] = HANDLE(1), [12] = 2047,
	} };

	for (int i = 0; i < PAGE / 8; i++)
		list[i] = self->buffer.dma + (uint64_t)(i % 200) * PAGE;
	list[PAGE / 8 - 1] = self->buffer.dma + LISTS;
	ASSERT_EQ(0, nvmepeer_submit_raw(&self->queue, &entry, &token, 1000000000));
	EXPECT_EQ(0, nvmepeer_wait(&self->queue, token, NULL, 1000000000));
}

/* As with a long command: more bytes than there are pieces of a page. */
TEST_F(serve, more_pieces_than_the_kernel_takes)
{
	const uint32_t entry[16] = {
		2, 1, [7] = HANDLE(1), [8] = LISTS, [9] = HANDLE(1), [12] = 4095,
	};
	struct serve_command *command = &self->serve->commands[self->serve->depth - 1];
	uint64_t *list = (uint64_t *)(self->data + LISTS);

	ASSERT_EQ(0, stop(self));
	for (int i = 0; i < PAGE / 8 - 1; i++)
		list[i] = self->buffer.dma + (uint64_t)(i % 2) * 8 * PAGE;
	self->serve->max_transfer = 2 << 20;
	EXPECT_EQ(NVME_SC_INVALID_FIELD | NVME_STATUS_DNR,
		  serve_check(self->serve, entry, command));
	EXPECT_EQ(self->serve->most_pieces, command->count);
}

TEST_F(serve, read_only_and_shorter_files)
{
	struct nvmepeer_geometry geometry;
	char path[32];
	int file;

	ASSERT_EQ(0, stop(self));
	snprintf(path, sizeof(path), "/proc/self/fd/%d", self->file);
	file = open(path, O_RDONLY | O_CLOEXEC);
	ASSERT_EQ(0, ftruncate(self->file, (off_t)BLOCKS * BLOCK));
	ASSERT_EQ(0, nvmepeer_serve_add_fd(self->serve, file, 0, &self->ns, sizeof(self->ns)));
	close(file);
	ASSERT_EQ(2, self->ns.nsid);
	geometry = geometry_of(self);
	ASSERT_EQ(0, nvmepeer_queue_open(&self->queue, &geometry));
	start(self);
	EXPECT_EQ(NVME_SC_READ_ONLY | NVME_STATUS_DNR,
		  nvmepeer_write(&self->queue, &self->buffer, 0, 8, 8));
	EXPECT_EQ(0, nvmepeer_read(&self->queue, &self->buffer, 0, 8, 8));
	EXPECT_TRUE(is_described(self->data, 8, 8, 0));
	ASSERT_EQ(0, ftruncate(self->file, 100 * BLOCK + 100));
	EXPECT_EQ(NVME_SC_LBA_RANGE | NVME_STATUS_DNR,
		  nvmepeer_read(&self->queue, &self->buffer, 0, 200, 8));
	EXPECT_EQ(NVME_SC_LBA_RANGE | NVME_STATUS_DNR,
		  nvmepeer_read(&self->queue, &self->buffer, 0, 96, 8));
	/* The end of the file is the end of a sector. */
	ASSERT_EQ(0, ftruncate(self->file, 100 * BLOCK));
	EXPECT_EQ(NVME_SC_LBA_RANGE | NVME_STATUS_DNR,
		  nvmepeer_read(&self->queue, &self->buffer, 0, 96, 8));
	EXPECT_EQ(0, nvmepeer_read(&self->queue, &self->buffer, 0, 92, 8));
	ASSERT_EQ(0, ftruncate(self->file, FILE_BYTES));
}

/* The kernel writes a part, and the rest fails. */
TEST_F(serve, short_write)
{
	struct rlimit limit = { .rlim_cur = 1004 * BLOCK, .rlim_max = RLIM_INFINITY };

	signal(SIGXFSZ, SIG_IGN);
	ASSERT_EQ(0, setrlimit(RLIMIT_FSIZE, &limit));
	describe(self->data, 1000, 8, 5);
	EXPECT_EQ(NVME_SC_CAPACITY | NVME_STATUS_DNR,
		  nvmepeer_write(&self->queue, &self->buffer, 0, 1000, 8));
	EXPECT_EQ(0, nvmepeer_read(&self->queue, &self->buffer, PAGE, 1000, 8));
	EXPECT_TRUE(is_described(self->data + PAGE, 1000, 4, 5));
	EXPECT_TRUE(is_described(self->data + PAGE + 4 * BLOCK, 1004, 4, 0));
	limit.rlim_cur = RLIM_INFINITY;
	ASSERT_EQ(0, setrlimit(RLIMIT_FSIZE, &limit));
}

/* Memory that is not mapped any more is an error of the command, not of this process. */
TEST_F(serve, memory_that_is_gone)
{
	ASSERT_EQ(0, munmap(self->data + PAGE, PAGE));
	EXPECT_EQ(NVME_SC_DATA_TRANSFER | NVME_STATUS_DNR,
		  nvmepeer_read(&self->queue, &self->buffer, PAGE, 8, 8));
	EXPECT_EQ(0, nvmepeer_read(&self->queue, &self->buffer, 0, 8, 8));
}

TEST(status_of_each_error)
{
	EXPECT_EQ(NVME_SC_READ_ERROR, serve_status(NVMEPEER_OP_READ, -EIO));
	EXPECT_EQ(NVME_SC_WRITE_FAULT, serve_status(NVMEPEER_OP_WRITE, -EIO));
	EXPECT_EQ(NVME_SC_WRITE_FAULT, serve_status(NVMEPEER_OP_FLUSH, -EIO));
	EXPECT_EQ(NVME_SC_CAPACITY | NVME_STATUS_DNR, serve_status(NVMEPEER_OP_WRITE, -ENOSPC));
	EXPECT_EQ(NVME_SC_READ_ONLY | NVME_STATUS_DNR, serve_status(NVMEPEER_OP_WRITE, -EROFS));
	EXPECT_EQ(NVME_SC_INTERRUPTED, serve_status(NVMEPEER_OP_READ, -EAGAIN));
	EXPECT_EQ(NVME_SC_HOST_PATH, serve_status(NVMEPEER_OP_READ, -ESTALE));
}

/* Runs with these doorbells until there are so many completions, and a moment longer. */
static uint32_t posted_after(FIXTURE_DATA(serve) *self, uint32_t tail, uint32_t head,
			     uint32_t expected)
{
	ring(self, SERVE_STRIDE, head);
	ring(self, 0, tail);
	start(self);
	for (int i = 0; i < 5000; i++) {
		if (__atomic_load_n(&self->serve->posted, __ATOMIC_RELAXED) == expected)
			break;
		usleep(1000);
	}
	usleep(5000);
	return stop(self) ? 0 : self->serve->posted;
}

/* A peer that does not reap: no completion is overwritten. */
TEST_F(serve, full_completion_ring)
{
	uint32_t *sq = serve_memory(self->serve, NVME_PEER_EXPORT_SQ);

	ASSERT_EQ(0, stop(self));
	for (uint32_t i = 0; i < ENTRIES; i++) {
		sq[16 * i] = i % 2 ? NVMEPEER_OP_FLUSH : NVMEPEER_OP_COMPARE;
		sq[16 * i + 1] = 1;
	}
	EXPECT_EQ(ENTRIES - 1, posted_after(self, ENTRIES - 1, 0, ENTRIES - 1));
	EXPECT_EQ(ENTRIES - 1, posted_after(self, 8, 0, ENTRIES - 1));
	EXPECT_EQ(ENTRIES + 2, posted_after(self, 8, 3, ENTRIES + 2));
	EXPECT_EQ(ENTRIES + 8, posted_after(self, 8, 20, ENTRIES + 8));
}

/* ---- Losses ------------------------------------------------------------------ */

static void check_rearm(struct __test_metadata *_metadata, FIXTURE_DATA(serve) *self)
{
	uint32_t losses = 0;

	EXPECT_EQ(NVMEPEER_E_LOST, nvmepeer_read(&self->queue, &self->buffer, 0, 0, 1));
	EXPECT_EQ(-ESHUTDOWN, nvmepeer_serve_run(self->serve));
	/* A program may always stop the thread that it has started. */
	nvmepeer_serve_stop(self->serve);
	ASSERT_EQ(0, nvmepeer_serve_rearm(self->serve, &losses));
	EXPECT_EQ(1, losses);
	nvmepeer_queue_rearm(&self->queue, losses);
	start(self);
	EXPECT_EQ(0, nvmepeer_read(&self->queue, &self->buffer, 0, 8, 8));
	EXPECT_TRUE(is_described(self->data, 8, 8, 0));
}

TEST_F(serve, tail_out_of_range)
{
	ring(self, 0, ENTRIES);
	EXPECT_EQ(-EPROTO, join(self));
	check_rearm(_metadata, self);
}

TEST_F(serve, head_out_of_range)
{
	ring(self, SERVE_STRIDE, 0x80000000u);
	EXPECT_EQ(-EPROTO, join(self));
	check_rearm(_metadata, self);
}

TEST_F(serve, head_beyond_what_was_posted)
{
	ASSERT_EQ(0, nvmepeer_read(&self->queue, &self->buffer, 0, 8, 8));
	ring(self, SERVE_STRIDE, 2);
	EXPECT_EQ(-EPROTO, join(self));
	check_rearm(_metadata, self);
}

TEST_F(serve, peer_requests_quiescence)
{
	ASSERT_EQ(0, nvmepeer_queue_quiesce(&self->queue));
	EXPECT_EQ(-ECANCELED, join(self));
	check_rearm(_metadata, self);
}

/* Commands that the kernel did not take must not run after a re-arm. */
TEST_F(serve, broken_ring)
{
	uint32_t losses;

	ASSERT_EQ(0, stop(self));
	ASSERT_EQ(self->serve->ring.ring_fd, dup2(self->file, self->serve->ring.ring_fd));
	start(self);
	EXPECT_EQ(NVMEPEER_E_LOST, nvmepeer_read(&self->queue, &self->buffer, 0, 0, 1));
	EXPECT_EQ(-EOPNOTSUPP, join(self));
	EXPECT_EQ(-ESHUTDOWN, nvmepeer_serve_rearm(self->serve, &losses));
	EXPECT_EQ(-ESHUTDOWN, nvmepeer_serve_run(self->serve));
}

/* ---- Entries that change ------------------------------------------------------ */

static uint32_t random_word(uint64_t *seed)
{
	*seed = *seed * 6364136223846793005u + 1442695040888963407u;
	return (uint32_t)(*seed >> 33);
}

/* Valid parts more often than chance would make them. */
static void random_entry(uint64_t *seed, uint32_t entry[16])
{
	static const uint32_t opcodes[] = { 0, 1, 2, 2, 8, 0x4001, 0x4002, 0x4002, 9, 0xc002 };

	for (int i = 0; i < 16; i++)
		entry[i] = random_word(seed) % 3 ? 0 : random_word(seed);
	entry[0] = opcodes[random_word(seed) % ARRAY_SIZE(opcodes)] | random_word(seed) << 16;
	entry[1] = random_word(seed) % 8 ? 1 : random_word(seed) % 4;
	entry[12] = random_word(seed) % 32 | (random_word(seed) % 8 ? 0 : random_word(seed));
	entry[10] = random_word(seed) % (BLOCKS + 16);
	entry[11] = random_word(seed) % 8 ? 0 : random_word(seed);
	for (int i = 6; i < 10; i += 2) {
		entry[i] = random_word(seed) % (DATA_BYTES + PAGE);
		entry[i] &= random_word(seed) % 4 ? ~0xfffu : ~3u;
		entry[i + 1] = HANDLE(random_word(seed) % 8 ? 1 : random_word(seed) % 4);
	}
	if (entry[0] & 0x4000 && random_word(seed) % 2) {
		entry[8] = ((entry[12] & 0xffff) + 1) * BLOCK;
		entry[9] = 0;
	} else if (entry[0] & 0x4000) {
		entry[8] = random_word(seed) % 8 * 16;
		entry[9] = SEGMENT;
	}
}

/* What the check accepts lies within namespace and buffer. */
static const char *check_accepted(FIXTURE_DATA(serve) *self, const struct serve_command *command)
{
	uint64_t bytes = 0;

	if (command->bytes > (uint64_t)BLOCKS * BLOCK ||
	    command->offset > (uint64_t)BLOCKS * BLOCK - command->bytes)
		return "outside of the namespace";
	for (uint32_t i = 0; i < command->count; i++) {
		uint8_t *piece = command->pieces[i].iov_base;

		if (piece < self->data || piece > self->data + DATA_BYTES ||
		    command->pieces[i].iov_len > (size_t)(self->data + DATA_BYTES - piece))
			return "outside of the buffer";
		bytes += command->pieces[i].iov_len;
	}
	if (command->count && bytes != command->bytes)
		return "another length";
	return NULL;
}

TEST_F(serve, accepted_entries_are_within_bounds)
{
	struct serve_command *command = &self->serve->commands[0];
	uint32_t entry[16], accepted = 0, counted = 1000000;
	uint64_t seed = 1;

	ASSERT_EQ(0, stop(self));
	/* Lists and segments of all kinds: of plausible and of random words. */
	for (int i = 0; i < DATA_BYTES / 8; i++) {
		uint64_t word = self->buffer.dma + random_word(&seed) % (DATA_BYTES + PAGE);

		word &= ~(uint64_t)0xfff;
		if (i % 2 && i % 1024 < 512)
			word = random_word(&seed) % 4 * BLOCK;
		memcpy(self->data + 8 * i, &word, 8);
	}
	for (uint32_t i = 0; i < counted; i++) {
		random_entry(&seed, entry);
		if (serve_check(self->serve, entry, command))
			continue;
		accepted++;
		ASSERT_EQ(NULL, check_accepted(self, command)) {
			TH_LOG("%u", i);
		}
	}
	EXPECT_LT(counted / 20, accepted);
	EXPECT_GT(counted * 3 / 4, accepted);
}

struct rewriter {
	FIXTURE_DATA(serve) *self;
	atomic_bool stop;
};

/* Entries, lists and doorbells are written while the server reads them. */
static void *rewrite(void *argument)
{
	struct rewriter *rewriter = argument;
	FIXTURE_DATA(serve) *self = rewriter->self;
	uint32_t *sq = serve_memory(self->serve, NVME_PEER_EXPORT_SQ), entry[16];
	uint64_t seed = 7;

	while (!rewriter->stop) {
		uint32_t slot = random_word(&seed) % ENTRIES;
		uint64_t word = self->buffer.dma + (random_word(&seed) % 1024) * BLOCK;

		random_entry(&seed, entry);
		for (int i = 0; i < 16; i++)
			__atomic_store_n(&sq[16 * slot + i], entry[i], __ATOMIC_RELAXED);
		__atomic_store_n((uint64_t *)(self->data + LISTS) + random_word(&seed) % 4096, word,
				 __ATOMIC_RELAXED);
		ring(self, 0, random_word(&seed) % ENTRIES);
		if (!(random_word(&seed) % 64))
			ring(self, SERVE_STRIDE, random_word(&seed) % (ENTRIES + 1));
	}
	return NULL;
}

TEST_F(serve, entries_rewritten_while_they_are_read)
{
	struct rewriter rewriter = { .self = self };
	uint32_t losses = 0, rounds;
	pthread_t thread;
	uint64_t end;

	ASSERT_EQ(0, pthread_create(&thread, NULL, rewrite, &rewriter));
	end = nvmepeer_now_ns() + 1000000000u;
	for (rounds = 0; nvmepeer_now_ns() < end; rounds++) {
		ASSERT_EQ(-EPROTO, join(self));
		ASSERT_EQ(0, nvmepeer_serve_rearm(self->serve, &losses));
		start(self);
	}
	rewriter.stop = true;
	pthread_join(thread, NULL);
	nvmepeer_serve_stop(self->serve);
	join(self);
	EXPECT_LT(0, rounds);
}

/* ---- Refusals ----------------------------------------------------------------- */

static void explains(struct __test_metadata *_metadata, int error, int result, const char *part)
{
	struct nvmepeer_explanation why;

	ASSERT_EQ(error, result);
	ASSERT_EQ(error, nvmepeer_explain(&why, sizeof(why)));
	EXPECT_NE(NULL, strstr(why.limit, part)) {
		TH_LOG("%s: %s. %s. %s", why.call, why.what, why.limit, why.help);
	}
	EXPECT_NE(0, why.help[0]);
}

TEST_F(serve, refusals_are_explained)
{
	static const struct nvmepeer_serve_options bad[] = {
		{ .entries = 3 }, { .entries = 1 }, { .entries = 65536 },
		{ .entries = 8, .depth = 4097 }, { .entries = 8, .flags = 1 },
		{ .entries = 8, .max_transfer = 4095 }, { .entries = 8, .reserved = 1 },
	};
	struct nvmepeer_buffer buffer;
	struct nvmepeer_serve *made;
	int zero = open("/dev/zero", O_RDWR | O_CLOEXEC), empty = memfd_create("empty", 0);

	ASSERT_EQ(0, stop(self));
	for (size_t i = 0; i < ARRAY_SIZE(bad); i++) {
		struct nvmepeer_serve_options options = bad[i];

		options.size = sizeof(options);
		explains(_metadata, -EINVAL, nvmepeer_serve_create(&options, &made), "power of two");
	}
	explains(_metadata, -ENOTBLK, nvmepeer_serve_add_fd(self->serve, zero, 0, &self->ns,
							    sizeof(self->ns)), "regular file");
	explains(_metadata, -ENODATA, nvmepeer_serve_add_fd(self->serve, empty, 0, &self->ns,
							    sizeof(self->ns)), "one block");
	explains(_metadata, -EINVAL, nvmepeer_serve_add_fd(self->serve, self->file, 513, &self->ns,
							   sizeof(self->ns)), "power of two");
	EXPECT_EQ(-EBADF, nvmepeer_serve_add_fd(self->serve, -1, 0, &self->ns, sizeof(self->ns)));
	explains(_metadata, -EINVAL, nvmepeer_serve_add_buffer(self->serve, self->data + 1, PAGE,
							       &buffer), "4096");
	explains(_metadata, -EINVAL, nvmepeer_serve_add_buffer(self->serve, self->data, 0, &buffer),
		 "empty");
	for (int i = 1; i < NVMEPEER_SERVE_BUFFERS; i++)
		ASSERT_EQ(0, nvmepeer_serve_add_buffer(self->serve, self->data, PAGE, &buffer));
	explains(_metadata, -ENOSPC, nvmepeer_serve_add_buffer(self->serve, self->data, PAGE,
							       &buffer), "64");
	for (int i = 1; i < NVMEPEER_SERVE_NAMESPACES; i++)
		ASSERT_EQ(0, nvmepeer_serve_add_fd(self->serve, self->file, 0, &self->ns,
						   sizeof(self->ns)));
	explains(_metadata, -ENOSPC, nvmepeer_serve_add_fd(self->serve, self->file, 0, &self->ns,
							   sizeof(self->ns)), "64");
	close(zero);
	close(empty);
}

/* ---- Another process ------------------------------------------------------------ */

/* The parts by descriptors, as nvmepeer_cuda_queues_from_fds() maps them. */
TEST_F(serve, parts_are_mapped_by_descriptors)
{
	struct nvmepeer_geometry geometry = { .state = 0 };
	uint64_t places[SERVE_PARTS];
	struct nvmepeer_export part;

	ASSERT_EQ(0, nvmepeer_serve_geometry(self->serve, &self->ns, NVMEPEER_VIEW_CPU |
					     NVMEPEER_VIEW_DESCRIPTORS, &geometry, sizeof(geometry)));
	ASSERT_EQ(0, geometry.sq | geometry.cq | geometry.status | geometry.control);
	for (int i = 0; i < SERVE_PARTS; i++) {
		ASSERT_EQ(0, nvmepeer_serve_export(self->serve, i, &part, sizeof(part)));
		places[i] = (uintptr_t)mmap(NULL, part.length, PROT_READ | PROT_WRITE, MAP_SHARED,
					    part.fd, (off_t)part.offset);
		ASSERT_NE((uintptr_t)MAP_FAILED, places[i]);
		EXPECT_EQ(-1, ftruncate(part.fd, 0));
		close(part.fd);
	}
	explains(_metadata, -EINVAL, nvmepeer_serve_export(self->serve, (enum nvme_peer_export)SERVE_PARTS,
							   &part, sizeof(part)), "no such part");
	geometry.sq = places[NVME_PEER_EXPORT_SQ];
	geometry.cq = places[NVME_PEER_EXPORT_CQ];
	geometry.sq_doorbell += places[NVME_PEER_EXPORT_DOORBELL];
	geometry.cq_doorbell += places[NVME_PEER_EXPORT_DOORBELL];
	geometry.status = places[NVME_PEER_EXPORT_STATUS];
	geometry.control = places[NVME_PEER_EXPORT_CONTROL];
	geometry.state = (uintptr_t)self->state;
	ASSERT_EQ(0, nvmepeer_queue_init(&self->queue, &geometry));
	EXPECT_EQ(0, nvmepeer_read(&self->queue, &self->buffer, 0, 8, 8));
	EXPECT_TRUE(is_described(self->data, 8, 8, 0));
	/* Peers see the end. */
	ASSERT_EQ(0, stop(self));
	nvmepeer_serve_destroy(self->serve);
	self->serve = NULL;
	EXPECT_EQ(NVMEPEER_E_LOST, nvmepeer_read(&self->queue, &self->buffer, 0, 8, 8));
}

TEST_HARNESS_MAIN
