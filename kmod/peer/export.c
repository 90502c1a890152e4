// SPDX-License-Identifier: GPL-2.0-only
/*
 * The dma-bufs of a queue pair or of a host buffer: lifetime, access control,
 * accounting.
 *
 * Each kind of memory has a table of operations.  Host pages (host_pages.c)
 * need no revocation; doorbells (export_doorbell.c) do.  After the end of a
 * queue pair existing users of host pages stay and new ones are refused.  The
 * status page accepts new users even then, because it reports the end.
 */
#include <linux/dcache.h>
#include <linux/dma-buf.h>
#include <linux/dma-resv.h>
#include <linux/kref.h>
#include <linux/mm.h>
#include <linux/module.h>
#include <linux/slab.h>
#include <linux/wait_bit.h>
#include <linux/workqueue.h>

#include "compat.h"
#include "core/ctrl.h"
#include "export.h"
#include "module.h"
#include "peer.h"
#include "qp.h"

/* Maximum number of open dma-bufs of one queue pair. */
#define NVMEP_MAX_EXPORTS	64

/* Interval of a revocation work's attempts to take a lock. */
#define NVMEP_RETRY_MS		10

/**
 * nvmep_exports_admit() - are new dma-bufs, and new users of them, allowed?
 * @exports: the dma-bufs of a queue pair
 *
 * Without the lock the answer may be outdated.
 *
 * Return: 0; -ENODEV if the queue pair has ended; -EAGAIN while its doorbells
 * are withdrawn.
 */
int nvmep_exports_admit(const struct nvmep_exports *exports)
{
	if (READ_ONCE(exports->ended))
		return -ENODEV;
	return READ_ONCE(exports->withdrawn) ? -EAGAIN : 0;
}

/* Are new users of this dma-buf allowed? */
static int nvmep_export_admit(const struct nvmep_export *export)
{
	return export->ops->stays_open ? 0 :
	       nvmep_exports_admit(export->exports);
}

static void nvmep_export_count(const struct nvmep_export *export,
			       enum nvmep_object kind, int change)
{
	nvmep_leak_count(&export->exports->ctrl->peers->leak_counters, kind,
			 change);
}

/* --- devices ------------------------------------------------------------- */

static int nvmep_export_attach(struct dma_buf *dmabuf,
			       struct dma_buf_attachment *attach)
{
	struct nvmep_export *export = dmabuf->priv;
	int err = nvmep_export_admit(export);

	if (!err && export->ops->attach)
		err = export->ops->attach(export, attach);
	if (err)
		return err;
	atomic_inc(&export->exports->importers);
	nvmep_export_count(export, NVMEP_OBJECT_IMPORTERS, 1);
	return 0;
}

static void nvmep_export_detach(struct dma_buf *dmabuf,
				struct dma_buf_attachment *attach)
{
	struct nvmep_export *export = dmabuf->priv;

	if (export->ops->detach)
		export->ops->detach(attach);
	atomic_dec(&export->exports->importers);
	nvmep_export_count(export, NVMEP_OBJECT_IMPORTERS, -1);
}

/* The memory never moves: pinning only checks that the importer is allowed. */
static int nvmep_export_pin(struct dma_buf_attachment *attach)
{
	struct nvmep_export *export = attach->dmabuf->priv;
	int err = nvmep_export_admit(export);

	dma_resv_assert_held(attach->dmabuf->resv);

	if (!err && export->ops->pin)
		err = export->ops->pin(export, attach);
	return err;
}

static void nvmep_export_unpin(struct dma_buf_attachment *attach)
{
	struct nvmep_export *export = attach->dmabuf->priv;

	dma_resv_assert_held(attach->dmabuf->resv);

	if (export->ops->unpin)
		export->ops->unpin(attach);
}

/* Many importers request both directions even if they only read. */
static enum dma_data_direction
nvmep_export_direction(const struct nvmep_export *export,
		       enum dma_data_direction dir)
{
	return export->ops->read_only ? DMA_TO_DEVICE : dir;
}

static struct sg_table *nvmep_export_map(struct dma_buf_attachment *attach,
					 enum dma_data_direction dir)
{
	struct nvmep_export *export = attach->dmabuf->priv;
	int err = nvmep_export_admit(export);
	struct sg_table *sgt;

	dma_resv_assert_held(attach->dmabuf->resv);

