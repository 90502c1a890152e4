// SPDX-License-Identifier: GPL-2.0-only
/*
 * Windows on files of a controller with faults: a command that reaches over several extents is sent in
 * parts, which fail, hang, or are lost with the controller.
 *
 * kernels: 7 debug
 * long-kernels: 6.1 6.12 7 debug kcsan
 * iommu: on
 * timeout: 180
 */
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <unistd.h>

#include "npbad.h"
#include "tenant.h"
#include "kselftest_harness.h"

#define ENTRIES		16U
#define PIECES		48U
#define BYTES		(PIECES * NP_PAGE)
#define BLOCKS		(BYTES / NP_BLOCK)
#define UNRECOVERED	0x281
#define ABORT_REQUESTED	0x007
#define MOUNT		"/tmp/np-bad-files"
#define DATA		MOUNT "/data"

FIXTURE(bad_files)
{
	struct np_bad bad;
	struct np_memory memory;
	struct np_qp qp;
	int file;
	uint32_t window;
	int generation;
	int mounted;
};

static int run_on(const char *format, int instance)
{
	char command[256];

	snprintf(command, sizeof(command), format, instance);
	return system(command);
}

FIXTURE_SETUP(bad_files)
{
	self->qp.fd = -1;
	np_qp_set_mode(NVME_PEER_MODE_MEDIATED);
	if (np_bad_open(&self->bad) == -ENOENT)
		SKIP(return, "no badctrl in this guest");
	ASSERT_EQ(0, np_bad_short_io_timeout());
	ASSERT_EQ(0, np_bad_bind(&self->bad, 1));
	ASSERT_EQ(0, run_on("mkdir -p " MOUNT " && mkfs.ext4 -qF -b 4096 -O ^has_journal"
			    " -E nodiscard,lazy_itable_init=0 /dev/nvmep%dn1", self->bad.ctrl.instance));
	ASSERT_EQ(0, run_on("mount -t ext4 /dev/nvmep%dn1 " MOUNT, self->bad.ctrl.instance));
	self->mounted = 1;
	ASSERT_EQ(0, np_make_scattered(DATA, PIECES));
	self->file = open(DATA, O_RDWR);
	ASSERT_EQ(0, np_memory_alloc(&self->memory, self->bad.ctrl.fd));
	np_qp_set_timeout(2000);
	ASSERT_EQ(0, np_qp_open(&self->qp, self->bad.ctrl.fd, ENTRIES));
	ASSERT_EQ(0, np_buf_add(&self->qp, self->memory.fd, 0, &self->memory.slot));
	ASSERT_EQ(0, np_window_add(&self->qp, self->file, 0, 0, &self->window));
	self->generation = np_bad_generation(&self->bad);
}

FIXTURE_TEARDOWN(bad_files)
{
	if (!self->bad.address[0])
		return;
	np_qp_close(&self->qp);
	np_memory_free(&self->memory);
	close(self->file);
	if (self->mounted)
		EXPECT_EQ(0, np_unmount(MOUNT));
	/* The other controller is checked in direct mode. */
	np_qp_set_mode(NVME_PEER_MODE_DIRECT);
	EXPECT_EQ(0, np_bad_close(&self->bad));
}

static int put(FIXTURE_DATA(bad_files) *self, uint8_t opcode)
{
	struct np_command command = np_window_command(opcode, self->window, 0, BLOCKS, self->memory.slot, 0);

	np_qp_put(&self->qp, &command);
	return np_qp_ring_doorbell(&self->qp);
}

static int run(FIXTURE_DATA(bad_files) *self, uint8_t opcode)
{
	return put(self, opcode) ?: np_qp_reap(&self->qp, NULL, NP_TIMEOUT_MS);
}

/* Holds commands of the controller, and sends one that has parts. */
static int put_held(FIXTURE_DATA(bad_files) *self, uint8_t opcode, uint32_t held)
{
	return np_bad_rule(&self->bad, 0, BADCTRL_ON_IO | opcode, BADCTRL_HOLD, 0, held) ?:
	       put(self, opcode) ?: np_bad_wait_hits(&self->bad, 0, held);
}

