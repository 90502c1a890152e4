// SPDX-License-Identifier: GPL-2.0-only
/*
 * Windows on regular files of ext4: the pin of the inode, the extents, and what
 * each command holds.  mediated.h has structures and locks.
 *
 * The blocks of a file must not move or be freed while commands access them.
 * S_SWAPFILE refuses what would do that: write(), truncate, fallocate, reflink,
 * the exchange of extents, unlink and rename; mapping_deny_writable() refuses
 * stores by mmap.  fallocate() checks the flag before it takes the inode lock, so
 * one that began earlier may come later.  Therefore a command follows the
 * protocol of O_DIRECT: it takes the inode lock shared, compares the version of
 * the inode with that of the extents, and counts as direct I/O, for which the
 * file system waits before it changes blocks.
 *
 * Nothing waits for these works, and no lock of others is held over a wait for
 * the inode: the tenant may have processes that hold its lock for any time.  The
 * works share a queue with those of other users, so the one that sleeps for the
 * inode, in bmap(), is one at a time for each user, and the release tries again.
 */
#include <linux/bits.h>
#include <linux/buffer_head.h>
#include <linux/capability.h>
#include <linux/cred.h>
#include <linux/file.h>
#include <linux/fs.h>
#include <linux/iversion.h>
#include <linux/magic.h>
#include <linux/mm.h>
#include <linux/module.h>
#include <linux/mount.h>
#include <linux/pagemap.h>
#include <linux/sched/signal.h>
#include <linux/slab.h>

#include "compat.h"
#include "core/ctrl.h"
#include "host_buffer.h"
#include "mediated.h"
#include "module.h"
#include "qp.h"

/* Most extents of a window: 4 MiB of memory. */
#define NVMEP_MAX_EXTENTS	BIT(18)
#define NVMEP_FIRST_EXTENTS	64U

/* Interval of the attempts to lock the inode of a window that was removed. */
#define NVMEP_RELEASE_INTERVAL	(HZ / 50 + 1)

/* A comparison of the extents may take one part in so many of the time. */
#define NVMEP_VERIFY_SHARE	10
#define NVMEP_VERIFY_INTERVAL	(HZ / 100 + 1)

/* Comparisons without a result after which the window ends. */
#define NVMEP_VERIFY_DOUBTS	100

/* Attributes of files whose blocks do not hold their bytes. */
#define NVMEP_REFUSED_ATTRIBUTES \
	(FS_ENCRYPT_FL | FS_COMPR_FL | FS_VERITY_FL | FS_JOURNAL_DATA_FL | \
	 FS_DAX_FL)

/* --- pins ----------------------------------------------------------------- */

/**
 * struct nvmep_pin - an inode whose blocks stay where they are
 * @node: nvmep_pins_lock: in nvmep_pins
 * @inode: const; windows hold it by their files
 * @users: windows; guarded by the lock of the inode
 */
struct nvmep_pin {
	struct list_head node;
	struct inode *inode;
	unsigned int users;
};

static DEFINE_SPINLOCK(nvmep_pins_lock);
static LIST_HEAD(nvmep_pins);

/* The lock of the inode keeps the pin. */
static struct nvmep_pin *nvmep_pin_find(const struct inode *inode)
{
	struct nvmep_pin *pin, *found = NULL;

	spin_lock(&nvmep_pins_lock);
	list_for_each_entry(pin, &nvmep_pins, node)
		if (pin->inode == inode)
			found = pin;
	spin_unlock(&nvmep_pins_lock);
	return found;
}

static struct nvmep_pin *nvmep_pin_create(struct inode *inode)
{
	struct nvmep_pin *pin;
	int err;

