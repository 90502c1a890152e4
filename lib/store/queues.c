// SPDX-License-Identifier: MIT OR GPL-2.0
/* Queues of a store, of which each call uses one, and memory for I/O. */
#include <stdlib.h>
#include <string.h>

#include "store.h"

int queue_get(struct nvmepeer_store *store, struct io_queue **queue)
{
	bool found;

	pthread_mutex_lock(&store->queue_lock);
	found = store->queue_count;
	if (found)
		*queue = store->queues[--store->queue_count];
	pthread_mutex_unlock(&store->queue_lock);
	return found ? 0 : io_queue_open(queue);
}

void queue_put(struct nvmepeer_store *store, struct io_queue *queue)
{
	struct io_queue **queues;

	pthread_mutex_lock(&store->queue_lock);
	if (store->queue_count == store->queue_room) {
		queues = realloc(store->queues, (store->queue_room + 8) * sizeof(*queues));
		if (queues) {
			store->queues = queues;
			store->queue_room += 8;
		}
	}
	if (store->queue_count < store->queue_room) {
		store->queues[store->queue_count++] = queue;
		queue = NULL;
	}
	pthread_mutex_unlock(&store->queue_lock);
	if (queue)
		io_queue_close(queue);
}

int run_one(struct io_queue *queue, const struct io_disk *disk, enum io_kind kind, void *data,
	    uint64_t offset, uint64_t bytes)
{
	struct io io = {
		.disk = disk,
		.kind = kind,
		.data = data,
		.offset = offset,
		.bytes = bytes,
	};

	io_submit(queue, &io);
	io_wait(queue);
	return io.result;
}

void *buffer_new(const struct nvmepeer_store *store, uint64_t bytes)
{
	void *buffer;

	if (posix_memalign(&buffer, store->layout.unit, bytes))
		return NULL;
	return memset(buffer, 0, bytes);
}
