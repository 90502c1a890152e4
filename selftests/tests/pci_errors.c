// SPDX-License-Identifier: GPL-2.0-only
/*
 * PCI Express errors, injected by QEMU below a root port. A correctable error is ignored,
 * a non-fatal error stops nothing, a fatal error resets the link and with it the
 * controller, and a link that stays down fails the controller, but nothing else.
 *
 * iommu: on
 * timeout: 240
 * relay: 7
 * long-mediated: 7
 */
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "nptest.h"
#include "kselftest_harness.h"

#define ENTRIES		16U
/* The kernel waits seconds for a link, and the debug kernel is slow. */
#define RECOVERY_MS	60000
#define RECOVERY_TIMEOUT	"/sys/module/nvme_peer/parameters/recovery_timeout"
/* The ports above np0 and np1; selftests/lib/cell.sh explains why np1's differs. */
#define PORT		"rp1"
#define HOPELESS_PORT	"rp3"

FIXTURE(errors)
{
	struct np_ctrl ctrl;
	char before[NP_OBJECTS];
	struct nvme_peer_info info;
	int log;
};

static int open_stage(FIXTURE_DATA(errors) *self, const char *serial)
{
	int ret = np_ctrl_open(&self->ctrl, serial);

	ret = ret ?: np_info(self->ctrl.fd, &self->info);
	return ret ?: np_objects(&self->ctrl, self->before);
}

FIXTURE_SETUP(errors)
{
	ASSERT_EQ(0, open_stage(self, "np0"));
	self->log = np_log_open();
	ASSERT_LE(0, self->log);
}

/* Remove the dead function and rescan: the same controller works again. */
static int bring_back(const struct np_ctrl *ctrl)
{
	return np_surprise_remove(ctrl->address) ?: np_rescan(ctrl->address) ?: np_bind(ctrl->address);
}

/* Restores a function that a test lost. */
FIXTURE_TEARDOWN(errors)
{
	struct nvme_peer_info now;

	if (np_ctrl_wait_live(self->ctrl.fd, &now, NP_TIMEOUT_MS) == -ENODEV)
		bring_back(&self->ctrl);
	np_ctrl_close(&self->ctrl);
	close(self->log);
}

static int flush(struct np_qp *qp)
{
	struct np_command command = { .opcode = NVMEPEER_OP_FLUSH, .nsid = 1 };

	return np_qp_run(qp, &command, NP_TIMEOUT_MS);
}

/* A queue pair that existed before the error keeps running. */
static void check_harmless(struct __test_metadata *_metadata, FIXTURE_DATA(errors) *self,
			   const char *command, const char *said)
{
	const struct nvme_peer_status *status;
	struct nvme_peer_info now;
	struct np_qp qp;

	ASSERT_EQ(0, np_qp_open(&qp, self->ctrl.fd, ENTRIES));
	status = qp.status.at;
	ASSERT_EQ(0, np_monitor(command));
	EXPECT_EQ(0, np_log_wait(self->log, said, RECOVERY_MS));
	EXPECT_EQ(NVME_PEER_QP_LIVE, status->state);
	EXPECT_EQ(0, flush(&qp));
	np_qp_close(&qp);
	ASSERT_EQ(0, np_info(self->ctrl.fd, &now));
	EXPECT_EQ(NVME_PEER_CTRL_LIVE, now.state);
	EXPECT_EQ(self->info.generation, now.generation);
	EXPECT_EQ(0, np_objects_wait(&self->ctrl, self->before, NP_TIMEOUT_MS));
}

TEST_F_TIMEOUT(errors, corrected_error_is_ignored, 120)
{
	/* Bit 0 of the Correctable Error Status: Receiver Error. */
	check_harmless(_metadata, self, "pcie_aer_inject_error -c " PORT " 1", "severity=Correct");
}

TEST_F_TIMEOUT(errors, nonfatal_error_stops_nothing, 120)
{
	check_harmless(_metadata, self, "pcie_aer_inject_error " PORT " POISON_TLP",
		       "device recovery successful");
}

/*
 * The state that a function loses with a link reset has to be restored each time, so the
 * second error is tested too.
 */
