/* SPDX-License-Identifier: GPL-2.0-only */
/* Concurrent resets, rescans, unbinds and binds of the controller. */
#ifndef FUZZ_CHAOS_H
#define FUZZ_CHAOS_H

#include <stdatomic.h>
#include <stdint.h>

struct fuzz_chaos {
	atomic_bool *stop;
	uint64_t seed;
	unsigned int events;
};

void *fuzz_chaos_thread(void *chaos);

#endif /* FUZZ_CHAOS_H */
