// SPDX-License-Identifier: GPL-2.0-only
/*
 * NVMe commands through io_uring: plain, vectored, fixed buffers, polled, on
 * the generic and the controller node.
 */
#include <errno.h>
#include <fcntl.h>
#include <liburing.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/uio.h>
#include <unistd.h>

#include "nptest.h"
#include "kselftest_harness.h"

#define ENTRIES	64U
#define BYTES	(16 * NP_PAGE)

FIXTURE(uring)
{
	struct np_ctrl ctrl;
	int generic;
	struct io_uring ring;
	uint8_t *bytes;
	uint8_t *back;
};

FIXTURE_VARIANT(uring)
{
	uint32_t flags;
};

FIXTURE_VARIANT_ADD(uring, interrupts) { .flags = IORING_SETUP_SQE128 | IORING_SETUP_CQE32 };
FIXTURE_VARIANT_ADD(uring, iopoll)
{
	.flags = IORING_SETUP_SQE128 | IORING_SETUP_CQE32 | IORING_SETUP_IOPOLL,
};

FIXTURE_SETUP(uring)
{
	ASSERT_EQ(0, np_ctrl_open(&self->ctrl, "np0"));
	self->generic = np_open_node(&self->ctrl, "/dev/ngp%dn1", O_RDWR);
	ASSERT_LE(0, self->generic);
	ASSERT_EQ(0, io_uring_queue_init(ENTRIES, &self->ring, variant->flags));
	ASSERT_EQ(0, posix_memalign((void **)&self->bytes, NP_PAGE, BYTES));
	ASSERT_EQ(0, posix_memalign((void **)&self->back, NP_PAGE, BYTES));
	np_pattern(self->bytes, BYTES, NP_AREA(7), 7);
	memset(self->back, 0, BYTES);
}

FIXTURE_TEARDOWN(uring)
{
	io_uring_queue_exit(&self->ring);
	free(self->bytes);
	free(self->back);
	close(self->generic);
	np_ctrl_close(&self->ctrl);
}

static struct nvme_uring_cmd rw(uint8_t opcode, const void *bytes, uint32_t length)
{
	return (struct nvme_uring_cmd){
		.opcode = opcode,
		.nsid = 1,
		.addr = (uintptr_t)bytes,
		.data_len = length,
		.cdw10 = NP_AREA(7) / NP_BLOCK,
		.cdw12 = length / NP_BLOCK - 1,
	};
}

static struct io_uring_sqe *next_entry(struct io_uring *ring, size_t size)
{
	struct io_uring_sqe *sqe = io_uring_get_sqe(ring);

	/* Tests never queue more than the ring holds. */
	if (!sqe)
		abort();
	memset(sqe, 0, size);
	sqe->opcode = IORING_OP_URING_CMD;
	return sqe;
}

static void queue(struct io_uring *ring, int fd, uint32_t op, const struct nvme_uring_cmd *cmd,
		  uint32_t flags, uint16_t fixed, uint64_t data)
{
	struct io_uring_sqe *sqe = next_entry(ring, 2 * sizeof(*sqe));

	sqe->fd = fd;
	sqe->cmd_op = op;
	sqe->uring_cmd_flags = flags;
	sqe->buf_index = fixed;
	sqe->user_data = data;
	memcpy(sqe->cmd, cmd, sizeof(*cmd));
}

static int collect(struct io_uring *ring, uint64_t *result, uint64_t *data)
{
	struct io_uring_cqe *cqe;
	int ret;

	ret = io_uring_submit_and_wait(ring, 1);
	if (ret < 0)
		return ret;
	ret = io_uring_wait_cqe(ring, &cqe);
	if (ret)
		return ret;
	ret = cqe->res;
	if (result)
		*result = cqe->big_cqe[0];
	if (data)
		*data = cqe->user_data;
	io_uring_cqe_seen(ring, cqe);
	return ret;
}

