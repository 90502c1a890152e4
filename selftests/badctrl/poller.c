// SPDX-License-Identifier: GPL-2.0-only
/*
 * Threads that execute I/O commands, each those of its own queues, while no fault is injected.
 * The worker injects faults and does all that concerns several queues.
 */
#include <sched.h>
#include <time.h>

#include "io.h"
#include "mover.h"
#include "poller.h"
#include "queue.h"

/* Number of polls without a command before the thread yields, and before it sleeps. */
#define EAGER_LOOKS	4000
#define IDLE_LOOKS	20000

#define LOST_NS		10000000000ULL

/* --- commands in flight ----------------------------------------------------- */

/* When the command may be completed: 0 if nothing delays it. */
static uint64_t ready_ns(struct bad *ctrl, const struct bad_command *command)
{
	uint64_t delay = atomic_load(&ctrl->mover_words[BADCTRL_MOVER_DELAY / 4]);
	uint64_t rate = atomic_load(&ctrl->mover_words[BADCTRL_MOVER_RATE / 4]), now, from, until;

	if (!delay && !rate)
		return 0;
	now = bad_now_ns();
	from = atomic_load(&ctrl->free_ns);
	do {
		until = from > now ? from : now;
		until += rate ? bad_io_bytes(ctrl, command) * 1000 / rate : 0;
	} while (!atomic_compare_exchange_weak(&ctrl->free_ns, &from, until));
	return until > now + delay ? until : now + delay;
}

static struct bad_cq *cq_of(struct bad *ctrl, uint16_t sqid)
{
	return &ctrl->cqs[ctrl->sqs[sqid].cqid];
}

static void begin(struct bad_poller *poller, uint16_t sqid, const struct bad_command *command)
{
	struct bad_flight *flight = &poller->flights[poller->flight_count];
	struct bad *ctrl = poller->ctrl;

	*flight = (struct bad_flight){
		.sqid = sqid,
		.cid = command->cid,
		.moves = { .ring = bad_mover_ring(poller) },
		.ready_ns = ready_ns(ctrl, command),
	};
	flight->status = bad_io_begin(ctrl, command, &flight->moves);
	if (!flight->ready_ns && bad_moves_done(ctrl, &flight->moves)) {
		bad_queue_complete(ctrl, sqid, command->cid, flight->status, 0, false);
		return;
	}
	flight->lost_ns = bad_now_ns() + LOST_NS;
	cq_of(ctrl, sqid)->flying++;
	poller->flight_count++;
}

static bool landed(struct bad *ctrl, struct bad_flight *flight, uint64_t now)
{
	if (now > flight->lost_ns)
		flight->status = NVME_STATUS_DNR | NVME_SC_DATA_TRANSFER;
	else if (flight->ready_ns > now || !bad_moves_done(ctrl, &flight->moves))
		return false;
	return true;
}

static void complete_landed(struct bad_poller *poller)
{
	uint64_t now = poller->flight_count ? bad_now_ns() : 0;
	unsigned int i = 0;

	while (i < poller->flight_count) {
		struct bad_flight *flight = &poller->flights[i];

		if (!landed(poller->ctrl, flight, now)) {
			i++;
			continue;
		}
		cq_of(poller->ctrl, flight->sqid)->flying--;
		bad_queue_complete(poller->ctrl, flight->sqid, flight->cid, flight->status, 0, false);
		*flight = poller->flights[--poller->flight_count];
	}
}

/* --- queues ------------------------------------------------------------------ */

/* Read @plain after the doorbell: a test writes a rule before the command is submitted. */
static bool take(struct bad *ctrl, uint16_t sqid, struct bad_command *command)
{
	return bad_queue_rung(ctrl, sqid) && atomic_load(&ctrl->plain) &&
	       bad_queue_room(ctrl, sqid) && bad_queue_fetch(ctrl, sqid, command);
}

static bool serve_queue(struct bad_poller *poller, uint16_t sqid)
{
	struct bad_command command;
	unsigned int done;

	for (done = 0; done < QUEUE_TURN && poller->flight_count < BAD_FLIGHTS &&
	     take(poller->ctrl, sqid, &command); done++)
		begin(poller, sqid, &command);
	return done;
}

/* Queues with the same completion queue have the same poller. */
static bool is_mine(const struct bad_poller *poller, uint16_t sqid)
{
	const struct bad_sq *sq = &poller->ctrl->sqs[sqid];

	return sq->exists && sq->cqid % poller->ctrl->poller_count == poller->number;
}

static bool serve_all(struct bad_poller *poller)
{
	bool any = false;
	uint16_t sqid;

	for (sqid = 1; sqid <= poller->ctrl->last_sq; sqid++)
		if (is_mine(poller, sqid))
			any |= serve_queue(poller, sqid);
	return any;
}

/* The turn ends when no command is in flight; no further one begins if it has to end. */
static bool serve_queues(struct bad_poller *poller)
{
	bool any = false;

	pthread_mutex_lock(&poller->turn);
	do {
		if (!atomic_load(&poller->ctrl->halting))
			any |= serve_all(poller);
		complete_landed(poller);
	} while (poller->flight_count);
	pthread_mutex_unlock(&poller->turn);
	return any;
}

static void rest(unsigned int idle)
{
	const struct timespec pause = { .tv_nsec = 20000 };

	if (idle > IDLE_LOOKS)
		nanosleep(&pause, NULL);
	else if (idle > EAGER_LOOKS && idle % 64 == 0)
		sched_yield();
}

static void *poll_queues(void *context)
{
	struct bad_poller *poller = context;
	struct bad *ctrl = poller->ctrl;
	unsigned int idle = 0;

	while (!atomic_load(&ctrl->leaving)) {
		if (!atomic_load(&ctrl->plain))
			idle = IDLE_LOOKS;
		else if (serve_queues(poller))
			idle = 0;
		idle += idle <= IDLE_LOOKS;
		rest(idle);
	}
	return NULL;
}

int bad_pollers_start(struct bad *ctrl)
{
	unsigned int i;
	int ret = 0;

	for (i = 0; i < ctrl->poller_count && !ret; i++) {
		struct bad_poller *poller = &ctrl->pollers[i];

		poller->ctrl = ctrl;
		poller->number = i;
		pthread_mutex_init(&poller->turn, NULL);
		ret = pthread_create(&poller->thread, NULL, poll_queues, poller);
	}
	return ret;
}

void bad_pollers_join(struct bad *ctrl)
{
	unsigned int i;

	for (i = 0; i < ctrl->poller_count; i++)
		pthread_join(ctrl->pollers[i].thread, NULL);
}

void bad_pollers_halt(struct bad *ctrl)
{
	unsigned int i;

	atomic_fetch_add(&ctrl->halting, 1);
	for (i = 0; i < ctrl->poller_count; i++)
		pthread_mutex_lock(&ctrl->pollers[i].turn);
	atomic_fetch_sub(&ctrl->halting, 1);
}

void bad_pollers_go_on(struct bad *ctrl)
{
	unsigned int i;

	for (i = 0; i < ctrl->poller_count; i++)
		pthread_mutex_unlock(&ctrl->pollers[i].turn);
}
