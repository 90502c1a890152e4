/* SPDX-License-Identifier: MIT OR GPL-2.0 */
/*
 * Shared by the source files of the store: the store, its members and slots, and the
 * order of writes that makes it survive power cuts.
 *
 * Commit: the value is written to a slot whose entry is durably without a value, and that
 * write completes; Flush; the table block with FUA; it completes; the slot is readable;
 * the call returns.  Free: the slot is not readable; its readers end; the table block
 * with FUA; it completes; the slot can be allocated.
 */
#ifndef NVMEPEER_STORE_INTERNAL_H
#define NVMEPEER_STORE_INTERNAL_H

#include <errno.h>
#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <nvmepeer_store.h>

#include "io.h"
#include "layout.h"

#define ARRAY_SIZE(array) (sizeof(array) / sizeof((array)[0]))

/* Size of a structure in its first version, which ended with @field. */
#define SIZE_THROUGH(type, field) (offsetof(type, field) + sizeof(((type *)0)->field))

enum slot_state {
	SLOT_FREE,
	SLOT_ALLOCATED,		/* the caller's, without a value */
	SLOT_COMMITTING,	/* its entry is being written */
	SLOT_VALUE,		/* readable */
	SLOT_FREEING,		/* not readable; waits for readers */
	SLOT_CLEARING,		/* its entry is being written */
};

/**
 * struct slot - a slot in memory; guarded by nvmepeer_store.lock
 * @checksum: of the value, if @has_checksum
 * @generation: commits so far
 * @length: of the value, or as written
 * @users: calls that read or write the slot, and pins
 * @state: enum slot_state
 * @has_checksum: by nvmepeer_store_write()
 * @freeing: a call of nvmepeer_store_free() has begun with the slot and not ended
 * @uncertain: allocated, and its entry may be on the disk although the commit has failed
 * @withdrawn: the disk could not write it; freed, it is not allocated again
 */
struct slot {
	uint64_t checksum;
	uint64_t generation;
	uint32_t length;
	uint32_t users;
	uint8_t state;
	bool has_checksum;
	bool freeing;
	bool uncertain;
	bool withdrawn;
};

/**
 * struct change - of an entry, waiting for the member's writer
 * @next: in the member's list
 * @slot: number of the slot on the member
 * @descriptor: the new value, or none
 * @tag: its tag; NULL: none
 * @result: out: 0 or a negative errno
 * @queued: it was appended; else there is nothing to be written
 * @done: out: the change is durable or has failed
 */
struct change {
	struct change *next;
	uint32_t slot;
	struct descriptor descriptor;
	const uint8_t *tag;
	int result;
	bool queued;
	bool done;
};

/**
 * struct member - a member
 * @path: its path, during nvmepeer_store_open()
 * @layout: its superblock; the epoch is guarded by nvmepeer_store.epoch_lock
 * @disk: open if @present
 * @present: it was there at open; constant
 * @failed: it is not written any more; guarded by epoch_lock
 * @lost: the same, and all others have a new epoch: its values are misses
 * @table: the table as on the disk.  Changed by the member's writer with
 *	nvmepeer_store.lock held, so that the writer reads it without
 * @dirty: for each unit of the table, whether it is to be written; the writer's
 * @slots: the slots
 * @free: numbers of free slots
 * @free_count: number of them
 * @changes: waiting for a writer
 * @last: where to append
 * @writing: a thread is the member's writer
 * @damaged: entries of the table that were damaged at open
 *
 * The rest is guarded by nvmepeer_store.lock.
 */
struct member {
	const char *path;
	struct layout layout;
	struct io_disk disk;
	bool present;
	bool failed;
	bool lost;
	uint8_t *table;
	bool *dirty;
	struct slot *slots;
	uint32_t *free;
	uint32_t free_count;
	struct change *changes;
	struct change **last;
	bool writing;
	uint32_t damaged;
};

/**
 * struct nvmepeer_store - an open store
 * @layout: what all members have in common
 * @members: the members, by number
 * @read_only: NVMEPEER_STORE_READ_ONLY
 * @emptied: members that were emptied at open, by bit
 * @lock: guards slots and lists of changes
 * @changed: a change is done, a writer has ended, or a slot has no user any more
 * @next: member of the next allocation
 * @epoch_lock: held while the superblocks change; taken before @lock
 * @block: memory for a superblock; guarded by @epoch_lock
 * @queue_lock: guards @queues
 * @queues: queues that no thread uses
 * @queue_count: number of them
 * @queue_room: room in @queues
 */
struct nvmepeer_store {
	struct layout layout;
	struct member *members;
	bool read_only;
	uint64_t emptied;
	pthread_mutex_t lock;
	pthread_cond_t changed;
	uint32_t next;
	pthread_mutex_t epoch_lock;
	void *block;
	pthread_mutex_t queue_lock;
	struct io_queue **queues;
	uint32_t queue_count;
	uint32_t queue_room;
};

/** store_fail() - record a failure for nvmepeer_explain().  Returns @error. */
__attribute__((format(printf, 5, 6)))
int store_fail(const char *call, int error, const char *what, const char *help,
	       const char *limit, ...);
int store_fail_memory(const char *call);

/** store_fail_queue() - explain a failure of queue_get(). */
int store_fail_queue(const char *call, int error);

