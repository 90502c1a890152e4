// SPDX-License-Identifier: GPL-2.0-only
/*
 * The segments of kmod/peer/import.c, compiled for user space: what the addresses of a mapping become
 * for commands and rings. Random scatter lists, cut and joined anywhere, are compared with a model that
 * knows the address of each page; guests see only the lists that their exporters make.
 */
#include <stdlib.h>
#include <string.h>

#include "kernel/segments.h"
/* That part of the file, which the Makefile extracts. */
#include "segments.inc"

#include "kselftest_harness.h"

#define PAGE		4096U
#define MOST_ENTRIES	24
#define MOST_PAGES	96U
#define ROUNDS		20000

bool kernel_warned;
static unsigned int lists, walks, killed_at;
static bool no_memory;

/* What is behind each list must not be read as a segment. */
#define BEHIND		0x123U

void *kvcalloc(size_t count, size_t size, int flags)
{
	struct nvmep_segment *list;

	(void)flags;
	if (no_memory)
		return NULL;
	lists++;
	list = calloc(count + 1, size);
	if (list)
		list[count].dma = BEHIND;
	return list;
}

void kvfree(void *memory)
{
	lists -= memory ? 1 : 0;
	free(memory);
}

/* A fatal signal arrives during step @killed_at. */
int nvmep_walk_resched(void)
{
	return ++walks == killed_at ? -EINTR : 0;
}

FIXTURE(segments)
{
	struct device dev;
	struct nvmep_ctrl ctrl;
	struct scatterlist sg[MOST_ENTRIES];
	struct sg_table table;
	struct nvmep_segments read;
	/* The model: the address of each page of the mapping. */
	dma_addr_t pages[MOST_PAGES];
	unsigned int page_count;
};

FIXTURE_SETUP(segments)
{
	srand(1);
	self->dev = (struct device){ .coherent = true };
	self->ctrl = (struct nvmep_ctrl){ .dev = &self->dev, .page_size = PAGE };
}

FIXTURE_TEARDOWN(segments)
{
	nvmep_segments_free(&self->read);
	EXPECT_EQ(0, lists);
	EXPECT_FALSE(kernel_warned);
}

/* Read a range into self->read. */
#define read_range(offset, length) ({							\
	nvmep_segments_free(&self->read);						\
	self->read = (struct nvmep_segments){ };					\
	nvmep_segments_read(&self->read, &self->ctrl, &self->table, offset, length);	\
})

/* A mapping of two entries that are not adjacent, of @first and 4 pages. */
static void map_two(struct scatterlist *sg, struct sg_table *table, unsigned int first)
{
	sg[0] = (struct scatterlist){ .address = 1ULL << 32, .length = first * PAGE, .next = &sg[1] };
	sg[1] = (struct scatterlist){ .address = 1ULL << 40, .length = 4 * PAGE };
	table->sgl = sg;
}

/* Entries of random lengths; half of them continue the previous one. */
static unsigned int map_randomly(struct scatterlist *sg, struct sg_table *table, dma_addr_t *pages)
{
	unsigned int entries = 1 + (unsigned int)rand() % MOST_ENTRIES, count = 0, length, i, page;

	for (i = 0; i < entries; i++) {
		length = 1 + (unsigned int)rand() % 4;
		sg[i] = (struct scatterlist){
			.address = i && rand() % 2 ? sg[i - 1].address + sg[i - 1].length :
						     (u64)(rand() % 64 + 1) << 32,
			.length = length * PAGE,
			.next = i + 1 < entries ? &sg[i + 1] : NULL,
		};
		for (page = 0; page < length; page++)
			pages[count++] = sg[i].address + page * PAGE;
	}
	table->sgl = sg;
	return count;
}

/* @segments are @count pages of the model, and no two of them could be one. */
static bool are_pages(const struct nvmep_segments *segments, const dma_addr_t *pages, unsigned int count)
{
	const struct nvmep_segment *segment = segments->list;
	unsigned int i, page = 0;
	u64 at;

	for (i = 0; i < segments->count; i++, segment++) {
		if (segment->offset != (u64)page * PAGE || !segment->length)
			return false;
		if (i && segment[-1].dma + segment[-1].length == segment->dma)
			return false;
		for (at = 0; at < segment->length; at += PAGE, page++)
			if (page == count || pages[page] != segment->dma + at)
				return false;
	}
	return page == count && segments->length == (u64)count * PAGE;
}

/* Each byte at the edges of pages is found in the segment that holds it. */
static bool are_found(const struct nvmep_segments *segments)
{
	const struct nvmep_segment *segment;
	u64 offset;

	for (offset = 0; offset < segments->length; offset += offset % PAGE ? 1 : PAGE - 1) {
		segment = nvmep_segments_find(segments, offset);
		if (segment < segments->list || segment >= segments->list + segments->count ||
		    offset < segment->offset || offset - segment->offset >= segment->length)
			return false;
	}
	return true;
}

TEST_F(segments, each_range_of_random_mappings)
{
	unsigned int round, first, count;

	for (round = 0; round < ROUNDS; round++) {
		self->page_count = map_randomly(self->sg, &self->table, self->pages);
		first = (unsigned int)rand() % self->page_count;
		count = 1 + (unsigned int)rand() % (self->page_count - first);
		ASSERT_EQ(0, read_range((u64)first * PAGE, (u64)count * PAGE));
		ASSERT_TRUE(are_pages(&self->read, self->pages + first, count))
			TH_LOG("round %u: %u pages at %u", round, count, first);
		ASSERT_TRUE(are_found(&self->read))
			TH_LOG("round %u: %u pages at %u", round, count, first);
		/* To the end of the mapping. */
		ASSERT_EQ(0, read_range((u64)first * PAGE, 0));
		ASSERT_TRUE(are_pages(&self->read, self->pages + first, self->page_count - first));
	}
}

