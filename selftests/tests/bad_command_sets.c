// SPDX-License-Identifier: GPL-2.0-only
/*
 * Namespaces of other command sets than NVM: a node for passthrough, and nothing that is
 * made for blocks.
 *
 * kernels: 6.1 debug
 * long-kernels: 6.1 6.12 7 debug
 * iommu: on
 */
#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "badknob.h"
#include "kselftest_harness.h"
#include "lent.h"

#define REG_CAP_HIGH	(BADCTRL_REGISTERS + 0x04)
#define REG_CC		(BADCTRL_REGISTERS + 0x14)
/* CAP.CSS: there are other sets than NVM; CC.CSS: all of them are wanted. */
#define CAP_OTHER_SETS	(1U << 11)
#define CC_SETS(cc)	((cc) >> 4 & 7)
#define CC_ALL_SETS	6

/* Byte of Identify Controller, and its bit for the log of commands and effects. */
#define CTRL_LPA	261
#define LPA_EFFECTS	2
/* Types of descriptors, base specification 5.1.13.2.4; where the command set comes first. */
#define DESCRIPTOR_EUI64	1
#define DESCRIPTOR_NGUID	2
#define DESCRIPTOR_SET	4
#define AT_SET		4
#define AT_NEXT		5
#define KEY_VALUE	1

FIXTURE(bad_command_sets)
{
	struct np_bad bad;
	uint8_t *bytes;
};

FIXTURE_SETUP(bad_command_sets)
{
	if (np_bad_open(&self->bad) == -ENOENT)
		SKIP(return, "no misbehaving controller in this guest");
	ASSERT_EQ(0, posix_memalign((void **)&self->bytes, NP_PAGE, NP_PAGE));
}

FIXTURE_TEARDOWN(bad_command_sets)
{
	if (!self->bad.address[0])
		return;
	EXPECT_EQ(0, np_bad_close(&self->bad));
	free(self->bytes);
}

/* One descriptor: type, length, and a value of which the first byte is not 0. */
static int describe(struct np_bad *bad, uint32_t at, uint8_t type, uint8_t length, uint8_t value)
{
	const uint8_t head[] = { type, length, 0, 0, value };
	int ret = 0;
	uint32_t i;

	for (i = 0; i < 4U + length && !ret; i++)
		ret = np_bad_identify(bad, 3, at + i, i < sizeof(head) ? head[i] : 0);
	return ret;
}

/* All that is known of the namespace: it is not asked for what the NVM command set has. */
static int bind_with(struct np_bad *bad, uint8_t type, uint8_t length)
{
	uint32_t cap = np_bad_get(bad, REG_CAP_HIGH);

	return np_bad_set(bad, REG_CAP_HIGH, cap | CAP_OTHER_SETS) ?:
	       np_bad_set(bad, BADCTRL_REFUSED, 1U << 0) ?:
	       describe(bad, 0, DESCRIPTOR_SET, 1, KEY_VALUE) ?:
	       describe(bad, AT_NEXT, type, length, 0x99) ?:
	       np_bad_identify(bad, 3, AT_NEXT + 4 + length + 1, 0) ?: np_bad_bind(bad, 1);
}

/* An attribute of the namespace, with its line's end; empty where there is none. */
static const char *attribute(struct np_bad *bad, const char *name)
{
	static char text[512];
	char path[128];

	snprintf(path, sizeof(path), "/sys/block/nvmep%dn1/%s", bad->ctrl.instance, name);
	return np_read_file(path, text, sizeof(text)) ? "" : text;
}

TEST_F(bad_command_sets, have_a_node_and_no_blocks)
{
	ASSERT_EQ(0, bind_with(&self->bad, DESCRIPTOR_NGUID, 16));
	EXPECT_EQ(CC_ALL_SETS, CC_SETS(np_bad_get(&self->bad, REG_CC)));
	EXPECT_STREQ("1\n", attribute(&self->bad, "csi"));
	EXPECT_STREQ("eui.99000000000000000000000000000000\n", attribute(&self->bad, "wwid"));
	EXPECT_STREQ("0\n", attribute(&self->bad, "size"));
	EXPECT_STREQ("", attribute(&self->bad, "nuse"));
	EXPECT_LE(0, self->bad.generic);
}

TEST_F(bad_command_sets, have_the_name_that_they_have)
{
	ASSERT_EQ(0, bind_with(&self->bad, DESCRIPTOR_EUI64, 8));
	EXPECT_STREQ("eui.9900000000000000\n", attribute(&self->bad, "wwid"));
}

/* Who knows NVM only is not told of more. */
TEST_F(bad_command_sets, are_chosen_where_there_are_some)
{
	ASSERT_EQ(0, np_bad_bind(&self->bad, 1));
	EXPECT_EQ(0, CC_SETS(np_bad_get(&self->bad, REG_CC)));
	EXPECT_STREQ("0\n", attribute(&self->bad, "csi"));
}

/* One of another command set is another namespace. */
TEST_F(bad_command_sets, do_not_change)
{
	int64_t end = np_now_ms() + NP_TIMEOUT_MS;

	ASSERT_EQ(0, bind_with(&self->bad, DESCRIPTOR_NGUID, 16));
	ASSERT_EQ(0, np_bad_identify(&self->bad, 3, AT_SET, KEY_VALUE + 1));
	ASSERT_EQ(0, np_bad_set(&self->bad, BADCTRL_EVENT, EVENT_NAMESPACES));
	while (strcmp("2\n", attribute(&self->bad, "csi")) && np_now_ms() < end)
		np_sleep_ms(20);
	EXPECT_STREQ("2\n", attribute(&self->bad, "csi"));
}

