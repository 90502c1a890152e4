// SPDX-License-Identifier: GPL-2.0-only
/*
 * Tenants: windows and buffers of mediated queue pairs, their creation and end.
 * mediated.h has structures and locks.
 *
 * Rights come from descriptors: the caller opened the block device, and got the
 * dma-buf.  They belong to the queue pair file.
 */
#include <linux/blkdev.h>
#include <linux/capability.h>
#include <linux/delay.h>
#include <linux/dma-buf.h>
#include <linux/file.h>
#include <linux/fs.h>
#include <linux/mm.h>
#include <linux/nospec.h>
#include <linux/slab.h>

#include "core/ctrl.h"
#include "host_pages.h"
#include "import.h"
#include "ioctl.h"
#include "mediated.h"
#include "qp.h"
#include "route.h"

#define NVMEP_DEFAULT_DEPTH		32
#define NVMEP_DEFAULT_WEIGHT		1
#define NVMEP_DEFAULT_WINDOWS		16
#define NVMEP_DEFAULT_BUFFERS		64

#define NVMEP_MIN_TIMEOUT_MS		100
#define NVMEP_MAX_TIMEOUT_MS		120000

#define NVMEP_LAST_EPOCH		0xffff

/* Interval of polls while waiting for commands, microseconds. */
#define NVMEP_WAIT_POLL_US		500

/* How long the removal of a window waits for cached pages. */
#define NVMEP_CACHE_WAIT_MS		1000

/* --- windows -------------------------------------------------------------- */

static u64 nvmep_window_bdev_blocks(const struct nvmep_window *window)
{
	return bdev_nr_sectors(window->bdev) >>
	       (window->blocks.shift - SECTOR_SHIFT);
}

/* None while a part of the blocks is behind the end of the block device. */
static u64 nvmep_window_file_blocks(const struct nvmep_window *window)
{
	return window->pinned->end <= nvmep_window_bdev_blocks(window) ?
	       window->pinned->blocks : 0;
}

static u64 nvmep_window_device_blocks(const struct nvmep_window *window)
{
	if (!window->pinned)
		return nvmep_window_bdev_blocks(window);
	return READ_ONCE(window->pinned->ended) ?
	       0 : nvmep_window_file_blocks(window);
}

static bool nvmep_window_bdev_read_only(const struct nvmep_window *window)
{
	return bdev_read_only(window->bdev) ||
	       IS_SWAPFILE(window->file->f_mapping->host);
}

static bool nvmep_window_file_read_only(const struct nvmep_window *window)
{
	return bdev_read_only(window->bdev) ||
	       nvmep_file_read_only(window->pinned);
}

static bool nvmep_window_read_only(const struct nvmep_window *window)
{
	return window->pinned ? nvmep_window_file_read_only(window) :
				nvmep_window_bdev_read_only(window);
}

/**
 * nvmep_window_refresh() - read what the block device or file of a window is now
 * @tenant: the tenant; mediator->lock is held
 * @slot: of the window
 *
 * Once a turn, after the tail of the ring was read: a change applies to each
 * command that is submitted after it.  Those that were submitted before may still
 * use what was, like those that are on the controller.
 */
void nvmep_window_refresh(struct nvmep_tenant *tenant, u32 slot)
{
	struct nvmep_mediate_window *right = &tenant->rights.windows[slot];
	struct nvmep_window *window = &tenant->windows[slot];

	lockdep_assert_held(&tenant->mediator->lock);

	window->read_turn = tenant->turns;
	if (window->pinned) {
		right->device_blocks = nvmep_window_file_blocks(window);
		right->device_read_only = nvmep_window_file_read_only(window);
	} else if (window->file) {
		right->device_blocks = nvmep_window_bdev_blocks(window);
		right->device_read_only = nvmep_window_bdev_read_only(window);
	}
}

/* Under tenant->mutex, which guards these fields of the page. */
static void nvmep_window_write_status(struct nvmep_tenant *tenant, u32 slot,
				      bool present)
{
	struct nvme_peer_status *page = nvmep_qp_status(tenant->qp);
	struct nvme_peer_status_window *windows =
		(void *)page + NVME_PEER_STATUS_WINDOWS;

	lockdep_assert_held(&tenant->mutex);

	WRITE_ONCE(windows[slot].epoch,
		   cpu_to_le32(tenant->windows[slot].epoch));
	WRITE_ONCE(windows[slot].state, cpu_to_le32(present));
	dma_wmb();
	WRITE_ONCE(page->window_seq,
		   cpu_to_le32(le32_to_cpu(page->window_seq) + 1));
}

static struct nvmep_flushes *
nvmep_flushes_find(const struct nvmep_mediator *mediator, u32 nsid)
{
	struct nvmep_flushes *flushes;

	lockdep_assert_held(&mediator->lock);

	list_for_each_entry(flushes, &mediator->flushes, node)
		if (flushes->nsid == nsid)
			return flushes;
	return NULL;
}

