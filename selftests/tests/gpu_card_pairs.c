// SPDX-License-Identifier: GPL-2.0-only
/*
 * A kernel of a GPU that shares memory with the controller uses 64 queue pairs at once,
 * with rings in GPU memory, in host memory, or one in each. Commands of 4 KiB and of
 * mixed sizes; the CPU compares writes and the GPU compares reads. Prints the rate ("#
 * rate: {...}", for selftests/cuda/card.sh).
 *
 * gpu: shared
 * timeout: 240
 */
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>

#include "npbad.h"
#include "gpu_qp.h"
#include "kselftest_harness.h"

#define ENTRIES		128U	/* with four times as many CIDs, still fewer than the GPU has threads */
#define QUEUES		BADCTRL_QUEUES	/* half of them are for peers */
#define PAIRS		64U
#define LARGEST		(128U << 10)
#define RATE_RANGE	(64U << 20)
#define JOB_MS		30000U

static const uint32_t places[] = { 0, NP_GPU_HOST_SQ, NP_GPU_HOST_CQ, NP_GPU_HOST_RINGS };

FIXTURE(pairs)
{
	struct np_bad bad;
	struct np_gpu_qp qps[PAIRS];
	struct np_gpu_memory more;
};

FIXTURE_SETUP(pairs)
{
	unsigned int i;

	self->more = (struct np_gpu_memory){ .fd = -1 };
	for (i = 0; i < PAIRS; i++)
		np_gpu_qp_clear(&self->qps[i]);
	ASSERT_EQ(0, np_bad_open(&self->bad));
	ASSERT_EQ(0, np_bad_set(&self->bad, BADCTRL_GRANT, QUEUES));
	ASSERT_EQ(0, np_bad_bind(&self->bad, 1));
	for (i = 0; i < PAIRS; i++)
		ASSERT_EQ(0, np_gpu_qp_open(&self->qps[i], &self->bad.ctrl, ENTRIES,
					    places[i % ARRAY_SIZE(places)]));
	ASSERT_EQ(0, np_gpu_memory_open(&self->more, self->qps[0].gpu, np_gpu_more_bytes(PAIRS)));
}

FIXTURE_TEARDOWN(pairs)
{
	unsigned int i;

	np_gpu_memory_close(&self->more);
	for (i = 0; i < PAIRS; i++)
		np_gpu_qp_close(&self->qps[i]);
	EXPECT_EQ(0, np_bad_close(&self->bad));
}

static int run(struct np_gpu_qp *qps, const struct np_gpu_memory *more, uint32_t program,
	       uint32_t threads, struct softgpu_result *result)
{
	int job = np_gpu_start_many(qps, PAIRS, program, threads, more);

	return job < 0 ? job : np_gpu_wait(qps[0].gpu, job, JOB_MS, result);
}

/*
 * The GPU writes with commands of each size, each queue pair to its own part; the CPU
 * compares.
 */
TEST_F_TIMEOUT(pairs, writes_of_all_sizes, 120)
{
	uint64_t part = np_gpu_is_real() ? 1U << 20 : 2 * LARGEST;
	struct softgpu_result result;
	uint32_t bytes, i;

	for (bytes = NP_PAGE; bytes <= LARGEST; bytes *= 2) {
		for (i = 0; i < PAIRS; i++)
			np_gpu_range(&self->qps[i], i * part, part, bytes, 0x1000 + bytes);
		ASSERT_EQ(0, run(self->qps, &self->more, SOFTGPU_WRITE, 2 * PAIRS, &result));
		ASSERT_EQ(SOFTGPU_OK, result.status)
			TH_LOG("error %d at %llx", result.error, (unsigned long long)result.where);
		EXPECT_EQ(PAIRS * part / bytes, result.writes);
		for (i = 0; i < PAIRS; i++)
			ASSERT_EQ(0, np_gpu_pattern_check(self->bad.disk, i * part, part,
							  0x1000 + bytes));
	}
}

