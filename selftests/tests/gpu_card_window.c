// SPDX-License-Identifier: GPL-2.0-only
/*
 * Data in the window of a GPU's memory, which no CPU can access: the controller has the GPU move
 * it. GPU threads write and compare every word; the CPU compares the disk. Prints the rate ("#
 * window: {...}", for selftests/cuda/card.sh).
 *
 * kernels: 7
 * iommu: off
 * gpu: shared
 * timeout: 240
 */
#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "npbad.h"
#include "gpu_qp.h"
#include "kselftest_harness.h"

#define ENTRIES		256U
#define QUEUES		40U
#define MOST_PAIRS	16U
#define RANGE		(4U << 20)
#define LARGEST		(128U << 10)
#define PAGES		(RANGE / NP_PAGE)
/* The rate of a list of pages needs more than the first copies into the data memory. */
#define LIST		(16 * RANGE)
#define LIST_SHIFT	14U
#define LIST_PAGES	(LIST >> LIST_SHIFT)
/* So often in a longer list. */
#define LIST_TIMES	16U
#define LIST_PAGE	(1U << LIST_SHIFT)
/* Threads of a list on a stream, and of programs that process items by warps. */
#define LIST_THREADS	512U
#define LIST_ITEM_THREADS 65536U
#define ROUNDS		5U
#define SEED		0x3147ULL
#define JOB_MS		60000U
#define DELAY_NS	2000000U
#define RATE_MB		20U
#define CTRL_SGLS	(BADCTRL_IDENTIFY(1) + 536)

FIXTURE(window)
{
	struct np_bad bad;
	struct np_gpu_qp qps[MOST_PAIRS];
	struct np_gpu_memory tables;
	struct np_gpu_memory more;
	unsigned int pairs;
	uint32_t threads;
};

FIXTURE_VARIANT(window)
{
	uint32_t flags;
};

FIXTURE_VARIANT_ADD(window, prp)
{
	.flags = 0,
};

FIXTURE_VARIANT_ADD(window, sgl)
{
	.flags = NP_GPU_SGL | NP_GPU_HOST_RINGS,
};

FIXTURE_SETUP(window)
{
	bool real = np_gpu_is_real();
	unsigned int i;

	self->pairs = real ? MOST_PAIRS : 2;
	self->threads = real ? 64 : 8;
	self->tables = (struct np_gpu_memory){ .fd = -1 };
	self->more = (struct np_gpu_memory){ .fd = -1 };
	for (i = 0; i < MOST_PAIRS; i++)
		np_gpu_qp_clear(&self->qps[i]);
	ASSERT_EQ(0, np_bad_open(&self->bad));
	ASSERT_EQ(0, np_bad_set(&self->bad, BADCTRL_GRANT, QUEUES));
	ASSERT_EQ(0, np_bad_set(&self->bad, CTRL_SGLS, 1));
	ASSERT_EQ(0, np_bad_bind(&self->bad, 1));
	for (i = 0; i < self->pairs; i++) {
		ASSERT_EQ(0, np_gpu_qp_open(&self->qps[i], &self->bad.ctrl, ENTRIES,
					    variant->flags | NP_GPU_WINDOW));
		ASSERT_EQ(!!(variant->flags & NP_GPU_SGL),
			  !!(self->qps[i].io.queue.flags & NVMEPEER_SGL));
	}
	ASSERT_EQ(0, np_gpu_memory_open(&self->tables, self->qps[0].gpu,
					MOST_PAIRS * LIST_PAGES * LIST_TIMES * sizeof(uint32_t)));
	ASSERT_EQ(0, np_gpu_memory_open(&self->more, self->qps[0].gpu,
					np_gpu_more_bytes(MOST_PAIRS)));
}

FIXTURE_TEARDOWN(window)
{
	unsigned int i;

	np_gpu_memory_close(&self->tables);
	np_gpu_memory_close(&self->more);
	for (i = 0; i < MOST_PAIRS; i++)
		np_gpu_qp_close(&self->qps[i]);
	EXPECT_EQ(0, np_bad_close(&self->bad));
}

static uint32_t mover(struct np_bad *bad, enum badctrl_mover_word word)
{
	return np_bad_get(bad, BADCTRL_MOVER(word));
}

