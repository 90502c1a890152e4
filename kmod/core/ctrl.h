/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The controller: what it is, its state, and who may ask it for what.
 *
 * One function, nvmep_ctrl_set_state(), changes the state.  The generation is
 * the other half of it: it moves exactly when the controller is known to have
 * stopped all DMA (CC.EN = 0 and CSTS.RDY = 0, or bus mastering off), so
 * memory that belonged to a queue of an older generation may be freed.
 *
 * Locks, outermost first; ctrl.c and reset.c hold them in this order:
 *
 *	device_lock(dev)	the driver core's: probe, remove, PCI callbacks
 *	scan_lock		namespaces come and go
 *	tell_lock		one peer_ops callback about a stop at a time
 *	(locks of the peer rooms, taken inside those callbacks)
 *	enable_lock		the controller is enabled or disabled
 *	namespaces_lock		list of namespaces, and whether they are quiesced
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
#include <linux/mempool.h>
#include <linux/mutex.h>
#include <linux/pci.h>
#include <linux/wait.h>
#include <linux/workqueue.h>

#include "nvme.h"
#include "queue.h"

struct dma_pool;
struct nvmep_ctrl;
struct nvmep_peers;

enum nvmep_ctrl_state {
	NVMEP_CTRL_NEW,
	NVMEP_CTRL_LIVE,
	NVMEP_CTRL_RESETTING,
	NVMEP_CTRL_DELETING,
	NVMEP_CTRL_DEAD,
};

/**
 * struct nvmep_peer_ops - what the peer rooms do for a controller
 * @init: prepare it for peers, before anybody can open its node.  0 or a
 *	negative error code
 * @exit: the last reference to it is gone; nvmep_ctrl.peers may be NULL
 * @open: somebody opened its node.  What stands for that in @ioctl and
 *	@release, or an error pointer
 * @release: the node was closed
 * @ioctl: a peer ioctl on the open node
 * @stopped: the controller has stopped all DMA and lost every I/O queue; the
 *	generation has moved.  Process context, no admin command may be sent,
 *	must not wait for importers.
 * @restarted: the controller is live again with no peer queue on it.  May be
 *	NULL.
 * @remove: the driver is being unbound.  Called before the CPU's queues go.
 *	On return no queue pair is left on the controller and no importer is
 *	mapped.
 * @busy: are there queue pairs?  Suspend is refused while there are.
 *
 * Set once by main.c, so that ctrl.c need not know the rooms above it.
 */
struct nvmep_peer_ops {
	int (*init)(struct nvmep_ctrl *ctrl);
	void (*exit)(struct nvmep_ctrl *ctrl);
	void *(*open)(struct nvmep_ctrl *ctrl);
	void (*release)(void *context);
	long (*ioctl)(void *context, unsigned int cmd, void __user *arg);
	void (*stopped)(struct nvmep_ctrl *ctrl);
	void (*restarted)(struct nvmep_ctrl *ctrl);
	void (*remove)(struct nvmep_ctrl *ctrl);
	bool (*busy)(struct nvmep_ctrl *ctrl);
};

/* nvmep_ctrl.quirks */
#define NVMEP_QUIRK_DELAY_BEFORE_READY	BIT(0)	/* wait before polling CSTS.RDY */
#define NVMEP_QUIRK_SMALL_QUEUES	BIT(1)	/* MQES lies: at most 64 entries */
#define NVMEP_QUIRK_STRIPE		BIT(2)	/* slow across 128 KiB boundaries */
#define NVMEP_QUIRK_NO_WRITE_ZEROES	BIT(3)	/* Write Zeroes is broken */
#define NVMEP_QUIRK_DMA_48		BIT(4)	/* drives 48 address bits only */

