// SPDX-License-Identifier: GPL-2.0-only
/*
 * Relay mode: the peer stores to doorbells in host memory, and a thread of the kernel writes
 * the registers, while the queue pair is LIVE and the values are valid.
 *
 * Other tests run in this mode, too: those with a line "relay:".
 *
 * iommu: on
 * long-iommu: on off
 * topology: root numa single
 * timeout: 180
 */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "nptest.h"
#include "kselftest_harness.h"

#define ENTRIES		16U
#define PAGES		9U
#define BATCH		8U
#define ROUNDS		5
#define POLLER_CPUS	"/sys/module/nvme_peer/parameters/poller_cpus"
#define CPU1_ONLINE	"/sys/devices/system/cpu/cpu1/online"

/* Wait until so many queue pairs are polled. */
static int wait_polled(unsigned int qps)
{
	int64_t end = np_now_ms() + NP_TIMEOUT_MS;
	struct np_pollers now;
	int ret;

	do {
		ret = np_pollers_read(&now);
		if (ret || now.qps == qps)
			return ret;
		np_sleep_ms(1);
	} while (np_now_ms() < end);
	return -ETIMEDOUT;
}

/* Wait for another poll than those until now. */
static int wait_pass(unsigned long long passes, int timeout_ms)
{
	int64_t end = np_now_ms() + timeout_ms;
	struct np_pollers now;
	int ret;

	do {
		ret = np_pollers_read(&now);
		if (ret || now.passes != passes)
			return ret;
		np_sleep_ms(1);
	} while (np_now_ms() < end);
	return -ETIMEDOUT;
}

/* The threads sleep: none passes for 50 ms. */
static int wait_asleep(struct np_pollers *now)
{
	int64_t end = np_now_ms() + NP_TIMEOUT_MS;
	int ret;

	do {
		ret = np_pollers_read(now) ?: wait_pass(now->passes, 50);
	} while (!ret && np_now_ms() < end);
	return ret == -ETIMEDOUT ? 0 : ret ?: -EBUSY;
}

static int kick(const struct np_qp *qp)
{
	struct nvme_peer_qp_kick request = { .size = sizeof(request) };

	return np_ioctl(qp->fd, NVME_PEER_QP_KICK, &request);
}

static uint64_t doorbell_writes(const struct np_qp *qp)
{
	struct nvme_peer_qp_info info;

	return np_qp_info(qp->fd, &info) ? UINT64_MAX : info.cpu_doorbell_writes;
}

static int flush(struct np_qp *qp)
{
	struct np_command command = { .opcode = NVMEPEER_OP_FLUSH, .nsid = 1 };

	return np_qp_run(qp, &command, NP_TIMEOUT_MS);
}

/* Write @count pages by one doorbell and read them back by another. */
static int transfer(struct np_qp *qp, struct np_buffer *buffer, uint8_t opcode, uint32_t count)
{
	struct np_command command;
	int status = 0;
	uint32_t i;

	for (i = 0; i < count; i++) {
		np_command_rw(&command, buffer, opcode, NP_AREA(4) + (uint64_t)i * NP_PAGE,
			      i * NP_PAGE, NP_PAGE);
		np_qp_put(qp, &command);
	}
	status = np_qp_ring_doorbell(qp);
	for (i = 0; i < count && !status; i++)
		status = np_qp_reap(qp, NULL, NP_TIMEOUT_MS);
	return status;
}

static int verify(struct np_qp *qp, struct np_buffer *buffer, uint32_t seed)
{
	uint8_t pattern[BATCH * NP_PAGE];
	int status;

	np_pattern(pattern, sizeof(pattern), NP_AREA(4), seed);
	memcpy(buffer->bytes, pattern, sizeof(pattern));
	status = transfer(qp, buffer, NVMEPEER_OP_WRITE, BATCH);
	if (status)
		return status;
	memset(buffer->bytes, 0, sizeof(pattern));
	status = transfer(qp, buffer, NVMEPEER_OP_READ, BATCH);
	return status ? status : memcmp(buffer->bytes, pattern, sizeof(pattern)) ? -EIO : 0;
}

static const volatile struct nvme_peer_status *status_of(const struct np_qp *qp)
{
	return qp->status.at;
}

static bool falls_asleep(const struct np_qp *qp)
{
	int64_t end = np_now_ms() + NP_TIMEOUT_MS;

	while (!status_of(qp)->poller_asleep && np_now_ms() < end)
		np_sleep_ms(1);
	return status_of(qp)->poller_asleep == 1;
}

FIXTURE(relay)
{
	struct np_ctrl ctrl;
	char before[NP_OBJECTS];
	struct np_buffer buffer;
	struct np_qp qp;
	unsigned int polled;
};

FIXTURE_SETUP(relay)
{
	struct np_pollers pollers;

	np_qp_set_mode(NVME_PEER_MODE_RELAY);
	ASSERT_EQ(0, np_ctrl_open(&self->ctrl, "np0"));
	ASSERT_EQ(0, np_objects(&self->ctrl, self->before));
	ASSERT_EQ(0, np_pollers_read(&pollers));
	self->polled = pollers.qps;
	ASSERT_EQ(0, np_buffer_open(&self->buffer, self->ctrl.fd, PAGES, 0));
	ASSERT_EQ(0, np_qp_open(&self->qp, self->ctrl.fd, ENTRIES));
}

