// SPDX-License-Identifier: MIT OR GPL-2.0
/* Allocation, pins, and where slots are. */
#include <string.h>

#include <nvmepeer_device.h>

#include "store.h"

static uint64_t free_slots(const struct nvmepeer_store *store)
{
	uint64_t count = 0;

	for (uint32_t i = 0; i < store->layout.members; i++)
		if (!store->members[i].lost)
			count += store->members[i].free_count;
	return count;
}

/* From the member whose turn it is.  The caller holds the lock; there is a free slot. */
static uint32_t take(struct nvmepeer_store *store)
{
	for (;;) {
		uint32_t number = store->next++ % store->layout.members;
		struct member *member = &store->members[number];
		uint32_t slot;

		if (member->lost || !member->free_count)
			continue;
		slot = member->free[--member->free_count];
		member->slots[slot].state = SLOT_ALLOCATED;
		return slot * store->layout.members + number;
	}
}

int nvmepeer_store_alloc(struct nvmepeer_store *store, uint32_t *slots, uint32_t count)
{
	static const char call[] = "nvmepeer_store_alloc", what[] = "cannot allocate slots";
	uint64_t available;

	if (store->read_only)
		return store_fail(call, -EROFS, what, "open the store without NVMEPEER_STORE_READ_ONLY",
				  "the store is open for reading only");
	pthread_mutex_lock(&store->lock);
	available = free_slots(store);
	for (uint32_t i = 0; available >= count && i < count; i++)
		slots[i] = take(store);
	pthread_mutex_unlock(&store->lock);
	if (available >= count)
		return 0;
	return store_fail(call, -ENOSPC, what, "free slots first", "%u slots; %llu are free", count,
			  (unsigned long long)available);
}

int slot_pin(struct nvmepeer_store *store, const struct nvmepeer_store_item *item)
{
	struct slot *slot;

	if (!slot_exists(store, item->slot))
		return -EINVAL;
	if (member_of(store, item->slot)->lost)
		return -ENODEV;
	slot = slot_at(store, item->slot);
	if (slot->state != SLOT_VALUE ||
	    (item->generation && item->generation != slot->generation))
		return -ENOENT;
	slot->users++;
	return 0;
}

void slot_unpin(struct nvmepeer_store *store, struct slot *slot)
{
	if (!--slot->users && slot->state != SLOT_VALUE)
		pthread_cond_broadcast(&store->changed);
}

/* What a slot with a value has.  The caller holds the lock. */
static void describe(const struct nvmepeer_store *store, struct nvmepeer_store_item *item)
{
	const struct member *member = member_of(store, item->slot);
	uint32_t number = number_of(store, item->slot);

	item->length = member->slots[number].length;
	item->generation = member->slots[number].generation;
	memcpy(item->tag, entry_tag(member->table + (size_t)number * LAYOUT_ENTRY),
	       sizeof(item->tag));
}

int nvmepeer_store_pin(struct nvmepeer_store *store, struct nvmepeer_store_item *items,
		       uint32_t count)
{
	pthread_mutex_lock(&store->lock);
	for (uint32_t i = 0; i < count; i++) {
		items[i].flags &= ~(uint32_t)NVMEPEER_STORE_PINNED;
		items[i].result = slot_pin(store, &items[i]);
		if (items[i].result)
			continue;
		describe(store, &items[i]);
		items[i].flags |= NVMEPEER_STORE_PINNED;
	}
	pthread_mutex_unlock(&store->lock);
	return store_fail_items(store, "nvmepeer_store_pin", items, count);
}

/* Whether the slot can have the pin of an item.  The caller holds the lock. */
static bool has_pin(const struct nvmepeer_store *store, const struct nvmepeer_store_item *item)
{
	const struct slot *slot;

	if (!slot_exists(store, item->slot) || !member_of(store, item->slot)->present)
		return false;
	slot = slot_at(store, item->slot);
	return slot->users && slot->generation == item->generation &&
	       (slot->state == SLOT_VALUE || slot->state == SLOT_FREEING);
}

void nvmepeer_store_unpin(struct nvmepeer_store *store, struct nvmepeer_store_item *items,
			  uint32_t count)
{
	pthread_mutex_lock(&store->lock);
	for (uint32_t i = 0; i < count; i++) {
		if (items[i].flags & NVMEPEER_STORE_PINNED && has_pin(store, &items[i]))
			slot_unpin(store, slot_at(store, items[i].slot));
		items[i].flags &= ~(uint32_t)NVMEPEER_STORE_PINNED;
	}
	pthread_mutex_unlock(&store->lock);
}

int nvmepeer_store_scan(struct nvmepeer_store *store, uint64_t *position,
			struct nvmepeer_store_item *items, uint32_t count)
{
	uint64_t slots = (uint64_t)store->layout.slots * store->layout.members;
	uint32_t found = 0;

	pthread_mutex_lock(&store->lock);
	for (; *position < slots && found < count; ++*position) {
		uint32_t slot = (uint32_t)*position;

		if (member_of(store, slot)->lost || slot_at(store, slot)->state != SLOT_VALUE)
			continue;
		memset(&items[found], 0, sizeof(items[found]));
		items[found].slot = slot;
		describe(store, &items[found++]);
	}
	pthread_mutex_unlock(&store->lock);
	return (int)found;
}

bool slot_has_users(struct nvmepeer_store *store, uint32_t slot)
{
	bool users;

	pthread_mutex_lock(&store->lock);
	users = slot_at(store, slot)->users;
	pthread_mutex_unlock(&store->lock);
	return users;
}

