/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Mediated queue pairs: structures and locks.
 *
 * A *tenant* is a queue pair in mediated mode.  Its rings and doorbells are host
 * memory, which the tenant may write at any time.  A *mediator* has the tenants
 * of one controller, and two queue pairs on the controller that they share.  The
 * thread of the pool (poller.c) that polls the controller's NUMA node calls
 * nvmep_mediator_pass():
 *
 *	reap	take completions from the shared queue pairs; read a word of each
 *		buffer in memory of a device that data went to; write the
 *		entries of the tenants
 *	fetch	for each tenant in turn, within its share: copy an entry, check
 *		it (mediate.c), submit a command of the mediator
 *	ring	write the doorbells of the shared queue pairs
 *
 * mediator.c	the mediator: shared queue pairs, pass, timeouts, stop
 * account.c	what the tenants of one user have and use together
 * read_budget.c	limits of slow reads, without kernel state
 * mediated.c	the tenant: windows, buffers, creation and end
 * window_file.c	windows on files: pin, extents, cached pages
 * mediate.c	check and build of one command, without kernel state
 *
 * Locks: mediator->lock, a spinlock, guards all that a pass uses.  It nests in
 * poller->lock, and ctrl->relay_lock nests in it.  mediator->mutex serializes
 * creation and deletion of the shared queue pairs.  It is held over admin
 * commands and nests in qp->lock; reset work does not take it.  tenant->mutex
 * serializes changes of windows and buffers; it nests in qp->lock.
 *
 * What a command in flight holds: a count in its window, so that the file stays
 * open; and a count in its buffer.  The window has a reference to the usage
 * counter of the namespace's request queue while it has commands, so that whatever
 * freezes I/O waits for them and holds the pass; the buffer has one to its users,
 * so that the memory stays mapped.
 *
 * A command of a window on a file is sent in parts, one for each extent, and
 * completes with the first error.  It counts as direct I/O of the inode, and a
 * write keeps the file system from being frozen, until the controller has ended
 * the last part.  If the page cache has pages of the file, a write is then
 * released, and completes when a work has invalidated its pages.
 *
 * End of commands: the controller completes them; or a timeout: Abort, then
 * deletion of the one shared queue pair, which completes its commands as
 * aborted; or a stop of the controller, which loses all of them: the generation
 * has changed, which each pass checks first.  No path waits for a tenant: what
 * waits, waits for commands on the controller, and calls nvmep_mediator_poll(),
 * as the thread may be frozen.
 */
#ifndef _NVMEP_MEDIATED_H
#define _NVMEP_MEDIATED_H

#include <linux/blkdev.h>
#include <linux/io.h>
#include <linux/kref.h>
#include <linux/list.h>
#include <linux/mutex.h>
#include <linux/nvme.h>
#include <linux/spinlock.h>
#include <linux/types.h>
#include <linux/uidgid.h>
#include <linux/workqueue.h>

#include <linux/nvme_peer.h>

#include "core/ctrl.h"
#include "mediate.h"
#include "read_budget.h"
#include "relay.h"

struct file;
struct inode;
struct nvmep_buf;
struct nvmep_peers;
struct nvmep_account;
struct nvmep_pin;
struct nvmep_qp;
struct nvmep_tenant;

/* INFO.qid of a queue pair without a queue ID. */
#define NVMEP_QID_NONE		0xffff

/* Shared queue pairs of a mediator. */
#define NVMEP_SHARED		2
/* Entries of their rings; one of them stays empty. */
#define NVMEP_SHARED_ENTRIES	128
/* Distance of the command identifiers of a slot. */
#define NVMEP_CID_USE		NVMEP_SHARED_ENTRIES
static_assert(!(0x10000 % NVMEP_CID_USE));

/**
 * struct nvmep_flushes - the Flush commands of one namespace
 * @node: mediator->lock: in mediator->flushes
 * @users: mediator->lock: windows of the namespace
 * @nsid: const
 * @busy: mediator->lock: a Flush is on the controller, for those in @issued
 * @issued: mediator->lock: commands that it completes
 * @waiting: mediator->lock: commands that came later: the next one completes
 *	them, as the first may not cover what they follow
 *
 * A namespace that was removed, whose windows may still exist, and a later one
 * with the same NSID share it, but no Flush: the window of each command holds the
 * usage counter of its own disk, and a scan adds the later one after the disk of the
 * first was deleted, which waits for that counter.
 */
