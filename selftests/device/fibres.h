/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * fibres.h: a machine with lanes and warps for the device library, all of it
 * in one thread, so that a test decides who runs next at every access.
 *
 * A fibre is a lane or the controller.  Before each access to shared memory a
 * fibre asks machine_step(), where another may be chosen to run.  Choices come
 * from a random generator, or from a list that a model checker works through.
 *
 * Memory is sequentially consistent but for what leaves the machine: entries
 * and doorbells that are stored stay on their way until a fence pushes them out
 * or a choice lets them arrive, each fibre's in order of address only.  So a
 * missing fence shows as an entry that is not whole or a doorbell gone back.
 */
#ifndef SELFTESTS_DEVICE_FIBRES_H
#define SELFTESTS_DEVICE_FIBRES_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <ucontext.h>

enum {
	MAX_FIBRES = 70,
	MAX_CHOICES = 1 << 16,
	MAX_POSTED = 256,
	FIBRE_STACK = 64 << 10,
};

/* What a test takes away to see itself fail. */
enum machine_broken { BREAK_NOTHING, BREAK_PUBLISH_FENCE, BREAK_RING_FENCE, BREAK_ATOMICS };

/* What a fibre waits for. */
enum fibre_state { FIBRE_RUNS, FIBRE_RESTS, FIBRE_JOINS, FIBRE_MEETS, FIBRE_ENDED };

/* A store that has left its fibre and has not arrived. */
struct posted {
	uint32_t *address;
	uint32_t value[4];
	uint32_t words;
};

struct fibre {
	ucontext_t context;
	void (*main)(void *);
	void *argument;
	enum fibre_state state;
	uint32_t warp;
	uint32_t lane;
	const void *site;	/* where it joins others */
	uint32_t mask;		/* of the meeting it waits at or has come from */
	uint64_t given;		/* what it brought to the meeting */
	uint64_t others[32];	/* what all brought */
	struct posted posted[MAX_POSTED];
	uint32_t posted_count;
};

/* Counts of what a program did; a test of costs looks at them. */
struct machine_counts {
	uint64_t atomics, loads, stores, entry_stores, doorbells, cq_loads;
	uint64_t fences_publish, fences_consume, fences_device;
};

struct machine {
	struct fibre fibres[MAX_FIBRES];
	ucontext_t home;
	uint32_t fibre_count;
	uint32_t alive;
	uint32_t current;
	uint32_t rested;		/* last fibre that rested, for turns */
	uint32_t lanes;			/* of a warp */
	enum machine_broken broken;
	bool random;
	bool whole_warps;		/* lanes always join all together */
	uint32_t seed;
	uint32_t preemptions;		/* still allowed */
	uint64_t steps, step_limit;
	bool stuck;
	uint16_t choice[MAX_CHOICES], choices[MAX_CHOICES];
	uint32_t choice_count, choice_at;
	uint64_t now_ns;
	struct machine_counts counts;
};

static struct machine machine;
static char fibre_stacks[MAX_FIBRES][FIBRE_STACK] __attribute__((aligned(64)));

static inline uint32_t machine_random(void)
{
	machine.seed ^= machine.seed << 13;
	machine.seed ^= machine.seed >> 17;
	machine.seed ^= machine.seed << 5;
	return machine.seed;
}

/* One of @count ways to go on; 0 is the natural one. */
static inline uint32_t machine_choose(uint32_t count)
{
	uint32_t at = machine.choice_at;

	if (count < 2)
		return 0;
	if (machine.random)
		return machine_random() % count;
	if (at >= MAX_CHOICES)
		return 0;
	if (at == machine.choice_count) {
		machine.choice[at] = 0;
		machine.choices[at] = (uint16_t)count;
		machine.choice_count++;
	}
	machine.choice_at++;
	return machine.choice[at];
}

static inline struct fibre *fibre_current(void)
{
	return &machine.fibres[machine.current];
}

static inline void posted_arrive(struct fibre *fibre, uint32_t which)
{
	struct posted *posted = &fibre->posted[which];

	memcpy(posted->address, posted->value, 4 * posted->words);
	fibre->posted_count--;
	memmove(posted, posted + 1, sizeof(*posted) * (fibre->posted_count - which));
}

static inline void posted_push_out(struct fibre *fibre)
{
	while (fibre->posted_count)
		posted_arrive(fibre, 0);
}

static inline void post(uint32_t *address, const uint32_t *value, uint32_t words)
{
	struct fibre *fibre = fibre_current();
	struct posted *posted;

	if (fibre->posted_count == MAX_POSTED)
		posted_arrive(fibre, 0);
	/* Stores to one address stay in order: the older one arrives first. */
	for (uint32_t i = 0; i < fibre->posted_count; i++)
		if (fibre->posted[i].address == address)
			posted_arrive(fibre, i--);
	posted = &fibre->posted[fibre->posted_count++];
	posted->address = address;
	posted->words = words;
	memcpy(posted->value, value, 4 * words);
	/* A model checker tries both ends: now, or not before a fence. */
	if (!machine.random && machine.preemptions && words == 1 && machine_choose(2))
		posted_arrive(fibre, fibre->posted_count - 1);
}

