// SPDX-License-Identifier: MIT OR GPL-2.0
/* Unit tests of the reference index and its keys, on the model of disks. */
#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

/* Before the harness, which has an ARRAY_SIZE of its own. */
#include "store.h"

#include "kselftest_harness.h"

#include <nvmepeer_store.h>

#include "model.h"

enum { SLOTS = 8, MEMBERS = 2, ALL = SLOTS * MEMBERS, PAGE = 1024, HOST = 4 };

static const char *const paths[] = { "disk0", "disk1" };

FIXTURE(index)
{
	struct nvmepeer_store *store;
	struct nvmepeer_index *index;
};

/* Half of the table's places are taken, so some of the keys collide. */
static void make_key(uint32_t number, uint8_t *key)
{
	memset(key, 0, NVMEPEER_STORE_TAG);
	key[0] = (uint8_t)(number / 4);
	memcpy(key + 16, &number, sizeof(number));
}

static void fill(uint32_t number, uint32_t *value)
{
	for (uint32_t i = 0; i < PAGE / 4; i++)
		value[i] = number * 1000 + i;
}

static int open_index(FIXTURE_DATA(index) *self, uint32_t host_pages)
{
	struct nvmepeer_index_options options = {
		.size = sizeof(options),
		.host_pages = host_pages,
	};

	return nvmepeer_store_open(paths, MEMBERS, 0, &self->store) ? -1 :
	       nvmepeer_index_open(self->store, &options, &self->index);
}

static void close_index(FIXTURE_DATA(index) *self)
{
	nvmepeer_index_close(self->index);
	nvmepeer_store_close(self->store);
}

FIXTURE_SETUP(index)
{
	struct nvmepeer_store_options options = {
		.size = sizeof(options),
		.page_bytes = PAGE,
		.slots = SLOTS,
	};

	model_reset(1);
	ASSERT_EQ(0, nvmepeer_store_create(paths, MEMBERS, &options));
	ASSERT_EQ(0, open_index(self, HOST));
}

FIXTURE_TEARDOWN(index)
{
	close_index(self);
}

static int put(FIXTURE_DATA(index) *self, uint32_t number, uint32_t hint)
{
	uint8_t key[NVMEPEER_STORE_TAG];
	uint32_t value[PAGE / 4];

	make_key(number, key);
	fill(number, value);
	return nvmepeer_index_put(self->index, key, value, PAGE - 4 * (number % 8), hint);
}

/* 0, a negative errno, or 1 if the value is wrong. */
static int get(FIXTURE_DATA(index) *self, uint32_t number)
{
	uint32_t value[PAGE / 4], expected[PAGE / 4], length;
	uint8_t key[NVMEPEER_STORE_TAG];
	int error;

	make_key(number, key);
	fill(number, expected);
	error = nvmepeer_index_get(self->index, key, value, &length);
	if (error)
		return error;
	return length != PAGE - 4 * (number % 8) || memcmp(value, expected, length);
}

static int remove_value(FIXTURE_DATA(index) *self, uint32_t number)
{
	uint8_t key[NVMEPEER_STORE_TAG];

	make_key(number, key);
	return nvmepeer_index_remove(self->index, key);
}

/* The last failure is one of @call. */
static bool explains(const char *call, int error)
{
	struct nvmepeer_explanation why;

	nvmepeer_explain(&why, sizeof(why));
	return why.error == error && !strcmp(why.call, call);
}

/* From now on calls fail with @error, as the queue is in use; 0: no more. */
static void use_queue(FIXTURE_DATA(index) *self, int error)
{
	static struct io_queue *queue;

	model_no_queues(error);
	if (!error)
		queue_put(self->store, queue);
	else if (queue_get(self->store, &queue))
		abort();
}

TEST_F(index, values_are_found_after_a_restart)
{
	for (uint32_t i = 0; i < ALL; i++)
		ASSERT_EQ(0, put(self, i, 0));
	close_index(self);
	ASSERT_EQ(0, open_index(self, 0));
	for (uint32_t i = 0; i < ALL; i++)
		EXPECT_EQ(0, get(self, i));
	EXPECT_EQ(-ENOENT, get(self, ALL));
}