struct nvmep_flushes {
	struct list_head node;
	unsigned int users;
	u32 nsid;
	bool busy;
	struct list_head issued;
	struct list_head waiting;
};

/**
 * struct nvmep_extent - contiguous blocks of a file
 * @first: first block on the file; the next extent begins where this one ends
 * @lba: of @first on the namespace
 */
struct nvmep_extent {
	u64 first;
	u64 lba;
};

/**
 * struct nvmep_file - a regular file that a window is on, or whose extents a
 *	process has
 * @ref: one of the window, and one of each work that is queued
 * @ctrl: const, reference
 * @mediator: const: exists as long as @ctrl; NULL without a window
 * @tenant: const: exists as long as the window
 * @account: const: of @tenant; exists longer while @verify is queued
 * @cred: const, reference: of the process that has added the window or pinned it
 * @file: const, reference: keeps the file system mounted
 * @inode: const: of @file
 * @pin: const: NULL if it could not be pinned
 * @shift: const: log2 of the bytes of a block
 * @base: const: LBA of the first block of the file system
 * @size: const: bytes of the file when it was pinned
 * @blocks: const: whole blocks of the file system of @size
 * @first: const: first block of the window, or of the extents
 * @count: const: blocks of the window, or of the extents
 * @extents: const: array; the last one is behind the window
 * @extent_count: const: entries of @extents
 * @user: const: charged for @pages, reference; NULL if nothing is charged
 * @pages: const: of @extents
 * @end: const: behind the last block of @extents on the block device
 * @version: mediator->lock, or serialised without one: of the inode, with which
 *	@extents were compared
 * @write_version: mediator->lock: as @version, and privileges were removed
 * @doubtful: @verify only: block whose comparison has failed
 * @verifying: mediator->lock: @verify is queued
 * @wrote: mediator->lock: a command that may write has begun
 * @admitted: mediator->lock: @verify has the lock of the inode for commands
 * @admitted_commands: mediator->lock: commands that keep this lock; read racily
 * @blocked: mediator->lock: no command has had the lock of the inode since one
 *	tried; read racily
 * @blocked_after: mediator->lock: jiffies: from then on @verify waits for the lock
 * @closing: mediator->lock: the window is being removed; read racily
 * @doubts: mediator->lock: comparisons in sequence without a result
 * @ended: mediator->lock: the blocks have changed, or the page cache has old data
 * @node: mediator->lock: in mediator->cached while there are commands below
 * @waiting: mediator->lock: commands whose pages are to be invalidated
 * @running: mediator->lock: commands whose pages are being invalidated
 * @stale_first: mediator->lock: first byte whose page is to be invalidated,
 *	U64_MAX if there is none
 * @stale_last: mediator->lock: last one
 * @invalidate: does it
 * @verify: compares the extents, and admits commands to a locked inode
 */
struct nvmep_file {
	struct kref ref;
	struct nvmep_ctrl *ctrl;
	struct nvmep_mediator *mediator;
	struct nvmep_tenant *tenant;
	struct nvmep_account *account;
	const struct cred *cred;
	struct file *file;
	struct inode *inode;
	struct nvmep_pin *pin;
	u8 shift;
	u64 base;
	loff_t size;
	u64 blocks;
	u64 first;
	u64 count;
	struct nvmep_extent *extents;
	u32 extent_count;
	struct user_struct *user;
	unsigned long pages;
	u64 end;
	u64 version;
	u64 write_version;
	u64 doubtful;
	unsigned long blocked_after;
	unsigned int doubts;
	bool verifying;
	bool wrote;
	bool admitted;
	unsigned int admitted_commands;
	bool blocked;
	bool closing;
	bool ended;
	struct list_head node;
	struct list_head waiting;
	struct list_head running;
	u64 stale_first;
	u64 stale_last;
	struct work_struct invalidate;
	struct work_struct verify;
};

