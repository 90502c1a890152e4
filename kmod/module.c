// SPDX-License-Identifier: GPL-2.0-only
/*
 * Module parameters, workqueues and trace events that several layers use.  A
 * parameter of one file only is declared there.
 */
#include <linux/module.h>

#include "compat.h"
#include "module.h"

#define CREATE_TRACE_POINTS
#include "trace.h"

/* --- parameters ---------------------------------------------------------- */

/* Timeouts in jiffies and milliseconds must fit into 32 bits. */
#define NVMEP_TIMEOUT_MAX_S	(24 * 60 * 60)

static int nvmep_timeout_set(const char *value,
			     const struct kernel_param *param)
{
	return param_set_uint_minmax(value, param, 1, NVMEP_TIMEOUT_MAX_S);
}

static const struct kernel_param_ops nvmep_timeout_ops = {
	.set = nvmep_timeout_set,
	.get = param_get_uint,
};

unsigned int nvmep_io_timeout = 30;
module_param_cb(io_timeout, &nvmep_timeout_ops, &nvmep_io_timeout, 0644);
__MODULE_PARM_TYPE(io_timeout, "uint");
MODULE_PARM_DESC(io_timeout,
		 "timeout of I/O commands in seconds, for controllers bound from now on");

unsigned int nvmep_admin_timeout = 60;
module_param_cb(admin_timeout, &nvmep_timeout_ops, &nvmep_admin_timeout, 0644);
__MODULE_PARM_TYPE(admin_timeout, "uint");
MODULE_PARM_DESC(admin_timeout,
		 "timeout of admin commands in seconds; a timeout resets the controller");

/* --- workqueues ---------------------------------------------------------- */

/*
 * Resets have a workqueue of their own: scans and events wait for a reset,
 * which would be a deadlock if they could keep its work from running.  So has
 * the recovery of peer queue pairs, which also waits for resets, and the
 * submission of moved I/O, which a scan waits for; its work runs on the CPU
 * that it is queued on, and waits while a disk is frozen.  A freeze waits for
 * moved flushes.  All have a rescuer: writeback waits for resets, for moved I/O
 * and flushes, and for scans.
 */
struct workqueue_struct *nvmep_wq;
struct workqueue_struct *nvmep_reset_wq;
struct workqueue_struct *nvmep_recovery_wq;
struct workqueue_struct *nvmep_requeue_wq;
struct workqueue_struct *nvmep_flush_wq;

/*
 * Requests of mediated queue pairs wait for commands, so they are apart from
 * those of others.  Recovery of the queue pairs that they share ends these
 * commands, and waits for admin commands only.
 */
struct workqueue_struct *nvmep_tenant_wq;
struct workqueue_struct *nvmep_mediate_wq;

/*
 * Health polls and polls of polled queues, apart from works that wait for
 * commands: if memory is short, a workqueue has one thread.  A poll waits only
 * to stop a controller that has failed.
 */
struct workqueue_struct *nvmep_health_wq;

/*
 * Files of mediated queue pairs.  Without a rescuer: the works wait for locks of
 * inodes and pages, which processes of the tenants may hold for any time.  Only
 * the work's own file waits for it, and unloading the module.
 */
struct workqueue_struct *nvmep_file_wq;
struct workqueue_struct *nvmep_cache_wq;

/*
 * Without a rescuer: mmu notifiers, importers and file systems, which their
 * works call, may wait for memory.  Those of disks may wait for a file system
 * for ever, so they are apart.  Unbinding waits for them without a time limit,
 * and a scan in which the kernel has refused a disk.
 */
struct workqueue_struct *nvmep_revoke_wq;
struct workqueue_struct *nvmep_disk_wq;

/* In the order of their creation. */
static const struct {
	struct workqueue_struct **queue;
	const char *name;
	unsigned int flags;
	int max_active;
} nvmep_workqueues[] = {
	{ &nvmep_wq, "nvmep", WQ_UNBOUND | WQ_MEM_RECLAIM },
	{ &nvmep_reset_wq, "nvmep-reset", WQ_UNBOUND | WQ_MEM_RECLAIM },
	{ &nvmep_recovery_wq, "nvmep-recovery", WQ_UNBOUND | WQ_MEM_RECLAIM },
	{ &nvmep_tenant_wq, "nvmep-tenant", WQ_UNBOUND | WQ_MEM_RECLAIM },
	{ &nvmep_mediate_wq, "nvmep-mediate", WQ_UNBOUND | WQ_MEM_RECLAIM },
	{ &nvmep_health_wq, "nvmep-health", WQ_UNBOUND | WQ_MEM_RECLAIM },
	{ &nvmep_revoke_wq, "nvmep-revoke", WQ_UNBOUND },
	{ &nvmep_disk_wq, "nvmep-disk", WQ_UNBOUND },
	{ &nvmep_requeue_wq, "nvmep-requeue", NVMEP_WQ_PERCPU | WQ_MEM_RECLAIM },
	{ &nvmep_flush_wq, "nvmep-flush", WQ_UNBOUND | WQ_MEM_RECLAIM },
	{ &nvmep_file_wq, "nvmep-file", WQ_UNBOUND, WQ_MAX_ACTIVE },
	{ &nvmep_cache_wq, "nvmep-cache", WQ_UNBOUND, WQ_MAX_ACTIVE },
};

/**
 * nvmep_workqueues_init() - create the workqueues
 *
 * Return: 0 or -ENOMEM.
 */
int nvmep_workqueues_init(void)
{
	struct workqueue_struct *queue;
	unsigned int i;

	for (i = 0; i < ARRAY_SIZE(nvmep_workqueues); i++) {
		queue = alloc_workqueue("%s", nvmep_workqueues[i].flags,
					nvmep_workqueues[i].max_active,
					nvmep_workqueues[i].name);
		if (!queue) {
			nvmep_workqueues_exit();
			return -ENOMEM;
		}
		*nvmep_workqueues[i].queue = queue;
	}
	return 0;
}

/**
 * nvmep_workqueues_exit() - destroy the workqueues, the last first; waits for
 *	all work
 */
void nvmep_workqueues_exit(void)
{
	unsigned int i = ARRAY_SIZE(nvmep_workqueues);

	while (i--)
		if (*nvmep_workqueues[i].queue)
			destroy_workqueue(*nvmep_workqueues[i].queue);
}
