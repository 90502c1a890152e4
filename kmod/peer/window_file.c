// SPDX-License-Identifier: GPL-2.0-only
/*
 * Regular files of ext4 and XFS: the pin of the inode, the extents, and what each
 * command of a window holds.  mediated.h has structures and locks.
 *
 * The blocks of a file must not move or be freed while commands access them.
 * S_SWAPFILE refuses what would do that: write(), truncate, fallocate, reflink,
 * the exchange of extents, unlink and rename; mapping_deny_writable() refuses
 * stores by mmap.  Direct writes in flight, of which XFS may change blocks at their
 * end, are waited for.  fallocate() and the exchange of extents check the flag
 * before they take the inode lock, so those that began earlier may come later.
 * Therefore a command follows the protocol of O_DIRECT: it takes the inode lock
 * shared, compares the version of the inode with that of the extents, and counts as
 * direct I/O, for which the file system waits before it changes blocks.  The exchange
 * of extents of XFS does not: there a command keeps the lock.
 *
 * Nothing waits for these works, and no lock of others is held over a wait for
 * the inode: the tenant may have processes that hold its lock for any time.  The
 * works share a queue with those of other users: few of a user sleep for inodes,
 * and the release tries again.
 */
#include <linux/bitops.h>
#include <linux/bits.h>
#include <linux/buffer_head.h>
#include <linux/capability.h>
#include <linux/cred.h>
#include <linux/delay.h>
#include <linux/fiemap.h>
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

/* Interval of the attempts to release an inode. */
#define NVMEP_RELEASE_INTERVAL	(HZ / 50 + 1)

/* The comparisons of a user take one part in so many of the time. */
#define NVMEP_VERIFY_SHARE	10
#define NVMEP_VERIFY_INTERVAL	(HZ / 100 + 1)
#define NVMEP_VERIFY_PAUSE	(60 * HZ)

/* One that takes longer does not keep others of the user from theirs. */
#define NVMEP_VERIFY_LONG	HZ
#define NVMEP_VERIFY_MOST	8U

/* Comparisons without a result after which the window ends. */
#define NVMEP_VERIFY_DOUBTS	100

/* After so long a work waits for an inode that others lock in turn. */
#define NVMEP_BLOCKED_INTERVAL	(HZ / 10 + 1)
#define NVMEP_ADMIT_US		2000

/* Interval of polls while waiting for works. */
#define NVMEP_POLL_US		500

/* Attempts to invalidate pages, each after others were written. */
#define NVMEP_INVALIDATE_TRIES	4

/* Attributes of files whose blocks do not hold their bytes. */
#define NVMEP_REFUSED_ATTRIBUTES \
	(FS_ENCRYPT_FL | FS_COMPR_FL | FS_VERITY_FL | FS_JOURNAL_DATA_FL | \
	 FS_DAX_FL)

/* --- pins ----------------------------------------------------------------- */

/**
 * struct nvmep_pin - an inode whose blocks stay where they are
 * @node: nvmep_pins_lock: in nvmep_pins
 * @file: const, reference: of the first window
 * @inode: const: of @file
 * @users: nvmep_pins_lock: windows; the first one comes with the lock of @inode
 * @releasing: nvmep_pins_lock: there was none, and @release has not seen others
 * @wrote: nvmep_pins_lock: commands have written since the time stamps were set
 * @release: sets the time stamps, and ends the pin unless it has users
 */
struct nvmep_pin {
	struct list_head node;
	struct file *file;
	struct inode *inode;
	unsigned int users;
	bool releasing;
	bool wrote;
	struct delayed_work release;
};

static DEFINE_SPINLOCK(nvmep_pins_lock);
static LIST_HEAD(nvmep_pins);

static struct nvmep_pin *nvmep_pin_find_locked(const struct inode *inode)
{
	struct nvmep_pin *pin;

	lockdep_assert_held(&nvmep_pins_lock);

	list_for_each_entry(pin, &nvmep_pins, node)
		if (pin->inode == inode)
			return pin;
	return NULL;
}

/* Another window on a file.  The lock of the inode keeps a pin from its end. */
static struct nvmep_pin *nvmep_pin_join(const struct inode *inode)
{
	struct nvmep_pin *pin;