TEST_F(index, host_memory_serves_what_was_used_last)
{
	uint64_t reads;

	for (uint32_t i = 0; i < ALL; i++)
		ASSERT_EQ(0, put(self, i, 0));
	reads = model_commands(IO_READ);
	for (uint32_t i = ALL - HOST; i < ALL; i++)
		EXPECT_EQ(0, get(self, i));
	EXPECT_EQ(reads, model_commands(IO_READ));
	for (int round = 0; round < 2; round++)
		for (uint32_t i = 0; i < HOST; i++)
			EXPECT_EQ(0, get(self, i));
	EXPECT_EQ(reads + HOST, model_commands(IO_READ));
	/* A removed value is not in host memory either. */
	EXPECT_EQ(0, remove_value(self, 0));
	EXPECT_EQ(-ENOENT, get(self, 0));
	EXPECT_EQ(-ENOENT, remove_value(self, 0));
}

TEST_F(index, the_clock_evicts_what_was_not_used)
{
	for (uint32_t i = 0; i < ALL; i++)
		ASSERT_EQ(0, put(self, i, i == 3 ? NVMEPEER_INDEX_ONCE :
				 i == 5 ? NVMEPEER_INDEX_KEEP : NVMEPEER_INDEX_NORMAL));
	ASSERT_EQ(0, put(self, 100, 0));
	EXPECT_EQ(-ENOENT, get(self, 3));
	/* One by one the others go, and the one to be kept is among the last. */
	for (uint32_t i = 0; i < ALL - 2; i++)
		ASSERT_EQ(0, put(self, 101 + i, 0));
	EXPECT_EQ(0, get(self, 5));
	for (uint32_t i = 0; i < 10 * ALL; i++)
		ASSERT_EQ(0, put(self, 200 + i, 0));
	EXPECT_EQ(-ENOENT, get(self, 5));
	EXPECT_EQ(0, get(self, 200 + 10 * ALL - 1));
}

TEST_F(index, a_key_keeps_its_first_value)
{
	uint64_t writes;

	ASSERT_EQ(0, put(self, 1, 0));
	writes = model_commands(IO_WRITE);
	ASSERT_EQ(0, put(self, 1, 0));
	EXPECT_EQ(writes, model_commands(IO_WRITE));
}

TEST_F(index, removal_keeps_colliding_keys)
{
	for (uint32_t i = 0; i < ALL; i++)
		ASSERT_EQ(0, put(self, i, 0));
	for (uint32_t i = 0; i < ALL; i += 3)
		ASSERT_EQ(0, remove_value(self, i));
	for (uint32_t i = 0; i < ALL; i++)
		EXPECT_EQ(i % 3 ? 0 : -ENOENT, get(self, i));
}

TEST_F(index, pinned_values_are_not_evicted)
{
	uint8_t keys[ALL][NVMEPEER_STORE_TAG];
	struct nvmepeer_store_item items[ALL];

	for (uint32_t i = 0; i < ALL; i++) {
		make_key(i, keys[i]);
		if (i != 4)
			ASSERT_EQ(0, put(self, i, 0));
	}
	/* The prefix ends at the first miss. */
	EXPECT_EQ(4, nvmepeer_index_pin(self->index, (const uint8_t (*)[64])keys, ALL, items));
	nvmepeer_store_unpin(self->store, items, 4);
	ASSERT_EQ(0, put(self, 4, 0));
	ASSERT_EQ(ALL, nvmepeer_index_pin(self->index, (const uint8_t (*)[64])keys, ALL, items));
	EXPECT_EQ(-ENOSPC, put(self, 100, 0));
	EXPECT_TRUE(explains("nvmepeer_store_alloc", ENOSPC));
	nvmepeer_store_unpin(self->store, items, ALL);
	for (uint32_t i = 0; i < ALL; i++)
		EXPECT_EQ(0, get(self, i));
	/* One that is not pinned goes. */
	ASSERT_EQ(ALL, nvmepeer_index_pin(self->index, (const uint8_t (*)[64])keys, ALL, items));
	nvmepeer_store_unpin(self->store, &items[9], 1);
	EXPECT_EQ(0, put(self, 100, 0));
	nvmepeer_store_unpin(self->store, items, ALL);
	EXPECT_EQ(0, get(self, 100));
	for (uint32_t i = 0; i < ALL; i++)
		EXPECT_EQ(i == 9 ? -ENOENT : 0, get(self, i));
}

static uint32_t free_slots(FIXTURE_DATA(index) *self)
{
	struct nvmepeer_store_info info;

	return nvmepeer_store_info(self->store, &info, sizeof(info)) ? UINT32_MAX :
	       (uint32_t)info.free_slots;
}

