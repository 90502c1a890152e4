/* SPDX-License-Identifier: MIT OR GPL-2.0 */
/*
 * libnvmepeer_store: pages on disks that survive a restart, for inference engines and
 * other caches.
 *
 * A store has slots of one size on one or several members.  A member is a namespace (by
 * its block device), a partition, or a regular file.  The caller owns the index and
 * decides about eviction: it allocates a slot, writes a value to it, and commits it with a
 * tag of 64 bytes, from which it rebuilds the index after a restart by
 * nvmepeer_store_scan().  A value is on one member as a whole.
 *
 * The host reads and writes values with the calls below; a peer does with the blocks that
 * nvmepeer_store_fill_list() gives it.
 *
 * Life of a slot
 *	nvmepeer_store_alloc()	it belongs to the caller and has no value
 *	nvmepeer_store_write()	by the host; or a peer writes its blocks
 *	nvmepeer_store_commit()	the value is durable and may be read
 *	nvmepeer_store_free()	readers are waited for, and it has no value any more
 *
 * After a power cut each slot has the value of its last commit that returned 0, or no
 * value if a free returned 0 after that; of a commit or free that did not return, either.
 *
 * Members are independent.  One whose table cannot be written is lost: its values are
 * misses, and when it comes back it is emptied, since it has missed changes.  An error of a
 * value's blocks fails the value and does not lose the member.
 *
 * The conventions are those of <nvmepeer.h>: results, nvmepeer_explain(), sizes of
 * structures.  Calls of several threads may overlap.
 */
#ifndef NVMEPEER_STORE_H
#define NVMEPEER_STORE_H

#include <nvmepeer.h>

