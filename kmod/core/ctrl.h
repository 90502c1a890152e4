/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The controller: its object, its state and its locks.
 *
 * Only nvmep_ctrl_set_state_locked() changes the state.
 * The generation complements it: the generation is incremented exactly when the
 * controller has stopped all DMA (CC.EN = 0 and CSTS.RDY = 0, or bus mastering
 * off), so memory that belongs to a queue of an older generation may be freed.
 *
 * ctrl.c	the object, its lifetime, its state
 * registers.c	BAR0: map it, read what it reports
 * enable.c	the CC.EN / CSTS.RDY handshake, shutdown, subsystem reset
 * stop.c	stop the controller once a generation; process context, sleeps
 * holds.c	reasons for which a stopped controller must not be started now
 * identify.c	limits and features, at each start
 * io_queues.c	the CPU's I/O queues, at each start
 * reset.c	the order of start, stop, function reset and shutdown
 *
 * The core layer calls neither the cpu nor the peer layer.  main.c registers
 * their callbacks, struct nvmep_cpu_ops and struct nvmep_peer_ops; each layer
 * keeps its state of a controller behind @cpu and @peers.
 *
 * Lock order, outermost first:
 *
 *	device_lock(dev)	the driver core's: probe, remove, PCI callbacks
 *	(scan_lock of the cpu layer)
 *	notify_lock		serialises the peer_ops callbacks about a stop
 *	(locks of the peer layer, taken inside those callbacks)
 *	enable_lock		serialises enabling and disabling the controller
 *	(namespaces_lock of the cpu layer, taken inside its callbacks)
 *	quarantine->lock, the queues' locks, state_lock inside cq_lock:
 *	spinlocks, innermost
 *
 * Waiting for an admin command under enable_lock is a deadlock: the timeout
 * handler of that command must take enable_lock to stop the controller.
 */
#ifndef _NVMEP_CTRL_H
#define _NVMEP_CTRL_H

#include <linux/blk-mq.h>
#include <linux/cdev.h>
#include <linux/device.h>
#include <linux/dma-direction.h>
#include <linux/mutex.h>
#include <linux/pci.h>
#include <linux/wait.h>
#include <linux/workqueue.h>

#include "nvme.h"
#include "qids.h"
#include "request.h"

struct block_device;
struct dma_pool;
struct nvmep_cpu;
struct nvmep_ctrl;
struct nvmep_peers;
struct nvmep_queue;
struct nvmep_dma_range;

enum nvmep_ctrl_state {
	NVMEP_CTRL_NEW,
	NVMEP_CTRL_LIVE,
	NVMEP_CTRL_RESETTING,
	NVMEP_CTRL_DELETING,
	NVMEP_CTRL_DEAD,
};

/**
 * struct nvmep_blocks - the blocks of a namespace, for commands of peers
 * @queue: its request queue.  Commands hold a reference to its usage counter: a
 *	freeze waits for them, and fails new ones.  The members below do not
 *	change meanwhile
 * @nsid: namespace ID
 * @shift: log2 of the bytes of a block
 * @format: number of the format now; 0: not usable
 * @expected: number of the format that @shift is of
 */
struct nvmep_blocks {
	struct request_queue *queue;
	u32 nsid;
	u8 shift;
	const u32 *format;
	u32 expected;
};

