// SPDX-License-Identifier: GPL-2.0-only
/*
 * A GPU and a controller that share this machine's memory: the GPU's threads load and
 * store rings, status page and doorbells of the queue pairs that the module made, and
 * nobody is on the way but the controller.
 *
 * gpu: shared
 * timeout: 180
 */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "badknob.h"
#include "gpupeer.h"
#include "kselftest_harness.h"

#define ENTRIES		256U
#define RANGE		(2U << 20)
#define QUEUES		32U
/* From what ends a queue pair to the end of the job. */
#define END_MS		20000U

/* "fake" or "cuda". */
static const char *engine(void)
{
	static char name[8];
	FILE *file = fopen("/host/engine", "re");

	if (file) {
		if (fscanf(file, "%7s", name) != 1)
			name[0] = 0;
		fclose(file);
	}
	return name;
}

/* A few where few processors do it. */
static uint32_t threads(void)
{
	return !strcmp(engine(), "cuda") ? 256 : 16;
}

static int counters(int gpu, struct softgpu_counters *now)
{
	return np_ioctl(gpu, SOFTGPU_COUNTERS, now);
}

FIXTURE(card)
{
	struct np_bad bad;
	struct np_gpu_qp qp;
	struct softgpu_counters before;
};

FIXTURE_VARIANT(card)
{
	uint32_t rings;
};

FIXTURE_VARIANT_ADD(card, rings_in_gpu)
{
	.rings = 0,
};

FIXTURE_VARIANT_ADD(card, rings_in_host)
{
	.rings = NP_GPU_HOST_RINGS,
};

FIXTURE_SETUP(card)
{
	np_gpu_qp_clear(&self->qp);
	ASSERT_EQ(0, np_bad_open(&self->bad));
	ASSERT_EQ(0, np_bad_set(&self->bad, BADCTRL_GRANT, QUEUES));
	ASSERT_EQ(0, np_bad_bind(&self->bad, 1));
	ASSERT_EQ(0, np_gpu_qp_open(&self->qp, &self->bad.ctrl, ENTRIES, variant->rings));
	ASSERT_EQ(0, counters(self->qp.gpu, &self->before));
}

FIXTURE_TEARDOWN(card)
{
	np_gpu_qp_close(&self->qp);
	EXPECT_EQ(0, np_bad_close(&self->bad));
}

static int run(struct np_gpu_qp *qp, uint32_t program, struct softgpu_result *result)
{
	return np_gpu_run(qp->gpu, program, threads(), &qp->io, sizeof(qp->io), result);
}

static uint32_t count(struct np_bad *bad, const struct np_gpu_qp *qp,
		      enum badctrl_queue_count what)
{
	return np_bad_get(bad, BADCTRL_QUEUE_COUNT(qp->io.queue.qid, what));
}

/* Every program went well, and what it moved is right on the other side. */
TEST_F_TIMEOUT(card, both_directions, 120)
{
	struct softgpu_result result;
	uint32_t bytes;

	for (bytes = NP_PAGE; bytes <= 4 * NP_PAGE; bytes *= 2) {
		np_gpu_range(&self->qp, RANGE, RANGE, bytes, 0x1000 + bytes);
		ASSERT_EQ(0, run(&self->qp, SOFTGPU_WRITE, &result));
		ASSERT_EQ(SOFTGPU_OK, result.status)
			TH_LOG("error %d at %llx", result.error, (unsigned long long)result.where);
		EXPECT_EQ(RANGE / bytes, result.writes);
		EXPECT_EQ(0, np_gpu_pattern_check(self->bad.disk, RANGE, RANGE, 0x1000 + bytes));
		EXPECT_EQ(0, np_gpu_pattern_write(self->bad.disk, RANGE, RANGE, 0x2000 + bytes));
		self->qp.io.seed = 0x2000 + bytes;
		ASSERT_EQ(0, run(&self->qp, SOFTGPU_VERIFY, &result));
		EXPECT_EQ(SOFTGPU_OK, result.status);
		EXPECT_EQ(RANGE / bytes, result.reads);
		EXPECT_EQ(0, result.mismatches);
	}
	/* Wrong data is seen. */
	self->qp.io.seed++;
	ASSERT_EQ(0, run(&self->qp, SOFTGPU_VERIFY, &result));
	EXPECT_EQ(SOFTGPU_FAILED, result.status);
	EXPECT_LT(0, result.mismatches);
}

