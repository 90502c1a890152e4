// SPDX-License-Identifier: GPL-2.0-only
/*
 * What becomes of a command's status: the block layer's error, another try
 * where the controller allows one, the bare status for passthrough; and what is kept of
 * those that failed.
 *
 * iommu: on
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "badknob.h"
#include "kselftest_harness.h"

#define MAX_RETRIES	5

FIXTURE(bad_statuses)
{
	struct np_bad bad;
	uint8_t *bytes;
};

FIXTURE_SETUP(bad_statuses)
{
	if (np_bad_open(&self->bad) == -ENOENT)
		SKIP(return, "no misbehaving controller in this guest");
	ASSERT_EQ(0, posix_memalign((void **)&self->bytes, NP_PAGE, NP_PAGE));
	ASSERT_EQ(0, np_bad_bind(&self->bad, 1));
}

FIXTURE_TEARDOWN(bad_statuses)
{
	if (!self->bad.address[0])
		return;
	EXPECT_EQ(0, np_bad_close(&self->bad));
	free(self->bytes);
}

/* Of one read that ends with @status, as often as it is tried. */
static int outcome(struct np_bad *bad, void *bytes, uint16_t status, uint32_t times)
{
	return np_bad_rule(bad, 0, NP_IO_READ, BADCTRL_STATUS, status, times) ?:
	       np_bad_read_disk(bad, bytes);
}

TEST_F(bad_statuses, become_errors_of_the_disk)
{
	static const struct {
		uint16_t status;
		int error;
	} table[] = {
		{ 0x001, -EOPNOTSUPP },	/* Invalid Opcode */
		{ 0x002, -EOPNOTSUPP },	/* Invalid Field */
		{ 0x006, -EIO },	/* Internal Error */
		{ 0x00b, -EOPNOTSUPP },	/* Invalid Namespace */
		{ 0x080, -EREMOTEIO },	/* LBA out of Range */
		{ 0x081, -ENOSPC },	/* Capacity Exceeded */
		{ 0x082, -EREMOTEIO },	/* Namespace Not Ready */
		{ 0x083, -EBADE },	/* Reservation Conflict */
		{ 0x180, -EIO },	/* Conflicting Attributes */
		{ 0x182, -ENODATA },	/* Write to Read Only Range */
		{ 0x183, -EOPNOTSUPP },	/* fused or simple copy not supported */
		{ 0x280, -ENODATA },	/* Write Fault */
		{ 0x281, -ENODATA },	/* Unrecovered Read Error */
		{ 0x282, -EILSEQ },	/* Guard Check */
		{ 0x283, -EILSEQ },	/* Application Tag Check */
		{ 0x284, -EILSEQ },	/* Reference Tag Check */
		{ 0x285, -ENODATA },	/* Compare Failure */
		{ 0x287, -ENODATA },	/* Deallocated or Unwritten Block */
		{ 0x370, -ENOLINK },	/* Host Path Error */
		{ 0x700, -EIO },	/* vendor specific */
	};
	size_t i;

	for (i = 0; i < sizeof(table) / sizeof(table[0]); i++) {
		EXPECT_EQ(table[i].error, outcome(&self->bad, self->bytes,
						  table[i].status | NP_STATUS_DNR, 1)) {
			TH_LOG("status %#x", table[i].status);
		}
		EXPECT_EQ(1, np_bad_hits(&self->bad, 0));
	}
	EXPECT_EQ(0, np_bad_read_disk(&self->bad, self->bytes));
}

TEST_F(bad_statuses, lead_to_another_try)
{
	EXPECT_EQ(0, outcome(&self->bad, self->bytes, NP_STATUS_INTERNAL, MAX_RETRIES));
	EXPECT_EQ(MAX_RETRIES, np_bad_hits(&self->bad, 0));
	EXPECT_EQ(0, self->bytes[0]);
}

TEST_F(bad_statuses, lead_to_so_many_tries_only)
{
	EXPECT_EQ(-EIO, outcome(&self->bad, self->bytes, NP_STATUS_INTERNAL, BADCTRL_EVERY));
	EXPECT_EQ(MAX_RETRIES + 1, np_bad_hits(&self->bad, 0));
}