/**
 * struct nvmep_window - what belongs to a window in addition to its rights
 * @file: the block device or regular file; NULL in an empty slot
 * @pinned: NULL for a block device
 * @bdev: the block device, or that of the file system
 * @blocks: its namespace
 * @flushes: of its namespace
 * @read_turn: the one of tenant->turns for which nvmep_window_refresh() has read
 *	the device, 0 for none
 * @in_flight: commands, for which one reference to the usage counter of
 *	@blocks.queue is held; read racily by READ_ONCE()
 * @epoch: of the window in the slot, or of the next one; more than 16 bits: the
 *	slot stays empty
 *
 * Guarded by mediator->lock; all but @read_turn and @in_flight are changed under
 * tenant->mutex as well.
 */
struct nvmep_window {
	struct file *file;
	struct nvmep_file *pinned;
	struct block_device *bdev;
	struct nvmep_blocks blocks;
	struct nvmep_flushes *flushes;
	u64 read_turn;
	u32 in_flight;
	u32 epoch;
};

/**
 * struct nvmep_tenant_command - a command of a tenant in flight
 * @next: in tenant->idle or mediator->done.  All commands pass these, and kernels
 *	may check a doubly linked list at each change
 * @node: in flushes->issued or ->waiting, mediator->splitting, or file->waiting or
 *	->running, or empty
 * @tenant: const
 * @command: what was checked; of an idle one, maybe an entry that was not taken
 * @window: window, in whose @in_flight it is
 * @buf: buffer of its data, in whose @in_flight it is; NULL without data
 * @file: of a Read, Write or Write Zeroes of a window on a file, else NULL.  Valid
 *	while the window is
 * @segment: with @file: that of its data
 * @sent: with @file: blocks that were sent
 * @parts: with @file: on the shared queue pairs
 * @deadline: with @file: jiffies: from then on no part is sent
 * @status: once it is in mediator->done; with @file: first error of a part
 * @batch: as @status: that of mediator->batch when it came there
 *
 * Guarded by mediator->lock.
 */
struct nvmep_tenant_command {
	struct nvmep_tenant_command *next;
	struct list_head node;
	struct nvmep_tenant *tenant;
	struct nvmep_mediate_command command;
	struct nvmep_window *window;
	struct nvmep_buf *buf;
	struct nvmep_file *file;
	const struct nvmep_segment *segment;
	u32 sent;
	u32 parts;
	unsigned long deadline;
	u16 status;
	u64 batch;
};

/**
 * struct nvmep_reader - slow reads of device memory of one user, by one thread
 * @node: readers->lock: in readers->list
 * @uid: const: the user
 * @accounts: readers->lock: of the user, on the controllers that the thread polls
 * @reads: readers->lock: see struct nvmep_user_reads
 *
 * It outlives its last account until its reads do not matter any more.
 */
struct nvmep_reader {
	struct list_head node;
	kuid_t uid;
	unsigned int accounts;
	struct nvmep_user_reads reads;
};

/**
 * struct nvmep_readers - the slow reads of one thread
 * @lock: guards all below
 * @list: by user
 * @until: of all users: see nvmep_reads_add()
 */
struct nvmep_readers {
	spinlock_t lock;	/* all below */
	struct list_head list;
	u64 until;
};

/**
 * union nvmep_entry - an entry of a submission ring
 * @dwords: as NVMe has them
 * @words: for a copy in half as many loads
 */
union nvmep_entry {
	__le32 dwords[NVMEP_SQE_DWORDS];
	u64 words[NVMEP_SQE_DWORDS / 2];
};

/**
 * struct nvmep_account - what the tenants of one user have together
 * @node: mediator->lock: in mediator->accounts
 * @uid: const: the user
 * @tenants: mediator->lock: number
 * @mapped: mediator->lock: bytes of the dma-bufs that are mapped for them
 * @slots: mediator->lock: commands on the shared queue pairs
 * @bytes: mediator->lock: that these transfer
 * @verifying: mediator->lock: files whose extents are being compared
 * @verify_after: mediator->lock: jiffies: no comparison begins before
 * @reader: const: slow reads of the user
 *
 * It outlives its last tenant until its buffers have gone, and a comparison has
 * ended.
 */
struct nvmep_account {
	struct list_head node;
	kuid_t uid;
	unsigned int tenants;
	u64 mapped;
	unsigned int slots;
	u64 bytes;
	unsigned int verifying;
	unsigned long verify_after;
	struct nvmep_reader *reader;
};

