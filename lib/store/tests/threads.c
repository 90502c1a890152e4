// SPDX-License-Identifier: MIT OR GPL-2.0
/*
 * Several threads put, read and evict the same slots, while a member is lost: each value
 * describes itself and has to be the one that its tag names.  Built with ThreadSanitizer.
 */
#include <errno.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <nvmepeer_store.h>

#include "model.h"

enum { MEMBERS = 3, SLOTS = 24, PAGE = 1024, WRITERS = 3, READERS = 3, CALLS = 1500, LIST = 4 };

static const char *const paths[] = { "disk0", "disk1", "disk2" };

/**
 * struct shared - the index of the test
 * @lock: guards @items
 * @items: values by slot; a length of 0: none
 * @wrong: values that were not those of their tags
 * @read: values that were read
 * @lost: results for the lost member
 * @writers: that have not ended
 */
static struct {
	struct nvmepeer_store *store;
	pthread_mutex_t lock;
	struct nvmepeer_store_item items[MEMBERS * SLOTS];
	uint32_t wrong;
	uint32_t read;
	uint32_t lost;
	uint32_t writers;
} shared = { .lock = PTHREAD_MUTEX_INITIALIZER, .writers = WRITERS };

static void fill(uint64_t key, uint64_t *value, uint32_t length)
{
	for (uint32_t i = 0; i < length / 8; i++)
		value[i] = key * 0x9e3779b97f4a7c15u + i;
}

static void wrong(const char *what, int result)
{
	if (__atomic_fetch_add(&shared.wrong, 1, __ATOMIC_RELAXED) < 10)
		printf("# %s: %d\n", what, result);
}

/* Evict some slots of the index. */
static void evict(uint32_t *seed)
{
	struct nvmepeer_store_item items[LIST];
	uint32_t count = 0;

	memset(items, 0, sizeof(items));
	pthread_mutex_lock(&shared.lock);
	for (uint32_t i = 0; i < 40 && count < LIST; i++) {
		struct nvmepeer_store_item *item = &shared.items[rand_r(seed) % (MEMBERS * SLOTS)];

		if (!item->length)
			continue;
		items[count++] = *item;
		item->length = 0;
	}
	pthread_mutex_unlock(&shared.lock);
	nvmepeer_store_free(shared.store, items, count, 10000);
	for (uint32_t i = 0; i < count; i++)
		if (items[i].result)
			wrong("free", items[i].result);
}

static void put(uint32_t *seed, uint64_t *key)
{
	static _Thread_local uint64_t values[LIST][PAGE / 8];
	struct nvmepeer_store_item items[LIST];
	uint32_t slots[LIST];
	bool written[LIST];

	while (nvmepeer_store_alloc(shared.store, slots, LIST))
		evict(seed);
	memset(items, 0, sizeof(items));
	for (uint32_t i = 0; i < LIST; i++) {
		items[i].slot = slots[i];
		items[i].length = 8 * (1 + rand_r(seed) % (PAGE / 8));
		items[i].data = values[i];
		++*key;
		memcpy(items[i].tag, key, sizeof(*key));
		fill(*key, values[i], items[i].length);
	}
	nvmepeer_store_write(shared.store, items, LIST);
	for (uint32_t i = 0; i < LIST; i++)
		written[i] = !items[i].result;
	nvmepeer_store_commit(shared.store, items, LIST);
	for (uint32_t i = 0; i < LIST; i++) {
		if (items[i].result == -ENODEV || items[i].result == -EIO ||
		    (!written[i] && items[i].result == -EINVAL)) {
			nvmepeer_store_free(shared.store, &items[i], 1, 10000);
		} else if (items[i].result) {
			wrong("commit", items[i].result);
		} else {
			pthread_mutex_lock(&shared.lock);
			shared.items[items[i].slot] = items[i];
			pthread_mutex_unlock(&shared.lock);
		}
	}
}

