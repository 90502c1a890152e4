// SPDX-License-Identifier: GPL-2.0-only
/*
 * Namespaces of command sets other than NVM: they have a generic node for passthrough and
 * no block device. Unprivileged users may send commands whose data length is known: those to
 * zoned namespaces.
 *
 * kernels: 6.1 7
 * long-kernels: 6.1 6.12 7 debug
 * iommu: on
 */
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "npbad.h"
#include "kselftest_harness.h"
#include "imported.h"
#include "tenant.h"

#define REG_CAP_HIGH	(BADCTRL_REGISTERS + 0x04)
#define REG_CC		(BADCTRL_REGISTERS + 0x14)
/* CAP.CSS: other I/O command sets are supported; CC.CSS: all of them are selected. */
#define CAP_OTHER_SETS	(1U << 11)
#define CC_SETS(cc)	((cc) >> 4 & 7)
#define CC_ALL_SETS	6

/*
 * Offset of LPA in Identify Controller, and its bit for the Commands Supported and
 * Effects log.
 */
#define CTRL_LPA	261
#define LPA_EFFECTS	2
/*
 * Types of namespace identification descriptors (base specification 5.1.13.2.4). The
 * command set identifier comes first.
 */
#define DESCRIPTOR_EUI64	1
#define DESCRIPTOR_NGUID	2
#define DESCRIPTOR_SET	4
#define AT_SET		4
#define AT_NEXT		5
#define KEY_VALUE	1
#define SET_UNKNOWN	3

FIXTURE(bad_command_sets)
{
	struct np_bad bad;
	uint8_t *bytes;
};

FIXTURE_SETUP(bad_command_sets)
{
	if (np_bad_open(&self->bad) == -ENOENT)
		SKIP(return, "no badctrl in this guest");
	ASSERT_EQ(0, posix_memalign((void **)&self->bytes, NP_PAGE, NP_PAGE));
}

FIXTURE_TEARDOWN(bad_command_sets)
{
	if (!self->bad.address[0])
		return;
	EXPECT_EQ(0, np_bad_close(&self->bad));
	free(self->bytes);
}

/* One descriptor: type, length, and a value whose first byte is not 0. */
static int describe(struct np_bad *bad, uint32_t at, uint8_t type, uint8_t length, uint8_t value)
{
	const uint8_t head[] = { type, length, 0, 0, value };
	int ret = 0;
	uint32_t i;

	for (i = 0; i < 4U + length && !ret; i++)
		ret = np_bad_identify(bad, NVME_CNS_DESCRIPTORS, at + i,
				      i < sizeof(head) ? head[i] : 0);
	return ret;
}

/*
 * The namespace is identified by descriptors only: Identify Namespace of the NVM command
 * set is not sent.
 */
static int bind_with(struct np_bad *bad, uint8_t type, uint8_t length)
{
	uint32_t cap = np_bad_get(bad, REG_CAP_HIGH);

	return np_bad_set(bad, REG_CAP_HIGH, cap | CAP_OTHER_SETS) ?:
	       np_bad_set(bad, BADCTRL_REFUSED, 1U << NVME_CNS_NAMESPACE) ?:
	       describe(bad, 0, DESCRIPTOR_SET, 1, KEY_VALUE) ?:
	       describe(bad, AT_NEXT, type, length, 0x99) ?:
	       np_bad_identify(bad, NVME_CNS_DESCRIPTORS, AT_NEXT + 4 + length + 1, 0) ?:
	       np_bad_bind(bad, 1);
}

/*
 * An attribute of the namespace with its newline; empty if the attribute does not exist.
 */
static const char *attribute(struct np_bad *bad, const char *name)
{
	static char text[512];
	char path[128];

	snprintf(path, sizeof(path), "/sys/block/nvmep%dn1/%s", bad->ctrl.instance, name);
	return np_read_file(path, text, sizeof(text)) ? "" : text;
}