TEST_F(bad_files, first_error_is_reported)
{
	struct nvme_peer_qp_stats stats;

	ASSERT_EQ(0, np_bad_rule(&self->bad, 0, NP_IO_READ, BADCTRL_STATUS, UNRECOVERED, 1));
	EXPECT_EQ(UNRECOVERED, run(self, NVMEPEER_OP_READ));
	ASSERT_EQ(0, np_bad_rule(&self->bad, 0, NP_IO_WRITE, BADCTRL_STATUS, UNRECOVERED, BADCTRL_EVERY));
	EXPECT_EQ(UNRECOVERED, run(self, NVMEPEER_OP_WRITE));
	ASSERT_EQ(0, np_bad_rule(&self->bad, 0, NP_IO_WRITE, BADCTRL_COUNT, 0, BADCTRL_EVERY));
	EXPECT_EQ(0, run(self, NVMEPEER_OP_WRITE));
	EXPECT_EQ(PIECES, np_bad_hits(&self->bad, 0));
	ASSERT_EQ(0, np_qp_stats(&self->qp, &stats));
	EXPECT_EQ(2, stats.failed);
}

/* The file system may stop at any time: what it knows of the file has to be on the disk. */
TEST_F(bad_files, file_that_cannot_be_flushed_is_refused)
{
	int ret;

	ASSERT_EQ(0, np_bad_rule(&self->bad, 0, NP_IO_FLUSH, BADCTRL_STATUS, NVME_SC_INTERNAL,
				 BADCTRL_EVERY));
	ret = np_window_add(&self->qp, self->file, 0, 0, NULL);
	if (!ret && !np_bad_hits(&self->bad, 0))
		SKIP(return, "fsync() of this kernel sends no Flush for a file without changes");
	EXPECT_EQ(-EIO, ret);
	ASSERT_EQ(0, np_bad_rule(&self->bad, 0, NP_IO_FLUSH, BADCTRL_COUNT, 0, BADCTRL_EVERY));
	EXPECT_EQ(0, np_window_add(&self->qp, self->file, 0, 0, NULL));
}

/* Parts of Write Zeroes are sent one after the other: none follows an error. */
TEST_F(bad_files, no_part_follows_an_error)
{
	ASSERT_EQ(0, np_bad_rule(&self->bad, 0, NP_IO_WRITE_ZEROES, BADCTRL_STATUS, UNRECOVERED,
				 BADCTRL_EVERY));
	EXPECT_EQ(UNRECOVERED, run(self, NVMEPEER_OP_WRITE_ZEROES));
	EXPECT_EQ(1, np_bad_hits(&self->bad, 0));
}

TEST_F(bad_files, part_that_hangs_is_aborted)
{
	ASSERT_EQ(0, put_held(self, NVMEPEER_OP_READ, 1));
	EXPECT_EQ(ABORT_REQUESTED, np_qp_reap(&self->qp, NULL, NP_TIMEOUT_MS));
	EXPECT_EQ(0, run(self, NVMEPEER_OP_READ));
	EXPECT_EQ(self->generation, np_bad_generation(&self->bad));
}

/* The end of a command does not depend on how many parts it has. */
TEST_F(bad_files, removal_waits_for_parts_in_flight_only)
{
	ASSERT_EQ(0, put_held(self, NVMEPEER_OP_WRITE_ZEROES, 1));
	ASSERT_EQ(0, np_bad_rule(&self->bad, 0, NP_IO_WRITE_ZEROES, BADCTRL_COUNT, 0, BADCTRL_EVERY));
	EXPECT_EQ(0, np_window_remove(&self->qp, self->window));
	EXPECT_EQ(ABORT_REQUESTED, np_qp_reap(&self->qp, NULL, NP_TIMEOUT_MS));
	EXPECT_EQ(0, np_bad_hits(&self->bad, 0));
	ASSERT_EQ(0, np_window_add(&self->qp, self->file, 0, 0, &self->window));
	ASSERT_EQ(0, put_held(self, NVMEPEER_OP_WRITE_ZEROES, 1));
	ASSERT_EQ(0, np_bad_rule(&self->bad, 0, NP_IO_WRITE_ZEROES, BADCTRL_COUNT, 0, BADCTRL_EVERY));
	np_qp_close(&self->qp);
	self->qp.fd = -1;
	EXPECT_EQ(0, np_bad_hits(&self->bad, 0));
}

