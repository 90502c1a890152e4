// SPDX-License-Identifier: GPL-2.0-only
/*
 * Windows of mediated queue pairs on files of ext4 and XFS: data of scattered files, what is refused
 * before and while a file is pinned, and what stops commands. A short run has ext4 only, as file_random and
 * file_power use both.
 *
 * kernels: 7
 * long-kernels: 6.1 6.12 7 debug kcsan
 * iommu: on
 * timeout: 450
 * arguments: -v ext4
 * long-arguments: -v ext4 -v xfs
 */
#include <errno.h>
#include <fcntl.h>
#include <linux/blkpg.h>
#include <linux/capability.h>
#include <linux/fs.h>
#include <linux/nvme_ioctl.h>
#include <linux/userfaultfd.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/swap.h>
#include <sys/syscall.h>
#include <sys/utsname.h>
#include <sys/wait.h>
#include <unistd.h>

#include "nptest.h"
#include "tenant.h"
#include "kselftest_harness.h"

#define ENTRIES		16U
#define NOT_READY	0x082
#define ABORT_REQUESTED	0x007

/* The file "data" has extents of one block of the file system. */
#define BYTES		NP_PAGE
#define PIECES		48U
#define LENGTH		(PIECES * BYTES)
#define PIECE		(BYTES / NP_BLOCK)

/* The file system is on a partition. */
#define START		(3ULL << 20)
#define SIZE		(64ULL << 20)

#define MOUNT		"/tmp/np-files"
#define DATA		MOUNT "/data"
#define OTHER		MOUNT "/other"

FIXTURE(files)
{
	struct np_ctrl ctrl;
	char before[NP_OBJECTS];
	char disk[64];
	int whole;
	struct np_qp qp;
	struct np_memory memory;
	int file;
	int other;
	uint32_t window;
	struct nvme_peer_extents *extents;
};

FIXTURE_VARIANT(files)
{
	const char *type;
	const char *make;
	const char *check;
	unsigned int flags;
};

FIXTURE_VARIANT_ADD(files, ext4)
{
	.type = "ext4",
	.make = "mkfs.ext4 -qF -b 4096 -J size=4 -O inline_data -E nodiscard,lazy_itable_init=0 %s",
	.check = "e2fsck -fn %s >/tmp/np-fsck 2>&1",
	.flags = FS_EXTENT_FL,
};

FIXTURE_VARIANT_ADD(files, xfs)
{
	.type = "xfs",
	.make = "mkfs.xfs -qfK --unsupported -m reflink=1 %s",
	.check = "xfs_repair -n %s >/tmp/np-fsck 2>&1",
};

static bool is_xfs(const FIXTURE_VARIANT(files) *variant)
{
	return !strcmp(variant->type, "xfs");
}

static int run(const char *format, const char *value)
{
	char command[512];

	snprintf(command, sizeof(command), format, value);
	return system(command);
}

static int change_partition(int disk, int operation, uint64_t bytes)
{
	struct blkpg_partition partition = { .start = START, .length = (long long)bytes, .pno = 1 };
	struct blkpg_ioctl_arg argument = {
		.op = operation,
		.datalen = sizeof(partition),
		.data = &partition,
	};

	return np_ioctl(disk, BLKPG, &argument);
}

FIXTURE_SETUP(files)
{
	if (run("modprobe -q %s", variant->type))
		SKIP(return, "no %s in this kernel", variant->type);
	np_qp_set_mode(NVME_PEER_MODE_MEDIATED);
	ASSERT_EQ(0, np_ctrl_open(&self->ctrl, "np1"));
	ASSERT_EQ(0, np_objects(&self->ctrl, self->before));
	snprintf(self->disk, sizeof(self->disk), "/dev/nvmep%dn1p1", self->ctrl.instance);
	self->whole = np_open_node(&self->ctrl, "/dev/nvmep%dn1", O_RDWR);
	ASSERT_LE(0, self->whole);
	np_partition_remove(self->whole);
	ASSERT_EQ(0, change_partition(self->whole, BLKPG_ADD_PARTITION, SIZE));
	ASSERT_EQ(0, run(variant->make, self->disk));
	ASSERT_EQ(0, run("mkdir -p " MOUNT " && mount %s " MOUNT, self->disk));
	ASSERT_EQ(0, np_make_scattered(DATA, PIECES));
	self->file = open(DATA, O_RDWR);
	ASSERT_LE(0, self->file);
	ASSERT_EQ(PIECES, np_count_extents(self->file));
	ASSERT_EQ(0, np_qp_open(&self->qp, self->ctrl.fd, ENTRIES));
	ASSERT_EQ(0, np_memory_alloc(&self->memory, self->ctrl.fd));
	ASSERT_EQ(0, np_buf_add(&self->qp, self->memory.fd, 0, &self->memory.slot));
	ASSERT_EQ(0, np_window_add(&self->qp, self->file, 0, 0, &self->window));
}

/* The probe of long_extents_take_few_calls. */
static void remove_bmap(void)
{
	if (access(NP_TRACE "events/kprobes/np_bmap", F_OK))
		return;
	np_write_file(NP_TRACE "events/kprobes/np_bmap/enable", "0");
	np_write_file(NP_TRACE "kprobe_events", "-:np_bmap");
}

FIXTURE_TEARDOWN(files)
{
	remove_bmap();
	np_qp_close(&self->qp);
	np_memory_free(&self->memory);
	close(self->file);
	if (self->other)
		close(self->other);
	EXPECT_EQ(0, np_unmount(MOUNT));
	EXPECT_EQ(0, run(variant->check, self->disk));
	EXPECT_EQ(0, np_partition_remove(self->whole));
	close(self->whole);
	EXPECT_EQ(0, np_objects_wait(&self->ctrl, self->before, NP_TIMEOUT_MS));
	np_ctrl_close(&self->ctrl);
}

static int command_on(FIXTURE_DATA(files) *self, uint8_t opcode, uint32_t lba, uint32_t blocks,
		      uint64_t offset)
{
	struct np_command command =
		np_window_command(opcode, self->window, lba, blocks, self->memory.slot, offset);

	return np_qp_run(&self->qp, &command, NP_TIMEOUT_MS);
}

static int write_piece(FIXTURE_DATA(files) *self)
{
	return command_on(self, NVMEPEER_OP_WRITE, 0, PIECE, 0);
}

static int read_piece(FIXTURE_DATA(files) *self)
{
	return command_on(self, NVMEPEER_OP_READ, 0, PIECE, 0);
}

/* What the file system reads from the disk. */
static int pread_direct(void *bytes, uint32_t length, uint64_t offset)
{
	int file = open(DATA, O_RDONLY | O_DIRECT), ret = 0;

	if (pread(file, bytes, length, (off_t)offset) != (ssize_t)length)
		ret = -EIO;
	close(file);
	return ret;
}

static int map_shared(int file, int protection)
{
	void *map = mmap(NULL, BYTES, protection, MAP_SHARED, file, 0);

	if (map == MAP_FAILED)
		return -1;
	munmap(map, BYTES);
	return 0;
}

/*
 * A call that removes the last window of a file, or refuses it, waits until the file is writable, for a
 * second at most. One that took long need not have waited for so long: the kernel's clock may have stood
 * still.
 */
#define QUICK_MS	100

/* Waits for what a call that began then need not have waited for. Some files cannot be mapped. */
static void wait_released(int file, int64_t began)
{
	int64_t end = np_now_ms() + NP_TIMEOUT_MS / 4;

	if (np_now_ms() - began < QUICK_MS)
		return;
	while (map_shared(file, PROT_READ | PROT_WRITE) && np_now_ms() < end)
		np_sleep_ms(10);
}

static int remove_last(const struct np_qp *qp, uint32_t window, int file)
{
	int64_t began = np_now_ms();
	int ret = np_window_remove(qp, window);

	wait_released(file, began);
	return ret;
}

/* Adds a window on a file that has none; it is to be refused. */
static int try_add(const struct np_qp *qp, int file, uint64_t first, uint64_t blocks)
{
	int64_t began = np_now_ms();
	int ret = np_window_add(qp, file, first, blocks, NULL);

	if (ret)
		wait_released(file, began);
	return ret;
}

/* --- data ----------------------------------------------------------------- */

TEST_F(files, data_is_that_of_the_file)
{
	uint8_t *bytes = self->memory.bytes;
	uint8_t *copy = aligned_alloc(NP_PAGE, LENGTH);
	struct nvme_peer_window_info info;
	uint32_t round, lba, blocks;

	ASSERT_EQ(0, np_window_info(&self->qp, self->window, &info));
	EXPECT_EQ(LENGTH / NP_BLOCK, info.blocks);
	EXPECT_EQ(NP_BLOCK, info.block_size);
	EXPECT_EQ(NVME_PEER_RIGHT_READ | NVME_PEER_RIGHT_WRITE, info.rights);
	ASSERT_EQ(0, command_on(self, NVMEPEER_OP_READ, 0, LENGTH / NP_BLOCK, 0));
	ASSERT_EQ(0, pread_direct(copy, LENGTH, 0));
	EXPECT_EQ(0, memcmp(copy, bytes, LENGTH));
	for (round = 0; round < 64; round++) {
		lba = round * 29 % (LENGTH / NP_BLOCK);
		blocks = 1 + round * 37 % (LENGTH / NP_BLOCK - lba);
		np_pattern(bytes, LENGTH, lba, round);
		memcpy(copy + lba * NP_BLOCK, bytes, blocks * NP_BLOCK);
		ASSERT_EQ(0, command_on(self, NVMEPEER_OP_WRITE, lba, blocks, 0));
		memset(bytes, 0xee, LENGTH);
		ASSERT_EQ(0, command_on(self, NVMEPEER_OP_READ, 0, LENGTH / NP_BLOCK, 0));
		ASSERT_EQ(0, memcmp(copy, bytes, LENGTH)) TH_LOG("%u: %u + %u", round, lba, blocks);
	}
	ASSERT_EQ(0, pread_direct(bytes, LENGTH, 0));
	EXPECT_EQ(0, memcmp(copy, bytes, LENGTH));
	free(copy);
}