	if (IS_SWAPFILE(inode))
		return ERR_PTR(-ETXTBSY);
	pin = kzalloc(sizeof(*pin), GFP_KERNEL_ACCOUNT);
	if (!pin)
		return ERR_PTR(-ENOMEM);
	err = mapping_deny_writable(inode->i_mapping);
	if (err) {
		kfree(pin);
		return ERR_PTR(err);
	}
	pin->inode = inode;
	inode->i_flags |= S_SWAPFILE;
	spin_lock(&nvmep_pins_lock);
	list_add(&pin->node, &nvmep_pins);
	spin_unlock(&nvmep_pins_lock);
	return pin;
}

static struct nvmep_pin *nvmep_pin_get(struct inode *inode)
{
	struct nvmep_pin *pin;

	lockdep_assert_held_write(&inode->i_rwsem);

	pin = nvmep_pin_find(inode);
	if (!pin)
		pin = nvmep_pin_create(inode);
	if (!IS_ERR(pin))
		pin->users++;
	return pin;
}

static void nvmep_pin_put(struct nvmep_pin *pin)
{
	struct inode *inode = pin->inode;

	lockdep_assert_held_write(&inode->i_rwsem);

	if (--pin->users)
		return;
	spin_lock(&nvmep_pins_lock);
	list_del(&pin->node);
	spin_unlock(&nvmep_pins_lock);
	inode->i_flags &= ~S_SWAPFILE;
	mapping_allow_writable(inode->i_mapping);
	kfree(pin);
}

/* --- references ----------------------------------------------------------- */

/* All but the pin. */
static void nvmep_file_free(struct nvmep_file *file)
{
	nvmep_locked_uncharge(file->user, file->pages);
	kvfree(file->extents);
	fput(file->file);
	nvmep_ctrl_put(file->ctrl);
	kfree(file);
	module_put(THIS_MODULE);
}

/* Tries again later if the inode is locked: others may keep it so. */
static void nvmep_file_unpin(struct nvmep_file *file)
{
	if (!inode_trylock(file->inode)) {
		queue_delayed_work(nvmep_file_wq, &file->release,
				   NVMEP_RELEASE_INTERVAL);
		return;
	}
	nvmep_pin_put(file->pin);
	inode_unlock(file->inode);
	nvmep_file_free(file);
}

static void nvmep_file_release_work(struct work_struct *work)
{
	nvmep_file_unpin(container_of(to_delayed_work(work), struct nvmep_file,
				      release));
}

/*
 * At once if the inode is not locked, so that a caller can write to the file
 * when its window is removed.
 */
static void nvmep_file_release(struct kref *ref)
{
	struct nvmep_file *file = container_of(ref, struct nvmep_file, ref);

	if (file->pin)
		nvmep_file_unpin(file);
	else
		nvmep_file_free(file);
}

/**
 * nvmep_file_put() - drop a reference
 * @file: without commands, or NULL
 *
 * Does not wait for the inode.
 */
void nvmep_file_put(struct nvmep_file *file)
{
	if (file)
		kref_put(&file->ref, nvmep_file_release);
}

/* --- extents -------------------------------------------------------------- */

/**
 * struct nvmep_walk - extents while they are found
 * @extents: array, ends with an entry behind the last block
 * @count: entries
 * @room: allocated
 */
struct nvmep_walk {
	struct nvmep_extent *extents;
	u32 count;
	u32 room;
};

static int nvmep_walk_grow(struct nvmep_walk *walk)
{
	u32 room = walk->room ? walk->room * 2 : NVMEP_FIRST_EXTENTS;
	struct nvmep_extent *extents;

	if (room > NVMEP_MAX_EXTENTS)
		return -EFBIG;
	extents = kvmalloc_array(room, sizeof(*extents), GFP_KERNEL_ACCOUNT);
	if (!extents)
		return -ENOMEM;
	memcpy(extents, walk->extents, walk->count * sizeof(*extents));
	kvfree(walk->extents);
	walk->extents = extents;
	walk->room = room;
	return 0;
}

