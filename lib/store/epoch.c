// SPDX-License-Identifier: MIT OR GPL-2.0
/*
 * Superblocks: the epoch changes with the set of live members, so that a member that has
 * missed changes is recognised.
 */
#include <sys/random.h>

#include "store.h"

uint64_t epoch_new(uint64_t epoch)
{
	uint32_t random;

	/* Without random numbers, members that went on apart could be taken for one store. */
	while (getrandom(&random, sizeof(random), 0) != sizeof(random))
		;
	return ((epoch >> 32) + 1) << 32 | random;
}

bool store_has_members(const struct nvmepeer_store *store)
{
	for (uint32_t i = 0; i < store->layout.members; i++)
		if (!store->members[i].lost)
			return true;
	return false;
}

static uint64_t working_members(const struct nvmepeer_store *store)
{
	uint64_t working = 0;

	for (uint32_t i = 0; i < store->layout.members; i++)
		if (!store->members[i].failed)
			working |= 1ull << i;
	return working;
}

int epoch_write(struct nvmepeer_store *store, struct io_queue *queue, struct member *member)
{
	member->layout.epoch = store->layout.epoch;
	member->layout.previous = store->layout.previous;
	member->layout.live = store->layout.live;
	layout_encode(&member->layout, store->block);
	return run_one(queue, &member->disk, IO_WRITE_FUA, store->block, 0, member->layout.block);
}

int epoch_advance(struct nvmepeer_store *store, struct io_queue *queue)
{
	uint32_t members = store->layout.members;
	int error = 0;

	store->layout.live = working_members(store);
	store->layout.previous = store->layout.epoch;
	store->layout.epoch = epoch_new(store->layout.epoch);
	/*
	 * First to members that were emptied: had another one the new epoch and they not, they
	 * would be emptied again.
	 */
	for (uint32_t i = 0; i < 2 * members; i++) {
		struct member *member = &store->members[i % members];
		bool emptied = store->emptied >> i % members & 1;

		if (i < members ? !emptied : emptied)
			continue;
		if (!member->failed && epoch_write(store, queue, member)) {
			member->failed = true;
			error = -EIO;
		}
	}
	return error;
}

void member_lose(struct nvmepeer_store *store, struct io_queue *queue, struct member *member)
{
	pthread_mutex_lock(&store->epoch_lock);
	if (!member->failed) {
		member->failed = true;
		while (epoch_advance(store, queue))
			;
	}
	/* A caller that sees a lost member may rely on its being emptied when it comes back. */
	pthread_mutex_lock(&store->lock);
	for (uint32_t i = 0; i < store->layout.members; i++)
		store->members[i].lost = store->members[i].failed;
	pthread_cond_broadcast(&store->changed);
	pthread_mutex_unlock(&store->lock);
	pthread_mutex_unlock(&store->epoch_lock);
}
