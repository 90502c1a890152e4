// SPDX-License-Identifier: GPL-2.0-only
/*
 * What the file of a queue pair tells: records of what happened, to wait for and to
 * read, and the reason beside the state.
 *
 * iommu: on
 */
#include <errno.h>
#include <fcntl.h>
#include <linux/netlink.h>
#include <poll.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

#include "nptest.h"
#include "kselftest_harness.h"

#define ENTRIES	16U
#define PAGES	2U

FIXTURE(events)
{
	struct np_ctrl ctrl;
	char before[NP_OBJECTS];
	struct np_buffer buffer;
	struct nvme_peer_qp_create qp;
	int test;
};

FIXTURE_SETUP(events)
{
	ASSERT_EQ(0, np_ctrl_open(&self->ctrl, "np0"));
	ASSERT_EQ(0, np_objects(&self->ctrl, self->before));
	self->test = open(NVMEP_TEST_NODE, O_RDWR | O_CLOEXEC);
	ASSERT_LE(0, self->test);
	ASSERT_EQ(0, np_buffer_open(&self->buffer, self->ctrl.fd, PAGES, 0));
	ASSERT_EQ(0, np_qp_create(self->ctrl.fd, ENTRIES, &self->qp));
	ASSERT_EQ(0, fcntl(self->qp.qp_fd, F_SETFL, O_NONBLOCK));
}

FIXTURE_TEARDOWN(events)
{
	close(self->qp.qp_fd);
	EXPECT_EQ(0, np_release(self->ctrl.fd, self->buffer.handle));
	np_buffer_close(&self->buffer);
	close(self->test);
	EXPECT_EQ(0, np_objects_settle(&self->ctrl, self->before, NP_TIMEOUT_MS));
	np_ctrl_close(&self->ctrl);
}

/* What poll() says of everything that it can say, now or soon. */
static int polled(int fd, int timeout_ms)
{
	struct pollfd file = { .fd = fd, .events = POLLIN | POLLOUT | POLLPRI };

	return poll(&file, 1, timeout_ms) < 0 ? -errno : file.revents;
}

static ssize_t take(int fd, void *bytes, size_t length)
{
	ssize_t ret = read(fd, bytes, length);

	return ret < 0 ? -errno : ret;
}

/* The exporter of a buffer whose addresses are known wants it back: the pair is GONE. */
static int take_back(int test, int dmabuf)
{
	struct nvmep_test_move move = { .fd = dmabuf };

	return np_ioctl(test, NVMEP_TEST_MOVE, &move);
}

static int wait_for(int fd, int mask)
{
	int64_t end = np_now_ms() + NP_TIMEOUT_MS;
	int now;

	do {
		now = polled(fd, 50);
	} while (now != mask && np_now_ms() < end);
	return now;
}

static uint64_t monotonic(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (uint64_t)now.tv_sec * 1000000000 + (uint64_t)now.tv_nsec;
}

TEST_F(events, nothing_has_happened_to_a_new_queue_pair)
{
	struct nvme_peer_qp_info info;
	struct nvme_peer_event event;

	EXPECT_EQ(0, polled(self->qp.qp_fd, 0));
	EXPECT_EQ(-EAGAIN, take(self->qp.qp_fd, &event, sizeof(event)));
	EXPECT_EQ(-EINVAL, take(self->qp.qp_fd, &event, sizeof(event) - 1));
	EXPECT_EQ(-EINVAL, take(self->qp.qp_fd, &event, 0));
	ASSERT_EQ(0, np_qp_info(self->qp.qp_fd, &info));
	EXPECT_EQ(NVME_PEER_QP_LIVE, info.state);
	EXPECT_EQ(0, info.reason);
}

