// SPDX-License-Identifier: GPL-2.0-only
/*
 * Metadata of passthrough commands: only where a namespace has it, no more than its
 * blocks have, and never into the memory of another process than the one that asked.
 *
 * kernels: 6.1 7 debug
 * iommu: on
 * timeout: 180
 */
#include <errno.h>
#include <liburing.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "badknob.h"
#include "kselftest_harness.h"

/* Bytes of Identify Namespace. */
#define NS_PROTECTION	29
#define NS_FORMAT	128

#define PER_BLOCK	64U
/* What badctrl has for metadata. */
#define METADATA_BYTE	0x6d
#define VICTIM_BYTE	0x11
#define LONGEST		(1U << 20)
/* The same address in every process that matters here. */
#define TARGET		((uint8_t *)0x200000000000)
#define CPUS		2

#define CMD_VENDOR	0x82
#define STATUS_OPCODE	0x001

/* Read and write, control half word (NVM command set 3.3). */
#define CONTROL_PRACT	(1U << 13)
#define CONTROL_CHECK_REF	(1U << 10)

FIXTURE(bad_metadata)
{
	struct np_bad bad;
	uint8_t *bytes;
};

static uint8_t *map_target(void)
{
	uint8_t *map = mmap(TARGET, LONGEST, PROT_READ | PROT_WRITE,
			    MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1, 0);

	if (map != TARGET)
		return NULL;
	return memset(map, VICTIM_BYTE, LONGEST);
}

static uint32_t bytes_changed(const uint8_t *bytes, uint32_t from)
{
	uint32_t i, count = 0;

	for (i = from; i < LONGEST; i++)
		count += bytes[i] != VICTIM_BYTE;
	return count;
}

FIXTURE_SETUP(bad_metadata)
{
	if (np_bad_open(&self->bad) == -ENOENT)
		SKIP(return, "no misbehaving controller in this guest");
	ASSERT_EQ(0, posix_memalign((void **)&self->bytes, NP_PAGE, NP_PAGE));
}

FIXTURE_TEARDOWN(bad_metadata)
{
	if (!self->bad.address[0])
		return;
	munmap(TARGET, LONGEST);
	EXPECT_EQ(0, np_bad_close(&self->bad));
	free(self->bytes);
}

static int set_format(struct np_bad *bad, uint8_t metadata, uint8_t protection)
{
	return np_bad_identify(bad, 0, NS_FORMAT, metadata) ?:
	       np_bad_identify(bad, 0, NS_PROTECTION, protection);
}

static struct nvme_uring_cmd command(uint8_t opcode, void *bytes, uint32_t length)
{
	return (struct nvme_uring_cmd){
		.opcode = opcode,
		.nsid = 1,
		.addr = (uintptr_t)bytes,
		.data_len = bytes ? NP_BLOCK : 0,
		.metadata = (uintptr_t)TARGET,
		.metadata_len = length,
		.timeout_ms = NP_TIMEOUT_MS,
	};
}

static int run(int generic, const struct nvme_uring_cmd *cmd)
{
	struct nvme_passthru_cmd ioctl = {
		.opcode = cmd->opcode,
		.nsid = cmd->nsid,
		.addr = cmd->addr,
		.data_len = cmd->data_len,
		.metadata = cmd->metadata,
		.metadata_len = cmd->metadata_len,
	};

	return np_ioctl(generic, NVME_IOCTL_IO_CMD, &ioctl);
}

/* --- whose memory ------------------------------------------------------------- */

/* Runs until it is killed, with its own page tables on its processor. */
static void *stay(void *argument)
{
	cpu_set_t set;

	CPU_ZERO(&set);
	CPU_SET((int)(intptr_t)argument, &set);
	pthread_setaffinity_np(pthread_self(), sizeof(set), &set);
	for (;;)
		pthread_testcancel();
	return NULL;
}

static int submit(struct io_uring *ring, int generic, const struct nvme_uring_cmd *cmd)
{
	unsigned int flags = IORING_SETUP_SQE128 | IORING_SETUP_CQE32 |
			     IORING_SETUP_SINGLE_ISSUER | IORING_SETUP_DEFER_TASKRUN;
	struct io_uring_sqe *sqe;
	int ret = io_uring_queue_init(4, ring, flags);

	if (ret)
		return ret;
	sqe = io_uring_get_sqe(ring);
	if (!sqe)
		return -EBUSY;
	memset(sqe, 0, 2 * sizeof(*sqe));
	sqe->opcode = IORING_OP_URING_CMD;
	sqe->fd = generic;
	sqe->cmd_op = NVME_URING_CMD_IO;
	memcpy(sqe->cmd, cmd, sizeof(*cmd));
	ret = io_uring_submit(ring);
	return ret < 0 ? ret : 0;
}

