// SPDX-License-Identifier: GPL-2.0-only
/*
 * Commands that are not answered: aborted once, then the controller is fenced
 * and started again; whoever waited gets an answer, peers are told, and the data
 * pages stay the controller's until it has stopped.
 *
 * kernels: 6.1 debug
 * long-kernels: 6.1 6.12 7 debug kcsan
 * iommu: on
 * timeout: 180
 */
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "badknob.h"
#include "kselftest_harness.h"

#define ENTRIES		16U
#define CTRL_ACL	258		/* in Identify Controller */

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
		SKIP(return, "no misbehaving controller in this guest");
	ASSERT_EQ(0, np_bad_hurry());
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

/* Is a queue pair as a reset leaves it? */
static bool quiesced(const struct nvme_peer_status *status, uint32_t generation)
{
	return status->state == NVME_PEER_QP_QUIESCED && status->reason == EIO &&
	       status->generation == generation;
}

TEST_F(bad_timeouts, an_aborted_command_ends_with_the_status_of_the_controller)
{
	ASSERT_EQ(0, np_bad_rule(&self->bad, 0, NP_IO_READ, BADCTRL_HOLD, 0, 1));
	ASSERT_EQ(0, np_bad_rule(&self->bad, 1, NP_ADMIN_ABORT, BADCTRL_COUNT, 0, BADCTRL_EVERY));
	EXPECT_EQ(NP_STATUS_ABORTED, np_bad_read(&self->bad, self->bytes, NP_SHORT_MS));
	EXPECT_EQ(1, np_bad_hits(&self->bad, 1));
	/* Nothing else happened: no reset. */
	EXPECT_EQ(0, np_bad_read(&self->bad, self->bytes, 0));
	EXPECT_EQ(self->generation, np_bad_wait_state(&self->bad, NVME_PEER_CTRL_LIVE));
	EXPECT_EQ(NVME_PEER_QP_LIVE, self->status->state);
}

TEST_F(bad_timeouts, an_aborted_command_of_the_disk_is_tried_again)
{
	ASSERT_EQ(0, np_bad_rule(&self->bad, 0, NP_IO_READ, BADCTRL_HOLD, 0, 1));
	EXPECT_EQ(0, np_bad_read_disk(&self->bad, self->bytes));
	EXPECT_EQ(0, self->bytes[0]);
	EXPECT_EQ(self->generation, np_bad_wait_state(&self->bad, NVME_PEER_CTRL_LIVE));
}

TEST_F(bad_timeouts, an_answer_to_another_command_does_not_count)
{
	/* First a tag in use with another count, then a tag beyond all. */
	ASSERT_EQ(0, np_bad_rule(&self->bad, 0, NP_IO_READ, BADCTRL_WRONG_ID, 0x1000, 1));
	EXPECT_EQ(0, np_bad_read_disk(&self->bad, self->bytes));
	ASSERT_EQ(0, np_bad_rule(&self->bad, 0, NP_IO_READ, BADCTRL_WRONG_ID, 0xc00, 1));
	EXPECT_EQ(NP_STATUS_ABORTED, np_bad_read(&self->bad, self->bytes, NP_SHORT_MS));
	EXPECT_EQ(self->generation, np_bad_wait_state(&self->bad, NVME_PEER_CTRL_LIVE));
}

TEST_F(bad_timeouts, a_second_answer_does_not_count)
{
	int i;

	ASSERT_EQ(0, np_bad_rule(&self->bad, 0, NP_IO_READ, BADCTRL_TWICE, 0, 3));
	for (i = 0; i < 6; i++)
		EXPECT_EQ(0, np_bad_read_disk(&self->bad, self->bytes));
	EXPECT_EQ(self->generation, np_bad_wait_state(&self->bad, NVME_PEER_CTRL_LIVE));
}

/* Sum of the last column of debugfs' queues. */
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

/* The count follows the completion. */
static int wait_lost_interrupts(struct np_bad *bad, unsigned int count)
{
	int64_t end = np_now_ms() + NP_TIMEOUT_MS;

	while (lost_interrupts(bad) != count) {
		if (np_now_ms() > end)
			return -ETIMEDOUT;
		np_sleep_ms(10);
	}
	return 0;
}

