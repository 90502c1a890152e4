// SPDX-License-Identifier: MIT OR GPL-2.0
/* nvme-peer file: can a mediated queue pair have a window on a file; prepare a file for one. */
#include <errno.h>
#include <fcntl.h>
#include <nvmepeer.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "file_prepare.h"
#include "nvme-peer.h"

/* What file prepare removes, and what does not prevent it. */
#define CURED (NVMEPEER_FILE_EMPTY | NVMEPEER_FILE_HOLES | NVMEPEER_FILE_UNWRITTEN | NVMEPEER_FILE_INLINE)
#define HARMLESS (NVMEPEER_FILE_OTHER_DISK | NVMEPEER_FILE_SHARED)

static int failed(const char *path, int error, const char *help)
{
	fprintf(stderr, "nvme-peer: %s: %s\n", path, strerror(error));
	if (help)
		fprintf(stderr, "  help:  %s\n", help);
	return EXIT_REFUSED;
}

/* Opening a device may have effects: O_PATH has none. */
static int open_to_check(const char *path)
{
	struct stat file;
	int fd;

	if (stat(path, &file))
		return -1;
	if (!S_ISREG(file.st_mode))
		return open(path, O_PATH | O_CLOEXEC);
	fd = open(path, O_RDWR | O_CLOEXEC);
	return fd < 0 ? open(path, O_RDONLY | O_CLOEXEC) : fd;
}

/* A line for each obstacle: what it is, and the fix. */
static void report_obstacles(struct report *report, const struct nvmepeer_file_info *info)
{
	struct nvmepeer_explanation why;
	char line[sizeof(why.limit) + sizeof(why.help) + 2];

	if (!info->obstacles)
		return;
	report_object(report, "obstacles");
	for (uint32_t bit = 1; bit; bit <<= 1) {
		if (!(info->obstacles & bit) || nvmepeer_file_explain(info, bit, &why, sizeof(why)))
			continue;
		snprintf(line, sizeof(line), "%s; %s", why.limit, why.help);
		report_text(report, nvmepeer_file_obstacle_name(bit), line);
	}
	report_object_end(report);
}

static int report_file(struct report *report, const char *path, const struct nvmepeer_file_info *info)
{
	report_text(report, "path", path);
	report_bool(report, "window", !info->obstacles);
	report_text(report, "file_system", info->file_system);
	report_text(report, "disk", info->disk[0] ? info->disk : "none");
	report_text(report, "controller", info->controller[0] ? info->controller : "none");
	report_bytes(report, "size", info->bytes);
	report_number(report, "extents", info->extents, NULL);
	report_obstacles(report, info);
	return info->obstacles ? EXIT_REFUSED : 0;
}

static int check(struct report *report, const char *path)
{
	struct nvmepeer_file_info info;
	int fd = open_to_check(path), status = EXIT_REFUSED;

	if (fd < 0)
		return failed(path, errno, NULL);
	report_object(report, NULL);
	if (nvmepeer_file_check(fd, &info, sizeof(info)))
		report_failure(report);
	else
		status = report_file(report, path, &info);
	report_object_end(report);
	close(fd);
	return status;
}

/* 0x1000, 64K, 16M, 100G: powers of 1024. */
static bool parse_size(const char *text, uint64_t *size)
{
	static const char suffixes[] = "KMGT";
	size_t length = strlen(text);
	const char *suffix = length ? strchr(suffixes, text[length - 1]) : NULL;
	unsigned int shift = suffix ? 10 * (unsigned int)(suffix - suffixes + 1) : 0;
	char digits[32];

	snprintf(digits, sizeof(digits), "%.*s", (int)(length - !!suffix), text);
	if (length >= sizeof(digits) || !parse_number(digits, INT64_MAX >> shift, size) || !*size)
		return false;
	*size <<= shift;
	return true;
}

static int prepare_open(struct report *report, const char *path, int fd, uint64_t size)
{
	struct nvmepeer_file_info info;
	uint64_t zeroed = 0;
	int result, status;

	if (nvmepeer_file_check(fd, &info, sizeof(info))) {
		report_failure(report);
		return EXIT_REFUSED;
	}
	if (info.obstacles & ~(uint32_t)(CURED | HARMLESS))
		return report_file(report, path, &info);
	result = file_prepare(fd, size, &zeroed);
	if (result == -EAGAIN)
		return failed(path, -result, "another process has the file open, and could write to it: end that");
	if (result < 0)
		return failed(path, -result, NULL);
	if (nvmepeer_file_check(fd, &info, sizeof(info))) {
		report_failure(report);
		return EXIT_REFUSED;
	}
	status = report_file(report, path, &info);
	report_bytes(report, "zeroed", zeroed);
	return result ? 128 + result : status;
}

/* A file that this created is removed if it has none of its blocks. */
static int prepare(struct report *report, const char *path, uint64_t size)
{
	int fd = open(path, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0666), status;
	bool created = fd >= 0;
	struct stat file;

	if (!created)
		fd = open(path, O_RDWR | O_NONBLOCK | O_CLOEXEC);
	if (fd < 0)
		return failed(path, errno, NULL);
	status = prepare_open(report, path, fd, size);
	if (created && !fstat(fd, &file) && !file.st_size)
		unlink(path);
	close(fd);
	return status;
}

int command_file(struct report *report, const struct options *options, int argc, char **argv)
{
	const char *what = argc ? argv[0] : "";
	uint64_t size;
	int status = 0;

	(void)options;
	if (!strcmp(what, "prepare")) {
		if (argc != 3)
			return usage_error("file prepare takes a path and a size", NULL);
		if (!parse_size(argv[2], &size))
			return usage_error("no size, such as 4096, 64K, 16M, 2G", argv[2]);
		return prepare(report, argv[1], size);
	}
	if (strcmp(what, "check") != 0)
		return usage_error("file takes check or prepare", argc ? what : NULL);
	if (argc < 2)
		return usage_error("file check takes the paths of files", NULL);
	report_list(report, "files");
	for (int i = 1; i < argc; i++)
		if (check(report, argv[i]))
			status = EXIT_REFUSED;
	report_list_end(report);
	return status;
}
