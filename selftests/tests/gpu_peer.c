// SPDX-License-Identifier: GPL-2.0-only
/*
 * The software GPU reads what the CPU wrote and writes what the CPU reads, through a
 * queue pair of its own, with rings in GPU memory and in host memory.
 *
 * topology: root switch switch-acs
 * timeout: 90
 * long-mediated: 7
 */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "gpu_qp.h"
#include "kselftest_harness.h"

#define ENTRIES		64U
#define THREADS		4U
#define COPY_BYTES	(1U << 18)

FIXTURE(gpu)
{
	struct np_ctrl ctrl;
	char before[NP_OBJECTS];
	struct np_gpu_qp qp;
	int disk;
	bool present;
};

FIXTURE_VARIANT(gpu)
{
	uint32_t flags;
};

FIXTURE_VARIANT_ADD(gpu, rings_in_gpu_memory) { .flags = 0 };
FIXTURE_VARIANT_ADD(gpu, rings_in_host_memory) { .flags = NP_GPU_HOST_RINGS };

FIXTURE_SETUP(gpu)
{
	ASSERT_EQ(0, np_ctrl_open(&self->ctrl, "np0"));
	if (np_gpu_unusable(&self->ctrl))
		SKIP(return, "%s", np_gpu_unusable(&self->ctrl));
	self->disk = np_open_node(&self->ctrl, "/dev/nvmep%dn1", O_RDWR | O_DIRECT);
	ASSERT_LE(0, self->disk);
	ASSERT_EQ(0, np_objects(&self->ctrl, self->before));
	ASSERT_EQ(0, np_gpu_qp_open(&self->qp, &self->ctrl, ENTRIES, variant->flags));
	self->present = true;
}

FIXTURE_TEARDOWN(gpu)
{
	struct nvme_peer_qp_info info;

	if (self->present) {
		EXPECT_EQ(0, np_qp_info(self->qp.qp_fd, &info));
		EXPECT_EQ(0, info.cpu_doorbell_writes);
		np_gpu_qp_close(&self->qp);
		/* The import ends with the controller file. */
		np_ctrl_close(&self->ctrl);
		EXPECT_EQ(0, np_ctrl_open(&self->ctrl, "np0"));
		EXPECT_EQ(0, np_objects_wait(&self->ctrl, self->before, NP_TIMEOUT_MS));
		close(self->disk);
	}
	np_ctrl_close(&self->ctrl);
}

/* 512 B, 4 KiB, 128 KiB and the largest size of one command. */
static uint32_t transfer_size(const struct np_ctrl *ctrl, int i)
{
	static const uint32_t sizes[] = { 512, 4096, 128 << 10 };

	return i < 3 ? sizes[i] : ctrl->info.max_transfer;
}

/* Some dozens of commands, the last one shorter. */
static uint64_t range_size(uint32_t size)
{
	return size * (size <= NP_PAGE ? 64ULL : 12ULL) + 3 * NP_BLOCK;
}

static uint64_t rounded(uint64_t bytes)
{
	return (bytes + NP_PAGE - 1) / NP_PAGE * NP_PAGE;
}

static void run(struct __test_metadata *_metadata, struct np_gpu_qp *qp, uint32_t program,
		struct softgpu_result *result)
{
	ASSERT_EQ(0, np_gpu_run(qp->gpu, program, THREADS, &qp->io, sizeof(qp->io), result));
	EXPECT_EQ(SOFTGPU_OK, result->status);
	EXPECT_EQ(0, result->error);
	EXPECT_EQ(0, result->errors);
	EXPECT_EQ(0, result->mismatches);
	EXPECT_LT(0, result->doorbells);
}

TEST_F(gpu, reads_cpu_data)
{
	struct softgpu_result result;
	int i;

	for (i = 0; i < 4; i++) {
		uint32_t size = transfer_size(&self->ctrl, i);
		uint64_t seed = 0x1000 + (uint64_t)i + variant->flags;

		ASSERT_EQ(0, np_gpu_pattern_write(self->disk, NP_AREA(8),
						  rounded(range_size(size)), seed));
		np_gpu_range(&self->qp, NP_AREA(8), range_size(size), size, seed);
		run(_metadata, &self->qp, SOFTGPU_VERIFY, &result);
		EXPECT_EQ(range_size(size), result.bytes_read) {
			TH_LOG("%u bytes", size);
		}
	}
}

TEST_F(gpu, cpu_reads_gpu_data)
{
	struct softgpu_result result;
	int i;

	for (i = 0; i < 4; i++) {
		uint32_t size = transfer_size(&self->ctrl, i);
		uint64_t count = rounded(range_size(size));
		uint64_t seed = 0x2000 + (uint64_t)i + variant->flags;

		np_gpu_range(&self->qp, NP_AREA(8), count, size, seed);
		run(_metadata, &self->qp, SOFTGPU_WRITE, &result);
		EXPECT_EQ(count, result.bytes_written);
		EXPECT_EQ(0, np_gpu_pattern_check(self->disk, NP_AREA(8), count, seed)) {
			TH_LOG("%u bytes", size);
		}
	}
}

/*
 * More commands than ring entries, read and written by threads that share the queue pair.
 */
TEST_F(gpu, threads_share_a_queue)
{
	struct softgpu_result result;

	np_gpu_range(&self->qp, NP_AREA(8), 1 << 20, NP_PAGE, 0x3000);
	self->qp.io.commands = 4 * ENTRIES;
	ASSERT_EQ(0, np_gpu_run(self->qp.gpu, SOFTGPU_MIXED, 16, &self->qp.io,
				sizeof(self->qp.io), &result));
	EXPECT_EQ(SOFTGPU_OK, result.status);
	EXPECT_EQ(0, result.errors);
	EXPECT_EQ(0, result.mismatches);
	EXPECT_LE(4 * ENTRIES, result.reads + result.writes);
}

TEST_F(gpu, copies_and_flushes)
{
	struct softgpu_result result;
	uint8_t *bytes;

	ASSERT_EQ(0, np_gpu_pattern_write(self->disk, NP_AREA(8), COPY_BYTES, 0x4000));
	np_gpu_range(&self->qp, NP_AREA(8), COPY_BYTES, 16 << 10, 0x4000);
	self->qp.io.target_lba = (NP_AREA(8) + COPY_BYTES) / NP_BLOCK;
	run(_metadata, &self->qp, SOFTGPU_COPY, &result);
	ASSERT_EQ(0, np_gpu_run(self->qp.gpu, SOFTGPU_FLUSH, 1, &self->qp.io,
				sizeof(self->qp.io), &result));
	EXPECT_EQ(SOFTGPU_OK, result.status);
	/*
	 * The pattern contains its block number, so the copy differs from the pattern of
	 * its place.
	 */
	bytes = aligned_alloc(NP_PAGE, 2 * COPY_BYTES);
	ASSERT_NE(NULL, bytes);
	ASSERT_EQ(0, np_disk_read(self->disk, bytes, 2 * COPY_BYTES, NP_AREA(8)));
	EXPECT_EQ(0, memcmp(bytes, bytes + COPY_BYTES, COPY_BYTES));
	EXPECT_EQ(0, np_gpu_pattern_check(self->disk, NP_AREA(8), COPY_BYTES, 0x4000));
	free(bytes);
}

TEST_HARNESS_MAIN
