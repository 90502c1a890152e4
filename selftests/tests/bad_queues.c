// SPDX-License-Identifier: GPL-2.0-only
/*
 * A controller that refuses or ignores the creation and deletion of queues: a queue pair
 * leaves nothing on the controller, if need be after a reset, and no call returns while
 * the controller may still write to rings.
 *
 * kernels: 7
 * long-kernels: 6.1 6.12 7 debug kcsan
 * iommu: on
 * long-iommu: on off
 * timeout: 120
 */
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "npbad.h"
#include "kselftest_harness.h"

#define ENTRIES		16U
#define REFUSED		(NVME_STATUS_DNR | NVME_SC_QID_INVALID)

FIXTURE(bad_queues)
{
	struct np_bad bad;
	struct np_buffer buffer;
	char before[NP_OBJECTS];
	struct np_qp other;
	const struct nvme_peer_status *status;
	int generation;
};

FIXTURE_SETUP(bad_queues)
{
	self->other.fd = -1;
	if (np_bad_open(&self->bad) == -ENOENT)
		SKIP(return, "no badctrl in this guest");
	ASSERT_EQ(0, np_bad_short_io_timeout());
	ASSERT_EQ(0, np_bad_bind(&self->bad, 1));
	ASSERT_EQ(0, np_buffer_open(&self->buffer, self->bad.ctrl.fd, 4, 0));
	ASSERT_EQ(0, np_qp_open(&self->other, self->bad.ctrl.fd, ENTRIES));
	ASSERT_EQ(0, np_objects(&self->bad.ctrl, self->before));
	self->status = self->other.status.at;
	self->generation = np_bad_generation(&self->bad);
}

FIXTURE_TEARDOWN(bad_queues)
{
	if (!self->bad.address[0])
		return;
	EXPECT_EQ(0, np_objects_wait(&self->bad.ctrl, self->before, NP_TIMEOUT_MS));
	np_qp_close(&self->other);
	np_buffer_close(&self->buffer);
	EXPECT_EQ(0, np_bad_close(&self->bad));
}

/* The controller was reset @resets times, and another queue pair saw it. */
static void expect_resets(struct __test_metadata *_metadata, FIXTURE_DATA(bad_queues) *self,
			  int resets)
{
	struct np_command flush = { .opcode = NVMEPEER_OP_FLUSH, .nsid = 1 };

	EXPECT_EQ(self->generation + resets,
		  np_bad_wait_state(&self->bad, NVME_PEER_CTRL_LIVE));
	EXPECT_EQ(resets ? NVME_PEER_QP_QUIESCED : NVME_PEER_QP_LIVE, self->status->state);
	EXPECT_EQ(resets ? NVME_PEER_QP_REASON_RESET : 0, self->status->reason);
	/* New queue pairs can be created. */
	ASSERT_EQ(0, np_qp_check(self->bad.ctrl.fd, NP_TIMEOUT_MS));
	if (!resets)
		EXPECT_EQ(0, np_qp_run(&self->other, &flush, NP_TIMEOUT_MS));
}

/* --- creation --------------------------------------------------------------- */

static int create(FIXTURE_DATA(bad_queues) *self)
{
	struct nvme_peer_qp_create create;

	return np_qp_create(self->bad.ctrl.fd, ENTRIES, &create);
}

TEST_F(bad_queues, create_cq_refused)
{
	np_bad_rule(&self->bad, 0, NVME_ADMIN_CREATE_CQ, BADCTRL_STATUS, REFUSED, 1);
	EXPECT_EQ(-EIO, create(self));
	expect_resets(_metadata, self, 0);
}

TEST_F(bad_queues, create_sq_refused)
{
	np_bad_rule(&self->bad, 0, NVME_ADMIN_CREATE_SQ, BADCTRL_STATUS, REFUSED, 1);
	np_bad_rule(&self->bad, 1, NVME_ADMIN_DELETE_CQ, BADCTRL_COUNT, 0, 1);
	EXPECT_EQ(-EIO, create(self));
	EXPECT_EQ(1, np_bad_hits(&self->bad, 1));
	expect_resets(_metadata, self, 0);
}

TEST_F(bad_queues, undeletable_cq_resets)
{
	np_bad_rule(&self->bad, 0, NVME_ADMIN_CREATE_SQ, BADCTRL_STATUS, REFUSED, 1);
	np_bad_rule(&self->bad, 1, NVME_ADMIN_DELETE_CQ, BADCTRL_STATUS, REFUSED, 1);
	EXPECT_EQ(-EIO, create(self));
	expect_resets(_metadata, self, 1);
}

TEST_F(bad_queues, create_cq_timeout_resets)
{
	np_bad_rule(&self->bad, 0, NVME_ADMIN_CREATE_CQ, BADCTRL_HOLD, 0, 1);
	ASSERT_EQ(0, np_bad_let_expire(&self->bad, 0));
	EXPECT_EQ(-EAGAIN, create(self));
	expect_resets(_metadata, self, 1);
}

TEST_F(bad_queues, create_sq_timeout_resets)
{
	np_bad_rule(&self->bad, 0, NVME_ADMIN_CREATE_SQ, BADCTRL_HOLD, 0, 1);
	ASSERT_EQ(0, np_bad_let_expire(&self->bad, 0));
	EXPECT_EQ(-EAGAIN, create(self));
	expect_resets(_metadata, self, 1);
}

/* The driver polls the admin queue if an interrupt does not arrive. */
TEST_F(bad_queues, create_without_interrupt_succeeds)
{
	struct np_qp qp;

	np_bad_rule(&self->bad, 0, NVME_ADMIN_CREATE_CQ, BADCTRL_QUIET, 0, 1);
	ASSERT_EQ(0, np_bad_let_expire(&self->bad, 0));
	ASSERT_EQ(0, np_qp_open(&qp, self->bad.ctrl.fd, ENTRIES));
	np_qp_close(&qp);
	expect_resets(_metadata, self, 0);
}

