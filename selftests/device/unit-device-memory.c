// SPDX-License-Identifier: GPL-2.0-only
/*
 * unit-device-memory.c: the weak memory that the other tests depend on.  Litmus
 * tests whose outcomes the memory models of C11 and PTX allow or forbid: an
 * allowed outcome must occur under some seed, a forbidden one under none.
 */
#define NVMEPEER_PLATFORM_HEADER "fibre_platform.h"
#include <nvmepeer_device.h>

#include "bench.h"
#include "../lib/ktap.h"

enum { SEEDS = 3000 };

static uint32_t x, y, passed;
static uint64_t saw[4];

#define LOAD(p) ((uint32_t)fibre_load(p, 4, __ATOMIC_RELAXED, WEAK_SYSTEM))
#define STORE(p, value) fibre_store(p, 4, value, __ATOMIC_RELAXED, WEAK_SYSTEM)

static int fence_scope;		/* scope of the writer's fence; -1: none */
static int reader_scope;	/* scope of the reader's fence */

static void fence_of(int order, int scope)
{
	if (scope >= 0)
		weak_fence(order, (enum weak_scope)scope);
}

/* Message passing. */
static void writes_message(void *argument)
{
	(void)argument;
	STORE(&x, 1);
	fence_of(__ATOMIC_RELEASE, fence_scope);
	STORE(&y, 1);
}

static void reads_message(void *argument)
{
	(void)argument;
	saw[0] = LOAD(&y);
	fence_of(__ATOMIC_ACQUIRE, reader_scope);
	saw[1] = LOAD(&x);
}

/* A third fibre passes it on by a read-modify-write. */
static void passes_on(void *argument)
{
	(void)argument;
	while (!nvp_add32(&passed, 0))
		machine_rest();
	nvp_add32(&passed, 1);
}

static void writes_and_adds(void *argument)
{
	(void)argument;
	STORE(&x, 1);
	fence_of(__ATOMIC_RELEASE, fence_scope);
	nvp_add32(&passed, 1);
}

static void reads_behind_two(void *argument)
{
	(void)argument;
	saw[0] = nvp_load32(&passed) == 2;
	fence_of(__ATOMIC_ACQUIRE, reader_scope);
	saw[1] = LOAD(&x);
}

/* Store buffering. */
static void stores_x(void *argument)
{
	(void)argument;
	STORE(&x, 1);
	fence_of(__ATOMIC_SEQ_CST, fence_scope);
	saw[0] = !LOAD(&y);
}

static void stores_y(void *argument)
{
	(void)argument;
	STORE(&y, 1);
	fence_of(__ATOMIC_SEQ_CST, fence_scope);
	saw[1] = !LOAD(&x);
}

/* Two words stored in opposite order: both may keep the first store. */
static void stores_1_2(void *argument)
{
	(void)argument;
	STORE(&x, 1);
	fence_of(__ATOMIC_RELEASE, fence_scope);
	STORE(&y, 2);
}

static void stores_2_1(void *argument)
{
	(void)argument;
	STORE(&y, 1);
	fence_of(__ATOMIC_RELEASE, fence_scope);
	STORE(&x, 2);
}

/* Two loads of one word: the second is never older. */
static void counts(void *argument)
{
	(void)argument;
	STORE(&x, 1);
	STORE(&x, 2);
}

static void reads_twice(void *argument)
{
	(void)argument;
	saw[0] = LOAD(&x);
	saw[1] = LOAD(&x);
}

/* One store and one load, each at device or system scope. */
static void stores_near(void *argument)
{
	(void)argument;
	nvp_store32(&x, 1);
}

static void stores_far(void *argument)
{
	(void)argument;
	STORE(&x, 1);
}

static void reads_near(void *argument)
{
	(void)argument;
	saw[0] = nvp_load32(&x);
}

static void reads_far(void *argument)
{
	(void)argument;
	saw[0] = LOAD(&x);
}

/* Lanes at a barrier. */
static void meets(void *argument)
{
	if (!argument)
		STORE(&x, 1);
	if (fence_scope < 0)
		nvp_lanes_ballot(3, 1);
	else
		nvp_lanes_sync(3);
	if (argument) {
		saw[0] = 1;
		saw[1] = LOAD(&x);
	}
}

static bool passed_late(void)
{
	return saw[0] && !saw[1];
}

