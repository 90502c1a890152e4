// SPDX-License-Identifier: GPL-2.0-only
/*
 * Passthrough to a namespace with 8 bytes of metadata per block (the second
 * controller's): metadata is transferred in both directions, and a buffer that is shorter
 * than the controller's transfer is refused.
 *
 * iommu: on off bounce
 */
#include <errno.h>
#include <fcntl.h>
#include <liburing.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "nptest.h"
#include "kselftest_harness.h"

#define NSID		2
#define BLOCKS		16U
#define PER_BLOCK	8U
#define LENGTH		(BLOCKS * NP_BLOCK)
#define META_LENGTH	(BLOCKS * PER_BLOCK)

FIXTURE(metadata)
{
	struct np_ctrl ctrl;
	int generic;
	uint8_t *bytes;
	uint8_t *back;
	uint8_t meta[META_LENGTH];
	uint8_t meta_back[META_LENGTH];
};

FIXTURE_SETUP(metadata)
{
	ASSERT_EQ(0, np_ctrl_open(&self->ctrl, np_spare_or("np1")));
	np_needs_qemu(&self->ctrl, "a second namespace, with metadata");
	np_spare_needs(self->ctrl.info.namespaces > 1, "a second namespace, with metadata");
	self->generic = np_open_node(&self->ctrl, "/dev/ngp%dn2", O_RDWR);
	if (self->generic < 0)
		SKIP(return, "no namespace with metadata in this guest");
	ASSERT_EQ(0, posix_memalign((void **)&self->bytes, NP_PAGE, LENGTH));
	ASSERT_EQ(0, posix_memalign((void **)&self->back, NP_PAGE, LENGTH));
	np_pattern(self->bytes, LENGTH, NP_AREA(1), 21);
	np_pattern(self->meta, META_LENGTH, NP_AREA(1), 22);
	memset(self->back, 0, LENGTH);
}

FIXTURE_TEARDOWN(metadata)
{
	free(self->bytes);
	free(self->back);
	if (self->generic >= 0)
		close(self->generic);
	np_ctrl_close(&self->ctrl);
}

static struct nvme_passthru_cmd rw(uint8_t opcode, void *bytes, void *meta)
{
	return (struct nvme_passthru_cmd){
		.opcode = opcode,
		.nsid = NSID,
		.addr = (uintptr_t)bytes,
		.data_len = LENGTH,
		.metadata = (uintptr_t)meta,
		.metadata_len = META_LENGTH,
		.cdw10 = NP_AREA(1) / NP_BLOCK,
		.cdw12 = BLOCKS - 1,
	};
}

TEST_F(metadata, write_and_read_by_ioctl)
{
	struct nvme_passthru_cmd cmd = rw(NVMEPEER_OP_WRITE, self->bytes, self->meta);

	ASSERT_EQ(0, np_ioctl(self->generic, NVME_IOCTL_IO_CMD, &cmd));
	cmd = rw(NVMEPEER_OP_READ, self->back, self->meta_back);
	ASSERT_EQ(0, np_ioctl(self->generic, NVME_IOCTL_IO_CMD, &cmd));
	EXPECT_EQ(0, memcmp(self->bytes, self->back, LENGTH));
	EXPECT_EQ(0, memcmp(self->meta, self->meta_back, META_LENGTH));
}

/*
 * The controller transfers what the command says, so the driver must check the caller's
 * length.
 */
TEST_F(metadata, short_buffer_is_refused)
{
	struct nvme_passthru_cmd cmd = rw(NVMEPEER_OP_READ, self->back, self->meta_back);

	cmd.metadata_len = META_LENGTH - PER_BLOCK;
	EXPECT_EQ(-EINVAL, np_ioctl(self->generic, NVME_IOCTL_IO_CMD, &cmd));
	cmd = rw(NVMEPEER_OP_READ, self->back, self->meta_back);
	cmd.data_len = LENGTH - NP_BLOCK;
	EXPECT_EQ(-EINVAL, np_ioctl(self->generic, NVME_IOCTL_IO_CMD, &cmd));
	cmd = rw(NVMEPEER_OP_READ, self->back, NULL);
	cmd.metadata_len = 0;
	EXPECT_EQ(-EINVAL, np_ioctl(self->generic, NVME_IOCTL_IO_CMD, &cmd));
	cmd = rw(NVMEPEER_OP_READ, self->back, (void *)8);
	EXPECT_EQ(-EFAULT, np_ioctl(self->generic, NVME_IOCTL_IO_CMD, &cmd));
	cmd = rw(NVMEPEER_OP_WRITE, self->bytes, (void *)8);
	EXPECT_EQ(-EFAULT, np_ioctl(self->generic, NVME_IOCTL_IO_CMD, &cmd));
}

