// SPDX-License-Identifier: GPL-2.0-only
/*
 * Cost of finding the blocks of a file, by its number of extents, in a guest with one processor whose clock
 * counts instructions (selftests/run --icount).
 *
 * usage: window_cost --make | window_cost | window_cost --time FILE...
 *
 * In the current directory, of ext4 or XFS on np1: --make makes the files; then, after another mount, a row
 * of each:
 *
 *  file		what its extents are
 *  extents		their number
 *  first		instructions an extent of the first NVME_PEER_EXTENTS
 *  extents		of NVME_PEER_EXTENTS, median
 *  window		of NVME_PEER_WINDOW_ADD, median
 *  compare		of a read() of the extents after a change of the inode, median
 *  most		limit of the last three: fails if a figure is larger
 *
 * These are instructions of the calling thread: without those of the thread of the journal.
 *
 * --time prints for each file on np0 its extents and the milliseconds of open(), of the first and second
 * NVME_PEER_WINDOW_ADD, and of NVME_PEER_EXTENTS.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <time.h>
#include <unistd.h>

#include "nptest.h"
#include "tenant.h"

#define ENTRIES		16U
#define TURNS		9U
#define INSTRUCTION_NS	2.0
#define BLOCK		NP_PAGE
#define XFS_MAGIC	0x58465342

/* Of XFS, whose header is not installed. */
struct exchange_range {
	int32_t file1_fd;
	uint32_t pad;
	uint64_t file1_offset;
	uint64_t file2_offset;
	uint64_t length;
	uint64_t flags;
};

#define XFS_IOC_EXCHANGE_RANGE	_IOW('X', 129, struct exchange_range)

/**
 * struct shape - the extents of a file: groups of a large one and small ones
 * @name: of the file
 * @groups: number of groups
 * @large: blocks of the first extent of a group
 * @small: number of the others, of one block each: 0, or odd
 * @most: instructions an extent, on ext4 and XFS
 */
struct shape {
	const char *name;
	uint32_t groups;
	uint32_t large;
	uint32_t small;
	double most[2];
};

static const struct shape shapes[] = {
	{ "one", 1, 1, 0, { 21000, 33000 } },
	{ "one-large", 1, 8192, 0, { 55000, 75000 } },
	{ "100", 1, 1, 99, { 3100, 4100 } },
	{ "1000", 1, 1, 999, { 3050, 4100 } },
	{ "10000", 1, 1, 9999, { 3150, 4300 } },
	{ "large-1000", 1, 8192, 1001, { 5900, 8700 } },
	{ "alternating", 500, 31, 1, { 17700, 24500 } },
};

#define SHAPES	(sizeof(shapes) / sizeof(*shapes))

static bool failed;

static void die(const char *what, int result)
{
	fprintf(stderr, "window_cost: %s: %d\n", what, result);
	exit(1);
}

static bool is_xfs(void)
{
	struct statfs info;

	return !statfs(".", &info) && info.f_type == XFS_MAGIC;
}

/* --- files ---------------------------------------------------------------- */

static uint32_t blocks_of(const struct shape *shape)
{
	return shape->groups * (shape->large + shape->small);
}

static uint32_t extents_of(const struct shape *shape)
{
	return shape->groups * (1 + shape->small);
}

/* Written, and contiguous on a file system with room. */
static int make_contiguous(const char *path, uint32_t blocks)
{
	int file = open(path, O_RDWR | O_CREAT | O_TRUNC, 0600);
	static uint8_t bytes[BLOCK];
	uint32_t i;

	if (file < 0 || fallocate(file, 0, 0, (off_t)blocks * BLOCK))
		die(path, -errno);
	for (i = 0; i < blocks; i++)
		if (write(file, bytes, BLOCK) != BLOCK)
			die(path, -errno);
	if (fsync(file))
		die(path, -errno);
	return file;
}

/* Of the same block of two files. */
static int exchange_block(int file, int donor, uint32_t block)
{
	struct exchange_range range = {
		.file1_fd = donor,
		.file1_offset = (uint64_t)block * BLOCK,
		.file2_offset = (uint64_t)block * BLOCK,
		.length = BLOCK,
	};
	struct move_extent move = {
		.donor_fd = (uint32_t)donor,
		.orig_start = block,
		.donor_start = block,
		.len = 1,
	};

	if (is_xfs())
		return ioctl(file, XFS_IOC_EXCHANGE_RANGE, &range) ? -errno : 0;
	return ioctl(file, EXT4_IOC_MOVE_EXT, &move) ? -errno : 0;
}

/*
 * Every other one of the small extents comes from another file.  The rest stay where they would be if all
 * were contiguous, so that bmap() of the last block of a range does not show that it has many extents.
 */
static void exchange_group(const struct shape *shape, int file, int donor, uint32_t group)
{
	uint32_t first = group * (shape->large + shape->small) + shape->large, i;
	int ret;

	for (i = 0; i < shape->small; i += 2) {
		ret = exchange_block(file, donor, first + i);
		if (ret)
			die("exchange of blocks", ret);
	}
}

static void make_file(const struct shape *shape)
{
	int file = make_contiguous(shape->name, blocks_of(shape)), donor;
	char name[32];
	uint32_t i;

	if (shape->small) {
		/* It keeps its blocks: others would get single ones. */
		snprintf(name, sizeof(name), "%s.donor", shape->name);
		donor = make_contiguous(name, blocks_of(shape));
		for (i = 0; i < shape->groups; i++)
			exchange_group(shape, file, donor, i);
		if (fsync(donor) || fsync(file))
			die("fsync", -errno);
		close(donor);
	}
	close(file);
}

/* --- costs ---------------------------------------------------------------- */

