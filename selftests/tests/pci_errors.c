// SPDX-License-Identifier: GPL-2.0-only
/*
 * Errors of PCI Express, which QEMU injects below a root port: a corrected one is
 * nobody's business, one that is not fatal stops nothing, a fatal one resets the
 * link and with it the controller, and a link that does not come back is the end
 * of the controller, but of nothing else.
 *
 * iommu: on
 * timeout: 240
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
/* Links are given some seconds, and the debug kernel is slow. */
#define RECOVERY_MS	60000
#define RECOVERY_TIMEOUT	"/sys/module/nvme_peer/parameters/recovery_timeout"
/* The ports above np0 and np1; selftests/lib/cell.sh says why np1's is different. */
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

/* The dead function is pulled and found again: the same controller in good health. */
static int bring_back(const struct np_ctrl *ctrl)
{
	return np_pull(ctrl->address) ?: np_find_again(ctrl->address) ?: np_bind(ctrl->address);
}

/* What one test loses, the next one needs. */
FIXTURE_TEARDOWN(errors)
{
	struct nvme_peer_info now;

	if (np_ctrl_settle(self->ctrl.fd, &now, NP_TIMEOUT_MS) == -ENODEV)
		bring_back(&self->ctrl);
	np_ctrl_close(&self->ctrl);
	close(self->log);
}

static int flush(struct np_qp *qp)
{
	struct np_command command = { .opcode = NP_CMD_FLUSH, .nsid = 1 };

	return np_qp_run(qp, &command, NP_TIMEOUT_MS);
}

/* A queue pair that was there before the error does not know of it. */
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
	EXPECT_EQ(0, np_objects_settle(&self->ctrl, self->before, NP_TIMEOUT_MS));
}

TEST_F_TIMEOUT(errors, corrected_is_nobodys_business, 120)
{
	/* Bit 0 of the Correctable Error Status: Receiver Error. */
	check_harmless(_metadata, self, "pcie_aer_inject_error -c " PORT " 1", "severity=Correct");
}

TEST_F_TIMEOUT(errors, not_fatal_stops_nothing, 120)
{
	check_harmless(_metadata, self, "pcie_aer_inject_error " PORT " POISON_TLP",
		       "device recovery successful");
}

/*
 * What a function loses when its link is reset has to be put back each time: the
 * second error is not like the first.
 */
TEST_F_TIMEOUT(errors, fatal_resets_the_controller_again_and_again, 240)
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
		ASSERT_EQ(0, np_storer_start(&storer, qp.tail_doorbell));
		ASSERT_EQ(0, np_monitor("pcie_aer_inject_error " PORT " MALF_TLP"));
		EXPECT_EQ(0, np_log_wait(self->log, "link frozen: stopping", RECOVERY_MS));
		/* Taken away before anything is waited for. */
		EXPECT_EQ(0, np_storer_wait(&storer, NP_TIMEOUT_MS));
		np_storer_stop(&storer);
		EXPECT_EQ(0, np_log_wait(self->log, "device recovery successful", RECOVERY_MS));
		ASSERT_EQ(0, np_ctrl_settle(self->ctrl.fd, &now, NP_TIMEOUT_MS)) {
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
	/* The CPU's reads waited, and then went on. */
	EXPECT_EQ(0, np_reader_stop(&reader));
	EXPECT_EQ(0, np_objects_settle(&self->ctrl, self->before, NP_TIMEOUT_MS));
}

/* A function reset between two errors changes what is restored after the second. */
TEST_F_TIMEOUT(errors, fatal_after_a_function_reset, 240)
{
	struct nvme_peer_info now;
	struct np_qp qp;
	char path[128];

	snprintf(path, sizeof(path), "/sys/bus/pci/devices/%s/reset", self->ctrl.address);
	ASSERT_EQ(0, np_write_file(path, "1"));
	ASSERT_EQ(0, np_monitor("pcie_aer_inject_error " PORT " MALF_TLP"));
	EXPECT_EQ(0, np_log_wait(self->log, "device recovery successful", RECOVERY_MS));
	ASSERT_EQ(0, np_ctrl_settle(self->ctrl.fd, &now, NP_TIMEOUT_MS));
	EXPECT_EQ(self->info.generation + 2, now.generation);
	ASSERT_EQ(0, np_qp_open(&qp, self->ctrl.fd, ENTRIES));
	EXPECT_EQ(0, flush(&qp));
	np_qp_close(&qp);
}