/* The CPU writes, and the GPU compares what it reads with commands of mixed sizes. */
TEST_F_TIMEOUT(pairs, reads_of_mixed_sizes, 120)
{
	uint64_t part = np_gpu_is_real() ? 1U << 20 : 2 * LARGEST, commands = np_gpu_is_real() ? 2000 : 20;
	struct softgpu_result result;
	uint32_t i;

	for (i = 0; i < PAIRS; i++) {
		ASSERT_EQ(0, np_gpu_pattern_write(self->bad.disk, i * part, part, 0x5eed));
		np_gpu_range(&self->qps[i], 0, PAIRS * part, NP_PAGE, 0x5eed);
		self->qps[i].io.most_blocks = LARGEST / NP_BLOCK;
		self->qps[i].io.commands = commands * PAIRS;
	}
	ASSERT_EQ(0, run(self->qps, &self->more, SOFTGPU_RANDOM, 4 * PAIRS, &result));
	ASSERT_EQ(SOFTGPU_OK, result.status)
		TH_LOG("error %d at %llx", result.error, (unsigned long long)result.where);
	EXPECT_EQ(commands * PAIRS, result.reads);
	EXPECT_EQ(0, result.mismatches);
	/* Sizes are mixed. */
	EXPECT_LT(commands * PAIRS * NP_PAGE, result.bytes_read);
	EXPECT_GT(commands * PAIRS * LARGEST, result.bytes_read);
	/* All queue pairs were used; the software GPU runs few threads at a time. */
	for (i = 0; i < PAIRS && np_gpu_is_real(); i++)
		EXPECT_LT(0, np_bad_get(&self->bad,
					BADCTRL_QUEUE_COUNT(self->qps[i].io.queue.qid,
							    BADCTRL_FETCHED)));
	/* Wrong data is detected on any queue pair. */
	ASSERT_EQ(0, np_gpu_pattern_write(self->bad.disk, (PAIRS - 1) * part, part, 0xbad));
	ASSERT_EQ(0, run(self->qps, &self->more, SOFTGPU_RANDOM, 4 * PAIRS, &result));
	EXPECT_EQ(SOFTGPU_FAILED, result.status);
	EXPECT_LT(0, result.mismatches);
}

static int rate(struct np_gpu_qp *qps, const struct np_gpu_memory *more, uint32_t threads,
		uint32_t largest)
{
	struct softgpu_result result;
	double seconds;
	uint32_t i;
	int ret;

	for (i = 0; i < PAIRS; i++) {
		np_gpu_range(&qps[i], 0, RATE_RANGE, NP_PAGE, 1);
		/* One command for each call: there are more threads than CIDs. */
		qps[i].io.depth = 0;
		qps[i].io.most_blocks = largest / NP_BLOCK;
		qps[i].io.duration_ns = np_gpu_is_real() ? 1000000000 : 100000000;
	}
	ret = run(qps, more, SOFTGPU_RATE, threads, &result);
	if (ret || result.status != SOFTGPU_OK || result.errors) {
		printf("# %u threads: %d, status %u, %llu errors, the first %d\n", threads, ret,
		       result.status, (unsigned long long)result.errors, result.error);
		return -1;
	}
	seconds = (double)result.elapsed_ns / 1e9;
	printf("# rate: {\"rings\": \"mixed\", \"pairs\": %u, \"threads\": %u, \"bytes\": %u, \"per_second\": %.0f, \"most_bytes\": %u, \"mib_per_second\": %.0f}\n",
	       PAIRS, threads, NP_PAGE, (double)result.reads / seconds,
	       largest ? largest : NP_PAGE, (double)result.bytes_read / seconds / (1 << 20));
	return result.reads ? 0 : -1;
}

/* A thread's part of the data memory is a page or the size of the largest command. */
TEST_F_TIMEOUT(pairs, rates, 120)
{
	uint32_t most = np_gpu_is_real() ? 65536 : 2 * PAIRS, threads;

	for (threads = np_gpu_is_real() ? 1024 : most; threads <= most; threads *= 4)
		EXPECT_EQ(0, rate(self->qps, &self->more, threads, 0));
	EXPECT_EQ(0, rate(self->qps, &self->more, np_gpu_is_real() ? 32 * PAIRS : PAIRS, LARGEST));
}

TEST_HARNESS_MAIN
