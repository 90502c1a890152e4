// SPDX-License-Identifier: GPL-2.0-only
/*
 * The timer behind the watch over a controller.  It runs only while there are live
 * queue pairs of peers.
 */
#include "watch.h"
#include "workqueue.h"

/* Twice in the time within which a peer is to learn that its controller failed. */
#define NVMEP_WATCH_MS	50

static void nvmep_watch_start(struct nvmep_watch *watch)
{
	queue_delayed_work(nvmep_wq, &watch->work,
			   msecs_to_jiffies(NVMEP_WATCH_MS));
}

/* Who counts from 0 to 1 after our question starts it anew. */
static void nvmep_watch_work(struct work_struct *work)
{
	struct nvmep_watch *watch = container_of(to_delayed_work(work),
						 struct nvmep_watch, work);

	watch->look(watch);
	if (READ_ONCE(watch->live))
		nvmep_watch_start(watch);
}

/**
 * nvmep_watch_init() - watch nothing yet
 * @watch: the watch
 * @look: what to do each time
 */
void nvmep_watch_init(struct nvmep_watch *watch,
		      void (*look)(struct nvmep_watch *watch))
{
	INIT_DELAYED_WORK(&watch->work, nvmep_watch_work);
	watch->look = look;
}

/**
 * nvmep_watch_count() - queue pairs went live or ended
 * @watch: the watch
 * @change: how many, negative if they ended
 *
 * One caller at a time.  Does not wait.
 */
void nvmep_watch_count(struct nvmep_watch *watch, int change)
{
	bool first = !watch->live && change > 0;

	WRITE_ONCE(watch->live, watch->live + change);
	if (first)
		nvmep_watch_start(watch);
}

/**
 * nvmep_watch_stop() - end it
 * @watch: the watch; nothing is live on it, nor will be
 *
 * On return @look does not run.
 */
void nvmep_watch_stop(struct nvmep_watch *watch)
{
	cancel_delayed_work_sync(&watch->work);
}
