/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The peers of one controller: state, lists and lock order of this layer.
 */
#ifndef _NVMEP_PEER_H
#define _NVMEP_PEER_H

#include <linux/atomic.h>
#include <linux/limits.h>
#include <linux/list.h>
#include <linux/mutex.h>
#include <linux/rwsem.h>
#include <linux/types.h>
#include <linux/workqueue.h>

#include "peer_debugfs.h"

struct nvmep_ctrl;
struct nvmep_mediator;
struct nvmep_peer_ops;
struct p2pdma_provider;

/* Uevents that were not sent yet; a new one overwrites the oldest. */
#define NVMEP_MAX_UEVENTS	8

/* nvmep_peers.ready: no generation */
#define NVMEP_NEVER_READY	U32_MAX

/**
 * struct nvmep_uevent - a uevent about queue pairs that was not sent yet
 * @event: its name, static text
 * @generation: of the controller
 * @queue_pairs: how many it is about
 */
struct nvmep_uevent {
	const char *event;
	u32 generation;
	unsigned int queue_pairs;
};

/**
 * struct nvmep_peers - the peers of one controller
 * @ctrl: const: the controller, which owns this structure
 * @ioctl_rwsem: read: a peer ioctl runs.  Not held over copies from and to user
 *	space, over calls into exporters, or by ioctls that work without a
 *	controller.  Write: unbinding waits for all of them.  Outermost lock
 * @removed: set once, before @ioctl_rwsem is taken for writing: the driver is
 *	being unbound, nothing new may start.  Unbinding waits for a reader of
 *	@ioctl_rwsem that finds it clear, and finds what was added to a list
 *	under the hold of @lock that found it clear
 * @lock: guards the lists, their entries and the state of queue pairs.  Never
 *	held over an admin command, a call into another driver or a copy to user
 *	space, because the reset work takes it
 * @qps: @lock: queue pairs whose file is open
 * @ready: written under @lock, READ_ONCE() without it: generation in which a
 *	scan has compared the namespaces with those of before.  A queue pair
 *	becomes LIVE only in this generation.  NVMEP_NEVER_READY before the
 *	first scan, and from a change that a scan finds to its end
 * @bufs: @lock: buffers with a handle or a reserved handle, until unbinding
 *	detaches them
 * @mapped: buffers that an exporter maps or has mapped and that are not
 *	detached
 * @provider: const: the kernel's P2PDMA provider of BAR0, NULL if there is
 *	none.  The kernel frees it after unbinding
 * @provider_users: calls that use @provider or P2PDMA's distance; none starts
 *	after @removed is set
 * @health_poll: runs while @live is not 0
 * @live: written under @lock, read without it: LIVE queue pairs
 * @uevents: @lock: uevent n is in entry n modulo NVMEP_MAX_UEVENTS
 * @uevent_first: @lock: number of the oldest unsent uevent
 * @uevent_next: @lock: number of the next uevent
 * @uevent_work: sends the uevents
 * @invalidate_wq: const until unbinding has detached all buffers, then NULL:
 *	runs the invalidation work of buffers and @uevent_work.  Without a
 *	rescuer: nothing that ends a reset waits for it
 * @mediator: written under @lock, READ_ONCE() without it: set once, by the
 *	first mediated queue pair
 * @works: revocation works of all queue pairs that are queued or run
 * @leak_counters: objects by kind
 *
 * Lives as long as the controller.
 *
 * Lock order: ioctl_rwsem -> qp->lock -> lock, and
 * ioctl_rwsem -> qp->lock -> buf->lock -> dma_resv, and
 * CPU hotplug, parameter lock, ioctl_rwsem -> nvmep_pool_lock -> poller->lock,
 * and qp->lock -> poller->lock -> mediator->lock -> ctrl->relay_lock, and lock,
 * ctrl->enable_lock -> ctrl->relay_lock.  The last three of these are spinlocks.
 * qp->lock -> tenant->mutex -> mediator->lock, and qp->lock -> mediator->mutex ->
 * poller->lock, and lock -> mediator->lock.
 * exports->lock is innermost; processes take it under their mmap lock.
 *
 * qp->lock is held over admin commands, buf->lock until commands of the CPU
 * have ended.  Both may wait for a reset, so the reset work takes neither of
 * them.  It takes lock and exports->lock.  Nothing may wait for a reset, for
 * memory or for user memory under these two.  The i_mmap lock and the
 * reservation lock of doorbell dma-bufs are taken by revocation works only,
 * which hold no lock of this layer then; under exports->lock they try the mmap
 * lock of processes.
 */
struct nvmep_peers {
	struct nvmep_ctrl *ctrl;
	struct rw_semaphore ioctl_rwsem;
	bool removed;
	struct mutex lock;	/* the lists, their entries, queue pair state */
	struct list_head qps;
	u32 ready;
	struct list_head bufs;
	atomic_t mapped;
	struct p2pdma_provider *provider;
	atomic_t provider_users;
	struct delayed_work health_poll;
	unsigned int live;
	struct nvmep_uevent uevents[NVMEP_MAX_UEVENTS];
	unsigned int uevent_first;
	unsigned int uevent_next;
	struct work_struct uevent_work;
	struct workqueue_struct *invalidate_wq;
	struct nvmep_mediator *mediator;
	atomic_t works;
	struct nvmep_leak_counters leak_counters;
};

extern const struct nvmep_peer_ops nvmep_peer_ops;

#endif /* _NVMEP_PEER_H */