/* All parts count, not only those that were sent when the command was fetched. */
TEST_F(bad_files, time_of_later_parts_counts)
{
	struct nvme_peer_qp_stats before, after;

	ASSERT_EQ(0, np_bad_long_io_timeout(&self->bad));
	ASSERT_EQ(0, put_held(self, NVMEPEER_OP_WRITE_ZEROES, 1));
	ASSERT_EQ(0, np_qp_stats(&self->qp, &before));
	ASSERT_EQ(0, np_bad_set(&self->bad, BADCTRL_RELEASE, 1));
	EXPECT_EQ(0, np_qp_reap(&self->qp, NULL, NP_TIMEOUT_MS));
	ASSERT_EQ(0, np_qp_stats(&self->qp, &after));
	EXPECT_LT(before.busy_ns, after.busy_ns);
}

static void *choose_scheduler(void *path)
{
	return (void *)(intptr_t)(np_run_on(1) ?: np_write_file(path, "mq-deadline"));
}

/* I/O of the namespace is frozen for another scheduler: this waits for no part that was not sent. */
TEST_F(bad_files, freeze_waits_for_parts_in_flight_only)
{
	const struct nvmep_test_stall freeze = { .function = "blk_mq_freeze_queue_wait" };
	pthread_t thread;
	char path[64];
	int stall;
	void *ret;

	snprintf(path, sizeof(path), "/sys/block/nvmep%dn1/queue/scheduler", self->bad.ctrl.instance);
	ASSERT_EQ(0, np_works_on(0) ?: np_run_on(0));
	ASSERT_EQ(0, np_bad_long_io_timeout(&self->bad));
	ASSERT_EQ(0, put_held(self, NVMEPEER_OP_WRITE_ZEROES, 1));
	stall = np_stall(&freeze);
	ASSERT_LE(0, stall);
	ASSERT_EQ(0, np_bad_rule(&self->bad, 0, NP_IO_WRITE_ZEROES, BADCTRL_COUNT, 0, BADCTRL_EVERY));
	ASSERT_EQ(0, pthread_create(&thread, NULL, choose_scheduler, path));
	/* No I/O begins from here on. */
	EXPECT_EQ(0, np_wait_stalled(stall));
	close(stall);
	ASSERT_EQ(0, np_bad_set(&self->bad, BADCTRL_RELEASE, 1));
	EXPECT_EQ(ABORT_REQUESTED, np_qp_reap(&self->qp, NULL, NP_TIMEOUT_MS));
	EXPECT_EQ(0, np_bad_hits(&self->bad, 0));
	pthread_join(thread, &ret);
	EXPECT_EQ(NULL, ret);
	EXPECT_EQ(0, np_write_file(path, "none"));
	EXPECT_EQ(0, run(self, NVMEPEER_OP_READ));
}

TEST_F(bad_files, parts_wait_for_firmware_activation)
{
	int log = np_log_open();

	ASSERT_LE(0, log);
	ASSERT_EQ(0, np_bad_long_io_timeout(&self->bad));
	ASSERT_EQ(0, put_held(self, NVMEPEER_OP_WRITE_ZEROES, 1));
	ASSERT_EQ(0, np_bad_set(&self->bad, BADCTRL_PAUSED, 1));
	ASSERT_EQ(0, np_bad_set(&self->bad, BADCTRL_EVENT, EVENT_FIRMWARE));
	EXPECT_EQ(0, np_log_wait(log, "firmware", NP_TIMEOUT_MS));
	ASSERT_EQ(0, np_bad_set(&self->bad, BADCTRL_RELEASE, 1));
	np_sleep_ms(50);
	EXPECT_EQ(0, np_bad_get(&self->bad, BADCTRL_RUNG));
	ASSERT_EQ(0, np_bad_set(&self->bad, BADCTRL_PAUSED, 0));
	EXPECT_EQ(0, np_qp_reap(&self->qp, NULL, NP_TIMEOUT_MS));
	EXPECT_EQ(self->generation, np_bad_generation(&self->bad));
	close(log);
}

