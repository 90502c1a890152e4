// SPDX-License-Identifier: MIT OR GPL-2.0
/* Create, open and close. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

#include "store.h"

static const char creating[] = "nvmepeer_store_create";
static const char opening[] = "nvmepeer_store_open";

enum { PIECE = 1 << 20 };

static int fail_open(const char *call, const char *path, int error)
{
	static const char what[] = "a member cannot be opened";

	switch (error) {
	case -EBUSY:
		return store_fail(call, error, what, "unmount it, or close the store that has it open",
				  "%s is in use", path);
	case -ENOTBLK:
		return store_fail(call, error, what,
				  "pass the block device, such as /dev/nvmep0n1, or a regular file",
				  "%s is neither a block device nor a regular file", path);
	case -EOPNOTSUPP:
		return store_fail(call, error, what, "move it to another file system, such as ext4 or XFS",
				  "the file system of %s has no direct I/O", path);
	default:
		return store_fail(call, error, what, "check the path and its permissions", "%s: %s",
				  path, strerrordesc_np(-error));
	}
}

/* A member that is open, and its I/O fails. */
static int fail_io(const char *call, const char *path, int error)
{
	if (error == -ENOMEM)
		return store_fail_memory(call);
	return store_fail(call, error, "a member cannot be read or written",
			  "see the kernel's log; replace the disk, or leave it out", "%s: %s", path,
			  strerrordesc_np(-error));
}

static int check_count(const char *call, uint32_t count)
{
	if (count && count <= NVMEPEER_STORE_MEMBERS)
		return 0;
	return store_fail(call, -EINVAL, "invalid number of members", "pass 1 to 64 members",
			  "%u members of at most %d", count, NVMEPEER_STORE_MEMBERS);
}

static void *piece_new(void)
{
	void *piece;

	if (posix_memalign(&piece, LAYOUT_BLOCK_MOST, PIECE))
		return NULL;
	return memset(piece, 0, PIECE);
}

/* ---- Create ---- */

static int check_options(const struct nvmepeer_store_options *options)
{
	static const char what[] = "invalid options of a store";
	int error = store_check_size(creating, options->size,
				     SIZE_THROUGH(struct nvmepeer_store_options, slots));

	if (!error)
		error = store_check_newer(creating, options, options->size, sizeof(*options));
	if (error)
		return error;
	if (options->flags & ~NVMEPEER_STORE_FORCE)
		return store_fail(creating, -EINVAL, what, "pass NVMEPEER_STORE_FORCE or 0",
				  "unknown flags %#x", options->flags);
	if (!options->page_bytes || options->page_bytes % 4 || options->page_bytes > LAYOUT_PAGE_MOST)
		return store_fail(creating, -EINVAL, what, "pass a multiple of 4 bytes, at most 1 GiB",
				  "pages of %u bytes", options->page_bytes);
	return 0;
}

/*
 * Refuse to overwrite what is not empty.  File systems, LVM, RAID and partition tables have
 * their superblocks and copies of them within 1 MiB of one of the ends.
 */
static int check_empty(const char *path, const struct io_disk *disk, struct io_queue *queue,
		       uint8_t *piece)
{
	uint64_t end = disk->bytes / disk->block * disk->block;
	uint64_t bytes = end < PIECE ? end : PIECE;
	uint64_t last = end - bytes;
	struct layout layout;
	bool store;
	int error = run_one(queue, disk, IO_READ, piece, 0, bytes);

	if (error)
		return fail_io(creating, path, error);
	store = layout_decode(&layout, piece);
	if (!store && bytes_are_zero(piece, bytes)) {
		error = last ? run_one(queue, disk, IO_READ, piece, last, bytes) : 0;
		if (error)
			return fail_io(creating, path, error);
		if (bytes_are_zero(piece, bytes))
			return 0;
	}
	return store_fail(creating, -EEXIST, "the member is not empty",
			  "pass NVMEPEER_STORE_FORCE (nvme-peer: --force) to overwrite it",
			  store ? "%s holds a store" :
			  "%s holds other data: its first and last 1 MiB are not zero", path);
}

