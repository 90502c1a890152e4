// SPDX-License-Identifier: GPL-2.0-only
/*
 * Block I/O on several long contiguous pieces of memory, by one request and by requests that
 * the block layer merges.
 *
 * iommu: on off
 * timeout: 60
 */
#include <errno.h>
#include <fcntl.h>
#include <liburing.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/uio.h>
#include <unistd.h>

#include "nptest.h"
#include "kselftest_harness.h"

#define HUGE		(2U << 20)
#define AREA		(4 * HUGE)
#define PIECES		64

FIXTURE(long_segments)
{
	struct np_ctrl ctrl;
	int block;
	uint8_t *bytes;
};

/* np0 has commands of 512 KiB, np1 of 2 MiB. */
FIXTURE_VARIANT(long_segments)
{
	const char *name;
	uint32_t most;
};

FIXTURE_VARIANT_ADD(long_segments, short_commands)
{
	.name = "np0",
	.most = 512 << 10,
};

FIXTURE_VARIANT_ADD(long_segments, long_commands)
{
	.name = "np1",
	.most = 2 << 20,
};

/* The physical address of a page, 0 if there is none. */
static uint64_t physical(const uint8_t *page)
{
	int file = open("/proc/self/pagemap", O_RDONLY | O_CLOEXEC);
	uint64_t entry = 0;

	if (pread(file, &entry, sizeof(entry), (uintptr_t)page / NP_PAGE * sizeof(entry)) !=
	    sizeof(entry))
		entry = 0;
	close(file);
	return (entry & ((1ULL << 55) - 1)) * NP_PAGE;
}

static bool is_contiguous(const uint8_t *bytes)
{
	uint64_t first = physical(bytes);
	uint32_t at;

	for (at = 0; at < HUGE; at += NP_PAGE)
		if (!first || physical(bytes + at) != first + at)
			return false;
	return true;
}

FIXTURE_SETUP(long_segments)
{
	uint32_t at;

	ASSERT_EQ(0, np_ctrl_open(&self->ctrl, np_spare_or(variant->name)));
	self->block = np_open_node(&self->ctrl, "/dev/nvmep%dn1", O_RDWR | O_DIRECT);
	ASSERT_LE(0, self->block);
	ASSERT_EQ(0, posix_memalign((void **)&self->bytes, HUGE, AREA));
	madvise(self->bytes, AREA, MADV_HUGEPAGE);
	for (at = 0; at < AREA; at += NP_PAGE)
		self->bytes[at] = 1;
	for (at = 0; at < AREA; at += HUGE)
		if (!is_contiguous(self->bytes + at))
			SKIP(return, "no huge pages");
}

FIXTURE_TEARDOWN(long_segments)
{
	free(self->bytes);
	close(self->block);
	np_ctrl_close(&self->ctrl);
}

/*
 * The same bytes by pieces of @length with as much memory between them, backwards, and by
 * one contiguous piece.
 */
static int compare(FIXTURE_DATA(long_segments) *self, uint32_t length, uint32_t count,
		   uint32_t skip)
{
	uint8_t *whole = self->bytes + AREA - HUGE;
	uint32_t total = length * count, i;
	struct iovec pieces[PIECES] = {};
	uint8_t *back;

	for (i = 0; i < count; i++) {
		back = self->bytes + 2 * length * (count - 1 - i);
		pieces[i] = (struct iovec){ .iov_base = back, .iov_len = length };
	}
	/* The first piece may begin, and the last one end, in a page. */
	pieces[0].iov_base = (uint8_t *)pieces[0].iov_base + skip;
	pieces[0].iov_len -= skip;
	pieces[count - 1].iov_len -= skip;
	total -= 2 * skip;
	for (i = 0; i < count; i++)
		np_pattern(pieces[i].iov_base, pieces[i].iov_len, i, 7 + i);
	memset(whole, 0, total);
	if (pwritev(self->block, pieces, count, 0) != total ||
	    np_disk_read(self->block, whole, total, 0))
		return -EIO;
	for (back = whole, i = 0; i < count; back += pieces[i].iov_len, i++)
		if (memcmp(back, pieces[i].iov_base, pieces[i].iov_len))
			return -EBADMSG;
	for (i = 0; i < count; i++)
		memset(pieces[i].iov_base, 0, pieces[i].iov_len);
	if (preadv(self->block, pieces, count, 0) != total)
		return -EIO;
	for (back = whole, i = 0; i < count; back += pieces[i].iov_len, i++)
		if (memcmp(back, pieces[i].iov_base, pieces[i].iov_len))
			return -EILSEQ;
	return 0;
}

