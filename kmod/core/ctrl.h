/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The controller: what it is, its state, and what it tells the floors above.
 *
 * One function, nvmep_ctrl_set_state(), changes the state.  The generation is
 * the other half of it: it moves exactly when the controller is known to have
 * stopped all DMA (CC.EN = 0 and CSTS.RDY = 0, or bus mastering off), so
 * memory that belonged to a queue of an older generation may be freed.
 *
 * What lies where: ctrl.c changes the object and its state, registers.c the
 * controller itself; stop.c, start.c and reset.c are the orders in which both
 * are done.  Each has its header.
 *
 * The controller knows neither the CPU's floor nor the peers'.  What it has to
 * tell them goes through two tables, struct nvmep_cpu_ops and struct
 * nvmep_peer_ops, which main.c hands over; what they keep for a controller
 * hangs on @cpu and @peers.
 *
 * Locks, outermost first:
 *
 *	device_lock(dev)	the driver core's: probe, remove, PCI callbacks
 *	(scan_lock of the CPU's floor)
 *	tell_lock		one peer_ops callback about a stop at a time
 *	(locks of the peers' floor, taken inside those callbacks)
 *	enable_lock		the controller is enabled or disabled
 *	(namespaces_lock of the CPU's floor, taken inside its callbacks)
 *	state_lock, qids.lock, the queues' locks: spinlocks, innermost
 *
 * Nobody waits for an admin command under enable_lock: if that command times
 * out, its timeout must take enable_lock to stop the controller.
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

#include "failure.h"
#include "nvme.h"
#include "qids.h"

struct dma_pool;
struct nvmep_cpu;
struct nvmep_ctrl;
struct nvmep_peers;
struct nvmep_queue;
struct nvmep_span;

enum nvmep_ctrl_state {
	NVMEP_CTRL_NEW,
	NVMEP_CTRL_LIVE,
	NVMEP_CTRL_RESETTING,
	NVMEP_CTRL_DELETING,
	NVMEP_CTRL_DEAD,
};

/**
 * struct nvmep_cpu_ops - what the floor of the CPU is told
 * @init: the controller object is new: make ctrl->cpu.  Returns 0 or -ENOMEM
 * @exit: its last reference is gone: free ctrl->cpu, which may be NULL
 * @quiesce: no I/O is dispatched after this, and nobody is dispatching; under
 *	enable_lock, so no admin command may be waited for
 * @unquiesce: I/O is dispatched again; perhaps under enable_lock
 * @drain: the controller is to be shut down and still works: I/O under way is
 *	finished, within some seconds, and none is dispatched after this
 * @fail: the controller will not come back: I/O fails at once from now on, and
 *	the disks' holders are told
 * @scan: namespaces may have come or gone: look for them, but do not wait.  Any
 *	context that may take a spinlock
 */
struct nvmep_cpu_ops {
	int (*init)(struct nvmep_ctrl *ctrl);
	void (*exit)(struct nvmep_ctrl *ctrl);
	void (*quiesce)(struct nvmep_ctrl *ctrl);
	void (*unquiesce)(struct nvmep_ctrl *ctrl);
	void (*drain)(struct nvmep_ctrl *ctrl);
	void (*fail)(struct nvmep_ctrl *ctrl);
	void (*scan)(struct nvmep_ctrl *ctrl);
};

/**
 * struct nvmep_peer_ops - what the floor of the peers is told
 * @init: the controller has started: make ctrl->peers.  Returns 0 or -ENOMEM
 * @exit: its last reference is gone: free ctrl->peers, which may be NULL
 * @prepare: memory decoding may go off, or has gone off: take the doorbells away
 *	from whoever maps them, and admit nobody new.  The controller is about
 *	to be stopped, and no queue pair can be created any more.  Process
 *	context; the bus waits, so it must wait neither for importers nor for
 *	anybody's memory
 * @stopped: the controller has stopped all DMA and lost every I/O queue; the
 *	generation has moved.  Process context, no admin command may be sent,
 *	must not wait for importers
 * @outdated: a namespace went, came or changed: queue pairs that exist must not come
 *	back after the stop that follows.  Process context
 * @restarted: the controller is live with no queue of an older generation on it, and
 *	its namespaces were looked at in the given one.  May be called again
 * @given_up: after the last @stopped: the controller will not come back
 * @remove: the driver is being unbound.  Called before the CPU's queues go,
 *	whether the controller runs or has stopped.  On return no queue pair is
 *	left on it and no importer is mapped
 * @busy: are there queue pairs that the controller may act for?  Suspend is refused
 *	while there are
 * @open: somebody opened the controller's node.  Returns what @ioctl and
 *	@release are called with, or an ERR_PTR
 * @release: that node was closed
 * @ioctl: a peer ioctl on it.  Returns 0 or a negative error code
 * @span: a command of the CPU is to move @length bytes, not 0, at @offset of the buffer
 *	that the node's user names by @handle; @dir is the data's way.  Does not sleep.
 *	Returns 0, @span, and a reference of its users for percpu_ref_put(); or a
 *	negative error code, see struct nvme_peer_uring_io
 */
struct nvmep_peer_ops {
	int (*init)(struct nvmep_ctrl *ctrl);
	void (*exit)(struct nvmep_ctrl *ctrl);
	void (*prepare)(struct nvmep_ctrl *ctrl);
	void (*stopped)(struct nvmep_ctrl *ctrl);
	void (*outdated)(struct nvmep_ctrl *ctrl);
	void (*restarted)(struct nvmep_ctrl *ctrl, u32 generation);
	void (*given_up)(struct nvmep_ctrl *ctrl);
	void (*remove)(struct nvmep_ctrl *ctrl);
	bool (*busy)(struct nvmep_ctrl *ctrl);
	void *(*open)(struct nvmep_ctrl *ctrl);
	void (*release)(void *context);
	long (*ioctl)(void *context, unsigned int cmd, void __user *arg);
	int (*span)(void *context, u32 handle, u64 offset, u32 length,
		    enum dma_data_direction dir, struct nvmep_span *span);
};

/* nvmep_ctrl.flags */
#define NVMEP_CTRL_ENABLED		0	/* CC.EN = 1; changes under enable_lock */
#define NVMEP_CTRL_STARTING		1	/* start sends commands of its own */
#define NVMEP_CTRL_EVENT_REQUESTED	2	/* an event request is under way */
#define NVMEP_CTRL_PAUSED		3	/* it activates firmware; event work only */

/*
 * One controller.
 *
 * Lives as long as anybody holds a reference (nvmep_ctrl_get()), which may be
 * long after the driver was unbound: open files and dma-bufs keep it.  Members
 * that are "const while bound" are gone after that; the state is then
 * NVMEP_CTRL_DEAD or NVMEP_CTRL_DELETING.
 */
struct nvmep_ctrl {
	struct pci_dev *pdev;		/* const, referenced */
	struct device *dev;		/* const: &pdev->dev, all DMA is done with it */
	int instance;			/* const: X of /dev/nvmepX */
	unsigned int quirks;		/* const: NVMEP_QUIRK_* */
	void __iomem *bar;		/* const while bound: mapping of BAR0 */
	resource_size_t bar_len;	/* const while bound */

	u64 cap;			/* const after the first enable */
	u32 vs;				/* const after the first enable */
	u32 doorbell_stride;		/* const: bytes */
	u32 max_entries;		/* const: CAP.MQES + 1, as the controller says */
	u32 page_size;			/* const: CC.MPS in bytes */
	u32 max_transfer;		/* const: bytes */
	u32 sgls;			/* const */
	u64 cmb_size;			/* const: bytes of CMB, 0 for none */
	struct nvme_id_ctrl *id;	/* identify data; const after probe but for
					 * the firmware revision
					 */
	u32 max_write_zeroes;		/* const: bytes, 0 for no support */
	u32 max_discard;		/* const: blocks, 0 for no support */
	u16 max_discard_ranges;		/* const */

	const struct nvmep_cpu_ops *cpu_ops;	/* const */
	struct nvmep_cpu *cpu;		/* const after probe: what that floor keeps */
	const struct nvmep_peer_ops *peer_ops;	/* const */
	struct nvmep_peers *peers;	/* const after probe: what that floor keeps */

	spinlock_t state_lock;		/* serialises changes of state */
	enum nvmep_ctrl_state state;	/* read with READ_ONCE() */
	u32 generation;			/* changes under enable_lock */
	wait_queue_head_t state_wait;	/* woken when either changes */
	unsigned long flags;		/* NVMEP_CTRL_* bits */
	u32 freezes;			/* odd while the link is; error recovery's */

	struct mutex enable_lock;	/* the controller is enabled or disabled */
	struct mutex tell_lock;		/* guards told_generation */
	u32 told_generation;		/* last stop that peer_ops heard of */
	struct work_struct reset_work;
	struct delayed_work recovery_work;	/* after an error on the bus */
	struct delayed_work event_work;	/* async event: get the log, then ask again */
	u32 event;			/* result of the last async event */
	u32 doorbell_errors;		/* events that told of one; event work only */

	struct nvmep_qids qids;
	struct nvmep_queue *admin;	/* const while bound */
	struct nvmep_queue **queues;	/* const while bound: cpu_queues of them */
	unsigned int cpu_queues;	/* const while bound */
	unsigned int polled_queues;	/* const while bound: the last of them */
	unsigned int cpu_queues_live;	/* the first of them are on the controller; a
					 * start says how many
					 */
	unsigned int cpu_share;		/* identifiers that the CPU keeps; 0: nobody has
					 * said, so half of them.  Changes while RESETTING
					 */
	unsigned int vectors;		/* const while bound: granted interrupt vectors */
	unsigned int dma_attributes;	/* const while bound: to map single segments with */
	struct dma_pool *prp_pool;	/* const while bound: pages of PRP lists */
	struct dma_pool *prp_small_pool;	/* const while bound: short PRP lists */

	struct blk_mq_tag_set admin_tags;
	struct request_queue *admin_requests;	/* const, referenced */
	struct blk_mq_tag_set io_tags;
	atomic_t aborts;		/* Abort commands that may still be sent */
	struct nvmep_failures failures;	/* of admin commands */
	atomic_long_t resets;		/* times it was RESETTING, since told a number */

	unsigned int namespace_count;	/* the CPU's floor counts, anybody reads */
	struct nvme_effects_log *effects;	/* const, NULL where not offered */

	struct device device;		/* the class device nvmepX */
	struct cdev cdev;
	struct dentry *debugfs;		/* const while bound */
};

/* The life of the object. */
struct nvmep_ctrl *nvmep_ctrl_alloc(struct pci_dev *pdev,
				    const struct nvmep_cpu_ops *cpu_ops,
				    const struct nvmep_peer_ops *peer_ops);
struct nvmep_ctrl *nvmep_ctrl_get(struct nvmep_ctrl *ctrl);
void nvmep_ctrl_put(struct nvmep_ctrl *ctrl);

/* Its state. */
enum nvmep_ctrl_state nvmep_ctrl_state(const struct nvmep_ctrl *ctrl);
const char *nvmep_ctrl_state_name(enum nvmep_ctrl_state state);
bool nvmep_ctrl_set_state(struct nvmep_ctrl *ctrl, enum nvmep_ctrl_state state);
bool nvmep_ctrl_begin_reset(struct nvmep_ctrl *ctrl);
int nvmep_ctrl_reset(struct nvmep_ctrl *ctrl);
u32 nvmep_ctrl_generation(const struct nvmep_ctrl *ctrl);
unsigned int nvmep_ctrl_namespaces(struct nvmep_ctrl *ctrl);

#endif /* _NVMEP_CTRL_H */