static int run(struct np_gpu_qp *qp, uint32_t program, uint32_t threads,
	       struct softgpu_result *result)
{
	int job = np_gpu_start(qp->gpu, program, threads, &qp->io, sizeof(qp->io));

	return job < 0 ? job : np_gpu_wait(qp->gpu, job, JOB_MS, result);
}

/* Each size, from a block to 32 pages. */
TEST_F_TIMEOUT(window, all_sizes_both_ways, 200)
{
	uint32_t bytes, range = np_gpu_is_real() ? RANGE : 8 * LARGEST, moves;
	struct np_gpu_qp *qp = &self->qps[0];
	struct softgpu_result result;

	for (bytes = NP_BLOCK; bytes <= LARGEST; bytes *= 4) {
		np_gpu_range(qp, 0, range, bytes, SEED + bytes);
		moves = mover(&self->bad, BADCTRL_MOVER_MOVES);
		ASSERT_EQ(0, run(qp, SOFTGPU_WRITE, self->threads / 2, &result));
		ASSERT_EQ(SOFTGPU_OK, result.status)
			TH_LOG("error %d at %llx", result.error, (unsigned long long)result.where);
		ASSERT_EQ(0, np_gpu_pattern_check(self->bad.disk, 0, range, SEED + bytes));
		ASSERT_EQ(0, run(qp, SOFTGPU_VERIFY, self->threads / 2, &result));
		ASSERT_EQ(SOFTGPU_OK, result.status)
			TH_LOG("error %d at %llx", result.error, (unsigned long long)result.where);
		EXPECT_EQ(0, result.mismatches);
		EXPECT_LE(2 * range / bytes, mover(&self->bad, BADCTRL_MOVER_MOVES) - moves);
	}
	/* Wrong data on the disk is detected in the GPU's memory. */
	ASSERT_EQ(0, np_gpu_pattern_write(self->bad.disk, NP_PAGE, NP_PAGE, 0xbad));
	ASSERT_EQ(0, run(qp, SOFTGPU_VERIFY, self->threads / 2, &result));
	EXPECT_EQ(SOFTGPU_FAILED, result.status);
	EXPECT_LT(0, result.mismatches);
	EXPECT_GE(8, mover(&self->bad, BADCTRL_MOVER_SMS));
}

/* A random permutation of @count pages, of numbers modulo @places. */
static void shuffle(uint32_t *table, uint32_t count, uint32_t places, unsigned int seed)
{
	uint32_t i, k, page;

	for (i = 0; i < count; i++)
		table[i] = i % places;
	for (i = count - 1; i; i--) {
		k = (uint32_t)rand_r(&seed) % (i + 1);
		page = table[i];
		table[i] = table[k];
		table[k] = page;
	}
}

static void prepare_gather(struct np_gpu_qp *qp, const struct np_gpu_memory *tables,
			   unsigned int pair, uint32_t shift, uint32_t bytes)
{
	uint64_t offset = pair * LIST_PAGES * sizeof(uint32_t);

	shuffle((uint32_t *)(tables->bytes + offset), bytes >> shift, RANGE >> shift, pair + shift);
	np_gpu_range(qp, 0, bytes, 65536, SEED);
	qp->io.page_table = tables->address + offset;
	qp->io.page_shift = shift;
}

/* On all queue pairs at once; GB/s. */
static int gather_all(struct np_gpu_qp *qps, unsigned int pairs, uint32_t threads,
		      const struct np_gpu_memory *more, double *rate)
{
	int job = np_gpu_start_many(qps, pairs, SOFTGPU_GATHER, pairs * threads, more);
	struct softgpu_result result;
	int ret = job < 0 ? job : np_gpu_wait(qps[0].gpu, job, JOB_MS, &result);

	if (ret || result.status != SOFTGPU_OK)
		return ret ?: -EIO;
	*rate = (double)result.bytes_read / (double)result.elapsed_ns;
	return 0;
}