/* What all members can have. */
static int fit(const char *const *paths, const struct io_disk *disks, uint32_t count,
	       const struct nvmepeer_store_options *options, struct layout *layout)
{
	uint32_t most = options->slots ? options->slots : UINT32_MAX;
	uint32_t smallest = 0;

	memset(layout, 0, sizeof(*layout));
	layout->members = count;
	layout->page_bytes = options->page_bytes;
	for (uint32_t i = 0; i < count; i++) {
		if (disks[i].block > layout->block)
			layout->block = disks[i].block;
		if (disks[i].bytes < disks[smallest].bytes)
			smallest = i;
	}
	if (layout->block > LAYOUT_BLOCK_MOST)
		return store_fail(creating, -EINVAL, "unsupported logical block",
				  "format the namespace with blocks of at most 64 KiB",
				  "%u bytes", layout->block);
	if (most > UINT32_MAX / count)
		most = UINT32_MAX / count;
	layout_fit(layout, disks[smallest].bytes, most);
	if (layout->slots)
		return 0;
	return store_fail(creating, -ENOSPC, "a member is too small", "use a larger one, or smaller pages",
			  "%s has %llu bytes and has no room for one page of %u", paths[smallest],
			  (unsigned long long)disks[smallest].bytes, options->page_bytes);
}

/* Entries without values, durable before the superblock.  @piece is zeros, of PIECE bytes. */
static int clear_table(const struct layout *layout, const struct io_disk *disk,
		       struct io_queue *queue, void *piece)
{
	uint64_t done = 0;
	int error = 0;

	while (!error && done < layout->table_bytes) {
		uint64_t rest = layout->table_bytes - done;
		uint64_t bytes = rest < PIECE ? rest : PIECE;

		error = run_one(queue, disk, IO_WRITE, piece, layout->unit + done, bytes);
		done += bytes;
	}
	return error ? error : run_one(queue, disk, IO_FLUSH, NULL, 0, 0);
}

/* What check_empty() refuses: else file systems and LVM find their superblocks again. */
static int clear_ends(const struct io_disk *disk, struct io_queue *queue, void *piece)
{
	uint64_t end = disk->bytes / disk->block * disk->block;
	uint64_t bytes = end < PIECE ? end : PIECE;
	int error = run_one(queue, disk, IO_WRITE, piece, 0, bytes);

	return error || end == bytes ? error :
	       run_one(queue, disk, IO_WRITE, piece, end - bytes, bytes);
}

/*
 * No member has a superblock while tables are written: that of an earlier store would be
 * one of values that are overwritten.  New ones last.  @piece is zeros.
 */
static int write_member(const struct layout *layout, const struct io_disk *disk,
			struct io_queue *queue, int step, void *piece)
{
	int error;

	if (step == 0)
		return run_one(queue, disk, IO_WRITE_FUA, piece, 0, layout->unit);
	if (step == 1) {
		error = clear_ends(disk, queue, piece);
		return error ? error : clear_table(layout, disk, queue, piece);
	}
	layout_encode(layout, piece);
	error = run_one(queue, disk, IO_WRITE_FUA, piece, 0, layout->block);
	memset(piece, 0, layout->block);
	return error;
}

static int write_members(const char *const *paths, const struct io_disk *disks, uint32_t count,
			 struct layout *layout, struct io_queue *queue, void *piece)
{
	if (getrandom(layout->uuid, sizeof(layout->uuid), 0) != sizeof(layout->uuid))
		return store_fail(creating, -EIO, "no random numbers", "", "getrandom() failed");
	layout->epoch = epoch_new(0);
	layout->live = layout_members(count);
	memset(piece, 0, PIECE);
	for (int step = 0; step < 3; step++)
		for (uint32_t i = 0; i < count; i++) {
			int error;

			layout->member = i;
			error = write_member(layout, &disks[i], queue, step, piece);
			if (error)
				return fail_io(creating, paths[i], error);
		}
	return 0;
}

