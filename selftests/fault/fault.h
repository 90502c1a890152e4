/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Make the n-th allocation or user copy of the module fail, and see afterwards
 * that nothing is left behind. Needs a kernel with fault injection.
 */
#ifndef FAULT_H
#define FAULT_H

#include <stdbool.h>

#include "nptest.h"

/**
 * enum fault_where - in whose context the module is to fail
 * @FAULT_CALLER: in the calling thread
 * @FAULT_WORKERS: in the kernel's worker threads
 */
enum fault_where {
	FAULT_CALLER,
	FAULT_WORKERS,
};

/**
 * enum fault_reach - how far below a function of the module failures are injected,
 *	in calls
 * @FAULT_NEAR: what the module itself asks for
 * @FAULT_FAR: also what others ask for on its behalf, but not so deep that other
 *	people's interpreters (ACPI's) are meant
 */
enum fault_reach {
	FAULT_NEAR = 7,
	FAULT_FAR = 12,
};

/*
 * Let allocations fail whatever their flags, but only below functions of
 * nvme_peer.ko, and far. -EOPNOTSUPP: this kernel cannot inject failures.
 */
int fault_setup(void);
int fault_set_reach(enum fault_reach reach);

/* After fault_setup(): below any module, for one that is not there yet. */
int fault_any_module(void);

/* From here on the @n-th chance to fail, counted from 1, is taken. */
int fault_arm(enum fault_where where, unsigned int n);
/* No more failures. Returns whether one was injected since fault_arm(). */
bool fault_disarm(enum fault_where where);

/* DMA mappings that nvme-peer holds, as DMA_API_DEBUG counts them, or -errno. */
int fault_dma_mappings(bool print);

/* Leaks of nvme_peer.ko that kmemleak finds, -EOPNOTSUPP if it is off. */
int fault_leaks(void);

#endif /* FAULT_H */
