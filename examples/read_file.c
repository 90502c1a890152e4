// SPDX-License-Identifier: MIT OR GPL-2.0
/*
 * read_file.c: reads a file's blocks from the disk straight into a buffer that a GPU may
 * own, with no page of the host's in between, and compares them with what read() says.
 * FIEMAP tells where the blocks lie, NVME_PEER_URING_CMD_IO reads them, in batches.
 *
 *	cc read_file.c $(pkg-config --cflags --libs libnvmepeer liburing)
 *	./a.out FILE
 *
 * The buffer is host memory that is a dma-buf; only buffer_open() is another for a GPU's.
 * The file system is not told of these reads, and may give a block to another file: while
 * they go on nobody may write to the file, cut it, remove it or defragment it.
 */
#define _GNU_SOURCE 1
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/fiemap.h>
#include <linux/fs.h>
#include <linux/magic.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <sys/vfs.h>
#include <unistd.h>

#include <nvmepeer_uring.h>

enum {
	WINDOW = 4 << 20,	/* bytes of the buffer: so much of a file at a time */
	BATCH = 64,		/* commands at the controller at the same time */
	EXTENTS = 128,		/* asked for at once */
	SECTOR = 512,		/* what the kernel counts partitions in */
};

/**
 * struct file - a file, and where its file system lies
 * @fd: open for reading
 * @device: of its file system
 * @length: bytes
 * @start: byte of the namespace where the file system begins
 * @controller: name of the controller's node
 * @node: name of the namespace's node
 */
struct file {
	int fd;
	dev_t device;
	uint64_t length;
	uint64_t start;
	char controller[32];
	char node[32];
};

/**
 * struct buffer - memory that the controller can write to
 * @memory: it
 * @handle: the controller's name for it
 */
struct buffer {
	struct nvmepeer_hostmem *memory;
	uint32_t handle;
};

/**
 * struct reader - reads under way
 * @ctrl: controller
 * @ns: namespace
 * @block: bytes of one of its blocks
 * @most: blocks of the longest command
 * @ring: to submit with
 * @buffer: where data goes
 * @in_flight: commands that were not seen to end
 * @commands: how many there were
 */
struct reader {
	struct nvmepeer *ctrl;
	struct nvmepeer_ns *ns;
	uint32_t block;
	uint32_t most;
	struct io_uring ring;
	struct buffer buffer;
	unsigned int in_flight;
	unsigned int commands;
};

__attribute__((format(printf, 1, 2), noreturn))
static void refuse(const char *format, ...)
{
	va_list arguments;

	va_start(arguments, format);
	fputs("read_file: ", stderr);
	vfprintf(stderr, format, arguments);
	fputs("\n", stderr);
	va_end(arguments);
	exit(1);
}

__attribute__((noreturn))
static void refuse_errno(const char *what)
{
	refuse("%s: %s", what, strerror(errno));
}

__attribute__((noreturn))
static void refuse_as_explained(void)
{
	struct nvmepeer_explanation why;

	nvmepeer_explain(&why, sizeof(why));
	refuse("%s: %s. %s. %s.", why.call, why.what, why.limit, why.help);
}

static uint64_t smaller(uint64_t a, uint64_t b)
{
	return a < b ? a : b;
}

static uint64_t larger(uint64_t a, uint64_t b)
{
	return a > b ? a : b;
}

/* ---- Which disk, and may its blocks be read behind the file system? ------ */

/* Cuts a partition's folder in sysfs to its disk's; returns where it begins. */
static uint64_t leave_partition(char *folder)
{
	unsigned long long sectors = 0;
	char path[PATH_MAX + 8];
	FILE *start;

	snprintf(path, sizeof(path), "%s/start", folder);
	start = fopen(path, "re");
	if (!start)
		return 0;
	if (fscanf(start, "%llu", &sectors) != 1)
		refuse("%s says nothing", path);
	fclose(start);
	*strrchr(folder, '/') = '\0';
	return sectors * SECTOR;
}

