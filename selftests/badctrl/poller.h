/* SPDX-License-Identifier: GPL-2.0-only */
/* Threads that do I/O commands while nothing is to be got wrong. */
#ifndef BADCTRL_POLLER_H
#define BADCTRL_POLLER_H

#include "controller.h"

/* Commands of one queue before the next one's. */
#define QUEUE_TURN	32

/* As many as poller_count says: 0 or an errno; they end when @leaving is set. */
int bad_pollers_start(struct bad *ctrl);
void bad_pollers_join(struct bad *ctrl);

/* Between the two no poller does anything; not with the lock. */
void bad_pollers_halt(struct bad *ctrl);
void bad_pollers_go_on(struct bad *ctrl);

#endif /* BADCTRL_POLLER_H */
