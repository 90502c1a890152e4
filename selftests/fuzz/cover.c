// SPDX-License-Identifier: GPL-2.0-only
/* KCOV coverage, of modules that were built for it: see cover.h. */
#include "cover.h"

#include <fcntl.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <unistd.h>

#define KCOV_NODE	"/sys/kernel/debug/kcov"
#define KCOV_INIT	_IOR('c', 1, unsigned long)
#define KCOV_ENABLE	_IO('c', 100)
#define KCOV_DISABLE	_IO('c', 101)
#define KCOV_TRACE_PC	0
#define ENTRIES		(64UL << 10)

/**
 * struct fuzz_cover - the coverage of one thread
 * @fd: open kcov
 * @area: number of entries, then the program counters
 */
struct fuzz_cover {
	int fd;
	unsigned long *area;
};

/* One bit for each hashed program counter, shared by all threads. */
#define SEEN_BITS	18
static atomic_uchar seen[1 << SEEN_BITS];
static atomic_uint total;

struct fuzz_cover *fuzz_cover_open(void)
{
	struct fuzz_cover *cover = malloc(sizeof(*cover));

	if (!cover)
		return NULL;
	cover->fd = open(KCOV_NODE, O_RDWR | O_CLOEXEC);
	if (cover->fd < 0 || ioctl(cover->fd, KCOV_INIT, ENTRIES))
		goto fail;
	cover->area = mmap(NULL, ENTRIES * sizeof(long), PROT_READ | PROT_WRITE, MAP_SHARED,
			   cover->fd, 0);
	if (cover->area == MAP_FAILED)
		goto fail;
	if (ioctl(cover->fd, KCOV_ENABLE, KCOV_TRACE_PC)) {
		munmap(cover->area, ENTRIES * sizeof(long));
		goto fail;
	}
	return cover;
fail:
	if (cover->fd >= 0)
		close(cover->fd);
	free(cover);
	return NULL;
}

void fuzz_cover_begin(struct fuzz_cover *cover)
{
	if (cover)
		__atomic_store_n(&cover->area[0], 0, __ATOMIC_RELAXED);
}

unsigned int fuzz_cover_end(struct fuzz_cover *cover)
{
	unsigned long count, i, hash;
	unsigned int fresh = 0;

	if (!cover)
		return 0;
	count = __atomic_load_n(&cover->area[0], __ATOMIC_RELAXED);
	for (i = 1; i <= count && i < ENTRIES; i++) {
		hash = cover->area[i] * 0x9e3779b97f4a7c15 >> (64 - SEEN_BITS);
		if (!atomic_exchange(&seen[hash], 1))
			fresh++;
	}
	atomic_fetch_add(&total, fresh);
	return fresh;
}

void fuzz_cover_close(struct fuzz_cover *cover)
{
	if (!cover)
		return;
	ioctl(cover->fd, KCOV_DISABLE, 0);
	munmap(cover->area, ENTRIES * sizeof(long));
	close(cover->fd);
	free(cover);
}

unsigned int fuzz_cover_total(void)
{
	return atomic_load(&total);
}
