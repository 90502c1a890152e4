// SPDX-License-Identifier: GPL-2.0-only
/*
 * Open controller nodes, and the handles by which their users name buffers.
 *
 * A node's buffers belong to it, not to who made them: they stay until the node
 * is closed and the queue pairs that were made through it have ended.
 *
 * A buffer whose addresses were told is exposed: a command of any queue pair of
 * the controller may point into it, through whichever node that was made.  So
 * its handle cannot be released while one is alive, and the close of its node
 * keeps it until all that were alive then are off the controller.
 */
#include <linux/slab.h>
#include <linux/wait_bit.h>

#include "core/ctrl.h"
#include "import.h"
#include "peer_file.h"
#include "peers.h"
#include "take.h"

/* Most buffers of one open controller node. */
#define NVMEP_MAX_BUFS		4096

/* After this long an exporter that maps something is named as what is waited for. */
#define NVMEP_EXPORTER_TIMEOUT	(10 * HZ)

/* --- the open node ------------------------------------------------------- */

/**
 * nvmep_peer_file_open() - somebody opened the controller node
 * @ctrl: the controller
 *
 * Return: the open node with the reference of its file, or an ERR_PTR.
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
	nvmep_objects_add(&ctrl->peers->objects, NVMEP_OBJECT_FILES, 1);
	return file;
}

/* A buffer that has no handle any more and is on no list. */
static void nvmep_buf_forget(struct nvmep_buf *buf)
{
	/* Who still looks at it may wait for user memory; the exporter may not. */
	nvmep_buf_detach(buf);
	nvmep_buf_put(buf);
}

/* Neither its node nor a queue pair of that is left: no ring is in it. */
static void nvmep_buf_orphan(struct nvmep_buf *buf)
{
	struct nvmep_peers *peers = buf->ctrl->peers;
	bool keep;

	mutex_lock(&peers->lock);
	WARN_ON(buf->rings);
	keep = buf->exposed && !list_empty(&peers->alive);
	if (keep) {
		buf->keep_until = peers->births;
		list_add_tail(&buf->kept, &peers->kept);
	} else {
		list_del_init(&buf->node);
	}
	mutex_unlock(&peers->lock);

	if (!keep)
		nvmep_buf_forget(buf);
}

static void nvmep_peer_file_free(struct kref *ref)
{
	struct nvmep_peer_file *file =
		container_of(ref, struct nvmep_peer_file, ref);
	struct nvmep_ctrl *ctrl = file->ctrl;
	struct nvmep_buf *buf;
	unsigned long handle;

	xa_for_each(&file->bufs, handle, buf)
		nvmep_buf_orphan(buf);
	xa_destroy(&file->bufs);
	nvmep_objects_add(&ctrl->peers->objects, NVMEP_OBJECT_FILES, -1);
	kfree(file);
	nvmep_ctrl_put(ctrl);
}

/**
 * nvmep_peer_file_get() - hold the buffers of an open controller node
 * @file: the node
 *
 * Return: @file.
 */
struct nvmep_peer_file *nvmep_peer_file_get(struct nvmep_peer_file *file)
{
	kref_get(&file->ref);
	return file;
}

/**
 * nvmep_peer_file_put() - let go of them
 * @file: the node
 */
void nvmep_peer_file_put(struct nvmep_peer_file *file)
{
	kref_put(&file->ref, nvmep_peer_file_free);
}

/* --- handles ------------------------------------------------------------- */

/**
 * nvmep_buf_reserve() - set a handle aside for a buffer
 * @file: the open controller node to which it belongs from now on
 * @buf: the buffer; its reference goes to the handle on success
 *
 * Unbinding finds the buffer from here on, nobody who names the handle does.
 * nvmep_buf_publish() or nvmep_buf_unreserve() has to follow.
 *
 * Return: 0, ENOSPC if the file has too many, ENOMEM, ESTALE if the exporter
 * asked for it back meanwhile, ESHUTDOWN if the driver is being unbound.
 */
int nvmep_buf_reserve(struct nvmep_peer_file *file, struct nvmep_buf *buf)
{
	struct nvmep_peers *peers = buf->ctrl->peers;
	int err;

	if (nvmep_buf_invalid(buf))
		return -ESTALE;

	/* The reset work wants this lock: memory must not wait for I/O. */
	mutex_lock(&peers->lock);
	if (peers->removed)
		err = -ESHUTDOWN;
	else
		err = xa_alloc(&file->bufs, &buf->handle, NULL,
			       XA_LIMIT(1, NVMEP_MAX_BUFS), GFP_NOIO);
	if (!err) {
		buf->file = file;
		list_add_tail(&buf->node, &peers->bufs);
	}
	mutex_unlock(&peers->lock);
	return err == -EBUSY ? -ENOSPC : err;
}

/**
 * nvmep_buf_publish() - let a buffer be found by its handle
 * @buf: the buffer, reserved.  Another thread may guess the handle and release
 *	it: it is not the caller's any more
 */
void nvmep_buf_publish(struct nvmep_buf *buf)
{
	struct mutex *lock = &buf->ctrl->peers->lock;
	void *old;

	mutex_lock(lock);
	/* The place is there, so no memory is needed. */
	old = xa_store(&buf->file->bufs, buf->handle, buf, GFP_NOWAIT);
	mutex_unlock(lock);
	WARN_ON(old);
}

