// SPDX-License-Identifier: MIT OR GPL-2.0
/*
 * The table of a member: one thread at a time is its writer, and writes the changes of all
 * threads that wait (group commit).
 */
#include <string.h>

#include "store.h"

void table_change(struct member *member, struct change *change)
{
	change->next = NULL;
	change->queued = true;
	*member->last = change;
	member->last = &change->next;
}

static uint64_t unit_of(const struct member *member, uint32_t slot)
{
	return (uint64_t)slot * LAYOUT_ENTRY / member->layout.unit;
}

/* Whether values have to be durable before the entries are. */
static bool has_values(const struct change *change)
{
	for (; change; change = change->next)
		if (change->descriptor.length)
			return true;
	return false;
}

/* Change the table in memory; the blocks to be written are dirty. */
static void apply(struct nvmepeer_store *store, struct member *member,
		  const struct change *change)
{
	pthread_mutex_lock(&store->lock);
	for (; change; change = change->next) {
		entry_encode(&member->layout, change->slot, &change->descriptor, change->tag,
			     member->table + (size_t)change->slot * LAYOUT_ENTRY);
		member->dirty[unit_of(member, change->slot)] = true;
	}
	pthread_mutex_unlock(&store->lock);
}

enum { BATCH = 32 };

/* Write the dirty blocks that @changes touch, each once. */
static int write_blocks(struct member *member, struct io_queue *queue,
			const struct change *change)
{
	struct io ios[BATCH] = { 0 };
	int error = 0;

	while (change && !error) {
		uint32_t count = 0;

		for (; change && count < BATCH; change = change->next) {
			uint64_t unit = unit_of(member, change->slot);

			if (!member->dirty[unit])
				continue;
			member->dirty[unit] = false;
			ios[count] = (struct io){
				.disk = &member->disk,
				.kind = IO_WRITE_FUA,
				.data = member->table + unit * member->layout.unit,
				.offset = (unit + 1) * member->layout.unit,
				.bytes = member->layout.unit,
			};
			io_submit(queue, &ios[count++]);
		}
		io_wait(queue);
		for (uint32_t i = 0; i < count; i++)
			error = error ? error : ios[i].result;
	}
	return error;
}

/* Make changes durable, as the writer of the member. */
static int write_changes(struct nvmepeer_store *store, struct io_queue *queue,
			 struct member *member, const struct change *changes)
{
	int error = 0;

	if (has_values(changes))
		error = run_one(queue, &member->disk, IO_FLUSH, NULL, 0, 0);
	if (error)
		return error;
	apply(store, member, changes);
	return write_blocks(member, queue, changes);
}

/* Called and returns with the lock held. */
static void write_all(struct nvmepeer_store *store, struct io_queue *queue,
		      struct member *member)
{
	struct change *change = member->changes, *next;
	bool lost = member->lost;
	int error = 0;

	member->changes = NULL;
	member->last = &member->changes;
	member->writing = true;
	pthread_mutex_unlock(&store->lock);
	if (!lost)
		error = write_changes(store, queue, member, change);
	if (error)
		member_lose(store, queue, member);
	pthread_mutex_lock(&store->lock);
	member->writing = false;
	for (; change; change = next) {
		/* The caller's memory may go as soon as the change is done. */
		next = change->next;
		change->result = lost ? -ENODEV : error ? -EIO : 0;
		change->done = true;
	}
	pthread_cond_broadcast(&store->changed);
}

void table_wait(struct nvmepeer_store *store, struct io_queue *queue, struct member *member,
		const struct change *change)
{
	while (!change->done) {
		if (member->writing)
			pthread_cond_wait(&store->changed, &store->lock);
		else
			write_all(store, queue, member);
	}
}
