/* SPDX-License-Identifier: GPL-2.0-only */
/* Threads that execute I/O commands while no fault is injected. */
#ifndef BADCTRL_POLLER_H
#define BADCTRL_POLLER_H

#include "controller.h"

/* Maximum number of commands of a queue before the next queue is served. */
#define QUEUE_TURN	32

/* Start @poller_count threads, which end when @leaving is set. Returns 0 or an errno. */
int bad_pollers_start(struct bad *ctrl);
void bad_pollers_join(struct bad *ctrl);

/* No poller runs between halt and go_on. Called without the lock. */
void bad_pollers_halt(struct bad *ctrl);
void bad_pollers_go_on(struct bad *ctrl);

#endif /* BADCTRL_POLLER_H */