#ifdef __cplusplus
extern "C" {
#endif

enum {
	NVMEPEER_STORE_TAG = 64,	/* bytes of a tag */
	NVMEPEER_STORE_MEMBERS = 64,	/* most members of a store */
};

/** struct nvmepeer_store - an open store. */
struct nvmepeer_store;

struct nvmepeer_list_item;

enum nvmepeer_store_flags {
	/* create: overwrite members that are not empty: they hold a store or other data */
	NVMEPEER_STORE_FORCE = 1u << 0,
	/* open: go on without members that should be there; their values are misses */
	NVMEPEER_STORE_DEGRADED = 1u << 1,
	/* open: write nothing */
	NVMEPEER_STORE_READ_ONLY = 1u << 2,
};

/**
 * struct nvmepeer_store_options - a store to be created
 * @size: of this structure
 * @flags: NVMEPEER_STORE_FORCE or 0
 * @page_bytes: longest value, a multiple of 4; a slot has as many whole logical blocks
 * @slots: slots of each member, at most; 0: as many as fit
 */
struct nvmepeer_store_options {
	uint32_t size;
	uint32_t flags;
	uint32_t page_bytes;
	uint32_t slots;
};

/**
 * nvmepeer_store_create() - make a store
 * @members: paths of the members
 * @count: number of members
 * @options: page size, number of slots
 *
 * All members have as many slots as the smallest one has room for.
 *
 * A member is empty if its first and last 1 MiB are zero, as this call makes them.  Until
 * the call returns 0, the members hold no store, also after NVMEPEER_STORE_FORCE.
 *
 * -EEXIST: a member is not empty, and NVMEPEER_STORE_FORCE is not set.
 * -ENOSPC: a member is too small for one slot.  -EBUSY: it is in use.  -EINVAL: invalid
 * page size or number of members.  Or an error of open(2) or of the disk.
 */
int nvmepeer_store_create(const char *const *members, uint32_t count,
			  const struct nvmepeer_store_options *options);

/**
 * nvmepeer_store_open() - open a store
 * @members: paths of the members, in any order
 * @count: number of members
 * @flags: NVMEPEER_STORE_DEGRADED, NVMEPEER_STORE_READ_ONLY
 * @store: receives the store, to be closed with nvmepeer_store_close()
 *
 * Reads the tables of the members, no values; takes about 165 bytes of memory for each slot.
 * A member that has missed changes while the store was used without it is emptied.  Without
 * NVMEPEER_STORE_DEGRADED a missing member is an error, unless the store has already gone on
 * without it.  With it never open a member alone that has missed changes: only the others
 * prove that it has.
 *
 * NVMEPEER_STORE_DEGRADED accepts -ENOENT, -ENXIO, -ENODEV, -EIO, -ENODATA and -EUCLEAN of a
 * member, also of its table, which then is missing.  After others, such as -EBUSY, the
 * member may have all its values: remove the cause, or leave it out of @members.
 *
 * -ENODEV: a member is missing.  -EUCLEAN: a member has no valid superblock.  -EINVAL:
 * members of different stores, one twice, or one of another size.  -ESTALE: members were
 * used without each other, each with NVMEPEER_STORE_DEGRADED: leave one side out, whose
 * values are lost.  -EBUSY: in use.  Or an error of the disk.
 */
int nvmepeer_store_open(const char *const *members, uint32_t count, uint32_t flags,
			struct nvmepeer_store **store);

/** nvmepeer_store_close() - close; no other call may be in progress.  NULL is allowed. */
void nvmepeer_store_close(struct nvmepeer_store *store);

/**
 * struct nvmepeer_store_info - properties and state of a store
 * @size: of this structure
 * @members: number of members
 * @page_bytes: longest value
 * @block_bytes: logical block of the store
 * @slots: all slots; slot s is on member s % @members
 * @slot_bytes: length of a slot on its member
 * @free_slots: slots that nvmepeer_store_alloc() can return
 * @live: members that are there, by bit
 * @emptied: members that this open has emptied, by bit
 * @uuid: identifies the store
 */
struct nvmepeer_store_info {
	uint32_t size;
	uint32_t members;
	uint32_t page_bytes;
	uint32_t block_bytes;
	uint64_t slots;
	uint64_t slot_bytes;
	uint64_t free_slots;
	uint64_t live;
	uint64_t emptied;
	uint8_t uuid[16];
};

/** nvmepeer_store_info() - current properties and state. */
int nvmepeer_store_info(struct nvmepeer_store *store, struct nvmepeer_store_info *info,
			size_t size);

/* Generation of an item that nvmepeer_store_free() has freed: no slot has it. */
#define NVMEPEER_STORE_FREED UINT64_MAX

enum nvmepeer_store_item_flags {
	/* in, commit: a peer has written the value, of the item's length, without a checksum */
	NVMEPEER_STORE_PEER = 1u << 0,
	/* out, pin: the item has a pin, which nvmepeer_store_unpin() ends */
	NVMEPEER_STORE_PINNED = 1u << 1,
};

/**
 * struct nvmepeer_store_item - one slot of a list
 * @slot: the slot
 * @length: of the value, a multiple of 4
 * @generation: identifies the commit of this slot, and increases with each.  Out of a
 *	commit, pin or scan; into a read or pin the expected one, or 0 for any: a slot that
 *	has a later value is a miss.  Into a free that of the value, or 0 for a slot that is
 *	allocated and has none
 * @data: memory of the value, for nvmepeer_store_read() and nvmepeer_store_write(); if it
 *	and @length are multiples of the logical block, it is not copied
 * @result: out: 0 or a negative errno of this item
 * @flags: enum nvmepeer_store_item_flags, or 0
 * @tag: the caller's tag
 */
struct nvmepeer_store_item {
	uint32_t slot;
	uint32_t length;
	uint64_t generation;
	void *data;
	int result;
	uint32_t flags;
	uint8_t tag[NVMEPEER_STORE_TAG];
};

/**
 * nvmepeer_store_alloc() - allocate slots, taking turns between the members
 * @store: store
 * @slots: receives the slots
 * @count: number of them
 *
 * All or none.  -ENOSPC: not enough free slots; free some.
 */
int nvmepeer_store_alloc(struct nvmepeer_store *store, uint32_t *slots, uint32_t count);

/**
 * nvmepeer_store_free() - free slots, with or without a value
 * @store: store
 * @items: in: slot, generation; out: result, and NVMEPEER_STORE_FREED in the generation of
 *	those that are freed
 * @count: number of items
 * @timeout_ms: longest time to wait for readers
 *
 * A slot has no value for new readers when the call begins, and may be allocated again
 * when its result is 0: its value does not come back, also after a power cut.  Slots of a
 * lost member are freed.
 *
 * A peer's commands on an allocated slot must have ended before it is freed: the store does
 * not see them, and they would write to what its next owner puts there.
 *
 * Returns 0 or the first result that is not 0.  -ETIMEDOUT: readers have the slot pinned;
 * it stays without a value: call again with the same items, of which the freed ones are
 * skipped: their slots may have other owners by now.  -ENOENT: it is not in use, has a value
 * and another generation, or has none and the generation is not 0.  -EBUSY: a commit or free
 * of it is in progress.  -ENODEV: no member is left.  -EIO: the last member was lost in this
 * call.  A slot whose commit has failed counts as one with a value here, as that may be
 * durable.
 */
int nvmepeer_store_free(struct nvmepeer_store *store, struct nvmepeer_store_item *items,
			uint32_t count, int timeout_ms);

/**
 * nvmepeer_store_write() - write values to allocated slots
 * @store: store
 * @items: in: slot, length, data; out: result
 * @count: number of items
 *
 * Nothing is durable or can be read before nvmepeer_store_commit().
 *
 * Returns 0 or the first result that is not 0.  -EINVAL: the slot is not allocated or the
 * length is invalid.  -ENODEV: its member is lost.  Or an error of the disk: unless a later
 * write to it succeeds, the slot is not allocated again before the store is opened again.
 */
int nvmepeer_store_write(struct nvmepeer_store *store, struct nvmepeer_store_item *items,
			 uint32_t count);

/**
 * nvmepeer_store_commit() - make values durable and readable
 * @store: store
 * @items: in: slot, tag, length, flags; out: generation, length, result
 * @count: number of items
 *
 * The value is that of nvmepeer_store_write(), which has also computed a checksum; the
 * length is the same or 0.  With NVMEPEER_STORE_PEER it is one of @length that a peer has
 * written, whose commands have completed; it has no checksum.  Calls of several threads
 * share a Flush and writes of the table.
 *
 * Returns 0 or the first result that is not 0: then the slot is allocated as before.
 * -EINVAL: not allocated, not written, an invalid length, or not that of the write.
 * -EBUSY: a write, commit or free of it is in progress.  -ENODEV: its member is lost.  -EIO: it was
 * lost in this call.
 */
int nvmepeer_store_commit(struct nvmepeer_store *store, struct nvmepeer_store_item *items,
			  uint32_t count);

/**
 * nvmepeer_store_read() - read values
 * @store: store
 * @items: in: slot, generation, data with room for a page; out: length, result
 * @count: number of items
 *
 * Returns 0 or the first result that is not 0.  -ENOENT: no value, or a later one.
 * -ENODEV: its member is lost.  -EILSEQ: the checksum differs.  Or an error of the disk.
 * All of them are misses.
 */
int nvmepeer_store_read(struct nvmepeer_store *store, struct nvmepeer_store_item *items,
			uint32_t count);

/**
 * nvmepeer_store_pin() - keep values from being freed while a peer reads them
 * @store: store
 * @items: in: slot, generation; out: length, generation, tag, flags, result
 * @count: number of items
 *
 * Returns 0 or the first result that is not 0; items with result 0 are pinned, which their
 * flags record, and have to be unpinned in any case.  -ENOENT: no value, or a later one.
 * -ENODEV: its member is lost.
 */
int nvmepeer_store_pin(struct nvmepeer_store *store, struct nvmepeer_store_item *items,
		       uint32_t count);

/**
 * nvmepeer_store_unpin() - the readers of items have ended
 *
 * Of those with NVMEPEER_STORE_PINNED, which nvmepeer_store_pin() sets and this call clears.
 */
void nvmepeer_store_unpin(struct nvmepeer_store *store, struct nvmepeer_store_item *items,
			  uint32_t count);

/**
 * struct nvmepeer_store_place - where a slot is
 * @size: of this structure
 * @member: number of the member
 * @lba: first logical block of the slot, counted from the start of the namespace also if
 *	the member is a partition of it
 * @blocks: logical blocks of the slot
 * @block_bytes: of a logical block of this member
 * @nsid: the namespace
 * @reserved: 0
 */
struct nvmepeer_store_place {
	uint32_t size;
	uint32_t member;
	uint64_t lba;
	uint32_t blocks;
	uint32_t block_bytes;
	uint32_t nsid;
	uint32_t reserved;
};

/**
 * nvmepeer_store_place() - where a slot is; it need not be allocated
 *
 * -EINVAL: there is no such slot.  -ENODEV: its member is lost.  -EOPNOTSUPP: its member is
 * no NVMe namespace and no partition of one, such as a regular file, dm, LVM, md or loop.
 */
int nvmepeer_store_place(struct nvmepeer_store *store, uint32_t slot,
			 struct nvmepeer_store_place *place, size_t size);

/**
 * nvmepeer_store_fill_list() - prepare a list of <nvmepeer_device/list.h> for a peer
 * @store: store
 * @member: the member whose controller executes the list
 * @slots: slots on this member, with their length and generation
 * @items: lba and bytes are set; the caller sets memory and offset
 * @count: number of slots
 *
 * A slot is either allocated, and has generation 0, for a list that writes; or it has a
 * value that the caller has pinned, for a list that reads: unpin it after the list has ended.
 *
 * -EINVAL: a slot of another member, an invalid length, or a slot that is neither allocated
 * nor pinned.  -ENODEV: the member is lost.  -EOPNOTSUPP: as nvmepeer_store_place().
 */
int nvmepeer_store_fill_list(struct nvmepeer_store *store, uint32_t member,
			     const struct nvmepeer_store_item *slots,
			     struct nvmepeer_list_item *items, uint32_t count);

/**
 * nvmepeer_store_scan() - list the values of all live members
 * @store: store
 * @position: 0 for the first call; advanced
 * @items: out: slot, length, generation, tag
 * @count: room in @items
 *
 * Returns the number of items; 0 at the end.
 */
int nvmepeer_store_scan(struct nvmepeer_store *store, uint64_t *position,
			struct nvmepeer_store_item *items, uint32_t count);

/**
 * struct nvmepeer_store_report - results of a check
 * @size: of this structure
 * @reserved: 0
 * @values: slots with a value
 * @verified: values that were read and have their checksum
 * @unverified: values without a checksum; they were read
 * @damaged_values: values that cannot be read or have another checksum
 * @damaged_entries: entries of the table that were neither empty nor valid at open; such
 *	slots are free
 */
struct nvmepeer_store_report {
	uint32_t size;
	uint32_t reserved;
	uint64_t values;
	uint64_t verified;
	uint64_t unverified;
	uint64_t damaged_values;
	uint64_t damaged_entries;
};

/**
 * nvmepeer_store_check() - read and verify all values
 *
 * Returns 0, also if values are damaged, -ENOMEM, or an error of io_uring.  Values that are
 * freed or whose member is lost meanwhile are not counted.
 */
int nvmepeer_store_check(struct nvmepeer_store *store, struct nvmepeer_store_report *report,
			 size_t size);

/* ---- Calls on streams ---------------------------------------------------- */

/*
 * Reads and writes in the order of a GPU's stream, as cuFile has them, for engines with an
 * interface of that form.  A call names bytes by an offset in slots that the caller has
 * allocated, one page after the other.  They are not committed: when the store is opened
 * again, they are gone.
 */

/** struct nvmepeer_store_streams - how a GPU, or the host, accesses slots on streams. */
struct nvmepeer_store_streams;

struct nvmepeer_cuda_list;
struct nvmepeer_cuda_lists;

/**
 * struct nvmepeer_store_memory - memory of the data
 * @start: its address, for the GPU if there are lists
 * @bytes: length
 */
struct nvmepeer_store_memory {
	void *start;
	uint64_t bytes;
};

/**
 * struct nvmepeer_store_streams_options - calls on streams
 * @size: of this structure
 * @operations: most calls in flight
 * @most_bytes: most bytes of a call, below 4 GiB
 * @slots: allocated slots; offset o is in slot @slots[o / page], and stays there
 * @slot_count: number of them
 * @memories: memories of the data; those of the lists, in the same order
 * @lists: for each member lists of its controller, for one GPU; NULL: the host does the I/O,
 *	into memory that it can access
 * @call_host: adds a function of the host to a stream: cuLaunchHostFunc(); not 0: an error
 * @read_list: nvmepeer_cuda_read_list()
 * @write_list: nvmepeer_cuda_write_list()
 * @pinned: with @lists: host memory that the GPU accesses at the same address, from
 *	cuMemHostAlloc(); it stays until the close
 * @pinned_bytes: at least nvmepeer_store_streams_bytes()
 * @memory_count: number of @memories
 * @reserved: 0
 *
 * The arrays are copied.  This library does not depend on CUDA: the caller passes the
 * functions.
 */
struct nvmepeer_store_streams_options {
	uint32_t size;
	uint32_t operations;
	uint64_t most_bytes;
	const uint32_t *slots;
	uint64_t slot_count;
	const struct nvmepeer_store_memory *memories;
	struct nvmepeer_cuda_lists *const *lists;
	int (*call_host)(void *stream, void (*function)(void *argument), void *argument);
	int (*read_list)(struct nvmepeer_cuda_lists *lists, const struct nvmepeer_cuda_list *list,
			 void *stream);
	int (*write_list)(struct nvmepeer_cuda_lists *lists, const struct nvmepeer_cuda_list *list,
			  void *stream);
	void *pinned;
	uint32_t memory_count;
	uint32_t reserved;
	uint64_t pinned_bytes;
};

/* What a piece of nvmepeer_store_pages counts in @most_bytes; longer pieces of offsets are cut. */
#define NVMEPEER_STORE_PIECE_BYTES (128u << 10)

/** nvmepeer_store_streams_bytes() - pinned memory that so many calls in flight need. */
uint64_t nvmepeer_store_streams_bytes(struct nvmepeer_store *store, uint32_t operations,
				      uint64_t most_bytes);

/**
 * nvmepeer_store_streams_open() - prepare calls on streams
 * @store: a store whose pages are whole logical blocks
 * @options: options
 * @streams: receives the object; closed before the slots are freed and the lists closed
 *
 * Several objects, such as one for each GPU, may have the same slots.
 *
 * -EINVAL: an option is invalid, a slot is not allocated, or pages are no whole blocks.
 * -EOPNOTSUPP: there are lists, and a member is no NVMe namespace.  -E2BIG: a newer field is
 * not 0.  -ENOMEM.
 */
int nvmepeer_store_streams_open(struct nvmepeer_store *store,
				const struct nvmepeer_store_streams_options *options,
				struct nvmepeer_store_streams **streams);

/**
 * nvmepeer_store_streams_close() - close; NULL is allowed
 *
 * -EBUSY: a stream has not passed all calls: synchronize it, then close again.
 */
int nvmepeer_store_streams_close(struct nvmepeer_store_streams *streams);

/**
 * nvmepeer_store_read_async() - read slots into memory, on a stream
 * @streams: how
 * @base: an address in one of the memories
 * @size: points to the length, a multiple of the logical block
 * @offset: points to the offset in the slots, a multiple of the logical block
 * @base_offset: points to the offset from @base
 * @done: receives the length, or a negative errno
 * @stream: CUstream or cudaStream_t
 *
 * Returns without waiting; not for a stream that is captured.  The parameters are read when
 * the stream comes to the call, and stay until @done is set; the caller clears it before.
 * Later work of the stream sees data and *@done, which the host may poll without a call of
 * CUDA.  One list after the other is read if a store has several members.
 *
 * *@done: -EINVAL: not whole blocks.  -ERANGE: outside the slots or the memory.  -E2BIG: more
 * than most_bytes.  -ENODEV: a member is lost.  -EIO: a command failed, also because the
 * queue pair was lost.  The memory then has parts of the data or none.
 *
 * -EBUSY: too many calls are in flight.  -EFAULT: @base is in no memory.  -EIO: CUDA refuses
 * it.  Or an error of nvmepeer_cuda_read_list().  After an error @done is not written and the
 * parameters are not read any more; parts may be transferred until the stream has passed.
 */
int nvmepeer_store_read_async(struct nvmepeer_store_streams *streams, void *base,
			      const size_t *size, const int64_t *offset,
			      const int64_t *base_offset, int64_t *done, void *stream);

/**
 * nvmepeer_store_write_async() - write memory to slots, on a stream
 *
 * As nvmepeer_store_read_async().  The data is read when the stream comes to the call: order
 * it behind the kernels of another stream by an event.
 */
int nvmepeer_store_write_async(struct nvmepeer_store_streams *streams, const void *base,
			       const size_t *size, const int64_t *offset,
			       const int64_t *base_offset, int64_t *done, void *stream);

struct nvmepeer_list_tensor;

/**
 * struct nvmepeer_store_pages - pages of tensors, each in one slot
 * @size: of this structure
 * @tensor_count: number of @tensors
 * @tensors: as in a list of <nvmepeer_device/list.h>, with the number of a memory of the
 *	streams, and @block in logical blocks of the store
 * @count: points to the number of pages
 * @items: for each page in: slot, generation and length as nvmepeer_store_fill_list();
 *	out: result
 * @numbers: for each page its number in the tensors
 * @done: receives how many pages were transferred, or a negative errno of the call
 */
struct nvmepeer_store_pages {
	uint32_t size;
	uint32_t tensor_count;
	const struct nvmepeer_list_tensor *tensors;
	const uint32_t *count;
	struct nvmepeer_store_item *items;
	const uint32_t *numbers;
	int64_t *done;
};

/**
 * nvmepeer_store_read_pages_async() - read slots into pages of tensors, on a stream
 * @streams: how; the slots of its options are not meant
 * @pages: the pages; copied, but what it points to is read when the stream comes to the call,
 *	and stays until @done is set; the caller sets *@done to INT64_MIN before, as 0 is a
 *	result
 * @stream: CUstream or cudaStream_t
 *
 * As nvmepeer_store_read_async(), of any slots: allocated ones, or values that are pinned
 * until *@done is set.  A failure is that of its page.
 *
 * Result of an item: -EINVAL: the slot is neither allocated nor pinned.  -ERANGE: a piece is
 * outside its slot or its memory.  -ENODEV: its member is lost.  -EIO: a command failed.
 * *@done: -E2BIG: more pieces on one member than @most_bytes of the options has
 * NVMEPEER_STORE_PIECE_BYTES.  The results are not valid then, and nothing is transferred.
 *
 * -EINVAL: a field is not set.  Otherwise as nvmepeer_store_read_async().
 */
int nvmepeer_store_read_pages_async(struct nvmepeer_store_streams *streams,
				    const struct nvmepeer_store_pages *pages, void *stream);

/**
 * nvmepeer_store_write_pages_async() - write pages of tensors to allocated slots, on a stream
 *
 * As nvmepeer_store_read_pages_async().  When *@done is set, nvmepeer_store_commit() with
 * NVMEPEER_STORE_PEER makes the pages values.
 */
int nvmepeer_store_write_pages_async(struct nvmepeer_store_streams *streams,
				     const struct nvmepeer_store_pages *pages, void *stream);

/* ---- Reference index ----------------------------------------------------- */

/*
 * For a caller without an index of its own: finds values by a key, evicts by clock, and
 * keeps values in host memory, too, of which the one that came there first goes first.  A
 * key is a tag.  An index takes about 130 bytes of memory for each slot.
 */

/** struct nvmepeer_index - an index over a store. */
struct nvmepeer_index;

/**
 * struct nvmepeer_index_options - an index
 * @size: of this structure
 * @host_pages: values in host memory; 0: none
 * @host_memory: memory for them, aligned as the caller's copies need it: @host_pages times
 *	the page size of the store; NULL: allocated
 */
struct nvmepeer_index_options {
	uint32_t size;
	uint32_t host_pages;
	void *host_memory;
};

/**
 * struct nvmepeer_index_scope - what changes the bytes of a value besides its block
 * @size: of this structure
 * @data_type: number of the element type, as the caller counts them
 * @model: name of the model and revision of its weights
 * @layout: arrangement of a page, for instance "NHD 16"
 * @salt: separates tenants; NULL: none
 * @tensor_rank: rank of tensor parallelism
 * @tensor_size: its size
 * @pipeline_rank: rank of pipeline parallelism
 * @pipeline_size: its size
 * @first_layer: first layer of the value
 * @layers: number of layers
 */
struct nvmepeer_index_scope {
	uint32_t size;
	uint32_t data_type;
	const char *model;
	const char *layout;
	const char *salt;
	uint32_t tensor_rank;
	uint32_t tensor_size;
	uint32_t pipeline_rank;
	uint32_t pipeline_size;
	uint32_t first_layer;
	uint32_t layers;
};

/**
 * nvmepeer_index_key() - the key of a value: a SHA-256 of all that determines it
 * @scope: the model and its division
 * @block: the block: a hash of its tokens and of those before
 * @bytes: length of @block
 * @key: receives the key
 *
 * -EINVAL: no model or no layout, or @scope is too small.  -E2BIG: a newer field is not 0.
 */
int nvmepeer_index_key(const struct nvmepeer_index_scope *scope, const void *block, size_t bytes,
		       uint8_t key[NVMEPEER_STORE_TAG]);

/**
 * nvmepeer_index_open() - index the values of a store
 * @store: an open store that nothing else allocates and frees slots of
 * @options: the host memory
 * @index: receives the index, to be closed with nvmepeer_index_close() before @store
 *
 * -EINVAL: @options is too small.  -E2BIG: a newer field is not 0.  -ENOMEM.
 */
int nvmepeer_index_open(struct nvmepeer_store *store, const struct nvmepeer_index_options *options,
			struct nvmepeer_index **index);

/**
 * nvmepeer_index_close() - close; no other call may be in progress.  NULL is allowed.
 *
 * A removed value that is still pinned comes back when the store is opened again.
 */
void nvmepeer_index_close(struct nvmepeer_index *index);

enum nvmepeer_index_hint {
	NVMEPEER_INDEX_NORMAL = 0,
	NVMEPEER_INDEX_ONCE = 1,	/* evict it before others, keep it out of host memory */
	NVMEPEER_INDEX_KEEP = 2,	/* evict it after others */
};

/**
 * nvmepeer_index_put() - store a value
 * @index: index
 * @key: its key
 * @data: the value
 * @length: its length, a multiple of 4
 * @hint: enum nvmepeer_index_hint
 *
 * Evicts values that are not pinned if no slot is free.  A key that is there already keeps
 * its value, unless its member is lost.
 *
 * -ENOSPC: all values are pinned.  -EINVAL: an invalid length or hint.  Or an error of
 * nvmepeer_store_write(), nvmepeer_store_commit() or nvmepeer_store_free(); one of the host,
 * such as -EMFILE, evicts nothing.
 */
int nvmepeer_index_put(struct nvmepeer_index *index, const uint8_t key[NVMEPEER_STORE_TAG],
		       const void *data, uint32_t length, uint32_t hint);

/**
 * nvmepeer_index_get() - read a value, from host memory or the disk
 * @index: index
 * @key: its key
 * @data: room for a page
 * @length: receives the length
 *
 * -ENOENT: there is none.  Or an error of nvmepeer_store_read(): after -EILSEQ, -ENODEV and
 * errors of the disk the value is removed, after errors of the host, such as -ENOMEM, not.
 */
int nvmepeer_index_get(struct nvmepeer_index *index, const uint8_t key[NVMEPEER_STORE_TAG],
		       void *data, uint32_t *length);

/**
 * nvmepeer_index_pin() - find values for a peer that reads them
 * @index: index
 * @keys: keys, in the order of the prefix
 * @count: number of them
 * @items: receives the slots of the first values; unpin them by nvmepeer_store_unpin()
 *
 * Returns how many of the first keys have values, all of which are pinned.  A value of a
 * lost member is a miss and is removed.
 */
int nvmepeer_index_pin(struct nvmepeer_index *index,
		       const uint8_t (*keys)[NVMEPEER_STORE_TAG], uint32_t count,
		       struct nvmepeer_store_item *items);

/**
 * nvmepeer_index_remove() - remove a value
 *
 * -ENOENT: there is none.  -ETIMEDOUT: it is removed and pinned: a later put, remove or close
 * frees its slot; until then a restart brings it back.  Or an error of nvmepeer_store_free():
 * then it is not removed.
 */
int nvmepeer_index_remove(struct nvmepeer_index *index, const uint8_t key[NVMEPEER_STORE_TAG]);

#ifdef __cplusplus
}
#endif

#endif /* NVMEPEER_STORE_H */