TEST_F(bad_command_sets, generic_node_without_block_device)
{
	ASSERT_EQ(0, bind_with(&self->bad, DESCRIPTOR_NGUID, 16));
	EXPECT_EQ(CC_ALL_SETS, CC_SETS(np_bad_get(&self->bad, REG_CC)));
	EXPECT_STREQ("1\n", attribute(&self->bad, "csi"));
	EXPECT_STREQ("eui.99000000000000000000000000000000\n", attribute(&self->bad, "wwid"));
	EXPECT_STREQ("0\n", attribute(&self->bad, "size"));
	EXPECT_STREQ("", attribute(&self->bad, "nuse"));
	EXPECT_LE(0, self->bad.generic);
}

TEST_F(bad_command_sets, identifier_from_descriptor_list)
{
	ASSERT_EQ(0, bind_with(&self->bad, DESCRIPTOR_EUI64, 8));
	EXPECT_STREQ("eui.9900000000000000\n", attribute(&self->bad, "wwid"));
}

/* CC.CSS selects the NVM command set alone if the controller offers no other. */
TEST_F(bad_command_sets, cc_css_is_nvm_without_other_sets)
{
	ASSERT_EQ(0, np_bad_bind(&self->bad, 1));
	EXPECT_EQ(0, CC_SETS(np_bad_get(&self->bad, REG_CC)));
	EXPECT_STREQ("0\n", attribute(&self->bad, "csi"));
}

/* A namespace ID that changes its command set is a new namespace. */
TEST_F(bad_command_sets, changed_command_set_is_new_namespace)
{
	int64_t end = np_now_ms() + NP_TIMEOUT_MS;

	ASSERT_EQ(0, bind_with(&self->bad, DESCRIPTOR_NGUID, 16));
	ASSERT_EQ(0, np_bad_identify(&self->bad, NVME_CNS_DESCRIPTORS, AT_SET, SET_UNKNOWN));
	ASSERT_EQ(0, np_bad_set(&self->bad, BADCTRL_EVENT, EVENT_NAMESPACES));
	while (strcmp("3\n", attribute(&self->bad, "csi")) && np_now_ms() < end)
		np_sleep_ms(20);
	EXPECT_STREQ("3\n", attribute(&self->bad, "csi"));
}

/* Only the list has the command set. If it cannot be read, the namespace stays what it was. */
TEST_F(bad_command_sets, refused_descriptor_list_keeps_command_set)
{
	uint32_t cap = np_bad_get(&self->bad, REG_CAP_HIGH);

	ASSERT_EQ(0, np_bad_set(&self->bad, REG_CAP_HIGH, cap | CAP_OTHER_SETS));
	ASSERT_EQ(0, describe(&self->bad, 0, DESCRIPTOR_SET, 1, KEY_VALUE));
	ASSERT_EQ(0, np_bad_identify(&self->bad, NVME_CNS_DESCRIPTORS, AT_NEXT + 1, 0));
	ASSERT_EQ(0, np_bad_bind(&self->bad, 1));
	EXPECT_STREQ("1\n", attribute(&self->bad, "csi"));
	ASSERT_EQ(0, np_bad_set(&self->bad, BADCTRL_REFUSED, 1U << NVME_CNS_DESCRIPTORS));
	ASSERT_EQ(0, np_bad_rule(&self->bad, 0, NVME_ADMIN_NAMESPACE_ATTACH, BADCTRL_LIE, 0, 1));
	ASSERT_EQ(0, np_admin(self->bad.ctrl.fd, &(struct nvme_admin_cmd){
		.opcode = NVME_ADMIN_NAMESPACE_ATTACH,
	}));
	EXPECT_STREQ("1\n", attribute(&self->bad, "csi"));
}

/*
 * A command with the opcode of a read; its dword 12 would be a length in the NVM command
 * set.
 */
static int retrieve(struct np_bad *bad, uint8_t *bytes)
{
	struct nvme_passthru_cmd cmd = {
		.opcode = NVMEPEER_OP_READ,
		.nsid = 1,
		.addr = (uintptr_t)bytes,
		.data_len = NP_BLOCK,
		.cdw12 = 0xffff,
	};

	return np_ioctl(bad->generic, NVME_IOCTL_IO_CMD, &cmd);
}