/* Pages of two sizes to random places: commands with scattered PRPs. The GPU compares. */
TEST_F_TIMEOUT(window, pages_to_random_places, 200)
{
	uint32_t shift, round, i;
	struct softgpu_result result;
	double rate;

	np_gpu_range(&self->qps[0], 0, RANGE, LARGEST, SEED);
	ASSERT_EQ(0, run(&self->qps[0], SOFTGPU_WRITE, 8, &result));
	ASSERT_EQ(SOFTGPU_OK, result.status);
	for (shift = 12; shift <= 14; shift += 2) {
		for (i = 0; i < self->pairs; i++)
			prepare_gather(&self->qps[i], &self->tables, i, shift, RANGE);
		/* The comparison overwrites the pages. */
		for (round = 0; round < 2; round++) {
			ASSERT_EQ(0, gather_all(self->qps, self->pairs, self->threads, &self->more,
						&rate));
			for (i = 0; i < self->pairs; i++) {
				ASSERT_EQ(0, run(&self->qps[i], SOFTGPU_GATHERED, self->threads,
						 &result));
				EXPECT_EQ(SOFTGPU_OK, result.status);
				EXPECT_EQ(0, result.mismatches);
			}
		}
		ASSERT_EQ(0, run(&self->qps[0], SOFTGPU_GATHERED, self->threads, &result));
		EXPECT_EQ(RANGE / 8, result.mismatches);
	}
}

/* Readers and writers on all queue pairs; a queue pair that is closed meanwhile ends its job. */
TEST_F_TIMEOUT(window, loss_while_data_moves, 200)
{
	struct softgpu_result result;
	unsigned int i;
	int jobs[MOST_PAIRS];

	for (i = 0; i < self->pairs; i++) {
		np_gpu_range(&self->qps[i], i * RANGE, RANGE, NP_PAGE, SEED + i);
		self->qps[i].io.duration_ns = 2000000000;
		jobs[i] = np_gpu_start(self->qps[i].gpu, SOFTGPU_MIXED, self->threads,
				       &self->qps[i].io, sizeof(self->qps[i].io));
		ASSERT_LT(0, jobs[i]);
	}
	np_sleep_ms(1000);
	close(self->qps[1].qp_fd);
	self->qps[1].qp_fd = -1;
	for (i = 0; i < self->pairs; i++) {
		ASSERT_EQ(0, np_gpu_wait(self->qps[i].gpu, jobs[i], JOB_MS, &result));
		EXPECT_EQ(0, result.mismatches);
		EXPECT_EQ(i != 1, result.status == SOFTGPU_OK);
	}
}

/* The controller delays completions, and limits the rate of data. */
TEST_F_TIMEOUT(window, delay_and_rate_are_adjustable, 100)
{
	struct np_gpu_qp *qp = &self->qps[0];
	struct softgpu_result result;

	np_gpu_range(qp, 0, RANGE, NP_PAGE, SEED);
	qp->io.commands = 50;
	ASSERT_EQ(0, np_bad_set(&self->bad, BADCTRL_MOVER(BADCTRL_MOVER_DELAY), DELAY_NS));
	ASSERT_EQ(0, run(qp, SOFTGPU_LATENCY, 1, &result));
	ASSERT_EQ(SOFTGPU_OK, result.status);
	EXPECT_LE(DELAY_NS, result.latency_min_ns);
	ASSERT_EQ(0, np_bad_set(&self->bad, BADCTRL_MOVER(BADCTRL_MOVER_DELAY), 0));
	ASSERT_EQ(0, np_bad_set(&self->bad, BADCTRL_MOVER(BADCTRL_MOVER_RATE), RATE_MB));
	np_gpu_range(qp, 0, RANGE, LARGEST, SEED);
	qp->io.commands = 0;
	ASSERT_EQ(0, run(qp, SOFTGPU_WRITE, 8, &result));
	ASSERT_EQ(SOFTGPU_OK, result.status);
	EXPECT_LE(RANGE * 1000ULL / RATE_MB * 9 / 10, result.elapsed_ns);
	ASSERT_EQ(0, np_bad_set(&self->bad, BADCTRL_MOVER(BADCTRL_MOVER_RATE), 0));
	ASSERT_EQ(0, run(qp, SOFTGPU_VERIFY, 8, &result));
	EXPECT_EQ(SOFTGPU_OK, result.status);
}

static void tell(struct np_bad *bad, const char *what, unsigned int pairs, uint32_t bytes,
		 double rate)
{
	printf("# window: {\"what\": \"%s\", \"pairs\": %u, \"bytes\": %u, \"gb_per_second\": %.2f, \"sms\": %u}\n",
	       what, pairs, bytes, rate, mover(bad, BADCTRL_MOVER_SMS));
}

