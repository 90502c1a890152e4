// SPDX-License-Identifier: MIT OR GPL-2.0
/* Unit tests of the store on a model of disks: calls, their errors, I/O errors. */
#include <errno.h>
#include <pthread.h>
#include <string.h>
#include <unistd.h>

#include "kselftest_harness.h"

#include <nvmepeer_device.h>
#include <nvmepeer_store.h>

#include "hash.h"
#include "layout.h"
#include "model.h"

enum { MEMBERS = 2, SLOTS = 8, PAGE = 1500, START = 8192 };

static const char *const paths[] = { "disk0", "disk1", "disk2", "disk3" };

static int create(uint32_t members, uint32_t page, uint32_t slots, uint32_t flags)
{
	struct nvmepeer_store_options options = {
		.size = sizeof(options),
		.flags = flags,
		.page_bytes = page,
		.slots = slots,
	};

	return nvmepeer_store_create(paths, members, &options);
}

/* The last failure says the request, the limit and the fix. */
static bool explains(int error, const char *limit)
{
	struct nvmepeer_explanation why;

	nvmepeer_explain(&why, sizeof(why));
	return why.error == -error && why.what[0] && strstr(why.limit, limit);
}

FIXTURE(store)
{
	struct nvmepeer_store *store;
	struct nvmepeer_store_info info;
	struct nvmepeer_store_item item;
	uint32_t value[PAGE / 4];
	uint32_t read[PAGE / 4];
};

FIXTURE_SETUP(store)
{
	model_reset(1);
	ASSERT_EQ(0, create(MEMBERS, PAGE, SLOTS, 0));
	ASSERT_EQ(0, nvmepeer_store_open(paths, MEMBERS, 0, &self->store));
	for (uint32_t i = 0; i < PAGE / 4; i++)
		self->value[i] = i * 3;
	memset(&self->item, 0, sizeof(self->item));
	self->item.data = self->value;
	self->item.length = PAGE;
	memset(self->item.tag, 7, sizeof(self->item.tag));
}

FIXTURE_TEARDOWN(store)
{
	nvmepeer_store_close(self->store);
}

/* A value in a new slot. */
static int put(struct nvmepeer_store *store, struct nvmepeer_store_item *item)
{
	int error = nvmepeer_store_alloc(store, &item->slot, 1);

	if (!error)
		error = nvmepeer_store_write(store, item, 1);
	item->length = 0;
	return error ? error : nvmepeer_store_commit(store, item, 1);
}

static int reopen(struct nvmepeer_store **store, uint32_t flags)
{
	nvmepeer_store_close(*store);
	*store = NULL;
	return nvmepeer_store_open(paths, MEMBERS, flags, store);
}

TEST(checksums_do_not_change)
{
	uint8_t bytes[100];

	for (int i = 0; i < 100; i++)
		bytes[i] = (uint8_t)i;
	EXPECT_EQ(0xe3069283, hash_crc32c(0, "123456789", 9));
	EXPECT_EQ(hash_crc32c(0, "123456789", 9), hash_crc32c(hash_crc32c(0, "1234", 4), "56789", 5));
	for (size_t i = 4; i <= 100; i += 4) {
		uint64_t before = hash64(bytes, i);

		bytes[i - 1] ^= 1;
		EXPECT_NE(before, hash64(bytes, i));
		bytes[i - 1] ^= 1;
		bytes[0] ^= 0x80;
		EXPECT_NE(before, hash64(bytes, i));
		bytes[0] ^= 0x80;
	}
	EXPECT_EQ(0x8170580ee08f87b7u, hash64(bytes, 100));
}

TEST_F(store, value_is_found_after_a_restart)
{
	struct nvmepeer_store_item found[2];
	uint64_t position = 0, generation;

	ASSERT_EQ(0, put(self->store, &self->item));
	EXPECT_EQ(PAGE, self->item.length);
	generation = self->item.generation;
	EXPECT_EQ((1ull << 32) + 1, generation);
	ASSERT_EQ(0, reopen(&self->store, 0));
	ASSERT_EQ(1, nvmepeer_store_scan(self->store, &position, found, 2));
	EXPECT_EQ(0, nvmepeer_store_scan(self->store, &position, found + 1, 1));
	EXPECT_EQ(self->item.slot, found[0].slot);
	EXPECT_EQ(PAGE, found[0].length);
	EXPECT_EQ(generation, found[0].generation);
	EXPECT_EQ(0, memcmp(found[0].tag, self->item.tag, sizeof(found[0].tag)));
	found[0].data = self->read;
	ASSERT_EQ(0, nvmepeer_store_read(self->store, found, 1));
	EXPECT_EQ(0, memcmp(self->read, self->value, PAGE));
}

TEST_F(store, info_has_geometry_and_state)
{
	struct nvmepeer_store_info again;

	ASSERT_EQ(0, nvmepeer_store_info(self->store, &self->info, sizeof(self->info)));
	EXPECT_EQ(MEMBERS, self->info.members);
	EXPECT_EQ(PAGE, self->info.page_bytes);
	EXPECT_EQ(MODEL_BLOCK, self->info.block_bytes);
	EXPECT_EQ(MEMBERS * SLOTS, self->info.slots);
	EXPECT_EQ(3 * MODEL_BLOCK, self->info.slot_bytes);
	EXPECT_EQ(MEMBERS * SLOTS, self->info.free_slots);
	EXPECT_EQ(3, self->info.live);
	EXPECT_EQ(0, self->info.emptied);
	ASSERT_EQ(0, put(self->store, &self->item));
	ASSERT_EQ(0, reopen(&self->store, 0));
	ASSERT_EQ(0, nvmepeer_store_info(self->store, &again, sizeof(again)));
	EXPECT_EQ(MEMBERS * SLOTS - 1, again.free_slots);
	EXPECT_EQ(0, memcmp(again.uuid, self->info.uuid, sizeof(again.uuid)));
	EXPECT_EQ(-EINVAL, nvmepeer_store_info(self->store, &again, 8));
	EXPECT_TRUE(explains(-EINVAL, "8 bytes of at least"));
}

TEST_F(store, slots_take_turns_between_members)
{
	uint32_t slots[MEMBERS * SLOTS + 1];

	EXPECT_EQ(-ENOSPC, nvmepeer_store_alloc(self->store, slots, MEMBERS * SLOTS + 1));
	EXPECT_TRUE(explains(-ENOSPC, "17 slots; 16 are free"));
	ASSERT_EQ(0, nvmepeer_store_alloc(self->store, slots, MEMBERS * SLOTS));
	for (uint32_t i = 0; i < MEMBERS * SLOTS; i++)
		EXPECT_EQ(i, slots[i]);
	EXPECT_EQ(-ENOSPC, nvmepeer_store_alloc(self->store, slots, 1));
}

TEST_F(store, a_slot_without_a_commit_is_free_after_a_restart)
{
	ASSERT_EQ(0, nvmepeer_store_alloc(self->store, &self->item.slot, 1));
	ASSERT_EQ(0, nvmepeer_store_write(self->store, &self->item, 1));
	ASSERT_EQ(0, reopen(&self->store, 0));
	ASSERT_EQ(0, nvmepeer_store_info(self->store, &self->info, sizeof(self->info)));
	EXPECT_EQ(MEMBERS * SLOTS, self->info.free_slots);
}

TEST_F(store, states_of_a_slot_are_checked)
{
	struct nvmepeer_store_item item = self->item;

	/* Free. */
	EXPECT_EQ(-EINVAL, nvmepeer_store_write(self->store, &item, 1));
	EXPECT_TRUE(explains(-EINVAL,
			     "item 0, slot 0 of 16, 1500 bytes of at most 1500: it does not exist"));
	EXPECT_EQ(-EINVAL, nvmepeer_store_commit(self->store, &item, 1));
	EXPECT_EQ(-ENOENT, nvmepeer_store_read(self->store, &item, 1));
	EXPECT_TRUE(explains(-ENOENT, "no value"));
	EXPECT_EQ(-ENOENT, nvmepeer_store_pin(self->store, &item, 1));
	EXPECT_EQ(-ENOENT, nvmepeer_store_free(self->store, &item, 1, 0));
	/* Allocated. */
	ASSERT_EQ(0, nvmepeer_store_alloc(self->store, &item.slot, 1));
	EXPECT_EQ(-ENOENT, nvmepeer_store_read(self->store, &item, 1));
	item.length = 0;
	EXPECT_EQ(-EINVAL, nvmepeer_store_commit(self->store, &item, 1));
	EXPECT_EQ(-EINVAL, nvmepeer_store_write(self->store, &item, 1));
	item.length = PAGE + 4;
	EXPECT_EQ(-EINVAL, nvmepeer_store_commit(self->store, &item, 1));
	EXPECT_EQ(-EINVAL, nvmepeer_store_write(self->store, &item, 1));
	item.length = 6;
	EXPECT_EQ(-EINVAL, nvmepeer_store_write(self->store, &item, 1));
	EXPECT_EQ(-EINVAL, nvmepeer_store_commit(self->store, &item, 1));
	EXPECT_EQ(0, nvmepeer_store_free(self->store, &item, 1, 0));
	/* With a value. */
	ASSERT_EQ(0, put(self->store, &self->item));
	self->item.length = PAGE;
	EXPECT_EQ(-EINVAL, nvmepeer_store_write(self->store, &self->item, 1));
	EXPECT_EQ(-EINVAL, nvmepeer_store_commit(self->store, &self->item, 1));
	/* No such slot. */
	item.slot = MEMBERS * SLOTS;
	item.length = PAGE;
	EXPECT_EQ(-EINVAL, nvmepeer_store_write(self->store, &item, 1));
	EXPECT_EQ(-EINVAL, nvmepeer_store_read(self->store, &item, 1));
	EXPECT_EQ(-EINVAL, nvmepeer_store_pin(self->store, &item, 1));
	EXPECT_EQ(-EINVAL, nvmepeer_store_commit(self->store, &item, 1));
	EXPECT_EQ(-EINVAL, nvmepeer_store_free(self->store, &item, 1, 0));
	EXPECT_EQ(0, nvmepeer_store_commit(self->store, &item, 0));
}

