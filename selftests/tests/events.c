// SPDX-License-Identifier: GPL-2.0-only
/*
 * Events of a queue pair file: poll(), read(), and the reason beside the state.
 *
 * iommu: on
 * relay: 7 debug
 * mediated: 7
 */
#include <errno.h>
#include <fcntl.h>
#include <liburing.h>
#include <linux/netlink.h>
#include <poll.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

#include "nptest.h"
#include "spare.h"
#include "kselftest_harness.h"

NP_KEEPS_DISK()

#define ENTRIES	16U
#define PAGES	2U
#define EVENT	(POLLIN | POLLRDNORM | POLLPRI)

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
	self->test = np_test_open();
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
	EXPECT_EQ(0, np_objects_wait(&self->ctrl, self->before, NP_TIMEOUT_MS));
	np_ctrl_close(&self->ctrl);
}

/* All bits that poll() reports now or before the timeout. */
static int polled(int fd, int timeout_ms)
{
	return np_poll(fd, EVENT | POLLOUT, timeout_ms);
}

static ssize_t take(int fd, void *bytes, size_t length)
{
	ssize_t ret = read(fd, bytes, length);

	return ret < 0 ? -errno : ret;
}

/* The exporter of an exposed buffer invalidates it: the queue pair is GONE. */
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

TEST_F(events, new_queue_pair_has_no_events)
{
	struct nvme_peer_qp_info info;
	struct nvme_peer_event event;

	EXPECT_EQ(0, polled(self->qp.qp_fd, 0));
	EXPECT_EQ(-EAGAIN, take(self->qp.qp_fd, &event, sizeof(event)));
	EXPECT_EQ(-EINVAL, take(self->qp.qp_fd, &event, NVME_PEER_EVENT_LEAST - 1));
	EXPECT_EQ(-EINVAL, take(self->qp.qp_fd, &event, 0));
	ASSERT_EQ(0, np_qp_info(self->qp.qp_fd, &info));
	EXPECT_EQ(NVME_PEER_QP_LIVE, info.state);
	EXPECT_EQ(0, info.reason);
}

TEST_F(events, gone_event_has_reason)
{
	struct nvme_peer_event event[2] = { 0 };
	struct nvme_peer_qp_info info;
	uint64_t before = monotonic();
	int fd = self->qp.qp_fd;

	NP_NOT_MEDIATED("an invalidation ends the buffer, not the queue pair");
	ASSERT_EQ(0, take_back(self->test, self->buffer.fd));
	EXPECT_EQ(EVENT | POLLHUP, wait_for(fd, EVENT | POLLHUP));
	/* poll() consumes no event, nor does a read() whose buffer is too short. */
	EXPECT_EQ(-EINVAL, take(fd, event, NVME_PEER_EVENT_LEAST - 1));
	EXPECT_EQ(-EFAULT, take(fd, (void *)NP_PAGE, sizeof(event)));
	ASSERT_EQ(sizeof(event[0]), take(fd, event, sizeof(event)));
	EXPECT_EQ(sizeof(event[0]), event[0].size);
	EXPECT_EQ(NVME_PEER_EVENT_STATE, event[0].type);
	EXPECT_LE(before, event[0].time);
	EXPECT_GE(monotonic(), event[0].time);
	EXPECT_EQ(self->qp.generation, event[0].generation);
	EXPECT_EQ(NVME_PEER_QP_GONE, event[0].state);
	EXPECT_EQ(NVME_PEER_QP_REASON_BUFFER, event[0].reason);
	EXPECT_EQ(0, event[0].lost);
	/* One event is reported although the end took two steps; nothing follows it. */
	EXPECT_EQ(POLLHUP, polled(fd, 0));
	EXPECT_EQ(0, take(fd, event, sizeof(event)));
	ASSERT_EQ(0, np_qp_info(fd, &info));
	EXPECT_EQ(NVME_PEER_QP_GONE, info.state);
	EXPECT_EQ(NVME_PEER_QP_REASON_BUFFER, info.reason);
}

