/* SPDX-License-Identifier: MIT OR GPL-2.0 */
/*
 * NVMe commands of the CPU through io_uring; the hot path is inline.
 *
 * nvmepeer_uring_init() creates a ring with the 128-byte entries that NVMe commands
 * require.  Get an entry with io_uring_get_sqe(), fill it with a function of this header,
 * submit and reap with liburing.  One thread at a time may use a ring.
 *
 * Include this after or instead of <nvmepeer.h>; link with -luring.
 */
#ifndef NVMEPEER_URING_H
#define NVMEPEER_URING_H

#include <liburing.h>
#include <string.h>

#include <nvmepeer.h>
#include <nvmepeer_device/opcodes.h>

#ifdef __cplusplus
extern "C" {
#endif

/**
 * nvmepeer_uring_init() - create a ring for NVMe commands
 * @ring: receives the ring, to be closed with io_uring_queue_exit()
 * @depth: most commands in flight
 *
 * Returns 0 or a negative errno.
 */
int nvmepeer_uring_init(struct io_uring *ring, unsigned int depth);

/**
 * nvmepeer_uring_rw() - transfer a large range by several commands in flight
 * @ring: from nvmepeer_uring_init(), with nothing in flight
 * @ns: namespace
 * @opcode: NVMEPEER_OP_READ or NVMEPEER_OP_WRITE
 * @lba: first block
 * @blocks: total blocks, a multiple of @step
 * @step: blocks of one command
 * @data: @blocks * block_size bytes
 * @depth: commands in flight, at most the ring's depth
 *
 * Returns 0, or the first positive NVMe status or negative errno.  When it returns no
 * command is in flight.  A submission that the kernel refuses for lack of memory or of
 * room for completions is repeated; after another failure of a submission the entries that
 * were not submitted are removed from the ring.
 */
int nvmepeer_uring_rw(struct io_uring *ring, struct nvmepeer_ns *ns,
		      enum nvmepeer_opcode opcode, uint64_t lba,
		      uint64_t blocks, uint32_t step, void *data,
		      unsigned int depth);

/**
 * nvmepeer_prep_command() - prepare an entry for any NVMe command
 * @sqe: entry of a ring made by nvmepeer_uring_init()
 * @fd: namespace node for NVME_URING_CMD_IO, controller node for _ADMIN
 * @operation: NVME_URING_CMD_IO or NVME_URING_CMD_ADMIN
 *
 * Returns the zeroed command, to be filled in by the caller.
 */
static inline struct nvme_uring_cmd *
nvmepeer_prep_command(struct io_uring_sqe *sqe, int fd, uint32_t operation)
{
	memset(sqe, 0, 2 * sizeof(*sqe));
	sqe->opcode = IORING_OP_URING_CMD;
	sqe->fd = fd;
	sqe->cmd_op = operation;
	return (struct nvme_uring_cmd *)sqe->cmd;
}

/**
 * nvmepeer_prep_rw() - fill an entry with a read or a write
 * @sqe: entry of a ring made by nvmepeer_uring_init()
 * @ns: namespace
 * @opcode: NVMEPEER_OP_READ or NVMEPEER_OP_WRITE
 * @lba: first block
 * @blocks: 1 to 65536, and at most max_transfer bytes
 * @data: @blocks * block_size bytes, 4-byte aligned, valid until the completion
 */
static inline void nvmepeer_prep_rw(struct io_uring_sqe *sqe,
				    const struct nvmepeer_ns *ns,
				    enum nvmepeer_opcode opcode, uint64_t lba,
				    uint32_t blocks, void *data)
{
	const struct nvmepeer_ns_info *info = nvmepeer_ns_info(ns);
	struct nvme_uring_cmd *command;

	command = nvmepeer_prep_command(sqe, nvmepeer_ns_fd(ns),
					NVME_URING_CMD_IO);
	command->opcode = (uint8_t)opcode;
	command->nsid = info->nsid;
	command->addr = (uint64_t)(uintptr_t)data;
	command->data_len = blocks * info->block_size;
	command->cdw10 = (uint32_t)lba;
	command->cdw11 = (uint32_t)(lba >> 32);
	command->cdw12 = blocks - 1;
}

/**
 * nvmepeer_prep_buf_rw() - fill an entry with a read or write of a buffer
 * @sqe: entry of a ring made by nvmepeer_uring_init()
 * @ctrl: controller that the buffer was imported with
 * @nsid: namespace
 * @opcode: NVMEPEER_OP_READ or NVMEPEER_OP_WRITE
 * @lba: first block
 * @blocks: at least 1, and at most max_transfer bytes
 * @handle: from nvmepeer_buf_import()
 * @offset: offset of the data in the buffer, a multiple of 4
 *
 * @cqe->res has the errors of struct nvme_peer_uring_io.
 */
static inline void nvmepeer_prep_buf_rw(struct io_uring_sqe *sqe,
					const struct nvmepeer *ctrl, uint32_t nsid,
					enum nvmepeer_opcode opcode,
					uint64_t lba, uint32_t blocks,
					uint32_t handle, uint64_t offset)
{
	struct nvme_peer_uring_io *io;

	nvmepeer_prep_command(sqe, nvmepeer_fd(ctrl), NVME_PEER_URING_CMD_IO);
	io = (struct nvme_peer_uring_io *)sqe->cmd;
	io->opcode = (uint32_t)opcode;
	io->nsid = nsid;
	io->handle = handle;
	io->offset = offset;
	io->lba = lba;
	io->blocks = blocks;
}

/**
 * nvmepeer_prep_buf_vec() - fill an entry with a list of reads or writes of buffers
 * @sqe: entry of a ring made by nvmepeer_uring_init()
 * @ctrl: controller that the buffers were imported with
 * @nsid: namespace
 * @opcode: NVMEPEER_OP_READ or NVMEPEER_OP_WRITE
 * @ranges: ranges of blocks with buffer handles and offsets, valid until the submission
 * @count: number of ranges, 1 to NVME_PEER_IO_RANGES
 *
 * Equivalent to one nvmepeer_prep_buf_rw() per range, with one completion after the last
 * of them: 0, or the result of one that failed.  If the kernel refuses one range, no range
 * is executed.  @cqe->res has the errors of struct nvme_peer_uring_io_vec.
 */
static inline void nvmepeer_prep_buf_vec(struct io_uring_sqe *sqe,
					 const struct nvmepeer *ctrl, uint32_t nsid,
					 enum nvmepeer_opcode opcode,
					 const struct nvme_peer_io_range *ranges,
					 uint32_t count)
{
	struct nvme_peer_uring_io_vec *vec;

	nvmepeer_prep_command(sqe, nvmepeer_fd(ctrl), NVME_PEER_URING_CMD_IO_VEC);
	vec = (struct nvme_peer_uring_io_vec *)sqe->cmd;
	vec->opcode = (uint32_t)opcode;
	vec->nsid = nsid;
	vec->count = count;
	vec->ranges = (uint64_t)(uintptr_t)ranges;
}

/**
 * nvmepeer_cqe_result() - dword 0 of the NVMe completion
 * @cqe: completion; @cqe->res is 0, a positive NVMe status or a negative errno
 */
static inline uint64_t nvmepeer_cqe_result(const struct io_uring_cqe *cqe)
{
	return cqe->big_cqe[0];
}

#ifdef __cplusplus
}
#endif

#endif /* NVMEPEER_URING_H */