/* Returns 0 if the command is refused with EACCES. */
static int retrieve_without_capabilities(struct np_bad *bad, uint8_t *bytes)
{
	pid_t child = fork();
	int status;

	if (!child)
		_exit(np_drop_capabilities() || retrieve(bad, bytes) != -EACCES);
	return child < 0 || waitpid(child, &status, 0) != child ? -1 : status;
}

/*
 * The driver has no data length for these commands, so they need CAP_SYS_ADMIN.
 */
TEST_F(bad_command_sets, unknown_commands_need_cap_sys_admin)
{
	struct nvme_user_io io = { .opcode = NVMEPEER_OP_READ, .addr = (uintptr_t)self->bytes };

	ASSERT_EQ(0, np_bad_identify(&self->bad, NVME_CNS_CONTROLLER, CTRL_LPA, LPA_EFFECTS));
	ASSERT_EQ(0, np_bad_set(&self->bad, BADCTRL_EFFECTS(NVMEPEER_OP_READ),
				NP_EFFECT_SUPPORTED));
	ASSERT_EQ(0, bind_with(&self->bad, DESCRIPTOR_NGUID, 16));
	ASSERT_EQ(0, np_bad_rule(&self->bad, 0, NP_IO_READ, BADCTRL_LIE, 0, BADCTRL_EVERY));
	EXPECT_EQ(0, retrieve(&self->bad, self->bytes));
	EXPECT_EQ(0, retrieve_without_capabilities(&self->bad, self->bytes));
	EXPECT_EQ(-EINVAL, np_ioctl(self->bad.generic, NVME_IOCTL_SUBMIT_IO, &io));
	EXPECT_EQ(1, np_bad_hits(&self->bad, 0));
}

/* --- zoned --------------------------------------------------------------------------- */

#define SET_ZONED	2
#define IO_ZONE_SEND	0x79
#define IO_ZONE_RECEIVE	0x7a
#define IO_ZONE_APPEND	0x7d
#define ZONE_EXTENSION	0x10	/* action of Zone Management Send that has data */
/* What an effect covers, and that a command selects a UUID: they forbid nothing. */
#define EFFECTS_HARMLESS	(NP_EFFECT_SUPPORTED | NP_EFFECTS_SCOPE | 1U << 19)

static int bind_zoned(struct np_bad *bad)
{
	static const uint8_t opcodes[] = {
		NVMEPEER_OP_READ, NVMEPEER_OP_WRITE, IO_ZONE_SEND, IO_ZONE_RECEIVE, IO_ZONE_APPEND,
		NVME_IO_VENDOR,
	};
	uint32_t cap = np_bad_get(bad, REG_CAP_HIGH);
	int ret = np_bad_set(bad, REG_CAP_HIGH, cap | CAP_OTHER_SETS) ?:
		  np_bad_identify(bad, NVME_CNS_CONTROLLER, CTRL_LPA, LPA_EFFECTS) ?:
		  np_bad_set(bad, BADCTRL_EFFECTS_SET, SET_ZONED) ?:
		  describe(bad, 0, DESCRIPTOR_SET, 1, SET_ZONED) ?:
		  describe(bad, AT_NEXT, DESCRIPTOR_NGUID, 16, 0x99);
	size_t i;

	for (i = 0; i < sizeof(opcodes) && !ret; i++)
		ret = np_bad_set(bad, BADCTRL_EFFECTS(opcodes[i]), EFFECTS_HARMLESS) ?:
		      np_bad_rule(bad, (unsigned int)i, BADCTRL_ON_IO | opcodes[i], BADCTRL_LIE, 0,
				  BADCTRL_EVERY);
	return ret ?: np_bad_bind(bad, 1);
}

struct zoned_case {
	bool read_only;
	uint8_t opcode;
	uint32_t length;
	uint32_t dword12;
	uint32_t dword13;
	int result;
};

