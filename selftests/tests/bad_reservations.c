// SPDX-License-Identifier: GPL-2.0-only
/*
 * Persistent reservations by the ioctls of the block layer, on a controller that another host
 * shares.
 *
 * iommu: on
 */
#include <errno.h>
#include <linux/pr.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "npbad.h"
#include "kselftest_harness.h"

/* Headers of older kernels lack these. */
struct keys {
	uint32_t generation;
	uint32_t count;
	uint64_t address;
};

struct held {
	uint64_t key;
	uint32_t generation;
	uint32_t type;
};

#define READ_KEYS	_IOWR('p', 206, struct keys)
#define READ_HELD	_IOR('p', 207, struct held)
#define CONFLICT	0x18
#define IO_ERROR	0x2

#define OWN		0x1234567887654321ULL
#define OTHER		0x77777777U
#define HOSTS		20U
/* Registrants that the driver expects at most before it knows their number. */
#define FIRST_ROOM	8U
#define ROOM		60000U

FIXTURE(bad_reservations)
{
	struct np_bad bad;
	uint8_t *bytes;
	int disk;
};

FIXTURE_SETUP(bad_reservations)
{
	if (np_bad_open(&self->bad) == -ENOENT)
		SKIP(return, "no badctrl in this guest");
	ASSERT_EQ(0, posix_memalign((void **)&self->bytes, NP_PAGE, NP_PAGE));
	memset(self->bytes, 0x11, NP_PAGE);
	ASSERT_EQ(0, np_bad_bind(&self->bad, 1));
	self->disk = self->bad.disk;
}

FIXTURE_TEARDOWN(bad_reservations)
{
	if (!self->bad.address[0])
		return;
	EXPECT_EQ(0, np_bad_close(&self->bad));
	free(self->bytes);
}

static int register_key(int disk, uint64_t old, uint64_t new, uint32_t flags)
{
	struct pr_registration registration = { .old_key = old, .new_key = new, .flags = flags };

	return np_ioctl(disk, IOC_PR_REGISTER, &registration);
}

static int reserve(int disk, uint64_t key, uint32_t type, uint32_t flags)
{
	struct pr_reservation reservation = { .key = key, .type = type, .flags = flags };

	return np_ioctl(disk, IOC_PR_RESERVE, &reservation);
}

static int release(int disk, uint64_t key, uint32_t type)
{
	struct pr_reservation reservation = { .key = key, .type = type };

	return np_ioctl(disk, IOC_PR_RELEASE, &reservation);
}

static int preempt(int disk, unsigned long request, uint64_t key, uint64_t other, uint32_t type)
{
	struct pr_preempt data = { .old_key = key, .new_key = other, .type = type };

	return np_ioctl(disk, request, &data);
}

static int clear(int disk, uint64_t key)
{
	struct pr_clear data = { .key = key };

	return np_ioctl(disk, IOC_PR_CLEAR, &data);
}

static int read_keys(int disk, uint64_t *keys, uint32_t room, struct keys *report)
{
	*report = (struct keys){ .count = room, .address = (uintptr_t)keys };
	return np_ioctl(disk, READ_KEYS, report);
}

static bool has_reports(int disk)
{
	struct held held;
	int ret = np_ioctl(disk, READ_HELD, &held);

	return ret != -ENOTTY && ret != -EOPNOTSUPP;
}

static int write_block(FIXTURE_DATA(bad_reservations) *self)
{
	return np_disk_write(self->disk, self->bytes, NP_PAGE, 0);
}

