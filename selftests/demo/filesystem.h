/* SPDX-License-Identifier: GPL-2.0-only */
/* ext4, an initiator in other programs. */
#ifndef DEMO_FILESYSTEM_H
#define DEMO_FILESYSTEM_H

#include "demo.h"

/* Counts into @tally until @demo->stop is set. */
void filesystem_run(const struct demo *demo, struct tally *tally);

/* The block layer's own count of I/Os and bytes of a partition or disk. */
struct block_count {
	uint64_t reads;
	uint64_t writes;
	uint64_t bytes;
};

bool block_count(const char *device, struct block_count *count);

#endif /* DEMO_FILESYSTEM_H */