static struct nvmep_flushes *nvmep_flushes_get(struct nvmep_mediator *mediator,
					       u32 nsid)
{
	struct nvmep_flushes *fresh, *flushes;

	fresh = kzalloc(sizeof(*fresh), GFP_KERNEL_ACCOUNT);
	if (!fresh)
		return NULL;
	fresh->nsid = nsid;
	INIT_LIST_HEAD(&fresh->issued);
	INIT_LIST_HEAD(&fresh->waiting);
	spin_lock(&mediator->lock);
	flushes = nvmep_flushes_find(mediator, nsid);
	if (!flushes) {
		flushes = fresh;
		fresh = NULL;
		list_add_tail(&flushes->node, &mediator->flushes);
	}
	flushes->users++;
	spin_unlock(&mediator->lock);
	kfree(fresh);
	return flushes;
}

static void nvmep_flushes_put(struct nvmep_mediator *mediator,
			      struct nvmep_flushes *flushes)
{
	bool last;

	spin_lock(&mediator->lock);
	last = !--flushes->users;
	if (last)
		list_del(&flushes->node);
	spin_unlock(&mediator->lock);
	if (last)
		kfree(flushes);
}

static void nvmep_window_put(struct nvmep_tenant *tenant,
			     struct nvmep_window *window)
{
	if (window->flushes)
		nvmep_flushes_put(tenant->mediator, window->flushes);
	nvmep_file_put(window->pinned);
	if (window->file)
		fput(window->file);
}

/* The range on the namespace, by subtraction: the caller chose the values. */
static int nvmep_window_set_range(const struct nvmep_window *window,
				  struct nvmep_mediate_window *right,
				  const struct nvme_peer_window_add *cmd)
{
	u64 blocks = nvmep_window_device_blocks(window);
	u64 start = window->bdev->bd_start_sect;
	u32 shift = window->blocks.shift - SECTOR_SHIFT;

	if (start & ((1ULL << shift) - 1))
		return -EINVAL;
	if (cmd->first > blocks || cmd->blocks > blocks - cmd->first)
		return -ERANGE;
	/* On a file LBAs are those of the file until the extents are used. */
	right->base = window->pinned ? 0 : start >> shift;
	right->first = cmd->first;
	right->blocks = cmd->blocks ? cmd->blocks : blocks - cmd->first;
	return right->blocks ? 0 : -EINVAL;
}

/* On error the caller drops the pin. */
static int nvmep_window_open_file(struct nvmep_tenant *tenant,
				  struct nvmep_window *window,
				  struct nvmep_mediate_window *right,
				  const struct nvme_peer_window_add *cmd)
{
	struct nvmep_file *file;
	int err;

	file = nvmep_file_open(tenant->qp->ctrl, window->file, true,
			       &window->blocks);
	if (IS_ERR(file))
		return PTR_ERR(file);
	nvmep_file_add_window(file, tenant);
	window->pinned = file;
	window->bdev = file->inode->i_sb->s_bdev;
	right->read = window->file->f_mode & FMODE_READ;
	right->write = true;
	right->nsid = window->blocks.nsid;
	right->shift = window->blocks.shift;
	err = nvmep_window_set_range(window, right, cmd);
	return err ? err : nvmep_file_read_extents(file, right->first,
						   right->blocks);
}

/* The rights are those of the open file, as with read() and write(). */
static int nvmep_window_open(struct nvmep_tenant *tenant,
			     struct nvmep_window *window,
			     struct nvmep_mediate_window *right,
			     const struct nvme_peer_window_add *cmd)
{
	struct nvmep_ctrl *ctrl = tenant->qp->ctrl;
	struct inode *inode = window->file->f_mapping->host;
	int err;

	if (S_ISREG(inode->i_mode))
		return nvmep_window_open_file(tenant, window, right, cmd);
	if (!S_ISBLK(inode->i_mode))
		return -ENOTBLK;
	if (IS_SWAPFILE(inode))
		return -ETXTBSY;
	if (!(window->file->f_mode & (FMODE_READ | FMODE_WRITE)))
		return -EACCES;
	right->read = window->file->f_mode & FMODE_READ;
	right->write = window->file->f_mode & FMODE_WRITE;
	window->bdev = I_BDEV(inode);
	err = ctrl->cpu_ops->blocks(ctrl, window->bdev, &window->blocks);
	if (err)
		return err;
	right->nsid = window->blocks.nsid;
	right->shift = window->blocks.shift;
	return nvmep_window_set_range(window, right, cmd);
}

/* May windows and buffers be added? */
static int nvmep_tenant_may_add(const struct nvmep_tenant *tenant)
{
	lockdep_assert_held(&tenant->mutex);

	if (tenant->ended)
		return -ESHUTDOWN;
	return tenant->sealed ? -EPERM : 0;
}

/* A slot whose epochs are used up stays empty: an ID is never reused. */
static u32 nvmep_tenant_find_window_slot(const struct nvmep_tenant *tenant)
{
	u32 slot;

	for (slot = 1; slot <= tenant->max_windows; slot++)
		if (!tenant->windows[slot].file &&
		    tenant->windows[slot].epoch <= NVMEP_LAST_EPOCH)
			return slot;
	return 0;
}

