// SPDX-License-Identifier: GPL-2.0-only
/*
 * Polled queues: an IOPOLL ring's commands go to polled queues and are completed without
 * interrupts, on the block device and by passthrough. Other commands complete by
 * interrupt. A reset cancels polled commands too, and what waits for I/O polls for it.
 *
 * iommu: on
 * timeout: 60
 */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <liburing.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "npbad.h"
#include "kselftest_harness.h"

#define PARAMETER	"/sys/module/nvme_peer/parameters/poll_queues"
#define ENTRIES		32U
#define BYTES		(ENTRIES * NP_PAGE)
#define ROUNDS		20

FIXTURE(poll)
{
	struct np_ctrl ctrl;
	int generic;
	int block;
	uint8_t *bytes;
	uint8_t *back;
};

/* The parameter is read when a controller is bound. */
static int bind_with(struct np_ctrl *ctrl, const char *queues)
{
	int ret = np_ctrl_open(ctrl, "np0");

	if (ret)
		return ret;
	np_ctrl_close(ctrl);
	return np_write_file(PARAMETER, queues) ?: np_unbind(ctrl->address) ?:
	       np_bind(ctrl->address) ?: np_ctrl_open(ctrl, "np0");
}

FIXTURE_SETUP(poll)
{
	ASSERT_EQ(0, bind_with(&self->ctrl, "1"));
	self->generic = np_open_node(&self->ctrl, "/dev/ngp%dn1", O_RDWR);
	ASSERT_LE(0, self->generic);
	self->block = np_open_node(&self->ctrl, "/dev/nvmep%dn1", O_RDWR | O_DIRECT);
	ASSERT_LE(0, self->block);
	ASSERT_EQ(0, posix_memalign((void **)&self->bytes, NP_PAGE, BYTES));
	ASSERT_EQ(0, posix_memalign((void **)&self->back, NP_PAGE, BYTES));
	np_pattern(self->bytes, BYTES, NP_AREA(9), 9);
	memset(self->back, 0, BYTES);
}

FIXTURE_TEARDOWN(poll)
{
	free(self->bytes);
	free(self->back);
	close(self->generic);
	close(self->block);
	np_ctrl_close(&self->ctrl);
	EXPECT_EQ(0, bind_with(&self->ctrl, "0"));
	np_ctrl_close(&self->ctrl);
}

/**
 * struct counts - completions so far, from the file "queues"
 * @polled: on queues without a vector
 * @announced: on I/O queues with a vector
 * @queues: without a vector
 */
struct counts {
	uint64_t polled;
	uint64_t announced;
	unsigned int queues;
};

static struct counts count(const struct np_ctrl *ctrl)
{
	char path[64], text[4096], *line, *rest = text;
	struct counts counts = {};
	uint64_t completions;
	int vector;

	snprintf(path, sizeof(path), "/sys/kernel/debug/nvme-peer/nvmep%d/queues", ctrl->instance);
	if (np_read_file(path, text, sizeof(text)) < 0)
		return counts;
	while ((line = strsep(&rest, "\n"))) {
		if (sscanf(line, "%*u io %*u %d %*u %*u %" SCNu64, &vector, &completions) != 2)
			continue;
		if (vector < 0) {
			counts.queues++;
			counts.polled += completions;
		} else {
			counts.announced += completions;
		}
	}
	return counts;
}

static struct io_uring_sqe *next_entry(struct io_uring *ring, size_t size)
{
	struct io_uring_sqe *sqe = io_uring_get_sqe(ring);

	/* Never fails: tests do not queue more than the ring holds. */
	if (!sqe)
		abort();
	memset(sqe, 0, size);
	return sqe;
}

static void pass(struct io_uring *ring, int fd, uint8_t opcode, uint8_t *bytes, uint32_t page)
{
	struct nvme_uring_cmd cmd = {
		.opcode = opcode,
		.nsid = 1,
		.addr = (uintptr_t)bytes + page * NP_PAGE,
		.data_len = NP_PAGE,
		.cdw10 = (NP_AREA(9) + page * NP_PAGE) / NP_BLOCK,
		.cdw12 = NP_PAGE / NP_BLOCK - 1,
	};
	struct io_uring_sqe *sqe = next_entry(ring, 2 * sizeof(*sqe));

	sqe->opcode = IORING_OP_URING_CMD;
	sqe->fd = fd;
	sqe->cmd_op = NVME_URING_CMD_IO;
	sqe->user_data = page;
	memcpy(sqe->cmd, &cmd, sizeof(cmd));
}

