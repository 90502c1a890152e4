/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The memory of a submission or completion queue: host pages, or a range of an
 * imported buffer.
 */
#ifndef _NVMEP_RING_H
#define _NVMEP_RING_H

#include <linux/types.h>

#include <linux/nvme_peer.h>

struct nvmep_buf;
struct nvmep_ctrl;
struct nvmep_host_pages;

/**
 * struct nvmep_ring - a ring as the controller accesses it
 * @bytes: const: number of entries times entry size
 * @dma: const once the ring is set up: DMA address of the ring, or of @list if
 *	there is one
 * @host: host pages, NULL for a ring in a buffer
 * @mapped: @host is mapped for the controller
 * @buf: written under peers->lock and the queue pair's lock, read under either:
 *	the claimed buffer; NULL for a ring in host memory, and once the queue
 *	pair is stopped
 * @owner: const after nvmep_ring_init_buf(): PCI function that holds @buf
 * @offset: const: offset of the ring in @buf
 * @list: PRP list of a ring with several segments, else NULL
 * @list_bytes: bytes of @list
 *
 * Part of a queue pair, whose lock guards the members without another rule.
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
bool nvmep_rings_overlap(const struct nvmep_ring *a,
			 const struct nvmep_ring *b);

#endif /* _NVMEP_RING_H */
