// SPDX-License-Identifier: GPL-2.0-only
/*
 * A reset quiesces queue pairs; the owner re-arms them, and they work as before.
 *
 * iommu: on off
 * topology: root switch
 * timeout: 180
 * relay: 7 debug
 * mediated: 7
 */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <unistd.h>

#include "nptest.h"
#include "spare.h"
#include "kselftest_harness.h"

NP_KEEPS_DISK()

#define ENTRIES		16U
#define PAGES		9U
#define RESETS		5
#define MANY		32U

FIXTURE(rearm)
{
	struct np_ctrl ctrl;
	char before[NP_OBJECTS];
	struct np_buffer buffer;
	struct np_qp qp;
};

FIXTURE_SETUP(rearm)
{
	ASSERT_EQ(0, np_ctrl_open(&self->ctrl, "np0"));
	ASSERT_EQ(0, np_objects(&self->ctrl, self->before));
	ASSERT_EQ(0, np_buffer_open(&self->buffer, self->ctrl.fd, PAGES, 0));
	ASSERT_EQ(0, np_qp_open(&self->qp, self->ctrl.fd, ENTRIES));
}

FIXTURE_TEARDOWN(rearm)
{
	np_qp_close(&self->qp);
	EXPECT_EQ(0, np_release(self->ctrl.fd, self->buffer.handle));
	np_buffer_close(&self->buffer);
	EXPECT_EQ(0, np_objects_wait(&self->ctrl, self->before, NP_TIMEOUT_MS));
	np_ctrl_close(&self->ctrl);
}

static int reset(const struct np_ctrl *ctrl, struct nvme_peer_info *info)
{
	return np_ioctl(ctrl->fd, NVME_IOCTL_RESET, NULL) ?:
	       np_ctrl_wait_live(ctrl->fd, info, NP_TIMEOUT_MS);
}

/* Write a page with a pattern through @qp and read it back. */
static int verify(struct np_qp *qp, struct np_buffer *buffer, uint32_t seed)
{
	struct np_command command;
	uint8_t pattern[NP_PAGE];
	int status;

	np_pattern(pattern, NP_PAGE, NP_AREA(4), seed);
	memcpy(buffer->bytes, pattern, NP_PAGE);
	np_command_rw(&command, buffer, NVMEPEER_OP_WRITE, NP_AREA(4), 0, NP_PAGE);
	status = np_qp_run(qp, &command, NP_TIMEOUT_MS);
	if (status)
		return status;
	memset(buffer->bytes, 0, NP_PAGE);
	np_command_rw(&command, buffer, NVMEPEER_OP_READ, NP_AREA(4), 0, NP_PAGE);
	status = np_qp_run(qp, &command, NP_TIMEOUT_MS);
	return status ? status : memcmp(buffer->bytes, pattern, NP_PAGE) ? -EIO : 0;
}

/* More commands than either ring has entries, so both wrap. */
static int verify_around(struct np_qp *qp, struct np_buffer *buffer, uint32_t seed)
{
	int status = 0;
	uint32_t i;

	for (i = 0; i < ENTRIES && !status; i++)
		status = verify(qp, buffer, seed + i);
	return status;
}

TEST_F_TIMEOUT(rearm, rearm_restores_queue_pair, 120)
{
	struct nvme_peer_qp_info first, again;
	struct nvme_peer_status *status = self->qp.status.at;
	struct nvme_peer_info now;
	uint32_t i;

	ASSERT_EQ(0, np_qp_info(self->qp.fd, &first));
	for (i = 0; i < RESETS; i++) {
		EXPECT_EQ(0, verify_around(&self->qp, &self->buffer, i));
		ASSERT_EQ(0, reset(&self->ctrl, &now));
		EXPECT_EQ(NVME_PEER_QP_QUIESCED, status->state);
		EXPECT_EQ(NVME_PEER_QP_REASON_RESET, status->reason);
		EXPECT_EQ(now.generation, status->generation);
		ASSERT_EQ(0, np_qp_rearm(&self->qp, NP_TIMEOUT_MS));
		EXPECT_EQ(NVME_PEER_QP_LIVE, status->state);
		EXPECT_EQ(0, status->reason);
		EXPECT_EQ(now.generation, self->qp.create.generation);
	}
	EXPECT_EQ(0, verify_around(&self->qp, &self->buffer, i));
	ASSERT_EQ(0, np_qp_info(self->qp.fd, &again));
	EXPECT_EQ(RESETS, again.losses);
	EXPECT_EQ(now.generation, again.generation);
	EXPECT_EQ(first.qid, again.qid);
	EXPECT_EQ(first.doorbell_offset, again.doorbell_offset);
	EXPECT_EQ(first.exports, again.exports);
	EXPECT_EQ(first.mmaps, again.mmaps);
}

