// SPDX-License-Identifier: GPL-2.0-only
/*
 * A queue pair with rings in host memory, driven by the CPU as its peer: data is
 * transferred unchanged in both directions, rings wrap, full queues drain, and the kernel
 * does not write the doorbells.
 *
 * relay: 7 debug
 * mediated: 7
 */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "nptest.h"
#include "spare.h"
#include "kselftest_harness.h"

NP_KEEPS_DISK()

#define BUFFER_PAGES	257U

FIXTURE(cpu_peer)
{
	struct np_ctrl ctrl;
	char before[NP_OBJECTS];
	struct np_qp qp;
	struct np_buffer buffer;
	int disk;
	uint8_t *bytes;
};

FIXTURE_VARIANT(cpu_peer)
{
	uint32_t entries;
};

FIXTURE_VARIANT_ADD(cpu_peer, smallest) { .entries = 2 };
FIXTURE_VARIANT_ADD(cpu_peer, usual) { .entries = 32 };
FIXTURE_VARIANT_ADD(cpu_peer, several_pages) { .entries = 1024 };

FIXTURE_SETUP(cpu_peer)
{
	ASSERT_EQ(0, np_ctrl_open(&self->ctrl, "np0"));
	self->disk = np_open_node(&self->ctrl, "/dev/nvmep%dn1", O_RDWR | O_DIRECT);
	ASSERT_LE(0, self->disk);
	ASSERT_EQ(0, posix_memalign((void **)&self->bytes, NP_PAGE, (BUFFER_PAGES - 1) * NP_PAGE));
	ASSERT_EQ(0, np_objects(&self->ctrl, self->before));
	ASSERT_EQ(0, np_buffer_open(&self->buffer, self->ctrl.fd, BUFFER_PAGES, 0));
	ASSERT_EQ(0, np_qp_open(&self->qp, self->ctrl.fd, variant->entries));
}

FIXTURE_TEARDOWN(cpu_peer)
{
	struct nvme_peer_qp_info info;

	EXPECT_EQ(0, np_qp_info(self->qp.fd, &info));
	if (info.mode == NVME_PEER_MODE_DIRECT)
		EXPECT_EQ(0, info.cpu_doorbell_writes);
	np_qp_close(&self->qp);
	EXPECT_EQ(0, np_release(self->ctrl.fd, self->buffer.handle));
	np_buffer_close(&self->buffer);
	EXPECT_EQ(0, np_objects_wait(&self->ctrl, self->before, NP_TIMEOUT_MS));
	free(self->bytes);
	close(self->disk);
	np_ctrl_close(&self->ctrl);
}

/* 512 B, 4 KiB, 128 KiB and the largest size of one command. */
static uint32_t transfer_size(const struct np_ctrl *ctrl, int i)
{
	static const uint32_t sizes[] = { 512, 4096, 128 << 10 };
	uint32_t most = (BUFFER_PAGES - 1) * NP_PAGE;

	if (i < 3)
		return sizes[i];
	return ctrl->info.max_transfer < most ? ctrl->info.max_transfer : most;
}

TEST_F(cpu_peer, peer_reads_cpu_data)
{
	struct np_command command;
	int i;

	for (i = 0; i < 4; i++) {
		uint32_t size = transfer_size(&self->ctrl, i);

		np_pattern(self->bytes, size, NP_AREA(1), (uint32_t)i);
		ASSERT_EQ(0, np_disk_write(self->disk, self->bytes, size, NP_AREA(1)));
		memset(self->buffer.bytes, 0xee, size);
		np_command_rw(&command, &self->buffer, NVMEPEER_OP_READ, NP_AREA(1), 0, size);
		ASSERT_EQ(0, np_qp_run(&self->qp, &command, NP_TIMEOUT_MS));
		EXPECT_EQ(0, memcmp(self->buffer.bytes, self->bytes, size)) {
			TH_LOG("%u bytes", size);
		}
	}
}

TEST_F(cpu_peer, cpu_reads_peer_data)
{
	struct np_command command;
	int i;

	for (i = 0; i < 4; i++) {
		uint32_t size = transfer_size(&self->ctrl, i);

		np_pattern(self->buffer.bytes, size, NP_AREA(1), 100 + (uint32_t)i);
		np_command_rw(&command, &self->buffer, NVMEPEER_OP_WRITE, NP_AREA(1), 0, size);
		ASSERT_EQ(0, np_qp_run(&self->qp, &command, NP_TIMEOUT_MS));
		memset(self->bytes, 0xee, size);
		ASSERT_EQ(0, np_disk_read(self->disk, self->bytes, size, NP_AREA(1)));
		EXPECT_EQ(0, memcmp(self->buffer.bytes, self->bytes, size)) {
			TH_LOG("%u bytes", size);
		}
	}
}

TEST_F(cpu_peer, rings_wrap)
{
	uint32_t i, rounds = variant->entries * 2 + 3;
	struct np_command command;

	for (i = 0; i < rounds; i++) {
		np_command_rw(&command, &self->buffer, NVMEPEER_OP_READ, NP_AREA(1), 0, NP_BLOCK);
		command.cid = (uint16_t)i;
		ASSERT_EQ(0, np_qp_run(&self->qp, &command, NP_TIMEOUT_MS));
	}
}

/* One entry stays empty: a ring holds entries - 1 commands. */
TEST_F(cpu_peer, full_queue_completes_each_once)
{
	uint32_t count = variant->entries - 1, i;
	uint8_t *seen = calloc(1, count);
	struct np_command command;
	uint16_t cid;

	ASSERT_NE(NULL, seen);
	for (i = 0; i < count; i++) {
		np_command_rw(&command, &self->buffer, NVMEPEER_OP_READ,
			      NP_AREA(1) + i * NP_BLOCK, 0, NP_BLOCK);
		command.cid = (uint16_t)i;
		np_qp_put(&self->qp, &command);
	}
	np_qp_ring_doorbell(&self->qp);
	for (i = 0; i < count; i++) {
		ASSERT_EQ(0, np_qp_reap(&self->qp, &cid, NP_TIMEOUT_MS));
		ASSERT_GT(count, cid);
		EXPECT_EQ(0, seen[cid]++);
	}
	EXPECT_EQ(-ETIMEDOUT, np_qp_reap(&self->qp, &cid, 100));
	free(seen);
}

TEST_F(cpu_peer, failed_command_returns_status)
{
	struct np_command command;

	np_command_rw(&command, &self->buffer, NVMEPEER_OP_READ, 1ULL << 50, 0, NP_BLOCK);
	EXPECT_EQ(NVME_SC_LBA_RANGE,
		  np_qp_run(&self->qp, &command, NP_TIMEOUT_MS) & NVME_STATUS_MASK);
	np_command_rw(&command, &self->buffer, 0x7f, NP_AREA(1), 0, NP_BLOCK);
	EXPECT_EQ(NVME_SC_INVALID_OPCODE,
		  np_qp_run(&self->qp, &command, NP_TIMEOUT_MS) & NVME_STATUS_MASK);
	np_command_rw(&command, &self->buffer, NVMEPEER_OP_READ, NP_AREA(1), 0, NP_BLOCK);
	EXPECT_EQ(0, np_qp_run(&self->qp, &command, NP_TIMEOUT_MS));
}

TEST_HARNESS_MAIN
