/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * fibres.h: a machine with lanes, warps and blocks for the device library, all
 * of it in one thread, so that a test decides who runs next at every access.
 *
 * A fibre is a lane or a controller.  Before each access to shared memory a
 * fibre asks machine_step(), where another may be chosen to run.  Choices come
 * from a random generator, or from a list that a model checker works through.
 * Either way the same seed or list gives the same run.  What an access sees is
 * up to weak.h.
 */
#ifndef SELFTESTS_DEVICE_FIBRES_H
#define SELFTESTS_DEVICE_FIBRES_H

#include <setjmp.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <ucontext.h>

enum {
	MAX_FIBRES = 136,
	MAX_LANES = 64,
	MAX_CHOICES = 1 << 16,
	FIBRE_STACK = 64 << 10,
};

/* What a fibre waits for.  One that is stopped never runs again. */
enum fibre_state {
	FIBRE_RUNS, FIBRE_RESTS, FIBRE_JOINS, FIBRE_MEETS, FIBRE_BARRIER, FIBRE_STOPPED,
	FIBRE_ENDED
};

struct fibre {
	jmp_buf context;
	void (*main)(void *);
	void *argument;
	enum fibre_state state;
	bool outside;		/* not on the device: a controller */
	uint32_t warp;
	uint32_t lane;
	uint32_t block;
	uint64_t site;		/* where it joins others */
	uint64_t mask;		/* of the meeting it waits at or has come from */
	uint64_t given;		/* what it brought to the meeting */
	uint64_t others[MAX_LANES];	/* what all brought */
	uint64_t steps;		/* accesses so far */
	uint64_t rings;		/* doorbells that it has stored */
	uint64_t stop_at;	/* stops for ever before this access; 0: never */
	uint64_t delay_at;	/* rests @delay times before this access; 0: never */
	uint32_t delay;
	uint32_t delay_step;	/* and again so many accesses later; 0: only once */
};

/* Counts of what a program did; a test of costs looks at them. */
struct machine_counts {
	uint64_t atomics, loads, stores, entry_stores, doorbells, cq_loads;
	uint64_t fences_publish, fences_consume, fences_device, fences_claimed;
};

struct machine {
	struct fibre fibres[MAX_FIBRES];
	jmp_buf home;
	ucontext_t home_context;
	uint32_t fibre_count;
	uint32_t alive;			/* neither ended nor stopped */
	uint32_t current;
	uint32_t rested;		/* last fibre that rested, for turns */
	bool random;
	bool whole_warps;		/* lanes always join all together */
	uint32_t seed;
	uint32_t deviations;		/* model checker: still allowed */
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

/*
 * One of @count ways, where any but 0 is out of the ordinary: a model checker
 * allows a run only a few of those.
 */
static inline uint32_t machine_deviate(uint32_t count)
{
	uint32_t way;

	if (!machine.deviations)
		return 0;
	way = machine_choose(count);
	if (way)
		machine.deviations--;
	return way;
}

static inline struct fibre *fibre_current(void)
{
	return &machine.fibres[machine.current];
}

static inline void fibre_switch(uint32_t to)
{
	uint32_t from = machine.current;

	if (to == from)
		return;
	machine.current = to;
	if (!_setjmp(machine.fibres[from].context))
		_longjmp(machine.fibres[to].context, 1);
}

static inline void fibre_go_home(void)
{
	if (!_setjmp(fibre_current()->context))
		_longjmp(machine.home, 1);
}

/* Lets a meeting happen if all have come.  True if it did. */
static inline bool meeting_try(struct fibre *fibre)
{
	struct fibre *all[MAX_LANES];
	uint64_t here = 0;
	uint32_t count = 0;

	for (uint32_t i = 0; i < machine.fibre_count; i++) {
		struct fibre *other = &machine.fibres[i];

		if (other->state == FIBRE_MEETS && other->warp == fibre->warp &&
		    other->mask == fibre->mask) {
			here |= (uint64_t)1 << other->lane;
			all[count++] = other;
		}
	}
	if (here != fibre->mask)
		return false;
	for (uint32_t to = 0; to < count; to++) {
		for (uint32_t from = 0; from < count; from++)
			all[to]->others[all[from]->lane] = all[from]->given;
		all[to]->state = FIBRE_RUNS;
	}
	return true;
}

/*
 * Lets lanes that stand at the same join go on together: all of a warp, or
 * some.  @nobody_else: no other lane can come.
 */
static inline bool join_try(const struct fibre *first, bool nobody_else)
{
	uint32_t warp = first->warp;
	uint64_t site = first->site, waiting = 0, living = 0, mask;

	for (uint32_t i = 0; i < machine.fibre_count; i++) {
		struct fibre *fibre = &machine.fibres[i];

		if (fibre->warp != warp || fibre->state == FIBRE_ENDED)
			continue;
		living |= (uint64_t)1 << fibre->lane;
		if (fibre->state == FIBRE_JOINS && fibre->site == site)
			waiting |= (uint64_t)1 << fibre->lane;
	}
	mask = waiting;
	if (!waiting || (machine.whole_warps && waiting != living && !nobody_else))
		return false;
	if (!machine.whole_warps && machine.random)
		mask &= (machine_random() | machine_random()) |
			(uint64_t)(machine_random() | machine_random()) << 32;
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
		fibre_go_home();
		return;
	}
	machine.rested = to;
	machine.fibres[to].state = FIBRE_RUNS;
	fibre_switch(to);
}

/* One that rests may come back early. */
static inline void machine_wake(void)
{
	uint32_t which = next_of(FIBRE_RESTS, machine_random() % machine.fibre_count);

	if (which != MAX_FIBRES)
		machine.fibres[which].state = FIBRE_RUNS;
}