int nvmepeer_store_create(const char *const *members, uint32_t count,
			  const struct nvmepeer_store_options *options)
{
	struct io_disk disks[NVMEPEER_STORE_MEMBERS];
	struct io_queue *queue = NULL;
	struct layout layout;
	uint32_t opened = 0;
	void *piece = NULL;
	int error = check_count(creating, count);

	if (!error)
		error = check_options(options);
	if (error)
		return error;
	for (; opened < count; opened++) {
		error = io_open(members[opened], false, &disks[opened]);
		if (error) {
			error = fail_open(creating, members[opened], error);
			goto close;
		}
	}
	piece = piece_new();
	error = piece ? io_queue_open(&queue) : -ENOMEM;
	if (error) {
		error = store_fail_queue(creating, error);
		goto close;
	}
	error = fit(members, disks, count, options, &layout);
	for (uint32_t i = 0; !error && !(options->flags & NVMEPEER_STORE_FORCE) && i < count; i++)
		error = check_empty(members[i], &disks[i], queue, piece);
	if (!error)
		error = write_members(members, disks, count, &layout, queue, piece);
close:
	if (queue)
		io_queue_close(queue);
	free(piece);
	while (opened)
		io_close(&disks[--opened]);
	return error;
}

/* ---- Open ---- */

/**
 * struct found - a member that was opened
 * @path: its path
 * @disk: the disk
 * @layout: its superblock
 */
struct found {
	const char *path;
	struct io_disk disk;
	struct layout layout;
};

static int read_super(struct found *found, bool read_only, void *block)
{
	struct io_queue *queue;
	int error = io_open(found->path, read_only, &found->disk);

	if (error)
		return fail_open(opening, found->path, error);
	error = io_queue_open(&queue);
	if (error) {
		io_close(&found->disk);
		return store_fail_queue(opening, error);
	}
	if (found->disk.block <= PIECE)
		error = run_one(queue, &found->disk, IO_READ, block, 0, found->disk.block);
	else
		error = -EUCLEAN;
	io_queue_close(queue);
	if (error == -EUCLEAN)
		error = store_fail(opening, -EUCLEAN, "a member holds no store",
				   "format the namespace with blocks of at most 64 KiB",
				   "%s has blocks of %u bytes", found->path, found->disk.block);
	else if (error)
		error = fail_io(opening, found->path, error);
	else if (!layout_decode(&found->layout, block))
		error = store_fail(opening, -EUCLEAN, "a member holds no store",
				   "create it: nvmepeer_store_create() (nvme-peer store create)",
				   "%s has no valid superblock", found->path);
	else if (found->layout.end > found->disk.bytes ||
		 found->layout.block % found->disk.block)
		error = store_fail(opening, -EINVAL, "a member is not as it was created",
				   "restore its size and format, or leave it out with NVMEPEER_STORE_DEGRADED",
				   "%s has %llu bytes and blocks of %u; the store needs %llu and %u",
				   found->path, (unsigned long long)found->disk.bytes,
				   found->disk.block, (unsigned long long)found->layout.end,
				   found->layout.block);
	if (error)
		io_close(&found->disk);
	return error;
}

/*
 * Errors of a member that is absent or broken.  After any other one the disk may have all
 * its values, and the store must not go on without it, which would empty it.
 */
static bool is_absent(int error)
{
	switch (error) {
	case -ENOENT:
	case -ENXIO:
	case -ENODEV:
	case -EIO:
	case -ENODATA:
	case -EUCLEAN:
		return true;
	default:
		return false;
	}
}

/* Open what can be opened.  Returns the number, or a negative errno; closes on failure. */
static int find_members(const char *const *paths, uint32_t count, uint32_t flags, void *block,
			struct found *found)
{
	uint32_t opened = 0;
	int error = 0;

	for (uint32_t i = 0; i < count; i++) {
		found[opened].path = paths[i];
		error = read_super(&found[opened], flags & NVMEPEER_STORE_READ_ONLY, block);
		if (!error)
			opened++;
		else if (!(flags & NVMEPEER_STORE_DEGRADED) || !is_absent(error))
			goto close;
	}
	if (opened)
		return (int)opened;
close:
	while (opened)
		io_close(&found[--opened].disk);
	return error;
}

