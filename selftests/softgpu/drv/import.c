// SPDX-License-Identifier: GPL-2.0-only
/*
 * Import of dma-bufs into GPU address space, like amdgpu (dynamic, with peer-to-peer addresses
 * and an invalidate callback) or like NVIDIA's driver (static).
 */
#include <linux/dma-resv.h>
#include <linux/slab.h>
#include <linux/workqueue.h>

#include "buffer.h"
#include "device.h"
#include "import.h"
#include "mmu.h"

/**
 * struct softgpu_importer - an attachment and its GPU address
 * @ref: held by the handle of its file, and during a shutdown
 * @gpu: const
 * @node: in softgpu.imports, under softgpu.lock
 * @shut: under softgpu.lock: shut down by the removal of the device
 * @dmabuf: referenced; NULL once shut down, under @lock
 * @attach: const while @dmabuf is
 * @address: const: GPU address
 * @length: const: bytes
 * @flags: const: SOFTGPU_IMPORT_*
 * @work: unmaps after an invalidation
 * @lock: serializes shutdown and renewal
 * @sgt: the mapping, NULL if there is none; under the reservation lock
 * @stale: under the reservation lock: the exporter has invalidated @sgt
 * @segments: segments of @sgt when it was mapped
 * @closing: under the reservation lock: no more work
 * @invalidations: under the reservation lock
 */
struct softgpu_importer {
	struct kref ref;
	struct softgpu *gpu;
	struct list_head node;
	bool shut;
	struct dma_buf *dmabuf;
	struct dma_buf_attachment *attach;
	u64 address;
	u64 length;
	u32 flags;
	struct work_struct work;
	struct mutex lock;	/* see above */
	struct sg_table *sgt;
	bool stale;
	u32 segments;
	bool closing;
	u64 invalidations;
};

/*
 * Remove it from GPU address space, then unmap it. Bus mastering of a removed device is off.
 */
static void softgpu_import_unmap(struct softgpu_importer *importer)
{
	struct softgpu *gpu = importer->gpu;

	lockdep_assert_held(&gpu->hw_lock);
	dma_resv_assert_held(importer->dmabuf->resv);
	if (!gpu->gone)
		softgpu_mmu_unmap(gpu, importer->address, importer->length);
	dma_buf_unmap_attachment(importer->attach, importer->sgt,
				 DMA_BIDIRECTIONAL);
	importer->sgt = NULL;
	importer->stale = false;
}

/* The start of a job may have mapped it again since the work was queued. */
static void softgpu_import_work(struct work_struct *work)
{
	struct softgpu_importer *importer =
		container_of(work, struct softgpu_importer, work);
	struct dma_resv *resv = importer->dmabuf->resv;

	down_read(&importer->gpu->hw_lock);
	dma_resv_lock(resv, NULL);
	if (importer->stale)
		softgpu_import_unmap(importer);
	dma_resv_unlock(resv);
	up_read(&importer->gpu->hw_lock);
}

static void softgpu_invalidate(struct dma_buf_attachment *attach)
{
	struct softgpu_importer *importer = attach->importer_priv;

	dma_resv_assert_held(attach->dmabuf->resv);
	importer->invalidations++;
	atomic64_inc(&importer->gpu->invalidations);
	/* An exporter may call this during the mapping, when there is nothing to unmap yet. */
	if (!importer->sgt || importer->closing)
		return;
	importer->stale = true;
	queue_work(importer->gpu->workqueue, &importer->work);
}

static const struct dma_buf_attach_ops softgpu_attach_ops = {
	.allow_peer2peer = true,
	.nvmep_invalidate_member = softgpu_invalidate,
};

static struct dma_buf_attachment *
softgpu_attach_to(struct softgpu_importer *importer)
{
	struct device *dev = &importer->gpu->pdev->dev;

	if (importer->flags & SOFTGPU_IMPORT_STATIC)
		return dma_buf_attach(importer->dmabuf, dev);
	return dma_buf_dynamic_attach(importer->dmabuf, dev,
				      &softgpu_attach_ops, importer);
}

/* Fill the page table; the mapping may be shorter or longer than the dma-buf. */
static int softgpu_fill(struct softgpu_importer *importer,
			struct sg_table *sgt)
{
	u64 flags = importer->flags & SOFTGPU_IMPORT_READ_ONLY ?
		    0 : SOFTGPU_PTE_WRITE;
	struct scatterlist *sg;
	u64 done = 0;
	int i;

	importer->segments = 0;
	for_each_sgtable_dma_sg(sgt, sg, i) {
		if (!PAGE_ALIGNED(sg_dma_address(sg) | sg_dma_len(sg)) ||
		    sg_dma_len(sg) > importer->length - done)
			return -EINVAL;
		softgpu_mmu_map(importer->gpu, importer->address + done,
				sg_dma_address(sg), sg_dma_len(sg), flags);
		done += sg_dma_len(sg);
		importer->segments++;
	}
	return done == importer->length ? 0 : -EINVAL;
}

