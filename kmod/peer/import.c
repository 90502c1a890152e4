// SPDX-License-Identifier: GPL-2.0-only
/*
 * Buffers: dma-bufs imported for the controller.
 *
 * The attachment uses the NVMe function's own device, so the exporter maps the
 * memory into the controller's DMA domain.  It is dynamic with peer2peer
 * allowed: GPU drivers require that to export video memory.  The memory is
 * pinned, because user space gets its DMA addresses.
 *
 * NVME_PEER_ROUTE pins nothing, but on older kernels a mapping does
 * (NVMEP_REVOCABLE_PINS).  Attaching does not show the placement: an
 * exporter may refuse, or clear peer2peer to announce host RAM, but many do so
 * only when they map.  So the memory is mapped, read, and unmapped.  Reading
 * takes long, so it is done without the reservation lock.  An invalidation in
 * between needs no action: the mapping stays valid until it is unmapped, there
 * is no DMA, and the result is where the memory was.  As with any mapping, the
 * exporter may move the memory to where the controller reaches it, and may move
 * it back later.
 *
 * An exporter invalidates a buffer under the reservation lock, where no admin
 * command may be sent (the reset that the command may need would deadlock).
 * The callback sets a flag and queues work.  The work calls on_invalidate,
 * which stops the queue pairs that may access the memory and then unmaps it.
 *
 * Commands of the CPU on its own queues, and those of mediated queue pairs, may
 * move data of a buffer as well.  The former hold a reference in buf->users each,
 * the latter one together, until the controller has completed them.  Unmapping
 * refuses new commands and waits for the last.  The wait is bounded: the timeout
 * handler ends a command that does not complete.
 *
 * Imported host memory counts as locked memory of the importing user
 * (RLIMIT_MEMLOCK).  The limit of device memory is that of its driver.
 */
#include <linux/dma-buf.h>
#include <linux/dma-map-ops.h>
#include <linux/dma-mapping.h>
#include <linux/dma-resv.h>
#include <linux/fs.h>
#include <linux/io.h>
#include <linux/mm.h>
#include <linux/scatterlist.h>
#include <linux/sched/signal.h>
#include <linux/slab.h>
#include <linux/wait_bit.h>

#include "compat.h"
#include "core/ctrl.h"
#include "core/queue.h"
#include "export.h"
#include "host_buffer.h"
#include "host_pages.h"
#include "import.h"
#include "peer.h"
#include "route.h"

/* Timeout for the exporter's fences: it may be moving the memory. */
#define NVMEP_FENCE_TIMEOUT	(10 * HZ)

/*
 * Poll interval for CPU queues without interrupts while waiting for commands.
 */
#define NVMEP_USERS_POLL	(HZ / 100 + 1)

/* --- segments of a mapping ----------------------------------------------- */

/*
 * Coalesces the DMA addresses of bytes @first to @end of the mapping.  Called
 * twice: first without a list, to count the segments.
 */
static int nvmep_segments_fill(struct nvmep_segments *segments,
			       struct sg_table *sgt, u64 first, u64 end)
{
	struct nvmep_segment now = { };
	struct scatterlist *sg;
	u64 begin, stop, at = 0;
	dma_addr_t dma;
	int i, err = 0;

	segments->count = 0;
	for_each_sgtable_dma_sg(sgt, sg, i) {
		err = nvmep_walk_resched();
		if (err)
			break;
		begin = max(at, first);
		dma = sg_dma_address(sg) + (begin - at);
		at += sg_dma_len(sg);
		stop = min(at, end);
		if (begin >= stop)
			continue;
		if (now.length && dma == now.dma + now.length) {
			now.length += stop - begin;
		} else {
			now.offset += now.length;
			now.dma = dma;
			now.length = stop - begin;
			segments->count++;
		}
		if (segments->list)
			segments->list[segments->count - 1] = now;
	}
	segments->length = now.offset + now.length;
	return err;
}

/* PRPs and rings need whole controller pages. */
static bool nvmep_segments_aligned(const struct nvmep_segments *segments,
				   u32 page_size)
{
	u32 i;

	for (i = 0; i < segments->count; i++)
		if (!IS_ALIGNED(segments->list[i].dma, page_size) ||
		    !IS_ALIGNED(segments->list[i].length, page_size))
			return false;
	return true;
}

