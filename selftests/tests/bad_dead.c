// SPDX-License-Identifier: GPL-2.0-only
/*
 * A controller that cannot be restarted is failed: bus mastering is off, all callers get
 * an error at once, and unbind and bind revive it once the controller works.
 *
 * kernels: 6.1 7
 * long-kernels: 6.1 6.12 7 debug kcsan
 * iommu: on
 * timeout: 180
 */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "npbad.h"
#include "kselftest_harness.h"

#define PCI_COMMAND		4
#define PCI_COMMAND_MASTER	4
#define ENTRIES		16U
#define LOOKS		50U
#define REG_CSTS	(BADCTRL_REGISTERS + 0x1c)
#define CSTS_FATAL	2U
/* Byte offset in Identify Controller. */
#define CTRL_SERIAL	4

FIXTURE(bad_dead)
{
	struct np_bad bad;
	uint8_t *bytes;
	struct np_qp qp;
	const struct nvme_peer_status *status;
};

FIXTURE_SETUP(bad_dead)
{
	self->qp.fd = -1;
	if (np_bad_open(&self->bad) == -ENOENT)
		SKIP(return, "no badctrl in this guest");
	ASSERT_EQ(0, np_bad_short_io_timeout());
	ASSERT_EQ(0, posix_memalign((void **)&self->bytes, NP_PAGE, NP_PAGE));
	ASSERT_EQ(0, np_bad_bind(&self->bad, 1));
	ASSERT_EQ(0, np_qp_open(&self->qp, self->bad.ctrl.fd, ENTRIES));
	self->status = self->qp.status.at;
}

FIXTURE_TEARDOWN(bad_dead)
{
	if (!self->bad.address[0])
		return;
	if (self->qp.fd >= 0)
		np_qp_close(&self->qp);
	EXPECT_EQ(0, np_bad_close(&self->bad));
	free(self->bytes);
}

static int bus_master(struct np_bad *bad)
{
	uint16_t command;

	if (pread(bad->config, &command, sizeof(command), PCI_COMMAND) != sizeof(command))
		return -EIO;
	return !!(command & PCI_COMMAND_MASTER);
}

/*
 * The controller is DEAD and every call fails at once; when it works again, binding it
 * helps.
 */
static void expect_dead(struct __test_metadata *_metadata, struct np_bad *bad, void *bytes)
{
	int64_t start = np_now_ms();
	struct np_qp qp;

	EXPECT_LE(0, np_bad_wait_state(bad, NVME_PEER_CTRL_DEAD));
	EXPECT_EQ(-EIO, np_bad_read_disk(bad, bytes));
	EXPECT_EQ(0, np_bad_wait_no_capacity(bad));
	EXPECT_NE(0, np_bad_identify_ctrl(bad, 0));
	EXPECT_EQ(-ESHUTDOWN, np_qp_open(&qp, bad->ctrl.fd, ENTRIES));
	EXPECT_GT(NP_TIMEOUT_MS, np_now_ms() - start);
}

static void expect_new_life(struct __test_metadata *_metadata, struct np_bad *bad, void *bytes)
{
	EXPECT_EQ(0, np_bad_set(bad, BADCTRL_MODE, BADCTRL_WORKS));
	EXPECT_EQ(0, np_bad_unbind(bad));
	EXPECT_EQ(0, np_bad_long_admin_timeout());
	EXPECT_EQ(0, np_bad_bind(bad, 1));
	EXPECT_EQ(0, np_bad_read_disk(bad, bytes));
}

/*
 * The queue pair is GONE, whether the controller vanished or was cut off, and a new bind
 * works.
 */
static void expect_end(struct __test_metadata *_metadata, FIXTURE_DATA(bad_dead) *self)
{
	EXPECT_EQ(-EINTR, np_bad_read(&self->bad, self->bytes, NP_SHORT_MS));
	expect_dead(_metadata, &self->bad, self->bytes);
	EXPECT_EQ(0, bus_master(&self->bad));
	EXPECT_EQ(NVME_PEER_QP_FAILED, self->status->state);
	np_qp_close(&self->qp);
	expect_new_life(_metadata, &self->bad, self->bytes);
}