TEST_F_TIMEOUT(errors, repeated_fatal_errors_reset_controller, 240)
{
	const struct nvme_peer_status *status;
	struct nvme_peer_info now;
	struct np_storer storer;
	struct np_reader reader;
	struct np_qp qp;
	uint32_t i;

	ASSERT_EQ(0, np_reader_start(&reader, &self->ctrl));
	for (i = 1; i <= 2; i++) {
		ASSERT_EQ(0, np_qp_open(&qp, self->ctrl.fd, ENTRIES));
		status = qp.status.at;
		EXPECT_EQ(0, flush(&qp));
		ASSERT_EQ(0, np_storer_start(&storer, &qp));
		ASSERT_EQ(0, np_monitor("pcie_aer_inject_error " PORT " MALF_TLP"));
		EXPECT_EQ(0, np_log_wait(self->log, "link frozen: stopping", RECOVERY_MS));
		/* The doorbells are revoked before the driver waits for anything. */
		EXPECT_EQ(0, np_storer_wait(&storer, NP_TIMEOUT_MS));
		np_storer_stop(&storer);
		EXPECT_EQ(0, np_log_wait(self->log, "device recovery successful", RECOVERY_MS));
		ASSERT_EQ(0, np_ctrl_wait_live(self->ctrl.fd, &now, NP_TIMEOUT_MS)) {
			TH_LOG("error %u: state %u", i, now.state);
		}
		EXPECT_EQ(self->info.generation + i, now.generation);
		EXPECT_EQ(NVME_PEER_QP_QUIESCED, status->state);
		EXPECT_EQ(now.generation, status->generation);
		np_qp_close(&qp);
	}
	ASSERT_EQ(0, np_qp_open(&qp, self->ctrl.fd, ENTRIES));
	EXPECT_EQ(0, flush(&qp));
	np_qp_close(&qp);
	/* The CPU's reads waited and then continued. */
	EXPECT_EQ(0, np_reader_stop(&reader));
	EXPECT_EQ(0, np_objects_wait(&self->ctrl, self->before, NP_TIMEOUT_MS));
}

/*
 * A function reset between two errors changes the saved state that the second one
 * restores.
 */
TEST_F_TIMEOUT(errors, fatal_error_after_function_reset, 240)
{
	struct nvme_peer_info now;
	struct np_qp qp;
	char path[128];

	snprintf(path, sizeof(path), "/sys/bus/pci/devices/%s/reset", self->ctrl.address);
	ASSERT_EQ(0, np_write_file(path, "1"));
	ASSERT_EQ(0, np_monitor("pcie_aer_inject_error " PORT " MALF_TLP"));
	EXPECT_EQ(0, np_log_wait(self->log, "device recovery successful", RECOVERY_MS));
	ASSERT_EQ(0, np_ctrl_wait_live(self->ctrl.fd, &now, NP_TIMEOUT_MS));
	EXPECT_EQ(self->info.generation + 2, now.generation);
	ASSERT_EQ(0, np_qp_open(&qp, self->ctrl.fd, ENTRIES));
	EXPECT_EQ(0, flush(&qp));
	np_qp_close(&qp);
}

/* Success means that the controller came back. */
static void *reset_thread(void *fd)
{
	struct nvme_peer_info now;
	int ret = np_ioctl(*(int *)fd, NVME_IOCTL_RESET, NULL) ?: np_info(*(int *)fd, &now);

	return (void *)(intptr_t)(ret ?: now.state == NVME_PEER_CTRL_LIVE ? 0 : -EAGAIN);
}

/*
 * Route interrupts to CPU 0, because the thread stalled on CPU 1 blocks it; error
 * handling runs meanwhile.
 */
static int leave_room(bool leave)
{
	return system(leave ? "for irq in /proc/irq/[0-9]*; do"
			      " echo 0 >$irq/smp_affinity_list; done 2>/dev/null;"
			      " echo 2 >/sys/devices/virtual/workqueue/cpumask" :
			      "for irq in /proc/irq/[0-9]*; do"
			      " echo 0-1 >$irq/smp_affinity_list; done 2>/dev/null;"
			      " echo 3 >/sys/devices/virtual/workqueue/cpumask");
}