static bool seen_at_all(void)
{
	return saw[0];
}

static bool both(void)
{
	return saw[0] && saw[1];
}

static bool went_back(void)
{
	return saw[1] < saw[0];
}

static bool kept_first(void)
{
	return x == 1 && y == 1;
}

struct litmus {
	const char *name;
	void (*main[3])(void *);
	bool (*outcome)(void);
	int writer, reader;
	bool outside;		/* the second fibre is a controller */
	bool together;		/* all are lanes of one warp */
	bool allowed;
};

static const struct litmus litmus[] = {
	{ "message: no fences", { writes_message, reads_message }, passed_late, -1, -1, 0, 0, 1 },
	{ "message: writer's fence only", { writes_message, reads_message }, passed_late,
	  WEAK_DEVICE, -1, 0, 0, 1 },
	{ "message: reader's fence only", { writes_message, reads_message }, passed_late,
	  -1, WEAK_SYSTEM, 0, 0, 1 },
	{ "message: both device fences", { writes_message, reads_message }, passed_late,
	  WEAK_DEVICE, WEAK_DEVICE, 0, 0, 0 },
	{ "message to a controller: device fence", { writes_message, reads_message },
	  passed_late, WEAK_DEVICE, WEAK_SYSTEM, 1, 0, 1 },
	{ "message to a controller: system fence", { writes_message, reads_message },
	  passed_late, WEAK_SYSTEM, WEAK_SYSTEM, 1, 0, 0 },
	{ "message through an add: no fence", { writes_and_adds, passes_on, reads_behind_two },
	  passed_late, -1, WEAK_DEVICE, 0, 0, 1 },
	{ "message through an add: fences at both ends",
	  { writes_and_adds, passes_on, reads_behind_two }, passed_late,
	  WEAK_DEVICE, WEAK_DEVICE, 0, 0, 0 },
	{ "store buffering", { stores_x, stores_y }, both, -1, -1, 0, 0, 1 },
	{ "store buffering: sequentially consistent fences", { stores_x, stores_y }, both,
	  WEAK_DEVICE, -1, 0, 0, 0 },
	{ "opposite stores", { stores_1_2, stores_2_1 }, kept_first, -1, -1, 0, 0, 1 },
	{ "coherence of one word", { counts, reads_twice }, went_back, -1, -1, 0, 0, 0 },
	{ "device store: visible to the device", { stores_near, reads_near }, seen_at_all,
	  -1, -1, 0, 0, 1 },
	{ "device store: visible to a controller", { stores_near, reads_far }, seen_at_all,
	  -1, -1, 1, 0, 0 },
	{ "system store: visible to a controller", { stores_far, reads_far }, seen_at_all,
	  -1, -1, 1, 0, 1 },
	{ "device load: reads a controller's store", { reads_near, stores_far }, seen_at_all,
	  -1, -1, 1, 0, 0 },
	{ "system load: reads a controller's store", { reads_far, stores_far }, seen_at_all,
	  -1, -1, 1, 0, 1 },
	{ "a ballot does not order memory", { meets, meets }, passed_late, -1, -1, 0, 1, 1 },
	{ "a barrier of lanes orders memory", { meets, meets }, passed_late, 0, -1, 0, 1, 0 },
};

static bool run_once(const struct litmus *test, uint32_t seed)
{
	x = y = passed = 0;
	memset(saw, 0, sizeof(saw));
	fence_scope = test->writer;
	reader_scope = test->reader;
	machine_reset();
	weak_reset(100, 2);
	machine.random = true;
	machine.seed = seed * 2654435761u + 1;
	for (uint32_t i = 0; i < 3 && test->main[i]; i++)
		machine_add(test->main[i], (void *)(uintptr_t)i, test->together ? 0 : i,
			    test->together ? i : 0)->outside = test->outside && i == 1;
	return machine_run() && test->outcome();
}

int main(void)
{
	ktap_start();
	for (size_t i = 0; i < sizeof(litmus) / sizeof(litmus[0]); i++) {
		uint32_t seen = 0;

		for (uint32_t seed = 1; seed <= SEEDS; seed++)
			seen += run_once(&litmus[i], seed);
		printf("# %s: seen %u times\n", litmus[i].name, seen);
		ktap_check(litmus[i].allowed == (seen != 0), litmus[i].name);
	}
	return ktap_end();
}
