// SPDX-License-Identifier: GPL-2.0-only
/*
 * unit-device-edges.c: corner cases of the device library: a controller that
 * completes commands it never got, a full ring, used tokens, a waiter without
 * help from other groups, every kind of status page.  One lane, unless the
 * table says otherwise, and memory without delays.
 *
 * Usage: unit-device-edges [CASE]
 */
#define NVMEPEER_PLATFORM_HEADER "fibre_platform.h"
#include <nvmepeer_device.h>

#include "rig.h"
#include "../lib/ktap.h"

enum { SHORT = 100000, GUARD = 4 << 20 };

static bool (*edge)(void);
static bool good;
static uint32_t status_page[8];

static void edge_main(void *argument)
{
	(void)argument;
	good &= edge();
	lanes_left--;
}

static uint64_t mute_until;	/* the controller completes nothing before this; 0: always */

static void controller_main(void *argument)
{
	(void)argument;
	while (lanes_left) {
		if (mute_until && machine.now_ns >= mute_until)
			bench->controller.mute = false;
		controller_step(&bench->controller);
		machine_rest();
	}
}

/* Run @test in @lanes fibres of a warp together with a controller. */
static bool run_edge(bool (*test)(void), uint32_t lanes)
{
	edge = test;
	good = true;
	lanes_left = 0;
	mute_until = 0;
	if (!rig_begin(1, 0))
		return false;
	rig_add_warps(1, lanes, edge_main);
	machine_add_outside(controller_main, NULL);
	return machine_run() && good && !bench->controller.errors;
}

static struct nvmepeer_command flush_command(void)
{
	struct nvmepeer_command flush = { NVMEPEER_OP_FLUSH, 0, 0, NULL, 0, 0 };

	return flush;
}

static bool submit(struct nvmepeer_token *token, uint64_t timeout_ns)
{
	struct nvmepeer_command flush = flush_command();

	return !nvmepeer_submit(&bench->queue, &flush, token, timeout_ns);
}

/*
 * All entries are consumed and no group submits: the head doorbell is rung
 * nevertheless.
 */
static bool head_due(void)
{
	struct nvmepeer_token token[12];

	for (int i = 0; i < 12; i++)
		if (!submit(&token[i], RIG_LONG))
			return false;
	for (int i = 0; i < 12; i++)
		if (nvmepeer_wait(&bench->queue, token[i], NULL, RIG_LONG))
			return false;
	machine_rest();
	machine_rest();
	return bench->controller.posted == 12 && bench->controller.acknowledged >= 12 - 4;
}

/* The ring holds one command less than it has slots. */
static bool credits(void)
{
	struct nvmepeer_token token;

	bench->controller.mute = true;
	for (int i = 0; i < 15; i++)
		if (!submit(&token, SHORT))
			return false;
	return !submit(&token, SHORT) && bench->controller.last_tail == 15;
}

/* An entry with an impossible CID is counted, and nothing is written. */
static bool cid_range(void)
{
	const uint32_t entry[4] = { 0, 0, 0, 0xfff0 | 1 << 16 };
	const char *behind = (const char *)bench->queue.results;
	struct nvmepeer_token token;

	controller_write(bench->controller.cq, entry);
	bench->controller.posted++;
	if (!submit(&token, SHORT) || nvmepeer_wait(&bench->queue, token, NULL, RIG_LONG))
		return false;
	for (uint64_t at = nvmepeer_state_bytes(&bench->geometry); at < GUARD / 2; at++)
		if (behind[at] != 0x5a)
			return false;
	return bench->queue.state->protocol_errors == 1;
}

/* 100 commands, and only the owner of the last one waits. */
static bool far_alone(void)
{
	struct nvmepeer_token token;

	for (int i = 0; i < 100; i++)
		if (!submit(&token, SHORT))
			return false;
	return !nvmepeer_wait(&bench->queue, token, NULL, 20 * SHORT);
}

/*
 * The ring is full of commands that no thread waits for: a submitter makes
 * room.
 */
static bool room(void)
{
	struct nvmepeer_token token;

	for (int i = 0; i < 40; i++)
		if (!submit(&token, 20 * SHORT))
			return false;
	return true;
}