static int nvmep_tenant_publish_window(struct nvmep_tenant *tenant,
				       const struct nvmep_window *window,
				       struct nvmep_mediate_window *right)
{
	struct nvmep_mediator *mediator = tenant->mediator;
	int err = nvmep_tenant_may_add(tenant);
	u32 slot, epoch;

	if (err)
		return err;
	slot = nvmep_tenant_find_window_slot(tenant);
	if (!slot)
		return -EDQUOT;
	epoch = tenant->windows[slot].epoch;
	right->id = NVMEP_WINDOW_ID(slot, epoch);
	spin_lock(&mediator->lock);
	tenant->windows[slot] = *window;
	tenant->windows[slot].epoch = epoch;
	tenant->rights.windows[slot] = *right;
	spin_unlock(&mediator->lock);
	nvmep_window_write_status(tenant, slot, true);
	return 0;
}

static u32 nvmep_rights(bool read, bool write)
{
	return (read ? NVME_PEER_RIGHT_READ : 0) |
	       (write ? NVME_PEER_RIGHT_WRITE : 0);
}

static int nvmep_tenant_add_opened(struct nvmep_tenant *tenant,
				   struct nvmep_window *window,
				   struct nvme_peer_window_add *cmd)
{
	struct nvmep_mediate_window right = { };
	int err;

	/* Without a lock: a file may be locked for any time. */
	err = nvmep_window_open(tenant, window, &right, cmd);
	if (err)
		return err;
	window->flushes = nvmep_flushes_get(tenant->mediator, right.nsid);
	if (!window->flushes)
		return -ENOMEM;
	mutex_lock(&tenant->mutex);
	err = nvmep_tenant_publish_window(tenant, window, &right);
	mutex_unlock(&tenant->mutex);
	if (err)
		return err;
	cmd->id = right.id;
	cmd->blocks = right.blocks;
	cmd->block_size = 1U << right.shift;
	cmd->rights = nvmep_rights(right.read, right.write);
	return 0;
}

/* Before anything is opened, which may take long. */
static int nvmep_tenant_has_window_slot(struct nvmep_tenant *tenant)
{
	int err;

	mutex_lock(&tenant->mutex);
	err = nvmep_tenant_may_add(tenant);
	if (!err && !nvmep_tenant_find_window_slot(tenant))
		err = -EDQUOT;
	mutex_unlock(&tenant->mutex);
	return err;
}

static int nvmep_tenant_add_file(struct nvmep_tenant *tenant,
				 struct nvme_peer_window_add *cmd)
{
	struct nvmep_window window = {
		.file = fget(cmd->fd),
	};
	struct nvmep_file *file;
	int err;

	if (!window.file)
		return -EBADF;
	err = nvmep_tenant_add_opened(tenant, &window, cmd);
	if (err) {
		file = nvmep_file_get(window.pinned);
		nvmep_window_put(tenant, &window);
		nvmep_file_put_removed(file);
	}
	return err;
}

/**
 * nvmep_tenant_window_add() - add a window
 * @tenant: the tenant
 * @cmd: in, out
 *
 * A file may block for any time: called without ioctl_rwsem.
 *
 * Return: 0, or an error of struct nvme_peer_window_add.
 */
int nvmep_tenant_window_add(struct nvmep_tenant *tenant,
			    struct nvme_peer_window_add *cmd)
{
	int err;

	/* One file at a time, whose extents take memory. */
	if (mutex_lock_killable(&tenant->adding))
		return -EINTR;
	err = nvmep_tenant_has_window_slot(tenant);
	if (!err)
		err = nvmep_tenant_add_file(tenant, cmd);
	mutex_unlock(&tenant->adding);
	return err;
}

static bool nvmep_window_busy(struct nvmep_tenant *tenant, u32 slot)
{
	bool busy;

	spin_lock(&tenant->mediator->lock);
	busy = tenant->windows[slot].in_flight;
	spin_unlock(&tenant->mediator->lock);
	return busy;
}

static bool nvmep_window_invalidates(struct nvmep_tenant *tenant, u32 slot)
{
	const struct nvmep_file *file = tenant->windows[slot].pinned;
	bool some;

	if (!file)
		return false;
	spin_lock(&tenant->mediator->lock);
	some = !list_empty(&file->node);
	spin_unlock(&tenant->mediator->lock);
	return some;
}

/*
 * Commands that have ended on the controller, and wait for cached pages.  A
 * process may keep these locked.
 */
static void nvmep_window_end_cached(struct nvmep_tenant *tenant, u32 slot)
{
	unsigned long limit = jiffies + msecs_to_jiffies(NVMEP_CACHE_WAIT_MS);

	lockdep_assert_held(&tenant->mutex);

	while (nvmep_window_invalidates(tenant, slot)) {
		if (time_after(jiffies, limit))
			nvmep_mediator_abort_cached(tenant->mediator,
						    tenant->windows[slot].pinned);
		usleep_range(NVMEP_WAIT_POLL_US, 2 * NVMEP_WAIT_POLL_US);
	}
}