/* Its slot is free as soon as its reader has ended, and it does not come back. */
TEST_F(index, a_removed_value_that_is_pinned_is_freed_later)
{
	uint8_t key[1][NVMEPEER_STORE_TAG];
	struct nvmepeer_store_item item;

	make_key(1, key[0]);
	for (int by = 0; by < 3; by++) {
		ASSERT_EQ(0, put(self, 1, 0));
		ASSERT_EQ(1, nvmepeer_index_pin(self->index, (const uint8_t (*)[64])key, 1, &item));
		EXPECT_EQ(-ETIMEDOUT, remove_value(self, 1));
		EXPECT_EQ(-ENOENT, remove_value(self, 1));
		EXPECT_EQ(ALL - 1, free_slots(self));
		nvmepeer_store_unpin(self->store, &item, 1);
		if (by == 0) {
			ASSERT_EQ(0, put(self, 1, 0));
			EXPECT_EQ(ALL - 1, free_slots(self));
			EXPECT_EQ(0, remove_value(self, 1));
		} else if (by == 1) {
			EXPECT_EQ(-ENOENT, remove_value(self, 1));
		} else {
			close_index(self);
			ASSERT_EQ(0, open_index(self, 0));
		}
		EXPECT_EQ(-ENOENT, get(self, 1));
		EXPECT_EQ(ALL, free_slots(self));
	}
}

/* An error of the host is none of a value. */
TEST_F(index, errors_of_the_host_keep_values)
{
	struct nvmepeer_store_item item;
	uint8_t key[1][NVMEPEER_STORE_TAG];

	for (uint32_t i = 0; i < ALL; i++)
		ASSERT_EQ(0, put(self, i, NVMEPEER_INDEX_ONCE));
	make_key(1, key[0]);
	close_index(self);
	ASSERT_EQ(0, open_index(self, 0));
	use_queue(self, -EMFILE);
	EXPECT_EQ(-EMFILE, get(self, 1));
	EXPECT_EQ(-EMFILE, remove_value(self, 1));
	for (uint32_t i = 0; i < 2 * ALL; i++)
		EXPECT_EQ(-EMFILE, put(self, 100 + i, 0));
	EXPECT_TRUE(explains("nvmepeer_store_free", EMFILE));
	use_queue(self, 0);
	ASSERT_EQ(1, nvmepeer_index_pin(self->index, (const uint8_t (*)[64])key, 1, &item));
	nvmepeer_store_unpin(self->store, &item, 1);
	for (uint32_t i = 0; i < ALL; i++)
		EXPECT_EQ(0, get(self, i));
	/* A slot without a value is freed later. */
	EXPECT_EQ(0, remove_value(self, 1));
	use_queue(self, -EMFILE);
	EXPECT_EQ(-EMFILE, put(self, 1, 0));
	use_queue(self, 0);
	EXPECT_EQ(0, put(self, 1, 0));
	EXPECT_EQ(0, free_slots(self));
	for (uint32_t i = 0; i < ALL; i++)
		EXPECT_EQ(0, get(self, i));
}

TEST_F(index, values_of_a_lost_member_are_put_again)
{
	uint8_t keys[2][NVMEPEER_STORE_TAG];
	struct nvmepeer_store_item items[2];

	for (uint32_t i = 0; i < 4; i++)
		ASSERT_EQ(0, put(self, i, NVMEPEER_INDEX_ONCE));
	model_fail(1, IO_FLUSH, 0, 1);
	EXPECT_EQ(-EIO, put(self, 100, 0) | put(self, 101, 0));
	for (uint32_t i = 0; i < 2; i++)
		make_key(i, keys[i]);
	EXPECT_EQ(1, nvmepeer_index_pin(self->index, (const uint8_t (*)[64])keys, 2, items));
	nvmepeer_store_unpin(self->store, items, 1);
	EXPECT_EQ(-ENOENT, remove_value(self, 1));
	for (uint32_t i = 0; i < 4; i++) {
		ASSERT_EQ(0, put(self, i, 0));
		EXPECT_EQ(0, get(self, i));
	}
}