/* A part may begin where a segment of the buffer ends: both have pages of their own. */
TEST_F(files, data_in_scattered_memory)
{
	uint8_t *bytes = self->memory.bytes, *copy = malloc(LENGTH);
	int fd = np_test_export(LENGTH / NP_PAGE, NVMEP_TEST_SCATTERED);
	const uint32_t own = self->memory.slot;
	uint32_t slot, round;

	ASSERT_LE(0, fd);
	ASSERT_EQ(0, np_buf_add(&self->qp, fd, 0, &slot));
	for (round = 0; round < 2; round++) {
		np_pattern(bytes, LENGTH, 0, 50 + round);
		memcpy(copy, bytes, LENGTH);
		ASSERT_EQ(0, command_on(self, NVMEPEER_OP_WRITE, 0, LENGTH / NP_BLOCK, 0));
		self->memory.slot = slot;
		ASSERT_EQ(0, command_on(self, NVMEPEER_OP_READ, 0, LENGTH / NP_BLOCK, 0));
		self->memory.slot = own;
		ASSERT_EQ(0, command_on(self, NVMEPEER_OP_WRITE_ZEROES, 0, LENGTH / NP_BLOCK, 0));
		self->memory.slot = slot;
		ASSERT_EQ(0, command_on(self, NVMEPEER_OP_WRITE, 0, LENGTH / NP_BLOCK, 0));
		/* From the middle of a segment to that of the next one. */
		ASSERT_EQ(0, command_on(self, NVMEPEER_OP_WRITE, 5 * PIECE / 2, PIECE, 5 * BYTES / 2));
		self->memory.slot = own;
		ASSERT_EQ(0, command_on(self, NVMEPEER_OP_READ, 0, LENGTH / NP_BLOCK, 0));
		EXPECT_EQ(0, memcmp(copy, bytes, LENGTH));
	}
	EXPECT_EQ(0, np_buf_remove(&self->qp, slot));
	close(fd);
	free(copy);
}

TEST_F(files, zeroes_and_flush)
{
	struct np_command flush = { .opcode = NVMEPEER_OP_FLUSH, .nsid = self->window };
	uint8_t *copy = aligned_alloc(NP_PAGE, LENGTH);
	uint32_t i;

	ASSERT_EQ(0, command_on(self, NVMEPEER_OP_WRITE_ZEROES, PIECE / 2, 3 * PIECE, 0));
	ASSERT_EQ(0, np_qp_run(&self->qp, &flush, NP_TIMEOUT_MS));
	ASSERT_EQ(0, pread_direct(copy, LENGTH, 0));
	for (i = 0; i < 3 * BYTES; i++)
		if (copy[BYTES / 2 + i])
			break;
	EXPECT_EQ(3 * BYTES, i);
	free(copy);
}

TEST_F(files, cached_pages_are_invalidated)
{
	uint8_t *copy = malloc(LENGTH);
	uint32_t round;

	for (round = 0; round < 32; round++) {
		ASSERT_EQ(LENGTH, pread(self->file, copy, LENGTH, 0));
		np_pattern(self->memory.bytes, LENGTH, 0, round + 500);
		ASSERT_EQ(0, command_on(self, NVMEPEER_OP_WRITE, 0, LENGTH / NP_BLOCK, 0));
		ASSERT_EQ(LENGTH, pread(self->file, copy, LENGTH, 0));
		ASSERT_EQ(0, memcmp(copy, self->memory.bytes, LENGTH)) TH_LOG("%u", round);
	}
	free(copy);
}

TEST_F(files, commands_stay_in_the_window)
{
	uint32_t end = LENGTH / NP_BLOCK, id;

	EXPECT_EQ(LBA_RANGE, command_on(self, NVMEPEER_OP_WRITE, end, 1, 0));
	EXPECT_EQ(LBA_RANGE, command_on(self, NVMEPEER_OP_READ, end - 1, 2, 0));
	EXPECT_EQ(0, command_on(self, NVMEPEER_OP_READ, end - 1, 1, 0));
	EXPECT_EQ(-ERANGE, np_window_add(&self->qp, self->file, end + 1, 0, NULL));
	EXPECT_EQ(-EINVAL, np_window_add(&self->qp, self->file, end, 0, NULL));
	ASSERT_EQ(0, np_window_add(&self->qp, self->file, 3, PIECE, &id));
	np_pattern(self->memory.bytes, BYTES, 0, 9);
	ASSERT_EQ(0, command_on(self, NVMEPEER_OP_WRITE, 3, PIECE, 0));
	self->window = id;
	ASSERT_EQ(0, command_on(self, NVMEPEER_OP_READ, 0, PIECE, BYTES));
	EXPECT_EQ(0, memcmp(self->memory.bytes, self->memory.bytes + BYTES, BYTES));
	EXPECT_EQ(LBA_RANGE, command_on(self, NVMEPEER_OP_READ, 1, PIECE, 0));
}

/* --- refused files -------------------------------------------------------- */

static int add_path(FIXTURE_DATA(files) *self, const char *path, int flags)
{
	int file = open(path, flags, 0600), ret;

	if (file < 0)
		return -ENOENT;
	ret = try_add(&self->qp, file, 0, 0);
	close(file);
	return ret;
}

/* A refused file is not pinned. */
static int still_writable(const char *path)
{
	int file = open(path, O_RDWR), ret = pwrite(file, "x", 1, 0) == 1 ? 0 : -errno;

	close(file);
	return ret;
}

static bool becomes_writable(const char *path)
{
	int64_t end = np_now_ms() + NP_TIMEOUT_MS;

	while (still_writable(path) && np_now_ms() < end)
		np_sleep_ms(10);
	return !still_writable(path);
}

static int set_flags(const FIXTURE_VARIANT(files) *variant, const char *path, unsigned int flags)
{
	int file = open(path, O_RDONLY), ret;

	flags |= variant->flags;
	ret = ioctl(file, FS_IOC_SETFLAGS, &flags) ? -errno : 0;
	close(file);
	return ret;
}

TEST_F(files, holes_and_unwritten_extents_are_refused)
{
	int file = self->other = open(OTHER, O_RDWR | O_CREAT, 0600);

	EXPECT_EQ(-EINVAL, try_add(&self->qp, file, 0, 0));
	ASSERT_EQ(0, ftruncate(file, LENGTH));
	EXPECT_EQ(-ENODATA, try_add(&self->qp, file, 0, 0));
	ASSERT_EQ(0, fallocate(file, 0, 0, LENGTH));
	EXPECT_EQ(-ENODATA, try_add(&self->qp, file, 0, 0));
	ASSERT_EQ(BYTES, pwrite(file, self->memory.bytes, BYTES, 0));
	EXPECT_EQ(-ENODATA, try_add(&self->qp, file, 0, 0));
	/* Only the blocks of the window matter. */
	EXPECT_EQ(0, np_window_add(&self->qp, file, 0, PIECE, NULL));
}

/* The blocks around it are where they would be without it. */
TEST_F(files, hole_in_the_middle_is_refused)
{
	int file, mode = FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE;

	ASSERT_EQ(0, np_make_file(OTHER, LENGTH));
	self->other = file = open(OTHER, O_RDWR);
	ASSERT_EQ(1, np_count_extents(file));
	ASSERT_EQ(0, fallocate(file, mode, LENGTH / 2, BYTES));
	EXPECT_EQ(-ENODATA, try_add(&self->qp, file, 0, 0));
	EXPECT_EQ(0, np_window_add(&self->qp, file, 0, LENGTH / 2 / NP_BLOCK, NULL));
}

TEST_F(files, other_files_are_refused)
{
	struct np_ctrl ctrl;
	struct np_qp other;

	EXPECT_EQ(-ENOTBLK, add_path(self, "/tmp/np-other", O_RDWR | O_CREAT));
	EXPECT_EQ(-ENOTBLK, add_path(self, MOUNT, O_RDONLY | O_DIRECTORY));
	ASSERT_EQ(0, np_make_file(OTHER, LENGTH));
	EXPECT_EQ(-EACCES, add_path(self, OTHER, O_RDONLY));
	EXPECT_EQ(0, still_writable(OTHER));
	unlink("/tmp/np-other");
	/* It is on the disk of another controller. */
	ASSERT_EQ(0, np_ctrl_open(&ctrl, "np0"));
	ASSERT_EQ(0, np_qp_open(&other, ctrl.fd, ENTRIES));
	EXPECT_EQ(-EXDEV, np_window_add(&other, self->file, 0, 0, NULL));
	np_qp_close(&other);
	np_ctrl_close(&ctrl);
}