/* The status page counts every reset, also for a queue pair that is quiesced, or gone. */
TEST_F(rearm, status_page_reports_every_reset)
{
	struct nvmep_test_move move = { .fd = self->buffer.fd };
	int i, test = np_test_open();
	const struct nvme_peer_status *status = self->qp.status.at;
	struct nvme_peer_info now;

	NP_NOT_MEDIATED("an invalidation ends the buffer, not the queue pair");
	for (i = 0; i < 2; i++) {
		ASSERT_EQ(0, reset(&self->ctrl, &now));
		EXPECT_EQ(now.generation, status->generation);
		EXPECT_EQ(NVME_PEER_QP_QUIESCED, status->state);
	}
	ASSERT_EQ(0, np_ioctl(test, NVMEP_TEST_MOVE, &move));
	ASSERT_EQ(0, np_qp_wait_state(&self->qp, NVME_PEER_QP_GONE, NP_TIMEOUT_MS));
	ASSERT_EQ(0, reset(&self->ctrl, &now));
	EXPECT_EQ(now.generation, status->generation);
	EXPECT_EQ(NVME_PEER_QP_GONE, status->state);
	EXPECT_EQ(NVME_PEER_QP_REASON_BUFFER, status->reason);
	close(test);
}

static bool stored(const struct nvmep_test_stores *stores, uint32_t index, uint32_t state,
		   uint32_t generation, uint32_t reason, uint32_t losses)
{
	struct nvme_peer_status seen;

	if (index >= stores->count)
		return false;
	memcpy(&seen, stores->seen[index], sizeof(seen));
	return seen.state == state && seen.generation == generation && seen.reason == reason &&
	       seen.losses == losses;
}

/* A peer reads the state first, so the other fields must be stored before it. */
TEST_F(rearm, state_is_stored_last)
{
	const struct nvme_peer_status *status = self->qp.status.at;
	struct nvmep_test_watchpoint watch = { .address = (uintptr_t)&status->state };
	int test = np_test_open();
	struct nvmep_test_stores stores;
	struct nvme_peer_info now;

	ASSERT_EQ(0, np_ioctl(test, NVMEP_TEST_WATCHPOINT, &watch));
	ASSERT_EQ(0, reset(&self->ctrl, &now));
	ASSERT_EQ(0, np_qp_rearm(&self->qp, NP_TIMEOUT_MS));
	ASSERT_EQ(0, np_ioctl(test, NVMEP_TEST_SEEN, &stores));
	EXPECT_EQ(2, stores.count);
	EXPECT_TRUE(stored(&stores, 0, NVME_PEER_QP_QUIESCED, now.generation,
			   NVME_PEER_QP_REASON_RESET, 1));
	EXPECT_TRUE(stored(&stores, 1, NVME_PEER_QP_LIVE, now.generation,
			   NVME_PEER_QP_REASON_NONE, 1));
	close(test);
}

static int try_map(const struct np_export *export)
{
	void *map = mmap(NULL, export->size, PROT_READ | PROT_WRITE, MAP_SHARED, export->fd, 0);

	if (map == MAP_FAILED)
		return -errno;
	return munmap(map, export->size);
}

/*
 * Doorbells are revoked before decoding is disabled, and the same mapping works after the
 * re-arm.
 */
static void check_doorbells(struct __test_metadata *_metadata, FIXTURE_DATA(rearm) *self,
			    const char *method)
{
	struct nvme_peer_qp_export out;
	uint32_t i;

	ASSERT_EQ(0, np_reset_method(self->ctrl.address, method));
	for (i = 0; i < 2; i++) {
		EXPECT_EQ(0, verify(&self->qp, &self->buffer, i));
		EXPECT_EQ(0, np_function_reset(self->ctrl.address));
		EXPECT_EQ(np_qp_revoked(), np_store(self->qp.tail_doorbell, 0));
		EXPECT_EQ(-EAGAIN, np_export_fd(self->qp.fd, NVME_PEER_EXPORT_DOORBELL, 0, &out));
		EXPECT_EQ(-EAGAIN, try_map(&self->qp.doorbell));
		ASSERT_EQ(0, np_qp_rearm(&self->qp, NP_TIMEOUT_MS));
		EXPECT_EQ(0, verify_around(&self->qp, &self->buffer, i + 1));
		ASSERT_EQ(0, np_export_fd(self->qp.fd, NVME_PEER_EXPORT_DOORBELL, 0, &out));
		close(out.fd);
	}
	ASSERT_EQ(0, np_reset_method(self->ctrl.address, "default"));
}

TEST_F_TIMEOUT(rearm, rearm_restores_doorbells_after_function_reset, 120)
{
	check_doorbells(_metadata, self, "flr");
}

TEST_F_TIMEOUT(rearm, rearm_restores_doorbells_after_bus_reset, 120)
{
	check_doorbells(_metadata, self, "bus");
}

