// SPDX-License-Identifier: GPL-2.0-only
/*
 * Commands that are not completed: they are aborted once, then the controller is stopped
 * and restarted. Callers get an error, peers are notified, and data pages stay mapped
 * until the controller has stopped.
 *
 * kernels: 7
 * long-kernels: 6.1 6.12 7 debug kcsan
 * iommu: on
 * timeout: 180
 */
#include <errno.h>
#include <fcntl.h>
#include <linux/userfaultfd.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "npbad.h"
#include "kselftest_harness.h"

#define ENTRIES		16U
/* Registers, and the field CSTS.SHST. */
#define CC			(BADCTRL_REGISTERS + 0x14)
#define CSTS			(BADCTRL_REGISTERS + 0x1c)
#define CSTS_SHUTDOWN		0xcU
#define CSTS_SHUTDOWN_DONE	0x8U

FIXTURE(bad_timeouts)
{
	struct np_bad bad;
	uint8_t *bytes;
	struct np_qp qp;
	const struct nvme_peer_status *status;
	int generation;
};

FIXTURE_SETUP(bad_timeouts)
{
	self->qp.fd = -1;
	if (np_bad_open(&self->bad) == -ENOENT)
		SKIP(return, "no badctrl in this guest");
	ASSERT_EQ(0, np_bad_short_io_timeout());
	ASSERT_EQ(0, posix_memalign((void **)&self->bytes, NP_PAGE, NP_PAGE));
	ASSERT_EQ(0, np_bad_bind(&self->bad, 1));
	ASSERT_EQ(0, np_qp_open(&self->qp, self->bad.ctrl.fd, ENTRIES));
	self->status = self->qp.status.at;
	self->generation = np_bad_generation(&self->bad);
}

FIXTURE_TEARDOWN(bad_timeouts)
{
	if (!self->bad.address[0])
		return;
	if (self->qp.fd >= 0)
		np_qp_close(&self->qp);
	EXPECT_EQ(0, np_bad_close(&self->bad));
	free(self->bytes);
}

/* Is the queue pair in the state after a reset? */
static bool quiesced(const struct nvme_peer_status *status, uint32_t generation)
{
	return status->state == NVME_PEER_QP_QUIESCED && status->reason == NVME_PEER_QP_REASON_RESET &&
	       status->generation == generation;
}

TEST_F(bad_timeouts, aborted_command_returns_its_status)
{
	ASSERT_EQ(0, np_bad_rule(&self->bad, 0, NP_IO_READ, BADCTRL_HOLD, 0, 1));
	ASSERT_EQ(0, np_bad_rule(&self->bad, 1, NVME_ADMIN_ABORT, BADCTRL_COUNT, 0, BADCTRL_EVERY));
	EXPECT_EQ(NVME_SC_ABORTED, np_bad_read(&self->bad, self->bytes, NP_SHORT_MS));
	EXPECT_EQ(1, np_bad_hits(&self->bad, 1));
	/* The controller was not reset. */
	EXPECT_EQ(0, np_bad_read(&self->bad, self->bytes, 0));
	EXPECT_EQ(self->generation, np_bad_wait_state(&self->bad, NVME_PEER_CTRL_LIVE));
	EXPECT_EQ(NVME_PEER_QP_LIVE, self->status->state);
}

TEST_F(bad_timeouts, aborted_block_request_is_retried)
{
	ASSERT_EQ(0, np_bad_rule(&self->bad, 0, NP_IO_READ, BADCTRL_HOLD, 0, 1));
	EXPECT_EQ(0, np_bad_read_disk(&self->bad, self->bytes));
	EXPECT_EQ(0, self->bytes[0]);
	EXPECT_EQ(self->generation, np_bad_wait_state(&self->bad, NVME_PEER_CTRL_LIVE));
}

