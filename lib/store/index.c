// SPDX-License-Identifier: MIT OR GPL-2.0
/*
 * The reference index: a hash table of slots, eviction by clock, and a tier of host
 * memory.  I/O is done without the lock: a value that is evicted meanwhile has another
 * generation, which is a miss.
 */
#include <stdlib.h>
#include <string.h>

#include "hash.h"
#include "store.h"

static const char opening[] = "nvmepeer_index_open";
static const char finding[] = "nvmepeer_index_get";
static const char putting[] = "nvmepeer_index_put";

enum { EMPTY = UINT32_MAX, FREE_WAIT_MS = 0 };

/**
 * struct entry - the value of a slot
 * @item: slot, generation, length and key; a length of 0: no value
 * @passes: of the clock's hand until it is evicted
 * @once: it is not kept in host memory
 * @host: number of its page in host memory, or EMPTY
 * @stuck: of a removed value whose slot is not free yet: the next of those, or EMPTY
 */
struct entry {
	struct nvmepeer_store_item item;
	uint8_t passes;
	bool once;
	uint32_t host;
	uint32_t stuck;
};

/**
 * struct nvmepeer_index - an index
 * @store: the store
 * @lock: guards all below
 * @entries: by slot
 * @slots: number of them
 * @table: slots by key, with linear probing; EMPTY
 * @mask: entries of @table - 1
 * @hand: slot where the clock goes on
 * @stuck: first slot that has to be freed again, as its value was pinned, or EMPTY
 * @page_bytes: of the store
 * @host: pages in host memory
 * @owned: the same, to be freed
 * @host_slots: slot of each page, or EMPTY
 * @host_pages: number of them
 * @host_hand: page where the clock of host memory goes on
 */
struct nvmepeer_index {
	struct nvmepeer_store *store;
	pthread_mutex_t lock;
	struct entry *entries;
	uint32_t slots;
	uint32_t *table;
	uint32_t mask;
	uint32_t hand;
	uint32_t stuck;
	uint32_t page_bytes;
	uint8_t *host;
	void *owned;
	uint32_t *host_slots;
	uint32_t host_pages;
	uint32_t host_hand;
};

static uint32_t home_of(const struct nvmepeer_index *index, const uint8_t *key)
{
	return (uint32_t)hash64(key, NVMEPEER_STORE_TAG) & index->mask;
}

/* The place of a key in the table: of its slot, or EMPTY. */
static uint32_t *find(const struct nvmepeer_index *index, const uint8_t *key)
{
	uint32_t at = home_of(index, key);

	while (index->table[at] != EMPTY &&
	       memcmp(index->entries[index->table[at]].item.tag, key, NVMEPEER_STORE_TAG) != 0)
		at = (at + 1) & index->mask;
	return &index->table[at];
}

static void add_entry(struct nvmepeer_index *index, const struct nvmepeer_store_item *item,
		      uint32_t hint)
{
	struct entry *entry = &index->entries[item->slot];

	entry->item = *item;
	entry->item.data = NULL;
	entry->passes = hint == NVMEPEER_INDEX_ONCE ? 0 : hint == NVMEPEER_INDEX_KEEP ? 3 : 1;
	entry->once = hint == NVMEPEER_INDEX_ONCE;
	entry->host = EMPTY;
	*find(index, item->tag) = item->slot;
}

/* Later keys of the same run move up, so that none is behind a gap. */
static void remove_entry(struct nvmepeer_index *index, struct entry *entry)
{
	uint32_t gap = (uint32_t)(find(index, entry->item.tag) - index->table), at = gap;

	index->table[gap] = EMPTY;
	for (;;) {
		uint32_t home;

		at = (at + 1) & index->mask;
		if (index->table[at] == EMPTY)
			break;
		home = home_of(index, index->entries[index->table[at]].item.tag);
		if (((at - home) & index->mask) < ((at - gap) & index->mask))
			continue;
		index->table[gap] = index->table[at];
		index->table[at] = EMPTY;
		gap = at;
	}
	/* Its page in host memory is taken in its turn. */
	entry->item.length = 0;
}

