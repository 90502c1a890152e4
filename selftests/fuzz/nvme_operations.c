// SPDX-License-Identifier: GPL-2.0-only
/*
 * The standard interface: ioctl and io_uring passthrough with commands that change no
 * more than the disk, and the block device. Varied are pointers and lengths, and whether
 * exactly the permitted commands are accepted.
 */
#include "judge.h"
#include "operations.h"
#include "pool.h"
#include "random.h"
#include "trace_check.h"

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
/*
 * More than any command transfers: an excessive length must not reach the fuzzer's own
 * memory.
 */
#define NOTHING_BYTES	(64UL << 20)
/* Limit of commands in a ring. */
#define BATCH		6U

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

/* Harmless commands, and invalid ones. */
static const uint8_t usual_admin[] = {
	NVME_ADMIN_IDENTIFY, NVME_ADMIN_IDENTIFY, NVME_ADMIN_GET_LOG_PAGE, NVME_ADMIN_GET_FEATURES,
	NVME_ADMIN_KEEP_ALIVE, NVME_IO_FABRICS,
};

static const uint8_t usual_io[] = {
	NVMEPEER_OP_FLUSH, NVMEPEER_OP_WRITE, NVMEPEER_OP_READ, NVMEPEER_OP_READ,
	NVMEPEER_OP_COMPARE, NVMEPEER_OP_WRITE_ZEROES, NVME_IO_VERIFY, NVME_IO_FABRICS,
};

/* Queues, features, events, shadow doorbells: refused to root too. */
static const uint8_t drivers_admin[] = {
	NVME_ADMIN_DELETE_SQ, NVME_ADMIN_CREATE_SQ, NVME_ADMIN_DELETE_CQ, NVME_ADMIN_CREATE_CQ,
	NVME_ADMIN_SET_FEATURES, NVME_ADMIN_SET_FEATURES, NVME_ADMIN_ASYNC_EVENT,
	NVME_ADMIN_DOORBELL_BUFFER,
};