/* Map it at its GPU address; called with the reservation lock held. */
static int softgpu_import_map(struct softgpu_importer *importer)
{
	struct sg_table *sgt;
	long waited;
	int ret;

	dma_resv_assert_held(importer->dmabuf->resv);
	sgt = dma_buf_map_attachment(importer->attach, DMA_BIDIRECTIONAL);
	if (IS_ERR(sgt))
		return PTR_ERR(sgt);
	/* Wait for fences of writers and moves. */
	waited = dma_resv_wait_timeout(importer->dmabuf->resv,
				       DMA_RESV_USAGE_KERNEL, true,
				       SOFTGPU_RELEASE_TIMEOUT);
	ret = waited > 0 ? 0 : waited ? waited : -ETIMEDOUT;
	if (!ret)
		ret = softgpu_fill(importer, sgt);
	if (ret) {
		softgpu_mmu_unmap(importer->gpu, importer->address,
				  importer->length);
		dma_buf_unmap_attachment(importer->attach, sgt,
					 DMA_BIDIRECTIONAL);
		return ret;
	}
	importer->sgt = sgt;
	return 0;
}

/*
 * Unmap and detach it, for its file or the removal of the device. A second call does nothing.
 */
static void softgpu_importer_shutdown(struct softgpu_importer *importer)
{
	struct dma_buf *dmabuf;

	mutex_lock(&importer->lock);
	dmabuf = importer->dmabuf;
	if (dmabuf) {
		dma_resv_lock(dmabuf->resv, NULL);
		importer->closing = true;
		dma_resv_unlock(dmabuf->resv);
		cancel_work_sync(&importer->work);
		down_read(&importer->gpu->hw_lock);
		dma_resv_lock(dmabuf->resv, NULL);
		if (importer->sgt)
			softgpu_import_unmap(importer);
		dma_resv_unlock(dmabuf->resv);
		up_read(&importer->gpu->hw_lock);
		dma_buf_detach(dmabuf, importer->attach);
		importer->dmabuf = NULL;
	}
	mutex_unlock(&importer->lock);
	if (dmabuf)
		dma_buf_put(dmabuf);
}

static void softgpu_importer_free(struct kref *ref)
{
	struct softgpu_importer *importer =
		container_of(ref, struct softgpu_importer, ref);

	softgpu_va_free(importer->gpu, importer->address, importer->length);
	mutex_destroy(&importer->lock);
	kfree(importer);
}

/* Called with hw_lock held, so the device is not removed meanwhile. */
static struct softgpu_importer *
softgpu_importer_new(struct softgpu *gpu, struct dma_buf *dmabuf, u32 flags)
{
	struct softgpu_importer *importer = kzalloc(sizeof(*importer),
						    GFP_KERNEL);
	int ret;

	if (!importer)
		return ERR_PTR(-ENOMEM);
	kref_init(&importer->ref);
	importer->gpu = gpu;
	importer->dmabuf = dmabuf;
	importer->length = dmabuf->size;
	importer->flags = flags;
	INIT_WORK(&importer->work, softgpu_import_work);
	mutex_init(&importer->lock);
	ret = softgpu_va_alloc(gpu, importer->length, &importer->address);
	if (ret)
		goto err_free;
	importer->attach = softgpu_attach_to(importer);
	if (IS_ERR(importer->attach)) {
		ret = PTR_ERR(importer->attach);
		goto err_va;
	}
	dma_resv_lock(dmabuf->resv, NULL);
	ret = softgpu_import_map(importer);
	dma_resv_unlock(dmabuf->resv);
	if (ret)
		goto err_detach;
	mutex_lock(&gpu->lock);
	list_add_tail(&importer->node, &gpu->imports);
	mutex_unlock(&gpu->lock);
	return importer;

err_detach:
	dma_buf_detach(dmabuf, importer->attach);
err_va:
	softgpu_va_free(gpu, importer->address, importer->length);
err_free:
	mutex_destroy(&importer->lock);
	kfree(importer);
	return ERR_PTR(ret);
}

/* Takes hw_lock, so it must not be called with it held. */
static void softgpu_importer_destroy(struct softgpu_importer *importer)
{
	struct softgpu *gpu = importer->gpu;

	softgpu_importer_shutdown(importer);
	mutex_lock(&gpu->lock);
	list_del(&importer->node);
	mutex_unlock(&gpu->lock);
	kref_put(&importer->ref, softgpu_importer_free);
}

static int softgpu_import_dmabuf(struct softgpu_file *file,
				 struct dma_buf *dmabuf,
				 struct softgpu_import *import)
{
	struct softgpu_importer *importer;
	int ret;

