// SPDX-License-Identifier: GPL-2.0-only
/*
 * Namespaces that change: not by a command of ours while peers have queue pairs, whose
 * lengths and lists are made for the blocks they knew; and if it happens behind our
 * back, pairs are stopped, and another namespace is another disk.
 *
 * kernels: 6.1 debug
 * long-kernels: 6.1 6.12 7 debug
 * iommu: on
 * timeout: 300
 */
#include <errno.h>
#include <liburing.h>
#include <linux/fs.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "badknob.h"
#include "kselftest_harness.h"

#define ENTRIES		16U

#define ADMIN_NS_MANAGE	0x0d
#define ADMIN_NS_ATTACH	0x15
#define ADMIN_FORMAT	0x80
#define ADMIN_SANITIZE	0x84

/* Dword 0 of an event: namespaces changed; base specification 5.1.2. */

/* Bytes of Identify Namespace. */
#define NS_BLOCKS	0
#define NS_FEATURES	24
#define FEATURE_OPTIMAL_IO	(1U << 4)
#define NS_FORMATTED	26
#define NS_PROTECTION	29
#define NS_NOWS		72
#define NS_NGUID	104
#define NS_EUI64	120
#define NS_FORMAT	128
/* Of the descriptor list: its first one's UUID. */
#define DESCRIPTORS_UUID	4
#define BLOCK_SHIFT	9U

FIXTURE(bad_namespaces)
{
	struct np_bad bad;
	uint8_t *bytes;
	int generation;
};

FIXTURE_SETUP(bad_namespaces)
{
	if (np_bad_open(&self->bad) == -ENOENT)
		SKIP(return, "no misbehaving controller in this guest");
	ASSERT_EQ(0, posix_memalign((void **)&self->bytes, NP_PAGE, NP_PAGE));
	ASSERT_EQ(0, np_bad_bind(&self->bad, 1));
	self->generation = np_bad_generation(&self->bad);
}

FIXTURE_TEARDOWN(bad_namespaces)
{
	if (!self->bad.address[0])
		return;
	EXPECT_EQ(0, np_bad_close(&self->bad));
	free(self->bytes);
}

/* --- by a command ----------------------------------------------------------------- */

static int admin(struct np_bad *bad, uint8_t opcode)
{
	struct nvme_admin_cmd cmd = { .opcode = opcode, .nsid = 1 };

	return np_admin(bad->ctrl.fd, &cmd);
}

static int admin_by_uring(struct np_bad *bad, uint8_t opcode)
{
	struct nvme_uring_cmd cmd = { .opcode = opcode, .nsid = 1 };
	struct io_uring_cqe *cqe;
	struct io_uring_sqe *sqe;
	struct io_uring ring;
	int ret;

	ret = io_uring_queue_init(4, &ring, IORING_SETUP_SQE128 | IORING_SETUP_CQE32);
	if (ret)
		return ret;
	sqe = io_uring_get_sqe(&ring);
	if (!sqe)
		abort();
	memset(sqe, 0, 2 * sizeof(*sqe));
	sqe->opcode = IORING_OP_URING_CMD;
	sqe->fd = bad->ctrl.fd;
	sqe->cmd_op = NVME_URING_CMD_ADMIN;
	memcpy(sqe->cmd, &cmd, sizeof(cmd));
	ret = io_uring_submit(&ring);
	if (ret > 0)
		ret = io_uring_wait_cqe(&ring, &cqe);
	if (!ret)
		ret = cqe->res;
	io_uring_queue_exit(&ring);
	return ret;
}