TEST_F(files, attributes_that_are_refused)
{
	int file;

	ASSERT_EQ(0, np_make_file(OTHER, LENGTH));
	self->other = file = open(OTHER, O_RDWR);
	if (!is_xfs(variant)) {
		ASSERT_EQ(0, np_make_file(MOUNT "/inline", 20));
		EXPECT_EQ(-ENODATA, add_path(self, MOUNT "/inline", O_RDWR));
		ASSERT_EQ(0, set_flags(variant, OTHER, FS_JOURNAL_DATA_FL));
		EXPECT_EQ(-EMEDIUMTYPE, try_add(&self->qp, file, 0, 0));
		ASSERT_EQ(0, set_flags(variant, OTHER, 0));
		EXPECT_EQ(0, still_writable(OTHER));
	}
	ASSERT_EQ(0, set_flags(variant, OTHER, FS_IMMUTABLE_FL));
	EXPECT_EQ(-EPERM, try_add(&self->qp, file, 0, 0));
	ASSERT_EQ(0, set_flags(variant, OTHER, FS_APPEND_FL));
	EXPECT_EQ(-EPERM, try_add(&self->qp, file, 0, 0));
	ASSERT_EQ(0, set_flags(variant, OTHER, 0));
	EXPECT_EQ(0, np_window_add(&self->qp, file, 0, 0, NULL));
}

/* Pages of its files are written to the journal first. */
TEST_F(files, journal_of_data_is_refused)
{
	if (is_xfs(variant))
		SKIP(return, "XFS has no journal of data");
	ASSERT_EQ(0, np_window_remove(&self->qp, self->window));
	close(self->file);
	ASSERT_EQ(0, np_unmount(MOUNT));
	ASSERT_EQ(0, run("mount -o data=journal %s " MOUNT, self->disk));
	self->file = open(DATA, O_RDWR);
	EXPECT_EQ(-EMEDIUMTYPE, try_add(&self->qp, self->file, 0, 0));
}

static int change_capability(unsigned int capability, bool effective)
{
	struct __user_cap_header_struct header = { .version = _LINUX_CAPABILITY_VERSION_3 };
	struct __user_cap_data_struct data[2];

	if (syscall(SYS_capget, &header, data))
		return -errno;
	data[0].effective &= ~(1U << capability);
	data[0].effective |= (uint32_t)effective << capability;
	return syscall(SYS_capset, &header, data) ? -errno : 0;
}

/* Of those that a change of the effective user has cleared. */
static int raise_capability(unsigned int capability)
{
	return change_capability(capability, true);
}

TEST_F(files, file_of_another_owner_is_refused)
{
	uint32_t id;
	int file;

	ASSERT_EQ(0, np_make_file(OTHER, LENGTH));
	ASSERT_EQ(0, chown(OTHER, 1000, 1000));
	self->other = file = open(OTHER, O_RDWR);
	ASSERT_EQ(0, seteuid(1001));
	EXPECT_EQ(-EACCES, try_add(&self->qp, file, 0, 0));
	ASSERT_EQ(0, raise_capability(CAP_LEASE));
	EXPECT_EQ(0, np_window_add(&self->qp, file, 0, 0, &id));
	ASSERT_EQ(0, seteuid(0));
	EXPECT_EQ(0, np_window_remove(&self->qp, id));
	ASSERT_EQ(0, seteuid(1000));
	EXPECT_EQ(0, np_window_add(&self->qp, file, 0, 0, &id));
	ASSERT_EQ(0, seteuid(0));
	EXPECT_EQ(0, np_window_remove(&self->qp, id));
	EXPECT_EQ(0, np_window_add(&self->qp, file, 0, 0, NULL));
}