TEST_F(store, a_later_value_is_a_miss)
{
	struct nvmepeer_store_item old;

	ASSERT_EQ(0, put(self->store, &self->item));
	old = self->item;
	ASSERT_EQ(0, nvmepeer_store_free(self->store, &self->item, 1, 0));
	do {
		self->item.length = PAGE;
		ASSERT_EQ(0, put(self->store, &self->item));
	} while (self->item.slot != old.slot);
	EXPECT_EQ(old.generation + 1, self->item.generation);
	old.data = self->read;
	EXPECT_EQ(-ENOENT, nvmepeer_store_read(self->store, &old, 1));
	EXPECT_EQ(-ENOENT, nvmepeer_store_pin(self->store, &old, 1));
	EXPECT_EQ(-ENOENT, nvmepeer_store_free(self->store, &old, 1, 0));
	self->item.data = self->read;
	EXPECT_EQ(0, nvmepeer_store_read(self->store, &self->item, 1));
}

TEST_F(store, free_waits_for_readers)
{
	struct nvmepeer_store_item pinned;
	uint32_t slots[MEMBERS * SLOTS];

	ASSERT_EQ(0, put(self->store, &self->item));
	pinned = self->item;
	ASSERT_EQ(0, nvmepeer_store_pin(self->store, &pinned, 1));
	EXPECT_EQ(0, memcmp(pinned.tag, self->item.tag, sizeof(pinned.tag)));
	EXPECT_EQ(-ETIMEDOUT, nvmepeer_store_free(self->store, &self->item, 1, 20));
	EXPECT_TRUE(explains(-ETIMEDOUT, "pinned"));
	/* It has no value for others, and is not free. */
	self->item.data = self->read;
	EXPECT_EQ(-ENOENT, nvmepeer_store_read(self->store, &self->item, 1));
	EXPECT_EQ(-ENOSPC, nvmepeer_store_alloc(self->store, slots, MEMBERS * SLOTS));
	nvmepeer_store_unpin(self->store, &pinned, 1);
	EXPECT_EQ(0, nvmepeer_store_free(self->store, &self->item, 1, 0));
	EXPECT_EQ(0, nvmepeer_store_alloc(self->store, slots, MEMBERS * SLOTS));
}

/* An index entry that is out of date does not free what has the slot now. */
TEST_F(store, a_stale_free_keeps_the_slot_of_its_next_owner)
{
	struct nvmepeer_store_item old, any;
	uint32_t slots[MEMBERS * SLOTS];

	ASSERT_EQ(0, put(self->store, &self->item));
	old = any = self->item;
	any.generation = 0;
	EXPECT_EQ(-ENOENT, nvmepeer_store_free(self->store, &any, 1, 0));
	ASSERT_EQ(0, nvmepeer_store_free(self->store, &self->item, 1, 0));
	ASSERT_EQ(0, nvmepeer_store_alloc(self->store, slots, MEMBERS * SLOTS));
	EXPECT_EQ(-ENOENT, nvmepeer_store_free(self->store, &old, 1, 0));
	EXPECT_EQ(-ENOSPC, nvmepeer_store_alloc(self->store, slots, 1));
	EXPECT_EQ(0, nvmepeer_store_free(self->store, &any, 1, 0));
}

/* After -ETIMEDOUT the list is freed again, without what others have allocated meanwhile. */
TEST_F(store, a_repeated_free_skips_what_is_freed)
{
	struct nvmepeer_store_item items[3] = { self->item, self->item, self->item }, pinned;
	uint32_t slots[MEMBERS * SLOTS];

	for (int i = 1; i < 3; i++)
		ASSERT_EQ(0, put(self->store, &items[i]));
	ASSERT_EQ(0, nvmepeer_store_alloc(self->store, &items[0].slot, 1));
	pinned = items[2];
	ASSERT_EQ(0, nvmepeer_store_pin(self->store, &pinned, 1));
	EXPECT_EQ(-ETIMEDOUT, nvmepeer_store_free(self->store, items, 3, 0));
	EXPECT_EQ(0, items[0].result);
	EXPECT_EQ(0, items[1].result);
	EXPECT_EQ(-ETIMEDOUT, items[2].result);
	ASSERT_EQ(0, nvmepeer_store_alloc(self->store, slots, MEMBERS * SLOTS - 1));
	EXPECT_EQ(-ETIMEDOUT, nvmepeer_store_free(self->store, items, 3, 0));
	nvmepeer_store_unpin(self->store, &pinned, 1);
	EXPECT_EQ(0, nvmepeer_store_free(self->store, items, 3, 0));
	EXPECT_EQ(0, nvmepeer_store_alloc(self->store, slots, 1));
	EXPECT_EQ(-ENOSPC, nvmepeer_store_alloc(self->store, slots, 1));
	EXPECT_EQ(-ENOENT, nvmepeer_store_pin(self->store, items, 1));
}

TEST_F(store, a_slot_is_committed_by_one_call_at_a_time)
{
	struct nvmepeer_store_item items[2];

	ASSERT_EQ(0, nvmepeer_store_alloc(self->store, &self->item.slot, 1));
	ASSERT_EQ(0, nvmepeer_store_write(self->store, &self->item, 1));
	items[0] = items[1] = self->item;
	EXPECT_EQ(-EBUSY, nvmepeer_store_commit(self->store, items, 2));
	EXPECT_EQ(0, items[0].result);
	EXPECT_EQ(-EBUSY, items[1].result);
}

/* Else it is the first that is allocated, and of a full store the only one. */
TEST_F(store, a_slot_that_cannot_be_written_is_withdrawn)
{
	uint32_t slots[MEMBERS * SLOTS];
	struct nvmepeer_store_item item = self->item;

	ASSERT_EQ(0, nvmepeer_store_alloc(self->store, &item.slot, 1));
	model_fail(item.slot % MEMBERS, IO_WRITE, 0, 2);
	EXPECT_EQ(-EIO, nvmepeer_store_write(self->store, &item, 1));
	EXPECT_EQ(-EIO, nvmepeer_store_write(self->store, &item, 1));
	EXPECT_EQ(0, nvmepeer_store_free(self->store, &item, 1, 0));
	EXPECT_EQ(-ENOSPC, nvmepeer_store_alloc(self->store, slots, MEMBERS * SLOTS));
	ASSERT_EQ(0, nvmepeer_store_alloc(self->store, slots, MEMBERS * SLOTS - 1));
	for (uint32_t i = 0; i < MEMBERS * SLOTS - 1; i++)
		EXPECT_NE(item.slot, slots[i]);
	ASSERT_EQ(0, reopen(&self->store, 0));
	/* A later write of the same owner has succeeded. */
	ASSERT_EQ(0, nvmepeer_store_alloc(self->store, &item.slot, 1));
	model_fail(item.slot % MEMBERS, IO_WRITE, 0, 1);
	EXPECT_EQ(-EIO, nvmepeer_store_write(self->store, &item, 1));
	EXPECT_EQ(0, nvmepeer_store_write(self->store, &item, 1));
	item.generation = 0;
	EXPECT_EQ(0, nvmepeer_store_free(self->store, &item, 1, 0));
	EXPECT_EQ(0, nvmepeer_store_alloc(self->store, slots, MEMBERS * SLOTS));
}

/* Frees a list whose first item is pinned by the test. */
struct waiting {
	struct nvmepeer_store *store;
	struct nvmepeer_store_item items[2];
	int result;
};

static void *free_waiting(void *argument)
{
	struct waiting *waiting = argument;

	waiting->result = nvmepeer_store_free(waiting->store, waiting->items, 2, 10000);
	return NULL;
}

/* Until the second item of a call in progress has no value any more. */
static void wait_for_free(struct waiting *waiting)
{
	struct nvmepeer_store_item item = waiting->items[1];

	while (!nvmepeer_store_pin(waiting->store, &item, 1)) {
		nvmepeer_store_unpin(waiting->store, &item, 1);
		usleep(1000);
	}
}

