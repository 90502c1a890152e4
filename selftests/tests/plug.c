// SPDX-License-Identifier: GPL-2.0-only
/*
 * Requests that the block layer submits as a list (plug): each goes to its own hardware
 * queue, although the thread has moved to another CPU, with another queue, meanwhile.
 *
 * iommu: on
 * timeout: 60
 */
#include <errno.h>
#include <fcntl.h>
#include <linux/aio_abi.h>
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "nptest.h"
#include "kselftest_harness.h"

/* Enough requests for a list; the first half are writes, the others reads. */
#define REQUESTS	8
#define WRITES		(REQUESTS / 2)

FIXTURE(plug)
{
	struct np_ctrl ctrl;
	int disk;
	aio_context_t context;
	uint8_t *bytes;
};

FIXTURE_SETUP(plug)
{
	ASSERT_EQ(0, np_ctrl_open(&self->ctrl, "np0"));
	self->disk = np_open_node(&self->ctrl, "/dev/nvmep%dn1", O_RDWR | O_DIRECT);
	ASSERT_LE(0, self->disk);
	ASSERT_EQ(0, syscall(SYS_io_setup, REQUESTS, &self->context));
	ASSERT_EQ(0, posix_memalign((void **)&self->bytes, NP_PAGE, REQUESTS * NP_PAGE));
}

FIXTURE_TEARDOWN(plug)
{
	free(self->bytes);
	syscall(SYS_io_destroy, self->context);
	close(self->disk);
	np_ctrl_close(&self->ctrl);
}

/* Page @i of the disk has this contents throughout. */
static uint8_t content(unsigned int i)
{
	return (uint8_t)(0xa0 + i);
}

static bool holds(const uint8_t *page, unsigned int i)
{
	return page[0] == content(i) && !memcmp(page, page + 1, NP_PAGE - 1);
}

static void prepare(FIXTURE_DATA(plug) *self, struct iocb *iocbs)
{
	unsigned int i;

	memset(iocbs, 0, REQUESTS * sizeof(*iocbs));
	for (i = 0; i < REQUESTS; i++) {
		memset(self->bytes + i * NP_PAGE, i < WRITES ? content(i) : 0, NP_PAGE);
		iocbs[i].aio_lio_opcode = i < WRITES ? IOCB_CMD_PWRITE : IOCB_CMD_PREAD;
		iocbs[i].aio_fildes = (uint32_t)self->disk;
		iocbs[i].aio_buf = (uintptr_t)self->bytes + i * NP_PAGE;
		iocbs[i].aio_nbytes = NP_PAGE;
		iocbs[i].aio_offset = i * NP_PAGE;
	}
}

/**
 * struct mover - moves the first thread of this process to the second CPU
 * @tid: that thread
 * @test: stalls the thread at its first read
 * @ready: the mover runs on the CPU that is not stalled
 * @held: the thread was stalled
 */
struct mover {
	pid_t tid;
	int test;
	atomic_bool ready;
	int held;
};

static bool has_to_move(pid_t tid)
{
	cpu_set_t allowed;

	return !sched_getaffinity(tid, sizeof(allowed), &allowed) && !CPU_ISSET(0, &allowed);
}

static void *let_go(void *context)
{
	struct mover *mover = context;

	np_run_on(1);
	while (!has_to_move(mover->tid))
		np_sleep_ms(1);
	close(mover->test);
	return NULL;
}

/* sched_setaffinity() returns when the thread has moved, which is after the stall. */
static void *move(void *context)
{
	struct mover *mover = context;
	cpu_set_t second;
	pthread_t other;

	np_run_on(1);
	atomic_store(&mover->ready, true);
	mover->held = np_wait_stalled(mover->test);
	if (pthread_create(&other, NULL, let_go, mover))
		abort();
	CPU_ZERO(&second);
	CPU_SET(1, &second);
	sched_setaffinity(mover->tid, sizeof(second), &second);
	pthread_join(other, NULL);
	return NULL;
}

TEST_F(plug, list_is_split_by_queue)
{
	struct nvmep_test_stall stall = { .function = "blkdev_read_iter" };
	struct mover mover = { .tid = (pid_t)syscall(SYS_gettid) };
	struct iocb iocbs[REQUESTS], *list[REQUESTS];
	struct io_event events[REQUESTS];
	unsigned int i, at;
	pthread_t thread;

	for (i = 0; i < REQUESTS; i++) {
		memset(self->bytes, content(i), NP_PAGE);
		ASSERT_EQ(NP_PAGE, pwrite(self->disk, self->bytes, NP_PAGE, i * NP_PAGE));
		list[i] = &iocbs[i];
	}
	prepare(self, iocbs);
	mover.test = np_stall(&stall);
	ASSERT_LE(0, mover.test);
	ASSERT_EQ(0, pthread_create(&thread, NULL, move, &mover));
	while (!atomic_load(&mover.ready))
		np_sleep_ms(1);
	ASSERT_EQ(0, np_run_on(0));
	ASSERT_EQ(REQUESTS, syscall(SYS_io_submit, self->context, REQUESTS, list));
	at = (unsigned int)sched_getcpu();
	pthread_join(thread, NULL);
	EXPECT_EQ(0, mover.held);
	EXPECT_EQ(1, at);
	ASSERT_EQ(REQUESTS, syscall(SYS_io_getevents, self->context, REQUESTS, REQUESTS, events,
				    &(struct timespec){ .tv_sec = 20 }));
	for (i = 0; i < REQUESTS; i++) {
		EXPECT_EQ(NP_PAGE, events[i].res);
		EXPECT_TRUE(holds(self->bytes + i * NP_PAGE, i)) {
			TH_LOG("page %u", i);
		}
	}
}

TEST_HARNESS_MAIN
