// SPDX-License-Identifier: MIT OR GPL-2.0
/* Write zeros to holes and unwritten extents; see file_prepare.h. */
#include <errno.h>
#include <fcntl.h>
#include <linux/fiemap.h>
#include <linux/fs.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "file_prepare.h"

enum {
	EXTENTS = 128,		/* of one FIEMAP call */
	CHUNK = 1 << 20,	/* bytes of a write */
	DIRTY = 64 * CHUNK,	/* most bytes that wait for the disk */
};

/**
 * struct preparation - a file that is being prepared
 * @fd: the file
 * @size: its length
 * @zeroed: bytes written so far
 */
struct preparation {
	int fd;
	uint64_t size;
	uint64_t zeroed;
};

/* SIGIO: another process opens the file, and waits for the end of the lease. */
static volatile sig_atomic_t stopped;

static void stop(int number)
{
	stopped = number;
}

static void catch_signals(void)
{
	static const int signals[] = { SIGINT, SIGTERM, SIGHUP, SIGIO };
	struct sigaction action = { .sa_handler = stop };

	for (size_t i = 0; i < sizeof(signals) / sizeof(signals[0]); i++)
		sigaction(signals[i], &action, NULL);
}

static void show_progress(const struct preparation *file, uint64_t at, const char *end)
{
	if (isatty(STDERR_FILENO))
		fprintf(stderr, "\rnvme-peer: %llu of %llu MiB%s", (unsigned long long)at >> 20,
			(unsigned long long)file->size >> 20, end);
}

/* Blocks first, so that they are contiguous.  ext4 without extents has no fallocate(). */
static int allocate(int fd, uint64_t size, uint64_t old)
{
	int result = fallocate(fd, 0, 0, (off_t)size) ? -errno : 0;

	if (result == -EOPNOTSUPP)
		return size > old && ftruncate(fd, (off_t)size) ? -errno : 0;
	if (result && ftruncate(fd, (off_t)old))
		return -errno;
	return result;
}

static int write_zeros(struct preparation *file, uint64_t at, uint64_t end)
{
	static const char zeros[CHUNK];
	ssize_t done;

	while (at < end && !stopped) {
		done = pwrite(file->fd, zeros, end - at < CHUNK ? end - at : CHUNK, (off_t)at);
		if (done < 0 && errno != EINTR)
			return -errno;
		if (done <= 0)
			continue;
		if ((file->zeroed + (uint64_t)done) / DIRTY > file->zeroed / DIRTY && fdatasync(file->fd))
			return -errno;
		at += (uint64_t)done;
		file->zeroed += (uint64_t)done;
		show_progress(file, at, "");
	}
	return stopped;
}

/* From *@at on: as much as one FIEMAP call describes. */
static int fill_extents(struct preparation *file, struct fiemap *map, uint64_t *at)
{
	int result = 0;

	/* FIEMAP_FLAG_SYNC: unwritten extents with data in memory are written first. */
	*map = (struct fiemap){ .fm_start = *at, .fm_length = file->size - *at,
				.fm_flags = FIEMAP_FLAG_SYNC, .fm_extent_count = EXTENTS };
	if (ioctl(file->fd, FS_IOC_FIEMAP, map))
		return -errno;
	for (uint32_t i = 0; !result && i < map->fm_mapped_extents && *at < file->size; i++) {
		const struct fiemap_extent *extent = &map->fm_extents[i];
		uint64_t end = extent->fe_logical + extent->fe_length;

		end = end < file->size ? end : file->size;
		if (extent->fe_logical > *at)
			result = write_zeros(file, *at, extent->fe_logical < end ? extent->fe_logical : end);
		if (!result && extent->fe_flags & FIEMAP_EXTENT_UNWRITTEN)
			result = write_zeros(file, extent->fe_logical > *at ? extent->fe_logical : *at, end);
		*at = end;
	}
	if (!result && !map->fm_mapped_extents) {
		result = write_zeros(file, *at, file->size);
		*at = file->size;
	}
	return result;
}

static int fill(struct preparation *file)
{
	struct fiemap *map = malloc(sizeof(*map) + EXTENTS * sizeof(struct fiemap_extent));
	uint64_t at = 0;
	int result = map ? 0 : -ENOMEM;

	while (!result && at < file->size)
		result = fill_extents(file, map, &at);
	free(map);
	if (file->zeroed)
		show_progress(file, at, "\n");
	return result;
}

int file_prepare(int fd, uint64_t size, uint64_t *zeroed)
{
	struct preparation file = { .fd = fd, .size = size };
	struct stat before;
	int result;

	catch_signals();
	if (fcntl(fd, F_SETLEASE, F_WRLCK) || fstat(fd, &before))
		return -errno;
	if ((uint64_t)before.st_size > size)
		file.size = (uint64_t)before.st_size;
	result = allocate(fd, file.size, (uint64_t)before.st_size);
	if (!result)
		result = fill(&file);
	if (result >= 0 && fsync(fd))
		result = -errno;
	fcntl(fd, F_SETLEASE, F_UNLCK);
	*zeroed = file.zeroed;
	return result;
}