static inline void fibre_switch(uint32_t to)
{
	uint32_t from = machine.current;

	if (to == from)
		return;
	machine.current = to;
	swapcontext(&machine.fibres[from].context, &machine.fibres[to].context);
}

/* Lets a meeting happen if all have come.  True if it did. */
static inline bool meeting_try(struct fibre *fibre)
{
	struct fibre *all[32] = { NULL };
	uint32_t here = 0;

	for (uint32_t i = 0; i < machine.fibre_count; i++) {
		struct fibre *other = &machine.fibres[i];

		if (other->state == FIBRE_MEETS && other->warp == fibre->warp &&
		    other->mask == fibre->mask) {
			here |= 1u << other->lane;
			all[other->lane] = other;
		}
	}
	if (here != fibre->mask)
		return false;
	for (uint32_t to = 0; to < 32; to++)
		if (all[to])
			for (uint32_t from = 0; from < 32; from++)
				all[to]->others[from] = all[from] ? all[from]->given : 0;
	for (uint32_t to = 0; to < 32; to++)
		if (all[to])
			all[to]->state = FIBRE_RUNS;
	return true;
}

/*
 * Lets lanes that stand at the same join go on together: all of a warp, or
 * some.  @nobody_else: no other lane can come.
 */
static inline bool join_try(const struct fibre *first, bool nobody_else)
{
	uint32_t warp = first->warp;
	const void *site = first->site;
	uint32_t waiting = 0, living = 0, mask;

	for (uint32_t i = 0; i < machine.fibre_count; i++) {
		struct fibre *fibre = &machine.fibres[i];

		if (fibre->warp != warp || fibre->state == FIBRE_ENDED)
			continue;
		living |= 1u << fibre->lane;
		if (fibre->state == FIBRE_JOINS && fibre->site == site)
			waiting |= 1u << fibre->lane;
	}
	mask = waiting;
	if (!waiting || (machine.whole_warps && waiting != living && !nobody_else))
		return false;
	if (!machine.whole_warps && machine.random)
		mask &= machine_random() | machine_random();
	mask = mask ? mask : waiting;
	for (uint32_t i = 0; i < machine.fibre_count; i++) {
		struct fibre *fibre = &machine.fibres[i];

		if (fibre->warp == warp && fibre->state == FIBRE_JOINS &&
		    fibre->site == site && mask >> fibre->lane & 1) {
			fibre->mask = mask;
			fibre->state = FIBRE_RUNS;
		}
	}
	return true;
}

static inline uint32_t next_of(enum fibre_state state, uint32_t after)
{
	for (uint32_t i = 1; i <= machine.fibre_count; i++) {
		uint32_t at = (after + i) % machine.fibre_count;

		if (machine.fibres[at].state == state)
			return at;
	}
	return MAX_FIBRES;
}

/*
 * Fibres that may run, for a choice among them.  At random any; for a model
 * checker one of each warp, as the order of lanes between meetings only
 * permutes what they do alone.
 */
static inline uint32_t runnable_fibres(uint32_t list[MAX_FIBRES])
{
	uint32_t warps = 0, count = 0;

	for (uint32_t i = 0; i < machine.fibre_count; i++) {
		struct fibre *fibre = &machine.fibres[i];

		if (fibre->state != FIBRE_RUNS || i == machine.current ||
		    (!machine.random && warps >> fibre->warp & 1))
			continue;
		warps |= 1u << fibre->warp;
		list[count++] = i;
	}
	return count;
}

/* For a model checker: another lane of the same warp goes on without a choice. */
static inline uint32_t runnable_sibling(void)
{
	for (uint32_t i = 0; i < machine.fibre_count; i++)
		if (i != machine.current && machine.fibres[i].state == FIBRE_RUNS &&
		    machine.fibres[i].warp == fibre_current()->warp)
			return i;
	return MAX_FIBRES;
}

/* The current fibre cannot go on: somebody else, or all of it is over. */
static inline void machine_give_way(void)
{
	uint32_t runnable[MAX_FIBRES], count = runnable_fibres(runnable), to;

	/* A meeting may have let it go on after all. */
	if (fibre_current()->state == FIBRE_RUNS)
		return;
	to = runnable_sibling();
	if (!machine.random && to != MAX_FIBRES) {
		fibre_switch(to);
		return;
	}
	if (count) {
		fibre_switch(runnable[machine_choose(count)]);
		return;
	}
	for (uint32_t i = 0; i < machine.fibre_count; i++)
		if (machine.fibres[i].state == FIBRE_JOINS && join_try(&machine.fibres[i], true)) {
			machine_give_way();
			return;
		}
	to = next_of(FIBRE_RESTS, machine.rested);
	if (to == MAX_FIBRES || machine.steps > machine.step_limit) {
		machine.stuck = machine.stuck || machine.alive;
		swapcontext(&fibre_current()->context, &machine.home);
		return;
	}
	machine.rested = to;
	machine.fibres[to].state = FIBRE_RUNS;
	fibre_switch(to);
}