static int nvmep_walk_add(struct nvmep_walk *walk, u64 first, u64 lba)
{
	int err;

	if (walk->count == walk->room) {
		err = nvmep_walk_grow(walk);
		if (err)
			return err;
	}
	walk->extents[walk->count++] = (struct nvmep_extent){
		.first = first,
		.lba = lba,
	};
	return 0;
}

static bool nvmep_walk_continues(const struct nvmep_walk *walk, u64 first,
				 u64 lba)
{
	const struct nvmep_extent *last;

	if (!walk->count)
		return false;
	last = &walk->extents[walk->count - 1];
	return lba - last->lba == first - last->first;
}

/* log2 of the blocks of the namespace in one of the file system. */
static u32 nvmep_file_block_shift(const struct nvmep_file *file)
{
	return file->inode->i_blkbits - file->shift;
}

/*
 * The LBA of a block of the file system: @block on the file.  bmap() takes the
 * inode lock: the caller holds no lock.
 */
static int nvmep_file_bmap(const struct nvmep_file *file, u64 block, u64 *lba)
{
	struct block_device *bdev = file->inode->i_sb->s_bdev;
	sector_t found = block;

	cond_resched();
	if (bmap(file->inode, &found))
		return -ENOTBLK;
	if (!found)
		return -ENODATA;
	if (found >= bdev_nr_sectors(bdev) >>
		     (file->inode->i_blkbits - SECTOR_SHIFT))
		return -EIO;
	*lba = file->base + ((u64)found << nvmep_file_block_shift(file));
	return 0;
}

static int nvmep_walk_block(struct nvmep_walk *walk,
			    const struct nvmep_file *file, u64 block)
{
	u64 first = block << nvmep_file_block_shift(file), lba;
	int err = nvmep_file_bmap(file, block, &lba);

	if (err || nvmep_walk_continues(walk, first, lba))
		return err;
	return nvmep_walk_add(walk, first, lba);
}

static u64 nvmep_file_first_block(const struct nvmep_file *file)
{
	return file->first >> nvmep_file_block_shift(file);
}

static u64 nvmep_file_last_block(const struct nvmep_file *file)
{
	return (file->first + file->count - 1) >> nvmep_file_block_shift(file);
}

/* The extents of the blocks of the window. */
static int nvmep_file_walk(const struct nvmep_file *file,
			   struct nvmep_walk *walk)
{
	u64 block = nvmep_file_first_block(file);
	u64 last = nvmep_file_last_block(file);
	int err = 0;

	for (; block <= last && !err; block++) {
		err = nvmep_walk_block(walk, file, block);
		if (fatal_signal_pending(current))
			err = -EINTR;
	}
	return err ? err :
		     nvmep_walk_add(walk, block << nvmep_file_block_shift(file),
				    0);
}

/* Behind the last block of the window on the block device. */
static u64 nvmep_walk_end(const struct nvmep_walk *walk)
{
	u64 end = 0;
	u32 i;

	for (i = 0; i + 1 < walk->count; i++)
		end = max(end, walk->extents[i].lba +
			       walk->extents[i + 1].first -
			       walk->extents[i].first);
	return end;
}

/* The extent of a block of the window. */
static const struct nvmep_extent *
nvmep_file_find(const struct nvmep_file *file, u64 block)
{
	u32 low = 0, high = file->extent_count - 1, middle;

	while (high - low > 1) {
		middle = low + (high - low) / 2;
		if (file->extents[middle].first <= block)
			low = middle;
		else
			high = middle;
	}
	return &file->extents[low];
}

/**
 * nvmep_file_map() - map the beginning of a range to the namespace
 * @file: the file
 * @block: first block of the range on the file, in the window
 * @blocks: in: of the range; out: those that are contiguous
 *
 * Return: the LBA.
 */
u64 nvmep_file_map(const struct nvmep_file *file, u64 block, u32 *blocks)
{
	const struct nvmep_extent *extent = nvmep_file_find(file, block);

	*blocks = min_t(u64, *blocks, extent[1].first - block);
	return extent->lba + (block - extent->first);
}

