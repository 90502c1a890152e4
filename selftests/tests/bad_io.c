// SPDX-License-Identifier: GPL-2.0-only
/*
 * I/O on badctrl without injected faults: data is transferred unchanged, also with PRP
 * lists of more than one page; and what survives a power cut.
 *
 * iommu: on off
 */
#include <errno.h>
#include <fcntl.h>
#include <linux/fs.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/uio.h>
#include <unistd.h>

#include "npbad.h"
#include "kselftest_harness.h"

#define LARGEST		(8U << 20)
#define MDTS		77		/* byte offset in Identify Controller */
#define NS_DEALLOCATE	33		/* byte offset in Identify Namespace */
#define STATUS_COMPARE	(NVME_STATUS_DNR | NVME_SC_COMPARE_FAILED)

FIXTURE(bad_io)
{
	struct np_bad bad;
	uint8_t *bytes;
	uint8_t *back;
};

FIXTURE_SETUP(bad_io)
{
	if (np_bad_open(&self->bad) == -ENOENT)
		SKIP(return, "no badctrl in this guest");
	ASSERT_EQ(0, posix_memalign((void **)&self->bytes, NP_PAGE, LARGEST + NP_PAGE));
	ASSERT_EQ(0, posix_memalign((void **)&self->back, NP_PAGE, LARGEST + NP_PAGE));
	ASSERT_EQ(0, np_bad_identify(&self->bad, NVME_CNS_CONTROLLER, MDTS, 0));
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

TEST_F(bad_io, block_write_reads_back)
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

/* PRP lists of five pages, then PRP 1 with an offset into the page. */
TEST_F(bad_io, passthrough_write_reads_back)
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
		ASSERT_EQ(0, passthrough(&self->bad, NVMEPEER_OP_WRITE, bytes, length));
		ASSERT_EQ(0, passthrough(&self->bad, NVMEPEER_OP_READ, back, length));
		EXPECT_EQ(0, memcmp(bytes, back, length));
		/* Compare succeeds, and fails if one byte differs. */
		EXPECT_EQ(0, passthrough(&self->bad, NVMEPEER_OP_COMPARE, back, length));
		back[length - 1]++;
		EXPECT_EQ(STATUS_COMPARE,
			  passthrough(&self->bad, NVMEPEER_OP_COMPARE, back, length));
	}
}

/* Write Zeroes and discard change exactly the blocks that they name. */
TEST_F(bad_io, write_zeroes_and_discard)
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

/*
 * The block layer's default of the longest request holds: a controller without a limit does
 * not raise it to the driver's.
 */
TEST_F(bad_io, longest_request_is_the_kernels_default)
{
	static const char *const names[] = { "max_hw_sectors_kb", "max_sectors_kb" };
	char path[64], text[32];
	unsigned long limits[2];
	int i;

	for (i = 0; i < 2; i++) {
		snprintf(path, sizeof(path), "/sys/block/nvmep%dn1/queue/%s",
			 self->bad.ctrl.instance, names[i]);
		ASSERT_EQ(0, np_read_file(path, text, sizeof(text)));
		limits[i] = strtoul(text, NULL, 10);
	}
	EXPECT_EQ(LARGEST >> 10, limits[0]);
	EXPECT_GE(4096, limits[1]);
}

/* --- flags of commands -------------------------------------------------------------- */

#define EVENT	NP_TRACE "events/nvme_peer/nvmep_submit/"

static int trace_begin(void)
{
	return np_clear_trace() ?: np_write_file(EVENT "enable", "1");
}

/* Traced commands with this opcode and dword 12. */
static int count_commands(const struct np_bad *bad, uint8_t opcode, uint32_t dword12)
{
	char start[48], by_opcode[24], by_dword[24];
	const char *const texts[] = { start, by_opcode, by_dword, NULL };

	snprintf(start, sizeof(start), "nvmep_submit: nvmep%d ", bad->ctrl.instance);
	snprintf(by_opcode, sizeof(by_opcode), " opcode=%#x ", opcode);
	snprintf(by_dword, sizeof(by_dword), " cdw12=%#x\n", dword12);
	return np_count_trace(NP_TRACE "trace", texts);
}

