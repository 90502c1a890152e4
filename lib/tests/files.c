// SPDX-License-Identifier: MIT OR GPL-2.0
/*
 * Unit tests of libnvmepeer without a kernel: what prevents a window on a file, from made-up
 * results of the kernel.
 */
#include <fcntl.h>
#include <linux/fs.h>
#include <linux/magic.h>
#include <string.h>
#include <sys/stat.h>

#include "../file.h"
#include "fake.h"

#include "kselftest_harness.h"

#define DISK "/sys/devices/pci0000:00/0000:00:02.0/0000:04:00.0/nvme-peer/nvmep3/nvmep3n2/nvmep3n2p1"

enum { MIB = 1 << 20 };

FIXTURE(files)
{
	struct file_facts facts;
	struct nvmepeer_file_info info;
	uint64_t at;
};

FIXTURE_SETUP(files)
{
	fake_reset();
	self->facts = (struct file_facts){
		.mode = S_IFREG | 0600,
		.bytes = MIB, .block = 4096,
		.open_flags = O_RDWR,
		.magic = EXT4_SUPER_MAGIC,
		.disk = DISK,
	};
	memset(&self->info, 0, sizeof(self->info));
	self->at = 0;
}

FIXTURE_TEARDOWN(files)
{
}

static uint32_t judge(FIXTURE_DATA(files) *self)
{
	memset(&self->info, 0, sizeof(self->info));
	file_judge(&self->facts, &self->info);
	return self->info.obstacles;
}

static void add(FIXTURE_DATA(files) *self, uint64_t logical, uint64_t length, uint32_t flags)
{
	struct fiemap_extent extent = { .fe_logical = logical, .fe_length = length, .fe_flags = flags };

	file_add_extent(&self->info, &self->at, &extent);
}

TEST_F(files, file_that_can_have_a_window)
{
	EXPECT_EQ(judge(self), 0);
	add(self, 0, MIB / 2, 0);
	add(self, MIB / 2, MIB / 2, FIEMAP_EXTENT_LAST);
	file_judge_extents(&self->info, self->at);
	EXPECT_EQ(self->info.obstacles, 0);
	EXPECT_EQ(self->info.extents, 2);
	EXPECT_EQ(self->info.bytes, MIB);
	EXPECT_STREQ(self->info.file_system, "ext4");
	EXPECT_STREQ(self->info.disk, "nvmep3n2p1");
	EXPECT_STREQ(self->info.controller, "nvmep3");
}

/* Each fact alone. */
TEST_F(files, facts_that_prevent_a_window)
{
	static const struct {
		uint32_t inode_flag;
		uint32_t obstacle;
	} flags[] = {
		{ FS_IMMUTABLE_FL, NVMEPEER_FILE_IMMUTABLE }, { FS_APPEND_FL, NVMEPEER_FILE_APPEND_ONLY },
		{ FS_ENCRYPT_FL, NVMEPEER_FILE_ENCRYPTED }, { FS_COMPR_FL, NVMEPEER_FILE_COMPRESSED },
		{ FS_VERITY_FL, NVMEPEER_FILE_VERITY }, { FS_DAX_FL, NVMEPEER_FILE_DAX },
		{ FS_JOURNAL_DATA_FL, NVMEPEER_FILE_JOURNALLED }, { FS_INLINE_DATA_FL, NVMEPEER_FILE_INLINE },
		{ FS_EXTENT_FL | FS_NOATIME_FL, 0 },
	};
	const struct file_facts good = self->facts;
	size_t i;

	for (i = 0; i < ARRAY_SIZE(flags); i++) {
		self->facts.inode_flags = flags[i].inode_flag;
		EXPECT_EQ(judge(self), flags[i].obstacle);
	}
	self->facts = good;
	self->facts.mode = S_IFDIR;
	self->facts.open_flags = O_RDONLY;
	EXPECT_EQ(judge(self), NVMEPEER_FILE_NOT_REGULAR);
	self->facts = good;
	self->facts.open_flags = O_WRONLY;
	EXPECT_EQ(judge(self), NVMEPEER_FILE_READ_ONLY);
	self->facts = good;
	self->facts.not_owner = true;
	EXPECT_EQ(judge(self), NVMEPEER_FILE_NOT_OWNER);
	self->facts = good;
	self->facts.dax = true;
	EXPECT_EQ(judge(self), NVMEPEER_FILE_DAX);
	self->facts = good;
	self->facts.data_journal = true;
	EXPECT_EQ(judge(self), NVMEPEER_FILE_JOURNALLED);
	self->facts = good;
	self->facts.bytes = 0;
	EXPECT_EQ(judge(self), NVMEPEER_FILE_EMPTY);
	self->facts.bytes = 4095;
	EXPECT_EQ(judge(self), NVMEPEER_FILE_EMPTY);
	self->facts.bytes = 4096;
	EXPECT_EQ(judge(self), 0);
	self->facts = good;
	self->facts.magic = XFS_SUPER_MAGIC;
	EXPECT_EQ(judge(self), 0);
	EXPECT_STREQ(self->info.file_system, "xfs");
	self->facts.magic = BTRFS_SUPER_MAGIC;
	EXPECT_EQ(judge(self), NVMEPEER_FILE_SYSTEM);
	EXPECT_STREQ(self->info.file_system, "btrfs");
	self->facts.magic = 0x12345678;
	EXPECT_EQ(judge(self), NVMEPEER_FILE_SYSTEM);
	EXPECT_STREQ(self->info.file_system, "0x12345678");
}

