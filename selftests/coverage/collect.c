// SPDX-License-Identifier: GPL-2.0-only
/*
 * In a guest of the debug kernel: save which lines and conditions of nvme_peer.ko ran
 * since the last time, and begin anew.
 *
 * usage: collect DIRECTORY [lines]
 *
 * Into DIRECTORY/1, /2 and so on, the next that there is not; with "lines" into
 * DIRECTORY/1-lines.  When a module goes, the kernel adds what it counted to what it
 * counts of the next one of that name.  That is right for lines, but the bits that say
 * which sides a condition took do not add up: after more than one module only the
 * lines are good.
 *
 * A program and not a script, which would start two others for each file: half a
 * minute in a guest that is emulated.
 */
#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define GCOV		"/sys/kernel/debug/gcov"
#define MAX_RUNS	1000

static char run[256];

/* The file has no size until it is read. */
static int copy(const char *from, const char *to)
{
	static char bytes[1 << 16];
	int in = open(from, O_RDONLY), out = open(to, O_WRONLY | O_CREAT | O_EXCL, 0644);
	ssize_t length;

	if (in < 0 || out < 0)
		return -1;
	while ((length = read(in, bytes, sizeof(bytes))) > 0)
		if (write(out, bytes, length) != length)
			return -1;
	close(in);
	return close(out) || length;
}

/* The kernel names them by where the objects lay when they were built. */
static int save(const char *path, const struct stat *status, int type, struct FTW *at)
{
	const char *name = path + at->base, *end = strrchr(name, '.');
	char to[512];

	(void)status;
	if (type != FTW_F || !strstr(path, "/kmod/") || !end || strcmp(end, ".gcda"))
		return 0;
	snprintf(to, sizeof(to), "%s/%s", run, name);
	return copy(path, to);
}

/* The next that there is not. */
static int make_run(const char *directory, const char *kind)
{
	int number;

	if (mkdir(directory, 0755) && errno != EEXIST)
		return -1;
	for (number = 1; number < MAX_RUNS; number++) {
		snprintf(run, sizeof(run), "%s/%d%s", directory, number, kind);
		if (!mkdir(run, 0755))
			return 0;
		if (errno != EEXIST)
			return -1;
	}
	return -1;
}

static int begin_anew(void)
{
	int file = open(GCOV "/reset", O_WRONLY);

	if (file < 0 || write(file, "1", 1) != 1)
		return -1;
	return close(file);
}

int main(int argc, char **argv)
{
	const char *kind = argc == 3 && !strcmp(argv[2], "lines") ? "-lines" : "";

	if (argc < 2 || argc > 3 || (argc == 3 && !*kind)) {
		fprintf(stderr, "usage: %s DIRECTORY [lines]\n", argv[0]);
		return 2;
	}
	if (make_run(argv[1], kind) || nftw(GCOV, save, 16, FTW_PHYS) || begin_anew()) {
		perror(argv[1]);
		return 1;
	}
	return 0;
}