/* nvmep_ctrl.flags */
#define NVMEP_CTRL_ENABLED		0	/* CC.EN = 1; changes under enable_lock */
#define NVMEP_CTRL_STARTING		1	/* start sends commands of its own */
#define NVMEP_CTRL_EVENT_REQUESTED	2	/* an event request is under way */

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
	u32 max_discard;		/* const: bytes, 0 for no support */
	u16 max_discard_ranges;		/* const */

	struct nvmep_peers *peers;	/* const: see peer.c */
	const struct nvmep_peer_ops *peer_ops;	/* const */

	spinlock_t state_lock;		/* serialises changes of state */
	enum nvmep_ctrl_state state;	/* read with READ_ONCE() */
	u32 generation;			/* changes under enable_lock */
	wait_queue_head_t state_wait;	/* woken when either changes */
	unsigned long flags;		/* NVMEP_CTRL_* bits */

	struct mutex enable_lock;	/* the controller is enabled or disabled */
	struct mutex tell_lock;		/* guards told_generation */
	u32 told_generation;		/* last stop that peer_ops heard of */
	struct work_struct reset_work;
	struct delayed_work recovery_work;	/* after an error on the bus */
	struct work_struct scan_work;
	struct work_struct event_work;	/* async event: get the log, then ask again */
	u32 event;			/* result of the last async event */

	struct nvmep_qids qids;
	struct nvmep_queue *admin;	/* const while bound */
	struct nvmep_queue **queues;	/* const while bound: cpu_queues of them */
	unsigned int cpu_queues;	/* const while bound */
	unsigned int vectors;		/* const while bound: granted interrupt vectors */
	struct dma_pool *prp_pool;	/* const while bound: pages of PRP lists */
	mempool_t *range_pool;		/* const while bound: pages of DSM ranges */

	struct blk_mq_tag_set admin_tags;
	struct request_queue *admin_requests;	/* const, referenced */
	struct blk_mq_tag_set io_tags;
	atomic_t aborts;		/* Abort commands that may still be sent */

	struct mutex namespaces_lock;	/* changes of the list, quiesced */
	struct list_head namespaces;	/* changes under scan_lock and namespaces_lock */
	unsigned int namespace_count;	/* ditto */
	bool quiesced;			/* guarded by namespaces_lock: no I/O is dispatched */
	struct mutex effects_lock;	/* see nvmep_user_execute() */
	struct mutex scan_lock;		/* a scan, or a command that must be alone */
	u64 scans;			/* guarded by scan_lock */
	struct nvme_effects_log *effects;	/* const, NULL where not offered */

	struct device device;		/* the class device nvmepX */
	struct cdev cdev;
	struct dentry *debugfs;		/* const while bound */
};

/* The life of the object. */
struct nvmep_ctrl *nvmep_ctrl_alloc(struct pci_dev *pdev,
				    const struct nvmep_peer_ops *peer_ops);
struct nvmep_ctrl *nvmep_ctrl_get(struct nvmep_ctrl *ctrl);
void nvmep_ctrl_put(struct nvmep_ctrl *ctrl);

/* Its state. */
enum nvmep_ctrl_state nvmep_ctrl_state(const struct nvmep_ctrl *ctrl);
const char *nvmep_ctrl_state_name(enum nvmep_ctrl_state state);
bool nvmep_ctrl_set_state(struct nvmep_ctrl *ctrl, enum nvmep_ctrl_state state);
bool nvmep_ctrl_begin_reset(struct nvmep_ctrl *ctrl);
u32 nvmep_ctrl_generation(const struct nvmep_ctrl *ctrl);
unsigned int nvmep_ctrl_namespaces(struct nvmep_ctrl *ctrl);
bool nvmep_ctrl_gone(const struct nvmep_ctrl *ctrl);

/* ctrl.c: registers; enable_lock is held. */
int nvmep_ctrl_map(struct nvmep_ctrl *ctrl);
void nvmep_ctrl_unmap(struct nvmep_ctrl *ctrl);
int nvmep_ctrl_enable(struct nvmep_ctrl *ctrl);
void nvmep_ctrl_stop_locked(struct nvmep_ctrl *ctrl, bool shutdown);

/* reset.c: the order in which a controller starts, stops and starts again. */
int nvmep_ctrl_start(struct nvmep_ctrl *ctrl);
int nvmep_ctrl_go_live(struct nvmep_ctrl *ctrl);
void nvmep_ctrl_shutdown(struct nvmep_ctrl *ctrl);
void nvmep_ctrl_give_up(struct nvmep_ctrl *ctrl, const char *why, int ret);
void nvmep_ctrl_free_queues(struct nvmep_ctrl *ctrl);
void nvmep_ctrl_stop(struct nvmep_ctrl *ctrl, bool shutdown);
void nvmep_ctrl_fence(struct nvmep_ctrl *ctrl, u32 generation);
void nvmep_ctrl_tell_stopped(struct nvmep_ctrl *ctrl);
int nvmep_ctrl_reset(struct nvmep_ctrl *ctrl);
int nvmep_ctrl_reset_sync(struct nvmep_ctrl *ctrl);
void nvmep_ctrl_reset_work(struct work_struct *work);
void nvmep_ctrl_recovery_work(struct work_struct *work);

/* sysfs.c */
extern const struct attribute_group *nvmep_ctrl_groups[];

extern struct workqueue_struct *nvmep_wq;
extern struct workqueue_struct *nvmep_reset_wq;
extern unsigned int nvmep_io_timeout;
extern unsigned int nvmep_admin_timeout;

#endif /* _NVMEP_CTRL_H */