/* A reset must not report POLLHUP: waiters for the end would wake. */
TEST_F(events, reset_event_without_pollhup)
{
	struct nvme_peer_event event[5] = { 0 };
	struct nvme_peer_qp_info info;
	struct nvme_peer_info now;
	struct np_qp pair = { .fd = self->qp.qp_fd };
	int fd = self->qp.qp_fd;

	NP_NOT_MEDIATED("an invalidation ends the buffer, not the queue pair");
	ASSERT_EQ(0, np_ioctl(self->ctrl.fd, NVME_IOCTL_RESET, NULL));
	EXPECT_EQ(EVENT, wait_for(fd, EVENT));
	ASSERT_EQ(0, np_ctrl_wait_live(self->ctrl.fd, &now, NP_TIMEOUT_MS));
	ASSERT_EQ(0, np_qp_info(fd, &info));
	EXPECT_EQ(NVME_PEER_QP_REASON_RESET, info.reason);
	ASSERT_EQ(0, np_qp_rearm(&pair, NP_TIMEOUT_MS));
	ASSERT_EQ(0, take_back(self->test, self->buffer.fd));
	EXPECT_EQ(EVENT | POLLHUP, wait_for(fd, EVENT | POLLHUP));
	/* All events at once, in order, and no partial event. */
	ASSERT_EQ(4 * sizeof(event[0]), take(fd, event, sizeof(event) - 1));
	EXPECT_EQ(NVME_PEER_EVENT_STATE, event[0].type);
	EXPECT_EQ(NVME_PEER_QP_QUIESCED, event[0].state);
	EXPECT_EQ(NVME_PEER_QP_REASON_RESET, event[0].reason);
	EXPECT_EQ(self->qp.generation + 1, event[0].generation);
	EXPECT_EQ(NVME_PEER_EVENT_READY, event[1].type);
	EXPECT_EQ(NVME_PEER_QP_QUIESCED, event[1].state);
	EXPECT_LE(event[0].time, event[1].time);
	EXPECT_EQ(NVME_PEER_EVENT_STATE, event[2].type);
	EXPECT_EQ(NVME_PEER_QP_LIVE, event[2].state);
	EXPECT_EQ(0, event[2].reason);
	EXPECT_EQ(NVME_PEER_QP_GONE, event[3].state);
	EXPECT_EQ(NVME_PEER_QP_REASON_BUFFER, event[3].reason);
	EXPECT_LE(event[2].time, event[3].time);
}

/* The result of the next poll of io_uring that is done, whose name is @data. */
static int uring_polled(struct io_uring *ring, uint64_t data, int timeout_ms)
{
	struct __kernel_timespec limit = {
		.tv_sec = timeout_ms / 1000,
		.tv_nsec = timeout_ms % 1000 * 1000000,
	};
	struct io_uring_cqe *cqe;
	int ret = io_uring_wait_cqe_timeout(ring, &cqe, &limit);

	if (ret)
		return ret;
	ret = cqe->user_data == data ? cqe->res : -EBADMSG;
	io_uring_cqe_seen(ring, cqe);
	return ret;
}

static int uring_poll(struct io_uring *ring, int fd, unsigned int mask, uint64_t data)
{
	struct io_uring_sqe *sqe = io_uring_get_sqe(ring);

	io_uring_prep_poll_add(sqe, fd, mask);
	io_uring_sqe_set_data64(sqe, data);
	return io_uring_submit(ring);
}

