// SPDX-License-Identifier: GPL-2.0-only
/*
 * An importer of dma-bufs: dynamic like amdgpu, static like NVIDIA's driver, or
 * stubborn, which is dynamic but does not unmap when it is invalidated. A slow
 * importer unmaps late; a fenced one has a fence that says that its device is
 * still active. A pinning one pins the memory before it maps it, as RDMA drivers do.
 */
#include <linux/dma-buf.h>
#include <linux/dma-resv.h>
#include <linux/pci.h>
#include <linux/slab.h>
#include <linux/workqueue.h>

#include "test.h"

/**
 * struct test_importer - one attachment and its mapping
 * @dmabuf: const: referenced
 * @pdev: const: the device that is attached, referenced
 * @attachment: const
 * @stubborn: const: do not unmap when invalidated
 * @pins: const: pin the memory while it is mapped
 * @direction: const: what it is mapped for
 * @sgt: the mapping, NULL for none; under the dma-buf's reservation lock
 * @invalidations: under the dma-buf's reservation lock
 * @slow_ms: const: delay from the invalidation to the unmap
 * @unmap_work: unmaps outside the exporter's callback, as its lock is held
 *	there
 * @fence: const: in the dma-buf's reservation, NULL for none
 * @fence_work: signals @fence
 */
struct test_importer {
	struct dma_buf *dmabuf;
	struct pci_dev *pdev;
	struct dma_buf_attachment *attachment;
	bool stubborn;
	bool pins;
	enum dma_data_direction direction;
	struct sg_table *sgt;
	u32 invalidations;
	u32 slow_ms;
	struct delayed_work unmap_work;
	struct dma_fence *fence;
	struct delayed_work fence_work;
};

static void test_fence_work(struct work_struct *work)
{
	struct test_importer *importer = container_of(to_delayed_work(work),
						      struct test_importer,
						      fence_work);

	dma_fence_signal(importer->fence);
}

/* The device is active from now on. */
static int test_importer_fence(struct test_importer *importer, u32 ms)
{
	struct dma_fence *fence = test_fence_add(importer->dmabuf,
						 DMA_RESV_USAGE_BOOKKEEP);

	if (IS_ERR(fence))
		return PTR_ERR(fence);
	importer->fence = fence;
	if (ms != NVMEP_TEST_NEVER)
		schedule_delayed_work(&importer->fence_work,
				      msecs_to_jiffies(ms));
	return 0;
}

static void test_importer_fence_end(struct test_importer *importer)
{
	cancel_delayed_work_sync(&importer->fence_work);
	test_fence_end(importer->fence);
	importer->fence = NULL;
}

static void test_importer_unmap(struct test_importer *importer)
{
	dma_resv_lock(importer->dmabuf->resv, NULL);
	if (importer->sgt)
		dma_buf_unmap_attachment(importer->attachment, importer->sgt,
					 importer->direction);
	if (importer->sgt && importer->pins)
		dma_buf_unpin(importer->attachment);
	importer->sgt = NULL;
	dma_resv_unlock(importer->dmabuf->resv);
}

static void test_importer_work(struct work_struct *work)
{
	test_importer_unmap(container_of(to_delayed_work(work),
					 struct test_importer, unmap_work));
}

static void test_invalidate(struct dma_buf_attachment *attachment)
{
	struct test_importer *importer = attachment->importer_priv;

	dma_resv_assert_held(attachment->dmabuf->resv);
	importer->invalidations++;
	if (!importer->stubborn)
		schedule_delayed_work(&importer->unmap_work,
				      msecs_to_jiffies(importer->slow_ms));
}

static const struct dma_buf_attach_ops test_p2p_ops = {
	.allow_peer2peer = true,
	.nvmep_invalidate_member = test_invalidate,
};

static const struct dma_buf_attach_ops test_no_p2p_ops = {
	.allow_peer2peer = false,
	.nvmep_invalidate_member = test_invalidate,
};

static struct dma_buf_attachment *
test_attach_as(struct test_importer *importer, u32 flags)
{
	struct device *dev = &importer->pdev->dev;

	if (flags & NVMEP_TEST_STATIC)
		return dma_buf_attach(importer->dmabuf, dev);
	return dma_buf_dynamic_attach(importer->dmabuf, dev,
				      flags & NVMEP_TEST_NO_P2P ?
				      &test_no_p2p_ops : &test_p2p_ops,
				      importer);
}

static struct sg_table *test_importer_pin_map(struct test_importer *importer)
{
	struct sg_table *sgt;
	int ret = importer->pins ? dma_buf_pin(importer->attachment) : 0;

	if (ret)
		return ERR_PTR(ret);
	sgt = dma_buf_map_attachment(importer->attachment, importer->direction);
	if (IS_ERR(sgt) && importer->pins)
		dma_buf_unpin(importer->attachment);
	return sgt;
}

/* The exporter may free the table once the reservation lock is dropped. */
static int test_importer_map_locked(struct test_importer *importer,
				    struct nvmep_test_attach *result)
{
	struct scatterlist *sg;
	struct sg_table *sgt;
	int i;