/**
 * struct nvmep_tenant - what a queue pair has in mediated mode
 * @qp: const
 * @mediator: const once it is created; counted in mediator->users
 * @account: const once it is created: that of qp->uid
 * @depth: const: see struct nvme_peer_qp_create
 * @weight: const
 * @timeout: const: jiffies; not less than that of I/O of the CPU
 * @max_windows: const
 * @max_buffers: const
 * @adding: serializes additions of windows.  Held over waits for a file; outside
 *	of @mutex
 * @mutex: serializes changes of windows and buffers.  Held over the wait for the
 *	commands of a window
 * @ended: @mutex: no window or buffer is added any more
 * @sealed: @mutex
 * @rights: mediator->lock; changed under @mutex, too, but for what a window's
 *	device is now.  @rights.max_transfer and @rights.max_write_zeroes are read
 *	racily by READ_ONCE()
 * @windows: as @rights, by slot
 * @buffers: as @rights, by slot; NULL in an empty one
 * @sq: const: submission ring, which the tenant may write at any time
 * @cq: const: completion ring
 * @sq_head: mediator->lock: next entry to fetch
 * @cq_tail: mediator->lock: next entry to write
 * @cq_head: mediator->lock: head that the tenant has written
 * @phase: mediator->lock: tag of the entry at @cq_tail
 * @in_flight: mediator->lock: commands that have no completion entry yet; read
 *	racily by READ_ONCE()
 * @zeroes: mediator->lock: a Write Zeroes is in flight
 * @turn: mediator->lock: its turn goes on in the next pass
 * @turns: mediator->lock: turns so far; one that goes on in the next pass counts
 *	again
 * @deficit: mediator->lock: bytes that it may submit in its turn
 * @slow_until: mediator->lock: nanoseconds: see nvmep_reads_add()
 * @slots: mediator->lock: commands on the shared queue pairs
 * @bytes: mediator->lock: that these transfer
 * @commands: const: array of @depth
 * @idle: mediator->lock: the first of those that are not in use
 * @stats: mediator->lock; read racily by READ_ONCE()
 */
struct nvmep_tenant {
	struct nvmep_qp *qp;
	struct nvmep_mediator *mediator;
	struct nvmep_account *account;
	u32 depth;
	u32 weight;
	unsigned long timeout;
	u32 max_windows;
	u32 max_buffers;
	struct mutex adding;	/* additions of windows */

	struct mutex mutex;	/* changes of windows and buffers */
	bool ended;
	bool sealed;
	struct nvmep_mediate_rights rights;
	struct nvmep_window *windows;
	struct nvmep_buf **buffers;

	const union nvmep_entry *sq;
	__le32 *cq;
	u32 sq_head;
	u32 cq_tail;
	u32 cq_head;
	bool phase;
	u32 in_flight;
	bool zeroes;
	bool turn;
	u64 turns;
	u64 deficit;
	u64 slow_until;
	unsigned int slots;
	u64 bytes;
	struct nvmep_tenant_command *commands;
	struct nvmep_tenant_command *idle;
	struct nvme_peer_qp_stats stats;
};

/**
 * struct nvmep_shared_slot - a command on a shared queue pair
 * @command: of the tenant, or the first of flushes->issued; NULL if it is idle
 * @bytes: that it transfers
 * @cid: its command identifier: use * NVMEP_CID_USE + slot; the slot is const
 * @timeout: jiffies
 * @deadline: jiffies: @timeout after it was sent, or after timeouts were deferred
 * @list: const: a page for its PRP list
 * @list_dma: const
 */
struct nvmep_shared_slot {
	struct nvmep_tenant_command *command;
	u64 bytes;
	u16 cid;
	unsigned long timeout;
	unsigned long deadline;
	__le64 *list;
	dma_addr_t list_dma;
};

/**
 * struct nvmep_shared - a queue pair on the controller that tenants share
 * @qid: mediator->mutex: 0 without a queue ID
 * @live: takes commands and doorbells
 * @stuck: a command has exceeded its time: no new ones
 * @sq: const while there are users: ring
 * @cq: const while there are users: ring
 * @sq_dma: const while there are users
 * @cq_dma: const while there are users
 * @sq_tail: next entry to write
 * @sq_rung: tail that the doorbell has
 * @cq_head: next entry to consume
 * @cq_rung: head that the doorbell has
 * @phase: tag of a new entry at @cq_head
 * @in_flight: commands
 * @next: slot to try first
 * @slots: commands by slot; one for each value of cid % NVMEP_CID_USE, of which
 *	@next takes one less than there are entries
 *
 * Guarded by mediator->lock where nothing else is said.
 */
