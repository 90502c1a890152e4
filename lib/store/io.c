// SPDX-License-Identifier: MIT OR GPL-2.0
/*
 * I/O by io_uring, without the page cache.  A write of many bytes is one request, which
 * the block layer splits; a short transfer, of a file or after a signal, is continued.
 */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <liburing.h>
#include <linux/fs.h>
#include <linux/nvme_ioctl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include "io.h"

enum { DEPTH = 64, FILE_BLOCK = 4096, MOST_BYTES = 1 << 30, SECTOR = 512, REFUSAL_US = 1000 };
enum { EARLY_BYTES = 64 << 10, EARLY_COMMANDS = 8 };

/** struct io_queue - a ring
 * @ring: the ring
 * @in_flight: commands that have not completed, below DEPTH
 */
struct io_queue {
	struct io_uring ring;
	unsigned int in_flight;
};

/* A number in sysfs; false: there is no such attribute. */
static bool read_number(dev_t device, const char *name, unsigned long long *number)
{
	char path[64];
	FILE *file;
	bool found;

	snprintf(path, sizeof(path), "/sys/dev/block/%u:%u/%s", major(device), minor(device), name);
	file = fopen(path, "re");
	if (!file)
		return false;
	found = fscanf(file, "%llu", number) == 1;
	fclose(file);
	return found;
}

/* Whether a folder in sysfs has entries. */
static bool has_entries(dev_t device, const char *name)
{
	struct dirent **entries;
	char path[64];
	int count, i;

	snprintf(path, sizeof(path), "/sys/dev/block/%u:%u/%s", major(device), minor(device), name);
	count = scandir(path, &entries, NULL, NULL);
	for (i = 0; i < count; i++)
		free(entries[i]);
	if (count >= 0)
		free(entries);
	/* Besides "." and "..". */
	return count > 2;
}

/*
 * Namespace and place of a block device on it.  dm passes ioctls on to the disks below it,
 * which it names in "slaves", and its blocks are elsewhere on those.
 */
static void identify(struct io_disk *disk, dev_t device)
{
	unsigned long long sectors = 0;
	int nsid;

	if (has_entries(device, "slaves") || has_entries(device, "../slaves"))
		return;
	nsid = ioctl(disk->fd, NVME_IOCTL_ID);
	if (nsid <= 0)
		return;
	/* Only partitions have a start. */
	if (read_number(device, "start", &sectors))
		disk->start = sectors * SECTOR;
	disk->nsid = (uint32_t)nsid;
}

static int describe(struct io_disk *disk, const struct stat *status)
{
	int block;

	if (S_ISREG(status->st_mode)) {
		disk->bytes = (uint64_t)status->st_size;
		disk->block = FILE_BLOCK;
		if (!flock(disk->fd, LOCK_EX | LOCK_NB))
			return 0;
		return errno == EWOULDBLOCK ? -EBUSY : -errno;
	}
	if (ioctl(disk->fd, BLKSSZGET, &block) || ioctl(disk->fd, BLKGETSIZE64, &disk->bytes))
		return -errno;
	disk->block = (uint32_t)block;
	identify(disk, status->st_rdev);
	return 0;
}

int io_open(const char *path, bool read_only, struct io_disk *disk)
{
	int flags = (read_only ? O_RDONLY : O_RDWR) | O_CLOEXEC | O_DIRECT;
	struct stat status, opened;
	int error;

	memset(disk, 0, sizeof(*disk));
	if (stat(path, &status))
		return -errno;
	if (S_ISBLK(status.st_mode))
		flags |= O_EXCL;
	else if (!S_ISREG(status.st_mode))
		return -ENOTBLK;
	disk->fd = open(path, flags);
	if (disk->fd < 0)
		return errno == EINVAL ? -EOPNOTSUPP : -errno;
	/* The path may be another file's by now: then the flags are not for that. */
	if (fstat(disk->fd, &opened))
		error = -errno;
	else if ((opened.st_mode & S_IFMT) != (status.st_mode & S_IFMT))
		error = -ESTALE;
	else
		error = describe(disk, &opened);
	if (error)
		io_close(disk);
	return error;
}

void io_close(struct io_disk *disk)
{
	close(disk->fd);
}

int io_queue_open(struct io_queue **queue)
{
	struct io_queue *opened = calloc(1, sizeof(*opened));
	int error;

	if (!opened)
		return -ENOMEM;
	error = io_uring_queue_init(DEPTH, &opened->ring, 0);
	if (error) {
		free(opened);
		return error;
	}
	*queue = opened;
	return 0;
}

void io_queue_close(struct io_queue *queue)
{
	io_uring_queue_exit(&queue->ring);
	free(queue);
}

/* One command has a place of its own in the ring, since at most DEPTH are in flight. */
static void start(struct io_queue *queue, struct io *io)
{
	struct io_uring_sqe *sqe = io_uring_get_sqe(&queue->ring);
	unsigned int bytes = io->bytes < MOST_BYTES ? (unsigned int)io->bytes : MOST_BYTES;

	switch (io->kind) {
	case IO_READ:
		io_uring_prep_read(sqe, io->disk->fd, io->data, bytes, io->offset);
		break;
	case IO_WRITE:
	case IO_WRITE_FUA:
		io_uring_prep_write(sqe, io->disk->fd, io->data, bytes, io->offset);
		if (io->kind == IO_WRITE_FUA)
			sqe->rw_flags = RWF_DSYNC;
		break;
	case IO_FLUSH:
		io_uring_prep_fsync(sqe, io->disk->fd, IORING_FSYNC_DATASYNC);
		break;
	}
	io_uring_sqe_set_data(sqe, io);
	queue->in_flight++;
}

/* A completion: of a part, of the whole, or a failure. */
static void complete(struct io_queue *queue, struct io *io, int result)
{
	queue->in_flight--;
	if (result == -EINTR || result == -EAGAIN) {
		start(queue, io);
		return;
	}
	if (result < 0 || io->kind == IO_FLUSH) {
		io->result = result < 0 ? result : 0;
		return;
	}
	io->data = (char *)io->data + result;
	io->offset += (uint64_t)result;
	io->bytes -= (uint64_t)result;
	if (!result)
		io->result = -EIO;	/* behind the end of a file that was truncated */
	else if (io->bytes)
		start(queue, io);
}

/* Submit what is prepared and wait until at most @most commands are in flight. */
static void reap(struct io_queue *queue, unsigned int most)
{
	while (queue->in_flight > most) {
		struct io_uring_cqe *cqe;
		unsigned int head, count = 0;

		/* Entries that the kernel has refused stay in the ring and are tried again. */
		if (io_uring_submit_and_wait(&queue->ring, 1) < 0)
			usleep(REFUSAL_US);
		io_uring_for_each_cqe(&queue->ring, head, cqe) {
			complete(queue, io_uring_cqe_get_data(cqe), cqe->res);
			count++;
		}
		io_uring_cq_advance(&queue->ring, count);
	}
}

void io_submit(struct io_queue *queue, struct io *io)
{
	reap(queue, DEPTH - 1);
	io->result = 0;
	start(queue, io);
	/*
	 * The disk begins while the caller prepares the next command: at once if that takes
	 * long, since it has many bytes.  What the kernel refuses now is submitted by reap().
	 */
	if (io->bytes >= EARLY_BYTES || io_uring_sq_ready(&queue->ring) >= EARLY_COMMANDS)
		io_uring_submit(&queue->ring);
}

void io_wait(struct io_queue *queue)
{
	reap(queue, 0);
}