static int stall_at(const char *function, const char *after)
{
	struct nvmep_test_stall stall = { .any_thread = 1 };

	snprintf(stall.function, sizeof(stall.function), "%s", function);
	snprintf(stall.after, sizeof(stall.after), "%s", after);
	return np_stall(&stall);
}

/*
 * The link fails when a reset enters @function after @after; the reset continues when
 * error recovery enters @then or has ended. Both end in bounded time.
 */
static void fail_in_reset(struct __test_metadata *_metadata, FIXTURE_DATA(errors) *self,
			  const char *function, const char *after, const char *then)
{
	int reset = stall_at(function, after), recovery = -1;
	struct nvme_peer_info now;
	pthread_t thread;
	struct np_qp qp;
	void *ret;

	ASSERT_LE(0, reset);
	ASSERT_EQ(0, pthread_create(&thread, NULL, reset_thread, &self->ctrl.fd));
	EXPECT_EQ(0, np_wait_stalled(reset));
	if (then)
		ASSERT_LE(0, recovery = stall_at(then, ""));
	EXPECT_EQ(0, np_monitor("pcie_aer_inject_error " PORT " MALF_TLP"));
	EXPECT_EQ(0, np_log_wait(self->log, "link frozen: stopping", RECOVERY_MS));
	np_sleep_ms(500);
	close(reset);
	np_sleep_ms(500);
	close(recovery);
	EXPECT_EQ(0, np_log_wait(self->log, "device recovery successful", RECOVERY_MS));
	pthread_join(thread, &ret);
	/* The link may fail right after the change to LIVE, with which the reset ended. */
	EXPECT_TRUE(!ret || !strcmp(function, "nvmep_async_event_submit")) {
		TH_LOG("%s: reset %d", function, (int)(intptr_t)ret);
	}
	EXPECT_EQ(0, np_ctrl_wait_live(self->ctrl.fd, &now, NP_TIMEOUT_MS)) {
		TH_LOG("%s: state %u", function, now.state);
	}
	ASSERT_EQ(0, np_qp_open(&qp, self->ctrl.fd, ENTRIES));
	EXPECT_EQ(0, flush(&qp));
	np_qp_close(&qp);
}

/*
 * The link fails before the controller is started, when it must not be started any more;
 * during the start; after the start and before it is set LIVE; at the transition to LIVE,
 * where recovery must not lose its own state change; and after it.
 */
TEST_F_TIMEOUT(errors, fatal_error_during_reset, 240)
{
	ASSERT_EQ(0, leave_room(true));
	fail_in_reset(_metadata, self, "nvmep_ctrl_start", "", "pci_bus_error_reset");
	fail_in_reset(_metadata, self, "nvmep_qids_grant", "", NULL);
	fail_in_reset(_metadata, self, "nvmep_ctrl_set_live", "", NULL);
	fail_in_reset(_metadata, self, "nvmep_ctrl_set_state", "nvmep_ctrl_set_live", NULL);
	fail_in_reset(_metadata, self, "nvmep_async_event_submit", "", NULL);
	ASSERT_EQ(0, leave_room(false));
}

/* --- orders of calls that QEMU's errors do not cause ------------------------------- */

static int handle_error(const struct np_ctrl *ctrl, uint32_t step)
{
	return np_pci_error(ctrl->address, step);
}

/* Another function asked for the reset, so this one gets no error_detected(). */
TEST_F_TIMEOUT(errors, slot_reset_of_live_controller, 60)
{
	const struct nvme_peer_status *status;
	struct nvme_peer_info now;
	struct np_reader reader;
	struct np_qp qp;

	ASSERT_EQ(0, np_qp_open(&qp, self->ctrl.fd, ENTRIES));
	status = qp.status.at;
	ASSERT_EQ(0, np_reader_start(&reader, &self->ctrl));
	EXPECT_EQ(0, handle_error(&self->ctrl, NVMEP_TEST_ERROR_SLOT_RESET));
	EXPECT_EQ(NVME_PEER_QP_QUIESCED, status->state);
	EXPECT_EQ(np_qp_revoked(), np_store(qp.tail_doorbell, 0));
	EXPECT_EQ(0, handle_error(&self->ctrl, NVMEP_TEST_ERROR_RESUME));
	ASSERT_EQ(0, np_ctrl_wait_live(self->ctrl.fd, &now, NP_TIMEOUT_MS));
	EXPECT_EQ(self->info.generation + 1, now.generation);
	EXPECT_EQ(0, np_reader_wait_read(&reader));
	EXPECT_EQ(0, np_reader_stop(&reader));
	ASSERT_EQ(0, np_qp_rearm(&qp, NP_TIMEOUT_MS));
	EXPECT_EQ(0, flush(&qp));
	np_qp_close(&qp);
}

