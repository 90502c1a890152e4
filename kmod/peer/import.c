// SPDX-License-Identifier: GPL-2.0-only
/*
 * Importing GPU memory.
 *
 * The attachment is made with the NVMe function's own device, so that the
 * exporter maps the memory into the controller's DMA domain, and is dynamic
 * with peer2peer allowed, because that is what GPU drivers want to see before
 * they hand out video memory.  It is pinned: user space learns the addresses,
 * so they cannot change under it.
 *
 * Who only asks where the memory lies pins nothing.  Attaching tells little: an
 * exporter may refuse then, or take back peer2peer and so announce host RAM, but
 * many do so only when they map, and in whose BAR the memory lies and whether in
 * one at all nothing but a mapping shows.  So it is mapped, and unmapped before
 * the reservation lock is dropped: nobody is told to let go of what is not held.
 * An exporter may still move the memory to where a peer reaches it, as for any
 * mapping; it is free to move it back.
 *
 * When the exporter wants its memory back it calls us under the reservation
 * lock, where no admin command may be sent.  The callback only flags the buffer
 * and queues work; the work calls whoever imported the buffer, who stops every
 * queue pair that could reach the memory and then has it unmapped.
 *
 * Commands of the CPU on its own queues may move data of a buffer, too.  Each counts as
 * a user of it until the controller is done with it, and unmapping, whoever asks for
 * it, admits no more of them and waits for the last.  They end sooner or later: what
 * never comes back is stopped by its timeout.
 */
#include <linux/dma-buf.h>
#include <linux/dma-mapping.h>
#include <linux/dma-resv.h>
#include <linux/fs.h>
#include <linux/slab.h>
#include <linux/wait_bit.h>

#include "compat.h"
#include "core/ctrl.h"
#include "core/queue.h"
#include "import.h"
#include "peers.h"

/* How long an exporter may take to move its memory before the first use. */
#define NVMEP_FENCE_TIMEOUT	(10 * HZ)

/* How often a wait for commands looks at queues that nothing announces. */
#define NVMEP_USERS_POLL	(HZ / 100 + 1)

/**
 * nvmep_buf_invalid() - tell whether the exporter wants its memory back
 * @buf: the buffer
 *
 * Return: true if it does; it stays so.
 */
bool nvmep_buf_invalid(const struct nvmep_buf *buf)
{
	return READ_ONCE(buf->invalid);
}

/* --- commands of the CPU --------------------------------------------------- */

/**
 * nvmep_buf_admits() - was a buffer imported for this?
 * @buf: the buffer
 * @dir: what the controller is to do with it
 *
 * Return: true if it was.
 */
bool nvmep_buf_admits(const struct nvmep_buf *buf, enum dma_data_direction dir)
{
	return buf->dir == DMA_BIDIRECTIONAL || buf->dir == dir;
}

/* No command begins any more: because of whom? */
static int nvmep_buf_closed(const struct nvmep_buf *buf)
{
	if (nvmep_buf_invalid(buf))
		return -ESTALE;
	return READ_ONCE(buf->ctrl->peers->removed) ? -ESHUTDOWN : -ENOENT;
}

/**
 * nvmep_buf_span() - a command of the CPU is to move data of a buffer
 * @buf: the buffer; under rcu_read_lock()
 * @offset: byte of it where the data begins
 * @length: bytes, not 0
 * @dir: what the controller does with it
 * @span: out, with a reference of its users
 *
 * Return: 0, EACCES if it was not imported for that, ERANGE if it ends too early,
 * ESTALE if the exporter has asked for it back, ESHUTDOWN if the driver is being
 * unbound, ENOENT if its handle was released.
 */