static int send_zoned(int fd, const struct zoned_case *test, uint8_t *bytes)
{
	struct nvme_passthru_cmd cmd = {
		.opcode = test->opcode,
		.nsid = 1,
		.addr = (uintptr_t)bytes,
		.data_len = test->length,
		.cdw12 = test->dword12,
		.cdw13 = test->dword13,
	};

	return np_ioctl(fd, NVME_IOCTL_IO_CMD, &cmd);
}

/* In a child process: 0, or the number of the case with the wrong result. */
static int send_zoned_without_capabilities(struct np_bad *bad, int read_only, uint8_t *bytes)
{
	static const struct zoned_case table[] = {
		{ false, NVMEPEER_OP_READ, NP_BLOCK, 0, 0, 0 },
		{ false, NVMEPEER_OP_READ, NP_BLOCK, 1, 0, -EINVAL },
		{ false, NVMEPEER_OP_WRITE, NP_BLOCK, 0, 0, 0 },
		{ true, NVMEPEER_OP_WRITE, NP_BLOCK, 0, 0, -EACCES },
		{ true, IO_ZONE_RECEIVE, NP_PAGE, NP_PAGE / 4 - 1, 0, 0 },
		{ true, IO_ZONE_RECEIVE, NP_PAGE, NP_PAGE / 4, 0, -EINVAL },
		{ false, IO_ZONE_APPEND, NP_BLOCK, 0, 0, 0 },
		{ false, IO_ZONE_APPEND, NP_BLOCK, 1, 0, -EINVAL },
		{ true, IO_ZONE_APPEND, NP_BLOCK, 0, 0, -EACCES },
		{ false, IO_ZONE_SEND, 0, 0, 1, 0 },
		{ true, IO_ZONE_SEND, 0, 0, 1, -EACCES },
		{ false, IO_ZONE_SEND, NP_BLOCK, 0, ZONE_EXTENSION, -EACCES },
		{ false, IO_ZONE_SEND, 0, 0, ZONE_EXTENSION + 1, 0 },
		{ false, NVME_IO_VENDOR, 0, 0, 0, -EACCES },
		{ false, NVMEPEER_OP_FLUSH, 0, 0, 0, -EACCES },	/* not declared */
	};
	size_t i;

	if (np_drop_capabilities())
		return 100;
	for (i = 0; i < sizeof(table) / sizeof(table[0]); i++)
		if (send_zoned(table[i].read_only ? read_only : bad->generic, &table[i], bytes) !=
		    table[i].result)
			return (int)i + 1;
	return 0;
}

/* The effects log of the zoned command set permits commands, whose lengths are checked. */
TEST_F(bad_command_sets, unprivileged_commands_to_zoned_namespace)
{
	int read_only, status;
	pid_t child;

	ASSERT_EQ(0, bind_zoned(&self->bad));
	EXPECT_STREQ("2\n", attribute(&self->bad, "csi"));
	EXPECT_STREQ("0\n", attribute(&self->bad, "size"));
	read_only = np_open_node(&self->bad.ctrl, "/dev/ngp%dn1", O_RDONLY);
	ASSERT_LE(0, read_only);
	child = fork();
	ASSERT_LE(0, child);
	if (!child)
		_exit(send_zoned_without_capabilities(&self->bad, read_only, self->bytes));
	ASSERT_EQ(child, waitpid(child, &status, 0));
	EXPECT_EQ(0, WEXITSTATUS(status));
	close(read_only);
}

