/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Buffers: the memory of others, imported as a dma-buf and mapped for one
 * controller.
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
#include <linux/types.h>
#include <linux/workqueue.h>

#include <linux/nvme_peer.h>

#include "place.h"
#include "segments.h"

struct dma_buf;
struct dma_buf_attachment;
struct nvmep_ctrl;
struct nvmep_peer_file;
struct sg_table;

/**
 * struct nvmep_buf - an imported dma-buf
 * @ref: one for the handle, one for every call that uses it
 * @rcu: frees it, since the handle is looked up without a lock
 * @ctrl: const, reference
 * @dmabuf: const, reference
 * @offset: const: of its first byte in @dmabuf
 * @dir: const: what the controller does with it
 * @reclaim: const: the exporter wants the memory back.  Takes the controller
 *	off it, then calls nvmep_buf_unmap().  Called by @invalidate_work, at
 *	most once and without any lock
 * @segments: const once imported; meaningless once @invalid
 * @place: const once imported
 * @lock: guards @attach and @counted; taken before the reservation lock
 * @attach: NULL once detached
 * @counted: in peers->mapped
 * @sgt: reservation lock: NULL while not mapped
 * @pinned: reservation lock
 * @invalid: set under the reservation lock, never cleared: the exporter wants
 *	the memory back.  Whoever sees it clear under peers->lock and puts a
 *	queue pair on the list there is found by @invalidate_work
 * @users: one for each command of the CPU that moves data of it; none begins once it
 *	is killed, under the reservation lock, and unmapping waits for the last.
 *	Atomic until the first command, so that what has none goes at once
 * @used: there was a command: @users counts for each processor
 * @idle: @users is killed and 0
 * @invalidate_work: takes the controller away from the memory
 * @file: const once reserved: the open controller node that it belongs to; gone
 *	once @kept is used
 * @handle: const once reserved
 * @exposed: peers->lock: its addresses were given to user space, so any queue
 *	pair of the controller may be told to access it
 * @rings: peers->lock: rings of queue pairs that lie in it
 * @node: peers->lock: in peers->bufs
 * @kept: peers->lock: in peers->kept
 * @keep_until: peers->lock: queue pairs with a lower birth may access it; set
 *	when it is put on @kept
 */
struct nvmep_buf {
	struct kref ref;
	struct rcu_head rcu;
	struct nvmep_ctrl *ctrl;
	struct dma_buf *dmabuf;
	u64 offset;
	enum dma_data_direction dir;
	void (*reclaim)(struct nvmep_buf *buf);
	struct nvmep_segments segments;
	struct nvmep_place place;

	struct mutex lock;	/* @attach, @counted */
	struct dma_buf_attachment *attach;
	bool counted;
	struct sg_table *sgt;
	bool pinned;
	bool invalid;
	struct percpu_ref users;
	bool used;
	struct completion idle;
	struct work_struct invalidate_work;

	/* What peer_file.c keeps of it. */
	struct nvmep_peer_file *file;
	u32 handle;
	bool exposed;
	unsigned int rings;
	struct list_head node;
	struct list_head kept;
	u64 keep_until;
};

struct nvmep_buf *nvmep_buf_import(struct nvmep_ctrl *ctrl,
				   const struct nvme_peer_buf_import *cmd,
				   void (*reclaim)(struct nvmep_buf *buf));
int nvmep_buf_locate(struct nvmep_ctrl *ctrl, int fd, struct nvmep_place *place);
struct nvmep_buf *nvmep_buf_get(struct nvmep_buf *buf);
void nvmep_buf_put(struct nvmep_buf *buf);
void nvmep_buf_unmap(struct nvmep_buf *buf);
void nvmep_buf_detach(struct nvmep_buf *buf);
bool nvmep_buf_invalid(const struct nvmep_buf *buf);
bool nvmep_buf_admits(const struct nvmep_buf *buf, enum dma_data_direction dir);
int nvmep_buf_span(struct nvmep_buf *buf, u64 offset, u32 length,
		   enum dma_data_direction dir, struct nvmep_span *span);

#endif /* _NVMEP_IMPORT_H */