/*
 * Free the slot of a removed entry.  A value that could not be freed stays in the index; a
 * slot without one, or whose value is pinned, is freed later.
 */
static int free_slot(struct nvmepeer_index *index, struct nvmepeer_store_item item)
{
	struct entry *entry = &index->entries[item.slot];
	struct nvmepeer_store_item freed = item;
	int error = nvmepeer_store_free(index->store, &freed, 1, FREE_WAIT_MS);

	if (!error || error == -ENOENT)
		return error;
	pthread_mutex_lock(&index->lock);
	entry->item = item;
	entry->item.data = NULL;
	if (error != -ETIMEDOUT && item.length && *find(index, item.tag) == EMPTY) {
		*find(index, item.tag) = item.slot;
	} else {
		entry->item.length = 0;
		entry->stuck = index->stuck;
		index->stuck = item.slot;
	}
	pthread_mutex_unlock(&index->lock);
	return error;
}

/* Free what was pinned before.  Until then such a value comes back with the next open. */
static void free_stuck(struct nvmepeer_index *index)
{
	struct nvmepeer_store_item item;
	uint32_t slot;

	pthread_mutex_lock(&index->lock);
	slot = index->stuck;
	index->stuck = EMPTY;
	while (slot != EMPTY) {
		item = index->entries[slot].item;
		slot = index->entries[slot].stuck;
		pthread_mutex_unlock(&index->lock);
		free_slot(index, item);
		pthread_mutex_lock(&index->lock);
	}
	pthread_mutex_unlock(&index->lock);
}

/*
 * Choose a value to evict, and remove it: the first without passes left that no reader has
 * pinned, within so many rounds that one has none.
 */
static bool choose(struct nvmepeer_index *index, struct nvmepeer_store_item *item)
{
	bool found = false;

	pthread_mutex_lock(&index->lock);
	for (uint64_t i = 0; !found && i < 4ull * index->slots + 1; i++) {
		struct entry *entry = &index->entries[index->hand];

		index->hand = (index->hand + 1) % index->slots;
		if (entry->item.length && entry->passes) {
			entry->passes--;
			continue;
		}
		if (!entry->item.length || slot_has_users(index->store, entry->item.slot))
			continue;
		*item = entry->item;
		remove_entry(index, entry);
		found = true;
	}
	pthread_mutex_unlock(&index->lock);
	return found;
}

static int allocate(struct nvmepeer_index *index, uint32_t *slot)
{
	int error = nvmepeer_store_alloc(index->store, slot, 1);

	for (uint32_t i = 0; error == -ENOSPC && i < index->slots; i++) {
		struct nvmepeer_store_item item;
		int freed;

		if (!choose(index, &item))
			break;
		freed = free_slot(index, item);
		if (freed && freed != -ETIMEDOUT && freed != -ENOENT)
			return freed;
		error = nvmepeer_store_alloc(index->store, slot, 1);
	}
	return error;
}

/* A page of host memory for an entry, perhaps another one's; the caller holds the lock. */
static void keep_in_host(struct nvmepeer_index *index, struct entry *entry, const void *data)
{
	uint32_t page = index->host_hand;

	if (!index->host_pages || entry->host != EMPTY)
		return;
	index->host_hand = (page + 1) % index->host_pages;
	if (index->host_slots[page] != EMPTY)
		index->entries[index->host_slots[page]].host = EMPTY;
	index->host_slots[page] = entry->item.slot;
	entry->host = page;
	memcpy(index->host + (size_t)page * index->page_bytes, data, entry->item.length);
}

/* Remove a value that can be read no more, unless another has its slot by now. */
static void drop(struct nvmepeer_index *index, const struct nvmepeer_store_item *item)
{
	struct entry *entry = &index->entries[item->slot];
	struct nvmepeer_explanation why = { 0 };
	bool same;

	nvmepeer_explain(&why, sizeof(why));
	pthread_mutex_lock(&index->lock);
	same = entry->item.length && entry->item.generation == item->generation;
	if (same)
		remove_entry(index, entry);
	pthread_mutex_unlock(&index->lock);
	if (same)
		free_slot(index, *item);
	nvmepeer_fail(&why, sizeof(why));
}

