// SPDX-License-Identifier: GPL-2.0-only
/*
 * Open controller nodes and their buffer handles.
 *
 * Buffers belong to the open file that imported them.  They stay mapped until
 * NVME_PEER_BUF_RELEASE, an invalidation, or until the controller node and all
 * queue pair files created through it are closed: queue pairs keep their node,
 * nodes keep their buffers.
 *
 * A buffer is exposed once user space has its DMA addresses: a command of any
 * queue pair of its node may use them.  The handle of an exposed buffer cannot
 * be released while such a queue pair is active.  Once the exporter has
 * invalidated an exposed buffer, peers hold stale addresses: the node creates
 * no queue pair until the handle is released.
 */
#include <linux/slab.h>
#include <linux/wait_bit.h>

#include "core/ctrl.h"
#include "import.h"
#include "peer.h"
#include "peer_file.h"
#include "qp.h"

/* Maximum number of buffers of one open file. */
#define NVMEP_MAX_BUFS		4096

/* Interval of warnings while unbinding waits for an exporter. */
#define NVMEP_EXPORTER_TIMEOUT	(10 * HZ)

/* --- the open file ------------------------------------------------------- */

/**
 * nvmep_peer_file_open() - allocate the state of an open controller node
 * @ctrl: the controller
 *
 * Return: the state with the reference of the file, or an ERR_PTR.
 */
struct nvmep_peer_file *nvmep_peer_file_open(struct nvmep_ctrl *ctrl)
{
	struct nvmep_peer_file *file;

	file = kzalloc(sizeof(*file), GFP_KERNEL_ACCOUNT);
	if (!file)
		return ERR_PTR(-ENOMEM);
	kref_init(&file->ref);
	file->ctrl = nvmep_ctrl_get(ctrl);
	xa_init_flags(&file->bufs, XA_FLAGS_ALLOC1);
	nvmep_leak_count(&ctrl->peers->leak_counters, NVMEP_OBJECT_FILES, 1);
	return file;
}

/* Drops a buffer without handle that is on no list. */
static void nvmep_buf_detach_put(struct nvmep_buf *buf)
{
	/*
	 * Detach now: another reference may be held over a wait for user
	 * memory.
	 */
	nvmep_buf_detach(buf);
	nvmep_buf_put(buf);
}

/*
 * The file and all its queue pairs are gone, so no ring is in the buffer and no
 * command may carry its addresses.
 */
static void nvmep_buf_orphan(struct nvmep_buf *buf)
{
	struct nvmep_peers *peers = buf->ctrl->peers;

	mutex_lock(&peers->lock);
	WARN_ON(buf->rings);
	list_del_init(&buf->node);
	mutex_unlock(&peers->lock);

	nvmep_buf_detach_put(buf);
}

static void nvmep_peer_file_free(struct kref *ref)
{
	struct nvmep_peer_file *file =
		container_of(ref, struct nvmep_peer_file, ref);
	struct nvmep_ctrl *ctrl = file->ctrl;
	struct nvmep_buf *buf;
	unsigned long handle;

	/* First all: their grace periods pass at the same time. */
	xa_for_each(&file->bufs, handle, buf)
		nvmep_buf_stop_users(buf);
	xa_for_each(&file->bufs, handle, buf)
		nvmep_buf_orphan(buf);
	xa_destroy(&file->bufs);
	nvmep_leak_count(&ctrl->peers->leak_counters, NVMEP_OBJECT_FILES, -1);
	kfree(file);
	nvmep_ctrl_put(ctrl);
}

/**
 * nvmep_peer_file_get() - take a reference, which keeps the buffers
 * @file: the open file
 *
 * Return: @file.
 */
struct nvmep_peer_file *nvmep_peer_file_get(struct nvmep_peer_file *file)
{
	kref_get(&file->ref);
	return file;
}

/**
 * nvmep_peer_file_put() - drop a reference
 * @file: the open file
 */
void nvmep_peer_file_put(struct nvmep_peer_file *file)
{
	kref_put(&file->ref, nvmep_peer_file_free);
}

/**
 * nvmep_peer_file_stale() - do peers hold addresses of invalidated buffers?
 * @file: the open file; the caller holds peers->lock
 *
 * Return: true if an exposed buffer was invalidated and has its handle.
 */
bool nvmep_peer_file_stale(struct nvmep_peer_file *file)
{
	struct nvmep_buf *buf;
	unsigned long handle;

	lockdep_assert_held(&file->ctrl->peers->lock);

	xa_for_each(&file->bufs, handle, buf)
		if (buf->exposed && nvmep_buf_invalid(buf))
			return true;
	return false;
}

/* --- handles ------------------------------------------------------------- */

