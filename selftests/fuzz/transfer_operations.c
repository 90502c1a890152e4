// SPDX-License-Identifier: GPL-2.0-only
/*
 * Reads and writes with data in an imported buffer, single and by lists: with any handle,
 * in rings of every form, with concurrent release of the buffer; submitted only for
 * callers with the permission.
 */
#include "judge.h"
#include "operations.h"
#include "pool.h"
#include "random.h"
#include "trace_check.h"

#include <errno.h>
#include <fcntl.h>
#include <liburing.h>
#include <string.h>

#include "nptest.h"

/* In the second half of the disk, which other tests do not use. */
#define FIRST_BLOCK	0x200000U

#define RANGES		NVME_PEER_IO_RANGES

/**
 * struct transfer - equal commands and their expected result
 * @io: the command; of a list, the common part
 * @vec: the command with a list
 * @list: of @vec
 * @name: in reports
 * @operation: NVME_PEER_URING_CMD_*
 * @file: the node
 * @handle: buffer that this thread has imported for the command, for reading and writing;
 *	or 0
 * @right: the command has no error that is checked before permissions
 * @permit: the permission
 */
struct transfer {
	struct nvme_peer_uring_io io;
	struct nvme_peer_uring_io_vec vec;
	struct nvme_peer_io_range list[RANGES];
	const char *name;
	uint32_t operation;
	struct fuzz_resource file;
	uint32_t handle;
	bool right;
	struct np_permit permit;
};

static void import_own(struct fuzz_thread *thread, struct transfer *transfer)
{
	struct nvme_peer_buf_import import;
	struct fuzz_resource buffer;

	if (fuzz_pick(thread, FUZZ_BUFFER, &buffer) &&
	    !np_import(transfer->file.held, buffer.fd, 0, &import))
		transfer->handle = import.handle;
}

static void release_own(struct transfer *transfer)
{
	if (transfer->handle)
		np_release(transfer->file.held, transfer->handle);
	transfer->handle = 0;
}

/* Also a handle of another open file, which is invalid here. */
static uint32_t some_handle(struct fuzz_thread *thread, const struct transfer *transfer)
{
	struct fuzz_resource handle;

	if (transfer->handle)
		return transfer->handle;
	return fuzz_pick(thread, FUZZ_HANDLE, &handle) ? handle.what : fuzz_below(thread, 8);
}

static struct np_permit permit_of(const struct fuzz_thread *thread,
				  const struct transfer *transfer)
{
	uint8_t opcode = (uint8_t)transfer->io.opcode;
	struct np_sending sending = {
		.writable = (fcntl(transfer->file.held, F_GETFL) & O_ACCMODE) != O_RDONLY,
		.opcode = opcode,
		.effects = thread->judge->effects[opcode],
	};

	return np_permit_command(&thread->caller, &sending);
}

static void fill(struct fuzz_thread *thread, struct transfer *transfer)
{
	struct nvme_peer_uring_io right = {
		.flags = fuzz_one_in(thread, 4) ? NVME_PEER_IO_FUA : 0,
		.opcode = 1 + fuzz_below(thread, 2),
		.nsid = 1,
		.handle = some_handle(thread, transfer),
		.offset = (uint64_t)fuzz_below(thread, 64) * 4,
		.lba = FIRST_BLOCK + fuzz_below(thread, 0x100000),
		.blocks = 1 + fuzz_below(thread, 24),
	};

	transfer->io = right;
	fuzz_mangle(thread, &transfer->io, sizeof(transfer->io));
	transfer->right = transfer->file.kind == FUZZ_CONTROLLER &&
			  !memcmp(&transfer->io, &right, sizeof(right));
	transfer->io.lba |= FIRST_BLOCK;
	transfer->permit = permit_of(thread, transfer);
	if (!transfer->permit.allowed)
		transfer->io.lba = (uint64_t)FUZZ_REFUSED << 32;
}

static struct nvme_peer_io_range some_range(struct fuzz_thread *thread,
					    const struct transfer *transfer)
{
	return (struct nvme_peer_io_range){
		.offset = (uint64_t)fuzz_below(thread, 64) * 4,
		.lba = FIRST_BLOCK + fuzz_below(thread, 0x100000),
		.blocks = 1 + fuzz_below(thread, 24),
		.handle = some_handle(thread, transfer),
	};
}

/*
 * Wherever the kernel reads the list, its ranges are in the second half of the disk or
 * invalid.
 */
static void aim_list(struct transfer *transfer)
{
	uint32_t i;

	for (i = 0; i < RANGES; i++) {
		transfer->list[i].lba |= FIRST_BLOCK;
		if (!transfer->permit.allowed)
			transfer->list[i].lba = (uint64_t)FUZZ_REFUSED << 32;
		if (transfer->list[i].handle != transfer->handle)
			transfer->io.handle = 0;
	}
}

