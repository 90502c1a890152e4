/* SPDX-License-Identifier: GPL-2.0-only */
/* The thread that does everything but serve QEMU's requests. */
#ifndef BADCTRL_WORKER_H
#define BADCTRL_WORKER_H

#include "controller.h"

/* Thread function; the argument is a struct bad. Ends when @leaving is set. */
void *bad_work(void *context);

#endif /* BADCTRL_WORKER_H */