/* --- deletion --------------------------------------------------------------- */

/*
 * A queue pair with a command that the controller holds. The controller executes the
 * command when its queue is deleted or the controller stops. Both must have ended when
 * close() returns, and the data page must stay mapped until then.
 */
static void open_busy(struct __test_metadata *_metadata, FIXTURE_DATA(bad_queues) *self,
		      struct np_qp *qp)
{
	struct np_command command;

	memset(self->buffer.bytes, 0xee, NP_PAGE);
	np_bad_rule(&self->bad, 7, NP_IO_READ, BADCTRL_HOLD, 0, 1);
	ASSERT_EQ(0, np_qp_open(qp, self->bad.ctrl.fd, ENTRIES));
	np_command_rw(&command, &self->buffer, NVMEPEER_OP_READ, 0, 0, NP_PAGE);
	np_qp_put(qp, &command);
	ASSERT_EQ(0, np_qp_ring_doorbell(qp));
	ASSERT_EQ(0, np_bad_wait_word(&self->bad, BADCTRL_HELD, 1));
	EXPECT_EQ(0xee, self->buffer.bytes[0]);
}

static void close_busy(struct __test_metadata *_metadata, FIXTURE_DATA(bad_queues) *self)
{
	struct np_qp qp;

	open_busy(_metadata, self, &qp);
	np_qp_close(&qp);
	EXPECT_EQ(0, self->buffer.bytes[0]);
	EXPECT_EQ(0, np_bad_get(&self->bad, BADCTRL_HELD));
}

TEST_F(bad_queues, deletion_ends_commands)
{
	close_busy(_metadata, self);
	expect_resets(_metadata, self, 0);
}

TEST_F(bad_queues, undeletable_sq_resets)
{
	np_bad_rule(&self->bad, 0, NVME_ADMIN_DELETE_SQ, BADCTRL_STATUS, REFUSED, 1);
	close_busy(_metadata, self);
	expect_resets(_metadata, self, 1);
}

TEST_F(bad_queues, delete_sq_timeout_resets)
{
	np_bad_rule(&self->bad, 0, NVME_ADMIN_DELETE_SQ, BADCTRL_HOLD, 0, 1);
	ASSERT_EQ(0, np_bad_let_expire(&self->bad, 0));
	close_busy(_metadata, self);
	expect_resets(_metadata, self, 1);
}

TEST_F(bad_queues, delete_cq_refused_resets)
{
	np_bad_rule(&self->bad, 0, NVME_ADMIN_DELETE_CQ, BADCTRL_STATUS, REFUSED, 1);
	close_busy(_metadata, self);
	expect_resets(_metadata, self, 1);
}

/* Delete SQ reports success, but Delete CQ reports that the SQ still exists. */
TEST_F(bad_queues, false_delete_sq_success_resets)
{
	np_bad_rule(&self->bad, 0, NVME_ADMIN_DELETE_SQ, BADCTRL_LIE, 0, 1);
	close_busy(_metadata, self);
	expect_resets(_metadata, self, 1);
}

/* The exporter's memory is unmapped when the controller has stopped, not earlier. */
TEST_F(bad_queues, memory_unmapped_after_delete_timeout_reset)
{
	struct nvmep_test_move move = { .fd = self->buffer.fd };
	int test = np_test_open();
	int64_t end = np_now_ms() + NP_TIMEOUT_MS;
	struct np_qp qp;

	ASSERT_LE(0, test);
	open_busy(_metadata, self, &qp);
	np_bad_rule(&self->bad, 0, NVME_ADMIN_DELETE_SQ, BADCTRL_HOLD, 0, 1);
	ASSERT_EQ(0, np_bad_let_expire(&self->bad, 0));
	ASSERT_EQ(0, np_ioctl(test, NVMEP_TEST_MOVE, &move));
	/*
	 * The exporter holds the reservation lock here, so no admin command was waited
	 * for.
	 */
	EXPECT_NE(0, np_bad_get(&self->bad, BADCTRL_HELD));
	do {
		ASSERT_EQ(0, np_ioctl(test, NVMEP_TEST_MAPS, &move));
		np_sleep_ms(1);
	} while (move.maps && np_now_ms() < end);
	EXPECT_EQ(0, move.maps);
	EXPECT_EQ(0, np_bad_get(&self->bad, BADCTRL_HELD));
	EXPECT_EQ(0, self->buffer.bytes[0]);
	np_qp_close(&qp);
	close(test);
	EXPECT_EQ(self->generation + 1,
		  np_bad_wait_state(&self->bad, NVME_PEER_CTRL_LIVE));
	/*
	 * The other queue pair may have used the exposed addresses too, so it ends as
	 * well.
	 */
	EXPECT_EQ(NVME_PEER_QP_GONE, self->status->state);
	EXPECT_EQ(NVME_PEER_QP_REASON_BUFFER, self->status->reason);
	EXPECT_EQ(0, np_objects(&self->bad.ctrl, self->before));
}

/* --- fewer queues ------------------------------------------------------------ */

static void reset_with(struct __test_metadata *_metadata, FIXTURE_DATA(bad_queues) *self,
		       uint32_t grant)
{
	ASSERT_EQ(0, np_bad_set(&self->bad, BADCTRL_GRANT, grant));
	ASSERT_EQ(0, np_ioctl(self->bad.ctrl.fd, NVME_IOCTL_RESET, NULL));
	self->generation++;
	EXPECT_EQ(self->generation, np_bad_wait_state(&self->bad, NVME_PEER_CTRL_LIVE));
}

static uint32_t queues_granted(struct np_bad *bad)
{
	struct nvme_peer_info info = {};

	np_info(bad->ctrl.fd, &info);
	return info.qids_total;
}

/*
 * One queue is for the CPU. Of two, one is for peers, unless a quiesced queue pair
 * reserves it.
 */