TEST_F(bad_dead, vanished_controller_fails)
{
	ASSERT_EQ(0, np_bad_rule(&self->bad, 0, NP_IO_READ, BADCTRL_VANISH, 0, 1));
	expect_end(_metadata, self);
}

/*
 * The driver clears bus mastering to keep the controller from memory, so the queue pair
 * may end. A function reset stops the controller once, but does not help it start.
 */
TEST_F(bad_dead, controller_that_cannot_stop_fails)
{
	ASSERT_EQ(0, np_bad_rule(&self->bad, 0, NP_IO_READ, BADCTRL_HOLD, 0, 1));
	ASSERT_EQ(0, np_bad_rule(&self->bad, 1, NVME_ADMIN_ABORT, BADCTRL_HOLD, 0, 1));
	ASSERT_EQ(0, np_bad_rule(&self->bad, 2, NVME_ADMIN_IDENTIFY, BADCTRL_HOLD, 0, 1));
	ASSERT_EQ(0, np_bad_set(&self->bad, BADCTRL_MODE, BADCTRL_UNSTOPPABLE));
	ASSERT_EQ(0, np_bad_short_admin_timeout());
	expect_end(_metadata, self);
}

TEST_F(bad_dead, controller_without_start_answer_fails)
{
	ASSERT_EQ(0, np_bad_rule(&self->bad, 0, NP_IO_READ, BADCTRL_CRASH, 0, 1));
	ASSERT_EQ(0, np_bad_rule(&self->bad, 1, NVME_ADMIN_IDENTIFY, BADCTRL_HOLD, 0, 2));
	ASSERT_EQ(0, np_bad_short_admin_timeout());
	EXPECT_EQ(-EINTR, np_bad_read(&self->bad, self->bytes, NP_SHORT_MS));
	expect_dead(_metadata, &self->bad, self->bytes);
	np_qp_close(&self->qp);
	expect_new_life(_metadata, &self->bad, self->bytes);
}

struct reader {
	struct np_bad *bad;
	uint8_t *bytes;
	int error;
	atomic_int thread;
};

static void *read_in_background(void *argument)
{
	struct reader *reader = argument;

	atomic_store(&reader->thread, gettid());
	reader->error = np_bad_read_disk(reader->bad, reader->bytes);
	return NULL;
}

/*
 * badctrl's words are written through a config space file of the function, which vanishes
 * with the function.
 */
static int open_config_again(struct np_bad *bad)
{
	char path[128];

	close(bad->config);
	snprintf(path, sizeof(path), "/sys/bus/pci/devices/%s/config", bad->address);
	bad->config = open(path, O_RDWR | O_CLOEXEC);
	return bad->config < 0 ? -errno : 0;
}

/*
 * The controller is unplugged. The next one in the same slot has its address and another
 * serial number.
 */
TEST_F(bad_dead, replaced_controller_is_not_recovered)
{
	struct np_ctrl other;

	ASSERT_EQ(0, np_bad_identify(&self->bad, NVME_CNS_CONTROLLER, CTRL_SERIAL, 'm'));
	ASSERT_EQ(0, np_surprise_remove(self->bad.address));
	ASSERT_EQ(0, np_rescan(self->bad.address));
	ASSERT_EQ(0, open_config_again(&self->bad));
	ASSERT_EQ(0, np_bind(self->bad.address));
	ASSERT_EQ(0, np_ctrl_open(&other, "mad"));
	EXPECT_STREQ(self->bad.address, other.address);
	EXPECT_EQ(0, np_qp_check(other.fd, NP_TIMEOUT_MS));
	np_ctrl_close(&other);
	/* Files of the first controller do not reach the second one. */
	EXPECT_EQ(NVME_PEER_QP_GONE, self->status->state);
	EXPECT_EQ(-EFAULT, np_store(self->qp.tail_doorbell, 1));
	EXPECT_GT(0, np_bad_read_disk(&self->bad, self->bytes));
	EXPECT_GT(0, np_bad_read(&self->bad, self->bytes, 0));
	EXPECT_EQ(-ENODEV, np_ioctl(self->bad.ctrl.fd, NVME_IOCTL_RESET, NULL));
}