	if (err)
		return ERR_PTR(err);
	if (export->ops->read_only && dir == DMA_FROM_DEVICE)
		return ERR_PTR(-EACCES);
	sgt = export->ops->map(export, attach,
			       nvmep_export_direction(export, dir));
	if (!IS_ERR(sgt))
		nvmep_export_count(export, NVMEP_OBJECT_MAPS, 1);
	return sgt;
}

/* Count first: a waiter for the last mapping may run as soon as it is gone. */
static void nvmep_export_unmap(struct dma_buf_attachment *attach,
			       struct sg_table *sgt,
			       enum dma_data_direction dir)
{
	struct nvmep_export *export = attach->dmabuf->priv;

	nvmep_export_count(export, NVMEP_OBJECT_MAPS, -1);
	export->ops->unmap(export, attach, sgt,
			   nvmep_export_direction(export, dir));
}

/* --- processes ----------------------------------------------------------- */

/**
 * nvmep_export_count_mmap() - count created or removed VMAs of a dma-buf
 * @export: the dma-buf
 * @change: number of VMAs, negative if they were removed
 */
void nvmep_export_count_mmap(struct nvmep_export *export, int change)
{
	atomic_add(change, &export->exports->mmaps);
	nvmep_export_count(export, NVMEP_OBJECT_MMAPS, change);
}

/*
 * The dma-buf core has checked that the VMA lies inside the dma-buf.  A shared
 * mapping of a file that is not open for writing has no VM_SHARED: test
 * VM_MAYSHARE.  An importer's file, which is open for writing, may be mapped by
 * this function, too.
 */
static int nvmep_export_mmap(struct dma_buf *dmabuf, struct vm_area_struct *vma)
{
	struct nvmep_export *export = dmabuf->priv;
	int err = nvmep_export_admit(export);

	if (!(vma->vm_flags & VM_MAYSHARE))
		return -EINVAL;
	if (err)
		return err;
	if (export->ops->read_only && vma->vm_flags & VM_WRITE)
		return -EACCES;
	if (export->ops->read_only)
		nvmep_vm_flags_clear(vma, VM_MAYWRITE);
	return export->ops->mmap(export, vma);
}

/* --- revocation works ---------------------------------------------------- */

/**
 * nvmep_export_queue_work() - queue a work that revokes a dma-buf
 * @export: the dma-buf, which the work holds; the caller holds exports->lock
 * @work: part of @export, not queued.  Calls nvmep_export_work_done() last
 *
 * What revocation needs may be held for any time: the reservation lock and the
 * mmap locks of processes.  Its works try again, and callers wait for them with
 * a time limit, so that no holder delays a reset or another queue pair.
 */
void nvmep_export_queue_work(struct nvmep_export *export,
			     struct delayed_work *work)
{
	struct nvmep_exports *exports = export->exports;

	lockdep_assert_held(&exports->lock);

	dget(export->dentry);
	atomic_inc(&exports->works);
	atomic_inc(&exports->ctrl->peers->works);
	WARN_ON(!queue_delayed_work(nvmep_revoke_wq, work, 0));
}

/**
 * nvmep_export_retry_work() - run a revocation work again, a little later
 * @work: the running work
 */
void nvmep_export_retry_work(struct delayed_work *work)
{
	queue_delayed_work(nvmep_revoke_wq, work,
			   msecs_to_jiffies(NVMEP_RETRY_MS));
}

/**
 * nvmep_export_work_done() - the last call of a revocation work
 * @export: the dma-buf; drops the reference of the work
 */
void nvmep_export_work_done(struct nvmep_export *export)
{
	struct nvmep_exports *exports = export->exports;
	struct nvmep_peers *peers = exports->ctrl->peers;

	mutex_lock(&peers->lock);
	if (atomic_dec_and_test(&exports->works)) {
		nvmep_recover_doorbells_revoked(exports);
		wake_up_var(&exports->works);
	}
	if (atomic_dec_and_test(&peers->works))
		wake_up_var(&peers->works);
	mutex_unlock(&peers->lock);
	dput(export->dentry);
}

/* --- the dma-bufs of a queue pair ---------------------------------------- */

/**
 * nvmep_exports_init() - initialize the dma-bufs of a queue pair
 * @exports: zeroed
 * @ctrl: the controller, held by @owner
 * @owner: reference count of the queue pair
 * @release: frees @owner
 */
