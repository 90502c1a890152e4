/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Make the n-th allocation or user copy of the module fail, and check that nothing is
 * left behind. Needs a kernel with fault injection.
 */
#ifndef FAULT_H
#define FAULT_H

#include <stdbool.h>

#include "nptest.h"

/**
 * enum fault_where - the context in which the module fails
 * @FAULT_CALLER: in the calling thread
 * @FAULT_WORKERS: in the kernel's worker threads
 */
enum fault_where {
	FAULT_CALLER,
	FAULT_WORKERS,
};

/**
 * enum fault_reach - how deep below a function of the module failures are injected, in
 * calls
 * @FAULT_NEAR: the module's own allocations
 * @FAULT_FAR: also allocations by functions that it calls, but not so deep that ACPI's
 *	interpreter is affected
 */
enum fault_reach {
	FAULT_NEAR = 7,
	FAULT_FAR = 12,
};

/*
 * Let allocations fail whatever their flags, but only below functions of nvme_peer.ko,
 * with FAULT_FAR. -EOPNOTSUPP: this kernel has no fault injection.
 */
int fault_setup(void);
int fault_set_reach(enum fault_reach reach);

/* After fault_setup(): below any module, for a module that is not loaded yet. */
int fault_any_module(void);

/* Inject a failure at the @n-th opportunity from now on, counted from 1. */
int fault_arm(enum fault_where where, unsigned int n);
/* Stop injecting. Returns whether a failure was injected since fault_arm(). */
bool fault_disarm(enum fault_where where);

/* nvme-peer's DMA mappings, as counted by DMA-API debugging, or -errno. */
int fault_dma_mappings(bool print);
/* The same of all drivers, which takes far less time: the mappings are not listed. */
int fault_dma_all(void);

/* Leaks of nvme_peer.ko that kmemleak reports, -EOPNOTSUPP if it is disabled. */
int fault_leaks(void);

#endif /* FAULT_H */
