// SPDX-License-Identifier: GPL-2.0-only
/* Memory that is imported to a controller, and buffer I/O of the CPU; see imported.h. */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "imported.h"

int np_imported_open_for(struct np_imported *buf, int ctrl_fd, uint32_t pages, uint32_t flags,
			 uint32_t access)
{
	struct nvme_peer_buf_import import = { .size = sizeof(import), .access = access };
	int ret;

	*buf = (struct np_imported){ .fd = np_test_export(pages, flags), .length = pages * NP_PAGE };
	if (buf->fd < 0)
		return buf->fd;
	buf->bytes = mmap(NULL, buf->length, PROT_READ | PROT_WRITE, MAP_SHARED, buf->fd, 0);
	if (buf->bytes == MAP_FAILED)
		return -errno;
	import.dmabuf_fd = buf->fd;
	ret = np_ioctl(ctrl_fd, NVME_PEER_BUF_IMPORT, &import);
	buf->handle = import.handle;
	return ret;
}

int np_imported_open(struct np_imported *buf, int ctrl_fd, uint32_t pages, uint32_t flags)
{
	return np_imported_open_for(buf, ctrl_fd, pages, flags, NVME_PEER_ACCESS_BOTH);
}

void np_imported_close(struct np_imported *buf)
{
	munmap(buf->bytes, buf->length);
	close(buf->fd);
}

bool np_all_poison(const uint8_t *bytes, size_t length)
{
	return !length || (bytes[0] == NP_POISON && !memcmp(bytes, bytes + 1, length - 1));
}

struct nvme_peer_uring_io np_transfer(uint32_t opcode, const struct np_imported *buf,
				      uint64_t offset, uint32_t length)
{
	return (struct nvme_peer_uring_io){
		.opcode = opcode,
		.nsid = 1,
		.handle = buf->handle,
		.offset = offset,
		.lba = NP_IMPORTED_AREA / NP_BLOCK,
		.blocks = length / NP_BLOCK,
	};
}

struct io_uring_sqe *np_get_sqe(struct io_uring *ring)
{
	struct io_uring_sqe *sqe = io_uring_get_sqe(ring);

	if (!sqe)
		abort();
	return sqe;
}

/* @command: the 80 bytes of an SQE's command. */
static struct io_uring_sqe *queue(struct io_uring *ring, int fd, uint32_t operation,
				  const void *command)
{
	struct io_uring_sqe *sqe = np_get_sqe(ring);

	memset(sqe, 0, 2 * sizeof(*sqe));
	sqe->opcode = IORING_OP_URING_CMD;
	sqe->fd = fd;
	sqe->cmd_op = operation;
	memcpy(sqe->cmd, command, 80);
	return sqe;
}

struct io_uring_sqe *np_transfer_queue(struct io_uring *ring, int fd,
				       const struct nvme_peer_uring_io *io, uint64_t data)
{
	struct io_uring_sqe *sqe = queue(ring, fd, NVME_PEER_URING_CMD_IO, io);

	sqe->user_data = data;
	return sqe;
}

struct io_uring_sqe *np_ranges_queue(struct io_uring *ring, int fd,
				     const struct nvme_peer_uring_io_vec *vec)
{
	return queue(ring, fd, NVME_PEER_URING_CMD_IO_VEC, vec);
}

int np_transfer_wait(struct io_uring *ring, uint64_t *data)
{
	struct io_uring_cqe *cqe;
	int ret = io_uring_submit_and_wait(ring, 1);

	if (ret >= 0)
		ret = io_uring_wait_cqe(ring, &cqe);
	if (ret < 0)
		return ret;
	ret = cqe->res;
	if (data)
		*data = cqe->user_data;
	io_uring_cqe_seen(ring, cqe);
	return ret;
}

int np_transfer_run(struct io_uring *ring, int fd, const struct nvme_peer_uring_io *io)
{
	np_transfer_queue(ring, fd, io, 0);
	return np_transfer_wait(ring, NULL);
}

int np_dmabuf_maps(int dmabuf, uint32_t *mappings)
{
	struct nvmep_test_move maps = { .fd = dmabuf };
	int test = np_test_open();
	int ret = test < 0 ? test : np_ioctl(test, NVMEP_TEST_MAPS, &maps);

	close(test);
	if (mappings)
		*mappings = maps.mappings;
	return ret ? ret : (int)maps.maps;
}

int np_dmabuf_move(int dmabuf)
{
	struct nvmep_test_move move = { .fd = dmabuf };
	int test = np_test_open();
	int ret = test < 0 ? test : np_ioctl(test, NVMEP_TEST_MOVE, &move);

	close(test);
	return ret ? ret : (int)move.maps;
}

int np_dmabuf_wait_unmapped(int dmabuf)
{
	int64_t end = np_now_ms() + NP_TIMEOUT_MS;
	int maps;

	while ((maps = np_dmabuf_maps(dmabuf, NULL)) > 0 && np_now_ms() < end)
		np_sleep_ms(5);
	return maps;
}