/* No doorbell came by message, and no CPU of the GPU's moved a byte. */
TEST_F_TIMEOUT(card, nobody_is_on_the_way, 60)
{
	struct nvme_peer_qp_info info;
	struct softgpu_counters after;
	struct softgpu_result result;

	np_gpu_range(&self->qp, RANGE, RANGE, NP_PAGE, 0x3000);
	self->qp.io.commands = 2000;
	ASSERT_EQ(0, run(&self->qp, SOFTGPU_MIXED, &result));
	ASSERT_EQ(SOFTGPU_OK, result.status);
	EXPECT_LT(2000, result.reads + result.writes);
	EXPECT_LE(result.reads + result.writes, count(&self->bad, &self->qp, BADCTRL_FETCHED));
	ASSERT_EQ(0, np_qp_info(self->qp.qp_fd, &info));
	EXPECT_EQ(0, info.cpu_doorbell_writes);
	EXPECT_LT(0, result.doorbells);
	ASSERT_EQ(0, counters(self->qp.gpu, &after));
	EXPECT_EQ(0, count(&self->bad, &self->qp, BADCTRL_MESSAGES));
	EXPECT_EQ(self->before.doorbells, after.doorbells);
	EXPECT_EQ(self->before.mapped_reads, after.mapped_reads);
	EXPECT_EQ(self->before.mapped_writes, after.mapped_writes);
	EXPECT_EQ(self->before.dma_bytes_written, after.dma_bytes_written);
	/* What page it rings at is asked for each doorbell of a job, and a job ends with a read. */
	EXPECT_GE(3, after.message_reads - self->before.message_reads);
}

/* Let it run until it has completed something, @program without an end of its own. */
static int begin(struct np_gpu_qp *qp, uint32_t program)
{
	struct softgpu_result result = { 0 };
	int job, tries;

	qp->io.depth = 4;
	job = np_gpu_start(qp->gpu, program, threads(), &qp->io, sizeof(qp->io));
	for (tries = 0; job > 0 && tries < 200 && result.reads < 100; tries++) {
		np_sleep_ms(20);
		if (np_gpu_progress(qp->gpu, job, &result))
			return -EIO;
	}
	return tries < 200 ? job : -ETIMEDOUT;
}

/* By the administrator, and by the PCI function: every third. */
static int reset(const struct np_bad *bad, unsigned int round)
{
	if (round % 3 != 2)
		return np_ioctl(bad->ctrl.fd, NVME_IOCTL_RESET, NULL);
	return np_pci_write(bad->address, "reset", "1");
}

/* A reset ends every call; the queue pair is used again, and its data is right. */
TEST_F_TIMEOUT(card, reset_under_load, 120)
{
	struct softgpu_result result;
	unsigned int round;
	int job;

	np_gpu_range(&self->qp, RANGE, RANGE, NP_PAGE, 0x4000);
	for (round = 0; round < 3; round++) {
		self->qp.io.commands = 0;
		ASSERT_EQ(0, run(&self->qp, SOFTGPU_WRITE, &result));
		ASSERT_EQ(SOFTGPU_OK, result.status);
		job = begin(&self->qp, SOFTGPU_RATE);
		ASSERT_LT(0, job);
		ASSERT_EQ(0, reset(&self->bad, round));
		ASSERT_EQ(0, np_gpu_wait(self->qp.gpu, job, END_MS, &result));
		/* That of the function takes the doorbells away, too. */
		EXPECT_EQ(round % 3 == 2 ? SOFTGPU_FAULT : SOFTGPU_FAILED, result.status);
		EXPECT_EQ(NVMEPEER_E_LOST, result.error);
		ASSERT_EQ(0, np_gpu_qp_rearm(&self->qp, 5000));
		ASSERT_EQ(0, run(&self->qp, SOFTGPU_VERIFY, &result));
		EXPECT_EQ(SOFTGPU_OK, result.status);
		EXPECT_EQ(RANGE / NP_PAGE, result.reads);
	}
}

/*
 * The driver takes the submission ring out of the GPU's address space: when it has, no
 * thread of the GPU stores to it any more, though the queue pair lives.
 */