void nvmep_exports_init(struct nvmep_exports *exports, struct nvmep_ctrl *ctrl,
			struct kref *owner, void (*release)(struct kref *owner))
{
	exports->ctrl = ctrl;
	exports->owner = owner;
	exports->release = release;
	mutex_init(&exports->lock);
	INIT_LIST_HEAD(&exports->list);
}

/**
 * nvmep_exports_close() - refuse new dma-bufs and new users for good
 * @exports: the dma-bufs of a queue pair that ends
 */
void nvmep_exports_close(struct nvmep_exports *exports)
{
	mutex_lock(&exports->lock);
	WRITE_ONCE(exports->ended, true);
	mutex_unlock(&exports->lock);
	/* Pairs with smp_mb() after the insertion of a PTE. */
	smp_mb();
}

/**
 * nvmep_exports_withdraw() - refuse new dma-bufs and new users for now
 * @exports: the dma-bufs of a queue pair that may be re-armed
 */
void nvmep_exports_withdraw(struct nvmep_exports *exports)
{
	mutex_lock(&exports->lock);
	WRITE_ONCE(exports->withdrawn, true);
	mutex_unlock(&exports->lock);
	/* Pairs with smp_mb() after the insertion of a PTE. */
	smp_mb();
}

/*
 * Advances the revocation of a dma-buf to @step and takes a reference to its
 * dentry, whose release takes the dma-buf off the list.  Its file may be gone:
 * O_PATH files hold the dentry only.  Fails if it is there already, or if it is
 * being released and so has no user.
 */
static bool nvmep_export_advance(struct nvmep_export *export,
				 enum nvmep_revoke_step step)
{
	lockdep_assert_held(&export->exports->lock);

	if (!export->ops->revoke || export->step >= step)
		return false;
	export->step = step;
	return lockref_get_not_dead(&export->dentry->d_lockref);
}

/**
 * nvmep_exports_revoke() - start to revoke all doorbells, without waiting
 * @exports: the dma-bufs of a queue pair, withdrawn or ended
 *
 * Works zap PTEs and invalidate importers: see nvmep_exports_wait().
 */
void nvmep_exports_revoke(struct nvmep_exports *exports)
{
	struct nvmep_export *export;

	mutex_lock(&exports->lock);
	list_for_each_entry(export, &exports->list, node) {
		if (!nvmep_export_advance(export, NVMEP_EXPORT_REVOKED))
			continue;
		export->ops->revoke(export);
		/* The works hold it. */
		dput(export->dentry);
	}
	mutex_unlock(&exports->lock);
}

/**
 * nvmep_exports_restore_doorbells() - undo nvmep_exports_revoke()
 * @exports: the dma-bufs of a queue pair that is being re-armed; all works have
 *	ended
 *
 * A process faults its mapping in at the next access.  An importer maps again.
 */
void nvmep_exports_restore_doorbells(struct nvmep_exports *exports)
{
	struct nvmep_export *export;

	mutex_lock(&exports->lock);
	list_for_each_entry(export, &exports->list, node)
		export->step = NVMEP_EXPORT_OPEN;
	WRITE_ONCE(exports->withdrawn, false);
	mutex_unlock(&exports->lock);
}

/* The next dma-buf that was not waited for, with a reference, or NULL. */
static struct nvmep_export *nvmep_export_next_wait(struct nvmep_exports *exports)
{
	struct nvmep_export *export, *found = NULL;

	mutex_lock(&exports->lock);
	list_for_each_entry(export, &exports->list, node) {
		if (!nvmep_export_advance(export, NVMEP_EXPORT_WAITED))
			continue;
		found = export;
		break;
	}
	mutex_unlock(&exports->lock);
	return found;
}

/**
 * nvmep_exports_wait() - wait for the works, and for importers to unmap
 * @exports: after nvmep_exports_revoke()
 * @deadline: in jiffies.  Dma-bufs that are revoked together share it, so that
 *	their number does not extend the wait
 */
void nvmep_exports_wait(struct nvmep_exports *exports, unsigned long deadline)
{
	struct nvmep_export *export;

	wait_var_event_timeout(&exports->works, !atomic_read(&exports->works),
			       nvmep_time_left(deadline));
	while ((export = nvmep_export_next_wait(exports))) {
		export->ops->wait(export, deadline);
		dput(export->dentry);
	}
}

/* --- creation and release of a dma-buf ----------------------------------- */

static void nvmep_export_free(struct nvmep_export *export)
{
	struct nvmep_exports *exports = export->exports;

	if (export->ops->release)
		export->ops->release(export);
	atomic_dec(&exports->count);
	nvmep_export_count(export, NVMEP_OBJECT_EXPORTS, -1);
	kfree(export);
	kref_put(exports->owner, exports->release);
}