/* It has to be there when the time is over, also where the controller's process had to wait. */
TEST_F(bad_timeouts, a_completion_without_interrupt_is_found)
{
	EXPECT_EQ(0, lost_interrupts(&self->bad));
	ASSERT_EQ(0, np_bad_rule(&self->bad, 0, NP_IO_READ, BADCTRL_QUIET, 0, 1));
	ASSERT_EQ(0, np_bad_rule(&self->bad, 1, NP_ADMIN_ABORT, BADCTRL_COUNT, 0, BADCTRL_EVERY));
	EXPECT_EQ(0, np_bad_read(&self->bad, self->bytes, 4 * NP_SHORT_MS));
	EXPECT_EQ(0, wait_lost_interrupts(&self->bad, 1));
	EXPECT_EQ(0, np_bad_hits(&self->bad, 1));
	EXPECT_EQ(self->generation, np_bad_wait_state(&self->bad, NVME_PEER_CTRL_LIVE));
}

/* --- the fence ------------------------------------------------------------- */

/* The page that the read was to fill is filled before the controller stops. */
TEST_F(bad_timeouts, a_refused_abort_leads_to_a_reset)
{
	ASSERT_EQ(0, np_bad_rule(&self->bad, 0, NP_IO_READ, BADCTRL_HOLD, 0, 1));
	ASSERT_EQ(0, np_bad_rule(&self->bad, 1, NP_ADMIN_ABORT, BADCTRL_STATUS,
				 NP_STATUS_INTERNAL, 1));
	EXPECT_EQ(-EINTR, np_bad_read(&self->bad, self->bytes, NP_SHORT_MS));
	EXPECT_EQ(1, np_bad_hits(&self->bad, 1));
	EXPECT_EQ(self->generation + 1, np_bad_wait_state(&self->bad, NVME_PEER_CTRL_LIVE));
	EXPECT_TRUE(quiesced(self->status, self->generation + 1));
	EXPECT_EQ(0, np_bad_read(&self->bad, self->bytes, 0));
}

