// SPDX-License-Identifier: GPL-2.0-only
/*
 * Hibernation that takes CPUs offline: it is refused while I/O does not end, as the block
 * layer would wait for a request in a queue of a CPU that goes offline.
 *
 * badctrl has a queue for each CPU with an IOMMU only.
 *
 * kernels: 7
 * long-kernels: 6.1 6.12 7
 * iommu: on
 * timeout: 180
 */
#include <errno.h>
#include <liburing.h>
#include <sched.h>
#include <stdlib.h>
#include <unistd.h>

#include "npbad.h"
#include "kselftest_harness.h"

/*
 * A read of badctrl's disk that was submitted on CPU 1, which np_hibernate() takes offline,
 * and of which no task waits for the end: that would keep the task from being frozen.
 */
struct pending {
	struct io_uring ring;
	uint8_t *bytes;
};

static int submit_on_last_cpu(struct pending *pending, int disk)
{
	struct io_uring_sqe *sqe;
	cpu_set_t before, last;
	int ret;

	CPU_ZERO(&last);
	CPU_SET(1, &last);
	if (posix_memalign((void **)&pending->bytes, NP_PAGE, NP_PAGE) ||
	    sched_getaffinity(0, sizeof(before), &before) ||
	    sched_setaffinity(0, sizeof(last), &last))
		return -errno;
	ret = io_uring_queue_init(1, &pending->ring, 0);
	if (!ret) {
		sqe = io_uring_get_sqe(&pending->ring);
		io_uring_prep_read(sqe, disk, pending->bytes, NP_PAGE, 0);
		ret = io_uring_submit(&pending->ring) == 1 ? 0 : -EIO;
	}
	sched_setaffinity(0, sizeof(before), &before);
	return ret;
}

/* The result of the read, or -ETIME. */
static int wait_pending(struct pending *pending)
{
	struct __kernel_timespec limit = { .tv_sec = NP_TIMEOUT_MS / 1000 };
	struct io_uring_cqe *cqe;

	return io_uring_wait_cqe_timeout(&pending->ring, &cqe, &limit) ?: cqe->res;
}

static void free_pending(struct pending *pending)
{
	io_uring_queue_exit(&pending->ring);
	free(pending->bytes);
}

FIXTURE(offline)
{
	struct np_bad bad;
	struct pending pending;
	int test;
	int log;
};

/* A second CPU, whose I/O queue no other CPU uses. */
FIXTURE_SETUP(offline)
{
	struct nvme_peer_info info;

	self->test = -1;
	if (np_bad_open(&self->bad) == -ENOENT)
		SKIP(return, "no badctrl in this guest");
	if (sysconf(_SC_NPROCESSORS_ONLN) < 2)
		SKIP(return, "one CPU");
	ASSERT_EQ(0, np_bad_bind(&self->bad, 1));
	ASSERT_EQ(0, np_info(self->bad.ctrl.fd, &info));
	ASSERT_LE(2, info.qids_cpu);
	self->log = np_log_open();
	ASSERT_LE(0, self->log);
	self->test = np_sleep_begin(self->bad.address);
	ASSERT_LE(0, self->test);
	ASSERT_EQ(0, np_sleep_take_cpus());
}

FIXTURE_TEARDOWN(offline)
{
	if (self->test < 0)
		return;
	np_sleep_end(self->test);
	close(self->log);
	free_pending(&self->pending);
	EXPECT_EQ(0, np_bad_close(&self->bad));
}

#define LIMIT_SECONDS	120

/* Stopping the controller would leave the read in a queue of a CPU that goes offline. */
TEST_F_TIMEOUT(offline, refused_while_command_does_not_end, LIMIT_SECONDS)
{
	ASSERT_EQ(0, np_bad_rule(&self->bad, 0, NP_IO_READ, BADCTRL_HOLD, 0, 1));
	ASSERT_EQ(0, submit_on_last_cpu(&self->pending, self->bad.disk));
	ASSERT_EQ(0, np_bad_wait_word(&self->bad, BADCTRL_HELD, 1));
	EXPECT_EQ(-EBUSY, np_hibernate());
	EXPECT_EQ(0, np_log_wait(self->log, "suspend refused: I/O in flight has not ended",
				 NP_TIMEOUT_MS));
	EXPECT_EQ(0, np_bad_generation(&self->bad));
	EXPECT_EQ(0, np_bad_set(&self->bad, BADCTRL_RELEASE, 1));
	EXPECT_EQ(NP_PAGE, wait_pending(&self->pending));
	EXPECT_EQ(0, np_hibernate());
	EXPECT_EQ(1, np_bad_wait_state(&self->bad, NVME_PEER_CTRL_LIVE));
	EXPECT_EQ(0, np_bad_read_disk(&self->bad, self->pending.bytes));
}

static int reset_by_link_error(const struct np_bad *bad)
{
	return np_pci_error(bad->address, NVMEP_TEST_ERROR_FROZEN) ?:
	       np_pci_error(bad->address, NVMEP_TEST_ERROR_SLOT_RESET) ?:
	       np_pci_error(bad->address, NVMEP_TEST_ERROR_RESUME);
}

/* The read waits for a reset, which waits for Identify. */
TEST_F_TIMEOUT(offline, refused_during_reset_with_pending_io, LIMIT_SECONDS)
{
	ASSERT_EQ(0, np_bad_rule(&self->bad, 0, NP_IO_READ, BADCTRL_HOLD, 0, 1));
	ASSERT_EQ(0, np_bad_rule(&self->bad, 1, NVME_ADMIN_IDENTIFY, BADCTRL_HOLD, 0, 1));
	ASSERT_EQ(0, submit_on_last_cpu(&self->pending, self->bad.disk));
	ASSERT_EQ(0, np_bad_wait_word(&self->bad, BADCTRL_HELD, 1));
	ASSERT_EQ(0, reset_by_link_error(&self->bad));
	/* The stop ended the read on the controller. */
	ASSERT_EQ(0, np_bad_wait_word(&self->bad, BADCTRL_HELD, 1));
	EXPECT_EQ(-EBUSY, np_hibernate());
	EXPECT_EQ(1, np_bad_hits(&self->bad, 1));
	EXPECT_EQ(0, np_bad_set(&self->bad, BADCTRL_RELEASE, 1));
	EXPECT_EQ(NP_PAGE, wait_pending(&self->pending));
	EXPECT_EQ(0, np_hibernate());
	EXPECT_EQ(0, np_bad_read_disk(&self->bad, self->pending.bytes));
}

TEST_HARNESS_MAIN