/* Refuses new commands, then waits for those in flight. */
static void nvmep_tenant_drop_window(struct nvmep_tenant *tenant, u32 slot)
{
	struct nvmep_mediator *mediator = tenant->mediator;
	struct nvmep_window window;

	lockdep_assert_held(&tenant->mutex);

	spin_lock(&mediator->lock);
	tenant->rights.windows[slot].id = 0;
	if (tenant->windows[slot].pinned)
		WRITE_ONCE(tenant->windows[slot].pinned->closing, true);
	spin_unlock(&mediator->lock);
	while (nvmep_window_busy(tenant, slot)) {
		nvmep_mediator_poll(mediator);
		usleep_range(NVMEP_WAIT_POLL_US, 2 * NVMEP_WAIT_POLL_US);
	}
	nvmep_window_end_cached(tenant, slot);
	spin_lock(&mediator->lock);
	window = tenant->windows[slot];
	tenant->windows[slot] = (struct nvmep_window){
		.epoch = window.epoch + 1,
	};
	spin_unlock(&mediator->lock);
	nvmep_window_write_status(tenant, slot, false);
	nvmep_window_put(tenant, &window);
}

/* The slot of a window, or 0. */
static u32 nvmep_tenant_find_window(const struct nvmep_tenant *tenant, u32 id)
{
	const struct nvmep_mediate_window *right;

	lockdep_assert_held(&tenant->mutex);

	right = nvmep_mediate_window(&tenant->rights, id);
	return right ? right - tenant->rights.windows : 0;
}

/**
 * nvmep_tenant_window_remove() - remove a window, and wait for its commands
 * @tenant: the tenant
 * @id: ID of the window
 *
 * Return: 0 or -ENOENT.
 */
int nvmep_tenant_window_remove(struct nvmep_tenant *tenant, u32 id)
{
	struct nvmep_file *file = NULL;
	u32 slot;

	mutex_lock(&tenant->mutex);
	slot = nvmep_tenant_find_window(tenant, id);
	if (slot) {
		file = nvmep_file_get(tenant->windows[slot].pinned);
		nvmep_tenant_drop_window(tenant, slot);
	}
	mutex_unlock(&tenant->mutex);
	nvmep_file_put_removed(file);
	return slot ? 0 : -ENOENT;
}

/* Without mediator->lock, which all tenants need for their commands. */
static void
nvmep_tenant_fill_window_info(const struct nvmep_tenant *tenant, u32 slot,
			      struct nvme_peer_window_info *cmd)
{
	const struct nvmep_mediate_window *right = &tenant->rights.windows[slot];
	const struct nvmep_window *window = &tenant->windows[slot];
	u64 device = nvmep_window_device_blocks(window);

	lockdep_assert_held(&tenant->mutex);

	device -= min(device, right->first);
	cmd->rights = nvmep_rights(right->read, right->write &&
				   !nvmep_window_read_only(window));
	cmd->first = right->first;
	cmd->blocks = min(right->blocks, device);
	cmd->block_size = 1U << right->shift;
	cmd->in_flight = READ_ONCE(window->in_flight);
}

/**
 * nvmep_tenant_window_info() - report what a window is now
 * @tenant: the tenant
 * @cmd: in, out
 *
 * Return: 0 or -ENOENT.
 */
int nvmep_tenant_window_info(struct nvmep_tenant *tenant,
			     struct nvme_peer_window_info *cmd)
{
	u32 slot;

	mutex_lock(&tenant->mutex);
	slot = nvmep_tenant_find_window(tenant, cmd->id);
	if (slot)
		nvmep_tenant_fill_window_info(tenant, slot, cmd);
	mutex_unlock(&tenant->mutex);
	return slot ? 0 : -ENOENT;
}

/* --- buffers -------------------------------------------------------------- */

static bool nvmep_tenant_mark_ended(struct nvmep_tenant *tenant,
				    const struct nvmep_buf *buf)
{
	struct nvmep_mediator *mediator = tenant->mediator;
	bool published;

	spin_lock(&mediator->lock);
	published = tenant->buffers[buf->handle] == buf;
	if (published)
		tenant->rights.buffers[buf->handle].ended = true;
	spin_unlock(&mediator->lock);
	return published;
}

static void nvmep_tenant_report_ended(struct nvmep_tenant *tenant, u32 slot)
{
	struct nvmep_qp *qp = tenant->qp;

	mutex_lock(&qp->ctrl->peers->lock);
	/* None follows the event of the end. */
	if (qp->state < NVMEP_QP_STOPPED)
		nvmep_qp_add_event(qp, NVME_PEER_EVENT_BUFFER_ENDED, slot);
	mutex_unlock(&qp->ctrl->peers->lock);
	nvmep_qp_wake(qp);
}

/*
 * The exporter has invalidated the buffer: new commands are refused.  The tenant
 * exists: its end waits for this.
 */