/* Also of a disk that is a logical volume, a loop device or part of an array: not ours. */
static void find_namespace(struct file *file)
{
	unsigned int controller, namespace;
	char link[64], folder[PATH_MAX] = "none";
	const char *disk;
	int end = 0;

	snprintf(link, sizeof(link), "/sys/dev/block/%u:%u", major(file->device),
		 minor(file->device));
	if (realpath(link, folder))
		file->start = leave_partition(folder);
	disk = strrchr(folder, '/') ? strrchr(folder, '/') + 1 : folder;
	if (sscanf(disk, "nvmep%un%u%n", &controller, &namespace, &end) != 2 || disk[end])
		refuse("the file system lies not directly on a namespace of nvme-peer (disk: %s): "
		       "bind a controller (nvme-peer bind) and put the file on its disk", disk);
	snprintf(file->controller, sizeof(file->controller), "nvmep%u", controller);
	snprintf(file->node, sizeof(file->node), "ngp%un%u", controller, namespace);
}

/* Others have addresses of their own making, or several disks. */
static void check_file_system(const struct file *file)
{
	struct statfs fs;

	if (fstatfs(file->fd, &fs))
		refuse_errno("fstatfs");
	if (fs.f_type != EXT4_SUPER_MAGIC && fs.f_type != XFS_SUPER_MAGIC)
		refuse("the file system is neither ext4 nor XFS: the addresses of its blocks need not be the disk's");
}

/* The newest data of a file may be in the journal and not yet where FIEMAP says. */
static void check_journal(const struct file *file)
{
	char *line = NULL, device[32];
	FILE *mounts = fopen("/proc/self/mountinfo", "re");
	size_t size = 0;

	if (!mounts)
		refuse_errno("/proc/self/mountinfo");
	snprintf(device, sizeof(device), " %u:%u ", major(file->device), minor(file->device));
	while (getline(&line, &size, mounts) >= 0)
		if (strstr(line, device) && strstr(line, "data=journal"))
			refuse("the file system has data in its journal: mount it without data=journal");
	free(line);
	fclose(mounts);
}

static const struct {
	unsigned int flag;
	const char *why;
} file_flags[] = {
	{ FS_ENCRYPT_FL, "is encrypted: its blocks are not its data" },
	{ FS_COMPR_FL, "is compressed: its blocks are not its data" },
	{ FS_JOURNAL_DATA_FL, "has data in the journal: chattr -j" },
};

static void check_flags(const struct file *file)
{
	struct fsxattr more = { 0 };
	int flags = 0;
	size_t i;

	if (ioctl(file->fd, FS_IOC_GETFLAGS, &flags) || ioctl(file->fd, FS_IOC_FSGETXATTR, &more))
		refuse_errno("the file's flags");
	for (i = 0; i < sizeof(file_flags) / sizeof(*file_flags); i++)
		if (flags & file_flags[i].flag)
			refuse("the file %s", file_flags[i].why);
	if (more.fsx_xflags & FS_XFLAG_REALTIME)
		refuse("the file lies on the file system's second, realtime disk");
}

static void file_open(struct file *file, const char *path)
{
	struct stat stat;

	*file = (struct file){ .fd = open(path, O_RDONLY | O_CLOEXEC) };
	if (file->fd < 0 || fstat(file->fd, &stat))
		refuse_errno(path);
	if (!S_ISREG(stat.st_mode))
		refuse("%s is not a file with data", path);
	file->device = stat.st_dev;
	file->length = stat.st_size;
	find_namespace(file);
	check_file_system(file);
	check_journal(file);
	check_flags(file);
}

/* ---- Memory and controller ----------------------------------------------- */

/* For a GPU: its driver's dma-buf, and NVME_PEER_BUF_REQUIRE_DEVICE. */
static void buffer_open(struct buffer *buffer, struct nvmepeer *ctrl)
{
	struct nvme_peer_buf_import imported;

	if (nvmepeer_hostmem_alloc(WINDOW, &buffer->memory) ||
	    nvmepeer_buf_import(ctrl, nvmepeer_hostmem_fd(buffer->memory), 0, &imported,
				sizeof(imported)))
		refuse_as_explained();
	buffer->handle = imported.handle;
}

