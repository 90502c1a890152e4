// SPDX-License-Identifier: GPL-2.0-only
/*
 * kmod/core/prp_sgl.c, compiled for user space: the data pointers of commands and the PRP lists of
 * rings. A model of a controller follows the pointers, and must find the bytes of the data in their
 * order, for each length up to the limit of a command, each place of its first page, and segments
 * that are cut anywhere. Guests reach only what the transfer limits of their controllers admit.
 */
#include <stdlib.h>
#include <string.h>

#include "kernel/prp.h"
#include "../../kmod/core/prp_sgl.c"

#include "kselftest_harness.h"

#define PAGE		4096U
#define MOST_PAGES	(NVMEP_MAX_TRANSFER / PAGE + 1)
#define MOST_BLOCKS	64

bool kernel_warned;

/* Pools: a block's DMA address is its place in blocks[], so that the model finds it. */
struct dma_pool {
	size_t size;
};

static struct dma_pool pools[2];
static struct block {
	struct dma_pool *pool;
	void *memory;
} blocks[MOST_BLOCKS];
static unsigned int pool_count, pool_limit = 2, allocations, fail_at;
static bool wrong_free;

struct dma_pool *dma_pool_create(const char *name, void *dev, size_t size, size_t align, size_t boundary)
{
	(void)name, (void)dev, (void)align, (void)boundary;
	if (pool_count == pool_limit)
		return NULL;
	pools[pool_count].size = size;
	return &pools[pool_count++];
}

void dma_pool_destroy(struct dma_pool *pool)
{
	pool_count -= pool ? 1 : 0;
}

void *dma_pool_alloc(struct dma_pool *pool, int flags, dma_addr_t *dma)
{
	unsigned int i = 0;

	(void)flags;
	if (++allocations == fail_at)
		return NULL;
	while (blocks[i].memory)
		i++;
	blocks[i] = (struct block){ .pool = pool, .memory = malloc(pool->size) };
	/* Of an earlier command, as in a pool. */
	memset(blocks[i].memory, 0xee, pool->size);
	*dma = (u64)(i + 1) << 32;
	return blocks[i].memory;
}

void dma_pool_free(struct dma_pool *pool, void *memory, dma_addr_t dma)
{
	struct block *block = &blocks[(dma >> 32) - 1];

	wrong_free |= block->pool != pool || block->memory != memory;
	free(block->memory);
	*block = (struct block){};
}

static const __le64 *list_at(u64 dma)
{
	struct block *block = &blocks[(dma >> 32) - 1];

	return (dma & 0xffffffff) == 0 ? block->memory : NULL;
}

/*
 * The controller: store the address of each page that @prp1 and @prp2 describe. Returns their number,
 * or 0 if a list is not where a pointer points to.
 */
static unsigned int follow(u64 prp1, u64 prp2, unsigned int bytes, u64 *pages)
{
	unsigned int first = PAGE - prp1 % PAGE, count = 1, slot = 0, left;
	const __le64 *list;

	pages[0] = prp1;
	/* PRP2 is reserved. */
	if (bytes <= first)
		return prp2 ? 0 : 1;
	left = DIV_ROUND_UP(bytes - first, PAGE);
	if (left == 1) {
		pages[1] = prp2;
		return 2;
	}
	list = list_at(prp2);
	for (; list && left; left--) {
		if (slot == NVMEP_PRPS_PER_LIST - 1 && left > 1) {
			list = list_at(le64_to_cpu(list[slot]));
			if (!list)
				return 0;
			slot = 0;
		}
		pages[count++] = le64_to_cpu(list[slot++]);
	}
	return list ? count : 0;
}

FIXTURE(prp)
{
	struct nvmep_ctrl ctrl;
	struct nvmep_request req;
	struct request rq;
	struct nvmep_segment segments[MOST_PAGES + 1];
	u64 pages[MOST_PAGES];
};

FIXTURE_SETUP(prp)
{
	srand(1);
	self->ctrl = (struct nvmep_ctrl){ .page_size = PAGE, .admin_q = (struct request_queue *)&self->ctrl };
	self->rq.req = &self->req;
	ASSERT_EQ(0, nvmep_prp_pools_create(&self->ctrl));
}

FIXTURE_TEARDOWN(prp)
{
	unsigned int i;

	nvmep_prp_pools_destroy(&self->ctrl);
	EXPECT_EQ(0, pool_count);
	EXPECT_FALSE(kernel_warned);
	EXPECT_FALSE(wrong_free);
	for (i = 0; i < MOST_BLOCKS; i++)
		EXPECT_EQ(NULL, blocks[i].memory);
}

/* Cut @pages pages of a buffer into segments at random places; no two of them are adjacent. */
static void cut(struct nvmep_segment *segments, unsigned int pages, u32 page_size)
{
	unsigned int done, length, i = 0;

	for (done = 0; done < pages; done += length) {
		length = 1 + (unsigned int)rand() % (rand() % 4 ? 3 : pages);
		length = min(length, pages - done);
		segments[i] = (struct nvmep_segment){
			.offset = (u64)done * page_size,
			.length = (u64)length * page_size,
			.dma = ((u64)(i * 7919 % 4093 + 1) << 40) + (u64)done * page_size,
		};
		i++;
	}
}

