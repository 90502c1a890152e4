/* SPDX-License-Identifier: MIT OR GPL-2.0 */
/*
 * The format of a member:
 *
 *	superblock	one logical block, which a power cut leaves old or new
 *	table		an entry of 128 bytes for each slot
 *	slots		each of as many whole logical blocks
 *
 * All numbers are little-endian.  Entries do not cross logical blocks, so a table block
 * that was written in part has old and new entries only.
 */
#ifndef NVMEPEER_STORE_LAYOUT_H
#define NVMEPEER_STORE_LAYOUT_H

#include <stdbool.h>
#include <stdint.h>

enum {
	LAYOUT_ENTRY = 128,	/* bytes of a descriptor and its tag */
	LAYOUT_TAG = 64,
	LAYOUT_BLOCK_LEAST = 512,
	LAYOUT_BLOCK_MOST = 65536,
	LAYOUT_MEMBERS = 64,
	LAYOUT_PAGE_MOST = 1 << 30,
};

/**
 * struct layout - the superblock of a member
 * @uuid: of the store
 * @epoch: changes whenever the set of live members does; the counter is in the upper half,
 *	the lower half is random, so that members that went on apart never have the same
 * @previous: the epoch before
 * @live: members of this epoch, by bit
 * @member: number of this member
 * @members: number of members of the store
 * @block: logical block of the store
 * @page_bytes: longest value
 * @slots: slots of this member
 *
 * The rest follows from these by layout_place():
 * @unit: length and alignment of a write of the table
 * @slot_bytes: length of a slot
 * @table_bytes: of the table, whole units; it follows the superblock's unit
 * @data: offset of the first slot
 * @end: offset behind the last slot
 */
struct layout {
	uint8_t uuid[16];
	uint64_t epoch;
	uint64_t previous;
	uint64_t live;
	uint32_t member;
	uint32_t members;
	uint32_t block;
	uint32_t page_bytes;
	uint32_t slots;
	uint32_t unit;
	uint64_t slot_bytes;
	uint64_t table_bytes;
	uint64_t data;
	uint64_t end;
};

/** layout_members() - all of @count members, by bit. */
static inline uint64_t layout_members(uint32_t count)
{
	return count == LAYOUT_MEMBERS ? UINT64_MAX : (1ull << count) - 1;
}

/** layout_place() - compute the derived fields. */
void layout_place(struct layout *layout);

/** layout_fit() - set the most slots that a member of @bytes has room for, at most @most. */
void layout_fit(struct layout *layout, uint64_t bytes, uint32_t most);

/** layout_encode() - write a superblock, of @layout->block bytes. */
void layout_encode(const struct layout *layout, void *block);

/** layout_decode() - read a superblock.  False if it is none or invalid. */
bool layout_decode(struct layout *layout, const void *block);

/**
 * struct descriptor - the value of a slot
 * @generation: commits of this slot so far
 * @checksum: of the value, if @has_checksum
 * @length: of the value; 0: none
 * @has_checksum: the host has written the value
 */
struct descriptor {
	uint64_t generation;
	uint64_t checksum;
	uint32_t length;
	bool has_checksum;
};

enum entry_state {
	ENTRY_EMPTY,		/* no value */
	ENTRY_VALUE,
	ENTRY_DAMAGED,		/* neither; counts as no value */
};

/**
 * entry_encode() - write an entry
 * @layout: layout of the member
 * @slot: number of the slot on the member
 * @descriptor: the value
 * @tag: its tag, or NULL if there is no value
 * @entry: LAYOUT_ENTRY bytes
 */
void entry_encode(const struct layout *layout, uint32_t slot,
		  const struct descriptor *descriptor, const void *tag, void *entry);

/** entry_decode() - read an entry; @descriptor is zeroed if it is damaged. */
enum entry_state entry_decode(const struct layout *layout, uint32_t slot, const void *entry,
			      struct descriptor *descriptor);

/** bytes_are_zero() - whether @bytes of @data, at least one, are zero. */
bool bytes_are_zero(const void *data, uint64_t bytes);

/** entry_tag() - the tag in an entry. */
const void *entry_tag(const void *entry);

#endif /* NVMEPEER_STORE_LAYOUT_H */
