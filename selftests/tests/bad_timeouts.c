// SPDX-License-Identifier: GPL-2.0-only
/*
 * Commands that are not answered: aborted once, then the controller is fenced
 * and started again; whoever waited gets an answer, peers are told, and the data
 * pages stay the controller's until it has stopped.
 *
 * kernels: 6.1 7 debug
 * long-kernels: 6.1 6.12 7 debug kcsan
 * iommu: on
 * timeout: 120
 */
#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>

#include "badknob.h"
#include "kselftest_harness.h"

#define ENTRIES		16U
#define CTRL_ACL	258		/* in Identify Controller */

FIXTURE(bad_timeouts)
{
	struct np_bad bad;
	uint8_t *bytes;
	struct np_qp qp;
	const struct nvme_peer_status *status;
	int generation;
};

FIXTURE_SETUP(bad_timeouts)
{
	self->qp.fd = -1;
	if (np_bad_open(&self->bad) == -ENOENT)
		SKIP(return, "no misbehaving controller in this guest");
	ASSERT_EQ(0, np_bad_hurry());
	ASSERT_EQ(0, posix_memalign((void **)&self->bytes, NP_PAGE, NP_PAGE));
	ASSERT_EQ(0, np_bad_bind(&self->bad, 1));
	ASSERT_EQ(0, np_qp_open(&self->qp, self->bad.ctrl.fd, ENTRIES));
	self->status = self->qp.status.at;
	self->generation = np_bad_generation(&self->bad);
}

FIXTURE_TEARDOWN(bad_timeouts)
{
	if (!self->bad.address[0])
		return;
	if (self->qp.fd >= 0)
		np_qp_close(&self->qp);
	EXPECT_EQ(0, np_bad_close(&self->bad));
	free(self->bytes);
}

/* Is a queue pair as a reset leaves it? */
static bool failed(const struct nvme_peer_status *status, uint32_t generation)
{
	return status->state == NVME_PEER_QP_FAILED && status->reason == EIO &&
	       status->generation == generation;
}

TEST_F(bad_timeouts, an_aborted_command_ends_with_the_status_of_the_controller)
{
	ASSERT_EQ(0, np_bad_rule(&self->bad, 0, NP_IO_READ, BADCTRL_HOLD, 0, 1));
	ASSERT_EQ(0, np_bad_rule(&self->bad, 1, NP_ADMIN_ABORT, BADCTRL_COUNT, 0, BADCTRL_EVERY));
	EXPECT_EQ(NP_STATUS_ABORTED, np_bad_read(&self->bad, self->bytes, NP_SHORT_MS));
	EXPECT_EQ(1, np_bad_hits(&self->bad, 1));
	/* Nothing else happened: no reset. */
	EXPECT_EQ(0, np_bad_read(&self->bad, self->bytes, 0));
	EXPECT_EQ(self->generation, np_bad_wait_state(&self->bad, NVME_PEER_CTRL_LIVE));
	EXPECT_EQ(NVME_PEER_QP_LIVE, self->status->state);
}

TEST_F(bad_timeouts, an_aborted_command_of_the_disk_is_tried_again)
{
	ASSERT_EQ(0, np_bad_rule(&self->bad, 0, NP_IO_READ, BADCTRL_HOLD, 0, 1));
	EXPECT_EQ(0, np_bad_read_disk(&self->bad, self->bytes));
	EXPECT_EQ(0, self->bytes[0]);
	EXPECT_EQ(self->generation, np_bad_wait_state(&self->bad, NVME_PEER_CTRL_LIVE));
}

TEST_F(bad_timeouts, an_answer_to_another_command_does_not_count)
{
	/* First a tag in use with another count, then a tag beyond all. */
	ASSERT_EQ(0, np_bad_rule(&self->bad, 0, NP_IO_READ, BADCTRL_WRONG_ID, 0x1000, 1));
	EXPECT_EQ(0, np_bad_read_disk(&self->bad, self->bytes));
	ASSERT_EQ(0, np_bad_rule(&self->bad, 0, NP_IO_READ, BADCTRL_WRONG_ID, 0xc00, 1));
	EXPECT_EQ(NP_STATUS_ABORTED, np_bad_read(&self->bad, self->bytes, NP_SHORT_MS));
	EXPECT_EQ(self->generation, np_bad_wait_state(&self->bad, NVME_PEER_CTRL_LIVE));
}