/* A poll of io_uring reports what is pending, not what a wake-up might be for. */
TEST_F(events, uring_reset_without_pollhup)
{
	struct io_uring ring;

	NP_NOT_MEDIATED("an invalidation ends the buffer, not the queue pair");
	ASSERT_EQ(0, io_uring_queue_init(4, &ring, 0));
	ASSERT_EQ(1, uring_poll(&ring, self->qp.qp_fd, EVENT, 1));
	ASSERT_EQ(1, uring_poll(&ring, self->qp.qp_fd, 0, 2));
	ASSERT_EQ(0, np_ioctl(self->ctrl.fd, NVME_IOCTL_RESET, NULL));
	EXPECT_EQ(EVENT, uring_polled(&ring, 1, NP_TIMEOUT_MS));
	EXPECT_EQ(-ETIME, uring_polled(&ring, 2, 200));
	ASSERT_EQ(0, take_back(self->test, self->buffer.fd));
	EXPECT_EQ(POLLHUP, uring_polled(&ring, 2, NP_TIMEOUT_MS));
	io_uring_queue_exit(&ring);
}

/* A peer requests recovery: that loss is counted, and re-arm is possible at once. */
TEST_F(events, peer_request_reports_ready)
{
	struct np_qp pair = { .fd = self->qp.qp_fd };
	struct nvme_peer_event event[3] = { 0 };
	struct nvme_peer_control *request;
	struct nvme_peer_qp_info info;
	struct np_export page;

	ASSERT_EQ(0, np_export_open(&page, pair.fd, NVME_PEER_EXPORT_CONTROL, 0));
	request = page.at;
	ASSERT_EQ(0, np_store(&request->quiesce, 1));
	/* By one call that sleeps. */
	EXPECT_EQ(EVENT, polled(pair.fd, NP_TIMEOUT_MS));
	/* With the lock under which both events are added. */
	ASSERT_EQ(0, np_qp_info(pair.fd, &info));
	EXPECT_EQ(1, info.losses);
	/* Another scan in the same generation is no news. */
	ASSERT_EQ(0, np_ioctl(self->ctrl.fd, NVME_IOCTL_RESCAN, NULL));
	EXPECT_EQ(2 * sizeof(event[0]), take(pair.fd, event, sizeof(event)));
	EXPECT_EQ(0, polled(pair.fd, 200));
	EXPECT_EQ(NVME_PEER_EVENT_STATE, event[0].type);
	EXPECT_EQ(NVME_PEER_QP_QUIESCED, event[0].state);
	EXPECT_EQ(NVME_PEER_QP_REASON_REQUEST, event[0].reason);
	EXPECT_EQ(NVME_PEER_EVENT_READY, event[1].type);
	EXPECT_EQ(NVME_PEER_QP_QUIESCED, event[1].state);
	EXPECT_EQ(self->qp.generation, event[1].generation);
	EXPECT_EQ(0, np_qp_rearm_loss(&pair, 1));
	np_export_close(&page);
}

static int open_uevents(void)
{
	struct sockaddr_nl kernel = { .nl_family = AF_NETLINK, .nl_groups = 1 };
	int fd = socket(AF_NETLINK, SOCK_DGRAM | SOCK_CLOEXEC, NETLINK_KOBJECT_UEVENT);

	if (fd < 0)
		return -errno;
	return bind(fd, (struct sockaddr *)&kernel, sizeof(kernel)) ? -errno : fd;
}

/* The next uevent with NVME_PEER_EVENT within the timeout: its bytes in @text. */
static int next_uevent(int fd, char *text, size_t length)
{
	int64_t end = np_now_ms() + NP_TIMEOUT_MS;
	ssize_t got;

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
		if (strstr(text, "\nNVME_PEER_EVENT="))
			return 0;
	}
	return -ETIMEDOUT;
}

static int wait_uevent(int fd, const char *event, char *text, size_t length)
{
	char wanted[64];
	int ret;

	snprintf(wanted, sizeof(wanted), "\nNVME_PEER_EVENT=%s\n", event);
	do
		ret = next_uevent(fd, text, length);
	while (!ret && !strstr(text, wanted));
	return ret;
}

/*
 * A udev listener is notified of the loss and of readiness, with the number of queue
 * pairs.
 */
