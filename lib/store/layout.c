// SPDX-License-Identifier: MIT OR GPL-2.0
/* Encode and decode superblocks and entries of the table. */
#include <assert.h>
#include <endian.h>
#include <stddef.h>
#include <string.h>

#include "hash.h"
#include "layout.h"

static const char magic[8] = "NVPSTORE";

enum { VERSION = 1, UNIT_LEAST = 4096 };

struct disk_super {
	char magic[8];
	uint32_t version;
	uint32_t member;
	uint8_t uuid[16];
	uint64_t epoch;
	uint64_t previous;
	uint64_t live;
	uint32_t members;
	uint32_t block;
	uint32_t page_bytes;
	uint32_t slots;
	uint32_t reserved;
	uint32_t crc;		/* of all before */
};

struct disk_entry {
	uint64_t tag_hash;
	uint64_t generation;
	uint64_t checksum;
	uint32_t length;
	uint32_t flags;
	uint8_t reserved[28];
	uint32_t crc;		/* of all before, the store, the member and the slot */
	uint8_t tag[LAYOUT_TAG];
};

static_assert(sizeof(struct disk_super) == 80, "format");
static_assert(sizeof(struct disk_entry) == LAYOUT_ENTRY, "format");

enum { FLAG_CHECKSUM = 1 };

static uint64_t round_up(uint64_t value, uint64_t unit)
{
	return (value + unit - 1) / unit * unit;
}

void layout_place(struct layout *layout)
{
	layout->unit = layout->block > UNIT_LEAST ? layout->block : UNIT_LEAST;
	layout->slot_bytes = round_up(layout->page_bytes, layout->block);
	layout->table_bytes = round_up((uint64_t)layout->slots * LAYOUT_ENTRY, layout->unit);
	layout->data = layout->unit + layout->table_bytes;
	layout->end = layout->data + layout->slots * layout->slot_bytes;
}

void layout_fit(struct layout *layout, uint64_t bytes, uint32_t most)
{
	uint64_t slots;

	layout->slots = 0;
	layout_place(layout);
	slots = bytes / (layout->slot_bytes + LAYOUT_ENTRY);
	layout->slots = slots < most ? (uint32_t)slots : most;
	layout_place(layout);
	while (layout->slots && layout->end > bytes) {
		layout->slots--;
		layout_place(layout);
	}
}

void layout_encode(const struct layout *layout, void *block)
{
	struct disk_super super = {
		.version = htole32(VERSION),
		.member = htole32(layout->member),
		.epoch = htole64(layout->epoch),
		.previous = htole64(layout->previous),
		.live = htole64(layout->live),
		.members = htole32(layout->members),
		.block = htole32(layout->block),
		.page_bytes = htole32(layout->page_bytes),
		.slots = htole32(layout->slots),
	};

	memcpy(super.magic, magic, sizeof(magic));
	memcpy(super.uuid, layout->uuid, sizeof(super.uuid));
	super.crc = htole32(hash_crc32c(0, &super, offsetof(struct disk_super, crc)));
	memset(block, 0, layout->block);
	memcpy(block, &super, sizeof(super));
}

bool layout_decode(struct layout *layout, const void *block)
{
	struct disk_super super;

	memcpy(&super, block, sizeof(super));
	if (memcmp(super.magic, magic, sizeof(magic)) != 0 || le32toh(super.version) != VERSION ||
	    le32toh(super.crc) != hash_crc32c(0, &super, offsetof(struct disk_super, crc)))
		return false;
	memcpy(layout->uuid, super.uuid, sizeof(super.uuid));
	layout->epoch = le64toh(super.epoch);
	layout->previous = le64toh(super.previous);
	layout->live = le64toh(super.live);
	layout->member = le32toh(super.member);
	layout->members = le32toh(super.members);
	layout->block = le32toh(super.block);
	layout->page_bytes = le32toh(super.page_bytes);
	layout->slots = le32toh(super.slots);
	/*
	 * The CRC is no proof of a careful writer: nothing below may divide by 0 or overflow.
	 * 2^32 slots of 1 GiB are below 2^63 bytes.
	 */
	if (!layout->members || layout->members > LAYOUT_MEMBERS ||
	    layout->member >= layout->members || !layout->page_bytes || layout->page_bytes % 4 ||
	    layout->page_bytes > LAYOUT_PAGE_MOST ||
	    layout->block < LAYOUT_BLOCK_LEAST || layout->block > LAYOUT_BLOCK_MOST ||
	    (layout->block & (layout->block - 1)) || !layout->slots ||
	    (uint64_t)layout->slots * layout->members > UINT32_MAX ||
	    (layout->live & ~layout_members(layout->members)) ||
	    layout->epoch >> 32 == 0 || layout->epoch >> 32 == UINT32_MAX)
		return false;
	layout_place(layout);
	return true;
}

static uint32_t entry_crc(const struct layout *layout, uint32_t slot,
			  const struct disk_entry *entry)
{
	uint32_t place[2] = { htole32(layout->member), htole32(slot) }, crc;

	crc = hash_crc32c(0, layout->uuid, sizeof(layout->uuid));
	crc = hash_crc32c(crc, place, sizeof(place));
	return hash_crc32c(crc, entry, offsetof(struct disk_entry, crc));
}

void entry_encode(const struct layout *layout, uint32_t slot,
		  const struct descriptor *descriptor, const void *tag, void *entry)
{
	struct disk_entry made = {
		.generation = htole64(descriptor->generation),
		.checksum = htole64(descriptor->checksum),
		.length = htole32(descriptor->length),
		.flags = htole32(descriptor->has_checksum ? FLAG_CHECKSUM : 0),
	};

	if (tag)
		memcpy(made.tag, tag, sizeof(made.tag));
	made.tag_hash = htole64(hash64(made.tag, sizeof(made.tag)));
	made.crc = htole32(entry_crc(layout, slot, &made));
	memcpy(entry, &made, sizeof(made));
}

bool bytes_are_zero(const void *data, uint64_t bytes)
{
	const uint8_t *byte = data;

	return !byte[0] && !memcmp(byte, byte + 1, bytes - 1);
}

enum entry_state entry_decode(const struct layout *layout, uint32_t slot, const void *entry,
			      struct descriptor *descriptor)
{
	struct disk_entry read;

	memset(descriptor, 0, sizeof(*descriptor));
	memcpy(&read, entry, sizeof(read));
	if (bytes_are_zero(&read, sizeof(read)))
		return ENTRY_EMPTY;
	if (le32toh(read.crc) != entry_crc(layout, slot, &read) ||
	    le64toh(read.tag_hash) != hash64(read.tag, sizeof(read.tag)) ||
	    le32toh(read.length) > layout->page_bytes || le32toh(read.length) % 4)
		return ENTRY_DAMAGED;
	descriptor->generation = le64toh(read.generation);
	descriptor->checksum = le64toh(read.checksum);
	descriptor->length = le32toh(read.length);
	descriptor->has_checksum = le32toh(read.flags) & FLAG_CHECKSUM;
	return descriptor->length ? ENTRY_VALUE : ENTRY_EMPTY;
}

const void *entry_tag(const void *entry)
{
	return (const uint8_t *)entry + offsetof(struct disk_entry, tag);
}