TEST_F(bad_timeouts, completion_with_wrong_cid_is_ignored)
{
	/*
	 * First a CID with a used tag and another generation count, then a CID beyond all
	 * tags.
	 */
	ASSERT_EQ(0, np_bad_rule(&self->bad, 0, NP_IO_READ, BADCTRL_WRONG_ID, 0x1000, 1));
	EXPECT_EQ(0, np_bad_read_disk(&self->bad, self->bytes));
	ASSERT_EQ(0, np_bad_rule(&self->bad, 0, NP_IO_READ, BADCTRL_WRONG_ID, 0xc00, 1));
	EXPECT_EQ(NVME_SC_ABORTED, np_bad_read(&self->bad, self->bytes, NP_SHORT_MS));
	EXPECT_EQ(self->generation, np_bad_wait_state(&self->bad, NVME_PEER_CTRL_LIVE));
}

TEST_F(bad_timeouts, duplicate_completion_is_ignored)
{
	int i;

	ASSERT_EQ(0, np_bad_rule(&self->bad, 0, NP_IO_READ, BADCTRL_TWICE, 0, 3));
	for (i = 0; i < 6; i++)
		EXPECT_EQ(0, np_bad_read_disk(&self->bad, self->bytes));
	EXPECT_EQ(self->generation, np_bad_wait_state(&self->bad, NVME_PEER_CTRL_LIVE));
}

/* Sum of the last column of the debugfs file "queues". */
static unsigned int lost_interrupts(struct np_bad *bad)
{
	unsigned int sum = 0, lost;
	char path[128], text[4096], *line;

	snprintf(path, sizeof(path), "/sys/kernel/debug/nvme-peer/nvmep%d/queues",
		 bad->ctrl.instance);
	if (np_read_file(path, text, sizeof(text)))
		return 0;
	for (line = strchr(text, '\n'); line && line[1]; line = strchr(line + 1, '\n'))
		if (sscanf(line, " %*u %*s %*u %*u %*u %*u %*u %u", &lost) == 1)
			sum += lost;
	return sum;
}

/* How many a read loses whose completion is quiet. The counter is updated after the completion. */
static unsigned int lose_interrupt(struct __test_metadata *_metadata, FIXTURE_DATA(bad_timeouts) *self)
{
	unsigned int before = lost_interrupts(&self->bad), lost;
	int64_t end = np_now_ms() + NP_TIMEOUT_MS;

	EXPECT_EQ(0, np_bad_rule(&self->bad, 0, NP_IO_READ, BADCTRL_QUIET, 0, 1));
	EXPECT_EQ(0, np_bad_rule(&self->bad, 1, NVME_ADMIN_ABORT, BADCTRL_COUNT, 0, BADCTRL_EVERY));
	EXPECT_EQ(0, np_bad_read(&self->bad, self->bytes, 4 * NP_SHORT_MS));
	while (!(lost = lost_interrupts(&self->bad) - before) && np_now_ms() < end)
		np_sleep_ms(10);
	return lost;
}

/*
 * The completion must be found when the timeout expires. A CPU that stands still for as long makes the
 * driver find another one, and a badctrl that does makes it abort: then it is repeated.
 */
TEST_F(bad_timeouts, lost_interrupt_is_detected)
{
	unsigned int lost, tries = 0;

	do {
		lost = lose_interrupt(_metadata, self);
	} while ((lost > 1 || np_bad_hits(&self->bad, 1)) && ++tries < 3);
	EXPECT_EQ(1, lost);
	EXPECT_EQ(0, np_bad_hits(&self->bad, 1));
	EXPECT_EQ(self->generation, np_bad_wait_state(&self->bad, NVME_PEER_CTRL_LIVE));
}

/* --- stop ----------------------------------------------------------------------- */

