/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Per-controller state of this layer: namespaces, block I/O and passthrough.
 *
 * Lock order: effects_lock -> scan_lock -> (notify_lock, the peers' locks,
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
#include <linux/xarray.h>

struct nvmep_cpu_ops;
struct nvmep_ctrl;
struct nvmep_hwmon;
struct opal_dev;
struct request_queue;

/**
 * struct nvmep_cpu - per-controller state of this layer
 * @ctrl: const: the controller, which outlives this structure
 * @range_pool: const while bound: pages for Dataset Management ranges
 * @placed: used by blk_mq_ops.map_queues only, which blk-mq calls one at a time
 * @namespaces_lock: guards @quiesced, @asleep and each change of @namespaces.
 *	Taken by a stop of the controller, so no holder may wait for I/O without
 *	a timeout
 * @namespaces: changes under @scan_lock and @namespaces_lock; read under
 *	either, or under @namespaces_srcu: a namespace found there, and the
 *	controller's queues, stay allocated until the reader is done, even if it
 *	is unlinked meanwhile
 * @by_nsid: the namespaces of @namespaces by NSID: changes under @scan_lock,
 *	read as @namespaces
 * @namespaces_srcu: removal of a namespace waits for its readers
 * @quiesced: guarded by @namespaces_lock: no I/O is dispatched
 * @asleep: guarded by @namespaces_lock: the request queues are frozen for
 *	suspend
 * @dead_work: marks the disks of a controller dead that has ended
 * @effects_lock: serializes operations that block peers:
 *	nvmep_user_execute_peers_blocked() and nvmep_queue_split_set()
 * @scan_lock: serializes scans, exclusive commands and unbinding.  A namespace
 *	is linked and unlinked under it
 * @scans: guarded by @scan_lock: sequence number of the last scan
 * @scan_generation: guarded by @scan_lock: generation in which the current scan
 *	began
 * @scan_again: guarded by @scan_lock: the current scan has to be retried, as it
 *	could not identify or add a namespace
 * @removals: namespaces that are being removed; changes under @scan_lock;
 *	READ_ONCE()
 * @scan_unverified: guarded by @scan_lock: the current scan could not identify
 *	a known namespace, so its format may have changed
 * @scan_failures: guarded by @scan_lock: failed scans since the last complete
 *	one
 * @ignored: changes under @scan_lock: by NSID, identifiers and format
 *	of each namespace without a disk
 * @hwmon_tries: used by @scan_work: attempts to add temperature sensors
 * @hwmon: used by @scan_work, and by removal after it was cancelled:
 *	temperature sensors, NULL for none
 * @opal_answered: the controller has answered a command of Opal, so @opal was
 *	set, or there is none; READ_ONCE()
 * @opal_tries: used by @scan_work: commands sent to find that out
 * @opal: set once, smp_store_release(), then const; READ_ONCE(): Opal, NULL for none
 * @scan_work: runs nvmep_scan_work()
 * @scan_retry_work: queues @scan_work after a scan that failed
 * @poll_work: polls polled queues while the block layer waits for I/O; runs
 *	only while @scan_lock is held
 * @requeue_lock: guards @requeue_list, @requeue_flushes and @requeue_scans
 * @requeue_list: bios whose hardware queue the controller no longer grants
 * @requeue_flushes: flushes of the block layer for such a queue
 * @requeue_scans: a scan runs, which may wait for a bio
 * @requeue_work: runs nvmep_requeue_work()
 * @flush_work: runs nvmep_flush_work()
 */
struct nvmep_cpu {
	struct nvmep_ctrl *ctrl;
	mempool_t *range_pool;
	cpumask_var_t placed;

	struct mutex namespaces_lock;	/* @namespaces to @asleep */
	struct list_head namespaces;
	struct xarray by_nsid;
	struct srcu_struct namespaces_srcu;
	bool quiesced;
	bool asleep;
	struct work_struct dead_work;

	struct mutex effects_lock;	/* operations that block peers */
	struct mutex scan_lock;		/* @scans to @ignored */
	u64 scans;
	u32 scan_generation;
	bool scan_again;
	unsigned int removals;
	bool scan_unverified;
	unsigned int scan_failures;
	struct xarray ignored;
	struct work_struct scan_work;
	unsigned int hwmon_tries;
	struct nvmep_hwmon *hwmon;
	bool opal_answered;
	unsigned int opal_tries;
	struct opal_dev *opal;
	struct delayed_work scan_retry_work;
	struct delayed_work poll_work;

	spinlock_t requeue_lock;	/* up to @requeue_scans */
	struct bio_list requeue_list;
	struct list_head requeue_flushes;
	bool requeue_scans;
	struct delayed_work requeue_work;
	struct delayed_work flush_work;
};

extern const struct nvmep_cpu_ops nvmep_cpu_ops;

bool nvmep_freeze_wait_slice(struct nvmep_ctrl *ctrl,
			     struct request_queue *queue);
void nvmep_freeze_wait(struct nvmep_ctrl *ctrl, struct request_queue *queue);
void nvmep_poll_work_start(struct nvmep_ctrl *ctrl);
void nvmep_poll_work_stop(struct nvmep_ctrl *ctrl);

/* For exclusive commands (CSE), see nvmep_effects_begin(). */
void nvmep_namespaces_freeze(struct nvmep_ctrl *ctrl);
void nvmep_namespaces_reread(struct nvmep_ctrl *ctrl);
void nvmep_namespaces_unfreeze(struct nvmep_ctrl *ctrl);

#endif /* _NVMEP_CPU_H */