TEST_F(index, hints_and_lengths_are_checked)
{
	uint8_t key[NVMEPEER_STORE_TAG];
	uint32_t value[PAGE / 4] = { 0 };
	uint64_t reads;

	make_key(1, key);
	EXPECT_EQ(-EINVAL, put(self, 1, 3));
	EXPECT_TRUE(explains("nvmepeer_index_put", EINVAL));
	ASSERT_EQ(0, put(self, 1, NVMEPEER_INDEX_ONCE));
	EXPECT_EQ(-EINVAL, nvmepeer_index_put(self->index, key, value, 6, 0));
	EXPECT_EQ(-EINVAL, nvmepeer_index_put(self->index, key, value, PAGE + 4, 0));
	EXPECT_EQ(-EINVAL, nvmepeer_index_put(self->index, key, value, PAGE, 3));
	/* Nor does a get take it to host memory. */
	EXPECT_EQ(0, get(self, 1));
	reads = model_commands(IO_READ);
	EXPECT_EQ(0, get(self, 1));
	EXPECT_EQ(reads + 1, model_commands(IO_READ));
}

TEST_F(index, a_value_that_cannot_be_read_is_removed)
{
	struct nvmepeer_explanation why;

	for (uint32_t i = 0; i < ALL; i++)
		ASSERT_EQ(0, put(self, i, NVMEPEER_INDEX_ONCE));
	model_fail(0, IO_READ, 0, 1);
	model_fail(1, IO_READ, 0, 1);
	EXPECT_EQ(-EIO, get(self, 2));
	nvmepeer_explain(&why, sizeof(why));
	EXPECT_EQ(EIO, why.error);
	EXPECT_EQ(-ENOENT, get(self, 2));
	model_fail(0, IO_WRITE, 0, 1);
	model_fail(1, IO_WRITE, 0, 1);
	EXPECT_EQ(-EIO, put(self, 2, 0));
	/* The slot is withdrawn, and not the index's any more. */
	EXPECT_EQ(0, free_slots(self));
	for (uint32_t i = 0; i < ALL; i++) {
		struct nvmepeer_store_item item = { .slot = i };

		EXPECT_EQ(-ENOENT, nvmepeer_store_free(self->store, &item, 1, 0));
	}
	model_fail(0, IO_WRITE, 0, 0);
	model_fail(1, IO_WRITE, 0, 0);
	EXPECT_EQ(0, put(self, 2, 0));
	for (uint32_t i = 0; i < ALL; i++)
		get(self, i);
}

TEST_F(index, options_are_checked)
{
	struct {
		struct nvmepeer_index_options known;
		uint64_t newer;
	} larger = { .known = { .size = sizeof(larger) }, .newer = 1 };
	struct nvmepeer_index_options options = { .size = 4 };
	static uint8_t memory[HOST * PAGE];
	struct nvmepeer_index *index;

	EXPECT_EQ(-EINVAL, nvmepeer_index_open(self->store, &options, &index));
	EXPECT_EQ(-E2BIG, nvmepeer_index_open(self->store, &larger.known, &index));
	EXPECT_TRUE(explains("nvmepeer_index_open", E2BIG));
	larger.newer = 0;
	ASSERT_EQ(0, nvmepeer_index_open(self->store, &larger.known, &index));
	nvmepeer_index_close(index);
	options.size = sizeof(options);
	options.host_pages = HOST;
	options.host_memory = memory;
	ASSERT_EQ(0, nvmepeer_index_open(self->store, &options, &index));
	nvmepeer_index_close(index);
	nvmepeer_index_close(NULL);
}

/* Of two slots with one key one is freed. */
TEST_F(index, a_key_has_one_value_after_a_restart)
{
	struct nvmepeer_store_item items[2] = { 0 };
	struct nvmepeer_store_info info;
	uint32_t slots[2];

	ASSERT_EQ(0, nvmepeer_store_alloc(self->store, slots, 2));
	for (int i = 0; i < 2; i++) {
		items[i].slot = slots[i];
		items[i].length = PAGE;
		items[i].flags = NVMEPEER_STORE_PEER;
	}
	ASSERT_EQ(0, nvmepeer_store_commit(self->store, items, 2));
	close_index(self);
	ASSERT_EQ(0, open_index(self, 0));
	ASSERT_EQ(0, nvmepeer_store_info(self->store, &info, sizeof(info)));
	EXPECT_EQ(ALL - 1, info.free_slots);
}

struct worker {
	FIXTURE_DATA(index) *self;
	uint32_t number;
	uint32_t wrong;
};

static void *work(void *argument)
{
	struct worker *worker = argument;
	uint32_t seed = worker->number;

	for (int i = 0; i < 3000; i++) {
		uint32_t number = rand_r(&seed) % (3 * ALL);
		int result = i % 3 ? get(worker->self, number) : put(worker->self, number, 0);

		if (result == -ENOENT || result == -ENODEV)
			continue;
		worker->wrong += result != 0 && result != -ENOSPC;
	}
	return NULL;
}

