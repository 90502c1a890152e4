// SPDX-License-Identifier: GPL-2.0-only
/*
 * In a guest of the debug kernel: save the line and condition coverage of nvme_peer.ko since the
 * last call, and reset it.
 *
 * usage: collect DIRECTORY [lines]
 *
 * The results go to DIRECTORY/1, /2 and so on, the first that does not exist; with "lines" to
 * DIRECTORY/1-lines. When a module is removed, the kernel adds its counts to those of the next
 * module of that name. This is right for lines, but not for the bits of conditions: after several
 * loads of the module only line counts are valid.
 *
 * A program and not a script, which would start two processes for each file and take half a
 * minute in an emulated guest.
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

/* The file reports no size before it is read. */
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

/*
 * The kernel names files by the paths of the objects at build time. Directories may have files of
 * the same name: kmod/core/ctrl.gcda becomes core-ctrl.gcda.
 */
static int save(const char *path, const struct stat *status, int type, struct FTW *at)
{
	const char *name = strstr(path, "/kmod/"), *end = strrchr(path, '.');
	char to[512], *slash;
	int begin;

	(void)status;
	(void)at;
	if (type != FTW_F || !name || !end || strcmp(end, ".gcda"))
		return 0;
	begin = strlen(run) + 1;
	snprintf(to, sizeof(to), "%s/%s", run, name + strlen("/kmod/"));
	while ((slash = strchr(to + begin, '/')))
		*slash = '-';
	return copy(path, to);
}

/* Create the first directory that does not exist. */
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