TEST_F(bad_namespaces, are_not_changed_under_peers)
{
	static const uint8_t opcodes[] = {
		ADMIN_FORMAT, ADMIN_SANITIZE, ADMIN_NS_MANAGE, ADMIN_NS_ATTACH,
	};
	int log = np_log_open();
	struct np_qp qp;
	uint32_t i;

	ASSERT_LE(0, log);
	ASSERT_EQ(0, np_qp_open(&qp, self->bad.ctrl.fd, ENTRIES));
	for (i = 0; i < sizeof(opcodes); i++) {
		ASSERT_EQ(0, np_bad_rule(&self->bad, i, opcodes[i], BADCTRL_LIE, 0, BADCTRL_EVERY));
		EXPECT_EQ(-EBUSY, admin(&self->bad, opcodes[i]));
		EXPECT_EQ(-EBUSY, admin_by_uring(&self->bad, opcodes[i]));
		EXPECT_EQ(0, np_bad_hits(&self->bad, i));
	}
	/* What helps is said. */
	EXPECT_EQ(0, np_log_wait(log, "close the peers' queue pairs", NP_TIMEOUT_MS));
	close(log);
	EXPECT_EQ(0, np_bad_ask(&self->bad, 0));
	np_qp_close(&qp);
	for (i = 0; i < sizeof(opcodes); i++) {
		EXPECT_EQ(0, admin(&self->bad, opcodes[i]));
		EXPECT_EQ(0, admin_by_uring(&self->bad, opcodes[i]));
		EXPECT_EQ(2, np_bad_hits(&self->bad, i));
	}
	EXPECT_EQ(self->generation, np_bad_generation(&self->bad));
}

static void *format(void *argument)
{
	return (void *)(intptr_t)admin(argument, ADMIN_FORMAT);
}

/* The other way round: who comes during a command finds the door closed. */
TEST_F(bad_namespaces, that_change_take_no_peers)
{
	struct nvme_peer_qp_create create;
	pthread_t thread;
	void *result;

	ASSERT_EQ(0, np_bad_rule(&self->bad, 0, ADMIN_FORMAT, BADCTRL_HOLD, 0, 1));
	ASSERT_EQ(0, pthread_create(&thread, NULL, format, &self->bad));
	ASSERT_EQ(0, np_bad_wait_word(&self->bad, BADCTRL_HELD, 1));
	EXPECT_EQ(-EBUSY, np_qp_create(self->bad.ctrl.fd, ENTRIES, &create));
	EXPECT_EQ(0, np_bad_set(&self->bad, BADCTRL_RELEASE, 1));
	pthread_join(thread, &result);
	EXPECT_EQ(NULL, result);
	EXPECT_EQ(0, np_qp_try(self->bad.ctrl.fd, NP_TIMEOUT_MS));
}

/*
 * The look at namespaces that follows a command meets a reset, which ends the question that
 * is under way; the one about the next namespace waits for the reset, and may.
 */
TEST_F_TIMEOUT(bad_namespaces, are_looked_at_during_a_reset, 60)
{
	pthread_t thread;
	void *result;

	ASSERT_EQ(0, np_bad_set(&self->bad, BADCTRL_ACTIVE, 3));
	ASSERT_EQ(0, np_bad_set(&self->bad, BADCTRL_EVENT, EVENT_NAMESPACES));
	ASSERT_EQ(0, np_bad_wait_namespaces(&self->bad, 2));
	ASSERT_EQ(0, np_bad_rule(&self->bad, 0, ADMIN_FORMAT, BADCTRL_LIE, 0, 1));
	ASSERT_EQ(0, np_bad_rule(&self->bad, 1, NP_ADMIN_IDENTIFY, BADCTRL_HOLD, 0, 1));
	ASSERT_EQ(0, pthread_create(&thread, NULL, format, &self->bad));
	ASSERT_EQ(0, np_bad_wait_word(&self->bad, BADCTRL_HELD, 1));
	EXPECT_EQ(0, np_ioctl(self->bad.ctrl.fd, NVME_IOCTL_RESET, NULL));
	pthread_join(thread, &result);
	EXPECT_EQ(NULL, result);
	EXPECT_EQ(self->generation + 1, np_bad_generation(&self->bad));
	EXPECT_EQ(0, np_bad_ask(&self->bad, 0));
}

/* --- from outside ----------------------------------------------------------------- */

static int set_bytes(struct np_bad *bad, uint32_t offset, uint64_t value, unsigned int size)
{
	int ret = 0;

	for (; size-- && !ret; value >>= 8)
		ret = np_bad_identify(bad, 0, offset++, (uint8_t)value);
	return ret;
}

