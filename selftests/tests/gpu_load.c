// SPDX-License-Identifier: GPL-2.0-only
/*
 * Two peer queue pairs and the CPU use one controller at once, each in its own part of
 * the disk, each verifying what it reads.
 *
 * iommu: on
 * long-iommu: on off pt
 * timeout: 60
 * long-mediated: 7
 */
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "gpu_qp.h"
#include "kselftest_harness.h"

#define ENTRIES		32U
#define LOAD_MS		4000
#define RANGE		(2U << 20)

/**
 * struct cpu_load - a thread that writes, reads back and compares until it is stopped
 * @disk: block device, O_DIRECT
 * @rounds: finished
 * @error: first error, -EBADMSG for wrong data
 */
struct cpu_load {
	int disk;
	atomic_bool stop;
	uint32_t rounds;
	int error;
};

static void *cpu_load(void *argument)
{
	struct cpu_load *load = argument;
	uint32_t size = 32 * NP_PAGE, i;
	uint8_t *out = aligned_alloc(NP_PAGE, size), *in = aligned_alloc(NP_PAGE, size);

	for (i = 0; out && in && !load->error && !atomic_load(&load->stop); i++) {
		uint64_t disk = NP_AREA(11) + i % 16 * size;

		np_pattern(out, size, disk, i);
		load->error = np_disk_write(load->disk, out, size, disk) ?:
			      np_disk_read(load->disk, in, size, disk) ?:
			      memcmp(out, in, size) ? -EBADMSG : 0;
		load->rounds++;
	}
	free(out);
	free(in);
	return NULL;
}

FIXTURE(load)
{
	struct np_ctrl ctrl;
	struct np_gpu_qp qps[2];
	struct cpu_load cpu;
};

FIXTURE_SETUP(load)
{
	ASSERT_EQ(0, np_ctrl_open(&self->ctrl, "np0"));
	if (np_gpu_unusable(&self->ctrl))
		SKIP(return, "%s", np_gpu_unusable(&self->ctrl));
	self->cpu.disk = np_open_node(&self->ctrl, "/dev/nvmep%dn1", O_RDWR | O_DIRECT);
	ASSERT_LE(0, self->cpu.disk);
	ASSERT_EQ(0, np_gpu_qp_open(&self->qps[0], &self->ctrl, ENTRIES, 0));
	ASSERT_EQ(0, np_gpu_qp_open(&self->qps[1], &self->ctrl, ENTRIES, NP_GPU_HOST_RINGS));
}

FIXTURE_TEARDOWN(load)
{
	if (self->cpu.disk) {
		np_gpu_qp_close(&self->qps[0]);
		np_gpu_qp_close(&self->qps[1]);
		close(self->cpu.disk);
	}
	np_ctrl_close(&self->ctrl);
}

TEST_F_TIMEOUT(load, two_peers_and_the_cpu, 50)
{
	struct nvme_peer_qp_info info;
	struct softgpu_result result;
	pthread_t thread;
	int jobs[2], i;

	for (i = 0; i < 2; i++) {
		np_gpu_range(&self->qps[i], NP_AREA(9 + i), RANGE, 16 << 10, 0x5000 + (uint64_t)i);
		jobs[i] = np_gpu_start(self->qps[i].gpu, SOFTGPU_MIXED, 8, &self->qps[i].io,
				       sizeof(self->qps[i].io));
		ASSERT_LT(0, jobs[i]);
	}
	ASSERT_EQ(0, pthread_create(&thread, NULL, cpu_load, &self->cpu));
	np_sleep_ms(LOAD_MS);
	for (i = 0; i < 2; i++)
		EXPECT_EQ(0, np_gpu_stop(self->qps[i].gpu, jobs[i], 0));
	atomic_store(&self->cpu.stop, true);
	pthread_join(thread, NULL);
	EXPECT_EQ(0, self->cpu.error);
	EXPECT_LT(0, self->cpu.rounds);
	for (i = 0; i < 2; i++) {
		ASSERT_EQ(0, np_gpu_wait(self->qps[i].gpu, jobs[i], 20000, &result));
		EXPECT_EQ(SOFTGPU_OK, result.status);
		EXPECT_EQ(0, result.errors);
		EXPECT_EQ(0, result.mismatches);
		EXPECT_LT(0, result.reads);
		EXPECT_LT(0, result.writes);
		ASSERT_EQ(0, np_qp_info(self->qps[i].qp_fd, &info));
		EXPECT_EQ(0, info.cpu_doorbell_writes);
		TH_LOG("peer %d: %llu reads, %llu writes", i, (unsigned long long)result.reads,
		       (unsigned long long)result.writes);
	}
	TH_LOG("cpu: %u writes and as many reads", self->cpu.rounds);
}

TEST_HARNESS_MAIN