struct nvmep_shared {
	u16 qid;
	bool live;
	bool stuck;
	struct nvme_command *sq;
	struct nvme_completion *cq;
	dma_addr_t sq_dma;
	dma_addr_t cq_dma;
	u16 sq_tail;
	u16 sq_rung;
	u16 cq_head;
	u16 cq_rung;
	bool phase;
	u16 in_flight;
	u16 next;
	struct nvmep_shared_slot slots[NVMEP_CID_USE];
};

/**
 * struct nvmep_mediator - the mediated queue pairs of one controller
 * @ctrl: const
 * @poller: const: the thread
 * @readers: const: of @poller
 * @entries: const: of the rings of @shared
 * @poller_node: poller->lock: in poller->mediators while there are users
 * @mutex: serializes creation and deletion of @shared; guards @users
 * @users: @mutex: tenants
 * @lock: see above
 * @tenants: @lock: LIVE tenants, by relay.node of their queue pair
 * @lost: @lock: @shared do not exist
 * @generation: @lock: of the controller, in which @shared exist
 * @shared: see struct nvmep_shared
 * @in_flight: @lock: commands on @shared
 * @bytes: @lock: that they transfer
 * @splitting: @lock: commands of files that were not sent completely
 * @cached: @lock: files with commands whose pages are to be invalidated
 * @done: @lock: the first command that the controller has completed, or NULL
 * @done_end: @lock: where the next one is linked
 * @batch: @lock: incremented before completions are taken from @shared
 * @flushes: @lock: by namespace
 * @accounts: @lock: by user
 * @check: @lock: jiffies of the next check for timeouts
 * @work: recovers stuck queue pairs
 *
 * Lives as long as the controller.
 */
struct nvmep_mediator {
	struct nvmep_ctrl *ctrl;
	struct nvmep_poller *poller;
	struct nvmep_readers *readers;
	u16 entries;
	struct list_head poller_node;
	struct mutex mutex;	/* creation and deletion of @shared */
	unsigned int users;
	spinlock_t lock;	/* all below but @work */
	struct list_head tenants;
	bool lost;
	u32 generation;
	struct nvmep_shared shared[NVMEP_SHARED];
	unsigned int in_flight;
	u64 bytes;
	struct list_head splitting;
	struct list_head cached;
	struct nvmep_tenant_command *done;
	struct nvmep_tenant_command **done_end;
	u64 batch;
	struct list_head flushes;
	struct list_head accounts;
	unsigned long check;
	struct work_struct work;
};

#define nvmep_for_each_shared(shared_, mediator_) \
	for ((shared_) = (mediator_)->shared; \
	     (shared_) < (mediator_)->shared + NVMEP_SHARED; (shared_)++)

#define nvmep_for_each_slot_from(slot_, shared_) \
	for (; (slot_) < (shared_)->slots + ARRAY_SIZE((shared_)->slots); \
	     (slot_)++)

#define nvmep_for_each_slot(slot_, shared_) \
	for ((slot_) = (shared_)->slots; \
	     (slot_) < (shared_)->slots + ARRAY_SIZE((shared_)->slots); \
	     (slot_)++)

/* account.c */
void nvmep_readers_init(struct nvmep_readers *readers);
void nvmep_readers_free(struct nvmep_readers *readers);
int nvmep_account_get(struct nvmep_mediator *mediator,
		      struct nvmep_tenant *tenant);
void nvmep_account_put(struct nvmep_tenant *tenant);
void nvmep_accounts_free(struct nvmep_mediator *mediator);
bool nvmep_account_map(struct nvmep_tenant *tenant, u64 bytes);
void nvmep_account_unmap(struct nvmep_tenant *tenant, u64 bytes);
bool nvmep_account_may_read(struct nvmep_tenant *tenant, u64 now);
bool nvmep_account_read(struct nvmep_tenant *tenant, u64 began, u64 took);

