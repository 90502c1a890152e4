// SPDX-License-Identifier: GPL-2.0-only
/*
 * Passthrough on badctrl: rights and effects of commands that the controller declares wrongly
 * or not at all, and commands to a controller that the driver has given up.
 *
 * kernels: 6.1 7 debug
 * iommu: on
 */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "npbad.h"
#include "kselftest_harness.h"

/* Asynchronous Event Configuration: the critical warnings of SMART / Health. */
#define EVENTS_CRITICAL	0x1fU

/* Byte offsets in Identify Controller; its bit for the Commands Supported and Effects log. */
#define CTRL_OAES	92
#define CTRL_LPA	261
#define LPA_EFFECTS	2

/* Effects of a command (base specification 5.1.12.1.6). */
#define EFFECT_RELAXED	(1U << 14)	/* CSER */
#define EFFECT_ALONE	(1U << 16)	/* CSE */

#define ADMIN_SECURITY_RECEIVE	0x82
#define ENTRIES		16

FIXTURE(bad_passthru)
{
	struct np_bad bad;
	uint8_t *bytes;
};

FIXTURE_SETUP(bad_passthru)
{
	if (np_bad_open(&self->bad) == -ENOENT)
		SKIP(return, "no badctrl in this guest");
	ASSERT_EQ(0, posix_memalign((void **)&self->bytes, NP_PAGE, NP_PAGE));
	ASSERT_EQ(0, np_bad_identify(&self->bad, NVME_CNS_CONTROLLER, CTRL_LPA, LPA_EFFECTS));
}

FIXTURE_TEARDOWN(bad_passthru)
{
	if (!self->bad.address[0])
		return;
	EXPECT_EQ(0, np_bad_close(&self->bad));
	free(self->bytes);
}

static int send(int generic, uint8_t opcode)
{
	struct nvme_passthru_cmd cmd = { .opcode = opcode, .nsid = 1 };

	return np_ioctl(generic, NVME_IOCTL_IO_CMD, &cmd);
}

/* --- rights ------------------------------------------------------------------------ */

/* In a child process: 0, or the number of the wrong result. */
static int write_without_capabilities(int generic, int read_only)
{
	if (np_drop_capabilities())
		return 1;
	if (send(read_only, NVMEPEER_OP_WRITE_ZEROES) != -EACCES)
		return 2;
	if (send(read_only, NVME_IO_WRITE_UNCORRECTABLE) != -EACCES)
		return 3;
	return send(generic, NVMEPEER_OP_WRITE_ZEROES) ? 4 : 0;
}

/*
 * The opcode of Write Zeroes does not show that the command changes data, and an old
 * controller need not declare it: a file that is open for reading does not allow it.
 */
TEST_F(bad_passthru, undeclared_change_of_data_needs_write_access)
{
	int read_only, status;
	pid_t child;

	ASSERT_EQ(0, np_bad_set(&self->bad, BADCTRL_EFFECTS(NVMEPEER_OP_WRITE_ZEROES),
				NP_EFFECT_SUPPORTED));
	ASSERT_EQ(0, np_bad_set(&self->bad, BADCTRL_EFFECTS(NVME_IO_WRITE_UNCORRECTABLE),
				NP_EFFECT_SUPPORTED));
	ASSERT_EQ(0, np_bad_bind(&self->bad, 1));
	ASSERT_EQ(0, np_bad_rule(&self->bad, 0, BADCTRL_ON_IO | NVMEPEER_OP_WRITE_ZEROES,
				 BADCTRL_COUNT, 0, BADCTRL_EVERY));
	read_only = np_open_node(&self->bad.ctrl, "/dev/ngp%dn1", O_RDONLY);
	ASSERT_LE(0, read_only);
	child = fork();
	ASSERT_LE(0, child);
	if (!child)
		_exit(write_without_capabilities(self->bad.generic, read_only));
	ASSERT_EQ(child, waitpid(child, &status, 0));
	EXPECT_EQ(0, WEXITSTATUS(status));
	EXPECT_EQ(1, np_bad_hits(&self->bad, 0));
	close(read_only);
}

/* --- features ---------------------------------------------------------------------- */

/* Critical warnings, and the notices that the controller has: namespaces and firmware. */
TEST_F(bad_passthru, events_are_enabled)
{
	struct nvme_admin_cmd cmd = {
		.opcode = NVME_ADMIN_GET_FEATURES,
		.cdw10 = NVME_FEATURE_EVENTS,
	};

	ASSERT_EQ(0, np_bad_bind(&self->bad, 1));
	ASSERT_EQ(0, np_admin(self->bad.ctrl.fd, &cmd));
	EXPECT_EQ(0x300U | EVENTS_CRITICAL, cmd.result);
	ASSERT_EQ(0, np_bad_unbind(&self->bad));
	ASSERT_EQ(0, np_bad_identify(&self->bad, NVME_CNS_CONTROLLER, CTRL_OAES + 1, 0));
	ASSERT_EQ(0, np_bad_bind(&self->bad, 1));
	ASSERT_EQ(0, np_admin(self->bad.ctrl.fd, &cmd));
	EXPECT_EQ(EVENTS_CRITICAL, cmd.result);
}

/* --- effects ----------------------------------------------------------------------- */

