// SPDX-License-Identifier: GPL-2.0-only
/*
 * Exporting parts of a queue pair as dma-bufs: their life, who may use them,
 * and how many do.
 *
 * There are kinds of memory, each with its own rules and a table of callbacks:
 * host pages (export_host.c), which nobody has to be kept from, and doorbells
 * (export_doorbell.c), which are taken away from everybody.  After the end of a
 * queue pair old users of host pages stay and new ones are refused, except on
 * the status page, which is there to tell about the end.
 */
#include <linux/dma-buf.h>
#include <linux/dma-resv.h>
#include <linux/kref.h>
#include <linux/mm.h>
#include <linux/module.h>
#include <linux/slab.h>

#include "compat.h"
#include "core/ctrl.h"
#include "export.h"
#include "peers.h"
#include "take.h"

/* Most dma-bufs of one queue pair that are open at a time. */
#define NVMEP_MAX_EXPORTS	64

/* May somebody start to use this dma-buf? */
static bool nvmep_export_open(const struct nvmep_export *export)
{
	return export->ops->stays_open || !READ_ONCE(export->exports->closed);
}

static void nvmep_export_count(const struct nvmep_export *export,
			       enum nvmep_object kind, int change)
{
	nvmep_objects_add(&export->exports->ctrl->peers->objects, kind, change);
}

/* --- devices ------------------------------------------------------------- */

static int nvmep_export_attach(struct dma_buf *dmabuf,
			       struct dma_buf_attachment *attach)
{
	struct nvmep_export *export = dmabuf->priv;
	int err = 0;

	if (!nvmep_export_open(export))
		return -ENODEV;
	if (export->ops->attach)
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

/* Nothing moves, so there is nothing to hold in place. */
static int nvmep_export_pin(struct dma_buf_attachment *attach)
{
	struct nvmep_export *export = attach->dmabuf->priv;

	dma_resv_assert_held(attach->dmabuf->resv);
	return nvmep_export_open(export) ? 0 : -ENODEV;
}

static void nvmep_export_unpin(struct dma_buf_attachment *attach)
{
	dma_resv_assert_held(attach->dmabuf->resv);
}

/* Many importers ask for both directions, whatever they want. */
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
	struct sg_table *sgt;

	dma_resv_assert_held(attach->dmabuf->resv);

	if (!nvmep_export_open(export))
		return ERR_PTR(-ENODEV);
	if (export->ops->read_only && dir == DMA_FROM_DEVICE)
		return ERR_PTR(-EACCES);
	sgt = export->ops->map(export, attach,
			       nvmep_export_direction(export, dir));
	if (!IS_ERR(sgt))
		nvmep_export_count(export, NVMEP_OBJECT_MAPS, 1);
	return sgt;
}

/* Counted before, because whoever waits for the last one may look at once. */
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
 * nvmep_export_count_mmap() - VMAs of a dma-buf came or went
 * @export: the dma-buf
 * @change: how many, negative if they went
 */
void nvmep_export_count_mmap(struct nvmep_export *export, int change)
{
	atomic_add(change, &export->exports->mmaps);
	nvmep_export_count(export, NVMEP_OBJECT_MMAPS, change);
}

/*
 * The dma-buf core has checked that the VMA lies inside the dma-buf.  A shared
 * mapping of a file that is not open for writing has no VM_SHARED.
 */
static int nvmep_export_mmap(struct dma_buf *dmabuf, struct vm_area_struct *vma)
{
	struct nvmep_export *export = dmabuf->priv;

	if (!(vma->vm_flags & VM_MAYSHARE))
		return -EINVAL;
	if (!nvmep_export_open(export))
		return -ENODEV;
	return export->ops->mmap(export, vma);
}

/* --- the dma-bufs of a queue pair ---------------------------------------- */

/**
 * nvmep_exports_init() - no dma-bufs yet
 * @exports: the dma-bufs of a queue pair, zeroed
 * @ctrl: the controller, which @owner holds
 * @owner: the queue pair
 * @release: frees it
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
 * nvmep_exports_close() - admit nobody new
 * @exports: the dma-bufs of a queue pair
 */
void nvmep_exports_close(struct nvmep_exports *exports)
{
	mutex_lock(&exports->lock);
	WRITE_ONCE(exports->closed, true);
	mutex_unlock(&exports->lock);
}

/*
 * One that did not come as far as *@step, which it does now.  One that is being
 * released has no user left.
 */
