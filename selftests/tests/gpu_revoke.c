// SPDX-License-Identifier: GPL-2.0-only
/*
 * Taking queue pairs away from a GPU that is using them: by unbind, by moving
 * the GPU memory that holds the rings, by the death of the process.  Jobs end,
 * late doorbells are harmless, GPU memory is not written any more.
 *
 * timeout: 120
 */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "gpupeer.h"
#include "kselftest_harness.h"

#define ENTRIES		64U
#define POISON		0xc3

FIXTURE(gpu_revoke)
{
	struct np_ctrl ctrl;
	char objects[NP_OBJECTS];
	struct np_gpu_qp qp;
	bool present;
};

FIXTURE_SETUP(gpu_revoke)
{
	ASSERT_EQ(0, np_ctrl_open(&self->ctrl, "np0"));
	if (np_gpu_unusable(&self->ctrl))
		SKIP(return, "%s", np_gpu_unusable(&self->ctrl));
	ASSERT_EQ(0, np_module_objects(self->objects));
	np_gpu_qp_clear(&self->qp);
	self->present = true;
}

/* Whatever happened, the controller binds again and a new queue pair works. */
FIXTURE_TEARDOWN(gpu_revoke)
{
	struct softgpu_result result;

	if (self->present) {
		np_gpu_qp_close(&self->qp);
		np_ctrl_close(&self->ctrl);
		EXPECT_EQ(0, np_bind(self->ctrl.address));
		ASSERT_EQ(0, np_ctrl_open(&self->ctrl, "np0"));
		ASSERT_EQ(0, np_gpu_qp_open(&self->qp, &self->ctrl, ENTRIES, 0));
		np_gpu_range(&self->qp, NP_AREA(12), 1 << 18, NP_PAGE, 1);
		EXPECT_EQ(0, np_gpu_run(self->qp.gpu, SOFTGPU_WRITE, 4, &self->qp.io,
					sizeof(self->qp.io), &result));
		EXPECT_EQ(SOFTGPU_OK, result.status);
		np_gpu_qp_close(&self->qp);
		np_ctrl_close(&self->ctrl);
		ASSERT_EQ(0, np_ctrl_open(&self->ctrl, "np0"));
		EXPECT_EQ(0, np_module_objects_settle(self->objects, NP_TIMEOUT_MS));
	}
	np_ctrl_close(&self->ctrl);
}

/* Reads without end, and waits until they flow. */
static int start_reads(struct np_gpu_qp *qp)
{
	int64_t end = np_now_ms() + NP_TIMEOUT_MS;
	struct softgpu_result result;
	int job, ret;

	np_gpu_range(qp, NP_AREA(12), 2 << 20, 64 << 10, 2);
	qp->io.depth = 16;
	job = np_gpu_start(qp->gpu, SOFTGPU_RATE, 3, &qp->io, sizeof(qp->io));
	if (job < 0)
		return job;
	do {
		ret = np_gpu_progress(qp->gpu, job, &result);
		if (ret || result.status != SOFTGPU_RUNNING || np_now_ms() > end)
			return ret ?: -ETIMEDOUT;
		np_sleep_ms(5);
	} while (result.reads < 50);
	return job;
}

static bool all_bytes(const uint8_t *byte, size_t length, uint8_t value)
{
	while (length && *byte == value)
		byte++, length--;
	return !length;
}

/* Stores to the doorbell for a while; returns the job. */
static int hammer(const struct np_gpu_qp *qp, uint64_t ns)
{
	struct softgpu_memory memory = {
		.address = qp->doorbell_address,
		.value = 1,
		.width = 4,
		.flags = SOFTGPU_MEMORY_POSTED,
		.duration_ns = ns,
	};

	return np_gpu_start(qp->gpu, SOFTGPU_HAMMER, 1, &memory, sizeof(memory));
}

