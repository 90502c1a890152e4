// SPDX-License-Identifier: GPL-2.0-only
/*
 * A mixed load for a minute: peers with shallow and deep queues, rings in GPU and host
 * memory, the CPU, and queue pairs that are created and closed beside them.
 *
 * long: yes
 * timeout: 180
 * long-mediated: 7
 */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "gpu_qp.h"
#include "kselftest_harness.h"

#define SOAK_MS		60000
#define PEERS		4
#define RANGE		(4U << 20)
#define CPU_BYTES	(256U << 10)

/* Parameters of the peers: ring entries, placement, sizes, threads. */
static const struct {
	uint32_t entries;
	uint32_t flags;
	uint32_t bytes;
	uint32_t threads;
} peers[PEERS] = {
	{ 2, 0, 4096, 2 },
	{ 16, NP_GPU_HOST_RINGS, 512, 8 },
	{ 256, 0, 16 << 10, 32 },
	{ 64, NP_GPU_HOST_RINGS, 128 << 10, 4 },
};

FIXTURE(soak)
{
	struct np_ctrl ctrl;
	char before[NP_OBJECTS];
	struct np_gpu_qp qps[PEERS];
	int jobs[PEERS];
	int disk;
	uint8_t *out;
	uint8_t *in;
	bool present;
};

FIXTURE_SETUP(soak)
{
	int i;

	ASSERT_EQ(0, np_ctrl_open(&self->ctrl, "np0"));
	if (np_gpu_unusable(&self->ctrl))
		SKIP(return, "%s", np_gpu_unusable(&self->ctrl));
	ASSERT_EQ(0, np_module_objects(self->before));
	self->disk = np_open_node(&self->ctrl, "/dev/nvmep%dn1", O_RDWR | O_DIRECT);
	ASSERT_LE(0, self->disk);
	self->out = aligned_alloc(NP_PAGE, CPU_BYTES);
	self->in = aligned_alloc(NP_PAGE, CPU_BYTES);
	ASSERT_TRUE(self->out && self->in);
	for (i = 0; i < PEERS; i++)
		ASSERT_EQ(0, np_gpu_qp_open(&self->qps[i], &self->ctrl, peers[i].entries,
					    peers[i].flags));
	self->present = true;
}

FIXTURE_TEARDOWN(soak)
{
	int i;

	if (self->present) {
		for (i = 0; i < PEERS; i++)
			np_gpu_qp_close(&self->qps[i]);
		close(self->disk);
		np_ctrl_close(&self->ctrl);
		EXPECT_EQ(0, np_ctrl_open(&self->ctrl, "np0"));
		EXPECT_EQ(0, np_module_objects_wait(self->before, NP_TIMEOUT_MS));
	}
	free(self->out);
	free(self->in);
	np_ctrl_close(&self->ctrl);
}

/*
 * One transfer of the CPU in each direction, and one queue pair that is created and
 * closed.
 */
static int one_round(FIXTURE_DATA(soak) *self, uint32_t round)
{
	uint64_t disk = NP_AREA(20) + round % 32 * CPU_BYTES;
	int ret;

	np_pattern(self->out, CPU_BYTES, disk, round);
	ret = np_disk_write(self->disk, self->out, CPU_BYTES, disk) ?:
	      np_disk_read(self->disk, self->in, CPU_BYTES, disk);
	if (ret)
		return ret;
	if (memcmp(self->out, self->in, CPU_BYTES))
		return -EBADMSG;
	return np_qp_check(self->ctrl.fd, NP_TIMEOUT_MS);
}

TEST_F_TIMEOUT(soak, mixed_load_for_a_minute, 170)
{
	int64_t end = np_now_ms() + SOAK_MS;
	struct softgpu_result result;
	uint32_t rounds = 0;
	int i, ret = 0;

	for (i = 0; i < PEERS; i++) {
		np_gpu_range(&self->qps[i], NP_AREA(21 + i), RANGE, peers[i].bytes,
			     0x6000 + (uint64_t)i);
		self->jobs[i] = np_gpu_start(self->qps[i].gpu, SOFTGPU_MIXED, peers[i].threads,
					     &self->qps[i].io, sizeof(self->qps[i].io));
		ASSERT_LT(0, self->jobs[i]);
	}
	while (!ret && np_now_ms() < end)
		ret = one_round(self, rounds++);
	EXPECT_EQ(0, ret);
	for (i = 0; i < PEERS; i++)
		EXPECT_EQ(0, np_gpu_stop(self->qps[i].gpu, self->jobs[i], 0));
	for (i = 0; i < PEERS; i++) {
		/* It reads all and writes all once more. */
		ASSERT_EQ(0, np_gpu_wait(self->qps[i].gpu, self->jobs[i], SOAK_MS, &result));
		EXPECT_EQ(SOFTGPU_OK, result.status);
		EXPECT_EQ(0, result.errors);
		EXPECT_EQ(0, result.mismatches);
		EXPECT_LT(0, result.reads);
		EXPECT_LT(0, result.writes);
		TH_LOG("peer %d: %llu reads, %llu writes", i, (unsigned long long)result.reads,
		       (unsigned long long)result.writes);
	}
	TH_LOG("cpu: %u rounds", rounds);
}

TEST_HARNESS_MAIN