TEST_F(bad_queues, fewer_queues_after_reset)
{
	struct nvme_peer_info info;

	reset_with(_metadata, self, 1);
	ASSERT_EQ(0, np_info(self->bad.ctrl.fd, &info));
	EXPECT_EQ(1, info.qids_total);
	EXPECT_EQ(1, info.qids_cpu);
	EXPECT_EQ(0, info.qids_peer_max);
	EXPECT_EQ(-ENOSPC, create(self));
	reset_with(_metadata, self, 2);
	EXPECT_EQ(-ENOSPC, create(self));
	np_qp_close(&self->other);
	EXPECT_EQ(0, np_qp_check(self->bad.ctrl.fd, NP_TIMEOUT_MS));
	/* A queue pair needs one SQ and one CQ. */
	reset_with(_metadata, self, 4 << 16 | 8);
	EXPECT_EQ(4, queues_granted(&self->bad));
	reset_with(_metadata, self, 8 << 16 | 4);
	EXPECT_EQ(4, queues_granted(&self->bad));
	reset_with(_metadata, self, 8);
	ASSERT_EQ(0, np_qp_open(&self->other, self->bad.ctrl.fd, ENTRIES));
	self->status = self->other.status.at;
	expect_resets(_metadata, self, 0);
}

/* As in-tree: some controllers grant the most that the field can hold. */
TEST_F(bad_queues, grant_beyond_request_is_clamped)
{
	struct nvme_peer_info info;
	uint32_t total;

	ASSERT_EQ(0, np_info(self->bad.ctrl.fd, &info));
	np_qp_close(&self->other);
	reset_with(_metadata, self, 0xffff);
	total = queues_granted(&self->bad);
	/* The driver requests 1024. */
	EXPECT_LT(info.qids_total, total);
	EXPECT_GE(1024, total);
	ASSERT_EQ(0, np_info(self->bad.ctrl.fd, &info));
	EXPECT_EQ(total / 2, info.qids_peer_max);
	reset_with(_metadata, self, 8);
	ASSERT_EQ(0, np_qp_open(&self->other, self->bad.ctrl.fd, ENTRIES));
}

/* A peer may store to the doorbell of its queue after the queue was deleted. */
TEST_F(bad_queues, cpu_gets_no_peer_queue_id)
{
	struct nvme_peer_qp_create create;
	char path[96], text[4096];
	struct nvme_peer_info info;

	ASSERT_EQ(0, np_info(self->bad.ctrl.fd, &info));
	if (info.qids_cpu < 2)
		SKIP(return, "the CPU has one queue, fewer cannot be granted");
	np_qp_close(&self->other);
	snprintf(path, sizeof(path), "/sys/kernel/debug/nvme-peer/nvmep%d/queues",
		 self->bad.ctrl.instance);
	reset_with(_metadata, self, 2);
	ASSERT_EQ(0, np_read_file(path, text, sizeof(text)));
	EXPECT_NE(NULL, strstr(text, "\n1 io "));
	/* Its second queue is not on the controller and has no queue ID. */
	EXPECT_EQ(NULL, strstr(text, "\n0 io "));
	ASSERT_EQ(0, np_qp_create(self->bad.ctrl.fd, ENTRIES, &create));
	close(create.qp_fd);
	/* The queue ID was the CPU's second one. */
	EXPECT_EQ(2, create.qid);
	reset_with(_metadata, self, 8);
	ASSERT_EQ(0, np_info(self->bad.ctrl.fd, &info));
	EXPECT_EQ(2, info.qids_cpu);
	ASSERT_EQ(0, np_read_file(path, text, sizeof(text)));
	EXPECT_NE(NULL, strstr(text, "\n1 io "));
	EXPECT_EQ(NULL, strstr(text, "\n2 io "));
	ASSERT_EQ(0, np_qp_open(&self->other, self->bad.ctrl.fd, ENTRIES));
}

struct cpu_reader {
	struct np_bad *bad;
	int cpu;
	uint8_t *bytes;
	int result;
	pthread_t thread;
	atomic_int id;
};

/* Each CPU of the guest has a queue of its own if the controller grants as many. */
static void *read_on_cpu(void *argument)
{
	struct cpu_reader *reader = argument;

	reader->result = np_run_on(reader->cpu) ?: np_bad_read_disk(reader->bad, reader->bytes);
	return NULL;
}

static void start_readers(struct __test_metadata *_metadata, struct np_bad *bad,
			  struct cpu_reader *readers)
{
	void *bytes;
	int i;

	for (i = 0; i < 2; i++) {
		ASSERT_EQ(0, posix_memalign(&bytes, NP_PAGE, NP_PAGE));
		readers[i] = (struct cpu_reader){ .bad = bad, .cpu = i, .bytes = bytes };
		ASSERT_EQ(0, pthread_create(&readers[i].thread, NULL, read_on_cpu, &readers[i]));
	}
}

static void join_readers(struct __test_metadata *_metadata, struct cpu_reader *readers)
{
	int i;

	for (i = 0; i < 2; i++) {
		pthread_join(readers[i].thread, NULL);
		EXPECT_EQ(0, readers[i].result);
		free(readers[i].bytes);
	}
}