/* A store on its way may arrive now: of any fibre, in any order. */
static inline void machine_deliver(void)
{
	struct fibre *fibre = &machine.fibres[machine_random() % machine.fibre_count];

	if (fibre->posted_count)
		posted_arrive(fibre, machine_random() % fibre->posted_count);
}

/* One that rests may come back early. */
static inline void machine_wake(void)
{
	uint32_t which = next_of(FIBRE_RESTS, machine_random() % machine.fibre_count);

	if (which != MAX_FIBRES)
		machine.fibres[which].state = FIBRE_RUNS;
}

/* Before every access: may another fibre run first? */
static inline void machine_step(void)
{
	uint32_t others[MAX_FIBRES], count;

	machine.now_ns += 5;
	if (++machine.steps > machine.step_limit) {
		machine.stuck = true;
		swapcontext(&fibre_current()->context, &machine.home);
	}
	if (machine.random) {
		if (machine_random() % 4 == 0)
			machine_deliver();
		if (machine_random() % 16 == 0)
			machine_wake();
		if (machine_random() % 4)
			return;
	}
	if (!machine.preemptions)
		return;
	count = machine_choose(runnable_fibres(others) + 1);
	if (!count)
		return;
	if (!machine.random)
		machine.preemptions--;
	fibre_switch(others[count - 1]);
}

/* A wait: everybody else has a turn first.  What was stored arrives meanwhile. */
static inline void machine_rest(void)
{
	if (!machine.random)
		posted_push_out(fibre_current());
	fibre_current()->state = FIBRE_RESTS;
	machine.steps++;
	machine.now_ns += 50;
	machine_give_way();
}

/* Lanes meet at the same instruction only: @site names it. */
static inline uint32_t machine_join(const void *site)
{
	struct fibre *fibre = fibre_current();

	fibre->state = FIBRE_JOINS;
	fibre->site = site;
	join_try(fibre, false);
	if (fibre->state != FIBRE_RUNS)
		machine_give_way();
	return fibre->mask;
}

/* Brings a value to the other lanes of @mask; theirs are in others[] after. */
static inline void machine_meet(uint32_t mask, uint64_t value)
{
	struct fibre *fibre = fibre_current();

	if (!(mask >> fibre->lane & 1))
		abort();
	fibre->state = FIBRE_MEETS;
	fibre->mask = mask;
	fibre->given = value;
	if (!meeting_try(fibre))
		machine_give_way();
}

static void fibre_start(void)
{
	struct fibre *fibre = fibre_current();

	fibre->main(fibre->argument);
	posted_push_out(fibre);
	fibre->state = FIBRE_ENDED;
	machine.alive--;
	for (;;)
		machine_give_way();
}

static inline void machine_reset(uint32_t lanes)
{
	machine.fibre_count = machine.alive = machine.current = machine.rested = 0;
	machine.lanes = lanes;
	machine.steps = machine.now_ns = 0;
	machine.step_limit = 1000 * 1000;
	machine.stuck = false;
	machine.choice_at = 0;
	machine.preemptions = 1;
	memset(&machine.counts, 0, sizeof(machine.counts));
}

static inline struct fibre *machine_add(void (*main)(void *), void *argument, uint32_t warp,
					uint32_t lane)
{
	uint32_t index = machine.fibre_count++;
	struct fibre *fibre = &machine.fibres[index];

	fibre->main = main;
	fibre->argument = argument;
	fibre->warp = warp;
	fibre->lane = lane;
	fibre->state = FIBRE_RUNS;
	fibre->posted_count = 0;
	getcontext(&fibre->context);
	fibre->context.uc_stack.ss_sp = fibre_stacks[index];
	fibre->context.uc_stack.ss_size = FIBRE_STACK;
	fibre->context.uc_link = NULL;
	makecontext(&fibre->context, fibre_start, 0);
	machine.alive++;
	return fibre;
}

/* Runs until every fibre has ended.  False if they got stuck. */
static inline bool machine_run(void)
{
	machine.current = 0;
	swapcontext(&machine.home, &machine.fibres[0].context);
	return !machine.stuck && !machine.alive;
}

/*
 * The next list of choices, depth first.  False when all have been tried.
 */
static inline bool machine_next_schedule(void)
{
	while (machine.choice_count) {
		uint32_t last = machine.choice_count - 1;

		if (++machine.choice[last] < machine.choices[last])
			return true;
		machine.choice_count--;
	}
	return false;
}

#endif /* SELFTESTS_DEVICE_FIBRES_H */