/**
 * nvmep_file_parts() - number of the extents of a range
 * @file: the file
 * @block: first block of the range on the file, in the window
 * @blocks: of the range
 *
 * Return: the number.
 */
u32 nvmep_file_parts(const struct nvmep_file *file, u64 block, u32 blocks)
{
	return nvmep_file_find(file, block + blocks - 1) -
	       nvmep_file_find(file, block) + 1;
}

/* --- attributes ----------------------------------------------------------- */

/*
 * Do the blocks hold the bytes, without a copy in the journal?  Under the inode
 * lock, which changes of the attributes take.
 */
static int nvmep_file_check_data(const struct file *filp)
{
	const struct inode *inode = file_inode(filp);
	nvmep_fileattr attributes = { };
	int err = vfs_fileattr_get(filp->f_path.dentry, &attributes);

	if (err)
		return err;
	if (attributes.flags & FS_INLINE_DATA_FL)
		return -ENODATA;
	/* data=journal has other operations. */
	if (attributes.flags & NVMEP_REFUSED_ATTRIBUTES || IS_DAX(inode) ||
	    !nvmep_aops_plain(inode->i_mapping->a_ops) ||
	    !IS_I_VERSION(inode))
		return -EMEDIUMTYPE;
	return 0;
}

/* --- changes of the file -------------------------------------------------- */

/*
 * Returns 0 if the blocks are where the extents say, or it is not needed any more;
 * -ESTALE if one is elsewhere; or another error, which may pass: bmap() also fails
 * without memory.
 */
static int nvmep_file_compare(const struct nvmep_file *file)
{
	u32 shift = nvmep_file_block_shift(file);
	u64 block = nvmep_file_first_block(file);
	u64 last = nvmep_file_last_block(file), lba;
	u32 one = 1;
	int err;

	for (; block <= last && !READ_ONCE(file->closing); block++) {
		err = nvmep_file_bmap(file, block, &lba);
		if (err)
			return err;
		if (lba != nvmep_file_map(file, block << shift, &one))
			return -ESTALE;
	}
	return 0;
}

/*
 * As a write() would, remove set-user-ID and capabilities, which the owner of the
 * file may have set.  Returns -ESTALE if the data does not go to the blocks any
 * more, and sets the version of what was looked at.
 */
static int nvmep_file_prepare(struct nvmep_file *file, u64 *version)
{
	const struct cred *own;
	int err = mnt_want_write_file(file->file);

	if (err)
		return err;
	own = override_creds(file->file->f_cred);
	inode_lock(file->inode);
	err = file_remove_privs(file->file);
	if (!err && nvmep_file_check_data(file->file))
		err = -ESTALE;
	*version = inode_query_iversion(file->inode);
	inode_unlock(file->inode);
	revert_creds(own);
	mnt_drop_write_file(file->file);
	return err;
}

/*
 * An attribute or the blocks have changed: commands wait until this has compared
 * the extents.  Without a result the next command repeats it.
 */
static void nvmep_file_verify_work(struct work_struct *work)
{
	struct nvmep_file *file = container_of(work, struct nvmep_file, verify);
	unsigned long began = jiffies;
	u64 version;
	int err = nvmep_file_prepare(file, &version);

	if (!err)
		err = nvmep_file_compare(file);
	spin_lock(&file->mediator->lock);
	if (!err)
		file->version = version;
	file->doubts = err ? file->doubts + 1 : 0;
	file->ended |= err == -ESTALE || file->doubts > NVMEP_VERIFY_DOUBTS;
	file->verify_after = jiffies + NVMEP_VERIFY_INTERVAL +
			     (jiffies - began) * (NVMEP_VERIFY_SHARE - 1);
	file->account->verifying = false;
	spin_unlock(&file->mediator->lock);
	nvmep_file_put(file);
}