bool member_is_lost(struct nvmepeer_store *store, uint32_t member)
{
	bool lost;

	pthread_mutex_lock(&store->lock);
	lost = store->members[member].lost;
	pthread_mutex_unlock(&store->lock);
	return lost;
}

static int fail_lost(const char *call, uint32_t member)
{
	return store_fail(call, -ENODEV, "the slots cannot be accessed",
			  "treat them as misses; replace the member", "member %u is lost", member);
}

static int fail_slot(const char *call, const struct nvmepeer_store *store, uint32_t slot)
{
	return store_fail(call, -EINVAL, "there is no such slot", "pass a slot of nvmepeer_store_alloc()",
			  "slot %u of %llu", slot,
			  (unsigned long long)store->layout.slots * store->layout.members);
}

static int fail_namespace(const char *call, uint32_t member)
{
	return store_fail(call, -EOPNOTSUPP, "a peer cannot access the slots",
			  "use a namespace or a partition of one, not dm, LVM, md, loop or a file",
			  "member %u is no NVMe namespace", member);
}

uint64_t slot_lba(const struct nvmepeer_store *store, uint32_t slot)
{
	const struct member *member = member_of(store, slot);

	return (member->disk.start + slot_offset(member, number_of(store, slot))) /
	       member->disk.block;
}

int nvmepeer_store_place(struct nvmepeer_store *store, uint32_t slot,
			 struct nvmepeer_store_place *place, size_t size)
{
	static const char call[] = "nvmepeer_store_place";
	struct nvmepeer_store_place made = { .size = sizeof(made) };
	int error = store_check_size(call, size, SIZE_THROUGH(struct nvmepeer_store_place, block_bytes));

	if (error)
		return error;
	if (!slot_exists(store, slot))
		return fail_slot(call, store, slot);
	made.member = slot % store->layout.members;
	if (member_is_lost(store, made.member))
		return fail_lost(call, made.member);
	if (!member_of(store, slot)->disk.nsid)
		return fail_namespace(call, made.member);
	made.nsid = member_of(store, slot)->disk.nsid;
	made.block_bytes = member_of(store, slot)->disk.block;
	made.lba = slot_lba(store, slot);
	made.blocks = (uint32_t)(store->layout.slot_bytes / made.block_bytes);
	store_copy_out(place, size, &made, sizeof(made));
	return 0;
}

int slot_check_access(struct nvmepeer_store *store, const struct nvmepeer_store_item *item)
{
	const struct slot *slot = slot_at(store, item->slot);
	bool good;

	pthread_mutex_lock(&store->lock);
	if (slot->state == SLOT_ALLOCATED)
		good = !item->generation && !slot->freeing;
	else
		good = has_pin(store, item) && item->length <= slot->length;
	pthread_mutex_unlock(&store->lock);
	return good ? 0 : -EINVAL;
}

int nvmepeer_store_fill_list(struct nvmepeer_store *store, uint32_t member,
			     const struct nvmepeer_store_item *slots,
			     struct nvmepeer_list_item *items, uint32_t count)
{
	static const char call[] = "nvmepeer_store_fill_list";

	if (member >= store->layout.members)
		return store_fail(call, -EINVAL, "there is no such member", "pass a smaller number",
				  "member %u of %u", member, store->layout.members);
	if (member_is_lost(store, member))
		return fail_lost(call, member);
	if (!store->members[member].disk.nsid)
		return fail_namespace(call, member);
	for (uint32_t i = 0; i < count; i++) {
		int error;

		if (!slot_exists(store, slots[i].slot))
			return fail_slot(call, store, slots[i].slot);
		if (slots[i].slot % store->layout.members != member ||
		    !length_valid(store, slots[i].length))
			return store_fail(call, -EINVAL, "the list is invalid",
					  "make a list for each member, with the lengths of the values",
					  "item %u: slot %u of member %u, %u bytes, in a list for member %u",
					  i, slots[i].slot, slots[i].slot % store->layout.members,
					  slots[i].length, member);
		error = slot_check_access(store, &slots[i]);
		if (error)
			return store_fail(call, error, "the slot is not the caller's",
					  "allocate it to write it, or pin its value to read it",
					  "item %u: slot %u, generation %llu, is neither", i,
					  slots[i].slot, (unsigned long long)slots[i].generation);
		items[i].lba = slot_lba(store, slots[i].slot);
		items[i].bytes = slots[i].length;
	}
	return 0;
}

int nvmepeer_store_info(struct nvmepeer_store *store, struct nvmepeer_store_info *info,
			size_t size)
{
	struct nvmepeer_store_info made = {
		.size = sizeof(made),
		.members = store->layout.members,
		.page_bytes = store->layout.page_bytes,
		.block_bytes = store->layout.block,
		.slots = (uint64_t)store->layout.slots * store->layout.members,
		.slot_bytes = store->layout.slot_bytes,
		.emptied = store->emptied,
	};
	int error = store_check_size("nvmepeer_store_info", size,
				     SIZE_THROUGH(struct nvmepeer_store_info, uuid));

	if (error)
		return error;
	memcpy(made.uuid, store->layout.uuid, sizeof(made.uuid));
	pthread_mutex_lock(&store->lock);
	made.free_slots = free_slots(store);
	for (uint32_t i = 0; i < store->layout.members; i++)
		if (!store->members[i].lost)
			made.live |= 1ull << i;
	pthread_mutex_unlock(&store->lock);
	store_copy_out(info, size, &made, sizeof(made));
	return 0;
}
