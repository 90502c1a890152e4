// SPDX-License-Identifier: MIT OR GPL-2.0
/*
 * Unit tests of explanations across threads and tasks, of explanations of results that
 * no call returned, and of events.  Also built with ThreadSanitizer.
 */
#include <pthread.h>
#include <string.h>
#include <unistd.h>

#include "kselftest_harness.h"

#include <nvmepeer_peer.h>

#include "fake.h"

/* --- records of failures ---------------------------------------------------- */

enum { FAILURES = 2000, THREADS = 4 };

FIXTURE(errors)
{
	struct nvmepeer *ctrl[THREADS];
	struct nvmepeer_errors *errors;
	struct nvmepeer_explanation why;
};

FIXTURE_SETUP(errors)
{
	char node[] = "nvmep0";

	fake_reset();
	for (int i = 0; i < THREADS; i++, node[5]++)
		ASSERT_EQ(nvmepeer_open(node, &self->ctrl[i]), 0);
	ASSERT_EQ(nvmepeer_errors_new(&self->errors), 0);
}

FIXTURE_TEARDOWN(errors)
{
	nvmepeer_errors_use(NULL);
	nvmepeer_errors_free(self->errors);
	for (int i = 0; i < THREADS; i++)
		nvmepeer_close(self->ctrl[i]);
}

/* Fails in the library; the explanation has the controller and the size. */
static int fail(struct nvmepeer *ctrl, size_t size)
{
	struct nvme_peer_info info;

	return nvmepeer_info(ctrl, &info, size);
}

/**
 * struct worker - a thread that makes failing calls
 * @thread: the thread
 * @ctrl: controller of the calls
 * @size: size that they pass
 * @times: number of calls
 * @errors: record that the thread uses
 * @before: record that it used before
 */
struct worker {
	pthread_t thread;
	struct nvmepeer *ctrl;
	size_t size;
	int times;
	struct nvmepeer_errors *errors;
	struct nvmepeer_errors *before;
};

static void *work(void *argument)
{
	struct worker *worker = argument;

	worker->before = nvmepeer_errors_use(worker->errors);
	for (int i = 0; i < worker->times; i++)
		fail(worker->ctrl, worker->size);
	return NULL;
}

TEST_F(errors, another_thread_reads_the_record)
{
	struct worker worker = {
		.ctrl = self->ctrl[1],
		.size = 5,
		.times = 1,
		.errors = self->errors,
		.before = self->errors,
	};

	ASSERT_EQ(fail(self->ctrl[0], 3), -EINVAL);
	ASSERT_EQ(pthread_create(&worker.thread, NULL, work, &worker), 0);
	pthread_join(worker.thread, NULL);
	EXPECT_EQ(worker.before, NULL);
	ASSERT_EQ(nvmepeer_errors_explain(self->errors, &self->why, sizeof(self->why)), -EINVAL);
	MENTIONS(self->why.what, "nvmep1");
	MENTIONS(self->why.limit, "of 5 bytes");
	/* The record of this thread is unchanged. */
	ASSERT_EQ(nvmepeer_explain(&self->why, sizeof(self->why)), -EINVAL);
	MENTIONS(self->why.what, "nvmep0");
}

TEST_F(errors, new_record_is_empty)
{
	fail(self->ctrl[0], 3);
	EXPECT_EQ(nvmepeer_errors_explain(self->errors, &self->why, sizeof(self->why)), 0);
	EXPECT_EQ(nvmepeer_errors_use(self->errors), NULL);
	EXPECT_EQ(nvmepeer_explain(&self->why, sizeof(self->why)), 0);
	EXPECT_EQ(nvmepeer_errors_use(NULL), self->errors);
	EXPECT_EQ(nvmepeer_explain(&self->why, sizeof(self->why)), -EINVAL);
	EXPECT_EQ(nvmepeer_errors_explain(self->errors, &self->why, 1), -EINVAL);
}