FIXTURE_TEARDOWN(relay)
{
	struct np_pollers pollers;

	EXPECT_EQ(0, np_works_anywhere());
	np_qp_close(&self->qp);
	EXPECT_EQ(0, np_release(self->ctrl.fd, self->buffer.handle));
	np_buffer_close(&self->buffer);
	EXPECT_EQ(0, np_objects_wait(&self->ctrl, self->before, NP_TIMEOUT_MS));
	EXPECT_EQ(0, np_pollers_read(&pollers));
	EXPECT_EQ(self->polled, pollers.qps);
	np_ctrl_close(&self->ctrl);
}

/* --- I/O ------------------------------------------------------------------ */

TEST_F(relay, io_wraps_both_rings)
{
	struct nvme_peer_qp_export export;
	struct nvme_peer_qp_info info;
	struct nvme_peer_info ctrl;
	uint32_t i;

	ASSERT_EQ(0, np_info(self->ctrl.fd, &ctrl));
	EXPECT_TRUE(ctrl.features & NVME_PEER_FEATURE_RELAY);
	EXPECT_TRUE(ctrl.features & NVME_PEER_FEATURE_KICK);
	ASSERT_EQ(0, np_export_fd(self->qp.fd, NVME_PEER_EXPORT_DOORBELL, 0, &export));
	EXPECT_EQ(NVME_PEER_KIND_MEMORY, export.kind);
	EXPECT_EQ(NP_PAGE, (uint64_t)lseek(export.fd, 0, SEEK_END));
	close(export.fd);
	/* Of doorbells only. */
	ASSERT_EQ(0, np_export_fd(self->qp.fd, NVME_PEER_EXPORT_SQ, 0, &export));
	EXPECT_EQ(0, export.kind);
	close(export.fd);
	for (i = 0; i < 3 * ENTRIES / BATCH; i++)
		EXPECT_EQ(0, verify(&self->qp, &self->buffer, i));
	ASSERT_EQ(0, np_qp_info(self->qp.fd, &info));
	EXPECT_EQ(NVME_PEER_MODE_RELAY, info.mode);
	EXPECT_EQ(0, info.doorbell_offset);
	EXPECT_EQ(NP_PAGE, info.doorbell_length);
	/* At least a tail for each batch, at most one for each store. */
	EXPECT_LE(2 * i, info.cpu_doorbell_writes);
	EXPECT_GE(2 * i * (1 + BATCH), info.cpu_doorbell_writes);
}

/* A dma-buf of NVME_PEER_BUF_ALLOC for both rings, imported. */
static int import_rings(int ctrl_fd, struct nvme_peer_buf_import *import)
{
	struct nvme_peer_buf_alloc alloc = { .size = sizeof(alloc), .length = 2 * NP_PAGE };
	int ret = np_ioctl(ctrl_fd, NVME_PEER_BUF_ALLOC, &alloc) ?:
		  np_import(ctrl_fd, alloc.fd, 0, import);

	close(alloc.fd);
	return ret;
}

TEST_F(relay, rings_of_buf_alloc)
{
	struct nvme_peer_qp_create create = {
		.size = sizeof(create), .mode = NVME_PEER_MODE_RELAY, .sq_entries = ENTRIES,
		.cq_entries = ENTRIES, .qp_fd = -1,
	};
	struct nvme_peer_buf_import import;

	ASSERT_EQ(0, import_rings(self->ctrl.fd, &import));
	create.sq_handle = import.handle;
	create.cq_handle = import.handle;
	create.cq_offset = NP_PAGE;
	ASSERT_EQ(0, np_ioctl(self->ctrl.fd, NVME_PEER_QP_CREATE, &create));
	close(create.qp_fd);
	EXPECT_EQ(0, np_release(self->ctrl.fd, import.handle));
}

/* A queue pair with both rings in a buffer, by the rings of another one. */
static int open_with_rings_in(struct np_qp *qp, const struct np_qp *base, int ctrl_fd,
			      const struct np_buffer *rings)
{
	struct nvme_peer_qp_info info;
	int ret;

	*qp = *base;
	qp->create.sq_handle = rings->handle;
	qp->create.cq_handle = rings->handle;
	qp->create.cq_offset = NP_PAGE;
	qp->create.qp_fd = -1;
	ret = np_ioctl(ctrl_fd, NVME_PEER_QP_CREATE, &qp->create);
	if (ret)
		return ret;
	qp->fd = qp->create.qp_fd;
	qp->sq = (struct np_export){ .fd = -1, .at = rings->bytes };
	qp->cq = (struct np_export){ .fd = -1, .at = rings->bytes + NP_PAGE };
	ret = np_qp_info(qp->fd, &info) ?:
	      np_export_open(&qp->doorbell, qp->fd, NVME_PEER_EXPORT_DOORBELL, 0) ?:
	      np_export_open(&qp->status, qp->fd, NVME_PEER_EXPORT_STATUS, 0);
	qp->tail_doorbell = qp->doorbell.at;
	qp->head_doorbell = (void *)((uint8_t *)qp->doorbell.at + info.doorbell_stride);
	return ret;
}