/*
 * There is no DMA sync between commands of a peer, so a bounce buffer cannot
 * work, and neither can a device that does not snoop the caches of the CPU.
 * Behind an IOMMU whole pages never bounce.
 */
static bool nvmep_segments_need_sync(const struct nvmep_segments *segments,
				     struct device *dev)
{
	u32 i;

	if (!dev_is_dma_coherent(dev))
		return true;
	if (nvmep_route_translated(dev))
		return false;
	for (i = 0; i < segments->count; i++)
		if (dma_need_sync(dev, segments->list[i].dma))
			return true;
	return false;
}

/**
 * nvmep_segments_read() - read the DMA addresses of a range of a mapping
 * @segments: out; nvmep_segments_free() it, also after an error
 * @ctrl: the controller that the memory is mapped for
 * @sgt: the mapping
 * @offset: start of the range in the mapping, in bytes
 * @length: bytes of the range, 0: to the end of the mapping.  An overflowing
 *	range is shorter than @length and therefore refused
 *
 * Return: 0; -EINVAL if the range is empty or not a multiple of controller
 * pages; -ERANGE if it exceeds the mapping or begins at its end; -EOPNOTSUPP if
 * DMA would bounce; -ENOMEM; -EINTR after a fatal signal.
 */
int nvmep_segments_read(struct nvmep_segments *segments,
			const struct nvmep_ctrl *ctrl, struct sg_table *sgt,
			u64 offset, u64 length)
{
	u64 end = length ? offset + length : U64_MAX;
	int err;

	err = nvmep_segments_fill(segments, sgt, offset, end);
	if (err)
		return err;
	if ((offset && !segments->count) ||
	    (length && segments->length != length))
		return -ERANGE;
	if (!segments->count)
		return -EINVAL;
	segments->list = kvcalloc(segments->count, sizeof(*segments->list),
				  GFP_KERNEL_ACCOUNT);
	if (!segments->list)
		return -ENOMEM;
	err = nvmep_segments_fill(segments, sgt, offset, end);
	if (err)
		return err;
	if (!nvmep_segments_aligned(segments, ctrl->page_size))
		return -EINVAL;
	return nvmep_segments_need_sync(segments, ctrl->dev) ? -EOPNOTSUPP : 0;
}

/**
 * nvmep_segments_free() - free the list
 * @segments: the segments, may be empty
 */
void nvmep_segments_free(struct nvmep_segments *segments)
{
	kvfree(segments->list);
}

/**
 * nvmep_segments_find() - find the segment that holds a byte
 * @segments: the segments
 * @offset: offset of the byte, less than @segments->length
 *
 * Return: the segment.
 */
const struct nvmep_segment *
nvmep_segments_find(const struct nvmep_segments *segments, u64 offset)
{
	u32 low = 0;
	u32 high = segments->count;

	while (high - low > 1) {
		u32 middle = low + (high - low) / 2;

		if (segments->list[middle].offset <= offset)
			low = middle;
		else
			high = middle;
	}
	return &segments->list[low];
}

/* --- buffers ------------------------------------------------------------- */

/**
 * nvmep_buf_invalid() - has the exporter invalidated the buffer?
 * @buf: the buffer
 *
 * Return: true if it has; it stays so.
 */
bool nvmep_buf_invalid(const struct nvmep_buf *buf)
{
	return READ_ONCE(buf->invalid);
}

/* --- commands of the CPU ------------------------------------------------- */

/**
 * nvmep_buf_dir_allowed() - was the buffer imported for this DMA direction?
 * @buf: the buffer
 * @dir: DMA direction of the controller
 *
 * Return: true if it was.
 */
bool nvmep_buf_dir_allowed(const struct nvmep_buf *buf,
			   enum dma_data_direction dir)
{
	return buf->dir == DMA_BIDIRECTIONAL || buf->dir == dir;
}

/* The error for a command on a buffer that accepts no new commands. */
static int nvmep_buf_dead_errno(const struct nvmep_buf *buf)
{
	if (nvmep_buf_invalid(buf))
		return -ESTALE;
	return READ_ONCE(buf->ctrl->peers->removed) ? -ESHUTDOWN : -ENOENT;
}

