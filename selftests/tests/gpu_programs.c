// SPDX-License-Identifier: GPL-2.0-only
/*
 * The software GPU's block programs report correctly: a wrong word is located, a failed
 * command is reported with its status, limits and latency samples are right. Other tests
 * and the demonstration rely on it.
 *
 * iommu: on
 * long-iommu: on off pt
 * kernels: 7
 * long-kernels: 6.1 6.12 7 debug kcsan
 * timeout: 60
 * mediated: 7
 */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "gpu_qp.h"
#include "kselftest_harness.h"

#define ENTRIES		32U
#define DISK		NP_AREA(13)
#define BYTES		(1U << 18)
#define SAMPLES		200U

FIXTURE(programs)
{
	struct np_ctrl ctrl;
	struct np_gpu_qp qp;
	int disk;
};

FIXTURE_SETUP(programs)
{
	ASSERT_EQ(0, np_ctrl_open(&self->ctrl, "np0"));
	if (np_gpu_unusable(&self->ctrl))
		SKIP(return, "%s", np_gpu_unusable(&self->ctrl));
	np_gpu_qp_clear(&self->qp);
	ASSERT_EQ(0, np_gpu_qp_open(&self->qp, &self->ctrl, ENTRIES, 0));
	self->disk = np_open_node(&self->ctrl, "/dev/nvmep%dn1", O_RDWR | O_DIRECT);
	ASSERT_GE(self->disk, 0);
	np_gpu_range(&self->qp, DISK, BYTES, NP_PAGE, 5);
}

FIXTURE_TEARDOWN(programs)
{
	close(self->disk);
	np_gpu_qp_close(&self->qp);
	np_ctrl_close(&self->ctrl);
}

static int run(struct np_gpu_qp *qp, uint32_t program, uint32_t threads,
	       struct softgpu_result *result)
{
	int ret = np_gpu_run(qp->gpu, program, threads, &qp->io, sizeof(qp->io), result);

	return ret ? ret : (int)result->status;
}

TEST_F(programs, wrong_word_is_located)
{
	uint64_t block = DISK / NP_BLOCK + 77;
	struct softgpu_result result;
	uint64_t *bytes = aligned_alloc(NP_PAGE, NP_PAGE);

	ASSERT_NE(NULL, bytes);
	ASSERT_EQ(SOFTGPU_OK, run(&self->qp, SOFTGPU_WRITE, 4, &result));
	ASSERT_EQ(SOFTGPU_OK, run(&self->qp, SOFTGPU_VERIFY, 4, &result));
	ASSERT_EQ(0, np_disk_read(self->disk, bytes, NP_BLOCK, block * NP_BLOCK));
	bytes[3] ^= 1;
	ASSERT_EQ(0, np_disk_write(self->disk, bytes, NP_BLOCK, block * NP_BLOCK));
	EXPECT_EQ(SOFTGPU_FAILED, run(&self->qp, SOFTGPU_VERIFY, 4, &result));
	EXPECT_EQ(1, result.mismatches);
	EXPECT_EQ(block, result.where);
	EXPECT_EQ(bytes[3], result.value);
	EXPECT_EQ(0, result.errors);
	EXPECT_EQ(BYTES, result.bytes_read);
	/* Another seed gives another pattern everywhere. */
	self->qp.io.seed++;
	EXPECT_EQ(SOFTGPU_FAILED, run(&self->qp, SOFTGPU_VERIFY, 4, &result));
	EXPECT_EQ(BYTES / 8, result.mismatches);
	free(bytes);
}

TEST_F(programs, failed_command_is_reported)
{
	struct softgpu_result result;

	self->qp.io.first_lba = 1ULL << 40;
	EXPECT_EQ(SOFTGPU_FAILED, run(&self->qp, SOFTGPU_VERIFY, 1, &result));
	EXPECT_EQ(NVME_SC_LBA_RANGE, result.error & NVME_STATUS_MASK);
	EXPECT_EQ(BYTES / NP_PAGE, result.errors);
	EXPECT_EQ(1ULL << 40, result.where);
	EXPECT_EQ(0, result.reads);
}

TEST_F(programs, random_reads_verify_and_stop)
{
	struct softgpu_result result;

	ASSERT_EQ(SOFTGPU_OK, run(&self->qp, SOFTGPU_WRITE, 4, &result));
	self->qp.io.commands = 300;
	EXPECT_EQ(SOFTGPU_OK, run(&self->qp, SOFTGPU_RANDOM, 3, &result));
	EXPECT_EQ(300, result.reads);
	self->qp.io.commands = 0;
	self->qp.io.duration_ns = 200000000;
	EXPECT_EQ(SOFTGPU_OK, run(&self->qp, SOFTGPU_RANDOM, 2, &result));
	EXPECT_GE(result.elapsed_ns, 200000000);
	EXPECT_LT(result.elapsed_ns, NP_TIMEOUT_MS * 1000000LL);
	self->qp.io.seed++;
	EXPECT_EQ(SOFTGPU_FAILED, run(&self->qp, SOFTGPU_RANDOM, 2, &result));
}