static u64 address_in(const struct nvmep_segment *segment, u64 offset)
{
	while (offset - segment->offset >= segment->length)
		segment++;
	return segment->dma + (offset - segment->offset);
}

/* The pointers to @bytes from @skip on are right, and the lists are freed as they were allocated. */
static bool describes(struct nvmep_ctrl *ctrl, struct request *rq, const struct nvmep_segment *segments,
		      unsigned int skip, unsigned int bytes, u64 *pages)
{
	struct nvmep_request *req = rq->req;
	struct nvmep_dma_iter iter;
	unsigned int count, i;
	u64 offset = skip;

	/* Of an earlier command. */
	memset(&req->sqe, 0xff, sizeof(req->sqe));
	req->data.list_count = 0;
	nvmep_dma_iter_segment(&iter, segments, skip);
	if (nvmep_build_pointers(ctrl, rq, &iter, bytes) != BLK_STS_OK || req->sqe.common.flags)
		return false;
	count = follow(le64_to_cpu(req->sqe.common.dptr.prp1), le64_to_cpu(req->sqe.common.dptr.prp2), bytes,
		       pages);
	nvmep_prp_lists_free(ctrl, &req->data);
	for (i = 0; i < count; i++) {
		if (pages[i] != address_in(segments, offset))
			return false;
		offset += PAGE - offset % PAGE;
	}
	return count == DIV_ROUND_UP(skip + bytes, PAGE) && !req->data.list_count;
}

TEST_F(prp, each_number_of_pages_is_described)
{
	unsigned int pages, bytes, skip;

	for (pages = 1; pages < MOST_PAGES; pages++) {
		cut(self->segments, pages + 1, PAGE);
		for (skip = 0; skip < PAGE; skip += 1364) {
			bytes = pages * PAGE;
			ASSERT_TRUE(describes(&self->ctrl, &self->rq, self->segments, skip, bytes,
					      self->pages))
				TH_LOG("%u bytes at %u", bytes, skip);
		}
	}
}

TEST_F(prp, each_byte_at_the_edges_of_pages_and_lists)
{
	static const unsigned int around[] = {
		1, 2, 3, 32, 33, 34, 512, 513, 514, 1023, 1024, 1025, 1534, 2046, 2047
	};
	unsigned int i, skip, bytes;
	int more;

	for (i = 0; i < ARRAY_SIZE(around); i++)
		for (skip = 0; skip < PAGE; skip += skip == 4 ? PAGE - 8 : 4)
			for (more = -8; more <= 8; more += 4) {
				cut(self->segments, around[i] + 2, PAGE);
				bytes = around[i] * PAGE + (unsigned int)more;
				ASSERT_TRUE(describes(&self->ctrl, &self->rq, self->segments, skip, bytes,
						      self->pages))
					TH_LOG("%u bytes at %u", bytes, skip);
			}
}

TEST_F(prp, short_lists_are_small)
{
	unsigned int pages;

	for (pages = 32; pages <= 34; pages++) {
		cut(self->segments, pages, PAGE);
		ASSERT_TRUE(describes(&self->ctrl, &self->rq, self->segments, 0, pages * PAGE, self->pages));
		EXPECT_EQ(pages <= 33, self->req.data.list_small);
	}
}

TEST_F(prp, failed_creation_of_pools_leaves_none)
{
	nvmep_prp_pools_destroy(&self->ctrl);
	for (pool_limit = 0; pool_limit < 2; pool_limit++) {
		EXPECT_EQ(-ENOMEM, nvmep_prp_pools_create(&self->ctrl));
		EXPECT_EQ(0, pool_count);
	}
	EXPECT_EQ(0, nvmep_prp_pools_create(&self->ctrl));
}

/* Whichever allocation fails, the command can be retried, and what was allocated is freed. */
TEST_F(prp, failed_allocations_leave_nothing_behind)
{
	struct nvmep_dma_iter iter;
	unsigned int n;

	for (n = 1; n <= NVMEP_MAX_LISTS; n++) {
		cut(self->segments, MOST_PAGES, PAGE);
		nvmep_dma_iter_segment(&iter, self->segments, 512);
		self->req.data.list_count = 0;
		allocations = 0;
		fail_at = n;
		EXPECT_EQ(BLK_STS_RESOURCE,
			  nvmep_build_pointers(&self->ctrl, &self->rq, &iter, NVMEP_MAX_TRANSFER));
		EXPECT_EQ(n - 1, self->req.data.list_count);
		nvmep_prp_lists_free(&self->ctrl, &self->req.data);
		fail_at = 0;
	}
}