TEST_F(bad_timeouts, a_second_answer_does_not_count)
{
	int i;

	ASSERT_EQ(0, np_bad_rule(&self->bad, 0, NP_IO_READ, BADCTRL_TWICE, 0, 3));
	for (i = 0; i < 6; i++)
		EXPECT_EQ(0, np_bad_read_disk(&self->bad, self->bytes));
	EXPECT_EQ(self->generation, np_bad_wait_state(&self->bad, NVME_PEER_CTRL_LIVE));
}

/* Sum of the last column of debugfs' queues. */
static unsigned int lost_interrupts(struct np_bad *bad)
{
	unsigned int sum = 0, lost;
	char path[128], text[4096], *line;

	snprintf(path, sizeof(path), "/sys/kernel/debug/nvme-peer/nvmep%d/queues",
		 bad->ctrl.instance);
	if (np_read_file(path, text, sizeof(text)))
		return 0;
	for (line = strchr(text, '\n'); line && line[1]; line = strchr(line + 1, '\n'))
		if (sscanf(line, " %*u %*s %*u %*u %*u %*u %*u %u", &lost) == 1)
			sum += lost;
	return sum;
}

/* The count follows the completion. */
static int wait_lost_interrupts(struct np_bad *bad, unsigned int count)
{
	int64_t end = np_now_ms() + NP_TIMEOUT_MS;

	while (lost_interrupts(bad) != count) {
		if (np_now_ms() > end)
			return -ETIMEDOUT;
		np_sleep_ms(10);
	}
	return 0;
}

TEST_F(bad_timeouts, a_completion_without_interrupt_is_found)
{
	EXPECT_EQ(0, lost_interrupts(&self->bad));
	ASSERT_EQ(0, np_bad_rule(&self->bad, 0, NP_IO_READ, BADCTRL_QUIET, 0, 1));
	ASSERT_EQ(0, np_bad_rule(&self->bad, 1, NP_ADMIN_ABORT, BADCTRL_COUNT, 0, BADCTRL_EVERY));
	EXPECT_EQ(0, np_bad_read(&self->bad, self->bytes, NP_SHORT_MS));
	EXPECT_EQ(0, wait_lost_interrupts(&self->bad, 1));
	EXPECT_EQ(0, np_bad_hits(&self->bad, 1));
	EXPECT_EQ(self->generation, np_bad_wait_state(&self->bad, NVME_PEER_CTRL_LIVE));
}

/* --- the fence ------------------------------------------------------------- */

/* The page that the read was to fill is filled before the controller stops. */
TEST_F(bad_timeouts, a_refused_abort_leads_to_a_reset)
{
	ASSERT_EQ(0, np_bad_rule(&self->bad, 0, NP_IO_READ, BADCTRL_HOLD, 0, 1));
	ASSERT_EQ(0, np_bad_rule(&self->bad, 1, NP_ADMIN_ABORT, BADCTRL_STATUS,
				 NP_STATUS_INTERNAL, 1));
	EXPECT_EQ(-EINTR, np_bad_read(&self->bad, self->bytes, NP_SHORT_MS));
	EXPECT_EQ(1, np_bad_hits(&self->bad, 1));
	EXPECT_EQ(self->generation + 1, np_bad_wait_state(&self->bad, NVME_PEER_CTRL_LIVE));
	EXPECT_TRUE(failed(self->status, self->generation + 1));
	EXPECT_EQ(0, np_bad_read(&self->bad, self->bytes, 0));
}

TEST_F(bad_timeouts, an_abort_without_answer_leads_to_a_reset)
{
	ASSERT_EQ(0, np_bad_rule(&self->bad, 0, NP_IO_READ, BADCTRL_HOLD, 0, 1));
	ASSERT_EQ(0, np_bad_rule(&self->bad, 1, NP_ADMIN_ABORT, BADCTRL_HOLD, 0, 1));
	EXPECT_EQ(-EINTR, np_bad_read(&self->bad, self->bytes, NP_SHORT_MS));
	EXPECT_EQ(self->generation + 1, np_bad_wait_state(&self->bad, NVME_PEER_CTRL_LIVE));
	EXPECT_TRUE(failed(self->status, self->generation + 1));
}