/* The data page of the read is written before the controller stops. */
TEST_F(bad_timeouts, refused_abort_resets)
{
	ASSERT_EQ(0, np_bad_rule(&self->bad, 0, NP_IO_READ, BADCTRL_HOLD, 0, 1));
	ASSERT_EQ(0, np_bad_rule(&self->bad, 1, NVME_ADMIN_ABORT, BADCTRL_STATUS,
				 NVME_SC_INTERNAL, 1));
	EXPECT_EQ(-EINTR, np_bad_read(&self->bad, self->bytes, NP_SHORT_MS));
	EXPECT_EQ(1, np_bad_hits(&self->bad, 1));
	EXPECT_EQ(self->generation + 1, np_bad_wait_state(&self->bad, NVME_PEER_CTRL_LIVE));
	EXPECT_TRUE(quiesced(self->status, self->generation + 1));
	EXPECT_EQ(0, np_bad_read(&self->bad, self->bytes, 0));
}

TEST_F(bad_timeouts, abort_timeout_resets)
{
	ASSERT_EQ(0, np_bad_rule(&self->bad, 0, NP_IO_READ, BADCTRL_HOLD, 0, 1));
	ASSERT_EQ(0, np_bad_rule(&self->bad, 1, NVME_ADMIN_ABORT, BADCTRL_HOLD, 0, 1));
	EXPECT_EQ(-EINTR, np_bad_read(&self->bad, self->bytes, NP_SHORT_MS));
	EXPECT_EQ(self->generation + 1, np_bad_wait_state(&self->bad, NVME_PEER_CTRL_LIVE));
	EXPECT_TRUE(quiesced(self->status, self->generation + 1));
}

struct reader {
	struct np_bad *bad;
	uint8_t bytes[NP_BLOCK];
	int result;
};

static void *read_in_background(void *argument)
{
	struct reader *reader = argument;

	reader->result = np_bad_read(reader->bad, reader->bytes, NP_SHORT_MS);
	return NULL;
}

/*
 * ACL allows one Abort at a time, and the controller does not complete it: the other
 * command waits for the reset.
 */
TEST_F(bad_timeouts, aborts_limited_by_acl)
{
	struct reader readers[2] = { { .bad = &self->bad }, { .bad = &self->bad } };
	pthread_t threads[2];
	int i;

	ASSERT_EQ(0, np_bad_identify(&self->bad, NVME_CNS_CONTROLLER, CTRL_ACL, 0));
	ASSERT_EQ(0, np_ioctl(self->bad.ctrl.fd, NVME_IOCTL_RESET, NULL));
	EXPECT_EQ(self->generation + 1, np_bad_wait_state(&self->bad, NVME_PEER_CTRL_LIVE));
	ASSERT_EQ(0, np_bad_rule(&self->bad, 0, NP_IO_READ, BADCTRL_HOLD, 0, 2));
	ASSERT_EQ(0, np_bad_rule(&self->bad, 1, NVME_ADMIN_ABORT, BADCTRL_HOLD, 0, BADCTRL_EVERY));
	for (i = 0; i < 2; i++)
		ASSERT_EQ(0, pthread_create(&threads[i], NULL, read_in_background, &readers[i]));
	for (i = 0; i < 2; i++) {
		pthread_join(threads[i], NULL);
		EXPECT_EQ(-EINTR, readers[i].result);
	}
	EXPECT_EQ(1, np_bad_hits(&self->bad, 1));
	EXPECT_EQ(self->generation + 2, np_bad_wait_state(&self->bad, NVME_PEER_CTRL_LIVE));
}

/* Each completed Abort frees its slot of the limit. */
TEST_F(bad_timeouts, abort_limit_is_returned)
{
	int i;

	ASSERT_EQ(0, np_bad_identify(&self->bad, NVME_CNS_CONTROLLER, CTRL_ACL, 0));
	ASSERT_EQ(0, np_ioctl(self->bad.ctrl.fd, NVME_IOCTL_RESET, NULL));
	EXPECT_EQ(self->generation + 1, np_bad_wait_state(&self->bad, NVME_PEER_CTRL_LIVE));
	ASSERT_EQ(0, np_bad_rule(&self->bad, 0, NP_IO_READ, BADCTRL_HOLD, 0, 2));
	for (i = 0; i < 2; i++)
		EXPECT_EQ(NVME_SC_ABORTED, np_bad_read(&self->bad, self->bytes, NP_SHORT_MS));
	EXPECT_EQ(self->generation + 1, np_bad_wait_state(&self->bad, NVME_PEER_CTRL_LIVE));
}