static void *write_values(void *argument)
{
	uint64_t key = (uintptr_t)argument << 32;
	uint32_t seed = (uint32_t)(uintptr_t)argument;

	for (int i = 0; i < CALLS; i++) {
		put(&seed, &key);
		if (rand_r(&seed) % 3 == 0)
			evict(&seed);
		if (i == CALLS / 2 && (uintptr_t)argument == 1)
			model_end(MODEL_CUT, 2);
	}
	__atomic_fetch_sub(&shared.writers, 1, __ATOMIC_RELAXED);
	return NULL;
}

static void check(const struct nvmepeer_store_item *item)
{
	uint64_t key, expected[PAGE / 8];

	if (item->result == -ENODEV || item->result == -EIO)
		__atomic_fetch_add(&shared.lost, 1, __ATOMIC_RELAXED);
	if (item->result == -EILSEQ)
		wrong("read", item->result);
	if (item->result)
		return;
	memcpy(&key, item->tag, sizeof(key));
	fill(key, expected, item->length);
	if (memcmp(item->data, expected, item->length))
		wrong("value of another key in slot", (int)item->slot);
	__atomic_fetch_add(&shared.read, 1, __ATOMIC_RELAXED);
}

/* Half of the reads as a peer does: pin, read the blocks, unpin. */
static void read_as_peer(struct nvmepeer_store_item *item)
{
	struct nvmepeer_store_place place;

	if (nvmepeer_store_pin(shared.store, item, 1))
		return;
	if (!nvmepeer_store_place(shared.store, item->slot, &place, sizeof(place)) &&
	    !(model_ended() >> place.member & 1)) {
		model_peer_read(place.member, place.lba * place.block_bytes - 8192, item->data,
				item->length);
		/* Without power the cache is gone. */
		if (!(model_ended() >> place.member & 1))
			check(item);
	}
	nvmepeer_store_unpin(shared.store, item, 1);
}

static void *read_values(void *argument)
{
	uint32_t seed = 100 + (uint32_t)(uintptr_t)argument;
	uint64_t value[PAGE / 8];

	for (int i = 0; __atomic_load_n(&shared.writers, __ATOMIC_RELAXED); i++) {
		struct nvmepeer_store_item item;

		pthread_mutex_lock(&shared.lock);
		item = shared.items[rand_r(&seed) % (MEMBERS * SLOTS)];
		pthread_mutex_unlock(&shared.lock);
		if (!item.length)
			continue;
		item.data = value;
		if (i & 1) {
			read_as_peer(&item);
		} else {
			nvmepeer_store_read(shared.store, &item, 1);
			check(&item);
		}
	}
	return NULL;
}

int main(void)
{
	struct nvmepeer_store_options options = { sizeof(options), 0, PAGE, SLOTS };
	pthread_t threads[WRITERS + READERS];
	struct nvmepeer_store_info info;

	model_reset(1);
	puts("TAP version 13\n1..1");
	if (nvmepeer_store_create(paths, MEMBERS, &options) ||
	    nvmepeer_store_open(paths, MEMBERS, 0, &shared.store))
		return 1;
	for (uintptr_t i = 0; i < WRITERS + READERS; i++)
		pthread_create(&threads[i], NULL, i < WRITERS ? write_values : read_values,
			       (void *)(i + 1));
	for (int i = 0; i < WRITERS + READERS; i++)
		pthread_join(threads[i], NULL);
	nvmepeer_store_info(shared.store, &info, sizeof(info));
	nvmepeer_store_close(shared.store);
	printf("# %u values read, %u of a lost member, members %#llx live, %llu Flushes for %d commits\n",
	       shared.read, shared.lost, (unsigned long long)info.live,
	       (unsigned long long)model_commands(IO_FLUSH), WRITERS * CALLS);
	if (info.live != 5)
		wrong("the member is not lost", (int)info.live);
	printf("%sok 1 concurrent puts, reads, evictions and the loss of a member\n",
	       shared.wrong ? "not " : "");
	return shared.wrong ? 1 : 0;
}
