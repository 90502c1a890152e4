// SPDX-License-Identifier: GPL-2.0-only
/*
 * Reads and writes whose data lies in an imported buffer: of whatever handle, in rings of
 * every form, with their buffer released under them; and sent only for who may.
 */
#include "judge.h"
#include "operations.h"
#include "pool.h"
#include "random.h"
#include "sent.h"

#include <errno.h>
#include <fcntl.h>
#include <liburing.h>
#include <string.h>

#include "nptest.h"

/* Beyond the first half of the disk, which other tests use. */
#define FIRST_BLOCK	0x200000U

/**
 * struct transfer - some equal commands, and what is known of them
 * @io: the command
 * @file: the node that it goes to
 * @handle: buffer that this thread has imported for it, for reading and writing; or 0
 * @right: nothing but rights can be in its way before they are asked for
 * @permit: may it be sent?
 */
struct transfer {
	struct nvme_peer_uring_io io;
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

/* Also one of another open file, which means nothing here. */
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

/*
 * Which namespace there is comes before rights.  After them a buffer's own may be missing:
 * what somebody else has imported, it is not known for what.
 */
static void judge(struct fuzz_thread *thread, const struct transfer *transfer, bool ring_is_right,
		  int answer)
{
	bool own = transfer->handle && transfer->handle == transfer->io.handle;

	if (transfer->io.nsid != 1 || (transfer->permit.allowed && !own && answer == -EACCES))
		fuzz_result(thread, "transfer", answer);
	else
		fuzz_judge(thread, "transfer", transfer->permit,
			   transfer->right && ring_is_right, answer);
}

static void put(struct io_uring *ring, const struct transfer *transfer)
{
	struct io_uring_sqe *sqe = io_uring_get_sqe(ring), spare[2] = { 0 };

	if (!sqe)
		return;
	spare->opcode = IORING_OP_URING_CMD;
	spare->fd = transfer->file.held;
	spare->cmd_op = NVME_PEER_URING_CMD_IO;
	memcpy(spare->cmd, &transfer->io, sizeof(transfer->io));
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

/* At times the buffer goes, or the ring, whether or not they are done. */
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
		put(&ring, transfer);
	fuzz_result(thread, "io_uring_submit", io_uring_submit(&ring));
	if (fuzz_one_in(thread, 4))
		release_own(transfer);
	if (!fuzz_one_in(thread, 4))
		reap(thread, &ring, transfer);
	io_uring_queue_exit(&ring);
}

static void transfer(struct fuzz_thread *thread)
{
	enum fuzz_kind kind = fuzz_one_in(thread, 12) ? FUZZ_GENERIC : FUZZ_CONTROLLER;
	struct transfer transfer = { 0 };

	if (!fuzz_hold(thread, kind, &transfer.file))
		return;
	if (!fuzz_one_in(thread, 3))
		import_own(thread, &transfer);
	fill(thread, &transfer);
	run(thread, &transfer);
	release_own(&transfer);
	fuzz_let_go(&transfer.file);
}

const struct fuzz_operation fuzz_transfer_operations[] = {
	{ "transfer", 6, false, transfer },
	{ NULL }
};
