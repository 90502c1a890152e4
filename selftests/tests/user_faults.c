// SPDX-License-Identifier: GPL-2.0-only
/*
 * Commands whose user memory is in a page fault that does not end, as memory of a
 * userfaultfd or of a FUSE file may be: they keep no queue from being frozen, for which
 * Format, a reset, removal and the I/O of all other tenants would wait.
 *
 * iommu: on
 */
#include <errno.h>
#include <fcntl.h>
#include <liburing.h>
#include <linux/nvme_ioctl.h>
#include <poll.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "nptest.h"
#include "kselftest_harness.h"

#define PAGES	4

FIXTURE(user_faults)
{
	struct np_ctrl ctrl;
	int generic;
	uint8_t *pages;
	int faults;
};

FIXTURE_SETUP(user_faults)
{
	self->faults = -1;
	ASSERT_EQ(0, np_ctrl_open(&self->ctrl, np_spare_or("np1")));
	self->pages = mmap(NULL, PAGES * NP_PAGE, PROT_READ | PROT_WRITE,
			   MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	ASSERT_NE(MAP_FAILED, self->pages);
	self->faults = np_block_faults(self->pages, PAGES * NP_PAGE);
	if (self->faults == -ENOSYS)
		SKIP(return, "a kernel without userfaultfd");
	ASSERT_LE(0, self->faults);
}

FIXTURE_TEARDOWN(user_faults)
{
	munmap(self->pages, PAGES * NP_PAGE);
	np_ctrl_close(&self->ctrl);
}

/* A command whose user memory blocks in a page fault. */
struct faulter {
	int fd;
	unsigned long request;	/* ioctl, or NVME_URING_CMD_* */
	bool ring;
	void *registered;	/* buffer of the ring, or NULL */
	struct nvme_passthru_cmd64 cmd;
	int ret;
	pthread_t thread;
};

static int send_by_ring(const struct faulter *faulter)
{
	const struct nvme_passthru_cmd64 *cmd = &faulter->cmd;
	struct iovec registered = { faulter->registered, NP_PAGE };
	struct nvme_uring_cmd command = {
		.opcode = cmd->opcode, .nsid = cmd->nsid, .addr = cmd->addr,
		.data_len = cmd->data_len, .metadata = cmd->metadata,
		.metadata_len = cmd->metadata_len, .cdw10 = cmd->cdw10, .cdw12 = cmd->cdw12,
	};
	struct io_uring_cqe *cqe;
	struct io_uring_sqe *sqe;
	struct io_uring ring;
	int ret = io_uring_queue_init(4, &ring, IORING_SETUP_SQE128 | IORING_SETUP_CQE32);

	if (ret)
		return ret;
	if (faulter->registered)
		ret = io_uring_register_buffers(&ring, &registered, 1);
	sqe = io_uring_get_sqe(&ring);
	if (!ret && sqe) {
		memset(sqe, 0, 2 * sizeof(*sqe));
		sqe->opcode = IORING_OP_URING_CMD;
		sqe->fd = faulter->fd;
		sqe->cmd_op = faulter->request;
		if (faulter->registered)
			sqe->uring_cmd_flags = IORING_URING_CMD_FIXED;
		memcpy(sqe->cmd, &command, sizeof(command));
		ret = io_uring_submit(&ring) == 1 ? 0 : -EIO;
	}
	if (!ret)
		ret = io_uring_wait_cqe(&ring, &cqe) ?: cqe->res;
	io_uring_queue_exit(&ring);
	return ret;
}

static void *fault(void *argument)
{
	struct faulter *faulter = argument;

	faulter->ret = faulter->ring ?
		       send_by_ring(faulter) :
		       np_ioctl(faulter->fd, faulter->request, &faulter->cmd);
	return NULL;
}

/* Writing the limit of requests freezes the queue, as Format, removal and a reset do. */
struct freezer {
	char path[80];
	int ret;
	pthread_t thread;
};

static void *freeze(void *argument)
{
	struct freezer *freezer = argument;
	char text[32], less[32];

	freezer->ret = np_read_file(freezer->path, text, sizeof(text));
	if (freezer->ret)
		return NULL;
	snprintf(less, sizeof(less), "%d", atoi(text) - 1);
	freezer->ret = np_write_file(freezer->path, less) ?: np_write_file(freezer->path, text);
	return NULL;
}

/* The command waits for a page until the file is closed, and gets zeroes. */
static void freeze_beside(struct __test_metadata *_metadata, FIXTURE_DATA(user_faults) *self,
			  struct faulter *faulter)
{
	struct pollfd file = { .fd = self->faults, .events = POLLIN };
	struct freezer freezer = { .ret = -EINPROGRESS };

	snprintf(freezer.path, sizeof(freezer.path), "/sys/block/nvmep%dn%u/queue/nr_requests",
		 self->ctrl.instance, faulter->cmd.nsid);
	ASSERT_EQ(0, pthread_create(&faulter->thread, NULL, fault, faulter));
	EXPECT_EQ(1, poll(&file, 1, NP_TIMEOUT_MS));
	ASSERT_EQ(0, pthread_create(&freezer.thread, NULL, freeze, &freezer));
	if (np_join(freezer.thread, NULL, NP_TIMEOUT_MS)) {
		EXPECT_EQ(0, -ETIMEDOUT);
		close(self->faults);
		pthread_join(freezer.thread, NULL);
	} else {
		close(self->faults);
	}
	EXPECT_EQ(0, freezer.ret);
	pthread_join(faulter->thread, NULL);
	close(faulter->fd);
}

/* A write: the memory of a read that is copied is accessed at its end only. */
static struct faulter writer(struct __test_metadata *_metadata, FIXTURE_DATA(user_faults) *self,
			     bool ring, unsigned long request, uint32_t length)
{
	struct faulter faulter = {
		.fd = np_open_node(&self->ctrl, "/dev/ngp%dn1", O_RDWR),
		.request = request,
		.ring = ring,
		.cmd = {
			.opcode = NVMEPEER_OP_WRITE,
			.nsid = 1,
			.addr = (uintptr_t)self->pages,
			.data_len = length,
			.cdw10 = NP_AREA(6) / NP_BLOCK,
			.cdw12 = length / NP_BLOCK - 1,
		},
	};

	ASSERT_LE(0, faulter.fd);
	return faulter;
}

TEST_F(user_faults, ioctl_pinned)
{
	struct faulter faulter = writer(_metadata, self, false, NVME_IOCTL_IO64_CMD, NP_PAGE);

	freeze_beside(_metadata, self, &faulter);
	EXPECT_EQ(0, faulter.ret);
}

TEST_F(user_faults, ioctl_copied)
{
	struct faulter faulter = writer(_metadata, self, false, NVME_IOCTL_IO64_CMD, NP_PAGE);

	faulter.cmd.addr += 2;
	freeze_beside(_metadata, self, &faulter);
	EXPECT_EQ(0, faulter.ret);
}

TEST_F(user_faults, ring_pinned)
{
	struct faulter faulter = writer(_metadata, self, true, NVME_URING_CMD_IO, NP_PAGE);

	freeze_beside(_metadata, self, &faulter);
	EXPECT_EQ(0, faulter.ret);
}

TEST_F(user_faults, ring_many_pages)
{
	struct faulter faulter = writer(_metadata, self, true, NVME_URING_CMD_IO, 3 * NP_PAGE);

	faulter.cmd.addr += NP_BLOCK;
	freeze_beside(_metadata, self, &faulter);
	EXPECT_EQ(0, faulter.ret);
}

TEST_F(user_faults, ring_copied)
{
	struct faulter faulter = writer(_metadata, self, true, NVME_URING_CMD_IO, NP_PAGE);

	faulter.cmd.addr += 2;
	freeze_beside(_metadata, self, &faulter);
	EXPECT_EQ(0, faulter.ret);
}

/* The array of struct iovec is missing; of zeroes, it describes no data. */
TEST_F(user_faults, ioctl_vector)
{
	struct faulter faulter = writer(_metadata, self, false, NVME_IOCTL_IO64_CMD_VEC, NP_PAGE);

	faulter.cmd.vec_cnt = 1;
	freeze_beside(_metadata, self, &faulter);
	EXPECT_EQ(-EINVAL, faulter.ret);
}

TEST_F(user_faults, ring_vector)
{
	struct faulter faulter = writer(_metadata, self, true, NVME_URING_CMD_IO_VEC, NP_PAGE);

	faulter.cmd.vec_cnt = 1;
	freeze_beside(_metadata, self, &faulter);
	EXPECT_EQ(-EINVAL, faulter.ret);
}

static void metadata_missing(struct __test_metadata *_metadata, FIXTURE_DATA(user_faults) *self,
			     bool ring, unsigned long request)
{
	struct faulter faulter = writer(_metadata, self, ring, request, NP_BLOCK);
	uint8_t *block = calloc(1, NP_BLOCK);

	ASSERT_NE(NULL, block);
	close(faulter.fd);
	faulter.fd = np_open_node(&self->ctrl, "/dev/ngp%dn2", O_RDWR);
	ASSERT_LE(0, faulter.fd);
	faulter.cmd.nsid = 2;
	faulter.cmd.cdw10 = NP_AREA(1) / NP_BLOCK;
	faulter.cmd.addr = (uintptr_t)block;
	faulter.cmd.metadata = (uintptr_t)self->pages;
	faulter.cmd.metadata_len = 8;
	freeze_beside(_metadata, self, &faulter);
	EXPECT_EQ(0, faulter.ret);
	free(block);
}

TEST_F(user_faults, ioctl_metadata)
{
	metadata_missing(_metadata, self, false, NVME_IOCTL_IO64_CMD);
}

TEST_F(user_faults, ring_metadata)
{
	metadata_missing(_metadata, self, true, NVME_URING_CMD_IO);
}

/* The array of struct iovec names a registered buffer. */
TEST_F(user_faults, ring_registered_vector)
{
	struct faulter faulter = writer(_metadata, self, true, NVME_URING_CMD_IO_VEC, NP_PAGE);
	struct iovec part = { .iov_len = NP_PAGE };

	faulter.registered = calloc(1, NP_PAGE);
	ASSERT_NE(NULL, faulter.registered);
	part.iov_base = faulter.registered;
	faulter.cmd.addr = (uintptr_t)&part;
	faulter.cmd.vec_cnt = 1;
	if (send_by_ring(&faulter) == -EINVAL)
		SKIP(return, "a kernel without vectors of registered buffers");
	faulter.cmd.addr = (uintptr_t)self->pages;
	freeze_beside(_metadata, self, &faulter);
	EXPECT_GT(0, faulter.ret);
	free(faulter.registered);
}

TEST_HARNESS_MAIN
