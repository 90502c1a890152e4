// SPDX-License-Identifier: GPL-2.0-only
/*
 * A GPU that shares memory with the controller fills paged caches from the disk, as
 * examples/kv_gather.cu does: files of this guest lie on the disk one after the other,
 * and each of their pages belongs to a random place in the cache. The CPU compares every
 * page ("# gather: {...}", for selftests/cuda/card.sh).
 *
 * gpu: shared
 * timeout: 120
 */
#include <dirent.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "npbad.h"
#include "gpu_qp.h"
#include "kselftest_harness.h"

#define ENTRIES		256U
#define QUEUES		40U
#define MOST_PAIRS	16U
#define PAGE_SHIFT	14U
#define PAGE_BYTES	(1U << PAGE_SHIFT)
#define GROUP		4U		/* pages of a command */
#define CACHE_BYTES	(4U << 20)
#define CACHE_PAGES	(CACHE_BYTES / PAGE_BYTES)

FIXTURE(gather)
{
	struct np_bad bad;
	struct np_gpu_qp qps[MOST_PAIRS];
	struct np_gpu_memory tables;
	uint8_t *real;
	unsigned int pairs;
	uint32_t threads;
};

/* Returns how many bytes of @room were filled. */
static size_t read_program(int folder, const char *name, uint8_t *room, size_t bytes)
{
	int fd = openat(folder, name, O_RDONLY | O_NOFOLLOW | O_CLOEXEC);
	size_t done = 0;
	ssize_t got = 1;

	while (fd >= 0 && done < bytes && got > 0) {
		got = read(fd, room + done, bytes - done);
		done += got > 0 ? (size_t)got : 0;
	}
	if (fd >= 0)
		close(fd);
	return done;
}

static bool read_programs(uint8_t *room, size_t bytes)
{
	DIR *folder = opendir("/usr/bin");
	struct dirent *entry;
	size_t done = 0;

	while (folder && done < bytes && (entry = readdir(folder)))
		if (entry->d_type == DT_REG)
			done += read_program(dirfd(folder), entry->d_name, room + done,
					     bytes - done);
	if (folder)
		closedir(folder);
	return done == bytes;
}

FIXTURE_SETUP(gather)
{
	bool real = np_gpu_is_real();
	unsigned int i;

	self->pairs = real ? MOST_PAIRS : 4;
	self->threads = real ? 64 : 8;
	self->tables = (struct np_gpu_memory){ .fd = -1 };
	for (i = 0; i < MOST_PAIRS; i++)
		np_gpu_qp_clear(&self->qps[i]);
	self->real = aligned_alloc(NP_PAGE, CACHE_BYTES);
	ASSERT_NE(NULL, self->real);
	ASSERT_TRUE(read_programs(self->real, CACHE_BYTES));
	ASSERT_EQ(0, np_bad_open(&self->bad));
	ASSERT_EQ(0, np_bad_set(&self->bad, BADCTRL_GRANT, QUEUES));
	ASSERT_EQ(0, np_bad_bind(&self->bad, 1));
	for (i = 0; i < self->pairs; i++)
		ASSERT_EQ(0, np_gpu_qp_open(&self->qps[i], &self->bad.ctrl, ENTRIES,
					    i % 2 ? NP_GPU_HOST_RINGS : 0));
	ASSERT_EQ(0, np_gpu_memory_open(&self->tables, self->qps[0].gpu,
					MOST_PAIRS * CACHE_PAGES * sizeof(uint32_t)));
	ASSERT_EQ(0, np_disk_write(self->bad.disk, self->real, CACHE_BYTES, 0));
}

FIXTURE_TEARDOWN(gather)
{
	unsigned int i;

	np_gpu_memory_close(&self->tables);
	for (i = 0; i < MOST_PAIRS; i++)
		np_gpu_qp_close(&self->qps[i]);
	EXPECT_EQ(0, np_bad_close(&self->bad));
	free(self->real);
}