/* No doorbell is written for it. */
TEST_F(bad_timeouts, completion_during_disable_counts)
{
	ASSERT_EQ(0, np_bad_set(&self->bad, BADCTRL_LATE, 1));
	ASSERT_EQ(0, np_bad_rule(&self->bad, 0, NP_IO_READ, BADCTRL_HOLD, 0, 1));
	ASSERT_EQ(0, np_bad_rule(&self->bad, 1, NVME_ADMIN_ABORT, BADCTRL_STATUS,
				 NVME_SC_INTERNAL, 1));
	EXPECT_EQ(0, np_bad_read(&self->bad, self->bytes, NP_SHORT_MS));
	EXPECT_EQ(self->generation + 1, np_bad_wait_state(&self->bad, NVME_PEER_CTRL_LIVE));
	EXPECT_EQ(0, np_bad_get(&self->bad, BADCTRL_EARLY));
}

TEST_F(bad_timeouts, admin_timeout_resets)
{
	ASSERT_EQ(0, np_bad_rule(&self->bad, 0, NVME_ADMIN_IDENTIFY, BADCTRL_HOLD, 0, 1));
	EXPECT_EQ(-EINTR, np_bad_identify_ctrl(&self->bad, NP_SHORT_MS));
	EXPECT_EQ(self->generation + 1, np_bad_wait_state(&self->bad, NVME_PEER_CTRL_LIVE));
	EXPECT_TRUE(quiesced(self->status, self->generation + 1));
	EXPECT_EQ(0, np_bad_identify_ctrl(&self->bad, 0));
}

TEST_F(bad_timeouts, fatal_status_resets)
{
	ASSERT_EQ(0, np_bad_rule(&self->bad, 0, NP_IO_READ, BADCTRL_CRASH, 0, 1));
	ASSERT_EQ(0, np_bad_rule(&self->bad, 1, NVME_ADMIN_ABORT, BADCTRL_COUNT, 0, BADCTRL_EVERY));
	/* Retried after the reset. */
	EXPECT_EQ(0, np_bad_read_disk(&self->bad, self->bytes));
	EXPECT_EQ(0, self->bytes[0]);
	EXPECT_EQ(0, np_bad_hits(&self->bad, 1));
	EXPECT_EQ(self->generation + 1, np_bad_wait_state(&self->bad, NVME_PEER_CTRL_LIVE));
	EXPECT_TRUE(quiesced(self->status, self->generation + 1));
}

/*
 * Without peer queue pairs there is no health poll, so CSTS is read when a command times
 * out.
 */
TEST_F(bad_timeouts, no_abort_on_failed_controller)
{
	int log = np_log_open();

	ASSERT_LE(0, log);
	np_qp_close(&self->qp);
	self->qp.fd = -1;
	ASSERT_EQ(0, np_bad_unbind(&self->bad));
	ASSERT_EQ(0, np_bad_bind(&self->bad, 1));
	ASSERT_EQ(0, np_bad_rule(&self->bad, 0, NP_IO_READ, BADCTRL_CRASH, 0, 1));
	EXPECT_EQ(0, np_bad_read_disk(&self->bad, self->bytes));
	EXPECT_EQ(0, np_log_wait(log, "controller failed, CSTS", NP_TIMEOUT_MS));
	EXPECT_EQ(1, np_bad_wait_state(&self->bad, NVME_PEER_CTRL_LIVE));
	close(log);
}