static void nvmep_tenant_buf_invalidated(struct nvmep_buf *buf)
{
	struct nvmep_tenant *tenant = READ_ONCE(buf->tenant);

	if (READ_ONCE(buf->slow))
		dev_warn_ratelimited(buf->ctrl->dev,
				     "mediated queue pair: reads of the devices of user %u exceed mediated_read_ms: ending a buffer\n",
				     from_kuid(&init_user_ns, tenant->account->uid));
	if (tenant && nvmep_tenant_mark_ended(tenant, buf))
		nvmep_tenant_report_ended(tenant, buf->handle);
	nvmep_buf_unmap(buf);
}

static u32 nvmep_tenant_find_buffer_slot(const struct nvmep_tenant *tenant)
{
	u32 slot;

	for (slot = 1; slot <= tenant->max_buffers; slot++)
		if (!tenant->buffers[slot])
			return slot;
	return 0;
}

/*
 * Either this sees that the exporter has invalidated the buffer, or the work of
 * the invalidation sees the tenant and waits for the lock.
 */
static int nvmep_tenant_publish_buffer(struct nvmep_tenant *tenant,
				       struct nvmep_buf *buf)
{
	struct nvmep_mediator *mediator = tenant->mediator;
	int err = nvmep_tenant_may_add(tenant);
	u32 slot;

	if (err)
		return err;
	slot = nvmep_tenant_find_buffer_slot(tenant);
	if (!slot)
		return -EDQUOT;
	buf->handle = slot;
	spin_lock(&mediator->lock);
	/* Pairs with queue_work() in nvmep_buf_invalidate(). */
	smp_store_mb(buf->tenant, tenant);
	if (nvmep_buf_invalid(buf)) {
		err = -ESTALE;
	} else {
		tenant->buffers[slot] = buf;
		tenant->rights.buffers[slot] = (struct nvmep_mediate_buffer){
			.length = buf->segments.length,
			.read = nvmep_buf_dir_allowed(buf, DMA_TO_DEVICE),
			.write = nvmep_buf_dir_allowed(buf, DMA_FROM_DEVICE),
		};
	}
	spin_unlock(&mediator->lock);
	return err;
}

/* Another thread may remove the buffer as soon as it has a slot. */
static int nvmep_tenant_add_buffer(struct nvmep_tenant *tenant,
				   struct nvmep_buf *buf)
{
	int err;

	if (buf->segments.length >> NVMEP_HANDLE_SHIFT)
		return -ERANGE;
	err = nvmep_buf_map_word(buf);
	if (err)
		return err;
	mutex_lock(&tenant->mutex);
	err = nvmep_tenant_publish_buffer(tenant, buf);
	mutex_unlock(&tenant->mutex);
	return err;
}

/* Before the mapping: the caller may repeat what is refused. */
static int nvmep_tenant_reserve(struct nvmep_tenant *tenant, u64 bytes)
{
	int err;

	mutex_lock(&tenant->mutex);
	err = nvmep_tenant_may_add(tenant);
	if (!err && !nvmep_account_map(tenant, bytes))
		err = -ENOSPC;
	mutex_unlock(&tenant->mutex);
	return err;
}

/* @dmabuf: reserved; the descriptor may be that of another one by now */
static struct nvmep_buf *
nvmep_tenant_import(struct nvmep_tenant *tenant, struct nvme_peer_buf_add *cmd,
		    struct dma_buf *dmabuf)
{
	struct nvme_peer_buf_import import = {
		.dmabuf_fd = cmd->dmabuf_fd,
		.access = cmd->access,
		.offset = cmd->offset,
		.length = cmd->length,
	};
	int err = nvmep_buf_import_check(tenant->qp->ctrl, &import);
	struct nvmep_buf *buf;

	if (err)
		return ERR_PTR(err);
	buf = nvmep_buf_import_checked(tenant->qp->ctrl, dmabuf, &import,
				       nvmep_tenant_buf_invalidated);
	if (IS_ERR(buf))
		return buf;
	cmd->length = import.length;
	cmd->verdict = import.verdict;
	cmd->reason = import.reason;
	cmd->pci_address = import.pci_address;
	nvmep_buf_get(buf);
	err = nvmep_tenant_add_buffer(tenant, buf);
	if (err) {
		nvmep_buf_put(buf);
		nvmep_buf_put(buf);
		return ERR_PTR(err);
	}
	cmd->slot = buf->handle;
	return buf;
}

/**
 * nvmep_tenant_buf_add() - import a buffer for a tenant
 * @tenant: the tenant
 * @cmd: in, out
 *
 * The exporter may block for any time: called without ioctl_rwsem.
 *
 * Return: the buffer with a reference, or an ERR_PTR, see struct
 * nvme_peer_buf_add.
 */
struct nvmep_buf *nvmep_tenant_buf_add(struct nvmep_tenant *tenant,
				       struct nvme_peer_buf_add *cmd)
{
	struct dma_buf *dmabuf = dma_buf_get(cmd->dmabuf_fd);
	struct nvmep_buf *buf;
	int err;

