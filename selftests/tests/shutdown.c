// SPDX-License-Identifier: GPL-2.0-only
/*
 * Shutdown, as for power off, reboot and kexec: the controller is stopped while it is in
 * use, and the next driver can start it.
 *
 * iommu: on
 */
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "npbad.h"
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
	self->test = np_test_open();
	ASSERT_LE(0, self->test);
	/* Kernels with IO_STRICT_DEVMEM do not allow the mapping. */
	self->registers = np_registers_map(self->ctrl.address);
}

/* After a shutdown the driver can be unbound and bound again. */
FIXTURE_TEARDOWN(shutdown)
{
	np_registers_unmap(self->registers);
	close(self->test);
	np_ctrl_close(&self->ctrl);
	EXPECT_EQ(0, np_unbind(self->ctrl.address));
	ASSERT_EQ(0, np_ctrl_open(&self->ctrl, "np0"));
	EXPECT_EQ(0, np_qp_check(self->ctrl.fd, NP_TIMEOUT_MS));
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

TEST_F(shutdown, idle_controller)
{
	if (self->registers) {
		EXPECT_EQ(NP_CC_ENABLE, self->registers[NP_REGISTER_CC] & NP_CC_ENABLE);
		EXPECT_EQ(NP_CSTS_READY, self->registers[NP_REGISTER_CSTS] & NP_CSTS_READY);
	}
	ASSERT_EQ(0, shut_down(self->test, &self->ctrl));
	check_stopped(_metadata, self);
	/* Reboot calls shutdown once; a second call must be harmless. */
	ASSERT_EQ(0, shut_down(self->test, &self->ctrl));
	check_stopped(_metadata, self);
}

TEST_F(shutdown, under_cpu_and_peer_io)
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
		np_command_rw(&command, &buffer, NVMEPEER_OP_READ, NP_AREA(9), 0,
			      (PAGES - 1) * NP_PAGE);
		np_qp_put(&qp, &command);
	}
	EXPECT_EQ(0, np_qp_ring_doorbell(&qp));
	ASSERT_EQ(0, shut_down(self->test, &self->ctrl));
	check_stopped(_metadata, self);
	status = qp.status.at;
	EXPECT_LE(NVME_PEER_QP_FAILED, status->state);
	/* The controller does not write any more. */
	memset(buffer.bytes, 0x77, (PAGES - 1) * NP_PAGE);
	memset(qp.cq.at, 0x77, ENTRIES * sizeof(struct np_completion));
	/* The next kernel may use the same queue IDs. */
	EXPECT_EQ(np_qp_revoked(), np_store(qp.tail_doorbell, 1));
	np_sleep_ms(200);
	EXPECT_EQ(0x77, buffer.bytes[0]);
	EXPECT_EQ(0x77, buffer.bytes[(PAGES - 1) * NP_PAGE - 1]);
	EXPECT_EQ(0x77, *(uint8_t *)qp.cq.at);
	EXPECT_EQ(-EIO, np_reader_stop(&reader));
	np_qp_close(&qp);
	EXPECT_EQ(0, np_release(self->ctrl.fd, buffer.handle));
	np_buffer_close(&buffer);
}

/*
 * A reset has stopped the controller without a shutdown, and its start waits for a command.
 * Shutdown does not wait for that command, and flushes the cache.
 */
TEST(shutdown_during_reset_flushes_cache)
{
	int test = np_test_open();
	struct np_bad bad;
	pthread_t reset;
	uint8_t *bytes;
	int64_t start;
	void *ret;

	if (np_bad_open(&bad) == -ENOENT)
		SKIP(return, "no badctrl in this guest");
	ASSERT_LE(0, test);
	ASSERT_EQ(0, posix_memalign((void **)&bytes, NP_PAGE, NP_PAGE));
	ASSERT_EQ(0, np_bad_bind(&bad, 1));
	memset(bytes, 0x5c, NP_PAGE);
	ASSERT_EQ(0, np_disk_write(bad.disk, bytes, NP_PAGE, 0));
	ASSERT_EQ(0, np_bad_rule(&bad, 0, NVME_ADMIN_IDENTIFY, BADCTRL_HOLD, 0, 1));
	ASSERT_EQ(0, pthread_create(&reset, NULL, np_bad_reset_thread, &bad));
	EXPECT_EQ(0, np_bad_wait_word(&bad, BADCTRL_HELD, 1));
	start = np_now_ms();
	EXPECT_EQ(0, shut_down(test, &bad.ctrl));
	EXPECT_GT(10000, np_now_ms() - start);
	pthread_join(reset, &ret);
	EXPECT_EQ(-EIO, (intptr_t)ret);
	EXPECT_EQ(0, np_bad_unbind(&bad));
	EXPECT_EQ(0, np_bad_cut_power(&bad));
	EXPECT_EQ(0, np_bad_bind(&bad, 1));
	EXPECT_EQ(0, np_bad_read_disk(&bad, bytes));
	EXPECT_EQ(0x5c, bytes[0]);
	EXPECT_EQ(0, np_bad_close(&bad));
	close(test);
	free(bytes);
}

static void *read_disk(void *bad)
{
	static uint8_t page[NP_PAGE] __attribute__((aligned(NP_PAGE)));

	return (void *)(intptr_t)np_bad_read_disk(bad, page);
}

/* A reset has stopped the controller and waits for the function: I/O that waits for it fails. */
TEST(shutdown_during_reset_fails_io)
{
	int test = np_test_open(), log = np_log_open();
	pthread_t reset, reader;
	struct np_bad bad;
	void *ret;

	if (np_bad_open(&bad) == -ENOENT)
		SKIP(return, "no badctrl in this guest");
	ASSERT_LE(0, test);
	ASSERT_LE(0, log);
	ASSERT_EQ(0, np_bad_bind(&bad, 1));
	ASSERT_EQ(0, np_bad_set(&bad, BADCTRL_MODE, BADCTRL_ABSENT));
	ASSERT_EQ(0, pthread_create(&reset, NULL, np_bad_reset_thread, &bad));
	EXPECT_EQ(0, np_log_wait(log, "function does not respond", NP_TIMEOUT_MS));
	ASSERT_EQ(0, pthread_create(&reader, NULL, read_disk, &bad));
	np_sleep_ms(200);
	EXPECT_EQ(0, shut_down(test, &bad.ctrl));
	pthread_join(reset, &ret);
	EXPECT_EQ(-EIO, (intptr_t)ret);
	EXPECT_EQ(0, np_join(reader, &ret, NP_TIMEOUT_MS));
	EXPECT_GT(0, (intptr_t)ret);
	EXPECT_EQ(0, np_bad_set(&bad, BADCTRL_MODE, BADCTRL_WORKS));
	EXPECT_EQ(0, np_bad_close(&bad));
	close(test);
	close(log);
}

TEST_HARNESS_MAIN
