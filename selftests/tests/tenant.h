/* SPDX-License-Identifier: GPL-2.0-only */
/* Calls of mediated queue pairs, for tests; they return 0 or a negative errno. */
#ifndef TENANT_H
#define TENANT_H

#include "nptest.h"

#define NP_MIXED_MODES		"/sys/module/nvme_peer/parameters/allow_mixed_modes"
#define NP_MEMORY_PAGES		64U
#define NP_MEMORY_BYTES		(NP_MEMORY_PAGES * NP_PAGE)

/* Status codes of commands that are refused, with Do Not Retry. */
#define DNR		0x4000
#define INVALID_OPCODE	(DNR | 0x001)
#define INVALID_FIELD	(DNR | 0x002)
#define DATA_TRANSFER	(DNR | 0x004)
#define INVALID_NS	(DNR | 0x00b)
#define PRP_OFFSET	(DNR | 0x013)
#define LBA_RANGE	(DNR | 0x080)
#define READ_ONLY	(DNR | 0x182)
#define ACCESS_DENIED	(DNR | 0x286)
#define BUFFER_GONE	(DNR | NVME_PEER_STATUS_BUFFER_GONE)

/**
 * struct np_memory - a host buffer of NVME_PEER_BUF_ALLOC
 * @fd: dma-buf
 * @bytes: mapping of NP_MEMORY_BYTES
 * @slot: of the queue pair that it was added to
 */
struct np_memory {
	int fd;
	uint8_t *bytes;
	uint32_t slot;
};

int np_window_add(const struct np_qp *qp, int fd, uint64_t first, uint64_t blocks, uint32_t *id);
int np_window_remove(const struct np_qp *qp, uint32_t id);
int np_window_info(const struct np_qp *qp, uint32_t id, struct nvme_peer_window_info *info);
int np_buf_add(const struct np_qp *qp, int dmabuf, uint32_t access, uint32_t *slot);
int np_buf_remove(const struct np_qp *qp, uint32_t slot);
int np_qp_stats(const struct np_qp *qp, struct nvme_peer_qp_stats *stats);
int np_qp_seal(const struct np_qp *qp);
int np_memory_alloc(struct np_memory *memory, int ctrl_fd);
void np_memory_free(struct np_memory *memory);
struct np_command np_window_command(uint8_t opcode, uint32_t window, uint64_t lba, uint32_t blocks,
				    uint32_t slot, uint64_t offset);

/*
 * The run of a test in mediated mode: what its helpers need. The name of a dma-buf is an address that no
 * controller has; commands with such an address get the handle address of the buffer, which is added to
 * the queue pair by the first of them.
 */
uint64_t np_tenant_name(int dmabuf);
/* Bytes of its longest transfer. */
int np_tenant_most(int qp_fd, uint32_t *bytes);
int np_tenant_open(struct np_tenant *tenant, int qp_fd, int ctrl_fd);
struct np_command np_tenant_command(struct np_tenant *tenant, int qp_fd, const struct np_command *command);

/* Of ext4, which has no header for it. */
struct move_extent {
	uint32_t reserved;
	uint32_t donor_fd;
	uint64_t orig_start;
	uint64_t donor_start;
	uint64_t len;
	uint64_t moved_len;
};

#define EXT4_IOC_MOVE_EXT	_IOWR('f', 15, struct move_extent)

/* Written bytes, on the disk. */
int np_make_file(const char *path, uint32_t bytes);
/* Extents of a page each, on a file system with such blocks. */
int np_make_scattered(const char *path, uint32_t pieces);
uint32_t np_count_extents(int file);
/* The works of windows that have gone may still hold the file system. */
int np_unmount(const char *path);

uint64_t np_mix(uint64_t word);
/* A block that describes itself: @owner, @number, @version, a checksum, and what follows from it. */
void np_describe(uint64_t *words, uint32_t bytes, uint64_t owner, uint32_t number, uint32_t version);

#endif /* TENANT_H */
