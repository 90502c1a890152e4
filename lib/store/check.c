// SPDX-License-Identifier: MIT OR GPL-2.0
/* Read and verify all values. */
#include <stdlib.h>
#include <string.h>

#include "store.h"

enum { VALUES = 16 };

/* Returns 0, or -ENOMEM if a value could not be read for lack of memory. */
static int count_values(struct nvmepeer_store *store, struct nvmepeer_store_report *report,
			const struct nvmepeer_store_item *items, uint32_t count)
{
	for (uint32_t i = 0; i < count; i++) {
		bool has_checksum;

		if (items[i].result == -ENOMEM)
			return -ENOMEM;
		/* Freed meanwhile, or its member was lost. */
		if (items[i].result == -ENOENT || items[i].result == -ENODEV)
			continue;
		pthread_mutex_lock(&store->lock);
		has_checksum = slot_at(store, items[i].slot)->has_checksum;
		pthread_mutex_unlock(&store->lock);
		report->values++;
		if (items[i].result)
			report->damaged_values++;
		else if (has_checksum)
			report->verified++;
		else
			report->unverified++;
	}
	return 0;
}

/* @data has room for VALUES values. */
static int check_values(struct nvmepeer_store *store, struct io_queue *queue, uint8_t *data,
			struct nvmepeer_store_report *report)
{
	struct nvmepeer_store_item items[VALUES];
	uint64_t position = 0;
	int error = 0;
	int count;

	while (!error && (count = nvmepeer_store_scan(store, &position, items, VALUES)) > 0) {
		for (int i = 0; i < count; i++)
			items[i].data = data + (uint64_t)i * store->layout.slot_bytes;
		values_read(store, queue, items, (uint32_t)count);
		error = count_values(store, report, items, (uint32_t)count);
	}
	return error;
}

int nvmepeer_store_check(struct nvmepeer_store *store, struct nvmepeer_store_report *report,
			 size_t size)
{
	static const char call[] = "nvmepeer_store_check";
	struct nvmepeer_store_report made = { .size = sizeof(made) };
	struct io_queue *queue;
	uint8_t *data;
	int error = store_check_size(call, size,
				     SIZE_THROUGH(struct nvmepeer_store_report, damaged_entries));

	if (error)
		return error;
	data = buffer_new(store, VALUES * store->layout.slot_bytes);
	error = data ? queue_get(store, &queue) : -ENOMEM;
	if (!error) {
		error = check_values(store, queue, data, &made);
		queue_put(store, queue);
	}
	free(data);
	if (error)
		return store_fail_queue(call, error);
	for (uint32_t i = 0; i < store->layout.members; i++)
		made.damaged_entries += store->members[i].damaged;
	store_copy_out(report, size, &made, sizeof(made));
	return 0;
}
