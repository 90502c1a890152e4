// SPDX-License-Identifier: GPL-2.0-only
/*
 * Status handling: the block layer's error, retries where the controller allows them, the
 * raw status for passthrough; and the counters and log lines of failed commands.
 *
 * kernels: 6.1 7
 * long-kernels: 6.1 6.12 7 debug kcsan
 * iommu: on
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "npbad.h"
#include "kselftest_harness.h"

#define MAX_RETRIES	5
#define TRIES		30	/* until a time is not too long */
#define RETRIES_PARAMETER	"/sys/module/nvme_peer/parameters/max_retries"

/* Delays of retries in Identify Controller, in 100 ms; CRD of a status names one. */
#define CTRL_CRDT	128
#define CRD_SHIFT	11
#define STATUS_MORE	0x2000U
#define HOST_ACRE	1	/* in Host Behavior Support */

FIXTURE(bad_statuses)
{
	struct np_bad bad;
	uint8_t *bytes;
};

FIXTURE_SETUP(bad_statuses)
{
	if (np_bad_open(&self->bad) == -ENOENT)
		SKIP(return, "no badctrl in this guest");
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

/* The result of one read that ends with @status each time it is tried. */
static int outcome(struct np_bad *bad, void *bytes, uint16_t status, uint32_t times)
{
	return np_bad_rule(bad, 0, NP_IO_READ, BADCTRL_STATUS, status, times) ?:
	       np_bad_read_disk(bad, bytes);
}

TEST_F(bad_statuses, status_maps_to_block_error)
{
	static const struct {
		uint16_t status;
		int error;
	} table[] = {
		{ NVME_SC_INVALID_OPCODE, -EOPNOTSUPP },
		{ NVME_SC_INVALID_FIELD, -EOPNOTSUPP },
		{ NVME_SC_INTERNAL, -EIO },
		{ NVME_SC_INTERRUPTED, -EREMOTEIO },
		{ NVME_SC_INVALID_NAMESPACE, -EOPNOTSUPP },
		{ NVME_SC_LBA_RANGE, -EREMOTEIO },
		{ NVME_SC_CAPACITY, -ENOSPC },
		{ NVME_SC_NOT_READY, -EREMOTEIO },
		{ NVME_SC_RESERVATION, -EBADE },
		{ NVME_SC_ATTRIBUTES, -EOPNOTSUPP },
		{ NVME_SC_PROTECTION, -EILSEQ },
		{ NVME_SC_READ_ONLY, -ENODATA },
		{ NVME_SC_COMMAND_SIZE, -EIO },
		{ NVME_SC_ACCESS_DENIED, -ENODATA },
		{ NVME_SC_WRITE_FAULT, -ENODATA },
		{ NVME_SC_READ_ERROR, -ENODATA },
		{ NVME_SC_GUARD_CHECK, -EILSEQ },
		{ NVME_SC_APPTAG_CHECK, -EILSEQ },
		{ NVME_SC_REFTAG_CHECK, -EILSEQ },
		{ NVME_SC_COMPARE_FAILED, -ENODATA },
		{ NVME_SC_UNWRITTEN, -ENODATA },
		{ NVME_SC_HOST_PATH, -ENOLINK },
		{ 0x700, -EIO },	/* vendor specific */
	};
	size_t i;

	for (i = 0; i < sizeof(table) / sizeof(table[0]); i++) {
		EXPECT_EQ(table[i].error, outcome(&self->bad, self->bytes,
						  table[i].status | NVME_STATUS_DNR, 1)) {
			TH_LOG("status %#x", table[i].status);
		}
		EXPECT_EQ(1, np_bad_hits(&self->bad, 0));
	}
	EXPECT_EQ(0, np_bad_read_disk(&self->bad, self->bytes));
}

TEST_F(bad_statuses, retryable_status_is_retried)
{
	EXPECT_EQ(0, outcome(&self->bad, self->bytes, NVME_SC_INTERNAL, MAX_RETRIES));
	EXPECT_EQ(MAX_RETRIES, np_bad_hits(&self->bad, 0));
	EXPECT_EQ(0, self->bytes[0]);
}

TEST_F(bad_statuses, retries_are_limited)
{
	EXPECT_EQ(-EIO, outcome(&self->bad, self->bytes, NVME_SC_INTERNAL, BADCTRL_EVERY));
	EXPECT_EQ(MAX_RETRIES + 1, np_bad_hits(&self->bad, 0));
	ASSERT_EQ(0, np_write_file(RETRIES_PARAMETER, "1"));
	EXPECT_EQ(-EIO, outcome(&self->bad, self->bytes, NVME_SC_INTERNAL, BADCTRL_EVERY));
	EXPECT_EQ(2, np_bad_hits(&self->bad, 0));
	ASSERT_EQ(0, np_write_file(RETRIES_PARAMETER, "5"));
}

/* Milliseconds of a read that is retried once after delay @index. */
static int64_t time_with_delay(struct __test_metadata *_metadata, FIXTURE_DATA(bad_statuses) *self,
			       int index)
{
	int64_t start = np_now_ms(), took;

	EXPECT_EQ(0, outcome(&self->bad, self->bytes,
			     (uint16_t)(NVME_SC_INTERNAL | index << CRD_SHIFT), 1));
	took = np_now_ms() - start;
	EXPECT_EQ(1, np_bad_hits(&self->bad, 0));
	EXPECT_LE(300 * index, took);
	return took;
}

/*
 * A retry waits as long as the controller asks for, which it does only of hosts that say
 * that they do (ACRE).  On a busy machine most may take longer, with another delay all of them do.
 */
TEST_F_TIMEOUT(bad_statuses, retries_wait_if_asked, 120)
{
	int tries, i;

	EXPECT_EQ(0, np_bad_get(&self->bad, BADCTRL_BEHAVIOR));
	ASSERT_EQ(0, np_bad_unbind(&self->bad));
	for (i = 0; i < 3; i++)
		ASSERT_EQ(0, np_bad_identify(&self->bad, NVME_CNS_CONTROLLER, CTRL_CRDT + 2 * i,
					     (uint8_t)(3 * (i + 1))));
	ASSERT_EQ(0, np_bad_bind(&self->bad, 1));
	EXPECT_EQ(HOST_ACRE, np_bad_get(&self->bad, BADCTRL_BEHAVIOR));
	for (i = 0; i <= 3; i++) {
		for (tries = 0; tries < TRIES; tries++)
			if (time_with_delay(_metadata, self, i) < 300 * (i + 1))
				break;
		EXPECT_LT(tries, TRIES);
	}
}

/* A child reads, and waits for the delay of a retry. */
static void read_with_delay(struct __test_metadata *_metadata, FIXTURE_DATA(bad_statuses) *self,
			    pid_t *child)
{
	ASSERT_EQ(0, np_bad_rule(&self->bad, 0, NP_IO_READ, BADCTRL_STATUS,
				 NVME_SC_INTERNAL | 1 << CRD_SHIFT, 1));
	*child = fork();
	ASSERT_LE(0, *child);
	if (!*child)
		_exit(np_bad_read_disk(&self->bad, self->bytes) ? 1 : 0);
	ASSERT_EQ(0, np_bad_wait_hits(&self->bad, 0, 1));
	np_sleep_ms(200);
}

/* Unbind does not wait for the delay of a retry. */
TEST_F(bad_statuses, unbind_ends_delay_of_retry)
{
	int64_t start;
	pid_t child;
	int i;

	ASSERT_EQ(0, np_bad_unbind(&self->bad));
	for (i = 0; i < 2; i++)
		ASSERT_EQ(0, np_bad_identify(&self->bad, NVME_CNS_CONTROLLER, CTRL_CRDT + i, 1));
	ASSERT_EQ(0, np_bad_bind(&self->bad, 1));
	read_with_delay(_metadata, self, &child);
	start = np_now_ms();
	EXPECT_EQ(0, np_bad_unbind(&self->bad));
	EXPECT_GT(10000, np_now_ms() - start);
	waitpid(child, NULL, 0);
}

/* Nor does Format, which waits for I/O in flight. */
TEST_F(bad_statuses, format_ends_delay_of_retry)
{
	struct nvme_admin_cmd format = { .opcode = NVME_ADMIN_FORMAT, .nsid = 1 };
	int64_t start;
	pid_t child;
	int status;

	ASSERT_EQ(0, np_bad_unbind(&self->bad));
	ASSERT_EQ(0, np_bad_identify(&self->bad, NVME_CNS_CONTROLLER, CTRL_CRDT, 200));
	ASSERT_EQ(0, np_bad_bind(&self->bad, 1));
	ASSERT_EQ(0, np_bad_rule(&self->bad, 1, NVME_ADMIN_FORMAT, BADCTRL_LIE, 0, 1));
	read_with_delay(_metadata, self, &child);
	start = np_now_ms();
	EXPECT_EQ(0, np_admin(self->bad.ctrl.fd, &format));
	EXPECT_GT(10000, np_now_ms() - start);
	ASSERT_EQ(child, waitpid(child, &status, 0));
	EXPECT_EQ(0, WEXITSTATUS(status));
}

/* To the timeout of I/O, 2 s here; the controller asks for 20 s. */
TEST_F(bad_statuses, delay_of_retry_is_limited)
{
	int64_t start;

	ASSERT_EQ(0, np_bad_unbind(&self->bad));
	ASSERT_EQ(0, np_bad_short_io_timeout());
	ASSERT_EQ(0, np_bad_identify(&self->bad, NVME_CNS_CONTROLLER, CTRL_CRDT, 200));
	ASSERT_EQ(0, np_bad_bind(&self->bad, 1));
	start = np_now_ms();
	EXPECT_EQ(0, outcome(&self->bad, self->bytes, NVME_SC_INTERNAL | 1 << CRD_SHIFT, 1));
	EXPECT_LE(2000, np_now_ms() - start);
	EXPECT_GT(10000, np_now_ms() - start);
}

/*
 * A passthrough caller handles the status itself, so it is neither retried nor
 * translated.
 */
TEST_F(bad_statuses, passthrough_gets_raw_status)
{
	ASSERT_EQ(0, np_bad_rule(&self->bad, 0, NP_IO_READ, BADCTRL_STATUS, NVME_SC_INTERNAL,
				 BADCTRL_EVERY));
	EXPECT_EQ(NVME_SC_INTERNAL, np_bad_read(&self->bad, self->bytes, 0));
	EXPECT_EQ(1, np_bad_hits(&self->bad, 0));
	ASSERT_EQ(0, np_bad_rule(&self->bad, 0, NVME_ADMIN_IDENTIFY, BADCTRL_STATUS,
				 NVME_STATUS_DNR | NVME_SC_INVALID_FIELD, 1));
	EXPECT_EQ(NVME_STATUS_DNR | NVME_SC_INVALID_FIELD, np_bad_identify_ctrl(&self->bad, 0));
}

/* --- counters and log --------------------------------------------------------------- */

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

/* Counters of the disk and of admin commands. */
#define RETRIES(bad)	count_of(bad, true, "diag/command_retries_count")
#define ERRORS(bad)	count_of(bad, true, "diag/command_error_count")
#define ADMIN_ERRORS(bad)	count_of(bad, false, "diag/command_error_count")

TEST_F(bad_statuses, errors_and_retries_are_counted)
{
	EXPECT_EQ(0, RETRIES(&self->bad));
	EXPECT_EQ(0, ERRORS(&self->bad));
	EXPECT_EQ(0, outcome(&self->bad, self->bytes, NVME_SC_INTERNAL, MAX_RETRIES));
	EXPECT_EQ(MAX_RETRIES, RETRIES(&self->bad));
	EXPECT_EQ(0, ERRORS(&self->bad));
	EXPECT_EQ(-EIO, outcome(&self->bad, self->bytes, NVME_STATUS_DNR | NVME_SC_INTERNAL, 1));
	EXPECT_EQ(MAX_RETRIES, RETRIES(&self->bad));
	EXPECT_EQ(1, ERRORS(&self->bad));
	EXPECT_EQ(0, ADMIN_ERRORS(&self->bad));
}

TEST_F(bad_statuses, counters_can_be_set)
{
	const char *path = path_of(&self->bad, true, "diag/command_error_count");

	ASSERT_EQ(0, np_write_file(path, "41\n"));
	EXPECT_EQ(-EINVAL, np_write_file(path, "many"));
	EXPECT_EQ(-EIO, outcome(&self->bad, self->bytes, NVME_STATUS_DNR | NVME_SC_INTERNAL, 1));
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

/* The log has a line for a failed passthrough command of @node with @opcode, as @expected. */
static bool log_has_error(int log, struct np_bad *bad, const char *node, unsigned int opcode,
			  bool expected)
{
	char text[128];

	snprintf(text, sizeof(text), "nvmep%d%s: %s(%#x), Internal Error (sct 0x0 / sc 0x6) "
		 "DNR cdw10=", bad->ctrl.instance, node, *node ? "Read" : "Identify", opcode);
	return !np_log_wait(log, text, expected ? NP_TIMEOUT_MS : 100);
}

static bool is_switched(struct np_bad *bad, bool disk, const char *state)
{
	char text[8];

	return !np_read_file(path_of(bad, disk, "passthru_err_log_enabled"), text, sizeof(text)) &&
	       !strcmp(text, state);
}

/*
 * The caller already gets the status; the log line is written only if the attribute
 * enables it.
 */
TEST_F(bad_statuses, passthrough_errors_logged_if_enabled)
{
	static const char *const nodes[] = { "", "n1" };
	const uint8_t opcodes[] = { NVME_ADMIN_IDENTIFY, NVMEPEER_OP_READ };
	int logs[] = { np_log_open(), np_log_open() }, on, disk;

	ASSERT_LE(0, logs[0]);
	ASSERT_LE(0, logs[1]);
	ASSERT_EQ(0, np_bad_rule(&self->bad, 0, NP_IO_READ, BADCTRL_STATUS,
				 NVME_STATUS_DNR | NVME_SC_INTERNAL, BADCTRL_EVERY));
	ASSERT_EQ(0, np_bad_rule(&self->bad, 1, NVME_ADMIN_IDENTIFY, BADCTRL_STATUS,
				 NVME_STATUS_DNR | NVME_SC_INTERNAL, BADCTRL_EVERY));
	for (on = 0; on <= 3; on++) {
		for (disk = 0; disk <= 1; disk++) {
			const char *path = path_of(&self->bad, disk, "passthru_err_log_enabled");

			EXPECT_EQ(0, on ? np_write_file(path, on >> disk & 1 ? "1" : "off") : 0);
			EXPECT_TRUE(is_switched(&self->bad, disk,
						on >> disk & 1 ? "on\n" : "off\n"));
		}
		EXPECT_EQ(NVME_STATUS_DNR | NVME_SC_INTERNAL,
			  np_bad_read(&self->bad, self->bytes, 0));
		EXPECT_EQ(NVME_STATUS_DNR | NVME_SC_INTERNAL, np_bad_identify_ctrl(&self->bad, 0));
		for (disk = 0; disk <= 1; disk++)
			EXPECT_EQ(on >> disk & 1, log_has_error(logs[disk], &self->bad, nodes[disk],
								opcodes[disk], on >> disk & 1));
	}
	/* Each command was sent twice with the attribute on and twice with it off. */
	EXPECT_EQ(2, ERRORS(&self->bad));
	EXPECT_EQ(2, ADMIN_ERRORS(&self->bad));
	EXPECT_EQ(-EINVAL, np_write_file(path_of(&self->bad, true, "passthru_err_log_enabled"),
					 "perhaps"));
	close(logs[0]);
	close(logs[1]);
}

/* The driver logs ten failed commands in five seconds, so the command is repeated. */
static bool log_explains(struct np_bad *bad, void *bytes, uint16_t status, const char *text)
{
	int64_t end = np_now_ms() + NP_TIMEOUT_MS;
	int log = np_log_open();
	char line[192];
	bool found = false;

	snprintf(line, sizeof(line), "nvmep%dn1: Read(0x2) @ LBA 0, 8 blocks, %s",
		 bad->ctrl.instance, text);
	while (!found && np_now_ms() < end && outcome(bad, bytes, status, BADCTRL_EVERY))
		found = !np_log_wait(log, line, 100);
	close(log);
	return found;
}

TEST_F(bad_statuses, failed_io_is_explained)
{
	struct np_bad *bad = &self->bad;

	EXPECT_TRUE(log_explains(bad, self->bytes, NVME_STATUS_DNR | NVME_SC_READ_ERROR,
				 "Unrecovered Read Error (sct 0x2 / sc 0x81) DNR "));
	EXPECT_TRUE(log_explains(bad, self->bytes, NVME_SC_RESERVATION | STATUS_MORE,
				 "Reservation Conflict (sct 0x0 / sc 0x83) MORE "));
	EXPECT_TRUE(log_explains(bad, self->bytes, NVME_STATUS_DNR | 0x7c0,
				 "Unknown (sct 0x7 / sc 0xc0) DNR "));
}

/* One line for the command and none for its retries. */
TEST_F(bad_statuses, retries_are_not_logged)
{
	int log;

	/* Until the limit of the rate has no effect. */
	np_sleep_ms(5100);
	log = np_log_open();
	ASSERT_LE(0, log);
	EXPECT_EQ(0, outcome(&self->bad, self->bytes, NVME_SC_INTERNAL, MAX_RETRIES));
	EXPECT_EQ(-ETIMEDOUT, np_log_wait(log, "Read(0x2)", 200));
	EXPECT_EQ(-EIO, outcome(&self->bad, self->bytes, NVME_STATUS_DNR | NVME_SC_INTERNAL, 1));
	EXPECT_EQ(0, np_log_wait(log, "Read(0x2)", NP_TIMEOUT_MS));
	close(log);
}

/* The driver handles a refusal of its own Identify. */
TEST_F(bad_statuses, internal_command_errors_not_counted)
{
	char text[64];

	ASSERT_EQ(0, np_write_file(path_of(&self->bad, false, "passthru_err_log_enabled"), "on"));
	ASSERT_EQ(0, np_bad_rule(&self->bad, 0, NVME_ADMIN_IDENTIFY, BADCTRL_STATUS,
				 NVME_STATUS_DNR | NVME_SC_INTERNAL, 1));
	EXPECT_EQ(-EIO, np_read_file(path_of(&self->bad, true, "nuse"), text, sizeof(text)));
	EXPECT_EQ(1, np_bad_hits(&self->bad, 0));
	EXPECT_EQ(0, ADMIN_ERRORS(&self->bad));
}

/* --- data -------------------------------------------------------------------------- */

/* A retry does not return the data of the failed attempt. */
TEST_F(bad_statuses, write_is_retried)
{
	uint8_t *back = self->bytes + NP_BLOCK;

	memset(self->bytes, 0x5a, NP_BLOCK);
	ASSERT_EQ(0, np_bad_rule(&self->bad, 0, BADCTRL_ON_IO | NVMEPEER_OP_WRITE, BADCTRL_STATUS,
				 NVME_SC_INTERNAL, 1));
	EXPECT_EQ(0, np_disk_write(self->bad.disk, self->bytes, NP_BLOCK, NP_BLOCK));
	EXPECT_EQ(1, np_bad_hits(&self->bad, 0));
	EXPECT_EQ(0, np_disk_read(self->bad.disk, back, NP_BLOCK, NP_BLOCK));
	EXPECT_EQ(0, memcmp(self->bytes, back, NP_BLOCK));
}

TEST_HARNESS_MAIN