/* The controller says that something changed; returns when it was looked at. */
static int tell(struct np_bad *bad)
{
	int ret = np_bad_rule(bad, 7, NP_ADMIN_ASYNC_EVENT, BADCTRL_COUNT, 0, BADCTRL_EVERY);

	ret = ret ?: np_bad_set(bad, BADCTRL_EVENT, EVENT_NAMESPACES);
	/* It asks for the next one after it has begun to look. */
	ret = ret ?: np_bad_wait_word(bad, BADCTRL_RULE_WORD(7, BADCTRL_RULE_HITS), 1);
	np_sleep_ms(500);
	return ret;
}

static int wait_stopped(const struct nvme_peer_status *status)
{
	int64_t end = np_now_ms() + NP_TIMEOUT_MS;

	while (status->state != NVME_PEER_QP_FAILED) {
		if (np_now_ms() > end)
			return -ETIMEDOUT;
		np_sleep_ms(10);
	}
	return 0;
}

/* Pairs were stopped once, and new ones work on what there is now. */
static void expect_stopped(struct __test_metadata *_metadata, FIXTURE_DATA(bad_namespaces) *self,
			   struct np_qp *qp)
{
	EXPECT_EQ(0, wait_stopped(qp->status.at));
	np_qp_close(qp);
	EXPECT_EQ(self->generation + 1, np_bad_wait_state(&self->bad, NVME_PEER_CTRL_LIVE));
	EXPECT_EQ(0, np_qp_try(self->bad.ctrl.fd, NP_TIMEOUT_MS));
	np_sleep_ms(500);
	EXPECT_EQ(self->generation + 1, np_bad_generation(&self->bad));
}

TEST_F(bad_namespaces, with_other_blocks_stop_peers)
{
	struct np_qp qp;
	int size;

	ASSERT_EQ(0, np_qp_open(&qp, self->bad.ctrl.fd, ENTRIES));
	ASSERT_EQ(0, set_bytes(&self->bad, NS_FORMAT, 12 << 16, 4));
	ASSERT_EQ(0, set_bytes(&self->bad, NS_BLOCKS, BADCTRL_NAMESPACE_BYTES >> 12, 8));
	ASSERT_EQ(0, tell(&self->bad));
	expect_stopped(_metadata, self, &qp);
	ASSERT_EQ(0, ioctl(self->bad.disk, BLKSSZGET, &size));
	EXPECT_EQ(4096, size);
	EXPECT_EQ(0, np_bad_read_disk(&self->bad, self->bytes));
}

/* The same bytes of data in each block, and yet not what commands were built for. */
TEST_F(bad_namespaces, with_other_metadata_stop_peers)
{
	static const struct {
		const char *what;
		uint32_t offset;
		uint64_t value;
		unsigned int size;
	} changes[] = {
		{ "there is some", NS_FORMAT, BLOCK_SHIFT << 16 | 8, 4 },
		{ "it follows its block", NS_FORMATTED, 0x10, 1 },
		{ "it is protection information", NS_PROTECTION, 1, 1 },
	};
	struct np_qp qp;
	size_t i;

	for (i = 0; i < sizeof(changes) / sizeof(changes[0]); i++) {
		TH_LOG("%s", changes[i].what);
		ASSERT_EQ(0, np_qp_open(&qp, self->bad.ctrl.fd, ENTRIES));
		ASSERT_EQ(0, set_bytes(&self->bad, changes[i].offset, changes[i].value,
				       changes[i].size));
		ASSERT_EQ(0, tell(&self->bad));
		expect_stopped(_metadata, self, &qp);
		self->generation++;
	}
}

TEST_F(bad_namespaces, that_go_stop_peers)
{
	struct np_qp qp;

	ASSERT_EQ(0, np_qp_open(&qp, self->bad.ctrl.fd, ENTRIES));
	ASSERT_EQ(0, np_bad_set(&self->bad, BADCTRL_ACTIVE, 2));
	ASSERT_EQ(0, np_bad_set(&self->bad, BADCTRL_EVENT, EVENT_NAMESPACES));
	EXPECT_EQ(0, wait_stopped(qp.status.at));
	np_qp_close(&qp);
	EXPECT_EQ(self->generation + 1, np_bad_wait_state(&self->bad, NVME_PEER_CTRL_LIVE));
	EXPECT_EQ(0, np_bad_wait_namespaces(&self->bad, 1));
}

