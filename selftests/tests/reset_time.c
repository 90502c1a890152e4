// SPDX-License-Identifier: GPL-2.0-only
/*
 * The duration of a reset with peer queue pairs on the controller, compared with the
 * in-tree driver's reset of the same controller in the same guest. Prints the figures.
 * The bounds are wide, because other guests run on the same machine.
 *
 * kernels: 7
 * long-kernels: 6.1 6.12 7
 * iommu: on
 * timeout: 120
 */
#include <errno.h>
#include <fcntl.h>
#include <glob.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "nptest.h"
#include "kselftest_harness.h"

#define IN_TREE		"/sys/bus/pci/drivers/nvme"
#define ENTRIES		64U
#define MOST_PAIRS	32U
/* The drivers take turns, so that load on the machine affects both. */
#define TURNS		5
#define RESETS		3
#define SAMPLES		(TURNS * RESETS)
/* Let the previous reset's asynchronous work end. */
#define SETTLE_MS	30
/* Limit of a reset with all its work, in multiples of the in-tree driver's time. */
#define MOST_TIMES	3.0
/* Limit of the time per queue pair among many, in multiples of the time among few. */
#define MOST_GROWTH	5.0

static const uint32_t loads[] = { 0, 1, 8, MOST_PAIRS };
#define LOADS	(sizeof(loads) / sizeof(loads[0]))
#define FEW	2
#define MANY	3

/**
 * struct samples - microseconds, one sample for each reset
 * @reset: the duration of the write to reset_controller
 * @first: from then until the first queue pair is live again
 * @each: from one queue pair's return to live to the next one's
 * @all: from the write until all are live
 * @count: of each
 */
struct samples {
	double reset[SAMPLES];
	double first[SAMPLES];
	double each[SAMPLES];
	double all[SAMPLES];
	uint32_t count;
};

static double now_us(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (double)now.tv_sec * 1e6 + (double)now.tv_nsec / 1e3;
}

static int compare(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return (x > y) - (x < y);
}

static double median(double *us, uint32_t count)
{
	qsort(us, count, sizeof(*us), compare);
	return us[count / 2];
}

/* The only file that matches @pattern, within the timeout: 0 or -ETIMEDOUT. */
static int find(const char *pattern, char path[256])
{
	int64_t end = np_now_ms() + NP_TIMEOUT_MS;
	glob_t files;
	int ret;

	do {
		ret = glob(pattern, 0, NULL, &files);
		if (!ret)
			snprintf(path, 256, "%s", files.gl_pathv[0]);
		globfree(&files);
		if (!ret)
			return 0;
		np_sleep_ms(10);
	} while (np_now_ms() < end);
	return -ETIMEDOUT;
}

/* The reset_controller attribute, which both drivers have. */
static int find_reset(const char *address, const char *class, char path[256])
{
	char pattern[256];

	snprintf(pattern, sizeof(pattern), "/sys/bus/pci/devices/%s/%s/*/reset_controller",
		 address, class);
	return find(pattern, path);
}

static int timed_reset(const char *path, double *us)
{
	double start = now_us();
	int ret = np_write_file(path, "1");

	*us = now_us() - start;
	return ret;
}

/* --- in-tree driver ------------------------------------------------------------ */

/*
 * Wait for the partition scan, which holds the disk's open_mutex: a reset during the scan
 * has been seen to hang the driver of Linux 6.1.
 */
static int in_tree_settle(const char *address)
{
	int64_t end = np_now_ms() + NP_TIMEOUT_MS;
	char disk[256], node[64];
	int fd, ret;

	snprintf(disk, sizeof(disk), "/sys/bus/pci/devices/%s/nvme/nvme*/nvme*n1", address);
	ret = find(disk, disk);
	if (ret)
		return ret;
	snprintf(node, sizeof(node), "/dev/%s", strrchr(disk, '/') + 1);
	do {
		np_sleep_ms(10);
		fd = open(node, O_RDONLY | O_CLOEXEC);
	} while (fd < 0 && np_now_ms() < end);
	if (fd < 0)
		return -errno;
	close(fd);
	return 0;
}

/* Bind this function only: drivers_probe would bind all functions without a driver. */
static int in_tree_bind(const char *address)
{
	char state[256], text[16] = "";
	int64_t end = np_now_ms() + NP_TIMEOUT_MS;
	int ret;

	ret = np_pci_write(address, "driver_override", "nvme") ?:
	      np_write_file(IN_TREE "/bind", address);
	if (ret)
		return ret;
	snprintf(state, sizeof(state), "/sys/bus/pci/devices/%s/nvme/nvme*/state", address);
	ret = find(state, state);
	while (!ret && strcmp(text, "live\n") && np_now_ms() < end) {
		np_sleep_ms(10);
		ret = np_read_file(state, text, sizeof(text));
	}
	return ret ?: in_tree_settle(address);
}

static int in_tree_turn(const char *address, struct samples *samples)
{
	char reset[256];
	uint32_t i;
	int ret = in_tree_bind(address) ?: find_reset(address, "nvme", reset);

	for (i = 0; i < RESETS && !ret; i++) {
		np_sleep_ms(SETTLE_MS);
		ret = timed_reset(reset, &samples->reset[samples->count++]);
	}
	return ret ?: np_unbind(address);
}

/* --- nvme-peer ----------------------------------------------------------------- */

