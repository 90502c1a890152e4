/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * fibres.h: a machine with lanes, warps and blocks for the device library, in
 * one thread, so that a test decides at every access which fibre runs next.
 *
 * A fibre is a lane or a controller.  Before each access to shared memory a
 * fibre calls machine_step(), which may switch to another.  Choices come from a
 * random generator, or from a list that a model checker enumerates; the same
 * seed or list gives the same run.  weak.h decides what an access reads.
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

/* What a fibre waits for.  A stopped fibre never runs again. */
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
	uint64_t site;		/* call site of the barrier */
	uint64_t mask;		/* lanes of the barrier that it waits at or has left */
	uint64_t given;		/* its value at the barrier */
	uint64_t others[MAX_LANES];	/* the values of all lanes */
	uint64_t steps;		/* accesses so far */
	uint64_t rings;		/* doorbells that it has rung */
	uint64_t stop_at;	/* stops for ever before this access; 0: never */
	uint64_t delay_at;	/* pauses @delay times before this access; 0: never */
	uint32_t delay;
	uint32_t delay_step;	/* and again this many accesses later; 0: only once */
};

/* Counters of a program's accesses, for tests of costs. */
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
	uint32_t rested;		/* last fibre that paused, for round robin */
	bool random;
	bool whole_warps;		/* all lanes of a warp always join */
	uint32_t seed;
	uint32_t deviations;		/* model checker: deviations left */
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

/* One of @count choices; 0 is the default. */
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
 * One of @count choices, of which all but 0 are deviations: a model checker
 * allows only a few of those in a run.
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

/* Complete a barrier if all lanes have arrived.  Returns true if it did. */
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
 * Let lanes at the same call site continue together: all of a warp, or some.
 * @no_other_lane: no other lane can arrive.
 */
static inline bool join_try(const struct fibre *first, bool no_other_lane)
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
	if (!waiting || (machine.whole_warps && waiting != living && !no_other_lane))
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
 * The fibres that may run next.  At random any; for a model checker one of each
 * warp, since the order of lanes between barriers only permutes what they do
 * alone.
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

/*
 * For a model checker: continue with another lane of the same warp, without a
 * choice.
 */
static inline uint32_t runnable_sibling(void)
{
	for (uint32_t i = 0; i < machine.fibre_count; i++)
		if (i != machine.current && machine.fibres[i].state == FIBRE_RUNS &&
		    machine.fibres[i].warp == fibre_current()->warp)
			return i;
	return MAX_FIBRES;
}

/* The current fibre is blocked: run another one, or end the run. */
static inline void machine_give_way(void)
{
	uint32_t runnable[MAX_FIBRES], count = runnable_fibres(runnable), to;

	/* A barrier may have unblocked it after all. */
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

/* A paused fibre may resume early. */
static inline void machine_wake(void)
{
	uint32_t which = next_of(FIBRE_RESTS, machine_random() % machine.fibre_count);

	if (which != MAX_FIBRES)
		machine.fibres[which].state = FIBRE_RUNS;
}

/* The current fibre never runs again, and neither does its warp. */
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

/* A pause: every other fibre gets a turn first. */
static inline void machine_rest(void)
{
	fibre_current()->state = FIBRE_RESTS;
	machine.steps++;
	machine.now_ns += 50;
	machine_give_way();
}

/* Called before every access: may another fibre run first? */
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

/* Lanes only join at the same instruction, identified by @site. */
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

/*
 * Exchange values with the other lanes of @mask; others[] has all of them
 * afterwards.
 */
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
 * A barrier of all living fibres of the block.  Each passes a value; the last
 * to arrive combines all of them, and every fibre gets the result.
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

/* A test sets all other fields of @machine after this. */
static inline void machine_reset(void)
{
	machine.fibre_count = machine.alive = machine.current = machine.rested = 0;
	machine.steps = machine.now_ns = 0;
	machine.step_limit = 1000 * 1000;
	machine.stuck = false;
	machine.random = false;
	machine.choice_at = 0;
	/*
	 * Accesses of the test while the machine does not run count as the
	 * first fibre's.
	 */
	machine.fibres[0].stop_at = machine.fibres[0].delay_at = 0;
	machine.fibres[0].outside = false;
	machine.deviations = 0;
	memset(&machine.counts, 0, sizeof(machine.counts));
}

/* Run the new fibre up to its first jump, so that others can jump to it. */
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

/* Add a fibre that is not on the device. */
static inline struct fibre *machine_add_outside(void (*main)(void *), void *argument)
{
	struct fibre *fibre = machine_add(main, argument, 31, 0);

	fibre->outside = true;
	return fibre;
}

/* Run until every fibre has ended or stopped.  Returns false on a deadlock. */
static inline bool machine_run(void)
{
	machine.current = 0;
	if (!_setjmp(machine.home))
		_longjmp(machine.fibres[0].context, 1);
	return !machine.stuck && !machine.alive;
}

/* The next list of choices, depth first.  False after the last. */
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