/**
 * struct nvmep_cpu_ops - callbacks into the cpu layer, registered by main
 * @init: allocate ctrl->cpu of a new controller object.  Returns 0 or -ENOMEM
 * @exit: free ctrl->cpu, which may be NULL: the last reference is gone
 * @quiesce: begin no dispatch of I/O.  The caller waits for threads that are
 *	dispatching: nvmep_wait_quiesce_done().  Called under enable_lock, so it
 *	must not wait for an admin command
 * @unquiesce: resume dispatch of I/O, unless the controller is RESETTING: its
 *	I/O may be drained.  May be called under enable_lock
 * @drain: admit no new I/O, wait some seconds for I/O in flight, then quiesce.
 *	Before shutdown
 * @fail: the controller will not come back: fail all I/O at once from now on
 *	and mark the disks dead
 * @scan: queue a scan for namespaces and do not wait.  Any context that may
 *	take a spinlock.  A scan that fails is retried; one that succeeds ends
 *	with peer_ops->allow_rearm()
 * @unlock: the controller has started for the first time after sleep, and I/O is
 *	not resumed yet: unlock what lost power.  May send admin commands
 * @sleep: admit no new I/O until @wake and wait some seconds for I/O in flight,
 *	which may need a reset under way.  Returns 0; or -EBUSY, and new I/O is
 *	admitted again
 * @wake: end @sleep.  No effect without it, or after @unquiesce of a controller
 *	that will not come back, which ends it too
 * @aim: choose the CPUs that I/O queues @first to @count - 1 interrupt when there
 *	are @count, before they have interrupt handlers.  May wait for memory
 * @failures: failed commands of the request queue of a namespace.  Any context
 * @blocks: find the namespace of this controller that an open block device, or
 *	the whole device of a partition, belongs to.  The device stays open
 *	while @blocks is in use.  Returns 0; -EXDEV if it is none of this
 *	controller; -EMEDIUMTYPE if commands have metadata or protection
 *	information, or the namespace has no block I/O; -EAGAIN while I/O is held
 */
struct nvmep_cpu_ops {
	int (*init)(struct nvmep_ctrl *ctrl);
	void (*exit)(struct nvmep_ctrl *ctrl);
	void (*quiesce)(struct nvmep_ctrl *ctrl);
	void (*unquiesce)(struct nvmep_ctrl *ctrl);
	void (*drain)(struct nvmep_ctrl *ctrl);
	void (*fail)(struct nvmep_ctrl *ctrl);
	void (*scan)(struct nvmep_ctrl *ctrl);
	void (*unlock)(struct nvmep_ctrl *ctrl);
	int (*sleep)(struct nvmep_ctrl *ctrl);
	void (*wake)(struct nvmep_ctrl *ctrl);
	void (*aim)(struct nvmep_ctrl *ctrl, unsigned int first,
		    unsigned int count);
	struct nvmep_failures *(*failures)(struct request_queue *queue);
	int (*blocks)(struct nvmep_ctrl *ctrl, struct block_device *bdev,
		      struct nvmep_blocks *blocks);
};

/**
 * struct nvmep_peer_ops - callbacks into the peer layer, registered by main
 * @init: allocate ctrl->peers of a controller that has started.  Returns 0 or
 *	-ENOMEM
 * @exit: free ctrl->peers, which may be NULL: the last reference is gone
 * @revoke_doorbells: revoke the doorbells from all processes that map them, and
 *	refuse new mappings: memory decoding may go off or is off already.
 *	Called in a state in which no queue pair becomes LIVE, before or after
 *	the stop, also for a controller that has failed.  Process context.  The
 *	recovery of a bus waits for it, so it must wait neither for importers
 *	nor for memory
 * @stopped: the controller has stopped all DMA and lost every I/O queue; the
 *	generation is incremented.  Process context.  Must not send admin
 *	commands and must not wait for importers
 * @namespaces_changed: a namespace was removed, replaced or reformatted:
 *	existing queue pairs must not come back, and none is created or re-armed
 *	before @allow_rearm.  Returns true if the caller must stop the
 *	controller, which may have queues of a peer.  Process context
 * @allow_rearm: owners may create and re-arm queue pairs: a scan that began in
 *	LIVE state in the given generation has succeeded.  No effect if the
 *	generation has changed.  Called at the end of every such scan, so
 *	perhaps more than once a generation
 * @ctrl_failed: after the last @stopped: the controller will not come back
 * @remove: the driver is being unbound, the controller is running or stopped,
 *	and the CPU's queues still exist.  On return the controller has no queue
 *	pair of a peer and no importer is mapped
 * @busy: does a queue pair that the controller may act for exist whose owner
 *	has not allowed suspend?  Suspend is refused then
 * @open: the controller's node was opened.  Returns the context of @ioctl and
 *	@release, or an ERR_PTR
 * @release: that file was closed
 * @ioctl: a peer ioctl on that file.  Returns 0 or a negative error code
 * @poll: complete commands that the controller has completed.  Called
 *	repeatedly by code that waits for them.  May reschedule
 * @range: look up the DMA addresses of @length bytes, not 0, at @offset of the
 *	imported buffer @handle, for a command of the CPU that transfers data in
 *	direction @dir.  Does not sleep.  Returns 0 and fills @range, with a
 *	reference that the caller drops by percpu_ref_put(); or a negative error
 *	code, see struct nvme_peer_uring_io
 */
