// SPDX-License-Identifier: GPL-2.0-only
/*
 * A store (nvmepeer_store.h) under load: threads put, read and evict values at the same time. One
 * member is a namespace of the controller, which may end and then is lost; the other one is
 * memory, and its values have to outlive that. Each value is verified when it is read, and all
 * of them when the store is opened again.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include <nvmepeer_store.h>

#include "load.h"

enum { DISK, MEMORY, MEMBERS };
enum { SLOTS = 48, ALL = MEMBERS * SLOTS, PAGE = 6004, WRITERS = 2, READERS = 2, LIST = 4 };
enum { MEMORY_BYTES = 8 << 20, NSID = 3, BETWEEN_MS = 4, READERS_MS = 30000 };
/* Calls of a thread after the loss of a member. */
enum { AFTER = 40 };

/**
 * struct shop - the store, and what it has to have; there is one
 * @load: its load
 * @store: NULL while it is closed
 * @lock: guards @values and @key
 * @values: by slot; a length of 0: none that may be read
 * @key: of the last value
 * @memory: the second member
 * @lost: a call on the first one had an error since the store was opened
 * @empties: the store has lost it, by a write of its table, and will empty it
 * @losses: how often it was emptied
 * @verified: values that were read
 */
static struct shop {
	struct load *load;
	struct nvmepeer_store *store;
	pthread_mutex_t lock;
	struct nvmepeer_store_item values[ALL];
	uint64_t key;
	int memory;
	atomic_bool lost;
	bool empties;
	unsigned int losses;
	atomic_uint verified;
} shop = { .lock = PTHREAD_MUTEX_INITIALIZER, .memory = -1 };

static void fill(uint64_t key, uint32_t *value, uint32_t length)
{
	for (uint32_t i = 0; i < length / 4; i++)
		value[i] = (uint32_t)(key * 2654435761u + i);
}

static uint64_t key_of(const struct nvmepeer_store_item *item)
{
	uint64_t key;

	memcpy(&key, item->tag, sizeof(key));
	return key;
}

static void corrupt(const char *what)
{
	shop.load->ledger.corrupt++;
	load_fail(shop.load, what, -EILSEQ);
}

/* An error is allowed on the member that may end. Returns whether the item has none. */
static bool good(const struct nvmepeer_store_item *item, const char *what)
{
	if (!item->result)
		return true;
	if (item->slot % MEMBERS == DISK && atomic_load(&shop.load->mortal))
		atomic_store(&shop.lost, true);
	else
		load_fail(shop.load, what, item->result);
	return false;
}

/* Take up to LIST values out of the index. Returns their number. */
static uint32_t take(unsigned int *seed, struct nvmepeer_store_item *items)
{
	uint32_t count = 0;

	pthread_mutex_lock(&shop.lock);
	for (uint32_t i = 0; i < ALL && count < LIST; i++) {
		struct nvmepeer_store_item *value = &shop.values[(uint32_t)rand_r(seed) % ALL];

		if (!value->length)
			continue;
		items[count++] = *value;
		value->length = 0;
	}
	pthread_mutex_unlock(&shop.lock);
	return count;
}

static void evict(unsigned int *seed)
{
	struct nvmepeer_store_item items[LIST];
	uint32_t count = take(seed, items);

	nvmepeer_store_free(shop.store, items, count, READERS_MS);
	for (uint32_t i = 0; i < count; i++)
		good(&items[i], "a value of the store cannot be evicted");
}

static void prepare(struct nvmepeer_store_item *items, const uint32_t *slots, uint32_t (*data)[PAGE / 4],
		    unsigned int *seed)
{
	memset(items, 0, LIST * sizeof(*items));
	for (uint32_t i = 0; i < LIST; i++) {
		uint64_t key;

		pthread_mutex_lock(&shop.lock);
		key = ++shop.key;
		pthread_mutex_unlock(&shop.lock);
		items[i].slot = slots[i];
		items[i].length = 4 * (1 + (uint32_t)rand_r(seed) % (PAGE / 4));
		items[i].data = data[i];
		memcpy(items[i].tag, &key, sizeof(key));
		fill(key, data[i], items[i].length);
	}
}

/* What is not stored goes back to the store. */
static void put(unsigned int *seed)
{
	static _Thread_local uint32_t data[LIST][PAGE / 4];
	struct nvmepeer_store_item items[LIST];
	uint32_t slots[LIST];

	if (nvmepeer_store_alloc(shop.store, slots, LIST)) {
		evict(seed);
		return;
	}
	prepare(items, slots, data, seed);
	nvmepeer_store_write(shop.store, items, LIST);
	for (uint32_t i = 0; i < LIST; i++) {
		if (!good(&items[i], "a value of the store cannot be written"))
			continue;
		items[i].length = 0;
	}
	nvmepeer_store_commit(shop.store, items, LIST);
	for (uint32_t i = 0; i < LIST; i++) {
		if (!good(&items[i], "a value of the store cannot be committed")) {
			nvmepeer_store_free(shop.store, &items[i], 1, READERS_MS);
			continue;
		}
		pthread_mutex_lock(&shop.lock);
		shop.values[items[i].slot] = items[i];
		pthread_mutex_unlock(&shop.lock);
	}
}

