// SPDX-License-Identifier: GPL-2.0-only
/*
 * Suspend through the kernel's own path. It is refused while a queue pair exists whose
 * owner has not consented to re-arm it; a queue pair that is GONE does not count, even if
 * its file is open. Block I/O continues after the resume.
 *
 * No request is allocated while devices are suspended.
 *
 * The controller is suspended together with all non-PCI devices only: a guest that
 * suspends all of its PCI functions loses access to its file systems.
 *
 * kernels: 6.1 7
 * long-kernels: 6.1 6.12 7
 * iommu: off
 * timeout: 180
 * relay: 7
 */
#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include "npbad.h"
#include "tenant.h"
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

/* The controller works afterwards in every case. */
FIXTURE_TEARDOWN(suspend)
{
	struct nvme_peer_info info;

	np_sleep_end(self->test);
	close(self->log);
	np_qp_close(&self->qp);
	EXPECT_EQ(0, np_ctrl_wait_live(self->ctrl.fd, &info, NP_TIMEOUT_MS));
	EXPECT_EQ(0, np_qp_check(self->ctrl.fd, NP_TIMEOUT_MS));
	np_buffer_close(&self->buffer);
	np_ctrl_close(&self->ctrl);
}

static int flush(struct np_qp *qp)
{
	struct np_command command = { .opcode = NVMEPEER_OP_FLUSH, .nsid = 1 };

	return np_qp_run(qp, &command, NP_TIMEOUT_MS);
}

TEST_F(suspend, refused_with_live_queue_pair)
{
	const struct nvme_peer_status *status = self->qp.status.at;
	struct nvme_peer_info info;

	EXPECT_EQ(-EBUSY, np_suspend());
	EXPECT_EQ(0, np_log_wait(self->log, "suspend refused: peers have queue pairs",
				 NP_TIMEOUT_MS));
	EXPECT_EQ(NVME_PEER_QP_LIVE, status->state);
	EXPECT_EQ(0, flush(&self->qp));
	ASSERT_EQ(0, np_info(self->ctrl.fd, &info));
	EXPECT_EQ(NVME_PEER_CTRL_LIVE, info.state);
	EXPECT_EQ(self->before.generation, info.generation);
}

/* A quiesced queue pair may be re-armed, so it counts. */
TEST_F(suspend, refused_with_quiesced_queue_pair)
{
	struct nvme_peer_info info;

	ASSERT_EQ(0, np_ioctl(self->ctrl.fd, NVME_IOCTL_RESET, NULL));
	ASSERT_EQ(0, np_ctrl_wait_live(self->ctrl.fd, &info, NP_TIMEOUT_MS));
	EXPECT_EQ(-EBUSY, np_suspend());
	ASSERT_EQ(0, np_qp_rearm(&self->qp, NP_TIMEOUT_MS));
	EXPECT_EQ(0, flush(&self->qp));
}

/* Mediated queue pairs need no capability: they may not refuse suspend. */
TEST_F(suspend, quiesces_mediated_queue_pair)
{
	const struct nvme_peer_status *status;
	struct nvme_peer_info info;
	uint32_t slot, window;
	struct np_memory memory;
	struct np_command command;
	struct np_qp qp;
	int disk, i;

	np_qp_close(&self->qp);
	disk = np_open_node(&self->ctrl, "/dev/nvmep%dn1", O_RDWR);
	ASSERT_LE(0, disk);
	np_qp_set_mode(NVME_PEER_MODE_MEDIATED);
	/* This process has mapped doorbells. */
	ASSERT_EQ(0, np_write_file(NP_MIXED_MODES, "1"));
	ASSERT_EQ(0, np_qp_open(&qp, self->ctrl.fd, ENTRIES));
	ASSERT_EQ(0, np_write_file(NP_MIXED_MODES, "0"));
	ASSERT_EQ(0, np_memory_alloc(&memory, self->ctrl.fd));
	ASSERT_EQ(0, np_buf_add(&qp, memory.fd, 0, &slot));
	ASSERT_EQ(0, np_window_add(&qp, disk, 0, 0, &window));
	status = qp.status.at;
	command = np_window_command(NVMEPEER_OP_READ, window, 0, 8, slot, 0);
	for (i = 0; i < 2; i++) {
		EXPECT_EQ(0, np_qp_run(&qp, &command, NP_TIMEOUT_MS));
		ASSERT_EQ(0, np_suspend());
		ASSERT_EQ(0, np_ctrl_wait_live(self->ctrl.fd, &info, NP_TIMEOUT_MS));
		EXPECT_EQ(NVME_PEER_QP_QUIESCED, status->state);
		ASSERT_EQ(0, np_qp_rearm(&qp, NP_TIMEOUT_MS));
	}
	EXPECT_EQ(0, np_qp_run(&qp, &command, NP_TIMEOUT_MS));
	np_qp_close(&qp);
	np_memory_free(&memory);
	close(disk);
	np_qp_set_mode(NVME_PEER_MODE_DIRECT);
}