/* The opcode of a read, with what would be a length there. */
static int retrieve(struct np_bad *bad, uint8_t *bytes)
{
	struct nvme_passthru_cmd cmd = {
		.opcode = NP_CMD_READ,
		.nsid = 1,
		.addr = (uintptr_t)bytes,
		.data_len = NP_BLOCK,
		.cdw12 = 0xffff,
	};

	return np_ioctl(bad->generic, NVME_IOCTL_IO_CMD, &cmd);
}

/* 0 if it is refused for want of a right. */
static int retrieve_without_capabilities(struct np_bad *bad, uint8_t *bytes)
{
	pid_t child = fork();
	int status;

	if (!child)
		_exit(np_drop_capabilities() || retrieve(bad, bytes) != -EACCES);
	return child < 0 || waitpid(child, &status, 0) != child ? -1 : status;
}

/* Nobody knows how long their data are but, perhaps, the administrator. */
TEST_F(bad_command_sets, have_commands_for_the_administrator)
{
	struct nvme_user_io io = { .opcode = NP_CMD_READ, .addr = (uintptr_t)self->bytes };

	ASSERT_EQ(0, np_bad_identify(&self->bad, 1, CTRL_LPA, LPA_EFFECTS));
	ASSERT_EQ(0, np_bad_set(&self->bad, BADCTRL_EFFECTS(NP_CMD_READ), NP_EFFECT_SUPPORTED));
	ASSERT_EQ(0, bind_with(&self->bad, DESCRIPTOR_NGUID, 16));
	ASSERT_EQ(0, np_bad_rule(&self->bad, 0, NP_IO_READ, BADCTRL_LIE, 0, BADCTRL_EVERY));
	EXPECT_EQ(0, retrieve(&self->bad, self->bytes));
	EXPECT_EQ(0, retrieve_without_capabilities(&self->bad, self->bytes));
	EXPECT_EQ(-EINVAL, np_ioctl(self->bad.generic, NVME_IOCTL_SUBMIT_IO, &io));
	EXPECT_EQ(1, np_bad_hits(&self->bad, 0));
}

/* What reads and writes buffers knows opcodes of the NVM command set. */
TEST_F(bad_command_sets, do_not_reach_buffers)
{
	struct nvme_peer_uring_io_vec vec = { .opcode = NP_CMD_READ, .nsid = 1, .count = 1 };
	struct nvme_peer_io_range range = { .blocks = 1 };
	struct nvme_peer_uring_io io;
	struct io_uring ring;
	struct np_lent lent;

	ASSERT_EQ(0, bind_with(&self->bad, DESCRIPTOR_NGUID, 16));
	ASSERT_EQ(0, np_lend(&lent, self->bad.ctrl.fd, 1, 0));
	ASSERT_EQ(0, io_uring_queue_init(2, &ring, IORING_SETUP_SQE128 | IORING_SETUP_CQE32));
	io = np_transfer(NP_CMD_READ, &lent, 0, NP_PAGE);
	EXPECT_EQ(-EOPNOTSUPP, np_transfer_once(&ring, self->bad.ctrl.fd, &io));
	range.handle = lent.handle;
	vec.ranges = (uintptr_t)&range;
	np_ranges_queue(&ring, self->bad.ctrl.fd, &vec);
	EXPECT_EQ(-EOPNOTSUPP, np_transfer_collect(&ring, NULL));
	io_uring_queue_exit(&ring);
	EXPECT_EQ(0, np_release(self->bad.ctrl.fd, lent.handle));
	np_take_back(&lent);
}

static void *format(void *bad)
{
	struct nvme_admin_cmd cmd = { .opcode = NP_ADMIN_FORMAT, .nsid = 1 };

	return (void *)(intptr_t)np_admin(((struct np_bad *)bad)->ctrl.fd, &cmd);
}

static void *retrieve_nothing(void *bad)
{
	static uint8_t bytes[NP_PAGE] __attribute__((aligned(NP_PAGE)));

	return (void *)(intptr_t)retrieve(bad, bytes);
}

/* A Format leaves nothing behind that they would have to be built anew for. */
TEST_F(bad_command_sets, have_commands_that_outlast_a_format)
{
	pthread_t formatting, waiting;
	void *formatted, *retrieved;

	ASSERT_EQ(0, bind_with(&self->bad, DESCRIPTOR_NGUID, 16));
	ASSERT_EQ(0, np_bad_rule(&self->bad, 0, NP_IO_READ, BADCTRL_LIE, 0, BADCTRL_EVERY));
	ASSERT_EQ(0, np_bad_rule(&self->bad, 1, NP_ADMIN_FORMAT, BADCTRL_HOLD, 0, 1));
	ASSERT_EQ(0, pthread_create(&formatting, NULL, format, &self->bad));
	ASSERT_EQ(0, np_bad_wait_word(&self->bad, BADCTRL_HELD, 1));
	ASSERT_EQ(0, pthread_create(&waiting, NULL, retrieve_nothing, &self->bad));
	np_sleep_ms(100);
	EXPECT_EQ(0, np_bad_hits(&self->bad, 0));
	ASSERT_EQ(0, np_bad_set(&self->bad, BADCTRL_RELEASE, 1));
	pthread_join(waiting, &retrieved);
	pthread_join(formatting, &formatted);
	EXPECT_EQ(NULL, retrieved);
	EXPECT_EQ(NULL, formatted);
}

TEST_HARNESS_MAIN