/* Reap a batch of completions, each once; returns the last error, if any. */
static int take(struct io_uring *ring, int expected)
{
	uint8_t seen[ENTRIES] = {};
	struct io_uring_cqe *cqe;
	int ret = 0;
	uint32_t i;

	for (i = 0; i < ENTRIES; i++) {
		int err = io_uring_submit_and_wait(ring, 1) < 0 ? -EIO :
			  io_uring_wait_cqe(ring, &cqe);

		if (err)
			return err;
		if (cqe->user_data >= ENTRIES || seen[cqe->user_data]++)
			return -EBADMSG;
		if (cqe->res != expected)
			ret = cqe->res ?: -EIO;
		io_uring_cqe_seen(ring, cqe);
	}
	return ret;
}

static int pass_all(struct io_uring *ring, int fd, uint8_t opcode, uint8_t *bytes)
{
	uint32_t i;

	for (i = 0; i < ENTRIES; i++)
		pass(ring, fd, opcode, bytes, i);
	return take(ring, 0);
}

static int block_all(struct io_uring *ring, int fd, bool write, uint8_t *bytes)
{
	uint32_t i;

	for (i = 0; i < ENTRIES; i++) {
		struct io_uring_sqe *sqe = next_entry(ring, sizeof(*sqe));
		uint64_t offset = NP_AREA(9) + i * NP_PAGE;

		if (write)
			io_uring_prep_write(sqe, fd, bytes + i * NP_PAGE, NP_PAGE, offset);
		else
			io_uring_prep_read(sqe, fd, bytes + i * NP_PAGE, NP_PAGE, offset);
		sqe->user_data = i;
	}
	return take(ring, NP_PAGE);
}

#define BIG	(IORING_SETUP_SQE128 | IORING_SETUP_CQE32)

TEST_F(poll, passthrough_is_polled)
{
	struct counts before = count(&self->ctrl), after;
	struct io_uring ring;

	EXPECT_EQ(1, before.queues);
	ASSERT_EQ(0, io_uring_queue_init(ENTRIES, &ring, BIG | IORING_SETUP_IOPOLL));
	ASSERT_EQ(0, pass_all(&ring, self->generic, NVMEPEER_OP_WRITE, self->bytes));
	ASSERT_EQ(0, pass_all(&ring, self->generic, NVMEPEER_OP_READ, self->back));
	EXPECT_EQ(0, memcmp(self->bytes, self->back, BYTES));
	after = count(&self->ctrl);
	EXPECT_EQ(2 * ENTRIES, after.polled - before.polled);
	EXPECT_EQ(before.announced, after.announced);
	io_uring_queue_exit(&ring);
}

TEST_F(poll, block_io_is_polled)
{
	struct counts before = count(&self->ctrl), after;
	struct io_uring ring;

	ASSERT_EQ(0, io_uring_queue_init(ENTRIES, &ring, IORING_SETUP_IOPOLL));
	ASSERT_EQ(0, block_all(&ring, self->block, true, self->bytes));
	ASSERT_EQ(0, block_all(&ring, self->block, false, self->back));
	EXPECT_EQ(0, memcmp(self->bytes, self->back, BYTES));
	after = count(&self->ctrl);
	/* Adjacent requests are merged. */
	EXPECT_LE(2, after.polled - before.polled);
	EXPECT_EQ(before.announced, after.announced);
	io_uring_queue_exit(&ring);
}

TEST_F(poll, unpolled_io_uses_interrupts)
{
	struct counts before = count(&self->ctrl), after;
	struct io_uring ring;

	ASSERT_EQ(0, io_uring_queue_init(ENTRIES, &ring, BIG));
	ASSERT_EQ(0, pass_all(&ring, self->generic, NVMEPEER_OP_WRITE, self->bytes));
	ASSERT_EQ(0, pass_all(&ring, self->generic, NVMEPEER_OP_READ, self->back));
	EXPECT_EQ(0, memcmp(self->bytes, self->back, BYTES));
	after = count(&self->ctrl);
	EXPECT_EQ(before.polled, after.polled);
	EXPECT_EQ(2 * ENTRIES, after.announced - before.announced);
	io_uring_queue_exit(&ring);
}