static void *function_reset(void *argument)
{
	const struct np_ctrl *ctrl = argument;

	return (void *)(intptr_t)(np_run_on(1) ?: np_pci_write(ctrl->address, "reset", "1"));
}

/* The queue pair is still LIVE while its doorbells are withdrawn: they will return. */
TEST_F(rearm, withdrawn_doorbells_can_be_retried)
{
	struct nvmep_test_stall lost = { .function = "nvmep_recover_stopped" };
	const struct nvme_peer_status *status = self->qp.status.at;
	struct nvme_peer_qp_export out;
	pthread_t thread;
	void *result;
	int stall;

	ASSERT_EQ(0, np_run_on(0));
	stall = np_stall(&lost);
	ASSERT_LE(0, stall);
	ASSERT_EQ(0, np_reset_method(self->ctrl.address, "flr"));
	ASSERT_EQ(0, pthread_create(&thread, NULL, function_reset, &self->ctrl));
	EXPECT_EQ(0, np_wait_stalled(stall));
	EXPECT_EQ(NVME_PEER_QP_LIVE, status->state);
	EXPECT_EQ(-EAGAIN, np_export_fd(self->qp.fd, NVME_PEER_EXPORT_DOORBELL, 0, &out));
	EXPECT_EQ(-EAGAIN, try_map(&self->qp.doorbell));
	close(stall);
	pthread_join(thread, &result);
	EXPECT_EQ(NULL, result);
	ASSERT_EQ(0, np_qp_rearm(&self->qp, NP_TIMEOUT_MS));
	EXPECT_EQ(0, try_map(&self->qp.doorbell));
	ASSERT_EQ(0, np_reset_method(self->ctrl.address, "default"));
}

/*
 * Memory decoding is about to go off, in the generation of the last scan: doorbells that are
 * withdrawn already are not restored.
 */
TEST_F(rearm, stop_allows_no_rearm)
{
	struct nvmep_test_stall stop = { .function = "nvmep_ctrl_stop" };
	struct nvme_peer_info now;
	pthread_t thread;
	void *result;
	int stall;

	ASSERT_EQ(0, np_run_on(0));
	ASSERT_EQ(0, np_reset_method(self->ctrl.address, "flr"));
	ASSERT_EQ(0, reset(&self->ctrl, &now));
	ASSERT_EQ(0, np_qp_rearm(&self->qp, NP_TIMEOUT_MS));
	ASSERT_EQ(0, reset(&self->ctrl, &now));
	/* Of both resets. */
	ASSERT_EQ(0, np_qp_wait_ready(&self->qp) ?: np_qp_wait_ready(&self->qp));
	stall = np_stall(&stop);
	ASSERT_LE(0, stall);
	ASSERT_EQ(0, pthread_create(&thread, NULL, function_reset, &self->ctrl));
	EXPECT_EQ(0, np_wait_stalled(stall));
	EXPECT_EQ(-EAGAIN, np_qp_rearm_loss(&self->qp, 2));
	EXPECT_EQ(np_qp_revoked(), np_store(self->qp.tail_doorbell, 0));
	close(stall);
	pthread_join(thread, &result);
	EXPECT_EQ(NULL, result);
	ASSERT_EQ(0, np_qp_rearm(&self->qp, NP_TIMEOUT_MS));
	EXPECT_EQ(0, verify(&self->qp, &self->buffer, 1));
	ASSERT_EQ(0, np_reset_method(self->ctrl.address, "default"));
}

/* Is the page on the disk as verify() left it? */
static int disk_has(struct np_qp *qp, struct np_buffer *buffer, uint32_t seed)
{
	uint8_t pattern[NP_PAGE];
	struct np_command command;
	int status;

	np_pattern(pattern, NP_PAGE, NP_AREA(4), seed);
	np_command_rw(&command, buffer, NVMEPEER_OP_READ, NP_AREA(4), 0, NP_PAGE);
	status = np_qp_run(qp, &command, NP_TIMEOUT_MS);
	return status ? status : memcmp(buffer->bytes, pattern, NP_PAGE) ? -EIO : 0;
}

/*
 * A late peer stores its old tail: the stale entries, writes among them, must not be
 * executed.
 */