/* The number of CPU queues shrinks and grows again under I/O without losing a request. */
TEST_F(bad_queues, cpus_share_last_queue)
{
	struct cpu_reader readers[2];
	struct nvme_peer_info info;

	ASSERT_EQ(0, np_info(self->bad.ctrl.fd, &info));
	if (info.qids_cpu < 2)
		SKIP(return, "the CPU has one queue, fewer cannot be granted");
	np_bad_rule(&self->bad, 0, NP_IO_READ, BADCTRL_HOLD, 0, 2);
	start_readers(_metadata, &self->bad, readers);
	EXPECT_EQ(0, np_bad_wait_word(&self->bad, BADCTRL_HELD, 2));
	reset_with(_metadata, self, 1);
	join_readers(_metadata, readers);
	start_readers(_metadata, &self->bad, readers);
	join_readers(_metadata, readers);
	np_qp_close(&self->other);
	/* With I/O in flight on the only queue. */
	np_bad_rule(&self->bad, 0, NP_IO_READ, BADCTRL_HOLD, 0, 2);
	start_readers(_metadata, &self->bad, readers);
	EXPECT_EQ(0, np_bad_wait_word(&self->bad, BADCTRL_HELD, 2));
	reset_with(_metadata, self, 8);
	join_readers(_metadata, readers);
	start_readers(_metadata, &self->bad, readers);
	join_readers(_metadata, readers);
	ASSERT_EQ(0, np_info(self->bad.ctrl.fd, &info));
	EXPECT_EQ(2, info.qids_cpu);
	EXPECT_EQ(4, info.qids_peer_max);
	ASSERT_EQ(0, np_qp_open(&self->other, self->bad.ctrl.fd, ENTRIES));
}

/* A passthrough read bound to one CPU. */
static void *pass_on_cpu(void *argument)
{
	struct cpu_reader *reader = argument;
	struct nvme_passthru_cmd cmd = {
		.opcode = NVMEPEER_OP_READ,
		.nsid = 1,
		.addr = (uintptr_t)reader->bytes,
		.data_len = NP_BLOCK,
		.timeout_ms = NP_TIMEOUT_MS,
	};

	reader->result = np_run_on(reader->cpu);
	atomic_store(&reader->id, gettid());
	reader->result = reader->result ?: np_ioctl(reader->bad->generic, NVME_IOCTL_IO_CMD, &cmd);
	return NULL;
}

/* A passthrough command that waits for a removed queue fails; its submitter may retry. */
TEST_F(bad_queues, passthrough_not_moved_to_other_queue)
{
	struct cpu_reader readers[2];
	struct nvme_peer_info info;
	pthread_t thread;
	void *result;
	int i;

	ASSERT_EQ(0, np_info(self->bad.ctrl.fd, &info));
	if (info.qids_cpu < 2)
		SKIP(return, "the CPU has one queue, fewer cannot be granted");
	ASSERT_EQ(0, np_bad_set(&self->bad, BADCTRL_GRANT, 1));
	ASSERT_EQ(0, np_bad_rule(&self->bad, 0, NVME_ADMIN_IDENTIFY, BADCTRL_HOLD, 0, 1));
	ASSERT_EQ(0, pthread_create(&thread, NULL, np_bad_reset_thread, &self->bad));
	ASSERT_EQ(0, np_bad_wait_word(&self->bad, BADCTRL_HELD, 1));
	for (i = 0; i < 2; i++) {
		readers[i] = (struct cpu_reader){ .bad = &self->bad, .cpu = i };
		readers[i].bytes = aligned_alloc(NP_PAGE, NP_PAGE);
		ASSERT_NE(NULL, readers[i].bytes);
		ASSERT_EQ(0, pthread_create(&readers[i].thread, NULL, pass_on_cpu, &readers[i]));
	}
	for (i = 0; i < 2; i++)
		EXPECT_EQ(0, np_wait_sleeps(&readers[i].id));
	EXPECT_EQ(0, np_bad_set(&self->bad, BADCTRL_RELEASE, 1));
	pthread_join(thread, &result);
	EXPECT_EQ(NULL, result);
	for (i = 0; i < 2; i++) {
		pthread_join(readers[i].thread, NULL);
		free(readers[i].bytes);
	}
	EXPECT_EQ(NVME_SC_HOST_PATH, readers[0].result + readers[1].result);
	self->generation++;
	np_qp_close(&self->other);
	reset_with(_metadata, self, 8);
	ASSERT_EQ(0, np_qp_open(&self->other, self->bad.ctrl.fd, ENTRIES));
}

static void *sync_on_cpu(void *argument)
{
	struct cpu_reader *reader = argument;

	reader->result = np_run_on(reader->cpu);
	atomic_store(&reader->id, gettid());
	reader->result = reader->result ?: fsync(reader->bad->disk) ? -errno : 0;
	return NULL;
}

/*
 * The controller is reset and grants the CPU one queue; CPUs from @first on flush meanwhile.
 * The queue of CPU 1 is removed. False if the CPU has one queue only.
 */
static bool move_flushes(struct __test_metadata *_metadata, FIXTURE_DATA(bad_queues) *self,
			 struct cpu_reader *syncs, int first)
{
	struct nvme_peer_info info = {};
	pthread_t thread;
	void *result;
	int i;

	EXPECT_EQ(0, np_info(self->bad.ctrl.fd, &info));
	if (info.qids_cpu < 2)
		return false;
	EXPECT_EQ(0, np_bad_set(&self->bad, BADCTRL_GRANT, 1));
	EXPECT_EQ(0, np_bad_rule(&self->bad, 0, NVME_ADMIN_IDENTIFY, BADCTRL_HOLD, 0, 1));
	EXPECT_EQ(0, pthread_create(&thread, NULL, np_bad_reset_thread, &self->bad));
	EXPECT_EQ(0, np_bad_wait_word(&self->bad, BADCTRL_HELD, 1));
	for (i = first; i < 2; i++) {
		syncs[i] = (struct cpu_reader){ .bad = &self->bad, .cpu = i };
		EXPECT_EQ(0, pthread_create(&syncs[i].thread, NULL, sync_on_cpu, &syncs[i]));
	}
	for (i = first; i < 2; i++)
		EXPECT_EQ(0, np_wait_sleeps(&syncs[i].id));
	EXPECT_EQ(0, np_bad_set(&self->bad, BADCTRL_RELEASE, 1));
	pthread_join(thread, &result);
	EXPECT_EQ(NULL, result);
	self->generation++;
	return true;
}

