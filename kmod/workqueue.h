/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The module's workqueues.
 */
#ifndef _NVMEP_WORKQUEUE_H
#define _NVMEP_WORKQUEUE_H

#include <linux/workqueue.h>

extern struct workqueue_struct *nvmep_wq;
extern struct workqueue_struct *nvmep_reset_wq;

int nvmep_workqueues_init(void);
void nvmep_workqueues_exit(void);

#endif /* _NVMEP_WORKQUEUE_H */