/* Only the driver's own commands are accepted during a start. */
TEST_F(bad_timeouts, user_command_refused_during_start)
{
	pthread_t thread;

	ASSERT_EQ(0, np_bad_rule(&self->bad, 0, NVME_ADMIN_IDENTIFY, BADCTRL_HOLD, 0, 1));
	ASSERT_EQ(0, pthread_create(&thread, NULL, np_bad_reset_thread, &self->bad));
	EXPECT_EQ(0, np_bad_wait_word(&self->bad, BADCTRL_HELD, 1));
	EXPECT_EQ(NVME_SC_HOST_PATH, np_bad_identify_ctrl(&self->bad, 0));
	EXPECT_EQ(0, np_bad_set(&self->bad, BADCTRL_RELEASE, 1));
	pthread_join(thread, NULL);
	EXPECT_EQ(self->generation + 1, np_bad_wait_state(&self->bad, NVME_PEER_CTRL_LIVE));
	EXPECT_EQ(0, np_bad_identify_ctrl(&self->bad, 0));
}

/* --- admin tags ----------------------------------------------------------------- */

/* More than the admin queue has tags. */
#define FAULTERS	40

static int identify_to(struct np_bad *bad, void *data)
{
	struct nvme_admin_cmd identify = {
		.opcode = NVME_ADMIN_IDENTIFY,
		.cdw10 = NVME_CNS_CONTROLLER,
		.addr = (uintptr_t)data,
		.data_len = NP_PAGE,
	};

	return np_admin(bad->ctrl.fd, &identify);
}

struct faulter {
	struct np_bad *bad;
	void *page;
};

static void *identify_to_missing_page(void *argument)
{
	struct faulter *faulter = argument;

	identify_to(faulter->bad, faulter->page);
	return NULL;
}