/**
 * struct costs - instructions of a file
 * @first: of the first NVME_PEER_EXTENTS
 * @extents: of each other one
 * @windows: of each NVME_PEER_WINDOW_ADD
 * @compares: of each comparison
 */
struct costs {
	double first;
	double extents[TURNS];
	double windows[TURNS];
	double compares[TURNS];
};

static double instructions(void)
{
	struct timespec now;

	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
	return ((double)now.tv_sec * 1e9 + (double)now.tv_nsec) / INSTRUCTION_NS;
}

static double milliseconds(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (double)now.tv_sec * 1e3 + (double)now.tv_nsec / 1e6;
}

static double measure_extents(double (*clock)(void), const struct np_ctrl *ctrl, int file,
			      struct nvme_peer_extents *extents)
{
	double began = clock();
	int ret;

	*extents = (struct nvme_peer_extents){ .size = sizeof(*extents), .fd = file };
	ret = np_ioctl(ctrl->fd, NVME_PEER_EXTENTS, extents);
	if (ret)
		die("NVME_PEER_EXTENTS", ret);
	return clock() - began;
}

static double measure_compare(int file, const struct nvme_peer_extents *extents)
{
	struct nvme_peer_extent extent;
	double began;

	/* Changes the version of the inode. */
	if (futimens(file, NULL))
		die("futimens", -errno);
	began = instructions();
	if (pread(extents->pin_fd, &extent, sizeof(extent), 0) != sizeof(extent))
		die("read", -errno);
	return instructions() - began;
}

static double measure_window(double (*clock)(void), const struct np_qp *qp, int file)
{
	double began = clock(), took;
	uint32_t window;
	int ret = np_window_add(qp, file, 0, 0, &window);

	took = clock() - began;
	if (!ret)
		ret = np_window_remove(qp, window);
	if (ret)
		die("NVME_PEER_WINDOW_ADD", ret);
	return took;
}

static int compare(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return (x > y) - (x < y);
}

static double median(double *values)
{
	qsort(values, TURNS, sizeof(*values), compare);
	return values[TURNS / 2];
}

static void measure(const struct np_ctrl *ctrl, const struct np_qp *qp, const struct shape *shape,
		    struct costs *costs)
{
	int file = open(shape->name, O_RDWR);
	struct nvme_peer_extents extents;
	uint32_t i;

	if (file < 0)
		die(shape->name, -errno);
	costs->first = measure_extents(instructions, ctrl, file, &extents);
	if (extents.count != extents_of(shape))
		die("extents", (int)extents.count);
	close(extents.pin_fd);
	for (i = 0; i < TURNS; i++) {
		costs->extents[i] = measure_extents(instructions, ctrl, file, &extents);
		costs->compares[i] = measure_compare(file, &extents);
		close(extents.pin_fd);
		costs->windows[i] = measure_window(instructions, qp, file);
	}
	close(file);
}

static void report(const struct shape *shape, struct costs *costs)
{
	const double count = extents_of(shape), most = shape->most[is_xfs()];
	const double extents = median(costs->extents) / count;
	const double window = median(costs->windows) / count;
	const double compares = median(costs->compares) / count;

	printf("%-12s %7.0f %8.0f %8.0f %8.0f %8.0f %8.0f\n", shape->name, count, costs->first / count,
	       extents, window, compares, most);
	failed |= extents > most || window > most || compares > most;
}

static void open_controller(const char *name, struct np_ctrl *ctrl, struct np_qp *qp)
{
	int ret;

	np_qp_set_mode(NVME_PEER_MODE_MEDIATED);
	ret = np_ctrl_open(ctrl, name) ?: np_qp_open(qp, ctrl->fd, ENTRIES);
	if (ret)
		die(name, ret);
}

static void measure_all(void)
{
	struct np_ctrl ctrl;
	struct costs costs;
	struct np_qp qp;
	uint32_t i;

	open_controller("np1", &ctrl, &qp);
	printf("%-12s %7s %8s %8s %8s %8s %8s\n", "file", "extents", "first", "extents", "window", "compare",
	       "most");
	for (i = 0; i < SHAPES; i++) {
		measure(&ctrl, &qp, &shapes[i], &costs);
		report(&shapes[i], &costs);
	}
	np_qp_close(&qp);
	np_ctrl_close(&ctrl);
}

static void time_file(const struct np_ctrl *ctrl, const struct np_qp *qp, const char *path)
{
	double began = milliseconds(), opened, first, second, pinned;
	int file = open(path, O_RDWR);
	struct nvme_peer_extents extents;

	opened = milliseconds() - began;
	if (file < 0)
		die(path, -errno);
	first = measure_window(milliseconds, qp, file);
	second = measure_window(milliseconds, qp, file);
	pinned = measure_extents(milliseconds, ctrl, file, &extents);
	printf("%-24s %8u %8.2f %8.2f %8.2f %8.2f\n", path, extents.count, opened, first, second, pinned);
	close(extents.pin_fd);
	close(file);
}

static void time_files(char **paths)
{
	struct np_ctrl ctrl;
	struct np_qp qp;

	open_controller("np0", &ctrl, &qp);
	printf("%-24s %8s %8s %8s %8s %8s\n", "file", "extents", "open", "first", "second", "extents");
	for (; *paths; paths++)
		time_file(&ctrl, &qp, *paths);
	np_qp_close(&qp);
	np_ctrl_close(&ctrl);
}

int main(int argc, char **argv)
{
	uint32_t i;

	if (argc < 2)
		measure_all();
	else if (!strcmp(argv[1], "--time"))
		time_files(argv + 2);
	else if (!strcmp(argv[1], "--make"))
		for (i = 0; i < SHAPES; i++)
			make_file(&shapes[i]);
	else
		return 1;
	return failed;
}