/* Two rings poll one queue, and each reaps the other's completions too. */
TEST_F(poll, rings_share_a_queue)
{
	struct io_uring rings[2];
	int round, i;
	uint32_t k;

	for (i = 0; i < 2; i++)
		ASSERT_EQ(0, io_uring_queue_init(ENTRIES, &rings[i], BIG | IORING_SETUP_IOPOLL));
	ASSERT_EQ(0, pass_all(&rings[0], self->generic, NVMEPEER_OP_WRITE, self->bytes));
	for (round = 0; round < ROUNDS; round++) {
		memset(self->back, 0, BYTES);
		for (i = 0; i < 2; i++) {
			for (k = 0; k < ENTRIES; k++)
				pass(&rings[i], self->generic, NVMEPEER_OP_READ, self->back, k);
			ASSERT_EQ(ENTRIES, io_uring_submit(&rings[i]));
		}
		for (i = 0; i < 2; i++)
			ASSERT_EQ(0, take(&rings[!i], 0));
		ASSERT_EQ(0, memcmp(self->bytes, self->back, BYTES));
	}
	for (i = 0; i < 2; i++)
		io_uring_queue_exit(&rings[i]);
}

static void *resets(void *argument)
{
	struct np_ctrl *ctrl = argument;
	int i;

	for (i = 0; i < 5; i++)
		if (np_ioctl(ctrl->fd, NVME_IOCTL_RESET, NULL))
			return ctrl;
	return NULL;
}

/* Passthrough is cancelled or refused; the block device waits. */
TEST_F(poll, reset_cancels_polled_io)
{
	struct io_uring ring, small;
	pthread_t thread;
	void *failed;
	int ret;

	ASSERT_EQ(0, io_uring_queue_init(ENTRIES, &ring, BIG | IORING_SETUP_IOPOLL));
	ASSERT_EQ(0, io_uring_queue_init(ENTRIES, &small, IORING_SETUP_IOPOLL));
	ASSERT_EQ(0, pass_all(&ring, self->generic, NVMEPEER_OP_WRITE, self->bytes));
	ASSERT_EQ(0, pthread_create(&thread, NULL, resets, &self->ctrl));
	do {
		ret = pass_all(&ring, self->generic, NVMEPEER_OP_READ, self->back);
		ASSERT_NE(-EBADMSG, ret);
		ASSERT_EQ(0, block_all(&small, self->block, false, self->back));
		ASSERT_EQ(0, memcmp(self->bytes, self->back, BYTES));
	} while (pthread_tryjoin_np(thread, &failed));
	EXPECT_EQ(NULL, failed);
	ASSERT_EQ(0, pass_all(&ring, self->generic, NVMEPEER_OP_READ, self->back));
	io_uring_queue_exit(&ring);
	io_uring_queue_exit(&small);
}

/* --- a submitter that does not poll ------------------------------------------------ */

FIXTURE(unpolled)
{
	struct np_bad bad;
	struct io_uring ring;
	uint8_t *bytes;
};

/* The completion entry of a read is in a polled queue. */
static int leave_completion(FIXTURE_DATA(unpolled) *self)
{
	struct nvme_uring_cmd cmd = {
		.opcode = NVMEPEER_OP_READ,
		.nsid = 1,
		.addr = (uintptr_t)self->bytes,
		.data_len = NP_BLOCK,
		.timeout_ms = 120000,
	};
	struct io_uring_sqe *sqe = next_entry(&self->ring, 2 * sizeof(*sqe));

	sqe->opcode = IORING_OP_URING_CMD;
	sqe->fd = self->bad.generic;
	sqe->cmd_op = NVME_URING_CMD_IO;
	memcpy(sqe->cmd, &cmd, sizeof(cmd));
	/* Held, so that the submission does not poll it. */
	return np_bad_rule(&self->bad, 0, NP_IO_READ, BADCTRL_HOLD, 0, 1) ?:
	       (io_uring_submit(&self->ring) == 1 ? 0 : -EIO) ?:
	       np_bad_wait_word(&self->bad, BADCTRL_HELD, 1) ?:
	       np_bad_set(&self->bad, BADCTRL_RELEASE, 1);
}