struct nvmep_peer_ops {
	int (*init)(struct nvmep_ctrl *ctrl);
	void (*exit)(struct nvmep_ctrl *ctrl);
	void (*revoke_doorbells)(struct nvmep_ctrl *ctrl);
	void (*stopped)(struct nvmep_ctrl *ctrl);
	bool (*namespaces_changed)(struct nvmep_ctrl *ctrl);
	void (*allow_rearm)(struct nvmep_ctrl *ctrl, u32 generation);
	void (*ctrl_failed)(struct nvmep_ctrl *ctrl);
	void (*remove)(struct nvmep_ctrl *ctrl);
	bool (*busy)(struct nvmep_ctrl *ctrl);
	void (*poll)(struct nvmep_ctrl *ctrl);
	void *(*open)(struct nvmep_ctrl *ctrl);
	void (*release)(void *context);
	long (*ioctl)(void *context, unsigned int cmd, void __user *arg);
	int (*range)(void *context, u32 handle, u64 offset, u32 length,
		     enum dma_data_direction dir,
		     struct nvmep_dma_range *range);
};

/* nvmep_ctrl.flags */
#define NVMEP_CTRL_ENABLED		0	/* CC.EN = 1; see enable_lock */
#define NVMEP_CTRL_EVENT_REQUESTED	1	/* an AER is in flight */
#define NVMEP_CTRL_PAUSED		2	/* firmware activation runs */
#define NVMEP_CTRL_LOCK_WANTED		3	/* reset work: device lock */
#define NVMEP_CTRL_SLEPT		4	/* cleared by the next start */

/*
 * One controller.
 *
 * References (nvmep_ctrl_get()) of open files and dma-bufs may keep the object
 * long after the driver was unbound.  Members that are "const while bound" are
 * invalid then; the state is NVMEP_CTRL_DEAD or NVMEP_CTRL_DELETING.
 */
struct nvmep_ctrl {
	struct pci_dev *pdev;		/* const, referenced */
	struct device *dev;		/* const: &pdev->dev, for all DMA */
	int instance;			/* const: X of /dev/nvmepX */
	unsigned int quirks;		/* const: NVMEP_QUIRK_* */
	void __iomem *bar;		/* const while bound: mapping of BAR0 */
	resource_size_t bar_len;	/* const while bound */

	u64 cap;			/* written by each enable */
	u32 vs;				/* const */
	u32 doorbell_stride;		/* const: bytes */
	u32 max_entries;		/* const: CAP.MQES + 1; 64 by quirk */
	u32 page_size;			/* const: CC.MPS in bytes */
	u32 max_transfer;		/* bytes; written by each start */
	u32 sgls;			/* SGLS; written by each start */
	u64 cmb_size;			/* const: bytes of CMB, 0 for none */
	struct nvme_id_ctrl *id;	/* const; each start writes what it
					 * points to: Identify Controller
					 */
	/* Written by each start, with the same values; READ_ONCE(). */
	u32 max_write_zeroes;		/* bytes, 0 for no support */
	u32 max_discard;		/* blocks, 0 for no support */
	u16 max_discard_ranges;

	const struct nvmep_cpu_ops *cpu_ops;	/* const */
	struct nvmep_cpu *cpu;		/* const after probe */
	const struct nvmep_peer_ops *peer_ops;	/* const */
	struct nvmep_peers *peers;	/* const after probe */

	spinlock_t state_lock;		/* guards changes of state and holds */
	enum nvmep_ctrl_state state;	/* read with READ_ONCE() */
	u32 generation;			/* changes under enable_lock; read by
					 * nvmep_ctrl_generation()
					 */
	wait_queue_head_t state_wait;	/* state, generation, holds,
					 * NVMEP_CTRL_LOCK_WANTED or what a
					 * layer waits for has changed
					 */
	unsigned long flags;		/* NVMEP_CTRL_* bits, atomic */
	unsigned int holds;		/* NVMEP_HOLD_*: these three change */
	u32 holds_taken;		/* under state_lock and are read with */
	unsigned long link_deadline;	/* READ_ONCE(); holds.c, jiffies */