TEST_F(events, reset_sends_uevents)
{
	char text[4096], line[64];
	struct nvme_peer_info now;
	int fd = open_uevents();

	ASSERT_LE(0, fd);
	ASSERT_EQ(0, np_ioctl(self->ctrl.fd, NVME_IOCTL_RESET, NULL));
	ASSERT_EQ(0, np_ctrl_wait_live(self->ctrl.fd, &now, NP_TIMEOUT_MS));
	ASSERT_EQ(0, wait_uevent(fd, "stopped", text, sizeof(text)));
	EXPECT_TRUE(strstr(text, "\nNVME_PEER_QUEUE_PAIRS=1\n"));
	EXPECT_TRUE(strstr(text, "\nSUBSYSTEM=nvme-peer\n"));
	ASSERT_EQ(0, wait_uevent(fd, "ready", text, sizeof(text)));
	snprintf(line, sizeof(line), "\nNVME_PEER_GENERATION=%u\n", now.generation);
	EXPECT_TRUE(strstr(text, line));
	EXPECT_TRUE(strstr(text, "\nNVME_PEER_QUEUE_PAIRS=1\n"));
	close(fd);
}

/* Of a peer that gives up, but of no tenant: it may do so without end. */
TEST_F(events, peer_request_sends_uevent)
{
	struct np_qp pair = { .fd = self->qp.qp_fd };
	struct nvme_peer_control *request;
	int fd = open_uevents();
	struct np_export page;
	char text[4096];

	ASSERT_LE(0, fd);
	ASSERT_EQ(0, np_export_open(&page, pair.fd, NVME_PEER_EXPORT_CONTROL, 0));
	request = page.at;
	ASSERT_EQ(0, np_store(&request->quiesce, 1));
	EXPECT_EQ(EVENT, polled(pair.fd, NP_TIMEOUT_MS));
	if (!np_as_tenant()) {
		ASSERT_EQ(0, next_uevent(fd, text, sizeof(text)));
		EXPECT_TRUE(strstr(text, "\nNVME_PEER_EVENT=peer-gave-up\n"));
		EXPECT_TRUE(strstr(text, "\nNVME_PEER_QUEUE_PAIRS=1\n"));
	}
	ASSERT_EQ(0, np_qp_rearm_loss(&pair, 1));
	ASSERT_EQ(0, np_ioctl(self->ctrl.fd, NVME_IOCTL_RESET, NULL));
	ASSERT_EQ(0, next_uevent(fd, text, sizeof(text)));
	EXPECT_TRUE(strstr(text, "\nNVME_PEER_EVENT=stopped\n"));
	np_export_close(&page);
	close(fd);
}

/* A program that was compiled for shorter events gets the beginning of each. */
TEST_F(events, short_reader_gets_beginning)
{
	struct nvme_peer_event event = { .object = 7 };
	struct nvme_peer_info now;
	int fd = self->qp.qp_fd;

	ASSERT_EQ(0, np_ioctl(self->ctrl.fd, NVME_IOCTL_RESET, NULL));
	ASSERT_EQ(0, np_ctrl_wait_live(self->ctrl.fd, &now, NP_TIMEOUT_MS));
	EXPECT_EQ(EVENT, wait_for(fd, EVENT));
	ASSERT_EQ(NVME_PEER_EVENT_LEAST, take(fd, &event, NVME_PEER_EVENT_LEAST));
	EXPECT_EQ(NVME_PEER_EVENT_LEAST, event.size);
	EXPECT_EQ(NVME_PEER_QP_QUIESCED, event.state);
	EXPECT_EQ(7, event.object);
	EXPECT_EQ(EVENT, wait_for(fd, EVENT));
	ASSERT_EQ(sizeof(event) - 1, take(fd, &event, sizeof(event) - 1));
	EXPECT_EQ(sizeof(event) - 1, event.size);
	EXPECT_EQ(NVME_PEER_EVENT_READY, event.type);
	EXPECT_EQ(0, event.object);
}