FIXTURE_SETUP(unpolled)
{
	if (np_bad_open(&self->bad) == -ENOENT)
		SKIP(return, "no badctrl in this guest");
	ASSERT_EQ(0, np_write_file(PARAMETER, "1"));
	ASSERT_EQ(0, np_bad_bind(&self->bad, 1));
	ASSERT_EQ(0, posix_memalign((void **)&self->bytes, NP_PAGE, NP_PAGE));
	ASSERT_EQ(0, io_uring_queue_init(ENTRIES, &self->ring, BIG | IORING_SETUP_IOPOLL));
	ASSERT_EQ(0, leave_completion(self));
}

FIXTURE_TEARDOWN(unpolled)
{
	if (!self->bad.address[0])
		return;
	EXPECT_EQ(0, np_write_file(PARAMETER, "0"));
	EXPECT_EQ(0, np_bad_close(&self->bad));
	free(self->bytes);
}

static void expect_ends(struct __test_metadata *_metadata, FIXTURE_DATA(unpolled) *self,
			void *(*routine)(void *))
{
	pthread_t thread;
	void *result;
	int late;

	ASSERT_EQ(0, pthread_create(&thread, NULL, routine, &self->bad));
	late = np_join(thread, &result, 10000);
	EXPECT_EQ(0, late);
	/* Polls. */
	io_uring_queue_exit(&self->ring);
	if (late)
		pthread_join(thread, &result);
	EXPECT_EQ(0, (intptr_t)result);
}

static void *format_thread(void *argument)
{
	struct nvme_admin_cmd format = { .opcode = NVME_ADMIN_FORMAT, .nsid = 1 };
	struct np_bad *bad = argument;
	int ret = np_bad_rule(bad, 1, NVME_ADMIN_FORMAT, BADCTRL_LIE, 0, 1);

	return (void *)(intptr_t)(ret ?: np_admin(bad->ctrl.fd, &format));
}

TEST_F(unpolled, format_completes_it)
{
	expect_ends(_metadata, self, format_thread);
}

static void *remove_namespace_thread(void *argument)
{
	struct np_bad *bad = argument;

	return (void *)(intptr_t)(np_bad_set(bad, BADCTRL_ACTIVE, 0) ?:
				  np_bad_set(bad, BADCTRL_EVENT, EVENT_NAMESPACES) ?:
				  np_bad_wait_namespaces(bad, 0));
}

TEST_F(unpolled, removal_of_namespace_completes_it)
{
	expect_ends(_metadata, self, remove_namespace_thread);
}

/* The polled queue is the first that a controller takes away. Block I/O completes by another. */
TEST_F(unpolled, lost_queue_does_not_fail_block_io)
{
	struct io_uring_cqe *cqe;
	struct io_uring_sqe *sqe;
	struct io_uring ring;

	ASSERT_EQ(0, io_uring_queue_init(ENTRIES, &ring, IORING_SETUP_IOPOLL));
	sqe = next_entry(&ring, sizeof(*sqe));
	io_uring_prep_read(sqe, self->bad.disk, self->bytes, NP_PAGE, 0);
	ASSERT_EQ(0, np_bad_rule(&self->bad, 0, NP_IO_READ, BADCTRL_HOLD, 0, 1));
	ASSERT_EQ(1, io_uring_submit(&ring));
	EXPECT_EQ(0, np_bad_wait_word(&self->bad, BADCTRL_HELD, 1));
	EXPECT_EQ(0, np_bad_set(&self->bad, BADCTRL_GRANT, 1));
	EXPECT_EQ(0, np_ioctl(self->bad.ctrl.fd, NVME_IOCTL_RESET, NULL));
	ASSERT_EQ(0, io_uring_wait_cqe(&ring, &cqe));
	EXPECT_EQ(NP_PAGE, cqe->res);
	io_uring_queue_exit(&ring);
	io_uring_queue_exit(&self->ring);
}

static void *unbind_thread(void *argument)
{
	struct np_bad *bad = argument;

	return (void *)(intptr_t)np_unbind(bad->address);
}

TEST_F(unpolled, unbind_completes_it)
{
	expect_ends(_metadata, self, unbind_thread);
}

TEST_HARNESS_MAIN