/* Whether there is a value; one of a lost member is none. */
static bool has_key(struct nvmepeer_index *index, const uint8_t *key)
{
	struct nvmepeer_store_item item = { 0 };
	uint32_t slot;

	pthread_mutex_lock(&index->lock);
	slot = *find(index, key);
	if (slot != EMPTY)
		item = index->entries[slot].item;
	pthread_mutex_unlock(&index->lock);
	if (slot == EMPTY)
		return false;
	if (!member_is_lost(index->store, slot % index->store->layout.members))
		return true;
	drop(index, &item);
	return false;
}

static int check_put(const struct nvmepeer_index *index, uint32_t length, uint32_t hint)
{
	if (hint > NVMEPEER_INDEX_KEEP)
		return store_fail(putting, -EINVAL, "invalid hint", "pass one of enum nvmepeer_index_hint",
				  "hint %u", hint);
	if (length_valid(index->store, length))
		return 0;
	return store_fail(putting, -EINVAL, "invalid length of a value",
			  "pass a multiple of 4 bytes, at most a page", "%u bytes of at most %u", length,
			  index->page_bytes);
}

int nvmepeer_index_put(struct nvmepeer_index *index, const uint8_t key[NVMEPEER_STORE_TAG],
		       const void *data, uint32_t length, uint32_t hint)
{
	struct nvmepeer_store_item item = { .length = length, .data = (void *)(uintptr_t)data };
	bool duplicate;
	int error = check_put(index, length, hint);

	if (error || has_key(index, key))
		return error;
	/* A removed value of this key must not come back instead of the new one. */
	free_stuck(index);
	error = allocate(index, &item.slot);
	if (error)
		return error;
	memcpy(item.tag, key, sizeof(item.tag));
	error = nvmepeer_store_write(index->store, &item, 1);
	item.length = 0;
	if (!error)
		error = nvmepeer_store_commit(index->store, &item, 1);
	if (error) {
		struct nvmepeer_explanation why;

		nvmepeer_explain(&why, sizeof(why));
		item.generation = 0;
		free_slot(index, item);
		return nvmepeer_fail(&why, sizeof(why));
	}
	pthread_mutex_lock(&index->lock);
	/* Another thread may have put the same key meanwhile. */
	duplicate = *find(index, key) != EMPTY;
	if (!duplicate) {
		add_entry(index, &item, hint);
		if (hint != NVMEPEER_INDEX_ONCE)
			keep_in_host(index, &index->entries[item.slot], data);
	}
	pthread_mutex_unlock(&index->lock);
	return duplicate ? free_slot(index, item) : 0;
}

static int fail_absent(const char *call)
{
	return store_fail(call, -ENOENT, "there is no such value", "treat it as a miss",
			  "the index has no such key");
}

int nvmepeer_index_get(struct nvmepeer_index *index, const uint8_t key[NVMEPEER_STORE_TAG],
		       void *data, uint32_t *length)
{
	struct nvmepeer_store_item item;
	struct entry *entry;
	uint32_t slot;
	int error;

	pthread_mutex_lock(&index->lock);
	slot = *find(index, key);
	if (slot == EMPTY) {
		pthread_mutex_unlock(&index->lock);
		return fail_absent(finding);
	}
	entry = &index->entries[slot];
	entry->passes |= 1;
	item = entry->item;
	if (entry->host != EMPTY)
		memcpy(data, index->host + (size_t)entry->host * index->page_bytes, item.length);
	*length = item.length;
	item.data = entry->host == EMPTY ? data : NULL;
	pthread_mutex_unlock(&index->lock);
	if (!item.data)
		return 0;
	error = nvmepeer_store_read(index->store, &item, 1);
	if (error) {
		if (error_is_of_disk(error))
			drop(index, &item);
		return error;
	}
	pthread_mutex_lock(&index->lock);
	if (entry->item.length && !entry->once && entry->item.generation == item.generation)
		keep_in_host(index, entry, data);
	pthread_mutex_unlock(&index->lock);
	return 0;
}