static int once(struct io_uring *ring, int fd, uint32_t op, const struct nvme_uring_cmd *cmd)
{
	queue(ring, fd, op, cmd, 0, 0, 0);
	return collect(ring, NULL, NULL);
}

TEST_F(uring, writes_and_reads)
{
	struct nvme_uring_cmd cmd = rw(NP_CMD_WRITE, self->bytes, BYTES);

	ASSERT_EQ(0, once(&self->ring, self->generic, NVME_URING_CMD_IO, &cmd));
	cmd = rw(NP_CMD_READ, self->back, BYTES);
	ASSERT_EQ(0, once(&self->ring, self->generic, NVME_URING_CMD_IO, &cmd));
	EXPECT_EQ(0, memcmp(self->bytes, self->back, BYTES));
}

TEST_F(uring, vectored)
{
	struct iovec parts[2] = { { self->back + NP_PAGE, NP_PAGE }, { self->back, NP_PAGE } };
	struct nvme_uring_cmd cmd = rw(NP_CMD_WRITE, self->bytes, 2 * NP_PAGE);

	ASSERT_EQ(0, once(&self->ring, self->generic, NVME_URING_CMD_IO, &cmd));
	cmd = rw(NP_CMD_READ, parts, 2);
	cmd.cdw12 = 2 * NP_PAGE / NP_BLOCK - 1;
	ASSERT_EQ(0, once(&self->ring, self->generic, NVME_URING_CMD_IO_VEC, &cmd));
	EXPECT_EQ(0, memcmp(self->bytes, self->back + NP_PAGE, NP_PAGE));
	EXPECT_EQ(0, memcmp(self->bytes + NP_PAGE, self->back, NP_PAGE));
}

TEST_F(uring, fixed_buffers)
{
	struct iovec fixed[2] = { { self->bytes, BYTES }, { self->back, BYTES } };
	struct nvme_uring_cmd cmd = rw(NP_CMD_WRITE, self->bytes + NP_PAGE, 2 * NP_PAGE);

	ASSERT_EQ(0, io_uring_register_buffers(&self->ring, fixed, 2));
	queue(&self->ring, self->generic, NVME_URING_CMD_IO, &cmd, IORING_URING_CMD_FIXED, 0, 0);
	ASSERT_EQ(0, collect(&self->ring, NULL, NULL));
	cmd = rw(NP_CMD_READ, self->back, 2 * NP_PAGE);
	queue(&self->ring, self->generic, NVME_URING_CMD_IO, &cmd, IORING_URING_CMD_FIXED, 1, 0);
	ASSERT_EQ(0, collect(&self->ring, NULL, NULL));
	EXPECT_EQ(0, memcmp(self->bytes + NP_PAGE, self->back, 2 * NP_PAGE));
	/* Not inside the registered buffer. */
	cmd = rw(NP_CMD_READ, self->back, 2 * NP_PAGE);
	queue(&self->ring, self->generic, NVME_URING_CMD_IO, &cmd, IORING_URING_CMD_FIXED, 0, 0);
	EXPECT_EQ(-EFAULT, collect(&self->ring, NULL, NULL));
}

static int once_fixed(struct io_uring *ring, int fd, const struct nvme_uring_cmd *cmd,
		      uint16_t fixed)
{
	queue(ring, fd, NVME_URING_CMD_IO, cmd, IORING_URING_CMD_FIXED, fixed, 0);
	return collect(ring, NULL, NULL);
}

/* Did @length bytes from @offset on arrive, and none around them? */
static bool arrived_alone(const uint8_t *bytes, const uint8_t *back, size_t offset, size_t length)
{
	size_t i;

	for (i = 0; i < BYTES; i++)
		if (back[i] != (i >= offset && i < offset + length ? bytes[i] : 0xee))
			return false;
	return true;
}