static void *nvmep_export_take(struct list_head *node, const void *step)
{
	enum nvmep_export_revoked next = *(const enum nvmep_export_revoked *)step;
	struct nvmep_export *export = list_entry(node, struct nvmep_export,
						 node);

	if (!export->ops->revoke || export->revoked >= next)
		return NULL;
	export->revoked = next;
	return nvmep_get_file_active(&export->dmabuf->file) ? export : NULL;
}

/* The next dma-buf that has not come as far as @step, with a reference. */
static struct nvmep_export *nvmep_export_next(struct nvmep_exports *exports,
					      enum nvmep_export_revoked step)
{
	return nvmep_take_first(&exports->lock, &exports->list,
				nvmep_export_take, &step);
}

/**
 * nvmep_exports_withdraw() - zap and invalidate doorbells, and do not wait
 * @exports: the dma-bufs of a queue pair that is about to be lost
 *
 * Importers are told, not waited for; admits nobody new.  An mmap() that is
 * being set up right now is missed; nvmep_exports_revoke() waits for it.
 */
void nvmep_exports_withdraw(struct nvmep_exports *exports)
{
	struct nvmep_export *export;

	nvmep_exports_close(exports);
	while ((export = nvmep_export_next(exports, NVMEP_EXPORT_WITHDRAWN))) {
		export->ops->withdraw(export);
		dma_buf_put(export->dmabuf);
	}
}

/**
 * nvmep_exports_reopen() - undo nvmep_exports_withdraw(), which has returned
 * @exports: the dma-bufs of a queue pair that comes back
 *
 * Processes get their mappings back when they touch them, importers when they
 * map again.
 */
void nvmep_exports_reopen(struct nvmep_exports *exports)
{
	struct nvmep_export *export;

	mutex_lock(&exports->lock);
	list_for_each_entry(export, &exports->list, node)
		if (export->revoked == NVMEP_EXPORT_WITHDRAWN)
			export->revoked = NVMEP_EXPORT_OPEN;
	WRITE_ONCE(exports->closed, false);
	mutex_unlock(&exports->lock);
}

/**
 * nvmep_exports_revoke() - take away from everybody what could do harm
 * @exports: closed; the controller has deleted the queues
 *
 * Those who have to let go are told, not waited for.
 */
void nvmep_exports_revoke(struct nvmep_exports *exports)
{
	struct nvmep_export *export;

	while ((export = nvmep_export_next(exports, NVMEP_EXPORT_REVOKED))) {
		export->ops->revoke(export);
		dma_buf_put(export->dmabuf);
	}
}

/**
 * nvmep_exports_settle() - wait for those who were told to let go
 * @exports: revoked
 * @deadline: in jiffies; the same for all that are revoked together, so that the
 *	wait is bounded, however many they are
 */
void nvmep_exports_settle(struct nvmep_exports *exports, unsigned long deadline)
{
	struct nvmep_export *export;

	while ((export = nvmep_export_next(exports, NVMEP_EXPORT_SETTLED))) {
		export->ops->settle(export, deadline);
		dma_buf_put(export->dmabuf);
	}
}

/* --- creation and end of a dma-buf --------------------------------------- */

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

/* May run long after the controller was unbound. */
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

/* Puts it on the list, unless the end came first. */
static int nvmep_export_list(struct nvmep_export *export)
{
	struct nvmep_exports *exports = export->exports;
	int err = 0;

	mutex_lock(&exports->lock);
	if (exports->closed)
		err = -ESHUTDOWN;
	else if (atomic_read(&exports->count) > NVMEP_MAX_EXPORTS)
		err = -ENOSPC;
	else
		list_add_tail(&export->node, &exports->list);
	mutex_unlock(&exports->lock);
	return err;
}

/**
 * nvmep_export_publish() - make a dma-buf
 * @export: first member of a kmalloc()ed structure, whose other members are
 *	set.  It belongs to the dma-buf from now on and is freed after an error
 * @exports: the dma-bufs of the queue pair, which the caller holds
 * @ops: of its kind
 * @bytes: whole pages
 *
 * Return: the dma-buf with its only reference, or an ERR_PTR: ESHUTDOWN if the
 * queue pair has ended, ENOSPC if too many are open, ENOMEM.
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

	err = nvmep_export_list(export);
	if (err) {
		dma_buf_put(dmabuf);
		return ERR_PTR(err);
	}
	return dmabuf;
}