/* A random permutation. */
static void shuffle(uint32_t *table, unsigned int seed)
{
	uint32_t i, k, page;

	for (i = 0; i < CACHE_PAGES; i++)
		table[i] = i;
	for (i = CACHE_PAGES - 1; i; i--) {
		k = (uint32_t)rand_r(&seed) % (i + 1);
		page = table[i];
		table[i] = table[k];
		table[k] = page;
	}
}

static uint8_t *cache_of(const struct np_gpu_qp *qp)
{
	return qp->memory.bytes + (qp->io.data_address - qp->memory.address);
}

static void prepare(struct np_gpu_qp *qp, const struct np_gpu_memory *tables, unsigned int pair)
{
	uint64_t offset = pair * CACHE_PAGES * sizeof(uint32_t);

	shuffle((uint32_t *)(tables->bytes + offset), pair + 1);
	memset(cache_of(qp), 0xa5, CACHE_BYTES);
	np_gpu_range(qp, 0, CACHE_BYTES, GROUP * PAGE_BYTES, 0);
	qp->io.page_table = tables->address + offset;
	qp->io.page_shift = PAGE_SHIFT;
}

/* Counts pages with wrong contents. */
static unsigned int wrong_pages(const struct np_gpu_qp *qp, const struct np_gpu_memory *tables,
				unsigned int pair, const uint8_t *real)
{
	const uint32_t *table = (const uint32_t *)tables->bytes + pair * CACHE_PAGES;
	unsigned int wrong = 0, i;

	for (i = 0; i < CACHE_PAGES; i++)
		wrong += !!memcmp(cache_of(qp) + ((size_t)table[i] << PAGE_SHIFT),
				  real + ((size_t)i << PAGE_SHIFT), PAGE_BYTES);
	return wrong;
}

TEST_F_TIMEOUT(gather, programs, 100)
{
	unsigned int i, wrong = 0;
	struct softgpu_result result;
	int jobs[MOST_PAIRS];
	double rate = 0;

	for (i = 0; i < self->pairs; i++)
		prepare(&self->qps[i], &self->tables, i);
	for (i = 0; i < self->pairs; i++) {
		jobs[i] = np_gpu_start(self->qps[i].gpu, SOFTGPU_GATHER, self->threads,
				       &self->qps[i].io, sizeof(self->qps[i].io));
		ASSERT_LT(0, jobs[i]);
	}
	for (i = 0; i < self->pairs; i++) {
		ASSERT_EQ(0, np_gpu_wait(self->qps[i].gpu, jobs[i], 30000, &result));
		ASSERT_EQ(SOFTGPU_OK, result.status)
			TH_LOG("error %d at %llx", result.error, (unsigned long long)result.where);
		EXPECT_EQ(CACHE_PAGES / GROUP, result.reads);
		rate += (double)result.bytes_read * 1e9 / (double)result.elapsed_ns;
		wrong += wrong_pages(&self->qps[i], &self->tables, i, self->real);
	}
	EXPECT_EQ(0, wrong);
	printf("# gather: {\"pairs\": %u, \"pages\": %u, \"page_bytes\": %u, \"wrong\": %u, \"mib_per_second\": %.0f}\n",
	       self->pairs, self->pairs * CACHE_PAGES, PAGE_BYTES, wrong, rate / (1 << 20));
	/* A page table entry beyond the cache is refused. */
	((uint32_t *)self->tables.bytes)[0] = CACHE_PAGES;
	ASSERT_EQ(0, np_gpu_run(self->qps[0].gpu, SOFTGPU_GATHER, 1, &self->qps[0].io,
				sizeof(self->qps[0].io), &result));
	EXPECT_EQ(SOFTGPU_FAILED, result.status);
	EXPECT_EQ(NVMEPEER_E_RANGE, result.error);
}

TEST_HARNESS_MAIN