	struct mutex enable_lock;	/* NVMEP_CTRL_ENABLED, generation */
	spinlock_t relay_lock;		/* guards writes of peers' doorbells */
	bool relay_open;		/* relay_lock: enabled, not stopping */
	struct mutex notify_lock;	/* guards notified_generation */
	u32 notified_generation;	/* of the last peer_ops->stopped() */
	struct work_struct reset_work;	/* RESETTING without holds */
	struct delayed_work link_work;	/* while the link is held */
	struct delayed_work async_event_work;	/* handles @event, sends AER */
	u32 event;			/* result of last AER; READ_ONCE() */
	u32 event_generation;		/* of @event; smp_load_acquire() */
	u32 doorbell_errors;		/* events about doorbells; event work */
	u32 other_events;		/* without an action; event work */

	struct nvmep_qids qids;		/* has a lock of its own */
	struct nvmep_queue *admin;	/* const while bound */
	struct nvmep_queue **queues;	/* const while bound: array of
					 * @max_cpu_queues
					 */
	unsigned int max_cpu_queues;	/* const while bound */
	unsigned int cpu_queues;	/* the first of @queues are allocated;
					 * the first start and a change of
					 * @cpu_qids increase it; read by
					 * nvmep_ctrl_cpu_queues()
					 */
	u16 io_entries;			/* const while bound: of each of @queues */
	unsigned int polled_queues;	/* const while bound: last of @queues */
	unsigned int cpu_queues_live;	/* the first of @queues exist on the
					 * controller; changes during a start
					 */
	unsigned int cpu_qids;		/* queue IDs reserved for the CPU, 0
					 * for the default; changes while
					 * RESETTING
					 */
	unsigned int vectors;		/* const while bound: IRQ vectors */
	unsigned int dma_attributes;	/* const while bound: single segments */
	struct dma_pool *prp_pool;	/* const while bound: PRP list pages */
	struct dma_pool *prp_small_pool;	/* as prp_pool: short lists */

	struct blk_mq_tag_set admin_tags;	/* const while bound */
	struct request_queue *admin_q;	/* const, referenced */
	struct blk_mq_tag_set io_tags;	/* const while bound */
	atomic_t aborts;		/* Aborts that ACL still allows */
	struct nvmep_failures failures;	/* of admin commands */
	atomic_long_t resets;		/* resets so far; sysfs may set it */

	unsigned int namespace_count;	/* written by cpu layer; READ_ONCE() */
	struct nvme_effects_log *effects;	/* set once by a start, const
						 * then; NULL if unsupported
						 */

	struct device device;		/* the class device nvmepX */
	struct cdev cdev;		/* const while bound */
	struct dentry *debugfs;		/* const while bound */
};

/* Lifetime. */
struct nvmep_ctrl *nvmep_ctrl_alloc(struct pci_dev *pdev,
				    const struct nvmep_cpu_ops *cpu_ops,
				    const struct nvmep_peer_ops *peer_ops);
struct nvmep_ctrl *nvmep_ctrl_get(struct nvmep_ctrl *ctrl);
void nvmep_ctrl_put(struct nvmep_ctrl *ctrl);

/* State. */
enum nvmep_ctrl_state nvmep_ctrl_state(const struct nvmep_ctrl *ctrl);
const char *nvmep_ctrl_state_name(enum nvmep_ctrl_state state);
bool nvmep_ctrl_set_state_locked(struct nvmep_ctrl *ctrl,
				 enum nvmep_ctrl_state state);
bool nvmep_ctrl_set_state(struct nvmep_ctrl *ctrl, enum nvmep_ctrl_state state);
bool nvmep_ctrl_begin_reset(struct nvmep_ctrl *ctrl);
int nvmep_ctrl_reset(struct nvmep_ctrl *ctrl);
u32 nvmep_ctrl_generation(const struct nvmep_ctrl *ctrl);
unsigned int nvmep_ctrl_namespace_count(struct nvmep_ctrl *ctrl);

/* Number of @queues that are allocated; no lock needed. */
static inline unsigned int
nvmep_ctrl_cpu_queues(const struct nvmep_ctrl *ctrl)
{
	/* Pairs with smp_store_release() in nvmep_add_cpu_queue(). */
	return smp_load_acquire(&ctrl->cpu_queues);
}

#endif /* _NVMEP_CTRL_H */