static void nvmep_file_verify(struct nvmep_file *file)
{
	lockdep_assert_held(&file->mediator->lock);

	if (file->account->verifying ||
	    time_before(jiffies, file->verify_after))
		return;
	file->account->verifying = true;
	kref_get(&file->ref);
	queue_work(nvmep_file_wq, &file->verify);
}

/* --- commands ------------------------------------------------------------- */

/**
 * nvmep_file_read_only() - may commands not write to a file now?
 * @file: the file
 *
 * Return: whether that is so.
 */
bool nvmep_file_read_only(const struct nvmep_file *file)
{
	const struct inode *inode = file->inode;

	return sb_rdonly(inode->i_sb) || IS_IMMUTABLE(inode) ||
	       IS_APPEND(inode);
}

/* As kiocb_start_write(), but does not wait. */
static bool nvmep_file_start_write(const struct nvmep_file *file)
{
	struct super_block *sb = file->inode->i_sb;

	if (!sb_start_write_trylock(sb))
		return false;
	/* Another thread may end it. */
	__sb_writers_release(sb, SB_FREEZE_WRITE);
	return true;
}

static void nvmep_file_end_write(const struct nvmep_file *file)
{
	struct super_block *sb = file->inode->i_sb;

	__sb_writers_acquired(sb, SB_FREEZE_WRITE);
	sb_end_write(sb);
}

/**
 * nvmep_file_begin() - begin a command
 * @file: the file; mediator->lock is held
 * @write: it may write
 *
 * Return: 0; an NVMe status; or -EAGAIN while the inode is locked or the extents
 * are being compared.
 */
int nvmep_file_begin(struct nvmep_file *file, bool write)
{
	struct inode *inode = file->inode;
	bool current_version;

	lockdep_assert_held(&file->mediator->lock);

	if (file->ended)
		return NVME_SC_INVALID_NS | NVME_STATUS_DNR;
	if (!inode_trylock_shared(inode))
		return -EAGAIN;
	current_version = inode_peek_iversion(inode) == file->version;
	if (current_version)
		inode_dio_begin(inode);
	inode_unlock_shared(inode);
	if (!current_version) {
		nvmep_file_verify(file);
		return -EAGAIN;
	}
	if (!write || nvmep_file_start_write(file))
		return 0;
	inode_dio_end(inode);
	return NVME_SC_NS_NOT_READY;
}

/**
 * nvmep_file_end() - the controller does not access the blocks any more
 * @file: the file; mediator->lock is held
 * @write: as in nvmep_file_begin()
 */
void nvmep_file_end(struct nvmep_file *file, bool write)
{
	if (write)
		nvmep_file_end_write(file);
	inode_dio_end(file->inode);
}

/* --- cached pages --------------------------------------------------------- */

/**
 * nvmep_file_cached() - does the page cache have pages of a file?
 * @file: the file
 *
 * A page that is read from the disk is in the cache before the read begins: after
 * a write without a page, none has data of before it.
 *
 * Return: whether it does.
 */
bool nvmep_file_cached(const struct nvmep_file *file)
{
	return READ_ONCE(file->inode->i_mapping->nrpages);
}

static void nvmep_file_queue_invalidate(struct nvmep_file *file)
{
	kref_get(&file->ref);
	if (!queue_work(nvmep_cache_wq, &file->invalidate))
		nvmep_file_put(file);
}

/**
 * nvmep_file_wrote() - the controller may have written a command's blocks
 * @file: the file; mediator->lock is held
 * @command: a write
 *
 * Cached pages of them are invalidated, whatever becomes of the command.
 */
void nvmep_file_wrote(struct nvmep_file *file,
		      const struct nvmep_mediate_command *command)
{
	u64 first = command->slba << file->shift;
	u64 last = first + ((u64)command->blocks << file->shift) - 1;

	lockdep_assert_held(&file->mediator->lock);

	file->stale_first = min(file->stale_first, first);
	file->stale_last = max(file->stale_last, last);
	nvmep_file_queue_invalidate(file);
}

