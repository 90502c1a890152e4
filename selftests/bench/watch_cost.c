// SPDX-License-Identifier: GPL-2.0-only
/*
 * CPU cost of the health poll of a controller while queue pairs of peers are live, in a guest
 * with one processor whose clock counts instructions (selftests/run --icount).
 *
 * usage: watch_cost CONTROLLER-NODE [--relay] PAIRS...
 *        watch_cost CONTROLLER-NODE --hold PAIRS
 *
 * The processor runs a loop of known length, alternately with that many queue pairs and with
 * none. The time beyond the loop is that of all other activity of the kernel, and the difference
 * with and without idle queue pairs is their cost. Prints "PAIRS INSTRUCTIONS SPREAD", both a
 * second: the median, and the interquartile range of turns without queue pairs.
 *
 * --relay: queue pairs in relay mode, whose doorbells the kernel polls.
 *
 * --hold: prints "held" when the queue pairs exist, and keeps them until the end of its input, for
 * other measurements (selftests/bench/cpu.sh).
 */
#include <errno.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <time.h>
#include <unistd.h>

#include <linux/nvme_peer.h>

#define MOST_PAIRS	64U
#define ENTRIES		16U
#define TURNS		15U
#define STEPS		200000000U	/* steps of the loop in a turn, at least 2 instructions each */
#define INSTRUCTION_NS	2.0

static unsigned int mode = NVME_PEER_MODE_DIRECT;

static void die(const char *what)
{
	fprintf(stderr, "watch_cost: %s: %s\n", what, strerror(errno));
	exit(1);
}

static double now_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return now.tv_sec * 1e9 + now.tv_nsec;
}

static void __attribute__((noinline)) loop(unsigned int steps)
{
	unsigned int i;

	for (i = 0; i < steps; i++)
		__asm__ volatile("");
}

/* The minimum time of a step, without other activity. */
static double step_ns(void)
{
	const unsigned int steps = 10000;
	double least = 0;
	unsigned int i;

	for (i = 0; i < 1000; i++) {
		double before = now_ns(), figure;

		loop(steps);
		figure = (now_ns() - before) / steps;
		if (!i || figure < least)
			least = figure;
	}
	return least;
}

/* Instructions a second outside the loop. */
static double turn(double step)
{
	double before = now_ns(), took;

	loop(STEPS);
	took = now_ns() - before;
	return (took - STEPS * step) / INSTRUCTION_NS / (took / 1e9);
}

static void create(int node, int *files, unsigned int pairs)
{
	unsigned int i;

	for (i = 0; i < pairs; i++) {
		struct nvme_peer_qp_create request = {
			.size = sizeof(request),
			.mode = mode,
			.sq_entries = ENTRIES,
			.cq_entries = ENTRIES,
		};

		if (ioctl(node, NVME_PEER_QP_CREATE, &request))
			die("NVME_PEER_QP_CREATE");
		files[i] = request.qp_fd;
	}
}

static int compare(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return (x > y) - (x < y);
}

/* Alternate turns with and without, as other activity of the guest changes slowly. */
static void measure(int node, unsigned int pairs, double step)
{
	double without[TURNS], more[TURNS];
	int files[MOST_PAIRS];
	unsigned int i, j;

	for (i = 0; i < TURNS; i++) {
		without[i] = turn(step);
		create(node, files, pairs);
		more[i] = turn(step) - without[i];
		for (j = 0; j < pairs; j++)
			close(files[j]);
	}
	qsort(without, TURNS, sizeof(*without), compare);
	qsort(more, TURNS, sizeof(*more), compare);
	printf("%u %.0f %.0f\n", pairs, more[TURNS / 2],
	       without[TURNS * 3 / 4] - without[TURNS / 4]);
	fflush(stdout);
}

/* They end with this process. */
static void hold(int node, unsigned int pairs)
{
	int files[MOST_PAIRS];

	create(node, files, pairs);
	puts("held");
	fflush(stdout);
	while (getchar() != EOF)
		;
}

/* The number in @word. */
static unsigned int pairs_of(const char *word)
{
	unsigned long pairs = strtoul(word, NULL, 10);

	return pairs < MOST_PAIRS ? (unsigned int)pairs : MOST_PAIRS;
}

int main(int argc, char **argv)
{
	double step;
	int node, i = 2;

	if (argc < 3) {
		fprintf(stderr, "usage: watch_cost CONTROLLER-NODE [--hold | --relay] PAIRS...\n");
		return 2;
	}
	node = open(argv[1], O_RDWR | O_CLOEXEC);
	if (node < 0)
		die(argv[1]);
	if (!strcmp(argv[2], "--hold")) {
		hold(node, pairs_of(argc > 3 ? argv[3] : "1"));
		return 0;
	}
	if (!strcmp(argv[2], "--relay")) {
		mode = NVME_PEER_MODE_RELAY;
		i++;
	}
	step = step_ns();
	for (; i < argc; i++)
		measure(node, pairs_of(argv[i]), step);
	return 0;
}