static void reader_open(struct reader *reader, const struct file *file)
{
	struct nvme_peer_info info;

	*reader = (struct reader){ 0 };
	if (nvmepeer_open(file->controller, &reader->ctrl) ||
	    nvmepeer_info(reader->ctrl, &info, sizeof(info)) ||
	    nvmepeer_ns_open(file->node, &reader->ns) ||
	    nvmepeer_uring_init(&reader->ring, BATCH))
		refuse_as_explained();
	reader->block = nvmepeer_ns_info(reader->ns)->block_size;
	reader->most = smaller(info.max_transfer, WINDOW) / reader->block;
	buffer_open(&reader->buffer, reader->ctrl);
}

static void reader_close(struct reader *reader)
{
	io_uring_queue_exit(&reader->ring);
	nvmepeer_buf_release(reader->ctrl, reader->buffer.handle);
	nvmepeer_hostmem_free(reader->buffer.memory);
	nvmepeer_ns_close(reader->ns);
	nvmepeer_close(reader->ctrl);
}

/* ---- Reading ------------------------------------------------------------- */

static void judge(int result)
{
	if (result > 0)
		refuse("a read: NVMe status %#x, %s", result, nvmepeer_status_text(result));
	if (result < 0)
		refuse("a read: %s", strerror(-result));
}

/* Sends what was prepared, and waits until all of it has ended. */
static void finish_batch(struct reader *reader)
{
	struct io_uring_cqe *cqe;
	unsigned int head, seen;
	int result;

	while (reader->in_flight) {
		result = io_uring_submit_and_wait(&reader->ring, 1);
		if (result < 0 && result != -EINTR)
			refuse("io_uring: %s", strerror(-result));
		seen = 0;
		io_uring_for_each_cqe(&reader->ring, head, cqe) {
			judge(cqe->res);
			seen++;
		}
		io_uring_cq_advance(&reader->ring, seen);
		reader->in_flight -= seen;
	}
}

static void prepare(struct reader *reader, uint64_t lba, uint32_t blocks, uint64_t offset)
{
	struct io_uring_sqe *entry = io_uring_get_sqe(&reader->ring);

	if (!entry) {
		finish_batch(reader);
		entry = io_uring_get_sqe(&reader->ring);
	}
	if (!entry)
		refuse("io_uring: no room in the ring");
	nvmepeer_prep_buf_rw(entry, reader->ctrl, nvmepeer_ns_info(reader->ns)->nsid,
			     NVMEPEER_OPCODE_READ, lba, blocks, reader->buffer.handle, offset);
	reader->in_flight++;
	reader->commands++;
}

static const struct {
	uint32_t flag;
	const char *why;
} extent_flags[] = {
	{ FIEMAP_EXTENT_DATA_ENCRYPTED, "is encrypted" },
	{ FIEMAP_EXTENT_DATA_INLINE, "lies in the file's inode (inline data), not in blocks of its own" },
	{ FIEMAP_EXTENT_DATA_TAIL, "shares its block with other files" },
	{ FIEMAP_EXTENT_ENCODED, "is compressed, or encoded otherwise" },
	{ FIEMAP_EXTENT_DELALLOC, "has no place on the disk yet" },
	{ FIEMAP_EXTENT_UNKNOWN, "has no place on the disk that is known" },
	{ FIEMAP_EXTENT_NOT_ALIGNED, "is not aligned to blocks" },
};

static void check_extent(const struct reader *reader, const struct file *file,
			 const struct fiemap_extent *extent)
{
	uint64_t edges = extent->fe_logical | extent->fe_length | (file->start + extent->fe_physical);
	size_t i;

	for (i = 0; i < sizeof(extent_flags) / sizeof(*extent_flags); i++)
		if (extent->fe_flags & extent_flags[i].flag)
			refuse("the data at byte %llu %s", (unsigned long long)extent->fe_logical,
			       extent_flags[i].why);
	if (edges % reader->block)
		refuse("the data at byte %llu is not aligned to the namespace's blocks of %u bytes",
		       (unsigned long long)extent->fe_logical, reader->block);
}

