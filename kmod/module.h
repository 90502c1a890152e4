/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Module parameters and workqueues that several layers use.
 */
#ifndef _NVMEP_MODULE_H
#define _NVMEP_MODULE_H

#include <linux/workqueue.h>

extern unsigned int nvmep_io_timeout;		/* seconds; of new controllers */
extern unsigned int nvmep_admin_timeout;	/* seconds */

extern struct workqueue_struct *nvmep_revoke_wq;	/* revocation */
extern struct workqueue_struct *nvmep_disk_wq;	/* dead and removed disks */
extern struct workqueue_struct *nvmep_wq;	/* scans, events */
extern struct workqueue_struct *nvmep_reset_wq;	/* resets */
extern struct workqueue_struct *nvmep_recovery_wq;	/* requests of peers */
extern struct workqueue_struct *nvmep_tenant_wq;	/* of mediated ones */
extern struct workqueue_struct *nvmep_mediate_wq;	/* shared queue pairs */
extern struct workqueue_struct *nvmep_file_wq;	/* inodes of windows */
extern struct workqueue_struct *nvmep_cache_wq;	/* their cached pages */
extern struct workqueue_struct *nvmep_health_wq;	/* polls */
extern struct workqueue_struct *nvmep_requeue_wq;	/* moved I/O */
extern struct workqueue_struct *nvmep_flush_wq;	/* moved flushes */

int nvmep_workqueues_init(void);
void nvmep_workqueues_exit(void);

#endif /* _NVMEP_MODULE_H */
