/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * What one controller knows of its peers, and in which order the locks of the
 * peer rooms nest.
 */
#ifndef _NVMEP_PEERS_H
#define _NVMEP_PEERS_H

#include <linux/atomic.h>
#include <linux/list.h>
#include <linux/mutex.h>
#include <linux/rwsem.h>
#include <linux/types.h>

#include "objects.h"
#include "watch.h"

struct nvmep_ctrl;
struct p2pdma_provider;
struct workqueue_struct;

/**
 * struct nvmep_life - a queue pair that the controller may act for
 * @node: peers->lock: in peers->alive from before the controller knows of the
 *	queue pair until it has deleted or lost it
 * @birth: peers->lock: how many were born before
 */
struct nvmep_life {
	struct list_head node;
	u64 birth;
};

/**
 * struct nvmep_peers - the peers of one controller
 * @ctrl: const: the controller, which owns this
 * @gate: the work of every peer ioctl runs under the read side, but neither its
 *	copies from and to user space, nor its calls into exporters, nor what works
 *	without a controller; taken before all other locks of the peer rooms
 * @removed: written once, before @gate is taken for writing; what counts was
 *	read under @gate or @lock: the driver is being unbound, nothing new may start
 * @lock: guards the lists, what hangs on them and the state of queue pairs;
 *	never held over an admin command, a call into another driver or a copy
 *	to user space.  The reset work takes it
 * @qps: @lock: queue pairs whose file is open
 * @alive: @lock: struct nvmep_life, by birth.  Each of them may access every
 *	exposed buffer, whoever imported that
 * @births: @lock: queue pairs that ever were on @alive
 * @ready: @lock: generation of the controller whose namespaces have been looked
 *	at; queue pairs of an older one may be made live again in it
 * @bufs: @lock: buffers with a handle, or with one reserved, until unbinding
 *	detaches them
 * @kept: @lock: exposed buffers whose node was closed while queue pairs were alive,
 *	in order of their @keep_until, each with its handle's reference
 * @mapped: buffers that an exporter maps or has mapped, and that are not detached
 * @provider: const: the kernel's handle for BAR0, NULL where it has none; used
 *	while not @removed
 * @watch: counts live queue pairs under @lock
 * @invalidate_wq: const: runs the invalidate work of buffers
 * @objects: live objects by kind
 *
 * Belongs to the controller and lives as long as that.
 *
 * Lock order: gate -> qp->lock -> lock, and gate -> qp->lock -> mmap_lock or
 * buf->lock -> dma_resv; exports->lock is innermost.  qp->lock is held over
 * admin commands, and buf->lock until commands of the CPU have ended; both may wait for
 * a reset, which takes only lock.
 */
struct nvmep_peers {
	struct nvmep_ctrl *ctrl;
	struct rw_semaphore gate;
	bool removed;
	struct mutex lock;	/* @qps, @bufs and what hangs on them */
	struct list_head qps;
	struct list_head alive;
	u64 births;
	u32 ready;
	struct list_head bufs;
	struct list_head kept;
	atomic_t mapped;
	struct p2pdma_provider *provider;
	struct nvmep_watch watch;
	struct workqueue_struct *invalidate_wq;
	struct nvmep_objects objects;
};

#endif /* _NVMEP_PEERS_H */
