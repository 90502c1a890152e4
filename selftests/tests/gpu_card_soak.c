// SPDX-License-Identifier: GPL-2.0-only
/*
 * Many verified commands by a GPU that shares memory with the controller: reads that it
 * compares with what was written, on several queue pairs at once.
 *
 * gpu: shared
 * long: yes
 * arguments: 100000000
 * timeout: 900
 */
#include <stdio.h>
#include <stdlib.h>

#include "badknob.h"
#include "gpupeer.h"

#define ENTRIES		1024U
#define QUEUES		40U
#define PAIRS		8U
#define THREADS		512U
#define RANGE		(8U << 20)
#define JOB_MS		800000U

static struct np_bad bad;
static struct np_gpu_qp qps[PAIRS];

static int fail(const char *what, int error)
{
	printf("# %s: %d\nnot ok 1 soak\n", what, error);
	return 1;
}

static int open_all(uint64_t commands)
{
	struct softgpu_result result;
	unsigned int i;
	int ret = np_bad_open(&bad) ?: np_bad_set(&bad, BADCTRL_GRANT, QUEUES) ?:
		  np_bad_bind(&bad, 1);

	for (i = 0; i < PAIRS && !ret; i++) {
		ret = np_gpu_qp_open(&qps[i], &bad.ctrl, ENTRIES, i % 2 ? NP_GPU_HOST_RINGS : 0);
		np_gpu_range(&qps[i], 0, RANGE, NP_PAGE, 0x50a);
	}
	ret = ret ?: np_gpu_run(qps[0].gpu, SOFTGPU_WRITE, 64, &qps[0].io, sizeof(qps[0].io),
				&result) ?: result.status != SOFTGPU_OK;
	for (i = 0; i < PAIRS; i++)
		qps[i].io.commands = commands / PAIRS;
	return ret;
}

int main(int argc, char **argv)
{
	uint64_t commands = argc > 1 ? strtoull(argv[1], NULL, 10) : 1000, reads = 0, wrong = 0;
	struct softgpu_result result;
	int jobs[PAIRS], ret;
	unsigned int i;

	printf("TAP version 13\n1..1\n");
	ret = open_all(commands);
	if (ret)
		return fail("open", ret);
	for (i = 0; i < PAIRS; i++)
		jobs[i] = np_gpu_start(qps[i].gpu, SOFTGPU_RANDOM, THREADS, &qps[i].io,
				       sizeof(qps[i].io));
	for (i = 0; i < PAIRS; i++) {
		ret = jobs[i] < 0 ? jobs[i] : np_gpu_wait(qps[i].gpu, jobs[i], JOB_MS, &result);
		if (ret || result.status != SOFTGPU_OK)
			return fail("job", ret ? ret : result.error);
		reads += result.reads;
		wrong += result.mismatches + result.errors;
	}
	for (i = 0; i < PAIRS; i++)
		np_gpu_qp_close(&qps[i]);
	printf("# soak: {\"reads\": %llu, \"wrong\": %llu, \"ns\": %llu}\n",
	       (unsigned long long)reads, (unsigned long long)wrong,
	       (unsigned long long)result.elapsed_ns);
	ret = np_bad_close(&bad);
	if (ret || wrong || reads != commands / PAIRS * PAIRS)
		return fail("end", ret);
	printf("ok 1 soak\n");
	return 0;
}