	if (softgpu_owns(file->gpu, dmabuf) || !PAGE_ALIGNED(dmabuf->size))
		return -EINVAL;
	importer = softgpu_importer_new(file->gpu, dmabuf, import->flags);
	if (IS_ERR(importer))
		return PTR_ERR(importer);
	import->segments = importer->segments;
	import->address = importer->address;
	import->length = importer->length;
	ret = xa_alloc(&file->imports, &import->handle, importer,
		       XA_LIMIT(1, INT_MAX), GFP_KERNEL);
	if (!ret)
		return 0;
	/* The caller keeps its reference to the dma-buf. */
	get_dma_buf(dmabuf);
	softgpu_hw_leave(file->gpu);
	softgpu_importer_destroy(importer);
	down_read(&file->gpu->hw_lock);
	return ret;
}

int softgpu_import(struct softgpu_file *file, struct softgpu_import *import)
{
	struct dma_buf *dmabuf;
	int ret;

	lockdep_assert_held(&file->gpu->hw_lock);
	if (import->flags &
	    ~(SOFTGPU_IMPORT_STATIC | SOFTGPU_IMPORT_READ_ONLY))
		return -EINVAL;
	dmabuf = dma_buf_get(import->fd);
	if (IS_ERR(dmabuf))
		return PTR_ERR(dmabuf);
	ret = softgpu_import_dmabuf(file, dmabuf, import);
	if (ret)
		dma_buf_put(dmabuf);
	return ret;
}

int softgpu_import_info(struct softgpu_file *file,
			struct softgpu_import_info *info)
{
	struct softgpu_importer *importer;
	int ret = -ENOENT;

	/* A release first removes the handle under the same lock. */
	mutex_lock(&file->gpu->lock);
	importer = xa_load(&file->imports, info->handle);
	if (importer) {
		info->mapped = !!READ_ONCE(importer->sgt);
		info->invalidations = READ_ONCE(importer->invalidations);
		ret = 0;
	}
	mutex_unlock(&file->gpu->lock);
	return ret;
}

int softgpu_release(struct softgpu_file *file,
		    const struct softgpu_release *release)
{
	struct softgpu_importer *importer;

	if (release->reserved)
		return -EINVAL;
	mutex_lock(&file->gpu->lock);
	importer = xa_erase(&file->imports, release->handle);
	mutex_unlock(&file->gpu->lock);
	if (!importer)
		return -ENOENT;
	softgpu_importer_destroy(importer);
	return 0;
}

void softgpu_imports_close(struct softgpu_file *file)
{
	struct softgpu_importer *importer;
	unsigned long handle;

	xa_for_each(&file->imports, handle, importer)
		softgpu_importer_destroy(importer);
	xa_destroy(&file->imports);
}

/* Map it again after an invalidation; it stays unmapped if the exporter refuses. */
static void softgpu_importer_renew(struct softgpu_importer *importer)
{
	struct softgpu *gpu = importer->gpu;

	mutex_lock(&importer->lock);
	if (importer->dmabuf && softgpu_hw_enter(gpu)) {
		dma_resv_lock(importer->dmabuf->resv, NULL);
		if (importer->stale)
			softgpu_import_unmap(importer);
		if (!importer->sgt)
			softgpu_import_map(importer);
		dma_resv_unlock(importer->dmabuf->resv);
		softgpu_hw_leave(gpu);
	}
	mutex_unlock(&importer->lock);
}

/* The import with the lowest handle from @handle on, with a reference. */
static struct softgpu_importer *softgpu_import_from(struct softgpu_file *file,
						    unsigned long *handle)
{
	struct softgpu_importer *importer;

	mutex_lock(&file->gpu->lock);
	importer = xa_find(&file->imports, handle, ULONG_MAX, XA_PRESENT);
	if (importer)
		kref_get(&importer->ref);
	mutex_unlock(&file->gpu->lock);
	return importer;
}

void softgpu_imports_renew(struct softgpu_file *file)
{
	struct softgpu_importer *importer;
	unsigned long handle = 0;

	while ((importer = softgpu_import_from(file, &handle))) {
		softgpu_importer_renew(importer);
		kref_put(&importer->ref, softgpu_importer_free);
		handle++;
	}
}

/* An importer that is not shut down, with a reference, or NULL. */
static struct softgpu_importer *softgpu_next_importer(struct softgpu *gpu)
{
	struct softgpu_importer *importer, *found = NULL;

	mutex_lock(&gpu->lock);
	list_for_each_entry(importer, &gpu->imports, node) {
		if (importer->shut)
			continue;
		importer->shut = true;
		kref_get(&importer->ref);
		found = importer;
		break;
	}
	mutex_unlock(&gpu->lock);
	return found;
}

/* Handles stay until their files release them. */
void softgpu_imports_shutdown(struct softgpu *gpu)
{
	struct softgpu_importer *importer;

	while ((importer = softgpu_next_importer(gpu))) {
		softgpu_importer_shutdown(importer);
		kref_put(&importer->ref, softgpu_importer_free);
	}
}