/* The kernel reads the doorbells alone. */
TEST_F(relay, rings_in_device_memory)
{
	struct np_buffer rings;
	struct np_qp qp;
	uint32_t i;

	ASSERT_EQ(0, np_buffer_open(&rings, self->ctrl.fd, 2, 0));
	ASSERT_EQ(0, open_with_rings_in(&qp, &self->qp, self->ctrl.fd, &rings));
	for (i = 0; i < 3 * ENTRIES / BATCH; i++)
		EXPECT_EQ(0, verify(&qp, &self->buffer, i));
	np_qp_close(&qp);
	/* Its addresses were reported to the node of this one. */
	np_qp_close(&self->qp);
	EXPECT_EQ(0, np_release(self->ctrl.fd, rings.handle));
	np_buffer_close(&rings);
}

static int create_without_capability(int ctrl_fd)
{
	struct nvme_peer_qp_create create;

	return np_drop_capabilities() ? 1 : np_qp_create(ctrl_fd, ENTRIES, &create) == -EPERM ? 0 : 2;
}

TEST_F(relay, needs_the_capability_of_direct_mode)
{
	EXPECT_EQ(0, np_in_child(create_without_capability, self->ctrl.fd));
}

/* --- bad values ----------------------------------------------------------- */

FIXTURE(bad_value)
{
	struct np_ctrl ctrl;
	struct np_qp qp;
	struct np_qp other;
};

FIXTURE_VARIANT(bad_value)
{
	bool head;
	uint32_t value;
};

FIXTURE_VARIANT_ADD(bad_value, tail) { .value = ENTRIES };
FIXTURE_VARIANT_ADD(bad_value, head) { .head = true, .value = ENTRIES };
/* Its low half is a valid value. */
FIXTURE_VARIANT_ADD(bad_value, long_tail) { .value = 0x10001 };
FIXTURE_VARIANT_ADD(bad_value, last_tail) { .value = UINT32_MAX };

FIXTURE_SETUP(bad_value)
{
	np_qp_set_mode(NVME_PEER_MODE_RELAY);
	ASSERT_EQ(0, np_ctrl_open(&self->ctrl, "np0"));
	ASSERT_EQ(0, np_qp_open(&self->qp, self->ctrl.fd, ENTRIES));
	ASSERT_EQ(0, np_qp_open(&self->other, self->ctrl.fd, ENTRIES));
}

FIXTURE_TEARDOWN(bad_value)
{
	np_qp_close(&self->other);
	np_qp_close(&self->qp);
	np_ctrl_close(&self->ctrl);
}

TEST_F(bad_value, fails_its_queue_pair_only)
{
	struct nvme_peer_event event;

	ASSERT_EQ(0, flush(&self->qp));
	/* Once the head of the flush is relayed, and the next poll is not at once. */
	while (doorbell_writes(&self->qp) < 2)
		np_sleep_ms(1);
	EXPECT_TRUE(falls_asleep(&self->qp));
	EXPECT_EQ(0, np_store(variant->head ? self->qp.head_doorbell : self->qp.tail_doorbell,
			      variant->value));
	/* Nor is the tail relayed that a poll finds behind the head. */
	if (variant->head)
		EXPECT_EQ(0, np_store(self->qp.tail_doorbell, 2));
	ASSERT_EQ(0, np_qp_wait_state(&self->qp, NVME_PEER_QP_FAILED, NP_TIMEOUT_MS));
	EXPECT_EQ(NVME_PEER_QP_REASON_DOORBELL, status_of(&self->qp)->reason);
	ASSERT_EQ(sizeof(event), read(self->qp.fd, &event, sizeof(event)));
	EXPECT_EQ(NVME_PEER_QP_FAILED, event.state);
	EXPECT_EQ(NVME_PEER_QP_REASON_DOORBELL, event.reason);
	EXPECT_EQ(-ESHUTDOWN, np_qp_rearm(&self->qp, NP_TIMEOUT_MS));

	/* A valid value does not help any more. */
	EXPECT_EQ(0, np_store(self->qp.tail_doorbell, 2));
	EXPECT_EQ(0, kick(&self->qp));
	EXPECT_EQ(0, flush(&self->other));
	/* Those of the flush. */
	EXPECT_EQ(2, doorbell_writes(&self->qp));
	EXPECT_EQ(NVME_PEER_QP_LIVE, status_of(&self->other)->state);
}

/* Creates queue pairs, as fast as they fail. */
static void be_hostile(int leash)
{
	struct pollfd end = { .fd = leash, .events = POLLIN };
	struct np_ctrl ctrl;
	struct np_qp qp;

	if (np_ctrl_open(&ctrl, "np0"))
		_exit(1);
	while (!poll(&end, 1, 0)) {
		if (np_qp_open(&qp, ctrl.fd, ENTRIES))
			_exit(2);
		while (status_of(&qp)->state == NVME_PEER_QP_LIVE) {
			np_store(qp.tail_doorbell, ENTRIES + (uint32_t)rand());
			np_store(qp.head_doorbell, UINT32_MAX);
		}
		if (status_of(&qp)->reason != NVME_PEER_QP_REASON_DOORBELL)
			_exit(3);
		np_qp_close(&qp);
	}
	_exit(0);
}

