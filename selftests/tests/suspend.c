// SPDX-License-Identifier: GPL-2.0-only
/*
 * Sleep, as the kernel does it: refused while there is a queue pair whose owner has not
 * agreed to put it back; one that has ended does not count, though its file is open. Who
 * reads and writes the disk does not notice.
 *
 * The controller sleeps, and with it all that is no PCI function: a guest that slept as
 * a whole would be without its file systems.
 *
 * kernels: 7
 * long-kernels: 6.1 6.12 7
 * iommu: off
 */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "badknob.h"
#include "kselftest_harness.h"

#define ENTRIES		8U
#define PAGES		4U

FIXTURE(suspend)
{
	struct np_ctrl ctrl;
	struct np_buffer buffer;
	struct np_qp qp;
	struct nvme_peer_info before;
	int test;
	int log;
};

FIXTURE_SETUP(suspend)
{
	ASSERT_EQ(0, np_ctrl_open(&self->ctrl, "np0"));
	ASSERT_EQ(0, np_buffer_open(&self->buffer, self->ctrl.fd, PAGES, 0));
	ASSERT_EQ(0, np_qp_open(&self->qp, self->ctrl.fd, ENTRIES));
	ASSERT_EQ(0, np_info(self->ctrl.fd, &self->before));
	self->log = np_log_open();
	ASSERT_LE(0, self->log);
	self->test = np_sleep_begin(self->ctrl.address);
	ASSERT_LE(0, self->test);
}

/* Whatever was refused or done, the controller works. */
FIXTURE_TEARDOWN(suspend)
{
	struct nvme_peer_info info;

	np_sleep_end(self->test);
	close(self->log);
	np_qp_close(&self->qp);
	EXPECT_EQ(0, np_ctrl_settle(self->ctrl.fd, &info, NP_TIMEOUT_MS));
	EXPECT_EQ(0, np_qp_try(self->ctrl.fd, NP_TIMEOUT_MS));
	np_buffer_close(&self->buffer);
	np_ctrl_close(&self->ctrl);
}

static int flush(struct np_qp *qp)
{
	struct np_command command = { .opcode = NP_CMD_FLUSH, .nsid = 1 };

	return np_qp_run(qp, &command, NP_TIMEOUT_MS);
}

TEST_F(suspend, is_refused_while_a_queue_pair_lives)
{
	const struct nvme_peer_status *status = self->qp.status.at;
	struct nvme_peer_info info;

	EXPECT_EQ(-EBUSY, np_fall_asleep());
	EXPECT_EQ(0, np_log_wait(self->log, "peers have queue pairs: not going to sleep",
				 NP_TIMEOUT_MS));
	EXPECT_EQ(NVME_PEER_QP_LIVE, status->state);
	EXPECT_EQ(0, flush(&self->qp));
	ASSERT_EQ(0, np_info(self->ctrl.fd, &info));
	EXPECT_EQ(NVME_PEER_CTRL_LIVE, info.state);
	EXPECT_EQ(self->before.generation, info.generation);
}

/* Its owner was promised that it may come back. */
TEST_F(suspend, is_refused_while_a_queue_pair_waits)
{
	struct nvme_peer_info info;

	ASSERT_EQ(0, np_ioctl(self->ctrl.fd, NVME_IOCTL_RESET, NULL));
	ASSERT_EQ(0, np_ctrl_settle(self->ctrl.fd, &info, NP_TIMEOUT_MS));
	EXPECT_EQ(-EBUSY, np_fall_asleep());
	ASSERT_EQ(0, np_qp_rearm(&self->qp, NP_TIMEOUT_MS));
	EXPECT_EQ(0, flush(&self->qp));
}

static uint64_t disk_word(struct np_qp *qp, const struct np_buffer *buffer, int *ret)
{
	struct np_command command;

	memset(buffer->bytes, 0xee, NP_PAGE);
	np_command_rw(&command, buffer, NP_CMD_READ, NP_AREA(2), 0, NP_PAGE);
	*ret = np_qp_run(qp, &command, NP_TIMEOUT_MS);
	return *(uint64_t *)buffer->bytes;
}

/* Twice; what a reset of the function does to it, and no more. */
TEST_F(suspend, costs_a_queue_pair_a_loss_if_its_owner_agreed)
{
	struct nvme_peer_info info;
	const struct nvme_peer_status *status;
	struct np_qp qp;
	uint64_t before;
	int ret, i;

	np_qp_close(&self->qp);
	ASSERT_EQ(0, np_qp_open_with(&qp, self->ctrl.fd, ENTRIES, NVME_PEER_QP_ALLOW_SLEEP));
	status = qp.status.at;
	before = disk_word(&qp, &self->buffer, &ret);
	EXPECT_EQ(0, ret);
	for (i = 1; i <= 2; i++) {
		ASSERT_EQ(0, np_fall_asleep());
		ASSERT_EQ(0, np_ctrl_settle(self->ctrl.fd, &info, NP_TIMEOUT_MS));
		EXPECT_EQ(NVME_PEER_QP_QUIESCED, status->state);
		EXPECT_EQ(self->before.generation + i, status->generation);
		EXPECT_EQ(-EFAULT, np_store(qp.tail_doorbell, 0));
		ASSERT_EQ(0, np_qp_rearm(&qp, NP_TIMEOUT_MS));
		EXPECT_EQ(before, disk_word(&qp, &self->buffer, &ret));
		EXPECT_EQ(0, ret);
	}
	np_qp_close(&qp);
}