TEST_F(bad_reservations, keys_are_registered)
{
	EXPECT_EQ(CONFLICT, reserve(self->disk, OWN, PR_WRITE_EXCLUSIVE, 0));
	EXPECT_EQ(0, register_key(self->disk, 0, OWN, 0));
	EXPECT_EQ(CONFLICT, register_key(self->disk, 0, OWN + 1, 0));
	EXPECT_EQ(CONFLICT, register_key(self->disk, OWN + 1, OWN + 2, 0));
	EXPECT_EQ(0, register_key(self->disk, OWN, OWN + 1, 0));
	EXPECT_EQ(0, register_key(self->disk, OWN, OWN + 2, PR_FL_IGNORE_KEY));
	EXPECT_EQ(0, register_key(self->disk, OWN + 2, 0, 0));
	EXPECT_EQ(CONFLICT, reserve(self->disk, OWN + 2, PR_WRITE_EXCLUSIVE, 0));
	EXPECT_EQ(-EOPNOTSUPP, register_key(self->disk, 0, OWN, PR_FL_IGNORE_KEY << 1));
}

TEST_F(bad_reservations, reservation_is_held_and_released)
{
	ASSERT_EQ(0, register_key(self->disk, 0, OWN, 0));
	EXPECT_EQ(CONFLICT, reserve(self->disk, OWN + 1, PR_WRITE_EXCLUSIVE, 0));
	EXPECT_EQ(0, reserve(self->disk, OWN, PR_EXCLUSIVE_ACCESS_ALL_REGS, 0));
	EXPECT_EQ(CONFLICT, reserve(self->disk, OWN, PR_WRITE_EXCLUSIVE, 0));
	EXPECT_EQ(-EINVAL, release(self->disk, OWN, PR_WRITE_EXCLUSIVE));
	EXPECT_EQ(CONFLICT, release(self->disk, OWN + 1, PR_EXCLUSIVE_ACCESS_ALL_REGS));
	EXPECT_EQ(0, release(self->disk, OWN, PR_EXCLUSIVE_ACCESS_ALL_REGS));
	EXPECT_EQ(0, reserve(self->disk, 0, PR_WRITE_EXCLUSIVE, PR_FL_IGNORE_KEY));
	EXPECT_EQ(-EOPNOTSUPP, reserve(self->disk, OWN, PR_WRITE_EXCLUSIVE, PR_FL_IGNORE_KEY << 1));
	/* Key 0 stands for this host. */
	EXPECT_EQ(0, release(self->disk, 0, PR_WRITE_EXCLUSIVE));
	EXPECT_EQ(CONFLICT, clear(self->disk, OWN + 1));
	EXPECT_EQ(0, clear(self->disk, 0));
	EXPECT_EQ(CONFLICT, clear(self->disk, OWN));
}

/* A write that the reservation of another host forbids fails, until it is preempted. */
TEST_F(bad_reservations, other_host_is_preempted)
{
	static const unsigned long requests[] = { IOC_PR_PREEMPT, IOC_PR_PREEMPT_ABORT };
	uint32_t i;

	ASSERT_EQ(0, register_key(self->disk, 0, OWN, 0));
	for (i = 0; i < 2; i++) {
		ASSERT_EQ(0, np_bad_set(&self->bad, BADCTRL_OTHER_KEY, OTHER));
		ASSERT_EQ(0, np_bad_set(&self->bad, BADCTRL_OTHER_TYPE, PR_WRITE_EXCLUSIVE));
		EXPECT_EQ(-EBADE, write_block(self));
		EXPECT_EQ(CONFLICT, reserve(self->disk, OWN, PR_WRITE_EXCLUSIVE, 0));
		EXPECT_EQ(CONFLICT, preempt(self->disk, requests[i], OWN, OTHER + 1,
					    PR_WRITE_EXCLUSIVE));
		EXPECT_EQ(0, preempt(self->disk, requests[i], OWN, OTHER, PR_WRITE_EXCLUSIVE));
		EXPECT_EQ(i + 1, np_bad_get(&self->bad, BADCTRL_PREEMPTED));
		EXPECT_EQ(0, write_block(self));
		EXPECT_EQ(0, release(self->disk, OWN, PR_WRITE_EXCLUSIVE));
	}
}