TEST_F(store, a_slot_is_freed_by_one_call_at_a_time)
{
	struct nvmepeer_store_item items[2] = { self->item, self->item }, pinned, again;
	struct waiting waiting = { .store = self->store };
	struct nvmepeer_store_report report;
	uint32_t slots[MEMBERS * SLOTS];
	pthread_t thread;

	for (int i = 0; i < 2; i++)
		ASSERT_EQ(0, put(self->store, &items[i]));
	memcpy(waiting.items, items, sizeof(items));
	pinned = items[0];
	again = items[1];
	ASSERT_EQ(0, nvmepeer_store_pin(self->store, &pinned, 1));
	ASSERT_EQ(0, pthread_create(&thread, NULL, free_waiting, &waiting));
	wait_for_free(&waiting);
	/* The call above has the only queue of the store. */
	model_no_queues(-EPERM);
	again.result = 1;
	EXPECT_EQ(-EPERM, nvmepeer_store_free(self->store, &again, 1, 0));
	EXPECT_EQ(-EPERM, again.result);
	EXPECT_EQ(-EPERM, nvmepeer_store_read(self->store, &again, 1));
	EXPECT_EQ(-EPERM, again.result);
	again.result = 1;
	EXPECT_EQ(-EPERM, nvmepeer_store_commit(self->store, &again, 1));
	EXPECT_EQ(-EPERM, again.result);
	EXPECT_EQ(-EPERM, nvmepeer_store_check(self->store, &report, sizeof(report)));
	model_no_queues(0);
	EXPECT_EQ(-EBUSY, nvmepeer_store_free(self->store, &again, 1, 0));
	EXPECT_EQ(-ENOSPC, nvmepeer_store_alloc(self->store, slots, MEMBERS * SLOTS - 1));
	nvmepeer_store_unpin(self->store, &pinned, 1);
	ASSERT_EQ(0, pthread_join(thread, NULL));
	EXPECT_EQ(0, waiting.result);
	EXPECT_EQ(0, nvmepeer_store_alloc(self->store, slots, MEMBERS * SLOTS));
}

/* A pin is in the flags of its item; its result may change, and it ends once. */
TEST_F(store, a_pin_ends_once)
{
	struct nvmepeer_store_item pinned, copy, other;
	uint32_t slots[MEMBERS * SLOTS];

	ASSERT_EQ(0, put(self->store, &self->item));
	pinned = self->item;
	ASSERT_EQ(0, nvmepeer_store_pin(self->store, &pinned, 1));
	copy = pinned;
	pinned.result = -EIO;
	other = pinned;
	other.slot = MEMBERS * SLOTS;
	nvmepeer_store_unpin(self->store, &other, 1);
	other = pinned;
	other.generation++;
	nvmepeer_store_unpin(self->store, &other, 1);
	EXPECT_EQ(-ETIMEDOUT, nvmepeer_store_free(self->store, &self->item, 1, 0));
	nvmepeer_store_unpin(self->store, &pinned, 1);
	nvmepeer_store_unpin(self->store, &pinned, 1);
	EXPECT_EQ(0, nvmepeer_store_free(self->store, &self->item, 1, 0));
	nvmepeer_store_unpin(self->store, &copy, 1);
	ASSERT_EQ(0, nvmepeer_store_alloc(self->store, slots, MEMBERS * SLOTS));
	self->item.length = PAGE;
	EXPECT_EQ(0, nvmepeer_store_write(self->store, &self->item, 1));
}

TEST_F(store, a_commit_keeps_the_checksum_of_the_write)
{
	struct nvmepeer_store_item item = self->item;
	struct nvmepeer_store_report report;

	ASSERT_EQ(0, nvmepeer_store_alloc(self->store, &item.slot, 1));
	ASSERT_EQ(0, nvmepeer_store_write(self->store, &item, 1));
	/* What is refused changes nothing. */
	item.length = PAGE - 4;
	EXPECT_EQ(-EINVAL, nvmepeer_store_commit(self->store, &item, 1));
	item.flags = 1u << 30;
	EXPECT_EQ(-EINVAL, nvmepeer_store_commit(self->store, &item, 1));
	item.flags = NVMEPEER_STORE_PEER;
	item.length = PAGE + 4;
	EXPECT_EQ(-EINVAL, nvmepeer_store_commit(self->store, &item, 1));
	item.flags = 0;
	item.length = PAGE;
	ASSERT_EQ(0, nvmepeer_store_commit(self->store, &item, 1));
	ASSERT_EQ(0, nvmepeer_store_check(self->store, &report, sizeof(report)));
	EXPECT_EQ(1, report.verified);
}

/* The entry may be durable: the slot is free when that is known not to come back. */
TEST(a_failed_commit_of_the_only_member_is_not_freed)
{
	struct nvmepeer_store_item item = { .length = 4 };
	struct nvmepeer_store *store;
	uint32_t value[1] = { 0 }, failed = 0;

	for (uint64_t seed = 0; seed < 50; seed++) {
		uint64_t position = 0;
		int freed;

		model_reset(seed);
		ASSERT_EQ(0, create(1, PAGE, SLOTS, 0));
		ASSERT_EQ(0, nvmepeer_store_open(paths, 1, 0, &store));
		item = (struct nvmepeer_store_item){ .length = 4, .data = value };
		ASSERT_EQ(0, nvmepeer_store_alloc(store, &item.slot, 1));
		ASSERT_EQ(0, nvmepeer_store_write(store, &item, 1));
		model_arm(MODEL_CUT, 2, 1);
		if (nvmepeer_store_commit(store, &item, 1)) {
			freed = nvmepeer_store_free(store, &item, 1, 0);
			nvmepeer_store_close(store);
			model_start();
			ASSERT_EQ(0, nvmepeer_store_open(paths, 1, 0, &store));
			EXPECT_FALSE(!freed && nvmepeer_store_scan(store, &position, &item, 1));
			EXPECT_EQ(-ENODEV, freed);
			failed++;
		}
		nvmepeer_store_close(store);
	}
	EXPECT_NE(0, failed);
}

TEST_F(store, lists_are_of_slots_that_the_caller_has)
{
	struct nvmepeer_store_item item = self->item, stale;
	struct nvmepeer_list_item list[1];
	struct nvmepeer_store_place place;

	/* Free, and of a namespace. */
	EXPECT_EQ(-EINVAL, nvmepeer_store_fill_list(self->store, 0, &item, list, 1));
	EXPECT_TRUE(explains(-EINVAL, "item 0: slot 0"));
	ASSERT_EQ(0, nvmepeer_store_place(self->store, 0, &place, sizeof(place)));
	EXPECT_EQ(1, place.nsid);
	/* Allocated. */
	ASSERT_EQ(0, nvmepeer_store_alloc(self->store, &item.slot, 1));
	EXPECT_EQ(0, nvmepeer_store_fill_list(self->store, 0, &item, list, 1));
	stale = item;
	stale.generation = 9;
	EXPECT_EQ(-EINVAL, nvmepeer_store_fill_list(self->store, 0, &stale, list, 1));
	/* With a value, which is not pinned, is pinned, and is longer than it is. */
	ASSERT_EQ(0, nvmepeer_store_write(self->store, &item, 1));
	ASSERT_EQ(0, nvmepeer_store_commit(self->store, &item, 1));
	EXPECT_EQ(-EINVAL, nvmepeer_store_fill_list(self->store, 0, &item, list, 1));
	ASSERT_EQ(0, nvmepeer_store_pin(self->store, &item, 1));
	EXPECT_EQ(0, nvmepeer_store_fill_list(self->store, 0, &item, list, 1));
	stale = item;
	stale.generation--;
	EXPECT_EQ(-EINVAL, nvmepeer_store_fill_list(self->store, 0, &stale, list, 1));
	nvmepeer_store_unpin(self->store, &item, 1);
	/* dm, LVM, md, loop, or a file. */
	model_namespace(0, 0);
	ASSERT_EQ(0, reopen(&self->store, 0));
	EXPECT_EQ(-EOPNOTSUPP, nvmepeer_store_place(self->store, 0, &place, sizeof(place)));
	EXPECT_TRUE(explains(-EOPNOTSUPP, "member 0"));
	EXPECT_EQ(-EOPNOTSUPP, nvmepeer_store_fill_list(self->store, 0, &item, list, 1));
	EXPECT_EQ(0, nvmepeer_store_place(self->store, 1, &place, sizeof(place)));
}

TEST_F(store, items_of_a_list_fail_by_themselves)
{
	struct nvmepeer_store_item items[4] = { self->item, self->item, self->item, self->item };

	ASSERT_EQ(0, put(self->store, &items[0]));
	ASSERT_EQ(0, put(self->store, &items[2]));
	items[1].slot = 9;
	items[3].slot = items[2].slot;
	for (int i = 0; i < 4; i++)
		items[i].data = self->read;
	EXPECT_EQ(-ENOENT, nvmepeer_store_read(self->store, items, 4));
	EXPECT_EQ(0, items[0].result);
	EXPECT_EQ(-ENOENT, items[1].result);
	EXPECT_EQ(0, items[2].result);
	/* Pinned items only are unpinned. */
	EXPECT_EQ(-ENOENT, nvmepeer_store_pin(self->store, items, 3));
	nvmepeer_store_unpin(self->store, items, 3);
	/* The second time it is freed already. */
	items[1] = items[0];
	EXPECT_EQ(-EBUSY, nvmepeer_store_free(self->store, items, 2, 0));
	EXPECT_EQ(0, items[0].result);
}