int nvmep_buf_span(struct nvmep_buf *buf, u64 offset, u32 length,
		   enum dma_data_direction dir, struct nvmep_span *span)
{
	if (!nvmep_buf_admits(buf, dir))
		return -EACCES;
	if (length > buf->segments.length ||
	    offset > buf->segments.length - length)
		return -ERANGE;
	if (!percpu_ref_tryget_live(&buf->users))
		return nvmep_buf_closed(buf);
	/* One does it, and so before any kill that it would have to wait for. */
	if (unlikely(!READ_ONCE(buf->used)) && !xchg(&buf->used, true))
		percpu_ref_switch_to_percpu(&buf->users);
	*span = (struct nvmep_span){
		.segment = nvmep_segments_find(&buf->segments, offset),
		.offset = offset,
		.length = length,
		.users = &buf->users,
	};
	return 0;
}

static void nvmep_buf_unused(struct percpu_ref *users)
{
	struct nvmep_buf *buf = container_of(users, struct nvmep_buf, users);

	complete_all(&buf->idle);
}

static void nvmep_buf_close(struct nvmep_buf *buf)
{
	dma_resv_assert_held(buf->dmabuf->resv);

	if (!percpu_ref_is_dying(&buf->users))
		percpu_ref_kill(&buf->users);
}

/* From here on the controller moves no data of it for the CPU. */
static void nvmep_buf_drain(struct nvmep_buf *buf)
{
	dma_resv_lock(buf->dmabuf->resv, NULL);
	nvmep_buf_close(buf);
	dma_resv_unlock(buf->dmabuf->resv);
	while (!wait_for_completion_timeout(&buf->idle, NVMEP_USERS_POLL))
		nvmep_queues_poll_unannounced(buf->ctrl);
}

/* --- the exporter ---------------------------------------------------------- */

/* Under the reservation lock of an exporter: flag, queue, go. */
static void nvmep_buf_invalidate(struct dma_buf_attachment *attach)
{
	struct nvmep_buf *buf = attach->importer_priv;

	dma_resv_assert_held(attach->dmabuf->resv);

	/* Some exporters place the memory, and say so, while it is pinned. */
	if (!buf->sgt || buf->invalid)
		return;
	WRITE_ONCE(buf->invalid, true);
	nvmep_buf_close(buf);
	queue_work(buf->ctrl->peers->invalidate_wq,
		   &buf->invalidate_work);
}

static const struct dma_buf_attach_ops nvmep_buf_attach_ops = {
	.allow_peer2peer = true,
	.nvmep_invalidate_member = nvmep_buf_invalidate,
};

/*
 * Exporters refuse a peer in several ways, one of which is no error code for
 * user space.
 */
static int nvmep_exporter_error(struct nvmep_ctrl *ctrl, int err)
{
	if (err != -EOPNOTSUPP && err != -ENOTSUPP && err != -EINVAL)
		return err;
	dev_info_ratelimited(ctrl->dev,
			     "the exporter does not let this controller reach its dma-buf (error %d)\n",
			     err);
	return -EXDEV;
}

/* Long segments do not fit into a bounce buffer: mapping them fails already. */
static int nvmep_map_error(struct nvmep_ctrl *ctrl, int err)
{
	if (!nvmep_route_translated(ctrl->dev) &&
	    dma_max_mapping_size(ctrl->dev) != SIZE_MAX)
		return -EOPNOTSUPP;
	return nvmep_exporter_error(ctrl, err);
}

/*
 * From here until nvmep_buf_detach() the exporter may use the controller's device
 * for DMA, and unbinding waits for it.  Either unbinding sees the count or this sees
 * that it has begun, so none begins any more once it has stopped to wait.
 */
static int nvmep_buf_begin_map(struct nvmep_buf *buf)
{
	struct nvmep_peers *peers = buf->ctrl->peers;

	buf->counted = true;
	atomic_inc(&peers->mapped);
	/* Pairs with the one in nvmep_bufs_detach_all(). */
	smp_mb__after_atomic();
	return READ_ONCE(peers->removed) ? -ESHUTDOWN : 0;
}

