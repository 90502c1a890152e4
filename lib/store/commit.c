// SPDX-License-Identifier: MIT OR GPL-2.0
/* Commit and free: changes of the table, and what they make of a slot. */
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "store.h"

static const char committing[] = "nvmepeer_store_commit";
static const char freeing[] = "nvmepeer_store_free";

/* The caller holds the lock. */
static int begin_commit(struct nvmepeer_store *store, struct nvmepeer_store_item *item,
			struct change *change)
{
	struct member *member;
	struct slot *slot;
	bool peer;

	if (!slot_exists(store, item->slot))
		return -EINVAL;
	member = member_of(store, item->slot);
	if (member->lost)
		return -ENODEV;
	slot = slot_at(store, item->slot);
	if (slot->state == SLOT_COMMITTING)
		return -EBUSY;
	if (slot->state != SLOT_ALLOCATED)
		return -EINVAL;
	if (slot->users || slot->freeing)
		return -EBUSY;
	if (item->flags & ~(uint32_t)(NVMEPEER_STORE_PEER | NVMEPEER_STORE_PINNED))
		return -EINVAL;
	peer = item->flags & NVMEPEER_STORE_PEER;
	/* A length without the flag is that of the write, whose checksum is kept. */
	if (!length_valid(store, peer ? item->length : slot->length) ||
	    (!peer && item->length && item->length != slot->length))
		return -EINVAL;
	if (peer) {
		slot->length = item->length;
		slot->has_checksum = false;
		slot->checksum = 0;
	}
	change->slot = number_of(store, item->slot);
	change->tag = item->tag;
	change->descriptor.generation = slot->generation + 1;
	change->descriptor.length = slot->length;
	change->descriptor.checksum = slot->checksum;
	change->descriptor.has_checksum = slot->has_checksum;
	slot->state = SLOT_COMMITTING;
	table_change(member, change);
	return 0;
}

static void end_commit(struct nvmepeer_store *store, struct nvmepeer_store_item *item,
		       const struct change *change)
{
	struct slot *slot = slot_at(store, item->slot);

	item->result = change->result;
	if (item->result) {
		slot->state = SLOT_ALLOCATED;
		slot->uncertain |= item->result == -EIO;
		return;
	}
	slot->generation = change->descriptor.generation;
	slot->state = SLOT_VALUE;
	item->generation = slot->generation;
	item->length = slot->length;
}

int nvmepeer_store_commit(struct nvmepeer_store *store, struct nvmepeer_store_item *items,
			  uint32_t count)
{
	struct change *changes = calloc(count ? count : 1, sizeof(*changes));
	struct io_queue *queue;
	int error = changes ? queue_get(store, &queue) : -ENOMEM;

	if (error) {
		free(changes);
		return store_fail_call(committing, error, items, count);
	}
	pthread_mutex_lock(&store->lock);
	for (uint32_t i = 0; i < count; i++)
		items[i].result = store->read_only ? -EROFS :
				  begin_commit(store, &items[i], &changes[i]);
	for (uint32_t i = 0; i < count; i++) {
		if (!changes[i].queued)
			continue;
		table_wait(store, queue, member_of(store, items[i].slot), &changes[i]);
		end_commit(store, &items[i], &changes[i]);
	}
	pthread_mutex_unlock(&store->lock);
	queue_put(store, queue);
	free(changes);
	return store_fail_items(store, committing, items, count);
}

static void release(struct nvmepeer_store *store, struct member *member, uint32_t slot)
{
	struct slot *freed = slot_at(store, slot);

	freed->state = SLOT_FREE;
	freed->length = 0;
	freed->has_checksum = false;
	freed->uncertain = false;
	freed->freeing = false;
	freed->checksum = 0;
	if (!freed->withdrawn)
		member->free[member->free_count++] = number_of(store, slot);
}

/* By an earlier call; or its member was missing at open, and is emptied when it comes back. */
static bool is_freed(const struct nvmepeer_store *store, const struct nvmepeer_store_item *item)
{
	return item->generation == NVMEPEER_STORE_FREED || !member_of(store, item->slot)->present;
}

/*
 * Unpublish: no new reader.  The slot is this call's until it is freed or the call fails:
 * another free of it would free what its next owner has allocated.  The caller holds the
 * lock.
 */
