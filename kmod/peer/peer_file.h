/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * An open controller node and its buffer handles.
 */
#ifndef _NVMEP_PEER_FILE_H
#define _NVMEP_PEER_FILE_H

#include <linux/dma-direction.h>
#include <linux/kref.h>
#include <linux/types.h>
#include <linux/xarray.h>

struct nvmep_buf;
struct nvmep_ctrl;
struct nvmep_dma_range;

/**
 * struct nvmep_peer_file - an open controller node
 * @ref: one for the open file, one for each queue pair created through it:
 *	commands in flight may access its buffers
 * @ctrl: const, reference
 * @bufs: modified under peers->lock, looked up under RCU: buffers by handle
 */
struct nvmep_peer_file {
	struct kref ref;
	struct nvmep_ctrl *ctrl;
	struct xarray bufs;
};

struct nvmep_peer_file *nvmep_peer_file_open(struct nvmep_ctrl *ctrl);
struct nvmep_peer_file *nvmep_peer_file_get(struct nvmep_peer_file *file);
void nvmep_peer_file_put(struct nvmep_peer_file *file);
bool nvmep_peer_file_stale(struct nvmep_peer_file *file);

int nvmep_buf_reserve(struct nvmep_peer_file *file, struct nvmep_buf *buf);
void nvmep_buf_publish(struct nvmep_buf *buf);
void nvmep_buf_unreserve(struct nvmep_buf *buf);
struct nvmep_buf *nvmep_buf_lookup(struct nvmep_peer_file *file, u32 handle);
int nvmep_buf_release(struct nvmep_peer_file *file, u32 handle);
struct nvmep_buf *nvmep_buf_claim(struct nvmep_peer_file *file, u32 handle,
				  enum dma_data_direction dir);
void nvmep_buf_unclaim(struct nvmep_buf *buf);
int nvmep_buf_expose(struct nvmep_buf *buf);
int nvmep_handle_range(struct nvmep_peer_file *file, u32 handle, u64 offset,
		       u32 length, enum dma_data_direction dir,
		       struct nvmep_dma_range *range);
void nvmep_bufs_detach_all(struct nvmep_ctrl *ctrl);

#endif /* _NVMEP_PEER_FILE_H */
