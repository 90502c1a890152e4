// SPDX-License-Identifier: GPL-2.0-only
/*
 * The standard interface: ioctl and io_uring passthrough with commands that do no
 * harm beyond the disk, and the block device. Which commands root may send is root's
 * business; which pointers and lengths come with them is what is tried.
 */
#include "operations.h"
#include "pool.h"
#include "random.h"

#include <fcntl.h>
#include <limits.h>
#include <liburing.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/uio.h>
#include <unistd.h>

#include "nptest.h"

#define DATA_BYTES	(64U * 1024)
/* More than any command transfers: what is too long must not reach our own memory. */
#define NOTHING_BYTES	(64UL << 20)

static __thread uint8_t *data;

static void make_data(void)
{
	data = mmap(NULL, DATA_BYTES + NOTHING_BYTES, PROT_NONE,
		    MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	if (data == MAP_FAILED || mprotect(data, DATA_BYTES, PROT_READ | PROT_WRITE))
		abort();
}

static uint8_t *some_data(struct fuzz_thread *thread)
{
	if (!data)
		make_data();
	if (fuzz_one_in(thread, 6))
		return (uint8_t *)(fuzz_interesting(thread) & ~0xffff00000000ULL);
	return data + (fuzz_one_in(thread, 4) ? fuzz_below(thread, 4096) : 0);
}

static uint8_t some_admin_opcode(struct fuzz_thread *thread)
{
	/* Identify, Get Log Page, Get Features, Async Event, Keep Alive, and what is none. */
	static const uint8_t opcodes[] = { 0x06, 0x06, 0x02, 0x0a, 0x18, 0x7f };

	return opcodes[fuzz_below(thread, sizeof(opcodes))];
}

static uint8_t some_io_opcode(struct fuzz_thread *thread)
{
	/* Flush, Write, Read, Compare, Write Zeroes, Verify, and what is none. */
	static const uint8_t opcodes[] = { 0x00, 0x01, 0x02, 0x02, 0x05, 0x08, 0x0c, 0x7f };

	return opcodes[fuzz_below(thread, sizeof(opcodes))];
}

static uint32_t some_length(struct fuzz_thread *thread)
{
	if (fuzz_one_in(thread, 4))
		return (uint32_t)fuzz_interesting(thread) & 0xffffff;
	return (1 + fuzz_below(thread, DATA_BYTES / NP_BLOCK - 8)) * NP_BLOCK;
}

static struct nvme_passthru_cmd64 some_command(struct fuzz_thread *thread, bool admin)
{
	struct nvme_passthru_cmd64 command = { .nsid = 1, .cdw10 = 1 };

	command.opcode = admin ? some_admin_opcode(thread) : some_io_opcode(thread);
	command.addr = (uintptr_t)some_data(thread);
	command.data_len = admin ? 4096 : some_length(thread);
	if (!admin) {
		/* Beyond the first half of the disk, which other tests use. */
		command.cdw10 = 0x200000 + fuzz_below(thread, 0x100000);
		command.cdw12 = command.data_len / NP_BLOCK - 1;
	}
	if (fuzz_one_in(thread, 4))
		command.nsid = (uint32_t)fuzz_interesting(thread);
	if (fuzz_one_in(thread, 4))
		command.flags = (uint8_t)fuzz_random(thread);
	if (fuzz_one_in(thread, 6))
		command.data_len = (uint32_t)fuzz_interesting(thread);
	if (fuzz_one_in(thread, 6)) {
		command.metadata = (uintptr_t)some_data(thread);
		command.metadata_len = fuzz_below(thread, 8192);
	}
	if (fuzz_one_in(thread, 8))
		command.cdw12 = (uint32_t)fuzz_interesting(thread) & 0xffff;
	if (fuzz_one_in(thread, 8))
		command.timeout_ms = fuzz_below(thread, 100);
	return command;
}

static void admin_command(struct fuzz_thread *thread)
{
	struct nvme_passthru_cmd64 command = some_command(thread, true);
	struct fuzz_resource file;

	/* Fields of the 32-bit structure are a prefix of the other. */
	if (!fuzz_pick(thread, (enum fuzz_kind)fuzz_below(thread, FUZZ_QP), &file))
		return;
	/* One that waits for an event would never come back. */
	if (command.opcode == 0x0c)
		return;
	fuzz_result(thread, "admin command",
		    np_ioctl(file.fd, fuzz_one_in(thread, 2) ? NVME_IOCTL_ADMIN_CMD :
								NVME_IOCTL_ADMIN64_CMD,
			     fuzz_place(thread, &command, sizeof(command))));
}

/*
 * Commands after which namespaces are others: what they do is kept small (the format
 * that there is, no namespace that there is), so that the rest has a disk to try.
 */
static void change_namespaces(struct fuzz_thread *thread)
{
	static const struct nvme_passthru_cmd64 commands[] = {
		{ .opcode = 0x80, .nsid = 1 },			/* Format NVM */
		/* All namespaces, to a format that none has: some have metadata. */
		{ .opcode = 0x80, .nsid = 0xffffffff, .cdw10 = 0xf },
		{ .opcode = 0x84 },				/* Sanitize, no action */
		{ .opcode = 0x84, .cdw10 = 1 },			/* Exit Failure Mode */
		{ .opcode = 0x0d, .nsid = 0x55, .cdw10 = 1 },	/* Namespace Management: delete */
		{ .opcode = 0x15, .nsid = 0x55, .cdw10 = 1, .data_len = 4096 },	/* Attachment */
	};
	struct nvme_passthru_cmd64 command = commands[fuzz_below(thread, 6)];
	struct fuzz_resource file;

	if (!fuzz_pick(thread, (enum fuzz_kind)fuzz_below(thread, FUZZ_QP), &file))
		return;
	if (command.data_len)
		command.addr = (uintptr_t)some_data(thread);
	fuzz_result(thread, "change of namespaces",
		    np_ioctl(file.fd, NVME_IOCTL_ADMIN64_CMD,
			     fuzz_place(thread, &command, sizeof(command))));
}

static void io_command(struct fuzz_thread *thread)
{
	static const unsigned long cmds[] = {
		NVME_IOCTL_IO_CMD, NVME_IOCTL_IO64_CMD, NVME_IOCTL_IO64_CMD_VEC,
	};
	/* What a count beyond these finds is empty, not whatever follows in our memory. */
	static __thread struct iovec parts[IOV_MAX];
	struct nvme_passthru_cmd64 command = some_command(thread, false);
	unsigned long cmd = cmds[fuzz_below(thread, 3)];
	struct fuzz_resource file;
	int i;

	if (!fuzz_pick(thread, fuzz_one_in(thread, 4) ? FUZZ_DISK : FUZZ_GENERIC, &file))
		return;
	if (cmd == NVME_IOCTL_IO64_CMD_VEC && !fuzz_one_in(thread, 8)) {
		for (i = 0; i < 4; i++)
			parts[i] = (struct iovec){ some_data(thread), some_length(thread) / 4 };
		command.addr = (uintptr_t)parts;
		command.vec_cnt = fuzz_one_in(thread, 8) ? (uint32_t)fuzz_interesting(thread) :
							   fuzz_below(thread, 5);
	}
	fuzz_result(thread, "I/O command",
		    np_ioctl(file.fd, cmd, fuzz_place(thread, &command, sizeof(command))));
}

static void submit_io(struct fuzz_thread *thread)
{
	struct nvme_user_io io = {
		.opcode = (uint8_t)(1 + fuzz_below(thread, 2)),
		.nblocks = (uint16_t)fuzz_below(thread, 64),
		.slba = 0x200000 + fuzz_below(thread, 0x1000),
	};
	struct fuzz_resource file;

	if (!fuzz_pick(thread, FUZZ_GENERIC, &file))
		return;
	fuzz_mangle(thread, &io, sizeof(io));
	/* Not to an address near by, where our own memory is. */
	io.addr = (uintptr_t)some_data(thread);
	io.metadata = (uintptr_t)some_data(thread);
	io.slba |= 0x200000;
	fuzz_result(thread, "SUBMIT_IO", np_ioctl(file.fd, NVME_IOCTL_SUBMIT_IO,
						  fuzz_place(thread, &io, sizeof(io))));
}

static void identifiers(struct fuzz_thread *thread)
{
	struct fuzz_resource file;

	if (fuzz_pick(thread, (enum fuzz_kind)fuzz_below(thread, FUZZ_QP), &file))
		np_ioctl(file.fd, NVME_IOCTL_ID, NULL);
}

static void fill_entry(struct fuzz_thread *thread, struct io_uring_sqe *sqe, int fd, bool admin)
{
	static const uint32_t cmds[] = {
		NVME_URING_CMD_IO, NVME_URING_CMD_IO, NVME_URING_CMD_IO_VEC,
		NVME_URING_CMD_ADMIN, NVME_URING_CMD_ADMIN_VEC,
	};
	struct nvme_passthru_cmd64 command = some_command(thread, admin);
	struct nvme_uring_cmd cmd;

	/* The first 64 bytes are the same in both. */
	memcpy(&cmd, &command, sizeof(cmd));
	memset(sqe, 0, 2 * sizeof(*sqe));
	sqe->opcode = IORING_OP_URING_CMD;
	sqe->fd = fd;
	sqe->cmd_op = admin ? cmds[3 + fuzz_below(thread, 2)] : cmds[fuzz_below(thread, 3)];
	if (fuzz_one_in(thread, 10))
		sqe->cmd_op = (uint32_t)fuzz_interesting(thread);
	if (fuzz_one_in(thread, 10))
		sqe->uring_cmd_flags = (uint32_t)fuzz_interesting(thread);
	if (fuzz_one_in(thread, 10))
		sqe->buf_index = (uint16_t)fuzz_below(thread, 4);
	memcpy(sqe->cmd, &cmd, sizeof(cmd));
}

static uint32_t ring_flags(struct fuzz_thread *thread)
{
	uint32_t flags = IORING_SETUP_SQE128 | IORING_SETUP_CQE32;

	if (fuzz_one_in(thread, 4))
		flags |= IORING_SETUP_IOPOLL;
	if (fuzz_one_in(thread, 10))
		flags &= ~IORING_SETUP_SQE128;
	if (fuzz_one_in(thread, 10))
		flags &= ~IORING_SETUP_CQE32;
	return flags;
}

/* A few commands at once, then the ring goes, whether or not they are done. */
static void uring(struct fuzz_thread *thread)
{
	struct __kernel_timespec limit = { .tv_nsec = 50000000 };
	uint32_t flags = ring_flags(thread);
	uint32_t count = 1 + fuzz_below(thread, 6);
	bool admin = fuzz_one_in(thread, 4);
	struct io_uring_sqe *sqe, spare[2] = { 0 };
	struct fuzz_resource file;
	struct io_uring_cqe *cqe;
	struct io_uring ring;

	if (!fuzz_pick(thread, admin ? FUZZ_CONTROLLER : FUZZ_GENERIC, &file) ||
	    io_uring_queue_init(8, &ring, flags))
		return;
	while (count--) {
		sqe = io_uring_get_sqe(&ring);
		if (!sqe)
			break;
		fill_entry(thread, spare, file.fd, admin);
		memcpy(sqe, spare, flags & IORING_SETUP_SQE128 ? sizeof(spare) : sizeof(*sqe));
	}
	fuzz_result(thread, "io_uring_submit", io_uring_submit(&ring));
	if (!fuzz_one_in(thread, 4))
		while (!io_uring_wait_cqe_timeout(&ring, &cqe, &limit)) {
			fuzz_result(thread, "io_uring command", cqe->res);
			io_uring_cqe_seen(&ring, cqe);
			if (!io_uring_cq_ready(&ring))
				break;
		}
	io_uring_queue_exit(&ring);
}

static void disk(struct fuzz_thread *thread)
{
	struct fuzz_resource file;
	off_t at = (off_t)(0x40000000 + (uint64_t)fuzz_below(thread, 0x1000) * 4096);

	if (!fuzz_pick(thread, FUZZ_DISK, &file))
		return;
	if (fuzz_one_in(thread, 2))
		fuzz_result(thread, "read", (int)pread(file.fd, some_data(thread), 8192, at));
	else
		fuzz_result(thread, "write", (int)pwrite(file.fd, some_data(thread), 8192, at));
}

static void open_generic(struct fuzz_thread *thread)
{
	char path[32];

	snprintf(path, sizeof(path), "/dev/ngp%un%u", fuzz_below(thread, 3),
		 1 + fuzz_below(thread, 2));
	fuzz_add_fd(thread, FUZZ_GENERIC, open(path, O_RDWR | O_CLOEXEC));
}

static void open_disk(struct fuzz_thread *thread)
{
	char path[32];

	snprintf(path, sizeof(path), "/dev/nvmep%un1", fuzz_below(thread, 3));
	fuzz_add_fd(thread, FUZZ_DISK, open(path, O_RDWR | O_CLOEXEC |
					    (fuzz_one_in(thread, 2) ? O_DIRECT : 0)));
}

const struct fuzz_operation fuzz_nvme_operations[] = {
	{ "open generic", 4, false, open_generic },
	{ "open disk", 2, false, open_disk },
	{ "admin command", 6, false, admin_command },
	{ "change of namespaces", 1, false, change_namespaces },
	{ "I/O command", 8, false, io_command },
	{ "SUBMIT_IO", 3, false, submit_io },
	{ "ID", 1, false, identifiers },
	{ "io_uring", 6, false, uring },
	{ "disk", 4, false, disk },
	{ NULL }
};