TEST_F(files, file_in_use_is_refused)
{
	uint8_t *map;
	int file;

	ASSERT_EQ(0, run("dd if=/dev/zero of=%1$s bs=4k count=64 status=none && chmod 600 %1$s &&"
			 " mkswap -q %1$s && sync", OTHER));
	self->other = file = open(OTHER, O_RDWR);
	map = mmap(NULL, BYTES, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
	ASSERT_NE(MAP_FAILED, map);
	EXPECT_EQ(-EBUSY, try_add(&self->qp, file, 0, 0));
	munmap(map, BYTES);
	ASSERT_EQ(0, swapon(OTHER, 0));
	EXPECT_EQ(-ETXTBSY, np_window_add(&self->qp, file, 0, 0, NULL));
	/* Still in use. */
	EXPECT_EQ(-1, write(file, "x", 1));
	ASSERT_EQ(0, swapoff(OTHER));
	EXPECT_EQ(0, np_window_add(&self->qp, file, 0, 0, NULL));
	EXPECT_EQ(-1, swapon(OTHER, 0));
	EXPECT_EQ(EBUSY, errno);
}

/* --- while a file is pinned ----------------------------------------------- */

/* The errno of a call that fails, else 0. */
static int error_of(int ret)
{
	return ret < 0 ? errno : 0;
}

/* Exchanges blocks of two files. */
static bool exchange(const FIXTURE_VARIANT(files) *variant, int file, int donor)
{
	struct move_extent move = { .donor_fd = (uint32_t)donor, .len = 1 };

	if (is_xfs(variant))
		return !run("xfs_io -c 'swapext " OTHER "' %s 2>&1 | cmp -s - /dev/null", DATA);
	return !ioctl(file, EXT4_IOC_MOVE_EXT, &move);
}

TEST_F(files, changes_of_the_blocks_are_refused)
{
	int donor, mode = FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE;

	ASSERT_EQ(0, np_make_file(OTHER, LENGTH));
	self->other = donor = open(OTHER, O_RDWR);
	EXPECT_EQ(ETXTBSY, error_of(pwrite(self->file, "x", 1, 0)));
	EXPECT_EQ(ETXTBSY, error_of(ftruncate(self->file, BYTES)));
	EXPECT_EQ(ETXTBSY, error_of(fallocate(self->file, mode, 0, BYTES)));
	EXPECT_EQ(ETXTBSY, error_of(map_shared(self->file, PROT_READ | PROT_WRITE)));
	/* mprotect() could allow stores later. */
	EXPECT_EQ(EPERM, error_of(map_shared(self->file, PROT_READ)));
	EXPECT_EQ(EPERM, error_of(unlink(DATA)));
	EXPECT_EQ(EPERM, error_of(rename(OTHER, DATA)));
	EXPECT_EQ(EPERM, error_of(rename(DATA, OTHER)));
	EXPECT_FALSE(exchange(variant, self->file, donor));
	EXPECT_NE(0, ioctl(self->file, FICLONE, donor));
	EXPECT_NE(0, ioctl(donor, FICLONE, self->file));
	EXPECT_EQ(0, read_piece(self));
	ASSERT_EQ(0, remove_last(&self->qp, self->window, self->file));
	EXPECT_TRUE(exchange(variant, self->file, donor));
	EXPECT_EQ(1, pwrite(self->file, "x", 1, 0));
	EXPECT_EQ(0, map_shared(self->file, PROT_READ | PROT_WRITE));
	EXPECT_EQ(0, fallocate(self->file, mode, 0, BYTES));
	EXPECT_EQ(is_xfs(variant) ? 0 : -1, ioctl(donor, FICLONE, self->file));
	EXPECT_EQ(0, ftruncate(self->file, BYTES));
	EXPECT_EQ(0, rename(OTHER, DATA));
}

TEST_F(files, shared_blocks_are_refused)
{
	if (!is_xfs(variant))
		SKIP(return, "ext4 shares no blocks");
	self->other = open(OTHER, O_RDWR | O_CREAT, 0600);
	ASSERT_EQ(0, remove_last(&self->qp, self->window, self->file));
	ASSERT_EQ(0, ioctl(self->other, FICLONE, self->file));
	EXPECT_EQ(-ENODATA, try_add(&self->qp, self->file, 0, 0));
	EXPECT_EQ(-ENODATA, try_add(&self->qp, self->other, 0, 0));
	EXPECT_EQ(0, still_writable(OTHER));
}

static int module_users(void)
{
	char text[32] = "";

	return np_read_file("/sys/module/nvme_peer/refcnt", text, sizeof(text)) ?: atoi(text);
}

TEST_F(files, last_window_releases_the_file)
{
	int users = module_users();
	struct stat before, after;
	uint32_t first, second, round;
	struct np_qp other;
	int64_t end;

	ASSERT_EQ(0, fstat(self->file, &before));
	ASSERT_EQ(0, np_qp_open(&other, self->ctrl.fd, ENTRIES));
	ASSERT_EQ(0, np_window_add(&other, self->file, 0, 0, &first));
	/* Others need not compare their extents. */
	ASSERT_EQ(0, fstat(self->file, &after));
	EXPECT_EQ(0, memcmp(&before.st_mtim, &after.st_mtim, sizeof(before.st_mtim)));
	ASSERT_EQ(0, np_window_add(&other, self->file, PIECE, PIECE, &second));
	ASSERT_EQ(0, np_window_remove(&self->qp, self->window));
	ASSERT_EQ(0, np_window_remove(&other, first));
	EXPECT_EQ(ETXTBSY, error_of(pwrite(self->file, "x", 1, 0)));
	EXPECT_EQ(EPERM, error_of(map_shared(self->file, PROT_READ)));
	ASSERT_EQ(0, remove_last(&other, second, self->file));
	EXPECT_EQ(1, pwrite(self->file, "x", 1, 0));
	for (round = 0; round < 100; round++) {
		ASSERT_EQ(0, np_window_add(&other, self->file, 0, 0, &first));
		ASSERT_EQ(0, remove_last(&other, first, self->file));
		ASSERT_EQ(1, pwrite(self->file, "x", 1, 0)) TH_LOG("%u", round);
	}
	np_qp_close(&other);
	/* Those that have gone do not keep the module, but the last one may do so for a moment. */
	ASSERT_EQ(0, np_window_add(&self->qp, self->file, 0, 0, &self->window));
	end = np_now_ms() + NP_TIMEOUT_MS;
	while (module_users() > users && np_now_ms() < end)
		np_sleep_ms(1);
	EXPECT_GE(users, module_users());
}

TEST_F(files, time_stamps_are_set_at_the_end)
{
	struct stat before, during, after;

	ASSERT_EQ(0, fstat(self->file, &before));
	np_sleep_ms(50);
	ASSERT_EQ(0, read_piece(self));
	/* A write that is refused is none. */
	ASSERT_EQ(0, set_flags(variant, DATA, FS_IMMUTABLE_FL));
	EXPECT_EQ(READ_ONLY, write_piece(self));
	ASSERT_EQ(0, set_flags(variant, DATA, 0));
	ASSERT_EQ(0, remove_last(&self->qp, self->window, self->file));
	ASSERT_EQ(0, fstat(self->file, &after));
	EXPECT_EQ(0, memcmp(&before.st_mtim, &after.st_mtim, sizeof(before.st_mtim)));
	ASSERT_EQ(0, np_window_add(&self->qp, self->file, 0, 0, &self->window));
	ASSERT_EQ(0, fstat(self->file, &before));
	np_sleep_ms(50);
	ASSERT_EQ(0, write_piece(self));
	ASSERT_EQ(0, fstat(self->file, &during));
	EXPECT_EQ(0, memcmp(&before.st_mtim, &during.st_mtim, sizeof(before.st_mtim)));
	ASSERT_EQ(0, remove_last(&self->qp, self->window, self->file));
	ASSERT_EQ(0, fstat(self->file, &after));
	EXPECT_NE(0, memcmp(&before.st_mtim, &after.st_mtim, sizeof(before.st_mtim)));
}

/* The parts that are left are not sent. */
TEST_F(files, removal_does_not_wait_for_all_parts)
{
	struct np_command zeroes = np_window_command(NVMEPEER_OP_WRITE_ZEROES, self->window, 0,
						     LENGTH / NP_BLOCK, 0, 0);
	uint32_t round, ended = 0;
	int status;

	for (round = 0; round < 50 && !ended; round++) {
		zeroes.nsid = self->window;
		np_qp_put(&self->qp, &zeroes);
		ASSERT_EQ(0, np_qp_ring_doorbell(&self->qp));
		np_sleep_ms((int)(round % 3));
		ASSERT_EQ(0, np_window_remove(&self->qp, self->window));
		status = np_qp_reap(&self->qp, NULL, NP_TIMEOUT_MS);
		ASSERT_TRUE(!status || status == ABORT_REQUESTED || status == INVALID_NS)
			TH_LOG("%#x", (unsigned int)status);
		ended += status == ABORT_REQUESTED;
		ASSERT_EQ(0, np_window_add(&self->qp, self->file, 0, 0, &self->window));
	}
	EXPECT_NE(0, ended);
	EXPECT_EQ(0, write_piece(self));
}

/* --- others that use the file --------------------------------------------- */

#define OTHERS	4U

static atomic_bool others_stop;

static void *read_always(void *argument)
{
	uint8_t *bytes = aligned_alloc(NP_PAGE, LENGTH);
	int file = open(argument, O_RDONLY | O_DIRECT);

	while (!atomic_load(&others_stop))
		if (pread(file, bytes, LENGTH, 0) != LENGTH)
			break;
	close(file);
	free(bytes);
	return NULL;
}

static int others_start(pthread_t *threads, void *(*call)(void *))
{
	uint32_t i;
	int ret = 0;

	atomic_store(&others_stop, false);
	for (i = 0; i < OTHERS; i++)
		ret |= pthread_create(&threads[i], NULL, call, DATA);
	np_sleep_ms(100);
	return ret;
}

static int others_end(pthread_t *threads)
{
	uint32_t i;
	int ret = 0;

	atomic_store(&others_stop, true);
	for (i = 0; i < OTHERS; i++)
		ret |= pthread_join(threads[i], NULL);
	return ret;
}

TEST_F(files, readers_do_not_keep_the_file)
{
	pthread_t threads[OTHERS];

	ASSERT_EQ(0, others_start(threads, read_always));
	EXPECT_EQ(0, write_piece(self));
	ASSERT_EQ(0, remove_last(&self->qp, self->window, self->file));
	EXPECT_EQ(1, pwrite(self->file, "x", 1, 0));
	EXPECT_EQ(0, others_end(threads));
}

static void add_and_wait(int answer)
{
	struct np_ctrl ctrl;
	struct np_qp qp;
	int file = open(OTHER, O_RDWR);

	np_qp_set_mode(NVME_PEER_MODE_MEDIATED);
	if (np_ctrl_open(&ctrl, "np1") || np_qp_open(&qp, ctrl.fd, ENTRIES) ||
	    np_window_add(&qp, file, 0, 0, NULL) || error_of(pwrite(file, "x", 1, 0)) != ETXTBSY ||
	    write(answer, "", 1) != 1)
		_exit(1);
	pause();
	_exit(2);
}

TEST_F(files, killed_process_releases_the_file)
{
	ASSERT_EQ(0, np_make_file(OTHER, LENGTH));
	ASSERT_EQ(0, np_kill_child(add_and_wait));
	EXPECT_TRUE(becomes_writable(OTHER));
}

/* --- what stops commands -------------------------------------------------- */

static int freeze(unsigned long call)
{
	int mount = open(MOUNT, O_RDONLY), ret = ioctl(mount, call, 0) ? -errno : 0;

	close(mount);
	return ret;
}

TEST_F(files, frozen_file_system_takes_no_writes)
{
	ASSERT_EQ(0, freeze(FIFREEZE));
	EXPECT_EQ(NOT_READY, write_piece(self));
	EXPECT_EQ(NOT_READY, command_on(self, NVMEPEER_OP_WRITE_ZEROES, 0, PIECE, 0));
	EXPECT_EQ(0, read_piece(self));
	ASSERT_EQ(0, freeze(FITHAW));
	EXPECT_EQ(0, write_piece(self));
	/* Each write has ended its use. */
	ASSERT_EQ(0, freeze(FIFREEZE));
	ASSERT_EQ(0, freeze(FITHAW));
}

/* The extents are compared also while the file system is frozen. */
TEST_F(files, frozen_file_system_is_read_after_a_change)
{
	ASSERT_EQ(0, fchmod(self->file, 0640));
	ASSERT_EQ(0, freeze(FIFREEZE));
	EXPECT_EQ(NOT_READY, write_piece(self));
	EXPECT_EQ(0, read_piece(self));
	ASSERT_EQ(0, freeze(FITHAW));
	EXPECT_EQ(0, write_piece(self));
	/* What waited for the comparison has ended its use once. */
	ASSERT_EQ(0, freeze(FIFREEZE));
	ASSERT_EQ(0, freeze(FITHAW));
}

/* The end of the pin changes time stamps, and waits for the thaw. */
TEST_F(files, frozen_file_is_released_after_the_thaw)
{
	ASSERT_EQ(0, freeze(FIFREEZE));
	EXPECT_EQ(0, np_window_remove(&self->qp, self->window));
	np_sleep_ms(100);
	ASSERT_EQ(0, freeze(FITHAW));
	EXPECT_TRUE(becomes_writable(DATA));
	/* The attempts meanwhile have ended no use of the file system. */
	ASSERT_EQ(0, freeze(FIFREEZE));
	ASSERT_EQ(0, freeze(FITHAW));
}

TEST_F(files, read_only_file_system_takes_no_writes)
{
	int64_t end = np_now_ms() + NP_TIMEOUT_MS;

	if (access("/proc/sysrq-trigger", W_OK))
		SKIP(return, "no sysrq in this kernel");
	EXPECT_EQ(0, write_piece(self));
	ASSERT_EQ(0, fchmod(self->file, 0640));
	ASSERT_EQ(0, np_write_file("/proc/sysrq-trigger", "u"));
	while (!write_piece(self) && np_now_ms() < end)
		np_sleep_ms(10);
	EXPECT_EQ(READ_ONLY, write_piece(self));
	EXPECT_EQ(0, read_piece(self));
	EXPECT_EQ(-EROFS, np_window_add(&self->qp, self->file, 0, 0, NULL));
	ASSERT_EQ(0, run("mount -o remount,rw %s", MOUNT));
	EXPECT_EQ(0, write_piece(self));
}

TEST_F(files, immutable_file_takes_no_writes)
{
	const unsigned int flags[] = { FS_IMMUTABLE_FL, FS_APPEND_FL };
	struct nvme_peer_window_info info;
	uint32_t i;

	for (i = 0; i < 2; i++) {
		ASSERT_EQ(0, set_flags(variant, DATA, flags[i]));
		EXPECT_EQ(READ_ONLY, write_piece(self));
		EXPECT_EQ(0, read_piece(self));
		ASSERT_EQ(0, np_window_info(&self->qp, self->window, &info));
		EXPECT_EQ(NVME_PEER_RIGHT_READ, info.rights);
		ASSERT_EQ(0, set_flags(variant, DATA, 0));
		EXPECT_EQ(0, write_piece(self));
	}
}

TEST_F(files, read_only_partition_takes_no_writes)
{
	int partition = open(self->disk, O_RDONLY), on = 1, off = 0;
	struct nvme_peer_window_info info;

	ASSERT_LE(0, partition);
	ASSERT_EQ(0, ioctl(partition, BLKROSET, &on));
	EXPECT_EQ(READ_ONLY, write_piece(self));
	EXPECT_EQ(0, read_piece(self));
	ASSERT_EQ(0, np_window_info(&self->qp, self->window, &info));
	EXPECT_EQ(NVME_PEER_RIGHT_READ, info.rights);
	ASSERT_EQ(0, ioctl(partition, BLKROSET, &off));
	EXPECT_EQ(0, write_piece(self));
	close(partition);
}

TEST_F(files, changes_of_attributes_end_nothing)
{
	ASSERT_EQ(0, fchmod(self->file, 0640));
	EXPECT_EQ(0, write_piece(self));
	ASSERT_EQ(0, futimens(self->file, NULL));
	EXPECT_EQ(0, read_piece(self));
	EXPECT_EQ(LBA_RANGE, command_on(self, NVMEPEER_OP_READ, LENGTH / NP_BLOCK, 1, 0));
}

/* Before Linux 6.6 XFS writes back clean blocks of a folio beside dirty ones. */
static int status_of_tail(const FIXTURE_VARIANT(files) *variant)
{
	unsigned int major = 0, minor = 0;
	struct utsname name;

	uname(&name);
	sscanf(name.release, "%u.%u", &major, &minor);
	return is_xfs(variant) && (major < 6 || (major == 6 && minor < 6)) ? READ_ONLY : 0;
}

TEST_F(files, file_may_grow)
{
	ASSERT_EQ(0, ftruncate(self->file, 2 * LENGTH));
	EXPECT_EQ(status_of_tail(variant), write_piece(self));
	EXPECT_EQ(0, read_piece(self));
	EXPECT_EQ(LBA_RANGE, command_on(self, NVMEPEER_OP_READ, LENGTH / NP_BLOCK, 1, 0));
}

TEST_F(files, size_need_not_be_one_of_pages)
{
	ASSERT_EQ(0, remove_last(&self->qp, self->window, self->file));
	ASSERT_EQ(0, ftruncate(self->file, LENGTH - 1));
	ASSERT_EQ(0, np_window_add(&self->qp, self->file, 0, 0, &self->window));
	EXPECT_EQ(status_of_tail(variant), write_piece(self));
	EXPECT_EQ(0, read_piece(self));
	EXPECT_EQ(LBA_RANGE, command_on(self, NVMEPEER_OP_READ, LENGTH / NP_BLOCK - PIECE, 1, 0));
}

/* Data that goes to the journal first is not on its blocks. */
TEST_F(files, journal_of_data_ends_the_window)
{
	if (is_xfs(variant))
		SKIP(return, "XFS does not write data to its log");
	ASSERT_EQ(0, set_flags(variant, DATA, FS_JOURNAL_DATA_FL));
	EXPECT_EQ(INVALID_NS, write_piece(self));
	EXPECT_EQ(INVALID_NS, read_piece(self));
}

/* The thread of the call that is to wait in the kernel. */
static atomic_int changer;

static void *punch(void *argument)
{
	const int *file = argument;
	int mode = FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE;

	atomic_store(&changer, gettid());
	return (void *)(long)(fallocate(*file, mode, BYTES, BYTES) ? -errno : 0);
}

static void *collapse(void *argument)
{
	const int *file = argument;

	atomic_store(&changer, gettid());
	return (void *)(long)(fallocate(*file, FALLOC_FL_COLLAPSE_RANGE, BYTES, BYTES) ? -errno : 0);
}

/* Keeps CPU 1 from other threads. */
static void *occupy(void *argument)
{
	while (!atomic_load((atomic_bool *)argument))
		;
	return NULL;
}

static int on_second_cpu(pthread_attr_t *attributes, int policy)
{
	struct sched_param parameters = { .sched_priority = policy == SCHED_FIFO };
	cpu_set_t second;

	CPU_ZERO(&second);
	CPU_SET(1, &second);
	return pthread_attr_init(attributes) ||
	       pthread_attr_setaffinity_np(attributes, sizeof(second), &second) ||
	       pthread_attr_setinheritsched(attributes, PTHREAD_EXPLICIT_SCHED) ||
	       pthread_attr_setschedpolicy(attributes, policy) ||
	       pthread_attr_setschedparam(attributes, &parameters);
}

static int get_extents(FIXTURE_DATA(files) *self, struct nvme_peer_extents *extents)
{
	int64_t began = np_now_ms();
	int ret;

	extents->size = sizeof(*extents);
	extents->fd = self->file;
	ret = np_ioctl(self->ctrl.fd, NVME_PEER_EXTENTS, extents);
	if (ret)
		wait_released(self->file, began);
	return ret;
}

#define REALTIME_LIMIT	"/proc/sys/kernel/sched_rt_runtime_us"
#define FAIR_SERVER	"/sys/kernel/debug/sched/fair_server/cpu1/runtime"

/* May a thread of real-time priority keep CPU 1 from others for more than a second? */
static int let_realtime_starve_others(bool starve)
{
	int ret = np_write_file(REALTIME_LIMIT, starve ? "-1" : "950000");

	/* Of newer kernels. */
	if (ret || access(FAIR_SERVER, F_OK))
		return ret;
	return np_write_file(FAIR_SERVER, starve ? "0" : "50000000");
}

/*
 * Adds a window, or gets the extents, while @change is under way: that has checked for the pin, waits for the end of the
 * freeze, and then for its CPU, which another thread leaves when the file is pinned. Returns what
 * @change does.
 */
static int add_before_late_change(FIXTURE_DATA(files) *self, void *(*change)(void *))
{
	atomic_bool leave = false;
	pthread_attr_t attributes;
	pthread_t thread, hog;
	void *changed;
	int ret, waits;

	atomic_store(&changer, 0);
	if (let_realtime_starve_others(true) || freeze(FIFREEZE) ||
	    on_second_cpu(&attributes, SCHED_OTHER) ||
	    pthread_create(&thread, &attributes, change, &self->file))
		return -EIO;
	waits = np_wait_sleeps(&changer);
	if (on_second_cpu(&attributes, SCHED_FIFO) ||
	    pthread_create(&hog, &attributes, occupy, &leave) || freeze(FITHAW))
		return -EIO;
	if (self->extents)
		ret = get_extents(self, self->extents);
	else
		ret = np_window_add(&self->qp, self->file, 0, 0, &self->window) ?: read_piece(self);
	atomic_store(&leave, true);
	pthread_join(hog, NULL);
	pthread_join(thread, &changed);
	return let_realtime_starve_others(false) ?: waits ?: ret ?: (int)(long)changed;
}

TEST_F(files, fallocate_that_began_before_ends_the_window)
{
	void *(*const changes[])(void *) = { punch, collapse };
	struct nvme_peer_window_info info;
	uint32_t i;

	for (i = 0; i < 2; i++) {
		ASSERT_EQ(0, remove_last(&self->qp, self->window, self->file));
		ASSERT_EQ(0, np_make_scattered(DATA, PIECES));
		/* XFS refuses to make the file shorter when it has moved its blocks. */
		ASSERT_EQ(i && is_xfs(variant) ? -ETXTBSY : 0,
			  add_before_late_change(self, changes[i]));
		EXPECT_EQ(INVALID_NS, read_piece(self));
		EXPECT_EQ(INVALID_NS, write_piece(self));
		ASSERT_EQ(0, np_window_info(&self->qp, self->window, &info));
		EXPECT_EQ(0, info.blocks);
	}
}

/* --- a file that is locked for any time ----------------------------------- */

/**
 * struct locker - a thread that is in a call for OTHER, with the lock of its inode
 * @faults: userfaultfd that keeps it there
 * @page: the memory that it accesses
 */
struct locker {
	int file;
	int faults;
	uint8_t *page;
	pthread_t thread;
};

static void *write_page(void *argument)
{
	const struct locker *locker = argument;

	return (void *)(long)write(locker->file, locker->page, BYTES);
}

/* Allowed while the file has windows. */
static void *read_page(void *argument)
{
	const struct locker *locker = argument;

	return (void *)(long)read(locker->file, locker->page, BYTES);
}

static int locker_begin(struct locker *locker, void *(*call)(void *))
{
	struct uffdio_api api = { .api = UFFD_API };
	struct uffdio_register range = { .mode = UFFDIO_REGISTER_MODE_MISSING };

	locker->file = open(OTHER, call == read_page ? O_RDONLY | O_DIRECT : O_RDWR);
	locker->faults = (int)syscall(SYS_userfaultfd, O_CLOEXEC);
	locker->page = mmap(NULL, BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	range.range.start = (uintptr_t)locker->page;
	range.range.len = BYTES;
	if (locker->faults < 0 || ioctl(locker->faults, UFFDIO_API, &api) ||
	    ioctl(locker->faults, UFFDIO_REGISTER, &range))
		return -errno;
	return -pthread_create(&locker->thread, NULL, call, locker);
}

/* It has faulted. */
static int locker_wait(const struct locker *locker)
{
	struct uffd_msg message;

	return read(locker->faults, &message, sizeof(message)) == sizeof(message) ? 0 : -EIO;
}

static int locker_start(struct locker *locker, void *(*call)(void *))
{
	return locker_begin(locker, call) ?: locker_wait(locker);
}

static void locker_stop(struct locker *locker)
{
	struct uffdio_zeropage zero = {
		.range = { .start = (uintptr_t)locker->page, .len = BYTES },
	};

	ioctl(locker->faults, UFFDIO_ZEROPAGE, &zero);
	pthread_join(locker->thread, NULL);
	close(locker->faults);
	close(locker->file);
	munmap(locker->page, BYTES);
}

/* In a child: adds a window on OTHER. */
static pid_t add_in_child(FIXTURE_DATA(files) *self)
{
	pid_t child = fork();

	if (child)
		return child;
	_exit(add_path(self, OTHER, O_RDWR) ? 1 : 0);
}

TEST_F(files, locked_file_delays_its_caller_only)
{
	struct locker locker;
	struct np_qp other;
	pid_t child, second;
	int status;

	ASSERT_EQ(0, np_make_file(OTHER, LENGTH));
	ASSERT_EQ(0, locker_start(&locker, write_page)) TH_LOG("%d", errno);
	child = add_in_child(self);
	np_sleep_ms(300);
	second = add_in_child(self);
	np_sleep_ms(300);
	EXPECT_EQ(0, waitpid(-1, &status, WNOHANG));
	/* On the same queue pair. */
	EXPECT_EQ(0, write_piece(self));
	EXPECT_EQ(0, np_window_remove(&self->qp, self->window));
	/* On another one. */
	ASSERT_EQ(0, np_qp_open(&other, self->ctrl.fd, ENTRIES));
	EXPECT_EQ(0, np_window_add(&other, self->file, 0, 0, NULL));
	np_qp_close(&other);
	/* Both can be killed. */
	EXPECT_EQ(0, kill(second, SIGKILL));
	EXPECT_EQ(second, waitpid(second, &status, 0));
	EXPECT_EQ(0, kill(child, SIGKILL));
	EXPECT_EQ(child, waitpid(child, &status, 0));
	EXPECT_EQ(0, np_window_add(&self->qp, self->file, 0, 0, &self->window));
	EXPECT_EQ(0, read_piece(self));
	locker_stop(&locker);
	EXPECT_EQ(0, add_path(self, OTHER, O_RDWR));
}

static void *change_mode(void *argument)
{
	atomic_store(&changer, gettid());
	return (void *)(long)chmod(argument, 0640);
}

/* It waits for the lock of the inode. */
static int change_mode_start(pthread_t *thread)
{
	atomic_store(&changer, 0);
	return pthread_create(thread, NULL, change_mode, OTHER) ?: np_wait_sleeps(&changer);
}

/* Two queue pairs of one user, as those of a broker. */
TEST_F(files, locked_file_delays_its_queue_pair_only)
{
	struct np_command command;
	struct locker locker;
	struct np_qp other;
	pthread_t thread;
	uint32_t window;

	ASSERT_EQ(0, np_make_file(OTHER, LENGTH));
	self->other = open(OTHER, O_RDWR);
	ASSERT_EQ(0, np_qp_open(&other, self->ctrl.fd, ENTRIES));
	ASSERT_EQ(0, np_window_add(&other, self->other, 0, 0, &window));
	ASSERT_EQ(0, locker_start(&locker, read_page)) TH_LOG("%d", errno);
	ASSERT_EQ(0, change_mode_start(&thread));
	command = np_window_command(NVMEPEER_OP_WRITE_ZEROES, window, 0, PIECE, 0, 0);
	np_qp_put(&other, &command);
	ASSERT_EQ(0, np_qp_ring_doorbell(&other));
	/* Its extents are to be compared, and that waits. */
	np_sleep_ms(1000);
	EXPECT_EQ(-ETIMEDOUT, np_qp_reap(&other, NULL, 0));
	ASSERT_EQ(0, fchmod(self->file, 0640));
	EXPECT_EQ(0, write_piece(self));
	EXPECT_EQ(0, read_piece(self));
	locker_stop(&locker);
	pthread_join(thread, NULL);
	EXPECT_EQ(0, np_qp_reap(&other, NULL, NP_TIMEOUT_MS));
	np_qp_close(&other);
}

/* It fails, with the lock of the inode. */
static void *change_as_stranger(void *argument)
{
	return (void *)(long)(syscall(SYS_setresuid, 1000, 1000, 1000) || !chmod(argument, 0600));
}

/* Those who lock @argument in turn: each time one has the lock of the inode, others wait for it. */
static void *lock_in_turn(void *argument)
{
	struct locker lockers[2];
	pthread_t waiter, next;
	int ret = locker_start(&lockers[0], read_page);
	uint32_t i;

	ret = ret ?: pthread_create(&waiter, NULL, change_as_stranger, argument);
	for (i = 0; !ret && !atomic_load(&others_stop); i ^= 1) {
		np_sleep_ms(20);
		ret = locker_begin(&lockers[!i], read_page);
		np_sleep_ms(20);
		ret = ret ?: pthread_create(&next, NULL, change_as_stranger, argument);
		np_sleep_ms(20);
		locker_stop(&lockers[i]);
		pthread_join(waiter, NULL);
		waiter = next;
		ret = ret ?: locker_wait(&lockers[!i]);
	}
	if (!ret)
		locker_stop(&lockers[i]);
	pthread_join(waiter, NULL);
	return (void *)(long)ret;
}

/* None of them keeps it for long, but an attempt to lock it never succeeds. */
TEST_F(files, those_who_lock_in_turn_do_not_stop_commands)
{
	struct np_command command;
	pthread_t thread;
	uint32_t window, i;
	void *ret;

	ASSERT_EQ(0, np_make_file(OTHER, LENGTH));
	self->other = open(OTHER, O_RDWR);
	ASSERT_EQ(0, np_window_add(&self->qp, self->other, 0, 0, &window));
	command = np_window_command(NVMEPEER_OP_WRITE_ZEROES, window, 0, PIECE, 0, 0);
	atomic_store(&others_stop, false);
	ASSERT_EQ(0, pthread_create(&thread, NULL, lock_in_turn, OTHER));
	np_sleep_ms(200);
	for (i = 0; i < 5; i++)
		EXPECT_EQ(0, np_qp_run(&self->qp, &command, NP_TIMEOUT_MS)) TH_LOG("%u", i);
	atomic_store(&others_stop, true);
	pthread_join(thread, &ret);
	EXPECT_EQ(NULL, ret);
}

/**
 * struct adder - a thread that adds a window
 */
struct adder {
	const struct np_qp *qp;
	int file;
	uint32_t window;
	int ret;
	pthread_t thread;
};

static void *add_window(void *argument)
{
	struct adder *adder = argument;

	adder->ret = np_window_add(adder->qp, adder->file, 0, 0, &adder->window);
	return NULL;
}

/* A window that waits for the lock keeps what is to be released, and then releases it. */
TEST_F(files, locked_file_is_released_later)
{
	struct adder adder = { .qp = &self->qp };
	struct locker locker;
	int64_t began;
	pthread_t thread;
	uint32_t window;

	ASSERT_EQ(0, np_make_file(OTHER, LENGTH));
	self->other = open(OTHER, O_RDWR);
	ASSERT_EQ(0, np_window_add(&self->qp, self->other, 0, 0, &window));
	ASSERT_EQ(0, locker_start(&locker, read_page)) TH_LOG("%d", errno);
	ASSERT_EQ(0, change_mode_start(&thread));
	began = np_now_ms();
	ASSERT_EQ(0, np_window_remove(&self->qp, window));
	EXPECT_GT(began + NP_TIMEOUT_MS / 2, np_now_ms());
	adder.file = self->other;
	ASSERT_EQ(0, pthread_create(&adder.thread, NULL, add_window, &adder));
	np_sleep_ms(50);
	locker_stop(&locker);
	pthread_join(thread, NULL);
	pthread_join(adder.thread, NULL);
	ASSERT_EQ(0, adder.ret);
	ASSERT_EQ(0, np_window_remove(&self->qp, adder.window));
	EXPECT_TRUE(becomes_writable(OTHER));
}

/* --- extents without a window ---------------------------------------------- */

/* What the extents say is read from the namespace. */
static int compare_extents(FIXTURE_DATA(files) *self, const struct nvme_peer_extents *extents)
{
	uint8_t *disk = aligned_alloc(NP_PAGE, LENGTH), *file = aligned_alloc(NP_PAGE, LENGTH);
	uint64_t next = extents->first * NP_BLOCK, end = next + extents->blocks * NP_BLOCK;
	struct nvme_peer_extent extent;
	int whole = np_open_node(&self->ctrl, "/dev/nvmep%dn1", O_RDONLY | O_DIRECT), ret = 0;

	while (!ret && read(extents->pin_fd, &extent, sizeof(extent)) == sizeof(extent)) {
		size_t length = extent.blocks * NP_BLOCK;

		if (extent.first * NP_BLOCK != next || length > LENGTH ||
		    pread(whole, disk, length, (off_t)(extent.lba * NP_BLOCK)) != (ssize_t)length)
			ret = -EIO;
		ret = ret ?: pread_direct(file, (uint32_t)length, next);
		ret = ret ?: memcmp(disk, file, length) ? -EILSEQ : 0;
		next += length;
	}
	close(whole);
	free(disk);
	free(file);
	return ret ?: next == end ? 0 : -ENODATA;
}

TEST_F(files, extents_are_those_of_the_file)
{
	struct nvme_peer_extents all = { 0 }, some = { .first = 3, .blocks = 2 * PIECE };
	struct nvme_peer_extent extents[PIECES + 1];

	ASSERT_EQ(0, get_extents(self, &all));
	EXPECT_EQ(LENGTH / NP_BLOCK, all.blocks);
	EXPECT_EQ(PIECES, all.count);
	EXPECT_EQ(1, all.nsid);
	EXPECT_EQ(NP_BLOCK, all.block_size);
	EXPECT_EQ(0, compare_extents(self, &all));
	EXPECT_EQ((ssize_t)(PIECES * sizeof(*extents)), pread(all.pin_fd, extents, sizeof(extents), 0));
	EXPECT_EQ((ssize_t)sizeof(*extents), pread(all.pin_fd, extents, 2 * sizeof(*extents) - 1,
						   (PIECES - 1) * sizeof(*extents)));
	EXPECT_EQ(LENGTH / NP_BLOCK, extents[0].first + extents[0].blocks);
	EXPECT_EQ(0, pread(all.pin_fd, extents, sizeof(extents), PIECES * sizeof(*extents)));
	EXPECT_EQ(EINVAL, error_of((int)pread(all.pin_fd, extents, sizeof(*extents), 1)));
	EXPECT_EQ(EINVAL, error_of((int)pread(all.pin_fd, extents, sizeof(*extents) - 1, 0)));
	EXPECT_EQ(EFAULT, error_of((int)pread(all.pin_fd, (void *)(uintptr_t)self->whole, sizeof(*extents),
					      0)));
	ASSERT_EQ(0, get_extents(self, &some));
	EXPECT_EQ(0, compare_extents(self, &some));
	close(all.pin_fd);
	close(some.pin_fd);
}

/* More than the array of extents has room for at first, twice. */
TEST_F(files, many_extents)
{
	struct nvme_peer_extents extents = { 0 };
	const uint32_t many = 130;

	ASSERT_EQ(0, remove_last(&self->qp, self->window, self->file));
	ASSERT_EQ(0, np_make_scattered(DATA, many));
	ASSERT_EQ(0, get_extents(self, &extents));
	EXPECT_EQ(many, extents.count);
	EXPECT_EQ(0, compare_extents(self, &extents));
	close(extents.pin_fd);
}

/* The partition becomes smaller: first up to the last block of the file, then by one more. */
TEST_F(files, file_at_the_end_of_its_partition)
{
	struct nvme_peer_extents all = { 0 }, again = { 0 };
	struct nvme_peer_extent extents[PIECES];
	struct nvme_peer_window_info info;
	uint64_t end = 0;
	uint32_t i;

	ASSERT_EQ(0, get_extents(self, &all));
	ASSERT_EQ((ssize_t)sizeof(extents), pread(all.pin_fd, extents, sizeof(extents), 0));
	for (i = 0; i < PIECES; i++)
		if (end < extents[i].lba + extents[i].blocks)
			end = extents[i].lba + extents[i].blocks;
	end = end * NP_BLOCK - START;
	/* Nothing is left to write beyond the end. */
	ASSERT_EQ(0, syncfs(self->file));
	ASSERT_EQ(0, change_partition(self->whole, BLKPG_RESIZE_PARTITION, end));
	ASSERT_EQ(0, np_window_info(&self->qp, self->window, &info));
	EXPECT_EQ(LENGTH / NP_BLOCK, info.blocks);
	EXPECT_EQ(0, read_piece(self));
	EXPECT_EQ(0, get_extents(self, &again));
	close(again.pin_fd);
	ASSERT_EQ(0, change_partition(self->whole, BLKPG_RESIZE_PARTITION, end - NP_BLOCK));
	ASSERT_EQ(0, np_window_info(&self->qp, self->window, &info));
	EXPECT_EQ(0, info.blocks);
	EXPECT_EQ(LBA_RANGE, read_piece(self));
	again = (struct nvme_peer_extents){ 0 };
	EXPECT_EQ(-EIO, get_extents(self, &again));
	ASSERT_EQ(0, change_partition(self->whole, BLKPG_RESIZE_PARTITION, SIZE));
	EXPECT_EQ(0, read_piece(self));
	close(all.pin_fd);
}

TEST_F(files, adjacent_blocks_are_one_extent)
{
	struct nvme_peer_extents extents = { .size = sizeof(extents) };

	ASSERT_EQ(0, np_make_file(OTHER, LENGTH));
	self->other = open(OTHER, O_RDWR);
	ASSERT_EQ(1, np_count_extents(self->other));
	extents.fd = self->other;
	ASSERT_EQ(0, np_ioctl(self->ctrl.fd, NVME_PEER_EXTENTS, &extents));
	EXPECT_EQ(FD_CLOEXEC, fcntl(extents.pin_fd, F_GETFD));
	EXPECT_EQ(1, extents.count);
	EXPECT_EQ(LENGTH / NP_BLOCK, extents.blocks);
	close(extents.pin_fd);
}

#define LONG_BLOCKS	1000U

/* Calls of bmap() since the last call of this function, without those of the journal. */
static uint32_t count_bmap(void)
{
	const char *const texts[] = { " np_bmap: ", "!jbd2", NULL };
	int calls = np_count_trace(NP_TRACE "trace", texts);

	return np_clear_trace() || calls < 0 ? 0 : (uint32_t)calls;
}

/* The steps from block to block double: a file of few extents takes few calls of the file system. */
TEST_F(files, long_extents_take_few_calls)
{
	uint32_t id, most, calls;

	if (np_write_file(NP_TRACE "kprobe_events", "p:np_bmap bmap"))
		SKIP(return, "no kprobe of bmap() in this kernel");
	ASSERT_EQ(0, np_make_file(OTHER, LONG_BLOCKS * BYTES));
	self->other = open(OTHER, O_RDWR);
	ASSERT_EQ(0, fallocate(self->other, FALLOC_FL_COLLAPSE_RANGE, 700 * BYTES, BYTES));
	/* Twice the binary logarithm of an extent, and a few. */
	most = 24 * np_count_extents(self->other);
	ASSERT_GT(LONG_BLOCKS / 8, most);
	ASSERT_EQ(0, np_write_file(NP_TRACE "events/kprobes/np_bmap/enable", "1"));
	count_bmap();
	ASSERT_EQ(0, np_window_add(&self->qp, self->other, 0, 0, &id));
	calls = count_bmap();
	EXPECT_LE(1, calls);
	EXPECT_GE(most, calls);
	/* All of them are compared. */
	ASSERT_EQ(0, fchmod(self->other, 0640));
	self->window = id;
	EXPECT_EQ(0, read_piece(self));
	calls = count_bmap();
	EXPECT_LE(1, calls);
	EXPECT_GE(most, calls);
}

/* The descriptor may have been given to another user, who does not become that of the file by it. */
static int read_as_another_user(int pin_fd)
{
	struct nvme_peer_extent extent;

	if (setuid(1000) || pread(pin_fd, &extent, sizeof(extent), 0) != sizeof(extent))
		return 1;
	return getuid() == 1000 ? 0 : 2;
}

TEST_F(files, extents_pin_the_file)
{
	struct nvme_peer_extents extents = { 0 };
	struct nvme_peer_extent extent;

	struct stat before, after;

	ASSERT_EQ(0, remove_last(&self->qp, self->window, self->file));
	ASSERT_EQ(0, fstat(self->file, &before));
	np_sleep_ms(50);
	ASSERT_EQ(0, get_extents(self, &extents));
	/* It will only be read. */
	ASSERT_EQ(0, fstat(self->file, &after));
	EXPECT_EQ(0, memcmp(&before.st_mtim, &after.st_mtim, sizeof(before.st_mtim)));
	EXPECT_EQ((off_t)(PIECES * sizeof(extent)), lseek(extents.pin_fd, 0, SEEK_END));
	EXPECT_EQ(ETXTBSY, error_of(pwrite(self->file, "x", 1, 0)));
	/* A change of attributes is none of blocks. */
	ASSERT_EQ(0, fchmod(self->file, 0640));
	EXPECT_EQ((ssize_t)sizeof(extent), pread(extents.pin_fd, &extent, sizeof(extent), 0));
	EXPECT_EQ(0, np_in_child(read_as_another_user, extents.pin_fd));
	close(extents.pin_fd);
	EXPECT_TRUE(becomes_writable(DATA));
}

/* As write() does, also for a file that something else has pinned. */
TEST_F(files, each_window_removes_privileges)
{
	struct nvme_peer_extents extents = { 0 };
	struct stat after;

	ASSERT_EQ(0, remove_last(&self->qp, self->window, self->file));
	ASSERT_EQ(0, fchown(self->file, 1000, 1000));
	ASSERT_EQ(0, fchmod(self->file, 04755));
	ASSERT_EQ(0, change_capability(CAP_FSETID, false));
	/* It will only be read. */
	ASSERT_EQ(0, get_extents(self, &extents));
	ASSERT_EQ(0, fstat(self->file, &after));
	EXPECT_EQ(04755, after.st_mode & 07777);
	ASSERT_EQ(0, np_window_add(&self->qp, self->file, 0, 0, &self->window));
	ASSERT_EQ(0, raise_capability(CAP_FSETID));
	ASSERT_EQ(0, fstat(self->file, &after));
	EXPECT_EQ(0755, after.st_mode & 07777);
	EXPECT_EQ(0, write_piece(self));
	/* Also those that it gets later: a write removes them with the rights of the window's owner. */
	ASSERT_EQ(0, fchmod(self->file, 04755));
	EXPECT_EQ(0, write_piece(self));
	ASSERT_EQ(0, fstat(self->file, &after));
	EXPECT_EQ(0755, after.st_mode & 07777);
	close(extents.pin_fd);
}

TEST_F(files, extents_of_bad_requests)
{
	const struct nvme_peer_extents good = { 0 };
	struct nvme_peer_extents bad = good;
	int file = self->file;

	ASSERT_EQ(0, remove_last(&self->qp, self->window, self->file));
	bad.flags = 1;
	EXPECT_EQ(-EINVAL, get_extents(self, &bad));
	bad = good;
	bad.reserved = 1;
	EXPECT_EQ(-EINVAL, get_extents(self, &bad));
	bad = good;
	bad.first = LENGTH / NP_BLOCK + 1;
	EXPECT_EQ(-ERANGE, get_extents(self, &bad));
	bad.first = LENGTH / NP_BLOCK;
	EXPECT_EQ(-EINVAL, get_extents(self, &bad));
	bad.first = 1;
	bad.blocks = ~0ULL;
	EXPECT_EQ(-ERANGE, get_extents(self, &bad));
	self->file = self->whole;
	bad = good;
	EXPECT_EQ(-ENOTBLK, get_extents(self, &bad));
	self->file = open(MOUNT, O_RDONLY | O_DIRECTORY);
	EXPECT_EQ(-ENOTBLK, get_extents(self, &bad));
	close(self->file);
	self->file = -1;
	EXPECT_EQ(-EBADF, get_extents(self, &bad));
	self->file = file;
	EXPECT_EQ(1, pwrite(self->file, "x", 1, 0));
	ASSERT_EQ(0, fallocate(file, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, 0, NP_PAGE));
	EXPECT_EQ(-ENODATA, get_extents(self, &bad));
	EXPECT_TRUE(becomes_writable(DATA));
}

/* The pin is removed again if its descriptor cannot be returned. */
TEST_F(files, extents_that_cannot_be_returned)
{
	struct nvme_peer_extents *extents = mmap(NULL, NP_PAGE, PROT_READ | PROT_WRITE,
						 MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	struct rlimit limit, none;

	ASSERT_NE(MAP_FAILED, extents);
	ASSERT_EQ(0, remove_last(&self->qp, self->window, self->file));
	*extents = (struct nvme_peer_extents){ .size = sizeof(*extents), .fd = self->file };
	ASSERT_EQ(0, mprotect(extents, NP_PAGE, PROT_READ));
	EXPECT_EQ(-EFAULT, np_ioctl(self->ctrl.fd, NVME_PEER_EXTENTS, extents));
	EXPECT_TRUE(becomes_writable(DATA));
	ASSERT_EQ(0, mprotect(extents, NP_PAGE, PROT_READ | PROT_WRITE));
	ASSERT_EQ(0, getrlimit(RLIMIT_NOFILE, &limit));
	none = limit;
	none.rlim_cur = 0;
	ASSERT_EQ(0, setrlimit(RLIMIT_NOFILE, &none));
	EXPECT_EQ(-EMFILE, np_ioctl(self->ctrl.fd, NVME_PEER_EXTENTS, extents));
	ASSERT_EQ(0, setrlimit(RLIMIT_NOFILE, &limit));
	EXPECT_TRUE(becomes_writable(DATA));
	munmap(extents, NP_PAGE);
}

/* A program without standard input gets 0, a descriptor like others, whose close removes the pin. */
TEST_F(files, extents_by_descriptor_0)
{
	struct nvme_peer_extents extents = { 0 };
	int input = fcntl(STDIN_FILENO, F_DUPFD_CLOEXEC, 3);

	ASSERT_EQ(0, remove_last(&self->qp, self->window, self->file));
	close(STDIN_FILENO);
	EXPECT_EQ(0, get_extents(self, &extents));
	EXPECT_EQ(STDIN_FILENO, extents.pin_fd);
	EXPECT_NE(0, still_writable(DATA));
	EXPECT_EQ(0, close(extents.pin_fd));
	EXPECT_TRUE(becomes_writable(DATA));
	if (input >= 0) {
		dup2(input, STDIN_FILENO);
		close(input);
	}
}

/* A program that has read blocks of a file finds out that they need not have been its data. */
TEST_F(files, extents_that_changed_are_stale)
{
	void *(*const changes[])(void *) = { punch, collapse };
	struct nvme_peer_extents extents;
	struct nvme_peer_extent extent;
	uint32_t i;

	for (i = 0; i < 2; i++) {
		ASSERT_EQ(0, remove_last(&self->qp, self->window, self->file));
		ASSERT_EQ(0, np_make_scattered(DATA, PIECES));
		extents = (struct nvme_peer_extents){ 0 };
		self->extents = &extents;
		ASSERT_EQ(i && is_xfs(variant) ? -ETXTBSY : 0,
			  add_before_late_change(self, changes[i]));
		EXPECT_EQ(ESTALE, error_of((int)pread(extents.pin_fd, &extent, sizeof(extent), 0)));
		EXPECT_EQ(ESTALE, error_of((int)pread(extents.pin_fd, &extent, sizeof(extent), 0)));
		close(extents.pin_fd);
		ASSERT_TRUE(becomes_writable(DATA));
		if (!i)
			ASSERT_EQ(0, np_window_add(&self->qp, self->file, 0, PIECE, &self->window));
	}
}

/* Also when they hold the data of the file again. */
TEST_F(files, stale_extents_stay_stale)
{
	struct nvme_peer_extents extents = { 0 };
	struct nvme_peer_extent extent;

	if (is_xfs(variant))
		SKIP(return, "XFS does not write data to its log");
	ASSERT_EQ(0, remove_last(&self->qp, self->window, self->file));
	ASSERT_EQ(0, get_extents(self, &extents));
	ASSERT_EQ(0, set_flags(variant, DATA, FS_JOURNAL_DATA_FL));
	EXPECT_EQ(ESTALE, error_of((int)pread(extents.pin_fd, &extent, sizeof(extent), 0)));
	ASSERT_EQ(0, set_flags(variant, DATA, 0));
	EXPECT_EQ(ESTALE, error_of((int)pread(extents.pin_fd, &extent, sizeof(extent), 0)));
	close(extents.pin_fd);
	EXPECT_TRUE(becomes_writable(DATA));
}

static int add_with_little_memory(int ctrl_fd)
{
	/* Those of a queue pair, and one for extents. */
	struct rlimit limit = { .rlim_cur = 5 * NP_PAGE, .rlim_max = 6 * NP_PAGE };
	int file = open(OTHER, O_RDWR);
	uint32_t id, i;
	struct np_qp qp;

	if (file < 0 || setrlimit(RLIMIT_MEMLOCK, &limit) || setuid(1000) || np_drop_capabilities() ||
	    np_qp_open(&qp, ctrl_fd, ENTRIES))
		return 1;
	if (np_window_add(&qp, file, 0, 0, NULL) != -ENOBUFS)
		return 2;
	limit.rlim_cur = limit.rlim_max;
	if (setrlimit(RLIMIT_MEMLOCK, &limit))
		return 3;
	for (i = 0; i < 3; i++)
		if (np_window_add(&qp, file, 0, 0, &id) || np_window_remove(&qp, id))
			return 4;
	return 0;
}

TEST_F(files, extents_are_locked_memory)
{
	ASSERT_EQ(0, np_make_file(OTHER, LENGTH));
	ASSERT_EQ(0, chown(OTHER, 1000, 1000));
	EXPECT_EQ(0, np_in_child(add_with_little_memory, self->ctrl.fd));
}

/* --- resets --------------------------------------------------------------- */

TEST_F(files, window_survives_a_reset)
{
	struct nvme_peer_info info;
	uint32_t round;

	for (round = 0; round < 3; round++) {
		ASSERT_EQ(0, np_ioctl(self->ctrl.fd, NVME_IOCTL_RESET, NULL));
		ASSERT_EQ(0, np_ctrl_wait_live(self->ctrl.fd, &info, NP_TIMEOUT_MS));
		ASSERT_EQ(0, np_qp_wait_state(&self->qp, NVME_PEER_QP_QUIESCED, NP_TIMEOUT_MS));
		ASSERT_EQ(0, np_qp_rearm(&self->qp, NP_TIMEOUT_MS));
		EXPECT_EQ(0, write_piece(self));
		EXPECT_EQ(0, command_on(self, NVMEPEER_OP_READ, 0, LENGTH / NP_BLOCK, 0));
	}
}

TEST_HARNESS_MAIN
