// SPDX-License-Identifier: MIT OR GPL-2.0
/*
 * Power cuts during puts, evictions and opening, of all members or of one, and killed
 * processes: no value is wrong, no value is lost whose commit has returned, and none comes
 * back whose free has returned.
 *
 * usage: unit-store-power [CUTS [SEED]]	default 1000 cuts of blocks of 512 bytes, and a half of 4096
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <nvmepeer_store.h>

#include "model.h"

enum { MEMBERS = 3, SLOTS = 40, PAGE = 1500, ALL = MEMBERS * SLOTS, SET = (1 << MEMBERS) - 1 };
enum { LIST = 6 };

static const char *const paths[] = { "disk0", "disk1", "disk2" };

/**
 * struct expected - what a slot has to have
 * @key: of its value; 0: none
 * @generation: of its value
 * @surely: else @key or none, as the call did not return 0
 */
struct expected {
	uint64_t key;
	uint64_t generation;
	bool surely;
};

/**
 * struct run - the state of the test
 * @store: open store, or NULL
 * @slots: what is expected
 * @key: last key
 * @lossy: members that were lost alone, by bit: they may be emptied
 * @cuts: power cuts and kills so far
 * @failures: violations
 */
static struct {
	struct nvmepeer_store *store;
	struct expected slots[ALL];
	uint64_t key;
	uint32_t lossy;
	uint32_t cuts;
	uint32_t failures;
	uint32_t emptied;
	uint32_t doubts;
	uint32_t reopened;
} run;

#define FAIL(...) do { \
	if (run.failures++ < 10) { \
		printf("# cut %u: ", run.cuts); \
		printf(__VA_ARGS__); \
		putchar('\n'); \
	} \
} while (0)

static uint32_t length_of(uint64_t key)
{
	return 4 * (1 + (uint32_t)(key * 2654435761u >> 7) % (PAGE / 4));
}

static void make_value(uint64_t key, void *data, uint32_t length)
{
	for (uint32_t i = 0; i < length / 4; i++)
		((uint32_t *)data)[i] = (uint32_t)(key * 31 + i);
}

static void make_tag(uint64_t key, uint8_t *tag)
{
	memset(tag, 0x5a, NVMEPEER_STORE_TAG);
	memcpy(tag, &key, sizeof(key));
}

static uint64_t key_of(const uint8_t *tag)
{
	uint8_t expected[NVMEPEER_STORE_TAG];
	uint64_t key;

	memcpy(&key, tag, sizeof(key));
	make_tag(key, expected);
	return memcmp(tag, expected, sizeof(expected)) ? UINT64_MAX : key;
}

/* The bytes on the disk, as a peer reads them, without the checksum's help. */
static void check_bytes(const struct nvmepeer_store_item *item, uint64_t key)
{
	static uint32_t value[PAGE / 4], expected[PAGE / 4];
	struct nvmepeer_store_place place;

	if (item->length != length_of(key))
		FAIL("slot %u has %u bytes of %u", item->slot, item->length, length_of(key));
	if (nvmepeer_store_place(run.store, item->slot, &place, sizeof(place)))
		return;
	model_peer_read(place.member, place.lba * place.block_bytes - 8192, value, item->length);
	make_value(key, expected, item->length);
	if (memcmp(value, expected, item->length))
		FAIL("slot %u has a wrong value of key %llu", item->slot, (unsigned long long)key);
}

/*
 * Compare all slots with what is expected, and expect what is there from now on.
 * @hidden: members that are missing; @emptied: members that an open may have emptied
 * which did not return
 */
static void verify(uint32_t hidden, uint32_t emptied)
{
	struct nvmepeer_store_item items[LIST];
	struct nvmepeer_store_info info;
	uint64_t found[ALL] = { 0 }, generations[ALL] = { 0 }, position = 0;
	int count;

	nvmepeer_store_info(run.store, &info, sizeof(info));
	if (info.emptied & ~run.lossy)
		FAIL("members %#llx were emptied and had missed nothing", (unsigned long long)info.emptied);
	run.emptied += __builtin_popcountll(info.emptied);
	while ((count = nvmepeer_store_scan(run.store, &position, items, LIST)) > 0)
		for (int i = 0; i < count; i++) {
			found[items[i].slot] = key_of(items[i].tag);
			generations[items[i].slot] = items[i].generation;
			check_bytes(&items[i], found[items[i].slot]);
		}
	for (uint32_t slot = 0; slot < ALL; slot++) {
		struct expected *expected = &run.slots[slot];
		uint32_t member = slot % MEMBERS;

		if (hidden >> member & 1)
			continue;
		if (found[slot] && found[slot] != expected->key)
			FAIL("slot %u has key %llu and should have %llu", slot,
			     (unsigned long long)found[slot], (unsigned long long)expected->key);
		if (!found[slot] && expected->key && expected->surely &&
		    !((info.emptied | emptied) >> member & 1))
			FAIL("slot %u lost key %llu", slot, (unsigned long long)expected->key);
		expected->key = found[slot];
		expected->generation = generations[slot];
		expected->surely = true;
	}
}

