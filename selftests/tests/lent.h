/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Memory that is lent to a controller, and transfers of the CPU with the data in it.
 */
#ifndef LENT_H
#define LENT_H

#include <liburing.h>
#include <stdbool.h>
#include <stdint.h>

#include "nptest.h"

/* What it holds where nothing came. */
#define NP_POISON		0x5a
/* Where on the disk they move. */
#define NP_LENT_AREA		NP_AREA(12)

/**
 * struct np_lent - memory that a controller may use, not exposed to peers
 * @fd: dma-buf of nvmep_test
 * @handle: as imported
 * @length: bytes
 * @bytes: the mapping
 */
struct np_lent {
	int fd;
	uint32_t handle;
	uint32_t length;
	uint8_t *bytes;
};

/* With nvmep_test as the exporter; @flags as np_test_export().  Return 0 or -errno. */
int np_lend(struct np_lent *lent, int ctrl_fd, uint32_t pages, uint32_t flags);
int np_lend_for(struct np_lent *lent, int ctrl_fd, uint32_t pages, uint32_t flags,
		uint32_t access);
/* After its handle was released, or its node closed. */
void np_take_back(struct np_lent *lent);
bool np_all_poison(const uint8_t *bytes, size_t length);
/* Devices that have a dma-buf mapped, and how often one was, or -errno. */
int np_maps_of(int dmabuf, uint32_t *mappings);
/* Its exporter wants it back: how many still had it when their callbacks returned. */
int np_move(int dmabuf);
/* Devices that have it mapped at last, 0 in time, or -errno. */
int np_wait_unmapped(int dmabuf);

/* Of namespace 1, from NP_LENT_AREA on. */
struct nvme_peer_uring_io np_transfer(uint32_t opcode, const struct np_lent *lent,
				      uint64_t offset, uint32_t length);
/* Tests never queue more than the ring holds. */
struct io_uring_sqe *np_next_entry(struct io_uring *ring);
struct io_uring_sqe *np_transfer_queue(struct io_uring *ring, int fd,
				       const struct nvme_peer_uring_io *io, uint64_t data);
struct io_uring_sqe *np_ranges_queue(struct io_uring *ring, int fd,
				     const struct nvme_peer_uring_io_vec *vec);
/* Submits, and waits for one: its result, or -errno. */
int np_transfer_collect(struct io_uring *ring, uint64_t *data);
int np_transfer_once(struct io_uring *ring, int fd, const struct nvme_peer_uring_io *io);

#endif /* LENT_H */