/**
 * nvmep_buf_unreserve() - nobody learns the handle: give both up
 * @buf: the buffer, reserved; the handle's reference goes
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
 * @file: the open controller node
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
 * nvmep_buf_release() - take a handle away
 * @file: the open controller node
 * @handle: the handle
 *
 * Return: 0, ENOENT, or EBUSY while a ring lies in the buffer, or its addresses
 * were told and a queue pair is alive that may use them.
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
		   (buf->exposed && !list_empty(&peers->alive))) {
		err = -EBUSY;
	} else {
		xa_erase(&file->bufs, handle);
		list_del_init(&buf->node);
	}
	mutex_unlock(&peers->lock);

	if (!err)
		nvmep_buf_forget(buf);
	return err;
}

/**
 * nvmep_buf_claim() - note that a ring is going to lie in a buffer
 * @file: the open controller node
 * @handle: the buffer's handle
 * @dir: what the controller does with the ring
 *
 * Until nvmep_buf_unclaim() the handle cannot be released.
 *
 * Return: the buffer, or an ERR_PTR: ENOENT, ESTALE, EACCES if it was not imported
 * for that.
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
	if (!nvmep_buf_admits(buf, dir))
		return ERR_PTR(-EACCES);
	buf->rings++;
	return buf;
}

/**
 * nvmep_buf_unclaim() - the ring is gone
 * @buf: the buffer
 */
void nvmep_buf_unclaim(struct nvmep_buf *buf)
{
	lockdep_assert_held(&buf->ctrl->peers->lock);
	WARN_ON(!buf->rings);
	buf->rings--;
}

/**
 * nvmep_buf_expose() - the buffer's addresses are about to reach user space
 * @buf: the buffer
 *
 * From here on any queue pair of the controller may access it.
 *
 * Return: 0, ESTALE if the exporter has asked for it back, ENOENT if its handle
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
 * nvmep_handle_span() - a command of the CPU is to move data of a buffer
 * @file: the open controller node
 * @handle: the buffer's handle
 * @offset: byte of it where the data begins
 * @length: bytes, not 0
 * @dir: what the controller does with it
 * @span: out
 *
 * Takes no lock that others wait for: each command of the hot path comes here.
 *
 * Return: as nvmep_buf_span(); ENOENT for a handle that is none.
 */
int nvmep_handle_span(struct nvmep_peer_file *file, u32 handle, u64 offset,
		      u32 length, enum dma_data_direction dir,
		      struct nvmep_span *span)
{
	int err = -ENOENT;
	struct nvmep_buf *buf;

	rcu_read_lock();
	buf = xa_load(&file->bufs, handle);
	if (buf)
		err = nvmep_buf_span(buf, offset, length, dir, span);
	rcu_read_unlock();
	return err;
}

/* --- buffers whose node is closed ----------------------------------------- */

/* The first one that no queue pair can reach which was alive at the close. */
static void *nvmep_buf_take_kept(struct list_head *node, const void *context)
{
	struct nvmep_buf *buf = list_entry(node, struct nvmep_buf, kept);
	const struct nvmep_peers *peers = context;

	if (!list_empty(&peers->alive) &&
	    list_first_entry(&peers->alive, struct nvmep_life, node)->birth <
	    buf->keep_until)
		return NULL;
	list_del_init(&buf->kept);
	list_del_init(&buf->node);
	return buf;
}

/**
 * nvmep_bufs_release_kept() - let go of buffers that waited for queue pairs
 * @peers: one of its queue pairs has ended
 */
void nvmep_bufs_release_kept(struct nvmep_peers *peers)
{
	struct nvmep_buf *buf;

	while ((buf = nvmep_take_first(&peers->lock, &peers->kept,
				       nvmep_buf_take_kept, peers)))
		nvmep_buf_forget(buf);
}

/* --- unbinding ----------------------------------------------------------- */

static void *nvmep_buf_take(struct list_head *node, const void *unused)
{
	struct nvmep_buf *buf = list_entry(node, struct nvmep_buf, node);

	list_del_init(&buf->node);
	return nvmep_buf_get(buf);
}

/**
 * nvmep_bufs_detach_all() - take every buffer away from its exporter
 * @ctrl: removed: no new buffers can come, and no queue pair uses one
 *
 * A buffer that is being imported is not on the list yet, and one whose last
 * reference is just being dropped not any more.  Waits for those that an exporter has
 * mapped or is just mapping, as that is DMA by the device that is taken away; not
 * for an exporter that was called before that, which will find that it is too late.
 */
void nvmep_bufs_detach_all(struct nvmep_ctrl *ctrl)
{
	struct nvmep_peers *peers = ctrl->peers;
	struct nvmep_buf *buf;

	while ((buf = nvmep_take_first(&peers->lock, &peers->bufs,
				       nvmep_buf_take, NULL))) {
		nvmep_buf_detach(buf);
		nvmep_buf_put(buf);
	}
	/* Pairs with the one in nvmep_buf_begin_map(). */
	smp_mb();
	while (!wait_var_event_timeout(&peers->mapped,
				       !atomic_read(&peers->mapped),
				       NVMEP_EXPORTER_TIMEOUT))
		dev_warn(ctrl->dev,
			 "an exporter does not come back from mapping its memory: unbinding waits for it\n");
}