static uint64_t disk_word(struct np_qp *qp, const struct np_buffer *buffer, int *ret)
{
	struct np_command command;

	memset(buffer->bytes, 0xee, NP_PAGE);
	np_command_rw(&command, buffer, NVMEPEER_OP_READ, NP_AREA(2), 0, NP_PAGE);
	*ret = np_qp_run(qp, &command, NP_TIMEOUT_MS);
	return *(uint64_t *)buffer->bytes;
}

/* Twice; the effect on the queue pair is that of a function reset. */
TEST_F(suspend, quiesces_consenting_queue_pair)
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
		ASSERT_EQ(0, np_suspend());
		ASSERT_EQ(0, np_ctrl_wait_live(self->ctrl.fd, &info, NP_TIMEOUT_MS));
		EXPECT_EQ(NVME_PEER_QP_QUIESCED, status->state);
		EXPECT_EQ(self->before.generation + i, status->generation);
		EXPECT_EQ(np_qp_revoked(), np_store(qp.tail_doorbell, 0));
		ASSERT_EQ(0, np_qp_rearm(&qp, NP_TIMEOUT_MS));
		EXPECT_EQ(before, disk_word(&qp, &self->buffer, &ret));
		EXPECT_EQ(0, ret);
	}
	np_qp_close(&qp);
}

/* Hibernation follows the same rule. */
TEST_F(suspend, hibernation_needs_consent)
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
	ASSERT_EQ(0, np_ctrl_wait_live(self->ctrl.fd, &info, NP_TIMEOUT_MS));
	EXPECT_EQ(NVME_PEER_QP_QUIESCED, status->state);
	EXPECT_EQ(self->before.generation + 1, status->generation);
	ASSERT_EQ(0, np_qp_rearm(&qp, NP_TIMEOUT_MS));
	disk_word(&qp, &self->buffer, &ret);
	EXPECT_EQ(0, ret);
	np_qp_close(&qp);
}

/* All owners have to consent. */
TEST_F(suspend, refused_unless_all_owners_consent)
{
	struct np_qp qp;

	ASSERT_EQ(0, np_qp_open_with(&qp, self->ctrl.fd, ENTRIES, NVME_PEER_QP_ALLOW_SLEEP));
	EXPECT_EQ(-EBUSY, np_suspend());
	EXPECT_EQ(0, flush(&qp));
	EXPECT_EQ(0, flush(&self->qp));
	np_qp_close(&qp);
}

/* Its memory was invalidated; its file is still open. */
TEST_F(suspend, gone_queue_pair_does_not_block)
{
	struct nvmep_test_move move = { .fd = self->buffer.fd };
	const struct nvme_peer_status *status = self->qp.status.at;
	struct nvme_peer_info info;

	ASSERT_EQ(0, np_ioctl(self->test, NVMEP_TEST_MOVE, &move));
	ASSERT_EQ(0, np_qp_wait_state(&self->qp, NVME_PEER_QP_GONE, NP_TIMEOUT_MS));
	EXPECT_EQ(0, np_suspend());
	ASSERT_EQ(0, np_ctrl_wait_live(self->ctrl.fd, &info, NP_TIMEOUT_MS));
	EXPECT_EQ(self->before.generation + 1, info.generation);
	EXPECT_EQ(info.generation, status->generation);
	/* The peer may still have addresses of the buffer until its handle is released. */
	EXPECT_EQ(-ESTALE, np_qp_check(self->ctrl.fd, NP_TIMEOUT_MS));
	EXPECT_EQ(0, np_release(self->ctrl.fd, self->buffer.handle));
}

