// SPDX-License-Identifier: GPL-2.0-only
/*
 * unit-device-edges.c: the device library at the edges of what may be: a
 * controller that completes what it was never given, a ring that is full,
 * tokens that are spent, a waiter that nobody helps, a status page of every kind.
 * One lane, unless the table says otherwise, and memory without delays.
 *
 * Usage: unit-device-edges [CASE]
 */
#define NVMEPEER_PLATFORM_HEADER "fibre_platform.h"
#include <nvmepeer_device.h>

#include "rig.h"
#include "ktap.h"

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

static uint64_t mute_until;	/* the controller answers from then on; 0: it is not told */

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

/* Runs @test in @lanes fibres of a warp beside a controller. */
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

/* All is taken and nobody sends: the controller still learns what was taken. */
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

/* As many commands fit as the ring has slots, but one. */
static bool credits(void)
{
	struct nvmepeer_token token;

	bench->controller.mute = true;
	for (int i = 0; i < 15; i++)
		if (!submit(&token, SHORT))
			return false;
	return !submit(&token, SHORT) && bench->controller.last_tail == 15;
}

/* An entry of a command that cannot be is counted, and nothing is written. */
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

/* The ring is full of commands that nobody waits for: who wants room makes it. */
static bool room(void)
{
	struct nvmepeer_token token;

	for (int i = 0; i < 40; i++)
		if (!submit(&token, 20 * SHORT))
			return false;
	return true;
}