TEST_F(segments, ranges_that_exceed_the_mapping_are_refused)
{
	map_two(self->sg, &self->table, 1);
	EXPECT_EQ(0, read_range(0, 5 * PAGE));
	EXPECT_EQ(-ERANGE, read_range(0, 6 * PAGE));
	EXPECT_EQ(-ERANGE, read_range(0, 5 * PAGE + 1));
	EXPECT_EQ(-ERANGE, read_range(PAGE, 5 * PAGE));
	EXPECT_EQ(-ERANGE, read_range(5 * PAGE, 0));
	EXPECT_EQ(-ERANGE, read_range(5 * PAGE, PAGE));
	EXPECT_EQ(-ERANGE, read_range(1ULL << 60, 0));
	/* The end overflows. */
	EXPECT_EQ(-ERANGE, read_range(PAGE, U64_MAX));
	EXPECT_EQ(-ERANGE, read_range(PAGE, U64_MAX - PAGE + 1));
	EXPECT_EQ(-ERANGE, read_range(U64_MAX, PAGE));
}

TEST_F(segments, empty_mapping_is_refused)
{
	self->table.sgl = NULL;
	EXPECT_EQ(-EINVAL, read_range(0, 0));
	EXPECT_EQ(-ERANGE, read_range(0, PAGE));
	EXPECT_EQ(-ERANGE, read_range(PAGE, 0));
	self->sg[0] = (struct scatterlist){ .address = PAGE };
	self->table.sgl = self->sg;
	EXPECT_EQ(-EINVAL, read_range(0, 0));
}

/* The first entry continues nothing, wherever it lies. */
TEST_F(segments, mapping_at_address_0)
{
	self->sg[0] = (struct scatterlist){ .length = PAGE };
	self->table.sgl = self->sg;
	ASSERT_EQ(0, read_range(0, 0));
	EXPECT_EQ(1, self->read.count);
	EXPECT_EQ(PAGE, self->read.length);
}

/* Pages of the controller may be larger than those of the mapping. */
TEST_F(segments, parts_of_pages_are_refused)
{
	u32 page_size;

	for (page_size = PAGE; page_size <= 4 * PAGE; page_size *= 2) {
		self->ctrl.page_size = page_size;
		map_two(self->sg, &self->table, 4);
		EXPECT_EQ(0, read_range(0, 0));
		/* Begins, ends, or meets the next one inside a page. */
		EXPECT_EQ(-EINVAL, read_range(page_size / 2, 0));
		EXPECT_EQ(-EINVAL, read_range(0, 8 * PAGE - page_size / 2));
		self->sg[0].length -= page_size / 2;
		EXPECT_EQ(-EINVAL, read_range(0, 0));
		self->sg[0].address += page_size / 2;
		EXPECT_EQ(-EINVAL, read_range(0, 0));
		map_two(self->sg, &self->table, 4);
		self->sg[1].address += page_size / 2;
		EXPECT_EQ(-EINVAL, read_range(0, 0));
		/* Whole pages in one segment, of entries that are not. */
		map_two(self->sg, &self->table, 4);
		self->sg[0].length -= 512;
		self->sg[1].length += 512;
		self->sg[1].address = self->sg[0].address + self->sg[0].length;
		EXPECT_EQ(0, read_range(0, 0));
		EXPECT_EQ(1, self->read.count);
	}
}

TEST_F(segments, memory_that_needs_syncs_is_refused)
{
	map_two(self->sg, &self->table, 2);
	self->dev.bounces = self->sg[0].address;
	EXPECT_EQ(-EOPNOTSUPP, read_range(0, 0));
	self->dev.bounces = self->sg[1].address;
	EXPECT_EQ(-EOPNOTSUPP, read_range(0, 0));
	/* Outside the range. */
	EXPECT_EQ(0, read_range(0, 2 * PAGE));
	self->dev.bounces = BEHIND;
	EXPECT_EQ(0, read_range(0, 0));
	self->dev.bounces = self->sg[1].address;
	/* Behind an IOMMU whole pages never bounce. */
	self->dev.translated = true;
	EXPECT_EQ(0, read_range(0, 0));
	self->dev.coherent = false;
	EXPECT_EQ(-EOPNOTSUPP, read_range(0, 0));
}

/* Both passes over the two entries can be interrupted. */
TEST_F(segments, fatal_signal_ends_the_walk)
{
	map_two(self->sg, &self->table, 2);
	for (killed_at = 1; killed_at <= 4; killed_at++) {
		walks = 0;
		EXPECT_EQ(-EINTR, read_range(0, 0));
		EXPECT_EQ(killed_at, walks);
	}
	killed_at = 0;
}

TEST_F(segments, failed_allocation_leaves_nothing_behind)
{
	map_two(self->sg, &self->table, 2);
	no_memory = true;
	EXPECT_EQ(-ENOMEM, read_range(0, 0));
	EXPECT_EQ(NULL, self->read.list);
	no_memory = false;
}

TEST_HARNESS_MAIN