/* More than a command moves, and no dwords: whoever holds the memory, it ends alike. */
TEST_F(uring, lengths_that_are_not_for_us)
{
	size_t most = self->ctrl.info.max_transfer + NP_PAGE;
	const uint32_t lengths[] = { most, NP_PAGE - 2 };
	struct iovec fixed = { aligned_alloc(NP_PAGE, most), most };
	struct nvme_uring_cmd cmd;
	int plain;
	size_t i;

	ASSERT_NE(NULL, fixed.iov_base);
	ASSERT_EQ(0, io_uring_register_buffers(&self->ring, &fixed, 1));
	for (i = 0; i < sizeof(lengths) / sizeof(*lengths); i++) {
		cmd = rw(NP_CMD_READ, fixed.iov_base, lengths[i]);
		plain = once(&self->ring, self->generic, NVME_URING_CMD_IO, &cmd);
		EXPECT_EQ(i ? 0 : -EINVAL, plain);
		EXPECT_EQ(plain, once_fixed(&self->ring, self->generic, &cmd, 0));
	}
	free(fixed.iov_base);
}

/* In a page, over two and many, at dwords, and where it has to be copied. */
TEST_F(uring, wherever_it_lies)
{
	static const struct {
		uint32_t offset, length;
	} places[] = {
		{ 0, NP_PAGE }, { NP_BLOCK, NP_PAGE - NP_BLOCK }, { NP_PAGE / 2, NP_PAGE },
		{ NP_PAGE - 4, NP_BLOCK }, { 4, 2 * NP_PAGE - NP_BLOCK }, { 1, NP_PAGE },
		{ NP_PAGE / 2, 4 * NP_PAGE }, { 12, 8 * NP_PAGE }, { 3, 4 * NP_PAGE },
	};
	struct iovec fixed[2] = { { self->bytes, BYTES }, { self->back, BYTES } };
	size_t i;

	ASSERT_EQ(0, io_uring_register_buffers(&self->ring, fixed, 2));
	for (i = 0; i < sizeof(places) / sizeof(*places); i++) {
		uint32_t offset = places[i].offset, length = places[i].length;
		struct nvme_uring_cmd out = rw(NP_CMD_WRITE, self->bytes + offset, length);
		struct nvme_uring_cmd in = rw(NP_CMD_READ, self->back + offset, length);

		memset(self->back, 0xee, BYTES);
		ASSERT_EQ(0, once(&self->ring, self->generic, NVME_URING_CMD_IO, &out));
		ASSERT_EQ(0, once_fixed(&self->ring, self->generic, &in, 1));
		EXPECT_TRUE(arrived_alone(self->bytes, self->back, offset, length))
			TH_LOG("registered, place %zu", i);
		np_pattern(self->bytes, BYTES, NP_AREA(7), 8 + i);
		memset(self->back, 0xee, BYTES);
		ASSERT_EQ(0, once_fixed(&self->ring, self->generic, &out, 0));
		ASSERT_EQ(0, once(&self->ring, self->generic, NVME_URING_CMD_IO, &in));
		EXPECT_TRUE(arrived_alone(self->bytes, self->back, offset, length))
			TH_LOG("not registered, place %zu", i);
	}
}