/* Whoever sends a command himself decides what to make of the answer. */
TEST_F(bad_statuses, reach_passthrough_as_they_are)
{
	ASSERT_EQ(0, np_bad_rule(&self->bad, 0, NP_IO_READ, BADCTRL_STATUS, NP_STATUS_INTERNAL,
				 BADCTRL_EVERY));
	EXPECT_EQ(NP_STATUS_INTERNAL, np_bad_read(&self->bad, self->bytes, 0));
	EXPECT_EQ(1, np_bad_hits(&self->bad, 0));
	ASSERT_EQ(0, np_bad_rule(&self->bad, 0, NP_ADMIN_IDENTIFY, BADCTRL_STATUS,
				 NP_STATUS_DNR | 0x2, 1));
	EXPECT_EQ(NP_STATUS_DNR | 0x2, np_bad_ask(&self->bad, 0));
}

/* --- what is kept of failures ------------------------------------------------------- */

static const char *path_of(struct np_bad *bad, bool disk, const char *name)
{
	static char path[128];

	if (disk)
		snprintf(path, sizeof(path), "/sys/block/nvmep%dn1/%s", bad->ctrl.instance, name);
	else
		snprintf(path, sizeof(path), "/sys/class/nvme-peer/nvmep%d/%s",
			 bad->ctrl.instance, name);
	return path;
}

static long count_of(struct np_bad *bad, bool disk, const char *name)
{
	char text[64];

	return np_read_file(path_of(bad, disk, name), text, sizeof(text)) ? -1 : atol(text);
}

/* Of the disk, and of admin commands. */
#define RETRIES(bad)	count_of(bad, true, "diag/command_retries_count")
#define ERRORS(bad)	count_of(bad, true, "diag/command_error_count")
#define ADMIN_ERRORS(bad)	count_of(bad, false, "diag/command_error_count")

TEST_F(bad_statuses, are_counted)
{
	EXPECT_EQ(0, RETRIES(&self->bad));
	EXPECT_EQ(0, ERRORS(&self->bad));
	EXPECT_EQ(0, outcome(&self->bad, self->bytes, NP_STATUS_INTERNAL, MAX_RETRIES));
	EXPECT_EQ(MAX_RETRIES, RETRIES(&self->bad));
	EXPECT_EQ(0, ERRORS(&self->bad));
	EXPECT_EQ(-EIO, outcome(&self->bad, self->bytes, NP_STATUS_DNR | NP_STATUS_INTERNAL, 1));
	EXPECT_EQ(MAX_RETRIES, RETRIES(&self->bad));
	EXPECT_EQ(1, ERRORS(&self->bad));
	EXPECT_EQ(0, ADMIN_ERRORS(&self->bad));
}

TEST_F(bad_statuses, are_counted_from_any_number)
{
	const char *path = path_of(&self->bad, true, "diag/command_error_count");

	ASSERT_EQ(0, np_write_file(path, "41\n"));
	EXPECT_EQ(-EINVAL, np_write_file(path, "many"));
	EXPECT_EQ(-EIO, outcome(&self->bad, self->bytes, NP_STATUS_DNR | NP_STATUS_INTERNAL, 1));
	EXPECT_EQ(42, ERRORS(&self->bad));
}

TEST_F(bad_statuses, resets_are_counted)
{
	EXPECT_EQ(0, count_of(&self->bad, false, "diag/reset_count"));
	ASSERT_EQ(0, np_ioctl(self->bad.ctrl.fd, NVME_IOCTL_RESET, NULL));
	EXPECT_EQ(1, count_of(&self->bad, false, "diag/reset_count"));
	ASSERT_EQ(0, np_write_file(path_of(&self->bad, false, "diag/reset_count"), "0"));
	EXPECT_EQ(0, count_of(&self->bad, false, "diag/reset_count"));
}

/* The log was told of a passthrough command of @node with @opcode, which has ended. */
static bool told_of(int log, struct np_bad *bad, const char *node, unsigned int opcode)
{
	char text[128];

	snprintf(text, sizeof(text), "nvmep%d%s: passthrough opcode %#x failed, status 0x4006 "
		 "(sct 0x0 / sc 0x6) DNR", bad->ctrl.instance, node, opcode);
	return !np_log_wait(log, text, 100);
}