struct reader {
	struct np_bad *bad;
	uint8_t bytes[NP_BLOCK];
	int result;
};

static void *read_in_background(void *argument)
{
	struct reader *reader = argument;

	reader->result = np_bad_read(reader->bad, reader->bytes, NP_SHORT_MS);
	return NULL;
}

/* It takes one Abort at a time, and does not answer that: the other waits for the reset. */
TEST_F(bad_timeouts, aborts_are_as_many_as_the_controller_takes)
{
	struct reader readers[2] = { { .bad = &self->bad }, { .bad = &self->bad } };
	pthread_t threads[2];
	int i;

	ASSERT_EQ(0, np_bad_identify(&self->bad, 1, CTRL_ACL, 0));
	ASSERT_EQ(0, np_ioctl(self->bad.ctrl.fd, NVME_IOCTL_RESET, NULL));
	EXPECT_EQ(self->generation + 1, np_bad_wait_state(&self->bad, NVME_PEER_CTRL_LIVE));
	ASSERT_EQ(0, np_bad_rule(&self->bad, 0, NP_IO_READ, BADCTRL_HOLD, 0, 2));
	ASSERT_EQ(0, np_bad_rule(&self->bad, 1, NP_ADMIN_ABORT, BADCTRL_HOLD, 0, BADCTRL_EVERY));
	for (i = 0; i < 2; i++)
		ASSERT_EQ(0, pthread_create(&threads[i], NULL, read_in_background, &readers[i]));
	for (i = 0; i < 2; i++) {
		pthread_join(threads[i], NULL);
		EXPECT_EQ(-EINTR, readers[i].result);
	}
	EXPECT_EQ(1, np_bad_hits(&self->bad, 1));
	EXPECT_EQ(self->generation + 2, np_bad_wait_state(&self->bad, NVME_PEER_CTRL_LIVE));
}

TEST_F(bad_timeouts, what_completes_while_it_stops_counts)
{
	ASSERT_EQ(0, np_bad_set(&self->bad, BADCTRL_LATE, 1));
	ASSERT_EQ(0, np_bad_rule(&self->bad, 0, NP_IO_READ, BADCTRL_HOLD, 0, 1));
	ASSERT_EQ(0, np_bad_rule(&self->bad, 1, NP_ADMIN_ABORT, BADCTRL_STATUS,
				 NP_STATUS_INTERNAL, 1));
	EXPECT_EQ(0, np_bad_read(&self->bad, self->bytes, NP_SHORT_MS));
	EXPECT_EQ(self->generation + 1, np_bad_wait_state(&self->bad, NVME_PEER_CTRL_LIVE));
}

TEST_F(bad_timeouts, an_admin_command_without_answer_leads_to_a_reset)
{
	ASSERT_EQ(0, np_bad_rule(&self->bad, 0, NP_ADMIN_IDENTIFY, BADCTRL_HOLD, 0, 1));
	EXPECT_EQ(-EINTR, np_bad_ask(&self->bad, NP_SHORT_MS));
	EXPECT_EQ(self->generation + 1, np_bad_wait_state(&self->bad, NVME_PEER_CTRL_LIVE));
	EXPECT_TRUE(failed(self->status, self->generation + 1));
	EXPECT_EQ(0, np_bad_ask(&self->bad, 0));
}

TEST_F(bad_timeouts, a_fatal_status_leads_to_a_reset)
{
	ASSERT_EQ(0, np_bad_rule(&self->bad, 0, NP_IO_READ, BADCTRL_CRASH, 0, 1));
	ASSERT_EQ(0, np_bad_rule(&self->bad, 1, NP_ADMIN_ABORT, BADCTRL_COUNT, 0, BADCTRL_EVERY));
	/* Sent again after the reset. */
	EXPECT_EQ(0, np_bad_read_disk(&self->bad, self->bytes));
	EXPECT_EQ(0, self->bytes[0]);
	EXPECT_EQ(0, np_bad_hits(&self->bad, 1));
	EXPECT_EQ(self->generation + 1, np_bad_wait_state(&self->bad, NVME_PEER_CTRL_LIVE));
	EXPECT_TRUE(failed(self->status, self->generation + 1));
}

TEST_HARNESS_MAIN