	if (IS_ERR(dmabuf))
		return ERR_CAST(dmabuf);
	err = nvmep_tenant_reserve(tenant, dmabuf->size);
	if (err) {
		dma_buf_put(dmabuf);
		return ERR_PTR(err);
	}
	buf = nvmep_tenant_import(tenant, cmd, dmabuf);
	if (IS_ERR(buf))
		nvmep_account_unmap(tenant, dmabuf->size);
	dma_buf_put(dmabuf);
	return buf;
}

/*
 * Begins the removal of a buffer: new commands are refused.  Returns NULL if
 * there is none, or another thread removes it.
 */
static struct nvmep_buf *nvmep_tenant_take_buffer(struct nvmep_tenant *tenant,
						  u32 slot)
{
	struct nvmep_buf *buf = tenant->buffers[slot];

	lockdep_assert_held(&tenant->mutex);

	if (!buf || buf->removed)
		return NULL;
	buf->removed = true;
	spin_lock(&tenant->mediator->lock);
	tenant->rights.buffers[slot] = (struct nvmep_mediate_buffer){ };
	spin_unlock(&tenant->mediator->lock);
	return buf;
}

/* After the work of the invalidation: no event names the next buffer in it. */
static void nvmep_tenant_free_slot(struct nvmep_tenant *tenant, u32 slot)
{
	mutex_lock(&tenant->mutex);
	spin_lock(&tenant->mediator->lock);
	tenant->buffers[slot] = NULL;
	tenant->rights.buffers[slot] = (struct nvmep_mediate_buffer){ };
	spin_unlock(&tenant->mediator->lock);
	mutex_unlock(&tenant->mutex);
}

/**
 * nvmep_tenant_buf_remove() - remove a buffer, and wait for its commands
 * @tenant: the tenant
 * @slot: its slot
 * @only: the buffer that must be in the slot, or NULL for any
 *
 * Return: 0 or -ENOENT.
 */
int nvmep_tenant_buf_remove(struct nvmep_tenant *tenant, u32 slot,
			    const struct nvmep_buf *only)
{
	struct nvmep_buf *buf = NULL;

	if (slot > tenant->max_buffers)
		return -ENOENT;
	slot = array_index_nospec(slot, tenant->rights.buffer_slots);
	mutex_lock(&tenant->mutex);
	if (!only || tenant->buffers[slot] == only)
		buf = nvmep_tenant_take_buffer(tenant, slot);
	mutex_unlock(&tenant->mutex);
	if (!buf)
		return -ENOENT;
	/* Here: another reference may be held over a wait for the exporter. */
	nvmep_buf_detach(buf);
	nvmep_tenant_free_slot(tenant, slot);
	nvmep_account_unmap(tenant, buf->dmabuf->size);
	nvmep_buf_put(buf);
	return 0;
}

/* --- limits, statistics --------------------------------------------------- */

static u32 nvmep_tenant_count_windows(const struct nvmep_tenant *tenant)
{
	u32 slot, count = 0;

	for (slot = 1; slot <= tenant->max_windows; slot++)
		count += !!tenant->windows[slot].file;
	return count;
}

static u32 nvmep_tenant_count_buffers(const struct nvmep_tenant *tenant)
{
	u32 slot, count = 0;

	for (slot = 1; slot <= tenant->max_buffers; slot++)
		count += !!tenant->buffers[slot];
	return count;
}

/**
 * nvmep_tenant_limits() - report the limits of a tenant
 * @tenant: the tenant
 * @cmd: out
 */
void nvmep_tenant_limits(struct nvmep_tenant *tenant,
			 struct nvme_peer_qp_limits *cmd)
{
	cmd->depth = tenant->depth;
	cmd->weight = tenant->weight;
	cmd->timeout_ms = jiffies_to_msecs(tenant->timeout);
	cmd->max_windows = tenant->max_windows;
	cmd->max_buffers = tenant->max_buffers;
	mutex_lock(&tenant->mutex);
	cmd->sealed = tenant->sealed;
	cmd->windows = nvmep_tenant_count_windows(tenant);
	cmd->buffers = nvmep_tenant_count_buffers(tenant);
	mutex_unlock(&tenant->mutex);
	cmd->max_transfer = READ_ONCE(tenant->rights.max_transfer);
	cmd->max_write_zeroes = READ_ONCE(tenant->rights.max_write_zeroes);
}

/**
 * nvmep_tenant_stats() - report the statistics of a tenant
 * @tenant: the tenant
 * @cmd: out
 *
 * Without mediator->lock, which all tenants need for their commands: the values
 * are not of one moment.
 */
void nvmep_tenant_stats(struct nvmep_tenant *tenant,
			struct nvme_peer_qp_stats *cmd)
{
	const struct nvme_peer_qp_stats *stats = &tenant->stats;