/* mediator.c */
int nvmep_mediator_join(struct nvmep_tenant *tenant);
void nvmep_mediator_leave(struct nvmep_tenant *tenant);
int nvmep_mediator_start(struct nvmep_mediator *mediator, u32 generation);
void nvmep_mediator_stopped(struct nvmep_peers *peers);
void nvmep_mediator_poll(struct nvmep_mediator *mediator);
void nvmep_mediator_exit(struct nvmep_peers *peers);
void nvmep_mediator_free(struct nvmep_peers *peers);
enum nvmep_relay_seen nvmep_mediator_pass(struct nvmep_mediator *mediator);
void nvmep_mediator_report(struct nvmep_mediator *mediator, bool asleep);
void nvmep_mediator_add(struct nvmep_tenant *tenant, bool asleep);
void nvmep_mediator_remove(struct nvmep_tenant *tenant);
unsigned int nvmep_mediator_count(struct nvmep_mediator *mediator);

void nvmep_mediator_finish_cached(struct nvmep_mediator *mediator,
				  struct nvmep_file *file, u16 status);
void nvmep_mediator_abort_cached(struct nvmep_mediator *mediator,
				 struct nvmep_file *file);
void nvmep_tenant_lose_cached(struct nvmep_tenant *tenant);

/* window_file.c */
struct nvmep_file *nvmep_file_open(struct nvmep_ctrl *ctrl, struct file *filp,
				   bool write, struct nvmep_blocks *blocks);
void nvmep_file_add_window(struct nvmep_file *file, struct nvmep_tenant *tenant);
int nvmep_file_read_extents(struct nvmep_file *file, u64 first, u64 count);
int nvmep_file_check_extents(struct nvmep_file *file);
struct nvmep_file *nvmep_file_get(struct nvmep_file *file);
void nvmep_file_put(struct nvmep_file *file);
void nvmep_file_put_removed(struct nvmep_file *file);
u64 nvmep_file_map(const struct nvmep_file *file, u64 block, u32 *blocks);
u32 nvmep_file_parts(const struct nvmep_file *file, u64 block, u32 blocks);
bool nvmep_file_read_only(const struct nvmep_file *file);
int nvmep_file_begin(struct nvmep_file *file, bool write);
void nvmep_file_end(struct nvmep_file *file, bool write);
bool nvmep_file_cached(const struct nvmep_file *file);
void nvmep_file_wrote(struct nvmep_file *file,
		      const struct nvmep_mediate_command *command);
void nvmep_file_wait(struct nvmep_file *file,
		     struct nvmep_tenant_command *command);

/* mediated.c */
int nvmep_tenant_create(struct nvmep_qp *qp,
			const struct nvme_peer_qp_create *cmd);
void nvmep_tenant_free(struct nvmep_tenant *tenant);
void nvmep_tenant_reset(struct nvmep_tenant *tenant);
void nvmep_tenant_quiesce(struct nvmep_tenant *tenant);
void nvmep_tenant_end(struct nvmep_tenant *tenant);
int nvmep_tenant_create_check(const struct nvmep_ctrl *ctrl,
			      const struct nvme_peer_qp_create *cmd);
int nvmep_tenant_window_add(struct nvmep_tenant *tenant,
			    struct nvme_peer_window_add *cmd);
int nvmep_tenant_window_remove(struct nvmep_tenant *tenant, u32 id);
int nvmep_tenant_window_info(struct nvmep_tenant *tenant,
			     struct nvme_peer_window_info *cmd);
struct nvmep_buf *nvmep_tenant_buf_add(struct nvmep_tenant *tenant,
				       struct nvme_peer_buf_add *cmd);
int nvmep_tenant_buf_remove(struct nvmep_tenant *tenant, u32 slot,
			    const struct nvmep_buf *only);
void nvmep_tenant_limits(struct nvmep_tenant *tenant,
			 struct nvme_peer_qp_limits *cmd);
void nvmep_tenant_stats(struct nvmep_tenant *tenant,
			struct nvme_peer_qp_stats *cmd);
void nvmep_tenant_seal(struct nvmep_tenant *tenant);
void nvmep_window_refresh(struct nvmep_tenant *tenant, u32 slot);

#endif /* _NVMEP_MEDIATED_H */