/* May run long after the driver was unbound. */
static void nvmep_export_release(struct dma_buf *dmabuf)
{
	struct nvmep_export *export = dmabuf->priv;
	struct nvmep_exports *exports = export->exports;

	mutex_lock(&exports->lock);
	list_del_init(&export->node);
	mutex_unlock(&exports->lock);
	nvmep_export_free(export);
}

static const struct dma_buf_ops nvmep_dma_buf_ops = {
	.attach = nvmep_export_attach,
	.detach = nvmep_export_detach,
	.pin = nvmep_export_pin,
	.unpin = nvmep_export_unpin,
	.map_dma_buf = nvmep_export_map,
	.unmap_dma_buf = nvmep_export_unmap,
	.mmap = nvmep_export_mmap,
	.release = nvmep_export_release,
};

/**
 * nvmep_is_host_buffer() - is this a dma-buf of NVME_PEER_BUF_ALLOC?
 * @dmabuf: any dma-buf
 *
 * Return: true if it is.
 */
bool nvmep_is_host_buffer(const struct dma_buf *dmabuf)
{
	const struct nvmep_export *export = dmabuf->priv;

	return dmabuf->ops == &nvmep_dma_buf_ops && export->ops->host_buffer;
}

/**
 * nvmep_is_qp_export() - is this a dma-buf of a queue pair?
 * @dmabuf: any dma-buf
 *
 * Return: true if it is.
 */
bool nvmep_is_qp_export(const struct dma_buf *dmabuf)
{
	return dmabuf->ops == &nvmep_dma_buf_ops &&
	       !nvmep_is_host_buffer(dmabuf);
}

static void nvmep_export_init(struct nvmep_export *export,
			      struct nvmep_exports *exports,
			      const struct nvmep_export_ops *ops)
{
	kref_get(exports->owner);
	export->exports = exports;
	export->ops = ops;
	INIT_LIST_HEAD(&export->node);
	atomic_inc(&exports->count);
	nvmep_export_count(export, NVMEP_OBJECT_EXPORTS, 1);
}

/* Adds a dma-buf to the list, unless the queue pair has ended. */
static int nvmep_export_list(struct nvmep_export *export)
{
	struct nvmep_exports *exports = export->exports;
	int err;

	mutex_lock(&exports->lock);
	err = nvmep_exports_admit(exports);
	if (err == -ENODEV)
		err = -ESHUTDOWN;
	else if (!err && atomic_read(&exports->count) > NVMEP_MAX_EXPORTS)
		err = -EDQUOT;
	if (!err)
		list_add_tail(&export->node, &exports->list);
	mutex_unlock(&exports->lock);
	return err;
}

/**
 * nvmep_export_publish() - create a dma-buf
 * @export: first member of a kmalloc()ed structure whose other members are set.
 *	Ownership goes to the dma-buf; freed on error
 * @exports: the dma-bufs of the queue pair, which the caller holds
 * @ops: operations of its kind
 * @bytes: a multiple of the page size
 *
 * Return: the dma-buf with its only reference, or an ERR_PTR: -ESHUTDOWN if the
 * queue pair has ended, -EAGAIN while its doorbells are withdrawn, -EDQUOT if
 * too many dma-bufs are open, -ENOMEM.
 */
struct dma_buf *nvmep_export_publish(struct nvmep_export *export,
				     struct nvmep_exports *exports,
				     const struct nvmep_export_ops *ops,
				     size_t bytes)
{
	DEFINE_DMA_BUF_EXPORT_INFO(exp_info);
	struct dma_buf *dmabuf;
	int err;

	nvmep_export_init(export, exports, ops);
	exp_info.ops = &nvmep_dma_buf_ops;
	exp_info.size = bytes;
	exp_info.flags = ops->read_only ? O_RDONLY : O_RDWR;
	exp_info.priv = export;
	dmabuf = dma_buf_export(&exp_info);
	if (IS_ERR(dmabuf)) {
		nvmep_export_free(export);
		return dmabuf;
	}
	export->dmabuf = dmabuf;
	export->dentry = dmabuf->file->f_path.dentry;

	err = nvmep_export_list(export);
	if (err) {
		dma_buf_put(dmabuf);
		return ERR_PTR(err);
	}
	return dmabuf;
}