TEST_F(bad_timeouts, an_abort_without_answer_leads_to_a_reset)
{
	ASSERT_EQ(0, np_bad_rule(&self->bad, 0, NP_IO_READ, BADCTRL_HOLD, 0, 1));
	ASSERT_EQ(0, np_bad_rule(&self->bad, 1, NP_ADMIN_ABORT, BADCTRL_HOLD, 0, 1));
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

/* It takes one Abort at a time, and does not answer that: the other waits for the reset. */
TEST_F(bad_timeouts, aborts_are_as_many_as_the_controller_takes)
{
	struct reader readers[2] = { { .bad = &self->bad }, { .bad = &self->bad } };
	pthread_t threads[2];
	int i;

	ASSERT_EQ(0, np_bad_identify(&self->bad, 1, CTRL_ACL, 0));
	ASSERT_EQ(0, np_ioctl(self->bad.ctrl.fd, NVME_IOCTL_RESET, NULL));
	EXPECT_EQ(self->generation + 1, np_bad_wait_state(&self->bad, NVME_PEER_CTRL_LIVE));
	ASSERT_EQ(0, np_bad_rule(&self->bad, 0, NP_IO_READ, BADCTRL_HOLD, 0, 2));
	ASSERT_EQ(0, np_bad_rule(&self->bad, 1, NP_ADMIN_ABORT, BADCTRL_HOLD, 0, BADCTRL_EVERY));
	for (i = 0; i < 2; i++)
		ASSERT_EQ(0, pthread_create(&threads[i], NULL, read_in_background, &readers[i]));
	for (i = 0; i < 2; i++) {
		pthread_join(threads[i], NULL);
		EXPECT_EQ(-EINTR, readers[i].result);
	}
	EXPECT_EQ(1, np_bad_hits(&self->bad, 1));
	EXPECT_EQ(self->generation + 2, np_bad_wait_state(&self->bad, NVME_PEER_CTRL_LIVE));
}

/* What it has answered it can be asked again. */
TEST_F(bad_timeouts, aborts_do_not_run_out)
{
	int i;

	ASSERT_EQ(0, np_bad_identify(&self->bad, 1, CTRL_ACL, 0));
	ASSERT_EQ(0, np_ioctl(self->bad.ctrl.fd, NVME_IOCTL_RESET, NULL));
	EXPECT_EQ(self->generation + 1, np_bad_wait_state(&self->bad, NVME_PEER_CTRL_LIVE));
	ASSERT_EQ(0, np_bad_rule(&self->bad, 0, NP_IO_READ, BADCTRL_HOLD, 0, 2));
	for (i = 0; i < 2; i++)
		EXPECT_EQ(NP_STATUS_ABORTED, np_bad_read(&self->bad, self->bytes, NP_SHORT_MS));
	EXPECT_EQ(self->generation + 1, np_bad_wait_state(&self->bad, NVME_PEER_CTRL_LIVE));
}

TEST_F(bad_timeouts, what_completes_while_it_stops_counts)
{
	ASSERT_EQ(0, np_bad_set(&self->bad, BADCTRL_LATE, 1));
	ASSERT_EQ(0, np_bad_rule(&self->bad, 0, NP_IO_READ, BADCTRL_HOLD, 0, 1));
	ASSERT_EQ(0, np_bad_rule(&self->bad, 1, NP_ADMIN_ABORT, BADCTRL_STATUS,
				 NP_STATUS_INTERNAL, 1));
	EXPECT_EQ(0, np_bad_read(&self->bad, self->bytes, NP_SHORT_MS));
	EXPECT_EQ(self->generation + 1, np_bad_wait_state(&self->bad, NVME_PEER_CTRL_LIVE));
}

TEST_F(bad_timeouts, an_admin_command_without_answer_leads_to_a_reset)
{
	ASSERT_EQ(0, np_bad_rule(&self->bad, 0, NP_ADMIN_IDENTIFY, BADCTRL_HOLD, 0, 1));
	EXPECT_EQ(-EINTR, np_bad_ask(&self->bad, NP_SHORT_MS));
	EXPECT_EQ(self->generation + 1, np_bad_wait_state(&self->bad, NVME_PEER_CTRL_LIVE));
	EXPECT_TRUE(quiesced(self->status, self->generation + 1));
	EXPECT_EQ(0, np_bad_ask(&self->bad, 0));
}

TEST_F(bad_timeouts, a_fatal_status_leads_to_a_reset)
{
	ASSERT_EQ(0, np_bad_rule(&self->bad, 0, NP_IO_READ, BADCTRL_CRASH, 0, 1));
	ASSERT_EQ(0, np_bad_rule(&self->bad, 1, NP_ADMIN_ABORT, BADCTRL_COUNT, 0, BADCTRL_EVERY));
	/* Sent again after the reset. */
	EXPECT_EQ(0, np_bad_read_disk(&self->bad, self->bytes));
	EXPECT_EQ(0, self->bytes[0]);
	EXPECT_EQ(0, np_bad_hits(&self->bad, 1));
	EXPECT_EQ(self->generation + 1, np_bad_wait_state(&self->bad, NVME_PEER_CTRL_LIVE));
	EXPECT_TRUE(quiesced(self->status, self->generation + 1));
}

/* Without queue pairs of peers nobody looks before a command's time is over. */
TEST_F(bad_timeouts, a_failed_controller_is_not_asked_to_abort)
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

/* Whom it answers while it starts is the driver. */
TEST_F(bad_timeouts, a_user_does_not_get_into_a_start)
{
	pthread_t thread;

	ASSERT_EQ(0, np_bad_rule(&self->bad, 0, NP_ADMIN_IDENTIFY, BADCTRL_HOLD, 0, 1));
	ASSERT_EQ(0, pthread_create(&thread, NULL, np_bad_reset_thread, &self->bad));
	EXPECT_EQ(0, np_bad_wait_word(&self->bad, BADCTRL_HELD, 1));
	EXPECT_EQ(NP_STATUS_HOST_PATH, np_bad_ask(&self->bad, 0));
	EXPECT_EQ(0, np_bad_set(&self->bad, BADCTRL_RELEASE, 1));
	pthread_join(thread, NULL);
	EXPECT_EQ(self->generation + 1, np_bad_wait_state(&self->bad, NVME_PEER_CTRL_LIVE));
	EXPECT_EQ(0, np_bad_ask(&self->bad, 0));
}

/* --- the end ----------------------------------------------------------------- */

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
		.opcode = NP_CMD_READ,
		.nsid = last->nsid,
		.addr = (uintptr_t)last->bytes,
		.data_len = NP_BLOCK,
		.timeout_ms = 120000,
	};

	np_ioctl(last->generic, NVME_IOCTL_IO_CMD, &command);
	return NULL;
}

static int shut_down(const struct np_bad *bad)
{
	struct nvme_peer_pci_address address = np_parse_address(bad->address);
	int test = open(NVMEP_TEST_NODE, O_RDWR | O_CLOEXEC);
	int ret = np_ioctl(test, NVMEP_TEST_SHUTDOWN, &address);

	close(test);
	return ret;
}

