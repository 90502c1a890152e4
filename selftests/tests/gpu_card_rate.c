// SPDX-License-Identifier: GPL-2.0-only
/*
 * How fast a GPU that shares memory with the controller does I/O through queue pairs
 * that the module made: pairs, threads, where the rings lie; and what is left to the CPU
 * beside a GPU that takes half of the controller.  A line of JSON for each
 * ("# rate: {...}", "# beside: {...}"), for selftests/cuda/card.sh.
 *
 * gpu: shared
 * timeout: 240
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "badknob.h"
#include "gpupeer.h"
#include "kselftest_harness.h"

#define ENTRIES		1024U
#define QUEUES		40U
#define MOST_PAIRS	16U
#define RANGE		(8U << 20)
#define SAMPLES		1000U
#define BESIDE_THREADS	64U	/* of a pair, of as many as there are */
#define FIO_SECONDS	2

/* Terse output, version 3: seven fields. */
#define BEFORE_RATE	"%*[^;];%*[^;];%*[^;];%*[^;];%*[^;];%*[^;];%*[^;];"

FIXTURE(rate)
{
	struct np_bad bad;
	struct np_gpu_qp qps[MOST_PAIRS];
	uint32_t threads[3];
	uint64_t duration_ns;
	bool real;
};

FIXTURE_VARIANT(rate)
{
	const char *name;
	uint32_t rings;
};

FIXTURE_VARIANT_ADD(rate, rings_in_gpu)
{
	.name = "gpu",
	.rings = 0,
};

FIXTURE_VARIANT_ADD(rate, rings_in_host)
{
	.name = "host",
	.rings = NP_GPU_HOST_RINGS,
};

FIXTURE_SETUP(rate)
{
	const uint32_t many[3] = { 1, 64, 1024 }, few[3] = { 1, 8, 0 };
	unsigned int i;

	self->real = np_gpu_is_real();
	memcpy(self->threads, self->real ? many : few, sizeof(many));
	self->duration_ns = self->real ? 1000000000 : 100000000;
	for (i = 0; i < MOST_PAIRS; i++)
		np_gpu_qp_clear(&self->qps[i]);
	ASSERT_EQ(0, np_bad_open(&self->bad));
	ASSERT_EQ(0, np_bad_set(&self->bad, BADCTRL_GRANT, QUEUES));
	ASSERT_EQ(0, np_bad_bind(&self->bad, 1));
	for (i = 0; i < MOST_PAIRS; i++) {
		ASSERT_EQ(0, np_gpu_qp_open(&self->qps[i], &self->bad.ctrl, ENTRIES,
					    variant->rings));
		np_gpu_range(&self->qps[i], 0, RANGE, NP_PAGE, 1);
		self->qps[i].io.depth = 1;
	}
}

FIXTURE_TEARDOWN(rate)
{
	unsigned int i;

	for (i = 0; i < MOST_PAIRS; i++)
		np_gpu_qp_close(&self->qps[i]);
	EXPECT_EQ(0, np_bad_close(&self->bad));
}

static int start(struct np_gpu_qp *qps, unsigned int pairs, uint32_t threads, int *jobs)
{
	unsigned int i;

	for (i = 0; i < pairs; i++) {
		jobs[i] = np_gpu_start(qps[i].gpu, SOFTGPU_RATE, threads, &qps[i].io,
				       sizeof(qps[i].io));
		if (jobs[i] < 0)
			return jobs[i];
	}
	return 0;
}

/* Commands a second of all jobs, 0 if anything failed. */
static double end(struct np_gpu_qp *qps, unsigned int pairs, const int *jobs)
{
	struct softgpu_result result;
	double rate = 0;
	unsigned int i;

	for (i = 0; i < pairs; i++) {
		if (np_gpu_wait(qps[i].gpu, jobs[i], 20000, &result) ||
		    result.status != SOFTGPU_OK || result.errors)
			return 0;
		rate += (double)result.reads * 1e9 / (double)result.elapsed_ns;
	}
	return rate;
}

static double measure(struct np_gpu_qp *qps, unsigned int pairs, uint32_t threads)
{
	int jobs[MOST_PAIRS];

	return start(qps, pairs, threads, jobs) ? 0 : end(qps, pairs, jobs);
}

