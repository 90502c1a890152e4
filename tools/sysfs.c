// SPDX-License-Identifier: MIT OR GPL-2.0
/*
 * Files of the kernel and the system below a configurable root; see sysfs.h.
 */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "sysfs.h"

static const char *root(void)
{
	const char *directory = getenv("NVME_PEER_SYSROOT");

	return directory ? directory : "";
}

/* A path that does not fit becomes empty, so that open() fails. */
static void make_path(char path[SYSFS_PATH], const char *format, va_list arguments)
{
	int length = snprintf(path, SYSFS_PATH, "%s", root());

	if (length >= SYSFS_PATH ||
	    vsnprintf(path + length, (size_t)(SYSFS_PATH - length), format, arguments) >=
	    SYSFS_PATH - length)
		path[0] = 0;
}

/* Format the path of the calling function into @path, a char[SYSFS_PATH]. */
#define MAKE_PATH(path, format)						\
	do {								\
		va_list arguments;					\
									\
		va_start(arguments, format);				\
		make_path(path, format, arguments);			\
		va_end(arguments);					\
	} while (0)

void sysfs_path(char path[SYSFS_PATH], const char *format, ...)
{
	MAKE_PATH(path, format);
}

bool sysfs_real(char real[SYSFS_PATH], const char *format, ...)
{
	char path[SYSFS_PATH], *found, *top;

	real[0] = 0;
	MAKE_PATH(path, format);
	found = realpath(path, NULL);
	top = root()[0] ? realpath(root(), NULL) : NULL;
	if (found && (!top || !strncmp(found, top, strlen(top))))
		snprintf(real, SYSFS_PATH, "%s", found + (top ? strlen(top) : 0));
	free(top);
	free(found);
	return real[0];
}

bool sysfs_exists(const char *format, ...)
{
	char path[SYSFS_PATH];

	MAKE_PATH(path, format);
	return !access(path, F_OK);
}

FILE *sysfs_open(const char *format, ...)
{
	char path[SYSFS_PATH];

	MAKE_PATH(path, format);
	return fopen(path, "re");
}

static size_t read_bytes(void *bytes, size_t size, const char *path)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	ssize_t length;

	if (fd < 0)
		return 0;
	length = read(fd, bytes, size);
	close(fd);
	return length < 0 ? 0 : (size_t)length;
}

size_t sysfs_bytes(void *bytes, size_t size, const char *format, ...)
{
	char path[SYSFS_PATH];

	MAKE_PATH(path, format);
	return read_bytes(bytes, size, path);
}

static bool read_line(char text[SYSFS_TEXT], const char *path)
{
	size_t length = read_bytes(text, SYSFS_TEXT - 1, path);

	text[length] = 0;
	length = strcspn(text, "\n");
	while (length && text[length - 1] == ' ')
		length--;
	text[length] = 0;
	return length;
}

bool sysfs_read(char text[SYSFS_TEXT], const char *format, ...)
{
	char path[SYSFS_PATH];

	MAKE_PATH(path, format);
	return read_line(text, path);
}

uint64_t sysfs_number(uint64_t otherwise, const char *format, ...)
{
	char path[SYSFS_PATH], text[SYSFS_TEXT], *end;
	uint64_t value;

	MAKE_PATH(path, format);
	if (!read_line(text, path))
		return otherwise;
	value = strtoull(text, &end, 0);
	return end == text ? otherwise : value;
}

bool sysfs_link(char name[SYSFS_TEXT], const char *format, ...)
{
	char path[SYSFS_PATH], target[SYSFS_PATH];
	const char *last;
	ssize_t length;

	name[0] = 0;
	MAKE_PATH(path, format);
	length = readlink(path, target, sizeof(target) - 1);
	if (length < 0)
		return false;
	target[length] = 0;
	last = strrchr(target, '/');
	last = last ? last + 1 : target;
	snprintf(name, SYSFS_TEXT, "%.*s", SYSFS_TEXT - 1, last);
	return name[0];
}

static int is_name(const struct dirent *entry)
{
	return entry->d_name[0] != '.';
}

int sysfs_list(struct dirent ***names, const char *format, ...)
{
	char path[SYSFS_PATH];
	int count;

	MAKE_PATH(path, format);
	count = scandir(path, names, is_name, versionsort);
	if (count >= 0)
		return count;
	*names = NULL;
	return 0;
}

void sysfs_list_free(struct dirent **names, int count)
{
	while (count)
		free(names[--count]);
	free(names);
}

bool sysfs_busy(const char *format, ...)
{
	char path[SYSFS_PATH];
	int fd;

	MAKE_PATH(path, format);
	fd = open(path, O_RDONLY | O_EXCL | O_CLOEXEC | O_NONBLOCK);
	if (fd < 0)
		return errno == EBUSY;
	close(fd);
	return false;
}

int sysfs_write(const char *text, const char *format, ...)
{
	char path[SYSFS_PATH];
	size_t length = strlen(text);
	int fd, result = 0;

	MAKE_PATH(path, format);
	fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
	if (fd < 0)
		return -errno;
	if (write(fd, text, length) != (ssize_t)length)
		result = -errno;
	if (close(fd) && !result)
		result = -errno;
	return result;
}

int sysfs_remove(const char *format, ...)
{
	char path[SYSFS_PATH];

	MAKE_PATH(path, format);
	return unlink(path) ? -errno : 0;
}
