// SPDX-License-Identifier: GPL-2.0-only
/*
 * I/O rates of a GPU that shares memory with the controller, by number of queue pairs and
 * threads and by placement of the rings; and the CPU's rate beside a GPU that uses half
 * of the controller's rate. Prints a line of JSON for each ("# rate: {...}", "# beside:
 * {...}"), for selftests/cuda/card.sh.
 *
 * gpu: shared
 * timeout: 600
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "npbad.h"
#include "gpu_qp.h"
#include "kselftest_harness.h"

#define ENTRIES		1024U
#define QUEUES		40U
#define MOST_PAIRS	16U
#define RANGE		(8U << 20)
#define SAMPLES		1000U
#define DELAY_NS	1000U
#define BESIDE_THREADS	64U	/* of each queue pair */
#define ROUNDS		5	/* card.sh takes the median; the software GPU does one round */

/* Terse output, version 3: seven fields. */
#define BEFORE_RATE	"%*[^;];%*[^;];%*[^;];%*[^;];%*[^;];%*[^;];%*[^;];"

FIXTURE(rate)
{
	struct np_bad bad;
	struct np_ctrl other;
	struct np_gpu_qp qps[MOST_PAIRS];
	uint32_t threads[3];
	uint64_t duration_ns;
	unsigned int rounds;
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
	self->duration_ns = self->real ? 300000000 : 100000000;
	self->rounds = self->real ? ROUNDS : 1;
	for (i = 0; i < MOST_PAIRS; i++)
		np_gpu_qp_clear(&self->qps[i]);
	ASSERT_EQ(0, np_ctrl_open(&self->other, "np0"));
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
	np_ctrl_close(&self->other);
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

/* Commands a second of all jobs, 0 if any failed. */
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

static int tell_rate(struct np_gpu_qp *qps, unsigned int pairs, uint32_t threads,
		     const char *rings)
{
	double rate = measure(qps, pairs, threads);

	printf("# rate: {\"rings\": \"%s\", \"pairs\": %u, \"threads\": %u, \"bytes\": %u, \"per_second\": %.0f}\n",
	       rings, pairs, pairs * threads, NP_PAGE, rate);
	return rate > 0 ? 0 : -EIO;
}

TEST_F_TIMEOUT(rate, rate_by_pairs_and_threads, 120)
{
	unsigned int pairs, i, round;

	for (i = 0; i < MOST_PAIRS; i++)
		self->qps[i].io.duration_ns = self->duration_ns;
	for (round = 0; round < self->rounds; round++)
		for (pairs = 1; pairs <= MOST_PAIRS; pairs *= 4)
			for (i = 0; i < 3 && self->threads[i]; i++)
				ASSERT_EQ(0, tell_rate(self->qps, pairs, self->threads[i],
						       variant->name));
}

static int compare(const void *left, const void *right)
{
	uint64_t a = *(const uint64_t *)left, b = *(const uint64_t *)right;

	return (a > b) - (a < b);
}

static int tell_latency(struct np_gpu_qp *qp, uint32_t program, const char *by,
			const char *rings, uint32_t delay)
{
	uint8_t *data = qp->memory.bytes + (qp->io.data_address - qp->memory.address);
	uint64_t *samples = (uint64_t *)(data + qp->io.data.length);
	struct softgpu_result result;
	int ret = np_gpu_run(qp->gpu, program, 1, &qp->io, sizeof(qp->io), &result);

	if (ret || result.status != SOFTGPU_OK || result.reads != SAMPLES)
		return ret ?: -EIO;
	qsort(samples, SAMPLES, sizeof(*samples), compare);
	printf("# %s: {\"rings\": \"%s\", \"by\": \"%s\", \"median_ns\": %llu, \"p99_ns\": %llu, \"min_ns\": %llu}\n",
	       delay ? "delayed" : "latency", rings, by, (unsigned long long)samples[SAMPLES / 2],
	       (unsigned long long)samples[SAMPLES * 99 / 100], (unsigned long long)samples[0]);
	return samples[0] > delay ? 0 : -ERANGE;
}

/*
 * One thread, one command at a time: from the call to the data; also while the controller
 * takes DELAY_NS for each command.
 */
TEST_F_TIMEOUT(rate, latency_at_depth_1, 60)
{
	static const uint32_t delays[] = { 0, DELAY_NS };
	struct np_gpu_qp *qp = &self->qps[0];
	unsigned int round, i;

	qp->io.data.length /= 2;
	qp->io.commands = SAMPLES;
	qp->io.samples = qp->io.data_address + qp->io.data.length;
	qp->io.sample_count = SAMPLES;
	for (i = 0; i < ARRAY_SIZE(delays); i++) {
		ASSERT_EQ(0, np_bad_set(&self->bad, BADCTRL_MOVER(BADCTRL_MOVER_DELAY), delays[i]));
		for (round = 0; round < self->rounds; round++) {
			ASSERT_EQ(0, tell_latency(qp, SOFTGPU_LATENCY, "call", variant->name,
						  delays[i]));
			ASSERT_EQ(0, tell_latency(qp, SOFTGPU_EXCLUSIVE, "exclusive", variant->name,
						  delays[i]));
			ASSERT_EQ(0, tell_latency(qp, SOFTGPU_EXCHANGE, "hand", variant->name,
						  delays[i]));
		}
	}
	ASSERT_EQ(0, np_bad_set(&self->bad, BADCTRL_MOVER(BADCTRL_MOVER_DELAY), 0));
}

/* fio's reads a second: alone, and beside a GPU. */
struct pace {
	double alone;
	double beside;
};

/*
 * fio's reads a second on a controller's disk, 0 on failure. fio runs on one CPU, because
 * interprocessor interrupts between emulated CPUs are slow and their number is random;
 * and in batches, because interrupts are slow too, and a busy controller sends more of
 * them than one that wakes for each command.
 */
static double fio(const struct np_ctrl *ctrl)
{
	char command[384], line[4096] = "";
	double rate = 0;
	FILE *output;

	snprintf(command, sizeof(command),
		 "fio --name=beside --filename=/dev/nvmep%dn1 --direct=1 --rw=randread --bs=4k --size=%u --ioengine=io_uring --iodepth=32 --iodepth_batch=16 --iodepth_batch_complete_min=16 --cpus_allowed=1 --time_based --runtime=%d --output-format=terse",
		 ctrl->instance, RANGE, np_gpu_is_real() ? 2 : 1);
	output = popen(command, "re");
	if (!output)
		return 0;
	if (fgets(line, sizeof(line), output) && sscanf(line, BEFORE_RATE "%lf", &rate) != 1)
		rate = 0;
	return pclose(output) ? 0 : rate;
}

/* Beside a GPU that is limited to @most / 2, on its controller and on the other one. */
static int fio_beside(FIXTURE_DATA(rate) *self, uint32_t threads, double most,
		      struct pace *same, struct pace *other)
{
	int jobs[MOST_PAIRS], ret = start(self->qps, MOST_PAIRS, threads, jobs);
	unsigned int i;
	double half;

	if (ret)
		return ret;
	same->beside = fio(&self->bad.ctrl);
	other->beside = fio(&self->other);
	for (i = 0; i < MOST_PAIRS && !ret; i++)
		ret = np_gpu_stop(self->qps[i].gpu, jobs[i], 0);
	half = end(self->qps, MOST_PAIRS, jobs);
	/* The limit must hold. */
	return ret ?: half > 0 && half <= 1.1 * most / 2 ? 0 : -ERANGE;
}

/*
 * One round of all four cases. The controller's threads and the emulated CPUs share this
 * machine's CPUs. The cost of that appears on the controller that the GPU does not use,
 * and is not part of the controller's share.
 */
static int report_beside(FIXTURE_DATA(rate) *self, uint32_t threads, double most, const char *rings)
{
	struct pace same = { .alone = fio(&self->bad.ctrl) }, other = { .alone = fio(&self->other) };
	int ret = fio_beside(self, threads, most, &same, &other);

	if (ret || !(same.alone > 0 && other.alone > 0 && same.beside > 0 && other.beside > 0))
		return ret ?: -EIO;
	printf("# beside: {\"rings\": \"%s\", \"controller\": %.0f, \"alone\": %.0f, \"beside\": %.0f, \"other_alone\": %.0f, \"other_beside\": %.0f}\n",
	       rings, most, same.alone, same.beside, other.alone, other.beside);
	return 0;
}

/* The GPU is limited to half of the controller's rate, and the CPU takes what it gets. */
TEST_F_TIMEOUT(rate, cpu_rate_beside_gpu, 240)
{
	uint32_t threads = self->real ? BESIDE_THREADS : 1, i;
	double most;

	for (i = 0; i < MOST_PAIRS; i++)
		self->qps[i].io.duration_ns = self->duration_ns;
	most = measure(self->qps, MOST_PAIRS, threads);
	ASSERT_LT(0, most);
	/* Warm up: an emulated CPU translates a program when it first runs. */
	ASSERT_LT(0, fio(&self->bad.ctrl));
	for (i = 0; i < MOST_PAIRS; i++) {
		self->qps[i].io.pace_ns = (uint32_t)(MOST_PAIRS * threads * 1e9 / (most / 2));
		self->qps[i].io.duration_ns = 0;
	}
	for (i = 0; i < self->rounds; i++)
		ASSERT_EQ(0, report_beside(self, threads, most, variant->name));
}

TEST_HARNESS_MAIN
