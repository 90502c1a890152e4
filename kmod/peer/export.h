/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The dma-bufs of a queue pair or of a host buffer: the part that all kinds
 * share, and doorbells.
 */
#ifndef _NVMEP_EXPORT_H
#define _NVMEP_EXPORT_H

#include <linux/atomic.h>
#include <linux/dma-direction.h>
#include <linux/jiffies.h>
#include <linux/list.h>
#include <linux/minmax.h>
#include <linux/mutex.h>
#include <linux/types.h>

struct delayed_work;
struct dma_buf;
struct dma_buf_attachment;
struct kref;
struct nvmep_ctrl;
struct nvmep_export;
struct sg_table;
struct vm_area_struct;

/**
 * struct nvmep_exports - the dma-bufs of one queue pair or host buffer
 * @ctrl: const; held by the owner
 * @owner: const: the queue pair or host buffer, which every dma-buf holds
 * @release: const: frees @owner
 * @lock: guards @list, writes of @withdrawn and @ended, and the step and list of
 *	mmap()s of each dma-buf.  Innermost; held for list operations only,
 *	because the reset work takes it.  The release of a dma-buf takes it, so
 *	a dma-buf on the list stays allocated while it is held
 * @list: open dma-bufs
 * @withdrawn: written under @lock: the doorbells are revoked and will return:
 *	new dma-bufs, and new users of existing ones except for the status page,
 *	are to try again
 * @ended: written under @lock, set once: refuse them for good.  A full barrier
 *	follows each write that sets one of both flags, and each insertion of a
 *	PTE: either the zap that follows finds the PTE, or the code that
 *	inserted it sees the flag and zaps it
 * @works: revocation works that are queued or run.  Incremented under @lock,
 *	decremented under peers->lock: the queue pair is not re-armed before it
 *	is 0
 * @count: number of open dma-bufs
 * @importers: number of attached devices
 * @mmaps: number of VMAs
 */
struct nvmep_exports {
	struct nvmep_ctrl *ctrl;
	struct kref *owner;
	void (*release)(struct kref *owner);
	struct mutex lock;	/* @list, writes of @withdrawn and @ended */
	struct list_head list;
	bool withdrawn;
	bool ended;
	atomic_t works;
	atomic_t count;
	atomic_t importers;
	atomic_t mmaps;
};

/**
 * struct nvmep_export_ops - operations of one kind of dma-buf
 * @stays_open: allow new users after the end of the queue pair
 * @host_buffer: the memory belongs to no queue pair
 * @read_only: the dma-buf is open for reading only, and devices behind an IOMMU
 *	cannot write it
 * @attach: accept a device or return an error; may set attach->priv.  NULL
 *	accepts every device
 * @detach: undo @attach; may be NULL
 * @pin: accept a pin or return an error; called under the reservation lock.
 *	NULL accepts every pin
 * @unpin: undo @pin; called under the reservation lock; may be NULL
 * @map: map for a device; called under the reservation lock
 * @unmap: undo @map; called under the reservation lock
 * @mmap: map for a process.  The VMA is shared and inside the dma-buf
 * @revoke: queue works that zap PTEs and invalidate importers, by
 *	nvmep_export_queue_work().  Does not sleep.  The caller holds the
 *	dma-buf and exports->lock.  NULL for memory that needs no revocation
 * @wait: after @revoke: wait until @deadline, in jiffies, for importers.  The
 *	caller holds the dma-buf and the queue pair's lock
 * @release: the dma-buf is freed, or was not created; may be NULL
 */
