// SPDX-License-Identifier: MIT OR GPL-2.0
/*
 * read_file.c: read the blocks of a file from the disk directly into a buffer, which may be
 * GPU memory, without the page cache, and compare them with the result of read().
 * FIEMAP returns the blocks of the file (file_blocks.h), NVME_PEER_URING_CMD_IO reads them, in
 * batches.
 *
 *	cc read_file.c $(pkg-config --cflags --libs libnvmepeer liburing)
 *	./a.out FILE
 *
 * The buffer is host memory with a dma-buf.  For GPU memory only buffer_open() differs, see
 * read_file.cu.
 */
#define _GNU_SOURCE 1
#include <nvmepeer_uring.h>

#include "file_blocks.h"

enum {
	WINDOW = 4 << 20,	/* bytes of the buffer */
	BATCH = 64,		/* commands in flight */
};

/**
 * struct buffer - memory that the controller can write to
 * @memory: the memory
 * @handle: its buffer handle
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

__attribute__((noreturn))
static void refuse_as_explained(void)
{
	struct nvmepeer_explanation why;

	nvmepeer_explain(&why, sizeof(why));
	refuse("%s: %s. %s. %s.", why.call, why.what, why.limit, why.help);
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
			     NVMEPEER_OP_READ, lba, blocks, reader->buffer.handle, offset);
	reader->in_flight++;
	reader->commands++;
}

/**
 * struct window - a part of the file that goes to the buffer's start
 * @reader: with the buffer
 * @begin: its first byte
 */
struct window {
	struct reader *reader;
	uint64_t begin;
};

static void read_data(void *context, uint64_t at, uint64_t byte, uint64_t length)
{
	struct window *window = context;
	struct reader *reader = window->reader;
	uint64_t stop = at + length;

	while (at < stop) {
		uint64_t blocks = smaller((stop - at) / reader->block, reader->most);

		prepare(reader, byte / reader->block, blocks, at - window->begin);
		at += blocks * reader->block;
		byte += blocks * reader->block;
	}
}

/*
 * Fills the buffer with the file from @begin to @end, a multiple of a block each.  What has
 * no blocks is zero.
 */
static void read_window(struct reader *reader, const struct file *file, uint64_t begin,
			uint64_t end)
{
	struct window window = { .reader = reader, .begin = begin };

	memset(nvmepeer_hostmem_address(reader->buffer.memory), 0, end - begin);
	file_extents(file, reader->block, begin, end, read_data, &window);
	finish_batch(reader);
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
		      "FILE must be on ext4 or XFS on a disk of nvme-peer: bind a controller\n",
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
