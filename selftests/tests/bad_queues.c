// SPDX-License-Identifier: GPL-2.0-only
/*
 * A controller that refuses or ignores the creation and deletion of queues:
 * nothing of a queue pair is left on it, if need be by a reset, and no call
 * comes back while the controller may still write to rings.
 *
 * kernels: 7 debug
 * long-kernels: 6.1 6.12 7 debug kcsan
 * iommu: on off
 * timeout: 120
 */
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "badknob.h"
#include "kselftest_harness.h"

#define ENTRIES		16U
#define STATUS_QID	0x101
#define REFUSED		(NP_STATUS_DNR | STATUS_QID)

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
		SKIP(return, "no misbehaving controller in this guest");
	ASSERT_EQ(0, np_bad_hurry());
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
	EXPECT_EQ(0, np_objects_settle(&self->bad.ctrl, self->before, NP_TIMEOUT_MS));
	np_qp_close(&self->other);
	np_buffer_close(&self->buffer);
	EXPECT_EQ(0, np_bad_close(&self->bad));
}

/* The controller had to be reset, @resets times, and another queue pair knows. */
static void expect_resets(struct __test_metadata *_metadata, FIXTURE_DATA(bad_queues) *self,
			  int resets)
{
	struct np_command flush = { .opcode = NP_CMD_FLUSH, .nsid = 1 };

	EXPECT_EQ(self->generation + resets,
		  np_bad_wait_state(&self->bad, NVME_PEER_CTRL_LIVE));
	EXPECT_EQ(resets ? NVME_PEER_QP_QUIESCED : NVME_PEER_QP_LIVE, self->status->state);
	EXPECT_EQ(resets ? EIO : 0, self->status->reason);
	/* And it serves new ones. */
	ASSERT_EQ(0, np_qp_try(self->bad.ctrl.fd, NP_TIMEOUT_MS));
	if (!resets)
		EXPECT_EQ(0, np_qp_run(&self->other, &flush, NP_TIMEOUT_MS));
}

/* --- creation --------------------------------------------------------------- */

static int create(FIXTURE_DATA(bad_queues) *self)
{
	struct nvme_peer_qp_create create;

	return np_qp_create(self->bad.ctrl.fd, ENTRIES, &create);
}

TEST_F(bad_queues, a_completion_queue_may_be_refused)
{
	np_bad_rule(&self->bad, 0, NP_ADMIN_CREATE_CQ, BADCTRL_STATUS, REFUSED, 1);
	EXPECT_EQ(-EIO, create(self));
	expect_resets(_metadata, self, 0);
}

TEST_F(bad_queues, a_submission_queue_may_be_refused)
{
	np_bad_rule(&self->bad, 0, NP_ADMIN_CREATE_SQ, BADCTRL_STATUS, REFUSED, 1);
	np_bad_rule(&self->bad, 1, NP_ADMIN_DELETE_CQ, BADCTRL_COUNT, 0, 1);
	EXPECT_EQ(-EIO, create(self));
	EXPECT_EQ(1, np_bad_hits(&self->bad, 1));
	expect_resets(_metadata, self, 0);
}

TEST_F(bad_queues, a_completion_queue_that_stays_is_fenced)
{
	np_bad_rule(&self->bad, 0, NP_ADMIN_CREATE_SQ, BADCTRL_STATUS, REFUSED, 1);
	np_bad_rule(&self->bad, 1, NP_ADMIN_DELETE_CQ, BADCTRL_STATUS, REFUSED, 1);
	EXPECT_EQ(-EIO, create(self));
	expect_resets(_metadata, self, 1);
}

TEST_F(bad_queues, creation_without_answer_is_fenced)
{
	np_bad_rule(&self->bad, 0, NP_ADMIN_CREATE_CQ, BADCTRL_HOLD, 0, 1);
	EXPECT_EQ(-EAGAIN, create(self));
	expect_resets(_metadata, self, 1);
}

TEST_F(bad_queues, creation_half_answered_is_fenced)
{
	np_bad_rule(&self->bad, 0, NP_ADMIN_CREATE_SQ, BADCTRL_HOLD, 0, 1);
	EXPECT_EQ(-EAGAIN, create(self));
	expect_resets(_metadata, self, 1);
}

