/* SPDX-License-Identifier: GPL-2.0-only */
/* fio, an initiator in another program. */
#ifndef DEMO_FIO_H
#define DEMO_FIO_H

#include "demo.h"

/*
 * Counts into @tally. Ends by itself, a little after @demo->seconds of I/O: a stopped fio
 * cannot report whether all data was right.
 */
void fio_run(const struct demo *demo, struct tally *tally);

#endif /* DEMO_FIO_H */