/* Two tasks alternate on one thread, then the first one moves to another thread. */
TEST_F(errors, task_keeps_its_record_across_threads)
{
	struct worker moved = {
		.ctrl = self->ctrl[2],
		.size = 7,
		.errors = self->errors,
	};
	struct nvmepeer_errors *other;

	ASSERT_EQ(nvmepeer_errors_new(&other), 0);
	nvmepeer_errors_use(self->errors);
	fail(self->ctrl[0], 3);
	EXPECT_EQ(nvmepeer_errors_use(other), self->errors);
	fail(self->ctrl[1], 5);
	nvmepeer_errors_use(self->errors);
	nvmepeer_explain(&self->why, sizeof(self->why));
	MENTIONS(self->why.what, "nvmep0");
	/* In the other thread no call fails; the record is read there. */
	ASSERT_EQ(pthread_create(&moved.thread, NULL, work, &moved), 0);
	pthread_join(moved.thread, NULL);
	nvmepeer_errors_explain(self->errors, &self->why, sizeof(self->why));
	MENTIONS(self->why.limit, "of 3 bytes");
	nvmepeer_errors_use(other);
	nvmepeer_explain(&self->why, sizeof(self->why));
	MENTIONS(self->why.what, "nvmep1");
	/* A freed record is no longer in use. */
	nvmepeer_errors_free(other);
	EXPECT_EQ(nvmepeer_errors_use(NULL), NULL);
}

TEST_F(errors, nvmepeer_fail_uses_the_record)
{
	struct nvmepeer_explanation given = { .call = "other_call", .error = EPIPE, .what = "no" };

	nvmepeer_errors_use(self->errors);
	EXPECT_EQ(nvmepeer_fail(&given, sizeof(given)), -EPIPE);
	nvmepeer_errors_use(NULL);
	EXPECT_EQ(nvmepeer_explain(&self->why, sizeof(self->why)), 0);
	EXPECT_EQ(nvmepeer_errors_explain(self->errors, &self->why, sizeof(self->why)), -EPIPE);
	EXPECT_STREQ(self->why.call, "other_call");
}

/* Controller and size must be of the same failure. */
static bool is_whole(const struct nvmepeer_explanation *why)
{
	const char *node = strstr(why->what, "nvmep");
	char wanted[] = "of 1 bytes";

	if (!node)
		return false;
	wanted[3] += node[5] - '0';
	return strstr(why->limit, wanted);
}

TEST_F(errors, concurrent_records_are_not_torn)
{
	struct worker workers[THREADS];
	int torn = 0;

	nvmepeer_errors_use(self->errors);
	fail(self->ctrl[0], 1);
	for (int i = 0; i < THREADS; i++) {
		workers[i] = (struct worker){
			.ctrl = self->ctrl[i],
			.size = 1 + (size_t)i,
			.times = FAILURES,
			.errors = self->errors,
		};
		ASSERT_EQ(pthread_create(&workers[i].thread, NULL, work, &workers[i]), 0);
	}
	for (int i = 0; i < FAILURES; i++) {
		nvmepeer_explain(&self->why, sizeof(self->why));
		torn += !is_whole(&self->why);
	}
	for (int i = 0; i < THREADS; i++)
		pthread_join(workers[i].thread, NULL);
	EXPECT_EQ(torn, 0);
}

/* --- results that no call returned ------------------------------------------ */

