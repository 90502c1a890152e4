// SPDX-License-Identifier: GPL-2.0-only
/*
 * The controller that misbehaves on command, while it behaves: data goes
 * through, in transfers whose PRP lists fill more than a page too.
 *
 * iommu: on off
 */
#include <errno.h>
#include <fcntl.h>
#include <linux/fs.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/uio.h>
#include <unistd.h>

#include "badknob.h"
#include "kselftest_harness.h"

#define LARGEST		(8U << 20)
#define MDTS		77		/* in Identify Controller */
#define CMD_COMPARE	0x05
#define STATUS_COMPARE	(NP_STATUS_DNR | 0x285)

FIXTURE(bad_io)
{
	struct np_bad bad;
	uint8_t *bytes;
	uint8_t *back;
};

FIXTURE_SETUP(bad_io)
{
	if (np_bad_open(&self->bad) == -ENOENT)
		SKIP(return, "no misbehaving controller in this guest");
	ASSERT_EQ(0, posix_memalign((void **)&self->bytes, NP_PAGE, LARGEST + NP_PAGE));
	ASSERT_EQ(0, posix_memalign((void **)&self->back, NP_PAGE, LARGEST + NP_PAGE));
	ASSERT_EQ(0, np_bad_identify(&self->bad, 1, MDTS, 0));
	ASSERT_EQ(0, np_bad_bind(&self->bad, 1));
}

FIXTURE_TEARDOWN(bad_io)
{
	if (!self->bad.address[0])
		return;
	EXPECT_EQ(0, np_bad_close(&self->bad));
	free(self->bytes);
	free(self->back);
}

TEST_F(bad_io, keeps_what_was_written)
{
	static const uint32_t sizes[] = { 512, 4096, 8192, 12288, 128 << 10, 1 << 20 };
	size_t i;

	for (i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
		np_pattern(self->bytes, sizes[i], 0, (uint32_t)i);
		ASSERT_EQ(0, np_disk_write(self->bad.disk, self->bytes, sizes[i], 4096 * i));
		memset(self->back, 0xee, sizes[i]);
		ASSERT_EQ(0, np_disk_read(self->bad.disk, self->back, sizes[i], 4096 * i));
		EXPECT_EQ(0, memcmp(self->bytes, self->back, sizes[i]));
	}
	EXPECT_EQ(0, fsync(self->bad.disk));
}

static int passthrough(struct np_bad *bad, uint8_t opcode, void *bytes, uint32_t length)
{
	struct nvme_passthru_cmd command = {
		.opcode = opcode,
		.nsid = 1,
		.addr = (uintptr_t)bytes,
		.data_len = length,
		.cdw12 = length / NP_BLOCK - 1,
	};

	return np_ioctl(bad->generic, NVME_IOCTL_IO_CMD, &command);
}

/* PRP lists of five pages, then PRP 1 in mid-page. */
TEST_F(bad_io, keeps_what_passthrough_wrote)
{
	static const struct {
		uint32_t offset;
		uint32_t length;
	} ranges[] = { { 0, LARGEST }, { NP_BLOCK, (1U << 20) - NP_BLOCK } };
	size_t i;

	ASSERT_EQ(LARGEST, self->bad.ctrl.info.max_transfer);
	for (i = 0; i < 2; i++) {
		uint8_t *bytes = self->bytes + ranges[i].offset;
		uint8_t *back = self->back + ranges[i].offset;
		uint32_t length = ranges[i].length;

		np_pattern(bytes, length, 0, (uint32_t)i);
		ASSERT_EQ(0, passthrough(&self->bad, NP_CMD_WRITE, bytes, length));
		ASSERT_EQ(0, passthrough(&self->bad, NP_CMD_READ, back, length));
		EXPECT_EQ(0, memcmp(bytes, back, length));
		/* The controller's own comparison agrees, and finds a byte that differs. */
		EXPECT_EQ(0, passthrough(&self->bad, CMD_COMPARE, back, length));
		back[length - 1]++;
		EXPECT_EQ(STATUS_COMPARE, passthrough(&self->bad, CMD_COMPARE, back, length));
	}
}