/*
 * The process that asks.  Tells by @out how the command stands, 1: under way, and
 * gives up its ring where @closes.
 */
static void ask(int generic, const struct nvme_uring_cmd *cmd, bool closes, int out)
{
	struct io_uring_cqe *cqe;
	struct io_uring ring;
	int ret = -ENOMEM;

	if (map_target())
		ret = submit(&ring, generic, cmd);
	if (!ret)
		ret = io_uring_peek_cqe(&ring, &cqe) ? 1 : cqe->res;
	if (ret == 1 && closes)
		io_uring_queue_exit(&ring);
	if (write(out, &ret, sizeof(ret)) != sizeof(ret))
		_exit(1);
	for (;;)
		pause();
}

/*
 * A command whose owner gives it up while the controller holds it, and then it
 * completes.  How it stood, and how many bytes of ours changed.
 */
static int orphan(struct np_bad *bad, const struct nvme_uring_cmd *cmd, bool closes,
		  uint32_t *changed)
{
	pthread_t threads[CPUS];
	int pipes[2], ret = -EIO;
	pid_t child;
	intptr_t i;

	*changed = 0;
	if (pipe(pipes))
		return -errno;
	child = fork();
	if (!child)
		ask(bad->generic, cmd, closes, pipes[1]);
	if (read(pipes[0], &ret, sizeof(ret)) != sizeof(ret))
		ret = -EPIPE;
	if (!closes)
		kill(child, SIGKILL);
	if (!closes)
		waitpid(child, NULL, 0);
	if (ret == 1 && map_target()) {
		for (i = 0; i < CPUS; i++)
			pthread_create(&threads[i], NULL, stay, (void *)i);
		np_sleep_ms(500);
		np_bad_set(bad, BADCTRL_RELEASE, 1);
		np_sleep_ms(1000);
		for (i = 0; i < CPUS; i++)
			pthread_cancel(threads[i]);
		for (i = 0; i < CPUS; i++)
			pthread_join(threads[i], NULL);
		*changed = bytes_changed(TARGET, 0);
	}
	kill(child, SIGKILL);
	waitpid(child, NULL, 0);
	close(pipes[0]);
	close(pipes[1]);
	return ret;
}

TEST_F(bad_metadata, of_a_closed_ring_goes_nowhere)
{
	struct nvme_uring_cmd read = command(NP_CMD_READ, self->bytes, PER_BLOCK);
	uint32_t changed;

	ASSERT_EQ(0, set_format(&self->bad, PER_BLOCK, 0));
	ASSERT_EQ(0, np_bad_bind(&self->bad, 1));
	ASSERT_EQ(0, np_bad_rule(&self->bad, 0, NP_IO_READ, BADCTRL_HOLD, 0, 1));
	ASSERT_EQ(1, orphan(&self->bad, &read, true, &changed));
	EXPECT_EQ(0, changed);
}

TEST_F(bad_metadata, of_a_killed_process_goes_nowhere)
{
	struct nvme_uring_cmd read = command(NP_CMD_READ, self->bytes, PER_BLOCK);
	uint32_t changed;

	ASSERT_EQ(0, set_format(&self->bad, PER_BLOCK, 0));
	ASSERT_EQ(0, np_bad_bind(&self->bad, 1));
	ASSERT_EQ(0, np_bad_rule(&self->bad, 0, NP_IO_READ, BADCTRL_HOLD, 0, 1));
	ASSERT_EQ(1, orphan(&self->bad, &read, false, &changed));
	EXPECT_EQ(0, changed);
}

/* --- how much ----------------------------------------------------------------- */

/* A flush has none, a namespace without has none, and an admin command neither. */
TEST_F(bad_metadata, where_there_is_none_is_refused)
{
	struct nvme_uring_cmd flush = command(NP_CMD_FLUSH, NULL, LONGEST);
	struct nvme_uring_cmd read = command(NP_CMD_READ, self->bytes, PER_BLOCK);
	struct nvme_admin_cmd identify = {
		.opcode = NP_ADMIN_IDENTIFY,
		.addr = (uintptr_t)self->bytes,
		.data_len = NP_PAGE,
		.cdw10 = 1,
		.metadata = (uintptr_t)TARGET,
		.metadata_len = PER_BLOCK,
	};
	uint32_t changed;

	ASSERT_EQ(0, np_bad_bind(&self->bad, 1));
	ASSERT_EQ(0, np_bad_rule(&self->bad, 0, BADCTRL_ON_IO | NP_CMD_FLUSH, BADCTRL_HOLD, 0, 1));
	EXPECT_EQ(-EINVAL, orphan(&self->bad, &flush, true, &changed));
	EXPECT_EQ(0, changed);
	EXPECT_EQ(0, np_bad_hits(&self->bad, 0));
	ASSERT_EQ(0, np_bad_rule(&self->bad, 0, 0, BADCTRL_COUNT, 0, 0));
	EXPECT_EQ(-EINVAL, run(self->bad.generic, &flush));
	EXPECT_EQ(-EINVAL, run(self->bad.generic, &read));
	EXPECT_EQ(-EINVAL, np_admin(self->bad.ctrl.fd, &identify));
	/* Where there is some, a flush has none still. */
	ASSERT_EQ(0, np_bad_unbind(&self->bad));
	ASSERT_EQ(0, set_format(&self->bad, PER_BLOCK, 0));
	ASSERT_EQ(0, np_bad_bind(&self->bad, 1));
	EXPECT_EQ(-EINVAL, run(self->bad.generic, &flush));
}