/** store_fail_call() - fail a whole list by an error of queue_get(), which is each result. */
int store_fail_call(const char *call, int error, struct nvmepeer_store_item *items, uint32_t count);

/** store_fail_items() - explain the first item with a result.  Returns it, or 0. */
int store_fail_items(const struct nvmepeer_store *store, const char *call,
		     const struct nvmepeer_store_item *items, uint32_t count);

/** store_check_size() - 0, or -EINVAL if a caller's structure is too small. */
int store_check_size(const char *call, size_t size, size_t least);

/** error_is_of_disk() - whether a value failed, and not the host or the call. */
bool error_is_of_disk(int error);

/** store_check_newer() - 0, or -E2BIG if a field behind the first @known bytes is not 0. */
int store_check_newer(const char *call, const void *structure, size_t size, size_t known);

/** store_copy_out() - copy what two versions of a structure share; zero the rest of @to. */
void store_copy_out(void *to, size_t to_size, const void *from, size_t from_size);

static inline struct member *member_of(const struct nvmepeer_store *store, uint32_t slot)
{
	return &store->members[slot % store->layout.members];
}

/* The number of a slot of the store on its member. */
static inline uint32_t number_of(const struct nvmepeer_store *store, uint32_t slot)
{
	return slot / store->layout.members;
}

static inline bool slot_exists(const struct nvmepeer_store *store, uint32_t slot)
{
	return slot < (uint64_t)store->layout.slots * store->layout.members;
}

static inline struct slot *slot_at(const struct nvmepeer_store *store, uint32_t slot)
{
	return &member_of(store, slot)->slots[number_of(store, slot)];
}

static inline uint64_t slot_offset(const struct member *member, uint32_t number)
{
	return member->layout.data + number * member->layout.slot_bytes;
}

/** queue_get() - a queue for this thread; given back by queue_put().  0 or -errno. */
int queue_get(struct nvmepeer_store *store, struct io_queue **queue);
void queue_put(struct nvmepeer_store *store, struct io_queue *queue);

/** run_one() - one command, and wait for it.  Returns its result. */
int run_one(struct io_queue *queue, const struct io_disk *disk, enum io_kind kind, void *data,
	    uint64_t offset, uint64_t bytes);

/** epoch_new() - an epoch after @epoch that no other store has. */
uint64_t epoch_new(uint64_t epoch);

/** epoch_write() - write the store's epoch to a member.  Locking as epoch_advance(). */
int epoch_write(struct nvmepeer_store *store, struct io_queue *queue, struct member *member);

/**
 * epoch_advance() - write a new epoch to all members that have not failed
 *
 * The caller holds epoch_lock, or has the store to itself.
 *
 * Returns 0, or -EIO if a member has failed now: then the others need another epoch before
 * any call reports the loss, or the open fails.
 */
int epoch_advance(struct nvmepeer_store *store, struct io_queue *queue);

/**
 * member_lose() - a member's table cannot be written any more
 *
 * Takes epoch_lock and lock.
 */
void member_lose(struct nvmepeer_store *store, struct io_queue *queue, struct member *member);

/** store_has_members() - a member is left.  The caller holds lock. */
bool store_has_members(const struct nvmepeer_store *store);

/** table_change() - append a change of @member.  The caller holds lock. */
void table_change(struct member *member, struct change *change);

/**
 * table_wait() - wait until a change is durable or has failed
 *
 * The calling thread may become the member's writer, for all changes that wait.  The
 * caller holds lock, which is released meanwhile.
 */
void table_wait(struct nvmepeer_store *store, struct io_queue *queue, struct member *member,
		const struct change *change);

/** slot_pin() - 0 if the item's slot has the value that it means; it then has a user more. */
int slot_pin(struct nvmepeer_store *store, const struct nvmepeer_store_item *item);

/** slot_has_users() - whether a call reads or writes a slot of a live member, or has it pinned. */
bool slot_has_users(struct nvmepeer_store *store, uint32_t slot);

/**
 * slot_check_access() - 0, or -EINVAL if a peer may not transfer an item
 *
 * A slot to be written is allocated; one to be read is, too, or has a value that is pinned.
 */
int slot_check_access(struct nvmepeer_store *store, const struct nvmepeer_store_item *item);

/** slot_lba() - first logical block of a slot on its namespace. */
uint64_t slot_lba(const struct nvmepeer_store *store, uint32_t slot);

/** member_is_lost() - whether the values of member number @member are misses. */
bool member_is_lost(struct nvmepeer_store *store, uint32_t member);

/** slot_unpin() - a user less.  The caller holds lock. */
void slot_unpin(struct nvmepeer_store *store, struct slot *slot);

/** values_read() - as nvmepeer_store_read(), by a queue of the caller, not explained. */
void values_read(struct nvmepeer_store *store, struct io_queue *queue,
		 struct nvmepeer_store_item *items, uint32_t count);

/** buffer_new() - memory for I/O, zeroed; NULL if there is none. */
void *buffer_new(const struct nvmepeer_store *store, uint64_t bytes);

/** length_valid() - whether @length is one of a value. */
static inline bool length_valid(const struct nvmepeer_store *store, uint32_t length)
{
	return length && length % 4 == 0 && length <= store->layout.page_bytes;
}

#endif /* NVMEPEER_STORE_INTERNAL_H */