/* All bytes, from the start of the kernel to its end. */
TEST_F_TIMEOUT(window, rates, 200)
{
	static const uint32_t sizes[] = { 4096, 16384, 65536 };
	struct softgpu_result result;
	unsigned int i, k;
	double rate;
	int job;

	for (k = 0; k < ARRAY_SIZE(sizes); k++) {
		for (i = 0; i < self->pairs; i++) {
			np_gpu_range(&self->qps[i], 0, 16 * RANGE, sizes[k], SEED);
			self->qps[i].io.depth = 0;
			self->qps[i].io.duration_ns = np_gpu_is_real() ? 1000000000 : 200000000;
		}
		job = np_gpu_start_many(self->qps, self->pairs, SOFTGPU_RATE,
					self->pairs * self->threads, &self->more);
		ASSERT_LT(0, job);
		ASSERT_EQ(0, np_gpu_wait(self->qps[0].gpu, job, JOB_MS, &result));
		ASSERT_EQ(SOFTGPU_OK, result.status);
		EXPECT_LT(0, result.reads);
		tell(&self->bad, "random reads", self->pairs, sizes[k],
		     (double)result.bytes_read / (double)result.elapsed_ns);
	}
	for (i = 0; i < self->pairs; i++)
		prepare_gather(&self->qps[i], &self->tables, i, LIST_SHIFT,
			       np_gpu_is_real() ? LIST : RANGE);
	for (k = 0; k < ROUNDS; k++) {
		ASSERT_EQ(0, gather_all(self->qps, self->pairs, self->threads, &self->more, &rate));
		tell(&self->bad, "scattered pages of 16 KiB", self->pairs, 65536, rate);
	}
}

/*
 * Items of @bytes at random places of the memory of all queue pairs, from random places of as
 * much disk, @times each.
 */
static uint32_t prepare_list(struct np_gpu_qp *qps, unsigned int pairs,
			     const struct np_gpu_memory *memory, uint32_t bytes, uint32_t times)
{
	struct nvmepeer_list_item *items = (struct nvmepeer_list_item *)memory->bytes;
	uint32_t slot = bytes > LIST_PAGE ? bytes : LIST_PAGE, each = RANGE / slot;
	uint32_t count = pairs * each, i;
	static uint32_t from[LIST_PAGES], to[LIST_PAGES];

	shuffle(from, count, count, 1);
	shuffle(to, count, count, 2);
	for (i = 0; i < count; i++)
		items[i] = (struct nvmepeer_list_item){
			.lba = (uint64_t)from[i] * slot / NP_BLOCK,
			.offset = (uint64_t)(to[i] % each) * slot,
			.memory = to[i] / each,
			.bytes = bytes,
			.status = -1,
		};
	for (i = count; i < count * times; i++)
		items[i] = items[i - count];
	count *= times;
	qps[0].io.page_table = memory->address;
	qps[0].io.commands = count;
	qps[0].io.seed = SEED;
	return count;
}

/* A program on the list by all queue pairs; GB/s, by the GPU's clock. */
static int run_list(struct np_gpu_qp *qps, unsigned int pairs, uint32_t program,
		    const struct np_gpu_memory *more, struct softgpu_result *result)
{
	uint32_t threads = program == SOFTGPU_LIST ? LIST_THREADS : LIST_ITEM_THREADS;
	int job = np_gpu_start_many(qps, pairs, program, threads, more);

	return job < 0 ? job : np_gpu_wait(qps[0].gpu, job, JOB_MS, result);
}

static double list_rate(uint64_t bytes, const struct softgpu_result *result)
{
	return (double)bytes / (double)result->latency_max_ns;
}

/*
 * One list over all queue pairs, by the kernel of lists on streams, and a kernel that loads the
 * same bytes from the memory of the disk, in turns; all data is compared.
 */