TEST_F(store, values_of_a_peer_have_no_checksum)
{
	struct nvmepeer_store_item items[2] = { self->item, self->item };
	struct nvmepeer_store_report report;
	struct nvmepeer_list_item list[2] = { { .memory = 5, .offset = 64 } };
	struct nvmepeer_store_place place;

	ASSERT_EQ(0, put(self->store, &items[0]));
	ASSERT_EQ(0, nvmepeer_store_alloc(self->store, &items[1].slot, 1));
	ASSERT_EQ(0, nvmepeer_store_place(self->store, items[1].slot, &place, sizeof(place)));
	EXPECT_EQ(items[1].slot % MEMBERS, place.member);
	EXPECT_EQ(3, place.blocks);
	EXPECT_EQ(MODEL_BLOCK, place.block_bytes);
	ASSERT_EQ(0, nvmepeer_store_fill_list(self->store, place.member, &items[1], list, 1));
	EXPECT_EQ(place.lba, list[0].lba);
	EXPECT_EQ(PAGE, list[0].bytes);
	EXPECT_EQ(5, list[0].memory);
	EXPECT_EQ(64, list[0].offset);
	model_peer_write(place.member, list[0].lba * MODEL_BLOCK - START, self->value, PAGE);
	EXPECT_EQ(-EINVAL, nvmepeer_store_commit(self->store, &items[1], 1));
	items[1].flags = NVMEPEER_STORE_PEER;
	ASSERT_EQ(0, nvmepeer_store_commit(self->store, &items[1], 1));
	items[1].data = self->read;
	ASSERT_EQ(0, nvmepeer_store_read(self->store, &items[1], 1));
	EXPECT_EQ(0, memcmp(self->read, self->value, PAGE));
	ASSERT_EQ(0, nvmepeer_store_check(self->store, &report, sizeof(report)));
	EXPECT_EQ(2, report.values);
	EXPECT_EQ(1, report.verified);
	EXPECT_EQ(1, report.unverified);
	EXPECT_EQ(0, report.damaged_values);
	EXPECT_EQ(-EINVAL, nvmepeer_store_check(self->store, &report, 4));
}

TEST_F(store, lists_are_of_one_member)
{
	struct nvmepeer_store_item items[2] = { { .slot = 0, .length = 8 }, { .slot = 1, .length = 8 } };
	struct nvmepeer_list_item list[2];
	struct nvmepeer_store_place place;
	uint32_t slots[2];

	ASSERT_EQ(0, nvmepeer_store_alloc(self->store, slots, 2));
	EXPECT_EQ(-EINVAL, nvmepeer_store_fill_list(self->store, 0, items, list, 2));
	EXPECT_TRUE(explains(-EINVAL, "item 1: slot 1 of member 1"));
	EXPECT_EQ(-EINVAL, nvmepeer_store_fill_list(self->store, MEMBERS, items, list, 1));
	items[0].length = 0;
	EXPECT_EQ(-EINVAL, nvmepeer_store_fill_list(self->store, 0, items, list, 1));
	items[0].slot = MEMBERS * SLOTS;
	EXPECT_EQ(-EINVAL, nvmepeer_store_fill_list(self->store, 0, items, list, 1));
	EXPECT_EQ(-EINVAL, nvmepeer_store_place(self->store, MEMBERS * SLOTS, &place, sizeof(place)));
	EXPECT_TRUE(explains(-EINVAL, "slot 16 of 16"));
	EXPECT_EQ(-EINVAL, nvmepeer_store_place(self->store, 0, &place, 4));
}

TEST_F(store, damage_is_a_miss)
{
	struct nvmepeer_store_report report;
	struct nvmepeer_store_item items[2] = { self->item, self->item };
	struct nvmepeer_store_place place;
	uint8_t entry[LAYOUT_ENTRY];
	uint32_t word = 1;

	ASSERT_EQ(0, put(self->store, &items[0]));
	ASSERT_EQ(0, put(self->store, &items[1]));
	ASSERT_EQ(0, nvmepeer_store_place(self->store, items[0].slot, &place, sizeof(place)));
	model_peer_write(place.member, place.lba * MODEL_BLOCK - START + 600, &word, 4);
	items[0].data = self->read;
	EXPECT_EQ(-EILSEQ, nvmepeer_store_read(self->store, items, 1));
	EXPECT_TRUE(explains(-EILSEQ, "checksum"));
	ASSERT_EQ(0, nvmepeer_store_check(self->store, &report, sizeof(report)));
	EXPECT_EQ(1, report.verified);
	EXPECT_EQ(1, report.damaged_values);
	EXPECT_EQ(0, report.damaged_entries);
	/* The entry of slot 0, a copy of it in another place, and the tag of slot 1. */
	model_peer_read(0, 4096, entry, sizeof(entry));
	model_peer_write(0, 4096 + 3 * LAYOUT_ENTRY, entry, sizeof(entry));
	model_peer_write(0, 4096 + 16, &word, 4);
	model_peer_write(1, 4096 + 64 + 8, &word, 4);
	ASSERT_EQ(0, reopen(&self->store, 0));
	ASSERT_EQ(0, nvmepeer_store_check(self->store, &report, sizeof(report)));
	EXPECT_EQ(0, report.values);
	EXPECT_EQ(3, report.damaged_entries);
	ASSERT_EQ(0, nvmepeer_store_info(self->store, &self->info, sizeof(self->info)));
	EXPECT_EQ(MEMBERS * SLOTS, self->info.free_slots);
	/* The open has cleared them, durably. */
	model_end(MODEL_CUT, 3);
	model_start();
	ASSERT_EQ(0, reopen(&self->store, NVMEPEER_STORE_READ_ONLY));
	ASSERT_EQ(0, nvmepeer_store_check(self->store, &report, sizeof(report)));
	EXPECT_EQ(0, report.damaged_entries);
}

TEST_F(store, an_error_of_a_value_fails_its_item_only)
{
	struct nvmepeer_store_item items[2] = { self->item, self->item };

	model_fail(0, IO_WRITE, 0, 1);
	EXPECT_EQ(-EIO, put(self->store, &items[0]));
	EXPECT_TRUE(explains(-EIO, "the disk reports an error"));
	items[0].length = PAGE;
	EXPECT_EQ(0, nvmepeer_store_write(self->store, &items[0], 1));
	items[0].length = 0;
	EXPECT_EQ(0, nvmepeer_store_commit(self->store, &items[0], 1));
	items[0].data = self->read;
	model_fail(0, IO_READ, 0, 1);
	EXPECT_EQ(-EIO, nvmepeer_store_read(self->store, &items[0], 1));
	EXPECT_EQ(0, nvmepeer_store_read(self->store, &items[0], 1));
	ASSERT_EQ(0, nvmepeer_store_info(self->store, &self->info, sizeof(self->info)));
	EXPECT_EQ(3, self->info.live);
}

/* By a Flush, by a write of the table. */
FIXTURE(loss)
{
	struct nvmepeer_store *store;
	struct nvmepeer_store_item items[4];
	uint32_t value[PAGE / 4];
};

FIXTURE_VARIANT(loss)
{
	enum io_kind kind;
};

FIXTURE_VARIANT_ADD(loss, flush) { IO_FLUSH };
FIXTURE_VARIANT_ADD(loss, table) { IO_WRITE_FUA };

FIXTURE_SETUP(loss)
{
	model_reset(2);
	ASSERT_EQ(0, create(MEMBERS, PAGE, SLOTS, 0));
	ASSERT_EQ(0, nvmepeer_store_open(paths, MEMBERS, 0, &self->store));
	for (int i = 0; i < 4; i++) {
		memset(&self->items[i], 0, sizeof(self->items[i]));
		self->items[i].data = self->value;
		self->items[i].length = PAGE;
	}
	for (int i = 0; i < 2; i++)
		ASSERT_EQ(0, put(self->store, &self->items[i]));
	/* Slot 2 is on member 0. */
	model_fail(0, variant->kind, 0, 1000);
	ASSERT_EQ(-EIO, put(self->store, &self->items[2]));
}

FIXTURE_TEARDOWN(loss)
{
	nvmepeer_store_close(self->store);
}

TEST_F(loss, a_lost_member_is_misses)
{
	struct nvmepeer_list_item list[1];
	struct nvmepeer_store_place place;
	struct nvmepeer_store_info info;
	uint64_t position = 0;
	uint32_t slots[SLOTS];

	ASSERT_EQ(0, nvmepeer_store_info(self->store, &info, sizeof(info)));
	EXPECT_EQ(2, info.live);
	EXPECT_EQ(SLOTS - 1, info.free_slots);
	EXPECT_EQ(-ENODEV, nvmepeer_store_read(self->store, &self->items[0], 1));
	EXPECT_EQ(-ENODEV, nvmepeer_store_pin(self->store, &self->items[0], 1));
	EXPECT_EQ(-ENODEV, nvmepeer_store_place(self->store, self->items[0].slot, &place,
						sizeof(place)));
	EXPECT_EQ(-ENODEV, nvmepeer_store_fill_list(self->store, 0, &self->items[0], list, 1));
	EXPECT_EQ(-ENODEV, nvmepeer_store_commit(self->store, &self->items[2], 1));
	self->items[2].length = PAGE;
	EXPECT_EQ(-ENODEV, nvmepeer_store_write(self->store, &self->items[2], 1));
	EXPECT_EQ(0, nvmepeer_store_free(self->store, &self->items[2], 1, 0));
	EXPECT_EQ(0, nvmepeer_store_read(self->store, &self->items[1], 1));
	EXPECT_EQ(1, nvmepeer_store_scan(self->store, &position, &self->items[3], 1));
	EXPECT_EQ(self->items[1].slot, self->items[3].slot);
	ASSERT_EQ(0, nvmepeer_store_alloc(self->store, slots, SLOTS - 1));
	for (uint32_t i = 0; i < SLOTS - 1; i++)
		EXPECT_EQ(1, slots[i] % MEMBERS);
}