struct nvmep_export_ops {
	bool stays_open;
	bool host_buffer;
	bool read_only;
	int (*attach)(struct nvmep_export *export,
		      struct dma_buf_attachment *attach);
	void (*detach)(struct dma_buf_attachment *attach);
	int (*pin)(struct nvmep_export *export,
		   struct dma_buf_attachment *attach);
	void (*unpin)(struct dma_buf_attachment *attach);
	struct sg_table *(*map)(struct nvmep_export *export,
				struct dma_buf_attachment *attach,
				enum dma_data_direction dir);
	void (*unmap)(struct nvmep_export *export,
		      struct dma_buf_attachment *attach, struct sg_table *sgt,
		      enum dma_data_direction dir);
	int (*mmap)(struct nvmep_export *export, struct vm_area_struct *vma);
	void (*revoke)(struct nvmep_export *export);
	void (*wait)(struct nvmep_export *export, unsigned long deadline);
	void (*release)(struct nvmep_export *export);
};

/**
 * enum nvmep_revoke_step - progress of the revocation of a dma-buf
 * @NVMEP_EXPORT_OPEN: not revoked
 * @NVMEP_EXPORT_REVOKED: ops->revoke was called; a re-arm makes it OPEN again
 * @NVMEP_EXPORT_WAITED: ops->wait has started
 */
enum nvmep_revoke_step {
	NVMEP_EXPORT_OPEN,
	NVMEP_EXPORT_REVOKED,
	NVMEP_EXPORT_WAITED,
};

/**
 * struct nvmep_export - a dma-buf; first member of the structure of its kind
 * @exports: const; held through its owner
 * @ops: const
 * @dmabuf: const; it owns this structure.  Its file may be freed before it
 * @dentry: const; of @dmabuf, which is released with it
 * @node: exports->lock: in exports->list
 * @step: exports->lock: progress of the revocation
 */
struct nvmep_export {
	struct nvmep_exports *exports;
	const struct nvmep_export_ops *ops;
	struct dma_buf *dmabuf;
	struct dentry *dentry;
	struct list_head node;
	enum nvmep_revoke_step step;
};

void nvmep_exports_init(struct nvmep_exports *exports, struct nvmep_ctrl *ctrl,
			struct kref *owner,
			void (*release)(struct kref *owner));
void nvmep_exports_close(struct nvmep_exports *exports);
void nvmep_exports_withdraw(struct nvmep_exports *exports);
int nvmep_exports_admit(const struct nvmep_exports *exports);
void nvmep_exports_revoke(struct nvmep_exports *exports);
void nvmep_exports_wait(struct nvmep_exports *exports, unsigned long deadline);
void nvmep_exports_restore_doorbells(struct nvmep_exports *exports);

struct dma_buf *nvmep_export_publish(struct nvmep_export *export,
				     struct nvmep_exports *exports,
				     const struct nvmep_export_ops *ops,
				     size_t bytes);
bool nvmep_is_qp_export(const struct dma_buf *dmabuf);
bool nvmep_is_host_buffer(const struct dma_buf *dmabuf);
void nvmep_export_count_mmap(struct nvmep_export *export, int change);
void nvmep_export_queue_work(struct nvmep_export *export,
			     struct delayed_work *work);
void nvmep_export_retry_work(struct delayed_work *work);
void nvmep_export_work_done(struct nvmep_export *export);

/* Jiffies until @deadline, 0 if it has passed. */
static inline long nvmep_time_left(unsigned long deadline)
{
	return max_t(long, deadline - jiffies, 0);
}

/**
 * struct nvmep_doorbell - the whole pages of BAR0 that hold a queue's doorbells
 * @qid: const: queue ID
 * @start: const: offset of the first page in BAR0
 * @length: const: bytes
 * @offset: const: offset of the tail doorbell in the first page
 * @exportable: const: the pages hold only doorbells
 */
struct nvmep_doorbell {
	u16 qid;
	resource_size_t start;
	u32 length;
	u32 offset;
	bool exportable;
};

int nvmep_doorbell_init(struct nvmep_doorbell *doorbell,
			const struct nvmep_ctrl *ctrl, u16 qid);
struct dma_buf *nvmep_export_doorbell(struct nvmep_exports *exports,
				      const struct nvmep_doorbell *doorbell,
				      bool allow_static);

#endif /* _NVMEP_EXPORT_H */