static const struct {
	enum nvmepeer_result kind;
	int result;
	int returned;
	const char *what;
	const char *limit;
} results[] = {
	{ NVMEPEER_RESULT_COMMAND, 0, 0, "no call has failed", "" },
	{ NVMEPEER_RESULT_COMMAND, -EINTR, -EINTR, "command failed", "may or may not" },
	{ NVMEPEER_RESULT_COMMAND, -EOPNOTSUPP, -EOPNOTSUPP, "command failed", "64 bytes" },
	{ NVMEPEER_RESULT_COMMAND, 0x2281, 0x2281, "command failed", "0x281" },
	{ NVMEPEER_RESULT_COMMAND, -EXFULL, -EXFULL, "command failed", "Exchange full" },
	{ NVMEPEER_RESULT_BUFFER, -EACCES, -EACCES, "imported buffer", "NVME_PEER_ACCESS_READ" },
	{ NVMEPEER_RESULT_BUFFER, -ESTALE, -ESTALE, "imported buffer", "exporter" },
	{ NVMEPEER_RESULT_BUFFER, -ERANGE, -ERANGE, "imported buffer", "buffer" },
	{ NVMEPEER_RESULT_BUFFER, -E2BIG, -E2BIG, "imported buffer", "'count' exceeds NVME_PEER_IO_RANGES" },
	{ NVMEPEER_RESULT_BUFFER, -EFAULT, -EFAULT, "imported buffer", "ranges" },
	{ NVMEPEER_RESULT_DEVICE, NVMEPEER_E_LOST, -EINTR, "of a peer", "no longer LIVE" },
	{ NVMEPEER_RESULT_DEVICE, NVMEPEER_E_TIMEOUT, -ETIMEDOUT, "of a peer", "no completion" },
	{ NVMEPEER_RESULT_DEVICE, NVMEPEER_E_BUSY, -EBUSY, "of a peer", "queue pair" },
	{ NVMEPEER_RESULT_DEVICE, NVMEPEER_E_OPCODE, -EOPNOTSUPP, "of a peer", "range of blocks" },
	{ NVMEPEER_RESULT_DEVICE, 0x4002, 0x4002, "of a peer", "do not retry" },
};

TEST(results_are_explained_without_a_record)
{
	struct nvmepeer_explanation why;

	for (size_t i = 0; i < sizeof(results) / sizeof(results[0]); i++) {
		ASSERT_EQ(nvmepeer_explain_result(results[i].kind, results[i].result, &why,
						  sizeof(why)), results[i].returned)
			TH_LOG("result %d of kind %d", results[i].result, results[i].kind);
		MENTIONS(why.what, results[i].what);
		MENTIONS(why.limit, results[i].limit);
	}
	EXPECT_EQ(nvmepeer_explain(&why, sizeof(why)), 0);
	EXPECT_EQ(nvmepeer_explain_result(NVMEPEER_RESULT_DEVICE, -2, &why, 8), -EINVAL);
	EXPECT_EQ(nvmepeer_explain_result((enum nvmepeer_result)3, -2, &why, sizeof(why)), -EINVAL);
}

TEST(every_device_result_has_text)
{
	struct nvmepeer_explanation why;

	for (int result = NVMEPEER_AGAIN; result >= NVMEPEER_E_OPCODE; result--) {
		ASSERT_LT(nvmepeer_explain_result(NVMEPEER_RESULT_DEVICE, result, &why, sizeof(why)), 0);
		EXPECT_STRNE(why.limit, strerror(-result));
	}
}

/* --- events ------------------------------------------------------------------ */

/* The fake kernel: its events are @longer bytes longer than the library's. */
static struct {
	uint32_t left;
	size_t longer;
	size_t least_room;
	int error;
} queued;

ssize_t __wrap_read(int fd, void *data, size_t room);
ssize_t __real_read(int fd, void *data, size_t room);

/* Descriptors of the fake kernel start at 1000. */
static bool is_fake(int fd)
{
	return fd >= 1000;
}

static size_t put_event(void *data, size_t room)
{
	size_t each = sizeof(struct nvme_peer_event) + queued.longer;
	struct nvme_peer_event event = {
		.size = (uint32_t)(each < room ? each : room),
		.type = NVME_PEER_EVENT_STATE,
		.generation = queued.left,
	};

	memset(data, 0xff, event.size);
	memcpy(data, &event, sizeof(event));
	queued.left--;
	return event.size;
}

