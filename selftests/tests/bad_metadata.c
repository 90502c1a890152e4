// SPDX-License-Identifier: GPL-2.0-only
/*
 * Metadata of passthrough commands: accepted only if the namespace has metadata, at most
 * that of the blocks, and never copied into the memory of another process than the
 * submitter, nor while a request is held.
 *
 * kernels: 6.1 7
 * long-kernels: 6.1 7 debug
 * iommu: on
 * timeout: 180
 */
#include <errno.h>
#include <fcntl.h>
#include <linux/userfaultfd.h>
#include <liburing.h>
#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "npbad.h"
#include "kselftest_harness.h"

/* Byte offsets in Identify Namespace. */
#define NS_FORMATTED	26
#define FORMATTED_INTERLEAVED	(1U << 4)
#define NS_PROTECTION	29
#define NS_FORMAT	128

#define PER_BLOCK	64U
/* Value of all metadata bytes that badctrl returns. */
#define METADATA_BYTE	0x6d
#define VICTIM_BYTE	0x11
#define LONGEST		(1U << 20)
/* Mapped at the same address in every process of this test. */
#define TARGET		((uint8_t *)0x200000000000)
#define CPUS		2

#define CMD_VENDOR	0x82
#define POLL_QUEUES	"/sys/module/nvme_peer/parameters/poll_queues"

/* Read and write, control field (NVM command set 3.3). */
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
		SKIP(return, "no badctrl in this guest");
	ASSERT_EQ(0, posix_memalign((void **)&self->bytes, NP_PAGE, NP_PAGE));
}

FIXTURE_TEARDOWN(bad_metadata)
{
	if (!self->bad.address[0])
		return;
	munmap(TARGET, LONGEST);
	EXPECT_EQ(0, np_write_file(POLL_QUEUES, "0"));
	EXPECT_EQ(0, np_bad_close(&self->bad));
	free(self->bytes);
}