int nvmepeer_index_pin(struct nvmepeer_index *index,
		       const uint8_t (*keys)[NVMEPEER_STORE_TAG], uint32_t count,
		       struct nvmepeer_store_item *items)
{
	uint32_t found = 0;

	for (; found < count; found++) {
		uint32_t slot;
		int error;

		pthread_mutex_lock(&index->lock);
		slot = *find(index, keys[found]);
		if (slot != EMPTY) {
			items[found] = index->entries[slot].item;
			index->entries[slot].passes |= 1;
		}
		pthread_mutex_unlock(&index->lock);
		if (slot == EMPTY)
			break;
		error = nvmepeer_store_pin(index->store, &items[found], 1);
		if (error) {
			if (error_is_of_disk(error))
				drop(index, &items[found]);
			break;
		}
	}
	return (int)found;
}

int nvmepeer_index_remove(struct nvmepeer_index *index, const uint8_t key[NVMEPEER_STORE_TAG])
{
	struct nvmepeer_store_item item = { 0 };
	uint32_t slot;

	free_stuck(index);
	pthread_mutex_lock(&index->lock);
	slot = *find(index, key);
	if (slot != EMPTY) {
		item = index->entries[slot].item;
		remove_entry(index, &index->entries[slot]);
	}
	pthread_mutex_unlock(&index->lock);
	if (slot == EMPTY)
		return fail_absent("nvmepeer_index_remove");
	return free_slot(index, item);
}

/* The values of the store; of two with one key, which a power cut may leave, one goes. */
static void add_all(struct nvmepeer_index *index)
{
	struct nvmepeer_store_item item;
	uint64_t position = 0;

	while (nvmepeer_store_scan(index->store, &position, &item, 1) > 0) {
		if (*find(index, item.tag) == EMPTY)
			add_entry(index, &item, NVMEPEER_INDEX_NORMAL);
		else
			free_slot(index, item);
	}
}

static int allocate_index(struct nvmepeer_index *index, void *host_memory)
{
	uint64_t places = 16;

	/* More than there are slots, so that find() ends. */
	while (places < 2ull * index->slots && places < 1ull << 32)
		places *= 2;
	index->mask = (uint32_t)(places - 1);
	index->entries = calloc(index->slots, sizeof(*index->entries));
	index->table = malloc(places * sizeof(*index->table));
	index->host_slots = malloc((index->host_pages + 1ull) * sizeof(*index->host_slots));
	index->host = host_memory;
	if (index->host_pages && !host_memory)
		index->host = index->owned =
			buffer_new(index->store, (uint64_t)index->host_pages * index->page_bytes);
	if (!index->entries || !index->table || !index->host_slots ||
	    (index->host_pages && !index->host))
		return -ENOMEM;
	memset(index->table, 0xff, places * sizeof(*index->table));
	memset(index->host_slots, 0xff, (index->host_pages + 1ull) * sizeof(*index->host_slots));
	return 0;
}

int nvmepeer_index_open(struct nvmepeer_store *store, const struct nvmepeer_index_options *options,
			struct nvmepeer_index **index)
{
	struct nvmepeer_index *opened;
	int error = store_check_size(opening, options->size,
				     SIZE_THROUGH(struct nvmepeer_index_options, host_memory));

	if (!error)
		error = store_check_newer(opening, options, options->size, sizeof(*options));
	if (error)
		return error;
	opened = calloc(1, sizeof(*opened));
	if (!opened)
		return store_fail_memory(opening);
	pthread_mutex_init(&opened->lock, NULL);
	opened->store = store;
	opened->stuck = EMPTY;
	opened->slots = store->layout.slots * store->layout.members;
	opened->page_bytes = store->layout.page_bytes;
	opened->host_pages = options->host_pages;
	if (allocate_index(opened, options->host_memory)) {
		nvmepeer_index_close(opened);
		return store_fail_memory(opening);
	}
	add_all(opened);
	*index = opened;
	return 0;
}

void nvmepeer_index_close(struct nvmepeer_index *index)
{
	if (!index)
		return;
	free_stuck(index);
	pthread_mutex_destroy(&index->lock);
	free(index->entries);
	free(index->table);
	free(index->host_slots);
	free(index->owned);
	free(index);
}