static bool same_store(const struct layout *one, const struct layout *other)
{
	return !memcmp(one->uuid, other->uuid, sizeof(one->uuid)) &&
	       one->members == other->members && one->block == other->block &&
	       one->page_bytes == other->page_bytes && one->slots == other->slots;
}

/* All of one store, and none twice. */
static int check_members(const struct found *found, uint32_t count)
{
	static const char what[] = "the members do not belong together";

	for (uint32_t i = 1; i < count; i++) {
		if (!same_store(&found[i].layout, &found[0].layout))
			return store_fail(opening, -EINVAL, what, "pass the members of one store",
					  "%s and %s are of different stores", found[0].path,
					  found[i].path);
		for (uint32_t other = 0; other < i; other++)
			if (found[i].layout.member == found[other].layout.member)
				return store_fail(opening, -EINVAL, what, "pass each member once",
						  "%s and %s are both member %u", found[other].path,
						  found[i].path, found[i].layout.member);
	}
	return 0;
}

/*
 * Whether a member has an epoch that @latest follows: the parent, or one in which a member
 * of @holders was live, those that have @latest or an epoch that it follows.  Else it has
 * gone on without them.
 */
static bool precedes(const struct layout *layout, const struct layout *latest, uint64_t holders)
{
	return layout->epoch == latest->epoch || layout->epoch == latest->previous ||
	       layout->live & holders;
}

/* The first member that has gone on apart from the epoch of @latest, or NULL. */
static const struct found *find_apart(const struct found *found, uint32_t count,
				      const struct layout *latest)
{
	uint64_t holders = 0, before;

	do {
		before = holders;
		for (uint32_t i = 0; i < count; i++)
			if (precedes(&found[i].layout, latest, holders))
				holders |= 1ull << found[i].layout.member;
	} while (holders != before);
	for (uint32_t i = 0; i < count; i++)
		if (!(holders >> found[i].layout.member & 1))
			return &found[i];
	return NULL;
}

/*
 * The superblock of the latest epoch: the one that those of all members precede.  If
 * members have gone on apart there is none: each side has values that the other does not
 * have, and has freed some that the other has.
 */
static const struct layout *find_latest(const struct found *found, uint32_t count)
{
	const struct found *latest = NULL, *newest = &found[0];

	for (uint32_t i = 0; i < count; i++) {
		if (found[i].layout.epoch > newest->layout.epoch)
			newest = &found[i];
		if (!find_apart(found, count, &found[i].layout) &&
		    (!latest || found[i].layout.epoch > latest->layout.epoch))
			latest = &found[i];
	}
	if (latest)
		return &latest->layout;
	store_fail(opening, -ESTALE, "members of the store were used without each other",
		   "leave one side out, with NVMEPEER_STORE_DEGRADED; its values are lost",
		   "%s, and %s, each went on without the other", newest->path,
		   find_apart(found, count, &newest->layout)->path);
	return NULL;
}

static int allocate_member(struct member *member)
{
	uint64_t units = member->layout.table_bytes / member->layout.unit;

	if (posix_memalign((void **)&member->table, member->layout.unit,
			   member->layout.table_bytes)) {
		member->table = NULL;
		return -ENOMEM;
	}
	memset(member->table, 0, member->layout.table_bytes);
	member->dirty = calloc(units, sizeof(*member->dirty));
	member->slots = calloc(member->layout.slots, sizeof(*member->slots));
	member->free = calloc(member->layout.slots, sizeof(*member->free));
	return member->dirty && member->slots && member->free ? 0 : -ENOMEM;
}

/* The members in order of their numbers; @found is theirs, also after a failure. */
static int assemble(struct nvmepeer_store *store, const struct found *found, uint32_t count,
		    const struct layout *latest)
{
	int error = 0;

	store->layout.epoch = latest->epoch;
	store->layout.previous = latest->previous;
	store->layout.live = latest->live;
	for (uint32_t i = 0; i < store->layout.members; i++) {
		store->members[i].failed = store->members[i].lost = true;
		store->members[i].last = &store->members[i].changes;
	}
	for (uint32_t i = 0; i < count; i++) {
		struct member *member = &store->members[found[i].layout.member];

		member->path = found[i].path;
		member->disk = found[i].disk;
		member->layout = found[i].layout;
		member->present = true;
		member->failed = member->lost = false;
		if (!error)
			error = allocate_member(member);
	}
	return error;
}