/* Five seconds for what hangs, not for each namespace in which something does. */
TEST_F_TIMEOUT(bad_timeouts, a_shutdown_waits_once, 90)
{
	struct last last[NAMESPACES];
	pthread_t threads[NAMESPACES];
	char node[32];
	int64_t start;
	uint32_t i;

	ASSERT_EQ(0, np_bad_set(&self->bad, BADCTRL_ACTIVE, (1U << NAMESPACES) - 1));
	ASSERT_EQ(0, np_bad_set(&self->bad, BADCTRL_EVENT, EVENT_NAMESPACES));
	ASSERT_EQ(0, np_bad_wait_namespaces(&self->bad, NAMESPACES));
	/* When a namespace has this node, nobody looks for partitions on it any more. */
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
	EXPECT_EQ(0, shut_down(&self->bad));
	/* It does wait, and what comes after takes some time too. */
	EXPECT_LE(4900, np_now_ms() - start);
	EXPECT_GT(10000, np_now_ms() - start);
	for (i = 0; i < NAMESPACES; i++) {
		pthread_join(threads[i], NULL);
		close(last[i].generic);
		free(last[i].bytes);
	}
}

/* --- who says how long ------------------------------------------------------- */

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

/* The parameter is for disks that are yet to come, 2 s here; each has an attribute then. */
TEST_F_TIMEOUT(bad_timeouts, a_disk_has_its_own, 60)
{
	void *(*const reads[])(void *) = { read_disk_in_background, read_patiently };
	struct reader *reader;
	pthread_t thread;
	char path[128];
	size_t i;

	snprintf(path, sizeof(path), "/sys/block/nvmep%dn1/queue/io_timeout",
		 self->bad.ctrl.instance);
	ASSERT_EQ(0, np_write_file(path, "60000"));
	ASSERT_EQ(0, np_bad_rule(&self->bad, 1, NP_ADMIN_ABORT, BADCTRL_COUNT, 0, BADCTRL_EVERY));
	ASSERT_EQ(0, posix_memalign((void **)&reader, NP_PAGE, sizeof(*reader)));
	reader->bad = &self->bad;
	for (i = 0; i < 2; i++) {
		ASSERT_EQ(0, np_bad_rule(&self->bad, 0, NP_IO_READ, BADCTRL_HOLD, 0, 1));
		ASSERT_EQ(0, pthread_create(&thread, NULL, reads[i], reader));
		ASSERT_EQ(0, np_bad_wait_word(&self->bad, BADCTRL_HELD, 1));
		np_sleep_ms(5000);
		EXPECT_EQ(0, np_bad_hits(&self->bad, 1));
		np_bad_set(&self->bad, BADCTRL_RELEASE, 1);
		pthread_join(thread, NULL);
		EXPECT_EQ(0, reader->result);
	}
	free(reader);
	EXPECT_EQ(self->generation, np_bad_generation(&self->bad));
}

/* In a process of its own: 0 if the command was answered. */
static int ask_without_capabilities(struct np_bad *bad)
{
	if (np_drop_capabilities())
		return 1;
	return np_bad_ask(bad, 1) ? 2 : 0;
}

/* Else a user who may only look could reset a controller that serves peers. */
TEST_F(bad_timeouts, a_user_cannot_make_it_short)
{
	int status;
	pid_t child;

	ASSERT_EQ(0, np_write_file("/sys/module/nvme_peer/parameters/admin_timeout", "60"));
	ASSERT_EQ(0, np_bad_rule(&self->bad, 0, NP_ADMIN_IDENTIFY, BADCTRL_HOLD, 0, 1));
	child = fork();
	ASSERT_LE(0, child);
	if (!child)
		_exit(ask_without_capabilities(&self->bad));
	ASSERT_EQ(0, np_bad_wait_word(&self->bad, BADCTRL_HELD, 1));
	/* Time runs out a second late, as the kernel looks no more often. */
	np_sleep_ms(4000);
	np_bad_set(&self->bad, BADCTRL_RELEASE, 1);
	ASSERT_EQ(child, waitpid(child, &status, 0));
	EXPECT_EQ(0, WEXITSTATUS(status));
	EXPECT_EQ(NVME_PEER_QP_LIVE, self->status->state);
	EXPECT_EQ(self->generation, np_bad_generation(&self->bad));
}

TEST_HARNESS_MAIN