static void nvmep_buf_end_map(struct nvmep_buf *buf)
{
	struct nvmep_peers *peers = buf->ctrl->peers;

	if (buf->counted && atomic_dec_and_test(&peers->mapped))
		wake_up_var(&peers->mapped);
	buf->counted = false;
}

static int nvmep_buf_map_locked(struct nvmep_buf *buf, u64 length)
{
	struct sg_table *sgt;
	int err;

	dma_resv_assert_held(buf->dmabuf->resv);

	err = nvmep_buf_begin_map(buf);
	if (err)
		return err;
	sgt = dma_buf_map_attachment(buf->attach, buf->dir);
	if (IS_ERR(sgt))
		return nvmep_map_error(buf->ctrl, PTR_ERR(sgt));
	buf->sgt = sgt;
	return nvmep_segments_read(&buf->segments, buf->ctrl, sgt, buf->offset,
				   length);
}

static int nvmep_buf_pin_locked(struct nvmep_buf *buf, u64 length)
{
	int err = dma_buf_pin(buf->attach);

	if (err)
		return nvmep_exporter_error(buf->ctrl, err);
	buf->pinned = true;
	return nvmep_buf_map_locked(buf, length);
}

static int nvmep_buf_map(struct nvmep_buf *buf, u64 length)
{
	struct dma_resv *resv = buf->dmabuf->resv;
	long left;
	int err;

	err = dma_resv_lock_interruptible(resv, NULL);
	if (err)
		return err;
	err = nvmep_buf_pin_locked(buf, length);
	dma_resv_unlock(resv);
	if (err)
		return err;

	left = dma_resv_wait_timeout(resv, DMA_RESV_USAGE_KERNEL, true,
				     NVMEP_FENCE_TIMEOUT);
	if (left < 0)
		return left;
	return left ? 0 : -ETIMEDOUT;
}

static void nvmep_buf_unmap_locked(struct nvmep_buf *buf)
{
	dma_resv_assert_held(buf->dmabuf->resv);

	if (buf->sgt)
		dma_buf_unmap_attachment(buf->attach, buf->sgt, buf->dir);
	buf->sgt = NULL;
	if (buf->pinned)
		dma_buf_unpin(buf->attach);
	buf->pinned = false;
}

static void nvmep_buf_unmap_attached(struct nvmep_buf *buf)
{
	lockdep_assert_held(&buf->lock);

	nvmep_buf_drain(buf);
	dma_resv_lock(buf->dmabuf->resv, NULL);
	nvmep_buf_unmap_locked(buf);
	dma_resv_unlock(buf->dmabuf->resv);
}

/**
 * nvmep_buf_unmap() - give the exporter its memory back
 * @buf: the buffer; no queue pair accesses it any more, or its user answers for that
 *
 * Waits for commands of the CPU that move data of it.
 */
void nvmep_buf_unmap(struct nvmep_buf *buf)
{
	mutex_lock(&buf->lock);
	if (buf->attach)
		nvmep_buf_unmap_attached(buf);
	mutex_unlock(&buf->lock);
}

static void nvmep_buf_invalidate_work(struct work_struct *work)
{
	struct nvmep_buf *buf =
		container_of(work, struct nvmep_buf, invalidate_work);

	buf->reclaim(buf);
}

/**
 * nvmep_buf_detach() - let go of the exporter's memory for good
 * @buf: the buffer; no queue pair uses it any more
 *
 * Waits for commands of the CPU that move data of it.
 */
void nvmep_buf_detach(struct nvmep_buf *buf)
{
	mutex_lock(&buf->lock);
	if (buf->attach) {
		nvmep_buf_unmap_attached(buf);
		dma_buf_detach(buf->dmabuf, buf->attach);
		buf->attach = NULL;
		nvmep_buf_end_map(buf);
	}
	mutex_unlock(&buf->lock);

	/* With the attachment gone nobody queues it again. */
	cancel_work_sync(&buf->invalidate_work);
}