/* A member without the latest epoch has missed no change if that was about to be written. */
static bool is_current(const struct nvmepeer_store *store, const struct member *member)
{
	return member->layout.epoch == store->layout.epoch ||
	       (member->layout.epoch == store->layout.previous &&
		store->layout.live >> member->layout.member & 1);
}

/* Members that should be there, by bit. */
static uint64_t missing(const struct nvmepeer_store *store)
{
	uint64_t absent = store->layout.live;

	for (uint32_t i = 0; i < store->layout.members; i++)
		if (store->members[i].present)
			absent &= ~(1ull << i);
	return absent;
}

static int check_missing(const struct nvmepeer_store *store, uint32_t flags)
{
	uint64_t absent = missing(store);

	if (!absent || (flags & NVMEPEER_STORE_DEGRADED))
		return 0;
	return store_fail(opening, -ENODEV, "a member of the store is missing",
			  "pass it, or NVMEPEER_STORE_DEGRADED to lose its values",
			  "member %d of %u is not among the paths", __builtin_ctzll(absent),
			  store->layout.members);
}

/* Empty members that have missed changes.  @piece is zeros. */
static int empty_members(struct nvmepeer_store *store, struct io_queue *queue, void *piece)
{
	for (uint32_t i = 0; i < store->layout.members; i++) {
		struct member *member = &store->members[i];
		int error = 0;

		if (store->emptied >> i & 1)
			error = clear_table(&member->layout, &member->disk, queue, piece);
		if (error)
			return fail_io(opening, member->path, error);
	}
	return 0;
}

/*
 * A new epoch.  If a member fails here, the open does, and the others must not go on
 * without it: its values would be lost, and it has missed nothing.
 */
static int begin_epoch(struct nvmepeer_store *store, struct io_queue *queue)
{
	uint32_t failed = 0;
	int error = epoch_advance(store, queue);

	if (!error)
		return 0;
	while (!store->members[failed].present || !store->members[failed].failed)
		failed++;
	return fail_io(opening, store->members[failed].path, error);
}

/* Bring all members to one epoch; empty those that have missed changes.  @piece is zeros. */
static int agree(struct nvmepeer_store *store, struct io_queue *queue, void *piece)
{
	int error;

	for (uint32_t i = 0; i < store->layout.members; i++) {
		struct member *member = &store->members[i];

		if (!member->present)
			continue;
		error = 0;
		if (!is_current(store, member))
			store->emptied |= 1ull << i;
		else if (member->layout.epoch != store->layout.epoch && !store->read_only)
			error = epoch_write(store, queue, member);
		if (error)
			return fail_io(opening, member->path, error);
	}
	if (store->read_only || (!store->emptied && !missing(store)))
		return 0;
	error = empty_members(store, queue, piece);
	return error ? error : begin_epoch(store, queue);
}

static void index_member(const struct nvmepeer_store *store, struct member *member)
{
	/*
	 * A member that was emptied has lost its count of commits: with the epoch in the upper
	 * half, no generation is used twice.
	 */
	uint64_t first = store->layout.epoch >> 32 << 32;

	/* From the last to the first, so that the first are allocated first. */
	for (uint32_t i = member->layout.slots; i--; ) {
		struct slot *slot = &member->slots[i];
		uint8_t *entry = member->table + (size_t)i * LAYOUT_ENTRY;
		struct descriptor descriptor;
		enum entry_state state = entry_decode(&member->layout, i, entry, &descriptor);

		slot->generation = descriptor.generation ? descriptor.generation : first;
		if (state == ENTRY_VALUE) {
			slot->length = descriptor.length;
			slot->checksum = descriptor.checksum;
			slot->has_checksum = descriptor.has_checksum;
			slot->state = SLOT_VALUE;
			continue;
		}
		member->free[member->free_count++] = i;
		if (state != ENTRY_DAMAGED)
			continue;
		member->damaged++;
		memset(entry, 0, LAYOUT_ENTRY);
		member->dirty[(size_t)i * LAYOUT_ENTRY / member->layout.unit] = true;
	}
}

