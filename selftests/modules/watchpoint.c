// SPDX-License-Identifier: GPL-2.0-only
/*
 * Records a page of the kernel at each store to one of its words, by the CPU's
 * debug registers. A reader that polls the page would observe a wrong order of
 * stores once in a million times; this observes it every time.
 */
#include <linux/atomic.h>
#include <linux/hw_breakpoint.h>
#include <linux/mm.h>
#include <linux/perf_event.h>
#include <linux/slab.h>

#include "test.h"

/**
 * struct test_watchpoint - a watched word
 * @page: const: the page of the word, referenced
 * @event: const: one on each CPU
 * @count: stores so far
 * @seen: the first words of the page at the first stores
 */
struct test_watchpoint {
	struct page *page;
	struct perf_event * __percpu *event;
	atomic_t count;
	u32 seen[NVMEP_TEST_STORES][NVMEP_TEST_WORDS];
};

/* Runs after the store, before the storing CPU's next instruction. */
static void test_watchpoint_hit(struct perf_event *event,
				struct perf_sample_data *data, struct pt_regs *regs)
{
	struct test_watchpoint *watchpoint = event->overflow_handler_context;
	int index = atomic_inc_return(&watchpoint->count) - 1;

	if (index < NVMEP_TEST_STORES)
		memcpy(watchpoint->seen[index], page_address(watchpoint->page),
		       sizeof(watchpoint->seen[index]));
}

static int test_watchpoint_begin(struct test_watchpoint *watchpoint, unsigned int offset)
{
	struct perf_event_attr attr;

	hw_breakpoint_init(&attr);
	attr.bp_addr = (unsigned long)page_address(watchpoint->page) + offset;
	attr.bp_len = HW_BREAKPOINT_LEN_4;
	attr.bp_type = HW_BREAKPOINT_W;
	watchpoint->event = register_wide_hw_breakpoint(&attr, test_watchpoint_hit, watchpoint);
	return PTR_ERR_OR_ZERO((void *)(__force unsigned long)watchpoint->event);
}

int test_watchpoint(struct test_file *file, const struct nvmep_test_watchpoint *what)
{
	struct test_watchpoint *watchpoint;
	int ret;

	lockdep_assert_held(&file->lock);
	if (file->watchpoint)
		return -EBUSY;
	watchpoint = kzalloc(sizeof(*watchpoint), GFP_KERNEL);
	if (!watchpoint)
		return -ENOMEM;
	ret = get_user_pages_fast(what->address, 1, 0, &watchpoint->page);
	if (ret != 1) {
		ret = -EFAULT;
		goto err_free;
	}
	ret = test_watchpoint_begin(watchpoint, offset_in_page(what->address));
	if (ret)
		goto err_page;
	file->watchpoint = watchpoint;
	return 0;

err_page:
	put_page(watchpoint->page);
err_free:
	kfree(watchpoint);
	return ret;
}

void test_watchpoint_end(struct test_file *file)
{
	struct test_watchpoint *watchpoint = file->watchpoint;

	lockdep_assert_held(&file->lock);
	if (!watchpoint)
		return;
	file->watchpoint = NULL;
	unregister_wide_hw_breakpoint(watchpoint->event);
	put_page(watchpoint->page);
	kfree(watchpoint);
}

int test_stores(struct test_file *file, struct nvmep_test_stores *stores)
{
	const struct test_watchpoint *watchpoint = file->watchpoint;

	lockdep_assert_held(&file->lock);
	if (!watchpoint)
		return -ENOENT;
	stores->count = atomic_read(&watchpoint->count);
	memcpy(stores->seen, watchpoint->seen, sizeof(stores->seen));
	return 0;
}
