/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * What the CPU's floor keeps for a controller.
 *
 * Lock order: effects_lock -> scan_lock -> (tell_lock, the peers' locks,
 * enable_lock) -> namespaces_lock.
 */
#ifndef _NVMEP_CPU_H
#define _NVMEP_CPU_H

#include <linux/bio.h>
#include <linux/list.h>
#include <linux/mempool.h>
#include <linux/mutex.h>
#include <linux/spinlock.h>
#include <linux/srcu.h>
#include <linux/types.h>
#include <linux/workqueue.h>

struct nvmep_cpu_ops;
struct nvmep_ctrl;
struct nvmep_ns_ops;

/**
 * struct nvmep_cpu - a controller as the CPU sees it
 * @ctrl: const: whose it is; this lives as long
 * @ns_ops: const: what makes nodes for namespaces
 * @range_pool: const while bound: pages of ranges to deallocate
 * @namespaces_lock: guards each single change of @namespaces, and @quiesced; held
 *	for short times only
 * @namespaces: changes under @scan_lock and @namespaces_lock; who reads it under
 *	@namespaces_srcu keeps those on it, and the controller's queues
 * @namespaces_srcu: see @namespaces
 * @quiesced: @namespaces_lock: no I/O is dispatched
 * @effects_lock: one at a time who bars peers: a command that others' commands are sent
 *	for, see nvmep_user_execute_alone(), or nvmep_share_change()
 * @scan_lock: a scan, or a command that must be alone
 * @scans: @scan_lock: how many there were
 * @scan_work: looks for namespaces
 * @moved_lock: guards @moved
 * @moved: I/O of queues that the controller does not grant any more; goes to the
 *	others with the next scan
 */
struct nvmep_cpu {
	struct nvmep_ctrl *ctrl;
	const struct nvmep_ns_ops *ns_ops;
	mempool_t *range_pool;

	struct mutex namespaces_lock;	/* @namespaces, @quiesced */
	struct list_head namespaces;
	struct srcu_struct namespaces_srcu;
	bool quiesced;

	struct mutex effects_lock;	/* see above */
	struct mutex scan_lock;		/* @scans, and who comes and goes */
	u64 scans;
	struct work_struct scan_work;

	spinlock_t moved_lock;		/* @moved */
	struct bio_list moved;
};

extern const struct nvmep_cpu_ops nvmep_cpu_ops;

#endif /* _NVMEP_CPU_H */
