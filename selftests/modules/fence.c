// SPDX-License-Identifier: GPL-2.0-only
/*
 * A fence in a dma-buf's reservation, signalled when a test says so: a device of ours is
 * at work on the memory, or the memory is on its way to where it is going to be used.
 */
#include <linux/dma-buf.h>
#include <linux/slab.h>

#include "test.h"

/**
 * struct test_fence - a fence of ours; dma-bufs may keep it longer than who made it
 * @base: what everybody sees
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

/* A new fence in the reservation of @dmabuf, as whoever waits for @usage sees it. */
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

/* Signals it, if nobody has, and lets go of it. */
void test_fence_end(struct dma_fence *fence)
{
	if (!fence)
		return;
	dma_fence_signal(fence);
	dma_fence_put(fence);
}