/* Two pages, the second of which is not there, or which are to be read only. */
TEST_F(uring, not_where_nothing_can_be_written)
{
	uint8_t *pages = mmap(NULL, 3 * NP_PAGE, PROT_READ | PROT_WRITE,
			      MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	struct nvme_uring_cmd cmd;
	size_t i;

	ASSERT_NE(MAP_FAILED, pages);
	memset(pages, 0xee, 2 * NP_PAGE);
	ASSERT_EQ(0, munmap(pages + 2 * NP_PAGE, NP_PAGE));
	cmd = rw(NP_CMD_READ, pages + NP_PAGE + NP_PAGE / 2, NP_PAGE);
	EXPECT_EQ(-EFAULT, once(&self->ring, self->generic, NVME_URING_CMD_IO, &cmd));
	ASSERT_EQ(0, mprotect(pages, 2 * NP_PAGE, PROT_READ));
	cmd = rw(NP_CMD_READ, pages, NP_PAGE);
	EXPECT_EQ(-EFAULT, once(&self->ring, self->generic, NVME_URING_CMD_IO, &cmd));
	cmd = rw(NP_CMD_READ, pages + NP_PAGE / 2, NP_PAGE);
	EXPECT_EQ(-EFAULT, once(&self->ring, self->generic, NVME_URING_CMD_IO, &cmd));
	for (i = 0; i < 2 * NP_PAGE; i++)
		ASSERT_EQ(0xee, pages[i]);
	munmap(pages, 2 * NP_PAGE);
}

/* A read into two @parts, of one length, of registered memory. */
static int read_into_parts(struct io_uring *ring, int fd, const struct iovec *parts)
{
	struct nvme_uring_cmd cmd = rw(NP_CMD_READ, parts, 2);

	cmd.cdw12 = 2 * parts->iov_len / NP_BLOCK - 1;
	queue(ring, fd, NVME_URING_CMD_IO_VEC, &cmd, IORING_URING_CMD_FIXED, 0, 0);
	return collect(ring, NULL, NULL);
}

/* Kernels from 6.16 on can; the others say so. */
TEST_F(uring, pieces_that_do_not_meet_at_pages)
{
	struct iovec parts[2] = { { self->back + NP_BLOCK, NP_BLOCK },
				  { self->back + 3 * NP_PAGE + 1024, NP_BLOCK } };
	struct nvme_uring_cmd cmd = rw(NP_CMD_WRITE, self->bytes, 2 * NP_BLOCK);
	struct iovec fixed = { self->back, BYTES };
	int ret;

	ASSERT_EQ(0, once(&self->ring, self->generic, NVME_URING_CMD_IO, &cmd));
	ASSERT_EQ(0, io_uring_register_buffers(&self->ring, &fixed, 1));
	ret = read_into_parts(&self->ring, self->generic, parts);
	if (ret == -EINVAL)
		SKIP(return, "kernel without vectors into fixed buffers");
	ASSERT_EQ(0, ret);
	EXPECT_EQ(0, memcmp(self->bytes, parts[0].iov_base, NP_BLOCK));
	EXPECT_EQ(0, memcmp(self->bytes + NP_BLOCK, parts[1].iov_base, NP_BLOCK));
}

/* Likewise. */
TEST_F(uring, vectored_into_fixed_buffers)
{
	struct iovec parts[2] = { { self->back + NP_PAGE, NP_PAGE }, { self->back, NP_PAGE } };
	struct iovec outside[2] = { { self->back, NP_PAGE }, { self->bytes, NP_PAGE } };
	struct nvme_uring_cmd cmd = rw(NP_CMD_WRITE, self->bytes, 2 * NP_PAGE);
	struct iovec fixed = { self->back, BYTES };
	int ret;

	ASSERT_EQ(0, once(&self->ring, self->generic, NVME_URING_CMD_IO, &cmd));
	ASSERT_EQ(0, io_uring_register_buffers(&self->ring, &fixed, 1));
	ret = read_into_parts(&self->ring, self->generic, parts);
	if (ret == -EINVAL)
		SKIP(return, "kernel without vectors into fixed buffers");
	ASSERT_EQ(0, ret);
	EXPECT_EQ(0, memcmp(self->bytes, self->back + NP_PAGE, NP_PAGE));
	EXPECT_EQ(0, memcmp(self->bytes + NP_PAGE, self->back, NP_PAGE));
	EXPECT_EQ(-EFAULT, read_into_parts(&self->ring, self->generic, outside));
}

TEST_F(uring, many_at_once_each_complete_once)
{
	/* A page each: memory that two commands write at once is a mistake. */
	uint8_t *pages = aligned_alloc(NP_PAGE, ENTRIES * NP_PAGE);
	uint8_t seen[ENTRIES] = {};
	struct nvme_uring_cmd cmd;
	uint64_t data;
	uint32_t i;

	ASSERT_NE(NULL, pages);
	for (i = 0; i < ENTRIES; i++) {
		cmd = rw(NP_CMD_READ, pages + i * NP_PAGE, NP_PAGE);
		queue(&self->ring, self->generic, NVME_URING_CMD_IO, &cmd, 0, 0, i);
	}
	ASSERT_EQ(ENTRIES, io_uring_submit(&self->ring));
	for (i = 0; i < ENTRIES; i++) {
		ASSERT_EQ(0, collect(&self->ring, NULL, &data));
		ASSERT_GT(ENTRIES, data);
		EXPECT_EQ(0, seen[data]++);
	}
	free(pages);
}

TEST_F(uring, status_and_result)
{
	struct nvme_uring_cmd cmd = rw(NP_CMD_READ, self->back, NP_PAGE);
	uint64_t result = 0;

	cmd.cdw11 = 0x1000;
	EXPECT_EQ(0x80, once(&self->ring, self->generic, NVME_URING_CMD_IO, &cmd) & 0x7ff);
	/* Get Features, number of queues. */
	cmd = (struct nvme_uring_cmd){ .opcode = 0x0a, .cdw10 = 7 };
	queue(&self->ring, self->ctrl.fd, NVME_URING_CMD_ADMIN, &cmd, 0, 0, 0);
	ASSERT_EQ(0, collect(&self->ring, &result, NULL));
	EXPECT_LE(self->ctrl.info.qids_total, (result & 0xffff) + 1);
}

TEST_F(uring, wrong_commands)
{
	struct nvme_uring_cmd cmd = rw(NP_CMD_READ, self->back, NP_PAGE);

	EXPECT_EQ(-ENOTTY, once(&self->ring, self->generic, NVME_URING_CMD_ADMIN, &cmd));
	EXPECT_EQ(-ENOTTY, once(&self->ring, self->ctrl.fd, NVME_URING_CMD_IO, &cmd));
	cmd.flags = 1;
	EXPECT_EQ(-EINVAL, once(&self->ring, self->generic, NVME_URING_CMD_IO, &cmd));
	cmd = rw(NP_CMD_READ, self->back, NP_PAGE);
	cmd.nsid = 2;
	EXPECT_EQ(-EINVAL, once(&self->ring, self->generic, NVME_URING_CMD_IO, &cmd));
	cmd = rw(NP_CMD_READ, (void *)8, NP_PAGE);
	EXPECT_EQ(-EFAULT, once(&self->ring, self->generic, NVME_URING_CMD_IO, &cmd));
}

/* NVMe commands do not fit into small entries. */
TEST(uring_small_entries_are_refused)
{
	struct nvme_uring_cmd cmd = { .opcode = NP_CMD_FLUSH, .nsid = 1 };
	struct io_uring_cqe *cqe;
	struct io_uring_sqe *sqe;
	struct io_uring ring;
	struct np_ctrl ctrl;
	int generic;

	ASSERT_EQ(0, np_ctrl_open(&ctrl, "np0"));
	generic = np_open_node(&ctrl, "/dev/ngp%dn1", O_RDWR);
	ASSERT_LE(0, generic);
	ASSERT_EQ(0, io_uring_queue_init(4, &ring, 0));
	sqe = next_entry(&ring, sizeof(*sqe));
	sqe->fd = generic;
	sqe->cmd_op = NVME_URING_CMD_IO;
	memcpy(sqe->cmd, &cmd, 16);
	ASSERT_EQ(1, io_uring_submit(&ring));
	ASSERT_EQ(0, io_uring_wait_cqe(&ring, &cqe));
	EXPECT_EQ(-EOPNOTSUPP, cqe->res);
	io_uring_queue_exit(&ring);
	close(generic);
	np_ctrl_close(&ctrl);
}

TEST_HARNESS_MAIN
