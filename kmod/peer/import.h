/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Buffers: the memory of others, imported as a dma-buf and mapped for one
 * controller.
 */
#ifndef _NVMEP_IMPORT_H
#define _NVMEP_IMPORT_H

#include <linux/kref.h>
#include <linux/list.h>
#include <linux/mutex.h>
#include <linux/types.h>
#include <linux/workqueue.h>

#include "route.h"

struct dma_buf;
struct dma_buf_attachment;
struct nvmep_ctrl;
struct nvmep_peer_file;
struct sg_table;

/**
 * struct nvmep_segment - a contiguous range of DMA addresses
 * @offset: of its first byte in the buffer
 * @length: bytes
 * @dma: address of its first byte in the controller's domain
 */
struct nvmep_segment {
	u64 offset;
	u64 length;
	dma_addr_t dma;
};

/**
 * struct nvmep_buf - an imported dma-buf
 * @ref: one for the handle, one for every call that uses it
 * @ctrl: const, reference
 * @file: const: the open controller node that it belongs to; a name only, it
 *	may be gone once the handle is
 * @dmabuf: const, reference
 * @handle: const once published
 * @length: const: bytes that are mapped
 * @segments: const once imported; meaningless once @invalid
 * @segment_count: const
 * @route: const: how the controller reaches it
 * @owner_address: const: PCI address of the function that it lies in, or
 *	NVMEP_NO_PCI_ADDRESS
 * @lock: guards @attach; taken before the reservation lock
 * @attach: NULL once detached
 * @sgt: reservation lock: NULL while not mapped
 * @pinned: reservation lock
 * @invalid: set under the reservation lock, never cleared: the exporter wants
 *	the memory back.  Whoever sees it clear under peers->lock and puts a
 *	queue pair on the list there is found by @invalidate_work
 * @exposed: peers->lock: its addresses were given to user space, so any queue
 *	pair of @file may be told to access it
 * @rings: peers->lock: rings of queue pairs that lie in it
 * @node: peers->lock: in peers->bufs
 * @invalidate_work: takes the controller away from the memory
 */
struct nvmep_buf {
	struct kref ref;
	struct nvmep_ctrl *ctrl;
	const struct nvmep_peer_file *file;
	struct dma_buf *dmabuf;
	u32 handle;
	u64 length;
	struct nvmep_segment *segments;
	u32 segment_count;
	struct nvmep_route route;
	u32 owner_address;

	struct mutex lock;	/* @attach */
	struct dma_buf_attachment *attach;
	struct sg_table *sgt;
	bool pinned;
	bool invalid;

	bool exposed;
	unsigned int rings;
	struct list_head node;
	struct work_struct invalidate_work;
};

struct nvmep_buf *nvmep_buf_import(struct nvmep_peer_file *file, int fd);
void nvmep_buf_put(struct nvmep_buf *buf);
void nvmep_buf_detach(struct nvmep_buf *buf);
bool nvmep_buf_invalid(const struct nvmep_buf *buf);
const struct nvmep_segment *nvmep_buf_segment(const struct nvmep_buf *buf,
					      u64 offset);

struct nvmep_buf *nvmep_buf_lookup(struct nvmep_peer_file *file, u32 handle);
int nvmep_buf_publish(struct nvmep_peer_file *file, struct nvmep_buf *buf);
int nvmep_buf_release(struct nvmep_peer_file *file, u32 handle);
struct nvmep_buf *nvmep_buf_claim(struct nvmep_peer_file *file, u32 handle);
void nvmep_buf_unclaim(struct nvmep_buf *buf);
int nvmep_buf_expose(struct nvmep_buf *buf);

#endif /* _NVMEP_IMPORT_H */
