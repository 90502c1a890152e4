// SPDX-License-Identifier: GPL-2.0-only
/*
 * A fence in a dma-buf's reservation, signalled on request of a test: a device
 * is still using the memory, or the memory is being moved.
 */
#include <linux/dma-buf.h>
#include <linux/slab.h>

#include "test.h"

/**
 * struct test_fence - a fence; dma-bufs may keep it longer than its creator
 * @base: the fence
 * @lock: of @base
 */
struct test_fence {
	struct dma_fence base;
	spinlock_t lock;	/* of @base */
};

static const char *test_fence_name(struct dma_fence *fence)
{
	return "nvmep_test";
}

static const struct dma_fence_ops test_fence_ops = {
	.get_driver_name = test_fence_name,
	.get_timeline_name = test_fence_name,
};

static struct dma_fence *test_fence_new(void)
{
	struct test_fence *fence = kzalloc(sizeof(*fence), GFP_KERNEL);

	if (!fence)
		return NULL;
	spin_lock_init(&fence->lock);
	dma_fence_init(&fence->base, &test_fence_ops, &fence->lock,
		       dma_fence_context_alloc(1), 1);
	return &fence->base;
}

/* Add a new fence to the reservation of @dmabuf for waiters of @usage. */
struct dma_fence *test_fence_add(struct dma_buf *dmabuf,
				 enum dma_resv_usage usage)
{
	struct dma_fence *fence = test_fence_new();
	struct dma_resv *resv = dmabuf->resv;
	int ret;

	if (!fence)
		return ERR_PTR(-ENOMEM);
	dma_resv_lock(resv, NULL);
	ret = dma_resv_reserve_fences(resv, 1);
	if (!ret)
		dma_resv_add_fence(resv, fence, usage);
	dma_resv_unlock(resv);
	if (!ret)
		return fence;
	test_fence_end(fence);
	return ERR_PTR(ret);
}

/* Signal it unless that was done, and drop the reference. */
void test_fence_end(struct dma_fence *fence)
{
	if (!fence)
		return;
	dma_fence_signal(fence);
	dma_fence_put(fence);
}