static int rearm(struct np_qp *qp, uint32_t losses)
{
	double end = now_us() + 1e3 * NP_TIMEOUT_MS;
	int ret;

	do {
		ret = np_qp_rearm_loss(qp, losses);
	} while (ret == -EAGAIN && now_us() < end);
	return ret;
}

static int one_reset(const char *path, struct np_qp *qps, uint32_t count, uint32_t losses,
		     struct samples *samples)
{
	uint32_t n = samples->count++, i;
	double us[MOST_PAIRS], start, then, now;
	int ret;

	np_sleep_ms(SETTLE_MS);
	start = now_us();
	ret = timed_reset(path, &samples->reset[n]);
	now = now_us();
	for (i = 0; i < count && !ret; i++) {
		then = now;
		ret = rearm(&qps[i], losses);
		now = now_us();
		us[i] = now - then;
	}
	samples->first[n] = count ? us[0] : 0;
	samples->each[n] = count > 1 ? median(us + 1, count - 1) : 0;
	samples->all[n] = now - start;
	return ret;
}

static int with_pairs(const struct np_ctrl *ctrl, const char *path, uint32_t count,
		      struct samples *samples)
{
	struct np_command flush = { .opcode = NVMEPEER_OP_FLUSH, .nsid = 1 };
	static struct np_qp qps[MOST_PAIRS];
	uint32_t open, i;
	int ret = 0;

	for (open = 0; open < count && !ret; open++)
		ret = np_qp_open(&qps[open], ctrl->fd, ENTRIES);
	for (i = 0; i < RESETS && !ret; i++)
		ret = one_reset(path, qps, count, i + 1, samples);
	for (i = 0; i < count && !ret; i++)
		ret = np_qp_run(&qps[i], &flush, NP_TIMEOUT_MS);
	for (i = 0; i < open; i++)
		np_qp_close(&qps[i]);
	return ret;
}

static int our_turn(const char *address, struct samples samples[LOADS])
{
	struct np_ctrl ctrl;
	char reset[256];
	uint32_t i;
	int ret = np_bind(address) ?: np_ctrl_open(&ctrl, "np0");

	if (ret)
		return ret;
	ret = find_reset(address, "*", reset);
	for (i = 0; i < LOADS && !ret; i++)
		ret = with_pairs(&ctrl, reset, loads[i], &samples[i]);
	np_ctrl_close(&ctrl);
	return ret ?: np_unbind(address);
}

/* --- both --------------------------------------------------------------------- */

FIXTURE(reset_time)
{
	char address[16];
	bool loaded;	/* the in-tree driver already was, and may have other controllers */
	struct samples in_tree;
	struct samples ours[LOADS];
};

/* Bind by name only: the in-tree driver would bind every unbound function. */
FIXTURE_SETUP(reset_time)
{
	struct np_ctrl ctrl;

	ASSERT_EQ(0, np_ctrl_open(&ctrl, "np0"));
	strcpy(self->address, ctrl.address);
	np_ctrl_close(&ctrl);
	ASSERT_EQ(0, np_write_file("/sys/bus/pci/drivers_autoprobe", "0"));
	self->loaded = !access(IN_TREE, F_OK);
	ASSERT_EQ(0, self->loaded ? 0 : system("modprobe nvme"));
	ASSERT_EQ(0, np_unbind(self->address));
}

FIXTURE_TEARDOWN(reset_time)
{
	np_unbind(self->address);
	if (!self->loaded)
		EXPECT_EQ(0, system("modprobe -r nvme"));
	EXPECT_EQ(0, np_write_file("/sys/bus/pci/drivers_autoprobe", "1"));
	EXPECT_EQ(0, np_bind(self->address));
}

/* Sorts each series, so that its median is in the middle. */
static void sort(struct samples *samples)
{
	median(samples->reset, samples->count);
	median(samples->first, samples->count);
	median(samples->each, samples->count);
	median(samples->all, samples->count);
}

static void print(const struct samples *samples, uint32_t pairs, double in_tree)
{
	uint32_t middle = samples->count / 2;
	double reset = samples->reset[middle], all = samples->all[middle];

	printf("# nvme-peer, %2u queue pairs: %6.0f us, %.2f times", pairs, reset,
	       reset / in_tree);
	if (pairs)
		printf("; all live after %6.0f us, %.2f times: the first %5.0f us, each other %3.0f us",
		       all, all / in_tree, samples->first[middle], samples->each[middle]);
	printf("\n");
}

TEST_F_TIMEOUT(reset_time, comparable_to_in_tree_driver, 110)
{
	double in_tree;
	uint32_t i;

	for (i = 0; i < TURNS; i++) {
		ASSERT_EQ(0, in_tree_turn(self->address, &self->in_tree));
		ASSERT_EQ(0, our_turn(self->address, self->ours));
	}
	in_tree = median(self->in_tree.reset, SAMPLES);
	printf("# in-tree driver:            %6.0f us\n", in_tree);
	for (i = 0; i < LOADS; i++) {
		ASSERT_EQ(SAMPLES, self->ours[i].count);
		sort(&self->ours[i]);
		print(&self->ours[i], loads[i], in_tree);
		EXPECT_GT(MOST_TIMES * in_tree, self->ours[i].all[SAMPLES / 2]);
	}
	EXPECT_GT(MOST_GROWTH * self->ours[FEW].each[SAMPLES / 2],
		  self->ours[MANY].each[SAMPLES / 2]);
}

TEST_HARNESS_MAIN
