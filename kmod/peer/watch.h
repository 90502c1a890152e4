/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Somebody looks after a controller that only peers use: no command of the CPU's
 * would time out on it.
 */
#ifndef _NVMEP_WATCH_H
#define _NVMEP_WATCH_H

#include <linux/workqueue.h>

/**
 * struct nvmep_watch - looks at a controller while queue pairs are live
 * @work: runs every NVMEP_WATCH_MS while there is something to watch
 * @look: const: what it does; process context, no lock held
 * @live: read without a lock: queue pairs to be watched; its changes are ordered
 *	by the caller's lock
 */
struct nvmep_watch {
	struct delayed_work work;
	void (*look)(struct nvmep_watch *watch);
	unsigned int live;
};

void nvmep_watch_init(struct nvmep_watch *watch,
		      void (*look)(struct nvmep_watch *watch));
void nvmep_watch_count(struct nvmep_watch *watch, int change);
void nvmep_watch_stop(struct nvmep_watch *watch);

#endif /* _NVMEP_WATCH_H */