/* PRP entries cannot describe an entry that ends or begins in mid-page. */
TEST_F(prp, scatter_lists_with_gaps_are_refused)
{
	struct scatterlist sg[3] = {
		{ .address = 0x10000e00, .length = 512, .next = &sg[1] },
		{ .address = 0x20000000, .length = PAGE, .next = &sg[2] },
		{ .address = 0x30000000, .length = PAGE },
	};
	struct nvmep_dma_iter iter;
	unsigned int i, bytes;

	for (i = 0; i < 6; i++) {
		self->req.data.list_count = 0;
		sg[1].address = 0x20000000 + (i == 1 ? 4 : 0);
		sg[1].length = i == 2 ? PAGE - 4 : PAGE;
		sg[2].address = 0x30000000 + (i == 3 ? 2048 : 0);
		sg[0].length = i == 4 ? 508 : 512;
		nvmep_dma_iter_sg(&iter, sg);
		/* In the last round the list ends before the data. */
		bytes = 512 + (i == 5 ? 3 : 2) * PAGE;
		EXPECT_EQ(i ? BLK_STS_IOERR : BLK_STS_OK,
			  nvmep_build_pointers(&self->ctrl, &self->rq, &iter, bytes))
			TH_LOG("case %u", i);
		nvmep_prp_lists_free(&self->ctrl, &self->req.data);
	}
}

/* Nothing follows a range that is neither of a scatter list nor of segments. */
TEST_F(prp, single_ranges_that_are_too_short_are_refused)
{
	struct nvmep_dma_iter iter;
	unsigned int pages;

	for (pages = 1; pages < 4; pages++) {
		iter = (struct nvmep_dma_iter){ .address = 1ULL << 40, .left = pages * PAGE };
		EXPECT_EQ(pages == 3 ? BLK_STS_OK : BLK_STS_IOERR,
			  nvmep_build_pointers(&self->ctrl, &self->rq, &iter, 3 * PAGE));
		nvmep_prp_lists_free(&self->ctrl, &self->req.data);
	}
}

TEST_F(prp, sgl_is_for_long_contiguous_ranges_of_io_queues)
{
	struct nvmep_segment *segment = self->segments;
	struct nvmep_dma_iter iter;
	unsigned int pages, sgls, admin;
	bool expected;

	for (pages = 1; pages < 5; pages++)
		for (sgls = 0; sgls < 4; sgls++)
			for (admin = 0; admin < 2; admin++) {
				/* Four pages lie in two segments. */
				segment[0].length = min(pages, 3U) * PAGE;
				segment[0].dma = 1ULL << 40;
				segment[1] = (struct nvmep_segment){ .length = PAGE, .dma = 1ULL << 41 };
				self->ctrl.sgls = sgls;
				self->rq.q = admin ? self->ctrl.admin_q : NULL;
				memset(&self->req, 0, sizeof(self->req));
				nvmep_dma_iter_segment(&iter, segment, 0);
				ASSERT_EQ(BLK_STS_OK,
					  nvmep_build_pointers(&self->ctrl, &self->rq, &iter, pages * PAGE));
				expected = pages == 3 && sgls && !admin;
				EXPECT_EQ(expected ? NVME_CMD_SGL_METABUF : 0, self->req.sqe.common.flags);
				EXPECT_EQ(1ULL << 40, le64_to_cpu(self->req.sqe.common.dptr.prp1));
				if (expected)
					EXPECT_EQ(pages * PAGE, le64_to_cpu(self->req.sqe.common.dptr.prp2));
				nvmep_prp_lists_free(&self->ctrl, &self->req.data);
			}
}

/* One allocation holds the list of a ring; also with larger pages of the controller. */
TEST_F(prp, lists_of_rings)
{
	u32 page_size, per_page, pages, left, slot;
	size_t bytes;
	__le64 *list;
	u64 offset;

	for (page_size = PAGE; page_size <= 4 * PAGE; page_size *= 2) {
		self->ctrl.page_size = page_size;
		per_page = page_size / sizeof(u64);
		for (pages = 2; pages < MOST_PAGES; pages++) {
			cut(self->segments, pages, page_size);
			bytes = nvmep_prp_list_bytes(&self->ctrl, pages);
			list = malloc(bytes);
			nvmep_prp_list_fill(&self->ctrl, list, 1ULL << 32, self->segments, 0, pages);
			slot = 0;
			offset = 0;
			for (left = pages; left; left--, offset += page_size) {
				if (slot % per_page == per_page - 1 && left > 1) {
					ASSERT_EQ((1ULL << 32) + (slot + 1) * sizeof(u64),
						  le64_to_cpu(list[slot]));
					slot++;
				}
				ASSERT_LT(slot, bytes / sizeof(u64));
				ASSERT_EQ(address_in(self->segments, offset), le64_to_cpu(list[slot++]));
			}
			/* No page more than the entries and their pointers need. */
			ASSERT_GT(slot, bytes / sizeof(u64) - per_page);
			free(list);
		}
	}
}

TEST_HARNESS_MAIN
