// SPDX-License-Identifier: GPL-2.0-only
/*
 * What power off, reboot and kexec find: a controller that does nothing any more,
 * whoever was using it, and that the next owner can start.
 *
 * iommu: on
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "nptest.h"
#include "kselftest_harness.h"

#define ENTRIES		32U
#define PAGES		9U

FIXTURE(shutdown)
{
	struct np_ctrl ctrl;
	const volatile uint32_t *registers;
	int test;
};

FIXTURE_SETUP(shutdown)
{
	ASSERT_EQ(0, np_ctrl_open(&self->ctrl, "np0"));
	self->test = open(NVMEP_TEST_NODE, O_RDWR | O_CLOEXEC);
	ASSERT_LE(0, self->test);
	/* Kernels that guard their I/O memory do not let us look. */
	self->registers = np_registers_map(self->ctrl.address);
}

/* The driver lets go of what was shut down, and takes it again. */
FIXTURE_TEARDOWN(shutdown)
{
	np_registers_unmap(self->registers);
	close(self->test);
	np_ctrl_close(&self->ctrl);
	EXPECT_EQ(0, np_unbind(self->ctrl.address));
	ASSERT_EQ(0, np_ctrl_open(&self->ctrl, "np0"));
	EXPECT_EQ(0, np_qp_try(self->ctrl.fd, NP_TIMEOUT_MS));
	np_ctrl_close(&self->ctrl);
}

static int shut_down(int test, const struct np_ctrl *ctrl)
{
	struct nvme_peer_pci_address address = np_parse_address(ctrl->address);

	return np_ioctl(test, NVMEP_TEST_SHUTDOWN, &address);
}

static void check_stopped(struct __test_metadata *_metadata, FIXTURE_DATA(shutdown) *self)
{
	struct nvme_peer_qp_create create;
	struct nvme_peer_info info;

	ASSERT_EQ(0, np_info(self->ctrl.fd, &info));
	EXPECT_EQ(NVME_PEER_CTRL_DELETING, info.state);
	EXPECT_EQ(self->ctrl.info.generation + 1, info.generation);
	if (self->registers) {
		EXPECT_EQ(0, self->registers[NP_REGISTER_CC] & NP_CC_ENABLE);
		EXPECT_EQ(0, self->registers[NP_REGISTER_CSTS] & NP_CSTS_READY);
	}
	EXPECT_EQ(-ESHUTDOWN, np_qp_create(self->ctrl.fd, ENTRIES, &create));
	EXPECT_EQ(-ENODEV, np_ioctl(self->ctrl.fd, NVME_IOCTL_RESET, NULL));
}

TEST_F(shutdown, of_an_idle_controller)
{
	if (self->registers) {
		EXPECT_EQ(NP_CC_ENABLE, self->registers[NP_REGISTER_CC] & NP_CC_ENABLE);
		EXPECT_EQ(NP_CSTS_READY, self->registers[NP_REGISTER_CSTS] & NP_CSTS_READY);
	}
	ASSERT_EQ(0, shut_down(self->test, &self->ctrl));
	check_stopped(_metadata, self);
	/* Reboot calls a driver once; twice must do no harm. */
	ASSERT_EQ(0, shut_down(self->test, &self->ctrl));
	check_stopped(_metadata, self);
}

TEST_F(shutdown, under_io_of_the_cpu_and_a_peer)
{
	const struct nvme_peer_status *status;
	struct np_command command;
	struct np_buffer buffer;
	struct np_reader reader;
	struct np_qp qp;
	uint32_t i;

	ASSERT_EQ(0, np_buffer_open(&buffer, self->ctrl.fd, PAGES, 0));
	ASSERT_EQ(0, np_qp_open(&qp, self->ctrl.fd, ENTRIES));
	ASSERT_EQ(0, np_reader_start(&reader, &self->ctrl));
	for (i = 0; i < ENTRIES - 1; i++) {
		np_command_rw(&command, &buffer, NP_CMD_READ, NP_AREA(9), 0, (PAGES - 1) * NP_PAGE);
		np_qp_put(&qp, &command);
	}
	EXPECT_EQ(0, np_qp_ring(&qp));
	ASSERT_EQ(0, shut_down(self->test, &self->ctrl));
	check_stopped(_metadata, self);
	status = qp.status.at;
	EXPECT_LE(NVME_PEER_QP_FAILED, status->state);
	/* Nothing of it moves any more. */
	memset(buffer.bytes, 0x77, (PAGES - 1) * NP_PAGE);
	memset(qp.cq.at, 0x77, ENTRIES * sizeof(struct np_completion));
	np_store(qp.tail_doorbell, 1);
	np_sleep_ms(200);
	EXPECT_EQ(0x77, buffer.bytes[0]);
	EXPECT_EQ(0x77, buffer.bytes[(PAGES - 1) * NP_PAGE - 1]);
	EXPECT_EQ(0x77, *(uint8_t *)qp.cq.at);
	EXPECT_EQ(-EIO, np_reader_stop(&reader));
	np_qp_close(&qp);
	EXPECT_EQ(0, np_release(self->ctrl.fd, buffer.handle));
	np_buffer_close(&buffer);
}

TEST_HARNESS_MAIN
