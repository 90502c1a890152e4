// SPDX-License-Identifier: GPL-2.0-only
/*
 * Sleep with queue pairs of peers: refused while there is one, because nobody could
 * put it back; one that has ended does not count, though its file is open.
 *
 * Only the controller sleeps: a guest that does is without its file system then.
 *
 * iommu: off
 */
#include <errno.h>
#include <fcntl.h>
#include <unistd.h>

#include "nptest.h"
#include "kselftest_harness.h"

#define ENTRIES		8U
#define PAGES		4U

FIXTURE(suspend)
{
	struct np_ctrl ctrl;
	struct np_buffer buffer;
	struct nvme_peer_qp_create qp;
	struct nvme_peer_pci_address address;
	int test;
};

FIXTURE_SETUP(suspend)
{
	ASSERT_EQ(0, np_ctrl_open(&self->ctrl, "np0"));
	self->address = np_parse_address(self->ctrl.address);
	self->test = open(NVMEP_TEST_NODE, O_RDWR | O_CLOEXEC);
	ASSERT_LE(0, self->test);
	ASSERT_EQ(0, np_buffer_open(&self->buffer, self->ctrl.fd, PAGES, 0));
	ASSERT_EQ(0, np_qp_create(self->ctrl.fd, ENTRIES, &self->qp));
}

/* Whatever was refused or done, the controller works. */
FIXTURE_TEARDOWN(suspend)
{
	struct nvme_peer_info info;

	close(self->test);
	close(self->qp.qp_fd);
	EXPECT_EQ(0, np_ctrl_settle(self->ctrl.fd, &info, NP_TIMEOUT_MS));
	EXPECT_EQ(0, np_qp_try(self->ctrl.fd, NP_TIMEOUT_MS));
	np_buffer_close(&self->buffer);
	np_ctrl_close(&self->ctrl);
}

TEST_F(suspend, is_refused_while_a_queue_pair_lives)
{
	int ret = np_ioctl(self->test, NVMEP_TEST_SLEEP, &self->address);
	struct nvme_peer_qp_info info;

	if (ret == -EOPNOTSUPP)
		SKIP(return, "a kernel that does not sleep");
	EXPECT_EQ(-EBUSY, ret);
	EXPECT_EQ(0, np_qp_info(self->qp.qp_fd, &info));
	EXPECT_EQ(NVME_PEER_QP_LIVE, info.state);
}

/* Its memory was taken back; nobody has closed its file yet. */
TEST_F(suspend, is_not_refused_for_one_that_has_ended)
{
	struct nvmep_test_move move = { .fd = self->buffer.fd };
	struct nvme_peer_qp_info info;
	int64_t end = np_now_ms() + NP_TIMEOUT_MS;
	int ret;

	ASSERT_EQ(0, np_ioctl(self->test, NVMEP_TEST_MOVE, &move));
	do {
		ASSERT_EQ(0, np_qp_info(self->qp.qp_fd, &info));
	} while (info.state != NVME_PEER_QP_GONE && np_now_ms() < end);
	EXPECT_EQ(NVME_PEER_QP_GONE, info.state);
	ret = np_ioctl(self->test, NVMEP_TEST_SLEEP, &self->address);
	if (ret == -EOPNOTSUPP)
		SKIP(return, "a kernel that does not sleep");
	EXPECT_EQ(0, ret);
}

TEST_HARNESS_MAIN