TEST_F(events, the_end_is_told_with_its_reason)
{
	struct nvme_peer_event event[2] = { 0 };
	struct nvme_peer_qp_info info;
	uint64_t before = monotonic();
	int fd = self->qp.qp_fd;

	ASSERT_EQ(0, take_back(self->test, self->buffer.fd));
	EXPECT_EQ(POLLPRI | POLLHUP, wait_for(fd, POLLPRI | POLLHUP));
	/* Nothing is taken by looking, nor by a read that cannot deliver. */
	EXPECT_EQ(-EINVAL, take(fd, event, sizeof(event[0]) - 1));
	EXPECT_EQ(-EFAULT, take(fd, (void *)NP_PAGE, sizeof(event)));
	ASSERT_EQ(sizeof(event[0]), take(fd, event, sizeof(event)));
	EXPECT_EQ(sizeof(event[0]), event[0].size);
	EXPECT_EQ(NVME_PEER_EVENT_STATE, event[0].type);
	EXPECT_LE(before, event[0].time);
	EXPECT_GE(monotonic(), event[0].time);
	EXPECT_EQ(self->qp.generation, event[0].generation);
	EXPECT_EQ(NVME_PEER_QP_GONE, event[0].state);
	EXPECT_EQ(ESTALE, event[0].reason);
	EXPECT_EQ(0, event[0].lost);
	/* There was one, though it took two steps; after it there is nothing to wait for. */
	EXPECT_EQ(POLLHUP, polled(fd, 0));
	EXPECT_EQ(0, take(fd, event, sizeof(event)));
	ASSERT_EQ(0, np_qp_info(fd, &info));
	EXPECT_EQ(NVME_PEER_QP_GONE, info.state);
	EXPECT_EQ(ESTALE, info.reason);
}

/* A reset is no end of the file: who waits for that must not wake. */
TEST_F(events, a_reset_is_told_and_is_no_hangup)
{
	struct nvme_peer_event event[5] = { 0 };
	struct nvme_peer_qp_info info;
	struct nvme_peer_info now;
	struct np_qp pair = { .fd = self->qp.qp_fd };
	int fd = self->qp.qp_fd;

	ASSERT_EQ(0, np_ioctl(self->ctrl.fd, NVME_IOCTL_RESET, NULL));
	EXPECT_EQ(POLLPRI, wait_for(fd, POLLPRI));
	ASSERT_EQ(0, np_ctrl_settle(self->ctrl.fd, &now, NP_TIMEOUT_MS));
	ASSERT_EQ(0, np_qp_info(fd, &info));
	EXPECT_EQ(EIO, info.reason);
	ASSERT_EQ(0, np_qp_rearm(&pair, NP_TIMEOUT_MS));
	ASSERT_EQ(0, take_back(self->test, self->buffer.fd));
	EXPECT_EQ(POLLPRI | POLLHUP, wait_for(fd, POLLPRI | POLLHUP));
	/* All at once, in their order, and no part of what does not fit. */
	ASSERT_EQ(4 * sizeof(event[0]), take(fd, event, sizeof(event) - 1));
	EXPECT_EQ(NVME_PEER_EVENT_STATE, event[0].type);
	EXPECT_EQ(NVME_PEER_QP_QUIESCED, event[0].state);
	EXPECT_EQ(EIO, event[0].reason);
	EXPECT_EQ(self->qp.generation + 1, event[0].generation);
	EXPECT_EQ(NVME_PEER_EVENT_READY, event[1].type);
	EXPECT_EQ(NVME_PEER_QP_QUIESCED, event[1].state);
	EXPECT_LE(event[0].time, event[1].time);
	EXPECT_EQ(NVME_PEER_EVENT_STATE, event[2].type);
	EXPECT_EQ(NVME_PEER_QP_LIVE, event[2].state);
	EXPECT_EQ(0, event[2].reason);
	EXPECT_EQ(NVME_PEER_QP_GONE, event[3].state);
	EXPECT_EQ(ESTALE, event[3].reason);
	EXPECT_LE(event[2].time, event[3].time);
}

/* The next uevent that says NVME_PEER_EVENT=@event, soon: its bytes in @text. */
static int wait_uevent(int fd, const char *event, char *text, size_t length)
{
	int64_t end = np_now_ms() + NP_TIMEOUT_MS;
	char wanted[64];
	ssize_t got;

	snprintf(wanted, sizeof(wanted), "NVME_PEER_EVENT=%s\n", event);
	while (np_now_ms() < end) {
		got = recv(fd, text, length - 1, MSG_DONTWAIT);
		if (got <= 0) {
			np_sleep_ms(10);
			continue;
		}
		text[got] = '\0';
		/* Its strings become lines. */
		while (got--)
			if (!text[got])
				text[got] = '\n';
		if (strstr(text, wanted))
			return 0;
	}
	return -ETIMEDOUT;
}