/**
 * nvmep_buf_reserve() - reserve a handle for a buffer
 * @file: the open file that owns the buffer from now on
 * @buf: the buffer; its reference goes to the handle on success
 *
 * Unbinding finds the buffer from here on, a lookup does not.
 * nvmep_buf_publish() or nvmep_buf_unreserve() must follow.
 *
 * Return: 0, -EDQUOT if the file has too many buffers, -ENOMEM, -ESTALE if the
 * exporter has invalidated the buffer, -ESHUTDOWN if the driver is being
 * unbound.
 */
int nvmep_buf_reserve(struct nvmep_peer_file *file, struct nvmep_buf *buf)
{
	struct nvmep_peers *peers = buf->ctrl->peers;
	bool removed;
	int err;

	if (nvmep_buf_invalid(buf))
		return -ESTALE;

	/* Reset work takes peers->lock, so nothing is allocated under it. */
	err = xa_alloc(&file->bufs, &buf->handle, NULL,
		       XA_LIMIT(1, NVMEP_MAX_BUFS), GFP_KERNEL_ACCOUNT);
	if (err)
		return err == -EBUSY ? -EDQUOT : err;
	mutex_lock(&peers->lock);
	removed = peers->removed;
	if (!removed) {
		buf->file = file;
		list_add_tail(&buf->node, &peers->bufs);
	}
	mutex_unlock(&peers->lock);
	if (removed)
		xa_erase(&file->bufs, buf->handle);
	return removed ? -ESHUTDOWN : 0;
}

/**
 * nvmep_buf_publish() - make a buffer visible to lookups
 * @buf: the buffer, reserved.  Another thread may guess the handle and release
 *	it as soon as it is stored: the caller must not use @buf after this
 */
void nvmep_buf_publish(struct nvmep_buf *buf)
{
	struct mutex *lock = &buf->ctrl->peers->lock;
	void *old;

	mutex_lock(lock);
	/* The entry is reserved: no allocation is needed. */
	old = xa_store(&buf->file->bufs, buf->handle, buf, GFP_NOWAIT);
	mutex_unlock(lock);
	WARN_ON(old);
}

/**
 * nvmep_buf_unreserve() - give up a reserved handle and the buffer
 * @buf: the buffer, reserved; drops the reference of the handle
 */
void nvmep_buf_unreserve(struct nvmep_buf *buf)
{
	struct nvmep_peers *peers = buf->ctrl->peers;

	mutex_lock(&peers->lock);
	xa_erase(&buf->file->bufs, buf->handle);
	list_del_init(&buf->node);
	mutex_unlock(&peers->lock);
	nvmep_buf_put(buf);
}

/**
 * nvmep_buf_lookup() - find a buffer by its handle
 * @file: the open file
 * @handle: the handle
 *
 * Return: the buffer with a reference, or NULL.
 */
struct nvmep_buf *nvmep_buf_lookup(struct nvmep_peer_file *file, u32 handle)
{
	struct nvmep_peers *peers = file->ctrl->peers;
	struct nvmep_buf *buf;

	mutex_lock(&peers->lock);
	buf = xa_load(&file->bufs, handle);
	if (buf)
		nvmep_buf_get(buf);
	mutex_unlock(&peers->lock);
	return buf;
}

/**
 * nvmep_buf_release() - release a handle and detach the buffer
 * @file: the open file
 * @handle: the handle
 *
 * Return: 0, -ENOENT, or -EBUSY if a ring is in the buffer, or if it is exposed
 * and a queue pair of the file is active.
 */
int nvmep_buf_release(struct nvmep_peer_file *file, u32 handle)
{
	struct nvmep_peers *peers = file->ctrl->peers;
	struct nvmep_buf *buf;
	int err = 0;

	mutex_lock(&peers->lock);
	buf = xa_load(&file->bufs, handle);
	if (!buf) {
		err = -ENOENT;
	} else if (buf->rings ||
		   (buf->exposed && nvmep_qp_node_active(file))) {
		err = -EBUSY;
	} else {
		xa_erase(&file->bufs, handle);
		list_del_init(&buf->node);
	}
	mutex_unlock(&peers->lock);

	if (!err)
		nvmep_buf_detach_put(buf);
	return err;
}

/**
 * nvmep_buf_claim() - claim a buffer for a ring
 * @file: the open file; the caller holds peers->lock
 * @handle: the buffer's handle
 * @dir: DMA direction of the ring
 *
 * The handle cannot be released until nvmep_buf_unclaim().
 *
 * Return: the buffer, or an ERR_PTR: -ENOENT, -ESTALE, -EACCES if the buffer
 * was not imported for @dir.
 */
struct nvmep_buf *nvmep_buf_claim(struct nvmep_peer_file *file, u32 handle,
				  enum dma_data_direction dir)
{
	struct nvmep_buf *buf;