TEST_F(long_segments, data_is_where_it_belongs)
{
	static const uint32_t lengths[] = { 16 << 10, 32 << 10, 64 << 10, 128 << 10 };
	uint32_t i, count;

	for (i = 0; i < ARRAY_SIZE(lengths); i++)
		for (count = 1; count * lengths[i] <= variant->most && count <= PIECES;
		     count *= 2) {
			EXPECT_EQ(0, compare(self, lengths[i], count, 0)) {
				TH_LOG("%u pieces of %u bytes", count, lengths[i]);
			}
			EXPECT_EQ(0, compare(self, lengths[i], count, 512)) {
				TH_LOG("%u pieces of %u bytes, unaligned", count, lengths[i]);
			}
		}
}

/* --- merged requests --------------------------------------------------------------- */

#define MERGED		4
#define STEP		(64U << 10)

static unsigned long merges(const struct np_ctrl *ctrl)
{
	unsigned long count = 0;
	char path[64], text[256];

	snprintf(path, sizeof(path), "/sys/block/nvmep%dn1/stat", ctrl->instance);
	if (!np_read_file(path, text, sizeof(text)))
		sscanf(text, "%*u %lu", &count);
	return count;
}

/* Adjacent reads in one submission, each into its place of the memory. */
static int read_merged(FIXTURE_DATA(long_segments) *self, const uint32_t places[MERGED])
{
	struct io_uring_cqe *cqe;
	struct io_uring ring;
	int i, ret = io_uring_queue_init(MERGED, &ring, 0);

	if (ret)
		return ret;
	for (i = 0; i < MERGED; i++)
		io_uring_prep_read(io_uring_get_sqe(&ring), self->block,
				   self->bytes + places[i] * STEP, STEP, i * STEP);
	if (io_uring_submit(&ring) != MERGED)
		ret = -EIO;
	for (i = 0; i < MERGED && !ret; i++) {
		ret = io_uring_wait_cqe(&ring, &cqe);
		if (!ret && cqe->res != (int)STEP)
			ret = cqe->res < 0 ? cqe->res : -EIO;
		io_uring_cqe_seen(&ring, cqe);
	}
	io_uring_queue_exit(&ring);
	return ret;
}

TEST_F(long_segments, merged_reads)
{
	static const uint32_t places[][MERGED] = {
		{ 0, 1, 2, 3 }, { 3, 2, 1, 0 }, { 0, 1, 3, 4 }, { 0, 2, 3, 4 }, { 1, 2, 3, 0 },
	};
	uint8_t *whole = self->bytes + AREA - HUGE;
	unsigned long before;
	uint32_t i, k;

	np_pattern(whole, MERGED * STEP, 0, 11);
	ASSERT_EQ(0, np_disk_write(self->block, whole, MERGED * STEP, 0));
	for (i = 0; i < ARRAY_SIZE(places); i++) {
		memset(self->bytes, 0, HUGE);
		before = merges(&self->ctrl);
		ASSERT_EQ(0, read_merged(self, places[i]));
		EXPECT_LT(before, merges(&self->ctrl));
		for (k = 0; k < MERGED; k++)
			EXPECT_EQ(0, memcmp(whole + k * STEP, self->bytes + places[i][k] * STEP,
					    STEP)) {
				TH_LOG("order %u, piece %u", i, k);
			}
	}
}

TEST_HARNESS_MAIN