/* After a test that has unbound the controller. */
static void bind_again(struct __test_metadata *_metadata, FIXTURE_DATA(bad_queues) *self)
{
	np_bad_set(&self->bad, BADCTRL_DEFAULTS, 1);
	np_bad_set(&self->bad, BADCTRL_MODE, BADCTRL_WORKS);
	EXPECT_EQ(0, np_bad_unbind(&self->bad));
	ASSERT_EQ(0, np_bad_bind(&self->bad, 1));
	ASSERT_EQ(0, np_qp_open(&self->other, self->bad.ctrl.fd, ENTRIES));
	ASSERT_EQ(0, np_objects(&self->bad.ctrl, self->before));
}

static void expect_flushed(struct __test_metadata *_metadata, FIXTURE_DATA(bad_queues) *self,
			   struct cpu_reader *syncs, int first, int result)
{
	int i;

	for (i = first; i < 2; i++) {
		pthread_join(syncs[i].thread, NULL);
		EXPECT_EQ(result, syncs[i].result);
	}
	np_qp_close(&self->other);
	self->generation = np_bad_wait_state(&self->bad, NVME_PEER_CTRL_LIVE);
	reset_with(_metadata, self, 8);
	ASSERT_EQ(0, np_qp_open(&self->other, self->bad.ctrl.fd, ENTRIES));
}

/* A flush that waits for a removed queue is sent to another one. */
TEST_F(bad_queues, flush_moved_to_other_queue)
{
	struct cpu_reader syncs[2];

	np_bad_rule(&self->bad, 1, NP_IO_FLUSH, BADCTRL_COUNT, 0, BADCTRL_EVERY);
	if (!move_flushes(_metadata, self, syncs, 0))
		SKIP(return, "the CPU has one queue, fewer cannot be granted");
	expect_flushed(_metadata, self, syncs, 0, 0);
	EXPECT_EQ(2, np_bad_hits(&self->bad, 1));
}

/* A moved flush is retried as others are, and fails if it must not be retried. */
TEST_F(bad_queues, moved_flush_has_status_of_controller)
{
	struct cpu_reader syncs[2];

	np_bad_rule(&self->bad, 1, NP_IO_FLUSH, BADCTRL_STATUS, NVME_SC_INTERNAL, 2);
	if (!move_flushes(_metadata, self, syncs, 1))
		SKIP(return, "the CPU has one queue, fewer cannot be granted");
	expect_flushed(_metadata, self, syncs, 1, 0);
	EXPECT_EQ(2, np_bad_hits(&self->bad, 1));
	np_bad_rule(&self->bad, 1, NP_IO_FLUSH, BADCTRL_STATUS,
		    NVME_STATUS_DNR | NVME_SC_INTERNAL, 1);
	EXPECT_TRUE(move_flushes(_metadata, self, syncs, 1));
	expect_flushed(_metadata, self, syncs, 1, -EIO);
	EXPECT_EQ(1, np_bad_hits(&self->bad, 1));
}

/* The driver resets the controller, and sends the flush again. */
TEST_F(bad_queues, moved_flush_times_out)
{
	struct cpu_reader syncs[2];
	int generation;

	np_bad_rule(&self->bad, 1, NP_IO_FLUSH, BADCTRL_HOLD, 0, 2);
	if (!move_flushes(_metadata, self, syncs, 0))
		SKIP(return, "the CPU has one queue, fewer cannot be granted");
	generation = self->generation;
	expect_flushed(_metadata, self, syncs, 0, 0);
	/* The last reset is that of expect_flushed(). */
	EXPECT_LT(generation + 1, self->generation);
}

/* The controller is unbound before the flush has ended. */
TEST_F(bad_queues, moved_flush_fails_with_controller)
{
	struct cpu_reader syncs[2];
	int i;

	np_bad_rule(&self->bad, 1, NP_IO_FLUSH, BADCTRL_HOLD, 0, BADCTRL_EVERY);
	np_bad_rule(&self->bad, 2, NVME_ADMIN_ABORT, BADCTRL_HOLD, 0, BADCTRL_EVERY);
	if (!move_flushes(_metadata, self, syncs, 0))
		SKIP(return, "the CPU has one queue, fewer cannot be granted");
	EXPECT_EQ(0, np_bad_wait_word(&self->bad, BADCTRL_HELD, 2));
	np_qp_close(&self->other);
	EXPECT_EQ(0, np_unbind(self->bad.address));
	for (i = 0; i < 2; i++) {
		pthread_join(syncs[i].thread, NULL);
		EXPECT_EQ(-EIO, syncs[i].result);
	}
	bind_again(_metadata, self);
}

/* A reset interrupts the moved flush. */
TEST_F(bad_queues, moved_flush_survives_reset)
{
	struct cpu_reader syncs[2];

	np_bad_rule(&self->bad, 1, NP_IO_FLUSH, BADCTRL_HOLD, 0, 2);
	if (!move_flushes(_metadata, self, syncs, 0))
		SKIP(return, "the CPU has one queue, fewer cannot be granted");
	EXPECT_EQ(0, np_bad_wait_word(&self->bad, BADCTRL_HELD, 2));
	reset_with(_metadata, self, 1);
	expect_flushed(_metadata, self, syncs, 0, 0);
}

/* Its completion is found when its timeout expires. */
TEST_F(bad_queues, moved_flush_without_interrupt_succeeds)
{
	struct cpu_reader syncs[2];
	int generation;

	np_bad_rule(&self->bad, 1, NP_IO_FLUSH, BADCTRL_QUIET, 0, 1);
	if (!move_flushes(_metadata, self, syncs, 1))
		SKIP(return, "the CPU has one queue, fewer cannot be granted");
	generation = self->generation;
	expect_flushed(_metadata, self, syncs, 1, 0);
	/* The reset of expect_flushed(). */
	EXPECT_EQ(generation + 1, self->generation);
}