/**
 * nvmep_buf_range() - get a range of a buffer for a command of the CPU
 * @buf: the buffer; under rcu_read_lock()
 * @offset: start of the range in the buffer, in bytes
 * @length: bytes, not 0
 * @dir: DMA direction of the controller
 * @range: out, with a reference to @buf->users
 *
 * Return: 0; -EACCES if it was not imported for @dir; -ERANGE if the range
 * exceeds the buffer; -ESTALE if the exporter has invalidated it; -ESHUTDOWN if
 * the driver is being unbound; -ENOENT if its handle was released.
 */
int nvmep_buf_range(struct nvmep_buf *buf, u64 offset, u32 length,
		    enum dma_data_direction dir, struct nvmep_dma_range *range)
{
	if (!nvmep_buf_dir_allowed(buf, dir))
		return -EACCES;
	if (length > buf->segments.length ||
	    offset > buf->segments.length - length)
		return -ERANGE;
	if (!percpu_ref_tryget_live(&buf->users))
		return nvmep_buf_dead_errno(buf);
	/*
	 * Only the xchg() winner switches to percpu mode, so no switch back to
	 * atomic mode can be in progress that it would have to sleep for under
	 * RCU.  If the ref was killed meanwhile, the call does nothing.
	 */
	if (unlikely(!READ_ONCE(buf->users_percpu)) &&
	    !xchg(&buf->users_percpu, true))
		percpu_ref_switch_to_percpu(&buf->users);
	*range = (struct nvmep_dma_range){
		.segment = nvmep_segments_find(&buf->segments, offset),
		.offset = offset,
		.length = length,
		.users = &buf->users,
	};
	return 0;
}

static void nvmep_buf_users_gone(struct percpu_ref *users)
{
	struct nvmep_buf *buf = container_of(users, struct nvmep_buf, users);

	complete_all(&buf->users_idle);
}

static void nvmep_buf_kill_users(struct nvmep_buf *buf)
{
	dma_resv_assert_held(buf->dmabuf->resv);

	if (!percpu_ref_is_dying(&buf->users))
		percpu_ref_kill(&buf->users);
}

/**
 * nvmep_buf_stop_users() - let no further command of the kernel use a buffer
 * @buf: the buffer; it will be detached
 *
 * Commands of the CPU and of mediated queue pairs.
 *
 * A buffer that commands of the CPU have used needs a grace period to drain.
 * Before many buffers are detached this is called for each, so that one serves
 * all.
 */
void nvmep_buf_stop_users(struct nvmep_buf *buf)
{
	dma_resv_lock(buf->dmabuf->resv, NULL);
	nvmep_buf_kill_users(buf);
	dma_resv_unlock(buf->dmabuf->resv);
}

/* On return no command of the kernel moves data of the buffer. */
static void nvmep_buf_drain_users(struct nvmep_buf *buf)
{
	nvmep_buf_stop_users(buf);
	while (!wait_for_completion_timeout(&buf->users_idle, NVMEP_USERS_POLL))
		nvmep_poll_polled_queues(buf->ctrl);
}

/* --- the exporter -------------------------------------------------------- */

/*
 * Called by the exporter under its reservation lock: flag, queue work, return.
 */
static void nvmep_buf_invalidate(struct dma_buf_attachment *attach)
{
	struct nvmep_buf *buf = attach->importer_priv;

	dma_resv_assert_held(attach->dmabuf->resv);

	/*
	 * Some exporters move the memory while pinning it and report that here.
	 * nvmep_buf_locate() passes no callback.
	 */
	if (!buf->sgt || buf->invalid || !buf->on_invalidate)
		return;
	WRITE_ONCE(buf->invalid, true);
	nvmep_buf_kill_users(buf);
	queue_work(buf->ctrl->peers->invalidate_wq,
		   &buf->invalidate_work);
}

static const struct dma_buf_attach_ops nvmep_buf_attach_ops = {
	.allow_peer2peer = true,
	.nvmep_invalidate_member = nvmep_buf_invalidate,
};

/*
 * Exporters refuse a peer with several error codes, one of which is not valid
 * for user space.
 */
static int nvmep_exporter_error(struct nvmep_ctrl *ctrl, int err)
{
	if (err != -EOPNOTSUPP && err != -ENOTSUPP && err != -EINVAL)
		return err;
	dev_info_ratelimited(ctrl->dev,
			     "import refused: the exporter does not map its dma-buf for this controller (error %d)\n",
			     err);
	return -EXDEV;
}