#define READS		40U

/* Another user's queue pair with reads of the disk, which the controller holds. */
static int open_other(FIXTURE_DATA(bad_files) *self, struct np_qp *qp, uid_t uid)
{
	struct np_command command;
	uint32_t slot, window, i;
	int ret = setreuid(uid, (uid_t)-1) ? -errno : 0;

	ret = ret ?: np_qp_open(qp, self->bad.ctrl.fd, 2 * READS);
	ret = ret ?: np_buf_add(qp, self->memory.fd, 0, &slot);
	ret = ret ?: np_window_add(qp, self->bad.disk, 0, 0, &window);
	if (setreuid(0, (uid_t)-1) || ret)
		return ret ?: -errno;
	command = np_window_command(NVMEPEER_OP_READ, window, 0, 8, slot, 0);
	for (i = 0; i < READS; i++)
		np_qp_put(qp, &command);
	return np_qp_ring_doorbell(qp);
}

/* A user has half of the commands of the controller for parts, and others take all that are left. */
TEST_F(bad_files, parts_leave_room_for_others)
{
	static const uint32_t held[] = { 96, 127 };
	struct np_qp others[ARRAY_SIZE(held)];
	uint32_t i, n;

	np_qp_close(&self->qp);
	np_qp_set_timeout(60000);
	np_qp_set_shares(READS, 0);
	ASSERT_EQ(0, np_qp_open(&self->qp, self->bad.ctrl.fd, ENTRIES));
	ASSERT_EQ(0, np_buf_add(&self->qp, self->memory.fd, 0, &self->memory.slot));
	ASSERT_EQ(0, np_window_add(&self->qp, self->file, 0, 0, &self->window));
	ASSERT_EQ(0, np_bad_rule(&self->bad, 0, NP_IO_READ, BADCTRL_HOLD, 0, BADCTRL_EVERY));
	ASSERT_EQ(0, put(self, NVMEPEER_OP_READ));
	ASSERT_EQ(0, put(self, NVMEPEER_OP_READ));
	EXPECT_EQ(0, np_bad_wait_word(&self->bad, BADCTRL_HELD, 64));
	for (n = 0; n < ARRAY_SIZE(held); n++) {
		np_sleep_ms(20);
		EXPECT_EQ(n ? held[n - 1] : 64, np_bad_get(&self->bad, BADCTRL_HELD));
		ASSERT_EQ(0, open_other(self, &others[n], 20000 + n));
		EXPECT_EQ(0, np_bad_wait_word(&self->bad, BADCTRL_HELD, held[n]));
	}
	np_sleep_ms(20);
	EXPECT_EQ(held[n - 1], np_bad_get(&self->bad, BADCTRL_HELD));
	ASSERT_EQ(0, np_bad_rule(&self->bad, 0, NP_IO_READ, BADCTRL_COUNT, 0, BADCTRL_EVERY));
	ASSERT_EQ(0, np_bad_set(&self->bad, BADCTRL_RELEASE, 1));
	EXPECT_EQ(0, np_qp_reap(&self->qp, NULL, NP_TIMEOUT_MS));
	EXPECT_EQ(0, np_qp_reap(&self->qp, NULL, NP_TIMEOUT_MS));
	for (n = 0; n < ARRAY_SIZE(held); n++) {
		for (i = 0; i < READS; i++)
			EXPECT_EQ(0, np_qp_reap(&others[n], NULL, NP_TIMEOUT_MS));
		np_qp_close(&others[n]);
	}
	np_qp_set_shares(0, 0);
}