/* A log that the controller refuses permits nothing; SUBMIT_IO uses the format. */
TEST_F(bad_command_sets, zoned_namespace_without_effects_log)
{
	struct nvme_user_io io = { .opcode = NVMEPEER_OP_READ, .addr = (uintptr_t)self->bytes };
	pid_t child;
	int status;

	ASSERT_EQ(0, np_bad_rule(&self->bad, 7, NVME_ADMIN_GET_LOG_PAGE, BADCTRL_STATUS,
				 NVME_STATUS_DNR | NVME_SC_INVALID_FIELD, BADCTRL_EVERY));
	ASSERT_EQ(0, bind_zoned(&self->bad));
	EXPECT_EQ(0, np_ioctl(self->bad.generic, NVME_IOCTL_SUBMIT_IO, &io));
	child = fork();
	ASSERT_LE(0, child);
	if (!child)
		_exit(np_drop_capabilities() || retrieve(&self->bad, self->bytes) != -EACCES);
	ASSERT_EQ(child, waitpid(child, &status, 0));
	EXPECT_EQ(0, status);
}

/* Its write commands have conditions that a mediator does not know. */
TEST_F(bad_command_sets, zoned_namespace_has_no_windows)
{
	uint32_t window;
	struct np_qp qp;

	ASSERT_EQ(0, bind_zoned(&self->bad));
	np_qp_set_mode(NVME_PEER_MODE_MEDIATED);
	ASSERT_EQ(0, np_qp_open(&qp, self->bad.ctrl.fd, 16));
	EXPECT_EQ(-EMEDIUMTYPE, np_window_add(&qp, self->bad.disk, 0, 0, &window));
	np_qp_close(&qp);
	np_qp_set_mode(NVME_PEER_MODE_DIRECT);
}

/* Buffer I/O implements the opcodes of the NVM command set only. */
TEST_F(bad_command_sets, buffer_io_is_refused)
{
	struct nvme_peer_uring_io_vec vec = { .opcode = NVMEPEER_OP_READ, .nsid = 1, .count = 1 };
	struct nvme_peer_io_range range = { .blocks = 1 };
	struct nvme_peer_uring_io io;
	struct io_uring ring;
	struct np_imported buf;

	ASSERT_EQ(0, bind_with(&self->bad, DESCRIPTOR_NGUID, 16));
	ASSERT_EQ(0, np_imported_open(&buf, self->bad.ctrl.fd, 1, 0));
	ASSERT_EQ(0, io_uring_queue_init(2, &ring, IORING_SETUP_SQE128 | IORING_SETUP_CQE32));
	io = np_transfer(NVMEPEER_OP_READ, &buf, 0, NP_PAGE);
	EXPECT_EQ(-EOPNOTSUPP, np_transfer_run(&ring, self->bad.ctrl.fd, &io));
	range.handle = buf.handle;
	vec.ranges = (uintptr_t)&range;
	np_ranges_queue(&ring, self->bad.ctrl.fd, &vec);
	EXPECT_EQ(-EOPNOTSUPP, np_transfer_wait(&ring, NULL));
	io_uring_queue_exit(&ring);
	EXPECT_EQ(0, np_release(self->bad.ctrl.fd, buf.handle));
	np_imported_close(&buf);
}

static void *format(void *bad)
{
	struct nvme_admin_cmd cmd = { .opcode = NVME_ADMIN_FORMAT, .nsid = 1 };

	return (void *)(intptr_t)np_admin(((struct np_bad *)bad)->ctrl.fd, &cmd);
}

static void *retrieve_nothing(void *bad)
{
	static uint8_t bytes[NP_PAGE] __attribute__((aligned(NP_PAGE)));

	return (void *)(intptr_t)retrieve(bad, bytes);
}

/*
 * A Format changes nothing that a command of another command set depends on: the command
 * is sent once the Format has ended.
 */
TEST_F(bad_command_sets, command_waits_for_format)
{
	pthread_t formatting, waiting;
	void *formatted, *retrieved;

	ASSERT_EQ(0, bind_with(&self->bad, DESCRIPTOR_NGUID, 16));
	ASSERT_EQ(0, np_bad_rule(&self->bad, 0, NP_IO_READ, BADCTRL_LIE, 0, BADCTRL_EVERY));
	ASSERT_EQ(0, np_bad_rule(&self->bad, 1, NVME_ADMIN_FORMAT, BADCTRL_HOLD, 0, 1));
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