/* Twice, because the first suspend may leave stale state for the second one. */
TEST_F(suspend, block_io_continues_after_resume)
{
	struct nvme_peer_info info;
	struct np_reader reader;
	uint32_t i;

	np_qp_close(&self->qp);
	ASSERT_EQ(0, np_reader_start(&reader, &self->ctrl));
	for (i = 1; i <= 2; i++) {
		EXPECT_EQ(0, np_suspend());
		EXPECT_EQ(0, np_reader_wait_read(&reader));
		ASSERT_EQ(0, np_ctrl_wait_live(self->ctrl.fd, &info, NP_TIMEOUT_MS));
		EXPECT_EQ(self->before.generation + i, info.generation);
		EXPECT_EQ(self->before.qids_cpu, info.qids_cpu);
		EXPECT_EQ(0, np_qp_check(self->ctrl.fd, NP_TIMEOUT_MS));
	}
	EXPECT_EQ(0, np_reader_stop(&reader));
}

/* As before a power off: the controller may lose power. */
TEST(suspend_flushes_cache)
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
	EXPECT_EQ(0, np_suspend());
	np_sleep_end(test);
	EXPECT_EQ(0, np_bad_cut_power(&bad));
	EXPECT_EQ(0, np_bad_read_disk(&bad, bytes));
	EXPECT_EQ(0x5a, bytes[0]);
	EXPECT_EQ(0, np_bad_close(&bad));
	free(bytes);
}

/*
 * The commands of a suspend end even if the controller does not answer them, and its cache
 * is flushed after it was stopped for that.
 */
TEST(unanswered_deletion_does_not_hang)
{
	struct nvme_peer_info info;
	struct np_bad bad;
	uint8_t *bytes;
	int64_t start;
	int test;

	if (np_bad_open(&bad) == -ENOENT)
		SKIP(return, "no badctrl in this guest");
	ASSERT_EQ(0, np_bad_short_io_timeout());
	ASSERT_EQ(0, posix_memalign((void **)&bytes, NP_PAGE, NP_PAGE));
	ASSERT_EQ(0, np_bad_bind(&bad, 1));
	memset(bytes, 0x5b, NP_PAGE);
	ASSERT_EQ(0, np_disk_write(bad.disk, bytes, NP_PAGE, 0));
	ASSERT_EQ(0, np_bad_rule(&bad, 0, NVME_ADMIN_DELETE_SQ, BADCTRL_HOLD, 0, 1));
	ASSERT_EQ(0, np_bad_short_admin_timeout());
	test = np_sleep_begin(bad.address);
	EXPECT_LE(0, test);
	start = np_now_ms();
	EXPECT_EQ(0, np_suspend());
	EXPECT_GT(NP_TIMEOUT_MS, np_now_ms() - start);
	np_sleep_end(test);
	EXPECT_EQ(1, np_bad_hits(&bad, 0));
	EXPECT_EQ(0, np_ctrl_wait_live(bad.ctrl.fd, &info, NP_TIMEOUT_MS));
	EXPECT_EQ(1, info.generation);
	EXPECT_EQ(0, np_bad_cut_power(&bad));
	EXPECT_EQ(0, np_bad_read_disk(&bad, bytes));
	EXPECT_EQ(0x5b, bytes[0]);
	EXPECT_EQ(0, np_bad_close(&bad));
	free(bytes);
}

/* A suspend that was refused leaves a copy of config space that a function reset restores. */
TEST(function_reset_works_after_refused_suspend)
{
	struct np_bad bad;
	struct np_qp qp;
	int test;

	if (np_bad_open(&bad) == -ENOENT)
		SKIP(return, "no misbehaving controller in this guest");
	ASSERT_EQ(0, np_bad_short_io_timeout());
	ASSERT_EQ(0, np_bad_bind(&bad, 1));
	ASSERT_EQ(0, np_qp_open(&qp, bad.ctrl.fd, ENTRIES));
	test = np_sleep_begin(bad.address);
	EXPECT_LE(0, test);
	EXPECT_EQ(-EBUSY, np_suspend());
	np_sleep_end(test);
	np_qp_close(&qp);
	EXPECT_EQ(0, np_bad_set(&bad, BADCTRL_CURED, 1));
	EXPECT_EQ(0, np_bad_set(&bad, BADCTRL_MODE, BADCTRL_NEVER_READY));
	EXPECT_EQ(0, np_ioctl(bad.ctrl.fd, NVME_IOCTL_RESET, NULL));
	EXPECT_EQ(1, np_bad_get(&bad, BADCTRL_RESETS));
	EXPECT_EQ(0, np_qp_check(bad.ctrl.fd, NP_TIMEOUT_MS));
	EXPECT_EQ(0, np_bad_close(&bad));
}

