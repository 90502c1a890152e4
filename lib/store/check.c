// SPDX-License-Identifier: MIT OR GPL-2.0
/* Read and verify all values. */
#include <stdlib.h>
#include <string.h>

#include "store.h"

enum { VALUES = 16 };

static void count_values(struct nvmepeer_store *store, struct nvmepeer_store_report *report,
			 const struct nvmepeer_store_item *items, uint32_t count)
{
	for (uint32_t i = 0; i < count; i++) {
		bool has_checksum;

		/* Freed meanwhile. */
		if (items[i].result == -ENOENT)
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
}

int nvmepeer_store_check(struct nvmepeer_store *store, struct nvmepeer_store_report *report,
			 size_t size)
{
	static const char call[] = "nvmepeer_store_check";
	struct nvmepeer_store_report made = { .size = sizeof(made) };
	struct nvmepeer_store_item items[VALUES];
	uint8_t *data;
	uint64_t position = 0;
	int count;
	int error = store_check_size(call, size,
				     SIZE_THROUGH(struct nvmepeer_store_report, damaged_entries));

	if (error)
		return error;
	data = buffer_new(store, VALUES * store->layout.slot_bytes);
	if (!data)
		return store_fail_memory(call);
	while ((count = nvmepeer_store_scan(store, &position, items, VALUES)) > 0) {
		for (int i = 0; i < count; i++)
			items[i].data = data + (uint64_t)i * store->layout.slot_bytes;
		nvmepeer_store_read(store, items, (uint32_t)count);
		count_values(store, &made, items, (uint32_t)count);
	}
	free(data);
	for (uint32_t i = 0; i < store->layout.members; i++)
		made.damaged_entries += store->members[i].damaged;
	store_copy_out(report, size, &made, sizeof(made));
	return 0;
}