static int nvmep_map_error(struct nvmep_ctrl *ctrl, int err)
{
	if ((err == -EIO || err == -EINVAL || err == -ENOMEM) &&
	    nvmep_dma_bounces(ctrl->dev))
		return -EOPNOTSUPP;
	return nvmep_exporter_error(ctrl, err);
}

/*
 * From here until nvmep_buf_detach() the exporter may use the controller's
 * device for DMA, and unbinding waits for it.  The barriers pair: either
 * unbinding sees the count, or this sees @removed.  So no mapping starts after
 * unbinding has stopped waiting.
 */
static int nvmep_buf_begin_map(struct nvmep_buf *buf)
{
	struct nvmep_peers *peers = buf->ctrl->peers;

	if (!buf->counted)
		atomic_inc(&peers->mapped);
	buf->counted = true;
	/* Pairs with smp_mb() in nvmep_bufs_detach_all(). */
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

static int nvmep_buf_map_locked(struct nvmep_buf *buf)
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
	return 0;
}

static int nvmep_buf_pin_locked(struct nvmep_buf *buf, u64 length)
{
	int err = dma_buf_pin(buf->attach);

	if (err)
		return nvmep_exporter_error(buf->ctrl, err);
	buf->pinned = true;
	err = nvmep_buf_map_locked(buf);
	if (err)
		return err;
	/* After the unlock an invalidation may unmap the table. */
	return nvmep_segments_read(&buf->segments, buf->ctrl, buf->sgt,
				   buf->offset, length);
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

/* Pinning locks all of a dma-buf. */
static unsigned long nvmep_buf_locked_pages(const struct nvmep_buf *buf)
{
	return PAGE_ALIGN(buf->dmabuf->size) >> PAGE_SHIFT;
}

/* Under buf->lock, or without other users. */
static void nvmep_buf_uncharge(struct nvmep_buf *buf)
{
	nvmep_locked_uncharge(buf->user, nvmep_buf_locked_pages(buf));
	buf->user = NULL;
}

static void nvmep_buf_unmap_attached(struct nvmep_buf *buf)
{
	lockdep_assert_held(&buf->lock);

	nvmep_buf_drain_users(buf);
	/* Users read it. */
	if (buf->word)
		iounmap(buf->word);
	buf->word = NULL;
	dma_resv_lock(buf->dmabuf->resv, NULL);
	nvmep_buf_unmap_locked(buf);
	dma_resv_unlock(buf->dmabuf->resv);
	nvmep_buf_uncharge(buf);
}

/**
 * nvmep_buf_unmap() - unmap and unpin the exporter's memory
 * @buf: the buffer; no queue pair accesses it, or the owner is responsible
 *
 * Waits for commands of the kernel that use it.
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

	buf->on_invalidate(buf);
}

/**
 * nvmep_buf_detach() - unmap the buffer and detach from the dma-buf
 * @buf: the buffer; no queue pair accesses it
 *
 * Waits for commands of the kernel that use it.
 */
void nvmep_buf_detach(struct nvmep_buf *buf)
{
	mutex_lock(&buf->lock);
	if (buf->attach) {
		nvmep_buf_unmap_attached(buf);
		dma_buf_detach(buf->dmabuf, buf->attach);
		buf->attach = NULL;
	}
	nvmep_buf_end_map(buf);
	mutex_unlock(&buf->lock);

	/*
	 * Without an attachment there is no callback that could queue the work.
	 */
	cancel_work_sync(&buf->invalidate_work);
}

/* A lookup under RCU may still use @users: free it with the buffer. */
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
	nvmep_buf_uncharge(buf);
	dma_buf_put(buf->dmabuf);
	nvmep_leak_count(&ctrl->peers->leak_counters, NVMEP_OBJECT_BUFS, -1);
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
	[NVME_PEER_ACCESS_READ | NVME_PEER_ACCESS_WRITE] = DMA_BIDIRECTIONAL,
};

/* A buffer without controller and dma-buf. */
static struct nvmep_buf *nvmep_buf_alloc_empty(void)
{
	struct nvmep_buf *buf = kzalloc(sizeof(*buf), GFP_KERNEL_ACCOUNT);