/* Pages that the file system has read are not those that a lost command has written. */
TEST_F(bad_files, reset_loses_commands_in_flight)
{
	uint8_t *page = malloc(NP_PAGE);
	uint32_t i;

	ASSERT_EQ(0, np_bad_long_io_timeout(&self->bad));
	for (i = 0; i < 2; i++) {
		ASSERT_EQ(NP_PAGE, pread(self->file, page, NP_PAGE, (off_t)(PIECES - 1) * NP_PAGE));
		np_pattern(self->memory.bytes, BYTES, 0, 900 + i);
		ASSERT_EQ(0, put_held(self, i ? NVMEPEER_OP_WRITE_ZEROES : NVMEPEER_OP_WRITE, 1));
		ASSERT_EQ(0, np_ioctl(self->bad.ctrl.fd, NVME_IOCTL_RESET, NULL));
		EXPECT_EQ(self->generation + 1 + (int)i,
			  np_bad_wait_state(&self->bad, NVME_PEER_CTRL_LIVE));
		ASSERT_EQ(0, np_qp_wait_state(&self->qp, NVME_PEER_QP_QUIESCED, NP_TIMEOUT_MS));
		ASSERT_EQ(0, np_qp_rearm(&self->qp, NP_TIMEOUT_MS));
		ASSERT_EQ(0, run(self, NVMEPEER_OP_READ));
		ASSERT_EQ(NP_PAGE, pread(self->file, page, NP_PAGE, (off_t)(PIECES - 1) * NP_PAGE));
		EXPECT_EQ(0, memcmp(page, self->memory.bytes + BYTES - NP_PAGE, NP_PAGE)) TH_LOG("%u", i);
	}
	free(page);
}

/* Stalls the thread that invalidates a cached page. It blocks its CPU, so the rest runs on the other one. */
static int stall_invalidation(struct __test_metadata *_metadata, FIXTURE_DATA(bad_files) *self)
{
	struct nvmep_test_stall invalidate = { .function = "invalidate_inode_pages2_range", .any_thread = 1 };
	uint8_t page[NP_PAGE];
	int stall;

	ASSERT_EQ(NP_PAGE, pread(self->file, page, NP_PAGE, 0));
	stall = np_stall(&invalidate);
	ASSERT_LE(0, stall);
	ASSERT_EQ(0, np_works_on(1) ?: np_run_on(0));
	return stall;
}

/**
 * struct closer - a thread that closes a queue pair
 */
struct closer {
	int qp_fd;
	atomic_int tid;
};

static void *close_qp(void *argument)
{
	struct closer *closer = argument;

	atomic_store(&closer->tid, gettid());
	close(closer->qp_fd);
	return NULL;
}

/* While the pages of a write are invalidated, another queue pair ends and waits for its own command. */
TEST_F(bad_files, end_of_a_tenant_loses_no_command_of_others)
{
	struct np_command command;
	uint32_t slot, window;
	struct closer closer;
	pthread_t thread;
	struct np_qp other;
	int stall;

	ASSERT_EQ(0, np_bad_long_io_timeout(&self->bad));
	ASSERT_EQ(0, np_qp_open(&other, self->bad.ctrl.fd, ENTRIES));
	ASSERT_EQ(0, np_buf_add(&other, self->memory.fd, 0, &slot));
	ASSERT_EQ(0, np_window_add(&other, self->file, 0, 0, &window));
	stall = stall_invalidation(_metadata, self);
	ASSERT_EQ(0, put(self, NVMEPEER_OP_WRITE));
	EXPECT_EQ(0, np_wait_stalled(stall));
	ASSERT_EQ(0, np_bad_rule(&self->bad, 0, NP_IO_READ, BADCTRL_HOLD, 0, 1));
	command = np_window_command(NVMEPEER_OP_READ, window, 0, BLOCKS, slot, 0);
	np_qp_put(&other, &command);
	ASSERT_EQ(0, np_qp_ring_doorbell(&other));
	EXPECT_EQ(0, np_bad_wait_hits(&self->bad, 0, 1));
	closer = (struct closer){ .qp_fd = other.fd };
	other.fd = -1;
	ASSERT_EQ(0, pthread_create(&thread, NULL, close_qp, &closer));
	EXPECT_EQ(0, np_wait_sleeps(&closer.tid));
	EXPECT_EQ(0, np_bad_set(&self->bad, BADCTRL_RELEASE, 1));
	pthread_join(thread, NULL);
	EXPECT_EQ(0, np_ioctl(stall, NVMEP_TEST_STALLED, NULL));
	close(stall);
	EXPECT_EQ(0, np_works_anywhere());
	np_qp_close(&other);
	EXPECT_EQ(0, np_qp_reap(&self->qp, NULL, NP_TIMEOUT_MS));
}