TEST_F(files, disks)
{
	static const struct {
		const char *folder;
		uint32_t obstacle;
		const char *disk;
		const char *controller;
	} disks[] = {
		{ "/sys/devices/a/nvme-peer/nvmep0/nvmep0n1", 0, "nvmep0n1", "nvmep0" },
		{ "/sys/devices/a/nvme-peer/nvmep12/nvmep12n3/nvmep12n3p4", 0, "nvmep12n3p4", "nvmep12" },
		{ "/sys/devices/a/nvme/nvme0/nvme0n1", NVMEPEER_FILE_OTHER_DISK, "nvme0n1", "" },
		{ "/sys/devices/virtual/block/dm-0", NVMEPEER_FILE_OTHER_DISK, "dm-0", "" },
		{ "", NVMEPEER_FILE_NO_DISK, "", "" },
	};
	size_t i;

	for (i = 0; i < ARRAY_SIZE(disks); i++) {
		strcpy(self->facts.disk, disks[i].folder);
		EXPECT_EQ(judge(self), disks[i].obstacle);
		EXPECT_STREQ(self->info.disk, disks[i].disk);
		EXPECT_STREQ(self->info.controller, disks[i].controller);
	}
}

TEST_F(files, extents_that_prevent_a_window)
{
	static const struct {
		uint32_t flags;
		uint32_t obstacles;
	} extents[] = {
		{ FIEMAP_EXTENT_UNWRITTEN, NVMEPEER_FILE_UNWRITTEN },
		{ FIEMAP_EXTENT_SHARED, NVMEPEER_FILE_SHARED },
		{ FIEMAP_EXTENT_UNKNOWN | FIEMAP_EXTENT_DELALLOC, NVMEPEER_FILE_UNPLACED },
		{ FIEMAP_EXTENT_NOT_ALIGNED | FIEMAP_EXTENT_DATA_INLINE,
		  NVMEPEER_FILE_UNPLACED | NVMEPEER_FILE_INLINE },
		{ FIEMAP_EXTENT_ENCODED | FIEMAP_EXTENT_DATA_ENCRYPTED,
		  NVMEPEER_FILE_COMPRESSED | NVMEPEER_FILE_ENCRYPTED },
		{ FIEMAP_EXTENT_MERGED | FIEMAP_EXTENT_LAST, 0 },
	};
	size_t i;

	for (i = 0; i < ARRAY_SIZE(extents); i++) {
		judge(self);
		self->at = 0;
		add(self, 0, MIB, extents[i].flags);
		file_judge_extents(&self->info, self->at);
		EXPECT_EQ(self->info.obstacles, extents[i].obstacles);
	}
}

TEST_F(files, holes_and_unwritten_bytes_are_counted)
{
	judge(self);
	add(self, 4096, 8192, 0);
	add(self, 16384, 4096, FIEMAP_EXTENT_UNWRITTEN);
	file_judge_extents(&self->info, self->at);
	EXPECT_EQ(self->info.obstacles, NVMEPEER_FILE_HOLES | NVMEPEER_FILE_UNWRITTEN);
	EXPECT_EQ(self->info.holes, 4096 + 4096 + MIB - 20480);
	EXPECT_EQ(self->info.unwritten, 4096);
	EXPECT_EQ(self->info.extents, 2);
}