TEST_F(loss, a_lost_member_is_emptied_when_it_comes_back)
{
	struct nvmepeer_store_info info;
	uint64_t position = 0;

	EXPECT_EQ(0, nvmepeer_store_free(self->store, &self->items[0], 1, 0));
	model_end(MODEL_CUT, 3);
	model_start();
	model_fail(0, IO_FLUSH, 0, 0);
	model_fail(0, IO_WRITE_FUA, 0, 0);
	/* For reading only it is misses, and stays as it is. */
	ASSERT_EQ(0, reopen(&self->store, NVMEPEER_STORE_READ_ONLY));
	EXPECT_EQ(1, nvmepeer_store_scan(self->store, &position, &self->items[3], 1));
	ASSERT_EQ(0, reopen(&self->store, 0));
	ASSERT_EQ(0, nvmepeer_store_info(self->store, &info, sizeof(info)));
	EXPECT_EQ(1, info.emptied);
	EXPECT_EQ(3, info.live);
	EXPECT_EQ(2 * SLOTS - 1, info.free_slots);
	ASSERT_EQ(0, reopen(&self->store, 0));
	ASSERT_EQ(0, nvmepeer_store_info(self->store, &info, sizeof(info)));
	EXPECT_EQ(0, info.emptied);
}

TEST_F(loss, without_members_nothing_can_be_freed)
{
	model_fail(1, IO_WRITE_FUA, 0, 1000);
	EXPECT_EQ(-EIO, nvmepeer_store_free(self->store, &self->items[1], 1, 0));
	EXPECT_EQ(-ENODEV, nvmepeer_store_free(self->store, &self->items[1], 1, 0));
	EXPECT_EQ(-ENODEV, nvmepeer_store_free(self->store, &self->items[0], 1, 0));
	EXPECT_EQ(-ENOSPC, nvmepeer_store_alloc(self->store, &self->items[3].slot, 1));
}

/* Their free had nothing to write, so the new epoch of the others has to be durable. */
TEST(freed_values_of_a_lost_member_stay_freed)
{
	struct nvmepeer_store_item items[2];
	uint32_t value[1] = { 0 };
	struct nvmepeer_store *store;

	for (uint64_t seed = 0; seed < 20; seed++) {
		uint64_t position = 0;

		model_reset(seed);
		memset(items, 0, sizeof(items));
		ASSERT_EQ(0, create(MEMBERS, PAGE, SLOTS, 0));
		ASSERT_EQ(0, nvmepeer_store_open(paths, MEMBERS, 0, &store));
		for (int i = 0; i < 2; i++) {
			items[i].data = value;
			items[i].length = 4;
			ASSERT_EQ(0, put(store, &items[i]));
		}
		model_end(MODEL_CUT, 1);
		EXPECT_EQ(0, nvmepeer_store_free(store, &items[0], 1, 0));
		model_end(MODEL_CUT, 2);
		model_start();
		ASSERT_EQ(0, reopen(&store, 0));
		EXPECT_EQ(1, nvmepeer_store_scan(store, &position, items, 2));
		EXPECT_EQ(1, items[0].slot % MEMBERS);
		nvmepeer_store_close(store);
	}
}

TEST_F(store, a_missing_member)
{
	struct nvmepeer_store_item items[2] = { self->item, self->item };
	uint64_t position = 0;

	ASSERT_EQ(0, put(self->store, &items[0]));
	ASSERT_EQ(0, put(self->store, &items[1]));
	nvmepeer_store_close(self->store);
	self->store = NULL;
	EXPECT_EQ(-ENODEV, nvmepeer_store_open(paths + 1, 1, 0, &self->store));
	EXPECT_TRUE(explains(-ENODEV, "member 0 of 2 is not among the paths"));
	ASSERT_EQ(0, nvmepeer_store_open(paths + 1, 1, NVMEPEER_STORE_DEGRADED, &self->store));
	EXPECT_EQ(1, nvmepeer_store_scan(self->store, &position, &self->item, 1));
	EXPECT_EQ(items[1].slot, self->item.slot);
	EXPECT_EQ(-ENODEV, nvmepeer_store_read(self->store, &items[0], 1));
	EXPECT_EQ(-ENODEV, nvmepeer_store_commit(self->store, &items[0], 1));
	EXPECT_EQ(-ENODEV, nvmepeer_store_write(self->store, &items[0], 1));
	EXPECT_EQ(0, nvmepeer_store_free(self->store, &items[0], 1, 0));
	/* Now the store has gone on without it. */
	nvmepeer_store_close(self->store);
	self->store = NULL;
	ASSERT_EQ(0, nvmepeer_store_open(paths + 1, 1, 0, &self->store));
	ASSERT_EQ(0, reopen(&self->store, 0));
	ASSERT_EQ(0, nvmepeer_store_info(self->store, &self->info, sizeof(self->info)));
	EXPECT_EQ(1, self->info.emptied);
}

TEST_F(store, members_that_went_on_apart_are_not_merged)
{
	struct nvmepeer_store_item items[2] = { self->item, self->item };

	ASSERT_EQ(0, put(self->store, &items[0]));
	ASSERT_EQ(0, put(self->store, &items[1]));
	for (int i = 0; i < MEMBERS; i++) {
		nvmepeer_store_close(self->store);
		self->store = NULL;
		ASSERT_EQ(0, nvmepeer_store_open(paths + i, 1, NVMEPEER_STORE_DEGRADED, &self->store));
	}
	for (uint32_t flags = 0; flags <= NVMEPEER_STORE_READ_ONLY; flags += NVMEPEER_STORE_DEGRADED) {
		EXPECT_EQ(-ESTALE, reopen(&self->store, flags));
		EXPECT_TRUE(explains(-ESTALE, "disk0"));
		EXPECT_TRUE(explains(-ESTALE, "disk1"));
	}
	/* The operator chooses. */
	EXPECT_EQ(0, nvmepeer_store_open(paths, 1, NVMEPEER_STORE_DEGRADED, &self->store));
}

/*
 * Member 1 alone has the epoch without member 0, whose cause, a power cut, has ended the
 * call; then 0 and 2 go on.  Member 1 has done nothing without 2, so it is the one to be
 * emptied.
 */
TEST(an_epoch_that_one_member_has_decides_nothing)
{
	uint32_t value[PAGE / 4] = { 0 }, apart = 0;
	struct nvmepeer_store *store;

	for (uint64_t seed = 0; seed < 100; seed++) {
		struct nvmepeer_store_item items[3] = { 0 }, found;
		struct nvmepeer_store_info info;
		uint64_t position = 0;

		model_reset(seed);
		ASSERT_EQ(0, create(3, PAGE, SLOTS, 0));
		ASSERT_EQ(0, nvmepeer_store_open(paths, 3, 0, &store));
		for (int i = 0; i < 3; i++) {
			items[i].data = value;
			items[i].length = PAGE;
			ASSERT_EQ(0, put(store, &items[i]));
		}
		model_end(MODEL_CUT, 1);
		model_arm(MODEL_CUT, 3, 7);
		nvmepeer_store_free(store, &items[0], 1, 0);
		model_end(MODEL_CUT, 7);
		nvmepeer_store_close(store);
		model_start();
		model_hide(1, -ENOENT);
		ASSERT_EQ(0, nvmepeer_store_open(paths, 3, NVMEPEER_STORE_DEGRADED, &store));
		ASSERT_EQ(0, nvmepeer_store_free(store, &items[1], 1, 0));
		nvmepeer_store_close(store);
		model_hide(1, 0);
		ASSERT_EQ(0, nvmepeer_store_open(paths, 3, 0, &store));
		ASSERT_EQ(0, nvmepeer_store_info(store, &info, sizeof(info)));
		EXPECT_EQ(2, info.emptied);
		while (nvmepeer_store_scan(store, &position, &found, 1))
			EXPECT_NE(items[1].slot, found.slot);
		apart++;
		nvmepeer_store_close(store);
	}
	EXPECT_EQ(100, apart);
}

/* Else the next epoch would be its grandchild, and it would be emptied. */
TEST(a_member_that_an_epoch_has_not_reached_gets_it_at_open)
{
	struct nvmepeer_store *store;
	uint8_t block[MODEL_BLOCK];
	struct layout layouts[2];

	for (uint64_t seed = 0; seed < 10; seed++) {
		model_reset(seed);
		ASSERT_EQ(0, create(3, PAGE, SLOTS, 0));
		model_fail(1, IO_WRITE_FUA, 0, 1);
		EXPECT_EQ(-EIO, nvmepeer_store_open(paths, 2, NVMEPEER_STORE_DEGRADED, &store));
		EXPECT_TRUE(explains(-EIO, "disk1: Input/output error"));
		ASSERT_EQ(0, nvmepeer_store_open(paths, 2, 0, &store));
		nvmepeer_store_close(store);
		for (uint32_t i = 0; i < 2; i++) {
			model_peer_read(i, 0, block, sizeof(block));
			ASSERT_TRUE(layout_decode(&layouts[i], block));
		}
		EXPECT_EQ(layouts[0].epoch, layouts[1].epoch);
		EXPECT_EQ(3, layouts[1].live);
	}
}

