/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The memory of a submission or completion queue: host pages of our own, or a
 * range of an imported buffer.
 */
#ifndef _NVMEP_RING_H
#define _NVMEP_RING_H

#include <linux/types.h>

#include <linux/nvme_peer.h>

struct nvmep_buf;
struct nvmep_ctrl;
struct nvmep_host_pages;

/**
 * struct nvmep_ring - where the controller finds a queue
 * @bytes: const: entries times entry size, as the controller uses it
 * @dma: const while mapped: address in the controller's domain, of the ring or
 *	of @list
 * @host: the pages, NULL for a ring in @buf
 * @mapped: @host is mapped for the controller
 * @buf: peers->lock: the buffer while it is claimed, NULL for a ring in host
 *	memory
 * @owner: const once placed: the function that @buf lies in, if it lies in one
 * @offset: const: of the ring in @buf
 * @list: PRP list of a ring in several segments, NULL for one in one
 * @list_bytes: of it
 *
 * Belongs to a queue pair, whose lock guards what is not const.
 */
struct nvmep_ring {
	size_t bytes;
	dma_addr_t dma;
	struct nvmep_host_pages *host;
	bool mapped;
	struct nvmep_buf *buf;
	struct nvme_peer_pci_address owner;
	u64 offset;
	__le64 *list;
	size_t list_bytes;
};

int nvmep_ring_init_host(struct nvmep_ring *ring, struct nvmep_ctrl *ctrl);
int nvmep_ring_init_buf(struct nvmep_ring *ring, struct nvmep_ctrl *ctrl,
			struct nvmep_buf *buf);
int nvmep_ring_make_list(struct nvmep_ring *ring, struct nvmep_ctrl *ctrl);
void nvmep_ring_clear(const struct nvmep_ring *ring);
void nvmep_ring_unmap(struct nvmep_ring *ring, struct nvmep_ctrl *ctrl);
bool nvmep_rings_overlap(const struct nvmep_ring *a, const struct nvmep_ring *b);

#endif /* _NVMEP_RING_H */