/* Bound with queues of @entries entries, and with a timeout that no test waits for. */
static void bind_small(struct __test_metadata *_metadata, FIXTURE_DATA(bad_queues) *self,
		       uint32_t entries)
{
	uint32_t cap = np_bad_get(&self->bad, BADCTRL_REGISTERS);

	EXPECT_EQ(0, np_bad_unbind(&self->bad));
	ASSERT_EQ(0, np_write_file("/sys/module/nvme_peer/parameters/io_timeout", "60"));
	ASSERT_EQ(0, np_bad_set(&self->bad, BADCTRL_REGISTERS, (cap & 0xffff0000) | (entries - 1)));
	ASSERT_EQ(0, np_bad_set(&self->bad, BADCTRL_GRANT, 8));
	ASSERT_EQ(0, np_bad_bind(&self->bad, 1));
}

/*
 * A moved flush has no tag of the block layer. In a queue of three entries there is room for it,
 * in one of two it fails, and is not tried again.
 */
TEST_F(bad_queues, moved_flush_needs_room)
{
	static const struct {
		uint32_t entries;
		uint32_t sent;
		int result;
	} cases[] = { { 2, 0, -ENOLINK }, { 3, 1, 0 } };
	struct cpu_reader syncs[2];
	struct nvme_peer_info info;
	char path[96], text[16];
	unsigned int i;

	ASSERT_EQ(0, np_info(self->bad.ctrl.fd, &info));
	if (info.qids_cpu < 2)
		SKIP(return, "the CPU has one queue, fewer cannot be granted");
	np_qp_close(&self->other);
	np_buffer_close(&self->buffer);
	for (i = 0; i < 2; i++) {
		bind_small(_metadata, self, cases[i].entries);
		np_bad_rule(&self->bad, 1, NP_IO_FLUSH, BADCTRL_COUNT, 0, BADCTRL_EVERY);
		EXPECT_TRUE(move_flushes(_metadata, self, syncs, 1));
		pthread_join(syncs[1].thread, NULL);
		EXPECT_EQ(cases[i].result, syncs[1].result);
		EXPECT_EQ(cases[i].sent, np_bad_hits(&self->bad, 1));
		snprintf(path, sizeof(path), "/sys/block/nvmep%dn1/diag/command_retries_count",
			 self->bad.ctrl.instance);
		EXPECT_EQ(0, np_read_file(path, text, sizeof(text)));
		EXPECT_STREQ("0\n", text);
	}
	ASSERT_EQ(0, np_bad_short_io_timeout());
	bind_again(_metadata, self);
	np_qp_close(&self->other);
	ASSERT_EQ(0, np_buffer_open(&self->buffer, self->bad.ctrl.fd, 4, 0));
	ASSERT_EQ(0, np_qp_open(&self->other, self->bad.ctrl.fd, ENTRIES));
	ASSERT_EQ(0, np_objects(&self->bad.ctrl, self->before));
}

static void expect_cpu_queues(struct __test_metadata *_metadata, FIXTURE_DATA(bad_queues) *self,
			      uint32_t count)
{
	struct cpu_reader readers[2];
	struct nvme_peer_info info;

	ASSERT_EQ(0, np_info(self->bad.ctrl.fd, &info));
	EXPECT_EQ(count, info.qids_cpu);
	start_readers(_metadata, &self->bad, readers);
	join_readers(_metadata, readers);
}

/* If the controller refuses to create a queue, the CPU goes on with those before it. */
TEST_F(bad_queues, refused_queue_is_done_without)
{
	static const uint8_t opcodes[] = { NVME_ADMIN_CREATE_CQ, NVME_ADMIN_CREATE_SQ };
	uint32_t resets = np_bad_get(&self->bad, BADCTRL_RESETS);
	struct nvme_peer_info info;
	unsigned int i;

	ASSERT_EQ(0, np_info(self->bad.ctrl.fd, &info));
	if (info.qids_cpu < 2)
		SKIP(return, "the CPU has one queue");
	np_qp_close(&self->other);
	for (i = 0; i < 2; i++) {
		np_bad_rule(&self->bad, 0, opcodes[i], BADCTRL_COUNT, 0, 1);
		np_bad_rule(&self->bad, 1, opcodes[i], BADCTRL_STATUS, REFUSED, 1);
		reset_with(_metadata, self, 8);
		expect_cpu_queues(_metadata, self, 1);
		/* As many queue pairs are granted, and the controller has no queue too many. */
		EXPECT_EQ(0, np_qp_check(self->bad.ctrl.fd, NP_TIMEOUT_MS));
	}
	reset_with(_metadata, self, 8);
	/* Peers had the second queue ID meanwhile. */
	expect_cpu_queues(_metadata, self, info.qids_cpu);
	EXPECT_EQ(resets, np_bad_get(&self->bad, BADCTRL_RESETS));
	ASSERT_EQ(0, np_qp_open(&self->other, self->bad.ctrl.fd, ENTRIES));
}

/*
 * The controller is reset, failed or unbound before the CPU's I/O was moved to another
 * queue.
 */
TEST_F(bad_queues, io_without_queue_fails_with_controller)
{
	struct cpu_reader readers[2];
	struct nvme_peer_info info;
	int i;

	ASSERT_EQ(0, np_info(self->bad.ctrl.fd, &info));
	if (info.qids_cpu < 2)
		SKIP(return, "the CPU has one queue, fewer cannot be granted");
	np_bad_rule(&self->bad, 0, NP_IO_READ, BADCTRL_HOLD, 0, BADCTRL_EVERY);
	np_bad_rule(&self->bad, 1, NVME_ADMIN_ABORT, BADCTRL_HOLD, 0, BADCTRL_EVERY);
	start_readers(_metadata, &self->bad, readers);
	EXPECT_EQ(0, np_bad_wait_word(&self->bad, BADCTRL_HELD, 2));
	reset_with(_metadata, self, 1);
	/* A command that does not complete blocks the other one, and the scan. */
	EXPECT_EQ(0, np_bad_wait_word(&self->bad, BADCTRL_HELD, 1));
	np_qp_close(&self->other);
	EXPECT_EQ(0, np_unbind(self->bad.address));
	for (i = 0; i < 2; i++) {
		pthread_join(readers[i].thread, NULL);
		EXPECT_EQ(-EIO, readers[i].result);
		free(readers[i].bytes);
	}
	bind_again(_metadata, self);
}