static void expect_report(struct __test_metadata *_metadata, FIXTURE_DATA(bad_reservations) *self)
{
	uint64_t keys[HOSTS + 2] = { 0 };
	struct keys report;
	struct held held;

	ASSERT_EQ(0, read_keys(self->disk, keys, 1, &report));
	/* The rest does not fit. */
	EXPECT_EQ(2, report.count);
	EXPECT_EQ(OTHER, keys[0]);
	EXPECT_EQ(0, keys[1]);
	ASSERT_EQ(0, read_keys(self->disk, keys, HOSTS, &report));
	EXPECT_EQ(2, report.count);
	EXPECT_EQ(1, report.generation);
	EXPECT_EQ(OWN, keys[1]);
	EXPECT_EQ(0, keys[2]);
	ASSERT_EQ(0, np_ioctl(self->disk, READ_HELD, &held));
	EXPECT_EQ(1, held.generation);
	EXPECT_EQ(PR_WRITE_EXCLUSIVE_ALL_REGS, held.type);
	EXPECT_EQ(OWN, held.key);
	/* The holder is the last of many. */
	ASSERT_EQ(0, np_bad_set(&self->bad, BADCTRL_MORE_HOSTS, HOSTS));
	ASSERT_EQ(0, np_ioctl(self->disk, READ_HELD, &held));
	EXPECT_EQ(OWN, held.key);
	ASSERT_EQ(0, read_keys(self->disk, keys, HOSTS + 2, &report));
	EXPECT_EQ(HOSTS + 2, report.count);
	EXPECT_EQ(0x1000, keys[0]);
	EXPECT_EQ(OWN, keys[HOSTS + 1]);
	ASSERT_EQ(0, np_bad_set(&self->bad, BADCTRL_MORE_HOSTS, 0));
}

/* With Host Identifiers of 128 bits, and with those of 64. */
TEST_F(bad_reservations, keys_and_holder_are_reported)
{
	struct held held;

	if (!has_reports(self->disk))
		SKIP(return, "no reports in this kernel");
	ASSERT_EQ(0, np_ioctl(self->disk, READ_HELD, &held));
	EXPECT_EQ(0, held.type);
	EXPECT_EQ(0, held.key);
	ASSERT_EQ(0, np_bad_set(&self->bad, BADCTRL_OTHER_KEY, OTHER));
	ASSERT_EQ(0, register_key(self->disk, 0, OWN, 0));
	ASSERT_EQ(0, reserve(self->disk, OWN, PR_WRITE_EXCLUSIVE_ALL_REGS, 0));
	expect_report(_metadata, self);
	ASSERT_EQ(0, np_bad_set(&self->bad, BADCTRL_SHORT_HOST, 1));
	expect_report(_metadata, self);
}

/* As many registrants as the first report has room for: it is not read again. */
TEST_F(bad_reservations, full_report_is_read_once)
{
	struct held held;

	if (!has_reports(self->disk))
		SKIP(return, "no reports in this kernel");
	ASSERT_EQ(0, register_key(self->disk, 0, OWN, 0));
	ASSERT_EQ(0, reserve(self->disk, OWN, PR_WRITE_EXCLUSIVE, 0));
	ASSERT_EQ(0, np_bad_set(&self->bad, BADCTRL_MORE_HOSTS, FIRST_ROOM - 1));
	ASSERT_EQ(0, np_bad_rule(&self->bad, 0, BADCTRL_ON_IO | NVME_IO_RESERVATION_REPORT, BADCTRL_COUNT, 0,
				 BADCTRL_EVERY));
	ASSERT_EQ(0, np_ioctl(self->disk, READ_HELD, &held));
	EXPECT_EQ(OWN, held.key);
	EXPECT_EQ(1, np_bad_hits(&self->bad, 0));
	ASSERT_EQ(0, np_bad_set(&self->bad, BADCTRL_MORE_HOSTS, FIRST_ROOM));
	ASSERT_EQ(0, np_ioctl(self->disk, READ_HELD, &held));
	EXPECT_EQ(OWN, held.key);
	EXPECT_EQ(3, np_bad_hits(&self->bad, 0));
}