/**
 * nvmep_file_wait() - complete a command when cached pages have been invalidated
 * @file: the file; mediator->lock is held
 * @command: a write that has been released, after nvmep_file_wrote()
 */
void nvmep_file_wait(struct nvmep_file *file,
		     struct nvmep_tenant_command *command)
{
	lockdep_assert_held(&file->mediator->lock);

	list_move_tail(&command->node, &file->waiting);
	if (list_empty(&file->node))
		list_add_tail(&file->node, &file->mediator->cached);
}

/* Takes the commands that wait, and the bytes of all writes. */
static bool nvmep_file_take(struct nvmep_file *file, u64 *first, u64 *last)
{
	spin_lock(&file->mediator->lock);
	*first = file->stale_first;
	*last = file->stale_last;
	file->stale_first = U64_MAX;
	file->stale_last = 0;
	list_splice_init(&file->waiting, &file->running);
	spin_unlock(&file->mediator->lock);
	return *first != U64_MAX;
}

/* Only this file waits for its pages. */
static void nvmep_file_invalidate_work(struct work_struct *work)
{
	struct nvmep_file *file = container_of(work, struct nvmep_file,
					       invalidate);
	u64 first, last;
	int err;

	while (nvmep_file_take(file, &first, &last)) {
		err = invalidate_inode_pages2_range(file->inode->i_mapping,
						    first >> PAGE_SHIFT,
						    last >> PAGE_SHIFT);
		nvmep_mediator_finish_cached(file->mediator, file,
					     err ? NVME_SC_INTERNAL : 0);
	}
	nvmep_file_put(file);
}

/* --- addition of a window ------------------------------------------------- */

static bool nvmep_file_is_ext4(const struct file *filp)
{
	const struct inode *inode = file_inode(filp);

	return S_ISREG(inode->i_mode) && filp->f_mapping == inode->i_mapping &&
	       inode->i_sb->s_magic == EXT4_SUPER_MAGIC &&
	       !strcmp(inode->i_sb->s_type->name, "ext4");
}

/*
 * As fcntl(F_SETLEASE), which also keeps others from changing a file.  Without
 * the right to write any reader could lock a file.
 */
static int nvmep_file_check_rights(struct file *filp)
{
	if (!(filp->f_mode & FMODE_WRITE))
		return -EACCES;
	return file_owner_or_capable(filp) || capable(CAP_LEASE) ? 0 : -EACCES;
}

/* Under the inode lock. */
static int nvmep_file_check_attributes(const struct file *filp)
{
	const struct inode *inode = file_inode(filp);

	if (IS_IMMUTABLE(inode) || IS_APPEND(inode))
		return -EPERM;
	if (sb_rdonly(inode->i_sb))
		return -EROFS;
	return nvmep_file_check_data(filp);
}

static int nvmep_file_pin(struct nvmep_file *file)
{
	struct inode *inode = file->inode;
	struct nvmep_pin *pin;
	int err;

	if (down_write_killable(&inode->i_rwsem))
		return -EINTR;
	err = nvmep_file_check_attributes(file->file);
	if (!err)
		err = file_modified(file->file);
	if (!err) {
		pin = nvmep_pin_get(inode);
		err = PTR_ERR_OR_ZERO(pin);
		if (!err)
			file->pin = pin;
	}
	/*
	 * write() and fallocate() fail from now on.  A file may grow: then the
	 * file system writes to the block that the end is in.
	 */
	file->blocks = (u64)i_size_read(inode) >> inode->i_blkbits <<
		       nvmep_file_block_shift(file);
	inode_unlock(inode);
	return err;
}

/* Waits while the file system is frozen. */
static int nvmep_file_pin_writable(struct nvmep_file *file)
{
	int err = mnt_want_write_file(file->file);

	if (err)
		return err;
	err = nvmep_file_pin(file);
	mnt_drop_write_file(file->file);
	return err;
}