	dma_resv_assert_held(importer->dmabuf->resv);
	sgt = test_importer_pin_map(importer);
	if (IS_ERR(sgt))
		return PTR_ERR(sgt);
	importer->sgt = sgt;
	result->segments = sgt->nents;
	result->address = sg_dma_address(sgt->sgl);
	result->length = 0;
	for_each_sgtable_dma_sg(sgt, sg, i)
		result->length += sg_dma_len(sg);
	return 0;
}

static int test_importer_map(struct test_importer *importer,
			     struct nvmep_test_attach *result)
{
	int ret = -EBUSY;

	dma_resv_lock(importer->dmabuf->resv, NULL);
	if (!importer->sgt)
		ret = test_importer_map_locked(importer, result);
	dma_resv_unlock(importer->dmabuf->resv);
	return ret;
}

/* The function at @pci_address, referenced, or NULL. */
struct pci_dev *test_find_function(const struct nvme_peer_pci_address *pci_address)
{
	return pci_get_domain_bus_and_slot(pci_address->domain,
					   PCI_BUS_NUM(pci_address->function),
					   pci_address->function & 0xff);
}

static void test_importer_free(struct test_importer *importer)
{
	dma_buf_put(importer->dmabuf);
	pci_dev_put(importer->pdev);
	kfree(importer);
}

static struct test_importer *
test_importer_alloc(const struct nvmep_test_attach *attach)
{
	struct test_importer *importer;
	struct dma_buf *dmabuf = dma_buf_get(attach->dmabuf_fd);

	if (IS_ERR(dmabuf))
		return ERR_CAST(dmabuf);
	importer = kzalloc(sizeof(*importer), GFP_KERNEL);
	if (!importer) {
		dma_buf_put(dmabuf);
		return ERR_PTR(-ENOMEM);
	}
	importer->dmabuf = dmabuf;
	importer->stubborn = attach->flags & NVMEP_TEST_STUBBORN;
	importer->pins = attach->flags & NVMEP_TEST_PINNED;
	importer->direction = attach->flags & NVMEP_TEST_ONLY_WRITE ?
			      DMA_FROM_DEVICE : DMA_BIDIRECTIONAL;
	if (attach->flags & NVMEP_TEST_SLOW)
		importer->slow_ms = attach->slow_ms;
	INIT_DELAYED_WORK(&importer->unmap_work, test_importer_work);
	INIT_DELAYED_WORK(&importer->fence_work, test_fence_work);
	importer->pdev = test_find_function(&attach->pci_address);
	if (!importer->pdev) {
		test_importer_free(importer);
		return ERR_PTR(-ENODEV);
	}
	return importer;
}

int test_attach(struct test_file *file, struct nvmep_test_attach *attach)
{
	struct dma_buf_attachment *attachment;
	struct test_importer *importer;
	int ret;

	lockdep_assert_held(&file->lock);
	if (file->importer)
		return -EBUSY;
	importer = test_importer_alloc(attach);
	if (IS_ERR(importer))
		return PTR_ERR(importer);
	attachment = test_attach_as(importer, attach->flags);
	if (IS_ERR(attachment)) {
		ret = PTR_ERR(attachment);
		goto err_free;
	}
	importer->attachment = attachment;
	if (attach->flags & NVMEP_TEST_FENCED)
		ret = test_importer_fence(importer, attach->fence_ms);
	else
		ret = 0;
	if (!ret && !(attach->flags & NVMEP_TEST_UNMAPPED))
		ret = test_importer_map(importer, attach);
	if (ret)
		goto err_detach;
	file->importer = importer;
	return 0;

err_detach:
	test_importer_fence_end(importer);
	dma_buf_detach(importer->dmabuf, attachment);
	cancel_delayed_work_sync(&importer->unmap_work);
err_free:
	test_importer_free(importer);
	return ret;
}

void test_detach(struct test_file *file)
{
	struct test_importer *importer = file->importer;

	lockdep_assert_held(&file->lock);
	if (!importer)
		return;
	file->importer = NULL;
	test_importer_fence_end(importer);
	test_importer_unmap(importer);
	/*
	 * test_invalidate() is not called any more once the lock was held here.
	 */
	dma_resv_lock(importer->dmabuf->resv, NULL);
	importer->stubborn = true;
	dma_resv_unlock(importer->dmabuf->resv);
	cancel_delayed_work_sync(&importer->unmap_work);
	dma_buf_detach(importer->dmabuf, importer->attachment);
	test_importer_free(importer);
}

int test_map(struct test_file *file, struct nvmep_test_attach *result)
{
	lockdep_assert_held(&file->lock);
	return file->importer ? test_importer_map(file->importer, result) :
				-ENOENT;
}

int test_importer_state(struct test_file *file,
			struct nvmep_test_importer *state)
{
	struct test_importer *importer = file->importer;

	lockdep_assert_held(&file->lock);
	if (!importer)
		return -ENOENT;
	dma_resv_lock(importer->dmabuf->resv, NULL);
	state->invalidations = importer->invalidations;
	state->mapped = !!importer->sgt;
	dma_resv_unlock(importer->dmabuf->resv);
	return 0;
}