TEST_F_TIMEOUT(card, memory_taken_back_under_load, 60)
{
	/* Imports are numbered as they are made: the rings after the doorbells. */
	struct softgpu_release release = { .handle = self->qp.doorbell_handle + 1 };
	struct np_export *ring = &self->qp.ring_maps[0];
	struct softgpu_result result;
	uint32_t bytes = ENTRIES * 64, i;
	const uint8_t *ring_bytes = ring->at;
	int job;

	if (!variant->rings)
		SKIP(return, "the ring is the GPU's own memory");
	np_gpu_range(&self->qp, RANGE, RANGE, NP_PAGE, 0x7000);
	job = begin(&self->qp, SOFTGPU_RATE);
	ASSERT_LT(0, job);
	ASSERT_EQ(0, np_ioctl(self->qp.gpu, SOFTGPU_RELEASE, &release));
	memset(ring->at, 0xa5, bytes);
	ASSERT_EQ(0, np_gpu_wait(self->qp.gpu, job, END_MS, &result));
	EXPECT_EQ(SOFTGPU_FAULT, result.status);
	EXPECT_EQ(NVMEPEER_E_LOST, result.error);
	np_sleep_ms(100);
	for (i = 0; i < bytes && ring_bytes[i] == 0xa5; i++)
		;
	EXPECT_EQ(bytes, i);
	ASSERT_EQ(0, run(&self->qp, SOFTGPU_RATE, &result));
	EXPECT_EQ(SOFTGPU_FAULT, result.status);
	EXPECT_EQ(self->qp.io.queue.sq, result.where & ~(uint64_t)(NP_PAGE - 1));
}

TEST_F_TIMEOUT(card, unbind_under_load, 60)
{
	struct softgpu_result result;
	int job;

	np_gpu_range(&self->qp, RANGE, RANGE, NP_PAGE, 0x8000);
	job = begin(&self->qp, SOFTGPU_RATE);
	ASSERT_LT(0, job);
	ASSERT_EQ(0, np_bad_unbind(&self->bad));
	ASSERT_EQ(0, np_gpu_wait(self->qp.gpu, job, END_MS, &result));
	EXPECT_NE(SOFTGPU_OK, result.status);
}

/* The end of the queue pair takes its memory back under the job that uses it. */
TEST_F_TIMEOUT(card, queue_pair_goes_under_load, 60)
{
	uint8_t *data = self->qp.memory.bytes +
			(self->qp.io.data_address - self->qp.memory.address);
	uint64_t bytes = self->qp.io.data.length, i;
	struct softgpu_result result;
	int job;

	np_gpu_range(&self->qp, RANGE, RANGE, NP_PAGE, 0x5000);
	job = begin(&self->qp, SOFTGPU_RATE);
	ASSERT_LT(0, job);
	ASSERT_EQ(0, close(self->qp.qp_fd));
	self->qp.qp_fd = -1;
	memset(data, 0xa5, bytes);
	ASSERT_EQ(0, np_gpu_wait(self->qp.gpu, job, END_MS, &result));
	EXPECT_NE(SOFTGPU_OK, result.status);
	for (i = 0; i < bytes && data[i] == 0xa5; i++)
		;
	EXPECT_EQ(bytes, i);
	/* What was not mapped is refused. */
	ASSERT_EQ(0, run(&self->qp, SOFTGPU_RATE, &result));
	EXPECT_EQ(SOFTGPU_FAULT, result.status);
}

/* Its process dies, and the controller and a new one work on. */
TEST_F_TIMEOUT(card, process_dies_under_load, 60)
{
	struct softgpu_result result;
	struct np_gpu_qp qp;
	pid_t child = fork();
	int status;

	if (!child) {
		if (np_gpu_qp_open(&qp, &self->bad.ctrl, ENTRIES, variant->rings))
			_exit(1);
		np_gpu_range(&qp, RANGE, RANGE, NP_PAGE, 0x6000);
		if (begin(&qp, SOFTGPU_RATE) <= 0)
			_exit(2);
		raise(SIGKILL);
	}
	ASSERT_LT(0, child);
	ASSERT_EQ(child, waitpid(child, &status, 0));
	EXPECT_TRUE(WIFSIGNALED(status));
	np_gpu_range(&self->qp, RANGE, RANGE, NP_PAGE, 0x6001);
	ASSERT_EQ(0, run(&self->qp, SOFTGPU_WRITE, &result));
	EXPECT_EQ(SOFTGPU_OK, result.status);
	EXPECT_EQ(0, np_gpu_pattern_check(self->bad.disk, RANGE, RANGE, 0x6001));
}

TEST_HARNESS_MAIN