/* The controller need not try hard to read data that may not be wanted: Limited Retry. */
TEST_F(bad_io, readahead_has_limited_retry)
{
	int disk;

	if (access(EVENT, F_OK))
		SKIP(return, "kernel without trace events");
	disk = np_open_node(&self->bad.ctrl, "/dev/nvmep%dn1", O_RDONLY);
	ASSERT_LE(0, disk);
	ASSERT_EQ(0, trace_begin());
	EXPECT_EQ(0, np_disk_read(self->bad.disk, self->back, NP_PAGE, 0));
	EXPECT_EQ(0, posix_fadvise(disk, 1 << 20, 2 * NP_PAGE, POSIX_FADV_WILLNEED));
	EXPECT_EQ(NP_PAGE, pread(disk, self->back, NP_PAGE, 1 << 20));
	EXPECT_EQ(0, np_write_file(EVENT "enable", "0"));
	EXPECT_EQ(1, count_commands(&self->bad, NVMEPEER_OP_READ, 7));
	EXPECT_EQ(1, count_commands(&self->bad, NVMEPEER_OP_READ, 1U << 31 | 15));
	close(disk);
}

/* DEAC: blocks whose deallocation the user permits, if they are zeros then. */
TEST_F(bad_io, write_zeroes_deallocates_if_permitted)
{
	static const struct {
		uint8_t features;
		uint32_t flag;
	} cases[] = { { 0x09, 1U << 25 }, { 0x08, 0 } };
	uint64_t range[2] = { NP_PAGE, 2 * NP_PAGE };
	int i;

	if (access(EVENT, F_OK))
		SKIP(return, "kernel without trace events");
	for (i = 0; i < 2; i++) {
		ASSERT_EQ(0, np_bad_unbind(&self->bad));
		ASSERT_EQ(0, np_bad_identify(&self->bad, NVME_CNS_NAMESPACE, NS_DEALLOCATE,
					     cases[i].features));
		ASSERT_EQ(0, np_bad_bind(&self->bad, 1));
		ASSERT_EQ(0, trace_begin());
		EXPECT_EQ(0, np_ioctl(self->bad.disk, BLKZEROOUT, range));
		EXPECT_EQ(0, fallocate(self->bad.disk, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE,
				       NP_PAGE, NP_PAGE));
		EXPECT_EQ(0, np_write_file(EVENT "enable", "0"));
		EXPECT_EQ(1, count_commands(&self->bad, NVMEPEER_OP_WRITE_ZEROES, 15));
		EXPECT_EQ(1, count_commands(&self->bad, NVMEPEER_OP_WRITE_ZEROES,
					    cases[i].flag | 7));
	}
}

/* --- power cut -------------------------------------------------------------------- */

static int write_page(struct np_bad *bad, uint8_t *bytes, uint64_t offset, uint8_t value, int flags)
{
	struct iovec vector = { .iov_base = memset(bytes, value, NP_PAGE), .iov_len = NP_PAGE };

	return pwritev2(bad->disk, &vector, 1, (off_t)offset, flags) == NP_PAGE ? 0 : -errno;
}

/* The value of all bytes of a page, -1 if they differ. */
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
 * The unflushed page must be lost, which shows that badctrl drops its cache. Each direct
 * write through the block device node would be followed by a flush; that flush is held.
 */
TEST_F(bad_io, fua_write_is_durable)
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

TEST_F(bad_io, flush_is_durable)
{
	EXPECT_EQ(0, write_page(&self->bad, self->bytes, 0, 3, 0));
	EXPECT_EQ(0, fsync(self->bad.disk));
	EXPECT_EQ(0, write_page(&self->bad, self->bytes, NP_PAGE, 4, 0));
	ASSERT_EQ(0, np_bad_cut_power(&self->bad));
	EXPECT_EQ(3, read_page(&self->bad, self->back, 0));
	EXPECT_EQ(0, read_page(&self->bad, self->back, NP_PAGE));
}

/* Unbind flushes: a power cut after it loses nothing. */
TEST_F(bad_io, unbind_flushes_cache)
{
	EXPECT_EQ(0, write_page(&self->bad, self->bytes, 0, 5, 0));
	ASSERT_EQ(0, np_bad_unbind(&self->bad));
	ASSERT_EQ(0, np_bad_cut_power(&self->bad));
	ASSERT_EQ(0, np_bad_bind(&self->bad, 1));
	EXPECT_EQ(5, read_page(&self->bad, self->back, 0));
}

TEST_HARNESS_MAIN