#define CONFIG_COMMAND	0x04
#define COMMAND_MASTER	4U
#define CONFIG_BAR0	0x10

/* A word of config space: its value, and a store of 0 as a reset does. */
static int config(const struct np_ctrl *ctrl, off_t offset, uint32_t *value, bool clear)
{
	uint32_t zero = 0;
	char path[128];
	int fd, ret;

	snprintf(path, sizeof(path), "/sys/bus/pci/devices/%s/config", ctrl->address);
	fd = open(path, O_RDWR | O_CLOEXEC);
	if (fd < 0)
		return -errno;
	ret = clear ? pwrite(fd, &zero, 4, offset) : pread(fd, value, 4, offset);
	close(fd);
	return ret == 4 ? 0 : -EIO;
}

/*
 * The link fails again before the controller is LIVE: config space is restored again, except for
 * bus mastering, with which queued DMA of a controller that was not stopped by itself would go on.
 */
TEST_F_TIMEOUT(errors, each_slot_reset_restores_config_space, 60)
{
	uint32_t before, after = 0, command = 0;
	struct nvme_peer_info now;
	int i;

	ASSERT_EQ(0, config(&self->ctrl, CONFIG_BAR0, &before, false));
	for (i = 0; i < 2; i++) {
		EXPECT_EQ(0, handle_error(&self->ctrl, NVMEP_TEST_ERROR_FROZEN));
		EXPECT_EQ(0, config(&self->ctrl, CONFIG_BAR0, NULL, true));
		EXPECT_EQ(0, handle_error(&self->ctrl, NVMEP_TEST_ERROR_SLOT_RESET));
		EXPECT_EQ(0, config(&self->ctrl, CONFIG_BAR0, &after, false));
		EXPECT_EQ(before, after);
		EXPECT_EQ(0, config(&self->ctrl, CONFIG_COMMAND, &command, false));
		EXPECT_EQ(0, command & COMMAND_MASTER);
	}
	EXPECT_EQ(0, handle_error(&self->ctrl, NVMEP_TEST_ERROR_RESUME));
	ASSERT_EQ(0, np_ctrl_wait_live(self->ctrl.fd, &now, NP_TIMEOUT_MS));
}

static void *fail_for_good(void *ctrl)
{
	return (void *)(intptr_t)handle_error(ctrl, NVMEP_TEST_ERROR_PERMANENT);
}

/* An owner that re-arms while the doorbells are being revoked does not get them back. */
TEST_F_TIMEOUT(errors, rearm_does_not_undo_revocation, 60)
{
	struct nvmep_test_stall stall = {
		.any_thread = 1, .function = "nvmep_ctrl_set_state",
		.after = "nvmep_qp_revoke_doorbells",
	};
	struct nvme_peer_info now;
	struct np_qp qp;
	pthread_t thread;
	int handler;

	ASSERT_EQ(0, np_qp_open(&qp, self->ctrl.fd, ENTRIES));
	ASSERT_EQ(0, np_ioctl(self->ctrl.fd, NVME_IOCTL_RESET, NULL));
	ASSERT_EQ(0, np_ctrl_wait_live(self->ctrl.fd, &now, NP_TIMEOUT_MS));
	handler = np_stall(&stall);
	ASSERT_LE(0, handler);
	ASSERT_EQ(0, leave_room(true));
	ASSERT_EQ(0, pthread_create(&thread, NULL, fail_for_good, &self->ctrl));
	np_sleep_ms(500);
	np_qp_rearm(&qp, 1000);
	close(handler);
	pthread_join(thread, NULL);
	EXPECT_EQ(0, leave_room(false));
	EXPECT_EQ(np_qp_revoked(), np_store(qp.tail_doorbell, 0));
	np_qp_close(&qp);
}