/* Who watches the controller learns of a loss and of the way back, with how many pairs. */
TEST_F(events, uevents_tell_of_a_reset)
{
	struct sockaddr_nl kernel = { .nl_family = AF_NETLINK, .nl_groups = 1 };
	char text[4096], line[64];
	struct nvme_peer_info now;
	int fd;

	fd = socket(AF_NETLINK, SOCK_DGRAM | SOCK_CLOEXEC, NETLINK_KOBJECT_UEVENT);
	ASSERT_LE(0, fd);
	ASSERT_EQ(0, bind(fd, (struct sockaddr *)&kernel, sizeof(kernel)));
	ASSERT_EQ(0, np_ioctl(self->ctrl.fd, NVME_IOCTL_RESET, NULL));
	ASSERT_EQ(0, np_ctrl_settle(self->ctrl.fd, &now, NP_TIMEOUT_MS));
	ASSERT_EQ(0, wait_uevent(fd, "stopped", text, sizeof(text)));
	EXPECT_TRUE(strstr(text, "\nNVME_PEER_QUEUE_PAIRS=1\n"));
	EXPECT_TRUE(strstr(text, "\nSUBSYSTEM=nvme-peer\n"));
	ASSERT_EQ(0, wait_uevent(fd, "ready", text, sizeof(text)));
	snprintf(line, sizeof(line), "\nNVME_PEER_GENERATION=%u\n", now.generation);
	EXPECT_TRUE(strstr(text, line));
	EXPECT_TRUE(strstr(text, "\nNVME_PEER_QUEUE_PAIRS=1\n"));
	close(fd);
}

#define KEPT	16	/* records that the kernel keeps */

/* Three for each: quiesced, ready, live.  Who does not read is told how many went. */
TEST_F(events, the_oldest_go_first)
{
	struct nvme_peer_event event[KEPT + 1] = { 0 };
	struct np_qp pair = { .fd = self->qp.qp_fd };
	struct nvme_peer_info now;
	int i;

	for (i = 0; i < KEPT / 3 + 1; i++) {
		ASSERT_EQ(0, np_ioctl(self->ctrl.fd, NVME_IOCTL_RESET, NULL));
		ASSERT_EQ(0, np_ctrl_settle(self->ctrl.fd, &now, NP_TIMEOUT_MS));
		ASSERT_EQ(0, np_qp_rearm(&pair, NP_TIMEOUT_MS));
	}
	ASSERT_EQ(KEPT * sizeof(event[0]), take(pair.fd, event, sizeof(event)));
	EXPECT_EQ(3 * i - KEPT, event[0].lost);
	EXPECT_EQ(NVME_PEER_QP_LIVE, event[0].state);
	EXPECT_EQ(0, event[1].lost);
	EXPECT_EQ(now.generation, event[KEPT - 1].generation);
	EXPECT_EQ(NVME_PEER_QP_LIVE, event[KEPT - 1].state);
	EXPECT_EQ(0, polled(pair.fd, 0));
}

struct reader {
	pthread_t thread;
	int fd;
	struct nvme_peer_event event;
	ssize_t ret;
};

static void *read_one(void *argument)
{
	struct reader *reader = argument;

	reader->ret = take(reader->fd, &reader->event, sizeof(reader->event));
	return NULL;
}

/* Two wait; one gets the only record, the other learns that no more will come. */
TEST_F(events, readers_wait)
{
	struct reader reader[2] = { { .fd = self->qp.qp_fd }, { .fd = self->qp.qp_fd } };
	int i, got = 0;

	ASSERT_EQ(0, fcntl(self->qp.qp_fd, F_SETFL, 0));
	for (i = 0; i < 2; i++)
		ASSERT_EQ(0, pthread_create(&reader[i].thread, NULL, read_one, &reader[i]));
	np_sleep_ms(200);
	EXPECT_EQ(0, reader[0].ret);
	ASSERT_EQ(0, take_back(self->test, self->buffer.fd));
	for (i = 0; i < 2; i++) {
		pthread_join(reader[i].thread, NULL);
		got += reader[i].ret == sizeof(reader[i].event) &&
		       reader[i].event.state == NVME_PEER_QP_GONE;
		EXPECT_LE(0, reader[i].ret);
	}
	EXPECT_EQ(1, got);
}

TEST_HARNESS_MAIN