/* Its own command waits for pages that are being invalidated: it is lost, and the end does not wait for it. */
TEST_F(bad_files, end_does_not_wait_for_cached_pages)
{
	int stall;

	stall = stall_invalidation(_metadata, self);
	/* A read leaves them alone. */
	EXPECT_EQ(0, run(self, NVMEPEER_OP_READ));
	EXPECT_EQ(-EAGAIN, np_ioctl(stall, NVMEP_TEST_STALLED, NULL));
	ASSERT_EQ(0, put(self, NVMEPEER_OP_WRITE));
	EXPECT_EQ(0, np_wait_stalled(stall));
	np_qp_close(&self->qp);
	self->qp.fd = -1;
	EXPECT_EQ(0, np_ioctl(stall, NVMEP_TEST_STALLED, NULL));
	close(stall);
}

/**
 * struct remover - a thread that removes the window
 */
struct remover {
	const struct np_qp *qp;
	uint32_t window;
	int ret;
	atomic_bool done;
	pthread_t thread;
};

/* In less than this a removal, which waits 1 s for cached pages, has not given up. */
#define CACHED_MS	900
#define ROUNDS		3U

static void *remove_window(void *argument)
{
	struct remover *remover = argument;

	remover->ret = np_window_remove(remover->qp, remover->window);
	atomic_store(&remover->done, true);
	return NULL;
}

/* Returns the status of the write, and how long the removal took. */
static int remove_during_invalidation(struct __test_metadata *_metadata, FIXTURE_DATA(bad_files) *self,
				      int64_t *took)
{
	struct remover remover = { .qp = &self->qp, .window = self->window };
	int stall = stall_invalidation(_metadata, self);
	int64_t start;

	EXPECT_EQ(0, put(self, NVMEPEER_OP_WRITE));
	EXPECT_EQ(0, np_wait_stalled(stall));
	start = np_now_ms();
	ASSERT_EQ(0, pthread_create(&remover.thread, NULL, remove_window, &remover));
	np_sleep_ms(20);
	EXPECT_FALSE(atomic_load(&remover.done));
	EXPECT_EQ(0, np_ioctl(stall, NVMEP_TEST_STALLED, NULL));
	close(stall);
	pthread_join(remover.thread, NULL);
	*took = np_now_ms() - start;
	EXPECT_EQ(0, np_works_anywhere());
	EXPECT_EQ(0, remover.ret);
	return np_qp_reap(&self->qp, NULL, NP_TIMEOUT_MS);
}

/* A write that waits for them succeeds although its window is being removed. */
TEST_F_TIMEOUT(bad_files, removal_waits_for_cached_pages, 60)
{
	int64_t took;
	int status = remove_during_invalidation(_metadata, self, &took);
	uint32_t i;

	for (i = 1; i < ROUNDS && took >= CACHED_MS; i++) {
		ASSERT_EQ(0, np_window_add(&self->qp, self->file, 0, 0, &self->window));
		status = remove_during_invalidation(_metadata, self, &took);
	}
	EXPECT_EQ(0, status);
}

/* Also while a command has parts that were not sent. */
TEST_F(bad_files, unbound_with_parts_to_send)
{
	ASSERT_EQ(0, put_held(self, NVMEPEER_OP_WRITE_ZEROES, 1));
	EXPECT_EQ(0, umount2(MOUNT, MNT_DETACH));
	self->mounted = 0;
	EXPECT_EQ(0, np_bad_unbind(&self->bad));
	EXPECT_EQ(NVME_PEER_QP_GONE, ((const volatile struct nvme_peer_status *)self->qp.status.at)->state);
}

TEST_HARNESS_MAIN