/* The part of @extent that lies in the file from @begin to @end, to the buffer's start on. */
static void read_extent(struct reader *reader, const struct file *file,
			const struct fiemap_extent *extent, uint64_t begin, uint64_t end)
{
	uint64_t at = larger(begin, extent->fe_logical);
	uint64_t stop = smaller(end, extent->fe_logical + extent->fe_length);

	check_extent(reader, file, extent);
	/* It was given blocks, but nothing was written to them. */
	if (extent->fe_flags & FIEMAP_EXTENT_UNWRITTEN)
		return;
	while (at < stop) {
		uint64_t byte = file->start + extent->fe_physical + (at - extent->fe_logical);
		uint64_t blocks = smaller((stop - at) / reader->block, reader->most);

		prepare(reader, byte / reader->block, blocks, at - begin);
		at += blocks * reader->block;
	}
}

/* Returns how many of @map's extents are filled in: those from @at to @end, or the first. */
static uint32_t find_extents(struct fiemap *map, const struct file *file, uint64_t at,
			     uint64_t end)
{
	*map = (struct fiemap){
		.fm_start = at,
		.fm_length = end - at,
		/* Data that is still in memory gets its place, and goes there. */
		.fm_flags = FIEMAP_FLAG_SYNC,
		.fm_extent_count = EXTENTS,
	};
	if (ioctl(file->fd, FS_IOC_FIEMAP, map))
		refuse_errno("FIEMAP");
	return map->fm_mapped_extents;
}

/*
 * Fills the buffer with the file from @begin to @end, a multiple of a block each.  What has
 * no blocks is zero.
 */
static void read_window(struct reader *reader, const struct file *file, uint64_t begin,
			uint64_t end)
{
	struct fiemap *map = malloc(sizeof(*map) + EXTENTS * sizeof(struct fiemap_extent));
	uint64_t at = begin;
	uint32_t count, i;

	if (!map)
		refuse_errno("memory");
	memset(nvmepeer_hostmem_address(reader->buffer.memory), 0, end - begin);
	while (at < end && (count = find_extents(map, file, at, end))) {
		for (i = 0; i < count; i++)
			read_extent(reader, file, &map->fm_extents[i], begin, end);
		at = map->fm_extents[count - 1].fe_logical + map->fm_extents[count - 1].fe_length;
	}
	finish_batch(reader);
	free(map);
}

/* ---- Is it the same? ----------------------------------------------------- */

static void compare(const struct reader *reader, const struct file *file, uint64_t begin,
		    size_t length)
{
	const unsigned char *got = nvmepeer_hostmem_address(reader->buffer.memory);
	unsigned char *expected = malloc(length);
	size_t i;

	if (!expected || pread(file->fd, expected, length, (off_t)begin) != (ssize_t)length)
		refuse_errno("read");
	for (i = 0; i < length; i++)
		if (got[i] != expected[i])
			refuse("byte %llu is %#x on the disk, and read() says %#x",
			       (unsigned long long)begin + i, got[i], expected[i]);
	free(expected);
}

int main(int argc, char **argv)
{
	struct reader reader;
	struct file file;
	uint64_t at;

	if (argc != 2) {
		fputs("usage: read_file FILE\n"
		      "FILE lies on ext4 or XFS, and that on a disk of nvme-peer: bind a controller\n",
		      stderr);
		return 2;
	}
	file_open(&file, argv[1]);
	reader_open(&reader, &file);
	for (at = 0; at < file.length; at += WINDOW) {
		uint64_t length = smaller(file.length - at, WINDOW);
		uint64_t blocks = (length + reader.block - 1) / reader.block;

		read_window(&reader, &file, at, at + blocks * reader.block);
		compare(&reader, &file, at, length);
	}
	printf("%llu bytes by %u commands, the same as read()\n",
	       (unsigned long long)file.length, reader.commands);
	reader_close(&reader);
	close(file.fd);
	return 0;
}