/* A token is valid for one command, once, and never across a re-arm. */
static bool tokens(void)
{
	struct nvmepeer_token token, next;
	const struct nvmepeer_queue *queue = &bench->queue;
	uint32_t left = 64;

	if (!submit(&token, SHORT) || nvmepeer_wait(queue, token, NULL, RIG_LONG) ||
	    nvmepeer_wait(queue, token, NULL, SHORT) != NVMEPEER_E_TOKEN ||
	    nvmepeer_poll(queue, token, NULL) != NVMEPEER_E_TOKEN)
		return false;
	/* Also after the CID has been reused: the old token stays invalid. */
	do {
		if (!submit(&next, SHORT))
			return false;
	} while (next.cid != token.cid && left-- && !nvmepeer_wait(queue, next, NULL, RIG_LONG));
	if (next.cid != token.cid || nvmepeer_wait(queue, token, NULL, SHORT) != NVMEPEER_E_TOKEN ||
	    nvmepeer_wait(queue, next, NULL, RIG_LONG))
		return false;
	token.ticket -= 2;
	return nvmepeer_wait(queue, token, NULL, SHORT) == NVMEPEER_E_TOKEN;
}

/* The same after a re-arm. */
static bool stale_tokens(void)
{
	struct nvmepeer_token token, next;
	const struct nvmepeer_queue *queue = &bench->queue;

	if (!submit(&token, SHORT))
		return false;
	machine_rest();
	bench->controller.fetch = bench->controller.posted = 0;
	controller_again(&bench->controller);
	weak_reset(0, 1);
	nvmepeer_queue_rearm(queue, 1);
	return submit(&next, SHORT) && next.ticket != token.ticket &&
	       nvmepeer_wait(queue, token, NULL, SHORT) == NVMEPEER_E_TOKEN &&
	       !nvmepeer_wait(queue, next, NULL, RIG_LONG);
}

/* Poll @token until the status is not NVMEPEER_AGAIN, @most times. */
static int poll_for(struct nvmepeer_token token, uint32_t most)
{
	int status = NVMEPEER_AGAIN;

	while (status == NVMEPEER_AGAIN && most--)
		status = nvmepeer_poll(&bench->queue, token, NULL);
	return status;
}

/* The host reports another loss of the queue pair. */
static void lose(void)
{
	fibre_store(&status_page[NVP_STATUS_LOSSES / 4], 4, 4, __ATOMIC_RELEASE,
		    WEAK_SYSTEM);
}

/*
 * The queue pair is lost while one thread polls without waiting, and no other
 * calls.
 */
static bool poll_until_lost(void)
{
	struct nvmepeer_token token;

	bench->controller.mute = true;
	if (!submit(&token, SHORT) || poll_for(token, 600) != NVMEPEER_AGAIN)
		return false;
	lose();
	/* Every later poll reports it at once. */
	return poll_for(token, 256) == NVMEPEER_E_LOST && poll_for(token, 1) == NVMEPEER_E_LOST &&
	       !submit(&token, SHORT);
}

/* Run @test with a LIVE queue pair, which it may lose. */
static bool run_live(bool (*test)(void))
{
	status_page[NVP_STATUS_STATE / 4] = NVP_STATE_LIVE;
	status_page[NVP_STATUS_LOSSES / 4] = 3;
	bench->geometry.status = (uintptr_t)status_page;
	bench->geometry.generation = 3;
	return run_edge(test, 1);
}

static bool polls(void)
{
	return run_live(poll_until_lost);
}

/* The word @stop of nvmepeer_serve() is never set. */
static bool serve_until_lost(void)
{
	static const uint32_t never;

	lose();
	nvmepeer_serve(&bench->queue, &never);
	return nvp_known_lost(&bench->queue);
}

static bool serves(void)
{
	return run_live(serve_until_lost);
}

static bool exclusive_until_lost(void)
{
	struct nvmepeer_exclusive exclusive = nvmepeer_exclusive_open(&bench->queue);
	struct nvmepeer_command flush = flush_command();
	struct nvmepeer_token token;

	bench->controller.mute = true;
	lose();
	if (nvmepeer_exclusive_execute(&exclusive, &flush, NULL, ~(uint64_t)0) != NVMEPEER_E_LOST)
		return false;
	/* Other threads detect it, and so does this one. */
	return nvp_known_lost(&bench->queue) && !submit(&token, SHORT) &&
	       nvmepeer_exclusive_execute(&exclusive, &flush, NULL, SHORT) == NVMEPEER_E_LOST;
}

static bool exclusive_lost(void)
{
	return run_live(exclusive_until_lost);
}