	cmd->in_flight = READ_ONCE(tenant->in_flight);
	cmd->reserved = 0;
	cmd->reads = READ_ONCE(stats->reads);
	cmd->writes = READ_ONCE(stats->writes);
	cmd->zeroes = READ_ONCE(stats->zeroes);
	cmd->flushes = READ_ONCE(stats->flushes);
	cmd->read_bytes = READ_ONCE(stats->read_bytes);
	cmd->written_bytes = READ_ONCE(stats->written_bytes);
	cmd->refused = READ_ONCE(stats->refused);
	cmd->failed = READ_ONCE(stats->failed);
	cmd->busy_ns = READ_ONCE(stats->busy_ns);
}

/**
 * nvmep_tenant_seal() - let no process add windows or buffers
 * @tenant: the tenant
 */
void nvmep_tenant_seal(struct nvmep_tenant *tenant)
{
	mutex_lock(&tenant->mutex);
	tenant->sealed = true;
	mutex_unlock(&tenant->mutex);
}

/* --- creation and end ----------------------------------------------------- */

/**
 * nvmep_tenant_create_check() - check the parameters of a mediated queue pair
 * @ctrl: the controller
 * @cmd: the parameters
 *
 * Return: 0, -EINVAL, or -EPERM.
 */
int nvmep_tenant_create_check(const struct nvmep_ctrl *ctrl,
			      const struct nvme_peer_qp_create *cmd)
{
	if (cmd->sq_handle || cmd->cq_handle ||
	    cmd->cq_entries > NVME_PEER_MAX_MEDIATED_ENTRIES ||
	    cmd->depth > NVME_PEER_MAX_DEPTH ||
	    cmd->weight > NVME_PEER_MAX_WEIGHT ||
	    cmd->max_windows > NVME_PEER_MAX_WINDOWS ||
	    cmd->max_buffers > NVME_PEER_MAX_BUFFERS)
		return -EINVAL;
	if (cmd->timeout_ms && (cmd->timeout_ms < NVMEP_MIN_TIMEOUT_MS ||
				cmd->timeout_ms > NVMEP_MAX_TIMEOUT_MS))
		return -EINVAL;
	if (cmd->weight > 1 && !capable(CAP_SYS_NICE))
		return -EPERM;
	/* What waits for its commands waits longer than for those of the CPU. */
	return msecs_to_jiffies(cmd->timeout_ms) > ctrl->io_tags.timeout &&
	       !capable(CAP_SYS_RESOURCE) ? -EPERM : 0;
}

/**
 * nvmep_tenant_free() - free a tenant
 * @tenant: after nvmep_tenant_end(), or NULL
 */
void nvmep_tenant_free(struct nvmep_tenant *tenant)
{
	if (!tenant)
		return;
	kfree(tenant->commands);
	kfree(tenant->buffers);
	kfree(tenant->windows);
	kfree(tenant->rights.buffers);
	kfree(tenant->rights.windows);
	kfree(tenant);
}

static void nvmep_tenant_init_commands(struct nvmep_tenant *tenant)
{
	struct nvmep_tenant_command *command;
	u32 left = tenant->depth;

	while (left--) {
		command = &tenant->commands[left];
		INIT_LIST_HEAD(&command->node);
		command->tenant = tenant;
		command->next = tenant->idle;
		tenant->idle = command;
	}
}

static int nvmep_tenant_alloc_tables(struct nvmep_tenant *tenant)
{
	struct nvmep_mediate_rights *rights = &tenant->rights;

	rights->window_slots = tenant->max_windows + 1;
	rights->buffer_slots = tenant->max_buffers + 1;
	rights->windows = kcalloc(rights->window_slots,
				  sizeof(*rights->windows),
				  GFP_KERNEL_ACCOUNT);
	rights->buffers = kcalloc(rights->buffer_slots,
				  sizeof(*rights->buffers),
				  GFP_KERNEL_ACCOUNT);
	tenant->windows = kcalloc(rights->window_slots,
				  sizeof(*tenant->windows),
				  GFP_KERNEL_ACCOUNT);
	tenant->buffers = kcalloc(rights->buffer_slots,
				  sizeof(*tenant->buffers),
				  GFP_KERNEL_ACCOUNT);
	tenant->commands = kcalloc(tenant->depth, sizeof(*tenant->commands),
				   GFP_KERNEL_ACCOUNT);
	if (!rights->windows || !rights->buffers || !tenant->windows ||
	    !tenant->buffers || !tenant->commands)
		return -ENOMEM;
	nvmep_tenant_init_commands(tenant);
	return 0;
}

/*
 * A timeout deletes a queue pair of all tenants, and their commands with it: it
 * may not be shorter than that of I/O of the CPU.
 */
static unsigned long nvmep_tenant_timeout(const struct nvmep_ctrl *ctrl,
					  const struct nvme_peer_qp_create *cmd)
{
	return max_t(unsigned long, msecs_to_jiffies(cmd->timeout_ms),
		     ctrl->io_tags.timeout);
}

static u32 nvmep_or_default(u32 value, u32 otherwise)
{
	return value ? value : otherwise;
}

