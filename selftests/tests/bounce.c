// SPDX-License-Identifier: GPL-2.0-only
/*
 * A kernel that bounces all DMA (swiotlb=force), as confidential guests do: the CPU's
 * commands work and are not longer than a bounce buffer; peer queue pairs are refused,
 * because peers would access buffers that are never synchronised.
 *
 * iommu: bounce
 */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "npbad.h"
#include "kselftest_harness.h"

#define HUGE_BYTES	(2U << 20)
/* Twice the longest bounce buffer, 256 KiB. */
#define MANY_ENTRIES	8192U

FIXTURE(bounce)
{
	struct np_ctrl ctrl;
	char before[NP_OBJECTS];
	int block;
	uint8_t *bytes;
	uint8_t *back;
};

/* Physically contiguous if the kernel has such a page, so that it is one long segment. */
static uint8_t *contiguous(void)
{
	uint8_t *bytes;

	if (posix_memalign((void **)&bytes, HUGE_BYTES, HUGE_BYTES))
		return NULL;
	madvise(bytes, HUGE_BYTES, MADV_HUGEPAGE);
	memset(bytes, 0, HUGE_BYTES);
	return bytes;
}

/* np1 would accept transfers of 2 MiB. */
FIXTURE_SETUP(bounce)
{
	ASSERT_EQ(0, np_ctrl_open(&self->ctrl, "np1"));
	ASSERT_EQ(0, np_objects(&self->ctrl, self->before));
	self->block = np_open_node(&self->ctrl, "/dev/nvmep%dn1", O_RDWR | O_DIRECT);
	ASSERT_LE(0, self->block);
	self->bytes = contiguous();
	self->back = contiguous();
	ASSERT_NE(NULL, self->bytes);
	ASSERT_NE(NULL, self->back);
}

FIXTURE_TEARDOWN(bounce)
{
	free(self->bytes);
	free(self->back);
	close(self->block);
	EXPECT_EQ(0, np_objects_wait(&self->ctrl, self->before, NP_TIMEOUT_MS));
	np_ctrl_close(&self->ctrl);
}

TEST_F(bounce, block_io_through_bounce_buffers)
{
	static const struct {
		uint32_t offset;
		uint32_t length;
	} parts[] = {
		{ 0, NP_BLOCK },
		{ NP_PAGE - NP_BLOCK, 2 * NP_BLOCK },
		{ NP_BLOCK, 2 * NP_PAGE },
		{ 3 * NP_BLOCK, (256U << 10) - NP_BLOCK },
		{ 0, HUGE_BYTES },
		{ NP_BLOCK, HUGE_BYTES - NP_PAGE },
	};
	size_t i;

	for (i = 0; i < sizeof(parts) / sizeof(parts[0]); i++) {
		uint8_t *out = self->bytes + parts[i].offset, *in = self->back + parts[i].offset;

		np_pattern(out, parts[i].length, NP_AREA(1), i);
		ASSERT_EQ(0, np_disk_write(self->block, out, parts[i].length, NP_AREA(1)));
		memset(in, 0, parts[i].length);
		ASSERT_EQ(0, np_disk_read(self->block, in, parts[i].length, NP_AREA(1)));
		EXPECT_EQ(0, memcmp(out, in, parts[i].length));
	}
}

/* A request that cannot be mapped must not be retried for ever. */
TEST_F(bounce, command_size_limited_by_bounce_buffer)
{
	uint32_t most = self->ctrl.info.max_transfer;
	struct nvme_passthru_cmd64 read = {
		.opcode = NVMEPEER_OP_READ,
		.nsid = 1,
		.addr = (uintptr_t)self->back,
		.cdw10 = NP_AREA(1) / NP_BLOCK,
	};
	struct nvme_admin_cmd get_log = {
		.opcode = NVME_ADMIN_GET_LOG_PAGE,
		.addr = (uintptr_t)self->back,
		.data_len = HUGE_BYTES,
		.cdw10 = (HUGE_BYTES / 4 - 1) << 16 | NVME_LOG_ERRORS,
		.cdw11 = (HUGE_BYTES / 4 - 1) >> 16,
	};
	int generic = np_open_node(&self->ctrl, "/dev/ngp%dn1", O_RDWR);

	ASSERT_LE(0, generic);
	EXPECT_LT(0, most);
	EXPECT_GT(HUGE_BYTES, most);

	np_pattern(self->bytes, most, NP_AREA(1), 77);
	ASSERT_EQ(0, np_disk_write(self->block, self->bytes, most, NP_AREA(1)));
	read.data_len = most;
	read.cdw12 = most / NP_BLOCK - 1;
	EXPECT_EQ(0, np_ioctl(generic, NVME_IOCTL_IO64_CMD, &read));
	EXPECT_EQ(0, memcmp(self->bytes, self->back, most));

	read.data_len = most + NP_PAGE;
	read.cdw12 = read.data_len / NP_BLOCK - 1;
	EXPECT_EQ(-EINVAL, np_ioctl(generic, NVME_IOCTL_IO64_CMD, &read));
	EXPECT_EQ(-EINVAL, np_admin(self->ctrl.fd, &get_log));
	close(generic);
}

TEST_F(bounce, peers_are_refused)
{
	static const uint32_t pages[] = { 1, 16, 1024, 1024 };
	struct nvme_peer_qp_create create = {
		.size = sizeof(create),
		.sq_entries = 64,
		.cq_entries = 64,
	};
	struct nvme_peer_buf_import import;
	struct nvme_peer_route route = { .size = sizeof(route) };
	size_t i;

	EXPECT_EQ(-EOPNOTSUPP, np_ioctl(self->ctrl.fd, NVME_PEER_QP_CREATE, &create));
	for (i = 0; i < sizeof(pages) / sizeof(pages[0]); i++) {
		/* The last one is mapped by an attachment on older kernels. */
		int dmabuf = np_test_export(pages[i], i == 3 ? NVMEP_TEST_NO_PIN : 0);

		ASSERT_LE(0, dmabuf);
		EXPECT_EQ(-EOPNOTSUPP, np_import(self->ctrl.fd, dmabuf, 0, &import))
			TH_LOG("%u pages", pages[i]);
		route.dmabuf_fd = dmabuf;
		EXPECT_EQ(-EOPNOTSUPP, np_ioctl(self->ctrl.fd, NVME_PEER_ROUTE, &route));
		close(dmabuf);
	}
}

/* No bounce buffer is long enough for the ring: the same error, not lack of memory. */
TEST_F(bounce, long_ring_is_refused)
{
	struct nvme_peer_qp_create create = {
		.size = sizeof(create),
		.sq_entries = MANY_ENTRIES,
		.cq_entries = MANY_ENTRIES,
	};
	struct np_bad bad;
	uint32_t cap;

	if (np_bad_open(&bad) == -ENOENT)
		SKIP(return, "no badctrl in this guest");
	/* CAP.MQES, 0-based */
	cap = np_bad_get(&bad, BADCTRL_REGISTERS);
	ASSERT_EQ(0, np_bad_set(&bad, BADCTRL_REGISTERS, cap | (MANY_ENTRIES - 1)));
	ASSERT_EQ(0, np_bad_bind(&bad, 1));
	EXPECT_EQ(-EOPNOTSUPP, np_ioctl(bad.ctrl.fd, NVME_PEER_QP_CREATE, &create));
	EXPECT_EQ(0, np_bad_close(&bad));
}

TEST_HARNESS_MAIN