/* A token names one command, once, and none of a time before a reset. */
static bool tokens(void)
{
	struct nvmepeer_token token, next;
	const struct nvmepeer_queue *queue = &bench->queue;
	uint32_t left = 64;

	if (!submit(&token, SHORT) || nvmepeer_wait(queue, token, NULL, RIG_LONG) ||
	    nvmepeer_wait(queue, token, NULL, SHORT) != NVMEPEER_E_TOKEN ||
	    nvmepeer_poll(queue, token, NULL) != NVMEPEER_E_TOKEN)
		return false;
	/* Until the cid is used again: then the old token still names nothing. */
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

/* The same after the queue pair was made again. */
static bool tokens_again(void)
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

/* Polls @token until something else than NVMEPEER_AGAIN comes, @most times. */
static int poll_for(struct nvmepeer_token token, uint32_t most)
{
	int status = NVMEPEER_AGAIN;

	while (status == NVMEPEER_AGAIN && most--)
		status = nvmepeer_poll(&bench->queue, token, NULL);
	return status;
}

/* The host says that the queue pair has begun anew. */
static void lose(void)
{
	fibre_store(&status_page[NVMEPEER_STATUS_GENERATION / 4], 4, 4, __ATOMIC_RELEASE,
		    WEAK_SYSTEM);
}

/* The queue pair is lost while somebody polls who never waits, and nobody else is there. */
static bool poll_until_lost(void)
{
	struct nvmepeer_token token;

	bench->controller.mute = true;
	if (!submit(&token, SHORT) || poll_for(token, 600) != NVMEPEER_AGAIN)
		return false;
	lose();
	/* Each of the next is told at once. */
	return poll_for(token, 256) == NVMEPEER_E_LOST && poll_for(token, 1) == NVMEPEER_E_LOST &&
	       !submit(&token, SHORT);
}

/* With a queue pair that is live, and that @test may lose. */
static bool run_live(bool (*test)(void))
{
	status_page[NVMEPEER_STATUS_STATE / 4] = NVMEPEER_STATE_LIVE;
	status_page[NVMEPEER_STATUS_GENERATION / 4] = 3;
	bench->geometry.status = (uintptr_t)status_page;
	bench->geometry.generation = 3;
	return run_edge(test, 1);
}

static bool polls(void)
{
	return run_live(poll_until_lost);
}

/* Who serves is never told to stop. */
static bool serve_until_lost(void)
{
	static const uint32_t never;

	lose();
	nvmepeer_serve(&bench->queue, &never);
	return nvmepeer_known_lost(&bench->queue);
}

static bool serves(void)
{
	return run_live(serve_until_lost);
}

static bool solo_until_lost(void)
{
	struct nvmepeer_solo solo = nvmepeer_solo_open(&bench->queue);
	struct nvmepeer_command flush = flush_command();
	struct nvmepeer_token token;

	bench->controller.mute = true;
	lose();
	if (nvmepeer_solo_execute(&solo, &flush, NULL, ~(uint64_t)0) != NVMEPEER_E_LOST)
		return false;
	/* Others are told, and so is this one. */
	return nvmepeer_known_lost(&bench->queue) && !submit(&token, SHORT) &&
	       nvmepeer_solo_execute(&solo, &flush, NULL, SHORT) == NVMEPEER_E_LOST;
}

static bool solo_lost(void)
{
	return run_live(solo_until_lost);
}

/* What every call there is returns for a command that ends with @refusal. */
static bool all_return(uint32_t refusal, int expected)
{
	const struct nvmepeer_queue *queue = &bench->queue;
	struct nvmepeer_command flush = flush_command();
	struct nvmepeer_token token, any[2] = { { NVMEPEER_NO_CID, 0 }, { NVMEPEER_NO_CID, 0 } };
	struct nvmepeer_solo solo;
	uint32_t which = 0;
	bool right;

	bench->controller.refusal = refusal;
	right = nvmepeer_flush(queue) == expected;
	right = submit(&token, SHORT) && nvmepeer_wait(queue, token, NULL, RIG_LONG) == expected && right;
	right = submit(&token, SHORT) && poll_for(token, 600) == expected && right;
	right = submit(&any[1], SHORT) &&
		nvmepeer_wait_any(queue, any, 2, &which, NULL, RIG_LONG) == expected && right;
	/* It was found, and is spent. */
	right = which == 1 && any[1].cid == NVMEPEER_NO_CID && right;
	solo = nvmepeer_solo_open(queue);
	right = nvmepeer_solo_execute(&solo, &flush, NULL, RIG_LONG) == expected && right;
	nvmepeer_solo_close(&solo);
	return right;
}

/* A queue that is taken from the controller may end its commands with a status. */
static bool deleted(void)
{
	return all_return(0x0008, NVMEPEER_E_LOST) && all_return(0x7808, NVMEPEER_E_LOST) &&
	       all_return(0x0108, 0x0108) && all_return(0x4004, 0x4004);
}

static int check_with(uint32_t state, uint32_t generation)
{
	machine_reset();
	weak_reset(0, 1);
	status_page[NVMEPEER_STATUS_STATE / 4] = state;
	status_page[NVMEPEER_STATUS_GENERATION / 4] = generation;
	nvmepeer_queue_reset(&bench->queue);
	return nvmepeer_check(&bench->queue);
}

/* The machine stands still. */
static bool status_pages(void)
{
	bench->geometry.status = (uintptr_t)status_page;
	bench->geometry.generation = 3;
	if (!rig_begin(1, 0))
		return false;
	machine_add(edge_main, NULL, 0, 0);
	return check_with(NVMEPEER_STATE_LIVE, 3) == NVMEPEER_OK &&
	       check_with(NVMEPEER_STATE_LIVE, 4) == NVMEPEER_E_LOST &&
	       check_with(NVMEPEER_STATE_LIVE + 1, 3) == NVMEPEER_E_LOST &&
	       check_with(0, 3) == NVMEPEER_E_LOST;
}

/* Whom nobody has told where to ask is told so; and no word of a page is elsewhere. */
static bool nobody_to_ask(void)
{
	struct nvmepeer_geometry geometry = bench->geometry;
	struct nvmepeer_queue queue;

	geometry.request = (uintptr_t)status_page + 2;
	if (nvmepeer_queue_open(&queue, &geometry) != NVMEPEER_E_ADDRESS)
		return false;
	geometry.request = 0;
	return !nvmepeer_queue_open(&queue, &geometry) &&
	       nvmepeer_queue_give_up(&queue) == NVMEPEER_E_ADDRESS;
}

/* Nobody answers, then somebody does: what was abandoned is found again. */
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

/* No limit is as long as one that the clock cannot reach. */
static bool for_ever(void)
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

/* The same by who has the queue pair for itself, and without an answer at all. */
static bool solo_for_ever(void)
{
	struct nvmepeer_solo solo = nvmepeer_solo_open(&bench->queue);
	struct nvmepeer_command flush = flush_command();

	machine.now_ns = 1000;
	bench->controller.mute = true;
	mute_until = machine.now_ns + SHORT;
	return !nvmepeer_solo_execute(&solo, &flush, NULL, ~(uint64_t)0) &&
	       machine.now_ns >= mute_until;
}

static bool solo_timeout(void)
{
	struct nvmepeer_solo solo = nvmepeer_solo_open(&bench->queue);
	struct nvmepeer_command flush = flush_command();

	bench->controller.mute = true;
	return nvmepeer_solo_execute(&solo, &flush, NULL, SHORT) == NVMEPEER_E_TIMEOUT &&
	       nvmepeer_solo_execute(&solo, &flush, NULL, SHORT) == NVMEPEER_E_TIMEOUT;
}

/*
 * The controller was not told of an entry that was taken, and has no room for one of as
 * many as go at once.
 */
static bool solo_behind(void)
{
	struct nvmepeer_command flush = flush_command();
	nvmepeer_mask all = nvmepeer_lanes_active();
	struct nvmepeer_solo solo;

	if (nvmepeer_lane() == 0 && nvmepeer_flush(&bench->queue))
		return false;
	nvmepeer_lanes_sync(all);
	solo = nvmepeer_solo_open(&bench->queue);
	return !nvmepeer_solo_execute(&solo, &flush, NULL, RIG_LONG);
}

struct edge_case {
	const char *name, *what;
	bool (*run)(void);
	uint32_t entries;
	uint32_t lanes;		/* of one warp; 0: the machine stands still */
};

static const struct edge_case cases[] = {
	{ "head-due", "the head doorbell is rung although nobody sends", head_due, 16, 1 },
	{ "credits", "as many commands as slots, but one", credits, 16, 1 },
	{ "cid-range", "a completion of a cid that cannot be", cid_range, 16, 1 },
	{ "far", "a waiter far from its turn whom nobody helps", far_alone, 128, 1 },
	{ "room", "a full ring whose completions nobody waits for", room, 16, 1 },
	{ "token", "spent tokens name nothing", tokens, 16, 1 },
	{ "token-again", "nor do tokens of a time before", tokens_again, 16, 1 },
	{ "polls", "a loss is seen by who only polls", polls, 16, 0 },
	{ "serve", "it ends the service", serves, 16, 0 },
	{ "solo-lost", "and the wait of who is solo", solo_lost, 16, 0 },
	{ "deleted", "a status that says that the queue was deleted is a loss", deleted, 16, 1 },
	{ "status", "state and generation of the status page", status_pages, 16, 0 },
	{ "request", "giving up without a request page", nobody_to_ask, 16, 1 },
	{ "for-ever", "a wait without a limit", for_ever, 16, 1 },
	{ "solo-for-ever", "the same solo", solo_for_ever, 16, 1 },
	{ "solo-behind", "all slots by who is solo, behind an entry that nobody told of", solo_behind, 8, 8 },
	{ "solo-timeout", "a wait with a limit, solo", solo_timeout, 16, 1 },
	{ "timeout", "a command that completes after its owner has left", timeouts, 16, 1 },
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