TEST_F_TIMEOUT(window, lists_over_a_gather_kernel, 200)
{
	static const struct { uint32_t bytes; uint32_t times; } lists[] = {
		{ 512, 1 }, { 4096, 1 }, { LIST_PAGE, 1 }, { LIST_PAGE, LIST_TIMES }, { LARGEST, 1 },
	};
	static const uint32_t programs[] = { SOFTGPU_LIST, SOFTGPU_LIST_COPY };
	struct softgpu_result result;
	unsigned int i, k, round;
	double rates[2];
	uint32_t count;
	uint64_t bytes;

	np_gpu_range(&self->qps[0], 0, (uint64_t)self->pairs * RANGE, LARGEST, SEED);
	ASSERT_EQ(0, run(&self->qps[0], SOFTGPU_WRITE, 8, &result));
	ASSERT_EQ(SOFTGPU_OK, result.status);
	for (i = 0; i < ARRAY_SIZE(lists); i++) {
		count = prepare_list(self->qps, self->pairs, &self->tables, lists[i].bytes,
				     lists[i].times);
		bytes = (uint64_t)count * lists[i].bytes;
		for (round = 0; round <= ROUNDS; round++) {
			for (k = 0; k < ARRAY_SIZE(programs); k++) {
				self->qps[0].io.commands = count;
				ASSERT_EQ(0, run_list(self->qps, self->pairs, programs[k],
						      &self->more, &result));
				ASSERT_EQ(SOFTGPU_OK, result.status)
					TH_LOG("error %d", result.error);
				rates[k] = list_rate(bytes, &result);
				self->qps[0].io.commands = count / lists[i].times;
				ASSERT_EQ(0, run_list(self->qps, self->pairs, SOFTGPU_LIST_CHECK,
						      &self->more, &result));
				ASSERT_EQ(SOFTGPU_OK, result.status);
				ASSERT_EQ(0, result.mismatches);
			}
			/* The first round is not a measurement. */
			if (!round)
				continue;
			printf("# window: {\"what\": \"list\", \"pairs\": %u, \"bytes\": %u, \"items\": %u, \"gb_per_second\": %.2f, \"gather\": %.2f, \"ratio\": %.3f, \"sms\": %u}\n",
			       self->pairs, lists[i].bytes, count, rates[0], rates[1], rates[0] / rates[1],
			       mover(&self->bad, BADCTRL_MOVER_SMS));
		}
	}
	/* The comparison overwrites the data, and detects what was not read. */
	ASSERT_EQ(0, run_list(self->qps, self->pairs, SOFTGPU_LIST_CHECK, &self->more, &result));
	EXPECT_EQ(SOFTGPU_FAILED, result.status);
	EXPECT_EQ(bytes / 8, result.mismatches);
}

/* Reads of one thread while the controller takes as long as a disk. */
TEST_F_TIMEOUT(window, latencies, 200)
{
	static const uint32_t delays[] = { 0, 1000, 10000, 70000 };
	static const uint32_t programs[] = { SOFTGPU_LATENCY, SOFTGPU_EXCLUSIVE, SOFTGPU_EXCHANGE };
	static const char * const names[] = { "shared", "exclusive", "hand" };
	struct np_gpu_qp *qp = &self->qps[0];
	struct softgpu_result result;
	unsigned int i, k;

	np_gpu_range(qp, 0, RANGE, NP_PAGE, SEED);
	qp->io.commands = np_gpu_is_real() ? 10000 : 20;
	for (i = 0; i < ARRAY_SIZE(delays); i++) {
		ASSERT_EQ(0, np_bad_set(&self->bad, BADCTRL_MOVER(BADCTRL_MOVER_DELAY), delays[i]));
		for (k = 0; k < ARRAY_SIZE(programs); k++) {
			ASSERT_EQ(0, run(qp, programs[k], 1, &result));
			ASSERT_EQ(SOFTGPU_OK, result.status);
			EXPECT_LE(delays[i], result.latency_min_ns);
			printf("# window: {\"what\": \"latency\", \"by\": \"%s\", \"delay_ns\": %u, \"mean_ns\": %llu, \"min_ns\": %llu}\n",
			       names[k], delays[i],
			       (unsigned long long)(result.latency_ns / result.reads),
			       (unsigned long long)result.latency_min_ns);
		}
	}
	ASSERT_EQ(0, np_bad_set(&self->bad, BADCTRL_MOVER(BADCTRL_MOVER_DELAY), 0));
}

TEST_HARNESS_MAIN