/* The count of users is for all who may have found the buffer, as the buffer is. */
static void nvmep_buf_free_rcu(struct rcu_head *rcu)
{
	struct nvmep_buf *buf = container_of(rcu, struct nvmep_buf, rcu);

	percpu_ref_exit(&buf->users);
	kfree(buf);
}

static void nvmep_buf_free(struct kref *ref)
{
	struct nvmep_buf *buf = container_of(ref, struct nvmep_buf, ref);
	struct nvmep_ctrl *ctrl = buf->ctrl;

	nvmep_buf_detach(buf);
	dma_buf_put(buf->dmabuf);
	nvmep_objects_add(&ctrl->peers->objects, NVMEP_OBJECT_BUFS, -1);
	nvmep_segments_free(&buf->segments);
	call_rcu(&buf->rcu, nvmep_buf_free_rcu);
	nvmep_ctrl_put(ctrl);
}

/**
 * nvmep_buf_get() - take a reference
 * @buf: the buffer
 *
 * Return: @buf.
 */
struct nvmep_buf *nvmep_buf_get(struct nvmep_buf *buf)
{
	kref_get(&buf->ref);
	return buf;
}

/**
 * nvmep_buf_put() - drop a reference
 * @buf: the buffer
 */
void nvmep_buf_put(struct nvmep_buf *buf)
{
	kref_put(&buf->ref, nvmep_buf_free);
}

static const enum dma_data_direction nvmep_access_direction[] = {
	[NVME_PEER_ACCESS_BOTH] = DMA_BIDIRECTIONAL,
	[NVME_PEER_ACCESS_READ] = DMA_TO_DEVICE,
	[NVME_PEER_ACCESS_WRITE] = DMA_FROM_DEVICE,
};

/* A reference to the dma-buf, if whoever holds the file may do that with it. */
static struct dma_buf *nvmep_dma_buf_get(int fd, enum nvme_peer_access access)
{
	struct dma_buf *dmabuf = dma_buf_get(fd);

	if (IS_ERR(dmabuf) || access == NVME_PEER_ACCESS_READ ||
	    dmabuf->file->f_mode & FMODE_WRITE)
		return dmabuf;
	dma_buf_put(dmabuf);
	return ERR_PTR(-EACCES);
}

/* One without anything in it. */
static struct nvmep_buf *nvmep_buf_new(void)
{
	struct nvmep_buf *buf = kzalloc(sizeof(*buf), GFP_KERNEL);

	if (!buf)
		return NULL;
	if (percpu_ref_init(&buf->users, nvmep_buf_unused,
			    PERCPU_REF_INIT_ATOMIC, GFP_KERNEL)) {
		kfree(buf);
		return NULL;
	}
	kref_init(&buf->ref);
	init_completion(&buf->idle);
	mutex_init(&buf->lock);
	INIT_LIST_HEAD(&buf->node);
	INIT_LIST_HEAD(&buf->kept);
	INIT_WORK(&buf->invalidate_work, nvmep_buf_invalidate_work);
	return buf;
}

static struct nvmep_buf *nvmep_buf_alloc(struct nvmep_ctrl *ctrl,
					 const struct nvme_peer_buf_import *cmd,
					 void (*reclaim)(struct nvmep_buf *buf))
{
	struct dma_buf *dmabuf = nvmep_dma_buf_get(cmd->dmabuf_fd, cmd->access);
	struct nvmep_buf *buf;

	if (IS_ERR(dmabuf))
		return ERR_CAST(dmabuf);

	buf = nvmep_buf_new();
	if (!buf) {
		dma_buf_put(dmabuf);
		return ERR_PTR(-ENOMEM);
	}
	buf->ctrl = nvmep_ctrl_get(ctrl);
	buf->dmabuf = dmabuf;
	buf->offset = cmd->offset;
	buf->dir = nvmep_access_direction[cmd->access];
	buf->reclaim = reclaim;
	nvmep_objects_add(&ctrl->peers->objects, NVMEP_OBJECT_BUFS, 1);
	return buf;
}