ssize_t __wrap_read(int fd, void *data, size_t room)
{
	size_t each = sizeof(struct nvme_peer_event) + queued.longer, done = 0;

	if (!is_fake(fd))
		return __real_read(fd, data, room);
	errno = queued.error ? queued.error : EINVAL;
	if (queued.error || room < NVME_PEER_EVENT_LEAST)
		return -1;
	queued.least_room = room;
	while (queued.left && (!done || done + each <= room))
		done += put_event((char *)data + done, room - done);
	return (ssize_t)done;
}

FIXTURE(events)
{
	struct nvmepeer_qp *qp;
	struct nvmepeer *ctrl;
	struct nvme_peer_event events[4];
};

FIXTURE_SETUP(events)
{
	struct nvme_peer_qp_create request = { .sq_entries = 64 };

	fake_reset();
	memset(&queued, 0, sizeof(queued));
	ASSERT_EQ(nvmepeer_open("nvmep0", &self->ctrl), 0);
	ASSERT_EQ(nvmepeer_qp_create(self->ctrl, &request, sizeof(request), &self->qp), 0);
}

FIXTURE_TEARDOWN(events)
{
	nvmepeer_qp_destroy(self->qp);
	nvmepeer_close(self->ctrl);
}

TEST_F(events, count_limits_events)
{
	queued.left = 6;
	ASSERT_EQ(nvmepeer_qp_events(self->qp, self->events, sizeof(self->events[0]), 4), 4);
	EXPECT_EQ(self->events[0].generation, 6);
	EXPECT_EQ(self->events[3].generation, 3);
	EXPECT_EQ(self->events[3].type, NVME_PEER_EVENT_STATE);
	ASSERT_EQ(nvmepeer_qp_events(self->qp, self->events, sizeof(self->events[0]), 4), 2);
	EXPECT_EQ(self->events[1].generation, 1);
	EXPECT_EQ(nvmepeer_qp_events(self->qp, self->events, sizeof(self->events[0]), 4), 0);
}

TEST_F(events, longer_events_are_truncated)
{
	queued.left = 3;
	queued.longer = 40;
	ASSERT_EQ(nvmepeer_qp_events(self->qp, self->events, sizeof(self->events[0]), 1), 1);
	EXPECT_EQ(self->events[0].generation, 3);
	EXPECT_EQ(queued.least_room, sizeof(self->events[0]));
	ASSERT_EQ(nvmepeer_qp_events(self->qp, self->events, sizeof(self->events[0]), 4), 2);
	EXPECT_EQ(self->events[0].generation, 2);
	EXPECT_EQ(self->events[1].generation, 1);
	/* The beginning of an event that is longer than any buffer of the library. */
	queued.left = 1;
	queued.longer = 8000;
	ASSERT_EQ(nvmepeer_qp_events(self->qp, self->events, sizeof(self->events[0]), 4), 1);
	EXPECT_EQ(self->events[0].generation, 1);
}

TEST_F(events, newer_caller_gets_zeros)
{
	struct {
		struct nvme_peer_event event;
		uint64_t newer;
	} events[2];

	memset(events, 0xff, sizeof(events));
	queued.left = 2;
	ASSERT_EQ(nvmepeer_qp_events(self->qp, &events[0].event, sizeof(events[0]), 2), 2);
	EXPECT_EQ(events[1].event.generation, 1);
	EXPECT_EQ(events[0].newer, 0);
	EXPECT_EQ(events[1].newer, 0);
}

TEST_F(events, refusals_are_explained)
{
	struct nvmepeer_explanation why;

	queued.error = EAGAIN;
	EXPECT_EQ(nvmepeer_qp_events(self->qp, self->events, sizeof(self->events[0]), 4), -EAGAIN);
	ASSERT_EQ(nvmepeer_explain(&why, sizeof(why)), -EAGAIN);
	MENTIONS(why.what, "queue pair 5");
	EXPECT_EQ(nvmepeer_qp_events(self->qp, self->events, 8, 4), -EINVAL);
	queued.error = 0;
	EXPECT_EQ(nvmepeer_qp_events(self->qp, self->events, sizeof(self->events[0]), 0), -EINVAL);
}

TEST_HARNESS_MAIN