static int send_admin(struct np_bad *bad, uint8_t opcode)
{
	struct nvme_admin_cmd cmd = { .opcode = opcode };

	return np_admin(bad->ctrl.fd, &cmd);
}

/*
 * A command that must be alone (CSE) is refused beside a peer, unless the controller
 * relaxes that (CSER) or it is Security Receive.
 */
TEST_F(bad_passthru, commands_alone_beside_peers)
{
	static const struct {
		uint8_t opcode;
		uint32_t effects;
		int result;
	} table[] = {
		{ NVME_ADMIN_VENDOR, EFFECT_ALONE, -EBUSY },
		{ NVME_ADMIN_VENDOR + 4, EFFECT_ALONE | EFFECT_RELAXED, 0 },
		{ ADMIN_SECURITY_RECEIVE, EFFECT_ALONE, 0 },
		{ NVME_ADMIN_FORMAT, EFFECT_ALONE | EFFECT_RELAXED, -EBUSY },
	};
	struct np_qp qp;
	size_t i;

	for (i = 0; i < sizeof(table) / sizeof(table[0]); i++)
		ASSERT_EQ(0, np_bad_set(&self->bad, BADCTRL_ADMIN_EFFECTS(table[i].opcode),
					NP_EFFECT_SUPPORTED | table[i].effects));
	ASSERT_EQ(0, np_bad_bind(&self->bad, 1));
	ASSERT_EQ(0, np_qp_open(&qp, self->bad.ctrl.fd, ENTRIES));
	for (i = 0; i < sizeof(table) / sizeof(table[0]); i++) {
		ASSERT_EQ(0, np_bad_rule(&self->bad, 0, table[i].opcode, BADCTRL_LIE, 0, 1));
		EXPECT_EQ(table[i].result, send_admin(&self->bad, table[i].opcode)) {
			TH_LOG("opcode %#x", table[i].opcode);
		}
	}
	np_qp_close(&qp);
}

/* The upper half of the length of a log page is in another dword than the lower, beside an identifier that stays. */
TEST_F(bad_passthru, very_long_log_page_is_cut)
{
	struct nvme_admin_cmd cmd = {
		.opcode = NVME_ADMIN_GET_LOG_PAGE,
		.nsid = NVME_ALL_NAMESPACES,
		.addr = (uintptr_t)self->bytes,
		.data_len = NP_PAGE,
		.cdw10 = NVME_LOG_HEALTH,
		.cdw11 = 0x00050001,
	};

	ASSERT_EQ(0, np_bad_bind(&self->bad, 1));
	EXPECT_EQ(0, np_admin(self->bad.ctrl.fd, &cmd));
	EXPECT_EQ(5, cmd.result);
}

/* Of another command these dwords are no length, whatever its buffer: here a temperature in kelvins. */
TEST_F(bad_passthru, only_log_pages_are_cut)
{
	struct nvme_admin_cmd cmd = {
		.opcode = NVME_ADMIN_SET_FEATURES,
		.addr = (uintptr_t)self->bytes,
		.data_len = NP_PAGE,
		.cdw10 = 1U << 31 | NVME_FEATURE_TEMPERATURE,
		.cdw11 = 333,
	};

	ASSERT_EQ(0, np_bad_bind(&self->bad, 1));
	EXPECT_EQ(0, np_admin(self->bad.ctrl.fd, &cmd));
	EXPECT_EQ(333, np_bad_get(&self->bad, BADCTRL_THRESHOLD(0)));
}

/* --- dead controller --------------------------------------------------------------- */

/* In a child process, which a signal may end. */
static void send_to_dead(struct np_bad *bad)
{
	int ret = send(bad->generic, NVMEPEER_OP_FLUSH);

	_exit(ret == -ENODEV || ret == -EIO ? 0 : 1);
}

/* The driver has given the controller up, and nothing will unfreeze its queues. */
TEST_F(bad_passthru, dead_controller_fails_commands)
{
	int status = -1;
	int64_t end;
	pid_t child;

	ASSERT_EQ(0, np_bad_bind(&self->bad, 1));
	ASSERT_EQ(0, np_bad_rule(&self->bad, 0, NP_IO_READ, BADCTRL_VANISH, 0, 1));
	EXPECT_EQ(-EINTR, np_bad_read(&self->bad, self->bytes, NP_SHORT_MS));
	ASSERT_LE(0, np_bad_wait_state(&self->bad, NVME_PEER_CTRL_DEAD));
	ASSERT_EQ(0, np_bad_wait_no_capacity(&self->bad));
	child = fork();
	ASSERT_LE(0, child);
	if (!child)
		send_to_dead(&self->bad);
	end = np_now_ms() + NP_TIMEOUT_MS;
	while (!waitpid(child, &status, WNOHANG) && np_now_ms() < end)
		np_sleep_ms(10);
	EXPECT_EQ(0, status);
	ASSERT_EQ(0, np_bad_set(&self->bad, BADCTRL_MODE, BADCTRL_WORKS));
	/* A command that still hangs ends now. */
	ASSERT_EQ(0, np_bad_unbind(&self->bad));
	if (status == -1)
		waitpid(child, &status, 0);
}

TEST_HARNESS_MAIN