/*
 * Entries that were damaged are durably without a value before their slots are written: what
 * was read may not be what is on the disk.
 */
static int clear_damaged(const struct nvmepeer_store *store, struct io_queue *queue,
			 struct member *member)
{
	uint64_t bytes = member->layout.unit;
	int error = 0;

	for (uint64_t unit = 0; !error && unit < member->layout.table_bytes / bytes; unit++) {
		if (member->dirty[unit] && !store->read_only)
			error = run_one(queue, &member->disk, IO_WRITE_FUA,
					member->table + unit * bytes, (unit + 1) * bytes, bytes);
		member->dirty[unit] = false;
	}
	return error;
}

/*
 * Read a table.  What an earlier process has written may be in the cache of the disk only:
 * an entry without a value has to be durable before its slot is written.
 */
static int read_table(const struct nvmepeer_store *store, struct io_queue *queue,
		      struct member *member)
{
	uint64_t done = 0;
	int error = 0;

	if (!store->read_only)
		error = run_one(queue, &member->disk, IO_FLUSH, NULL, 0, 0);
	while (!error && done < member->layout.table_bytes) {
		uint64_t rest = member->layout.table_bytes - done;
		uint64_t bytes = rest < PIECE ? rest : PIECE;

		error = run_one(queue, &member->disk, IO_READ, member->table + done,
				member->layout.unit + done, bytes);
		done += bytes;
	}
	return error;
}

/* Read the tables.  @unread: out: members that NVMEPEER_STORE_DEGRADED gives up, by bit. */
static int read_tables(const struct nvmepeer_store *store, struct io_queue *queue,
		       uint32_t flags, uint64_t *unread)
{
	const char *path = NULL;
	uint32_t left = 0;
	int lost = 0;

	for (uint32_t i = 0; i < store->layout.members; i++) {
		struct member *member = &store->members[i];
		int error = 0;

		if (!member->present)
			continue;
		/* Opened for reading only, it keeps its table, whose values do not count. */
		if (!store->read_only || !(store->emptied >> i & 1))
			error = read_table(store, queue, member);
		if (error && (!(flags & NVMEPEER_STORE_DEGRADED) || !is_absent(error)))
			return fail_io(opening, member->path, error);
		left += !error;
		if (!error)
			continue;
		lost = error;
		path = member->path;
		*unread |= 1ull << i;
	}
	return left ? 0 : fail_io(opening, path, lost);
}

/* A member that cannot be read is missing. */
static void leave_out(struct nvmepeer_store *store, struct member *member)
{
	member->failed = member->lost = true;
	member->present = false;
	store->emptied &= ~(1ull << member->layout.member);
	io_close(&member->disk);
}

/*
 * The count of commits is lost with an entry: those of a new epoch are higher.  It begins
 * before the entry is cleared, for an open after a power cut.
 */
static void renew_generations(const struct nvmepeer_store *store, struct member *member)
{
	for (uint32_t i = 0; i < member->layout.slots; i++)
		if (member->slots[i].state == SLOT_FREE)
			member->slots[i].generation = store->layout.epoch >> 32 << 32;
}

static int clear_all_damaged(struct nvmepeer_store *store, struct io_queue *queue)
{
	int error = 0;

	for (uint32_t i = 0; !error && i < store->layout.members; i++) {
		struct member *member = &store->members[i];

		if (!member->present || !member->damaged)
			continue;
		renew_generations(store, member);
		error = clear_damaged(store, queue, member);
		if (error)
			error = fail_io(opening, member->path, error);
	}
	return error;
}

