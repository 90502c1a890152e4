// SPDX-License-Identifier: GPL-2.0-only
/*
 * What a page of the kernel holds at each store to one of its words: in which order a
 * driver writes a page, a reader who polls it finds out once in a million times.  The
 * processor's debug registers tell it every time.
 */
#include <linux/atomic.h>
#include <linux/hw_breakpoint.h>
#include <linux/mm.h>
#include <linux/perf_event.h>
#include <linux/slab.h>

#include "test.h"

/**
 * struct test_watch - a word that is watched
 * @page: const: it is in this page, referenced
 * @event: const: one on each processor
 * @count: stores so far
 * @seen: how the page began at the first of them
 */
struct test_watch {
	struct page *page;
	struct perf_event * __percpu *event;
	atomic_t count;
	u32 seen[NVMEP_TEST_STORES][NVMEP_TEST_WORDS];
};

/* After the store, with nothing of the storing processor's in between. */
static void test_watch_hit(struct perf_event *event,
			   struct perf_sample_data *data, struct pt_regs *regs)
{
	struct test_watch *watch = event->overflow_handler_context;
	int index = atomic_inc_return(&watch->count) - 1;

	if (index < NVMEP_TEST_STORES)
		memcpy(watch->seen[index], page_address(watch->page),
		       sizeof(watch->seen[index]));
}

static int test_watch_begin(struct test_watch *watch, unsigned int offset)
{
	struct perf_event_attr attr;

	hw_breakpoint_init(&attr);
	attr.bp_addr = (unsigned long)page_address(watch->page) + offset;
	attr.bp_len = HW_BREAKPOINT_LEN_4;
	attr.bp_type = HW_BREAKPOINT_W;
	watch->event = register_wide_hw_breakpoint(&attr, test_watch_hit, watch);
	return PTR_ERR_OR_ZERO((void *)(__force unsigned long)watch->event);
}

int test_watch(struct test_file *file, const struct nvmep_test_watch *what)
{
	struct test_watch *watch;
	int ret;

	lockdep_assert_held(&file->lock);
	if (file->watch)
		return -EBUSY;
	watch = kzalloc(sizeof(*watch), GFP_KERNEL);
	if (!watch)
		return -ENOMEM;
	ret = get_user_pages_fast(what->address, 1, 0, &watch->page);
	if (ret != 1) {
		ret = -EFAULT;
		goto err_free;
	}
	ret = test_watch_begin(watch, offset_in_page(what->address));
	if (ret)
		goto err_page;
	file->watch = watch;
	return 0;

err_page:
	put_page(watch->page);
err_free:
	kfree(watch);
	return ret;
}

void test_unwatch(struct test_file *file)
{
	struct test_watch *watch = file->watch;

	lockdep_assert_held(&file->lock);
	if (!watch)
		return;
	file->watch = NULL;
	unregister_wide_hw_breakpoint(watch->event);
	put_page(watch->page);
	kfree(watch);
}

int test_stores(struct test_file *file, struct nvmep_test_stores *stores)
{
	const struct test_watch *watch = file->watch;

	lockdep_assert_held(&file->lock);
	if (!watch)
		return -ENOENT;
	stores->count = atomic_read(&watch->count);
	memcpy(stores->seen, watch->seen, sizeof(stores->seen));
	return 0;
}