	lockdep_assert_held_write(&inode->i_rwsem);

	spin_lock(&nvmep_pins_lock);
	pin = nvmep_pin_find_locked(inode);
	if (pin)
		pin->users++;
	spin_unlock(&nvmep_pins_lock);
	return pin;
}

/* Commands do not change them. */
static void nvmep_pin_set_times(struct nvmep_pin *pin)
{
	bool wrote;

	spin_lock(&nvmep_pins_lock);
	wrote = pin->wrote;
	pin->wrote = false;
	spin_unlock(&nvmep_pins_lock);
	if (wrote)
		file_update_time(pin->file);
}

/*
 * Returns whether the pin has ended: without new users.  The lock of the inode may
 * be shared: those that change other flags, not atomically, have it exclusively.
 */
static bool nvmep_pin_end(struct nvmep_pin *pin)
{
	struct inode *inode = pin->inode;
	bool ended;

	lockdep_assert_held(&inode->i_rwsem);

	spin_lock(&nvmep_pins_lock);
	ended = !pin->users;
	pin->releasing = ended;
	if (ended)
		list_del(&pin->node);
	spin_unlock(&nvmep_pins_lock);
	if (ended) {
		set_mask_bits(&inode->i_flags, S_SWAPFILE, 0);
		mapping_allow_writable(inode->i_mapping);
	}
	return ended;
}

static void nvmep_pin_free(struct nvmep_pin *pin)
{
	fput(pin->file);
	kfree(pin);
	module_put(THIS_MODULE);
}

/*
 * Returns false if the file system is frozen, or the inode is locked: not by
 * readers, with which this shares the lock.
 */
static bool nvmep_pin_try_release(struct nvmep_pin *pin)
{
	struct super_block *sb = pin->inode->i_sb;
	bool ended;

	if (!sb_start_write_trylock(sb))
		return false;
	nvmep_pin_set_times(pin);
	sb_end_write(sb);
	if (!inode_trylock_shared(pin->inode))
		return false;
	ended = nvmep_pin_end(pin);
	inode_unlock_shared(pin->inode);
	if (ended)
		nvmep_pin_free(pin);
	return true;
}

/* Once it has released the pin, or found users, only these queue it again. */
static void nvmep_pin_release_work(struct work_struct *work)
{
	struct nvmep_pin *pin = container_of(to_delayed_work(work),
					     struct nvmep_pin, release);

	if (!nvmep_pin_try_release(pin))
		queue_delayed_work(nvmep_file_wq, &pin->release,
				   NVMEP_RELEASE_INTERVAL);
}

static struct nvmep_pin *nvmep_pin_create(struct file *file)
{
	struct inode *inode = file_inode(file);
	struct nvmep_pin *pin;
	int err;

	lockdep_assert_held_write(&inode->i_rwsem);

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
	__module_get(THIS_MODULE);
	pin->file = get_file(file);
	pin->inode = inode;
	pin->users = 1;
	INIT_DELAYED_WORK(&pin->release, nvmep_pin_release_work);
	set_mask_bits(&inode->i_flags, 0, S_SWAPFILE);
	/* Writes check the flag with the lock of the inode. */
	inode_dio_wait(inode);
	spin_lock(&nvmep_pins_lock);
	list_add(&pin->node, &nvmep_pins);
	spin_unlock(&nvmep_pins_lock);
	return pin;
}

/* Does not wait: the work ends the pin. */
static void nvmep_pin_put(struct nvmep_pin *pin, bool wrote)
{
	bool release;

	spin_lock(&nvmep_pins_lock);
	pin->wrote |= wrote;
	release = !--pin->users && !pin->releasing;
	pin->releasing |= release;
	spin_unlock(&nvmep_pins_lock);
	if (release)
		queue_delayed_work(nvmep_file_wq, &pin->release, 0);
}

/* Has the inode a pin that no window needs? */
static bool nvmep_inode_releasing(const struct inode *inode)
{
	const struct nvmep_pin *pin;
	bool releasing;

	spin_lock(&nvmep_pins_lock);
	pin = nvmep_pin_find_locked(inode);
	releasing = pin && !pin->users;
	spin_unlock(&nvmep_pins_lock);
	return releasing;
}