static void fill_list(struct fuzz_thread *thread, struct transfer *transfer)
{
	struct nvme_peer_uring_io_vec right = {
		.flags = fuzz_one_in(thread, 4) ? NVME_PEER_IO_FUA : 0,
		.opcode = 1 + fuzz_below(thread, 2),
		.nsid = 1,
		.count = 1 + fuzz_below(thread, RANGES),
	};
	struct nvme_peer_io_range list[RANGES];
	uint32_t i;

	for (i = 0; i < RANGES; i++)
		transfer->list[i] = some_range(thread, transfer);
	transfer->vec = right;
	memcpy(list, transfer->list, sizeof(list));
	fuzz_mangle(thread, &transfer->vec, sizeof(transfer->vec));
	fuzz_mangle(thread, transfer->list, sizeof(list));
	transfer->right = transfer->file.kind == FUZZ_CONTROLLER &&
			  !memcmp(&transfer->vec, &right, sizeof(right)) &&
			  !memcmp(transfer->list, list, sizeof(list));
	transfer->io.opcode = transfer->vec.opcode;
	transfer->io.nsid = transfer->vec.nsid;
	transfer->io.handle = transfer->handle;
	transfer->permit = permit_of(thread, transfer);
	aim_list(transfer);
	transfer->vec.ranges = (uintptr_t)fuzz_place(thread, transfer->list, sizeof(list));
	transfer->right &= transfer->vec.ranges == (uintptr_t)transfer->list;
}

/*
 * Namespace errors are checked before permissions. The buffer's own access rights are
 * checked after them, and are not known for buffers that other threads imported.
 */
static void judge(struct fuzz_thread *thread, const struct transfer *transfer, bool ring_is_right,
		  int answer)
{
	bool own = transfer->handle && transfer->handle == transfer->io.handle;

	if (transfer->io.nsid != 1 || (transfer->permit.allowed && !own && answer == -EACCES))
		fuzz_result(thread, transfer->name, answer);
	else
		fuzz_judge(thread, transfer->name, transfer->permit,
			   transfer->right && ring_is_right, answer);
}

/* With IOSQE_ASYNC some are submitted by a worker, which may block. */
static void put(struct fuzz_thread *thread, struct io_uring *ring, const struct transfer *transfer)
{
	struct io_uring_sqe *sqe = io_uring_get_sqe(ring), spare[2] = { 0 };

	if (!sqe)
		return;
	spare->opcode = IORING_OP_URING_CMD;
	spare->fd = transfer->file.held;
	spare->flags = fuzz_one_in(thread, 4) ? IOSQE_ASYNC : 0;
	spare->cmd_op = transfer->operation;
	if (transfer->operation == NVME_PEER_URING_CMD_IO)
		memcpy(spare->cmd, &transfer->io, sizeof(transfer->io));
	else
		memcpy(spare->cmd, &transfer->vec, sizeof(transfer->vec));
	memcpy(sqe, spare, ring->flags & IORING_SETUP_SQE128 ? sizeof(spare) : sizeof(*sqe));
}

static void reap(struct fuzz_thread *thread, struct io_uring *ring, const struct transfer *transfer)
{
	struct __kernel_timespec limit = { .tv_nsec = 50000000 };
	struct io_uring_cqe *cqe;

	while (!io_uring_wait_cqe_timeout(ring, &cqe, &limit)) {
		judge(thread, transfer, ring->flags & IORING_SETUP_SQE128, cqe->res);
		io_uring_cqe_seen(ring, cqe);
		if (!io_uring_cq_ready(ring))
			break;
	}
}

/* At times the buffer or the ring is closed before the commands have completed. */
static void run(struct fuzz_thread *thread, struct transfer *transfer)
{
	uint32_t count = 1 + fuzz_below(thread, 4);
	uint32_t flags = fuzz_one_in(thread, 10) ? 0 : IORING_SETUP_SQE128;
	struct io_uring ring;

	if (fuzz_one_in(thread, 4))
		flags |= IORING_SETUP_IOPOLL;
	if (io_uring_queue_init(4, &ring, flags))
		return;
	while (count--)
		put(thread, &ring, transfer);
	fuzz_result(thread, "io_uring_submit", io_uring_submit(&ring));
	if (fuzz_one_in(thread, 4))
		release_own(transfer);
	if (!fuzz_one_in(thread, 4))
		reap(thread, &ring, transfer);
	io_uring_queue_exit(&ring);
}

static void send_some(struct fuzz_thread *thread, struct transfer *transfer,
		      void (*fill_in)(struct fuzz_thread *thread, struct transfer *transfer))
{
	enum fuzz_kind kind = fuzz_one_in(thread, 12) ? FUZZ_GENERIC : FUZZ_CONTROLLER;

	if (!fuzz_hold(thread, kind, &transfer->file))
		return;
	if (!fuzz_one_in(thread, 3))
		import_own(thread, transfer);
	fill_in(thread, transfer);
	run(thread, transfer);
	release_own(transfer);
	fuzz_let_go(&transfer->file);
}

static void transfer(struct fuzz_thread *thread)
{
	struct transfer transfer = { .name = "transfer", .operation = NVME_PEER_URING_CMD_IO };

	send_some(thread, &transfer, fill);
}

static void transfer_list(struct fuzz_thread *thread)
{
	struct transfer transfer = {
		.name = "transfer_list", .operation = NVME_PEER_URING_CMD_IO_VEC,
	};

	send_some(thread, &transfer, fill_list);
}

const struct fuzz_operation fuzz_transfer_operations[] = {
	{ "transfer", 6, false, transfer },
	{ "transfer_list", 4, false, transfer_list },
	{ NULL }
};