TEST_F_TIMEOUT(relay, hostile_neighbour_harms_nobody, 120)
{
	int leash[2], status;
	uint32_t i;
	pid_t child;

	ASSERT_EQ(0, pipe(leash));
	child = fork();
	if (!child) {
		close(leash[1]);
		be_hostile(leash[0]);
	}
	ASSERT_LT(0, child);
	close(leash[0]);
	for (i = 0; i < 40; i++)
		EXPECT_EQ(0, verify(&self->qp, &self->buffer, i));
	close(leash[1]);
	ASSERT_EQ(child, waitpid(child, &status, 0));
	EXPECT_EQ(0, status);
	EXPECT_EQ(0, status_of(&self->qp)->losses);
}

/* --- sleep ---------------------------------------------------------------- */

TEST_F(relay, status_page_reports_sleep)
{
	int64_t end = np_now_ms() + NP_TIMEOUT_MS;
	bool awake = false;
	int ret = 0;

	EXPECT_TRUE(falls_asleep(&self->qp));
	/* Without a kick, too. */
	EXPECT_EQ(0, flush(&self->qp));
	while (!ret && !awake && np_now_ms() < end) {
		ret = flush(&self->qp);
		awake = !status_of(&self->qp)->poller_asleep;
	}
	EXPECT_EQ(0, ret);
	EXPECT_TRUE(awake);
	EXPECT_TRUE(falls_asleep(&self->qp));
}

/* A queue pair that takes no doorbells costs nothing, and a kick wakes the thread. */
TEST_F(relay, kick_wakes_the_thread)
{
	struct nvme_peer_qp_kick request = { .size = sizeof(request), .flags = 1 };
	struct nvme_peer_info info;
	struct np_pollers first, second;
	int i;

	EXPECT_EQ(-EINVAL, np_ioctl(self->qp.fd, NVME_PEER_QP_KICK, &request));
	ASSERT_EQ(0, np_ioctl(self->ctrl.fd, NVME_IOCTL_RESET, NULL));
	ASSERT_EQ(0, np_ctrl_wait_live(self->ctrl.fd, &info, NP_TIMEOUT_MS));
	ASSERT_EQ(0, wait_polled(self->polled));
	if (self->polled)
		SKIP(return, "other queue pairs are polled");
	for (i = 0; i < ROUNDS; i++) {
		ASSERT_EQ(0, wait_asleep(&first));
		EXPECT_EQ(0, kick(&self->qp));
		EXPECT_EQ(0, wait_pass(first.passes, NP_TIMEOUT_MS));
	}
	ASSERT_EQ(0, np_pollers_read(&second));
	EXPECT_EQ(first.active, second.active);
}

TEST_F(relay, direct_mode_has_no_thread_to_kick)
{
	struct np_qp direct;

	np_qp_set_mode(NVME_PEER_MODE_DIRECT);
	ASSERT_EQ(0, np_qp_open(&direct, self->ctrl.fd, ENTRIES));
	EXPECT_EQ(-EOPNOTSUPP, kick(&direct));
	EXPECT_EQ(0, flush(&direct));
	EXPECT_EQ(0, doorbell_writes(&direct));
	EXPECT_EQ(0, status_of(&direct)->poller_asleep);
	np_qp_close(&direct);
	EXPECT_EQ(0, flush(&self->qp));
}

/* --- ends ----------------------------------------------------------------- */

/**
 * struct load - a thread that submits commands, and stores to the doorbells after the end
 * @qp: queue pair, of no other thread until load_stop()
 * @stop: set by load_stop()
 * @late: stores while the queue pair was not LIVE
 */
struct load {
	struct np_qp *qp;
	atomic_bool stop;
	atomic_uint late;
	pthread_t thread;
};

static void *submit_on_and_on(void *argument)
{
	const struct np_command command = { .opcode = NVMEPEER_OP_FLUSH, .nsid = 1 };
	struct load *load = argument;
	struct np_qp *qp = load->qp;

	while (!atomic_load(&load->stop) && status_of(qp)->state == NVME_PEER_QP_LIVE) {
		np_qp_put(qp, &command);
		np_qp_ring_doorbell(qp);
		while (np_qp_reap(qp, NULL, 20) == -ETIMEDOUT && !atomic_load(&load->stop) &&
		       status_of(qp)->state == NVME_PEER_QP_LIVE)
			;
	}
	while (!atomic_load(&load->stop)) {
		np_store(qp->tail_doorbell, atomic_fetch_add(&load->late, 1) % ENTRIES);
		np_store(qp->head_doorbell, atomic_load(&load->late) % ENTRIES);
		sched_yield();
	}
	return NULL;
}

static int load_start(struct load *load, struct np_qp *qp)
{
	uint64_t writes = doorbell_writes(qp);
	int ret;

	*load = (struct load){ .qp = qp };
	ret = -pthread_create(&load->thread, NULL, submit_on_and_on, load);
	while (!ret && doorbell_writes(qp) < writes + 8)
		np_sleep_ms(1);
	return ret;
}

static void load_stop(struct load *load)
{
	while (!atomic_load(&load->late))
		np_sleep_ms(1);
	np_sleep_ms(20);
	atomic_store(&load->stop, true);
	pthread_join(load->thread, NULL);
}