/* @flags: for example that the data is in registered buffer 0. */
static int uring_once(struct io_uring *ring, int fd, const struct nvme_passthru_cmd *cmd, uint32_t flags)
{
	struct io_uring_sqe *sqe = io_uring_get_sqe(ring);
	struct nvme_uring_cmd user = {
		.opcode = cmd->opcode,
		.nsid = cmd->nsid,
		.addr = cmd->addr,
		.data_len = cmd->data_len,
		.metadata = cmd->metadata,
		.metadata_len = cmd->metadata_len,
		.cdw10 = cmd->cdw10,
		.cdw12 = cmd->cdw12,
	};
	struct io_uring_cqe *cqe;
	int ret;

	if (!sqe)
		return -EBUSY;
	memset(sqe, 0, 2 * sizeof(*sqe));
	sqe->opcode = IORING_OP_URING_CMD;
	sqe->fd = fd;
	sqe->cmd_op = NVME_URING_CMD_IO;
	sqe->uring_cmd_flags = flags;
	memcpy(sqe->cmd, &user, sizeof(user));
	ret = io_uring_submit(ring);
	if (ret < 0)
		return ret;
	ret = io_uring_wait_cqe(ring, &cqe);
	if (ret)
		return ret;
	ret = cqe->res;
	io_uring_cqe_seen(ring, cqe);
	return ret;
}

TEST_F(metadata, write_and_read_by_io_uring)
{
	struct nvme_passthru_cmd cmd = rw(NVMEPEER_OP_WRITE, self->bytes, self->meta);
	struct io_uring ring;

	ASSERT_EQ(0, io_uring_queue_init(4, &ring, IORING_SETUP_SQE128 | IORING_SETUP_CQE32));
	ASSERT_EQ(0, uring_once(&ring, self->generic, &cmd, 0));
	cmd = rw(NVMEPEER_OP_READ, self->back, self->meta_back);
	ASSERT_EQ(0, uring_once(&ring, self->generic, &cmd, 0));
	EXPECT_EQ(0, memcmp(self->bytes, self->back, LENGTH));
	EXPECT_EQ(0, memcmp(self->meta, self->meta_back, META_LENGTH));
	io_uring_queue_exit(&ring);
}

/* Metadata is never registered, and copied as for other data. */
TEST_F(metadata, data_in_registered_buffer)
{
	struct nvme_passthru_cmd cmd = rw(NVMEPEER_OP_WRITE, self->bytes, self->meta);
	struct iovec registered = { self->back, LENGTH };
	struct io_uring ring;

	ASSERT_EQ(0, io_uring_queue_init(4, &ring, IORING_SETUP_SQE128 | IORING_SETUP_CQE32));
	ASSERT_EQ(0, io_uring_register_buffers(&ring, &registered, 1));
	EXPECT_EQ(-EFAULT, uring_once(&ring, self->generic, &cmd, IORING_URING_CMD_FIXED));
	ASSERT_EQ(0, np_ioctl(self->generic, NVME_IOCTL_IO_CMD, &cmd));
	cmd = rw(NVMEPEER_OP_READ, self->back, self->meta_back);
	ASSERT_EQ(0, uring_once(&ring, self->generic, &cmd, IORING_URING_CMD_FIXED));
	EXPECT_EQ(0, memcmp(self->bytes, self->back, LENGTH));
	EXPECT_EQ(0, memcmp(self->meta, self->meta_back, META_LENGTH));
	io_uring_queue_exit(&ring);
}

TEST_HARNESS_MAIN
