// SPDX-License-Identifier: GPL-2.0-only
/*
 * Holds a caller up where a driver must not be overtaken: the next one, of a process or of all, at
 * the beginning of a function of the kernel.  A race that is lost once in a million
 * times is lost every time.
 *
 * Its processor waits with it, so a guest needs another one, and there is an end to it.
 */
#include <linux/atomic.h>
#include <linux/kprobes.h>
#include <linux/sched.h>
#include <linux/slab.h>
#include <linux/timekeeping.h>

#include "test.h"

#define TEST_LONGEST_STALL	(3 * NSEC_PER_SEC)

enum test_stall_state {
	TEST_STALL_ARMED,
	TEST_STALL_HELD,
	TEST_STALL_OVER,
};

/**
 * struct test_stall - a function at which somebody is held up
 * @probe: const: there
 * @tgid: const: whom, 0 for anybody
 * @function: const: its name
 * @state: enum test_stall_state; each comes once, in this order
 */
struct test_stall {
	struct kprobe probe;
	pid_t tgid;
	char function[NVMEP_TEST_FUNCTION];
	atomic_t state;
};

static int test_stall_hit(struct kprobe *probe, struct pt_regs *regs)
{
	struct test_stall *stall = container_of(probe, struct test_stall, probe);
	u64 end = ktime_get_mono_fast_ns() + TEST_LONGEST_STALL;

	if ((stall->tgid && current->tgid != stall->tgid) ||
	    atomic_cmpxchg(&stall->state, TEST_STALL_ARMED,
			   TEST_STALL_HELD) != TEST_STALL_ARMED)
		return 0;
	while (atomic_read(&stall->state) == TEST_STALL_HELD &&
	       ktime_get_mono_fast_ns() < end)
		cpu_relax();
	atomic_set(&stall->state, TEST_STALL_OVER);
	return 0;
}
NOKPROBE_SYMBOL(test_stall_hit);

int test_stall(struct test_file *file, const struct nvmep_test_stall *what)
{
	struct test_stall *stall;
	int ret;

	lockdep_assert_held(&file->lock);
	if (file->stall)
		return -EBUSY;
	stall = kzalloc(sizeof(*stall), GFP_KERNEL);
	if (!stall)
		return -ENOMEM;
	strscpy(stall->function, what->function, sizeof(stall->function));
	stall->tgid = what->anybody ? 0 : current->tgid;
	stall->probe.symbol_name = stall->function;
	stall->probe.pre_handler = test_stall_hit;
	ret = register_kprobe(&stall->probe);
	if (ret) {
		kfree(stall);
		return ret;
	}
	file->stall = stall;
	return 0;
}

/* Whoever is held up goes on. */
void test_stall_end(struct test_file *file)
{
	struct test_stall *stall = file->stall;

	lockdep_assert_held(&file->lock);
	if (!stall)
		return;
	file->stall = NULL;
	atomic_set(&stall->state, TEST_STALL_OVER);
	unregister_kprobe(&stall->probe);
	kfree(stall);
}

/* EAGAIN: nobody has come yet; ETIMEDOUT: it has been let go. */
int test_stalled(struct test_file *file)
{
	lockdep_assert_held(&file->lock);
	if (!file->stall)
		return -ENOENT;
	switch (atomic_read(&file->stall->state)) {
	case TEST_STALL_ARMED:
		return -EAGAIN;
	case TEST_STALL_HELD:
		return 0;
	default:
		return -ETIMEDOUT;
	}
}