TEST_F_TIMEOUT(rate, of_pairs_and_threads, 120)
{
	unsigned int pairs, i;
	double rate;

	for (pairs = 1; pairs <= MOST_PAIRS; pairs *= 4) {
		for (i = 0; i < 3 && self->threads[i]; i++) {
			unsigned int k;

			for (k = 0; k < pairs; k++)
				self->qps[k].io.duration_ns = self->duration_ns;
			rate = measure(self->qps, pairs, self->threads[i]);
			EXPECT_LT(0, rate);
			printf("# rate: {\"rings\": \"%s\", \"pairs\": %u, \"threads\": %u, \"bytes\": %u, \"per_second\": %.0f}\n",
			       variant->name, pairs, pairs * self->threads[i], NP_PAGE, rate);
		}
	}
}

static int compare(const void *left, const void *right)
{
	uint64_t a = *(const uint64_t *)left, b = *(const uint64_t *)right;

	return (a > b) - (a < b);
}

/* One thread, one command at a time: from the call to the data. */
TEST_F_TIMEOUT(rate, of_one_at_a_time, 60)
{
	struct np_gpu_qp *qp = &self->qps[0];
	uint8_t *data = qp->memory.bytes + (qp->io.data_address - qp->memory.address);
	struct softgpu_result result;
	uint64_t *samples;

	qp->io.data.length /= 2;
	samples = (uint64_t *)(data + qp->io.data.length);
	qp->io.commands = SAMPLES;
	qp->io.samples = qp->io.data_address + qp->io.data.length;
	qp->io.sample_count = SAMPLES;
	ASSERT_EQ(0, np_gpu_run(qp->gpu, SOFTGPU_LATENCY, 1, &qp->io, sizeof(qp->io), &result));
	ASSERT_EQ(SOFTGPU_OK, result.status);
	ASSERT_EQ(SAMPLES, result.reads);
	qsort(samples, SAMPLES, sizeof(*samples), compare);
	EXPECT_LT(0, samples[0]);
	printf("# latency: {\"rings\": \"%s\", \"median_ns\": %llu, \"p99_ns\": %llu, \"min_ns\": %llu}\n",
	       variant->name, (unsigned long long)samples[SAMPLES / 2],
	       (unsigned long long)samples[SAMPLES * 99 / 100], (unsigned long long)samples[0]);
}

/* Reads a second of fio on the controller's disk, 0 if it failed. */
static double fio(int instance)
{
	char command[256], line[4096] = "";
	double rate = 0;
	FILE *output;

	snprintf(command, sizeof(command),
		 "fio --name=beside --filename=/dev/nvmep%dn1 --direct=1 --rw=randread --bs=4k --size=%u --ioengine=io_uring --iodepth=32 --time_based --runtime=%d --output-format=terse",
		 instance, RANGE, FIO_SECONDS);
	output = popen(command, "re");
	if (!output)
		return 0;
	if (fgets(line, sizeof(line), output) && sscanf(line, BEFORE_RATE "%lf", &rate) != 1)
		rate = 0;
	return pclose(output) ? 0 : rate;
}

/* The GPU is kept at half of what the controller gives, and the CPU does what it can. */
TEST_F_TIMEOUT(rate, of_the_cpu_beside, 60)
{
	uint32_t threads = self->real ? BESIDE_THREADS : 1, i;
	double most, half, alone, beside, share;
	int jobs[MOST_PAIRS];

	for (i = 0; i < MOST_PAIRS; i++)
		self->qps[i].io.duration_ns = self->duration_ns;
	most = measure(self->qps, MOST_PAIRS, threads);
	ASSERT_LT(0, most);
	alone = fio(self->bad.ctrl.instance);
	ASSERT_LT(0, alone);
	for (i = 0; i < MOST_PAIRS; i++) {
		self->qps[i].io.pace_ns = (uint32_t)(MOST_PAIRS * threads * 1e9 / (most / 2));
		self->qps[i].io.duration_ns = 0;
	}
	ASSERT_EQ(0, start(self->qps, MOST_PAIRS, threads, jobs));
	beside = fio(self->bad.ctrl.instance);
	for (i = 0; i < MOST_PAIRS; i++)
		ASSERT_EQ(0, np_gpu_stop(self->qps[i].gpu, jobs[i], 0));
	half = end(self->qps, MOST_PAIRS, jobs);
	EXPECT_LT(0, half);
	/* No thread may be faster. */
	EXPECT_GE(1.1 * most / 2, half);
	EXPECT_LT(0, beside);
	share = alone < most / 2 ? alone : most / 2;
	printf("# beside: {\"rings\": \"%s\", \"controller\": %.0f, \"gpu\": %.0f, \"fio_alone\": %.0f, \"fio_beside\": %.0f, \"of_its_share\": %.3f}\n",
	       variant->name, most, half, alone, beside, beside / share);
}

TEST_HARNESS_MAIN