/* Poison the rings and the data; the controller must not write there again. */
static void check_silence(struct __test_metadata *_metadata, struct np_gpu_qp *qp)
{
	uint8_t *data = qp->memory.bytes + (qp->io.data_address - qp->memory.address);
	size_t length = 1 << 20;

	memset(qp->cq, POISON, qp->cq_bytes);
	memset(data, POISON, length);
	np_sleep_ms(300);
	EXPECT_TRUE(all_bytes(qp->cq, qp->cq_bytes, POISON));
	EXPECT_TRUE(all_bytes(data, length, POISON));
}

static void check_unbind(struct __test_metadata *_metadata, FIXTURE_DATA(gpu_revoke) *self,
			 uint32_t flags)
{
	struct softgpu_import_info info = {};
	struct softgpu_result result;
	int job, late;

	ASSERT_EQ(0, np_gpu_qp_open(&self->qp, &self->ctrl, ENTRIES, flags));
	job = start_reads(&self->qp);
	ASSERT_LT(0, job);
	ASSERT_EQ(0, np_unbind(self->ctrl.address));
	info.handle = self->qp.doorbell_handle;
	ASSERT_EQ(0, np_ioctl(self->qp.gpu, SOFTGPU_IMPORT_INFO, &info));
	EXPECT_EQ(!!(flags & NP_GPU_STATIC_DOORBELL), info.mapped);
	EXPECT_LE(!(flags & NP_GPU_STATIC_DOORBELL), info.invalidations);
	EXPECT_EQ(NVME_PEER_QP_GONE, ((struct nvme_peer_status *)self->qp.status.at)->state);

	/* Ends by itself: a GPU that lost its queue must not hang. */
	ASSERT_EQ(0, np_gpu_wait(self->qp.gpu, job, 15000, &result));
	EXPECT_NE(SOFTGPU_OK, result.status);
	EXPECT_NE(SOFTGPU_ABORTED, result.status);

	late = hammer(&self->qp, 300000000);
	check_silence(_metadata, &self->qp);
	if (late > 0)
		EXPECT_EQ(0, np_gpu_wait(self->qp.gpu, late, 5000, &result));
}

TEST_F_TIMEOUT(gpu_revoke, unbind_with_rings_in_gpu_memory, 60)
{
	check_unbind(_metadata, self, 0);
}

TEST_F_TIMEOUT(gpu_revoke, unbind_with_rings_in_host_memory, 60)
{
	check_unbind(_metadata, self, NP_GPU_HOST_RINGS);
}

/* As NVIDIA's driver imports: it goes on storing to the doorbell of a bar that must decode. */
TEST_F_TIMEOUT(gpu_revoke, unbind_with_a_static_importer, 60)
{
	check_unbind(_metadata, self, NP_GPU_STATIC_DOORBELL);
}

TEST_F_TIMEOUT(gpu_revoke, close_under_reads, 60)
{
	struct softgpu_result result;
	int job;

	ASSERT_EQ(0, np_gpu_qp_open(&self->qp, &self->ctrl, ENTRIES, 0));
	job = start_reads(&self->qp);
	ASSERT_LT(0, job);
	close(self->qp.qp_fd);
	self->qp.qp_fd = -1;
	ASSERT_EQ(0, np_gpu_wait(self->qp.gpu, job, 15000, &result));
	EXPECT_NE(SOFTGPU_OK, result.status);
	check_silence(_metadata, &self->qp);
}

/* Memory that holds rings is pinned; who moves it by force ends the queue pair first. */
TEST_F_TIMEOUT(gpu_revoke, moving_the_gpu_memory, 60)
{
	struct softgpu_move move = { .flags = SOFTGPU_MOVE_FORCE };
	struct nvme_peer_qp_info info;
	struct softgpu_result result;
	int job;

	ASSERT_EQ(0, np_gpu_qp_open(&self->qp, &self->ctrl, ENTRIES, 0));
	job = start_reads(&self->qp);
	ASSERT_LT(0, job);
	move.fd = self->qp.memory.fd;
	ASSERT_EQ(0, np_ioctl(self->qp.gpu, SOFTGPU_MOVE, &move));
	ASSERT_EQ(0, np_qp_info(self->qp.qp_fd, &info));
	EXPECT_EQ(NVME_PEER_QP_GONE, info.state);
	np_gpu_stop(self->qp.gpu, job, SOFTGPU_STOP_ABORT);
	EXPECT_EQ(0, np_gpu_wait(self->qp.gpu, job, 15000, &result));
}

