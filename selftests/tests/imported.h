/* SPDX-License-Identifier: GPL-2.0-only */
/* Memory that is imported to a controller, and buffer I/O of the CPU. */
#ifndef IMPORTED_H
#define IMPORTED_H

#include <liburing.h>
#include <stdbool.h>
#include <stdint.h>

#include "nptest.h"

/* Its contents where nothing was transferred. */
#define NP_POISON		0x5a
/* The place of the transfers on the disk. */
#define NP_IMPORTED_AREA		NP_AREA(12)

/**
 * struct np_imported - an imported buffer whose addresses are not exposed
 * @fd: dma-buf of nvmep_test
 * @handle: buffer handle
 * @length: bytes
 * @bytes: the mapping
 */
struct np_imported {
	int fd;
	uint32_t handle;
	uint32_t length;
	uint8_t *bytes;
};

/* nvmep_test is the exporter; @flags as for np_test_export(). Return 0 or -errno. */
int np_imported_open(struct np_imported *buf, int ctrl_fd, uint32_t pages, uint32_t flags);
int np_imported_open_for(struct np_imported *buf, int ctrl_fd, uint32_t pages, uint32_t flags,
			 uint32_t access);
/* The handle was released or its controller file closed. */
void np_imported_close(struct np_imported *buf);
bool np_all_poison(const uint8_t *bytes, size_t length);
/*
 * The number of current device mappings of a dma-buf, or -errno; @mappings counts all so
 * far.
 */
int np_dmabuf_maps(int dmabuf, uint32_t *mappings);
/*
 * Invalidate its importers: the number of mappings left after their callbacks, or -errno.
 */
int np_dmabuf_move(int dmabuf);
/* Wait until no device has it mapped: 0, the number of mappings left, or -errno. */
int np_dmabuf_wait_unmapped(int dmabuf);

/* On namespace 1, from NP_IMPORTED_AREA on. */
struct nvme_peer_uring_io np_transfer(uint32_t opcode, const struct np_imported *buf,
				      uint64_t offset, uint32_t length);
/* Never fails: tests do not queue more than the ring holds. */
struct io_uring_sqe *np_get_sqe(struct io_uring *ring);
struct io_uring_sqe *np_transfer_queue(struct io_uring *ring, int fd,
				       const struct nvme_peer_uring_io *io, uint64_t data);
struct io_uring_sqe *np_ranges_queue(struct io_uring *ring, int fd,
				     const struct nvme_peer_uring_io_vec *vec);
/* Submit and wait for one completion: its result, or -errno. */
int np_transfer_wait(struct io_uring *ring, uint64_t *data);
int np_transfer_run(struct io_uring *ring, int fd, const struct nvme_peer_uring_io *io);

#endif /* IMPORTED_H */