TEST_F_TIMEOUT(relay, reset_under_load_then_rearm, 120)
{
	struct nvme_peer_info info;
	struct load load;
	uint64_t writes;
	uint32_t i;

	for (i = 0; i < ROUNDS; i++) {
		ASSERT_EQ(0, wait_polled(self->polled + 1));
		ASSERT_EQ(0, load_start(&load, &self->qp));
		ASSERT_EQ(0, np_ioctl(self->ctrl.fd, NVME_IOCTL_RESET, NULL));
		ASSERT_EQ(0, np_ctrl_wait_live(self->ctrl.fd, &info, NP_TIMEOUT_MS));
		EXPECT_EQ(NVME_PEER_QP_QUIESCED, status_of(&self->qp)->state);
		writes = doorbell_writes(&self->qp);
		load_stop(&load);
		EXPECT_EQ(writes, doorbell_writes(&self->qp));
		EXPECT_EQ(0, wait_polled(self->polled));
		ASSERT_EQ(0, np_qp_rearm(&self->qp, NP_TIMEOUT_MS));
		EXPECT_EQ(0, *self->qp.tail_doorbell);
		EXPECT_EQ(0, *self->qp.head_doorbell);
		EXPECT_EQ(0, verify(&self->qp, &self->buffer, i));
	}
	EXPECT_EQ(ROUNDS, status_of(&self->qp)->losses);
}

static void *function_reset(void *argument)
{
	const struct np_ctrl *ctrl = argument;

	return (void *)(intptr_t)(np_run_on(1) ?: np_pci_write(ctrl->address, "reset", "1"));
}

/* Memory decoding is about to go off. The queue pair is LIVE until the controller has stopped. */
TEST_F(relay, withdrawal_of_doorbells_closes_the_relay)
{
	struct nvmep_test_stall stop = { .function = "nvmep_ctrl_stop" };
	pthread_t thread;
	void *result;
	int stall;

	if (access(CPU1_ONLINE, F_OK))
		SKIP(return, "one CPU");
	ASSERT_EQ(0, np_write_file(POLLER_CPUS, "0"));
	ASSERT_EQ(0, np_works_on(0) ?: np_run_on(0));
	ASSERT_EQ(0, np_reset_method(self->ctrl.address, "flr"));
	stall = np_stall(&stop);
	ASSERT_LE(0, stall);
	ASSERT_EQ(0, pthread_create(&thread, NULL, function_reset, &self->ctrl));
	EXPECT_EQ(0, np_wait_stalled(stall));
	EXPECT_EQ(0, wait_polled(self->polled));
	EXPECT_EQ(0, np_ioctl(stall, NVMEP_TEST_STALLED, NULL));
	EXPECT_EQ(NVME_PEER_QP_LIVE, status_of(&self->qp)->state);
	close(stall);
	pthread_join(thread, &result);
	EXPECT_EQ(NULL, result);
	ASSERT_EQ(0, np_qp_rearm(&self->qp, NP_TIMEOUT_MS));
	EXPECT_EQ(0, verify(&self->qp, &self->buffer, 3));
	ASSERT_EQ(0, np_reset_method(self->ctrl.address, "default"));
	EXPECT_EQ(0, np_works_anywhere());
	EXPECT_EQ(0, np_write_file(POLLER_CPUS, "\n"));
}

/* A bad value that a loss has overtaken does not fail the queue pair that is re-armed. */
TEST_F(relay, rearm_forgets_bad_value)
{
	struct nvme_peer_info info;
	int i;

	/* The reset has 50 ms, until the next health poll. */
	for (i = 0; i < 20; i++) {
		EXPECT_EQ(0, flush(&self->qp));
		EXPECT_EQ(0, np_store(self->qp.tail_doorbell, UINT32_MAX));
		EXPECT_EQ(0, kick(&self->qp));
		EXPECT_EQ(0, wait_polled(self->polled));
		ASSERT_EQ(0, np_ioctl(self->ctrl.fd, NVME_IOCTL_RESET, NULL));
		ASSERT_EQ(0, np_ctrl_wait_live(self->ctrl.fd, &info, NP_TIMEOUT_MS));
		if (status_of(&self->qp)->state == NVME_PEER_QP_QUIESCED)
			break;
		np_qp_close(&self->qp);
		ASSERT_EQ(0, np_qp_open(&self->qp, self->ctrl.fd, ENTRIES));
	}
	ASSERT_EQ(NVME_PEER_QP_QUIESCED, status_of(&self->qp)->state);
	ASSERT_EQ(0, np_qp_rearm(&self->qp, NP_TIMEOUT_MS));
	np_sleep_ms(200);
	EXPECT_EQ(0, verify(&self->qp, &self->buffer, 7));
	EXPECT_EQ(NVME_PEER_QP_LIVE, status_of(&self->qp)->state);
}

static void *vary_tail(void *argument)
{
	struct load *load = argument;
	uint32_t value = 0;

	while (!atomic_load(&load->stop)) {
		np_store(load->qp->tail_doorbell, value++ % ENTRIES);
		sched_yield();
	}
	return NULL;
}