static struct nvmep_buf *nvmep_buf_attach(struct nvmep_ctrl *ctrl,
					  const struct nvme_peer_buf_import *cmd,
					  void (*reclaim)(struct nvmep_buf *buf))
{
	struct dma_buf_attachment *attach;
	struct nvmep_buf *buf;
	int err;

	if (READ_ONCE(ctrl->peers->removed))
		return ERR_PTR(-ESHUTDOWN);
	buf = nvmep_buf_alloc(ctrl, cmd, reclaim);
	if (IS_ERR(buf))
		return buf;
	attach = dma_buf_dynamic_attach(buf->dmabuf, ctrl->dev,
					&nvmep_buf_attach_ops, buf);
	if (IS_ERR(attach)) {
		err = nvmep_exporter_error(ctrl, PTR_ERR(attach));
		nvmep_buf_put(buf);
		return ERR_PTR(err);
	}
	buf->attach = attach;
	return buf;
}

/**
 * nvmep_buf_import() - attach to a dma-buf, map it and find out where it lies
 * @ctrl: the controller to map it for
 * @cmd: the dma-buf, and what of it, already checked
 * @reclaim: for when the exporter wants it back, see struct nvmep_buf
 *
 * The verdict is in the buffer; a NONE is the caller's to refuse.  The exporter may
 * take any time, so nobody who is waited for calls this: neither the gate nor another
 * lock of ours is held.
 *
 * Return: the buffer without a handle, or an ERR_PTR: EBADF or EINVAL for what
 * is no dma-buf, EACCES for one that is open for reading only, ERANGE if it ends too
 * early, EXDEV if the exporter does not admit the controller,
 * EOPNOTSUPP if the controller's DMA to it bounces, EINTR for a process that was
 * killed, ESHUTDOWN if the driver is being unbound, else what the exporter said.
 */
struct nvmep_buf *nvmep_buf_import(struct nvmep_ctrl *ctrl,
				   const struct nvme_peer_buf_import *cmd,
				   void (*reclaim)(struct nvmep_buf *buf))
{
	struct nvmep_buf *buf = nvmep_buf_attach(ctrl, cmd, reclaim);
	int err;

	if (IS_ERR(buf))
		return buf;
	err = nvmep_buf_map(buf, cmd->length);
	if (!err)
		err = nvmep_place_find(&buf->place, ctrl, &buf->segments);
	if (err) {
		nvmep_buf_put(buf);
		return ERR_PTR(err);
	}
	return buf;
}

/**
 * nvmep_buf_locate() - find out where a dma-buf lies, without pinning it
 * @ctrl: the controller that asks
 * @fd: the dma-buf
 * @place: out: true for the moment
 *
 * Called as nvmep_buf_import().
 *
 * Return: 0, or an error as that.
 */
int nvmep_buf_locate(struct nvmep_ctrl *ctrl, int fd, struct nvmep_place *place)
{
	const struct nvme_peer_buf_import cmd = {
		.dmabuf_fd = fd,
		.access = NVME_PEER_ACCESS_READ,
	};
	struct nvmep_buf *buf = nvmep_buf_attach(ctrl, &cmd, NULL);
	int err;

	if (IS_ERR(buf))
		return PTR_ERR(buf);
	err = dma_resv_lock_interruptible(buf->dmabuf->resv, NULL);
	if (!err) {
		err = nvmep_buf_map_locked(buf, 0);
		if (!err)
			err = nvmep_place_find(place, ctrl, &buf->segments);
		nvmep_buf_unmap_locked(buf);
		dma_resv_unlock(buf->dmabuf->resv);
	}
	nvmep_buf_put(buf);
	return err;
}