/* The blocks are as they were. */
TEST_F(bad_namespaces, with_other_limits_have_them)
{
	unsigned int size;

	ASSERT_EQ(0, ioctl(self->bad.disk, BLKIOOPT, &size));
	EXPECT_EQ(0, size);
	ASSERT_EQ(0, np_bad_identify(&self->bad, 0, NS_FEATURES, FEATURE_OPTIMAL_IO));
	ASSERT_EQ(0, np_bad_identify(&self->bad, 0, NS_NOWS, 15));
	ASSERT_EQ(0, tell(&self->bad));
	ASSERT_EQ(0, ioctl(self->bad.disk, BLKIOOPT, &size));
	EXPECT_EQ(16U << BLOCK_SHIFT, size);
}

static void *read_block(void *argument)
{
	static uint8_t bytes[NP_PAGE] __attribute__((aligned(NP_PAGE)));

	return (void *)(intptr_t)np_bad_read(argument, bytes, 0);
}

/* A command may take its time, and nobody has to wait for it because of a look. */
TEST_F(bad_namespaces, that_stay_are_looked_at_beside_commands)
{
	pthread_t thread;
	void *result;

	ASSERT_EQ(0, np_bad_rule(&self->bad, 0, NP_IO_READ, BADCTRL_HOLD, 0, 1));
	ASSERT_EQ(0, np_bad_rule(&self->bad, 1, ADMIN_NS_ATTACH, BADCTRL_LIE, 0, 1));
	ASSERT_EQ(0, pthread_create(&thread, NULL, read_block, &self->bad));
	ASSERT_EQ(0, np_bad_wait_word(&self->bad, BADCTRL_HELD, 1));
	/* Ends when namespaces have been looked at. */
	EXPECT_EQ(0, admin(&self->bad, ADMIN_NS_ATTACH));
	EXPECT_EQ(0, np_bad_read(&self->bad, self->bytes, 0));
	EXPECT_EQ(1, np_bad_get(&self->bad, BADCTRL_HELD));
	EXPECT_EQ(0, np_bad_set(&self->bad, BADCTRL_RELEASE, 1));
	pthread_join(thread, &result);
	EXPECT_EQ(NULL, result);
}

TEST_F(bad_namespaces, that_stay_or_come_leave_peers_alone)
{
	struct np_command flush = { .opcode = NP_CMD_FLUSH, .nsid = 1 };
	struct np_qp qp;

	ASSERT_EQ(0, np_qp_open(&qp, self->bad.ctrl.fd, ENTRIES));
	ASSERT_EQ(0, tell(&self->bad));
	ASSERT_EQ(0, np_bad_set(&self->bad, BADCTRL_ACTIVE, 3));
	ASSERT_EQ(0, tell(&self->bad));
	EXPECT_EQ(0, np_bad_wait_namespaces(&self->bad, 2));
	EXPECT_EQ(0, np_qp_run(&qp, &flush, NP_TIMEOUT_MS));
	np_qp_close(&qp);
	EXPECT_EQ(self->generation, np_bad_generation(&self->bad));
}

/* --- another one under the same number ---------------------------------------------- */

static unsigned long long sequence(struct np_bad *bad)
{
	char path[128], text[64];

	snprintf(path, sizeof(path), "/sys/block/nvmep%dn1/diskseq", bad->ctrl.instance);
	return np_read_file(path, text, sizeof(text)) ? 0 : strtoull(text, NULL, 10);
}

static unsigned long long wait_new_disk(struct np_bad *bad, unsigned long long old)
{
	int64_t end = np_now_ms() + NP_TIMEOUT_MS;
	unsigned long long now;

	do {
		np_sleep_ms(20);
		now = sequence(bad);
	} while ((now == old || !now) && np_now_ms() < end);
	return now;
}