static bool is_switched(struct np_bad *bad, bool disk, const char *state)
{
	char text[8];

	return !np_read_file(path_of(bad, disk, "passthru_err_log_enabled"), text, sizeof(text)) &&
	       !strcmp(text, state);
}

/* Whoever sends a command knows of its end: others are told where they asked for it. */
TEST_F(bad_statuses, of_passthrough_are_logged_on_request)
{
	static const char *const nodes[] = { "", "n1" };
	const uint8_t opcodes[] = { NP_ADMIN_IDENTIFY, NP_CMD_READ };
	int logs[] = { np_log_open(), np_log_open() }, on, disk;

	ASSERT_LE(0, logs[0]);
	ASSERT_LE(0, logs[1]);
	ASSERT_EQ(0, np_bad_rule(&self->bad, 0, NP_IO_READ, BADCTRL_STATUS,
				 NP_STATUS_DNR | NP_STATUS_INTERNAL, BADCTRL_EVERY));
	ASSERT_EQ(0, np_bad_rule(&self->bad, 1, NP_ADMIN_IDENTIFY, BADCTRL_STATUS,
				 NP_STATUS_DNR | NP_STATUS_INTERNAL, BADCTRL_EVERY));
	for (on = 0; on <= 3; on++) {
		for (disk = 0; disk <= 1; disk++) {
			const char *path = path_of(&self->bad, disk, "passthru_err_log_enabled");

			EXPECT_EQ(0, on ? np_write_file(path, on >> disk & 1 ? "1" : "off") : 0);
			EXPECT_TRUE(is_switched(&self->bad, disk,
						on >> disk & 1 ? "on\n" : "off\n"));
		}
		EXPECT_EQ(NP_STATUS_DNR | NP_STATUS_INTERNAL,
			  np_bad_read(&self->bad, self->bytes, 0));
		EXPECT_EQ(NP_STATUS_DNR | NP_STATUS_INTERNAL, np_bad_ask(&self->bad, 0));
		for (disk = 0; disk <= 1; disk++)
			EXPECT_EQ(on >> disk & 1, told_of(logs[disk], &self->bad, nodes[disk],
							  opcodes[disk]));
	}
	/* Each was on twice, and off twice. */
	EXPECT_EQ(2, ERRORS(&self->bad));
	EXPECT_EQ(2, ADMIN_ERRORS(&self->bad));
	EXPECT_EQ(-EINVAL, np_write_file(path_of(&self->bad, true, "passthru_err_log_enabled"),
					 "perhaps"));
	close(logs[0]);
	close(logs[1]);
}

/* The driver asks to know, and takes a refusal for an answer. */
TEST_F(bad_statuses, of_the_drivers_own_commands_are_nobodys_concern)
{
	char text[64];

	ASSERT_EQ(0, np_write_file(path_of(&self->bad, false, "passthru_err_log_enabled"), "on"));
	ASSERT_EQ(0, np_bad_rule(&self->bad, 0, NP_ADMIN_IDENTIFY, BADCTRL_STATUS,
				 NP_STATUS_DNR | NP_STATUS_INTERNAL, 1));
	EXPECT_EQ(-EIO, np_read_file(path_of(&self->bad, true, "nuse"), text, sizeof(text)));
	EXPECT_EQ(1, np_bad_hits(&self->bad, 0));
	EXPECT_EQ(0, ADMIN_ERRORS(&self->bad));
}

/* --- data -------------------------------------------------------------------------- */

/* Data of a command that failed for once is not what the retry returns. */
TEST_F(bad_statuses, a_write_is_tried_again_too)
{
	uint8_t *back = self->bytes + NP_BLOCK;

	memset(self->bytes, 0x5a, NP_BLOCK);
	ASSERT_EQ(0, np_bad_rule(&self->bad, 0, BADCTRL_ON_IO | NP_CMD_WRITE, BADCTRL_STATUS,
				 NP_STATUS_INTERNAL, 1));
	EXPECT_EQ(0, np_disk_write(self->bad.disk, self->bytes, NP_BLOCK, NP_BLOCK));
	EXPECT_EQ(1, np_bad_hits(&self->bad, 0));
	EXPECT_EQ(0, np_disk_read(self->bad.disk, back, NP_BLOCK, NP_BLOCK));
	EXPECT_EQ(0, memcmp(self->bytes, back, NP_BLOCK));
}

TEST_HARNESS_MAIN