/* Zeroing and discarding reach the blocks they name and no others. */
TEST_F(bad_io, zeroes)
{
	static const unsigned long requests[] = { BLKZEROOUT, BLKDISCARD };
	uint64_t range[2] = { NP_PAGE, NP_PAGE };
	int i;

	for (i = 0; i < 2; i++) {
		memset(self->bytes, 0x5a, 3 * NP_PAGE);
		ASSERT_EQ(0, np_disk_write(self->bad.disk, self->bytes, 3 * NP_PAGE, 0));
		ASSERT_EQ(0, np_ioctl(self->bad.disk, requests[i], range));
		ASSERT_EQ(0, np_disk_read(self->bad.disk, self->back, 3 * NP_PAGE, 0));
		memset(self->bytes + NP_PAGE, 0, NP_PAGE);
		EXPECT_EQ(0, memcmp(self->bytes, self->back, 3 * NP_PAGE));
	}
}

/* --- what a power cut leaves ------------------------------------------------------ */

static int write_page(struct np_bad *bad, uint8_t *bytes, uint64_t offset, uint8_t value, int flags)
{
	struct iovec vector = { .iov_base = memset(bytes, value, NP_PAGE), .iov_len = NP_PAGE };

	return pwritev2(bad->disk, &vector, 1, (off_t)offset, flags) == NP_PAGE ? 0 : -errno;
}

/* The value of a page, -1 if it has several. */
static int read_page(struct np_bad *bad, uint8_t *bytes, uint64_t offset)
{
	if (np_disk_read(bad->disk, bytes, NP_PAGE, offset) ||
	    memcmp(bytes, bytes + 1, NP_PAGE - 1))
		return -1;
	return bytes[0];
}

static void *write_through(void *argument)
{
	FIXTURE_DATA(bad_io) *self = argument;

	return (void *)(intptr_t)write_page(&self->bad, self->bytes, NP_PAGE, 2, RWF_DSYNC);
}

/*
 * That the rest is lost shows that the controller loses what may be lost.  A disk that is
 * written through its node is flushed after every such write: that flush is held.
 */
TEST_F(bad_io, writes_through_its_cache)
{
	pthread_t thread;
	void *result;

	EXPECT_EQ(0, write_page(&self->bad, self->bytes, 0, 1, 0));
	ASSERT_EQ(0, np_bad_rule(&self->bad, 0, NP_IO_FLUSH, BADCTRL_HOLD, 0, 1));
	ASSERT_EQ(0, pthread_create(&thread, NULL, write_through, self));
	ASSERT_EQ(0, np_bad_wait_word(&self->bad, BADCTRL_HELD, 1));
	ASSERT_EQ(0, np_bad_cut_power(&self->bad));
	EXPECT_EQ(0, np_bad_set(&self->bad, BADCTRL_RELEASE, 1));
	pthread_join(thread, &result);
	EXPECT_EQ(NULL, result);
	EXPECT_EQ(0, read_page(&self->bad, self->back, 0));
	EXPECT_EQ(2, read_page(&self->bad, self->back, NP_PAGE));
}

TEST_F(bad_io, flushes_its_cache)
{
	EXPECT_EQ(0, write_page(&self->bad, self->bytes, 0, 3, 0));
	EXPECT_EQ(0, fsync(self->bad.disk));
	EXPECT_EQ(0, write_page(&self->bad, self->bytes, NP_PAGE, 4, 0));
	ASSERT_EQ(0, np_bad_cut_power(&self->bad));
	EXPECT_EQ(3, read_page(&self->bad, self->back, 0));
	EXPECT_EQ(0, read_page(&self->bad, self->back, NP_PAGE));
}

/* Who takes it away afterwards loses nothing. */
TEST_F(bad_io, flushes_its_cache_when_it_is_unbound)
{
	EXPECT_EQ(0, write_page(&self->bad, self->bytes, 0, 5, 0));
	ASSERT_EQ(0, np_bad_unbind(&self->bad));
	ASSERT_EQ(0, np_bad_cut_power(&self->bad));
	ASSERT_EQ(0, np_bad_bind(&self->bad, 1));
	EXPECT_EQ(5, read_page(&self->bad, self->back, 0));
}

TEST_HARNESS_MAIN