/* What was open belongs to the namespace that is gone. */
static void expect_replaced(struct __test_metadata *_metadata, FIXTURE_DATA(bad_namespaces) *self,
			    unsigned int cns, uint32_t offset)
{
	unsigned long long before = sequence(&self->bad);

	ASSERT_NE(0, before);
	EXPECT_EQ(0, np_bad_read_disk(&self->bad, self->bytes));
	ASSERT_EQ(0, tell(&self->bad));
	EXPECT_EQ(before, sequence(&self->bad));
	ASSERT_EQ(0, np_bad_identify(&self->bad, cns, offset, 0x77));
	ASSERT_EQ(0, tell(&self->bad));
	EXPECT_NE(before, wait_new_disk(&self->bad, before));
	EXPECT_EQ(0, np_bad_wait_namespaces(&self->bad, 1));
	EXPECT_GT(0, np_bad_read_disk(&self->bad, self->bytes));
	EXPECT_GT(0, np_bad_read(&self->bad, self->bytes, 0));
	EXPECT_EQ(self->generation, np_bad_generation(&self->bad));
}

TEST_F(bad_namespaces, with_another_nguid_are_others)
{
	expect_replaced(_metadata, self, 0, NS_NGUID + 15);
}

TEST_F(bad_namespaces, with_another_eui64_are_others)
{
	expect_replaced(_metadata, self, 0, NS_EUI64);
}

TEST_F(bad_namespaces, with_another_uuid_are_others)
{
	expect_replaced(_metadata, self, 3, DESCRIPTORS_UUID);
}

TEST_F(bad_namespaces, that_are_others_stop_peers)
{
	struct np_qp qp;

	ASSERT_EQ(0, np_qp_open(&qp, self->bad.ctrl.fd, ENTRIES));
	ASSERT_EQ(0, np_bad_identify(&self->bad, 0, NS_NGUID, 0x77));
	ASSERT_EQ(0, tell(&self->bad));
	expect_stopped(_metadata, self, &qp);
}

/* The controller answers @count times who it is, then once that something went wrong inside. */
static int fail_identify(struct np_bad *bad, uint32_t count)
{
	return np_bad_rule(bad, 0, NP_ADMIN_IDENTIFY, BADCTRL_COUNT, 0, count) ?:
	       np_bad_rule(bad, 1, NP_ADMIN_IDENTIFY, BADCTRL_STATUS, NP_STATUS_INTERNAL, 1);
}

/* A Format whose blocks cannot be asked for: nothing is sent until the next look. */
TEST_F(bad_namespaces, that_cannot_say_their_format_are_asked_again)
{
	ASSERT_EQ(0, np_bad_rule(&self->bad, 2, ADMIN_FORMAT, BADCTRL_LIE, 0, 1));
	ASSERT_EQ(0, fail_identify(&self->bad, 0));
	EXPECT_EQ(0, admin(&self->bad, ADMIN_FORMAT));
	EXPECT_EQ(1, np_bad_hits(&self->bad, 1));
	EXPECT_EQ(0, np_bad_read(&self->bad, self->bytes, 0));
	EXPECT_EQ(0, np_bad_read_disk(&self->bad, self->bytes));
}

/* After the list its descriptors are asked for. */
TEST_F(bad_namespaces, that_cannot_say_who_they_are_come_later)
{
	ASSERT_EQ(0, np_bad_set(&self->bad, BADCTRL_ACTIVE, 0));
	ASSERT_EQ(0, np_bad_set(&self->bad, BADCTRL_EVENT, EVENT_NAMESPACES));
	ASSERT_EQ(0, np_bad_wait_namespaces(&self->bad, 0));
	ASSERT_EQ(0, np_bad_set(&self->bad, BADCTRL_ACTIVE, 1));
	ASSERT_EQ(0, fail_identify(&self->bad, 1));
	ASSERT_EQ(0, tell(&self->bad));
	EXPECT_EQ(1, np_bad_hits(&self->bad, 1));
	EXPECT_EQ(0, sequence(&self->bad));
	ASSERT_EQ(0, tell(&self->bad));
	EXPECT_EQ(0, np_bad_wait_namespaces(&self->bad, 1));
}

TEST_F(bad_namespaces, that_cannot_say_so_now_are_still_the_same)
{
	unsigned long long before = sequence(&self->bad);

	ASSERT_EQ(0, fail_identify(&self->bad, 1));
	ASSERT_EQ(0, tell(&self->bad));
	EXPECT_EQ(1, np_bad_hits(&self->bad, 1));
	EXPECT_EQ(before, sequence(&self->bad));
	EXPECT_EQ(0, np_bad_read_disk(&self->bad, self->bytes));
}

TEST_HARNESS_MAIN