/* Member 0 has an epoch with 1, 1 a later one with 2, and 2 the latest, alone. */
TEST(a_chain_of_epochs_is_followed)
{
	static const uint32_t hidden[] = { 4, 1, 3 };
	struct nvmepeer_store_info info;
	struct nvmepeer_store *store;

	model_reset(8);
	ASSERT_EQ(0, create(3, PAGE, SLOTS, 0));
	for (int i = 0; i < 3; i++) {
		for (uint32_t disk = 0; disk < 3; disk++)
			model_hide(disk, hidden[i] >> disk & 1 ? -ENOENT : 0);
		ASSERT_EQ(0, nvmepeer_store_open(paths, 3, NVMEPEER_STORE_DEGRADED, &store));
		nvmepeer_store_close(store);
	}
	model_hide(0, 0);
	model_hide(1, 0);
	ASSERT_EQ(0, nvmepeer_store_open(paths, 3, 0, &store));
	ASSERT_EQ(0, nvmepeer_store_info(store, &info, sizeof(info)));
	EXPECT_EQ(3, info.emptied);
	EXPECT_EQ(7, info.live);
	nvmepeer_store_close(store);
}

/* An open that is cut has emptied member 1, or has not: the next one need not do it again. */
TEST(a_member_that_was_emptied_gets_the_epoch_first)
{
	struct nvmepeer_store *store;
	uint8_t block[MODEL_BLOCK];
	struct layout layouts[2];
	uint32_t between = 0;

	for (uint64_t seed = 0; seed < 60; seed++) {
		model_reset(seed);
		ASSERT_EQ(0, create(2, PAGE, SLOTS, 0));
		ASSERT_EQ(0, nvmepeer_store_open(paths, 1, NVMEPEER_STORE_DEGRADED, &store));
		nvmepeer_store_close(store);
		model_arm(MODEL_CUT, 1 + (uint32_t)seed % 6, 3);
		if (!nvmepeer_store_open(paths, 2, 0, &store))
			nvmepeer_store_close(store);
		model_end(MODEL_CUT, 3);
		model_start();
		for (uint32_t i = 0; i < 2; i++) {
			model_peer_read(i, 0, block, sizeof(block));
			ASSERT_TRUE(layout_decode(&layouts[i], block));
		}
		EXPECT_TRUE(layouts[0].live == 1 || layouts[0].epoch == layouts[1].epoch);
		between += layouts[0].epoch < layouts[1].epoch;
	}
	EXPECT_NE(0, between);
}

/* Of one whose table cannot be read, too. */
TEST_F(store, a_member_whose_table_cannot_be_read_is_missing)
{
	struct nvmepeer_store_item items[2] = { self->item, self->item };

	for (int i = 0; i < 2; i++)
		ASSERT_EQ(0, put(self->store, &items[i]));
	/* Of all members: nothing is given up. */
	for (uint32_t i = 0; i < MEMBERS; i++)
		model_fail(i, IO_READ, 1, 1);
	EXPECT_EQ(-EIO, reopen(&self->store, NVMEPEER_STORE_DEGRADED));
	EXPECT_TRUE(explains(-EIO, "disk1: Input/output error"));
	model_fail(1, IO_READ, 1, 1);
	ASSERT_EQ(0, reopen(&self->store, NVMEPEER_STORE_DEGRADED | NVMEPEER_STORE_READ_ONLY));
	model_fail(1, IO_READ, 1, 1);
	ASSERT_EQ(0, reopen(&self->store, NVMEPEER_STORE_DEGRADED));
	ASSERT_EQ(0, nvmepeer_store_info(self->store, &self->info, sizeof(self->info)));
	EXPECT_EQ(1, self->info.live);
	EXPECT_EQ(0, self->info.emptied);
	for (int i = 0; i < 2; i++)
		items[i].data = self->read;
	EXPECT_EQ(-ENODEV, nvmepeer_store_read(self->store, items, 2));
	EXPECT_EQ(0, items[0].result);
	EXPECT_EQ(0, nvmepeer_store_free(self->store, &items[1], 1, 0));
	ASSERT_EQ(0, reopen(&self->store, 0));
	ASSERT_EQ(0, nvmepeer_store_info(self->store, &self->info, sizeof(self->info)));
	EXPECT_EQ(3, self->info.live);
	EXPECT_EQ(2, self->info.emptied);
}

/* A disk that is there has all its values: the store does not go on without it. */
TEST_F(store, only_absent_and_broken_members_are_missing)
{
	static const int others[] = { EMFILE, ENFILE, ENOMEM, EBUSY, EACCES, EPERM, ENOTBLK };
	static const int absent[] = { ENOENT, ENXIO, ENODEV, EIO, ENODATA };
	struct nvmepeer_store *other;

	nvmepeer_store_close(self->store);
	self->store = NULL;
	for (uint32_t i = 0; i < sizeof(others) / sizeof(others[0]); i++) {
		model_hide(1, -others[i]);
		EXPECT_EQ(-others[i], nvmepeer_store_open(paths, MEMBERS, NVMEPEER_STORE_DEGRADED,
							  &other));
	}
	model_hide(1, 0);
	model_no_queues(-EMFILE);
	EXPECT_EQ(-EMFILE, nvmepeer_store_open(paths, MEMBERS, NVMEPEER_STORE_DEGRADED, &other));
	model_no_queues(0);
	model_bytes(1, 8192);
	EXPECT_EQ(-EINVAL, nvmepeer_store_open(paths, MEMBERS, NVMEPEER_STORE_DEGRADED, &other));
	model_bytes(1, MODEL_BYTES);
	ASSERT_EQ(0, nvmepeer_store_open(paths, MEMBERS, 0, &other));
	ASSERT_EQ(0, nvmepeer_store_info(other, &self->info, sizeof(self->info)));
	EXPECT_EQ(0, self->info.emptied);
	nvmepeer_store_close(other);
	for (uint32_t i = 0; i < sizeof(absent) / sizeof(absent[0]); i++) {
		model_hide(1, -absent[i]);
		ASSERT_EQ(0, nvmepeer_store_open(paths, MEMBERS, NVMEPEER_STORE_DEGRADED, &other));
		nvmepeer_store_close(other);
	}
	model_hide(1, 0);
}

/* The generation that a member has had before it was emptied is not used again. */
TEST_F(store, generations_go_on_after_emptying)
{
	struct nvmepeer_store_item old, item = self->item;

	ASSERT_EQ(0, put(self->store, &item));
	old = item;
	nvmepeer_store_close(self->store);
	self->store = NULL;
	ASSERT_EQ(0, nvmepeer_store_open(paths + 1, 1, NVMEPEER_STORE_DEGRADED, &self->store));
	ASSERT_EQ(0, reopen(&self->store, 0));
	do {
		item.length = PAGE;
		ASSERT_EQ(0, put(self->store, &item));
	} while (item.slot != old.slot);
	EXPECT_GT(item.generation, old.generation);
	old.data = self->read;
	EXPECT_EQ(-ENOENT, nvmepeer_store_read(self->store, &old, 1));
}

/* Nor is that of an entry that was damaged. */
TEST_F(store, generations_go_on_after_damage)
{
	struct nvmepeer_store_item item = self->item;
	uint64_t generation = 0;
	uint32_t word = 1;

	for (int i = 0; i < 3; i++) {
		ASSERT_EQ(0, nvmepeer_store_alloc(self->store, &item.slot, 1));
		item.length = PAGE;
		ASSERT_EQ(0, nvmepeer_store_write(self->store, &item, 1));
		ASSERT_EQ(0, nvmepeer_store_commit(self->store, &item, 1));
		generation = item.generation;
		if (i < 2)
			ASSERT_EQ(0, nvmepeer_store_free(self->store, &item, 1, 0));
		/* The next member, and back. */
		ASSERT_EQ(0, reopen(&self->store, 0));
	}
	EXPECT_EQ(0, item.slot);
	model_peer_write(0, 4096 + 16, &word, 4);
	ASSERT_EQ(0, reopen(&self->store, 0));
	ASSERT_EQ(0, nvmepeer_store_alloc(self->store, &item.slot, 1));
	EXPECT_EQ(0, item.slot);
	item.length = PAGE;
	ASSERT_EQ(0, nvmepeer_store_write(self->store, &item, 1));
	ASSERT_EQ(0, nvmepeer_store_commit(self->store, &item, 1));
	EXPECT_GT(item.generation, generation);
}

TEST_F(store, read_only_writes_nothing)
{
	uint64_t writes, fuas, flushes;

	ASSERT_EQ(0, put(self->store, &self->item));
	writes = model_commands(IO_WRITE);
	fuas = model_commands(IO_WRITE_FUA);
	flushes = model_commands(IO_FLUSH);
	ASSERT_EQ(0, reopen(&self->store, NVMEPEER_STORE_READ_ONLY));
	self->item.data = self->read;
	EXPECT_EQ(0, nvmepeer_store_read(self->store, &self->item, 1));
	EXPECT_EQ(-EROFS, nvmepeer_store_free(self->store, &self->item, 1, 0));
	EXPECT_TRUE(explains(-EROFS, "NVMEPEER_STORE_READ_ONLY"));
	EXPECT_EQ(-EROFS, nvmepeer_store_write(self->store, &self->item, 1));
	EXPECT_EQ(-EROFS, nvmepeer_store_commit(self->store, &self->item, 1));
	EXPECT_EQ(-EROFS, nvmepeer_store_alloc(self->store, &self->item.slot, 1));
	EXPECT_EQ(writes, model_commands(IO_WRITE));
	EXPECT_EQ(fuas, model_commands(IO_WRITE_FUA));
	EXPECT_EQ(flushes, model_commands(IO_FLUSH));
}