static struct nvmep_file *nvmep_file_alloc(struct nvmep_tenant *tenant,
					   struct file *filp)
{
	struct nvmep_file *file;

	file = kzalloc(sizeof(*file), GFP_KERNEL_ACCOUNT);
	if (!file)
		return NULL;
	__module_get(THIS_MODULE);
	kref_init(&file->ref);
	file->ctrl = nvmep_ctrl_get(tenant->qp->ctrl);
	file->mediator = tenant->mediator;
	file->tenant = tenant;
	file->account = tenant->account;
	file->verify_after = jiffies;
	file->stale_first = U64_MAX;
	file->file = get_file(filp);
	file->inode = file_inode(filp);
	INIT_LIST_HEAD(&file->node);
	INIT_LIST_HEAD(&file->waiting);
	INIT_LIST_HEAD(&file->running);
	INIT_WORK(&file->invalidate, nvmep_file_invalidate_work);
	INIT_WORK(&file->verify, nvmep_file_verify_work);
	INIT_DELAYED_WORK(&file->release, nvmep_file_release_work);
	return file;
}

/**
 * nvmep_file_open() - pin a file of ext4 for a window
 * @tenant: the tenant
 * @filp: regular file
 * @blocks: out: the namespace
 *
 * The extents are read by nvmep_file_read_extents().
 *
 * Return: the file with @blocks of it, or an ERR_PTR, see struct
 * nvme_peer_window_add.
 */
struct nvmep_file *nvmep_file_open(struct nvmep_tenant *tenant,
				   struct file *filp,
				   struct nvmep_blocks *blocks)
{
	struct nvmep_ctrl *ctrl = tenant->qp->ctrl;
	struct block_device *bdev;
	struct nvmep_file *file;
	int err;

	if (!nvmep_file_is_ext4(filp))
		return ERR_PTR(-ENOTBLK);
	err = nvmep_file_check_rights(filp);
	if (err)
		return ERR_PTR(err);
	bdev = file_inode(filp)->i_sb->s_bdev;
	err = ctrl->cpu_ops->blocks(ctrl, bdev, blocks);
	if (err)
		return ERR_PTR(err);
	file = nvmep_file_alloc(tenant, filp);
	if (!file)
		return ERR_PTR(-ENOMEM);
	file->shift = blocks->shift;
	file->base = bdev->bd_start_sect >> (blocks->shift - SECTOR_SHIFT);
	if (file->inode->i_blkbits < file->shift)
		err = -EINVAL;
	else
		err = nvmep_file_pin_writable(file);
	if (!err)
		return file;
	nvmep_file_put(file);
	return ERR_PTR(err);
}

/**
 * nvmep_file_read_extents() - find the blocks of a window
 * @file: pinned
 * @first: first block of the window on the file
 * @count: of the window, not 0; within the file
 *
 * First all is written to the disk, that the blocks belong to the file included:
 * the file system may stop at any time, and does not stop commands.
 *
 * Return: 0, or an error of struct nvme_peer_window_add.
 */
int nvmep_file_read_extents(struct nvmep_file *file, u64 first, u64 count)
{
	struct nvmep_walk walk = { };
	unsigned long pages;
	int err;

	file->first = first;
	file->count = count;
	err = vfs_fsync(file->file, 0);
	if (err)
		return err;
	file->version = inode_query_iversion(file->inode);
	err = nvmep_file_walk(file, &walk);
	file->extents = walk.extents;
	file->extent_count = walk.count;
	if (err)
		return err;
	file->end = nvmep_walk_end(&walk) - file->base;
	pages = DIV_ROUND_UP(walk.room * sizeof(*walk.extents), PAGE_SIZE);
	err = nvmep_locked_charge(&file->user, pages);
	if (!err)
		file->pages = pages;
	return err;
}