static struct nvmep_tenant *
nvmep_tenant_alloc(struct nvmep_qp *qp, const struct nvme_peer_qp_create *cmd)
{
	struct nvmep_tenant *tenant;

	tenant = kzalloc(sizeof(*tenant), GFP_KERNEL_ACCOUNT);
	if (!tenant)
		return NULL;
	tenant->qp = qp;
	tenant->sq = page_address(qp->sq.host->pages[0]);
	tenant->cq = page_address(qp->cq.host->pages[0]);
	tenant->depth = nvmep_or_default(cmd->depth, NVMEP_DEFAULT_DEPTH);
	tenant->weight = nvmep_or_default(cmd->weight, NVMEP_DEFAULT_WEIGHT);
	tenant->timeout = nvmep_tenant_timeout(qp->ctrl, cmd);
	tenant->max_windows = nvmep_or_default(cmd->max_windows,
					       NVMEP_DEFAULT_WINDOWS);
	tenant->max_buffers = nvmep_or_default(cmd->max_buffers,
					       NVMEP_DEFAULT_BUFFERS);
	mutex_init(&tenant->adding);
	mutex_init(&tenant->mutex);
	if (nvmep_tenant_alloc_tables(tenant)) {
		nvmep_tenant_free(tenant);
		return NULL;
	}
	return tenant;
}

/**
 * nvmep_tenant_create() - create what a queue pair has in mediated mode
 * @qp: new queue pair with rings and doorbells in host memory; the caller holds
 *	its lock
 * @cmd: parameters, checked
 *
 * Return: 0, -ENOMEM, or -ENOSPC.
 */
int nvmep_tenant_create(struct nvmep_qp *qp,
			const struct nvme_peer_qp_create *cmd)
{
	struct nvmep_tenant *tenant = nvmep_tenant_alloc(qp, cmd);
	int err;

	lockdep_assert_held(&qp->lock);

	if (!tenant)
		return -ENOMEM;
	err = nvmep_mediator_join(tenant);
	if (err)
		nvmep_tenant_free(tenant);
	else
		qp->tenant = tenant;
	return err;
}

/**
 * nvmep_tenant_reset() - begin with empty rings
 * @tenant: without commands in flight, about to be LIVE
 */
void nvmep_tenant_reset(struct nvmep_tenant *tenant)
{
	struct nvmep_ctrl *ctrl = tenant->qp->ctrl;

	lockdep_assert_held(&ctrl->peers->lock);

	spin_lock(&tenant->mediator->lock);
	tenant->sq_head = 0;
	tenant->cq_tail = 0;
	tenant->cq_head = 0;
	tenant->phase = true;
	tenant->turn = false;
	tenant->deficit = 0;
	WRITE_ONCE(tenant->rights.max_transfer,
		   min_t(u32, ctrl->max_transfer, NVMEP_MEDIATE_TRANSFER));
	WRITE_ONCE(tenant->rights.max_write_zeroes,
		   min_t(u32, READ_ONCE(ctrl->max_write_zeroes),
			 NVMEP_MEDIATE_TRANSFER));
	spin_unlock(&tenant->mediator->lock);
}

static bool nvmep_tenant_busy(struct nvmep_tenant *tenant)
{
	bool busy;

	spin_lock(&tenant->mediator->lock);
	busy = tenant->in_flight;
	spin_unlock(&tenant->mediator->lock);
	return busy;
}

/**
 * nvmep_tenant_quiesce() - fetch no further command, and wait for the others
 * @tenant: the tenant; the lock of its queue pair is held, and its relay is
 *	closed
 *
 * On return the controller does not access its buffers.
 */
void nvmep_tenant_quiesce(struct nvmep_tenant *tenant)
{
	lockdep_assert_held(&tenant->qp->lock);

	nvmep_mediator_remove(tenant);
	/* Those that the controller has ended, and others that it will end. */
	while (nvmep_tenant_busy(tenant)) {
		nvmep_tenant_lose_cached(tenant);
		nvmep_mediator_poll(tenant->mediator);
		usleep_range(NVMEP_WAIT_POLL_US, 2 * NVMEP_WAIT_POLL_US);
	}
}

static void nvmep_tenant_drop_buffers(struct nvmep_tenant *tenant)
{
	u32 slot;

	for (slot = 1; slot <= tenant->max_buffers; slot++)
		nvmep_tenant_buf_remove(tenant, slot, NULL);
}

/**
 * nvmep_tenant_end() - drop windows and buffers, and leave the mediator
 * @tenant: quiesced for good; the lock of its queue pair is held
 */
void nvmep_tenant_end(struct nvmep_tenant *tenant)
{
	u32 slot;

	lockdep_assert_held(&tenant->qp->lock);

	mutex_lock(&tenant->mutex);
	tenant->ended = true;
	for (slot = 1; slot <= tenant->max_windows; slot++)
		if (tenant->windows[slot].file)
			nvmep_tenant_drop_window(tenant, slot);
	mutex_unlock(&tenant->mutex);
	nvmep_tenant_drop_buffers(tenant);
	nvmep_mediator_leave(tenant);
}
