// SPDX-License-Identifier: GPL-2.0-only
/*
 * A controller reset increments the generation, quiesces peer queue pairs and reports
 * that in their status pages; the CPU's own I/O continues without an error.
 *
 * iommu: on off
 * topology: root single
 * relay: 7 debug
 * mediated: 7
 */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "nptest.h"
#include "spare.h"
#include "kselftest_harness.h"

NP_KEEPS_DISK()

#define ENTRIES		64U
#define PAGES		33U
#define RESETS		5

FIXTURE(reset)
{
	struct np_ctrl ctrl;
	char before[NP_OBJECTS];
};

FIXTURE_SETUP(reset)
{
	ASSERT_EQ(0, np_ctrl_open(&self->ctrl, "np0"));
	ASSERT_EQ(0, np_objects(&self->ctrl, self->before));
}

FIXTURE_TEARDOWN(reset)
{
	EXPECT_EQ(0, np_objects_wait(&self->ctrl, self->before, NP_TIMEOUT_MS));
	np_ctrl_close(&self->ctrl);
}

/* The call returns when commands are accepted again. */
static int reset(const struct np_ctrl *ctrl, struct nvme_peer_info *info)
{
	int ret = np_ioctl(ctrl->fd, NVME_IOCTL_RESET, NULL) ?: np_info(ctrl->fd, info);

	return ret ?: info->state == NVME_PEER_CTRL_LIVE ? 0 : -EAGAIN;
}

TEST_F(reset, increments_generation)
{
	struct nvme_peer_info first, second;

	ASSERT_EQ(0, np_info(self->ctrl.fd, &first));
	ASSERT_EQ(0, reset(&self->ctrl, &second));
	EXPECT_EQ(first.generation + 1, second.generation);
	EXPECT_EQ(first.qids_peer_free, second.qids_peer_free);
}

TEST_F(reset, quiesces_queue_pairs)
{
	const struct nvme_peer_status *status;
	struct nvme_peer_qp_export out;
	struct nvme_peer_qp_info info;
	struct nvme_peer_info now;
	struct np_qp qp;

	ASSERT_EQ(0, np_qp_open(&qp, self->ctrl.fd, ENTRIES));
	status = qp.status.at;
	ASSERT_EQ(0, reset(&self->ctrl, &now));
	EXPECT_EQ(NVME_PEER_QP_QUIESCED, status->state);
	EXPECT_EQ(now.generation, status->generation);
	EXPECT_NE(0, status->reason);
	ASSERT_EQ(0, np_qp_info(qp.fd, &info));
	EXPECT_EQ(status->state, info.state);
	/* The entries belonged to an earlier generation. */
	EXPECT_EQ(qp.create.generation, info.generation);
	EXPECT_NE(now.generation, info.generation);
	EXPECT_EQ(-EAGAIN, np_export_fd(qp.fd, NVME_PEER_EXPORT_SQ, 0, &out));
	np_qp_close(&qp);
}

TEST_F(reset, allows_new_queue_pairs)
{
	struct np_command flush = { .opcode = NVMEPEER_OP_FLUSH, .nsid = 1 };
	struct nvme_peer_info now;
	struct np_qp qp;
	int i;

	for (i = 0; i < RESETS; i++) {
		ASSERT_EQ(0, reset(&self->ctrl, &now));
		ASSERT_EQ(0, np_qp_open(&qp, self->ctrl.fd, ENTRIES));
		EXPECT_EQ(now.generation, qp.create.generation);
		EXPECT_EQ(0, np_qp_run(&qp, &flush, NP_TIMEOUT_MS));
		np_qp_close(&qp);
	}
}

/* The controller must not write to rings of an earlier generation. */
TEST_F(reset, lost_queue_memory_is_not_written)
{
	struct np_command command;
	struct nvme_peer_info now;
	struct np_buffer buffer;
	struct np_qp qp;
	uint32_t i;

	ASSERT_EQ(0, np_buffer_open(&buffer, self->ctrl.fd, PAGES, 0));
	ASSERT_EQ(0, np_qp_open(&qp, self->ctrl.fd, ENTRIES));
	for (i = 0; i < ENTRIES - 1; i++) {
		np_command_rw(&command, &buffer, NVMEPEER_OP_READ, NP_AREA(4), 0,
			      (PAGES - 1) * NP_PAGE);
		np_qp_put(&qp, &command);
	}
	np_qp_ring_doorbell(&qp);
	ASSERT_EQ(0, reset(&self->ctrl, &now));
	memset(qp.cq.at, 0x77, ENTRIES * sizeof(struct np_completion));
	memset(buffer.bytes, 0x77, NP_PAGE);
	/* A late doorbell store of a peer that has not read the status page yet. */
	np_store(qp.tail_doorbell, 1);
	np_sleep_ms(200);
	EXPECT_EQ(0x77, *((uint8_t *)qp.cq.at + ENTRIES * sizeof(struct np_completion) - 1));
	EXPECT_EQ(0x77, *(uint8_t *)qp.cq.at);
	EXPECT_EQ(0x77, buffer.bytes[0]);
	np_qp_close(&qp);
	EXPECT_EQ(0, np_release(self->ctrl.fd, buffer.handle));
	np_buffer_close(&buffer);
}

TEST_F_TIMEOUT(reset, cpu_io_survives, 60)
{
	struct nvme_peer_info now;
	struct np_reader reader;
	int i;

	ASSERT_EQ(0, np_reader_start(&reader, &self->ctrl));
	for (i = 0; i < RESETS; i++) {
		EXPECT_EQ(0, reset(&self->ctrl, &now));
		EXPECT_EQ(0, np_reader_wait_read(&reader));
	}
	EXPECT_EQ(0, np_reader_stop(&reader));
}

TEST_HARNESS_MAIN
