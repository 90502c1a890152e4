// SPDX-License-Identifier: GPL-2.0-only
/*
 * Commands up to QEMU's maximum transfer size, which fill a page of PRP list, at every
 * kind of offset in a page: all bytes arrive at the right place.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "nptest.h"
#include "kselftest_harness.h"

#define MOST_PAGES	512U
#define MOST_BYTES	(MOST_PAGES * NP_PAGE)
#define ROOM		((size_t)(MOST_PAGES + 2) * NP_PAGE)
/*
 * The block layer maps at most this much at once and joins the next part only if that
 * starts at a page: a longer request from the middle of a page is EINVAL with any driver.
 */
#define MOST_JOINED	(256U * NP_PAGE)

FIXTURE(transfer)
{
	struct np_ctrl ctrl;
	int generic;
	uint8_t *bytes;
	uint8_t *back;
};

/* Small pages, so that few of them are contiguous. */
static uint8_t *scattered(void)
{
	uint8_t *bytes = mmap(NULL, ROOM, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS,
			      -1, 0);

	if (bytes != MAP_FAILED)
		madvise(bytes, ROOM, MADV_NOHUGEPAGE);
	return bytes;
}

FIXTURE_SETUP(transfer)
{
	ASSERT_EQ(0, np_ctrl_open(&self->ctrl, np_spare_or("np1")));
	np_spare_needs(self->ctrl.info.max_transfer == MOST_BYTES, "commands of up to 2 MiB");
	ASSERT_EQ(MOST_BYTES, self->ctrl.info.max_transfer);
	self->generic = np_open_node(&self->ctrl, "/dev/ngp%dn1", O_RDWR);
	ASSERT_LE(0, self->generic);
	self->bytes = scattered();
	self->back = scattered();
	ASSERT_NE(MAP_FAILED, (void *)self->bytes);
	ASSERT_NE(MAP_FAILED, (void *)self->back);
}

FIXTURE_TEARDOWN(transfer)
{
	munmap(self->bytes, ROOM);
	munmap(self->back, ROOM);
	close(self->generic);
	np_ctrl_close(&self->ctrl);
}

static int transfer(int generic, uint8_t opcode, void *bytes, uint32_t length)
{
	struct nvme_passthru_cmd64 cmd = {
		.opcode = opcode,
		.nsid = 1,
		.addr = (uintptr_t)bytes,
		.data_len = length,
		.cdw10 = NP_AREA(3) / NP_BLOCK,
		.cdw12 = length / NP_BLOCK - 1,
	};

	return np_ioctl(generic, NVME_IOCTL_IO64_CMD, &cmd);
}

static void check_length(struct __test_metadata *_metadata, FIXTURE_DATA(transfer) *self,
			 uint32_t length, uint32_t offset)
{
	uint32_t i;

	/*
	 * Each page contains its number, and each block the request it was written for.
	 */
	for (i = 0; i < length; i += NP_BLOCK) {
		memset(self->bytes + offset + i, (uint8_t)(length / NP_PAGE + i / NP_BLOCK), NP_BLOCK);
		memcpy(self->bytes + offset + i, &i, sizeof(i));
	}
	ASSERT_EQ(0, transfer(self->generic, NVMEPEER_OP_WRITE, self->bytes + offset, length)) {
		TH_LOG("%u bytes, offset %u", length, offset);
	}
	memset(self->back, 0xee, ROOM);
	ASSERT_EQ(0, transfer(self->generic, NVMEPEER_OP_READ, self->back + offset, length));
	EXPECT_EQ(0, memcmp(self->bytes + offset, self->back + offset, length)) {
		TH_LOG("%u bytes, offset %u", length, offset);
	}
	EXPECT_EQ(0xee, self->back[offset + length]);
	if (offset)
		EXPECT_EQ(0xee, self->back[offset - 1]);
}

/* One or two pages need no list; from three pages on each one is a list entry. */
TEST_F_TIMEOUT(transfer, prp_list_boundary, 120)
{
	uint32_t pages;

	for (pages = 1; pages <= 4; pages++) {
		check_length(_metadata, self, pages * NP_PAGE, 0);
		check_length(_metadata, self, pages * NP_PAGE, NP_BLOCK);
		check_length(_metadata, self, pages * NP_PAGE - NP_BLOCK, NP_BLOCK);
	}
}

/* PRP 1 points to the first page; the others take 511 of a list's 512 entries. */
TEST_F_TIMEOUT(transfer, maximum_transfer_boundary, 120)
{
	check_length(_metadata, self, MOST_BYTES - NP_PAGE, 0);
	check_length(_metadata, self, MOST_BYTES, 0);
	check_length(_metadata, self, MOST_JOINED - NP_PAGE, NP_BLOCK);
	check_length(_metadata, self, MOST_JOINED - NP_PAGE, 7 * NP_BLOCK);
	EXPECT_GT(0, transfer(self->generic, NVMEPEER_OP_READ, self->back, MOST_BYTES + NP_BLOCK));
}

TEST_F_TIMEOUT(transfer, block_device_transfers, 120)
{
	uint32_t length = MOST_BYTES;
	int disk = np_open_node(&self->ctrl, "/dev/nvmep%dn1", O_RDWR | O_DIRECT);

	ASSERT_LE(0, disk);
	np_pattern(self->bytes, length, NP_AREA(4), 9);
	EXPECT_EQ(0, np_disk_write(disk, self->bytes, length, NP_AREA(4)));
	EXPECT_EQ(0, np_disk_read(disk, self->back, length, NP_AREA(4)));
	EXPECT_EQ(0, memcmp(self->bytes, self->back, length));
	close(disk);
}

TEST_HARNESS_MAIN
