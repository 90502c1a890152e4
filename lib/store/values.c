// SPDX-License-Identifier: MIT OR GPL-2.0
/* Values: read, write and verify, many at a time. */
#include <stdlib.h>
#include <string.h>

#include "hash.h"
#include "store.h"

static const char reading[] = "nvmepeer_store_read";
static const char writing[] = "nvmepeer_store_write";

enum { BATCH = 64 };

/**
 * struct transfer - of one value
 * @io: the command
 * @item: the caller's item
 * @copy: memory of the transfer, if the caller's is misaligned or the value has padding
 * @bytes: of the value
 */
struct transfer {
	struct io io;
	struct nvmepeer_store_item *item;
	void *copy;
	uint32_t bytes;
};

/* Memory and place of the transfer.  False: no memory. */
static bool prepare(struct nvmepeer_store *store, struct transfer *transfer, enum io_kind kind)
{
	const struct member *member = member_of(store, transfer->item->slot);
	uint64_t block = store->layout.block;
	void *data = transfer->item->data;

	transfer->io.kind = kind;
	transfer->io.disk = &member->disk;
	transfer->io.offset = slot_offset(member, number_of(store, transfer->item->slot));
	transfer->io.bytes = (transfer->bytes + block - 1) / block * block;
	transfer->copy = NULL;
	if (transfer->bytes % block || (uintptr_t)data % block) {
		transfer->copy = buffer_new(store, transfer->io.bytes);
		if (!transfer->copy)
			return false;
		if (kind == IO_WRITE)
			memcpy(transfer->copy, data, transfer->bytes);
	}
	transfer->io.data = transfer->copy ? transfer->copy : data;
	return true;
}

/* The caller's own slot, for a write.  The caller holds the lock. */
static int own(struct nvmepeer_store *store, const struct nvmepeer_store_item *item)
{
	struct slot *slot;

	if (store->read_only)
		return -EROFS;
	if (!slot_exists(store, item->slot) || !length_valid(store, item->length))
		return -EINVAL;
	if (member_of(store, item->slot)->lost)
		return -ENODEV;
	slot = slot_at(store, item->slot);
	if (slot->state != SLOT_ALLOCATED)
		return -EINVAL;
	if (slot->users || slot->freeing)
		return -EBUSY;
	slot->users++;
	slot->length = 0;
	return 0;
}

/* Begin the transfers of some items.  Returns the number of transfers. */
static uint32_t begin(struct nvmepeer_store *store, struct nvmepeer_store_item *items,
		      uint32_t count, enum io_kind kind, struct transfer *transfers)
{
	uint32_t made = 0;

	pthread_mutex_lock(&store->lock);
	for (uint32_t i = 0; i < count; i++) {
		struct transfer *transfer = &transfers[made];

		items[i].result = kind == IO_READ ? slot_pin(store, &items[i]) :
						    own(store, &items[i]);
		if (items[i].result)
			continue;
		transfer->item = &items[i];
		transfer->bytes = kind == IO_READ ? slot_at(store, items[i].slot)->length :
						    items[i].length;
		made++;
	}
	pthread_mutex_unlock(&store->lock);
	return made;
}

/* A value that was read: to the caller's memory, and its checksum. */
static int finish_read(struct nvmepeer_store *store, struct transfer *transfer)
{
	struct nvmepeer_store_item *item = transfer->item;
	/* Constant while the slot is pinned. */
	const struct slot *slot = slot_at(store, item->slot);

	if (transfer->copy)
		memcpy(item->data, transfer->copy, transfer->bytes);
	item->length = transfer->bytes;
	if (slot->has_checksum && slot->checksum != hash64(item->data, transfer->bytes))
		return -EILSEQ;
	return 0;
}

static void end(struct nvmepeer_store *store, struct transfer *transfers, uint32_t count,
		const uint64_t *checksums)
{
	pthread_mutex_lock(&store->lock);
	for (uint32_t i = 0; i < count; i++) {
		const struct nvmepeer_store_item *item = transfers[i].item;
		struct slot *slot = slot_at(store, item->slot);

		if (checksums)
			slot->withdrawn = error_is_of_disk(item->result);
		if (checksums && !item->result) {
			slot->length = item->length;
			slot->checksum = checksums[i];
			slot->has_checksum = true;
		}
		slot_unpin(store, slot);
	}
	pthread_mutex_unlock(&store->lock);
}

static void run(struct nvmepeer_store *store, struct io_queue *queue,
		struct nvmepeer_store_item *items, uint32_t count, enum io_kind kind)
{
	struct transfer transfers[BATCH];
	uint64_t checksums[BATCH] = { 0 };
	uint32_t made = begin(store, items, count, kind, transfers);

	for (uint32_t i = 0; i < made; i++) {
		struct transfer *transfer = &transfers[i];

		if (!prepare(store, transfer, kind)) {
			transfer->item->result = -ENOMEM;
			continue;
		}
		io_submit(queue, &transfer->io);
		if (kind == IO_WRITE)
			checksums[i] = hash64(transfer->item->data, transfer->bytes);
	}
	io_wait(queue);
	for (uint32_t i = 0; i < made; i++) {
		struct transfer *transfer = &transfers[i];

		if (!transfer->item->result)
			transfer->item->result = transfer->io.result;
		if (!transfer->item->result && kind == IO_READ)
			transfer->item->result = finish_read(store, transfer);
		free(transfer->copy);
	}
	end(store, transfers, made, kind == IO_WRITE ? checksums : NULL);
}

static void run_all(struct nvmepeer_store *store, struct io_queue *queue,
		    struct nvmepeer_store_item *items, uint32_t count, enum io_kind kind)
{
	for (uint32_t i = 0; i < count; i += BATCH)
		run(store, queue, items + i, count - i < BATCH ? count - i : BATCH, kind);
}

void values_read(struct nvmepeer_store *store, struct io_queue *queue,
		 struct nvmepeer_store_item *items, uint32_t count)
{
	run_all(store, queue, items, count, IO_READ);
}

static int run_list(const char *call, struct nvmepeer_store *store,
		    struct nvmepeer_store_item *items, uint32_t count, enum io_kind kind)
{
	struct io_queue *queue;
	int error = queue_get(store, &queue);

	if (error)
		return store_fail_call(call, error, items, count);
	run_all(store, queue, items, count, kind);
	queue_put(store, queue);
	return store_fail_items(store, call, items, count);
}

int nvmepeer_store_write(struct nvmepeer_store *store, struct nvmepeer_store_item *items,
			 uint32_t count)
{
	return run_list(writing, store, items, count, IO_WRITE);
}

int nvmepeer_store_read(struct nvmepeer_store *store, struct nvmepeer_store_item *items,
			uint32_t count)
{
	return run_list(reading, store, items, count, IO_READ);
}