/* The status of every call for a command that completes with @refusal. */
static bool all_return(uint32_t refusal, int expected)
{
	const struct nvmepeer_queue *queue = &bench->queue;
	struct nvmepeer_command flush = flush_command();
	struct nvmepeer_token token, any[2] = { { NVMEPEER_NO_CID, 0 }, { NVMEPEER_NO_CID, 0 } };
	struct nvmepeer_exclusive exclusive;
	uint32_t which = 0;
	bool right;

	bench->controller.refusal = refusal;
	right = nvmepeer_flush(queue) == expected;
	right = submit(&token, SHORT) && nvmepeer_wait(queue, token, NULL, RIG_LONG) == expected && right;
	right = submit(&token, SHORT) && poll_for(token, 600) == expected && right;
	right = submit(&any[1], SHORT) &&
		nvmepeer_wait_any(queue, any, 2, &which, NULL, RIG_LONG) == expected && right;
	/* It completed, and its token is used. */
	right = which == 1 && any[1].cid == NVMEPEER_NO_CID && right;
	exclusive = nvmepeer_exclusive_open(queue);
	right = nvmepeer_exclusive_execute(&exclusive, &flush, NULL, RIG_LONG) == expected && right;
	/* After a loss every later call returns the same. */
	right = (expected == NVMEPEER_E_LOST) == (exclusive.broken == NVMEPEER_E_LOST) && right;
	exclusive.broken = NVMEPEER_OK;
	nvmepeer_exclusive_close(&exclusive);
	return right;
}

/*
 * A controller may complete commands with a status when their queue is deleted.
 */
static bool deleted(void)
{
	return all_return(0x0008, NVMEPEER_E_LOST) && all_return(0x7808, NVMEPEER_E_LOST) &&
	       all_return(0x0108, 0x0108) && all_return(0x4004, 0x4004);
}

static int check_with(uint32_t state, uint32_t generation)
{
	machine_reset();
	weak_reset(0, 1);
	status_page[NVP_STATUS_STATE / 4] = state;
	status_page[NVP_STATUS_LOSSES / 4] = generation;
	nvmepeer_queue_reset(&bench->queue);
	return nvmepeer_check(&bench->queue);
}

/* The machine does not run. */
static bool status_pages(void)
{
	bench->geometry.status = (uintptr_t)status_page;
	bench->geometry.generation = 3;
	if (!rig_begin(1, 0))
		return false;
	machine_add(edge_main, NULL, 0, 0);
	return check_with(NVP_STATE_LIVE, 3) == NVMEPEER_OK &&
	       check_with(NVP_STATE_LIVE, 4) == NVMEPEER_E_LOST &&
	       check_with(NVP_STATE_LIVE + 1, 3) == NVMEPEER_E_LOST &&
	       check_with(0, 3) == NVMEPEER_E_LOST;
}

/* Without a control page the call fails; a misaligned page is refused. */
static bool no_control_page(void)
{
	struct nvmepeer_geometry geometry = bench->geometry;
	struct nvmepeer_queue queue;

	/* Both words of a request are one store. */
	geometry.control = (uintptr_t)status_page + 4;
	if (nvmepeer_queue_open(&queue, &geometry) != NVMEPEER_E_ADDRESS)
		return false;
	geometry.control = 0;
	return !nvmepeer_queue_open(&queue, &geometry) &&
	       nvmepeer_queue_quiesce(&queue) == NVMEPEER_E_ADDRESS;
}

/* Nothing completes, then everything does: abandoned commands are reclaimed. */
static bool timeouts(void)
{
	struct nvmepeer_token token;
	uint64_t began = machine.now_ns;

	bench->controller.mute = true;
	if (!submit(&token, SHORT) ||
	    nvmepeer_wait(&bench->queue, token, NULL, SHORT) != NVMEPEER_E_TIMEOUT ||
	    machine.now_ns - began > 10 * SHORT || nvmepeer_abandoned(&bench->queue) != 1)
		return false;
	bench->controller.mute = false;
	return !nvmepeer_flush(&bench->queue) && !nvmepeer_flush(&bench->queue) &&
	       nvmepeer_abandoned(&bench->queue) == 0 && !rig_books();
}

/* A timeout beyond the range of the clock never expires. */
static bool unlimited(void)
{
	struct nvmepeer_token token;

	machine.now_ns = 1000;
	bench->controller.mute = true;
	if (!submit(&token, ~(uint64_t)0))
		return false;
	for (int i = 0; i < 40; i++)
		machine_rest();
	mute_until = machine.now_ns + SHORT;
	return !nvmepeer_wait(&bench->queue, token, NULL, ~(uint64_t)0) &&
	       machine.now_ns >= mute_until;
}