/* --- cpu_queues attribute -------------------------------------------------------- */

static int keep(FIXTURE_DATA(bad_queues) *self, const char *count)
{
	char path[96];

	snprintf(path, sizeof(path), "/sys/class/nvme-peer/nvmep%d/cpu_queues",
		 self->bad.ctrl.instance);
	return np_write_file(path, count);
}

/* The attribute and INFO report the CPU's limit; @used queues exist. */
static void expect_share(struct __test_metadata *_metadata, FIXTURE_DATA(bad_queues) *self,
			 uint32_t share, uint32_t used)
{
	char path[96], text[16] = "";
	struct nvme_peer_info info;

	snprintf(path, sizeof(path), "/sys/class/nvme-peer/nvmep%d/cpu_queues",
		 self->bad.ctrl.instance);
	EXPECT_EQ(0, np_read_file(path, text, sizeof(text)));
	EXPECT_EQ(share, strtoul(text, NULL, 10));
	ASSERT_EQ(0, np_info(self->bad.ctrl.fd, &info));
	EXPECT_EQ(used, info.qids_cpu);
	EXPECT_EQ(info.qids_total - share, info.qids_peer_max);
	EXPECT_EQ(self->generation, np_bad_generation(&self->bad));
}

static void *keep_one(void *argument)
{
	FIXTURE_DATA(bad_queues) *self = argument;

	return keep(self, "1") ? argument : NULL;
}

/*
 * Commands in flight complete normally, then the controller is restarted with the new
 * number.
 */
static void shrink_under_load(struct __test_metadata *_metadata, FIXTURE_DATA(bad_queues) *self)
{
	struct cpu_reader reader = { .bad = &self->bad };
	pthread_t thread;
	void *result;

	reader.bytes = aligned_alloc(NP_PAGE, NP_PAGE);
	ASSERT_NE(NULL, reader.bytes);
	np_bad_rule(&self->bad, 0, NP_IO_READ, BADCTRL_HOLD, 0, 1);
	ASSERT_EQ(0, pthread_create(&reader.thread, NULL, pass_on_cpu, &reader));
	ASSERT_EQ(0, np_bad_wait_word(&self->bad, BADCTRL_HELD, 1));
	ASSERT_EQ(0, pthread_create(&thread, NULL, keep_one, self));
	np_sleep_ms(200);
	EXPECT_EQ(self->generation, np_bad_generation(&self->bad));
	EXPECT_EQ(0, np_bad_set(&self->bad, BADCTRL_RELEASE, 1));
	pthread_join(thread, &result);
	EXPECT_EQ(NULL, result);
	pthread_join(reader.thread, NULL);
	EXPECT_EQ(0, reader.result);
	free(reader.bytes);
	self->generation++;
}

TEST_F(bad_queues, cpu_queues_attribute_shrinks)
{
	struct nvme_peer_qp_create qps[7];
	struct cpu_reader readers[2];
	struct nvme_peer_info info;
	unsigned int i;

	reset_with(_metadata, self, 8);
	ASSERT_EQ(0, np_info(self->bad.ctrl.fd, &info));
	if (info.qids_cpu < 2)
		SKIP(return, "the CPU has one queue");
	expect_share(_metadata, self, 4, 2);
	EXPECT_EQ(-EBUSY, keep(self, "1"));
	np_qp_close(&self->other);
	EXPECT_EQ(-ERANGE, keep(self, "0"));
	EXPECT_EQ(-ERANGE, keep(self, "9"));
	EXPECT_EQ(-EINVAL, keep(self, "some"));
	/* Every queue for the CPU. */
	EXPECT_EQ(0, keep(self, "8"));
	self->generation++;
	expect_share(_metadata, self, 8, 2);
	EXPECT_EQ(-ENOSPC, create(self));
	EXPECT_EQ(0, keep(self, "4"));
	self->generation++;
	expect_share(_metadata, self, 4, 2);
	EXPECT_EQ(0, keep(self, "4"));
	expect_share(_metadata, self, 4, 2);

	shrink_under_load(_metadata, self);
	expect_share(_metadata, self, 1, 1);
	/* Creations that fail use up no queue IDs. */
	np_bad_rule(&self->bad, 0, NVME_ADMIN_CREATE_CQ, BADCTRL_STATUS, REFUSED, 8);
	for (i = 0; i < 8; i++)
		EXPECT_EQ(-EIO, create(self));
	EXPECT_EQ(0, keep(self, "2"));
	self->generation++;
	expect_share(_metadata, self, 2, 2);
	EXPECT_EQ(0, keep(self, "1"));
	self->generation++;
	start_readers(_metadata, &self->bad, readers);
	join_readers(_metadata, readers);
	for (i = 0; i < 7; i++)
		ASSERT_EQ(0, np_qp_create(self->bad.ctrl.fd, ENTRIES, &qps[i]));
	EXPECT_EQ(-ENOSPC, create(self));
	EXPECT_EQ(-EBUSY, keep(self, "2"));
	for (i = 0; i < 7; i++)
		close(qps[i].qp_fd);
	/* The second queue ID no longer belongs to the CPU. */
	EXPECT_EQ(-ENOSPC, keep(self, "2"));
	EXPECT_EQ(0, keep(self, "1"));
	expect_share(_metadata, self, 1, 1);
	/* Resets keep the setting. */
	reset_with(_metadata, self, 4);
	expect_share(_metadata, self, 1, 1);
	ASSERT_EQ(0, np_qp_open(&self->other, self->bad.ctrl.fd, ENTRIES));
	ASSERT_EQ(0, np_objects(&self->bad.ctrl, self->before));
}