	if (!buf)
		return NULL;
	if (percpu_ref_init(&buf->users, nvmep_buf_users_gone,
			    PERCPU_REF_INIT_ATOMIC, GFP_KERNEL_ACCOUNT)) {
		kfree(buf);
		return NULL;
	}
	kref_init(&buf->ref);
	init_completion(&buf->users_idle);
	mutex_init(&buf->lock);
	INIT_LIST_HEAD(&buf->node);
	INIT_WORK(&buf->invalidate_work, nvmep_buf_invalidate_work);
	return buf;
}

static struct nvmep_buf *
nvmep_buf_alloc(struct nvmep_ctrl *ctrl, struct dma_buf *dmabuf,
		const struct nvme_peer_buf_import *cmd,
		void (*on_invalidate)(struct nvmep_buf *buf))
{
	struct nvmep_buf *buf;

	if (cmd->access != NVME_PEER_ACCESS_READ &&
	    !(dmabuf->file->f_mode & FMODE_WRITE))
		return ERR_PTR(-EACCES);

	buf = nvmep_buf_alloc_empty();
	if (!buf)
		return ERR_PTR(-ENOMEM);
	get_dma_buf(dmabuf);
	buf->ctrl = nvmep_ctrl_get(ctrl);
	buf->dmabuf = dmabuf;
	buf->offset = cmd->offset;
	buf->dir = nvmep_access_direction[cmd->access];
	buf->on_invalidate = on_invalidate;
	nvmep_leak_count(&ctrl->peers->leak_counters, NVMEP_OBJECT_BUFS, 1);
	return buf;
}

/* On older kernels the call may map: see nvmep_dma_buf_attach_maps(). */
static int nvmep_buf_attach_exporter(struct nvmep_buf *buf)
{
	bool maps = nvmep_dma_buf_attach_maps(buf->dmabuf);
	struct dma_buf_attachment *attach;
	int err = maps ? nvmep_buf_begin_map(buf) : 0;

	if (err)
		return err;
	attach = dma_buf_dynamic_attach(buf->dmabuf, buf->ctrl->dev,
					&nvmep_buf_attach_ops, buf);
	if (IS_ERR(attach))
		return maps ? nvmep_map_error(buf->ctrl, PTR_ERR(attach)) :
			      nvmep_exporter_error(buf->ctrl, PTR_ERR(attach));
	buf->attach = attach;
	return 0;
}

static struct nvmep_buf *
nvmep_buf_attach(struct nvmep_ctrl *ctrl, struct dma_buf *dmabuf,
		 const struct nvme_peer_buf_import *cmd,
		 void (*on_invalidate)(struct nvmep_buf *buf))
{
	struct nvmep_buf *buf;
	int err;

	if (READ_ONCE(ctrl->peers->removed))
		return ERR_PTR(-ESHUTDOWN);
	buf = nvmep_buf_alloc(ctrl, dmabuf, cmd, on_invalidate);
	if (IS_ERR(buf))
		return buf;
	err = nvmep_buf_attach_exporter(buf);
	if (err) {
		nvmep_buf_put(buf);
		return ERR_PTR(err);
	}
	return buf;
}

/*
 * Does the mapping let the controller write memory that the caller may only
 * read?  Only an IOMMU could prevent that.
 */
static bool nvmep_buf_exceeds_mode(const struct nvmep_buf *buf)
{
	return !(buf->dmabuf->file->f_mode & FMODE_WRITE) &&
	       nvmep_dma_buf_attach_maps(buf->dmabuf) &&
	       nvmep_route_translated(buf->ctrl->dev);
}

/**
 * nvmep_buf_import() - attach to a dma-buf, map it and find its placement
 * @ctrl: the controller to map it for
 * @dmabuf: the dma-buf
 * @cmd: access and range, validated
 * @on_invalidate: see struct nvmep_buf
 *
 * The caller refuses a placement that is out of reach.  The exporter may block
 * for any time: called without ioctl_rwsem or another lock of this module.
 *
 * Return: the buffer without a handle, or an ERR_PTR: -EINVAL if the range is
 * empty or not aligned to controller pages, -EACCES if the file is open for reading only and
 * cmd->access is not NVME_PEER_ACCESS_READ or the mapping would not be for
 * reading only, -ERANGE if the range exceeds the
 * dma-buf, -EXDEV if the exporter refuses the controller, -EOPNOTSUPP if DMA
 * would bounce, -ETIMEDOUT if the exporter's fences are not signalled in time,
 * -ESTALE if the exporter has invalidated the buffer, -EINTR if a signal
 * interrupted the call, -ESHUTDOWN if the driver is being unbound, -ENOMEM, else
 * the exporter's error.
 */