static int begin_free(struct nvmepeer_store *store, const struct nvmepeer_store_item *item)
{
	struct slot *slot;
	uint64_t expected;

	if (store->read_only)
		return -EROFS;
	if (!slot_exists(store, item->slot))
		return -EINVAL;
	if (is_freed(store, item))
		return 0;
	slot = slot_at(store, item->slot);
	/* An allocation has no generation yet: one is of an earlier owner. */
	expected = slot->uncertain || slot->state == SLOT_ALLOCATED ||
		   slot->state == SLOT_COMMITTING ? 0 : slot->generation;
	if (slot->state == SLOT_FREE || item->generation != expected)
		return -ENOENT;
	if (slot->freeing || slot->state == SLOT_COMMITTING || slot->state == SLOT_CLEARING)
		return -EBUSY;
	slot->freeing = true;
	if (slot->state == SLOT_VALUE)
		slot->state = SLOT_FREEING;
	return 0;
}

/* Until a slot has no users, or until @end.  The caller holds the lock. */
static int wait_for_readers(struct nvmepeer_store *store, const struct slot *slot,
			    const struct timespec *end)
{
	while (slot->users)
		if (pthread_cond_timedwait(&store->changed, &store->lock, end) &&
		    slot->users)
			return -ETIMEDOUT;
	return 0;
}

/* The caller holds the lock. */
static int clear(struct nvmepeer_store *store, const struct nvmepeer_store_item *item,
		 struct change *change, const struct timespec *end)
{
	struct member *member = member_of(store, item->slot);
	struct slot *slot;
	int error;

	if (is_freed(store, item))
		return 0;
	slot = slot_at(store, item->slot);
	error = wait_for_readers(store, slot, end);
	if (error) {
		slot->freeing = false;
		return error;
	}
	if (slot->state == SLOT_ALLOCATED && !slot->uncertain) {
		release(store, member, item->slot);
		return 0;
	}
	change->slot = number_of(store, item->slot);
	change->descriptor.generation = slot->generation;
	slot->state = SLOT_CLEARING;
	table_change(member, change);
	return 0;
}

/* The caller holds the lock. */
static void end_free(struct nvmepeer_store *store, struct nvmepeer_store_item *item,
		     const struct change *change)
{
	struct member *member = member_of(store, item->slot);
	struct slot *slot = slot_at(store, item->slot);

	/* Of a lost member no value comes back, if there is another that proves the loss. */
	item->result = change->result && store_has_members(store) ? 0 : change->result;
	if (!item->result) {
		release(store, member, item->slot);
		return;
	}
	slot->state = slot->uncertain ? SLOT_ALLOCATED : SLOT_FREEING;
	slot->freeing = false;
}

static struct timespec time_after(int milliseconds)
{
	struct timespec end;

	clock_gettime(CLOCK_MONOTONIC, &end);
	end.tv_sec += milliseconds / 1000;
	end.tv_nsec += milliseconds % 1000 * 1000000L;
	if (end.tv_nsec >= 1000000000) {
		end.tv_sec++;
		end.tv_nsec -= 1000000000;
	}
	return end;
}

int nvmepeer_store_free(struct nvmepeer_store *store, struct nvmepeer_store_item *items,
			uint32_t count, int timeout_ms)
{
	struct change *changes = calloc(count ? count : 1, sizeof(*changes));
	struct timespec end = time_after(timeout_ms);
	struct io_queue *queue;
	int error = changes ? queue_get(store, &queue) : -ENOMEM;

	if (error) {
		free(changes);
		return store_fail_call(freeing, error, items, count);
	}
	pthread_mutex_lock(&store->lock);
	for (uint32_t i = 0; i < count; i++)
		items[i].result = begin_free(store, &items[i]);
	for (uint32_t i = 0; i < count; i++)
		if (!items[i].result)
			items[i].result = clear(store, &items[i], &changes[i], &end);
	for (uint32_t i = 0; i < count; i++) {
		if (!changes[i].queued)
			continue;
		table_wait(store, queue, member_of(store, items[i].slot), &changes[i]);
		end_free(store, &items[i], &changes[i]);
	}
	pthread_mutex_unlock(&store->lock);
	for (uint32_t i = 0; i < count; i++)
		if (!items[i].result)
			items[i].generation = NVMEPEER_STORE_FREED;
	queue_put(store, queue);
	free(changes);
	return store_fail_items(store, freeing, items, count);
}