/* Unbind while a command gets no completion, not even if it was aborted and is sent again. */
TEST_F(bad_dead, unbind_while_command_hangs)
{
	struct reader reader = { .bad = &self->bad, .bytes = self->bytes };
	pthread_t thread;
	int64_t start;

	ASSERT_EQ(0, np_bad_rule(&self->bad, 0, NP_IO_READ, BADCTRL_HOLD, 0, BADCTRL_EVERY));
	ASSERT_EQ(0, pthread_create(&thread, NULL, read_in_background, &reader));
	EXPECT_EQ(0, np_bad_wait_word(&self->bad, BADCTRL_HELD, 1));
	start = np_now_ms();
	EXPECT_EQ(0, np_unbind(self->bad.address));
	pthread_join(thread, NULL);
	EXPECT_EQ(-EIO, reader.error);
	EXPECT_GT(NP_TIMEOUT_MS, np_now_ms() - start);
	EXPECT_EQ(NVME_PEER_QP_GONE, self->status->state);
	EXPECT_EQ(NVME_PEER_QP_REASON_UNBOUND, self->status->reason);
}

static void *close_in_background(void *argument)
{
	np_qp_close(argument);
	return NULL;
}

/*
 * The queue pair is deleted by two paths at once, and the controller completes neither
 * deletion.
 */
TEST_F(bad_dead, unbind_while_queue_deletion_hangs)
{
	pthread_t thread;

	ASSERT_EQ(0, np_bad_rule(&self->bad, 0, NVME_ADMIN_DELETE_SQ, BADCTRL_HOLD, 0, 1));
	ASSERT_EQ(0, np_bad_let_expire(&self->bad, 0));
	ASSERT_EQ(0, pthread_create(&thread, NULL, close_in_background, &self->qp));
	EXPECT_EQ(0, np_bad_wait_word(&self->bad, BADCTRL_HELD, 1));
	EXPECT_EQ(0, np_unbind(self->bad.address));
	pthread_join(thread, NULL);
	expect_new_life(_metadata, &self->bad, self->bytes);
}

struct creator {
	struct np_bad *bad;
	struct nvme_peer_qp_create create;
	int result;
};

static void *create_in_background(void *argument)
{
	struct creator *creator = argument;

	creator->result = np_qp_create(creator->bad->ctrl.fd, ENTRIES, &creator->create);
	if (!creator->result)
		close(creator->create.qp_fd);
	return NULL;
}

static void *unbind_in_background(void *argument)
{
	np_unbind(((struct np_bad *)argument)->address);
	return NULL;
}

/* np_open_node() would wait. */
static int try_open(const char *path)
{
	int fd = open(path, O_RDWR | O_CLOEXEC);

	return fd < 0 ? -errno : close(fd);
}

/* Unbind waits for a call that hangs; no other call waits behind it. */
TEST_F(bad_dead, unbind_does_not_block_other_calls)
{
	struct pollfd node = { .fd = self->bad.ctrl.fd, .events = POLLIN };
	struct creator creator = { .bad = &self->bad };
	pthread_t creates, unbinds;
	struct nvme_peer_info info;
	char path[32];
	int64_t end;
	int ret;

	ASSERT_EQ(0, np_bad_rule(&self->bad, 0, NVME_ADMIN_CREATE_CQ, BADCTRL_HOLD, 0, 1));
	ASSERT_EQ(0, pthread_create(&creates, NULL, create_in_background, &creator));
	EXPECT_EQ(0, np_bad_wait_word(&self->bad, BADCTRL_HELD, 1));
	ASSERT_EQ(0, pthread_create(&unbinds, NULL, unbind_in_background, &self->bad));
	end = np_now_ms() + NP_TIMEOUT_MS;
	do {
		ret = np_info(self->bad.ctrl.fd, &info);
	} while (!ret && np_now_ms() < end);
	EXPECT_EQ(-ESHUTDOWN, ret);
	np_sleep_ms(100);
	EXPECT_EQ(-ESHUTDOWN, np_info(self->bad.ctrl.fd, &info));
	EXPECT_EQ(1, poll(&node, 1, 0));
	EXPECT_EQ(POLLHUP, node.revents);
	/* The nodes exist until the hanging call has returned. */
	snprintf(path, sizeof(path), "/dev/nvmep%d", self->bad.ctrl.instance);
	EXPECT_EQ(-ENODEV, try_open(path));
	snprintf(path, sizeof(path), "/dev/ngp%dn1", self->bad.ctrl.instance);
	EXPECT_EQ(-ENODEV, try_open(path));
	EXPECT_EQ(1, np_bad_get(&self->bad, BADCTRL_HELD));
	EXPECT_EQ(0, np_bad_set(&self->bad, BADCTRL_RELEASE, 1));
	pthread_join(creates, NULL);
	pthread_join(unbinds, NULL);
	EXPECT_EQ(0, creator.result);
	expect_new_life(_metadata, &self->bad, self->bytes);
}

