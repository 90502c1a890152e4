/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The dma-bufs that are made of a queue pair: what all kinds have in common.
 */
#ifndef _NVMEP_EXPORT_H
#define _NVMEP_EXPORT_H

#include <linux/atomic.h>
#include <linux/dma-direction.h>
#include <linux/list.h>
#include <linux/mutex.h>
#include <linux/types.h>

struct dma_buf;
struct dma_buf_attachment;
struct kref;
struct nvmep_ctrl;
struct nvmep_export;
struct sg_table;
struct vm_area_struct;

/**
 * struct nvmep_exports - the dma-bufs of one queue pair
 * @ctrl: const; the owner holds it
 * @owner: const: the queue pair, held by every dma-buf
 * @release: const: of @owner
 * @lock: guards @list and @closed.  The release of a dma-buf takes it, so a
 *	dma-buf on the list is still there while it is held.  Innermost
 * @list: all that are open
 * @closed: no new ones, and no new users of the old ones but the status page's
 * @withdrawn: peers->lock: nvmep_exports_withdraw() was called, and
 *	nvmep_exports_reopen() was not since
 * @told: peers->lock: somebody who revokes many has come by, or is about to
 * @count: dma-bufs open
 * @importers: devices attached to them
 * @mmaps: VMAs of them
 */
struct nvmep_exports {
	struct nvmep_ctrl *ctrl;
	struct kref *owner;
	void (*release)(struct kref *owner);
	struct mutex lock;	/* @list, @closed */
	struct list_head list;
	bool closed;
	bool withdrawn;
	bool told;
	atomic_t count;
	atomic_t importers;
	atomic_t mmaps;
};

/**
 * struct nvmep_export_ops - what is special about a kind of dma-buf
 * @stays_open: new users are admitted after the queue pair has ended, too
 * @read_only: the dma-buf is open for reading only, and devices cannot write it
 *	where an IOMMU is there to keep them from it
 * @attach: admits a device, or says why not; may leave something in
 *	attach->priv.  NULL admits all
 * @detach: takes it away again; NULL if there is nothing
 * @map: maps it for a device; reservation lock held
 * @unmap: undoes that; reservation lock held
 * @mmap: maps it for a process; the VMA is shared and lies inside the dma-buf
 * @withdraw: zaps it and tells importers, and waits for nobody's memory either;
 *	@revoke does the same once more.  The dma-buf is held, no lock is.  NULL
 *	where @revoke is
 * @revoke: takes it away from everybody, or tells them to let go, without waiting
 *	for them.  The dma-buf is held, no lock is.  NULL for memory that harms
 *	nobody
 * @settle: after @revoke: waits until @deadline, in jiffies, for those who were
 *	told.  The dma-buf is held, no lock is
 * @release: the dma-buf is gone, or was not made; NULL if there is nothing
 */
struct nvmep_export_ops {
	bool stays_open;
	bool read_only;
	int (*attach)(struct nvmep_export *export,
		      struct dma_buf_attachment *attach);
	void (*detach)(struct dma_buf_attachment *attach);
	struct sg_table *(*map)(struct nvmep_export *export,
				struct dma_buf_attachment *attach,
				enum dma_data_direction dir);
	void (*unmap)(struct nvmep_export *export,
		      struct dma_buf_attachment *attach, struct sg_table *sgt,
		      enum dma_data_direction dir);
	int (*mmap)(struct nvmep_export *export, struct vm_area_struct *vma);
	void (*withdraw)(struct nvmep_export *export);
	void (*revoke)(struct nvmep_export *export);
	void (*settle)(struct nvmep_export *export, unsigned long deadline);
	void (*release)(struct nvmep_export *export);
};

/**
 * enum nvmep_export_revoked - the steps of revocation
 * @NVMEP_EXPORT_OPEN: nobody revokes it
 * @NVMEP_EXPORT_WITHDRAWN: ops->withdraw was or is being called; it may become
 *	open again
 * @NVMEP_EXPORT_REVOKED: ops->revoke was or is being called
 * @NVMEP_EXPORT_SETTLED: ops->settle, too
 */
enum nvmep_export_revoked {
	NVMEP_EXPORT_OPEN,
	NVMEP_EXPORT_WITHDRAWN,
	NVMEP_EXPORT_REVOKED,
	NVMEP_EXPORT_SETTLED,
};

/**
 * struct nvmep_export - one dma-buf; the first member of its kind's structure
 * @exports: const; held through its owner
 * @ops: const: of its kind
 * @dmabuf: const; it owns this
 * @node: exports->lock: in exports->list
 * @revoked: exports->lock: how far its revocation has begun
 */
struct nvmep_export {
	struct nvmep_exports *exports;
	const struct nvmep_export_ops *ops;
	struct dma_buf *dmabuf;
	struct list_head node;
	enum nvmep_export_revoked revoked;
};

void nvmep_exports_init(struct nvmep_exports *exports, struct nvmep_ctrl *ctrl,
			struct kref *owner, void (*release)(struct kref *owner));
void nvmep_exports_close(struct nvmep_exports *exports);
void nvmep_exports_revoke(struct nvmep_exports *exports);
void nvmep_exports_settle(struct nvmep_exports *exports, unsigned long deadline);
void nvmep_exports_withdraw(struct nvmep_exports *exports);
void nvmep_exports_reopen(struct nvmep_exports *exports);

struct dma_buf *nvmep_export_publish(struct nvmep_export *export,
				     struct nvmep_exports *exports,
				     const struct nvmep_export_ops *ops,
				     size_t bytes);
void nvmep_export_count_mmap(struct nvmep_export *export, int change);

#endif /* _NVMEP_EXPORT_H */