/* --- references ----------------------------------------------------------- */

static bool nvmep_file_is_xfs(const struct inode *inode)
{
	return inode->i_sb->s_magic == XFS_SUPER_MAGIC;
}

static void nvmep_file_release(struct kref *ref)
{
	struct nvmep_file *file = container_of(ref, struct nvmep_file, ref);

	if (file->pin)
		nvmep_pin_put(file->pin, file->wrote);
	kvfree(file->extents);
	nvmep_locked_uncharge(file->user, file->pages);
	put_cred(file->cred);
	fput(file->file);
	nvmep_ctrl_put(file->ctrl);
	kfree(file);
	module_put(THIS_MODULE);
}

/**
 * nvmep_file_get() - get a reference
 * @file: of a window, or NULL
 *
 * Return: @file.
 */
struct nvmep_file *nvmep_file_get(struct nvmep_file *file)
{
	if (file)
		kref_get(&file->ref);
	return file;
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

/**
 * nvmep_file_put_removed() - drop the reference of a window
 * @file: of the window, or NULL
 *
 * Waits until processes can write to the file if this was its last window: for a
 * second at most, as they may keep the inode locked.
 */
void nvmep_file_put_removed(struct nvmep_file *file)
{
	unsigned long limit = jiffies + HZ;
	struct file *opened;

	if (!file)
		return;
	opened = get_file(file->file);
	while (kref_read(&file->ref) > 1 && time_before(jiffies, limit))
		usleep_range(NVMEP_POLL_US, 2 * NVMEP_POLL_US);
	nvmep_file_put(file);
	while (nvmep_inode_releasing(file_inode(opened)) &&
	       time_before(jiffies, limit))
		usleep_range(NVMEP_POLL_US, 2 * NVMEP_POLL_US);
	fput(opened);
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
 * The LBA of a block of the file system: @block on the file.  bmap() and fiemap()
 * take locks of the inode: the caller holds none.
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

/*
 * Are these blocks of the file system in one extent, of which the first one has
 * this LBA?  Without room for results, fiemap() counts extents.
 */
static bool nvmep_file_is_extent(const struct nvmep_file *file, u64 block,
				 u64 lba, u64 blocks)
{
	struct fiemap_extent_info extents = { };
	struct inode *inode = file->inode;
	u64 last;

	if (blocks == 1)
		return true;
	if (nvmep_file_bmap(file, block + blocks - 1, &last) ||
	    last - lba != (blocks - 1) << nvmep_file_block_shift(file))
		return false;
	return !inode->i_op->fiemap(inode, &extents, block << inode->i_blkbits,
				    blocks << inode->i_blkbits) &&
	       extents.fi_extents_mapped == 1;
}

/*
 * The blocks of the file system from @block on that are in its extent: at most
 * @most, and probably @guess, as in the extent before.  Doubles and halves.
 */
static u64 nvmep_file_extent_blocks(const struct nvmep_file *file, u64 block,
				    u64 lba, u64 most, u64 guess)
{
	u64 blocks = 1, more = min(guess, most), step = 1;

	while (nvmep_file_is_extent(file, block, lba, more)) {
		blocks = more;
		if (blocks == most)
			return blocks;
		more = min(blocks + step, most);
		step *= 2;
	}
	most = more - 1;
	while (blocks < most) {
		more = most - (most - blocks) / 2;
		if (nvmep_file_is_extent(file, block, lba, more))
			blocks = more;
		else
			most = more - 1;
	}
	return blocks;
}

static int nvmep_walk_extent(struct nvmep_walk *walk,
			     const struct nvmep_file *file, u64 block, u64 lba)
{
	u64 first = block << nvmep_file_block_shift(file);

	if (nvmep_walk_continues(walk, first, lba))
		return 0;
	return nvmep_walk_add(walk, first, lba);
}

static u64 nvmep_file_first_block(const struct nvmep_file *file)
{
	return file->first >> nvmep_file_block_shift(file);
}

/* Behind the last one of the window. */
static u64 nvmep_file_end_block(const struct nvmep_file *file)
{
	return ((file->first + file->count - 1) >>
		nvmep_file_block_shift(file)) + 1;
}

/* The extents of the blocks of the window. */
static int nvmep_file_walk(const struct nvmep_file *file,
			   struct nvmep_walk *walk)
{
	u64 block = nvmep_file_first_block(file), blocks = 1;
	u64 end = nvmep_file_end_block(file), lba;
	int err;

	for (; block < end; block += blocks) {
		err = nvmep_file_bmap(file, block, &lba);
		if (!err)
			err = nvmep_walk_extent(walk, file, block, lba);
		if (err)
			return err;
		blocks = nvmep_file_extent_blocks(file, block, lba, end - block,
						  blocks);
		if (fatal_signal_pending(current))
			return -EINTR;
	}
	return nvmep_walk_add(walk, block << nvmep_file_block_shift(file), 0);
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
	if (attributes.flags & NVMEP_REFUSED_ATTRIBUTES || IS_DAX(inode) ||
	    attributes.fsx_xflags & FS_XFLAG_REALTIME || !IS_I_VERSION(inode))
		return -EMEDIUMTYPE;
	/* data=journal has other operations. */
	if (!nvmep_file_is_xfs(inode) &&
	    !nvmep_aops_plain(inode->i_mapping->a_ops))
		return -EMEDIUMTYPE;
	return 0;
}

/* --- changes of the file -------------------------------------------------- */

/*
 * Is a block of the file system where its extent says, and which of the next ones
 * are: @blocks, in: as many as before.  Returns 0; -ESTALE if it is elsewhere; or
 * another error, which may pass: bmap() fails for a hole, and without memory.
 */
static int nvmep_file_compare_extent(const struct nvmep_file *file, u64 block,
				     u64 *blocks)
{
	u32 shift = nvmep_file_block_shift(file);
	u64 most = nvmep_file_end_block(file) - block, lba;
	u32 same = min_t(u64, most << shift, U32_MAX >> shift << shift);
	int err = nvmep_file_bmap(file, block, &lba);

	if (err)
		return err;
	if (lba != nvmep_file_map(file, block << shift, &same))
		return -ESTALE;
	*blocks = nvmep_file_extent_blocks(file, block, lba, same >> shift,
					   *blocks);
	return 0;
}

/* All of them, first the one in doubt.  Ends early if it is not needed any more. */
static int nvmep_file_compare(struct nvmep_file *file)
{
	u64 block = nvmep_file_first_block(file), blocks = 1;
	u64 end = nvmep_file_end_block(file);
	int err = nvmep_file_compare_extent(file, max(block, file->doubtful),
					    &blocks);

	while (!err && block < end && !READ_ONCE(file->closing)) {
		err = nvmep_file_compare_extent(file, block, &blocks);
		if (err)
			file->doubtful = block;
		else
			block += blocks;
	}
	return err;
}

/*
 * As a write() would, remove set-user-ID and capabilities, which the owner of the
 * file may have set.  Returns false if that is not possible now: then commands
 * must not write.
 */
static bool nvmep_file_remove_privileges(struct nvmep_file *file)
{
	const struct cred *own = override_creds(file->cred);
	int err;

	lockdep_assert_held_write(&file->inode->i_rwsem);

	err = file_remove_privs(file->file);
	revert_creds(own);
	return !err;
}

/**
 * struct nvmep_verified - what a comparison has seen
 * @version: of the inode, before it
 * @writable: the file has no privileges that a write removes
 */
struct nvmep_verified {
	u64 version;
	bool writable;
};

/*
 * Does the data still go to the blocks?  Returns -ESTALE if not, or another error,
 * which may pass.  What others have written to pages, as the file system does
 * where the file ends, is on the disk then: commands do not see pages.
 */
static int nvmep_file_prepare(struct nvmep_file *file,
			      struct nvmep_verified *verified)
{
	struct super_block *sb = file->inode->i_sb;
	bool write = sb_start_write_trylock(sb);
	int err;

	inode_lock(file->inode);
	verified->writable = write && nvmep_file_remove_privileges(file);
	err = nvmep_file_check_data(file->file);
	verified->version = inode_query_iversion(file->inode);
	inode_unlock(file->inode);
	if (write)
		sb_end_write(sb);
	if (err == -EMEDIUMTYPE)
		return -ESTALE;
	return err ? err : filemap_write_and_wait(file->inode->i_mapping);
}

/* Ends the window if the blocks have changed, or too many comparisons failed. */
static void nvmep_file_verified(struct nvmep_file *file,
				const struct nvmep_verified *verified, int err)
{
	spin_lock(&file->mediator->lock);
	if (!err) {
		file->version = verified->version;
		if (verified->writable)
			file->write_version = verified->version;
	}
	file->doubts = err ? file->doubts + 1 : 0;
	if (err == -ESTALE || file->doubts > NVMEP_VERIFY_DOUBTS)
		WRITE_ONCE(file->ended, true);
	spin_unlock(&file->mediator->lock);
}

/*
 * Others may lock the inode in turn, so that an attempt to lock it never succeeds:
 * waits for its turn, and keeps the lock while the mediator takes commands.
 */
static void nvmep_file_admit(struct nvmep_file *file)
{
	inode_lock_shared(file->inode);
	spin_lock(&file->mediator->lock);
	file->admitted = true;
	spin_unlock(&file->mediator->lock);
	usleep_range(NVMEP_ADMIT_US, 2 * NVMEP_ADMIT_US);
	spin_lock(&file->mediator->lock);
	file->admitted = false;
	spin_unlock(&file->mediator->lock);
	/* Those that keep the lock: the controller or a reset ends them. */
	while (READ_ONCE(file->admitted_commands))
		usleep_range(NVMEP_POLL_US, 2 * NVMEP_POLL_US);
	inode_unlock_shared(file->inode);
}

static bool nvmep_file_is_current(const struct nvmep_file *file)
{
	u64 version = inode_peek_iversion(file->inode);
	bool current_version;

	spin_lock(&file->mediator->lock);
	/* The version for reads is not newer, and versions only increase. */
	current_version = version == file->write_version;
	spin_unlock(&file->mediator->lock);
	return current_version;
}

/* Sleeps for the inode, which processes may keep locked for any time. */
static void nvmep_file_verify(struct nvmep_file *file)
{
	struct nvmep_verified verified = { };
	int err;

	if (!nvmep_file_is_current(file)) {
		err = nvmep_file_prepare(file, &verified);
		if (!err)
			err = nvmep_file_compare(file);
		nvmep_file_verified(file, &verified, err);
	}
	if (READ_ONCE(file->blocked))
		nvmep_file_admit(file);
}

static void nvmep_file_verify_work(struct work_struct *work)
{
	struct nvmep_file *file = container_of(work, struct nvmep_file, verify);
	struct nvmep_account *account = file->account;
	unsigned long began = jiffies, pause;

	nvmep_file_verify(file);
	spin_lock(&file->mediator->lock);
	pause = NVMEP_VERIFY_INTERVAL +
		(jiffies - began) * (NVMEP_VERIFY_SHARE - 1);
	/* It may have slept for most of the time. */
	account->verify_after = jiffies + min_t(unsigned long, pause,
						NVMEP_VERIFY_PAUSE);
	account->verifying--;
	file->verifying = false;
	spin_unlock(&file->mediator->lock);
	nvmep_file_put(file);
}

/* One at a time for each tenant, which may keep it from its end. */
static bool nvmep_tenant_verifies(const struct nvmep_tenant *tenant)
{
	const struct nvmep_file *file;
	u32 slot;

	for (slot = 1; slot <= tenant->max_windows; slot++) {
		file = tenant->windows[slot].pinned;
		if (file && file->verifying)
			return true;
	}
	return false;
}

/*
 * An attribute or the blocks have changed, or the inode is locked again and again:
 * commands wait until a work has compared the extents.
 */
static void nvmep_file_queue_verify(struct nvmep_file *file)
{
	struct nvmep_account *account = file->account;

	lockdep_assert_held(&file->mediator->lock);

	if (time_before(jiffies, account->verify_after) ||
	    account->verifying == NVMEP_VERIFY_MOST ||
	    nvmep_tenant_verifies(file->tenant))
		return;
	account->verify_after = jiffies + NVMEP_VERIFY_LONG;
	account->verifying++;
	file->verifying = true;
	kref_get(&file->ref);
	queue_work(nvmep_file_wq, &file->verify);
}

/* --- commands ------------------------------------------------------------- */

/*
 * May the page cache write blocks of the window?  A file may grow, and XFS then
 * clears the bytes behind its end in a folio.  Before Linux 6.6 it writes back all
 * blocks of a folio, over what commands have written.
 */
static bool nvmep_file_tail_is_cached(const struct nvmep_file *file)
{
	const struct inode *inode = file->inode;
	u64 unit = max_t(u64, PAGE_SIZE, i_blocksize(inode));

	return !NVMEP_IOMAP_WRITES_BLOCKS && nvmep_file_is_xfs(inode) &&
	       (i_size_read(inode) != file->size || file->size & (unit - 1));
}

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
	       IS_APPEND(inode) || nvmep_file_tail_is_cached(file);
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

/* Returns false if it cannot be had now. */
static bool nvmep_file_lock(struct nvmep_file *file)
{
	if (file->admitted || inode_trylock_shared(file->inode)) {
		WRITE_ONCE(file->blocked, false);
		return true;
	}
	if (!file->blocked) {
		WRITE_ONCE(file->blocked, true);
		file->blocked_after = jiffies + NVMEP_BLOCKED_INTERVAL;
	} else if (time_after(jiffies, file->blocked_after)) {
		nvmep_file_queue_verify(file);
	}
	return false;
}

static void nvmep_file_unlock(struct nvmep_file *file)
{
	if (!file->admitted)
		inode_unlock_shared(file->inode);
}

/* Until nvmep_file_end_io(), which another thread may call. */
static void nvmep_file_keep_lock(struct nvmep_file *file)
{
	if (file->admitted)
		WRITE_ONCE(file->admitted_commands,
			   file->admitted_commands + 1);
	else
		rwsem_release(&file->inode->i_rwsem.dep_map, _RET_IP_);
}

/* Whose lock it is does not matter: one less keeps it. */
static void nvmep_file_drop_lock(struct nvmep_file *file)
{
	if (file->admitted_commands) {
		WRITE_ONCE(file->admitted_commands,
			   file->admitted_commands - 1);
		return;
	}
	rwsem_acquire_read(&file->inode->i_rwsem.dep_map, 0, 1, _RET_IP_);
	inode_unlock_shared(file->inode);
}

/* With the lock of the inode: are the blocks where the extents say? */
static int nvmep_file_check_current(struct nvmep_file *file, bool write)
{
	u64 version = inode_peek_iversion(file->inode);

	if (write && nvmep_file_read_only(file))
		return nvmep_refuse(NVME_SC_READ_ONLY);
	if (version == (write ? file->write_version : file->version))
		return 0;
	nvmep_file_queue_verify(file);
	return -EAGAIN;
}

/* Counts as direct I/O. */
static int nvmep_file_begin_io(struct nvmep_file *file, bool write)
{
	int err;

	if (!nvmep_file_lock(file))
		return -EAGAIN;
	err = nvmep_file_check_current(file, write);
	if (!err)
		inode_dio_begin(file->inode);
	if (!err && nvmep_file_is_xfs(file->inode))
		nvmep_file_keep_lock(file);
	else
		nvmep_file_unlock(file);
	return err;
}

static void nvmep_file_end_io(struct nvmep_file *file)
{
	inode_dio_end(file->inode);
	if (nvmep_file_is_xfs(file->inode))
		nvmep_file_drop_lock(file);
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
	int err;

	lockdep_assert_held(&file->mediator->lock);

	if (file->ended)
		return nvmep_refuse(NVME_SC_INVALID_NS);
	if (write && !nvmep_file_start_write(file))
		return NVME_SC_NS_NOT_READY;
	err = nvmep_file_begin_io(file, write);
	if (err && write)
		nvmep_file_end_write(file);
	file->wrote |= write && !err;
	return err;
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
	nvmep_file_end_io(file);
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

	list_add_tail(&command->node, &file->waiting);
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

/*
 * A page in which the file system has cleared the bytes behind the end of the file
 * is dirty, and may have blocks of the window: the others are written first.
 */
static int nvmep_file_invalidate(const struct nvmep_file *file, u64 first,
				 u64 last)
{
	struct address_space *mapping = file->inode->i_mapping;
	unsigned int tries;
	int err = -EBUSY;

	for (tries = 0; err == -EBUSY && tries < NVMEP_INVALIDATE_TRIES;
	     tries++) {
		if (tries)
			filemap_write_and_wait_range(mapping, first, last);
		err = invalidate_inode_pages2_range(mapping,
						    first >> PAGE_SHIFT,
						    last >> PAGE_SHIFT);
	}
	return err;
}

/* Only this file waits for its pages. */
static void nvmep_file_invalidate_work(struct work_struct *work)
{
	struct nvmep_file *file = container_of(work, struct nvmep_file,
					       invalidate);
	u64 first, last;
	int err;

	while (nvmep_file_take(file, &first, &last)) {
		err = nvmep_file_invalidate(file, first, last);
		nvmep_mediator_finish_cached(file->mediator, file,
					     err ? NVME_SC_INTERNAL : 0);
	}
	nvmep_file_put(file);
}

/* --- addition of a window ------------------------------------------------- */

/*
 * They refuse to move blocks of an inode with S_SWAPFILE, change blocks with the lock
 * of the inode only, and then change its version.
 */
static bool nvmep_file_is_supported(const struct file *filp)
{
	const struct inode *inode = file_inode(filp);
	const char *name = inode->i_sb->s_type->name;

	/* Without swap space the flag is not looked at. */
	if (!IS_ENABLED(CONFIG_SWAP) || !S_ISREG(inode->i_mode) ||
	    filp->f_mapping != inode->i_mapping)
		return false;
	switch (inode->i_sb->s_magic) {
	case EXT4_SUPER_MAGIC:
		return !strcmp(name, "ext4");
	case XFS_SUPER_MAGIC:
		return !strcmp(name, "xfs");
	default:
		return false;
	}
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

/*
 * As a write() would, a window removes privileges.  Only the first one changes the
 * time stamps, which others are compared for.
 */
static struct nvmep_pin *nvmep_pin_get(struct file *filp, bool write)
{
	struct nvmep_pin *pin;

	if (write && file_remove_privs(filp))
		return ERR_PTR(-EIO);
	pin = nvmep_pin_join(file_inode(filp));
	if (pin)
		return pin;
	if (write && file_update_time(filp))
		return ERR_PTR(-EIO);
	return nvmep_pin_create(filp);
}

/*
 * write() and fallocate() fail from now on.  A file may grow: then the file system
 * writes to the block that the end is in.
 */
static int nvmep_file_pin_locked(struct nvmep_file *file, bool write)
{
	struct inode *inode = file->inode;
	struct nvmep_pin *pin;
	int err = nvmep_file_check_attributes(file->file);

	if (err)
		return err;
	pin = nvmep_pin_get(file->file, write);
	if (IS_ERR(pin))
		return PTR_ERR(pin);
	file->pin = pin;
	file->size = i_size_read(inode);
	file->blocks = (u64)file->size >> inode->i_blkbits <<
		       nvmep_file_block_shift(file);
	return 0;
}

static int nvmep_file_pin(struct nvmep_file *file, bool write)
{
	int err;

	if (down_write_killable(&file->inode->i_rwsem))
		return -EINTR;
	err = nvmep_file_pin_locked(file, write);
	inode_unlock(file->inode);
	return err;
}

/* Waits while the file system is frozen. */
static int nvmep_file_pin_mounted(struct nvmep_file *file, bool write)
{
	int err = mnt_want_write_file(file->file);

	if (err)
		return err;
	err = nvmep_file_pin(file, write);
	mnt_drop_write_file(file->file);
	return err;
}

static struct nvmep_file *nvmep_file_alloc(struct nvmep_ctrl *ctrl,
					   struct file *filp)
{
	struct nvmep_file *file;

	file = kzalloc(sizeof(*file), GFP_KERNEL_ACCOUNT);
	if (!file)
		return NULL;
	__module_get(THIS_MODULE);
	kref_init(&file->ref);
	file->ctrl = nvmep_ctrl_get(ctrl);
	file->stale_first = U64_MAX;
	file->cred = get_current_cred();
	file->file = get_file(filp);
	file->inode = file_inode(filp);
	INIT_LIST_HEAD(&file->node);
	INIT_LIST_HEAD(&file->waiting);
	INIT_LIST_HEAD(&file->running);
	INIT_WORK(&file->invalidate, nvmep_file_invalidate_work);
	INIT_WORK(&file->verify, nvmep_file_verify_work);
	return file;
}

/* Where the file system is on the namespace. */
static int nvmep_file_place(struct nvmep_file *file,
			    const struct block_device *bdev, u8 shift)
{
	u64 start = bdev->bd_start_sect;
	u32 sectors = shift - SECTOR_SHIFT;

	file->shift = shift;
	file->base = start >> sectors;
	return file->base << sectors == start &&
	       file->inode->i_blkbits >= shift ? 0 : -EINVAL;
}

/**
 * nvmep_file_open() - pin a file of ext4 or XFS
 * @ctrl: controller of the disk that it is on
 * @filp: regular file
 * @write: for commands that may write
 * @blocks: out: the namespace
 *
 * The extents are read by nvmep_file_read_extents().
 *
 * Return: the file with @blocks of it, or an ERR_PTR, see struct
 * nvme_peer_window_add.
 */
struct nvmep_file *nvmep_file_open(struct nvmep_ctrl *ctrl, struct file *filp,
				   bool write, struct nvmep_blocks *blocks)
{
	struct block_device *bdev;
	struct nvmep_file *file;
	int err;

	if (!nvmep_file_is_supported(filp))
		return ERR_PTR(-ENOTBLK);
	err = nvmep_file_check_rights(filp);
	if (err)
		return ERR_PTR(err);
	bdev = file_inode(filp)->i_sb->s_bdev;
	err = ctrl->cpu_ops->blocks(ctrl, bdev, blocks);
	if (err)
		return ERR_PTR(err);
	file = nvmep_file_alloc(ctrl, filp);
	if (!file)
		return ERR_PTR(-ENOMEM);
	err = nvmep_file_place(file, bdev, blocks->shift);
	if (!err)
		err = nvmep_file_pin_mounted(file, write);
	if (!err)
		return file;
	nvmep_file_put(file);
	return ERR_PTR(err);
}

/**
 * nvmep_file_add_window() - allow commands of a window
 * @file: pinned
 * @tenant: has the window
 */
void nvmep_file_add_window(struct nvmep_file *file, struct nvmep_tenant *tenant)
{
	file->mediator = tenant->mediator;
	file->tenant = tenant;
	file->account = tenant->account;
}

/**
 * nvmep_file_read_extents() - find the blocks of a range
 * @file: pinned
 * @first: first block of the range on the file
 * @count: of the range, not 0; within the file
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
	if (vfs_fsync(file->file, 0))
		return -EIO;
	file->version = inode_query_iversion(file->inode);
	file->write_version = file->version;
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

/* --- files without a window ------------------------------------------------ */

/**
 * nvmep_file_check_extents() - are the blocks where the extents say?
 * @file: without a window; the caller serialises
 *
 * Waits for a change that is under way.
 *
 * Return: 0; -ESTALE if they are not, or if that is not known; -EINTR after a fatal
 * signal.
 */
int nvmep_file_check_extents(struct nvmep_file *file)
{
	struct inode *inode = file->inode;
	const struct cred *own;
	u64 version;
	int err;

	if (down_read_killable(&inode->i_rwsem))
		return -EINTR;
	version = inode_query_iversion(inode);
	/* The reader may have been given the extents only. */
	own = override_creds(file->cred);
	err = nvmep_file_check_data(file->file);
	revert_creds(own);
	inode_unlock_shared(inode);
	if (!err && version == file->version)
		return 0;
	if (!err)
		err = filemap_write_and_wait(inode->i_mapping);
	if (!err)
		err = nvmep_file_compare(file);
	if (!err)
		file->version = version;
	return err ? -ESTALE : 0;
}