/* More room for keys than a command of this controller can transfer. */
TEST_F(bad_reservations, report_fits_into_a_command)
{
	struct keys report;
	uint64_t *keys;

	if (!has_reports(self->disk))
		SKIP(return, "no reports in this kernel");
	keys = calloc(ROOM, sizeof(*keys));
	ASSERT_NE(NULL, keys);
	ASSERT_EQ(0, np_bad_set(&self->bad, BADCTRL_OTHER_KEY, OTHER));
	EXPECT_EQ(0, read_keys(self->disk, keys, ROOM, &report));
	EXPECT_EQ(1, report.count);
	EXPECT_EQ(OTHER, keys[0]);
	free(keys);
}

TEST_F(bad_reservations, unknown_type_is_not_reported)
{
	struct held held;

	if (!has_reports(self->disk))
		SKIP(return, "no reports in this kernel");
	ASSERT_EQ(0, np_bad_set(&self->bad, BADCTRL_OTHER_KEY, OTHER));
	ASSERT_EQ(0, np_bad_set(&self->bad, BADCTRL_OTHER_TYPE, PR_EXCLUSIVE_ACCESS_ALL_REGS));
	ASSERT_EQ(0, np_ioctl(self->disk, READ_HELD, &held));
	EXPECT_EQ(PR_EXCLUSIVE_ACCESS_ALL_REGS, held.type);
	ASSERT_EQ(0, np_bad_set(&self->bad, BADCTRL_OTHER_TYPE, PR_EXCLUSIVE_ACCESS_ALL_REGS + 1));
	ASSERT_EQ(0, np_ioctl(self->disk, READ_HELD, &held));
	EXPECT_EQ(0, held.type);
}

/* The open file of a disk that is gone. */
TEST_F(bad_reservations, removed_disk_has_none)
{
	int disk = dup(self->disk);
	struct held held;
	bool reports;

	ASSERT_LE(0, disk);
	reports = has_reports(disk);
	ASSERT_EQ(0, np_bad_unbind(&self->bad));
	EXPECT_EQ(-ENODEV, register_key(disk, 0, OWN, 0));
	if (reports)
		EXPECT_EQ(-ENODEV, np_ioctl(disk, READ_HELD, &held));
	close(disk);
}

TEST_F(bad_reservations, failures_are_reported)
{
	static const struct {
		uint16_t status;
		int result;
	} table[] = {
		{ NVME_SC_INVALID_OPCODE, -EINVAL },
		{ NVME_SC_INVALID_NAMESPACE, -EINVAL },
		{ NVME_SC_ATTRIBUTES, -EINVAL },
		{ NVME_SC_HOST_PATH, 0x10000 },
		{ NVME_SC_INTERNAL, IO_ERROR },
	};
	struct keys report;
	struct held held;
	uint64_t key;
	size_t i;

	for (i = 0; i < sizeof(table) / sizeof(table[0]); i++) {
		ASSERT_EQ(0, np_bad_rule(&self->bad, 0,
					 BADCTRL_ON_IO | NVME_IO_RESERVATION_REGISTER,
					 BADCTRL_STATUS, table[i].status, 1));
		EXPECT_EQ(table[i].result, register_key(self->disk, 0, OWN, 0));
	}
	if (!has_reports(self->disk))
		return;
	ASSERT_EQ(0, np_bad_rule(&self->bad, 0, BADCTRL_ON_IO | NVME_IO_RESERVATION_REPORT,
				 BADCTRL_STATUS, NVME_SC_INTERNAL, BADCTRL_EVERY));
	EXPECT_EQ(IO_ERROR, np_ioctl(self->disk, READ_HELD, &held));
	EXPECT_EQ(IO_ERROR, read_keys(self->disk, &key, 1, &report));
}

TEST_HARNESS_MAIN