/* As sleep does. */
TEST_F(suspend, hibernation_asks_the_owners)
{
	struct nvme_peer_info info;
	const struct nvme_peer_status *status;
	struct np_qp qp;
	int ret;

	EXPECT_EQ(-EBUSY, np_hibernate());
	EXPECT_EQ(0, flush(&self->qp));
	np_qp_close(&self->qp);
	ASSERT_EQ(0, np_qp_open_with(&qp, self->ctrl.fd, ENTRIES, NVME_PEER_QP_ALLOW_SLEEP));
	status = qp.status.at;
	ASSERT_EQ(0, np_hibernate());
	ASSERT_EQ(0, np_ctrl_settle(self->ctrl.fd, &info, NP_TIMEOUT_MS));
	EXPECT_EQ(NVME_PEER_QP_QUIESCED, status->state);
	EXPECT_EQ(self->before.generation + 1, status->generation);
	ASSERT_EQ(0, np_qp_rearm(&qp, NP_TIMEOUT_MS));
	disk_word(&qp, &self->buffer, &ret);
	EXPECT_EQ(0, ret);
	np_qp_close(&qp);
}

/* Each of them has to. */
TEST_F(suspend, is_refused_if_one_of_two_owners_agreed)
{
	struct np_qp qp;

	ASSERT_EQ(0, np_qp_open_with(&qp, self->ctrl.fd, ENTRIES, NVME_PEER_QP_ALLOW_SLEEP));
	EXPECT_EQ(-EBUSY, np_fall_asleep());
	EXPECT_EQ(0, flush(&qp));
	EXPECT_EQ(0, flush(&self->qp));
	np_qp_close(&qp);
}

/* Its memory was taken back; nobody has closed its file yet. */
TEST_F(suspend, is_not_refused_for_one_that_has_ended)
{
	struct nvmep_test_move move = { .fd = self->buffer.fd };
	const struct nvme_peer_status *status = self->qp.status.at;
	struct nvme_peer_info info;

	ASSERT_EQ(0, np_ioctl(self->test, NVMEP_TEST_MOVE, &move));
	ASSERT_EQ(0, np_qp_wait_state(&self->qp, NVME_PEER_QP_GONE, NP_TIMEOUT_MS));
	EXPECT_EQ(0, np_fall_asleep());
	ASSERT_EQ(0, np_ctrl_settle(self->ctrl.fd, &info, NP_TIMEOUT_MS));
	EXPECT_EQ(self->before.generation + 1, info.generation);
	EXPECT_EQ(info.generation, status->generation);
}

/* Twice: what the first one leaves behind does not spoil the second. */
TEST_F(suspend, is_not_noticed_by_who_uses_the_disk)
{
	struct nvme_peer_info info;
	struct np_reader reader;
	uint32_t i;

	np_qp_close(&self->qp);
	ASSERT_EQ(0, np_reader_start(&reader, &self->ctrl));
	for (i = 1; i <= 2; i++) {
		EXPECT_EQ(0, np_fall_asleep());
		EXPECT_EQ(0, np_reader_goes_on(&reader));
		ASSERT_EQ(0, np_ctrl_settle(self->ctrl.fd, &info, NP_TIMEOUT_MS));
		EXPECT_EQ(self->before.generation + i, info.generation);
		EXPECT_EQ(self->before.qids_cpu, info.qids_cpu);
		EXPECT_EQ(0, np_qp_try(self->ctrl.fd, NP_TIMEOUT_MS));
	}
	EXPECT_EQ(0, np_reader_stop(&reader));
}

/* As before power off: it may be the last that it hears. */
TEST(a_controller_that_sleeps_has_nothing_in_its_cache)
{
	uint8_t *bytes;
	struct np_bad bad;
	int test;

	if (np_bad_open(&bad) == -ENOENT)
		SKIP(return, "no misbehaving controller in this guest");
	ASSERT_EQ(0, posix_memalign((void **)&bytes, NP_PAGE, NP_PAGE));
	ASSERT_EQ(0, np_bad_bind(&bad, 1));
	memset(bytes, 0x5a, NP_PAGE);
	ASSERT_EQ(0, np_disk_write(bad.disk, bytes, NP_PAGE, 0));
	test = np_sleep_begin(bad.address);
	EXPECT_LE(0, test);
	EXPECT_EQ(0, np_fall_asleep());
	np_sleep_end(test);
	EXPECT_EQ(0, np_bad_cut_power(&bad));
	EXPECT_EQ(0, np_bad_read_disk(&bad, bytes));
	EXPECT_EQ(0x5a, bytes[0]);
	EXPECT_EQ(0, np_bad_close(&bad));
	free(bytes);
}

TEST_HARNESS_MAIN