/* Returns the items. */
static uint32_t choose(struct nvmepeer_store_item *items)
{
	uint32_t count = 0, start = model_random(ALL), most = 1 + model_random(LIST);

	memset(items, 0, LIST * sizeof(*items));
	for (uint32_t i = 0; i < ALL && count < most; i++) {
		uint32_t slot = (start + i * 7) % ALL;

		if (!run.slots[slot].key || !run.slots[slot].surely)
			continue;
		items[count].slot = slot;
		items[count++].generation = run.slots[slot].generation;
	}
	return count;
}

static void evict(void)
{
	struct nvmepeer_store_item items[LIST];
	uint32_t count = choose(items);

	nvmepeer_store_free(run.store, items, count, 0);
	for (uint32_t i = 0; i < count; i++) {
		struct expected *expected = &run.slots[items[i].slot];

		if (!items[i].result) {
			expected->key = 0;
			continue;
		}
		expected->surely = false;
		run.doubts++;
	}
}

static void write_as_peer(struct nvmepeer_store_item *item)
{
	struct nvmepeer_store_place place;

	if (!nvmepeer_store_place(run.store, item->slot, &place, sizeof(place)) &&
	    !(model_ended() >> place.member & 1))
		model_peer_write(place.member, place.lba * place.block_bytes - 8192, item->data,
				 item->length);
}

static void put(void)
{
	static uint32_t values[LIST][PAGE / 4];
	struct nvmepeer_store_item items[LIST] = { 0 };
	uint32_t slots[LIST], count = 1 + model_random(LIST);

	if (nvmepeer_store_alloc(run.store, slots, count)) {
		evict();
		return;
	}
	for (uint32_t i = 0; i < count; i++) {
		if (run.slots[slots[i]].key || !run.slots[slots[i]].surely)
			FAIL("slot %u was allocated with a value", slots[i]);
		items[i].slot = slots[i];
		items[i].length = length_of(++run.key);
		items[i].data = values[i];
		make_tag(run.key, items[i].tag);
		make_value(run.key, values[i], items[i].length);
	}
	if (model_random(3)) {
		nvmepeer_store_write(run.store, items, count);
		for (uint32_t i = 0; i < count; i++)
			items[i].length = 0;
	} else {
		for (uint32_t i = 0; i < count; i++) {
			items[i].flags = NVMEPEER_STORE_PEER;
			write_as_peer(&items[i]);
		}
	}
	/* Some values are never committed. */
	if (!model_random(8)) {
		nvmepeer_store_free(run.store, items, count, 0);
		return;
	}
	nvmepeer_store_commit(run.store, items, count);
	for (uint32_t i = 0; i < count; i++) {
		struct expected *expected = &run.slots[items[i].slot];

		/* Refused before anything was written: the slot has no value. */
		if (items[i].result == -EINVAL || items[i].result == -ENODEV)
			continue;
		memcpy(&expected->key, items[i].tag, sizeof(expected->key));
		expected->generation = items[i].generation;
		expected->surely = !items[i].result;
		run.doubts += !!items[i].result;
	}
}

static void get(void)
{
	static uint32_t values[LIST][PAGE / 4], expected[PAGE / 4];
	struct nvmepeer_store_item items[LIST];
	uint32_t count = choose(items);

	for (uint32_t i = 0; i < count; i++)
		items[i].data = values[i];
	nvmepeer_store_read(run.store, items, count);
	for (uint32_t i = 0; i < count; i++) {
		uint64_t key = run.slots[items[i].slot].key;

		if (items[i].result) {
			if (!model_ended() && !run.lossy)
				FAIL("slot %u cannot be read: %d", items[i].slot, items[i].result);
			continue;
		}
		make_value(key, expected, length_of(key));
		if (items[i].length != length_of(key) ||
		    memcmp(values[i], expected, items[i].length))
			FAIL("slot %u was read wrong", items[i].slot);
	}
}

static void use(uint32_t calls)
{
	while (calls--)
		switch (model_random(8)) {
		case 0:
			get();
			break;
		case 1:
		case 2:
			evict();
			break;
		default:
			put();
			break;
		}
}

/* The process ends, and the caller does not see the results of what was cut. */
static void leave(void)
{
	nvmepeer_store_close(run.store);
	run.store = NULL;
}

