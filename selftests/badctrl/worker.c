// SPDX-License-Identifier: GPL-2.0-only
/*
 * The worker thread: follows changes of CC, then serves the queues until no doorbell has
 * changed.
 */
#include <time.h>

#include "admin.h"
#include "cache.h"
#include "io.h"
#include "held.h"
#include "poller.h"
#include "queue.h"
#include "registers.h"
#include "rule.h"
#include "worker.h"

/* Number of polls without a doorbell before the worker sleeps between polls. */
#define IDLE_LOOKS	20000

/* --- CC and CSTS, called with the lock held --------------------------------- */

static void start(struct bad *ctrl)
{
	uint32_t status = 0;

	switch (ctrl->words[BADCTRL_MODE / 4]) {
	case BADCTRL_FATAL:
		status = CSTS_FATAL;
		break;
	case BADCTRL_WORKS:
	case BADCTRL_UNSTOPPABLE:
		bad_queues_start(ctrl);
		ctrl->serving = true;
		status = CSTS_READY;
		break;
	case BADCTRL_SILENT:
	case BADCTRL_NEVER_STOPS:
		status = CSTS_READY;
		break;
	}
	ctrl->enabled = true;
	bad_store32(ctrl, REG_CSTS, status);
}

static void drop_queues(struct bad *ctrl)
{
	bad_queues_stop(ctrl);
	bad_held_drop(ctrl);
	bad_events_drop(ctrl);
}

/* The controller may write to memory until CSTS.RDY is 0, so it does. */
static void stop(struct bad *ctrl)
{
	uint32_t mode = ctrl->words[BADCTRL_MODE / 4];
	bool late = ctrl->words[BADCTRL_LATE / 4];

	ctrl->serving = false;
	bad_settle(ctrl);
	if (mode == BADCTRL_UNSTOPPABLE)
		return;
	pthread_mutex_unlock(&ctrl->lock);
	bad_held_finish(ctrl, -1, late, 0);
	pthread_mutex_lock(&ctrl->lock);
	if (mode == BADCTRL_NEVER_STOPS || mode == BADCTRL_GONE || mode == BADCTRL_ABSENT)
		return;
	drop_queues(ctrl);
	ctrl->enabled = false;
	ctrl->words[BADCTRL_PAUSED / 4] = 0;
	bad_store32(ctrl, REG_CSTS, 0);
}

/* A driver may clear and set CC.EN before the worker wakes up. */
static void follow_enable(struct bad *ctrl)
{
	if (ctrl->enabled && (ctrl->fell || !(bad_load32(ctrl, REG_CC) & CC_ENABLE))) {
		ctrl->fell = false;
		stop(ctrl);
	}
	ctrl->fell = false;
	if (!ctrl->enabled && bad_load32(ctrl, REG_CC) & CC_ENABLE)
		start(ctrl);
}

static void follow_config(struct bad *ctrl)
{
	if (ctrl->restart) {
		ctrl->restart = false;
		ctrl->enabled = false;
		drop_queues(ctrl);
		bad_store32(ctrl, REG_CSTS, 0);
	}
	follow_enable(ctrl);
	if (bad_load32(ctrl, REG_CC) & CC_SHUTDOWN) {
		bad_cache_flush(ctrl, ctrl->disk, bad_disk_bytes(ctrl));
		bad_store32(ctrl, REG_CSTS, bad_load32(ctrl, REG_CSTS) | CSTS_SHUTDOWN_DONE);
	}
}

static void cut_power(struct bad *ctrl)
{
	uint32_t cut = ctrl->words[BADCTRL_POWER_CUT / 4];

	if (cut >> BADCTRL_CUT_SHIFT) {
		pthread_mutex_unlock(&ctrl->lock);
		bad_io_cut_power(ctrl, cut >> BADCTRL_CUT_SHIFT);
		pthread_mutex_lock(&ctrl->lock);
	} else if (cut) {
		bad_cache_lose(ctrl);
	}
	ctrl->words[BADCTRL_POWER_CUT / 4] = 0;
}

/* --- queues ----------------------------------------------------------------- */