	lockdep_assert_held(&file->ctrl->peers->lock);

	buf = xa_load(&file->bufs, handle);
	if (!buf)
		return ERR_PTR(-ENOENT);
	if (nvmep_buf_invalid(buf))
		return ERR_PTR(-ESTALE);
	if (!nvmep_buf_dir_allowed(buf, dir))
		return ERR_PTR(-EACCES);
	buf->rings++;
	return buf;
}

/**
 * nvmep_buf_unclaim() - drop the claim of a ring
 * @buf: the buffer; the caller holds peers->lock
 */
void nvmep_buf_unclaim(struct nvmep_buf *buf)
{
	lockdep_assert_held(&buf->ctrl->peers->lock);
	WARN_ON(!buf->rings);
	buf->rings--;
}

/**
 * nvmep_buf_expose() - mark a buffer as exposed
 * @buf: the buffer
 *
 * Call before its DMA addresses reach user space: from here on an invalidation
 * stops all queue pairs of the node.
 *
 * Return: 0, -ESTALE if the exporter has invalidated it, -ENOENT if its handle
 * was released meanwhile.
 */
int nvmep_buf_expose(struct nvmep_buf *buf)
{
	struct nvmep_peers *peers = buf->ctrl->peers;
	int err = 0;

	mutex_lock(&peers->lock);
	if (nvmep_buf_invalid(buf))
		err = -ESTALE;
	else if (list_empty(&buf->node))
		err = -ENOENT;
	else
		buf->exposed = true;
	mutex_unlock(&peers->lock);
	return err;
}

/**
 * nvmep_handle_range() - get a range of a buffer for a command of the CPU
 * @file: the open file
 * @handle: the buffer's handle
 * @offset: start of the range in the buffer, in bytes
 * @length: bytes, not 0
 * @dir: DMA direction of the controller
 * @range: out
 *
 * Hot path: takes no lock, only RCU.
 *
 * Return: 0, -ENOENT for an unknown handle, or an error of nvmep_buf_range().
 */
int nvmep_handle_range(struct nvmep_peer_file *file, u32 handle, u64 offset,
		       u32 length, enum dma_data_direction dir,
		       struct nvmep_dma_range *range)
{
	int err = -ENOENT;
	struct nvmep_buf *buf;

	rcu_read_lock();
	buf = xa_load(&file->bufs, handle);
	if (buf)
		err = nvmep_buf_range(buf, offset, length, dir, range);
	rcu_read_unlock();
	return err;
}

/* --- unbinding ----------------------------------------------------------- */

/* Takes the first buffer of @from, with a reference, and puts it on @to. */
static struct nvmep_buf *nvmep_buf_next(struct nvmep_peers *peers,
					struct list_head *from,
					struct list_head *to)
{
	struct nvmep_buf *buf;

	mutex_lock(&peers->lock);
	buf = list_first_entry_or_null(from, struct nvmep_buf, node);
	if (buf) {
		list_del_init(&buf->node);
		if (to)
			list_add_tail(&buf->node, to);
		nvmep_buf_get(buf);
	}
	mutex_unlock(&peers->lock);
	return buf;
}

/**
 * nvmep_bufs_detach_all() - detach all buffers from their exporters
 * @ctrl: removed: no new buffer can be reserved, and no queue pair uses one
 *
 * A buffer that is being imported is not on the list yet, and one whose last
 * reference is being dropped is not on it any more.  Waits until no exporter
 * maps or has mapped memory for the device, because that is DMA of a device
 * that is going away.  Does not wait for an exporter that attaches without
 * mapping, or pins: nvmep_buf_map_locked() refuses to map after it.
 */
void nvmep_bufs_detach_all(struct nvmep_ctrl *ctrl)
{
	struct nvmep_peers *peers = ctrl->peers;
	LIST_HEAD(stopped);	/* peers->lock, as peers->bufs */
	struct nvmep_buf *buf;

	/* First all: their grace periods pass at the same time. */
	while ((buf = nvmep_buf_next(peers, &peers->bufs, &stopped))) {
		nvmep_buf_stop_users(buf);
		nvmep_buf_put(buf);
	}
	while ((buf = nvmep_buf_next(peers, &stopped, NULL))) {
		nvmep_buf_detach(buf);
		nvmep_buf_put(buf);
	}
	/* Pairs with smp_mb__after_atomic() in nvmep_buf_begin_map(). */
	smp_mb();
	while (!wait_var_event_timeout(&peers->mapped,
				       !atomic_read(&peers->mapped),
				       NVMEP_EXPORTER_TIMEOUT))
		dev_warn(ctrl->dev,
			 "unbind: waiting for an exporter that has a buffer mapped or is mapping it\n");
}