/* Open, with the fuse perhaps lit: then again, without. */
static void enter(bool cut)
{
	int error;

	model_start();
	if (cut) {
		model_arm(MODEL_CUT, 1 + model_random(12), model_random(2) ? SET : 1 + model_random(SET));
		error = nvmepeer_store_open(paths, MEMBERS, 0, &run.store);
		run.cuts++;
		if (!error) {
			model_end(MODEL_CUT, SET);
			leave();
		}
		model_end(MODEL_CUT, SET);
		model_start();
	}
	error = nvmepeer_store_open(paths, MEMBERS, 0, &run.store);
	if (error) {
		struct nvmepeer_explanation why;

		nvmepeer_explain(&why, sizeof(why));
		FAIL("the store does not open: %s: %s", why.what, why.limit);
		exit(1);
	}
	verify(0, cut ? run.lossy : 0);
	run.reopened++;
	run.lossy = 0;
}

/* All members at once. */
static void cut_all(void)
{
	model_arm(MODEL_CUT, 1 + model_random(60), SET);
	use(12);
	model_end(MODEL_CUT, SET);
}

/* One member, while the others go on. */
static void cut_one(void)
{
	uint32_t member = model_random(MEMBERS);

	run.lossy = 1u << member;
	model_arm(MODEL_CUT, 1 + model_random(40), run.lossy);
	use(12);
	model_end(MODEL_CUT, run.lossy);
	use(model_random(12));
	model_arm(MODEL_CUT, 1 + model_random(20), SET);
	use(4);
	model_end(MODEL_CUT, SET);
}

/* The process, and later the power: what it had begun may not be durable. */
static void kill_and_cut(void)
{
	model_arm(MODEL_KILL, 1 + model_random(60), SET);
	use(12);
	model_end(MODEL_KILL, SET);
	leave();
	run.cuts++;
	enter(false);
	model_arm(MODEL_CUT, 1 + model_random(20), SET);
	use(4);
	model_end(MODEL_CUT, SET);
}

/* A member is missing, and the store goes on without it. */
static void go_on_without(void)
{
	uint32_t member = model_random(MEMBERS);

	leave();
	model_hide(member, -ENOENT);
	run.lossy = 1u << member;
	if (!nvmepeer_store_open(paths, MEMBERS, 0, &run.store)) {
		FAIL("a missing member is no error");
		exit(1);
	}
	if (nvmepeer_store_open(paths, MEMBERS, NVMEPEER_STORE_DEGRADED, &run.store)) {
		FAIL("the store does not open without a member");
		exit(1);
	}
	verify(run.lossy, 0);
	use(6);
	model_arm(MODEL_CUT, 1 + model_random(20), SET);
	use(4);
	model_end(MODEL_CUT, SET);
	model_hide(member, 0);
}

/* Disks with blocks of so many bytes. */
static int cut_disks(uint32_t cuts, uint64_t seed, uint32_t block)
{
	struct nvmepeer_store_options options = {
		.size = sizeof(options),
		.page_bytes = PAGE,
		.slots = SLOTS,
	};

	memset(&run, 0, sizeof(run));
	model_reset(seed);
	for (uint32_t i = 0; i < MEMBERS; i++)
		model_block(i, block);
	model_start();
	if (nvmepeer_store_create(paths, MEMBERS, &options))
		return 1;
	for (uint32_t slot = 0; slot < ALL; slot++)
		run.slots[slot].surely = true;
	enter(false);
	while (run.cuts < cuts && !run.failures) {
		switch (model_random(5)) {
		case 0:
		case 1:
			cut_all();
			break;
		case 2:
			cut_one();
			break;
		case 3:
			kill_and_cut();
			break;
		default:
			go_on_without();
			break;
		}
		run.cuts++;
		leave();
		enter(!model_random(4));
	}
	leave();
	printf("# blocks of %u: %u cuts, %u puts, %u calls cut short, %u members emptied, %u opens\n",
	       block, run.cuts, (uint32_t)run.key, run.doubts, run.emptied, run.reopened);
	return run.failures ? 1 : 0;
}

int main(int argc, char **argv)
{
	uint32_t cuts = argc > 1 ? (uint32_t)atoi(argv[1]) : 1000;
	uint64_t seed = argc > 2 ? (uint64_t)atoi(argv[2]) : 1;
	int failed;

	puts("TAP version 13\n1..1");
	failed = cut_disks(cuts, seed, MODEL_BLOCK) | cut_disks(cuts / 2, seed, 8 * MODEL_BLOCK);
	printf("%sok 1 no value wrong, lost or back after power cuts\n", failed ? "not " : "");
	return failed;
}