struct nvmep_buf *nvmep_buf_import(struct nvmep_ctrl *ctrl,
				   struct dma_buf *dmabuf,
				   const struct nvme_peer_buf_import *cmd,
				   void (*on_invalidate)(struct nvmep_buf *buf))
{
	struct nvmep_buf *buf = nvmep_buf_attach(ctrl, dmabuf, cmd,
						 on_invalidate);
	int err;

	if (IS_ERR(buf))
		return buf;
	err = nvmep_buf_exceeds_mode(buf) ? -EACCES :
	      nvmep_buf_map(buf, cmd->length);
	if (!err)
		err = nvmep_placement_find(&buf->placement, buf);
	if (err) {
		nvmep_buf_put(buf);
		return ERR_PTR(err);
	}
	return buf;
}

/**
 * nvmep_buf_charge() - count a new buffer as locked memory of the calling user
 * @buf: the buffer; host memory counts, memory of a device does not
 *
 * A host buffer is charged to the user that allocated it.  Uncharged when the
 * buffer is unmapped.
 *
 * Return: 0, or -ENOBUFS if it exceeds RLIMIT_MEMLOCK.
 */
int nvmep_buf_charge(struct nvmep_buf *buf)
{
	int err;

	if (buf->placement.path.reason != NVME_PEER_REASON_HOST_MEMORY ||
	    nvmep_is_host_buffer(buf->dmabuf))
		return 0;
	mutex_lock(&buf->lock);
	err = nvmep_locked_charge(&buf->user, nvmep_buf_locked_pages(buf));
	mutex_unlock(&buf->lock);
	return err;
}

static int nvmep_buf_map_word_locked(struct nvmep_buf *buf)
{
	phys_addr_t phys;

	lockdep_assert_held(&buf->lock);

	phys = nvmep_buf_phys(buf);
	if (!phys)
		return nvmep_buf_invalid(buf) ? -ESTALE : -ENXIO;
	buf->word = ioremap(phys, sizeof(u32));
	return buf->word ? 0 : -ENOMEM;
}

/**
 * nvmep_buf_map_word() - map a word that orders data of the controller
 * @buf: new buffer; nothing is done for host memory, which needs no order
 *
 * Users of the buffer may read @word.  Unmapped with the buffer.
 *
 * Return: 0, -ENXIO if the memory has no physical address, -ESTALE, -ENOMEM.
 */
int nvmep_buf_map_word(struct nvmep_buf *buf)
{
	int err;

	if (buf->placement.path.reason == NVME_PEER_REASON_HOST_MEMORY)
		return 0;
	mutex_lock(&buf->lock);
	err = nvmep_buf_map_word_locked(buf);
	mutex_unlock(&buf->lock);
	return err;
}

/**
 * nvmep_buf_locate() - find the placement of a dma-buf without pinning it
 * @ctrl: the controller
 * @fd: the dma-buf
 * @placement: out: the current placement
 *
 * Called without locks, as nvmep_buf_import().
 *
 * Return: 0; -EBADF or -EINVAL if the file is not a dma-buf, or an error of
 * nvmep_buf_import().
 */
int nvmep_buf_locate(struct nvmep_ctrl *ctrl, int fd,
		     struct nvmep_placement *placement)
{
	const struct nvme_peer_buf_import cmd = {
		.access = NVME_PEER_ACCESS_READ,
	};
	struct dma_buf *dmabuf = dma_buf_get(fd);
	struct nvmep_buf *buf;
	int err;

	if (IS_ERR(dmabuf))
		return PTR_ERR(dmabuf);
	buf = nvmep_buf_attach(ctrl, dmabuf, &cmd, NULL);
	dma_buf_put(dmabuf);
	if (IS_ERR(buf))
		return PTR_ERR(buf);
	err = dma_resv_lock_interruptible(buf->dmabuf->resv, NULL);
	if (!err) {
		err = nvmep_buf_map_locked(buf);
		dma_resv_unlock(buf->dmabuf->resv);
	}
	if (!err)
		err = nvmep_segments_read(&buf->segments, ctrl, buf->sgt, 0, 0);
	if (!err)
		err = nvmep_placement_find(placement, buf);
	nvmep_buf_put(buf);
	return err;
}