TEST_F(store, a_commit_of_many_writes_each_table_block_once)
{
	struct nvmepeer_store_item items[SLOTS * MEMBERS];
	uint64_t fuas, flushes;

	for (int i = 0; i < SLOTS * MEMBERS; i++) {
		items[i] = self->item;
		items[i].flags = NVMEPEER_STORE_PEER;
		ASSERT_EQ(0, nvmepeer_store_alloc(self->store, &items[i].slot, 1));
	}
	fuas = model_commands(IO_WRITE_FUA);
	flushes = model_commands(IO_FLUSH);
	ASSERT_EQ(0, nvmepeer_store_commit(self->store, items, SLOTS * MEMBERS));
	EXPECT_EQ(fuas + MEMBERS, model_commands(IO_WRITE_FUA));
	EXPECT_EQ(flushes + MEMBERS, model_commands(IO_FLUSH));
	ASSERT_EQ(0, nvmepeer_store_free(self->store, items, SLOTS * MEMBERS, 0));
	EXPECT_EQ(fuas + 2 * MEMBERS, model_commands(IO_WRITE_FUA));
	EXPECT_EQ(flushes + MEMBERS, model_commands(IO_FLUSH));
}

struct early {
	struct nvmepeer_store *store;
	struct nvmepeer_store_item item;
	uint32_t waits;
	uint32_t readable;
};

static void read_early(void *argument)
{
	struct early *early = argument;

	early->waits++;
	early->readable += !nvmepeer_store_pin(early->store, &early->item, 1);
}

TEST_F(store, a_value_is_durable_before_it_is_readable)
{
	struct early early = { .store = self->store };

	ASSERT_EQ(0, nvmepeer_store_alloc(self->store, &self->item.slot, 1));
	early.item.slot = self->item.slot;
	self->item.flags = NVMEPEER_STORE_PEER;
	model_hook(read_early, &early);
	ASSERT_EQ(0, nvmepeer_store_commit(self->store, &self->item, 1));
	model_hook(NULL, NULL);
	EXPECT_EQ(2, early.waits);
	EXPECT_EQ(0, early.readable);
	EXPECT_EQ(0, nvmepeer_store_pin(self->store, &early.item, 1));
	nvmepeer_store_unpin(self->store, &early.item, 1);
}

TEST_F(store, without_queues_calls_fail)
{
	nvmepeer_store_close(self->store);
	self->store = NULL;
	model_no_queues(-EPERM);
	EXPECT_EQ(-EPERM, nvmepeer_store_open(paths, MEMBERS, 0, &self->store));
	EXPECT_TRUE(explains(-EPERM, "io_uring_setup()"));
	EXPECT_EQ(-EPERM, create(MEMBERS, PAGE, SLOTS, NVMEPEER_STORE_FORCE));
	model_no_queues(-ENOMEM);
	EXPECT_EQ(-ENOMEM, nvmepeer_store_open(paths, MEMBERS, 0, &self->store));
	model_no_queues(0);
}

TEST_F(store, errors_at_open)
{
	const char *const twice[] = { "disk0", "disk0" }, *const apart[] = { "disk0", "disk2" };
	struct nvmepeer_store_options options = {
		.size = sizeof(options),
		.flags = NVMEPEER_STORE_FORCE,
		.page_bytes = PAGE,
	};
	struct nvmepeer_store *other;
	uint8_t block[MODEL_BLOCK];

	EXPECT_EQ(-EBUSY, nvmepeer_store_open(paths, MEMBERS, 0, &other));
	EXPECT_TRUE(explains(-EBUSY, "disk0 is in use"));
	nvmepeer_store_close(self->store);
	self->store = NULL;
	EXPECT_EQ(-EINVAL, nvmepeer_store_open(paths, 0, 0, &other));
	EXPECT_EQ(-EINVAL, nvmepeer_store_open(paths, 65, 0, &other));
	EXPECT_EQ(-EINVAL, nvmepeer_store_open(paths, 1, 1u << 30, &other));
	EXPECT_EQ(-EBUSY, nvmepeer_store_open(twice, 2, 0, &other));
	EXPECT_EQ(-EUCLEAN, nvmepeer_store_open(apart, 2, 0, &other));
	EXPECT_TRUE(explains(-EUCLEAN, "disk2 has no valid superblock"));
	model_hide(1, -ENOTBLK);
	EXPECT_EQ(-ENOTBLK, nvmepeer_store_open(paths, MEMBERS, 0, &other));
	EXPECT_TRUE(explains(-ENOTBLK, "disk1 is neither"));
	model_hide(1, -EACCES);
	EXPECT_EQ(-EACCES, nvmepeer_store_open(paths, MEMBERS, 0, &other));
	EXPECT_TRUE(explains(-EACCES, "disk1: Permission denied"));
	model_hide(1, 0);
	/* A copy of a member. */
	model_peer_read(0, 0, block, sizeof(block));
	model_peer_write(2, 0, block, sizeof(block));
	EXPECT_EQ(-EINVAL, nvmepeer_store_open(apart, 2, 0, &other));
	EXPECT_TRUE(explains(-EINVAL, "disk0 and disk2 are both member 0"));
	/* Members of different stores. */
	model_peer_write(2, 0, block, 4);
	ASSERT_EQ(0, nvmepeer_store_create(paths + 2, 1, &options));
	EXPECT_EQ(-EINVAL, nvmepeer_store_open(apart, 2, 0, &other));
	EXPECT_TRUE(explains(-EINVAL, "disk0 and disk2 are of different stores"));
	/* Shorter than it was. */
	model_bytes(1, 8192);
	EXPECT_EQ(-EINVAL, nvmepeer_store_open(paths, MEMBERS, 0, &other));
	EXPECT_TRUE(explains(-EINVAL, "disk1 has 8192 bytes"));
	EXPECT_EQ(0, nvmepeer_store_open(paths, 1, NVMEPEER_STORE_DEGRADED, &self->store));
}

TEST_F(store, io_errors_at_open)
{
	struct nvmepeer_store *other;

	nvmepeer_store_close(self->store);
	self->store = NULL;
	model_fail(0, IO_READ, 0, 1);
	EXPECT_EQ(-EIO, nvmepeer_store_open(paths, MEMBERS, 0, &other));
	model_fail(0, IO_READ, 1, 1);
	EXPECT_EQ(-EIO, nvmepeer_store_open(paths, MEMBERS, 0, &other));
	EXPECT_TRUE(explains(-EIO, "disk0: Input/output error"));
	model_fail(1, IO_FLUSH, 0, 1);
	EXPECT_EQ(-EIO, nvmepeer_store_open(paths, MEMBERS, 0, &other));
	EXPECT_TRUE(explains(-EIO, "disk1: Input/output error"));
	model_fail(1, IO_WRITE_FUA, 0, 1);
	EXPECT_EQ(-EIO, nvmepeer_store_open(paths + 1, 1, NVMEPEER_STORE_DEGRADED, &other));
	ASSERT_EQ(0, nvmepeer_store_open(paths + 1, 1, NVMEPEER_STORE_DEGRADED, &other));
	nvmepeer_store_close(other);
	/* Member 0 has to be emptied. */
	model_fail(0, IO_WRITE, 0, 1);
	EXPECT_EQ(-EIO, nvmepeer_store_open(paths, MEMBERS, 0, &other));
	EXPECT_EQ(0, nvmepeer_store_open(paths, MEMBERS, 0, &self->store));
}

TEST_F(store, an_invalid_superblock_is_refused)
{
	static const struct {
		size_t offset;
		uint32_t value;
	} values[] = {
		{ offsetof(struct layout, members), 0 },
		{ offsetof(struct layout, members), 65 },
		{ offsetof(struct layout, member), 2 },
		{ offsetof(struct layout, page_bytes), 0 },
		{ offsetof(struct layout, page_bytes), 6 },
		{ offsetof(struct layout, block), 256 },
		{ offsetof(struct layout, block), 1536 },
		{ offsetof(struct layout, block), 131072 },
		{ offsetof(struct layout, slots), 0 },
		{ offsetof(struct layout, slots), UINT32_MAX },
		{ offsetof(struct layout, page_bytes), (1u << 30) + 4 },
		{ offsetof(struct layout, live), 7 },
		/* The counter, in the upper half. */
		{ offsetof(struct layout, epoch) + 4, UINT32_MAX },
		{ offsetof(struct layout, epoch) + 4, 0 },
	};
	static uint8_t made[131072];
	struct layout layout, bad;
	struct nvmepeer_store *other;
	uint8_t block[MODEL_BLOCK];

	model_peer_read(0, 0, block, sizeof(block));
	nvmepeer_store_close(self->store);
	self->store = NULL;
	ASSERT_TRUE(layout_decode(&layout, block));
	for (uint32_t i = 0; i < sizeof(values) / sizeof(values[0]); i++) {
		uint32_t *field = (uint32_t *)((uint8_t *)&layout + values[i].offset), before = *field;

		*field = values[i].value;
		layout_encode(&layout, made);
		*field = before;
		EXPECT_FALSE(layout_decode(&bad, made));
		model_peer_write(0, 0, made, MODEL_BLOCK);
		EXPECT_EQ(-EUCLEAN, nvmepeer_store_open(paths, 1, 0, &other));
	}
	block[20] ^= 1;
	EXPECT_FALSE(layout_decode(&layout, block));
}