/* Admin commands of the driver's own are looked for without an interrupt too. */
TEST_F(bad_queues, creation_answered_without_interrupt_succeeds)
{
	struct np_qp qp;

	np_bad_rule(&self->bad, 0, NP_ADMIN_CREATE_CQ, BADCTRL_QUIET, 0, 1);
	ASSERT_EQ(0, np_qp_open(&qp, self->bad.ctrl.fd, ENTRIES));
	np_qp_close(&qp);
	expect_resets(_metadata, self, 0);
}

/* --- deletion --------------------------------------------------------------- */

/*
 * A queue pair with a command that the controller sits on: it carries it out
 * when its queue is deleted or it stops, so both must be over when close()
 * returns, and the page must be there until then.
 */
static void open_busy(struct __test_metadata *_metadata, FIXTURE_DATA(bad_queues) *self,
		      struct np_qp *qp)
{
	struct np_command command;

	memset(self->buffer.bytes, 0xee, NP_PAGE);
	np_bad_rule(&self->bad, 7, NP_IO_READ, BADCTRL_HOLD, 0, 1);
	ASSERT_EQ(0, np_qp_open(qp, self->bad.ctrl.fd, ENTRIES));
	np_command_rw(&command, &self->buffer, NP_CMD_READ, 0, 0, NP_PAGE);
	np_qp_put(qp, &command);
	ASSERT_EQ(0, np_qp_ring(qp));
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

TEST_F(bad_queues, a_submission_queue_that_stays_is_fenced)
{
	np_bad_rule(&self->bad, 0, NP_ADMIN_DELETE_SQ, BADCTRL_STATUS, REFUSED, 1);
	close_busy(_metadata, self);
	expect_resets(_metadata, self, 1);
}

TEST_F(bad_queues, deletion_of_the_submission_queue_without_answer_is_fenced)
{
	np_bad_rule(&self->bad, 0, NP_ADMIN_DELETE_SQ, BADCTRL_HOLD, 0, 1);
	close_busy(_metadata, self);
	expect_resets(_metadata, self, 1);
}

TEST_F(bad_queues, deletion_of_the_completion_queue_refused_is_fenced)
{
	np_bad_rule(&self->bad, 0, NP_ADMIN_DELETE_CQ, BADCTRL_STATUS, REFUSED, 1);
	close_busy(_metadata, self);
	expect_resets(_metadata, self, 1);
}

/* It says that the submission queue is gone, then that somebody still uses it. */
TEST_F(bad_queues, a_deletion_that_was_a_lie_is_fenced)
{
	np_bad_rule(&self->bad, 0, NP_ADMIN_DELETE_SQ, BADCTRL_LIE, 0, 1);
	close_busy(_metadata, self);
	expect_resets(_metadata, self, 1);
}

/* An exporter gets its memory back when the controller has stopped, not sooner. */
TEST_F(bad_queues, memory_goes_back_after_a_deletion_without_answer)
{
	struct nvmep_test_move move = { .fd = self->buffer.fd };
	int test = open(NVMEP_TEST_NODE, O_RDWR | O_CLOEXEC);
	int64_t end = np_now_ms() + NP_TIMEOUT_MS;
	struct np_qp qp;

	ASSERT_LE(0, test);
	open_busy(_metadata, self, &qp);
	np_bad_rule(&self->bad, 0, NP_ADMIN_DELETE_SQ, BADCTRL_HOLD, 0, 1);
	ASSERT_EQ(0, np_ioctl(test, NVMEP_TEST_MOVE, &move));
	/* The exporter holds its lock there: no admin command was waited for. */
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
	/* The other queue pair may have known the addresses too: it went the same way. */
	EXPECT_EQ(NVME_PEER_QP_GONE, self->status->state);
	EXPECT_EQ(ESTALE, self->status->reason);
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

/* One is the CPU's; of two, one is for peers, as long as no lost one has it. */
TEST_F(bad_queues, fewer_are_granted_after_a_reset)
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
	EXPECT_EQ(0, np_qp_try(self->bad.ctrl.fd, NP_TIMEOUT_MS));
	/* A queue pair takes one of each kind. */
	reset_with(_metadata, self, 4 << 16 | 8);
	EXPECT_EQ(4, queues_granted(&self->bad));
	reset_with(_metadata, self, 8 << 16 | 4);
	EXPECT_EQ(4, queues_granted(&self->bad));
	reset_with(_metadata, self, 8);
	ASSERT_EQ(0, np_qp_open(&self->other, self->bad.ctrl.fd, ENTRIES));
	self->status = self->other.status.at;
	expect_resets(_metadata, self, 0);
}

/* A peer may store to the doorbell of its queue when that is nobody's any more. */
TEST_F(bad_queues, the_cpu_takes_no_identifier_that_was_a_peers)
{
	struct nvme_peer_qp_create create;
	char path[96], text[4096];
	struct nvme_peer_info info;

	ASSERT_EQ(0, np_info(self->bad.ctrl.fd, &info));
	if (info.qids_cpu < 2)
		SKIP(return, "the CPU has one queue, and nobody can grant less");
	np_qp_close(&self->other);
	reset_with(_metadata, self, 2);
	ASSERT_EQ(0, np_qp_create(self->bad.ctrl.fd, ENTRIES, &create));
	close(create.qp_fd);
	/* What was the CPU's second one. */
	EXPECT_EQ(2, create.qid);
	reset_with(_metadata, self, 8);
	ASSERT_EQ(0, np_info(self->bad.ctrl.fd, &info));
	EXPECT_EQ(2, info.qids_cpu);
	snprintf(path, sizeof(path), "/sys/kernel/debug/nvme-peer/nvmep%d/queues",
		 self->bad.ctrl.instance);
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
};

/* Each CPU of the guest has a queue of its own, if the controller grants as many. */
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

/* The CPUs' own queues become fewer, and more again, under I/O: none is lost. */
TEST_F(bad_queues, the_cpus_share_one_that_is_left)
{
	struct cpu_reader readers[2];
	struct nvme_peer_info info;

	ASSERT_EQ(0, np_info(self->bad.ctrl.fd, &info));
	if (info.qids_cpu < 2)
		SKIP(return, "the CPU has one queue, and nobody can grant less");
	np_bad_rule(&self->bad, 0, NP_IO_READ, BADCTRL_HOLD, 0, 2);
	start_readers(_metadata, &self->bad, readers);
	EXPECT_EQ(0, np_bad_wait_word(&self->bad, BADCTRL_HELD, 2));
	reset_with(_metadata, self, 1);
	join_readers(_metadata, readers);
	start_readers(_metadata, &self->bad, readers);
	join_readers(_metadata, readers);
	np_qp_close(&self->other);
	/* Under I/O that is on its only queue. */
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

/* A passthrough read on a CPU of its own. */
static void *pass_on_cpu(void *argument)
{
	struct cpu_reader *reader = argument;
	struct nvme_passthru_cmd cmd = {
		.opcode = NP_CMD_READ,
		.nsid = 1,
		.addr = (uintptr_t)reader->bytes,
		.data_len = NP_BLOCK,
		.timeout_ms = NP_TIMEOUT_MS,
	};

	reader->result = np_run_on(reader->cpu) ?:
			 np_ioctl(reader->bad->generic, NVME_IOCTL_IO_CMD, &cmd);
	return NULL;
}

/* What waits for a queue that does not come back is not moved: its sender may repeat it. */
TEST_F(bad_queues, a_command_of_a_user_is_not_moved_to_another)
{
	struct cpu_reader readers[2];
	struct nvme_peer_info info;
	pthread_t thread;
	void *result;
	int i;

	ASSERT_EQ(0, np_info(self->bad.ctrl.fd, &info));
	if (info.qids_cpu < 2)
		SKIP(return, "the CPU has one queue, and nobody can grant less");
	ASSERT_EQ(0, np_bad_set(&self->bad, BADCTRL_GRANT, 1));
	ASSERT_EQ(0, np_bad_rule(&self->bad, 0, NP_ADMIN_IDENTIFY, BADCTRL_HOLD, 0, 1));
	ASSERT_EQ(0, pthread_create(&thread, NULL, np_bad_reset_thread, &self->bad));
	ASSERT_EQ(0, np_bad_wait_word(&self->bad, BADCTRL_HELD, 1));
	for (i = 0; i < 2; i++) {
		readers[i] = (struct cpu_reader){ .bad = &self->bad, .cpu = i };
		readers[i].bytes = aligned_alloc(NP_PAGE, NP_PAGE);
		ASSERT_NE(NULL, readers[i].bytes);
		ASSERT_EQ(0, pthread_create(&readers[i].thread, NULL, pass_on_cpu, &readers[i]));
	}
	np_sleep_ms(200);
	EXPECT_EQ(0, np_bad_set(&self->bad, BADCTRL_RELEASE, 1));
	pthread_join(thread, &result);
	EXPECT_EQ(NULL, result);
	for (i = 0; i < 2; i++) {
		pthread_join(readers[i].thread, NULL);
		free(readers[i].bytes);
	}
	EXPECT_EQ(NP_STATUS_HOST_PATH, readers[0].result + readers[1].result);
	self->generation++;
	np_qp_close(&self->other);
	reset_with(_metadata, self, 8);
	ASSERT_EQ(0, np_qp_open(&self->other, self->bad.ctrl.fd, ENTRIES));
}

/* It is reset, given up or unbound before the CPU's I/O has found another queue. */
TEST_F(bad_queues, io_without_a_queue_ends_with_the_controller)
{
	struct cpu_reader readers[2];
	struct nvme_peer_info info;
	int i;

	ASSERT_EQ(0, np_info(self->bad.ctrl.fd, &info));
	if (info.qids_cpu < 2)
		SKIP(return, "the CPU has one queue, and nobody can grant less");
	np_bad_rule(&self->bad, 0, NP_IO_READ, BADCTRL_HOLD, 0, BADCTRL_EVERY);
	np_bad_rule(&self->bad, 1, NP_ADMIN_ABORT, BADCTRL_HOLD, 0, BADCTRL_EVERY);
	start_readers(_metadata, &self->bad, readers);
	EXPECT_EQ(0, np_bad_wait_word(&self->bad, BADCTRL_HELD, 2));
	reset_with(_metadata, self, 1);
	/* One waits for the other to end, which it does not: the scan waits too. */
	EXPECT_EQ(0, np_bad_wait_word(&self->bad, BADCTRL_HELD, 1));
	np_qp_close(&self->other);
	EXPECT_EQ(0, np_unbind(self->bad.address));
	for (i = 0; i < 2; i++) {
		pthread_join(readers[i].thread, NULL);
		EXPECT_EQ(-EIO, readers[i].result);
		free(readers[i].bytes);
	}
	np_bad_set(&self->bad, BADCTRL_DEFAULTS, 1);
	np_bad_set(&self->bad, BADCTRL_MODE, BADCTRL_WORKS);
	EXPECT_EQ(0, np_bad_unbind(&self->bad));
	ASSERT_EQ(0, np_bad_bind(&self->bad, 1));
	ASSERT_EQ(0, np_qp_open(&self->other, self->bad.ctrl.fd, ENTRIES));
	ASSERT_EQ(0, np_objects(&self->bad.ctrl, self->before));
}

/* --- what the administrator says --------------------------------------------- */

static int keep(FIXTURE_DATA(bad_queues) *self, const char *count)
{
	char path[96];

	snprintf(path, sizeof(path), "/sys/class/nvme-peer/nvmep%d/cpu_queues",
		 self->bad.ctrl.instance);
	return np_write_file(path, count);
}

/* What the attribute and INFO say of the CPU's share; it uses @used of it. */
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

/* What is under way ends as if nothing was: the controller starts anew when that is done. */
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

TEST_F(bad_queues, the_cpu_keeps_as_many_as_the_administrator_says)
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
	EXPECT_EQ(0, keep(self, "4"));
	expect_share(_metadata, self, 4, 2);

	shrink_under_load(_metadata, self);
	expect_share(_metadata, self, 1, 1);
	start_readers(_metadata, &self->bad, readers);
	join_readers(_metadata, readers);
	for (i = 0; i < 7; i++)
		ASSERT_EQ(0, np_qp_create(self->bad.ctrl.fd, ENTRIES, &qps[i]));
	EXPECT_EQ(-ENOSPC, create(self));
	EXPECT_EQ(-EBUSY, keep(self, "2"));
	for (i = 0; i < 7; i++)
		close(qps[i].qp_fd);
	/* What was the CPU's second one is not its any more. */
	EXPECT_EQ(-ENOSPC, keep(self, "2"));
	expect_share(_metadata, self, 1, 1);
	/* Resets keep to it. */
	reset_with(_metadata, self, 4);
	expect_share(_metadata, self, 1, 1);
	ASSERT_EQ(0, np_qp_open(&self->other, self->bad.ctrl.fd, ENTRIES));
	ASSERT_EQ(0, np_objects(&self->bad.ctrl, self->before));
}

/* From both processors: one of them has that queue, at last. */
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

/* Bound with too few for each processor to have one: it gets more than it began with. */
TEST_F(bad_queues, the_cpu_gets_more_than_it_began_with)
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
