/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Buffers: dma-bufs that are imported and mapped for one controller.
 */
#ifndef _NVMEP_IMPORT_H
#define _NVMEP_IMPORT_H

#include <linux/completion.h>
#include <linux/dma-direction.h>
#include <linux/kref.h>
#include <linux/list.h>
#include <linux/mutex.h>
#include <linux/percpu-refcount.h>
#include <linux/rcupdate.h>
#include <linux/sched.h>
#include <linux/sched/signal.h>
#include <linux/types.h>
#include <linux/workqueue.h>

#include <linux/nvme_peer.h>

#include "core/data.h"
#include "route.h"

struct dma_buf;
struct dma_buf_attachment;
struct nvmep_ctrl;
struct nvmep_peer_file;
struct nvmep_tenant;
struct sg_table;
struct user_struct;

/**
 * struct nvmep_segments - the DMA addresses of a mapped range, by offset
 * @list: segments; each is a multiple of the controller page
 * @count: number of segments
 * @length: bytes of the range
 *
 * Const after nvmep_segments_read().
 */
struct nvmep_segments {
	struct nvmep_segment *list;
	u32 count;
	u64 length;
};

/**
 * struct nvmep_buf - an imported dma-buf
 * @ref: one for the handle, one for each call that uses it
 * @rcu: frees it after a grace period: handles are looked up without a lock
 * @ctrl: const, reference
 * @dmabuf: const, reference
 * @offset: const: start of the imported range in @dmabuf
 * @dir: const: DMA direction of the controller
 * @on_invalidate: const: the exporter has invalidated the buffer, or the mediator
 *	ends it.  Ends the
 *	controller's access, then calls nvmep_buf_unmap().  @invalidate_work
 *	calls it, without a lock
 * @segments: const after the import; stale once @invalid is set
 * @placement: const after the import
 * @user: @lock: charged for the locked memory, reference; NULL if nothing is
 *	charged
 * @lock: guards @user, @attach and @counted; taken before the reservation lock.
 *	Held to set and clear @word, to unmap, and to look up what the DMA
 *	addresses translate to
 * @attach: @lock: NULL once detached.  Set by the import, before the buffer is
 *	shared
 * @counted: @lock: counted in peers->mapped.  Set as @attach
 * @sgt: reservation lock: NULL while not mapped
 * @pinned: reservation lock
 * @invalid: set under the reservation lock, never cleared: the exporter has
 *	invalidated the buffer.  Code that sees it clear under peers->lock and
 *	adds a queue pair to the list there does not race: @invalidate_work
 *	finds that queue pair
 * @users: one reference for each command of the CPU that moves its data, and one
 *	for those in @in_flight.
 *	Killed under the reservation lock; unmapping waits for the last one.  In
 *	atomic mode until the first command of the CPU, so that unmapping others
 *	waits for no grace period
 * @users_percpu: @users was switched to percpu mode
 * @users_idle: @users is killed and 0
 * @invalidate_work: calls @on_invalidate
 * @word: of the first byte in memory of a device; NULL for host memory and in
 *	other modes than mediated.  Set before the buffer is shared or under
 *	@lock, cleared under @lock when there are no @users
 * @in_flight: mediator->lock: commands of @tenant that move its data
 * @batch: mediator->lock: mediator->batch at the last read of @word
 * @unread: mediator->lock: it was not read: the device is too slow, or it is gone
 * @slow: set once, for the message: the mediator ends it because it is slow
 * @file: const after nvmep_buf_reserve(): the open controller node that owns
 *	the handle; dangling once the buffer is detached
 * @tenant: set once, under mediator->lock: the mediated queue pair that owns the
 *	buffer, which is in the slot @handle then; NULL if @file owns it
 * @handle: const after nvmep_buf_reserve(), or before @tenant is set
 * @removed: tenant->mutex: it is taken out of its slot
 * @exposed: peers->lock: user space has its DMA addresses: any queue pair of
 *	its node may access it
 * @rings: peers->lock: number of rings of queue pairs in it
 * @node: peers->lock: in peers->bufs, or on a list of nvmep_bufs_detach_all()
 */
struct nvmep_buf {
	struct kref ref;
	struct rcu_head rcu;
	struct nvmep_ctrl *ctrl;
	struct dma_buf *dmabuf;
	u64 offset;
	enum dma_data_direction dir;
	void (*on_invalidate)(struct nvmep_buf *buf);
	struct nvmep_segments segments;
	struct nvmep_placement placement;
	struct user_struct *user;

	struct mutex lock;	/* @user, @attach, @counted, @word */
	struct dma_buf_attachment *attach;
	bool counted;
	struct sg_table *sgt;
	bool pinned;
	bool invalid;
	struct percpu_ref users;
	bool users_percpu;
	struct completion users_idle;
	struct work_struct invalidate_work;
	void __iomem *word;
	u32 in_flight;
	u64 batch;
	bool unread;
	bool slow;

	/* Owned by peer_file.c. */
	struct nvmep_peer_file *file;
	struct nvmep_tenant *tenant;
	u32 handle;
	bool removed;
	bool exposed;
	unsigned int rings;
	struct list_head node;
};

/**
 * nvmep_walk_resched() - reschedule during a walk of unbounded length
 *
 * Only a fatal signal ends the walk: any other would restart the import from
 * the beginning.
 *
 * Return: 0, or -EINTR after a fatal signal.
 */
static inline int nvmep_walk_resched(void)
{
	cond_resched();
	return fatal_signal_pending(current) ? -EINTR : 0;
}

int nvmep_segments_read(struct nvmep_segments *segments,
			const struct nvmep_ctrl *ctrl, struct sg_table *sgt,
			u64 offset, u64 length);
void nvmep_segments_free(struct nvmep_segments *segments);
const struct nvmep_segment *
nvmep_segments_find(const struct nvmep_segments *segments, u64 offset);

struct nvmep_buf *nvmep_buf_import(struct nvmep_ctrl *ctrl,
				   struct dma_buf *dmabuf,
				   const struct nvme_peer_buf_import *cmd,
				   void (*on_invalidate)(struct nvmep_buf *buf));
int nvmep_buf_charge(struct nvmep_buf *buf);
int nvmep_buf_map_word(struct nvmep_buf *buf);
int nvmep_buf_locate(struct nvmep_ctrl *ctrl, int fd,
		     struct nvmep_placement *placement);
struct nvmep_buf *nvmep_buf_get(struct nvmep_buf *buf);
void nvmep_buf_put(struct nvmep_buf *buf);
void nvmep_buf_stop_users(struct nvmep_buf *buf);
void nvmep_buf_unmap(struct nvmep_buf *buf);
void nvmep_buf_detach(struct nvmep_buf *buf);
bool nvmep_buf_invalid(const struct nvmep_buf *buf);
bool nvmep_buf_dir_allowed(const struct nvmep_buf *buf,
			   enum dma_data_direction dir);
int nvmep_buf_range(struct nvmep_buf *buf, u64 offset, u32 length,
		    enum dma_data_direction dir, struct nvmep_dma_range *range);

#endif /* _NVMEP_IMPORT_H */
