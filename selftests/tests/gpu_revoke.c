// SPDX-License-Identifier: GPL-2.0-only
/*
 * Revoke queue pairs that a GPU is using: by unbind, by moving the GPU memory that holds
 * the rings, by killing the process. Jobs end, late doorbell stores are harmless, and GPU
 * memory is not written any more. After a reset a queue pair is re-armed.
 *
 * kernels: 7
 * long-kernels: 6.1 6.12 7 debug kcsan
 * iommu: on
 * long-iommu: on off pt
 * timeout: 300
 * long-mediated: 7
 */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "gpu_qp.h"
#include "kselftest_harness.h"

#define ENTRIES		64U
#define POISON		0xc3
#define RESETS		2
/* Less than the timeout of a command. */
#define LOST_MS		15000

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

/* The controller can be bound again and a new queue pair works. */
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
		EXPECT_EQ(0, np_module_objects_wait(self->objects, NP_TIMEOUT_MS));
	}
	np_ctrl_close(&self->ctrl);
}

/* Start endless reads, or reads and writes, and wait until commands complete. */
static int start(struct np_gpu_qp *qp, uint32_t program)
{
	int64_t end = np_now_ms() + NP_TIMEOUT_MS;
	struct softgpu_result result;
	int job, ret;

	np_gpu_range(qp, NP_AREA(12), 2 << 20, 64 << 10, 2);
	qp->io.depth = 16;
	job = np_gpu_start(qp->gpu, program, 3, &qp->io, sizeof(qp->io));
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

static int start_reads(struct np_gpu_qp *qp)
{
	return start(qp, SOFTGPU_RATE);
}

static bool all_bytes(const uint8_t *byte, size_t length, uint8_t value)
{
	while (length && *byte == value)
		byte++, length--;
	return !length;
}

/* Store to the doorbell for a while; returns the job. */
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
	EXPECT_EQ(!np_qp_revoked() || flags & NP_GPU_STATIC_DOORBELL, info.mapped);
	EXPECT_LE(np_qp_revoked() && !(flags & NP_GPU_STATIC_DOORBELL), info.invalidations);
	EXPECT_EQ(NVME_PEER_QP_GONE, ((struct nvme_peer_status *)self->qp.status.at)->state);

	/* The job ends by itself: a GPU that lost its queue must not hang. */
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

/*
 * NVIDIA's driver imports statically and continues to store to the doorbell, so the BAR
 * must decode.
 */
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

/*
 * Memory that holds rings is pinned; an exporter that moves it nevertheless stops the
 * queue pair first.
 */
TEST_F_TIMEOUT(gpu_revoke, gpu_memory_moved, 60)
{
	struct softgpu_move move = { .flags = SOFTGPU_MOVE_FORCE };
	struct nvme_peer_qp_info info;
	struct softgpu_result result;
	int job;

	NP_NOT_MEDIATED("an invalidation ends the buffer, not the queue pair");
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

/* --- re-arm --------------------------------------------------------------------- */

static int reset_controller(const struct np_ctrl *ctrl)
{
	return np_ioctl(ctrl->fd, NVME_IOCTL_RESET, NULL);
}

static int reset_by(const struct np_ctrl *ctrl, const char *method)
{
	return np_pci_write(ctrl->address, "reset_method", method) ?:
	       np_pci_write(ctrl->address, "reset", "1") ?:
	       np_pci_write(ctrl->address, "reset_method", "default");
}

static int reset_function(const struct np_ctrl *ctrl)
{
	return reset_by(ctrl, "flr");
}

static int reset_bus(const struct np_ctrl *ctrl)
{
	return reset_by(ctrl, "bus");
}

/* Is the GPU's import of the doorbells mapped? */
static bool doorbell_mapped(const struct np_gpu_qp *qp)
{
	struct softgpu_import_info info = { .handle = qp->doorbell_handle };

	return !np_ioctl(qp->gpu, SOFTGPU_IMPORT_INFO, &info) && info.mapped;
}

/* Each started command ends, exactly once, within the limit. */
static void wait_for_loss(struct __test_metadata *_metadata, struct np_gpu_qp *qp, int job,
			  struct softgpu_result *result)
{
	ASSERT_EQ(0, np_gpu_wait(qp->gpu, job, LOST_MS, result));
	if (result->status == SOFTGPU_FAULT)
		return;
	EXPECT_EQ(SOFTGPU_FAILED, result->status);
	EXPECT_LT(0, result->errors);
	EXPECT_EQ(result->commands, result->reads + result->writes + result->errors);
	EXPECT_EQ(0, result->mismatches);
}

/*
 * The job ended with lost commands. @faults: a store to a revoked doorbell may have ended
 * it first.
 */
static void check_lost(struct __test_metadata *_metadata, struct np_gpu_qp *qp, int job,
		       bool faults)
{
	struct softgpu_result result;

	wait_for_loss(_metadata, qp, job, &result);
	if (faults && result.status == SOFTGPU_FAULT)
		return;
	EXPECT_EQ(SOFTGPU_FAILED, result.status);
	EXPECT_EQ(NVMEPEER_E_LOST, result.error);
}

/* Reads and writes that wrap the rings. */
static void check_works(struct __test_metadata *_metadata, struct np_gpu_qp *qp)
{
	struct softgpu_result result;

	np_gpu_range(qp, NP_AREA(12), 1 << 20, NP_PAGE, 3);
	qp->io.commands = 4 * ENTRIES;
	ASSERT_EQ(0, np_gpu_run(qp->gpu, SOFTGPU_MIXED, 8, &qp->io, sizeof(qp->io), &result));
	EXPECT_EQ(SOFTGPU_OK, result.status);
	EXPECT_EQ(0, result.error);
	EXPECT_EQ(0, result.errors);
	EXPECT_EQ(0, result.mismatches);
	EXPECT_LT(0, result.reads);
	EXPECT_LT(0, result.writes);
	EXPECT_EQ(result.commands, result.reads + result.writes);
	qp->io.commands = 0;
}

/* Reset under reads, then under reads and writes. */
static void check_reset(struct __test_metadata *_metadata, FIXTURE_DATA(gpu_revoke) *self,
			uint32_t flags, int (*reset)(const struct np_ctrl *ctrl))
{
	bool revoked = np_qp_revoked() && reset != reset_controller && !(flags & NP_GPU_STATIC_DOORBELL);
	struct np_gpu_qp *qp = &self->qp;
	int i, job;

	ASSERT_EQ(0, np_gpu_qp_open(qp, &self->ctrl, ENTRIES, flags));
	check_works(_metadata, qp);
	for (i = 0; i < RESETS; i++) {
		job = start(qp, i % 2 ? SOFTGPU_MIXED : SOFTGPU_RATE);
		ASSERT_LT(0, job);
		ASSERT_EQ(0, reset(&self->ctrl));
		check_lost(_metadata, qp, job, revoked);
		EXPECT_EQ(!revoked, doorbell_mapped(qp));
		ASSERT_EQ(0, np_gpu_qp_rearm(qp, NP_TIMEOUT_MS));
		EXPECT_TRUE(doorbell_mapped(qp));
		check_works(_metadata, qp);
	}
}

TEST_F_TIMEOUT(gpu_revoke, reset_with_rings_in_gpu_memory, 60)
{
	check_reset(_metadata, self, 0, reset_controller);
}

TEST_F_TIMEOUT(gpu_revoke, reset_with_rings_in_host_memory, 60)
{
	check_reset(_metadata, self, NP_GPU_HOST_RINGS, reset_controller);
}

/* The GPU's driver maps the doorbells again at the same GPU address. */
TEST_F_TIMEOUT(gpu_revoke, function_reset_with_rings_in_gpu_memory, 60)
{
	check_reset(_metadata, self, 0, reset_function);
}

TEST_F_TIMEOUT(gpu_revoke, function_reset_with_rings_in_host_memory, 60)
{
	check_reset(_metadata, self, NP_GPU_HOST_RINGS, reset_function);
}

TEST_F_TIMEOUT(gpu_revoke, function_reset_with_a_static_importer, 60)
{
	check_reset(_metadata, self, NP_GPU_STATIC_DOORBELL, reset_function);
}

TEST_F_TIMEOUT(gpu_revoke, bus_reset_with_rings_in_gpu_memory, 60)
{
	check_reset(_metadata, self, 0, reset_bus);
}

/*
 * Two queue pairs of two GPU files; the first one to be re-armed does not wait for the
 * other.
 */
TEST_F_TIMEOUT(gpu_revoke, function_reset_under_two_queue_pairs, 60)
{
	struct np_gpu_qp other, *qps[] = { &self->qp, &other };
	int jobs[2], i;

	ASSERT_EQ(0, np_gpu_qp_open(qps[0], &self->ctrl, ENTRIES, 0));
	ASSERT_EQ(0, np_gpu_qp_open(qps[1], &self->ctrl, ENTRIES, NP_GPU_HOST_RINGS));
	for (i = 0; i < 2; i++) {
		jobs[i] = start_reads(qps[i]);
		EXPECT_LT(0, jobs[i]);
	}
	EXPECT_EQ(0, reset_function(&self->ctrl));
	for (i = 0; i < 2; i++)
		check_lost(_metadata, qps[i], jobs[i], true);
	for (i = 0; i < 2; i++) {
		EXPECT_EQ(0, np_gpu_qp_rearm(qps[i], NP_TIMEOUT_MS));
		check_works(_metadata, qps[i]);
	}
	np_gpu_qp_close(&other);
}

/*
 * For drivers that cannot restore a mapping; refused before the queue pair is re-armed.
 */
TEST_F_TIMEOUT(gpu_revoke, doorbells_reimported_after_function_reset, 60)
{
	struct nvme_peer_qp_export export;
	struct softgpu_import import;
	int job;

	ASSERT_EQ(0, np_gpu_qp_open(&self->qp, &self->ctrl, ENTRIES, 0));
	job = start_reads(&self->qp);
	ASSERT_LT(0, job);
	ASSERT_EQ(0, reset_function(&self->ctrl));
	check_lost(_metadata, &self->qp, job, true);
	EXPECT_EQ(-EAGAIN, np_export_fd(self->qp.qp_fd, NVME_PEER_EXPORT_DOORBELL, 0, &export));
	EXPECT_EQ(-EAGAIN, np_gpu_import(self->qp.gpu, self->qp.doorbell_fd, 0, &import));
	ASSERT_EQ(0, np_gpu_qp_rearm(&self->qp, NP_TIMEOUT_MS));
	ASSERT_EQ(0, np_gpu_qp_import_doorbell(&self->qp));
	check_works(_metadata, &self->qp);
}

/*
 * The GPU stores to the control page, and the driver deletes the queue pair's queues.
 * Commands may be completed as aborted before the status page changes.
 */
TEST_F_TIMEOUT(gpu_revoke, peer_requests_quiesce, 60)
{
	struct softgpu_memory ask = { .value = 1, .width = 4 };
	struct softgpu_result result;
	int job;

	ASSERT_EQ(0, np_gpu_qp_open(&self->qp, &self->ctrl, ENTRIES, 0));
	job = start_reads(&self->qp);
	ASSERT_LT(0, job);
	ask.address = self->qp.io.queue.control;
	ASSERT_EQ(0, np_gpu_run(self->qp.gpu, SOFTGPU_STORE, 1, &ask, sizeof(ask), &result));
	EXPECT_EQ(SOFTGPU_OK, result.status);
	wait_for_loss(_metadata, &self->qp, job, &result);
	EXPECT_EQ(SOFTGPU_FAILED, result.status);
	EXPECT_EQ(NVMEPEER_E_LOST, result.error);
	ASSERT_EQ(0, np_gpu_qp_rearm(&self->qp, NP_TIMEOUT_MS));
	check_works(_metadata, &self->qp);
}

/* --- stale stores -------------------------------------------------------------- */

/*
 * A GPU registered the doorbell page; the queue pair is closed and everything released,
 * but the GPU continues to store. Here the stores go through the page of a neighbouring
 * queue pair, which is the same. Commands that the next owner has in its ring, without
 * having written its doorbell, must not be executed.
 */
TEST_F_TIMEOUT(gpu_revoke, stale_doorbell_does_not_reach_next_owner, 60)
{
	struct softgpu_memory store = {
		.value = 4, .width = 4, .flags = SOFTGPU_MEMORY_POSTED, .duration_ns = 300000000,
	};
	struct np_command flush = { .opcode = NVMEPEER_OP_FLUSH, .nsid = 1 };
	struct nvme_peer_qp_export export;
	struct nvme_peer_qp_create neighbour;
	struct softgpu_import import;
	struct softgpu_result result;
	struct np_mapper mapper;
	struct np_qp next;
	int gpu, i;

	NP_NOT_MEDIATED("no queue ID of its own, and its doorbells are no registers");
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

/* The child opens everything itself, so that no other process holds a reference. */
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

TEST_F_TIMEOUT(gpu_revoke, killed_process_leaves_nothing, 60)
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
	EXPECT_EQ(0, np_module_objects_wait(self->objects, NP_TIMEOUT_MS));
}

TEST_HARNESS_MAIN