/* The current fibre never runs again, and so none of its warp. */
static inline void machine_stop(void)
{
	for (uint32_t i = 0; i < machine.fibre_count; i++) {
		struct fibre *fibre = &machine.fibres[i];

		if (fibre->warp != fibre_current()->warp || fibre->state == FIBRE_ENDED)
			continue;
		fibre->state = FIBRE_STOPPED;
		machine.alive--;
	}
	for (;;)
		machine_give_way();
}

/* A wait: everybody else has a turn first. */
static inline void machine_rest(void)
{
	fibre_current()->state = FIBRE_RESTS;
	machine.steps++;
	machine.now_ns += 50;
	machine_give_way();
}

/* Before every access: may another fibre run first? */
static inline void machine_step(void)
{
	uint32_t others[MAX_FIBRES], count;

	machine.now_ns += 5;
	if (++fibre_current()->steps == fibre_current()->stop_at)
		machine_stop();
	if (fibre_current()->steps == fibre_current()->delay_at) {
		fibre_current()->delay_at += fibre_current()->delay_step;
		for (uint32_t i = 0; i < fibre_current()->delay; i++)
			machine_rest();
	}
	if (++machine.steps > machine.step_limit) {
		machine.stuck = true;
		fibre_go_home();
	}
	if (machine.random) {
		if (machine_random() % 16 == 0)
			machine_wake();
		if (machine_random() % 4)
			return;
	}
	if (!machine.random && !machine.deviations)
		return;
	count = runnable_fibres(others) + 1;
	count = machine.random ? machine_choose(count) : machine_deviate(count);
	if (count)
		fibre_switch(others[count - 1]);
}

/* Lanes meet at the same instruction only: @site names it. */
static inline uint64_t machine_join(uint64_t site)
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
static inline void machine_meet(uint64_t mask, uint64_t value)
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

/*
 * Waits for all living fibres of the block.  Each brings a value; the last to
 * come gets all of them combined, and what it returns is everybody's.
 */
static inline uint64_t machine_barrier(uint64_t value, uint64_t (*combine)(uint64_t, uint64_t))
{
	struct fibre *fibre = fibre_current();
	uint64_t all = value;

	fibre->given = value;
	fibre->state = FIBRE_BARRIER;
	for (uint32_t i = 0; i < machine.fibre_count; i++) {
		const struct fibre *other = &machine.fibres[i];

		if (other->outside || other->block != fibre->block || other->state == FIBRE_ENDED)
			continue;
		if (other->state != FIBRE_BARRIER) {
			machine_give_way();
			return fibre->given;
		}
		all = combine(all, other->given);
	}
	for (uint32_t i = 0; i < machine.fibre_count; i++) {
		struct fibre *other = &machine.fibres[i];

		if (other->outside || other->block != fibre->block || other->state == FIBRE_ENDED)
			continue;
		other->given = all;
		other->state = FIBRE_RUNS;
	}
	return all;
}

static void fibre_start(void)
{
	if (!_setjmp(fibre_current()->context))
		setcontext(&machine.home_context);
	fibre_current()->main(fibre_current()->argument);
	fibre_current()->state = FIBRE_ENDED;
	machine.alive--;
	for (;;)
		machine_give_way();
}

/* Everything else in @machine is the test's to set after this. */
static inline void machine_reset(void)
{
	machine.fibre_count = machine.alive = machine.current = machine.rested = 0;
	machine.steps = machine.now_ns = 0;
	machine.step_limit = 1000 * 1000;
	machine.stuck = false;
	machine.random = false;
	machine.choice_at = 0;
	/* What a test does while the machine stands still is done by the first. */
	machine.fibres[0].stop_at = machine.fibres[0].delay_at = 0;
	machine.fibres[0].outside = false;
	machine.deviations = 0;
	memset(&machine.counts, 0, sizeof(machine.counts));
}

/* Runs the new fibre up to its first jump, so that others can jump to it. */
static inline void fibre_prepare(struct fibre *fibre, uint32_t index)
{
	static ucontext_t context;

	fibre->state = FIBRE_RUNS;
	machine.current = index;
	getcontext(&context);
	context.uc_stack.ss_sp = fibre_stacks[index];
	context.uc_stack.ss_size = FIBRE_STACK;
	context.uc_link = NULL;
	makecontext(&context, fibre_start, 0);
	swapcontext(&machine.home_context, &context);
	machine.current = 0;
}

static inline struct fibre *machine_add(void (*main)(void *), void *argument, uint32_t warp,
					uint32_t lane)
{
	uint32_t index = machine.fibre_count++;
	struct fibre *fibre = &machine.fibres[index];

	if (index >= MAX_FIBRES)
		abort();
	fibre->main = main;
	fibre->argument = argument;
	fibre->warp = warp;
	fibre->lane = lane;
	fibre->block = 0;
	fibre->outside = false;
	fibre->steps = fibre->stop_at = fibre->delay_at = fibre->rings = 0;
	fibre->delay_step = 0;
	fibre_prepare(fibre, index);
	machine.alive++;
	return fibre;
}

/* Adds one that is not on the device. */
static inline struct fibre *machine_add_outside(void (*main)(void *), void *argument)
{
	struct fibre *fibre = machine_add(main, argument, 31, 0);

	fibre->outside = true;
	return fibre;
}

/* Runs until every fibre has ended or stopped.  False if they got stuck. */
static inline bool machine_run(void)
{
	machine.current = 0;
	if (!_setjmp(machine.home))
		_longjmp(machine.fibres[0].context, 1);
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
