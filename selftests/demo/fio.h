/* SPDX-License-Identifier: GPL-2.0-only */
/* fio, an initiator that is another program. */
#ifndef DEMO_FIO_H
#define DEMO_FIO_H

#include "demo.h"

/*
 * Counts into @tally.  It ends by itself, a little after demo->seconds of I/O:
 * it cannot be stopped and still say whether all was well.
 */
void fio_run(const struct demo *demo, struct tally *tally);

#endif /* DEMO_FIO_H */