TEST(create_checks_its_arguments)
{
	struct { struct nvmepeer_store_options options; uint64_t later; } longer = {
		.options = { .size = sizeof(longer), .page_bytes = PAGE },
		.later = 1,
	};
	const char *const nowhere[] = { "elsewhere" };

	model_reset(3);
	EXPECT_EQ(-EINVAL, create(0, PAGE, 0, 0));
	EXPECT_TRUE(explains(-EINVAL, "0 members of at most 64"));
	EXPECT_EQ(-EINVAL, create(1, 0, 0, 0));
	EXPECT_EQ(-EINVAL, create(1, 6, 0, 0));
	EXPECT_TRUE(explains(-EINVAL, "pages of 6 bytes"));
	EXPECT_EQ(-EINVAL, create(1, PAGE, 0, NVMEPEER_STORE_READ_ONLY));
	EXPECT_EQ(-E2BIG, nvmepeer_store_create(paths, 1, &longer.options));
	longer.later = 0;
	EXPECT_EQ(0, nvmepeer_store_create(paths, 1, &longer.options));
	longer.options.size = 4;
	EXPECT_EQ(-EINVAL, nvmepeer_store_create(paths, 1, &longer.options));
	EXPECT_EQ(-ENOENT, nvmepeer_store_create(nowhere, 1, &(struct nvmepeer_store_options){
		.size = sizeof(struct nvmepeer_store_options), .page_bytes = PAGE }));
	EXPECT_EQ(-ENOSPC, create(1, MODEL_BYTES, 0, NVMEPEER_STORE_FORCE));
	EXPECT_TRUE(explains(-ENOSPC, "no room for one page"));
	model_block(1, 128 << 10);
	EXPECT_EQ(-EINVAL, create(2, PAGE, 0, NVMEPEER_STORE_FORCE));
	EXPECT_TRUE(explains(-EINVAL, "131072 bytes"));
}

TEST(create_overwrites_only_by_force)
{
	model_reset(4);
	ASSERT_EQ(0, create(1, PAGE, SLOTS, 0));
	EXPECT_EQ(-EEXIST, create(2, PAGE, SLOTS, 0));
	EXPECT_TRUE(explains(-EEXIST, "disk0 holds a store"));
	EXPECT_EQ(0, create(2, PAGE, SLOTS, NVMEPEER_STORE_FORCE));
	model_peer_write(2, 100, "data", 4);
	EXPECT_EQ(-EEXIST, create(3, PAGE, SLOTS, 0));
	model_reset(4);
	model_peer_write(0, 100, "data", 4);
	EXPECT_EQ(-EEXIST, create(1, PAGE, SLOTS, 0));
	EXPECT_TRUE(explains(-EEXIST, "other data"));
	model_fail(0, IO_READ, 0, 1);
	EXPECT_EQ(-EIO, create(1, PAGE, SLOTS, 0));
	for (int kind = IO_WRITE; kind <= IO_FLUSH; kind++) {
		model_fail(0, (enum io_kind)kind, 0, 1);
		EXPECT_EQ(-EIO, create(1, PAGE, SLOTS, NVMEPEER_STORE_FORCE));
	}
}

/* Also of a store that was there: none of its entries is left. */
TEST(a_created_store_survives_a_power_cut)
{
	struct nvmepeer_store_item item = { .length = 4 };
	struct nvmepeer_store_report report;
	struct nvmepeer_store *store;

	for (uint64_t seed = 0; seed < 20; seed++) {
		model_reset(seed);
		ASSERT_EQ(0, create(1, PAGE, SLOTS, 0));
		ASSERT_EQ(0, nvmepeer_store_open(paths, 1, 0, &store));
		ASSERT_EQ(0, nvmepeer_store_alloc(store, &item.slot, 1));
		item.length = 4;
		item.flags = NVMEPEER_STORE_PEER;
		ASSERT_EQ(0, nvmepeer_store_commit(store, &item, 1));
		nvmepeer_store_close(store);
		ASSERT_EQ(0, create(1, PAGE, SLOTS, NVMEPEER_STORE_FORCE));
		model_end(MODEL_CUT, 1);
		model_start();
		ASSERT_EQ(0, nvmepeer_store_open(paths, 1, 0, &store));
		ASSERT_EQ(0, nvmepeer_store_check(store, &report, sizeof(report)));
		EXPECT_EQ(0, report.values);
		EXPECT_EQ(0, report.damaged_entries);
		nvmepeer_store_close(store);
	}
}

/* Its tables are over the values of the store that was there. */
TEST(a_create_that_is_cut_leaves_no_store)
{
	enum { MANY = 100, LONG = 4096 };
	static struct nvmepeer_store_item items[MANY];
	static uint8_t value[LONG], read[LONG];
	uint32_t cut = 0;

	memset(value, 0xab, sizeof(value));
	for (uint64_t seed = 0; seed < 60; seed++) {
		struct nvmepeer_store_item found;
		struct nvmepeer_store *store;
		uint64_t position = 0;

		model_reset(seed);
		memset(items, 0, sizeof(items));
		ASSERT_EQ(0, create(1, LONG, MANY, 0));
		ASSERT_EQ(0, nvmepeer_store_open(paths, 1, 0, &store));
		for (int i = 0; i < MANY; i++) {
			items[i].data = value;
			items[i].length = LONG;
			ASSERT_EQ(0, put(store, &items[i]));
		}
		nvmepeer_store_close(store);
		model_arm(MODEL_CUT, 1 + (uint32_t)seed % 5, 1);
		if (create(1, 512, 0, NVMEPEER_STORE_FORCE))
			cut++;
		model_end(MODEL_CUT, 1);
		model_start();
		if (nvmepeer_store_open(paths, 1, 0, &store))
			continue;
		while (nvmepeer_store_scan(store, &position, &found, 1)) {
			found.data = read;
			EXPECT_EQ(0, nvmepeer_store_read(store, &found, 1));
			EXPECT_EQ(0, memcmp(read, value, sizeof(read)));
		}
		nvmepeer_store_close(store);
	}
	EXPECT_NE(0, cut);
}

/* As ext4, whose superblock is behind the first KiB, and as md and btrfs at other places. */
TEST(create_finds_superblocks_of_others)
{
	static const uint64_t places[] = { 512, 1080, 4096, 65600, MODEL_BYTES - 1024 };
	uint8_t left[4];

	for (uint32_t i = 0; i < sizeof(places) / sizeof(places[0]); i++) {
		model_reset(6);
		model_peer_write(0, places[i], "data", 4);
		EXPECT_EQ(-EEXIST, create(1, PAGE, SLOTS, 0));
		EXPECT_TRUE(explains(-EEXIST, "disk0 holds other data"));
		EXPECT_EQ(0, create(1, PAGE, SLOTS, NVMEPEER_STORE_FORCE));
		/* They do not find them again. */
		model_peer_read(0, places[i], left, sizeof(left));
		EXPECT_EQ(0, left[0] | left[1] | left[2] | left[3]);
	}
}

/* Members of different length and block; values that need no copy. */
TEST(the_smallest_member_and_the_largest_block_count)
{
	struct nvmepeer_store_item items[2] = { { .length = 4096 }, { .length = 4096 } };
	static _Alignas(4096) uint8_t value[4096], read[4096];
	struct nvmepeer_store_info info;
	struct nvmepeer_store_place place;
	struct nvmepeer_store *store;

	model_reset(5);
	model_block(1, 4096);
	model_bytes(0, 256 << 10);
	memset(value, 9, sizeof(value));
	ASSERT_EQ(0, create(2, 4096, 0, 0));
	ASSERT_EQ(0, nvmepeer_store_open(paths, 2, 0, &store));
	ASSERT_EQ(0, nvmepeer_store_info(store, &info, sizeof(info)));
	EXPECT_EQ(4096, info.block_bytes);
	/* 64 blocks: superblock, 2 of the table, slots. */
	EXPECT_EQ(2 * 61, info.slots);
	for (int i = 0; i < 2; i++) {
		ASSERT_EQ(0, nvmepeer_store_place(store, (uint32_t)i, &place, sizeof(place)));
		EXPECT_EQ(i ? 1 : 8, place.blocks);
		EXPECT_EQ((START + 12288u) / place.block_bytes, place.lba);
		items[i].data = value;
		ASSERT_EQ(0, put(store, &items[i]));
		items[i].data = read;
		memset(read, 0, sizeof(read));
		ASSERT_EQ(0, nvmepeer_store_read(store, &items[i], 1));
		EXPECT_EQ(0, memcmp(read, value, sizeof(read)));
	}
	nvmepeer_store_close(store);
}

TEST_HARNESS_MAIN
