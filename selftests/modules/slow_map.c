// SPDX-License-Identifier: GPL-2.0-only
/*
 * Makes an importer's mapping of doorbells last longer than its exporter is
 * waited for, as one does that waits for memory. A probe diverts the call to a
 * function that sleeps first.
 */
#include <linux/atomic.h>
#include <linux/kprobes.h>
#include <linux/ptrace.h>
#include <linux/slab.h>

#include "test.h"

#if defined(NVMEP_HAVE_DMABUF_PHYS_VEC) && defined(NVMEP_HAVE_P2PDMA_PROVIDER)
/**
 * struct test_slow_map - delays one mapping
 * @probe: const: at the kernel's function that maps
 * @armed: 1 until the mapping comes
 */
struct test_slow_map {
	struct kprobe probe;
	atomic_t armed;
};

/* Of the last probe that was registered, as the diverted call gets no context. */
static u32 test_slow_ms;

/* Has the prototype of the function whose place it takes. */
static struct sg_table *
test_map_slowly(struct dma_buf_attachment *attachment,
		struct p2pdma_provider *provider, struct phys_vec *ranges,
		size_t count, size_t bytes, enum dma_data_direction dir)
{
	test_hold_for(READ_ONCE(test_slow_ms));
	return dma_buf_phys_vec_to_sgt(attachment, provider, ranges, count,
				       bytes, dir);
}

static int test_slow_hit(struct kprobe *probe, struct pt_regs *regs)
{
	struct test_slow_map *slow = container_of(probe, struct test_slow_map,
						  probe);

	if (atomic_cmpxchg(&slow->armed, 1, 0) != 1)
		return 0;
	instruction_pointer_set(regs, (unsigned long)test_map_slowly);
	return 1;
}
NOKPROBE_SYMBOL(test_slow_hit);

/* A probe without this handler cannot divert a call. */
static void test_slow_post(struct kprobe *probe, struct pt_regs *regs,
			   unsigned long flags)
{
}
NOKPROBE_SYMBOL(test_slow_post);

int test_slow_map(struct test_file *file, u32 ms)
{
	struct test_slow_map *slow;
	int ret;

	lockdep_assert_held(&file->lock);
	if (file->slow_map)
		return -EBUSY;
	slow = kzalloc(sizeof(*slow), GFP_KERNEL);
	if (!slow)
		return -ENOMEM;
	WRITE_ONCE(test_slow_ms, ms);
	atomic_set(&slow->armed, 1);
	slow->probe.symbol_name = "dma_buf_phys_vec_to_sgt";
	slow->probe.pre_handler = test_slow_hit;
	slow->probe.post_handler = test_slow_post;
	ret = register_kprobe(&slow->probe);
	if (ret) {
		kfree(slow);
		return ret;
	}
	file->slow_map = slow;
	return 0;
}

/* A diverted call of this file has returned: it held the file's lock. */
void test_slow_map_end(struct test_file *file)
{
	struct test_slow_map *slow = file->slow_map;

	lockdep_assert_held(&file->lock);
	if (!slow)
		return;
	file->slow_map = NULL;
	unregister_kprobe(&slow->probe);
	kfree(slow);
}
#else
int test_slow_map(struct test_file *file, u32 ms)
{
	return -EOPNOTSUPP;
}

void test_slow_map_end(struct test_file *file)
{
}
#endif