static uint8_t some_opcode(struct fuzz_thread *thread, bool admin)
{
	if (fuzz_one_in(thread, 4))
		return (uint8_t)fuzz_random(thread);
	if (!admin)
		return usual_io[fuzz_below(thread, sizeof(usual_io))];
	if (fuzz_one_in(thread, 4))
		return drivers_admin[fuzz_below(thread, sizeof(drivers_admin))];
	return usual_admin[fuzz_below(thread, sizeof(usual_admin))];
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

	command.opcode = some_opcode(thread, admin);
	/* The data length of Identify is known, and Set Features is refused. */
	if (command.opcode == NVME_ADMIN_IDENTIFY || command.opcode == NVME_ADMIN_SET_FEATURES)
		command.cdw10 = fuzz_below(thread, 0x18);
	command.addr = (uintptr_t)some_data(thread);
	command.data_len = admin ? 4096 : some_length(thread);
	if (!admin) {
		/* In the second half of the disk, which other tests do not use. */
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

static struct np_permit permit_of(const struct fuzz_thread *thread,
				  const struct fuzz_resource *file, bool admin, uint8_t opcode,
				  uint32_t dword10)
{
	struct np_sending sending = {
		.partition = file->kind == FUZZ_PARTITION,
		.writable = (fcntl(file->held, F_GETFL) & O_ACCMODE) != O_RDONLY,
		.admin = admin,
		.opcode = opcode,
		.dword10 = dword10,
		.effects = thread->judge->effects[opcode],
	};

	return np_permit_command(&thread->caller, &sending);
}

/*
 * The permission to send @command through @file. A command that must be refused is
 * marked.
 */
static struct np_permit ask_permit(const struct fuzz_thread *thread,
				   const struct fuzz_resource *file, bool admin,
				   struct nvme_passthru_cmd64 *command)
{
	struct np_permit permit = permit_of(thread, file, admin, command->opcode, command->cdw10);

	if (!permit.allowed)
		command->cdw11 = FUZZ_REFUSED;
	return permit;
}

/* Root may send harmful commands, so those are not tried. */
static bool is_tried(struct np_permit permit, const struct nvme_passthru_cmd64 *command, bool admin)
{
	return !permit.allowed || memchr(admin ? usual_admin : usual_io, command->opcode,
					 admin ? sizeof(usual_admin) : sizeof(usual_io));
}

/* Has the command no error that is checked before permissions? */
static bool is_exact(const struct nvme_passthru_cmd64 *command, bool admin)
{
	return !command->flags && (admin || command->nsid == 1);
}

/* Make the ioctl and check its result. */
static void submit(struct fuzz_thread *thread, const struct fuzz_resource *file, const char *name,
		   unsigned long cmd, bool admin, struct nvme_passthru_cmd64 *command)
{
	struct np_permit permit = ask_permit(thread, file, admin, command);
	bool exact = is_exact(command, admin);
	void *placed;

	if (!is_tried(permit, command, admin))
		return;
	placed = fuzz_place(thread, command, sizeof(*command));
	fuzz_judge(thread, name, permit, exact && placed == command,
		   np_ioctl(file->held, cmd, placed));
}

/* Any node accepts admin commands. */
static enum fuzz_kind some_node(struct fuzz_thread *thread)
{
	return (enum fuzz_kind)fuzz_below(thread, FUZZ_QP);
}

static void admin_command(struct fuzz_thread *thread)
{
	struct nvme_passthru_cmd64 command = some_command(thread, true);
	struct fuzz_resource file;

	/* The 32-bit structure is a prefix of the 64-bit one. */
	if (!fuzz_hold(thread, some_node(thread), &file))
		return;
	submit(thread, &file, "admin command",
	       fuzz_one_in(thread, 2) ? NVME_IOCTL_ADMIN_CMD : NVME_IOCTL_ADMIN64_CMD, true,
	       &command);
	fuzz_let_go(&file);
}

/*
 * Commands after which namespaces are rescanned. They change little (the present format,
 * nonexistent namespaces), so that the other operations keep a disk.
 */
static void change_namespaces(struct fuzz_thread *thread)
{
	static const struct nvme_passthru_cmd64 commands[] = {
		{ .opcode = NVME_ADMIN_FORMAT, .nsid = 1 },
		/*
		 * All namespaces, to a format that none of them has, because some have
		 * metadata.
		 */
		{ .opcode = NVME_ADMIN_FORMAT, .nsid = NVME_ALL_NAMESPACES, .cdw10 = 0xf },
		{ .opcode = NVME_ADMIN_SANITIZE },		/* no action */
		{ .opcode = NVME_ADMIN_SANITIZE, .cdw10 = 1 },	/* Exit Failure Mode */
		/* Delete a namespace. */
		{ .opcode = NVME_ADMIN_NAMESPACE_MANAGE, .nsid = 0x55, .cdw10 = 1 },
		/* Detach it from the controllers of a list. */
		{
			.opcode = NVME_ADMIN_NAMESPACE_ATTACH,
			.nsid = 0x55,
			.cdw10 = 1,
			.data_len = 4096,
		},
	};
	struct nvme_passthru_cmd64 command = commands[fuzz_below(thread, 6)];
	struct fuzz_resource file;
	struct np_permit permit;
	void *placed;

	if (!fuzz_hold(thread, some_node(thread), &file))
		return;
	if (command.data_len)
		command.addr = (uintptr_t)some_data(thread);
	permit = ask_permit(thread, &file, true, &command);
	placed = fuzz_place(thread, &command, sizeof(command));
	fuzz_judge(thread, "change of namespaces", permit, placed == &command,
		   np_ioctl(file.held, NVME_IOCTL_ADMIN64_CMD, placed));
	fuzz_let_go(&file);
}

/* If there is no partition, one call in six finds no node. */
static enum fuzz_kind some_namespace(struct fuzz_thread *thread)
{
	static const enum fuzz_kind kinds[] = {
		FUZZ_GENERIC, FUZZ_GENERIC, FUZZ_GENERIC, FUZZ_DISK, FUZZ_DISK, FUZZ_PARTITION,
	};

	return kinds[fuzz_below(thread, 6)];
}

static void io_command(struct fuzz_thread *thread)
{
	static const unsigned long cmds[] = {
		NVME_IOCTL_IO_CMD, NVME_IOCTL_IO64_CMD, NVME_IOCTL_IO64_CMD_VEC,
	};
	/*
	 * An out-of-range count must find empty vectors, not other memory of the fuzzer.
	 */
	static __thread struct iovec parts[IOV_MAX];
	struct nvme_passthru_cmd64 command = some_command(thread, false);
	unsigned long cmd = cmds[fuzz_below(thread, 3)];
	struct fuzz_resource file;
	int i;

	if (!fuzz_hold(thread, some_namespace(thread), &file))
		return;
	if (cmd == NVME_IOCTL_IO64_CMD_VEC && !fuzz_one_in(thread, 8)) {
		for (i = 0; i < 4; i++)
			parts[i] = (struct iovec){ some_data(thread), some_length(thread) / 4 };
		command.addr = (uintptr_t)parts;
		command.vec_cnt = fuzz_one_in(thread, 8) ? (uint32_t)fuzz_interesting(thread) :
							   fuzz_below(thread, 5);
	}
	submit(thread, &file, "I/O command", cmd, false, &command);
	fuzz_let_go(&file);
}

/* The driver checks these before permissions. */
static bool submit_is_right(const struct nvme_user_io *io)
{
	return !io->flags && (io->opcode == NVMEPEER_OP_WRITE || io->opcode == NVMEPEER_OP_READ ||
			      io->opcode == NVMEPEER_OP_COMPARE);
}

static void submit_io(struct fuzz_thread *thread)
{
	struct nvme_user_io io = {
		.opcode = (uint8_t)(1 + fuzz_below(thread, 2)),
		.nblocks = (uint16_t)fuzz_below(thread, 64),
		.slba = 0x200000 + fuzz_below(thread, 0x1000),
	};
	struct fuzz_resource file;
	struct np_permit permit;
	void *placed;

	if (!fuzz_hold(thread, some_namespace(thread), &file))
		return;
	fuzz_mangle(thread, &io, sizeof(io));
	/* Not to an address near by, where the fuzzer's own memory is. */
	io.addr = (uintptr_t)some_data(thread);
	io.metadata = (uintptr_t)some_data(thread);
	io.slba |= 0x200000;
	permit = permit_of(thread, &file, false, io.opcode, 0);
	if (!permit.allowed)
		io.slba = (uint64_t)FUZZ_REFUSED << 32;
	placed = fuzz_place(thread, &io, sizeof(io));
	fuzz_judge(thread, "SUBMIT_IO", permit, placed == &io && submit_is_right(&io),
		   np_ioctl(file.held, NVME_IOCTL_SUBMIT_IO, placed));
	fuzz_let_go(&file);
}

static void identifiers(struct fuzz_thread *thread)
{
	struct fuzz_resource file;

	if (fuzz_pick(thread, some_node(thread), &file))
		np_ioctl(file.fd, NVME_IOCTL_ID, NULL);
}

/**
 * struct batch - commands that are submitted together
 * @file: the node
 * @admin: they are admin commands
 * @count: number of commands
 * @permits: of each; user_data of a completion is the index
 * @exact: of each
 */
struct batch {
	struct fuzz_resource file;
	bool admin;
	uint32_t count;
	struct np_permit permits[BATCH];
	bool exact[BATCH];
};

/* Introduce an error that io_uring or the driver checks before permissions. */
static bool mangle_entry(struct fuzz_thread *thread, struct io_uring_sqe *sqe)
{
	struct io_uring_sqe right = *sqe;

	if (fuzz_one_in(thread, 10))
		sqe->cmd_op = (uint32_t)fuzz_interesting(thread);
	if (fuzz_one_in(thread, 10))
		sqe->uring_cmd_flags = (uint32_t)fuzz_interesting(thread);
	if (fuzz_one_in(thread, 10))
		sqe->buf_index = (uint16_t)fuzz_below(thread, 4);
	return memcmp(&right, sqe, sizeof(right));
}

/* The next command of @batch: false if it must not be sent. */
static bool fill_entry(struct fuzz_thread *thread, struct io_uring_sqe *sqe, struct batch *batch)
{
	static const uint32_t cmds[] = {
		NVME_URING_CMD_IO, NVME_URING_CMD_IO, NVME_URING_CMD_IO_VEC,
		NVME_URING_CMD_ADMIN, NVME_URING_CMD_ADMIN_VEC,
	};
	struct nvme_passthru_cmd64 command = some_command(thread, batch->admin);
	uint32_t number = batch->count;

	batch->permits[number] = ask_permit(thread, &batch->file, batch->admin, &command);
	if (!is_tried(batch->permits[number], &command, batch->admin))
		return false;
	memset(sqe, 0, 2 * sizeof(*sqe));
	sqe->opcode = IORING_OP_URING_CMD;
	sqe->fd = batch->file.held;
	sqe->user_data = number;
	sqe->cmd_op = batch->admin ? cmds[3 + fuzz_below(thread, 2)] : cmds[fuzz_below(thread, 3)];
	batch->exact[number] = !mangle_entry(thread, sqe) && is_exact(&command, batch->admin);
	/* The first bytes are the same in both structures. */
	memcpy(sqe->cmd, &command, sizeof(struct nvme_uring_cmd));
	batch->count++;
	return true;
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

static void fill_ring(struct fuzz_thread *thread, struct io_uring *ring, struct batch *batch)
{
	uint32_t count = 1 + fuzz_below(thread, BATCH);
	struct io_uring_sqe *sqe, spare[2] = { 0 };

	while (count--) {
		if (!fill_entry(thread, spare, batch))
			continue;
		sqe = io_uring_get_sqe(ring);
		if (!sqe)
			break;
		memcpy(sqe, spare, ring->flags & IORING_SETUP_SQE128 ? sizeof(spare) : sizeof(*sqe));
	}
}

/*
 * Is the ring of a form that the command supports? The driver checks that before
 * permissions.
 */
static bool ring_is_right(const struct io_uring *ring)
{
	return ring->flags & IORING_SETUP_SQE128 && ring->flags & IORING_SETUP_CQE32;
}

static void reap(struct fuzz_thread *thread, struct io_uring *ring, const struct batch *batch)
{
	struct __kernel_timespec limit = { .tv_nsec = 50000000 };
	struct io_uring_cqe *cqe;

	while (!io_uring_wait_cqe_timeout(ring, &cqe, &limit)) {
		if (cqe->user_data < batch->count)
			fuzz_judge(thread, "io_uring command", batch->permits[cqe->user_data],
				   batch->exact[cqe->user_data] && ring_is_right(ring), cqe->res);
		io_uring_cqe_seen(ring, cqe);
		if (!io_uring_cq_ready(ring))
			break;
	}
}

/* Submit a few commands, then close the ring, whether or not they have completed. */
static void uring(struct fuzz_thread *thread)
{
	uint32_t flags = ring_flags(thread);
	struct batch batch = { .admin = fuzz_one_in(thread, 4) };
	struct io_uring ring;

	if (!fuzz_hold(thread, batch.admin ? FUZZ_CONTROLLER : FUZZ_GENERIC, &batch.file))
		return;
	if (!io_uring_queue_init(8, &ring, flags)) {
		fill_ring(thread, &ring, &batch);
		fuzz_result(thread, "io_uring_submit", io_uring_submit(&ring));
		if (!fuzz_one_in(thread, 4))
			reap(thread, &ring, &batch);
		io_uring_queue_exit(&ring);
	}
	fuzz_let_go(&batch.file);
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

	snprintf(path, sizeof(path), "/dev/ngp%un%u", fuzz_instance(thread),
		 1 + fuzz_below(thread, 2));
	fuzz_add_fd(thread, FUZZ_GENERIC, open(path, O_RDWR | O_CLOEXEC));
}

static void open_disk(struct fuzz_thread *thread)
{
	char path[32];

	snprintf(path, sizeof(path), "/dev/nvmep%un1", fuzz_instance(thread));
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