TEST_F(rearm, stale_tail_executes_nothing)
{
	struct nvme_peer_info now;
	struct np_command command;
	struct np_qp other;
	uint32_t i;

	ASSERT_EQ(0, np_qp_open(&other, self->ctrl.fd, ENTRIES));
	for (i = 0; i < ENTRIES - 1; i++) {
		np_command_rw(&command, &self->buffer, NVMEPEER_OP_WRITE, NP_AREA(4), 0, NP_PAGE);
		np_qp_put(&self->qp, &command);
	}
	ASSERT_EQ(0, reset(&self->ctrl, &now));
	ASSERT_EQ(0, np_qp_rearm(&other, NP_TIMEOUT_MS));
	EXPECT_EQ(0, verify(&other, &self->buffer, 7));
	memset(self->buffer.bytes, 0x55, NP_PAGE);
	ASSERT_EQ(0, np_qp_rearm(&self->qp, NP_TIMEOUT_MS));
	EXPECT_EQ(0, np_store(self->qp.tail_doorbell, ENTRIES - 1));
	for (i = 0; i < ENTRIES - 1; i++)
		EXPECT_LT(0, np_qp_reap(&self->qp, NULL, NP_TIMEOUT_MS));
	EXPECT_EQ(0, disk_has(&other, &self->buffer, 7));
	np_qp_close(&other);
}

/* A peer requested recovery, and then the controller was reset for another reason. */
TEST_F(rearm, reset_clears_peer_request)
{
	struct nvme_peer_control *request;
	struct nvme_peer_info now;
	struct np_export page;

	ASSERT_EQ(0, np_export_open(&page, self->qp.fd, NVME_PEER_EXPORT_CONTROL, 0));
	request = page.at;
	ASSERT_EQ(0, reset(&self->ctrl, &now));
	EXPECT_EQ(0, np_store(&request->quiesce, 1));
	ASSERT_EQ(0, np_qp_rearm(&self->qp, NP_TIMEOUT_MS));
	EXPECT_EQ(0, *(volatile uint32_t *)&request->quiesce);
	/* The driver polls the control page twenty times a second. */
	EXPECT_EQ(-ETIMEDOUT, np_qp_wait_state(&self->qp, NVME_PEER_QP_QUIESCED, 300));
	EXPECT_EQ(0, verify(&self->qp, &self->buffer, 1));
	np_export_close(&page);
}

TEST_F(rearm, rearm_needs_current_loss)
{
	struct nvme_peer_qp_rearm rearm = { .size = sizeof(rearm), .flags = 1 };
	struct nvme_peer_info now;

	EXPECT_EQ(-EINVAL, np_ioctl(self->qp.fd, NVME_PEER_QP_REARM, &rearm));
	EXPECT_EQ(-EALREADY, np_qp_rearm_loss(&self->qp, 0));
	ASSERT_EQ(0, reset(&self->ctrl, &now));
	ASSERT_EQ(0, np_qp_rearm(&self->qp, NP_TIMEOUT_MS));
	EXPECT_EQ(-EALREADY, np_qp_rearm_loss(&self->qp, 1));
	ASSERT_EQ(0, reset(&self->ctrl, &now));
	/* An owner that handled the first loss has not seen the second. */
	EXPECT_EQ(-ESTALE, np_qp_rearm_loss(&self->qp, 1));
	EXPECT_EQ(0, np_qp_rearm(&self->qp, NP_TIMEOUT_MS));
	EXPECT_EQ(0, verify(&self->qp, &self->buffer, 1));
}

/* An exposed buffer stays mapped while a quiesced queue pair may be re-armed. */
TEST_F(rearm, quiesced_queue_pair_keeps_buffers)
{
	struct nvme_peer_info now;

	NP_NOT_MEDIATED("no addresses are exposed");
	ASSERT_EQ(0, reset(&self->ctrl, &now));
	EXPECT_EQ(-EBUSY, np_release(self->ctrl.fd, self->buffer.handle));
	EXPECT_EQ(0, np_qp_rearm(&self->qp, NP_TIMEOUT_MS));
	EXPECT_EQ(0, verify(&self->qp, &self->buffer, 1));
}

/* All queue pairs that the controller supports, with one reset. */
TEST_F_TIMEOUT(rearm, rearm_of_all_queue_pairs, 120)
{
	struct nvme_peer_info info;
	uint32_t count, i;
	struct np_qp *qps;

	ASSERT_EQ(0, np_info(self->ctrl.fd, &info));
	count = info.qids_peer_free < MANY ? info.qids_peer_free : MANY;
	qps = calloc(count, sizeof(*qps));
	ASSERT_NE(NULL, qps);
	for (i = 0; i < count; i++)
		ASSERT_EQ(0, np_qp_open(&qps[i], self->ctrl.fd, ENTRIES));
	ASSERT_EQ(0, reset(&self->ctrl, &info));
	for (i = 0; i < count; i++)
		EXPECT_EQ(0, np_qp_rearm(&qps[i], NP_TIMEOUT_MS));
	for (i = 0; i < count; i++) {
		EXPECT_EQ(0, verify(&qps[i], &self->buffer, i));
		np_qp_close(&qps[i]);
	}
	free(qps);
	EXPECT_EQ(0, np_qp_rearm(&self->qp, NP_TIMEOUT_MS));
}

TEST_HARNESS_MAIN