#define KEPT	16	/* events that the kernel keeps */

/*
 * Three events for each reset: quiesced, ready, live. The next event reports how many
 * were dropped.
 */
TEST_F(events, overflow_drops_oldest)
{
	struct nvme_peer_event event[KEPT + 1] = { 0 };
	struct np_qp pair = { .fd = self->qp.qp_fd };
	struct nvme_peer_info now;
	int i;

	for (i = 0; i < KEPT / 3 + 1; i++) {
		ASSERT_EQ(0, np_ioctl(self->ctrl.fd, NVME_IOCTL_RESET, NULL));
		ASSERT_EQ(0, np_ctrl_wait_live(self->ctrl.fd, &now, NP_TIMEOUT_MS));
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
	void *into;	/* NULL for @event */
	struct nvme_peer_event event;
	ssize_t ret;
	atomic_int tid;
};

static void *read_one(void *argument)
{
	struct reader *reader = argument;

	atomic_store(&reader->tid, gettid());
	reader->ret = take(reader->fd, reader->into ?: &reader->event, sizeof(reader->event));
	return NULL;
}

/*
 * Two readers wait: one gets the only event, the other returns as no further event can
 * follow.
 */
TEST_F(events, blocking_readers_wake)
{
	struct reader reader[2] = { { .fd = self->qp.qp_fd }, { .fd = self->qp.qp_fd } };
	int i, got = 0;

	NP_NOT_MEDIATED("an invalidation ends the buffer, not the queue pair");
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

/* Loses all queue pairs; returns when @witness, the newest one, may be re-armed: the others may, too. */
static int reset_until_ready(const struct np_ctrl *ctrl, const struct np_qp *witness)
{
	return np_ioctl(ctrl->fd, NVME_IOCTL_RESET, NULL) ?: np_qp_wait_ready(witness);
}

/*
 * While one reader copies an event, one that may not wait is refused although there is
 * another event. A new edge follows, for which it waits.
 */
TEST_F(events, refused_reader_is_woken)
{
	struct epoll_event edge = { .events = EPOLLIN | EPOLLET };
	struct nvme_peer_event event;
	struct reader reader = { .fd = self->qp.qp_fd };
	struct pollfd copying = { .events = POLLIN };
	struct nvme_peer_qp_create create;
	struct np_qp witness;
	int epoll = epoll_create1(EPOLL_CLOEXEC);

	reader.into = mmap(NULL, NP_PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS,
			   -1, 0);
	ASSERT_NE(MAP_FAILED, reader.into);
	copying.fd = np_block_faults(reader.into, NP_PAGE);
	if (copying.fd == -ENOSYS)
		SKIP(return, "a kernel without userfaultfd");
	ASSERT_LE(0, copying.fd);
	ASSERT_EQ(0, np_qp_create(self->ctrl.fd, ENTRIES, &create));
	witness.fd = create.qp_fd;
	ASSERT_EQ(0, reset_until_ready(&self->ctrl, &witness));
	close(witness.fd);
	ASSERT_EQ(0, pthread_create(&reader.thread, NULL, read_one, &reader));
	ASSERT_EQ(1, poll(&copying, 1, NP_TIMEOUT_MS));
	EXPECT_EQ(-EAGAIN, take(reader.fd, &event, sizeof(event)));
	ASSERT_EQ(0, epoll_ctl(epoll, EPOLL_CTL_ADD, reader.fd, &edge));
	EXPECT_EQ(1, epoll_wait(epoll, &edge, 1, 0));
	EXPECT_EQ(0, epoll_wait(epoll, &edge, 1, 200));
	close(copying.fd);
	pthread_join(reader.thread, NULL);
	EXPECT_EQ(sizeof(event), reader.ret);
	EXPECT_EQ(1, epoll_wait(epoll, &edge, 1, NP_TIMEOUT_MS));
	EXPECT_EQ(sizeof(event), take(reader.fd, &event, sizeof(event)));
	EXPECT_EQ(NVME_PEER_EVENT_READY, event.type);
	close(epoll);
	munmap(reader.into, NP_PAGE);
}

/* Three events by a request of a peer: quiesced, ready, live. */
static int lose_and_rearm(struct np_qp *pair, struct nvme_peer_control *request, uint32_t losses)
{
	int64_t end = np_now_ms() + NP_TIMEOUT_MS;
	int ret = np_store(&request->quiesce, 1);
	struct nvme_peer_qp_info info;

	do
		ret = ret ?: np_qp_info(pair->fd, &info);
	while (!ret && info.losses < losses && np_now_ms() < end);
	return ret ?: np_qp_rearm_loss(pair, losses);
}

/* The event that a reader copies is overwritten meanwhile: it is not lost. */
TEST_F(events, event_overwritten_during_delivery)
{
	struct nvme_peer_event event[KEPT] = { 0 }, *first;
	struct reader reader = { .fd = self->qp.qp_fd };
	struct np_qp pair = { .fd = self->qp.qp_fd };
	struct pollfd copying = { .events = POLLIN };
	struct np_export page;
	uint32_t losses;

	first = mmap(NULL, NP_PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	ASSERT_NE(MAP_FAILED, first);
	reader.into = first;
	copying.fd = np_block_faults(first, NP_PAGE);
	if (copying.fd == -ENOSYS)
		SKIP(return, "a kernel without userfaultfd");
	ASSERT_LE(0, copying.fd);
	ASSERT_EQ(0, np_export_open(&page, pair.fd, NVME_PEER_EXPORT_CONTROL, 0));
	ASSERT_EQ(0, lose_and_rearm(&pair, page.at, 1));
	ASSERT_EQ(0, pthread_create(&reader.thread, NULL, read_one, &reader));
	ASSERT_EQ(1, poll(&copying, 1, NP_TIMEOUT_MS));
	for (losses = 2; losses <= KEPT / 3 + 1; losses++)
		ASSERT_EQ(0, lose_and_rearm(&pair, page.at, losses));
	close(copying.fd);
	pthread_join(reader.thread, NULL);
	EXPECT_EQ(sizeof(*first), reader.ret);
	EXPECT_EQ(NVME_PEER_QP_QUIESCED, first->state);
	EXPECT_EQ(0, first->lost);
	ASSERT_EQ(sizeof(event), take(pair.fd, event, sizeof(event)));
	EXPECT_EQ(3 * (losses - 1) - KEPT - 1, event[0].lost);
	EXPECT_EQ(0, event[1].lost);
	EXPECT_EQ(NVME_PEER_QP_LIVE, event[KEPT - 1].state);
	np_export_close(&page);
	munmap(first, NP_PAGE);
}

/* The thread that reads events is often another one than that which re-arms. */
TEST_F(events, rearm_wakes_readers)
{
	struct reader reader = { .fd = self->qp.qp_fd };
	struct np_qp pair = { .fd = self->qp.qp_fd };

	ASSERT_EQ(0, fcntl(pair.fd, F_SETFL, 0));
	/* Reads the events of the loss. */
	ASSERT_EQ(0, reset_until_ready(&self->ctrl, &pair));
	ASSERT_EQ(0, pthread_create(&reader.thread, NULL, read_one, &reader));
	ASSERT_EQ(0, np_wait_sleeps(&reader.tid));
	ASSERT_EQ(0, np_qp_rearm(&pair, NP_TIMEOUT_MS));
	ASSERT_EQ(0, np_join(reader.thread, NULL, 10000));
	EXPECT_EQ(sizeof(reader.event), reader.ret);
	EXPECT_EQ(NVME_PEER_QP_LIVE, reader.event.state);
}

TEST_HARNESS_MAIN
