// SPDX-License-Identifier: GPL-2.0-only
/*
 * Stalls a thread at a place where a driver must handle a race: the next
 * thread, of a process or of all, that enters a kernel function. A race that
 * would be lost once in a million times is lost every time.
 *
 * The thread's CPU is blocked too, so a guest needs a second one, and the stall
 * has a limit.
 */
#include <linux/atomic.h>
#include <linux/kprobes.h>
#include <linux/sched.h>
#include <linux/slab.h>
#include <linux/timekeeping.h>

#include "test.h"

/* The watchdogs of a guest wait for longer. */
#define TEST_STALL_MS	20000

enum test_stall_state {
	TEST_STALL_AFTER,
	TEST_STALL_ARMED,
	TEST_STALL_HELD,
	TEST_STALL_OVER,
};

/**
 * struct test_stall - a function at which a thread is stalled
 * @probe: const: at the function
 * @before: const: at the function that has to be entered first, if any
 * @what: const: which thread, and where
 * @tgid: const: its process, 0 for any
 * @state: enum test_stall_state; each is entered once, in this order
 */
struct test_stall {
	struct kprobe probe;
	struct kprobe before;
	struct nvmep_test_stall what;
	pid_t tgid;
	atomic_t state;
};

/* Is this the expected thread? Then the next state is @next. */
static bool test_stall_comes(struct test_stall *stall,
			     enum test_stall_state state,
			     enum test_stall_state next)
{
	return (!stall->tgid || current->tgid == stall->tgid) &&
	       atomic_cmpxchg(&stall->state, state, next) == state;
}
NOKPROBE_SYMBOL(test_stall_comes);

static int test_stall_before(struct kprobe *probe, struct pt_regs *regs)
{
	struct test_stall *stall = container_of(probe, struct test_stall, before);

	test_stall_comes(stall, TEST_STALL_AFTER, TEST_STALL_ARMED);
	return 0;
}
NOKPROBE_SYMBOL(test_stall_before);

static int test_stall_hit(struct kprobe *probe, struct pt_regs *regs)
{
	struct test_stall *stall = container_of(probe, struct test_stall, probe);
	u64 end = ktime_get_mono_fast_ns() +
		  (u64)stall->what.limit_ms * NSEC_PER_MSEC;

	if (!test_stall_comes(stall, TEST_STALL_ARMED, TEST_STALL_HELD))
		return 0;
	while (atomic_read(&stall->state) == TEST_STALL_HELD &&
	       ktime_get_mono_fast_ns() < end)
		cpu_relax();
	atomic_set(&stall->state, TEST_STALL_OVER);
	return 0;
}
NOKPROBE_SYMBOL(test_stall_hit);

static int test_stall_register(struct test_stall *stall)
{
	int ret;

	stall->probe.symbol_name = stall->what.function;
	stall->probe.pre_handler = test_stall_hit;
	if (!stall->what.after[0]) {
		atomic_set(&stall->state, TEST_STALL_ARMED);
		return register_kprobe(&stall->probe);
	}
	stall->before.symbol_name = stall->what.after;
	stall->before.pre_handler = test_stall_before;
	ret = register_kprobe(&stall->probe);
	if (ret)
		return ret;
	ret = register_kprobe(&stall->before);
	if (ret)
		unregister_kprobe(&stall->probe);
	return ret;
}

int test_stall(struct test_file *file, const struct nvmep_test_stall *what)
{
	struct test_stall *stall;
	int ret;

	lockdep_assert_held(&file->lock);
	if (file->stall)
		return -EBUSY;
	if (!memchr(what->function, 0, sizeof(what->function)) ||
	    !memchr(what->after, 0, sizeof(what->after)))
		return -EINVAL;
	stall = kzalloc(sizeof(*stall), GFP_KERNEL);
	if (!stall)
		return -ENOMEM;
	stall->what = *what;
	if (!what->limit_ms)
		stall->what.limit_ms = TEST_STALL_MS;
	stall->tgid = what->any_thread ? 0 : current->tgid;
	ret = test_stall_register(stall);
	if (ret) {
		kfree(stall);
		return ret;
	}
	file->stall = stall;
	return 0;
}

/* A stalled thread continues. */
void test_stall_end(struct test_file *file)
{
	struct test_stall *stall = file->stall;

	lockdep_assert_held(&file->lock);
	if (!stall)
		return;
	file->stall = NULL;
	atomic_set(&stall->state, TEST_STALL_OVER);
	if (stall->what.after[0])
		unregister_kprobe(&stall->before);
	unregister_kprobe(&stall->probe);
	kfree(stall);
}

/* EAGAIN: no thread has entered yet; ETIMEDOUT: it was stalled for too long. */
int test_stalled(struct test_file *file)
{
	lockdep_assert_held(&file->lock);
	if (!file->stall)
		return -ENOENT;
	switch (atomic_read(&file->stall->state)) {
	case TEST_STALL_AFTER:
	case TEST_STALL_ARMED:
		return -EAGAIN;
	case TEST_STALL_HELD:
		return 0;
	default:
		return -ETIMEDOUT;
	}
}
