// SPDX-License-Identifier: GPL-2.0-only
/*
 * Threads that execute I/O commands, each those of its own queues, while no fault is injected.
 * The worker injects faults and does all that concerns several queues.
 */
#include <sched.h>
#include <time.h>

#include "io.h"
#include "poller.h"
#include "queue.h"

/* Number of polls without a command before the thread yields, and before it sleeps. */
#define EAGER_LOOKS	4000
#define IDLE_LOOKS	20000

/* Read @plain after the doorbell: a test writes a rule before the command is submitted. */
static bool take(struct bad *ctrl, uint16_t sqid, struct bad_command *command)
{
	return bad_queue_rung(ctrl, sqid) && atomic_load(&ctrl->plain) &&
	       bad_queue_room(ctrl, sqid) && bad_queue_fetch(ctrl, sqid, command);
}

static bool serve_queue(struct bad *ctrl, uint16_t sqid)
{
	struct bad_command command;
	unsigned int done;

	for (done = 0; done < QUEUE_TURN && take(ctrl, sqid, &command); done++)
		bad_queue_complete(ctrl, sqid, command.cid, bad_io(ctrl, &command), 0, false);
	return done;
}

/* Queues with the same completion queue have the same poller. */
static bool is_mine(const struct bad_poller *poller, uint16_t sqid)
{
	const struct bad_sq *sq = &poller->ctrl->sqs[sqid];

	return sq->exists && sq->cqid % poller->ctrl->poller_count == poller->number;
}

static bool serve_queues(struct bad_poller *poller)
{
	bool any = false;
	uint16_t sqid;

	pthread_mutex_lock(&poller->turn);
	for (sqid = 1; sqid <= poller->ctrl->last_sq; sqid++)
		if (is_mine(poller, sqid))
			any |= serve_queue(poller->ctrl, sqid);
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

	for (i = 0; i < ctrl->poller_count; i++)
		pthread_mutex_lock(&ctrl->pollers[i].turn);
}

void bad_pollers_go_on(struct bad *ctrl)
{
	unsigned int i;

	for (i = 0; i < ctrl->poller_count; i++)
		pthread_mutex_unlock(&ctrl->pollers[i].turn);
}