/* Returns false if the queue may have more commands, as other queues are served first. */
static bool serve_queue(struct bad *ctrl, uint16_t sqid)
{
	struct bad_command command;
	unsigned int turn;

	for (turn = 0; turn < QUEUE_TURN; turn++) {
		if (!bad_queue_rung(ctrl, sqid) || !atomic_load(&ctrl->goes) ||
		    !bad_queue_room(ctrl, sqid) || !bad_queue_fetch(ctrl, sqid, &command))
			return true;
		bad_command_handle(ctrl, sqid, &command);
	}
	return false;
}

/* Queues behind it have pollers. */
static uint16_t last_queue(struct bad *ctrl)
{
	return ctrl->poller_count && atomic_load(&ctrl->plain) ? 0 : ctrl->last_sq;
}

static bool serve_queues(struct bad *ctrl)
{
	bool done = true;
	uint16_t sqid;

	for (sqid = 0; sqid <= last_queue(ctrl); sqid++)
		done &= serve_queue(ctrl, sqid);
	return done;
}

static void serve(struct bad *ctrl, bool release)
{
	if (release)
		bad_command_release(ctrl);
	bad_events_send(ctrl);
	while (!serve_queues(ctrl))
		;
	bad_events_send(ctrl);
}

/* Returns whether it ignores a disable. */
static bool stubborn(struct bad *ctrl)
{
	return ctrl->words[BADCTRL_MODE / 4] == BADCTRL_UNSTOPPABLE && ctrl->enabled &&
	       !(bad_load32(ctrl, REG_CC) & CC_ENABLE) && ctrl->held_count;
}

/* Repeat the held commands: only disabled bus mastering prevents their memory accesses. */
static void insist(struct bad *ctrl)
{
	const struct timespec pause = { .tv_nsec = 5000000 };

	pthread_mutex_unlock(&ctrl->lock);
	bad_held_repeat(ctrl);
	nanosleep(&pause, NULL);
	pthread_mutex_lock(&ctrl->lock);
}

static bool any_rung(struct bad *ctrl)
{
	uint16_t sqid;

	for (sqid = 0; sqid <= last_queue(ctrl); sqid++)
		if (bad_queue_rung(ctrl, sqid))
			return true;
	return false;
}

/* A doorbell rung without a message wakes no thread: poll, less often while idle. */
static void look(struct bad *ctrl, unsigned int *idle)
{
	const struct timespec pause = { .tv_nsec = 20000 };

	pthread_mutex_unlock(&ctrl->lock);
	if (any_rung(ctrl)) {
		bad_pollers_halt(ctrl);
		serve_queues(ctrl);
		bad_pollers_go_on(ctrl);
		*idle = 0;
	} else if (++*idle > IDLE_LOOKS || ctrl->poller_count) {
		nanosleep(&pause, NULL);
	}
	pthread_mutex_lock(&ctrl->lock);
}

/* Called with the lock held, which it releases temporarily. */
static void work(struct bad *ctrl)
{
	bool serving, release = false;

	ctrl->work = false;
	pthread_mutex_unlock(&ctrl->lock);
	bad_pollers_halt(ctrl);
	pthread_mutex_lock(&ctrl->lock);
	follow_config(ctrl);
	cut_power(ctrl);
	bad_settle(ctrl);
	serving = ctrl->serving;
	if (serving) {
		release = ctrl->release;
		ctrl->release = false;
	}
	pthread_mutex_unlock(&ctrl->lock);
	if (serving)
		serve(ctrl, release);
	bad_pollers_go_on(ctrl);
	pthread_mutex_lock(&ctrl->lock);
}

void *bad_work(void *context)
{
	struct bad *ctrl = context;
	unsigned int idle = 0;

	pthread_mutex_lock(&ctrl->lock);
	while (!ctrl->leaving) {
		if (!ctrl->work && stubborn(ctrl)) {
			insist(ctrl);
			continue;
		}
		if (!ctrl->work && ctrl->polled && ctrl->serving) {
			look(ctrl, &idle);
			continue;
		}
		if (!ctrl->work) {
			pthread_cond_wait(&ctrl->wake, &ctrl->lock);
			continue;
		}
		work(ctrl);
	}
	pthread_mutex_unlock(&ctrl->lock);
	return NULL;
}
