// SPDX-License-Identifier: GPL-2.0-only
/*
 * The module's workqueues: resets have one of their own, so that scans and events
 * which wait for a reset cannot keep it from running.
 */
#include "workqueue.h"

struct workqueue_struct *nvmep_wq;
struct workqueue_struct *nvmep_reset_wq;

/**
 * nvmep_workqueues_init() - make the workqueues
 *
 * Return: 0 or -ENOMEM.
 */
int nvmep_workqueues_init(void)
{
	nvmep_wq = alloc_workqueue("nvmep", WQ_UNBOUND, 0);
	if (!nvmep_wq)
		return -ENOMEM;
	/* Its own, and with a rescuer: writing out memory may wait for it. */
	nvmep_reset_wq = alloc_workqueue("nvmep-reset",
					 WQ_UNBOUND | WQ_MEM_RECLAIM, 0);
	if (!nvmep_reset_wq) {
		destroy_workqueue(nvmep_wq);
		return -ENOMEM;
	}
	return 0;
}

/**
 * nvmep_workqueues_exit() - undo nvmep_workqueues_init(); waits for all work
 */
void nvmep_workqueues_exit(void)
{
	destroy_workqueue(nvmep_reset_wq);
	destroy_workqueue(nvmep_wq);
}