TEST_F(bad_metadata, is_no_longer_than_that_of_the_blocks)
{
	struct nvme_uring_cmd read = command(NP_CMD_READ, self->bytes, LONGEST);
	uint8_t *target = map_target();
	uint32_t i;

	ASSERT_EQ(TARGET, target);
	ASSERT_EQ(0, set_format(&self->bad, PER_BLOCK, 0));
	ASSERT_EQ(0, np_bad_bind(&self->bad, 1));
	ASSERT_EQ(0, run(self->bad.generic, &read));
	for (i = 0; i < PER_BLOCK; i++)
		EXPECT_EQ(METADATA_BYTE, target[i]);
	EXPECT_EQ(0, bytes_changed(target, PER_BLOCK));
}

/* Of a command that we know nothing about, as much as we copy. */
TEST_F(bad_metadata, of_unknown_commands_has_an_end)
{
	struct nvme_uring_cmd vendor = command(CMD_VENDOR, NULL, LONGEST);

	ASSERT_EQ(TARGET, map_target());
	ASSERT_EQ(0, set_format(&self->bad, PER_BLOCK, 0));
	ASSERT_EQ(0, np_bad_bind(&self->bad, 1));
	EXPECT_EQ(NP_STATUS_DNR | STATUS_OPCODE, run(self->bad.generic, &vendor));
	vendor.metadata_len++;
	EXPECT_EQ(-EINVAL, run(self->bad.generic, &vendor));
}

/* By io_uring, which is another way to the same copy. */
TEST_F(bad_metadata, that_cannot_be_read_is_refused)
{
	struct nvme_uring_cmd write = command(NP_CMD_WRITE, self->bytes, PER_BLOCK);
	struct io_uring_cqe *cqe;
	struct io_uring ring;

	ASSERT_EQ(0, set_format(&self->bad, PER_BLOCK, 0));
	ASSERT_EQ(0, np_bad_bind(&self->bad, 1));
	write.metadata = 8;
	EXPECT_EQ(-EFAULT, run(self->bad.generic, &write));
	ASSERT_EQ(0, submit(&ring, self->bad.generic, &write));
	ASSERT_EQ(0, io_uring_wait_cqe(&ring, &cqe));
	EXPECT_EQ(-EFAULT, cqe->res);
	io_uring_queue_exit(&ring);
}

/* --- protection information ---------------------------------------------------- */

/* The controller makes and strips it: there is none to give. */
TEST_F(bad_metadata, that_the_controller_makes_is_not_asked_for)
{
	struct nvme_user_io io = {
		.opcode = NP_CMD_WRITE,
		.control = CONTROL_PRACT | CONTROL_CHECK_REF,
		.nblocks = 1,
		.addr = (uintptr_t)self->bytes,
		.slba = 3,
		.reftag = 3,
	};
	uint8_t pattern[2 * NP_BLOCK];

	ASSERT_EQ(0, set_format(&self->bad, 8, 1));
	ASSERT_EQ(0, np_bad_bind(&self->bad, 1));
	np_pattern(pattern, sizeof(pattern), 0, 5);
	memcpy(self->bytes, pattern, sizeof(pattern));
	EXPECT_EQ(0, np_ioctl(self->bad.generic, NVME_IOCTL_SUBMIT_IO, &io));
	memset(self->bytes, 0, NP_PAGE);
	io.opcode = NP_CMD_READ;
	EXPECT_EQ(0, np_ioctl(self->bad.generic, NVME_IOCTL_SUBMIT_IO, &io));
	EXPECT_EQ(0, memcmp(pattern, self->bytes, sizeof(pattern)));
	io.metadata = (uintptr_t)self->bytes;
	EXPECT_EQ(-EINVAL, np_ioctl(self->bad.generic, NVME_IOCTL_SUBMIT_IO, &io));
}

TEST_HARNESS_MAIN