TEST_F(index, threads_share_it)
{
	struct worker workers[4];
	pthread_t threads[4];

	for (uint32_t i = 0; i < 4; i++) {
		workers[i] = (struct worker){ self, i + 1, 0 };
		ASSERT_EQ(0, pthread_create(&threads[i], NULL, work, &workers[i]));
	}
	for (int i = 0; i < 4; i++) {
		pthread_join(threads[i], NULL);
		EXPECT_EQ(0, workers[i].wrong);
	}
}

TEST(a_key_depends_on_all_that_changes_the_bytes)
{
	struct nvmepeer_index_scope scope = {
		.size = sizeof(scope),
		.model = "model@revision",
		.layout = "NHD 16",
		.tensor_size = 8,
		.pipeline_size = 1,
		.layers = 80,
	}, other;
	struct {
		struct nvmepeer_index_scope known;
		uint64_t newer;
	} larger = { .newer = 1 };
	uint8_t key[NVMEPEER_STORE_TAG], changed[NVMEPEER_STORE_TAG];
	const size_t numbers[] = {
		offsetof(struct nvmepeer_index_scope, data_type),
		offsetof(struct nvmepeer_index_scope, tensor_rank),
		offsetof(struct nvmepeer_index_scope, tensor_size),
		offsetof(struct nvmepeer_index_scope, pipeline_rank),
		offsetof(struct nvmepeer_index_scope, pipeline_size),
		offsetof(struct nvmepeer_index_scope, first_layer),
		offsetof(struct nvmepeer_index_scope, layers),
	};

	ASSERT_EQ(0, nvmepeer_index_key(&scope, "block", 5, key));
	for (size_t i = 0; i < sizeof(numbers) / sizeof(numbers[0]); i++) {
		other = scope;
		(*(uint32_t *)((char *)&other + numbers[i]))++;
		ASSERT_EQ(0, nvmepeer_index_key(&other, "block", 5, changed));
		EXPECT_NE(0, memcmp(key, changed, sizeof(key)));
	}
	for (int i = 0; i < 4; i++) {
		other = scope;
		other.model = i == 0 ? "model@revisioN" : scope.model;
		other.layout = i == 1 ? "HND 16" : scope.layout;
		other.salt = i == 2 ? "" : NULL;
		ASSERT_EQ(0, nvmepeer_index_key(&other, i == 3 ? "blocK" : "block", 5, changed));
		EXPECT_NE(0, memcmp(key, changed, sizeof(key)));
	}
	ASSERT_EQ(0, nvmepeer_index_key(&scope, "block", 5, changed));
	EXPECT_EQ(0, memcmp(key, changed, sizeof(key)));
	larger.known = scope;
	larger.known.size = sizeof(larger);
	EXPECT_EQ(-E2BIG, nvmepeer_index_key(&larger.known, "block", 5, changed));
	larger.newer = 0;
	ASSERT_EQ(0, nvmepeer_index_key(&larger.known, "block", 5, changed));
	EXPECT_EQ(0, memcmp(key, changed, sizeof(key)));
	/* By Python's hashlib, from the same bytes. */
	EXPECT_EQ(0, memcmp(key, "\x46\x44\x97\x37\x78\xbd\x4e\x1f", 8));
	other = scope;
	other.model = NULL;
	EXPECT_EQ(-EINVAL, nvmepeer_index_key(&other, "block", 5, changed));
	other = scope;
	other.layout = NULL;
	EXPECT_EQ(-EINVAL, nvmepeer_index_key(&other, "block", 5, changed));
	other = scope;
	other.size = 4;
	EXPECT_EQ(-EINVAL, nvmepeer_index_key(&other, "block", 5, changed));
}

/* Of all lengths around the padding. */
TEST(keys_of_all_lengths_differ)
{
	struct nvmepeer_index_scope scope = { .size = sizeof(scope), .model = "m", .layout = "l" };
	static uint8_t keys[130][NVMEPEER_STORE_TAG];
	uint8_t block[130] = { 0 };

	for (size_t i = 0; i < 130; i++) {
		ASSERT_EQ(0, nvmepeer_index_key(&scope, block, i, keys[i]));
		for (size_t other = 0; other < i; other++)
			EXPECT_NE(0, memcmp(keys[i], keys[other], sizeof(keys[i])));
	}
}

TEST_HARNESS_MAIN