/* The controller reports writes to doorbells of queues that it does not have. */
TEST_F(relay, deleted_queues_get_no_doorbell)
{
	int log = np_log_open(), i;
	struct np_qp qp;
	struct load load = { .qp = &qp };

	ASSERT_LE(0, log);
	for (i = 0; i < ROUNDS; i++) {
		ASSERT_EQ(0, np_qp_open(&qp, self->ctrl.fd, ENTRIES));
		atomic_store(&load.stop, false);
		ASSERT_EQ(0, pthread_create(&load.thread, NULL, vary_tail, &load));
		while (doorbell_writes(&qp) < 8)
			np_sleep_ms(1);
		EXPECT_EQ(0, close(qp.fd));
		qp.fd = -1;
		np_sleep_ms(20);
		atomic_store(&load.stop, true);
		pthread_join(load.thread, NULL);
		np_qp_close(&qp);
	}
	EXPECT_EQ(-ETIMEDOUT, np_log_wait(log, "invalid doorbell write", 200));
	close(log);
}

TEST_F(relay, revocation_ends_the_relay)
{
	struct nvmep_test_move move = { .fd = self->buffer.fd };
	int test = open(NVMEP_TEST_NODE, O_RDWR | O_CLOEXEC);
	struct load load;
	uint64_t writes;

	ASSERT_LE(0, test);
	ASSERT_EQ(0, load_start(&load, &self->qp));
	ASSERT_EQ(0, np_ioctl(test, NVMEP_TEST_MOVE, &move));
	ASSERT_EQ(0, np_qp_wait_state(&self->qp, NVME_PEER_QP_GONE, NP_TIMEOUT_MS));
	EXPECT_EQ(NVME_PEER_QP_REASON_BUFFER, status_of(&self->qp)->reason);
	writes = doorbell_writes(&self->qp);
	load_stop(&load);
	EXPECT_EQ(writes, doorbell_writes(&self->qp));
	EXPECT_EQ(0, wait_polled(self->polled));
	EXPECT_EQ(0, kick(&self->qp));
	close(test);
}

static void be_busy(int answer)
{
	struct np_ctrl ctrl;
	struct load load;
	struct np_qp qp;

	if (np_ctrl_open(&ctrl, "np0") || np_qp_open(&qp, ctrl.fd, ENTRIES) ||
	    load_start(&load, &qp) || write(answer, "", 1) != 1)
		_exit(1);
	pause();
	_exit(2);
}

TEST_F(relay, process_dies_under_load)
{
	int i;

	for (i = 0; i < ROUNDS; i++) {
		EXPECT_EQ(0, np_kill_child(be_busy));
		EXPECT_EQ(0, wait_polled(self->polled + 1));
		EXPECT_EQ(0, flush(&self->qp));
	}
}

FIXTURE(relay_unbind)
{
	struct np_ctrl ctrl;
	struct np_qp qp;
	struct load load;
	unsigned int polled;
};

FIXTURE_SETUP(relay_unbind)
{
	struct np_pollers pollers;

	np_qp_set_mode(NVME_PEER_MODE_RELAY);
	ASSERT_EQ(0, np_pollers_read(&pollers));
	self->polled = pollers.qps;
	ASSERT_EQ(0, np_ctrl_open(&self->ctrl, "np0"));
	ASSERT_EQ(0, np_qp_open(&self->qp, self->ctrl.fd, ENTRIES));
	ASSERT_EQ(0, load_start(&self->load, &self->qp));
}

/* Stores and kicks have no effect without the controller, and in its next binding. */
FIXTURE_TEARDOWN(relay_unbind)
{
	struct np_pollers pollers;

	EXPECT_EQ(0, kick(&self->qp));
	load_stop(&self->load);
	EXPECT_EQ(0, np_pollers_read(&pollers));
	EXPECT_EQ(self->polled, pollers.qps);
	EXPECT_EQ(0, np_bind(self->ctrl.address));
	EXPECT_EQ(0, np_store(self->qp.tail_doorbell, 1));
	EXPECT_EQ(0, kick(&self->qp));
	np_qp_close(&self->qp);
	np_ctrl_close(&self->ctrl);
	EXPECT_EQ(0, np_ctrl_open(&self->ctrl, "np0"));
	EXPECT_EQ(0, np_qp_check(self->ctrl.fd, NP_TIMEOUT_MS));
	np_ctrl_close(&self->ctrl);
}

TEST_F(relay_unbind, unbound_under_load)
{
	EXPECT_EQ(0, np_unbind(self->ctrl.address));
	EXPECT_EQ(NVME_PEER_QP_GONE, status_of(&self->qp)->state);
	EXPECT_EQ(NVME_PEER_QP_REASON_UNBOUND, status_of(&self->qp)->reason);
}

TEST_F(relay_unbind, removed_under_load)
{
	EXPECT_EQ(0, np_surprise_remove(self->ctrl.address));
	EXPECT_EQ(NVME_PEER_QP_GONE, status_of(&self->qp)->state);
	EXPECT_EQ(0, np_rescan(self->ctrl.address));
}

/* --- CPUs ----------------------------------------------------------------- */