/*
 * Shared, exclusive and hand-written reads of one command at a time; exclusive use leaves
 * the queue pair usable for others.
 */
static const uint32_t one_at_a_time[] = {
	SOFTGPU_LATENCY, SOFTGPU_EXCLUSIVE, SOFTGPU_EXCHANGE, SOFTGPU_EXCLUSIVE, SOFTGPU_LATENCY,
};

TEST_F(programs, latency_samples)
{
	uint64_t samples = self->qp.io.data_address + self->qp.io.data.length / 2, sum = 0;
	uint64_t *seen = (uint64_t *)(self->qp.memory.bytes +
				      (samples - self->qp.memory.address));
	struct softgpu_result result;
	unsigned int i, k, wrong = 0;

	self->qp.io.data.length /= 2;
	self->qp.io.commands = SAMPLES;
	self->qp.io.samples = samples;
	self->qp.io.sample_count = SAMPLES;
	for (k = 0; k < sizeof(one_at_a_time) / sizeof(one_at_a_time[0]); k++, sum = 0) {
		ASSERT_EQ(SOFTGPU_OK, run(&self->qp, one_at_a_time[k], 1, &result));
		EXPECT_EQ(SAMPLES, result.reads);
		for (i = 0; i < SAMPLES; i++) {
			sum += seen[i];
			wrong += seen[i] < result.latency_min_ns ||
				 seen[i] > result.latency_max_ns;
		}
		EXPECT_EQ(0, wrong);
		EXPECT_EQ(sum, result.latency_ns);
		EXPECT_LE(result.latency_ns, result.elapsed_ns);
		TH_LOG("4 KiB read by program %u: %llu us on average", one_at_a_time[k],
		       (unsigned long long)(result.latency_ns / SAMPLES / 1000));
	}
}

/* Two threads cannot both have exclusive use, and a hand-written command has no list. */
TEST_F(programs, exclusive_mode_needs_one_thread)
{
	struct softgpu_result result;

	self->qp.io.commands = SAMPLES;
	EXPECT_EQ(SOFTGPU_INVALID, run(&self->qp, SOFTGPU_EXCLUSIVE, 2, &result));
	EXPECT_EQ(SOFTGPU_INVALID, run(&self->qp, SOFTGPU_EXCHANGE, 2, &result));
	self->qp.io.blocks = 2 * NP_PAGE / NP_BLOCK;
	EXPECT_EQ(SOFTGPU_INVALID, run(&self->qp, SOFTGPU_EXCHANGE, 1, &result));
	EXPECT_EQ(SOFTGPU_OK, run(&self->qp, SOFTGPU_EXCLUSIVE, 1, &result));
	EXPECT_EQ(SAMPLES, result.reads);
}

/* More commands than queue entries: each one completes once. */
TEST_F(programs, rate_program_keeps_depth)
{
	struct softgpu_result result;

	self->qp.io.commands = 500;
	self->qp.io.depth = 2 * ENTRIES;
	EXPECT_EQ(SOFTGPU_OK, run(&self->qp, SOFTGPU_RATE, 2, &result));
	EXPECT_EQ(500, result.reads);
	EXPECT_EQ(500 * NP_PAGE, result.bytes_read);
	EXPECT_EQ(0, result.errors);
	TH_LOG("%llu reads a second",
	       (unsigned long long)(result.reads * 1000000000 / result.elapsed_ns));
}

/* Parameters outside GPU memory end the job, not the GPU. */
TEST_F(programs, bad_parameters_end_the_job)
{
	struct softgpu_io good = self->qp.io;
	struct softgpu_result result;

	self->qp.io.queue.state += 1ULL << 32;
	EXPECT_EQ(SOFTGPU_INVALID, run(&self->qp, SOFTGPU_WRITE, 1, &result));
	self->qp.io = good;
	self->qp.io.data_address += 1ULL << 32;
	EXPECT_EQ(SOFTGPU_INVALID, run(&self->qp, SOFTGPU_WRITE, 1, &result));
	self->qp.io = good;
	self->qp.io.data.pages = 4096;
	EXPECT_EQ(SOFTGPU_INVALID, run(&self->qp, SOFTGPU_WRITE, 1, &result));
	self->qp.io = good;
	self->qp.io.blocks = 0;
	EXPECT_EQ(SOFTGPU_INVALID, run(&self->qp, SOFTGPU_WRITE, 1, &result));
	self->qp.io = good;
	self->qp.io.queue.sq += 1ULL << 32;
	EXPECT_EQ(SOFTGPU_FAULT, run(&self->qp, SOFTGPU_WRITE, 1, &result));
	/* In the ring. */
	EXPECT_GT(ENTRIES * 64, result.where - self->qp.io.queue.sq);
}

TEST_HARNESS_MAIN