static void *reset_thread(void *fd)
{
	return (void *)(intptr_t)np_ioctl(*(int *)fd, NVME_IOCTL_RESET, NULL);
}

/*
 * Interrupts go to the first processor, and whoever runs on the second is held up there:
 * the error is handled meanwhile.
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
	struct nvmep_test_stall stall = { .anybody = 1 };

	snprintf(stall.function, sizeof(stall.function), "%s", function);
	snprintf(stall.after, sizeof(stall.after), "%s", after);
	return np_stall(&stall);
}

/*
 * The link fails where a reset comes by @function after @after, and the reset goes on when
 * error recovery is at @then, or over: both are over after a while.
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
	EXPECT_EQ(0, np_ctrl_settle(self->ctrl.fd, &now, NP_TIMEOUT_MS)) {
		TH_LOG("%s: state %u", function, now.state);
	}
	ASSERT_EQ(0, np_qp_open(&qp, self->ctrl.fd, ENTRIES));
	EXPECT_EQ(0, flush(&qp));
	np_qp_close(&qp);
}

/*
 * Before it is started, which must not be on a link that is about to be reset; while it
 * is started; when it has been and is not yet in service; while it is put into service:
 * before it is LIVE, when error recovery can change its state to nothing else, and after.
 */
TEST_F_TIMEOUT(errors, fatal_during_a_reset, 240)
{
	ASSERT_EQ(0, leave_room(true));
	fail_in_reset(_metadata, self, "nvmep_ctrl_start", "", "pci_bus_error_reset");
	fail_in_reset(_metadata, self, "nvmep_qids_grant", "", NULL);
	fail_in_reset(_metadata, self, "nvmep_ctrl_go_live", "", NULL);
	fail_in_reset(_metadata, self, "nvmep_ctrl_set_state", "nvmep_ctrl_go_live", NULL);
	fail_in_reset(_metadata, self, "pci_save_state", "", NULL);
	ASSERT_EQ(0, leave_room(false));
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
 * Newer kernels tell the driver that the link is lost, older ones say nothing, and
 * the driver gives up by itself; a timeout of 0 does so in any kernel.
 */
static void check_lost(struct __test_metadata *_metadata, FIXTURE_DATA(errors) *self,
		       const char *timeout)
{
	struct np_command command = { .opcode = NP_CMD_FLUSH, .nsid = 1 };
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
	ASSERT_EQ(0, np_storer_start(&storer, qp.tail_doorbell));
	ASSERT_EQ(0, np_monitor("pcie_aer_inject_error " HOPELESS_PORT " MALF_TLP"));
	ret = wait_dead(self->ctrl.fd);
	EXPECT_EQ(0, np_storer_wait(&storer, 0));
	np_storer_stop(&storer);
	EXPECT_EQ(0, np_write_file(RECOVERY_TIMEOUT, usual));
	EXPECT_EQ(0, ret);
	EXPECT_EQ(0, np_log_wait(self->log, "device recovery failed", RECOVERY_MS));
	EXPECT_EQ(0, np_info(self->ctrl.fd, &info));
	EXPECT_EQ(self->info.generation + 1, info.generation);
	EXPECT_EQ(info.generation, status->generation);
	EXPECT_LE(NVME_PEER_QP_FAILED, status->state);
	/* The peer has lost its doorbells, and new work is refused. */
	np_qp_put(&qp, &command);
	EXPECT_EQ(-EFAULT, np_qp_ring(&qp));
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

TEST_F_TIMEOUT(errors, link_that_stays_down_ends_the_controller, 240)
{
	check_lost(_metadata, self, "2");
}

TEST_F_TIMEOUT(errors, nobody_says_that_the_link_stays_down, 240)
{
	check_lost(_metadata, self, "0");
}

TEST_HARNESS_MAIN