/* The creation ends when the controller is stopped: it will not come back. */
TEST_F(bad_dead, unbind_ends_creation_that_hangs)
{
	struct creator creator = { .bad = &self->bad };
	pthread_t creates;

	ASSERT_EQ(0, np_bad_rule(&self->bad, 0, NVME_ADMIN_CREATE_CQ, BADCTRL_HOLD, 0, 1));
	np_qp_close(&self->qp);
	ASSERT_EQ(0, pthread_create(&creates, NULL, create_in_background, &creator));
	EXPECT_EQ(0, np_bad_wait_word(&self->bad, BADCTRL_HELD, 1));
	EXPECT_EQ(0, np_bad_set(&self->bad, BADCTRL_MODE, BADCTRL_GONE));
	EXPECT_EQ(0, np_unbind(self->bad.address));
	pthread_join(creates, NULL);
	EXPECT_EQ(-ESHUTDOWN, creator.result);
	expect_new_life(_metadata, &self->bad, self->bytes);
}

/* I/O waits for the start, and fails. */
TEST_F(bad_dead, unbind_while_start_hangs)
{
	struct reader reader = { .bad = &self->bad, .bytes = self->bytes };
	pthread_t thread, reads;

	ASSERT_EQ(0, np_bad_rule(&self->bad, 0, NVME_ADMIN_IDENTIFY, BADCTRL_HOLD, 0, 1));
	ASSERT_EQ(0, pthread_create(&thread, NULL, np_bad_reset_thread, &self->bad));
	EXPECT_EQ(0, np_bad_wait_word(&self->bad, BADCTRL_HELD, 1));
	ASSERT_EQ(0, pthread_create(&reads, NULL, read_in_background, &reader));
	EXPECT_EQ(0, np_wait_sleeps(&reader.thread));
	EXPECT_EQ(EBUSY, pthread_tryjoin_np(reads, NULL));
	EXPECT_EQ(0, np_unbind(self->bad.address));
	pthread_join(thread, NULL);
	pthread_join(reads, NULL);
	EXPECT_EQ(-EIO, reader.error);
	EXPECT_EQ(NVME_PEER_QP_GONE, self->status->state);
	np_qp_close(&self->qp);
	expect_new_life(_metadata, &self->bad, self->bytes);
}

/* Wait until the driver polls CSTS.RDY for the controller to stop. */
static int wait_for_status_polls(struct np_bad *bad)
{
	return np_bad_wait_word(bad, BADCTRL_LOOKS, np_bad_get(bad, BADCTRL_LOOKS) + LOOKS);
}

/* From now on the controller does not stop until its mode is changed; the driver waits up to a minute. */
static void prevent_stop(struct __test_metadata *_metadata, FIXTURE_DATA(bad_dead) *self)
{
	uint32_t cap = np_bad_get(&self->bad, BADCTRL_REGISTERS);
	int generation = np_bad_generation(&self->bad);

	/* CAP.TO: one minute. It is read whenever the controller is enabled. */
	ASSERT_EQ(0, np_bad_set(&self->bad, BADCTRL_REGISTERS, (cap & 0xffffff) | 120U << 24));
	ASSERT_EQ(0, np_ioctl(self->bad.ctrl.fd, NVME_IOCTL_RESET, NULL));
	ASSERT_EQ(0, np_qp_rearm(&self->qp, NP_TIMEOUT_MS));
	ASSERT_EQ(generation + 1, np_bad_generation(&self->bad));
	ASSERT_EQ(0, np_bad_set(&self->bad, BADCTRL_MODE, BADCTRL_UNSTOPPABLE));
}