/* More commands than there are admin tags, with their buffers in a page fault. */
TEST_F(bad_timeouts, faulting_user_commands_do_not_block_reset)
{
	struct faulter faulters[FAULTERS];
	pthread_t threads[FAULTERS], reset;
	struct uffd_msg fault;
	uint8_t *pages;
	int faults, i, blocked = 0;
	int64_t limit;

	pages = mmap(NULL, FAULTERS * NP_PAGE, PROT_READ | PROT_WRITE,
		     MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	ASSERT_NE(MAP_FAILED, pages);
	faults = np_block_faults(pages, FAULTERS * NP_PAGE);
	if (faults == -ENOSYS)
		SKIP(return, "a kernel without userfaultfd");
	ASSERT_LE(0, faults);
	for (i = 0; i < FAULTERS; i++) {
		faulters[i] = (struct faulter){ &self->bad, pages + i * NP_PAGE };
		ASSERT_EQ(0, pthread_create(&threads[i], NULL, identify_to_missing_page,
					    &faulters[i]));
	}
	limit = np_now_ms() + NP_TIMEOUT_MS;
	while (blocked < FAULTERS && np_now_ms() < limit) {
		if (read(faults, &fault, sizeof(fault)) == sizeof(fault))
			blocked++;
		else
			np_sleep_ms(10);
	}
	/* None waits for a tag. */
	EXPECT_EQ(FAULTERS, blocked);
	ASSERT_EQ(0, pthread_create(&reset, NULL, np_bad_reset_thread, &self->bad));
	EXPECT_EQ(0, np_join(reset, NULL, 8000)) {
		TH_LOG("the reset waits for %d commands in page faults", blocked);
	}
	EXPECT_EQ(self->generation + 1, np_bad_generation(&self->bad));
	close(faults);
	for (i = 0; i < FAULTERS; i++)
		pthread_join(threads[i], NULL);
	EXPECT_EQ(self->generation + 1, np_bad_wait_state(&self->bad, NVME_PEER_CTRL_LIVE));
	munmap(pages, FAULTERS * NP_PAGE);
}

/* Those that users can have; the other ones are the driver's. */
#define USER_TAGS	24

static void *identify_patiently(void *bad)
{
	return (void *)(intptr_t)np_bad_identify_ctrl(bad, NP_TIMEOUT_MS);
}

/* Commands of users that hang do not keep the driver from aborting another one. */
TEST_F(bad_timeouts, abort_needs_no_tag_of_users)
{
	pthread_t threads[USER_TAGS];
	void *result;
	int i;

	ASSERT_EQ(0, np_bad_rule(&self->bad, 0, NVME_ADMIN_IDENTIFY, BADCTRL_HOLD, 0, USER_TAGS));
	for (i = 0; i < USER_TAGS; i++)
		ASSERT_EQ(0, pthread_create(&threads[i], NULL, identify_patiently, &self->bad));
	EXPECT_EQ(0, np_bad_wait_word(&self->bad, BADCTRL_HELD, USER_TAGS));
	ASSERT_EQ(0, np_bad_rule(&self->bad, 1, NP_IO_READ, BADCTRL_HOLD, 0, 1));
	EXPECT_EQ(NVME_SC_ABORTED, np_bad_read(&self->bad, self->bytes, NP_SHORT_MS));
	EXPECT_EQ(0, np_bad_set(&self->bad, BADCTRL_RELEASE, 1));
	for (i = 0; i < USER_TAGS; i++) {
		pthread_join(threads[i], &result);
		EXPECT_EQ(NULL, result);
	}
	EXPECT_EQ(self->generation, np_bad_wait_state(&self->bad, NVME_PEER_CTRL_LIVE));
}

/* --- shutdown ------------------------------------------------------------------- */

#define NAMESPACES	4

struct last {
	int generic;
	uint32_t nsid;
	uint8_t *bytes;
};

static void *read_last(void *argument)
{
	struct last *last = argument;
	struct nvme_passthru_cmd command = {
		.opcode = NVMEPEER_OP_READ,
		.nsid = last->nsid,
		.addr = (uintptr_t)last->bytes,
		.data_len = NP_BLOCK,
		.timeout_ms = 120000,
	};

	np_ioctl(last->generic, NVME_IOCTL_IO_CMD, &command);
	return NULL;
}

/* Those of peers and of the CPU. Nothing is left that a peer could use. */
TEST_F(bad_timeouts, shutdown_deletes_each_queue)
{
	static const uint8_t opcodes[] = { NVME_ADMIN_DELETE_SQ, NVME_ADMIN_DELETE_CQ };
	struct nvme_peer_info info;
	struct np_qp second;
	unsigned int i;

	ASSERT_EQ(0, np_qp_open(&second, self->bad.ctrl.fd, ENTRIES));
	ASSERT_EQ(0, np_info(self->bad.ctrl.fd, &info));
	for (i = 0; i < 2; i++)
		ASSERT_EQ(0, np_bad_rule(&self->bad, i, opcodes[i], BADCTRL_COUNT, 0, BADCTRL_EVERY));
	EXPECT_EQ(0, np_bad_shut_down(&self->bad));
	for (i = 0; i < 2; i++)
		EXPECT_EQ(2 + info.qids_cpu, np_bad_hits(&self->bad, i));
	EXPECT_EQ(NVME_PEER_QP_FAILED, self->status->state);
	EXPECT_EQ(-EFAULT, np_store(self->qp.tail_doorbell, 1));
	EXPECT_EQ(0, np_bad_get(&self->bad, CC) & 1);
	np_qp_close(&second);
}

/* Its caches are flushed as well: the reset that was under way has stopped it. */
TEST_F(bad_timeouts, shutdown_during_reset_flushes)
{
	pthread_t thread;

	ASSERT_EQ(0, np_bad_rule(&self->bad, 0, NVME_ADMIN_IDENTIFY, BADCTRL_HOLD, 0, 1));
	ASSERT_EQ(0, pthread_create(&thread, NULL, np_bad_reset_thread, &self->bad));
	EXPECT_EQ(0, np_bad_wait_word(&self->bad, BADCTRL_HELD, 1));
	EXPECT_EQ(0, np_bad_shut_down(&self->bad));
	EXPECT_EQ(CSTS_SHUTDOWN_DONE, np_bad_get(&self->bad, CSTS) & CSTS_SHUTDOWN);
	pthread_join(thread, NULL);
}

/* No command is sent to a controller that has vanished. */
TEST_F(bad_timeouts, shutdown_waits_for_no_vanished_controller)
{
	np_qp_close(&self->qp);
	self->qp.fd = -1;
	ASSERT_EQ(0, np_bad_set(&self->bad, BADCTRL_MODE, BADCTRL_GONE));
	EXPECT_EQ(0, np_bad_shut_down(&self->bad));
	EXPECT_EQ(0, np_bad_set(&self->bad, BADCTRL_MODE, BADCTRL_WORKS));
}

/* Five seconds for all hanging commands, not for each namespace. */
TEST_F_TIMEOUT(bad_timeouts, shutdown_has_one_deadline, 90)
{
	struct last last[NAMESPACES];
	pthread_t threads[NAMESPACES];
	char node[32];
	int64_t start;
	uint32_t i;

	ASSERT_EQ(0, np_bad_set(&self->bad, BADCTRL_ACTIVE, (1U << NAMESPACES) - 1));
	ASSERT_EQ(0, np_bad_set(&self->bad, BADCTRL_EVENT, EVENT_NAMESPACES));
	ASSERT_EQ(0, np_bad_wait_namespaces(&self->bad, NAMESPACES));
	/* When the namespace has this node, the partition scan has ended. */
	for (i = 0; i < NAMESPACES; i++) {
		last[i].nsid = i + 1;
		snprintf(node, sizeof(node), "/dev/ngp%%dn%u", i + 1);
		last[i].generic = np_open_node(&self->bad.ctrl, node, O_RDWR);
		ASSERT_LE(0, last[i].generic);
		ASSERT_EQ(0, posix_memalign((void **)&last[i].bytes, NP_PAGE, NP_PAGE));
	}
	ASSERT_EQ(0, np_bad_rule(&self->bad, 0, NP_IO_READ, BADCTRL_HOLD, 0, BADCTRL_EVERY));
	for (i = 0; i < NAMESPACES; i++)
		ASSERT_EQ(0, pthread_create(&threads[i], NULL, read_last, &last[i]));
	ASSERT_EQ(0, np_bad_wait_word(&self->bad, BADCTRL_HELD, NAMESPACES));
	start = np_now_ms();
	EXPECT_EQ(0, np_bad_shut_down(&self->bad));
	/* Shutdown does wait, and the steps after it take some time too; one after another, 20 s. */
	EXPECT_LE(4900, np_now_ms() - start);
	EXPECT_GT(18000, np_now_ms() - start);
	for (i = 0; i < NAMESPACES; i++) {
		pthread_join(threads[i], NULL);
		close(last[i].generic);
		free(last[i].bytes);
	}
}

/* --- timeout settings ----------------------------------------------------------- */

static void *read_disk_in_background(void *argument)
{
	struct reader *reader = argument;

	reader->result = np_disk_read(reader->bad->disk, reader->bytes, NP_BLOCK, 0);
	return NULL;
}

static void *read_patiently(void *argument)
{
	struct reader *reader = argument;

	reader->result = np_bad_read(reader->bad, reader->bytes, 0);
	return NULL;
}

/*
 * The module parameter sets the default of new disks, 2 s here; each disk then has its
 * own attribute.
 */
TEST_F_TIMEOUT(bad_timeouts, io_timeout_is_per_disk, 60)
{
	void *(*const reads[])(void *) = { read_disk_in_background, read_patiently };
	struct reader *reader;
	pthread_t thread;
	char path[128];
	size_t i;

	snprintf(path, sizeof(path), "/sys/block/nvmep%dn1/queue/io_timeout",
		 self->bad.ctrl.instance);
	ASSERT_EQ(0, np_write_file(path, "60000"));
	ASSERT_EQ(0, np_bad_rule(&self->bad, 1, NVME_ADMIN_ABORT, BADCTRL_COUNT, 0, BADCTRL_EVERY));
	ASSERT_EQ(0, posix_memalign((void **)&reader, NP_PAGE, sizeof(*reader)));
	reader->bad = &self->bad;
	for (i = 0; i < 2; i++) {
		ASSERT_EQ(0, np_bad_rule(&self->bad, 0, NP_IO_READ, BADCTRL_HOLD, 0, 1));
		ASSERT_EQ(0, pthread_create(&thread, NULL, reads[i], reader));
		ASSERT_EQ(0, np_bad_wait_word(&self->bad, BADCTRL_HELD, 1));
		np_sleep_ms(NP_BAD_EXPIRED_MS);
		EXPECT_EQ(0, np_bad_hits(&self->bad, 1));
		np_bad_set(&self->bad, BADCTRL_RELEASE, 1);
		pthread_join(thread, NULL);
		EXPECT_EQ(0, reader->result);
	}
	free(reader);
	EXPECT_EQ(self->generation, np_bad_generation(&self->bad));
}

/* In a child process: 0 if the timeout expired, and the controller was reset. */
static int ask_patiently_without_capabilities(struct np_bad *bad)
{
	if (np_drop_capabilities())
		return 1;
	return np_bad_identify_ctrl(bad, 600000) == -EINTR ? 0 : 2;
}

/* Otherwise an unprivileged user could hold up Format, scans and unbind. */
TEST_F(bad_timeouts, unprivileged_timeout_is_not_longer)
{
	int64_t end = np_now_ms() + NP_TIMEOUT_MS;
	int status;
	pid_t child;

	ASSERT_EQ(0, np_bad_rule(&self->bad, 0, NVME_ADMIN_IDENTIFY, BADCTRL_HOLD, 0, 1));
	ASSERT_EQ(0, np_bad_let_expire(&self->bad, 0));
	child = fork();
	ASSERT_LE(0, child);
	if (!child)
		_exit(ask_patiently_without_capabilities(&self->bad));
	ASSERT_EQ(0, np_bad_wait_word(&self->bad, BADCTRL_HELD, 1));
	while (np_bad_get(&self->bad, BADCTRL_HELD) && np_now_ms() < end)
		np_sleep_ms(50);
	EXPECT_EQ(0, np_bad_get(&self->bad, BADCTRL_HELD));
	np_bad_set(&self->bad, BADCTRL_RELEASE, 1);
	ASSERT_EQ(child, waitpid(child, &status, 0));
	EXPECT_EQ(0, WEXITSTATUS(status));
	EXPECT_EQ(self->generation + 1, np_bad_wait_state(&self->bad, NVME_PEER_CTRL_LIVE));
}

/* In a child process: 0 if the command was completed. */
static int ask_without_capabilities(struct np_bad *bad)
{
	if (np_drop_capabilities())
		return 1;
	return np_bad_identify_ctrl(bad, 1) ? 2 : 0;
}

/* Otherwise an unprivileged user could reset a controller that serves peers. */
TEST_F(bad_timeouts, unprivileged_timeout_is_ignored)
{
	int status;
	pid_t child;

	ASSERT_EQ(0, np_bad_rule(&self->bad, 0, NVME_ADMIN_IDENTIFY, BADCTRL_HOLD, 0, 1));
	child = fork();
	ASSERT_LE(0, child);
	if (!child)
		_exit(ask_without_capabilities(&self->bad));
	ASSERT_EQ(0, np_bad_wait_word(&self->bad, BADCTRL_HELD, 1));
	np_sleep_ms(NP_BAD_EXPIRED_MS);
	np_bad_set(&self->bad, BADCTRL_RELEASE, 1);
	ASSERT_EQ(child, waitpid(child, &status, 0));
	EXPECT_EQ(0, WEXITSTATUS(status));
	EXPECT_EQ(NVME_PEER_QP_LIVE, self->status->state);
	EXPECT_EQ(self->generation, np_bad_generation(&self->bad));
}

TEST_HARNESS_MAIN