/* The first thread of the kernel that polls, or -ENOENT. */
static pid_t find_poller(void)
{
	DIR *processes = opendir("/proc");
	struct dirent *entry;
	pid_t found = -ENOENT;
	char path[300], name[32];

	while (processes && found < 0 && (entry = readdir(processes))) {
		snprintf(path, sizeof(path), "/proc/%s/comm", entry->d_name);
		if (atoi(entry->d_name) > 0 && !np_read_file(path, name, sizeof(name)) &&
		    !strncmp(name, "nvmep-poller/", 13))
			found = atoi(entry->d_name);
	}
	if (processes)
		closedir(processes);
	return found;
}

static bool is_bound_to(pid_t poller, int cpu)
{
	cpu_set_t cpus;

	return !sched_getaffinity(poller, sizeof(cpus), &cpus) && CPU_COUNT(&cpus) == 1 &&
	       CPU_ISSET(cpu, &cpus);
}

FIXTURE(relay_cpus)
{
	struct np_ctrl ctrl;
	struct np_qp qp;
	pid_t poller;
};

FIXTURE_SETUP(relay_cpus)
{
	if (access(CPU1_ONLINE, W_OK))
		SKIP(return, "CPU 1 cannot go offline");
	np_qp_set_mode(NVME_PEER_MODE_RELAY);
	ASSERT_EQ(0, np_ctrl_open(&self->ctrl, "np0"));
	ASSERT_EQ(0, np_qp_open(&self->qp, self->ctrl.fd, ENTRIES));
	self->poller = find_poller();
	ASSERT_LT(0, self->poller);
}

FIXTURE_TEARDOWN(relay_cpus)
{
	EXPECT_EQ(0, np_works_anywhere());
	np_write_file(CPU1_ONLINE, "1");
	EXPECT_EQ(0, np_write_file(POLLER_CPUS, "\n"));
	EXPECT_FALSE(is_bound_to(self->poller, 1));
	np_qp_close(&self->qp);
	np_ctrl_close(&self->ctrl);
}

TEST_F(relay_cpus, parameter_binds_the_thread)
{
	char text[64];
	int cpu;

	for (cpu = 0; cpu < 2; cpu++) {
		snprintf(text, sizeof(text), "%d", cpu);
		ASSERT_EQ(0, np_write_file(POLLER_CPUS, text));
		EXPECT_TRUE(is_bound_to(self->poller, cpu));
		EXPECT_EQ(0, flush(&self->qp));
	}
	ASSERT_EQ(0, np_read_file(POLLER_CPUS, text, sizeof(text)));
	EXPECT_STREQ("1\n", text);
	EXPECT_EQ(-EINVAL, np_write_file(POLLER_CPUS, "one"));
	EXPECT_EQ(-ERANGE, np_write_file(POLLER_CPUS, "60000"));
	EXPECT_TRUE(is_bound_to(self->poller, 1));
}

/* It arrives between the last poll and the sleep, which would have no end. */
TEST_F(relay_cpus, kick_before_the_sleep_is_not_lost)
{
	struct nvmep_test_stall sleep = { .function = "nvmep_poller_wait", .any_thread = 1 };
	struct nvme_peer_info info;
	struct np_pollers before;
	int stall;

	ASSERT_EQ(0, np_write_file(POLLER_CPUS, "1"));
	ASSERT_EQ(0, np_works_on(0) ?: np_run_on(0));
	ASSERT_EQ(0, np_ioctl(self->ctrl.fd, NVME_IOCTL_RESET, NULL));
	ASSERT_EQ(0, np_ctrl_wait_live(self->ctrl.fd, &info, NP_TIMEOUT_MS));
	ASSERT_EQ(0, wait_polled(0));
	stall = np_stall(&sleep);
	ASSERT_LE(0, stall);
	EXPECT_EQ(0, kick(&self->qp));
	EXPECT_EQ(0, np_wait_stalled(stall));
	ASSERT_EQ(0, np_pollers_read(&before));
	EXPECT_EQ(0, kick(&self->qp));
	EXPECT_EQ(0, np_ioctl(stall, NVMEP_TEST_STALLED, NULL));
	close(stall);
	EXPECT_EQ(0, wait_pass(before.passes, NP_TIMEOUT_MS));
	EXPECT_EQ(0, wait_asleep(&before));
	ASSERT_EQ(0, np_qp_rearm(&self->qp, NP_TIMEOUT_MS));
	EXPECT_EQ(0, flush(&self->qp));
}

/* The thread finds it before it sleeps. */
TEST_F(relay_cpus, lost_binding_is_restored)
{
	int64_t end = np_now_ms() + NP_TIMEOUT_MS;
	cpu_set_t cpus;

	ASSERT_EQ(0, np_write_file(POLLER_CPUS, "1"));
	CPU_ZERO(&cpus);
	CPU_SET(0, &cpus);
	ASSERT_EQ(0, sched_setaffinity(self->poller, sizeof(cpus), &cpus));
	while (!is_bound_to(self->poller, 1) && np_now_ms() < end)
		EXPECT_EQ(0, flush(&self->qp));
	EXPECT_TRUE(is_bound_to(self->poller, 1));
}

