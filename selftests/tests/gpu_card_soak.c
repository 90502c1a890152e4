// SPDX-License-Identifier: GPL-2.0-only
/*
 * Many verified commands by a GPU that shares memory with the controller, on several
 * queue pairs at once. Half of the queue pairs read a prepared range, the others write
 * and read back; the GPU compares every word.
 *
 * gpu_card_soak [COMMANDS [SECONDS]]: ends when either is reached, and prints its
 * progress every ten seconds. Fails on wrong data and lost commands only; the number of
 * commands is printed ("# soak: {...}", for selftests/cuda/card.sh).
 *
 * gpu: shared
 * long: yes
 * arguments: 100000000 700
 * timeout: 900
 */
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "npbad.h"
#include "../lib/ktap.h"
#include "gpu_qp.h"

#define ENTRIES		256U
#define QUEUES		40U
#define PAIRS		16U
#define RANGE		(8U << 20)
#define SEED		0x50aULL
#define REPORT_MS		10000
/* Limit from the end of its time to the end of the last job. */
#define END_MS		30000U

/**
 * struct soak - totals of all queue pairs
 * @commands: started
 * @ended: succeeded
 * @wrong: words that differed
 * @failed: commands that failed
 * @lost: started and not ended, or not equal to what the controller has fetched
 */
struct soak {
	uint64_t commands;
	uint64_t ended;
	uint64_t wrong;
	uint64_t failed;
	uint64_t lost;
};

static struct np_bad bad;
static struct np_gpu_qp qps[PAIRS];
static int jobs[PAIRS];

static int fail(const char *what, int error)
{
	printf("# %s: %d\n", what, error);
	ktap_check(false, "soak");
	return ktap_end();
}

/* The best number for a GPU; fewer if the software GPU runs on few CPUs. */
static uint32_t threads(void)
{
	return np_gpu_is_real() ? 128 : 8;
}

/* The range that half of the queue pairs read, written once by the first one. */
static int write_range(void)
{
	struct softgpu_result result;

	return np_gpu_run(qps[0].gpu, SOFTGPU_WRITE, threads(), &qps[0].io, sizeof(qps[0].io),
			  &result) ?: result.status != SOFTGPU_OK;
}

/* Rings in host memory and in GPU memory, for readers and for writers. */
static int open_all(void)
{
	unsigned int i;
	int ret = np_bad_open(&bad) ?: np_bad_set(&bad, BADCTRL_GRANT, QUEUES) ?:
		  np_bad_bind(&bad, 1);

	for (i = 0; i < PAIRS && !ret; i++) {
		ret = np_gpu_qp_open(&qps[i], &bad.ctrl, ENTRIES, i & 2 ? NP_GPU_HOST_RINGS : 0);
		np_gpu_range(&qps[i], i & 1 ? (uint64_t)i * RANGE : 0, RANGE, NP_PAGE, SEED);
	}
	return ret ?: write_range();
}

static int start_all(uint64_t commands, uint64_t seconds)
{
	unsigned int i;

	for (i = 0; i < PAIRS; i++) {
		qps[i].io.commands = (commands + PAIRS - 1) / PAIRS;
		qps[i].io.duration_ns = seconds * 1000000000;
		jobs[i] = np_gpu_start(qps[i].gpu, i & 1 ? SOFTGPU_MIXED : SOFTGPU_RANDOM,
				       threads(), &qps[i].io, sizeof(qps[i].io));
		if (jobs[i] < 0)
			return jobs[i];
	}
	return 0;
}

static void add(struct soak *soak, const struct softgpu_result *result)
{
	soak->commands += result->commands;
	soak->ended += result->reads + result->writes;
	soak->wrong += result->mismatches;
	soak->failed += result->errors;
}

/* Sums up the progress; is any job running? */
static bool any_runs(struct soak *soak)
{
	struct softgpu_result result;
	bool any = false;
	unsigned int i;

	*soak = (struct soak){ 0 };
	for (i = 0; i < PAIRS; i++) {
		if (np_gpu_progress(qps[i].gpu, jobs[i], &result))
			continue;
		add(soak, &result);
		any |= result.status == SOFTGPU_RUNNING;
	}
	return any;
}

static void follow(int64_t began, int64_t limit_ms)
{
	int64_t reported = began, now = began;
	struct soak soak;

	while (any_runs(&soak) && now - began < limit_ms) {
		np_sleep_ms(100);
		now = np_now_ms();
		if (now - reported < REPORT_MS)
			continue;
		reported += REPORT_MS;
		printf("# %lld s: %llu commands verified, %llu words wrong, %llu commands failed\n",
		       (long long)(now - began) / 1000, (unsigned long long)soak.ended,
		       (unsigned long long)soak.wrong, (unsigned long long)soak.failed);
		fflush(stdout);
	}
}

/* The first queue pair has written the range too. */
static uint64_t fetched(unsigned int pair)
{
	uint64_t count = np_bad_get(&bad, BADCTRL_QUEUE_COUNT(qps[pair].io.queue.qid,
							      BADCTRL_FETCHED));

	return pair ? count : count - RANGE / NP_PAGE;
}

static int end_all(struct soak *soak)
{
	struct softgpu_result result;
	unsigned int i;
	int ret;

	*soak = (struct soak){ 0 };
	for (i = 0; i < PAIRS; i++) {
		ret = np_gpu_wait(qps[i].gpu, jobs[i], END_MS, &result);
		if (ret)
			return ret;
		add(soak, &result);
		soak->lost += result.commands - result.reads - result.writes - result.errors;
		soak->lost += result.commands != fetched(i);
		if (result.status != SOFTGPU_OK)
			printf("# pair %u: status %u, error %d at %llx\n", i, result.status,
			       result.error, (unsigned long long)result.where);
	}
	return 0;
}

static void report(const struct soak *soak, uint64_t wanted, int64_t took_ms)
{
	printf("# soak: {\"wanted\": %llu, \"verified\": %llu, \"wrong\": %llu, \"failed\": %llu, \"lost\": %llu, \"ms\": %lld, \"per_second\": %llu}\n",
	       (unsigned long long)wanted, (unsigned long long)soak->ended,
	       (unsigned long long)soak->wrong, (unsigned long long)soak->failed,
	       (unsigned long long)soak->lost, (long long)took_ms,
	       (unsigned long long)soak->ended * 1000 / (uint64_t)(took_ms ? took_ms : 1));
}

int main(int argc, char **argv)
{
	uint64_t commands = argc > 1 ? strtoull(argv[1], NULL, 10) : 20000;
	uint64_t seconds = argc > 2 ? strtoull(argv[2], NULL, 10) : 10;
	struct soak soak;
	unsigned int i;
	int64_t began;
	int ret;

	ktap_start();
	ret = open_all();
	if (ret)
		return fail("open", ret);
	began = np_now_ms();
	ret = start_all(commands, seconds);
	if (ret)
		return fail("start", ret);
	follow(began, (int64_t)seconds * 1000 + END_MS);
	ret = end_all(&soak);
	if (ret)
		return fail("a job does not end", ret);
	report(&soak, commands, np_now_ms() - began);
	for (i = 0; i < PAIRS; i++)
		np_gpu_qp_close(&qps[i]);
	ret = np_bad_close(&bad);
	if (ret || !soak.ended || soak.wrong || soak.failed || soak.lost)
		return fail("end", ret);
	ktap_check(true, "soak");
	return ktap_end();
}
