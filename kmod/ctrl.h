/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The controller: what it is, its state, and who may ask it for what.
 *
 * One function, nvmep_ctrl_set_state(), changes the state.  The generation is
 * the other half of it: it moves exactly when the controller is known to have
 * stopped all DMA (CC.EN = 0 and CSTS.RDY = 0, or bus mastering off), so
 * memory that belonged to a queue of an older generation may be freed.
 */
#ifndef _NVMEP_CTRL_H
#define _NVMEP_CTRL_H

#include <linux/cdev.h>
#include <linux/device.h>
#include <linux/pci.h>
#include <linux/workqueue.h>

#include "nvme.h"

struct nvmep_admin;
struct nvmep_block;
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
 * struct nvmep_ctrl_peer_ops - what the peer rooms want to be told
 * @stopped: the controller has stopped all DMA and lost every I/O queue; the
 *	generation has moved.  Process context, no admin command may be sent,
 *	must not wait for importers.
 * @restarted: the controller is live again with no peer queue on it.
 * @remove: the driver is being unbound.  Called before the CPU's queues go.
 *	With @alive the admin queue still works and queues must be deleted
 *	through it; without it the controller has stopped already.  On return
 *	no queue pair is left on the controller and no importer is mapped.
 *
 * Set once by main.c, so that ctrl.c need not know the rooms above it.
 */
struct nvmep_ctrl_peer_ops {
	void (*stopped)(struct nvmep_ctrl *ctrl);
	void (*restarted)(struct nvmep_ctrl *ctrl);
	void (*remove)(struct nvmep_ctrl *ctrl, bool alive);
};

/*
 * CORE owns this structure; the members named here are the ones other rooms
 * use.
 */
struct nvmep_ctrl {
	struct pci_dev *pdev;		/* const */
	struct device *dev;		/* const: &pdev->dev, all DMA is done with it */
	int instance;			/* const: X of /dev/nvmepX */
	void __iomem *bar;		/* const while bound: mapping of BAR0 */
	resource_size_t bar_len;	/* const while bound */

	u64 cap;			/* const after the first enable */
	u32 vs;				/* const after the first enable */
	u32 doorbell_stride;		/* const: bytes */
	u32 max_entries;		/* const: CAP.MQES + 1, as the controller says */
	u32 page_size;			/* const: CC.MPS in bytes */
	u32 max_transfer;		/* const: bytes */
	u32 sgls;			/* const */

	struct nvmep_peers *peers;	/* const: see peer.c */
	const struct nvmep_ctrl_peer_ops *peer_ops;	/* const */
};

struct nvmep_ctrl *nvmep_ctrl_get(struct nvmep_ctrl *ctrl);
void nvmep_ctrl_put(struct nvmep_ctrl *ctrl);
enum nvmep_ctrl_state nvmep_ctrl_state(const struct nvmep_ctrl *ctrl);
u32 nvmep_ctrl_generation(const struct nvmep_ctrl *ctrl);
int nvmep_ctrl_reset(struct nvmep_ctrl *ctrl);
int nvmep_ctrl_reset_sync(struct nvmep_ctrl *ctrl);

#endif /* _NVMEP_CTRL_H */