/* Returns whether the value could be read; one that was evicted meanwhile cannot. */
static bool read_value(struct nvmepeer_store_item *item)
{
	static _Thread_local uint32_t data[PAGE / 4], expected[PAGE / 4];

	item->data = data;
	nvmepeer_store_read(shop.store, item, 1);
	if (item->result == -EILSEQ)
		corrupt("a value of the store has another checksum");
	if (item->result == -ENOENT || !good(item, "a value of the store cannot be read"))
		return false;
	fill(key_of(item), expected, item->length);
	if (memcmp(data, expected, item->length))
		corrupt("a value of the store is wrong");
	atomic_fetch_add(&shop.verified, 1);
	return true;
}

static void get(unsigned int *seed)
{
	struct nvmepeer_store_item item;

	pthread_mutex_lock(&shop.lock);
	item = shop.values[(uint32_t)rand_r(seed) % ALL];
	pthread_mutex_unlock(&shop.lock);
	if (item.length)
		read_value(&item);
}

/* Threads go on with the other member before the load ends. */
static void *work(void *argument)
{
	uintptr_t number = (uintptr_t)argument;
	unsigned int seed = (unsigned int)number + (unsigned int)shop.key, after = AFTER;

	while (load_runs(shop.load) && after) {
		if (number >= WRITERS)
			get(&seed);
		else if (rand_r(&seed) % 3)
			put(&seed);
		else
			evict(&seed);
		if (atomic_load(&shop.lost))
			after--;
		atomic_fetch_add(&shop.load->done, 1);
		np_sleep_ms(BETWEEN_MS);
	}
	return NULL;
}

/* No other thread uses the store. */
static void read_all(void)
{
	for (uint32_t slot = 0; slot < ALL; slot++) {
		struct nvmepeer_store_item item = shop.values[slot];

		if (item.length && !read_value(&item))
			return;
	}
}

static void store_run(struct load *load, void *bytes)
{
	pthread_t threads[WRITERS + READERS];
	uintptr_t count = 0;

	(void)bytes;
	while (count < WRITERS + READERS &&
	       !pthread_create(&threads[count], NULL, work, (void *)count))
		count++;
	if (count < WRITERS + READERS)
		load_fail(load, "no threads for the store", -EAGAIN);
	while (count)
		pthread_join(threads[--count], NULL);
	if (!atomic_load(&shop.lost))
		read_all();
	if (atomic_load(&shop.lost))
		atomic_store(&load->ended, true);
}

/* All values that are expected are there, but for those of a member that was emptied. */
static int verify(void)
{
	struct nvmepeer_store_item items[LIST];
	struct nvmepeer_store_info info;
	uint64_t position = 0;
	bool found[ALL] = { 0 };
	int count;

	nvmepeer_store_info(shop.store, &info, sizeof(info));
	if (info.emptied != (shop.empties ? 1U << DISK : 0))
		corrupt("another member of the store was emptied than was lost");
	shop.losses += shop.empties;
	shop.empties = false;
	atomic_store(&shop.lost, false);
	while ((count = nvmepeer_store_scan(shop.store, &position, items, LIST)) > 0)
		for (int i = 0; i < count; i++) {
			const struct nvmepeer_store_item *value = &shop.values[items[i].slot];

			found[items[i].slot] = true;
			if (!value->length || key_of(value) != key_of(&items[i]))
				corrupt("the store has a value that was evicted");
			else if (!read_value(&items[i]))
				corrupt("a value of the store cannot be read after an open");
		}
	for (uint32_t slot = 0; slot < ALL; slot++) {
		if (shop.values[slot].length && !found[slot] && !(info.emptied >> slot % MEMBERS & 1))
			corrupt("a value of the store was lost");
		if (!found[slot])
			shop.values[slot].length = 0;
	}
	return shop.load->code;
}

static int store_open(struct load *load, const struct np_ctrl *ctrl)
{
	struct nvmepeer_store_options options = {
		.size = sizeof(options), .flags = NVMEPEER_STORE_FORCE,
		.page_bytes = PAGE, .slots = SLOTS,
	};
	bool first = shop.memory < 0;
	char disk[32], memory[32];
	const char *const members[MEMBERS] = { disk, memory };
	int ret = 0;

	shop.load = load;
	if (first) {
		shop.memory = memfd_create("store", MFD_CLOEXEC);
		if (shop.memory < 0 || ftruncate(shop.memory, MEMORY_BYTES))
			return -errno;
	}
	snprintf(disk, sizeof(disk), "/dev/nvmep%dn%d", ctrl->instance, NSID);
	snprintf(memory, sizeof(memory), "/proc/self/fd/%d", shop.memory);
	/* Waits until the node is there. */
	close(np_open_node(ctrl, "/dev/nvmep%dn3", O_RDONLY));
	if (first)
		ret = nvmepeer_store_create(members, MEMBERS, &options);
	ret = ret ?: nvmepeer_store_open(members, MEMBERS, 0, &shop.store);
	if (ret)
		return ret;
	load->own = shop.store;
	return verify();
}

static void store_close(struct load *load)
{
	struct nvmepeer_store_info info;

	(void)load;
	/* Errors of reads and of values alone lose no member. */
	nvmepeer_store_info(shop.store, &info, sizeof(info));
	shop.empties = !(info.live >> DISK & 1);
	nvmepeer_store_close(shop.store);
	shop.store = NULL;
}

void load_store_counts(unsigned int *verified, unsigned int *losses)
{
	*verified = atomic_load(&shop.verified);
	*losses = shop.losses;
}

const struct load_method load_by_store = {
	.name = "store",
	.open = store_open,
	.run = store_run,
	.close = store_close,
};