static int set_format(struct np_bad *bad, uint8_t metadata, uint8_t protection)
{
	return np_bad_identify(bad, NVME_CNS_NAMESPACE, NS_FORMAT, metadata) ?:
	       np_bad_identify(bad, NVME_CNS_NAMESPACE, NS_PROTECTION, protection);
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

/* --- address space of the copy --------------------------------------------------- */

/* Runs until it is killed, with its own page tables loaded on its CPU. */
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

static int submit_by(struct io_uring *ring, unsigned int flags, int generic,
		     const struct nvme_uring_cmd *cmd)
{
	struct io_uring_sqe *sqe;
	int ret = io_uring_queue_init(4, ring, flags | IORING_SETUP_SQE128 | IORING_SETUP_CQE32);

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

static int submit(struct io_uring *ring, int generic, const struct nvme_uring_cmd *cmd)
{
	return submit_by(ring, IORING_SETUP_SINGLE_ISSUER | IORING_SETUP_DEFER_TASKRUN, generic,
			 cmd);
}

/*
 * The process that submits. Reports through @out that the command is in flight (1), and
 * closes its ring if @closes.
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
 * A command whose submitter exits or closes the ring while the controller holds it, and
 * which then completes. Returns its state and how many bytes of this process changed.
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

TEST_F(bad_metadata, closed_ring_gets_no_metadata)
{
	struct nvme_uring_cmd read = command(NVMEPEER_OP_READ, self->bytes, PER_BLOCK);
	uint32_t changed;

	ASSERT_EQ(0, set_format(&self->bad, PER_BLOCK, 0));
	ASSERT_EQ(0, np_bad_bind(&self->bad, 1));
	ASSERT_EQ(0, np_bad_rule(&self->bad, 0, NP_IO_READ, BADCTRL_HOLD, 0, 1));
	ASSERT_EQ(1, orphan(&self->bad, &read, true, &changed));
	EXPECT_EQ(0, changed);
}

TEST_F(bad_metadata, killed_process_gets_no_metadata)
{
	struct nvme_uring_cmd read = command(NVMEPEER_OP_READ, self->bytes, PER_BLOCK);
	uint32_t changed;

	ASSERT_EQ(0, set_format(&self->bad, PER_BLOCK, 0));
	ASSERT_EQ(0, np_bad_bind(&self->bad, 1));
	ASSERT_EQ(0, np_bad_rule(&self->bad, 0, NP_IO_READ, BADCTRL_HOLD, 0, 1));
	ASSERT_EQ(1, orphan(&self->bad, &read, false, &changed));
	EXPECT_EQ(0, changed);
}

/* --- memory that is not there ------------------------------------------------------ */

/* A file that reports accesses to pages of @at that are not there yet. */
static int watch_pages(uint8_t *at)
{
	struct uffdio_api api = { .api = UFFD_API };
	struct uffdio_register range = {
		.range = { .start = (uintptr_t)at, .len = LONGEST },
		.mode = UFFDIO_REGISTER_MODE_MISSING,
	};
	int fd = (int)syscall(SYS_userfaultfd, O_CLOEXEC | O_NONBLOCK);

	if (fd < 0)
		return -errno;
	return ioctl(fd, UFFDIO_API, &api) || ioctl(fd, UFFDIO_REGISTER, &range) ? -errno : fd;
}

static bool wait_for_fault(int fd)
{
	struct pollfd file = { .fd = fd, .events = POLLIN };

	return poll(&file, 1, NP_TIMEOUT_MS) == 1;
}

static int give_page(int fd, uint8_t *at)
{
	struct uffdio_zeropage page = { .range = { .start = (uintptr_t)at, .len = NP_PAGE } };

	return ioctl(fd, UFFDIO_ZEROPAGE, &page) ? -errno : 0;
}

struct poller {
	struct np_bad *bad;
	struct nvme_uring_cmd cmd;
	int result;
};

static void *poll_for_completion(void *argument)
{
	struct poller *poller = argument;
	struct io_uring_cqe *cqe;
	struct io_uring ring;

	poller->result = submit_by(&ring, IORING_SETUP_IOPOLL, poller->bad->generic, &poller->cmd);
	if (!poller->result)
		poller->result = io_uring_wait_cqe(&ring, &cqe) ?: cqe->res;
	io_uring_queue_exit(&ring);
	return NULL;
}

static int watch_target(void)
{
	if (map_target() != TARGET || madvise(TARGET, LONGEST, MADV_DONTNEED))
		return -errno;
	return watch_pages(TARGET);
}

/*
 * A reset ends while a completion waits for a page of its submitter, which may be swapped to
 * this disk.
 */
static void reset_beside_fault(struct __test_metadata *_metadata, struct np_bad *bad,
			       struct poller *poller, int pages)
{
	pthread_t polls, resets;
	void *result = NULL;
	int late;

	ASSERT_EQ(0, pthread_create(&polls, NULL, poll_for_completion, poller));
	EXPECT_TRUE(wait_for_fault(pages));
	ASSERT_EQ(0, pthread_create(&resets, NULL, np_bad_reset_thread, bad));
	late = np_join(resets, &result, NP_TIMEOUT_MS);
	EXPECT_EQ(0, late);
	EXPECT_EQ(0, give_page(pages, TARGET));
	pthread_join(polls, NULL);
	if (late)
		pthread_join(resets, &result);
	EXPECT_EQ(NULL, result);
	EXPECT_EQ(0, poller->result);
	close(pages);
}

TEST_F(bad_metadata, reset_beside_fault_of_polled_metadata)
{
	struct poller poller = {
		.bad = &self->bad,
		.cmd = command(NVMEPEER_OP_READ, self->bytes, PER_BLOCK),
	};
	int pages = watch_target();

	if (pages == -ENOSYS)
		SKIP(return, "no userfaultfd in this kernel");
	ASSERT_LE(0, pages);
	ASSERT_EQ(0, np_write_file(POLL_QUEUES, "1"));
	ASSERT_EQ(0, set_format(&self->bad, PER_BLOCK, 0));
	ASSERT_EQ(0, np_bad_bind(&self->bad, 1));
	reset_beside_fault(_metadata, &self->bad, &poller, pages);
	EXPECT_EQ(METADATA_BYTE, TARGET[0]);
	EXPECT_EQ(METADATA_BYTE, TARGET[PER_BLOCK - 1]);
}

/* The block layer copies data whose address is odd. */
TEST_F(bad_metadata, reset_beside_fault_of_polled_data)
{
	struct poller poller = {
		.bad = &self->bad,
		.cmd = {
			.opcode = NVMEPEER_OP_READ,
			.nsid = 1,
			.addr = (uintptr_t)TARGET + 1,
			.data_len = NP_BLOCK,
		},
	};
	int pages = watch_target();

	if (pages == -ENOSYS)
		SKIP(return, "no userfaultfd in this kernel");
	ASSERT_LE(0, pages);
	ASSERT_EQ(0, np_write_file(POLL_QUEUES, "1"));
	ASSERT_EQ(0, np_bad_bind(&self->bad, 1));
	memset(self->bytes, 0x77, NP_PAGE);
	ASSERT_EQ(0, np_disk_write(self->bad.disk, self->bytes, NP_BLOCK, 0));
	reset_beside_fault(_metadata, &self->bad, &poller, pages);
	EXPECT_EQ(0x77, TARGET[1]);
	EXPECT_EQ(0x77, TARGET[NP_BLOCK]);
}

/* --- length --------------------------------------------------------------------- */

/* A flush, an admin command, and a namespace without metadata have none. */
TEST_F(bad_metadata, refused_without_metadata_format)
{
	struct nvme_uring_cmd flush = command(NVMEPEER_OP_FLUSH, NULL, LONGEST);
	struct nvme_uring_cmd read = command(NVMEPEER_OP_READ, self->bytes, PER_BLOCK);
	struct nvme_admin_cmd identify = {
		.opcode = NVME_ADMIN_IDENTIFY,
		.addr = (uintptr_t)self->bytes,
		.data_len = NP_PAGE,
		.cdw10 = 1,
		.metadata = (uintptr_t)TARGET,
		.metadata_len = PER_BLOCK,
	};
	uint32_t changed;

	ASSERT_EQ(0, np_bad_bind(&self->bad, 1));
	ASSERT_EQ(0, np_bad_rule(&self->bad, 0, NP_IO_FLUSH, BADCTRL_HOLD, 0, 1));
	EXPECT_EQ(-EINVAL, orphan(&self->bad, &flush, true, &changed));
	EXPECT_EQ(0, changed);
	EXPECT_EQ(0, np_bad_hits(&self->bad, 0));
	ASSERT_EQ(0, np_bad_rule(&self->bad, 0, 0, BADCTRL_COUNT, 0, 0));
	EXPECT_EQ(-EINVAL, run(self->bad.generic, &flush));
	EXPECT_EQ(-EINVAL, run(self->bad.generic, &read));
	EXPECT_EQ(-EINVAL, np_admin(self->bad.ctrl.fd, &identify));
	/* A flush has none in a namespace with metadata either. */
	ASSERT_EQ(0, np_bad_unbind(&self->bad));
	ASSERT_EQ(0, set_format(&self->bad, PER_BLOCK, 0));
	ASSERT_EQ(0, np_bad_bind(&self->bad, 1));
	EXPECT_EQ(-EINVAL, run(self->bad.generic, &flush));
}

/* Longer metadata than the blocks have is refused, of any command that has metadata. */
TEST_F(bad_metadata, length_is_that_of_the_blocks)
{
	static const uint8_t opcodes[] = {
		NVMEPEER_OP_READ, NVMEPEER_OP_WRITE, NVMEPEER_OP_COMPARE,
	};
	struct nvme_uring_cmd read = command(NVMEPEER_OP_READ, self->bytes, PER_BLOCK);
	struct nvme_uring_cmd longer;
	uint8_t *target = map_target();
	uint32_t i;

	ASSERT_EQ(TARGET, target);
	ASSERT_EQ(0, set_format(&self->bad, PER_BLOCK, 0));
	ASSERT_EQ(0, np_bad_bind(&self->bad, 1));
	for (i = 0; i < sizeof(opcodes); i++) {
		longer = command(opcodes[i], self->bytes, PER_BLOCK + 1);
		EXPECT_EQ(-EINVAL, run(self->bad.generic, &longer));
	}
	EXPECT_EQ(0, bytes_changed(target, 0));
	ASSERT_EQ(0, run(self->bad.generic, &read));
	for (i = 0; i < PER_BLOCK; i++)
		EXPECT_EQ(METADATA_BYTE, target[i]);
	EXPECT_EQ(0, bytes_changed(target, PER_BLOCK));
}

/* A separate buffer of the length of the blocks, at an address as of data. */
TEST_F(bad_metadata, submit_io_needs_aligned_metadata)
{
	struct nvme_user_io io = {
		.opcode = NVMEPEER_OP_READ,
		.addr = (uintptr_t)self->bytes,
		.metadata = (uintptr_t)TARGET,
	};

	ASSERT_EQ(TARGET, map_target());
	ASSERT_EQ(0, set_format(&self->bad, PER_BLOCK, 0));
	ASSERT_EQ(0, np_bad_bind(&self->bad, 1));
	EXPECT_EQ(0, np_ioctl(self->bad.generic, NVME_IOCTL_SUBMIT_IO, &io));
	EXPECT_EQ(PER_BLOCK, bytes_changed(TARGET, 0));
	io.metadata += 2;
	EXPECT_EQ(-EINVAL, np_ioctl(self->bad.generic, NVME_IOCTL_SUBMIT_IO, &io));
	io.metadata = 0;
	EXPECT_EQ(-EINVAL, np_ioctl(self->bad.generic, NVME_IOCTL_SUBMIT_IO, &io));
}

/* For a command of unknown layout the limit is the size of the driver's bounce buffer. */
TEST_F(bad_metadata, length_limit_for_unknown_commands)
{
	struct nvme_uring_cmd vendor = command(CMD_VENDOR, NULL, LONGEST);

	ASSERT_EQ(TARGET, map_target());
	ASSERT_EQ(0, set_format(&self->bad, PER_BLOCK, 0));
	ASSERT_EQ(0, np_bad_bind(&self->bad, 1));
	EXPECT_EQ(NVME_STATUS_DNR | NVME_SC_INVALID_OPCODE, run(self->bad.generic, &vendor));
	vendor.metadata_len++;
	EXPECT_EQ(-EINVAL, run(self->bad.generic, &vendor));
}

/* Metadata between the blocks has no buffer of its own. */
TEST_F(bad_metadata, interleaved_metadata_has_no_buffer)
{
	struct nvme_uring_cmd read = command(NVMEPEER_OP_READ, self->bytes, PER_BLOCK);

	ASSERT_EQ(TARGET, map_target());
	ASSERT_EQ(0, set_format(&self->bad, PER_BLOCK, 0));
	ASSERT_EQ(0, np_bad_identify(&self->bad, NVME_CNS_NAMESPACE, NS_FORMATTED, FORMATTED_INTERLEAVED));
	ASSERT_EQ(0, np_bad_bind(&self->bad, 1));
	ASSERT_EQ(0, np_bad_rule(&self->bad, 0, NP_IO_READ, BADCTRL_LIE, 0, BADCTRL_EVERY));
	read.data_len += PER_BLOCK;
	EXPECT_EQ(-EINVAL, run(self->bad.generic, &read));
	read.metadata = 0;
	EXPECT_EQ(0, run(self->bad.generic, &read));
	read.data_len--;
	EXPECT_EQ(-EINVAL, run(self->bad.generic, &read));
	EXPECT_EQ(1, np_bad_hits(&self->bad, 0));
}

/* A command that fails returns no metadata. */
TEST_F(bad_metadata, failed_read_returns_no_metadata)
{
	struct nvme_uring_cmd read = command(NVMEPEER_OP_READ, self->bytes, PER_BLOCK);
	struct io_uring_cqe *cqe;
	struct io_uring ring;

	ASSERT_EQ(TARGET, map_target());
	ASSERT_EQ(0, set_format(&self->bad, PER_BLOCK, 0));
	ASSERT_EQ(0, np_bad_bind(&self->bad, 1));
	ASSERT_EQ(0, np_bad_rule(&self->bad, 0, NP_IO_READ, BADCTRL_STATUS, NVME_SC_INTERNAL, BADCTRL_EVERY));
	EXPECT_EQ(NVME_SC_INTERNAL, run(self->bad.generic, &read));
	EXPECT_EQ(VICTIM_BYTE, TARGET[0]);
	ASSERT_EQ(0, submit(&ring, self->bad.generic, &read));
	ASSERT_EQ(0, io_uring_wait_cqe(&ring, &cqe));
	EXPECT_EQ(NVME_SC_INTERNAL, cqe->res);
	EXPECT_EQ(VICTIM_BYTE, TARGET[0]);
	io_uring_queue_exit(&ring);
}

/* io_uring takes another path to the same copy. */
TEST_F(bad_metadata, unreadable_metadata_is_refused)
{
	struct nvme_uring_cmd write = command(NVMEPEER_OP_WRITE, self->bytes, PER_BLOCK);
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

/*
 * With PRACT the controller generates and strips the protection information, so the
 * command has no metadata.
 */
TEST_F(bad_metadata, pract_needs_no_metadata)
{
	struct nvme_user_io io = {
		.opcode = NVMEPEER_OP_WRITE,
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
	io.opcode = NVMEPEER_OP_READ;
	EXPECT_EQ(0, np_ioctl(self->bad.generic, NVME_IOCTL_SUBMIT_IO, &io));
	EXPECT_EQ(0, memcmp(pattern, self->bytes, sizeof(pattern)));
	io.metadata = (uintptr_t)self->bytes;
	EXPECT_EQ(-EINVAL, np_ioctl(self->bad.generic, NVME_IOCTL_SUBMIT_IO, &io));
}

/* Metadata that is not, or not only, protection information is transferred with PRACT too. */
TEST_F(bad_metadata, pract_covers_protection_information_only)
{
	static const struct {
		uint8_t metadata, protection;
	} formats[] = { { 8, 0 }, { 16, 1 } };
	struct nvme_user_io io = {
		.opcode = NVMEPEER_OP_READ,
		.control = CONTROL_PRACT,
		.addr = (uintptr_t)self->bytes,
	};
	size_t i;

	for (i = 0; i < ARRAY_SIZE(formats); i++) {
		ASSERT_EQ(0, set_format(&self->bad, formats[i].metadata, formats[i].protection));
		ASSERT_EQ(0, np_bad_bind(&self->bad, 1));
		EXPECT_EQ(-EINVAL, np_ioctl(self->bad.generic, NVME_IOCTL_SUBMIT_IO, &io));
		ASSERT_EQ(0, np_bad_unbind(&self->bad));
	}
}

TEST_HARNESS_MAIN