static int wait_dead(int fd)
{
	int64_t end = np_now_ms() + RECOVERY_MS;
	struct nvme_peer_info info;
	int ret;

	do {
		ret = np_info(fd, &info);
		if (ret || info.state == NVME_PEER_CTRL_DEAD)
			return ret;
		np_sleep_ms(10);
	} while (np_now_ms() < end);
	return -ETIMEDOUT;
}

/*
 * Newer kernels notify the driver that the link is lost; with older ones the driver fails
 * the controller after a timeout, which a timeout of 0 makes happen with any kernel.
 */
static void check_lost(struct __test_metadata *_metadata, FIXTURE_DATA(errors) *self,
		       const char *timeout)
{
	struct np_command command = { .opcode = NVMEPEER_OP_FLUSH, .nsid = 1 };
	const struct nvme_peer_status *status;
	struct nvme_peer_qp_create create;
	struct nvme_peer_info info;
	struct np_storer storer;
	struct np_reader reader;
	char usual[16];
	struct np_qp qp;
	int ret;

	np_ctrl_close(&self->ctrl);
	ASSERT_EQ(0, open_stage(self, "np1"));
	ASSERT_EQ(0, np_reader_start(&reader, &self->ctrl));
	ASSERT_EQ(0, np_qp_open(&qp, self->ctrl.fd, ENTRIES));
	status = qp.status.at;
	ASSERT_EQ(0, np_read_file(RECOVERY_TIMEOUT, usual, sizeof(usual)));
	ASSERT_EQ(0, np_write_file(RECOVERY_TIMEOUT, timeout));
	ASSERT_EQ(0, np_storer_start(&storer, &qp));
	ASSERT_EQ(0, np_monitor("pcie_aer_inject_error " HOPELESS_PORT " MALF_TLP"));
	ret = wait_dead(self->ctrl.fd);
	/* Doorbells are revoked after the change of state. */
	EXPECT_EQ(0, np_storer_wait(&storer, NP_TIMEOUT_MS));
	np_storer_stop(&storer);
	EXPECT_EQ(0, np_write_file(RECOVERY_TIMEOUT, usual));
	EXPECT_EQ(0, ret);
	EXPECT_EQ(0, np_log_wait(self->log, "device recovery failed", RECOVERY_MS));
	EXPECT_EQ(0, np_info(self->ctrl.fd, &info));
	EXPECT_EQ(self->info.generation + 1, info.generation);
	EXPECT_EQ(info.generation, status->generation);
	EXPECT_LE(NVME_PEER_QP_FAILED, status->state);
	/* The peer's doorbells are revoked and new work is refused. */
	np_qp_put(&qp, &command);
	EXPECT_EQ(np_qp_revoked(), np_qp_ring_doorbell(&qp));
	EXPECT_EQ(-ESHUTDOWN, np_qp_create(self->ctrl.fd, ENTRIES, &create));
	EXPECT_EQ(-ENODEV, np_ioctl(self->ctrl.fd, NVME_IOCTL_RESET, NULL));
	EXPECT_EQ(-EIO, np_reader_stop(&reader));
	np_qp_close(&qp);
	EXPECT_EQ(0, bring_back(&self->ctrl));
	np_ctrl_close(&self->ctrl);
	ASSERT_EQ(0, open_stage(self, "np1"));
	EXPECT_EQ(0, self->info.generation);
	ASSERT_EQ(0, np_qp_open(&qp, self->ctrl.fd, ENTRIES));
	EXPECT_EQ(0, flush(&qp));
	np_qp_close(&qp);
}

TEST_F_TIMEOUT(errors, link_down_fails_controller, 240)
{
	check_lost(_metadata, self, "2");
}

TEST_F_TIMEOUT(errors, unreported_link_down_fails_controller, 240)
{
	check_lost(_metadata, self, "0");
}

TEST_HARNESS_MAIN