/* --- kernel threads, which are not frozen --------------------------------------------- */

#define VM		"/proc/sys/vm/"

/* Dirty pages expire after 3 s, devices are suspended for 5 s. */
static int begin_writeback_in_sleep(void)
{
	return np_write_file(VM "dirty_expire_centisecs", "300") ?:
	       np_write_file(VM "dirty_writeback_centisecs", "50") ?:
	       np_write_file("/sys/power/sync_on_suspend", "0") ?:
	       np_write_file("/sys/power/pm_test", "devices") ?:
	       np_write_file("/sys/module/suspend/parameters/pm_test_delay", "5") ?:
	       np_write_file(NP_TRACE "events/power/suspend_resume/enable", "1") ?:
	       np_write_file(NP_TRACE "events/block/block_getrq/enable", "1") ?:
	       np_clear_trace();
}

static void end_writeback_in_sleep(void)
{
	np_write_file(NP_TRACE "events/enable", "0");
	np_write_file("/sys/power/sync_on_suspend", "1");
	np_write_file(VM "dirty_writeback_centisecs", "500");
	np_write_file(VM "dirty_expire_centisecs", "3000");
}

/* Requests of @disk that were allocated while devices were suspended, and afterwards. */
static int count_requests(int disk, unsigned int *asleep, unsigned int *awake)
{
	FILE *trace = fopen(NP_TRACE "trace", "re");
	bool suspended = false, resumed = false;
	char line[512], device[32];
	struct stat info;

	if (!trace || fstat(disk, &info))
		return -errno;
	*asleep = 0;
	*awake = 0;
	snprintf(device, sizeof(device), "block_getrq: %u,%u ", major(info.st_rdev),
		 minor(info.st_rdev));
	while (fgets(line, sizeof(line), trace)) {
		if (strstr(line, "dpm_suspend[") && strstr(line, " end"))
			suspended = true;
		else if (strstr(line, "dpm_resume[") && strstr(line, " begin"))
			resumed = true;
		else if (suspended && strstr(line, device))
			++*(resumed ? awake : asleep);
	}
	fclose(trace);
	return suspended && resumed ? 0 : -ENODATA;
}

/* Dirty pages expire in a sleep: counts the requests of their writeback in it and afterwards. */
static int write_back_in_sleep(int ctrl_fd, int disk, unsigned int *asleep, unsigned int *awake)
{
	struct nvme_peer_info info;
	uint8_t page[NP_PAGE];
	int i, ret;

	if (pread(disk, page, NP_PAGE, NP_AREA(9)) != NP_PAGE)
		return -EIO;
	ret = begin_writeback_in_sleep();
	/* The pages are dirty, with the data that they had. */
	if (!ret && pwrite(disk, page, NP_PAGE, NP_AREA(9)) != NP_PAGE)
		ret = -EIO;
	ret = ret ?: np_suspend() ?: np_ctrl_wait_live(ctrl_fd, &info, NP_TIMEOUT_MS);
	*awake = 0;
	for (i = 0; i < 100 && !*awake && !ret; i++) {
		np_sleep_ms(100);
		ret = count_requests(disk, asleep, awake);
	}
	end_writeback_in_sleep();
	return ret;
}

#define LIMIT_SECONDS	120

/*
 * A request of writeback would wait in its queue, and the CPU of that queue for it. Without any request
 * the pages were written before the sleep, on a slow machine.
 */
TEST_F_TIMEOUT(suspend, no_request_is_allocated_during_sleep, LIMIT_SECONDS)
{
	unsigned int asleep = 0, awake = 0;
	int disk, i;

	np_qp_close(&self->qp);
	disk = np_open_node(&self->ctrl, "/dev/nvmep%dn1", O_RDWR);
	ASSERT_LE(0, disk);
	for (i = 0; i < 3 && !awake && !asleep; i++)
		ASSERT_EQ(0, write_back_in_sleep(self->ctrl.fd, disk, &asleep, &awake));
	EXPECT_EQ(0, asleep);
	EXPECT_LT(0, awake);
	close(disk);
}

TEST_HARNESS_MAIN