/*
 * A GPU has registered the page of doorbells, the queue pair is closed and all of it
 * let go of, but the GPU's stores go on.  Here they go through the page of a
 * neighbour, which is the same.  The next owner's commands lie in its ring, not told
 * of: they must stay there.
 */
TEST_F_TIMEOUT(gpu_revoke, stale_stores_move_no_queue_of_the_next_owner, 60)
{
	struct softgpu_memory store = {
		.value = 4, .width = 4, .flags = SOFTGPU_MEMORY_POSTED, .duration_ns = 300000000,
	};
	struct np_command flush = { .opcode = NP_CMD_FLUSH, .nsid = 1 };
	struct nvme_peer_qp_export export;
	struct nvme_peer_qp_create neighbour;
	struct softgpu_import import;
	struct softgpu_result result;
	struct np_mapper mapper;
	struct np_qp next;
	int gpu, i;

	gpu = np_gpu_open();
	ASSERT_LE(0, gpu);
	ASSERT_EQ(0, np_qp_create(self->ctrl.fd, ENTRIES, &neighbour));
	ASSERT_EQ(0, np_export_fd(neighbour.qp_fd, NVME_PEER_EXPORT_DOORBELL, 0, &export));
	ASSERT_EQ(0, np_gpu_import(gpu, export.fd, 0, &import));
	ASSERT_EQ(0, np_mapper_start(&mapper, self->ctrl.fd));
	store.address = import.address +
			2 * mapper.qid * self->ctrl.info.doorbell_stride % NP_PAGE;
	for (i = 0; i < (int)self->ctrl.info.qids_total; i++) {
		ASSERT_EQ(0, np_qp_open(&next, self->ctrl.fd, ENTRIES));
		EXPECT_NE(mapper.qid, next.create.qid);
		if (next.create.qid == mapper.qid || i == (int)self->ctrl.info.qids_total - 1)
			break;
		np_qp_close(&next);
	}
	for (i = 0; i < 4; i++)
		np_qp_put(&next, &flush);
	EXPECT_EQ(0, np_gpu_run(gpu, SOFTGPU_HAMMER, 1, &store, sizeof(store), &result));
	EXPECT_TRUE(all_bytes(next.cq.at, next.create.cq_entries * sizeof(struct np_completion),
			      0));
	np_qp_close(&next);
	np_mapper_end(&mapper);
	close(neighbour.qp_fd);
	close(export.fd);
	close(gpu);
}

/* Opens everything of its own, so that nobody else holds any of it. */
static void be_killed(int ready)
{
	static struct np_gpu_qp qp;
	struct np_ctrl ctrl;

	if (np_ctrl_open(&ctrl, "np0") || np_gpu_qp_open(&qp, &ctrl, ENTRIES, 0) ||
	    start_reads(&qp) <= 0 || write(ready, "", 1) != 1)
		_exit(1);
	for (;;)
		pause();
}

TEST_F_TIMEOUT(gpu_revoke, a_killed_process_leaves_nothing, 60)
{
	int ready[2], status;
	pid_t child;
	char byte;

	ASSERT_EQ(0, pipe(ready));
	child = fork();
	ASSERT_LE(0, child);
	if (!child)
		be_killed(ready[1]);
	close(ready[1]);
	EXPECT_EQ(1, read(ready[0], &byte, 1));
	kill(child, SIGKILL);
	ASSERT_EQ(child, waitpid(child, &status, 0));
	EXPECT_TRUE(WIFSIGNALED(status));
	close(ready[0]);
	EXPECT_EQ(0, np_module_objects_settle(self->objects, NP_TIMEOUT_MS));
}

TEST_HARNESS_MAIN