/*
 * A peer reuses the memory of its commands once the generation changes, so the generation
 * must not change before the controller has stopped: until then it may write there, with a
 * fatal status too.
 */
TEST_F(bad_dead, generation_changes_after_controller_stopped)
{
	int generation = np_bad_generation(&self->bad);
	pthread_t thread;

	prevent_stop(_metadata, self);
	ASSERT_EQ(0, pthread_create(&thread, NULL, np_bad_reset_thread, &self->bad));
	EXPECT_EQ(generation + 1, np_bad_wait_state(&self->bad, NVME_PEER_CTRL_RESETTING));
	EXPECT_EQ(0, wait_for_status_polls(&self->bad));
	EXPECT_EQ(0, np_bad_set(&self->bad, REG_CSTS, np_bad_get(&self->bad, REG_CSTS) | CSTS_FATAL));
	EXPECT_EQ(0, wait_for_status_polls(&self->bad));
	EXPECT_EQ(generation + 1, np_bad_generation(&self->bad));
	EXPECT_EQ(generation + 1, (int)self->status->generation);
	EXPECT_EQ(NVME_PEER_QP_LIVE, self->status->state);
	EXPECT_EQ(0, np_bad_set(&self->bad, BADCTRL_MODE, BADCTRL_WORKS));
	pthread_join(thread, NULL);
	EXPECT_EQ(generation + 2, np_bad_generation(&self->bad));
	EXPECT_EQ(generation + 2, (int)self->status->generation);
	EXPECT_EQ(NVME_PEER_QP_QUIESCED, self->status->state);
}

/* Unbind ends a wait for the controller to start, but not one for it to stop. */
TEST_F(bad_dead, unbind_waits_until_controller_has_stopped)
{
	pthread_t thread;

	prevent_stop(_metadata, self);
	ASSERT_EQ(0, pthread_create(&thread, NULL, unbind_in_background, &self->bad));
	EXPECT_EQ(0, wait_for_status_polls(&self->bad));
	EXPECT_EQ(1, bus_master(&self->bad));
	EXPECT_EQ(0, np_bad_set(&self->bad, BADCTRL_MODE, BADCTRL_WORKS));
	pthread_join(thread, NULL);
	np_qp_close(&self->qp);
	expect_new_life(_metadata, &self->bad, self->bytes);
}

/*
 * Unbind while the controller does not become ready, while its function is reset, and
 * while it restarts after that. Unbind holds the device lock and waits for the reset
 * work.
 */
TEST_F_TIMEOUT(bad_dead, unbind_during_function_reset, 110)
{
	pthread_t thread;
	int64_t start;
	int i;

	for (i = 0; i < 8; i++) {
		ASSERT_EQ(0, np_bad_set(&self->bad, BADCTRL_MODE, BADCTRL_NEVER_READY));
		ASSERT_EQ(0, pthread_create(&thread, NULL, np_bad_reset_thread, &self->bad));
		np_sleep_ms(350 + 50 * i);
		start = np_now_ms();
		EXPECT_EQ(0, np_unbind(self->bad.address));
		EXPECT_GT(NP_TIMEOUT_MS, np_now_ms() - start);
		pthread_join(thread, NULL);
		EXPECT_LE(NVME_PEER_QP_FAILED, self->status->state);
		np_qp_close(&self->qp);
		expect_new_life(_metadata, &self->bad, self->bytes);
		ASSERT_EQ(0, np_qp_open(&self->qp, self->bad.ctrl.fd, ENTRIES));
		self->status = self->qp.status.at;
	}
}

TEST_HARNESS_MAIN