/* The same for an exclusive owner, and without any completion. */
static bool exclusive_unlimited(void)
{
	struct nvmepeer_exclusive exclusive = nvmepeer_exclusive_open(&bench->queue);
	struct nvmepeer_command flush = flush_command();

	machine.now_ns = 1000;
	bench->controller.mute = true;
	mute_until = machine.now_ns + SHORT;
	return !nvmepeer_exclusive_execute(&exclusive, &flush, NULL, ~(uint64_t)0) &&
	       machine.now_ns >= mute_until;
}

static bool exclusive_timeout(void)
{
	struct nvmepeer_exclusive exclusive = nvmepeer_exclusive_open(&bench->queue);
	struct nvmepeer_command flush = flush_command();

	bench->controller.mute = true;
	return nvmepeer_exclusive_execute(&exclusive, &flush, NULL, SHORT) == NVMEPEER_E_TIMEOUT &&
	       nvmepeer_exclusive_execute(&exclusive, &flush, NULL, SHORT) == NVMEPEER_E_TIMEOUT;
}

/*
 * The head doorbell does not include an entry that was consumed, so that the
 * controller has no room for a completion of each command submitted together.
 */
static bool exclusive_behind(void)
{
	struct nvmepeer_command flush = flush_command();
	nvmepeer_mask all = nvp_lanes_active();
	struct nvmepeer_exclusive exclusive;

	if (nvp_lane() == 0 && nvmepeer_flush(&bench->queue))
		return false;
	nvp_lanes_sync(all);
	exclusive = nvmepeer_exclusive_open(&bench->queue);
	return !nvmepeer_exclusive_execute(&exclusive, &flush, NULL, RIG_LONG);
}

struct edge_case {
	const char *name, *what;
	bool (*run)(void);
	uint32_t entries;
	uint32_t lanes;		/* lanes of one warp; 0: the machine does not run */
};

static const struct edge_case cases[] = {
	{ "head-due", "the head doorbell is rung without a submission", head_due, 16, 1 },
	{ "credits", "one command less than slots fits", credits, 16, 1 },
	{ "cid-range", "a completion with an invalid CID", cid_range, 16, 1 },
	{ "far", "a waiter far from its turn makes progress alone", far_alone, 128, 1 },
	{ "room", "submit reaps a full ring", room, 16, 1 },
	{ "token", "used tokens are invalid", tokens, 16, 1 },
	{ "token-again", "tokens from before a re-arm are invalid", stale_tokens, 16, 1 },
	{ "polls", "polls detect a loss", polls, 16, 0 },
	{ "serve", "a loss ends nvmepeer_serve()", serves, 16, 0 },
	{ "exclusive-lost", "a loss ends an exclusive wait", exclusive_lost, 16, 0 },
	{ "deleted", "the status of a deleted queue is a loss", deleted, 16, 1 },
	{ "status", "state and losses of the status page", status_pages, 16, 0 },
	{ "control", "quiesce without a control page", no_control_page, 16, 1 },
	{ "for-ever", "a wait without a timeout", unlimited, 16, 1 },
	{ "exclusive-for-ever", "an exclusive wait without a timeout", exclusive_unlimited, 16, 1 },
	{ "exclusive-behind", "an exclusive group fills all slots after an unreported entry",
	  exclusive_behind, 8, 8 },
	{ "exclusive-timeout", "an exclusive wait with a timeout", exclusive_timeout, 16, 1 },
	{ "timeout", "a command that completes after its timeout", timeouts, 16, 1 },
};

int main(int argc, char **argv)
{
	ktap_start();
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		void *state = bench_memory(128, GUARD), *plain;

		if (!ktap_wants(argc, argv, cases[i].name))
			continue;
		bench = bench_new(cases[i].entries, cases[i].entries);
		plain = (void *)(uintptr_t)bench->geometry.state;
		memset(state, 0x5a, GUARD);
		bench->geometry.state = (uintptr_t)state;
		bench->geometry.cids = cases[i].entries < 64 ? 64 : 4 * cases[i].entries;
		ktap_check(cases[i].lanes ? run_edge(cases[i].run, cases[i].lanes) : cases[i].run(),
			   cases[i].what);
		bench->geometry.state = (uintptr_t)plain;
		bench_free(bench);
		free(state);
	}
	return ktap_end();
}