/* The attribute is set to @count while a read is in flight that does not end in time. */
static void expect_busy(struct __test_metadata *_metadata, FIXTURE_DATA(bad_queues) *self,
			const char *count, uint32_t share, uint32_t used)
{
	struct cpu_reader reader = { .bad = &self->bad };

	reader.bytes = aligned_alloc(NP_PAGE, NP_PAGE);
	ASSERT_NE(NULL, reader.bytes);
	np_bad_rule(&self->bad, 0, NP_IO_READ, BADCTRL_HOLD, 0, 1);
	ASSERT_EQ(0, pthread_create(&reader.thread, NULL, read_on_cpu, &reader));
	ASSERT_EQ(0, np_bad_wait_word(&self->bad, BADCTRL_HELD, 1));
	EXPECT_EQ(-EBUSY, keep(self, count));
	expect_share(_metadata, self, share, used);
	EXPECT_EQ(0, np_bad_set(&self->bad, BADCTRL_RELEASE, 1));
	pthread_join(reader.thread, NULL);
	EXPECT_EQ(0, reader.result);
	free(reader.bytes);
}

/* If I/O in flight does not end, nothing changes. */
TEST_F_TIMEOUT(bad_queues, cpu_queues_attribute_waits_for_io, 90)
{
	struct nvme_peer_info info;

	ASSERT_EQ(0, np_info(self->bad.ctrl.fd, &info));
	np_qp_close(&self->other);
	np_buffer_close(&self->buffer);
	EXPECT_EQ(0, np_bad_unbind(&self->bad));
	ASSERT_EQ(0, np_write_file("/sys/module/nvme_peer/parameters/io_timeout", "30"));
	ASSERT_EQ(0, np_bad_bind(&self->bad, 1));
	ASSERT_EQ(0, np_bad_short_io_timeout());
	self->generation = np_bad_generation(&self->bad);
	expect_busy(_metadata, self, "1", 4, info.qids_cpu);
	EXPECT_EQ(0, keep(self, "1"));
	self->generation++;
	expect_busy(_metadata, self, "4", 1, 1);
	EXPECT_EQ(0, keep(self, "4"));
	self->generation++;
	expect_share(_metadata, self, 4, info.qids_cpu);
	ASSERT_EQ(0, np_buffer_open(&self->buffer, self->bad.ctrl.fd, 4, 0));
	ASSERT_EQ(0, np_qp_open(&self->other, self->bad.ctrl.fd, ENTRIES));
	ASSERT_EQ(0, np_objects(&self->bad.ctrl, self->before));
}

/* Submits from both CPUs until one of them uses the queue. */
static bool comes_to_use(struct __test_metadata *_metadata, FIXTURE_DATA(bad_queues) *self,
			 uint16_t sqid)
{
	int64_t end = np_now_ms() + NP_TIMEOUT_MS;
	struct cpu_reader readers[2];

	do {
		start_readers(_metadata, &self->bad, readers);
		join_readers(_metadata, readers);
		if (np_bad_get(&self->bad, BADCTRL_QUEUE_COUNT(sqid, BADCTRL_FETCHED)))
			return true;
	} while (np_now_ms() < end);
	return false;
}

/* The first start allocates vectors for as many queues as it was granted, until unbind. */
TEST_F(bad_queues, first_grant_limits_cpu_queues)
{
	np_qp_close(&self->other);
	np_buffer_close(&self->buffer);
	EXPECT_EQ(0, np_bad_unbind(&self->bad));
	ASSERT_EQ(0, np_bad_set(&self->bad, BADCTRL_GRANT, 1));
	ASSERT_EQ(0, np_bad_bind(&self->bad, 1));
	self->generation = np_bad_generation(&self->bad);
	reset_with(_metadata, self, 8);
	EXPECT_EQ(0, keep(self, "2"));
	self->generation++;
	expect_share(_metadata, self, 2, 1);
	ASSERT_EQ(0, np_buffer_open(&self->buffer, self->bad.ctrl.fd, 4, 0));
	ASSERT_EQ(0, np_qp_open(&self->other, self->bad.ctrl.fd, ENTRIES));
	ASSERT_EQ(0, np_objects(&self->bad.ctrl, self->before));
}

/* Bound with fewer queues than CPUs, the CPU gets more queues later. */
TEST_F(bad_queues, cpu_queues_attribute_grows)
{
	struct nvme_peer_info info;

	ASSERT_EQ(0, np_info(self->bad.ctrl.fd, &info));
	if (info.qids_cpu < 2)
		SKIP(return, "the CPU has one queue");
	np_qp_close(&self->other);
	np_buffer_close(&self->buffer);
	EXPECT_EQ(0, np_bad_unbind(&self->bad));
	ASSERT_EQ(0, np_bad_set(&self->bad, BADCTRL_GRANT, 2));
	ASSERT_EQ(0, np_bad_bind(&self->bad, 1));
	self->generation = np_bad_generation(&self->bad);
	expect_share(_metadata, self, 1, 1);
	EXPECT_EQ(0, keep(self, "2"));
	self->generation++;
	expect_share(_metadata, self, 2, 2);
	EXPECT_EQ(-ENOSPC, create(self));
	EXPECT_TRUE(comes_to_use(_metadata, self, 2));
	EXPECT_EQ(0, keep(self, "1"));
	self->generation++;
	ASSERT_EQ(0, np_buffer_open(&self->buffer, self->bad.ctrl.fd, 4, 0));
	ASSERT_EQ(0, np_qp_open(&self->other, self->bad.ctrl.fd, ENTRIES));
	ASSERT_EQ(0, np_objects(&self->bad.ctrl, self->before));
}

TEST_HARNESS_MAIN
