// SPDX-License-Identifier: GPL-2.0-only
/*
 * unit-device-lanes.c: lanes that call together with different timeouts: lanes
 * with long timeouts get completions that arrive after the others' timeouts,
 * whichever lane leads.
 */
#define NVMEPEER_LANES 4
#define NVMEPEER_PLATFORM_HEADER "fibre_platform.h"
#include <nvmepeer_device.h>

#include "bench.h"
#include "../lib/ktap.h"

/* Nothing completes before @LATE; a wait of @SHORT times out before it. */
enum { LANES = NVMEPEER_LANES, SHORT_NS = 20000, LATE_NS = 2000000 };

static const uint64_t long_ns = 10000000000u;
static struct bench *bench;
static uint32_t impatient;		/* lanes with a short timeout, a bit each */
static int status[LANES];
static uint32_t lanes_left;

static void controller_main(void *argument)
{
	(void)argument;
	while (lanes_left) {
		bench->controller.mute = machine.now_ns < LATE_NS;
		controller_step(&bench->controller);
		machine_rest();
	}
}

static uint64_t patience(uint32_t lane)
{
	return impatient >> lane & 1 ? SHORT_NS : long_ns;
}

/*
 * A short timeout for one half of a command; compiled once, since all of it is
 * inlined.
 */
static bool waits_long, submits_long;

static void lane_splits(void *argument)
{
	uint32_t lane = (uint32_t)(uintptr_t)argument;
	struct nvmepeer_command flush = { NVMEPEER_OP_FLUSH, 0, 0, NULL, 0, 0 };
	struct nvmepeer_token token;

	status[lane] = nvmepeer_submit(&bench->queue, &flush, &token,
				       submits_long ? long_ns : patience(lane));
	if (!status[lane])
		status[lane] = nvmepeer_wait(&bench->queue, token, NULL,
					     waits_long ? long_ns : patience(lane));
	lanes_left--;
}

static void lane_executes(void *argument)
{
	uint32_t lane = (uint32_t)(uintptr_t)argument;
	struct nvmepeer_command flush = { NVMEPEER_OP_FLUSH, 0, 0, NULL, 0, 0 };

	status[lane] = nvmepeer_execute(&bench->queue, &flush, NULL, patience(lane));
	lanes_left--;
}

static void lane_exclusive(void *argument)
{
	uint32_t lane = (uint32_t)(uintptr_t)argument;
	struct nvmepeer_command flush = { NVMEPEER_OP_FLUSH, 0, 0, NULL, 0, 0 };
	struct nvmepeer_exclusive exclusive = nvmepeer_exclusive_open(&bench->queue);

	status[lane] = nvmepeer_exclusive_execute(&exclusive, &flush, NULL, patience(lane));
	nvmepeer_exclusive_close(&exclusive);
	lanes_left--;
}

/* The ring has room for one command, which another thread has submitted. */
static void occupy(void)
{
	struct nvmepeer_sqe flush = { { 0xffu << 16 } };

	nvp_write_entry(&bench->queue, 0, &flush);
	bench->queue.state->tail = (uint64_t)1 << NVP_TICKET_SHIFT;
	bench->queue.state->credits = 0;
	weak_reset(0, 1);
	nvp_doorbell_store(bench->queue.sq_doorbell, 1);
}

/* @expected: the status of the lanes with short timeouts; the others get 0. */
static bool each_its_own(void (*main)(void *), uint32_t entries, uint32_t lanes, int expected)
{
	bool good = true;

	impatient = lanes;
	waits_long = entries == 2;
	submits_long = !waits_long;
	bench = bench_new(entries, entries);
	bench->controller.order = CONTROLLER_IN_ORDER;
	lanes_left = LANES;
	machine_reset();
	weak_reset(0, 1);
	if (nvmepeer_queue_init(&bench->queue, &bench->geometry))
		abort();
	machine_reset();
	machine.whole_warps = true;
	machine.step_limit = 20 * 1000 * 1000;
	for (uint32_t lane = 0; lane < LANES; lane++) {
		status[lane] = -100;
		machine_add(main, (void *)(uintptr_t)lane, 0, lane);
	}
	machine_add_outside(controller_main, NULL);
	if (entries == 2)
		occupy();
	good = machine_run();
	for (uint32_t lane = 0; lane < LANES; lane++) {
		int wanted = lanes >> lane & 1 ? expected : 0;

		if (status[lane] != wanted)
			printf("# lane %u: %d, not %d\n", lane, status[lane], wanted);
		good = good && status[lane] == wanted;
	}
	bench_free(bench);
	return good;
}

int main(void)
{
	ktap_start();
	ktap_check(each_its_own(lane_splits, 16, 1, NVMEPEER_E_TIMEOUT), "wait: timeout of the leader");
	ktap_check(each_its_own(lane_splits, 16, 6, NVMEPEER_E_TIMEOUT), "wait: timeout of other lanes");
	ktap_check(each_its_own(lane_executes, 16, 1, NVMEPEER_E_TIMEOUT),
		   "execute: timeout of the leader");
	ktap_check(each_its_own(lane_executes, 16, 10, NVMEPEER_E_TIMEOUT),
		   "execute, others give up");
	ktap_check(each_its_own(lane_splits, 2, 1, NVMEPEER_E_FULL), "submit: timeout of the leader");
	ktap_check(each_its_own(lane_splits, 2, 8, NVMEPEER_E_FULL), "submit: timeout of another lane");
	ktap_check(each_its_own(lane_exclusive, 16, 1, 0), "exclusive lanes wait together, for the longest timeout");
	return ktap_end();
}
