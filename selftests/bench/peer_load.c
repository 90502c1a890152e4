// SPDX-License-Identifier: GPL-2.0-only
/*
 * Load for measurements (selftests/bench/cpu.sh): queue pairs of the software GPU on np0, each of
 * which reads as fast as the controller allows.
 *
 * usage: peer_load PAIRS
 *
 * Prints "held" when all of them read, and waits for the end of its input. Then it prints the
 * number of queue pairs, the reads a second, and the minimum and maximum of one queue pair.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "gpu_qp.h"

#define MOST_PAIRS	32U
#define ENTRIES		64U
#define RANGE		(8U << 20)
#define DEPTH		32U

static int fail(const char *what, int ret)
{
	fprintf(stderr, "peer_load: %s: %s\n", what, strerror(-ret));
	return 1;
}

/* Start an endless job. */
static int start(const struct np_ctrl *ctrl, struct np_gpu_qp *qp)
{
	int ret = np_gpu_qp_open(qp, ctrl, ENTRIES, 0);

	if (ret)
		return ret;
	np_gpu_range(qp, NP_AREA(1), RANGE, NP_PAGE, 1);
	qp->io.depth = DEPTH;
	return np_gpu_start(qp->gpu, SOFTGPU_RATE, 1, &qp->io, sizeof(qp->io));
}

/* Reads a second, negative after an error. */
static double stop(struct np_gpu_qp *qp, int job)
{
	struct softgpu_result result;

	if (np_gpu_stop(qp->gpu, job, 0) ||
	    np_gpu_wait(qp->gpu, job, 10 * NP_TIMEOUT_MS, &result) ||
	    result.status != SOFTGPU_OK || result.errors)
		return -1;
	return (double)result.reads * 1e9 / (double)result.elapsed_ns;
}

int main(int argc, char **argv)
{
	static struct np_gpu_qp qps[MOST_PAIRS];
	unsigned int pairs = argc == 2 ? strtoul(argv[1], NULL, 10) : 0, i;
	int jobs[MOST_PAIRS], ret;
	struct np_ctrl ctrl;
	double rate, all = 0, least = 0, most = 0;

	if (!pairs || pairs > MOST_PAIRS)
		return fail("PAIRS", -EINVAL);
	ret = np_ctrl_open(&ctrl, "np0");
	if (ret)
		return fail("np0", ret);
	for (i = 0; i < pairs; i++) {
		jobs[i] = start(&ctrl, &qps[i]);
		if (jobs[i] < 0)
			return fail("queue pair", jobs[i]);
	}
	puts("held");
	fflush(stdout);
	while (getchar() != EOF)
		;
	for (i = 0; i < pairs; i++) {
		rate = stop(&qps[i], jobs[i]);
		if (rate <= 0)
			return fail("a queue pair did not read, or not well", -EIO);
		all += rate;
		least = i && least < rate ? least : rate;
		most = most > rate ? most : rate;
	}
	printf("%u %.0f %.0f %.0f\n", pairs, all, least, most);
	for (i = 0; i < pairs; i++)
		np_gpu_qp_close(&qps[i]);
	np_ctrl_close(&ctrl);
	return 0;
}
