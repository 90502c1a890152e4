/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The dma-bufs that are made of a queue pair.
 */
#ifndef _NVMEP_EXPORT_H
#define _NVMEP_EXPORT_H

#include <linux/atomic.h>
#include <linux/list.h>
#include <linux/mutex.h>
#include <linux/types.h>

#include <linux/nvme_peer.h>

struct dma_buf;
struct nvmep_qp;

/**
 * struct nvmep_doorbell - the whole pages of BAR0 that hold a queue's doorbells
 * @start: const: offset of the first page in BAR0
 * @length: const: bytes
 * @offset: const: of the tail doorbell in the first page
 * @exportable: const: nothing else lives there that must not be given away
 */
struct nvmep_doorbell {
	resource_size_t start;
	u32 length;
	u32 offset;
	bool exportable;
};

/**
 * struct nvmep_exports - the dma-bufs of one queue pair
 * @lock: guards @list and @closed.  The release of a dma-buf takes it, so a
 *	dma-buf on the list is still there while it is held
 * @list: all that are open
 * @closed: no new ones, and no new users of the old ones but the status page's
 * @withdrawn: peers->lock: nvmep_exports_withdraw() was called
 * @count: dma-bufs open
 * @importers: devices attached to them
 * @mmaps: VMAs of them
 */
struct nvmep_exports {
	struct mutex lock;	/* @list, @closed */
	struct list_head list;
	bool closed;
	bool withdrawn;
	atomic_t count;
	atomic_t importers;
	atomic_t mmaps;
};

void nvmep_exports_init(struct nvmep_exports *exports);
void nvmep_exports_close(struct nvmep_exports *exports);
bool nvmep_exports_revoke(struct nvmep_exports *exports);
void nvmep_exports_withdraw(struct nvmep_exports *exports);

void nvmep_doorbell_init(struct nvmep_qp *qp);
void nvmep_export_geometry(const struct nvmep_qp *qp, enum nvme_peer_export what,
			   __u64 *offset, __u64 *length);
struct dma_buf *nvmep_export(struct nvmep_qp *qp, enum nvme_peer_export what,
			     bool allow_static);

#endif /* _NVMEP_EXPORT_H */