/* @piece is zeros. */
static int load(struct nvmepeer_store *store, struct io_queue *queue, uint32_t flags, void *piece)
{
	uint64_t unread = 0;
	bool changed = false;
	int error = agree(store, queue, piece);

	if (!error)
		error = read_tables(store, queue, flags, &unread);
	for (uint32_t i = 0; !error && i < store->layout.members; i++) {
		struct member *member = &store->members[i];

		if (unread >> i & 1)
			leave_out(store, member);
		else if (member->present)
			index_member(store, member);
		changed |= (unread >> i & 1) || member->damaged;
	}
	if (!error && changed && !store->read_only)
		error = begin_epoch(store, queue);
	if (!error)
		error = clear_all_damaged(store, queue);
	/* The caller's. */
	for (uint32_t i = 0; i < store->layout.members; i++)
		store->members[i].path = NULL;
	return error;
}

static struct nvmepeer_store *store_new(const struct layout *layout, uint32_t flags)
{
	struct nvmepeer_store *store = calloc(1, sizeof(*store));
	pthread_condattr_t attributes;

	if (!store)
		return NULL;
	store->layout = *layout;
	store->read_only = flags & NVMEPEER_STORE_READ_ONLY;
	store->members = calloc(layout->members, sizeof(*store->members));
	store->block = piece_new();
	pthread_mutex_init(&store->lock, NULL);
	pthread_mutex_init(&store->epoch_lock, NULL);
	pthread_mutex_init(&store->queue_lock, NULL);
	pthread_condattr_init(&attributes);
	pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC);
	pthread_cond_init(&store->changed, &attributes);
	pthread_condattr_destroy(&attributes);
	if (store->members && store->block)
		return store;
	free(store->members);
	store->members = NULL;
	nvmepeer_store_close(store);
	return NULL;
}

static int open_store(struct found *found, uint32_t count, uint32_t flags,
		      void *piece, struct nvmepeer_store **opened)
{
	struct nvmepeer_store *store;
	struct io_queue *queue = NULL;
	const struct layout *latest = NULL;
	int error = check_members(found, count);

	if (!error) {
		latest = find_latest(found, count);
		error = latest ? 0 : -ESTALE;
	}
	store = error ? NULL : store_new(&found[0].layout, flags);
	if (!store) {
		while (count)
			io_close(&found[--count].disk);
		return error ? error : store_fail_memory(opening);
	}
	error = assemble(store, found, count, latest);
	if (!error)
		error = queue_get(store, &queue);
	if (error) {
		error = store_fail_queue(opening, error);
		goto close;
	}
	error = check_missing(store, flags);
	if (error)
		goto put;
	error = load(store, queue, flags, memset(piece, 0, PIECE));
put:
	queue_put(store, queue);
close:
	if (error)
		nvmepeer_store_close(store);
	else
		*opened = store;
	return error;
}

int nvmepeer_store_open(const char *const *members, uint32_t count, uint32_t flags,
			struct nvmepeer_store **store)
{
	struct found *found;
	void *block;
	int result = check_count(opening, count);

	if (result)
		return result;
	if (flags & ~(NVMEPEER_STORE_DEGRADED | NVMEPEER_STORE_READ_ONLY))
		return store_fail(opening, -EINVAL, "invalid flags",
				  "pass NVMEPEER_STORE_DEGRADED, NVMEPEER_STORE_READ_ONLY or 0",
				  "unknown flags %#x", flags);
	found = calloc(count, sizeof(*found));
	block = piece_new();
	if (!found || !block) {
		free(found);
		free(block);
		return store_fail_memory(opening);
	}
	result = find_members(members, count, flags, block, found);
	if (result > 0)
		result = open_store(found, (uint32_t)result, flags, block, store);
	free(block);
	free(found);
	return result;
}

void nvmepeer_store_close(struct nvmepeer_store *store)
{
	if (!store)
		return;
	while (store->queue_count)
		io_queue_close(store->queues[--store->queue_count]);
	for (uint32_t i = 0; store->members && i < store->layout.members; i++) {
		struct member *member = &store->members[i];

		free(member->table);
		free(member->dirty);
		free(member->slots);
		free(member->free);
		if (member->present)
			io_close(&member->disk);
	}
	pthread_cond_destroy(&store->changed);
	pthread_mutex_destroy(&store->lock);
	pthread_mutex_destroy(&store->epoch_lock);
	pthread_mutex_destroy(&store->queue_lock);
	free(store->queues);
	free(store->members);
	free(store->block);
	free(store);
}