TEST_F(relay_cpus, cpu_of_the_thread_goes_offline)
{
	int i;

	ASSERT_EQ(0, np_write_file(POLLER_CPUS, "1"));
	for (i = 0; i < 2; i++) {
		EXPECT_EQ(0, flush(&self->qp));
		ASSERT_EQ(0, np_write_file(CPU1_ONLINE, "0"));
		EXPECT_EQ(0, flush(&self->qp));
		EXPECT_EQ(0, np_write_file(POLLER_CPUS, "1"));
		ASSERT_EQ(0, np_write_file(CPU1_ONLINE, "1"));
		EXPECT_TRUE(is_bound_to(self->poller, 1));
	}
	EXPECT_EQ(0, flush(&self->qp));
}

/* The CPUs that it may use, as the kernel names them, those that are offline among them. */
static int read_allowed(pid_t poller, char list[32])
{
	char path[64], status[4096], *line;
	int ret;

	snprintf(path, sizeof(path), "/proc/%d/status", poller);
	ret = np_read_file(path, status, sizeof(status));
	line = ret ? NULL : strstr(status, "Cpus_allowed_list:");
	return line && sscanf(line, "Cpus_allowed_list: %31s", list) == 1 ? 0 : -ENOENT;
}

/* Before the scheduler has to move it. */
TEST_F(relay_cpus, thread_leaves_a_cpu_that_goes_offline)
{
	char list[32] = "";

	if (np_topology_is("numa"))
		SKIP(return, "the CPUs are of two nodes");
	ASSERT_EQ(0, np_write_file(POLLER_CPUS, "0-1"));
	EXPECT_EQ(0, read_allowed(self->poller, list));
	EXPECT_STREQ("0-1", list);
	ASSERT_EQ(0, np_write_file(CPU1_ONLINE, "0"));
	EXPECT_EQ(0, read_allowed(self->poller, list));
	EXPECT_STREQ("0", list);
	ASSERT_EQ(0, np_write_file(CPU1_ONLINE, "1"));
	EXPECT_EQ(0, read_allowed(self->poller, list));
	EXPECT_STREQ("0-1", list);
}

static int set_online(int cpu, const char *online)
{
	char path[64];

	snprintf(path, sizeof(path), "/sys/devices/system/cpu/cpu%d/online", cpu);
	return np_write_file(path, online);
}

/* The thread is bound to CPUs of its node, and to others only while those are offline. */
TEST_F(relay_cpus, other_node_while_its_own_is_offline)
{
	int own;

	if (!np_topology_is("numa"))
		SKIP(return, "one node");
	ASSERT_EQ(0, np_write_file(POLLER_CPUS, "1,5"));
	own = is_bound_to(self->poller, 1) ? 1 : 5;
	EXPECT_TRUE(is_bound_to(self->poller, own));
	ASSERT_EQ(0, set_online(own, "0"));
	EXPECT_TRUE(is_bound_to(self->poller, 6 - own));
	EXPECT_EQ(0, flush(&self->qp));
	ASSERT_EQ(0, set_online(own, "1"));
	EXPECT_TRUE(is_bound_to(self->poller, own));
}

/* --- unloading ------------------------------------------------------------ */

static void *write_cpus(void *stop)
{
	while (!atomic_load((atomic_bool *)stop))
		np_write_file(POLLER_CPUS, "0");
	return NULL;
}

/* Last in the file: it unloads the module, whose parameter is written meanwhile. */
TEST_F_TIMEOUT(relay_cpus, parameter_is_written_during_unload, 120)
{
	atomic_bool stop = false;
	pthread_t writer;
	int i;

	ASSERT_EQ(0, pthread_create(&writer, NULL, write_cpus, &stop));
	for (i = 0; i < 2; i++) {
		np_qp_close(&self->qp);
		np_ctrl_close(&self->ctrl);
		EXPECT_EQ(0, np_module_unload(NP_TIMEOUT_MS));
		ASSERT_EQ(0, np_module_load(""));
		ASSERT_EQ(0, np_ctrl_open(&self->ctrl, "np0"));
		ASSERT_EQ(0, np_qp_open(&self->qp, self->ctrl.fd, ENTRIES));
		EXPECT_EQ(0, flush(&self->qp));
	}
	atomic_store(&stop, true);
	pthread_join(writer, NULL);
	self->poller = find_poller();
}

/* Unloads the module, too. */
TEST_F_TIMEOUT(relay_cpus, parameter_of_the_load, 120)
{
	char text[64];

	np_qp_close(&self->qp);
	np_ctrl_close(&self->ctrl);
	EXPECT_EQ(0, np_module_unload(NP_TIMEOUT_MS));
	/* With a CPU that does not exist, the list is ignored as a whole. */
	ASSERT_EQ(0, np_module_load("poller_cpus=1,60000"));
	EXPECT_EQ(0, np_read_file(POLLER_CPUS, text, sizeof(text)));
	EXPECT_STREQ("\n", text);
	EXPECT_EQ(0, np_module_unload(NP_TIMEOUT_MS));
	EXPECT_EQ(-EINVAL, np_module_load("poller_cpus=one"));
	ASSERT_EQ(0, np_module_load("poller_cpus=1"));
	ASSERT_EQ(0, np_ctrl_open(&self->ctrl, "np0"));
	ASSERT_EQ(0, np_qp_open(&self->qp, self->ctrl.fd, ENTRIES));
	self->poller = find_poller();
	EXPECT_TRUE(is_bound_to(self->poller, 1));
}

TEST_HARNESS_MAIN