/* Blocks that were allocated beyond the end of the file. */
TEST_F(files, extents_beyond_the_end_do_not_count)
{
	self->facts.bytes = 5000;
	judge(self);
	add(self, 0, 8192, 0);
	add(self, 8192, MIB, FIEMAP_EXTENT_UNWRITTEN);
	file_judge_extents(&self->info, self->at);
	EXPECT_EQ(self->info.obstacles, 0);
	EXPECT_EQ(self->info.extents, 1);
}

TEST_F(files, every_obstacle_has_a_name_and_a_fix)
{
	struct nvmepeer_explanation why;
	uint32_t bit;

	for (bit = 1; bit <= NVMEPEER_FILE_UNWRITTEN; bit <<= 1) {
		EXPECT_STRNE(nvmepeer_file_obstacle_name(bit), "unknown");
		ASSERT_EQ(nvmepeer_file_explain(&self->info, bit, &why, sizeof(why)), 0);
		EXPECT_NE(why.limit[0], 0);
		EXPECT_NE(why.help[0], 0);
	}
	EXPECT_STREQ(nvmepeer_file_obstacle_name(bit), "unknown");
	EXPECT_EQ(nvmepeer_file_explain(&self->info, bit, &why, sizeof(why)), -EINVAL);
	EXPECT_EQ(nvmepeer_file_explain(&self->info, 3, &why, sizeof(why)), -EINVAL);
	EXPECT_STREQ(nvmepeer_file_obstacle_name(NVMEPEER_FILE_UNWRITTEN), "unwritten");
}

TEST_F(files, fix_names_the_driver_of_the_disk)
{
	struct nvmepeer_explanation why;

	strcpy(self->info.disk, "nvme0n1p1");
	ASSERT_EQ(nvmepeer_file_explain(&self->info, NVMEPEER_FILE_OTHER_DISK, &why, sizeof(why)), 0);
	EXPECT_NE(strstr(why.help, "nvme-peer bind"), NULL);
	strcpy(self->info.disk, "dm-0");
	ASSERT_EQ(nvmepeer_file_explain(&self->info, NVMEPEER_FILE_OTHER_DISK, &why, sizeof(why)), 0);
	EXPECT_EQ(strstr(why.help, "nvme-peer bind"), NULL);
	EXPECT_NE(strstr(why.limit, "dm-0"), NULL);
}

/* ---- nvmepeer_file_open() --------------------------------------------------- */

FIXTURE(window)
{
	struct nvmepeer *ctrl;
	struct nvmepeer_qp *qp;
	struct nvme_peer_window_add add;
	struct nvmepeer_explanation why;
};

FIXTURE_SETUP(window)
{
	struct nvme_peer_qp_create request = { .sq_entries = 64, .mode = NVME_PEER_MODE_MEDIATED };

	fake_reset();
	ASSERT_EQ(nvmepeer_open("nvmep0", &self->ctrl), 0);
	ASSERT_EQ(nvmepeer_qp_create(self->ctrl, &request, sizeof(request), &self->qp), 0);
	memset(&self->add, 0, sizeof(self->add));
}

FIXTURE_TEARDOWN(window)
{
	nvmepeer_qp_destroy(self->qp);
	nvmepeer_close(self->ctrl);
}

TEST_F(window, missing_file)
{
	fake.open_error = ENOENT;
	EXPECT_EQ(nvmepeer_file_open(self->qp, "/mnt/file", &self->add, sizeof(self->add)), -ENOENT);
	EXPECT_EQ(nvmepeer_explain(&self->why, sizeof(self->why)), -ENOENT);
	EXPECT_NE(strstr(self->why.help, "nvme-peer file prepare"), NULL);
	EXPECT_NE(strstr(self->why.what, "/mnt/file"), NULL);
	EXPECT_EQ(nvmepeer_file_open(self->qp, "/mnt/file", &self->add, 8), -EINVAL);
}

/* The file of the fake kernel is none of the kernel's. */
TEST_F(window, descriptor_that_cannot_be_checked)
{
	int files = fake.open_files;

	EXPECT_EQ(nvmepeer_file_open(self->qp, "/mnt/file", &self->add, sizeof(self->add)), -EBADF);
	EXPECT_EQ(nvmepeer_explain(&self->why, sizeof(self->why)), -EBADF);
	EXPECT_STREQ(self->why.call, "nvmepeer_file_check");
	EXPECT_EQ(fake.open_files, files);
}

TEST_HARNESS_MAIN
